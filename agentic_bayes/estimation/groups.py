"""Groups of tasks and their weights: which task belongs to which group, and what a weighted mean weighs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from agentic_bayes.errors import InvalidArgument, did_you_mean
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.numerics import Array
from agentic_bayes.outcomes.coordinates import METADATA, column_name
from agentic_bayes.outcomes.dataset import natural_key

NEW, WEIGHTED = "(new group)", "(weighted)"
"""Labels of a group that was not seen, and of the mean that is weighted as `weights` says."""

Weights = str | Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups of the tasks, and their weights where some were given."""

    by: str  # the coordinate that names the groups; empty where there are only weights
    names: tuple[str, ...]  # of the groups
    place: Array  # shape (tasks,); the group of each task
    weights: Weights | None  # as they were given
    per_task: Array | None = None  # shape (tasks,); weights of a column
    per_group: Array | None = None  # shape (groups,); shares, which sum to 1

    @classmethod
    def of(cls, counts: Counts, by: str | None, weights: Weights | None) -> Grouping | None:
        """The groups and weights that were asked for; None where there are none."""
        if by is None and weights is None:
            return None
        labels = np.full(len(counts.tasks), "", dtype=object) if by is None else _column(counts, by, "by")
        if labels.dtype.kind == "f":
            labels = np.array([repr(value).removesuffix(".0") for value in labels.tolist()], dtype=object)
        names = tuple(dict.fromkeys(sorted(labels.tolist(), key=natural_key)))
        if {NEW, WEIGHTED} & set(names):
            raise InvalidArgument(f"groups must not be called {NEW!r} or {WEIGHTED!r}, which name rows of the summary")
        place = np.array([names.index(label) for label in labels.tolist()])
        if by is None:
            names = ()
        if weights is None:
            return cls(column_name(by or ""), names, place, None)
        if isinstance(weights, str):
            per_task = _column(counts, weights, "weights")
            if per_task.dtype.kind != "f" or (per_task < 0).any() or not per_task.any():
                raise InvalidArgument(f"weights must name a column of numbers ≥ 0, not all 0; {weights!r} is not one")
            sums = np.bincount(place, weights=per_task, minlength=max(len(names), 1))
            return cls(column_name(by or ""), names, place, weights, per_task, sums / sums.sum())
        return cls(column_name(by or ""), names, place, weights, None, _shares(weights, names))

    @property
    def labels(self) -> tuple[str, ...]:
        """What has a row of its own next to the overall one."""
        return self.names if self.weights is None else (*self.names, WEIGHTED)

    @property
    def words(self) -> str:
        """The weights in words."""
        if isinstance(self.weights, str):
            return f"weights by column {self.weights!r}"
        assert self.per_group is not None
        return "weights " + ", ".join(
            f"{name} {share:.3g}" for name, share in zip(self.names, self.per_group.tolist(), strict=True)
        )

    def task_weights(self, label: str, scored: Array) -> Array | str:
        """What each task counts in a mean over observed tasks, shape (tasks,), sum 1; or why there is no such mean."""
        if label != WEIGHTED:
            weight = (self.place == self.names.index(label)) & scored
            return weight / weight.sum() if weight.any() else "nothing was scored in this group"
        if self.per_task is not None:
            weight = self.per_task * scored
            return weight / weight.sum() if weight.any() else "no task with a weight was scored"
        assert self.per_group is not None
        sizes = np.bincount(self.place[scored], minlength=len(self.names))
        lacking = [name for name, n, w in zip(self.names, sizes, self.per_group, strict=True) if w > 0 and n == 0]
        if lacking:
            return f"nothing was scored in {', '.join(map(repr, lacking))}, which has a weight"
        return np.where(scored, (self.per_group / np.maximum(sizes, 1))[self.place], 0.0)


def check_groups(by: object, weights: object) -> tuple[str | None, Weights | None]:
    """`by` and `weights` as they may be written."""
    if by is not None and (not isinstance(by, str) or not by.strip()):
        raise InvalidArgument(f"by must be the name of a coordinate of the tasks, got {by!r}")
    if weights is None or (isinstance(weights, str) and weights.strip()):
        return by, weights
    if not isinstance(weights, Mapping) or not weights:
        raise InvalidArgument(f"weights must map groups to shares, or name a column of the tasks, got {weights!r}")
    if by is None:
        raise InvalidArgument("weights of groups need by=…, the coordinate that names the groups")
    return by, {str(group): share for group, share in weights.items()}


def _shares(weights: Mapping[str, float], names: tuple[str, ...]) -> Array:
    for group, share in weights.items():
        if group not in names:
            raise InvalidArgument(f"weights: there is no group {group!r}: {did_you_mean(group, names)}")
        is_number = isinstance(share, (int, float)) and not isinstance(share, bool)
        if not is_number or not 0 <= share < float("inf"):
            raise InvalidArgument(f"weights: the share of {group!r} must be a number ≥ 0, got {share!r}")
    if lacking := [name for name in names if name not in weights]:
        raise InvalidArgument(
            f"weights must name every group, {', '.join(map(repr, lacking))} is missing (0 for what is never seen)"
        )
    shares = np.array([float(weights[name]) for name in names])
    if not shares.any():
        raise InvalidArgument("weights must be > 0 for at least one group, all are 0")
    return np.asarray(shares / shares.sum())


def _column(counts: Counts, name: str, role: str) -> Array:
    """A coordinate of the tasks."""
    for known in (name, column_name(name)) if name.startswith(METADATA) else (name,):
        if known in counts.columns:
            return np.asarray(counts.columns[known])
    have = f"they have {', '.join(map(repr, counts.columns))}" if counts.columns else "they have none"
    option = "group" if role == "by" else "weight"
    raise InvalidArgument(
        f"{role}: the tasks of these outcomes have no coordinate {name!r} ({have}); read it with "
        f"outcomes_from_table(…, {option}={name!r}) or count_outcomes(…, {option}='metadata.{column_name(name)}')"
    )


def plain_weights(weights: Weights | None) -> Any:
    """Weights as plain JSON values."""
    return dict(weights) if isinstance(weights, Mapping) else weights
