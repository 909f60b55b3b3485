"""Draws of the numbers of groups of tasks, for ArviZ."""

from __future__ import annotations

from typing import Any

import numpy as np

from agentic_bayes.estimation.groups import NEW
from agentic_bayes.estimation.posterior import CHAINS, DRAWS, Posterior
from agentic_bayes.formatting import FAMILIES, Metric


def group_variables(posterior: Posterior, ks: tuple[int, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables and coordinates of the groups; none where tasks are not grouped.

    ``pass_at_k_by_group`` and ``pass_pow_k_by_group`` have dims (chain, draw, agent, estimand_by_group, group, k), over
    the estimands that groups have numbers for; ``pass_at_k_new_group`` and ``pass_pow_k_new_group`` (chain, draw,
    agent, k) are those of a task of a new group. NaN where an agent has no scored trial in a group.
    """
    names = () if posterior.grouping is None else posterior.grouping.names
    if not names:
        return {}, {}
    agents, estimands = len(posterior.counts.agents), [e for e in posterior.estimands if posterior.group_labels(e)]
    variables: dict[str, Any] = {}
    for family in FAMILIES:
        by_group = np.full((CHAINS, DRAWS, agents, len(estimands), len(names), len(ks)), np.nan)
        for a, e, g, i in np.ndindex(by_group.shape[2:]):
            found = posterior.distribution(a, estimands[e], Metric.of(family, ks[i]), names[g])
            if found.n_tasks or estimands[e] != "tasks":
                by_group[:, :, a, e, g, i] = found.draws().reshape(CHAINS, DRAWS)
        dims = ("chain", "draw", "agent", "estimand_by_group", "group", "k")
        variables[f"{family}_by_group"] = (dims, by_group)
        if NEW in posterior.group_labels("population"):
            new = np.empty((CHAINS, DRAWS, agents, len(ks)))
            for a, i in np.ndindex(new.shape[2:]):
                drawn = posterior.distribution(a, "population", Metric.of(family, ks[i]), NEW).draws()
                new[:, :, a, i] = drawn.reshape(CHAINS, DRAWS)
            variables[f"{family}_new_group"] = (("chain", "draw", "agent", "k"), new)
    return variables, {"group": list(names), "estimand_by_group": estimands}
