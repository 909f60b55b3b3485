"""Read OpenAI messages (Chat Completions and Responses): lists, objects that hold lists, or JSON Lines.

Both forms of one run give the same record: as in a chat, a function call of the Responses API belongs to the message
before it. A reply (``choices``) stored next to the ``messages`` of its request ends the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.formats.messages import langchain
from agentic_bayes.records.formats.messages.anthropic import BLOCKS
from agentic_bayes.records.formats.messages.batches import with_results
from agentic_bayes.records.wire import message_log
from agentic_bayes.records.wire.chat import ChatCall, Message, function_calls, named_call, tool_message
from agentic_bayes.records.wire.content.blocks import take_blocks
from agentic_bayes.records.wire.content.parts import content_text, part_kinds, thought_texts, thoughts_in
from agentic_bayes.records.wire.fields import Fields
from agentic_bayes.records.wire.layout import Shape
from agentic_bayes.records.wire.message_log import FOREIGN, JOIN, Dialect, FieldPath, MessageLog

NAME = "openai"
MEMBERS = ("messages", "input", "output")

MARKS = frozenset(
    {".tool_calls", ".tool_call_id", ".function_call", ".refusal", "role:tool", "role:function", "role:developer"}
    | {f"content:{kind}" for kind in ("image_url", "input_text", "output_text", "input_image", "input_file", "refusal")}
    | {f"type:{kind}" for kind in ("function_call", "function_call_output", "reasoning", "web_search_call")}
)
"""What only messages of this format hold."""

SPOKEN = frozenset({"content", "tool_calls", "function_call", "refusal", "audio"})
CALL, OUTPUT = "_call", "_call_output"
# calls that the caller runs: their results follow as items of their own
OF_THE_CALLER = frozenset({"computer_call", "local_shell_call", "shell_call", "apply_patch_call"})
# members of a message with thoughts; some services give several of them with the same text
REASONING = ("reasoning_content", "reasoning", "thinking", "reasoning_details", "thinking_blocks")
RESULTS = ("output", "outputs", "results")
_USER = re.compile("user([_ -]?proxy)?(_agent)?|human|admin", re.IGNORECASE)
# a choice has at least one of these
OF_A_CHOICE = frozenset({"message", "delta", "finish_reason"})
# fields of a call that are not arguments
ABOUT_A_CALL = frozenset({"id", "type", "status", "call_id", "created_by", "result", "error", *RESULTS})


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    if message_log.looks_like(shape, _is_ours, MEMBERS) or shape.values.get("object") == "response":
        return True
    if not (shape.is_list or shape.complete) or shape.record_keys & FOREIGN:
        return False
    # also claim files with a broken first message and half conversations, to report the problem in OpenAI's terms
    record = shape.record
    ours = "messages" in shape.record_keys or record.get("object") == "response" or bool(_unwrap(record))
    return ours or _half(record, set()) is not None


def _is_ours(value: Any) -> bool:
    """Whether this is certainly a message or an item of the Responses API."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    if "role" in value and kind in (None, "message"):
        return bool(SPOKEN & value.keys())
    if not isinstance(kind, str):
        return False
    return (kind.endswith((CALL, OUTPUT)) and bool(value.keys() & {"call_id", "id"})) or (
        kind == "reasoning" and "summary" in value
    )


def _is_message(value: Mapping[str, Any]) -> bool:
    return "messages" not in value and bool(value.keys() & {"role", "type", "call_id"})


def _is_reply(choices: Any) -> bool:
    return isinstance(choices, list) and any(isinstance(one, dict) and OF_A_CHOICE & one.keys() for one in choices)


