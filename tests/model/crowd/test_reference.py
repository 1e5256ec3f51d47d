"""Dawid-Skene, one-coin and GLAD against dense, slow, independent float64 versions written here from the formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from model.crowd.dawid_skene import DawidSkene
from model.crowd.glad import Glad
from model.crowd.leave_one_out import VotePredictor, posterior_without
from model.crowd.one_coin import OneCoin
from model.crowd.registry import make


def votes_of(answers):
    return list(zip(answers.unit.tolist(), answers.annotator.tolist(), answers.label.tolist(), strict=True))


def soft_vote(answers):
    U, _, C = answers.shape
    T = np.zeros((U, C))
    for u, _, label in votes_of(answers):
        T[u, label] += 1
    return T / T.sum(axis=1, keepdims=True)


def normalise(scores):
    scores = scores - scores.max(axis=1, keepdims=True)
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


def reference_dawid_skene(answers, pseudo, prior_pseudo, passes):
    U, A, C = answers.shape
    T = soft_vote(answers)
    for _ in range(passes):
        pi = np.repeat(pseudo[None], A, axis=0)  # [a, true, given]
        for u, a, label in votes_of(answers):
            for k in range(C):
                pi[a, k, label] += T[u, k]
        pi /= pi.sum(axis=2, keepdims=True)
        rho = (T.sum(axis=0) + prior_pseudo) / (U + C * prior_pseudo)
        scores = np.log(np.tile(rho, (U, 1)))
        for u, a, label in votes_of(answers):
            scores[u] += np.log(pi[a, :, label])
        T = normalise(scores)
    return T, pi, rho


def reference_one_coin(answers, right, wrong, prior_pseudo, passes):
    U, A, C = answers.shape
    T = soft_vote(answers)
    for _ in range(passes):
        hits, n = np.full(A, right), np.full(A, right + wrong)
        for u, a, label in votes_of(answers):
            hits[a] += T[u, label]
            n[a] += 1
        p = hits / n
        rho = (T.sum(axis=0) + prior_pseudo) / (U + C * prior_pseudo)
        scores = np.log(np.tile(rho, (U, 1)))
        for u, a, label in votes_of(answers):
            for k in range(C):
                scores[u, k] += np.log(p[a] if k == label else (1 - p[a]) / (C - 1))
        T = normalise(scores)
    return T, p


def reference_glad(answers, passes):
    """EM whose M step hands the whole target to L-BFGS."""
    U, A, C = answers.shape
    votes = votes_of(answers)
    alpha, b = np.ones(A), np.ones(U)

    def e_step():
        scores = np.zeros((U, C))
        for u, a, label in votes:
            z = alpha[a] * np.exp(b[u])
            for k in range(C):
                scores[u, k] += -np.logaddexp(0, -z) if k == label else -np.logaddexp(0, z) - np.log(C - 1)
        return normalise(scores)

    unit, annotator = np.array([v[0] for v in votes]), np.array([v[1] for v in votes])
    for _ in range(passes):
        T = e_step()
        t = np.array([T[u, label] for u, _, label in votes])

        def cost(x, t=t):
            al, be = x[:A], np.exp(x[A:])
            z = al[annotator] * be[unit]
            p = 1 / (1 + np.exp(-z))
            value = np.sum(t * z - np.logaddexp(0, z)) - 0.5 * np.sum((x - 1) ** 2)
            gradient = np.zeros(A + U)
            for i, (u, a, _) in enumerate(votes):
                gradient[a] += (t[i] - p[i]) * be[u]
                gradient[A + u] += (t[i] - p[i]) * z[i]
            return -value, -(gradient - (x - 1))

        x = minimize(cost, np.concatenate([alpha, b]), jac=True, method="L-BFGS-B",
                     options={"maxiter": 500, "ftol": 1e-15, "gtol": 1e-9}).x
        alpha, b = x[:A], x[A:]
    return e_step(), alpha, b


@pytest.mark.parametrize("seed", range(3))
def test_dawid_skene_equals_the_reference_after_every_number_of_passes(seed, crowd):
    answers = crowd(units=40, annotators=7, per_unit=4, seed=seed).answers
    settings = {"smoothing": 0.05, "trust": 0.2, "smoothing_prior": 0.7, "tol": 0.0}
    for passes in (1, 2, 7, 40):
        ours = DawidSkene(max_iter=passes, **settings).fit(answers)
        T, pi, rho = reference_dawid_skene(answers, 0.05 + 0.2 * np.eye(3), 0.7, passes)
        np.testing.assert_allclose(ours.posterior, T, atol=1e-6)
        np.testing.assert_allclose(ours.confusion, pi, atol=1e-6)
        np.testing.assert_allclose(ours.parameters["prior"], rho, atol=1e-6)
        assert ours.iterations == passes


def test_blocks_do_not_change_dawid_skene(crowd, monkeypatch):
    data = crowd(units=300, annotators=6, seed=2)
    whole = DawidSkene().fit(data.answers)
    monkeypatch.setattr("model.crowd.sums._BLOCK_VOTES", 50)
    cut = DawidSkene().fit(data.answers)
    np.testing.assert_allclose(cut.posterior, whole.posterior, atol=1e-10)
    np.testing.assert_allclose(cut.objective, whole.objective, rtol=1e-12)


def test_objective_of_dawid_skene_is_the_penalised_likelihood(crowd):
    """Of the parameters that are returned, computed here by the sum over classes."""
    answers = crowd(units=30, annotators=6, seed=5).answers
    fitted = DawidSkene(smoothing=0.3, trust=0.4, smoothing_prior=0.6).fit(answers)
    rho, pi = fitted.parameters["prior"], fitted.confusion
    total = 0.0
    for u in range(30):
        p = rho.copy()
        for _, a, label in [v for v in votes_of(answers) if v[0] == u]:
            p = p * pi[a, :, label]
        total += np.log(p.sum())
    total += np.sum((0.3 + 0.4 * np.eye(3)) * np.log(pi)) + 0.6 * np.log(rho).sum()
    assert fitted.objective[-1] == pytest.approx(total, abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_one_coin_equals_the_reference(seed, crowd):
    answers = crowd(units=40, annotators=7, per_unit=4, seed=seed).answers
    for passes in (1, 5, 40):
        ours = OneCoin(right=0.3, wrong=0.2, smoothing_prior=0.7, max_iter=passes, tol=0.0).fit(answers)
        T, p = reference_one_coin(answers, 0.3, 0.2, 0.7, passes)
        np.testing.assert_allclose(ours.posterior, T, atol=1e-6)
        np.testing.assert_allclose(ours.skill, p, atol=1e-6)


@pytest.mark.parametrize("seed", [0, 1])
def test_glad_ends_where_the_reference_ends(seed, crowd):
    """Their M steps differ (one step against a full optimum), their fixed points do not."""
    answers = crowd(units=16, annotators=6, per_unit=4, seed=seed).answers
    ours = Glad(max_iter=4000, tol=1e-14).fit(answers)
    T, alpha, b = reference_glad(answers, 120)
    np.testing.assert_allclose(ours.posterior, T, atol=1e-6)
    np.testing.assert_allclose(ours.skill, alpha, atol=1e-4)
    np.testing.assert_allclose(ours.difficulty, np.exp(-b), atol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_recovers_true_confusions_of_a_large_crowd(seed, crowd):
    data = crowd(units=4000, annotators=12, per_unit=8, classes=3, seed=seed, good=3.0)
    fitted = DawidSkene().fit(data.answers)
    assert np.abs(fitted.confusion - data.confusion).max() < 0.1
    assert np.abs(fitted.confusion - data.confusion).mean() < 0.015
    assert np.mean(fitted.label == data.truth) > 0.95


@pytest.mark.parametrize("name", ["dawid-skene", "one-coin", "glad", "mace", "dswc", "ordinal-dawid-skene"])
@pytest.mark.parametrize("weighted", [False, True])
def test_leaving_a_vote_out_is_exact(name, weighted, crowd):
    """Equal to an E step at the same parameters over answers that lack the vote."""
    answers = crowd(units=30, annotators=6, per_unit=4, seed=8).answers
    if weighted:
        weight = np.random.default_rng(0).uniform(0.2, 1.0, len(answers))
        answers = type(answers).from_codes(
            units=answers.units, annotators=answers.annotators, classes=answers.classes, unit=answers.unit,
            annotator=answers.annotator, label=answers.label, weight=weight,
        )
    settings = {"n_clusters": 2, "restarts": 2} if name == "dswc" else {}
    method = make(name, **settings)
    gold = {answers.units[3]: "c1"}
    fitted = method.fit(answers, gold=gold)
    without = posterior_without(method, answers, fitted)
    rows, prior = method.evidence(answers, fitted)
    for vote in range(len(answers)):
        others = (answers.unit == answers.unit[vote]) & (np.arange(len(answers)) != vote)
        expected = normalise((rows[others].sum(axis=0) + prior)[None])[0]
        if answers.unit[vote] == 3:
            expected = np.array([0.0, 1.0, 0.0])
        np.testing.assert_allclose(without[vote], expected, atol=1e-9)
    # and all votes together give the fit's own posterior back
    everything = normalise(np.stack([rows[answers.unit == u].sum(axis=0) for u in range(30)]) + prior)
    everything[3] = [0.0, 1.0, 0.0]
    tolerance = 1e-9 if name in {"dawid-skene", "one-coin", "glad", "mace", "ordinal-dawid-skene"} else 2e-2
    np.testing.assert_allclose(fitted.posterior, everything, atol=tolerance)


def test_predicting_a_vote_ignores_that_vote(crowd):
    """The prediction is the brute-force mixture of confusion rows whose counts lack the vote."""
    data = crowd(units=50, annotators=6, per_unit=4, seed=9)
    answers, method = data.answers, DawidSkene()
    fitted = method.fit(answers)
    predicted = VotePredictor(strength=4.0, floor=0.1).predict_votes(method, answers, fitted)
    np.testing.assert_allclose(predicted.sum(axis=1), 1.0)
    without = posterior_without(method, answers, fitted)
    for vote in (0, 7, 100):
        u, a, label = answers.unit[vote], answers.annotator[vote], answers.label[vote]
        counts, pooled = fitted.counts[a].copy(), fitted.counts.sum(axis=0)
        counts[:, label] -= fitted.posterior[u]
        pooled[:, label] -= fitted.posterior[u]
        pooled = np.maximum(pooled + 0.1, 0.1)
        counts = np.maximum(counts, 0) + 4.0 * pooled / pooled.sum(axis=1, keepdims=True)
        expected = without[vote] @ (counts / counts.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(predicted[vote], expected, atol=1e-9)
    hit = predicted[np.arange(len(answers)), answers.label]
    assert np.mean(hit) > 0.5


def test_counts_are_those_of_the_posterior(crowd):
    for name in ("dawid-skene", "dswc", "ordinal-dawid-skene"):
        answers = crowd(units=40, seed=1).answers
        fitted = make(name, **({"n_clusters": 2} if name == "dswc" else {})).fit(answers)
        counts = np.zeros((9, 3, 3))
        for u, a, label in votes_of(answers):
            counts[a, :, label] += fitted.posterior[u]
        np.testing.assert_allclose(fitted.counts, counts, atol=1e-9)
