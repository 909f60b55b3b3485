"""What a conversation cost and how long it took, where its log recorded it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from agentic_bayes.records.base import is_number
from agentic_bayes.records.model import Conversation

Spent = Literal["cost", "seconds"]
# where readers put them: of the run, of one side of it (the agent's, not the simulated user's), or of every turn
_KEYS: Mapping[Spent, tuple[tuple[str, ...], ...]] = {
    "cost": (("cost",), ("cost", "agent")),
    "seconds": (("seconds",), ("duration",), ("times", "working_time"), ("times", "total_time")),
}


def all_spent(conversation: Conversation) -> dict[Spent, float]:
    """Everything that was recorded; what was not is missing, and so is a zero: logs write it for unknown prices."""
    found = {what: _spent(conversation, what) for what in _KEYS}
    return {what: value for what, value in found.items() if value is not None}


def _spent(conversation: Conversation, what: Spent) -> float | None:
    """The cost (in the log's currency) or the seconds of a conversation; None where not all of it was recorded."""
    whole = _first(conversation.metadata, what)
    if whole is not None:
        return whole
    turns = [_first(turn.metadata, what) for turn in conversation.conversation]
    return None if None in turns else sum(one for one in turns if one is not None)


def _first(metadata: Mapping[str, Any], what: Spent) -> float | None:
    for keys in _KEYS[what]:
        value: Any = metadata
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        if is_number(value) and 0 < value < float("inf"):
            return float(value)
    return None