def _half(about: Mapping[str, Any], found: Set[str]) -> tuple[FieldPath, str] | None:
    """Where and why this is only a request or only a reply; None if it may be a conversation."""
    if about.get("previous_response_id"):
        wrong = "continues another response: put that one's `input` and `output` before `input`"
        return ("previous_response_id",), wrong
    if found & {"messages", "input"} or about.keys() & {"messages", "input"}:
        return None
    reply = "holds a reply without its request: add the request's {}"
    if "custom_id" in about and "response" in about:
        body = ("response", "body") if isinstance(about["response"], dict) else ("response",)
        return body, reply.format("`messages`") + f" (got a line of the Batch API); {JOIN}"
    if "custom_id" in about and "body" in about:
        return (("body",), f"holds a request without its reply (a line of an OpenAI batch request file); {JOIN}")
    if about.get("object") == "chat.completion.chunk":
        return ("object",), "is a piece of a streamed reply: save the whole reply, with its request's `messages`"
    if _is_reply(about.get("choices")) or about.get("object") == "chat.completion":
        return ("choices",), reply.format("`messages`")
    if "output" in found:
        return ("output",), reply.format("`input`")
    return None


def _take_reply(about: Fields, log: MessageLog) -> None:
    """Add the answer to the messages if it is still stored as an API reply."""
    if not _is_reply(about.raw("choices")):
        return
    choices = about.mappings("choices")
    if len(choices) > 1:
        log.doubt(
            ("choices",), "a reply has several choices: the first was read as the answer, the others were ignored"
        )
    message = choices[0].mapping("message", required=True)
    if not message.value:
        return
    log.add_reply([dict(message.value)], message.path, _take)


def _failure(about: Fields) -> str | None:
    """Why a response is not complete; None if it is."""
    status = about.text("status")
    if status is None or status == "completed":
        return None
    reason = about.mapping("incomplete_details").text("reason")
    return f"the response is {status}" + (f": {reason}" if reason else "")


