"""Read tau-bench results: a list of ``{"task_id", "trial", "reward", "info", "traj"}``, one per attempt.

An attempt is a conversation of one interaction. The expected calls are ``info.task.actions``; the benchmark compares
databases and not the order of calls, so the order does not matter here either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from io import BufferedReader
from typing import Any

from agentic_bayes.records.wire.chat import Message, chat_call, one_turn, system_text
from agentic_bayes.records.wire.fields import Faults, Fields
from agentic_bayes.records.wire.json_text import Parsed, parts
from agentic_bayes.records.wire.layout import STREAMED, Origin, Shape, records

NAME = "tau-bench"
# messages of the simulated user to the harness, not to the agent
CONTROL = frozenset({"###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"})


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    return {"task_id", "reward", "traj"} <= shape.record_keys


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The attempts of a file."""
    return records(parts(stream, STREAMED), lambda value, faults: _conversation(value, faults, origin))


def _conversation(value: Any, faults: Faults, origin: Origin) -> Mapping[str, Any]:
    result = Fields(value, (), faults)
    task, trial = result.name("task_id", required=True), result.whole("trial") or 0
    info = result.mapping("info")
    described = info.mapping("task")
    messages = [_message(message) for message in result.mappings("traj", required="error" not in info)]
    reward = result.share("reward")
    error = _error(info, reward)
    turn = one_turn(messages, qa_id=f"task {task}")
    turn["query"] = turn["query"] or described.text("instruction") or ""
    expected = [
        {"tool_name": action.name("name", required=True), "parameters": action.arguments("kwargs", "arguments")}
        for action in described.mappings("actions")
    ]
    complete(turn, expected if "actions" in described else None, described.texts("outputs"), error)
    cost = {"user": info.number("user_cost"), "agent": info.number("agent_cost")}
    metadata = {"format": NAME, "cost": {side: amount for side, amount in cost.items() if amount is not None}}
    return {
        "session_id": f"task {task}, trial {trial}",
        "assistant_id": origin.agent,
        "task_id": task,
        "trial": trial,
        "context": system_text(messages),
        "conversation": [turn],
        "recorded_score": None if error else reward,
        "metadata": {key: content for key, content in metadata.items() if content},
    }


def complete(
    turn: dict[str, Any], expected: list[dict[str, Any]] | None, outputs: Iterable[str], error: str | None
) -> None:
    """Add to a turn the calls and the texts that were expected, and why it cannot be judged."""
    if expected is not None:
        turn["ground_truth_agentic"] = {"expected_tools": expected, "tool_sequence_matters": False}
    if outputs:
        turn["ground_truth_assistant"] = ", ".join(outputs)
    if error is not None:
        turn |= {"assistant": turn["assistant"] or None, "error": error}


def _error(info: Fields, reward: float | None) -> str | None:
    """Why the attempt cannot be judged; None if it can."""
    if "error" in info:
        return f"infrastructure: {info.raw('error')}"[:500]
    if "traceback" in info:
        last = str(info.raw("traceback")).strip().splitlines()
        return f"infrastructure: {last[-1] if last else 'traceback'}"[:500]
    return "infrastructure: no reward was recorded" if reward is None else None


def _message(message: Fields) -> Message:
    text = message.text("content") or ""
    match message.raw("role"):
        case "assistant":
            return Message("assistant", text, [chat_call(call) for call in message.mappings("tool_calls")])
        case "tool":
            return Message("tool", text, answers=message.name("tool_call_id"), tool=message.name("name"))
    return from_user_or_system(message)


def from_user_or_system(message: Fields) -> Message:
    """A message of the simulated user or of the system; any other role is a fault."""
    role = message.text("role", required=True)
    text = message.text("content") or ""
    if role == "user":
        return Message("user", "" if text.strip() in CONTROL else text)
    if role not in (None, "system"):
        message.faults.add((*message.path, "role"), f"must be system, user, assistant or tool, got {role!r}")
    return Message("system", text)
