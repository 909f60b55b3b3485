"""The exact engine: the hierarchical model by deterministic quadrature, without Monte-Carlo error.

For each agent the likelihood is tabulated on θ = logit μ (uniform in x, θ = centre + scale·sinh(x)) times ρ
(Gauss-Legendre in v = log(1 + n_max ρ)). Agents that share strength are independent given (m, τ), so that

    p(m, τ | data) ∝ p(m) p(τ) Π_a I_a(m, τ),     I_a(m, τ) = ∫ N(θ; m, τ²) L_a(θ) dθ,
    p(θ_a | data)  ∝ L_a(θ_a) ∫∫ N(θ_a; m, τ²) p(m, τ | data)/I_a(m, τ) dm dτ.

Both integrals over a normal kernel are the same operation (`_Functions.smooth`). Grids are placed by looking for where
the posterior has mass; nothing depends on where a maximum falls between nodes, so that relabelling success and failure
mirrors every result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.grid.agent_grid import (
    STEP,
    AgentGrid,
    AgentLikelihood,
    InflatedLikelihood,
    agent_grid,
)
from agentic_bayes.estimation.engines.grid.axes import (
    FARTHEST,
    Axis,
    Concentration,
    LogitPrior,
    Splines,
    kept_range,
    log_logistic,
    logsumexp,
    moments,
)
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.numerics import Array

# m and τ → log I of every function at each m, and the log density of (m, τ)
LogJoint = Callable[[Array, float], tuple[Array, Array]]

STEP_M, STEP_TAU = 0.22, 0.2
LOWEST = -1e300  # of finite logs
UNDERFLOW = 1e-200  # of sums of exp
NARROW = 1.2  # spacings that a kernel must span for the trapezoid rule
HERMITE_NODES = 9
NO_MASS = 40.0  # below a log mass of -40 a node adds nothing to sums of floats
IMPOSSIBLE = 80.0  # below a log density of -80 at some m near the mean, a τ has no mass
KERNEL_CELLS = 2**17  # functions × targets × nodes at a time, to stay in the processor's cache
TAU_MOST = 7.0  # HalfNormal(1) beyond: e^-24


class _Functions:
    """Functions f_a, given by their logs at the nodes of their axes, to be smoothed by a normal kernel."""

    def __init__(self, axes: Sequence[Axis], log_f: Array) -> None:
        """Logs (functions × nodes of the longest axis); each axis is that of equally many, one after another."""
        self.axes, self.log_f, each = axes, log_f, len(log_f) // len(axes)
        theta, log_spacing = np.zeros((len(axes), log_f.shape[1])), np.full((len(axes), log_f.shape[1]), -np.inf)
        for row, axis in enumerate(axes):
            theta[row, : axis.size], log_spacing[row, : axis.size] = axis.theta, np.log(axis.spacing)
        self.theta = np.repeat(theta, each, axis=0)
        self.log_mass = log_f + np.repeat(log_spacing, each, axis=0)
        self.top = np.maximum(self.log_mass.max(axis=1, keepdims=True), LOWEST)
        self.mass = np.exp(self.log_mass - self.top)
        self.step, self.scale, self.centre = (
            np.repeat([[getattr(axis, name)] for axis in axes], each, axis=0) for name in ("step", "scale", "centre")
        )
        self.widest = max(float(axis.spacing_at(np.array(axis.ends)).max()) for axis in axes)

    @cached_property
    def splines(self) -> Splines:
        """The functions between their nodes."""
        return Splines(self.axes, self.log_f)

    def smooth(self, targets: Array, tau: Array | float) -> Array:
        """Log ∫ N(t; x, τ²) f_a(x) dx at targets t, shape (functions, targets), to which both are broadcast."""
        count = len(self.log_f), targets.shape[-1]
        targets, tau = np.broadcast_to(targets, count), np.broadcast_to(tau, count)
        some = max(KERNEL_CELLS // self.log_f.size, 1)
        parts = [slice(start, start + some) for start in range(0, count[1], some)]
        return np.concatenate([self._smooth(targets[:, part], tau[:, part]) for part in parts], axis=1)

    def _smooth(self, targets: Array, tau: Array) -> Array:
        """The trapezoid rule where the kernel is wider than the spacing at the mean of what it weighs.

        Elsewhere Gauss-Hermite on the spline of log f.
        """
        kernel = targets[:, :, None] - self.theta[:, None, :]
        kernel *= kernel
        kernel *= (-0.5 / tau**2)[:, :, None]
        np.exp(kernel, out=kernel)
        reached = (kernel @ self.mass[:, :, None])[:, :, 0]
        far = np.nonzero(reached < UNDERFLOW)  # too far from all mass to be told without its largest term
        reached[far] = 1
        out = np.log(reached) + self.top
        some_narrow = bool((tau < NARROW * self.widest).any())
        if some_narrow:
            where = (kernel @ (self.mass * self.theta)[:, :, None])[:, :, 0] / reached
        if far[0].size:
            terms = -0.5 * ((targets[far][:, None] - self.theta[far[0]]) / tau[far][:, None]) ** 2
            terms += self.log_mass[far[0]]
            top = np.maximum(terms.max(axis=1), LOWEST)
            weighed = np.exp(terms - top[:, None])
            total = weighed.sum(axis=1)
            with np.errstate(divide="ignore"):
                out[far] = np.log(total) + top
            if some_narrow:
                mean = np.sum(weighed * self.theta[far[0]], axis=1)
                where[far] = np.divide(mean, total, out=targets[far], where=total > 0)
        out -= np.log(tau * np.sqrt(2 * np.pi))
        if not some_narrow:
            return np.asarray(out)
        narrow = np.nonzero(tau < NARROW * self.step * np.hypot(self.scale, where - self.centre))
        if narrow[0].size:
            z, log_w = hermite_nodes()
            points = self.splines(narrow[0][:, None], targets[narrow][:, None] + tau[narrow][:, None] * z)
            out[narrow] = logsumexp(points + log_w, axis=1)
        return np.asarray(out)


def rows_of(values: Sequence[Array], filling: float) -> Array:
    """Arrays as rows, with fillings after the shorter ones; of arrays with several rows, all of the same number."""
    out = np.full((len(values), *values[0].shape[:-1], max(row.shape[-1] for row in values)), filling)
    for row, own in zip(out, values, strict=True):
        row[..., : own.shape[-1]] = own
    return out


@cache
def hermite_nodes() -> tuple[Array, Array]:
    """Nodes and log weights of the standard normal."""
    z, w = np.polynomial.hermite_e.hermegauss(HERMITE_NODES)
    return z, np.log(w / np.sqrt(2 * np.pi))


@dataclass(frozen=True)
class PoolGrid:
    """Posterior of (m, τ), through which agents share strength."""

    tau: Array  # shape (τ nodes,); nodes of τ
    m: list[Axis]  # nodes of m, one axis per τ
    log_mass: list[Array]  # log posterior mass of each (m, τ) node
    log_integral: list[Array]  # shape (agents, m nodes); log I_a(m, τ), one array per τ

    def log_priors(self, theta: Array, agents: Array) -> Array:
        """Log of ∫∫ N(θ; m, τ²) p(m, τ | data)/I_a(m, τ) dm dτ: what the other agents say of an agent's θ."""
        matters = np.flatnonzero([mass.max() > -NO_MASS for mass in self.log_mass])
        axes, tau = [self.m[k] for k in matters], self.tau[matters]
        log_f = rows_of(
            [
                self.log_mass[k] - np.log(axis.spacing) - self.log_integral[k][agents]
                for k, axis in zip(matters, axes, strict=True)
            ],
            LOWEST,
        )
        by_tau = _Functions(axes, log_f.reshape(-1, log_f.shape[2])).smooth(
            np.tile(theta, (tau.size, 1)), np.repeat(tau, len(agents))[:, None]
        )
        return np.asarray(np.logaddexp.reduce(by_tau.reshape(tau.size, *theta.shape)))


