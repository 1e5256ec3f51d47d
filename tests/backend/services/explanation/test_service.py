"""Explanations of tasks by a version that was really trained: they point at what each annotator goes by."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from backend.errors import ClientError, MediaError, NotFound, NotReady
from backend.services.explanation.service import Explanations, _answer
from backend.services.features import Features
from model.data.numbers import number_bins
from model.data.spaces import Value
from model.explain.explanation import Explained
from tests.backend.encoders import AsIs, WordHashEncoder
from tests.backend.services.politeness import KEY, START, snapshot
from tests.backend.services.workshop import Workshop, workshop_of

NEW = 900
TEXT = "bring kindly the <b>team</b> report"


class Shelf:
    """Reads one picture, and says that the others are gone."""

    def read(self, value: object, *, task: int | None = None) -> bytes:
        if value != "there":
            raise MediaError("The host answered 404 for the file.")
        return b"picture"


@pytest.fixture
def shop(learned: Path, tmp_path: Path) -> Iterator[Workshop]:
    shop = workshop_of(learned, tmp_path)
    yield shop
    shop.close()


def explanations(shop: Workshop, **more: Any) -> Explanations:
    return Explanations(store=shop.store, features=shop.features, registry=shop.registry, reader=Shelf,
                        decoder=AsIs(), **more)


def project(shop: Workshop) -> Any:
    return shop.store.projects.get(KEY)


def add(shop: Workshop, text: str) -> None:
    shop.store.tasks.take_over(KEY, [snapshot(NEW, text)])


def test_each_annotator_s_answer_rests_on_the_words_they_go_by(shop: Workshop) -> None:
    words = {"1": "kindly", "2": "kindly", "3": "team"}
    add(shop, "bring kindly team report")
    found = explanations(shop).task(project(shop), NEW, encode=True)
    assert [each.annotator for each in found.annotators] == ["1", "2", "3"] and found.complete
    for each in found.annotators:
        answer = each.controls["politeness"]
        assert answer.attribution is not None and answer.faithful is not None
        strongest = found.places[int(np.argmax(answer.attribution))]
        assert found.text[strongest.start : strongest.end] == words[each.annotator]
        assert answer.faithful.attribution > 0 and sum(each.attention) <= 1
    assert [each.controls["politeness"].answer for each in found.annotators] == ["polite", "rude", "polite"]
    assert 0 <= found.network_share["politeness"] <= 1


def test_who_voted_comes_first_and_their_votes_are_shown(shop: Workshop) -> None:
    found = explanations(shop).task(project(shop), 1)
    assert {each.controls["politeness"].vote for each in found.annotators} <= {"polite", "rude"}
    only = explanations(shop).task(project(shop), 1, annotators=["3"])
    assert [each.annotator for each in only.annotators] == ["3"]
    three = next(each for each in found.annotators if each.annotator == "3")
    assert only.annotators[0].attention == pytest.approx(three.attention, abs=1e-6)


def test_the_confidence_of_a_number_is_that_of_the_bin_it_lies_in() -> None:
    space = number_bins({Value.of_number(number): 1 for number in (0.0, 1.0, 2.0, 3.0, 4.0)})
    p = np.array([[[0.46, 0.0, 0.08, 0.0, 0.46]]])
    loaded: Any = SimpleNamespace(ladder=SimpleNamespace(spaces={"price": space}))
    made: Any = SimpleNamespace(controls={"price": Explained(answer=np.eye(5)[:1], probability=np.array([0.46]))})
    served: Any = {"price": SimpleNamespace(served=p)}
    answer = _answer(loaded, made, served, "price", 0, None)
    assert (answer.served, answer.confidence) == ("2.0", pytest.approx(0.08))


def test_a_task_that_is_not_encoded_is_refused_and_nothing_is_encoded(shop: Workshop) -> None:
    add(shop, "words that nobody has encoded")
    calls = len(shop.encoder.calls)
    with pytest.raises(NotReady, match=f"Task {NEW} is not encoded"):
        explanations(shop).task(project(shop), NEW)
    assert len(shop.encoder.calls) == calls
    assert explanations(shop).task(project(shop), NEW, encode=True).text == "words that nobody has encoded"


def test_what_does_not_exist(shop: Workshop) -> None:
    service = explanations(shop)
    with pytest.raises(NotFound, match="no task 777"):
        service.task(project(shop), 777)
    with pytest.raises(NotFound, match="no such annotator"):
        service.task(project(shop), 1, annotators=["99"])
    with pytest.raises(ClientError, match="At most 12"):
        service.task(project(shop), 1, annotators=[str(each) for each in range(13)])
    add(shop, "")
    with pytest.raises(ClientError, match="shows nothing"):
        service.task(project(shop), NEW)


def test_without_a_version_nothing_is_explained(shop: Workshop) -> None:
    shop.store.projects.ensure("8.100", label_config=project(shop).label_config)
    shop.store.tasks.take_over("8.100", [snapshot(1, "text")])
    with pytest.raises(NotReady, match="no published version"):
        explanations(shop).task(shop.store.projects.get("8.100"), 1)  # type: ignore[arg-type]


def test_out_of_time_there_is_attention(shop: Workshop) -> None:
    now = iter(range(0, 10_000, 5))
    found = explanations(shop, seconds=lambda: float(next(now))).task(project(shop), 1, within_s=11.0)
    answers = [each.controls["politeness"] for each in found.annotators]
    assert not found.complete and all(each.attribution is None and each.faithful is None for each in answers)
    assert all(sum(each.attention) > 0 for each in found.annotators)
    assert explanations(shop).task(project(shop), 1).complete


def test_another_encoder_of_words_is_told(shop: Workshop) -> None:
    """Tokens from the cache, words from another tokenizer: they do not fit."""

    class Letters(WordHashEncoder):
        def spans(self, text: str) -> np.ndarray:
            return np.array([(at, at + 1) for at in range(len(text))], np.int64)

    shop.features.close()
    features = Features(encoder_factory=Letters, folder=shop.settings.data_dir / "features", max_mb=16)
    service = Explanations(store=shop.store, features=features, registry=shop.registry, decoder=AsIs(), reader=Shelf)
    with pytest.raises(NotReady, match="encoder was changed"):
        service.task(project(shop), 1)
    features.close()


def test_an_encoder_that_cannot_say_where_its_tokens_stand(shop: Workshop) -> None:
    class Mute:
        id, dim = WordHashEncoder().id, 32

        def encode(self, texts: Any) -> Any:
            return WordHashEncoder().encode(texts)

    shop.features.close()
    features = Features(encoder_factory=Mute, folder=shop.settings.data_dir / "features", max_mb=16)
    service = Explanations(store=shop.store, features=features, registry=shop.registry, decoder=AsIs(), reader=Shelf)
    with pytest.raises(ClientError, match="does not say where its tokens stand"):
        service.task(project(shop), 1)
    features.close()


def test_an_explanation_is_made_once_and_again_after_a_vote(shop: Workshop) -> None:
    service = explanations(shop)
    first = service.task(project(shop), 1)
    assert service.task(project(shop), 1) is first
    before = service.state(project(shop), 1)
    shop.store.tasks.take_over(KEY, [snapshot(1, "another text, edited")])
    assert service.state(project(shop), 1) != before
    with pytest.raises(NotReady):
        service.task(project(shop), 1)


def test_one_at_a_time(shop: Workshop) -> None:
    service = explanations(shop)
    assert service._one.acquire()
    with pytest.raises(NotReady, match="Another explanation"):
        service.task(project(shop), 1, within_s=0.01)
    service._one.release()
    assert service.task(project(shop), 1).task == 1


def test_pictures_of_a_task(shop: Workshop) -> None:
    config = '<View><Image name="i" value="$i"/><Choices name="c" toName="i"><Choice value="a"/></Choices></View>'
    shop.store.projects.ensure("8.100", label_config=config)
    there = snapshot(1, "")
    for number, data in ((1, {"i": ["there", "gone"]}), (2, {})):
        task = type(there.task)(id=number, data=data, updated_at=START + timedelta(minutes=1))
        shop.store.tasks.take_over("8.100", [type(there)(task=task, annotations=[], votes=())])
    service, other = explanations(shop), shop.store.projects.get("8.100")
    assert service.picture(other, 1, 0) == b"picture"  # type: ignore[arg-type]
    with pytest.raises(MediaError):
        service.picture(other, 1, 1)  # type: ignore[arg-type]
    for task_id, piece in ((1, 2), (1, -1), (2, 0)):
        with pytest.raises(NotFound, match="has no image"):
            service.picture(other, task_id, piece)  # type: ignore[arg-type]
