"""Whose trial a span belongs to: agent, session, task, trial and reference, from whichever attribute says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from agentic_bayes.records.wire.tracing.messages import json_of
from agentic_bayes.records.wire.tracing.objects import name, trial
from agentic_bayes.records.wire.tracing.spans import SpanNames

_T = TypeVar("_T")
# where programs put values of their own: our own names, plain ones, and what instrumentations pass on
_OWN = (
    *("agentic_bayes.", "", "metadata.", "traceloop.association.properties.", "langsmith.metadata."),
    *("langfuse.trace.metadata.", "langfuse.observation.metadata.", "ai.telemetry.metadata."),
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
        if isinstance(unpacked := json_of(attributes.get(key)), dict):
            given |= {f"{key}.{name}": value for name, value in unpacked.items()}
    if _TELLING.isdisjoint(given):
        return _NOBODY
    return SpanNames(
        agent=_first(name, given, _AGENT),
        session=_first(name, given, _SESSION),
        task=_first(name, given, _TASK),
        trial=_first(trial, given, _TRIAL),
        reference=_first(_text, given, _REFERENCE),
    )


def _first(read: Callable[[Any], _T | None], given: Mapping[str, Any], keys: Iterable[str]) -> _T | None:
    return next((found for key in keys if (found := read(given.get(key))) is not None), None)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
