"""Read OpenTelemetry GenAI spans (OTLP as JSON, one object or JSON Lines) as conversations, one turn per trace.

Traces with the same ``gen_ai.conversation.id`` form a conversation, ordered by time; any other trace is a conversation
of its own. The spans of a trace may be anywhere in the file, in any order.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.formats.spans.otel.calls import MergedCalls
from agentic_bayes.records.formats.spans.otel.spans import Rating, Span, attributes_of, span_of
from agentic_bayes.records.wire.chat import NO_ANSWER, ORPHANS
from agentic_bayes.records.wire.fields import Faults, Fields
from agentic_bayes.records.wire.json_text import JsonPart, Parsed, broken, parts
from agentic_bayes.records.wire.layout import Origin, Shape, with_doubts
from agentic_bayes.records.wire.strict_json import MAX_DEPTH

NAME = "otel"

SPANS = "resourceSpans"
OTHER_SIGNALS = frozenset({"resourceLogs", "resourceMetrics", "resourceProfiles"})
_TOO_DEEP = f"must not be nested deeper than {MAX_DEPTH} levels"
_SCOPES = ("scopeSpans", "instrumentationLibrarySpans")


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    return bool(shape.record_keys & {SPANS, *OTHER_SIGNALS})


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The conversations of a file."""
    spans = _FileSpans()
    wrong = False
    for part in parts(stream, {SPANS}):
        for parsed in _taken(part, spans):
            wrong = True
            yield parsed
    yield from with_doubts(_conversations(spans, origin), spans.doubts)
    if not spans.conversations and not wrong:
        none = f"none of its {spans.total:,} spans calls a model, agent or tool (gen_ai.*)"
        yield broken("", f"holds no conversation: {none}")


@dataclass(slots=True)
class _OtelTrace:
    """The relevant spans of one trace, and the tree of all its spans."""

    spans: list[Span] = field(default_factory=list)
    parents: dict[str, str] = field(default_factory=dict)
    services: dict[str, str] = field(default_factory=dict)
    # the latest model call within each span: its messages repeat those of the earlier ones
    latest: dict[str, Span] = field(default_factory=dict)

    def add(self, span: Span, service: str | None) -> None:
        self.parents[span.id] = span.parent
        if span.kind == "none" and not span.ratings:
            return
        self.spans.append(span)
        if service is not None:
            self.services[span.id] = service
        if span.kind == "chat" and span.inputs:
            other = self.latest.setdefault(span.parent, span)
            if other is not span:
                earlier, later = sorted((other, span), key=lambda one: one.order)
                self.latest[span.parent] = later
                earlier.inputs = []

    def tree(self) -> tuple[list[str], dict[str, list[str]]]:
        """Ids of the outermost spans, and for every span the ids of its direct children."""
        outermost: list[str] = []
        within: defaultdict[str, list[str]] = defaultdict(list)
        cut = self._circles()
        for identity, parent in self.parents.items():
            if parent not in self.parents or identity in cut:
                outermost.append(identity)
            else:
                within[parent].append(identity)
        return outermost, within

    def _circles(self) -> set[str]:
        """The smallest id of each cycle of spans that are each other's parents."""
        cut: set[str] = set()
        done: set[str] = set()
        for start in self.parents:
            path: dict[str, None] = {}
            here = start
            while here in self.parents and here not in done and here not in path:
                path[here] = None
                here = self.parents[here]
            if here in path:
                way = list(path)
                cut.add(min(way[way.index(here) :]))
            done.update(path)
        return cut


@dataclass(slots=True)
class _FileSpans:
    """The spans of a file."""

    traces: defaultdict[str, _OtelTrace] = field(default_factory=lambda: defaultdict(_OtelTrace))
    seen: dict[tuple[str, str], bytes] = field(default_factory=dict)
    known: bool = False
    total: int = 0
    of_others: int = 0
    conversations: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def doubts(self) -> list[str]:
        """Warnings about the file."""
        found = []
        if self.of_others:
            found.append(
                f"spans ignored because they have no GenAI data (gen_ai.*): {self.of_others:,} of {self.total:,}"
            )
        texts = {
            "other": "batches of logs or metrics ignored (only spans are read)",
            "no turn": "traces ignored because they call no model, agent or tool",
            "several": "traces with several agent runs, each read as one turn from first query to last answer",
            "mixed": "traces that name several conversations (the first name was used)",
            "orphans": "tool results left out because they belong to no recorded call",
        }
        return found + [f"{text}: {self.counts[key]:,}" for key, text in texts.items() if self.counts[key]]


