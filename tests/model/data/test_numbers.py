import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.data.metrics import ordered_errors
from model.data.numbers import BINS, NumberBins, from_json, kept, number_bins, to_json
from model.data.spaces import SingleChoice, Value
from model.errors import ModelError

NUMBERS = st.dictionaries(
    st.floats(-1e6, 1e6).map(Value.of_number), st.integers(1, 5), min_size=1, max_size=60
)


def counted(*numbers: float) -> dict[Value, int]:
    return {Value.of_number(number): numbers.count(number) for number in numbers}


@settings(derandomize=True, max_examples=100)
@given(NUMBERS)
def test_every_number_has_a_bin_and_comes_back_from_within_it(votes):
    space = number_bins(votes)
    assert len(set(space.classes)) == len(space.classes) <= BINS
    for value in votes:
        row = space.encode(value)
        (at,) = np.flatnonzero(row)
        assert space.contains(value) and space.low[at] <= value.data <= space.high[at]
        assert np.array_equal(space.encode(space.decode(row)), row)
    assert from_json(to_json(space)) == space


@settings(derandomize=True, max_examples=50)
@given(NUMBERS)
def test_single_valued_bins_give_their_number_back_as_it_was(votes):
    space = number_bins(votes)
    for value in votes:
        at = int(space.encode(value).argmax())
        if space.low[at] == space.high[at]:
            assert space.decode(space.encode(value)) == value


def test_a_declared_range_of_few_steps_needs_no_votes():
    space = number_bins({}, least=0.0, most=1.0, step=0.25)
    assert space.classes == ("0", "0.25", "0.5", "0.75", "1") and space.ordered
    for number in (0.0, 0.25, 0.5, 0.75, 1.0):
        assert space.decode(space.encode(Value.of_number(number))) == Value.of_number(number)
    assert space.encode(Value.of_number(0.3)).argmax() == 1  # off the steps: the nearest


def test_without_limits_and_votes_nothing_is_known():
    assert number_bins({}) is None
    assert number_bins(counted(-5.0), least=0.0) is None


@pytest.mark.parametrize("number", [11.0, -0.1, math.inf, -math.inf, math.nan])
def test_numbers_out_of_range_are_outside_and_said_so(number):
    space = number_bins(counted(1.0, 2.0), least=0.0, most=10.0)
    assert not space.contains(Value.of_number(number))
    with pytest.raises(ModelError, match="no number from 0 to 10"):
        space.encode(Value.of_number(number))


def test_bins_hold_about_equally_many_votes():
    rng = np.random.default_rng(0)
    votes = counted(*np.exp(rng.standard_normal(2400)).tolist())
    space = number_bins(votes)
    share = np.bincount([int(space.encode(value).argmax()) for value in votes]) / len(votes)
    assert len(share) == BINS and share.min() > 0.5 / BINS and share.max() < 2.0 / BINS


def test_the_prediction_is_the_median_with_a_central_interval():
    space = number_bins(counted(*map(float, range(1, 11))))
    p = np.array([[0.05, 0.05, 0.1, 0.2, 0.2, 0.2, 0.1, 0.05, 0.03, 0.02]])
    assert space.decode(p[0]) == Value.of_number(5.0)
    low, high = space.interval(p)
    assert (low[0], high[0]) == (2.0, 7.0)  # a tenth lies at 2 or below, nine tenths at 7 or below
    assert space.quantiles(np.zeros((0, 10)), 0.5).shape == (0,)


def test_predictions_keep_to_the_step():
    space = number_bins(counted(*(float(x) for x in range(0, 1000, 5))), least=0.0, most=1000.0, step=5.0)
    p = np.random.default_rng(1).dirichlet(np.ones(len(space.classes)), 50)
    assert np.all(space.quantiles(p, 0.5) % 5.0 == 0.0)


def test_bins_are_kept_while_they_tell_votes_apart():
    rng = np.random.default_rng(0)
    first = counted(*rng.normal(50.0, 10.0, 400).tolist())
    old = number_bins(first)
    more = {**first, **counted(*rng.normal(50.0, 10.0, 100).clip(min(old.low), max(old.high)).tolist())}
    assert number_bins(more) != old and kept(number_bins(more), to_json(old), more) == old
    moved = {**first, **counted(*rng.normal(80.0, 2.0, 4000).tolist())}
    assert kept(number_bins(moved), to_json(old), moved) == number_bins(moved)
    limited = number_bins(first, least=0.0)
    assert kept(limited, to_json(old), first) == limited
    assert kept(old, None, first) is old


def test_stored_bins_that_do_not_fit_together_are_refused():
    damaged = {**to_json(number_bins(counted(1.0, 2.0, 3.0))), "low": [1.0]}
    with pytest.raises(ModelError, match="do not fit together"):
        from_json(damaged)


def test_errors_of_ordered_classes_and_of_numbers_have_their_own_units():
    stars = SingleChoice(("1", "2", "3"), ordered=True)
    p, y = np.array([[0.4, 0.2, 0.4], [0.9, 0.1, 0.0]]), np.array([[1, 0, 0], [0, 0, 1]])
    assert ordered_errors(stars, p, y).tolist() == [1.0, 2.0]  # the medians are 2 and 1
    tens = number_bins(counted(10.0, 20.0, 30.0))
    assert isinstance(tens, NumberBins) and ordered_errors(tens, p, y).tolist() == [10.0, 20.0]