def _unwrap(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """The members of a conversation that is a line of the Batch API with request and reply, or a pair of these."""
    request = about.get("body") if "custom_id" in about else about.get("request")
    response = about.get("response")
    reply = response.get("body", response) if isinstance(response, dict) else None
    if request is None and _is_reply(reply.get("choices") if isinstance(reply, dict) else None):
        request = {}  # it is the record itself
    elif not isinstance(request, dict) or not {"messages", "input"} & request.keys():
        return {}
    if not isinstance(reply, dict):
        return {}
    kept = ("choices", "output", "usage", "model", "status", "incomplete_details", "error")
    return {**request, **{key: reply[key] for key in kept if reply.get(key) is not None}}


def _take(value: Any, path: FieldPath, log: MessageLog) -> None:
    item = Fields(value, path, log.faults)
    kind = item.text("type") or "message"
    if kind == "message":
        _message(item, log, is_item="type" in item)
    elif kind == "function_call":
        log.add_call(_with_ids(named_call(item, None, "arguments"), item), path)
    elif kind == "custom_tool_call":
        arguments = {"input": item.text("input") or ""}
        log.add_call(_with_ids(ChatCall(item.name("name", required=True) or "?", arguments), item), path)
    elif kind.endswith(OUTPUT):
        _result(item, log)
    elif kind == "tool_search_output":
        log.add(tool_message(item.sequence("tools"), item.identity("call_id")), path)
    elif kind.endswith(CALL):
        _call_of_the_service(item, kind, log)
    elif kind == "reasoning":
        log.add_thoughts([text for key in ("summary", "content") for text in thought_texts(item.only(key))], path)
    elif kind == "mcp_list_tools":
        log.tools += item.sequence("tools")
    elif langchain.kind_of(kind) in langchain.KINDS or "lc" in item:
        log.faults.add(
            path, f"must be an OpenAI message or item like the others, got a LangChain message of type {short(kind)}"
        )
    else:
        log.doubt(path, f"items of the unknown type {short(kind)} were left out")


def _with_ids(call: ChatCall, item: Fields) -> ChatCall:
    """A call with its ids: results refer to ``call_id``, or by mistake to the item's own ``id``."""
    ids = [known for known in (item.identity("call_id"), item.identity("id")) if known is not None]
    return replace(call, id=ids[0], other_ids=tuple(ids[1:])) if ids else call


def _thoughts(message: Fields) -> list[str]:
    """What the agent thought, if a member of its own or parts of the content say so."""
    for key in REASONING:
        value = message.raw(key)
        if isinstance(value, str) and value.strip():
            return [value]
        if isinstance(value, dict):
            return thought_texts(message.mapping(key))
        if isinstance(value, list) and value:
            return [text for part in value if isinstance(part, dict) for text in thought_texts(message.inside(part))]
    return thoughts_in(message)


def _message(message: Fields, log: MessageLog, *, is_item: bool) -> None:
    named = message.text("role", required=True)
    role = named and named.lower()
    needed = SPOKEN if role == "assistant" else {"content"}
    if not needed & message.value.keys():
        message.faults.add((*message.path, "content"), "must be given (it may be null), got nothing")
    if BLOCKS.intersection(part_kinds(message.raw("content"))):
        take_blocks(dict(message.value), message.path, log)
        return
    text = content_text(message, "content", doubt=log.doubt)
    if role == "assistant" and _USER.fullmatch(str(message.raw("name"))):
        message.faults.add(
            (*message.path, "role"),
            f"is assistant, but its name is {short(message.raw('name'))}: AutoGen 0.2 writes roles as the user's side "
            "sees them; swap them: m['role'] = {'user': 'assistant', 'assistant': 'user'}.get(m['role'], m['role'])",
        )
    match role:
        case "assistant":
            text = text or message.text("refusal") or message.mapping("audio").text("transcript") or ""
            calls = function_calls(message)
            thoughts = _thoughts(message)
            if is_item and not calls:
                log.add_text(text, message.path)
                log.add_thoughts(thoughts, message.path)
            else:
                log.add(Message("assistant", text, calls, reasoning=thoughts), message.path)
        case "tool":
            log.add(tool_message(text, message.identity("tool_call_id"), message.name("name")), message.path)
        case "function":
            log.add(Message("tool", text, tool=message.name("name", required=True)), message.path)
        case "user":
            log.add(Message("user", text), message.path)
        case "system" | "developer":
            log.add(Message("system", text), message.path)
        case str():
            allowed = "system, developer, user, assistant, tool or function"
            message.faults.add((*message.path, "role"), f"must be {allowed}, got {short(named)}")


def _result(item: Fields, log: MessageLog) -> None:
    output = item.raw("output")
    answers = item.identity("call_id")
    if output is None and "output" not in item:
        item.faults.add((*item.path, "output"), "must be given, got nothing")
    if isinstance(output, dict):
        kind = item.mapping("output").text("type")
        output = f"[{kind}]" if kind else output  # a screenshot is all image
    elif not isinstance(output, list) or item.raw("type") in ("function_call_output", "custom_tool_call_output"):
        output = content_text(item, "output", doubt=log.doubt)
    log.add(tool_message(output, answers), item.path)


def _call_of_the_service(item: Fields, kind: str, log: MessageLog) -> None:
    """A call of a tool that the service runs itself: its result, if recorded, is in the same item."""
    if "arguments" in item:
        arguments = item.arguments("arguments")
    elif "action" in item:
        arguments = dict(item.mapping("action").value)
    else:
        arguments = {key: value for key, value in item.value.items() if key not in ABOUT_A_CALL and value is not None}
    name = item.name("name") or kind.removesuffix(CALL)
    call = _with_ids(ChatCall(name, arguments, settled=kind not in OF_THE_CALLER), item)
    log.add_call(call, item.path)
    log.waiting = False
    result = next((item.raw(key) for key in ("result", *RESULTS) if key in item), None)
    if "error" in item:
        result = {"error": item.raw("error")}
    elif "result" in item and kind == "image_generation_call":
        result = "[image]"
    if result is not None:
        log.add(tool_message(result, call.id, name), item.path)


_DIALECT = Dialect(
    NAME,
    _take,
    _is_message,
    {"instructions": "system", "system": "system", "messages": None, "input": "user", "output": "assistant"},
    frozenset({"input", "output"}),
    _failure,
    _take_reply,
    _half,
    _unwrap,
    with_results,
)
read = _DIALECT.read
