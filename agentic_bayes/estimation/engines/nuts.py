"""The PyMC engine: the hierarchical model as a `pymc.Model`, sampled by NUTS through nutpie."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from agentic_bayes.errors import EstimateError, InvalidArgument, NotConverged
from agentic_bayes.estimation.engines.diagnostics import Fit, diagnose
from agentic_bayes.estimation.engines.importance.normal_scale import FARTHEST, STEP, NormalScale, of_distribution
from agentic_bayes.estimation.engines.importance.target import SIGMA_SCALE, TAU_SCALE
from agentic_bayes.estimation.io import stacks
from agentic_bayes.estimation.methods.near_zero import NearZero
from agentic_bayes.estimation.methods.options import Crossed, Hierarchical, method_from_record, method_of
from agentic_bayes.estimation.posterior import CHAINS, DRAWS
from agentic_bayes.outcomes.dataset import check_outcomes, dataset_from_counts

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["build_model"]

SampledMethod = Hierarchical | Crossed
# beyond these the Beta-Binomial log-pmf cancels and a chain could stay there
MU_RANGE = (1e-6, 1 - 1e-6)
KAPPA_RANGE = (1e-6, 1e6)

TUNE = 1000
TARGET_ACCEPTS = (0.97, 0.99)  # the second is tried where the first leaves problems
KEPT_STATS = ("diverging", "energy", "depth", "n_steps", "step_size")


def _pymc() -> Any:
    """PyMC, imported without notices that do not concern these models (they use no BLAS)."""
    stacks.arviz()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS", category=UserWarning)
        import pymc
    return pymc


def build_model(
    outcomes: xr.Dataset,
    method: Hierarchical | Crossed | Literal["hierarchical", "crossed"] = "hierarchical",
    *,
    covariates: pd.DataFrame | None = None,
) -> Any:
    """The hierarchical or crossed Beta-Binomial model as a `pymc.Model`, to sample or to extend.

    Parameters
    ----------
    outcomes : xarray.Dataset
        Counts; see `check_outcomes`.
    method : Hierarchical or Crossed, or their names
        The same values as for `estimate`; priors as frozen `scipy.stats` distributions.
    covariates : pandas.DataFrame, optional
        Columns of numbers that shift logit μ, indexed by all the tasks or by all the agents. They are standardised;
        their coefficients ``beta`` (covariate) are N(0, 1).

    Returns
    -------
    pymc.Model
        Dims ``agent`` and ``task``; variables ``rho``, ``kappa`` (agent) and ``mu`` (agent) or, for ``crossed``,
        ``theta`` (agent), ``sigma`` and ``delta`` (task); when pooled ``m``, ``tau`` and ``z`` (agent); observed
        ``successes`` (agent, task) given the data ``trials``. The success probability of each cell is integrated out.

    Raises
    ------
    InvalidArgument
        If the method has no model, covariates do not fit the tasks or agents, or a prior has no counterpart in PyMC.

    Notes
    -----
    `Hierarchical` and `Crossed` state their models and priors. κ is clipped to [1e-6, 1e6], μ to [1e-6, 1 - 1e-6]. With
    its default prior ρ is deterministic: the quantile function of that prior at Φ(``rho_z``), ``rho_z`` ~ N(0, 1).

    Examples
    --------
    The model is an ordinary one, for ``pymc.sample(model=model, nuts_sampler="nutpie")``:

    >>> import pandas as pd
    >>> from agentic_bayes import outcomes_from_table
    >>> table = pd.DataFrame({"task": ["a", "b"], "successes": [3, 1], "trials": [4, 4]})
    >>> model = build_model(outcomes_from_table(table))
    >>> sorted(variable.name for variable in model.free_RVs)
    ['logit_mu', 'rho_z']
    """
    value = method_of(method)
    if not isinstance(value, SampledMethod) or (isinstance(value, Hierarchical) and value.inflate):
        raise InvalidArgument(f"method must be Hierarchical without inflate, or Crossed, got {value!r}")
    return _model(check_outcomes(outcomes), value, covariates=covariates)


def _model(outcomes: xr.Dataset, method: SampledMethod, *, covariates: pd.DataFrame | None = None) -> Any:
    pm = _pymc()
    agents, tasks = list(outcomes["agent"].values), list(outcomes["task"].values)
    with pm.Model(coords={"agent": agents, "task": tasks}) as model:
        n = pm.Data("trials", outcomes["trials"].values, dims=("agent", "task"))
        c = pm.Data("observed_successes", outcomes["successes"].values, dims=("agent", "task"))
        logit = _agent_logit(pm, len(agents), method)
        if isinstance(method, Hierarchical):
            pm.Deterministic("mu", pm.math.clip(pm.math.sigmoid(logit), *MU_RANGE), dims="agent")
        logit = logit[:, None]
        if isinstance(method, Crossed):
            sigma = _prior(method, "sigma", lambda name: pm.HalfNormal(name, SIGMA_SCALE))
            logit = logit + sigma * pm.Normal("delta", 0, 1, dims="task")[None, :]
        if covariates is not None:
            logit = logit + _shift(pm, model, covariates, agents, tasks)
        mu = pm.math.clip(pm.math.sigmoid(logit), *MU_RANGE)
        kappa = _concentration(pm, method)[:, None]
        alpha, beta = mu * kappa, (1 - mu) * kappa
        pm.BetaBinomial("successes", n=n, alpha=alpha, beta=beta, observed=c, dims=("agent", "task"))
    return model


def _agent_logit(pm: Any, n_agents: int, method: SampledMethod) -> Any:
    """Logit of each agent's mean, with or without shared strength."""
    name = "logit_mu" if isinstance(method, Hierarchical) else "theta"
    if method.pool_agents and n_agents > 1:
        m = _prior(method, "m", lambda name: pm.Logistic(name, 0, 1))
        tau = _prior(method, "tau", lambda name: pm.HalfNormal(name, TAU_SCALE))
        return pm.Deterministic(name, m + tau * pm.Normal("z", 0, 1, dims="agent"), dims="agent")
    if isinstance(method, Hierarchical) and method.mu is not None:
        return pm.Deterministic(name, pm.math.logit(distribution("mean", method.mu, dims="agent")), dims="agent")
    return _prior(method, name, lambda name: pm.Logistic(name, 0, 1, dims="agent"), dims="agent")


