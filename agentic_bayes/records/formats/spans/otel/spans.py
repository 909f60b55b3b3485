"""Read one OpenTelemetry GenAI span: its messages, call, error, tokens and scores, in current and older naming.

The names are those of the GenAI semantic conventions: current ones (messages in attributes) and earlier ones (messages
in events, or in numbered attributes like ``gen_ai.prompt.0.content``).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentic_bayes.records.base import short
from agentic_bayes.records.wire.chat import ChatCall, Message, Role, system_text, tool_message
from agentic_bayes.records.wire.fields import Faults, Fields, fitting
from agentic_bayes.records.wire.strict_json import strict_json

SpanKind = Literal["chat", "agent", "tool", "other", "none"]

_KINDS: dict[str, SpanKind] = {
    "chat": "chat",
    "completion": "chat",
    "text_completion": "chat",
    "generate_content": "chat",
    "invoke_agent": "agent",
    "execute_tool": "tool",
}
_TASK = ("agentic_bayes.task_id", "task_id", "test.case.id")
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
_EVENT_ROLES: dict[str, Role] = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_NUMBERED = re.compile(r"gen_ai\.(prompt|completion)\.(\d+)\.(?:tool_calls\.(\d+)\.)?(\w+)")
_LONGEST_NUMBER = 9
_UNTYPED = ("text", "toolUse", "toolResult")  # a part without a type has one of these members
_DETAILS = "gen_ai.client.inference.operation.details"
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


@dataclass(frozen=True, slots=True)
class Rating:
    """One evaluator's score."""

    time: int  # when, in nanoseconds
    name: str  # what was evaluated
    value: Any  # the score; None if the evaluator gave none
    notes: dict[str, str]  # label and explanation, if given


@dataclass(slots=True)
class Span:
    """The parts of a span that a conversation needs."""

    trace: str  # ids of the trace, of this span and of its parent (empty for the outermost)
    id: str
    parent: str = ""
    begin: int = 0  # nanoseconds; 0 if not recorded
    end: int = 0
    # a model call, an agent run, a tool call, another GenAI step, or anything else
    kind: SpanKind = "none"
    agent: str | None = None  # names that the span gives
    conversation: str | None = None
    task: str | None = None
    model: str | None = None
    # the input of the model or agent, starting with the user's last message
    inputs: list[Message] = field(default_factory=list)
    before: int = 0  # number of messages before these
    outputs: list[Message] = field(default_factory=list)  # its output
    system: str = ""  # its instructions
    call: ChatCall | None = None  # of a tool: the call
    result: tuple[Any, ...] = ()  # of a tool: its result, if recorded
    error: str | None = None  # why it failed
    tokens: tuple[int, int] = (0, 0)  # input and output tokens
    ratings: list[Rating] = field(default_factory=list)  # scores by evaluators
    not_finite: int = 0  # how many numbers that JSON cannot hold became null

    @property
    def order(self) -> tuple[int, str]:
        """Sort key: the spans of a trace by time."""
        return self.begin, self.id


def attributes_of(owner: Fields, key: str = "attributes") -> dict[str, Any]:
    """The attributes of a span, an event or a resource, or the members of an attribute that is an object."""
    found: dict[str, Any] = {}
    for pair in owner.mappings(key):
        name, value = pair.text("key", required=True), _value(pair.mapping("value"))
        if name is None:
            continue
        if name in found and found[name] != value:
            pair.faults.add((*pair.path, "key"), f"must be given once, got {short(name)} with two values")
        found[fitting(name, (*pair.path, "key"), pair.faults)] = fitting(value, (*pair.path, "value"), pair.faults)
    return found


