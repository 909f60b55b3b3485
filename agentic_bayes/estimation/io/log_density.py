"""Pointwise log likelihood and log prior of draws, for LOO, model comparison and prior sensitivity in ArviZ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from agentic_bayes.estimation.engines.grid.axes import log_logistic
from agentic_bayes.estimation.engines.importance.target import SIGMA_SCALE
from agentic_bayes.estimation.io.replicated import by_cell
from agentic_bayes.estimation.methods.options import Method
from agentic_bayes.estimation.posterior import Posterior, labelled
from agentic_bayes.numerics import Array

if TYPE_CHECKING:
    import xarray as xr


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


def log_prior_densities(drawn: dict[str, Array], method: Method) -> dict[str, Array]:
    """Log prior densities at the draws of the hyperparameters."""
    if not drawn:
        return {}
    values: dict[str, Array] = {}
    if "m" in drawn:
        values["m"] = (method.log_density("m") or log_logistic)(drawn["m"])
        values["tau"] = (method.log_density("tau") or _log_half_normal)(drawn["tau"])
    elif "theta" in drawn and getattr(method, "pool_agents", False) and drawn["theta"].shape[1] > 1:
        pass  # of pooled θ only m and τ have a prior, and the points do not hold them
    elif "theta" in drawn:
        values["theta"] = (method.log_density("theta") or log_logistic)(drawn["theta"])
    elif (log_mu := method.log_density("mu")) is not None:
        values["mu"] = log_mu(drawn["mu"])
    else:
        values["logit_mu"] = log_logistic(np.log(drawn["mu"]) - np.log1p(-drawn["mu"]))
    log_kappa, log_rho = method.log_density("kappa"), method.log_density("rho")
    if log_kappa is not None:
        values["kappa"] = log_kappa(1 / drawn["rho"] - 1)
    else:
        values["rho"] = np.zeros(drawn["rho"].shape) if log_rho is None else log_rho(drawn["rho"])
    if "sigma" in drawn:
        log_sigma = method.log_density("sigma")
        if log_sigma is not None:
            values["sigma"] = log_sigma(drawn["sigma"])
        else:
            values["sigma"] = _log_half_normal(drawn["sigma"] / SIGMA_SCALE) - np.log(SIGMA_SCALE)
    return {name: _finite(logs) for name, logs in values.items()}


def _finite(logs: Array) -> Array:
    """Log densities where a draw at the edge of a prior's support may lie a rounding beyond it, or at a pole."""
    known = logs[np.isfinite(logs)]
    return np.clip(logs, known.min(), known.max()) if known.size else np.zeros(logs.shape)


def _log_half_normal(x: Array) -> Array:
    return np.asarray(0.5 * np.log(2 / np.pi) - 0.5 * x**2)
