"""Reads an answer in its reference's terms: its units, its way to write a code, a date or a number."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from agentic_bayes.evidence.reference.answer_text import (
    LONGEST_REMEMBERED,
    Token,
    content,
    found_in,
    index_of,
    stem,
    tokens,
)
from agentic_bayes.evidence.reference.dates import has_date, with_dates, with_months, with_short_dates
from agentic_bayes.evidence.reference.numerals import plain_number
from agentic_bayes.evidence.reference.vocabulary import (
    FOREIGN_NUMBERS,
    FRACTION_WORDS,
    ORDINALS,
    PERCENTAGES,
    SCALES,
    UNITS,
)

_ELSEWHERE = {stem(word): value for word, value in FOREIGN_NUMBERS.items()}

_SPELLED = ORDINALS | {"twice": "2", "thrice": "3", "none": "0"}  # references that answers may give in figures

Step = Callable[[Sequence[Token]], Sequence[Token]]

_ORDINAL = re.compile(r"\d(?:st|nd|rd|th)\b", re.IGNORECASE | re.ASCII)
_PERCENTAGE = re.compile("|".join(PERCENTAGES), re.IGNORECASE)
_BOUNDARY = re.compile(r"(?<=[a-z])-(?=\d)|(?<=\d)-(?=[a-z])", re.ASCII)
_LETTERS_AND_DIGITS = re.compile(r"([a-z]+)(\d+)", re.ASCII)
_LONG_ID = 9  # digits that do not need their hyphens to be told apart
_FEW = 3  # tokens of an answer in which "first" and "once" can only be numbers
_DECIMALS = 12
_LONGEST_NUMBER = 24  # characters of a number that is converted
_FENCED = re.compile(r"```(?:json)?\s*(\{.*\})\s*```\s*", re.DOTALL | re.IGNORECASE)
_ANSWER_KEYS = ("final_answer", "final", "answer")


class Terms(NamedTuple):
    """What a reference says, and how; what trials of a task share is read once."""

    expected: Sequence[Token]
    asked: Sequence[Token]  # what the query says
    dated: Sequence[Token]  # the reference again, with days, months and years joined
    wanted: Sequence[Token]  # what it says beyond the query, or all its content
    steps: Sequence[Step]

    def read(self, text: str) -> Sequence[Token]:
        """The tokens of an answer, in the reference's terms."""
        return self.applied(tokens(text))

    def read_with_dates(self, text: str) -> Sequence[Token]:
        """The tokens of an answer, with days, months and years joined."""
        return with_dates(self.read(text))

    def applied(self, read: Sequence[Token]) -> Sequence[Token]:
        """Tokens in the reference's terms."""
        for step in self.steps:
            read = step(read)
        return read


def in_terms_of(reference: str, query: str, answered: Sequence[Token]) -> Terms:
    """How to read answers to this query like the reference."""
    expected = tokens(reference)
    if (
        len(expected) == 1
        and (short := with_short_dates(expected)) != list(expected)
        and has_date(with_dates(answered))
    ):
        expected = short
    if len(expected) == 1 and expected[0].text in _SPELLED and expected[0].key not in {one.key for one in answered}:
        numeral = expected[0]._replace(kind="number", text=_SPELLED[expected[0].text])
        expected = [numeral] if numeral.key in {one.key for one in answered} else expected
    read = _terms if len(reference) + len(query) <= LONGEST_REMEMBERED else _terms.__wrapped__
    return read(tuple(expected), reference, query)


@lru_cache(maxsize=64)
def _terms(expected: Sequence[Token], reference: str, query: str) -> Terms:
    expected, steps = _steps(expected, reference, query)
    expected, asked = with_months(expected), with_months(tokens(query))
    dated = with_dates(expected)
    required = left_to_say(dated, asked, numbers=True)
    wanted = [token for token in required if token.kind in ("number", "code")] or required or content(dated)
    return Terms(expected, asked, dated, wanted, steps)


def left_to_say(expected: Sequence[Token], asked: Sequence[Token], *, numbers: bool) -> list[Token]:
    """The reference's content that is not in the query."""
    said = content(expected)
    known = index_of(content(asked), said)
    return [
        token
        for token in said
        if (numbers or token.kind not in ("number", "code")) and not found_in(token, known.get(token.key, ()))
    ]


