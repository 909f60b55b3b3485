"""Grids: nodes of θ = logit μ and of ρ, where they must lie, and log densities on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
LOG_KAPPA_OF_SINGULAR = (-300.0, 600.0)
LARGEST_SHARE = 1 - 2.0**-53
TOO_FAR = 11.0  # log density below its maximum that must be reached where a grid ends without a prior's end
# weights of the first nodes of the trapezoid rule with end corrections of the fourth order (Gregory)
END_WEIGHTS = np.array([3 / 8, 7 / 6, 23 / 24])
# slopes at the first two nodes, by the polynomial through five
END_SLOPES = np.array([[-25, 48, -36, 16, -3], [-3, -10, 18, -6, 1]]) / 12
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


def check_reached(log_density: Array, reached: Range, limits: Range, name: str) -> None:
    """Refuse a posterior that has mass beyond what a grid can hold, which priors singular at an end may leave."""
    for value, end, limit in zip(log_density[[0, -1]], reached, limits, strict=True):
        if end == limit and value > log_density.max() - TOO_FAR:
            raise InvalidArgument(
                f"under this prior of {name} the posterior has mass too near to 0 or 1 for the exact engine: "
                f"take a prior with less mass there, for example scipy.stats.beta(0.5, 0.5)"
            )


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
    cut: bool = False  # whether a prior may end before the posterior vanishes

    @classmethod
    def over(cls, low: float, high: float, centre: float, scale: float, *, step: float, cut: bool = False) -> Axis:
        """The nodes from `low` to `high`, at most `step` apart in x; mirrored ends give mirrored nodes."""
        start, end = np.arcsinh((low - centre) / scale), np.arcsinh((high - centre) / scale)
        size = int(np.ceil((end - start) / step - 1e-9)) + 1
        size = max(size, 33)
        return cls(centre, scale, float(start), float((end - start) / (size - 1)), size, cut)

    @cached_property
    def x(self) -> Array:
        """Nodes in x; counted from the middle so that mirrored axes agree to the last bit."""
        half = (self.size - 1) / 2
        return (self.start + self.step * half) + self.step * (np.arange(self.size) - half)

    @cached_property
    def theta(self) -> Array:
        """Nodes in θ."""
        return self.centre + self.scale * np.sinh(self.x)

    @property
    def ends(self) -> Range:
        """The outermost nodes in θ."""
        return float(self.theta[0]), float(self.theta[-1])

    @cached_property
    def spacing(self) -> Array:
        """dθ of each node: the trapezoid weight, corrected if the integrand does not vanish at the ends."""
        spacing = self.step * self.scale * np.cosh(self.x)
        if self.cut:
            spacing[:3] *= END_WEIGHTS
            spacing[-3:] *= END_WEIGHTS[::-1]
        return spacing

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
    slopes = np.empty_like(values)
    inner = np.subtract(values[3:-1], values[1:-3], out=slopes[2:-2])
    inner *= 8
    inner += values[:-4] - values[4:]
    inner /= 12
    slopes[:2], slopes[:-3:-1] = END_SLOPES @ values[:5], END_SLOPES @ -values[:-6:-1]
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


class Splines:
    """Log densities given at the nodes of axes, between the nodes by cubics.

    Beyond its axis, where there is no mass, each continues along a straight line in θ that does not rise.
    """

    def __init__(self, axes: Sequence[Axis], values: Array) -> None:
        """Values (functions × nodes of the longest axis); each axis is that of equally many, one after another."""
        self.values, self.slopes = np.ascontiguousarray(values), np.zeros(values.shape)
        self.centre, self.scale, self.start, self.step, self.low, self.high = np.array(
            [(a.centre, a.scale, a.start, a.step, *a.ends) for a in axes]
        ).T
        self.size, self.each = np.array([axis.size for axis in axes]), len(values) // len(axes)
        for size in np.unique(self.size):
            own = np.flatnonzero(np.repeat(self.size == size, self.each))
            self.slopes[own, :size] = node_slopes(values[own, :size].T).T
        self.slopes /= np.repeat(self.step, self.each)[:, None]
        last = self.slopes[np.arange(len(values)), np.repeat(self.size, self.each) - 1]
        first_stretch, last_stretch = (
            np.repeat(np.hypot(self.scale, end - self.centre), self.each) for end in (self.low, self.high)
        )
        self.rising = np.maximum(self.slopes[:, 0] / first_stretch, 0.0)
        self.falling = np.minimum(last / last_stretch, 0.0)

    def __call__(self, function: Array | int, theta: Array) -> Array:
        """The functions with these numbers at θ; both are broadcast."""
        own = function // self.each if self.size.size > 1 else 0
        low, high, step, size = self.low[own], self.high[own], self.step[own], self.size[own]
        inside = np.minimum(np.maximum(theta, low), high)
        at = (np.arcsinh((inside - self.centre[own]) / self.scale[own]) - self.start[own]) / step
        at = np.minimum(np.maximum(at, 0), size - 1)
        cell = np.minimum(at.astype(int), size - 2)
        left = function * self.values.shape[1] + cell
        start, end, slope, next_slope = (
            table.take(left + more) for table in (self.values, self.slopes) for more in (0, 1)
        )
        value = _cubic(at - cell, step, start, (end - start) / step, slope, next_slope)[0]
        beyond = theta - inside
        if not beyond.any():
            return np.asarray(value)
        return np.asarray(value + np.where(beyond < 0, self.rising[function], self.falling[function]) * beyond)


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
class LogitPrior:
    """The prior of a parameter in (0, 1), on the scale of its logit."""

    method: Hierarchical
    name: str  # "mu" or "rho"

    @cached_property
    def _given(self) -> Any:
        return self.method.rho_prior if self.name == "rho" else self.method.mu

    @cached_property
    def _beta(self) -> tuple[float, float] | None:
        """Both shapes of a Beta distribution, which is known in both tails."""
        if self._given is None:
            return 1.0, 1.0
        if getattr(getattr(self._given, "dist", None), "name", None) != "beta" or self._given.support() != (0, 1):
            return None
        (a, b), _, _ = self._given.dist._parse_args(*self._given.args, **self._given.kwds)
        return float(a), float(b)

    def __call__(self, logit: Array) -> Array:
        """Log density of the logit, not normalised."""
        log_share, log_rest = -softplus(-logit), -softplus(logit)
        if self._beta is not None:
            return self._beta[0] * log_share + self._beta[1] * log_rest
        density = self.method.log_density(self.name)
        assert density is not None
        return density(np.minimum(np.exp(log_share), LARGEST_SHARE)) + log_share + log_rest

    def ends(self, low: float, high: float) -> Range:
        """The part of a range of logits where the density is not zero."""
        if self._beta is not None:
            return low, high
        return _support(self, low, high, _known_support(self._given, lambda share: np.log(share) - np.log1p(-share)))


@dataclass(frozen=True)
class Concentration:
    """The prior of ρ, or of κ = 1/ρ - 1, and the coordinate v in which its axis is laid out.

    A prior of ρ that is bounded is laid out in v = log(1 + scale·ρ), where the scale is the largest number of trials or
    the concentration of a prior near 0; one that is singular at an end, or one of κ, in v = log κ.
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
    def _singular(self) -> bool:
        """Whether the density of ρ still rises at the last numbers before 0 or 1."""
        density = self.method.log_density("rho")
        if density is None or isinstance(self.method.rho_prior, NearZero):
            return False
        low, high = density(np.array([1e-300, 1e-200])), density(np.array([1 - 1e-15, 1 - 1e-12]))
        with np.errstate(invalid="ignore"):
            return bool(low[0] - low[1] > 0.5 or high[0] - high[1] > 0.2)

    @cached_property
    def in_log_kappa(self) -> bool:
        """Whether v is log κ."""
        return self._singular or self.method.log_density("kappa") is not None

    @cached_property
    def limits(self) -> Range:
        """The range of v that is looked at."""
        if self._singular:
            return LOG_KAPPA_OF_SINGULAR
        return LOG_KAPPA_RANGE if self.in_log_kappa else (0.0, float(np.log1p(self.scale)))

    @cached_property
    def ends(self) -> Range:
        """The range of v that the prior allows."""
        prior = self.method.rho_prior
        if isinstance(prior, NearZero):
            return self.limits
        return _support(self._log_density, *self.limits, _known_support(prior, self.coordinate))

    def coordinate(self, rho: Array) -> Array:
        """V of ρ."""
        return np.asarray(np.log1p(-rho) - np.log(rho) if self.in_log_kappa else np.log1p(self.scale * rho))

    def _log_density(self, v: Array) -> Array:
        """Log density of v."""
        kappa_density, rho_density = self.method.log_density("kappa"), self.method.log_density("rho")
        if kappa_density is not None:
            return np.asarray(v + kappa_density(np.exp(v)))
        if self._singular:
            return LogitPrior(self.method, "rho")(-v)
        assert rho_density is not None
        return np.asarray(v - np.log(self.scale) + rho_density(np.expm1(v) / self.scale))

    def rho(self, v: Array) -> Array:
        """ρ of v."""
        return np.exp(-softplus(v)) if self.in_log_kappa else np.expm1(v) / self.scale

    @cached_property
    def over(self) -> Callable[[float, float, int], RhoAxis]:
        """Gauss-Legendre nodes between two values of v; the same nodes are made once."""
        return cache(lambda low, high, nodes: self.at(*legendre_between(low, high, nodes)))

    def at(self, v: Array, log_dv: Array) -> RhoAxis:
        """Given nodes v and log dv."""
        log_weight = log_dv + self._log_density(v)
        if self.in_log_kappa:
            return RhoAxis(v, self.rho(v), np.exp(-softplus(-v)), log_weight)
        # 1 - ρ = ((1 + scale) - e^v)/scale, without cancellation where v nears its end
        one_minus = -np.expm1(v - np.log1p(self.scale)) * (1 + self.scale) / self.scale
        return RhoAxis(v, self.rho(v), one_minus, log_weight)


