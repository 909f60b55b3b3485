"""Computes on plain arrays how well scores separate two classes: ROC, area under it, reliability."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentic_bayes.numerics import Floats


@dataclass(frozen=True)
class Roc:
    """Shares of passes at every threshold, and how well the scores order the two classes."""

    thresholds: Floats  # shape (points,); infinity, where nothing passes, then every score that occurs, falling
    sensitivity: Floats  # shape (points,); share of the positives with a score of at least the threshold
    false_pass_rate: Floats  # shape (points,); share of the negatives with such a score: 1 - specificity
    auc: float  # P(score of a positive > score of a negative) + P(equal)/2

    @property
    def youden(self) -> Floats:
        """J = sensitivity + specificity - 1 at every threshold."""
        return self.sensitivity - self.false_pass_rate


def roc(scores: Floats, positive: NDArray[np.bool_]) -> Roc:
    """The ROC of scores."""
    distinct, index = np.unique(scores, return_inverse=True)
    shares = []
    for truth in (positive, ~positive):
        counts = np.bincount(index[truth], minlength=len(distinct)).astype(np.float64)
        at_least = np.concatenate([[0.0], np.cumsum(counts[::-1])])
        shares.append(at_least / counts.sum() if counts.sum() else np.full(len(at_least), np.nan))
    sensitivity, false = shares
    area = float(np.sum(np.diff(false) * (sensitivity[1:] + sensitivity[:-1]) / 2))
    return Roc(np.concatenate([[np.inf], distinct[::-1]]), sensitivity, false, area)


def auc_variance(area: float, positives: int, negatives: int, further: tuple[float, float]) -> float:
    """Variance of the area (Hanley and McNeil, 1982, doi:10.1148/radiology.143.1.7063747).

    `further` are the numbers of other positives and of other negatives.
    """
    two_positives, two_negatives = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area) + further[0] * (two_positives - area**2) + further[1] * (two_negatives - area**2)
    return max(variance, 0.0) / (positives * negatives)


def auc_interval(area: float, positives: int, negatives: int, ci_prob: float = 0.95) -> tuple[float, float]:
    """All areas compatible with the observed one (Newcombe, 2006, method 5, doi:10.1002/sim.2324)."""
    if not positives or not negatives:
        return math.nan, math.nan
    from scipy.optimize import brentq
    from scipy.special import ndtri

    z = -float(ndtri((1 - ci_prob) / 2))
    further = (positives + negatives) / 2 - 1

    def excess(candidate: float) -> float:
        return abs(candidate - area) - z * math.sqrt(auc_variance(candidate, positives, negatives, (further, further)))

    margin = 1e-12  # the variance is 0 at the ends themselves
    lower = 0.0 if area <= margin else float(brentq(excess, 0.0, min(area, 1 - margin)))
    upper = 1.0 if area >= 1 - margin else float(brentq(excess, max(area, margin), 1.0))
    return lower, upper


def reliability(scores: Floats, positive: NDArray[np.bool_], bins: int) -> dict[str, Floats]:
    """Share of positives among items of similar score."""
    # compare with the borders themselves: 0.3 * 10 is below 3
    borders = np.arange(bins + 1) / bins
    bin_of = np.clip(np.searchsorted(borders, scores, side="right") - 1, 0, bins - 1)
    items = np.bincount(bin_of, minlength=bins)
    some = items > 0
    return {
        "from": borders[:-1][some],
        "to": borders[1:][some],
        "items": items[some].astype(np.float64),
        "mean_score": np.bincount(bin_of, weights=scores, minlength=bins)[some] / items[some],
        "positives": np.bincount(bin_of[positive], minlength=bins)[some].astype(np.float64),
    }
