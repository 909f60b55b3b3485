"""Shared by all graders of a suite: their protocol, kinds of settings, verdicts, and trials as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

from pydantic import BeforeValidator

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.evidence.score import KINDS, ROUNDING, Grade, Score, Unscored, named_kinds
from agentic_bayes.records.base import short
from agentic_bayes.records.matchers import compiled_pattern
from agentic_bayes.records.model import Conversation, ExpectedTools, Interaction, ToolCall, ToolUse
from agentic_bayes.suites.trial import AgentReply, SuiteTask, TrialAttempt


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
    """A way of grading, with its settings.

    A rule may also have ``check(task)``, which returns why a task cannot be graded, for example an expectation that it
    lacks (None if it can), and ``ready()``, which raises if the rule cannot work on this machine.
    """

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """Grade one trial; an exception makes the trial unscored."""


def graded(value: float, passed: bool, reason: str, *kinds: str) -> Score:
    """A score together with whether the grader passes and, if it does not, which kinds of failure it saw."""
    return Score(value, reason, {"pass": bool(passed)} | ({KINDS: list(kinds)} if kinds and not passed else {}))


def graded_at(grade: Grade, threshold: float) -> Grade:
    """A score that passes if it reaches the threshold; a missing score stays missing."""
    if isinstance(grade, Unscored):
        return grade
    return graded(grade.value, grade.value >= threshold - ROUNDING, grade.reason, *named_kinds(grade.details))


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


def as_conversation(attempt: TrialAttempt, reply: AgentReply) -> Conversation:
    """One trial as a conversation with one interaction per message."""
    task = attempt.task
    messages, last = task.messages, len(task.messages) - 1
    if len(reply.answers) != len(messages):
        raise InvalidArgument(f"a reply must hold one answer per message: {len(messages)}, got {len(reply.answers)}")
    used = [
        None if calls is None else ToolUse(tools_used=tuple(ToolCall.model_validate(dict(call)) for call in calls))
        for calls in reply.tool_calls[: len(messages)]
    ]
    turns = tuple(
        Interaction(
            qa_id=task.id if last == 0 else f"{task.id}/{position + 1}",
            query=readable(message),
            assistant=readable(answer),
            ground_truth_assistant=expected_text(task) if position == last else None,
            agentic=calls,
            ground_truth_agentic=expected_tools(task) if last == 0 else None,
        )
        for position, (message, answer, calls) in enumerate(zip_longest(messages, reply.answers, used))
    )
    return Conversation(
        session_id=f"{task.id} #{attempt.trial}",
        assistant_id="agent",
        context=readable(task.system),
        conversation=turns,
        task_id=task.id,
        trial=attempt.trial,
        metadata=dict(task.metadata),
    )


def as_interaction(attempt: TrialAttempt, reply: AgentReply) -> Interaction:
    """One trial as a single interaction: all messages to the agent, its last answer, and all its calls in order."""
    turns = as_conversation(attempt, reply).conversation
    known = [turn.agentic.tools_used for turn in turns if turn.agentic is not None]
    calls = tuple(call for used in known for call in used)
    if len(turns) > 1:  # steps count within one turn only
        calls = tuple(call.model_copy(update={"step": None}) for call in calls)
    return Interaction(
        qa_id=attempt.task.id,
        query="\n\n".join(turn.query for turn in turns),
        assistant=turns[-1].assistant,
        ground_truth_assistant=turns[-1].ground_truth_assistant,
        agentic=ToolUse(tools_used=calls) if len(known) == len(turns) else None,
        ground_truth_agentic=expected_tools(attempt.task),
    )


def expected_tools(task: SuiteTask) -> ExpectedTools | None:
    """The calls that a task expects; None if it expects nothing about calls."""
    tools: Any = task.expected.get("tools")
    if tools is None:
        return None
    if isinstance(tools, (list, tuple)):
        tools = {"expected_tools": list(tools)}
    if not isinstance(tools, Mapping):
        raise InvalidArgument(f"expected.tools must be a list of calls, or an object, got {short(tools)}")
    return ExpectedTools.model_validate(dict(tools))


def readable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


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


TextList = Annotated[tuple[str, ...], BeforeValidator(_texts)]
PatternList = Annotated[tuple[str, ...], BeforeValidator(_patterns)]
