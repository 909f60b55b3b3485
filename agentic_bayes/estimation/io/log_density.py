"""Log prior densities of draws of the hyperparameters."""

from __future__ import annotations

import numpy as np

from agentic_bayes.estimation.engines.grid.axes import log_logistic
from agentic_bayes.estimation.engines.importance.target import SIGMA_SCALE
from agentic_bayes.estimation.methods.options import Method
from agentic_bayes.numerics import Array


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
