"""Join the two files of a batch, one with the requests and one with the results, by ``custom_id``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.wire.json_text import JsonPart, joined, parts
from agentic_bayes.records.wire.layout import Origin

ID = "custom_id"
_REQUEST, _RESULT = {"body", "params"}, {"response", "result"}
_BEGIN = 4096


def halves_of(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The one of these files that holds only requests, with all files that hold only results."""
    lines = [name for name in names if name.lower().endswith(".jsonl") and os.path.isfile(name)]
    kinds = {name: _members(name) for name in lines if len(lines) > 1}
    requests = [name for name, keys in kinds.items() if keys & _REQUEST and not keys & _RESULT]
    results = tuple(name for name, keys in kinds.items() if keys & _RESULT and not keys & _REQUEST)
    # which results belong to which of several requests is not known
    return {requests[0]: results} if results and len(requests) == 1 else {}


def with_results(pieces: Iterator[JsonPart], origin: Origin) -> Iterator[JsonPart]:
    """The lines of a file of requests, each with the members of its result; other files as they are."""
    results: dict[str, Mapping[str, Any]] = {}
    wrong: list[str] = []
    for name in origin.parts:
        for result, faults in _objects(name):
            wrong += [f"{name}, {fault}" for fault in faults]
            identity = str(result.get(ID))
            if identity in results:
                wrong.append(f"{name}: {ID} {short(identity)} has several results")
            results[identity] = result
    identity = ""
    for part in pieces:
        if part.path == (ID,):
            identity = str(part.value)
        elif not part.path and not part.faults:
            for key, value in results.pop(identity, {}).items():
                if key not in (ID, "id"):
                    yield replace(part, path=(key,), value=value)
            identity = ""
        yield part
    wrong += [f"no request has the {ID} {short(identity)} of {', '.join(origin.parts)}" for identity in results]
    yield from (JsonPart(0, "", (), faults=(("", message),)) for message in wrong[:1])


def _members(name: str) -> set[str]:
    """The members of the first object of a file, if it has a `custom_id`; none if it cannot be read."""
    try:
        with open(name, "rb") as stream:
            if ID.encode() not in stream.peek(_BEGIN)[:_BEGIN]:
                return set()
            first = takewhile(lambda part: part.path and not part.faults, parts(stream, ()))
            return {str(part.path[0]) for part in first if part.value is not None}
    except OSError:
        return set()


def _objects(name: str) -> Iterator[tuple[Mapping[str, Any], list[str]]]:
    """The objects of a file of lines, and what is wrong with each."""
    members: dict[str, Any] = {}
    faults: list[str] = []
    with open(name, "rb") as stream:
        for part in parts(stream, ()):
            faults += [joined(part.place, message) for _, message in part.faults]
            if part.path:
                members[str(part.path[0])] = part.value
            else:
                yield members, faults
                members, faults = {}, []
