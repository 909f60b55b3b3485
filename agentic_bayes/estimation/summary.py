"""The rows of an estimate's summary: one per agent, estimand and metric, and per task on request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.checks import check_choice, check_flag
from agentic_bayes.estimation.distribution import STATISTICS, Stats
from agentic_bayes.estimation.methods.options import Frequentist
from agentic_bayes.estimation.model_checks import ModelChecks, flag_words
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.estimation.settings import Settings
from agentic_bayes.formatting import (
    FAMILIES,
    Metric,
    exact_percent,
    format_interval,
    format_number,
    indicator_words,
    interval_words,
    metrics_at,
    plural,
)
from agentic_bayes.outcomes.dataset import allowed_differences
from agentic_bayes.result_table import Table

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SHORT = ("agent", "estimand", "metric", "mean", "lower", "upper", "n_tasks", "flags")
ALL = (
    *("agent", "task", "estimand", "metric", "k", *STATISTICS, "ci_kind", "ci_prob"),
    *("method", "estimator", "unit", "indicator", "n_tasks", "flags", "note"),
)
JUDGED = ("judge_calibration", "n_labels")


def rows_frame(
    rows: list[dict[str, Any]], columns: str, checks: ModelChecks, *, tasks: bool, also: Iterable[str] = ()
) -> pd.DataFrame:
    """The rows as a table, with the columns that were asked for and those that apply."""
    import pandas as pd

    check_choice("columns", columns, ("short", "all"))
    short = [name for name in ALL if name in (*SHORT, *also) or (tasks and name == "task")]
    shown = [*ALL, *(() if checks.settings.judge is None else JUDGED)] if columns == "all" else short
    if checks.posterior.grouping is not None:
        shown.insert(shown.index("estimand") + 1, "group")
    return pd.DataFrame(rows, columns=shown)


def overall_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of a summary that are not about a group of tasks."""
    return frame[(frame["group"] == "") | (frame["estimand"] == "task")] if "group" in frame else frame


def summary_rows(
    checks: ModelChecks,
    attrs: Mapping[Any, Any],
    *,
    tasks: bool,
    notes: bool = True,
    agents: Iterable[int] | None = None,
) -> Iterator[dict[str, Any]]:
    """One row per agent (or those with these indices), estimand and metric; with `tasks` also per attempted task.

    Without `notes`, which take time, they are empty.
    """
    posterior, settings = checks.posterior, checks.settings
    check_flag(tasks, "tasks")
    method = settings.method
    common: dict[str, Any] = {
        "ci_kind": settings.ci_kind,
        "ci_prob": settings.ci_prob,
        "method": method.name,
        "estimator": method.estimator if isinstance(method, Frequentist) else "posterior",
        "unit": str(attrs.get("unit", "")),
        "indicator": str(attrs.get("indicator", "")),
    }
    if settings.judge is not None:
        common |= {"judge_calibration": settings.judge.calibration, "n_labels": settings.judge.n_labels}
    differences = allowed_differences(attrs)
    chosen = range(len(posterior.counts.agents)) if agents is None else list(agents)
    posterior.draw_tasks(chosen, Metric.of(FAMILIES[0], settings.k[0]))
    for index in chosen:
        agent = posterior.counts.agents[index]
        for estimand in posterior.estimands:
            if estimand == "task" and not tasks:
                continue
            for metric in metrics_at(settings.k):
                key = {"agent": agent, "estimand": estimand, "metric": str(metric), "k": metric.k} | common
                if posterior.grouping is not None:
                    key["group"] = ""
                stats = posterior.stats(index, estimand, metric, settings.ci_prob, settings.ci_kind)
                if estimand == "task":
                    yield from _task_rows(checks, index, metric, stats, key)
                    continue
                flags = checks.row_flags(index, estimand, metric)
                told = [stats.note, unscored_note(checks, index), differences] if notes else []
                told += _remarks(checks, index, estimand, metric, flags) if notes else []
                yield key | {
                    "task": "",
                    **{name: float(getattr(stats, name)) for name in STATISTICS},
                    "n_tasks": stats.n_tasks,
                    "flags": ", ".join(flags),
                    "note": "; ".join(filter(None, told)),
                }
                for group in posterior.group_labels(estimand):
                    yield key | _group_row(checks, index, estimand, metric, group)


def _remarks(
    checks: ModelChecks, agent: int, estimand: Estimand, metric: Metric, flags: tuple[str, ...]
) -> Iterator[str]:
    """What a reader of a row must know of how it was made; some are empty."""
    yield checks.difficulty_note(agent)
    method = checks.settings.method
    model = not (isinstance(method, Frequentist) or checks.settings.corrects_judge)
    if "extrapolated" in flags and estimand == "population" and model:
        # how far the data alone reach where the model extrapolates; the plug-in formula has no model, and bounds from
        # a judge's verdicts are none of what is true
        yield checks.bounds_note(agent, metric, checks.settings.ci_prob)
    yield checks.prior_note(agent, estimand, metric)


