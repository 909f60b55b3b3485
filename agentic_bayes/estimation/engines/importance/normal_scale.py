"""Parameters on the scale where their prior is a standard normal: no tail is heavier there, and none has an end."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from agentic_bayes.numerics import Array

FARTHEST = 8.0  # beyond ±8 nothing but the prior changes
NODES = 4001
STEP = 2 * FARTHEST / (NODES - 1)


@dataclass(frozen=True, eq=False)
class NormalScale:
    """A prior's quantile function of z ~ N(0, 1), tabulated: the parameter, or its logit where that is in (0, 1)."""

    table: Array  # shape (NODES,); at z from -FARTHEST to FARTHEST

    def __call__(self, z: Array) -> tuple[Array, Array]:
        """The tabulated quantity and its slope."""
        place = (np.clip(z, -FARTHEST, FARTHEST) + FARTHEST) / STEP
        node = np.minimum(place.astype(np.int64), NODES - 2)
        rise = self.table[node + 1] - self.table[node]
        return self.table[node] + (place - node) * rise, rise / STEP

    def log_density_of_score(self, z: Array) -> tuple[Array, Array]:
        """Log density, up to a constant, of the quantity at its normal score z; and its slope in z."""
        place = (np.clip(z, -FARTHEST, FARTHEST) + FARTHEST) / STEP
        node = np.minimum(place.astype(np.int64), NODES - 2)
        start, rise = self._log_densities[node], np.diff(self._log_densities)[node]
        return start + (place - node) * rise, rise / STEP

    def log_density(self, values: Array) -> Array:
        """Log density of the quantity, up to the same constant; beyond the table straight on."""
        return np.asarray(np.interp(values, self.table, self._log_densities))

    @cached_property
    def _log_densities(self) -> Array:
        z = z_nodes()
        return np.asarray(-0.5 * z**2 - np.log(np.maximum(np.gradient(self.table, STEP), 1e-300)))


def z_nodes() -> Array:
    """The nodes of every table."""
    return np.linspace(-FARTHEST, FARTHEST, NODES)


@lru_cache(maxsize=1)
def logistic() -> NormalScale:
    """Logistic(0, 1)."""
    from scipy.special import log_ndtr

    z = z_nodes()
    return NormalScale(log_ndtr(z) - log_ndtr(-z))


@lru_cache(maxsize=4)
def half_normal(scale: float) -> NormalScale:
    """HalfNormal(scale)."""
    from scipy.special import ndtr, ndtri

    return NormalScale(-scale * ndtri(ndtr(-z_nodes()) / 2))


@lru_cache(maxsize=1)
def rising() -> NormalScale:
    """The logit of a rate that is Beta(2, 1): its distribution function is the square."""
    from scipy.special import log_ndtr

    log_rate = log_ndtr(z_nodes()) / 2
    return NormalScale(log_rate - np.log(-np.expm1(log_rate)))


def standard_normal() -> NormalScale:
    """N(0, 1) itself."""
    return NormalScale(z_nodes())


def of_distribution(frozen: Any, *, unit: bool = False) -> NormalScale:
    """A frozen distribution of `scipy.stats`; with `unit` the logit of a parameter in (0, 1)."""
    return (_remembered if isinstance(frozen, Hashable) else _tabulated)(frozen, unit)


@lru_cache(maxsize=8)
def _remembered(frozen: Any, unit: bool) -> NormalScale:
    return _tabulated(frozen, unit)


def _tabulated(frozen: Any, unit: bool) -> NormalScale:
    from scipy.special import ndtr

    z = z_nodes()
    below = z < 0  # each side from its own tail, which keeps the digits
    values = np.where(below, frozen.ppf(ndtr(z)), frozen.isf(ndtr(-z)))
    if not unit:
        return NormalScale(values)
    inside = np.clip(values, 1e-15, 1 - 1e-15)
    return NormalScale(np.log(inside) - np.log1p(-inside))