def _steps(expected: Sequence[Token], reference: str, query: str) -> tuple[Sequence[Token], Sequence[Step]]:
    """The reference's tokens, and how answers are read in its terms."""
    figures = {token.key: token for token in expected if token.kind in ("number", "code")}
    if not figures:
        return expected, ()
    steps: list[Step] = []
    if has_date(with_dates(expected)):
        steps.append(with_short_dates)
    if scaled := [token for token in expected if _scale(token)]:
        expected = _merged(expected)
        targets = {token.key: token for token in expected if _scale(token)} or {scaled[0].key: scaled[0]}
        steps += [_merged, lambda read: [_converted(token, targets) for token in read]]
    numbers = {token.text for token in figures.values() if token.kind == "number"}
    bare = any(token.kind == "number" and not token.units for token in figures.values())
    if bare and not _PERCENTAGE.search(query) and not any(token.units & UNITS["percent"] for token in expected):
        steps.append(_with_percentages_apart)
    if spelled := {written: token for token in expected if (written := _code(token))}:
        steps.append(lambda read: [_respelled(token, spelled) for token in read])
    pairs = {match.groups() for written in spelled if (match := _LETTERS_AND_DIGITS.fullmatch(written))}
    split = {(a.text, b.text) for a, b in itertools.pairwise(expected) if _is_pair(a, b)}
    if pairs or split:
        codes = {_code(token): token for token in expected}
        steps.append(lambda read: list(_paired(read, {pair: codes["".join(pair)] for pair in pairs}, split)))
    known = {token.text for token in expected}
    texts = {text for _, text in figures}
    words = {word: value for word, value in FRACTION_WORDS.items() if value in texts}
    words |= _ELSEWHERE | (ORDINALS if _ORDINAL.search(reference) else {})
    few = {word: value for word, value in (ORDINALS | words).items() if word not in known}
    many = {word: value for word, value in words.items() if word not in known and word != "once"}
    topic = {token.key for token in tokens(query)} if "0" in numbers else None
    steps.append(lambda read: _with_number_words(read, few if len(read) <= _FEW else many, topic))
    return expected, steps


def given_in_json(answer: str) -> str:
    """What an answer that is a JSON object has in its field for the answer; other texts as they are."""
    text = answer.strip()
    if match := _FENCED.fullmatch(text):
        text = match[1]
    if not (text.startswith("{") and text.endswith("}")):
        return answer
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return answer
    fields = {str(key).lower(): value for key, value in read.items()}
    for key in _ANSWER_KEYS:
        value = fields.get(key, "")
        if value is None:
            return "null"
        if isinstance(value, list) and value and all(isinstance(one, str | int | float) for one in value):
            return " or ".join(map(str, value))
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, str | int | float) and str(value).strip():
            return str(value)
    return answer


def _scale(token: Token) -> tuple[str, Fraction] | None:
    """What a number's unit measures, and how large it is, if it can be converted."""
    if token.kind != "number" or len(token.text) > _LONGEST_NUMBER:
        return None
    return next((SCALES[unit] for unit in token.units if unit in SCALES), None)


def _merged(read: Sequence[Token]) -> list[Token]:
    """The tokens, with "1 hour 30 minutes" as 90 minutes."""
    out: list[Token] = []
    for token in read:
        scale = _scale(token)
        linked = len(out) > 1 and out[-1].key == ("word", "and")
        before = out[-1 - linked] if len(out) > linked else None
        larger = _scale(before) if scale and before else None
        if larger and larger[0] == "duration" and token.units == UNITS["m"]:  # 1 h 30 m
            token = token._replace(units=UNITS["min"])
            scale = _scale(token)
        if scale and larger and before and scale[0] == larger[0] and not token.opens:
            value = _value(token) * scale[1]
            if scale[1] < larger[1] and 0 < value < larger[1]:
                sum_of_both = (_value(before) * larger[1] + value) / scale[1]
                out[-1 - linked :] = [before._replace(text=_decimal(sum_of_both) or before.text, units=token.units)]
                continue
        out.append(token)
    return out


