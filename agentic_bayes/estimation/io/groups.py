"""An estimate's draws as labelled groups, for ArviZ and for files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.checks import check_flag
from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.io.by_group import group_variables
from agentic_bayes.estimation.io.log_density import log_prior_densities
from agentic_bayes.estimation.io.replicated import by_cell, count_groups, prior_groups, replicated_cells
from agentic_bayes.estimation.methods.options import Method
from agentic_bayes.estimation.posterior import CHAINS, DRAWS, Posterior, labelled
from agentic_bayes.formatting import FAMILIES, Metric
from agentic_bayes.numerics import Array

if TYPE_CHECKING:
    import xarray as xr

LARGEST_P = 10**7  # draws × agents × tasks that are made
DIMS, SHAPE = ("chain", "draw", "agent"), (CHAINS, DRAWS)


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


def density_groups(posterior: Posterior, method: Method) -> dict[str, xr.Dataset]:
    """ArviZ's groups ``log_likelihood`` and ``log_prior``.

    Notes
    -----
    ``log_likelihood`` has one variable, ``successes`` (chain, draw, cell), over the cells with a scored trial; the
    coordinate ``cell`` is "agent / task". The success probability of the cell is integrated out: leaving a cell out
    means predicting a task that was not seen. In the crossed model it is the probability of a cell given the other
    agents' counts on its task, with the task's difficulty integrated out, which is what leaving that cell out needs
    (their sum is then not the log likelihood of all cells, on which they depend twice).

    ``log_prior`` holds the log densities of the priors: ``m`` and ``tau``, or ``logit_mu`` (``theta`` in the crossed
    model; ``mu`` where its prior was given); ``rho`` or ``kappa``; ``sigma``; ``weights``. What spreads agents and
    tasks (z, δ, p) is part of the model and not among them, since scaling it would not be a change of prior. A
    uniform prior of ρ stays uniform under any power: to see what it does, fit with another one.

    References
    ----------
    Vehtari, Gelman and Gabry (2017), Statistics and Computing 27, 1413-1432, doi:10.1007/s11222-016-9696-4.
    Kallioinen et al. (2024), Statistics and Computing 34, 57, doi:10.1007/s11222-023-10366-5.
    """
    cells, counts = posterior.log_likelihood(), posterior.counts
    if cells is None:
        return {}
    values = {**log_prior_densities(posterior.hyper_draws(), method), **posterior.log_priors()}
    priors = {"log_prior": labelled(values, list(counts.agents))} if values else {}
    return {"log_likelihood": by_cell(cells, counts)} | priors


def _labelled(draws: Mapping[str, Array], coords: Mapping[str, Any]) -> xr.Dataset:
    """Draws of hyperparameters, of p and of the metrics, one group of ArviZ's."""
    plain = {name: values for name, values in draws.items() if name not in (*FAMILIES, "p")}
    named = labelled(plain, coords["agent"]).assign_coords(coords)
    dims: dict[str, tuple[str, ...]] = {**dict.fromkeys(FAMILIES, (*DIMS, "estimand", "k")), "p": (*DIMS, "task")}
    return named.assign(
        {name: (dims[name], draws[name].reshape(*SHAPE, *draws[name].shape[1:])) for name in dims if name in draws}
    )
