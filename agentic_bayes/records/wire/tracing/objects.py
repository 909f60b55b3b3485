"""Yields the objects of a file one by one (lines, items of a list, or one object), and what their members share."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from datetime import datetime
from io import BufferedReader
from typing import Any, TypeGuard

from agentic_bayes.records.base import is_whole, short
from agentic_bayes.records.wire.fields import Faults, Fields, is_name
from agentic_bayes.records.wire.json_text import NO_VALUE, Parsed, broken
from agentic_bayes.records.wire.layout import Shape, documents
from agentic_bayes.records.wire.tracing.messages import json_of, text_of
from agentic_bayes.records.wire.tracing.spans import SpanNames

_FRACTION = re.compile(r"\.(\d{1,6})\d*")
_PAGES = ("data", "runs", "traces")
"""Members under which services return a page of objects."""

_MEMBERS = {
    "agent": ("agentic_bayes.agent", "assistant_id", "agent"),
    "session": ("session_id", "conversation_id", "thread_id"),
    "task": ("agentic_bayes.task_id", "task_id", "test.case.id"),
}
_COUNTS = (("input_tokens", "output_tokens"), ("prompt_tokens", "completion_tokens"), ("input", "output"))
_REFERENCE = ("reference", "expected_output", "expected_response", "output", "answer")


def taken(stream: BufferedReader, take: Callable[[Fields], None]) -> Generator[Parsed, None, bool]:
    """Hand every object of a file to `take` and yield what is wrong with it; gives whether anything was."""
    wrong = False
    for parsed in objects(stream):
        if parsed.value is not NO_VALUE:
            faults = Faults()
            take(Fields(parsed.value, (), faults))
            parsed = Parsed(parsed.where, faults=tuple(faults))
        if parsed.faults:
            wrong = True
            yield parsed
    return wrong


def objects(stream: BufferedReader) -> Iterator[Parsed]:
    """The objects of a file, each with its place; a part that is not an object has a fault."""
    for one in documents(stream, item="[{}]"):
        if one.faults:
            yield Parsed(one.where, faults=one.faults)
        elif not isinstance(one.value, dict):
            yield broken(one.where, f"must be an object, got {short(one.value)}")
        else:
            yield from _unpacked(one.value, one.where)


def _unpacked(members: dict[str, Any], where: str) -> Iterator[Parsed]:
    """The object, or those of a page that a service returned."""
    key = _page_of(members)
    if key is None:
        yield Parsed(where, members)
        return
    for place, item in enumerate(members[key]):
        faults = () if isinstance(item, dict) else (("", f"must be an object, got {short(item)}"),)
        yield Parsed(f"{where}, {key}[{place}]", NO_VALUE if faults else item, faults)


def _page_of(members: Mapping[str, Any]) -> str | None:
    """The member of a page with its objects."""
    lists = (key for key in _PAGES if isinstance(members.get(key), list) and members[key])
    return next((key for key in lists if isinstance(members[key][0], dict)), None)


def first_object(shape: Shape) -> Mapping[str, Any]:
    """The first object of a file, as far as it is known: the first item of its list, or that of a page."""
    key = _page_of(shape.record)
    found: Mapping[str, Any] = shape.record if key is None else shape.record[key][0]
    return found


def nanoseconds(owner: Fields, key: str) -> int:
    """A time written as ISO 8601, in nanoseconds since 1970; 0 if there is none."""
    text = owner.text(key)
    if not text:
        return 0
    try:
        moment = datetime.fromisoformat(_FRACTION.sub(lambda found: "." + found[1].ljust(6, "0"), text, count=1))
        return int(moment.timestamp() * 1_000_000) * 1000
    except (ValueError, OverflowError, OSError):
        owner.faults.add((*owner.path, key), f"must be a time like 2026-01-31T12:00:00Z, got {short(text)}")
        return 0


def names_in(metadata: Any) -> SpanNames:
    """The names that a program put into metadata."""
    given = json_of(metadata)
    if not isinstance(given, dict):
        return SpanNames()
    found = {part: next(filter(None, (name(given.get(key)) for key in keys)), None) for part, keys in _MEMBERS.items()}
    reference = given.get("reference")
    return SpanNames(
        **found, trial=trial(given.get("trial")), reference=reference if isinstance(reference, str) else None
    )


def name(value: Any) -> str | None:
    """An id or name: text that is not blank, or a whole number."""
    return str(value) if is_name(value) else None


def trial(value: Any) -> int | None:
    """The number of an attempt, also as text; None if it is none."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        return int(value)
    return value if is_whole(value) and value >= 0 else None


def reference_text(value: Any) -> str | None:
    """A reference answer as text."""
    text, packed = text_of(value, _REFERENCE)
    return text or packed or None


def are_counts(pair: tuple[Any, Any]) -> TypeGuard[tuple[int, int]]:
    """Whether both are whole numbers ≥ 0."""
    return all(is_whole(count) and count >= 0 for count in pair)


def usage_in(value: Any, depth: int = 0) -> tuple[int, int]:
    """The tokens that a reply says it took and gave, wherever its library puts them."""
    if depth > 6 or not isinstance(value, (dict, list)):
        return 0, 0
    for item in value if isinstance(value, list) else ():
        if any(found := usage_in(item, depth + 1)):
            return found
    if isinstance(value, list):
        return 0, 0
    for taken, given in _COUNTS:
        counts = value.get(taken), value.get(given)
        if are_counts(counts):
            return counts
    for key in ("usage_metadata", "usage", "token_usage", "llm_output", "generations", "message", "kwargs"):
        if any(found := usage_in(value.get(key), depth + 1)):
            return found
    return 0, 0
