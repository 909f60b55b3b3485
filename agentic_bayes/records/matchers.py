"""How an argument of a tool call is compared, declared as data."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, StrictBool
from pydantic_core import InitErrorDetails

from agentic_bayes.records.base import Json, Number, Record, Text, problem_at

__all__ = ["Matcher", "as_date", "compiled_pattern"]

_KINDS = ("exact", "ignore", "regex", "one_of", "datetime", "as_set")
_TEXT = ("ignore_case", "ignore_whitespace")
_NUMERIC = ("absolute", "relative", "integers")


@lru_cache(maxsize=256)
def compiled_pattern(pattern: str) -> Any:
    """The pattern, compiled by RE2, whose time is linear in the text whatever the pattern."""
    import re2  # type: ignore[import-untyped]  # google-re2 has no types

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode() if isinstance(reason, bytes) else str(reason)
        raise ValueError(f"must be a regular expression that RE2 can read ({text})") from None


def as_date(value: object) -> datetime | None:
    """The moment that a text names completely, to the day at least; None for anything else."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if not isinstance(value, str) or len(value) > 64 or not any(character.isdigit() for character in value):
        return None
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError:
        pass
    from dateutil import parser

    found = []
    # what the text does not say is filled in from a default: two of them tell whether the day was said
    for default in (datetime(2001, 1, 1), datetime(2004, 2, 2)):
        try:
            found.append(parser.parse(value, default=default, tzinfos=_zone))
        except (ValueError, OverflowError, TypeError):
            return None
    return found[0] if found[0] == found[1] else None


def _zone(name: str | None, offset: int | None) -> timezone | None:
    """The zone that a text names; abbreviations such as EST mean different things in different places."""
    if name is None and offset is None:
        return None
    if offset is not None:
        return timezone(timedelta(seconds=offset))
    if name in ("UTC", "GMT", "Z"):
        return UTC
    raise ValueError(f"the zone {name!r} is not clear")


def _pattern(pattern: str) -> str:
    compiled_pattern(pattern)
    return pattern


def _tolerance(value: float) -> float:
    if value < 0:
        raise ValueError("must be a number ≥ 0")
    return value


def _some(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise ValueError("must be a list of at least one value")
    return values


class Matcher(Record):
    """How one argument is compared with the expected value. At most one way is given; without any, exactly.

    Attributes
    ----------
    exact : bool
        Equal, as everywhere without a matcher.
    ignore : bool
        Any value will do, and so will none; the argument does not count.
    absolute, relative : float
        Numbers may differ by at most this, or by at most this share of the larger one.
    integers : bool
        Whether that is so between whole numbers, too, which are otherwise compared exactly.
    ignore_case, ignore_whitespace : bool
        Texts (at any depth) are compared without regard to case, or to white space.
    regex : str
        The text must match this regular expression as a whole (RE2: linear time, no look-around), whatever value is
        expected.
    one_of : list
        The value must equal one of these, whatever value is expected.
    datetime : bool
        Both are equal, or both name the same moment, to the day at least: "2024-05-20" is "May 20, 2024" and
        "2024-05-20T00:00". Where only one of them has a zone, the other is taken to be in the same.
    as_set : bool
        Lists are compared as sets: order and repetition do not matter.
    optional : bool
        The argument may be absent on either side and does not count then. Goes with any of the above.
    default : Any
        What the argument is where it is absent. Goes with any of the above.
    """

    exact: StrictBool = False
    ignore: StrictBool = False
    absolute: Annotated[Number, AfterValidator(_tolerance)] | None = None
    relative: Annotated[Number, AfterValidator(_tolerance)] | None = None
    integers: StrictBool = False
    ignore_case: StrictBool = False
    ignore_whitespace: StrictBool = False
    regex: Annotated[Text, AfterValidator(_pattern)] | None = None
    one_of: Annotated[tuple[Json, ...], AfterValidator(_some)] | None = None
    datetime: StrictBool = False
    as_set: StrictBool = False
    optional: StrictBool = False
    default: Json = None

    @property
    def has_default(self) -> bool:
        """Whether a default was given, be it ``None``."""
        return "default" in self.model_fields_set

    @property
    def kind(self) -> str | None:
        """The way of comparing that was given: a field's name, "text", "numeric", or None."""
        return next(iter(_kinds(self)), None)

    @classmethod
    def _across_fields(cls, data: Any) -> list[InitErrorDetails]:
        kinds = _kinds(data)
        if len(kinds) > 1:
            return [problem_at((), f"must give one way of comparing, got {', '.join(kinds)}", None)]
        numeric = [name for name in _NUMERIC if _of(data, name)]
        if numeric == ["integers"]:
            return [problem_at(("integers",), "must come with absolute or relative", None)]
        return []


def _of(data: Any, name: str) -> Any:
    return data.get(name) if isinstance(data, dict) else getattr(data, name, None)


def _kinds(data: Any) -> list[str]:
    """The ways of comparing that are given."""
    kinds = [name for name in _KINDS if _of(data, name) not in (None, False)]
    if any(_of(data, name) for name in _TEXT):
        kinds.append("text")
    if any(_of(data, name) not in (None, False) for name in _NUMERIC):
        kinds.append("numeric")
    return kinds
