"""Pareto-smoothed importance weights."""

from __future__ import annotations

import numpy as np

from agentic_bayes.numerics import Array


def smoothed(log_weight: Array) -> tuple[Array, float]:
    """Pareto-smoothed log weights and the shape k of their tail.

    References
    ----------
    Vehtari et al. (2024), JMLR 25(72); Zhang and Stephens (2009), Technometrics 51, 316-325.
    """
    shifted = log_weight - log_weight.max()
    count = min(shifted.size // 5, int(np.ceil(3 * np.sqrt(shifted.size))))
    below, lowest = np.partition(shifted, (-count - 1, -count))[[-count - 1, -count]]
    tail = np.flatnonzero(shifted >= lowest)  # more than `count` where values are equal
    tail = tail[np.argsort(shifted[tail], kind="stable")][-count:]
    cutoff = np.exp(below)
    excess = np.exp(shifted[tail]) - cutoff
    if excess[-1] <= 1e-300:  # all weights are equal
        return shifted, 0.0
    k, scale = _generalised_pareto(np.maximum(excess, 1e-300))
    p = (np.arange(count) + 0.5) / count
    with np.errstate(over="ignore"):  # where few values differ, k may be huge; no weight exceeds the largest
        quantiles = scale * (np.expm1(-k * np.log1p(-p)) / k if abs(k) > 1e-8 else -np.log1p(-p))
    out = shifted.copy()
    out[tail] = np.minimum(np.log(cutoff + quantiles), 0.0)
    return out, float(k)


def _generalised_pareto(x: Array) -> tuple[float, float]:
    """Shape and scale of a generalised Pareto distribution fitted to sorted excesses (Zhang and Stephens 2009)."""
    n = x.size
    grid = 30 + int(np.sqrt(n))
    b = 1 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))
    b = b / (3 * x[int(n / 4 + 0.5) - 1]) + 1 / x[-1]
    shape = np.log1p(-b[:, None] * x).mean(axis=1)
    profile = n * (np.log(-b / shape) - shape - 1)
    with np.errstate(over="ignore"):  # a shape that fits that badly has no weight
        weight = 1 / np.exp(profile - profile[:, None]).sum(axis=1)
    mean = float(np.sum(b * weight) / weight.sum())
    k = float(np.log1p(-mean * x).mean())
    scale = -k / mean
    # a weak prior keeps k from running away where the tail is short
    return (n * k + 10 * 0.5) / (n + 10), scale
