"""Tables of what evidence says beyond its scores: further metrics, and what went wrong with tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.means import mean_interval, score_of, task_means
from agentic_bayes.evidence.score import Score, Unscored
from agentic_bayes.evidence.tools.diagnostics import ToolDiagnostics, tool_diagnostics
from agentic_bayes.formatting import format_estimate
from agentic_bayes.outcomes.count import metric_threshold
from agentic_bayes.result_table import Table

MOST_REASONS = 5


def metrics_tables(evidence: Evidence) -> list[Table]:
    """Further metrics, by agent; no table where there is none."""
    names = sorted({name for row in evidence for name in row.metrics})
    rows = []
    cuts = {name: metric_threshold(evidence, name) for name in names}
    means = {name: task_means(evidence, score_of(name)) for name in names}
    for agent in sorted({row.agent for row in evidence}):
        for name in names:
            grades = [row.metrics[name] for row in evidence if row.agent == agent and name in row.metrics]
            scores = [grade.value for grade in grades if isinstance(grade, Score)]
            passed = sum(score >= cuts[name] for score in scores)
            mean = format_estimate(*mean_interval(means[name][agent], None, 0.95)) if scores else "–"
            unscored = f"{len(grades) - len(scores):,}"
            rows.append([agent, name, f"{len(scores):,}", unscored, mean, f"{passed:,} of {len(scores):,}"])
    if not rows:
        return []
    pairs = [pair for row in evidence for pair in row.metrics.items()]
    reasons = _reasons(f"{name}: {grade.reason}" for name, grade in pairs if isinstance(grade, Unscored))
    notes = [
        "score: mean over tasks with 95 % t interval",
        "passed: at the metric's own threshold, .5 unless set",
        *reasons,
    ]
    header = ["agent", "metric", "scored", "unscored", "score", "passed"]
    return [Table(title="Metrics", header=header, rows=rows, notes=notes)]


def tool_problems(evidence: Evidence) -> ToolDiagnostics | None:
    """What went wrong with tools; None where no call was judged or nothing was wrong."""
    if not any(row.tool_overall is not None and row.tool_details for row in evidence):
        return None
    found = tool_diagnostics(evidence)
    return None if found.worst(1).empty else found


def tool_problems_tables(evidence: Evidence) -> list[Table]:
    """The table of tool diagnostics, if anything was wrong."""
    problems = tool_problems(evidence)
    return [] if problems is None else [problems.table()]


def _reasons(reasons: Iterable[str | None]) -> list[str]:
    """The commonest reasons, with how often each occurs."""
    counts = Counter(reason for reason in reasons if reason is not None)
    return [f"  {count} × {reason}" for reason, count in counts.most_common(MOST_REASONS)]
