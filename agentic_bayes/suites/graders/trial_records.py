"""Convert a trial to the records that judges, rubrics and metrics read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.records.base import short
from agentic_bayes.records.model import Conversation, ExpectedTools, Interaction, ToolCall, ToolUse
from agentic_bayes.suites.trial import AgentReply, SuiteTask, TrialAttempt


def as_conversation(attempt: TrialAttempt, reply: AgentReply, *, agent: str = "agent") -> Conversation:
    """One trial as a conversation with one interaction per message."""
    task = attempt.task
    messages, last = task.messages, len(task.messages) - 1
    if len(reply.answers) != len(messages):
        raise InvalidArgument(f"a reply must hold one answer per message: {len(messages)}, got {len(reply.answers)}")
    turns = tuple(
        Interaction(
            qa_id=task.id if last == 0 else f"{task.id}/{position + 1}",
            query=readable(message),
            assistant=readable(answer),
            ground_truth_assistant=_reference(task) if position == last else None,
            agentic=_used(reply, position),
            ground_truth_agentic=expected_tools(task) if last == 0 else None,
        )
        for position, (message, answer) in enumerate(zip(messages, reply.answers, strict=True))
    )
    return Conversation(
        session_id=f"{task.id} #{attempt.trial}",
        assistant_id=agent,
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


def _reference(task: SuiteTask) -> str | None:
    text = task.expected.get("text")
    return text if isinstance(text, str) else None


def _used(reply: AgentReply, position: int) -> ToolUse | None:
    calls = reply.tool_calls[position] if position < len(reply.tool_calls) else None
    if calls is None:
        return None
    return ToolUse(tools_used=tuple(ToolCall.model_validate(dict(call)) for call in calls))
