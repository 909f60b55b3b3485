"""Spans of single products: Vercel's AI SDK (``ai.*``) and the SDKs of Langfuse (``langfuse.observation.*``)."""

from __future__ import annotations

from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.formats.spans.otel.attributes import RawSpan
from agentic_bayes.records.wire.offered import offered_tools
from agentic_bayes.records.wire.tracing.messages import SpanMessages, json_of, unpacked
from agentic_bayes.records.wire.tracing.objects import usage_in
from agentic_bayes.records.wire.tracing.spans import Span, SpanKind
from agentic_bayes.records.wire.tracing.steps import take_call, take_step

_LANGFUSE = "langfuse.observation."
_OBSERVED: dict[str, SpanKind] = {
    "generation": "chat",
    "agent": "agent",
    "tool": "tool",
    **dict.fromkeys(("span", "event", "chain", "retriever", "embedding"), "step"),
    **dict.fromkeys(("evaluator", "guardrail"), "aside"),
}
_CALLS_MODEL = (".doGenerate", ".doStream")
_RUNS = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")
_EMBEDS = ("ai.embed", "ai.embedMany", "ai.rerank")


def kind_of(raw: RawSpan, span: Span) -> SpanKind:
    """What a span is; an operation that this version does not know is noted."""
    observed = raw.attributes.get(_LANGFUSE + "type")
    if isinstance(observed, str) and observed:
        if observed not in _OBSERVED:
            span.unknown[f"observations of type {short(observed)}"] += 1
        return _OBSERVED.get(observed, "step")
    operation = raw.attributes.get("ai.operationId")
    if not isinstance(operation, str) or not operation:
        return "none"
    if operation == "ai.toolCall":
        return "tool"
    if operation.endswith(_CALLS_MODEL):
        return "step" if operation.startswith(_EMBEDS) else "chat"
    if operation not in (*_RUNS, *_EMBEDS) and not operation.startswith(_EMBEDS):
        span.unknown[f"spans of operation {short(operation)}"] += 1
    return "agent" if operation in _RUNS else "step"


def take(span: Span, raw: RawSpan, messages: SpanMessages) -> None:
    """Read what the product says about a span of this kind."""
    given, returned = (unpacked(raw.attributes.get(_LANGFUSE + side)) for side in ("input", "output"))
    name: Any = raw.name
    arguments, result, identity = given, returned, None
    if "ai.operationId" in raw.attributes:
        given, returned = _asked(raw), _said(raw)
        name = raw.attributes.get("ai.toolCall.name")
        arguments, result = raw.attributes.get("ai.toolCall.args"), raw.attributes.get("ai.toolCall.result")
        called = raw.attributes.get("ai.toolCall.id")
        identity = called if isinstance(called, str) and called else None
    if span.kind == "tool":
        take_call(span, name, arguments, result, identity, messages)
    elif not (span.inputs or span.outputs):
        take_step(span, given, returned, messages)
    model = raw.attributes.get(_LANGFUSE + "model.name") or raw.attributes.get("ai.model.id")
    span.model = span.model or (model if isinstance(model, str) else None)
    if span.kind == "chat":
        usage = raw.attributes.get(_LANGFUSE + "usage_details")
        span.tokens = span.tokens if any(span.tokens) else usage_in(json_of(usage))
        span.tools = span.tools or offered_tools(given.get("tools") if isinstance(given, dict) else None)


def _asked(raw: RawSpan) -> Any:
    """The messages of a model call, or the prompt of a run: an object with messages, a prompt or both."""
    listed = raw.attributes.get("ai.prompt.messages")
    value = listed if listed is not None else raw.attributes.get("ai.prompt")
    found = unpacked(value)
    if isinstance(found, dict) and isinstance(found.get("prompt"), (str, list)) and not found.get("messages"):
        prompt = found["prompt"]
        found = {**found, "messages": [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt}
    return found


def _said(raw: RawSpan) -> Any:
    """The reply of a model as a message."""
    text = raw.attributes.get("ai.response.text", raw.attributes.get("ai.response.object"))
    calls = json_of(raw.attributes.get("ai.response.toolCalls"))
    thoughts = raw.attributes.get("ai.response.reasoning")
    if text is None and not calls and not thoughts:
        return None
    message = {"role": "assistant", "content": text, "tool_calls": calls or None, "reasoning": thoughts}
    return {key: value for key, value in message.items() if value is not None or key == "content"}
