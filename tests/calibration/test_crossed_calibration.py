"""The crossed model: its importance engine covers, agrees with NUTS, and is quick."""

import numpy as np
import pytest
from fits import draws_of
from scipy import stats

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines import nuts as mcmc
from agentic_bayes.estimation.engines.grid.betabinomial import mean_power
from agentic_bayes.estimation.engines.importance import fit_crossed
from agentic_bayes.estimation.methods.crossed import DELTA, LOG_WEIGHT, CrossedPosterior, expit_pair
from agentic_bayes.estimation.methods.options import Crossed
from agentic_bayes.outcomes.dataset import dataset_from_counts


def counts_of(successes, trials) -> Counts:
    """Counts with plain labels."""
    agents, tasks = (tuple(map(str, range(size))) for size in successes.shape)
    return Counts(agents, tasks, successes, trials, np.zeros_like(trials))


def simulated(rng, n_agents, trials):
    """Truth from the prior, and data from the truth: (θ, σ, ρ), counts."""
    theta, sigma, rho = rng.logistic(size=n_agents), abs(rng.normal(scale=2)), rng.random(n_agents)
    mu, nu = expit_pair(theta[:, None] + sigma * rng.normal(size=trials.shape[1]))
    kappa = (1 / rho - 1)[:, None]
    p = rng.beta(np.maximum(mu * kappa, 1e-12), np.maximum(nu * kappa, 1e-12))
    return (theta, sigma, rho), counts_of(rng.binomial(trials, p), trials)


def population(theta, sigma, rho, k):
    """pass^k of a new task for each agent, by integrating over its difficulty."""
    mu, _ = expit_pair(theta[:, None] + sigma * DELTA)
    return mean_power(mu, rho[:, None], 1 - rho[:, None], 0, 0, k) @ np.exp(LOG_WEIGHT)


def covered(size, seed):
    """Shares of data sets whose 95 % interval holds the truth: pass^1, pass^3 and the difference of pass^3."""
    rng = np.random.default_rng(seed)
    hits = np.zeros((size, 3))
    for i in range(size):
        trials = np.tile(rng.integers(1, 5, size=int(rng.integers(15, 40))), (2, 1))
        truth, counts = simulated(rng, 2, trials)
        fit = fit_crossed(counts, random_seed=i, size=2048)
        posterior = CrossedPosterior(counts=counts, random_seed=i, theta=fit.theta, sigma=fit.sigma, rho=fit.rho)
        one, three = (population(*truth, k) for k in (1, 3))
        drawn = [draws_of(posterior, agent, "population", f"pass^{k}") for agent, k in ((0, 1), (0, 3), (1, 3))]
        pairs = ((drawn[0], one[0]), (drawn[1], three[0]), (drawn[2] - drawn[1], three[1] - three[0]))
        for j, (values, value) in enumerate(pairs):
            lower, upper = np.quantile(values, [0.025, 0.975])
            hits[i, j] = lower <= value <= upper
    return hits.mean(axis=0)


def test_intervals_cover_what_they_say():
    """With truth from the prior, 95 % intervals cover; a right engine fails this with probability below .002."""
    size = 50
    assert covered(size, seed=1).min() * size >= stats.binom.ppf(5e-4, size, 0.95)


@pytest.mark.slow
def test_intervals_cover_what_they_say_in_full():
    """1,000 data sets: coverage between .92 and .97 for pass^1, pass^3 and the difference of two agents."""
    found = covered(1000, seed=2)
    assert found.min() >= 0.92
    assert found.max() <= 0.97


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
    counts = counts_of(rng.binomial(trials, p), trials)
    cells = {
        (agent, task): (int(counts.successes[a, t]), int(counts.trials[a, t]), 0, 0)
        for a, agent in enumerate(counts.agents)
        for t, task in enumerate(counts.tasks)
    }
    fit = fit_crossed(counts)
    assert fit.diagnostics.passed
    long = mcmc.fit(dataset_from_counts(cells, {}), method=Crossed(pool_agents=False), draws=5000).posterior
    gaps = []
    for name, drawn in (("theta", fit.theta), ("sigma", fit.sigma), ("rho", fit.rho)):
        sampled = long[name].stack(sample=("chain", "draw")).transpose("sample", ...).values
        gaps.append(np.abs(drawn.mean(axis=0) - sampled.mean(axis=0)) / sampled.std(axis=0))
    return max(float(np.max(gap)) for gap in gaps)


@pytest.mark.slow
@pytest.mark.stack
@pytest.mark.parametrize("design", DESIGNS)
def test_the_importance_engine_agrees_with_a_long_nuts_run(design):
    """Means of θ, σ and ρ lie within .05 posterior standard deviations of 4 × 5,000 draws by NUTS."""
    assert farthest(DESIGNS[design], seed=3) <= 0.05


def test_the_importance_engine_agrees_with_draws_from_the_prior():
    """A reduced form: few data, so that draws from the prior, weighted by SciPy's Beta-Binomial, are an oracle."""
    rng = np.random.default_rng(8)
    successes, trials = np.array([[2, 1, 0], [2, 2, 1]]), np.full((2, 3), 2)
    size = 200_000
    theta, sigma, rho = rng.logistic(size=(size, 2)), np.abs(rng.normal(scale=2, size=size)), rng.random((size, 2))
    mu, nu = expit_pair(theta[:, :, None] + sigma[:, None, None] * rng.normal(size=(size, 1, 3)))
    kappa = (1 / rho - 1)[:, :, None]
    alpha, beta = (np.maximum(share * kappa, 1e-12) for share in (mu, nu))
    weight = stats.betabinom.pmf(successes, trials, alpha, beta).prod(axis=(1, 2))
    weight /= weight.sum()
    assert 1 / np.sum(weight**2) > 2000
    fit = fit_crossed(counts_of(successes, trials))
    for drawn, oracle in ((fit.theta, theta), (fit.sigma[:, None], sigma[:, None]), (fit.rho, rho)):
        mean = weight @ oracle
        sd = np.sqrt(weight @ (oracle - mean) ** 2)
        assert (np.abs(drawn.mean(axis=0) - mean) <= 0.08 * sd).all()
