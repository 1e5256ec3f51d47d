"""Frozen features during training on a GPU: on the device when they fit, else streamed from pinned memory.

A step names tasks by index. Resident features are read by index where they lie (`folded.Reading`), so no batch is ever
copied together. Streamed ones are copied row by row from pinned memory by a stream of their own, one batch ahead: the
copy of the next batch runs while this one is computed, and a buffer is filled again only when its last reader is done.
On a CPU nothing is copied at all.

Invariant: both give the same tokens for the same rows (tested), and neither makes the host wait for the device.

Shape legend: N tasks, T tokens, D token width, B tasks of a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

from model.errors import ModelError
from model.qumab.folded import Reading


class Features(Protocol):
    """Frozen features that training reads in batches."""

    @property
    def tasks(self) -> int: ...

    def batches(self, order: Iterable[Tensor]) -> Iterator[tuple[Tensor, Reading]]:
        """For each batch of rows (B,) int64 on the CPU: the rows on the device and what there is to read."""
        ...


class ResidentFeatures:
    """All features on the device."""

    def __init__(self, tokens: Tensor, hidden: Tensor, device: torch.device) -> None:
        self.tokens, self.hidden = tokens.to(device), hidden.to(device)

    @property
    def tasks(self) -> int:
        return len(self.tokens)

    def reading(self, rows: Tensor) -> Reading:
        """`rows` (B,) on the device."""
        return Reading(tokens=self.tokens, rows=rows, hidden=self.hidden[rows])

    def batches(self, order: Iterable[Tensor]) -> Iterator[tuple[Tensor, Reading]]:
        for rows in order:
            there = rows.to(self.tokens.device, non_blocking=True)
            yield there, self.reading(there)


class StreamedFeatures:
    """Features in pinned memory, two batches of at most `largest` tasks on the device."""

    def __init__(self, tokens: Tensor, hidden: Tensor, device: torch.device, largest: int) -> None:
        self._on_gpu = device.type == "cuda"
        self._tokens = tokens.pin_memory() if self._on_gpu and not tokens.is_pinned() else tokens
        self._hidden = hidden.to(device)
        self._device, self._largest = device, largest
        if self._on_gpu:
            shape = (largest, *tokens.shape[1:])
            self._buffers = [torch.empty(shape, dtype=tokens.dtype, device=device) for _ in range(2)]
            self._copies = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
            # the last reader of a buffer is done
            self._read = [torch.cuda.Event() for _ in range(2)]  # type: ignore[no-untyped-call]
            self._own = torch.arange(largest, device=device)

    @property
    def tasks(self) -> int:
        return len(self._tokens)

    def batches(self, order: Iterable[Tensor]) -> Iterator[tuple[Tensor, Reading]]:
        if not self._on_gpu:
            for rows in order:
                yield rows, Reading(tokens=self._tokens, rows=rows, hidden=self._hidden[rows])
            return
        ahead = None
        for turn, rows in enumerate(order):
            coming = self._copy(rows, turn % 2)
            if ahead is not None:
                yield from self._hand_out(*ahead)
            ahead = (rows, turn % 2, coming)
        if ahead is not None:
            yield from self._hand_out(*ahead)

    def _copy(self, rows: Tensor, slot: int) -> torch.cuda.Event:
        """Start to copy rows into a buffer; the event says when they are there."""
        if len(rows) > self._largest:
            raise ModelError(f"a batch of {len(rows)} tasks is streamed through buffers for {self._largest}")
        buffer, done = self._buffers[slot], torch.cuda.Event()  # type: ignore[no-untyped-call]
        with torch.cuda.stream(self._copies):
            self._copies.wait_event(self._read[slot])
            for place, row in enumerate(rows.tolist()):
                buffer[place].copy_(self._tokens[row], non_blocking=True)
            done.record(self._copies)
        return done

    def _hand_out(self, rows: Tensor, slot: int, coming: torch.cuda.Event) -> Iterator[tuple[Tensor, Reading]]:
        torch.cuda.current_stream(self._device).wait_event(coming)
        there = rows.to(self._device, non_blocking=True)
        yield there, Reading(tokens=self._buffers[slot], rows=self._own[: len(rows)], hidden=self._hidden[there])
        self._read[slot].record(torch.cuda.current_stream(self._device))


def place(tokens: Tensor, hidden: Tensor, device: torch.device, *, largest: int, spare: float = 0.5) -> Features:
    """Features (N, T, D) and their padding (N, T; 0 or -inf) where they are read fastest.

    On a GPU they are resident when they take at most the share `spare` of its free memory. NaN raises ModelError.
    """
    bad = torch.cat([~torch.isfinite(part.flatten(1)).all(1) for part in torch.split(tokens, 256)])
    if bad.any():
        raise ModelError(
            f"the features of {int(bad.sum())} tasks hold NaN or infinity (the first is task {int(bad.nonzero()[0])}); "
            "encode them again"
        )
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        if tokens.numel() * tokens.element_size() > spare * free:
            return StreamedFeatures(tokens, hidden, device, largest)
    return ResidentFeatures(tokens, hidden, device)


def shuffled(tasks: int, size: int, epochs: int, seed: int) -> Iterator[Tensor]:
    """Whole batches of random rows, epoch after epoch; the rest of an epoch begins the next one."""
    rng = torch.Generator().manual_seed(seed)
    left = torch.empty(0, dtype=torch.int64)
    for _ in range(epochs):
        left = torch.cat([left, torch.randperm(tasks, generator=rng)])
        parts: Sequence[Tensor] = torch.split(left, size)
        yield from parts[:-1]
        left = parts[-1]
        if len(left) == size:
            yield left
            left = left[:0]
