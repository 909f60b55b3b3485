"""Spans of Google's Agent Development Kit (``gcp.vertex.agent.*``)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from agentic_bayes.records.formats.spans.otel.attributes import RawSpan
from agentic_bayes.records.wire.chat import Message
from agentic_bayes.records.wire.tracing.messages import SpanMessages, json_of
from agentic_bayes.records.wire.tracing.spans import Span, SpanKind
from agentic_bayes.records.wire.tracing.steps import take_call, take_step

MERGED = "(merged tools)"
"""The name of a span that repeats the results of the calls before it."""

_PREFIX = "gcp.vertex.agent."
_MADE_UP = re.compile(r"(.+)_\d+")


def kind_of(raw: RawSpan, span: Span) -> SpanKind:
    """What a span is, where the GenAI conventions do not say it."""
    return "step" if any(key.startswith(_PREFIX) for key in raw.attributes) else "none"


def take(span: Span, raw: RawSpan, messages: SpanMessages) -> None:
    """Read the requests, replies, arguments and results that stand in attributes of this product."""
    found = {key: raw.attributes.get(_PREFIX + key) for key in ("llm_request", "llm_response")}
    given, returned = (json_of(text) if isinstance(text, str) else None for text in found.values())
    arguments, result = (raw.attributes.get(_PREFIX + key) for key in ("tool_call_args", "tool_response"))
    if span.kind == "tool" and span.call and arguments is not None and not span.call.arguments:
        result = None if result == "{}" else result  # not recorded
        take_call(span, span.call.name, arguments, result, span.call.id, messages)
    elif span.kind == "chat" and (given or returned):
        take_step(span, given, returned, messages)
    called = {call.name for message in (*span.inputs, *span.outputs) for call in message.calls}
    span.inputs, span.outputs = (list(_without_ids(side, called)) for side in (span.inputs, span.outputs))


def _without_ids(messages: Iterable[Message], called: set[str]) -> Iterable[Message]:
    """Messages without ids like ``weather_1``: they number parts, so a result may have that of another call."""
    for message in messages:
        calls = [replace(call, id=None) if _names(call.id) == call.name else call for call in message.calls]
        tool = _names(message.answers)
        yield replace(message, answers=None, tool=tool) if tool in called else replace(message, calls=calls)


def _names(identity: str | None) -> str | None:
    made_up = _MADE_UP.fullmatch(identity or "")
    return made_up[1] if made_up else None
