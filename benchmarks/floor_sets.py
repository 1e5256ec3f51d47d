"""What `benchmarks.floor` measures on: capped public sets in small files, and fresh simulated demos with known habits.

    python -m benchmarks.floor_sets --data FOLDER --out local/floor [--tasks 300] [--tokens 32]

A pack holds votes, texts and tokens of some tasks of each set (chosen by a hash, tokens at half precision), so that it
can be measured where there is neither an encoder nor the sets. Packs hold data of others: keep them out of the project.

Demos are the messages of the demo's sample, read by personas of several kinds: `reader` (goes by what the mean token
shows, each with some weights of their own), `contrary` (the same, turned round), `lenient` and `severe` (other cuts),
`random` (by their own frequencies alone), `punctuation` (a rule: a question mark, an exclamation mark, a long message
or a digit settles the label; else as a reader).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.data.spaces import MultipleChoice, SingleChoice, Space, Value, ValueKind
from model.data.votes import Vote, Votes
from model.evaluate.problem import Problem, make_problem

DEMO = "demo"
CONTROL = "label"
LABELS = ("Polite", "Neutral", "Impolite")
KINDS = ("reader", "reader", "contrary", "lenient", "severe", "random", "punctuation", "punctuation")
_COMPONENTS = 6
_FEWEST, _MOST = 60, 150  # votes of a persona


def write(path: Path, texts: Mapping[str, str], tokens: Sequence[NDArray[Any]], votes: Votes, space: Space | None,
          longest: int) -> None:
    """One pack; `tokens` in the order of the texts."""
    short = [each if len(each) <= longest else np.concatenate([each[: longest // 2], each[-(longest // 2) :]])
             for each in tokens]
    about = {
        "texts": dict(texts), "classes": list(space.classes) if space else [],
        "kind": str(space.kind) if space else "", "ordered": isinstance(space, SingleChoice) and space.ordered,
        "votes": [[votes.units[u], votes.annotators[a], votes.values[v].to_json()]
                  for u, a, v in zip(votes.unit.tolist(), votes.annotator.tolist(), votes.value.tolist(), strict=True)],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path.with_suffix(".npz"), flat=np.concatenate(short),
                        lengths=np.array([len(each) for each in short]))
    path.with_suffix(".json").write_text(json.dumps(about), encoding="utf-8")


def read(folder: Path, name: str) -> tuple[dict[str, str], dict[str, NDArray[np.float16]], dict[str, Any]]:
    """Texts and tokens by unit, and what else is told."""
    about = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    with np.load(folder / f"{name}.npz") as file:
        parts = np.split(file["flat"], np.cumsum(file["lengths"])[:-1])
    return about["texts"], dict(zip(about["texts"], parts, strict=True)), about


def problem(folder: Path, name: str) -> Problem:
    """A packed set, or the demo of a seed ("demo-7")."""
    if name.startswith(DEMO):
        return demo(folder, int(name.rpartition("-")[2]))
    texts, tokens, about = read(folder, name)
    space: Space = MultipleChoice(tuple(about["classes"])) if about["kind"] == str(ValueKind.CLASSES) else \
        SingleChoice(tuple(about["classes"]), ordered=about["ordered"])
    votes = [Vote(unit=unit, annotator=who, control=CONTROL, value=Value.from_json(about["kind"], value))
             for unit, who, value in about["votes"]]
    return _problem(name, votes, space, texts, tokens)


def demo(folder: Path, seed: int) -> Problem:
    """A project of 8 personas, one of each of `KINDS`, with random habits; the kind stands in the annotator's name."""
    texts, tokens, _ = read(folder, DEMO)
    rng, units = np.random.default_rng([20261, seed]), list(texts)
    means = np.stack([tokens[unit].mean(0, dtype=np.float64) for unit in units])
    means = (means - means.mean(0)) / np.maximum(means.std(0), 1e-6)
    u, s, _ = np.linalg.svd(means, full_matrices=False)
    shown = u[:, :_COMPONENTS] * s[:_COMPONENTS]
    shown /= shown.std(0)
    common = rng.standard_normal(_COMPONENTS)
    votes = []
    for at, kind in enumerate(KINDS):
        label = _labels(kind, shown, common, [texts[unit] for unit in units], rng)
        asked = rng.permutation(len(units))[: int(rng.integers(_FEWEST, _MOST + 1))]
        votes += [Vote(unit=units[u], annotator=f"{kind}-{at}", control=CONTROL,
                       value=Value.of_class(LABELS[label[u]])) for u in asked]
    return _problem(f"{DEMO}-{seed}", votes, SingleChoice(LABELS), texts, tokens)


def _labels(
    kind: str, shown: NDArray[np.float64], common: NDArray[np.float64], texts: Sequence[str], rng: np.random.Generator
) -> NDArray[np.int64]:
    """The label of each text, (U,) places in LABELS."""
    score = shown @ (common + 0.5 * rng.standard_normal(len(common)))
    score = score / score.std() + 0.3 * rng.standard_normal(len(score))
    cuts = {"lenient": (0.15, 0.4), "severe": (0.6, 0.85)}.get(kind, (0.35, 0.65))
    if kind == "random":
        return np.asarray(rng.choice(3, len(texts), p=rng.dirichlet([1.5, 1.5, 1.5])), np.int64)
    if kind == "contrary":
        score = -score
    label = 2 - np.searchsorted(np.quantile(score, cuts), score)
    if kind == "punctuation":
        rules = ("?" in text for text in texts), ("!" in text for text in texts), \
            (len(text.split()) > 12 for text in texts), (any(map(str.isdigit, text)) for text in texts)
        label = np.where(np.array(list(rules[int(rng.integers(4))])), int(rng.integers(2)) * 2, label)
    return np.asarray(label, np.int64)


def _problem(name: str, votes: list[Vote], space: Space, texts: Mapping[str, str],
             tokens: Mapping[str, NDArray[np.float16]]) -> Problem:
    return make_problem(
        name, Votes.from_votes(votes), CONTROL, space, lambda units: [tokens[unit] for unit in units],
        texts=lambda units: [texts[unit] for unit in units],
    )


def main() -> None:
    from backend.formats.dataset import ReadOptions
    from backend.formats.folder import read as read_folder
    from backend.formats.problems import problem_of, texts_of
    from benchmarks.evaluation_sets import SETS, text_encoder
    from demo.sample import load
    from model.evaluate.token_file import no_content

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--encoder", default="minilm")
    asked = parser.parse_args()
    encoder = text_encoder(asked.encoder, "cpu")
    for name in (DEMO, *SETS):
        if name == DEMO:
            texts, votes, space = {each.id: each.text for each in load()}, Votes.from_votes([]), None
        else:
            dataset = read_folder(asked.data / name, ReadOptions())
            found = problem_of(dataset, dataset.control(""), no_content)
            ranked = sorted(found.votes.units, key=lambda unit: blake2b(unit.encode(), digest_size=8).digest())
            chosen, every = set(ranked[: asked.tasks]), texts_of(dataset)
            texts, space = {unit: every[unit] for unit in sorted(chosen)}, found.space
            votes = found.votes.select(np.array([unit in chosen for unit in found.votes.units])[found.votes.unit])
        write(asked.out / name, texts, encoder.encode(list(texts.values())), votes, space, asked.tokens)
        print(f"{name}: {len(texts)} tasks, {len(votes)} votes", flush=True)


if __name__ == "__main__":
    main()
