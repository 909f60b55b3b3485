"""Splits answers into tokens (words, numbers with units, and codes, each negated or not), and compares them.

Everything here accepts any text and takes linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from agentic_bayes.evidence.reference import vocabulary
from agentic_bayes.evidence.reference.numerals import (
    plain_number,
    read_date,
    read_number,
    read_words,
    shifted,
    with_figures,
)
from agentic_bayes.evidence.reference.vocabulary import UNITS, Meanings

# Scripts written without spaces: Thai, Lao, Myanmar, Khmer, kana, Han.
SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
# Combining marks belong to their word, but Python's \w leaves them out.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u06d6-\u06dc\u06df-\u06e8\u0711\u0730-\u074a"
    "\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09d7\u0a01-\u0a4d\u0a81-\u0acd\u0b01-\u0b57"
    "\u0b82-\u0bcd\u0c00-\u0c56\u0c81-\u0cd6\u0d00-\u0d57\u0dca-\u0df3\u0f71-\u0f84\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
_FIRST_SPACELESS = "\u0e00"
_SPACELESS_SIGN = re.compile(f"[{SPACELESS}]")
_LETTER = rf"(?:[^\W_{SPACELESS}]|[{_MARKS}])"
# A chunk holds together what may be one number, date or code.
_JOINER = r"(?:[-_]|(?<=\d)[.,:/'](?=\d)|(?<=[^\W\d_])[./'](?=[^\W\d_]))"
_CHUNK = re.compile(_LETTER)
_LEXEME = re.compile(rf"([^\S\n]*+)({_LETTER}+(?:{_JOINER}{_LETTER}+)*|\S|\n)")  # after the gap before it
# the same for texts without other letters, several times as fast
_ASCII_LEXEME = re.compile(rf"([^\S\n]*+)([a-z0-9]+(?:{_JOINER}[a-z0-9]+)*|\S|\n)", re.ASCII)
_LOOKALIKES = (
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-")
    | dict.fromkeys("\u2018\u2019\u201b\u02bc\uff07`\u00b4", "'")
    | {"\u2044": "/", "\u2014": " ; ", "\u00ba": "\u00b0", "\u02da": "\u00b0", "\u066b": ".", "\u066c": ","}
)
_LOOKALIKE = re.compile(f"[{''.join(_LOOKALIKES)}]")
_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")
# NFKC alone would turn 10² into 102, and 2½ into 21/2.
_RAISED = re.compile("(?<=\\d)(?=[\u2070\u00b9\u00b2\u00b3\u2074-\u207b])")
_VULGAR = re.compile("(?<=\\d)(?=[\u00bc-\u00be\u2150-\u215f\u2189])")
_SCHEME = re.compile(r"\bhttps?://(?:www\.)?")
_US_DOLLAR = re.compile(r"\bus ?\$ ?")
_STRUCK = re.compile(r"~~[^~\n]+~~")  # Markdown
_MILLIONS = re.compile(r"(\d[.,]\d{1,3})([MB])\b", re.ASCII)  # without a point it may be a seat or metres
_POWERS = {"M": "million", "B": "billion"}
# U.S.A., J.K. and J. K. before a name
_INITIALS = re.compile(r"\b[A-Z](?:\.[A-Z])+\b\.?|\b[A-Z](?:\. ?[A-Z]){1,4}\.(?= [A-Z][a-z])")
_DOTTED = re.compile(r"\.(?<=\b[A-Z]\.) ?[A-Z]")  # in whatever the pattern before matches; quick to look for
_CJK_DATE = re.compile(r"(\d{4})年(\d{1,2})月(\d{1,2})[日号]")
_ACCENTS = re.compile("(?<=[a-z])[\u0300-\u036f]+")
_DOUBLE_L = re.compile(r"^(\w{3,}e|(?:sign|tot|di|equ|initi|marsh)a)ll(?=(?:ed|er|ing)$)", re.ASCII)
_ISE = re.compile(r"^(?!\w*(?:[mtd]ise|[cvw]is|pris|chis))(\w{4,}[iy])s(?=(?:e[dr]?|ing|ation)$)", re.ASCII)
_BRITISH = re.compile("^(?:" + "|".join(vocabulary.AMERICAN) + ")")
_ACCENTED = vocabulary.NEGATIONS | vocabulary.LINKING_WORDS | vocabulary.FOREIGN_MONTHS.keys()
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")

_DIGITS = re.compile(r"\d", re.ASCII)
_WITH_LETTERS = re.compile(r"(\d[\d.,'_]*)(-?)([^\d.,'_-].*)", re.ASCII | re.DOTALL)
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)t(\d\d:\d\d)(?::00(?:\.0+)?|(:\d\d(?:\.\d+)?))?z?", re.ASCII)
_TIME_OF_DAY = re.compile(r"(\d[\d:.]*)([ap])\.?m", re.ASCII)
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th|er)", re.ASCII)
_RELEASE = re.compile(r"v(\d+(?:\.\d+)+)", re.ASCII)
_THREE_DIGITS = re.compile(r"\d{3}(?:[.,]\d+)?", re.ASCII)

_CLAUSE_ENDS = frozenset('.,;:!?()[]{}"…。、！？，；：।؟\n')
_NEGATING = vocabulary.NEGATIONS | vocabulary.NEGATING_CHARACTERS
_REACH = 5
_LONGEST_NUMBER = 24  # words
LONGEST_REMEMBERED = 5_000  # characters
_SHORTEST_DATE = 8  # characters
_LONGEST_CHUNK = 40  # characters of one that is remembered
_NAME_SIGNS = frozenset({"+", "-", "#"})
_MORE_THAN_WORDS = (vocabulary.NUMERALS - {"and"}) | set(vocabulary.UNIT_PREFIXES) | {"minus", "negative", "cannot"}
# next to anything else, and to a number, a number means what it means alone
_WORD_SIGNS = frozenset({"minus", "negative"})
_BEFORE_NUMBERS = {".", "-", *_WORD_SIGNS, *vocabulary.CURRENCY_SYMBOLS, *vocabulary.UNIT_PREFIXES}
_DEGREES = frozenset({"°", "degree", "degrees", "deg", "度"})
_AFTER_NUMBERS = {*UNITS, *vocabulary.POWERS_OF_TEN, *_DEGREES, *_NAME_SIGNS, "per", "us", "u.s"}


class Token(NamedTuple):
    """A piece of text that is compared as a whole."""

    # a number has a canonical decimal form; a code is any other text with a digit (dates, times, ids); a character
    # belongs to a script without spaces
    kind: Literal["word", "number", "code", "character", "symbol"]
    text: str  # its normal form
    units: Meanings = frozenset()  # possible meanings of its unit; empty without a recognised unit
    negated: bool = False  # whether a negation comes directly before it in the same clause
    opens: bool = False  # whether it is the first of its clause

    @property
    def key(self) -> tuple[str, str]:
        """The token without its unit and negation."""
        return self.kind, self.text

    def says(self, other: Token) -> bool:
        """Whether both say the same; a unit that only one of them has is a difference."""
        alike = self.key == other.key and self.negated == other.negated
        return alike and bool(self.units) == bool(other.units) and self.fits(other)

    def fits(self, other: Token) -> bool:
        """Whether the units do not contradict each other; a missing unit fits all."""
        return not self.units or not other.units or not self.units.isdisjoint(other.units)

    def __str__(self) -> str:
        if not self.units:
            return self.text
        return f"{self.text} {'usd' if 'usd' in self.units else min(self.units)}"


def normalise(text: str) -> str:
    """NFKC, case-folded, with one form for minus signs and quotes, ASCII digits, no invisible characters."""
    text = (
        _MILLIONS.sub(lambda match: f"{match[1]} {_POWERS[match[2]]}", _STRUCK.sub(" ", text))
        .replace("!=", " not ")
        .replace("\u2260", " not ")
    )
    text = with_initials(text)
    if text.isascii():
        text = text.replace("`", "'").lower()
        text = _US_DOLLAR.sub("usd ", text) if "us$" in text or "us $" in text else text
        return with_figures(_SCHEME.sub("", text) if "http" in text else text)
    text = _VULGAR.sub(" ", _RAISED.sub("^", _INVISIBLE.sub("", text)))
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", _with_plain_signs(text)).casefold())
    text = _SCHEME.sub("", _US_DOLLAR.sub("usd ", _with_plain_signs(text)))
    if not text.isascii():
        text = _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)
        text = _CJK_DATE.sub(r" \1-\2-\3 ", text)
    return with_figures(text)


def _with_plain_signs(text: str) -> str:
    return _LOOKALIKE.sub(lambda sign: _LOOKALIKES[sign[0]], text)


def with_initials(text: str) -> str:
    """The text with initials as one word (J. K. Rowling and J.K. Rowling as JK Rowling)."""
    if not _DOTTED.search(text):
        return text
    return _INITIALS.sub(lambda letters: letters[0].replace(".", "").replace(" ", ""), text)


def tokens(text: str) -> Sequence[Token]:
    """The tokens of a text (normalised or not), in order."""
    return _remembered(text) if len(text) <= LONGEST_REMEMBERED else _read(text)


def _read(text: str) -> Sequence[Token]:
    read = tuple(_with_negations(_Tokenizer(normalise(text)).read()))
    if len(read) == 1 and read[0].key == ("word", "one"):  # in running text it is mostly a pronoun
        return (read[0]._replace(kind="number", text="1"),)
    return read


_remembered = lru_cache(maxsize=64)(_read)  # trials of a task share its query and reference


class _Tokenizer:
    """Turns lexemes from left to right into tokens (negations are marked afterwards)."""

    def __init__(self, text: str) -> None:
        pattern = _ASCII_LEXEME if text.isascii() else _LEXEME
        found = pattern.findall(text.rstrip())
        self.size = len(found)
        self.gaps: list[str] = [*[gap for gap, _ in found], ""]  # before each lexeme; one more is empty
        self.lexemes: list[str] = [*[lexeme for _, lexeme in found], ""]
        self.at = 0

    def read(self) -> list[Token]:
        out: list[Token] = []
        lexemes, opens = self.lexemes, True
        while self.at < self.size:
            before, lexeme, after = lexemes[self.at - 1], lexemes[self.at], lexemes[self.at + 1]
            self.at += 1
            plain = _plain_word(lexeme)
            if plain and after not in _NAME_SIGNS:
                out.append(plain[opens])
                opens = False
                continue
            if lexeme in _CLAUSE_ENDS:
                opens = True
                continue
            read: Sequence[Token] = ()
            if plain is None and lexeme >= _FIRST_SPACELESS and _SPACELESS_SIGN.match(lexeme):
                read = (Token("character", lexeme),)
            elif lexeme[0].isalnum() or _CHUNK.match(lexeme):
                alone = before not in _BEFORE_NUMBERS and after not in _AFTER_NUMBERS and not after[:1].isdigit()
                known = _alone(lexeme) if alone and len(lexeme) <= _LONGEST_CHUNK else None
                if known is not None:
                    read = known
                elif not self._belongs_to_next(lexeme):
                    read = self._chunk(lexeme)
            elif self._is_symbol(self.at - 1):
                read = (Token("symbol", lexeme),)
            if read and opens:
                read = (read[0]._replace(opens=True), *read[1:])
                opens = False
            out += read
        return out

    def _chunk(self, body: str) -> list[Token]:
        if not _DIGITS.search(body):
            return self._words(body)
        place = self.at - 1
        if self._after_bare_point(place) and body.isdigit():
            place, body = place - 1, f"0.{body}"
        currency, sign = self._before(place)
        if (prefix := body[:3]) in vocabulary.UNIT_PREFIXES and body[3:4].isdigit():
            body, currency = body[3:], currency or UNITS[prefix]
        if len(body) >= _SHORTEST_DATE:
            if date := read_date(body):
                return [Token("code", date)]
            if (stamp := _TIMESTAMP.fullmatch(body)) and (date := read_date(stamp[1])):
                return [Token("code", date), Token("code", stamp[2] + (stamp[3] or ""))]
        body = self._with_fraction(self._with_space_groups(body))
        if release := _RELEASE.fullmatch(body):
            body = release[1]
        number = read_number(body)
        if number is not None:
            return [self._measured(number, sign, currency)]
        if ordinal := _ORDINAL.fullmatch(body):
            return [Token("number", plain_number(ordinal[1]))]
        if time := _TIME_OF_DAY.fullmatch(body):
            number, units = read_number(time[1]), UNITS[f"{time[2]}m"]
            return [Token("code", time[1], units) if number is None else Token("number", number, units)]
        if (glued := _WITH_LETTERS.fullmatch(body)) and (number := read_number(glued[1])) is not None:
            units, power = UNITS.get(glued[3], frozenset()), vocabulary.POWERS_OF_TEN.get(glued[3], 0)
            if currency and glued[3] in vocabulary.MONEY_POWERS:
                units, power = currency, vocabulary.MONEY_POWERS[glued[3]]
            if units or power:
                return [self._measured(number, sign, units or currency, power)]
            if glued[2] and glued[3].isalpha() and len(glued[3]) > 2:  # 5-star
                return [Token("number", number, currency), Token("word", stem(glued[3]))]
        parts = body.split("-")
        if len(parts) == 2 and all(part.isdigit() and len(part) <= 3 and part[0] != "0" for part in parts):
            # a range or a difference of small numbers; longer ones are codes (years, telephone numbers)
            last = self._measured(plain_number(parts[1]), "", currency)
            return [Token("number", sign + parts[0], last.units), last]
        pieces = body.split(",")
        if len(pieces) > 1 and all(piece.isdigit() for piece in pieces):
            return [Token("number", plain_number(piece)) for piece in pieces]
        return [Token("code", body, self._unit_after())]

    def _words(self, chunk: str) -> list[Token]:
        if chunk in UNITS and "/" in chunk:
            return [Token("word", chunk)]
        if number := self._fraction_in_words(chunk) or self._number_in_words():
            return [number]
        if name := self._name_with_sign(chunk):
            return [Token("word", name)]
        found: list[Token] = []
        for part in re.split(r"[.:/_-]", chunk):
            head, *tails = part.split("'")
            if head.endswith("n") and tails == ["t"]:
                head = head[:-1]
                found += [Token("word", stem(vocabulary.CONTRACTED.get(head, head)))] if head else []
                found.append(Token("word", "not"))
            elif head == "cannot":
                found += [Token("word", "can"), Token("word", "not")]
            else:
                kept = [head, *(tail for tail in tails if tail == head or tail not in vocabulary.CONTRACTION_TAILS)]
                found += [Token("word", stem(word)) for word in kept]
        return [token for token in found if token.text]

    def _fraction_in_words(self, chunk: str) -> Token | None:
        """The fraction that begins with the chunk just read (one half, three-quarters)."""
        top, hyphen, name = chunk.partition("-")
        bottom = vocabulary.FRACTIONS.get(name or self._peek(), 0)
        if not 0 < vocabulary.NUMBER_WORDS.get(top, 0) < bottom:
            return None
        self.at += not hyphen
        fraction = f"{vocabulary.NUMBER_WORDS[top]}/{bottom}"
        number = read_number(fraction)
        return self._measured(number, "", frozenset()) if number else Token("code", fraction)

    def _number_in_words(self) -> Token | None:
        """The number that begins with the chunk just read (twenty-one, two hundred and five)."""
        words: list[str] = []
        ends: dict[int, int] = {}  # number of words → lexemes read
        for ahead in range(-1, _LONGEST_NUMBER):
            lexeme = self._peek(ahead) if ahead >= 0 else self.lexemes[self.at - 1]
            parts = lexeme.split("-")
            if not vocabulary.NUMERALS.issuperset(parts):
                break
            words += parts
            ends[len(words)] = ahead + 1
        value, used = read_words(words)
        if used not in ends:
            return None
        sign = self._before(self.at - 1)[1]
        self.at += ends[used]
        return self._measured(str(value), sign, frozenset())

    def _name_with_sign(self, chunk: str) -> str:
        """A letter with the sign that ends its name (A-, C#), or a name with ++; otherwise an empty text."""
        name, place = chunk, self.at
        while not self.gaps[place] and self.lexemes[place] in ("+", "-", "#"):
            name, place = name + self.lexemes[place], place + 1
        if name == chunk or self._char_after(place - 1).isalnum() or (len(chunk) > 1 and name != f"{chunk}++"):
            return ""
        self.at = place
        return name

    def _after_bare_point(self, place: int) -> bool:
        """Whether the lexeme at this place is the fraction of a number like .5"""
        if place == 0 or self.lexemes[place - 1] != ".":
            return False
        return not self.gaps[place] and not self._char_before(place - 1).isalnum()

    def _measured(self, number: str, sign: str, units: Meanings, power: int = 0) -> Token:
        """The number with the unit and the power of ten that follow it."""
        word = self._peek()
        if not power and word in vocabulary.POWERS_OF_TEN and len(word) > 2:
            power = vocabulary.POWERS_OF_TEN[word]
            self.at += 1
        after = self._unit_after()
        return Token("number", plain_number(sign + shifted(number, power)), units or after)

    def _unit_after(self) -> Meanings:
        """Read the unit that comes next, if there is one."""
        word = self._peek()
        if word in _DEGREES:
            self.at += 1
            scale = vocabulary.DEGREE_SCALES.get(self._peek(), frozenset())
            self.at += bool(scale)
            return scale
        if word == "per" and self._peek(1) == "cent":
            self.at += 2
            return UNITS["percent"]
        if word in ("us", "u.s") and self._peek(1) in ("$", "dollar", "dollars"):
            self.at += 2
            return frozenset({"usd"})
        if word in vocabulary.CURRENCY_SYMBOLS and self._starts_number(1):
            return frozenset()  # the symbol belongs to the next number
        units = UNITS.get(word, frozenset())
        self.at += bool(units)
        if units & vocabulary.PER_HOUR.keys() and self._peek() == "per" and self._peek(1) in ("hour", "h"):
            self.at += 2
            return UNITS[vocabulary.PER_HOUR[min(units)]]
        return units

    def _peek(self, ahead: int = 0) -> str:
        """The lexeme that follows on the same line, at most one space away."""
        place = self.at + ahead
        near = place < self.size and self.gaps[place] in ("", " ")
        return str(self.lexemes[place]) if near else ""

    def _char_before(self, place: int) -> str:
        """The character before the lexeme at this place, if there is one."""
        return str(self.gaps[place][-1:]) or (self.lexemes[place - 1][-1:] if place else "")

    def _char_after(self, place: int) -> str:
        """The character after the lexeme at this place, if there is one."""
        return str(self.gaps[place + 1][:1]) or str(self.lexemes[place + 1][:1])

    def _starts_number(self, ahead: int) -> bool:
        place = self.at + ahead
        return place < self.size and not self.gaps[place] and self.lexemes[place][0].isdigit()

    def _belongs_to_next(self, word: str) -> bool:
        """Whether the lexeme just read is the currency or the sign of the number that follows (USD 36, minus 5)."""
        if word not in vocabulary.UNIT_PREFIXES and word not in _WORD_SIGNS:
            return False
        number = self._peek(1) if self._peek() in vocabulary.CURRENCY_SYMBOLS else self._peek()
        if self._is_word_sign(self.at - 1) and number.partition("-")[0] in vocabulary.NUMERALS - {"and", "one"}:
            return True
        if not number[:1].isdigit():
            return False
        return word in vocabulary.UNIT_PREFIXES or self._is_word_sign(self.at - 1)

    def _before(self, place: int) -> tuple[Meanings, str]:
        """The currency and the minus sign directly before the lexeme at this place."""
        units: Meanings = frozenset()
        sign = ""
        for earlier in range(place - 1, max(place - 3, -1), -1):
            lexeme, gap = self.lexemes[earlier], len(self.gaps[earlier + 1])
            if not units and gap <= 1 and (lexeme in vocabulary.CURRENCY_SYMBOLS or lexeme in vocabulary.UNIT_PREFIXES):
                units = UNITS[lexeme]
            elif not sign and ((gap <= 1 and self._is_word_sign(earlier)) or (gap == 0 and self._is_minus(earlier))):
                sign = "-"
            else:
                break
        return units, sign

    def _is_minus(self, place: int) -> bool:
        """Whether this is a hyphen that is not joined to what comes before it."""
        return self.lexemes[place] == "-" and not self._char_before(place).isalnum()

    def _is_word_sign(self, place: int) -> bool:
        """Whether this is "minus" or "negative" without a number before it ("5 minus 3")."""
        if self.lexemes[place] not in _WORD_SIGNS:
            return False
        return place == 0 or not self.lexemes[place - 1][0].isdigit()

    def _with_space_groups(self, body: str) -> str:
        """The body with the groups of three digits that follow it after single spaces (1 234 567.8)."""
        if not (body.isascii() and body.isdigit() and len(body) <= 3) or body[0] == "0":
            return body
        groups = [body]
        while self.gaps[self.at] == " ":
            lexeme = self.lexemes[self.at]
            if not _THREE_DIGITS.fullmatch(lexeme):
                break
            groups.append(lexeme.replace(",", "."))
            self.at += 1
            if not lexeme.isdigit():
                break
        return "".join(groups)

    def _with_fraction(self, body: str) -> str:
        """The whole number with the fraction that follows it (2 1/2)."""
        follows = self._peek()
        if not (body.isascii() and body.isdigit()) or "/" not in follows:
            return body
        fraction = read_number(follows)
        if fraction is None:
            return body
        self.at += 1
        return body + fraction[1:]

    def _is_symbol(self, place: int) -> bool:
        """Signs that change a meaning: +, <, >, and a - or # that ends a name (A-, C#)."""
        sign, before = self.lexemes[place], self._char_before(place)
        if sign in ("+", "<", ">", "\u2264", "\u2265"):
            if sign != "+" and self._starts_number(place + 1 - self.at):
                return before not in ("-", "=", '"', "'")
            return before not in ("", "-", "=", "\n")
        return sign in ("-", "#") and before.isalnum() and not self._char_after(place).isalnum()


@lru_cache(maxsize=4096)
def _alone(chunk: str) -> Sequence[Token] | None:
    """The tokens of a chunk next to nothing that could change them; None for words that are parts of numbers."""
    if chunk in _MORE_THAN_WORDS or chunk.partition("-")[0] in vocabulary.NUMERALS:
        return None
    reader = _Tokenizer(chunk)
    reader.at = 1
    return tuple(reader._chunk(chunk))


@lru_cache(maxsize=4096)
def _plain_word(text: str) -> tuple[Token, Token] | None:
    """The token of a word that is nothing but a word, within a clause and as its first; None for others."""
    if not text.isalpha() or text in _MORE_THAN_WORDS or (len(text) == 1 and _SPACELESS_SIGN.match(text)):
        return None
    token = Token("word", stem(text))
    return token, token._replace(opens=True)


def stem(word: str) -> str:
    """The word in American spelling, without a plural or third-person s and without accents (García is Garcia)."""
    if not word.isascii() and word not in _ACCENTED:
        word = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", word)))
    word = word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] not in "sui" else word
    if len(word) > 3 and word.isascii():
        word = _BRITISH.sub(lambda found: vocabulary.AMERICAN[found[0]], _DOUBLE_L.sub(r"\1l", _ISE.sub(r"\1z", word)))
    return word


