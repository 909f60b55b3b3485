"""Every place in a JSON value, and the value with another at a place, for tests of misshapen files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Place = tuple[str | int, ...]


def places_in(value: Any, at: Place = ()) -> Iterator[Place]:
    """Every place, that of the value itself first."""
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places_in(item, (*at, key))


def put(value: Any, at: Place, new: Any) -> Any:
    """A copy with another value at a place, which may be a new one; what lies elsewhere is shared with the original."""
    if not at:
        return new
    first, *rest = at
    copied = value.copy()
    copied[first] = put(value[first], tuple(rest), new) if rest else new
    return copied
