"""The likelihood of the crossed model: p and the tasks' difficulty δ are integrated out.

::

    log L(θ, σ, ρ) = Σ_i log ∫ N(δ; 0, 1) Π_a BetaBinomial(c_ai; n_ai, μ_a(δ), ρ_a) dδ,   logit μ_a(δ) = θ_a + σ δ

Only the pattern of (c, n) across agents matters: tasks with equal patterns are counted, not repeated. Each agent's
distinct (c, n) are tabulated over δ, and one matrix product adds up what belongs to a pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.numerics import Array

SPAN = 6.0  # δ is integrated over ±6
COARSEST, FINEST = 0.25, 0.01  # steps of its grid; uniform, since Gauss-Hermite nodes are too few where σ is large
CELLS = 2**21  # of a pattern × draw × δ array, to bound memory
DRAWS = 32  # at a time, so that tables stay in the processor's cache
LONGEST_SINGLE = 64  # up to so many trials single precision is enough


def expit_pair(logit: Array) -> tuple[Array, Array]:
    """Share and its complement, each without loss of digits."""
    small = np.exp(-np.abs(logit))
    large, rest = 1 / (1 + small), small / (1 + small)
    positive = logit >= 0
    return np.where(positive, large, rest), np.where(positive, rest, large)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Matrix products here are small: threads would cost more than they do, most of all on busy cores."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1, user_api="blas")
    return limits


def delta_grid(step: float) -> tuple[Array, Array]:
    """Nodes of δ and the logs of their normal weights."""
    half = int(np.ceil(SPAN / step))
    nodes = step * np.arange(-half, half + 1)
    log_weight = -0.5 * nodes**2
    return nodes, log_weight - np.log(np.sum(np.exp(log_weight)))


class CrossedLikelihood:
    """Log likelihood of (θ, σ, ρ), shape (draws,), and its slopes."""

    def __init__(self, counts: Counts, step: float = COARSEST) -> None:
        self.counts = counts
        pairs = [counts.pairs(agent) for agent in range(len(counts.agents))]
        index = np.stack([place for _, _, place in pairs], axis=1)
        # patterns are numbered as if agents stood in the order of their random streams
        order = counts.order
        patterns, place, self.size = np.unique(index[:, order], axis=0, return_inverse=True, return_counts=True)
        self.place = place.reshape(-1)  # shape (tasks,); the pattern of each task
        self.patterns = patterns[:, np.argsort(order)]  # shape (patterns, agents); which of the agent's distinct (c, n)
        self.pairs = [(c, n) for c, n, _ in pairs]
        sizes = [c.size for c, _ in self.pairs]
        self.first = np.concatenate([[0], np.cumsum(sizes)])  # row of each agent's first pair in the tables
        agent = np.repeat(np.arange(len(sizes)), sizes)
        c, n = (np.concatenate(part) for part in zip(*self.pairs, strict=True))
        self._single = np.float32 if int(n.max(initial=0)) <= LONGEST_SINGLE else np.float64
        self._rows = np.zeros((len(self.patterns), agent.size), self._single)  # which rows belong to a pattern
        np.put_along_axis(self._rows, self.patterns + self.first[:-1], 1, axis=1)
        self._success, self._failure, self._total = (_RisingSums(part, agent) for part in (c, n - c, n))
        self.set_step(step)

    def set_step(self, step: float) -> None:
        """Integrate δ over a grid of this step."""
        self.step = step
        self.delta, self.log_weight = delta_grid(step)
        self._chunk = max(1, min(int(DRAWS * 49 / self.delta.size), CELLS // (len(self.patterns) * self.delta.size)))

    def needed_step(self, sigma: float, rho: Array) -> float:
        """The step that resolves every task's posterior of δ.

        1.5 times the smallest standard deviation, with the information of a task at μ = ½ and at half of each ρ.
        """
        trials = self.counts.trials
        information = (trials / (1 + np.maximum(trials - 1, 0) * rho[:, None] / 2)).sum(axis=0).max(initial=0)
        return float(np.clip(1.5 / np.sqrt(1 + sigma**2 / 4 * information), FINEST, COARSEST))

    def __call__(self, theta: Array, sigma: Array, rho: Array, one_minus_rho: Array) -> Array:
        """Log likelihood at draws of shape (draws, agents) and (draws,)."""
        parts = [slice(start, start + self._chunk) for start in range(0, sigma.size, self._chunk)]
        return np.concatenate(
            [self._integrated(theta[part], sigma[part], rho[part], one_minus_rho[part]) for part in parts]
        )

    def _integrated(self, theta: Array, sigma: Array, rho: Array, one_minus_rho: Array) -> Array:
        tables = _Tables(self, theta, sigma, rho, one_minus_rho)
        return self._over_delta(tables.values)[0]

    def _over_delta(self, table: Array) -> tuple[Array, Array, Array]:
        """Log likelihood, and for each pattern exp of the terms at every δ and their sum."""
        terms = (self._rows @ table.reshape(len(table), -1)).reshape(len(self._rows), *table.shape[1:])
        terms += self.log_weight.astype(self._single)
        top = terms.max(axis=2, keepdims=True)
        terms -= top
        np.exp(terms, out=terms)
        total = np.asarray(terms.sum(axis=2))
        value = self.size @ (np.log(total).astype(np.float64) + top[:, :, 0])
        return np.asarray(value), np.asarray(terms), total

    def with_slopes(
        self, theta: Array, sigma: Array, rho: Array, one_minus_rho: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Log likelihood and its derivatives with respect to θ, σ and ρ."""
        found = []
        for start in range(0, sigma.size, self._chunk):
            part = slice(start, start + self._chunk)
            tables = _Tables(self, theta[part], sigma[part], rho[part], one_minus_rho[part])
            value, terms, total = self._over_delta(tables.values)
            terms *= (self.size[:, None] / total)[:, :, None].astype(self._single)
            share = (self._rows.T @ terms.reshape(len(terms), -1)).reshape(tables.values.shape)
            found.append((value, *tables.slopes(share)))
        value, by_theta, by_sigma, by_rho = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return value, by_theta, by_sigma, by_rho

    def agent_tables(self, theta: Array, sigma: Array, rho: Array, one_minus_rho: Array) -> list[Array]:
        """Log likelihood of each agent's distinct (c, n) at every δ, shapes (draws, pairs, δ nodes)."""
        values = np.empty((self.first[-1], sigma.size, self.delta.size), self._single)
        for start in range(0, sigma.size, self._chunk):
            part = slice(start, start + self._chunk)
            values[:, part] = _Tables(self, theta[part], sigma[part], rho[part], one_minus_rho[part]).values
        return [
            values[start:end].transpose(1, 0, 2) for start, end in zip(self.first[:-1], self.first[1:], strict=True)
        ]

    def delta_posteriors(
        self, theta: Array, sigma: Array, rho: Array, one_minus_rho: Array
    ) -> Iterator[tuple[slice, Array]]:
        """Posterior weights of δ for tasks of every pattern, some draws at a time, shape (patterns, draws, δ nodes)."""
        for start in range(0, sigma.size, self._chunk):
            part = slice(start, start + self._chunk)
            tables = _Tables(self, theta[part], sigma[part], rho[part], one_minus_rho[part])
            _, terms, total = self._over_delta(tables.values)
            yield part, terms / total[:, :, None]


