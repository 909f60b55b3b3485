"""What every method of estimation takes and gives: counts in, statistics of pass@k and pass^k out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, assert_never

import numpy as np

from agentic_bayes import numerics
from agentic_bayes.formatting import Metric

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "CHAINS",
    "DRAWS",
    "LARGE_GROUP",
    "STATISTICS",
    "Array",
    "CIKind",
    "Counts",
    "Estimand",
    "Posterior",
    "Stats",
    "apply_metric",
    "interval_of_draws",
    "mean_of_metric",
    "mean_over_tasks",
    "metric_tail",
    "nothing_scored",
    "sd_of_metric",
    "stats_of_draws",
]

Estimand = Literal["population", "tasks", "task"]
CIKind = Literal["eti", "hdi"]
Array = np.ndarray[Any, np.dtype[Any]]

CHAINS, DRAWS = 4, 1000
STATISTICS = ("mean", "sd", "median", "lower", "upper")
# groups of equal (c, n) above this size contribute to a mean over tasks as a normal with exact moments
LARGE_GROUP = 100


@dataclass(frozen=True)
class Counts:
    """Successes and scored trials as plain arrays."""

    agents: tuple[str, ...]  # labels
    tasks: tuple[str, ...]
    successes: Array  # shape (agents, tasks); counts; trials is 0 where nothing was scored
    trials: Array
    unscored: Array

    @classmethod
    def of(cls, outcomes: xr.Dataset) -> Counts:
        """The counts of a checked outcomes dataset."""
        return cls(
            tuple(outcomes["agent"].values),
            tuple(outcomes["task"].values),
            outcomes["successes"].values,
            outcomes["trials"].values,
            outcomes["unscored"].values,
        )

    @cached_property
    def scored(self) -> Array:
        """Whether a cell has a scored trial, shape (agents, tasks)."""
        return self.trials > 0

    @cached_property
    def attempted(self) -> Array:
        """Whether a cell was attempted at all, scored or not, shape (agents, tasks)."""
        return (self.trials > 0) | (self.unscored > 0)

    def pairs(self, agent: int) -> tuple[Array, Array, Array]:
        """Distinct (c, n) of an agent's tasks, also n = 0, and which of them each task has."""
        return self._pairs[agent]

    def groups(self, agent: int) -> tuple[Array, Array, Array]:
        """Distinct (c, n) of an agent's scored tasks and how many tasks have each."""
        c, n, place = self._pairs[agent]
        size = np.bincount(place, minlength=n.size)
        return c[n > 0], n[n > 0], size[n > 0]

    @cached_property
    def streams(self) -> Array:
        """Number of each agent's random stream, shape (agents,): its place among agents sorted by their counts.

        What agents are called, and so in which order they stand, then changes no draw (but for agents with equal
        counts, which exchange theirs).
        """
        keys = []
        for c, n, place in self._pairs:
            keys.append((n.tolist(), c.tolist(), np.bincount(place, minlength=n.size).tolist()))
        order = sorted(range(len(keys)), key=keys.__getitem__)
        streams = np.empty(len(keys), dtype=np.int64)
        streams[order] = np.arange(len(keys))
        return streams

    @cached_property
    def _pairs(self) -> list[tuple[Array, Array, Array]]:
        found = []
        for successes, trials in zip(self.successes, self.trials, strict=True):
            if int(trials.max(initial=0)) < 2**31:  # one number per pair sorts much faster than two
                codes, place = np.unique((trials << 31) + successes, return_inverse=True)
                found.append((codes & (2**31 - 1), codes >> 31, place.reshape(-1)))
            else:
                pairs, place = np.unique(np.stack([successes, trials]), axis=1, return_inverse=True)
                found.append((pairs[0], pairs[1], place.reshape(-1)))
        return found


@dataclass(frozen=True, slots=True)
class Stats:
    """Mean, sd, median and interval; floats, or arrays of shape (tasks,)."""

    mean: Any  # NaN where undefined. For the frequentist method ``sd`` is the standard error.
    sd: Any
    median: Any
    lower: Any
    upper: Any
    n_tasks: int = 1  # how many tasks inform the number
    note: str = ""  # what a reader must know, or empty


