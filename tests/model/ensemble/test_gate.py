import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from model.data.dataset import Targets, build_dataset
from model.data.spaces import MultipleChoice, SingleChoice, Value
from model.ensemble.fitting import Fit
from model.ensemble.gate import _against_ladder
from model.ensemble.ladder import fit, judge
from model.ensemble.scoring import Scored, score_heldout
from model.simulate import simulate_annotators


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


def _a_little_worse(found, nats):
    """Each vote costs so much more; that differs a little from vote to vote."""
    item = found.heldout["label"]
    told = item.targets.y > 0.5
    more = nats * np.random.default_rng(1).uniform(0.8, 1.2, len(told))[:, None]
    p = np.where(told, item.p["served"] * np.exp(-more), 1.0 - (1.0 - item.p["served"]) * np.exp(-more))
    return replace(found, heldout={"label": replace(item, p=item.p | {"served": p})})


def test_a_difference_that_counts_as_none_holds_no_votes_back(good, project, training_set, quick):
    data = training_set(project, heldout=3)
    hair, little, much = (
        judge(_a_little_worse(good, nats), good.ladder, data, quick) for nats in (1e-9, 0.004, 0.02)
    )
    for verdict in (hair, little):
        assert verdict.publish and verdict.figures["low"] > 0.0
        assert "worse than the published version, but up to 0.0100 counts as no difference (+0.00" in verdict.reason
    assert little.figures["behind"] == little.figures["mean"] == pytest.approx(0.004, rel=0.05)
    assert not much.publish and much.reason.endswith("held-out votes; up to 0.0100 would count as no difference).")


def test_small_steps_backwards_add_up_and_steps_forwards_make_up_for_them(good, project, training_set, quick):
    data = training_set(project, heldout=3)
    behind, published = 0.0, []
    for _ in range(4):
        verdict = judge(_a_little_worse(good, 0.004), good.ladder, data, quick, behind=behind)
        published.append(verdict.publish)
        behind = verdict.figures["behind"] if verdict.publish else behind
    assert published == [True, True, False, False]
    limit = f"; up to {0.01 - behind:.4f} would count as no difference"
    assert verdict.reason.endswith(f"{limit}, since earlier versions fell behind by {behind:.4f}).")
    assert verdict.figures["limit"] == pytest.approx(0.01 - behind)
    better = judge(_a_little_worse(good, -0.004), good.ladder, data, quick, behind=behind)
    assert better.publish and better.figures["behind"] == pytest.approx(0.004, rel=0.05)
    still = judge(good, good.ladder, data, quick, behind=0.01)  # no step at all
    assert still.publish and still.figures["behind"] == 0.01
    for used in (0.01, 0.5):  # nothing is left, as when the margin was lowered
        hair = judge(_a_little_worse(good, 1e-9), good.ladder, data, quick, behind=used)
        assert hair.publish and hair.figures["behind"] == used
        more = judge(_a_little_worse(good, 0.001), good.ladder, data, quick, behind=used)
        assert not more.publish and "up to 0.0001 would count" in more.reason
    assert judge(_a_little_worse(good, -0.004), good.ladder, data, quick).figures["behind"] == 0.0


def test_what_was_fallen_behind_outlives_versions_that_cannot_be_compared(good, bad, project, training_set, quick):
    data = training_set(project, heldout=3)
    silent = {name: item.select(np.zeros(len(item.targets), bool)) for name, item in good.heldout.items()}
    untested = judge(
        replace(good, heldout=silent, cross_validation=silent), good.ladder, data, quick, behind=0.003)
    crossed = judge(good, bad.ladder, data, replace(quick, min_heldout_votes=10_000), behind=0.003)
    assert (untested.figures["test"], crossed.figures["test"]) == ("none", "cross_validation")
    assert untested.figures["behind"] == crossed.figures["behind"] == 0.003
    assert "behind" not in judge(good, None, data, quick, behind=0.003).figures


