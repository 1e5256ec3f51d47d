"""Draws are over whole tasks; the figure is that of the data; intervals cover."""

from __future__ import annotations

import numpy as np

from model.evaluate.bootstrap import Resampler, interval, jackknife, task_draws


def test_row_zero_is_the_data_and_draws_keep_the_number_of_tasks():
    draws = task_draws(7, 50)
    assert draws.shape == (51, 7) and (draws[0] == 1).all() and (draws.sum(1) == 7).all()
    assert np.array_equal(draws, task_draws(7, 50))


def test_sums_agree_with_drawing_the_tasks_again_by_hand():
    rng = np.random.default_rng(1)
    task, group = rng.integers(0, 6, 40), rng.integers(0, 3, 40)
    column, draws = rng.random(40), task_draws(6, 5)
    sample = Resampler(draws=draws, task=task)
    for r, draw in enumerate(draws):
        weight = draw[task]
        assert np.isclose(sample.sums(column[:, None])[r, 0], weight @ column)
        for g in range(3):
            assert np.isclose(sample.grouped(column, group, 3)[r, g], (weight * column)[group == g].sum())


def test_interval_covers_the_truth_about_as_often_as_it_says():
    """Votes of a task are alike; an interval that took them for independent would cover far less."""
    rng, covered = np.random.default_rng(2), 0
    draws, task = task_draws(60, 300), np.repeat(np.arange(60), 5)
    for _ in range(200):
        values = np.repeat(rng.standard_normal(60), 5) + 0.3 * rng.standard_normal(300)
        sums = Resampler(draws=draws, task=task).sums(np.stack([values, np.ones(300)], 1))
        found = interval(sums[:, 0] / sums[:, 1])
        assert np.isclose(found.mean, values.mean())
        covered += found.low <= 0.0 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


def test_jackknife_of_a_mean_is_about_that_of_theory():
    rng = np.random.default_rng(3)
    values, task = rng.standard_normal(2000), np.arange(2000)
    (found,) = jackknife(lambda kept: np.array([values[kept].mean()]), task)
    assert np.isclose(found.mean, values.mean())
    assert 0.5 < (found.high - found.low) / (2 * 1.96 / np.sqrt(2000)) < 1.8


def test_nothing_to_draw_is_no_interval():
    assert np.isnan(interval(np.array([0.5, np.nan, np.nan])).low)
