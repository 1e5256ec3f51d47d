"""What the processes have in common that are started as children: a name, and an environment that leads them home."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from backend.settings import Settings

ROOT = Path(__file__).resolve().parents[2]  # where `python -m backend` finds the package
SETTLED_S = 60.0  # a child that ran this long had a good start


def new_name() -> str:
    """A name for a process that claims jobs, as "<host>:<random>". Never used twice, unlike a process id, since what is
    claimed under the name of a dead process is taken away from it."""
    return f"{socket.gethostname()[:64]}:{uuid.uuid4().hex[:12]}"


def child_environment(settings: Settings) -> Mapping[str, str]:
    """The parent's environment, with paths made absolute, so that the child finds the same folders and package."""
    path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(part for part in path if part),
        "POLYVOX_DATA_DIR": str(settings.data_dir),
        "MODEL_DIR": str(settings.model_dir),
        "DATABASE_URL": settings.database_url,
    }


def close_input(child: subprocess.Popen[bytes]) -> None:
    """Tell a child to end; it may be gone already."""
    if child.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
