"""Numerals as people write them, brought to one canonical decimal form (text, so that no digit is lost)."""

from __future__ import annotations

import re

__all__ = ["plain_number", "read_number", "shifted"]

_GROUPED = {mark: re.compile(rf"\d{{1,3}}(?:{re.escape(mark)}\d{{3}})+", re.ASCII) for mark in ",.'_"}
_INDIAN = re.compile(r"\d{1,2}(?:,\d{2})*,\d{3}", re.ASCII)
_SCIENTIFIC = re.compile(r"(\d+(?:\.\d+)?)e([+-]?\d{1,2})", re.ASCII)


def plain_number(text: str) -> str:
    """The canonical form of a decimal numeral (digits, optionally with a point and a minus sign)."""
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, _, fraction = digits.partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    number = f"{whole}.{fraction}" if fraction else whole
    return number if number == "0" else sign + number


def read_number(text: str) -> str | None:
    """The canonical form of a numeral with its separators, or None where it is no single number."""
    if not text.isascii() or not text[0].isdigit():
        return None
    if text.isdigit():
        return plain_number(text)
    if match := _SCIENTIFIC.fullmatch(text):
        return plain_number(shifted(match[1], int(match[2])))
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


def shifted(number: str, power: int) -> str:
    """The numeral times a power of ten."""
    whole, _, fraction = number.partition(".")
    if power < 0:
        whole = whole.rjust(1 - power, "0")
        return f"{whole[:power]}.{whole[power:]}{fraction}"
    return f"{whole}{fraction[:power].ljust(power, '0')}.{fraction[power:]}"
