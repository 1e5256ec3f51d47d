"""`gunicorn _wsgi:app` and its job process: one for a data folder, started by web processes and never by an import."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.queues.children import ROOT
from tests.backend.small_services import CONFIG
from tests.backend.test_processes import counted, only, web_processes
from tests.backend.test_serve import KEY, ask, free_port, healthy, processes_of, until


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "POLYVOX_DATA_DIR": str(folder), "OMP_NUM_THREADS": "1", "LABEL_STUDIO_URL": "", **more}


@contextlib.contextmanager
def gunicorn(folder: Path, *options: str, **more: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--threads", "2", *options, "_wsgi:app"]
    with subprocess.Popen(command, cwd=ROOT, env=environment(folder, **more)) as process:
        try:
            yield port, process
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
            until(lambda: processes_of(folder) == [])
        finally:
            process.kill()


def job_processes(folder: Path) -> list[int]:
    def line(pid: int) -> bytes:
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/cmdline").read_bytes()
        return b""

    return [pid for pid in processes_of(folder) if b"--embedded" in line(pid)]


def test_several_web_processes_have_one_job_process_without_any_request_and_count_together(tmp_path: Path) -> None:
    with gunicorn(tmp_path, "--workers", "2") as (port, process):
        until(lambda: job_processes(tmp_path))
        until(lambda: healthy(port))
        assert len(job_processes(tmp_path)) == 1
        until(lambda: len(web_processes(tmp_path, process.pid)) == 2)
        web = web_processes(tmp_path, process.pid)
        for pid in web:
            with only(pid, web):
                until(lambda: healthy(port))
                assert ask(port, "/setup", {"project": KEY, "schema": CONFIG})["model_version"] == "consensus@r0"
        for pid in web:  # whichever is asked tells of both
            with only(pid, web):
                assert counted(port, "/setup") == 2


def test_a_preloading_master_starts_none_but_its_workers_do(tmp_path: Path) -> None:
    """Without gunicorn.conf.py as well: the first request starts it then."""
    empty = tmp_path / "gunicorn.conf.py"
    empty.write_text("")
    with gunicorn(tmp_path / "data", "--preload", "--config", str(empty)) as (port, process):
        until(lambda: healthy(port))
        until(lambda: job_processes(tmp_path / "data"))
        (job,) = job_processes(tmp_path / "data")
        parent = int(Path(f"/proc/{job}/stat").read_text().rpartition(")")[2].split()[1])
        assert parent not in (process.pid, 1)


@pytest.mark.parametrize("off", [{"POLYVOX_EMBEDDED_JOBS": "no"}, {"REDIS_URL": "redis://127.0.0.1:1"}], ids=str)
def test_none_where_it_is_switched_off_or_redis_is_set(tmp_path: Path, off: dict[str, str]) -> None:
    with gunicorn(tmp_path, **off) as (port, _):
        until(lambda: healthy(port))
        assert ask(port, "/")["status"] == "UP"
        assert job_processes(tmp_path) == []


def test_an_import_starts_nothing(tmp_path: Path) -> None:
    code = ("import threading, _wsgi; assert 'polyvox-supervisor' in _wsgi.app.extensions; "
            "assert [each.name for each in threading.enumerate()] == ['MainThread']")
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment(tmp_path), check=True)
