"""The exact engine: the hierarchical model by deterministic quadrature, without Monte-Carlo error.

For each agent the likelihood is tabulated on θ = logit μ (uniform in x, θ = centre + scale·sinh(x)) times ρ
(Gauss-Legendre in v = log(1 + n_max ρ)). Agents that share strength are independent given (m, τ), so that

    p(m, τ | data) ∝ p(m) p(τ) Π_a I_a(m, τ),     I_a(m, τ) = ∫ N(θ; m, τ²) L_a(θ) dθ,
    p(θ_a | data)  ∝ L_a(θ_a) ∫∫ N(θ_a; m, τ²) p(m, τ | data)/I_a(m, τ) dm dτ.

Both integrals over a normal kernel are the same operation (`_smooth`). Grids are placed by looking for where the
posterior has mass; nothing depends on where a maximum falls between nodes, so that relabelling success and failure
mirrors every result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.betabinomial import log_likelihood_table
from agentic_bayes.estimation.posterior import Array, Counts
from agentic_bayes.estimation.prior import LogDensity, Prior

__all__ = [
    "AgentGrid",
    "AgentLikelihood",
    "GridFit",
    "InflatedAxis",
    "PoolGrid",
    "cubic_spline",
    "fit_agents",
    "log_logistic",
    "logsumexp",
    "spline_at",
]

NEGLIGIBLE = 30.0  # log density below its maximum at which a grid may end: e^-30 ≈ 1e-13
FARTHEST = 60.0  # |logit μ| that is ever looked at
RHO_NODES = 32
STEP = 0.11  # of x in θ = centre + scale·sinh(x)
STEP_M, STEP_TAU = 0.22, 0.2
HERMITE_NODES = 9
TAU_MOST = 7.0  # HalfNormal(1) beyond: e^-24
LOG_KAPPA_RANGE = (-30.0, 30.0)


def _softplus(x: Array) -> Array:
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
    return -_softplus(theta) - _softplus(-theta)


@dataclass(frozen=True)
class Axis:
    """Nodes of the trapezoid rule in x, θ = centre + scale·sinh(x).

    Attributes
    ----------
    centre, scale, start, step : float
        θ_i = centre + scale·sinh(start + i·step).
    size : int
        Number of nodes.
    """

    centre: float
    scale: float
    start: float
    step: float
    size: int

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


@dataclass(frozen=True)
class RhoAxis:
    """Nodes of ρ and their prior mass.

    Attributes
    ----------
    v : ndarray, shape (nodes,)
        Nodes in the coordinate in which they are regular; see `Concentration`.
    rho, one_minus_rho : ndarray, shape (nodes,)
        ρ and 1 - ρ.
    log_weight : ndarray, shape (nodes,)
        Log of prior density times the width of the node.
    """

    v: Array
    rho: Array
    one_minus_rho: Array
    log_weight: Array


@dataclass(frozen=True)
class Concentration:
    """The prior of ρ, or of κ = 1/ρ - 1, and the coordinate v in which its axis is laid out.

    A prior of ρ is bounded at ρ = 0 and is laid out in v = log(1 + n_max ρ); one of κ may be singular there and is
    laid out in v = log κ.

    Attributes
    ----------
    n_max : int
        Largest number of trials.
    prior : Prior
        Where `rho` or `kappa` may be given.
    """

    n_max: int
    prior: Prior

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The range of v that the prior allows."""
        density = self.prior.log_density("kappa")
        if density is None:
            return 0.0, float(np.log1p(self.n_max))
        v = np.linspace(*LOG_KAPPA_RANGE, 1201)
        allowed = np.flatnonzero(np.isfinite(density(np.exp(v))))
        if allowed.size == 0:
            raise InvalidArgument("the prior of kappa is zero everywhere between e^-30 and e^30")
        low, high = (float(v[i]) for i in allowed[[0, -1]])
        step = float(v[1] - v[0])
        return _edge(density, low - step, low), _edge(density, high + step, high)

    def over(self, low: float, high: float, nodes: int) -> RhoAxis:
        """Gauss-Legendre nodes between two values of v."""
        x, w = _legendre(nodes)
        return self.at((low + high) / 2 + (high - low) / 2 * x, np.log(w * (high - low) / 2))

    def at(self, v: Array, log_dv: Array) -> RhoAxis:
        """Given nodes v and log dv."""
        kappa_density, rho_density = self.prior.log_density("kappa"), self.prior.log_density("rho")
        if kappa_density is not None:
            return RhoAxis(v, np.exp(-_softplus(v)), np.exp(-_softplus(-v)), log_dv + v + kappa_density(np.exp(v)))
        rho = np.expm1(v) / self.n_max
        # 1 - ρ = ((1 + n_max) - e^v)/n_max, without cancellation where v nears its end
        one_minus = -np.expm1(v - np.log1p(self.n_max)) * (1 + self.n_max) / self.n_max
        log_weight = log_dv + v - np.log(self.n_max)
        return RhoAxis(v, rho, one_minus, log_weight if rho_density is None else log_weight + rho_density(rho))


