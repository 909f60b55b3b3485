"""The likelihood of the crossed model: p and the tasks' difficulty δ are integrated out.

::

    log L(θ, σ, ρ) = Σ_i log ∫ N(δ; 0, 1) Π_a BetaBinomial(c_ai; n_ai, μ_a(δ), ρ_a) dδ,   logit μ_a(δ) = θ_a + σ δ

Only the pattern of (c, n) across agents matters: tasks with equal patterns are counted, not repeated. Each agent's
distinct (c, n) are tabulated over δ, and one matrix product adds up what belongs to a pattern.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

import numpy as np

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.numerics import Array

SPAN = 6.0  # δ is integrated over ±6
COARSEST, FINEST = 0.25, 0.01  # steps of its grid; uniform, since Gauss-Hermite nodes are too few where σ is large
EASY = 0.35  # the step where no task pins δ down
CELLS = 2**19  # of all tables at a time, so that they stay in the processor's cache
LEAST, MOST_CELLS = 8, 2**23  # draws at a time for which more are taken, since each call costs; to bound memory
SAFE = 1e30  # sums of exp within this factor of 1 have lost nothing in single precision
STEEPEST = 80.0  # logits beyond are not told apart: exp of more exceeds single precision
LONGEST_SINGLE = 64  # up to so many trials single precision is enough


def expit_pair(logit: Array) -> tuple[Array, Array]:
    """Share and its complement, each without loss of digits."""
    small = np.exp(-np.abs(logit))
    large, rest = 1 / (1 + small), small / (1 + small)
    positive = logit >= 0
    return np.where(positive, large, rest), np.where(positive, rest, large)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Matrix products here are small: threads would cost more than they do, most of all on busy cores."""
    limits: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limits


