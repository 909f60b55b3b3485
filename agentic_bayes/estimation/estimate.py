"""`estimate`: counts in, an `Estimate` of pass@k and pass^k out, next to the frequentist baseline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from agentic_bayes.checks import check_choice, check_ks, check_path, check_probability, no_such_file
from agentic_bayes.errors import EstimateError, InvalidArgument, UnknownName
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.distribution import CIKind, Distribution
from agentic_bayes.estimation.engines.diagnostics import Diagnostics, ImportanceDiagnostics, from_record
from agentic_bayes.estimation.fitting import kept_draws, method_for, needs_draws, posterior_of, sample
from agentic_bayes.estimation.groups import Weights
from agentic_bayes.estimation.io import stacks
from agentic_bayes.estimation.io.netcdf import installed_versions, read_groups, write_groups
from agentic_bayes.estimation.methods.judge_labels import judge_of, judge_words, rates_table
from agentic_bayes.estimation.methods.options import Estimator, Frequentist, Method, MethodName
from agentic_bayes.estimation.model_checks import ModelChecks
from agentic_bayes.estimation.posterior import Estimand, Posterior
from agentic_bayes.estimation.sensitivity import Sensitivity, sensitivity_of
from agentic_bayes.estimation.settings import Engine, Settings
from agentic_bayes.estimation.summary import estimate_table, rows_frame, summary_rows
from agentic_bayes.formatting import Metric, json_ready, metrics_at, plural
from agentic_bayes.numerics import Array
from agentic_bayes.outcomes.dataset import allowed_differences, check_outcomes, differing
from agentic_bayes.result_table import Table, Tabular

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["Estimate", "estimate"]


def estimate(
    outcomes: xr.Dataset,
    method: Method | MethodName | Literal["auto"] = "auto",
    *,
    k: int | Iterable[int] = (1, 3, 5),
    ci_prob: float = 0.95,
    ci_kind: CIKind = "eti",
    engine: Engine = "auto",
    judge_labels: pd.DataFrame | Mapping[str, float] | None = None,
    by: str | None = None,
    weights: Weights | None = None,
    random_seed: int = 0,
) -> Estimate:
    """Estimate pass@k and pass^k with intervals.

    Parameters
    ----------
    outcomes : xarray.Dataset
        Counts, from `count_outcomes` or `outcomes_from_table`.
    method : Hierarchical, Crossed, Conjugate, Frequentist, or one of their names, or "auto"
        A name means the method with its defaults. ``hierarchical``: partial pooling across tasks and agents.
        ``crossed``: agents that attempt the same tasks share the tasks' difficulty. ``conjugate``: every task on its
        own. ``frequentist``: no model. ``auto`` (the default): crossed if there are two agents or more, at most 25, and
        two or more tried at least half of the tasks, else hierarchical; `Estimate.note` says why.
    k : int or iterable of int
        Numbers of attempts, ≥ 1, for which the tables have rows. Others can be asked for later.
    ci_prob : float
        Probability of the intervals, strictly between 0 and 1.
    ci_kind : {"eti", "hdi"}
        Equal-tailed or highest-density (narrowest) intervals. The frequentist method has "eti" only.
    engine : {"auto", "quadrature", "importance", "pymc"}
        What computes the posterior. Hierarchical: exactly and in milliseconds (``quadrature``, the default), or by NUTS
        (``pymc``). Crossed: by importance sampling (``importance``), or by NUTS, which ``auto`` falls back to where
        importance sampling finds itself unreliable. The other methods need none.
    judge_labels : pandas.DataFrame or mapping, optional
        Human labels of attempts that the judge scored: columns ``judge`` and ``human`` (0/1) and, if known, ``agent``,
        ``task`` and ``trial``. Sensitivity and specificity are then estimated (per agent if labels name agents), and
        their uncertainty is part of every number; labelled attempts enter as true outcomes. Give fixed rates as
        ``{"sensitivity": 0.95, "specificity": 0.6}``. With the hierarchical method agents then do not share strength.
        `Estimate.uncorrected` is the same without.
    by : str, optional
        Coordinate that groups the tasks (``group=`` of what read the outcomes): rows per group, and for a new group.
    weights : mapping or str, optional
        Group → share, or a coordinate of numbers: weighted rows. They weigh the posterior, never the likelihood.
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
    >>> est = estimate(outcomes_from_table(table), "conjugate", k=3)
    >>> est.summary().query("estimand == 'tasks' and metric == 'pass^3'")[["mean", "lower", "upper"]].round(3)
       mean  lower  upper
    1  0.33  0.059  0.707
    """
    checked = check_outcomes(outcomes)
    counts = Counts.of(checked)
    judge = None if judge_labels is None else judge_of(judge_labels, checked, counts)
    if judge is not None and "judge" in differing(checked.attrs):
        raise InvalidArgument(f"judge_labels need counts of one judge, these have {checked.attrs['judge']}")
    errs = None if judge is None or judge.perfect else judge
    value, note = method_for(method, counts, judge=errs, engine=engine, by=by)
    settings = Settings(
        method=value,
        k=check_ks(k),
        ci_prob=ci_prob,
        ci_kind=ci_kind,
        engine=engine,
        random_seed=random_seed,
        judge=judge,
        by=by,
        weights=weights,
    )
    return estimate_as(checked, settings, note=note)


def estimate_as(outcomes: xr.Dataset, settings: Settings, *, note: str = "") -> Estimate:
    """Estimate checked outcomes with settings that are checked already, as those of another estimate are."""
    if not needs_draws(settings):
        return Estimate(outcomes, settings, note=note)
    sampled = sample(outcomes, settings)
    return Estimate(
        outcomes,
        settings,
        draws=sampled.posterior,
        sample_stats=sampled.sample_stats,
        diagnostics=sampled.diagnostics,
        note="; ".join(filter(None, (note, sampled.note))),
    )


@dataclass(frozen=True, repr=False, eq=False)
class Estimate(Tabular):
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
    posterior : Posterior
        A distribution for each agent, estimand and metric; made from the counts unless given.
    """

    outcomes: xr.Dataset
    settings: Settings
    draws: xr.Dataset | None = None
    sample_stats: xr.Dataset | None = None
    diagnostics: Diagnostics | ImportanceDiagnostics | None = None
    note: str = ""
    versions: dict[str, str] = field(default_factory=installed_versions)
    posterior: Posterior = None  # type: ignore[assignment]
    counts: Counts = field(init=False)
    checks: ModelChecks = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", Counts.of(self.outcomes))
        posterior: Posterior | None = self.posterior
        if posterior is None:
            object.__setattr__(self, "posterior", posterior_of(self.counts, self.settings, self.draws))
        converged = self.diagnostics is None or self.diagnostics.passed
        object.__setattr__(self, "checks", ModelChecks(self.posterior, self.settings, converged))

    @property
    def method(self) -> Method:
        """The method with its options, as it was used."""
        return self.settings.method

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents, in natural order."""
        return self.counts.agents

    @property
    def differences(self) -> str:
        """How combined outcomes differ although they were allowed to be combined, in words, or empty."""
        return allowed_differences(self.outcomes.attrs)

    @property
    def uncorrected(self) -> Estimate:
        """The same estimate with the judge's verdicts taken as they are; itself where no labels were given."""
        if self.settings.judge is None:
            return self
        return self.posterior.once(
            "uncorrected", lambda: estimate_as(self.outcomes, replace(self.settings, judge=None), note=self.note)
        )

    def judge_error(self) -> pd.DataFrame:
        """What is known of the judge's error rates.

        Returns
        -------
        pandas.DataFrame
            Rows sensitivity (probability that a right attempt is judged right) and specificity (that a wrong one is
            judged wrong), for every agent where labels name agents; columns agent ("" for all), rate, mean, sd, median,
            lower, upper, ci_kind (equal-tailed), ci_prob, n_labels, judge_calibration ("estimated" or "fixed"), flags
            ("judge_rate_prior" where no label tells of the rate).

        Raises
        ------
        EstimateError
            If the estimate was made without `judge_labels`.
        """
        judge = self.settings.judge
        if judge is None:
            raise EstimateError(
                "this estimate was made without judge_labels: it takes the judge's verdicts as they are"
            )
        prob = self.settings.ci_prob
        return rates_table(judge, self.posterior.judge_rates(prob), prob)

    @property
    def judge_note(self) -> str:
        """How the judge's errors were taken into account, in words, or empty."""
        judge = self.settings.judge
        if judge is None:
            return ""
        rates = self.posterior.judge_rates(self.settings.ci_prob)
        return judge_words(judge, rates, self.agents, at_chance="chance_level_judge" in self.posterior.flags)

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
            raise InvalidArgument(f"several agents; choose one with agent=: {', '.join(map(repr, self.agents))}")
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
        settings = replace(self.settings, k=check_ks(k))
        return replace(self, settings=settings, posterior=self.posterior.with_metrics(metrics_at(settings.k)))

    def distribution(
        self, agent: str | None, *, metric: str = "pass^1", estimand: Estimand = "population"
    ) -> Distribution:
        """The posterior distribution of one metric of one agent.

        Parameters
        ----------
        agent : str or None
            Name; None where there is only one.
        metric : str
            "pass@k" or "pass^k" with a number; k need not be among the estimate's.
        estimand : {"population", "tasks"}
            A new task of this kind, or the mean over the observed tasks.

        Returns
        -------
        Distribution
            With ``mean``, ``sd``, ``quantile(q)``, ``interval(prob, kind)``, ``at_least(bar)`` and ``draws()``.

        Raises
        ------
        InvalidArgument, EstimateError
            If an argument is not valid, or the method does not define the estimand.
        """
        index, wanted = self.agent_index(agent), Metric(metric)
        check_choice("estimand", estimand, ("population", "tasks"))
        if estimand not in self.posterior.estimands:
            defined = [name for name in self.posterior.estimands if name != "task"]
            raise EstimateError(f"estimand {estimand!r} is not defined by {self.method!r}; defined: {defined}")
        if estimand == "tasks" and not self.counts.scored[index].any():
            raise EstimateError(
                f"agent {self.agents[index]!r} has no scored trial, so no observed tasks to average over"
            )
        return self.posterior.distribution(index, estimand, wanted)

    def metric_draws(self, agent: str | None, *, metric: str = "pass^1", estimand: Estimand = "population") -> Array:
        """Posterior draws of one metric of one agent.

        Parameters
        ----------
        agent, metric, estimand : as in `distribution`
            Whose number, and which.

        Returns
        -------
        ndarray of float, shape (4,000,)
            Draw i of one agent belongs with draw i of another.

        Raises
        ------
        InvalidArgument, EstimateError
            As `distribution` does, or if the method has no posterior.
        """
        return self.distribution(agent, metric=metric, estimand=estimand).draws()

    def prob_at_least(
        self, agent: str | None, value: float, *, metric: str = "pass^1", estimand: Estimand = "population"
    ) -> float:
        """Posterior probability that a metric of one agent is at least `value`.

        Parameters
        ----------
        agent, metric, estimand : as in `distribution`
            Whose number, and which.
        value : float
            In [0, 1].

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
        return self.distribution(agent, metric=metric, estimand=estimand).at_least(bar)

    def flags(self, agent: str, *, metric: str = "pass^1", estimand: Estimand = "population") -> tuple[str, ...]:
        """What makes a number of this agent doubtful.

        Parameters
        ----------
        agent : str
            Name.
        metric : str
            Of the number.
        estimand : {"population", "tasks", "task"}
            Of the number.

        Returns
        -------
        tuple of str
            ``not_converged``: the sampler's diagnostics failed. ``no_data``: nothing was scored.
            ``prior_driven``: the prior decides, and not the trials. ``fewer_tasks``: tasks are left out at this k.
            ``extrapolated``: k exceeds every number of trials.
            ``misfit``: counts replicated from the model do not look like the agent's (`predictive_check`).
            ``chance_level_judge``: the labels allow that the judge is no better than chance.
            ``judge_rate_prior``: no attempt was labelled right, or none wrong, so an error rate is its prior's.
            ``prior_sensitive``: more than a quarter of the interval if the prior's weight is halved or doubled.
            ``disagrees``: the model's mean over the observed tasks is more than two standard errors from the
            unbiased estimate of the same quantity (estimand ``tasks``).
        """
        check_choice("estimand", estimand, get_args(Estimand))
        return self.checks.flags(self.agent_index(agent), estimand, Metric(metric))

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
        {'statistic': ['histogram', 'all_pass', 'never_pass'], 'observed': [1.38, 0.2, 0.28]}
        """
        import pandas as pd

        if self.method.name in ("frequentist", "conjugate"):
            raise EstimateError(f"method {self.method.name!r} has no model of how tasks differ: nothing to check")
        return pd.DataFrame(
            self.checks.predictive_rows(), columns=["agent", "statistic", "observed", "expected", "p", "note"]
        )

    def summary(self, *, columns: Literal["short", "all"] = "short", tasks: bool = False) -> pd.DataFrame:
        """One row per agent, estimand and metric.

        Parameters
        ----------
        columns : {"short", "all"}
            ``short``: agent, estimand, metric ("pass^3"), mean, lower, upper, n_tasks (tasks that inform the number),
            flags. ``all`` adds task, k, sd, median, ci_kind, ci_prob, method, estimator, unit, indicator, note and,
            with `judge_labels`, judge_calibration and n_labels.
        tasks : bool
            Whether to add a row for each task (estimand ``task``); the short columns then include ``task``.

        Returns
        -------
        pandas.DataFrame
            NaN is undefined, and the note says why. For the frequentist method sd is the standard error.
        """
        rows = list(summary_rows(self.checks, self.outcomes.attrs, tasks=tasks, notes=columns == "all"))
        return rows_frame(rows, columns, self.checks, tasks=tasks)

    def baseline(self, *, columns: Literal["short", "all"] = "short", tasks: bool = False) -> pd.DataFrame:
        """The same columns from the frequentist method, with both its estimators.

        Parameters
        ----------
        columns : {"short", "all"}
            As for `summary`; the short columns include ``estimator``.
        tasks : bool
            Whether to add a row for each task.

        Returns
        -------
        pandas.DataFrame
        """
        rows: list[dict[str, Any]] = []
        for estimator in get_args(Estimator):
            method = Frequentist(estimator=estimator)
            settings = replace(self.settings, method=method, ci_kind="eti", engine="auto", judge=None)
            other = Estimate(self.outcomes, settings, versions=self.versions)
            rows += summary_rows(other.checks, self.outcomes.attrs, tasks=tasks)
        if self.settings.judge is not None:  # the baseline takes the judge's verdicts as they are
            rows = [{**row, "judge_calibration": "none", "n_labels": 0} for row in rows]
        return rows_frame(rows, columns, self.checks, tasks=tasks, also=("estimator",))

    def sensitivity(self) -> Sensitivity:
        """How much each number depends on the prior, on the data and, beyond the trials, on the assumed shape."""
        return sensitivity_of(self.posterior, self.settings)

    def to_pandas(self) -> pd.DataFrame:
        """The summary with all its columns.

        Returns
        -------
        pandas.DataFrame
        """
        return self.summary(columns="all")

    def to_dict(self) -> dict[str, Any]:
        """The estimate as plain JSON values: how it was made, and the rows of its summary.

        Returns
        -------
        dict
        """
        rows = list(summary_rows(self.checks, self.outcomes.attrs, tasks=False))
        return dict(json_ready({**self._record(), "summary": rows}))

    def to_arviz(self, *, tasks: bool = True) -> Any:
        """Draws for ArviZ: `InferenceData` (ArviZ 0.x) or `DataTree` (1.x).

        Parameters
        ----------
        tasks : bool
            Whether to make what has a value per task and draw; refused beyond 10^7 values.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            4 chains × 1,000 draws. Groups ``posterior`` and ``prior`` with ``pass_at_k``, ``pass_pow_k`` (agent,
            estimand, k), ``p`` (agent, task) and the method's ``mu``, ``rho`` (agent); ``observed_data``,
            ``posterior_predictive``, ``prior_predictive`` and ``log_likelihood`` with ``successes`` (cell), the scored
            cells; ``constant_data`` with their ``trials``; ``log_prior``; ``sample_stats`` where NUTS ran. Separate
            tasks (conjugate) share nothing, and so have no log densities. Without `tasks`, nothing per cell and draw.

        Raises
        ------
        EstimateError
            For the frequentist method, or when ``p`` would be too large.
        """
        from agentic_bayes.estimation.io.groups import draw_groups

        parts = draw_groups(self.posterior, self.method, self.settings.k, self.outcomes, self.sample_stats, tasks=tasks)
        return stacks.from_groups(parts, {"agentic_bayes": json.dumps(self._record())})

    def _record(self) -> dict[str, Any]:
        """Settings, versions and diagnostics, as plain JSON values."""
        return {
            "settings": self.settings.record(),
            "versions": self.versions,
            "note": self.note,
            "diagnostics": None if self.diagnostics is None else asdict(self.diagnostics),
            "not_converged": self.diagnostics is not None and not self.diagnostics.passed,
        }

    def save(self, path: str | Path) -> Path:
        """Write the estimate as netCDF: counts, draws, settings, versions, seed and diagnostics.

        Parameters
        ----------
        path : path
            Where to; usually ends in ``.nc``. It is written under another name first and then moved.

        Returns
        -------
        pathlib.Path

        Raises
        ------
        EstimateError
            If a prior is a function, which a file cannot keep.
        """
        if self.method.has_function_prior:
            raise EstimateError(f"{self.method!r} cannot be saved: a file cannot keep a prior that is a function")
        groups = {
            "outcomes": self.outcomes,
            "draws": kept_draws(self.draws, self.posterior),
            "sample_stats": self.sample_stats,
        }
        return write_groups(check_path(path), self._record(), groups)

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
        source = check_path(path)
        if not source.is_file():
            raise EstimateError(no_such_file(source))
        try:
            record, groups = read_groups(source)
            settings = Settings.from_record(record["settings"])
            return cls(
                check_outcomes(groups["outcomes"]),
                settings,
                draws=groups.get("draws") if needs_draws(settings) else None,
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
            f"Estimate: {self.method.name}, {plural(len(n.agents), 'agent')}, {plural(len(n.tasks), 'task')}, "
            f"{int(n.trials.sum()):,} scored trials, {int(n.unscored.sum()):,} unscored, "
            f"k = {', '.join(map(str, s.k))}{state}{f'; {self.judge_note}' if s.judge else ''}"
        )

    def table(self) -> Table:
        """Both metrics of every agent and estimand at every k, with intervals and notes."""
        notes = (self.note, self.judge_note, self.differences)
        return estimate_table(self.checks, self.outcomes, title=repr(self).partition("; ")[0], notes=notes)
