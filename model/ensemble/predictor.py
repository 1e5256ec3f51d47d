"""`Ladder`: what is published. Answers for any annotator and any content, and can be saved and loaded.

Shape legend: B units, A annotators asked for, P annotators known (their arrays have P + 1 rows; the last is the generic
one, which answers for everybody unknown), T tokens, D dim, C classes of a control.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model import checkpoint
from model.coldstart.adapting import Adapted, content_of, moved
from model.coldstart.people import People
from model.config import LadderConfig
from model.data.dataset import Tokens, check_tokens
from model.data.numbers import NumberBins, from_json, to_json
from model.data.spaces import MultipleChoice, SingleChoice, Space, ValueKind
from model.data.votes import Votes
from model.ensemble.calibration import Calibration
from model.ensemble.control import GAP_RUNGS, RUNGS, ControlPrediction, ControlState
from model.ensemble.factors import Factors
from model.ensemble.floor import Floor
from model.ensemble.gaps import Gaps
from model.ensemble.given import GivenVotes, given_votes, no_votes
from model.ensemble.latent import LatentClasses
from model.ensemble.pooled import Pooled, mean_tokens, with_surface
from model.ensemble.scores import to_scores
from model.ensemble.seen import Seen
from model.ensemble.seen import from_arrays as seen_from_arrays
from model.ensemble.stack import Stack
from model.errors import CheckpointError, ModelError
from model.qumab.committee import Committee
from model.qumab.labels import GivenColumns

Floats = NDArray[np.float64]
_BATCH_UNITS = 256


class Ladder:
    """A fitted ladder. Immutable; safe to share between threads."""

    def __init__(
        self, *, annotators: Sequence[str], controls: Mapping[str, ControlState], committee: Committee | None, dim: int,
        config: LadderConfig, learned: NDArray[np.int64] | None = None, begun: Mapping[str, int] | None = None,
        seen: Seen | None = None,
    ) -> None:
        """`committee` None: no network, no control and no `dim`, as where a project asks for orders alone, which are
        learned elsewhere. `learned` (P,): the training votes of each annotator when the network last went through all
        units; `begun`: those of each control when it was last trained from nothing, empty where unknown; `seen`: what
        it was trained with, None where unknown."""
        self.annotators = tuple(annotators)
        self.controls = dict(controls)
        self._committee = committee
        self.dim = dim
        self.config = config
        self.learned = np.zeros(len(self.annotators), np.int64) if learned is None else learned
        self.begun = dict(begun or {})
        self.seen = seen
        self._index = {name: index for index, name in enumerate(self.annotators)}

    def having(self, controls: Mapping[str, ControlState]) -> Ladder:
        """The same ladder with other states of its controls."""
        return Ladder(
            annotators=self.annotators, controls=controls, committee=self._committee, dim=self.dim, config=self.config,
            learned=self.learned, begun=self.begun, seen=self.seen,
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

    def rungs(self, control: str) -> tuple[str, ...]:
        """The rungs that speak about a control."""
        gaps = self.controls[control].gaps
        if gaps is None:
            return RUNGS
        return RUNGS + tuple(rung for rung in GAP_RUNGS if rung != "factors" or gaps.factors is not None)

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
            votes = [{name: self._given(name, units[part], each) for name in self.controls} for each in situations]
            read = self.features(tokens[part], None if texts is None else texts[part])
            scores = self._rung_scores(tokens[part], votes[-1], read)
            for found, theirs, given in zip(parts, votes, situations, strict=True):
                for name, state in self.controls.items():
                    rungs = scores[name]
                    if given is None and "conditioned" in rungs:
                        rungs = rungs | {"conditioned": rungs["network"]}
                    answers = state.answer(rungs, theirs[name])
                    panel = None if among is None else self._given(name, units[part], among).has[:, : len(state.panel)]
                    agreed = answers.consensus(self.config.consensus_samples, panel) if consensus else None
                    made = answers.prediction(annotators, self._index, agreed)
                    if newcomers:
                        made = moved(made, name, newcomers, annotators, units[part], self._rows(answers.scores),
                                     content_of(state.pooled, read))
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

    def _rung_scores(
        self, tokens: Sequence[Tokens], votes: Mapping[str, GivenVotes], features: NDArray[np.float32]
    ) -> dict[str, dict[str, Floats]]:
        """control -> rung -> scores (B, P + 1, C); all but those of `others` and `factors`. `features` (B, F)."""
        given = {name: _columns(item) for name, item in votes.items() if item.has.any()}
        alone, conditioned = self.committee.scores_given(tokens, given)
        found = {}
        for name, state in self.controls.items():
            found[name] = {
                "prior": np.broadcast_to(to_scores(state.space, state.prior), (len(tokens), *state.prior.shape)),
                "pooled": state.pooled.scores(features),
                "network": alone[name],
            }
            if state.gaps is not None:
                found[name]["conditioned"] = conditioned[name]
        return found

    def features(self, tokens: Sequence[Tokens], texts: Sequence[str] | None = None) -> NDArray[np.float32]:
        """What the pooled rungs read, (B, F)."""
        means = mean_tokens(tokens, self.dim)
        reads = any(state.pooled.own is not None for state in self.controls.values())
        return with_surface(means, texts) if reads else means

    def _given(self, control: str, units: Sequence[str], given: Votes | None) -> GivenVotes:
        space = self.controls[control].space
        if given is None:
            return no_votes(len(units), len(self.annotators), len(space.classes))
        return given_votes(given, control, space, units, self._index, self.config.echo_weight)

    def save(self, folder: Path) -> None:
        """Write a checkpoint. Raises CheckpointError."""
        network = {} if self._committee is None else self._committee.arrays()
        arrays: checkpoint.Arrays = {f"network.{name}": array for name, array in network.items()}
        arrays |= {} if self.seen is None else self.seen.arrays()
        controls = []
        for index, (name, state) in enumerate(self.controls.items()):
            arrays |= {f"control.{index}.{key}": array for key, array in _arrays(state).items()}
            controls.append({
                "name": name, "kind": str(state.space.kind), "classes": list(state.space.classes),
                "weights": state.stack.weights, "temperature": state.stack.temperature, "spread": state.spread,
                "penalty": state.pooled.penalty,
                **({} if state.gaps is None else {"gaps": _gaps_meta(state.gaps)}), **_space_meta(state.space),
                **({} if state.calibration is None else {"calibration": astuple(state.calibration)}),
            })
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
            controls = {item["name"]: _control(arrays, index, item) for index, item in enumerate(meta["controls"])}
            config = LadderConfig.from_json(meta["config"])
            if "network.labels.embed" not in arrays:  # from before networks read votes
                config = replace(config, network=replace(config.network, labels=False))
            committee = None if not (controls or meta["members"]) else Committee.from_arrays(
                {name.removeprefix("network."): a for name, a in arrays.items() if name.startswith("network.")},
                members=meta["members"], annotators=len(meta["annotators"]), dim=meta["dim"], config=config.network,
                spaces={name: state.space for name, state in controls.items()}, device=device,
            )
            return cls(
                annotators=meta["annotators"], controls=controls, committee=committee, dim=meta["dim"], config=config,
                learned=np.array(meta.get("learned", [0] * len(meta["annotators"])), np.int64),
                begun=meta.get("begun"), seen=seen_from_arrays(arrays, [item["name"] for item in meta["controls"]]),
            )
        except (KeyError, TypeError, RuntimeError) as error:
            raise CheckpointError(f"the checkpoint {Path(folder).name} lacks a part that a ladder needs") from error


def _columns(votes: GivenVotes) -> GivenColumns:
    """Given votes as label tokens see them; all unknown givers are the generic query."""
    unit, person = np.nonzero(votes.has)
    known = votes.has.shape[1] - len(votes.strangers)
    return GivenColumns(
        row=unit, giver=np.minimum(person, known), y=votes.y[unit, person], trust=votes.weight[unit, person]
    )


def _concatenate(parts: Sequence[ControlPrediction]) -> ControlPrediction:
    return ControlPrediction(
        served=np.concatenate([part.served for part in parts]),
        network=np.concatenate([part.network for part in parts]),
        rungs={rung: np.concatenate([part.rungs[rung] for part in parts]) for rung in parts[0].rungs},
        consensus=np.concatenate([part.consensus for part in parts]),
    )


def _arrays(state: ControlState) -> checkpoint.Arrays:
    gaps = {} if state.gaps is None else {
        "gaps.prior": state.gaps.latent.prior, "gaps.confusion": state.gaps.latent.confusion,
        "gaps.few": state.gaps.few.bias, "gaps.many": state.gaps.many.bias,
        **({} if state.gaps.factors is None else {"gaps.factors": state.gaps.factors.weight}),
        **({} if state.gaps.share is None else {"gaps.share": state.gaps.share}),
    }
    own = {} if state.pooled.own is None else {"pooled.own": state.pooled.own}
    people = {} if state.people is None else {
        "people.basis": state.people.basis, "people.weight": state.people.weight,
    }
    floor = {} if state.floor is None else {f"floor.{key}": getattr(state.floor, key) for key in Floor.__slots__}
    return gaps | own | people | floor | {
        "prior": state.prior, "bias": state.stack.bias, "panel": state.panel, "pooled.centre": state.pooled.centre,
        "pooled.scale": state.pooled.scale, "pooled.weight": state.pooled.weight, "pooled.bias": state.pooled.bias,
    }


def _control(arrays: checkpoint.Arrays, index: int, item: Mapping[str, Any]) -> ControlState:
    part = {name: arrays[f"control.{index}.{name}"] for name in _ARRAYS}
    space = _space(item)
    return ControlState(
        space=space,
        gaps=_gaps(arrays, index, space, item["gaps"]) if "gaps" in item else None,
        prior=part["prior"],
        pooled=Pooled(
            centre=part["pooled.centre"], scale=part["pooled.scale"], weight=part["pooled.weight"],
            bias=part["pooled.bias"], penalty=float(item.get("penalty", 0.0)),
            own=arrays.get(f"control.{index}.pooled.own"),
        ),
        stack=Stack(weights=item["weights"], temperature=item["temperature"], bias=part["bias"]),
        panel=part["panel"],
        floor=Floor(**{key: arrays[f"control.{index}.floor.{key}"] for key in Floor.__slots__})
        if f"control.{index}.floor.share" in arrays else None,
        spread=item["spread"],
        people=_people(arrays, index),
        calibration=Calibration(*item["calibration"]) if "calibration" in item else None,
    )


def _people(arrays: checkpoint.Arrays, index: int) -> People | None:
    names = [f"control.{index}.people.{part}" for part in ("basis", "weight")]
    return People(basis=arrays[names[0]], weight=arrays[names[1]]) if names[0] in arrays else None


def _space_meta(space: Space) -> dict[str, Any]:
    """What a space is beyond its classes; nothing for plain ones, as in checkpoints from before there were others."""
    if isinstance(space, NumberBins):
        return {"bins": to_json(space)}
    return {"ordered": True} if isinstance(space, SingleChoice) and space.ordered else {}


def _space(item: Mapping[str, Any]) -> Space:
    if "bins" in item:
        return from_json(item["bins"])
    classes = tuple(item["classes"])
    if item["kind"] == ValueKind.CLASS:
        return SingleChoice(classes, ordered=item.get("ordered") is True)
    return MultipleChoice(classes)


def _gaps_meta(gaps: Gaps) -> dict[str, Any]:
    stacks = {"few": gaps.few, "many": gaps.many}
    return {
        "spread": gaps.spread,
        **{name: {"weights": stack.weights, "temperature": stack.temperature} for name, stack in stacks.items()},
    }


def _gaps(arrays: checkpoint.Arrays, index: int, space: Space, item: Mapping[str, Any]) -> Gaps:
    part = {name: arrays[f"control.{index}.gaps.{name}"] for name in ("prior", "confusion", "few", "many")}
    factors = f"control.{index}.gaps.factors"
    few, many = (
        Stack(weights=item[name]["weights"], temperature=item[name]["temperature"], bias=part[name])
        for name in ("few", "many")
    )
    return Gaps(
        latent=LatentClasses(space=space, prior=part["prior"], confusion=part["confusion"]), few=few, many=many,
        spread=item["spread"],
        factors=Factors(space=space, weight=arrays[factors]) if factors in arrays else None,
        share=arrays.get(f"control.{index}.gaps.share"),
    )


_ARRAYS = ("prior", "bias", "panel", "pooled.centre", "pooled.scale", "pooled.weight", "pooled.bias")
