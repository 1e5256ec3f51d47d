"""All aggregators of nominal votes by name. Other kinds of votes: `multi_label`, `numeric`, `bradley_terry`."""

from __future__ import annotations

from model.crowd.base import Aggregator
from model.crowd.clustered import ClusteredDawidSkene
from model.crowd.crowdlab import CrowdLab
from model.crowd.dawid_skene import DawidSkene, FastDawidSkene
from model.crowd.glad import Glad
from model.crowd.iwmv import IterativeWeightedVote
from model.crowd.kos import Kos
from model.crowd.mace import Mace
from model.crowd.majority import MajorityVote, SoftVote
from model.crowd.mmsr import Mmsr
from model.crowd.one_coin import OneCoin
from model.crowd.online import OnlineDawidSkene
from model.crowd.ordinal import OrdinalDawidSkene
from model.crowd.plantnet import PlantNet
from model.crowd.two_third import TwoThird
from model.crowd.wawa import Wawa
from model.crowd.weighted_ds import WeightedDawidSkene
from model.crowd.zero_based import ZeroBasedSkill
from model.errors import ModelError

AGGREGATORS: dict[str, type[Aggregator]] = {
    method.name: method
    for method in (
        MajorityVote, SoftVote, DawidSkene, FastDawidSkene, OneCoin, Glad, Mace, Wawa, IterativeWeightedVote,
        ZeroBasedSkill, WeightedDawidSkene, TwoThird, PlantNet, CrowdLab, ClusteredDawidSkene, Kos, Mmsr,
        OrdinalDawidSkene, OnlineDawidSkene,
    )
}


def make(name: str, **settings: object) -> Aggregator:
    """An aggregator by name, with its settings. Raises ModelError for an unknown name or setting."""
    method = AGGREGATORS.get(name)
    if method is None:
        raise ModelError(f"no aggregator is called {name!r}; there are {', '.join(sorted(AGGREGATORS))}")
    try:
        return method(**settings)
    except TypeError as error:
        raise ModelError(f"{name} has no such setting: {', '.join(sorted(settings))}") from error
