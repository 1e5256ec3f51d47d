"""Images a second of a ViT-L on a GPU: files through our `ImageEncoder` beside the bare loop over decoded tensors.

    python -m benchmarks.encode_gpu --out FOLDER [--images 1024 --batch 128 --patch 14 --photos 1280x960 448x336]

The network is the ViT of transformers, 24 layers x 1024 (ViT-L), 224 x 224, with random weights: speed does not depend
on them. Ours gets JPEG files and gives fp16 tokens on the host: decoding in threads beside the network, batches, fp16
autocast. The bare loops get the same pictures decoded before, as tensors on the card, under the same autocast: `bare`
leaves its tokens on the card, `bare to host` brings them back as ours must. Decoding alone is the fourth. All take
turns in each round; ratios are of one round, what is told is the median of the rounds and their range.

Operations: two a multiply-add of patches, projections, attention and feed-forward, forward only. MFU is against the
largest fp16 matrix product measured in the same run. What limits is the slowest of decoding, network and transfer.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from transformers import ViTConfig, ViTModel

from benchmarks.measure import interleaved, machine
from model.encoders.image import ImageEncoder
from model.encoders.pictures import read_picture

LEAST = 0.9
_DISTINCT = 64  # pictures are drawn so many times over: making them is not measured, and decoding knows no repeats


def build(asked: argparse.Namespace, folder: Path) -> None:
    """A random ViT with its processor, as a hub would hand it out."""
    torch.manual_seed(0)
    config = ViTConfig(
        hidden_size=asked.width, num_hidden_layers=asked.layers, num_attention_heads=max(1, asked.width // 64),
        intermediate_size=4 * asked.width, image_size=asked.side, patch_size=asked.patch,
    )
    ViTModel(config, add_pooling_layer=False).save_pretrained(folder)
    processor = {"image_processor_type": "ViTImageProcessor", "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
                 "size": {"height": asked.side, "width": asked.side}}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor), encoding="utf-8")


def pictures(count: int, width: int, height: int) -> list[bytes]:
    """JPEG files of slopes and noise."""
    found = []
    for number in range(min(count, _DISTINCT)):
        rng = np.random.default_rng(number)
        slope = np.linspace(0, 200, width)[None, :, None] + rng.integers(0, 55, (height, 1, 3))
        pixels = (slope + rng.integers(0, 8, (height, width, 3))).clip(0, 255).astype(np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "JPEG", quality=85)
        found.append(file.getvalue())
    return [found[at % len(found)] for at in range(count)]


def operations(asked: argparse.Namespace) -> float:
    """Operations of one image, forward."""
    tokens, d = (asked.side // asked.patch) ** 2 + 1, asked.width
    layer = 2.0 * tokens * d * (4 * d + 8 * d) + 4.0 * tokens * tokens * d  # projections and feed-forward; attention
    return asked.layers * layer + 2.0 * (tokens - 1) * 3 * asked.patch**2 * d


def peak(device: torch.device) -> float:
    """The largest measured fp16 matrix product, operations a second."""
    size, kind = (8192, torch.float16) if device.type == "cuda" else (512, torch.float32)
    a, b = (torch.randn(size, size, device=device, dtype=kind) for _ in range(2))

    def products() -> None:
        for _ in range(20):
            torch.mm(a, b)
        _wait(device)

    products()
    return 20 * 2.0 * size**3 / min(interleaved({"product": products}, rounds=3)["product"])


class Bare:
    """The loop that anyone would write over tensors that lie on the card already."""

    def __init__(self, folder: Path, device: torch.device) -> None:
        library: Any = ViTModel  # untyped
        self._network = library.from_pretrained(folder, add_pooling_layer=False).eval().to(device)
        self._device = device
        self._batches: Sequence[Tensor] = ()

    def load(self, pixels: NDArray[np.uint8], batch: int) -> None:
        """Pictures (N, side, side, 3) that are decoded and scaled, brought to the card."""
        scaled = torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div_(127.5).sub_(1.0)
        self._batches = [part.contiguous().to(self._device) for part in scaled.split(batch)]

    @torch.inference_mode()
    def __call__(self, *, host: bool = False) -> list[Tensor]:
        found = []
        for batch in self._batches:
            with torch.autocast(self._device.type, dtype=torch.float16, enabled=self._device.type == "cuda"):
                tokens = self._network(pixel_values=batch).last_hidden_state.half()
            found.append(tokens.cpu() if host else tokens[:, 0])
        _wait(self._device)
        return found


def run(asked: argparse.Namespace) -> dict[str, Any]:
    """Every size of files, on one network."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with tempfile.TemporaryDirectory() as folder:
        build(asked, Path(folder))
        ours = ImageEncoder.load(folder, device=str(device), batch_size=asked.batch, threads=asked.threads)
        bare = Bare(Path(folder), device)
    best, count = peak(device), operations(asked)
    found = {
        "where": {**machine(), "card": torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU",
                  "torch": torch.__version__, "threads": ours.threads},
        "settings": {key: value for key, value in vars(asked).items() if key != "out"},
        "GFLOP an image": count / 1e9, "peak": best,
        "files": [compare(asked, ours, bare, size, count / best) for size in asked.photos],
    }
    found["gib"] = torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else 0.0
    return found


