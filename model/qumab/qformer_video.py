"""The video build of the paper: frames are read by a Q-Former of their own, annotators read what it found.

A frame Q-Former, the same for every frame, lets K frame queries read the patch tokens of one frame; the position of the
frame is added to what they found; then annotator queries read the F K frame tokens with a second Q-Former.

Invariants: padding frames change nothing; the order of frames matters only through their positions; permuting
annotators permutes the output. Here tokens do have a gradient (they come from a trained part), so the kernel for
frozen tokens stays out.

Shape legend: B videos, F frames, P patch tokens of a frame, D patch width, K frame queries, d width, Q = A + 1 queries,
C classes of all controls side by side. One member only: frame tokens differ from member to member.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from model.config import NetworkConfig
from model.errors import ModelError
from model.qumab.attention import normal
from model.qumab.folded import Reading
from model.qumab.qformer import QFormerNetwork
from model.qumab.qformer_layers import QFormer, QFormerShape


class VideoQFormerNetwork(nn.Module):
    """Logits of every annotator, and of an unknown one, for videos."""

    def __init__(
        self, annotators: int, classes: int, patch_width: int, config: NetworkConfig, rng: torch.Generator, *,
        frame_queries: int = 32, frame_layers: int = 2, most_frames: int = 96,
    ) -> None:
        """`frame_layers` of the frame Q-Former; `config` is that of the annotators' one."""
        super().__init__()
        if frame_queries < 1 or most_frames < 1:
            raise ModelError("a video network needs at least one frame query and one frame")
        shape = QFormerShape(
            width=config.width, heads=config.heads, layers=frame_layers, inner=4 * config.width,
            token_width=patch_width, dropout=config.dropout,
        )
        self.frame_queries = normal((1, 1, frame_queries, config.width), 1.0, rng)
        self.frames = QFormer(1, shape, rng)
        self.position = normal((1, most_frames, 1, config.width), 0.5, rng)
        self.annotators = QFormerNetwork(1, annotators, classes, config.width, config, rng)

    def forward(self, patches: Tensor, mask: Tensor, rng: torch.Generator | None = None) -> Tensor:
        """`patches` (B, F, P, D), `mask` (B, F) True for real frames -> logits (1, B, Q, C).

        Raises ModelError for more frames than there are positions.
        """
        tokens, seen = self.frame_tokens(patches, mask, rng)
        found: Tensor = self.annotators(tokens, seen, rng)
        return found

    def frame_tokens(self, patches: Tensor, mask: Tensor, rng: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """(B, F K, d), and which of them are of real frames, (B, F K)."""
        videos, frames, length, width = patches.shape
        if frames > self.position.shape[1]:
            raise ModelError(f"a video of {frames} frames has more than the {self.position.shape[1]} that have a "
                             "position; sample fewer frames")
        flat = patches.reshape(videos * frames, length, width)
        reading = Reading.of(flat, torch.zeros(flat.shape[:2], device=flat.device))
        found = self.frames(self.frame_queries, reading, rng)[0]  # (B F, K, d)
        found = found.view(videos, frames, -1, found.shape[-1]) + self.position[:, :frames]
        seen = mask[:, :, None].expand(-1, -1, found.shape[2])
        return found.flatten(1, 2), seen.flatten(1)
