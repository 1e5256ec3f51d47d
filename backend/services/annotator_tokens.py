"""Annotators' own access tokens: taken in, kept encrypted, handed out to the job that makes drafts.

Encryption is Fernet (AES-128-CBC with HMAC-SHA256) of the `cryptography` package, under POLYVOX_SECRET_KEY or the key
in `secret.key` in the data folder, which only its owner may read. It protects copies of the database; whoever can read
the data folder as well can read the tokens.

Invariants: a token is stored only after Label Studio said that it belongs to the annotator named; it appears in no log,
no error and no answer.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

from backend.errors import ClientError, SettingsError
from backend.ports import Clock, OpenDesk, Store
from backend.records import AnnotatorToken
from backend.settings import Settings

KEY_FILE = "secret.key"
LONGEST = 4096
UNREADABLE = (
    "The token of {} cannot be decrypted: the key has changed since. Restore POLYVOX_SECRET_KEY or secret.key, or add "
    "the token again."
)


@dataclass(frozen=True, slots=True, repr=False)
class Opened:
    """A token that can be used."""

    stored: AnnotatorToken
    token: str


class AnnotatorTokens:
    """All tokens of one installation."""

    def __init__(self, *, store: Store, settings: Settings, open_desk: OpenDesk, clock: Clock) -> None:
        self._store = store
        self._key = settings.secret_key
        self._key_file = settings.data_dir / KEY_FILE
        self._open_desk = open_desk
        self._clock = clock

    def add(self, scope: str, email: str, token: str) -> AnnotatorToken:
        """Keep a token for a project (its key) or for all projects (""), in place of an earlier one.

        Raises ClientError when it is no token or somebody else's, LabelStudioError when that cannot be found out.
        """
        token = token.strip()
        if not token or len(token) > LONGEST or not token.isascii() or not token.isprintable() or " " in token:
            raise ClientError("This is not an access token: it takes one line without spaces.")
        annotator, owner = self._open_desk(token).who()
        if owner.casefold() != email.strip().casefold():
            raise ClientError("This token belongs to another account than the one named; nothing was stored.")
        sealed = self._fernet(make=True).encrypt(token.encode()).decode()
        stored = AnnotatorToken(
            scope=scope, annotator=annotator, email=owner, sealed=sealed, added_at=self._clock()
        )
        self._store.tokens.put(stored)
        return stored

    def of(self, project: str) -> list[Opened]:
        """Usable tokens for a project; one that cannot be decrypted is left out, with a problem on its row."""
        stored = self._store.tokens.of(project)
        return [Opened(each, token) for each in stored if (token := self.unseal(each)) is not None]

    def unseal(self, stored: AnnotatorToken) -> str | None:
        """The token in the clear; None, with a problem on its row, when the key does not fit."""
        try:
            return self._fernet(make=False).decrypt(stored.sealed).decode()
        except InvalidToken:
            self.report(stored, UNREADABLE.format(stored.email))
            return None

    def report(self, stored: AnnotatorToken, problem: str) -> None:
        """Note what is wrong with a token, "" when nothing is; writes only where that is news."""
        if stored.problem != problem:
            self._store.tokens.set_problem(stored.scope, stored.annotator, problem)

    def _fernet(self, *, make: bool) -> Fernet:
        """Raises SettingsError when the key file is open to others or holds no key, InvalidToken when it is gone."""
        if self._key:
            return Fernet(self._key)
        if make and not self._key_file.exists():
            make_key_file(self._key_file, Fernet.generate_key)
        try:
            descriptor = os.open(self._key_file, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise InvalidToken from None
        with os.fdopen(descriptor, "rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise SettingsError(f"{self._key_file} can be read by others; run chmod 600 on it.")
            key = file.read(1024).strip()
        try:
            return Fernet(key)
        except ValueError:
            raise SettingsError(f"{self._key_file} does not hold a Fernet key.") from None


def make_key_file(path: Path, generate: Callable[[], bytes]) -> None:
    """Write a key that only its owner may read. When another process is quicker, its key stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".secret-")  # mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(generate() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(name, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(name)