def test_a_first_version_is_not_held_back_for_a_hair(good, project, training_set, quick):
    def first(nats, **config):
        item = _a_little_worse(good, nats).heldout["label"]
        level = {"label": replace(item, p=item.p | {"prior": good.heldout["label"].p["served"]})}
        found = replace(good, heldout=level, cross_validation=level)
        return judge(found, None, training_set(project, heldout=3), replace(quick, **config))

    for config in ({}, {"min_heldout_votes": 10_000}):
        hair, much = first(1e-9, **config), first(0.02, **config)
        assert hair.publish and hair.figures["low"] > 0.0 and "counts as no difference" in hair.reason
        assert not much.publish and "worse than the annotator prior" in much.reason


def test_what_is_no_number_is_not_published(good, bad, project, training_set, quick):
    item = good.heldout["label"]
    p = item.p["served"].copy()
    p[:5] = np.nan
    few = {"label": replace(item, p=item.p | {"served": p})}
    crossed = {"label": replace(good.cross_validation["label"], p={"served": p})}
    for broken in (replace(good, heldout=few), replace(good, cross_validation=crossed)):
        for published in (None, good.ladder, bad.ladder):
            verdict = judge(broken, published, training_set(project, heldout=3), quick)
            assert not verdict.publish and verdict.reason == "Some of its predictions are not numbers."


def test_a_published_version_that_answers_with_no_numbers_holds_nothing_back(
    good, bad, project, training_set, quick, monkeypatch
):
    data = training_set(project, heldout=3)
    item = score_heldout(good.ladder, build_dataset(data, quick, good.ladder.annotators), data.tokens)["label"]

    def against(p):
        old = {"label": replace(item, p=item.p | {"served": p})}
        monkeypatch.setattr("model.ensemble.gate.score_heldout", lambda *_: old)
        return judge(good, bad.ladder, data, quick)

    p = item.p["served"].copy()
    p[:5] = np.nan
    assert against(p).publish and against(p).figures["compared_votes"] == 195
    assert against(p * np.nan).publish and against(p * np.nan).figures["against"] == "the annotator prior"


def test_what_may_be_luck_is_not_added_up(good, project, training_set, quick):
    item = good.heldout["label"]
    p = np.random.default_rng(3).permutation(item.p["served"])
    noisy = 0.9 * item.p["served"] + 0.1 * p
    found = replace(good, heldout={"label": replace(item, p=item.p | {"served": noisy})})
    wide = replace(quick, gate_level=1.0 - 1e-12)
    verdict = judge(found, good.ladder, training_set(project, heldout=3), wide, behind=0.002)
    assert verdict.figures["low"] < 0.0 < verdict.figures["mean"]
    assert verdict.publish and verdict.figures["behind"] == 0.002


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


def with_maybe(project):
    """Three in ten votes say a third thing."""
    votes = project.votes
    rng = np.random.default_rng(5)
    value = np.where(rng.random(len(votes)) < 0.3, len(votes.values), votes.value).astype(np.int32)
    votes = replace(votes, values=(*votes.values, Value.of_class("maybe")), value=value)
    return replace(project, votes=votes, space=SingleChoice(("maybe", "no", "yes")))


@pytest.fixture(scope="module")
def wider(good, project, training_set, quick):
    return fit(training_set(with_maybe(project), heldout=3), quick, previous=good.ladder)


def test_a_class_that_was_added_costs_nothing_on_the_others(good, wider, project, training_set, quick):
    data = training_set(with_maybe(project), heldout=3)
    verdict = judge(wider, good.ladder, data, quick)
    assert verdict.publish, verdict.reason
    assert 100 < verdict.figures["compared_votes"] < verdict.figures["heldout_votes"] == 200
    item = wider.heldout["label"]
    never = item.p["served"] * [1e-9, 1.0, 1.0]  # says nothing about the new class
    never /= never.sum(-1, keepdims=True)
    mute = replace(wider, heldout={"label": replace(item, p=item.p | {"served": never})})
    verdict = judge(mute, good.ladder, data, quick)
    assert not verdict.publish and "worse than the annotator prior" in verdict.reason


