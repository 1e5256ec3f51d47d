"""The commands of the images, run here: the same entry points, files and environment, in the absence of an engine.

`image` puts together what the Dockerfile copies and nothing else; the entry points then run there with the environment
that the image would have and nothing of this process's own, beside a real Redis, as compose has them. So a module that
was forgotten, or a variable that does not exist, is found.
"""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.label_studio import find_program
from demo.processes import free_port
from docker.make_env import files
from tests.backend.queues.redis_server import redis_server
from tests.project.docker_files import ROOT, Stage, ignored, stages, words

pytestmark = pytest.mark.e2e

BIN = Path(sys.executable).parent
POLYVOX = stages(ROOT / "docker/Dockerfile")
LABEL_STUDIO = stages(ROOT / "docker/label-studio.Dockerfile")


def copied(stage: Stage, below: str, folder: Path) -> Path:
    """The files that a stage copies to paths below `below`, in `folder`, as .dockerignore lets them through."""
    for source, target in stage.copied():
        if not target.startswith(below):
            continue
        goal = folder / Path(target + (source if target.endswith("/") else "")).relative_to(below)
        for path in [ROOT / source, *sorted((ROOT / source).rglob("*"))]:
            if path.is_file() and not ignored(str(path.relative_to(ROOT))):
                copy = goal / path.relative_to(ROOT / source)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(path.read_bytes())
    return folder


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the image of Polyvox has in /app."""
    return copied(POLYVOX[0], "/build/app", tmp_path_factory.mktemp("image"))


def environment(data: Path) -> dict[str, str]:
    """The image's, and nothing of this process's own; with other folders for /data and the virtual environment."""
    path = f"{BIN}:/usr/bin:/bin"
    return POLYVOX[-1].env() | {"PATH": path, "POLYVOX_DATA_DIR": str(data), "HF_HOME": str(data)}


@contextmanager
def running(image: Path, data: Path, *command: str, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """The image's entry point with these arguments, in its environment."""
    log, program = data.parent / f"{command[0]}.log", words(POLYVOX[-1].last("ENTRYPOINT"))
    with log.open("wb") as output:
        process = subprocess.Popen([*program, *command], cwd=image, env=environment(data) | env, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield process
        assert process.poll() is None, log.read_text()
    finally:
        process.terminate()
        code = process.wait(60)
    assert code == 0, log.read_text()
    assert "Traceback" not in log.read_text() and "is ignored" not in log.read_text(), log.read_text()


def healthy(port: str) -> bool:
    """The image's own health check, at the port of this test."""
    check = words(POLYVOX[-1].last("HEALTHCHECK").partition("CMD ")[2])
    check = [sys.executable, *(word.replace(":9090", f":{port}") for word in check[1:])]
    return subprocess.run(check, env={}, capture_output=True, timeout=30).returncode == 0


def wait_for(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.5)


def test_web_and_worker_run_as_compose_runs_them(image: Path, tmp_path: Path) -> None:
    data, port = tmp_path / "data", str(free_port())
    data.mkdir(mode=0o700)
    secrets = files("owner@example.com")["polyvox.env"]
    command = words(POLYVOX[-1].last("CMD"))
    command[command.index("--port") + 1], command[command.index("--host") + 1] = port, "127.0.0.1"
    with redis_server(tmp_path) as redis:
        env = secrets | {"REDIS_URL": redis.url, "LABEL_STUDIO_URL": "http://127.0.0.1:9", "POLYVOX_URL": "http://a.b"}
        with running(image, data, *command, **env):
            wait_for(lambda: healthy(port))
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10)
            with running(image, data, "worker", **env) as worker:
                log = tmp_path / "worker.log"
                wait_for(lambda: "waits for RQ's rings" in log.read_text() or worker.poll() is not None)
                time.sleep(2)
    assert not list(image.rglob("__pycache__")), "the image's code is read-only"
    logged = (tmp_path / "serve.log").read_text() + (tmp_path / "worker.log").read_text()
    assert not [secret for name, secret in secrets.items() if name != "BASIC_AUTH_USER" and secret in logged]


def test_the_wsgi_entry_point_is_in_the_image(image: Path, tmp_path: Path) -> None:
    code = "import _wsgi; print(_wsgi.app.test_client().get('/health').status_code)"
    env = environment(tmp_path) | {"POLYVOX_EMBEDDED_JOBS": "no"}
    ran = subprocess.run([sys.executable, "-c", code], cwd=image, env=env, capture_output=True, text=True, timeout=120)
    assert ran.stdout.strip() == "200", ran.stderr


def test_label_studio_finds_the_middleware_in_its_image(tmp_path: Path) -> None:
    final = LABEL_STUDIO[-1]
    below = final.env()["PYTHONPATH"]
    code = ("import django; django.setup(); from django.conf import settings as s; print(s.MIDDLEWARE[-1], s.POLYVOX)")
    env = final.env() | {
        "PYTHONPATH": f"{copied(final, below, tmp_path / 'opt')}", "LABEL_STUDIO_BASE_DATA_DIR": str(tmp_path / "data"),
        "PATH": "/usr/bin:/bin", "DJANGO_DB": "sqlite", "POLYVOX_CONTROL_ARM_PERCENT": "12",
    }
    program = find_program()
    assert words(final.last("ENTRYPOINT"))[0] == program.name
    ran = subprocess.run([program.parent / "python", "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True,
                         timeout=180)
    assert "labelstudio.middleware.OwnPredictions Options(control_arm_percent=12.0" in ran.stdout, ran.stderr[-3000:]
