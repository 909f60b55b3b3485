"""Read AutoGen results (`TaskResult`): messages and events of agents and teams."""

from __future__ import annotations

import json
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.wire import message_log
from agentic_bayes.records.wire.chat import ChatCall, Message, failure, named_call, tool_message
from agentic_bayes.records.wire.fields import Fields
from agentic_bayes.records.wire.layout import Shape
from agentic_bayes.records.wire.message_log import Dialect, FieldPath, MessageLog

NAME = "autogen"
CODE = "code_executor"
"""The name under which code that an agent ran is a call."""

EVENTS = frozenset({"ToolCallRequestEvent", "ToolCallExecutionEvent", "ThoughtEvent", "CodeGenerationEvent"})
EVENTS |= {"CodeExecutionEvent", "UserInputRequestedEvent"}
# pieces of messages that follow whole, and who speaks next
SKIPPED = frozenset({"ModelClientStreamingChunkEvent", "SelectSpeakerEvent", "SelectorEvent"})


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    return message_log.looks_like(shape, _is_ours, ("messages",))


def _is_ours(value: Any) -> bool:
    kind = value.get("type") if isinstance(value, dict) else None
    return isinstance(kind, str) and "source" in value and (kind in EVENTS | SKIPPED or "Message" in kind)


def _take(value: Any, path: FieldPath, log: MessageLog) -> None:
    event = Fields(value, path, log.faults)
    kind = event.text("type", required=True)
    source = event.name("source", required=True)
    if kind is None or source is None or kind in SKIPPED:
        return
    if not log.users:  # a run begins with its task, which no model wrote
        log.users |= {"user", source} if "Message" in kind and "models_usage" not in event else {"user"}
    usage = event.mapping("models_usage")
    tokens = usage.whole("prompt_tokens") or 0, usage.whole("completion_tokens") or 0
    match kind:
        case "ToolCallRequestEvent" | "ToolCallMessage":
            calls = [named_call(call, "id", "arguments") for call in event.mappings("content", required=True)]
            log.add(Message("assistant", calls=calls, tokens=tokens), path)
        case "ToolCallExecutionEvent" | "ToolCallResultMessage":
            for result in event.mappings("content", required=True):
                identity, failed = result.identity("call_id"), result.raw("is_error") is True
                text = result.text("content") or ""
                log.add(tool_message(text, identity, result.name("name"), failed=failed), result.path)
        case "ThoughtEvent":
            log.add_thoughts([event.text("content", required=True) or ""], path)
        case "CodeGenerationEvent":
            blocks = event.mappings("code_blocks")
            calls = [ChatCall(CODE, {key: block.text(key) for key in ("code", "language")}) for block in blocks]
            log.add(Message("assistant", event.text("content") or "", calls, tokens=tokens), path)
        case "CodeExecutionEvent":
            result = event.mapping("result", required=True)
            output: Any = result.text("output") or ""
            if result.raw("exit_code"):
                output = {**failure(output), "exit_code": result.raw("exit_code")}
            log.add(tool_message(output, None, CODE), path)
        case "UserInputRequestedEvent":
            log.users.add(source)  # what this agent says next is what the user typed
        case _ if "Message" in kind:
            _take_message(event, kind, source, tokens, log)
        case _:
            log.doubt(path, f"events of the type {short(kind)} were left out")


def _take_message(event: Fields, kind: str, source: str, tokens: tuple[int, int], log: MessageLog) -> None:
    text = _text(event)
    if source in log.users:
        log.add(Message("user", text), event.path)
    elif kind == "StopMessage" or (kind == "HandoffMessage" and event.name("target") not in log.users):
        # said to another agent or to the team, so it is no answer; a hand-off repeats the result of its call
        if any(message.role == "tool" and message.text == text for message in log.messages[-3:]):
            return
        log.doubt(event.path, f"what agents say to each other in messages of the type {short(kind)} was left out")
    else:
        log.add(Message("assistant", text, tokens=tokens), event.path)


def _text(event: Fields) -> str:
    content = event.raw("content")
    if isinstance(content, list):  # text and images
        pieces = [piece if isinstance(piece, str) else "[image]" for piece in content]
        return "\n".join(pieces)
    if isinstance(content, dict):  # an answer with a structure
        return json.dumps(content, ensure_ascii=False)
    return event.text("content", required=True) or ""


_DIALECT = Dialect(NAME, _take, lambda value: "messages" not in value and "source" in value, {"messages": None})
read = _DIALECT.read
