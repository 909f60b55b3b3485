"""Tables of pass@k and pass^k next to the frequentist baseline.

Other results are one table each, their own `table()`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.methods.options import Frequentist
from agentic_bayes.estimation.model_checks import FLAGS
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.estimation.summary import overall_rows
from agentic_bayes.formatting import (
    exact_percent,
    format_estimate,
    format_number,
    format_share,
    indicator_words,
    metrics_at,
    plural,
)
from agentic_bayes.result_table import Table

if TYPE_CHECKING:
    import pandas as pd

    from agentic_bayes.decisions.rank import Ranking

RowKey = tuple[str, str, str, str]  # agent, estimand, metric, estimator
ESTIMANDS = {"population": "on a new task of this kind", "tasks": "on these tasks"}


def rows_by_key(*frames: pd.DataFrame) -> dict[RowKey, dict[str, Any]]:
    """Rows of summaries by agent, estimand, metric and estimator; their prior is a line of its own (`prior_note`)."""
    found = {}
    for frame in frames:
        for row in overall_rows(frame).to_dict("records"):
            kept = [part for part in row["note"].split("; ") if not part.startswith("prior: ")]
            key = row["agent"], row["estimand"], row["metric"], row["estimator"]
            found[key] = {str(name): row[name] for name in row} | {"note": "; ".join(kept)}
    return found


def estimate_tables(est: Estimate) -> list[Table]:
    """Per agent and estimand: pass@k and pass^k with intervals, next to the unbiased and the plug-in estimate.

    A notebook shows `Estimate.table()`, one table without the baseline, since `Estimate.baseline()` is at hand there.
    """
    rows = rows_by_key(est.to_pandas(), est.baseline(columns="all"))
    as_judged = {} if est.settings.judge is None else rows_by_key(est.uncorrected.to_pandas())
    return [
        _estimate_table(est, agent, estimand, rows, as_judged)
        for agent in est.agents
        for estimand in ESTIMANDS
        if estimand in est.posterior.estimands
    ]


def group_tables(est: Estimate, summary: pd.DataFrame | None = None) -> list[Table]:
    """Per agent and estimand: pass@k and pass^k of every group of tasks; none where tasks are not grouped.

    A `summary` with all columns that is at hand need not be made again.
    """
    if est.posterior.grouping is None:
        return []
    metrics = [metric for metric in metrics_at(est.settings.k) if metric != "pass@1"]  # which is pass^1
    by, found = est.settings.by or "weight", list[Table]()
    summary = est.to_pandas() if summary is None else summary
    for (agent, estimand), part in summary[summary["group"] != ""].groupby(["agent", "estimand"], sort=False):
        rows, notes = [], dict[str, None]()
        for group, own in part.groupby("group", sort=False):
            numbers = own.loc[own["metric"].isin(metrics), ["mean", "lower", "upper"]].to_numpy(float)
            values = [format_estimate(*row) for row in numbers.tolist()]
            rows.append([str(group), *values, f"{own['n_tasks'].iloc[0]:,}"])
            notes |= {f"{group}: {note}": None for note in own["note"] if note and not note.startswith("prior: ")}
        header = [by, *map(str, metrics), "tasks"]
        title, named = f"{agent}, by {by}, {ESTIMANDS[str(estimand)]}", f" ({estimand})"
        found.append(Table(title=title, text=named, header=header, rows=rows, notes=list(notes)))
    return found


def _estimate_table(
    est: Estimate,
    agent: str,
    estimand: Estimand,
    rows: Mapping[RowKey, dict[str, Any]],
    as_judged: Mapping[RowKey, dict[str, Any]],
) -> Table:
    """`as_judged` has the posterior that takes the judge's verdicts as they are; it replaces the plug-in column."""
    metrics, index, attrs = metrics_at(est.settings.k), est.agent_index(agent), est.outcomes.attrs

    def of(estimator: str, source: Mapping[RowKey, dict[str, Any]] = rows) -> list[dict[str, Any]]:
        return [source[agent, estimand, metric, estimator] for metric in metrics]

    unbiased, plugin = of("unbiased"), of("plugin")
    method = est.method
    if isinstance(method, Frequentist):
        own, columns = of(method.estimator), {"unbiased": unbiased, "plug-in": plugin}
    elif as_judged:
        own = of("posterior")
        columns = {"corrected": own, "as judged": of("posterior", as_judged), "unbiased": unbiased}
    else:
        own = of("posterior")
        columns = {method.name: own, "unbiased": unbiased, "plug-in": plugin}
    trials, unscored = int(est.counts.trials[index].sum()), int(est.counts.unscored[index].sum())
    errored, left_out = int(est.outcomes["errored"].values[index].sum()), int(attrs.get("left_out", 0))
    crashes = f" ({plural(errored, 'agent error')})" if errored else ""
    notes = [
        f"{plural(int(est.counts.attempted[index].sum()), 'task')}, {plural(trials, 'scored trial')}, "
        f"{unscored} unscored{crashes}; unit {attrs['unit']}, indicator {indicator_words(attrs)}; "
        f"{_intervals_of(est)}"
    ]
    if as_judged:
        notes.append(f"corrected and as judged are {method.name}, unbiased is as judged; {est.judge_note}")
    notes += _crash_notes(est, index)
    if left_out:
        notes.append(f"{plural(left_out, 'conversation')} of all agents without any tool verdict left out")
    notes += _footnotes([*own, *unbiased, *plugin], est.settings.k)
    notes += [f"{row['metric']}: {row['note']}" for row in own if "distribution-free" in row["note"]]
    general = [row["note"] for row in (*own, *unbiased, *plugin) if "distribution-free" not in row["note"]]
    return Table(
        title=f"{agent}, {ESTIMANDS[estimand]} ({estimand})",
        header=["metric", *columns],
        rows=[[metric, *(_cell(column[i]) for column in columns.values())] for i, metric in enumerate(metrics)],
        notes=[*notes, *dict.fromkeys(filter(None, (*general, est.checks.prior_note(index, estimand))))],
    )