class Posterior(Protocol):
    """What a method gives.

    Attributes
    ----------
    estimands : tuple
        The estimands that the method defines.
    """

    @property
    def estimands(self) -> tuple[Estimand, ...]:
        """The estimands that the method defines."""
        ...

    def aggregate(self, agent: int, estimand: Estimand, metric: Metric, k: int) -> Stats:
        """Statistics of `population` or `tasks` for one agent."""
        ...

    def per_task(self, agent: int, metric: Metric, k: int) -> Stats:
        """Statistics of every task of one agent, arrays of shape (tasks,)."""
        ...

    def draws(self, agent: int, estimand: Estimand, metric: Metric, k: int) -> Array:
        """Posterior draws of `population` or `tasks`, shape (chains × draws,)."""
        ...

    def task_draws(self, agent: int, tasks: Array | None = None) -> Array:
        """Posterior draws of p of all tasks, or of those with these indices, shape (chains × draws, tasks)."""
        ...


def apply_metric(p: Array, metric: Metric, k: int) -> Array:
    """pass@k or pass^k of success probabilities; monotone increasing in p."""
    match metric:
        case "pass_at_k":
            return numerics.plugin_pass_at_k(p, k)
        case "pass_pow_k":
            return numerics.plugin_pass_pow_k(p, k)
        case _:
            assert_never(metric)


def mean_of_metric(a: Array, b: Array, metric: Metric, k: int) -> Array:
    """E f(p) for p ~ Beta(a, b)."""
    match metric:
        case "pass_at_k":
            return numerics.beta_pass_at_k_mean(a, b, k)
        case "pass_pow_k":
            return numerics.beta_pass_pow_k_mean(a, b, k)
        case _:
            assert_never(metric)


def metric_tail(a: Array, b: Array, metric: Metric, k: int) -> tuple[Array, Array]:
    """First and second moment of t = p^k (pass^k) or t = (1-p)^k (pass@k = 1 - t) for p ~ Beta(a, b)."""
    if metric == "pass_at_k":
        a, b = b, a
    return numerics.beta_pass_pow_k_mean(a, b, k), numerics.beta_pass_pow_k_mean(a, b, 2 * k)


def sd_of_metric(a: Array, b: Array, metric: Metric, k: int) -> Array:
    """Standard deviation of f(p) for p ~ Beta(a, b)."""
    first, second = metric_tail(a, b, metric, k)
    return np.asarray(np.sqrt(np.clip(second - first**2, 0, None)))


def interval_of_draws(draws: Array, ci_prob: float, ci_kind: CIKind) -> tuple[float, float]:
    """Equal-tailed or highest-density interval of draws."""
    match ci_kind:
        case "eti":
            lower, upper = np.quantile(draws, [(1 - ci_prob) / 2, (1 + ci_prob) / 2])
            return float(lower), float(upper)
        case "hdi":
            return numerics.hdi_from_draws(draws, ci_prob)
        case _:
            assert_never(ci_kind)


def stats_of_draws(draws: Array, ci_prob: float, ci_kind: CIKind, n_tasks: int, *, mean: float | None = None) -> Stats:
    """Statistics of draws; `mean` replaces their mean where it is known better."""
    lower, upper = interval_of_draws(draws, ci_prob, ci_kind)
    centre = float(draws.mean()) if mean is None else mean
    return Stats(centre, float(draws.std(ddof=1)), float(np.median(draws)), lower, upper, n_tasks)


def nothing_scored() -> Stats:
    """The statistics of an agent without a scored trial, where the estimand needs one."""
    nan = float("nan")
    return Stats(nan, nan, nan, nan, nan, 0, "nothing was scored")


def mean_over_tasks(
    a: Array, b: Array, sizes: Array, wanted: Sequence[tuple[Metric, int]], rng: np.random.Generator
) -> list[Array]:
    """Draws of the mean over tasks of f(p), tasks grouped by equal Beta parameters."""
    count, total = a.shape[0], int(sizes.sum())
    sums = [np.zeros(count) for _ in wanted]
    for group, size in enumerate(sizes):
        alpha, beta = a[:, group], b[:, group]
        if size > LARGE_GROUP:
            z = rng.standard_normal(count)
            for i, (metric, k) in enumerate(wanted):
                moved = mean_of_metric(alpha, beta, metric, k) * size
                moved += z * np.sqrt(size) * sd_of_metric(alpha, beta, metric, k)
                sums[i] += np.clip(moved, 0, size)
        else:
            p = rng.beta(alpha, beta, size=(int(size), count))
            for i, (metric, k) in enumerate(wanted):
                sums[i] += apply_metric(p, metric, k).sum(axis=0)
    return [s / total for s in sums]
