"""Data at every edge give finite numbers in [0, 1], in order, without a warning (warnings are errors here)."""

import numpy as np
import pytest
from calibration.simulate import counts_of, exact_posterior, stats_of

from agentic_bayes.formatting import Metric

METRICS = tuple(map(Metric, ("pass^1", "pass^5", "pass@5")))
RNG = np.random.default_rng(0)
RATES = RNG.beta(1, 1, 10**5)
MILLION = 10**6
DATA = {
    "a million trials": (RNG.binomial(MILLION, RATES[:30]), np.full(30, MILLION)),
    "a million trials, one failure": (np.full(3, MILLION - 1), np.full(3, MILLION)),
    "a million trials, all pass": (np.full(30, MILLION), np.full(30, MILLION)),
    "a hundred thousand tasks": (RNG.binomial(5, RATES), np.full(10**5, 5)),
    "a hundred thousand tasks, all pass": (np.full(10**5, 5), np.full(10**5, 5)),
    "all pass": (np.full(30, 5), np.full(30, 5)),
    "all fail": (np.zeros(30, dtype=int), np.full(30, 5)),
    "each task always or never": (np.repeat([0, 5], 15), np.full(30, 5)),
    "exactly half": (np.full(30, 2), np.full(30, 4)),
    "one task": (np.array([3]), np.array([4])),
    "one trial": (np.array([1]), np.array([1])),
    "one trial each": (RNG.binomial(1, 0.6, 40), np.full(40, 1)),
    "one trial and a million": (np.array([1, MILLION, 0, 3]), np.array([1, 2 * MILLION, 4, 3])),
}


def numbers(stats):
    return np.array([stats.mean, stats.sd, stats.median, stats.lower, stats.upper])


def assert_in_order(stats):
    values = numbers(stats)
    assert np.all(np.isfinite(values))
    assert values.min() >= 0
    assert values.max() <= 1
    assert np.all((stats.lower <= stats.median) & (stats.median <= stats.upper))


@pytest.mark.parametrize("name", DATA)
def test_every_estimand_is_finite_and_in_order(name):
    """Mean, sd, median and interval of population, tasks and task are finite, in [0, 1] and in order."""
    posterior = exact_posterior(counts_of(*DATA[name]), metrics=METRICS)
    for metric in METRICS:
        population = stats_of(posterior, 0, "population", metric)
        assert_in_order(population)
        assert population.lower < population.upper
        assert_in_order(stats_of(posterior, 0, "tasks", metric))
        assert_in_order(stats_of(posterior, 0, "task", metric))


def test_many_agents_of_which_one_was_never_scored():
    """All are finite; the one without data has the population's prediction, and no tasks to average over."""
    c, n = RNG.binomial(5, RATES[:600].reshape(60, 10)), np.full((60, 10), 5)
    c[3] = n[3] = 0
    posterior = exact_posterior(counts_of(c, n), metrics=METRICS)
    means = [posterior.distribution(agent, "population", METRICS[0]).mean for agent in range(60)]
    assert_in_order(stats_of(posterior, 3, "population", METRICS[0]))
    assert min(means) < means[3] < max(means)
    assert means[3] == pytest.approx(np.delete(means, 3).mean(), abs=0.02)
    assert np.all(np.isnan(numbers(stats_of(posterior, 3, "tasks", METRICS[0]))))


def test_thirty_tasks_that_always_passed_do_not_prove_that_all_will():
    """30 × 5, all pass: pass^5 of a new task lies in about [.886, .999]; all fail is the mirror image."""
    passed, failed = (exact_posterior(counts_of(*DATA[name]), metrics=METRICS) for name in ("all pass", "all fail"))
    up = stats_of(passed, 0, "population", Metric("pass^5"))
    down = stats_of(failed, 0, "population", Metric("pass@5"))
    assert up.lower == pytest.approx(0.886, abs=5e-4)
    assert 0.99 < up.upper < 1
    assert up.mean == pytest.approx(1 - down.mean, abs=1e-10)
    assert (up.lower, up.upper) == pytest.approx((1 - down.upper, 1 - down.lower), abs=1e-5)
