"""An estimate's draws as labelled groups, for ArviZ and for files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.checks import check_flag
from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.io.by_group import group_variables
from agentic_bayes.estimation.io.log_density import density_groups
from agentic_bayes.estimation.io.replicated import by_cell, count_groups, prior_groups, replicated_cells
from agentic_bayes.estimation.methods.options import Method
from agentic_bayes.estimation.posterior import CHAINS, DRAWS, Posterior, labelled
from agentic_bayes.formatting import FAMILIES, Metric
from agentic_bayes.numerics import Array

if TYPE_CHECKING:
    import xarray as xr

LARGEST_P = 10**7  # draws × agents × tasks that are made
DIMS, SHAPE = ("chain", "draw", "agent"), (CHAINS, DRAWS)


def hyper_dataset(posterior: Posterior) -> xr.Dataset | None:
    """Draws of the hyperparameters, dims (chain, draw) or (chain, draw, agent); None where there are none."""
    draws = posterior.hyper_draws()
    groups = () if posterior.grouping is None else posterior.grouping.names
    return labelled(draws, np.asarray(posterior.counts.agents, dtype=object), groups) if draws else None


def kept_draws(draws: xr.Dataset | None, posterior: Posterior) -> xr.Dataset | None:
    """What a file keeps: a sampler's draws or weighted points, else draws of the hyperparameters."""
    return hyper_dataset(posterior) if draws is None else draws


def draw_groups(
    posterior: Posterior,
    method: Method,
    ks: tuple[int, ...],
    outcomes: xr.Dataset,
    sample_stats: xr.Dataset | None,
    *,
    tasks: bool,
) -> dict[str, xr.Dataset]:
    """ArviZ's groups; with `tasks` also those with a value per cell or task and draw."""
    check_flag(tasks, "tasks")
    counts = posterior.counts
    n_agents, n_tasks = counts.successes.shape
    size = CHAINS * DRAWS * n_agents * n_tasks
    if tasks and size > LARGEST_P:
        raise EstimateError(f"p would have {size:,} values (at most {LARGEST_P:,}): use to_arviz(tasks=False)")
    estimands = [estimand for estimand in posterior.estimands if estimand != "task"]
    variables: dict[str, Array] = {}
    for family in FAMILIES:
        values = np.full((CHAINS * DRAWS, n_agents, len(estimands), len(ks)), np.nan)
        for a, e, i in np.ndindex(n_agents, len(estimands), len(ks)):
            if estimands[e] != "tasks" or counts.scored[a].any():
                values[:, a, e, i] = posterior.distribution(a, estimands[e], Metric.of(family, ks[i])).draws()
        variables[family] = values
    variables |= posterior.hyper_draws()
    if tasks:
        variables["p"] = np.stack([posterior.task_draws(a) for a in range(n_agents)], axis=1)
    coords = {"agent": list(counts.agents), "estimand": estimands, "k": list(ks)}
    coords |= {"task": list(counts.tasks)} if tasks else {}
    grouped = group_variables(posterior, ks)
    whole = _labelled(variables, coords).assign_coords(grouped[1]).assign(grouped[0])
    groups = {"posterior": whole, **count_groups(posterior, outcomes)}
    if tasks and counts.scored.any():
        groups["posterior_predictive"] = by_cell(replicated_cells(posterior), counts)
        groups |= density_groups(posterior, method)
    prior = prior_groups(posterior, method, ks, tasks=tasks)
    if prior:
        groups["prior"] = _labelled(prior["prior"], coords)
    if "prior_predictive" in prior:
        groups["prior_predictive"] = by_cell(prior["prior_predictive"]["successes"], counts)
    return groups if sample_stats is None else {**groups, "sample_stats": sample_stats}


def _labelled(draws: Mapping[str, Array], coords: Mapping[str, Any]) -> xr.Dataset:
    """Draws of hyperparameters, of p and of the metrics, one group of ArviZ's."""
    plain = {name: values for name, values in draws.items() if name not in (*FAMILIES, "p")}
    named = labelled(plain, coords["agent"]).assign_coords(coords)
    dims: dict[str, tuple[str, ...]] = {**dict.fromkeys(FAMILIES, (*DIMS, "estimand", "k")), "p": (*DIMS, "task")}
    return named.assign(
        {name: (dims[name], draws[name].reshape(*SHAPE, *draws[name].shape[1:])) for name in dims if name in draws}
    )
