"""The crossed model: its likelihood, and its importance engine next to NUTS and draws from the prior."""

import numpy as np
import pytest
from calibration.simulate import counts_of, outcomes_of
from scipy import stats
from scipy.special import gammaln

from agentic_bayes.estimation.engines import nuts as mcmc
from agentic_bayes.estimation.engines.importance.sampler import fit_crossed
from agentic_bayes.estimation.engines.importance.target import Target, mode_of
from agentic_bayes.estimation.methods.crossed_likelihood import CrossedLikelihood, delta_grid, expit_pair
from agentic_bayes.estimation.methods.near_zero import NearZero
from agentic_bayes.estimation.methods.options import Crossed

DESIGNS = {
    "2 x 50 x 4": np.full((2, 50), 4),
    "5 x 50 x 5": np.full((5, 50), 5),
    "unequal n": np.random.default_rng(0).integers(0, 7, size=(3, 40)),
}


def farthest(trials, seed):
    """Largest difference of a mean between the engines, in posterior standard deviations of a long NUTS run."""
    rng = np.random.default_rng(seed)
    theta, delta = rng.normal(size=trials.shape[0]), rng.normal(size=trials.shape[1])
    p = expit_pair(theta[:, None] + 1.5 * delta + rng.normal(size=trials.shape))[0]
    successes = rng.binomial(trials, p)
    fit = fit_crossed(counts_of(successes, trials), Crossed())
    assert fit.diagnostics.passed
    long = mcmc.fit(outcomes_of(successes, trials), method=Crossed(pool_agents=False), draws=5000).posterior
    gaps = []
    for name, drawn in (("theta", fit.theta), ("sigma", fit.sigma), ("rho", fit.rho)):
        sampled = long[name].stack(sample=("chain", "draw")).transpose("sample", ...).values
        gaps.append(np.abs(fit.weight @ drawn - sampled.mean(axis=0)) / sampled.std(axis=0))
    return max(float(np.max(gap)) for gap in gaps)


@pytest.mark.slow
@pytest.mark.stack
@pytest.mark.parametrize("design", DESIGNS)
def test_the_importance_engine_agrees_with_a_long_nuts_run(design):
    """Means of θ, σ and ρ lie within .05 posterior standard deviations of 4 × 5,000 draws by NUTS."""
    assert farthest(DESIGNS[design], seed=3) <= 0.05


def test_the_slopes_of_the_likelihood_are_its_differences():
    """By θ, σ and ρ, for short tasks and for tasks whose sums are partly taken by Euler and Maclaurin's formula."""
    rng = np.random.default_rng(4)
    for most in (6, 60):
        trials = rng.integers(0, most, size=(3, 12))
        likelihood = CrossedLikelihood(counts_of(rng.binomial(trials, 0.6), trials))
        theta, sigma, rho = rng.normal(size=(2, 3)), np.array([0.7, 2.0]), rng.random((2, 3))
        found = likelihood.with_slopes(theta, sigma, rho, 1 - rho)
        assert found[0] == pytest.approx(likelihood(theta, sigma, rho, 1 - rho))
        h = 2e-2  # tables are in single precision
        for a in range(3):
            step = h * (np.arange(3) == a)
            ends = (likelihood(theta + sign * step, sigma, rho, 1 - rho) for sign in (1, -1))
            assert found[1][:, a] == pytest.approx(np.subtract(*ends) / (2 * h), rel=0.02, abs=0.02)
            ends = (likelihood(theta, sigma, rho + sign * step / 4, 1 - rho - sign * step / 4) for sign in (1, -1))
            assert found[3][:, a] == pytest.approx(np.subtract(*ends) / (h / 2), rel=0.02, abs=0.1)
        ends = (likelihood(theta, sigma + sign * h, rho, 1 - rho) for sign in (1, -1))
        assert found[2] == pytest.approx(np.subtract(*ends) / (2 * h), rel=0.02, abs=0.02)


