"""Confidence intervals, highest-density intervals and quantiles of plain arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from agentic_bayes.checks import check_bootstrap, check_probability
from agentic_bayes.numerics.arrays import Floats, numbers, proportions


def beta_quantile(q: ArrayLike, a: ArrayLike, b: ArrayLike) -> Floats:
    """Quantiles of Beta(a, b).

    Parameters
    ----------
    q : array_like of float
        Probabilities in [0, 1].
    a, b : array_like of float
        Beta parameters, > 0; all three broadcast together.

    Returns
    -------
    ndarray of float
    """
    from scipy.special import betaincinv

    alpha, beta, probability = numbers("a", a), numbers("b", b), numbers("q", q)
    return np.asarray(betaincinv(alpha, beta, probability), dtype=np.float64)


def wilson_interval(c: ArrayLike, n: ArrayLike, ci_prob: float = 0.95) -> tuple[Floats, Floats]:
    """Wilson's score interval of a proportion.

    Parameters
    ----------
    c, n : array_like
        Successes and trials.
    ci_prob : float
        Nominal coverage, in (0, 1).

    Returns
    -------
    lower, upper : ndarray of float
        [0, 1] where n = 0.

    References
    ----------
    Wilson (1927), J. Am. Stat. Assoc. 22, 209-212, doi:10.1080/01621459.1927.10502953.
    """
    from scipy.special import ndtri

    z = -float(
        ndtri((1 - check_probability(ci_prob, "ci_prob", open_ends=True)) / 2)
    )  # 0.5 + ci_prob / 2 may round to 1
    successes, trials = proportions(c, n)
    safe = np.where(trials > 0, trials, 1.0)
    p = successes / safe
    centre = (p + z**2 / (2 * safe)) / (1 + z**2 / safe)
    half = z / (1 + z**2 / safe) * np.sqrt(p * (1 - p) / safe + z**2 / (4 * safe**2))
    lower = np.where((trials > 0) & (successes > 0), np.clip(centre - half, 0, 1), 0.0)
    upper = np.where((trials > 0) & (successes < trials), np.clip(centre + half, 0, 1), 1.0)
    return lower, upper


def clopper_pearson_interval(c: ArrayLike, n: ArrayLike, ci_prob: float = 0.95) -> tuple[Floats, Floats]:
    """The exact (Clopper-Pearson) interval of a proportion.

    Parameters
    ----------
    c, n : array_like
        Successes and trials.
    ci_prob : float
        Guaranteed coverage, in (0, 1).

    Returns
    -------
    lower, upper : ndarray of float
        [0, 1] where n = 0.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26, 404-413, doi:10.1093/biomet/26.4.404.
    """
    tail = (1 - check_probability(ci_prob, "ci_prob", open_ends=True)) / 2
    successes, trials = proportions(c, n)
    failures = trials - successes
    low = beta_quantile(tail, np.where(successes > 0, successes, 1.0), failures + 1)
    high = beta_quantile(1 - tail, successes + 1, np.where(failures > 0, failures, 1.0))
    return np.where(successes > 0, low, 0.0), np.where(failures > 0, high, 1.0)


def t_interval(values: ArrayLike, ci_prob: float = 0.95) -> tuple[float, float]:
    """Student's t interval of the mean of independent values, clipped to [0, 1].

    Parameters
    ----------
    values : array_like of float, shape (tasks,)
        One value per task, in [0, 1]. Tasks are the independent units, so this is the clustered interval.
    ci_prob : float
        Nominal coverage, in (0, 1).

    Returns
    -------
    lower, upper : float
        (NaN, NaN) for no value, (0, 1) for one between 0 and 1. If all values are equal, Wilson's interval of their
        sum of T tasks, so that the width is never zero: no distribution on [0, 1] varies more than 0 and 1 do.
    """
    from scipy.special import stdtrit

    array, tail = numbers("values", values).ravel(), (1 - check_probability(ci_prob, "ci_prob", open_ends=True)) / 2
    size = array.size
    if size == 0:
        return math.nan, math.nan
    if size == 1 and 0 < array[0] < 1:
        return 0.0, 1.0
    if np.all(array == array[0]):
        lower, upper = wilson_interval(float(array.sum()), size, ci_prob)
        return float(lower), float(upper)
    mean, error = float(array.mean()), float(array.std(ddof=1)) / math.sqrt(size)
    half = -float(stdtrit(size - 1, tail)) * error
    return max(0.0, mean - half), min(1.0, mean + half)


def logit_t_interval(values: ArrayLike, ci_prob: float = 0.95) -> tuple[float, float]:
    """Student's t interval of the logit of the mean of independent values, mapped back.

    Parameters
    ----------
    values : array_like of float, shape (tasks,)
        One value per task, in [0, 1]. Tasks are the independent units.
    ci_prob : float
        Nominal coverage, in (0, 1).

    Returns
    -------
    lower, upper : float
        (NaN, NaN) where it is undefined: fewer than two values, all values equal.

    Notes
    -----
    With mean x, standard deviation s and T values, logit x ± t_{T-1} s / (√T x (1 - x)), by the delta method.
    """
    from scipy.special import expit, logit, stdtrit

    array, tail = numbers("values", values).ravel(), (1 - check_probability(ci_prob, "ci_prob", open_ends=True)) / 2
    if array.size < 2 or np.all(array == array[0]):
        return math.nan, math.nan
    mean, error = float(array.mean()), float(array.std(ddof=1)) / math.sqrt(array.size)
    half = -float(stdtrit(array.size - 1, tail)) * error / (mean * (1 - mean))
    return float(expit(logit(mean) - half)), float(expit(logit(mean) + half))


def bootstrap_interval(
    values: ArrayLike, ci_prob: float = 0.95, *, resamples: int = 10_000, random_seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean, resampling tasks.

    Parameters
    ----------
    values : array_like of float, shape (tasks,)
        One value per task, in [0, 1].
    ci_prob : float
        Nominal coverage, in (0, 1).
    resamples : int
        Bootstrap samples.
    random_seed : int
        Same seed, same interval.

    Returns
    -------
    lower, upper : float
        (NaN, NaN) for no value. If all values are 0 or all are 1, Wilson's interval of T of T tasks, as in
        `t_interval`. With few tasks the interval is too short.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.
    """
    array = numbers("values", values).ravel()
    check_bootstrap(ci_prob, resamples, random_seed)
    if array.size == 0 or np.all(array == 0) or np.all(array == 1):
        return t_interval(array, ci_prob)
    # only how often each distinct value is drawn matters
    distinct, size = np.unique(array, return_counts=True)
    counts = np.random.default_rng(random_seed).multinomial(array.size, size / array.size, size=resamples)
    lower, upper = np.quantile(counts @ distinct / array.size, [(1 - ci_prob) / 2, (1 + ci_prob) / 2])
    return float(lower), float(upper)


