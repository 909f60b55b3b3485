"""Agents that did not try the same tasks are compared on the tasks that all of them tried.

The likelihood of agents' own tasks is not enough to compare them: an agent that tried the easy half only looks better
than its equal. So the same method with the same priors is fitted to the shared tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from agentic_bayes.errors import EstimateError, InvalidArgument
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.estimate import Estimate, estimate_as
from agentic_bayes.estimation.groups import Weights
from agentic_bayes.estimation.methods.options import Crossed
from agentic_bayes.estimation.model_checks import DIFFERENT_TASKS
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import Metric, plural
from agentic_bayes.numerics import Array
from agentic_bayes.outcomes.dataset import combine_outcomes
from agentic_bayes.outcomes.missing import TrialCounts

TaskSets = Literal["shared", "own"]
FEW_SHARED = 15  # shared tasks below which a comparison says so
FEWEST = 2  # shared tasks on which agents that tried different ones are compared
MOST_NAMED = 3  # agents that a refusal names
MOST_ALIKE = 100  # pairs of agents with the same counts, beyond which only the two compared enter
OTHER_SIDE = 6  # key of the random stream that the draws of another estimate have
ASSUMED = "each agent on its own tasks, assuming that all of them sample one kind of task"


@dataclass(frozen=True)
class SharedTasks:
    """Which tasks agents are compared on."""

    shared: Array  # whether all of them have scored trials of a task, shape (tasks,)
    left_out: Array  # whether only some of them have, and it is left out
    tasks: TaskSets

    @classmethod
    def of(cls, counts: Counts, agents: Sequence[int], tasks: TaskSets) -> SharedTasks:
        """Of these agents; refused where they share too few tasks."""
        scored = counts.scored[list(agents)]
        shared = np.asarray(scored.all(axis=0))
        different = np.asarray(scored.any(axis=0)) & ~shared
        if tasks == "own":
            return cls(shared, np.zeros_like(different), tasks)
        found, count = cls(shared, different, tasks), int(shared.sum())
        if found.n_left_out and count < FEWEST:
            names = [counts.agents[i] for i in agents]
            if unscored := [repr(name) for name, own in zip(names, scored, strict=True) if not own.any()]:
                raise EstimateError(f"nothing of {' and '.join(unscored)} was scored, so there is nothing to compare")
            who = " and ".join(map(repr, names)) if len(names) <= MOST_NAMED else f"the {len(names)} agents"
            raise EstimateError(
                f"{who} share {plural(count, 'task')}, too few to compare them on the same tasks: tasks='own' (on the "
                "command line --tasks own) compares each on its own tasks, assuming that all sample one kind of task"
            )
        return found

    @property
    def n_shared(self) -> int:
        """Tasks of which all agents have scored trials."""
        return int(self.shared.sum())

    @property
    def n_left_out(self) -> int:
        """Tasks that only some of the agents have scored trials of, and that are left out."""
        return int(self.left_out.sum())

    def fitted(self, est: Estimate, agents: Sequence[int], names: Sequence[str]) -> Estimate:
        """The estimate of these agents on these tasks: itself where nothing is left out, else fitted to them alone."""
        if not self.n_left_out:
            return est
        s = est.settings

        def fit() -> Estimate:
            kept = np.isin(est.outcomes["task"].values, list(names))
            outcomes = est.outcomes.isel(agent=sorted(agents), task=kept)
            judge = s.judge and s.judge.needed_for({est.agents[i] for i in agents}, est.agents)
            weights = _weights_of(est, kept)
            given = s.weights if isinstance(s.weights, Mapping) else {}
            lost = [repr(name) for name, share in given.items() if share and name not in (weights or ())]
            note = f"the weights leave out {', '.join(lost)}, of which no task is shared" if lost else ""
            return estimate_as(outcomes, replace(s, judge=judge, weights=weights), note=note)

        return est.posterior.once(("shared tasks", tuple(agents), tuple(names), s.k, s.ci_prob, s.ci_kind), fit)


def _weights_of(est: Estimate, kept: Array) -> Weights | None:
    """The weights on some of the tasks: those of the groups that are left, or none where nothing left has any."""
    groups, weights = est.posterior.grouping, est.settings.weights
    if groups is None or weights is None:
        return None
    if isinstance(weights, str):
        return weights if groups.per_task is not None and groups.per_task[kept].any() else None
    left = {groups.names[i] for i in groups.place[kept].tolist()}
    found = {name: share for name, share in weights.items() if name in left}
    return found if any(found.values()) else None


def task_words(common: SharedTasks, different: bool, who: str) -> str:
    """What a reader must know of the tasks that agents are compared on; `who` did not try those that are left out."""
    if common.n_left_out:
        return f"{plural(common.n_left_out, 'task')} that {who} tried left out"
    return ASSUMED if different else ""


def alike(est: Estimate) -> Array:
    """A number for each agent: the same for agents with the same counts, and the same labels, on every task."""
    counts, judge = est.counts, est.settings.judge
    keys = [
        (trials.tolist(), successes.tolist(), judge and judge.about(name))
        for name, trials, successes in zip(counts.agents, counts.trials, counts.successes, strict=True)
    ]
    return np.array([keys.index(key) for key in keys])


@dataclass(frozen=True)
class Side:
    """One of two agents, and the posterior that its draws come from."""

    est: Estimate  # as it was given
    fit: Estimate  # of the tasks that are compared; the same one where none is left out
    name: str  # the agent's, in both
    label: str  # what it is called here: two estimates may hold agents of the same name

    @property
    def index(self) -> int:
        """The agent's position in the fit."""
        return self.fit.agent_index(self.name)

    @property
    def trials(self) -> TrialCounts:
        """All trials of the agent."""
        return TrialCounts.of(self.est.outcomes, self.name)

    def alike(self) -> list[str]:
        """The agents of the fit that nothing in the data tells from this one."""
        numbers = alike(self.fit)
        return [self.fit.agents[i] for i in np.flatnonzero(numbers == numbers[self.index])]