@pytest.mark.parametrize("most", [3, 40, 400])
def test_the_likelihood_is_scipys_beta_binomial(most):
    """Integrated over a fine grid of δ, task by task, with tasks of many trials."""
    rng = np.random.default_rng(5)
    trials = rng.integers(0, most, size=(2, 7))
    successes = rng.binomial(trials, 0.7)
    likelihood = CrossedLikelihood(counts_of(successes, trials), step=0.02)
    theta, sigma, rho = np.array([[0.3, -1.0]]), np.array([1.4]), np.array([[0.2, 0.6]])
    delta, log_weight = delta_grid(0.02)
    mu, nu = expit_pair(theta[0][:, None] + sigma * delta)
    kappa = (1 / rho[0] - 1)[:, None]
    expected = 0.0
    for c, n in zip(successes.T, trials.T, strict=True):
        pmf = stats.betabinom.pmf(c[:, None], n[:, None], mu * kappa, nu * kappa)
        orders = gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1)
        expected += np.log(np.exp(log_weight) @ pmf.prod(axis=0)) - orders.sum()
    assert float(likelihood(theta, sigma, rho, 1 - rho)[0]) == pytest.approx(expected, rel=1e-5)


def test_difficulty_that_tasks_pin_down_is_integrated_finely():
    """3 agents × 20 tasks × 60 trials without spread within a task need a step well below .25."""
    rng = np.random.default_rng(1)
    p = expit_pair(rng.normal(size=(3, 1)) + 3 * rng.normal(size=20))[0]
    trials = np.full(p.shape, 60)
    counts = counts_of(rng.binomial(trials, p), trials)
    assert fit_crossed(counts, Crossed(), size=2048).diagnostics.passed
    target = Target(counts, Crossed())
    mode, _ = mode_of(target)
    assert target.likelihood.step < 0.15
    near = mode + 0.05 * rng.normal(size=(20, mode.size))
    coarse = target(near)
    target.likelihood.set_step(target.likelihood.step / 2)
    assert np.ptp(target(near) - coarse) < 0.02


@pytest.mark.parametrize("seed", [6, 24, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (31, 32))])
def test_densities_that_are_flat_towards_zero_need_no_second_attempt(seed):
    """Tasks hardly differ in difficulty, so that σ may be 0: the first points reach there."""
    rng = np.random.default_rng(seed)
    mu, nu = expit_pair(rng.logistic(size=(3, 1)) + 0.3 * rng.normal(size=39))
    trials = np.full(mu.shape, 7)
    fit = fit_crossed(counts_of(rng.binomial(trials, rng.beta(mu, nu)), trials), Crossed())
    assert fit.diagnostics.passed
    assert fit.diagnostics.draws == 5120


def test_pooled_agents_and_other_priors_are_sampled_too():
    """Agents that share strength, a narrow prior of σ and one of ρ near 0: the same means as NUTS would give."""
    rng = np.random.default_rng(6)
    trials = np.full((3, 20), 4)
    counts = counts_of(rng.binomial(trials, rng.random((1, 20))), trials)
    plain = fit_crossed(counts, Crossed())
    pooled = fit_crossed(counts, Crossed(pool_agents=True))
    tight = fit_crossed(counts, Crossed(sigma=stats.halfnorm(scale=0.05), rho=stats.beta(1, 200)))
    assert all(fit.diagnostics.passed for fit in (plain, pooled, tight))
    assert np.ptp(pooled.weight @ pooled.theta) < np.ptp(plain.weight @ plain.theta)
    assert tight.weight @ tight.sigma < 0.1
    assert (tight.weight @ tight.rho).max() < 0.1


def test_the_importance_engine_agrees_with_draws_from_the_prior():
    """A reduced form: few data, so that draws from the prior, weighted by SciPy's Beta-Binomial, are an oracle."""
    rng = np.random.default_rng(8)
    successes, trials = np.array([[2, 1, 0], [2, 2, 1]]), np.full((2, 3), 2)
    size = 100_000
    theta, sigma = rng.logistic(size=(size, 2)), np.abs(rng.normal(scale=2, size=size))
    rho = NearZero().ppf(rng.random((size, 2)))
    mu, nu = expit_pair(theta[:, :, None] + sigma[:, None, None] * rng.normal(size=(size, 1, 3)))
    kappa = (1 / rho - 1)[:, :, None]
    alpha, beta = (np.maximum(share * kappa, 1e-12) for share in (mu, nu))
    weight = stats.betabinom.pmf(successes, trials, alpha, beta).prod(axis=(1, 2))
    weight /= weight.sum()
    assert 1 / np.sum(weight**2) > 1600
    fit = fit_crossed(counts_of(successes, trials), Crossed())
    for drawn, oracle in ((fit.theta, theta), (fit.sigma[:, None], sigma[:, None]), (fit.rho, rho)):
        mean = weight @ oracle
        sd = np.sqrt(weight @ (oracle - mean) ** 2)
        assert (np.abs(fit.weight @ drawn - mean) <= 0.05 * sd).all()
