"""Simulation-based calibration: with truth from the prior, its rank in the posterior is uniform.

References
----------
Talts et al. (2018), Validating Bayesian inference algorithms with simulation-based calibration, arXiv:1804.06788.
Säilynoja, Bürkner and Vehtari (2022), Statistics and Computing 32:32, doi:10.1007/s11222-022-10090-6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy import stats

from agentic_bayes.estimation.arithmetic import apply_metric
from agentic_bayes.estimation.engines.grid.betabinomial import mean_power
from agentic_bayes.estimation.engines.grid.exact import GridPosterior
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array
from calibration.simulate import Sample, exact_posterior, from_prior, population_cdf, rho_cdf, spread, stats_of

METRICS = tuple(map(Metric, ("pass^1", "pass^3", "pass@3")))
CUBE = Metric("pass^3")
# name → agents, numbers of tasks, trials per cell
DESIGNS = {
    "one agent": {"agents": 1, "tasks": (5, 40), "trials": (1, 6)},
    "two agents that share strength": {"agents": 2, "tasks": (5, 20), "trials": (1, 6)},
}
WRONG_PRIOR = Hierarchical(rho=stats.beta(1, 10))
SIMULATIONS = 20_000
POINTS = 100


@dataclass(frozen=True)
class Study:
    """Ranks and intervals of many data sets, by quantity; arrays of shape (data sets,)."""

    ranks: dict[str, Array]  # P(quantity ≤ truth | data), uniform if the posterior is right
    covered: dict[str, Array]  # whether the 95 % interval contained the truth
    width: dict[str, Array]  # of that interval

    def p_values(self) -> dict[str, float]:
        """The probability that the ECDF of uniform ranks leaves its envelope as far as this, by quantity."""
        return {name: envelope_p_value(ranks) for name, ranks in self.ranks.items()}


def study(design: str, size: int, *, seed: int, method: Hierarchical | None = None, processes: int = 1) -> Study:
    """Simulate `size` data sets from the default prior and fit each with `method` (default: the default priors)."""
    work = partial(_study_once, design, seed, method or Hierarchical())
    return study_of(spread(work, range(size), processes=processes))


def study_of(data_sets: Sequence[tuple[dict, dict, dict]]) -> Study:
    """Ranks, coverage and widths of data sets, each by quantity, as arrays."""
    first = data_sets[0]
    return Study(*({name: np.array([data[i][name] for data in data_sets]) for name in first[i]} for i in range(3)))


def _study_once(design: str, seed: int, method: Hierarchical, index: int) -> tuple[dict, dict, dict]:
    rng = np.random.default_rng([seed, list(DESIGNS).index(design), index])
    sample = from_prior(rng, **DESIGNS[design])
    posterior = exact_posterior(sample.counts, metrics=METRICS, method=method)
    ranks = _ranks(sample, posterior, rng)
    covered, width = {}, {}
    for name, (truth, lower, upper) in _intervals(sample, posterior).items():
        covered[name] = lower <= truth <= upper
        width[name] = upper - lower
    return ranks, covered, width


def population_truth(sample: Sample, metric: Metric) -> Array:
    """E f(p) for a new task, shape (agents,)."""
    share = sample.mu if metric.power else 1 - sample.mu
    tail = mean_power(share, sample.rho, 1 - sample.rho, 0, 0, metric.k)
    return tail if metric.power else 1 - tail


def _ranks(sample: Sample, posterior: GridPosterior, rng: np.random.Generator) -> dict[str, float]:
    """Ranks for the first agent: from the engine's distribution function if there is one, else among its draws."""
    cube = population_truth(sample, CUBE)
    ranks = {
        "μ": float(population_cdf(posterior, 0, Metric("pass^1"), sample.mu[0])),
        "ρ": float(rho_cdf(posterior, 0, sample.rho[0])),
        "population pass^3": float(population_cdf(posterior, 0, CUBE, cube[0])),
        "tasks pass^3": _among(
            posterior.distribution(0, "tasks", CUBE).draws(), apply_metric(sample.p[0], CUBE).mean(), rng
        ),
        "task pass^3": _among(posterior.task_draws(0)[:, 0] ** 3, sample.p[0, 0] ** 3, rng),
    }
    if sample.mu.size > 1:
        draws = [posterior.distribution(agent, "population", CUBE).draws() for agent in (0, 1)]
        ranks["difference of population pass^3"] = _among(draws[1] - draws[0], cube[1] - cube[0], rng)
    return ranks


def _among(draws: Array, truth: float, rng: np.random.Generator) -> float:
    """Rank of the truth among draws, uniform within its gap; ties (p that rounds to 0 or 1) in random order."""
    below, equal = int((draws < truth).sum()), int((draws == truth).sum())
    return float((below + rng.random() * (equal + 1)) / (draws.size + 1))


def _intervals(sample: Sample, posterior: GridPosterior) -> dict[str, tuple[float, float, float]]:
    """Truth, lower and upper end for the first agent."""
    intervals = {}
    for metric in METRICS:
        values = apply_metric(sample.p[0], metric)
        truths: dict[Estimand, float] = {
            "population": float(population_truth(sample, metric)[0]),
            "tasks": float(values.mean()),
        }
        for estimand, truth in truths.items():
            summary = stats_of(posterior, 0, estimand, metric)
            intervals[f"{estimand} {metric}"] = truth, summary.lower, summary.upper
        if metric.k > 1:
            tasks = stats_of(posterior, 0, "task", metric)
            intervals[f"task {metric}"] = float(values[0]), tasks.lower[0], tasks.upper[0]
    return intervals


def envelope_p_value(ranks: Array) -> float:
    """How extreme the ECDF of `ranks` (in [0, 1]) is among those of uniform samples of the same size.

    It is below 1 - prob exactly where the ECDF leaves the simultaneous envelope of probability `prob`, which consists
    of the pointwise binomial limits whose joint coverage, by simulation, is `prob`.
    """
    cells = np.clip((ranks * POINTS).astype(int), 0, POINTS - 1)
    observed = _smallest_pointwise(np.bincount(cells, minlength=POINTS)[None, :])[0]
    reference = _reference(ranks.size)
    return float((np.searchsorted(reference, observed, side="right") + 1) / (reference.size + 1))


@cache
def _reference(size: int) -> Array:
    """The smallest pointwise probabilities of uniform samples, sorted."""
    rng = np.random.default_rng([2022, size])
    return np.sort(_smallest_pointwise(rng.multinomial(size, np.full(POINTS, 1 / POINTS), SIMULATIONS)))


def _smallest_pointwise(cells: Array) -> Array:
    """The smallest two-sided binomial probability over the points of each ECDF, from counts per bin."""
    below = np.cumsum(cells, axis=1)[:, :-1]
    return np.asarray(_two_sided(int(cells[0].sum()))[below, np.arange(POINTS - 1)].min(axis=1))


@cache
def _two_sided(size: int) -> Array:
    """The two-sided binomial probability of each number of ranks below each point, shape (size + 1, points)."""
    count, z = np.arange(size + 1)[:, None], np.arange(1, POINTS) / POINTS
    return np.asarray(2 * np.minimum(stats.binom.cdf(count, size, z), stats.binom.sf(count - 1, size, z)))
