"""Reads a judge's reply: finds its one verdict, or says why there is none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentic_bayes.errors import ReplyError
from agentic_bayes.evidence.score import Score
from agentic_bayes.records.base import is_share, short
from agentic_bayes.records.wire.strict_json import json_at

REASONING = "reasoning"
SCORE = "correctness_score"

# reasoning comes first, so that the model writes the score in view of it; the range is given in words because not
# every provider accepts "minimum" and "maximum" in a schema
REPLY_SCHEMA: Mapping[str, Any] = {
    "title": "verdict",
    "description": "The verdict on one answer.",
    "type": "object",
    "properties": {
        REASONING: {"type": "string", "description": "What is right and what is wrong or missing."},
        SCORE: {"type": "number", "description": "A number from 0 to 1 that follows from the reasoning."},
    },
    "required": [REASONING, SCORE],
    "additionalProperties": False,
}

# an object with a key, or a mark of a model that thinks aloud
_MARK = re.compile(r'\{(?=\s*")|<(/?)think(?:ing)?\s*>', re.IGNORECASE)
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?\s*>", re.IGNORECASE)
# unreadable objects after which we give up on a reply: each takes time proportional to the length of the text
_MAX_BROKEN = 50
_LENGTH = 120


def read_text(text: str, judged: Sequence[str]) -> Score:
    """The verdict in a reply in text."""
    verdicts = [
        verdict
        for source, value in objects_in(text)
        if not any(source in material for material in judged)
        for verdict in _verdicts(value)
    ]
    if not verdicts:
        hint = "there is no complete one outside the quotations" if SCORE in text else "there is none"
        raise ReplyError(f"expected one JSON object with {REASONING!r} and {SCORE!r}, {hint}: {short(text, _LENGTH)}")
    return read_objects(verdicts, judged)


def read_objects(objects: Sequence[object], judged: Sequence[str]) -> Score:
    """The one verdict among objects that should all be verdicts."""
    quoted = {
        _content(verdict)
        for material in judged
        for _, value in objects_in(material, is_reply=False)
        for verdict in _verdicts(value)
    }
    scores = [_score(item) for item in objects if _content(item) is None or _content(item) not in quoted]
    if not scores:
        raise ReplyError("the only verdict is a quotation of the text under judgement")
    if len({score.value for score in scores}) > 1:
        values = ", ".join(str(score.value) for score in scores)
        raise ReplyError(f"expected one verdict, got several that disagree: {values}")
    return scores[-1]


def message_text(content: object) -> str:
    """The text of a chat message, whose content is text or a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, (list, tuple)) else []
    texts = (
        block.get("text") if isinstance(block, Mapping) and block.get("type") == "text" else block for block in blocks
    )
    return "".join(text for text in texts if isinstance(text, str))


def objects_in(text: str, *, is_reply: bool = True) -> list[tuple[str, Any]]:
    """Complete outermost JSON objects."""
    found: list[tuple[str, Any]] = []
    broken = position = 0
    while mark := _MARK.search(text, position):
        position = mark.end()
        if mark[0] == "{":
            try:
                value, after, fault = json_at(text, mark.start(), finite=False)
            except ValueError as error:
                fault = str(error)
            if fault:
                broken += 1
            else:
                position = after
                found.append((text[mark.start() : after], value))
        elif not is_reply:
            continue
        elif mark[1]:
            found.clear()  # the thought began before the reply did
        elif end := _THOUGHT_ENDS.search(text, position):
            position = end.end()
        else:
            break  # a thought that never ends hides the rest
        if broken > _MAX_BROKEN:
            if is_reply:
                raise ReplyError(f"more than {_MAX_BROKEN} unreadable JSON objects: {short(text, _LENGTH)}")
            break
    return found


def _verdicts(value: object) -> Iterator[dict[str, Any]]:
    """Objects with both keys, at any depth of a value."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if REASONING in item and SCORE in item:
                yield item
            else:
                waiting.extend(reversed(item.values()))
        elif isinstance(item, list):
            waiting.extend(reversed(item))


def _content(item: object) -> tuple[str, float] | None:
    """The content of a verdict without its spacing; None if it is not a verdict."""
    match item:
        case {"reasoning": str(reasoning), "correctness_score": int(value) | float(value)} if 0 <= value <= 1:
            return reasoning, float(value)
    return None


def _score(item: object) -> Score:
    if not isinstance(item, Mapping):
        raise ReplyError(f"expected an object with {REASONING!r} and {SCORE!r}, got {short(item)}")
    for key in (REASONING, SCORE):
        if key not in item:
            raise ReplyError(f"the verdict has no {key!r}: {short(dict(item))}")
    reasoning, value = item[REASONING], item[SCORE]
    if not isinstance(reasoning, str):
        raise ReplyError(f"{REASONING} must be text, got {short(reasoning)}")
    if not is_share(value):
        raise ReplyError(f"{SCORE} must be a number in [0, 1], got {short(value)}")
    return Score(value + 0.0, reasoning)  # no negative zero
