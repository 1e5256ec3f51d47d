"""What figures mean, in sentences for people: honest about how many votes stand behind them and about losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from backend.report import people_sentences
from backend.report.words import count, decimal, known, number, percent
from backend.services.statistics.documents import (
    Agreement,
    AnnotatorFigures,
    AnnotatorRow,
    Figure,
    LadderFigures,
    Overview,
    RegionFigures,
)
from model.base_models.registry import BASE_MODELS, NAIVE

FEW_VOTES = 100  # below it, figures on held-out votes are rough
FEW_TASKS = 20  # below it one task more or less can move alpha from one judgement to another
SAME_NATS = 0.005  # log-losses that differ by less are the same to people
LOG_LOSS = ("Log-loss is how surprising the given labels were to the prediction, in nats a vote: 0 if it was sure and "
            "always right, 0.69 for tossing a coin between two labels. Lower is better.")
ALPHA = "Krippendorff’s α is agreement beyond chance: 1 is perfect, 0 is what guessing would reach."
SERVED = "Polyvox’ predictions"


def way(name: str) -> str:
    """A way to predict, for people: what is served, or the title of a base model."""
    if name == "served":
        return SERVED
    model = BASE_MODELS.get(name)
    return name.replace("_", " ").capitalize() if model is None else model.title


BELIEVE = ("This is the figure to believe: it counts only votes on tasks that no version was trained on, and that were "
           "given without a suggestion in view.")


def lead(document: Overview) -> str:
    """The first sentence of a project."""
    cover = document.coverage
    each = f", {decimal(cover.given / cover.tasks, 1)} a task on average" if cover.tasks else ""
    return (f"{count(cover.annotators, 'annotator')} gave {count(document.header.votes, 'vote')} on "
            f"{count(cover.tasks, 'task')}{each}.")


def agreement(control: str, found: Agreement) -> str:
    """How far annotators agree, by Krippendorff's own rule of thumb."""
    alpha = found.alpha.value
    if alpha is None:
        return f"Nothing can be said on {control} yet: no task has two votes."
    near = "" if found.level == "nominal" else " (near misses count less)"
    return (f"On {control} two annotators of one task give the same label in {percent(found.percent.value)} of all "
            f"comparisons. α = {interval(found.alpha)}{near}, {_judged(alpha, found.tasks)}. It rests on "
            f"{count(found.tasks, 'task')} with two votes or more.")


def _judged(alpha: float, tasks: int) -> str:
    if tasks < FEW_TASKS:
        return "which is known from too few tasks to judge by"
    if alpha >= 0.8:
        return "which is high: the labels can be relied on"
    if alpha >= 0.667:
        return "which is enough for tentative conclusions"
    if alpha >= 0.2:
        return "which is low: annotators read many tasks differently"
    return "which is hardly more than guessing would reach"


def regions(control: str, found: RegionFigures) -> str:
    """How far annotators draw the same."""
    if found.f1.value is None:
        return f"Nothing can be said on {control}: on no task did two annotators draw, or one of two, yet."
    lies = "" if found.iou is None else f" Regions that two drew overlap by {decimal(found.iou)} (IoU, mean)."
    return (f"With {control}, two annotators draw the same regions (the same labels, and an IoU of a half or more) to "
            f"F1 = {interval(found.f1, shares=True)}, and {percent(found.exact)} lie exactly on each other.{lies} "
            f"{count(found.tasks, 'task')} with {count(found.regions, 'region')} stand behind it; the brackets hold a "
            "95 % interval over tasks.")


def interval(figure: Figure, *, shares: bool = False) -> str:
    """"0.54 (0.50 to 0.58)"."""
    show = percent if shares else decimal
    if not (known(figure.low) and known(figure.high)):
        return show(figure.value)
    return f"{show(figure.value)} ({show(figure.low)} to {show(figure.high)})"


def ladder(control: str, found: LadderFigures) -> str:
    """How good the published version is, beside the naive answers on the same votes."""
    ways = {each.name: each for each in found.heldout}
    served = ways.get("served")
    if served is None or served.accuracy is None:
        return f"How good {found.version} is at {control} is not known yet: no votes were held out to test it on."
    naive = [ways[name] for name in NAIVE if name in ways and ways[name].accuracy is not None]
    return predicted(f"Version {found.version}", control, served, naive)


