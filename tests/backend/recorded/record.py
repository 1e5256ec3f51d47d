"""What the real services say of the seeded projects: predictions, consensus, confidences, gaps and figures.

    python -m tests.backend.recorded.record tests/backend/recorded/recorded.json

writes what the code says now; it is written anew only where answers are meant to change. Store, training, /predict,
delivery, filled matrix, gaps and statistics are the real ones, the encoder hashes words, networks are narrow and
trained for two epochs.

Bits depend on the processor: libraries choose kernels for its instructions, which add in another order. So `main` runs
with the plainest kernels that each library has (`PLAIN`), and writes down what a short computation gives (`probe`).
Where another machine gives the same there, all the rest may be expected to be the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize

from backend.labeling import parse_config, read_task
from backend.services.gaps.documents import read_gaps
from backend.services.gaps.fill import filled, people_of
from backend.services.gaps.service import GapFilling
from backend.services.statistics import Statistics
from backend.services.statistics.codec import plain
from model.config import LadderConfig, NetworkConfig
from tests.backend.recorded.projects import LABELLED, PROJECTS, SeededProject, later_tasks, tasks_of
from tests.backend.services.delivery.sending import deliver
from tests.backend.services.politeness import KEY, LABEL_STUDIO_ID
from tests.backend.services.shelf import PredictionShelf
from tests.backend.services.workshop import Workshop, silent, workshop

Floats = NDArray[np.float64]

# Read when the libraries are loaded, so they must be set before the process begins.
PLAIN = {
    "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41", "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES":
        "AVX512_SPR AVX512_ICL AVX512_CNL AVX512_CLX AVX512_SKX AVX512CD AVX512F AVX2 FMA3 F16C AVX",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA,-FMA4,-AVX",
}
DIGITS = 9
NARROW = LadderConfig(folds=2, members_per_fold=1, consensus_samples=64, gate_margin=0.5, network=NetworkConfig(
    width=16, heads=2, blocks=1, epochs=2, warm_epochs=2, brief_epochs=1, batch_units=16))
LOOKED_INTO = (3, 12, LABELLED + 1, LABELLED + 3, 28)  # tasks of which everything that is said is kept
_TIMES = {"seconds", "computed_at", "version"}  # another value in each run


def record() -> dict[str, Any]:
    """Of every project what its services say, and the probe."""
    torch.set_num_threads(1)
    return {"probe": probe(), "projects": {name: _of_project(each) for name, each in PROJECTS.items()}}


def probe() -> str:
    """A digest of a few steps of what a training does: products, exponentials and a search for the least."""
    torch.manual_seed(0)
    x, w = torch.randn(48, 32), torch.randn(32, 16, requires_grad=True)
    optimiser = torch.optim.AdamW([w], lr=0.01)
    for _ in range(5):
        optimiser.zero_grad()
        (torch.softmax(torch.nn.functional.gelu(x @ w), -1).log() * 0.1).square().sum().backward()
        optimiser.step()
    a = w.detach().double().numpy()

    def objective(v: Floats) -> tuple[float, Floats]:
        return float(np.logaddexp(0.0, a @ v).sum() + v @ v), a.T @ (1 / (1 + np.exp(-a @ v))) + 2 * v

    found = minimize(objective, np.zeros(16), jac=True, method="L-BFGS-B").x
    return hashlib.sha256(w.detach().numpy().tobytes() + found.tobytes()).hexdigest()[:16]


def _of_project(project: SeededProject) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        shop = workshop(Path(folder), ladder=NARROW, min_votes=8, control_arm_percent=5.0)
        try:
            return _rounded(_said(shop, project))
        finally:
            shop.close()


def _said(shop: Workshop, project: SeededProject) -> dict[str, Any]:
    config = parse_config(f"<View>{project.config}</View>")

    def take_over(tasks: list[dict[str, Any]]) -> None:
        shop.store.tasks.take_over(KEY, [read_task(
            config, each, project_id=LABEL_STUDIO_ID, control_arm_percent=5.0, shown_since=None, known_annotators={})
            for each in tasks])

    shop.store.projects.ensure(KEY, title="Recorded", label_config=f"<View>{project.config}</View>")
    tasks = tasks_of(project)
    take_over(tasks)
    shop.features.texts([config.content(task["data"], task=task["id"]) for task in tasks])
    said: dict[str, Any] = {"before the first version": _matrix(shop)}
    said["trainings"] = [_training(shop)]
    if later := later_tasks(project):
        take_over(later)
    if project.later:
        said["trainings"].append(_training(shop))
    said["predict"] = _predictions(shop, tasks)
    said["delivered"] = _delivered(shop)
    said["matrix"] = _matrix(shop)
    said["probabilities"] = _probabilities(shop, config)
    said["gaps"] = _gaps(shop)
    said["statistics"] = _statistics(shop)
    return said


def _training(shop: Workshop) -> dict[str, Any]:
    outcome = shop.train()
    version = shop.store.versions.recent(KEY, limit=1)[0]
    return {"outcome": outcome, "figures": version.figures}


def _predictions(shop: Workshop, tasks: list[dict[str, Any]]) -> dict[str, Any]:
    """Task -> version -> what /predict answers."""
    asked = [{"id": task["id"], "data": task["data"], "annotations": []} for task in tasks]
    found = shop.prediction.answer(KEY, None, asked, deadline_s=300.0)
    return {str(task["id"]): {one["model_version"]: _shown(one) for one in each}
            for task, each in zip(tasks, found, strict=True) if task["id"] in LOOKED_INTO}


def _delivered(shop: Workshop) -> dict[str, Any]:
    shelf = PredictionShelf()
    deliver(shop, shelf)
    found: dict[str, Any] = {}
    for one in shelf.predictions:
        found.setdefault(str(one["task"]), {})[one["model_version"]] = _shown(one)
    return found


def _shown(prediction: Mapping[str, Any]) -> list[Any]:
    """The score, and of each region whose it is, the value and its score."""
    return [prediction["score"], *([each["from_name"], each["value"], each.get("score"), each.get("meta")]
                                   for each in prediction["result"])]


def _matrix(shop: Workshop) -> dict[str, Any]:
    """Control -> task -> [consensus, confidence, (label, probability) of each gap]."""
    project = shop.store.projects.get(KEY)
    assert project is not None
    board = _gap_filling(shop).board(project, parse_config(project.label_config))
    people = people_of(board)
    return {name: {str(row.task): [row.consensus, row.confidence,
                                   *([each.annotator, each.label, each.probability] for each in row.cells)]
                   for row in filled(board, name, people, only_gaps=True)} for name in board.spaces}


def _probabilities(shop: Workshop, config: Any) -> dict[str, Any]:
    """Control -> what the version says of the tasks looked into, for all its annotators and somebody unknown."""
    loaded = shop.registry.published(KEY)
    if loaded is None or not loaded.ladder.reads:
        return {}
    votes = shop.store.votes.current(KEY)
    contents = [config.content(task.data, task=task.id) for task in shop.store.tasks.get(KEY, list(LOOKED_INTO))]
    found = loaded.ladder.predict(
        shop.features.texts(contents), [*loaded.ladder.annotators, "nobody"], given=votes, texts=contents,
        units=[str(task) for task in LOOKED_INTO])
    return {name: {"served": each.served.tolist(), "consensus": each.consensus.tolist(),
                   "base models": {key: array.tolist() for key, array in each.base_models.items()}}
            for name, each in found.items()}


def _gaps(shop: Workshop) -> Any:
    outcome = _gap_filling(shop).run(KEY, silent)
    return {"outcome": outcome, "document": plain(read_gaps(shop.store, KEY))}


def _statistics(shop: Workshop) -> Any:
    statistics = Statistics(store=shop.store, registry=shop.registry, settings=shop.settings, clock=shop.clock,
                            features=shop.features)
    statistics.run(KEY, silent)
    return {"overview": plain(statistics.overview(KEY)), "consensus": plain(statistics.consensus(KEY)),
            "annotators": plain(statistics.annotators(KEY))}


def _gap_filling(shop: Workshop) -> GapFilling:
    nobody: Any = None
    return GapFilling(store=shop.store, label_studio=nobody, features=shop.features, registry=shop.registry,
                      settings=shop.settings, clock=shop.clock)


def _rounded(item: Any) -> Any:
    """JSON with numbers as they are kept."""
    if isinstance(item, Mapping):
        return {str(key): _rounded(each) for key, each in item.items() if key not in _TIMES}
    if isinstance(item, list | tuple):
        return [_rounded(each) for each in item]
    return round(float(item), DIGITS) if isinstance(item, float | np.floating) else item


def main() -> None:
    """Record in a process of its own, into the file named; it is started with `PLAIN` around it."""
    if any(os.environ.get(name) != value for name, value in PLAIN.items()):
        os.execve(sys.executable, [sys.executable, "-m", __spec__.name, *sys.argv[1:]], {**os.environ, **PLAIN})
    Path(sys.argv[1]).write_text(json.dumps(record(), separators=(",", ":"), ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