class _Tables:
    """Log likelihood of every agent's distinct (c, n) at every draw and δ, and what slopes need of it."""

    def __init__(self, model: CrossedLikelihood, theta: Array, sigma: Array, rho: Array, one_minus_rho: Array) -> None:
        self.model, single = model, model._single
        self.logit = (theta.T[:, :, None] + sigma[:, None] * model.delta).astype(single)
        self.mu, self.nu = expit_pair(self.logit)
        self.rho, self.rest = (part.T[:, :, None].astype(single) for part in (rho, one_minus_rho))
        small = np.log1p(np.exp(-np.abs(self.logit)))
        log_rest = np.log(one_minus_rho).T[:, :, None].astype(single)
        log_mu, log_nu = np.minimum(self.logit, 0) - small, np.minimum(-self.logit, 0) - small
        self.passing, self.failing = self.mu * self.rest, self.nu * self.rest
        self.values = model._success(self.passing, self.rho, log_mu + log_rest)
        self.values += model._failure(self.failing, self.rho, log_nu + log_rest)
        self.values -= model._total(self.rest, self.rho, log_rest)

    def slopes(self, share: Array) -> tuple[Array, Array, Array]:
        """Derivatives with respect to θ, σ and ρ, given how much each row counts."""
        model = self.model
        passed, passed_j = model._success.slopes(share, self.passing, self.rho)
        failed, failed_j = model._failure.slopes(share, self.failing, self.rho)
        tried, tried_j = model._total.slopes(share, self.rest, self.rho)
        change = self.mu * self.nu * self.rest  # d(μ(1-ρ))/dθ
        by_logit = change * (passed - failed)
        by_rho = passed_j - self.mu * passed + failed_j - self.nu * failed - tried_j + tried
        by_theta, by_rho = (part.sum(axis=2, dtype=np.float64).T for part in (by_logit, by_rho))
        by_sigma = np.sum(by_logit * model.delta, axis=(0, 2), dtype=np.float64)
        return by_theta, np.asarray(by_sigma), by_rho


