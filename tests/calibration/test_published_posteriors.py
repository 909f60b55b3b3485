"""Published Beta-Binomial analyses, reproduced with their own priors."""

import numpy as np
import pandas as pd
import pytest
from calibration.simulate import counts_of, exact_posterior, kappa_cdf
from scipy import stats
from scipy.optimize import brentq

from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.formatting import Metric
from agentic_bayes.outcomes.table import outcomes_from_table

RATE = Metric("pass^1")
PARETO = Hierarchical(kappa=stats.pareto(1.5))


def rats_prior(kappa):
    """p(α, β) ∝ (α + β)^(-5/2) is μ ~ Uniform and p(κ) ∝ κ^(-3/2); cut at 10^4, beyond which means are infinite."""
    return np.where(kappa <= 1e4, -1.5 * np.log(kappa), -np.inf)


@pytest.fixture
def published(shared_data):
    """The groups of one data set: successes and trials."""
    table = pd.read_csv(shared_data("betabinomial_refs/counts.csv"), comment="#")
    return lambda name: table[table["dataset"] == name][["y", "n"]].to_numpy().T


def kappa_quantile(posterior, p):
    grid = posterior.fit.agents[0]
    return brentq(lambda v: float(kappa_cdf(grid, np.exp(v))) - p, *grid.rho.v[[0, -1]]), grid


def test_rat_tumours(published):
    """Gelman et al., Bayesian Data Analysis, section 5.3: means of α, β and of the 71st and the first group."""
    y, n = published("rats")
    posterior = exact_posterior(counts_of(y, n), metrics=(RATE,), method=Hierarchical(kappa=rats_prior))
    grid = posterior.fit.agents[0]
    kappa = grid.rho.one_minus_rho / grid.rho.rho
    assert float((grid.weights * grid.mu * kappa).sum()) == pytest.approx(2.403, abs=5e-4)
    assert float((grid.weights * grid.one_minus_mu * kappa).sum()) == pytest.approx(14.320, abs=5e-4)
    means = posterior.distribution(0, "task", RATE).mean
    assert (means[70], means[0]) == pytest.approx((0.2109, 0.0636), abs=5e-5)


def test_rat_tumours_through_the_public_function(published):
    """`estimate` with the prior in its method gives the same group means in its summary."""
    y, n = published("rats")
    table = pd.DataFrame({"task": np.arange(71), "successes": y, "trials": n})
    outcomes = outcomes_from_table(table, successes="successes", trials="trials")
    summary = estimate(outcomes, Hierarchical(kappa=rats_prior), k=1).summary(tasks=True)
    rows = summary[(summary["estimand"] == "task") & (summary["metric"] == RATE)].set_index("task")["mean"]
    assert (rows["70"], rows["0"]) == pytest.approx((0.2109, 0.0636), abs=5e-5)


def test_baseball(published):
    """Eighteen batters, Efron and Morris (1975), κ ~ Pareto(1, 1.5): 80 % interval of κ (25.7, 222)."""
    y, n = published("baseball")
    posterior = exact_posterior(counts_of(y, n), metrics=(RATE,), method=PARETO)
    low, high = (np.exp(kappa_quantile(posterior, p)[0]) for p in (0.1, 0.9))
    assert low == pytest.approx(25.7, abs=0.05)
    assert high == pytest.approx(222, abs=0.5)


def test_surgical(published):
    """Twelve hospitals under the same prior: mean φ .0844; the median of κ as on a plain grid made with scipy."""
    y, n = published("surgical")
    posterior = exact_posterior(counts_of(y, n), metrics=(RATE,), method=PARETO)
    assert posterior.distribution(0, "population", RATE).mean == pytest.approx(0.0844, abs=5e-5)
    phi, log_kappa = (np.arange(400) + 0.5) / 1000, np.linspace(0, 12, 1201)
    kappa = np.exp(log_kappa)
    log = -1.5 * log_kappa + sum(
        stats.betabinom.logpmf(c, t, phi[:, None] * kappa, (1 - phi[:, None]) * kappa)
        for c, t in zip(y, n, strict=True)
    )
    mass = np.exp(log - log.max()).sum(axis=0)
    upto = (np.cumsum(mass) - mass / 2) / mass.sum()
    median = np.exp(kappa_quantile(posterior, 0.5)[0])
    assert median == pytest.approx(np.exp(np.interp(0.5, upto, log_kappa)), rel=1e-3)
    assert median == pytest.approx(42.7, abs=0.1)
