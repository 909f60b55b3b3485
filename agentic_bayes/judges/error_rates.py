"""Shares such as a judge's sensitivity, with intervals, and how many labels make these narrow."""

from __future__ import annotations

import math
from dataclasses import dataclass

from agentic_bayes.checks import check_probability
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.formatting import format_interval, format_number
from agentic_bayes.numerics import beta_quantile, wilson_interval

__all__ = ["PRIOR", "Share", "labels_for_width", "labels_needed"]

# a judge that is right about more than half is likelier than one that is not
PRIOR = (2.0, 1.0)
MOST_LABELS = 10_000_000


@dataclass(frozen=True, slots=True)
class Share:
    """A share with two intervals."""

    successes: int  # of how many, how many
    total: int
    value: float  # successes / total; NaN where total is 0
    mean: float  # of the Beta(2 + successes, 1 + failures) posterior: mean and equal-tailed interval
    lower: float
    upper: float
    wilson_lower: float  # wilson's interval, which has no prior
    wilson_upper: float

    @classmethod
    def of(cls, successes: int, total: int, ci_prob: float) -> Share:
        """The share of so many of so many."""
        a, b = PRIOR[0] + successes, PRIOR[1] + total - successes
        lower, upper = beta_quantile([(1 - ci_prob) / 2, (1 + ci_prob) / 2], a, b)
        low, high = wilson_interval(successes, total, ci_prob)
        value = successes / total if total else math.nan
        return cls(successes, total, value, a / (a + b), float(lower), float(upper), float(low), float(high))

    def __str__(self) -> str:
        return (
            f"{format_number(self.value)} {format_interval(self.lower, self.upper)} "
            f"({self.successes:,} of {self.total:,})"
        )


def labels_needed(
    width: float,
    *,
    rate: float = 0.9,
    share: float = 0.5,
    ci_prob: float = 0.95,
) -> int:
    """How many labels make the interval of a judge's sensitivity or specificity this narrow.

    Parameters
    ----------
    width : float
        Of the Beta interval, in (0, 1).
    rate : float
        The sensitivity (or specificity) to expect, in [0, 1].
    share : float
        The share of attempts that tell of it, in (0, 1]: those that are right for sensitivity, those that are wrong for
        specificity.
    ci_prob : float
        Probability of the interval, in (0, 1).

    Returns
    -------
    int
        Labels of attempts drawn at random.

    Examples
    --------
    >>> labels_needed(0.2, rate=0.9, share=0.5)
    70
    """
    check_probability(rate, "rate")
    check_probability(share, "share")
    check_probability(ci_prob, "ci_prob", open_ends=True)
    if share == 0:
        raise InvalidArgument("share must be above 0: without such attempts no number of labels tells of the rate")
    return math.ceil(labels_for_width(width, *PRIOR, rate, ci_prob) / share)


def labels_for_width(width: float, a: float, b: float, rate: float, ci_prob: float) -> int:
    """The fewest further labels after which a Beta(a, b) interval is this narrow, if `rate` of them succeed."""
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
