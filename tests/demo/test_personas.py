"""The simulated annotators: seeded, content-dependent, and clearly different from each other."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from demo.personas import PERSONAS, Persona
from demo.sample import LABELS, Message, load

ADA, BORIS, CHEN, DORA, EMIL = PERSONAS


def usual(persona: Persona, text: str) -> str:
    """The label that a persona gives in most of many draws."""
    draws = Counter(persona.label(Message("x", text), seed) for seed in range(41))
    return draws.most_common(1)[0][0]


def test_each_is_marked_as_simulated() -> None:
    assert all(persona.email.startswith("simulated.") for persona in PERSONAS)
    assert len({persona.email for persona in PERSONAS}) == 5


def test_labels_depend_on_seed_persona_and_message_alone() -> None:
    messages = load()
    forward = [ADA.label(message, 1) for message in messages]
    assert forward == [ADA.label(message, 1) for message in reversed(messages)][::-1]
    changed = sum(a != ADA.label(message, 2) for a, message in zip(forward, messages, strict=True))
    assert 0 < changed < 0.3 * len(messages), "a little self-inconsistency, as people have"


@pytest.mark.parametrize("persona", PERSONAS, ids=lambda persona: persona.email)
def test_everybody_uses_every_label(persona: Persona) -> None:
    counts = Counter(persona.label(message, 20) for message in load())
    assert set(counts) == set(LABELS)
    assert min(counts.values()) >= 0.08 * sum(counts.values())


def test_they_differ_clearly_but_not_by_leniency_alone() -> None:
    messages = load()
    labels = {persona.email: [persona.label(message, 20) for message in messages] for persona in PERSONAS}
    for one, other in combinations(labels.values(), 2):
        agreement = sum(a == b for a, b in zip(one, other, strict=True)) / len(messages)
        assert 0.2 < agreement < 0.75
    orders = {tuple(LABELS.index(row) for row in column) for column in zip(*labels.values(), strict=True)}
    assert len(orders) > 40, "different messages divide them in different ways"


@pytest.mark.parametrize(
    ("persona", "text", "label"),
    [
        (ADA, "Thanks, but please hurry up.", "Polite"),
        (ADA, "Send the contract today.", "Impolite"),
        (BORIS, "Could you perhaps tell me when the shop opens?", "Polite"),
        (BORIS, "Send the contract today.", "Impolite"),
        (CHEN, "Congratulations, what a result!!!", "Impolite"),
        (CHEN, "Congratulations, what a result.", "Polite"),
        (DORA, "The shop opens at nine on Saturday.", "Polite"),
        (DORA, "What a dumb and useless question, hurry up.", "Impolite"),
        (EMIL, "Thanks!", "Impolite"),
        (EMIL, "Dear colleagues, the shop opens at nine on Saturday and closes at four in the afternoon.", "Polite"),
    ],
)
def test_what_each_goes_by(persona: Persona, text: str, label: str) -> None:
    assert usual(persona, text) == label
