"""Trials that were not fitted, and published numbers that were not used, are predicted better than by p^k."""

import numpy as np
import pytest
from calibration import heldout
from scipy import stats


def test_published_pass4_follows_from_pass1_and_pass2():
    """Nine published rows: a Beta population predicts pass^4 to .013 on average, plug-in p^4 errs by .173."""
    pass1, pass2, pass4 = heldout.PUBLISHED[:, 0], heldout.PUBLISHED[:, 1], heldout.PUBLISHED[:, 3]
    assert np.abs(heldout.beta_binomial_pass4(pass1, pass2) - pass4).mean() == pytest.approx(0.013, abs=0.0005)
    assert np.abs(pass1**4 - pass4).mean() == pytest.approx(0.173, abs=0.0005)


def test_the_counts_of_tau_bench_have_the_published_values():
    """The counts from which splits are drawn give the published pass^1 of .42 and pass^2 of .273."""
    values = heldout.unbiased(np.full(50, 4), heldout.TAU_BENCH, heldout.METRIC)
    assert heldout.TAU_BENCH.mean() / 4 == pytest.approx(0.42)
    assert values.mean() == pytest.approx(0.2733, abs=5e-5)


def test_held_out_trials_of_tau_bench_are_predicted_better_than_by_pooled_rates():
    """Fitted on two trials of each task, the hierarchical model has the better log score and the smaller error."""
    found = heldout.splits_of(heldout.TAU_BENCH, 4, trained=2, size=20, seed=5)
    for other in ("plug-in", "conjugate pooled"):
        assert found.loc["hierarchical", "log_score"] > found.loc[other, "log_score"] + 0.1
        assert found.loc["hierarchical", "error"] < found.loc[other, "error"]


def test_held_out_trials_of_simulated_agents_are_predicted_best_by_the_hierarchical_model():
    """Over 60 agents with μ and ρ from the prior it beats every other method on both accounts."""
    found = heldout.simulated_agents(60, seed=5)
    for other in ("plug-in", "conjugate pooled", "conjugate"):
        assert found.loc["hierarchical", "log_score"] > found.loc[other, "log_score"] + 0.05
        assert found.loc["hierarchical", "error"] < found.loc[other, "error"] - 0.01


def test_the_log_score_is_that_of_the_predictive_distribution():
    """Against an average of scipy's Beta-Binomial over posterior draws, within 4 Monte-Carlo errors."""
    train, held = np.array([0, 1, 3, 3, 2, 0]), np.array([1, 0, 2, 2, 2, 0])
    exact = heldout.exact_posterior(heldout.counts_of(train, np.full(6, 3)), metrics=(heldout.METRIC,))
    mu, rho = (exact.hyper_draws()[name][:, 0, None] for name in ("mu", "rho"))
    kappa = 1 / rho - 1
    each = stats.betabinom.pmf(held, 2, mu * kappa + train, (1 - mu) * kappa + 3 - train)
    error = np.sqrt(np.sum((each.std(axis=0) / each.mean(axis=0)) ** 2) / len(each)) / 6
    score = heldout.predict(train, 3, held, 2)["hierarchical"][0]
    assert abs(score - np.log(each.mean(axis=0)).mean()) < 4 * np.sqrt(6) * error
