"""The gate beyond pairs of versions: many small losses come to an end, and one person holds nobody back for ever."""

from dataclasses import replace

import numpy as np
import pytest

from model.ensemble.audit import audit_evidence
from model.ensemble.gate import judge
from model.ensemble.ladder import fit
from model.ensemble.remembered import LAST
from model.simulate import simulate_annotators


@pytest.fixture(scope="module")
def project():
    return simulate_annotators(np.random.default_rng(23), units=180, annotators=4, dim=16)


@pytest.fixture(scope="module")
def good(project, training_set, quick):
    return fit(training_set(project, heldout=3), quick)


def _blurred(found, share):
    """The same candidate, a little nearer to knowing nothing."""
    item = found.heldout["label"]
    p = {way: (1 - share) * each + share / each.shape[1] for way, each in item.p.items()}
    return replace(found, heldout={"label": replace(item, p=p)})


def _left(found):
    """What a version leaves."""
    return audit_evidence(found)


def test_many_small_losses_do_not_add_up_to_a_large_one(good, project, training_set, quick):
    """Compared with a published version that answers just as the candidate does, but came to that by many steps."""
    data = training_set(project, heldout=3)
    worst = _blurred(good, 0.6)
    earlier = [("r1", _left(good))]
    near = judge(worst, _as(good, worst), data, quick, earlier=earlier)
    assert not near.publish and near.figures["best"]["version"] == "r1"
    assert "worse than r1, the one before it" in near.reason and "add up" in near.reason
    assert judge(worst, _as(good, worst), data, quick).publish


def _as(good, candidate):
    """A ladder that answers held-out votes as `candidate` was scored."""
    item = candidate.heldout["label"]
    answers = np.full((1 + item.targets.unit.max(), len(good.ladder.annotators), item.p["served"].shape[1]), np.nan)
    answers[item.targets.unit, item.targets.annotator] = item.p["served"]
    units = {unit: at for at, unit in enumerate(good.units)}

    class Answering:
        annotators, controls, config = good.ladder.annotators, good.ladder.controls, good.ladder.config

        def base_models(self, control, *, observed=True):
            return good.ladder.base_models(control, observed=observed)

        def predict(self, tokens, annotators, *, units_=units, **more):
            rows = [units_[unit] for unit in more["units"]]
            real = good.ladder.predict(tokens, annotators, units=more["units"], consensus=False)["label"]
            return {"label": replace(real, served=answers[rows])}

    return Answering()


def test_an_older_version_that_is_no_better_holds_nothing_back(good, project, training_set, quick):
    data = training_set(project, heldout=3)
    verdict = judge(good, good.ladder, data, quick, earlier=[("r1", _left(_blurred(good, 0.3))), ("r0", _left(good))])
    assert verdict.publish
    assert verdict.figures["best"]["version"] == "r0" and verdict.figures["best"]["mean"] == pytest.approx(0, abs=1e-6)
    assert verdict.figures["best"]["among"] == 2


def test_only_the_last_are_looked_at_and_only_with_enough_common_votes(good, project, training_set, quick):
    data = training_set(project, heldout=3)
    old = _left(good)
    assert judge(good, good.ladder, data, quick, earlier=[("r", old)] * (LAST + 5)).figures["best"]["among"] == LAST
    item = old.controls["label"]
    few = replace(old, controls={"label": replace(item, unit=item.unit[:5], annotator=item.annotator[:5],
                                                  served=item.served[:5], prior=item.prior[:5])})
    assert "best" not in judge(good, good.ladder, data, quick, earlier=[("r1", few)]).figures


def _worse_for(found, who):
    """A candidate that turns the answers of one annotator round."""
    item = found.heldout["label"]
    p = {way: each.copy() for way, each in item.p.items()}
    mine = item.targets.annotator == who
    p["served"][mine] = p["served"][mine][:, ::-1]
    others = ~mine  # and serves everybody else better, so that all together it could be published
    p["served"][others] = 0.5 * p["served"][others] + 0.5 * item.targets.y[others]
    return replace(found, heldout={"label": replace(item, p=p)})


def test_a_person_who_is_clearly_worse_off_holds_a_version_back_once(good, project, training_set, quick):
    data = training_set(project, heldout=3)
    bad = _worse_for(good, 1)
    name = good.ladder.annotators[1]
    first = judge(bad, good.ladder, data, quick)
    assert not first.publish and set(first.figures["worse_for"]) == {name}
    assert "for 1 annotator it is shown to be worse by more than 0.05 nats a vote" in first.reason
    assert name not in first.reason.split()  # names may be masked; the figures have them
    again = judge(bad, good.ladder, data, quick, waived={name})
    assert again.publish and "Even trained from scratch" in again.reason and set(again.figures["worse_for"]) == {name}
    assert not judge(bad, good.ladder, data, quick, waived={"somebody else"}).publish


def test_somebody_with_few_votes_or_a_little_worse_holds_nothing_back(good, project, training_set, quick):
    data = training_set(project, heldout=3)
    assert judge(_worse_for(good, 1), good.ladder, data, replace(quick, person_votes=1000)).publish
    assert judge(_worse_for(good, 1), good.ladder, data, replace(quick, person_margin=50.0)).publish
    assert "worse_for" not in judge(good, good.ladder, data, quick).figures
