"""Do explanations hold? Faithfulness and agreement with annotators' own rationales on toxicity_spans.

    python -m benchmarks.explanations --data FOLDER [--tokens FOLDER] [--out benchmarks/results/explanations.json]

A ladder is trained on four fifths of the tasks; what is explained are votes on the other fifth, which it never saw.
Rationales: annotators marked the words that made them say `toxic`; for each such vote the AUC of the giver's own
attention over tokens, beside the mean of all annotators' (`pooled`), the generic query's, and random weights.
Faithfulness: the area between deletion by attention and by chance, of the class that the network answers for the giver.
Intervals: bootstrap over tasks, 95 %. The network alone is explained, not what is served; nothing is tuned here.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from backend.formats.dataset import ReadOptions
from backend.formats.folder import read
from backend.formats.problems import texts_of
from benchmarks.evaluation_sets import Source, text_encoder
from model.config import LadderConfig
from model.data.dataset import TrainingSet
from model.data.splits import task_of
from model.encoders.text import TextEncoder
from model.ensemble.ladder import fit
from model.explain.attention import attention
from model.explain.deletion import DeletionCurve, deletion_curve
from model.explain.rationales import marked_tokens, token_auc
from model.qumab.batches import pad
from model.qumab.network import QueryNetwork

SET = "toxicity_spans"
_PARTS, _HELD_OUT, _RESAMPLES = 5, 0, 2000

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One vote of a held-out task."""

    task: str
    auc: Mapping[str, float]  # whose weights -> AUC; empty without a rationale
    curve: DeletionCurve


def rationales(path: Path) -> dict[tuple[str, str], list[str]]:
    """(task, annotator) -> passages that they marked."""
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {(row["task"], row["annotator"]): [part["token"] for part in row["rationale"]] for row in lines}


def answer(network: QueryNetwork, tokens: NDArray[Any], query: int) -> Callable[[NDArray[np.bool_]], Floats]:
    """The probability, with some tokens left, of the class that the network gives for an annotator."""
    row = torch.from_numpy(np.asarray(tokens, np.float32))

    @torch.inference_mode()
    def probabilities(masks: NDArray[np.bool_]) -> Floats:
        logits = network(row.expand(len(masks), -1, -1), torch.from_numpy(masks))[:, :, query]  # (M, K, C)
        return np.asarray(torch.softmax(logits, -1).mean(0).double().numpy())

    chosen = int(probabilities(np.ones((1, len(tokens)), bool))[0].argmax())
    return lambda masks: probabilities(masks)[:, chosen]


def explain(source: Source, arguments: argparse.Namespace) -> Iterator[Explained]:
    """Train, then explain the votes of the held-out tasks whose giver is known."""
    problem = source.problem(SET)
    texts = texts_of(read(source.data / SET, ReadOptions()))
    marks = rationales(source.data / SET / "annotations.jsonl")
    rng = np.random.default_rng(0)
    tasks = sorted({task_of(unit) for unit in problem.votes.units})
    part = dict(zip(tasks, rng.permutation(len(tasks)) % _PARTS, strict=True))
    data = TrainingSet(
        votes=problem.votes, spaces={problem.votes.controls[0]: problem.space}, tokens=problem.tokens,
        heldout=lambda unit: bool(part[task_of(unit)] == _HELD_OUT),
    )
    config = LadderConfig(single_above_votes=0) if arguments.single else LadderConfig()
    ladder = fit(data, config, progress=lambda share, note: print(f"{share:.0%} {note}", flush=True)).ladder
    network, index = ladder.committee.network, {name: at for at, name in enumerate(ladder.annotators)}
    encoder = text_encoder(source.encoder, "cpu")
    assert isinstance(encoder, TextEncoder)
    votes = problem.votes
    held: dict[str, list[str]] = {}
    for unit, annotator in zip(votes.unit, votes.annotator, strict=True):
        if part[task_of(votes.units[unit])] == _HELD_OUT and votes.annotators[annotator] in index:
            held.setdefault(votes.units[unit], []).append(votes.annotators[annotator])
    for unit, givers in sorted(held.items())[: arguments.tasks]:
        tokens = problem.tokens([unit])[0]
        spans = encoder.spans(texts[unit])
        maps = attention(network, *pad([tokens], torch.device("cpu")))[0].double().numpy()  # (Q, T)
        if len(tokens) > 2:
            yield from _votes(unit, givers, texts[unit], tokens, spans, maps, index, marks, network, rng)


