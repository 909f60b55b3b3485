"""Matchers: rules, declared as data, for comparing one argument of a tool call with its expected value."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, StrictBool
from pydantic_core import InitErrorDetails

from agentic_bayes.records.base import Json, Number, Record, Text, field_of, problem_at

__all__ = ["Matcher"]

_KINDS = ("exact", "ignore", "regex", "one_of", "datetime", "as_set")
_TEXT = ("ignore_case", "ignore_whitespace")
_NUMERIC = ("absolute", "relative", "integers")


@lru_cache(maxsize=256)
def compiled_pattern(pattern: str) -> Any:
    """Compile a pattern with RE2, which matches in linear time whatever the pattern."""
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
    """Parse a date that is given at least to the day; None for anything else."""
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
    # the parser fills gaps from a default date: two different defaults show whether the text gave the day
    for default in (datetime(2001, 1, 1), datetime(2004, 2, 2)):
        try:
            found.append(parser.parse(value, default=default, tzinfos=_zone))
        except (ValueError, OverflowError, TypeError):
            return None
    return found[0] if found[0] == found[1] else None


def _zone(name: str | None, offset: int | None) -> timezone | None:
    """The time zone that a text names; abbreviations like EST are ambiguous and refused."""
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


Pattern = Annotated[Text, AfterValidator(_pattern)]


class Matcher(Record):
    """How one argument is compared with its expected value. Give at most one rule; without any, it must be equal.

    Attributes
    ----------
    exact : bool
        The values must be equal, as they must without a matcher.
    ignore : bool
        The argument is not compared; any value, or none, is accepted.
    absolute, relative : float
        Numbers may differ by at most this, or by at most this share of the larger one.
    integers : bool
        Whether that tolerance also applies between whole numbers, which otherwise must be equal.
    ignore_case, ignore_whitespace : bool
        Compare text (at any depth) without regard to case or white space.
    regex : str
        The whole text must match this regular expression (RE2 syntax, no look-around); the expected value is
        ignored.
    one_of : list
        The value must equal one of these; the expected value is ignored.
    datetime : bool
        The values are equal or name the same moment, at least to the day: "2024-05-20" is "May 20, 2024" and
        "2024-05-20T00:00". If only one has a time zone, the other is assumed to be in the same zone.
    as_set : bool
        Compare lists as sets: order and repetition do not matter.
    optional : bool
        The argument may be absent on either side; then it is not compared. Combines with any of the above.
    default : Any
        The value of the argument if it is absent. Combines with any of the above.
    """

    exact: StrictBool = False
    ignore: StrictBool = False
    absolute: Annotated[Number, AfterValidator(_tolerance)] | None = None
    relative: Annotated[Number, AfterValidator(_tolerance)] | None = None
    integers: StrictBool = False
    ignore_case: StrictBool = False
    ignore_whitespace: StrictBool = False
    regex: Pattern | None = None
    one_of: Annotated[tuple[Json, ...], AfterValidator(_some)] | None = None
    datetime: StrictBool = False
    as_set: StrictBool = False
    optional: StrictBool = False
    default: Json = None

    @property
    def has_default(self) -> bool:
        """Whether a default was given, even ``None``."""
        return "default" in self.model_fields_set

    @property
    def kind(self) -> str | None:
        """The rule that was given: a field's name, "text", "numeric", or None."""
        return next(iter(_kinds(self)), None)

    @classmethod
    def _across_fields(cls, data: Any) -> list[InitErrorDetails]:
        kinds = _kinds(data)
        if len(kinds) > 1:
            return [problem_at((), f"must compare in one way only, got {', '.join(kinds)}", None)]
        numeric = [name for name in _NUMERIC if field_of(data, name)]
        if numeric == ["integers"]:
            return [problem_at(("integers",), "must come with absolute or relative", None)]
        return []


def _kinds(data: Any) -> list[str]:
    """The comparison rules that are set."""
    kinds = [name for name in _KINDS if field_of(data, name) not in (None, False)]
    if any(field_of(data, name) for name in _TEXT):
        kinds.append("text")
    if any(field_of(data, name) not in (None, False) for name in _NUMERIC):
        kinds.append("numeric")
    return kinds
