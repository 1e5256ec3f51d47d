"""Whoever comes first: annotators in another order are answered in that order, by all base models and as served."""

from dataclasses import replace

import numpy as np
import pytest

from model.base_models.factors import BLOCKS
from model.ensemble.ladder import Ladder
from model.qumab.committee import Committee

ROWS = {"prior": "table", "pooled": "bias", "others": "confusion", "factors": "weight"}  # by annotator
OF_PEOPLE = ("deviation", "heads.own", "heads.own_bias")  # arrays of the network with a row for each annotator


@pytest.fixture(scope="module")
def ladder(fitted):
    """One whose consensus hardly depends on the draws."""
    some = fitted.ladder
    return Ladder(
        annotators=some.annotators, controls=some.controls, committee=some.committee, dim=some.dim,
        config=replace(some.config, consensus_samples=8192),
    )


@pytest.fixture(scope="module")
def turned(ladder):
    """The same ladder with its annotators in another order."""
    order = [2, 0, 3, 1]
    rows = [*order, len(order)]  # what has a row for somebody unknown keeps it last
    state = ladder.controls["label"]
    gaps = state.gaps
    few, many = (replace(stack, bias=stack.bias[rows]) for stack in (gaps.few, gaps.many))
    state = replace(
        state, base_models={**state.base_models, **{
            name: replace(fitted, **{part: getattr(fitted, part)[rows]}) for name, part in ROWS.items()
            for fitted in (state.base_models[name],)
        }},
        stack=replace(state.stack, bias=state.stack.bias[rows]), panel=state.panel[order], floor=replace(
            state.floor, share=state.floor.share[rows], own=state.floor.own[rows],
            frequencies=state.floor.frequencies[rows]),
        gaps=replace(
            gaps, few=few, many=many, share=gaps.share[rows]),
    )
    arrays = ladder.committee.arrays()
    for name in OF_PEOPLE:
        arrays[name] = arrays[name][:, order if arrays[name].shape[1] == len(order) else rows]
    committee = Committee.from_arrays(
        arrays, members=ladder.committee.network.members, annotators=len(order), dim=ladder.dim,
        config=ladder.config.network, spaces=ladder.spaces,
    )
    state = replace(state, base_models={**state.base_models, **{
        name: replace(state.base_models[name], committee=committee) for name in ("network", "conditioned")}})
    return Ladder(
        annotators=[ladder.annotators[at] for at in order], controls={"label": state}, committee=committee,
        dim=ladder.dim, config=ladder.config,
    )


@pytest.mark.parametrize("with_votes", [False, True])
def test_annotators_in_another_order_are_answered_alike(ladder, turned, simulated, with_votes):
    assert len(turned.annotators) <= BLOCKS  # more share blocks, so that their order matters a little
    units, names = ["t1", "t2", "t3"], [*ladder.annotators, "a stranger"]
    tokens = [simulated.tokens[unit] for unit in units]
    some = np.array([unit in units for unit in simulated.votes.units])[simulated.votes.unit]
    given = simulated.votes.select(some & (np.arange(len(some)) % 3 > 0)) if with_votes else None
    first, second = (each.predict(tokens, names, units=units, given=given)["label"] for each in (ladder, turned))
    for name, p in first.base_models.items():
        np.testing.assert_allclose(second.base_models[name], p, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(second.served, first.served, atol=1e-5)
    np.testing.assert_allclose(second.consensus, first.consensus, atol=0.02)  # other draws for each
    assert np.abs(first.served[:, 0] - first.served[:, 1]).max() > 0.05
