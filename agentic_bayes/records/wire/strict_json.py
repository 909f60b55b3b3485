"""JSON read strictly: a repeated key, NaN, a number too large or endless nesting is an error, never a guess."""

from __future__ import annotations

import json
import math
import reprlib
from collections import Counter
from collections.abc import Callable
from typing import Any

MAX_DEPTH = 100
"""Values nested deeper than this are refused, so that no later step can run out of stack."""


def strict_json(text: str, *, finite: bool = True, unique: bool = True) -> Any:
    """The value of a JSON text, or a ValueError that says why there is none.

    `finite` refuses NaN, Infinity and numbers beyond the largest float; `unique` refuses a key that occurs twice.
    """
    value, _, fault = _decoder(finite, unique, strict=True)(text, None)
    if fault:
        raise ValueError(fault)
    return value


def values_at(*, finite: bool = True) -> Callable[[str, int], tuple[Any, int, str]]:
    """Reads the JSON value at a place of a text: the value, where it ends, and why it must not be used, or "".

    Line breaks within strings are allowed, because models write them. One reader may read many values.
    """
    return _decoder(finite, True, strict=False)


def _decoder(finite: bool, unique: bool, *, strict: bool) -> Callable[[str, int | None], tuple[Any, int, str]]:
    faults: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            faults.append(f"key {reprlib.repr(repeated_keys(pairs)[0])} occurs twice")
        return value

    def constant(name: str) -> float:
        faults.append(f"{name} is not JSON")
        return math.nan

    def number(digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            faults.append(f"the number {digits[:20]}{'…' * (len(digits) > 20)} is too large")
        return value

    decoder = json.JSONDecoder(
        object_pairs_hook=members if unique else None,
        parse_constant=constant if finite else None,
        parse_float=number if finite else None,
        strict=strict,
    )

    def decoded(text: str, start: int | None) -> tuple[Any, int, str]:
        faults.clear()
        try:
            if start is None:
                value, end = decoder.decode(text), len(text)
            else:
                value, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError:
            raise
        except RecursionError:
            raise ValueError("nested too deeply") from None
        except ValueError:
            raise ValueError("a number has too many digits") from None
        return value, end, faults[0] if faults else ""

    return decoded


def repeated_keys(pairs: list[tuple[str, Any]]) -> tuple[str, ...]:
    """The keys that an object repeats: no rule says which of their values was meant."""
    return tuple(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)


def too_deep(value: object) -> bool:
    """Whether a JSON value is nested deeper than `MAX_DEPTH` levels, whatever the interpreter's own limit is."""
    level: dict[int, object] = {0: value}
    for _ in range(MAX_DEPTH):
        inside = (
            item
            for container in level.values()
            if isinstance(container, (dict, list, tuple))
            for item in (container.values() if isinstance(container, dict) else container)
        )
        level = {id(item): item for item in inside}  # a value that occurs in several places is checked once
        if not level:
            return False
    return any(isinstance(item, (dict, list, tuple)) for item in level.values())
