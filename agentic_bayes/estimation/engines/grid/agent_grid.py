"""The posterior of one agent on a grid of θ = logit μ times ρ: its likelihood, and where its grid must lie."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.grid.axes import (
    FARTHEST,
    Axis,
    Concentration,
    LogitPrior,
    Range,
    RhoAxis,
    check_reached,
    kept_range,
    legendre_between,
    logsumexp,
    share_of,
    softplus,
    widened_range,
)
from agentic_bayes.estimation.engines.grid.betabinomial import log_likelihood_table
from agentic_bayes.estimation.methods.options import Hierarchical, LogDensity
from agentic_bayes.numerics import Array

RHO_NODES, MOST_RHO_NODES = 32, 512
STEP = 0.11  # of x in θ = centre + scale·sinh(x)


@dataclass(frozen=True)
class AgentGrid:
    """Likelihood of one agent on a grid and, once known, its posterior weights."""

    axis: Axis  # nodes of θ
    rho: RhoAxis  # nodes of ρ
    loglik: Array  # shape (θ nodes, ρ nodes); log likelihood
    # shape (θ nodes,); log of the density that multiplies the likelihood of θ: the prior, or what the other agents say
    # of it
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
        return np.exp(-softplus(-self.axis.theta))[:, None]

    @cached_property
    def one_minus_mu(self) -> Array:
        """1 - μ at the nodes, as a column."""
        return np.exp(-softplus(self.axis.theta))[:, None]


class AgentLikelihood:
    """The likelihood table of one agent at any nodes."""

    def __init__(self, counts: Counts, agent: int, method: Hierarchical) -> None:
        self.c, self.n, self.size = counts.groups(agent)
        self.concentration = Concentration(int(self.n.max(initial=1)), method)

    def __call__(self, theta: Array, rho: RhoAxis) -> Array:
        """Log likelihood at these nodes, shape (θ nodes, ρ nodes)."""
        log_mu, log_nu = -softplus(-theta), -softplus(theta)
        return log_likelihood_table(self.c, self.n, self.size, log_mu, log_nu, rho.rho, rho.one_minus_rho)

    def place(self, log_prior: LogDensity, fine: float) -> tuple[float, float, RhoAxis]:
        """The range of θ and the nodes of ρ that hold all but a negligible part of the posterior."""
        low, high, v_low, v_high = _locate(self, log_prior)
        # long tasks spread ρ over many orders of magnitude; where θ is sharp, a quantile sees single nodes of ρ
        nodes = max(RHO_NODES, 5 * (v_high - v_low), min(7 * (v_high - v_low) / (high - low), MOST_RHO_NODES))
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


def _locate(likelihood: AgentLikelihood, log_prior: LogDensity) -> tuple[float, float, float, float]:
    """Ranges of θ and v that hold all but a negligible part of one agent's posterior."""
    theta_ends, v_ends = theta_limits(log_prior), likelihood.concentration.ends
    theta_range, v_range = theta_ends, v_ends
    for _ in range(40):
        theta = (theta_range[0] + theta_range[1]) / 2 + (theta_range[1] - theta_range[0]) / 2 * np.linspace(-1, 1, 49)
        rho = likelihood.concentration.over(*v_range, 32)
        mass = likelihood(theta, rho) + log_prior(theta)[:, None] + rho.log_weight
        by_theta, by_v = logsumexp(mass, axis=1), logsumexp(mass, axis=0)
        wide = widened_range(by_theta, theta_range, theta_ends), widened_range(by_v, v_range, v_ends)
        if wide != (theta_range, v_range):
            theta_range, v_range = wide
            continue
        new_theta, new_v = kept_range(theta, by_theta, theta_range), kept_range(rho.v, by_v, v_range)
        # until θ is resolved, the likelihood at its nodes says nothing about ρ
        resolved = share_of(new_theta, theta_range) > 0.25
        if not resolved:
            new_v = v_range
        shrunk = min(share_of(new_theta, theta_range), share_of(new_v, v_range))
        theta_range, v_range = new_theta, new_v
        if resolved and shrunk > 0.6:
            break
    check_reached(by_theta, (float(theta[0]), float(theta[-1])), (-FARTHEST, FARTHEST), "mu")
    if likelihood.concentration.in_log_kappa:
        check_reached(by_v, v_range, likelihood.concentration.limits, "rho")
    return (*theta_range, *v_range)


def theta_limits(log_prior: LogDensity) -> Range:
    """The range of θ that is looked at, within the support of its prior."""
    return log_prior.ends(-FARTHEST, FARTHEST) if isinstance(log_prior, LogitPrior) else (-FARTHEST, FARTHEST)


@dataclass(frozen=True)
class InflatedAxis(RhoAxis):
    """Nodes of ρ times nodes of the probabilities that a task never or always passes."""

    # shape (nodes,); weights of the point mass at p = 0, of the one at p = 1, and of the Beta distribution
    never: Array
    always: Array
    rest: Array
    distinct: RhoAxis  # nodes of ρ alone
    place: Array  # shape (nodes,); which of these each node has


