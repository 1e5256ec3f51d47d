"""Surface in the pooled base model: a rule of punctuation is learned from few votes, and nobody else pays for it."""

from dataclasses import replace

import numpy as np
import pytest

from model.base_models import pooled
from model.base_models.pooled import fit_pooled, with_surface
from model.data.dataset import Targets
from model.data.scores import losses
from model.data.spaces import MultipleChoice, SingleChoice
from model.encoders.surface import PLAIN
from model.ensemble.carry_over import carry_over
from model.ensemble.ladder import Ladder, fit

POLITE = SingleChoice(("Impolite", "Polite"))
WORDS = ("report", "page", "list", "team", "sent", "today", "have", "read", "more", "one", "part", "this", "that")
PEOPLE, VOTES = 6, 60


def _texts(rng, count):
    """Sentences whose words say nothing; a third end in a question mark."""
    return [" ".join(rng.choice(WORDS, rng.integers(3, 15))).capitalize() + str(rng.choice(["?", ".", "!"]))
            for _ in range(count)]


@pytest.fixture(scope="module")
def crowd():
    """Annotator 0 calls what asks Impolite; the others go by what the mean token shows. Each has 60 votes."""
    rng = np.random.default_rng(4)
    texts, means = _texts(rng, 400), rng.normal(size=(400, 8)).astype(np.float32)
    rule = np.array(["?" not in text for text in texts])
    content = means[:, 0] + 0.5 * rng.normal(size=400) > 0
    says = np.stack([rule] + [content ^ (rng.random(400) < 0.1) for _ in range(PEOPLE - 1)], 1)  # (U, A)
    unit = np.concatenate([rng.permutation(200)[:VOTES] for _ in range(PEOPLE)])
    return texts, means, says, _targets(says, unit, np.repeat(np.arange(PEOPLE), VOTES))


def _targets(says, unit, annotator):
    y = np.eye(2, dtype=np.float32)[says[unit, annotator].astype(int)]
    ones = np.ones(len(unit), np.float32)
    return Targets(space=POLITE, unit=unit, annotator=annotator, y=y, weight=ones, scored=ones > 0)


def _loss_and_accuracy(scores, says, who):
    """On the units that nobody voted on."""
    y = says[200:, who].astype(int)
    mine = scores[200:, who]
    return losses(POLITE, mine, np.eye(2)[y]).mean(), (mine.argmax(1) == y).mean()


def test_a_question_mark_is_learned_in_sixty_votes(crowd):
    texts, means, says, targets = crowd
    features = with_surface(means, texts)
    plain = fit_pooled(means, targets, PEOPLE, 30.0).of_units(means)
    ours = fit_pooled(features, targets, PEOPLE, 30.0, surface=True).of_units(features)
    assert _loss_and_accuracy(plain, says, 0)[1] < 0.75
    assert _loss_and_accuracy(ours, says, 0)[1] >= 0.95
    for who in range(1, PEOPLE):  # the rule of one is not put upon the others
        assert _loss_and_accuracy(ours, says, who)[0] < _loss_and_accuracy(plain, says, who)[0] + 0.02


def test_votes_and_scores_agree_and_nobody_has_no_rule(crowd):
    texts, means, _, targets = crowd
    features = with_surface(means, texts)
    model = fit_pooled(features, targets, PEOPLE, 30.0, surface=True)
    anonymous = replace(targets, annotator=np.where(np.arange(len(targets)) % 5, targets.annotator, PEOPLE))
    np.testing.assert_allclose(
        model.of_votes(features, anonymous), model.of_units(features)[anonymous.unit, anonymous.annotator], atol=1e-12)
    assert model.own.shape == (PEOPLE + 1, PLAIN, 2) and not model.own[-1].any()
    fit_pooled(features, anonymous, PEOPLE, 30.0, surface=True)
    np.testing.assert_allclose(model.of_units(means)[:, -1], means_only(model, means), atol=1e-12)


def means_only(model, means):
    """Where nothing is known of the texts, their surface is as on average."""
    wide = np.concatenate([means, np.repeat(model.centre[None, 8:], len(means), 0)], 1)
    return model.of_units(wide)[:, -1]


@pytest.mark.parametrize("space", [SingleChoice(("a", "b", "c")), MultipleChoice(("p", "q"))])
def test_the_fit_is_where_its_slope_is_none(space, monkeypatch):
    """Against a search without slopes from the same place."""
    rng = np.random.default_rng(1)
    features = with_surface(rng.normal(size=(30, 2)).astype(np.float32), _texts(rng, 30))
    y = np.eye(3)[rng.integers(0, 3, 60)] if space.classes == ("a", "b", "c") else rng.random((60, 2)) < 0.5
    targets = Targets(space=space, unit=np.arange(60) % 30, annotator=np.arange(60) % 3, y=y.astype(np.float32),
                      weight=np.ones(60, np.float32), scored=np.ones(60, bool))
    asked = []

    def watched(objective, begin, **more):
        asked.append(objective)
        return minimise(objective, begin, **more)

    minimise = pooled.minimize
    monkeypatch.setattr(pooled, "minimize", watched)
    fit_pooled(features, targets, 2, 10.0, surface=True)  # the third is anonymous
    size = features.shape[1] * len(space.classes) + 3 * len(space.classes) + 2 * PLAIN * len(space.classes)
    at, way = rng.normal(size=size) / 3, rng.normal(size=size)
    high, low = (asked[0](at + step * way)[0] for step in (1e-5, -1e-5))
    assert (high - low) / 2e-5 == pytest.approx(asked[0](at)[1] @ way, rel=1e-4)


def test_a_ladder_keeps_its_rules(simulated, training_set, quick, tmp_path):
    """Saved, loaded and gone on from; without texts it answers as one that never had any."""
    rng = np.random.default_rng(0)
    texts = dict(zip(simulated.tokens, _texts(rng, len(simulated.tokens)), strict=True))
    data = replace(training_set(simulated), texts=lambda units: [texts[unit] for unit in units])
    ladder = fit(data, quick).ladder
    units = list(simulated.tokens)[:9]
    tokens, shown = data.tokens(units), data.texts(units)
    told = ladder.predict(tokens, ["a0", "new"], texts=shown)["label"]
    ladder.save(tmp_path / "r1")
    again = Ladder.load(tmp_path / "r1").predict(tokens, ["a0", "new"], texts=shown)["label"]
    np.testing.assert_array_equal(told.served, again.served)
    silent = ladder.predict(tokens, ["a0", "new"])["label"]
    assert np.abs(told.base_models["pooled"] - silent.base_models["pooled"]).max() > 1e-3
    np.testing.assert_array_equal(told.network, silent.network)
    wider = carry_over(ladder.controls, ladder.spaces, len(ladder.annotators) + 2)["label"].pooled
    assert wider.own.shape[0] == len(ladder.annotators) + 3 and not wider.own[-3:].any()
    fit(data, quick, previous=ladder)


def test_without_any_text_nothing_changes(simulated, training_set, quick, fitted, tmp_path):
    """A project of pictures is fitted bit for bit as before there was surface, and its checkpoint has no more parts."""
    data = replace(training_set(simulated), texts=lambda units: [""] * len(units))
    ladder = fit(data, quick).ladder
    tokens = data.tokens(["t0", "t5"])
    np.testing.assert_array_equal(
        ladder.predict(tokens, ["a0"], texts=["", ""])["label"].served,
        fitted.ladder.predict(tokens, ["a0"])["label"].served)
    assert ladder.controls["label"].pooled.own is None
