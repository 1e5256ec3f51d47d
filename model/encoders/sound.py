"""Sound encoder: tokens of a frozen audio model over time, by default the encoder of Whisper tiny.

A recording is heard in windows of 30 s; of a long one `MAX_WINDOWS` are heard, spread evenly. Whisper gives a token
every 20 ms, which is far more than a judgement needs: they are averaged to one every `SECONDS_PER_TOKEN`.

Shape legend: T tokens of one recording, D dim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from model.encoders import whisper
from model.encoders.decoders import Decoder, Inline
from model.encoders.image import fingerprint
from model.encoders.recordings import RATE
from model.errors import ContentError, ModelError

DEFAULT = "whisper-tiny"
WINDOW_S = 30.0
MAX_WINDOWS = 10
SECONDS_PER_TOKEN = 0.6
_FP16_MAX = 65504.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """Tokens of a recording and the middle of the time that each stands for."""

    tokens: NDArray[np.float16]  # (T, D)
    seconds: NDArray[np.float32]  # (T,)


class SoundEncoder:
    """Recordings as bytes -> `Heard`. Build it with `load`."""

    def __init__(
        self, name: str, spectrogram: Callable[[NDArray[np.float32]], torch.Tensor],
        network: Callable[[torch.Tensor], torch.Tensor], *, dim: int, device: str,
        decoder: Decoder | None = None,
    ) -> None:
        """`spectrogram`: one window of samples -> (M, frames); `network`: (B, M, frames) -> tokens (B, T, D); `decoder`
        None: this process decodes."""
        self._decoder = decoder or Inline()
        self._spectrogram = spectrogram
        self._network = network
        self._device = torch.device(device)
        self.dim = dim
        self.id = name

    @classmethod
    def load(
        cls, path_or_name: str = DEFAULT, *, device: str = "cpu", decoder: Decoder | None = None
    ) -> SoundEncoder:
        """Load the default, or a Whisper-like model from a local folder or hub name. Raises ModelError."""
        import transformers  # slow to import, and wanted only here

        library: Any = transformers  # untyped
        if path_or_name == DEFAULT:
            encoder = whisper.load_encoder(whisper.default_path())
            extractor = library.WhisperFeatureExtractor(feature_size=encoder.config.num_mel_bins)
            name = DEFAULT
        else:
            local = Path(path_or_name).is_dir()
            options = {"local_files_only": local, "trust_remote_code": False}
            try:
                extractor = library.AutoFeatureExtractor.from_pretrained(path_or_name, **options)
                model = library.AutoModel.from_pretrained(path_or_name, use_safetensors=True, **options)
                encoder = model.get_encoder().eval().requires_grad_(False)
            except (OSError, ValueError, AttributeError) as error:
                raise ModelError(f"the sound encoder {Path(path_or_name).name} cannot be loaded: {error}") from error
            name = Path(path_or_name).name if local else path_or_name.replace("/", "--")
        encoder.to(device)

        def spectrogram(samples: NDArray[np.float32]) -> torch.Tensor:
            found = extractor(samples, sampling_rate=RATE, return_tensors="pt").input_features[0]
            return found  # type: ignore[no-any-return]

        return cls(
            f"{name}-{fingerprint(encoder)}", spectrogram, lambda mel: encoder(mel).last_hidden_state,
            dim=int(encoder.config.d_model), device=device, decoder=decoder,
        )  # fmt: skip

    def encode(self, recordings: Sequence[bytes]) -> list[Heard | ContentError]:
        """Tokens of each recording, in order; for one that cannot be read the error that says why."""
        found: list[Heard | ContentError] = []
        for data in recordings:
            try:
                found.append(self._hear(self._decoder.sound(data)))
            except ContentError as error:
                found.append(error)
        return found

    @torch.inference_mode()
    def _hear(self, wave: NDArray[np.float32]) -> Heard:
        parts, seconds = [], []
        for start, window in _windows(wave):
            mel = self._spectrogram(window).unsqueeze(0).to(self._device)  # (1, M, frames)
            with torch.autocast(self._device.type, dtype=torch.float16, enabled=self._device.type == "cuda"):
                tokens = self._network(mel)[0].float()  # (T', D) over the whole window, silence included
            per = max(round(len(tokens) * SECONDS_PER_TOKEN / WINDOW_S), 1)
            heard = max(min(-(-len(window) * len(tokens) // int(WINDOW_S * RATE)), len(tokens)), 1)
            groups = torch.stack([tokens[first : min(first + per, heard)].mean(0) for first in range(0, heard, per)])
            parts.append(groups.clamp(-_FP16_MAX, _FP16_MAX).half().cpu().numpy())
            seconds.append(start + (np.arange(len(groups)) + 0.5) * per * WINDOW_S / len(tokens))
        return Heard(tokens=np.concatenate(parts), seconds=np.concatenate(seconds).astype(np.float32))


def _windows(wave: NDArray[np.float32]) -> list[tuple[float, NDArray[np.float32]]]:
    """Start in seconds and samples of each window; at most `MAX_WINDOWS`, spread evenly over a long recording."""
    size = int(WINDOW_S * RATE)
    count = -(-len(wave) // size)
    if count <= MAX_WINDOWS:
        starts = [index * size for index in range(count)]
    else:
        starts = np.linspace(0, len(wave) - size, MAX_WINDOWS).astype(int).tolist()
    return [(start / RATE, wave[start : start + size]) for start in starts]
