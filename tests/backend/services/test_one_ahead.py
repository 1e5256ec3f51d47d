"""Calls under way while the next one is prepared."""

from __future__ import annotations

import threading

import pytest

from backend.services.one_ahead import OneAhead


def test_a_call_runs_while_the_next_one_is_prepared() -> None:
    said, go = [], threading.Event()
    with OneAhead() as sending:
        assert sending.free
        sending.start(lambda: go.wait(10), lambda: said.append("first"))
        assert not sending.free and said == []
        go.set()
        sending.start(lambda: said.append("second"), lambda: said.append("second is done"))
        assert said[0] == "first"
    assert said == ["first", "second", "second is done"]


def test_what_comes_then_is_done_in_the_thread_of_the_user() -> None:
    threads = []
    with OneAhead() as sending:
        sending.start(lambda: threads.append(threading.get_ident()), lambda: threads.append(threading.get_ident()))
    assert threads[0] != threads[1] == threading.get_ident()


@pytest.mark.parametrize("when", ["next", "leaving"])
def test_a_failed_call_is_heard_of_and_nothing_comes_then(when: str) -> None:
    said: list[str] = []

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), OneAhead() as sending:
        sending.start(fail, lambda: said.append("done"))
        if when == "next":
            sending.start(lambda: said.append("called"), lambda: None)
    assert said == []


@pytest.mark.parametrize("fails", [False, True])
def test_when_the_preparation_fails_the_call_under_way_is_waited_for_and_nothing_comes_then(fails: bool) -> None:
    said, returned, go = [], [], threading.Event()

    def call() -> None:
        go.wait(10)
        if fails:
            raise ValueError("no")
        returned.append(True)

    threading.Timer(0.1, go.set).start()
    with pytest.raises(KeyError, match="stopped"), OneAhead() as sending:
        sending.start(call, lambda: said.append("noted"))
        raise KeyError("stopped")
    assert said == [] and returned == ([] if fails else [True])