def _known_support(prior: Any, coordinate: Callable[[Array], Array]) -> Range | None:
    """The ends of a distribution of a share, in a coordinate; None for a function, which does not say."""
    if not hasattr(prior, "support"):
        return None
    with np.errstate(divide="ignore"):
        low, high = sorted(float(coordinate(np.clip(end, 0.0, 1.0))) for end in prior.support())
    if low >= high:
        raise InvalidArgument(f"a prior of a share must have mass between 0 and 1, got support {prior.support()}")
    return low, high


def _support(density: LogDensity, low: float, high: float, known: Range | None) -> Range:
    """The part of a range where a prior is not zero; where the prior does not say, found by bisection."""
    if known is not None:
        inside = 1e-9 * (known[1] - known[0]) if np.isfinite(known).all() else 0.0  # rounding must not leave it
        return max(low, known[0] + inside), min(high, known[1] - inside)
    at = np.linspace(low, high, 1201)
    allowed = np.flatnonzero(np.isfinite(density(at)))
    if allowed.size == 0:
        raise InvalidArgument("a prior that is a function must not be zero everywhere, nor too narrow to find its mass")
    first, last = allowed[[0, -1]]
    return (
        low if first == 0 else _edge(density, float(at[first - 1]), float(at[first])),
        high if last == at.size - 1 else _edge(density, float(at[last + 1]), float(at[last])),
    )


def _edge(density: LogDensity, outside: float, inside: float) -> float:
    """The end of the support between two values, by bisection."""
    for _ in range(60):
        middle = (outside + inside) / 2
        outside, inside = (outside, middle) if np.isfinite(density(np.array(middle))) else (middle, inside)
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
