"""The data sets of the evaluation, and reading them with their tokens; see docs/evaluation.md.

Hyperparameters may be chosen on the development sets only; they are frozen for all others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from backend.formats.dataset import ReadOptions
from backend.formats.folder import read
from backend.formats.problems import problem_of, texts_of
from model.encoders import Encoder
from model.evaluate.problem import Problem
from model.evaluate.token_file import no_content, tokens_of

DEVELOPMENT = ("affective_text", "toxicity_spans")
SETS = (
    *DEVELOPMENT, "annotation_paradigms", "convabuse", "paraphrase_par", "politeness_wiki", "popquorn_offensiveness",
    "product_match",
)
REMOVAL = ("affective_text", "annotation_paradigms", "paraphrase_par")  # where training votes are removed: the cheapest


def quiet(fraction: float) -> None:
    """The progress callback of callers who do not care."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where sets and their tokens are; small enough to be handed to another process."""

    data: Path
    tokens: Path
    encoder: str  # "minilm" or a folder
    encoder_id: str
    device: str

    def problem(self, name: str, progress: Callable[[float], None] = quiet) -> Problem:
        """A set with its only control; its texts are encoded where no process has done so yet."""
        dataset = read(self.data / name, ReadOptions())
        texts = texts_of(dataset)
        tokens = tokens_of(
            texts, encoder_id=self.encoder_id, encoder=lambda: text_encoder(self.encoder, self.device),
            folder=self.tokens, progress=progress,
        )
        return problem_of(dataset, dataset.control(""), tokens, texts=texts)


def without_content(data: Path, name: str) -> Problem:
    """A set as far as votes go: enough to score cells."""
    dataset = read(data / name, ReadOptions())
    return problem_of(dataset, dataset.control(""), no_content)


def text_encoder(source: str, device: str) -> Encoder:
    """The text encoder."""
    from model.encoders.text import TextEncoder

    return TextEncoder.load(source, device=device, batch_size=64)
