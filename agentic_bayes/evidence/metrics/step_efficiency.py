"""Step efficiency metric: did the agent take more steps than it needed?"""

from __future__ import annotations

from typing import Any, ClassVar

from agentic_bayes.evidence.metrics.replies import ScoreReply, TaskReply
from agentic_bayes.evidence.metrics.staged import Stage, StagedMetric
from agentic_bayes.evidence.metrics.trace import TraceRecord


class StepEfficiency(StagedMetric):
    """Did the agent take more steps than it needed? Two calls: the task, then the whole record against it."""

    name = "step_efficiency"
    stages: ClassVar = {"extract": Stage("task", TaskReply), "score": Stage("step_efficiency", ScoreReply)}

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score, reason, and ``task``."""
        task = (await self.ask("extract", TaskReply, {"record": record.text}, record)).task
        verdict = await self.ask("score", ScoreReply, {"task": task, "record": record.text}, record)
        return verdict.score, verdict.reason, {"task": task}
