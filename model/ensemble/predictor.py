"""`Ladder`: what is published. Answers for any annotator and any content, and can be saved and loaded.

Shape legend: B units, A annotators asked for, P annotators known (their arrays have P + 1 rows; the last is the generic
one, which answers for everybody unknown), T tokens, D dim, C classes of a control.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model import checkpoint
from model.config import LadderConfig
from model.ensemble.data import Tokens, check_tokens
from model.ensemble.scores import to_probabilities, to_scores
from model.ensemble.stack import Stack
from model.errors import CheckpointError
from model.spaces import MultipleChoice, SingleChoice, Space, ValueKind
from model.votes import Votes

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPrediction:
    """Probabilities for one control; single choice: a distribution, several choices: one Bernoulli a class."""

    served: Floats  # (B, A, C) stacked and calibrated: what people are shown
    network: Floats  # (B, A, C) the network alone
    rungs: dict[str, Floats]  # name -> (B, A, C)
    consensus: Floats  # (B, C) probability to be the majority of the whole panel


@dataclass(frozen=True, kw_only=True)
class ControlState:
    """What the ladder learned about one control, apart from the network."""

    space: Space
    prior: Floats  # (P + 1, C) probabilities
    stack: Stack
    panel: NDArray[np.bool_]  # (P,) annotators who ever used this control


class Ladder:
    """A fitted ladder. Immutable; safe to share between threads."""

    def __init__(
        self, *, annotators: Sequence[str], controls: Mapping[str, ControlState], dim: int, config: LadderConfig,
        device: str = "cpu",
    ) -> None:
        self.annotators = tuple(annotators)
        self.controls = dict(controls)
        self.dim = dim
        self.config = config
        self.device = device
        self._index = {name: index for index, name in enumerate(self.annotators)}

    @property
    def spaces(self) -> dict[str, Space]:
        return {name: state.space for name, state in self.controls.items()}

    def predict(
        self, tokens: Sequence[Tokens], annotators: Sequence[str], *, units: Sequence[str] | None = None,
        given: Votes | None = None,
    ) -> dict[str, ControlPrediction]:
        """Probabilities for B units and the annotators asked for.

        `tokens`: B arrays (T_i, D). `units` names them, so that the votes in `given` can be found: they count in the
        consensus as what they are. Raises ModelError for tokens of another dimension or with NaN.
        """
        names = list(units) if units is not None else [str(row) for row in range(len(tokens))]
        check_tokens(names, tokens, self.dim)
        asked = np.array([self._index.get(name, len(self.annotators)) for name in annotators], dtype=np.int64)
        scores = self._rung_scores(tokens)
        answer = {}
        for name, state in self.controls.items():
            served = to_probabilities(state.space, state.stack.pool(scores[name]))  # (B, P + 1, C)
            rungs = {rung: to_probabilities(state.space, s[:, asked]) for rung, s in scores[name].items()}
            answer[name] = ControlPrediction(
                served=served[:, asked], network=rungs.get("network", rungs["prior"]), rungs=rungs,
                consensus=served[:, -1],
            )
        return answer

    def _rung_scores(self, tokens: Sequence[Tokens]) -> dict[str, dict[str, Floats]]:
        """control -> rung -> scores (B, P + 1, C)."""
        return {
            name: {"prior": np.broadcast_to(to_scores(state.space, state.prior), (len(tokens), *state.prior.shape))}
            for name, state in self.controls.items()
        }

    def save(self, folder: Path) -> None:
        """Write a checkpoint. Raises CheckpointError."""
        arrays: checkpoint.Arrays = {}
        controls = []
        for index, (name, state) in enumerate(self.controls.items()):
            arrays[f"control.{index}.prior"] = state.prior
            arrays[f"control.{index}.bias"] = state.stack.bias
            arrays[f"control.{index}.panel"] = state.panel
            controls.append({
                "name": name, "kind": str(state.space.kind), "classes": list(state.space.classes),
                "weights": state.stack.weights, "temperature": state.stack.temperature,
            })
        meta = {
            "annotators": list(self.annotators), "controls": controls, "dim": self.dim, "config": self.config.to_json(),
        }
        checkpoint.save(folder, arrays, meta)

    @classmethod
    def load(cls, folder: Path, *, device: str = "cpu") -> Ladder:
        """Read a checkpoint. Raises CheckpointError when it is missing, damaged or of another format."""
        arrays, meta = checkpoint.load(folder)
        try:
            controls = {item["name"]: _control(arrays, index, item) for index, item in enumerate(meta["controls"])}
            return cls(
                annotators=meta["annotators"], controls=controls, dim=meta["dim"],
                config=LadderConfig.from_json(meta["config"]), device=device,
            )
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"the checkpoint {Path(folder).name} lacks a part that a ladder needs: {error}") from error


def _control(arrays: checkpoint.Arrays, index: int, item: Mapping[str, Any]) -> ControlState:
    classes = tuple(item["classes"])
    space: Space = SingleChoice(classes) if item["kind"] == ValueKind.CLASS else MultipleChoice(classes)
    stack = Stack(weights=item["weights"], temperature=item["temperature"], bias=arrays[f"control.{index}.bias"])
    return ControlState(
        space=space, prior=arrays[f"control.{index}.prior"], stack=stack, panel=arrays[f"control.{index}.panel"],
    )
