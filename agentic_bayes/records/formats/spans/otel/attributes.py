"""Typed values of OTLP, and a span or log record in a form that does not depend on how it was exported."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentic_bayes.records.base import is_number, is_whole, short
from agentic_bayes.records.wire.fields import Faults, Fields, fitting
from agentic_bayes.records.wire.tracing.objects import nanoseconds

_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_ERRORS = (2, "STATUS_CODE_ERROR", "ERROR", "Error", "StatusCode.ERROR")


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a span, or a log record that belongs to one."""

    name: str
    time: int
    attributes: dict[str, Any]


@dataclass(slots=True)
class RawSpan:
    """A span as it was exported, with plain values."""

    trace: str
    id: str
    parent: str
    name: str
    begin: int
    end: int
    attributes: dict[str, Any]
    faults: Faults
    events: list[Event] = field(default_factory=list)
    failed: bool = False
    message: str | None = None  # of its status

    @property
    def error(self) -> str | None:
        """Why the span failed; None if it did not."""
        kind = self.attributes.get("error.type")
        if not self.failed and not kind:
            return None
        thrown: Mapping[str, Any] = next((e.attributes for e in reversed(self.events) if e.name == "exception"), {})
        kind, message = kind or thrown.get("exception.type"), self.message or thrown.get("exception.message")
        description = ": ".join(str(one).strip() for one in (kind, message) if one and str(one).strip())
        return description[:500] or "the span ended with status ERROR"


def attributes_of(owner: Fields, key: str = "attributes") -> dict[str, Any]:
    """The attributes of a span, an event or a resource, or the members of an attribute that is an object."""
    found: dict[str, Any] = {}
    for pair in owner.mappings(key):
        name, value = pair.text("key", required=True), typed_value(pair.mapping("value"))
        if name is None:
            continue
        if name in found and found[name] != value:
            pair.faults.add((*pair.path, "key"), f"must be given once, got {short(name)} with two values")
        found[fitting(name, (*pair.path, "key"), pair.faults)] = fitting(value, (*pair.path, "value"), pair.faults)
    return found


def typed_value(value: Fields) -> Any:
    """Unwrap a typed value; an empty one is null."""
    kinds = [kind for kind in value.value if value.value[kind] is not None]
    if not kinds:
        return None
    kind, raw = kinds[0], value.value[kinds[0]]
    match kind:
        case "stringValue" | "bytesValue":
            return value.text(kind)
        case "boolValue" if isinstance(raw, bool):
            return raw
        case "intValue":
            return whole(value, kind)
        case "doubleValue" if raw in _NOT_FINITE:
            return math.nan
        case "doubleValue" if is_number(raw):
            return raw
        case "arrayValue":
            return [typed_value(item) for item in value.mapping(kind).mappings("values")]
        case "kvlistValue":
            return attributes_of(value.mapping(kind), "values")
    allowed = "stringValue, boolValue, intValue, doubleValue, arrayValue, kvlistValue or bytesValue of its type"
    value.faults.add(value.path, f"must hold {allowed}, got {short(dict(value.value))}")
    return None


def whole(owner: Fields, key: str) -> int | None:
    """A whole number, as a JSON number or as text, which OTLP uses for 64-bit integers."""
    raw = owner.raw(key)
    number: int | None = None
    if isinstance(raw, float) and raw.is_integer():
        number = int(raw)
    elif is_whole(raw):
        number = raw
    elif isinstance(raw, str) and re.fullmatch(r"-?\d{1,20}", raw.strip()):
        number = int(raw)
    if number is not None and -(1 << 63) <= number < 1 << 64:
        return number
    if raw is not None:
        allowed = "a whole number, or the text of one" if number is None else "a whole number of at most 64 bits"
        owner.faults.add((*owner.path, key), f"must be {allowed}, got {short(raw)}")
    return None


def moment(owner: Fields, key: str) -> int:
    """Nanoseconds since 1970, 0 where they are not given."""
    time = whole(owner, key) or 0
    if time < 0:
        owner.faults.add((*owner.path, key), f"must not be negative, got {time}")
    return time


def raw_span(raw: Fields) -> RawSpan | None:
    """A span of OTLP JSON; None if it has no ids."""
    trace, identity = raw.text("traceId", required=True), raw.text("spanId", required=True)
    attributes = attributes_of(raw)
    events = [
        Event(event.text("name") or "", moment(event, "timeUnixNano"), attributes_of(event))
        for event in raw.mappings("events")
    ]
    for key, value in (("traceId", trace), ("spanId", identity)):
        if value is not None and not value.strip():
            raw.faults.add((key,), "must not be blank")
    if not trace or not identity:
        return None
    parent = raw.text("parentSpanId") or ""
    fitting([trace, identity, parent], ("spanId",), raw.faults)
    status = raw.mapping("status")
    return RawSpan(
        trace,
        identity,
        parent,
        raw.text("name") or "",
        moment(raw, "startTimeUnixNano"),
        moment(raw, "endTimeUnixNano"),
        attributes,
        raw.faults,
        events,
        status.raw("code") in _ERRORS if not isinstance(status.raw("code"), (dict, list)) else False,
        status.text("message"),
    )


def printed_span(raw: Fields) -> RawSpan | None:
    """A span as OpenTelemetry's console exporters (``span.to_json()``) and Phoenix write it; None if it has no ids."""
    context = raw.mapping("context")
    trace, identity = hexadecimal(context, "trace_id"), hexadecimal(context, "span_id")
    if not trace or not identity:
        return None
    parent = hexadecimal(raw, "parent_id", required=False) or ""
    attributes = plain_attributes(raw)
    if isinstance(kind := raw.raw("span_kind"), str):
        attributes.setdefault("openinference.span.kind", kind)
    events = [
        Event(event.text("name") or "", nanoseconds(event, "timestamp"), plain_attributes(event))
        for event in raw.mappings("events")
    ]
    fitting([trace, identity, parent], ("context",), raw.faults)
    status = raw.raw("status")
    code = status.get("status_code") if isinstance(status, dict) else raw.raw("status_code")
    message = status.get("description") if isinstance(status, dict) else raw.raw("status_message")
    return RawSpan(
        trace,
        identity,
        parent,
        raw.text("name") or "",
        nanoseconds(raw, "start_time"),
        nanoseconds(raw, "end_time"),
        attributes,
        raw.faults,
        events,
        isinstance(code, str) and code in _ERRORS,
        message if isinstance(message, str) and message else None,
    )


def span_of_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A span as Phoenix's data frame of spans has it, with a column per attribute, as `printed_span` takes it."""
    if not {"context.trace_id", "context.span_id"} <= row.keys():
        return row
    found: dict[str, Any] = {"context": {}, "attributes": {}}
    for column, value in row.items():
        place, dot, name = column.partition(".")
        if dot and place in ("context", "attributes"):
            found[place] |= {} if value is None else {name: value}
        else:
            found[column] = value
    return found


def hexadecimal(owner: Fields, key: str, *, required: bool = True) -> str | None:
    """An id that a console exporter printed, as OTLP writes it."""
    text = owner.text(key, required=required)
    return text.removeprefix("0x") if text else None


def plain_attributes(owner: Fields) -> dict[str, Any]:
    """Attributes that are a plain object."""
    return dict(fitting(dict(owner.mapping("attributes").value), (*owner.path, "attributes"), owner.faults))
