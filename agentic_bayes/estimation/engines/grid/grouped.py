"""The grouped model by quadrature: the groups of one agent's tasks share strength, and one ρ.

    logit μ_g = m + τ z_g,   z_g ~ N(0, 1);   tasks within a group as in the hierarchical model, with the agent's ρ

Groups play the part that agents play in `quadrature`, for every node of ρ at once. Given (m, τ, ρ) they are
independent, so that

    p(m, τ, ρ | data) ∝ p(m) p(τ) p(ρ) Π_g I_g(m, τ, ρ),     I_g(m, τ, ρ) = ∫ N(θ; m, τ²) L_g(θ | ρ) dθ,
    p(θ_g, ρ | data)  ∝ L_g(θ_g | ρ) ∫∫ N(θ_g; m, τ²) p(m, τ, ρ | data)/I_g(m, τ, ρ) dm dτ.

Both integrals are products of one matrix of normal densities per τ with a table over ρ. A group without data has
L_g = I_g = 1: its posterior is the predictive distribution of a new group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.grid.agent_grid import AgentGrid, AgentLikelihood, agent_grid
from agentic_bayes.estimation.engines.grid.axes import (
    Axis,
    Concentration,
    RhoAxis,
    Splines,
    kept_range,
    log_logistic,
    logsumexp,
    moments,
    share_of,
)
from agentic_bayes.estimation.engines.grid.quadrature import finer_axis, hermite_nodes, m_axes, tau_nodes, wide
from agentic_bayes.estimation.methods.options import Hierarchical, LogDensity
from agentic_bayes.numerics import Array

LOWEST = -700.0  # log of what counts as nothing next to the largest value of a table
RHO_NODES = 40


class GroupLikelihood(AgentLikelihood):
    """The likelihood of one group on the agent's nodes of ρ."""

    rho: RhoAxis

    def place(self, log_prior: LogDensity, fine: float) -> tuple[float, float, RhoAxis]:
        """The range of θ of this group, and the nodes of ρ that all groups share."""
        low, high, _ = super().place(log_prior, fine)
        return low, high, self.rho


@dataclass(frozen=True)
class GroupGrid(AgentGrid):
    """As an agent's grid, but what the other groups say of θ depends on ρ: `log_prior` is (θ nodes, ρ nodes)."""

    @cached_property
    def log_weights(self) -> Array:
        """Log posterior mass of every node, normalised."""
        mass = self.loglik + self.rho.log_weight + self.log_prior + np.log(self.axis.spacing)[:, None]
        return np.asarray(mass - logsumexp(mass))


class _RhoTables:
    """Functions of (x, ρ), given by their logs at nodes of x, to be smoothed by a normal kernel in x."""

    def __init__(self, axis: Axis, log_f: Array) -> None:
        self.axis, self.log_f = axis, log_f
        mass = log_f + np.log(axis.spacing)[:, None]
        self.top = np.max(mass, axis=0)
        self.top = np.where(np.isfinite(self.top), self.top, 0.0)
        self.mass = np.exp(np.maximum(mass - self.top, LOWEST))
        self.mass[mass - self.top < LOWEST] = 0.0
        self.splines: Splines | None = None

    def smooth(self, targets: Array, tau: float) -> Array:
        """Log ∫ N(t; x, τ²) f(x, ρ) dx at targets t, shape (targets, ρ nodes).

        The trapezoid rule where the kernel is wider than the spacing at the mean of what it weighs, else Gauss-Hermite.
        """
        kernel = np.exp(-0.5 * ((targets[:, None] - self.axis.theta) / tau) ** 2)
        weighed = kernel * self.mass.sum(axis=1)
        reached = weighed.sum(axis=1)
        where = np.divide(weighed @ self.axis.theta, reached, out=targets.astype(float), where=reached > 0)
        narrow = tau < 1.2 * self.axis.spacing_at(where)
        with np.errstate(divide="ignore"):
            out = np.log(kernel @ self.mass) + self.top - np.log(tau * np.sqrt(2 * np.pi))
        if narrow.any():
            z, log_w = hermite_nodes()
            points = targets[narrow, None] + tau * z
            if self.splines is None:
                floor = self.log_f.max(axis=0) + LOWEST
                finite = np.maximum(self.log_f, np.where(np.isfinite(floor), floor, LOWEST))
                self.splines = Splines([self.axis], finite.T)
            by_rho = self.splines(np.arange(self.log_f.shape[1]), points[:, :, None])
            out[narrow] = logsumexp(by_rho + log_w[:, None], axis=1)
        return np.asarray(out)


@dataclass(frozen=True)
class GroupPool:
    """Posterior of (m, τ, ρ), through which groups share strength."""

    tau: Array  # shape (τ nodes,)
    m: list[Axis]  # nodes of m, one axis per τ
    log_mass: list[Array]  # shape (m nodes, ρ nodes) per τ; log posterior mass
    log_integral: list[Array]  # shape (groups, m nodes, ρ nodes) per τ; log I_g(m, τ, ρ), 0 without data

    def log_prior(self, group: int, theta: Array) -> Array:
        """Log of what the other groups say of this group's θ, shape (θ nodes, ρ nodes)."""
        total: Array | None = None
        for k, axis in enumerate(self.m):
            with np.errstate(invalid="ignore"):
                density = self.log_mass[k] - self.log_integral[k][group] - np.log(axis.spacing)[:, None]
            density = np.where(np.isfinite(self.log_mass[k]), density, -np.inf)
            part = _RhoTables(axis, density).smooth(theta, float(self.tau[k]))
            total = part if total is None else np.logaddexp(total, part)
        assert total is not None
        return total


