"""Agents that did not try the same tasks are compared on the tasks that all of them tried.

The likelihood of agents' own tasks is not enough to compare them: an agent that tried the easy half only looks better
than its equal. So the same method with the same priors is fitted to the shared tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.estimate import Estimate, estimate_as
from agentic_bayes.formatting import plural
from agentic_bayes.numerics import Array

TaskSets = Literal["shared", "own"]
FEWEST = 2  # shared tasks on which agents that tried different ones are compared
MOST_NAMED = 3  # agents that a refusal names
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
            judge = s.judge and s.judge.within({est.agents[i] for i in agents}, set(names))
            return estimate_as(outcomes, replace(s, judge=judge))

        return est.posterior.once(("shared tasks", tuple(agents), tuple(names), s.k, s.ci_prob, s.ci_kind), fit)
