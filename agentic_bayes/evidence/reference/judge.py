"""The reference judge: compares answers with a reference by fixed rules, offline and deterministic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agentic_bayes.evidence.reference.answer_text import (
    Token,
    content,
    found_in,
    index_of,
    normalise,
    shared,
    tokens,
    with_initials,
)
from agentic_bayes.evidence.reference.dates import (
    has_date,
    parts,
    with_dates,
    with_months,
    with_parts,
)
from agentic_bayes.evidence.reference.finality import set_aside, unsure
from agentic_bayes.evidence.reference.hedging import (
    SHORT,
    alternatives,
    names,
    with_denials,
    without_hedges,
)
from agentic_bayes.evidence.reference.mentions import taken_back, without_doubts
from agentic_bayes.evidence.reference.phrases import REJECTIONS, reworded
from agentic_bayes.evidence.reference.readings import Terms, given_in_json, in_terms_of, left_to_say
from agentic_bayes.evidence.reference.vocabulary import (
    ASSENTS,
    CLAIMS,
    DENIALS,
    DOUBTS,
    FOREIGN_NO,
    FOREIGN_YES,
    NO_WORDS,
    POSSIBLY,
    PRONOUNS,
    SELDOM,
    STOP_WORDS,
    YES_WORDS,
)
from agentic_bayes.evidence.score import NO_REFERENCE, FailureKind, Score, Unscored, flawed, named_kinds
from agentic_bayes.formatting import cut_text, first_few
from agentic_bayes.records.model import Conversation

__all__ = ["ReferenceJudge"]

_VERBOSE = 0.9  # right, with further content
_COMPLETE = 0.7  # has every number; the words decide the rest up to _VERBOSE
_INCOMPLETE = 0.25  # times the share of numbers present
_CONTRADICTED = 0.1

# a letter that names something (option B, Plan A), which is no article, pronoun, unit or part of another sign (A-, C++)
_LETTERS = re.compile(
    r"(?<![\w'’&°-])(?<![\d°] )(?<!\w\.)"
    r"([B-HJ-Z]|(?<=\w )A(?! [A-Z][a-z])|A(?=\W*$|[\])}\"*.:,;!?]|\s(?:is|was|or|and|but|because|since|as|[A-Z])\b))"
    r"(?![\w'’&+#-]|\.\w)"
)
_SMALL_LETTERS = re.compile(r"(?<![\w'’&°-])(?<![\d°] )([a-hj-z])(?=[).:,;!?\"*]|\s*$)")
_NAME = "\u01b5"  # makes a word of a letter: a capital that nobody writes
_POSSIBLE_REACH = 4  # tokens after "might" that only may be so
_LONGEST_NAME = 40  # characters of a reference that may name something by a letter
_ONLY_LETTERS = re.compile(r"(?:\W|\b(?:[A-Z]|and|or|both|either|[Oo]ptions?|[Aa]nswers?|[Tt]he|is|are|[Mm]aybe)\b)*")

_CHOICE = re.compile(r"^\W*(?:the )?(?:option|answer|choice) (?=\(?[A-Z]\)?\W*$)", re.IGNORECASE)
# where versions are meant, 2.10 is not 2.1
_VERSIONED = re.compile(r"\b(?:versions?|releases?|v\d+\.\d+)\b", re.IGNORECASE)
_A_VERSION = re.compile(r"\b(?:version|release|v) ?\d+\.\d", re.IGNORECASE)
_DECIMAL = re.compile(r"\d\.\d")  # quick to look for
_VERSION = re.compile(r"(?<![\w.,$€£])[vV]?(?=\d+\.\d+\b)(?!\d+\.\d+[.,]\d)", re.ASCII)

# what an answer says that declines; it names the kind of a failure and never changes a score
_DECLINES = re.compile(
    r"\b(?:can't|cannot|can not|unable to|not able to|won't|will not) "
    r"(?:help|assist|answer|provide|share|comply|disclose|discuss|tell you|do (?:that|this|it)\b)"
    r"|\bi (?:must|have to) decline"
)


@dataclass(frozen=True)
class ReferenceJudge:
    """Scores an answer against ``ground_truth_assistant``, without a model.

    Notes
    -----
    Texts are compared as tokens: NFKC and case folding; words without a plural s; numbers by value
    (``1,234.5``, ``1 234.5``, ``1.234,5`` and ``1234.50`` are one number; a comma is a decimal comma only if it
    can be nothing else; ``seven`` is 7, ``one hundred and five`` 105, ``3rd`` 3; ``½`` and ``50/100`` are .5,
    ``10^3`` is 1000; if the reference has a number, ``twice`` is 2 and ``zwölf`` 12; where a version is meant,
    ``2.10`` is not ``2.1``)
    together with the unit before or after them (``18°C``, ``18 degrees Celsius``; ``$36``, ``36 dollars``; ``$2M``);
    dates, times and codes (``2024-05-03``, ``10:30``, ``ORD-1042``) as a whole, where ``May 3, 2024`` is 2024-05-03,
    ``14/03/2026`` and ``14.3.26`` are 2026-03-14 (but 03/04/2026 could be two dates and is neither), months are known
    in some other languages, too (``14. März 2026``, ``2026年3月14日``),
    ``9 am`` is 9:00 am, ``14:30`` 2:30 pm and ``2026-03-14T10:30:00Z`` a date and a time; names may lack their
    accents, and initials their points; British and American spellings are one; ``B-12`` is B12;
    a capital letter in a short reference names something ("Plan A", an option "B"), which the article "a" does not; a
    month next to a number counts as a code. Durations, metric units, feet and pounds are converted to the reference's
    unit; other different units do not match; a missing unit matches any, but a percentage is no bare number unless the
    query asks for a share. Of a JSON object only the field ``answer``, ``final_answer`` or ``final`` counts, if there
    is one. A token is negated if a negation comes directly before it in its clause
    ("not 42", "isn't equal to 42"; common negations of some other European languages and of Chinese are known), or if
    the answer calls it wrong ("42 is wrong", "the reference says 42, but that is incorrect"). The first rule that
    applies decides:

    1. no reference → `Unscored`; blank answer → 0; the same text or the same tokens → 1.
    2. The reference opens with yes or no (true, false): an answer with the other polarity → .1. If the reference is a
       bare yes or no, a sentence that affirms or negates the words of the query also answers it (→ .8); an answer
       without polarity → .1.
       An answer that says both yes and no → .1.
    3. The answer leaves a choice between alternatives of the reference's kind ("London or Paris", "41, 42, 43"), and
       does not say which → .1. It may list other things, or the same in another unit. Or it names a short reference (at
       most three words) only as what others say, what it was, what is doubtful, may be or will be, as a limit
       ("at least 5"), an end of a range or an aside ("Lyon, which replaced Paris"), or corrects itself ("Some say
       Paris, but it's London", "Paris, sorry, London"), or says that it does not know → .1.
    4. The answer contains the reference, token by token and with the same negations → .9, right but verbose.
    5. The answer directly negates what the reference affirms, or the reverse → .1.
    6. The reference has numbers or codes that are not in the query: if the answer lacks one → less than .25 (.25 × the
       share it has); if it has them all → .7 + .2 × word overlap. Other numbers in the answer are not an error.
    7. Otherwise .9 × word overlap.

    Word overlap is the share of the reference's content words outside the query (if none is left, of all its content
    words and numbers) that occur in the answer. In scripts without spaces, pairs of neighbouring characters serve as
    words.

    The rules see words, not meaning: a paraphrase scores low, and a sentence with the right number in a wrong role
    scores high. Use an LLM judge if that matters.
    """

    name = "reference_judge"
    identity = "reference-judge/4"

    def grade(self, conversation: Conversation, position: int) -> Score | Unscored:
        """Grade one interaction.

        Parameters
        ----------
        conversation, position : Conversation, int
            As for `Grader.grade`.
        """
        turn = conversation.conversation[position]
        reference, answer = turn.ground_truth_assistant, turn.assistant
        if reference is None or not reference.strip():
            return Unscored(NO_REFERENCE)
        if answer is None:
            return Unscored("no answer was recorded")
        if not answer.strip():
            return flawed(0.0, "The answer is blank.", "no answer")
        if reference == answer:
            return Score(1.0, "The answer is the reference.")
        answer = with_initials(answer if "{" in reference else given_in_json(answer))
        reference = with_initials(_CHOICE.sub("", reference))
        if any(map(_VERSIONED.search, (reference, turn.query))) or (
            _DECIMAL.search(answer) and _A_VERSION.search(answer)
        ):
            reference, answer = (_VERSION.sub(_NAME, text) for text in (reference, answer))
        if len(reference) <= _LONGEST_NAME and _LETTERS.search(reference):
            letters = set(_LETTERS.findall(answer))
            if len(letters) > 1 and all(map(_ONLY_LETTERS.fullmatch, (reference, answer))):
                listed = _listed(sorted(letters))
                return _lost(f"The answer leaves a choice between alternatives: {listed}.", "no clear answer")
            if not letters:
                answer = _SMALL_LETTERS.sub(lambda letter: letter[0].upper(), answer)
            reference, answer = (_LETTERS.sub(rf"{_NAME}\1", text) for text in (reference, answer))
        read = tokens(answer)
        terms = in_terms_of(reference, turn.query, read)
        read = terms.applied(read)
        expected, asked, answered = terms.expected, terms.asked, with_months(read)
        if not expected or not answered:
            return _compare_signs(normalise(reference), normalise(answer))
        if len(expected) == len(answered) and all(map(Token.says, expected, answered)):
            return Score(1.0, "The answer says the same as the reference.")
        if not any(token.text in DENIALS for token in (*expected, *asked)):
            if _opening(expected) is None and (plain := reworded(answer, REJECTIONS)) != answer:
                answered = with_months(terms.read(plain))
            answered = with_denials(answered)
        score = (
            _by_polarity(expected, answered, asked, answer)
            or _by_commitment(terms, reference, answer, read)
            or _by_containment(expected, answered)
            or _by_negation(expected, answered)
            or _by_numbers(expected, answered, asked)
            or _by_words(expected, answered, asked)
        )
        score = replace(score, reason=score.reason.replace(_NAME.casefold(), ""))
        if named_kinds(score.details) and _DECLINES.search(normalise(answer)):
            return flawed(score.value, score.reason, "refusal")
        return score


def _lost(reason: str, kind: FailureKind) -> Score:
    """The score of an answer that does not say what the reference says."""
    return flawed(_CONTRADICTED, reason, kind)


def _compare_signs(reference: str, answer: str) -> Score:
    """Texts without any word or digit (emoji, punctuation)."""
    reference, answer = "".join(reference.split()), "".join(answer.split())
    if reference == answer:
        return Score(1.0, "The answer is the reference.")
    if reference and reference in answer:
        return Score(_VERBOSE, "The answer contains the reference.")
    return flawed(0.0, "The answer does not contain the reference.", "missing fact")


def _opening(text: Sequence[Token]) -> bool | None:
    """True or False if the text opens with yes or no, else None."""
    if not text:
        return None
    first = text[0]
    if first.kind != "word":
        return None
    if first.text in FOREIGN_YES | FOREIGN_NO and (len(text) == 1 or text[1].opens):
        said = {token.text in FOREIGN_YES for token in text if token.text in FOREIGN_YES | FOREIGN_NO}
        return said.pop() if len(said) == 1 else None
    if first.text not in YES_WORDS | NO_WORDS:
        return None
    alone = len(text) == 1 or text[1].opens or text[1].text in PRONOUNS
    return first.text in YES_WORDS if alone else None


def _by_polarity(
    expected: Sequence[Token], answered: Sequence[Token], asked: Sequence[Token], answer: str
) -> Score | None:
    wanted = _opening(expected)
    if wanted is None:
        return None
    committed = without_hedges(answered)
    stated = _opening(committed)
    bare = len(expected) == 1
    if stated is None and (bare or len(committed) < len(answered)):
        stated = _stated(without_doubts(committed))
    word = "yes" if wanted else "no"
    if unsure(answer):
        return _lost(f"The reference says {word}, the answer that it does not know.", "no clear answer")
    if stated is None and len(committed) < len(answered):
        return _lost(f"The reference says {word}, the answer both yes and no.", "no clear answer")
    if stated is not None and stated != wanted:
        return _lost(f"The reference says {word}, the answer the opposite.", "contradiction")
    if not bare:
        return None
    if stated == wanted:
        return Score(_VERBOSE, f"The answer says {word}, as the reference does.")
    implied = _implied(answered, asked)
    if implied is None and _assents(answered):
        implied = True
    if implied == wanted:
        return Score(0.8, f"The answer implies {word}, as the reference says.")
    if implied is None:
        return _lost(f"The reference says {word}; the answer says neither yes nor no.", "no clear answer")
    return _lost(f"The reference says {word}, the answer implies the opposite.", "contradiction")


def _by_commitment(terms: Terms, reference: str, answer: str, read: Sequence[Token]) -> Score | None:
    expected, wanted, asked, reading = terms.dated, terms.wanted, terms.asked, terms.read
    dated = has_date(expected)
    if dated:
        reading, read = terms.read_with_dates, with_dates(read)
    sought = {token.key for token in wanted}
    texts = {token.text for token in wanted}
    mentions = [token for token in read if token.text in texts and token.key in sought]
    if not mentions:
        return None
    if dated and all(token.negated for token in mentions):
        return _lost("The answer negates the date of the reference.", "contradiction")
    named = names(answer) if names(reference).issuperset(texts) else frozenset()
    named = named if named.issuperset(texts) else frozenset()
    if offered := alternatives(expected, wanted, answer, read, reading, named):
        return _lost(f"The answer leaves a choice between alternatives: {_listed(offered)}.", "no clear answer")
    if taken := taken_back(expected, wanted, answer, read, asked, reading, named):
        return _lost(taken, "no clear answer")
    if len(sought) <= SHORT and not any(token.negated for token in expected):
        if unsure(answer) and DOUBTS.isdisjoint(token.text for token in expected) and not unsure(reference):
            return _lost("The answer names the reference, but says that it does not know.", "no clear answer")
        known = {token.key for token in (*expected, *asked)}
        if aside := set_aside(answer, reference, wanted, known, reading, named):
            return _lost(aside, "no clear answer")
    return None


def _stated(answered: Sequence[Token]) -> bool | None:
    """The polarity that a text states anywhere, if it states only one."""
    states: set[bool] = set()
    for i, token in enumerate(answered):
        after = answered[i + 1] if i + 1 < len(answered) else None
        ends = after is None or after.opens or [t.text for t in answered[i + 1 : i + 3]] == ["at", "all"]
        if token.text == "no":
            states |= {False} if _opening(answered[i : i + 2]) is False else set()
        elif i and answered[i - 1].text in POSSIBLY and not token.opens:
            continue
        elif token.kind == "word" and token.text in YES_WORDS | NO_WORDS:
            states.add((token.text in YES_WORDS) != token.negated)
        elif token.text in ("not", "never") and ends and (i == 0 or answered[i - 1].text not in ("or", "why")):
            states.add(False)
        elif token.text in CLAIMS and after is not None and after.text == "so":
            states.add(not token.negated)
    return states.pop() if len(states) == 1 else None


def _assents(answered: Sequence[Token]) -> bool:
    """Whether a text opens with "absolutely", "of course" or the like."""
    return answered[0].text in ASSENTS or [token.text for token in answered[:2]] == ["of", "course"]


def _implied(answered: Sequence[Token], asked: Sequence[Token]) -> bool | None:
    """False if the answer negates a word of the query, True if it repeats half of them without a negation."""
    topic = content(asked)
    keys = {token.key for token in topic}
    if any(token.negated for token in content(answered) if token.key in keys):
        return False
    if any(token.negated or token.text in SELDOM for token in content(answered)) or not topic:
        return None
    possible = (i for i, token in enumerate(answered) if token.text in POSSIBLY)
    if any(token.key in keys for i in possible for token in answered[i : i + _POSSIBLE_REACH]):
        return None
    return True if shared(topic, content(answered)) >= 0.5 else None


def _by_containment(expected: Sequence[Token], answered: Sequence[Token]) -> Score | None:
    """A score if the answer contains the reference as a run of tokens (searched as text, one character per token)."""
    codes: dict[tuple[str, str], int] = {}
    for token in expected:
        codes.setdefault(token.key, min(len(codes) + 1, 0x10FFFF))
    needle = "".join(chr(codes[token.key]) for token in expected)
    texts = {token.text for token in expected}
    hay = "".join([chr(codes.get(token.key, 0)) if token.text in texts else "\0" for token in answered])
    start = hay.find(needle)
    while start >= 0:
        run = answered[start : start + len(expected)]
        if all(a.negated == b.negated and a.fits(b) for a, b in zip(expected, run, strict=True)):
            return Score(_VERBOSE, "The answer contains the reference.")
        start = hay.find(needle, start + len(expected))
    return None


def _by_negation(expected: Sequence[Token], answered: Sequence[Token]) -> Score | None:
    index = index_of(answered, expected)
    affirmed: list[str] = []
    denied: list[str] = []
    for token in expected:
        signs = {other.negated for other in index.get(token.key, ())}
        carries = token.kind != "word" or token.text not in STOP_WORDS
        if carries and len(signs) == 1 and token.negated not in signs:
            (denied if token.negated else affirmed).append(str(token))
    if bool(affirmed) == bool(denied):  # none, or the negation has moved to another word
        return None
    if affirmed:
        return _lost(f"The answer negates what the reference affirms ({_listed(affirmed)}).", "contradiction")
    return _lost(f"The answer affirms what the reference negates ({_listed(denied)}).", "contradiction")


def _by_numbers(expected: Sequence[Token], answered: Sequence[Token], asked: Sequence[Token]) -> Score | None:
    in_query = index_of(asked)
    required = {
        (token.key, token.units): token
        for token in expected
        if token.kind in ("number", "code") and not found_in(token, in_query.get(token.key, ()))
    }
    if not required:
        return None
    in_answer = index_of(with_parts(token for token in answered if token.kind != "word" or token.text == "one"))
    # what the answer both denies and says, it says in what it does not deny (42 miles, not 42 km)
    said = {key: {other for other in others if not other.negated} or others for key, others in in_answer.items()}
    missing = [token for token in required.values() if not _given(token, said)]
    if missing:
        share = 1 - len(missing) / len(required)
        alike = sorted(str(other) for token in missing for other in in_answer.get(token.key, ()))
        known = in_query.keys() | {key for key, _ in required} | {piece.key for piece in with_parts(expected)}
        others = [token for token in answered if token.kind in ("number", "code") and token.key not in known]
        units = {token.units for token in missing}
        instead = alike or [str(token) for token in others if token.units in units] or list(map(str, others))
        if instead:
            said_instead = _listed(dict.fromkeys(instead))
            reason = f"Expected {_listed(map(str, missing))}; the answer says {said_instead}."
            return flawed(_INCOMPLETE * share, reason, "wrong number")
        return flawed(_INCOMPLETE * share, f"Missing from the answer: {_listed(map(str, missing))}.", "missing fact")
    others = left_to_say(expected, asked, numbers=False)
    words = shared(others, content(answered))
    also = f", and {words:.0%} of its key words" if others else ""
    kinds: list[FailureKind] = ["missing fact"] if words < 1 else []
    said_all = f"Every number of the reference is in the answer{also}."
    return flawed(_COMPLETE + (_VERBOSE - _COMPLETE) * words, said_all, *kinds)


def _given(token: Token, answer: dict[tuple[str, str], set[Token]]) -> bool:
    if found_in(token, answer.get(token.key, ())):
        return True
    if token.key == ("number", "1") and ("word", "one") in answer:  # here "one" can only be the number
        return True
    pieces = parts(token)
    return bool(pieces) and all(found_in(piece, answer.get(piece.key, ())) for piece in pieces)


def _by_words(expected: Sequence[Token], answered: Sequence[Token], asked: Sequence[Token]) -> Score:
    wanted = left_to_say(expected, asked, numbers=False) or left_to_say(expected, (), numbers=True) or list(expected)
    searched = content(answered) if wanted != list(expected) else answered
    words = shared(wanted, searched)
    index = index_of(searched, wanted)
    lost = [str(token) for token in wanted if not found_in(token, index.get(token.key, ()))]
    missing = f"; missing: {_listed(dict.fromkeys(lost))}" if lost else ""
    kinds: list[FailureKind] = ["missing fact"] if lost else []
    return flawed(_VERBOSE * words, f"{words:.0%} of the reference's key words are in the answer{missing}.", *kinds)


def _listed(names: Iterable[str]) -> str:
    return first_few([cut_text(name, 40) for name in names], 8)
