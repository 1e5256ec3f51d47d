"""The file: a plain tar that begins with `manifest.json`, which names every other member with its size and SHA-256.

Nothing of an archive is believed before it is compared: a member that the manifest does not name, names twice, names
with another size or another hash is refused, and so is any name that could lead out of the folder, and whatever is no
plain file. Owners, modes and links of the tar are not looked at: what is written is ours alone (mode 600)."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from backend.errors import BackupError
from backend.ports import Progress

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE, MODELS, KEY = "polyvox.sqlite3", "models", "secret.key"
BLOCK = 1 << 20  # bytes
LONGEST_MANIFEST = 64 << 20  # bytes; some hundred thousand files
LONGEST_NAME = 1024
DAMAGED = "The archive is damaged: {}. Nothing was changed; take another one."


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One file of an archive."""

    name: str
    size: int  # bytes
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What an archive says of itself."""

    polyvox: str  # version that made it
    schema: str  # of the database
    made_at: str  # ISO 8601, UTC
    files: tuple[Entry, ...]
    format: int = FORMAT

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(each.size for each in self.files)

    def to_json(self) -> bytes:
        """The first member."""
        return json.dumps(asdict(self), indent=1).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Manifest:
        """Raises BackupError for what is no manifest, or one of a newer version."""
        try:
            about = json.loads(text)
            form = about["format"]
            if not isinstance(form, int) or form > FORMAT:
                raise BackupError("The archive was made by a newer version of Polyvox; update Polyvox first.")
            files = tuple(_entry(each) for each in about["files"])
            found = cls(polyvox=str(about["polyvox"]), schema=str(about["schema"]), made_at=str(about["made_at"]),
                        files=files, format=form)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BackupError(DAMAGED.format("its manifest cannot be read")) from error
        if len({each.name for each in files}) != len(files) or DATABASE not in {each.name for each in files}:
            raise BackupError(DAMAGED.format("its manifest names a file twice, or no database"))
        return found


def _entry(about: Mapping[str, Any]) -> Entry:
    name, size, digest = about["name"], about["size"], about["sha256"]
    if not (isinstance(name, str) and isinstance(digest, str) and type(size) is int and size >= 0):
        raise ValueError("an entry of the manifest")
    if not is_ours(name):
        raise BackupError("The archive names a file that is not one of a backup; nothing was changed.")
    return Entry(name=name, size=size, sha256=digest)


def is_ours(name: str) -> bool:
    """Whether a name is one that backups have: the database, the key, or a file below the checkpoints."""
    if name in (DATABASE, KEY):
        return True
    parts = name.split("/")
    plain = name.isprintable() and "\\" not in name and len(name) <= LONGEST_NAME
    return plain and len(parts) > 1 and parts[0] == MODELS and not {"", ".", ".."} & set(parts)


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(file: IO[bytes], manifest: Manifest, folder: Path, progress: Progress) -> None:
    """Write an archive of the files in `folder`. Raises BackupError when one changed since the manifest was made."""
    done = 0
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        _add(tar, MANIFEST, io.BytesIO(text := manifest.to_json()), len(text))
        for entry in manifest.files:
            with (folder / entry.name).open("rb") as source:
                hashed = _Hashed(source)
                _add(tar, entry.name, hashed, entry.size)
                if hashed.hexdigest() != entry.sha256 or source.read(1):
                    raise BackupError(f"{entry.name} changed while it was written; run the backup again.")
            done += entry.size
            progress(done / max(manifest.size, 1), f"wrote {entry.name}")


def _add(tar: tarfile.TarFile, name: str, source: Any, size: int) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mode = size, 0o600
    tar.addfile(about, source)


class _Hashed:
    """A file that hashes what is read from it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.hexdigest = self._hash.hexdigest

    def read(self, size: int) -> bytes:
        block = self._file.read(size)
        self._hash.update(block)
        return block


class Archive:
    """An archive that is read; make it with `opened`."""

    def __init__(self, tar: tarfile.TarFile, manifest: Manifest) -> None:
        self._tar = tar
        self.manifest = manifest

    def extract(self, folder: Path, progress: Progress) -> None:
        """Write all files below an empty folder and flush them. Raises BackupError."""
        wanted, done = {each.name: each for each in self.manifest.files}, 0
        while (member := self._tar.next()) is not None:
            entry = wanted.pop(member.name, None)
            if entry is None or member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.size != entry.size \
                    or member.sparse is not None:
                raise BackupError(DAMAGED.format("it does not hold what its manifest says"))
            self._write(member, folder.joinpath(*PurePosixPath(entry.name).parts), entry)
            done += entry.size
            progress(done / max(self.manifest.size, 1), f"read {entry.name}")
        if wanted:
            raise BackupError(DAMAGED.format(f"{len(wanted)} of its files are missing"))

    def _write(self, member: tarfile.TarInfo, path: Path, entry: Entry) -> None:
        for folder in reversed(path.parents):
            folder.mkdir(exist_ok=True, mode=0o700)
        source = self._tar.extractfile(member)
        assert source is not None  # it is a plain file
        hashed = _Hashed(source)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            while block := hashed.read(BLOCK):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        if hashed.hexdigest() != entry.sha256:
            raise BackupError(DAMAGED.format(f"{entry.name} is not what was written"))


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """An archive with its manifest read. Raises BackupError, also out of the block, for one that cannot be read."""
    try:
        with tarfile.open(path, mode="r:") as tar:
            yield Archive(tar, Manifest.from_json(_first(tar)))
    except (tarfile.TarError, EOFError, UnicodeError, ValueError, OverflowError) as error:
        raise BackupError(DAMAGED.format("it is no backup, or it is cut off")) from error


def _first(tar: tarfile.TarFile) -> bytes:
    member = tar.next()
    file = tar.extractfile(member) if member is not None and member.isreg() else None
    if member is None or file is None or member.name != MANIFEST or member.size > LONGEST_MANIFEST:
        raise BackupError("This file is no backup of Polyvox: it does not begin with a manifest.")
    return file.read()
