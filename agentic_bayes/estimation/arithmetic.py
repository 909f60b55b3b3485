"""Metrics of success probabilities: their value, their moments given Beta parameters, and their mean over tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agentic_bayes import numerics
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array

# groups of equal (c, n) above this size contribute to a mean over tasks as a normal with exact moments
LARGE_GROUP = 100
MULTIPLIED = 16  # further attempts up to which a power is a product


def apply_metric(p: Array, metric: Metric) -> Array:
    """pass@k or pass^k of success probabilities; monotone increasing in p."""
    return numerics.plugin_pass_pow_k(p, metric.k) if metric.power else numerics.plugin_pass_at_k(p, metric.k)


def sums_of_metrics(
    p: Array, metrics: Sequence[Metric], axis: int = -1, weight: Array | None = None
) -> dict[Metric, Array]:
    """Every metric summed over an axis; by multiplication, which between near k is much faster than a power.

    With weights, of shape (tasks,), over the last axis.
    """
    whole = p.shape[axis] if weight is None else weight.sum()
    found: dict[Metric, Array] = {}
    for power in (True, False):
        own = {metric.k: metric for metric in metrics if metric.power == power}
        if not own:
            continue
        base = p if power else 1 - p
        product, done = base, 1
        for k in sorted(own):
            if k - done > MULTIPLIED:
                product = np.power(base, k)
            else:
                for _ in range(done, k):
                    product = np.multiply(product, base, out=None if product is base else product)
            done, total = k, product.sum(axis=axis) if weight is None else product @ weight
            found[own[k]] = total if power else whole - total
    return found


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
    sums = {metric: np.zeros(count) for metric in metrics}
    for group, size in enumerate(sizes):
        alpha, beta = a[:, group], b[:, group]
        if size > LARGE_GROUP:
            z = rng.standard_normal(count)
            for metric in metrics:
                moved = mean_of_metric(alpha, beta, metric) * size
                moved += z * np.sqrt(size) * sd_of_metric(alpha, beta, metric)
                sums[metric] += np.clip(moved, 0, size)
        else:
            p = rng.beta(alpha, beta, size=(int(size), count))
            for metric, own in sums_of_metrics(p, metrics, axis=0).items():
                sums[metric] += own
    return [sums[metric] / total for metric in metrics]
