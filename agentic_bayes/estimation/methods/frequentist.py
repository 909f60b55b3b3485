"""The plain baseline: unbiased and plug-in pass@k and pass^k with confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from agentic_bayes import numerics
from agentic_bayes.estimation.arithmetic import apply_metric
from agentic_bayes.estimation.distribution import Distribution, NoDistribution, PointEstimate
from agentic_bayes.estimation.methods.clustered import clustered, weighted_mean
from agentic_bayes.estimation.methods.options import Frequentist
from agentic_bayes.estimation.posterior import Estimand, Posterior
from agentic_bayes.formatting import Metric, plural
from agentic_bayes.numerics import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class FrequentistEstimate(Posterior):
    """Point estimates with confidence intervals; `population` and `tasks` have the same estimate."""

    method: Frequentist = field(default_factory=Frequentist)

    def _distribution(self, agent: int, estimand: Estimand, metric: Metric) -> Distribution:
        if estimand == "task":
            return self._by_task(agent, metric)
        found = self._over(agent, metric, self.counts.scored[agent])
        groups = self.grouping
        if groups is None or not groups.names or isinstance(found, NoDistribution):
            return found
        if self.method.estimator == "plugin":
            return replace(found, note=f"not clustered by {groups.by}")
        return clustered(self._unbiased(agent, metric), self.counts.scored[agent], groups, found)

    def group_labels(self, estimand: Estimand) -> tuple[str, ...]:
        """A group's `population` has the same estimate as its `tasks`."""
        return super().group_labels("task" if estimand == "task" else "tasks")

    def _group_distribution(self, agent: int, estimand: Estimand, metric: Metric, label: str) -> Distribution:
        groups, scored = self.grouping, self.counts.scored[agent]
        assert groups is not None
        if label in groups.names:
            return self._over(agent, metric, scored & (groups.place == groups.names.index(label)))
        if self.method.estimator == "plugin":
            return NoDistribution(note="the plug-in formula has no weighted mean")
        values = self._unbiased(agent, metric)
        weights = groups.task_weights(label, scored & ~np.isnan(values))
        if isinstance(weights, str):
            return NoDistribution(note=weights)
        return weighted_mean(values, weights, groups)

    def _over(self, agent: int, metric: Metric, which: Array) -> Distribution:
        """The estimate from some of the scored tasks."""
        if not which.any():
            return NoDistribution()
        c, n = self.counts.successes[agent, which], self.counts.trials[agent, which]
        if self.method.estimator == "plugin":
            return _plugin(int(c.sum()), int(n.sum()), metric, n_tasks=c.size)
        return _mean_over_tasks(unbiased(n, c, metric), metric.k)

    def _unbiased(self, agent: int, metric: Metric) -> Array:
        return unbiased(self.counts.trials[agent], self.counts.successes[agent], metric)

    def _by_task(self, agent: int, metric: Metric) -> Distribution:
        """Every task; NaN where n < k (unbiased) or n = 0."""
        c, n = self.counts.successes[agent], self.counts.trials[agent]
        p = np.divide(c, n, out=np.full(c.shape, np.nan), where=n > 0)
        point = unbiased(n, c, metric) if self.method.estimator == "unbiased" else apply_metric(p, metric)
        known = ~np.isnan(point)

        def ends(confidence: float) -> tuple[Array, Array]:
            lower, upper = (
                np.where(known, apply_metric(bound, metric), np.nan)
                for bound in numerics.wilson_interval(c, n, confidence)
            )
            return lower, upper

        return PointEstimate(mean=point, sd=np.full(point.shape, np.nan), ends=ends)

    def task_draws(self, agent: int, tasks: Array | None = None) -> Array:
        """There is no posterior to draw from."""
        return self.distribution(agent, "task", Metric("pass^1")).draws()


def unbiased(n: Array, c: Array, metric: Metric) -> Array:
    """The unbiased estimate of each task; NaN where n < k."""
    return (numerics.pass_at_k if not metric.power else numerics.pass_pow_k)(n, c, metric.k)


def _plugin(total: int, trials: int, metric: Metric, *, n_tasks: int) -> Distribution:
    """The pooled rate put into the formula, with Wilson's interval mapped through it."""
    p, k = total / trials, metric.k
    slope = k * (p ** (k - 1) if metric.power else (1 - p) ** (k - 1))

    def ends(confidence: float) -> tuple[float, float]:
        lower, upper = numerics.wilson_interval(total, trials, confidence)
        return float(apply_metric(lower, metric)), float(apply_metric(upper, metric))

    point = float(apply_metric(np.asarray(p), metric))
    return PointEstimate(mean=point, sd=float(slope * np.sqrt(p * (1 - p) / trials)), ends=ends, n_tasks=n_tasks)


def _mean_over_tasks(values: Array, k: int) -> Distribution:
    """The mean of the tasks with n ≥ k, with a t interval: tasks are the independent units."""
    known = values[~np.isnan(values)]
    left_out = values.size - known.size
    if known.size == 0:
        return NoDistribution(note=f"no task has {k} trials")
    note = f"{plural(left_out, 'task')} of {values.size} with fewer than {k} trials left out" if left_out else ""
    error = float(known.std(ddof=1) / np.sqrt(known.size)) if known.size > 1 else float("nan")
    return PointEstimate(
        mean=float(known.mean()),
        sd=error,
        ends=lambda confidence: numerics.t_interval(known, confidence),
        n_tasks=known.size,
        note=note,
    )
