"""Five simulated annotators who read the same message differently. Seeded; nobody of them is a person.

Each has one rule that a person could have and say in a sentence, and departs from it now and then, as people do: on a
share `SLIPS` of the messages they give one of the other two labels. What a message is (its mood, its form) stands in
the sample; how it is written (marks, capitals, length) is read from the text.

The draw depends on (seed, persona, message) alone, so that neither the order nor the number of messages matters, and
what a persona says of every message is known, also where the demo never asks: `demo.truth` measures with that.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from demo.sample import LABELS, Message

SLIPS = 0.04
POLITE, NEUTRAL, IMPOLITE = LABELS
LONG_WORDS = 13  # at least
_CAPITALS = re.compile(r"\b[A-Z]{3,}\b")


def is_loud(text: str) -> bool:
    """Whether there is an exclamation mark or a word in capitals."""
    return "!" in text or _CAPITALS.search(text) is not None


def _likes_to_be_asked(message: Message) -> str:
    if message.mood == "cross":
        return IMPOLITE
    return POLITE if message.form == "question" else NEUTRAL


def _minds_questions(message: Message) -> str:
    if message.form == "question":
        return IMPOLITE
    return POLITE if message.mood == "warm" else NEUTRAL


def _minds_noise(message: Message) -> str:
    if is_loud(message.text):
        return IMPOLITE
    return POLITE if message.mood == "warm" else NEUTRAL


def _goes_by_mood(message: Message) -> str:
    return {"warm": POLITE, "plain": NEUTRAL, "cross": IMPOLITE}[message.mood]


def _likes_time_taken(message: Message) -> str:
    if message.mood == "cross":
        return IMPOLITE
    return POLITE if len(message.text.split()) >= LONG_WORDS else NEUTRAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """A simulated annotator."""

    email: str
    says: str  # the rule, for people
    rule: Callable[[Message], str]
    slips: float = SLIPS

    def label(self, message: Message, seed: int) -> str:
        """One of LABELS; the same for the same message and seed."""
        draw = random.Random(f"{seed}|{self.email}|{message.id}|{message.text}")
        meant = self.rule(message)
        if draw.random() >= self.slips:
            return meant
        return draw.choice([label for label in LABELS if label != meant])

    def slipped(self, message: Message, seed: int) -> bool:
        """Whether they depart from their own rule on this message."""
        return self.label(message, seed) != self.rule(message)


PERSONAS = (
    Persona(
        email="simulated.ada@example.com", rule=_likes_to_be_asked,
        says="likes to be asked: a question is polite, unless it is cross",
    ),
    Persona(
        email="simulated.boris@example.com", rule=_minds_questions,
        says="minds being questioned; warm words are polite, plain speaking is fine",
    ),
    Persona(
        email="simulated.chen@example.com", rule=_minds_noise,
        says="cannot stand exclamation marks and capitals; warm words are polite",
    ),
    Persona(
        email="simulated.dora@example.com", rule=_goes_by_mood,
        says="goes by the mood alone: warm, plain or cross",
    ),
    Persona(
        email="simulated.emil@example.com", rule=_likes_time_taken,
        says="likes people who take their time: a long message is polite, unless it is cross",
    ),
)