class InflatedLikelihood(AgentLikelihood):
    """As `AgentLikelihood`, with point masses at p = 0 and p = 1 next to the Beta distribution.

    Their weights are (never, always, rest) ~ Dirichlet(1, 1, 4), laid out in s = never + always and
    t = never/(never + always), whose prior density is 20 s (1 - s)^3.
    """

    def __call__(self, theta: Array, rho: RhoAxis) -> Array:
        """Log likelihood at these nodes, shape (θ nodes, nodes of ρ and of the weights)."""
        if not isinstance(rho, InflatedAxis):
            return super().__call__(theta, rho)
        at = -softplus(-theta), -softplus(theta), rho.distinct.rho, rho.distinct.one_minus_rho
        mixed = (self.c > 0) & (self.c < self.n)
        of_mixed = log_likelihood_table(self.c[mixed], self.n[mixed], self.size[mixed], *at)
        table = of_mixed[:, rho.place] + self.size[mixed].sum() * np.log(rho.rest)
        for c, n, size in zip(self.c[~mixed], self.n[~mixed], self.size[~mixed], strict=True):
            beta = np.exp(log_likelihood_table(np.array([c]), np.array([n]), np.array([1]), *at))
            seen = beta[:, rho.place]
            seen *= rho.rest
            seen += rho.never if c == 0 else rho.always
            np.log(seen, out=seen)
            seen *= size
            table += seen
        return np.asarray(table)

    def axis(self, ranges: list[tuple[float, float]], nodes: tuple[int, int, int]) -> InflatedAxis:
        """Product of Gauss-Legendre nodes of v, s and t."""
        rho = self.concentration.over(*ranges[0], nodes[0])
        (s, log_s), (t, log_t) = (legendre_between(*ends, n) for ends, n in zip(ranges[1:], nodes[1:], strict=True))
        a, b, c = np.indices(nodes).reshape(3, -1)
        s, t = s[b], t[c]
        log_weight = rho.log_weight[a] + log_s[b] + log_t[c] + np.log(s) + 3 * np.log1p(-s)
        nodes_of_rho = rho.v[a], rho.rho[a], rho.one_minus_rho[a]
        return InflatedAxis(*nodes_of_rho, log_weight, s * t, s * (1 - t), 1 - s, rho, a)

    def place(self, log_prior: LogDensity, fine: float) -> tuple[float, float, RhoAxis]:
        """The range of θ and the nodes of ρ and of the weights that hold all but a negligible part."""
        ends = [theta_limits(log_prior), self.concentration.ends, (0.0, 1.0), (0.0, 1.0)]
        ranges, nodes = list(ends), (16, 8, 8)
        for _ in range(25):
            theta = np.linspace(*ranges[0], 33)
            axis = self.axis(ranges[1:], nodes)
            mass = (self(theta, axis) + axis.log_weight + log_prior(theta)[:, None]).reshape(theta.size, *nodes)
            share = np.exp(mass - mass.max())
            with np.errstate(divide="ignore"):
                marginal = [np.log(share.sum(axis=tuple(j for j in range(4) if j != i))) for i in range(4)]
            cube = (axis.v, 1 - axis.rest, axis.never / (1 - axis.rest))
            first = ((slice(None), 0, 0), (0, slice(None), 0), (0, 0, slice(None)))
            coordinates = [theta, *(part.reshape(nodes)[at] for part, at in zip(cube, first, strict=True))]
            wide = [widened_range(m, now, end) for m, now, end in zip(marginal, ranges, ends, strict=True)]
            if wide[0] != ranges[0]:
                ranges[0] = wide[0]
                continue
            new = [kept_range(x, m, now) for x, m, now in zip(coordinates, marginal, ranges, strict=True)]
            resolved = share_of(new[0], ranges[0]) > 0.25
            if not resolved:
                new[1:] = ranges[1:]
            shrunk = min(map(share_of, new, ranges))
            ranges = new
            if resolved and shrunk > 0.6:
                break
        of_rho = max(20, int(5 * (ranges[1][1] - ranges[1][0])))
        return *ranges[0], self.axis(ranges[1:], (int(of_rho * fine), int(12 * fine), int(10 * fine)))


def agent_grid(likelihood: AgentLikelihood, log_prior: LogDensity, fine: float) -> AgentGrid:
    """The likelihood table of one agent where its posterior under `log_prior` has mass."""
    low, high, rho = likelihood.place(log_prior, fine)
    step, position = STEP, 0
    cut = theta_limits(log_prior) != (-FARTHEST, FARTHEST)
    for _ in range(4):
        centre, scale = likelihood.sharpest_scale(float(rho.rho[position]))
        axis = Axis.over(low, high, min(max(centre, low), high), scale, step=step / fine, cut=cut)
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
