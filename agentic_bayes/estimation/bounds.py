"""Distribution-free bounds of pass@k and pass^k of a new task, for any k, also where k exceeds every n.

n trials of a task show only n moments of the distribution of success probabilities; beyond them a model extrapolates.
These bounds say how far the data alone reach: the largest and the smallest value over all distributions that the data
do not contradict.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agentic_bayes import numerics
from agentic_bayes.checks import check_probability
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.arithmetic import apply_metric
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array

__all__ = ["pass_bounds"]

NODES = 151  # of p, uniform in arcsin √p: dense at both ends, where p^k and (1-p)^k change
MOST_TAILS = 48  # limits in one program; which ones depends on the numbers of trials, never on the successes


def pass_bounds(c: Array, n: Array, size: Array, metric: str, *, prob: float = 0.95) -> tuple[float, float]:
    """Bounds of E f(p) over every distribution of p that the counts do not contradict.

    Parameters
    ----------
    c, n, size : array_like of int, shape (groups,)
        Successes, trials, and number of tasks with that pair. Pairs with n = 0 say nothing.
    metric : str
        "pass@k" or "pass^k" with a number: f(p) = 1 - (1-p)^k or p^k.
    prob : float
        Confidence of the bounds, in (0, 1).

    Returns
    -------
    lower, upper : float
        (0, 1) without data. Both NaN where no distribution fits: trials of one task then vary less than independent
        repeats can (with independent trials this has a probability below 1 - `prob`).

    Raises
    ------
    InvalidArgument
        If an argument is outside what is allowed.

    Notes
    -----
    For tasks drawn from any distribution G and tried n times, the number of tasks with at least j successes is
    Binomial(T_n, ∫ P(Bin(n, p) ≥ j) dG(p)). Clopper-Pearson limits of these shares, simultaneous over all j and n by
    Bonferroni, are linear in G, and so is ∫ f(p) dG(p): its extremes over the G within all limits are two linear
    programs, here over G on a fine grid. They contain the truth with probability `prob` or more whatever G is, and are
    wide where k is much larger than n: that is what the data can say without a model. They are about a new task,
    not about the tasks at hand. With many trials not every j is used.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26, 404-413, doi:10.1093/biomet/26.4.404. The program is in the manner of
    the moment bounds of Tian, Kong and Valiant (2017), Learning populations of parameters, NeurIPS 30.

    Examples
    --------
    >>> lower, upper = pass_bounds([0, 1, 2, 3, 4], [4] * 5, [14, 12, 10, 4, 10], "pass^8")
    >>> round(lower, 3), round(upper, 3)
    (0.008, 0.375)
    """
    wanted = Metric(metric)
    check_probability(prob, "prob", open_ends=True)
    successes, trials, tasks = (np.asarray(part, dtype=np.int64) for part in (c, n, size))
    if not successes.shape == trials.shape == tasks.shape or np.any((successes < 0) | (successes > trials)):
        raise InvalidArgument("c, n and size must have one shape, with 0 ≤ c ≤ n")
    used = (trials > 0) & (tasks > 0)
    tails, low, high = _limits(successes[used], trials[used], tasks[used], prob)
    if not tails.size:
        return 0.0, 1.0
    return _extremes(apply_metric(_nodes(), wanted), tails, low, high)


def _nodes() -> Array:
    """Grid of p, 0 and 1 among them, exactly symmetric about 1/2."""
    half = np.sin(np.linspace(0, np.pi / 4, NODES // 2 + 1)) ** 2
    return np.concatenate([half, 1 - half[-2::-1]])


def _limits(c: Array, n: Array, size: Array, prob: float) -> tuple[Array, Array, Array]:
    """P(Bin(n, p) ≥ j) at the nodes, one row per (n, j), and the limits of their means over tasks."""
    from scipy.special import bdtr

    lengths, place = np.unique(n, return_inverse=True)
    totals = np.bincount(place, weights=size)
    # very many different n: those of most tasks (ties: the larger n)
    kept = np.sort(np.lexsort((-lengths, -totals))[: MOST_TAILS // 2])
    pairs = [(i, j) for i in kept.tolist() for j in _thresholds(int(lengths[i]), MOST_TAILS // max(kept.size, 1))]
    if not pairs:
        return np.empty((0, NODES)), np.empty(0), np.empty(0)
    index, least = np.array(pairs).T
    reached = np.array([size[(place == i) & (c >= j)].sum() for i, j in pairs])
    low, high = numerics.clopper_pearson_interval(reached, totals[index], 1 - (1 - prob) / len(pairs))
    # P(≥ j) = P(at most n - j failures), which loses nothing at either end
    tails = bdtr((lengths[index] - least)[:, None].astype(float), lengths[index][:, None], 1 - _nodes())
    return np.asarray(tails), low, high


def _thresholds(n: int, most: int) -> list[int]:
    """Which j of 1, …, n: all, or `most` of them, symmetric under success ↔ failure and dense at both ends."""
    if n <= most:
        return list(range(1, n + 1))
    share = np.sin(np.linspace(0, np.pi / 4, (most + 1) // 2)) ** 2
    low = np.unique(1 + np.round(share * (n - 1)).astype(int))
    return sorted({*low.tolist(), *(n + 1 - low).tolist()})


def _extremes(values: Array, tails: Array, low: Array, high: Array) -> tuple[float, float]:
    """Least and greatest mean of `values` over weights of the nodes that keep every tail within its limits."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    # without whole-number conditions `milp` is HiGHS's linear solver; unlike `linprog` it takes two-sided limits
    within = LinearConstraint(np.vstack([tails, np.ones(values.size)]), np.append(low, 1.0), np.append(high, 1.0))
    found = []
    for sign in (1.0, -1.0):
        result: Any = milp(sign * values, constraints=within, bounds=Bounds(0.0, np.inf), options={"presolve": False})
        if result.status != 0:
            return float("nan"), float("nan")
        found.append(float(np.clip(sign * result.fun, 0, 1)))
    return found[0], found[1]
