"""Data that an agent of known reliability would produce, and the exact posterior of one agent alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agentic_bayes.estimation.betabinomial import mean_power
from agentic_bayes.estimation.exact import ExactPosterior
from agentic_bayes.estimation.posterior import Array, CIKind, Counts
from agentic_bayes.estimation.prior import Prior
from agentic_bayes.estimation.quadrature import fit_agents
from agentic_bayes.formatting import Metric

__all__ = ["Cells", "exact_posterior", "metric_of", "mu_with_metric", "simulate_successes"]

HALVINGS = 60


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
    if rho <= 0:
        p: Array | float = mu
    elif rho >= 1:
        p = (rng.random(tasks) < mu).astype(float)
    else:
        kappa = 1 / rho - 1
        p = rng.beta(max(mu * kappa, 1e-300), max((1 - mu) * kappa, 1e-300), size=tasks)
    return rng.binomial(trials, p, size=tasks)


def exact_posterior(
    cells: Cells, metric: Metric, k: int, *, ci_prob: float = 0.95, ci_kind: CIKind = "eti", random_seed: int = 0
) -> ExactPosterior:
    """The hierarchical posterior of one agent alone under the default priors."""
    one = cells.successes[None], cells.trials[None]
    counts = Counts(("agent",), (), *one, np.zeros_like(one[1]))
    fit = fit_agents(counts, pool_agents=False, prior=Prior())
    return ExactPosterior(counts, ci_prob, ci_kind, random_seed, fit, ((metric, k),))


def metric_of(mu: Array | float, rho: Array | float, metric: Metric, k: int) -> Array:
    """pass@k or pass^k of a new task for p ~ Beta with mean μ and correlation ρ."""
    share, correlation = np.asarray(mu, dtype=float), np.asarray(rho, dtype=float)
    tail = mean_power(share if metric == "pass_pow_k" else 1 - share, correlation, 1 - correlation, 0, 0, k)
    return tail if metric == "pass_pow_k" else 1 - tail


def mu_with_metric(value: float, rho: Array | float, metric: Metric, k: int) -> Array:
    """The μ at which pass@k or pass^k of a new task is `value`, by bisection."""
    low, high = np.zeros(np.shape(rho)), np.ones(np.shape(rho))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = metric_of(middle, rho, metric, k) < value
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)
