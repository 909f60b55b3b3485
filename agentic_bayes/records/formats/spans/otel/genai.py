"""GenAI semantic conventions: current names (messages in attributes), and earlier ones.

Earlier ones are messages in events, in numbered attributes like ``gen_ai.prompt.0.content``, or as one text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agentic_bayes.formatting import text_or_json
from agentic_bayes.records.base import short
from agentic_bayes.records.formats.spans.otel.adk import MERGED
from agentic_bayes.records.formats.spans.otel.attributes import Event, RawSpan
from agentic_bayes.records.wire.chat import Message, Role
from agentic_bayes.records.wire.fields import Fields, fitting
from agentic_bayes.records.wire.offered import offered_tools
from agentic_bayes.records.wire.tracing.messages import SpanMessages, call_id, json_of
from agentic_bayes.records.wire.tracing.spans import Rating, Span, SpanKind

_KINDS: dict[str, SpanKind] = {
    **dict.fromkeys(("chat", "completion", "text_completion", "generate_content"), "chat"),
    **dict.fromkeys(("invoke_agent", "invoke_workflow"), "agent"),
    "execute_tool": "tool",
    **dict.fromkeys(
        (
            *("create_agent", "execute_event_loop_cycle", "embeddings", "embedding", "retrieval", "rerank"),
            *("execute_task", "create_task", "plan", "search_memory", "create_memory", "update_memory"),
            *("upsert_memory", "delete_memory", "create_memory_store", "delete_memory_store"),
        ),
        "step",
    ),
}
_EVENT_ROLES: dict[str, Role] = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
DETAILS = "gen_ai.client.inference.operation.details"
RATED = "gen_ai.evaluation.result"
SAYS_MORE = frozenset({*_EVENT_ROLES, "gen_ai.choice", "gen_ai.content.prompt", "gen_ai.content.completion", DETAILS})
"""Events that hold messages."""

_NUMBERED = re.compile(r"gen_ai\.(prompt|completion)\.(\d+)\.(?:tool_calls\.(\d+)\.)?(\w+)")
_OFFERED = re.compile(r"llm\.request\.functions\.(\d{1,4})\.(name|description|parameters|input_schema)")
_LONGEST_NUMBER = 9


def kind_of(raw: RawSpan, span: Span) -> SpanKind:
    """What a span is; an operation that this version does not know is noted."""
    attributes = raw.attributes
    operation = attributes.get("gen_ai.operation.name") or attributes.get("llm.request.type")
    names = {key for key in attributes if key.startswith("gen_ai.")}
    said = any(event.name in SAYS_MORE for event in raw.events)
    if not names and not said:
        return "none"
    if attributes.get("gen_ai.tool.name") == MERGED:
        return "step"
    if isinstance(operation, str) and operation:
        if operation in _KINDS:
            return _KINDS[operation]
        span.unknown[f"spans of operation {short(operation)}"] += 1
    if "gen_ai.tool.name" in names or "gen_ai.tool.call.id" in names:
        return "tool"
    if said or any(name.startswith(("gen_ai.prompt", "gen_ai.completion", "gen_ai.request.")) for name in names):
        return "chat"
    if names & {"gen_ai.input.messages", "gen_ai.output.messages"}:
        return "chat"
    return "agent" if "gen_ai.agent.name" in names else "step"


def take(span: Span, raw: RawSpan, messages: SpanMessages) -> None:
    """Read what the conventions say about a span of this kind."""
    given = Fields(raw.attributes, ("attributes",), raw.faults)
    span.model = _text(raw.attributes, "gen_ai.response.model") or _text(raw.attributes, "gen_ai.request.model")
    span.tokens = (
        _count(given, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        _count(given, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    )
    span.tools = offered(raw.attributes)
    if span.kind == "tool":
        _take_call(span, raw, messages)
    elif span.kind in ("chat", "agent"):
        take_messages(span, raw.attributes, raw.events, messages)
        # Pydantic AI: what the run gave, be it through an output tool
        if span.kind == "agent" and (final := raw.attributes.get("final_result")) is not None:
            span.outputs = [Message("assistant", text_or_json(final))]


def _text(attributes: Mapping[str, Any], key: str) -> str | None:
    value = attributes.get(key)
    return value if isinstance(value, str) and value.strip() else None


def _count(attributes: Fields, *keys: str) -> int:
    """The number under the first of these keys that is present; 0 if none is."""
    return next((attributes.whole(key) for key in keys if key in attributes), None) or 0


def offered(attributes: Mapping[str, Any]) -> list[Any]:
    """The tools that a span offers, each as an object with its name, or just the name."""
    if listed := offered_tools(attributes.get("gen_ai.tool.definitions")):
        return listed
    numbered: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if (parts := _OFFERED.fullmatch(key)) and value is not None:
            packed = json_of(value) if isinstance(value, str) and parts[2] in ("parameters", "input_schema") else None
            numbered.setdefault(int(parts[1]), {})[parts[2]] = value if packed is None else packed
    return offered_tools([numbered[number] for number in sorted(numbered)])


def rating(event: Event) -> Rating:
    """A score by an evaluator."""
    prefix, attributes = "gen_ai.evaluation.", event.attributes
    notes = {"label": attributes.get(f"{prefix}score.label"), "explanation": attributes.get(f"{prefix}explanation")}
    return Rating(
        event.time,
        str(attributes.get(f"{prefix}name") or "score"),
        attributes.get(f"{prefix}score.value"),
        {key: text for key, text in notes.items() if isinstance(text, str)},
    )


def _take_call(span: Span, raw: RawSpan, messages: SpanMessages) -> None:
    # logfire's earlier names come second
    names = {
        "name": ("gen_ai.tool.name",),
        "id": ("gen_ai.tool.call.id",),
        "arguments": ("gen_ai.tool.call.arguments", "tool_arguments"),
        "result": ("gen_ai.tool.call.result", "tool_response"),
    }
    found = {
        name: next((raw.attributes[key] for key in keys if raw.attributes.get(key) is not None), None)
        for name, keys in names.items()
    }
    called = Fields(found, ("attributes",), raw.faults)
    span.call = messages.named_call(called, call_id(called, "id"), "arguments")
    if found["result"] is not None:
        span.result = (found["result"],)
    elif span.error is not None:
        span.result = ({"error": span.error},)


def _are_drafts(output: Any) -> bool:
    """Whether a model's output is several answers: the conventions list one message per choice."""
    listed = json_of(output)
    return isinstance(listed, list) and all(
        isinstance(one, dict) and one.get("finish_reason") == "stop" for one in listed
    )


