"""Turns numerals as people write them into one canonical decimal form (text, so that no digit is lost)."""

from __future__ import annotations

import contextlib
import datetime
import re
from collections.abc import Sequence
from fractions import Fraction

from agentic_bayes.evidence.reference.vocabulary import NUMBER_WORDS, POWERS_OF_TEN, TENS

_GROUPED = {mark: re.compile(rf"\d{{1,3}}(?:{re.escape(mark)}\d{{3}})+", re.ASCII) for mark in ",.'_"}
_INDIAN = re.compile(r"\d{1,2}(?:,\d{2})*,\d{3}", re.ASCII)
_SCIENTIFIC = re.compile(r"(\d+(?:\.\d+)?)e([+-]?\d{1,2})", re.ASCII)
_FRACTION = re.compile(r"(\d)/(2|4|5|8|10)|(\d{1,4})/(40|50|60|64|75|80|90|100|120|125|150|200|250|500|1000)", re.ASCII)
_DAY_FIRST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})", re.ASCII)
_SHORT_DATE = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d\d)", re.ASCII)
_COMPACT_DATE = re.compile(r"((?:19|20)\d\d)(\d\d)(\d\d)", re.ASCII)
_FIRST_CENTURY_END = 69  # two digits of a year up to this one belong to this century
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})", re.ASCII)
_A_HALF = re.compile(r"\bhalf an? (?=[a-z])(?!dozen)", re.ASCII)
_AND_A_HALF = re.compile(r"\b(an?|one|two|three|four|five|six|seven|eight|nine|ten|\d{1,4}) and a half\b", re.ASCII)
_A_UNIT_AND_A_HALF = re.compile(r"\b(?:an?|one) (\w+) and a half\b", re.ASCII)
_PART_OF_A = re.compile(r"\b(quarters?|thirds?) of an? (?=[a-z])", re.ASCII)
_HALF_PAST = re.compile(
    r"\bhalf past (one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,2})\b", re.ASCII
)
_DOZEN = re.compile(r"\b(?:(half) a|an?|one|(two|three|four|five|six|\d)) dozen\b", re.ASCII)
_A_POWER = re.compile(r"\ba (?=(?:hundred|thousand|million|billion|trillion)\b)", re.ASCII)
_POWER_OF_TEN = re.compile(r"(?:\b(\d+(?:\.\d+)?) ?[x\u00d7*\u00b7] ?)?\b10 ?\^ ?[({]?\+?(-?\d{1,2})\b[)}]?", re.ASCII)
_CLOCK = re.compile(r"(?<![\w.,:])([01]?\d|2[0-3])(?:h([0-5]\d)\b|(?:[.:]([0-5]\d))? uhr\b)", re.ASCII)
_HOUR = re.compile(r"h(?<=\dh)\d", re.ASCII)  # 14h30; quick to look for
_POINT_HALF = re.compile(r"\d\.[0-5]\d ?[ap]", re.ASCII)  # 2.30 pm; quick to look for
_POINT_TIME = re.compile(r"(?<![\w.,:])(1?\d)\.([0-5]\d)(?= ?[ap]\.?m\b)", re.ASCII)


def plain_number(text: str) -> str:
    """The canonical form of a decimal numeral (digits, optionally with a point and a minus sign)."""
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, _, fraction = digits.partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    number = f"{whole}.{fraction}" if fraction else whole
    return number if number == "0" else sign + number


def read_number(text: str) -> str | None:
    """The canonical form of a numeral with separators, or None if it is not a single number."""
    if not text.isascii() or not text[0].isdigit():
        return None
    if text.isdigit():
        return plain_number(text)
    if match := _SCIENTIFIC.fullmatch(text):
        return plain_number(shifted(match[1], int(match[2])))
    if match := _FRACTION.fullmatch(text):
        share = Fraction(text)
        return plain_number(f"{float(share):.12f}") if share < 1 and 10**12 % share.denominator == 0 else None
    whole, mark, fraction = text, "", ""
    points, commas = text.count("."), text.count(",")
    if points and commas:  # the mark that comes last is the decimal one
        mark = max(".", ",", key=text.rfind)
        if text.count(mark) > 1:
            return None
    elif points == 1:
        mark = "."
    elif commas == 1 and (not _GROUPED[","].fullmatch(text) or text[0] == "0"):
        mark = ","
    if mark:
        whole, _, fraction = text.rpartition(mark)
        if not fraction.isdigit():
            return None
    if whole.isdigit():
        return plain_number(f"{whole}.{fraction}")
    grouping = [sign for sign in ",.'_" if sign in whole and sign != mark]
    if len(grouping) == 1 and (_GROUPED[grouping[0]].fullmatch(whole) or _INDIAN.fullmatch(whole)):
        return plain_number(f"{whole.replace(grouping[0], '')}.{fraction}")
    return None