def _taken(part: JsonPart, spans: _FileSpans) -> Iterator[Parsed]:
    """Take in one part of the file, and yield its problems."""
    match part.path:
        case _ if part.faults:
            spans.known = True
            yield Parsed(part.place, faults=part.faults)
        case ():
            if not spans.known:
                yield broken(part.place, f"must have {SPANS!r}")
            spans.known = False
        case (key, int()) if key == SPANS:
            yield from _resource(Fields(part.value, (), Faults()), part.place, spans)
        case (key,) if key == SPANS:
            spans.known = True
            if not isinstance(part.value, list | None):
                yield broken(part.place, f"must be a list, got {short(part.value)}")
        case (str(key),) if key in OTHER_SIGNALS:
            spans.known = True
            spans.counts["other"] += 1
        case (int(),):
            spans.known = True
            faults = Faults()
            document = Fields(part.value, (), faults)
            if not faults and SPANS not in document:
                faults.add((), f"must have {SPANS!r}, got {short(part.value)}")
            for place, resource in enumerate(document.mappings(SPANS)):
                yield from _resource(resource, f"{part.place}.{SPANS}[{place}]", spans)
            if faults:
                yield Parsed(part.place, faults=tuple(faults))


def _resource(resource: Fields, place: str, spans: _FileSpans) -> Iterator[Parsed]:
    """Take in the spans of one resource, and yield their problems."""
    faults = Faults()
    own = Fields(resource.value, (), faults)
    try:
        service = attributes_of(own.mapping("resource")).get("service.name")
    except RecursionError:
        service = None
        faults.add(("resource",), _TOO_DEEP)
    for key in _SCOPES:
        for number, scope in enumerate(own.mappings(key)):
            for position, raw in enumerate(scope.sequence("spans")):
                yield from _one(raw, f"{place}.{key}[{number}].spans[{position}]", service, spans)
    together = (*resource.faults, *faults)
    if together:
        yield Parsed(place, faults=tuple(dict.fromkeys(together)))


def _one(raw: Any, where: str, service: Any, spans: _FileSpans) -> Iterator[Parsed]:
    faults = Faults()
    spans.total += 1
    try:
        span = span_of(Fields(raw, (), faults))
        text = json.dumps(raw, sort_keys=True)
    except RecursionError:
        faults.add((), _TOO_DEEP)
        span, text = None, ""
    if span is not None and not faults:
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        earlier = spans.seen.setdefault((span.trace, span.id), digest)
        if earlier is digest:
            spans.of_others += span.kind == "none" and not span.ratings
            spans.traces[span.trace].add(span, service if isinstance(service, str) and service.strip() else None)
        elif earlier == digest:  # sent twice
            spans.total -= 1
        else:
            faults.add(("spanId",), f"must be unique in its trace, got {short(span.id)} for two different spans")
    if faults:
        yield Parsed(where, faults=tuple(faults))


@dataclass(slots=True)
class _OtelTurn:
    """One trace as a turn."""

    trace: str
    interaction: dict[str, Any]
    system: str
    agent: str | None
    task: str | None
    service: str | None


