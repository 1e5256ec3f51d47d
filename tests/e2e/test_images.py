"""The built images, run by podman as compose runs them: read-only root, user 10001, no capabilities.

Build them first: `scripts/build_images.sh --store FOLDER`; then, as root,
`POLYVOX_IMAGES=FOLDER python -m pytest -m images tests/e2e/test_images.py`. An image that is not in the folder fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.processes import free_port

pytestmark = [pytest.mark.images, pytest.mark.timeout(900)]

STORE = os.environ.get("POLYVOX_IMAGES", "")
LARGEST_CPU = 1.6e9  # bytes
LOGIN = {"BASIC_AUTH_USER": "polyvox", "BASIC_AUTH_PASS": "p", "POLYVOX_WEBHOOK_SECRET": "s"}
LIMITS = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
          "--network", "host", "--cgroups", "disabled")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    program = ["podman", "--storage-driver", "vfs", "--root", f"{STORE}/containers", "--runroot", f"{STORE}/run",
               "--cgroup-manager", "cgroupfs", "--events-backend", "file"]
    return subprocess.run([*program, *words], capture_output=True, text=True)


def podman(*words: str) -> str:
    done = run(*words)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout + done.stderr


@pytest.fixture(params=["polyvox-cpu", "polyvox-cuda"])
def polyvox(request: pytest.FixtureRequest) -> str:
    return f"localhost/{request.param}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    os.chown(folder, 10001, 10001)
    return folder


@contextmanager
def container(image: str, data: Path, *command: str, **env: str) -> Iterator[str]:
    settings = [word for name, value in env.items() for word in ("--env", f"{name}={value}")]
    name = podman("run", "--detach", *LIMITS, "--volume", f"{data}:/data", *settings, image, *command).strip()
    try:
        yield name
    finally:
        podman("rm", "--force", "--time", "0", name)


def state(name: str) -> tuple[str, int]:
    found = json.loads(podman("inspect", name))[0]["State"]
    return found["Status"], found["ExitCode"]


def wait_for(url: str, name: str, seconds: float) -> bytes:
    until = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                return bytes(answer.read())
        except OSError:
            assert state(name)[0] == "running" and time.monotonic() < until, podman("logs", name)
            time.sleep(0.5)


def stops(name: str) -> None:
    """SIGTERM, as compose sends it, ends it in order within the time that compose gives."""
    begun = time.monotonic()
    podman("stop", "--time", "30", name)
    assert state(name) == ("exited", 0), podman("logs", name)
    assert time.monotonic() - begun < 30


def test_it_serves_health_as_user_10001_on_a_read_only_root_and_ends_in_order(polyvox: str, data: Path) -> None:
    port = str(free_port())
    with container(polyvox, data, "serve", "--host", "0.0.0.0", "--port", port, **LOGIN) as name:
        assert b'"UP"' in wait_for(f"http://127.0.0.1:{port}/health", name, 180)
        assert podman("exec", name, "id", "-u").strip() == "10001"
        assert "Read-only" in podman("exec", name, "sh", "-c", "touch /app/x 2>&1 || true")
        assert "No project yet" in podman("exec", name, "python", "-m", "backend", "status")
        for path in data.iterdir():
            assert path.stat().st_uid == 10001 and not path.stat().st_mode & 0o077, path
        stops(name)


def test_a_container_made_anew_on_the_same_volume_keeps_its_identity(polyvox: str, data: Path) -> None:
    for _ in range(2):  # another container, so another host name
        assert "copied or restored" not in podman(
            "run", "--rm", *LIMITS, "--volume", f"{data}:/data", polyvox, "status")


def test_a_worker_starts_and_ends_in_order(polyvox: str, data: Path) -> None:
    with container(polyvox, data, "worker") as name:
        until = time.monotonic() + 120
        while "waits for work" not in podman("logs", name):
            assert state(name)[0] == "running" and time.monotonic() < until, podman("logs", name)
            time.sleep(0.5)
        stops(name)


def test_its_health_check_tells_the_truth(polyvox: str, data: Path) -> None:
    with container(polyvox, data, "serve", "--host", "127.0.0.1", "--port", "9090") as name:
        wait_for("http://127.0.0.1:9090/health", name, 180)
        podman("healthcheck", "run", name)
    with container(polyvox, data, "worker") as name:
        assert run("healthcheck", "run", name).returncode != 0  # it listens nowhere


def test_no_compiler_and_no_cache_is_in_the_image(polyvox: str, data: Path) -> None:
    look = ("command -v gcc cc g++ make; "
            "ls -d /root/.cache /var/cache/apt/archives/*.deb /opt/venv/bin/pip /build 2>/dev/null; true")
    assert podman("run", "--rm", "--entrypoint", "sh", polyvox, "-c", look).strip() == ""


def test_the_cpu_image_is_small() -> None:
    size = int(podman("image", "inspect", "--format", "{{.Size}}", "localhost/polyvox-cpu"))
    assert size < LARGEST_CPU, f"{size / 1e9:.2f} GB"


def test_label_studio_starts_with_the_middleware(data: Path) -> None:
    with container("localhost/polyvox-label-studio", data) as name:
        wait_for("http://127.0.0.1:8080/health", name, 600)
        shown = podman("exec", name, "python", "-c", "import django; django.setup(); from django.conf import settings; "
                       "print(*settings.MIDDLEWARE)")
        assert "labelstudio.middleware" in shown
        assert podman("exec", name, "id", "-u").strip() == "10001"
