"""OpenInference spans (Arize Phoenix and others): messages in flattened attributes, tools, annotations as scores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.formats.spans.otel.attributes import RawSpan
from agentic_bayes.records.wire.chat import Message, Role
from agentic_bayes.records.wire.fields import Fields
from agentic_bayes.records.wire.offered import offered_tools
from agentic_bayes.records.wire.tracing.messages import SpanMessages, call_id, json_of
from agentic_bayes.records.wire.tracing.spans import Rating, Span, SpanKind
from agentic_bayes.records.wire.tracing.steps import take_call, take_step

KIND = "openinference.span.kind"
_KINDS: dict[str, SpanKind] = {
    "LLM": "chat",
    "AGENT": "agent",
    "TOOL": "tool",
    **dict.fromkeys(("CHAIN", "RETRIEVER", "EMBEDDING", "RERANKER", "PROMPT", "DECISION", "UNKNOWN"), "step"),
    **dict.fromkeys(("GUARDRAIL", "EVALUATOR"), "aside"),
}
_PLACE = re.compile(r"\d{1,6}")
_RATED = ("annotations", "evaluations", "trace.annotations", "trace.evaluations")


def kind_of(raw: RawSpan, span: Span) -> SpanKind:
    """What a span is; a kind that this version does not know is noted."""
    named = raw.attributes.get(KIND)
    if isinstance(named, str) and named:
        if (kind := _KINDS.get(named.upper())) is not None:
            # the instrumentation of the OpenAI Agents SDK makes hand-offs tools, beside the calls that ask for them
            handed_over = kind == "tool" and "tool.name" not in raw.attributes and raw.name.startswith("handoff to ")
            return "step" if handed_over else kind
        span.unknown[f"spans of kind {short(named)}"] += 1
        return "step"
    return "chat" if any(key.startswith("llm.input_messages") for key in raw.attributes) else "none"


def take(span: Span, raw: RawSpan, messages: SpanMessages) -> None:
    """Read what OpenInference says about a span of this kind."""
    given = Fields(raw.attributes, ("attributes",), raw.faults)
    model = raw.attributes.get("llm.response.model_name") or raw.attributes.get("llm.model_name")
    span.model = span.model or (model if isinstance(model, str) else None)
    if not any(span.tokens):
        taken, said = given.whole("llm.token_count.prompt"), given.whole("llm.token_count.completion")
        span.tokens = taken or 0, said or 0
    span.ratings += _ratings(raw)
    if span.kind == "tool":
        _take_call(span, raw, messages)
        return
    if span.kind == "chat":
        _take_messages(span, raw, messages)
    if not (span.inputs or span.outputs):
        take_step(span, raw.attributes.get("input.value"), raw.attributes.get("output.value"), messages)


def nested(attributes: Mapping[str, Any], prefix: str) -> Any:
    """The value that attributes spell out under a prefix: ``a.0.b`` is the member ``b`` of the first ``a``."""
    if isinstance(attributes.get(prefix), list):
        return [_unflattened(item) for item in attributes[prefix]]
    within = {key[len(prefix) + 1 :]: value for key, value in attributes.items() if key.startswith(prefix + ".")}
    return _unflattened(within)


def _unflattened(value: Any) -> Any:
    """An object whose dotted keys became objects, and its numbers lists."""
    if isinstance(value, list):
        return [_unflattened(item) for item in value]
    if not isinstance(value, dict):
        return value
    grouped: dict[str, dict[str, Any]] = {}
    whole: dict[str, Any] = {}
    for key, item in value.items():
        head, dot, rest = key.partition(".")
        if dot:
            grouped.setdefault(head, {})[rest] = item
        else:
            whole[head] = _unflattened(item)
    for head, inner in grouped.items():
        found = _unflattened(inner)
        known = whole.get(head)
        whole[head] = {**known, **found} if isinstance(known, dict) and isinstance(found, dict) else found
    if whole and all(map(_PLACE.fullmatch, whole)):
        return [whole[place] for place in sorted(whole, key=int)]
    return whole


def _message(value: Any) -> Any:
    """A message with the members that other libraries give it."""
    message = value.get("message", value) if isinstance(value, dict) else value
    if not isinstance(message, dict):
        return message
    found = {key: message[key] for key in ("role", "content", "name", "tool_call_id") if key in message}
    calls = [call.get("tool_call", call) for call in message.get("tool_calls") or () if isinstance(call, dict)]
    if calls:
        found["tool_calls"] = calls
    if isinstance(name := message.get("function_call_name"), str) and message.get("role") == "assistant":
        found["function_call"] = {"name": name, "arguments": message.get("function_call_arguments_json")}
    contents = message.get("contents")
    if isinstance(contents, list) and contents:
        parts = [part.get("message_content", part) if isinstance(part, dict) else part for part in contents]
        # a part of this type only marks the place of a call that is listed among the calls
        marks = [
            part for part in parts if isinstance(part, dict) and part.get("type") == "tool_use" and "name" not in part
        ]
        found["content"] = [part for part in parts if not calls or part not in marks]
    return found


def _listed(raw: RawSpan, side: str, role: Role, messages: SpanMessages) -> list[Message]:
    """The messages of one side; some leave out who speaks."""
    listed = nested(raw.attributes, f"llm.{side}_messages")
    found = [_message(one) for one in listed] if isinstance(listed, list) else []
    return messages.listed(found, role, ("attributes", f"llm.{side}_messages"))


def _take_messages(span: Span, raw: RawSpan, messages: SpanMessages) -> None:
    asked = _listed(raw, "input", "user", messages) or _texts(raw, "prompts", "prompt", "user", messages)
    said = _listed(raw, "output", "assistant", messages)
    said = said or _texts(raw, "choices", "completion", "assistant", messages)
    if asked or said:
        span.take_dialogue(asked, said)
    schemas = nested(raw.attributes, "llm.tools")
    for one in schemas if isinstance(schemas, list) else ():
        tool = one.get("tool", one) if isinstance(one, dict) else one
        schema = tool.get("json_schema", tool) if isinstance(tool, dict) else tool
        span.tools += offered_tools([json_of(schema)])


def _texts(raw: RawSpan, several: str, single: str, role: Role, messages: SpanMessages) -> list[Message]:
    """Prompts and completions of models that take plain text."""
    listed = nested(raw.attributes, f"llm.{several}")
    objects = [one.get(single) for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    texts = [one.get("text") for one in objects if isinstance(one, dict)]
    found = [{"role": role, "content": text} for text in texts if isinstance(text, str)]
    return messages.listed(found, role, ("attributes", f"llm.{several}"))


def _take_call(span: Span, raw: RawSpan, messages: SpanMessages) -> None:
    attributes = raw.attributes
    name = attributes.get("tool.name") or attributes.get("tool_call.function.name") or raw.name
    arguments = attributes.get("tool_call.function.arguments")
    if arguments is None:
        arguments = attributes.get("input.value")
    identity = call_id(Fields({"id": attributes.get("tool_call.id")}, ("attributes",), raw.faults), "id")
    take_call(span, name, arguments, attributes.get("output.value"), identity, messages)


def _ratings(raw: RawSpan) -> list[Rating]:
    """The annotations of a span, in either of their names."""
    found = []
    for key in _RATED:
        single = key.rpartition(".")[2].removesuffix("s")
        listed = nested(raw.attributes, key)
        for one in listed if isinstance(listed, list) else ():
            about = one.get(single, one) if isinstance(one, dict) else {}
            if isinstance(about, dict) and about.keys() & {"score", "label"}:
                notes = {name: about[name] for name in ("label", "explanation") if isinstance(about.get(name), str)}
                found.append(Rating(raw.end, str(about.get("name") or single), about.get("score"), notes))
    return found