class Judged(Protocol):
    """Figures of one way to predict."""

    @property
    def name(self) -> str: ...
    @property
    def votes(self) -> int: ...
    @property
    def accuracy(self) -> float | None: ...
    @property
    def log_loss(self) -> float | None: ...


def predicted(who: str, control: str, served: Judged, naive: Sequence[Judged]) -> str:
    """What was predicted right, beside simple guesses on the same votes."""
    rough = " These are few votes, so take the figures as rough." if served.votes < FEW_VOTES else ""
    beside = " and ".join(f"{percent(each.accuracy)} ({lower(way(each.name))})" for each in naive)
    than = f"; simple guesses reach {beside}" if beside else ""
    losses = [each.log_loss for each in naive if each.log_loss is not None]
    return (f"{who} predicted {percent(served.accuracy)} of {count(served.votes, 'held-out vote')} on {control} "
            f"right{than}.{against(served.log_loss, losses)}{rough}")


def against(loss: float | None, naive: list[float]) -> str:
    """How the probabilities compare with simple guesses. Log-loss decides, since it judges more than the top label."""
    if loss is None or not naive:
        return ""
    gain = min(naive) - loss
    than = "better" if gain >= SAME_NATS else "worse" if gain <= -SAME_NATS else ""
    said = f"{than} than those of the best of them" if than else "as good as those of the best of them"
    return f" Its probabilities are {said} (log-loss {decimal(loss, 3)} against {decimal(min(naive), 3)})."


def lower(words: str) -> str:
    """For the middle of a sentence."""
    return words[:1].lower() + words[1:]


def elsewhere(found: LadderFigures) -> str:
    """The same of other votes, and why the figure on held-out votes is the one to believe."""
    shown = [f"{interval(each.accuracy, shares=True)} of {count(each.votes, 'vote')} {where}" for each, where in (
        (found.had_i_answered, "given without a suggestion in view"),
        (found.control_arm, "from which a suggestion was withheld on purpose")) if each is not None and each.votes]
    return (f"Other votes give other figures: predictions made without having seen a task were right for "
            f"{' and '.join(shown)}. Those come from several models, each trained on a part of the tasks, and some on "
            f"fewer votes than {found.version}; believe the figure on held-out votes.") if shown else ""


def annotator(name: str, row: AnnotatorRow, figures: AnnotatorFigures) -> list[str]:
    """What stands out about somebody on one control."""
    said = [f"{name} gave {count(figures.votes, 'vote')}. Where others voted too, {name} says the same as the rest in "
            f"{interval(figures.accuracy, shares=True)}."
            if figures.accuracy.value is not None else
            f"{name} gave {count(figures.votes, 'vote')}."]
    said += people_sentences.judged(figures, name)
    if figures.self_consistency is not None:
        said.append(f"Asked the same again, they gave the same answer in {percent(figures.self_consistency)} of "
                    f"{count(figures.repeats, 'pair')}.")
    foreseen = figures.predictability
    if figures.foreseen is not None and figures.foreseen.sentence:
        said.append(figures.foreseen.sentence)
    elif foreseen is not None and foreseen.accuracy is not None:
        said.append(f"The model predicted {percent(foreseen.accuracy)} of {count(foreseen.votes, 'vote')} right, on "
                    f"tasks that it had not seen (log-loss {decimal(foreseen.log_loss, 3)} a vote; from how often "
                    f"{name} gives each label {decimal(foreseen.prior_log_loss, 3)}; 0 is sure and right, lower is "
                    "better).")
    if row.relative_speed is not None and not 0.8 <= row.relative_speed <= 1.25:
        said.append(f"On the same tasks they take {decimal(row.relative_speed, 1)} times as long as others.")
    if row.accepted.shown:
        said.append(f"They saw {count(row.accepted.shown, 'suggestion')} and submitted "
                    f"{number(row.accepted.accepted)} of them without a change.")
    return said
