"""EfficientNet-Lite0 up to its last feature map, the default eye of Polyvox: 3.4 M parameters, runs on any laptop.

Layout after the published model (Tan & Le 2019; the Lite variant has no squeeze-and-excitation and ReLU6 for Swish).
Parameter names are those of the published PyTorch weights, so that they load as they are; convolutions with stride 2
pad as TensorFlow does ("SAME": more to the right and below), which is how the weights were trained.

Shape legend: B images, 224 pixels a side, 7 x 7 = 49 grid cells, D = 1280.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SIDE = 224
DIM = 1280
# repeats, channels, stride, kernel, expansion
_STAGES = ((1, 16, 1, 3, 1), (2, 24, 2, 3, 6), (2, 40, 2, 5, 6), (3, 80, 2, 3, 6), (3, 112, 1, 5, 6), (4, 192, 2, 5, 6),
           (1, 320, 1, 3, 6))  # fmt: skip


class EfficientNetLite0(nn.Module):
    """Pixels (B, 3, 224, 224), scaled by `scale`, -> grid (B, 1280, 7, 7)."""

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = nn.Conv2d(3, 32, 3, stride=2, bias=False)
        self._bn0 = nn.BatchNorm2d(32, eps=1e-3)
        blocks, channels = [], 32
        for repeats, out, stride, kernel, expansion in _STAGES:
            for index in range(repeats):
                blocks.append(_Block(channels, out, stride if index == 0 else 1, kernel, expansion))
                channels = out
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = nn.Conv2d(channels, DIM, 1, bias=False)
        self._bn1 = nn.BatchNorm2d(DIM, eps=1e-3)

    def forward(self, pixels: Tensor) -> Tensor:
        """The grid (B, 1280, 7, 7)."""
        x = F.relu6(self._bn0(_same(self._conv_stem, pixels)))
        for block in self._blocks:
            x = block(x)
        grid: Tensor = F.relu6(self._bn1(self._conv_head(x)))
        return grid


class _Block(nn.Module):
    """Inverted bottleneck: widen, filter each channel, narrow; with a shortcut where shapes allow it."""

    def __init__(self, channels: int, out: int, stride: int, kernel: int, expansion: int) -> None:
        super().__init__()
        hidden = channels * expansion
        self._shortcut = stride == 1 and channels == out
        self._expands = expansion > 1
        if self._expands:
            self._expand_conv = nn.Conv2d(channels, hidden, 1, bias=False)
            self._bn0 = nn.BatchNorm2d(hidden, eps=1e-3)
        self._depthwise_conv = nn.Conv2d(hidden, hidden, kernel, stride=stride, groups=hidden, bias=False)
        self._bn1 = nn.BatchNorm2d(hidden, eps=1e-3)
        self._project_conv = nn.Conv2d(hidden, out, 1, bias=False)
        self._bn2 = nn.BatchNorm2d(out, eps=1e-3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = F.relu6(self._bn0(self._expand_conv(x))) if self._expands else x
        y = F.relu6(self._bn1(_same(self._depthwise_conv, y)))
        y = self._bn2(self._project_conv(y))
        return x + y if self._shortcut else y


def _same(convolution: nn.Conv2d, x: Tensor) -> Tensor:
    """A convolution whose output has ceil(input / stride) cells a side."""
    kernel, stride, side = convolution.kernel_size[0], convolution.stride[0], x.shape[-1]
    total = max((-(-side // stride) - 1) * stride + kernel - side, 0)
    before = total // 2
    return convolution(F.pad(x, (before, total - before, before, total - before)))  # type: ignore[no-any-return]


def scale(pixels: Tensor) -> Tensor:
    """uint8 pixels (B, H, W, 3) -> what the weights were trained on (B, 3, H, W), about -1 to 1."""
    return (pixels.permute(0, 3, 1, 2).to(torch.float32) - 127.0) / 128.0
