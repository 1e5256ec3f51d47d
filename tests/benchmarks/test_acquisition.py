"""The report on policies: means over sets, and losses that are named."""

from __future__ import annotations

import pytest

from benchmarks.acquisition import over_sets, report


def policy(area, random, uncertainty, saved=50.0):
    return {
        "area": [area, area - 0.1, area + 0.1], "beside": {"random": random, "uncertainty": uncertainty},
        "accuracy": [0.5, 0.6, 0.7, 0.8, 0.9], "seconds": 1.0,
        "saved": {"votes": [saved, 0.0, 60.0], "at_least": True, "half": 100.0},
    }


def one_set(gain, loss):
    """Expected change is ahead of random by `gain` and of uncertainty by `loss`."""
    nothing = [0.0, 0.0, 0.0]
    return {
        "tasks": 10, "annotators": 3, "classes": 2, "all_votes": 60, "votes": [0, 50, 100, 150, 200],
        "policies": {
            "expected-change": policy(0.7 + gain, [gain, gain - 0.03, gain + 0.03], [loss, loss - 0.04, loss + 0.04]),
            "uncertainty": policy(0.7 + gain - loss, [gain - loss, 0.0, 0.1], nothing), "random": policy(
                0.7, nothing, [loss - gain, -0.1, 0.0]),
        },
    }


@pytest.fixture
def result():
    sets = {"first": one_set(0.05, 0.02), "second": one_set(0.03, -0.04)}
    speed = {"gaps": 100_000, "classes": 3, "measured_loop": 10, "policies": {
        "random": {"pass_s": 0.1, "loop_s": 5.0, "choose_500_s": 0.2}}}
    machine = {"made": "2026-11-28T09:00:00", "cores": 2, "load": [1.0]}
    return {"seeds": 2, "machine": machine, "sets": sets, "others": {}, "mean": over_sets(sets), "speed": speed}


def test_means_and_their_intervals(result):
    ours = result["mean"]["expected-change"]
    assert ours["beside"]["random"] == pytest.approx([0.04, 0.04 - 0.03 / 2**0.5, 0.04 + 0.03 / 2**0.5])
    assert ours["sets_above"] == {"random": 2, "uncertainty": 1} and ours["saved"] == pytest.approx(0.5)


def test_hits_misses_and_losses_are_named(result):
    text = report(result)
    assert "above `random` on the mean: hit, +4.00" in text
    assert "above `uncertainty` on the mean: MISSED, -1.00" in text
    assert "Loss: on second it is not above `uncertainty`, -4.00" in text and "Loss: on first" not in text
    assert "Above it on the mean: uncertainty." in text
    assert "≥ 50 [0, 60]" in text and "| 50 |" in text
