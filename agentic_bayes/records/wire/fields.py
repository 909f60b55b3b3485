"""Typed access to the fields of foreign objects; a value of the wrong type is noted with its path."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentic_bayes.records.base import field_path, short
from agentic_bayes.records.wire.strict_json import MAX_DEPTH, strict_json

__all__ = ["UNREADABLE", "Faults", "Fields", "fitting"]

_MISSING = object()


class Faults:
    """The problems of one record, as (field path, message), in the order they were found."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], None] = {}
        self.not_finite = 0

    def add(self, path: tuple[str | int, ...], message: str) -> None:
        """Note a problem once."""
        self._found.setdefault((field_path(path), message))

    def __bool__(self) -> bool:
        return bool(self._found)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._found)

    def found(self) -> tuple[tuple[str, str], ...]:
        """All problems noted so far."""
        return tuple(self._found)


class Fields:
    """An object of a file, read field by field.

    Notes
    -----
    Every method returns None (or an empty list or object) for a field that is absent or null. It does so too for a
    field of the wrong type, and notes it. With ``required=True``, absent and null are also faults.
    """

    def __init__(self, value: Any, path: tuple[str | int, ...], faults: Faults) -> None:
        self.path, self.faults = path, faults
        self._is_object = isinstance(value, dict)
        if not self._is_object:
            faults.add(path, f"must be an object, got {short(value)}")
            value = {}
        self.value: Mapping[str, Any] = value

    def __contains__(self, key: str) -> bool:
        return self.value.get(key) is not None

    def raw(self, key: str) -> Any:
        """The value as it is; None if it is absent."""
        return self.value.get(key)

    def text(self, key: str, *, required: bool = False) -> str | None:
        """A text."""
        value = self._given(key, required)
        if value is _MISSING:
            return None
        if isinstance(value, str):
            return value
        self._wrong(key, "text", value)
        return None

    def name(self, key: str, *, required: bool = False) -> str | None:
        """An id or name: text that is not blank, or a whole number, which becomes its digits."""
        value = self._given(key, required)
        if value is _MISSING:
            return None
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value.strip():
            return value
        self._wrong(key, "text that is not blank, or a whole number", value)
        return None

    def whole(self, key: str, *, required: bool = False) -> int | None:
        """A whole number ≥ 0."""
        value = self._given(key, required)
        if value is _MISSING:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        self._wrong(key, "a whole number ≥ 0", value)
        return None

    def number(self, key: str, *, required: bool = False) -> float | None:
        """A finite number."""
        value = self._given(key, required)
        if value is _MISSING:
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and _is_finite(value):
            return value
        self._wrong(key, "a finite number", value)
        return None

    def share(self, key: str, *, required: bool = False) -> float | None:
        """A number in [0, 1]; a boolean is 0 or 1."""
        value = self._given(key, required)
        if value is _MISSING:
            return None
        if isinstance(value, (int, float)) and 0 <= value <= 1:
            return float(value)
        self._wrong(key, "a number in [0, 1]", value)
        return None

    def mapping(self, key: str, *, required: bool = False) -> Fields:
        """An object; empty if absent."""
        value = self._given(key, required)
        return Fields({} if value is _MISSING else value, (*self.path, key), self.faults)

    def sequence(self, key: str, *, required: bool = False) -> list[Any]:
        """A list; empty if absent."""
        value = self._given(key, required)
        if value is _MISSING:
            return []
        if isinstance(value, list):
            return value
        self._wrong(key, "a list", value)
        return []

    def mappings(self, key: str, *, required: bool = False) -> list[Fields]:
        """A list of objects."""
        found = enumerate(self.sequence(key, required=required))
        return [Fields(item, (*self.path, key, position), self.faults) for position, item in found]

    def texts(self, key: str) -> list[str]:
        """A list of texts."""
        found = []
        for position, item in enumerate(self.sequence(key)):
            if isinstance(item, str):
                found.append(item)
            else:
                self.faults.add((*self.path, key, position), f"must be text, got {short(item)}")
        return found

    def arguments(self, *keys: str) -> dict[str, Any]:
        """The arguments of a tool call, under the first key that is present: an object, or an object as JSON text.

        ``None``, ``""``, ``"null"`` and ``"{}"`` all mean "no arguments". Text that is not a JSON object, or repeats a
        key, is still what the agent wrote: it is kept under the key ``"(not JSON)"``.
        """
        key = next((key for key in keys if key in self), None)
        value = None if key is None else self.value[key]
        if isinstance(value, str):
            if not value.strip():
                return {}
            try:
                value = strict_json(value, finite=False)
            except ValueError:
                return {UNREADABLE: self.value[key or ""]}
            if value is not None and not isinstance(value, dict):
                return {UNREADABLE: self.value[key or ""]}
        if value is None:
            return {}
        if isinstance(value, dict):
            return value
        self._wrong(key or "", "an object, or the JSON text of one", value)
        return {}

    def _given(self, key: str, required: bool) -> Any:
        value = self.value.get(key)
        if value is None:
            if required and self._is_object:
                what = "null" if key in self.value else "nothing"
                self.faults.add((*self.path, key), f"must be given, got {what}")
            return _MISSING
        return value

    def _wrong(self, key: str, allowed: str, value: Any) -> None:
        self.faults.add((*self.path, key), f"must be {allowed}, got {short(value)}")


UNREADABLE = "(not JSON)"
"""The argument name under which text is kept that is not a JSON object of arguments."""


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond the largest float
        return False


# leave room for the record around the value
_DEEPEST = MAX_DEPTH - 20


def fitting(
    value: Any, path: tuple[str | int, ...], faults: Faults, *, text: Callable[[str], str] | None = None
) -> Any:
    """Make a value of a file fit for a record: NaN becomes null; broken text and endless nesting are faults."""
    if isinstance(value, str):
        value = text(value) if text else value
        if not value.isascii():
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                faults.add(path, f"must be Unicode text without lone surrogates, got {short(value)}")
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        faults.not_finite += 1
        return None
    if isinstance(value, (dict, list)):
        if len(path) >= _DEEPEST:
            faults.add(path[:3], f"must not be nested deeper than {_DEEPEST} levels")
            return None
        if isinstance(value, list):
            return [fitting(item, (*path, position), faults, text=text) for position, item in enumerate(value)]
        for key in value:
            if not key.isascii():
                fitting(key, (*path, short(key)), faults)
        return {key: fitting(item, (*path, key), faults, text=text) for key, item in value.items()}
    return value
