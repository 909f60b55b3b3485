"""Choose adaptive trials: spend the budget where it narrows the target interval most.

The target is the mean over these tasks of f(p) = p^k or 1 - (1-p)^k. Its variance is about the sum of the tasks'
variances over the square of their number. A task's p is taken as Beta(a, b) with the mean and the standard deviation of
its pass^1 in the hierarchical posterior; after j more trials the expected variance is

    V_j = E p^2k - Σ_c BetaBinomial(c; j, a, b) (E[p^k | a + c, b + j - c])²

and the next trial goes where V_j - V_{j+1} is largest. All of this is in closed form. The choice depends only on the
results of earlier trials, so the posterior needs no correction for it.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.estimation.summary import overall_rows
from agentic_bayes.formatting import Metric

if TYPE_CHECKING:
    from agentic_bayes.estimation.estimate import Estimate

FIRST = 2  # trials of every task in the first round, if the budget allows
SHARE = 0.25  # size of the next round, as a share of the trials so far
MOST = 10  # most trials of one task in one round


def round_size(spent: int, budget: int, concurrency: int) -> int:
    """The size of the next round: a share of the trials so far, at least `concurrency`, within the budget."""
    return min(max(concurrency, round(SHARE * spent), 1), budget - spent)


def end_of(est: Estimate, target: str, width: float) -> str | None:
    """Why no more trials are needed; None if they are."""
    metric = Metric(target)
    (row,) = _rows(est, metric, "tasks")
    if row["upper"] - row["lower"] > width:
        return None
    return f"the {metric} interval is {row['upper'] - row['lower']:.3f} wide (target: at most {width:g})"


def allocate(est: Estimate, target: str, open_tasks: Mapping[str, int], size: int) -> dict[str, int]:
    """Distribute the trials of a round over the tasks."""
    rate = Metric("pass^1")
    known = {row["task"]: (row["mean"], row["sd"]) for row in _rows(est, rate, "task")}
    (new,) = _rows(est, rate, "population")  # a task without a verdict gets the mean, with a wide spread
    names = list(open_tasks)
    mean, sd = np.array([known.get(name, (new["mean"], 0.5)) for name in names]).reshape(-1, 2).T
    mean = np.clip(mean, 1e-6, 1 - 1e-6)
    total = np.maximum(mean * (1 - mean) / np.maximum(sd, 1e-9) ** 2 - 1, 0.05)
    left = remaining_variances(mean * total, (1 - mean) * total, Metric(target), MOST)
    gains = left[:, :-1] - left[:, 1:]
    more = dict.fromkeys(names, 0)
    queue = [(-float(gains[i, 0]), i) for i in range(len(names))]
    heapq.heapify(queue)
    for _ in range(size):
        if not queue:
            break
        _, i = heapq.heappop(queue)
        more[names[i]] += 1
        if more[names[i]] < MOST:
            heapq.heappush(queue, (-float(gains[i, more[names[i]]]), i))
    return {name: count for name, count in more.items() if count}


def remaining_variances(a: Any, b: Any, metric: Metric, most: int) -> Any:
    """The expected posterior variance of f(p) after j more trials, for j = 0, …, most."""
    from scipy.special import betaln, gammaln

    k = metric.k
    if metric.family == "pass_at_k":  # the variance of (1-p)^k
        a, b = b, a
    a, b = (np.asarray(part, dtype=float)[:, None] for part in (a, b))
    square = np.exp(betaln(a + 2 * k, b) - betaln(a, b))[:, 0]
    left = np.empty((a.shape[0], most + 1))
    for j in range(most + 1):
        c = np.arange(j + 1)
        choose = gammaln(j + 1) - gammaln(c + 1) - gammaln(j - c + 1)
        weight = np.exp(choose + betaln(a + c, b + j - c) - betaln(a, b))
        mean = np.exp(betaln(a + c + k, b + j - c) - betaln(a + c, b + j - c))
        left[:, j] = square - (weight * mean**2).sum(axis=1)
    return left


def _rows(est: Estimate, metric: Metric, estimand: str) -> list[dict[str, Any]]:
    frame = overall_rows(est.summary(columns="all", tasks=estimand == "task"))
    rows: list[Any] = frame[(frame["estimand"] == estimand) & (frame["metric"] == str(metric))].to_dict("records")
    return rows
