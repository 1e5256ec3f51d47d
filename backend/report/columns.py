"""The columns of the table of annotators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from backend.report import people_sentences
from backend.report.names import Names
from backend.report.table import Cell, Column
from backend.services.statistics.documents import AnnotatorFigures, AnnotatorRow, Annotators


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """An annotator with their figures on the control that is looked at; None where they never used it."""

    row: AnnotatorRow
    figures: AnnotatorFigures | None


def judged(document: Annotators, control: str) -> list[Judged]:
    """Every annotator, with their figures on one control."""
    return [Judged(row=row, figures=row.controls.get(control)) for row in document.rows]


def _figure(name: str) -> Callable[[Judged, Names], Cell]:
    def read(item: Judged, names: Names) -> Cell:
        found: Cell = None if item.figures is None else getattr(item.figures, name)
        return found

    return read


def _accuracy(part: str) -> Callable[[Judged, Names], Cell]:
    return lambda item, names: None if item.figures is None else getattr(item.figures.accuracy, part)


def _predictability(part: str) -> Callable[[Judged, Names], Cell]:
    def read(item: Judged, names: Names) -> Cell:
        known = item.figures.predictability if item.figures else None
        found: Cell = None if known is None else getattr(known, part)
        return found

    return read


ANNOTATORS: tuple[Column[Judged], ...] = (
    Column(name="annotator", title="Annotator", help="Label Studio's user id, or a number where names are masked",
           kind="text", sorts=False, read=lambda item, names: names.slug(item.row.annotator)),
    Column(name="name", title="Name", help="name or e-mail", kind="text",
           read=lambda item, names: names.name(item.row.annotator), low_first=True),
    Column(name="votes", title="Votes", help="current votes with this control", kind="whole",
           read=lambda item, names: item.figures.votes if item.figures else 0),
    Column(name="accuracy", title="Agrees with the rest", help="share of votes that equal what the other votes say of "
           "the task (leave one out)", kind="percent", read=_accuracy("value"), low_first=True),
    Column(name="accuracy_low", title="at least", help="lower end of its 95 % interval", kind="percent",
           read=_accuracy("low")),
    Column(name="accuracy_high", title="at most", help="upper end of its 95 % interval", kind="percent",
           read=_accuracy("high")),
    Column(name="agreement", title="Pairs alike", help="share of the others' votes on the same tasks that are equal",
           kind="percent", read=_figure("agreement"), low_first=True),
    Column(name="kappa", title="Kappa", help="agreement with the rest beyond what their habits reach by chance; 1 is "
           "perfect, 0 is chance", kind="decimal", read=_figure("kappa"), low_first=True),
    Column(name="spammer_score", title="Information", help="how far their labels differ between tasks that the "
           "others see differently; near 0 they do not. Low for somebody lenient or severe, too", kind="decimal",
           read=_figure("spammer_score"), low_first=True),
    Column(name="ability", title="Ability", help="how well they tell the classes apart, as the others see them "
           "(GLAD); 0: not at all, below 0: the other way round", kind="decimal", read=_figure("ability"),
           low_first=True),
    Column(name="self_consistency", title="Same again", help="share of equal pairs among their own repeats",
           kind="percent", read=_figure("self_consistency"), low_first=True),
    Column(name="repeats", title="Repeats", help="pairs of votes behind the consistency", kind="whole",
           read=_figure("repeats")),
    Column(name="drift_p", title="Change (p)", help="how likely so large a change over time would be of somebody "
           "who does not change; below 0.05 they probably did", kind="decimal", read=_figure("drift_p"),
           low_first=True),
    Column(name="predicted", title="Predicted right", help="share of votes that the model predicted right, on tasks "
           "that it had not seen", kind="percent", read=_predictability("accuracy"), low_first=True),
    Column(name="learned", title="The model", help="whether it has learned them: learning (too few votes to tell), "
           "learned (foresees them better than their own habits do, or nearly always), or cannot foresee yet",
           kind="text", sorts=False, read=lambda item, names: item.figures.foreseen.badge.value
           if item.figures and item.figures.foreseen else ""),
    Column(name="log_loss", title="Log-loss", help="how surprising the votes were to these predictions, in nats: 0 is "
           "sure and right, 0.69 a coin toss; lower is better", kind="decimal", read=_predictability("log_loss")),
    Column(name="prior_log_loss", title="Log-loss of frequencies", help="the same from their label frequencies alone",
           kind="decimal", read=_predictability("prior_log_loss")),
    Column(name="accepted", title="Accepted", help="share of the suggestions they saw that they submitted "
           "without a change", kind="percent", read=lambda item, names: item.row.accepted.rate),
    Column(name="seconds", title="Time", help="median time for a vote", kind="seconds", low_first=True,
           read=lambda item, names: item.row.median_s),
    Column(name="relative_speed", title="Relative time", help="their time against others on the same tasks; 0.5 takes "
           "half as long", kind="decimal", read=lambda item, names: item.row.relative_speed, low_first=True),
    Column(name="hurried", title="Hurried", help="share of votes in less than a fifth of the task's median time",
           kind="percent", read=lambda item, names: item.row.hurried),
    Column(name="fault", title="Worth asking about", help="a finding that comes up by chance, about anybody, in at "
           "most 5 % of projects where nothing is wrong; needs 20 tasks in common with two others",
           kind="text", read=lambda item, names: item.figures.fault if item.figures else "", sorts=False),
    Column(name="false_alarm", title="By chance", help="at most in this share of projects where nothing is wrong "
           "such a finding comes up, about anybody", kind="percent", read=_figure("false_alarm")),
    Column(name="fault_probability", title="1 − by chance", help="1 minus the column before it; not how probable a "
           "fault is", kind="percent", read=_figure("fault_probability")),
    Column(name="common_tasks", title="Common tasks", help="tasks that others labelled as well; findings need 20",
           kind="whole", read=_figure("common_tasks")),
    Column(name="common_people", title="Others", help="people with 5 tasks in common or more; findings need 2",
           kind="whole", read=_figure("common_people")),
    Column(name="habits", title="Habits", help="what they regularly call by another name than the others", kind="text",
           read=lambda item, names: " ".join(people_sentences.habits(item.figures)) if item.figures else "",
           sorts=False),
    Column(name="group", title="Group", help="annotators of one number label alike", kind="whole",
           read=_figure("group"), sorts=False),
    Column(name="last_vote", title="Last vote", help="when they last labelled", kind="time",
           read=lambda item, names: item.row.last_vote.isoformat()),
)
