"""The difference of two agents in every group of tasks, from the posteriors that compare them overall."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from agentic_bayes.checks import check_text
from agentic_bayes.decisions.decision import share_above_zero
from agentic_bayes.decisions.shared_tasks import TwoAgents
from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.distribution import Drawn
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.groups import Grouping
from agentic_bayes.estimation.posterior import Estimand, Posterior
from agentic_bayes.formatting import Metric, format_interval, format_number


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """The difference of two agents on one group of tasks."""

    group: str  # its name, or "(new group)" or "(weighted)"
    estimand: Estimand  # a new task of the group, or its observed tasks
    mean: float  # of (agent - baseline) in the comparison's metric
    lower: float
    upper: float
    prob_better: float  # probability that the agent's metric is higher in this group; equal draws count for half
    pairing: Literal["tasks", "none"]  # whether the agents are compared on the same tasks


def group_differences(
    pair: TwoAgents, *, metric: Metric, estimand: Estimand, by: str | None
) -> tuple[GroupDifference, ...]:
    """Every group that both agents have a number for; empty where tasks are not grouped.

    Methods that say nothing about a new task of a group give the observed tasks instead, unless `by` is given here.
    """
    sides = [(_grouped(side.fit, by), side.index) for side in (pair.first, pair.second)]
    labels = [posterior.group_labels(estimand) for posterior, _ in sides]
    if not all(labels) and estimand == "population":
        if by is not None:
            raise EstimateError(
                f"differences on new tasks of each {by} need estimate(..., by={by!r}) by the hierarchical method; "
                "estimand='tasks' compares on the observed ones"
            )
        estimand = "tasks"
        labels = [posterior.group_labels(estimand) for posterior, _ in sides]
    paired: Literal["tasks", "none"] = "tasks" if pair.paired else "none"
    settings, found = pair.first.fit.settings, []
    for label in labels[0]:
        if label not in labels[1]:
            continue
        both = [posterior.distribution(index, estimand, metric, label) for posterior, index in sides]
        if any(np.isnan(one.mean) for one in both):
            continue
        difference = both[0].draws() - pair.apart(both[1].draws())
        lower, upper = Drawn.of(difference).interval(settings.ci_prob, settings.ci_kind)
        better = float(share_above_zero(difference))
        mean = float(both[0].mean - both[1].mean)
        found.append(GroupDifference(label, estimand, mean, float(lower), float(upper), better, paired))
    return tuple(found)


def _grouped(est: Estimate, by: str | None) -> Posterior:
    """The estimate's posterior, with the groups that are asked for."""
    if by is not None:
        check_text("by", by, "the name of a coordinate of the tasks")
    if by is None or by == est.settings.by:
        return est.posterior
    if est.settings.by is not None:
        raise EstimateError(f"the estimate has groups of {est.settings.by!r}, not of {by!r}: estimate(..., by={by!r})")
    return replace(est.posterior, grouping=Grouping.of(est.counts, by, None))


def group_lines(groups: tuple[GroupDifference, ...]) -> Iterator[list[str]]:
    """A row of a comparison's table for every group."""
    for one in groups:
        tasks = "new tasks" if one.estimand == "population" else "observed tasks"
        how = "paired" if one.pairing == "tasks" else "unpaired"
        yield [f"{one.group}, {tasks}, {how}", format_number(one.mean), format_interval(one.lower, one.upper)]
