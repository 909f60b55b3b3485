"""Read sessions of Codex: its rollout files, and what ``codex exec --json`` prints.

Of a rollout, the items that the model saw and wrote (``response_item``) are read; the events that show the same to the
user are not. What Codex itself says in the user's name (the environment, AGENTS.md) is no question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BufferedReader
from typing import Any

from agentic_bayes.records.formats.sessions.session_log import SessionLog, by_harness
from agentic_bayes.records.wire.chat import ChatCall, Message, failure, tool_message
from agentic_bayes.records.wire.fields import Fields
from agentic_bayes.records.wire.json_text import Parsed
from agentic_bayes.records.wire.layout import Origin, Shape, documents

NAME = "codex"

OF_SUB_AGENT = "is the session of a sub-agent: another session started it, and it is read as a separate session"

_ROLLOUT = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"})
_EXEC = frozenset({"thread.started", "turn.started", "item.started", "item.updated", "item.completed"})
_EXEC_ENDS = frozenset({"turn.completed", "turn.failed", "error"})
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"})
_BY_SERVICE = frozenset({"web_search_call", "image_generation_call"})
_OUTPUTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "tool_search_output", "local_shell_call_output"}
)
_NO_DIALOGUE = frozenset({"compaction", "context_compaction", "compaction_summary", "ghost_snapshot", "other"})


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    record = shape.record
    kind = str(record.get("type"))
    if kind in _ROLLOUT and "payload" in record:
        return True
    first = {"id", "timestamp", "instructions"} <= record.keys()  # the first line of a rollout of 2025
    return first or (kind == "thread.started" and "thread_id" in record)


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The session of a file."""
    session = SessionLog(NAME, origin)
    for line in documents(stream):
        value = session.line(line)
        if value is None:
            continue
        kind = str(value.get("type"))
        if kind in _EXEC | _EXEC_ENDS:
            _take_event(Fields(value, (), session.faults), session, line.where)
        elif isinstance(value.get("payload"), dict):
            _take_line(kind, Fields(value["payload"], ("payload",), session.faults), session, line.where)
        elif "type" in value:  # older rollouts hold the items themselves
            _take_item(Fields(value, (), session.faults), session, line.where)
        elif "record_type" in value:
            session.other("record_type")
        else:
            _take_line("session_meta", Fields(value, (), session.faults), session, line.where)
    unfinished = [item for item in session.started.values() if item.raw("type") in (*_EXEC_CALLS, "mcp_tool_call")]
    if unfinished:
        session.add(Message("assistant", calls=[ChatCall(*_exec_call(item)) for item in unfinished]))
    session.agent = session.log.model or NAME
    yield from session.finish()


def _take_line(kind: str, payload: Fields, session: SessionLog, where: str) -> None:
    """Add a line of a rollout."""
    match kind:
        case "response_item":
            _take_item(payload, session, where)
        case "session_meta":
            _take_meta(payload, session)
        case "turn_context":
            session.log.model = payload.text("model") or session.log.model
            session.about.setdefault("cwd", payload.text("cwd"))
        case "event_msg":
            _take_message_event(payload, session)
        case "compacted":
            session.about["compacted"] = session.about.get("compacted", 0) + 1
        case _ if kind in _ROLLOUT or kind == "token_usage_record":
            session.other(kind)
        case _:
            session.strange(kind, payload.value, where)


def _take_meta(meta: Fields, session: SessionLog) -> None:
    session.raw.append(meta.value)
    session.session = session.session or meta.name("id")
    session.about |= {
        "version": meta.text("cli_version"),
        "cwd": meta.text("cwd"),
        "provider": meta.text("model_provider"),
        "started": meta.text("timestamp"),
    }
    source = meta.raw("source")
    if meta.raw("thread_source") == "subagent" or (isinstance(source, dict) and "subagent" in source):
        session.log.doubt((), OF_SUB_AGENT)
    given = meta.raw("base_instructions") if "base_instructions" in meta else meta.raw("instructions")
    text = given.get("text") if isinstance(given, dict) else given
    if isinstance(text, str) and text.strip() and not session.log.messages:
        session.add(Message("system", text))
    tools = meta.raw("dynamic_tools")
    session.log.tools += tools if isinstance(tools, list) else []


def _take_message_event(event: Fields, session: SessionLog) -> None:
    """Take what only an event says: that a turn broke off, or that turns were taken back."""
    kind = event.text("type") or "event"
    match kind:
        case "turn_aborted":
            session.add(Message("assistant", error=f"the turn was aborted: {event.text('reason') or 'no reason'}"))
        case "error":
            session.add(Message("assistant", error=event.text("message") or "error"))
        case "thread_rolled_back":
            users = [n for n, message in enumerate(session.log.messages) if message.role == "user"]
            number = event.whole("num_turns") or 0
            if number:
                del session.log.messages[users[-number] if number <= len(users) else 0 :]
                session.about["turns_taken_back"] = session.about.get("turns_taken_back", 0) + number
        case _:
            session.other(f"event {kind}")


def _take_item(item: Fields, session: SessionLog, where: str) -> None:
    """Add an item of the model's input or output."""
    kind = item.text("type", required=True) or ""
    if kind == "message":
        _take_message(item, session, where)
    elif kind == "reasoning":
        texts = [part.get("text") for key in ("summary", "content") for part in _objects(item, key)]
        session.log.add_thoughts([text for text in texts if isinstance(text, str)], ())
    elif kind in _CALLS:
        session.log.add_call(_call(item, kind), ())
    elif kind in _BY_SERVICE:
        action = item.raw("action")
        given = action if isinstance(action, dict) else {}
        session.log.add_call(ChatCall(kind.removesuffix("_call"), dict(given), item.identity("id"), settled=True), ())
    elif kind in _OUTPUTS:
        session.add(tool_message(_output(item), item.identity("call_id")))
    elif kind in _NO_DIALOGUE:
        session.other(f"item {kind}")
    else:
        session.strange(kind, {**item.value, "content": ""}, where)


