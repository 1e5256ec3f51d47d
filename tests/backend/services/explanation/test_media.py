"""Explanations of tasks with pictures and sound: places of every kind, found in tokens from the cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.errors import NotReady
from backend.records import Task, TaskSnapshot
from backend.services.explanation.service import Explanations
from backend.services.features import Features
from backend.services.task_encoder import TaskEncoder
from model.encoders.sound import Heard
from model.errors import ContentError
from tests.backend.encoders import AsIs, WordHashEncoder
from tests.backend.services.politeness import KEY, START, annotation, vote
from tests.backend.services.workshop import HASTY, Workshop, workshop

CONFIG = """<View><Text name="text" value="$text"/><Image name="image" value="$image"/>
<Audio name="audio" value="$audio"/>
<Choices name="politeness" toName="text"><Choice value="polite"/><Choice value="rude"/></Choices></View>"""


class Pictures:
    dim, side = 4, 8

    def encode(self, images: Sequence[bytes]) -> list[NDArray[np.float16] | ContentError]:
        return [np.full((9, 4), len(image) % 3, np.float16) for image in images]


class Sounds:
    dim = 3

    def encode(self, recordings: Sequence[bytes]) -> list[Heard | ContentError]:
        times = np.arange(5, dtype=np.float32) * 0.6 + 0.3
        return [Heard(tokens=np.ones((5, 3), np.float16), seconds=times) for _ in recordings]


class Files:
    def read(self, value: object, *, task: int | None = None) -> bytes:
        return str(value).encode()


def snapshot(number: int) -> TaskSnapshot:
    data = {"text": f"word{number % 2} and more", "image": [f"http://h/{'x' * (number % 3)}"] * 2, "audio": "http://h/s"}
    votes = [vote(number, who, "polite" if number % 2 else "rude") for who in ("1", "2")]
    return TaskSnapshot(task=Task(id=number, data=data, updated_at=START), annotations=[annotation(v) for v in votes],
                        votes=votes)  # fmt: skip


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    folder: Path = tmp_path_factory.mktemp("media")
    made = workshop(folder, ladder=HASTY)
    made.features.close()
    encoder = TaskEncoder(WordHashEncoder(dim=8), reader=Files(), decoder=AsIs(), images=Pictures,  # type: ignore[arg-type]
                          sounds=Sounds, names="small")  # type: ignore[arg-type]
    features = Features(encoder_factory=lambda: encoder, folder=folder / "features", max_mb=16)
    shop = replace(made, features=features)
    shop.store.projects.ensure(KEY, label_config=CONFIG)
    shop.store.tasks.take_over(KEY, [snapshot(number) for number in range(1, 31)])
    shop.train()
    yield shop
    shop.close()


def test_words_cells_and_moments_of_one_task(shop: Workshop) -> None:
    service = Explanations(store=shop.store, features=shop.features, registry=shop.registry, reader=Files,
                           decoder=AsIs())
    project = shop.store.projects.get(KEY)
    assert project is not None
    found = service.task(project, 3)
    assert found.pieces == {"text": 1, "image": 2, "audio": 1} and found.complete
    kinds = [(place.kind, place.piece) for place in found.places]
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    assert counts == {("text", 0): 3, ("image", 0): 9, ("image", 1): 9, ("audio", 0): 5}
    assert [found.text[place.start : place.end] for place in found.places[:3]] == ["word1", "and", "more"]
    assert [place.seconds for place in found.places[-5:]] == pytest.approx([0.3, 0.9, 1.5, 2.1, 2.7], abs=0.02)
    for each in found.annotators:
        assert len(each.attention) == len(found.places) and 0 < sum(each.attention) <= 1
        assert each.controls["politeness"].attribution is not None
    assert service.picture(project, 3, 1) == b"http://h/"


def test_a_task_whose_file_is_missing_is_not_explained(shop: Workshop) -> None:
    """Its tokens are used, but not kept: nothing is fetched in a request."""
    service = Explanations(store=shop.store, features=shop.features, registry=shop.registry, reader=Files,
                           decoder=AsIs())
    data = {"text": "new", "image": "http://h/new", "audio": "http://h/s"}
    task = TaskSnapshot(task=Task(id=99, data=data, updated_at=START), annotations=[], votes=())
    shop.store.tasks.take_over(KEY, [task])
    project = shop.store.projects.get(KEY)
    assert project is not None
    with pytest.raises(NotReady, match="not encoded"):
        service.task(project, 99)
