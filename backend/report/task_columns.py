"""The columns of the tables of tasks, flags, consensus labels and of labels worth asking for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from backend.report import disagreements
from backend.report.names import Names
from backend.report.table import Cell, Column
from backend.services.gaps.documents import Ask, MatrixRow
from backend.services.statistics.documents import ConsensusColumns, DividedTask, Flag, TaskRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Flagged:
    """A flag with its id and what was said of it by now."""

    id: str
    flag: Flag
    checked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """One unit's consensus."""

    unit: str
    label: str | None
    confidence: float | None
    votes: int
    dawid_skene: str | None = None
    dawid_skene_confidence: float | None = None


def labelled(columns: ConsensusColumns) -> list[Labelled]:
    """Columns as rows."""
    nothing = (None,) * len(columns.units)
    whole = zip(columns.units, columns.labels, columns.confidence, columns.votes, columns.dawid_skene or nothing,
                columns.dawid_skene_confidence or nothing, strict=True)
    return [Labelled(unit=unit, label=label, confidence=confidence, votes=votes, dawid_skene=classical,
                     dawid_skene_confidence=sure) for unit, label, confidence, votes, classical, sure in whole]


TASKS: tuple[Column[TaskRow], ...] = (
    Column(name="task", title="Task", help="Label Studio's id", kind="id", read=lambda row, names: row.task),
    Column(name="unit", title="Unit", help="the task, or the region of it", kind="text", sorts=False,
           read=lambda row, names: row.unit),
    Column(name="votes", title="Votes", help="votes on it", kind="whole", read=lambda row, names: row.votes),
    Column(name="label", title="Consensus", help="probably what the majority of all annotators would say", kind="text",
           read=lambda row, names: row.label, low_first=True),
    Column(name="confidence", title="Confidence", help="how probably it is their majority", kind="percent",
           low_first=True, read=lambda row, names: row.confidence),
    Column(name="entropy", title="Entropy", help="how mixed the votes are, in nats: 0 where all say the "
           "same, 0.69 for two labels half and half, 1.10 for three in equal parts",
           read=lambda row, names: row.entropy),
    Column(name="surprise", title="Surprise", help="disagreement that the annotators' habits do not explain, in "
           "standard errors", read=lambda row, names: row.surprise),
    Column(name="ambiguity", title="Ambiguity", help="probability that the task can be read in two ways, given votes "
           "and habits", kind="percent", read=lambda row, names: row.ambiguity),
    Column(name="cause", title="Cause", help="why its votes differ: agreed (they do not), habit (somebody’s way of "
           "labelling, known from their other votes), readings (it can be read in two ways), slip, or cannot-tell",
           kind="text", read=lambda row, names: row.cause, low_first=True),
    Column(name="why", title="Why they differ", help="a sentence for each vote whose difference is explained",
           kind="text", sorts=False, read=lambda row, names: disagreements.why(row, names)),
)


def _of_row(column: Column[TaskRow]) -> Column[DividedTask]:
    return Column(name=column.name, title=column.title, help=column.help, kind=column.kind, sorts=column.sorts,
                  low_first=column.low_first, read=lambda item, names: column.read(item.row, names))


def _camp_label(place: int) -> Callable[[DividedTask, Names], Cell]:
    return lambda item, names: item.camps[place].label


def _camp_people(place: int) -> Callable[[DividedTask, Names], Cell]:
    return lambda item, names: "; ".join(names.all(item.camps[place].annotators))


DIVIDED: tuple[Column[DividedTask], ...] = (
    *(_of_row(column) for column in TASKS),
    Column(name="division", title="Division", help="weight of the lighter camp: reliable votes that would have to be "
           "wrong", read=lambda item, names: item.division),
    Column(name="first_label", title="First camp", help="what the heavier camp says", kind="text", sorts=False,
           read=_camp_label(0)),
    Column(name="first_annotators", title="Who", help="its annotators, separated by semicolons", kind="text",
           sorts=False, read=_camp_people(0)),
    Column(name="second_label", title="Second camp", help="what the lighter camp says", kind="text", sorts=False,
           read=_camp_label(1)),
    Column(name="second_annotators", title="Who", help="its annotators, separated by semicolons", kind="text",
           sorts=False, read=_camp_people(1)),
)

