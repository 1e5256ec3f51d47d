"""What a model has learned of one annotator on one control: a badge, the figures behind it, and its way by version."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from backend.services.statistics.documents.header import UNKNOWN, Figure


class Learned(StrEnum):
    """How far the model can foresee somebody; about the model, never about the person."""

    LEARNING = "learning"  # too few votes to tell
    LEARNED = "learned"  # it foresees them better than their own habits do
    NOT_YET = "cannot foresee yet"  # enough votes, and it does not


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionPoint:
    """A version on an annotator's held-out votes."""

    version: str
    at: datetime
    published: bool
    votes: int
    accuracy: float
    log_loss: float
    habits_log_loss: float  # of their own label frequencies on the same votes


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """Predictions of an annotator's votes by models that had not seen them."""

    badge: Learned
    votes: int
    needed: int  # votes from which on something can be said
    accuracy: Figure = UNKNOWN  # share of votes foreseen (Wilson interval)
    usual: str | None = None  # the label that they give most often
    usual_accuracy: float | None = None  # share of the same votes that always saying it would foresee
    gain: Figure = UNKNOWN  # accuracy minus that, paired, clustered by task
    loss_gain: Figure = UNKNOWN  # log-loss of their own label frequencies minus that of the predictions, nats a vote
    sentence: str = ""  # all this for people, without a name
