"""The checks that an estimate carries, each computed once, on first use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

import numpy as np

from agentic_bayes.estimation.bounds import pass_bounds
from agentic_bayes.estimation.distribution import PointEstimate
from agentic_bayes.estimation.methods.options import Conjugate, Crossed, Frequentist, Hierarchical
from agentic_bayes.estimation.population import Population
from agentic_bayes.estimation.posterior import Estimand, Posterior
from agentic_bayes.estimation.predictive import (
    LEAST_TASKS,
    Check,
    Replicated,
    Statistic,
    check_counts,
    disagreements,
    replicate,
)
from agentic_bayes.estimation.sensitivity import FLAGGED, move_words, prior_moves
from agentic_bayes.estimation.settings import Settings
from agentic_bayes.formatting import Metric, format_interval, metrics_at
from agentic_bayes.numerics import Array

DRAWS = 1000  # of the posterior's, for the checks
DIFFERENT_TASKS = "different_tasks"
TIED = 0.01  # level at which the numbers of trials and the pass rates go together
FLAGS = {
    "not_converged": "the sampler did not converge: do not use these numbers",
    "no_data": "nothing was scored: this is the prior's prediction",
    "prior_driven": "no task was tried twice, or the prior outweighs the trials, so much of this comes from the prior",
    "extrapolated": "k exceeds every number of trials: the model extrapolates",
    "misfit": "the spread of passes over tasks is not what the model expects: check that --method hierarchical "
    "--inflate (inflate=True) gives the same answer",
    "chance_level_judge": "by the labels, the judge may be no better than chance, so its verdicts say next to nothing",
    DIFFERENT_TASKS: "the agents did not all try the same tasks, so comparisons use those that they share",
    "fewer_tasks": "some tasks have fewer than k trials and are left out, so each k averages over other tasks",
    "judge_rate_prior": "no attempt was labelled right, or none wrong: one of the judge's rates comes from its prior",
    "prior_sensitive": "halving or doubling the prior's weight moves the mean by more than a quarter of its interval",
    "disagrees": "the model is more than two standard errors from the unbiased estimate",
}


def flag_words(flags: Iterable[str]) -> list[str]:
    """Each flag once, with what it means."""
    found = set(flags)
    return [f"{flag}: {meaning}" for flag, meaning in FLAGS.items() if flag in found]


@dataclass(frozen=True)
class ModelChecks:
    """Checks of a posterior against the counts that it was made from, each made once."""

    posterior: Posterior  # of any method; only those that model how tasks differ can be checked
    settings: Settings
    converged: bool = True  # whether the sampler's diagnostics passed, if there was one

    def flags(self, agent: int, estimand: Estimand, metric: Metric, group: str = "") -> tuple[str, ...]:
        """What makes a number of this agent, or of one group of its tasks, doubtful; see `FLAGS`."""
        trials, method = self.posterior.counts.trials[agent], self.settings.method
        groups = self.posterior.grouping
        in_group = groups is not None and group in groups.names
        if groups is not None and in_group:
            trials = trials[groups.place == groups.names.index(group)]
        most = int(trials.max(initial=0))
        flags = [*([] if self.converged else ["not_converged"]), *self.posterior.flags_of(agent)]
        if most == 0:
            return (*flags, "no_data")
        if isinstance(method, Hierarchical | Crossed) and most == 1 and (metric.k > 1 or estimand != "population"):
            flags.append("prior_driven")
        if isinstance(method, Conjugate) and estimand != "population" and self._prior_weighs(agent) >= 0.5:
            flags.append("prior_driven")
        unbiased = isinstance(method, Frequentist) and method.estimator == "unbiased"
        if unbiased and estimand != "task" and self._has_fewer(agent, metric.k):
            flags.append("fewer_tasks")
        if metric.k > most and not unbiased:
            flags.append("extrapolated")
        if any(check.misfit for check in self.predictive(agent)):
            flags.append("misfit")
        if self.prior_share(agent, estimand, metric) > FLAGGED and not group:
            flags.append("prior_sensitive")
        if estimand == "tasks" and not group and metric in self._disagreements(agent, metric.k):
            flags.append("disagrees")
        return tuple(flags)

    def row_flags(self, agent: int, estimand: Estimand, metric: Metric, group: str = "") -> tuple[str, ...]:
        """The same for a row that stands next to those of other agents, from which it may be subtracted."""
        flags, counts, groups = (
            self.flags(agent, estimand, metric, group),
            self.posterior.counts,
            self.posterior.grouping,
        )
        if groups is not None and group in groups.names:
            counts = counts.of_tasks(groups.place == groups.names.index(group))
        return (*flags, DIFFERENT_TASKS) if counts.different_tasks else flags

    def _prior_weighs(self, agent: int) -> float:
        """The mean share that the prior has in the conjugate posterior means of an agent's tasks."""
        n = self.posterior.counts.trials[agent]
        assert isinstance(self.settings.method, Conjugate)
        prior, known = sum(self.settings.method.prior), n[n > 0]
        return float(np.mean(prior / (prior + (known.sum() if self.settings.method.pool_tasks else known))))

    def _has_fewer(self, agent: int, k: int) -> bool:
        """Whether some of an agent's scored tasks have k trials and others do not."""
        n = self.posterior.counts.trials[agent]
        return bool((n >= k).any() and ((n > 0) & (n < k)).any())

    def prior_share(self, agent: int, estimand: Estimand, metric: Metric) -> float:
        """How far the mean moves if the prior's weight is halved or doubled, as a share of its interval, or NaN."""
        return self._prior(agent, estimand, metric)[1]

    def prior_note(self, agent: int, estimand: Estimand, metric: Metric | None = None, *, name: str = "") -> str:
        """How far the prior moves a metric, or that of the summary which moves most, in words; empty without prior."""
        if not self.posterior.counts.scored[agent].any():
            return ""  # all is the prior
        metrics = metrics_at(self.settings.k) if metric is None else (metric,)
        moves = {metric: self._prior(agent, estimand, metric) for metric in metrics}
        known = {metric: move for metric, move in moves.items() if not np.isnan(move[1])}
        if not known:
            return ""
        metric = max(known, key=lambda one: known[one][1])
        return move_words(str(metric), *known[metric], agent=name)

    def _prior(self, agent: int, estimand: Estimand, metric: Metric) -> tuple[float, float]:
        """The larger move of the mean, and what share of the interval it is."""

        def moved() -> tuple[float, float]:
            distribution = self.posterior.distribution(agent, estimand, metric)
            if estimand == "task" or isinstance(distribution, PointEstimate):
                return float("nan"), float("nan")
            move = prior_moves(self.posterior, self.settings.method, agent, estimand, metric).largest
            stats = self.posterior.stats(agent, estimand, metric, self.settings.ci_prob, "eti")
            width = float(stats.upper - stats.lower)
            return move, move / width if width > 0 else float("nan")

        return self.posterior.once(("prior moves", agent, estimand, metric, self.settings.ci_prob), moved)

    def difficulty_note(self, agent: int) -> str:
        """Says that tasks with more trials are passed more or less often, if they are."""
        return self.posterior.once(("difficulty", agent), lambda: trials_and_passes(*self._groups(agent)))

    def predictive(self, agent: int) -> tuple[Check, ...]:
        """The posterior predictive check of one agent; empty where there is nothing to check."""

        def checked() -> tuple[Check, ...]:
            population = self._population(agent)
            return () if population is None else check_counts(population, *self._groups(agent), self._rng(agent))

        return self.posterior.once(("check", agent), checked)

    def predictive_rows(self, agents: Iterable[int] | None = None) -> list[tuple[str, str, float, float, float, str]]:
        """The checks of all agents, or of those with these indices: agent, statistic, observed, expected, p, note."""
        rows: list[tuple[str, str, float, float, float, str]] = []
        for index in range(len(self.posterior.counts.agents)) if agents is None else agents:
            agent = self.posterior.counts.agents[index]
            checks, nan = self.predictive(index), float("nan")
            rows += [(agent, one.statistic, one.observed, one.expected, one.p, "") for one in checks]
            if not checks:
                rows += [(agent, name, nan, nan, nan, self.not_checked(index)) for name in get_args(Statistic)]
        return rows

    def replicated(self, agent: int) -> tuple[Replicated, ...]:
        """Histograms of one agent's counts next to the replicated ones of `predictive`; empty where there are none."""
        population = self._population(agent)
        return () if population is None else tuple(replicate(population, *self._groups(agent), self._rng(agent)))

    def not_checked(self, agent: int) -> str:
        """Why there is no posterior predictive check of this agent."""
        repeated = int((self.posterior.counts.trials[agent] > 1).sum())
        if self.settings.corrects_judge and repeated >= LEAST_TASKS:
            return "the judge's errors hide how many trials of a task truly passed"
        return f"needs {LEAST_TASKS} tasks tried twice or more, there are {repeated}"

    def bounds_note(self, agent: int, metric: Metric, prob: float) -> str:
        """Distribution-free bounds of the metric on a new task, in words."""

        def note() -> str:
            lower, upper = pass_bounds(*self._groups(agent), metric, prob=prob)
            if np.isnan(lower):
                return "no distribution-free bounds: the trials of a task vary less than independent repeats would"
            return f"distribution-free bounds {format_interval(lower, upper)}"

        return self.posterior.once(("bounds", agent, metric, prob), note)

    def _rng(self, agent: int) -> np.random.Generator:
        return self.posterior.rng(5, self.posterior.counts.streams[agent])

    def _groups(self, agent: int) -> tuple[Array, Array, Array]:
        return self.posterior.counts.groups(agent)

    def _population(self, agent: int) -> Population | None:
        if int(self.posterior.counts.scored[agent].sum()) < LEAST_TASKS:
            return None
        return self.posterior.once(("population", agent), lambda: self.posterior.population(agent, DRAWS))

    def _disagreements(self, agent: int, k: int) -> frozenset[Metric]:
        ks = self.settings.k if k in self.settings.k else (k,)

        def far() -> frozenset[Metric]:
            population = self._population(agent)
            return frozenset() if population is None else disagreements(population, *self._groups(agent), ks)

        return self.posterior.once(("disagreements", agent, ks), far)


