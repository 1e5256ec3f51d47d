"""The image encoder: the weights see what they were trained to see, batches change nothing, bad images stand alone."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from model.encoders.image import ImageEncoder, _scaling
from model.errors import ContentError, ModelError


def photo(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 255, (6, 6, 3), dtype=np.uint8)).resize((90, 60), Image.Resampling.BICUBIC)
    file = io.BytesIO()
    coarse.save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def encoder() -> ImageEncoder:
    torch.set_num_threads(1)
    return ImageEncoder.load(batch_size=2)


def test_grid_of_49_tokens_in_the_order_given(encoder: ImageEncoder) -> None:
    photos = [photo(seed) for seed in range(5)]
    together = encoder.encode(photos)
    assert all(isinstance(tokens, np.ndarray) and tokens.shape == (49, encoder.dim) for tokens in together)
    for tokens, data in zip(together, photos, strict=True):
        (alone,) = encoder.encode([data])
        assert isinstance(alone, np.ndarray) and isinstance(tokens, np.ndarray)
        np.testing.assert_allclose(tokens.astype(np.float32), alone.astype(np.float32), atol=2e-2)
    assert len({np.asarray(tokens).tobytes() for tokens in together}) == 5


def test_tokens_follow_the_place_in_the_picture(encoder: ImageEncoder) -> None:
    picture = Image.new("RGB", (224, 224), "grey")
    plain = io.BytesIO()
    picture.save(plain, "PNG")
    picture.paste(Image.open(io.BytesIO(photo(1))).resize((64, 64)), (160, 0))  # in the upper right
    marked = io.BytesIO()
    picture.save(marked, "PNG")
    before, after = (np.asarray(tokens, np.float32) for tokens in encoder.encode([plain.getvalue(), marked.getvalue()]))
    change = np.square(after - before).sum(1).reshape(7, 7)
    row, column = np.unravel_index(change.argmax(), change.shape)
    assert row <= 2 and column >= 4


def test_a_bad_image_gets_its_own_error_and_spoils_no_other(encoder: ImageEncoder) -> None:
    good, bad, last = encoder.encode([photo(0), b"<html>", photo(1)])
    assert isinstance(good, np.ndarray) and isinstance(last, np.ndarray)
    assert isinstance(bad, ContentError) and "web page" in str(bad)
    assert encoder.encode([]) == []


def test_the_id_names_weights(encoder: ImageEncoder) -> None:
    assert encoder.id.startswith("efficientnet-lite0-") and ImageEncoder.load().id == encoder.id


def test_a_hugging_face_model_from_a_folder(tmp_path: Path) -> None:
    from transformers import ViTConfig, ViTImageProcessor, ViTModel

    torch.manual_seed(0)
    config = ViTConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=32, patch_size=16
    )
    ViTModel(config, add_pooling_layer=False).save_pretrained(tmp_path)
    ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(tmp_path)
    encoder = ImageEncoder.load(str(tmp_path))
    (tokens,) = encoder.encode([photo(3)])
    assert isinstance(tokens, np.ndarray) and tokens.shape == (5, 32)


def test_a_folder_without_a_model_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=tmp_path.name):
        ImageEncoder.load(str(tmp_path))


def test_colours_are_scaled_alike_where_transformers_wants_torchvision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers

    def refused(*_: object, **__: object) -> None:
        raise ImportError("AutoImageProcessor requires the Torchvision library")

    transformers.ViTImageProcessor(image_mean=[0.1, 0.2, 0.3], image_std=[0.4, 0.5, 0.6]).save_pretrained(tmp_path)
    options = {"local_files_only": True, "trust_remote_code": False}
    usual = _scaling(transformers, str(tmp_path), options)
    monkeypatch.setattr(transformers.AutoImageProcessor, "from_pretrained", refused)
    assert _scaling(transformers, str(tmp_path), options) == usual == ([0.1, 0.2, 0.3], [0.4, 0.5, 0.6])
    (tmp_path / "preprocessor_config.json").write_text("{}")
    with pytest.raises(ValueError, match="names no image_mean"):
        _scaling(transformers, str(tmp_path), options)
