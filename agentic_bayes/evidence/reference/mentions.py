"""Finds mentions of the reference that do not count: quoted, doubted, taken back, or out of date."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from agentic_bayes.evidence.reference.answer_text import Token
from agentic_bayes.evidence.reference.dates import has_date
from agentic_bayes.evidence.reference.hedging import (
    REACH,
    SHORT,
    Reading,
    affirmed,
    clause_after,
    copula_before,
    subject,
)
from agentic_bayes.evidence.reference.phrases import (
    BOUNDS,
    DATE_BOUNDS,
    MONEY_RANGE,
    NUMBER_RANGE,
    RETRACTIONS,
    Phrase,
    reworded,
)
from agentic_bayes.evidence.reference.vocabulary import (
    ANSWERS,
    CLAIMS,
    CONJUNCTIONS,
    CONTRASTS,
    COPULAS,
    CORRECTIONS,
    DOUBTS,
    FORMERLY,
    LEADS,
    LIMITS,
    LINKING_WORDS,
    NOT_ONLY,
    POINTERS,
    POSSIBLY,
    QUESTIONS,
    REPORTS,
    STOP_WORDS,
    TRAILS,
    TURNED_AWAY,
)

_DENYING = frozenset({"no", "none", "not", "nothing", "nobody", "never", "nowhere"})
_CUES = DOUBTS | CLAIMS | FORMERLY | TURNED_AWAY.keys() | {"between"}
_NOT_THE_FACT = DOUBTS | FORMERLY
_NO_VERBS = NOT_ONLY | STOP_WORDS | LINKING_WORDS
_SHORT_QUESTION = 6  # tokens
_NOT_GIVEN = "The answer names the reference, but does not say that it is right."
_STATE = re.compile("[a-z]{3,}e[dn]")  # shipped, broken
_FEW_WORDS = 6
_SOME = frozenset({"a", "an", "another", "someone", "somebody", "one", "some"})
_NEAR = 3 * REACH  # tokens before or after a mention that can bear on it


def taken_back(
    expected: Sequence[Token],
    wanted: Sequence[Token],
    answer: str,
    read: Sequence[Token],
    asked: Sequence[Token],
    reading: Reading,
    named: Collection[str],
) -> str:
    """How the answer takes back every mention of the reference; empty if one stands, or there is none.

    `wanted` is what the reference says beyond the query, `read` the answer's tokens, as `reading` reads them, `named`
    its names if the reference is one.
    """
    sought = {token.key for token in wanted}
    context = {token.text for token in (*expected, *asked)}
    if not wanted or len(sought) > SHORT or any(token.negated for token in expected) or context & _NOT_THE_FACT:
        return ""
    if ("word", "than") in {token.key for token in expected}:  # the reference is a limit itself
        return ""
    if not affirmed(read, sought):
        return ""
    text = reworded(answer, [*RETRACTIONS, *_limits(expected, context)])
    answered = read if text == answer else reading(text)
    places = affirmed(answered, sought)
    if not places:
        return _NOT_GIVEN
    known = {token.key for token in (*expected, *asked)}
    topic = frozenset() if any(token.negated for token in asked) else {token.key for token in asked}
    around = set().union(*[range(max(place - _NEAR, 0), min(place + _NEAR, len(answered))) for place in places])
    doubted = _doubted(answered, sorted(around), sought, topic)
    state = len(expected) == 1 and not named and bool(_STATE.fullmatch(expected[0].text))
    state = state and context.isdisjoint(("will", "be"))
    if context.isdisjoint(LIMITS) and has_date(expected):
        doubted.update(place for place in places if _is_in_range(answered, place))
    starts: dict[int, int] = {}  # where the tokens that are sought begin, by the place of each
    for place in places:
        at = place
        while at and answered[at - 1].key in sought and not answered[at].opens:
            at = starts.get(at - 1, at - 1)
        starts[place] = at
    doubted.update(place for place, start in starts.items() if _is_possible(answered, start, place, state=state))
    if doubted.issuperset(places) or (len(answered) <= _SHORT_QUESTION and _asks(answered, answer)):
        return _NOT_GIVEN
    if instead := _replacement(answered[: places[-1] + _NEAR], places[-1], wanted, known, topic, named):
        return f"The answer names the reference, but then takes it back ({instead})."
    return ""


def _limits(expected: Sequence[Token], context: AbstractSet[str]) -> Iterator[Phrase]:
    """The phrases that make a number one end of a range, unless a limit is asked for."""
    if not any(token.kind in ("number", "code") for token in expected):
        return
    if "when" not in context and "time" not in context:
        yield NUMBER_RANGE
    yield MONEY_RANGE
    if context.isdisjoint(LIMITS):
        yield from DATE_BOUNDS if has_date(expected) else BOUNDS


def _asks(answered: Sequence[Token], answer: str) -> bool:
    """Whether an answer is a question itself, or several guesses."""
    sentences = [part for part in re.split(r"(?<=[.!?])\s+", answer.strip()) if part]
    asks = all(sentence.rstrip("\"')").endswith("?") for sentence in sentences)
    opens = answered[0].text in QUESTIONS and ("word", "not") not in {token.key for token in answered}
    return asks and (len(sentences) > 1 or opens)


def _doubted(
    answered: Sequence[Token],
    around: Iterable[int],
    sought: Collection[tuple[str, str]],
    topic: Collection[tuple[str, str]],
) -> set[int]:
    """The places of what words around these places deny, doubt, turn away, or make an end of a range."""
    found: set[int] = set()
    for i in [i for i in around if answered[i].negated or answered[i].text in _CUES]:
        token = answered[i]
        before = answered[i - 1].text if i else ""
        after = answered[i + 1 : i + 4]
        if token.text == "between" and len(after) == 3 and after[1].text == "and":
            ends = {after[0].key, after[2].key}
            found |= {i + 1, i + 3} if after[0].kind == after[2].kind and not ends.issubset(sought) else set()
        if token.kind != "word":
            continue
        denies = token.negated and (token.text in ANSWERS or token.key in topic)
        doubts = token.text in DOUBTS and not token.negated and [t.text for t in after[:1]] != ["other"]
        claims = token.text in CLAIMS and token.negated and [t.text for t in after[:1]] != ["so"]
        fails = before in ("not", "never") and not token.opens and token.text not in _NO_VERBS
        if doubts or claims or token.text in FORMERLY or _turns_away(answered, i):
            found.update(_claim_after(answered, i + 1))
        lacks = token.negated and token.key in topic and token.text not in STOP_WORDS
        if lacks or (fails and answered[max(i - 2, 0)].text != "why"):
            found.update(_object(answered, i + 1, sought))
        if token.text == "erstwhile" and before not in POINTERS and _claims(answered, i + 1, topic):
            found.update(subject(answered, i))
        if (denies or doubts) and (copula := copula_before(answered, i)) is not None:
            found.update(subject(answered, copula))
    return found


def _is_in_range(text: Sequence[Token], place: int) -> bool:
    """Whether a date is an end of a range ("October 5 to 9, 2025")."""
    to = ("to", "until", "bis")
    before, after = text[max(place - 2, 0) : place], text[place + 1 : place + 3]
    before = () if text[place].opens or (before and before[-1].opens and before[-1].text in to) else before
    before = before[:-1] if before and before[-1].text in to else before
    after = after[1:] if after and after[0].text in to else after
    return has_date(before[-1:]) or (has_date(after[:1]) and not after[0].opens)


def _is_possible(text: Sequence[Token], at: int, place: int, *, state: bool) -> bool:
    """Whether the answer says only that what stands here may be so; of a state, too, that it will or should be."""
    words: list[str] = []  # backwards, within the clause
    while at and len(words) < _FEW_WORDS and not text[at].opens:
        at -= 1
        words.append(text[at].text)
    plain = list(itertools.dropwhile(lambda word: word not in ("be", "being") and word in LINKING_WORDS, words))
    if plain[:1] and plain[0] in POSSIBLY:
        return True
    following = [token.text for token in text[place + 1 : place + 3]]
    if following[:1] == ["or"] and following[1:] and following[1] in _SOME and text[place].kind == "word":
        return True
    if plain[:1] == ["being"]:
        return state
    if plain[:1] == ["be"]:
        return state or not {"may", "might", "could"}.isdisjoint(plain[1:4])
    return "might" in words[:4]


def _turns_away(text: Sequence[Token], i: int) -> bool:
    """Whether a word turns away from what follows it ("rather than", "anything but", "every plan but"), undenied."""
    if text[i].text not in TURNED_AWAY:
        return False
    begins = i
    while begins and i - begins < REACH and not text[begins].opens:
        begins -= 1
    before = [token.text for token in text[begins:i]]
    if not before or _DENYING.intersection(before[:-1]):
        return False
    every = text[i].text in ("but", "except") and not {"all", "every"}.isdisjoint(before[-2:])
    return every or before[-1] in TURNED_AWAY[text[i].text]


def _object(text: Sequence[Token], start: int, sought: Collection[tuple[str, str]]) -> Iterator[int]:
    """The places of what is sought if it comes directly after a verb, or after words that link it to the verb."""
    clause = clause_after(text, start)
    linked = itertools.dropwhile(lambda place: text[place].text in LINKING_WORDS, clause)
    return itertools.takewhile(lambda place: text[place].key in sought, linked)


def _claims(text: Sequence[Token], start: int, topic: Collection[tuple[str, str]]) -> bool:
    """Whether a clause is about the query's topic, or the answer."""
    return any(text[place].key in topic or text[place].text in ANSWERS for place in clause_after(text, start))