def _edge(density: LogDensity, outside: float, inside: float) -> float:
    """The end of the support between two values of log κ, by bisection."""
    if np.isfinite(density(np.exp(np.array(outside)))):
        return inside
    for _ in range(60):
        middle = (outside + inside) / 2
        outside, inside = (outside, middle) if np.isfinite(density(np.exp(np.array(middle)))) else (middle, inside)
    return inside


_LEGENDRE: dict[int, tuple[Array, Array]] = {}


def _legendre(nodes: int) -> tuple[Array, Array]:
    if nodes not in _LEGENDRE:
        x, w = np.polynomial.legendre.leggauss(nodes)
        _LEGENDRE[nodes] = ((x - x[::-1]) / 2, (w + w[::-1]) / 2)  # exactly symmetric
    return _LEGENDRE[nodes]


@dataclass(frozen=True)
class AgentGrid:
    """Likelihood of one agent on a grid and, once known, its posterior weights.

    Attributes
    ----------
    axis : Axis
        Nodes of θ.
    rho : RhoAxis
        Nodes of ρ.
    loglik : ndarray, shape (θ nodes, ρ nodes)
        Log likelihood.
    log_prior : ndarray, shape (θ nodes,)
        Log of the density that multiplies the likelihood of θ: the prior, or what the other agents say of it.
    """

    axis: Axis
    rho: RhoAxis
    loglik: Array
    log_prior: Array

    @cached_property
    def log_weights(self) -> Array:
        """Log posterior mass of every node, normalised."""
        mass = self.loglik + self.rho.log_weight + (self.log_prior + np.log(self.axis.spacing))[:, None]
        return np.asarray(mass - logsumexp(mass))

    @cached_property
    def weights(self) -> Array:
        """Posterior mass of every node, shape (θ nodes, ρ nodes); sums to 1."""
        return np.exp(self.log_weights)

    @cached_property
    def log_marginal(self) -> Array:
        """Log L(θ): the likelihood with ρ integrated out, shape (θ nodes,)."""
        return logsumexp(self.loglik + self.rho.log_weight, axis=1)

    @cached_property
    def mu(self) -> Array:
        """Nodes of μ, as a column."""
        return np.exp(-_softplus(-self.axis.theta))[:, None]

    @cached_property
    def one_minus_mu(self) -> Array:
        """1 - μ at the nodes, as a column."""
        return np.exp(-_softplus(self.axis.theta))[:, None]


class AgentLikelihood:
    """The likelihood table of one agent at any nodes."""

    def __init__(self, counts: Counts, agent: int, prior: Prior) -> None:
        self.c, self.n, self.size = counts.groups(agent)
        self.concentration = Concentration(int(self.n.max(initial=1)), prior)

    def __call__(self, theta: Array, rho: RhoAxis) -> Array:
        """Log likelihood at these nodes, shape (θ nodes, ρ nodes)."""
        log_mu, log_nu = -_softplus(-theta), -_softplus(theta)
        return log_likelihood_table(self.c, self.n, self.size, log_mu, log_nu, rho.rho, rho.one_minus_rho)

    def place(self, log_prior: LogDensity, fine: float) -> tuple[float, float, RhoAxis]:
        """The range of θ and the nodes of ρ that hold all but a negligible part of the posterior."""
        low, high, v_low, v_high = _locate(self, log_prior)
        nodes = max(RHO_NODES, 5 * (v_high - v_low))  # long tasks spread ρ over many orders of magnitude
        return low, high, self.concentration.over(v_low, v_high, int(nodes * fine))

    def sharpest_scale(self, rho: float) -> tuple[float, float]:
        """Where θ is if ρ is this small, and how sharply it is known then (both to a factor)."""
        if self.n.size == 0:
            return 0.0, 1.0
        weight = self.size * self.n / (1 + (self.n - 1) * rho)
        # half a success and half a failure keep all-pass and all-fail finite
        p = (np.sum(weight * self.c / self.n) + 0.5) / (np.sum(weight) + 1)
        information = np.sum(weight) * p * (1 - p) + 0.1
        return float(np.log(p / (1 - p))), float(1 / np.sqrt(information))


