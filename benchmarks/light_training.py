"""Training of the light network on two CPU cores: against a plain loop, and incremental against from scratch.

    python -m benchmarks.light_training [--units 5000 --annotators 20 --votes 5] [--out FILE.json]

Simulated annotators over cached tokens as wide as MiniLM's (384), about 27 a text. The plain loop is a network of the
same size in torch's own layers (`nn.MultiheadAttention` among queries and over padded tokens, feed-forward) with one
Python loop over annotators' heads, the same batch size, AdamW. Epochs of both take turns, so that other load hits both.
Ours is timed as it is served (it also learns to read given votes, and keeps averaged weights and the best epoch) and
from content alone, which is what the plain loop does. It goes through the same votes as the plain loop, and is judged
on a tenth of the units before and after. Times are those of the processor, in all threads together, which other load
hardly changes; those of the clock are kept beside.

From scratch and incremental are whole ladders (all base models, folds, stack, calibration); incremental starts from the
ladder of all but the last 100 votes. Accuracy is on tasks that neither saw, paired by vote.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.measure import machine
from model.config import LadderConfig, NetworkConfig
from model.data.dataset import Targets, TrainingSet
from model.ensemble.fitting import Fit
from model.ensemble.ladder import fit
from model.qumab.batches import TokenStore, VoteTable
from model.qumab.network import QueryNetwork
from model.qumab.slots import lay_out
from model.qumab.training import train, vote_weights
from model.simulate import Simulated, simulate_annotators

DIM, TRAITS, CLASSES, NEW_VOTES = 384, 24, ("low", "middle", "high"), 100


class PlainBlock(nn.Module):
    """Self-attention, cross-attention, feed-forward in torch's own layers."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        d = config.width
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(3))
        self.among = nn.MultiheadAttention(d, config.heads, batch_first=True)
        self.read = nn.MultiheadAttention(d, config.heads, kdim=DIM, vdim=DIM, batch_first=True)
        self.inner = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, tokens: Tensor, padding: Tensor) -> Tensor:
        h = self.norms[0](x)
        x = x + self.among(h, h, h, need_weights=False)[0]
        read = self.read(self.norms[1](x), tokens, tokens, key_padding_mask=padding, need_weights=False)[0]
        x = x + self.dropout(read)
        found: Tensor = x + self.dropout(self.inner(self.norms[2](x)))
        return found


