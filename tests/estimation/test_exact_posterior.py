"""The engines against a brute-force grid over the parameters, made with `scipy.stats.betabinom` alone.

Draws are checked by |mean - exact| ≤ 4 MCSE and |F(q_p) - p| ≤ 4 sqrt(p (1-p) / ESS). One such check raises a false
alarm with probability 6e-5; all of this file together (under 200 checks) with little more than 1 %. Seeds are fixed.
"""

import math
from collections import Counter

import arviz as az
import numpy as np
import pytest
from fits import ALONE, ENGINES, EVERY, KS, NEVER, STRONGER, UNEQUAL, WEAKER, counts, fit, fit_two, row, rows
from scipy import stats

from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.io import stacks
from agentic_bayes.estimation.methods.options import Hierarchical

pytestmark = pytest.mark.stack

ALL_PASS = ((4, 4),) * 12
ALL_FAIL = ((0, 4),) * 12
ONCE = ((1, 1),) * 8 + ((0, 1),) * 4
ONE_TASK = ((7, 10),) + (NEVER,) * 11
MIDDLES = (np.arange(300) + 0.5) / 300
# of ρ by the quantiles of its prior, ¾ Uniform(0, 1) + ¼ Beta(1, 300): finer where the prior has its mass
_FINE = np.concatenate([[0], np.geomspace(1e-7, 1, 200_001)])
RHO = np.interp(MIDDLES, 0.75 * _FINE + 0.25 * stats.beta(1, 300).cdf(_FINE), _FINE)


def prior_cdf(rho):
    """The prior's distribution function of ρ."""
    return 0.75 * rho + 0.25 * stats.beta(1, 300).cdf(rho)


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


def posterior(est):
    return stacks.group(est.to_arviz(), "posterior")


def log_likelihood(cells, mu, rho):
    """Log likelihood of one agent's cells at every (mu, rho)."""
    kappa = 1 / rho - 1
    total = np.zeros(np.broadcast_shapes(mu.shape, rho.shape))
    for (c, n), times in Counter(cell[:2] for cell in cells).items():
        total += times * stats.betabinom.logpmf(c, n, mu * kappa, (1 - mu) * kappa)
    return total


def grid(cells):
    """Posterior weights of one agent at the middles of 300 × 300 squares of equal prior mass of mu and rho."""
    log = log_likelihood(cells, MIDDLES[:, None], RHO[None, :])
    weights = np.exp(log - log.max())
    return weights / weights.sum()


def assert_follows(draws, mean, cdf):
    """Draws of shape (chain, draw) have this mean and this distribution function, within Monte-Carlo error."""
    error = draws.std(ddof=1) / math.sqrt(float(az.ess(draws, method="mean")))
    assert abs(draws.mean() - mean) <= 4 * error
    for p in (0.025, 0.25, 0.5, 0.75, 0.975):
        ess = float(az.ess(draws, method="quantile", prob=p))
        assert abs(cdf(np.quantile(draws, p)) - p) <= 4 * math.sqrt(p * (1 - p) / ess)


def cdf_of(weights):
    """Distribution function from the weights of the squares' middles."""
    edges = np.linspace(0, 1, weights.size + 1)
    return lambda x: float(np.interp(x, edges, np.concatenate([[0], np.cumsum(weights)])))


@pytest.mark.parametrize("engine", ALONE)
@pytest.mark.parametrize(
    "cells", [UNEQUAL, ALL_PASS, ALL_FAIL, ONCE, ONE_TASK], ids=["unequal", "all pass", "all fail", "once", "one task"]
)
def test_one_agent_follows_the_brute_force_posterior(engine, cells):
    """μ, ρ and pass^3 of one agent have the means and quantiles of the posterior computed on a grid."""
    weights = grid(cells)
    draws = posterior(fit(engine, cells)).isel(agent=0)
    marginal, of_rho = weights.sum(axis=1), weights.sum(axis=0)
    assert_follows(draws["mu"].values, marginal @ MIDDLES, cdf_of(marginal))
    assert_follows(draws["rho"].values, of_rho @ RHO, lambda rho: cdf_of(of_rho)(prior_cdf(rho)))
    kappa = 1 / RHO[None, :] - 1
    alpha = MIDDLES[:, None] * kappa
    cubes = np.prod([(alpha + j) / (kappa + j) for j in range(3)], axis=0)
    exact = float((weights * cubes).sum())
    cube_draws = draws["pass_pow_k"].sel(estimand="population", k=3).values
    error = cube_draws.std(ddof=1) / math.sqrt(float(az.ess(cube_draws, method="mean")))
    summarised = row(fit(engine, cells).summary(**EVERY), estimand="population", metric="pass^3")["mean"]
    assert abs(cube_draws.mean() - exact) <= 4 * error
    assert abs(summarised - exact) <= 4 * error


