"""The evaluation over all public sets: fits and asks every model, keeps cells, writes the report.

    python -m benchmarks.evaluation run --data FOLDER --out CELLS [--device cuda] [--workers 14] [--minutes 8]
    python -m benchmarks.evaluation report --data FOLDER --cells CELLS [--out benchmarks/results]

`run` goes on with whatever cells are missing, so it may be stopped at any time. It needs numpy, scipy, torch and
transformers, and defusedxml for reading the folders. FOLDER holds the sets of docs/evaluation.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from benchmarks.ablations import variants
from benchmarks.evaluation_sets import REMOVAL, SETS, Source, text_encoder
from model.evaluate.baselines import BASELINES
from model.evaluate.cells import CellStore
from model.evaluate.contenders import Contender, contenders
from model.evaluate.design import Setting
from model.evaluate.harness import Job, Plan, jobs, run_job
from model.evaluate.ours import Ours

FOLDS = 5
REPEATED = frozenset({"served", "network", "pooled-bias", "dawid-skene", "matrix-factorisation"})
UNSEEN = (Setting(), Setting(visible=0.5))
REMOVED = tuple(Setting(drop=share) for share in (0.4, 0.6, 0.8))


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is to be run; equal in every process."""

    source: Source
    cells: Path
    models: tuple[str, ...]
    seeds: int
    removal: tuple[str, ...]
    unseen: bool
    repeated: frozenset[str]
    ablations: bool = False

    def plan(self, name: str) -> Plan:
        """The plan of one set."""
        if self.ablations:
            return Plan(
                contenders=variants(), settings=(Setting(),), folds=FOLDS, seeds=1, device=self.source.device,
            )
        settings = (*(UNSEEN if self.unseen else ()), *(REMOVED if name in self.removal else ()))
        return Plan(
            contenders=everybody(self.models), settings=settings, folds=FOLDS, seeds=self.seeds,
            repeated=self.repeated, device=self.source.device,
        )


def everybody(models: Sequence[str]) -> list[Contender]:
    """Ours and baselines by name; no names: all."""
    ours = Ours()
    return contenders(models or [*ours.models, *BASELINES], ours)


