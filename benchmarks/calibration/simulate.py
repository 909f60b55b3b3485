"""Data sets with known truth, their exact posteriors, and processes to share the work."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.distribution import CIKind, Stats, Tabulated
from agentic_bayes.estimation.engines.grid.agent_grid import AgentGrid
from agentic_bayes.estimation.engines.grid.exact import GridPosterior
from agentic_bayes.estimation.engines.grid.quadrature import fit_agents
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.estimation.posterior import Estimand, Posterior
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array

DEFAULT = Hierarchical()


@dataclass(frozen=True)
class Sample:
    """A simulated data set and the truth behind it."""

    counts: Counts
    mu: Array  # true population mean, shape (agents,)
    rho: Array  # true intra-class correlation, shape (agents,)
    p: Array  # true success probabilities, shape (agents, tasks)


def counts_of(c: Array, n: Array) -> Counts:
    """Labelled counts of shape (agents, tasks); a single row is one agent."""
    c, n = np.atleast_2d(np.asarray(c)), np.atleast_2d(np.asarray(n))
    agents, tasks = (tuple(map(str, range(size))) for size in n.shape)
    return Counts(agents, tasks, c, n, np.zeros_like(n))


def outcomes_of(c: Array, n: Array) -> xr.Dataset:
    """The counts in the form that `estimate` takes, from arrays of shape (agents, tasks)."""
    cells = {"successes": c, "trials": n, "unscored": np.zeros_like(n)}
    coords: dict[str, Any] = {
        dim: np.array([f"{dim} {i + 1}" for i in range(size)], dtype=object)
        for dim, size in zip(("agent", "task"), n.shape, strict=True)
    }
    attrs = {"unit": "conversation", "indicator": "correct"}
    return xr.Dataset({name: (("agent", "task"), values) for name, values in cells.items()}, coords=coords, attrs=attrs)


def success_probabilities(rng: np.random.Generator, mu: Any, rho: Any, size: tuple[int, ...]) -> Array:
    """Draw p ~ Beta(μκ, (1-μ)κ) with κ = 1/ρ - 1; with ρ = 0 every p is μ."""
    mu, rho = np.broadcast_to(mu, size), np.broadcast_to(rho, size)
    if not np.any(rho):
        return np.array(mu, dtype=float)
    kappa = 1 / rho - 1
    return rng.beta(mu * kappa, (1 - mu) * kappa)


def from_prior(rng: np.random.Generator, *, agents: int, tasks: tuple[int, int], trials: tuple[int, int]) -> Sample:
    """A data set with truth from the default prior, and numbers of tasks and of trials per cell from uniform ranges."""
    size = agents, int(rng.integers(tasks[0], tasks[1] + 1))
    m, tau = (rng.logistic(), abs(rng.standard_normal())) if agents > 1 else (0.0, 0.0)
    theta = m + tau * rng.standard_normal(agents) if agents > 1 else rng.logistic(size=1)
    mu, rho = 1 / (1 + np.exp(-theta)), DEFAULT.rho_prior.ppf(rng.random(agents))
    p = success_probabilities(rng, mu[:, None], rho[:, None], size)
    n = rng.integers(trials[0], trials[1] + 1, size)
    return Sample(counts_of(rng.binomial(n, p), n), mu, rho, p)


def exact_posterior(
    counts: Counts, *, metrics: tuple[Metric, ...], method: Hierarchical = DEFAULT, fine: float = 1.0
) -> GridPosterior:
    """The quadrature engine's posterior."""
    return GridPosterior(counts=counts, random_seed=0, fit=fit_agents(counts, method, fine=fine), metrics=metrics)


def stats_of(posterior: Posterior, agent: int, estimand: Estimand, metric: Metric, ci_kind: CIKind = "eti") -> Stats:
    """Mean, sd, median and 95 % interval."""
    return posterior.distribution(agent, estimand, metric).stats(0.95, ci_kind)


def population_cdf(posterior: GridPosterior, agent: int, metric: Metric, y: Any) -> Array:
    """P(population's metric ≤ y | data) from the engine's distribution function; for pass^1 that is P(μ ≤ y | data)."""
    distribution = posterior.distribution(agent, "population", metric)
    assert isinstance(distribution, Tabulated)
    return distribution.below(np.asarray(y))


def rho_cdf(posterior: GridPosterior, agent: int, rho: Any) -> Array:
    """P(ρ ≤ rho | data) under a bounded prior of ρ, where the engine's coordinate rises with ρ."""
    fit = posterior.fit
    return coordinate_cdf(fit.agents[agent], fit.likelihoods[agent].concentration.coordinate(np.asarray(rho)))


def kappa_cdf(grid: AgentGrid, kappa: Any) -> Array:
    """P(κ ≤ kappa | data) under a prior on κ, where the engine's coordinate is log κ."""
    return coordinate_cdf(grid, np.log(np.asarray(kappa)))


def coordinate_cdf(grid: AgentGrid, v: Array) -> Array:
    """P(coordinate of ρ ≤ v | data): integrate the Legendre series that the masses at the engine's nodes determine."""
    nodes, _ = np.polynomial.legendre.leggauss(grid.rho.v.size)
    first, last = grid.rho.v[[0, -1]]
    middle, half = (first + last) / 2, (last - first) / (nodes[-1] - nodes[0])
    mass = grid.weights.sum(axis=0)
    series = np.polynomial.legendre.legvander(nodes, nodes.size - 1).T @ mass * (np.arange(nodes.size) + 0.5)
    cumulative = np.polynomial.legendre.Legendre(series).integ(lbnd=-1)
    return np.asarray(np.clip(cumulative(np.clip((v - middle) / half, -1, 1)), 0, 1))


def spread(work: Callable[[Any], Any], items: Iterable[Any], *, processes: int = 1) -> list[Any]:
    """Apply `work` to every item, in this process or in several; results keep their order."""
    todo = list(items)
    if processes == 1:
        return [work(item) for item in todo]
    # new processes: forking is unsafe once a sampler has started threads
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(work, todo, chunksize=max(1, min(50, len(todo) // (8 * processes)))))
