"""Read Gemini contents: histories, requests with their replies, and lines of batches, in camel or snake case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.wire import message_log
from agentic_bayes.records.wire.chat import Message
from agentic_bayes.records.wire.content.blocks import take_blocks
from agentic_bayes.records.wire.content.parts import unknown_part
from agentic_bayes.records.wire.fields import Fields
from agentic_bayes.records.wire.layout import Shape
from agentic_bayes.records.wire.message_log import FOREIGN, Dialect, FieldPath, MessageLog

NAME = "gemini"
ROLES = {"user": "user", "model": "assistant", "function": "user", "tool": "user", "system": "system"}
SYSTEM = ("systemInstruction", "system_instruction")
CODE = "code_execution"
"""The name under which code that the model ran is a call."""

_KINDS = frozenset({"text", "inlineData", "fileData", "functionCall", "functionResponse", "toolCall", "toolResponse"})
_KINDS |= {"executableCode", "codeExecutionResult"}
# members of a part that say nothing by themselves
_ABOUT = frozenset({"thought", "thoughtSignature", "videoMetadata", "partMetadata", "mediaResolution"})
_OF_A_REPLY = ("candidates", "usageMetadata", "usage_metadata", "modelVersion", "model_version")
_DATA = {"image": "image", "audio": "audio", "video": "video"}


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    if shape.record_keys & FOREIGN:
        return False
    record = shape.record
    first = shape.first.get("contents")
    inner = record.get("contents")
    ours = _is_ours(first) or (isinstance(inner, list) and bool(inner) and _is_ours(inner[0]))
    if isinstance(inner, str) and (shape.is_list or shape.complete):  # a request with nothing but text
        ours = any(key in record for key in (*SYSTEM, "config", "generationConfig")) or _is_reply(_unwrap(record))
    return ours or message_log.looks_like(shape, _is_ours, ("messages",)) or bool(_pair(record)) or _is_reply(record)


def _is_ours(value: Any) -> bool:
    """Whether this is certainly a message: its parts have no type, and a member that parts have."""
    listed = value.get("parts") if isinstance(value, dict) else None
    if not isinstance(listed, list) or not listed or str(value.get("role") or "user") not in ROLES:
        return False
    return all(isinstance(part, dict) and "type" not in part and _KINDS & set(map(_camel, part)) for part in listed)


def _pair(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """The members of a request that stands next to its reply."""
    request, response = about.get("request"), about.get("response")
    if not isinstance(request, dict) or "contents" not in request:
        return {}
    return {**request, **response} if isinstance(response, dict) and "candidates" in response else request


def _unwrap(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """The members of a request next to its reply, and what stands in its ``config``."""
    members = dict(_pair(about))
    response = about.get("response")
    if not members and "contents" in about and isinstance(response, dict):
        members = {key: value for key, value in response.items() if key in _OF_A_REPLY}
    config = members.get("config", about.get("config"))
    for source in (config if isinstance(config, dict) else {}, about, dict(members)):
        for key in SYSTEM:
            told = source.get(key)
            if told is not None:
                members["system"] = told if isinstance(told, (str, list)) else [told]
        if source.get("tools") is not None:
            members["tools"] = source["tools"]
    if isinstance(members.get("system"), list):  # texts, parts or messages
        members["system"] = [
            one
            if isinstance(one, dict) and "parts" in one
            else {"parts": [{"text": one} if isinstance(one, str) else one]}
            for one in members["system"]
        ]
    version = members.get("modelVersion", about.get("modelVersion"))
    return {**members, "model": version} if version and "model" not in about else members


def _is_reply(value: Mapping[str, Any]) -> bool:
    listed = value.get("candidates")
    return isinstance(listed, list) and any(isinstance(one, dict) and "content" in one for one in listed)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _in_camel_case(value: Any, path: FieldPath, log: MessageLog) -> Fields:
    """An object with its members that are not null, under their names in camel case."""
    fields = Fields(value, path, log.faults)
    return fields.inside({_camel(key): content for key, content in fields.value.items() if content is not None})


def _take(value: Any, path: FieldPath, log: MessageLog) -> None:
    message = Fields(value, path, log.faults)
    role = message.text("role") or "user"
    if role not in ROLES:
        message.faults.add((*path, "role"), f"must be {', '.join(ROLES)}, got {short(role)}")
        return
    place = (*path, "parts")
    if "parts" not in message.value and message.value.keys() - {"role"}:
        message.faults.add(place, "must be given, got nothing")
    listed = [_in_camel_case(part, (*place, n), log) for n, part in enumerate(message.sequence("parts"))]
    if path[:1] == ("system",) or role == "system":
        for part in listed:
            for kind in part.value.keys() - _ABOUT - {"text"}:
                unknown_part(part, kind, log.doubt)
        log.add(Message("system", "".join(part.text("text") or "" for part in listed)), path)
        return
    members = ((part, kind) for part in listed for kind in part.value if kind not in _ABOUT)
    blocks = [block for part, kind in members for block in _block(part, kind, log)]
    take_blocks({"role": ROLES[role], "content": blocks}, path, log)


def _block(part: Fields, kind: str, log: MessageLog) -> Iterator[dict[str, Any]]:
    """A part as a typed block, by the name of its member."""
    inner = _in_camel_case(part.raw(kind), (*part.path, kind), log) if isinstance(part.raw(kind), dict) else part
    match kind:
        case "text" if part.raw("thought") is True:
            yield {"type": "thinking", "thinking": part.text("text")}
        case "text":
            yield {"type": "text", "text": part.text("text")}
        case "functionCall":
            yield {"type": "tool_use", "id": inner.raw("id"), "name": inner.raw("name"), "input": inner.raw("args")}
        case "functionResponse":
            response = inner.raw("response")
            failed = isinstance(response, dict) and response.keys() == {"error"}
            for key in ("result", "output", "error"):
                if isinstance(response, dict) and response.keys() == {key}:
                    response = response[key]
            about = {"tool_use_id": inner.raw("id"), "name": inner.raw("name"), "is_error": failed}
            yield {"type": "json_tool_result", **about, "content": response}
        case "toolCall":  # Google's own tools
            yield {"type": "server_tool_use", "id": inner.raw("id"), "name": _tool(inner), "input": inner.raw("args")}
        case "toolResponse":
            about = {"tool_use_id": inner.raw("id"), "name": _tool(inner)}
            yield {"type": "json_tool_result", **about, "content": inner.raw("response")}
        case "executableCode":
            arguments = {key: inner.raw(key) for key in ("code", "language") if key in inner}
            yield {"type": "server_tool_use", "id": inner.raw("id"), "name": CODE, "input": arguments}
        case "codeExecutionResult":
            failed = inner.raw("outcome") not in (None, "OUTCOME_OK")
            about = {"tool_use_id": inner.raw("id"), "name": CODE, "is_error": failed}
            yield {"type": "code_execution_tool_result", **about, "content": inner.text("output") or ""}
        case "inlineData" | "fileData":
            media = (inner.text("mimeType") or "").partition("/")[0]
            yield {"type": _DATA.get(media, "file")}
        case _:
            unknown_part(part, kind, log.doubt)
            yield {"type": "text", "text": f"[{kind[:40]}]"}


def _tool(call: Fields) -> str:
    return (call.text("toolType") or "tool").lower()


def _take_reply(about: Fields, log: MessageLog) -> None:
    """Add the first candidate."""
    if "candidates" not in about:
        return
    candidates = about.mappings("candidates")
    if len(candidates) > 1:
        log.doubt(("candidates",), "a reply has several candidates: the first was read, the others were ignored")
    if not candidates:
        return
    usage = _in_camel_case(about.raw("usageMetadata") or about.raw("usage_metadata") or {}, ("usageMetadata",), log)
    thought = usage.whole("thoughtsTokenCount") or 0
    tokens = usage.whole("promptTokenCount") or 0, (usage.whole("candidatesTokenCount") or 0) + thought
    content = candidates[0].mapping("content")
    if content.value.get("parts"):
        before = len(log.messages)
        log.add_reply([{"role": "model", **content.value}], content.path, _take)
        log.add_tokens(tokens, since=before)
    else:
        reason = candidates[0].raw("finishReason") or candidates[0].raw("finish_reason")
        log.add(Message("assistant", error=f"the reply has no content ({short(reason)})"), content.path)


def _half(about: Mapping[str, Any], found: Set[str]) -> tuple[FieldPath, str] | None:
    if found & {"messages", "contents"} or about.keys() & {"messages", "contents"} or not _is_reply(about):
        return None
    return ("candidates",), "holds a reply without its request: add the request's `contents`"


_DIALECT = Dialect(
    NAME,
    _take,
    lambda value: "parts" in value,
    {"system": "system", "messages": None, "contents": "user"},
    frozenset({"contents"}),
    reply=_take_reply,
    half=_half,
    unwrap=_unwrap,
)
read = _DIALECT.read
