"""Successes and scored trials as plain arrays: all that a method needs from the outcomes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from agentic_bayes.numerics import Array
from agentic_bayes.outcomes.coordinates import task_columns

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Counts:
    """Successes and scored trials as plain arrays."""

    agents: tuple[str, ...]  # labels
    tasks: tuple[str, ...]
    successes: Array  # shape (agents, tasks); counts; trials is 0 where nothing was scored
    trials: Array
    unscored: Array
    columns: Mapping[str, Array] = field(default_factory=dict)  # further coordinates of the tasks

    @classmethod
    def of(cls, outcomes: xr.Dataset) -> Counts:
        """The counts of a checked outcomes dataset."""
        values = {str(name): variable.values for name, variable in outcomes.variables.items()}
        return cls(
            tuple(values["agent"]),
            tuple(values["task"]),
            values["successes"],
            values["trials"],
            values["unscored"],
            {name: values[name] for name in task_columns(outcomes)},
        )

    @cached_property
    def scored(self) -> Array:
        """Whether a cell has a scored trial, shape (agents, tasks)."""
        return self.trials > 0

    @cached_property
    def attempted(self) -> Array:
        """Whether a cell was attempted at all, scored or not, shape (agents, tasks)."""
        return (self.trials > 0) | (self.unscored > 0)

    @cached_property
    def different_tasks(self) -> bool:
        """Whether agents with scored trials have them on different tasks."""
        scored = self.scored[self.scored.any(axis=1)]
        return bool((scored != scored[:1]).any())

    def of_agents(self, agents: Sequence[int] | Array) -> Counts:
        """The counts of these agents, in this order."""
        names = tuple(self.agents[i] for i in agents)
        rows = list(agents)
        return Counts(names, self.tasks, self.successes[rows], self.trials[rows], self.unscored[rows])

    def of_tasks(self, which: Array) -> Counts:
        """The counts on the tasks for which a mask is true, or on those with these indices, in this order."""
        names = tuple(np.array(self.tasks, dtype=object)[which])
        return Counts(self.agents, names, self.successes[:, which], self.trials[:, which], self.unscored[:, which])

    def pairs(self, agent: int) -> tuple[Array, Array, Array]:
        """Distinct (c, n) of an agent's tasks, also n = 0, and which of them each task has."""
        return self._pairs[agent]

    def groups(self, agent: int) -> tuple[Array, Array, Array]:
        """Distinct (c, n) of an agent's scored tasks and how many tasks have each."""
        c, n, place = self._pairs[agent]
        size = np.bincount(place, minlength=n.size)
        return c[n > 0], n[n > 0], size[n > 0]

    @cached_property
    def streams(self) -> tuple[int, ...]:
        """Key of each agent's random stream: a hash of its scored counts and a number among agents with equal ones.

        Neither names nor order change a draw, and agents with different counts draw independently, in other estimates
        too. Only agents that nothing in the counts tells apart exchange their draws when they are renamed.
        """
        keys = [_hash(*self.groups(agent)) for agent in range(len(self.agents))]
        profiles = [self._profile(agent) if keys.count(key) > 1 else 0 for agent, key in enumerate(keys)]
        streams = [0] * len(keys)
        number: dict[int, int] = {}
        for agent in sorted(range(len(keys)), key=lambda i: (keys[i], profiles[i])):
            key = keys[agent]
            number[key] = number.get(key, -1) + 1
            streams[agent] = _hash(np.array([key, number[key]])) if number[key] else key
        return tuple(streams)

    @cached_property
    def order(self) -> Array:
        """The agents in the order of their streams, whatever they are called."""
        return np.array(sorted(range(len(self.agents)), key=self.streams.__getitem__), dtype=np.int64)

    @cached_property
    def task_order(self) -> Array:
        """The tasks in the order of their counts, whatever they are called, shape (tasks,)."""
        cells = np.concatenate([self.trials[self.order], self.successes[self.order]])
        return np.lexsort(cells[::-1])

    @cached_property
    def stream(self) -> int:
        """Key of the random streams that all agents share: a hash of all scored counts, task by task."""
        cells = np.ix_(self.order, self.task_order)
        tasks = self.trials[cells].any(axis=0)  # a task without a scored trial says nothing
        return _hash(self.trials[cells][:, tasks], self.successes[cells][:, tasks])

    def seed(self, random_seed: int) -> int:
        """A seed of its own for an engine that samples all agents together."""
        return _hash(np.array([random_seed, self.stream]))

    def _profile(self, agent: int) -> int:
        """A hash of the agent's counts together with those of the others on the same tasks."""
        others = np.arange(len(self.agents)) != agent
        joint = self.trials * (int(self.trials.max(initial=0)) + 1) + self.successes
        columns = np.concatenate([joint[[agent]], np.sort(joint[others], axis=0)])
        return _hash(columns[:, np.lexsort(columns[::-1])])

    @cached_property
    def _pairs(self) -> list[tuple[Array, Array, Array]]:
        found = []
        for successes, trials in zip(self.successes, self.trials, strict=True):
            if int(trials.max(initial=0)) < 2**31:  # one number per pair sorts much faster than two
                codes, place = np.unique((trials << 31) + successes, return_inverse=True)
                found.append((codes & (2**31 - 1), codes >> 31, place.reshape(-1)))
            else:
                pairs, place = np.unique(np.stack([successes, trials]), axis=1, return_inverse=True)
                found.append((pairs[0], pairs[1], place.reshape(-1)))
        return found


def _hash(*parts: Array) -> int:
    """A number below 2^63 that depends on these integers, their shapes and nothing else."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(repr(part.shape).encode() + np.ascontiguousarray(part, dtype="<i8").tobytes())
    return int.from_bytes(digest.digest(), "little") >> 1
