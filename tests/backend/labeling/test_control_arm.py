import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.labeling import in_control_arm, task_in_control_arm

ids = st.integers(1, 10**9)


def test_pinned_pairs_never_move():
    """Pairs that were in the arm when it was first made; changing the function would change past scores."""
    arm = [(task, who) for task in range(1, 12) for who in "567" if in_control_arm(1, task, who, 10)]
    assert arm == [(5, "5"), (6, "5"), (6, "7"), (8, "6")]
    assert [task for task in range(1, 60) if task_in_control_arm(1, task, 10)] == [3, 25, 31, 42, 47, 49, 53, 58]


@settings(derandomize=True)
@given(ids, ids, ids.map(str))
def test_none_at_0_all_at_100_and_smaller_arms_lie_within_larger(project, task, annotator):
    assert not in_control_arm(project, task, annotator, 0)
    assert in_control_arm(project, task, annotator, 100)
    sizes = [in_control_arm(project, task, annotator, percent) for percent in (0.5, 5, 10, 12.34, 50, 99.99)]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize("percent", [0.5, 10, 33.33, 90])
def test_the_share_is_the_percentage(percent):
    n = 20_000
    inside = sum(in_control_arm(3, task, str(task % 7), percent) for task in range(n))
    share = percent / 100
    assert abs(inside / n - share) < 4 * (share * (1 - share) / n) ** 0.5


def test_each_part_of_the_pair_counts():
    def arm(project=1, annotator="1"):
        return [in_control_arm(project, task, annotator, 50) for task in range(200)]

    assert arm() == arm() and arm() != arm(project=2) and arm() != arm(annotator="2")
