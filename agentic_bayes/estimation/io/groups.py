"""An estimate's draws as labelled groups, for ArviZ and for files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.engines.grid.exact import ExactPosterior
from agentic_bayes.estimation.io.log_density import density_groups
from agentic_bayes.estimation.methods.crossed import CrossedPosterior
from agentic_bayes.estimation.methods.judged import JudgedPosterior
from agentic_bayes.estimation.posterior import CHAINS, DRAWS, Counts, Posterior
from agentic_bayes.estimation.prior import Prior
from agentic_bayes.formatting import METRICS

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["draw_groups", "hyper_draws"]

LARGEST_P = 10**7  # draws × agents × tasks that are made
DIMS, SHAPE = ("chain", "draw", "agent"), (CHAINS, DRAWS)


def hyper_draws(posterior: Posterior, counts: Counts, draws: xr.Dataset | None) -> xr.Dataset | None:
    """Draws of the hyperparameters, from a sampler or from the grids."""
    import xarray as xr

    shape = (*SHAPE, len(counts.agents))
    if isinstance(posterior, CrossedPosterior) and draws is not None:
        # the mean success probability of a new task follows from θ and σ
        return draws.assign(mu=(DIMS, posterior.hyper_draws()[0].reshape(shape)))
    if not isinstance(posterior, ExactPosterior):
        return draws
    drawn = zip(("mu", "rho"), posterior.hyper_draws(), strict=True)
    coords = {"chain": np.arange(CHAINS), "draw": np.arange(DRAWS), "agent": np.asarray(counts.agents, dtype=object)}
    found = xr.Dataset({name: (DIMS, values.reshape(shape)) for name, values in drawn}, coords=coords)
    if isinstance(posterior, JudgedPosterior):
        rates = zip(("sensitivity", "specificity"), posterior.rate_draws(), strict=True)
        return found.assign({name: (DIMS[:2], values.reshape(SHAPE)) for name, values in rates})
    pool = zip(("m", "tau"), posterior.pool_draws or (), strict=False)
    return found.assign({name: (DIMS[:2], values.reshape(SHAPE)) for name, values in pool})


def draw_groups(
    posterior: Posterior,
    counts: Counts,
    ks: tuple[int, ...],
    hyper: xr.Dataset | None,
    prior: Prior | None,
    *,
    tasks: bool,
) -> dict[str, xr.Dataset]:
    """ArviZ's groups ``posterior`` and, with `tasks`, ``log_likelihood`` and ``log_prior``."""
    import xarray as xr

    n_agents, n_tasks = counts.successes.shape
    size = CHAINS * DRAWS * n_agents * n_tasks
    if tasks and size > LARGEST_P:
        raise EstimateError(f"p would have {size:,} values (at most {LARGEST_P:,}): use to_arviz(tasks=False)")
    estimands = [estimand for estimand in posterior.estimands if estimand != "task"]
    variables: dict[str, Any] = {}
    for metric in METRICS:
        values = np.full((*SHAPE, n_agents, len(estimands), len(ks)), np.nan)
        for a, e, i in np.ndindex(n_agents, len(estimands), len(ks)):
            if estimands[e] != "tasks" or counts.scored[a].any():
                values[:, :, a, e, i] = posterior.draws(a, estimands[e], metric, ks[i]).reshape(SHAPE)
        variables[metric] = ((*DIMS, "estimand", "k"), values)
    if hyper is not None:
        variables |= {str(name): hyper[name].variable for name in hyper.data_vars}
    coords: dict[str, Any] = {"chain": np.arange(CHAINS), "draw": np.arange(DRAWS), "agent": list(counts.agents)}
    coords |= {"estimand": estimands, "k": list(ks)}
    if not tasks:
        return {"posterior": xr.Dataset(variables, coords=coords)}
    p = np.stack([posterior.task_draws(a).reshape(*SHAPE, n_tasks) for a in range(n_agents)], axis=2)
    variables["p"] = ((*DIMS, "task"), p)
    whole = xr.Dataset(variables, coords=coords | {"task": list(counts.tasks)})
    return {"posterior": whole, **density_groups(posterior, counts, prior, hyper)}
