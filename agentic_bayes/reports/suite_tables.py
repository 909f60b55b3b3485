"""Tables of runs of a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentic_bayes.formatting import Metric, format_estimate, format_number, plural
from agentic_bayes.result_table import Table

MOST_TASKS = 50


def run_tables(summary: Mapping[str, Any]) -> list[Table]:
    """A run, task by task: its counts, then what they say of pass@k and pass^k."""
    rows = [
        [
            task["task"],
            *(f"{task[name]:,}" for name in ("passed", "failed", "errored")),
            *(format_number(task[name], 2) for name in ("pass_rate", "score", "latency_p50")),
        ]
        for task in summary["tasks"][:MOST_TASKS]
    ]
    hidden = len(summary["tasks"]) - len(rows)
    notes = [f"and {hidden:,} more tasks"] if hidden > 0 else []
    if summary["error_trials"]:
        notes.append("errored trials are neither passed nor failed; the same command runs them again")
        notes += [f"  {row['trials']:,} × {row['reason']}" for row in summary["error_reasons"]]
    header = ["task", "passed", "failed", "errors", "rate", "score", "seconds"]
    counts = Table(title=f"Run {summary['run_id']}", header=header, rows=rows, notes=notes, noun="task")
    return [counts, *_task_estimates(summary)]


def _task_estimates(summary: Mapping[str, Any]) -> list[Table]:
    """pass^1 of every task, and pass@k and pass^k at the largest k; no table where nothing is estimated."""
    known = [task for task in summary["tasks"] if task.get("estimates")]
    if not known:
        return []
    metrics = [Metric(name) for name in known[0]["estimates"]]
    largest = max(metric.k for metric in metrics)
    shown = [metric for metric in metrics if metric == "pass^1" or (metric.k == largest > 1)]
    rows = [
        [task["task"], *(_estimate_cell(task["estimates"].get(metric)) for metric in shown)]
        for task in known[:MOST_TASKS]
    ]
    notes = ["on this task: posterior mean with 95 % interval; summary.json and summary.csv have every k"]
    return [Table(title="Each task", header=["task", *shown], rows=rows, notes=notes, noun="task")]


def _estimate_cell(ends: Mapping[str, float | None] | None) -> str:
    if ends is None or ends["mean"] is None or ends["lower"] is None or ends["upper"] is None:
        return "–"
    return format_estimate(ends["mean"], ends["lower"], ends["upper"], 2)


def run_lines(summary: Mapping[str, Any], folder: Path) -> list[str]:
    """The result of a run in sentences."""
    judged = summary["passed_trials"] + summary["failed_trials"]
    rate = "no trial has a verdict"
    if judged:
        rate = f"{summary['passed_trials']:,} of {judged:,} trials passed ({summary['overall_pass_rate']:.3f})"
    waiting = summary["pending_trials"] - summary["error_trials"]  # errored ones are pending, too
    lines = [f"{rate}, {summary['error_trials']:,} errored" + (f", {waiting:,} not run yet" if waiting > 0 else "")]
    if summary["cached_replies"]:
        lines.append(f"{summary['cached_replies']:,} of the replies came from the cache")
    if summary["note"]:
        lines.append(summary["note"])
    if summary["ended"] is not None:
        lines.append(f"ended: {summary['ended']}")
    seconds = [summary[f"latency_p{q}"] for q in (50, 90, 99)]
    if seconds[0] is not None:
        lines.append(
            "seconds per trial: " + ", ".join(f"p{q} {s:.3g}" for q, s in zip((50, 90, 99), seconds, strict=True))
        )
    if summary["cost"] is not None:
        lines.append(f"cost: {summary['cost']:,.6g}")
    return [*lines, f"folder: {folder}"]


def runs_table(runs: Sequence[Mapping[str, Any]]) -> Table:
    """Runs, one per row."""
    rows = [
        [
            run["run_id"],
            run["agent"],
            f"{run['passed']:,} of {run['passed'] + run['failed']:,}",
            format_number(run["pass_rate"], 2),
            *(f"{run[name]:,}" for name in ("errored", "pending")),
        ]
        for run in runs
    ]
    header = ["run", "agent", "passed", "rate", "errors", "pending"]
    return Table(title="Runs", header=header, rows=rows, notes=[plural(len(rows), "run")], noun="run", whole=True)