def _kept(nodes: Array, log_density: Array, ends: tuple[float, float]) -> tuple[float, float]:
    """The range of nodes that hold mass, one node wider on each side."""
    held = np.flatnonzero(log_density > log_density.max() - NEGLIGIBLE)
    first, last = held[0] - 1, held[-1] + 1
    low = nodes[first] if first >= 0 else ends[0]
    high = nodes[last] if last < nodes.size else ends[1]
    return float(low), float(high)


def _widened(log_density: Array, now: tuple[float, float], ends: tuple[float, float]) -> tuple[float, float]:
    """The range, half as wide again on a side where its end still holds mass."""
    floor = log_density.max() - 0.8 * NEGLIGIBLE
    more = (now[1] - now[0]) / 2
    low = max(ends[0], now[0] - more) if log_density[0] > floor else now[0]
    high = min(ends[1], now[1] + more) if log_density[-1] > floor else now[1]
    return low, high


def _locate(likelihood: AgentLikelihood, log_prior: LogDensity) -> tuple[float, float, float, float]:
    """Ranges of θ and v that hold all but a negligible part of one agent's posterior."""
    theta_ends, v_ends = (-FARTHEST, FARTHEST), likelihood.concentration.ends
    theta_range, v_range = theta_ends, v_ends
    for _ in range(40):
        theta = (theta_range[0] + theta_range[1]) / 2 + (theta_range[1] - theta_range[0]) / 2 * np.linspace(-1, 1, 49)
        rho = likelihood.concentration.over(*v_range, 32)
        mass = likelihood(theta, rho) + log_prior(theta)[:, None] + rho.log_weight
        by_theta, by_v = logsumexp(mass, axis=1), logsumexp(mass, axis=0)
        wide = _widened(by_theta, theta_range, theta_ends), _widened(by_v, v_range, v_ends)
        if wide != (theta_range, v_range):
            theta_range, v_range = wide
            continue
        new_theta, new_v = _kept(theta, by_theta, theta_range), _kept(rho.v, by_v, v_range)
        # until θ is resolved, the likelihood at its nodes says nothing about ρ
        resolved = new_theta[1] - new_theta[0] > 0.25 * (theta_range[1] - theta_range[0])
        if not resolved:
            new_v = v_range
        shrunk = min(_share(new_theta, theta_range), _share(new_v, v_range))
        theta_range, v_range = new_theta, new_v
        if resolved and shrunk > 0.6:
            break
    return (*theta_range, *v_range)


def _share(part: tuple[float, float], whole: tuple[float, float]) -> float:
    return (part[1] - part[0]) / (whole[1] - whole[0])


@dataclass(frozen=True)
class InflatedAxis(RhoAxis):
    """Nodes of ρ times nodes of the probabilities that a task never or always passes.

    Attributes
    ----------
    never, always, rest : ndarray, shape (nodes,)
        Weights of the point mass at p = 0, of the one at p = 1, and of the Beta distribution.
    """

    never: Array
    always: Array
    rest: Array


