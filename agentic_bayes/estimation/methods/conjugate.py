"""Each cell on its own: p | c, n ~ Beta(a + c, b + n - c), in closed form."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from agentic_bayes import numerics
from agentic_bayes.estimation.posterior import (
    CHAINS,
    DRAWS,
    STATISTICS,
    Array,
    CIKind,
    Counts,
    Estimand,
    Stats,
    apply_metric,
    mean_of_metric,
    mean_over_tasks,
    nothing_scored,
    sd_of_metric,
    stats_of_draws,
)
from agentic_bayes.formatting import Metric

__all__ = ["ConjugatePosterior"]


@dataclass(frozen=True)
class ConjugatePosterior:
    """Independent Beta posteriors, one per task, or one per agent when tasks are pooled."""

    counts: Counts
    ci_prob: float  # of the intervals
    ci_kind: CIKind
    random_seed: int  # for the `tasks` interval and for draws; everything else is in closed form
    # One success probability per agent: its trials are taken as one binomial. Only then is there a population.
    pool_tasks: bool = False
    prior: tuple[float, float] = (1.0, 1.0)  # (a, b) of the Beta prior of p
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def estimands(self) -> tuple[Estimand, ...]:
        """`population` only when tasks are pooled."""
        return ("population", "tasks", "task") if self.pool_tasks else ("tasks", "task")

    @cached_property
    def _parameters(self) -> tuple[Array, Array]:
        """Beta parameters, shape (agents, tasks)."""
        successes, trials = self.counts.successes, self.counts.trials
        if self.pool_tasks:
            shape = successes.shape
            successes = np.broadcast_to(successes.sum(axis=1, keepdims=True), shape)
            trials = np.broadcast_to(trials.sum(axis=1, keepdims=True), shape)
        return self.prior[0] + successes, self.prior[1] + trials - successes

    def per_task(self, agent: int, metric: Metric, k: int) -> Stats:
        """Statistics of every task, arrays of shape (tasks,); a task without a scored trial has the prior's."""
        a, b = (parameter[agent] for parameter in self._parameters)
        return self._closed_form(a, b, metric, k, n_tasks=1)

    def aggregate(self, agent: int, estimand: Estimand, metric: Metric, k: int) -> Stats:
        """Statistics of the mean over the scored tasks, or of the pooled success probability."""
        scored = self.counts.scored[agent]
        if estimand == "tasks" and not scored.any():
            return nothing_scored()
        if self.pool_tasks or scored.sum() == 1:  # one Beta distribution: no draws are needed
            first = 0 if self.pool_tasks else int(np.argmax(scored))
            a, b = (parameter[agent, first : first + 1] for parameter in self._parameters)
            stats = self._closed_form(a, b, metric, k, n_tasks=int(scored.sum()))
            mean, sd, median, lower, upper = (float(getattr(stats, name)[0]) for name in STATISTICS)
            return Stats(mean, sd, median, lower, upper, stats.n_tasks)
        a, b = (parameter[agent, scored] for parameter in self._parameters)
        mean = float(mean_of_metric(a, b, metric, k).mean())
        draws = self.draws(agent, estimand, metric, k)
        return stats_of_draws(draws, self.ci_prob, self.ci_kind, int(scored.sum()), mean=mean)

    def at_least(self, agent: int, metric: Metric, k: int, value: float) -> float | None:
        """P(f ≥ value) of the mean over the scored tasks, without draws; None where it takes several Betas."""
        scored = self.counts.scored[agent]
        if not self.pool_tasks and scored.sum() != 1:
            return None
        from scipy.special import betainc

        first = 0 if self.pool_tasks else int(np.argmax(scored))
        a, b = (float(parameter[agent, first]) for parameter in self._parameters)
        # f is monotone: it reaches the value where p reaches its inverse; the smaller of p and 1 - p keeps its digits
        if metric == "pass_pow_k":
            return float(betainc(b, a, -np.expm1(np.log(value) / k))) if value > 0 else 1.0
        failing = np.exp(np.log1p(-value) / k) if value < 1 else 0.0
        return float(betainc(b, a, failing))

    def draws(self, agent: int, estimand: Estimand, metric: Metric, k: int) -> Array:
        """Posterior draws, shape (4,000,)."""
        if self.pool_tasks:
            return apply_metric(self.task_draws(agent)[:, 0], metric, k)
        key = agent, metric, k
        if key not in self._cache:
            c, n, sizes = self.counts.groups(agent)
            shape = (CHAINS * DRAWS, c.size)
            a, b = np.broadcast_to(self.prior[0] + c, shape), np.broadcast_to(self.prior[1] + n - c, shape)
            rng = np.random.default_rng([self.random_seed, self.counts.streams[agent]])
            self._cache[key] = mean_over_tasks(a, b, sizes, [(metric, k)], rng)[0]
        drawn: Array = self._cache[key]
        return drawn

    def task_draws(self, agent: int, tasks: Array | None = None) -> Array:
        """Posterior draws of p of all tasks, or of those with these indices, shape (4,000, tasks)."""
        rng = np.random.default_rng([self.random_seed, self.counts.streams[agent], 1])
        a, b = (parameter[agent][slice(None) if tasks is None else tasks] for parameter in self._parameters)
        size = CHAINS * DRAWS
        if self.pool_tasks:
            return np.broadcast_to(rng.beta(a[0], b[0], size=(size, 1)), (size, a.size))
        return rng.beta(a, b, size=(size, a.size))

    def _closed_form(self, a: Array, b: Array, metric: Metric, k: int, *, n_tasks: int) -> Stats:
        """Since f is monotone in p, an equal-tailed interval of p maps to that of f(p)."""

        def quantile(q: Array) -> Array:
            return apply_metric(numerics.beta_quantile(q[:, None], a, b), metric, k)

        tail = (1 - self.ci_prob) / 2
        lower, median, upper = quantile(np.array([tail, 0.5, 1 - tail]))
        if self.ci_kind == "hdi":
            lower, upper = self._narrowest(a, b, metric, k)
        mean, sd = mean_of_metric(a, b, metric, k), sd_of_metric(a, b, metric, k)
        return Stats(mean, sd, median, lower, upper, n_tasks)

    def _narrowest(self, a: Array, b: Array, metric: Metric, k: int) -> tuple[Array, Array]:
        """Highest-density intervals, searched once per distinct (a, b)."""
        pairs, place = np.unique(np.stack([a, b]), axis=1, return_inverse=True)
        ends = [
            numerics.hdi_from_quantiles(
                lambda q, pair=pair: apply_metric(numerics.beta_quantile(q, *pair), metric, k),  # type: ignore[misc]
                self.ci_prob,
            )
            for pair in pairs.T
        ]
        lower, upper = np.asarray(ends).T[:, place.reshape(-1)]
        return lower, upper