def trials_and_passes(c: Array, n: Array, size: Array) -> str:
    """Says that the numbers of trials and the pass rates of tasks go together, if they do, or is empty.

    By Spearman's rank correlation with Student's t, at .01; then more trials may have been given to easier, or to
    harder, tasks, which no method here knows of.
    """
    from scipy.special import stdtr

    tasks = int(size.sum())
    if tasks < LEAST_TASKS or np.all(n == n[0]):
        return ""
    ranks = [_mid_ranks(values, size) for values in (n.astype(float), c / n)]
    spread = [np.sum(size * part**2) for part in ranks]
    if min(spread) == 0:
        return ""
    r = float(np.sum(size * ranks[0] * ranks[1]) / np.sqrt(spread[0] * spread[1]))
    t = r * np.sqrt((tasks - 2) / max(1 - r**2, 1e-12))
    if 2 * float(stdtr(tasks - 2, -abs(t))) > TIED:
        return ""
    return (
        f"tasks with more trials pass {'more' if r > 0 else 'less'} often (rank correlation {r:.2f}): if "
        "you chose the numbers of trials by known difficulty, results for new tasks lean towards the tasks "
        "with most trials"
    )


def _mid_ranks(values: Array, size: Array) -> Array:
    """Ranks of values that each occur `size` times, ties sharing theirs, less their mean."""
    levels, place = np.unique(values, return_inverse=True)
    count = np.bincount(place, weights=size, minlength=levels.size)
    ranks = (np.cumsum(count) - count / 2)[place]
    return np.asarray(ranks - np.sum(size * ranks) / size.sum())
