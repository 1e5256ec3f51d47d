"""Showcases are differences that are sure and true."""

from __future__ import annotations

from demo.personas import PERSONAS
from demo.sample import load
from demo.showcase import Difference, showcases, truth_of

A, B, C = (persona.email for persona in PERSONAS[:3])
TRUTH = {f"text {at}": {A: "Polite", B: "Impolite", C: "Neutral"} for at in range(9)}


def difference(task: int, labels: dict[str, tuple[str, float]]) -> Difference:
    return Difference(task=task, text=f"text {task}", labels=labels, consensus="Polite")


def test_only_what_is_sure_and_true_of_both_is_shown() -> None:
    found = showcases([
        difference(1, {A: ("Polite", 0.9), B: ("Impolite", 0.79)}),  # not sure
        difference(2, {A: ("Polite", 0.9), B: ("Neutral", 0.99)}),  # not true
        difference(3, {A: ("Polite", 0.9), B: ("Impolite", 0.8), C: ("Impolite", 0.9)}),
        difference(9, {A: ("Polite", 0.9), B: ("Impolite", 0.9)}),  # nobody knows what is true
    ], TRUTH)
    assert [(case.difference.task, case.people) for case in found] == [(3, tuple(sorted((A, B))))]
    assert found[0].sureness == 0.8


def test_the_surest_come_first_and_other_pairs_before_the_same_again() -> None:
    pair = {A: ("Polite", 0.99), B: ("Impolite", 0.99)}
    found = showcases([
        difference(1, pair), difference(2, pair), difference(3, {A: ("Polite", 0.85), C: ("Neutral", 0.85)}),
        difference(4, {A: ("Polite", 0.81), B: ("Impolite", 0.81)}),
    ], TRUTH)
    assert [case.difference.task for case in found] == [1, 3, 2], "three at most, each message once"


def test_the_truth_is_what_each_would_say() -> None:
    messages = load()[:5]
    truth = truth_of(messages, 3)
    assert all(truth[message.text][PERSONAS[4].email] == PERSONAS[4].label(message, 3) for message in messages)
