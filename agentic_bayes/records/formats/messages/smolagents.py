"""Read smolagents messages from an agent's memory, in which calls and observations are text."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.wire import message_log
from agentic_bayes.records.wire.chat import ChatCall, Message, chat_call, tool_message
from agentic_bayes.records.wire.content.parts import content_text
from agentic_bayes.records.wire.fields import Fields
from agentic_bayes.records.wire.layout import Shape
from agentic_bayes.records.wire.message_log import Dialect, FieldPath, MessageLog, has_role

NAME = "smolagents"
MARKS = frozenset({"role:tool-call", "role:tool-response"})
"""What only messages of this format hold."""

FINAL = "final_answer"
"""The tool whose argument is the answer: it ends the run."""

INTERPRETER = "python_interpreter"
CARRY_OUT = "Now proceed and carry out this plan."
SEVERAL = "the results of several calls are one text, which was given to the first of them"

_CALLS = re.compile(r"\s*Calling tools:\s*")
_TASK = re.compile(r"\s*New task:\n")
_OBSERVED = re.compile(r"\s*(?:Call id: [^\n]*\n)?Observation:\n?")
_FAILED = re.compile(r"\s*(?:Call id: (?P<id>[^\n]*)\n)?Error:\n")
_RETRY = re.compile(r"\s*Now let's retry: take care not to repeat previous errors!.*", re.DOTALL)
_LAST_OUTPUT = re.compile(r"Last output from code snippet:\n(.*)\Z", re.DOTALL)
_LONGEST = 1_000_000  # characters of calls written as Python


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    return message_log.looks_like(shape, _is_ours, ("messages",))


def _is_ours(value: Any) -> bool:
    if not isinstance(value, dict) or "role" not in value:
        return False
    return value["role"] in ("tool-call", "tool-response") or value.keys() >= {"content", "raw", "token_usage"}


def _take(value: Any, path: FieldPath, log: MessageLog) -> None:
    message = Fields(value, path, log.faults)
    role = message.text("role", required=True)
    text = content_text(message, "content", doubt=log.doubt)
    match role:
        case "system":
            log.add(Message("system", text), path)
        case "user":
            if text.strip() == CARRY_OUT:
                return
            task = _TASK.match(text)
            # images that a tool made come back as the user's
            aside = task is None and not re.sub(r"\[image\]", "", text).strip()
            log.add(Message("user", text[task.end() :] if task else text, aside=aside), path)
        case "tool-call":
            _take_calls(message, text, log)
        case "assistant" if _CALLS.match(text):  # in earlier versions
            _take_calls(message, text, log)
        case "assistant":
            usage = message.mapping("token_usage")
            tokens = usage.whole("input_tokens") or 0, usage.whole("output_tokens") or 0
            calls = [chat_call(call) for call in message.mappings("tool_calls")]
            log.add(Message("assistant", text, calls, tokens=tokens), path)
        case "tool-response":
            _take_response(message, text, log)
        case str():
            allowed = "system, user, assistant, tool-call or tool-response"
            log.faults.add((*path, "role"), f"must be {allowed}, got {short(role)}")


def _take_calls(message: Fields, text: str, log: MessageLog) -> None:
    """Add calls, which are a Python list in the text; what the agent said before them are its thoughts."""
    begin = _CALLS.match(text)
    try:
        listed = ast.literal_eval(text[begin.end() : begin.end() + _LONGEST]) if begin else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        listed = None
    if not isinstance(listed, list):
        wanted = "must be 'Calling tools:' and a list of calls as Python writes it"
        message.faults.add((*message.path, "content"), f"{wanted}, got {short(text)}")
        return
    if log.messages and log.messages[-1].role == "assistant" and not log.messages[-1].calls:
        said = log.messages[-1]
        thoughts = [*said.reasoning, *filter(str.strip, [said.text])]
        log.messages[-1] = replace(said, role="thought", text="", reasoning=thoughts)
    calls = [_call(Fields(one, message.path, message.faults)) for one in listed]
    log.add(Message("assistant", calls=calls), message.path)
    for call in calls:
        if call.name == FINAL:
            answer = call.arguments.get("answer", next(iter(call.arguments.values()), ""))
            log.add(Message("assistant", answer if isinstance(answer, str) else repr(answer)), message.path)


def _call(raw: Fields) -> ChatCall:
    function = raw.mapping("function", required=True)
    name, given = function.name("name", required=True) or "?", function.raw("arguments")
    if isinstance(given, str) and name in (INTERPRETER, FINAL):
        arguments: dict[str, Any] = {"code" if name == INTERPRETER else "answer": given}
    else:
        arguments = function.arguments("arguments")
    return ChatCall(name, arguments, raw.identity("id"), settled=name == FINAL)


def _take_response(message: Fields, text: str, log: MessageLog) -> None:
    """Add an observation or an error; the output of code that gives the final answer is the answer."""
    failed = _FAILED.match(text)
    last = next((one for one in reversed(log.messages) if one.calls), None)
    open_calls = bool(log.messages) and log.messages[-1] is last
    if failed is not None:
        reason = _RETRY.sub("", text[failed.end() :]).strip()
        if open_calls or failed["id"]:
            log.add(tool_message(reason, (failed["id"] or "").strip() or None, failed=True), message.path)
        else:
            log.add(Message("assistant", error=reason), message.path)
        return
    observed = _OBSERVED.match(text)
    result_text = text[observed.end() :] if observed else text
    latest = last.calls[-1] if last is not None else None
    if log.messages and log.messages[-1].role == "assistant" and latest is not None and latest.name == FINAL:
        return  # it repeats the answer
    if open_calls and last is not None and len(last.calls) > 1:
        log.doubt(message.path, SEVERAL)
    log.add(tool_message(result_text, None), message.path)
    code = str(latest.arguments.get("code", "")) if latest is not None and latest.name == INTERPRETER else ""
    output = _LAST_OUTPUT.search(result_text)
    if f"{FINAL}(" in code and output is not None and output[1].strip() not in ("", "None"):
        log.add(Message("assistant", output[1].strip()), message.path)


_DIALECT = Dialect(NAME, _take, has_role, {"messages": None})
read = _DIALECT.read