def take_messages(span: Span, attributes: Mapping[str, Any], events: Sequence[Event], messages: SpanMessages) -> None:
    """Read the input and the output of a span in the first convention that has any: some programs write several."""
    details: Mapping[str, Any] = next((event.attributes for event in events if event.name == DETAILS), {})
    both = {**details, **attributes}

    def first_given(key: str, older: str, role: Role) -> list[Message]:
        return (
            messages.listed(both.get(key), role, ("attributes", key))
            or _numbered(attributes, older, role, messages)
            or _old(attributes, events, older, role, messages)
            or _from_events(events, messages, choices=role == "assistant")
        )

    asked = first_given("gen_ai.input.messages", "prompt", "user")
    said = first_given("gen_ai.output.messages", "completion", "assistant")
    if len(said) > 1 and (
        (both.get("gen_ai.request.choice.count") or 1) != 1
        or (span.kind == "chat" and _are_drafts(both.get("gen_ai.output.messages")))
    ):
        messages.unknown["several drafts of a message"] += len(said) - 1
        said = said[:1]
    system = _texts(both.get("gen_ai.system_instructions"))
    instructions = messages.listed(system, "system", ("attributes", "gen_ai.system_instructions"))
    span.take_dialogue([*instructions, *asked], said)


def _texts(instructions: Any) -> Any:
    """System instructions as one message; they come as its parts."""
    parsed = json_of(instructions)
    if isinstance(parsed, list):
        return [{"role": "system", "parts": parsed}]
    return None if instructions is None else [{"role": "system", "content": instructions}]


