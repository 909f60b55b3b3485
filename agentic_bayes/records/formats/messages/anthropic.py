"""Read Anthropic messages: transcripts, requests with or next to their replies, and lines of Message Batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from io import BufferedReader
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.wire import message_log
from agentic_bayes.records.wire.chat import ChatCall, Message, named_call, tool_message
from agentic_bayes.records.wire.content import MARKS as PART_MARKS
from agentic_bayes.records.wire.content import THOUGHTS, content_text, part_kinds, thought_texts, unknown_part
from agentic_bayes.records.wire.fields import Fields
from agentic_bayes.records.wire.json_text import Parsed, parts
from agentic_bayes.records.wire.layout import STREAMED, Origin, Shape
from agentic_bayes.records.wire.message_log import FOREIGN, Dialect, FieldPath, MessageLog

NAME = "anthropic"
CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
RESULT = "tool_result"
"""How the types of results end: ``tool_result``, ``web_search_tool_result``, …"""

BLOCKS = CALLS | {RESULT, "redacted_thinking", "web_search_tool_result", "mcp_tool_result", "web_fetch_tool_result"}
BLOCKS |= {"code_execution_tool_result", "bash_code_execution_tool_result", "text_editor_code_execution_tool_result"}
MARKS = frozenset(f"content:{kind}" for kind in BLOCKS)
"""What only messages of this format hold."""

OF_A_REQUEST = frozenset({".system", ".stop_sequences", ".stop_reason"})
"""Members of its requests and replies, which others may have, too."""

BATCH_RESULTS = ("succeeded", "errored", "canceled", "expired")
HELD = "holds a reply without its request: add the request's `messages`"
# parts of a result that mean nothing to a reader
_ENCRYPTED = frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout"})


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    if shape.record_keys & FOREIGN:
        return False
    record = shape.item if isinstance(shape.item, dict) else shape.values
    if unwrap(record):
        return True
    if "role:user" not in shape.marks and not is_reply(record):
        return False
    whole = shape.is_list or shape.complete
    return bool(shape.marks & MARKS) or is_reply(record) or (whole and bool(shape.marks & OF_A_REQUEST))


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The conversations of a file."""
    return message_log.conversations(parts(stream, STREAMED), _DIALECT, origin)


