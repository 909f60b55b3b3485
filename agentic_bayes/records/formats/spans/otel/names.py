"""Whose trial a span belongs to: agent, session, task, trial and reference, from whichever attribute says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentic_bayes.records.wire.tracing.messages import json_of
from agentic_bayes.records.wire.tracing.spans import SpanNames

# where programs put values of their own: our own names, plain ones, and what instrumentations pass on
_OWN = (
    "agentic_bayes.",
    "",
    "metadata.",
    "traceloop.association.properties.",
    "langsmith.metadata.",
    "langfuse.trace.metadata.",
    "langfuse.observation.metadata.",
    "ai.telemetry.metadata.",
)
_PASSED_ON = tuple(prefix for prefix in _OWN if prefix)
_AGENT = ("agentic_bayes.agent", "gen_ai.agent.name", "agent.name", "agent_name")
_SESSION = (
    "agentic_bayes.session_id",
    "gen_ai.conversation.id",
    "session.id",
    *(prefix + name for prefix in _PASSED_ON[1:] for name in ("session_id", "conversation_id", "thread_id")),
)
_TASK = (
    "agentic_bayes.task_id",
    "task_id",
    "test.case.id",
    "test.case.name",
    *(prefix + "task_id" for prefix in _PASSED_ON[1:]),
)
_TRIAL = tuple(prefix + "trial" for prefix in _OWN)
_REFERENCE = tuple(prefix + "reference" for prefix in _PASSED_ON)

_METADATA = ("metadata", "langsmith.metadata", "langfuse.trace.metadata", "langfuse.observation.metadata")
_TELLING = frozenset((*_AGENT, *_SESSION, *_TASK, *_TRIAL, *_REFERENCE))
_NOBODY = SpanNames()


def names_of(attributes: Mapping[str, Any]) -> SpanNames:
    """The names that attributes give."""
    given = dict(attributes)
    for key in _METADATA:  # an object as JSON text
        packed = attributes.get(key)
        unpacked = json_of(packed) if isinstance(packed, str) else packed
        if isinstance(unpacked, dict):
            given |= {f"{key}.{name}": value for name, value in unpacked.items()}
    if _TELLING.isdisjoint(given):
        return _NOBODY
    return SpanNames(
        _name(given, _AGENT), _name(given, _SESSION), _name(given, _TASK), _trial(given), _text(given, _REFERENCE)
    )


def _name(given: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    """The first of these that is text or a whole number."""
    for key in keys:
        value = given.get(key)
        if (isinstance(value, str) and value.strip()) or (isinstance(value, int) and not isinstance(value, bool)):
            return str(value)
    return None


def _text(given: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    return next((value for key in keys if isinstance(value := given.get(key), str) and value), None)


def _trial(given: Mapping[str, Any]) -> int | None:
    for key in _TRIAL:
        value = given.get(key)
        if isinstance(value, str) and value.isdecimal() and len(value) < 10:
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None
