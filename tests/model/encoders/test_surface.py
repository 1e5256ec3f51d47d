"""How a text is written, as numbers: by hand, the same in every process, zeros for nothing."""

import subprocess
import sys

import numpy as np

from model.encoders.surface import NAMES, PLAIN, WIDTH, surface


def _plain(text):
    return dict(zip(NAMES, surface([text])[0, :PLAIN].tolist(), strict=True))


def test_plain_features_by_hand():
    found = _plain('Why, SIR: "no"... see https://x.org 7!')
    on = ("question mark", "exclamation mark", "ellipsis", "quotation mark", "digit", "link", "word in capitals")
    assert [found[name] for name in on] == [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert found["commas, colons and semicolons"] == np.float32(np.log1p(3))  # one of them in the address
    assert found["share of capitals"] == np.float32(4 / 20)
    assert found["words"] == np.float32(np.log1p(8))
    assert _plain("Is it?")["question mark"] == _plain("是吗？")["question mark"] == 1.0
    assert _plain("I am OK")["word in capitals"] == 0.0  # of two letters it is no shouting


def test_first_words_and_spelling_are_told_apart():
    one, same, other = surface(["Please send it", "please SEND it", "Send it please"])
    assert np.array_equal(one[PLAIN:], same[PLAIN:]) and not np.array_equal(one[PLAIN:], other[PLAIN:])
    near, far = surface(["please send it now", "0000000000"])[:, -96:] @ one[-96:]
    assert near > 0.8 > far


def test_nothing_is_zeros_and_any_text_has_finite_numbers():
    texts = ["", " \n", "?", "\ud800 broken", "a" * 30_000 + "?", "🙂", "\x00"]
    found = surface(texts)
    assert found.shape == (len(texts), WIDTH) and np.isfinite(found).all()
    assert not found[:2].any() and found[4, 0] == 1.0
    assert surface([]).shape == (0, WIDTH)


def test_every_process_gives_the_same_numbers():
    code = "from model.encoders.surface import surface; print(surface(['Could you, please?']).tobytes().hex())"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                         env={"PYTHONHASHSEED": "1", "PYTHONPATH": "."})
    assert bytes.fromhex(ran.stdout.strip()) == surface(["Could you, please?"]).tobytes()
