"""Did the agent do what was asked?"""

from __future__ import annotations

from typing import Any, ClassVar

from agentic_bayes.evidence.metrics.replies import TaskAndOutcome, VerdictAndReason
from agentic_bayes.evidence.metrics.staged import Stage, StagedMetric
from agentic_bayes.evidence.metrics.trace import TraceRecord

__all__ = ["TaskCompletion"]


class TaskCompletion(StagedMetric):
    """Did the agent do what was asked? Two calls: task and outcome as facts, then one against the other."""

    name = "task_completion"
    stages: ClassVar = {
        "extract": Stage("task_and_outcome", TaskAndOutcome),
        "score": Stage("task_completion", VerdictAndReason),
    }

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score, reason, and ``task`` and ``outcome``."""
        found = await self.ask("extract", TaskAndOutcome, {"record": record.text}, record)
        given = await self.ask("score", VerdictAndReason, {"task": found.task, "outcome": found.outcome}, record)
        return given.verdict, given.reason, {"task": found.task, "outcome": found.outcome}
