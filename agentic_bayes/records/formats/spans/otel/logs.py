"""Log records that hold the messages of spans: the GenAI conventions' events, which some programs export as logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.formats.spans.otel import genai
from agentic_bayes.records.formats.spans.otel.attributes import (
    Event,
    attributes_of,
    hexadecimal,
    moment,
    plain_attributes,
    typed_value,
)
from agentic_bayes.records.formats.spans.otel.names import names_of
from agentic_bayes.records.wire.fields import Faults, Fields, fitting
from agentic_bayes.records.wire.tracing.messages import SpanMessages
from agentic_bayes.records.wire.tracing.objects import nanoseconds
from agentic_bayes.records.wire.tracing.spans import Span


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A log record about an agent, as an event of its span."""

    trace: str
    span: str
    event: Event
    place: str
    about: dict[str, Any]  # the attributes of its resource


def is_printed(record: dict[str, Any]) -> bool:
    """Whether an object is a log record as a console exporter prints it."""
    return {"body", "severity_number", "trace_id", "span_id", "attributes"} <= record.keys()


def record(raw: Fields, place: str, about: dict[str, Any]) -> LogRecord | None:
    """A log record of OTLP JSON; None if it tells nothing about an agent."""
    attributes = attributes_of(raw)
    body = typed_value(raw.mapping("body")) if "body" in raw else None
    time = moment(raw, "timeUnixNano") or moment(raw, "observedTimeUnixNano")
    name = raw.raw("eventName") or attributes.get("event.name")
    return _record(raw, (raw.text("traceId"), raw.text("spanId")), name, time, attributes, body, place, about)


def printed(raw: Fields, place: str) -> LogRecord | None:
    """The same for one that a console exporter printed."""
    attributes = plain_attributes(raw)
    body = fitting(raw.raw("body"), ("body",), raw.faults)
    time = nanoseconds(raw, "timestamp") or nanoseconds(raw, "observed_timestamp")
    name = raw.raw("event_name") or attributes.get("event.name")
    about = plain_attributes(raw.mapping("resource")) if isinstance(raw.raw("resource"), dict) else {}
    return _record(
        raw, (hexadecimal(raw, "trace_id"), hexadecimal(raw, "span_id")), name, time, attributes, body, place, about
    )


def _record(
    raw: Fields,
    ids: tuple[str | None, str | None],
    name: Any,
    time: int,
    attributes: dict[str, Any],
    body: Any,
    place: str,
    about: dict[str, Any],
) -> LogRecord | None:
    if not isinstance(name, str) or not name.startswith("gen_ai."):
        return None
    trace, span = ids
    if not trace or not span:
        raw.faults.add((), f"a record of the event {short(name)} must name its trace and span")
        return None
    content = body if isinstance(body, dict) else {} if body in (None, "") else {"gen_ai.event.content": body}
    return LogRecord(trace, span, Event(name, time, {**attributes, **content}), place, about)


def added(span: Span | None, trace: str, identity: str, records: Sequence[LogRecord], faults: Faults) -> Span:
    """The span with what its records say, or a model call that they alone tell of."""
    events = [one.event for one in records]
    if span is None:
        merged = {key: value for one in reversed(records) for key, value in (one.about | one.event.attributes).items()}
        span = Span(trace, identity, begin=events[0].time, end=events[-1].time, names=names_of(merged))
        if any(event.name in genai.SAYS_MORE for event in events):
            span.kind = "chat"
    span.ratings += [genai.rating(event) for event in events if event.name == genai.RATED]
    for event in events:
        if event.name not in (*genai.SAYS_MORE, genai.RATED, "gen_ai.client.operation.exception"):
            span.unknown[f"log records of event {short(event.name)}"] += 1
    messages = SpanMessages(faults, span.unknown)
    if span.kind in ("chat", "agent") and not (span.inputs and span.outputs):
        details = next((event.attributes for event in events if event.name == genai.DETAILS), {})
        other = Span(trace, identity)
        genai.take_messages(other, details, events, messages)
        if not span.inputs:
            span.inputs, span.before, span.system = other.inputs, other.before, span.system or other.system
        span.outputs = span.outputs or other.outputs
    return span
