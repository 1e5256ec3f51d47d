"""What a run of `train_step` says: ratios, operations, floors, and the page of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.train_work import operations
from model.qumab.qformer_layers import QFormerShape

_OPTIMISER_BYTES = 28.0  # a parameter and step: gradient, weight and two moments read, the last three written

Row = Mapping[str, Any]


def summary(report: Mapping[str, Any]) -> dict[str, Any]:
    """Ratio, operations, floors and shares of the best rows; and the ratio at every batch size that both have."""
    settings, peak = report["settings"], report["peaks"]
    shape = QFormerShape(
        width=settings["width"], heads=settings["heads"], layers=settings["layers"], inner=4 * settings["width"],
        token_width=settings["token_width"],
    )
    tokens = settings["tokens"]
    resident = [row for row in report["rows"] if row["name"] != "plain loop" and "streamed" not in row["name"]]
    ours, plain = _best(resident or report["rows"]), _best(_plain(report))
    counts = {order: operations(shape, tokens, folded=order == "folded") for order in ("folded", "projected")}
    order = min(counts, key=lambda name: counts[name]["step"])
    reads = len(range(0, shape.layers, shape.every))
    moved = 2.0 * reads * 2 * tokens * shape.token_width + _OPTIMISER_BYTES * report["parameters"] / ours["batch"]
    by_operations = peak["operations_per_s"] / counts[order]["step"]
    by_bytes = peak["bytes_per_s"] / moved
    floor = min(by_operations, by_bytes)
    return {
        "ours": ours, "plain": plain, "ratio": ours["images_per_s"] / plain["images_per_s"],
        "ratio by batch": _ratios(resident, _plain(report)), "cheaper order": order, "operations per image": counts,
        "bytes per image": moved, "floor by operations, images/s": by_operations, "floor by bytes, images/s": by_bytes,
        "share of floor": ours["images_per_s"] / floor, "MFU": ours["images_per_s"] / by_operations,
        "MFU of the plain loop": plain["images_per_s"] / by_operations,
        "targets": {"ratio at least 5": ours["images_per_s"] >= 5 * plain["images_per_s"],
                    "share of floor at least 25 %": ours["images_per_s"] >= 0.25 * floor},
    }


def _plain(report: Mapping[str, Any]) -> list[Row]:
    return [row for row in report["rows"] if row["name"] == "plain loop"]


def _best(rows: Sequence[Row]) -> Row:
    return max(rows, key=lambda row: float(row["images_per_s"]))


def _ratios(ours: Sequence[Row], plain: Sequence[Row]) -> dict[str, float]:
    sizes = sorted({row["batch"] for row in ours} & {row["batch"] for row in plain})
    best = {
        size: [_best([row for row in rows if row["batch"] == size])["images_per_s"] for rows in (ours, plain)]
        for size in sizes
    }
    return {str(size): mine / theirs for size, (mine, theirs) in best.items() if theirs}


def markdown(report: Mapping[str, Any]) -> str:
    """The page."""
    found, settings = report["summary"], report["settings"]
    head = ["| | batch | images/s (range) | step ms | GiB |", "|---|---|---|---|---|"]
    parts = [
        "# A Q-Former training step",
        f"`python -m benchmarks.train_step`, {report['card']}, torch {report['torch']}: {settings['images']} images x "
        f"{settings['tokens']} tokens x {settings['token_width']} random features, 10 annotators, 5 controls of 6 "
        f"classes, {settings['layers']} layers x {settings['width']}, bf16 autocast, no dropout, gradients clipped and "
        f"AdamW for both. {report.get('note', '')}".strip(),
        "\n".join([*head, *map(_row, report["rows"])]),
        _verdicts(found, report["peaks"]),
        "Relative differences from fp32 (the plain loop's with the same weights beside): "
        + "; ".join(f"{name} {value:.1e}" for name, value in report["agreement"].items()) + ".",
    ]
    return "\n\n".join(parts) + "\n"


def _row(row: Row) -> str:
    if not row["images_per_s"]:
        return f"| {row['name']} | {row['batch']} | {row['note']} | | |"
    return (
        f"| {row['name']} | {row['batch']} | {row['images_per_s']:,.0f} ({row['low']:,.0f} to {row['high']:,.0f}) | "
        f"{row['step_ms']:.1f} | {row['gib']:.1f} |"
    )


def _verdicts(found: Mapping[str, Any], peak: Mapping[str, float]) -> str:
    hit = {True: "hit", False: "**miss**"}
    counts, targets = found["operations per image"], found["targets"]
    by_batch = ", ".join(f"{ratio:.1f}x at {size}" for size, ratio in found["ratio by batch"].items())
    lines = [
        ("ours / plain loop, each at its best batch", f"{found['ratio']:.2f}x", "at least 5x",
         hit[targets["ratio at least 5"]]),
        ("the same at equal batches", by_batch, "", ""),
        ("share of the floor", f"{100 * found['share of floor']:.1f} %", "at least 25 %",
         hit[targets["share of floor at least 25 %"]]),
        ("MFU (of the plain loop: by the same, cheaper count)",
         f"{100 * found['MFU']:.1f} % ({100 * found['MFU of the plain loop']:.1f} %)", "", ""),
        ("GFLOP an image and step, tokens folded / projected",
         f"{counts['folded']['step'] / 1e9:.2f} / {counts['projected']['step'] / 1e9:.2f}", "", ""),
        ("GFLOP an image, forward, folded / projected",
         f"{counts['folded']['forward'] / 1e9:.2f} / {counts['projected']['forward'] / 1e9:.2f}", "", ""),
        ("floor of the cheaper order, by operations / by bytes, images/s",
         f"{found['floor by operations, images/s']:,.0f} / {found['floor by bytes, images/s']:,.0f}", "", ""),
        ("peaks in this run: matrix product / copy",
         f"{peak['operations_per_s'] / 1e12:.0f} TFLOP/s / {peak['bytes_per_s'] / 1e12:.2f} TB/s", "", ""),
    ]
    return "| | | target | |\n|---|---|---|---|\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)
