"""Posterior of every estimand from the quadrature engine's grids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from agentic_bayes import numerics
from agentic_bayes.estimation.engines.grid.agent_grid import AgentGrid, AgentLikelihood
from agentic_bayes.estimation.engines.grid.axes import Axis, cubic_spline, logsumexp, spline_at
from agentic_bayes.estimation.engines.grid.betabinomial import mean_power
from agentic_bayes.estimation.engines.grid.quadrature import GridFit, PoolGrid
from agentic_bayes.estimation.posterior import (
    CHAINS,
    DRAWS,
    Array,
    CIKind,
    Counts,
    Estimand,
    Stats,
    apply_metric,
    interval_of_draws,
    mean_over_tasks,
    nothing_scored,
)
from agentic_bayes.formatting import Metric

__all__ = [
    "ExactPosterior",
    "draw_theta",
    "of_tail",
]

REFINE = 2  # nodes of θ per half node of the grid, for distribution functions
NEGLIGIBLE = 80.0  # log mass below the greatest
STENCIL = 20  # nodes of an interpolating polynomial
SECANT_STEPS = 3
NEWTON_STEPS = 2
RHO_CELLS = 128  # for draws of ρ


@dataclass(frozen=True)
class ExactPosterior:
    """Posterior of every estimand without Monte-Carlo error in any mean, nor in the quantiles of `population`."""

    counts: Counts
    ci_prob: float  # of the intervals
    ci_kind: CIKind
    random_seed: int  # for quantiles of `tasks` and `task` and for draws
    fit: GridFit  # the posterior grids
    wanted: tuple[tuple[Metric, int], ...]  # what will be asked for; computed together
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def estimands(self) -> tuple[Estimand, ...]:
        """All three."""
        return ("population", "tasks", "task")

    # -- closed forms on the grid ------------------------------------------------------------------------------

    def _power(self, grid: AgentGrid, metric: Metric, c: int, n: int, k: int) -> Array:
        """E t for t = p^k (pass^k) or (1-p)^k (pass@k = 1 - t), given (μ, ρ) and c of n, at every node."""
        mu, failures = (grid.mu, c) if metric == "pass_pow_k" else (grid.one_minus_mu, n - c)
        return mean_power(mu, grid.rho.rho, grid.rho.one_minus_rho, failures, n, k)

    def aggregate(self, agent: int, estimand: Estimand, metric: Metric, k: int) -> Stats:
        """Statistics of a new task (`population`) or of the mean over the scored tasks (`tasks`)."""
        n_tasks = int(self.counts.scored[agent].sum())
        grid = self.fit.agents[agent]
        if estimand == "population":
            table = self._power(grid, metric, 0, 0, k)
            mean, second = (float(np.sum(grid.weights * power)) for power in (table, table**2))
            lower, median, upper = self._population_interval(agent, metric, k)
            sd = float(np.sqrt(max(second - mean**2, 0)))
            return Stats(float(of_tail(mean, metric)), sd, median, lower, upper, n_tasks)
        if n_tasks == 0:
            return nothing_scored()
        mean, sd = self._tasks_moments(agent, metric, k)
        draws = self.draws(agent, "tasks", metric, k)
        lower, upper = interval_of_draws(draws, self.ci_prob, self.ci_kind)
        return Stats(mean, sd, float(np.median(draws)), lower, upper, n_tasks)

    def _tasks_moments(self, agent: int, metric: Metric, k: int) -> tuple[float, float]:
        """Mean and sd of the mean over tasks: the variance between nodes plus the one within."""
        grid = self.fit.agents[agent]
        centre = np.zeros(grid.loglik.shape)
        within = np.zeros(grid.loglik.shape)
        for c, n, size in zip(*(part.tolist() for part in self.counts.groups(agent)), strict=True):
            first, second = (self._power(grid, metric, c, n, power) for power in (k, 2 * k))
            centre += size * first
            within += size * np.maximum(second - first**2, 0)  # rounding may take it below
        total = int(self.counts.scored[agent].sum())
        centre /= total
        mean = float(np.sum(grid.weights * centre))
        variance = float(np.sum(grid.weights * ((centre - mean) ** 2 + within / total**2)))
        return float(of_tail(mean, metric)), float(np.sqrt(variance))

    def per_task(self, agent: int, metric: Metric, k: int) -> Stats:
        """Statistics of every task, arrays of shape (tasks,); computed once per distinct (c, n)."""
        grid = self.fit.agents[agent]
        c, n, place = self.counts.pairs(agent)
        moments = np.array(
            [
                [float(np.sum(grid.weights * self._power(grid, metric, ci, ni, power))) for power in (k, 2 * k)]
                for ci, ni in zip(c.tolist(), n.tolist(), strict=True)
            ]
        )
        mean = of_tail(moments[:, 0], metric)
        sd = np.sqrt(np.clip(moments[:, 1] - moments[:, 0] ** 2, 0, None))
        columns = []
        for values in apply_metric(self._pair_draws(agent), metric, k).T:
            columns.append((np.median(values), *interval_of_draws(values, self.ci_prob, self.ci_kind)))
        median, lower, upper = np.array(columns).T
        return Stats(mean[place], sd[place], median[place], lower[place], upper[place])

    # -- the distribution of the population's metric ------------------------------------------------------------

    def _population_interval(self, agent: int, metric: Metric, k: int) -> tuple[float, float, float]:
        """Lower end, median and upper end."""
        tail = (1 - self.ci_prob) / 2
        quantile = partial(self.quantile, agent, metric, k)
        lower, median, upper = quantile(np.array([tail, 0.5, 1 - tail]))
        if self.ci_kind == "hdi":
            lower, upper = numerics.hdi_from_quantiles(quantile, self.ci_prob, points=41, rounds=3)
        return float(lower), float(median), float(upper)

    def _fine(self, agent: int) -> _FineGrid:
        key = agent, "fine"
        if key not in self._cache:
            self._cache[key] = _FineGrid.of(self.fit.agents[agent])
        fine: _FineGrid = self._cache[key]
        return fine

    def cdf(self, agent: int, metric: Metric, k: int, y: Array) -> Array:
        """Posterior probability that the population's metric is at most y."""
        return _Distribution(self._fine(agent), metric, k).cdf(y)

    def at_least(self, agent: int, metric: Metric, k: int, bar: float) -> float:
        """Posterior probability that the population's metric is at least `bar`."""
        return float(np.clip(1 - self.cdf(agent, metric, k, np.array([bar]))[0], 0, 1)) if bar > 0 else 1.0

    def quantile(self, agent: int, metric: Metric, k: int, q: Array) -> Array:
        """Inverse of `cdf` at probabilities q."""
        return _Distribution(self._fine(agent), metric, k).quantile(q)

    def density(self, agent: int, metric: Metric, k: int, points: int = 400) -> tuple[Array, Array]:
        """Density of the population's metric, from its own distribution function."""
        low, high = self.quantile(agent, metric, k, np.array([1e-4, 1 - 1e-4]))
        edges = np.linspace(low, high, points + 1)
        return (edges[:-1] + edges[1:]) / 2, np.diff(self.cdf(agent, metric, k, edges)) / np.diff(edges)

    # -- draws --------------------------------------------------------------------------------------------------

    @cached_property
    def pool_draws(self) -> tuple[Array, Array] | None:
        """Draws of m and τ, shape (draws,); None where agents do not share strength."""
        if self.fit.pool is None:
            return None
        return _draw_pool(self.fit.pool, np.random.default_rng([self.random_seed, 0]), CHAINS * DRAWS)

    @cached_property
    def _hyper(self) -> tuple[Array, Array]:
        """Draws of θ and ρ, shape (draws, agents); agents that share strength belong together row by row."""
        count = CHAINS * DRAWS
        theta, rho = np.empty((2, count, len(self.fit.agents)))
        m, tau = self.pool_draws or (None, None)
        for agent, grid in enumerate(self.fit.agents):
            own = np.random.default_rng([self.random_seed, 1, self.counts.streams[agent]])
            theta[:, agent] = draw_theta(grid, own, count, m, tau)
            rho[:, agent] = _draw_rho(grid, self.fit.likelihoods[agent], own, theta[:, agent])
        return theta, rho

    def hyper_draws(self) -> tuple[Array, Array]:
        """Draws of μ and ρ, shape (draws, agents)."""
        theta, rho = self._hyper
        return np.exp(-np.logaddexp(0, -theta)), rho

    def _given_data(self, agent: int, c: Array, n: Array) -> tuple[Array, Array]:
        """Beta parameters of p given data, shape (draws, len(c))."""
        theta, rho = (part[:, agent, None] for part in self._hyper)
        kappa = (1 - rho) / rho
        alpha = np.exp(-np.logaddexp(0, -theta)) * kappa + c
        beta = np.exp(-np.logaddexp(0, theta)) * kappa + (n - c)
        return np.maximum(alpha, TINY), np.maximum(beta, TINY)

    def draws(self, agent: int, estimand: Estimand, metric: Metric, k: int) -> Array:
        """Posterior draws of `population` or `tasks`, shape (chains × draws,)."""
        key = agent, estimand, metric, k
        if key not in self._cache:
            wanted: Sequence[tuple[Metric, int]] = self.wanted if (metric, k) in self.wanted else [(metric, k)]
            if estimand == "population":
                theta, rho = (part[:, agent] for part in self._hyper)
                values = [self._population_draws(theta, rho, *pair) for pair in wanted]
            else:
                c, n, sizes = self.counts.groups(agent)
                rng = np.random.default_rng([self.random_seed, 2, self.counts.streams[agent]])
                values = mean_over_tasks(*self._given_data(agent, c, n), sizes, wanted, rng)
            for pair, drawn in zip(wanted, values, strict=True):
                self._cache[agent, estimand, *pair] = drawn
        result: Array = self._cache[key]
        return result

    def _population_draws(self, theta: Array, rho: Array, metric: Metric, k: int) -> Array:
        sign = -1 if metric == "pass_pow_k" else 1
        tail = mean_power(np.exp(-np.logaddexp(0, sign * theta)), rho, 1 - rho, 0, 0, k)
        return tail if metric == "pass_pow_k" else 1 - tail

    def _pair_draws(self, agent: int) -> Array:
        """Draws of p for every distinct (c, n), shape (draws, pairs)."""
        key = agent, "pairs"
        if key not in self._cache:
            c, n, _ = self.counts.pairs(agent)
            rng = np.random.default_rng([self.random_seed, 3, self.counts.streams[agent]])
            self._cache[key] = rng.beta(*self._given_data(agent, c, n))
        drawn: Array = self._cache[key]
        return drawn

    def task_draws(self, agent: int, tasks: Array | None = None) -> Array:
        """Posterior draws of p of all tasks, or of those with these indices, shape (chains × draws, tasks)."""
        rng = np.random.default_rng([self.random_seed, 4, self.counts.streams[agent]])
        which = slice(None) if tasks is None else tasks
        return rng.beta(*self._given_data(agent, self.counts.successes[agent, which], self.counts.trials[agent, which]))


