"""The hierarchical Beta-Binomial model (`Hierarchical` states it) from a sampler's draws, without PyMC.

Given the population Beta(α, β) = Beta(μκ, (1-μ)κ), a task's p has the posterior Beta(α + c, β + n - c): it is never
sampled by the engine but recovered here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agentic_bayes.estimation.arithmetic import apply_metric, mean_of_metric, mean_over_tasks, metric_tail
from agentic_bayes.estimation.distribution import Distribution, Drawn
from agentic_bayes.estimation.engines.nuts import KAPPA_RANGE, MU_RANGE
from agentic_bayes.estimation.population import Population
from agentic_bayes.estimation.posterior import Estimand, Posterior
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class HierarchicalPosterior(Posterior):
    """Posterior of every estimand from a sampler's draws of (μ, ρ)."""

    hyper: dict[str, Array]  # draws by name, shape (draws,) or (draws, agents); μ and ρ among them

    @cached_property
    def _population_beta(self) -> tuple[Array, Array]:
        """α, β of the population Beta, shape (draws, agents)."""
        mu = np.clip(self.hyper["mu"], *MU_RANGE)
        with np.errstate(divide="ignore"):
            kappa = np.clip(1 / self.hyper["rho"] - 1, *KAPPA_RANGE)
        return mu * kappa, (1 - mu) * kappa

    def _given_data(self, agent: int, c: Array, n: Array) -> tuple[Array, Array]:
        """Beta parameters of p given data, shape (draws, len(c))."""
        alpha, beta = (parameter[:, agent, None] for parameter in self._population_beta)
        return alpha + c, beta + (n - c)

    def hyper_draws(self) -> dict[str, Array]:
        """What the sampler drew."""
        return self.hyper

    def population(self, agent: int, draws: int) -> Population | None:
        """One Beta distribution per draw."""
        mu, rho = (self.hyper[name][:, agent, None] for name in ("mu", "rho"))
        return Population(mu, 1 - mu, rho, np.ones((1, 1))).thinned(draws)

    def _distribution(self, agent: int, estimand: Estimand, metric: Metric) -> Distribution:
        n_tasks = int(self.counts.scored[agent].sum())
        match estimand:
            case "population":
                alpha, beta = (parameter[:, agent] for parameter in self._population_beta)
                return Drawn.of(mean_of_metric(alpha, beta, metric), n_tasks=n_tasks)
            case "tasks":
                c, n, sizes = self.counts.groups(agent)
                a, b = self._given_data(agent, c, n)
                draws = mean_over_tasks(a, b, sizes, [metric], self.rng(self.counts.streams[agent]))[0]
                # the mean needs no draws of p: it is averaged in closed form over the draws of (μ, ρ)
                mean = float(np.average(mean_of_metric(a, b, metric).mean(axis=0), weights=sizes))
                return Drawn.of(draws, mean=mean, n_tasks=n_tasks)
            case "task":
                c, n, place = self.counts.pairs(agent)
                a, b = self._given_data(agent, c, n)
                first, second = (moment.mean(axis=0) for moment in metric_tail(a, b, metric))
                mean = first if metric.power else 1 - first
                sd = np.sqrt(np.clip(second - first**2, 0, None))
                rng = self.rng(self.counts.streams[agent], 1)
                p = np.stack([rng.beta(a[:, group], b[:, group]) for group in range(c.size)], axis=1)
                return Drawn(mean=mean[place], sd=sd[place], values=apply_metric(p, metric), place=place)

    def task_draws(self, agent: int, tasks: Array | None = None) -> Array:
        """Draws of p of all tasks, or of those with these indices, shape (chains × draws, tasks)."""
        which = slice(None) if tasks is None else tasks
        c, n = self.counts.successes[agent, which], self.counts.trials[agent, which]
        return self.rng(self.counts.streams[agent], 2).beta(*self._given_data(agent, c, n))
