"""`Ladder`: what is published. Answers for any annotator and any content, and can be saved and loaded.

Shape legend: B units, A annotators asked for, P annotators known (their arrays have P + 1 rows; the last is the generic
one, which answers for everybody unknown), T tokens, D dim, C classes of a control.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from model import checkpoint
from model.base_models.base import Reading
from model.base_models.pooled import mean_tokens, with_surface
from model.base_models.registry import BASE_MODELS
from model.coldstart.adapting import Adapted, content_of, moved
from model.config import LadderConfig
from model.data.dataset import Tokens, check_tokens
from model.data.observed_votes import ObservedVotes, no_votes, observed_votes
from model.data.spaces import Space
from model.data.votes import Votes
from model.ensemble.control import ControlPrediction, ControlState
from model.ensemble.fingerprint import Fingerprint
from model.ensemble.fingerprint import from_arrays as fingerprint_from_arrays
from model.ensemble.stored import control_arrays, control_from, control_numbers, space_from
from model.errors import CheckpointError, ModelError
from model.qumab.committee import Committee

Floats = NDArray[np.float64]
_BATCH_UNITS = 256


class Ladder:
    """A fitted ladder. Immutable; safe to share between threads."""

    def __init__(
        self, *, annotators: Sequence[str], controls: Mapping[str, ControlState], committee: Committee | None, dim: int,
        config: LadderConfig, learned: NDArray[np.int64] | None = None, begun: Mapping[str, int] | None = None,
        fingerprint: Fingerprint | None = None,
    ) -> None:
        """`committee` None: no network, no control and no `dim`, as where a project asks for orders alone, which are
        learned elsewhere. `learned` (P,): the training votes of each annotator when the network last went through all
        units; `begun`: those of each control when it was last trained from nothing, empty where unknown;
        `fingerprint`: what it was trained with, None where unknown."""
        self.annotators = tuple(annotators)
        self.controls = dict(controls)
        self._committee = committee
        self.dim = dim
        self.config = config
        self.learned = np.zeros(len(self.annotators), np.int64) if learned is None else learned
        self.begun = dict(begun or {})
        self.fingerprint = fingerprint
        self._index = {name: index for index, name in enumerate(self.annotators)}

    def having(self, controls: Mapping[str, ControlState]) -> Ladder:
        """The same ladder with other states of its controls."""
        return Ladder(
            annotators=self.annotators, controls=controls, committee=self._committee, dim=self.dim, config=self.config,
            learned=self.learned, begun=self.begun, fingerprint=self.fingerprint,
        )

    @property
    def reads(self) -> bool:
        """Whether there is a network, which reads tokens."""
        return self._committee is not None

    @property
    def committee(self) -> Committee:
        """The network. Raises ModelError where there is none."""
        if self._committee is None:
            raise ModelError("this version has no network, since none of its controls is learned by one")
        return self._committee

    @property
    def spaces(self) -> dict[str, Space]:
        return {name: state.space for name, state in self.controls.items()}

    def base_models(self, control: str, *, observed: bool = True) -> tuple[str, ...]:
        """The base models that speak about a control; without `observed`, where nobody has voted."""
        there = self.controls[control].base_models
        return tuple(
            name for name, model in BASE_MODELS.items() if name in there and (observed or not model.reads_votes)
        )

    def predict(
        self, tokens: Sequence[Tokens], annotators: Sequence[str], *, units: Sequence[str] | None = None,
        given: Votes | None = None, consensus: bool = True, texts: Sequence[str] | None = None,
        newcomers: Mapping[str, Adapted] = MappingProxyType({}), among: Votes | None = None,
    ) -> dict[str, ControlPrediction]:
        """Probabilities for B units and the annotators asked for.

        `tokens`: B arrays (T_i, D). `units` names them, so that the votes in `given` can be found: they say something
        about the votes of all others (never about that of who gave them), and count in the consensus as what they are.
        `texts` are what the units show, "" where that is no text; without them the surface of texts counts as an
        average one. Without `consensus`, its rows are left at 0 and cost nothing. `newcomers` are answered for as their
        own votes taught (`model.coldstart`), but for units that they have voted on. With `among`, the consensus is
        about the majority of those known annotators who voted there, instead of everybody who uses the control, and not
        calibrated. Raises ModelError for tokens of another dimension or with NaN, and for `given` without `units`.
        Without a network nothing is answered.
        """
        if not self.reads:
            return {}
        if given is not None and units is None:
            raise ModelError("given votes can be used only when the units are named")
        names = list(units) if units is not None else [f"at position {row}" for row in range(len(tokens))]
        check_tokens(names, tokens, self.dim)
        return self._answers(tokens, annotators, names, (given,), consensus, texts, newcomers, among)[0]

    def predict_both(
        self, tokens: Sequence[Tokens], annotators: Sequence[str], *, units: Sequence[str], given: Votes,
        texts: Sequence[str] | None = None,
    ) -> tuple[dict[str, ControlPrediction], dict[str, ControlPrediction]]:
        """What `predict` answers from content alone and with `given`, without a consensus; content is read once."""
        if not self.reads:
            return {}, {}
        check_tokens(units, tokens, self.dim)
        alone, conditioned = self._answers(tokens, annotators, units, (None, given), False, texts)
        return alone, conditioned

    def _answers(
        self, tokens: Sequence[Tokens], annotators: Sequence[str], units: Sequence[str],
        situations: Sequence[Votes | None], consensus: bool, texts: Sequence[str] | None,
        newcomers: Mapping[str, Adapted] = MappingProxyType({}), among: Votes | None = None,
    ) -> list[dict[str, ControlPrediction]]:
        """The answers in each situation; at most one, the last, has given votes."""
        parts: list[dict[str, list[ControlPrediction]]] = [{name: [] for name in self.controls} for _ in situations]
        for start in range(0, max(1, len(tokens)), _BATCH_UNITS):
            part = slice(start, start + _BATCH_UNITS)
            votes = [{name: self._observed(name, units[part], each) for name in self.controls} for each in situations]
            read = self.features(tokens[part], None if texts is None else texts[part])
            reading = Reading(tokens[part], votes[-1])
            alone = {name: state.alone(read, reading, votes[0][name]) for name, state in self.controls.items()}
            for found, theirs, given in zip(parts, votes, situations, strict=True):
                for name, state in self.controls.items():
                    answers = state.answer(alone[name], read, reading, theirs[name], reads_votes=given is not None)
                    panel = None if among is None else \
                        self._observed(name, units[part], among).has[:, : len(state.panel)]
                    agreed = answers.consensus(self.config.consensus_samples, panel) if consensus else None
                    made = answers.prediction(annotators, self._index, agreed)
                    if newcomers:
                        made = replace(made, served=moved(
                            made.served, name, newcomers, annotators, units[part], self._rows(answers.scores),
                            content_of(state.pooled, read)))
                    found[name].append(made)
        return [{name: _concatenate(batches) for name, batches in found.items()} for found in parts]

    def place(self, annotator: str) -> int | None:
        """The row of a known annotator."""
        return self._index.get(annotator)

    def trained_on(self, annotator: str) -> int:
        """How many of an annotator's votes the network was trained on when it last went through all units."""
        at = self._index.get(annotator)
        return 0 if at is None else int(self.learned[at])

    def _rows(self, scores: Floats) -> Floats:
        """Of answers (B, R, C) those of known annotators and the one of somebody who gave nothing."""
        return scores if scores.shape[1] == len(self.annotators) + 1 else np.concatenate(
            [scores[:, : len(self.annotators)], scores[:, -1:]], 1)

    def features(self, tokens: Sequence[Tokens], texts: Sequence[str] | None = None) -> NDArray[np.float32]:
        """What is read of content beside tokens, (B, F)."""
        means = mean_tokens(tokens, self.dim)
        reads = any(state.pooled.own is not None for state in self.controls.values())
        return with_surface(means, texts) if reads else means

    def _observed(self, control: str, units: Sequence[str], given: Votes | None) -> ObservedVotes:
        space = self.controls[control].space
        if given is None:
            return no_votes(len(units), len(self.annotators), len(space.classes))
        return observed_votes(given, control, space, units, self._index, self.config.echo_weight)

    def save(self, folder: Path) -> None:
        """Write a checkpoint. Raises CheckpointError."""
        network = {} if self._committee is None else self._committee.arrays()
        arrays: checkpoint.Arrays = {f"network.{name}": array for name, array in network.items()}
        arrays |= {} if self.fingerprint is None else self.fingerprint.arrays()
        controls = []
        for index, (name, state) in enumerate(self.controls.items()):
            arrays |= {f"control.{index}.{key}": array for key, array in control_arrays(state).items()}
            controls.append({"name": name, **control_numbers(state)})
        meta = {
            "annotators": list(self.annotators), "controls": controls, "dim": self.dim, "config": self.config.to_json(),
            "members": 0 if self._committee is None else self._committee.network.members,
            "learned": self.learned.tolist(), "begun": self.begun,
        }
        checkpoint.save(folder, arrays, meta)

    @classmethod
    def load(cls, folder: Path, *, device: str = "cpu") -> Ladder:
        """Read a checkpoint. Raises CheckpointError when it is missing, damaged or of another format."""
        arrays, meta = checkpoint.load(folder)
        try:
            config = LadderConfig.from_json(meta["config"])
            if "network.labels.embed" not in arrays:  # from before networks read votes
                config = replace(config, network=replace(config.network, labels=False))
            spaces = {item["name"]: space_from(item) for item in meta["controls"]}
            committee = None if not (spaces or meta["members"]) else Committee.from_arrays(
                {name.removeprefix("network."): a for name, a in arrays.items() if name.startswith("network.")},
                members=meta["members"], annotators=len(meta["annotators"]), dim=meta["dim"], config=config.network,
                spaces=spaces, device=device,
            )
            controls = {
                item["name"]: control_from(arrays, index, item, committee)
                for index, item in enumerate(meta["controls"]) if committee is not None
            }
            return cls(
                annotators=meta["annotators"], controls=controls, committee=committee, dim=meta["dim"], config=config,
                learned=np.array(meta.get("learned", [0] * len(meta["annotators"])), np.int64),
                begun=meta.get("begun"), fingerprint=fingerprint_from_arrays(arrays, list(spaces)),
            )
        except (KeyError, TypeError, RuntimeError) as error:
            raise CheckpointError(f"the checkpoint {Path(folder).name} lacks a part that a ladder needs") from error


def _concatenate(parts: Sequence[ControlPrediction]) -> ControlPrediction:
    return ControlPrediction(
        served=np.concatenate([part.served for part in parts]),
        network=np.concatenate([part.network for part in parts]),
        base_models={
            name: np.concatenate([part.base_models[name] for part in parts]) for name in parts[0].base_models
        },
        consensus=np.concatenate([part.consensus for part in parts]),
    )

