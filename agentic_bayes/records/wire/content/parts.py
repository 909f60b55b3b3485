"""The content of a message: text, or parts, some of which may be calls or results."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.wire.fields import Fields

Doubt = Callable[[tuple[str | int, ...], str], None]

TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
THOUGHTS = frozenset({"reasoning", "reasoning_content", "reasoning_text", "thinking", "redacted_thinking"})
# kinds of part that hold no text, with the mark that stands for them; two names for the same kind get the same mark
MARKS = {
    **dict.fromkeys(("image", "image_url", "input_image", "computer_screenshot"), "image"),
    **dict.fromkeys(("file", "input_file", "file_url"), "file"),
    **dict.fromkeys(("audio", "input_audio", "audio_url"), "audio"),
    **dict.fromkeys(("video", "video_url", "input_video"), "video"),
    "document": "document",
    "search_result": "search_result",
    "refusal": "refusal",
}
# a part of an unknown kind with such a name may be a call or its result: without it the record would be wrong
_MAY_ACT = re.compile(r"tool|call|function|result|response|output", re.IGNORECASE)


def content_text(
    message: Fields, key: str, *, skipped: Collection[str] = (), required: bool = False, doubt: Doubt | None = None
) -> str:
    """The text of a message's content: text, null or a list of parts, of which those that are no text leave a mark."""
    if not isinstance(message.raw(key), list):
        return message.text(key, required=required) or ""
    pieces: list[str] = []
    goes_on = False
    for position, part in enumerate(message.sequence(key)):
        if isinstance(part, str):
            text, is_text = part, True
        else:
            fields = Fields(part, (*message.path, key, position), message.faults)
            kind = fields.name("type", required=True) or ""
            if kind in THOUGHTS or kind in skipped:
                continue
            is_text = kind in TEXT_PARTS or kind == "refusal"
            said = fields.text("refusal" if kind == "refusal" else "text", required=True) if is_text else None
            text = said or "" if is_text else f"[{MARKS.get(kind, kind)}]"
            if kind and not is_text and kind not in MARKS:
                unknown_part(fields, kind, doubt)
        # consecutive text parts are one text
        if is_text and goes_on:
            pieces[-1] += text
        else:
            pieces.append(text)
        goes_on = is_text
    return "\n".join(pieces)


def part_kinds(content: Any) -> list[str]:
    """The types of the parts of a message's content."""
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return [kind for kind in (part.get("type") for part in parts) if isinstance(kind, str)]


def unknown_part(part: Fields, kind: str, doubt: Doubt | None) -> None:
    """Refuse a part of an unknown kind if it may be a call or a result; else say what became of it."""
    if _MAY_ACT.search(kind):
        part.faults.add(part.path, f"may be a call or a result, but parts of the type {short(kind)} are not known here")
    elif doubt is not None:
        doubt(part.path, f"parts of the unknown type {short(kind)} were read as [{kind[:40]}]")


def thoughts_in(message: Fields) -> list[str]:
    """The thoughts among the parts of a message's content; redacted ones have no text."""
    found: list[str] = []
    content = message.raw("content")
    for position, part in enumerate(content if isinstance(content, list) else ()):
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind in THOUGHTS:
            found += thought_texts(Fields(part, (*message.path, "content", position), message.faults))
    return found


def thought_texts(part: Fields) -> list[str]:
    """The texts of one thought: under any of the names in use, or a list of summaries."""
    for key in ("thinking", "reasoning", "reasoning_content", "text", "summary", "content"):
        value = part.raw(key)
        if isinstance(value, str) and value.strip():
            return [value]
        if isinstance(value, list) and value:
            texts = [one if isinstance(one, str) else one.get("text") for one in value if isinstance(one, (str, dict))]
            return [text for text in texts if isinstance(text, str) and text.strip()]
    return []
