"""The built images, run as compose runs them: read-only root, user 10001, no capabilities.

Build them first: `scripts/build_images.sh --store FOLDER`; then, as root,
`POLYVOX_IMAGES=FOLDER python -m pytest -m images tests/e2e/test_images.py`. An image that is not in the folder fails.

No engine is needed: buildah mounts the image's files and tells its configuration; `unshare`, read-only bind mounts,
`chroot` and `setpriv` make the rest, with the network of this machine.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from demo.processes import free_port

pytestmark = [pytest.mark.images, pytest.mark.timeout(900)]

STORE = os.environ.get("POLYVOX_IMAGES", "")
LARGEST_CPU = 1.6e9  # bytes
LOGIN = {"BASIC_AUTH_USER": "polyvox", "BASIC_AUTH_PASS": "p", "POLYVOX_WEBHOOK_SECRET": "s"}
ENTER = """
set -e
mount --bind "$ROOT" "$ROOT"
for each in proc dev sys; do mount --rbind /$each "$ROOT/$each"; done
mount -t tmpfs tmpfs "$ROOT/tmp"
echo "127.0.0.1 localhost" > "$ROOT/etc/hosts"
mount --bind "$DATA" "$ROOT/data"
mount -o remount,ro,bind "$ROOT"
exec chroot "$ROOT" /usr/bin/setpriv --reuid ${IDS%:*} --regid ${IDS#*:} --clear-groups --no-new-privs \\
    --bounding-set=-all --inh-caps=-all /usr/bin/env -i "$@"
"""


def buildah(*words: str) -> str:
    program = ["buildah", "--storage-driver", "vfs", "--root", f"{STORE}/containers", "--runroot", f"{STORE}/run"]
    done = subprocess.run([*program, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Image:
    """An image's files, mounted, and its configuration."""

    def __init__(self, name: str) -> None:
        self.container = buildah("from", "--pull-never", f"localhost/{name}")
        self.root = buildah("mount", self.container)
        self.about: dict[str, Any] = json.loads(buildah("inspect", "--type", "image", f"localhost/{name}"))
        self.config = self.about["Docker"]["config"]

    def command(self, *words: str, **env: str) -> list[str]:
        """What `unshare` is called with to run words in the working folder of the image."""
        settings = [*self.config["Env"], *(f"{name}={value}" for name, value in env.items())]
        there = ["/bin/sh", "-c", f"cd {self.config['WorkingDir']} && exec \"$@\"", "sh"]
        return ["unshare", "--mount", "sh", "-c", ENTER, "sh", *settings, *there, *words]

    def run(self, data: Path, *words: str) -> tuple[int, str]:
        """Run it to its end: exit code, and all that it said."""
        done = subprocess.run(self.command(*words), capture_output=True, text=True, env=self._outside(data))
        return done.returncode, done.stdout + done.stderr

    @contextmanager
    def started(self, data: Path, *words: str, **env: str) -> Iterator[Started]:
        """Its entry point with these words, until the block ends."""
        log = data.parent / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(self.command(*self.config["Entrypoint"], *words, **env), stdout=output,
                                       stderr=subprocess.STDOUT, env=self._outside(data))
        try:
            yield Started(process, log)
        finally:
            process.kill()
            process.wait()

    def _outside(self, data: Path) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "ROOT": self.root, "DATA": str(data), "IDS": self.config["User"]}


