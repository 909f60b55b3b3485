"""Were the right tools chosen?"""

from __future__ import annotations

from typing import Any, ClassVar

from agentic_bayes.evidence.metrics.replies import ScoreAndReason, Tools, as_text
from agentic_bayes.evidence.metrics.staged import Stage, StagedMetric
from agentic_bayes.evidence.metrics.trace import TraceRecord

__all__ = ["ToolCorrectness"]


class ToolCorrectness(StagedMetric):
    """Were the right tools chosen: none too many, none missing, none wrong? Two calls; no expectations are needed."""

    name = "tool_correctness"
    stages: ClassVar = {"extract": Stage("tools", Tools), "score": Stage("tool_correctness", ScoreAndReason)}

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score, reason, and ``user_input``, ``tools_called`` and ``available_tools``."""
        found = await self.ask("extract", Tools, {"record": record.text}, record)
        material = {
            "user_input": found.user_input,
            "tools_called": as_text(found.tools_called),
            "available_tools": as_text(found.available_tools),
        }
        given = await self.ask("score", ScoreAndReason, material, record)
        return given.score, given.reason, found.model_dump(mode="json")