def _prior(method: SampledMethod, name: str, default: Callable[[str], Any], **keywords: Any) -> Any:
    """The variable of a parameter: with the prior that was given, else the default one."""
    given = getattr(method, name, None)
    return default(name) if given is None else distribution(name, given, **keywords)


def _concentration(pm: Any, method: SampledMethod) -> Any:
    """κ of each agent, from a prior of ρ or of κ itself."""
    if isinstance(method, Hierarchical) and method.kappa is not None:
        kappa = pm.math.clip(distribution("kappa", method.kappa, dims="agent"), *KAPPA_RANGE)
        pm.Deterministic("rho", 1 / (1 + kappa), dims="agent")
        return kappa
    prior = method.rho_prior
    if isinstance(prior, NearZero) and prior.weight > 0:  # by its quantile function, where NUTS moves best
        logit = _quantile(of_distribution(prior, unit=True), pm.Normal("rho_z", dims="agent"))
        pm.Deterministic("rho", pm.math.sigmoid(logit), dims="agent")
        return pm.Deterministic("kappa", pm.math.clip(pm.math.exp(-logit), *KAPPA_RANGE), dims="agent")
    rho = _prior(method, "rho", lambda name: pm.Uniform(name, 0, 1, dims="agent"), dims="agent")
    return pm.Deterministic("kappa", pm.math.clip(1 / rho - 1, *KAPPA_RANGE), dims="agent")


def _quantile(scale: NormalScale, z: Any) -> Any:
    """The tabulated quantile function of a prior, interpolated, at z ~ N(0, 1)."""
    import pytensor.tensor as pt

    place = (pt.clip(z, -FARTHEST, FARTHEST) + FARTHEST) / STEP
    node = pt.minimum(pt.cast(pt.floor(place), "int64"), scale.table.size - 2)
    table = pt.constant(scale.table)
    return table[node] + (place - node) * (table[node + 1] - table[node])


