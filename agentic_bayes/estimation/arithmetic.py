"""Metrics of success probabilities: their value, their moments given Beta parameters, and their mean over tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agentic_bayes import numerics
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array

# groups of equal (c, n) above this size contribute to a mean over tasks as a normal with exact moments
LARGE_GROUP = 100
MULTIPLIED = 16  # attempts up to which powers are products


def apply_metric(p: Array, metric: Metric) -> Array:
    """pass@k or pass^k of success probabilities; monotone increasing in p."""
    return numerics.plugin_pass_pow_k(p, metric.k) if metric.power else numerics.plugin_pass_at_k(p, metric.k)


def sum_of_metric(p: Array, metric: Metric) -> Array:
    """The metric summed over the last axis; by multiplication, which for few attempts is much faster than a power."""
    if metric.k > MULTIPLIED:
        return np.asarray(apply_metric(p, metric).sum(axis=-1))
    base = p if metric.power else 1 - p
    product = base
    for _ in range(1, metric.k):
        product = product * base
    total = product.sum(axis=-1)
    return np.asarray(total if metric.power else p.shape[-1] - total)


def mean_of_metric(a: Array, b: Array, metric: Metric) -> Array:
    """E f(p) for p ~ Beta(a, b)."""
    mean = numerics.beta_pass_pow_k_mean if metric.power else numerics.beta_pass_at_k_mean
    return mean(a, b, metric.k)


def metric_tail(a: Array, b: Array, metric: Metric) -> tuple[Array, Array]:
    """First and second moment of t = p^k (pass^k) or t = (1-p)^k (pass@k = 1 - t) for p ~ Beta(a, b)."""
    if not metric.power:
        a, b = b, a
    return numerics.beta_pass_pow_k_mean(a, b, metric.k), numerics.beta_pass_pow_k_mean(a, b, 2 * metric.k)


def sd_of_metric(a: Array, b: Array, metric: Metric) -> Array:
    """Standard deviation of f(p) for p ~ Beta(a, b)."""
    first, second = metric_tail(a, b, metric)
    return np.asarray(np.sqrt(np.clip(second - first**2, 0, None)))


def mean_over_tasks(
    a: Array, b: Array, sizes: Array, metrics: Sequence[Metric], rng: np.random.Generator
) -> list[Array]:
    """Draws of the mean over tasks of f(p), tasks grouped by equal Beta parameters."""
    count, total = a.shape[0], int(sizes.sum())
    sums = [np.zeros(count) for _ in metrics]
    for group, size in enumerate(sizes):
        alpha, beta = a[:, group], b[:, group]
        if size > LARGE_GROUP:
            z = rng.standard_normal(count)
            for i, metric in enumerate(metrics):
                moved = mean_of_metric(alpha, beta, metric) * size
                moved += z * np.sqrt(size) * sd_of_metric(alpha, beta, metric)
                sums[i] += np.clip(moved, 0, size)
        else:
            p = rng.beta(alpha, beta, size=(int(size), count))
            for i, metric in enumerate(metrics):
                sums[i] += apply_metric(p, metric).sum(axis=0)
    return [s / total for s in sums]