def compare(asked: argparse.Namespace, ours: ImageEncoder, bare: Bare, size: str, floor_s: float) -> dict[str, Any]:
    """All four on files of one size ("1280x960"), in turns; `floor_s`: seconds an image at the measured peak."""
    width, height = map(int, size.split("x"))
    files = pictures(asked.images, width, height)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        bare.load(np.stack(list(pool.map(lambda data: read_picture(data, asked.side), files))), asked.batch)

    def decode() -> None:
        with ThreadPoolExecutor(ours.threads) as pool:
            for _ in pool.map(lambda data: read_picture(data, asked.side), files):
                pass

    apart = _apart(ours, bare, files, asked.batch)
    calls = {"ours": lambda: ours.encode(files), "bare": bare, "bare to host": lambda: bare(host=True),
             "decode": decode}
    for warm in (calls["ours"], calls["bare"], calls["bare to host"]):
        warm()
    taken = interleaved(calls, rounds=asked.rounds)
    speeds = {name: [asked.images / each for each in seconds] for name, seconds in taken.items()}
    pairs = list(zip(taken["ours"], taken["bare"], taken["bare to host"], strict=True))
    return {
        "size": size, "images_per_s": {name: spread(each) for name, each in speeds.items()},
        "ours / bare": spread([b / o for o, b, _ in pairs]),
        "ours / bare to host": spread([h / o for o, _, h in pairs]),
        "MFU": {name: float(np.median(speeds[name])) * floor_s for name in ("ours", "bare", "bare to host")},
        "limit": limit(speeds), "largest difference of tokens": apart,
    }


def _apart(ours: ImageEncoder, bare: Bare, files: Sequence[bytes], batch: int) -> float:
    """How far the tokens of both ways lie apart: they must have done the same work."""
    mine = ours.encode(files[:batch])
    theirs = bare(host=True)[0].float().numpy()
    return max(float(np.abs(np.asarray(each, np.float32) - other).max())
               for each, other in zip(mine, theirs, strict=True))


def spread(values: Sequence[float]) -> dict[str, float]:
    return {"median": float(np.median(values)), "low": min(values), "high": max(values)}


def limit(speeds: dict[str, list[float]]) -> str:
    """What ours waits for, in words."""
    decode, bare, host = (float(np.median(speeds[name])) for name in ("decode", "bare", "bare to host"))
    if decode < host:
        return f"decoding: {decode:,.0f} images/s by itself, the network {bare:,.0f}"
    return "the network" if host > 0.95 * bare else f"bringing tokens to the host: {host:,.0f} of {bare:,.0f} images/s"


def page(found: dict[str, Any]) -> str:
    """The same as Markdown."""
    asked, where = found["settings"], found["where"]
    sizes = [each["size"] for each in found["files"]]
    names = list(found["files"][0]["images_per_s"])
    rows = [[f"images/s, {name}", *(_figure(each["images_per_s"][name]) for each in found["files"])] for name in names]
    ratios = ("ours / bare", "ours / bare to host")
    rows += [[name, *(_figure(each[name]) for each in found["files"])] for name in ratios]
    rows += [[f"MFU, {name}", *(f"{100 * each['MFU'][name]:.1f} %" for each in found["files"])]
             for name in found["files"][0]["MFU"]]
    rows.append(["what limits ours", *(each["limit"] for each in found["files"])])
    rows.append(["largest difference of tokens", *(f"{each['largest difference of tokens']:.1e}"
                                                   for each in found["files"])])
    return "\n".join([
        "# Encoding images on a GPU", "",
        f"`python -m benchmarks.encode_gpu`, {where['made'][:16].replace('T', ' ')} UTC, {where['card']}, torch "
        f"{where['torch']}, {where['cores']} cores, {where['threads']} threads decoding: {asked['images']} JPEG files, "
        f"a ViT of {asked['layers']} layers x {asked['width']} with **random weights**, {asked['side']} x "
        f"{asked['side']} in patches of {asked['patch']}, batches of {asked['batch']}, fp16 autocast, "
        f"{asked['rounds']} rounds in turns (range over the rounds in brackets).", "",
        f"| files of | {' | '.join(sizes)} |", "|---|" + "---|" * len(sizes),
        *(f"| {' | '.join(row)} |" for row in rows), "",
        "Ours decodes files and brings fp16 tokens to the host; `bare` gets tensors that lie on the card and leaves "
        "its tokens there, `bare to host` brings them back, plainly; `decode` is decoding alone, in as many threads. "
        f"Target: ours at least {LEAST:g} of `bare`. {found['GFLOP an image']:.0f} GFLOP an image; MFU is of "
        f"{found['peak'] / 1e12:.0f} TFLOP/s, the fp16 matrix product of the same run. Most GPU memory: "
        f"{found['gib']:.1f} GiB.", "",
    ])


def _figure(each: dict[str, float]) -> str:
    digits = 0 if each["median"] >= 100 else 2
    return " to ".join([f"{each['median']:,.{digits}f} ({each['low']:,.{digits}f}", f"{each['high']:,.{digits}f})"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("images", 1024), ("batch", 128), ("layers", 24), ("width", 1024), ("side", 224),
                        ("patch", 14), ("rounds", 5), ("threads", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--photos", nargs="+", default=["1280x960", "448x336"], help="sizes of the files")
    parser.add_argument("--out", type=Path, required=True, help="folder for encode_gpu.json and .md")
    asked = parser.parse_args()
    found = run(asked)
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "encode_gpu.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (asked.out / "encode_gpu.md").write_text(page(found), encoding="utf-8")
    print(page(found), flush=True)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
