"""`MediaReader`: the bytes behind a task's value, from wherever they are."""

from __future__ import annotations

from backend.errors import MediaError
from backend.media.cache import FileCache
from backend.media.fetch import Fetcher
from backend.media.references import read_reference


class MediaReader:
    """Reads media of one Label Studio. Safe for several threads."""

    def __init__(self, fetcher: Fetcher, cache: FileCache, *, label_studio_url: str, max_bytes: int) -> None:
        self._fetcher = fetcher
        self._cache = cache
        self._label_studio_url = label_studio_url
        self._max_bytes = max_bytes

    def read(self, value: object, *, task: int | None = None) -> bytes:
        """The bytes of a medium; `task` is the Label Studio id of the task that holds the value.

        Raises MediaError with a sentence when the value is no address, must not be read, or cannot be read now.
        """
        if not isinstance(value, str):
            raise MediaError("The task holds no address of a file there.")
        found = read_reference(
            value, label_studio_url=self._label_studio_url, task=task, inline_limit=self._max_bytes
        )
        data = found.data
        if found.kind != "inline":
            data = self._cache.get(found.url, lambda file: self._fetcher.fetch(found.url, file))
        if not data:
            raise MediaError("The file is empty.")
        return data
