"""Was the agent sure of what it did?"""

from __future__ import annotations

from typing import Any, ClassVar

from agentic_bayes.evidence.metrics.replies import ConfidenceAndReason
from agentic_bayes.evidence.metrics.staged import Stage, StagedMetric
from agentic_bayes.evidence.metrics.trace import TraceRecord

__all__ = ["Confidence"]


class Confidence(StagedMetric):
    """Was the agent decisive, to the point and consistent? One call with the whole record."""

    name = "confidence"
    stages: ClassVar = {"score": Stage("confidence", ConfidenceAndReason)}

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score and reason."""
        given = await self.ask("score", ConfidenceAndReason, {"record": record.text}, record)
        return given.confidence, given.reason, {}
