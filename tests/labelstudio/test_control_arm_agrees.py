"""The two copies of the control arm (Label Studio's process, Polyvox's process) are one function."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.labeling.control_arm import in_control_arm as of_backend
from labelstudio.control_arm import in_control_arm as of_middleware

ids = st.integers(min_value=1, max_value=2**40)
percents = st.one_of(st.sampled_from([0.0, 0.004, 0.005, 0.015, 10.0, 99.995, 100.0]), st.floats(0, 100))


@given(ids, ids, st.one_of(ids.map(str), st.text(max_size=8)), percents)
def test_both_copies_say_the_same(project_id: int, task_id: int, annotator: str, percent: float) -> None:
    expected = of_backend(project_id, task_id, annotator, percent)
    assert of_middleware(project_id, task_id, annotator, percent) is expected


@pytest.mark.parametrize("percent", [0.5, 10.0, 50.0])
def test_the_arm_has_its_size_and_smaller_arms_lie_inside_larger_ones(percent: float) -> None:
    pairs = [(task, str(annotator)) for task in range(2000) for annotator in range(5)]
    arm = {pair for pair in pairs if of_middleware(7, pair[0], pair[1], percent)}
    share = 100 * len(arm) / len(pairs)
    assert abs(share - percent) < 4 * (percent * (100 - percent) / len(pairs)) ** 0.5, share
    assert arm <= {pair for pair in pairs if of_middleware(7, pair[0], pair[1], min(100.0, 2 * percent))}


def test_known_assignments_never_change() -> None:
    """Frozen: a project keeps its arm for ever, whatever is refactored."""
    arm = [task for task in range(100) if of_middleware(1, task, "5", 10.0)]
    assert arm == KNOWN_ARM


def test_the_borders_are_nobody_and_everybody() -> None:
    assert not any(of_middleware(1, task, "1", 0.0) for task in range(500))
    assert all(of_middleware(1, task, "1", 100.0) for task in range(500))


KNOWN_ARM = [5, 6, 26, 27, 32, 39, 52, 60, 73]
