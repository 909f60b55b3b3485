"""Read messages of Amazon Bedrock's Converse API: transcripts, requests with their replies, and invocation logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

from agentic_bayes.records.wire import message_log
from agentic_bayes.records.wire.content.blocks import take_blocks
from agentic_bayes.records.wire.content.parts import unknown_part
from agentic_bayes.records.wire.fields import Fields
from agentic_bayes.records.wire.layout import Shape
from agentic_bayes.records.wire.message_log import FOREIGN, Dialect, FieldPath, MessageLog, has_role

NAME = "bedrock"
MEDIA = {**{kind: kind for kind in ("image", "document", "video", "audio")}, "searchResult": "search_result"}
KINDS = ("text", "toolUse", "toolResult", "reasoningContent", "citationsContent", "guardContent", *MEDIA)
IGNORED = frozenset({"cachePoint"})
MARKS = frozenset(f"content:{kind}" for kind in ("toolUse", "toolResult", "reasoningContent", "citationsContent"))
"""What only messages of this format hold."""


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    if shape.record_keys & FOREIGN:
        return False
    record = shape.record
    return message_log.looks_like(shape, _is_ours, ("messages",)) or bool(unwrap(record)) or _reply(record) is not None


def _is_ours(value: Any) -> bool:
    """Whether this is certainly a message: its blocks have no type, and one of the members that blocks have."""
    if not isinstance(value, dict) or value.get("role") not in ("user", "assistant"):
        return False
    content = value.get("content")
    if not isinstance(content, list) or not content:
        return False
    return all(isinstance(one, dict) and "type" not in one and one.keys() & {*KINDS, *IGNORED} for one in content)


def unwrap(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """The members of a request that stands next to its reply, or in an invocation log."""
    request, response = about.get("request"), about.get("response")
    if isinstance(about.get("input"), dict) and isinstance(about.get("output"), dict):
        request, response = about["input"].get("inputBodyJson"), about["output"].get("outputBodyJson")
    if not isinstance(request, dict) or not isinstance(request.get("messages"), list) or _reply(response) is None:
        return {}
    assert isinstance(response, dict)
    model = about.get("modelId", request.get("modelId"))
    return {**request, "output": response["output"], "model": model, "usage": response.get("usage")}


def _reply(value: Any) -> dict[str, Any] | None:
    """The message of a reply."""
    output = value.get("output") if isinstance(value, dict) else None
    if isinstance(output, dict) and isinstance(output.get("outputBodyJson"), dict):  # an invocation log
        output = output["outputBodyJson"].get("output")
    message = output.get("message") if isinstance(output, dict) else None
    return message if isinstance(message, dict) and isinstance(message.get("content"), list) else None


def _take(value: Any, path: FieldPath, log: MessageLog) -> None:
    message = Fields(value, path, log.faults)
    content = message.raw("content")
    if path[:1] == ("system",) or not isinstance(content, list):
        if path[:1] != ("system",) or "text" in message:
            take_blocks(value, path, log)
        return
    place = (*path, "content")
    blocks = [block for n, part in enumerate(content) for block in _block(Fields(part, (*place, n), log.faults), log)]
    take_blocks({**value, "content": blocks}, path, log)


def _block(part: Fields, log: MessageLog) -> Iterator[dict[str, Any]]:
    """A block as typed blocks: one for each of its members, of which it should have one."""
    for kind, content in part.value.items():
        if content is not None:
            yield from _typed(part, kind, log)


def _typed(part: Fields, kind: str, log: MessageLog) -> Iterator[dict[str, Any]]:
    match kind:
        case "text":
            yield {"type": "text", "text": part.text("text")}
        case "toolUse":
            call = part.mapping("toolUse")
            about = {"id": call.raw("toolUseId"), "name": call.raw("name"), "input": call.raw("input")}
            yield {"type": "server_tool_use" if call.raw("type") == "server_tool_use" else "tool_use", **about}
        case "toolResult":
            yield _result(part.mapping("toolResult"), log)
        case "reasoningContent":
            thought = part.mapping("reasoningContent").mapping("reasoningText").text("text")
            yield {"type": "thinking", "thinking": thought or ""}
        case "citationsContent":
            for piece in part.mapping("citationsContent").mappings("content"):
                yield {"type": "text", "text": piece.text("text")}
        case "guardContent" if "text" in part.mapping(kind):
            yield {"type": "text", "text": part.mapping(kind).mapping("text").text("text")}
        case _ if kind in MEDIA:
            yield {"type": MEDIA[kind]}
        case _ if kind not in IGNORED:
            unknown_part(part, kind, log.doubt)
            yield {"type": "text", "text": f"[{kind[:40]}]"}


def _result(result: Fields, log: MessageLog) -> dict[str, Any]:
    about = {"tool_use_id": result.raw("toolUseId"), "is_error": result.raw("status") == "error"}
    content = result.mappings("content")
    if len(content) == 1 and "json" in content[0]:
        return {"type": "json_tool_result", **about, "content": content[0].raw("json")}
    if any("json" in one for one in content):
        return {"type": "json_tool_result", **about, "content": [dict(one.value) for one in content]}
    return {"type": "tool_result", **about, "content": [block for one in content for block in _block(one, log)]}


def _take_reply(about: Fields, log: MessageLog) -> None:
    message = _reply(about.value)
    if message is None:
        return
    before = len(log.messages)
    log.add_reply([message], ("output", "message"), _take)
    usage = about.mapping("usage")
    log.add_tokens((usage.whole("inputTokens") or 0, usage.whole("outputTokens") or 0), since=before)


def _half(about: Mapping[str, Any], found: Set[str]) -> tuple[FieldPath, str] | None:
    if "messages" in found or "messages" in about or _reply(about) is None:
        return None
    return ("output",), "holds a reply without its request: add the request's `messages`"


_DIALECT = Dialect(
    NAME, _take, has_role, {"system": "system", "messages": None}, reply=_take_reply, half=_half, unwrap=unwrap
)
read = _DIALECT.read
