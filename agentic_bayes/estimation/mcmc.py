"""The PyMC engine: the hierarchical model as a `pymc.Model`, sampled by NUTS through nutpie."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.errors import InvalidArgument, NotConverged
from agentic_bayes.estimation import _arviz
from agentic_bayes.estimation.diagnostics import Diagnostics, diagnose
from agentic_bayes.estimation.hierarchical import KAPPA_RANGE, MU_RANGE
from agentic_bayes.estimation.posterior import CHAINS, DRAWS
from agentic_bayes.estimation.prior import Prior
from agentic_bayes.outcomes import check_outcomes

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Fit", "build_model", "fit"]

TUNE = 1000
TARGET_ACCEPTS = (0.97, 0.99)  # the second is tried where the first leaves problems
KEPT_STATS = ("diverging", "energy", "depth", "n_steps", "step_size")


def _pymc() -> Any:
    """PyMC, imported without notices that do not concern these models (they use no BLAS)."""
    _arviz.arviz()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS", category=UserWarning)
        import pymc
    return pymc


def build_model(outcomes: xr.Dataset, *, pool_agents: bool = True, prior: Prior | None = None) -> Any:
    """The hierarchical Beta-Binomial model as a `pymc.Model`, to sample or to extend.

    Parameters
    ----------
    outcomes : xarray.Dataset
        Counts; see `check_outcomes`.
    pool_agents : bool
        Whether agents share strength through (m, τ); with one agent there is nothing to share.
    prior : Prior, optional
        Priors other than the default ones, as `scipy.stats` distributions.

    Returns
    -------
    pymc.Model
        Dims ``agent`` and ``task``; variables ``mu``, ``rho``, ``kappa`` (agent) and, when pooled, ``m``, ``tau`` and
        ``z`` (agent); observed ``successes`` (agent, task) given the data ``trials``. The success probability of
        each task is integrated out.

    Notes
    -----
    c_ai ~ BetaBinomial(n_ai, μ_a κ_a, (1-μ_a) κ_a), ρ_a = 1/(1+κ_a) ~ Uniform(0, 1),
    logit μ_a = m + τ z_a with m ~ Logistic(0, 1), τ ~ HalfNormal(1), z_a ~ N(0, 1); unpooled
    logit μ_a ~ Logistic(0, 1). κ is clipped to [1e-6, 1e6] and μ to [1e-6, 1 - 1e-6].

    Examples
    --------
    >>> import pymc as pm
    >>> model = build_model(outcomes)  # doctest: +SKIP
    >>> idata = pm.sample(model=model, nuts_sampler="nutpie")  # doctest: +SKIP
    """
    checked = check_outcomes(outcomes)
    return _model(
        tuple(checked["agent"].values),
        tuple(checked["task"].values),
        checked["successes"].values,
        checked["trials"].values,
        pool_agents,
        Prior() if prior is None else prior,
    )


def _model(
    agents: tuple[str, ...], tasks: tuple[str, ...], successes: Any, trials: Any, pool_agents: bool, prior: Prior
) -> Any:
    pm = _pymc()
    with pm.Model(coords={"agent": list(agents), "task": list(tasks)}) as model:
        n = pm.Data("trials", trials, dims=("agent", "task"))
        c = pm.Data("observed_successes", successes, dims=("agent", "task"))
        if pool_agents and len(agents) > 1:
            m = pm.Logistic("m", 0, 1) if prior.m is None else distribution("m", prior.m)
            tau = pm.HalfNormal("tau", 1) if prior.tau is None else distribution("tau", prior.tau)
            logit_mu = m + tau * pm.Normal("z", 0, 1, dims="agent")
            share = pm.math.sigmoid(logit_mu)
        elif prior.mu is None:
            share = pm.math.sigmoid(pm.Logistic("logit_mu", 0, 1, dims="agent"))
        else:
            share = distribution("unclipped_mu", prior.mu, dims="agent")
        mu = pm.Deterministic("mu", pm.math.clip(share, *MU_RANGE), dims="agent")
        if prior.kappa is None:
            rho = (
                pm.Uniform("rho", 0, 1, dims="agent")
                if prior.rho is None
                else distribution("rho", prior.rho, dims="agent")
            )
            kappa = pm.Deterministic("kappa", pm.math.clip(1 / rho - 1, *KAPPA_RANGE), dims="agent")
        else:
            kappa = pm.math.clip(distribution("kappa", prior.kappa, dims="agent"), *KAPPA_RANGE)
            pm.Deterministic("rho", 1 / (1 + kappa), dims="agent")
        pm.BetaBinomial(
            "successes",
            n=n,
            alpha=(mu * kappa)[:, None],
            beta=((1 - mu) * kappa)[:, None],
            observed=c,
            dims=("agent", "task"),
        )
    return model


# scipy.stats name → (PyMC name, its parameters from scipy's shapes, loc and scale, whether loc must be 0 and scale 1)
DISTRIBUTIONS: dict[str, tuple[str, Callable[..., dict[str, float]], bool, bool]] = {
    "beta": ("Beta", lambda a, b, loc, scale: {"alpha": a, "beta": b}, True, True),
    "expon": ("Exponential", lambda loc, scale: {"lam": 1 / scale}, True, False),
    "gamma": ("Gamma", lambda a, loc, scale: {"alpha": a, "beta": 1 / scale}, True, False),
    "halfcauchy": ("HalfCauchy", lambda loc, scale: {"beta": scale}, True, False),
    "halfnorm": ("HalfNormal", lambda loc, scale: {"sigma": scale}, True, False),
    "logistic": ("Logistic", lambda loc, scale: {"mu": loc, "s": scale}, False, False),
    "lognorm": ("LogNormal", lambda s, loc, scale: {"mu": float(np.log(scale)), "sigma": s}, True, False),
    "norm": ("Normal", lambda loc, scale: {"mu": loc, "sigma": scale}, False, False),
    "pareto": ("Pareto", lambda b, loc, scale: {"alpha": b, "m": scale}, True, False),
    "uniform": ("Uniform", lambda loc, scale: {"lower": loc, "upper": loc + scale}, False, False),
}


def distribution(name: str, frozen: Any, **keywords: Any) -> Any:
    """A frozen `scipy.stats` distribution as a PyMC variable of the model in context.

    Parameters
    ----------
    name : str
        Name of the variable.
    frozen : scipy.stats frozen distribution
        One of those in `DISTRIBUTIONS`.
    **keywords
        Passed to PyMC, such as ``dims``.

    Returns
    -------
    pytensor variable

    Raises
    ------
    InvalidArgument
        If PyMC has no counterpart here.
    """
    kind = getattr(getattr(frozen, "dist", None), "name", None)
    if kind not in DISTRIBUTIONS:
        raise InvalidArgument(
            f"engine 'pymc' takes priors that are frozen scipy.stats distributions of {', '.join(DISTRIBUTIONS)}; "
            f"the prior of {name} is {kind or frozen!r} (engine 'quadrature' takes any log density)"
        )
    pymc_name, translate, needs_loc, needs_scale = DISTRIBUTIONS[kind]
    shapes, loc, scale = frozen.dist._parse_args(*frozen.args, **frozen.kwds)
    if (needs_loc and loc != 0) or (needs_scale and scale != 1):
        raise InvalidArgument(
            f"engine 'pymc' takes scipy.stats.{kind} without loc{' and scale' if needs_scale else ''}"
        )
    parameters = translate(*map(float, shapes), loc=float(loc), scale=float(scale))
    return getattr(_pymc(), pymc_name)(name, **parameters, **keywords)


@dataclass(frozen=True)
class Fit:
    """What NUTS gives.

    Attributes
    ----------
    posterior : xarray.Dataset
        Draws, dims (chain, draw, agent): ``mu``, ``rho`` and, when pooled, ``m`` and ``tau`` (chain, draw).
    sample_stats : xarray.Dataset
        The sampler's account, dims (chain, draw).
    diagnostics : Diagnostics
        Whether they may be trusted.
    """

    posterior: xr.Dataset
    sample_stats: xr.Dataset
    diagnostics: Diagnostics


@lru_cache(maxsize=8)
def _compiled(n_agents: int, n_tasks: int, pool_agents: bool, described_prior: str) -> Any:
    """The compiled model for data of this shape; the data are put in later."""
    import nutpie

    shape = (n_agents, n_tasks)
    labels = tuple(map(str, range(n_agents))), tuple(map(str, range(n_tasks)))
    blank = np.zeros(shape, dtype=np.int64), np.ones(shape, dtype=np.int64)
    prior = Prior.from_dict(json.loads(described_prior))
    if prior is None:
        raise InvalidArgument("engine 'pymc' takes priors as scipy.stats distributions, not as functions")
    model = _model(*labels, *blank, pool_agents, prior)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS", category=UserWarning)
        return nutpie.compile_pymc_model(model)


def fit(
    outcomes: xr.Dataset,
    *,
    pool_agents: bool = True,
    prior: Prior | None = None,
    random_seed: int = 0,
    draws: int = DRAWS,
    tune: int = TUNE,
    target_accepts: tuple[float, ...] = TARGET_ACCEPTS,
) -> Fit:
    """Sample the hierarchical model.

    Parameters
    ----------
    outcomes : xarray.Dataset
        Checked counts.
    pool_agents, prior
        As in `build_model`.
    random_seed : int
        Same seed, same draws.
    draws, tune : int
        Per chain; there are four.
    target_accepts : tuple of float
        Tried in turn until the diagnostics pass.

    Returns
    -------
    Fit

    Warns
    -----
    NotConverged
        If the last try leaves problems; the fit carries them, and so does everything made from it.
    """
    import nutpie

    described = json.dumps(None if prior is None else prior.as_dict())
    n_agents, n_tasks = outcomes.sizes["agent"], outcomes.sizes["task"]
    compiled = _compiled(n_agents, n_tasks, pool_agents and n_agents > 1, described).with_data(
        trials=outcomes["trials"].values, observed_successes=outcomes["successes"].values
    )
    for target_accept in target_accepts:
        trace = nutpie.sample(
            compiled,
            draws=draws,
            tune=tune,
            chains=CHAINS,
            cores=CHAINS,
            seed=random_seed,
            target_accept=target_accept,
            progress_bar=False,
        )
        posterior, stats = _arviz.group(trace, "posterior"), _arviz.group(trace, "sample_stats")
        kept = [name for name in ("mu", "rho", "m", "tau") if name in posterior]
        posterior = posterior[kept].assign_coords(agent=outcomes["agent"].values)
        stats = stats[[name for name in KEPT_STATS if name in stats]]
        diagnostics = diagnose(posterior, int(stats["diverging"].sum()), target_accept)
        if diagnostics.passed:
            break
    else:
        warnings.warn(f"{diagnostics}", NotConverged, stacklevel=3)
    return Fit(_plain(posterior), _plain(stats), diagnostics)


def _plain(ds: xr.Dataset) -> xr.Dataset:
    """Without the sampler's attributes, which hold the time of day."""
    ds = ds.drop_vars([name for name in ds.coords if name not in ("chain", "draw", "agent")])
    bare = ds.assign_attrs({}).copy()
    bare.attrs.clear()
    return bare