def _pool(grids: list[AgentGrid], method: Hierarchical, fine: float) -> PoolGrid:
    """Integrate every agent's likelihood over its normal population, for every (m, τ)."""
    widths = [moments(grid.axis.theta, grid.weights.sum(axis=1))[1] for grid in grids]
    smallest = max(0.5 * float(np.median(widths)) / np.sqrt(len(grids)), 1e-6)
    log_prior_m = method.log_density("m") or log_logistic
    tau, log_dtau = tau_nodes(method, smallest, fine)
    functions = _Functions([grid.axis for grid in grids], rows_of([grid.log_marginal for grid in grids], LOWEST))

    def log_joint(m: Array, s: Array | float) -> tuple[Array, Array]:
        integrals = functions.smooth(m, s)
        return integrals, integrals.sum(axis=0) + log_prior_m(m)

    axes = m_axes(log_joint, tau, fine)
    # with many agents most τ have no mass: what one m tells of each is enough to see it
    likely = log_joint(np.array([axis.centre for axis in axes]), tau)[1] + log_dtau
    with np.errstate(invalid="ignore"):
        kept = np.flatnonzero(~(np.isfinite(likely) & (likely < likely.max() - IMPOSSIBLE)))
    tau, log_dtau, axes = tau[kept], log_dtau[kept], [axes[k] for k in kept]
    sizes, ends = [axis.size for axis in axes], np.cumsum([axis.size for axis in axes])[:-1]
    integrals, mass = log_joint(np.concatenate([axis.theta for axis in axes]), np.repeat(tau, sizes))
    mass += np.log(np.concatenate([axis.spacing for axis in axes]))
    mass += np.repeat(log_dtau, sizes)
    mass -= logsumexp(mass)
    return PoolGrid(tau, axes, np.split(mass, ends), np.split(integrals, ends, axis=1))


