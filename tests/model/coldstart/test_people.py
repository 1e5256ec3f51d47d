"""What each annotator makes of content, linear: enough to tell whom somebody is like."""

import numpy as np
import pytest

from model.coldstart.adapting import content_of, stand_in
from model.coldstart.people import FEWEST, fit_people
from model.data.dataset import Targets
from model.data.spaces import MultipleChoice, SingleChoice
from model.ensemble.ladder import Ladder


def _targets(space, unit, annotator, y):
    n = len(unit)
    return Targets(space=space, unit=unit, annotator=annotator, y=y.astype(np.float32),
                   weight=np.ones(n, np.float32), scored=np.ones(n, bool))


@pytest.mark.parametrize("space", [SingleChoice(("a", "b", "c")), SingleChoice(("a", "b")), MultipleChoice(("a", "b"))])
def test_opposite_readers_of_one_trait_are_told_apart(space):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 10))
    x /= np.sqrt(10)
    unit, annotator = np.tile(np.arange(150), 2), np.repeat([0, 1], 150)
    high = (x[unit, 0] > 0) == (annotator == 0)
    y = np.stack([high, ~high, np.zeros_like(high)][: len(space.classes)], 1)
    few = np.arange(FEWEST - 1)
    y, unit, annotator = np.concatenate([y, y[few]]), np.append(unit, few), np.append(annotator, np.full(len(few), 2))
    people = fit_people(space, x, _targets(space, unit, annotator, y), np.zeros((len(unit), len(space.classes))), 3)
    found = people.scores(x[150:])
    assert found.shape == (50, 4, len(space.classes))
    lead = found[:, :2, 0] - found[:, :2, 1]
    right = (lead > 0) == np.stack([x[150:, 0] > 0, x[150:, 0] < 0], 1)
    assert right.mean(0).min() > 0.9
    assert not found[:, 2:].any()  # of few votes, and of nobody, nothing is said


def test_a_ladder_keeps_what_newcomers_are_compared_with(fitted, simulated, tmp_path):
    ladder = fitted.ladder
    ladder.save(tmp_path / "r1")
    again = Ladder.load(tmp_path / "r1")
    features = ladder.features([simulated.tokens[f"t{u}"] for u in range(9)])
    first, second = (stand_in(each.controls["label"], features) for each in (ladder, again))
    np.testing.assert_array_equal(first, second)
    state = ladder.controls["label"]
    assert np.abs(first - state.pooled.of_units(features)).max() > 0.1
    assert np.square(content_of(state.pooled, features)).sum(1).mean() == pytest.approx(1.0, abs=0.5)
