"""Dates and hours among tokens: month names beside numbers, and the parts of what is written as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from agentic_bayes.evidence.reference.answer_text import Token
from agentic_bayes.evidence.reference.vocabulary import MONTHS

_NAMES = {number: name for name, number in reversed(MONTHS.items())}  # the longest spelling comes first
_MODAL = ("may", "march")  # words of another meaning, too
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_FULL_HOUR = re.compile(r"([0-9]{1,2}):00")
_HALVES = frozenset({"am", "pm"})


def with_months(found: Sequence[Token]) -> list[Token]:
    """The tokens, with the name of a month beside a day or a year as a code."""
    out = list(found)
    for place, token in enumerate(found):
        if token.kind == "word" and token.text in MONTHS and _beside_number(found, place):
            out[place] = token._replace(kind="code", text=_NAMES[MONTHS[token.text]])
    return out


def _beside_number(found: Sequence[Token], place: int) -> bool:
    name = found[place].text
    after = found[place + 1] if place + 1 < len(found) else None
    ends = after is None or after.opens
    if after is not None and _is_whole(after, 1000, 2999):
        return True
    # the point of an abbreviation ends no clause
    if after is not None and _is_whole(after, 1, 31) and (not ends or name != _NAMES[MONTHS[name]]):
        return True
    linked = place > 1 and found[place - 1].text == "of"
    before = found[place - 1 - linked] if place > linked else None
    dated = linked or ends or name not in _MODAL
    return dated and not found[place].opens and before is not None and _is_whole(before, 1, 31)


def _is_whole(token: Token, low: int, high: int) -> bool:
    return (
        token.kind == "number"
        and not token.units
        and token.text.isdigit()
        and len(token.text) <= 4
        and low <= int(token.text) <= high
    )


def parts(token: Token) -> list[Token]:
    """What says the same as a date (2026-03-14: march, 14, 2026) or a full hour (9:00 am: 9 am); else nothing."""
    if token.kind == "code" and (date := _DATE.fullmatch(token.text)) and int(date[2]) in _NAMES:
        day, year = (Token("number", str(int(text)), negated=token.negated) for text in (date[3], date[1]))
        return [Token("code", _NAMES[int(date[2])], negated=token.negated), day, year]
    if token.kind == "code" and (hour := _FULL_HOUR.fullmatch(token.text)):
        return [Token("number", str(int(hour[1])), token.units or _HALVES, token.negated)]
    if token.kind == "number" and token.units & _HALVES and token.text.isdigit():
        return [Token("code", f"{token.text}:00", token.units, token.negated)]
    return []


def with_parts(found: Iterable[Token]) -> Iterator[Token]:
    """The tokens, each followed by its parts."""
    for token in found:
        yield token
        yield from parts(token)
