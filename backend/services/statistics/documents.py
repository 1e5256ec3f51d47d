"""The documents that a project's statistics are: frozen, JSON-able, computed by a job and only ever read by pages.

Six kinds, one class each: `Overview`, `Annotators`, `Profile` (one for each annotator), `Tasks`, `Flags`, `Consensus`.
Every document begins with a `Header`. What is unknown is None, never NaN and never a made-up 0; shares and
probabilities lie in [0, 1], losses are in nats a vote, durations in seconds. Classes stand in the order of the label
config. A label is a text as people read it: the class, or the chosen classes joined by ", " (`NOTHING_CHOSEN` for the
empty set). `codec` turns documents into JSON and back.

Glossary: *leave-one-out accuracy* compares a vote with what the other votes say of its unit (never with a consensus
that contains it); *out-of-sample* predictions come from models that never saw the unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

NOTHING_CHOSEN = "(nothing chosen)"


class DocumentKind(StrEnum):
    """What is stored; PROFILE is there once for each annotator, all others once a project."""

    OVERVIEW = "overview"
    ANNOTATORS = "annotators"
    PROFILE = "profile"
    TASKS = "tasks"
    FLAGS = "flags"
    CONSENSUS = "consensus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a document was made from."""

    project: str  # project key
    version: str  # changes exactly when the content may have changed: good as an ETag
    computed_at: datetime  # UTC
    changes: int  # VoteCounts.changes when the votes were read
    model_version: str | None  # published version whose out-of-sample predictions were used ("r12"); None without
    votes: int  # current votes that were read


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number with its 95 % interval; low and high are None where no interval can be given."""

    value: float | None
    low: float | None = None
    high: float | None = None


UNKNOWN = Figure(value=None)


# Overview


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The annotation matrix, annotators x tasks; given + predicted + missing = tasks * annotators."""

    tasks: int  # present in Label Studio
    annotators: int  # with at least one current vote
    given: int  # (task, annotator) pairs with a vote
    predicted: int  # gaps of annotators whom the published version knows
    missing: int  # gaps without a prediction
    votes_per_task: tuple[int, ...]  # [n] = tasks labelled by n annotators, for n = 0, 1, ...; the last is "or more"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassAgreement:
    """How one class is used and agreed on."""

    name: str
    votes: int
    share: float | None  # of all votes; with several choices: of the answers that contain it
    agreement: float | None  # of the pairs with a vote for this class, the share in which the other says it too
    alpha: float | None  # Krippendorff's alpha of this class against all others


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far annotators agree on one control. For several choices every (task, class) is one yes-or-no question."""

    percent: Figure  # share of equal pairs of votes
    alpha: Figure  # Krippendorff's alpha, nominal; 1 perfect, 0 chance
    gwet_ac1: float | None  # does not collapse when one class dominates
    tasks: int  # units with two votes or more, which the figures rest on
    classes: tuple[ClassAgreement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusFigures:
    """The Dawid-Skene consensus of one control, from votes alone."""

    method: str  # "dawid-skene"
    tasks: int  # units with a consensus label
    mean_confidence: float | None
    histogram: tuple[int, ...]  # units by confidence in ten equal bins of [0, 1]
    classes: tuple[tuple[str, int], ...]  # (class, units whose label it is or contains)
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WayFigures:
    """How well one way predicts votes: "served", or a rung of the ladder ("prior", "pooled", "network" ...)."""

    name: str
    votes: int
    accuracy: float | None
    accuracy_annotator_mean: float | None  # every annotator counts the same
    log_loss: float | None
    calibration_error: float | None  # expected calibration error
    weight: float | None  # of a rung in what is served; None for "served"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """"Had I answered": the served prediction against votes that it could not have influenced."""

    votes: int
    accuracy: Figure  # Wilson interval
    log_loss: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderFigures:
    """The published version on one control."""

    version: str
    heldout: tuple[WayFigures, ...]  # on tasks that are never trained on; served first, then by weight
    cross_validation: tuple[WayFigures, ...]  # on training tasks, by models without their fold
    control_arm: Answered | None  # votes from which a pre-annotation was withheld; None without such votes
    had_i_answered: Answered | None  # all votes given without a pre-annotation in view (shadow mode: all votes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlOverview:
    """One control of the project."""

    name: str
    kind: str  # "class" (one choice) or "classes" (several)
    classes: tuple[str, ...]
    votes: int
    annotators: int
    agreement: Agreement
    consensus: ConsensusFigures
    ladder: LadderFigures | None  # None before the first version


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmodelledControl:
    """A control that Polyvox recognises and does not learn; no figures are there for it."""

    name: str
    tag: str
    reason: str  # a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """One version that was tried, newest first."""

    version: str
    at: datetime
    published: bool
    reason: str  # a sentence
    votes: int | None  # it was trained and judged on
    seconds: float | None
    log_loss: float | None  # of served on held-out votes, mean over controls; None where nothing was held out


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Everything about a project at a glance."""

    header: Header
    coverage: Coverage
    controls: tuple[ControlOverview, ...]
    unmodelled: tuple[UnmodelledControl, ...]
    training: tuple[TrainingRun, ...]
    outside: int  # votes for a class, or with a control, that the label config does not know any more; left out
    control_arm_percent: float  # 0: switched off, and scores are biased by what annotators were shown
    shadow_mode: bool
    problem: str  # a sentence when there is nothing to compute from, else ""


