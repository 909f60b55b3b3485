"""Read what LangGraph streams: ``stream(mode="updates")`` line by line, also with subgraphs or several modes.

A line says which node ran and what it added to the state; the file is one run. States (mode "values") are read as the
``langchain`` format, where a state that continues the one before it takes its place.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from io import BufferedReader, BytesIO
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.formats.messages import langchain
from agentic_bayes.records.formats.messages.langgraph_states import message_id
from agentic_bayes.records.wire.json_text import NO_VALUE, JsonPart, Parsed, broken, parts
from agentic_bayes.records.wire.layout import Origin, Shape
from agentic_bayes.records.wire.tracing.messages import is_message

NAME = "langgraph"

MODES = frozenset({"updates", "values", "messages", "custom", "debug", "tasks", "checkpoints"})
NO_QUERY = "updates do not hold what the user asked, so the query is empty: stream with mode values to record it"


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    if shape.is_list:  # a tuple of the mode or the subgraph, and what it gave
        item = shape.item
        subgraph = isinstance(item, list) and all(isinstance(one, str) and ":" in one for one in item)
        if subgraph or _is_mode(item) or (isinstance(item, list) and bool(item) and _is_mode(item[0])):
            return True
    part = shape.record
    if not (shape.is_list or shape.complete):
        return False
    if _is_part(part):
        return True
    updates = [one for update in part.values() for one in (update if isinstance(update, list) else [update])]
    fitting = all(one is None or isinstance(one, dict) for one in updates)
    return (
        fitting
        and bool(updates)
        and any(map(_is_langchain, (message for one in updates for message in _messages(one))))
    )


def _is_mode(value: Any) -> bool:
    return isinstance(value, str) and value in MODES


def _is_line(value: list[Any]) -> bool:
    """Whether a list is one line: the mode, or the ids of the subgraph, or both, and what it gave."""
    head = value[0] if len(value) in (2, 3) and not isinstance(value[-1], str) else None
    return isinstance(head, str) or (isinstance(head, list) and all(isinstance(one, str) for one in head))


def _is_part(value: dict[str, Any]) -> bool:
    """Whether this is a part of a stream in its second version, which names its mode."""
    return {"type", "ns", "data"} <= value.keys() and _is_mode(value["type"])


def _is_langchain(message: Any) -> bool:
    """Whether this is certainly a message of LangChain, and not of another library."""
    if not isinstance(message, dict):
        return False
    kind = message.get("type")
    return bool(message.get("lc")) or (isinstance(kind, str) and langchain.kind_of(kind) in langchain.KINDS)


def _messages(update: Any) -> list[Any]:
    """The messages of an update to a state."""
    found = update.get("messages") if isinstance(update, dict) else None
    listed = found if isinstance(found, list) and not is_message(found) else [found]
    return listed if listed and all(map(is_message, listed)) else []


def _may_hold_messages(key: str, value: Any) -> bool:
    """Whether a member of an update holds messages, or something in their place."""
    return bool(value) and (key == "messages" or (isinstance(value, list) and all(map(is_message, value))))


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The conversation of a file."""
    run = _Run()
    wrong = False
    for part in _lines(parts(stream, ())):
        if part.value is NO_VALUE:
            wrong = True
            yield part
        else:
            run.take(part.value)
    if wrong:
        return
    if not run.messages:
        yield broken("", f"holds no messages: it must be a stream with mode updates or values{run.said()}")
        return
    asked = "human" in json.dumps(next(iter(run.messages.values())), default=str)[:400].lower()
    doubts = [] if asked else [NO_QUERY]
    opening = [] if asked else [{"type": "human", "content": ""}]
    text = json.dumps([*opening, *run.messages.values()])
    doubts += [f"left out of the stream: {run.said(': ')}"] if run.others else []
    for parsed in langchain.read(BufferedReader(BytesIO(text.encode())), origin):
        value = parsed.value
        if isinstance(value, dict):
            value = {**value, "metadata": {**value["metadata"], "format": NAME}}
        noted = (*parsed.doubts, *(("", doubt) for doubt in doubts))
        yield replace(parsed, where="", value=value, doubts=noted)


def _lines(pieces: Iterator[JsonPart]) -> Iterator[Parsed]:
    """The lines of a file, each a whole object or list."""
    members: dict[str, Any] = {}
    items: list[Any] = []
    wrong: list[tuple[str, str]] = []
    for part in pieces:
        match part.path:
            case ():
                faults = (*wrong, *part.faults)
                where = part.where or "line 1"
                yield Parsed(where, faults=faults) if faults else Parsed(where, items or members)
                members, items, wrong = {}, [], []
            case (int(),):
                wrong += part.faults
                items.append(part.value)
            case (str(key),):
                wrong += part.inner_faults
                members[key] = part.value


@dataclass(slots=True)
class _Run:
    """The messages of a run, each once: a message with a known id replaces the earlier one, as in the state."""

    messages: dict[Any, Any] = field(default_factory=dict)
    others: Counter[str] = field(default_factory=Counter)

    def take(self, value: Any) -> None:
        """Take in one line."""
        if isinstance(value, dict) and _is_part(value):
            self._of_mode(value["type"], value["data"])
        elif isinstance(value, dict):
            self._of_mode("updates", value)
        elif _is_line(value):
            mode = next((one for one in value[:-1] if _is_mode(one)), "updates")
            self._of_mode(mode, value[-1])
        elif value and all(isinstance(one, (dict, list)) for one in value):
            for one in value:  # a list of all lines
                self.take(one)
        else:
            self.others["lines of unknown form"] += 1

    def _of_mode(self, mode: str, payload: Any) -> None:
        if mode == "values":
            self._update(payload, "state")
        elif mode == "updates" and isinstance(payload, dict):
            for node, update in payload.items():
                if node == "__interrupt__":
                    self.others["interrupts that wait for a person"] += 1
                    continue
                for one in update if isinstance(update, list) else [update]:
                    self._update(one, node)
        else:
            self.others[f"lines of mode {short(mode)}"] += 1

    def _update(self, update: Any, node: str) -> None:
        members = update.items() if isinstance(update, dict) else [("messages", update)]
        if any(_may_hold_messages(key, value) for key, value in members) and not _messages(update):
            self.others[f"messages of unknown form from {short(node)}"] += 1
        added: dict[Any, Any] = {}
        for message in _messages(update):
            if isinstance(message, list):
                message = {
                    "type": {"user": "human", "assistant": "ai"}.get(message[0], message[0]),
                    "content": message[1],
                }
            identity = message_id(message)
            added[len(self.messages) + len(added) if identity is None else str(identity)] = message
        if self.messages.keys() <= added.keys():
            self.messages = added  # the whole state, in its order
        else:
            self.messages |= added

    def said(self, start: str = "; it has ") -> str:
        """What else the stream holds."""
        listed = ", ".join(f"{what} ({times:,})" for what, times in sorted(self.others.items()))
        return f"{start}{listed}".removeprefix(": ") if listed else ""
