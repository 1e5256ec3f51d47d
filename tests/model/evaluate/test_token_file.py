"""Tokens are encoded once, come back by id, and belong to their texts and encoder."""

from __future__ import annotations

import numpy as np
import pytest

from model.errors import ModelError
from model.evaluate.token_file import no_content, tokens_of


class Lengths:
    """One token a character, the code of it in every place."""

    id, dim = "lengths", 3

    def __init__(self):
        self.calls = 0

    def encode(self, texts):
        self.calls += 1
        return [np.array([[ord(c)] * 3 for c in text or " "], np.float16) for text in texts]


def read(texts, encoder, folder, encoder_id="lengths"):
    return tokens_of(texts, encoder_id=encoder_id, encoder=lambda: encoder, folder=folder, progress=lambda share: None)


def test_once_and_by_id(tmp_path):
    texts, encoder = {"b": "xyz", "a": "q", "c": ""}, Lengths()
    first = read(texts, encoder, tmp_path)
    again = read(dict(reversed(texts.items())), encoder, tmp_path)
    assert encoder.calls == 1
    for tokens in (first, again):
        found = tokens(["c", "b", "a", "b"])
        assert [len(each) for each in found] == [1, 3, 1, 3]
        assert found[1][:, 0].tolist() == [ord(c) for c in "xyz"] and found[2][0, 0] == ord("q")
    read({**texts, "a": "other"}, encoder, tmp_path)
    read(texts, encoder, tmp_path, encoder_id="another")
    assert encoder.calls == 3


def test_a_damaged_file_is_named(tmp_path):
    read({"a": "xyz"}, Lengths(), tmp_path)
    (lengths,) = tmp_path.glob("*.lengths.npy")
    np.save(lengths, np.array([2]))
    with pytest.raises(ModelError, match=r"tokens-[0-9a-f]{20}\.npy is damaged"):
        read({"a": "xyz"}, Lengths(), tmp_path)


def test_without_content_all_units_look_the_same():
    one, other = no_content(["a", "b"])
    assert np.array_equal(one, other) and np.isfinite(one).all()
