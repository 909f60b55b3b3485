"""JSON within answers: finding it in prose, and looking things up in it by JSONPath (RFC 9535)."""

from __future__ import annotations

import functools
import re
from typing import Any

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.records.base import short
from agentic_bayes.records.wire import strict_json

__all__ = ["JsonNotFound", "compiled_path", "found_json", "values_at"]

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
            f"must be a JSONPath, for example $.a.b[0] ({short(reason, 120)}), got {short(path)}"
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
            value, position, fault = _decoded(text, mark.start())
        except ValueError as error:
            # skip what was parsed before the error: a piece of a value that was cut off is not an answer
            position = max(mark.end(), getattr(error, "pos", len(text)))
            continue
        if not fault:
            return value
        problem = f"; {fault}"
    raise JsonNotFound(f"no complete JSON {wanted} in the answer{problem}: {short(text, 80)}")


def _read(text: str) -> Any:
    value, end, fault = _decoded(text, 0)
    if end != len(text) or fault:
        raise ValueError(fault or "more than one JSON value")
    return value


def _decoded(text: str, start: int) -> tuple[Any, int, str]:
    """The JSON value that begins at `start`, where it ends, and why it must not be used."""
    value, end, fault = strict_json.values_at()(text, start)
    return value, end, fault or ("nested too deeply" if strict_json.too_deep(value) else "")
