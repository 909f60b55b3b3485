"""States of a run that LangGraph streams: each repeats the messages of the one before and adds some."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from agentic_bayes.records.wire.json_text import JsonPart


def latest_states(pieces: Iterator[JsonPart]) -> Iterator[JsonPart]:
    """The parts of a file without states that the next one continues: begins with messages of the same ids."""
    held: list[JsonPart] = []
    known: tuple[str, ...] = ()
    for state in _states(pieces):
        ids = _ids(state)
        if not known or len(ids) <= len(known) or ids[: len(known)] != known:
            yield from held
        held, known = state, ids
    yield from held


def _states(pieces: Iterator[JsonPart]) -> Iterator[list[JsonPart]]:
    """The parts of each state: those of an object, or an item of a list; what lies between them comes alone."""
    for _, document in groupby(pieces, key=lambda part: part.document):
        parts: list[JsonPart] = []
        for part in document:
            if (part.path and isinstance(part.path[0], str)) or parts:
                parts.append(part)
            else:
                yield [part]
        if parts:
            yield parts


def _ids(parts: list[JsonPart]) -> tuple[str, ...]:
    """The ids of the messages of a state; none if one has no id, or if something is wrong."""
    if isinstance(parts[0].value, dict) and len(parts[0].path) == 1 and isinstance(parts[0].path[0], int):
        listed = parts[0].value.get("messages")
        messages = listed if isinstance(listed, list) else []
    else:
        messages = [part.value for part in parts if len(part.path) == 2 and part.path[0] == "messages"]
    ids = [message_id(message) for message in messages]
    whole = all(isinstance(one, str) and one for one in ids) and not any(part.faults for part in parts)
    return tuple(map(str, ids)) if whole else ()


def message_id(message: Any) -> Any:
    """The id of a message, whichever way it was dumped."""
    if not isinstance(message, dict):
        return None
    body = message.get("kwargs") if message.get("lc") else message.get("data", message)
    return body.get("id") if isinstance(body, dict) else None