class InflatedLikelihood(AgentLikelihood):
    """As `AgentLikelihood`, with point masses at p = 0 and p = 1 beside the Beta distribution.

    Their weights are (never, always, rest) ~ Dirichlet(1, 1, 4), laid out in s = never + always and
    t = never/(never + always), whose prior density is 20 s (1 - s)^3.
    """

    def __call__(self, theta: Array, rho: RhoAxis) -> Array:
        """Log likelihood at these nodes, shape (θ nodes, nodes of ρ and of the weights)."""
        if not isinstance(rho, InflatedAxis):
            return super().__call__(theta, rho)
        log_mu, log_nu = -_softplus(-theta), -_softplus(theta)
        # ρ repeats for every weight: the Beta-Binomial part is made once per distinct ρ
        distinct, first, place = np.unique(rho.v, return_index=True, return_inverse=True)
        parts = RhoAxis(distinct, rho.rho[first], rho.one_minus_rho[first], rho.log_weight[first])
        table = np.zeros((theta.size, rho.v.size))
        log_rest = np.log(rho.rest)
        for c, n, size in zip(self.c, self.n, self.size, strict=True):
            one = np.array([c]), np.array([n]), np.array([1])
            beta = log_likelihood_table(*one, log_mu, log_nu, parts.rho, parts.one_minus_rho)[:, place] + log_rest
            if c == 0:
                beta = np.logaddexp(beta, np.log(rho.never))
            elif c == n:
                beta = np.logaddexp(beta, np.log(rho.always))
            table += size * beta
        return table

    def axis(self, ranges: list[tuple[float, float]], nodes: tuple[int, int, int]) -> InflatedAxis:
        """Product of Gauss-Legendre nodes of v, s and t."""
        rho = self.concentration.over(*ranges[0], nodes[0])
        shares, logs = [], []
        for (low, high), count in zip(ranges[1:], nodes[1:], strict=True):
            x, w = _legendre(count)
            shares.append((low + high) / 2 + (high - low) / 2 * x)
            logs.append(np.log(w * (high - low) / 2))
        index = np.indices(nodes).reshape(3, -1)
        s, t = shares[0][index[1]], shares[1][index[2]]
        log_weight = rho.log_weight[index[0]] + logs[0][index[1]] + logs[1][index[2]]
        log_weight = log_weight + np.log(s) + 3 * np.log1p(-s)
        return InflatedAxis(
            rho.v[index[0]], rho.rho[index[0]], rho.one_minus_rho[index[0]], log_weight, s * t, s * (1 - t), 1 - s
        )

    def place(self, log_prior: LogDensity, fine: float) -> tuple[float, float, RhoAxis]:
        """The range of θ and the nodes of ρ and of the weights that hold all but a negligible part."""
        ends = [(-FARTHEST, FARTHEST), self.concentration.ends, (0.0, 1.0), (0.0, 1.0)]
        ranges, nodes = list(ends), (16, 8, 8)
        for _ in range(25):
            theta = np.linspace(*ranges[0], 33)
            axis = self.axis(ranges[1:], nodes)
            mass = (self(theta, axis) + axis.log_weight + log_prior(theta)[:, None]).reshape(theta.size, *nodes)
            marginal = [logsumexp(np.moveaxis(mass, i, 0).reshape(mass.shape[i], -1), axis=1) for i in range(4)]
            cube = (axis.v, 1 - axis.rest, axis.never / (1 - axis.rest))
            first = ((slice(None), 0, 0), (0, slice(None), 0), (0, 0, slice(None)))
            coordinates = [theta, *(part.reshape(nodes)[at] for part, at in zip(cube, first, strict=True))]
            wide = [_widened(m, now, end) for m, now, end in zip(marginal, ranges, ends, strict=True)]
            if wide[0] != ranges[0]:
                ranges[0] = wide[0]
                continue
            new = [_kept(x, m, now) for x, m, now in zip(coordinates, marginal, ranges, strict=True)]
            resolved = new[0][1] - new[0][0] > 0.25 * (ranges[0][1] - ranges[0][0])
            if not resolved:
                new[1:] = ranges[1:]
            shrunk = min(_share(part, whole) for part, whole in zip(new, ranges, strict=True))
            ranges = new
            if resolved and shrunk > 0.6:
                break
        counts = tuple(int(count * fine) for count in (20, 12, 10))
        return (*ranges[0], self.axis(ranges[1:], (counts[0], counts[1], counts[2])))


def _agent_grid(likelihood: AgentLikelihood, log_prior: LogDensity, fine: float) -> AgentGrid:
    """The likelihood table of one agent where its posterior under `log_prior` has mass."""
    low, high, rho = likelihood.place(log_prior, fine)
    step, position = STEP, 0
    for _ in range(4):
        centre, scale = likelihood.sharpest_scale(float(rho.rho[position]))
        axis = Axis.over(low, high, min(max(centre, low), high), scale, step=step / fine)
        table = likelihood(axis.theta, rho)
        grid = AgentGrid(axis, rho, table, log_prior(axis.theta))
        # ρ below the first node that has mass does not set the scale
        first = int(np.argmax(grid.weights.sum(axis=0) > 1e-7))
        coarseness = _coarseness(grid)
        if first == position and coarseness * fine < 0.5:
            break
        step, position = (step if first != position else step * 0.4 / (coarseness * fine)), first
    return grid