def of_tail(tail: Array | float, metric: Metric) -> Array:
    """The mean of a metric from that of p^k (pass^k) or (1-p)^k (pass@k); weights sum to 1 up to rounding only."""
    return np.clip(tail if metric == "pass_pow_k" else 1 - tail, 0, 1)


TINY = 1e-300  # Beta parameters that underflow: p is then 0 or 1


@dataclass(frozen=True)
class _FineGrid:
    """The posterior of θ given each ρ, integrated: distribution functions along a finer axis.

    A density that its nodes resolve is the sinc interpolant of them: C(x) = Σ m_i (½ + Si(π(x - x_i)/h)/π). That asks
    for twice as many nodes as the trapezoid rule does; the log density, which is smoother, is interpolated to them.
    Between the nodes of the finer axis stands the quintic that takes C, C' and C'' from both ends.
    """

    axis: Axis  # θ of the fine nodes, uniform in x
    rho: Array  # shape (ρ nodes,); ρ, 1 - ρ, and the posterior mass of this ρ
    one_minus_rho: Array
    mass: Array
    # shape (nodes, ρ nodes); posterior mass of θ up to this node and of this ρ, and its derivatives by the number of
    # the node
    cumulative: Array
    density: Array
    slope: Array

    @classmethod
    def of(cls, grid: AgentGrid) -> _FineGrid:
        coarse = grid.axis
        size = 2 * coarse.size - 1
        axis = Axis(coarse.centre, coarse.scale, coarse.start, coarse.step / 2 / REFINE, REFINE * (size - 1) + 1)
        matters = grid.weights.sum(axis=0) > 1e-14
        mass = np.empty((size, int(matters.sum())))
        mass[::2] = grid.weights[:, matters]
        mass[1::2] = np.exp(_at_midpoints(grid.log_weights[:, matters], grid.log_weights.max()))
        mass /= mass.sum()
        rho, one_minus_rho = grid.rho.rho[matters], grid.rho.one_minus_rho[matters]
        return cls(axis, rho, one_minus_rho, mass.sum(axis=0), *(matrix @ mass for matrix in _sinc_integrals(size)))

    def power(self, place: Array, metric: Metric, k: int) -> Array:
        """p^k of a new task (pass^k) or (1-p)^k (pass@k), on average, at any number of a node; shape (…, ρ nodes)."""
        theta = self.axis.centre + self.axis.scale * np.sinh(self.axis.start + self.axis.step * place)
        share = np.exp(-np.logaddexp(0, -theta if metric == "pass_pow_k" else theta))
        return mean_power(share, self.rho, self.one_minus_rho, 0, 0, k)

    def below(self, cell: Array, part: Array) -> tuple[Array, Array]:
        """C and its derivative at `cell` + `part`, node numbers of shape (…, ρ nodes)."""
        column = np.arange(self.rho.size)
        c0, c1 = self.cumulative[cell, column], self.cumulative[cell + 1, column]
        d0, d1 = self.density[cell, column], self.density[cell + 1, column]
        s0, s1 = self.slope[cell, column], self.slope[cell + 1, column]
        rise, bend = c1 - c0 - d0 - s0 / 2, d1 - d0 - s0
        third = 10 * rise - 4 * bend + (s1 - s0) / 2
        fourth = -15 * rise + 7 * bend - (s1 - s0)
        fifth = 6 * rise - 3 * bend + (s1 - s0) / 2
        value = c0 + part * (d0 + part * (s0 / 2 + part * (third + part * (fourth + part * fifth))))
        density = d0 + part * (s0 + part * (3 * third + part * (4 * fourth + part * 5 * fifth)))
        return value, density


