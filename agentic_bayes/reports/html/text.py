"""Foreign text in a page: it stays text, invisible characters are shown, and no name breaks the layout."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentic_bayes.formatting import brief_names, plain_text
from agentic_bayes.result_table import Table

if TYPE_CHECKING:
    from markupsafe import Markup

LONGEST_NAME = 160
LONGEST_SHOWN = 40  # characters of a name in sentences, pictures and tables of agents
LONGEST_BESIDE = 26  # next to something
LONGEST_IN_TABLE = 60  # in a column of its own
LONGEST = 600  # of a name that is pointed at
UNSEEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")  # controls, format characters (bidi, zero width), halves of pairs
_ESCAPED = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
_LONG_WORD = re.compile(r"\S{25}")
_NUMBER = re.compile(r"[–<>=+-]?[\d.,]+( of [\d.,]+)?( \[[^\]]*\])?|\[[^\]]*\]|pass[@^]\d+|–")
# words with letters of Hebrew, Arabic or their kind, without the punctuation around them
_LETTERS = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_WORD = rf"[^\s(,;]*[{_LETTERS}][^\s,;]*"
_RIGHT_TO_LEFT = re.compile(rf"{_WORD}(?:\s+{_WORD})*(?<![.,;:)])")
_BEFORE_PERCENT = re.compile(r"(?<=\d) (?=%)")
_SURROGATES = re.compile("[\ud800-\udfff]")


def cut(text: str, longest: int = LONGEST_NAME) -> str:
    """The text, or its beginning and how much more there is."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text) - longest:,} more characters)"


def shown(value: object, longest: int = LONGEST_NAME) -> Markup:
    """Text from anywhere as HTML: escaped, isolated from surrounding text direction, unseen characters marked."""
    from markupsafe import Markup

    text = cut(str(value), longest)
    if text.isascii() and text.isprintable():
        return Markup("<bdi{}>{}</bdi>").format(_kind(text), text)
    return Markup('<bdi dir="auto"{}>{}</bdi>').format(_kind(text), _seen(text))


def said(value: object, longest: int = LONGEST_NAME) -> Markup:
    """A sentence of ours as HTML: as `shown`, but from left to right, whatever names from right to left are in it."""
    from markupsafe import Markup

    text = cut(_BEFORE_PERCENT.sub("\N{NO-BREAK SPACE}", str(value)), longest)
    if not _RIGHT_TO_LEFT.search(text):
        return shown(text, longest)
    parts, end = [], 0
    for name in _RIGHT_TO_LEFT.finditer(text):
        parts += [_seen(text[end : name.start()]), Markup("<bdi>{}</bdi>").format(_seen(name[0]))]
        end = name.end()
    return Markup('<bdi dir="ltr"{}>{}</bdi>').format(_kind(text), Markup("").join([*parts, _seen(text[end:])]))


def _kind(text: str) -> Markup | str:
    from markupsafe import Markup

    name = _width(text)
    return Markup(' class="{}"').format(name) if name else ""


def _seen(text: str) -> Markup:
    """The text escaped, with a mark for what would not be seen."""
    from markupsafe import Markup, escape

    parts = (
        Markup('<span class="cp">U+{:04X}</span>').format(ord(sign)) if _is_unseen(sign) else escape(sign)
        for sign in text
    )
    return Markup("").join(parts)


def named(name: str, brief: str) -> Markup:
    """A name as HTML: a brief form of it, and the whole when it is pointed at."""
    from markupsafe import Markup

    if len(brief) >= len(plain_text(name)):
        return shown(name)
    return Markup('<span title="{}">{}</span>').format(cut(plain_text(name), LONGEST), shown(brief))


def brief_or_none(names: Sequence[str]) -> list[str | None]:
    """The brief forms of the long ones among names that have a column."""
    if all(len(name) <= LONGEST_IN_TABLE for name in names):
        return [None] * len(names)
    briefs = brief_names([plain_text(name) for name in names], LONGEST_IN_TABLE)
    return [brief if len(name) > LONGEST_IN_TABLE else None for name, brief in zip(names, briefs, strict=True)]


def brief_cells(table: Table) -> dict[int, dict[str, Markup]]:
    """Of each column of agents or tasks the long names as HTML."""
    columns = [i for i, name in enumerate(table.header) if name in ("agent", "task")]
    names = {i: list(dict.fromkeys(row[i] for row in table.rows)) for i in columns}
    return {
        i: {name: named(name, brief) for name, brief in zip(own, brief_or_none(own), strict=True) if brief}
        for i, own in names.items()
    }


def _width(text: str) -> str:
    """How a text may be broken over lines: anywhere, nowhere, or between words but not too narrowly."""
    if _LONG_WORD.search(text):
        return "long"
    return "short" if len(text) < 25 else "text" if len(text) > 50 else ""


def is_number_like(value: object) -> bool:
    """Whether a cell is one number, with its interval or total, which is never broken over lines."""
    return _NUMBER.fullmatch(str(value)) is not None


def _is_unseen(sign: str) -> bool:
    return sign not in "\n\t" and unicodedata.category(sign) in UNSEEN


def json_block(value: Any) -> Markup:
    """A value as JSON that may stand in a ``<script type="application/json">``: nothing in it can end the element."""
    from markupsafe import Markup

    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(_SURROGATES.sub(lambda half: f"\\u{ord(half[0]):04x}", text.translate(_ESCAPED)))


def content_hash(text: str) -> str:
    """The hash by which a content security policy knows an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
