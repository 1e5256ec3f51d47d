"""Work of a moment is done together: order, errors, patience. Every test waits for events, none for a clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from backend.services.together import Together, WaitedTooLong

LONG_S = 30.0


class Desk:
    """Doubles numbers; the first call waits until it may go on, and odd numbers can be made to fail."""

    def __init__(self, *, fits: Callable[[Sequence[int], int], bool] = lambda others, work: True) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.calls: list[list[int]] = []
        self.bad: set[int] = set()
        self.together: Together[int, int] = Together(self.compute, fits=fits)
        self.pool = ThreadPoolExecutor(8)

    def compute(self, works: Sequence[int]) -> list[int]:
        self.calls.append(list(works))
        self.begun.set()
        assert self.go_on.wait(LONG_S)
        if self.bad & set(works):
            raise ValueError(f"bad: {sorted(self.bad & set(works))}")
        return [2 * work for work in works]

    def ask(self, work: int, *, lane: str = "r1", seconds: float = LONG_S) -> Future[int]:
        """Begin in a thread; returns when the work waits or is being done."""
        before = self.known()
        future = self.pool.submit(self.together.do, lane, work, seconds=seconds)
        while self.known() == before and not future.done():
            pass
        return future

    def known(self) -> int:
        waiting = sum(len(lane.waiting) for lane in list(self.together._lanes.values()))
        return waiting + sum(len(call) for call in self.calls)


def test_what_waits_meanwhile_is_done_in_one_go() -> None:
    desk = Desk()
    first = desk.ask(1)
    assert desk.begun.wait(LONG_S)
    rest = [desk.ask(work) for work in (2, 3, 4)]
    desk.go_on.set()
    assert [each.result(LONG_S) for each in (first, *rest)] == [2, 4, 6, 8]
    assert desk.calls == [[1], [2, 3, 4]]
    assert desk.together._lanes == {}  # nothing stays of a version that nobody asks


def test_one_bad_piece_of_work_fails_alone() -> None:
    desk = Desk()
    desk.bad = {3}
    first = desk.ask(1)
    assert desk.begun.wait(LONG_S)
    good, bad, other = (desk.ask(work) for work in (2, 3, 4))
    desk.go_on.set()
    assert [first.result(LONG_S), good.result(LONG_S), other.result(LONG_S)] == [2, 4, 8]
    with pytest.raises(ValueError, match=r"bad: \[3\]"):
        bad.result(LONG_S)


def test_what_does_not_fit_comes_next_and_nobody_is_overtaken() -> None:
    desk = Desk(fits=lambda others, work: all(other % 2 == work % 2 for other in others))
    first = desk.ask(10)
    assert desk.begun.wait(LONG_S)
    rest = [desk.ask(work) for work in (1, 2, 3, 4)]
    desk.go_on.set()
    assert [each.result(LONG_S) for each in (first, *rest)] == [20, 2, 4, 6, 8]
    assert desk.calls == [[10], [1, 3], [2, 4]]


def test_who_waits_too_long_leaves_and_the_others_are_answered() -> None:
    desk = Desk()
    first = desk.ask(1)
    assert desk.begun.wait(LONG_S)
    with pytest.raises(WaitedTooLong):
        desk.together.do("r1", 2, seconds=0.0)
    late = desk.ask(3)
    desk.go_on.set()
    assert (first.result(LONG_S), late.result(LONG_S)) == (2, 6)
    assert desk.calls == [[1], [3]]


def test_versions_do_not_wait_for_each_other() -> None:
    desk = Desk()
    first = desk.ask(1)
    assert desk.begun.wait(LONG_S)
    other = desk.ask(2, lane="r2")
    while len(desk.calls) < 2:  # it is begun while the first one still stands
        assert not first.done()
    desk.go_on.set()
    assert (first.result(LONG_S), other.result(LONG_S)) == (2, 4)


def test_a_thread_that_is_broken_off_leaves_nobody_waiting() -> None:
    begun, go_on, calls = threading.Event(), threading.Event(), []

    def compute(works: Sequence[int]) -> list[int]:
        calls.append(list(works))
        begun.set()
        assert go_on.wait(LONG_S)
        if len(works) > 1:
            raise SystemExit
        return list(works)

    together: Together[int, int] = Together(compute, fits=lambda others, work: True)
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(together.do, "r1", 1, seconds=LONG_S)]
        assert begun.wait(LONG_S)
        futures += [pool.submit(together.do, "r1", work, seconds=LONG_S) for work in (2, 3)]
        while sum(len(lane.waiting) for lane in list(together._lanes.values())) < 2:
            pass
        go_on.set()
        assert futures[0].result(LONG_S) == 1
        errors = {type(each.exception(LONG_S)) for each in futures[1:]}
    assert errors == {SystemExit, RuntimeError}
    assert together.do("r1", 9, seconds=1.0) == 9
