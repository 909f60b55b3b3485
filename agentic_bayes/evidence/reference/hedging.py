"""Finds answers that do not commit: alternatives of the reference's kind, or the reference called wrong."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Callable, Collection, Iterator, Sequence

from agentic_bayes.evidence.reference.answer_text import Token, tokens
from agentic_bayes.evidence.reference.phrases import BULLET, INLINE_BULLET, LISTS, SERIES, reworded
from agentic_bayes.evidence.reference.vocabulary import (
    APPROVALS,
    AUXILIARIES,
    BEFORE_CLAIMS,
    CLAIMS,
    CONJUNCTIONS,
    COPULAS,
    DENIALS,
    NO_WORDS,
    POINTERS,
    PRONOUNS,
    REPORTS,
    STOP_WORDS,
    YES_WORDS,
)

Reading = Callable[[str], Sequence[Token]]

SHORT = 3  # tokens of an item of a list, and words of a reference that can be one
REACH = 12  # tokens before or after "wrong" that it can deny
_SUBJECT_ENDS, _FILLERS = CONJUNCTIONS | COPULAS, CONJUNCTIONS | POINTERS
_JOINTS = (("word", "or"), ("word", "and"))
_FEWEST = 3  # numbers of a list without "or"
_FEWEST_WORDS = 4  # items of an answer that is nothing but a list
_CORRECTING = frozenset({"actually", "wait", "sorry", "rather", "well"})
_BETWEEN_POLARITIES = _CORRECTING | {"or", "and", "but", "also", "maybe", "perhaps", "possibly", "either", "both"}
_ARTICLES = frozenset({"a", "an", "the", "is", "was", "it", "maybe", "perhaps", "possibly", "even", "either"})
_COMMON = frozenset({"common", "popular", "frequent", "widespread", "old"})
_CASES = frozenset({"for", "with", "if", "when", "unless"})
_VERDICTS = DENIALS | APPROVALS | {"not"}
_HEDGE = PRONOUNS | CLAIMS
_BULLETS = re.compile(r"[.)](?<=[ \t(][\dA-Da-d].)[ \t]")  # in whatever has an inline bullet; quick to look for
_SENTENCE = re.compile(r"[.!?]\s")
_WORD = re.compile(r"[^\W\d_]+")
_CAPITAL = re.compile(r"[A-Z](?<![A-Za-z].)[A-Za-z]*")  # its words with a capital letter, of an ASCII text


def without_hedges(answered: Sequence[Token]) -> list[Token]:
    """The tokens without runs that say both yes and no ("yes or no", "yes, no, maybe")."""
    kept: list[Token] = []
    run: list[Token] = []
    states: set[bool] = set()
    for i, token in enumerate([*answered, None]):
        word = token.text if token and token.kind == "word" and not token.negated else ""
        after = answered[i + 1] if i + 1 < len(answered) else None
        alone = after is None or after.opens or after.text in _BETWEEN_POLARITIES | PRONOUNS | YES_WORDS
        joined = bool(run) and run[-1].text in ("or", "and")
        says_no = word in NO_WORDS and (word != "no" or alone or joined)
        if token and (word in YES_WORDS or says_no or word in _BETWEEN_POLARITIES):
            run.append(token)
            states |= {not says_no} if word not in _BETWEEN_POLARITIES else set()
            continue
        if len(states) == 2:  # what is said after a correction stands
            corrected = (j for j, t in enumerate(run) if t.text in _CORRECTING and run[j - 1].text not in CONJUNCTIONS)
            last = max(corrected, default=len(run))
            run = [token for token in run[last + 1 :] if token.text in YES_WORDS | NO_WORDS]
            run = run if len({token.text in YES_WORDS for token in run}) == 1 else []
        kept += run
        kept += [token] if token else []
        run, states = [], set()
    return kept


def alternatives(
    expected: Sequence[Token],
    wanted: Sequence[Token],
    answer: str,
    read: Sequence[Token],
    reading: Reading,
    named: Collection[str],
) -> list[str]:
    """The alternatives among which the answer leaves its reader to choose; empty if it commits itself.

    `wanted` is what the reference says beyond the query, `read` the answer's tokens, as `reading` reads them, `named`
    its names if the reference is one. An answer commits itself if it gives that outside of every list, too.
    """
    if not wanted or len({token.key for token in wanted}) > SHORT or ("word", "or") in {t.key for t in expected}:
        return []
    answer = INLINE_BULLET.sub("\n", answer) if _BULLETS.search(answer) else answer
    plain = reworded(answer, LISTS if _SENTENCE.search(answer) else (SERIES, *LISTS))
    answered = read if plain == answer else reading(plain)
    known = {token.key for token in expected}
    sought = {token.key for token in wanted}
    kinds = {token.kind for token in wanted}
    kinds = kinds & {"number", "code"} or kinds
    places = frozenset(affirmed(answered, sought))
    if not places:
        return []

    def is_other(item: range) -> bool:
        """Whether an item is of the reference's kind and says something else."""
        return places.isdisjoint(item) and any(
            token.kind in kinds
            and token.key not in known
            and not (token.kind == "word" and token.text in STOP_WORDS)
            and (not named or token.text in named)
            and all(token.fits(other) for other in wanted)
            for token in answered[item.start : item.stop]
        )

    offered: set[int] = set()
    shown: list[str] = []
    for items, fewest_others in _lists(answered, answer, first=min(places)):
        inside = {place for item in items for place in item}
        if not inside.isdisjoint(places) and sum(map(is_other, items)) >= fewest_others:
            offered |= inside
            shown += [" ".join(str(token) for token in answered[item.start : item.stop]) for item in items]
    return shown if offered.issuperset(places) else []


