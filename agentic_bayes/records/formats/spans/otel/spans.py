"""Read one span of OpenTelemetry, whichever conventions its attributes follow."""

from __future__ import annotations

from agentic_bayes.records.formats.spans.otel import adk, genai, openinference, products, traceloop
from agentic_bayes.records.formats.spans.otel.attributes import RawSpan
from agentic_bayes.records.formats.spans.otel.names import names_of
from agentic_bayes.records.wire.tracing.messages import SpanMessages
from agentic_bayes.records.wire.tracing.spans import Span


def span_of(raw: RawSpan) -> Span:
    """The parts of a span that a conversation needs."""
    span = Span(raw.trace, raw.id, raw.parent, raw.begin, raw.end, names=names_of(raw.attributes))
    span.ratings = [genai.rating(event) for event in raw.events if event.name == genai.RATED]
    kinds = {
        convention: convention.kind_of(raw, span) for convention in (genai, openinference, traceloop, products, adk)
    }
    span.kind = next((kind for kind in kinds.values() if kind not in ("none", "step")), "none")
    if span.kind == "none" and "step" in kinds.values():
        span.kind = "step"
    if not span.counts:
        return span
    span.error = raw.error
    messages = SpanMessages(raw.faults, span.unknown)
    for convention, kind in kinds.items():
        if kind != "none":
            convention.take(span, raw, messages)
    span.not_finite = raw.faults.not_finite
    return span
