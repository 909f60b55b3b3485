"""Grids: nodes of θ = logit μ and of ρ, where they must lie, and log densities on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.methods.near_zero import NearZero
from agentic_bayes.estimation.methods.options import Hierarchical, LogDensity
from agentic_bayes.numerics import Array

NEGLIGIBLE = 30.0  # log density below its maximum at which a grid may end: e^-30 ≈ 1e-13
FARTHEST = 60.0  # |logit μ| that is ever looked at
LOG_KAPPA_RANGE = (-30.0, 30.0)
Range = tuple[float, float]


def softplus(x: Array) -> Array:
    """log(1 + e^x): -softplus(-θ) is log μ and -softplus(θ) is log(1 - μ)."""
    return np.logaddexp(0.0, x)


def logsumexp(values: Array, axis: int | None = None) -> Array:
    """Log of the sum of exponentials along an axis; -inf where all are -inf."""
    top = np.max(values, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        out = np.log(np.sum(np.exp(values - top), axis=axis, keepdims=True)) + top
    return np.asarray(out.reshape(()) if axis is None else np.squeeze(out, axis=axis))


def log_logistic(theta: Array) -> Array:
    """Log density of Logistic(0, 1): the uniform prior of μ on the logit scale."""
    return -softplus(theta) - softplus(-theta)


@dataclass(frozen=True)
class Axis:
    """Nodes of the trapezoid rule in x, θ = centre + scale·sinh(x)."""

    centre: float  # θ_i = centre + scale·sinh(start + i·step)
    scale: float
    start: float
    step: float
    size: int  # number of nodes

    @classmethod
    def over(cls, low: float, high: float, centre: float, scale: float, *, step: float) -> Axis:
        """The nodes from `low` to `high`, at most `step` apart in x; mirrored ends give mirrored nodes."""
        start, end = np.arcsinh((low - centre) / scale), np.arcsinh((high - centre) / scale)
        size = int(np.ceil((end - start) / step - 1e-9)) + 1
        size = max(size, 33)
        return cls(centre, scale, float(start), float((end - start) / (size - 1)), size)

    @cached_property
    def x(self) -> Array:
        """Nodes in x; counted from the middle so that mirrored axes agree to the last bit."""
        half = (self.size - 1) / 2
        return (self.start + self.step * half) + self.step * (np.arange(self.size) - half)

    @cached_property
    def theta(self) -> Array:
        """Nodes in θ."""
        return self.centre + self.scale * np.sinh(self.x)

    @cached_property
    def spacing(self) -> Array:
        """dθ of each node: the trapezoid weight (the integrand vanishes at both ends)."""
        return self.step * self.scale * np.cosh(self.x)

    def spacing_at(self, theta: Array) -> Array:
        """dθ at any θ."""
        return self.step * np.hypot(self.scale, theta - self.centre)

    def near(self, node: Array, jitter: Array) -> Array:
        """θ at these nodes, moved by shares of the step."""
        return np.asarray(self.centre + self.scale * np.sinh(self.x[node] + self.step * jitter))

    def nearest(self, theta: Array) -> Array:
        """The nodes nearest to any θ."""
        x = np.arcsinh((theta - self.centre) / self.scale)
        return np.asarray(np.clip(np.round((x - self.x[0]) / self.step).astype(int), 0, self.size - 1))


Ends = tuple[Array, Array]  # values at the lower and at the upper end of each cell


def node_slopes(values: Array) -> Array:
    """Slopes by node number of a smooth function at uniform nodes, along the first axis, to fourth order."""
    slopes = np.empty(values.shape)
    slopes[2:-2] = (values[:-4] - values[4:] + 8 * (values[3:-1] - values[1:-3])) / 12
    for sign, v in ((1, values[:5]), (-1, values[:-6:-1])):
        ends = slice(0, 2) if sign > 0 else slice(-1, -3, -1)
        first = (-25 * v[0] + 48 * v[1] - 36 * v[2] + 16 * v[3] - 3 * v[4]) / 12
        second = (-3 * v[0] - 10 * v[1] + 18 * v[2] - 6 * v[3] + v[4]) / 12
        slopes[ends] = sign * np.stack([first, second])
    return slopes


def hermite(x: Ends, y: Ends, slopes: Ends, at: Array) -> tuple[Array, Array]:
    """The cubic through both ends of each cell with these slopes, and its derivative, at points inside the cells.

    Slopes are cut to three times the secant, which keeps the cubic monotone (Fritsch and Carlson 1980,
    doi:10.1137/0717021).
    """
    width = np.maximum(x[1] - x[0], 1e-300)
    secant = np.maximum(y[1] - y[0], 0) / width
    left, right = (np.minimum(np.maximum(slope, 0), 3 * secant) for slope in slopes)
    # cells without width, where the values saturate, hold no point
    share = np.minimum(np.maximum((at - x[0]) / width, 0), 1)
    return _cubic(share, width, y[0], secant, left, right)


def _cubic(t: Array, width: Any, start: Array, secant: Array, left: Array, right: Array) -> tuple[Array, Array]:
    """Value and derivative at the share t of a cell."""
    second, third = 3 * secant - 2 * left - right, left + right - 2 * secant
    return start + width * t * (left + t * (second + t * third)), left + t * (2 * second + 3 * t * third)


def node_cubic(axis: Axis, values: Array) -> tuple[Array, Array]:
    """Values at the nodes and their slopes in x, from which `spline_at` interpolates."""
    return values, node_slopes(values) / axis.step


def spline_at(axis: Axis, cubic: tuple[Array, Array], theta: Array) -> Array:
    """A log density given by `node_cubic` at any θ; of several, given as columns, all at once.

    Beyond the axis, where there is no mass, it continues along a straight line in θ that does not rise.
    """
    values, slopes = cubic
    low, high = float(axis.theta[0]), float(axis.theta[-1])
    inside = np.clip(theta, low, high)
    at = np.clip((np.arcsinh((inside - axis.centre) / axis.scale) - axis.start) / axis.step, 0, axis.size - 1)
    cell = np.minimum(at.astype(int), axis.size - 2)
    place, beyond = at - cell, theta - inside
    if values.ndim > 1:
        place, beyond, theta = place[..., None], beyond[..., None], theta[..., None]
    secant = (values[cell + 1] - values[cell]) / axis.step
    value = _cubic(place, axis.step, values[cell], secant, slopes[cell], slopes[cell + 1])[0]
    first, last = slopes[0] / (axis.scale * np.cosh(axis.x[0])), slopes[-1] / (axis.scale * np.cosh(axis.x[-1]))
    falling = np.where(theta < low, np.maximum(first, 0.0), np.minimum(last, 0.0))
    return np.asarray(value + falling * beyond)


def moments(theta: Array, mass: Array) -> tuple[float, float]:
    """Mean and standard deviation of nodes with these masses, which sum to 1."""
    mean = float(np.sum(mass * theta))
    return mean, float(np.sqrt(np.sum(mass * (theta - mean) ** 2)))


@dataclass(frozen=True)
class RhoAxis:
    """Nodes of ρ and their prior mass."""

    v: Array  # shape (nodes,); nodes in the coordinate in which they are regular; see `Concentration`
    rho: Array  # shape (nodes,); ρ and 1 - ρ
    one_minus_rho: Array
    log_weight: Array  # shape (nodes,); log of prior density times the width of the node


@dataclass(frozen=True)
class Concentration:
    """The prior of ρ, or of κ = 1/ρ - 1, and the coordinate v in which its axis is laid out.

    A prior of ρ is bounded at ρ = 0 and is laid out in v = log(1 + scale·ρ), where the scale is the largest number of
    trials or the concentration of a prior near 0; one of κ may be singular there and is laid out in v = log κ.
    """

    n_max: int  # largest number of trials
    method: Hierarchical  # which may have a prior of `rho` or `kappa`

    @cached_property
    def scale(self) -> float:
        """The larger, the more nodes lie near ρ = 0."""
        prior = self.method.rho_prior
        near = prior.concentration if isinstance(prior, NearZero) and prior.weight > 0 else 1.0
        return float(max(self.n_max, near))

    @cached_property
    def ends(self) -> Range:
        """The range of v that the prior allows."""
        density = self.method.log_density("kappa")
        if density is None:
            return 0.0, float(np.log1p(self.scale))
        v = np.linspace(*LOG_KAPPA_RANGE, 1201)
        allowed = np.flatnonzero(np.isfinite(density(np.exp(v))))
        if allowed.size == 0:
            raise InvalidArgument("the prior of kappa is zero everywhere between e^-30 and e^30")
        low, high = (float(v[i]) for i in allowed[[0, -1]])
        step = float(v[1] - v[0])
        return _edge(density, low - step, low), _edge(density, high + step, high)

    def over(self, low: float, high: float, nodes: int) -> RhoAxis:
        """Gauss-Legendre nodes between two values of v."""
        return self.at(*legendre_between(low, high, nodes))

    def at(self, v: Array, log_dv: Array) -> RhoAxis:
        """Given nodes v and log dv."""
        kappa_density, rho_density = self.method.log_density("kappa"), self.method.log_density("rho")
        if kappa_density is not None:
            return RhoAxis(v, np.exp(-softplus(v)), np.exp(-softplus(-v)), log_dv + v + kappa_density(np.exp(v)))
        rho = np.expm1(v) / self.scale
        # 1 - ρ = ((1 + scale) - e^v)/scale, without cancellation where v nears its end
        one_minus = -np.expm1(v - np.log1p(self.scale)) * (1 + self.scale) / self.scale
        log_weight = log_dv + v - np.log(self.scale)
        return RhoAxis(v, rho, one_minus, log_weight if rho_density is None else log_weight + rho_density(rho))


def _edge(density: LogDensity, outside: float, inside: float) -> float:
    """The end of the support between two values of log κ, by bisection."""
    if np.isfinite(density(np.exp(np.array(outside)))):
        return inside
    for _ in range(60):
        middle = (outside + inside) / 2
        outside, inside = (outside, middle) if np.isfinite(density(np.exp(np.array(middle)))) else (middle, inside)
    return inside


@cache
def legendre_nodes(nodes: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on [-1, 1], exactly symmetric."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    return (x - x[::-1]) / 2, (w + w[::-1]) / 2


def legendre_between(low: float, high: float, nodes: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes between two values, and their log weights."""
    x, w = legendre_nodes(nodes)
    return (low + high) / 2 + (high - low) / 2 * x, np.log(w * (high - low) / 2)


def share_of(part: Range, whole: Range) -> float:
    """How much of a range another one is."""
    return (part[1] - part[0]) / (whole[1] - whole[0])


def kept_range(nodes: Array, log_density: Array, ends: Range) -> Range:
    """The range of nodes that hold mass, one node wider on each side."""
    held = np.flatnonzero(log_density > log_density.max() - NEGLIGIBLE)
    first, last = held[0] - 1, held[-1] + 1
    low = nodes[first] if first >= 0 else ends[0]
    high = nodes[last] if last < nodes.size else ends[1]
    return float(low), float(high)


def widened_range(log_density: Array, now: Range, ends: Range) -> Range:
    """The range, half as wide again on a side where its end still holds mass."""
    floor = log_density.max() - 0.8 * NEGLIGIBLE
    more = (now[1] - now[0]) / 2
    low = max(ends[0], now[0] - more) if log_density[0] > floor else now[0]
    high = min(ends[1], now[1] + more) if log_density[-1] > floor else now[1]
    return low, high
