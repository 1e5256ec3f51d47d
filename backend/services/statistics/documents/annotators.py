"""The table of annotators, and the profile of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from backend.services.statistics.documents.foreseen import Foreseen, VersionPoint
from backend.services.statistics.documents.header import Figure, Header


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
class Habit:
    """What the others call one class, this annotator regularly calls another: a way to label, no fault."""

    others_say: str
    says: str
    count: int  # tasks of which the others say the one, and they the other,
    of: int  # of those of which the others say the one
    usual: float  # how often the other annotators do so


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What may be said of somebody's way to label one control, all of it from tasks that others labelled too."""

    common_tasks: int  # that others labelled as well; a fault is named from 20
    common_people: int  # others with at least 5 tasks in common; a fault is named from 2
    false_alarm: float | None  # at most how likely such votes are from anybody in a project without faults, over all
    #                            people, controls and looks; None where no fault is named
    unrelated: bool  # nothing that the others say tells their labels: a rule of their own, or labels without looking
    top_class: str | None  # the class they give most often on common tasks; None without
    top_share: float | None  # its share of their votes there
    expected_share: float | None  # its share if they answered as annotators usually do on these tasks
    habits: tuple[Habit, ...]  # most regular first
    fault: str  # "" or constant, inverter, drifter, spammer; named only where `false_alarm` is at most .05
    drift_before: float | None  # mean rightness before the most likely change
    drift_after: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorFigures(Judgement):
    """One annotator on one control."""

    votes: int
    agreement: float | None  # share of the others' votes on the same units that are equal
    accuracy: Figure  # leave-one-out accuracy against what the others say (Wilson interval)
    kappa: float | None  # the same beyond what their habits reach by chance
    spammer_score: float | None  # distance of their confusion matrix to rank one: 0 is a spammer
    ability: float | None  # GLAD's alpha: 0 guesses, negative inverts; None for very large projects and several choices
    self_consistency: float | None  # share of equal pairs among their own repeats; None without repeats
    repeats: int  # pairs behind it
    drift_p: float | None  # how likely such a change over time is by chance, for one annotator at one look; None with
    #                        too few votes on common tasks or no times
    fault_probability: float | None  # 1 - false_alarm, for those who read it of old; None where no fault is named
    group: int | None  # annotators of one number label alike; 0 is the tightest group
    predictability: Predictability | None  # None before the first version
    foreseen: Foreseen | None = None  # how far the model has learned them


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
    position: tuple[float, float] | None  # on the map of agreement; None where too few tasks are common
    controls: Mapping[str, AnnotatorFigures]  # those they used


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotators:
    """All annotators, most votes first."""

    header: Header
    rows: tuple[AnnotatorRow, ...]
    map_explained: float | None  # share of the differences that the map of agreement shows; None without a map


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
    by_version: tuple[VersionPoint, ...] = ()  # oldest first; versions that had held-out votes of theirs


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What is known of one annotator; `row` is theirs in `Annotators`."""

    header: Header
    row: AnnotatorRow
    controls: Mapping[str, ControlProfile]
