"""An encoding job beside the bare loop over the encoder, on texts that neither has seen."""

from __future__ import annotations

from pathlib import Path

from backend.jobs import RUNNERS
from backend.records import JobKind
from benchmarks.measure import REPEATS, Result, over_repeats, timed
from benchmarks.stand import fill, task_json, trained
from demo.sample import Message, load

BATCH = 64


def run(folder: Path, *, rounds: int) -> Result:
    """`rounds` texts, spread over the repeats."""
    share = max(BATCH, rounds // REPEATS)
    messages = load()
    ratios, speeds = [], []
    with trained(folder) as services:
        encoder = services.features._start().result()
        for repeat in range(REPEATS):
            # A project of its own, so that the job has these texts and no others to do.
            key = f"{900 + repeat}.1700000000"
            texts = [f"{messages[index % len(messages)].text} <{repeat}.{index}>" for index in range(share)]
            fill(services, key, [
                task_json(index, Message(id=str(index), text=text), share=0.0)
                for index, text in enumerate(texts, start=1)
            ])
            job = services.store.jobs.enqueue(JobKind.ENCODE, key)
            ours = timed(lambda job=job: RUNNERS[JobKind.ENCODE](services, job, lambda done, note: None))
            assert all(services.features.cached(texts)), "the job left texts out"
            unseen = [f"{text}!" for text in texts]
            bare = timed(lambda texts=unseen: [
                encoder.encode(texts[at : at + BATCH]) for at in range(0, len(texts), BATCH)
            ])
            ratios.append(bare / ours)
            speeds.append(share / ours)
    lines = [
        over_repeats("texts encoded a second by the job", speeds, "texts"),
        over_repeats("speed of the job / bare encoder loop", ratios, "x", least=0.9),
    ]
    return Result(name="encode", title="Encoding job", lines=lines,
                  note=f"{REPEATS} x {share} short texts (reading the store, encoding, writing the cache).")
