"""Tables of runs of a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentic_bayes.formatting import format_number, plural
from agentic_bayes.result_table import Table

MOST_TASKS = 50


def run_tables(summary: Mapping[str, Any]) -> list[Table]:
    """A run, task by task."""
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
    header = ["task", "passed", "failed", "errors", "rate", "score", "seconds"]
    return [Table(title=f"Run {summary['run_id']}", header=header, rows=rows, notes=notes, noun="task")]


def run_lines(summary: Mapping[str, Any], folder: Path) -> list[str]:
    """The result of a run in sentences."""
    judged = summary["passed_trials"] + summary["failed_trials"]
    rate = "no trial has a verdict"
    if judged:
        rate = f"{summary['passed_trials']:,} of {judged:,} trials passed ({summary['overall_pass_rate']:.3f})"
    lines = [f"{rate}, {summary['error_trials']:,} errored, {summary['pending_trials']:,} pending"]
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