class Started:
    """A process of an image."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    def said(self) -> str:
        return self._log.read_text()

    def wait_for(self, words: str, seconds: float) -> None:
        until = time.monotonic() + seconds
        while words not in self.said():
            assert self.process.poll() is None and time.monotonic() < until, self.said()
            time.sleep(0.2)

    def answers(self, url: str, seconds: float) -> bytes:
        until = time.monotonic() + seconds
        while True:
            try:
                with urllib.request.urlopen(url, timeout=2) as answer:
                    return bytes(answer.read())
            except OSError:
                assert self.process.poll() is None and time.monotonic() < until, self.said()
                time.sleep(0.5)

    def status(self, name: str) -> str:
        """A line of /proc/PID/status."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(line.partition(":")[2].strip() for line in lines.splitlines() if line.startswith(f"{name}:"))

    def stops(self) -> None:
        """SIGTERM ends it in order within the time that compose gives."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, self.said()
        assert "Traceback" not in self.said()


@pytest.fixture(scope="module", params=["polyvox-cpu", "polyvox-cuda"])
def polyvox(request: pytest.FixtureRequest) -> Iterator[Image]:
    image = Image(request.param)
    yield image
    buildah("rm", image.container)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o711)
    folder = tmp_path / "data"
    folder.mkdir()
    os.chown(folder, 10001, 10001)
    return folder


def test_it_serves_as_user_10001_on_a_read_only_root_and_ends_in_order(polyvox: Image, data: Path) -> None:
    port = free_port()
    with polyvox.started(data, "serve", "--host", "0.0.0.0", "--port", str(port), **LOGIN) as server:
        assert b'"UP"' in server.answers(f"http://127.0.0.1:{port}/health", 180)
        assert set(server.status("Uid").split()) == {"10001"} and int(server.status("CapBnd"), 16) == 0
        assert "No project yet" in polyvox.run(data, *polyvox.config["Entrypoint"], "status")[1]
        for path in data.iterdir():
            assert path.stat().st_uid == 10001 and not path.stat().st_mode & 0o077, path
        server.stops()
    assert "Read-only" in polyvox.run(data, "touch", "/app/x")[1]


def test_its_settings_are_read_and_a_bad_one_is_refused(polyvox: Image, data: Path) -> None:
    code, said = polyvox.run(data, "env", "POLYVOX_MIN_VOTES=many", *polyvox.config["Entrypoint"], "status")
    assert code == 2 and "POLYVOX_MIN_VOTES takes a whole number" in said


def test_a_container_made_anew_on_the_same_volume_keeps_its_identity(polyvox: Image, data: Path) -> None:
    folder = data
    for name in ("data", "elsewhere"):  # other mounts of the same folder
        folder = folder.rename(data.parent / name)
        code, said = polyvox.run(folder, *polyvox.config["Entrypoint"], "status")
        assert code == 0 and "copied or restored" not in said


def test_a_worker_starts_and_ends_in_order(polyvox: Image, data: Path) -> None:
    with polyvox.started(data, "worker") as worker:
        worker.wait_for("waits for work", 120)
        worker.stops()


def test_its_health_check_tells_the_truth(polyvox: Image, data: Path) -> None:
    check = polyvox.config["Healthcheck"]["Test"]
    assert check[0] == "CMD"
    port = free_port()
    words = [re.sub(r":9090\b", f":{port}", word) for word in check[1:]]
    assert polyvox.run(data, *words)[0] != 0
    with polyvox.started(data, "serve", "--port", str(port)) as server:
        server.answers(f"http://127.0.0.1:{port}/health", 180)
        assert polyvox.run(data, *words)[0] == 0


def test_no_compiler_and_no_cache_is_in_the_image(polyvox: Image, data: Path) -> None:
    root = Path(polyvox.root)
    unwanted = ["usr/bin/gcc", "usr/bin/cc", "usr/bin/g++", "usr/bin/make", "root/.cache", "build", "opt/venv/bin/pip"]
    assert [name for name in unwanted if (root / name).exists()] == []
    assert not list((root / "var/cache/apt/archives").glob("*.deb"))


def test_the_cpu_image_is_small() -> None:
    container = buildah("from", "--pull-never", "localhost/polyvox-cpu")
    root = Path(buildah("mount", container))
    size = sum(path.lstat().st_size for path in root.rglob("*"))
    buildah("rm", container)
    assert size < LARGEST_CPU, f"{size / 1e9:.2f} GB"


def test_label_studio_starts_with_the_settings_module(data: Path) -> None:
    image = Image("polyvox-label-studio")
    try:
        quiet = {"LATEST_VERSION_CHECK": "false", "COLLECT_ANALYTICS": "false"}  # as docker/make_env.py has them
        with image.started(data, **quiet) as server:
            server.answers("http://127.0.0.1:8080/health", 600)
            assert set(server.status("Uid").split()) == {"10001"}
        look = "import django; django.setup(); from django.conf import settings; print(*settings.MIDDLEWARE)"
        assert "labelstudio.middleware" in image.run(data, "python", "-c", look)[1]
    finally:
        buildah("rm", image.container)
