import numpy as np
import pytest

from model.encoders.text import TextEncoder, default_path
from model.errors import ModelError


@pytest.fixture(scope="module")
def encoder():
    return TextEncoder.load(max_tokens=32)


def _cosine(a, b):
    a, b = (x.astype(np.float64).mean(0) for x in (a, b))
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_tokens_are_fp16_finite_and_at_least_one(encoder):
    found = encoder.encode(["Thank you so much!", "", " \n ", "😀", "x " * 50_000])
    assert encoder.dim == 384
    for array in found:
        assert array.dtype == np.float16 and array.shape[1] == 384 and len(array) >= 1
        assert np.isfinite(array).all()
    assert len(found[-1]) == 32


def test_meaning_is_in_it(encoder):
    thanks, grateful, rates = encoder.encode(["Thank you very much.", "Many thanks!", "Interest rates rose again."])
    assert _cosine(thanks, grateful) > _cosine(thanks, rates) + 0.2


def test_long_texts_keep_head_and_tail(encoder):
    middle = "filler " * 300
    one, other_middle, other_head, other_tail = encoder.encode([
        f"You are kind. {middle} Goodbye.", f"You are kind. {'padding ' * 0}{middle}{middle} Goodbye.",
        f"You are rude. {middle} Goodbye.", f"You are kind. {middle} Get lost.",
    ])
    np.testing.assert_allclose(one.astype(float), other_middle.astype(float), atol=0.02)
    assert np.abs(one.astype(float) - other_head.astype(float)).max() > 0.05
    assert one.shape == other_tail.shape and np.abs(one.astype(float) - other_tail.astype(float)).max() > 0.05


def test_a_text_is_encoded_the_same_in_any_company(encoder):
    texts = ["short", "a somewhat longer text about nothing", "mid size here", "x " * 40]
    together = encoder.encode(texts)
    for text, array in zip(texts, together, strict=True):
        np.testing.assert_allclose(encoder.encode([text])[0].astype(float), array.astype(float), atol=0.01)
    assert encoder.encode([]) == []


def test_the_id_names_weights_and_settings(encoder):
    assert encoder.id.startswith("minilm-")
    assert TextEncoder.load(str(default_path()), max_tokens=32).id.split("-")[-1] == encoder.id.split("-")[-1]
    assert TextEncoder.load(max_tokens=16).id != encoder.id


def test_what_cannot_be_loaded(tmp_path):
    with pytest.raises(ModelError, match="cannot be loaded"):
        TextEncoder.load(str(tmp_path))
    with pytest.raises(ModelError, match="at least 4 tokens"):
        TextEncoder.load(max_tokens=1)


def test_pickled_weights_are_refused(tmp_path):
    import shutil

    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        shutil.copy(default_path() / name, tmp_path / name)
    (tmp_path / "pytorch_model.bin").write_bytes(b"never read")
    with pytest.raises(ModelError, match="cannot be loaded"):
        TextEncoder.load(str(tmp_path))
