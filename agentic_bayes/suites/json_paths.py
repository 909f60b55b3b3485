"""JSON within answers: finding it in prose, and looking things up in it by JSONPath (RFC 9535)."""

from __future__ import annotations

import functools
import json
import math
import re
from typing import Any

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.records.base import MAX_DEPTH, short

__all__ = ["JsonNotFound", "compiled_path", "found_json", "strict_json", "values_at"]

_FENCE = re.compile(r"^[ \t]*(```|~~~)[ \t]*[\w+-]*[ \t]*$", re.MULTILINE)
_MOST_STARTS = 10_000  # brackets at which JSON is looked for in one text
_KINDS = {dict: ("object", "{"), list: ("list", "[")}


class JsonNotFound(Exception):
    """A text holds no JSON of the kind that was looked for; the message says what it holds instead."""


@functools.lru_cache(maxsize=256)
def compiled_path(path: str) -> Any:
    """A JSONPath that is ready to be used."""
    try:
        return _environment().compile(path)
    except Exception as error:
        # the library's own str() of an error may raise
        reason = str(error.args[0]) if error.args else type(error).__name__
        raise InvalidArgument(
            f"must be a JSONPath such as $.a.b[0] ({short(reason, 120)}), got {short(path)}"
        ) from None


@functools.cache
def _environment() -> Any:
    from jsonpath import JSONPathEnvironment

    environment = JSONPathEnvironment(strict=True)
    for name in ("match", "search"):
        environment.function_extensions.pop(name, None)
    return environment


def values_at(path: str, document: Any) -> list[Any]:
    """What stands at a path, in the order of the document."""
    if isinstance(document, str):  # the library would read it as JSON text
        return [document] if path.strip() == "$" else []
    return list(compiled_path(path).findall(document))


def strict_json(text: str) -> Any:
    """The JSON value that a text is."""

    def constant(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    def number(digits: str) -> float:
        found = float(digits)
        if not math.isfinite(found):
            raise ValueError(f"{short(digits)} is too large")
        return found

    return json.loads(text, parse_constant=constant, parse_float=number)


def found_json(text: str, kind: type | None = None) -> Any:
    """The JSON in a text: all of it, else the first complete value in a code fence, else in the prose."""
    kinds = [kind] if kind in _KINDS else list(_KINDS)
    try:
        return _read(text.strip())
    except ValueError:
        pass
    for piece in _fenced(text):
        try:
            value = _read(piece.strip())
        except ValueError:
            continue
        if kind not in _KINDS or isinstance(value, kind):
            return value
    return _in_prose(text, "".join(_KINDS[one][1] for one in kinds), " or ".join(_KINDS[one][0] for one in kinds))


def _fenced(text: str) -> list[str]:
    """What stands between the marks of code fences."""
    marks = list(_FENCE.finditer(text))
    return [text[start.end() : end.start()] for start, end in zip(marks[::2], marks[1::2], strict=False)]


def _in_prose(text: str, opening: str, wanted: str) -> Any:
    """The first complete value that begins with one of these brackets."""
    start = re.compile(f"[{re.escape(opening)}]")
    position = starts = 0
    problem = ""
    while starts < _MOST_STARTS and (mark := start.search(text, position)):
        starts += 1
        try:
            value, position, fault = _decode(text, mark.start())
        except json.JSONDecodeError as error:
            # on from where reading ended: what stands within a value that was cut off is not an answer of its own
            position = max(mark.end(), error.pos)
            continue
        if not fault:
            return value
        problem = f"; {fault}"
    raise JsonNotFound(f"no complete JSON {wanted} in the answer{problem}: {short(text, 80)}")


def _read(text: str) -> Any:
    value, end, fault = _decode(text, 0)
    if end != len(text) or fault:
        raise ValueError(fault or "more than one JSON value")
    return value


def _decode(text: str, start: int) -> tuple[Any, int, str]:
    """A JSON value, where it ends, and why it must not be used all the same."""
    faults: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            keys = [key for key, _ in items]
            faults.append(f"one gives the key {short(next(key for key in keys if keys.count(key) > 1))} twice")
        return found

    def constant(name: str) -> None:
        faults.append(f"one holds {name}, which is not JSON")

    def number(digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            faults.append(f"one holds {short(digits)}, which is too large")
        return value

    # strict=False: models write line breaks into strings
    decoder = json.JSONDecoder(object_pairs_hook=pairs, parse_constant=constant, parse_float=number, strict=False)
    try:
        value, end = decoder.raw_decode(text, start)
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError) as error:  # a number may have more digits than Python reads
        raise json.JSONDecodeError(str(error), text, len(text)) from None
    if _too_deep(value):
        faults.append("one is nested too deeply")
    return value, end, faults[0] if faults else ""


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for item in level
            if isinstance(item, (dict, list))
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True
