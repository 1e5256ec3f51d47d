"""The stop rule, against every possible outcome of small panels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from model.acquisition.base import AcquisitionError, Situation
from model.acquisition.stop import _reaches, _reaches_about, finished
from tests.model.acquisition.situations import made_up


def panel(given, p, consensus=None):
    given = np.array(given)
    classes = np.shape(p)[-1]
    sure = np.stack([(given == k).sum(axis=1) for k in range(classes)], axis=1).argmax(axis=1)
    return Situation(probabilities=np.broadcast_to(p, (*given.shape, classes)), given=given,
                     consensus=np.eye(classes)[sure] if consensus is None else consensus)


def enumerated(given, p):
    """P(another class gets level with the top one or ahead of it), from all outcomes of the votes to come."""
    counts = np.bincount(given[given >= 0], minlength=p.shape[1])
    top, rows, total = counts.argmax(), p[given < 0], 0.0
    for votes in product(range(p.shape[1]), repeat=len(rows)):
        after = counts + np.bincount(votes, minlength=len(counts)).astype(int)
        if np.delete(after, top).max() >= after[top]:
            total += np.prod(rows[np.arange(len(votes)), list(votes)])
    return total


@pytest.mark.parametrize("classes", [2, 3])
def test_probability_of_a_change(classes):
    situation = made_up(units=40, people=6, classes=classes, gaps=0.6, seed=7,
                        consensus=np.full((40, classes), 1 / classes))
    voted = (situation.given >= 0).any(axis=1)
    counts = np.stack([(situation.given == k).sum(axis=1) for k in range(classes)], axis=1)
    sure = np.eye(classes)[counts.argmax(axis=1)]
    flip = finished(Situation(probabilities=situation.probabilities, given=situation.given, consensus=sure)).flip
    wanted = [enumerated(given, p) for given, p in zip(situation.given, situation.probabilities, strict=True)]
    for unit in np.flatnonzero(voted & situation.open.any(axis=1)):
        if classes == 2:
            assert flip[unit] == pytest.approx(wanted[unit])
        else:
            assert wanted[unit] - 1e-9 <= flip[unit] <= min(1.0, 2 * wanted[unit] + 1e-9)


def test_never_done_where_the_majority_changes_for_sure():
    done = finished(panel([[0, -1, -1, -1], [0, 0, -1, -1]], [0.0, 1.0]), threshold=0.5)
    assert done.done.tolist() == [False, False]  # overtaken; drawn level
    assert done.flip.tolist() == [1.0, 1.0] and done.votes_saved == 0


def test_done_where_the_votes_to_come_cannot_change_anything():
    done = finished(panel([[0, 0, 0, -1, -1]], [0.0, 1.0], consensus=np.full((1, 2), 0.5)), threshold=0.0)
    assert done.done.tolist() == [True] and done.flip[0] == 0.0 and done.votes_saved == 2


def test_no_votes_yet_and_no_gaps_left():
    done = finished(panel([[-1, -1], [0, 1]], [1.0, 0.0]), threshold=0.9)
    assert done.done.tolist() == [False, True] and done.saved.tolist() == [0, 0]


def test_a_doubtful_consensus_keeps_a_task_open():
    """Errors are shared: votes that look independent and sure do not overrule what the consensus says."""
    given, p = [[0, -1, -1]], [0.99, 0.01]
    assert finished(panel(given, p)).done[0]
    assert not finished(panel(given, p, consensus=np.array([[0.8, 0.2]]))).done[0]


def test_votes_a_task_gets_at_most():
    situation = panel([[0, 0, -1, -1, -1, -1]], [0.5, 0.5])
    assert not finished(situation).done[0]
    assert finished(situation, votes_per_unit=3).saved.tolist() == [1]
    assert finished(situation, votes_per_unit=2).saved.tolist() == [0]


def test_many_votes_to_come_are_taken_as_normal():
    """Within a percent of the exact distribution where that can still be computed."""
    rng = np.random.default_rng(2)
    p = rng.dirichlet([3.0, 2.5, 1.0], 64)
    ahead = np.array([1, 5, 12])
    up, down = (np.tile(p[:, column], (3, 1)) for column in (1, 0))
    np.testing.assert_allclose(_reaches_about(up, down, ahead), _reaches(up, down, ahead), atol=0.01)
    panel_of = [[0] * 6 + [-1] * votes for votes in (64, 65)]  # either side of where it changes
    flips = [finished(panel([row], [0.45, 0.55])).flip[0] for row in panel_of]
    assert flips[0] == pytest.approx(flips[1], abs=0.05)


def test_many_tasks_at_once_are_what_each_is_alone():
    large = made_up(units=50, people=9, gaps=0.6, seed=3)
    whole = finished(large, votes_per_unit=6)
    for unit in range(50):
        row = slice(unit, unit + 1)
        alone = finished(Situation(probabilities=large.probabilities[row], given=large.given[row],
                                   consensus=large.consensus[row]), votes_per_unit=6)
        assert alone.flip[0] == pytest.approx(whole.flip[unit]) and alone.possible[0] == whole.possible[unit]


def test_votes_of_people_outside_the_panel_count():
    """They lead, against what the panel said; they are enough where the panel said nothing."""
    situation = panel([[0, 0, -1], [-1, -1, -1]], [0.5, 0.5], consensus=np.array([[0.3, 0.7], [0.0, 1.0]]))
    alone = finished(situation)
    assert alone.done.tolist() == [True, False]
    everybody = finished(situation, counts=np.array([[2, 3], [0, 20]]))
    assert everybody.done.tolist() == [False, True] and everybody.saved.tolist() == [0, 3]
    mine = np.array([[2, 0], [0, 0]])
    assert finished(situation, counts=mine).flip.tolist() == alone.flip.tolist()
    with pytest.raises(AcquisitionError, match="unit and class"):
        finished(situation, counts=mine[:1])


def test_one_class():
    assert finished(panel([[0, -1]], [1.0])).done[0]


def test_threshold_is_a_probability():
    with pytest.raises(AcquisitionError):
        finished(made_up(), threshold=1.5)