def affirmed(text: Sequence[Token], sought: Collection[tuple[str, str]]) -> list[int]:
    """The places of what is sought, where it is not negated."""
    texts = {text for _, text in sought}
    return [i for i, token in enumerate(text) if token.text in texts and token.key in sought and not token.negated]


def _lists(answered: Sequence[Token], answer: str, *, first: int) -> Iterator[tuple[list[range], int]]:
    """Lists, each as the places of its items and how many others make it a list of alternatives."""
    run: list[int] = []
    for i in [*[i for i, token in enumerate(answered) if token.kind in ("number", "code")], len(answered)]:
        joined = run and i < len(answered) and answered[i].kind == answered[run[-1]].kind
        if joined and all(token.key in _JOINTS for token in answered[run[-1] + 1 : i]):
            run.append(i)
            continue
        if len(run) >= _FEWEST:
            yield [range(place, place + 1) for place in run], _FEWEST - 1
        run = [i]
    starts = [i for i, token in enumerate(answered) if token.opens]
    clauses = [range(start, end) for start, end in itertools.pairwise([*starts, len(answered)])]
    for place in [i for i, token in enumerate(answered) if token.text == "or"]:
        if _depends(answered, place):
            continue
        if items := _around(place, answered, clauses, bisect.bisect(starts, place) - 1):
            yield items, 1
    plain = BULLET.sub("", answer)
    if any(len(clause) > 2 * SHORT + 1 for clause in clauses) or _SENTENCE.search(plain) or answer.count(":") > 1:
        return
    if len(clauses) > 1 and len(BULLET.findall(answer)) == len(clauses):
        yield clauses, 1
    named = names(answer)
    all_names = all(len(clause) == 1 and answered[clause.start].text in named for clause in clauses)
    late = all_names or (first >= clauses[0].stop and all(len(clause) <= SHORT for clause in clauses))
    if len(clauses) >= _FEWEST_WORDS and late:
        yield clauses, _FEWEST_WORDS - 1
    joints = [i for i, token in enumerate(answered) if token.key == ("word", "and")]
    if joints and all(token.kind != "word" or token.text in named or i in joints for i, token in enumerate(answered)):
        edges = sorted({*starts, *(i + 1 for i in joints), len(answered)})
        yield [range(start, end - (end - 1 in joints)) for start, end in itertools.pairwise(edges)], 1


def _depends(answered: Sequence[Token], place: int) -> bool:
    """Whether an alternative is only what holds in another case (", or 2 with express")."""
    clause = clause_after(answered, place + 1)
    return answered[place].opens and not _CASES.isdisjoint(token.text for token in answered[clause.start : clause.stop])


