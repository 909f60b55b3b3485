"""Task completion metric: did the agent do what the user asked?"""

from __future__ import annotations

from typing import Any, ClassVar

from agentic_bayes.evidence.metrics.replies import NonBlankText, TaskReply, UnitNumber
from agentic_bayes.evidence.metrics.staged import Stage, StagedMetric, StageReply
from agentic_bayes.evidence.metrics.trace import TraceRecord


class TaskAndOutcomeReply(TaskReply):
    """What the user wanted, and what came of it."""

    outcome: NonBlankText


class CompletionReply(StageReply):
    """A verdict that follows from its reason."""

    is_verdict: ClassVar[bool] = True

    reason: str
    verdict: UnitNumber


class TaskCompletion(StagedMetric):
    """Did the agent do what the user asked? Two calls: task and outcome as facts, then one against the other."""

    name = "task_completion"
    stages: ClassVar = {
        "extract": Stage("task_and_outcome", TaskAndOutcomeReply),
        "score": Stage("task_completion", CompletionReply),
    }

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score, reason, and ``task`` and ``outcome``."""
        facts = await self.ask("extract", TaskAndOutcomeReply, {"record": record.text}, record)
        material = {"task": facts.task, "outcome": facts.outcome}
        result = await self.ask("score", CompletionReply, material, record)
        return result.verdict, result.reason, material
