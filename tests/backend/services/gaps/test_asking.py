"""What is done, told from everybody's votes and not from those of the panel alone."""

import numpy as np
import pytest

from backend.services.gaps.asking import Table, done
from model.data.spaces import MultipleChoice, SingleChoice

CLASSES = ("A", "B")


def table(space, *, panel, outside, consensus):
    """One task. `panel`: a row of classes of each annotator who may be asked, None where they have not voted;
    `outside`: how often others chose each class, and how many they are."""
    counts, others = outside
    has = np.array([[each is not None for each in panel]])
    y = np.array([[each or (0, 0) for each in panel]], np.float32)
    return Table(
        space=space, task=np.array([1]), served=np.full((1, len(panel), 2), 0.5, np.float32), has=has, y=y,
        consensus=np.array([consensus]), votes=has.sum(1) + others,
        counts=y.sum(1).astype(np.int64) + np.array(counts),
    )


@pytest.mark.parametrize(("panel", "outside", "consensus", "found"), [
    ([(1, 0), (1, 0), None], ([0, 3], 3), [0.3, 0.7], (0, 0)),  # outsiders turned it
    ([None, None, None], ([0, 20], 20), [0.0, 1.0], (1, 3)),  # nobody of the panel voted, and nobody has to
    ([(1, 0), (1, 0), None], ([0, 0], 0), [0.5, 0.5], (1, 1)),  # the panel alone
    ([None, None, None], ([0, 0], 0), [0.0, 1.0], (0, 0)),
])
def test_everybody_counts(panel, outside, consensus, found):
    assert done(table(SingleChoice(CLASSES), panel=panel, outside=outside, consensus=consensus)) == found


@pytest.mark.parametrize(("panel", "outside", "consensus", "found"), [
    ([(1, 0), (1, 0), None], ([0, 0], 3), [0.3, 0.0], (0, 0)),  # three outsiders did not choose A
    ([None, None, None], ([20, 0], 20), [1.0, 0.0], (1, 3)),
])
def test_everybody_counts_where_several_are_chosen(panel, outside, consensus, found):
    assert done(table(MultipleChoice(CLASSES), panel=panel, outside=outside, consensus=consensus)) == found
