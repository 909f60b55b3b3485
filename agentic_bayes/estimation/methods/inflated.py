"""The hierarchical model with point masses: some tasks always pass, some never do, the rest follow a Beta distribution.

::

    p_ai ~ never_a δ(0) + always_a δ(1) + rest_a Beta(μ_a κ_a, (1-μ_a) κ_a)
    (never_a, always_a, rest_a) ~ Dirichlet(1, 1, 4)

The remedy where the posterior predictive check finds more all-pass or never-pass tasks than a Beta distribution gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from agentic_bayes.estimation.arithmetic import LARGE_GROUP, apply_metric
from agentic_bayes.estimation.distribution import Distribution, Tabulated
from agentic_bayes.estimation.engines.grid.agent_grid import AgentGrid, InflatedAxis
from agentic_bayes.estimation.engines.grid.betabinomial import LONGEST_PRODUCT, log_likelihood_table, log_rising
from agentic_bayes.estimation.engines.grid.exact import GridPosterior, draw_theta
from agentic_bayes.estimation.engines.grid.new_task import by_family, two_moments
from agentic_bayes.estimation.population import Population
from agentic_bayes.estimation.posterior import CHAINS, DRAWS, draws_by_task
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array

NEGLIGIBLE = 1e-14  # mass of a node


@dataclass(frozen=True, kw_only=True, eq=False)
class InflatedPosterior(GridPosterior):
    """Posterior of every estimand under the inflated model.

    Means are exact; quantiles of `population` come from the masses of the nodes (to about .003), those of `tasks`
    and `task` from draws.
    """

    def _powers(
        self, grid: AgentGrid, power: bool, c: int | Array, n: int | Array, ks: Iterable[int]
    ) -> Iterator[tuple[int, Array]]:
        """E t given the hyperparameters and c of n, at every node: the Beta part and the point mass where t = 1."""
        never, always, rest = self._responsibility(grid, c, n)
        mass = always if power else never
        axis = cast(InflatedAxis, grid.rho)
        alone = replace(grid, rho=axis.distinct)
        for k, table in super()._powers(alone, power, c, n, ks):
            values = table[:, axis.place]
            values *= rest
            values += mass
            yield k, values

    def _group_moments(self, agent: int, metrics: tuple[Metric, ...]) -> Iterator[tuple[Array, Metric, Array, Array]]:
        for c, n, size in zip(*self.counts.groups(agent), strict=True):
            for metric, first, second in self._moments(agent, metrics, c, n):
                yield np.array([size]), metric, first[None], second[None]

    def _responsibility(self, grid: AgentGrid, c: int | Array, n: int | Array) -> tuple[Array, Array, Array]:
        """Probabilities that such a task never passes, always passes, or neither, at every node."""
        axis = cast(InflatedAxis, grid.rho)
        if n == 0:
            return axis.never, axis.always, axis.rest
        zero = np.zeros(axis.rest.shape)
        if 0 < c < n:
            return zero, zero, zero + 1
        mass = axis.never if c == 0 else axis.always
        log_mu, log_nu = (np.log(part[:, 0]) for part in (grid.mu, grid.one_minus_mu))
        one, alone = (np.array([c]), np.array([n]), np.array([1])), axis.distinct
        table = np.exp(log_likelihood_table(*one, log_mu, log_nu, alone.rho, alone.one_minus_rho))
        beta = axis.rest * table[:, axis.place]
        point = mass / (mass + beta)
        return (point, zero, 1 - point) if c == 0 else (zero, point, 1 - point)

    def _new_tasks(self, agent: int, metrics: tuple[Metric, ...]) -> dict[Metric, Distribution]:
        """From the masses of the nodes, sorted by the value of the metric."""
        grid, found = self.fit.agents[agent], dict[Metric, Distribution]()
        held = grid.weights > NEGLIGIBLE
        mass = grid.weights[held]
        for power, own in by_family(metrics):
            for k, table in self._powers(grid, power, 0, 0, own):
                values = table[held] if power else 1 - table[held]
                order = np.argsort(values)
                values, own_mass = values[order], mass[order]
                middle = np.cumsum(own_mass) - own_mass / 2  # the mass up to the middle of each node
                found[own[k]] = Tabulated(
                    below=partial(_interpolated, values, middle, 0.0, 1.0),
                    inverse=partial(_interpolated, middle, values, None, None),
                    draw=partial(self._population_draws, agent, own[k]),
                    smooth=False,
                    **self._known(agent, own[k], *two_moments(grid.weights, table)),
                )
        return found

    def _nodes(self, agent: int) -> tuple[Array, Array]:
        """Draws of θ and of a node of (ρ, weights), shape (draws,)."""

        def drawn() -> tuple[Array, Array]:
            grid, own, count = self.fit.agents[agent], self.rng(1, self.counts.streams[agent]), CHAINS * DRAWS
            theta = draw_theta(grid, own, count, *(self.pool_draws or (None, None)))
            row, node = grid.axis.nearest(theta), np.empty(count, dtype=np.int64)
            share = grid.weights / grid.weights.sum(axis=1, keepdims=True)
            uniform = own.random(count)
            for i in np.unique(row):
                here = row == i
                node[here] = np.searchsorted(np.cumsum(share[i]), uniform[here])
            return theta, np.minimum(node, share.shape[1] - 1)

        return self.once((agent, "nodes"), drawn)

    def _draw_hyper(self, agent: int) -> tuple[Array, Array]:
        theta, node = self._nodes(agent)
        return theta, np.clip(self.fit.agents[agent].rho.rho[node], 1e-12, 1 - 1e-12)

    def weights_drawn(self, agent: int) -> tuple[Array, Array, Array]:
        """Draws of never, always and rest, shape (draws,)."""
        axis, node = cast(InflatedAxis, self.fit.agents[agent].rho), self._nodes(agent)[1]
        return axis.never[node], axis.always[node], axis.rest[node]

    def population(self, agent: int, draws: int) -> Population | None:
        """A Beta distribution and two point masses per draw."""
        mu, _, rho = (part[:, None] for part in self._hyper(agent))
        never, always, rest = (part[:, None] for part in self.weights_drawn(agent))
        zero = np.zeros(mu.shape)
        mu, one_minus_mu = np.hstack([mu, zero, zero + 1]), np.hstack([1 - mu, zero + 1, zero])
        return Population(mu, one_minus_mu, rho, np.hstack([rest, never, always])).thinned(draws)

    def log_priors(self) -> dict[str, Array]:
        """Dirichlet(1, 1, 4) of the weights (never, always, rest), shape (draws, agents)."""
        rest = [self.weights_drawn(agent)[2] for agent in range(len(self.counts.agents))]
        return {"weights": np.log(20.0) + 3 * np.log(np.stack(rest, axis=1))}

    def _population_draws(self, agent: int, metric: Metric) -> Array:
        _, always, rest = self.weights_drawn(agent)
        # both metrics are 1 where p = 1 and 0 where p = 0
        return np.asarray(always + rest * super()._population_draws(agent, metric))

    def _tasks_draws(self, agent: int, metric: Metric) -> Array:
        metrics = self._together(metric)

        def drawn() -> dict[Metric, Array]:
            c, n, sizes = self.counts.groups(agent)
            total = {own: np.zeros(CHAINS * DRAWS) for own in metrics}
            for group, size in enumerate(sizes.tolist()):
                count = min(size, LARGE_GROUP)
                p = self._group_draws(agent, int(c[group]), int(n[group]), count)
                for own, values in total.items():
                    values += apply_metric(p, own).sum(axis=1) * (size / count)
            return {own: values / sizes.sum() for own, values in total.items()}

        return self.once((agent, "tasks", metrics), drawn)[metric]

    def _group_draws(self, agent: int, c: int, n: int, count: int) -> Array:
        """Draws of p for `count` tasks with c of n, shape (draws, count)."""
        rng = self.rng(2, self.counts.streams[agent], c, n)
        a, b = self._given_data(agent, np.array([c]), np.array([n]))
        p = rng.beta(a, b, size=(CHAINS * DRAWS, count))
        never, always, rest = self.weights_drawn(agent)
        uniform = rng.random(p.shape)
        if n > 0:
            theta, rho = self._nodes(agent)[0], self._hyper(agent)[2]
            log_mu, log_nu = -np.logaddexp(0, -theta), -np.logaddexp(0, theta)
            beta = rest * np.exp(_log_pmf(c, n, log_mu, log_nu, rho)) if c in (0, n) else rest
            never = never / (never + beta) if c == 0 else np.zeros(never.shape)
            always = always / (always + beta) if c == n else np.zeros(always.shape)
        p = np.where(uniform < never[:, None], 0.0, p)
        return np.where(uniform > 1 - always[:, None], 1.0, p)

    def _pair_draws(self, agent: int) -> Array:
        c, n, _ = self.counts.pairs(agent)
        return np.stack(
            [self._group_draws(agent, int(ci), int(ni), 1)[:, 0] for ci, ni in zip(c, n, strict=True)], axis=1
        )

    def task_draws(self, agent: int, tasks: Array | None = None) -> Array:
        """Posterior draws of p of all tasks, or of those with these indices, shape (chains × draws, tasks)."""
        c, n, place = self.counts.pairs(agent)
        return draws_by_task(
            place if tasks is None else place[tasks],
            lambda pair, count: self._group_draws(agent, int(c[pair]), int(n[pair]), count),
        )


def _interpolated(x: Array, y: Array, left: float | None, right: float | None, at: Array) -> Array:
    return np.interp(at, x, y, left, right)


def _log_pmf(c: int, n: int, log_mu: Array, log_nu: Array, rho: Array) -> Array:
    """Log probability of c = 0 or c = n of n under the Beta-Binomial, elementwise."""
    log_share = log_mu if c == n else log_nu
    if n > LONGEST_PRODUCT:
        rest = np.log1p(-rho)
        return log_rising(log_share + rest, n, rho) - log_rising(rest, n, rho)
    out = np.zeros(rho.shape)
    for j in range(n):
        out += np.log(np.exp(log_share) * (1 - rho) + j * rho) - np.log1p((j - 1) * rho)
    return out
