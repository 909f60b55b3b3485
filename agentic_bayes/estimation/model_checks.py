"""The checks that an estimate carries: each computed when it is first asked for, and once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agentic_bayes.estimation.bounds import pass_bounds
from agentic_bayes.estimation.population import Population, population_of
from agentic_bayes.estimation.posterior import Array, Counts, Estimand, Posterior
from agentic_bayes.estimation.predictive import LEAST_TASKS, Check, Replicated, check_counts, disagreements, replicate
from agentic_bayes.formatting import METRICS, Metric, format_interval

__all__ = ["FLAGS", "ModelChecks", "flag_words"]

DRAWS = 1000  # of the posterior's, for the checks
FLAGS = {
    "not_converged": "the sampler did not converge: do not use these numbers",
    "no_data": "nothing was scored: this is the prior's prediction",
    "prior_driven": "no task was tried twice, so the spread between tasks is the prior's",
    "extrapolated": "k exceeds every number of trials: the model extrapolates",
    "misfit": "the histogram of successes does not look like the model's: consider inflate=True",
    "chance_level_judge": "by its labels the judge may be no better than chance: its verdicts say next to nothing",
    "disagrees": "the model is more than two standard errors from the unbiased estimate",
}


def flag_words(flags: Iterable[str]) -> list[str]:
    """Each flag once, with what it means."""
    found = set(flags)
    return [f"{flag}: {meaning}" for flag, meaning in FLAGS.items() if flag in found]


@dataclass(frozen=True)
class ModelChecks:
    """Checks of a posterior against the counts that it was made from."""

    posterior: Posterior  # of any method; only those that model how tasks differ can be checked
    counts: Counts
    random_seed: int  # for replicated data
    ks: tuple[int, ...]  # numbers of attempts that will be asked for; looked at together
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def flags(self, agent: int, estimand: Estimand, metric: Metric | None, k: int) -> list[str]:
        """``misfit`` and ``disagrees``, where they apply; without a metric, to either of them."""
        found = ["misfit"] if any(check.misfit for check in self.predictive(agent)) else []
        metrics = METRICS if metric is None else (metric,)
        if estimand == "tasks" and any((one, k) in self._disagreements(agent, k) for one in metrics):
            found.append("disagrees")
        return found

    def predictive(self, agent: int) -> tuple[Check, ...]:
        """The posterior predictive check of one agent; empty where there is nothing to check."""
        key = agent, "predictive"
        if key not in self._cache:
            population = self._population(agent)
            rng = np.random.default_rng([self.random_seed, 5, self.counts.streams[agent]])
            checks = () if population is None else check_counts(population, *self._groups(agent), rng)
            self._cache[key] = checks
        found: tuple[Check, ...] = self._cache[key]
        return found

    def replicated(self, agent: int) -> tuple[Replicated, ...]:
        """Histograms of one agent's counts beside replicated ones; empty where there is nothing to check.

        They are those of `predictive`: the same draws, in the same order.
        """
        population = self._population(agent)
        c, n, size = self._groups(agent)
        repeated = n > 1
        if population is None or size[repeated].sum() < LEAST_TASKS:
            return ()
        rng = np.random.default_rng([self.random_seed, 5, self.counts.streams[agent]])
        return tuple(replicate(population, c[repeated], n[repeated], size[repeated], rng))

    def not_checked(self, agent: int) -> str:
        """Why there is no posterior predictive check of this agent."""
        repeated = int((self.counts.trials[agent] > 1).sum())
        return f"needs {LEAST_TASKS} tasks tried twice or more, there are {repeated}"

    def bounds_note(self, agent: int, metric: Metric, k: int, prob: float) -> str:
        """Distribution-free bounds of the metric on a new task, in words."""
        key = agent, metric, k, prob
        if key not in self._cache:
            lower, upper = pass_bounds(*self._groups(agent), metric, k, prob=prob)
            if np.isnan(lower):
                self._cache[key] = "no distribution-free bounds: the trials of a task vary less than repeats can"
            else:
                self._cache[key] = f"distribution-free bounds {format_interval(lower, upper)}"
        note: str = self._cache[key]
        return note

    def _groups(self, agent: int) -> tuple[Array, Array, Array]:
        return self.counts.groups(agent)

    def _population(self, agent: int) -> Population | None:
        key = agent, "population"
        if key not in self._cache:
            scored = int(self.counts.scored[agent].sum())
            self._cache[key] = None if scored < LEAST_TASKS else population_of(self.posterior, agent, DRAWS)
        found: Population | None = self._cache[key]
        return found

    def _disagreements(self, agent: int, k: int) -> frozenset[tuple[Metric, int]]:
        ks = self.ks if k in self.ks else (k,)
        key = agent, "disagreements", ks
        if key not in self._cache:
            population = self._population(agent)
            found = frozenset() if population is None else disagreements(population, *self._groups(agent), ks)
            self._cache[key] = found
        far: frozenset[tuple[Metric, int]] = self._cache[key]
        return far
