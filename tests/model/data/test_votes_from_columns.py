"""Votes from columns of codes equal the same votes built one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.data.spaces import Value
from model.data.votes import Vote, Votes
from model.errors import ModelError

VALUES = (Value.of_class("b"), Value.of_number(2.0), Value.of_class("a"), Value.of_classes(["a", "b"]))
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 1), st.integers(0, 3)), min_size=1)


@settings(max_examples=50, deadline=None)
@given(ROWS, st.permutations(["u10", "u2", "é", "x@y"]), st.permutations(["17", "5", "9001"]))
def test_equals_single_votes(rows: list[tuple[int, ...]], units: list[str], annotators: list[str]) -> None:
    u, a, k, v = (np.array(column) for column in zip(*rows, strict=True))
    made = Votes.from_columns(
        units=units, annotators=annotators, values=VALUES, unit=u, annotator=a, value=v, controls=("m", "l"), control=k,
        time=np.arange(len(rows)) * 1.0)
    single = Votes.from_votes([
        Vote(unit=units[row[0]], annotator=annotators[row[1]], control=("m", "l")[row[2]], value=VALUES[row[3]],
             time=float(i)) for i, row in enumerate(rows)])

    def named(votes: Votes) -> list[tuple[object, ...]]:
        return [(votes.units[votes.unit[i]], votes.annotators[votes.annotator[i]], votes.controls[votes.control[i]],
                 votes.values[votes.value[i]], votes.time[i], votes.weight[i], votes.provenance[i], votes.scored[i])
                for i in range(len(votes))]

    assert named(made) == named(single)
    assert made.units == tuple(sorted(units)) and set(single.units) <= set(made.units)  # those without votes stay


def test_constant_columns_take_no_memory_and_can_be_selected() -> None:
    n = 1000
    votes = Votes.from_columns(units=["u"], annotators=["a"], values=[VALUES[0]], unit=np.zeros(n, np.int32),
                               annotator=np.zeros(n, np.int32), value=np.zeros(n, np.int32))
    assert all(getattr(votes, name).strides == (0,) for name in ("time", "weight", "provenance", "scored", "control"))
    assert len(votes.select(np.arange(n) % 2 == 0)) == 500 and votes.weight.sum() == n


@pytest.mark.parametrize(("units", "unit"), [(["u", "u"], [0]), (["u"], [1]), (["u"], [-1]), ([], [0])])
def test_bad_tables_and_codes_are_refused(units: list[str], unit: list[int]) -> None:
    with pytest.raises(ModelError, match="unit"):
        Votes.from_columns(units=units, annotators=["a"], values=[VALUES[0]], unit=np.array(unit),
                           annotator=np.array([0]), value=np.array([0]))