@pytest.mark.parametrize("engine", ALONE)
def test_one_trial_per_task_says_nothing_about_the_spread_between_tasks(engine):
    """With n = 1 everywhere, S of T passed gives μ ~ Beta(1 + S, 1 + T - S), and ρ keeps its prior."""
    draws = posterior(fit(engine, ONCE)).isel(agent=0)
    beta = stats.beta(1 + 8, 1 + 4)
    assert_follows(draws["mu"].values, beta.mean(), beta.cdf)
    assert_follows(draws["rho"].values, 0.75 / 2 + 0.25 / 301, prior_cdf)


def two_agents():
    """Exact posterior means of μ of two agents that share strength, and the marginal weights of both on θ = logit μ."""
    theta = np.linspace(-10, 10, 401)
    mu = 1 / (1 + np.exp(-theta))
    tables = [log_likelihood(cells, mu[:, None], RHO[None, 1::3]) for cells in (WEAKER, STRONGER)]
    likelihoods = [np.exp(table - table.max()).mean(axis=1) for table in tables]
    marginals = [np.zeros(theta.size) for _ in tables]
    m = np.linspace(-8, 8, 161)
    for tau in (np.arange(100) + 0.5) * 0.05:
        kernel = stats.norm.pdf(theta[None, :], m[:, None], tau)
        kernel /= kernel.sum(axis=1, keepdims=True)
        prior = stats.halfnorm.pdf(tau) * stats.logistic.pdf(m)
        inner = [kernel @ likelihood for likelihood in likelihoods]
        for own, other in ((0, 1), (1, 0)):
            marginals[own] += likelihoods[own] * ((prior * inner[other]) @ kernel)
    return mu, [marginal / marginal.sum() for marginal in marginals]


def test_two_agents_that_share_strength_follow_the_brute_force_posterior(engine):
    """μ of each of two pooled agents follows the posterior integrated over (m, τ) and each agent's ρ on grids."""
    mu, marginals = two_agents()
    draws = posterior(fit_two(engine))["mu"]
    edges = (mu[1:] + mu[:-1]) / 2
    for i, marginal in enumerate(marginals):
        cumulative = np.cumsum(marginal)[:-1]
        assert_follows(
            *(draws.isel(agent=i).values, float(marginal @ mu)),
            lambda x, cumulative=cumulative: float(np.interp(x, edges, cumulative)),
        )


def test_pooling_pulls_agents_towards_each_other(engine):
    """The weaker agent's μ is higher when it shares strength with a better one than on its own."""
    alone = grid(WEAKER).sum(axis=1) @ MIDDLES
    pooled = float(posterior(fit_two(engine))["mu"].isel(agent=0).mean())
    assert 0.005 < pooled - alone < 0.1


@pytest.mark.skipif("quadrature" not in ENGINES, reason="compiling the unpooled model once more takes too long")
def test_agents_that_share_nothing_are_estimated_alone():
    """Unpooled agents have the numbers that each has in an estimate of its own."""
    both = estimate(
        counts({"v1": WEAKER, "v2": STRONGER}), engine="quadrature", method=Hierarchical(pool_agents=False), k=KS
    )
    for agent, cells in (("v1", WEAKER), ("v2", STRONGER)):
        alone = fit("quadrature", cells).summary(columns="all")
        beside = rows(both.summary(columns="all"), agent=agent)
        np.testing.assert_allclose(beside["mean"], alone["mean"], rtol=1e-9)


@pytest.mark.parametrize("engine", ALONE)
def test_mirrored_outcomes_mirror_the_posterior(engine):
    """Exchanging passes and failures turns pass@k into 1 - pass^k: all-fail is all-pass mirrored."""
    passed = fit(engine, ALL_PASS).summary(columns="all")
    failed = fit(engine, ALL_FAIL).summary(columns="all")
    for estimand in ("population", "tasks"):
        for k in KS:
            up = row(passed, estimand=estimand, metric="^", k=k)
            down = row(failed, estimand=estimand, metric="@", k=k)
            # two runs of at least 400 effective draws each: 4 standard errors of the difference of two means
            assert abs(up["mean"] + down["mean"] - 1) <= 4 * math.hypot(up["sd"], down["sd"]) / 20
            assert up["lower"] + down["upper"] == pytest.approx(1, abs=0.05)
            # never a zero width: twelve tasks without a failure do not prove that there is none
            assert up["lower"] < 0.97
            assert down["upper"] > 0.03
