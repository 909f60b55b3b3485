"""Read LangSmith runs: trees with `child_runs`, flat exports (one run per line), or rows of `evaluate`.

A trace is a turn, and traces of one thread are a conversation. Feedback is a score; the outputs of the example are the
reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import BufferedReader
from typing import Any

from agentic_bayes.records.wire.fields import Fields
from agentic_bayes.records.wire.json_text import Parsed
from agentic_bayes.records.wire.layout import Origin, Shape
from agentic_bayes.records.wire.offered import offered_tools
from agentic_bayes.records.wire.tracing.conversations import Traces
from agentic_bayes.records.wire.tracing.messages import SpanMessages
from agentic_bayes.records.wire.tracing.objects import (
    first_object,
    name,
    names_in,
    nanoseconds,
    reference_text,
    taken,
    usage_in,
)
from agentic_bayes.records.wire.tracing.spans import Rating, Span, SpanKind
from agentic_bayes.records.wire.tracing.steps import take_call, take_step

NAME = "langsmith"

_KINDS: dict[str, SpanKind] = {
    "llm": "chat",
    "tool": "tool",
    **dict.fromkeys(("chain", "retriever", "embedding", "prompt", "parser", "sandbox"), "step"),
}
# what runs and projects are called unless someone names them
_DEFAULTS = frozenset({"LangGraph", "Target", "RunnableSequence", "AgentExecutor", "default", "evaluators"})


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    record = first_object(shape)
    run = record.get("run")
    return _is_run(record) or (isinstance(run, dict) and _is_run(run))


def _is_run(record: Mapping[str, Any]) -> bool:
    return "run_type" in record and "inputs" in record and bool(record.keys() & {"trace_id", "dotted_order", "id"})


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The conversations of a file."""
    traces = Traces(NAME)
    seen: set[tuple[str, str]] = set()

    def take(row: Fields) -> None:
        for span, run in _spans(row):
            trace = traces.traces[span.trace]
            if (span.trace, span.id) not in seen:
                seen.add((span.trace, span.id))
                trace.add(span)
                if origin.options.fields:
                    trace.raw.append((span.order, {**row.value, **run}))

    wrong = yield from taken(stream, take)
    yield from traces.told(origin, wrong=wrong, nothing="none of its runs has inputs or outputs")


def _spans(row: Fields) -> Iterator[tuple[Span, Mapping[str, Any]]]:
    """The run of an object and those within it."""
    run = row.mapping("run") if isinstance(row.raw("run"), dict) else row
    top = _span(run, None)
    if top is None:
        return
    example = row.raw("example")
    if isinstance(example, dict):
        task = name(example.get("id")) or top.names.task
        top.names = replace(top.names, task=task, reference=reference_text(example.get("outputs")))
    if isinstance(row.raw("evaluation_results"), dict):
        top.ratings += _ratings(row.mapping("evaluation_results"), "results", top.end)
    yield top, run.value
    waiting = [(child, top) for child in run.mappings("child_runs")]
    while waiting:
        child, parent = waiting.pop()
        span = _span(child, parent)
        if span is not None:
            yield span, child.value
            waiting += [(one, span) for one in child.mappings("child_runs")]


def _span(run: Fields, parent: Span | None) -> Span | None:
    identity, kind = run.name("id", required=True), run.text("run_type", required=True)
    if identity is None or kind is None:
        return None
    trace = parent.trace if parent else run.name("trace_id") or _root(run) or identity
    span = Span(trace, identity, parent.id if parent else run.name("parent_run_id") or "")
    span.begin, span.end = nanoseconds(run, "start_time"), nanoseconds(run, "end_time")
    span.take_kind(kind, _KINDS, "runs")
    error = run.raw("error")
    span.error = str(error).strip()[:500] if error else None
    extra = run.mapping("extra")
    metadata = extra.mapping("metadata").value
    names = names_in(metadata)
    outermost = not span.parent
    span.names = replace(
        names,
        agent=names.agent or (_agent(run) if outermost else None),
        task=names.task or name(run.raw("reference_example_id")),
        reference=names.reference or reference_text(run.raw("reference_outputs") or run.raw("reference_output")),
    )
    span.model = name(metadata.get("ls_model_name"))
    span.ratings = _ratings(run, "feedback", span.end) or _stats(run)
    messages = SpanMessages(run.faults, span.unknown)
    given, returned = run.raw("inputs"), run.raw("outputs")
    if span.kind == "tool":
        call = extra.raw("tool_call_id")
        take_call(span, run.name("name"), given, returned, call if isinstance(call, str) and call else None, messages)
    else:
        take_step(span, given, returned, messages)
    if span.kind == "chat":
        counts = usage_in(dict(run.value)) if "prompt_tokens" in run else (0, 0)
        span.tokens = counts if any(counts) else usage_in(returned)
        span.tools = offered_tools(extra.mapping("invocation_params").raw("tools"))
    return span


def _agent(run: Fields) -> str | None:
    """What the program calls itself, or the project or experiment, unless these are the defaults."""
    given = (run.name("name"), run.name("session_name"))
    return next((one for one in given if one and one not in _DEFAULTS), None)


def _root(run: Fields) -> str | None:
    """The trace of a run that names only its place in the tree."""
    order = run.raw("dotted_order")
    first = order.split(".")[0] if isinstance(order, str) else ""
    return first[-36:] if len(first) > 36 else None


def _ratings(owner: Fields, key: str, time: int) -> list[Rating]:
    """Feedback as a list of keys with their scores."""
    found = []
    for one in owner.mappings(key) if isinstance(owner.raw(key), list) else ():
        value = one.raw("score") if one.raw("score") is not None else one.raw("value")
        notes = {"explanation": one.raw("comment")} if isinstance(one.raw("comment"), str) else {}
        found.append(Rating(time, str(one.raw("key") or "score"), value, notes))
    return found


def _stats(run: Fields) -> list[Rating]:
    """Feedback as the API sums it up: the mean for each key."""
    stats = run.raw("feedback_stats")
    found = []
    for key, one in sorted(stats.items()) if isinstance(stats, dict) else ():
        if isinstance(one, dict) and "avg" in one:
            found.append(Rating(0, key, one["avg"]))
        elif isinstance(one, dict) and isinstance(one.get("values"), dict) and len(one["values"]) == 1:
            found.append(Rating(0, key, next(iter(one["values"]))))
    return found
