"""Phrases and signs that hedge, list, deny or take back, rewritten in the few words that the rules know."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class Phrase(NamedTuple):
    """A pattern that is only searched in texts with one of its cues, and what it becomes."""

    cues: Sequence[str]  # in lower case; a pattern without cues is always searched
    pattern: re.Pattern[str]
    plain: str


def reworded(text: str, phrases: Sequence[Phrase]) -> str:
    """The text with these phrases rewritten, in their order."""
    lower = text.lower()
    for cues, pattern, plain in phrases:
        if not cues or any(cue in lower for cue in cues):
            text = pattern.sub(plain, text)
    return text


def _phrase(cues: str, pattern: str, plain: str, flags: int = re.IGNORECASE) -> Phrase:
    return Phrase(cues.split(), re.compile(pattern, flags), plain)


_BULLET = r"^[ \t]*(?:[-*\u2022\u2013]|\(?(?:\d+|[A-Za-z])[.)])[ \t]+"
BULLET = re.compile(_BULLET, re.MULTILINE)
INLINE_BULLET = re.compile(r"(?<=\S)[ \t]+(?=\(?(?:\d|[A-Da-d])[.)][ \t])")
_MAYBE = r"(?:maybe|perhaps|possibly|(?:could|might|may)(?: \w+){0,3} be)"
LISTS = (
    Phrase((), BULLET, ""),
    _phrase("(", r"\s*\([^()\n]{1,20}\)(?=,?\s+or\b)", ""),  # X (50 %) or Y
    # signs that relate numbers to each other: what stands on both sides is no list
    _phrase("", "[=*\u00d7\u00f7\u2192:()]", " is "),
    _phrase("&", " & ", " and "),
    _phrase("?", r"(?<![^.?!])(\s*[\w$]+(?: \w+)?)\?\s+(?=[\w$]+(?: \w+)?\?)", r"\1 or "),  # X? Y?
    _phrase(
        "maybe perhaps possibly could might may",
        rf"\b{_MAYBE}\b([^,.;?!\n]{{1,60}})[,.;?!]\s*(?:(?:but|and) )?(?:it )?{_MAYBE}\b",
        r"\1 or",
    ),
    _phrase("maybe perhaps possibly", r", (?:maybe|perhaps|possibly) (?=[A-Z\d$\u20ac\u00a3])", " or ", 0),
    _phrase("vs versus", r"\s(?:vs\.?|versus)\s", " or "),
    _phrase("/ |", r"(?<![\w./:])([^\W\d_]+)(?: ?/ ?|\|)(?=[^\W\d_]+(?![\w./]))", r"\1 or "),
)

_CROSSES = "\u2717\u2718\u274c\u2716"
REJECTIONS = (
    _phrase(  # Is it X? No.
        "?",
        r"\?[\"')\]]?\s*(?:no|nope|nein|non|wrong|incorrect|false|not really|not any ?more|no longer"
        r"|i doubt (?:it|that)|i (?:don't|do not) think so)(?:\s*[,.;!:]|\s*$)",
        " is wrong. ",
    ),
    _phrase(" ".join(_CROSSES), rf"^[ \t>*-]{{0,8}}[{_CROSSES}]", "not ", re.MULTILINE),
    _phrase(" ".join(_CROSSES), f"[{_CROSSES}]", " is wrong"),
    _phrase("wrong incorrect false no) no]", r"[(\[](?:wrong|incorrect|false|no)[)\]]", " is wrong"),
    _phrase("=", r"={1,3} ?(?:false|wrong|incorrect)\b", " is wrong"),
)

_KNOWN_AS = "(?:called|known as|named)"
RETRACTIONS = (
    _phrase(
        "called known named", rf"\b(?:(?:previously|originally|once) {_KNOWN_AS}|used to be {_KNOWN_AS})\b", "formerly"
    ),
    _phrase("used", r"\bused to\b", "erstwhile"),
    _phrase("fact reality truth", r"\bin (?:fact|reality|truth)\b", "actually"),
    _phrase(
        "moved migrated switched changed relocated",
        r"\b(?:moved|migrated|switched|changed|relocated) from ([^,.;\n]{1,40}?) to\b",
        r"formerly \1; to",
    ),
    _phrase("date", r"\bout of date\b", "outdated"),
    _phrase("rule ruling", r"\brul(?:es?|ed|ing) out\b", "exclude"),
    _phrase("candidates contenders possibilities", r"\b(?:candidates|contenders|possibilities)\b", "uncertain"),
    _phrase("anywhere somewhere ranges ranging", r"\b(?:anywhere|somewhere|ranges|ranging) from\b", ""),
    _phrase("\u2192 \u27f6 \u21d2 -> =>", r"[\u2192\u27f6\u21d2]|[-=]{1,2}>", "; actually "),
    _phrase("- \u2013", r"(?<=\S) [-\u2013] ", "; "),  # an aside
    _phrase(": |", r"[:|]\W{0,4}no\b", "; "),  # a field that says no
)
NUMBER_RANGE = _phrase(
    "- \u2013 to",
    r"(?<![\w.,-])(?<!from )(\d{1,3}) ?(?:-|\u2013|to) ?(\d{1,3})(?![\w-]|[.,]\d)",
    r"between \1 and \2",
    re.ASCII,
)
