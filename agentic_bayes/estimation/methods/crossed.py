"""The crossed model: agents that attempt the same tasks share the tasks' difficulty; `Crossed` states it.

p is integrated out in closed form and δ on a grid (`CrossedLikelihood`), so that a posterior is one of (θ, σ, ρ) alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from agentic_bayes.estimation.arithmetic import apply_metric
from agentic_bayes.estimation.distribution import Distribution, Weighted
from agentic_bayes.estimation.engines.grid.axes import logsumexp
from agentic_bayes.estimation.engines.grid.betabinomial import TINY, mean_power
from agentic_bayes.estimation.methods.crossed_likelihood import (
    CrossedLikelihood,
    delta_grid,
    expit_pair,
    one_blas_thread,
)
from agentic_bayes.estimation.population import Population, log_binomial
from agentic_bayes.estimation.posterior import CHAINS, DRAWS, Estimand, Posterior, draws_by_task
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array

POPULATION_STEP = 0.25  # of δ, for the mean over new tasks
CHECK_STEP = 0.5  # enough for the checks
MOST_TASKS = 100  # tasks of one pattern that are drawn one by one; more are scaled up from these
CHUNK = 512  # points at a time, to bound memory


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossedPosterior(Posterior):
    """Posterior of every estimand from weighted points of (θ, σ, ρ)."""

    theta: Array  # shape (points, agents)
    sigma: Array  # shape (points,)
    rho: Array  # shape (points, agents)
    weight: Array | None = None  # shape (points,); sums to 1; None where all points count alike

    @cached_property
    def likelihood(self) -> CrossedLikelihood:
        """The likelihood, on a grid of δ that is fine enough for these points."""
        likelihood = CrossedLikelihood(self.counts)
        likelihood.set_step(likelihood.needed_step(float(self._mean(self.sigma)), self._mean(self.rho)))
        return likelihood

    def _mean(self, values: Array) -> Array:
        return np.average(values, axis=0, weights=self.weight)

    @cached_property
    def picked(self) -> Array:
        """The points that equally weighted draws are, shape (chains × draws,)."""
        count = CHAINS * DRAWS
        if self.weight is None:
            return np.arange(self.sigma.size) if self.sigma.size == count else np.arange(count) % self.sigma.size
        rng = self.rng(3, self.counts.stream)
        picked = np.searchsorted(np.cumsum(self.weight), (np.arange(count) + rng.random()) / count)
        return rng.permutation(np.minimum(picked, self.sigma.size - 1))

    def _weighted(self, values: Array, **known: Any) -> Weighted:
        return Weighted.of(values, self.weight, self.picked, **known)

    def _distribution(self, agent: int, estimand: Estimand, metric: Metric) -> Distribution:
        n_tasks = int(self.counts.scored[agent].sum())
        match estimand:
            case "population":
                return self._weighted(self._population_values(agent, metric), n_tasks=n_tasks)
            case "tasks":
                return self._weighted(self._tasks_values(agent, metric), n_tasks=n_tasks)
            case "task":
                p = np.concatenate([part[:, :1] for part in self._drawn_p(agent)], axis=1)
                return self._weighted(apply_metric(p, metric), place=self.likelihood.place)

    def _population_values(self, agent: int, metric: Metric) -> Array:
        """The mean over new tasks at every point."""
        nodes, log_weight = delta_grid(POPULATION_STEP)
        found = np.empty(self.sigma.size)
        for start in range(0, found.size, CHUNK):
            part = slice(start, start + CHUNK)
            mu, nu = expit_pair(self.theta[part, agent, None] + self.sigma[part, None] * nodes)
            rho = self.rho[part, agent, None]
            found[part] = mean_power(mu if metric.power else nu, rho, 1 - rho, 0, 0, metric.k) @ np.exp(log_weight)
        return found if metric.power else 1 - found

    @cached_property
    def _difficulty(self) -> tuple[list[Array], dict[int, Array]]:
        """Draws of δ for up to 100 tasks of each pattern at every point, and the weights of δ of larger patterns."""
        likelihood, points = self.likelihood, self.sigma.size
        sizes = likelihood.size.tolist()
        uniform = [self._delta_rng(i).random((2, points, min(size, MOST_TASKS))) for i, size in enumerate(sizes)]
        deltas = [np.empty((points, min(size, MOST_TASKS))) for size in sizes]
        large = {
            i: np.empty((points, likelihood.delta.size), np.float32)
            for i, size in enumerate(sizes)
            if size > MOST_TASKS
        }
        for start in range(0, points, CHUNK):
            part = slice(start, start + CHUNK)
            values = self.theta[part], self.sigma[part], self.rho[part], 1 - self.rho[part]
            with one_blas_thread():
                weights = np.concatenate([own for _, own in likelihood.delta_posteriors(*values)], axis=1)
            for i, own in enumerate(weights):
                deltas[i][part] = self._deltas(own, uniform[i][:, part])
                if i in large:
                    large[i][part] = own
        return deltas, large

    def _delta_rng(self, pattern: int) -> np.random.Generator:
        """The random stream of the difficulties of the tasks of a pattern."""
        return self.rng(1, self.counts.stream, pattern)

    def _deltas(self, weights: Array, uniform: Array) -> Array:
        """Draws of δ from weights of its nodes, spread over their cells, with the variance that the weights have."""
        nodes, step = self.likelihood.delta, self.likelihood.step
        cumulative = np.cumsum(weights, axis=1)
        cumulative /= cumulative[:, -1:]
        node = np.stack([(cumulative < column[:, None]).sum(axis=1) for column in uniform[0].T], axis=1)
        mean = weights @ nodes
        variance = np.maximum(weights @ nodes**2 - mean**2, 1e-12)
        drawn = nodes[np.minimum(node, nodes.size - 1)] + step * (uniform[1] - 0.5)
        narrower = np.sqrt(variance / (variance + step**2 / 12))
        return np.asarray(mean[:, None] + (drawn - mean[:, None]) * narrower[:, None])

    def _pattern_p(self, agent: int, pattern: int, count: int) -> Array:
        """P of so many tasks of a pattern, shape (points, count); all agents see the same difficulties."""
        deltas, large = self._difficulty
        delta = deltas[pattern]
        if count > delta.shape[1]:
            delta = self._deltas(large[pattern], self._delta_rng(pattern).random((2, self.sigma.size, count)))
        c, n = self._counts_of(agent, pattern)
        mu, nu = expit_pair(self.theta[:, agent, None] + self.sigma[:, None] * delta)
        kappa = (1 / self.rho[:, agent] - 1)[:, None]
        own = self.rng(2, self.counts.stream, pattern, self.counts.streams[agent])
        return own.beta(np.maximum(mu * kappa + c, TINY), np.maximum(nu * kappa + n - c, TINY))

    def _counts_of(self, agent: int, pattern: int) -> tuple[int, int]:
        """The agent's c and n on tasks of a pattern."""
        c, n = (part[self.likelihood.patterns[pattern, agent]] for part in self.likelihood.pairs[agent])
        return int(c), int(n)

    def _drawn_p(self, agent: int) -> list[Array]:
        """P of up to 100 tasks of every pattern, shape (points, tasks)."""

        def drawn() -> list[Array]:
            sizes = self.likelihood.size.tolist()
            return [self._pattern_p(agent, pattern, min(size, MOST_TASKS)) for pattern, size in enumerate(sizes)]

        return self.once(("p", agent), drawn)

    def _tasks_values(self, agent: int, metric: Metric) -> Array:
        """The mean over the scored tasks at every point."""
        total, n_tasks = np.zeros(self.sigma.size), 0
        for pattern, p in enumerate(self._drawn_p(agent)):
            if self._counts_of(agent, pattern)[1] == 0:
                continue
            size = int(self.likelihood.size[pattern])
            sums = apply_metric(p, metric).sum(axis=1)
            if size > MOST_TASKS:
                # the deviation of a mean over more tasks is smaller, and shared difficulty stays shared
                centre = self._given_data(agent, pattern, metric)
                sums = size * centre + np.sqrt(size / MOST_TASKS) * (sums - MOST_TASKS * centre)
            total += sums
            n_tasks += size
        return np.clip(total / n_tasks, 0, 1)

    def _given_data(self, agent: int, pattern: int, metric: Metric) -> Array:
        """The mean of the metric on a task of a large pattern, given the data, at every point."""
        c, n = self._counts_of(agent, pattern)
        weights, found = self._difficulty[1][pattern], np.empty(self.sigma.size)
        for start in range(0, found.size, CHUNK):
            part = slice(start, start + CHUNK)
            mu, nu = expit_pair(self.theta[part, agent, None] + self.sigma[part, None] * self.likelihood.delta)
            share, count = (mu, c) if metric.power else (nu, n - c)
            rho = self.rho[part, agent, None]
            found[part] = np.sum(weights[part] * mean_power(share, rho, 1 - rho, count, n, metric.k), axis=1)
        return found if metric.power else 1 - found

    def task_draws(self, agent: int, tasks: Array | None = None) -> Array:
        """Posterior draws of p of all tasks, or of those with these indices, shape (draws, tasks)."""
        place = self.likelihood.place if tasks is None else self.likelihood.place[tasks]

        def draw(pattern: int, count: int) -> Array:
            p = self._drawn_p(agent)[pattern]
            return (p if count <= p.shape[1] else self._pattern_p(agent, pattern, count))[self.picked, :count]

        return draws_by_task(place, draw)

    def hyper_draws(self) -> dict[str, Array]:
        """θ, σ and ρ, and the mean success probability of a new task, which follows from θ and σ."""
        agents, pass_one = range(len(self.counts.agents)), Metric("pass^1")
        mu = np.stack([self.distribution(agent, "population", pass_one).draws() for agent in agents], axis=1)
        theta, sigma, rho = self._picked_points()
        return {"theta": theta, "sigma": sigma, "rho": rho, "mu": mu}

    def _picked_points(self) -> tuple[Array, Array, Array]:
        """θ, σ and ρ as equally weighted draws."""
        return self.theta[self.picked], self.sigma[self.picked], self.rho[self.picked]

    def population(self, agent: int, draws: int) -> Population | None:
        """A Beta distribution at every node of δ per draw."""
        theta, sigma, rho = (values[:: max(self.picked.size // draws, 1)] for values in self._picked_points())
        nodes, log_weight = delta_grid(CHECK_STEP)
        mu, one_minus_mu = expit_pair(theta[:, agent, None] + sigma[:, None] * nodes)
        return Population(mu, one_minus_mu, rho[:, agent, None], np.exp(log_weight)[None])

    def log_likelihood(self) -> Array:
        """Log p(cell | the other agents' counts on its task), difficulty integrated out, shape (draws, cells).

        That is what leaving the cell out needs.
        """
        likelihood = self.likelihood
        theta, sigma, rho = self._picked_points()
        found = np.empty((len(likelihood.pairs), len(likelihood.patterns), sigma.size))
        for start in range(0, sigma.size, CHUNK):
            part = slice(start, start + CHUNK)
            tables = likelihood.agent_tables(theta[part], sigma[part], rho[part], 1 - rho[part])
            for index, pattern in enumerate(likelihood.patterns.tolist()):
                own = [table[:, pair] for table, pair in zip(tables, pattern, strict=True)]
                joint = likelihood.log_weight + sum(own)
                together = logsumexp(joint, axis=1)
                for agent, table in enumerate(own):
                    found[agent, index, part] = together - logsumexp(joint - table, axis=1)
        columns = []
        for agent, (c, n) in enumerate(likelihood.pairs):
            by_pattern = found[agent] + log_binomial(n, c)[likelihood.patterns[:, agent], None]
            columns.append(by_pattern[likelihood.place[self.counts.scored[agent]]])
        return np.concatenate(columns).T