def _converted(token: Token, targets: dict[tuple[str, str], Token]) -> Token:
    """The token in the unit of the reference, if that measures the same."""
    scale = _scale(token)
    if scale is None:
        return token
    forms: list[Token] = []
    for target in targets.values():
        other = _scale(target)
        if token.units & target.units:
            return token
        if other and other[0] == scale[0] and (number := _decimal(_value(token) * scale[1] / other[1])):
            forms.append(token._replace(text=number, units=target.units))
    return next((form for form in forms if form.key in targets), forms[0] if forms else token)


def _value(token: Token) -> Fraction:
    return Fraction(token.text)


def _decimal(value: Fraction) -> str:
    """The number as a decimal; empty if it does not end."""
    scaled = value * 10**_DECIMALS
    if scaled.denominator != 1:
        return ""
    digits = str(abs(scaled.numerator)).rjust(_DECIMALS + 1, "0")
    return plain_number(f"{'-' if value < 0 else ''}{digits[:-_DECIMALS]}.{digits[-_DECIMALS:]}")


def _with_percentages_apart(read: Sequence[Token]) -> list[Token]:
    """The tokens, with 5 % as something else than 5."""
    return [
        Token("code", f"{token.text} percent", negated=token.negated, opens=token.opens)
        if token.kind == "number" and token.units & UNITS["percent"]
        else token
        for token in read
    ]


def _code(token: Token) -> str:
    """A code or a long number without the hyphens that only some write; empty for others."""
    digits = token.text.replace("-", "")
    if token.kind == "number":
        return digits if not token.units and digits.isdigit() and len(digits) >= _LONG_ID else ""
    if token.kind != "code" or has_date([token]):
        return ""
    return digits if digits.isdigit() and len(digits) >= _LONG_ID else _BOUNDARY.sub("", token.text)


def _respelled(token: Token, spelled: dict[str, Token]) -> Token:
    """The token as the reference writes it (b-12 as b12)."""
    wanted = spelled.get(_code(token)) if token.kind in ("number", "code") else None
    return token._replace(kind=wanted.kind, text=wanted.text) if wanted else token


def _is_pair(word: Token, number: Token) -> bool:
    return word.kind == "word" and number.kind == "number" and number.text.isdigit() and not number.units


def _paired(read: Sequence[Token], pairs: dict[tuple[str, ...], Token], split: set[tuple[str, str]]) -> Iterator[Token]:
    """The tokens, with "SKU 4471" as sku-4471 if the reference writes it so, and the reverse."""
    skip = False
    for i, token in enumerate(read):
        if skip:
            skip = False
            continue
        after = read[i + 1] if i + 1 < len(read) else None
        wanted = pairs.get((token.text, after.text)) if after and not after.opens and _is_pair(token, after) else None
        if wanted:
            skip = True
            yield token._replace(kind=wanted.kind, text=wanted.text)
            continue
        match = _LETTERS_AND_DIGITS.fullmatch(_code(token)) if split and token.kind == "code" else None
        if match and match.groups() in split:
            yield token._replace(kind="word", text=match[1])
            yield Token("number", match[2], negated=token.negated)
        else:
            yield token


def _with_number_words(
    read: Sequence[Token], words: dict[str, str], topic: set[tuple[str, str]] | None
) -> Sequence[Token]:
    """The tokens, with words that stand for numbers as numbers ("twice", "zwölf"; without a topic no "none" is 0)."""
    out = list(read)
    for i in [i for i, token in enumerate(read) if token.kind == "word" and (token.text in words or topic is not None)]:
        token, after = read[i], read[i + 1] if i + 1 < len(read) else None
        ends = after is None or after.opens
        value = words.get(token.text)
        if topic is not None:
            none = token.text == "none" and ends
            value = "0" if none or (token.text == "no" and after and not ends and after.key in topic) else value
        if value is not None and not (token.opens and ends and len(read) > _FEW and value != "0"):  # "First, …"
            out[i] = token._replace(kind="code" if "/" in value else "number", text=value)
    return out
