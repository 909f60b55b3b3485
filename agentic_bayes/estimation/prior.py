"""Priors of the hierarchical model as arguments, so that published analyses can be reproduced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.posterior import Array

__all__ = ["LogDensity", "Prior"]

LogDensity = Callable[[Array], Array]


@dataclass(frozen=True, kw_only=True)
class Prior:
    """Priors of the hierarchical model; what is left out keeps its default.

    Each is a frozen distribution of `scipy.stats`, such as ``scipy.stats.beta(2, 5)``, or, for the quadrature engine
    only, a function of an array that returns an unnormalised log density (-inf outside its support).

    Attributes
    ----------
    mu : distribution, optional
        Mean success probability μ of agents that do not share strength. Default: Uniform(0, 1). For the conjugate
        method: the Beta (or uniform) prior of each success probability.
    rho : distribution, optional
        Intra-class correlation ρ = 1/(1 + κ). Default: Uniform(0, 1).
    kappa : distribution, optional
        Concentration κ = α + β, instead of `rho`.
    m : distribution, optional
        Mean of the agents' logit μ. Default: Logistic(0, 1).
    tau : distribution, optional
        Standard deviation of the agents' logit μ. Default: HalfNormal(1).

    Raises
    ------
    InvalidArgument
        If one is neither, or both `rho` and `kappa` are given.

    Examples
    --------
    >>> from scipy import stats
    >>> prior = Prior(rho=stats.beta(2, 5), tau=stats.halfnorm(scale=0.5))
    """

    mu: Any = None
    rho: Any = None
    kappa: Any = None
    m: Any = None
    tau: Any = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not callable(value) and not hasattr(value, "logpdf"):
                raise InvalidArgument(
                    f"prior of {field.name} must be a frozen scipy.stats distribution or a function that returns a "
                    f"log density, got {value!r}"
                )
        if self.rho is not None and self.kappa is not None:
            raise InvalidArgument("give a prior of rho or of kappa, not both: rho = 1/(1 + kappa)")

    def log_density(self, name: str) -> LogDensity | None:
        """Log density of one parameter, or None where the default holds.

        Parameters
        ----------
        name : {"mu", "rho", "kappa", "m", "tau"}
            Which.

        Returns
        -------
        callable or None
        """
        value = getattr(self, name)
        if value is None:
            return None
        logpdf = value.logpdf if hasattr(value, "logpdf") else value

        def density(x: Array) -> Array:
            with np.errstate(divide="ignore", invalid="ignore"):
                found = np.asarray(logpdf(x), dtype=np.float64)
            return np.where(np.isnan(found), -np.inf, found)

        return density

    @property
    def is_function(self) -> bool:
        """Whether one of the priors is a function, which no file keeps."""
        return "callable" in (self.as_dict() or {}).values()

    def as_dict(self) -> dict[str, Any] | None:
        """Names and parameters for a file; None where everything is the default.

        A function cannot be kept: it becomes ``"callable"``.
        """
        given = {field.name: _described(getattr(self, field.name)) for field in fields(self)}
        kept = {name: value for name, value in given.items() if value is not None}
        return kept or None

    @classmethod
    def from_dict(cls, record: dict[str, Any] | None) -> Prior | None:
        """What `as_dict` described, the default prior for None; None where a function was not kept."""
        if record is None:
            return cls()
        if "callable" in record.values():
            return None
        return cls(**{k: _named(v["name"])(*v["args"], **v["kwds"]) for k, v in record.items()})


def _described(value: Any) -> Any:
    if value is None:
        return None
    name = getattr(getattr(value, "dist", None), "name", None)
    try:
        of_scipy = isinstance(value.dist, type(_named(name)))
    except (AttributeError, InvalidArgument):
        of_scipy = False
    if not of_scipy:  # a function, or a distribution of somebody's own
        return "callable"
    kwds = {key: float(number) for key, number in value.kwds.items()}
    return {"name": name, "args": [float(a) for a in value.args], "kwds": kwds}


def _named(name: object) -> Any:
    """A continuous distribution of `scipy.stats`, and nothing else that has a name there."""
    from scipy import stats

    found = getattr(stats, name, None) if isinstance(name, str) else None
    if not isinstance(found, stats.rv_continuous):
        raise InvalidArgument(f"prior must be a continuous distribution of scipy.stats, got {name!r}")
    return found