def _coarseness(grid: AgentGrid) -> float:
    """Largest spacing of θ, in units of its standard deviation given ρ, over all ρ that matter."""
    by_rho = grid.weights.sum(axis=0)
    matters = by_rho > 1e-6
    share = grid.weights[:, matters] / by_rho[matters]
    theta = grid.axis.theta[:, None]
    mean = np.sum(share * theta, axis=0)
    sd = np.sqrt(np.sum(share * (theta - mean) ** 2, axis=0))
    spacing = grid.axis.spacing_at(mean)
    return float(np.max(spacing / np.maximum(sd, spacing / 4)))


def cubic_spline(axis: Axis, values: Array) -> Any:
    """Cubic splines in x of values at the nodes, shape (nodes,) or (nodes, functions)."""
    from scipy.interpolate import CubicSpline

    return CubicSpline(axis.x, values)


def spline_at(axis: Axis, spline: Any, theta: Array) -> Array:
    """A spline of a log density, made by `cubic_spline`, at any θ.

    Beyond the axis, where there is no mass, it goes on along a straight line in θ that does not rise.
    """
    low, high = float(axis.theta[0]), float(axis.theta[-1])
    inside = np.clip(theta, low, high)
    x = np.clip(np.arcsinh((inside - axis.centre) / axis.scale), axis.x[0], axis.x[-1])
    slopes = spline(axis.x[[0, -1]], 1) / (axis.scale * np.cosh(axis.x[[0, -1]]))
    falling = np.where(theta < low, max(float(slopes[0]), 0.0), min(float(slopes[1]), 0.0))
    return np.asarray(spline(x) + falling * (theta - inside))


class _Functions:
    """Functions f_a, given by their logs at the nodes of their axes, to be smoothed by a normal kernel.

    Parameters
    ----------
    axes : list of Axis
        One per function.
    log_f : list of ndarray
        Values at the nodes.
    """

    def __init__(self, axes: list[Axis], log_f: list[Array]) -> None:
        self.axes, self.log_f = axes, log_f
        self.splines: dict[int, Any] = {}
        longest = max(axis.size for axis in axes)
        self.theta = np.zeros((len(axes), longest))
        self.log_mass = np.full((len(axes), longest), -np.inf)
        for a, (axis, values) in enumerate(zip(axes, log_f, strict=True)):
            self.theta[a, : axis.size] = axis.theta
            self.log_mass[a, : axis.size] = values + np.log(axis.spacing)
        column = [np.array([getattr(axis, name) for axis in axes])[:, None] for name in ("step", "scale", "centre")]
        self.step, self.scale, self.centre = column

    def smooth(self, targets: Array, tau: float) -> Array:
        """Log ∫ N(t; x, τ²) f_a(x) dx at targets t, shape (functions, targets).

        The trapezoid rule where the kernel is wider than the spacing, else Gauss-Hermite on the spline of log f.
        """
        targets = np.broadcast_to(targets, (len(self.axes), targets.shape[-1]))
        narrow = tau < 1.2 * self.step * np.hypot(self.scale, targets - self.centre)
        out = np.empty(targets.shape)
        if not narrow.all():
            kernel = targets[:, :, None] - self.theta[:, None, :]
            kernel *= kernel
            kernel *= -0.5 / tau**2
            kernel += self.log_mass[:, None, :]
            out = logsumexp(kernel, axis=2) - np.log(tau * np.sqrt(2 * np.pi))
        for a in map(int, np.flatnonzero(narrow.any(axis=1))):
            z, log_w = _hermite()
            points = targets[a, narrow[a], None] + tau * z
            if a not in self.splines:
                self.splines[a] = cubic_spline(self.axes[a], self.log_f[a])
            out[a, narrow[a]] = logsumexp(spline_at(self.axes[a], self.splines[a], points) + log_w, axis=1)
        return out


_HERMITE: list[tuple[Array, Array]] = []


def _hermite() -> tuple[Array, Array]:
    """Nodes and log weights of the standard normal."""
    if not _HERMITE:
        z, w = np.polynomial.hermite_e.hermegauss(HERMITE_NODES)
        _HERMITE.append((z, np.log(w / np.sqrt(2 * np.pi))))
    return _HERMITE[0]


