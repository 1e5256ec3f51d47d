"""`serve --processes 2`: what one web process was told, the other knows; one job process; metrics of all."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.commands.serve import default_processes
from backend.queues.children import ROOT
from tests.backend.services.politeness import CONFIG, KEY, snapshot, texts, vote
from tests.backend.services.workshop import trained, workshop
from tests.backend.test_serve import ask, free_port, healthy, processes_of, until


def web_processes(folder: Path, master: int) -> list[int]:
    """Children of gunicorn's own process."""
    found = []
    for pid in processes_of(folder):
        with contextlib.suppress(OSError):
            if int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) == master:
                found.append(pid)
    return found


@contextlib.contextmanager
def only(pid: int, others: list[int]) -> Iterator[None]:
    """One of the processes alone answers meanwhile."""
    stopped = [each for each in others if each != pid]
    for each in stopped:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in stopped:
            os.kill(each, signal.SIGCONT)


def counted(port: int, route: str) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = re.findall(rf'^polyvox_requests_total{{.*route="{route}".*}} ([0-9.]+)$', text, re.MULTILINE)
    return int(sum(map(float, found)))


def test_what_one_web_process_was_told_the_other_knows(tmp_path: Path) -> None:
    trained(tmp_path)
    shop, port = workshop(tmp_path), free_port()
    shop.features.texts(texts())
    env = {**os.environ, "POLYVOX_DATA_DIR": str(tmp_path), "OMP_NUM_THREADS": "1", "LABEL_STUDIO_URL": "",
           "POLYVOX_CONTROL_ARM_PERCENT": "0"}
    command = [sys.executable, "-m", "backend", "serve", "--port", str(port), "--processes", "2"]

    def versions() -> list[str]:
        task: dict[str, Any] = {"id": 41, "data": {"text": texts()[40]}, "annotations": [], "predictions": []}
        answer = ask(port, "/predict", {"tasks": [task], "project": KEY, "label_config": CONFIG, "params": {}})
        return [each["model_version"] for each in answer["results"][0]]

    def of_both() -> list[list[str]]:
        found = []
        for pid in web:
            with only(pid, web):
                found.append(versions())
        return found

    with subprocess.Popen(command, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as process:
        try:
            until(lambda: len(web_processes(tmp_path, process.pid)) == 2 and healthy(port))
            web = web_processes(tmp_path, process.pid)
            for pid in web:
                with only(pid, web):
                    until(lambda: healthy(port))
            until(lambda: len(processes_of(tmp_path)) == 4)  # gunicorn's own, two that answer, one job process
            before = ["annotator:1@r1", "annotator:2@r1", "annotator:3@r1", "consensus@r1"]
            assert of_both() == [before] * 2  # both keep the answer now
            with only(web[0], web):
                hook = {"action": "ANNOTATION_CREATED", "project": {"id": 7, "created_at": "2025-11-28T00:00:00Z"},
                        "annotation": {"id": 1, "task": 41, "completed_by": 2}, "task": {"id": 41}}
                assert ask(port, "/webhook", hook)["marked"] == 1
            assert [task for task, _ in shop.store.tasks.dirty(KEY, 10)] == [41]
            shop.store.tasks.take_over(KEY, [snapshot(41, texts()[40], [vote(41, "2", "rude")])])  # as the sync does
            assert of_both() == [["annotator:1@r1", "annotator:3@r1", "consensus@r1"]] * 2
            shop.publish()
            assert of_both() == [["annotator:1@r2", "annotator:3@r2", "consensus@r2"]] * 2
            for pid in web:  # whichever is asked tells of both
                with only(pid, web):
                    assert (counted(port, "/predict"), counted(port, "/webhook")) == (6, 1)
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=60)
            until(lambda: processes_of(tmp_path) == [])
        finally:
            process.kill()
    shop.close()
    assert said.count("Polyvox answers on") == 1 and "Traceback" not in said


@pytest.mark.parametrize("cores, processes", [(1, 1), (2, 1), (7, 1), (8, 2), (16, 4), (128, 4)])
def test_a_web_process_for_each_four_cores(cores: int, processes: int) -> None:
    assert default_processes(cores) == processes
