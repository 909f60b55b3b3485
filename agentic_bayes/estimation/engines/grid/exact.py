"""Posterior of every estimand from the quadrature engine's grids, without Monte-Carlo error in any mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from agentic_bayes.estimation.arithmetic import apply_metric, mean_over_tasks
from agentic_bayes.estimation.distribution import Distribution, Drawn, Tabulated
from agentic_bayes.estimation.engines.grid.agent_grid import AgentGrid, AgentLikelihood
from agentic_bayes.estimation.engines.grid.axes import Splines, logsumexp
from agentic_bayes.estimation.engines.grid.betabinomial import TINY, mean_powers
from agentic_bayes.estimation.engines.grid.new_task import FineGrid, by_family
from agentic_bayes.estimation.engines.grid.quadrature import GridFit, PoolGrid
from agentic_bayes.estimation.population import Population
from agentic_bayes.estimation.posterior import CHAINS, DRAWS, Estimand, Posterior, in_threads
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array

RHO_CELLS = 128  # for draws of ρ
BLOCK, CELLS = 1024, 2**15  # draws and cells of tables at a time, to stay in the processor's cache


@dataclass(frozen=True, kw_only=True, eq=False)
class GridPosterior(Posterior):
    """Means, and quantiles for a new task, come from the grids; other quantiles from seeded draws."""

    fit: GridFit  # the posterior grids

    # -- closed forms on the grid ------------------------------------------------------------------------------

    def _powers(
        self, grid: AgentGrid, power: bool, c: int | Array, n: int | Array, ks: Iterable[int]
    ) -> Iterator[tuple[int, Array]]:
        """E t for t = p^k (pass^k) or (1-p)^k (pass@k = 1 - t), given (μ, ρ) and c of n, at every node, by rising k."""
        share, count = (grid.mu, c) if power else (grid.one_minus_mu, n - c)
        return mean_powers(share, grid.rho.rho, grid.rho.one_minus_rho, count, n, ks)

    def _distribution(self, agent: int, estimand: Estimand, metric: Metric) -> Distribution:
        metrics = self._together(metric)
        match estimand:
            case "population":
                return self.once((agent, "new tasks", metrics), lambda: self._new_tasks(agent, metrics))[metric]
            case "tasks":
                mean, sd = self.once((agent, "moments", metrics), lambda: self._tasks_moments(agent, metrics))[metric]
                n_tasks = int(self.counts.scored[agent].sum())
                return Drawn(mean=mean, sd=sd, n_tasks=n_tasks, values=self._tasks_draws(agent, metric))
            case "task":
                return self._by_task(agent, metric)

    def _new_tasks(self, agent: int, metrics: tuple[Metric, ...]) -> dict[Metric, Distribution]:
        fine = self.once((agent, "fine"), lambda: FineGrid.of(self.fit.agents[agent]))
        return {
            metric: Tabulated(
                below=new.below,
                inverse=new.quantile,
                draw=partial(self._population_draws, agent, metric),
                parts=new.below_by_rho,
                **self._known(agent, new.metric, *new.moments),
            )
            for metric, new in fine.new_tasks(metrics).items()
        }

    def _known(self, agent: int, metric: Metric, first: float, second: float) -> dict[str, Any]:
        """What is known of a metric of a new task: mean, sd and the number of tasks that tell of it."""
        sd = float(np.sqrt(max(second - first**2, 0)))
        return {"mean": float(of_tail(first, metric)), "sd": sd, "n_tasks": int(self.counts.scored[agent].sum())}

    def _tasks_moments(self, agent: int, metrics: tuple[Metric, ...]) -> dict[Metric, tuple[float, float]]:
        """Mean and sd of the mean over tasks: the variance between nodes plus the one within."""
        mass, total = self._mass(agent), int(self.counts.scored[agent].sum())
        centre, within = ({metric: np.zeros(mass.shape) for metric in metrics} for _ in range(2))
        for size, metric, first, second in self._group_moments(agent, metrics):
            centre[metric] += np.einsum("g,g...->...", size, first)
            # rounding may take it below 0
            within[metric] += np.einsum("g,g...->...", size, np.maximum(second - first**2, 0))
        found = {}
        for metric in metrics:
            own = centre[metric] / total
            mean = float(np.sum(mass * own))
            variance = float(np.sum(mass * ((own - mean) ** 2 + within[metric] / total**2)))
            found[metric] = float(of_tail(mean, metric)), float(np.sqrt(variance))
        return found

    def _mass(self, agent: int) -> Array:
        """Posterior mass of every node."""
        return self.fit.agents[agent].weights

    def _group_moments(self, agent: int, metrics: tuple[Metric, ...]) -> Iterator[tuple[Array, Metric, Array, Array]]:
        """How many tasks have the same counts, and of each metric E t and E t² of one of them at every node.

        Some groups at a time, along a new first axis.
        """
        groups, some = self.counts.groups(agent), max(CELLS // self.fit.agents[agent].weights.size, 1)
        for start in range(0, len(groups[0]), some):
            c, n, size = (part[start : start + some] for part in groups)
            for metric, first, second in self._moments(agent, metrics, c[:, None, None], n[:, None, None]):
                yield size.astype(np.float64), metric, first, second

    def _moments(
        self, agent: int, metrics: tuple[Metric, ...], c: int | Array, n: int | Array
    ) -> Iterator[tuple[Metric, Array, Array]]:
        """Of each metric E t and E t² of a task with c of n at every node."""
        for power, own in by_family(metrics):
            found = dict(self._powers(self.fit.agents[agent], power, c, n, {j * k for k in own for j in (1, 2)}))
            for k, metric in own.items():
                yield metric, found[k], found[2 * k]

    def _by_task(self, agent: int, metric: Metric) -> Distribution:
        """Every task; computed once per distinct (c, n)."""
        place, metrics = self.counts.pairs(agent)[2], self._together(metric)
        first, second = self.once((agent, "by pair", metrics), lambda: self._pair_moments(agent, metrics))[metric]
        sd = np.sqrt(np.clip(second - first**2, 0, None))
        draws = self.once((agent, "pairs"), lambda: self._pair_draws(agent))
        return Drawn(mean=of_tail(first, metric)[place], sd=sd[place], values=apply_metric(draws, metric), place=place)

    def _pair_moments(self, agent: int, metrics: tuple[Metric, ...]) -> dict[Metric, Array]:
        """Of each metric E t and E t² of every distinct (c, n), shape (2, pairs)."""
        c, n, _ = self.counts.pairs(agent)
        weights, found = self.fit.agents[agent].weights, {metric: np.empty((2, c.size)) for metric in metrics}
        for pair, cell in enumerate(zip(c.tolist(), n.tolist(), strict=True)):
            for metric, *moments in self._moments(agent, metrics, *cell):
                found[metric][:, pair] = [float(np.vdot(weights, values)) for values in moments]
        return found

    # -- draws --------------------------------------------------------------------------------------------------

    @cached_property
    def pool_draws(self) -> tuple[Array, Array] | None:
        """Draws of m and τ, shape (draws,); None where agents do not share strength."""
        return (
            None
            if self.fit.pool is None
            else _draw_pool(self.fit.pool, self.rng(0, self.counts.stream), CHAINS * DRAWS)
        )

    def _draw_hyper(self, agent: int) -> tuple[Array, Array]:
        """Draws of θ and ρ, shape (draws,); those of agents that share strength belong together."""
        grid, own = self.fit.agents[agent], self.rng(1, self.counts.streams[agent])
        theta = draw_theta(grid, own, CHAINS * DRAWS, *(self.pool_draws or (None, None)))
        return theta, _draw_rho(grid, self.fit.likelihoods[agent], own, theta)

    def _hyper(self, agent: int) -> tuple[Array, Array, Array]:
        """Draws of μ, 1 - μ and ρ of one agent, shape (draws,)."""

        def drawn() -> tuple[Array, Array, Array]:
            theta, rho = self._draw_hyper(agent)
            return np.exp(-np.logaddexp(0, -theta)), np.exp(-np.logaddexp(0, theta)), rho

        return self.once((agent, "hyper"), drawn)

    def hyper_draws(self) -> dict[str, Array]:
        """μ and ρ of every agent, and m and τ where agents share strength."""
        drawn = [self._hyper(agent) for agent in range(len(self.fit.agents))]
        mu, _, rho = (np.stack(part, axis=1) for part in zip(*drawn, strict=True))
        pool = dict(zip(("m", "tau"), self.pool_draws or (), strict=False))
        return {"mu": mu, "rho": rho, **pool}

    def population(self, agent: int, draws: int) -> Population | None:
        """One Beta distribution per draw."""
        mu, _, rho = (part[:, None] for part in self._hyper(agent))
        return Population(mu, 1 - mu, rho, np.ones((1, 1))).thinned(draws)

    def _given_data(self, agent: int, c: Array, n: Array) -> tuple[Array, Array]:
        """Beta parameters of p given data, shape (draws, len(c))."""
        mu, one_minus_mu, rho = (part[:, None] for part in self._hyper(agent))
        kappa = (1 - rho) / rho
        return np.maximum(mu * kappa + c, TINY), np.maximum(one_minus_mu * kappa + (n - c), TINY)

    def _population_draws(self, agent: int, metric: Metric) -> Array:
        """Draws of the metric of a new task."""
        metrics = self._together(metric)

        def drawn() -> dict[Metric, Array]:
            (mu, one_minus_mu, rho), found = self._hyper(agent), {}
            for power, own in by_family(metrics):
                for k, tail in mean_powers(mu if power else one_minus_mu, rho, 1 - rho, 0, 0, own):
                    found[own[k]] = tail if power else 1 - tail
            return found

        return self.once((agent, "new task draws", metrics), drawn)[metric]

    def draw_tasks(self, agents: Sequence[int], metric: Metric) -> None:
        """In threads: every agent has its own random stream, so order changes nothing."""
        for agent in agents:
            self._hyper(agent)  # what agents share, and small steps, for which threads would wait for each other
        in_threads(lambda agent: self.distribution(agent, "tasks", metric), agents)

    def _tasks_draws(self, agent: int, metric: Metric) -> Array:
        """Draws of the mean over the scored tasks; all metrics share the same draws of p."""
        metrics = self._together(metric)
        c, n, sizes = self.counts.groups(agent)

        def drawn() -> dict[Metric, Array]:
            rng = self.rng(2, self.counts.streams[agent])
            return dict(zip(metrics, mean_over_tasks(*self._given_data(agent, c, n), sizes, metrics, rng), strict=True))

        return self.once((agent, "tasks", metrics), drawn)[metric]

    def _pair_draws(self, agent: int) -> Array:
        """Draws of p for every distinct (c, n), shape (draws, pairs)."""
        c, n, _ = self.counts.pairs(agent)
        return self.rng(3, self.counts.streams[agent]).beta(*self._given_data(agent, c, n))

    def task_draws(self, agent: int, tasks: Array | None = None) -> Array:
        """Draws of p of all tasks, or of those with these indices, shape (chains × draws, tasks)."""
        which = slice(None) if tasks is None else tasks
        c, n = self.counts.successes[agent, which], self.counts.trials[agent, which]
        return self.rng(4, self.counts.streams[agent]).beta(*self._given_data(agent, c, n))


def of_tail(tail: Array | float, metric: Metric) -> Array:
    """The mean of a metric from that of p^k (pass^k) or (1-p)^k (pass@k); weights sum to 1 up to rounding only."""
    return np.minimum(np.maximum(tail if metric.power else 1 - tail, 0), 1)


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
        m[here] = axis.near(node[here] - first[index], jitter[here])
    return m, pool.tau[k]


def draw_theta(grid: AgentGrid, rng: np.random.Generator, count: int, m: Array | None, tau: Array | None) -> Array:
    """Draws of θ, given (m, τ) where agents share strength."""
    axis = grid.axis
    uniform, jitter = rng.random(count), rng.random(count) - 0.5
    if m is None or tau is None:
        mass = grid.weights.sum(axis=1)
        node = np.minimum(np.searchsorted(np.cumsum(mass), uniform * mass.sum()), axis.size - 1)
        return axis.near(node, jitter)
    out = np.empty(count)
    wide = tau >= 1.2 * axis.spacing_at(m)
    if wide.any():
        at, apart = np.flatnonzero(wide), axis.theta - axis.centre
        # log of the mass at every node, up to a constant of each draw: a product of two matrices
        of_nodes = np.stack([apart**2, apart, grid.log_marginal + np.log(axis.spacing)], axis=1)
        precision = tau[at] ** -2.0
        of_draws = np.stack([-0.5 * precision, precision * (m[at] - axis.centre), np.ones(at.size)])
        node = np.empty(at.size, dtype=np.int64)
        for start in range(0, at.size, BLOCK):
            block = slice(start, start + BLOCK)
            mass = of_nodes @ of_draws[:, block]  # a row for each node: sums along rows of draws are fast
            mass -= mass.max(axis=0)
            np.exp(mass, out=mass)
            for below, own in pairwise(mass):
                own += below
            node[block] = np.count_nonzero(mass < uniform[at[block]] * mass[-1], axis=0)
        node = np.minimum(node, axis.size - 1)
        out[wide] = axis.near(node, jitter[wide])
    if not wide.all():
        # the kernel is narrower than the grid: the likelihood is log-linear across it
        centre, width = m[~wide], tau[~wide]
        spline = Splines([axis], grid.log_marginal[None])
        slope = (spline(0, centre + width) - spline(0, centre - width)) / (2 * width)
        out[~wide] = centre + width**2 * slope + width * rng.standard_normal(count)[~wide]
    return out


def _draw_rho(grid: AgentGrid, likelihood: AgentLikelihood, rng: np.random.Generator, theta: Array) -> Array:
    """Draws of ρ given θ, from the likelihood at the nearest node of θ on fine cells of v."""
    v, (low, high) = grid.rho.v, likelihood.concentration.ends
    edges = np.linspace(max(v[0] - (v[1] - v[0]), low), min(v[-1] + (v[-1] - v[-2]), high), RHO_CELLS + 1)
    middle, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    cells = likelihood.concentration.at(middle, np.full(middle.shape, np.log(width)))
    nearest = grid.axis.nearest(theta)
    seen = np.bincount(nearest) > 0
    nodes, row = np.flatnonzero(seen), (np.cumsum(seen) - 1)[nearest]
    table = likelihood(grid.axis.theta[nodes], cells) + cells.log_weight
    mass = np.exp(table - logsumexp(table, axis=1)[:, None])
    cumulative = np.cumsum(mass, axis=1)
    # one search in all rows: the first rises from 0 to 1, the second from 1 to 2, …
    stacked = (np.minimum(cumulative, 1) + np.arange(len(cumulative))[:, None]).ravel()
    wanted = row + rng.random(theta.size)
    order = np.argsort(wanted)  # neighbours are found faster
    cell = np.empty(theta.size, dtype=np.int64)
    cell[order] = np.searchsorted(stacked, wanted[order])
    cell = np.minimum(cell - row * RHO_CELLS, RHO_CELLS - 1)
    drawn = edges[cell] + width * rng.random(theta.size)
    return np.clip(likelihood.concentration.rho(drawn), 1e-12, 1 - 1e-12)