def _intervals_of(est: Estimate) -> str:
    prob = exact_percent(est.settings.ci_prob)
    if isinstance(est.method, Frequentist):
        return f"{prob} confidence intervals"
    kind = "equal-tailed" if est.settings.ci_kind == "eti" else "highest-density"
    return f"posterior mean with {prob} credible interval ({kind}), the others with {prob} confidence intervals"


def _crash_notes(est: Estimate, index: int) -> list[str]:
    """How crashed agents were counted, if not as unscored."""
    outcomes = est.outcomes
    if outcomes.attrs.get("errors") == "fail":
        return ["a crashed agent counts as a failure"]
    errored = int(outcomes["errored"].values[index].sum())
    if outcomes.attrs.get("errors") != "bounds" or not errored:
        return []
    successes, trials = int(est.counts.successes[index].sum()), int(est.counts.trials[index].sum()) + errored
    low, high = format_number(successes / trials), format_number((successes + errored) / trials)
    return [f"share of right trials if all {plural(errored, 'agent error')} had failed or passed: {low} or {high}"]


def _cell(row: Mapping[str, Any]) -> str:
    """A number with its interval, starred where it is flagged; an undefined one has nothing to doubt."""
    mean, *interval = format_estimate(row["mean"], row["lower"], row["upper"]).split(" ", 1)
    return " ".join([f"{mean}*" if row["flags"] and not math.isnan(row["mean"]) else mean, *interval])


def _footnotes(rows: Sequence[Mapping[str, Any]], ks: Sequence[int]) -> list[str]:
    """One line per flag, naming the k it concerns."""
    notes = []
    for flag, meaning in FLAGS.items():
        hit = sorted({row["k"] for row in rows if flag in row["flags"] and not math.isnan(row["mean"])})
        if hit:
            where = "" if len(hit) == len(ks) else f" (k = {', '.join(map(str, hit))})"
            notes.append(f"* {flag}{where}: {meaning}")
    return notes


def superiority_table(ranking: Ranking, most: int | None = None) -> Table:
    """The probability that the agent of the row beats the one of the column, best agent first; of the best `most`."""
    matrix = ranking.superiority().iloc[:most, :most]
    rows = [
        [f"{i}. {agent}", *(format_share(value, 2) for value in values)]
        for i, (agent, values) in enumerate(zip(matrix.index, matrix.to_numpy(), strict=True), start=1)
    ]
    header = ["chance that the row is better", *(f"{i}." for i in range(1, len(rows) + 1))]
    title, notes = f"Probability of a higher {ranking.metric}", list[str]()
    if len(rows) < len(ranking.rows):
        notes.append(f"the best {len(rows)} of {len(ranking.rows):,} agents; --to json has every pair")
    return Table(title=title, header=header, rows=rows, notes=notes, noun="agent")


def settings_table(est: Estimate) -> Table:
    """Settings, seed and versions."""
    record = est.settings.record()
    judge = record.pop("judge")
    record |= {"method": repr(est.method)}
    rows = [(name, _setting(value)) for name, value in record.items() if value is not None]
    if judge is not None:
        rows.append(("judge_labels", est.judge_note))
    rows += [(f"counted: {name}", _setting(value)) for name, value in est.outcomes.attrs.items() if value != ""]
    rows += [(f"version of {name}", text) for name, text in est.versions.items()]
    return Table(title="Settings and versions", header=["setting", "value"], rows=rows)


def _setting(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
