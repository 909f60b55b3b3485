"""Read spans with free-form input and output: whatever a program passed to a step or tool, and got back."""

from __future__ import annotations

import ast
import json
from typing import Any

from agentic_bayes.records.wire.chat import ChatCall, Message, failure
from agentic_bayes.records.wire.fields import Fields, fitting
from agentic_bayes.records.wire.tracing.messages import SpanMessages, json_of, plain, text_of
from agentic_bayes.records.wire.tracing.spans import Span

_ASKED = ("input", "question", "query", "prompt", "message", "content", "contents", "text")
_LONGEST = 1_000_000  # characters of arguments written as Python
_SAID = ("output", "answer", "response", "result", "final_output", "message", "content", "text")


def take_step(span: Span, given: Any, returned: Any, messages: SpanMessages) -> None:
    """Read the input and output of a model, agent or step: as messages, as text, or as data that is kept as JSON."""
    asked = messages.anywhere(given, "user", ("input",))
    structured = asked is not None
    if asked is None:
        text, span.raw_input = text_of(fitting(given, ("input",), messages.faults), _ASKED)
        asked = [Message("user", text)] if text else []
    said = messages.anywhere(returned, "assistant", ("output",))
    structured = structured or said is not None
    if said is None:
        text, span.raw_output = text_of(fitting(returned, ("output",), messages.faults), _SAID)
        said = [Message("assistant", text)] if text is not None else []
    span.only_text = not structured
    span.take_dialogue(asked, _new(said))


def _new(said: list[Message]) -> list[Message]:
    """What an agent said and did, without the dialogue up to the user's last message, which a state holds too."""
    users = [place for place, message in enumerate(said) if message.role == "user"]
    return said[users[-1] + 1 :] if users else said


def take_call(span: Span, name: Any, arguments: Any, result: Any, identity: str | None, messages: SpanMessages) -> None:
    """Read a tool's own span."""
    arguments = _arguments(arguments)
    if isinstance(arguments, dict) and arguments.keys() == {"input"}:  # LangChain's callbacks give a text
        inner = _arguments(arguments["input"])
        arguments = inner if isinstance(inner, dict) else arguments
    if isinstance(arguments, (list, int, float)) and not isinstance(arguments, bool):
        arguments = {"args": arguments}
    source = Fields({"name": name or "?", "arguments": arguments}, ("input",), messages.faults)
    called = messages.named_call(source, identity, "arguments")
    answered, value = _result(result)
    span.call = ChatCall(called.name, called.arguments, identity or answered)
    if value is not None:
        span.result = (fitting(value, ("output",), messages.faults),)
    elif span.error is not None:
        span.result = ({"error": span.error},)


def _arguments(value: Any) -> Any:
    """Arguments that are written as JSON or, by LangChain, as Python writes an object."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
        return value
    if (packed := json_of(value)) is not None:
        return packed
    try:
        found = json.loads(json.dumps(ast.literal_eval(value.strip()))) if len(value) <= _LONGEST else None
        return found if isinstance(found, dict) else value
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return value


def _result(result: Any) -> tuple[str | None, Any]:
    """A tool's result, and the id of the call that it names: some tools return a whole message."""
    packed = json_of(result)
    if isinstance(packed, dict):
        if len(packed) == 1 and isinstance(inner := packed.get("output"), (dict, str)):
            return _result(inner)
        body = packed.get("kwargs") if packed.get("lc") and isinstance(packed.get("kwargs"), dict) else packed
        if isinstance(body, dict) and "tool_call_id" in body and "content" in body:
            identity, content = body["tool_call_id"], plain(body["content"])
            value = failure(content) if body.get("status") == "error" else content
            return identity if isinstance(identity, str) and identity else None, value
    return None, packed if isinstance(packed, str) else plain(result)
