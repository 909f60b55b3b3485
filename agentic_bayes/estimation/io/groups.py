"""An estimate's draws as labelled groups, for ArviZ and for files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.io.by_group import group_variables
from agentic_bayes.estimation.io.log_density import density_groups
from agentic_bayes.estimation.methods.options import Method
from agentic_bayes.estimation.posterior import CHAINS, DRAWS, Posterior, labelled
from agentic_bayes.formatting import FAMILIES, Metric

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


def draw_groups(posterior: Posterior, method: Method, ks: tuple[int, ...], *, tasks: bool) -> dict[str, xr.Dataset]:
    """ArviZ's groups ``posterior`` and, with `tasks`, ``log_likelihood`` and ``log_prior``."""
    import xarray as xr

    counts = posterior.counts
    n_agents, n_tasks = counts.successes.shape
    size = CHAINS * DRAWS * n_agents * n_tasks
    if tasks and size > LARGEST_P:
        raise EstimateError(f"p would have {size:,} values (at most {LARGEST_P:,}): use to_arviz(tasks=False)")
    estimands = [estimand for estimand in posterior.estimands if estimand != "task"]
    variables: dict[str, Any] = {}
    for family in FAMILIES:
        values = np.full((*SHAPE, n_agents, len(estimands), len(ks)), np.nan)
        for a, e, i in np.ndindex(n_agents, len(estimands), len(ks)):
            if estimands[e] != "tasks" or counts.scored[a].any():
                draws = posterior.distribution(a, estimands[e], Metric.of(family, ks[i])).draws()
                values[:, :, a, e, i] = draws.reshape(SHAPE)
        variables[family] = ((*DIMS, "estimand", "k"), values)
    hyper = hyper_dataset(posterior)
    if hyper is not None:
        variables |= {str(name): hyper[name].variable for name in hyper.data_vars}
    coords: dict[str, Any] = {"chain": np.arange(CHAINS), "draw": np.arange(DRAWS), "agent": list(counts.agents)}
    coords |= {"estimand": estimands, "k": list(ks)}
    grouped = group_variables(posterior, ks)
    variables, coords = variables | grouped[0], coords | grouped[1]
    if not tasks:
        return {"posterior": xr.Dataset(variables, coords=coords)}
    p = np.stack([posterior.task_draws(a).reshape(*SHAPE, n_tasks) for a in range(n_agents)], axis=2)
    variables["p"] = ((*DIMS, "task"), p)
    whole = xr.Dataset(variables, coords=coords | {"task": list(counts.tasks)})
    return {"posterior": whole, **density_groups(posterior, method)}