def read_date(text: str) -> str | None:
    """The date (year-month-day) that a text means, if it can mean only one."""
    if match := _YEAR_FIRST.fullmatch(text):
        readings = {(match[1], match[3], match[4])}
    elif match := _DAY_FIRST.fullmatch(text):
        readings = {(match[4], match[3], match[1]), (match[4], match[1], match[3])}
    else:
        return None
    dates = set()
    for year, month, day in readings:
        with contextlib.suppress(ValueError):
            dates.add(datetime.date(int(year), int(month), int(day)).isoformat())
    return dates.pop() if len(dates) == 1 else None


def read_short_date(text: str) -> str | None:
    """The date that eight digits or a year of two digits mean, the day or month first, if they can mean only one."""
    if match := _COMPACT_DATE.fullmatch(text):
        return read_date(f"{match[1]}-{match[2]}-{match[3]}")
    if not (match := _SHORT_DATE.fullmatch(text)):
        return None
    if match[2] == "-" and read_date(f"20{text}"):  # perhaps the year is first
        return None
    return read_date(f"{match[1]}/{match[3]}/{20 if int(match[4]) <= _FIRST_CENTURY_END else 19}{match[4]}")


def with_figures(text: str) -> str:
    """A text in lower case, with halves, dozens, powers of ten and hours of other countries in plain figures."""
    if " of a" in text:
        text = _PART_OF_A.sub(r"\1 ", text)
    if "half" in text:
        text = _HALF_PAST.sub(lambda match: f"{_count(match[1])}:30", text)
        text = _A_UNIT_AND_A_HALF.sub(
            r"1.5 \1", _AND_A_HALF.sub(lambda match: f"{_count(match[1])}.5", _A_HALF.sub("0.5 ", text))
        )
    if "dozen" in text:
        text = _DOZEN.sub(lambda match: str(6 if match[1] else 12 * _count(match[2] or "1")), text)
    if "10" in text and "^" in text:
        text = _POWER_OF_TEN.sub(lambda match: f"{match[1] or 1}e{match[2]}", text)
    if _POINT_HALF.search(text):
        text = _POINT_TIME.sub(r"\1:\2", text)
    if "uhr" in text or _HOUR.search(text):
        text = _CLOCK.sub(lambda match: f"{match[1]}:{match[2] or match[3] or '00'}", text)
    if any(power in text for power in ("hundred", "thousand", "illion")):
        text = _A_POWER.sub("one ", text)
    return text


def _count(word: str) -> int:
    return int(word) if word.isdigit() else NUMBER_WORDS.get(word, 1)


def read_words(words: Sequence[str]) -> tuple[int, int]:
    """The number at the beginning of the words, and how many words it takes; (0, 0) if there is none.

    ``["twenty", "four", "hours"]`` gives (24, 2), ``["one", "hundred", "and", "five"]`` (105, 4). A lone "one" does not
    count.
    """
    value, used, scale = 0, 0, 16
    while True:
        part, taken = _below_thousand(words[used:])
        after = words[used + taken] if used + taken < len(words) else ""
        power = POWERS_OF_TEN.get(after, 0) if len(after) > 2 and after != "hundred" else 0
        if not taken or not power or power >= scale:
            break
        value, used, scale = value + part * 10**power, used + taken + 1, power
    if taken and not power and (used or words[:taken] != ["one"]):
        return value + part, used + taken
    return value, used


def _below_thousand(words: Sequence[str]) -> tuple[int, int]:
    hundreds, used = 0, 0
    if len(words) > 1 and words[1] == "hundred" and 0 < NUMBER_WORDS.get(words[0], 0) < 10:
        hundreds, used = 100 * NUMBER_WORDS[words[0]], 2
    joined = used + (used > 0 and words[used : used + 1] == ["and"])
    rest, taken = _below_hundred(words[joined:])
    after = words[joined + taken : joined + taken + 1]
    if not taken or (joined > used and after and after[0] in POWERS_OF_TEN):
        return hundreds, used  # "two hundred and five thousand" is ambiguous
    return hundreds + rest, joined + taken


def _below_hundred(words: Sequence[str]) -> tuple[int, int]:
    if not words:
        return 0, 0
    if words[0] in TENS:
        unit = NUMBER_WORDS.get(words[1], 0) if len(words) > 1 else 0
        return (TENS[words[0]] + unit, 2) if 0 < unit < 10 else (TENS[words[0]], 1)
    return (NUMBER_WORDS[words[0]], 1) if words[0] in NUMBER_WORDS else (0, 0)


def shifted(number: str, power: int) -> str:
    """The numeral times a power of ten."""
    whole, _, fraction = number.partition(".")
    if power < 0:
        whole = whole.rjust(1 - power, "0")
        return f"{whole[:power]}.{whole[power:]}{fraction}"
    return f"{whole}{fraction[:power].ljust(power, '0')}.{fraction[power:]}"
