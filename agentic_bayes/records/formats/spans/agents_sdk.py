"""Read traces of the OpenAI Agents SDK as its processors and exporters write them, one trace or span per object.

A run of an agent is a turn; traces of one ``group_id`` are a conversation. Spans of the Responses API name the
response only, so a trace of such a model holds the calls, but neither query nor answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import BufferedReader
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.wire.fields import Fields
from agentic_bayes.records.wire.json_text import Parsed
from agentic_bayes.records.wire.layout import Origin, Shape
from agentic_bayes.records.wire.tracing.conversations import Traces
from agentic_bayes.records.wire.tracing.messages import SpanMessages
from agentic_bayes.records.wire.tracing.objects import first_object, name, names_in, nanoseconds, taken, usage_in
from agentic_bayes.records.wire.tracing.spans import Span, SpanKind, SpanNames
from agentic_bayes.records.wire.tracing.steps import take_call, take_step

NAME = "agents-sdk"

_KINDS: dict[str, SpanKind] = {
    "agent": "agent",
    "generation": "chat",
    "response": "chat",
    "function": "tool",
    "guardrail": "aside",
    **dict.fromkeys(
        ("handoff", "custom", "task", "turn", "mcp_tools", "transcription", "speech", "speech_group"), "step"
    ),
}
_OBJECTS = ("trace", "trace.span")


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    record = first_object(shape)
    return (
        record.get("object") in _OBJECTS and "id" in record and record.keys() & {"span_data", "workflow_name"} != set()
    )


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The conversations of a file."""
    spans: defaultdict[str, list[Span]] = defaultdict(list)
    about: dict[str, SpanNames] = {}
    runs: set[str] = set()
    handed_over: set[str] = set()
    raw: defaultdict[str, list[Any]] = defaultdict(list)

    def take(item: Fields) -> None:
        identity = ""
        if item.raw("object") == "trace":
            identity = item.text("id", required=True) or ""
            names = names_in(item.raw("metadata"))
            about[identity] = replace(names, session=name(item.raw("group_id")) or names.session)
        elif (span := _span(item)) is not None:
            identity = span.trace
            spans[identity].append(span)
            if _is_run(item):
                runs.add(span.id)
            if item.mapping("span_data").raw("type") == "handoff":
                handed_over.add(identity)
        if origin.options.fields and not item.faults:
            raw[identity].append(item.value)

    wrong = yield from taken(stream, take)
    traces = Traces(NAME)
    for identity, listed in spans.items():
        run_of = _runs_of(listed, runs)
        several = len(set(run_of.values()) - {""}) > 1
        outside = not runs or any(span.counts and not run_of[span.id] for span in listed)
        for span in listed:
            run = run_of[span.id] if several and run_of[span.id] else identity
            trace = traces.traces[run]
            trace.add(span)
            trace.one_run = not outside or identity in handed_over
            if not trace.about:
                session = about.get(identity, SpanNames()).session or (identity if run != identity else None)
                trace.about.append(replace(about.get(identity, SpanNames()), session=session))
                trace.raw += [((0, ""), one) for one in raw[identity]]
    yield from traces.told(origin, wrong=wrong, nothing="none of its spans is an agent, a model call or a tool call")


def _is_run(item: Fields) -> bool:
    """Whether a span is a whole run of an agent, from the user's query to the answer."""
    data = item.raw("span_data")
    inner = data.get("data") if isinstance(data, dict) else None
    kind = inner.get("sdk_span_type") if isinstance(inner, dict) else None
    return kind == "task" and item.raw("parent_id") is None


def _runs_of(spans: list[Span], runs: set[str]) -> dict[str, str]:
    """The run that every span of a trace belongs to; "" outside of all runs."""
    parents = {span.id: span.parent for span in spans}
    found: dict[str, str] = {}
    for start in parents:
        here, way = start, dict[str, None]()
        while here not in runs and here in parents and here not in way and here not in found:
            way[here] = None
            here = parents[here]
        run = found.get(here, here if here in runs else "")
        found |= dict.fromkeys((start, *way), run)
    return found


def _span(item: Fields) -> Span | None:
    trace, identity = item.text("trace_id", required=True), item.text("id", required=True)
    data = item.mapping("span_data", required=True)
    kind = data.text("type", required=True)
    if not trace or not identity or kind is None:
        item.faults.add((), "must be a trace or a span with its ids, like the others")
        return None
    span = Span(trace, identity, item.text("parent_id") or "")
    span.begin, span.end = nanoseconds(item, "started_at"), nanoseconds(item, "ended_at")
    span.take_kind(kind, _KINDS, "spans")
    span.error = _error(item.raw("error"))
    messages = SpanMessages(item.faults, span.unknown)
    match span.kind:
        case "agent":
            span.names = SpanNames(agent=data.name("name"))
            span.tools = data.texts("tools")
        case "chat":
            model = data.raw("model")
            span.model = model if isinstance(model, str) else None
            returned = data.raw("response") if "response" in data else data.raw("output")
            take_step(span, data.raw("input"), returned, messages)
            span.tokens = usage_in(data.raw("usage"))
            if kind == "response" and not (span.inputs or span.outputs):
                span.unknown["texts of responses, of which the SDK exports only the id"] += 1
        case "tool":
            take_call(span, data.name("name", required=True), data.raw("input"), data.raw("output"), None, messages)
    return span


def _error(error: Any) -> str | None:
    """Why a span failed, as text."""
    if not error:
        return None
    if isinstance(error, Mapping):
        data = error.get("data")
        inner = data.get("error") if isinstance(data, Mapping) else data
        return ": ".join(str(part) for part in (error.get("message"), inner) if part)[:500] or short(error)
    return str(error)[:500]
