"""Replaces characters that text cannot hold, and gives ids one Unicode form, for every reader."""

from __future__ import annotations

import re
import unicodedata
import warnings
from contextlib import suppress
from typing import Any

from agentic_bayes.errors import DoubtfulRecords
from agentic_bayes.records.wire.strict_json import MAX_DEPTH

REPLACED = "replaced_characters"
"""Key in a conversation's metadata: how many characters were replaced."""

NOT_TEXT = "characters that are not text (half a surrogate pair, or NUL)"
DOUBT = f"{NOT_TEXT} were replaced and counted in metadata.{REPLACED}"

IDS = {"assistant_id": "agents", "session_id": "sessions", "task_id": "tasks"}
"""The ids of a record, and what they name."""

_BROKEN = re.compile("[\0\ud800-\udfff]")
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def readable(record: Any) -> tuple[Any, int]:
    """A record without lone surrogates and NUL (but in ids: two could become one), and how many were replaced."""
    if not isinstance(record, dict) or not _holds_broken(record):
        return record, 0
    changed, count = replaced(record)
    if not count:
        return record, 0
    for key in IDS.keys() & record.keys():
        changed[key] = _whole(record[key])
    turns = changed.get("conversation")
    for turn, old in zip(turns, record["conversation"], strict=True) if isinstance(turns, list) else ():
        if _has_id(turn):
            turn["qa_id"] = _whole(old["qa_id"])
    metadata = changed.get("metadata", {})
    if isinstance(metadata, dict):
        changed["metadata"] = {**metadata, REPLACED: count}
    return changed, count


def _has_id(turn: Any) -> bool:
    return isinstance(turn, dict) and "qa_id" in turn


def _holds_broken(record: Any) -> bool:
    """Whether any text in a JSON value must be replaced: a look that is much faster than the replacement."""
    turns = record.get("conversation")
    parts = ({**record, "conversation": None}, *turns) if isinstance(turns, list) else (record,)
    with suppress(RecursionError):
        # written by Python, which escapes both, and turn by turn, so that nothing large is held twice
        if not any("\\ud" in text or "\\x00" in text for text in map(repr, parts)):
            return False
    waiting = [record]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            if "\0" in value or not (value.isascii() or _HALF_PAIR.search(value) is None):
                return True
        elif isinstance(value, dict):
            waiting += value
            waiting += value.values()
        elif isinstance(value, (list, tuple)):
            waiting += value
    return False


def _whole(identity: Any) -> Any:
    return _HALF_PAIR.sub(_REPLACEMENT, identity) if isinstance(identity, str) else identity


def readable_or_said(record: Any) -> Any:
    """A record as `readable` gives it, with a warning if characters were replaced."""
    found, count = readable(record)
    if count:
        warnings.warn(DoubtfulRecords(DOUBT), stacklevel=3)
    return found


def replaced(value: Any, depth: int = 0) -> tuple[Any, int]:
    """The value, itself if nothing in it had to be replaced, and the number of replacements."""
    if isinstance(value, str):
        if value.isascii() and "\0" not in value:
            return value, 0
        return _BROKEN.subn(_REPLACEMENT, value)
    if depth > MAX_DEPTH or not isinstance(value, (dict, list, tuple)):
        return value, 0
    if isinstance(value, dict):
        total, members = 0, {}
        for key, item in value.items():
            name, of_key = replaced(key, depth)
            members[name], of_item = replaced(item, depth + 1)
            total += of_key + of_item
        # two keys that differ only in what was replaced must not become one
        return (members, total) if total and len(members) == len(value) else (value, 0)
    items = [replaced(item, depth + 1) for item in value]
    total = sum(count for _, count in items)
    return ([item for item, _ in items], total) if total else (value, 0)


def one_form(record: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str, str]]]:
    """A record with its ids in Unicode's form NFC; and what was not: what it names, as it was, as it is."""
    found: list[tuple[str, str, str]] = []

    def normal(kind: str, value: Any) -> Any:
        if not isinstance(value, str) or value.isascii():
            return value
        form = unicodedata.normalize("NFC", value)
        found.append((kind, value, form))
        return form

    changed = {key: normal(IDS[key], value) if key in IDS else value for key, value in record.items()}
    turns = record.get("conversation")
    if isinstance(turns, list) and any(_has_id(turn) and not str(turn["qa_id"]).isascii() for turn in turns):
        changed["conversation"] = [
            {**turn, "qa_id": normal("questions", turn["qa_id"])} if _has_id(turn) else turn for turn in turns
        ]
    return (changed, found) if found else (record, [])
