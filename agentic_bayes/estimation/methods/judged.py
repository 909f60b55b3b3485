"""The hierarchical model seen through a judge that errs: what is said of true successes, and of the judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from agentic_bayes.estimation.arithmetic import LARGE_GROUP, apply_metric, mean_of_metric
from agentic_bayes.estimation.distribution import Distribution, Drawn, Stats
from agentic_bayes.estimation.engines.grid.axes import legendre_nodes
from agentic_bayes.estimation.engines.grid.betabinomial import mean_power
from agentic_bayes.estimation.engines.grid.exact import GridPosterior, of_tail
from agentic_bayes.estimation.engines.grid.judged import JudgedFit, JudgedLikelihood
from agentic_bayes.estimation.methods.judge_labels import JudgeLabels
from agentic_bayes.estimation.population import Population
from agentic_bayes.estimation.posterior import CHAINS, DRAWS, draws_by_task
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array

CHANCE = 0.05  # probability of s₁ + s₀ ≤ 1 from which the judge counts as no better than chance


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedPosterior(GridPosterior):
    """Posterior of every estimand through a judge that errs."""

    judged: JudgedFit  # the grids with the error rates
    labels: JudgeLabels

    def _likelihood(self, agent: int) -> JudgedLikelihood:
        part = self.fit.likelihoods[agent]
        assert isinstance(part, JudgedLikelihood)
        return part

    # -- the judge ----------------------------------------------------------------------------------------------

    def hyper_draws(self) -> dict[str, Array]:
        """μ and ρ of every agent, and the judge's error rates, with an axis of agents where they differ by agent."""
        drawn = {
            name: np.stack(
                [getattr(one, name)[node] for one, node in zip(self.judged.rates, self._rate_node, strict=True)], axis=1
            )
            for name in ("sensitivity", "specificity")
        }
        common = self.judged.shared is None
        return {**super().hyper_draws(), **{name: part[:, 0] if common else part for name, part in drawn.items()}}

    def population(self, agent: int, draws: int) -> Population | None:
        """Nothing to check: true successes say little about the counts that a judge made of them."""
        return None

    def judge_rates(self, ci_prob: float) -> dict[str, tuple[Stats, Stats]]:
        """Mean and interval of sensitivity and specificity, by agent; under an empty name where they are the same."""
        names = [""] if self.judged.shared is None else self.counts.agents
        return {name: self._rates_of(agent, ci_prob) for agent, name in enumerate(names)}

    def _rates_of(self, agent: int, ci_prob: float) -> tuple[Stats, Stats]:
        rates, mass, tail = self.judged.rates[agent], np.exp(self.judged.log_rates[agent]), (1 - ci_prob) / 2
        stats = []
        for values, axis, other in zip((rates.sensitivity, rates.specificity), rates.axes, (1, 0), strict=True):
            mean = float(mass @ values)
            sd = float(np.sqrt(max(mass @ values**2 - mean**2, 0)))
            marginal = mass.reshape(rates.shape).sum(axis=other)
            lower, median, upper = _legendre_quantiles(axis, marginal, np.array([tail, 0.5, 1 - tail]))
            stats.append(Stats(mean, sd, median, lower, upper))
        return stats[0], stats[1]

    @property
    def flags(self) -> tuple[str, ...]:
        """What makes the numbers of any agent doubtful."""
        return tuple(dict.fromkeys(flag for agent in range(len(self.counts.agents)) for flag in self.flags_of(agent)))

    def flags_of(self, agent: int) -> tuple[str, ...]:
        """Whether the judge may be no better than chance, P(s₁ + s₀ ≤ 1) > .05, or no label tells of a rate."""
        rates = self.judged.rates[agent]
        below = np.exp(self.judged.log_rates[agent])[rates.sensitivity + rates.specificity <= 1 + 1e-9]
        chance = ("chance_level_judge",) if float(below.sum()) > CHANCE else ()
        return (*chance, "judge_rate_prior") if self.labels.unseen else chance

    # -- tasks --------------------------------------------------------------------------------------------------

    def _kind_power(self, agent: int, metric: Metric, kind: int, k: int) -> Array:
        """E t of a task of one kind (see `GridPosterior._power`), averaged over its truths, at every node."""
        grid, part = self.fit.agents[agent], self._likelihood(agent)
        kinds, rho = part.kinds, grid.rho
        n, labelled, right = (int(values[kind]) for values in (kinds.n, kinds.labelled, kinds.right))
        logs = part.truths(kind, grid.axis.theta, rho)
        share = np.exp(logs - logs.max(axis=0))
        mu, total = (grid.mu if metric.power else grid.one_minus_mu), n + labelled
        powers = []
        for z in range(n + 1):
            c = z + right if metric.power else total - z - right
            powers.append(mean_power(mu, rho.rho, rho.one_minus_rho, c, total, k))
        confusion = self.judged.rates[agent].confusion(int(kinds.c[kind]), n)
        weight = np.tensordot(share, confusion, axes=(0, 1))
        above = np.tensordot(share * np.stack(powers), confusion, axes=(0, 1))
        return np.asarray(np.divide(above, weight, out=np.zeros(above.shape), where=weight > 0))

    def _mass(self, agent: int) -> Array:
        """Posterior mass of θ, ρ and the rates, shape (θ nodes, ρ nodes, rates)."""
        return np.asarray(np.exp(self.judged.tables[agent] + self.judged.log_rates[agent]))

    def _together(self, metric: Metric) -> tuple[Metric, ...]:
        """One metric at a time: the tables with the rates are large."""
        return (metric,)

    def _group_moments(self, agent: int, metrics: tuple[Metric, ...]) -> Iterator[tuple[Array, Metric, Array, Array]]:
        for metric in metrics:
            for kind, size in enumerate(self._likelihood(agent).kinds.size.tolist()):
                once, twice = (self._kind_power(agent, metric, kind, k) for k in (metric.k, 2 * metric.k))
                yield np.array([size]), metric, once[None], twice[None]

    def _by_task(self, agent: int, metric: Metric) -> Distribution:
        """Every task, computed once per kind of task; a task without data has the population's."""
        kinds, mass = self._likelihood(agent).kinds, self._mass(agent)
        moments = np.array(
            [[np.sum(mass * power) for power in powers] for _, _, *powers in self._group_moments(agent, (metric,))]
        ).reshape(-1, 2)
        # the last column, -1, is a task of which nothing is known
        kinds_and_new = [*range(kinds.size.size), -1]
        p = np.stack([self._kind_draws(agent, kind, 1)[:, 0] for kind in kinds_and_new], axis=1)
        values = apply_metric(p, metric)
        mean = np.append(of_tail(moments[:, 0], metric), values[:, -1].mean())
        sd = np.append(np.sqrt(np.clip(moments[:, 1] - moments[:, 0] ** 2, 0, None)), values[:, -1].std())
        return Drawn(mean=mean[kinds.place], sd=sd[kinds.place], values=values, place=kinds.place)

    # -- draws --------------------------------------------------------------------------------------------------

    @cached_property
    def _rate_node(self) -> Array:
        """Node of the error rates of every draw, shape (agents, draws)."""
        rng, count, shared = self.rng(0, self.counts.stream), CHAINS * DRAWS, self.judged.shared
        if shared is not None:
            return shared.draw(rng, count)
        mass = np.exp(self.judged.log_rates[0])
        node = rng.choice(mass.size, size=count, p=mass / mass.sum())
        return np.tile(node, (len(self.counts.agents), 1))

    def _draw_hyper(self, agent: int) -> tuple[Array, Array]:
        """Draws of θ and ρ, shape (draws,), given each draw of the error rates."""
        grid, table, drawn = self.fit.agents[agent], self.judged.tables[agent], self._rate_node[agent]
        theta, rho = np.empty((2, CHAINS * DRAWS))
        rng = self.rng(1, self.counts.streams[agent])
        uniform, jitter = rng.random(theta.size), rng.random(theta.size) - 0.5
        for node in np.unique(drawn):
            here = drawn == node
            mass = np.cumsum(np.exp(table[:, :, node]).ravel())
            cell = np.minimum(np.searchsorted(mass, uniform[here] * mass[-1]), mass.size - 1)
            row, column = np.divmod(cell, grid.rho.rho.size)
            theta[here], rho[here] = grid.axis.near(row, jitter[here]), grid.rho.rho[column]
        return theta, np.clip(rho, 1e-12, 1 - 1e-12)

    def _population_beta(self, agent: int) -> tuple[Array, Array]:
        """Beta parameters of a new task at each draw of the hyperparameters, as columns."""
        mu, one_minus_mu, rho = (part[:, None] for part in self._hyper(agent))
        kappa = 1 / rho - 1
        return mu * kappa, one_minus_mu * kappa

    def _kind_draws(self, agent: int, kind: int, count: int) -> Array:
        """Draws of p for `count` tasks of one kind (-1: a new task), shape (draws, count)."""
        rng = self.rng(2, self.counts.streams[agent], kind + 1)
        alpha, beta = self._population_beta(agent)
        if kind < 0:
            return _beta(rng, np.repeat(alpha, count, axis=1), np.repeat(beta, count, axis=1))
        passed, failed, weight = self._truth_weights(agent, kind, alpha, beta)
        cumulative = np.cumsum(weight, axis=1)
        uniform = rng.random((alpha.size, count)) * cumulative[:, -1:]
        drawn = np.minimum((cumulative[:, None, :] < uniform[:, :, None]).sum(axis=2), passed.size - 1)
        return _beta(rng, alpha + passed[drawn], beta + failed[drawn])

    def _truth_weights(self, agent: int, kind: int, alpha: Array, beta: Array) -> tuple[Array, Array, Array]:
        """True successes and failures that a task of this kind may have, and their probabilities, draw by draw."""
        from scipy.special import gammaln

        kinds = self._likelihood(agent).kinds
        c, n, right, labelled = (int(part[kind]) for part in (kinds.c, kinds.n, kinds.right, kinds.labelled))
        z = np.arange(n + 1)
        passed, failed = z + right, n - z + labelled - right
        logs = gammaln(alpha + passed) + gammaln(beta + failed) - gammaln(z + 1) - gammaln(n - z + 1)
        with np.errstate(divide="ignore"):
            logs = logs + np.log(self.judged.rates[agent].confusion(c, n))[self._rate_node[agent]]
        weight = np.exp(logs - logs.max(axis=1, keepdims=True))
        return passed, failed, weight / weight.sum(axis=1, keepdims=True)

    def _kind_mean(self, agent: int, kind: int, metric: Metric) -> Array:
        """E f(p) of a task of this kind given each draw of the hyperparameters, shape (draws,)."""
        alpha, beta = self._population_beta(agent)
        passed, failed, weight = self._truth_weights(agent, kind, alpha, beta)
        return np.asarray(np.sum(weight * mean_of_metric(alpha + passed, beta + failed, metric), axis=1))

    def _tasks_draws(self, agent: int, metric: Metric) -> Array:
        kinds = self._likelihood(agent).kinds
        total = np.zeros(CHAINS * DRAWS)
        for kind, size in enumerate(kinds.size.tolist()):
            count = min(size, LARGE_GROUP)
            p = self.once((agent, "kind", kind), partial(self._kind_draws, agent, kind, count))
            mean = apply_metric(p, metric).mean(axis=1)
            if size > count:  # the deviation of a mean over more tasks than were drawn is smaller
                centre = self._kind_mean(agent, kind, metric)
                mean = centre + np.sqrt(count / size) * (mean - centre)
            total += size * mean
        return np.asarray(total / kinds.size.sum())

    def task_draws(self, agent: int, tasks: Array | None = None) -> Array:
        """Posterior draws of p of all tasks, or of those with these indices, shape (chains × draws, tasks)."""
        place = self._likelihood(agent).kinds.place
        return draws_by_task(place if tasks is None else place[tasks], partial(self._kind_draws, agent))


def _legendre_quantiles(nodes: Array, mass: Array, q: Array) -> tuple[float, ...]:
    """Quantiles of a distribution given by its masses at Gauss-Legendre nodes: its Legendre series, integrated."""
    if nodes.size == 1:
        return tuple(float(nodes[0]) for _ in q)
    x, _ = legendre_nodes(nodes.size)
    series = np.polynomial.legendre.legvander(x, x.size - 1).T @ mass * (np.arange(x.size) + 0.5)
    fine = np.linspace(-1, 1, 2001)
    cumulative = np.maximum.accumulate(np.polynomial.legendre.Legendre(series).integ(lbnd=-1)(fine))
    middle, half = (nodes[0] + nodes[-1]) / 2, (nodes[-1] - nodes[0]) / (x[-1] - x[0])
    return tuple(float(value) for value in middle + half * np.interp(q, cumulative / cumulative[-1], fine))


def _beta(rng: np.random.Generator, a: Array, b: Array) -> Array:
    return np.asarray(rng.beta(np.maximum(a, 1e-300), np.maximum(b, 1e-300)))
