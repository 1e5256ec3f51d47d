"""Keeps processes small: large blocks go back to the system at once; and torch in one thread, where requests wait.

glibc gives each thread an arena of its own and keeps what was freed; eight threads that each encode a batch once then
hold 200 MB for ever (measured: 784 MB without this, 600 MB with it, see docs/reliability.md). Other C libraries have no
such setting, and nothing is changed there. A job process whose two lanes train and count grew to 950 MB in ten minutes
and 1,137 MB in thirty without this; with it, it held 700 MB from the fifth minute to the tenth (the same settings of
glibc by its environment; longer was not measured). Trainings of a small project take some 3 % more processor time.

torch divides each of a forward's hundred small steps among all cores, and its threads spin while they wait for the next
one. Of one task that costs four times the processor time beside other load (measured on two cores: 25 ms instead of 6;
encoding one text 79 instead of 13) and gains nothing; several requests are answered side by side anyway.
"""

from __future__ import annotations

import ctypes

# Numbers of glibc's <malloc.h>.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGE = 1_000_000  # bytes
_ARENAS = 2


def compute_in_one_thread() -> None:
    """Of a web process, not of one that trains. Loads torch."""
    import torch

    torch.set_num_threads(1)


def return_large_blocks() -> bool:
    """Call once, before much is allocated. False where the C library cannot do it."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    wanted = ((_TRIM_THRESHOLD, _LARGE), (_MMAP_THRESHOLD, _LARGE), (_ARENA_MAX, _ARENAS))
    return all([mallopt(name, value) == 1 for name, value in wanted])