@dataclass(frozen=True)
class TwoAgents:
    """Two agents, of one estimate or of two."""

    first: Side
    second: Side
    counts: Counts  # of the first and the second, on all tasks of both
    common: SharedTasks

    @property
    def together(self) -> bool:
        """Whether one posterior holds both, so that draw i of one belongs with draw i of the other."""
        return self.first.fit is self.second.fit

    @property
    def paired(self) -> bool:
        """Whether the difficulty of tasks is shared."""
        crossed = self.together and isinstance(self.first.fit.method, Crossed)
        return crossed and self.common.n_shared > 0 and not self.own

    @property
    def estimates(self) -> list[Estimate]:
        """The estimates that hold the two: one, or two."""
        return [side.est for side in (self.first, *([] if self.together else [self.second]))]

    @property
    def own(self) -> bool:
        """Whether the two tried different tasks and are compared on these."""
        return self.common.tasks == "own" and self.counts.different_tasks

    @cached_property
    def compared(self) -> Counts:
        """The counts of both on the tasks that are compared."""
        return self.counts.of_tasks(~self.common.left_out)

    def apart(self, draws: Array) -> Array:
        """Draws of the second side: of another estimate they are put in an order of their own."""
        if self.together:
            return draws
        second = self.second.fit.counts
        rng = np.random.default_rng([self.second.est.settings.random_seed, second.stream, OTHER_SIDE])
        return draws[rng.permutation(len(draws))]

    def draws(self, metric: Metric, estimand: Estimand) -> tuple[Array, Array]:
        """Draws of the metric of both sides, row by row."""

        def of(side: Side, name: str) -> Array:
            return side.fit.metric_draws(name, metric=metric, estimand=estimand)

        first, second = self.first, self.second
        if not self.together:
            return of(first, first.name), self.apart(of(second, second.name))
        twins, others = first.alike(), second.alike()
        if second.name in twins:  # neither is told from the other by anything that was seen
            own, other = of(first, first.name), of(second, second.name)
            return np.concatenate([own, other]), np.concatenate([other, own])
        if len(twins) * len(others) > MOST_ALIKE:
            twins, others = [first.name], [second.name]
        names = [(one, other) for one in twins for other in others]
        return (
            np.concatenate([of(first, one) for one, _ in names]),
            np.concatenate([of(second, other) for _, other in names]),
        )

    def notes(self, estimand: Estimand) -> Iterator[str]:
        """What a reader must know of the way in which the two are compared."""
        first, second, shared = self.first, self.second, self.common.n_shared
        if self.own:
            yield ASSUMED
            own, other = self.counts.scored.sum(axis=1)
            if estimand == "tasks":
                yield f"the observed tasks are not the same: {own:,} and {other:,}, {shared:,} of them shared"
        if self.paired and shared < FEW_SHARED:
            yield f"fewer than {FEW_SHARED} shared tasks say little about shared difficulty"
        if not self.together and shared:
            yield "two separate estimates are not paired by task; estimate(combine_outcomes(…)) would pair them"
        elif not (self.paired or self.own) and shared:
            yield f"they share {plural(shared, 'task')}, which {first.fit.method.name} does not pair"
        yield from dict.fromkeys(side.fit.note for side in (first, second) if side.fit is not side.est)
        yield from (est.differences for est in self.estimates)

    def flags(self, metric: Metric, estimand: Estimand) -> tuple[str, ...]:
        """What makes the numbers of either doubtful, and whether the two tried different tasks."""
        found = [
            flag
            for side in (self.first, self.second)
            for flag in side.fit.flags(side.name, metric=metric, estimand=estimand)
        ]
        if self.counts.different_tasks:
            found.append(DIFFERENT_TASKS)
        return tuple(dict.fromkeys(found))


