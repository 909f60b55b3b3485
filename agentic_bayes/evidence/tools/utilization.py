"""Measures whether the answer uses the results of the tool calls."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from agentic_bayes.evidence.reference.answer_text import Token, content, found_in, index_of, shared, tokens
from agentic_bayes.evidence.reference.numerals import plain_number
from agentic_bayes.evidence.reference.vocabulary import STATUS_WORDS, UNITS
from agentic_bayes.records.model import ToolCall

# text with more content tokens is prose, of which an answer quotes only a part
_PROSE = 6
_DECIMALS = 6


def answer_uses_results(query: str, answer: str | None, made: Sequence[ToolCall]) -> bool | None:
    """Whether at least one informative value of the recorded results occurs in the answer; None if there is none.

    The values are the numbers and texts in the results, at any depth (text that is JSON is read). A value is
    informative unless it is blank, a boolean, a bare status ("ok"), or already in the query, since an
    answer may repeat the query without looking at any result. One value is enough: an answer need not
    mention intermediate results, nor all of a long record.

    A number occurs if the answer has it, rounded perhaps (to at least two digits) or as a percentage. A
    short text occurs if all its content words do; a longer one if one of its numbers or codes does, or half
    of the content words of the shorter of text and answer.
    """
    if answer is None:
        return None
    in_query = index_of(tokens(query))
    answer_tokens = tokens(answer)
    numbers = {token.text for token in answer_tokens if token.kind == "number"}
    percentages = {token.text for token in answer_tokens if token.kind == "number" and token.units == UNITS["percent"]}
    index = index_of([*answer_tokens, *content(answer_tokens)])
    own_content = [token for token in content(answer_tokens) if not found_in(token, in_query.get(token.key, ()))]
    informative = False
    for value in _values([call.result for call in made if call.has_result]):
        if isinstance(value, Decimal):
            number = Token("number", plain_number(f"{value:f}"))
            if number.key in in_query:
                continue
            informative = True
            if _occurs(value, numbers) or _occurs(value * 100, percentages):
                return True
            continue
        new = [token for token in content(tokens(value)) if not found_in(token, in_query.get(token.key, ()))]
        if not new or (len(new) == 1 and new[0].text in STATUS_WORDS):
            continue
        informative = True
        present = [token for token in new if found_in(token, index.get(token.key, ()))]
        if len(present) == len(new):
            return True
        if len(new) > _PROSE and (
            any(token.kind in ("number", "code") for token in present)
            or shared(own_content or answer_tokens, new) >= 0.5
        ):
            return True
    return False if informative else None


def _values(results: object) -> Iterator[Decimal | str]:
    """The numbers and texts in the results, at any depth."""
    waiting = [results]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            parsed = _parsed(value)
            if parsed is None:
                yield value
            else:
                waiting.append(parsed)
        elif isinstance(value, bool):
            continue
        elif isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
            # the last digits of a float are noise (.1 + .2)
            yield Decimal(value) if isinstance(value, int) else Decimal(f"{value:.15g}")
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, (list, tuple)):
            waiting.extend(value)


def _parsed(text: str) -> object:
    """The content of a text that is a JSON object or array, else None."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _occurs(value: Decimal, numbers: set[str]) -> bool:
    if not numbers:
        return False
    exact = plain_number(f"{value:f}")
    if exact in numbers:
        return True
    for decimals in range(_DECIMALS + 1):
        try:
            rounded = plain_number(f"{round(value, decimals):f}")
        except InvalidOperation:  # more digits than decimal arithmetic keeps
            return False
        if rounded in numbers and sum(character.isdigit() for character in rounded.lstrip("-0.")) >= 2:
            return True
    return False
