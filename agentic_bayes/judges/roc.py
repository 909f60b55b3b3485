"""How well scores tell two classes apart, on plain arrays: ROC, area under it, best threshold, reliability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Roc", "auc_interval", "auc_standard_error", "reliability", "roc"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Roc:
    """Shares of passes at every threshold, and how well the scores order the two classes."""

    thresholds: Floats  # shape (points,); falling from infinity, where nothing passes, through every score that occurs
    sensitivity: Floats  # shape (points,); share of the positives with a score of at least the threshold
    false_pass_rate: Floats  # shape (points,); share of the negatives with such a score: 1 - specificity
    auc: float  # P(score of a positive > score of a negative) + P(equal)/2

    @property
    def youden(self) -> Floats:
        """J = sensitivity + specificity - 1 at every threshold."""
        return self.sensitivity - self.false_pass_rate


def roc(scores: Floats, positive: NDArray[np.bool_]) -> Roc:
    """The ROC of scores."""
    distinct, place = np.unique(scores, return_inverse=True)
    shares = []
    for truth in (positive, ~positive):
        counts = np.bincount(place[truth], minlength=len(distinct)).astype(np.float64)
        at_least = np.concatenate([[0.0], np.cumsum(counts[::-1])])
        shares.append(at_least / counts.sum() if counts.sum() else np.full(len(at_least), np.nan))
    sensitivity, false = shares
    area = float(np.sum(np.diff(false) * (sensitivity[1:] + sensitivity[:-1]) / 2))
    return Roc(np.concatenate([[np.inf], distinct[::-1]]), sensitivity, false, area)


def _auc_variance(area: Floats | float, positives: int, negatives: int, further: tuple[float, float]) -> Floats:
    """Hanley and McNeil's variance; `further` are the numbers of other positives and of other negatives."""
    two_positives, two_negatives = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area) + further[0] * (two_positives - area**2) + further[1] * (two_negatives - area**2)
    return np.asarray(variance / (positives * negatives), dtype=np.float64)


def auc_standard_error(area: float, positives: int, negatives: int) -> float:
    """Standard error of the area under the ROC.

    References
    ----------
    Hanley and McNeil (1982), Radiology 143, 29-36, doi:10.1148/radiology.143.1.7063747.
    """
    return float(np.sqrt(_auc_variance(area, positives, negatives, (positives - 1, negatives - 1))))


def auc_interval(area: float, positives: int, negatives: int, ci_prob: float = 0.95) -> tuple[float, float]:
    """Score interval of the area under the ROC: the areas that the observed one does not contradict.

    References
    ----------
    Newcombe (2006), Stat. Med. 25, 559-573, doi:10.1002/sim.2324 (method 5).
    """
    if not positives or not negatives:
        return float("nan"), float("nan")
    from scipy.optimize import brentq
    from scipy.special import ndtri

    z = -float(ndtri((1 - ci_prob) / 2))
    further = (positives + negatives) / 2 - 1

    def excess(candidate: float) -> float:
        return abs(candidate - area) - z * float(
            np.sqrt(_auc_variance(candidate, positives, negatives, (further, further)))
        )

    beside = 1e-12  # at the ends themselves the variance is 0
    lower = 0.0 if area <= beside else float(brentq(excess, 0.0, min(area, 1 - beside)))
    upper = 1.0 if area >= 1 - beside else float(brentq(excess, max(area, beside), 1.0))
    return lower, upper


def reliability(scores: Floats, positive: NDArray[np.bool_], bins: int) -> dict[str, Floats]:
    """Share of positives among items of similar score."""
    # 0.3 * 10 is below 3: the borders themselves decide
    borders = np.arange(bins + 1) / bins
    place = np.clip(np.searchsorted(borders, scores, side="right") - 1, 0, bins - 1)
    items = np.bincount(place, minlength=bins)
    some = items > 0
    return {
        "from": borders[:-1][some],
        "to": borders[1:][some],
        "items": items[some].astype(np.float64),
        "mean_score": np.bincount(place, weights=scores, minlength=bins)[some] / items[some],
        "positives": np.bincount(place[positive], minlength=bins)[some].astype(np.float64),
    }
