"""A judge's error rates with intervals, and the number of labels that makes the intervals narrow."""

from __future__ import annotations

import math
from dataclasses import dataclass

from agentic_bayes.checks import check_probability
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.formatting import format_interval, format_number
from agentic_bayes.numerics import beta_quantile, wilson_interval

__all__ = ["Proportion", "labels_needed"]

PRIOR = (2.0, 1.0)  # Beta prior of a rate, which leans towards a judge that is right
MOST_LABELS = 10_000_000


@dataclass(frozen=True, slots=True)
class Proportion:
    """A proportion with two intervals.

    Attributes
    ----------
    successes, total : int
        The counts behind it.
    value : float
        successes / total; NaN if total is 0.
    mean, lower, upper : float
        Mean and equal-tailed interval of the Beta(2 + successes, 1 + failures) posterior.
    wilson_lower, wilson_upper : float
        Wilson's interval, which has no prior.
    """

    successes: int
    total: int
    value: float
    mean: float
    lower: float
    upper: float
    wilson_lower: float
    wilson_upper: float

    @classmethod
    def of(cls, successes: int, total: int, ci_prob: float) -> Proportion:
        """The proportion for these counts.

        Parameters
        ----------
        successes, total : int
            The counts.
        ci_prob : float
            Probability of both intervals, in (0, 1).

        Returns
        -------
        Proportion
        """
        a, b = PRIOR[0] + successes, PRIOR[1] + total - successes
        lower, upper = beta_quantile([(1 - ci_prob) / 2, (1 + ci_prob) / 2], a, b)
        low, high = wilson_interval(successes, total, ci_prob)
        value = successes / total if total else math.nan
        return cls(successes, total, value, a / (a + b), float(lower), float(upper), float(low), float(high))

    def __str__(self) -> str:
        return (
            f"{format_number(self.mean)} {format_interval(self.lower, self.upper)} "
            f"({self.successes:,} of {self.total:,})"
        )


def labels_needed(width: float, *, rate: float = 0.9, share: float = 0.5, ci_prob: float = 0.95) -> int:
    """Number of labels that makes the interval of a judge's sensitivity or specificity this narrow.

    Parameters
    ----------
    width : float
        Width of the Beta interval, in (0, 1).
    rate : float
        The sensitivity (or specificity) you expect, in [0, 1].
    share : float
        The share of attempts that inform the rate, in (0, 1]: right attempts for sensitivity, wrong ones for
        specificity.
    ci_prob : float
        Probability of the interval, in (0, 1).

    Returns
    -------
    int
        Labels, of attempts drawn at random.

    Examples
    --------
    >>> labels_needed(0.2, rate=0.9, share=0.5)
    70
    """
    check_probability(rate, "rate")
    check_probability(share, "share")
    check_probability(ci_prob, "ci_prob", open_ends=True)
    if share == 0:
        raise InvalidArgument("share must be above 0: without such attempts no number of labels informs the rate")
    return math.ceil(labels_for_width(width, *PRIOR, rate, ci_prob) / share)


def labels_for_width(width: float, a: float, b: float, rate: float, ci_prob: float) -> int:
    """The fewest further labels that make a Beta(a, b) interval this narrow if a share `rate` of them succeeds."""
    check_probability(width, "width", open_ends=True)

    def narrow(more: int) -> bool:
        ends = beta_quantile([(1 - ci_prob) / 2, (1 + ci_prob) / 2], a + more * rate, b + more * (1 - rate))
        return bool(ends[1] - ends[0] <= width)

    low, high = -1, 0
    while not narrow(high):
        low, high = high, 2 * high + 1
        if high > MOST_LABELS:
            raise InvalidArgument(f"width must be reachable with {MOST_LABELS:,} labels, got {width!r}")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if narrow(middle) else (middle, high)
    return high
