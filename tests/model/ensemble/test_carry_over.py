from dataclasses import replace

import numpy as np

from model.data.spaces import SingleChoice
from model.ensemble.carry_over import carry_over
from model.ensemble.ladder import Ladder


def test_somebody_new_is_answered_for_as_somebody_unknown_was(fitted):
    state = fitted.ladder.controls["label"]
    found = carry_over({"label": state}, {"label": state.space}, 6)["label"]
    tables = [
        (state.pooled.bias, found.pooled.bias), (state.stack.bias, found.stack.bias),
        (state.gaps.few.bias, found.gaps.few.bias), (state.gaps.many.bias, found.gaps.many.bias),
        (state.base_models["factors"].weight, found.base_models["factors"].weight),
        (state.prior, found.prior), (state.base_models["others"].confusion, found.base_models["others"].confusion),
    ]
    for before, after in tables:
        assert len(after) == 7
        np.testing.assert_array_equal(after[:4], before[:4])
        np.testing.assert_array_equal(after[4:], np.repeat(before[-1:], 3, 0))
    assert found.stack.weights == state.stack.weights and found.panel_noise == state.panel_noise


def test_what_does_not_fit_any_more_is_not_carried_over(fitted):
    state = fitted.ladder.controls["label"]
    assert not carry_over({"label": state}, {"label": SingleChoice(("no", "yes"))}, 4)
    assert not carry_over({"label": state}, {"label": replace(state.space, ordered=True)}, 4)
    assert not carry_over({"label": state}, {"other": state.space}, 4)
    for lacking in (
        replace(state, gaps=None),
        replace(state, base_models={name: each for name, each in state.base_models.items() if name != "factors"}),
        replace(state, base_models={**state.base_models, "pooled": replace(state.pooled, penalty=0.0)}),
    ):
        assert not carry_over({"label": lacking}, {"label": state.space}, 4)


def test_a_loaded_ladder_can_be_carried_over(fitted, tmp_path):
    fitted.ladder.save(tmp_path / "r1")
    state = Ladder.load(tmp_path / "r1").controls["label"]
    assert state.pooled.penalty == fitted.figures["controls"]["label"]["pooled_penalty"] > 0.0
    assert carry_over({"label": state}, {"label": state.space}, 4)