class Bench:
    """One process's view of the work: problems are read once."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.problem = cache(work.source.problem)

    @cache  # noqa: B019 - a bench lives as long as its process
    def store(self, name: str) -> CellStore:
        return CellStore(self.work.cells / name, fingerprint=self.problem(name).fingerprint, folds=FOLDS)

    def missing(self, names: Sequence[str], skip: frozenset[str]) -> list[tuple[str, int]]:
        """(set, number of the job) of fits whose cells are not there; of every set the same fold and seed first.

        Of these the sets with the most votes come first, since they take longest.
        """
        found = []
        for name in names:
            for number, job in enumerate(jobs(self.work.plan(name))):
                there = [self.store(name).has(key) or f"{name}/{key.file_name}" in skip for key in job.keys]
                if not all(there):
                    found.append((*_order(job), -len(self.problem(name).votes), name, number))
        return [(name, number) for *_, name, number in sorted(found)]

    def run(self, name: str, number: int) -> str:
        job = jobs(self.work.plan(name))[number]
        for cell in run_job(self.problem(name), job, self.work.plan(name)):
            self.store(name).save(cell)
        return f"{name}: {job.title}"


def _order(job: Job) -> tuple[int, bool, bool, float, int]:
    """First seeds first, and in them what is compared first: ours, then everything else, then removals."""
    return job.seed, bool(job.drop), job.contender.models[0] != "served", job.drop, job.fold


_BENCH: list[Bench] = []  # of a worker process; set once, when it starts


def _start(work: Work, started: Synchronized[int]) -> None:
    import torch

    torch.set_num_threads(1)
    with started.get_lock():
        number, started.value = started.value, started.value + 1
    if work.source.device == "cuda":  # "cuda" is a process's current GPU, so fits spread over all there are
        torch.cuda.set_device(number % torch.cuda.device_count())
    warnings.simplefilter("ignore", FutureWarning)
    _BENCH.append(Bench(work))


def _run(item: tuple[str, int]) -> str:
    began = time.perf_counter()
    try:
        title = _BENCH[0].run(*item)
    except Exception as error:  # one fit that fails must not end the others; it is told, and its cells stay missing
        return f"FAILED {item[0]} job {item[1]}: {type(error).__name__}: {error}"
    return f"{title} ({time.perf_counter() - began:.1f} s)"


def run(work: Work, names: Sequence[str], workers: int, until: float, skip: frozenset[str]) -> int:
    """Run what is missing until it is done or the time (of time.monotonic) has come; returns how many fits failed."""
    bench = Bench(work)
    for name in names:
        bench.problem(name)  # encodes
        print(f"{name} is read", flush=True)
    todo = bench.missing(names, skip)
    failed = 0
    processes = multiprocessing.get_context("spawn")
    pool = processes.Pool(workers, _start, (work, processes.Value("i", 0)))
    try:
        for done, line in enumerate(_until(pool.imap_unordered(_run, todo), until), start=1):
            failed += line.startswith("FAILED")
            print(f"[{done}/{len(todo)}] {line}", flush=True)
    finally:
        pool.terminate()
        pool.join()
    return failed


def _until(results: Iterator[str], until: float) -> Iterator[str]:
    while (left := until - time.monotonic()) > 0:
        try:
            yield results.next(timeout=left)  # type: ignore[attr-defined]
        except StopIteration:
            return
        except multiprocessing.TimeoutError:
            print("the time is over; whole cells are kept", flush=True)
            return


def parser() -> argparse.ArgumentParser:
    main_parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = main_parser.add_subparsers(dest="step", required=True)
    for name in ("run", "report"):
        step = steps.add_parser(name)
        step.add_argument("--data", type=Path, required=True, help="folder with the sets, one folder each")
        step.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET")
    step = steps.choices["run"]
    step.add_argument("--encoder", default="minilm", help="minilm or a folder with another text encoder")
    step.add_argument("--device", default="cpu")
    step.add_argument("--tokens", type=Path, help="where encoded texts are kept; default: beside the cells")
    step.add_argument("--out", type=Path, required=True, help="folder for the cells")
    step.add_argument("--models", nargs="+", default=[], metavar="MODEL", help="default: all")
    step.add_argument("--seeds", type=int, default=3, help=f"seeds of {', '.join(sorted(REPEATED))}; others get one")
    step.add_argument("--repeat", nargs="+", default=[], metavar="MODEL", help="more models with all seeds")
    step.add_argument("--removal", nargs="*", choices=SETS, default=list(REMOVAL), metavar="SET",
                      help="sets on which training votes are removed")
    step.add_argument("--removal-only", action="store_true", help="leave out the unseen and half-visible settings")
    step.add_argument("--ablations", action="store_true", help="the variants of benchmarks.ablations instead")
    step.add_argument("--workers", type=int, default=1)
    step.add_argument("--minutes", type=float, default=1e6, help="stop after this time")
    step.add_argument("--skip", type=Path, help="a file with names of cells that exist elsewhere, SET/FILE on a line")
    step = steps.choices["report"]
    step.add_argument("--cells", type=Path, required=True)
    step.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    return main_parser


def main(arguments: Sequence[str] | None = None) -> int:
    began = time.monotonic()
    options = parser().parse_args(arguments)
    if options.step == "report":
        from benchmarks.evaluation_report import write

        write(options.data, options.cells, options.sets, options.out)
        return 0
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    cells = options.out
    source = Source(
        data=options.data, tokens=options.tokens or cells.parent / f"{cells.name}-tokens", encoder=options.encoder,
        encoder_id=text_encoder(options.encoder, "cpu").id, device=options.device,
    )
    work = Work(
        source=source, cells=cells, models=tuple(options.models), seeds=options.seeds,
        removal=tuple(options.removal), unseen=not options.removal_only, repeated=REPEATED | set(options.repeat),
        ablations=options.ablations,
    )
    skip = frozenset(options.skip.read_text(encoding="utf-8").split()) if options.skip else frozenset[str]()
    failed = run(work, options.sets, options.workers, began + 60 * options.minutes, skip)
    print(json.dumps({"failed": failed, "seconds": round(time.monotonic() - began, 1)}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