def _numbered(attributes: Mapping[str, Any], side: str, role: Role, messages: SpanMessages) -> list[Message]:
    """Messages whose fields are separate numbered attributes."""
    found: dict[int, dict[str, Any]] = {}
    calls: dict[int, dict[int, dict[str, Any]]] = {}
    for key, value in attributes.items():
        parts = _NUMBERED.fullmatch(key)
        if parts is None or parts[1] != side:
            continue
        if max(len(parts[2]), len(parts[3] or "")) > _LONGEST_NUMBER:
            wrong = f"must count messages and calls by numbers of at most {_LONGEST_NUMBER} digits, got {short(key)}"
            messages.faults.add(("attributes",), wrong)
            continue
        place = int(parts[2])
        message = found.setdefault(place, {})
        if parts[3] is None:
            message[parts[4]] = value
        else:
            calls.setdefault(place, {}).setdefault(int(parts[3]), {})[parts[4]] = value
    for place, by_number in calls.items():
        found[place]["tool_calls"] = [by_number[number] for number in sorted(by_number)]
    paths = ((place, (f"gen_ai.{side}.{place}",)) for place in sorted(found))
    return [message for place, path in paths for message in messages.one(found[place], role, path)]


def _old(
    attributes: Mapping[str, Any], events: Sequence[Event], side: str, role: Role, messages: SpanMessages
) -> list[Message]:
    """Messages as one text in an attribute or event: a JSON list of messages, or plain text."""
    key = f"gen_ai.{side}"
    for found in (attributes, *(event.attributes for event in events if event.name == f"gen_ai.content.{side}")):
        value = found.get(key)
        if isinstance(json_of(value), list):
            return messages.listed(value, role, ("attributes", key))
        if isinstance(value, str) and value:
            return [Message(role, value)]
    return []


def _from_events(events: Sequence[Event], messages: SpanMessages, *, choices: bool) -> list[Message]:
    """Messages that are separate events, in their order."""
    listed: list[Message] = []
    for event in events:
        role = _EVENT_ROLES.get(event.name)
        body = dict(event.attributes)
        content = body.pop("gen_ai.event.content", None)
        if isinstance(packed := json_of(content), dict):
            body |= packed
        if event.name == "gen_ai.choice" and choices:
            if body.get("index") not in (None, 0, "0"):
                messages.unknown["several drafts of a message"] += 1
                continue
            body = _choice(body)
            role = "assistant"
        elif role is None or choices:
            continue
        if role == "tool":
            body.setdefault("tool_call_id", body.get("id"))
        if isinstance(packed := body.get("tool_calls"), str):
            # unreadable text stays and is refused later
            body["tool_calls"] = None if packed.strip() in ("", "null") else json_of(packed) or packed
        listed += messages.one(fitting(body, (event.name,), messages.faults), role, (event.name,))
    return listed


def _choice(body: dict[str, Any]) -> dict[str, Any]:
    """The message of a choice: an object, its JSON text, plain text, or spread over several attributes."""
    spread = {key.removeprefix("message."): value for key, value in body.items() if key.startswith("message.")}
    message = body.get("message")
    if isinstance(message, str):
        parsed = json_of(message)
        message = parsed if isinstance(parsed, dict) else {"content": message}
    plain = {key: body[key] for key in ("content", "tool_calls") if body.get(key) is not None}
    return {**plain, **(message if isinstance(message, dict) else {}), **spread, "role": "assistant"}
