"""Read Anthropic messages: transcripts, requests with or next to their replies, and lines of Message Batches."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from agentic_bayes.records.formats.messages.batches import with_results
from agentic_bayes.records.wire.content.blocks import CALLS, RESULT, take_blocks
from agentic_bayes.records.wire.fields import Fields
from agentic_bayes.records.wire.layout import Shape
from agentic_bayes.records.wire.message_log import FOREIGN, JOIN, Dialect, FieldPath, MessageLog, has_role

NAME = "anthropic"
BLOCKS = CALLS | {RESULT, "redacted_thinking", "web_search_tool_result", "mcp_tool_result", "web_fetch_tool_result"}
BLOCKS |= {"code_execution_tool_result", "bash_code_execution_tool_result", "text_editor_code_execution_tool_result"}
MARKS = frozenset(f"content:{kind}" for kind in BLOCKS)
"""What only messages of this format hold."""

OF_A_REQUEST = frozenset({".system", ".stop_sequences", ".stop_reason"})
"""Members of its requests and replies, which others may have, too."""

BATCH_RESULTS = ("succeeded", "errored", "canceled", "expired")
HELD = "holds a reply without its request: add the request's `messages`"


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    if shape.record_keys & FOREIGN:
        return False
    record = shape.record
    if unwrap(record) or is_batch_line(record):
        return True
    if "role:user" not in shape.marks and not is_reply(record):
        return False
    whole = shape.is_list or shape.complete
    return bool(shape.marks & MARKS) or is_reply(record) or (whole and bool(shape.marks & OF_A_REQUEST))


def unwrap(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """The members of a conversation that is a line of Message Batches, or a request and its reply."""
    params, result = about.get("params"), about.get("result")
    members: dict[str, Any] = {}
    replied = isinstance(result, dict) and str(result.get("type")) in BATCH_RESULTS
    if is_batch_line(about) and isinstance(params, dict) and isinstance(result, dict) and replied:
        members |= {**params, "reply": result.get("message")}
        if result["type"] != "succeeded":
            error = result.get("error")
            inner = error.get("error") if isinstance(error, dict) else None
            members["error"] = inner if isinstance(inner, dict) else error or f"the request was {result['type']}"
    request, response = about.get("request"), about.get("response")
    if isinstance(about.get("input"), dict) and isinstance(about.get("output"), dict):  # an invocation log of Bedrock
        request, response = about["input"].get("inputBodyJson"), about["output"].get("outputBodyJson")
    if isinstance(request, dict) and isinstance(request.get("messages"), list) and is_reply(response):
        members |= {**request, "reply": response}
    return {key: value for key, value in members.items() if value is not None}


def is_batch_line(about: Mapping[str, Any]) -> bool:
    """Whether this is a line of Message Batches: a request, a result, or both joined."""
    params, result = about.get("params"), about.get("result")
    asks = isinstance(params, dict) and isinstance(params.get("messages"), list)
    replies = isinstance(result, dict) and str(result.get("type")) in BATCH_RESULTS
    return "custom_id" in about and (asks or replies)


def is_reply(value: Any) -> bool:
    """Whether this is a message as the API returns it."""
    return isinstance(value, dict) and value.get("type") == "message" and isinstance(value.get("content"), list)


def _take_reply(about: Fields, log: MessageLog) -> None:
    """Add the answer to the messages if it is stored next to them."""
    for key in ("reply", "response", "message"):
        if is_reply(about.raw(key)):
            reply = about.mapping(key)
            log.add_reply([dict(reply.value)], reply.path, take_blocks)
            return


def _half(about: Mapping[str, Any], found: Set[str]) -> tuple[FieldPath, str] | None:
    """Where and why this is only a reply; None if it may be a conversation."""
    if "messages" in found or "messages" in about:
        return None
    if is_batch_line(about):
        key, held = ("result", "a reply without its request") if "result" in about else ("params", "a request alone")
        return ((key,), f"holds {held} (a line of Message Batches): {JOIN}")
    return (("content",), HELD) if is_reply(about) else None


_DIALECT = Dialect(
    NAME,
    take_blocks,
    has_role,
    {"system": "system", "messages": None},
    reply=_take_reply,
    half=_half,
    unwrap=unwrap,
    prepare=with_results,
)
read = _DIALECT.read
