"""What decoding one file may cost, and how a process binds itself to that.

What a decoder allocates (`memory`) and the program and its libraries, up to 40 MB that no limit counts, stay below
500 MB. A result that is large (an hour of sound: 230 MB) comes from a decoder that may allocate little.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

MB = 1_000_000
WALL_S = 120.0  # for one file, all in all; under load a decoder gets less than a core


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """For one file."""

    memory: int  # bytes that the process may allocate
    result: int  # bytes of arrays that come back
    seconds: int = 60  # of processor time


COSTS: Mapping[str, Cost] = MappingProxyType({
    "picture": Cost(memory=490 * MB, result=20 * MB),
    "crops": Cost(memory=490 * MB, result=80 * MB),  # of `pool.BOXES` boxes
    "sound": Cost(memory=200 * MB, result=240 * MB),
    "frames": Cost(memory=490 * MB, result=60 * MB),
})
_MOST = Cost(memory=490 * MB, result=240 * MB)
_OPEN_FILES = 16
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000  # of <sched.h>
_NO_NEW_PRIVILEGES = 38  # of <sys/prctl.h>


def confine() -> None:
    """For the rest of this process: no more than `_MOST`, few open files, no dumps, no new privileges; where the
    system lets an ordinary user have that, no network. Call it before there are threads."""
    _limit(resource.RLIMIT_DATA, _MOST.memory, hard=_MOST.memory)
    _limit(resource.RLIMIT_FSIZE, _MOST.result, hard=_MOST.result)
    _limit(resource.RLIMIT_NOFILE, _OPEN_FILES, hard=_OPEN_FILES)
    _limit(resource.RLIMIT_CORE, 0, hard=0)
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        library.unshare(_NEW_USER | _NEW_NETWORK)  # containers often forbid it; then the limits remain


def begin(cost: Cost) -> None:
    """Bind this process to what the next file may cost. Beyond its processor time it is killed."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_DATA, cost.memory)
    _limit(resource.RLIMIT_FSIZE, cost.result)
    _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + cost.seconds)


def environment() -> dict[str, str]:
    """What a decoder is told: where programs and libraries lie, and to be small. No password and no token."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "OPENBLAS_CORETYPE") if name in os.environ}
    return kept | {
        "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2", "PYTHONDONTWRITEBYTECODE": "1",
    }


def _limit(kind: int, wanted: int, *, hard: int | None = None) -> None:
    """Set a limit, within the one that the system has set already."""
    most = resource.getrlimit(kind)[1]
    if hard is not None:
        most = hard if most == resource.RLIM_INFINITY else min(hard, most)
    soft = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(kind, (soft, most))
