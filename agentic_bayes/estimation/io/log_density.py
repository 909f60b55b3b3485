"""Pointwise log likelihood and log prior of draws, for LOO, model comparison and prior sensitivity in ArviZ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.estimation.engines.grid.axes import log_logistic, logsumexp
from agentic_bayes.estimation.methods.conjugate import ConjugatePosterior
from agentic_bayes.estimation.methods.crossed import LOG_WEIGHT, SIGMA_SCALE, CrossedPosterior
from agentic_bayes.estimation.methods.inflated import InflatedPosterior
from agentic_bayes.estimation.population import log_binomial, population_of
from agentic_bayes.estimation.posterior import CHAINS, DRAWS, Array, Counts
from agentic_bayes.estimation.prior import Prior

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["density_groups"]


def density_groups(
    posterior: Any, counts: Counts, prior: Prior | None, hyper: xr.Dataset | None
) -> dict[str, xr.Dataset]:
    """ArviZ's groups ``log_likelihood`` and ``log_prior``.

    Notes
    -----
    ``log_likelihood`` has one variable, ``successes`` (chain, draw, cell), over the cells with a scored trial; the
    coordinate ``cell`` is "agent / task". The success probability of the cell is integrated out: leaving a cell out
    means predicting a task that was not seen. In the crossed model it is the probability of a cell given the other
    agents' counts on its task, with the task's difficulty integrated out, which is what leaving that cell out needs.

    ``log_prior`` holds the log densities of the priors: ``m`` and ``tau``, or ``logit_mu`` (``theta`` in the crossed
    model; ``mu`` where its prior was given); ``rho`` or ``kappa``; ``sigma``; ``weights``. What spreads agents and
    tasks (z, δ, p) is part of the model and not among them, since scaling it would not be a change of prior. A
    uniform prior of ρ stays uniform under any power: to see what it does, fit with another one.

    References
    ----------
    Vehtari, Gelman and Gabry (2017), Statistics and Computing 27, 1413-1432, doi:10.1007/s11222-016-9696-4.
    Kallioinen et al. (2024), Statistics and Computing 34, 57, doi:10.1007/s11222-023-10366-5.
    """
    import xarray as xr

    cells = _log_likelihood(posterior, counts)
    if cells is None:
        return {}
    shape, dims = (CHAINS, DRAWS), ("chain", "draw")
    index = {"chain": np.arange(CHAINS), "draw": np.arange(DRAWS)}
    labels = [f"{counts.agents[a]} / {counts.tasks[i]}" for a, i in np.argwhere(counts.scored).tolist()]
    likelihood = xr.Dataset(
        {"successes": ((*dims, "cell"), cells.reshape(*shape, len(labels)))}, coords={**index, "cell": labels}
    )
    groups = {"log_likelihood": likelihood}
    values = {} if prior is None else _log_prior(posterior, prior, hyper)
    if values:
        per_agent = {name: ((*dims, "agent")[: part.ndim], part) for name, part in values.items()}
        groups["log_prior"] = xr.Dataset(per_agent, coords={**index, "agent": list(counts.agents)})
    return groups


def _log_likelihood(posterior: Any, counts: Counts) -> Array | None:
    """Log probability of every scored cell, shape (draws, cells), cells agent by agent."""
    if isinstance(posterior, CrossedPosterior):
        return _crossed(posterior, counts)
    columns = []
    for agent in range(len(counts.agents)):
        c, n, place = counts.pairs(agent)
        if isinstance(posterior, ConjugatePosterior):
            if not posterior.pool_tasks:
                return None
            p = np.clip(posterior.task_draws(agent)[:, 0], 1e-300, 1 - 1e-16)
            log_pmf = c[:, None] * np.log(p) + (n - c)[:, None] * np.log1p(-p) + log_binomial(n, c)[:, None]
        else:
            population = population_of(posterior, agent, CHAINS * DRAWS)
            if population is None:
                return None
            log_pmf = population.log_pmf(c, n)
        columns.append(log_pmf[place[counts.scored[agent]]])
    return np.concatenate(columns).T


def _crossed(posterior: CrossedPosterior, counts: Counts) -> Array:
    """Log p(cell | the other agents' counts on its task), the task's difficulty integrated out."""
    likelihood, tables = posterior.likelihood, posterior.tables
    found = np.empty((len(tables), len(likelihood.patterns), posterior.sigma.size))
    for index, pattern in enumerate(likelihood.patterns.tolist()):
        own = [table[:, pair] for table, pair in zip(tables, pattern, strict=True)]
        joint = LOG_WEIGHT + sum(own)
        together = logsumexp(joint, axis=1)
        for agent, part in enumerate(own):
            found[agent, index] = together - logsumexp(joint - part, axis=1)
    columns = []
    for agent, (c, n) in enumerate(likelihood.pairs):
        by_pattern = found[agent] + log_binomial(n, c)[likelihood.patterns[:, agent], None]
        columns.append(by_pattern[likelihood.place[counts.scored[agent]]])
    return np.concatenate(columns).T


def _log_prior(posterior: Any, prior: Prior, hyper: xr.Dataset | None) -> dict[str, Array]:
    """Log densities of the priors at the draws, shape (chains, draws) or (chains, draws, agents)."""
    if isinstance(posterior, ConjugatePosterior):
        p = np.stack([posterior.task_draws(a)[:, 0] for a in range(len(posterior.counts.agents))], axis=1)
        a, b = posterior.prior
        p = np.clip(p, 1e-300, 1 - 1e-16)
        return {"p": ((a - 1) * np.log(p) + (b - 1) * np.log1p(-p)).reshape(CHAINS, DRAWS, -1)}
    if hyper is None:
        return {}
    drawn = {str(name): hyper[name].transpose("chain", "draw", ...).values for name in hyper.data_vars}
    found: dict[str, Array] = {}
    if "m" in drawn:
        found["m"] = (prior.log_density("m") or log_logistic)(drawn["m"])
        found["tau"] = (prior.log_density("tau") or _log_half_normal)(drawn["tau"])
    else:
        logit = drawn["theta"] if "theta" in drawn else _logit(drawn["mu"])
        given = prior.log_density("mu")
        if given is not None:
            found["mu"] = given(np.exp(-np.logaddexp(0, -logit)))
        else:
            found["theta" if "theta" in drawn else "logit_mu"] = log_logistic(logit)
    kappa, rho = prior.log_density("kappa"), prior.log_density("rho")
    if kappa is not None:
        found["kappa"] = kappa(1 / drawn["rho"] - 1)
    else:
        found["rho"] = np.zeros(drawn["rho"].shape) if rho is None else rho(drawn["rho"])
    if "sigma" in drawn:
        found["sigma"] = _log_half_normal(drawn["sigma"] / SIGMA_SCALE) - np.log(SIGMA_SCALE)
    if isinstance(posterior, InflatedPosterior):
        rest = [posterior.weights_drawn(agent)[2] for agent in range(len(posterior.counts.agents))]
        # Dirichlet(1, 1, 4) of (never, always, rest)
        found["weights"] = (np.log(20.0) + 3 * np.log(np.stack(rest, axis=1))).reshape(CHAINS, DRAWS, -1)
    return found


def _logit(p: Array) -> Array:
    return np.asarray(np.log(p) - np.log1p(-p))


def _log_half_normal(x: Array) -> Array:
    return np.asarray(0.5 * np.log(2 / np.pi) - 0.5 * x**2)