@lru_cache(maxsize=1)
def _libraries() -> Any:
    """What controls the threads of the loaded libraries: looking for them takes longer than a small fit."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def delta_grid(step: float) -> tuple[Array, Array]:
    """Nodes of δ and the logs of their normal weights."""
    half = int(np.ceil(SPAN / step))
    nodes = step * np.arange(-half, half + 1)
    log_weight = -0.5 * nodes**2
    return nodes, log_weight - np.log(np.sum(np.exp(log_weight)))


class CrossedLikelihood:
    """Log likelihood of (θ, σ, ρ), shape (draws,), and its slopes."""

    def __init__(self, counts: Counts, step: float = COARSEST) -> None:
        pairs = [counts.pairs(agent) for agent in range(len(counts.agents))]
        self._number_patterns(counts, [(c, n) for c, n, _ in pairs], np.stack([place for *_, place in pairs], axis=1))
        self._tabulate(self.pairs)
        self.set_step(step)

    def _number_patterns(self, counts: Counts, pairs: list[tuple[Array, Array]], index: Array) -> None:
        """Number the patterns, given each agent's distinct (c, n) and which of them its tasks have."""
        self.counts, self.pairs = counts, pairs
        # patterns are numbered as if agents stood in the order of their random streams
        order = counts.order
        patterns, place, self.size = np.unique(index[:, order], axis=0, return_inverse=True, return_counts=True)
        self.place = place.reshape(-1)  # shape (tasks,); the pattern of each task
        self.patterns = patterns[:, np.argsort(order)]  # shape (patterns, agents); which of the agent's distinct (c, n)
        self.first, agent, _, n = _stacked(pairs, order)
        self._single = self._precision(int(n.max(initial=0)))
        # which rows belong to a pattern; then the weight of δ, and a constant
        self._rows = np.zeros((len(self.patterns), agent.size + 2), self._single)
        np.put_along_axis(self._rows, self.patterns + self.first, 1, axis=1)
        self._rows[:, -2] = 1
        self._row_size = self.size @ self._rows[:, :-2].astype(np.float64)  # how many tasks have a row's (c, n)

    def _precision(self, longest: int) -> Any:
        """Of the tables."""
        return np.float32 if longest <= LONGEST_SINGLE else np.float64

    def _tabulate(self, pairs: list[tuple[Array, Array]]) -> Array:
        """Prepare tables of these (c, n) of every agent; the row of each agent's first."""
        first, agent, c, n = _stacked(pairs, self.counts.order)
        # successes of the agents, then their failures: the same sums of two shares
        self._outcomes = _RisingSums(np.concatenate([c, n - c]), np.concatenate([agent, agent + len(pairs)]))
        self._total = _RisingSums(n, agent)
        return first

    def set_step(self, step: float) -> None:
        """Integrate δ over a grid of this step."""
        self.step = step
        self.delta, self.log_weight = delta_grid(step)
        rows = len(self.patterns) + 2 * len(self.pairs) * (self._outcomes.direct + 2) + 2 * len(self._row_size)
        cells = int(rows) * self.delta.size
        self._chunk = max(1, CELLS // cells, min(LEAST, MOST_CELLS // cells))

    def needed_step(self, sigma: float, rho: Array, coarsest: float = COARSEST) -> float:
        """The step that resolves every task's posterior of δ, whose least standard deviation s is that at μ = ½.

        With half of each ρ. It is 1.5 s; above the usual coarsest step .7 s, which also does where σ is larger.
        """
        trials = self.counts.trials
        information = (trials / (1 + np.maximum(trials - 1, 0) * rho[:, None] / 2)).sum(axis=0).max(initial=0)
        least = 1 / np.sqrt(1 + sigma**2 / 4 * information)
        return float(np.clip(1.5 * least, FINEST, np.clip(0.7 * least, COARSEST, coarsest)))

    def __call__(self, *draws: Array) -> Array:
        """Log likelihood at draws of θ, σ, ρ and 1 - ρ, shapes (draws, agents) and, of σ, (draws,)."""
        return np.concatenate([self._over_delta(tables)[0] for _, tables in self._parts(*draws)])

    def _parts(self, *draws: Array) -> Iterator[tuple[slice, Tables]]:
        """Tables of some draws at a time, in memory that is used again: each is gone when the next is asked for."""
        space = Space(self._rows)
        for start in range(0, len(draws[0]), self._chunk):
            part = slice(start, start + self._chunk)
            yield part, self._make_tables(space, *(values[part] for values in draws))

    def _make_tables(self, space: Space, *draws: Array) -> Tables:
        return Tables(self, space, *draws)

    def _over_delta(self, tables: Tables) -> tuple[Array, Array, Array]:
        """Log likelihood, and for each pattern exp of the terms at every δ and their sum, up to a common factor."""
        space, table = tables.space, tables.terms
        terms = space("over δ", (len(self._rows), *table.shape[1:]), self._single)
        into, ones = terms.reshape(len(terms), -1), np.ones(self.delta.size, self._single)
        np.matmul(space.rows, table.reshape(len(table), -1), out=into)
        top = np.zeros((*terms.shape[:2], 1), self._single)
        known = space.scale is not None
        if (
            known
        ):  # what the draws before have shown to be the size of a pattern's sum saves looking for the largest term
            with np.errstate(over="ignore"):
                total = np.exp(terms, out=terms) @ ones
            known = bool(total.min() > 1 / SAFE and total.max() < SAFE)
            if not known:
                np.matmul(space.rows, table.reshape(len(table), -1), out=into)
        if not known:
            top = terms.max(axis=2, keepdims=True)
            terms -= top
            total = np.exp(terms, out=terms) @ ones
        logs = np.log(total).astype(np.float64) + top[:, :, 0]
        if space.scale is not None:
            logs += space.scale[:, None]
        else:
            space.scale_by(logs.mean(axis=1))
        return np.asarray(self.size @ logs - self._row_size @ tables.tried[:, :, 0]), terms, np.asarray(total)

    def with_slopes(self, *draws: Array) -> tuple[Array, ...]:
        """Log likelihood and its derivatives with respect to θ, σ and ρ, at draws as above."""
        return self._with(lambda tables, share: tables.slopes(share), *draws)

    def _with(self, more: Callable[[Any, Array], tuple[Array, ...]], *draws: Array) -> tuple[Array, ...]:
        """Log likelihood, and what follows from the tables and from how much each of their rows counts at every δ."""
        found = []
        for _, tables in self._parts(*draws):
            value, terms, total = self._over_delta(tables)
            terms *= (self.size[:, None] / total)[:, :, None].astype(self._single)
            found.append((value, *more(tables, self._by_row(terms))))
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))

    def _by_row(self, terms: Array) -> Array:
        """What the tasks of every pattern have, shape (patterns, draws, δ nodes), summed for each row of the tables."""
        summed = self._rows[:, :-2].T @ terms.reshape(len(terms), -1)
        return np.asarray(summed.reshape(len(summed), *terms.shape[1:]))

    def by_pair(self, terms: Array) -> list[Array]:
        """The same, for each agent by its distinct (c, n)."""
        return self._of_agents(self._by_row(terms))

    def _of_agents(self, rows: Array) -> list[Array]:
        """The rows of each agent."""
        return [rows[start : start + c.size] for start, (c, _) in zip(self.first, self.pairs, strict=True)]

    def agent_tables(self, *draws: Array) -> list[Array]:
        """Log likelihood of each agent's distinct (c, n) at every δ, shapes (draws, pairs, δ nodes)."""
        values = np.empty((len(self._row_size), len(draws[0]), self.delta.size), self._single)
        for part, tables in self._parts(*draws):
            values[:, part] = tables.terms[:-2] - tables.tried
        return [own.transpose(1, 0, 2) for own in self._of_agents(values)]

    def delta_posteriors(self, *draws: Array) -> Iterator[tuple[slice, Array]]:
        """Posterior weights of δ for tasks of every pattern, some draws at a time, shape (patterns, draws, δ nodes).

        They are gone when the next are asked for.
        """
        for part, tables in self._parts(*draws):
            _, terms, total = self._over_delta(tables)
            terms /= total[:, :, None]
            yield part, terms


