"""Many annotators and many classes: the same answers without confusion matrices, or a sentence that names the size."""

from __future__ import annotations

import numpy as np
import pytest

from model.crowd import AnswerMatrix, make
from model.crowd import dawid_skene as dense
from model.crowd.dawid_skene import DawidSkene, FastDawidSkene
from model.crowd.leave_one_out import posterior_without
from model.crowd.weighted_ds import WeightedDawidSkene
from model.errors import ModelError
from model.quality.judged import judge


def crowd(annotators: int, classes: int, votes: int, units: int, *, weighted: bool = False) -> AnswerMatrix:
    rng = np.random.default_rng(3)
    truth = rng.integers(classes, size=units)
    unit, right = rng.integers(units, size=votes), rng.random(votes) < 0.7
    return AnswerMatrix.from_codes(
        units=[f"u{i:05}" for i in range(units)], annotators=[f"a{i:05}" for i in range(annotators)],
        classes=[f"c{i:03}" for i in range(classes)], unit=unit, annotator=rng.integers(annotators, size=votes),
        label=np.where(right, truth[unit], rng.integers(classes, size=votes)),
        weight=rng.uniform(0.2, 1.0, votes) if weighted else None,
    )


@pytest.mark.parametrize("method", [DawidSkene(), FastDawidSkene(), DawidSkene(trust=0.0), WeightedDawidSkene(),
                                    DawidSkene(assignment="hard", smoothing=0.5)])
@pytest.mark.parametrize("weighted", [False, True])
def test_cells_of_given_answers_alone_give_the_same(
    monkeypatch: pytest.MonkeyPatch, method: DawidSkene, weighted: bool
) -> None:
    answers = crowd(9, 6, 120, 40, weighted=weighted)
    gold = {answers.units[0]: answers.classes[2]}
    whole = method.fit(answers, gold=gold)
    monkeypatch.setattr(dense, "confusions_fit", lambda annotators, classes: False)
    part = method.fit(answers, gold=gold)
    assert part.confusion is None and whole.confusion is not None
    np.testing.assert_allclose(part.posterior, whole.posterior, atol=1e-10)
    np.testing.assert_allclose(part.objective, whole.objective, rtol=1e-10)
    np.testing.assert_allclose(part.skill, whole.skill, atol=1e-10)
    assert (part.label == whole.label).all()
    if isinstance(method, DawidSkene):
        np.testing.assert_allclose(
            posterior_without(method, answers, part), posterior_without(method, answers, whole), atol=1e-9)


@pytest.mark.parametrize("name", ["dawid-skene", "mace", "one-coin", "weighted-dawid-skene"])
def test_many_annotators_and_classes_need_no_confusion_matrices(name: str) -> None:
    answers = crowd(2000, 200, 3000, 800)
    found = make(name, max_iter=3).fit(answers) if name != "weighted-dawid-skene" else make(
        name, base=DawidSkene(max_iter=3)).fit(answers)
    assert found.confusion is None and np.isfinite(found.posterior).all()


@pytest.mark.parametrize("name", ["dswc", "ordinal-dawid-skene", "online-dawid-skene"])
def test_what_needs_them_names_the_size(name: str) -> None:
    with pytest.raises(ModelError, match=r"2,000 annotators x 200 x 200 classes, 0\.6 GB each"):
        make(name).fit(crowd(2000, 200, 50, 20))


def test_judging_annotators_names_the_size() -> None:
    with pytest.raises(ModelError, match=r"judging annotators needs tables of 2,000 annotators x 200 x 200"):
        judge(crowd(2000, 200, 50, 20), DawidSkene())
