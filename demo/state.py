"""What the demo remembers between runs: accounts, project and ports, in one file that only its owner may read."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from demo.client import Account
from demo.label_studio import Owner
from demo.processes import DemoError

OWNER_EMAIL = "demo@example.com"
POLYVOX_USER = "demo"
FILE = "demo.json"


@dataclass(kw_only=True)
class State:
    """Everything needed to start again. `project` is 0 until the project is complete."""

    folder: Path
    password: str  # of every account; the servers listen on this machine only
    owner_token: str
    webhook_secret: str
    annotators: Sequence[Account] = field(default_factory=tuple)
    project: int = 0
    label_studio_port: int = 0
    polyvox_port: int = 0
    polyvox_password: str = ""  # of POLYVOX_USER, for Polyvox' pages; "" asks for none

    @property
    def polyvox_login(self) -> tuple[str, str] | None:
        """User and password of Polyvox' pages, as `requests` takes them; None where none are asked for."""
        return (POLYVOX_USER, self.polyvox_password) if self.polyvox_password else None

    @property
    def owner(self) -> Owner:
        return Owner(email=OWNER_EMAIL, password=self.password, token=self.owner_token)

    def save(self) -> None:
        """Write the file anew; it never exists half-written."""
        kept = asdict(self)
        kept.pop("folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        scratch = self.folder / (FILE + ".new")
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(kept, file, indent=1)
        scratch.replace(self.folder / FILE)


def load(folder: Path) -> State:
    """The state kept in `folder`, or a fresh one. Raises DemoError when the file is damaged."""
    path = folder / FILE
    if not path.exists():
        return State(
            folder=folder, password=secrets.token_urlsafe(8), owner_token=secrets.token_hex(20),
            webhook_secret=secrets.token_urlsafe(24), polyvox_password=secrets.token_urlsafe(8),
        )
    try:
        kept: dict[str, Any] = json.loads(path.read_text())
        annotators = tuple(Account(**account) for account in kept.pop("annotators"))
        kept.setdefault("polyvox_password", secrets.token_urlsafe(8))  # state of a demo that asked for none
        return State(folder=folder, annotators=annotators, **kept)
    except (ValueError, TypeError, KeyError) as error:
        raise DemoError(f"{path} cannot be read. Start over with `python -m demo --fresh`.") from error
