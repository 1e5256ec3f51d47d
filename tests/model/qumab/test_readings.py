"""What was read of tasks is kept: nothing is read twice, nothing is answered differently, and memory is bounded."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from model.config import NetworkConfig
from model.data.spaces import SingleChoice
from model.qumab.builds import build_network
from model.qumab.committee import Committee
from model.qumab.labels import GivenColumns
from model.qumab.readings import Read, Readings, key_of

M, A, D = 2, 4, 10
SPACES = {"one": SingleChoice(("x", "y", "z"))}


def committee() -> Committee:
    """Always the same."""
    rng = torch.Generator().manual_seed(0)
    network = build_network(M, A, 3, D, NetworkConfig(width=16, heads=4), rng)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.empty_like(parameter).normal_(0.0, 0.2, generator=rng))
    return Committee(network, SPACES)


@pytest.fixture(scope="module")
def tokens() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.normal(size=(length, D)).astype(np.float16) for length in (3, 7, 5, 4)]


def given(*votes: tuple[int, int, int]) -> dict[str, GivenColumns]:
    row, giver, label = (np.array(column) for column in zip(*votes, strict=True))
    return {"one": GivenColumns(row=row, giver=giver, y=np.eye(3)[label], trust=np.ones(len(row)))}


def counted(asked: Committee, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tasks of each reading."""
    found: list[int] = []
    real = asked.network._read

    def note(batch: torch.Tensor, *more: object) -> object:
        found.append(len(batch))
        return real(batch, *more)

    monkeypatch.setattr(asked.network, "_read", note)
    return found


def test_a_task_is_read_once_and_answered_as_if_it_were_read_each_time(
    tokens: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, keeping = committee(), committee()
    keeping.keep_readings(1 << 20)
    readings = counted(keeping, monkeypatch)
    asked = [
        (tokens[:2], None), (tokens[:2], given((0, 1, 2))), (tokens[1:3], given((0, 2, 0), (1, 1, 1))),
        ([tokens[2], tokens[0], tokens[2]], given((2, 0, 1))), (tokens[3:], None), (tokens[::-1], given((3, 3, 0))),
    ]
    for some, votes in asked:
        for found, wanted in zip(keeping.scores_given(some, votes), plain.scores_given(some, votes), strict=True):
            np.testing.assert_allclose(found["one"], wanted["one"], atol=1e-5)
    assert readings == [2, 1, 1]


def test_large_work_and_who_did_not_ask_for_it_keep_nothing(
    tokens: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = committee()
    readings = counted(asked, monkeypatch)
    for _ in range(2):
        asked.scores(tokens[:1])
    asked.keep_readings(1 << 20)
    for _ in range(2):
        asked.scores(tokens[:1] * 40)
    assert readings == [1, 1, 40, 40]


def test_readings_stay_within_their_bytes_and_the_last_used_stay() -> None:
    one = Read(torch.zeros(M, 1, A, 25), torch.zeros(1, 25), torch.zeros(M, 1, A, 25))  # 1700 bytes
    kept = Readings(2 * one.size)
    for key in (b"a", b"b"):
        kept.keep(key, one)
    assert kept.find(b"a") is one
    kept.keep(b"c", one)
    kept.keep(b"c", one)
    assert kept.find(b"b") is None and kept.find(b"a") is one and kept.find(b"c") is one
    kept.keep(b"large", Read(torch.zeros(M, 100, A, 25), torch.zeros(1, 25), torch.zeros(1)))
    assert [kept.find(key) for key in (b"a", b"c", b"large")] == [None, None, None]
    assert kept._bytes == 0


def test_other_tokens_are_another_task() -> None:
    array = np.arange(12, dtype=np.float16).reshape(3, 4)
    others = [array.reshape(4, 3), array.astype(np.float32), array + 1, array[:2]]
    assert len({key_of(each) for each in [array, *others]}) == 5
    assert key_of(np.asfortranarray(array)) == key_of(array)