def _with_negations(text: list[Token]) -> list[Token]:
    """The tokens, with those directly negated within their clause marked."""
    for i in [i for i, token in enumerate(text) if token.text in _NEGATING]:
        token = text[i]
        if token.text in vocabulary.NEGATIONS and token.kind == "word":
            links, linking = _REACH, vocabulary.LINKING_WORDS
        elif token.text in vocabulary.NEGATING_CHARACTERS and token.kind == "character":
            links, linking = len(text), vocabulary.LINKING_CHARACTERS
        else:
            continue
        for place in range(i + 1, min(i + 1 + links, len(text))):
            after = text[place]
            if after.opens or (token.kind == "character" and after.kind != "character"):
                break
            text[place] = after._replace(negated=True)
            if after.text not in linking or after.kind != token.kind:
                break
    return text


def content(text: Sequence[Token]) -> list[Token]:
    """The tokens with content; neighbours in a script without spaces become pairs."""
    kept: list[Token] = []
    for i, token in enumerate(text):
        if token.kind == "character":
            after = text[i + 1] if i + 1 < len(text) else None
            before = text[i - 1] if i else None
            if after and after.kind == "character" and not after.opens:
                kept.append(token._replace(text=token.text + after.text))
            elif token.opens or not before or before.kind != "character":
                kept.append(token)
        elif token.text not in vocabulary.STOP_WORDS or token.kind != "word":
            kept.append(token)
    return kept


def found_in(wanted: Token, text: Collection[Token]) -> bool:
    """Whether the text has the token, or one with the same value and a unit that does not contradict."""
    return wanted in text or any(wanted.key == token.key and wanted.fits(token) for token in text)


def shared(wanted: Iterable[Token], text: Iterable[Token]) -> float:
    """Share of the distinct wanted tokens that the text has, negated or not; 1 if none are wanted."""
    distinct = {(token.key, token.units): token for token in wanted}.values()
    index = index_of(text, distinct)
    hits = sum(found_in(token, index.get(token.key, ())) for token in distinct)
    return hits / len(distinct) if distinct else 1.0


def index_of(text: Iterable[Token], wanted: Iterable[Token] | None = None) -> dict[tuple[str, str], set[Token]]:
    """The tokens (only those with a wanted text) by kind and text; equal ones are kept once, so entries stay short."""
    index: dict[tuple[str, str], set[Token]] = {}
    texts = None if wanted is None else {token.text for token in wanted}
    for token in text if texts is None else [token for token in text if token.text in texts]:
        index.setdefault(token.key, set()).add(token._replace(opens=False) if token.opens else token)
    return index