def _group_row(checks: ModelChecks, agent: int, estimand: Estimand, metric: Metric, group: str) -> dict[str, Any]:
    """What a row about a group of tasks has of its own."""
    settings = checks.settings
    stats = checks.posterior.stats(agent, estimand, metric, settings.ci_prob, settings.ci_kind, group)
    return {
        "group": group,
        "task": "",
        **{name: float(getattr(stats, name)) for name in STATISTICS},
        "n_tasks": stats.n_tasks,
        "flags": ", ".join(checks.row_flags(agent, estimand, metric, group)),
        "note": stats.note,
    }


def unscored_note(checks: ModelChecks, agent: int) -> str:
    """How many tasks are left out because nothing was scored, or empty."""
    counts = checks.posterior.counts
    empty = int((counts.attempted[agent] & ~counts.scored[agent]).sum())
    if not empty or not counts.scored[agent].any():
        return ""
    return f"{plural(empty, 'task')} with nothing scored left out"


def _task_rows(
    checks: ModelChecks, agent: int, metric: Metric, stats: Stats, key: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    counts = checks.posterior.counts
    trials, groups = counts.trials[agent], checks.posterior.grouping
    general = [
        flag for flag in checks.flags(agent, "task", metric) if flag in ("not_converged", "prior_driven", "misfit")
    ]
    for j in np.flatnonzero(counts.attempted[agent]):
        flags, note = list(general), ""
        if trials[j] == 0:
            flags.append("no_data")
            note = "nothing was scored"
        elif metric.k > trials[j]:
            if np.isnan(stats.mean[j]):
                note = f"{plural(int(trials[j]), 'trial')}, fewer than {metric.k}"
            else:
                flags.append("extrapolated")
        yield key | {
            "task": counts.tasks[j],
            **({"group": groups.names[groups.place[j]]} if groups is not None and groups.names else {}),
            **{name: float(getattr(stats, name)[j]) for name in STATISTICS},
            "n_tasks": 1,
            "flags": ", ".join(flags),
            "note": note,
        }


def estimate_table(checks: ModelChecks, outcomes: xr.Dataset, *, title: str, notes: Iterable[str]) -> Table:
    """Both metrics of every agent and estimand at every k, with intervals, flags and notes."""
    settings, counts, attrs = checks.settings, checks.posterior.counts, outcomes.attrs
    grouped = checks.posterior.grouping is not None
    flags, remarks, rows = dict[str, None](), dict[str, None](), []
    checks.posterior.draw_tasks(range(len(counts.agents)), Metric.of(FAMILIES[0], settings.k[0]))
    for index, agent in enumerate(counts.agents):
        for estimand in (name for name in checks.posterior.estimands if name != "task"):
            for k, group in product(settings.k, ("", *checks.posterior.group_labels(estimand))):
                cells, marks, n_tasks = list[str](), dict[str, None](), 0
                for metric in (Metric.of(family, k) for family in FAMILIES):
                    how = settings.ci_prob, settings.ci_kind
                    stats = checks.posterior.stats(index, estimand, metric, *how, group)
                    cells.append(format_number(float(stats.mean)))
                    cells.append(format_interval(float(stats.lower), float(stats.upper)))
                    marks |= dict.fromkeys(checks.row_flags(index, estimand, metric, group))
                    remarks[stats.note], n_tasks = None, stats.n_tasks
                flags |= marks
                named = [agent, estimand, *([group or "(all)"] if grouped else [])]
                rows.append([*named, str(k), *cells, f"{n_tasks:,}", ", ".join(marks)])
        remarks |= dict.fromkeys((unscored_note(checks, index), checks.difficulty_note(index)))
    unscored, errored = int(counts.unscored.sum()), int(outcomes["errored"].values.sum())
    trials, right = int(counts.trials.sum()), int(counts.successes.sum())
    errors = f" ({plural(errored, 'agent error')})" if errored else ""
    below = [
        f"{plural(trials, 'scored trial')}, {right:,} right; {unscored:,} unscored{errors}; "
        f"unit {attrs['unit']}, indicator {indicator_words(attrs)}",
        f"{settings.method.name}, {_kind_of_interval(settings)}; population is a new task of this kind, tasks the mean "
        "over those tried",
        *notes,
        *remarks,
        prior_line(checks),
        *flag_words(flags),
    ]
    header = [
        "agent",
        "estimand",
        *(["group"] if grouped else []),
        "k",
        "pass@k",
        "interval",
        "pass^k",
        "interval",
        "tasks",
        "flags",
    ]
    return Table(title=title, header=header, rows=rows, notes=below)


def prior_line(checks: ModelChecks) -> str:
    """The number of an estimate that its prior moves most, in words; empty where there is no prior."""
    agents, estimand = checks.posterior.counts.agents, checks.posterior.estimands[0]
    shares = [
        max((checks.prior_share(a, estimand, metric) for metric in metrics_at(checks.settings.k)), default=np.nan)
        for a in range(len(agents))
    ]
    if np.all(np.isnan(shares)):
        return ""
    most = int(np.nanargmax(shares))
    return checks.prior_note(most, estimand, name=agents[most] if len(agents) > 1 else "")


def _kind_of_interval(settings: Settings) -> str:
    if isinstance(settings.method, Frequentist):
        return f"{settings.method.estimator} estimate with {exact_percent(settings.ci_prob)} confidence interval"
    return f"posterior mean with {interval_words(settings.ci_prob, settings.ci_kind)}"
