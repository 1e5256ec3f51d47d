"""Label configurations that were read, kept for the requests that bring them again, within a bound of their size.

Read, a configuration takes some 23 times its text in memory, and anybody may send them: a bound on how many are kept
would keep whatever their size is.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from backend.labeling.config import LabelConfig, parse_config

MOST_CHARACTERS = 1 << 20  # of all texts together: some 25 MB


class KeptConfigs:
    """`parse_config` with a memory, the least recently used go first. Safe for threads."""

    def __init__(self, *, most_characters: int = MOST_CHARACTERS) -> None:
        self._most = most_characters
        self._kept: OrderedDict[str, LabelConfig] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()

    def __call__(self, xml: str) -> LabelConfig:
        """Raises what `parse_config` raises, each time. A text beyond the bound is read each time as well."""
        with self._lock:
            found = self._kept.get(xml)
            if found is not None:
                self._kept.move_to_end(xml)
                return found
        config = parse_config(xml)  # without the lock: it may take seconds
        with self._lock:
            if len(xml) <= self._most and xml not in self._kept:
                self._kept[xml] = config
                self._characters += len(xml)
            while self._characters > self._most:
                gone, _ = self._kept.popitem(last=False)
                self._characters -= len(gone)
        return config
