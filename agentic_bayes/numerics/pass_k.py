"""Estimators of pass@k and pass^k from counts, their plug-in forms, and their means for Beta-distributed p."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.numerics.arrays import Floats, attempts, numbers


def _counts(n: ArrayLike, c: ArrayLike, k: ArrayLike) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Validated, broadcast (n, c, k)."""
    ks, arrays = attempts(k), []
    for name, values in (("n", n), ("c", c)):
        array = np.asarray(values)
        if array.dtype.kind not in "iuf" or not np.all(np.isfinite(array)) or np.any(array != np.floor(array)):
            raise InvalidArgument(f"{name} must hold whole numbers ≥ 0, got {values!r}")
        arrays.append(array.astype(np.float64))
    trials, successes, ks = np.broadcast_arrays(arrays[0], arrays[1], ks)
    if np.any(successes < 0) or np.any(successes > trials):
        raise InvalidArgument(f"c must lie in [0, n], got n={n!r}, c={c!r}")
    return trials, successes, ks


def _draw(n: Floats, marked: Floats, k: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Probabilities that k of n items, drawn without replacement, hold none and at least one of the marked ones.

    With m marked items, none is the product Π_{j<k} (n - m - j)/(n - j), where m and k may be exchanged: the shorter
    product is taken. At least one is the sum over j of the probability that the first marked item is draw j: no
    binomial coefficient is formed, and neither number is the small difference of large ones.
    """
    possible = k <= n
    length, share = np.minimum(k, marked), np.maximum(k, marked)
    none, some, j = np.ones(n.shape), np.zeros(n.shape), 0
    smallest = np.finfo(np.float64).tiny
    while np.any(active := possible & (j < length) & (none > smallest)):
        left = np.where(active, n - j, 1)
        some = np.where(active, some + none * (share / left), some)
        none = np.where(active, none * (left - share) / left, none)
        j += 1
    none = np.where(none > smallest, none, 0.0)
    some = np.where(none < 0.5, 1 - none, some)
    return np.where(possible, none, np.nan), np.where(possible, some, np.nan)


def pass_pow_k(n: ArrayLike, c: ArrayLike, k: ArrayLike) -> Floats:
    """Unbiased pass^k of tasks with c successes in n trials.

    Parameters
    ----------
    n, c : array_like of int
        Trials and successes, 0 ≤ c ≤ n; broadcast together.
    k : array_like of int
        Attempts, ≥ 1.

    Returns
    -------
    ndarray of float
        C(c, k) / C(n, k); NaN where k > n.

    Raises
    ------
    InvalidArgument
        If counts are not whole numbers with 0 ≤ c ≤ n, or k is not an integer ≥ 1.

    References
    ----------
    Yao et al. (2024), tau-bench, arXiv:2406.12045.
    """
    trials, successes, ks = _counts(n, c, k)
    return _draw(trials, trials - successes, ks)[0]


def pass_at_k(n: ArrayLike, c: ArrayLike, k: ArrayLike) -> Floats:
    """Unbiased pass@k of tasks with c successes in n trials.

    Parameters
    ----------
    n, c, k : array_like of int
        As for `pass_pow_k`.

    Returns
    -------
    ndarray of float
        1 - C(n - c, k) / C(n, k); NaN where k > n.

    Raises
    ------
    InvalidArgument
        If counts are not whole numbers with 0 ≤ c ≤ n, or k is not an integer ≥ 1.

    References
    ----------
    Chen et al. (2021), Evaluating Large Language Models Trained on Code, arXiv:2107.03374.
    """
    trials, successes, ks = _counts(n, c, k)
    return _draw(trials, successes, ks)[1]


def plugin_pass_pow_k(p: ArrayLike, k: ArrayLike) -> Floats:
    """p^k, elementwise: pass^k of a task whose success probability is p.

    Parameters
    ----------
    p : array_like of float
        Success probabilities in [0, 1].
    k : array_like of int
        Attempts, ≥ 1.

    Returns
    -------
    ndarray of float
    """
    return np.asarray(np.power(numbers("p", p), attempts(k)))


def plugin_pass_at_k(p: ArrayLike, k: ArrayLike) -> Floats:
    """1 - (1 - p)^k, elementwise, without cancellation for small p.

    Parameters
    ----------
    p, k : array_like
        As for `plugin_pass_pow_k`.

    Returns
    -------
    ndarray of float
    """
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(attempts(k) * np.log1p(-numbers("p", p))))


def beta_pass_pow_k_mean(a: ArrayLike, b: ArrayLike, k: int) -> Floats:
    """Mean of p^k for p ~ Beta(a, b).

    Parameters
    ----------
    a, b : array_like of float
        Beta parameters, > 0; broadcast together.
    k : int
        Attempts, ≥ 1.

    Returns
    -------
    ndarray of float
        Π_{j<k} (a + j)/(a + b + j).
    """
    alpha, beta = np.broadcast_arrays(numbers("a", a), numbers("b", b))
    if attempts(k).ndim:
        raise InvalidArgument(f"k must be one integer ≥ 1, got {k!r}")
    if k > 1000:  # the ratio B(a + k, b)/B(a, b); the product is exact to rounding but long
        from scipy.special import betaln

        return np.asarray(np.exp(betaln(alpha + k, beta) - betaln(alpha, beta)))
    out: Floats = np.ones(alpha.shape)
    for j in range(k):
        out = out * ((alpha + j) / (alpha + beta + j))
    return out


def beta_pass_at_k_mean(a: ArrayLike, b: ArrayLike, k: int) -> Floats:
    """Mean of 1 - (1 - p)^k for p ~ Beta(a, b).

    Parameters
    ----------
    a, b, k : as for `beta_pass_pow_k_mean`
        Beta parameters and attempts.

    Returns
    -------
    ndarray of float
        1 - Π_{j<k} (b + j)/(a + b + j).
    """
    return 1.0 - beta_pass_pow_k_mean(b, a, k)
