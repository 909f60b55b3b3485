"""`estimate`: counts in, an `Estimate` of pass@k and pass^k out, beside the frequentist baseline."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, assert_never, get_args

import numpy as np

from agentic_bayes import numerics
from agentic_bayes.errors import EstimateError, InvalidArgument, UnknownName, no_such_file
from agentic_bayes.estimation import _arviz
from agentic_bayes.estimation.conjugate import ConjugatePosterior
from agentic_bayes.estimation.diagnostics import Diagnostics
from agentic_bayes.estimation.frequentist import Estimator, FrequentistEstimate
from agentic_bayes.estimation.hierarchical import HierarchicalPosterior
from agentic_bayes.estimation.posterior import (
    CHAINS,
    DRAWS,
    STATISTICS,
    Array,
    CIKind,
    Counts,
    Estimand,
    Posterior,
    Stats,
)
from agentic_bayes.formatting import Metric, format_interval, format_number, html_table, metric_name, plural
from agentic_bayes.outcomes import check_outcomes

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["Estimate", "Settings", "estimate"]

Method = Literal["frequentist", "conjugate", "hierarchical"]
Engine = Literal["auto", "pymc"]
METRICS: tuple[Metric, ...] = get_args(Metric)
LARGEST_P = 10**7  # draws × agents × tasks that `to_arviz` is willing to make
PACKAGES = ("agentic-bayes", "numpy", "scipy", "xarray", "pymc", "nutpie", "arviz")


@dataclass(frozen=True, slots=True)
class Settings:
    """How an estimate was asked for; see `estimate`."""

    method: Method
    k: tuple[int, ...]
    ci_prob: float
    ci_kind: CIKind
    engine: Engine
    estimator: Estimator
    pool_agents: bool
    pool_tasks: bool
    random_seed: int


def estimate(
    outcomes: xr.Dataset,
    *,
    method: Method = "hierarchical",
    k: int | Iterable[int] = (1, 3, 5),
    ci_prob: float = 0.95,
    ci_kind: CIKind = "eti",
    engine: Engine = "auto",
    estimator: Estimator = "unbiased",
    pool_agents: bool = True,
    pool_tasks: bool = False,
    random_seed: int = 0,
) -> Estimate:
    """Estimate pass@k and pass^k with intervals.

    Parameters
    ----------
    outcomes : xarray.Dataset
        Counts, from `count_outcomes` or `outcomes_from_table`.
    method : {"hierarchical", "conjugate", "frequentist"}
        ``hierarchical``: partial pooling across tasks and agents (Beta-Binomial). ``conjugate``: every task on its
        own, p | c, n ~ Beta(1 + c, 1 + n - c). ``frequentist``: no model; see `estimator`.
    k : int or iterable of int
        Numbers of attempts, ≥ 1. Others can be asked for later.
    ci_prob : float
        Probability of the intervals, strictly between 0 and 1.
    ci_kind : {"eti", "hdi"}
        Equal-tailed or highest-density (narrowest) intervals. The frequentist method has "eti" only.
    engine : {"auto", "pymc"}
        What computes the hierarchical posterior. ``auto`` is ``pymc``; the other methods need none.
    estimator : {"unbiased", "plugin"}
        For the frequentist method: 1 - C(n-c,k)/C(n,k) and C(c,k)/C(n,k) per task, or the pooled rate put into the
        formulas.
    pool_agents : bool
        For the hierarchical method: agents share strength.
    pool_tasks : bool
        For the conjugate method: one success probability per agent.
    random_seed : int
        ≥ 0. Same outcomes and seed, same numbers.

    Returns
    -------
    Estimate

    Raises
    ------
    InvalidArgument
        If an argument is outside what is allowed.
    OutcomesError
        If `outcomes` is not valid.

    Examples
    --------
    >>> import pandas as pd
    >>> from agentic_bayes import estimate, outcomes_from_table
    >>> table = pd.DataFrame({"task": ["t"], "successes": [7], "trials": [10]})
    >>> est = estimate(outcomes_from_table(table), method="conjugate", k=3)
    >>> est.summary().query("estimand == 'task' and metric == 'pass_pow_k'")[["mean", "lower", "upper"]].round(3)
           mean  lower  upper
    3      0.33  0.059  0.707
    """
    settings = Settings(
        method=_choice("method", method, get_args(Method)),
        k=_check_ks(k),
        ci_prob=numerics.check_probability(ci_prob, "ci_prob", open_ends=True),
        ci_kind=_choice("ci_kind", ci_kind, get_args(CIKind)),
        engine=_choice("engine", engine, get_args(Engine)),
        estimator=_choice("estimator", estimator, get_args(Estimator)),
        pool_agents=_flag("pool_agents", pool_agents),
        pool_tasks=_flag("pool_tasks", pool_tasks),
        random_seed=_check_seed(random_seed),
    )
    if method == "frequentist" and ci_kind == "hdi":
        raise InvalidArgument("ci_kind must be 'eti' for the frequentist method (it has no density), got 'hdi'")
    checked = check_outcomes(outcomes)
    if settings.method != "hierarchical":
        return Estimate(checked, settings)
    from agentic_bayes.estimation import mcmc

    fit = mcmc.fit(checked, pool_agents=settings.pool_agents, random_seed=settings.random_seed)
    return Estimate(checked, settings, draws=fit.posterior, sample_stats=fit.sample_stats, diagnostics=fit.diagnostics)


def _choice(name: str, value: Any, allowed: tuple[str, ...]) -> Any:
    if value not in allowed:
        raise UnknownName(name, value, allowed)
    return value


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgument(f"{name} must be True or False, got {value!r}")
    return value


def _check_ks(k: object) -> tuple[int, ...]:
    if isinstance(k, str) or not isinstance(k, Iterable):
        return (numerics.check_k(k),)
    ks = sorted({numerics.check_k(value) for value in k})
    if not ks:
        raise InvalidArgument("k must hold at least one integer ≥ 1, got none")
    return tuple(ks)


def _check_seed(seed: object) -> int:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**63:
        raise InvalidArgument(f"random_seed must be an integer ≥ 0, got {seed!r}")
    return int(seed)


def installed_versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


@dataclass(frozen=True, repr=False)
class Estimate:
    """Estimates of pass@k and pass^k for every agent, with what is needed to trust and reproduce them.

    Attributes
    ----------
    outcomes : xarray.Dataset
        The counts.
    settings : Settings
        How it was asked for.
    draws, sample_stats : xarray.Dataset or None
        The sampler's draws of ``mu`` and ``rho``, dims (chain, draw, agent), and its account of them.
    diagnostics : Diagnostics or None
        Whether the sampler's draws may be trusted; None where nothing was sampled.
    versions : dict
        Of Python and the packages that made it.
    """

    outcomes: xr.Dataset
    settings: Settings
    draws: xr.Dataset | None = None
    sample_stats: xr.Dataset | None = None
    diagnostics: Diagnostics | None = None
    versions: dict[str, str] = field(default_factory=installed_versions)
    counts: Counts = field(init=False)
    posterior: Posterior = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", Counts.of(self.outcomes))
        object.__setattr__(self, "posterior", self._posterior())

    def _posterior(self) -> Posterior:
        s = self.settings
        match s.method:
            case "frequentist":
                return FrequentistEstimate(self.counts, s.ci_prob, s.estimator)
            case "conjugate":
                return ConjugatePosterior(self.counts, s.ci_prob, s.ci_kind, s.random_seed, s.pool_tasks)
            case "hierarchical":
                if self.draws is None:
                    raise EstimateError("a hierarchical estimate needs draws of mu and rho")
                return HierarchicalPosterior(
                    self.counts,
                    s.ci_prob,
                    s.ci_kind,
                    s.random_seed,
                    self.draws["mu"].transpose("chain", "draw", "agent").values,
                    self.draws["rho"].transpose("chain", "draw", "agent").values,
                )
            case _:
                assert_never(s.method)

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents, in natural order."""
        return self.counts.agents

    def agent_index(self, agent: str | None) -> int:
        """Position of an agent; None is allowed where there is only one.

        Raises
        ------
        UnknownName
            If there is no such agent; the message names the nearest.
        InvalidArgument
            If None is given and there are several.
        """
        if agent is None:
            if len(self.agents) == 1:
                return 0
            raise InvalidArgument(f"say which agent: {', '.join(map(repr, self.agents))}")
        if agent not in self.agents:
            raise UnknownName("agent", agent, self.agents)
        return self.agents.index(agent)

    def with_k(self, k: int | Iterable[int]) -> Self:
        """The same estimate reported at other k; nothing is fitted again.

        Parameters
        ----------
        k : int or iterable of int
            Numbers of attempts, ≥ 1.

        Returns
        -------
        Estimate
        """
        return replace(self, settings=replace(self.settings, k=_check_ks(k)))

    def metric_draws(self, agent: str | None, *, metric: Metric, k: int, estimand: Estimand = "population") -> Array:
        """Posterior draws of one metric of one agent.

        Parameters
        ----------
        agent : str or None
            Name; None where there is only one.
        metric : {"pass_at_k", "pass_pow_k"}
            Which metric.
        k : int
            Attempts, ≥ 1; need not be among the estimate's k.
        estimand : {"population", "tasks"}
            A new task of this kind, or the mean over the observed tasks.

        Returns
        -------
        ndarray of float, shape (4,000,)
            Draw i of one agent belongs with draw i of another.

        Raises
        ------
        InvalidArgument, EstimateError
            If an argument is not valid, or the method does not define the estimand or has no posterior.
        """
        index = self.agent_index(agent)
        _choice("metric", metric, METRICS)
        _choice("estimand", estimand, ("population", "tasks"))
        numerics.check_k(k)
        if estimand not in self.posterior.estimands:
            defined = [name for name in self.posterior.estimands if name != "task"]
            raise EstimateError(
                f"estimand {estimand!r} is not defined by method {self.settings.method!r}; defined: {defined}"
            )
        if estimand == "tasks" and not self.counts.scored[index].any():
            raise EstimateError(
                f"agent {self.agents[index]!r} has no scored trial, so no observed tasks to average over"
            )
        return self.posterior.draws(index, estimand, metric, k)

    def flags(self, agent: str, *, estimand: Estimand, k: int) -> tuple[str, ...]:
        """What makes a number of this agent doubtful.

        Parameters
        ----------
        agent : str
            Name.
        estimand : {"population", "tasks", "task"}
            Of the number.
        k : int
            Of the number.

        Returns
        -------
        tuple of str
            ``not_converged``: the sampler's diagnostics failed. ``no_data``: nothing was scored.
            ``prior_driven``: no task was tried twice, so the spread between tasks is the prior's.
            ``extrapolated``: k exceeds every number of trials.
        """
        trials = self.counts.trials[self.agent_index(agent)]
        most = int(trials.max(initial=0))
        found = []
        if self.diagnostics is not None and not self.diagnostics.passed:
            found.append("not_converged")
        if most == 0:
            return (*found, "no_data")
        hierarchical = self.settings.method == "hierarchical"
        if hierarchical and most == 1 and (k > 1 or estimand != "population"):
            found.append("prior_driven")
        if self.settings.method != "frequentist" and k > most:
            found.append("extrapolated")
        return tuple(found)

    def summary(self, *, tasks: bool = True) -> pd.DataFrame:
        """One row per agent × estimand × metric × k.

        Parameters
        ----------
        tasks : bool
            Whether to include the rows of single tasks.

        Returns
        -------
        pandas.DataFrame
            Columns agent, task (empty but for estimand ``task``), estimand, metric, k, mean, sd, median, lower,
            upper, ci_kind, ci_prob, method, estimator, unit, indicator, n_tasks (tasks that inform the number),
            flags, note. NaN is undefined, and the note says why. For the frequentist method sd is the standard
            error.
        """
        return _table(self, list(self._rows(self.posterior, self.settings, tasks=tasks)))

    def baseline(self, *, tasks: bool = False) -> pd.DataFrame:
        """The same columns from the frequentist method: `unbiased` and `plugin` rows.

        Parameters
        ----------
        tasks : bool
            Whether to include the rows of single tasks.

        Returns
        -------
        pandas.DataFrame
        """
        rows: list[dict[str, Any]] = []
        for estimator in get_args(Estimator):
            settings = replace(self.settings, method="frequentist", estimator=estimator, ci_kind="eti")
            other = Estimate(self.outcomes, settings, versions=self.versions)
            rows += other._rows(other.posterior, settings, tasks=tasks)
        return _table(self, rows)

    def _rows(self, posterior: Posterior, settings: Settings, *, tasks: bool) -> Iterator[dict[str, Any]]:
        common = {
            "ci_kind": settings.ci_kind,
            "ci_prob": settings.ci_prob,
            "method": settings.method,
            "estimator": settings.estimator if settings.method == "frequentist" else "posterior",
            "unit": str(self.outcomes.attrs.get("unit", "")),
            "indicator": str(self.outcomes.attrs.get("indicator", "")),
        }
        for index, agent in enumerate(self.agents):
            for estimand in posterior.estimands:
                if estimand == "task" and not tasks:
                    continue
                for metric in METRICS:
                    for k in settings.k:
                        key = {"agent": agent, "estimand": estimand, "metric": metric, "k": k} | common
                        if estimand == "task":
                            yield from self._task_rows(index, posterior.per_task(index, metric, k), key)
                        else:
                            stats = posterior.aggregate(index, estimand, metric, k)
                            yield key | {
                                "task": "",
                                **{name: getattr(stats, name) for name in STATISTICS},
                                "n_tasks": stats.n_tasks,
                                "flags": ", ".join(self.flags(agent, estimand=estimand, k=k)),
                                "note": "; ".join(filter(None, (stats.note, self._unscored_note(index)))),
                            }

    def _unscored_note(self, agent: int) -> str:
        empty = int((self.counts.attempted[agent] & ~self.counts.scored[agent]).sum())
        if not empty or not self.counts.scored[agent].any():
            return ""
        return f"{plural(empty, 'task')} with nothing scored left out"

    def _task_rows(self, agent: int, stats: Stats, key: dict[str, Any]) -> Iterator[dict[str, Any]]:
        trials = self.counts.trials[agent]
        repeated = self.flags(key["agent"], estimand="task", k=key["k"])
        general = [flag for flag in repeated if flag in ("not_converged", "prior_driven")]
        for j in np.flatnonzero(self.counts.attempted[agent]):
            flags, note = list(general), ""
            if trials[j] == 0:
                flags.append("no_data")
                note = "nothing was scored"
            elif key["k"] > trials[j]:
                if self.settings.method == "frequentist" or np.isnan(stats.mean[j]):
                    note = f"{plural(int(trials[j]), 'trial')}, fewer than {key['k']}"
                else:
                    flags.append("extrapolated")
            yield key | {
                "task": self.counts.tasks[j],
                **{name: float(getattr(stats, name)[j]) for name in STATISTICS},
                "n_tasks": 1,
                "flags": ", ".join(flags),
                "note": note,
            }

    def to_arviz(self, *, tasks: bool = True) -> Any:
        """Draws for ArviZ: `InferenceData` (ArviZ 0.x) or `DataTree` (1.x).

        Parameters
        ----------
        tasks : bool
            Whether to make ``p`` (agent, task); refused beyond 10^7 values.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            Group ``posterior`` with ``pass_at_k``, ``pass_pow_k`` (agent, estimand, k), ``p`` (agent, task) and, for
            the hierarchical method, ``mu``, ``rho`` (agent); 4 chains × 1,000 draws. Group ``observed_data`` with the
            counts; ``sample_stats`` where a sampler ran.

        Raises
        ------
        EstimateError
            For the frequentist method, or when ``p`` would be too large.
        """
        import xarray as xr

        n_agents, n_tasks = self.counts.successes.shape
        if tasks and CHAINS * DRAWS * n_agents * n_tasks > LARGEST_P:
            raise EstimateError(
                f"p would have {CHAINS * DRAWS * n_agents * n_tasks:,} values (at most {LARGEST_P:,}): "
                "use to_arviz(tasks=False)"
            )
        estimands = [e for e in self.posterior.estimands if e != "task"]
        dims = ("chain", "draw", "agent")
        shape = (CHAINS, DRAWS)
        variables: dict[str, Any] = {}
        for metric in METRICS:
            values = np.full((*shape, n_agents, len(estimands), len(self.settings.k)), np.nan)
            for a in range(n_agents):
                for e, estimand in enumerate(estimands):
                    if estimand == "tasks" and not self.counts.scored[a].any():
                        continue
                    for i, k in enumerate(self.settings.k):
                        values[:, :, a, e, i] = self.posterior.draws(a, estimand, metric, k).reshape(shape)
            variables[metric] = ((*dims, "estimand", "k"), values)
        if self.draws is not None:
            variables |= {name: self.draws[name].variable for name in ("mu", "rho")}
        if tasks:
            p = np.stack([self.posterior.task_draws(a).reshape(*shape, n_tasks) for a in range(n_agents)], axis=2)
            variables["p"] = ((*dims, "task"), p)
        coords = {
            "chain": np.arange(CHAINS),
            "draw": np.arange(DRAWS),
            "agent": list(self.agents),
            "estimand": estimands,
            "k": list(self.settings.k),
        }
        if tasks:
            coords["task"] = list(self.counts.tasks)
        groups = {"posterior": xr.Dataset(variables, coords=coords), "observed_data": self.outcomes}
        if self.sample_stats is not None:
            groups["sample_stats"] = self.sample_stats
        return _arviz.from_groups(groups, {"agentic_bayes": json.dumps(self._record())})

    def _record(self) -> dict[str, Any]:
        """Settings, versions and diagnostics, as plain JSON values."""
        return {
            "format": FORMAT,
            "settings": asdict(self.settings),
            "versions": self.versions,
            "diagnostics": None if self.diagnostics is None else self.diagnostics.as_dict(),
            "not_converged": self.diagnostics is not None and not self.diagnostics.passed,
        }

    def save(self, path: str | Path) -> Path:
        """Write the estimate as netCDF: counts, draws, settings, versions, seed and diagnostics.

        Parameters
        ----------
        path : path
            Where to; usually ends in ``.nc``. It is written beside its place and then moved there.

        Returns
        -------
        pathlib.Path
        """
        import xarray as xr

        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = target.with_name(f".{target.name}.writing")
        try:
            xr.Dataset(attrs={"agentic_bayes": json.dumps(self._record())}).to_netcdf(scratch, engine="h5netcdf")
            groups = {"outcomes": self.outcomes, "draws": self.draws, "sample_stats": self.sample_stats}
            for name, ds in groups.items():
                if ds is not None:
                    ds.to_netcdf(scratch, group=name, mode="a", engine="h5netcdf")
            scratch.replace(target)
        finally:
            scratch.unlink(missing_ok=True)
        return target

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an estimate that `save` wrote, on either stack.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Estimate

        Raises
        ------
        EstimateError
            If it is not such a file.
        """
        import xarray as xr

        source = Path(path)
        if not source.is_file():
            raise EstimateError(no_such_file(source))
        try:
            with xr.open_dataset(source, engine="h5netcdf") as root:
                record = json.loads(root.attrs["agentic_bayes"])
            found: dict[str, Any] = {"sample_stats": None, "draws": None}
            for name in ("outcomes", "draws", "sample_stats"):
                if name == "outcomes" or record["diagnostics"] is not None:
                    with xr.open_dataset(source, engine="h5netcdf", group=name) as ds:
                        found[name] = ds.load()
        except (OSError, KeyError, ValueError) as error:
            raise EstimateError(f"{source}: not an estimate saved by agentic_bayes ({error})") from None
        if record["format"] != FORMAT:
            raise EstimateError(f"{source}: has format {record['format']!r}, this version reads {FORMAT!r}")
        settings = record["settings"]
        diagnostics = record["diagnostics"]
        return cls(
            check_outcomes(found["outcomes"]),
            Settings(**{**settings, "k": tuple(settings["k"])}),
            draws=found["draws"],
            sample_stats=found["sample_stats"],
            diagnostics=None if diagnostics is None else Diagnostics(**diagnostics),
            versions=record["versions"],
        )

    def __repr__(self) -> str:
        s, n = self.settings, self.counts
        state = "" if self.diagnostics is None else f", {'converged' if self.diagnostics.passed else 'NOT CONVERGED'}"
        return (
            f"Estimate: {s.method}, {plural(len(n.agents), 'agent')}, {plural(len(n.tasks), 'task')}, "
            f"{int(n.trials.sum()):,} scored trials, {int(n.unscored.sum()):,} unscored, "
            f"k = {', '.join(map(str, s.k))}{state}"
        )

    def _repr_html_(self) -> str:
        rows = [
            [
                row["agent"],
                row["estimand"],
                metric_name(row["metric"], row["k"]),
                format_number(row["mean"]),
                format_interval(row["lower"], row["upper"]),
                str(row["n_tasks"]),
                "; ".join(filter(None, (row["flags"], row["note"]))),
            ]
            for row in self._rows(self.posterior, self.settings, tasks=False)
        ]
        interval = f"{self.settings.ci_prob * 100:.4g} % {self.settings.ci_kind}"
        header = ["agent", "estimand", "metric", "mean", interval, "tasks", "notes"]
        return html_table(header, rows, caption=repr(self))


FORMAT = "agentic-bayes-estimate/1"
COLUMNS = (
    *("agent", "task", "estimand", "metric", "k", *STATISTICS, "ci_kind", "ci_prob"),
    *("method", "estimator", "unit", "indicator", "n_tasks", "flags", "note"),
)


def _table(estimate: Estimate, rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=list(COLUMNS))
