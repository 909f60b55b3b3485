"""What every method gives: a distribution for each (agent, estimand, metric), and draws that belong together."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import numpy as np

from agentic_bayes.estimation.arithmetic import apply_metric
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.distribution import CIKind, Distribution, Drawn, NoDistribution, Stats
from agentic_bayes.estimation.groups import Grouping
from agentic_bayes.estimation.population import Population
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array

if TYPE_CHECKING:
    import xarray as xr

Estimand = Literal["population", "tasks", "task"]
Value = TypeVar("Value")
CHAINS, DRAWS = 4, 1000
THREADS = 4  # at most; each holds the draws of one agent


def draws_by_task(place: Array, draw: Callable[[int, int], Array]) -> Array:
    """Draws of p of tasks whose group is `place`, shape (draws, tasks); `draw` takes a group and how many tasks."""
    out = np.empty((CHAINS * DRAWS, place.size))
    for group in np.unique(place).tolist():
        here = place == group
        out[:, here] = draw(group, int(here.sum()))
    return out


def in_threads(work: Callable[[int], object], agents: Sequence[int]) -> None:
    """Do this for every agent, some at a time: while NumPy draws, Python is free for another thread."""
    from concurrent.futures import ThreadPoolExecutor

    if len(agents) > 1:
        with ThreadPoolExecutor(min(os.cpu_count() or 1, THREADS)) as pool:
            list(pool.map(work, agents))


def labelled(draws: Mapping[str, Array], agents: Any, groups: Any = ()) -> xr.Dataset:
    """Draws of shape (draws,), (draws, agents) or (draws, agents, groups) with dims (chain, draw, agent, group)."""
    import xarray as xr

    dims = ("chain", "draw", "agent", "group")
    return xr.Dataset(
        {
            name: (dims[: values.ndim + 1], values.reshape(CHAINS, DRAWS, *values.shape[1:]))
            for name, values in draws.items()
        },
        coords={"chain": np.arange(CHAINS), "draw": np.arange(DRAWS), "agent": agents}
        | ({"group": np.asarray(groups, dtype=object)} if len(groups) else {}),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior(ABC):
    """The posterior of one method; what asks it never asks which method it is."""

    counts: Counts
    random_seed: int
    metrics: tuple[Metric, ...] = ()  # what will be asked for; computed together
    grouping: Grouping | None = None  # groups of tasks, and weights, where they were asked for
    _memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def estimands(self) -> tuple[Estimand, ...]:
        """The estimands that the method defines."""
        return ("population", "tasks", "task")

    @property
    def flags(self) -> tuple[str, ...]:
        """What makes all its numbers doubtful."""
        return ()

    def flags_of(self, agent: int) -> tuple[str, ...]:
        """What makes all numbers of one agent doubtful."""
        return self.flags

    def distribution(self, agent: int, estimand: Estimand, metric: Metric, group: str = "") -> Distribution:
        """The distribution of a metric: of a new task, of the mean over the scored tasks, or of every task.

        With `group`, one of `group_labels`: of a task, or the tasks, of that group.
        """
        if group:
            key = (agent, estimand, metric, group)
            return self.once(key, lambda: self._group_distribution(agent, estimand, metric, group))
        if estimand == "tasks" and not self.counts.scored[agent].any():
            return NoDistribution()
        return self.once((agent, estimand, metric), lambda: self._distribution(agent, estimand, metric))

    def stats(
        self, agent: int, estimand: Estimand, metric: Metric, prob: float, kind: CIKind, group: str = ""
    ) -> Stats:
        """Mean, sd, median and interval of the same."""
        key = ("stats", agent, estimand, metric, prob, kind, group)
        return self.once(key, lambda: self.distribution(agent, estimand, metric, group).stats(prob, kind))

    def draw_tasks(self, agents: Sequence[int], metric: Metric) -> None:
        """Prepare this metric's means over tasks of several agents; most methods have nothing to prepare."""
        del agents, metric

    @abstractmethod
    def _distribution(self, agent: int, estimand: Estimand, metric: Metric) -> Distribution: ...

    def group_labels(self, estimand: Estimand) -> tuple[str, ...]:
        """What has a number of its own next to the overall one: groups of tasks, and the weighted mean."""
        return self.grouping.labels if self.grouping is not None and estimand == "tasks" else ()

    def _group_distribution(self, agent: int, estimand: Estimand, metric: Metric, label: str) -> Distribution:
        """The mean over the scored tasks of a group, or the weighted one."""
        assert self.grouping is not None
        weights = self.grouping.task_weights(label, self.counts.scored[agent])
        if isinstance(weights, str):
            return NoDistribution(note=weights)
        which = np.flatnonzero(weights)
        values = apply_metric(self.task_draws(agent, which), metric) @ weights[which]
        mean = float(self.distribution(agent, "task", metric).mean[which] @ weights[which])
        found = Drawn.of(values, mean=mean, n_tasks=which.size)
        return found if label in self.grouping.names else replace(found, note=self.grouping.words)

    @abstractmethod
    def task_draws(self, agent: int, tasks: Array | None = None) -> Array:
        """Draws of p of all tasks, or of those with these indices, shape (chains × draws, tasks)."""

    def hyper_draws(self) -> dict[str, Array]:
        """Draws of the hyperparameters by name, shape (draws,) or (draws, agents)."""
        return {}

    def population(self, agent: int, draws: int) -> Population | None:
        """About so many draws of the distribution of p; None where the method has no model of how tasks differ."""
        return None

    def log_likelihood(self) -> Array | None:
        """Log probability of every scored cell, shape (draws, cells), agent by agent; None where cells share nothing.

        The success probability of the cell is integrated out: leaving a cell out means predicting an unseen task.
        """
        columns = []
        for agent in range(len(self.counts.agents)):
            c, n, place = self.counts.pairs(agent)
            by_pair = self._log_pmf(agent, c, n)
            if by_pair is None:
                return None
            columns.append(by_pair[place[self.counts.scored[agent]]])
        return np.concatenate(columns).T

    def _log_pmf(self, agent: int, c: Array, n: Array) -> Array | None:
        """Log probability of c of n successes in a cell that is left out, shape (pairs, draws)."""
        population = self.population(agent, CHAINS * DRAWS)
        return None if population is None else population.log_pmf(c, n)

    def log_priors(self) -> dict[str, Array]:
        """Log prior densities at the draws of parameters that are not among `hyper_draws`."""
        return {}

    def judge_rates(self, ci_prob: float) -> dict[str, tuple[Stats, Stats]]:
        """Sensitivity and specificity of the judge, by agent; empty where its verdicts are taken as they are."""
        return {}

    def with_metrics(self, metrics: tuple[Metric, ...]) -> Self:
        """The same posterior, prepared to be asked for these metrics; both know what either has computed."""
        made = copy(self)
        object.__setattr__(made, "metrics", metrics)
        return made

    def _together(self, metric: Metric) -> tuple[Metric, ...]:
        """The metrics that are computed at once when this one is asked for."""
        return self.metrics if metric in self.metrics else (metric,)

    def once(self, key: Any, make: Callable[[], Value]) -> Value:
        """What `make` gives, made once per key."""
        if key not in self._memo:
            self._memo[key] = make()
        value: Value = self._memo[key]
        return value

    def rng(self, *key: int) -> np.random.Generator:
        """The random stream of this key: same seed and key, same bits."""
        return np.random.default_rng([self.random_seed, *map(int, key)])
