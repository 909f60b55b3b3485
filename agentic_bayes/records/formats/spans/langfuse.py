"""Read Langfuse exports: traces with their observations, or observations alone, from the API or the interface.

A trace is a turn, and traces of one session are a conversation. Scores of a trace are its scores.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import BufferedReader
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.formats.unknown import WITH_ALL
from agentic_bayes.records.wire.fields import Fields, fitting
from agentic_bayes.records.wire.json_text import Parsed
from agentic_bayes.records.wire.layout import Origin, Shape
from agentic_bayes.records.wire.offered import offered_tools
from agentic_bayes.records.wire.tracing.conversations import Traces
from agentic_bayes.records.wire.tracing.messages import SpanMessages, unpacked
from agentic_bayes.records.wire.tracing.objects import are_counts, first_object, name, names_in, nanoseconds, taken
from agentic_bayes.records.wire.tracing.spans import Rating, Span, SpanKind, SpanNames
from agentic_bayes.records.wire.tracing.steps import take_call, take_step

NAME = "langfuse"

_KINDS: dict[str, SpanKind] = {
    "GENERATION": "chat",
    "AGENT": "agent",
    "TOOL": "tool",
    **dict.fromkeys(("SPAN", "EVENT", "CHAIN", "RETRIEVER", "EMBEDDING"), "step"),
    **dict.fromkeys(("EVALUATOR", "GUARDRAIL"), "aside"),
}


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    record = first_object(shape)
    inner = record.get("trace") if isinstance(record.get("trace"), dict) else record
    if "observations" in record and isinstance(inner, dict):
        return bool(inner.keys() & {"htmlPath", "sessionId", "projectId", "userId", "input", "session_id"})
    return _is_observation(record)


def _is_observation(record: Mapping[str, Any]) -> bool:
    keys = record.keys()
    typed = isinstance(record.get("type"), str) and record["type"] in _KINDS
    return typed and bool(keys & {"traceId", "trace_id"}) and bool(keys & {"startTime", "start_time"})


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The conversations of a file."""
    traces = Traces(NAME)
    wrong = yield from taken(stream, lambda item: _take(item, traces, keeps_raw=bool(origin.options.fields)))
    yield from traces.told(origin, wrong=wrong, nothing="none of its observations has input or output")


def _take(item: Fields, traces: Traces, *, keeps_raw: bool) -> None:
    """Take in a trace with its observations, or one observation."""
    about = item.mapping("trace") if isinstance(item.raw("trace"), dict) else item
    if _is_observation(item.value):
        identity = _get(item, "traceId")
        listed = [item]
    else:
        identity = about.name("id", required=True)
        if any(isinstance(one, str) for one in item.sequence("observations")):
            item.faults.add(("observations",), f"holds only ids; {WITH_ALL}")
            return
        listed = item.mappings("observations")
    if not isinstance(identity, str):
        item.faults.add(("traceId",), f"must be text, got {short(identity)}")
        return
    trace = traces.traces[identity]
    root = _root(about, identity) if about is not item or listed != [item] else None
    for one in listed:
        span = _span(one, identity)
        if span is not None and span.id not in trace.parents:
            span.parent = span.parent or (root.id if root else "")
            trace.add(span)
    if root is not None and root.id not in trace.parents:
        trace.add(root)
    names = _names(about)
    if names and names not in trace.about:
        trace.about.append(names)
    if keeps_raw:
        trace.raw.append(((0, ""), {**about.value, **item.value}))


def _key(item: Fields, key: str) -> str:
    """The API's name of a member if the object has it, else that of the Python SDK."""
    return key if key in item else re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", key)


def _get(item: Fields, key: str) -> Any:
    return item.raw(_key(item, key))


def _time(item: Fields, key: str) -> int:
    return nanoseconds(item, _key(item, key))


def _names(about: Fields) -> SpanNames:
    names = names_in(about.raw("metadata"))
    metadata = about.raw("metadata") if isinstance(about.raw("metadata"), dict) else {}
    return replace(
        names,
        session=name(_get(about, "sessionId")) or names.session,
        agent=names.agent or name(about.raw("name") or _get(about, "traceName")),
        task=names.task or name(metadata.get("dataset_item_id") or metadata.get("datasetItemId")),
    )


def _root(about: Fields, identity: str) -> Span | None:
    """The trace itself as the outermost step, if it says what went in and came out or has scores."""
    span = Span(identity, f"trace {identity}", begin=_time(about, "timestamp"), kind="step")
    messages = SpanMessages(about.faults, span.unknown)
    take_step(span, unpacked(about.raw("input")), unpacked(about.raw("output")), messages)
    for one in about.mappings("scores"):
        text = _get(one, "stringValue")
        typed = _get(one, "dataType")
        value = one.raw("value")
        if typed == "BOOLEAN" and value in (0, 1):
            value = bool(value)
        elif isinstance(text, str) and (typed == "CATEGORICAL" or value is None):
            value = text
        notes = {"explanation": one.raw("comment")} if isinstance(one.raw("comment"), str) else {}
        value = fitting(value, (*one.path, "value"), about.faults)
        span.ratings.append(Rating(_time(one, "timestamp"), str(one.raw("name") or "score"), value, notes))
    said = span.inputs or span.outputs or span.raw_input or span.raw_output
    if not said:
        span.kind = "none"
    return span if said or span.ratings else None


def _span(item: Fields, trace: str) -> Span | None:
    identity, kind = item.name("id", required=True), item.text("type", required=True)
    if identity is None or kind is None:
        return None
    span = Span(trace, identity, name(_get(item, "parentObservationId")) or "")
    span.begin, span.end = _time(item, "startTime"), _time(item, "endTime")
    span.take_kind(kind, _KINDS, "observations")
    if item.raw("level") == "ERROR":
        span.error = str(_get(item, "statusMessage") or "the observation ended with level ERROR")[:500]
    messages = SpanMessages(item.faults, span.unknown)
    given, returned = unpacked(item.raw("input")), unpacked(item.raw("output"))
    if span.kind == "tool":
        take_call(span, item.name("name"), given, returned, None, messages)
    else:
        take_step(span, given, returned, messages)
    span.names = names_in(item.raw("metadata"))
    if span.kind == "agent":
        span.names = replace(span.names, agent=item.name("name"))
    if span.kind == "chat":
        span.model = name(_get(item, "model") or _get(item, "providedModelName"))
        span.tokens = _usage(item)
        span.tools = offered_tools(given.get("tools") if isinstance(given, dict) else None)
    return span


def _usage(item: Fields) -> tuple[int, int]:
    for usage in (_get(item, "usageDetails"), item.raw("usage")):
        if isinstance(usage, dict):
            counts = usage.get("input"), usage.get("output")
            if are_counts(counts):
                return counts
    return 0, 0