def _shift(pm: Any, model: Any, covariates: pd.DataFrame, agents: list[str], tasks: list[str]) -> Any:
    """What covariates add to logit μ, shape (agent, task) by broadcasting."""
    if not hasattr(covariates, "to_numpy") or not hasattr(covariates, "columns"):
        raise InvalidArgument(f"covariates must be a DataFrame indexed by task or agent, got {covariates!r}")
    labels = [str(label) for label in covariates.index]
    of_tasks = set(labels) == set(tasks)
    if not of_tasks and set(labels) != set(agents):
        raise InvalidArgument(
            f"covariates must be indexed by all {len(tasks)} tasks or by all {len(agents)} agents, "
            f"got {len(labels)} rows"
        )
    wanted = tasks if of_tasks else agents
    rows = [labels.index(label) for label in wanted]
    values = covariates.to_numpy(dtype=np.float64)[rows]
    spread = values.std(axis=0)
    if len(labels) != len(set(labels)) or not np.all(np.isfinite(values)) or not np.all(spread > 0):
        raise InvalidArgument("covariates must have one row per label and finite columns that are not constant")
    model.add_coord("covariate", [str(name) for name in covariates.columns])
    effect = pm.math.dot((values - values.mean(axis=0)) / spread, pm.Normal("beta", 0, 1, dims="covariate"))
    return effect[None, :] if of_tasks else effect[:, None]


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
    """A frozen `scipy.stats` distribution as a PyMC variable of the model in context."""
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


@lru_cache(maxsize=8)
def _compiled(n_agents: int, n_tasks: int, recorded_method: str) -> Any:
    """The compiled model for so many agents and, in the crossed model, tasks; the data are put in later."""
    import nutpie
    from pytensor.configdefaults import config

    cells = product(map(str, range(n_agents)), map(str, range(n_tasks)))
    method = method_from_record(json.loads(recorded_method))
    assert isinstance(method, SampledMethod)
    model = _model(dataset_from_counts(dict.fromkeys(cells, (0, 1, 0, 0)), {}), method)
    # code that may reorder sums gives other last digits when it is compiled than when it comes from the cache
    strict = config.change_flags(numba__fastmath=False)
    with strict, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS", category=UserWarning)
        return nutpie.compile_pymc_model(model)


def fit(
    outcomes: xr.Dataset,
    method: SampledMethod,
    *,
    random_seed: int = 0,
    draws: int = DRAWS,
    tune: int = TUNE,
    target_accepts: tuple[float, ...] = TARGET_ACCEPTS,
    progress: bool = False,
) -> Fit:
    """Sample the hierarchical or the crossed model, with a bar that shows the `progress` if asked."""
    import nutpie

    if method.has_function_prior:
        raise InvalidArgument("engine 'pymc' takes priors that are scipy.stats distributions, not functions")
    n_agents = outcomes.sizes["agent"]
    n_tasks = outcomes.sizes["task"] if isinstance(method, Crossed) else 1  # data may be of any length, parameters not
    if n_agents == 1 and method.pool_agents:  # nothing to pool: the same model, compiled once
        method = replace(method, pool_agents=False)
    compiled = _compiled(n_agents, n_tasks, json.dumps(method.record())).with_data(
        trials=outcomes["trials"].values, observed_successes=outcomes["successes"].values
    )
    for target_accept in target_accepts:
        try:
            trace = nutpie.sample(
                compiled,
                draws=draws,
                tune=tune,
                chains=CHAINS,
                cores=CHAINS,
                seed=random_seed,
                target_accept=target_accept,
                progress_bar=progress,
            )
        except RuntimeError as error:
            reason = str(error).partition("\n")[0]
            raise EstimateError(f"NUTS cannot sample these outcomes: {reason}") from error
        posterior, stats = stacks.group(trace, "posterior"), stacks.group(trace, "sample_stats")
        kept = [name for name in ("mu", "rho", "m", "tau", "theta", "sigma") if name in posterior]
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