def pair_of(est: Estimate, agent: str | None, baseline: str | Estimate, tasks: TaskSets) -> TwoAgents:
    """The two that are compared, on the tasks that they are compared on; refused where they cannot be."""
    if isinstance(baseline, Estimate):
        return _of_two_estimates(est, agent, baseline, tasks)
    both = [est.agent_index(agent), est.agent_index(baseline)]
    if both[0] == both[1]:
        raise InvalidArgument(f"agent and baseline must differ, got {baseline!r} for both")
    common = SharedTasks.of(est.counts, both, tasks)
    fit = common.fitted(est, both, _named(est.counts, common.shared))
    first, second = (Side(est, fit, est.agents[i], est.agents[i]) for i in both)
    return TwoAgents(first, second, est.counts.of_agents(both), common)


def _of_two_estimates(new: Estimate, agent: str | None, old: Estimate, tasks: TaskSets) -> TwoAgents:
    """An agent of each of two estimates, which stay apart."""
    name = new.agents[new.agent_index(agent)]
    other = name if name in old.agents else old.agents[old.agent_index(None)]
    labels = (name, other) if name != other else (f"{name} (new)", f"{other} (old)")
    parts = [one.outcomes.sel(agent=[own]) for one, own in ((new, name), (old, other))]
    combined = Counts.of(combine_outcomes(*parts, names=labels))
    counts = combined.of_agents([combined.agents.index(label) for label in labels])
    common = SharedTasks.of(counts, (0, 1), tasks)
    shared = _named(counts, common.shared)
    fits = [common.fitted(one, [one.agents.index(own)], shared) for one, own in ((new, name), (old, other))]
    first = Side(new, fits[0], name, labels[0])
    return TwoAgents(first, Side(old, fits[1], other, labels[1]), counts, common)


def _named(counts: Counts, which: Array) -> list[str]:
    return [counts.tasks[i] for i in np.flatnonzero(which)]
