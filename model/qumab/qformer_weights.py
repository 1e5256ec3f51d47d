"""Weights of `Blip2QFormerModel` in and out of our layout, and from a local folder of safetensors files.

Ours stacks what the original keeps apart (query, key and value of self-attention in one matrix, heads of a key matrix
as rows, a leading member), so the map is exact both ways. Nothing is ever downloaded, and only safetensors are read.

Shape legend: M members, d width, H heads, e head width, D token width.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from model.errors import ModelError
from model.qumab.qformer_layers import QFormer

_PREFIXES = ("qformer.", "model.qformer.", "")  # a whole BLIP-2 model, or its Q-Former alone


def _dense(ours: str, theirs: str) -> Iterator[tuple[str, str, str]]:
    yield f"{ours}.weight", f"{theirs}.weight", "transposed"
    yield f"{ours}.bias", f"{theirs}.bias", "as it is"


def _norm(ours: str, theirs: str) -> Iterator[tuple[str, str, str]]:
    yield f"{ours}.gain", f"{theirs}.weight", "as it is"
    yield f"{ours}.bias", f"{theirs}.bias", "as it is"


def _pairs(layer: int, reads: bool) -> Iterator[tuple[str, str, str]]:
    """(our name, their name, how), without the packed self-attention."""
    us, them = f"layers.{layer}", f"encoder.layer.{layer}"
    yield from _dense(f"{us}.among.out", f"{them}.attention.output.dense")
    yield from _norm(f"{us}.among.norm", f"{them}.attention.output.LayerNorm")
    if reads:
        cross = f"{them}.crossattention.attention"
        yield from _dense(f"{us}.read.query", f"{cross}.query")
        yield f"{us}.read.key", f"{cross}.key.weight", "heads"
        yield f"{us}.read.key_bias", f"{cross}.key.bias", "as it is"
        yield f"{us}.read.value", f"{cross}.value.weight", "heads"
        yield f"{us}.read.value_bias", f"{cross}.value.bias", "as it is"
        yield from _dense(f"{us}.read.out", f"{them}.crossattention.output.dense")
        yield from _norm(f"{us}.read.norm", f"{them}.crossattention.output.LayerNorm")
    yield from _dense(f"{us}.inner.widen", f"{them}.intermediate_query.dense")
    yield from _dense(f"{us}.inner.narrow", f"{them}.output_query.dense")
    yield from _norm(f"{us}.inner.norm", f"{them}.output_query.LayerNorm")


def from_original(state: Mapping[str, Tensor], network: QFormer) -> dict[str, Tensor]:
    """The original's state as ours, each member the same.

    Raises ModelError that names keys which are missing or have another shape.
    """
    shape, own = network.shape, network.state_dict()
    found: dict[str, Tensor] = {}
    for ours, theirs, how in _every_pair(network):
        source = _taken(state, theirs)
        if how == "transposed":
            source = source.T
        elif how == "heads" and source.ndim == 2:
            source = source.reshape(shape.heads, -1, source.shape[1]) if source.shape[0] % shape.heads == 0 else source
        found[ours] = source
    for layer in range(shape.layers):
        parts = [f"encoder.layer.{layer}.attention.attention.{name}" for name in ("query", "key", "value")]
        found[f"layers.{layer}.among.into.weight"] = torch.cat([_taken(state, f"{p}.weight") for p in parts]).T
        found[f"layers.{layer}.among.into.bias"] = torch.cat([_taken(state, f"{p}.bias") for p in parts])
    wrong = [name for name, value in found.items() if value.shape != own[name].shape[1:]]
    if wrong:
        name = wrong[0]
        raise ModelError(
            f"the Q-Former weights do not fit: {name} has shape {tuple(found[name].shape)}, this network needs "
            f"{tuple(own[name].shape[1:])} ({len(wrong)} such keys); set width, heads and layers to the folder's"
        )
    return {name: value.to(own[name].dtype).expand(own[name].shape) for name, value in found.items()}


def to_original(network: QFormer, member: int = 0) -> dict[str, Tensor]:
    """The inverse: the state of one member for `Blip2QFormerModel.load_state_dict`."""
    own, found = {name: value[member] for name, value in network.state_dict().items()}, {}
    for ours, theirs, how in _every_pair(network):
        value = own[ours]
        found[theirs] = value.T if how == "transposed" else value.flatten(0, 1) if how == "heads" else value
    for layer in range(network.shape.layers):
        weight = own[f"layers.{layer}.among.into.weight"].T.chunk(3)
        bias = own[f"layers.{layer}.among.into.bias"].chunk(3)
        for name, w, b in zip(("query", "key", "value"), weight, bias, strict=True):
            found[f"encoder.layer.{layer}.attention.attention.{name}.weight"] = w
            found[f"encoder.layer.{layer}.attention.attention.{name}.bias"] = b
    return {name: value.contiguous() for name, value in found.items()}


def load_folder(network: QFormer, folder: Path) -> None:
    """Fill `network` in place from the safetensors files of a local folder.

    Raises ModelError when the folder has none, cannot be read, or does not fit.
    """
    network.load_state_dict(from_original(_read(folder), network))


def _read(folder: Path) -> dict[str, Tensor]:
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ModelError(
            f"no .safetensors file in {folder}; put the Q-Former's weights there (other formats are not read)"
        )
    state: dict[str, Tensor] = {}
    for file in files:
        try:
            with safe_open(file, framework="pt") as opened:
                names = list(opened.keys())
                prefix = next(p for p in _PREFIXES if p == "" or any(name.startswith(p) for name in names))
                state |= {n.removeprefix(prefix): opened.get_tensor(n) for n in names if n.startswith(prefix)}
        except (SafetensorError, OSError, json.JSONDecodeError) as error:
            raise ModelError(f"{file.name} is not a readable safetensors file: {error}") from error
    return state


def _every_pair(network: QFormer) -> Iterator[tuple[str, str, str]]:
    yield from _norm("norm", "layernorm")
    for layer in range(network.shape.layers):
        yield from _pairs(layer, layer % network.shape.every == 0)


def _taken(state: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in state:
        raise ModelError(
            f"the Q-Former weights lack the key {name!r} ({len(state)} keys were read); they must be those of a BLIP-2 "
            "Q-Former (Blip2QFormerModel) with the same layers and cross-attention frequency"
        )
    return state[name]
