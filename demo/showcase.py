"""Showcases: messages on which two annotators are predicted to differ, both surely, and both truly.

The demo knows what its simulated annotators would say of every message, so it need not show differences that are only
guessed: of the messages that nobody has labelled it shows those where two predictions are sure *and* right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from demo.personas import PERSONAS
from demo.sample import Message

SURE = 0.8
SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A message that two annotators are predicted to label differently."""

    task: int
    text: str
    labels: Mapping[str, tuple[str, float]]  # e-mail -> predicted label and its probability
    consensus: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Showcase:
    """A difference, and the two people to look at it as."""

    difference: Difference
    people: tuple[str, str]  # e-mails

    @property
    def sureness(self) -> float:
        """That of the less sure of the two."""
        return min(self.difference.labels[email][1] for email in self.people)


def truth_of(messages: Iterable[Message], seed: int) -> dict[str, dict[str, str]]:
    """text -> e-mail -> what this simulated annotator says of it."""
    return {
        message.text: {persona.email: persona.label(message, seed) for persona in PERSONAS} for message in messages
    }


def showcases(
    differences: Sequence[Difference], truth: Mapping[str, Mapping[str, str]], *, most: int = SHOWN, sure: float = SURE
) -> list[Showcase]:
    """At most `most`, each message once: the surest pair of people first, then other pairs before the same one again.
    """
    found = [
        Showcase(difference=difference, people=(one, other))
        for difference in differences
        for one, other in combinations(sorted(difference.labels), 2)
        if _holds(difference, one, truth, sure) and _holds(difference, other, truth, sure)
        and difference.labels[one][0] != difference.labels[other][0]
    ]
    chosen: list[Showcase] = []
    while found and len(chosen) < most:
        shown = [each.people for each in chosen]
        best = max(found, key=lambda each: (-shown.count(each.people), each.sureness, -each.difference.task))
        chosen.append(best)
        found = [each for each in found if each.difference.task != best.difference.task]
    return chosen


def _holds(difference: Difference, email: str, truth: Mapping[str, Mapping[str, str]], sure: float) -> bool:
    label, probability = difference.labels[email]
    return probability >= sure and truth.get(difference.text, {}).get(email) == label
