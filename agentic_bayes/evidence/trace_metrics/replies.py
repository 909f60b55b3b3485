"""What the stages of trace metrics ask a model for."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from agentic_bayes.evidence.trace_metrics.staged import Reply

__all__ = [
    "ArgumentVerdict",
    "ArgumentVerdicts",
    "CallMade",
    "Calls",
    "ConfidenceAndReason",
    "Plan",
    "Reason",
    "ScoreAndReason",
    "Task",
    "TaskAndOutcome",
    "ToolCalled",
    "ToolDescribed",
    "Tools",
    "VerdictAndReason",
    "as_text",
]

Unit = Annotated[float, Field(ge=0, le=1)]


class Task(Reply):
    """What the user wanted."""

    task: str


class TaskAndOutcome(Reply):
    """What the user wanted, and what came of it."""

    task: str
    outcome: str


class ToolCalled(Reply):
    """One call, for judging the choice of tools."""

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)


class ToolDescribed(Reply):
    """A tool that the agent could use."""

    name: str
    description: str = ""


class Tools(Reply):
    """What is needed to judge the choice of tools."""

    user_input: str
    tools_called: list[ToolCalled]
    available_tools: list[ToolDescribed]


class CallMade(Reply):
    """One call, for judging its arguments."""

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    reasoning: str = ""


class Calls(Reply):
    """What is needed to judge arguments."""

    user_input: str
    tool_calls: list[CallMade]


class ArgumentVerdict(Reply):
    """Whether the arguments of one call are right."""

    verdict: Literal["yes", "no"]
    reason: str | None = None


class ArgumentVerdicts(Reply):
    """One verdict for every call, in order."""

    verdicts: list[ArgumentVerdict]


class Plan(Reply):
    """The steps that the agent planned."""

    plan: list[str]


class Reason(Reply):
    """Why a score is what it is."""

    reason: str


class ScoreAndReason(Reply):
    """A score that follows from its reason."""

    reason: str
    score: Unit


class VerdictAndReason(Reply):
    """The same, called a verdict."""

    reason: str
    verdict: Unit


class ConfidenceAndReason(Reply):
    """The same, called confidence."""

    reason: str
    confidence: Unit


def as_text(value: Any) -> str:
    """A value as material for a later stage."""
    plain = (
        [item.model_dump() if isinstance(item, Reply) else item for item in value] if isinstance(value, list) else value
    )
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False, indent=1)
