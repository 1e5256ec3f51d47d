"""The token cache: fp16 arrays in LMDB, keyed by sha256(content) + encoder id.

It is a cache: losing an entry costs time, never correctness. So an entry that fails its checksum counts as absent, a
database that cannot be opened, or was cut off, is begun anew, and an LMDB error in reading or writing is logged and
means "not cached". Any number of threads and processes may use one folder; within a process one `TokenCache` per
folder may be open.

Layout: database `tokens`: key -> header + fp16 bytes; `order`: big-endian nanoseconds + key -> key, oldest first;
`meta`: b"bytes" -> total size of the values. All three change in one transaction. Over the cap the oldest go first.
Shape legend: T tokens, D dimension.
"""

from __future__ import annotations

import hashlib
import logging
import os
import struct
import threading
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
from numpy.typing import NDArray

log = logging.getLogger(__name__)

_HEADER = struct.Struct(">4sIII")  # magic, T, D, CRC-32 of the array's bytes
_MAGIC = b"PVT1"
_BYTES = b"bytes"


class TokenCache:
    """get / put of token arrays; opened on first use and again after a fork."""

    def __init__(self, folder: Path, *, max_mb: float) -> None:
        self._folder = folder
        self._cap = int(max_mb * 2**20)
        self._opening = threading.Lock()
        self._env: Any = None  # lmdb.Environment (the package has no types)
        self._databases: tuple[Any, Any, Any] = (None, None, None)
        self._pid = 0

    def get(self, encoder_id: str, texts: Sequence[str]) -> list[NDArray[np.float16] | None]:
        """Tokens (T, D) of each text, None for what is absent or damaged."""
        try:
            env, tokens, _, _ = self._open()
            with env.begin(buffers=True) as txn:
                return [_unpack(txn.get(_key(encoder_id, text), db=tokens)) for text in texts]
        except lmdb.Error as error:
            log.warning("token cache could not be read: %s", error)
            return [None] * len(texts)

    def put(self, encoder_id: str, texts: Sequence[str], tokens: Sequence[NDArray[np.float16]]) -> None:
        """Store tokens (T, D) of each text and evict the oldest entries over the cap."""
        entries = {_key(encoder_id, text): _pack(array) for text, array in zip(texts, tokens, strict=True)}
        try:
            self._store(entries, cap=self._cap)
        except lmdb.MapFullError:  # fragmented: large values need neighbouring pages
            try:
                self._store({}, cap=self._cap // 2)
                self._store(entries, cap=self._cap)
            except lmdb.Error as error:
                log.warning("token cache could not be written: %s", error)
        except lmdb.Error as error:
            log.warning("token cache could not be written: %s", error)

    def size_bytes(self) -> int:
        """Total size of the cached arrays."""
        env, _, _, meta = self._open()
        with env.begin() as txn:
            return int.from_bytes(txn.get(_BYTES, b"", db=meta), "big")

    def close(self) -> None:
        """Close the file in this process. The cache can be used again."""
        with self._opening:
            if self._env is not None and self._pid == os.getpid():
                self._env.close()
            self._env = None

    def _store(self, entries: dict[bytes, bytes], *, cap: int) -> None:
        env, tokens, order, meta = self._open()
        with env.begin(write=True) as txn:
            total = int.from_bytes(txn.get(_BYTES, b"", db=meta), "big")
            for key, packed in entries.items():
                old = txn.get(key, db=tokens)
                if old is None:
                    txn.put(time.time_ns().to_bytes(8, "big") + key, key, db=order)
                txn.put(key, packed, db=tokens)
                total += len(packed) - (0 if old is None else len(old))
            with txn.cursor(db=order) as oldest:
                while total > cap and oldest.first():
                    key = oldest.value()
                    value = txn.pop(key, db=tokens)
                    total -= 0 if value is None else len(value)
                    oldest.delete()
            txn.put(_BYTES, max(total, 0).to_bytes(8, "big"), db=meta)

    def _open(self) -> tuple[Any, Any, Any, Any]:
        with self._opening:
            if self._env is not None and self._pid != os.getpid():
                self._env.close()  # inherited by fork: this only forgets it, the parent keeps its own
                self._env = None
            if self._env is None:
                try:
                    self._env = self._environment()
                except (lmdb.InvalidError, lmdb.CorruptedError, lmdb.VersionMismatchError) as error:
                    log.warning("token cache is damaged and begins anew: %s", error)
                    for name in ("data.mdb", "lock.mdb"):
                        (self._folder / name).unlink(missing_ok=True)
                    self._env = self._environment()
                self._pid = os.getpid()
                self._env.reader_check()  # places of killed readers, which would keep old pages alive
                tokens, order, meta = (self._env.open_db(name) for name in (b"tokens", b"order", b"meta"))
                self._databases = tokens, order, meta
            return (self._env, *self._databases)

    def _environment(self) -> Any:
        self._folder.mkdir(parents=True, exist_ok=True)
        # Twice the cap, since freed pages are only reused where a value fits; the file is sparse.
        env = lmdb.open(str(self._folder), map_size=2 * self._cap + 2**26, max_dbs=3, max_readers=512, metasync=False)
        needed = (env.info()["last_pgno"] + 1) * env.stat()["psize"]  # pages are written before what counts them
        if (self._folder / "data.mdb").stat().st_size < needed:
            env.close()
            raise lmdb.CorruptedError("its file was cut off")  # reading behind its end would kill the process
        return env


def _key(encoder_id: str, text: str) -> bytes:
    content = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return content + hashlib.sha256(encoder_id.encode()).digest()[:8]  # ids may be longer than LMDB's 511 bytes


def _pack(tokens: NDArray[np.float16]) -> bytes:
    data = np.ascontiguousarray(tokens, dtype="<f2").tobytes()
    return _HEADER.pack(_MAGIC, *tokens.shape, zlib.crc32(data)) + data


def _unpack(packed: memoryview | None) -> NDArray[np.float16] | None:
    """(T, D), or None where the entry is absent or is not what was written."""
    if packed is None or len(packed) < _HEADER.size:
        return None
    magic, rows, columns, checksum = _HEADER.unpack_from(packed)
    data = packed[_HEADER.size :]
    if magic != _MAGIC or len(data) != rows * columns * 2 or zlib.crc32(data) != checksum:
        return None
    return np.frombuffer(data, dtype="<f2").astype(np.float16).reshape(rows, columns)  # astype copies out of the map
