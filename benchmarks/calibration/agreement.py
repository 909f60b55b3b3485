"""Two engines, one posterior: quadrature and NUTS (PyMC with nutpie) on random outcomes with unequal n."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from agentic_bayes.errors import NotConverged
from agentic_bayes.estimation.engines import nuts as mcmc
from agentic_bayes.estimation.engines.grid.exact import GridPosterior
from agentic_bayes.estimation.io import stacks as _arviz
from agentic_bayes.estimation.methods.hierarchical import HierarchicalPosterior
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.estimation.posterior import CHAINS, DRAWS, Estimand, Posterior
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array
from calibration.simulate import (
    DEFAULT,
    counts_of,
    exact_posterior,
    outcomes_of,
    population_cdf,
    rho_cdf,
    success_probabilities,
)

AGENTS, TASKS = 2, 12
METRICS = tuple(map(Metric, ("pass^1", "pass^3", "pass@3")))
PROBABILITIES = (0.025, 0.25, 0.5, 0.75, 0.975)
LIMIT = 4.0


@dataclass(frozen=True)
class Check:
    """One comparison of the two engines."""

    data: int  # index of the set of outcomes
    quantity: str
    what: str  # the mean or a quantile
    z: float  # difference in standard errors of the sampler (and, for `tasks`, of the exact engine's own draws)


def allowed_beyond(checks: int) -> int:
    """The number of checks beyond 4 standard errors that two correct engines exceed with probability .001.

    One check is beyond with probability 6e-5. The correlation of the checks within a data set is ignored.
    """
    return int(stats.binom.ppf(0.999, checks, 2 * stats.norm.sf(LIMIT)))


def random_outcomes(index: int, seed: int) -> tuple[Array, Array]:
    """Successes and trials, shape (2, 12), with truth from the prior and 0 to 6 trials.

    Up to half of the tasks are never attempted. All sets have one shape, so PyMC compiles once.
    """
    rng = np.random.default_rng([seed, index])
    theta = rng.logistic() + abs(rng.standard_normal()) * rng.standard_normal((AGENTS, 1))
    p = success_probabilities(
        rng, 1 / (1 + np.exp(-theta)), DEFAULT.rho_prior.ppf(rng.random((AGENTS, 1))), (AGENTS, TASKS)
    )
    n = rng.integers(0, 7, (AGENTS, TASKS))
    n[:, int(rng.integers(TASKS // 2, TASKS + 1)) :] = 0
    n[:, 0] = np.maximum(n[:, 0], 1)
    return rng.binomial(n, p), n


def compare(index: int, *, seed: int) -> tuple[list[Check], bool]:
    """All checks of one set of outcomes, and whether the sampler's own diagnostics passed."""
    c, n = random_outcomes(index, seed)
    counts = counts_of(c, n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        fit = mcmc.fit(outcomes_of(c, n), Hierarchical(), random_seed=index)
    chains = {name: fit.posterior[name].transpose("chain", "draw", "agent").values for name in ("mu", "rho")}
    hyper = {name: values.reshape(CHAINS * DRAWS, AGENTS) for name, values in chains.items()}
    sampled = HierarchicalPosterior(counts=counts, random_seed=index, hyper=hyper)
    exact = exact_posterior(counts, metrics=METRICS)
    checks: list[Check] = []
    for agent in range(AGENTS):
        for name, draws, mean, cdf, own in _quantities(agent, exact, sampled):
            label = f"{name}, agent {agent + 1}"
            checks += [Check(index, label, what, z) for what, z in _checks(draws, mean, cdf, own)]
    return checks, fit.diagnostics.passed


# P(quantity < x) and P(quantity ≤ x); they differ where p underflows to 0 or rounds to 1
CDF = Callable[[float], tuple[float, float]]
Quantity = tuple[str, Array, float, CDF, float]


def _quantities(agent: int, exact: GridPosterior, sampled: HierarchicalPosterior) -> Iterator[Quantity]:
    """Name, NUTS draws (chain, draw), exact mean, distribution function, and the variance that its own draws add."""
    grid = exact.fit.agents[agent]
    mean_rho = float(grid.weights.sum(axis=0) @ grid.rho.rho)
    draws = _by_chain(sampled.hyper["rho"][:, agent])
    yield "ρ", draws, mean_rho, lambda x: (float(rho_cdf(exact, agent, x)),) * 2, 0.0
    for metric in METRICS:
        draws, mean = _draws_and_mean(agent, "population", metric, sampled, exact)
        yield f"population {metric}", draws, mean, _population_cdf(exact, agent, metric), 0.0
    cube = Metric("pass^3")
    draws, mean = _draws_and_mean(agent, "tasks", cube, sampled, exact)
    own = np.sort(exact.distribution(agent, "tasks", cube).draws())
    yield "tasks pass^3", draws, mean, lambda x: _share(own, x), 1 / own.size


def _by_chain(draws: Array) -> Array:
    return draws.reshape(CHAINS, DRAWS)


def _draws_and_mean(
    agent: int, estimand: Estimand, metric: Metric, sampled: Posterior, exact: Posterior
) -> tuple[Array, float]:
    """The sampler's draws by chain, and the exact mean."""
    draws = sampled.distribution(agent, estimand, metric).draws()
    return _by_chain(draws), float(exact.distribution(agent, estimand, metric).mean)


def _share(ordered: Array, x: float) -> tuple[float, float]:
    below, upto = (float(np.searchsorted(ordered, x, side=side) / ordered.size) for side in ("left", "right"))
    return below, upto


def _population_cdf(exact: GridPosterior, agent: int, metric: Metric) -> CDF:
    return lambda x: (float(population_cdf(exact, agent, metric, x)),) * 2


def _checks(draws: Array, mean: float, cdf: CDF, own: float) -> Iterator[tuple[str, float]]:
    """The mean in units of its MCSE; quantiles by F(q_p) - p, whose variance is p(1-p)/ESS."""
    ess = _arviz.arviz().ess
    yield "mean", float((draws.mean() - mean) / (draws.std(ddof=1) / np.sqrt(float(ess(draws, method="mean")))))
    for p in PROBABILITIES:
        size = float(ess(draws, method="quantile", prob=p))
        error = np.sqrt(p * (1 - p) * (1 / size + own))
        yield f"quantile {p}", float((np.clip(p, *cdf(float(np.quantile(draws, p)))) - p) / error)
