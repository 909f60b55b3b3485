"""The hierarchical Beta-Binomial model: priors and formulas, said once and without PyMC.

::

    c_ai ~ BetaBinomial(n_ai, μ_a κ_a, (1-μ_a) κ_a)          tasks within an agent
    ρ_a = 1/(1+κ_a) ~ Uniform(0, 1)                           intra-class correlation
    logit μ_a = m + τ z_a,  z_a ~ N(0, 1)                     agents share strength
    m ~ Logistic(0, 1),  τ ~ HalfNormal(1)

With one agent, or unpooled agents, logit μ_a ~ Logistic(0, 1), that is μ_a ~ Uniform(0, 1), and there is no m, τ.
Given the population Beta(α, β) = Beta(μκ, (1-μ)κ), a task's p has the posterior Beta(α + c, β + n - c): it is never
sampled by the engine but recovered here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from agentic_bayes.estimation.posterior import (
    Array,
    CIKind,
    Counts,
    Estimand,
    Stats,
    apply_metric,
    interval_of_draws,
    mean_of_metric,
    mean_over_tasks,
    metric_tail,
    nothing_scored,
    stats_of_draws,
)
from agentic_bayes.formatting import Metric

__all__ = ["KAPPA_RANGE", "MU_RANGE", "HierarchicalPosterior"]

# beyond these the Beta-Binomial log-pmf cancels and a chain could stay there
MU_RANGE = (1e-6, 1 - 1e-6)
KAPPA_RANGE = (1e-6, 1e6)


@dataclass(frozen=True)
class HierarchicalPosterior:
    """Posterior of every estimand from draws of (μ, ρ)."""

    counts: Counts
    ci_prob: float  # of the intervals
    ci_kind: CIKind
    random_seed: int  # for the draws of p given (μ, ρ)
    mu: Array  # shape (chains, draws, agents); draws of the population mean and intra-class correlation
    rho: Array
    _cache: dict[Any, Array] = field(default_factory=dict, repr=False, compare=False)

    @property
    def estimands(self) -> tuple[Estimand, ...]:
        """All three."""
        return ("population", "tasks", "task")

    @cached_property
    def _population(self) -> tuple[Array, Array]:
        """α, β of the population Beta, shape (draws, agents)."""
        mu = np.clip(self.mu, *MU_RANGE).reshape(-1, self.mu.shape[-1])
        rho = self.rho.reshape(mu.shape)
        with np.errstate(divide="ignore"):
            kappa = np.clip(1 / rho - 1, *KAPPA_RANGE)
        return mu * kappa, (1 - mu) * kappa

    def _given_data(self, agent: int, c: Array, n: Array) -> tuple[Array, Array]:
        """Beta parameters of p given data, shape (draws, len(c))."""
        alpha, beta = (parameter[:, agent, None] for parameter in self._population)
        return alpha + c, beta + (n - c)

    def aggregate(self, agent: int, estimand: Estimand, metric: Metric, k: int) -> Stats:
        """Statistics of a new task (`population`) or of the mean over the scored tasks (`tasks`)."""
        n_tasks = int(self.counts.scored[agent].sum())
        if estimand == "tasks":
            if n_tasks == 0:
                return nothing_scored()
            c, n, sizes = self.counts.groups(agent)
            # the mean needs no draws of p: it is averaged in closed form over the draws of (μ, ρ)
            given = mean_of_metric(*self._given_data(agent, c, n), metric, k).mean(axis=0)
            mean = float(np.average(given, weights=sizes))
        else:
            mean = None
        draws = self.draws(agent, estimand, metric, k)
        return stats_of_draws(draws, self.ci_prob, self.ci_kind, n_tasks, mean=mean)

    def draws(self, agent: int, estimand: Estimand, metric: Metric, k: int) -> Array:
        """Posterior draws of `population` or `tasks`, shape (chains × draws,)."""
        key = agent, estimand, metric, k
        if key not in self._cache:
            if estimand == "population":
                alpha, beta = (parameter[:, agent] for parameter in self._population)
                self._cache[key] = mean_of_metric(alpha, beta, metric, k)
            else:
                c, n, sizes = self.counts.groups(agent)
                rng = np.random.default_rng([self.random_seed, self.counts.streams[agent]])
                a, b = self._given_data(agent, c, n)
                self._cache[key] = mean_over_tasks(a, b, sizes, [(metric, k)], rng)[0]
        return self._cache[key]

    def per_task(self, agent: int, metric: Metric, k: int) -> Stats:
        """Statistics of every task, arrays of shape (tasks,); computed once per distinct (c, n)."""
        c, n, place = self.counts.pairs(agent)
        a, b = self._given_data(agent, c, n)
        first, second = (moment.mean(axis=0) for moment in metric_tail(a, b, metric, k))
        mean = first if metric == "pass_pow_k" else 1 - first
        sd = np.sqrt(np.clip(second - first**2, 0, None))
        key = agent, "quantiles", metric, k
        if key not in self._cache:
            rng = np.random.default_rng([self.random_seed, self.counts.streams[agent], 1])
            columns = []
            for group in range(c.size):
                values = apply_metric(rng.beta(a[:, group], b[:, group]), metric, k)
                columns.append((np.median(values), *interval_of_draws(values, self.ci_prob, self.ci_kind)))
            self._cache[key] = np.asarray(columns)
        median, lower, upper = self._cache[key].T
        return Stats(mean[place], sd[place], median[place], lower[place], upper[place])

    def task_draws(self, agent: int, tasks: Array | None = None) -> Array:
        """Posterior draws of p of all tasks, or of those with these indices, shape (chains × draws, tasks)."""
        rng = np.random.default_rng([self.random_seed, self.counts.streams[agent], 2])
        which = slice(None) if tasks is None else tasks
        return rng.beta(*self._given_data(agent, self.counts.successes[agent, which], self.counts.trials[agent, which]))
