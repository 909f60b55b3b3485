"""Read messages of the Vercel AI SDK: UI messages (with ``parts``) and model messages, of versions 4 to 6."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.wire import message_log
from agentic_bayes.records.wire.chat import Message
from agentic_bayes.records.wire.content.blocks import take_blocks
from agentic_bayes.records.wire.content.parts import content_text, part_kinds, unknown_part
from agentic_bayes.records.wire.fields import Fields
from agentic_bayes.records.wire.layout import Shape
from agentic_bayes.records.wire.message_log import FOREIGN, Dialect, FieldPath, MessageLog, has_role

NAME = "vercel"
ROLES = ("system", "user", "assistant", "tool", "data")
MARKS = frozenset(
    {"content:tool-call", "content:tool-result", ".toolInvocations", "content:tool-approval-request"}
    | {f"parts:{kind}" for kind in ("text", "step-start", "tool-invocation", "dynamic-tool", "reasoning")}
)
"""What only messages of this format hold."""

# parts of UI messages that are neither said nor done
_SILENT = frozenset({"step-start", "source", "source-url", "source-document", "tool-approval-response"})
# states of calls, in all versions, that have no result yet
WAITING = ("input-streaming", "input-available", "approval-requested", "approval-responded", "partial-call", "call")
_DENIED = "output-denied"


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    record = shape.record
    if "messages" in shape.record_keys and _answers(record):
        return True
    return not shape.record_keys & FOREIGN and message_log.looks_like(shape, _is_ours, ("messages",))


def _is_ours(value: Any) -> bool:
    """Whether this is certainly a message of this format, and not only one that looks like others'."""
    if not isinstance(value, dict) or value.get("role") not in ROLES:
        return False
    kinds = part_kinds(value.get("content"))
    return bool(part_kinds(value.get("parts"))) or "toolInvocations" in value or "tool-call" in kinds


def _take(value: Any, path: FieldPath, log: MessageLog) -> None:
    message = Fields(value, path, log.faults)
    role = message.text("role", required=True)
    if role == "data":  # not a part of the conversation
        log.doubt(path, "messages with the role 'data' were left out")
        return
    if role not in ROLES:
        if role is not None:
            message.faults.add((*path, "role"), f"must be {', '.join(ROLES)}, got {short(role)}")
        return
    if isinstance(message.raw("parts"), list):
        blocks = [block for part in message.mappings("parts") for block in _part(part, log)]
    elif isinstance(message.raw("content"), list) and "toolInvocations" not in message:
        blocks = [block for part in message.mappings("content") for block in _part(part, log)]
    else:
        if "content" not in message.value:
            message.faults.add((*path, "content"), "must be given, got nothing")
        text = message.text("content") or ""
        # version 4: the text came after the calls
        blocks = [block for call in message.mappings("toolInvocations") for block in _call(call)]
        blocks = [*_thought(message.raw("reasoning")), *blocks, {"type": "text", "text": text}]
    if role == "system":
        for block in blocks:
            if block["type"].endswith(("tool_use", "tool_result")):
                message.faults.add(path, "must not hold calls or results, which are not system text")
        spoken = message.inside({"content": [block for block in blocks if block["type"] == "text"]})
        log.add(Message("system", content_text(spoken, "content")), path)
        return
    take_blocks({"role": "user" if role == "tool" else role, "content": blocks}, path, log)


def _thought(text: Any) -> list[dict[str, Any]]:
    return [{"type": "thinking", "thinking": text}] if isinstance(text, str) and text.strip() else []


