"""The crossed model: agents that attempt the same tasks share the tasks' difficulty; `Crossed` states it.

p is integrated out in closed form and δ on a uniform grid, so that a posterior is one of (θ, σ, ρ) alone. Only the
pattern of (c, n) across agents matters: tasks with equal patterns are counted, not repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from agentic_bayes.estimation.arithmetic import apply_metric
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.distribution import Distribution, Drawn
from agentic_bayes.estimation.engines.grid.axes import logsumexp
from agentic_bayes.estimation.engines.grid.betabinomial import LONGEST_PRODUCT, TINY, log_rising, mean_power
from agentic_bayes.estimation.population import Population, log_binomial
from agentic_bayes.estimation.posterior import Estimand, Posterior, draws_by_task
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array

SIGMA_SCALE = 2.0  # of the HalfNormal prior of σ
# nodes of δ and their normal weights: a uniform grid, since Gauss-Hermite nodes are too few where σ is large
DELTA = np.linspace(-6.0, 6.0, 49)
LOG_WEIGHT = -0.5 * DELTA**2 - np.log(np.sum(np.exp(-0.5 * DELTA**2)))
MOST_TASKS = 100  # tasks of one pattern that are drawn one by one; more are scaled up from these
EVERY_DELTA = 2  # a step of .5 is enough for checks
CHUNK = 256  # draws at a time, to bound memory


def expit_pair(logit: Array) -> tuple[Array, Array]:
    """Share and its complement, each without loss of digits."""
    small = np.exp(-np.abs(logit))
    large, rest = 1 / (1 + small), small / (1 + small)
    positive = logit >= 0
    return np.where(positive, large, rest), np.where(positive, rest, large)


class CrossedLikelihood:
    """Likelihood of (θ, σ, ρ) with δ and p integrated out."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        pairs = [counts.pairs(agent) for agent in range(len(counts.agents))]
        self.pairs = [(c, n) for c, n, _ in pairs]
        index = np.stack([place for _, _, place in pairs], axis=1)
        # patterns are numbered as if agents stood in the order of their random streams
        order = np.argsort(counts.streams)
        patterns, self.place, self.size = np.unique(index[:, order], axis=0, return_inverse=True, return_counts=True)
        self.patterns = patterns[:, counts.streams]
        self.place = self.place.reshape(-1)

    def agent_tables(self, theta: Array, sigma: Array, rho: Array, one_minus_rho: Array) -> list[Array]:
        """Log likelihood of each agent's distinct (c, n) at every δ."""
        tables = []
        for a, (c, n) in enumerate(self.pairs):
            mu, nu = expit_pair(theta[:, a, None] + sigma[:, None] * DELTA)
            r, q = rho[:, a, None], one_minus_rho[:, a, None]
            success, failure, total = _rising(mu * q, r, c), _rising(nu * q, r, n - c), _rising(q, r, n)
            tables.append(
                np.stack([success[ci] + failure[ni - ci] - total[ni] for ci, ni in zip(c, n, strict=True)], 1)
            )
        return tables

    def __call__(self, theta: Array, sigma: Array, rho: Array, one_minus_rho: Array) -> Array:
        """Log likelihood, shape (draws,)."""
        out = np.empty(sigma.shape)
        for start in range(0, sigma.size, CHUNK):
            part = slice(start, start + CHUNK)
            tables = self.agent_tables(theta[part], sigma[part], rho[part], one_minus_rho[part])
            out[part] = self._combined(tables)
        return out

    def _combined(self, tables: list[Array]) -> Array:
        """Multiply the agents' likelihoods at each δ, integrate over δ, and sum the logs over tasks."""
        shifts, product = np.zeros((tables[0].shape[0], len(self.patterns))), np.exp(LOG_WEIGHT)[None, None, :]
        for a, table in enumerate(tables):
            top = table.max(axis=2)
            scaled = np.exp(table - top[:, :, None])
            product = product * scaled[:, self.patterns[:, a]]
            shifts += top[:, self.patterns[:, a]]
        with np.errstate(divide="ignore"):
            logs = np.log(product.sum(axis=2)) + shifts
        return np.asarray(logs @ self.size)

    def delta_weights(self, tables: list[Array], pattern: int) -> Array:
        """Posterior weights of δ for tasks of one pattern, shape (draws, δ nodes)."""
        logs = LOG_WEIGHT + sum(table[:, self.patterns[pattern, a]] for a, table in enumerate(tables))
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _rising(base: Array, rho: Array, lengths: Array) -> dict[int, Array]:
    """Σ_{j<m} log(base + jρ) for every m in `lengths`."""
    wanted = set(lengths.tolist())
    most = max(wanted, default=0)
    if most > LONGEST_PRODUCT:
        log_base, positive = np.log(np.maximum(base, TINY)), np.maximum(rho, TINY)
        return {m: log_rising(log_base, m, positive) for m in wanted}
    running = np.zeros(np.broadcast_shapes(base.shape, rho.shape))
    sums = {0: running}
    for j in range(most):
        running = running + np.log(base + j * rho)
        if j + 1 in wanted:
            sums[j + 1] = running
    return sums


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossedPosterior(Posterior):
    """Posterior of every estimand from draws of (θ, σ, ρ)."""

    theta: Array  # shape (draws, agents)
    sigma: Array  # shape (draws,)
    rho: Array  # shape (draws, agents)

    @cached_property
    def likelihood(self) -> CrossedLikelihood:
        """The likelihood that the draws are weighted by."""
        return CrossedLikelihood(self.counts)

    @cached_property
    def tables(self) -> list[Array]:
        """Log likelihood of each agent's distinct (c, n) at every draw and δ; see `CrossedLikelihood.agent_tables`."""
        return self.likelihood.agent_tables(self.theta, self.sigma, self.rho, 1 - self.rho)

    def _shares(self, agent: int) -> tuple[Array, Array]:
        """μ and 1 - μ at every δ, shape (draws, δ nodes)."""
        return expit_pair(self.theta[:, agent, None] + self.sigma[:, None] * DELTA)

    def _given_data(self, agent: int, pattern: int, metric: Metric) -> Array:
        """E t given the hyperparameters and data, t = p^k or (1-p)^k, shape (draws,)."""
        c, n = (int(part[self.likelihood.patterns[pattern, agent]]) for part in self.likelihood.pairs[agent])
        mu, nu = self._shares(agent)
        share, count = (mu, c) if metric.power else (nu, n - c)
        rho = self.rho[:, agent, None]
        weights = self.likelihood.delta_weights(self.tables, pattern)
        return np.asarray(np.sum(weights * mean_power(share, rho, 1 - rho, count, n, metric.k), axis=1))

    def _distribution(self, agent: int, estimand: Estimand, metric: Metric) -> Distribution:
        n_tasks = int(self.counts.scored[agent].sum())
        match estimand:
            case "population":
                return Drawn.of(self._population_draws(agent, metric), n_tasks=n_tasks)
            case "tasks":
                return Drawn.of(self._tasks_draws(agent, metric), n_tasks=n_tasks)
            case "task":
                patterns = range(len(self.likelihood.patterns))
                p = np.concatenate([self._pattern_draws(agent, pattern, 1) for pattern in patterns], axis=1)
                values, place = apply_metric(p, metric), self.likelihood.place
                mean, sd = values.mean(axis=0)[place], values.std(axis=0, ddof=1)[place]
                return Drawn(mean=mean, sd=sd, values=values, place=place)

    def _population_draws(self, agent: int, metric: Metric) -> Array:
        mu, nu = self._shares(agent)
        share, rho = mu if metric.power else nu, self.rho[:, agent, None]
        tail = mean_power(share, rho, 1 - rho, 0, 0, metric.k) @ np.exp(LOG_WEIGHT)
        return np.asarray(tail if metric.power else 1 - tail)

    def _tasks_draws(self, agent: int, metric: Metric) -> Array:
        own = self.likelihood.place[self.counts.scored[agent]]
        patterns, size = np.unique(own, return_counts=True)
        total = np.zeros(self.sigma.shape)
        for pattern, count in zip(patterns.tolist(), size.tolist(), strict=True):
            drawn = apply_metric(self._pattern_draws(agent, pattern, min(count, MOST_TASKS)), metric).sum(axis=1)
            if count > MOST_TASKS:
                # the deviation of a mean over more tasks is smaller, and shared difficulty stays shared
                tail = self._given_data(agent, pattern, metric)
                centre = tail if metric.power else 1 - tail
                drawn = count * centre + np.sqrt(count / MOST_TASKS) * (drawn - MOST_TASKS * centre)
            total += drawn
        return np.asarray(total / size.sum())

    def _pattern_draws(self, agent: int, pattern: int, count: int) -> Array:
        """Draws of p for `count` tasks of one pattern; all agents see the same difficulties, shape (draws, count)."""

        def drawn() -> Array:
            rng = self.rng(1, pattern)
            cumulative = np.cumsum(self.likelihood.delta_weights(self.tables, pattern), axis=1)
            uniform = rng.random((self.sigma.size, count))
            node = np.stack([(cumulative < column[:, None]).sum(axis=1) for column in uniform.T], axis=1)
            step = DELTA[1] - DELTA[0]
            delta = DELTA[np.minimum(node, DELTA.size - 1)] + step * (rng.random(node.shape) - 0.5)
            c, n = (int(part[self.likelihood.patterns[pattern, agent]]) for part in self.likelihood.pairs[agent])
            mu, nu = expit_pair(self.theta[:, agent, None] + self.sigma[:, None] * delta)
            kappa = (1 / self.rho[:, agent] - 1)[:, None]
            own = self.rng(2, pattern, self.counts.streams[agent])
            return own.beta(np.maximum(mu * kappa + c, TINY), np.maximum(nu * kappa + n - c, TINY))

        return self.once((agent, "pattern", pattern, count), drawn)

    def task_draws(self, agent: int, tasks: Array | None = None) -> Array:
        """Posterior draws of p of all tasks, or of those with these indices, shape (draws, tasks)."""
        place = self.likelihood.place if tasks is None else self.likelihood.place[tasks]
        return draws_by_task(place, partial(self._pattern_draws, agent))

    def hyper_draws(self) -> dict[str, Array]:
        """θ, σ and ρ, and the mean success probability of a new task, which follows from θ and σ."""
        agents, pass_one = range(len(self.counts.agents)), Metric("pass^1")
        mu = np.stack([self.distribution(agent, "population", pass_one).draws() for agent in agents], axis=1)
        return {"theta": self.theta, "sigma": self.sigma, "rho": self.rho, "mu": mu}

    def population(self, agent: int, draws: int) -> Population | None:
        """A Beta distribution at every second δ per draw."""
        every = max(self.sigma.size // draws, 1)
        theta, sigma, rho = self.theta[::every, agent, None], self.sigma[::every, None], self.rho[::every, agent, None]
        weight = np.exp(LOG_WEIGHT[::EVERY_DELTA] - LOG_WEIGHT.max())
        mu, one_minus_mu = expit_pair(theta + sigma * DELTA[::EVERY_DELTA])
        return Population(mu, one_minus_mu, rho, weight[None] / weight.sum())

    def log_likelihood(self) -> Array:
        """Log p(cell | the other agents' counts on its task), difficulty integrated out, shape (draws, cells).

        That is what leaving the cell out needs.
        """
        likelihood, tables = self.likelihood, self.tables
        found = np.empty((len(tables), len(likelihood.patterns), self.sigma.size))
        for index, pattern in enumerate(likelihood.patterns.tolist()):
            own = [table[:, pair] for table, pair in zip(tables, pattern, strict=True)]
            joint = LOG_WEIGHT + sum(own)
            together = logsumexp(joint, axis=1)
            for agent, part in enumerate(own):
                found[agent, index] = together - logsumexp(joint - part, axis=1)
        columns = []
        for agent, (c, n) in enumerate(likelihood.pairs):
            by_pattern = found[agent] + log_binomial(n, c)[likelihood.patterns[:, agent], None]
            columns.append(by_pattern[likelihood.place[self.counts.scored[agent]]])
        return np.concatenate(columns).T