def _value(value: Fields) -> Any:
    """Unwrap a typed value; an empty one is null."""
    kinds = [kind for kind in value.value if value.value[kind] is not None]
    if not kinds:
        return None
    kind, raw = kinds[0], value.value[kinds[0]]
    match kind:
        case "stringValue" | "bytesValue":
            return value.text(kind)
        case "boolValue" if isinstance(raw, bool):
            return raw
        case "intValue":
            return _whole(value, kind)
        case "doubleValue" if raw in _NOT_FINITE:
            return math.nan
        case "doubleValue" if isinstance(raw, (int, float)) and not isinstance(raw, bool):
            return raw
        case "arrayValue":
            return [_value(item) for item in value.mapping(kind).mappings("values")]
        case "kvlistValue":
            return attributes_of(value.mapping(kind), "values")
    allowed = "stringValue, boolValue, intValue, doubleValue, arrayValue, kvlistValue or bytesValue of its type"
    value.faults.add(value.path, f"must hold {allowed}, got {short(dict(value.value))}")
    return None


def _whole(owner: Fields, key: str) -> int | None:
    """A whole number, as a JSON number or as text, which OTLP uses for 64-bit integers."""
    raw = owner.raw(key)
    number: int | None = None
    if isinstance(raw, float) and raw.is_integer():
        number = int(raw)
    elif isinstance(raw, int) and not isinstance(raw, bool):
        number = raw
    elif isinstance(raw, str) and re.fullmatch(r"-?\d{1,20}", raw.strip()):
        number = int(raw)
    if number is not None and -(1 << 63) <= number < 1 << 64:
        return number
    if raw is not None:
        allowed = "a whole number, or the text of one" if number is None else "a whole number of at most 64 bits"
        owner.faults.add((*owner.path, key), f"must be {allowed}, got {short(raw)}")
    return None


