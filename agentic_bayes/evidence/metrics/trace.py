"""Writes one interaction as a record for a model to read, cut to a budget of characters where it is too long."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agentic_bayes.evidence.llm.prompt import text_digest
from agentic_bayes.formatting import text_or_json
from agentic_bayes.records.model import Conversation, Interaction, ToolCall

THOUGHTS, OFFERED = 'thoughts (metadata["reasoning"])', 'tools on offer (metadata["available_tools"])'
LEAST_BUDGET = 1_000  # characters; less would leave nothing to read
_SHORTEST = 120  # characters that a shortened text keeps
_LOOKED_AT = 300  # characters at either end of a result that are searched for an error
_MOST_ERRORS = 20
_ERROR = re.compile(r"\b(error|exception|traceback|failed|failure|denied|forbidden|timed out)\b", re.IGNORECASE)
_NO_ERROR = re.compile(
    r"""(\bno |\bwithout |["']?\b)errors?["']?\s*[:=]?\s*(null|none|false|""|''|0\b)|\b(no|without) errors?\b""", re.I
)


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """The record of one interaction."""

    text: str  # what a model is shown
    texts: tuple[str, ...]  # every text in it as the log has it: what the agent and its tools wrote is never a reply
    calls: int | None  # how many tool calls the agent made; None where they were not recorded
    cut: bool  # whether something was left out
    lacks: tuple[str, ...] = ()  # which of thoughts and tools on offer it does not have


@dataclass(frozen=True, slots=True)
class _RecordPart:
    """A piece of a record."""

    head: str
    text: str  # may be shortened
    essential: bool = False  # whether half of the budget is reserved for it and its like: request, answer, agent
    error: bool = False  # whether it is a call that failed
    kind: str = ""  # the name under which it is counted if it is left out


def trace_record(conversation: Conversation, position: int, *, budget: int) -> TraceRecord:
    """The record of one interaction, within a budget of characters.

    If it is too long, half of the budget is reserved for the request, the answer, thoughts, errors of the turn and
    what is known about the agent; these lose their middle, all down to the same length. The calls share the rest:
    first their texts lose their middle; if that is not enough, calls between the first and the last ones are left out
    (failed calls last) and counted by tool. A mark stands wherever something was cut.
    """
    turn = conversation.conversation[position]
    parts = list(_parts(conversation, turn))
    texts = tuple(text for text in (*(part.text for part in parts), *_raw_texts(turn)) if text)
    key = text_digest("\0".join(texts))[:8]
    while any(key in text for text in texts):
        key = text_digest(key)[:8]
    calls = None if turn.agentic is None else len(turn.agentic.tools_used)
    has = {THOUGHTS: turn.metadata.get("reasoning"), OFFERED: available_tools(conversation, turn)}
    lacks = tuple(what for what, present in has.items() if not present)
    first = f"Headings of this record begin with §{key}."
    whole = "\n\n".join([first, *(_shown(part, key, budget) for part in parts)])
    if len(whole) <= budget:
        return TraceRecord(whole, texts, calls, False, lacks)
    essential = [part for part in parts if part.essential]
    others = [part for part in parts if not part.essential]
    most = (budget - len(first)) // 2 if others else budget - len(first) - 2
    length = _fitting(lambda n: sum(len(_shown(part, key, n)) + 2 for part in essential) <= most, _SHORTEST, budget)
    kept = {id(part): _shown(part, key, length) for part in essential}
    room = budget - len(first) - 2 - sum(len(text) + 2 for text in kept.values())
    chosen = _within(others, key, room)
    # in the order of the record: what is essential before the calls, the calls, what is essential after them
    shown, calls_shown = [first], False
    for part in parts:
        if part.essential:
            shown.append(kept[id(part)])
        elif not calls_shown:
            shown += chosen
            calls_shown = True
    return TraceRecord("\n\n".join(shown)[:budget], texts, calls, True, lacks)


def available_tools(conversation: Conversation, turn: Interaction) -> list[dict[str, Any]]:
    """The tools that the agent could use, if the record lists them: ``metadata["available_tools"]``."""
    listed = turn.metadata.get("available_tools", conversation.metadata.get("available_tools"))
    tools = []
    for tool in listed if isinstance(listed, (list, tuple)) else ():
        inner = tool.get("function", tool) if isinstance(tool, dict) else {"name": tool}
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            tools.append({"name": inner["name"], "description": str(inner.get("description") or "")})
    return tools


def _parts(conversation: Conversation, turn: Interaction) -> Iterator[_RecordPart]:
    if conversation.chatbot_role:
        yield _RecordPart("Role of the agent", conversation.chatbot_role, essential=True)
    if conversation.context:
        yield _RecordPart("What the agent was told", conversation.context, essential=True)
    if tools := available_tools(conversation, turn):
        lines = "\n".join(f"- {tool['name']}: {tool['description']}" for tool in tools)
        yield _RecordPart("Tools that the agent could use", lines, essential=True)
    yield _RecordPart("The user's request", turn.query, essential=True)
    dialogue = turn.metadata.get("dialogue")
    for message in dialogue if isinstance(dialogue, list) else ():
        if isinstance(message, dict):
            yield _RecordPart(f"Said by the {message.get('role', '?')}", str(message.get("text", "")), kind="messages")
    for name, title in (("reasoning", "The agent's thoughts"), ("before_calls", "The agent said before its calls")):
        if thoughts := turn.metadata.get(name):
            texts = thoughts if isinstance(thoughts, (list, tuple)) else [thoughts]
            yield _RecordPart(title, "\n".join(map(text_or_json, texts)), essential=True)
    if turn.agentic is not None and not turn.agentic.tools_used:
        yield _RecordPart("No tool was called", "", essential=True)
    for number, call in enumerate(turn.agentic.tools_used if turn.agentic else (), start=1):
        result = f"\n→ {text_or_json(call.result)}" if call.has_result else ""
        head = f"Tool call {number}: {call.tool_name}"
        yield _RecordPart(head, f"{text_or_json(call.parameters)}{result}", error=_is_error(call), kind=call.tool_name)
    if turn.error is not None:
        yield _RecordPart("Error", turn.error, essential=True)
    if turn.assistant is not None:
        yield _RecordPart("The agent's answer", turn.assistant, essential=True)


def _raw_texts(turn: Interaction) -> Iterator[str]:
    """Texts within arguments and results, without JSON's escapes."""
    for call in turn.agentic.tools_used if turn.agentic else ():
        waiting = [call.parameters, call.result]
        while waiting:
            value = waiting.pop()
            if isinstance(value, str) and "{" in value:
                yield value
            elif isinstance(value, dict):
                waiting += value.values()
            elif isinstance(value, (list, tuple)):
                waiting += value


def _is_error(call: ToolCall) -> bool:
    """Whether the result of a call reads like a failure."""
    if not call.has_result:
        return False
    result = call.result
    if isinstance(result, str) and result.lstrip().startswith("{"):
        with contextlib.suppress(ValueError, RecursionError):
            result = json.loads(result)
    if isinstance(result, dict) and "error" in result:
        return bool(result["error"])
    text = text_or_json(result)
    ends = f"{text[:_LOOKED_AT]} {text[-_LOOKED_AT:]}"
    return _ERROR.search(_NO_ERROR.sub(" ", ends)) is not None


def _within(parts: Sequence[_RecordPart], key: str, room: int) -> list[str]:
    """As much of the parts as there is room for, and marks for what was left out."""

    def length(texts: Sequence[str]) -> int:
        return sum(len(text) + 2 for text in texts)

    if not parts:
        return []
    if length([_shown(part, key, _SHORTEST) for part in parts]) <= room:
        longest = _fitting(lambda n: length([_shown(part, key, n) for part in parts]) <= room, _SHORTEST, room)
        return [_shown(part, key, longest) for part in parts]
    failed = [i for i, part in enumerate(parts) if part.error]
    for errors in (_MOST_ERRORS, 6, 2, 0):
        some = {*failed[: errors // 2], *failed[len(failed) - errors // 2 :]} if errors else set()
        ends = _fitting(lambda n, some=some: length(_some(parts, key, some, n)) <= room, 0, len(parts) // 2 + 1)
        texts = _some(parts, key, some, ends)
        if ends and length(texts) <= room:
            return texts
    return [text for text in _some(parts, key, set(), 0) if len(text) + 2 <= room]


def _some(parts: Sequence[_RecordPart], key: str, chosen: set[int], ends: int) -> list[str]:
    """The chosen parts and `ends` parts from either end, with marks between them for what was left out."""
    shown: list[str] = []
    left_out: Counter[str] = Counter()
    for i, part in enumerate(parts):
        if i in chosen or i < ends or i >= len(parts) - ends:
            shown += _mark(left_out)
            left_out.clear()
            shown.append(_shown(part, key, _SHORTEST))
        else:
            left_out[part.kind or part.head] += 1
    return [*shown, *_mark(left_out)]


def _mark(left_out: Counter[str]) -> list[str]:
    """A line that counts what was left out; none if nothing was."""
    if not left_out:
        return []
    kinds = ", ".join(f"{name[:40]} × {count}" for name, count in left_out.most_common(5))
    more = " and others" if len(left_out) > 5 else ""
    return [f"[… cut: {sum(left_out.values()):,} parts ({kinds}{more}) …]"]


def _fitting(fits: Any, low: int, high: int) -> int:
    """The largest number in [low, high) that fits; `low` where none does."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _shown(part: _RecordPart, key: str, longest: int) -> str:
    return f"§{key} {part.head[:200]}\n{_shortened(part.text, longest)}".rstrip()


def _shortened(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    mark = f"[… {len(text) - longest:,} characters cut …]"
    half = max(longest - len(mark), 2) // 2
    return f"{text[:half]}{mark}{text[-half:]}"
