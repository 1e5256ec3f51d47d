"""Features: order, duplicates, cache, eviction, damage, deadlines, threads and processes."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import lmdb
import numpy as np
import pytest

from backend.labeling.content import Content, Medium, pack, unpack
from backend.services.features import Features
from backend.services.token_cache import TokenCache
from tests.backend.encoders import WordHashEncoder


def features(folder: Path, encoder: WordHashEncoder, max_mb: float = 8) -> Features:
    return Features(encoder_factory=lambda: encoder, folder=folder, max_mb=max_mb)


def test_tokens_come_back_in_order_and_equal_texts_are_encoded_once(tmp_path: Path) -> None:
    encoder = WordHashEncoder()
    source = features(tmp_path, encoder)
    texts = ["please help me", "go", "please help me", "would you kindly wait"]
    tokens = source.texts(texts)
    assert [len(array) for array in tokens] == [3, 1, 3, 4]
    for text, array in zip(texts, tokens, strict=True):
        np.testing.assert_array_equal(array, WordHashEncoder().encode([text])[0])
        assert array.dtype == np.float16
    assert sorted(encoder.encoded) == sorted(set(texts))


def test_a_second_process_life_finds_everything_in_the_cache(tmp_path: Path) -> None:
    first = features(tmp_path, WordHashEncoder())
    expected = first.texts(["a b", "c"])
    first.close()
    encoder = WordHashEncoder()
    second = features(tmp_path, encoder)
    assert second.cached(["a b", "c", "d"]) == [True, True, False]
    for got, want in zip(second.texts(["a b", "c"]), expected, strict=True):
        np.testing.assert_array_equal(got, want)
    assert encoder.calls == []


def test_another_encoder_has_its_own_entries(tmp_path: Path) -> None:
    first = features(tmp_path, WordHashEncoder(16))
    first.texts(["a b"])
    first.close()
    wide = features(tmp_path, WordHashEncoder(32))
    assert wide.cached(["a b"]) == [False]
    assert wide.texts(["a b"])[0].shape == (2, 32)


def test_texts_of_any_kind_can_be_keys(tmp_path: Path) -> None:
    source = features(tmp_path, WordHashEncoder())
    texts = ["", "\x00", "naïve 🎈", "x " * 5_000]
    assert [len(array) for array in source.texts(texts)] == [1, 1, 2, 5_000]
    assert source.cached(texts) == [True] * 4


def test_the_oldest_entries_leave_when_the_cap_is_reached(tmp_path: Path) -> None:
    encoder = WordHashEncoder(64)
    source = features(tmp_path, encoder, max_mb=0.1)  # 128 bytes a token
    texts = [f"{number} " + "word " * 99 for number in range(20)]  # 12.8 kB each: about 8 fit
    for text in texts:
        source.texts([text])
    kept = source.cached(texts)
    assert kept == [False] * (20 - sum(kept)) + [True] * sum(kept)
    assert 7 <= sum(kept) <= 8
    assert source._cache.size_bytes() <= 0.1 * 2**20


def test_a_long_run_over_the_cap_does_not_fail(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = features(tmp_path, WordHashEncoder(64), max_mb=1)  # 140 MB go through it
    generator = np.random.default_rng(3)
    for number in range(60):
        source.texts([f"{number}-{i} " + "word " * int(generator.integers(1, 2_000)) for i in range(20)])
    assert source._cache.size_bytes() <= 2**20
    assert caplog.records == []


CUT = """
import sys
from pathlib import Path
import numpy as np
from backend.services.token_cache import TokenCache
cache, texts = TokenCache(Path(sys.argv[1]), max_mb=8), [f"text {each}" for each in range(300)]
assert cache.get("e", texts) == [None] * 300
cache.put("e", texts, [np.ones((9, 64), np.float16)] * 300)
assert all(each is not None for each in cache.get("e", texts))
"""


@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
def test_a_file_that_was_cut_off_begins_anew_and_kills_nobody(share: float, tmp_path: Path) -> None:
    """In a process of its own: reading a page behind the end of a mapped file ends one without a word."""
    cache = TokenCache(tmp_path, max_mb=8)
    cache.put("e", [f"text {each}" for each in range(300)], [np.ones((9, 64), np.float16)] * 300)
    cache.close()
    os.truncate(tmp_path / "data.mdb", int(share * (tmp_path / "data.mdb").stat().st_size))
    done = subprocess.run([sys.executable, "-c", CUT, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("spoil", [lambda v: v[:-1], lambda v: v[:40] + bytes([v[40] ^ 1]) + v[41:], lambda v: b""])
def test_a_damaged_entry_is_encoded_again(tmp_path: Path, spoil) -> None:  # type: ignore[no-untyped-def]
    first = features(tmp_path, WordHashEncoder())
    (expected,) = first.texts(["a b c"])
    size = first._cache.size_bytes()
    first.close()
    with lmdb.open(str(tmp_path), max_dbs=3) as env:
        tokens = env.open_db(b"tokens")
        with env.begin(write=True, db=tokens) as txn, txn.cursor() as cursor:
            assert cursor.first()
            txn.put(cursor.key(), spoil(cursor.value()))
    encoder = WordHashEncoder()
    second = features(tmp_path, encoder)
    assert second.cached(["a b c"]) == [False]
    np.testing.assert_array_equal(second.texts(["a b c"])[0], expected)
    assert encoder.encoded == ["a b c"]
    assert second.cached(["a b c"]) == [True]
    assert abs(second._cache.size_bytes() - size) <= size


def test_a_database_that_is_no_database_begins_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "data.mdb").write_bytes(b"not a database" * 1000)
    source = features(tmp_path, WordHashEncoder())
    assert len(source.texts(["a b"])[0]) == 2
    assert source.cached(["a b"]) == [True]
    assert "begins anew" in caplog.text


def test_progress_is_told_and_may_stop_the_work(tmp_path: Path) -> None:
    seen: list[tuple[float, str]] = []
    encoder = WordHashEncoder()
    source = Features(encoder_factory=lambda: encoder, folder=tmp_path, max_mb=8, batch_size=2)
    source.texts(["a", "b", "c"], progress=lambda done, note: seen.append((done, note)))
    assert [round(done, 2) for done, _ in seen] == [0.0, 0.67, 1.0]

    def stop(done: float, note: str) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        source.texts(["new"], progress=stop)


class SlowEncoder(WordHashEncoder):
    """Takes `clock` forward by one second a batch."""

    def __init__(self, clock: list[float]) -> None:
        super().__init__()
        self.clock = clock

    def encode(self, texts):  # type: ignore[no-untyped-def]
        self.clock[0] += 1.0
        return super().encode(texts)


def test_within_a_deadline_the_shortest_come_first_and_the_rest_is_none(tmp_path: Path) -> None:
    clock = [0.0]
    encoder = SlowEncoder(clock)
    source = Features(encoder_factory=lambda: encoder, folder=tmp_path, max_mb=8, seconds=lambda: clock[0])
    source.texts(["cached and very long " * 50])
    texts = ["cached and very long " * 50] + ["w " * (40 - i) for i in range(40)]
    within = partial(source.texts_within, encoder_id=encoder.id)
    tokens = within(texts, seconds=1.5)  # two batches of eight begin
    assert [array is not None for array in tokens] == [True] + [False] * 24 + [True] * 16
    assert within(["w"], seconds=0.0) == [None]
    assert within(texts[:1], seconds=-1.0)[0] is not None


def test_cached_tokens_are_had_without_the_encoder(tmp_path: Path) -> None:
    first = features(tmp_path, WordHashEncoder())
    (expected,) = first.texts(["a b"])
    first.close()

    def factory() -> WordHashEncoder:
        raise AssertionError("nothing was to be encoded")

    source = Features(encoder_factory=factory, folder=tmp_path, max_mb=8)
    (found,) = source.texts_within(["a b"], encoder_id=WordHashEncoder().id, seconds=5.0)
    np.testing.assert_array_equal(found, expected)


def test_tokens_of_another_encoder_are_never_made(tmp_path: Path) -> None:
    encoder = WordHashEncoder()
    source = features(tmp_path, encoder)
    assert source.texts_within(["a b"], encoder_id="another", seconds=5.0) == [None]
    assert encoder.calls == []


def test_an_encoder_that_is_still_loading_is_not_waited_for(tmp_path: Path) -> None:
    release = threading.Event()

    def factory() -> WordHashEncoder:
        assert release.wait(10)
        return WordHashEncoder()

    source = Features(encoder_factory=factory, folder=tmp_path, max_mb=8)
    begin = time.monotonic()
    assert source.texts_within(["a"], encoder_id=WordHashEncoder().id, seconds=0.05) == [None]
    assert time.monotonic() - begin < 5
    release.set()
    assert len(source.texts(["a"])) == 1


def test_an_encoder_that_cannot_be_loaded_says_so_and_is_tried_again(tmp_path: Path) -> None:
    tries: list[int] = []

    def factory() -> WordHashEncoder:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("no such encoder")
        return WordHashEncoder()

    source = Features(encoder_factory=factory, folder=tmp_path, max_mb=8)
    with pytest.raises(ValueError, match="no such encoder"):
        source.texts(["a"])
    assert len(source.texts(["a"])) == 1


def test_many_threads_share_one_encoder(tmp_path: Path) -> None:
    made: list[WordHashEncoder] = []

    def factory() -> WordHashEncoder:
        made.append(WordHashEncoder())
        return made[-1]

    source = Features(encoder_factory=factory, folder=tmp_path, max_mb=8)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: source.texts([f"text {n % 5}", f"other {n}"]), range(40)))
    assert len(made) == 1
    for number, (first, second) in enumerate(results):
        np.testing.assert_array_equal(first, WordHashEncoder().encode([f"text {number % 5}"])[0])
        np.testing.assert_array_equal(second, WordHashEncoder().encode([f"other {number}"])[0])


def _fill(folder: str, start: int) -> None:
    source = features(Path(folder), WordHashEncoder())
    for number in range(start, start + 30):
        source.texts([f"text {number}", f"shared {number % 7}"])


def test_several_processes_fill_one_cache(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_fill, args=(str(tmp_path), start)) for start in (0, 30)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    encoder = WordHashEncoder()
    assert features(tmp_path, encoder).cached([f"text {n}" for n in range(60)]) == [True] * 60


def test_a_cache_opened_before_a_fork_works_in_the_child(tmp_path: Path) -> None:
    cache = TokenCache(tmp_path, max_mb=8)
    array = np.ones((2, 4), dtype=np.float16)
    cache.put("e", ["before"], [array])
    process = multiprocessing.get_context("fork").Process(target=cache.put, args=("e", ["child"], [array]))
    process.start()
    process.join(30)
    assert process.exitcode == 0
    assert [entry is not None for entry in cache.get("e", ["before", "child", "never"])] == [True, True, False]


def test_parts_of_one_picture_are_encoded_together_after_the_texts(tmp_path: Path) -> None:
    encoder = WordHashEncoder()
    source = Features(encoder_factory=lambda: encoder, folder=tmp_path, max_mb=8, batch_size=4)
    parts = [pack(Content(text="", modalities=("image",), media=(
        Medium(modality="image", address=f"https://h/{picture}.png", box=(float(box) ** 3, 0.0, 5.0, 5.0, 0.0)),)))
        for box in range(4) for picture in range(3)]
    source.texts([*parts, "short", "x" * 200])
    seen = [[one.address for content in call for one in unpack(content).media] for call in encoder.calls]
    assert [len(set(addresses)) for addresses in seen] == [1, 2, 2, 1], "two texts first, so pictures straddle batches"
    assert encoder.encoded[:2] == ["short", "x" * 200]
