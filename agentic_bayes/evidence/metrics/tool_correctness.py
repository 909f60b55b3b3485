"""Tool correctness metric: did the agent choose the right tools?"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from agentic_bayes.evidence.metrics.replies import NonBlankText, ScoreReply, as_text
from agentic_bayes.evidence.metrics.staged import Stage, StagedMetric, StageReply
from agentic_bayes.evidence.metrics.trace import TraceRecord

# the docstrings of replies within replies are part of the schema that a model is shown: changing one changes its cache


class ToolCalled(StageReply):
    """One call, for judging the choice of tools."""

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)


class ToolDescribed(StageReply):
    """A tool that the agent could use."""

    name: str
    description: str = ""


class ToolChoiceReply(StageReply):
    """What a judge of the choice of tools needs to know."""

    user_input: NonBlankText
    tools_called: list[ToolCalled]
    available_tools: list[ToolDescribed]


class ToolCorrectness(StagedMetric):
    """Did the agent choose the right tools: none too many, missing or wrong? Two calls; no expectations are needed."""

    name = "tool_correctness"
    stages: ClassVar = {"extract": Stage("tools", ToolChoiceReply), "score": Stage("tool_correctness", ScoreReply)}

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score, reason, and ``user_input``, ``tools_called`` and ``available_tools``."""
        choice = await self.ask("extract", ToolChoiceReply, {"record": record.text}, record)
        material = {
            "user_input": choice.user_input,
            "tools_called": as_text(choice.tools_called),
            "available_tools": as_text(choice.available_tools),
        }
        verdict = await self.ask("score", ScoreReply, material, record)
        return verdict.score, verdict.reason, choice.model_dump(mode="json")
