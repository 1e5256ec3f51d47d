import json
from dataclasses import replace

import numpy as np
import pytest

from model.ensemble.fitting import Fit
from model.ensemble.ladder import fit, judge
from model.simulate import simulate_annotators
from model.spaces import SingleChoice


@pytest.fixture(scope="module")
def project():
    return simulate_annotators(np.random.default_rng(21), units=150, annotators=4, dim=16)


@pytest.fixture(scope="module")
def good(project, training_set, quick):
    return fit(training_set(project, heldout=3), quick)


@pytest.fixture(scope="module")
def bad(project, training_set, quick):
    """Fitted on votes that have nothing to do with content or annotator."""
    votes = project.votes
    noise = replace(votes, value=np.random.default_rng(0).integers(0, 2, len(votes)).astype(np.int32))
    return fit(training_set(replace(project, votes=noise), heldout=3), quick)


def _rescored(found: Fit, project, training_set, quick):
    """The same ladder with the held-out votes of `project`."""
    from model.dataset import build_dataset
    from model.ensemble.scoring import score_heldout

    data = training_set(project, heldout=3)
    dataset = build_dataset(data, quick, found.ladder.annotators)
    return replace(found, heldout=score_heldout(found.ladder, dataset, data.tokens))


def test_the_first_version_is_measured_against_the_annotator_prior(good, project, training_set, quick):
    verdict = judge(good, None, training_set(project, heldout=3), quick)
    assert verdict.publish and "better than the annotator prior" in verdict.reason
    assert verdict.figures["test"] == "heldout" and verdict.figures["high"] < 0
    json.dumps(verdict.figures, allow_nan=False)


def test_a_worse_one_is_rejected_and_the_reason_says_so(good, bad, project, training_set, quick):
    data = training_set(project, heldout=3)
    verdict = judge(_rescored(bad, project, training_set, quick), good.ladder, data, quick)
    assert not verdict.publish
    assert verdict.figures["low"] > 0
    assert "worse than the published version" in verdict.reason and verdict.reason.count(". ") == 0


def test_a_better_one_and_an_equal_one_are_published(good, bad, project, training_set, quick):
    data = training_set(project, heldout=3)
    assert "better than the published version" in judge(good, bad.ladder, data, quick).reason
    equal = judge(good, good.ladder, data, quick)
    assert equal.publish and "not shown to be worse" in equal.reason and equal.figures["mean"] == 0.0


def test_a_bad_first_version_is_rejected(bad, project, training_set, quick):
    found = _rescored(bad, project, training_set, quick)
    item = found.heldout["label"]
    wrong = replace(item, p=item.p | {"served": 1.0 - item.targets.y * 0.9 - 0.05})
    assert not judge(replace(found, heldout={"label": wrong}), None, training_set(project, heldout=3), quick).publish


def test_few_heldout_votes_leave_it_to_cross_validation(good, bad, project, training_set, quick):
    strict = replace(quick, min_heldout_votes=10_000)
    data = training_set(project, heldout=3)
    first, later = judge(good, None, data, strict), judge(good, bad.ladder, data, strict)
    for verdict in (first, later):
        assert verdict.publish and verdict.figures["test"] == "cross_validation"
        assert "cross-validation on training votes" in verdict.reason
    item = good.cross_validation["label"]
    worse = {"label": replace(item, p=item.p | {"served": np.full_like(item.p["served"], 0.5) * [1.8, 0.2]})}
    verdict = judge(replace(good, cross_validation=worse), bad.ladder, data, strict)
    assert not verdict.publish and "does not hold its own" in verdict.reason


def test_a_published_version_with_other_classes_is_compared_where_it_can_answer(good, project, training_set, quick):
    wider = replace(project, space=SingleChoice(("maybe", "no", "yes")))
    data = training_set(wider, heldout=3)
    verdict = judge(fit(data, quick, previous=good.ladder), good.ladder, data, quick)
    assert verdict.figures["heldout_votes"] == 200
    other = training_set(replace(project, space=SingleChoice(("no", "yes"))), heldout=3)
    alien = fit(replace(other, spaces={"else": project.space, "label": project.space}), quick).ladder
    alien.controls.pop("label")
    verdict = judge(good, alien, data, quick)
    assert verdict.publish and "nothing to compare" in verdict.reason
