"""Read MLflow traces as `Trace.to_json()` and `to_dict()` write them, one trace per object, also in the older form.

Feedback is a score; an expectation is the reference. Traces of one session are a conversation; those that an
evaluation made are trials of the task that their request says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from io import BufferedReader
from typing import Any

from agentic_bayes.records.wire.fields import Fields, fitting
from agentic_bayes.records.wire.json_text import Parsed
from agentic_bayes.records.wire.layout import Origin, Shape
from agentic_bayes.records.wire.offered import offered_tools
from agentic_bayes.records.wire.tracing.conversations import Traces
from agentic_bayes.records.wire.tracing.messages import SpanMessages, json_of
from agentic_bayes.records.wire.tracing.objects import (
    first_object,
    name,
    names_in,
    nanoseconds,
    reference_text,
    taken,
    usage_in,
)
from agentic_bayes.records.wire.tracing.spans import Rating, Span, SpanKind, SpanNames
from agentic_bayes.records.wire.tracing.steps import take_call, take_step

NAME = "mlflow"

_KINDS: dict[str, SpanKind] = {
    **dict.fromkeys(("LLM", "CHAT_MODEL"), "chat"),
    "AGENT": "agent",
    "TOOL": "tool",
    **dict.fromkeys(
        ("CHAIN", "RETRIEVER", "PARSER", "EMBEDDING", "RERANKER", "MEMORY", "WORKFLOW", "TASK", "UNKNOWN"), "step"
    ),
    **dict.fromkeys(("GUARDRAIL", "EVALUATOR"), "aside"),
}
# expectations that are a reference answer, the likeliest first
_EXPECTED = ("expected_response", "expected_output", "expected_answer", "reference", "ground_truth")


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    record = first_object(shape)
    info, data = record.get("info"), record.get("data")
    named = isinstance(info, dict) and bool(info.keys() & {"trace_id", "request_id"})
    return named and isinstance(data, dict) and "spans" in data


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The conversations of a file."""
    traces = Traces(NAME)
    wrong = yield from taken(stream, lambda record: _take(record, traces, keeps_raw=bool(origin.options.fields)))
    yield from traces.told(origin, wrong=wrong, nothing="none of its spans has inputs or outputs")


def _take(record: Fields, traces: Traces, *, keeps_raw: bool) -> None:
    """Take in one trace; of one that comes again only what is said about it."""
    info = record.mapping("info", required=True)
    identity = info.name("trace_id") or info.name("request_id", required=True) or ""
    known = identity in traces.traces
    ratings, names = _info(info)
    trace = traces.traces[identity]
    for span in _spans(record.mapping("data", required=True), identity):
        if not known:
            trace.add(span)
    if trace.spans:
        trace.spans[0].ratings += ratings
    trace.about.append(names)
    if keeps_raw:
        trace.raw.append(((0, ""), {**_tags(info), **record.value}))


def _tags(info: Fields) -> dict[str, Any]:
    """What the trace was given as metadata and tags; the older form lists keys and values."""
    found: dict[str, Any] = {}
    for key in ("request_metadata", "trace_metadata", "tags"):
        given = info.raw(key)
        if isinstance(given, Mapping):
            found |= given
        elif isinstance(given, list):
            found |= {str(one.get("key")): one.get("value") for one in given if isinstance(one, dict)}
    return found


def _info(info: Fields) -> tuple[list[Rating], SpanNames]:
    """The scores of a trace, and whose trial it is."""
    tags = _tags(info)
    names = names_in(tags)
    ratings: list[Rating] = []
    expected: dict[str, Any] = {}
    for one in info.mappings("assessments"):
        called = one.name("assessment_name") or one.name("name") or "score"
        if one.raw("valid") is False:
            continue  # replaced by a later one
        if isinstance(one.raw("expectation"), dict):
            value = one.raw("expectation")
            packed = value.get("serialized_value")
            expected[called] = json_of(str(packed.get("value"))) if isinstance(packed, dict) else value.get("value")
        elif isinstance(one.raw("feedback"), dict):
            feedback = one.mapping("feedback")
            notes = {"explanation": one.raw("rationale")} if isinstance(one.raw("rationale"), str) else {}
            error = feedback.raw("error")
            if isinstance(error, dict):
                notes["error"] = str(error.get("error_message") or error.get("error_code"))
            value = fitting(feedback.raw("value"), (*feedback.path, "value"), info.faults)
            ratings.append(Rating(nanoseconds(one, "create_time"), called, value, notes))
    reference = next((expected[key] for key in _EXPECTED if expected.get(key) is not None), None)
    request = tags.get("mlflow.traceInputs") or info.raw("request_preview")
    evaluated = "mlflow.eval.requestId" in tags or "mlflow.sourceRun" in tags
    return ratings, SpanNames(
        agent=names.agent or name(tags.get("mlflow.modelId")),
        session=name(tags.get("mlflow.trace.session")) or names.session,
        task=names.task or (reference_text(request) if evaluated else None),
        trial=names.trial,
        reference=reference_text(reference) or names.reference,
    )


def _spans(data: Fields, trace: str) -> Iterator[Span]:
    for raw in data.mappings("spans", required=True):
        context = raw.mapping("context")
        identity = raw.name("span_id") or context.name("span_id")
        if identity is None:
            raw.faults.add((*raw.path, "span_id"), "must be given, got nothing")
            continue
        span = Span(trace, identity, raw.name("parent_span_id") or raw.name("parent_id") or "")
        span.begin = raw.whole("start_time_unix_nano") or raw.whole("start_time") or 0
        span.end = raw.whole("end_time_unix_nano") or raw.whole("end_time") or 0
        _fill(span, raw)
        yield span


def _fill(span: Span, raw: Fields) -> None:
    packed = raw.mapping("attributes").value
    attributes = {key: _value(value) for key, value in packed.items()}
    span.take_kind(str(attributes.get("mlflow.spanType") or "UNKNOWN"), _KINDS, "spans")
    if not attributes:
        span.unknown["spans without attributes"] += 1
    status = raw.raw("status") if isinstance(raw.raw("status"), dict) else {}
    code = status.get("code") or raw.raw("status_code")
    if code in ("STATUS_CODE_ERROR", "ERROR"):
        span.error = str(status.get("message") or raw.raw("status_message") or "the span ended with status ERROR")[:500]
    messages = SpanMessages(raw.faults, span.unknown)
    given, returned = attributes.get("mlflow.spanInputs"), attributes.get("mlflow.spanOutputs")
    if span.kind == "tool":
        take_call(span, raw.name("name"), given, returned, None, messages)
    else:
        take_step(span, given, returned, messages)
    if span.kind == "agent":
        span.names = SpanNames(agent=raw.name("name"))
    if span.kind == "chat":
        span.tokens = usage_in(attributes.get("mlflow.chat.tokenUsage") or returned)
        model = attributes.get("mlflow.llm.model") or (given.get("model") if isinstance(given, dict) else None)
        span.model = model if isinstance(model, str) else None
    asked = given if span.kind == "chat" and isinstance(given, dict) else {}
    span.tools = offered_tools(attributes.get("mlflow.chat.tools") or asked.get("tools"))
    span.not_finite = raw.faults.not_finite


def _value(value: Any) -> Any:
    """An attribute, which MLflow keeps as JSON text."""
    if not isinstance(value, str):
        return value
    found = json_of(value)
    if found is None and value.strip() in ("null", "true", "false"):
        return {"null": None, "true": True, "false": False}[value.strip()]
    if found is None:
        try:
            number = float(value)
            found = number if math.isfinite(number) else None
        except ValueError:
            found = None
    return value if found is None else found
