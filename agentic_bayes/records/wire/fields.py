"""Typed access to the fields of foreign objects; a value of the wrong type is noted with its path."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentic_bayes.records.base import field_path, is_finite, is_number, is_share, is_whole, short
from agentic_bayes.records.wire.strict_json import MAX_DEPTH, strict_json


class Faults:
    """The problems of one record, as (field path, message), in the order they were found."""

    def __init__(self) -> None:
        self._noted: dict[tuple[str, str], None] = {}
        self.not_finite = 0

    def add(self, path: tuple[str | int, ...], message: str) -> None:
        """Note a problem once."""
        self._noted.setdefault((field_path(path), message))

    def __bool__(self) -> bool:
        return bool(self._noted)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._noted)


class Fields:
    """An object of a file, read field by field.

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

    def inside(self, value: Any) -> Fields:
        """An object within this one, for faults the same place."""
        return Fields(value, self.path, self.faults)

    def only(self, key: str) -> Fields:
        """An object with one member of this."""
        return self.inside({key: self.value[key]} if key in self else {})

    def raw(self, key: str) -> Any:
        """The value as it is; None if it is absent."""
        return self.value.get(key)

    def text(self, key: str, *, required: bool = False) -> str | None:
        """A text."""
        value: str | None = self._checked(key, required, "text", lambda value: isinstance(value, str))
        return value

    def name(self, key: str, *, required: bool = False) -> str | None:
        """An id or name: text that is not blank, or a whole number, which becomes its digits."""
        value = self._checked(key, required, "text that is not blank, or a whole number", is_name)
        return None if value is None else str(value)

    def identity(self, key: str) -> str | None:
        """The id of a call: text or a whole number; blank text is no id."""
        value = self.value.get(key)
        return None if isinstance(value, str) and not value.strip() else self.name(key)

    def whole(self, key: str, *, required: bool = False) -> int | None:
        """A whole number ≥ 0."""
        value = self._checked(key, required, "a whole number ≥ 0", _is_count)
        return None if value is None else int(value)

    def number(self, key: str, *, required: bool = False) -> float | None:
        """A finite number."""
        value: float | None = self._checked(key, required, "a finite number", is_finite)
        return value

    def share(self, key: str, *, required: bool = False) -> float | None:
        """A number in [0, 1]; a boolean is 0 or 1."""
        value = self._checked(
            key, required, "a number in [0, 1]", lambda value: isinstance(value, bool) or is_share(value)
        )
        return None if value is None else float(value)

    def rating(self, key: str) -> float | bool | None:
        """A score on any scale: a finite number, or a boolean."""
        value: float | bool | None = self._checked(
            key, False, "a number", lambda value: isinstance(value, bool) or is_finite(value)
        )
        return value

    def mapping(self, key: str, *, required: bool = False) -> Fields:
        """An object; empty if absent."""
        value = self._checked(key, required, "an object", lambda value: True)
        return Fields({} if value is None else value, (*self.path, key), self.faults)

    def sequence(self, key: str, *, required: bool = False) -> list[Any]:
        """A list; empty if absent."""
        return self._checked(key, required, "a list", lambda value: isinstance(value, list)) or []

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
        key = next((key for key in keys if key in self), keys[0])
        raw = value = self.value.get(key)
        if isinstance(raw, str):
            try:
                value = strict_json(raw, finite=False) if raw.strip() else {}
            except ValueError:
                value = raw
            if not isinstance(value, dict | None):
                return {UNREADABLE: raw}
        if isinstance(value, dict):
            return value
        if value is not None:
            self._wrong(key, "an object, or an object as JSON text", value)
        return {}

    def _checked(self, key: str, required: bool, allowed: str, fits: Callable[[Any], bool]) -> Any:
        """The value if it fits; None, and perhaps a fault, if it is absent, null or does not fit."""
        value = self.value.get(key)
        if value is None:
            if required and self._is_object:
                got = "null" if key in self.value else "nothing"
                self.faults.add((*self.path, key), f"must be given, got {got}")
        elif not fits(value):
            self._wrong(key, allowed, value)
            return None
        return value

    def _wrong(self, key: str, allowed: str, value: Any) -> None:
        self.faults.add((*self.path, key), f"must be {allowed}, got {short(value)}")


UNREADABLE = "(not JSON)"
"""The argument name under which text is kept that is not a JSON object of arguments."""


def is_name(value: Any) -> bool:
    """Whether this names something: text that is not blank, or a whole number."""
    return bool(value.strip()) if isinstance(value, str) else is_whole(value)


def _is_count(value: Any) -> bool:
    return is_number(value) and value >= 0 and (isinstance(value, int) or value.is_integer())


# leave room for the record around the value
_DEEPEST = MAX_DEPTH - 20


def fitting(
    value: Any, path: tuple[str | int, ...], faults: Faults, *, text: Callable[[str], str] | None = None
) -> Any:
    """Make a value of a file fit for a record: NaN becomes null; endless nesting is a fault."""
    if isinstance(value, str):
        return text(value) if text else value
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
        return {key: fitting(item, (*path, key), faults, text=text) for key, item in value.items()}
    return value