def test_a_class_that_was_removed_does_not_count_against_the_published_version(
    wider, project, training_set, quick
):
    data = training_set(project, heldout=3)
    dataset = build_dataset(data, quick, wider.ladder.annotators)
    old = score_heldout(wider.ladder, dataset, data.tokens)["label"]
    np.testing.assert_allclose(old.p["served"].sum(-1), 1.0)
    worse = replace(old, p=old.p | {"served": 0.6 * old.p["served"] + 0.2})
    verdict = judge(replace(wider, heldout={"label": worse}), wider.ladder, data, quick)
    assert not verdict.publish and verdict.figures["low"] > 0


def test_of_several_choices_only_the_common_columns_are_compared():
    old, new = MultipleChoice(("a", "b")), MultipleChoice(("a", "b", "c"))
    y = np.array([[1, 0, 1], [0, 0, 1], [0, 0, 0]], np.float32)
    here = np.arange(3)
    targets = Targets(space=new, unit=here, annotator=here * 0, y=y, weight=y[:, 0] * 0 + 1, scored=here >= 0)
    p = np.full((3, 3), 0.3)
    ladders = [{"c": Scored(targets=targets, p={"served": p * [1, 1, share]})} for share in (1.0, 0.0)]
    known = SimpleNamespace(controls={"c": SimpleNamespace(space=old)})
    difference, _ = _against_ladder(*ladders, known, here)
    assert difference.tolist() == [0.0, 0.0, 0.0]


def test_controls_are_joined_in_a_fixed_order():
    space, here = SingleChoice(("a", "b")), np.arange(1)
    names = [f"control {n}" for n in range(9)]
    made = {
        name: Scored(
            targets=Targets(
                space=space, unit=here + n, annotator=here, y=np.array([[1, 0]], np.float32),
                weight=np.ones(1, np.float32), scored=here == 0,
            ),
            p={"served": np.array([[0.5, 0.5]])},
        )
        for n, name in enumerate(names)
    }
    known = SimpleNamespace(controls={name: SimpleNamespace(space=space) for name in names})
    assert _against_ladder(made, made, known, np.arange(9))[1].tolist() == list(range(9))


def test_units_of_one_task_share_their_luck(good, project, training_set, quick):
    """The 50 held-out units are regions of ten tasks: too few to be a test."""
    data = training_set(project, heldout=3)
    regions = tuple(f"{int(unit[1:]) % 10}/{unit}" for unit in project.votes.units)
    data = replace(
        data, votes=replace(project.votes, units=regions),
        tokens=lambda units: data_tokens([unit.partition("/")[2] for unit in units]),
        heldout=lambda unit: int(unit.partition("/")[2][1:]) % 3 == 0,
    )
    data_tokens = training_set(project).tokens
    verdict = judge(good, None, data, quick)
    assert verdict.figures["test"] == "cross_validation" and "200 held-out votes on 10 tasks" in verdict.reason
    few = replace(quick, min_heldout_tasks=10)
    apart, together = judge(good, None, training_set(project, heldout=3), few), judge(good, None, data, few)
    assert together.figures["mean"] == apart.figures["mean"] and together.figures["low"] != apart.figures["low"]


def test_without_scored_votes_the_verdict_says_that_nothing_was_tested(good, project, training_set, quick):
    def none(scored):
        return {name: item.select(np.zeros(len(item.targets), bool)) for name, item in scored.items()}

    data = training_set(project, heldout=3)
    silent = replace(good, heldout=none(good.heldout), cross_validation=none(good.cross_validation))
    for published, what in ((None, "This version"), (good.ladder, "This replacement of the published version")):
        verdict = judge(silent, published, data, quick)
        assert verdict.publish and verdict.figures["test"] == "none"
        assert verdict.reason.startswith(f"{what} is untested")


def test_only_units_that_are_still_held_out_are_judged_on(good, project, training_set, quick):
    for published in (None, good.ladder):
        verdict = judge(good, published, training_set(project, heldout=6), quick)
        assert verdict.figures["test"] == "heldout" and verdict.figures["heldout_votes"] == 100


def test_a_published_version_that_lacks_the_controls_is_no_measure(good, project, training_set, quick):
    data = training_set(project, heldout=3)
    alien = fit(replace(data, spaces={"else": project.space, "label": project.space}), quick).ladder
    alien.controls.pop("label")
    verdict = judge(good, alien, data, quick)
    assert verdict.publish and "better than the annotator prior" in verdict.reason