def _at_midpoints(log_mass: Array, top: float) -> Array:
    """Log mass halfway between nodes, by the polynomial through the nearest nodes."""
    log_mass = np.maximum(log_mass, top - NEGLIGIBLE)
    middle = _midpoint_weights(len(log_mass)) @ log_mass
    # where a prior ends abruptly no polynomial fits
    below, above = (pick(log_mass[:-1], log_mass[1:]) for pick in (np.minimum, np.maximum))
    return np.asarray(np.clip(middle, below, above + 1))


@lru_cache(maxsize=64)
def _midpoint_weights(size: int) -> Array:
    """Lagrange's weights of the nodes (columns) for the midpoints (rows); at the ends from the outermost."""
    nodes = np.arange(STENCIL)
    others = nodes[:, None] != nodes
    weights = np.zeros((size - 1, size))
    for row in range(size - 1):
        first = min(max(row - STENCIL // 2 + 1, 0), size - STENCIL)
        ratio = np.where(others, row + 0.5 - first - nodes, 1) / np.where(others, nodes[:, None] - nodes, 1)
        weights[row, first : first + STENCIL] = ratio.prod(axis=1)
    return weights


@lru_cache(maxsize=64)
def _sinc_integrals(size: int) -> tuple[Array, Array, Array]:
    """½ + Si(πu)/π and its two derivatives by the fine node, at fine nodes (rows) for masses at nodes (columns)."""
    from scipy.special import sici

    fine, coarse = np.arange(REFINE * (size - 1) + 1), np.arange(size)
    u = np.arange(-fine[-1], fine[-1] + 1) / REFINE
    with np.errstate(invalid="ignore"):
        derivative = np.where(u == 0, 0, (np.cos(np.pi * u) - np.sinc(u)) / u)
    place = fine[:, None] - REFINE * coarse + fine[-1]
    integral = 0.5 + sici(np.pi * u)[0] / np.pi
    return integral[place], np.sinc(u)[place] / REFINE, derivative[place] / REFINE**2


class _Distribution:
    """Distribution function and quantiles of pass@k or pass^k of a new task."""

    def __init__(self, fine: _FineGrid, metric: Metric, k: int) -> None:
        self.fine, self.metric, self.k = fine, metric, k
        self.tail = fine.power(np.arange(fine.axis.size)[:, None], metric, k)
        # increasing in θ for each ρ
        self.values = np.ascontiguousarray((self.tail if metric == "pass_pow_k" else 1 - self.tail).T)
        self.between = np.ascontiguousarray(fine.cumulative.T)

    def cdf(self, y: Array) -> Array:
        """P(metric ≤ y)."""
        return self._below(np.asarray(y, dtype=float))[0]

    def _near(self, y: Array) -> Array:
        """`cdf`, straight between the fine nodes: off by some 1e-5, and quick."""
        columns = zip(self.values, self.between, strict=True)
        return np.asarray(np.sum([np.interp(y, values, mass) for values, mass in columns], axis=0))

    def _below(self, y: Array) -> tuple[Array, Array]:
        """P(metric ≤ y) and the density at y: for each ρ, the θ at which the metric is y, and the mass up to it."""
        flat = y.ravel()
        columns = np.arange(len(self.values))
        cell = np.array([np.searchsorted(values, flat, side="right") for values in self.values]).T - 1
        inside = (cell >= 0) & (cell < self.fine.axis.size - 1)
        cell = np.clip(cell, 0, self.fine.axis.size - 2)
        wanted = _logit(flat if self.metric == "pass_pow_k" else 1 - flat)[:, None]
        # the secant method on the logit scale, on which the metric is nearly straight: k = 1 is straight in θ
        before, now = np.zeros(cell.shape), np.ones(cell.shape)
        off, error = (_logit(self.tail[at, columns]) - wanted for at in (cell, cell + 1))
        slope = error - off
        for _ in range(SECANT_STEPS):
            moved = np.abs(now - before) > 1e-6  # below that, rounding would make up the slope
            slope = np.where(moved, (error - off) / np.where(moved, now - before, 1), slope)
            step = np.where(slope != 0, error / np.where(slope != 0, slope, 1), 0)
            before, off, now = now, error, np.clip(now - step, 0, 1)
            error = _logit(self.fine.power(cell + now, self.metric, self.k)) - wanted
        mass, density = self.fine.below(cell, now)
        mass = np.where(inside, mass, np.where(flat[:, None] < self.values[:, 0], 0.0, self.fine.mass))
        # logit y moves by |slope| per node
        scale = np.where(inside & (slope != 0), 1 / np.where(slope != 0, np.abs(slope), 1), 0.0)
        spread = np.maximum(flat * (1 - flat), TINY)
        density = (density * scale).sum(axis=1) / spread
        return np.asarray(mass.sum(axis=1)).reshape(y.shape), np.asarray(density).reshape(y.shape)

    def quantile(self, q: Array) -> Array:
        """Inverse of `cdf`: the Illinois method from a bracket on a coarse table, then Newton's."""
        y = self.values.min() + np.ptp(self.values) * np.linspace(0, 1, 33)
        # values at nodes, too: those of p^50 may crowd at a scale far below the spacing of the others
        y = np.union1d(y, self.values[:: max(len(self.values) // 4, 1), :: 4 * REFINE])
        table = self._near(y)
        place = np.clip(np.searchsorted(table, q), 1, y.size - 1)
        low, high = y[place - 1], y[place]
        below, above = table[place - 1] - q, table[place] - q
        side = np.zeros(q.shape, dtype=int)
        for step in range(100):
            rise = above - below
            secant = np.where(rise > 0, low - below * (high - low) / np.where(rise > 0, rise, 1), (low + high) / 2)
            # now and then halve the bracket, so that a flat stretch cannot stall it
            point = (low + high) / 2 if step % 8 == 7 else np.clip(secant, low, high)
            error = self._near(point) - q
            if np.all((np.abs(error) < 1e-7) | (high - low <= 1e-15 * high)):
                break
            left = error < 0
            # an end that stays for the second time counts for half (Illinois)
            above = np.where(left, np.where(side < 0, above / 2, above), error)
            below = np.where(left, error, np.where(side > 0, below / 2, below))
            low, high = np.where(left, point, low), np.where(left, high, point)
            side = np.where(left, -1, 1)
        return self._polished(point, q)

    def _polished(self, y: Array, q: Array) -> Array:
        """Newton steps to `cdf`(y) = q, from close by."""
        for _ in range(NEWTON_STEPS):
            mass, density = self._below(y)
            usable = density > 0
            step = np.where(usable, (mass - q) / np.where(usable, density, 1), 0)
            y = np.clip(y - step, y / 2, (1 + y) / 2)  # stays inside the unit interval
        order = np.argsort(q)
        y[order] = np.maximum.accumulate(y[order])  # rounding near 1 may exchange neighbours
        return y


def _logit(p: Array) -> Array:
    """Log p/(1 - p), finite at 0 and 1."""
    return np.asarray(np.log(np.maximum(p, TINY)) - np.log(np.maximum(1 - p, 1e-17)))


def _draw_pool(pool: PoolGrid, rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Draws of (m, τ): a node by its mass, then m anywhere in the node's cell."""
    mass = np.exp(np.concatenate(pool.log_mass))
    node = rng.choice(mass.size, size=count, p=mass / mass.sum())
    first = np.cumsum([0, *(axis.size for axis in pool.m)])
    k = np.searchsorted(first, node, side="right") - 1
    m = np.empty(count)
    jitter = rng.random(count) - 0.5
    for index, axis in enumerate(pool.m):
        here = k == index
        x = axis.x[node[here] - first[index]] + axis.step * jitter[here]
        m[here] = axis.centre + axis.scale * np.sinh(x)
    return m, pool.tau[k]


def draw_theta(grid: AgentGrid, rng: np.random.Generator, count: int, m: Array | None, tau: Array | None) -> Array:
    """Draws of θ, given (m, τ) where agents share strength."""
    axis = grid.axis
    uniform, jitter = rng.random(count), rng.random(count) - 0.5
    if m is None or tau is None:
        mass = grid.weights.sum(axis=1)
        node = np.minimum(np.searchsorted(np.cumsum(mass), uniform * mass.sum()), axis.size - 1)
        return np.asarray(axis.centre + axis.scale * np.sinh(axis.x[node] + axis.step * jitter))
    out = np.empty(count)
    wide = tau >= 1.2 * axis.spacing_at(m)
    if wide.any():
        log_mass = grid.log_marginal + np.log(axis.spacing)
        log_mass = log_mass - 0.5 * ((m[wide, None] - axis.theta) / tau[wide, None]) ** 2
        mass = np.cumsum(np.exp(log_mass - log_mass.max(axis=1, keepdims=True)), axis=1)
        node = np.minimum((mass < (uniform[wide] * mass[:, -1])[:, None]).sum(axis=1), axis.size - 1)
        out[wide] = axis.centre + axis.scale * np.sinh(axis.x[node] + axis.step * jitter[wide])
    if not wide.all():
        # the kernel is narrower than the grid: the likelihood is log-linear across it
        centre, width = m[~wide], tau[~wide]
        spline = cubic_spline(axis, grid.log_marginal)
        slope = (spline_at(axis, spline, centre + width) - spline_at(axis, spline, centre - width)) / (2 * width)
        out[~wide] = centre + width**2 * slope + width * rng.standard_normal(count)[~wide]
    return out


def _draw_rho(grid: AgentGrid, likelihood: AgentLikelihood, rng: np.random.Generator, theta: Array) -> Array:
    """Draws of ρ given θ, from the likelihood at the nearest node of θ on fine cells of v."""
    v, (low, high) = grid.rho.v, likelihood.concentration.ends
    edges = np.linspace(max(v[0] - (v[1] - v[0]), low), min(v[-1] + (v[-1] - v[-2]), high), RHO_CELLS + 1)
    middle, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    cells = likelihood.concentration.at(middle, np.full(middle.shape, np.log(width)))
    table = likelihood(grid.axis.theta, cells) + cells.log_weight
    mass = np.exp(table - logsumexp(table, axis=1)[:, None])
    x = np.arcsinh((theta - grid.axis.centre) / grid.axis.scale)
    row = np.clip(np.round((x - grid.axis.x[0]) / grid.axis.step).astype(int), 0, grid.axis.size - 1)
    cumulative = np.cumsum(mass, axis=1)
    cell = np.minimum((cumulative[row] < rng.random(theta.size)[:, None]).sum(axis=1), RHO_CELLS - 1)
    drawn = edges[cell] + width * rng.random(theta.size)
    return np.asarray(np.clip(likelihood.concentration.at(drawn, np.zeros(drawn.shape)).rho, 1e-12, 1 - 1e-12))
