"""Read OpenTelemetry spans and logs of AI systems as conversations, one turn per trace.

A file is OTLP as JSON (one object or JSON Lines), or what the console exporters print. Traces of the same session form
a conversation, ordered by time; any other trace is a conversation of its own. The spans of a trace may be anywhere in
the file, in any order, and log records with their messages too.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import chain
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.formats.spans.otel import logs
from agentic_bayes.records.formats.spans.otel.attributes import (
    RawSpan,
    attributes_of,
    plain_attributes,
    printed_span,
    raw_span,
    span_of_row,
)
from agentic_bayes.records.formats.spans.otel.names import names_of
from agentic_bayes.records.formats.spans.otel.spans import span_of
from agentic_bayes.records.wire.fields import Faults, Fields
from agentic_bayes.records.wire.json_text import NO_CONVERSATION, JsonPart, Parsed, broken, parts
from agentic_bayes.records.wire.layout import Origin, Shape, with_doubts
from agentic_bayes.records.wire.strict_json import MAX_DEPTH
from agentic_bayes.records.wire.tracing.conversations import Traces

NAME = "otel"

SPANS, LOGS = "resourceSpans", "resourceLogs"
OTHER_SIGNALS = frozenset({"resourceMetrics", "resourceProfiles"})
_TOO_DEEP = f"must not be nested deeper than {MAX_DEPTH} levels"
_SCOPES = {
    SPANS: (("scopeSpans", "spans"), ("instrumentationLibrarySpans", "spans")),
    LOGS: (("scopeLogs", "logRecords"), ("instrumentationLibraryLogs", "logRecords")),
}


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    if shape.record_keys & {SPANS, LOGS, *OTHER_SIGNALS}:
        return True
    return _is_printed_span(span_of_row(shape.record)) or logs.is_printed(shape.record)


def _is_printed_span(record: Mapping[str, Any]) -> bool:
    context = record.get("context")
    return isinstance(context, dict) and {"trace_id", "span_id"} <= context.keys() and "attributes" in record


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The conversations of a file."""
    spans = _FileSpans(Traces(NAME), keeps_raw=bool(origin.options.fields))
    wrong = False
    of_parts = chain.from_iterable(map(spans.take, parts(stream, {SPANS, LOGS})))
    for parsed in chain(of_parts, spans.take_logs()):
        wrong = True
        yield parsed
    yield from with_doubts(spans.traces.read(origin), spans.doubts)
    if not spans.traces.conversations and not wrong:
        kinds = "gen_ai.*, openinference.*, llm.*, traceloop.*"
        nothing = f"none of its {spans.total:,} spans calls a model, agent or tool ({kinds})"
        yield broken("", f"{NO_CONVERSATION}: {nothing}")


