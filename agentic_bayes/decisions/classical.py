"""The frequentist test shown with a comparison: plain, and labelled."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.methods.frequentist import unbiased
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import Metric, equals, exact_percent, format_interval, format_number, plural
from agentic_bayes.numerics import Array


@dataclass(frozen=True)
class ClassicalTest:
    """A frequentist test of the same question, from the unbiased estimates of the tasks.

    References
    ----------
    McNemar (1947), Psychometrika 12, 153-157; Agresti and Min (2005), Stat. Med. 24, 729-740.
    """

    # ``paired t`` (differences of task values), ``McNemar`` (exact; every shared task tried once by both), ``Welch t``
    # (agents without shared tasks) or ``one-sample t`` (against a fixed value)
    name: str
    # Mean difference and its confidence interval, in units of probability; NaN where undefined. For McNemar's test the
    # interval is that of Agresti and Min (2005).
    difference: float
    lower: float
    upper: float
    p_value: float  # two-sided; NaN where undefined
    ci_prob: float  # of the interval
    n_tasks: int  # tasks that enter
    note: str = ""  # why something is undefined, or empty
    as_judged: bool = False  # whether it takes verdicts as they are where the estimate corrects the judge's errors

    def __str__(self) -> str:
        if math.isnan(self.difference):
            return f"{self.name}: {self.note}"
        interval = format_interval(self.lower, self.upper)
        extra = f" ({self.note})" if self.note else ""
        return (
            f"{self.name}: difference {format_number(self.difference)}, {exact_percent(self.ci_prob)} confidence "
            f"interval {interval}, p {equals(format_number(self.p_value))}, {plural(self.n_tasks, 'task')}{extra}"
        )

    def disagreement(self, *, is_decided: bool, estimand: Estimand) -> str:
        """Why the test may find a difference where a verdict does not, or none where it does; empty if they agree."""
        agree = math.isnan(self.p_value) or (self.p_value < 1 - self.ci_prob) == is_decided
        if agree or self.as_judged:  # then it answers another question
            return ""
        if estimand == "tasks":
            return "The verdict is about these tasks only, the test about tasks like these."
        why = "The test weighs all tasks alike; the model also weighs how often each was tried, and how hard it is"
        if self.name == "McNemar":
            why = "The test looks only at the tasks that exactly one of the two passed, and errs on the side of caution"
        return f"{why}. Treat the verdict as borderline."


def against_agent(counts: Counts, agent: int, baseline: int, metric: Metric, ci_prob: float) -> ClassicalTest:
    """Paired t on the shared tasks' values, McNemar where all were tried once, Welch's t where none is shared."""
    shared = counts.scored[agent] & counts.scored[baseline]
    trials = counts.trials[[agent, baseline]]
    if shared.any() and metric.k == 1 and np.all(trials[:, shared] == 1):
        return _mcnemar(counts.successes[agent, shared], counts.successes[baseline, shared], ci_prob)
    own, other = (unbiased(counts.trials[i], counts.successes[i], metric) for i in (agent, baseline))
    known = ~np.isnan(own) & ~np.isnan(other)
    if shared.any():
        return _t_test("paired t", own[known] - other[known], metric, ci_prob)
    return _welch(own[~np.isnan(own)], other[~np.isnan(other)], metric, ci_prob)


def against_value(counts: Counts, agent: int, value: float, metric: Metric, ci_prob: float) -> ClassicalTest:
    """One-sample t of the tasks' values against a fixed value; arguments as in `against_agent`."""
    values = unbiased(counts.trials[agent], counts.successes[agent], metric)
    return _t_test("one-sample t", values[~np.isnan(values)] - value, metric, ci_prob)


def _undefined(name: str, ci_prob: float, n_tasks: int, note: str, *, difference: float = math.nan) -> ClassicalTest:
    return ClassicalTest(name, difference, math.nan, math.nan, math.nan, ci_prob, n_tasks, note)


def _too_few(n_tasks: int, metric: Metric) -> str:
    return (
        f"{plural(n_tasks, 'task')} with {plural(metric.k, 'trial')} or more: a test of {metric} needs two such tasks"
    )


def _t_test(name: str, differences: Array, metric: Metric, ci_prob: float) -> ClassicalTest:
    size = differences.size
    if size < 2:
        return _undefined(name, ci_prob, size, _too_few(size, metric))
    mean = float(differences.mean())
    if np.ptp(differences) < 1e-12:
        return _undefined(name, ci_prob, size, "all tasks differ alike: no interval", difference=mean)
    return _tested(name, mean, float(differences.var(ddof=1)) / size, size - 1, ci_prob, size)


def _welch(own: Array, other: Array, metric: Metric, ci_prob: float) -> ClassicalTest:
    size = own.size + other.size
    if min(own.size, other.size) < 2:
        return _undefined("Welch t", ci_prob, size, _too_few(min(own.size, other.size), metric))
    mean = float(own.mean() - other.mean())
    if max(np.ptp(own), np.ptp(other)) < 1e-12:
        return _undefined("Welch t", ci_prob, size, "all tasks of an agent are alike", difference=mean)
    variances = [(float(one.var(ddof=1)) / one.size, one.size - 1) for one in (own, other)]
    variance = sum(part for part, _ in variances)
    freedom = variance**2 / sum(part**2 / df for part, df in variances)
    return _tested("Welch t", mean, variance, freedom, ci_prob, size)


def _tested(name: str, mean: float, variance: float, freedom: float, ci_prob: float, size: int) -> ClassicalTest:
    """By the t distribution, with so many degrees of freedom, of a mean with this variance."""
    from scipy.special import stdtr, stdtrit

    error = math.sqrt(variance)
    half = float(stdtrit(freedom, (1 + ci_prob) / 2)) * error
    lower, upper, p_value = max(mean - half, -1.0), min(mean + half, 1.0), 2 * float(stdtr(freedom, -abs(mean / error)))
    return ClassicalTest(name, mean, lower, upper, p_value, ci_prob, size)


def _mcnemar(own: Array, other: Array, ci_prob: float) -> ClassicalTest:
    from scipy.special import bdtr, ndtri

    won, lost, size = int(((own == 1) & (other == 0)).sum()), int(((own == 0) & (other == 1)).sum()), own.size
    p_value = min(2 * float(bdtr(min(won, lost), won + lost, 0.5)), 1.0) if won + lost else 1.0
    # Wald's interval after half an observation is added to each of the four cells
    b, c, n = won + 0.5, lost + 0.5, size + 2
    half = -float(ndtri((1 - ci_prob) / 2)) * math.sqrt((b + c) / n - ((b - c) / n) ** 2) / math.sqrt(n)
    lower, upper = max((b - c) / n - half, -1.0), min((b - c) / n + half, 1.0)
    note = f"{won} passed by the agent only, {lost} by the baseline only"
    if p_value >= 1 - ci_prob and (lower > 0 or upper < 0):
        note += "; the exact test is more cautious than the interval"
    return ClassicalTest("McNemar", (won - lost) / size, lower, upper, p_value, ci_prob, size, note)
