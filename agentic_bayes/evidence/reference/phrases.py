"""Phrases and signs that hedge, list, deny or take back, rewritten in the few words that the rules know."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from agentic_bayes.evidence.reference.vocabulary import NUMBER_WORDS, TENS

Rewriting = str | Callable[[re.Match[str]], str]
_WORD = re.compile(r"[^\W\d_]+")
_SIGNS = "/|?&=:(+<>'\u2264\u2265$\u20ac\u00a3\u2192\u27f6\u21d2-\u2013\u2717\u2718\u274c\u2716"
_NO_LETTERS = str.maketrans({chr(i): " " for i in range(128) if not chr(i).isalpha()})


class Phrase(NamedTuple):
    """A pattern that is only searched in texts with one of its cues, and what it becomes."""

    cues: frozenset[str]  # words in lower case, and signs; a pattern without cues is always searched
    pattern: re.Pattern[str]
    plain: Rewriting


def reworded(text: str, phrases: Sequence[Phrase]) -> str:
    """The text with these phrases rewritten, in their order."""
    found = words_and_signs(text)
    for cues, pattern, plain in phrases:
        if not cues or not cues.isdisjoint(found):
            plainer = pattern.sub(plain, text)
            if plainer != text:
                found |= words_and_signs(plain if isinstance(plain, str) else plainer)
                text = plainer
    return text


@lru_cache(maxsize=8)  # an answer is asked several times
def words_and_signs(text: str) -> frozenset[str]:
    """The words of a text, in lower case, and those of its signs that can be a cue."""
    lower = text.lower()
    words = lower.translate(_NO_LETTERS).split() if lower.isascii() else _WORD.findall(lower)
    return frozenset(words).union([sign for sign in _SIGNS if sign in lower])


def _phrase(cues: str, pattern: str, plain: Rewriting, flags: int = re.IGNORECASE) -> Phrase:
    assert all(cue.isalpha() or cue in _SIGNS for cue in cues.split()), cues
    return Phrase(frozenset(cues.split()), re.compile(pattern, flags), plain)


_BULLET = r"^[ \t]*(?:[-*\u2022\u2013]|\(?(?:\d+|[A-Za-z])[.)])[ \t]+"
BULLET = re.compile(_BULLET, re.MULTILINE)
INLINE_BULLET = re.compile(r"(?<=\S)[ \t]+(?=\(?(?:\d|[A-Da-d])[.)][ \t])")
_MAYBE = r"(?:maybe|perhaps|possibly|(?:could|might|may)(?: \w+){0,3} be)"
_SEPARATOR = re.compile(r"\s?[/|]\s?")
_FOREIGN = (
    _phrase("oder ou oppure \u0438\u043b\u0438 eller", r"\b(?:oder|ou|oppure|\u0438\u043b\u0438|eller)\b", "or"),
    _phrase("o", r"(?<=\w) o (?=[A-Z])", " or ", 0),
    _phrase(
        "vielleicht peut quiz\u00e1 quiz\u00e1s tal forse talvez misschien",
        r"\b(?:vielleicht|peut-\u00eatre|quiz\u00e1s?|tal vez|forse|talvez|misschien)\b",
        "maybe",
    ),
)
_CAPITAL = r"[A-Z](?:[^\W\d_]|['-])+(?!\w)"
_CAPITALS = rf"{_CAPITAL}(?: {_CAPITAL}){{0,2}}"
_LISTED = re.compile(rf"(?:\b[Oo]ne of|[a-z][^\Ws]s): ?{_CAPITALS}(?:, {_CAPITALS}){{1,9}}(?=\W*$)")  # cities: X, Y, Z
_COMMAS = re.compile(r",? and |, ")
SERIES = _phrase(  # X, Y and Z
    "and", rf"\b{_CAPITALS}(?:, {_CAPITALS}){{1,9}},? and {_CAPITALS}", lambda found: _COMMAS.sub(" or ", found[0]), 0
)
LISTS = (
    *_FOREIGN,
    _phrase("or", r"\b(\d{4}-\d\d-)(\d\d) or (?=\d\d\b(?!-))", r"\1\2 or \1"),
    Phrase(frozenset(":"), _LISTED, lambda found: _COMMAS.sub(" or ", found[0])),
    Phrase(frozenset(), BULLET, ""),
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
    _phrase(
        "/ |",
        r"(?<![\w./:])[^\W\d_]+(?:(?: ?/ ?|\|)[^\W\d_]+)+(?![\w./])",
        lambda found: _SEPARATOR.sub(" or ", found[0]),
    ),
    _phrase(
        "|",
        r"^(?![ \t]{0,8}\|)[^\n|]{1,40}(?: \| [^\n|]{1,40})+$",
        lambda found: _SEPARATOR.sub(" or ", found[0]),
        re.MULTILINE,
    ),
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
    _phrase("wrong incorrect false no", r"[(\[](?:wrong|incorrect|false|no)[)\]]", " is wrong"),
    _phrase("ni", r"\b[Nn]i (?=[A-Z][a-z])", "not ", 0),  # Ni X ni Y
    _phrase("=", r"={1,3} ?(?:false|wrong|incorrect)\b", " is wrong"),
)

_KNOWN_AS = "(?:called|known as|named)"
_AMOUNT = r"\d(?:[\d.,]{0,15}\d)?"
_CURRENCY = "(?:dollars?|euros?|pounds?|usd|eur|gbp)"
_MONEY = rf"(?:[$\u20ac\u00a3] ?{_AMOUNT}|(?<![\d.,]){_AMOUNT}(?= ?{_CURRENCY}\b))"
_UP_TO_COMMA = r"((?:[^,.;\n]|[.,](?=\d)){1,40}?)"
_RELATIONS = (
    "successor|replacement|predecessor|deputy|rival|pupil|student|contemporary|friend|follower|colleague|assistant|teacher"
    "|brother|sister|son|daughter|wife|husband|father|mother|imitator|suburb|north|south|east|west|outskirt"
)
_ITEM = r"(?!(?:them|these|those|the|our|us|my|your|his|her|its|this|that)\b)[\w'-]+(?: [\w'-]+){0,2}?"
_ITEM_STARTS = re.compile(r"(^|,\s*(?:and |or |nor )?|\s(?:and|or|nor)\s)", re.IGNORECASE)
_NUMBER_WORD = "|".join(sorted({*NUMBER_WORDS, *TENS}))
_FIGURE = rf"(?=[$\u20ac\u00a3]? ?\d|(?:{_NUMBER_WORD})\b)"
RETRACTIONS = (
    _phrase("have", r"\b(?:would|could|should|might) have (?!to\b)", "formerly "),
    _phrase(
        "would", r"\b(?:many|some|most|people|everyone|everybody)(?: people)? would (?:say|answer|guess)\b", "formerly"
    ),
    _phrase(
        "merged renamed changed became turned converted",
        r"\b(?:merged (?:in)?to|renamed(?: to| as)?|changed to|became|turned into|converted (?:in)?to)\b",
        "; actually ",
    ),
    _phrase("whether if", r"\b(?:whether|if) (?:it|that|this)(?:'s| is| was| were)\b", "formerly"),
    _phrase(
        f"near outside close {_RELATIONS} {_RELATIONS.replace('|', 's|')}s".replace("|", " "),
        rf"\b(?:(?:{_RELATIONS})s? (?:of|to)|near|outside|close to) (?=[A-Z])",
        "not ",
        0,
    ),
    _phrase("was", r"\bwas (?:going|supposed|meant) to be\b", "not"),
    _phrase("replaced superseded succeeded", r"\b(?:replaced|superseded|succeeded) (?:by|with)\b", "; actually "),
    _phrase(
        "replace replaces replaced replacing succeeds succeeded succeeding supersede supersedes superseded superseding"
        " beat beats beating defeat defeats defeated defeating outvoted from",
        r"\b(?:replac(?:es?|ed|ing)|succeed(?:s|ed|ing)|supersed(?:es?|ed|ing)|beat(?:s|ing)?|defeat(?:s|ed|ing)?|outvoted"
        r"|t(?:ook|akes?|aking|aken) over from)\b(?! in\b)",
        "formerly",
    ),
    _phrase("'", rf"\b((?:[A-Z][\w.-]* ?){{1,3}})'s (?:{_RELATIONS})\b", r"formerly \1; ", 0),
    _phrase(  # None of X, Y, Z
        "none neither",
        rf"\b(?:none of|neither):? ({_ITEM}(?:,? (?:and|or|nor) {_ITEM}|, {_ITEM}){{1,8}})(?=\s*(?:[.;!\n]|$))",
        lambda found: _ITEM_STARTS.sub(r"\1not ", found[1]),
    ),
    _phrase(
        "called known named", rf"\b(?:(?:previously|originally|once) {_KNOWN_AS}|used to be {_KNOWN_AS})\b", "formerly"
    ),
    _phrase("used", r"\bused to\b", "erstwhile"),
    _phrase("fact reality truth", r"\bin (?:fact|reality|truth)\b", "actually"),
    _phrase(
        "from",
        rf"\b(?:moved|migrated|switched|changed|relocated|went|gone|goes|rose|risen|raised|grew|up|down|increased|dropped"
        rf"|fell|fallen|lowered|reduced|discounted|cut|extended|postponed|brought|updated|renamed)(?: \w+){{0,2}} from"
        rf" {_UP_TO_COMMA} to\b",
        r"formerly \1; to",
    ),
    _phrase("date", r"\bout of date\b", "outdated"),
    _phrase("rule rules ruled ruling", r"\brul(?:es?|ed|ing) out\b", "exclude"),
    _phrase("candidates contenders possibilities", r"\b(?:candidates|contenders|possibilities)\b", "uncertain"),
    _phrase("anywhere somewhere ranges ranging", r"\b(?:anywhere|somewhere|ranges|ranging) from\b", ""),
    _phrase("\u2192 \u27f6 \u21d2 >", r"[\u2192\u27f6\u21d2]|[-=]{1,2}>", "; actually "),
    _phrase("- \u2013", r"(?<=\S) [-\u2013] ", "; "),  # an aside
    _phrase("no", r"[:|]\W{0,4}no\b", "; "),  # a field that says no
)
NUMBER_RANGE = _phrase(
    "- \u2013 to",
    r"(?<![\w.,-])(?<!from )(\d{1,3}) ?(?:-|\u2013|to) ?(\d{1,3})(?![\w-]|[.,]\d)",
    r"between \1 and \2",
    re.ASCII,
)
MONEY_RANGE = _phrase(
    "$ \u20ac \u00a3 dollar dollars euro euros pound pounds usd eur gbp",
    rf"(?<!from )({_MONEY}) ?(?:-|\u2013|to) ?({_MONEY})",
    r"between \1 and \2",
)
# limits, which are no values
BOUNDS = (
    _phrase(
        "at over under above below than of upwards almost nearly quite",
        r"\b(?:almost|nearly|not quite|just (?:under|over)|at (?:the )?(?:least|most|minimum|maximum)"
        r"|(?:no|not) (?:fewer|less) than|over|under|above|below|upwards of"
        rf"|a (?:minimum|maximum) of) {_FIGURE}",
        "not ",
    ),
    _phrase(
        "than",
        r"(?<![\w.,])([$\u20ac\u00a3]?\d[\d.,]{0,15}(?: \w+)? (?:more|less|fewer|higher|lower) than\b)",
        r"not \1",
    ),
    _phrase("+", r"(?<![\w+])([$\u20ac\u00a3]?\d[\d.,]*)\+(?![\w+])", r"not \1"),
    _phrase("< > \u2264 \u2265", r"(?<![\w/\"'>=-])[<>\u2264\u2265]=? ?(?=[$\u20ac\u00a3]?\d)", "not "),
    _phrase("from", rf"\bfrom (?={_MONEY})", "not "),
    _phrase("at from with", rf"\b(?:starts?|starting|begins?|beginning) (?:at|from|with) (?={_MONEY})", "not "),
)
DATE_BOUNDS = (
    _phrase(
        "before after",
        r"((?:\b(?:not|never|no)|n't)\b[^.;\n]{0,40})?\b(?i:before|after|prior to) "
        r"(?=(?:the )?(?:\d|[A-Z][a-z]{2,8}\.? \d))",
        lambda found: found[0] if found[1] else "not ",
        0,
    ),
)