@dataclass(frozen=True)
class PoolGrid:
    """Posterior of (m, τ), through which agents share strength.

    Attributes
    ----------
    tau : ndarray, shape (τ nodes,)
        Nodes of τ.
    m : list of Axis
        Nodes of m, one axis per τ.
    log_mass : list of ndarray
        Log posterior mass of each (m, τ) node.
    log_integral : list of ndarray, shape (agents, m nodes)
        log I_a(m, τ), one array per τ.
    """

    tau: Array
    m: list[Axis]
    log_mass: list[Array]
    log_integral: list[Array]

    def log_priors(self, theta: Array, agents: Array) -> Array:
        """Log of ∫∫ N(θ; m, τ²) p(m, τ | data)/I_a(m, τ) dm dτ: what the other agents say of an agent's θ.

        Parameters
        ----------
        theta : ndarray, shape (agents, points)
            Where.
        agents : ndarray of int
            Whose.
        """
        total = np.full(theta.shape, -np.inf)
        for k, axis in enumerate(self.m):
            density = self.log_mass[k] - np.log(axis.spacing) - self.log_integral[k][agents]
            part = _Functions([axis] * len(agents), list(density)).smooth(theta, float(self.tau[k]))
            total = np.logaddexp(total, part)
        return total


def _pool(grids: list[AgentGrid], prior: Prior, fine: float) -> PoolGrid:
    """Integrate every agent's likelihood over its normal population, for every (m, τ)."""
    widths = [float(np.sqrt(_variance(grid))) for grid in grids]
    smallest = max(0.5 * float(np.median(widths)) / np.sqrt(len(grids)), 1e-6)
    step = STEP_TAU / fine
    log_prior_m, log_prior_tau = prior.log_density("m") or log_logistic, prior.log_density("tau")
    most = TAU_MOST if log_prior_tau is None else FARTHEST
    size = int(np.ceil(np.arcsinh(most / smallest) / step))
    x = step * (np.arange(size) + 0.5)  # midpoints: the integrand is even in τ
    tau = smallest * np.sinh(x)
    log_dtau = np.log(step * smallest * np.cosh(x)) + (-0.5 * tau**2 if log_prior_tau is None else log_prior_tau(tau))
    functions = _Functions([grid.axis for grid in grids], [grid.log_marginal for grid in grids])

    def log_joint(m: Array, s: float) -> tuple[Array, Array]:
        integrals = functions.smooth(m, s)
        return integrals, integrals.sum(axis=0) + log_prior_m(m)

    axes: list[Axis] = []
    ends = -FARTHEST, FARTHEST
    block = 4  # neighbouring τ share the axis of the largest of them; a smaller τ never needs a wider one
    for last in range(size - 1, -1, -block):
        axis = _m_axis(log_joint, float(tau[last]), ends, fine)
        ends = float(axis.theta[0]), float(axis.theta[-1])
        axes += [axis] * min(block, last + 1)
    axes.reverse()
    integrals, mass = [], []
    for k, axis in enumerate(axes):
        integral, density = log_joint(axis.theta, float(tau[k]))
        integrals.append(integral)
        mass.append(density + np.log(axis.spacing) + log_dtau[k])
    total = logsumexp(np.concatenate(mass))
    return PoolGrid(tau, axes, [part - total for part in mass], integrals)


def _m_axis(
    log_joint: Callable[[Array, float], tuple[Array, Array]], tau: float, ends: tuple[float, float], fine: float
) -> Axis:
    """Nodes of m where the posterior given τ has mass."""
    low, high = ends
    for _ in range(20):
        m = (low + high) / 2 + (high - low) / 2 * np.linspace(-1, 1, 33)
        density = log_joint(m, tau)[1]
        new_low, new_high = _kept(m, density, (low, high))
        done = new_high - new_low > 0.4 * (high - low)
        low, high = new_low, new_high
        if done:
            break
    mass = np.exp(density - density.max())
    mean, sd = _moments(m, mass / mass.sum())
    return Axis.over(low, high, min(max(mean, low), high), max(sd, (high - low) / 64), step=STEP_M / fine)


def _moments(theta: Array, mass: Array) -> tuple[float, float]:
    mean = float(np.sum(mass * theta))
    return mean, float(np.sqrt(np.sum(mass * (theta - mean) ** 2)))


def _variance(grid: AgentGrid) -> float:
    return _moments(grid.axis.theta, grid.weights.sum(axis=1))[1] ** 2


