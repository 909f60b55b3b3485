"""Data that an agent of known reliability would produce, and the exact posterior of one agent alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.distribution import Distribution
from agentic_bayes.estimation.engines.grid.axes import Concentration, log_logistic, softplus
from agentic_bayes.estimation.engines.grid.betabinomial import log_likelihood_table, mean_power
from agentic_bayes.estimation.engines.grid.exact import GridPosterior
from agentic_bayes.estimation.engines.grid.quadrature import fit_agents
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array

HALVINGS = 60
LEAST_RHO = 1e-100  # below it tasks count as all alike
MOST_RHO = 1 - 2**-53  # stands for 1, at which the terms of the metric would be 0/0
WIDEST_SPACING, GRID_END, RHO_NODES = 0.1, 12.0, 32  # of logit μ; of ρ
CHUNK = 256  # data sets at a time, to bound memory


@dataclass(frozen=True)
class Cells:
    """Successes and trials of one agent's tasks, arrays of shape (tasks,)."""

    successes: Array
    trials: Array

    def and_also(self, successes: Array, trials: int) -> Cells:
        """These tasks and new ones that were all tried equally often."""
        return Cells(
            np.concatenate([self.successes, successes]), np.concatenate([self.trials, np.full_like(successes, trials)])
        )


NO_DATA = Cells(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def simulate_successes(rng: np.random.Generator, mu: float, rho: float, tasks: int, trials: int) -> Array:
    """Successes of new tasks with p ~ Beta(μκ, (1-μ)κ), κ = 1/ρ - 1; ρ = 0: all alike, ρ = 1: all or nothing."""
    if rho <= LEAST_RHO:
        p: Array | float = mu
    elif rho >= 1:
        p = (rng.random(tasks) < mu).astype(float)
    else:
        kappa = 1 / rho - 1
        p = rng.beta(max(mu * kappa, 1e-300), max((1 - mu) * kappa, 1e-300), size=tasks)
    return rng.binomial(trials, p, size=tasks)


def exact_posterior(cells: Cells, metric: Metric, *, random_seed: int = 0) -> GridPosterior:
    """The hierarchical posterior of one agent alone under the default priors."""
    one = cells.successes[None], cells.trials[None]
    counts = Counts(("agent",), (), *one, np.zeros_like(one[1]))
    fit = fit_agents(counts, Hierarchical(pool_agents=False))
    return GridPosterior(counts=counts, random_seed=random_seed, fit=fit, metrics=(metric,))


def new_task(cells: Cells, metric: Metric) -> Distribution:
    """The posterior of a metric of a new task, of one agent alone."""
    return exact_posterior(cells, metric).distribution(0, "population", metric)


def metric_of(mu: Array | float, rho: Array | float, metric: Metric) -> Array:
    """pass@k or pass^k of a new task for p ~ Beta with mean μ and correlation ρ."""
    share, correlation = np.asarray(mu, dtype=float), np.minimum(np.asarray(rho, dtype=float), MOST_RHO)
    tail = mean_power(share if metric.power else 1 - share, correlation, 1 - correlation, 0, 0, metric.k)
    return tail if metric.power else 1 - tail


def mu_with_metric(value: float, rho: Array | float, metric: Metric) -> Array:
    """The μ at which pass@k or pass^k of a new task is `value`, by bisection."""
    low, high = np.zeros(np.shape(rho)), np.ones(np.shape(rho))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = metric_of(middle, rho, metric) < value
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


class ManyGates:
    """P(metric ≥ bar) of many data sets at once, all tasks tried equally often, on one fixed grid.

    For simulated sequences, where a grid for each would take too long; within 1e-4 of the exact engine.
    """

    def __init__(self, metric: Metric, bar: float, trials: int, *, most: int) -> None:
        from scipy.special import sici

        spacing = min(WIDEST_SPACING, 2 / math.sqrt(most * trials))
        theta = np.linspace(-GRID_END, GRID_END, 2 * int(GRID_END / spacing) + 1)
        prior = Concentration(trials, Hierarchical())
        rho = prior.over(*prior.ends, RHO_NODES)
        log_shares = -softplus(-theta), -softplus(theta)

        def table(c: Array, n: Array, size: Array) -> Array:
            return log_likelihood_table(c, n, size, *log_shares, rho.rho, rho.one_minus_rho)

        one = np.array([1])
        self.log_pmf = np.stack([table(np.array([c]), np.array([trials]), one).ravel() for c in range(trials + 1)])
        self.log_prior = (log_logistic(theta)[:, None] + rho.log_weight).ravel()
        with np.errstate(divide="ignore"):
            share = mu_with_metric(bar, rho.rho, metric)
            edge = np.log(share) - np.log1p(-share)
        # weights of the nodes in the integral, from the bar upwards, of their sinc interpolant
        place = np.clip((theta[:, None] - edge) / (theta[1] - theta[0]), -1e9, 1e9)
        self.above = (0.5 + sici(np.pi * place)[0] / np.pi).ravel()

    def __call__(self, histograms: Array) -> Array:
        """Probabilities, shape (data sets,), from how many tasks had 0, 1, …, n successes, shape (data sets, n + 1)."""
        found = np.empty(len(histograms))
        for start in range(0, len(histograms), CHUNK):
            part = slice(start, start + CHUNK)
            log_mass = histograms[part] @ self.log_pmf + self.log_prior
            mass = np.exp(log_mass - log_mass.max(axis=1, keepdims=True))
            found[part] = np.clip(mass @ self.above / mass.sum(axis=1), 0, 1)
        return found
