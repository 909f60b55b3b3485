"""Simulated data and the quick probability of many data sets are what the exact engine says they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from strategies import reduced

from agentic_bayes.decisions.simulate import (
    NO_DATA,
    Cells,
    ManyPosteriors,
    histograms,
    metric_of,
    mu_with_metric,
    new_task,
    simulate_successes,
)
from agentic_bayes.estimation.engines.grid.betabinomial import log_likelihood_table, log_likelihoods
from agentic_bayes.formatting import Metric


@given(st.floats(0.02, 0.98), st.floats(0.0, 0.95), st.integers(1, 8), st.sampled_from(["^", "@"]))
@settings(max_examples=reduced(60), deadline=None)
def test_mu_is_found_from_the_metric(value, rho, k, sign):
    """The metric at the μ that is found is the value asked for."""
    metric = Metric(f"pass{sign}{k}")
    mu = float(mu_with_metric(value, rho, metric))
    assert float(metric_of(mu, rho, metric)) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("text", ["pass^1", "pass^5", "pass^1000", "pass@5", "pass@1000"])
def test_with_tasks_all_or_nothing_every_metric_is_the_success_rate(text):
    """At ρ = 1 more attempts change nothing."""
    metric = Metric(text)
    assert float(metric_of(0.3, 1.0, metric)) == pytest.approx(0.3, abs=1e-9)
    assert float(mu_with_metric(0.3, 1.0, metric)) == pytest.approx(0.3, abs=1e-9)


@pytest.mark.parametrize("rho", [5e-324, 1e-320, 1e-200, 1e-99, 1 - 2**-53])
def test_any_correlation_can_be_simulated(rho):
    """Next to 0 and 1 as well."""
    drawn = simulate_successes(np.random.default_rng(1), 0.5, rho, 20_000, 4)
    assert drawn.mean() == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("rho", [0.0, 0.45, 1.0])
def test_simulated_tasks_have_the_moments_of_the_beta_binomial(rho):
    """Mean nμ and variance nμ(1-μ)(1 + (n-1)ρ) over 200,000 tasks, within 5 standard errors."""
    n, mu, size = 4, 0.65, 200_000
    drawn = simulate_successes(np.random.default_rng(1), mu, rho, size, n)
    variance = n * mu * (1 - mu) * (1 + (n - 1) * rho)
    assert abs(drawn.mean() - n * mu) <= 5 * np.sqrt(variance / size)
    assert drawn.var() == pytest.approx(variance, rel=0.02)
    if rho == 0:
        expected = stats.binom(n, mu).pmf(np.arange(n + 1))
        assert np.bincount(drawn, minlength=n + 1) / size == pytest.approx(expected, abs=0.005)


TRUTHS = ((0.8, 0.45), (0.7, 0.05), (0.97, 0.6), (0.3, 0.9))
# each metric and each design once
QUICK = {("pass^1", 1, 3), ("pass@3", 20, 3), ("pass^8", 60, 5), ("pass^3", 200, 1), ("pass^1", 2000, 2)}
KNOWN = Cells(np.array([0, 3, 4, 4, 2]), np.array([4, 4, 4, 6, 2]))


@pytest.mark.parametrize(
    ("text", "tasks", "trials"),
    [
        pytest.param(text, *design, marks=() if (text, *design) in QUICK else pytest.mark.slow)
        for text in ("pass^1", "pass^3", "pass@3", "pass^8")
        for design in ((1, 3), (20, 3), (60, 5), (200, 1), (2000, 2))
    ],
)
@pytest.mark.parametrize("known", [NO_DATA, KNOWN], ids=["nothing known", "five tasks known"])
def test_many_posteriors_at_once_are_the_exact_engines(text, tasks, trials, known):
    """Probabilities and the ends and widths of both kinds of interval, within .001, whatever the truth."""
    rng, metric = np.random.default_rng(7), Metric(text)
    for truth in TRUTHS:
        successes = np.array([simulate_successes(rng, *truth, tasks, trials) for _ in range(4)])
        many = ManyPosteriors(metric, trials, histograms(successes, trials), known=known)
        both = (Cells(np.append(known.successes, row), np.append(known.trials, row * 0 + trials)) for row in successes)
        exact = [new_task(cells, metric) for cells in both]
        assert many.at_least(0.5) == pytest.approx([one.at_least(0.5) for one in exact], abs=1e-3)
        for kind in ("eti", "hdi"):
            lower, upper = many.intervals(0.95, kind)
            expected = np.array([one.interval(0.95, kind) for one in exact])
            assert upper - lower == pytest.approx(expected[:, 1] - expected[:, 0], abs=1e-3)
            if kind == "eti":
                assert np.stack([lower, upper], axis=1) == pytest.approx(expected, abs=1e-3)


def test_data_sets_that_differ_widely_share_a_grid():
    """Their grid is as wide as all of them need."""
    rng, metric = np.random.default_rng(7), Metric("pass^3")
    successes = np.array([simulate_successes(rng, *truth, 60, 3) for truth in TRUTHS])
    many = ManyPosteriors(metric, 3, histograms(successes, 3))
    exact = [new_task(Cells(row, np.full(60, 3)), metric) for row in successes]
    assert many.at_least(0.5) == pytest.approx([one.at_least(0.5) for one in exact], abs=1e-4)
    assert many.intervals(0.95, "eti")[0] == pytest.approx([one.interval(0.95, "eti")[0] for one in exact], abs=1e-3)


def test_a_task_with_hundreds_of_trials():
    """The likelihood of every count at once is the one of each alone."""
    mu, rho = np.array([0.2, 0.9]), np.array([1e-6, 0.3, 0.999])
    together = log_likelihoods(500, np.log(mu), np.log1p(-mu), rho, 1 - rho)
    one = np.array([1])
    for c in (0, 1, 250, 500):
        alone = log_likelihood_table(c * one, 500 * one, one, np.log(mu), np.log1p(-mu), rho, 1 - rho)
        assert together[c].reshape(2, 3) == pytest.approx(alone, abs=1e-8)
