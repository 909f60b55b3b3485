"""Means over tasks that come in groups, with t intervals clustered by group: groups are the independent units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from agentic_bayes.estimation.distribution import Distribution, PointEstimate
from agentic_bayes.estimation.groups import Grouping
from agentic_bayes.formatting import plural
from agentic_bayes.numerics import Array


def clustered(values: Array, scored: Array, groups: Grouping, plain: Distribution) -> Distribution:
    """The plain mean over tasks with an interval clustered by group; the plain one where there is one group only."""
    known = scored & ~np.isnan(values)
    if np.unique(groups.place[known]).size < 2:
        return replace(plain, note=_joined(plain.note, f"one {groups.by} only: clustered by task"))
    found = weighted_mean(values, known / max(int(known.sum()), 1), groups)
    return replace(found, note=_joined(plain.note, found.note))


def weighted_mean(values: Array, weights: Array, groups: Grouping) -> PointEstimate:
    """A weighted mean over tasks, weights summing to 1, with a t interval clustered by group.

    Its variance is G/(G-1) Σ_g (Σ_{i in g} w_i (y_i - ȳ))², with G - 1 degrees of freedom (Cameron and Miller 2015,
    doi:10.3368/jhr.50.2.317). Where all values are 0, or all 1, it is as wide as Wilson's interval of G of G.
    """
    from scipy.special import stdtrit

    from agentic_bayes.numerics import wilson_interval

    used = weights > 0
    mean = float(values[used] @ weights[used])
    _, cluster = np.unique(groups.place[used], return_inverse=True)
    size = int(cluster.max(initial=0)) + 1
    sums = np.bincount(cluster, weights=weights[used] * (values[used] - mean), minlength=size)
    error = float(np.sqrt(size / (size - 1) * np.sum(sums**2))) if size > 1 else float("nan")

    def ends(confidence: float) -> tuple[float, float]:
        if size < 2:
            return 0.0, 1.0
        if np.ptp(values[used]) == 0 or error == 0:
            lower, upper = wilson_interval(mean * size, size, confidence)
            return float(lower), float(upper)
        half = -float(stdtrit(size - 1, (1 - confidence) / 2)) * error
        return max(0.0, mean - half), min(1.0, mean + half)

    note = f"clustered by {groups.by or 'weight'}: {plural(size, 'group')}"
    return PointEstimate(mean=min(max(mean, 0.0), 1.0), sd=error, ends=ends, n_tasks=int(used.sum()), note=note)


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))