def _stacked(pairs: list[tuple[Array, Array]], order: Array) -> tuple[Array, Array, Array, Array]:
    """Row of each agent's first pair; and of every row the agent, c and n.

    Rows stand in the order of the agents' random streams, too, so that sums over agents do not depend on their order to
    the last bit.
    """
    sizes = np.array([c.size for c, _ in pairs])
    first = np.empty_like(sizes)
    first[order] = np.cumsum(sizes[order]) - sizes[order]
    c, n = (np.concatenate([pairs[a][part] for a in order]) for part in (0, 1))
    return first, np.repeat(order, sizes[order]), c, n


class Space:
    """What one draw's computation leaves to the next: memory, since asking for it takes longer than filling it."""

    def __init__(self, rows: Array) -> None:
        self.rows = rows  # of the patterns, and in the last column minus the scale of each
        self.scale: Array | None = None  # log of about what the sum over δ of each pattern is, shape (patterns,)
        self._held: dict[str, Array] = {}

    def scale_by(self, scale: Array) -> None:
        """Sums over δ are taken relative to these."""
        self.rows = self.rows.copy()
        self.rows[:, -1] = -scale
        self.scale = -self.rows[:, -1].astype(np.float64)

    def __call__(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array of this shape with anything in it."""
        size = math.prod(shape)
        if name not in self._held or self._held[name].size < size:
            self._held[name] = np.empty(size, dtype)
        return self._held[name][:size].reshape(shape)


class Tables:
    """Log likelihood of every agent's distinct (c, n) at every draw and δ, and what slopes need of it."""

    def __init__(
        self, model: CrossedLikelihood, space: Space, theta: Array, sigma: Array, rho: Array, one_minus_rho: Array
    ) -> None:
        self.model, self.space, self.rest, single = model, space, one_minus_rho, model._single
        agents, draws, nodes = theta.shape[1], sigma.size, model.delta.size
        odds = (rho / one_minus_rho).T[:, :, None].astype(single)
        self.odds = np.concatenate([odds, odds])  # ρ/(1-ρ): what 1-ρ multiplies cancels, as each trial passes or fails
        log_share, self.share = (space(name, (2 * agents, draws, nodes), single) for name in ("log", "share"))
        # of every agent's success, then of its failure: each share without loss of digits
        success, failure = slice(None, agents), slice(agents, None)
        logit, share, rest = space("logit", (agents, draws, nodes), single), self.share[success], self.share[failure]
        np.multiply(sigma.astype(single)[:, None], model.delta.astype(single), out=logit[0])
        np.add(logit[0].copy(), theta.T.astype(single)[:, :, None], out=logit)
        np.clip(logit, -STEEPEST, STEEPEST, out=logit)
        np.negative(logit, out=rest)
        np.exp(rest, out=rest)
        np.add(rest, 1, out=share)
        np.log(share, out=log_share[success])
        np.negative(log_share[success], out=log_share[success])
        np.subtract(log_share[success], logit, out=log_share[failure])
        np.reciprocal(share, out=share)
        rest *= share
        found = model._outcomes(self.share, self.odds, log_share, space, "outcomes")
        rows = len(found) // 2
        self.terms = space("terms", (rows + 2, draws, nodes), single)  # without what does not depend on δ
        np.add(found[:rows], found[rows:], out=self.terms[:rows])
        self.terms[rows], self.terms[rows + 1] = model.log_weight, 1
        self.one = np.ones_like(odds)
        self.tried = model._total(self.one, odds, np.zeros_like(odds), space, "tried")

    def slopes(self, share: Array) -> tuple[Array, ...]:
        """Derivatives with respect to θ, σ and ρ, given how much each row counts."""
        model, agents = self.model, len(self.one)
        plain, weighted = model._outcomes.slopes(np.concatenate([share, share]), self.share, self.odds, self.space)
        tried = model._total.slopes(share, self.one, self.odds[:agents], self.space)[1]
        by_logit = self.share[:agents] * self.share[agents:] * (plain[:agents] - plain[agents:])
        by_odds = weighted[:agents] + weighted[agents:] - tried
        by_theta, by_odds = (part.sum(axis=2, dtype=np.float64).T for part in (by_logit, by_odds))
        by_sigma = np.sum(by_logit * model.delta, axis=(0, 2), dtype=np.float64)
        return by_theta, np.asarray(by_sigma), by_odds / self.rest**2


class _RisingSums:
    """Σ_{j<m} log(part + jρ) for many (m, agent): term by term up to m = 24, then by Euler and Maclaurin's formula."""

    DIRECT = 24

    def __init__(self, lengths: Array, agent: Array) -> None:
        self.lengths, self.agent = lengths, agent
        self.direct = int(min(lengths.max(initial=0), self.DIRECT))
        self.row = np.minimum(lengths, self.DIRECT)
        self.alone = np.unique(np.stack([self.row, agent]), axis=1).shape[1] == self.row.size  # no two rows' sums agree
        long = np.flatnonzero(lengths > self.DIRECT)
        keys, self.long_of = np.unique(np.stack([agent[long], lengths[long]]), axis=1, return_inverse=True)
        self.long, self.long_of = long, self.long_of.reshape(-1)
        self.long_agent, self.tail = keys[0], (keys[1] - self.DIRECT)[:, None, None]

    def __call__(self, part: Array, rho: Array, log_part: Array, space: Space, name: str) -> Array:
        """The sums, shape (rows, draws, δ nodes or 1), of part = exp(log_part), shape (agents, draws, δ nodes or 1)."""
        sums = space(f"{name} sums", (self.direct + 1, *part.shape), part.dtype)
        sums[0] = 0
        if self.direct:
            sums[1] = log_part
        for j in range(1, self.direct):
            np.add(part, j * rho, out=sums[j + 1])
            np.log(sums[j + 1], out=sums[j + 1])
            sums[j + 1] += sums[j]
        found = space(f"{name} rows", (self.row.size, *part.shape[1:]), part.dtype)
        by_row = sums.reshape(-1, *part.shape[1:])
        np.take(by_row, self.row * len(part) + self.agent, axis=0, out=found, mode="clip")  # else `out` is a copy
        if self.long.size:
            start, rho, length = (part + self.DIRECT * rho)[self.long_agent], rho[self.long_agent], self.tail
            end = start + length * rho
            ratio = length * rho / start
            tail = length * (np.log(start) + _mean_log_rise(ratio)) - 0.5 * np.log1p(ratio)
            tail += rho / 12 * (1 / end - 1 / start) - (rho / end) ** 3 / 360 + (rho / start) ** 3 / 360
            found[self.long] += tail[self.long_of]
        return found

    def slopes(self, share: Array, part: Array, rho: Array, space: Space) -> tuple[Array, Array]:
        """Σ share Σ_{j<m} 1/(part + jρ) and Σ share Σ_{j<m} j/(part + jρ), for each agent."""
        counted = space("counted", (self.direct + 1, len(part), *share.shape[1:]), share.dtype)
        counted[:] = 0
        if self.alone:
            counted[self.row, self.agent] = share
        else:
            for place, part_share in zip(zip(self.row, self.agent, strict=True), share, strict=True):
                counted[place] += part_share
        plain, weighted = np.zeros(counted.shape[1:], share.dtype), np.zeros(counted.shape[1:], share.dtype)
        term, above = np.empty_like(plain), np.zeros_like(plain)
        for j in reversed(range(self.direct)):
            above += counted[j + 1]  # how much the rows with m > j count
            np.add(part, j * rho, out=term)
            np.maximum(term, 1e-30, out=term)
            np.divide(above, term, out=term)
            plain += term
            term *= j
            weighted += term
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
