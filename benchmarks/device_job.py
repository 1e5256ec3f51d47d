"""The training job on a device: from recorded votes it trains, goes on and publishes; its predictions match the CPU's.

Runs the very job that the worker runs (store, features, trainer, gate, registry) twice on `--device`: on a first part
of the votes, then on all of them. Both published versions are then loaded on the CPU as well, and what they serve must
agree within `--tolerance`. The votes are those of the demo's simulated annotators on the sample that ships along.

    python -m benchmarks.device_job --device cuda [--encoder FOLDER] [--out results.json]
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from backend.bootstrap import Services, build_services
from backend.labeling import parse_config, read_task
from backend.settings import Settings
from demo.personas import PERSONAS
from demo.sample import CONTROL, LABEL_CONFIG, OBJECT, load
from model.ensemble.ladder import Ladder

PROJECT = "1.1700000000"
SEED = 20


def recorded_tasks(share: float) -> list[dict[str, Any]]:
    """Label Studio task JSON with annotations; of each annotator the first `share` of what they have labelled."""
    tasks = []
    for number, message in enumerate(load(), start=1):
        annotations = []
        for who, persona in enumerate(PERSONAS, start=1):
            draw = (number * 7919 + who * 104729) % 1000 / 1000
            if draw < 0.6 * share:  # gaps stay, as in a real project
                annotations.append(_annotation(number * 10 + who, who, persona.label(message, SEED)))
        tasks.append({
            "id": number, "data": {"text": message.text}, "created_at": "2026-01-01T00:00:00Z",
            "updated_at": f"2026-01-02T00:00:{int(share * 50):02d}Z", "annotations": annotations,
        })
    return tasks


def _annotation(number: int, annotator: int, label: str) -> dict[str, Any]:
    region = {"id": f"r{number}", "from_name": CONTROL, "to_name": OBJECT, "type": "choices",
              "value": {"choices": [label]}, "origin": "manual"}
    return {"id": number, "completed_by": annotator, "result": [region], "was_cancelled": False, "ground_truth": False,
            "lead_time": 4.0, "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}


def take_over(services: Services, share: float) -> int:
    """Put the recorded tasks into the store, as ingest does; returns the number of votes."""
    config = parse_config(LABEL_CONFIG)
    services.store.projects.ensure(PROJECT, title="recorded", label_config=LABEL_CONFIG)
    snapshots = [
        read_task(config, task, project_id=1, control_arm_percent=0, shown_since=None, known_annotators={})
        for task in recorded_tasks(share)
    ]
    services.store.tasks.take_over(PROJECT, snapshots)
    return services.store.votes.counts(PROJECT).total


def served(ladder: Ladder, services: Services, texts: Sequence[str]) -> np.ndarray:
    """Probabilities (B, A, C) of the sample's texts for all annotators."""
    return ladder.predict(services.features.texts(texts), list(ladder.annotators), texts=texts)[CONTROL].served


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--encoder", default="minilm", help="minilm or a folder with another text encoder")
    parser.add_argument("--tolerance", type=float, default=2e-3, help="largest difference of a probability")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    torch.set_float32_matmul_precision("highest")
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder), device=options.device, encoder=options.encoder)
        services = build_services(settings)
        try:
            report = measure(services, options.device)
        finally:
            services.close()
    report["tolerance"] = options.tolerance
    print(json.dumps(report, indent=2))
    if options.out:
        options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    good = all(run["verdict"] == "published" and run["largest_difference"] <= options.tolerance
               for run in report["runs"])
    return 0 if good else 1


def measure(services: Services, device: str) -> dict[str, Any]:
    """Train on part of the votes, go on with all of them; compare each published version with itself on the CPU."""
    texts = [message.text for message in load()]
    runs = []
    for share in (0.6, 1.0):
        votes = take_over(services, share)
        began = time.perf_counter()
        outcome = services.training.run(PROJECT, lambda done, note: None)
        seconds = time.perf_counter() - began
        loaded = services.registry.published(PROJECT)
        if loaded is None:
            raise SystemExit(f"nothing was published: {outcome['reason']}")
        on_device = served(loaded.ladder, services, texts)
        on_cpu = served(Ladder.load(services.settings.model_dir / loaded.version.path, device="cpu"), services, texts)
        runs.append({
            "votes": votes, "verdict": str(outcome["verdict"]), "version": outcome["version"],
            "reason": outcome["reason"], "started_from": loaded.version.figures["started_from"],
            "seconds": round(seconds, 2), "largest_difference": float(np.abs(on_device - on_cpu).max()),
            "same_label": float((on_device.argmax(-1) == on_cpu.argmax(-1)).mean()),
        })
    card = torch.cuda.get_device_name() if device.startswith("cuda") else platform.processor() or "CPU"
    return {"made": datetime.now(UTC).isoformat(timespec="seconds"), "device": device, "card": card,
            "torch": torch.__version__, "runs": runs}


if __name__ == "__main__":
    sys.exit(main())
