"""What all graders of a suite share: a check of the task, settings of exact types, a grade that says if it passes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

from pydantic import AfterValidator, BeforeValidator, Field

from agentic_bayes.evidence.score import Grade, Score
from agentic_bayes.records.base import short
from agentic_bayes.records.matchers import compiled_pattern
from agentic_bayes.suites.trial import AgentReply, SuiteTask, TrialAttempt

__all__ = [
    "GraderContext",
    "GradingRule",
    "Pattern",
    "PatternList",
    "ScoreThreshold",
    "TextList",
    "expected_text",
    "graded",
    "needs_text",
]


@dataclass(frozen=True, slots=True)
class GraderContext:
    """Where a grader works."""

    folder: Path  # the suite's folder
    pass_threshold: float  # from which score on a grader passes that gives only a score


@runtime_checkable
class GradingRule(Protocol):
    """One way of grading, with its settings."""

    def check(self, task: SuiteTask) -> str | None:
        """What keeps a task from being graded, such as an expectation that it lacks; None if nothing does."""
        ...

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """Grade one trial; may raise, which is unscored."""
        ...


def graded(value: float, passed: bool, reason: str) -> Score:
    """A score that says whether the grader passes."""
    return Score(value, reason, {"pass": bool(passed)})


def expected_text(task: SuiteTask) -> str | None:
    """The text that a task expects, if it does."""
    text = task.expected.get("text")
    return text if isinstance(text, str) else None


def needs_text(task: SuiteTask) -> str | None:
    """What is wrong with ``expected.text``, where a grader needs it."""
    text = task.expected.get("text")
    if text is None:
        return "expected.text must be given: it is what answers are compared with"
    return None if isinstance(text, str) else f"expected.text must be text (in quotes), got {short(text)}"


def _texts(value: Any) -> Any:
    """A list of texts; one text alone would be read letter by letter."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise ValueError("must be a list of texts")
    if not value or not all(item.strip() for item in value):
        raise ValueError("must be a list of at least one text, none of them blank")
    return tuple(value)


def _patterns(value: Any) -> Any:
    for pattern in _texts(value):
        try:
            compiled_pattern(pattern)
        except ValueError as error:
            raise ValueError(f"must be regular expressions; {short(pattern)} {error}") from None
    return tuple(value)


def _pattern(value: str) -> str:
    compiled_pattern(value)
    return value


def _share(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError("must be a number in [0, 1]")
    return float(value)


TextList = Annotated[tuple[str, ...], BeforeValidator(_texts)]
Pattern = Annotated[str, Field(strict=True), AfterValidator(_pattern)]
PatternList = Annotated[tuple[str, ...], BeforeValidator(_patterns)]
ScoreThreshold = Annotated[float, BeforeValidator(_share)]
