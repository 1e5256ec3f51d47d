"""Words that move annotators, found in a version that was really trained on what each one goes by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.services.explanation.attributions import KIND, read_attributions, refresh, word_of
from backend.services.explanation.service import Explanations
from tests.backend.encoders import AsIs
from tests.backend.services.politeness import KEY
from tests.backend.services.workshop import Workshop, silent, workshop_of

CONTROL = "politeness"


def explanations(shop: Workshop) -> Explanations:
    return Explanations(store=shop.store, features=shop.features, registry=shop.registry, decoder=AsIs(),
                        clock=shop.clock, reader=lambda: None)  # type: ignore[arg-type,return-value]


@pytest.fixture(scope="module")
def template(learned: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    shop = workshop_of(learned, tmp_path_factory.mktemp("found"))
    assert explanations(shop).refresh(KEY, silent) == 3
    shop.close()
    return shop.settings.data_dir


@pytest.fixture
def shop(template: Path, tmp_path: Path) -> Iterator[Workshop]:
    shop = workshop_of(template, tmp_path)
    yield shop
    shop.close()


def found(shop: Workshop, who: str, *, version: str = "r1") -> Any:
    document = read_attributions(shop.store, KEY, who)
    assert document is not None and document.version == version
    return document.controls[CONTROL]


def test_each_annotator_s_words_and_the_labels_that_they_speak_for(shop: Workshop) -> None:
    for who, label, words in (("1", "polite", {"please", "kindly"}), ("2", "rude", {"please", "kindly"}),
                              ("3", "polite", {"team"})):  # fmt: skip
        each = found(shop, who)
        assert words <= {one.word for one in each.words if one.label == label}
        assert all(one.own > one.others and one.tasks >= 4 for one in each.words)
        assert each.faithful and each.lead_low <= each.lead <= each.lead_high
    assert found(shop, "3").personal  # the other two go by the same words


def test_nothing_is_done_twice_for_a_version_or_too_often(shop: Workshop) -> None:
    assert explanations(shop).refresh(KEY, silent) is None
    shop.publish()
    assert explanations(shop).refresh(KEY, silent) is None
    shop.clock.forward(601)
    assert explanations(shop).refresh(KEY, silent) == 3
    assert shop.store.statistics.version(KEY, KIND) == "r2"


def test_other_documents_stay(shop: Workshop) -> None:
    shop.store.statistics.replace(KEY, "v", {("overview", ""): "{}"}, kinds=["overview"])
    shop.publish()
    shop.clock.forward(601)
    assert explanations(shop).refresh(KEY, silent) == 3
    assert shop.store.statistics.version(KEY, "overview") == "v"
    assert read_attributions(shop.store, KEY, "1") is not None


def test_where_no_features_are_cached_there_are_no_words_and_nothing_is_encoded(shop: Workshop) -> None:
    shop.publish()
    loaded = shop.registry.published(KEY)
    assert loaded is not None
    other = replace(loaded, version=replace(loaded.version, figures={"encoder": "another"}))
    calls, project = len(shop.encoder.calls), shop.store.projects.get(KEY)
    assert project is not None
    assert refresh(shop.store, shop.features, other, project, silent, now=shop.clock()) == 0
    assert len(shop.encoder.calls) == calls and read_attributions(shop.store, KEY, "1") is None
    assert shop.store.statistics.version(KEY, KIND) == "r2"  # it is not tried again and again


def test_no_words_are_kept_where_the_lead_may_be_none(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.publish()
    shop.clock.forward(601)
    monkeypatch.setattr("model.explain.effects.mean_interval", lambda values: (0.1, -0.01, 0.2))
    assert explanations(shop).refresh(KEY, silent) == 3
    each = found(shop, "1", version="r2")
    assert not each.faithful and each.words == () and each.tasks == 40


def test_time_is_bounded(shop: Workshop) -> None:
    shop.publish()
    now = iter(np.arange(0.0, 1000.0, 10.0))
    project, loaded = shop.store.projects.get(KEY), shop.registry.published(KEY)
    assert project is not None and loaded is not None
    refresh(shop.store, shop.features, loaded, project, silent, now=shop.clock(),
            seconds=lambda: float(next(now)), budget_s=75.0)
    each = found(shop, "1", version="r2")
    assert (each.tasks, each.measured) == (3, 3) and not each.words  # no word is in enough of them


def test_a_document_of_another_release_is_none(shop: Workshop, caplog: pytest.LogCaptureFixture) -> None:
    shop.store.statistics.replace(KEY, "r1", {(KIND, "1"): '{"was": 1}'}, kinds=[KIND])
    assert read_attributions(shop.store, KEY, "1") is None and "another release" in caplog.text


def test_projects_without_a_version_have_no_words(shop: Workshop) -> None:
    shop.store.projects.ensure("8.100", label_config="<View/>")
    assert explanations(shop).refresh("8.100", silent) is None and explanations(shop).refresh("9.9", silent) is None


@pytest.mark.parametrize("text, word", [
    ("Kindly", "kindly"), ("STRASSE", "strasse"), ("two words", ""), ("42", ""), ("!", ""), ("שלום", "שלום"),
    ("cafe\u0301", "caf\u00e9")])
def test_words(text: str, word: str) -> None:
    assert word_of(text) == word
