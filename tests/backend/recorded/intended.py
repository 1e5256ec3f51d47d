"""Differences from `recorded.json` that are meant: where, and why.

A place is a path through the file, as "projects/number/matrix/*/3": parts may be shell patterns, and everything below a
place is meant too. Once the file is recorded anew (`record`), the list is empty again.
"""

from __future__ import annotations

INTENDED: dict[str, str] = {}