# Annotators


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictability:
    """How well out-of-sample predictions of the published version meet an annotator's votes."""

    votes: int
    accuracy: float | None
    log_loss: float | None
    prior_log_loss: float | None  # of the annotator's habits alone on the same votes


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What an annotator did with pre-annotations they saw."""

    shown: int  # votes given with a pre-annotation in view
    accepted: int  # submitted unchanged
    changed: int  # begun from it, then edited
    rate: float | None  # accepted / shown


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorFigures:
    """One annotator on one control."""

    votes: int
    agreement: float | None  # share of the others' votes on the same units that are equal
    accuracy: Figure  # leave-one-out accuracy against what the others say (Wilson interval)
    kappa: float | None  # the same beyond what their habits reach by chance
    spammer_score: float | None  # distance of their confusion matrix to rank one: 0 is a spammer
    ability: float | None  # GLAD's alpha: 0 guesses, negative inverts; None for very large projects and several choices
    self_consistency: float | None  # share of equal pairs among their own repeats; None without repeats
    repeats: int  # pairs behind it
    drift_p: float | None  # how likely such a change over time is by chance; None with too few votes or no times
    drift_before: float | None  # mean rightness before the most likely change
    drift_after: float | None
    fault: str  # "" or constant, inverter, drifter, spammer
    fault_probability: float | None  # of any fault, given the votes
    group: int | None  # annotators of one number label alike; 0 is the tightest group
    predictability: Predictability | None  # None before the first version


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorRow:
    """One annotator."""

    annotator: str  # Label Studio user id, or "deleted:<annotation id>"
    name: str  # e-mail or name; the id where unknown
    votes: int
    tasks: int
    last_vote: datetime
    median_s: float | None  # seconds a vote, from lead_time
    relative_speed: float | None  # time against others on the same units: 0.5 takes half as long
    hurried: float | None  # share of votes in less than a fifth of the unit's median time
    accepted: Accepted
    position: tuple[float, float] | None  # in the 2-D map of the learned queries; None before the first version
    controls: Mapping[str, AnnotatorFigures]  # those they used


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotators:
    """All annotators, most votes first."""

    header: Header
    rows: tuple[AnnotatorRow, ...]
    map_explained: float | None  # share of the variance of the queries that the 2-D map shows


# One annotator's profile


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassLeniency:
    """How often a class is given against how often it was to be expected on the same units."""

    name: str
    given: float  # share of the annotator's votes (several choices: of their answers that contain it)
    expected: float  # share that the others' opinion of the same units suggests


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """Another annotator, by how alike they label."""

    annotator: str
    name: str
    common: int  # units that both labelled
    agreement: float  # share of equal votes on them
    kappa: float | None  # beyond chance; None where both gave one class only


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A stretch of an annotator's votes, in order of time; all periods have about the same number."""

    start: datetime
    end: datetime
    votes: int
    accuracy: float | None  # leave-one-out
    predicted: float | None  # share that the out-of-sample prediction met


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlProfile:
    """One annotator on one control, in detail."""

    figures: AnnotatorFigures
    classes: tuple[str, ...]
    confusion: tuple[tuple[float, ...], ...]  # [what the others say][what they gave], expected numbers of votes;
    #                                            several choices: 2 x 2 over all classes, [absent, present]
    leniency: tuple[ClassLeniency, ...]
    nearest: tuple[Neighbour, ...]  # most alike first
    over_time: tuple[Period, ...]  # () where votes have no times


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What is known of one annotator; `row` is theirs in `Annotators`."""

    header: Header
    row: AnnotatorRow
    controls: Mapping[str, ControlProfile]


# Tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """One unit on one control."""

    task: int  # Label Studio's id
    unit: str  # the task id, or "<task>/<region>"
    votes: int
    label: str | None  # Dawid-Skene consensus
    confidence: float | None
    entropy: float | None  # of the votes, nats
    surprise: float | None  # disagreement that the annotators' habits do not explain, in standard errors
    ambiguity: float | None  # probability that the task can be read in two ways, given votes and habits of its givers
    cause: str  # "ambiguous", "careless" (the votes differ by habits and slips), "agreed", "unclear" (too few votes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Camp:
    """Annotators who gave the same label."""

    label: str
    annotators: tuple[str, ...]
    weight: float  # sum of what their votes are worth: kappa, shrunk and not below 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DividedTask:
    """A task on which two camps stand against each other."""

    row: TaskRow
    camps: tuple[Camp, Camp]  # the heavier one first
    others: tuple[Camp, ...]
    division: float  # weight of the lighter camp: reliable votes that would have to be wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLists:
    """The tasks of one control that deserve attention; each list is cut at `LISTED`."""

    hardest: tuple[TaskRow, ...]  # highest ambiguity and surprise first
    divided: tuple[DividedTask, ...]  # highest division first
    causes: Mapping[str, int]  # cause -> units, over all units with votes


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """By control."""

    header: Header
    controls: Mapping[str, TaskLists]


# Flags


class ReasonKind(StrEnum):
    """Why a vote is worth a second look."""

    OWN_MODEL = "own-model"  # unlike what this annotator's own out-of-sample model expects
    OTHERS = "others"  # unlike what the other votes say, through this annotator's habits
    CONTRADICTION = "contradiction"  # they said something else of a nearly equal task
    SPEED = "speed"  # far quicker than they usually are


class Checked(StrEnum):
    """What a person said of a flag after looking."""

    FINE = "fine"  # the vote is meant as it stands; it is not flagged again and counts more in training
    SLIP = "slip"  # a mistake; it counts little in training until it is changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One thing that speaks against a vote."""

    kind: ReasonKind
    strength: float  # log-odds in nats that it adds; higher is more suspicious
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A vote worth a second look. It is named by (unit, annotator, control, given)."""

    task: int
    unit: str
    annotator: str
    name: str
    control: str
    given: str  # the label that was given
    value: str  # the same as canonical JSON of the value: what `check` wants back
    expected: str | None  # the label that the evidence points to
    score: float  # log-odds of being a slip, in nats; ranks the list
    reasons: tuple[Reason, ...]  # strongest first
    twin: int | None  # the nearly equal task of a contradiction
    checked: str  # "" or a `Checked`


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """Most suspicious first; cut at `LISTED`. Votes that were checked stay in the list as long as they stand."""

    header: Header
    rows: tuple[Flag, ...]
    votes: int  # that were judged
    checked: int  # of the votes that stand
    uses: tuple[str, ...]  # kinds of evidence that were there: `ReasonKind` values


# Consensus of all units


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusColumns:
    """Dawid-Skene labels of all units with votes on one control, as equally long columns in order of task ids."""

    units: tuple[str, ...]
    labels: tuple[str | None, ...]
    confidence: tuple[float | None, ...]
    votes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consensus:
    """By control. Large: for exports, not for pages."""

    header: Header
    controls: Mapping[str, ConsensusColumns]


LISTED = 300  # rows that a list of tasks or flags has at most
Document = Overview | Annotators | Profile | Tasks | Flags | Consensus
TYPES: Mapping[DocumentKind, type[Document]] = {
    DocumentKind.OVERVIEW: Overview,
    DocumentKind.ANNOTATORS: Annotators,
    DocumentKind.PROFILE: Profile,
    DocumentKind.TASKS: Tasks,
    DocumentKind.FLAGS: Flags,
    DocumentKind.CONSENSUS: Consensus,
}
