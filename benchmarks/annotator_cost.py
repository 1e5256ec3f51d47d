"""What one more annotator costs: as a query, as a head on shared features, or as a model of their own.

    python -m benchmarks.annotator_cost [--most 1000] [--out FILE.json]

The light network at its default size over random tokens as wide as MiniLM's, one CPU thread. Parameters and
milliseconds are differences between two sizes of the same network, divided by the annotators between them; `head` is
the shared reading of the generic query with one classifier for each annotator. `curve` is a training step of a batch
at several numbers of annotators. The step does not depend on the number of tasks: an epoch is so many steps, so tasks
are a straight line, and memory holds the features and the votes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.measure import machine
from model.config import NetworkConfig
from model.qumab.network import QueryNetwork

BATCH, TOKENS, DIM, CLASSES, FEW = 32, 32, 384, 3, 10
MANY = {"query": 60, "head": 4000}  # far enough apart for the difference to be seen


def query_network(annotators: int) -> QueryNetwork:
    config = NetworkConfig(labels=False)
    return QueryNetwork(1, annotators, CLASSES, DIM, config, torch.Generator().manual_seed(0))


class HeadNetwork(nn.Module):
    """One query reads for all; each annotator has a classifier."""

    def __init__(self, annotators: int) -> None:
        super().__init__()
        self.shared = query_network(1)
        width = self.shared.config.width
        self.weight = nn.Parameter(torch.zeros(annotators, width, CLASSES))

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        h, _ = self.shared._read(tokens, mask, None)
        return torch.einsum("bd,adc->bac", h[0, :, -1], self.weight)


def step_ms(network: nn.Module, rounds: int) -> float:
    """Median milliseconds of a forward and backward pass of one batch."""
    tokens = torch.randn(BATCH, TOKENS, DIM, generator=torch.Generator().manual_seed(1))
    mask = torch.ones(BATCH, TOKENS, dtype=torch.bool)
    taken = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        network(tokens, mask).square().mean().backward()
        taken.append(1e3 * (time.perf_counter() - began))
        network.zero_grad()
    return float(np.median(taken[1:]))


def parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def extra_operations(config: NetworkConfig) -> dict[str, float]:
    """Operations of one more annotator on one task, forward; of a query in the folded order, over `TOKENS` tokens."""
    d = config.width
    block = 4.0 * config.heads * (TOKENS + 1) * DIM + 4.0 * d * DIM + 2.0 * (4 + 2) * d * d + 2.0 * 4 * d * d
    query = config.blocks * block + 2.0 * d * CLASSES
    # A model of one's own has two queries, the generic one too, and the classifier of the mean token.
    return {"query": query, "head": 2.0 * d * CLASSES, "separate": 2.0 * query + 2.0 * DIM * CLASSES}


def compare(rounds: int) -> list[dict[str, Any]]:
    """The table: a row for each way."""
    operations = extra_operations(NetworkConfig())
    made: Mapping[str, Callable[[int], nn.Module]] = {"query": query_network, "head": HeadNetwork}
    rows = []
    for name, make in made.items():
        few, many, between = make(FEW), make(MANY[name]), MANY[name] - FEW
        ms = step_ms(many, rounds) - step_ms(few, rounds)
        rows.append({
            "way": name, "parameters": (parameters(many) - parameters(few)) / between,
            "operations": operations[name], "ms": ms / between,
        })
    own = query_network(1)
    rows.append({
        "way": "separate", "parameters": float(parameters(own)), "operations": operations["separate"],
        "ms": step_ms(own, rounds),
    })
    return rows


def curve(sizes: Sequence[int], rounds: int) -> list[dict[str, float]]:
    """Milliseconds of a step by annotators."""
    return [{"annotators": size, "ms": step_ms(query_network(size), rounds)} for size in sizes]


def markdown(found: Mapping[str, Any]) -> str:
    rows = [f"| {row['way']} | {row['parameters']:,.0f} | {row['operations'] / 1e6:.4f} | {row['ms']:.4f} |"
            for row in found["table"]]
    steps = [f"| {row['annotators']:,} | {row['ms']:.0f} | {row['ms'] / row['annotators']:.2f} | "
             f"{row['ms'] / BATCH / 3.6:.2f} |" for row in found["curve"]]
    return "\n".join([
        "# What one more annotator costs", "",
        f"`python -m benchmarks.annotator_cost`: the light network, batches of {BATCH} tasks of {TOKENS} tokens, one "
        f"CPU thread, load {found['machine']['load'][0]:.1f} at the start.", "",
        "| as | parameters | million operations a task, forward | ms a training step |", "|---|---|---|---|", *rows, "",
        "Steps by annotators; a million tasks are that many hours an epoch at the measured step:", "",
        "| annotators | ms a step | ms an annotator | hours an epoch of a million tasks |", "|---|---|---|---|", *steps,
    ]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "annotator_cost.json")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    sizes = [size for size in (10, 30, 100, 300, 1000) if size <= arguments.most]
    found = {
        "machine": machine(), "table": compare(arguments.rounds), "curve": curve(sizes, max(2, arguments.rounds // 4))
    }
    arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    arguments.out.with_suffix(".md").write_text(markdown(found), encoding="utf-8")
    print(markdown(found))


if __name__ == "__main__":
    main()