def _objects(item: Fields, key: str) -> list[dict[str, Any]]:
    value = item.raw(key)
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def _take_message(item: Fields, session: SessionLog, where: str) -> None:
    texts = []
    for part in _objects(item, "content"):
        kind = str(part.get("type"))
        if kind in ("input_text", "output_text", "text"):
            texts.append(str(part.get("text") or ""))
        elif kind in ("input_image", "input_audio", "input_file"):
            texts.append(f"[{kind.removeprefix('input_')}]")
        else:
            session.strange(f"content {kind}", {"content": part}, where)
    match item.text("role", required=True):
        case "assistant":
            session.add(Message("assistant", "".join(texts)))
        case "user" if _said_by_user(item, texts):
            session.add(Message("user", "\n".join(text for text in texts if not by_harness(text))))
        case "user":
            session.other("message of the harness")
        case _:
            session.add(Message("system", "\n\n".join(texts)))


def _said_by_user(item: Fields, texts: list[str]) -> bool:
    about = item.raw("internal_chat_message_metadata_passthrough")
    kinds = about.get("content_item_kinds") if isinstance(about, dict) else None
    named = kinds if isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds) else []
    by_user = any(kind.startswith("user.") for kind in named)
    return by_user or not texts or not all(map(by_harness, texts))


def _call(item: Fields, kind: str) -> ChatCall:
    ids = (item.identity("call_id"), item.identity("id"))
    identity = next((one for one in ids if one), None)
    others = tuple(one for one in ids if one and one != identity)
    if kind == "local_shell_call":
        action = item.mapping("action").value
        return ChatCall("local_shell", {k: v for k, v in action.items() if k != "type"}, identity, others)
    if kind == "custom_tool_call":
        return ChatCall(item.name("name", required=True) or "?", {"input": item.text("input") or ""}, identity, others)
    name = item.name("name", required=kind == "function_call") or kind.removesuffix("_call")
    return ChatCall(name, item.arguments("arguments"), identity, others)


def _output(item: Fields) -> Any:
    """The result of a call: text, an object with text and whether the call succeeded, or parts."""
    output = item.raw("output") if "output" in item else item.raw("tools")
    if isinstance(output, dict) and "content" in output:
        return failure(output["content"]) if output.get("success") is False else output["content"]
    if isinstance(output, list) and all(isinstance(part, dict) and "text" in part for part in output):
        return "".join(str(part["text"]) for part in output)
    return "" if output is None else output


def _take_event(event: Fields, session: SessionLog, where: str) -> None:
    """Add a line of ``codex exec --json``."""
    match event.raw("type"):
        case "thread.started":
            session.session = event.name("thread_id")
        case "turn.started":
            session.no_prompt()
        case "item.completed":
            _take_exec_item(event.mapping("item", required=True), session, where)
        case "item.started":
            item = event.mapping("item")
            session.started[item.name("id") or ""] = item
        case "turn.failed":
            message = event.mapping("error").text("message")
            session.add(Message("assistant", error=message or "the turn failed"))
        case "error":
            session.add(Message("assistant", error=event.text("message") or "error"))
        case "turn.completed":
            while session.log.messages and session.log.messages[-1].error:  # on the way, "Reconnecting... 1/5"
                session.log.messages.pop()
            usage = event.mapping("usage")
            session.about["tokens"] = {side: usage.whole(f"{side}_tokens") or 0 for side in ("input", "output")}
        case kind:
            session.other(str(kind))


_EXEC_CALLS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "command_execution": (("command",), ("aggregated_output", "exit_code")),
    "file_change": (("changes",), ("status",)),
    "web_search": (("query",), ()),
}


def _exec_call(item: Fields) -> tuple[str, dict[str, Any]]:
    """The tool and the arguments of an item that is a call."""
    kind = item.name("type") or "?"
    if kind == "mcp_tool_call":
        return ".".join(filter(None, (item.text("server"), item.name("tool")))) or "?", item.arguments("arguments")
    return kind, {key: item.raw(key) for key in _EXEC_CALLS.get(kind, ((), ()))[0] if key in item}


def _take_exec_item(item: Fields, session: SessionLog, where: str) -> None:
    kind, identity = item.text("type", required=True) or "", item.identity("id")
    session.started.pop(identity or "", None)
    if kind == "agent_message":
        session.add(Message("assistant", item.text("text") or ""))
    elif kind == "reasoning":
        session.log.add_thoughts([item.text("text") or ""], ())
    elif kind in _EXEC_CALLS:
        given = _EXEC_CALLS[kind][1]
        session.add(Message("assistant", calls=[ChatCall(*_exec_call(item), identity, settled=not given)]))
        if given:
            session.add(tool_message({key: item.raw(key) for key in given if key in item}, identity))
    elif kind == "mcp_tool_call":
        session.add(Message("assistant", calls=[ChatCall(*_exec_call(item), identity)]))
        result = failure(item.raw("error")) if item.raw("error") else item.raw("result")
        session.add(tool_message("" if result is None else result, identity))
    elif kind in ("error", "todo_list"):
        session.other(f"item {kind}")
    else:
        session.strange(kind, {**item.value, "content": ""}, where)
