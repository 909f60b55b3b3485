"""The crossed model: agents that attempt the same tasks share the tasks' difficulty; `Crossed` states it.

p is integrated out in closed form and δ on a grid (`CrossedLikelihood`), so that a posterior is one of (θ, σ, ρ) alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from agentic_bayes.estimation.arithmetic import apply_metric, sums_of_metrics
from agentic_bayes.estimation.distribution import Distribution, Weighted
from agentic_bayes.estimation.engines.grid.axes import logsumexp
from agentic_bayes.estimation.engines.grid.betabinomial import TINY, mean_powers
from agentic_bayes.estimation.methods.crossed_likelihood import (
    CrossedLikelihood,
    delta_grid,
    expit_pair,
    one_blas_thread,
)
from agentic_bayes.estimation.population import Population, log_binomial
from agentic_bayes.estimation.posterior import CHAINS, DRAWS, Estimand, Posterior, draws_by_task, in_threads
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array

POPULATION_STEP = 0.25  # of δ, for the mean over new tasks
CHECK_STEP = 0.5  # enough for the checks
MOST_ALIKE, MOST_DRAWN = 100, 500  # tasks of one pattern, and in all, that are drawn one by one: more are scaled up
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
        found = self._means_beyond(agent, metric) if metric.k > FEW else self._rising_mean(agent, metric)
        return found if metric.power else 1 - found

    def _means_beyond(self, agent: int, metric: Metric) -> Array:
        """E p^k over new tasks, or with 1 - p for p, for a k without moments; all that are asked for at once."""
        ks = self._beyond_few(metric)

        def means() -> Array:
            rho, weight = self.rho[:, agent, None], np.exp(delta_grid(POPULATION_STEP)[1])
            found = np.empty((len(ks), len(rho)))
            for part, shares in self._new_tasks(agent):
                powers = mean_powers(shares[0 if metric.power else 1], rho[part], 1 - rho[part], 0, 0, ks)
                for own, (_, power) in zip(found, powers, strict=True):
                    own[part] = power @ weight
            return found

        return np.asarray(self.once(("new tasks", agent, metric.power, ks), means)[ks.index(metric.k)])

    def _beyond_few(self, metric: Metric) -> tuple[int, ...]:
        """The k above `FEW` that are computed with this one, in rising order."""
        return tuple(sorted({own.k for own in self._together(metric) if own.power == metric.power and own.k > FEW}))

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
    def _drawn(self) -> Array:
        """How many tasks of each pattern are drawn one by one; where not all are, their sums are scaled up."""
        size = self.likelihood.size
        enough = MOST_DRAWN if self.grouping is None else size.sum()  # groups ask for draws of their tasks again
        most = max((m for m in range(1, MOST_ALIKE + 1) if np.minimum(size, m).sum() <= enough), default=1)
        return np.minimum(size, most)

    @cached_property
    def _shown(self) -> Array:
        """The pattern of each task that is drawn one by one."""
        return np.repeat(np.arange(self._drawn.size), self._drawn)

    @cached_property
    def _difficulty(self) -> Array:
        """Draws of δ of the tasks `_shown`, shape (points, tasks)."""
        return self._deltas_of(self._shown)

    def _deltas_of(self, pattern: Array) -> Array:
        """Draws of δ of tasks of these patterns, in rising order, shape (points, tasks); the same for all agents."""
        points, sizes = self.sigma.size, np.unique(pattern, return_counts=True)
        uniform = np.concatenate(
            [self.rng(1, self.counts.stream, i).random((2, size, points)) for i, size in zip(*sizes, strict=True)],
            axis=1,
        )
        deltas = np.empty((points, pattern.size))
        with one_blas_thread():
            for part, weights in self.likelihood.delta_posteriors(*self.arguments):
                deltas[part] = self._deltas(weights, pattern, uniform[:, :, part]).T
        return deltas

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

    def _drawn_p(self, agent: int) -> Array:
        """P of the tasks `_shown`, shape (points, tasks)."""
        return self.once(("p", agent), lambda: self._p_of(agent, self._shown, self._difficulty))

    def draw_tasks(self, agents: Sequence[int], metric: Metric) -> None:
        """In threads, after the difficulties, which agents share; every agent has its own random stream."""
        if len(agents) > 1 and self._difficulty.size:
            in_threads(self._drawn_p, agents)

    def _tasks_values(self, agent: int, metric: Metric) -> Array:
        """The mean over the scored tasks at every point."""
        metrics = self._together(metric)
        return self.once(("means of tasks", agent, metrics), lambda: self._tasks_means(agent, metrics))[metric]

    def _tasks_means(self, agent: int, metrics: tuple[Metric, ...]) -> dict[Metric, Array]:
        size, (_, n), drawn = self.likelihood.size, self.likelihood.pairs[agent], self._drawn
        size = np.where(n[self.likelihood.patterns[:, agent]] > 0, size, 0)
        used = size[self._shown] > 0
        p = self._drawn_p(agent)
        # the deviation of a mean over more tasks is smaller, and shared difficulty stays shared
        weight = np.sqrt(size / drawn)[self._shown[used]]
        found = sums_of_metrics(p if used.all() else p[:, used], metrics, weight=weight)
        for metric, total in found.items():
            beyond = self._beyond(metric)[agent] if (size > drawn).any() else 0
            found[metric] = np.clip((total + beyond) / size.sum(), 0, 1)
        return found

    def _beyond(self, metric: Metric) -> Array:
        """What makes sums over drawn tasks sums over all: means given the data, shape (agents, points)."""
        ks = tuple(range(1, FEW + 1)) if metric.k <= FEW else self._beyond_few(metric)
        powers = self.once(("beyond", ks), lambda: self._powers_beyond(ks))[:, 0 if metric.power else 1]
        found = powers[:, 1 + ks.index(metric.k)]
        return np.asarray(found if metric.power else powers[:, 0] - found)

    def _powers_beyond(self, ks: tuple[int, ...]) -> Array:
        """Sums over tasks that are not drawn of 1 and of E p^k and E (1 - p)^k, shape (agents, 2, 1 + ks, points)."""
        likelihood, size = self.likelihood, self.likelihood.size
        beyond = (size - np.sqrt(size * self._drawn)).astype(np.float32)
        found = np.zeros((len(self.counts.agents), 2, 1 + len(ks), self.sigma.size))
        with one_blas_thread():
            for part, weights in likelihood.delta_posteriors(*self.arguments):
                shares = likelihood.by_pair(weights * beyond[:, None, None])
                for agent, (share, (_, n)) in enumerate(zip(shares, likelihood.pairs, strict=True)):
                    share *= (n > 0)[:, None, None]
                    logit = self.theta[part, agent, None] + self.sigma[part, None] * likelihood.delta
                    found[agent, :, 0, part] = share.sum(axis=(0, 2))
                    means = self._mean_powers(agent, expit_pair(logit), ks, part)
                    for own, mean in zip(found[agent], means, strict=True):
                        for out, power in zip(own[1:], mean, strict=True):
                            out[part] = np.einsum("pdn,pdn->d", share, power)
        return found

    def _mean_powers(
        self, agent: int, shares: tuple[Array, Array], ks: tuple[int, ...], part: slice
    ) -> Iterator[Iterator[Array]]:
        """E p^k, then E (1 - p)^k, for each k given δ and the agent's distinct counts, shape (pairs, points, nodes)."""
        c, n = (own[:, None, None] for own in self.likelihood.pairs[agent])
        rho = self.rho[part, agent, None]
        for share, count in zip(shares, (c, n - c), strict=True):
            yield (power for _, power in mean_powers(share, rho, 1 - rho, count, n, ks))

    def task_draws(self, agent: int, tasks: Array | None = None) -> Array:
        """Posterior draws of p of all tasks, or of those with these indices, shape (draws, tasks)."""
        place = self.likelihood.place if tasks is None else self.likelihood.place[tasks]
        asked = np.bincount(place, minlength=self._drawn.size)
        more = np.flatnonzero(asked > self._drawn)
        first, held = np.cumsum(self._drawn) - self._drawn, self._drawn_p(agent)
        if more.size:
            which = np.repeat(more, asked[more])
            delta = self._deltas_of(which)
            many = {i: self._p_of(agent, which[which == i], delta[:, which == i], i) for i in more.tolist()}

        def draw(pattern: int, count: int) -> Array:
            if count > self._drawn[pattern]:
                return many[pattern][self.picked]
            return held[self.picked, first[pattern] : first[pattern] + count]

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
