"""`estimate`: counts in, an `Estimate` of pass@k and pass^k out, beside the frequentist baseline."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, assert_never, get_args

import numpy as np

from agentic_bayes.checks import check_attempts, check_choice, check_ks, check_probability, no_such_file
from agentic_bayes.errors import EstimateError, InvalidArgument, UnknownName
from agentic_bayes.estimation.engines.diagnostics import Diagnostics, ImportanceDiagnostics, from_record
from agentic_bayes.estimation.engines.fitting import choose_method, sample
from agentic_bayes.estimation.engines.grid.exact import ExactPosterior
from agentic_bayes.estimation.engines.grid.quadrature import GridFit, fit_agents
from agentic_bayes.estimation.io import stacks as _arviz
from agentic_bayes.estimation.io.groups import draw_groups, hyper_draws
from agentic_bayes.estimation.io.netcdf import read_groups, write_groups
from agentic_bayes.estimation.judge_labels import read_labels
from agentic_bayes.estimation.methods.conjugate import ConjugatePosterior
from agentic_bayes.estimation.methods.crossed import CrossedPosterior
from agentic_bayes.estimation.methods.frequentist import Estimator, FrequentistEstimate
from agentic_bayes.estimation.methods.hierarchical import HierarchicalPosterior
from agentic_bayes.estimation.methods.inflated import InflatedPosterior
from agentic_bayes.estimation.methods.judged import JudgedPosterior, describe
from agentic_bayes.estimation.model_checks import ModelChecks, flag_words
from agentic_bayes.estimation.posterior import (
    STATISTICS,
    Array,
    CIKind,
    Counts,
    Estimand,
    Posterior,
    Stats,
)
from agentic_bayes.estimation.predictive import Statistic
from agentic_bayes.estimation.prior import Prior
from agentic_bayes.estimation.settings import Engine, Method, Settings
from agentic_bayes.formatting import (
    METRICS,
    MOST_ROWS,
    Metric,
    format_interval,
    format_number,
    html_block,
    indicator_words,
    interval_words,
    plural,
)
from agentic_bayes.outcomes.dataset import allowed_differences, check_outcomes, differing

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["Estimate", "estimate", "estimate_as", "installed_versions"]

PACKAGES = ("agentic-bayes", "numpy", "scipy", "xarray", "pymc", "nutpie", "arviz")


def estimate(
    outcomes: xr.Dataset,
    *,
    method: Method | Literal["auto"] = "hierarchical",
    k: int | Iterable[int] = (1, 3, 5),
    ci_prob: float = 0.95,
    ci_kind: CIKind = "eti",
    engine: Engine = "auto",
    estimator: Estimator = "unbiased",
    prior: Prior | None = None,
    pool_agents: bool | None = None,
    pool_tasks: bool = False,
    inflate: bool = False,
    judge_labels: pd.DataFrame | Mapping[str, float] | None = None,
    random_seed: int = 0,
) -> Estimate:
    """Estimate pass@k and pass^k with intervals.

    Parameters
    ----------
    outcomes : xarray.Dataset
        Counts, from `count_outcomes` or `outcomes_from_table`.
    method : {"hierarchical", "crossed", "conjugate", "frequentist", "auto"}
        ``hierarchical``: partial pooling across tasks and agents (Beta-Binomial). ``crossed``: agents that attempt the
        same tasks share the tasks' difficulty. ``conjugate``: every task on its own,
        p | c, n ~ Beta(1 + c, 1 + n - c). ``frequentist``: no model; see `estimator`. ``auto``: crossed if there are
        two agents or more and at least half of the tasks were attempted by two or more, else hierarchical; see
        `Estimate.note`.
    k : int or iterable of int
        Numbers of attempts, ≥ 1. Others can be asked for later.
    ci_prob : float
        Probability of the intervals, strictly between 0 and 1.
    ci_kind : {"eti", "hdi"}
        Equal-tailed or highest-density (narrowest) intervals. The frequentist method has "eti" only.
    engine : {"auto", "quadrature", "importance", "pymc"}
        What computes the posterior. Hierarchical: exactly and in milliseconds (``quadrature``, which ``auto`` is), or
        by NUTS (``pymc``). Crossed: by importance sampling (``importance``), or by NUTS, to which ``auto`` turns where
        importance sampling finds itself unreliable. The other methods need none.
    estimator : {"unbiased", "plugin"}
        For the frequentist method: 1 - C(n-c,k)/C(n,k) and C(c,k)/C(n,k) per task, or the pooled rate put into the
        formulas.
    prior : Prior, optional
        Priors other than the default ones.
    pool_agents : bool, optional
        Whether agents share strength. Default: True for ``hierarchical``, False for ``crossed``, where it makes
        comparisons of two agents weak.
    pool_tasks : bool
        For the conjugate method: one success probability per agent.
    inflate : bool
        For the hierarchical method: tasks that always or never pass have probabilities of their own (point masses at
        p = 0 and p = 1 beside the Beta distribution, weights ~ Dirichlet(1, 1, 4)).
    judge_labels : pandas.DataFrame or mapping, optional
        What humans said of attempts that the judge judged: columns ``judge`` and ``human`` (0/1) and, if known,
        ``agent``, ``task`` and ``trial``. Sensitivity and specificity are then estimated, and their uncertainty is part
        of every number; labelled attempts enter as true outcomes. Fixed rates are given as
        ``{"sensitivity": 0.95, "specificity": 0.6}``. For the hierarchical method; agents then do not share strength.
        `Estimate.uncorrected` is the same without.
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
    3  0.33  0.059  0.707
    """
    checked, note = check_outcomes(outcomes), ""
    if method == "auto":
        method, note = choose_method(Counts.of(checked))
    judge = None if judge_labels is None else read_labels(judge_labels, Counts.of(checked))
    if judge is not None and "judge" in differing(checked):
        raise InvalidArgument(f"judge_labels need counts of one judge, these have {checked.attrs['judge']}")
    shares = method == "hierarchical" and (judge is None or judge.perfect)
    settings = Settings(
        method=method,
        k=check_ks(k),
        ci_prob=ci_prob,
        ci_kind=ci_kind,
        engine=engine,
        estimator=estimator,
        prior=Prior() if prior is None else prior,
        pool_agents=shares if pool_agents is None else pool_agents,
        pool_tasks=pool_tasks,
        inflate=inflate,
        random_seed=random_seed,
        judge=judge,
    )
    return estimate_as(checked, settings, note=note)


def estimate_as(outcomes: xr.Dataset, settings: Settings, *, note: str = "") -> Estimate:
    """Estimate with settings that are checked already, as those of another estimate are."""
    if settings.method != "crossed" and settings.engine != "pymc":
        return Estimate(outcomes, settings, note=note)
    found = sample(outcomes, settings)
    return Estimate(
        outcomes,
        settings,
        draws=found.draws,
        sample_stats=found.sample_stats,
        diagnostics=found.diagnostics,
        note="; ".join(filter(None, (note, found.note))),
    )


def installed_versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


@dataclass(frozen=True, repr=False, eq=False)
class Estimate:
    """Estimates of pass@k and pass^k for every agent, with what is needed to trust and reproduce them.

    Attributes
    ----------
    outcomes : xarray.Dataset
        The counts.
    settings : Settings
        How it was asked for.
    draws, sample_stats : xarray.Dataset or None
        A sampler's draws of ``mu`` or ``theta`` and of ``rho``, dims (chain, draw, agent), and its account of them;
        None where the posterior is exact.
    diagnostics : Diagnostics, ImportanceDiagnostics or None
        Whether the sampler's draws may be trusted; None where nothing was sampled.
    note : str
        Why this method or engine was taken, where that was left to the program.
    versions : dict
        Of Python and the packages that made it.
    grids : GridFit or None
        The exact engine's posterior grids; made where they are needed and not given.
    """

    outcomes: xr.Dataset
    settings: Settings
    draws: xr.Dataset | None = None
    sample_stats: xr.Dataset | None = None
    diagnostics: Diagnostics | ImportanceDiagnostics | None = None
    note: str = ""
    versions: dict[str, str] = field(default_factory=installed_versions)
    grids: GridFit | None = None
    counts: Counts = field(init=False)
    posterior: Posterior = field(init=False)
    checks: ModelChecks = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", Counts.of(self.outcomes))
        object.__setattr__(self, "posterior", self._posterior())
        checks = ModelChecks(self.posterior, self.counts, self.settings.random_seed, self.settings.k)
        object.__setattr__(self, "checks", checks)

    def _posterior(self) -> Posterior:
        s = self.settings
        match s.method:
            case "frequentist":
                return FrequentistEstimate(self.counts, s.ci_prob, s.estimator)
            case "conjugate":
                return ConjugatePosterior(
                    self.counts, s.ci_prob, s.ci_kind, s.random_seed, s.pool_tasks, s.beta_prior()
                )
            case "hierarchical" if self.draws is not None:
                mu, rho = (self.draws[name].transpose("chain", "draw", "agent").values for name in ("mu", "rho"))
                return HierarchicalPosterior(self.counts, s.ci_prob, s.ci_kind, s.random_seed, mu, rho)
            case "hierarchical" if s.judge is not None and not s.judge.perfect:
                wanted = tuple((metric, k) for metric in METRICS for k in s.k)
                how = s.ci_prob, s.ci_kind, s.random_seed
                return JudgedPosterior.of(self.counts, s.judge, s.prior or Prior(), *how, wanted)
            case "hierarchical":
                grids = self.grids
                if grids is None:
                    prior = s.prior or Prior()
                    grids = fit_agents(self.counts, pool_agents=s.pool_agents, prior=prior, inflate=s.inflate)
                    object.__setattr__(self, "grids", grids)
                wanted = tuple((metric, k) for metric in METRICS for k in s.k)
                kind = InflatedPosterior if s.inflate else ExactPosterior
                return kind(self.counts, s.ci_prob, s.ci_kind, s.random_seed, grids, wanted)
            case "crossed":
                if self.draws is None:
                    raise EstimateError("a crossed estimate needs draws of theta, sigma and rho")
                flat = self.draws.stack(sample=("chain", "draw"), create_index=False).transpose("sample", ...)
                theta, sigma, rho = (flat[name].values for name in ("theta", "sigma", "rho"))
                return CrossedPosterior(self.counts, s.ci_prob, s.ci_kind, s.random_seed, theta, sigma, rho)
            case _:
                assert_never(s.method)

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents, in natural order."""
        return self.counts.agents

    @property
    def differences(self) -> str:
        """How combined outcomes differ although they were allowed to be combined, in words, or empty."""
        return allowed_differences(self.outcomes)

    @property
    def uncorrected(self) -> Estimate:
        """The same estimate with the judge's verdicts taken as they are; itself where no labels were given."""
        if self.settings.judge is None:
            return self
        return Estimate(self.outcomes, replace(self.settings, judge=None), note=self.note, versions=self.versions)

    def judge_error(self) -> pd.DataFrame:
        """What is known of the judge's error rates.

        Returns
        -------
        pandas.DataFrame
            Rows sensitivity (probability that a right attempt is judged right) and specificity (that a wrong one is
            judged wrong); columns rate, mean, sd, median, lower, upper, ci_kind (equal-tailed), ci_prob, n_labels,
            judge_calibration ("estimated" or "fixed").

        Raises
        ------
        EstimateError
            If the estimate was made without `judge_labels`.
        """
        import pandas as pd

        judge = self.settings.judge
        if judge is None:
            raise EstimateError(
                "this estimate was made without judge_labels: it takes the judge's verdicts as they are"
            )
        if isinstance(self.posterior, JudgedPosterior):
            stats = self.posterior.rate_stats()
        else:
            stats = (Stats(1.0, 0.0, 1.0, 1.0, 1.0),) * 2
        rows = [
            {
                "rate": rate,
                **{name: float(getattr(one, name)) for name in STATISTICS},
                "ci_kind": "eti",
                "ci_prob": self.settings.ci_prob,
                "n_labels": judge.n_labels,
                "judge_calibration": judge.calibration,
            }
            for rate, one in zip(("sensitivity", "specificity"), stats, strict=True)
        ]
        return pd.DataFrame(rows)

    @property
    def judge_note(self) -> str:
        """How the judge's errors were taken into account, in words, or empty."""
        judge = self.settings.judge
        if judge is None:
            return ""
        return describe(self.posterior if isinstance(self.posterior, JudgedPosterior) else None, judge)

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
            names = ", ".join(map(repr, self.agents))
            raise InvalidArgument(f"say which agent, such as agent={self.agents[0]!r}: there are {names}")
        if not isinstance(agent, str) or agent not in self.agents:
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
        return replace(self, settings=replace(self.settings, k=check_ks(k)))

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
        index = self._check_question(agent, metric, k, estimand)
        return self.posterior.draws(index, estimand, metric, k)

    def _check_question(self, agent: str | None, metric: Metric, k: int, estimand: Estimand) -> int:
        """Index of an agent, once all that is asked of it is found to be defined."""
        index = self.agent_index(agent)
        check_choice("metric", metric, METRICS)
        check_choice("estimand", estimand, ("population", "tasks"))
        check_attempts(k)
        if estimand not in self.posterior.estimands:
            defined = [name for name in self.posterior.estimands if name != "task"]
            raise EstimateError(
                f"estimand {estimand!r} is not defined by method {self.settings.method!r}; defined: {defined}"
            )
        if estimand == "tasks" and not self.counts.scored[index].any():
            raise EstimateError(
                f"agent {self.agents[index]!r} has no scored trial, so no observed tasks to average over"
            )
        return index

    def prob_at_least(
        self, agent: str | None, value: float, *, metric: Metric, k: int, estimand: Estimand = "population"
    ) -> float:
        """Posterior probability that a metric of one agent is at least `value`.

        Parameters
        ----------
        agent : str or None
            Name; None where there is only one.
        value : float
            In [0, 1].
        metric : {"pass_at_k", "pass_pow_k"}
            Which metric.
        k : int
            Attempts, ≥ 1; need not be among the estimate's k.
        estimand : {"population", "tasks"}
            A new task of this kind, or the mean over the observed tasks.

        Returns
        -------
        float
            Without Monte-Carlo error where the engine is exact and the estimand is ``population``, or where the
            conjugate method has one Beta distribution (one scored task, or pooled tasks); else the share of 4,000
            draws.

        Raises
        ------
        InvalidArgument, EstimateError
            As `metric_draws` does.
        """
        bar = check_probability(value, "value")
        index = self._check_question(agent, metric, k, estimand)
        if estimand == "population" and isinstance(self.posterior, ExactPosterior):
            return self.posterior.at_least(index, metric, k, bar)
        if isinstance(self.posterior, ConjugatePosterior):
            exact = self.posterior.at_least(index, metric, k, bar)
            if exact is not None:
                return exact
        return float(np.mean(self.posterior.draws(index, estimand, metric, k) >= bar))

    def flags(self, agent: str, *, estimand: Estimand, k: int, metric: Metric | None = None) -> tuple[str, ...]:
        """What makes a number of this agent doubtful.

        Parameters
        ----------
        agent : str
            Name.
        estimand : {"population", "tasks", "task"}
            Of the number.
        k : int
            Of the number.
        metric : {"pass_at_k", "pass_pow_k"}, optional
            Of the number; without it, what makes either of them doubtful.

        Returns
        -------
        tuple of str
            ``not_converged``: the sampler's diagnostics failed. ``no_data``: nothing was scored.
            ``prior_driven``: no task was tried twice, so the spread between tasks is the prior's.
            ``extrapolated``: k exceeds every number of trials.
            ``misfit``: counts replicated from the model do not look like the agent's; see `predictive_check`.
            ``chance_level_judge``: the labels allow that the judge is no better than chance.
            ``disagrees``: the model's mean over the observed tasks is more than two standard errors from the
            unbiased estimate of the same quantity (estimand ``tasks``).
        """
        index = self.agent_index(agent)
        check_choice("estimand", estimand, get_args(Estimand))
        most = int(self.counts.trials[index].max(initial=0))
        found = []
        if self.diagnostics is not None and not self.diagnostics.passed:
            found.append("not_converged")
        if isinstance(self.posterior, JudgedPosterior) and self.posterior.at_chance:
            found.append("chance_level_judge")
        if most == 0:
            return (*found, "no_data")
        hierarchical = self.settings.method in ("hierarchical", "crossed")
        if hierarchical and most == 1 and (k > 1 or estimand != "population"):
            found.append("prior_driven")
        if k > most and (self.settings.method != "frequentist" or self.settings.estimator == "plugin"):
            found.append("extrapolated")
        return (*found, *self.checks.flags(index, estimand, metric, k))

    def predictive_check(self) -> pd.DataFrame:
        """Whether counts replicated from the fitted model look like the data, agent by agent.

        Returns
        -------
        pandas.DataFrame
            Columns agent, statistic, observed, expected, p, note; three rows per agent. ``histogram``: distance of
            the histogram of successes from the one that the model expects. ``all_pass``, ``never_pass``: share of the
            tasks of which all, or no, trials passed. p is the probability that replicated data have a value at least
            as large; below .01 (for the shares also above .99) the agent's numbers are flagged ``misfit``. Only tasks
            tried twice or more enter; with fewer than 10 of them nothing is checked, and the note says so.

        Raises
        ------
        EstimateError
            If the method has no model of how tasks differ.

        Examples
        --------
        >>> import pandas as pd
        >>> from agentic_bayes import estimate, outcomes_from_table
        >>> counts = [c for c, size in enumerate((14, 12, 10, 4, 10)) for _ in range(size)]
        >>> table = pd.DataFrame({"task": range(50), "successes": counts, "trials": 4})
        >>> found = estimate(outcomes_from_table(table)).predictive_check()
        >>> found[["statistic", "observed"]].round(2).to_dict("list")
        {'statistic': ['histogram', 'all_pass', 'never_pass'], 'observed': [1.4, 0.2, 0.28]}
        """
        import pandas as pd

        if self.settings.method in ("frequentist", "conjugate"):
            raise EstimateError(f"method {self.settings.method!r} has no model of how tasks differ: nothing to check")
        rows: list[tuple[Any, ...]] = []
        for index, agent in enumerate(self.agents):
            checks = self.checks.predictive(index)
            rows += [(agent, one.statistic, one.observed, one.expected, one.p, "") for one in checks]
            if not checks:
                nan, note = float("nan"), self.checks.not_checked(index)
                rows += [(agent, name, nan, nan, nan, note) for name in get_args(Statistic)]
        return pd.DataFrame(rows, columns=["agent", "statistic", "observed", "expected", "p", "note"])

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
            flags, note; with `judge_labels` also judge_calibration and n_labels. NaN is undefined, and the note says
            why. For the frequentist method sd is the standard error.
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
            plain: dict[str, Any] = {"method": "frequentist", "ci_kind": "eti", "engine": "auto", "prior": None}
            plain |= {"pool_agents": False, "pool_tasks": False, "inflate": False, "judge": None}
            settings = replace(self.settings, estimator=estimator, **plain)
            other = Estimate(self.outcomes, settings, versions=self.versions)
            rows += other._rows(other.posterior, settings, tasks=tasks)
        if self.settings.judge is not None:  # the baseline takes the judge's verdicts as they are
            rows = [{**row, "judge_calibration": "none", "n_labels": 0} for row in rows]
        return _table(self, rows)

    def _rows(self, posterior: Posterior, settings: Settings, *, tasks: bool) -> Iterator[dict[str, Any]]:
        common: dict[str, Any] = {
            "ci_kind": settings.ci_kind,
            "ci_prob": settings.ci_prob,
            "method": settings.method,
            "estimator": settings.estimator if settings.method == "frequentist" else "posterior",
            "unit": str(self.outcomes.attrs.get("unit", "")),
            "indicator": str(self.outcomes.attrs.get("indicator", "")),
        }
        if self.settings.judge is not None:
            judge = self.settings.judge
            common |= {"judge_calibration": judge.calibration, "n_labels": judge.n_labels}
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
                            flags = self.flags(agent, estimand=estimand, k=k, metric=metric)
                            notes = [stats.note, self._unscored_note(index), self.differences]
                            if "extrapolated" in flags and estimand == "population":
                                notes.append(self._bounds_note(index, metric, k))
                            yield key | {
                                "task": "",
                                **{name: getattr(stats, name) for name in STATISTICS},
                                "n_tasks": stats.n_tasks,
                                "flags": ", ".join(flags),
                                "note": "; ".join(filter(None, notes)),
                            }

    def _bounds_note(self, agent: int, metric: Metric, k: int) -> str:
        """How far the data alone reach where the model extrapolates; the plug-in formula has no model."""
        if self.settings.method == "frequentist":
            return ""
        return self.checks.bounds_note(agent, metric, k, self.settings.ci_prob)

    def _unscored_note(self, agent: int) -> str:
        empty = int((self.counts.attempted[agent] & ~self.counts.scored[agent]).sum())
        if not empty or not self.counts.scored[agent].any():
            return ""
        return f"{plural(empty, 'task')} with nothing scored left out"

    def _task_rows(self, agent: int, stats: Stats, key: dict[str, Any]) -> Iterator[dict[str, Any]]:
        trials = self.counts.trials[agent]
        repeated = self.flags(key["agent"], estimand="task", k=key["k"])
        general = [flag for flag in repeated if flag in ("not_converged", "prior_driven", "misfit")]
        for j in np.flatnonzero(self.counts.attempted[agent]):
            flags, note = list(general), ""
            if trials[j] == 0:
                flags.append("no_data")
                note = "nothing was scored"
            elif key["k"] > trials[j]:
                if np.isnan(stats.mean[j]):
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
            Whether to make what has a value per task and draw; refused beyond 10^7 values.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            Group ``posterior`` with ``pass_at_k``, ``pass_pow_k`` (agent, estimand, k), ``p`` (agent, task) and, for
            the hierarchical method, ``mu``, ``rho`` (agent); 4 chains × 1,000 draws. Group ``observed_data`` with the
            counts; ``sample_stats`` where a sampler ran. With `tasks` also ``log_likelihood`` (``successes`` per scored
            cell) and ``log_prior``, for ``az.loo``, ``az.compare`` and prior sensitivity, where tasks share something
            (not for conjugate estimates of separate tasks).

        Raises
        ------
        EstimateError
            For the frequentist method, or when ``p`` would be too large.
        """
        s, hyper = self.settings, self._hyper_draws()
        groups = draw_groups(self.posterior, self.counts, s.k, hyper, s.prior, tasks=tasks)
        groups["observed_data"] = self.outcomes
        if self.sample_stats is not None:
            groups["sample_stats"] = self.sample_stats
        return _arviz.from_groups(groups, {"agentic_bayes": json.dumps(self._record())})

    def _hyper_draws(self) -> xr.Dataset | None:
        return hyper_draws(self.posterior, self.counts, self.draws)

    def _record(self) -> dict[str, Any]:
        """Settings, versions and diagnostics, as plain JSON values."""
        return {
            "settings": self.settings.record(),
            "versions": self.versions,
            "note": self.note,
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
        if self.settings.inflate and self.settings.prior is not None and self.settings.prior.is_function:
            raise EstimateError(
                "an inflated estimate whose prior is a function cannot be saved: the function is not kept"
            )
        groups = {"outcomes": self.outcomes, "draws": self._hyper_draws(), "sample_stats": self.sample_stats}
        return write_groups(Path(path), self._record(), groups)

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
        source = Path(path)
        if not source.is_file():
            raise EstimateError(no_such_file(source))
        try:
            record, groups = read_groups(source)
            settings = Settings.from_record(record["settings"])
            # an exact posterior is made again from the counts, unless its prior was a function
            exact = record["diagnostics"] is None and settings.prior is not None
            return cls(
                check_outcomes(groups["outcomes"]),
                settings,
                draws=None if exact else groups.get("draws"),
                sample_stats=groups.get("sample_stats"),
                diagnostics=from_record(record["diagnostics"]),
                note=record["note"],
                versions=record["versions"],
            )
        except EstimateError:
            raise
        except (AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
            raise EstimateError(f"{source}: not an estimate saved by agentic_bayes ({error})") from None

    def __repr__(self) -> str:
        s, n = self.settings, self.counts
        state = "" if self.diagnostics is None else f", {'converged' if self.diagnostics.passed else 'NOT CONVERGED'}"
        return (
            f"Estimate: {s.method}, {plural(len(n.agents), 'agent')}, {plural(len(n.tasks), 'task')}, "
            f"{int(n.trials.sum()):,} scored trials, {int(n.unscored.sum()):,} unscored, "
            f"k = {', '.join(map(str, s.k))}{state}{f'; {self.judge_note}' if s.judge else ''}"
        )

    def _repr_html_(self) -> str:
        s, n, attrs = self.settings, self.counts, self.outcomes.attrs
        estimands = [name for name in self.posterior.estimands if name != "task"]
        asked = [(agent, estimand, k) for agent in self.agents for estimand in estimands for k in s.k]
        flags, remarks = dict[str, None](), dict[str, None]()

        def row(agent: str, estimand: Estimand, k: int) -> list[str]:
            index, found = self.agent_index(agent), self.flags(agent, estimand=estimand, k=k)
            both = [self.posterior.aggregate(index, estimand, metric, k) for metric in METRICS]
            flags.update(dict.fromkeys(found))
            remarks.update(dict.fromkeys([*(stats.note for stats in both), self._unscored_note(index)]))
            cells = [cell for stats in both for cell in _value_cells(stats)]
            return [agent, estimand, str(k), *cells, f"{both[0].n_tasks:,}", ", ".join(found)]

        rows = [row(*one) for one in asked[:MOST_ROWS]]
        unscored, errored = int(n.unscored.sum()), int(self.outcomes["errored"].sum())
        notes = [
            f"{plural(int(n.trials.sum()), 'scored trial')}, {int(n.successes.sum()):,} right; {unscored:,} unscored, "
            f"of them {plural(errored, 'agent error')}; unit {attrs['unit']}, indicator {indicator_words(attrs)}",
            f"{s.method}, {self._kind_of_interval()}; population is a new task of this kind, tasks the mean over "
            "those tried",
            *(self.note, self.judge_note, self.differences, *remarks),
            *flag_words(flags),
        ]
        header = ["agent", "estimand", "k", "pass@k", "interval", "pass^k", "interval", "tasks", "flags"]
        return html_block(repr(self).partition("; ")[0], header, rows, notes=notes, total=len(asked))

    def _kind_of_interval(self) -> str:
        s = self.settings
        if s.method == "frequentist":
            return f"{s.estimator} estimate with {s.ci_prob * 100:.4g} % confidence interval"
        return f"posterior mean with {interval_words(s.ci_prob, s.ci_kind)}"


def _value_cells(stats: Stats) -> tuple[str, str]:
    return format_number(float(stats.mean)), format_interval(float(stats.lower), float(stats.upper))


COLUMNS = (
    *("agent", "task", "estimand", "metric", "k", *STATISTICS, "ci_kind", "ci_prob"),
    *("method", "estimator", "unit", "indicator", "n_tasks", "flags", "note"),
)


def _table(estimate: Estimate, rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    judged = ("judge_calibration", "n_labels") if estimate.settings.judge is not None else ()
    return pd.DataFrame(rows, columns=[*COLUMNS, *judged])
