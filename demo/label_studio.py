"""A real Label Studio, started from its own environment with the Polyvox middleware: SQLite, loopback only.

Both of Label Studio's switches against requests to private addresses are off, since Polyvox listens on 127.0.0.1. That
is right for a demo or a test on one machine, and wrong for a server that others can reach.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from demo.processes import LOOPBACK, DemoError, Service, clean_env

VERSION = "1.23.2"
REPOSITORY = Path(__file__).resolve().parent.parent
VENV_VARIABLE = "POLYVOX_LABEL_STUDIO_VENV"
FIRST_START_TIMEOUT_S = 600.0  # makes the database: about a minute on two idle cores
START_TIMEOUT_S = 120.0

# What a Label Studio on one person's machine asks of the internet, switched off.
QUIET = {"COLLECT_ANALYTICS": "false", "LATEST_VERSION_CHECK": "false", "SENTRY_DSN": "", "FRONTEND_SENTRY_DSN": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The account that Label Studio makes at its first start."""

    email: str
    password: str
    token: str  # legacy API token, 40 hexadecimal digits


def find_program(env: Mapping[str, str] = os.environ) -> Path:
    """The `label-studio` program of its own environment. Raises DemoError that says how to make one."""
    folder = Path(env.get(VENV_VARIABLE) or REPOSITORY / ".venv-label-studio")
    program = folder / "bin" / "label-studio"
    if not program.exists():
        raise DemoError(
            f"Label Studio is not installed in {folder}. Make its environment with\n"
            f"  python3 -m venv {folder} && {folder}/bin/pip install label-studio=={VERSION}\n"
            f"or point {VENV_VARIABLE} to an environment that has it."
        )
    return program


def label_studio(
    *, data: Path, port: int, owner: Owner, log: Path, extra_env: Mapping[str, str] | None = None
) -> Service:
    """A Label Studio service over the folder `data`, not started yet. `extra_env` holds settings of the middleware."""
    data.mkdir(parents=True, exist_ok=True)
    keep_secret_key(data)
    address = url(port)
    env = clean_env(
        DJANGO_SETTINGS_MODULE="labelstudio.polyvox_settings",
        PYTHONPATH=str(REPOSITORY),
        LABEL_STUDIO_BASE_DATA_DIR=str(data),
        LABEL_STUDIO_USERNAME=owner.email,
        LABEL_STUDIO_PASSWORD=owner.password,
        LABEL_STUDIO_USER_TOKEN=owner.token,
        LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN="true",
        LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK="true",
        ML_BLOCK_LOCAL_IP="false",
        SSRF_PROTECTION_ENABLED="false",
        PYTHONUNBUFFERED="1",
    ) | QUIET | dict(extra_env or {})
    command = [
        str(find_program()), "start", "--no-browser", "--internal-host", LOOPBACK, "--port", str(port),
        "--host", address,
    ]
    return Service("Label Studio", command, env=env, log=log, health=f"{address}/health", cwd=data)


def keep_secret_key(data: Path) -> None:
    """Give a new data folder its secret key. Label Studio (1.23.2) makes one itself, but once in fifty times it begins
    with a dollar sign, is read back as empty at the next start, and every session and token is void."""
    file = data / ".env"
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(f"SECRET_KEY={secrets.token_hex(32)}\n")


def url(port: int) -> str:
    return f"http://{LOOPBACK}:{port}"
