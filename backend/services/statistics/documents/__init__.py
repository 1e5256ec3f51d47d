"""The documents that a project's statistics are: frozen, JSON-able, computed by a job and only ever read by pages.

Eight kinds, one class each: `Overview`, `Annotators`, `Profile` (one for each annotator), `Tasks`, `Flags`,
`Consensus`, `Alike` (who agrees with whom), and `Regions` where annotators draw.
Every document begins with a `Header`. What is unknown is None, never NaN and never a made-up 0; shares and
probabilities lie in [0, 1], losses are in nats a vote, durations in seconds. Classes stand in the order of the label
config. A label is a text as people read it: the class, or the chosen classes joined by ", " (`NOTHING_CHOSEN` for the
empty set). `codec` turns documents into JSON and back.

Glossary: *leave-one-out accuracy* compares a vote with what the other votes say of its unit (never with a consensus
that contains it); *out-of-sample* predictions come from models that never saw the unit.
"""

from __future__ import annotations

from collections.abc import Mapping

from backend.services.statistics.documents.alike import MOST_IN_MATRIX, AgreementMatrix, Alike
from backend.services.statistics.documents.annotators import (
    Accepted,
    AnnotatorFigures,
    AnnotatorRow,
    Annotators,
    ClassLeniency,
    ControlProfile,
    Habit,
    Judgement,
    Neighbour,
    Period,
    Predictability,
    Profile,
)
from backend.services.statistics.documents.flags import (
    Checked,
    Flag,
    Flags,
    Reason,
    ReasonKind,
)
from backend.services.statistics.documents.foreseen import Foreseen, Learned, VersionPoint
from backend.services.statistics.documents.header import (
    ALONE,
    LISTED,
    NOTHING_CHOSEN,
    UNKNOWN,
    DocumentKind,
    Figure,
    Header,
)
from backend.services.statistics.documents.overview import (
    MOST_COUNTED,
    Agreement,
    Answered,
    Calibration,
    CalibrationBin,
    ClassAgreement,
    ConsensusFigures,
    ControlNote,
    ControlOverview,
    Coverage,
    LadderFigures,
    ModelScore,
    Overview,
    TrainingRun,
    UnmodelledControl,
)
from backend.services.statistics.documents.regions import RegionFigures, RegionPair, Regions
from backend.services.statistics.documents.tasks import (
    Camp,
    Consensus,
    ConsensusColumns,
    DifferingVote,
    DividedTask,
    TaskLists,
    TaskRow,
    Tasks,
)

Document = Overview | Annotators | Profile | Tasks | Flags | Consensus | Regions | Alike
TYPES: Mapping[DocumentKind, type[Document]] = {
    DocumentKind.OVERVIEW: Overview,
    DocumentKind.ANNOTATORS: Annotators,
    DocumentKind.PROFILE: Profile,
    DocumentKind.TASKS: Tasks,
    DocumentKind.FLAGS: Flags,
    DocumentKind.CONSENSUS: Consensus,
    DocumentKind.REGIONS: Regions,
    DocumentKind.ALIKE: Alike,
}

__all__ = [
    "ALONE",
    "LISTED",
    "MOST_COUNTED",
    "MOST_IN_MATRIX",
    "NOTHING_CHOSEN",
    "TYPES",
    "UNKNOWN",
    "Accepted",
    "Agreement",
    "AgreementMatrix",
    "Alike",
    "AnnotatorFigures",
    "AnnotatorRow",
    "Annotators",
    "Answered",
    "Calibration",
    "CalibrationBin",
    "Camp",
    "Checked",
    "ClassAgreement",
    "ClassLeniency",
    "Consensus",
    "ConsensusColumns",
    "ConsensusFigures",
    "ControlNote",
    "ControlOverview",
    "ControlProfile",
    "Coverage",
    "DifferingVote",
    "DividedTask",
    "Document",
    "DocumentKind",
    "Figure",
    "Flag",
    "Flags",
    "Foreseen",
    "Habit",
    "Header",
    "Judgement",
    "LadderFigures",
    "Learned",
    "ModelScore",
    "Neighbour",
    "Overview",
    "Period",
    "Predictability",
    "Profile",
    "Reason",
    "ReasonKind",
    "RegionFigures",
    "RegionPair",
    "Regions",
    "TaskLists",
    "TaskRow",
    "Tasks",
    "TrainingRun",
    "UnmodelledControl",
    "VersionPoint",
]
