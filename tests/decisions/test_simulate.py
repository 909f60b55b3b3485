"""Simulated data and the quick probability of many data sets are what the exact engine says they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from agentic_bayes.decisions.simulate import (
    Cells,
    ManyGates,
    metric_of,
    mu_with_metric,
    new_task,
    simulate_successes,
)
from agentic_bayes.formatting import Metric


@given(st.floats(0.02, 0.98), st.floats(0.0, 0.95), st.integers(1, 8), st.sampled_from(["^", "@"]))
@settings(max_examples=60, deadline=None)
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


@pytest.mark.parametrize(("text", "bar"), [("pass^1", 0.7), ("pass^3", 0.5), ("pass@3", 0.9)])
def test_many_probabilities_at_once_are_the_exact_engines(text, bar):
    """Random data sets of 1 to 200 tasks: the quick grid differs from the exact engine by less than 1e-4."""
    rng = np.random.default_rng(7)
    metric = Metric(text)
    gates = ManyGates(metric, bar, 3, most=200)
    for tasks in (1, 20, 60, 200):
        for mu, rho in ((0.8, 0.45), (0.7, 0.1), (0.97, 0.6), (0.3, 0.9)):
            c = simulate_successes(rng, mu, rho, tasks, 3)
            exact = new_task(Cells(c, np.full(tasks, 3)), metric).at_least(bar)
            assert gates(np.bincount(c, minlength=4)[None])[0] == pytest.approx(exact, abs=1e-4)