FLAGS: tuple[Column[Flagged], ...] = (
    Column(name="flag", title="Flag", help="names the flag when it is marked as checked", kind="text", sorts=False,
           read=lambda item, names: item.id),
    Column(name="score", title="Score", help="how strongly the evidence speaks for a slip: 0 is even "
           "odds, 2.3 is ten to one, 4.6 a hundred to one (log-odds in nats)",
           read=lambda item, names: item.flag.score),
    Column(name="task", title="Task", help="Label Studio's id", kind="id", read=lambda item, names: item.flag.task),
    Column(name="unit", title="Unit", help="the task, or the region of it", kind="text", sorts=False,
           read=lambda item, names: item.flag.unit),
    Column(name="annotator", title="Annotator", help="who gave the vote", kind="text", sorts=False,
           read=lambda item, names: names.slug(item.flag.annotator)),
    Column(name="name", title="Name", help="name or e-mail", kind="text", low_first=True,
           read=lambda item, names: names.name(item.flag.annotator)),
    Column(name="control", title="Control", help="what was asked", kind="text", low_first=True,
           read=lambda item, names: item.flag.control),
    Column(name="given", title="Given", help="the label", kind="text", low_first=True,
           read=lambda item, names: item.flag.given),
    Column(name="expected", title="Expected", help="the label that the evidence points to", kind="text",
           low_first=True, read=lambda item, names: item.flag.expected),
    Column(name="reasons", title="Why", help="a sentence for each piece of evidence, strongest first", kind="text",
           sorts=False, read=lambda item, names: " ".join(reason.sentence for reason in item.flag.reasons)),
    Column(name="cause", title="Cause", help="why the vote differs: slip, habit of its giver, readings (two of them), "
           "cannot-tell, or agreed", kind="text", low_first=True, read=lambda item, names: item.flag.cause),
    Column(name="twin", title="Twin", help="the nearly equal task of a contradiction", kind="id", sorts=False,
           read=lambda item, names: item.flag.twin),
    Column(name="checked", title="Checked", help="fine, slip, or nothing yet", kind="text",
           read=lambda item, names: item.checked),
)

CONSENSUS: tuple[Column[Labelled], ...] = (
    Column(name="unit", title="Unit", help="the task, or the region of it", kind="text",
           read=lambda row, names: row.unit),
    Column(name="label", title="Consensus", help="probably what the majority of all annotators would say", kind="text",
           read=lambda row, names: row.label),
    Column(name="confidence", title="Confidence", help="how probably it is their majority", kind="percent",
           read=lambda row, names: row.confidence),
    Column(name="votes", title="Votes", help="votes on it", kind="whole", read=lambda row, names: row.votes),
)

# Other ways to sum up votes, for those who ask for them by name.
BESIDE: dict[str, tuple[Column[Labelled], ...]] = {"dawid_skene": (
    Column(name="dawid_skene", title="Dawid-Skene", help="what the votes come to by Dawid and Skene's method",
           kind="text", read=lambda row, names: row.dawid_skene),
    Column(name="dawid_skene_confidence", title="Its confidence", help="its posterior; not calibrated", kind="percent",
           read=lambda row, names: row.dawid_skene_confidence),
)}

ASKS: tuple[Column[Ask], ...] = (
    Column(name="task", title="Task", help="Label Studio's id", kind="id", read=lambda row, names: row.task),
    Column(name="unit", title="Unit", help="the task, or the region of it", kind="text",
           read=lambda row, names: row.unit),
    Column(name="annotator", title="Annotator", help="whom to ask", kind="text",
           read=lambda row, names: names.slug(row.annotator)),
    Column(name="name", title="Name", help="name or e-mail", kind="text",
           read=lambda row, names: names.name(row.annotator)),
    Column(name="gain", title="Gain", help="what the policy expects of the label",
           read=lambda row, names: row.gain),
    Column(name="cost", title="Cost", help="of the annotator's next label", read=lambda row, names: row.cost),
    Column(name="sentence", title="Why", help="the reason", kind="text", read=lambda row, names: row.sentence),
)

MATRIX: tuple[Column[MatrixRow], ...] = (
    Column(name="annotator", title="Annotator", help="Label Studio's user id", kind="text", sorts=False,
           read=lambda row, names: names.slug(row.annotator)),
    Column(name="name", title="Name", help="name or e-mail", kind="text", low_first=True,
           read=lambda row, names: names.name(row.annotator)),
    Column(name="given", title="Given", help="tasks they labelled", kind="whole", read=lambda row, names: row.given),
    Column(name="predicted", title="Predicted", help="gaps that the model fills", kind="whole",
           read=lambda row, names: row.predicted),
    Column(name="missing", title="Missing", help="gaps without a prediction", kind="whole",
           read=lambda row, names: row.missing),
)
