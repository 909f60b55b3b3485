"""Read and write LangChain messages: objects, or dumps by ``messages_to_dict``, ``dumpd`` or ``model_dump``.

A file is a list of messages, an object with ``messages`` (a LangGraph state), or JSON Lines of either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from agentic_bayes.errors import Problem, RecordsError
from agentic_bayes.formatting import text_or_json
from agentic_bayes.records.base import short
from agentic_bayes.records.formats.messages.langgraph_states import latest_states
from agentic_bayes.records.model import Conversation, Interaction
from agentic_bayes.records.wire import message_log
from agentic_bayes.records.wire.characters import readable_or_said
from agentic_bayes.records.wire.chat import ChatCall, Message, function_calls, named_call, tool_message
from agentic_bayes.records.wire.content.blocks import take_blocks
from agentic_bayes.records.wire.content.parts import content_text, part_kinds, thought_texts, thoughts_in
from agentic_bayes.records.wire.fields import UNREADABLE, Fields
from agentic_bayes.records.wire.json_text import NO_VALUE
from agentic_bayes.records.wire.layout import Shape
from agentic_bayes.records.wire.message_log import Dialect, FieldPath, MessageLog

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

__all__ = ["conversation_from_langchain", "to_langchain"]

NAME = "langchain"
KINDS = ("human", "ai", "system", "tool", "function", "chat")

# roles of a ChatMessage, and the kinds of message that they mean
ROLES = {"user": "human", "human": "human", "assistant": "ai", "ai": "ai", "system": "system", "developer": "system"}
# content parts that are calls, with the names of the fields that hold their ids and their arguments
CALL_PARTS = {
    "tool_use": ("id", "input"),
    "tool_call": ("id", "args"),
    "function_call": ("call_id", "arguments"),
    "invalid_tool_call": ("id", "args"),
}
# pieces of calls that stand whole elsewhere, and set-up
CALLS_IN_PIECES = frozenset({"tool_call_chunk", "input_json_delta", "mcp_list_tools"})
# how the types of parts end that are calls of tools that the provider runs itself, and their results
OF_THE_PROVIDER = (
    *("server_tool_use", "server_tool_call", "server_tool_call_chunk", "mcp_tool_use", "tool_result", "_call"),
)
# members of such a call that are not arguments
ABOUT_A_CALL = frozenset({"id", "call_id", "type", "status", "index"})


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    return message_log.looks_like(shape, _is_ours, ("messages",))


def kind_of(name: str) -> str:
    """The kind of a message by its type or class name: ``AIMessageChunk`` and ``ai`` are the same kind."""
    return name.removesuffix("Chunk").removesuffix("Message").lower()


def _is_ours(value: Any) -> bool:
    """Whether this is certainly a LangChain message."""
    if not isinstance(value, dict):
        return False
    if "lc" in value:
        return isinstance(value.get("id"), list) and "message" in str(value["id"][-1:]).lower()
    kind = value.get("type")
    return isinstance(kind, str) and kind_of(kind) in KINDS and bool(value.keys() & {"data", "content"})


def conversation_from_langchain(
    messages: Iterable[BaseMessage | Mapping[str, Any]],
    *,
    session_id: str,
    agent: str,
    task_id: str | None = None,
    trial: int | None = None,
    **fields: Any,
) -> Conversation:
    """Build a conversation from LangChain messages."""
    from langchain_core.messages import BaseMessage

    # anything that is no message stays as it is and is refused later
    dumps = (message.model_dump() if isinstance(message, BaseMessage) else message for message in messages)
    plain = [dict(dump) if isinstance(dump, Mapping) else dump for dump in dumps]
    parsed = message_log.one_conversation(plain, _DIALECT)
    if parsed.value is NO_VALUE:
        raise RecordsError([Problem("messages", "", path, message) for path, message in parsed.faults])
    given = {"session_id": session_id, "assistant_id": agent, "task_id": task_id or session_id, "trial": trial}
    metadata = {**parsed.value["metadata"], **fields.pop("metadata", {})}
    return Conversation.model_validate(readable_or_said({**parsed.value, **given, **fields, "metadata": metadata}))


def to_langchain(conversation: Conversation) -> list[BaseMessage]:
    """Convert a conversation to LangChain messages.

    Parameters
    ----------
    conversation : Conversation
        The conversation.

    Returns
    -------
    list of langchain_core.messages.BaseMessage
        Read back, they give the same queries, calls, results and answers. A result that is not text becomes JSON
        text. Ids, scores, thoughts and errors are lost.
    """
    from langchain_core.messages import AIMessage, SystemMessage

    messages: list[BaseMessage] = [SystemMessage(conversation.context)] if conversation.context else []
    opening = conversation.metadata.get("opening")
    if isinstance(opening, str):
        messages.append(AIMessage(opening))
    for number, turn in enumerate(conversation.conversation, start=1):
        messages += _turn(turn, number)
    return messages


def _turn(turn: Interaction, number: int) -> Iterator[BaseMessage]:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    yield HumanMessage(turn.query)
    said = turn.metadata.get("before_calls")
    for text in said if isinstance(said, list) else ():
        yield AIMessage(str(text))
    calls = turn.agentic.tools_used if turn.agentic else ()
    ids = [f"call_{number}_{position}" for position in range(1, len(calls) + 1)]
    if calls:
        right: list[Any] = []
        wrong: list[Any] = []
        for call, name in zip(calls, ids, strict=True):
            about, text = {"name": call.tool_name, "id": name}, call.parameters.get(UNREADABLE)
            if call.parameters.keys() == {UNREADABLE} and isinstance(text, str):
                wrong.append({**about, "args": text, "error": None, "type": "invalid_tool_call"})
            else:
                right.append({**about, "args": call.parameters, "type": "tool_call"})
        yield AIMessage("", tool_calls=right, invalid_tool_calls=wrong)
    for call, name in zip(calls, ids, strict=True):
        if call.has_result:
            content: Any = call.result
            status: Literal["success", "error"] = "success"
            if isinstance(content, dict) and content.keys() == {"status", "content"} and content["status"] == "error":
                content, status = content["content"], "error"
            yield ToolMessage(text_or_json(content), tool_call_id=name, name=call.tool_name, status=status)
    if turn.assistant is not None:
        yield AIMessage(turn.assistant)


def _is_message(value: Mapping[str, Any]) -> bool:
    return "messages" not in value and bool(value.keys() & {"type", "lc"})


def _take(value: Any, path: FieldPath, log: MessageLog) -> None:
    message = Fields(value, path, log.faults)
    named, body = _unwrapped(message)
    if named is None:
        return
    piece = (named, body.identity("id")) if named.endswith("Chunk") else None
    if piece is not None and piece == log.piece:
        log.faults.add(path, "is a piece of a streamed message: add the pieces up (chunk + chunk) before you save them")
    log.piece = piece
    kind = kind_of(named)
    if kind == "chat":
        role = body.text("role", required=True)
        kind = ROLES.get(role or "", "")
        if role is not None and not kind:
            log.faults.add((*body.path, "role"), f"must be {', '.join(ROLES)}, got {short(role)}")
    match kind:
        case "human" if any(map(_is_of_the_provider, part_kinds(body.raw("content")))):
            take_blocks({**body.value, "role": "user"}, body.path, log)
        case "human":
            log.add(Message("user", content_text(body, "content", required=True, doubt=log.doubt)), path)
        case "system":
            log.add(Message("system", content_text(body, "content", required=True, doubt=log.doubt)), path)
        case "ai":
            _answer(body, log)
        case "tool":
            text = content_text(body, "content", required=True, doubt=log.doubt)
            identity, failed = body.identity("tool_call_id"), body.text("status") == "error"
            log.add(tool_message(text, identity, body.name("name"), failed=failed), path)
        case "function":
            text = content_text(body, "content", required=True)
            log.add(tool_message(text, None, body.name("name", required=True)), path)
        case _ if kind_of(named) != "chat":
            log.faults.add((*path, "type"), f"must be {', '.join(KINDS)}, got {short(named)}")


def _unwrapped(message: Fields) -> tuple[str | None, Fields]:
    """The kind of a message and its fields, whichever way it was dumped."""
    if "lc" in message:
        written = message.text("type", required=True)
        if written not in (None, "constructor"):
            message.faults.add((*message.path, "type"), f"must be 'constructor', got {short(written)}")
        names = message.sequence("id", required=True)
        if names and isinstance(names[-1], str):
            return names[-1], message.mapping("kwargs", required=True)
        if "id" in message:
            message.faults.add((*message.path, "id"), f"must end with the name of a class, got {short(names)}")
        return None, message
    kind = message.text("type", required=True)
    return kind, message.mapping("data", required=True) if "data" in message else message


def _answer(body: Fields, log: MessageLog) -> None:
    usage = body.mapping("usage_metadata")
    tokens = usage.whole("input_tokens") or 0, usage.whole("output_tokens") or 0
    written = body.mapping("response_metadata")
    log.model = log.model or written.text("model_name") or written.text("model")
    if any(map(_is_of_the_provider, part_kinds(body.raw("content")))):
        about = {"input_tokens": tokens[0], "output_tokens": tokens[1]}
        take_blocks({"role": "assistant", "content": list(_blocks(body)), "usage": about}, body.path, log)
        return
    text = content_text(body, "content", skipped=(*CALL_PARTS, *CALLS_IN_PIECES), required=True, doubt=log.doubt)
    log.add(Message("assistant", text, _calls(body), tokens=tokens, reasoning=_thoughts(body)), body.path)


def _is_of_the_provider(kind: str) -> bool:
    return kind.endswith(OF_THE_PROVIDER) and kind not in CALL_PARTS


def _thoughts(body: Fields) -> list[str]:
    """What the agent thought: parts of the content, or where older integrations kept it."""
    extra = body.mapping("additional_kwargs")
    older = [extra.inside({"text": extra.raw("reasoning_content")})] if "reasoning_content" in extra else []
    older += [extra.mapping("reasoning")] if isinstance(extra.raw("reasoning"), dict) else []
    return thoughts_in(body) or [text for thought in older for text in thought_texts(thought)]


def _blocks(body: Fields) -> Iterator[dict[str, Any]]:
    """The content with calls of tools that the provider runs, as typed blocks; the agent's own calls come last."""
    for part in body.sequence("content"):
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(part, dict) or not isinstance(kind, str):
            yield part
        elif kind in CALL_PARTS or kind in CALLS_IN_PIECES:
            continue
        elif kind == "server_tool_result":
            about = {"tool_use_id": part.get("tool_call_id"), "is_error": part.get("status") == "error"}
            yield {"type": "json_tool_result", **about, "content": part.get("output")}
        elif kind.startswith("server_tool_call"):
            yield {"type": "server_tool_use", "id": part.get("id"), "name": part.get("name"), "input": part.get("args")}
        elif kind.endswith("_call"):
            arguments = {key: value for key, value in part.items() if key not in ABOUT_A_CALL and value is not None}
            about = {
                "id": part.get("call_id") or part.get("id"),
                "name": part.get("name") or kind.removesuffix("_call"),
            }
            yield {"type": "server_tool_use", **about, "input": arguments}
        else:
            yield part
    for call in _calls(body):
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}


def _calls(body: Fields) -> list[ChatCall]:
    """The calls of a message, which may contain them up to three times; each counts once."""
    calls = [named_call(call, "id", "args") for call in body.mappings("tool_calls")]
    # LangChain could not parse these calls, but the model made them
    calls += [
        ChatCall(call.name("name") or "(no name)", call.arguments("args"), call.identity("id"))
        for call in body.mappings("invalid_tool_calls")
    ]
    if calls:
        return calls
    content = body.raw("content")
    for position, block in enumerate(content if isinstance(content, list) else ()):
        kind = block.get("type") if isinstance(block, dict) else None
        if isinstance(kind, str) and kind in CALL_PARTS:
            fields = Fields(block, (*body.path, "content", position), body.faults)
            calls.append(named_call(fields, *CALL_PARTS[kind]))
    return calls or function_calls(body.mapping("additional_kwargs"))


_DIALECT = Dialect(NAME, _take, _is_message, {"messages": None}, prepare=lambda pieces, origin: latest_states(pieces))
read = _DIALECT.read
