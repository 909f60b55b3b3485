"""The plain baseline: unbiased and plug-in pass@k and pass^k with their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, assert_never

import numpy as np

from agentic_bayes import numerics
from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.posterior import Array, Counts, Estimand, Stats, apply_metric, nothing_scored
from agentic_bayes.formatting import Metric, plural

__all__ = ["Estimator", "FrequentistEstimate"]

Estimator = Literal["unbiased", "plugin"]


@dataclass(frozen=True)
class FrequentistEstimate:
    """Point estimates with confidence intervals."""

    counts: Counts
    ci_prob: float  # nominal coverage
    # ``unbiased``: mean over the tasks with n ≥ k of 1 - C(n-c,k)/C(n,k) and C(c,k)/C(n,k), with a t interval on the
    # task values (tasks are the independent units). ``plugin``: the pooled rate c/n put into 1-(1-p)^k and p^k, with
    # Wilson's interval mapped through; biased when tasks differ.
    estimator: Estimator = "unbiased"

    @property
    def estimands(self) -> tuple[Estimand, ...]:
        """All three; `population` and `tasks` have the same estimate."""
        return ("population", "tasks", "task")

    def aggregate(self, agent: int, estimand: Estimand, metric: Metric, k: int) -> Stats:
        """Estimate of the mean over tasks."""
        scored = self.counts.scored[agent]
        if not scored.any():
            return nothing_scored()
        c, n = self.counts.successes[agent, scored], self.counts.trials[agent, scored]
        match self.estimator:
            case "plugin":
                total, trials = c.sum(), n.sum()
                p = total / trials
                point = float(apply_metric(p, metric, k))
                lower, upper = (
                    float(apply_metric(bound, metric, k))
                    for bound in numerics.wilson_interval(total, trials, self.ci_prob)
                )
                slope = k * (p ** (k - 1) if metric == "pass_pow_k" else (1 - p) ** (k - 1))
                error = float(slope * np.sqrt(p * (1 - p) / trials))
                return Stats(point, error, float("nan"), lower, upper, int(scored.sum()))
            case "unbiased":
                return self._mean_over_tasks(unbiased(n, c, metric, k), k)
            case _:
                assert_never(self.estimator)

    def _mean_over_tasks(self, values: Array, k: int) -> Stats:
        known = values[~np.isnan(values)]
        left_out = values.size - known.size
        note = f"{plural(left_out, 'task')} of {values.size} with fewer than {k} trials left out" if left_out else ""
        if known.size == 0:
            nan = float("nan")
            return Stats(nan, nan, nan, nan, nan, 0, f"no task has {k} trials")
        error = float(known.std(ddof=1) / np.sqrt(known.size)) if known.size > 1 else float("nan")
        lower, upper = numerics.t_interval(known, self.ci_prob)
        return Stats(float(known.mean()), error, float("nan"), lower, upper, known.size, note)

    def per_task(self, agent: int, metric: Metric, k: int) -> Stats:
        """Estimates of every task, arrays of shape (tasks,); NaN where n < k (unbiased) or n = 0."""
        c, n = self.counts.successes[agent], self.counts.trials[agent]
        p = np.divide(c, n, out=np.full(c.shape, np.nan), where=n > 0)
        point = unbiased(n, c, metric, k) if self.estimator == "unbiased" else apply_metric(p, metric, k)
        known = ~np.isnan(point)
        lower, upper = (
            np.where(known, apply_metric(bound, metric, k), np.nan)
            for bound in numerics.wilson_interval(c, n, self.ci_prob)
        )
        nan = np.full(point.shape, np.nan)
        return Stats(point, nan, nan, lower, upper)

    def draws(self, agent: int, estimand: Estimand, metric: Metric, k: int) -> Array:
        """There is no posterior to draw from."""
        raise EstimateError(
            "the frequentist method has no posterior: use method='hierarchical' or 'conjugate' for draws, "
            "comparisons and tiers"
        )

    def task_draws(self, agent: int, tasks: Array | None = None) -> Array:
        """There is no posterior to draw from."""
        return self.draws(agent, "task", "pass_pow_k", 1)


def unbiased(n: Array, c: Array, metric: Metric, k: int) -> Array:
    """The unbiased estimate of each task; NaN where n < k."""
    return numerics.pass_at_k(n, c, k) if metric == "pass_at_k" else numerics.pass_pow_k(n, c, k)