def unwrap(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """The members of a conversation that is a line of Message Batches, or a request and its reply."""
    params, result = about.get("params"), about.get("result")
    members: dict[str, Any] = {}
    if isinstance(params, dict) and isinstance(params.get("messages"), list) and "custom_id" in about:
        members |= params
    if isinstance(result, dict) and str(result.get("type")) in BATCH_RESULTS and "custom_id" in about:
        members["reply"] = result.get("message")
        if result["type"] != "succeeded":
            error = result.get("error")
            inner = error.get("error") if isinstance(error, dict) else None
            members["error"] = inner if isinstance(inner, dict) else error or f"the request was {result['type']}"
    request, response = about.get("request"), about.get("response")
    if isinstance(request, dict) and isinstance(request.get("messages"), list) and is_reply(response):
        members |= {**request, "reply": response}
    return {key: value for key, value in members.items() if value is not None}


def is_reply(value: Any) -> bool:
    """Whether this is a message as the API returns it."""
    return isinstance(value, dict) and value.get("type") == "message" and isinstance(value.get("content"), list)


def take_message(value: Any, path: FieldPath, log: MessageLog) -> None:
    """Add a message with content blocks."""
    message = Fields(value, path, log.faults)
    if path[:1] == ("system",):
        log.add(Message("system", message.text("text", required=True) or ""), path)
        return
    named = message.text("role", required=True)
    log.model = log.model or message.text("model")
    if "content" not in message.value and named is not None:
        message.faults.add((*path, "content"), "must be given, got nothing")
    match named and named.lower():
        case "assistant":
            _take_answer(message, log)
        case "user":
            _take_question(message, log)
        case "system":
            log.add(Message("system", content_text(message, "content", doubt=log.doubt)), path)
        case str():
            message.faults.add((*path, "role"), f"must be user, assistant or system, got {short(named)}")


def _blocks(message: Fields) -> list[Fields]:
    """The content as blocks; plain text is one."""
    content = message.raw("content")
    if not isinstance(content, list):
        text = message.text("content")
        return [] if text is None else [Fields({"type": "text", "text": text}, message.path, message.faults)]
    path = (*message.path, "content")
    blocks = [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]
    return [Fields(block, (*path, position), message.faults) for position, block in enumerate(blocks)]


def _take_answer(message: Fields, log: MessageLog) -> None:
    """Add what the agent says and does: results of tools that the service ran stand among its own blocks."""
    usage = message.mapping("usage")
    read = sum(usage.whole(key) or 0 for key in ("cache_read_input_tokens", "cache_creation_input_tokens"))
    tokens = (usage.whole("input_tokens") or 0) + read, usage.whole("output_tokens") or 0
    said: list[dict[str, Any]] = []
    calls: list[ChatCall] = []
    thoughts: list[str] = []

    def flush() -> None:
        nonlocal tokens
        spoken = Fields({"content": said[:]}, message.path, message.faults)
        log.add(Message("assistant", content_text(spoken, "content"), calls[:], None, tokens=tokens), message.path)
        if thoughts:
            log.add_thoughts(thoughts[:], message.path)
        tokens = (0, 0)
        for pieces in said, calls, thoughts:
            pieces.clear()

    ends_with_result = False
    for block in _blocks(message):
        kind = block.text("type", required=True) or ""
        ends_with_result = False
        if kind in CALLS:
            call = named_call(block, "id", "input")
            calls.append(ChatCall(call.name, call.arguments, call.id, settled=kind != "tool_use"))
        elif kind.endswith(RESULT):
            flush()
            _take_result(block, kind, log)
            ends_with_result = True
        elif kind in THOUGHTS:
            thoughts += thought_texts(block)
        else:
            if kind and kind != "text" and kind not in PART_MARKS:
                unknown_part(block, kind, log.doubt)
            said.append(dict(block.value))
    if not ends_with_result:
        flush()


def _take_question(message: Fields, log: MessageLog) -> None:
    """Add what the user says, and the results that the user's side sends with it."""
    said: list[dict[str, Any]] = []
    results = False
    for block in _blocks(message):
        kind = block.text("type", required=True) or ""
        if kind.endswith(RESULT):
            _take_result(block, kind, log)
            results = True
        elif kind not in THOUGHTS:
            if kind and kind != "text" and kind not in PART_MARKS:
                unknown_part(block, kind, log.doubt)
            said.append(dict(block.value))
    if said or not results:
        spoken = Fields({"content": said}, message.path, message.faults)
        log.add(Message("user", content_text(spoken, "content"), aside=results), message.path)


def _take_result(block: Fields, kind: str, log: MessageLog) -> None:
    content = block.raw("content")
    plain = isinstance(content, str) or content is None
    typed = isinstance(content, list) and all(
        isinstance(one, str) or {"text", *PART_MARKS}.intersection(part_kinds([one])) for one in content
    )
    if plain or typed or kind == RESULT:
        result: Any = content_text(block, "content", doubt=log.doubt)
    else:
        result = _without_ciphers(content)
    if block.raw("is_error") is True:
        result = {"status": "error", "content": result}
    log.add(tool_message(result, block.identity("tool_use_id")), block.path)


def _without_ciphers(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_ciphers(one) for one in value]
    if isinstance(value, dict):
        return {key: _without_ciphers(one) for key, one in value.items() if key not in _ENCRYPTED and one is not None}
    return value


def _take_reply(about: Fields, log: MessageLog) -> None:
    """Add the answer to the messages if it is stored next to them."""
    for key in ("reply", "response", "message"):
        if is_reply(about.raw(key)):
            reply = about.mapping(key)
            before = len(log.messages)
            take_message(dict(reply.value), reply.path, log)
            added = log.messages[before:]
            if added == log.messages[before - len(added) : before]:
                del log.messages[before:]  # the answer was also appended to the messages
            return


def _half(about: Mapping[str, Any], found: Set[str]) -> tuple[FieldPath, str] | None:
    """Where and why this is only a reply; None if it may be a conversation."""
    if "messages" in found or "messages" in about:
        return None
    if "result" in about and "custom_id" in about:
        joined = "which have the same custom_id, as `params` of the line"
        return ("result",), f"{HELD}, {joined} (got a line of the results of Message Batches)"
    return (("content",), HELD) if is_reply(about) else None


def _is_message(value: Mapping[str, Any]) -> bool:
    return "messages" not in value and "role" in value


_DIALECT = Dialect(
    NAME,
    take_message,
    _is_message,
    {"system": "system", "messages": None},
    reply=_take_reply,
    half=_half,
    unwrap=unwrap,
)
