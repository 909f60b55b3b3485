"""Finds what an answer asserts in the end: not what it said before, sets aside, or does not know."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from agentic_bayes.evidence.reference.answer_text import Token
from agentic_bayes.evidence.reference.hedging import SHORT, Reading, names
from agentic_bayes.evidence.reference.phrases import words_and_signs
from agentic_bayes.evidence.reference.vocabulary import COPULAS, INTERJECTIONS, LEADS, STOP_WORDS

_ATTEMPT = "(?:guess|answer|draft|version|attempt|thought|choice|idea|option|estimate|reply)"
_EARLIER = re.compile(
    rf"\b(?:initially|originally|previously|formerly|earlier|at first|used to|draft"
    rf"|(?:first|second|old|other|wrong|alternative|previous|initial|original) {_ATTEMPT}"
    r"|runner-up|favou?rite|front-?runner"
    r"|was (?:also )?(?:considered|discussed|mentioned|rejected|dropped|proposed|shortlisted|a candidate)"
    r"|(?:was|is) (?:closed|full|unavailable|sold out)|you (?:asked|mentioned|wrote)"
    r"|(?:was|were|been) (?:told|promised|quoted)|expected|assumed|hoped for|insists?|before (?:the|that|it))\b"
    r"|^(?! (?-i:was)\b)\W*(?:was|old|previous)\b"  # (was Paris), but not: Dubliners (1914) was by James Joyce
    r"|\b(?:everyone|everybody|people|many|most|some|others|you(?= said| expect))(?: \w+){0,2} "
    r"(?:think|say|said|expect|assume|guess|pick|believe|answer|name|suggest|claim)(?:s|es|ed)?\b",
    re.IGNORECASE,
)
_DEPARTED = re.compile(r"\b(?:left|resigned|retired|stepped down|withdrew|dropped out|lost|died|moved on)\b")
_FINAL = re.compile(
    r"\b(?:finally|final(?: (?:answer|version|choice|decision)|(?=:))|corrected(?: answer)?|correction|in the end"
    r"|eventually|(?:(?:my|the|correct|right|real|actual) )?answer)\W{0,4}(?:is|was|:)?\W{0,4}(?=\w)",
    re.IGNORECASE,
)
_FIRST = re.compile(r"^\W*first (?!,)", re.IGNORECASE)
_THEN = re.compile(r"^\W*(?:and )?(?:then|later|finally)\b", re.IGNORECASE)
_WRONGLY = re.compile(r"\b(?:wrongly|mistakenly|erroneously|falsely)\b", re.IGNORECASE)
_THOUGH = re.compile(r"^(?:al)?though\b", re.IGNORECASE)
_WHICH_ONE = re.compile(r"\bwhich (?:one|of (?:them|these|those|the two))\b[^?]*$", re.IGNORECASE)
_CHOOSE = re.compile(r"^\W*please (?:choose|pick|select)\b", re.IGNORECASE)
_NOW = re.compile(
    r"\b(?:now|today|currently|nowadays|these days|at present|at the moment)\b|^\W*(?:so|then|later)\b", re.IGNORECASE
)
_ASIDE = r"(?:which|who|whose|although|though|while|whereas|tak(?:ing|en)|replacing|beating|after|before|instead|ahead)"
_TIMES = "now|today|later|finally|currently|eventually|originally|previously|formerly"
# every break begins with one of the first signs, which are fast to look for
_BREAK = re.compile(
    r"[\s.!?;,()\[\]\u2026](?:(?<=[.!?;\u2026])(?<!\b[A-Z].)[.!?;\u2026]*+[\"'*)\]]*+(?=\s|$)|(?<=[\n()\[\]])"
    rf"|(?<=,)\s(?=(?:but|and|so|then|yet|(?i:{_ASIDE}|{_TIMES}))\b)|(?<=\s)(?:[()\[\]]|(?=but\b)|[-\u2013\u2014]\s))"
)
# signs after a short answer; a line of its own may be a title or the head of a table
_ENDS_HEAD = tuple(".;,\u2026([-\u2013\u2014")
_NO_ANSWERS = STOP_WORDS | LEADS | INTERJECTIONS
_FEW = 3  # parts with other figures; in more, each probably means something else
_NEAR = 2  # parts between what an answer said before and what it says now
_SURE = r"(?:sure|certain|positive|clear)"
_UNSURE = re.compile(
    r"(?:^|[.!?;,\u2026\n(\u2014-]\s?|\band )(?:(?:sorry|honestly|but|well|hmm|to be honest),? )?"
    r"(?:(?:i|we)(?:'m| am|'re| are)? )?(?:(?:really|still|quite|also|just|do) )*"
    rf"(?:not (?:\w+ )?{_SURE}|(?:aren't|isn't) {_SURE}|unsure|uncertain|don't (?:really )?know|not know"
    r"|(?:have )?no (?:idea|clue)|can't (?:say|tell)|cannot (?:say|tell)|(?:it's |it is )?hard to (?:say|tell)"
    r"|(?:nobody|no one) (?:really )?(?:knows|can say)|your guess is as good as mine)"
    r"(?: (?:at all|yet|either|myself|for sure|for certain|here))*\s?(?=[.!?;,\u2026)\u2014\n-]|$)"
    r"(?!,? (?:but|however|though)\b)"
    r"|\b(?:is|are|was) (?:not|n't|un)\s?(?:yet )?(?:known|clear|certain|decided|announced)\s?(?:[.;,]|$)"
    r"(?!,? (?:but|however)\b)"
)
_KNOWN = ("certain", "clear", "know", "known", "decided", "announced", "sure")
_UNSURE_CUES = {"positive", "knows", "idea", "clue", "say", "tell", "guess"} | {
    before + word for before in ("", "un", "not", "t") for word in _KNOWN
}
_SAYING = ("think", "say", "said", "expect", "assume", "guess", "pick", "believe", "answer", "name", "suggest", "claim")
# Without one of them in a piece, and without a head, an answer asserts what it says; each is only searched in answers
# with one of its cues, in lower case, which is faster.
_MARKS = tuple(
    (frozenset(cues.split()), re.compile(mark.pattern, mark.flags & ~re.IGNORECASE))
    for mark, cues in {
        _EARLIER: "initially originally previously formerly earlier first used draft version attempt thought choice"
        " idea option estimate reply runner frontrunner favourite favorite considered discussed mentioned rejected"
        " dropped proposed shortlisted candidate closed full unavailable sold asked wrote told promised quoted expected"
        " assumed hoped insist insists before was old previous "
        + " ".join(verb + end for verb in _SAYING for end in ("", "s", "es", "ed")),
        _DEPARTED: "left resigned retired stepped withdrew dropped lost died moved",
        _FIRST: "first",
        _WRONGLY: "wrongly mistakenly erroneously falsely",
        _THOUGH: "though although",
        _WHICH_ONE: "which",
        _CHOOSE: "please",
        _NOW: "now today currently nowadays these present moment so then later",
    }.items()
)
# marks only if a piece begins with them: after another word, none does
_BEGINNINGS = frozenset({"was", "old", "previous", "so", "then", "later"})
_BEGINS = re.compile(rf"[lopstw](?<!\w.)(?<!\w .)(?<=(?=(?:{'|'.join(_BEGINNINGS)})\b).)")
_FINAL_CUES = ("final", "correct", "in the end", "eventually", "answer")
_FINAL_LOWER = re.compile(_FINAL.pattern)
_DEPENDS = re.compile(r"\bit (?:all )?depends\b|\bif\b[^.;\n]{1,80}\botherwise\b", re.IGNORECASE)
_SAID_BEFORE = "The answer names the reference only as what it was, or what was said before; it says: {}."


class _Part(NamedTuple):
    """A sentence, clause or aside of an answer."""

    text: str
    read: Sequence[Token]
    end: str  # the sign at its end
    gives: bool  # it names the reference
    other: bool  # it names something else of the reference's kind


def unsure(answer: str) -> bool:
    """Whether an answer says that it does not know, without a "but"."""
    return not _UNSURE_CUES.isdisjoint(words_and_signs(answer)) and bool(
        _UNSURE.search(answer.replace("\u2019", "'").lower())
    )


def set_aside(
    answer: str,
    reference: str,
    wanted: Sequence[Token],
    known: Collection[tuple[str, str]],
    reading: Reading,
    named: Collection[str],
) -> str:
    """Why the reference, which the answer names, is not what it asserts in the end; empty if it is.

    `wanted` is what the reference says beyond the query, `known` what reference and query say, `named` the answer's
    names if the reference is one.
    """
    lower = answer.lower()
    depends = ("depend" in lower or "otherw" in lower) and bool(_DEPENDS.search(answer))
    if not (depends or _is_marked(answer, lower, reading)) or _EARLIER.search(reference):
        return ""
    plain = not named and len(reading(reference)) == len(wanted) and all(token.kind == "word" for token in wanted)
    parts = list(_parts(_pieces(answer), wanted, known, reading, named, plain=plain))
    given = [i for i, part in enumerate(parts) if part.gives]
    if not given:
        return ""
    if all(_WRONGLY.search(parts[i].text) and not parts[i].other for i in given):
        return "The answer says that the reference is wrong."
    if not any(part.other for part in parts):
        return ""
    if depends:
        return "The answer says that it depends."
    asking = {i for i, part in enumerate(parts) if _asks_back(part)}
    asking |= {i - back for i in asking for back in (1, 2) if i >= back}
    if asking.issuperset(given) and any(parts[i].other for i in asking):
        return "The answer asks which one is meant."
    stands = _stands_instead(parts, given, wanted, known, named, reading)
    return "" if stands is None else _SAID_BEFORE.format(parts[stands].text.strip())


def _stands_instead(
    parts: Sequence[_Part],
    given: Sequence[int],
    wanted: Sequence[Token],
    known: Collection[tuple[str, str]],
    named: Collection[str],
    reading: Reading,
) -> int | None:
    """The place of the part that gives another answer, where the given ones only mention the reference."""
    others = [i for i, part in enumerate(parts) if part.other and not part.gives]
    if not others:
        return None
    if all(i - 1 in others and _THOUGH.match(parts[i].text) for i in given):
        return given[0] - 1
    early = {i for i, part in enumerate(parts) if _is_early(part, named)}
    pairs = enumerate(itertools.pairwise(parts))
    early |= {i for i, (one, after) in pairs if _FIRST.match(one.text) and _THEN.match(after.text)}
    finals = [i for i in others if i not in early and _concludes(parts[i], wanted, known, named, reading)]
    if finals and all(i in early or i < finals[-1] or _is_incidental(parts[i], wanted) for i in given):
        return finals[-1]
    places = set(given)
    near = [i for i in others if i not in early and not places.isdisjoint(range(i - _NEAR, i + _NEAR + 1))]
    if near and early.issuperset(given) and (named or len(others) <= _FEW):
        return near[0]
    now = [i for i in others if _NOW.search(parts[i].text)]
    if now and all(_was(parts[i], wanted, known) for i in given):
        return now[0]
    alone = _is_head(parts[0], wanted, known, named) and all(_is_incidental(parts[i], wanted) for i in given)
    goes_on = parts[0].end in ("(", "[") and list(given) != [1]  # "Dubliners (1914) is by James Joyce"
    return 0 if alone and not goes_on else None


def _asks_back(part: _Part) -> bool:
    """Whether a part asks which of several things is meant."""
    asks = part.end.startswith("?") and _WHICH_ONE.search(part.text)
    return bool(asks or (not part.end.startswith(",") and _CHOOSE.search(part.text)))


def _pieces(answer: str) -> Iterator[tuple[str, str]]:
    """The sentences, clauses and asides of an answer that are not blank, each with the sign at its end."""
    at = 0
    for sign in itertools.chain(_BREAK.finditer(answer), (None,)):
        text = answer[at : sign.start() if sign else len(answer)]
        at = sign.end() if sign else at
        if text.strip():
            yield text, sign[0].strip() if sign else ""


def _is_marked(answer: str, lower: str, reading: Reading) -> bool:
    """Whether an answer may assert something else than it names: the reading of its pieces is only worth it then."""
    found = words_and_signs(answer)
    found = found if _BEGINS.search(lower) else found - _BEGINNINGS
    marks = [mark for cues, mark in _MARKS if not cues.isdisjoint(found)]
    marks += [_FINAL_LOWER] if any(cue in lower for cue in _FINAL_CUES) else []
    if marks and any(mark.search(piece) for piece in (text.lower() for text, _ in _pieces(answer)) for mark in marks):
        return True
    text, end = next(_pieces(answer))
    return end.startswith(_ENDS_HEAD) and text.count(" ") < 3 * SHORT and len(reading(text)) <= SHORT


def _parts(
    pieces: Iterable[tuple[str, str]],
    wanted: Sequence[Token],
    known: Collection[tuple[str, str]],
    reading: Reading,
    named: Collection[str],
    *,
    plain: bool,
) -> Iterator[_Part]:
    sought = {token.key for token in wanted}
    for text, end in pieces:
        read = reading(text)
        gives = any(token.key in sought and not token.negated for token in read)
        other = any(_is_other(token, wanted, known, named) for token in read)
        other = other or (plain and not gives and _is_short(read, wanted, known))
        yield _Part(text, read, end, gives, other)


def _is_other(
    token: Token, wanted: Sequence[Token], known: Collection[tuple[str, str]], named: Collection[str]
) -> bool:
    """Whether a token is of the reference's kind and says something else."""
    if token.negated or token.key in known:
        return False
    if named and token.kind == "word":
        return token.text in named and token.text not in _NO_ANSWERS
    return token.kind != "word" and any(
        token.kind == one.kind and bool(token.units) == bool(one.units) and token.fits(one) for one in wanted
    )


