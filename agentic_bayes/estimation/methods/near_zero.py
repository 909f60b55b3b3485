"""The default prior of ρ: mostly uniform, with a share of its mass near 0."""

from __future__ import annotations

from collections.abc import Callable
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

    With a uniform prior alone, tasks that are nearly alike (ρ ≤ .03) are believed to differ more than they do.

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

    def _tail(self, rho: Array, power: float) -> Array:
        """(1 - ρ)^power."""
        with np.errstate(divide="ignore"):
            return np.exp(power * np.log1p(-np.clip(rho, 0, 1))) if power else np.ones_like(rho)

    def logpdf(self, rho: Array) -> Array:
        """Log density; -inf outside [0, 1]."""
        rho = np.asarray(rho, dtype=np.float64)
        density = 1 - self.weight + self.weight * self.concentration * self._tail(rho, self.concentration - 1)
        with np.errstate(divide="ignore"):
            return np.where((rho >= 0) & (rho <= 1), np.log(density), -np.inf)

    def cdf(self, rho: Array) -> Array:
        """P(at most ρ)."""
        rho = np.clip(np.asarray(rho, dtype=np.float64), 0, 1)
        with np.errstate(divide="ignore"):
            near = -np.expm1(self.concentration * np.log1p(-rho))
        return (1 - self.weight) * rho + self.weight * near

    def sf(self, rho: Array) -> Array:
        """P(more than ρ)."""
        rho = np.clip(np.asarray(rho, dtype=np.float64), 0, 1)
        return (1 - self.weight) * (1 - rho) + self.weight * self._tail(rho, self.concentration)

    def ppf(self, q: Array) -> Array:
        """Quantiles."""
        return self._inverse(self.cdf, np.asarray(q, dtype=np.float64))

    def isf(self, q: Array) -> Array:
        """Quantiles from the upper tail."""
        return self._inverse(lambda rho: -self.sf(rho), -np.asarray(q, dtype=np.float64))

    def rvs(self, size: Any = None, random_state: Any = None) -> Array:
        """Random draws."""
        return self.ppf(np.random.default_rng(random_state).random(size))

    def _inverse(self, rising: Callable[[Array], Array], wanted: Array) -> Array:
        """Where a rising function of ρ reaches the wanted values, by bisection of log ρ."""
        low, high = np.full(wanted.shape, -745.0), np.zeros(wanted.shape)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            below = rising(np.exp(middle)) < wanted
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.exp((low + high) / 2)
