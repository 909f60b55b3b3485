"""Was there a step too many?"""

from __future__ import annotations

from typing import Any, ClassVar

from agentic_bayes.evidence.metrics.replies import ScoreAndReason, Task
from agentic_bayes.evidence.metrics.staged import Stage, StagedMetric
from agentic_bayes.evidence.metrics.trace import TraceRecord

__all__ = ["StepEfficiency"]


class StepEfficiency(StagedMetric):
    """Was there a step too many? Two calls: the task, then the whole record against it."""

    name = "step_efficiency"
    stages: ClassVar = {"extract": Stage("task", Task), "score": Stage("step_efficiency", ScoreAndReason)}

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score, reason, and ``task``."""
        found = await self.ask("extract", Task, {"record": record.text}, record)
        given = await self.ask("score", ScoreAndReason, {"task": found.task, "record": record.text}, record)
        return given.score, given.reason, {"task": found.task}
