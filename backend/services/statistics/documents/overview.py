"""The overview of a project: coverage, agreement and consensus of each control, the published version."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from backend.services.statistics.documents.header import Figure, Header

MOST_COUNTED = 12  # annotators a task; more are counted together


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The annotation matrix, annotators x tasks; given + predicted + missing = tasks * annotators."""

    tasks: int  # present in Label Studio
    annotators: int  # with at least one current vote
    given: int  # (task, annotator) pairs with a vote
    predicted: int  # gaps of annotators whom the published version knows
    missing: int  # gaps without a prediction
    votes_per_task: tuple[int, ...]  # [n] = tasks labelled by n annotators; [MOST_COUNTED] = by so many or more


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassAgreement:
    """How one class is used and agreed on."""

    name: str
    votes: int
    share: float | None  # of all votes; with several choices: of the answers that contain it
    agreement: float | None  # of the pairs with a vote for this class, the share in which the other says it too
    alpha: float | None  # Krippendorff's alpha of this class against all others
    alpha_missing: str = ""  # a sentence that says why there is no alpha


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far annotators agree on one control. For several choices every (task, class) is one yes-or-no question."""

    percent: Figure  # share of equal pairs of votes
    alpha: Figure  # Krippendorff's alpha of `level`; 1 perfect, 0 chance
    gwet_ac1: float | None  # does not collapse when one class dominates
    tasks: int  # units with two votes or more, which the figures rest on
    classes: tuple[ClassAgreement, ...]
    level: str = "nominal"  # "ordinal": near misses count less; "interval": numbers, by the middles of their bins


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusFigures:
    """The consensus of one control, as it is shown everywhere."""

    method: str  # the version that says it ("r12"), "votes alone" before the first
    tasks: int  # units with a consensus label
    mean_confidence: float | None
    histogram: tuple[int, ...]  # units by confidence in ten equal bins of [0, 1]
    classes: tuple[tuple[str, int], ...]  # (class, units whose label it is or contains)
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationBin:
    """Labels whose confidence lies between `low` and `high`."""

    low: float
    high: float
    tasks: int
    stated: float  # mean confidence
    right: Figure  # share that is the majority, with its 95 % interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Whether the confidence of the consensus is true, on tasks with many votes some of which were hidden from it: the
    consensus of the votes that were left against the majority of all."""

    tasks: int
    bins: tuple[CalibrationBin, ...]  # those that hold a task
    gap: float | None  # mean distance between stated and true, by tasks; None without any
    votes: int  # from which on a task counts as one with many


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScore:
    """How well one way predicts votes: "served", or a base model ("prior", "pooled", "network" ...)."""

    name: str
    votes: int
    accuracy: float | None
    accuracy_annotator_mean: float | None  # every annotator counts the same
    log_loss: float | None
    calibration_error: float | None  # expected calibration error
    weight: float | None  # of a base model in what is served; None for "served"


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
    heldout: tuple[ModelScore, ...]  # on tasks that are never trained on; served first, then by weight
    cross_validation: tuple[ModelScore, ...]  # on training tasks, by models without their fold
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
    calibration: Calibration | None = None  # None where no task has many votes


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmodelledControl:
    """A control that Polyvox recognises and does not learn, or votes of one that are kept and not learned from."""

    name: str
    tag: str
    reason: str  # a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlNote:
    """What else is to be said of a control that is learned: of votes left out, or of how it is learned."""

    name: str
    tag: str
    note: str  # a sentence


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
    notes: tuple[ControlNote, ...] = ()
