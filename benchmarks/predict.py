"""/predict of one task with twenty annotators, beside what it cannot do without: the network, and the encoder.

Ours is the whole request through the web app: JSON in, guard, project, votes, forward, consensus, shaping, JSON out.
The baselines are the bare calls on the same task, annotators and threads.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from backend.app import create_app
from benchmarks.measure import REPEATS, Result, interleaved, median, over_repeats, p99
from benchmarks.stand import ANNOTATORS, KEY, open_task, trained
from demo.sample import LABEL_CONFIG


def run(folder: Path, *, rounds: int) -> Result:
    with trained(folder) as services:
        loaded = services.registry.published(KEY)
        assert loaded is not None
        ladder, client = loaded.ladder, create_app(services).test_client()
        people = [str(who) for who in range(1, ANNOTATORS + 1)]
        encoder = services.features._start().result()  # the one that the web process uses
        fresh = iter(range(10**9))

        def ask(task: dict[str, Any]) -> None:
            body = json.dumps({"tasks": [task], "project": KEY, "label_config": LABEL_CONFIG, "params": {}})
            answer = client.post("/predict", data=body, content_type="application/json").get_json()
            assert len(answer["results"][0]) == ANNOTATORS + 1, answer

        task = open_task(0)
        text = task["data"]["text"]
        tokens = services.features.texts([text])

        def new_text() -> str:
            return f"{text} ({next(fresh)})"

        calls = {
            "kept": lambda: ask(task),
            # Data that is not shown makes another question of it, for which nothing is kept but the encoded text.
            "cached": lambda: ask({**task, "data": {"text": text, "row": next(fresh)}}),
            "ladder": lambda: ladder.predict(tokens, people, texts=[text]),
            "network": lambda: ladder.committee.scores(tokens),
            "uncached": lambda: ask({**task, "data": {"text": new_text()}}),
            "bare uncached": lambda: ladder.predict(encoder.encode([new_text()]), people),
        }
        interleaved(calls, rounds=3)  # warm
        repeats = [interleaved(calls, rounds=max(1, rounds // REPEATS)) for _ in range(REPEATS)]
    ratios = [(median(r["cached"]) / median(r["ladder"]), median(r["cached"]) / median(r["network"]),
               median(r["uncached"]) / median(r["bare uncached"])) for r in repeats]
    lines = [
        over_repeats("the same question again: median", [1000 * median(r["kept"]) for r in repeats], "ms"),
        over_repeats("cached task, 20 annotators: median", [1000 * median(r["cached"]) for r in repeats], "ms"),
        over_repeats("... p99", [1000 * p99(r["cached"]) for r in repeats], "ms"),
        over_repeats("bare forward of the ladder: median", [1000 * median(r["ladder"]) for r in repeats], "ms"),
        over_repeats("bare forward of the networks alone: median", [1000 * median(r["network"]) for r in repeats],
                     "ms"),
        over_repeats("cached / bare forward of the ladder", [each[0] for each in ratios], "x", most=3.0),
        over_repeats("cached / networks alone", [each[1] for each in ratios], "x", most=3.0),
        over_repeats("uncached task: median", [1000 * median(r["uncached"]) for r in repeats], "ms"),
        over_repeats("uncached / (encoder + bare forward)", [each[2] for each in ratios], "x", most=1.5),
    ]
    return Result(
        name="predict", title="/predict of one task with 20 annotators", lines=lines,
        note=f"{REPEATS} x {max(1, rounds // REPEATS)} requests of each kind, in one process, one thread for torch.",
    )
