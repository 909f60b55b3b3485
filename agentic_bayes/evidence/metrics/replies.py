"""What the stages of trace metrics ask a model for."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from agentic_bayes.evidence.metrics.staged import Reply

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


def _word(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _steps(steps: list[str]) -> list[str]:
    return [step for step in steps if step.strip()]


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


Unit = Annotated[float, Field(ge=0, le=1), AfterValidator(lambda value: value + 0.0)]  # no negative zero
Said = Annotated[str, AfterValidator(_said)]
YesNo = Annotated[Literal["yes", "no"], BeforeValidator(_word)]


class Task(Reply):
    """What the user wanted."""

    task: Said


class TaskAndOutcome(Reply):
    """What the user wanted, and what came of it."""

    task: Said
    outcome: Said


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

    user_input: Said
    tools_called: list[ToolCalled]
    available_tools: list[ToolDescribed]


class CallMade(Reply):
    """One call, for judging its arguments."""

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    reasoning: str = ""


class Calls(Reply):
    """What is needed to judge arguments."""

    user_input: Said
    tool_calls: list[CallMade]


class ArgumentVerdict(Reply):
    """Whether the arguments of one call are right."""

    verdict: YesNo
    reason: str | None = None


class ArgumentVerdicts(Reply):
    """One verdict for every call, in order."""

    is_verdict: ClassVar[bool] = True

    verdicts: list[ArgumentVerdict]


class Plan(Reply):
    """The steps that the agent planned."""

    plan: Annotated[list[str], AfterValidator(_steps)]


class Reason(Reply):
    """Why a score is what it is."""

    reason: str


class ScoreAndReason(Reply):
    """A score that follows from its reason."""

    is_verdict: ClassVar[bool] = True

    reason: str
    score: Unit


class VerdictAndReason(Reply):
    """The same, called a verdict."""

    is_verdict: ClassVar[bool] = True

    reason: str
    verdict: Unit


class ConfidenceAndReason(Reply):
    """The same, called confidence."""

    is_verdict: ClassVar[bool] = True

    reason: str
    confidence: Unit


def as_text(value: Any) -> str:
    """A value as material for a later stage."""
    plain = (
        [item.model_dump() if isinstance(item, Reply) else item for item in value] if isinstance(value, list) else value
    )
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False, indent=1)
