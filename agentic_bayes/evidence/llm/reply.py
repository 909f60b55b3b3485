"""Reads a judge's reply: finds its one verdict, or says why there is none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentic_bayes.errors import ReplyError
from agentic_bayes.evidence.score import Score
from agentic_bayes.records.base import is_share, short
from agentic_bayes.records.wire.strict_json import too_deep, values_at
from agentic_bayes.records.wire.thoughts import split_thoughts

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

_OBJECT = re.compile(r'\{(?=\s*")')  # an object with a key
# a judge may think in more tags than those that are no part of an agent's answer
_THINKING = re.compile(
    r"(?:<\|?|&lt;|\uff1c) ?(/?) ?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|analysis|draft|scratchpad"
    r"|deliberation|rationale|notes) ?(?:\|?>|&gt;|\uff1e)",
    re.IGNORECASE,
)
_UNCLOSED = re.compile(r"<(?:think|thinking|thought|reasoning)\s*>", re.IGNORECASE)
# after so many unreadable objects, or so much text read for them, we give up on a reply
_MAX_BROKEN, _MAX_REREAD = 1_000, 50  # … objects, times the length of the text
_LEAST_REREAD = 5_000_000  # characters
_NESTED_COST = 1_000_000  # characters; giving up on one takes 12 ms where PyMC has raised the limit of recursion
_MOST_VERDICTS = 50  # different ones, in one reply
# what stands for the reasoning where a reply shows the form instead of filling it in
_PLACEHOLDERS = frozenset(
    {"text", "string", "str", "reasoning", "reason", "explanation", "your reasoning", "your reasoning here"}
    | {
        "reasoning here",
        "your explanation",
        "your text here",
        "what is right and what is wrong or missing",
        "...",
        "\u2026",
    }
    | {"text: what is right, what is wrong or missing, in one to three sentences"}
    | {"what is right, what is wrong or missing", "a text", "some text", "placeholder", "your reasoning goes here"}
)
_BLANK_TO_FILL = re.compile(r"<\w+( \w+)+>")  # <one to three sentences>
_LENGTH = 120
_CODE = re.compile(r"`[^`\n]*`")
_MARK = "\x00"  # stands around the number of an object that was taken out of a text
_NUMBERS = re.compile("\x00([0-9]+)\x00")


def read_text(text: str, judged: Sequence[str], examples: Sequence[object] = ()) -> Score:
    """The verdict in a reply in text; one of the prompt's examples is the verdict only if it is the only one."""
    by_source = {
        source: list(_verdicts(value)) for source, value in objects_in(text) if SCORE in source or "\\" in source
    }
    by_source = {source: verdicts for source, verdicts in by_source.items() if verdicts}
    if len(by_source) > _MOST_VERDICTS:
        raise ReplyError(f"expected one verdict, got {len(by_source)}: {short(text, _LENGTH)}")
    verdicts = [
        verdict
        for source, found in by_source.items()
        if not any(source in material for material in judged)
        for verdict in found
    ]
    if not verdicts:
        hint = "there is no complete one outside the quotations" if SCORE in text else "there is none"
        raise ReplyError(f"expected one JSON object with {REASONING!r} and {SCORE!r}, {hint}: {short(text, _LENGTH)}")
    return read_objects(verdicts, judged, examples)


def read_objects(objects: Sequence[object], judged: Sequence[str], examples: Sequence[object] = ()) -> Score:
    """The one verdict among objects that should all be verdicts."""
    filled = [item for item in objects if not _is_form(item)]
    if objects and not filled:
        raise ReplyError("the only verdict is the form of the reply, not filled in")
    quoted = {
        _content(verdict)
        for material in judged
        if SCORE in material or "\\u" in material
        for _, value in objects_in(material, is_reply=False)
        for verdict in _verdicts(value)
    }
    scores = [_score(item) for item in filled if _content(item) is None or _content(item) not in quoted]
    if not scores:
        raise ReplyError("the only verdict is a quotation of the text under judgement")
    shown = {_content(example) for example in examples}
    scores = [score for score in scores if (score.reason, score.value) not in shown] or scores
    if len({score.value for score in scores}) > 1:
        values = ", ".join(str(score.value) for score in scores)
        raise ReplyError(f"expected one verdict, got several that disagree: {values}")
    return scores[-1]


def _is_form(item: object) -> bool:
    """Whether this is the form that the prompt describes, with a placeholder as its reasoning."""
    reasoning = item.get(REASONING) if isinstance(item, Mapping) else None
    if isinstance(reasoning, Mapping) and "type" in reasoning:  # the schema of the reply
        return True
    if not isinstance(reasoning, str) or len(reasoning) > _LENGTH or not reasoning:
        return False
    plain = reasoning.strip().casefold()
    bare = plain.strip("<>[]{}()\"'").strip()
    named = plain in _PLACEHOLDERS or bare.rstrip(".\u2026 ") in _PLACEHOLDERS
    return bool(bare) and (named or _BLANK_TO_FILL.fullmatch(plain) is not None)


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
    """Complete outermost JSON objects; in a reply only those outside of thoughts."""
    found: list[tuple[str, Any]] = []
    gaps: list[str] = []  # the text between the objects
    value_at = values_at(finite=False)
    broken = reread = position = end = 0
    while mark := _OBJECT.search(text, position):
        start, position = mark.span()
        try:
            value, after, fault = value_at(text, start)
            if too_deep(value):  # whatever the interpreter's limit is, which PyMC raises
                fault = "nested too deeply"
                reread += after - start
        except json.JSONDecodeError as error:
            fault = str(error)
            reread += (len(text) if error.msg.startswith("Unterminated") else error.pos) - start
        except ValueError as error:
            fault = str(error)
            reread += _NESTED_COST
        if fault:
            broken += 1
        else:
            gaps.append(text[end:start])
            position = end = after
            found.append((text[start:after], value))
        if broken > _MAX_BROKEN or reread > max(_LEAST_REREAD, _MAX_REREAD * len(text)):
            if is_reply:
                raise ReplyError(f"too many unreadable JSON objects ({broken}): {short(text, _LENGTH)}")
            break
    if not is_reply or not found:
        return found
    # objects may speak of thoughts, so these are looked for between them
    marked = [f"{gap.replace(_MARK, '')}{_MARK}{number}{_MARK}" for number, gap in enumerate(gaps)]
    said = split_thoughts(_THINKING.sub(r"<\1think>", "".join([*marked, text[end:].replace(_MARK, "")]))).said
    if unclosed := _UNCLOSED.search(_CODE.sub(lambda code: " " * len(code[0]), said)):
        said = said[: unclosed.start()]  # a thought that never ends hides the rest
    return [found[int(number)] for number in _NUMBERS.findall(said)]


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