def _part(part: Fields, log: MessageLog) -> Iterator[dict[str, Any]]:
    """A part of a message as typed blocks."""
    kind = part.name("type", required=True) or ""
    match kind:
        case "text":
            yield {"type": "text", "text": part.text("text")}
        case "reasoning" if {"output", "result"} & part.value.keys():
            part.faults.add((*part.path, "type"), "must not be reasoning, as this is a result")
        case "reasoning" | "redacted-reasoning":
            yield from _thought(part.raw("text") or part.raw("reasoning"))
        case "tool-call" | "dynamic-tool":
            yield from _call(part)
        case "tool-result":
            yield _result(part)
        case "tool-invocation":
            yield from _call(part.mapping("toolInvocation", required=True))
        case "tool-approval-request":
            log.doubt(
                part.path, "requests for an approval were left out; a call that has none yet waits for its result"
            )
        case "image" | "file":
            media = str(part.raw("mediaType") or part.raw("mimeType") or "")
            yield {"type": "image" if kind == "image" or media.startswith("image") else "file"}
        case _ if kind.startswith("tool-") and kind not in _SILENT:
            yield from _call(part, kind.removeprefix("tool-"))
        case _ if kind.startswith("data-"):
            log.doubt(part.path, f"parts with data of your own ({short(kind)}) were left out")
        case _ if kind and kind not in _SILENT:
            unknown_part(part, kind, log.doubt)


def _call(part: Fields, name: str | None = None) -> Iterator[dict[str, Any]]:
    """A call, and its result if its state says that there is one."""
    named = name or part.name("toolName", required=True)
    key = next((key for key in ("input", "args", "rawInput") if key in part), "input")
    identity = part.raw("toolCallId")
    kind = "server_tool_use" if part.raw("providerExecuted") is True else "tool_use"
    yield {"type": kind, "id": identity, "name": named, "input": part.raw(key)}
    about = {"type": "json_tool_result", "tool_use_id": identity, "name": named}
    state = part.text("state")
    if state in ("output-available", "result"):
        value = part.raw("output") if state == "output-available" else part.raw("result")
        yield {**about, "content": value}
    elif state == "output-error":
        yield {**about, "content": part.text("errorText") or "", "is_error": True}
    elif state == _DENIED:
        yield {**about, "content": "the user denied the call", "is_error": True}
    elif state not in WAITING and (state is not None or any(key in part for key in ("output", "result", "errorText"))):
        part.faults.add((*part.path, "state"), f"must be the state of a call, output-available, got {short(state)}")


def _result(part: Fields) -> dict[str, Any]:
    """The result of a call in a message of its own: ``output`` says its type; version 4 had ``result``."""
    about = {"tool_use_id": part.raw("toolCallId"), "name": part.name("toolName")}
    failed = part.raw("isError") is True
    if not {"output", "result"} & part.value.keys():
        part.faults.add((*part.path, "output"), "must be given, got nothing")
    if not isinstance(part.raw("output"), dict):
        value = part.raw("result") if "output" not in part else part.raw("output")
        return {"type": "json_tool_result", **about, "content": value, "is_error": failed}
    output = part.mapping("output")
    kind = output.text("type") or ""
    failed = failed or kind.startswith("error") or kind == "execution-denied"
    if kind == "content":
        pieces = [_content(piece) for piece in output.mappings("value")]
        return {"type": "tool_result", **about, "content": pieces, "is_error": failed}
    value = output.raw("value") if "value" in output.value else output.raw("reason")
    return {"type": "json_tool_result", **about, "content": value, "is_error": failed}


def _content(piece: Fields) -> dict[str, Any]:
    kind = piece.text("type") or ""
    if kind == "text":
        return {"type": "text", "text": piece.text("text")}
    image = kind.startswith("image") or str(piece.raw("mediaType") or "").startswith("image")
    return {"type": "image" if image else "file"}


def _take_reply(about: Fields, log: MessageLog) -> None:
    """Add the messages that a call of the SDK returned, if they stand next to those that it was given."""
    if messages := _answers(about.value):
        log.add_reply(messages, ("response", "messages"), _take)


def _answers(about: Mapping[str, Any]) -> list[Any]:
    """The messages of the reply."""
    response = about.get("response")
    messages = response.get("messages") if isinstance(response, dict) else None
    return messages if isinstance(messages, list) and all(isinstance(one, dict) for one in messages) else []


_DIALECT = Dialect(NAME, _take, has_role, {"system": "system", "messages": None}, reply=_take_reply)
read = _DIALECT.read
