"""Messages whose content is a list of blocks: text, thoughts, calls, and results, which may be in the user's turn.

Blocks are typed ``text``, ``thinking``, ``tool_use`` or ``tool_result``, or end like one of these two; other shapes of
blocks are translated to these by their formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.wire.chat import ChatCall, Message, named_call, tool_message
from agentic_bayes.records.wire.content.parts import (
    MARKS,
    THOUGHTS,
    content_text,
    part_kinds,
    thought_texts,
    unknown_part,
)
from agentic_bayes.records.wire.fields import Fields
from agentic_bayes.records.wire.message_log import FieldPath, MessageLog

CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
RESULT = "tool_result"
"""How the types of results end: ``tool_result``, ``web_search_tool_result``, …"""

# parts of a result that mean nothing to a reader
_ENCRYPTED = frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout"})


def take_blocks(value: Mapping[str, Any], path: FieldPath, log: MessageLog) -> None:
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
        kind = block.name("type", required=True) or ""
        ends_with_result = False
        if kind in CALLS:
            call = named_call(block, "id", "input")
            calls.append(ChatCall(call.name, call.arguments, call.id, settled=kind != "tool_use"))
        elif kind.endswith(RESULT):
            flush()
            _take_result(block, log)
            ends_with_result = True
        elif kind in THOUGHTS:
            thoughts += thought_texts(block)
        elif kind == "compaction":
            log.doubt(block.path, "summaries of what was said before (compaction) were left out")
        else:
            if kind and kind != "text" and kind not in MARKS:
                unknown_part(block, kind, log.doubt)
            said.append(dict(block.value))
    if not ends_with_result:
        flush()


def _take_question(message: Fields, log: MessageLog) -> None:
    """Add what the user says, and the results that the user's side sends with it."""
    said: list[dict[str, Any]] = []
    results = False
    for block in _blocks(message):
        kind = block.name("type", required=True) or ""
        if kind.endswith(RESULT):
            _take_result(block, log)
            results = True
        elif kind in THOUGHTS:
            log.add_thoughts(thought_texts(block), block.path)
        else:
            if kind and kind != "text" and kind not in MARKS:
                unknown_part(block, kind, log.doubt)
            said.append(dict(block.value))
    if said or not results:
        spoken = Fields({"content": said}, message.path, message.faults)
        log.add(Message("user", content_text(spoken, "content"), aside=results), message.path)


def _take_result(block: Fields, log: MessageLog) -> None:
    content = block.raw("content")
    plain = isinstance(content, str) or content is None
    typed = isinstance(content, list) and all(
        isinstance(one, str) or {"text", *MARKS}.intersection(part_kinds([one])) for one in content
    )
    if plain or typed:
        result: Any = content_text(block, "content", doubt=log.doubt)
    else:
        result = _without_ciphers(content)
    identity, failed = block.identity("tool_use_id"), block.raw("is_error") is True
    log.add(tool_message(result, identity, block.name("name"), failed=failed), block.path)


def _without_ciphers(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_ciphers(one) for one in value]
    if isinstance(value, dict):
        return {key: _without_ciphers(one) for key, one in value.items() if key not in _ENCRYPTED and one is not None}
    return value