def _claim_after(text: Sequence[Token], start: int) -> range:
    """The clause from a place on, up to a conjunction."""
    clause = clause_after(text, start)
    ends = (place for place in clause if text[place].text in CONJUNCTIONS and text[place].text not in ("or", "so"))
    return range(start, next(ends, clause.stop))


def _replacement(
    answered: Sequence[Token],
    last: int,
    wanted: Sequence[Token],
    known: Collection[tuple[str, str]],
    topic: Collection[tuple[str, str]],
    named: Collection[str],
) -> str:
    """What the answer gives in place of the reference, whose last mention is at this place."""
    begins = last
    while begins and not answered[begins].opens:
        begins -= 1
    place = last + 1
    while place < len(answered):
        start = place
        place += 1
        if not (answered[start].opens or answered[start].text in CONTRASTS):
            continue
        first = start
        while first < len(answered) and (answered[first].text in LEADS or answered[first].key in topic):
            first += 1
        item = answered[first : _item_end(answered, first)]
        place = max(place, first)
        if 0 < len(item) <= SHORT and not any(token.negated or token.key in known for token in item):
            lead = {token.text for token in answered[start:first]}
            reported = any(token.text in REPORTS for token in answered[begins:start])
            if _replaces(item, lead, wanted, named, reported=reported):
                return " ".join(map(str, item))
    return ""


