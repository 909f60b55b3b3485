"""Separates thoughts that a model wrote into its answer, in every common spelling, from what it said."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import NamedTuple

REASONING = "reasoning"
"""Key in a turn's metadata: the agent's thoughts, in order."""

# names of tags around thoughts: <think>…</think>, [THINK]…[/THINK], ◁think▷…◁/think▷
_NAME = (
    r"(?:(?:ant|seed|mm|longcat)[:_]?)?(?:think|thinking|thought|thoughts)|reasoning|chain_of_thought"
    r"|inner_monologue|scratchpad"
)
# (opening, closing) of each spelling; an attribute may follow a name
_SPELLINGS = (
    (rf"<(?:{_NAME})(?:\s[^<>]{{0,100}})?>", rf"</(?:{_NAME})\s*>"),
    (r"◁(?:think|thinking)▷", r"◁/(?:think|thinking)▷"),  # Kimi
    (r"\[(?:THINK|THINKING)\]", r"\[/(?:THINK|THINKING)\]"),  # Magistral
    (r"<\|(?:begin_of_thought|START_THINKING)\|>", r"<\|(?:end_of_thought|END_THINKING)\|>"),  # Sky-T1, Command A
    (r"<unused94>", r"<unused95>"),  # MedGemma
)
_TAG = re.compile("|".join(f"(?P<o{n}>{a})|(?P<c{n}>{b})" for n, (a, b) in enumerate(_SPELLINGS)), re.IGNORECASE)
# a text without any of these has no tag
_HINT = re.compile(r"think|thought|reasoning|monologue|scratchpad|<unused9|<\|channel\|>", re.IGNORECASE)
# marks around an answer after thoughts, which are no part of it
_ANSWER_MARKS = re.compile(r"<\|(?:begin_of_solution|end_of_solution|START_RESPONSE|END_RESPONSE)\|>")
# gpt-oss: "analysis", "commentary" and "final" begin with such a header, and only "final" is the answer
_CHANNEL = re.compile(r"(?:<\|start\|>assistant)?<\|channel\|>(\w{1,20})[^<]{0,100}<\|message\|>")
_CHANNEL_ENDS = re.compile(r"<\|(?:end|return|call)\|>\s*$")
# tags in code are mentions of them
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


class Split(NamedTuple):
    """A text of a model without its thoughts, and the thoughts."""

    said: str
    thoughts: tuple[str, ...]


class _Tag(NamedTuple):
    """A tag in a text."""

    start: int
    end: int
    spelling: int
    opens: bool

    def closes(self, other: _Tag) -> bool:
        """Whether this can be the end of what the other one begins."""
        return not self.opens and self.spelling == other.spelling


def split_thoughts(text: str) -> Split:
    """Tell what a model said from thoughts that it wrote into the same text.

    Thoughts are whatever stands in a pair of tags; what follows an opening tag at the very start that is never closed
    (the model ran out of tokens); and what comes before a closing tag that was never opened (templates like DeepSeek's
    open it in the prompt). Tags quoted as code are mentions, unless the text begins with one.
    """
    if not any(mark in text for mark in "<[◁") or not _HINT.search(text):
        return Split(text, ())
    if channels := list(_CHANNEL.finditer(text)):
        return _by_channel(text, channels)
    tags = _tags(text)
    closings = _closings(tags)
    thoughts: list[str] = []
    pieces: list[str] = []
    place = number = 0  # everything before `place` is sorted
    while number < len(tags):
        tag = tags[number]
        if not tag.opens:  # opened in the prompt
            thoughts.append("".join([*pieces, text[place : tag.start]]))
            pieces.clear()
            place, number = tag.end, number + 1
            continue
        begins = not text[: tag.start].strip() if number == 0 else bool(thoughts)
        closing = closings.get(number)
        if closing is None and begins:
            closing = next((n for n in range(len(tags) - 1, number, -1) if tags[n].closes(tag)), len(tags))
        if closing is None:
            number += 1  # a mention
            continue
        pieces.append(text[place : tag.start])
        end = tags[closing].start if closing < len(tags) else len(text)
        thoughts.append(text[tag.end : end])
        place = tags[closing].end if closing < len(tags) else end
        number = closing + 1
    if not thoughts:
        return Split(text, ())
    return _split([*pieces, text[place:]], thoughts)


def _split(pieces: list[str], thoughts: list[str]) -> Split:
    said = _ANSWER_MARKS.sub("", "".join(pieces)).strip()
    return Split(said, tuple(thought.strip() for thought in thoughts if thought.strip()))


def _by_channel(text: str, channels: list[re.Match[str]]) -> Split:
    pieces = [text[: channels[0].start()]]
    thoughts: list[str] = []
    for channel, following in zip_longest(channels, channels[1:]):
        content = text[channel.end() : following.start() if following else None]
        (pieces if channel[1] == "final" else thoughts).append(_CHANNEL_ENDS.sub("", content))
    return _split(pieces, thoughts)


def _tags(text: str) -> list[_Tag]:
    """The tags in a text; those in code do not count, unless the text begins with a tag that they close."""
    code = [match.span() for match in _CODE.finditer(text)] if "`" in text else []
    found: list[_Tag] = []
    position = 0
    begins = False
    for match in _TAG.finditer(text):
        group = match.lastgroup or ""
        tag = _Tag(*match.span(), int(group[1:]), group[0] == "o")
        while position < len(code) and code[position][1] <= tag.start:
            position += 1
        quoted = position < len(code) and code[position][0] <= tag.start
        if not quoted:
            begins = begins or (not found and tag.opens and not text[: tag.start].strip())
            found.append(tag)
        elif begins and tag.closes(found[0]):
            found.append(tag)
    return found


def _closings(tags: list[_Tag]) -> dict[int, int]:
    """Which tag closes which, by their positions."""
    opened: dict[int, list[int]] = {}
    found = {}
    for position, tag in enumerate(tags):
        waiting = opened.setdefault(tag.spelling, [])
        if tag.opens:
            waiting.append(position)
        elif waiting:
            found[waiting.pop()] = position
    return found