class _RisingSums:
    """Σ_{j<m} log(part + jρ) for many (m, agent): term by term up to m = 24, then by Euler and Maclaurin's formula."""

    DIRECT = 24

    def __init__(self, lengths: Array, agent: Array) -> None:
        self.lengths, self.agent = lengths, agent
        self.direct = int(min(lengths.max(initial=0), self.DIRECT))
        self.row = np.minimum(lengths, self.DIRECT)
        long = np.flatnonzero(lengths > self.DIRECT)
        keys, self.long_of = np.unique(np.stack([agent[long], lengths[long]]), axis=1, return_inverse=True)
        self.long, self.long_of = long, self.long_of.reshape(-1)
        self.long_agent, self.tail = keys[0], (keys[1] - self.DIRECT)[:, None, None]

    def __call__(self, part: Array, rho: Array, log_part: Array) -> Array:
        """The sums, shape (rows, draws, δ nodes or 1), of part = exp(log_part), shape (agents, draws, δ nodes or 1)."""
        sums = np.zeros((self.direct + 1, *part.shape), part.dtype)
        if self.direct:
            sums[1] = log_part
        for j in range(1, self.direct):
            np.log(part + j * rho, out=sums[j + 1])
            sums[j + 1] += sums[j]
        found = sums[self.row, self.agent]
        if self.long.size:
            start, rho, length = (part + self.DIRECT * rho)[self.long_agent], rho[self.long_agent], self.tail
            end = start + length * rho
            ratio = length * rho / start
            tail = length * (np.log(start) + _mean_log_rise(ratio)) - 0.5 * np.log1p(ratio)
            tail += rho / 12 * (1 / end - 1 / start) - (rho / end) ** 3 / 360 + (rho / start) ** 3 / 360
            found[self.long] += tail[self.long_of]
        return found

    def slopes(self, share: Array, part: Array, rho: Array) -> tuple[Array, Array]:
        """Σ share Σ_{j<m} 1/(part + jρ) and Σ share Σ_{j<m} j/(part + jρ), for each agent."""
        counted = np.zeros((self.direct + 1, len(part), *share.shape[1:]), share.dtype)
        for place, part_share in zip(zip(self.row, self.agent, strict=True), share, strict=True):
            counted[place] += part_share
        above = counted[::-1].cumsum(axis=0)[::-1]  # how much the rows with m ≥ j count
        plain, weighted = np.zeros(above.shape[1:], share.dtype), np.zeros(above.shape[1:], share.dtype)
        for j in range(self.direct):
            term = above[j + 1] / np.maximum(part + j * rho, 1e-30)
            plain += term
            weighted += j * term
        if self.long.size:
            counts = np.zeros((self.long_agent.size, *share.shape[1:]), share.dtype)
            for group, row in zip(self.long_of, self.long, strict=True):
                counts[group] += share[row]
            start, rho, length = (part + self.DIRECT * rho)[self.long_agent], rho[self.long_agent], self.tail
            end = start + length * rho
            ratio = length * rho / start
            mean, rise = _mean_inverse(ratio)
            once = length / start * mean - 0.5 * (1 / end - 1 / start)
            times = length**2 / start * rise - 0.5 * length / end + (start / end**2 - 1 / start) / 12
            for group, agent in enumerate(self.long_agent):
                plain[agent] += (counts * once)[group]
                weighted[agent] += (counts * (times + self.DIRECT * once))[group]
        return plain, weighted


def _mean_log_rise(ratio: Array) -> Array:
    """∫₀¹ log(1 + ratio·t) dt."""
    safe = np.maximum(ratio, 1e-4)
    return np.where(ratio < 1e-4, ratio / 2, (1 + 1 / safe) * np.log1p(safe) - 1)


def _mean_inverse(ratio: Array) -> tuple[Array, Array]:
    """∫₀¹ dt/(1 + ratio·t) and ∫₀¹ t dt/(1 + ratio·t)."""
    safe = np.maximum(ratio, 1e-2)
    mean = np.log1p(safe) / safe
    near = ratio < 1e-2
    first = np.where(near, 1 - ratio / 2 + ratio**2 / 3 - ratio**3 / 4, mean)
    return first, np.where(near, 0.5 - ratio / 3 + ratio**2 / 4 - ratio**3 / 5, (1 - mean) / safe)
