"""One interaction as a record to be read by a model, cut to a budget where it is too long."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentic_bayes.records.model import Conversation, Interaction, ToolCall

__all__ = ["available_tools", "trace_text"]

_LONGEST, _SHORTEST = 1 << 20, 120  # of one text, in characters
_ERROR_WORDS = ("error", "exception", "traceback", "failed", "denied")


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of a record.

    Attributes
    ----------
    head : str
        What it is; always kept.
    text : str
        What it says; may be shortened.
    kept : bool
        Whether the piece may not be left out: the query, the answer, errors, the first and the last call.
    kind : str
        Under what it is counted where it is left out.
    """

    head: str
    text: str
    kept: bool = False
    kind: str = ""


def trace_text(conversation: Conversation, position: int, *, budget: int) -> str:
    """The record of one interaction.

    Parameters
    ----------
    conversation : Conversation
        The conversation.
    position : int
        Index of the interaction.
    budget : int
        Characters, at most (but for the heads of what is always kept).

    Returns
    -------
    str
        The agent's role and context, the tools it could use, the query, every call with its result, errors, and the
        answer. Over budget, long texts lose their middle first, all down to the same length; if that is not enough,
        calls in the middle without an error are left out, and counted by tool. What was cut is said where it was.
    """
    parts = list(_parts(conversation, conversation.conversation[position]))
    if len(text := _joined(parts, _LONGEST)) <= budget:
        return text
    low, high = _SHORTEST, budget
    while high - low > 1:  # the longest texts for which all of it fits
        middle = (low + high) // 2
        low, high = (middle, high) if len(_joined(parts, middle)) <= budget else (low, middle)
    text = _joined(parts, low)
    return text if len(text) <= budget else _joined(_without_middle(parts, budget), _SHORTEST)


def available_tools(conversation: Conversation, turn: Interaction) -> list[dict[str, Any]]:
    """The tools that the agent could use, where the record says so: ``metadata["available_tools"]``.

    Parameters
    ----------
    conversation : Conversation
        Its metadata, and
    turn : Interaction
        that of the turn, which goes first.

    Returns
    -------
    list of dict
        ``name`` and ``description``.
    """
    given = turn.metadata.get("available_tools", conversation.metadata.get("available_tools"))
    found = []
    for tool in given if isinstance(given, (list, tuple)) else ():
        inner = tool.get("function", tool) if isinstance(tool, dict) else {"name": tool}
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            found.append({"name": inner["name"], "description": str(inner.get("description") or "")})
    return found


def _parts(conversation: Conversation, turn: Interaction) -> Sequence[_Part]:
    parts = []
    if conversation.chatbot_role:
        parts.append(_Part("Role of the agent", conversation.chatbot_role))
    if conversation.context:
        parts.append(_Part("What the agent was told", conversation.context))
    if tools := available_tools(conversation, turn):
        lines = "\n".join(f"- {tool['name']}: {tool['description']}" for tool in tools)
        parts.append(_Part("Tools that the agent could use", lines))
    spoken = turn.metadata.get("dialogue")
    parts.append(_Part("The user's request", turn.query, kept=True))
    if isinstance(spoken, list):
        parts += [
            _Part(f"{said.get('role', '?')} said", str(said.get("text", "")), kind="messages")
            for said in spoken
            if isinstance(said, dict)
        ]
    for name, title in (("reasoning", "The agent's thoughts"), ("before_calls", "The agent said before its calls")):
        if said := turn.metadata.get(name):
            parts.append(_Part(title, said if isinstance(said, str) else "\n".join(map(str, said)), kept=True))
    if turn.agentic is not None:
        calls = turn.agentic.tools_used
        if not calls:
            parts.append(_Part("No tool was called", "", kept=True))
        for place, call in enumerate(calls):
            ends = place in (0, len(calls) - 1)
            parts.append(_call(place, call, kept=ends or _is_error(call)))
    if turn.error is not None:
        parts.append(_Part("Error", turn.error, kept=True))
    if turn.assistant is not None:
        parts.append(_Part("The agent's answer", turn.assistant, kept=True))
    return parts


def _call(place: int, call: ToolCall, *, kept: bool) -> _Part:
    arguments = _json(call.parameters)
    result = f"\n→ {call.result if isinstance(call.result, str) else _json(call.result)}" if call.has_result else ""
    return _Part(f"Tool call {place + 1}: {call.tool_name}", f"{arguments}{result}", kept, call.tool_name)


def _is_error(call: ToolCall) -> bool:
    text = (call.result if isinstance(call.result, str) else _json(call.result))[:200].lower()
    return call.has_result and any(word in text for word in _ERROR_WORDS)


def _without_middle(parts: Sequence[_Part], budget: int) -> list[_Part]:
    """The parts that must be kept, and of the others those from the ends for which there is room."""
    room = budget - len(_joined([part for part in parts if part.kept], _SHORTEST))
    others = [place for place, part in enumerate(parts) if not part.kept]
    # from both ends inwards
    inwards = [place for pair in zip(others, reversed(others), strict=True) for place in pair]
    taken = {place for place, part in enumerate(parts) if part.kept}
    for place in dict.fromkeys(inwards):
        room -= len(_joined([parts[place]], _SHORTEST)) + 2
        if room < 100:
            break
        taken.add(place)
    found: list[_Part] = []
    left_out: Counter[str] = Counter()
    for place, part in enumerate(parts):
        if place not in taken:
            left_out[part.kind or part.head] += 1
            continue
        found += _said(left_out)
        left_out.clear()
        found.append(part)
    return [*found, *_said(left_out)]


def _said(left_out: Counter[str]) -> list[_Part]:
    if not left_out:
        return []
    what = ", ".join(f"{name} × {count}" for name, count in sorted(left_out.items())[:20])
    return [_Part(f"[… cut: {sum(left_out.values())} parts without errors ({what}) …]", "", kept=True)]


def _joined(parts: Sequence[_Part], longest: int) -> str:
    return "\n\n".join(f"{part.head}\n{_shortened(part.text, longest)}".rstrip() for part in parts)


def _shortened(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    mark = f"[… {len(text) - longest:,} characters cut …]"
    half = max(longest - len(mark), 2) // 2
    return f"{text[:half]}{mark}{text[-half:]}"


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return repr(value)
