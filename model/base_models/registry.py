"""All base models by name, in the order in which they are stacked.

To add one, name it here: the stacks give it a weight that is fitted, from its starting weight on, checkpoints keep what
it fitted, and pages and figures show it under its title. Versions from before it go on without it.
"""

from __future__ import annotations

from model.base_models.base import BaseModel
from model.base_models.factors import Factors
from model.base_models.network import Conditioned, Network
from model.base_models.others import Others
from model.base_models.pooled import Pooled
from model.base_models.prior import Prior

BASE_MODELS: dict[str, BaseModel] = {
    model.name: model for model in (Prior(), Pooled(), Network(), Conditioned(), Others(), Factors())
}

NAIVE = (Prior.name, Pooled.name)  # that know nothing of how each annotator reads content: what others are held against


def alone() -> list[BaseModel]:
    """Those that answer where nobody has voted."""
    return [model for model in BASE_MODELS.values() if not model.reads_votes]


def from_votes() -> list[BaseModel]:
    """Those that do without content."""
    return [model for model in BASE_MODELS.values() if not model.reads_content]


def starting_weights(*, observed: bool) -> dict[str, float]:
    """What each counts before any vote has spoken: where others have voted on the unit (`observed`), or where nobody
    has."""
    models = BASE_MODELS.values() if observed else alone()
    return {model.name: model.weight_observed if observed else model.weight for model in models}