def hdi_from_draws(draws: ArrayLike, ci_prob: float = 0.95) -> tuple[float, float]:
    """The narrowest interval that holds `ci_prob` of the draws.

    Parameters
    ----------
    draws : array_like of float
        Draws, flattened.
    ci_prob : float
        Share of the draws, in (0, 1).

    Returns
    -------
    lower, upper : float
    """
    ordered = np.sort(numbers("draws", draws).ravel())
    span = max(1, math.floor(check_probability(ci_prob, "ci_prob", open_ends=True) * ordered.size))
    if not ordered.size:
        return math.nan, math.nan
    if span >= ordered.size:
        return float(ordered[0]), float(ordered[-1])
    widths = ordered[span:] - ordered[: ordered.size - span]
    first = int(np.argmin(widths))
    return float(ordered[first]), float(ordered[first + span])


def hdi_from_quantiles(
    quantile: Callable[[Floats], Floats], ci_prob: float = 0.95, *, points: int = 201, rounds: int = 4
) -> tuple[Any, Any]:
    """The narrowest interval of probability `ci_prob`, from a quantile function.

    Parameters
    ----------
    quantile : callable
        Maps probabilities of shape (points,) to quantiles of shape (points, ...).
    ci_prob : float
        Probability of the interval, in (0, 1).
    points, rounds : int
        The lower tail is searched on `points` values, `rounds` times, each time in a finer neighbourhood.

    Returns
    -------
    lower, upper : ndarray of float
        Of the trailing shape of the quantiles.

    Notes
    -----
    For a density with one mode this is the highest-density interval; one with modes at both ends has a
    highest-density region of two pieces, of which no single interval is an account.
    """
    lowest, highest = 0.0, 1.0 - ci_prob
    tails = np.linspace(lowest, highest, points)
    low, high = quantile(tails), quantile(np.minimum(tails + ci_prob, 1.0))
    if low.ndim > 1:
        pairs = np.asarray(
            [
                hdi_from_quantiles(partial(_column, quantile, index), ci_prob, points=points, rounds=rounds)
                for index in np.ndindex(*low.shape[1:])
            ]
        ).reshape(*low.shape[1:], 2)
        return pairs[..., 0], pairs[..., 1]
    for _ in range(rounds):
        best = int(np.argmin(high - low))
        step = tails[1] - tails[0]
        tails = np.linspace(max(lowest, tails[best] - step), min(highest, tails[best] + step), points)
        low, high = quantile(tails), quantile(np.minimum(tails + ci_prob, 1.0))
    best = int(np.argmin(high - low))
    return low[best], high[best]


def _column(quantile: Callable[[Floats], Floats], index: tuple[int, ...], q: Floats) -> Floats:
    """Quantiles of one element."""
    whole: Any = quantile(q)
    return np.asarray(whole[(slice(None), *index)], dtype=np.float64)
