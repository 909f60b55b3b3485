"""The crossed model: agents that attempt the same tasks share the tasks' difficulty; `Crossed` states it.

p is integrated out in closed form and δ on a grid (`CrossedLikelihood`), so that a posterior is one of (θ, σ, ρ) alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from agentic_bayes.estimation.arithmetic import apply_metric, sum_of_metric
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
BLOCK = 2**18  # of a task × point × δ array, to stay in the processor's cache
FEW = 5  # attempts up to which moments are kept


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
        likelihood = self._new_likelihood()
        likelihood.set_step(likelihood.needed_step(float(self._mean(self.sigma)), self._mean(self.rho)))
        return likelihood

    def _new_likelihood(self) -> CrossedLikelihood:
        return CrossedLikelihood(self.counts)

    @cached_property
    def arguments(self) -> tuple[Array, ...]:
        """What the likelihood takes, at every point."""
        return self.theta, self.sigma, self.rho, 1 - self.rho

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
                p = self._drawn_p(agent)[:, np.searchsorted(self._shown, np.arange(self.likelihood.size.size))]
                return self._weighted(apply_metric(p, metric), place=self.likelihood.place)

    def _population_values(self, agent: int, metric: Metric) -> Array:
        """The mean over new tasks at every point."""
        if metric.k > FEW:
            rho, weight = self.rho[:, agent, None], np.exp(delta_grid(POPULATION_STEP)[1])
            found = np.empty(len(rho))
            for part, shares in self._new_tasks(agent):
                share = shares[0 if metric.power else 1]
                found[part] = mean_power(share, rho[part], 1 - rho[part], 0, 0, metric.k) @ weight
        else:
            found = self._rising_mean(agent, metric)
        return found if metric.power else 1 - found

    def _new_tasks(self, agent: int) -> Iterator[tuple[slice, tuple[Array, Array]]]:
        """Shares μ and 1 - μ of new tasks, some points at a time, shape (points, δ nodes).

        A mean only needs the digits of 1, and tanh is much faster than exp.
        """
        nodes = delta_grid(POPULATION_STEP)[0]
        for start in range(0, self.sigma.size, CHUNK):
            part = slice(start, start + CHUNK)
            half = np.tanh((self.theta[part, agent, None] + self.sigma[part, None] * nodes) / 2) / 2
            yield part, (0.5 + half, 0.5 - half)

    def _rising_mean(self, agent: int, metric: Metric) -> Array:
        """E Π_j ((1-ρ)μ + jρ)/(1-ρ + jρ) over new tasks from the moments of μ, or with 1 - μ for μ."""
        moments = self.once(("moments", agent), lambda: self._moments(agent))[0 if metric.power else 1]
        rho, found = self.rho[:, agent], np.zeros(self.sigma.size)
        rising = np.ones(1)  # coefficients of Π (x + j), from the lowest power: none is negative, so nothing cancels
        for j in range(1, metric.k):
            rising = np.concatenate([j * rising, [0]]) + np.concatenate([[0], rising])
        for r, coefficient in enumerate(rising, start=1):
            found += coefficient * (1 - rho) ** r * rho ** (metric.k - r) * moments[r - 1]
        for j in range(metric.k):
            found /= 1 - rho + j * rho
        return found

    def _moments(self, agent: int) -> Array:
        """E μ^r and E (1 - μ)^r over new tasks for the first r, shape (2, r, points)."""
        weight, found = np.exp(delta_grid(POPULATION_STEP)[1]), np.empty((2, FEW, self.sigma.size))
        for part, shares in self._new_tasks(agent):
            for own, share in zip(found, shares, strict=True):
                power = share.copy()
                own[0, part] = power @ weight
                for r in range(1, FEW):
                    power *= share
                    own[r, part] = power @ weight
        return found

    @cached_property
    def _shown(self) -> Array:
        """The pattern of each task that is drawn one by one, up to 100 of each pattern."""
        return np.repeat(np.arange(self.likelihood.size.size), np.minimum(self.likelihood.size, MOST_TASKS))

    @cached_property
    def _difficulty(self) -> tuple[Array, dict[int, Array]]:
        """Draws of δ of the tasks `_shown`, shape (points, tasks), and at every point the weights of large patterns."""
        likelihood, points = self.likelihood, self.sigma.size
        sizes = np.bincount(self._shown).tolist()
        uniform = np.concatenate([self._delta_rng(i).random((2, size, points)) for i, size in enumerate(sizes)], axis=1)
        large = {
            i: np.empty((points, likelihood.delta.size), np.float32)
            for i in np.flatnonzero(likelihood.size > MOST_TASKS).tolist()
        }
        deltas = np.empty((points, self._shown.size))
        with one_blas_thread():
            for part, weights in likelihood.delta_posteriors(*self.arguments):
                deltas[part] = self._deltas(weights, self._shown, uniform[:, :, part]).T
                for i, own in large.items():
                    own[part] = weights[i]
        return deltas, large

    def _delta_rng(self, pattern: int) -> np.random.Generator:
        """The random stream of the difficulties of the tasks of a pattern."""
        return self.rng(1, self.counts.stream, pattern)

    def _deltas(self, weights: Array, pattern: Array, uniform: Array) -> Array:
        """Draws of δ of tasks of these patterns from weights of its nodes, shape (tasks, points).

        They are spread over the nodes' cells, with the variance that the weights have.
        """
        nodes, step = self.likelihood.delta, self.likelihood.step
        cumulative = weights @ np.triu(np.ones((nodes.size, nodes.size), weights.dtype))  # much faster than cumsum
        mean, square = (weights @ nodes)[pattern], (weights @ nodes**2)[pattern]
        wanted = (uniform[0] * cumulative[pattern, :, -1]).astype(cumulative.dtype)[:, :, None]
        node, block = np.empty(mean.shape, dtype=np.int64), max(1, BLOCK // cumulative[0].size)
        for start in range(0, len(pattern), block):
            part = slice(start, start + block)
            node[part] = np.count_nonzero(cumulative[pattern[part]] < wanted[part], axis=2)
        drawn = nodes[np.minimum(node, nodes.size - 1)] + step * (uniform[1] - 0.5)
        variance = np.maximum(square - mean**2, 1e-12)
        narrower = np.sqrt(variance / (variance + step**2 / 12))
        return np.asarray(mean + (drawn - mean) * narrower)

    def _p_of(self, agent: int, pattern: Array, delta: Array, *key: int) -> Array:
        """P of tasks of these patterns and difficulties, shape (points, tasks)."""
        c, n = (part[self.likelihood.patterns[pattern, agent]] for part in self.likelihood.pairs[agent])
        half = np.tanh((self.theta[:, agent, None] + self.sigma[:, None] * delta) / 2) / 2
        kappa = (1 / self.rho[:, agent] - 1)[:, None]
        own = self.rng(2, self.counts.stream, *key, self.counts.streams[agent])
        passed, failed = (0.5 + half) * kappa + c, (0.5 - half) * kappa + (n - c)
        return np.asarray(own.beta(np.maximum(passed, TINY), np.maximum(failed, TINY)))

    def _pattern_p(self, agent: int, pattern: int, count: int) -> Array:
        """P of so many tasks of a large pattern, shape (points, count); all agents see the same difficulties."""
        which, weights = np.full(count, pattern), self._difficulty[1][pattern][None]
        uniform = self._delta_rng(pattern).random((2, count, self.sigma.size))
        return self._p_of(agent, which, self._deltas(weights, np.zeros_like(which), uniform).T, pattern)

    def _counts_of(self, agent: int, pattern: int) -> tuple[int, int]:
        """The agent's c and n on tasks of a pattern."""
        c, n = (part[self.likelihood.patterns[pattern, agent]] for part in self.likelihood.pairs[agent])
        return int(c), int(n)

    def _drawn_p(self, agent: int) -> Array:
        """P of the tasks `_shown`, shape (points, tasks)."""
        return self.once(("p", agent), lambda: self._p_of(agent, self._shown, self._difficulty[0]))

    def _tasks_values(self, agent: int, metric: Metric) -> Array:
        """The mean over the scored tasks at every point."""
        size, (_, n) = self.likelihood.size, self.likelihood.pairs[agent]
        scored = n[self.likelihood.patterns[:, agent]] > 0
        p, small = self._drawn_p(agent), scored & (size <= MOST_TASKS)
        total = sum_of_metric(p if small.all() else p[:, small[self._shown]], metric)
        for pattern in np.flatnonzero(scored & ~small).tolist():
            # the deviation of a mean over more tasks is smaller, and shared difficulty stays shared
            centre, sums = self._given_data(agent, pattern, metric), sum_of_metric(p[:, self._shown == pattern], metric)
            total += size[pattern] * centre + np.sqrt(size[pattern] / MOST_TASKS) * (sums - MOST_TASKS * centre)
        return np.asarray(np.clip(total / size[scored].sum(), 0, 1))

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
            if count > MOST_TASKS:
                return self._pattern_p(agent, pattern, count)[self.picked]
            start = int(np.searchsorted(self._shown, pattern))
            return np.asarray(self._drawn_p(agent)[self.picked, start : start + count])

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

    def log_likelihood(self) -> Array | None:
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