def tau_nodes(method: Hierarchical, smallest: float, fine: float) -> tuple[Array, Array]:
    """Nodes of τ, and the log of its prior times their spacing."""
    step, log_prior = STEP_TAU / fine, method.log_density("tau")
    most = TAU_MOST if log_prior is None else FARTHEST
    x = step * (np.arange(int(np.ceil(np.arcsinh(most / smallest) / step))) + 0.5)  # midpoints: even in τ
    tau = smallest * np.sinh(x)
    return tau, np.log(step * smallest * np.cosh(x)) + (-0.5 * tau**2 if log_prior is None else log_prior(tau))


def m_axes(log_joint: LogJoint, tau: Array, fine: float) -> list[Axis]:
    """Nodes of m for every τ."""
    axes: list[Axis] = []
    ends = -FARTHEST, FARTHEST
    block = 4  # neighbouring τ share the axis of the largest of them; a smaller τ never needs a wider one
    for last in range(tau.size - 1, -1, -block):
        axis = _m_axis(log_joint, float(tau[last]), ends, fine)
        ends = float(axis.theta[0]), float(axis.theta[-1])
        axes += [axis] * min(block, last + 1)
    return axes[::-1]


def _m_axis(log_joint: LogJoint, tau: float, ends: tuple[float, float], fine: float) -> Axis:
    """Nodes of m where the posterior given τ has mass."""
    low, high = ends
    for _ in range(20):
        m = (low + high) / 2 + (high - low) / 2 * np.linspace(-1, 1, 33)
        density = log_joint(m, tau)[1]
        new_low, new_high = kept_range(m, density, (low, high))
        done = new_high - new_low > 0.4 * (high - low)
        low, high = new_low, new_high
        if done:
            break
    mass = np.exp(density - density.max())
    mean, sd = moments(m, mass / mass.sum())
    return Axis.over(low, high, min(max(mean, low), high), max(sd, (high - low) / 64), step=STEP_M / fine)


@dataclass(frozen=True)
class GridFit:
    """What the exact engine gives."""

    agents: list[AgentGrid]  # one posterior per agent
    pool: PoolGrid | None  # posterior of (m, τ), if agents share strength
    likelihoods: list[AgentLikelihood]  # one per agent, at any nodes


def wide(theta: Array) -> Array:
    """A wider logistic than any agent's prior, to place the likelihood tables of agents that share strength."""
    return log_logistic(theta / 1.5)


def fit_agents(counts: Counts, method: Hierarchical, *, fine: float = 1.0) -> GridFit:
    """Posterior grids of all agents; with `fine` times as many nodes, to check that they are fine enough."""
    kind = InflatedLikelihood if method.inflate else AgentLikelihood
    likelihoods = [kind(counts, agent, method) for agent in range(len(counts.agents))]
    shared = dict[int, Concentration]()  # agents look at much the same nodes of ρ
    for part in likelihoods:
        part.concentration = shared.setdefault(part.concentration.n_max, part.concentration)
    if not method.pool_agents or len(likelihoods) == 1:
        own = LogitPrior(method, "mu")
        return GridFit([agent_grid(part, own, fine) for part in likelihoods], None, likelihoods)
    grids = [agent_grid(part, wide, fine) for part in likelihoods]
    pool = _pool(grids, method, fine)
    axes = [grid.axis for grid in grids]
    log_priors = _log_priors(pool, axes, list(range(len(axes))))
    unresolved = list(range(len(grids)))
    for _ in range(8):  # where the other agents make it narrower than its likelihood, an agent needs a finer axis
        again = []
        for a in unresolved:
            finer = finer_axis(axes[a], log_priors[a] + _marginal_on(grids[a], axes[a]), fine)
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
        table = grid.loglik if axis is grid.axis else likelihood(axis.theta, grid.rho)
        finished.append(AgentGrid(axis, grid.rho, table, log_prior))
    return GridFit(finished, pool, likelihoods)


def _log_priors(pool: PoolGrid, axes: list[Axis], agents: list[int]) -> list[Array]:
    """What the pool says of these agents, at the nodes of their axes."""
    values = pool.log_priors(rows_of([axis.theta for axis in axes], 0.0), np.array(agents))
    return [row[: axis.size] for row, axis in zip(values, axes, strict=True)]


def _marginal_on(grid: AgentGrid, axis: Axis) -> Array:
    """Log L(θ) at the nodes of another axis."""
    if axis is grid.axis:
        return grid.log_marginal
    return Splines([grid.axis], grid.log_marginal[None])(0, axis.theta)


def finer_axis(axis: Axis, density: Array, fine: float) -> Axis | None:
    """An axis that resolves this log density, or None where `axis` does."""
    log_mass = density + np.log(axis.spacing)
    mass = np.exp(log_mass - log_mass.max())
    mean, sd = moments(axis.theta, mass / mass.sum())
    if sd > 3 * fine * float(axis.spacing_at(np.asarray(mean))):
        return None
    low, high = kept_range(axis.theta, density, (float(axis.theta[0]), float(axis.theta[-1])))
    return Axis.over(low, high, mean, max(sd, (high - low) / 64), step=STEP / fine)
