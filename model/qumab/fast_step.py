"""One training step on a GPU without a word to the host: autocast, fused AdamW, losses that add up on the device.

The forward and backward pass may be compiled, and the whole step captured as one CUDA graph for each batch size, which
is what small batches gain from: a step is some hundred launches. Captured steps read rows from a fixed buffer, so they
need resident features. On a CPU the same step runs in fp32 without either.

Invariant: captured or not, compiled or not, the step is the same up to rounding.

Shape legend: B tasks of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from model.qumab.folded import Reading
from model.qumab.resident import ResidentFeatures

Loss = Callable[[Tensor, Reading], Tensor]  # rows (B,), what there is to read -> a scalar
_WARM = 3  # steps before a capture: libraries allocate and kernels are chosen in the first ones


class TrainStep:
    """A step of a loss over parameters; `total` is the sum of the losses since the last `take_total`."""

    def __init__(
        self, loss: Loss, parameters: Sequence[nn.Parameter], *, learning_rate: float, weight_decay: float,
        clip: float,
    ) -> None:
        self._loss, self._parameters, self._clip = loss, list(parameters), clip
        self.device = self._parameters[0].device
        on_gpu = self.device.type == "cuda"
        # The rate is a tensor, so that a schedule reaches a captured step.
        self.rate = torch.tensor(learning_rate, device=self.device)
        self._optimiser = torch.optim.AdamW(
            self._parameters, lr=self.rate, weight_decay=weight_decay, fused=True, capturable=on_gpu
        )
        self.total = torch.zeros((), device=self.device)

    def __call__(self, rows: Tensor, reading: Reading) -> None:
        """`rows` (B,) on the device."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            loss = self._loss(rows, reading)
        loss.backward()  # type: ignore[no-untyped-call]
        if self._clip > 0:
            nn.utils.clip_grad_norm_(self._parameters, self._clip, foreach=self.device.type == "cuda")
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)
        self.total += loss.detach()

    def take_total(self) -> float:
        """The sum of the losses so far, which waits for the device, and starts again at nothing."""
        found = float(self.total)
        self.total.zero_()
        return found

    def captured(self, features: ResidentFeatures, rows: Tensor) -> Callable[[Tensor], None]:
        """This step as one CUDA graph for batches as large as `rows` (B,) on the device, which it is warmed up on.

        Call the result with the rows of each batch.
        """
        static = rows.clone()
        stream = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            for _ in range(_WARM):
                self(static, features.reading(static))
        torch.cuda.current_stream(self.device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self(static, features.reading(static))

        def replay(batch: Tensor) -> None:
            static.copy_(batch, non_blocking=True)
            graph.replay()

        return replay
