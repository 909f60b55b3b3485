"""Means of scores over tasks, each task counting once, with intervals that tasks or groups of tasks cluster."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from agentic_bayes import numerics
from agentic_bayes.evidence.row import EvidenceRow
from agentic_bayes.evidence.score import Score
from agentic_bayes.numerics import Array

ScoreOf = Callable[[EvidenceRow], float | None]


def score_of(name: str) -> ScoreOf:
    """What reads a score off a row: ``answer``, ``tools``, or a metric of this name."""
    if name in ("answer", "tools"):
        field = "answer_score" if name == "answer" else "tool_overall"
        return lambda row: getattr(row, field)

    def of_metric(row: EvidenceRow) -> float | None:
        grade = row.metrics.get(name)
        return grade.value if isinstance(grade, Score) else None

    return of_metric


def task_means(rows: Iterable[EvidenceRow], score: ScoreOf) -> dict[str, dict[str, float]]:
    """Agent → task → mean over the task's scored interactions; tasks without a score are left out."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        value = score(row)
        if value is not None:
            found[row.agent][row.task].append(value)
    return {agent: {task: sum(own) / len(own) for task, own in tasks.items()} for agent, tasks in found.items()}


def mean_interval(
    tasks: Mapping[str, float], groups: Mapping[str, str] | None, ci_prob: float, *, low: float = 0.0
) -> tuple[float, float, float]:
    """Mean and t interval of one value per task, on a scale from `low` to 1; clustered by group where there are some.

    With groups the standard error is that of a mean of T values in G clusters, √(G/(G-1) Σ_g (Σ_i (x_i - x̄))²)/T,
    with G - 1 degrees of freedom.
    """
    values = np.array(list(tasks.values()), dtype=np.float64)
    if values.size == 0:
        return math.nan, math.nan, math.nan
    mean = float(values.mean())
    if groups is None or np.ptp(values) == 0:
        ends = numerics.t_interval((values - low) / (1 - low), ci_prob)
    else:
        ends = _by_group((values - low) / (1 - low), [groups[task] for task in tasks], ci_prob)
    lower, upper = (low + (1 - low) * end for end in ends)
    return mean, lower, upper


def _by_group(values: Array, labels: list[str], ci_prob: float) -> tuple[float, float]:
    from scipy.special import stdtrit

    names, place = np.unique(labels, return_inverse=True)
    if names.size < 2:
        return 0.0, 1.0
    mean = float(values.mean())
    sums = np.bincount(place, weights=values - mean, minlength=names.size)
    error = math.sqrt(names.size / (names.size - 1) * float(np.sum(sums**2))) / values.size
    half = -float(stdtrit(names.size - 1, (1 - ci_prob) / 2)) * error
    return max(0.0, mean - half), min(1.0, mean + half)
