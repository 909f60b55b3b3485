"""Read the memory of smolagents: the steps of a run, as a list or in a ``RunResult``.

A run is a conversation: each task is a turn, each action step its calls with their observations. The call of
``final_answer`` gives the answer and is no call of a tool; what the model writes around its calls are thoughts.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader
from typing import Any

from agentic_bayes.records.formats.sessions.session_log import SessionLog
from agentic_bayes.records.wire.chat import ChatCall, Message, chat_call, tool_message
from agentic_bayes.records.wire.fields import UNREADABLE, Fields, fitting
from agentic_bayes.records.wire.json_text import Parsed
from agentic_bayes.records.wire.layout import Origin, Shape, documents

NAME = "smolagents-memory"

_ACTION = frozenset({"model_output", "action_output"})
_NUMBERS = ("step_number", "step")  # the second in earlier versions
_TASK = frozenset({"task", "task_images"})
FINAL = "final_answer"
"""The tool that ends a run with the answer."""


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    record = shape.record
    steps = record.get("steps")
    first = steps[0] if isinstance(steps, list) and steps else None
    return _is_step(record) or (isinstance(first, dict) and _is_step(first) and "output" in record)


def _is_step(record: dict[str, Any]) -> bool:
    return (
        (record.keys() >= _ACTION and any(key in record for key in _NUMBERS))
        or record.keys() == _TASK
        or record.keys() == {"system_prompt"}
    )


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The run of a file."""
    session = SessionLog(NAME, origin)
    for line in documents(stream):
        value = session.line(line)
        if value is None:
            continue
        whole = Fields(value, (), session.faults)
        steps = whole.mappings("steps") if isinstance(value.get("steps"), list) else [whole]
        for step in steps:
            _take(step, session, line.where)
        if "steps" in value and whole.raw("state") == "max_steps_error":
            session.add(Message("assistant", error="max_steps_error: the agent ran out of steps"))
    yield from session.finish()


def _take(step: Fields, session: SessionLog, where: str) -> None:
    if "system_prompt" in step:
        session.add(Message("system", step.text("system_prompt") or ""), step.path)
    elif "task" in step:
        session.add(Message("user", step.text("task") or ""), step.path)
    elif "plan" in step:
        session.log.add_thoughts([step.text("plan") or ""], step.path)
    elif any(key in step for key in _NUMBERS):
        _take_action(step, session)
    elif step.value.keys() == {"output"}:
        session.other("final answer step")
    else:
        session.strange(", ".join(list(step.value)[:3]), step.value, where)


def _take_action(step: Fields, session: SessionLog) -> None:
    """Add an action step; several calls share one text of observations."""
    calls = [_call(call) for call in step.mappings("tool_calls")]
    output = step.raw("model_output")
    thought = output if isinstance(output, str) else ""
    final = [call for call in calls if call.name == FINAL]
    others = [call for call in calls if call.name != FINAL]
    error = step.mapping("error")
    failed = error.text("message") or error.text("type")
    # the calls of a step that failed are only in the model's message
    if not calls and not isinstance(step.raw("model_output_message"), str):
        others = [_call(call) for call in step.mapping("model_output_message").mappings("tool_calls")]
    reasoning = [thought] if thought.strip() else []
    usage = step.mapping("token_usage")
    tokens = usage.whole("input_tokens") or 0, usage.whole("output_tokens") or 0
    session.add(Message("assistant", calls=others, reasoning=reasoning, tokens=tokens), step.path)
    observed = step.text("observations")
    results = _observations(observed or "", max(len(others), 1))
    if observed and len(others) > 1 and results[0] == observed:
        session.log.doubt((), "calls of one step share one text of observations: each call has the whole text")
    if not others and failed is not None:
        session.add(Message("assistant", error=failed), step.path)
        session.other("step that failed without a call")
    # the result of a step without calls belongs to none
    ids = [call.id for call in others] or ([] if calls or failed else [f"step {step.raw('step_number')}"])
    for number, identity in enumerate(ids):
        if failed is not None:
            session.add(tool_message(failed, identity, failed=True), step.path)
        elif observed is not None:
            session.add(tool_message(results[number], identity), step.path)
    answer = final[-1].arguments.get("answer", final[-1].arguments) if final else None
    code = str(others[-1].arguments.get("code")) if others else ""
    ends = step.raw("is_final_answer") if "is_final_answer" in step else f"{FINAL}(" in code
    if ends is True and answer is None:
        answer = step.raw("action_output")
    if answer is not None:
        text = answer if isinstance(answer, str) else str(fitting(answer, step.path, session.faults))
        session.add(Message("assistant", text), step.path)


def _observations(text: str, number: int) -> list[str]:
    """The observations of a step, one per call where each is a line; else each call has the whole text."""
    lines = text.split("\n")
    return lines if len(lines) == number else [text] * number


def _call(call: Fields) -> ChatCall:
    """A call; code to run, or a single argument, may be given as text."""
    given = call.mapping("function").raw("arguments")
    found = chat_call(call)
    if isinstance(given, str) and found.arguments.keys() == {UNREADABLE}:
        name = {"python_interpreter": "code", FINAL: "answer"}.get(found.name, UNREADABLE)
        return ChatCall(found.name, {name: given}, found.id)
    return found