@dataclass(frozen=True)
class GroupedFit:
    """What the engine gives for one agent."""

    groups: list[GroupGrid]  # one per group, the last a new one
    pool: GroupPool
    rho: RhoAxis
    likelihoods: list[GroupLikelihood]

    @cached_property
    def log_rho(self) -> Array:
        """Log posterior mass of every node of ρ."""
        return np.asarray(np.logaddexp.reduce([logsumexp(part, axis=0) for part in self.pool.log_mass]))


def fit_groups(counts: Counts, method: Hierarchical, *, fine: float = 1.0) -> GroupedFit:
    """The posterior of one agent, whose groups `counts` holds as agents, the last without data.

    With `fine` times as many nodes, to check that they are fine enough.
    """
    likelihoods = [GroupLikelihood(counts, group, method) for group in range(len(counts.agents))]
    concentration = Concentration(int(counts.trials.max(initial=1)), method)
    rho = _place_rho([part for part in likelihoods if part.n.size], concentration, fine)
    for likelihood in likelihoods:
        likelihood.concentration, likelihood.rho = concentration, rho
    grids = [agent_grid(likelihood, wide, fine) for likelihood in likelihoods]
    seen = np.array([part.n.size > 0 for part in likelihoods])
    pool = _pool(grids, seen, method, fine)
    finished = []
    for group, (grid, likelihood) in enumerate(zip(grids, likelihoods, strict=True)):
        axis, table, log_prior = grid.axis, grid.loglik, pool.log_prior(group, grid.axis.theta)
        for _ in range(8):  # where the other groups make it narrower than its likelihood, it needs a finer axis
            better = finer_axis(axis, logsumexp(table + log_prior + rho.log_weight, axis=1), fine)
            if better is None:
                break
            axis = better
            table, log_prior = likelihood(axis.theta, rho), pool.log_prior(group, axis.theta)
        # the weight of ρ is in what the pool says already
        finished.append(GroupGrid(axis, rho, table, log_prior - rho.log_weight))
    return GroupedFit(finished, pool, rho, likelihoods)


def _place_rho(likelihoods: list[GroupLikelihood], concentration: Concentration, fine: float) -> RhoAxis:
    """Nodes of ρ where all groups together leave it mass."""
    ends = concentration.ends
    for likelihood in likelihoods:
        likelihood.concentration = concentration
    low, high = ends
    for _ in range(12):
        rho = concentration.over(low, high, RHO_NODES)
        total = rho.log_weight.copy()
        for likelihood in likelihoods:
            likelihood.rho = rho
            grid = agent_grid(likelihood, wide, 0.75)
            total += logsumexp(grid.loglik + (wide(grid.axis.theta) + np.log(grid.axis.spacing))[:, None], axis=0)
        new = kept_range(rho.v, total, (low, high))
        shrunk = share_of(new, (low, high))
        low, high = new
        if shrunk > 0.6:
            break
    return concentration.over(low, high, int(max(RHO_NODES, 5 * (high - low)) * fine))


def _pool(grids: list[AgentGrid], seen: Array, method: Hierarchical, fine: float) -> GroupPool:
    """Integrate every group's likelihood over its normal population, for every (m, τ, ρ)."""
    rho, known = grids[0].rho, [grid for grid, has_data in zip(grids, seen, strict=True) if has_data]
    widths = [moments(grid.axis.theta, grid.weights.sum(axis=1))[1] for grid in known or grids]
    smallest = max(0.5 * float(np.median(widths)) / np.sqrt(max(len(known), 1)), 1e-6)
    log_prior_m = method.log_density("m") or log_logistic
    tau, log_dtau = tau_nodes(method, smallest, fine)
    tables = [_RhoTables(grid.axis, grid.loglik) for grid in known]

    def joint(m: Array, s: float) -> tuple[Array, Array]:
        integrals = np.zeros((seen.size, m.size, rho.v.size))  # a group without data has I = 1
        for group, table in zip(np.flatnonzero(seen), tables, strict=True):
            integrals[group] = table.smooth(m, s)
        return integrals, integrals.sum(axis=0) + log_prior_m(m)[:, None] + rho.log_weight

    def over_rho(m: Array, s: float) -> tuple[Array, Array]:
        integrals, density = joint(m, s)
        return integrals, np.maximum(logsumexp(density, axis=1), -1e300)

    axes = m_axes(over_rho, tau, fine)
    integrals, mass = [], []
    for k, axis in enumerate(axes):
        integral, density = joint(axis.theta, float(tau[k]))
        integrals.append(integral)
        mass.append(density + np.log(axis.spacing)[:, None] + log_dtau[k])
    total = logsumexp(np.array([logsumexp(part) for part in mass]))
    return GroupPool(tau, axes, [part - total for part in mass], integrals)
