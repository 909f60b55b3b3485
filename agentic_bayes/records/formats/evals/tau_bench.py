"""Read tau-bench results: a list of ``{"task_id", "trial", "reward", "info", "traj"}``, one per attempt.

An attempt is a conversation of one interaction. The expected calls are ``info.task.actions``; the benchmark compares
databases and not the order of calls, so the order does not matter here either. Its score is 1 if the reward is 1, up to
1e-6, and else 0, as in the benchmark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from io import BufferedReader
from typing import Any

from agentic_bayes.records.wire.chat import Message, chat_call, one_turn, said_by
from agentic_bayes.records.wire.fields import Faults, Fields
from agentic_bayes.records.wire.json_text import Parsed, parts
from agentic_bayes.records.wire.layout import STREAMED, Origin, Shape, records

NAME = "tau-bench"
_TOLERANCE = 1e-6
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
    reward = given_reward(result)
    error = _error(info, reward)
    turn = one_turn(messages, qa_id=f"task {task}")
    turn["query"] = turn["query"] or described.text("instruction") or ""
    expected = [
        {"tool_name": action.name("name", required=True), "parameters": action.arguments("kwargs", "arguments")}
        for action in described.mappings("actions")
    ]
    complete(turn, expected if "actions" in described else None, described.texts("outputs"), error)
    cost = {"user": info.number("user_cost"), "agent": info.number("agent_cost")}
    metadata = {
        "format": NAME,
        "cost": {side: amount for side, amount in cost.items() if amount is not None},
        "reward": partial(reward),
    }
    return {
        "session_id": f"task {task}, trial {trial}",
        "assistant_id": origin.agent,
        "task_id": task,
        "trial": trial,
        "context": said_by("system", messages),
        "conversation": [turn],
        "recorded_score": None if error else success(reward),
        "metadata": {key: content for key, content in metadata.items() if content},
    }


def given_reward(source: Fields) -> float | None:
    """The reward of an attempt; arithmetic may put it a little beyond 1."""
    reward = source.raw("reward")
    return reward if isinstance(reward, float) and 1 < reward <= 1 + _TOLERANCE else source.share("reward")


def success(reward: float | None) -> float | None:
    """Whether an attempt succeeded, as the benchmark counts: its reward is 1, up to rounding."""
    return None if reward is None else float(abs(reward - 1) <= _TOLERANCE)


def partial(reward: float | None) -> float | None:
    """A reward that says more than whether the attempt succeeded."""
    return reward if reward is not None and 0 < reward < 1 - _TOLERANCE else None


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
