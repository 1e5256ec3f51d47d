"""Five simulated annotators who read the same message differently. Seeded; nobody of them is a person.

Each scores what a message shows (cues) with weights of their own, adds a little noise, and cuts the score into three:

    score = sum over cues (weight * cue(message)) + noise * logistic,    Impolite < low <= Neutral < high <= Polite

The draw depends on (seed, persona, message) alone, so that neither the order nor the number of messages matters.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

from demo.sample import LABELS, Message

_WORDS = re.compile(r"[a-z']+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_COURTESY = _words(
    "please thank thanks grateful thankful appreciate welcome sorry apologies afraid glad gladly kind kindly kinder "
    "congrats congratulations delighted pleased pleasure honoured lovely regards compliments wish enjoy love happy"
)
_HEDGES = _words("could would might may perhaps maybe possibly wonder wondering seem possible if little bit rather")
_HARSH = _words(
    "stupid dumb useless unbelievable disgusting liars sloppy stop hurry obviously excuses worst whatever nobody never "
    "dare genius waste cheap brilliant dump shut mess barn police failed late again already still better hard"
)
_FORMAL = _words("dear madam sir sincerely writing regret inform kindly further enclose requested committee whom")
_COMMANDS = _words(
    "send move pay call read do get stop remove cancel answer bring fix try restart give hand shut open keep tell "
    "speak explain need water help clean go sign ask follow turn correct put listen wait study repair forward find"
)
_NO_SHOUTING = _words("HR FAQ")


def cues(text: str) -> dict[str, float]:
    """What a message shows. Counts are damped, so that the third "thanks" adds less than the first."""
    words = _WORDS.findall(text.lower())
    courtesy = sum(word in _COURTESY for word in words)
    shouted = [word for word in re.findall(r"\b[A-Z]{2,}\b", text) if word not in _NO_SHOUTING]
    return {
        "courtesy": math.sqrt(courtesy),
        "hedges": math.sqrt(sum(word in _HEDGES for word in words)),
        "harsh": math.sqrt(sum(word in _HARSH for word in words)),
        "command": float(bool(words) and words[0] in _COMMANDS and not courtesy),
        "exclamation": math.sqrt(text.count("!")),
        "shouting": float(bool(shouted)),
        "question": float("?" in text),
        "formal": float(any(word in _FORMAL for word in words)),
        "length": math.log2(1 + len(words)) - 3.0,  # 0 at seven words
        "curt": float(len(words) <= 3),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """A simulated annotator: what they look at, and where they draw the lines."""

    email: str
    says: str  # for people
    weights: Mapping[str, float]
    low: float
    high: float
    noise: float = 0.08

    def label(self, message: Message, seed: int) -> str:
        """One of LABELS; the same for the same message and seed."""
        draw = random.Random(f"{seed}|{self.email}|{message.id}|{message.text}").uniform(1e-6, 1 - 1e-6)
        shown = cues(message.text)
        score = sum(weight * shown[cue] for cue, weight in self.weights.items())
        score += self.noise * math.log(draw / (1 - draw))
        polite, neutral, impolite = LABELS
        return impolite if score < self.low else polite if score >= self.high else neutral


PERSONAS = (
    Persona(
        email="simulated.ada@example.com", says="goes by the magic words: please, thanks, sorry",
        weights={"courtesy": 1.2, "harsh": -0.8, "command": -0.7, "curt": -0.3}, low=-0.35, high=0.6,
    ),
    Persona(
        email="simulated.boris@example.com", says="minds commands and bluntness, likes questions and hedges",
        weights={"command": -1.4, "curt": -0.8, "harsh": -0.6, "hedges": 0.8, "question": 0.6}, low=-0.35, high=0.45,
    ),
    Persona(
        email="simulated.chen@example.com", says="cannot stand exclamation marks and capitals",
        weights={"exclamation": -1.6, "shouting": -1.0, "harsh": -0.5, "hedges": 0.6, "courtesy": 0.6},
        low=-0.35, high=0.45,
    ),
    Persona(
        email="simulated.dora@example.com", says="is lenient: nearly everything is polite",
        weights={"harsh": -1.2, "shouting": -0.6, "command": -0.5, "courtesy": 0.5, "question": 0.3, "length": 0.15},
        low=-0.8, high=-0.3,
    ),
    Persona(
        email="simulated.emil@example.com", says="goes by form: long and formal is polite, short is impolite",
        weights={"length": 1.0, "formal": 0.8, "exclamation": -0.3}, low=-0.45, high=0.45,
    ),
)
