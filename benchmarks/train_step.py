"""Images a second of a Q-Former training step on a GPU: ours against a plain loop, and against what the card can do.

    python -m benchmarks.train_step [--images 4300 --tokens 257 --token-width 1408 --layers 12] [--out FILE.json]

STREET-size work: random features, 10 annotators, 5 controls of 6 classes, no dropout on either side, gradients clipped
and AdamW on both. The plain loop is the Q-Former of transformers (SDPA) under bf16 autocast with resident features and
one Python loop over annotators x controls; ours is `model.qumab.qformer_layers`. Peaks are measured in the same run.

Operations: of the order that needs fewer, forward and backward. Tokens need no gradient, so a product with tokens
counts twice in a step, every other one three times; what is computed once a batch counts as nothing.
Bytes: the tokens read once in each layer that reads them, forward and backward, and the optimiser's state a step.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.train_step_report import markdown, summary
from benchmarks.train_work import ANNOTATORS, CLASSES, CONTROLS, Ours, Plain, Work, agreement, kernel_agreement
from model.qumab.fast_step import TrainStep
from model.qumab.qformer_layers import QFormerShape
from model.qumab.resident import ResidentFeatures, StreamedFeatures, shuffled

RATE, DECAY, CLIP = 1e-4, 0.01, 1.0


def seconds(
    step: Callable[[], object], *, warm: int, steps: int, device: torch.device, windows: int = 3
) -> list[float]:
    """Seconds of a step in each of several windows of steps."""
    for _ in range(warm):
        step()
    found = []
    for _ in range(windows):
        wait(device)
        begun = time.perf_counter()
        for _ in range(steps):
            step()
        wait(device)
        found.append((time.perf_counter() - begun) / steps)
    return found


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peaks(device: torch.device) -> dict[str, float]:
    """Measured ceilings: bf16 matrix products in operations a second, copies in bytes a second (read and written)."""
    size, cells = (8192, 2**30) if device.type == "cuda" else (512, 2**22)
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    product = min(seconds(lambda: torch.mm(a, b), warm=3, steps=10, device=device))
    source = torch.randn(cells, device=device)
    target = torch.empty_like(source)
    copy = min(seconds(lambda: target.copy_(source), warm=2, steps=5, device=device))
    return {"operations_per_s": 2.0 * size**3 / product, "bytes_per_s": 2.0 * 4 * cells / copy}


def plain_step(work: Work, batch: int) -> Callable[[], None]:
    model = Plain(work.shape).to(work.device).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    order = endless(work, batch)

    def step() -> None:
        rows = next(order).to(work.device)
        with torch.autocast(work.device.type, torch.bfloat16):
            loss = model(work.tokens[rows], work.votes[rows])
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()

    return step


def our_step(work: Work, batch: int, *, compiled: bool, graph: bool, streamed: bool = False) -> Callable[[], None]:
    model = Ours(work.shape).to(work.device).train()
    if compiled:
        torch.compiler.reset()  # what was compiled for other batch sizes would count against the limit
        for layer in model.qformer.layers:
            layer.compile(dynamic=False, fullgraph=True)
    step = TrainStep(
        lambda rows, reading: model(reading, work.votes[rows]), list(model.parameters()), learning_rate=RATE,
        weight_decay=DECAY, clip=CLIP,
    )
    hidden = torch.zeros(work.tokens.shape[:2])
    order = endless(work, batch)
    if streamed:
        batches = StreamedFeatures(work.tokens.cpu(), hidden, work.device, batch).batches(order)
        return lambda: step(*next(batches))
    features = ResidentFeatures(work.tokens, hidden, work.device)
    if graph:
        replay = step.captured(features, next(order).to(work.device))
        return lambda: replay(next(order))
    batches = features.batches(order)
    return lambda: step(*next(batches))


def endless(work: Work, batch: int) -> Iterator[Tensor]:
    return shuffled(len(work.tokens), batch, 1_000_000, 0)


def measure(make: Callable[[], Callable[[], None]], batch: int, device: torch.device, steps: int) -> dict[str, Any]:
    """Images a second and the memory that a way of training takes; a failure for want of memory is told as such."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    begun = time.perf_counter()
    try:
        step = make()
        taken = seconds(step, warm=4, steps=steps, device=device)
    except torch.OutOfMemoryError:
        return {"batch": batch, "images_per_s": 0.0, "note": "out of memory"}
    peak = torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else 0.0
    middle = sorted(taken)[len(taken) // 2]
    return {
        "batch": batch, "images_per_s": batch / middle, "low": batch / max(taken), "high": batch / min(taken),
        "step_ms": 1e3 * middle, "gib": peak, "took_s": time.perf_counter() - begun,
    }


def build(arguments: argparse.Namespace, device: torch.device) -> Work:
    shape = QFormerShape(
        width=arguments.width, heads=arguments.heads, layers=arguments.layers, inner=4 * arguments.width,
        token_width=arguments.token_width, dropout=0.0,
    )
    torch.manual_seed(0)
    size = (arguments.images, arguments.tokens, arguments.token_width)
    tokens = torch.randn(size, device=device, dtype=torch.bfloat16)
    votes = torch.randint(-1, CLASSES, (arguments.images, ANNOTATORS, CONTROLS), device=device)
    return Work(shape=shape, tokens=tokens, votes=votes, device=device)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Everything, in one run; prints as it goes."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    work = build(arguments, device)
    report: dict[str, Any] = {
        "card": torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU", "torch": torch.__version__,
        "settings": {key: value for key, value in vars(arguments).items() if key != "out"},
        "kernels": kernel_agreement(device), "agreement": agreement(work), "peaks": peaks(device),
    }
    print(json.dumps(report), flush=True)
    rows: list[dict[str, Any]] = []

    def note(name: str, found: Mapping[str, Any]) -> None:
        rows.append({"name": name, **found})
        print(json.dumps(rows[-1]), flush=True)

    for size in arguments.plain:
        note("plain loop", measure(partial(plain_step, work, size), size, device, arguments.steps))
    best = max((row for row in rows), key=lambda row: row["images_per_s"])["batch"]
    for way in arguments.ways:
        for size in arguments.ours:
            make = partial(
                our_step, work, size, compiled="compiled" in way, graph="graph" in way, streamed="streamed" in way
            )
            note(f"ours, {way}", measure(make, size, device, arguments.steps))
    note("plain loop", measure(partial(plain_step, work, best), best, device, arguments.steps))
    report["rows"] = rows
    report["parameters"] = sum(parameter.numel() for parameter in Ours(work.shape).parameters())
    report["summary"] = summary(report)
    return report


def profile(work: Work, batch: int, way: str) -> str:
    """Where the time of a step goes, by kernel."""
    step = our_step(work, batch, compiled="compiled" in way, graph=False)
    for _ in range(5):
        step()
    wait(work.device)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as found:
        for _ in range(3):
            step()
        wait(work.device)
    return str(found.key_averages().table(sort_by="cuda_time_total", row_limit=32, max_name_column_width=70))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("images", 4300), ("tokens", 257), ("token-width", 1408), ("width", 768), ("heads", 12),
                        ("layers", 12), ("steps", 10)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--plain", type=int, nargs="+", default=[64, 128, 256, 512, 1024])
    parser.add_argument("--ours", type=int, nargs="+", default=[256, 512, 1024, 2048])
    parser.add_argument("--ways", nargs="+", default=["eager", "eager graph", "compiled graph", "compiled streamed"])
    parser.add_argument("--profile", default="", help="print a table of kernels for this way at the largest batch")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    report = run(arguments)
    print(json.dumps(report["summary"], indent=1))
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        arguments.out.with_suffix(".md").write_text(markdown(report), encoding="utf-8")
    if arguments.profile:
        device = torch.device("cuda")
        print(profile(build(arguments, device), max(arguments.ours), arguments.profile))


if __name__ == "__main__":
    main()