def _around(place: int, answered: Sequence[Token], clauses: Sequence[range], number: int) -> list[range]:
    """The items of a list with an "or" at this place, which lies in the clause of this number."""
    after = place + 1
    while after < clauses[number].stop and answered[after].text in _ARTICLES:
        after += 1
    if after >= clauses[number].stop or (answered[after].kind == "word" and answered[after].text in STOP_WORDS):
        return []
    stop = after
    while stop < min(after + SHORT, clauses[number].stop) and answered[stop].text not in CONJUNCTIONS:
        stop += 1
    items = [range(after, stop)]
    start, end = clauses[number].start, place
    while True:
        if start < end:
            items.append(range(max(start, end - SHORT), end))
            few = answered[start:end] if end - start <= REACH else ()
            plain = all(t.text in _ARTICLES or t.text not in STOP_WORDS for t in few)
            hedge = bool(few) and all(t.text in _HEDGE for t in few)
            if not hedge and (end - start > SHORT or not plain):
                break
        if number == 0:
            break
        number -= 1
        start, end = clauses[number].start, clauses[number].stop
    return items


def names(text: str) -> frozenset[str]:
    """The words that are written with a capital letter."""
    capitals = _CAPITAL.findall(text) if text.isascii() else [word for word in _WORD.findall(text) if word[0].isupper()]
    return frozenset(token.text for token in tokens(" ".join(capitals)))


def with_denials(text: Sequence[Token]) -> list[Token]:
    """The tokens, with everything that the text calls wrong marked as negated.

    "X is wrong", "X, which is not right", "it is false that X".
    """
    out = list(text)
    for i, token in enumerate(text):
        if token.text not in _VERDICTS:
            continue
        ends = i + 1 == len(text) or text[i + 1].opens
        if token.text == "not" and ends and not token.opens and i and text[i - 1].text in AUXILIARIES:  # "X does not."
            _negate(out, subject(text, i - 1, pointed=False))
        if token.kind != "word" or token.text not in (APPROVALS if token.negated else DENIALS):
            continue
        if not ends and text[i + 1].text in BEFORE_CLAIMS:
            _negate(out, clause_after(text, i + 2))
        elif (copula := copula_before(text, i)) is not None:
            _negate(out, subject(text, copula))
    return out


def _negate(text: list[Token], places: range) -> None:
    for place in places:
        text[place] = text[place]._replace(negated=True)


def copula_before(text: Sequence[Token], i: int) -> int | None:
    """The place of "is" or the like at most three words before this one, in its clause."""
    for place in range(i - 1, max(i - 5, -1), -1):
        if text[place].text in COPULAS:
            return place
        word = text[place].text
        if text[place].opens or (word not in STOP_WORDS and word not in _COMMON and not word.endswith("ly")):
            return None
    return None


def clause_after(text: Sequence[Token], start: int) -> range:
    """The places from one on to the end of its clause, within reach."""
    end = start
    while end < min(len(text), start + REACH) and not text[end].opens:
        end += 1
    return range(start, end)


def subject(text: Sequence[Token], copula: int, *, pointed: bool = True) -> range:
    """What stands before a copula; where that only points back ("it", "that count"), the clause before it."""
    start = end = copula
    while _continues(text, start, end) and text[start - 1].text not in _SUBJECT_ENDS:
        start -= 1
    words = [token.text for token in text[start:end] if token.text not in AUXILIARIES and token.text != "not"]
    of_people = words in (["you"], ["they"]) and any(t.text in REPORTS for t in text[max(start - REACH, 0) : start])
    if pointed and (of_people or POINTERS.issuperset(words) or (len(words) == 2 and words[0] in ("that", "this"))):
        while start > copula - REACH and start and text[start - 1].text in _FILLERS:
            start -= 1
        end = start
        while _continues(text, start, end):
            start -= 1
    return range(start, end)


def _continues(text: Sequence[Token], start: int, end: int) -> bool:
    """Whether the clause that ends at `end` has a token before `start`, within reach."""
    return max(end - REACH, 0) < start and not (start < end and text[start].opens)
