"""Dates and hours in several words: months as codes, dates as one token, and their parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from agentic_bayes.evidence.reference.answer_text import Token
from agentic_bayes.evidence.reference.numerals import read_short_date
from agentic_bayes.evidence.reference.vocabulary import FOREIGN_MONTHS, MONTHS, UNITS

_NAMES = {number: name for name, number in reversed(MONTHS.items())}  # the longest spelling wins
_MONTHS = MONTHS | FOREIGN_MONTHS
_MODAL = ("may", "march")  # words with another meaning, too
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})")
_FULL_HOUR = re.compile(r"([0-9]{1,2}):00")
_JOINTS = frozenset({"or", "and", "to", "oder", "und", "ou", "et", "y", "bis", "of", "de"})
_YEAR = 4  # digits
_LONGEST_RUN = 12  # tokens of days and months before a year
_HALVES = frozenset({"am", "pm"})


def with_months(text: Sequence[Token]) -> list[Token]:
    """The tokens, with every month's name next to a day or year turned into a code."""
    out = list(text)
    for i in [i for i, token in enumerate(text) if token.text in _MONTHS and token.kind == "word"]:
        if _is_next_to_number(text, i):
            out[i] = text[i]._replace(kind="code", text=_NAMES[_MONTHS[text[i].text]])
    return out


def _is_next_to_number(text: Sequence[Token], i: int) -> bool:
    name = text[i].text
    after = text[i + 1] if i + 1 < len(text) else None
    ends = after is None or after.opens
    if after is not None and _is_whole(after, 1000, 2999):
        return True
    # the point of an abbreviation does not end a clause
    if after is not None and _is_whole(after, 1, 31) and (not ends or name != _NAMES[_MONTHS[name]]):
        return True
    linked = i > 1 and text[i - 1].text in ("of", "de")
    before = text[i - 1 - linked] if i > linked else None
    dated = linked or ends or name not in _MODAL
    # the point after a day, as in German, neither
    return dated and (name in FOREIGN_MONTHS or not text[i].opens) and before is not None and _is_whole(before, 1, 31)


def _is_whole(token: Token, low: int, high: int) -> bool:
    return (
        token.kind == "number"
        and not token.units
        and token.text.isdigit()
        and len(token.text) <= _YEAR
        and low <= int(token.text) <= high
    )


def parts(token: Token) -> list[Token]:
    """The parts of a date (2026-03-14: march, 14, 2026) or full hour (9:00 am: 9 am); none for other tokens."""
    if token.kind == "code" and (date := _DATE.fullmatch(token.text)) and int(date[2]) in _NAMES:
        day, year = (Token("number", str(int(text)), negated=token.negated) for text in (date[3], date[1]))
        return [Token("code", _NAMES[int(date[2])], negated=token.negated), day, year]
    if token.kind == "code" and (hour := _FULL_HOUR.fullmatch(token.text)):
        return [Token("number", str(int(hour[1])), token.units or _HALVES, token.negated)]
    if token.kind == "number" and token.units & _HALVES and token.text.isdigit():
        return [Token("code", f"{token.text}:00", token.units, token.negated)]
    return []


def with_parts(text: Iterable[Token]) -> Iterator[Token]:
    """The tokens, each followed by its parts and other ways to write its time of day."""
    for token in text:
        yield token
        if token.kind == "code" or token.units:
            yield from parts(token)
            yield from _times(token)


def _times(token: Token) -> Iterator[Token]:
    """The other ways to write a time of day (2:30 pm: 14:30, 02:30 pm); only those that can mean nothing else."""
    time = _TIME.fullmatch(token.text) if token.kind == "code" else None
    if token.negated or (time is None and not (token.units & _HALVES and token.text.isdigit())):
        return
    hour, minute = (int(time[1]), time[2]) if time else (int(token.text), "00")
    late = hour % 12 + 12 * ("pm" in token.units) if token.units else hour  # on a clock of 24 hours
    if late > 23:
        return
    forms = [(hour, token.units)]
    if token.units or not 0 < hour < 13:
        forms = [(late % 12 or 12, UNITS["pm" if late > 11 else "am"])]
        forms += [] if 0 < late < 13 else [(late, frozenset())]
    for number, units in forms:
        for text in {f"{number}:{minute}", f"{number:02}:{minute}"}:
            yield Token("code", text, units)
        if minute == "00" and units:
            yield Token("number", str(number), units)


def with_dates(text: Sequence[Token]) -> list[Token]:
    """The tokens, with every day, month and year in a row as one date; "March 14 or 15, 2026" has two."""
    months = with_months(text)
    if not [token for token in months if len(token.text) == _YEAR and _is_whole(token, 1000, 2999)]:
        return months
    out: list[Token] = []
    for token in months:
        if _is_whole(token, 1000, 2999):
            start = len(out)
            while start > max(len(out) - _LONGEST_RUN, 0) and _is_part(out[start - 1]):
                start -= 1
            start = start if _dates(out[start:], token.text) else max(start, len(out) - 2)
            if dates := _dates(out[start:], token.text):
                out[start:] = dates
                continue
        out.append(token)
    return out


def _is_part(token: Token) -> bool:
    return _is_whole(token, 1, 31) or _is_month(token) or (token.kind == "word" and token.text in _JOINTS)


def _dates(run: Sequence[Token], year: str) -> list[Token]:
    """A run of days, months and "or" before a year, as dates and what joins them; empty if it is none."""
    days = [i for i, token in enumerate(run) if token.kind == "number"]
    months = [i for i, token in enumerate(run) if token.kind == "code"]
    if not days or not months:
        return []
    month_first = months[0] < days[0]
    dates: dict[int, Token] = {}
    for day in days:
        own = [month for month in months if (month < day) == month_first]
        if not own:
            return []
        month = own[-1] if month_first else own[0]
        date = f"{year}-{MONTHS[run[month].text]:02}-{int(run[day].text):02}"
        negated = run[day].negated or run[month].negated
        opens = run[day].opens or (abs(day - month) == 1 and run[month].opens)
        dates[day] = Token("code", date, negated=negated, opens=opens)
    return [
        dates.get(i, token) for i, token in enumerate(run) if token.kind != "code" and token.text not in ("of", "de")
    ]


def with_short_dates(text: Sequence[Token]) -> list[Token]:
    """The tokens, with 20260314 and 14.3.26 as dates."""
    dates = (
        read_short_date(token.text) if token.kind in ("code", "number") and not token.units else "" for token in text
    )
    return [token._replace(kind="code", text=date) if date else token for token, date in zip(text, dates, strict=True)]


def has_date(text: Iterable[Token]) -> bool:
    """Whether one of the tokens is a date with its year."""
    return any(token.kind == "code" and _DATE.fullmatch(token.text) for token in text)


def _is_month(token: Token) -> bool:
    return token.kind == "code" and token.text in MONTHS
