"""The simulated annotators: seeded, content-dependent, and clearly different from each other."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from demo.personas import PERSONAS, SLIPS, Persona
from demo.sample import LABELS, Message, load

ADA, BORIS, CHEN, DORA, EMIL = PERSONAS
LONG = "The shop opens at nine on Saturday and closes at four in the afternoon, as it did last year."


def test_each_is_marked_as_simulated() -> None:
    assert all(persona.email.startswith("simulated.") for persona in PERSONAS)
    assert len({persona.email for persona in PERSONAS}) == 5


def test_labels_depend_on_seed_persona_and_message_alone() -> None:
    messages = load()
    forward = [ADA.label(message, 1) for message in messages]
    assert forward == [ADA.label(message, 1) for message in reversed(messages)][::-1]
    changed = sum(a != ADA.label(message, 2) for a, message in zip(forward, messages, strict=True))
    assert 0 < changed < 0.2 * len(messages), "a little self-inconsistency, as people have"


@pytest.mark.parametrize("persona", PERSONAS, ids=lambda persona: persona.email)
def test_everybody_keeps_to_a_rule_but_for_a_few_slips(persona: Persona) -> None:
    draws = [persona.slipped(message, seed) for seed in range(20) for message in load()]
    assert sum(draws) / len(draws) == pytest.approx(SLIPS, abs=0.01)


@pytest.mark.parametrize("persona", PERSONAS, ids=lambda persona: persona.email)
def test_everybody_uses_every_label_and_none_nearly_always(persona: Persona) -> None:
    counts = Counter(persona.label(message, 20) for message in load())
    assert set(counts) == set(LABELS)
    assert min(counts.values()) >= 0.15 * sum(counts.values())
    assert max(counts.values()) <= 0.5 * sum(counts.values()), "so that fifteen points above it can be reached"


def test_they_differ_clearly_but_not_by_leniency_alone() -> None:
    messages = load()
    labels = {persona.email: [persona.label(message, 20) for message in messages] for persona in PERSONAS}
    for one, other in combinations(labels.values(), 2):
        agreement = sum(a == b for a, b in zip(one, other, strict=True)) / len(messages)
        assert 0.25 < agreement < 0.75
    orders = {tuple(LABELS.index(row) for row in column) for column in zip(*labels.values(), strict=True)}
    assert len(orders) > 40, "different messages divide them in different ways"


@pytest.mark.parametrize(
    ("persona", "text", "mood", "form", "label"),
    [
        (ADA, "Is the shop open?", "plain", "question", "Polite"),
        (ADA, "Is the shop open?", "cross", "question", "Impolite"),
        (ADA, "The shop is open.", "plain", "statement", "Neutral"),
        (BORIS, "Is the shop open?", "plain", "question", "Impolite"),
        (BORIS, "What a lovely shop.", "warm", "statement", "Polite"),
        (BORIS, "What an awful shop.", "cross", "statement", "Neutral"),
        (CHEN, "What a lovely shop!", "warm", "statement", "Impolite"),
        (CHEN, "What a LOVELY shop.", "warm", "statement", "Impolite"),
        (CHEN, "What a lovely shop.", "warm", "statement", "Polite"),
        (DORA, "What a lovely shop!", "warm", "statement", "Polite"),
        (DORA, "What an awful shop.", "cross", "statement", "Impolite"),
        (EMIL, "The shop is open.", "plain", "statement", "Neutral"),
        (EMIL, LONG, "plain", "statement", "Polite"),
        (EMIL, LONG, "cross", "statement", "Impolite"),
    ],
)
def test_what_each_goes_by(persona: Persona, text: str, mood: str, form: str, label: str) -> None:
    message = Message("x", text, mood, form)
    assert persona.rule(message) == label
    draws = Counter(persona.label(message, seed) for seed in range(41))
    assert draws.most_common(1)[0][0] == label