def span_of(raw: Fields) -> Span | None:
    """The parts of a span that a conversation needs; None if it has no ids."""
    trace, identity = raw.text("traceId", required=True), raw.text("spanId", required=True)
    attributes = attributes_of(raw)
    events = [(event.text("name") or "", event, attributes_of(event)) for event in raw.mappings("events")]
    for key, value in (("traceId", trace), ("spanId", identity)):
        if value is not None and not value.strip():
            raw.faults.add((key,), "must not be blank")
    if not trace or not identity:
        return None
    span = Span(trace, identity, raw.text("parentSpanId") or "")
    fitting([trace, identity, span.parent], ("spanId",), raw.faults)
    span.begin, span.end = _whole(raw, "startTimeUnixNano") or 0, _whole(raw, "endTimeUnixNano") or 0
    span.kind = _kind(attributes, events)
    span.ratings = [_rating(event, found) for name, event, found in events if name == "gen_ai.evaluation.result"]
    if span.kind == "none" and not span.ratings:
        return span
    given = Fields(attributes, ("attributes",), raw.faults)
    span.agent, span.conversation = given.name("gen_ai.agent.name"), given.name("gen_ai.conversation.id")
    span.task = next((task for key in _TASK if (task := given.name(key)) is not None), None)
    span.model = given.name("gen_ai.response.model") or given.name("gen_ai.request.model")
    span.error = _error(raw, attributes, events)
    span.tokens = (
        _count(given, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        _count(given, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    )
    if span.kind == "tool":
        _take_call(span, attributes, raw.faults)
    elif span.kind in ("chat", "agent"):
        _take_messages(span, attributes, events, raw.faults)
    span.not_finite = raw.faults.not_finite
    return span


def _kind(attributes: Mapping[str, Any], events: list[Any]) -> SpanKind:
    operation = attributes.get("gen_ai.operation.name") or attributes.get("llm.request.type")
    names = {key for key in attributes if key.startswith("gen_ai.")}
    said = any(name.startswith("gen_ai.") and name != "gen_ai.evaluation.result" for name, *_ in events)
    if not names and not said:
        return "none"
    if isinstance(operation, str) and operation:
        return _KINDS.get(operation, "other")
    if "gen_ai.tool.name" in names or "gen_ai.tool.call.id" in names:
        return "tool"
    if said or any(name.startswith(("gen_ai.prompt", "gen_ai.completion", "gen_ai.request.")) for name in names):
        return "chat"
    if names & {"gen_ai.input.messages", "gen_ai.output.messages"}:
        return "chat"
    return "agent" if "gen_ai.agent.name" in names else "other"


def _count(attributes: Fields, *keys: str) -> int:
    """The number under the first of these keys that is present; 0 if none is."""
    return next((attributes.whole(key) for key in keys if key in attributes), None) or 0


def _error(raw: Fields, attributes: Mapping[str, Any], events: list[Any]) -> str | None:
    status = raw.mapping("status")
    failed = status.raw("code") in (2, "STATUS_CODE_ERROR", "ERROR", "Error")
    kind = attributes.get("error.type")
    if not failed and not kind:
        return None
    thrown: Mapping[str, Any] = next((found for name, _, found in reversed(events) if name == "exception"), {})
    message = status.text("message") or thrown.get("exception.message")
    kind = kind or thrown.get("exception.type")
    description = ": ".join(str(one).strip() for one in (kind, message) if one and str(one).strip())
    return description[:500] or "the span ended with status ERROR"


def _rating(event: Fields, attributes: Mapping[str, Any]) -> Rating:
    prefix = "gen_ai.evaluation."
    notes = {"label": attributes.get(f"{prefix}score.label"), "explanation": attributes.get(f"{prefix}explanation")}
    return Rating(
        _whole(event, "timeUnixNano") or 0,
        str(attributes.get(f"{prefix}name") or "score"),
        attributes.get(f"{prefix}score.value"),
        {key: text for key, text in notes.items() if isinstance(text, str)},
    )


def _take_call(span: Span, attributes: Mapping[str, Any], faults: Faults) -> None:
    names = {"name": "gen_ai.tool.name", "id": "gen_ai.tool.call.id", "arguments": "gen_ai.tool.call.arguments"}
    called = Fields({name: attributes.get(key) for name, key in names.items()}, ("attributes",), faults)
    span.call = _named_call(called, called.name("id"), "arguments")
    if attributes.get("gen_ai.tool.call.result") is not None:
        span.result = (attributes["gen_ai.tool.call.result"],)
    elif span.error is not None:
        span.result = ({"error": span.error},)


def _take_messages(span: Span, attributes: Mapping[str, Any], events: list[Any], faults: Faults) -> None:
    details: Mapping[str, Any] = next((found for name, _, found in events if name == _DETAILS), {})
    both = {**details, **attributes}
    asked = _first(
        _listed(both, "gen_ai.input.messages", "user", faults),
        _numbered(attributes, "prompt", "user", faults),
        _old(attributes, events, "prompt", "user", faults),
        _from_events(events, faults, choices=False),
    )
    said = _first(
        _listed(both, "gen_ai.output.messages", "assistant", faults),
        _numbered(attributes, "completion", "assistant", faults),
        _old(attributes, events, "completion", "assistant", faults),
        _from_events(events, faults, choices=True),
    )
    if (both.get("gen_ai.request.choice.count") or 1) != 1:
        said = said[:1]  # several drafts of one answer: use the first
    instructions = _listed({"system": _texts(both.get("gen_ai.system_instructions"))}, "system", "system", faults)
    instructions += [message for message in asked if message.role == "system"]
    span.system = "\n\n".join(dict.fromkeys(text for message in instructions if (text := system_text([message]))))
    users = [place for place, message in enumerate(asked) if message.role == "user"]
    begin = users[-1] if users else 0
    while begin and asked[begin - 1].role == "user":
        begin -= 1
    span.inputs, span.before = asked[begin:], sum(message.role != "system" for message in asked[:begin])
    span.outputs = said


def _first(*found: list[Message]) -> list[Message]:
    """The messages in the first convention that has any: some programs write several at once."""
    return next((messages for messages in found if messages), [])


def _texts(instructions: Any) -> Any:
    """System instructions as one message; they come as its parts."""
    parsed = _json(instructions) if isinstance(instructions, str) else instructions
    if isinstance(parsed, list):
        return [{"role": "system", "parts": parsed}]
    return None if instructions is None else [{"role": "system", "content": instructions}]


def _json(text: str) -> Any:
    """The value of JSON text; None if it is not JSON or repeats a key."""
    try:
        return strict_json(text, finite=False)
    except ValueError:
        return None


def _listed(attributes: Mapping[str, Any], key: str, role: Role, faults: Faults) -> list[Message]:
    """Messages as a list, or as the JSON text of a list."""
    value = attributes.get(key)
    if value is None or value == "":
        return []
    found = _json(value) if isinstance(value, str) else value
    if not isinstance(found, list):
        faults.add(("attributes", key), f"must be a list of messages, or such a list as JSON text, got {short(value)}")
        return []
    found = fitting(found, ("attributes", key), faults)
    each = (Fields(item, ("attributes", key, place), faults) for place, item in enumerate(found))
    return [message for item in each for message in _messages(item, role)]


def _numbered(attributes: Mapping[str, Any], side: str, role: Role, faults: Faults) -> list[Message]:
    """Messages whose fields are separate numbered attributes."""
    found: dict[int, dict[str, Any]] = {}
    calls: dict[int, dict[int, dict[str, Any]]] = {}
    for key, value in attributes.items():
        parts = _NUMBERED.fullmatch(key)
        if parts is None or parts[1] != side:
            continue
        if max(len(parts[2]), len(parts[3] or "")) > _LONGEST_NUMBER:
            wrong = f"must count messages and calls by numbers of at most {_LONGEST_NUMBER} digits, got {short(key)}"
            faults.add(("attributes",), wrong)
            continue
        place = int(parts[2])
        message = found.setdefault(place, {})
        if parts[3] is None:
            message[parts[4]] = value
        else:
            calls.setdefault(place, {}).setdefault(int(parts[3]), {})[parts[4]] = value
    for place, by_number in calls.items():
        found[place]["tool_calls"] = [by_number[number] for number in sorted(by_number)]
    listed = (Fields(found[place], (f"gen_ai.{side}.{place}",), faults) for place in sorted(found))
    return [message for item in listed for message in _messages(item, role)]


def _old(attributes: Mapping[str, Any], events: list[Any], side: str, role: Role, faults: Faults) -> list[Message]:
    """Messages as one text in an attribute or event: a JSON list of messages, or plain text."""
    key = f"gen_ai.{side}"
    held = [attributes, *(found for name, _, found in events if name == f"gen_ai.content.{side}")]
    for found in held:
        value = found.get(key)
        if isinstance(value, list) or (isinstance(value, str) and isinstance(_json(value), list)):
            return _listed(found, key, role, faults)
        if isinstance(value, str) and value:
            return [Message(role, value)]
    return []


def _from_events(events: list[Any], faults: Faults, *, choices: bool) -> list[Message]:
    """Messages that are separate events, in their order."""
    listed: list[Message] = []
    for name, _, attributes in events:
        role = _EVENT_ROLES.get(name)
        body = dict(attributes)
        content = body.pop("gen_ai.event.content", None)
        if isinstance(packed := _json(content) if isinstance(content, str) else content, dict):
            body |= packed
        if name == "gen_ai.choice" and choices:
            if body.get("index") not in (None, 0, "0"):
                continue
            body = _choice(body)
            role = "assistant"
        elif role is None or choices:
            continue
        if role == "tool":
            body.setdefault("tool_call_id", body.get("id"))
        if isinstance(packed := body.get("tool_calls"), str):
            # unreadable text stays and is refused later
            body["tool_calls"] = None if packed.strip() in ("", "null") else _json(packed) or packed
        listed += _messages(Fields(fitting(body, (name,), faults), (name,), faults), role)
    return listed


def _choice(body: dict[str, Any]) -> dict[str, Any]:
    """The message of a choice: an object, its JSON text, plain text, or spread over several attributes."""
    spread = {key.removeprefix("message."): value for key, value in body.items() if key.startswith("message.")}
    message = body.get("message")
    if isinstance(message, str):
        parsed = _json(message)
        message = parsed if isinstance(parsed, dict) else {"content": message}
    plain = {key: body[key] for key in ("content", "tool_calls") if body.get(key) is not None}
    return {**plain, **(message if isinstance(message, dict) else {}), **spread, "role": "assistant"}


def _messages(item: Fields, default: Role) -> Iterator[Message]:
    """Split one message into the speaker's text and calls, and the tool results it carries."""
    named = item.text("role")
    role = _ROLES.get(named.lower()) if named else default
    if role is None:
        item.faults.add((*item.path, "role"), f"must be system, user, assistant or tool, got {short(named)}")
        return
    texts: list[str] = []
    calls = [_call(call) for call in item.mappings("tool_calls")]
    results: list[Message] = []
    content = item.raw("parts") if "parts" in item else item.raw("content")
    if isinstance(content, str) and _are_parts(listed := _json(content)):
        content = fitting(listed, (*item.path, "content"), item.faults)
    if isinstance(content, list):
        for place, part in enumerate(content):
            if isinstance(part, str):
                texts.append(part)
            else:
                _take_part(Fields(part, (*item.path, "parts", place), item.faults), texts, calls, results)
    elif isinstance(content, str):
        texts.append(content)
    elif isinstance(content, dict) and role != "tool":
        texts.append(json.dumps(content, ensure_ascii=False))
    elif content is not None and role != "tool":
        item.faults.add((*item.path, "content"), f"must be text or a list of parts, got {short(content)}")
    text = "\n".join(part for part in texts if part)
    if role == "tool" and not results:
        result = content if content is not None and not isinstance(content, (str, list)) else None
        yield Message("tool", text, answers=item.name("tool_call_id") or item.name("id"), result=result)
        return
    if role != "tool" and (text or calls or not results):
        yield Message(role, text, calls)
    yield from results


def _are_parts(value: Any) -> bool:
    """Whether JSON text is a message in parts and not the text of an answer."""
    known = {"text", "tool_use", "tool_result", "tool_call", "tool_call_response", "image_url", "image", "thinking"}

    def is_part(part: Any) -> bool:
        if not isinstance(part, dict):
            return False
        kind = part.get("type")
        return kind in known if isinstance(kind, str) else "type" not in part and any(key in part for key in _UNTYPED)

    return isinstance(value, list) and bool(value) and all(map(is_part, value))


def _take_part(part: Fields, texts: list[str], calls: list[ChatCall], results: list[Message]) -> None:
    kind = part.raw("type") or next((key for key in _UNTYPED if key in part), None)
    match kind:
        case "text":
            texts.append(part.text("content") or part.text("text") or "")
        case "tool_call" | "tool_use":
            calls.append(_named_call(part, part.name("id"), "arguments", "input"))
        case "server_tool_call":
            calls.append(_named_call(part, part.name("id"), "server_tool_call"))
        case "toolUse":
            used = part.mapping("toolUse")
            calls.append(_named_call(used, used.name("toolUseId"), "input"))
        case "tool_call_response" | "server_tool_call_response":
            results.append(_result(part.name("id"), part, "response", "result", "content", "server_tool_call_response"))
        case "tool_result":
            results.append(_result(part.name("tool_use_id"), part, "content"))
        case "toolResult":
            used = part.mapping("toolResult")
            results.append(_result(used.name("toolUseId"), used, "content"))
        case "blob" | "uri" | "file":
            texts.append(f"({part.raw('modality') or kind})")
        case "image" | "image_url":
            texts.append("(image)")


def _result(identity: str | None, part: Fields, *keys: str) -> Message:
    return tool_message(next((part.raw(key) for key in keys if key in part), ""), identity)


def _named_call(source: Fields, identity: str | None, *keys: str) -> ChatCall:
    arguments = fitting(source.arguments(*keys), (*source.path, keys[0]), source.faults)
    return ChatCall(source.name("name", required=True) or "?", arguments, identity)


def _call(call: Fields) -> ChatCall:
    source = call.mapping("function") if isinstance(call.raw("function"), dict) else call
    return _named_call(source, call.name("id"), "arguments")
