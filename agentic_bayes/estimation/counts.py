"""Successes and scored trials as plain arrays: all that a method needs of the outcomes."""

from __future__ import annotations

from collections.abc import Mapping
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
        return cls(
            tuple(outcomes["agent"].values),
            tuple(outcomes["task"].values),
            outcomes["successes"].values,
            outcomes["trials"].values,
            outcomes["unscored"].values,
            {name: outcomes[name].values for name in task_columns(outcomes)},
        )

    @cached_property
    def scored(self) -> Array:
        """Whether a cell has a scored trial, shape (agents, tasks)."""
        return self.trials > 0

    @cached_property
    def attempted(self) -> Array:
        """Whether a cell was attempted at all, scored or not, shape (agents, tasks)."""
        return (self.trials > 0) | (self.unscored > 0)

    def pairs(self, agent: int) -> tuple[Array, Array, Array]:
        """Distinct (c, n) of an agent's tasks, also n = 0, and which of them each task has."""
        return self._pairs[agent]

    def groups(self, agent: int) -> tuple[Array, Array, Array]:
        """Distinct (c, n) of an agent's scored tasks and how many tasks have each."""
        c, n, place = self._pairs[agent]
        size = np.bincount(place, minlength=n.size)
        return c[n > 0], n[n > 0], size[n > 0]

    @cached_property
    def streams(self) -> Array:
        """Number of each agent's random stream, shape (agents,): its place among agents sorted by their counts.

        What agents are called, and so in which order they stand, then changes no draw (but for agents with equal
        counts, which exchange theirs).
        """
        keys = []
        for c, n, place in self._pairs:
            keys.append((n.tolist(), c.tolist(), np.bincount(place, minlength=n.size).tolist()))
        order = sorted(range(len(keys)), key=keys.__getitem__)
        streams = np.empty(len(keys), dtype=np.int64)
        streams[order] = np.arange(len(keys))
        return streams

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
