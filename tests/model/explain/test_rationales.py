import numpy as np
import pytest

from model.encoders.text import TextEncoder
from model.explain.rationales import marked_tokens, token_auc


def test_tokens_that_overlap_a_passage_are_marked():
    text = "you fool, you"
    spans = np.array([[0, 0], [0, 3], [4, 8], [8, 9], [10, 13], [0, 0]])
    assert marked_tokens(text, spans, ["fool"]).tolist() == [False, False, True, False, False, False]
    assert marked_tokens(text, spans, ["you", "ol,"]).tolist() == [False, True, True, True, True, False]
    assert not marked_tokens(text, spans, ["nowhere", ""]).any()


def test_auc():
    marked = np.array([True, False, True, False])
    assert token_auc(np.array([3.0, 1.0, 2.0, 0.0]), marked) == 1.0
    assert token_auc(np.array([0.0, 1.0, 0.0, 2.0]), marked) == 0.0
    assert token_auc(np.ones(4), marked) == 0.5
    assert token_auc(np.array([3.0, 2.0, 1.0, 0.0]), marked) == 0.75
    assert np.isnan(token_auc(np.ones(4), np.ones(4, bool)))


@pytest.mark.parametrize("text", ["You are UNBELIEVABLY kind", "word " * 40, ""])
def test_spans_belong_to_the_tokens_of_the_encoder(text):
    encoder = TextEncoder.load(max_tokens=16)
    spans = encoder.spans(text)
    assert len(spans) == len(encoder.encode([text])[0]) <= 16
    assert all(text[a:b].strip() == text[a:b] for a, b in spans)