def _item_end(text: Sequence[Token], first: int) -> int:
    end = first
    while end < len(text) and (end == first or not text[end].opens) and text[end].text not in CONJUNCTIONS:
        end += 1
    while end > first and text[end - 1].text in TRAILS:
        end -= 1
    return end


def _replaces(
    item: Sequence[Token], lead: Collection[str], wanted: Sequence[Token], named: Collection[str], *, reported: bool
) -> bool:
    """Whether what follows these words is meant instead of the reference, which is perhaps only what others say."""
    if not reported and not {"was", "were"}.isdisjoint(lead):  # how it was before
        return False
    points = not (COPULAS | POINTERS).isdisjoint(lead)
    corrects = not CORRECTIONS.isdisjoint(lead)
    opposes = not CONTRASTS.isdisjoint(lead) and ("other" not in lead or reported)
    if any(token.kind in ("number", "code") for token in wanted):
        return (corrects or (opposes and (points or reported)) or (reported and points)) and all(
            token.kind == other.kind and token.fits(other) for token in item for other in wanted
        )
    if not all(token.kind == "word" and token.text not in STOP_WORDS for token in item):
        return False
    if reported and opposes and points:
        return True
    if named:
        capital = any(token.text in named for token in item)
        return capital and (corrects or (opposes and (points or reported)) or (reported and points))
    return corrects and not points and len(item) <= len(wanted)


def without_doubts(answered: Sequence[Token]) -> list[Token]:
    """The tokens without claims that the text does not make ("I don't know whether …")."""
    doubted = _doubted(answered, range(len(answered)), (), ())
    return [token for i, token in enumerate(answered) if i not in doubted]
