"""Shared by all graders of a suite: their protocol, kinds of settings, and scores that pass or fail."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

from pydantic import AfterValidator, BeforeValidator, Field

from agentic_bayes.evidence.score import Grade, Score, Unscored
from agentic_bayes.records.base import short
from agentic_bayes.records.matchers import compiled_pattern
from agentic_bayes.suites.trial import AgentReply, SuiteTask, TrialAttempt

_ROUNDING = 1e-9  # rounding must not turn a score at the threshold into one below it


@dataclass(frozen=True, slots=True)
class GraderContext:
    """What a grader knows of its suite."""

    folder: Path  # the suite's folder
    pass_threshold: float  # minimum score to pass for a grader without a threshold of its own

    def threshold(self, own: float | None) -> float:
        """A grader's own threshold, or the suite's."""
        return self.pass_threshold if own is None else own


@runtime_checkable
class GradingRule(Protocol):
    """A way of grading, with its settings."""

    def check(self, task: SuiteTask) -> str | None:
        """Why the task cannot be graded, for example an expectation that it lacks; None if it can."""
        ...

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """Grade one trial; an exception makes the trial unscored."""
        ...


def graded(value: float, passed: bool, reason: str) -> Score:
    """A score together with whether the grader passes."""
    return Score(value, reason, {"pass": bool(passed)})


def graded_at(grade: Grade, threshold: float) -> Grade:
    """A score that passes if it reaches the threshold; a missing score stays missing."""
    if isinstance(grade, Unscored):
        return grade
    return graded(grade.value, grade.value >= threshold - _ROUNDING, grade.reason)


def expected_text(task: SuiteTask) -> str | None:
    """The text that a task expects, if any."""
    text = task.expected.get("text")
    return text if isinstance(text, str) else None


def needs_text(task: SuiteTask, *, allow_blank: bool = True) -> str | None:
    """What is wrong with ``expected.text`` for a grader that needs it."""
    text = task.expected.get("text")
    if text is None:
        return "expected.text must be given: answers are compared with it"
    if not isinstance(text, str):
        return f"expected.text must be text (in quotes), got {short(text)}"
    return None if allow_blank or text.strip() else "expected.text must not be blank"


def _texts(value: Any) -> Any:
    """Accept a list of texts; a single text would be split into letters."""
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


def _unit_interval(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError("must be a number in [0, 1]")
    return float(value)


TextList = Annotated[tuple[str, ...], BeforeValidator(_texts)]
Pattern = Annotated[str, Field(strict=True), AfterValidator(_pattern)]
PatternList = Annotated[tuple[str, ...], BeforeValidator(_patterns)]
ScoreThreshold = Annotated[float, BeforeValidator(_unit_interval)]