def _conversations(spans: _FileSpans, origin: Origin) -> Iterator[Parsed]:
    """Build the conversations, ordered by time."""
    named: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for identity, trace in spans.traces.items():
        if not trace.spans:
            continue
        trace.spans.sort(key=lambda span: span.order)
        names = list(dict.fromkeys(span.conversation for span in trace.spans if span.conversation is not None))
        spans.counts["mixed"] += len(names) > 1
        key = ("conversation", names[0]) if names else ("trace", identity)
        named[key].append((trace.spans[0].begin, identity))
    for (kind, session), listed in sorted(named.items(), key=lambda item: (min(item[1]), item[0])):
        turns = []
        for _, identity in sorted(listed):
            # drop each trace once its turn is built, so that nothing is held twice
            turn = _turn(identity, spans.traces.pop(identity), spans.counts)
            if turn is None:
                spans.counts["no turn"] += 1
            else:
                turns.append(turn)
        if not turns:
            continue
        task = _first_given(turn.task for turn in turns) or session
        for number, turn in enumerate(turns, start=1):
            turn.interaction["qa_id"] = f"{task}, turn {number}"
        record = {
            "session_id": session,
            "assistant_id": _first_given(turn.agent for turn in turns)
            or origin.given_agent
            or _first_given(turn.service for turn in turns)
            or origin.own_agent,
            "task_id": task,
            "context": _first_given(turn.system for turn in turns) or "",
            "conversation": [turn.interaction for turn in turns],
            "metadata": {"format": NAME, "traces": [turn.trace for turn in turns]},
        }
        spans.conversations += 1
        yield Parsed(f"{kind} {short(session)}", record)


def _first_given(names: Iterable[str | None]) -> str | None:
    return next((name for name in names if name), None)


@dataclass(frozen=True, slots=True)
class _TraceSteps:
    """The spans of a trace by kind, each ordered by time."""

    chats: list[Span]
    agents: list[Span]
    tools: list[Span]
    # agents that no other agent called, and the model calls that they make
    outer: list[Span]
    main: list[Span]

    @property
    def recorded(self) -> bool:
        """Whether the spans record any messages or tool calls."""
        return bool(self.tools) or any(span.inputs or span.outputs for span in (*self.chats, *self.agents))


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """What encloses a span: a model call or not, the nearest agent, and whether another span of the same tool does."""

    chat: bool
    agent: str | None
    again: bool


def _around(trace: _OtelTrace) -> dict[str, _Surroundings]:
    """Find what encloses each span of a trace, in one walk from the outermost spans inwards."""
    spans = {span.id: span for span in trace.spans}
    outermost, within = trace.tree()
    found: dict[str, _Surroundings] = {}
    chats = 0
    agents: list[str] = []
    # a tool span within a span of the same tool is one call, recorded by client and server
    tools: Counter[str] = Counter()
    way = [(identity, True) for identity in outermost]
    while way:
        identity, enters = way.pop()
        span = spans.get(identity)
        kind = span.kind if span else "none"
        tool = span.call.name if span and kind == "tool" and span.call else None
        if enters:
            again = tool is not None and tools[tool] > 0
            found[identity] = _Surroundings(chats > 0, agents[-1] if agents else None, again)
            way.append((identity, False))
            way += [(inner, True) for inner in within.get(identity, ())]
        step = 1 if enters else -1
        chats += step * (kind == "chat")
        if tool is not None:
            tools[tool] += step
        if kind == "agent" and enters:
            agents.append(identity)
        elif kind == "agent":
            agents.pop()
    return found


def _steps(trace: _OtelTrace) -> _TraceSteps:
    around = _around(trace)
    # two libraries may record the same model call, one span within the other
    chats = [span for span in trace.spans if span.kind == "chat" and not around[span.id].chat]
    agents = [span for span in trace.spans if span.kind == "agent"]
    tools = [span for span in trace.spans if span.kind == "tool" and not around[span.id].again]
    outer = [span for span in agents if around[span.id].agent is None]
    outermost = {None, *(span.id for span in outer)}
    main = [span for span in chats if around[span.id].agent in outermost]
    return _TraceSteps(chats, agents, tools, outer, main or chats)


def _failure(steps: _TraceSteps, answer: str | None, score: float | None) -> str | None:
    """Why there is no answer to judge; errors on the way to an answer do not matter."""
    last = [*steps.outer[-1:], *(steps.main[-1:] if answer is None or not steps.outer else ())]
    if error := _first_given(span.error for span in last):
        return error
    if answer is not None or (score is not None and not steps.recorded):
        return None
    return NO_ANSWER if steps.recorded else "the spans hold no messages: was their content recorded?"


