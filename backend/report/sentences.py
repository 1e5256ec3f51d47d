"""What figures mean, in sentences for people: honest about how many votes stand behind them and about losses."""

from __future__ import annotations

from backend.report.words import count, decimal, known, number, percent
from backend.services.statistics.documents import (
    Agreement,
    AnnotatorFigures,
    AnnotatorRow,
    Answered,
    Figure,
    LadderFigures,
    Overview,
    RegionFigures,
    TaskLists,
    WayFigures,
)

NAIVE = ("prior", "pooled")  # rungs that need no knowledge of the content of each annotator
FEW_VOTES = 100
FEW_TASKS = 20  # below it one task more or less can move alpha from one judgement to another
FAULTS = {
    "constant": "gives almost the same answer whatever the task is",
    "inverter": "says the opposite of the others more often than not",
    "drifter": "labels differently now than before",
    "spammer": "labels as if without looking at the task",
}
WAYS = {
    "served": "What is served", "prior": "Each annotator's habits alone",
    "pooled": "Content, with a bias for each annotator", "network": "Network that knows each annotator",
    "others": "The others' votes", "conditioned": "Network that has read the others' votes",
    "factors": "Leanings that annotators share, read off the others' votes",
}
CAUSES = {
    "agreed": "agreed", "ambiguous": "can be read in two ways", "careless": "differ by habits and slips",
    "unclear": "too few votes to tell",
}


def way(name: str) -> str:
    """A rung of the ladder for people."""
    return WAYS.get(name, name.replace("_", " ").capitalize())


def lead(document: Overview) -> str:
    """The first sentence of a project."""
    cover = document.coverage
    pairs = cover.tasks * cover.annotators
    share = f", which is {percent(cover.given / pairs)} of all pairs" if pairs else ""
    return (f"{count(cover.annotators, 'annotator')} gave {count(document.header.votes, 'vote')} on "
            f"{count(cover.tasks, 'task')}{share}.")


def agreement(control: str, found: Agreement) -> str:
    """How far annotators agree, by Krippendorff's own rule of thumb."""
    alpha = found.alpha.value
    if alpha is None:
        return f"Nothing can be said on {control}: no task has two votes yet."
    near = "" if found.level == "nominal" else ", and with near misses counting less,"
    return (f"On {control} annotators agree in {percent(found.percent.value)} of all pairs of votes; corrected for "
            f"chance{near} that is α = {interval(found.alpha)}, {_judged(alpha, found.tasks)}. "
            f"{count(found.tasks, 'task')} with two votes or more stand behind it.")


def _judged(alpha: float, tasks: int) -> str:
    if tasks < FEW_TASKS:
        return "on too few tasks to judge by"
    if alpha >= 0.8:
        return "good enough to rely on"
    if alpha >= 0.667:
        return "good enough for tentative conclusions"
    return "low: annotators read many tasks differently" if alpha >= 0.2 else "hardly more than chance"


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
        return f"Nothing was held out yet, so {found.version} could not be judged on {control}."
    naive = [ways[name] for name in NAIVE if name in ways and ways[name].accuracy is not None]
    rough = ", few enough to take this as rough" if served.votes < FEW_VOTES else ""
    said = (f"On {count(served.votes, 'held-out vote')}{rough}, {found.version} predicts {control} right in "
            f"{percent(served.accuracy, 1)}")
    beside = " and ".join(f"{percent(each.accuracy, 1)} ({way(each.name).lower()})" for each in naive)
    return f"{said}; the naive answers reach {beside}.{_against(served, naive)}" if beside else f"{said}."


def _against(served: WayFigures, naive: list[WayFigures]) -> str:
    """Log-loss decides, since it judges the probabilities as well."""
    losses = [each.log_loss for each in naive if each.log_loss is not None]
    if served.log_loss is None or not losses:
        return ""
    gain = min(losses) - served.log_loss
    figures = f"(log-loss {decimal(served.log_loss, 3)} against {decimal(min(losses), 3)})"
    if abs(gain) < 0.001:
        return f" Its probabilities are as good as the better of them {figures}."
    return f" Its probabilities are {'better' if gain > 0 else 'worse'} than the better of them {figures}."


def answered(found: Answered | None, *, what: str) -> str:
    """"Had I answered ..."."""
    if found is None or not found.votes:
        return f"There are no votes {what} yet."
    return (f"Of {count(found.votes, 'vote')} {what}, the prediction met {interval(found.accuracy, shares=True)} "
            f"(log-loss {decimal(found.log_loss, 3)}).")


def causes(control: str, lists: TaskLists) -> str:
    """Why votes differ."""
    whole = sum(lists.causes.values())
    ambiguous, careless = lists.causes.get("ambiguous", 0), lists.causes.get("careless", 0)
    if not whole:
        return f"No task has votes on {control} yet."
    return (f"Of {count(whole, 'task')} with votes on {control}, {number(ambiguous)} can be read in two ways, and on "
            f"{number(careless)} the votes differ by habits and slips rather than by the task.")


def annotator(name: str, row: AnnotatorRow, figures: AnnotatorFigures) -> list[str]:
    """What stands out about somebody on one control."""
    said = [f"{name} gave {count(figures.votes, 'vote')} and agrees with the rest in "
            f"{interval(figures.accuracy, shares=True)} of those that others voted on as well."
            if figures.accuracy.value is not None else
            f"{name} gave {count(figures.votes, 'vote')}; nobody else has voted on these tasks yet."]
    if figures.fault:
        sure = percent(figures.fault_probability)
        said.append(f"By their votes, somebody who {FAULTS.get(figures.fault, figures.fault)} ({sure} sure).")
    if figures.drift_p is not None and figures.drift_p < 0.05:
        said.append(f"They changed: {percent(figures.drift_before)} right before, {percent(figures.drift_after)} "
                    f"after; by chance alone such a change has a probability of {decimal(figures.drift_p, 3)}.")
    if figures.self_consistency is not None:
        said.append(f"Asked the same again, they say the same in {percent(figures.self_consistency)} of "
                    f"{count(figures.repeats, 'pair')}.")
    foreseen = figures.predictability
    if foreseen is not None and foreseen.accuracy is not None:
        said.append(f"The model foresaw {percent(foreseen.accuracy)} of {count(foreseen.votes, 'vote')} without having "
                    f"seen these tasks (log-loss {decimal(foreseen.log_loss, 3)}; from their habits alone "
                    f"{decimal(foreseen.prior_log_loss, 3)}).")
    if row.relative_speed is not None and not 0.8 <= row.relative_speed <= 1.25:
        said.append(f"They take {decimal(row.relative_speed, 1)} times as long as others on the same tasks.")
    if row.accepted.shown:
        said.append(f"Of {count(row.accepted.shown, 'pre-annotation')} they saw, {number(row.accepted.accepted)} went "
                    f"in unchanged.")
    return said
