"""Confidence metric: was the agent sure of what it did?"""

from __future__ import annotations

from typing import Any, ClassVar

from agentic_bayes.evidence.metrics.replies import UnitNumber
from agentic_bayes.evidence.metrics.staged import Stage, StagedMetric, StageReply
from agentic_bayes.evidence.metrics.trace import TraceRecord


class ConfidenceReply(StageReply):
    """A confidence that follows from its reason."""

    is_verdict: ClassVar[bool] = True

    reason: str
    confidence: UnitNumber


class Confidence(StagedMetric):
    """Was the agent decisive, to the point and consistent? One call with the whole record."""

    name = "confidence"
    stages: ClassVar = {"score": Stage("confidence", ConfidenceReply)}

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score and reason."""
        verdict = await self.ask("score", ConfidenceReply, {"record": record.text}, record)
        return verdict.confidence, verdict.reason, {}