@dataclass(slots=True)
class _FileSpans:
    """The spans and log records of a file."""

    traces: Traces
    keeps_raw: bool
    seen: dict[tuple[str, str], bytes] = field(default_factory=dict)
    # the log records of each span, and the places of those that tell of an agent
    records: defaultdict[tuple[str, str], list[logs.LogRecord]] = field(default_factory=lambda: defaultdict(list))
    # the members of an object at the top that is neither spans nor logs of OTLP
    members: dict[str, Any] = field(default_factory=dict)
    known: bool = False
    total: int = 0
    of_others: int = 0
    others: int = 0

    def doubts(self) -> list[str]:
        """Warnings about the file."""
        found = []
        if self.of_others:
            found.append(
                f"spans ignored because they have no GenAI data (gen_ai.*): {self.of_others:,} of {self.total:,}"
            )
        if self.others:
            found.append(f"log records and batches of metrics ignored, because they concern no agent: {self.others:,}")
        return found + self.traces.doubts()

    def take(self, part: JsonPart) -> Iterator[Parsed]:
        """Take in one part of the file, and yield its problems."""
        match part.path:
            case _ if part.faults:
                self.known = True
                yield Parsed(part.place, faults=part.faults)
            case ():
                members, self.members = self.members, {}
                if not self.known or members:
                    yield from self._printed(members, part.place, known=self.known)
                self.known = False
            case (key, int()) if key in _SCOPES:
                yield from self._resource(Fields(part.value, (), Faults()), str(key), part.place)
            case (key,) if key in _SCOPES:
                self.known = True
                if not isinstance(part.value, list | None):
                    yield broken(part.place, f"must be a list, got {short(part.value)}")
            case (str(key),) if key in OTHER_SIGNALS:
                self.known = True
                self.others += 1
            case (str(key),):
                self.members[key] = part.value
            case (int(),):
                self.known = True
                yield from self._document(part.value, part.place)

    def _document(self, value: Any, place: str) -> Iterator[Parsed]:
        """Take in one item of a list at the top of the file."""
        faults = Faults()
        document = Fields(value, (), faults)
        if not faults and not _SCOPES.keys() & document.value.keys():
            yield from self._printed(dict(document.value), place, known=False)
            return
        for key in _SCOPES:
            for number, resource in enumerate(document.mappings(key)):
                yield from self._resource(resource, key, f"{place}.{key}[{number}]")
        if faults:
            yield Parsed(place, faults=tuple(faults))

    def _printed(self, members: dict[str, Any], place: str, *, known: bool) -> Iterator[Parsed]:
        """Take in a span or a log record as a console exporter prints it."""
        span = span_of_row(members)
        if not known and _is_printed_span(span):
            resource = members.get("resource")
            about = plain_attributes(Fields(resource, ("resource",), Faults())) if isinstance(resource, dict) else {}
            yield from self._one(span, place, about, printed=True)
        elif not known and logs.is_printed(members):
            faults = Faults()
            self._log(logs.printed(Fields(members, (), faults), place))
            if faults:
                yield Parsed(place, faults=tuple(faults))
        elif not known:
            yield broken(
                place, f"must have {SPANS!r}" + (f", got {short(members)}" if not place.startswith("line") else "")
            )

    def _resource(self, resource: Fields, kind: str, place: str) -> Iterator[Parsed]:
        """Take in the spans or log records of one resource, and yield their problems."""
        faults = Faults()
        own = Fields(resource.value, (), faults)
        try:
            about = attributes_of(own.mapping("resource"))
        except RecursionError:
            about = {}
            faults.add(("resource",), _TOO_DEEP)
        wanted = {name for pair in _SCOPES[kind] for name in pair}
        for holder in (own, *(scope for scopes, _ in _SCOPES[kind] for scope in own.mappings(scopes))):
            if holder.value and not wanted & holder.value.keys():
                self.traces.counts[f"unknown: objects without {' or '.join(sorted(wanted))}"] += any(
                    isinstance(value, list) for value in holder.value.values()
                )
        for scopes, items in _SCOPES[kind]:
            for number, scope in enumerate(own.mappings(scopes)):
                for position, raw in enumerate(scope.sequence(items)):
                    where = f"{place}.{scopes}[{number}].{items}[{position}]"
                    if kind == SPANS:
                        yield from self._one(raw, where, about)
                        continue
                    wrong = Faults()
                    try:
                        self._log(logs.record(Fields(raw, (), wrong), where, about))
                    except RecursionError:
                        wrong.add((), _TOO_DEEP)
                    if wrong:
                        yield Parsed(where, faults=tuple(wrong))
        together = (*resource.faults, *faults)
        if together:
            yield Parsed(place, faults=tuple(dict.fromkeys(together)))

    def _one(self, raw: Any, where: str, about: dict[str, Any], *, printed: bool = False) -> Iterator[Parsed]:
        """Take in one span."""
        faults = Faults()
        self.total += 1
        try:
            exported = (printed_span if printed else raw_span)(Fields(raw, (), faults))
            span = None if exported is None else span_of(exported)
            text = json.dumps(raw, sort_keys=True)
        except RecursionError:
            faults.add((), _TOO_DEEP)
            exported = span = None
            text = ""
        if exported is not None and span is not None and not faults:
            digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
            earlier = self.seen.setdefault((span.trace, span.id), digest)
            if earlier is digest:
                self.of_others += not span.counts and not span.names
                self.traces.traces[span.trace].add(span, _service(about))
                self._keep(exported, about)
            elif earlier == digest:  # sent twice
                self.total -= 1
            else:
                faults.add(("spanId",), f"must be unique in its trace, got {short(span.id)} for two different spans")
        if faults:
            yield Parsed(where, faults=tuple(faults))

    def _keep(self, raw: RawSpan, about: dict[str, Any]) -> None:
        """Keep what the resource and, for the caller's `fields`, the attributes say."""
        trace = self.traces.traces[raw.trace]
        if about and (names := names_of(about)) and names not in trace.about:
            trace.about.append(names)
        if self.keeps_raw:
            whole = {"name": raw.name, **raw.attributes, "attributes": raw.attributes, "resource": about}
            trace.raw += [((raw.begin, raw.id), whole), ((raw.begin, raw.id), about)]

    def _log(self, record: logs.LogRecord | None) -> None:
        if record is None:
            self.others += 1
        else:
            self.records[record.trace, record.span].append(record)

    def take_logs(self) -> Iterator[Parsed]:
        """Give the log records to their spans; the records of a span that is not in the file are a model call."""
        places = {(trace, span.id): span for trace, one in self.traces.traces.items() for span in one.spans}
        for (trace, identity), records in self.records.items():
            records.sort(key=lambda one: one.event.time)
            faults = Faults()
            span = places.get((trace, identity))
            given = logs.added(span, trace, identity, records, faults)
            if given is not span and given.counts:
                known = self.traces.traces[trace]
                given.parent = known.parents.get(identity, "")
                known.add(given, _service(records[0].about))
            if faults:
                yield Parsed(records[0].place, faults=tuple(faults))


def _service(about: dict[str, Any]) -> str | None:
    """The name of a service; OpenTelemetry's default is no name."""
    name = about.get("service.name")
    return name if isinstance(name, str) and name.strip() and not name.startswith("unknown_service") else None