def _turn(identity: str, trace: _OtelTrace, counts: Counter[str]) -> _OtelTurn | None:
    """Build a trace's turn; None if it calls no model, agent or tool."""
    steps = _steps(trace)
    outer, main, recorded = steps.outer, steps.main, steps.recorded
    if not (steps.chats or steps.agents or steps.tools):
        return None
    counts["several"] += len(outer) > 1
    asking = next((span for span in (*outer, *reversed(main)) if _user_text(span)), None)
    # the last model call counts even if it returned nothing
    saying = next((span for span in (*reversed(outer), *main[-1:]) if span.outputs), None)
    answer = _answer(saying) if saying else None
    ratings = sorted((r for s in trace.spans for r in s.ratings), key=lambda r: (r.time, r.name, str(r.value)))
    score, scores, note = _scores(ratings)
    error = _failure(steps, answer, score)
    first, ends = trace.spans[0], [span.end for span in trace.spans if span.end]
    metadata = {
        "trace_id": identity,
        "model": _first_given(span.model for span in (*main, *steps.chats, *steps.agents)),
        "tokens": _tokens(steps.chats) or _tokens(outer),
        "seconds": (max(ends) - first.begin) / 1e9 if ends and first.begin else None,
        "messages_before": asking.before if asking else 0,
        "scores": scores,
        "not_scored": note,
        "numbers_not_finite": sum(span.not_finite for span in trace.spans),
        "content": None if recorded else "not recorded",
    }
    interaction: dict[str, Any] = {
        "query": _user_text(asking) if asking else "",
        "assistant": answer if answer is not None or error else "",
        "metadata": {key: value for key, value in metadata.items() if value},
    }
    if recorded:
        calls = _calls(steps)
        interaction["agentic"] = {"tools_used": [one.record(step) for step, one in enumerate(calls.made, start=1)]}
        if orphans := calls.orphans():
            counts["orphans"] += orphans
            interaction["metadata"][ORPHANS] = orphans
    if error is not None:
        interaction["error"] = error
    if score is not None and error is None:
        interaction["recorded_score"] = score
    ordered = (*outer, *trace.spans)
    return _OtelTurn(
        trace=identity,
        interaction=interaction,
        system=_first_given(span.system for span in (*outer, *main)) or "",
        agent=_first_given(span.agent for span in ordered),
        task=_first_given(span.task for span in ordered),
        service=_first_given(trace.services.get(span.id) for span in ordered),
    )


def _user_text(span: Span) -> str:
    return "\n\n".join(message.text for message in span.inputs if message.role == "user" and message.text)


def _answer(span: Span) -> str | None:
    """The text after the last call; None if a call comes last."""
    worked = [place for place, message in enumerate(span.outputs) if message.calls or message.role == "tool"]
    after = [message.text for message in span.outputs[worked[-1] + 1 if worked else 0 :] if message.role == "assistant"]
    return "\n\n".join(text for text in after if text.strip()) if after else None


def _tokens(spans: list[Span]) -> dict[str, int]:
    taken, given = (sum(span.tokens[side] for span in spans) for side in (0, 1))
    return {"input": taken, "output": given} if taken or given else {}


def _scores(ratings: list[Rating]) -> tuple[float | None, dict[str, Any], str | None]:
    """The first score, all scores, and why the first is not usable."""
    scores: dict[str, Any] = {}
    times: Counter[str] = Counter()
    for rating in ratings:
        name = rating.name
        while name in scores:
            times[rating.name] += 1
            name = f"{rating.name} ({times[rating.name] + 1})"
        scores[name] = {"value": rating.value, **rating.notes}
    if not ratings:
        return None, {}, None
    value = ratings[0].value
    if isinstance(value, (bool, int, float)) and 0 <= value <= 1:
        return float(value), scores, None
    return None, scores, f"the score {short(ratings[0].name)} is not a number in [0, 1]: {short(value)}"


def _calls(steps: _TraceSteps) -> MergedCalls:
    """The calls of a turn, each once: as models requested them, as messages repeat them, and as tools ran them."""
    calls = MergedCalls()
    # the outputs of all models are one source: each call in them is a new one
    calls.report(span.outputs for span in steps.chats)
    for span in steps.chats:
        calls.report([span.inputs])
    for span in steps.agents:
        calls.report([[*span.inputs, *span.outputs]])
    calls.run(steps.tools)
    return calls