@dataclass(frozen=True)
class GridFit:
    """What the exact engine gives.

    Attributes
    ----------
    agents : list of AgentGrid
        One posterior per agent.
    pool : PoolGrid or None
        Posterior of (m, τ), if agents share strength.
    likelihoods : list of AgentLikelihood
        One per agent, at any nodes.
    """

    agents: list[AgentGrid]
    pool: PoolGrid | None
    likelihoods: list[AgentLikelihood]


def _log_prior_theta(prior: Prior) -> LogDensity:
    """Log density of θ = logit μ for agents that do not share strength."""
    density = prior.log_density("mu")
    if density is None:
        return log_logistic
    return lambda theta: density(np.exp(-_softplus(-theta))) + log_logistic(theta)


def _wide(theta: Array) -> Array:
    """A wider logistic than any agent's prior, to place the likelihood tables of agents that share strength."""
    return log_logistic(theta / 1.5)


def fit_agents(
    counts: Counts,
    *,
    pool_agents: bool,
    prior: Prior,
    inflate: bool = False,
    fine: float = 1.0,
) -> GridFit:
    """Posterior grids of all agents.

    Parameters
    ----------
    counts : Counts
        The data.
    pool_agents : bool
        Whether agents share strength; with one agent there is nothing to share.
    prior : Prior
        Of μ, ρ or κ, m and τ.
    inflate : bool
        Whether tasks that always or never pass have probabilities of their own; see `inflated`.
    fine : float
        Grids are this many times as fine; for checking that they are fine enough.

    Returns
    -------
    GridFit
    """
    kind = InflatedLikelihood if inflate else AgentLikelihood
    likelihoods = [kind(counts, agent, prior) for agent in range(len(counts.agents))]
    if not pool_agents or len(likelihoods) == 1:
        own = _log_prior_theta(prior)
        return GridFit([_agent_grid(part, own, fine) for part in likelihoods], None, likelihoods)
    grids = [_agent_grid(part, _wide, fine) for part in likelihoods]
    pool = _pool(grids, prior, fine)
    axes = [grid.axis for grid in grids]
    log_priors = _log_priors(pool, axes, list(range(len(axes))))
    unresolved = list(range(len(grids)))
    for _ in range(8):  # where the other agents make it narrower than its likelihood, an agent needs a finer axis
        again = []
        for a in unresolved:
            finer = _finer(axes[a], log_priors[a] + _marginal_on(grids[a], axes[a]), fine)
            if finer is not None:
                axes[a] = finer
                again.append(a)
        if not again:
            break
        for a, values in zip(again, _log_priors(pool, [axes[a] for a in again], again), strict=True):
            log_priors[a] = values
        unresolved = again
    finished = []
    for grid, axis, log_prior, likelihood in zip(grids, axes, log_priors, likelihoods, strict=True):
        if axis is grid.axis:
            table = grid.loglik
        else:
            table = likelihood(axis.theta, grid.rho)
        finished.append(AgentGrid(axis, grid.rho, table, log_prior))
    return GridFit(finished, pool, likelihoods)


def _log_priors(pool: PoolGrid, axes: list[Axis], agents: list[int]) -> list[Array]:
    """What the pool says of these agents, at the nodes of their axes."""
    longest = max(axis.size for axis in axes)
    theta = np.stack([np.pad(axis.theta, (0, longest - axis.size), mode="edge") for axis in axes])
    values = pool.log_priors(theta, np.array(agents))
    return [row[: axis.size] for row, axis in zip(values, axes, strict=True)]


def _marginal_on(grid: AgentGrid, axis: Axis) -> Array:
    """Log L(θ) at the nodes of another axis."""
    if axis is grid.axis:
        return grid.log_marginal
    return spline_at(grid.axis, cubic_spline(grid.axis, grid.log_marginal), axis.theta)


def _finer(axis: Axis, density: Array, fine: float) -> Axis | None:
    """An axis that resolves this log density, or None where `axis` does."""
    log_mass = density + np.log(axis.spacing)
    mass = np.exp(log_mass - log_mass.max())
    mean, sd = _moments(axis.theta, mass / mass.sum())
    if sd > 3 * fine * float(axis.spacing_at(np.asarray(mean))):
        return None
    low, high = _kept(axis.theta, density, (float(axis.theta[0]), float(axis.theta[-1])))
    return Axis.over(low, high, mean, max(sd, (high - low) / 64), step=STEP / fine)
