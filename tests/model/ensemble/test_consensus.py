import numpy as np
import pytest

from model.data.observed_votes import observed_votes
from model.data.scores import to_probabilities, to_scores
from model.data.spaces import MultipleChoice, SingleChoice, Value
from model.data.votes import Provenance, Vote, Votes
from model.ensemble.consensus import _some_units, fit_panel_noise, majority, widened

SINGLE, MULTIPLE = SingleChoice(("a", "b")), MultipleChoice(("p", "q"))


def _ask(space, p, *, given=None, has=None, panel=None, sigma=0.0, draws=2000):
    """Majority for one unit with probabilities `p` (P, C)."""
    p = np.asarray(p, float)
    people = len(p)
    given = np.zeros_like(p) if given is None else np.asarray(given, float)
    has = np.zeros(people, bool) if has is None else np.asarray(has)
    panel = np.ones(people, bool) if panel is None else np.asarray(panel)
    return majority(space, to_scores(space, p)[None], given[None], has[None], panel[None], sigma, draws)[0]


def test_three_independent_annotators_by_hand():
    p = 0.7
    found = _ask(SINGLE, [[p, 1 - p]] * 3, draws=20_000)
    assert found[0] == pytest.approx(p**3 + 3 * p**2 * (1 - p), abs=0.01)
    assert found.sum() == pytest.approx(1.0)


def test_a_tie_is_shared():
    given = [[1, 0], [0, 1]]
    np.testing.assert_allclose(_ask(SINGLE, [[0.5, 0.5]] * 2, given=given, has=[True, True]), [0.5, 0.5])
    np.testing.assert_allclose(_ask(MULTIPLE, [[0.5, 0.5]] * 2, given=[[1, 0], [0, 0]], has=[True, True]), [0.5, 0.0])


def test_given_votes_count_as_what_they_are():
    found = _ask(SINGLE, [[0.01, 0.99]] * 3, given=[[1, 0], [1, 0], [0, 0]], has=[True, True, False])
    np.testing.assert_allclose(found, [1.0, 0.0])


def test_annotators_outside_the_panel_do_not_count():
    p = [[0.9, 0.1], [0.001, 0.999], [0.001, 0.999]]
    assert _ask(SINGLE, p, panel=[True, False, False])[0] == pytest.approx(0.9, abs=0.03)


def test_shared_errors_make_a_large_panel_less_sure():
    p = [[0.65, 0.35]] * 25
    independent, shared = _ask(SINGLE, p)[0], _ask(SINGLE, p, sigma=2.0)[0]
    assert independent > 0.9
    assert 0.55 < shared < 0.8


def test_a_given_vote_is_evidence_on_the_others_when_errors_are_shared():
    p = [[0.6, 0.4]] * 15
    has = [True] * 2 + [False] * 13
    against = [[0, 1]] * 2 + [[0, 0]] * 13
    alone, together = (_ask(SINGLE, p, given=against, has=has, sigma=sigma)[1] for sigma in (0.0, 2.0))
    assert together > alone + 0.2


def test_an_echo_says_less_of_the_others_and_counts_all_the_same():
    scores = to_scores(SINGLE, np.full((1, 15, 2), 0.5))
    given, has, panel = np.zeros((1, 15, 2)), np.zeros((1, 15), bool), np.ones((1, 15), bool)
    given[0, :2, 1], has[0, :2] = 1.0, True
    none, little, full = (
        majority(SINGLE, scores, given, has, panel, 2.0, 2000, np.full((1, 15), trust))[0, 1]
        for trust in (0.0, 0.3, 1.0)
    )
    assert none + 0.05 < little < full - 0.05
    assert none > 0.5  # two of fifteen are there


def test_echoes_are_found_among_given_votes():
    votes = Votes.from_votes([
        Vote(unit="u", annotator="a", control="c", value=Value.of_class("a"), provenance=Provenance.ACCEPTED),
        Vote(unit="u", annotator="b", control="c", value=Value.of_class("a"), provenance=Provenance.CHANGED),
    ])
    found = observed_votes(votes, "c", SINGLE, ["u"], {"a": 0, "b": 1}, 0.25)
    np.testing.assert_array_equal(found.weight, [[0.25, 1.0]])
    assert found.has.all()


@pytest.mark.parametrize("classes", [2, 3, 5, 12])
@pytest.mark.parametrize("sigma", [0.6, 2.0])
def test_the_average_over_the_shift_is_the_probability(classes, sigma):
    space = SingleChoice(tuple(f"c{index}" for index in range(classes)))
    p = np.full(classes, 0.5 / (classes - 1))
    p[0] = 0.5
    wide = widened(space, np.log(p), sigma)
    z = np.random.default_rng(3).standard_normal((40_000, classes))
    assert to_probabilities(space, wide + sigma * z).mean(0)[0] == pytest.approx(0.5, abs=0.02)


def test_the_panel_noise_is_fitted_on_a_sample_of_whole_units():
    unit = np.repeat(np.arange(1000), 7)
    rows = _some_units(unit, 300)
    found, count = np.unique(unit[rows], return_counts=True)
    assert 280 <= len(rows) <= 300 and (count == 7).all()
    assert found.max() > 800  # not the first ones
    assert len(_some_units(unit, 10_000)) == 7000
    np.testing.assert_array_equal(_some_units(unit, 300), rows)


