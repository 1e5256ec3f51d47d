"""Every number that steers learning, as frozen keyword-only dataclasses; two presets: `polyvox` and `paper`.

`paper` follows QuMAB (AAAI 2026, doi 10.1609/aaai.v40i33.40060): each annotator's mean loss, summed (tau 0), AdamW at
1e-4 with decay 0.01, 20 % warm-up, cosine, clip 1.0, up to 200 epochs with patience 25, a classifier of its own for
each annotator without shrinkage. `polyvox` is what serves small projects best.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Self

from model.errors import ModelError

HeadKind = Literal["full", "lowrank", "shared"]
Build = Literal["light", "qformer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConfig:
    """Shape and training of the query network."""

    build: Build = "light"  # or the Q-Former of BLIP-2, whose published size is 768 wide, 12 heads, 12 blocks
    pretrained: str = ""  # of `qformer`: a local folder with its weights as safetensors; "" starts from scratch
    width: int = 128  # d, of queries; a multiple of `heads`
    heads: int = 4
    blocks: int = 2
    head: HeadKind = "full"  # per-annotator part of the classifier
    rank: int = 8  # of `lowrank`
    shrinkage: float = 1.0  # precision of the Gaussian prior on per-annotator parts, in nats
    self_attention: bool = True  # queries read each other before the tokens
    labels: bool = True  # queries may read the votes that a unit already has
    label_share: float = 1.0  # weight of the loss with some votes visible, beside that without
    pooled_path: bool = True  # the mean token is read as one more token and by the classifier directly
    token_dropout: float = 0.1  # share of tokens hidden from the queries in training
    dropout: float = 0.2
    tau: float = 0.75  # an annotator with n votes weighs n^tau in the loss
    generic_share: float = 0.15  # how often an annotator is replaced by the generic query in the loss
    learning_rate: float = 2e-3
    weight_decay: float = 0.05
    epochs: int = 16
    warm_epochs: int = 6  # when training goes on from a published version
    brief_epochs: int = 2  # the same, where only the units with new votes and some others are gone through
    replay: float = 1.0  # how many others, for each unit with new votes; more where a batch would not be full
    patience: int = 4
    batch_units: int = 32
    ema: float = 0.9  # decay a step of the averaged weights that are kept; 0 keeps the raw ones
    clip: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderConfig:
    """How a ladder is fitted, stacked, calibrated and judged."""

    network: NetworkConfig = field(default_factory=NetworkConfig)
    seed: int = 0
    folds: int = 4  # of the training units; each has networks of its own, early-stopped on it; all serve together
    members_per_fold: int = 2  # networks of each fold
    single_above_votes: int = 40_000  # above this many votes one network is trained, on one split
    pairs_below_votes: int = 10_000  # above this many votes each fold has one network only
    brief_until: float = 1.25  # growth of the votes since all units were last gone through; beyond it they are again
    warm_until: float = 2.0  # growth or loss of a control's votes since networks were last trained from nothing
    echo_weight: float = 0.3  # weight of an accepted pre-annotation
    prior_strength: float = 4.0  # pseudo-votes that pull an annotator's frequencies to everybody's
    confusion_strength: float = 4.0  # pseudo-votes that pull each row of a confusion matrix to everybody's
    stack_strength: float = 20.0  # pseudo-votes that pull the weights of base models to their prior
    bias_strength: float = 20.0  # pseudo-votes that pull an annotator's calibration bias to none
    floor: bool = True  # what is served is mixed for each annotator (`model.ensemble.floor`)
    min_heldout_votes: int = 40  # below this the gate looks at cross-validation on training votes
    min_heldout_tasks: int = 20  # the same, for the tasks that these votes are on
    gate_level: float = 0.95  # of the gate's paired interval
    gate_margin: float = 0.01  # nats a vote that count as no difference for the gate
    person_margin: float = 0.05  # the same for a single annotator, whose whole interval must lie beyond it
    person_votes: int = 20  # held-out votes of an annotator from which on the gate looks at them alone
    consensus_samples: int = 256
    resident_mb: int = 1024  # tokens kept in memory while training; beyond it they are fetched batch by batch

    @classmethod
    def preset(cls, name: Literal["polyvox", "paper"]) -> LadderConfig:
        """A named configuration. Raises ModelError for an unknown name."""
        if name == "polyvox":
            return cls()
        if name == "paper":
            network = NetworkConfig(
                width=192, blocks=3, head="full", shrinkage=0.0, pooled_path=False, token_dropout=0.0, dropout=0.3,
                tau=0.0, learning_rate=1e-4, weight_decay=0.01, epochs=200, warm_epochs=200, patience=25,
                batch_units=64, ema=0.0,
            )
            return cls(network=network, folds=1)
        raise ModelError(f"no preset named {name!r}; there are polyvox and paper")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Inverse of `to_json`; keys that this version does not know are left out."""
        known = {item.name for item in fields(cls)}
        network_known = {item.name for item in fields(NetworkConfig)}
        network = NetworkConfig(**{k: v for k, v in data.get("network", {}).items() if k in network_known})
        return cls(network=network, **{k: v for k, v in data.items() if k in known and k != "network"})
