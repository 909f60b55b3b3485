"""Held-out trials: fit some trials of every task, predict the others.

All methods are judged by the log score of the held-out counts and by |predicted - observed| pass^2 per agent, where
observed is the unbiased estimate from the held-out trials.
"""

from __future__ import annotations

from functools import partial
from math import comb

import numpy as np
import pandas as pd
from scipy import stats

from agentic_bayes.estimation.engines.grid.betabinomial import mean_power
from agentic_bayes.estimation.engines.grid.exact import GridPosterior
from agentic_bayes.estimation.methods.conjugate import ConjugatePosterior
from agentic_bayes.estimation.methods.frequentist import unbiased
from agentic_bayes.estimation.methods.options import Conjugate
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array, plugin_pass_pow_k
from calibration.simulate import counts_of, exact_posterior, spread, success_probabilities

METRIC = Metric("pass^2")
# pass^1 to pass^4 as published: tau-bench, Yao et al. (2024), arXiv:2406.12045, and its leaderboard
PUBLISHED = np.array(
    [
        [0.460, 0.326, 0.263, 0.225],
        [0.420, 0.273, 0.220, 0.200],
        [0.360, 0.224, 0.169, 0.139],
        [0.225, 0.140, 0.110, 0.100],
        [0.365, 0.217, 0.160, 0.140],
        [0.325, 0.233, 0.185, 0.160],
        [0.692, 0.576, 0.509, 0.462],
        [0.604, 0.491, 0.430, 0.383],
        [0.626, 0.506, 0.435, 0.387],
    ]
)
# tau-bench airline, gpt-4o: tasks with c = 0, …, 4 of 4 trials
TAU_BENCH = np.repeat(np.arange(5), (14, 12, 10, 4, 10))


def beta_binomial_pass4(pass1: Array, pass2: Array) -> Array:
    """pass^4 of the Beta population with these pass^1 and pass^2: ρ = (pass^2 - m²)/(m (1 - m)), m = pass^1."""
    rho = (pass2 - pass1**2) / (pass1 * (1 - pass1))
    return mean_power(pass1, rho, 1 - rho, 0, 0, 4)


def predict(train: Array, trained: int, held: Array, held_out: int) -> dict[str, tuple[float, float]]:
    """Log score per held-out cell and |error| of pass^2 by method, from the successes of each task in both parts."""
    n = np.full(train.shape, trained)
    observed = float(unbiased(np.full(held.shape, held_out), held, METRIC).mean())
    counts = counts_of(train, n)
    exact = exact_posterior(counts, metrics=(METRIC,))
    conjugate = ConjugatePosterior(counts=counts, random_seed=0)
    total, size = int(train.sum()), int(n.sum())
    rate = total / size
    kept = np.clip(rate, 0.5 / size, 1 - 0.5 / size)  # otherwise one surprise costs an infinite score
    pooled = ConjugatePosterior(counts=counts, random_seed=0, method=Conjugate(pool_tasks=True))
    log_scores = {
        "hierarchical": _hierarchical_log_score(exact, train, trained, held, held_out),
        "conjugate": stats.betabinom.logpmf(held, held_out, 1 + train, 1 + trained - train).mean(),
        "conjugate pooled": stats.betabinom.logpmf(held, held_out, 1 + total, 1 + size - total).mean(),
        "plug-in": stats.binom.logpmf(held, held_out, kept).mean(),
    }
    predicted = {
        "hierarchical": exact.distribution(0, "tasks", METRIC).mean,
        "conjugate": conjugate.distribution(0, "task", METRIC).mean.mean(),
        "conjugate pooled": pooled.distribution(0, "population", METRIC).mean,
        "plug-in": float(plugin_pass_pow_k(rate, METRIC.k)),
    }
    return {name: (float(log_scores[name]), abs(float(predicted[name]) - observed)) for name in log_scores}


def _hierarchical_log_score(exact: GridPosterior, train: Array, trained: int, held: Array, held_out: int) -> float:
    """Mean log posterior predictive probability of d of `held_out` successes, averaged over the grid of (μ, ρ)."""
    grid = exact.fit.agents[0]
    rho, one_minus_rho = grid.rho.rho, grid.rho.one_minus_rho
    pairs, times = np.unique(np.stack([train, held]), axis=1, return_counts=True)
    total = 0.0
    for (c, d), count in zip(pairs.T.tolist(), times.tolist(), strict=True):
        passed = mean_power(grid.mu, rho, one_minus_rho, c, trained, d)
        failed = mean_power(grid.one_minus_mu, rho, one_minus_rho, trained - c, trained + d, held_out - d)
        total += count * np.log(comb(held_out, d) * np.sum(grid.weights * passed * failed))
    return total / train.size


def splits_of(successes: Array, trials: int, *, trained: int, size: int, seed: int) -> pd.DataFrame:
    """Log score and error by method, averaged over `size` random splits of every task's trials.

    The counts are enough, because the trials of a task are exchangeable.
    """
    rng = np.random.default_rng([seed, trained])
    splits = []
    for _ in range(size):
        train = rng.hypergeometric(successes, trials - successes, trained)
        splits.append(predict(train, trained, successes - train, trials - trained))
    return _averaged(splits)


def simulated_agents(size: int, *, seed: int, processes: int = 1) -> pd.DataFrame:
    """Averages over agents with μ and ρ from the prior and 40 tasks; 3 trials are fitted, 2 predicted."""
    return _averaged(spread(partial(_one_agent, seed), range(size), processes=processes))


def _one_agent(seed: int, index: int) -> dict[str, tuple[float, float]]:
    rng = np.random.default_rng([seed, index])
    p = success_probabilities(rng, rng.random(), rng.random(), (40,))
    return predict(rng.binomial(3, p), 3, rng.binomial(2, p), 2)


def _averaged(scores: list[dict[str, tuple[float, float]]]) -> pd.DataFrame:
    means = {name: np.mean([score[name] for score in scores], axis=0) for name in scores[0]}
    return pd.DataFrame(means, index=["log_score", "error"]).T