def _is_short(read: Sequence[Token], wanted: Sequence[Token], known: Collection[tuple[str, str]]) -> bool:
    """Whether there are no more words than in the reference, all new, next to those that introduce an answer."""
    words = [token for token in read if token.text not in _NO_ANSWERS]
    new = all(token.kind == "word" and not token.negated and token.key not in known for token in words)
    return 0 < len(words) <= len(wanted) and new


def _is_early(part: _Part, named: Collection[str]) -> bool:
    return bool(_EARLIER.search(part.text) or (named and _DEPARTED.search(part.text)))


def _concludes(
    part: _Part,
    wanted: Sequence[Token],
    known: Collection[tuple[str, str]],
    named: Collection[str],
    reading: Reading,
) -> bool:
    """Whether a part is labelled as the final answer, and another answer follows the label directly."""
    label = _FINAL.search(part.text)
    read = reading(part.text[label.end() :]) if label else ()
    if not named and all(token.kind == "word" for token in wanted):
        return _is_short(read, wanted, known)
    return bool(read) and _is_other(read[0], wanted, known, names(part.text) if named else ())


def _was(part: _Part, wanted: Sequence[Token], known: Collection[tuple[str, str]]) -> bool:
    """Whether the reference stands directly after a verb in the past, in which nobody asked."""
    sought = {token.key for token in wanted}
    return any(
        token.key in sought and verb.text in ("was", "were", "had") and verb.key not in known
        for verb, token in itertools.pairwise(part.read)
    )


def _is_head(part: _Part, wanted: Sequence[Token], known: Collection[tuple[str, str]], named: Collection[str]) -> bool:
    """Whether a part is nothing but another answer."""
    if not 0 < len(part.read) <= SHORT or part.gives or not part.end.startswith(_ENDS_HEAD) or ":" in part.text:
        return False
    capitals = names(part.text) if named else frozenset()
    return all(_is_other(token, wanted, known, capitals) for token in part.read)


def _is_incidental(part: _Part, wanted: Sequence[Token]) -> bool:
    """Whether a part says something about the reference, or something else, but not that it is the answer."""
    sought = {token.key for token in wanted}
    places = [i for i, token in enumerate(part.read) if token.key in sought]
    before = {token.text for token in part.read[: places[0]]}
    after = part.read[places[-1] + 1 :]
    goes_on = bool(after) and not after[0].opens
    return not before <= LEADS | STOP_WORDS or (goes_on and (not before or after[0].text in COPULAS) and len(after) > 1)
