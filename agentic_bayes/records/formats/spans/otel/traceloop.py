"""OpenLLMetry spans (Traceloop): what its decorators and its instrumentations of frameworks add to the conventions.

It reports a LangChain tool call with all that LangChain passes on around the arguments and the result; what the tool
got and gave is within.
"""

from __future__ import annotations

from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.formats.spans.otel.attributes import RawSpan
from agentic_bayes.records.wire.tracing.messages import SpanMessages, unpacked
from agentic_bayes.records.wire.tracing.spans import Span, SpanKind
from agentic_bayes.records.wire.tracing.steps import take_call, take_step

KIND = "traceloop.span.kind"
_KINDS: dict[str, SpanKind] = {"workflow": "agent", "agent": "agent", "task": "step", "tool": "tool", "unknown": "step"}
_PASSED_ON = frozenset({"tags", "metadata", "kwargs", "input_str", "name"})


def kind_of(raw: RawSpan, span: Span) -> SpanKind:
    """What a span is; a kind that this version does not know is noted."""
    named = raw.attributes.get(KIND)
    if not isinstance(named, str) or not named:
        return "none"
    if named not in _KINDS:
        span.unknown[f"spans of kind {short(named)}"] += 1
    return _KINDS.get(named, "step")


def take(span: Span, raw: RawSpan, messages: SpanMessages) -> None:
    """Read what OpenLLMetry says about a span of this kind."""
    given = {name: unpacked(raw.attributes.get(f"traceloop.entity.{name}")) for name in ("input", "output")}
    if span.kind == "tool":
        name = raw.attributes.get("gen_ai.tool.name") or raw.attributes.get("traceloop.entity.name") or raw.name
        arguments, identity = _arguments(_first(raw, "gen_ai.tool.call.arguments", given["input"]))
        result = _output(_first(raw, "gen_ai.tool.call.result", given["output"]))
        identity = identity or (span.call.id if span.call else None)
        take_call(span, name, arguments, result, identity, messages)
    elif not (span.inputs or span.outputs):
        take_step(span, _inputs(given["input"]), _output(given["output"]), messages)


def _first(raw: RawSpan, key: str, other: Any) -> Any:
    return unpacked(raw.attributes[key]) if raw.attributes.get(key) is not None else other


def _arguments(value: Any) -> tuple[Any, str | None]:
    """The arguments of a call and its id, out of what LangChain or the decorators wrapped them in."""
    if not isinstance(value, dict):
        return value, None
    if "input_str" in value or ("inputs" in value and value.keys() <= _PASSED_ON | {"inputs"}):
        kwargs = value.get("kwargs")
        identity = kwargs.get("tool_call_id") if isinstance(kwargs, dict) else None
        inner = value.get("inputs")
        identity = identity if isinstance(identity, str) and identity else None
        return (value.get("input_str") if inner is None else inner), identity
    if value.keys() == {"args", "kwargs"} and isinstance(value["kwargs"], dict) and isinstance(value["args"], list):
        named = value["kwargs"]
        return ({"args": value["args"], **named} if value["args"] else named), None
    return value, None


def _inputs(value: Any) -> Any:
    """The input of a step, out of the same wrappings."""
    if isinstance(value, dict) and "inputs" in value and value.keys() <= _PASSED_ON | {"inputs"}:
        return value["inputs"]
    if isinstance(value, dict) and value.keys() == {"args", "kwargs"}:
        args, kwargs = value["args"], value["kwargs"]
        return args[0] if isinstance(args, list) and len(args) == 1 and not kwargs else (args or kwargs)
    return value


def _output(value: Any) -> Any:
    """The output of a step or tool, out of the same wrappings."""
    if not isinstance(value, dict) or not value.keys() <= {"output", "outputs", "kwargs"}:
        return value
    return value.get("output", value.get("outputs", value))