class Plain(nn.Module):
    """The plain loop's network: a head of its own for each annotator."""

    def __init__(self, annotators: int, config: NetworkConfig) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(1, annotators, config.width))
        self.blocks = nn.ModuleList(PlainBlock(config) for _ in range(config.blocks))
        self.heads = nn.ModuleList(nn.Linear(config.width, len(CLASSES)) for _ in range(annotators))

    def forward(self, tokens: Tensor, mask: Tensor, votes: Tensor) -> Tensor:
        """Loss of votes (B, A), -1 where there is none."""
        x = self.queries.expand(len(tokens), -1, -1)
        for block in self.blocks:
            x = block(x, tokens.float(), ~mask)
        losses = []
        for annotator, head in enumerate(self.heads):
            if bool((votes[:, annotator] >= 0).any()):
                losses.append(nn.functional.cross_entropy(head(x[:, annotator]), votes[:, annotator], ignore_index=-1))
        return torch.stack(losses).sum()


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Votes and tokens as both ways of training take them."""

    targets: Targets
    store: TokenStore
    votes: Tensor  # (U, A) int64, -1 where none was given


def simulate(arguments: argparse.Namespace) -> Simulated:
    return simulate_annotators(
        np.random.default_rng(0), units=arguments.units, annotators=arguments.annotators, classes=CLASSES,
        traits=TRAITS, coverage=arguments.votes / arguments.annotators, dim=DIM,
    )


def prepare(simulated: Simulated, annotators: int) -> Work:
    units = list(simulated.tokens)
    place = {unit: at for at, unit in enumerate(units)}
    votes = simulated.votes
    unit = np.array([place[name] for name in votes.units])[votes.unit]
    annotator = np.array([int(name[1:]) for name in votes.annotators])[votes.annotator]
    label = np.stack([simulated.space.encode(value) for value in votes.values]).argmax(1)[votes.value]
    dense = np.full((len(units), annotators), -1)
    dense[unit, annotator] = label
    targets = Targets(
        space=simulated.space, unit=unit, annotator=annotator, y=np.eye(len(CLASSES), dtype=np.float32)[label],
        weight=np.ones(len(unit), np.float32), scored=np.ones(len(unit), bool),
    )
    store = TokenStore(
        units, lambda names: [simulated.tokens[name] for name in names], trained=np.ones(len(units), bool),
        resident_mb=1024, device=torch.device("cpu"),
    )
    return Work(targets=targets, store=store, votes=torch.from_numpy(dense))


def epochs(work: Work, annotators: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of the processor for an epoch of each way, in turns."""
    config = NetworkConfig()
    slots = lay_out({"label": work.targets.space})
    plain = Plain(annotators, config)
    optimiser = torch.optim.AdamW(plain.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay)
    rng = np.random.default_rng(0)
    weight = vote_weights(work.targets, config.tau)[None]
    tenth = work.targets.unit % 10 == 0  # ours validates each epoch, which counts
    learn, validate = (VoteTable({"label": work.targets}, {"label": weight * part}) for part in (1.0, tenth))

    def plain_epoch() -> None:
        plain.train()
        for rows in np.array_split(rng.permutation(len(work.votes)), max(1, len(work.votes) // config.batch_units)):
            tokens, mask = work.store.batch(rows)
            loss = plain(tokens, mask, work.votes[torch.from_numpy(rows)])
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(plain.parameters(), config.clip)
            optimiser.step()

    def our_epoch(labels: bool) -> None:
        mine = replace(config, labels=labels)
        network = QueryNetwork(1, annotators, len(CLASSES), DIM, mine, torch.Generator().manual_seed(0))
        train(network, slots, work.store, learn, validate, mine, seed=0, epochs=1, progress=lambda share: None)

    found: dict[str, list[float]] = {"plain loop": [], "ours, content alone": [], "ours, as served": []}
    for _ in range(rounds):
        for name, call in (("plain loop", plain_epoch), ("ours, content alone", lambda: our_epoch(False)),
                           ("ours, as served", lambda: our_epoch(True))):
            began = time.process_time()
            call()
            found[name].append(time.process_time() - began)
            print(name, f"{found[name][-1]:.1f} s an epoch", flush=True)
    return found


def increments(simulated: Simulated, arguments: argparse.Namespace) -> dict[str, Any]:
    """Seconds from scratch and incremental, and paired accuracy on held-out tasks."""
    when = np.random.default_rng(1).permutation(len(simulated.votes.unit))
    votes = replace(simulated.votes, time=60.0 * (1.0 + when.astype(np.float64)))

    def timed(most: int, previous: Fit | None) -> tuple[Fit, dict[str, float]]:
        data = TrainingSet(
            votes=votes.select(when < most), spaces={"label": simulated.space},
            tokens=lambda units: [simulated.tokens[unit] for unit in units],
            heldout=lambda unit: int(unit[1:]) % 5 == 0,
        )
        clock, processor = time.perf_counter(), time.process_time()
        found = fit(data, LadderConfig(), previous=previous.ladder if previous else None)
        took = {"processor": time.process_time() - processor, "clock": time.perf_counter() - clock}
        print(most, "votes", "incremental" if previous else "from scratch", took, flush=True)
        return found, took

    before, _ = timed(len(when) - NEW_VOTES, None)
    grown, grown_s = timed(len(when), before)
    fresh, fresh_s = timed(len(when), None)
    units = [unit for unit in simulated.tokens if int(unit[1:]) % 5 == 0]
    return {
        "seconds": {"from scratch": fresh_s, "incremental": grown_s},
        "share": grown_s["processor"] / fresh_s["processor"], "brief": grown.figures["brief"],
        "lost points": _lost(simulated, units, fresh, grown),
    }


def _lost(simulated: Simulated, units: Sequence[str], fresh: Fit, grown: Fit) -> dict[str, float]:
    """Expected accuracy (by the true probabilities) from scratch minus incremental, in points, 95 % over tasks."""
    rows = np.array([int(unit[1:]) for unit in units])
    found = []
    for each in (fresh, grown):
        names = list(each.ladder.annotators)
        served = each.ladder.predict([simulated.tokens[unit] for unit in units], names)["label"].served
        truth = simulated.probabilities[rows][:, [int(name[1:]) for name in names]]
        found.append(np.take_along_axis(truth, served.argmax(-1)[..., None], -1)[..., 0].mean(1))  # (U,)
    lost: NDArray[np.float64] = 100.0 * (found[0] - found[1])
    draws = np.random.default_rng(2).choice(lost, (2000, len(lost))).mean(1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return {"mean": float(lost.mean()), "low": float(low), "high": float(high)}


def markdown(found: Mapping[str, Any]) -> str:
    made = found["settings"]
    each = {name: float(np.median(values)) for name, values in found["epochs"].items()}
    plain, rows = each["plain loop"], []
    for name, value in each.items():
        share = value / plain
        hit = "" if name == "plain loop" else "hit" if share <= 1 / 3 else "**miss**"
        rows.append(f"| {name} | {value:.2f} s an epoch | {share:.2f} of the plain loop | {hit} |")
    lines = [
        "# Training the light network on a CPU", "",
        f"`python -m benchmarks.light_training`: {made['units']} texts x {made['annotators']} annotators x "
        f"{made['votes']} votes a text, {made['threads']} thread(s), load {found['machine']['load'][0]:.1f} at the "
        f"start; epochs in turns, median of {made['rounds']}, seconds of the processor. "
        "Target: at most a third of the plain loop.", "",
        "| | | | |", "|---|---|---|---|", *rows, "",
    ]
    if "increments" in found:
        part = found["increments"]
        lost = part["lost points"]
        lines += [
            f"Incremental after {NEW_VOTES} new votes: {part['seconds']['incremental']['processor']:.0f} s against "
            f"{part['seconds']['from scratch']['processor']:.0f} s from scratch (by the clock, under that load, "
            f"{part['seconds']['incremental']['clock']:.0f} s against {part['seconds']['from scratch']['clock']:.0f} "
            f"s), {part['share']:.3f} of it (target at most 0.10: "
            f"{'hit' if part['share'] <= 0.1 else '**miss**'}). Its accuracy less that from scratch: "
            f"{-lost['mean']:+.2f} points ({-lost['high']:+.2f} to {-lost['low']:+.2f}; at most 0.5 may be lost: "
            f"{'hit' if lost['mean'] <= 0.5 else '**miss**'}).", "",
        ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("units", 5000), ("annotators", 20), ("votes", 5), ("rounds", 3), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--epochs-only", action="store_true", help="leave out the ladders")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "light_training.json")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    settings = {key: value for key, value in vars(arguments).items() if key != "out"}
    found: dict[str, Any] = {"machine": machine(), "settings": settings, "config": asdict(LadderConfig())}
    simulated = simulate(arguments)
    found["epochs"] = epochs(prepare(simulated, arguments.annotators), arguments.annotators, arguments.rounds)
    if not arguments.epochs_only:
        found["increments"] = increments(simulated, arguments)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    arguments.out.with_suffix(".md").write_text(markdown(found), encoding="utf-8")
    print(markdown(found))


if __name__ == "__main__":
    main()