def _exactly(scores, given, sigma):
    """The majority of "b" of two classes by quadrature over the shift of their difference, and by the distribution of
    how many of the missing choose it; `scores` (P,) of the difference, `given` (V,) the first votes."""
    wide = widened(SINGLE, np.stack([np.zeros_like(scores), scores], 1), sigma)[:, 1]
    shift = np.linspace(-9.0, 9.0, 1201)
    p = to_probabilities(MULTIPLE, wide[:, None] + sigma * np.sqrt(2.0) * shift)  # (P, grid)
    p = np.clip(p, 1e-12, 1.0 - 1e-12)
    weight = np.log(np.where(given[:, None] == 1, p[: len(given)], 1.0 - p[: len(given)])).sum(0) - shift**2 / 2.0
    weight = np.exp(weight - weight.max())
    count = np.zeros((len(scores) + 1, len(shift)))  # of votes for "b"
    count[given.sum()] = 1.0
    for each in p[len(given) :]:
        count[1:] = count[1:] * (1.0 - each) + count[:-1] * each
        count[0] *= 1.0 - each
    votes = np.arange(len(scores) + 1)
    won = (2 * votes > len(scores)) + 0.5 * (2 * votes == len(scores))
    return won @ count @ weight / weight.sum()


@pytest.mark.parametrize(("few", "for_b"), [(3, 2), (12, 7), (60, 33)])
@pytest.mark.parametrize("sigma", [0.6, 1.5, 3.0])
def test_many_votes_against_what_was_predicted_are_believed_as_they_should_be(few, for_b, sigma):
    scores = np.random.default_rng(few).normal(-2.5, 0.5, 2 * few + 9)  # "a", says content; over half say "b"
    given = (np.arange(few) < for_b).astype(int)
    y = np.zeros((1, len(scores), 2))
    y[0, np.arange(few), given] = 1.0
    has = np.arange(len(scores)) < few
    both = np.stack([np.zeros_like(scores), scores], 1)[None]
    found = majority(SINGLE, both, y, has[None], np.ones((1, len(scores)), bool), sigma, 2000)[0]
    assert found[1] == pytest.approx(_exactly(scores, given, sigma), abs=0.035)


def test_votes_on_one_unit_leave_the_draws_of_another_alone():
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=(3, 9, 2)), np.eye(2)[rng.integers(0, 2, (3, 9))]
    has, panel = np.zeros((3, 9), bool), np.ones((3, 9), bool)
    has[1, :5] = True
    together = majority(SINGLE, scores, y, has, panel, 2.0, 300)
    for row in range(3):
        part = slice(row, row + 1)
        alone = majority(SINGLE, scores[part], y[part], has[part], panel[part], 2.0, 300)
        np.testing.assert_array_equal(alone[0], together[row])


def test_several_choices_have_a_majority_each():
    found = _ask(MULTIPLE, [[0.95, 0.05]] * 5)
    assert found[0] > 0.95 and found[1] < 0.05


def test_a_result_does_not_depend_on_the_batch():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(6, 4, 2))
    zeros, has, panel = np.zeros((6, 4, 2)), np.zeros((6, 4), bool), np.ones((6, 4), bool)
    together = majority(SINGLE, scores, zeros, has, panel, 1.0, 300)
    for row in range(6):
        part = slice(row, row + 1)
        alone = majority(SINGLE, scores[part], zeros[part], has[part], panel[part], 1.0, 300)
        np.testing.assert_array_equal(alone[0], together[row])


@pytest.mark.parametrize("truth", [0.0, 2.0])
def test_the_panel_noise_is_found(truth):
    rng = np.random.default_rng(4)
    units, people = 400, 8
    shift = truth * rng.normal(size=(units, 1, 2))
    p = to_probabilities(SINGLE, np.broadcast_to(shift, (units, people, 2)))
    y = np.eye(2)[(rng.random((units, people)) < p[..., 1]).astype(int)].reshape(-1, 2)
    found = fit_panel_noise(SINGLE, np.zeros((units * people, 2)), np.repeat(np.arange(units), people), y)
    assert abs(found - truth) <= 0.5
    assert fit_panel_noise(SINGLE, np.zeros((0, 2)), np.empty(0, int), np.empty((0, 2))) == 0.0


def test_given_votes_become_arrays():
    votes = Votes.from_votes([
        Vote(unit="u2", annotator="known", control="c", value=Value.of_class("a"), time=1.0),
        Vote(unit="u2", annotator="known", control="c", value=Value.of_class("b"), time=2.0),
        Vote(unit="u1", annotator="stranger", control="c", value=Value.of_class("a")),
        Vote(unit="u1", annotator="known", control="c", value=Value.of_class("gone")),
        Vote(unit="elsewhere", annotator="other", control="c", value=Value.of_class("a")),
        Vote(unit="u1", annotator="known", control="d", value=Value.of_class("a")),
    ])
    found = observed_votes(votes, "c", SINGLE, ["u1", "u2"], {"first": 0, "known": 1})
    np.testing.assert_array_equal(found.has, [[False, False, True], [False, True, False]])
    np.testing.assert_array_equal(found.y[1, 1], [0, 1])  # the later of two
    assert not observed_votes(votes, "none", SINGLE, ["u1"], {}).has.any()