def _votes(
    unit: str, givers: Sequence[str], text: str, tokens: NDArray[Any], spans: NDArray[np.int64], maps: Floats,
    index: Mapping[str, int], marks: Mapping[tuple[str, str], list[str]], network: QueryNetwork,
    rng: np.random.Generator,
) -> Iterator[Explained]:
    words = spans[:, 1] > spans[:, 0]  # special tokens are no text
    for giver in givers:
        query, auc = index[giver], {}
        marked = marked_tokens(text, spans, marks.get((unit, giver), []))[words]
        if marked.any() and not marked.all():
            ways = {"own": maps[query], "pooled": maps[:-1].mean(0), "generic": maps[-1],
                    "random": rng.random(len(words))}
            auc = {name: token_auc(weights[words], marked) for name, weights in ways.items()}
        curve = deletion_curve(answer(network, tokens, query), maps[query], rng=rng)
        yield Explained(task=task_of(unit), auc=auc, curve=curve)


def interval(values: Sequence[float], tasks: Sequence[str], rng: np.random.Generator) -> dict[str, float]:
    """Mean over votes with a 95 % interval by drawing tasks."""
    _, code = np.unique(np.array(tasks), return_inverse=True)
    total, count = np.bincount(code, np.asarray(values)), np.bincount(code)
    draws = rng.multinomial(len(count), np.full(len(count), 1.0 / len(count)), size=_RESAMPLES)
    low, high = np.quantile((draws @ total) / (draws @ count), [0.025, 0.975])
    return {"mean": float(np.mean(values)), "low": float(low), "high": float(high)}


def report(found: Sequence[Explained]) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    marked = [each for each in found if each.auc]
    tasks = [each.task for each in marked]
    figures: dict[str, Any] = {
        f"rationale AUC, {way}": interval([each.auc[way] for each in marked], tasks, rng)
        for way in ("own", "pooled", "generic", "random")
    }
    figures["rationale AUC, own - pooled"] = interval([e.auc["own"] - e.auc["pooled"] for e in marked], tasks, rng)
    figures["rationale AUC, own - random"] = interval([e.auc["own"] - e.auc["random"] for e in marked], tasks, rng)
    everyone = [each.task for each in found]
    figures["faithfulness (area to chance)"] = interval([e.curve.faithfulness for e in found], everyone, rng)
    curves = {
        name: np.mean([getattr(each.curve, name) for each in found], 0).tolist() for name in ("by_weight", "by_chance")
    }
    return {
        "dataset": SET, "votes": len(found), "with rationale": len(marked), "tasks": len(set(everyone)),
        "start": float(np.mean([each.curve.start for each in found])), "curves": curves, "figures": figures,
    }


def markdown(found: Mapping[str, Any]) -> str:
    rows = [f"| {name} | {value['mean']:.3f} | {value['low']:.3f} to {value['high']:.3f} |"
            for name, value in found["figures"].items()]
    options = f"{' --single' if found['single'] else ''} --tasks {found['tasks']}"
    return "\n".join([
        "# Do explanations hold?", "",
        f"`python -m benchmarks.explanations{options}`, {found['dataset']}: {found['votes']} votes on {found['tasks']} "
        f"held-out tasks, {found['with rationale']} of them with a rationale. Mean over votes, 95 % by bootstrap over "
        f"tasks. {'One light network' if found['single'] else 'The committee of light networks'} alone, otherwise the "
        "default configuration; a development set, on which hyperparameters were chosen, though not by rationales.", "",
        "| | mean | 95 % |", "|---|---|---|", *rows, "",
        f"Probability of the answered class: {found['start']:.3f} with all tokens; after 10, 20, 30, 50, 70 % are gone "
        f"by attention {_numbers(found['curves']['by_weight'])}, by chance {_numbers(found['curves']['by_chance'])}.",
    ]) + "\n"


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the sets")
    parser.add_argument("--tokens", type=Path, required=True, help="where encoded texts are kept")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--single", action="store_true", help="one network instead of a committee, which is faster")
    parser.add_argument("--tasks", type=int, default=10_000, help="explain at most so many tasks")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "explanations.json")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    source = Source(
        data=arguments.data, tokens=arguments.tokens, encoder=arguments.encoder,
        encoder_id=text_encoder(arguments.encoder, "cpu").id, device="cpu",
    )
    found = {"single": arguments.single, **report(list(explain(source, arguments)))}
    arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    arguments.out.with_suffix(".md").write_text(markdown(found), encoding="utf-8")
    print(markdown(found))


if __name__ == "__main__":
    main()
