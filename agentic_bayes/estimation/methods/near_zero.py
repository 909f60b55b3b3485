"""The default prior of ρ: mostly uniform, with a share of its mass near 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.numerics import Array

__all__ = ["NearZero"]

HALVINGS = 64  # of the range of log ρ: each quantile is found to the last digits


@dataclass(frozen=True)
class NearZero:
    """Prior of the intra-class correlation ρ: (1 - weight) Uniform(0, 1) + weight Beta(1, concentration).

    With a uniform prior alone, tasks that are nearly alike (ρ ≤ .03) are believed to differ more than they do. Like a
    frozen distribution of `scipy.stats` it has `logpdf`, `cdf`, `ppf`, `isf` and `rvs`.

    Attributes
    ----------
    weight : float
        Share of the mass near 0, from 0 to 1.
    concentration : float
        The larger, the nearer to 0: Beta(1, c) has mean 1/(1 + c). At least 1.

    Raises
    ------
    InvalidArgument
        If an attribute is outside what is allowed.

    Examples
    --------
    >>> float(NearZero().cdf(0.01).round(3))
    0.245
    """

    weight: float = 0.25
    concentration: float = 300.0

    def __post_init__(self) -> None:
        for name, low, high in (("weight", 0, 1), ("concentration", 1, float("inf"))):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
                allowed = "from 0 to 1" if high == 1 else "a number ≥ 1"
                raise InvalidArgument(f"{name} must be {allowed}, got {value!r}")

    def logpdf(self, rho: Array) -> Array:
        """Log density; -inf outside [0, 1]."""
        rho = np.asarray(rho, dtype=np.float64)
        near = self.weight * self.concentration * np.exp((self.concentration - 1) * _log_rest(rho))
        with np.errstate(divide="ignore"):
            return np.where((rho >= 0) & (rho <= 1), np.log(1 - self.weight + near), -np.inf)

    def cdf(self, rho: Array) -> Array:
        """P(at most ρ)."""
        rho = np.clip(np.asarray(rho, dtype=np.float64), 0, 1)
        return np.asarray((1 - self.weight) * rho - self.weight * np.expm1(self.concentration * _log_rest(rho)))

    def ppf(self, q: Array) -> Array:
        """Quantiles, by bisection of log ρ."""
        q = np.asarray(q, dtype=np.float64)
        low, high = np.full(q.shape, -745.0), np.zeros(q.shape)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            below = self.cdf(np.exp(middle)) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.exp((low + high) / 2)

    def isf(self, q: Array) -> Array:
        """Quantiles from the upper tail."""
        return self.ppf(1 - np.asarray(q, dtype=np.float64))

    def rvs(self, size: Any = None, random_state: Any = None) -> Array:
        """Random draws."""
        return self.ppf(np.random.default_rng(random_state).random(size))


def _log_rest(rho: Array) -> Array:
    """Log of 1 - ρ, finite at 1."""
    return np.asarray(np.log1p(-np.clip(rho, 0, 1 - 1e-16)))
