"""Turn a trace into a turn: its query, its answer, and each tool call once, however many spans report it.

The answer is the last thing that an agent said to the user: a hand-off or a sub-agent may have said it. What is said
within a tool call is its result, and what a check on the agent says is for nobody.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from agentic_bayes.records.wire.chat import NO_ANSWER, ORPHANS, Message, paragraphs, token_totals, unanswered
from agentic_bayes.records.wire.offered import offered_tools
from agentic_bayes.records.wire.options import ReadOptions
from agentic_bayes.records.wire.scores import NOT_SCORED, chosen_score
from agentic_bayes.records.wire.thoughts import REASONING
from agentic_bayes.records.wire.tracing.calls import MergedCalls
from agentic_bayes.records.wire.tracing.spans import Rating, Span, SpanNames

NOT_RECORDED = "the spans hold no messages: was their content recorded?"


@dataclass(slots=True)
class Trace:
    """The relevant spans of one trace, and the tree of all its spans."""

    spans: list[Span] = field(default_factory=list)
    parents: dict[str, str] = field(default_factory=dict)
    services: dict[str, str] = field(default_factory=dict)
    # names that spans give which are not about agents, with the time of the span
    wrappers: list[tuple[tuple[int, str], SpanNames]] = field(default_factory=list)
    about: list[SpanNames] = field(default_factory=list)  # names that the resources of the spans give
    # the latest model call within each span: its messages repeat those of the earlier ones
    latest: dict[str, Span] = field(default_factory=dict)
    one_run: bool = False  # whether its agents are known to have worked for one answer, by hand-offs
    # the attributes of all spans and of their resources, if the caller looks into them
    raw: list[tuple[tuple[int, str], Any]] = field(default_factory=list)

    def add(self, span: Span, service: str | None = None) -> None:
        """Take in one span."""
        self.parents[span.id] = span.parent
        if not span.counts:
            if span.names:
                self.wrappers.append((span.order, span.names))
            return
        self.spans.append(span)
        if service is not None:
            self.services[span.id] = service
        if span.kind == "chat" and span.inputs:
            other = self.latest.setdefault(span.parent, span)
            if other is not span:
                earlier, later = sorted((other, span), key=lambda one: one.order)
                self.latest[span.parent] = later
                if earlier.inputs == later.inputs[: len(earlier.inputs)]:
                    earlier.inputs = []  # held once

    def names(self, spans: Iterable[Span]) -> list[SpanNames]:
        """What these spans, those around them and their resources say, in this order."""
        around = sorted(self.wrappers, key=lambda one: one[0])
        return [*(span.names for span in spans), *(names for _, names in around), *self.about]

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
class TraceTurn:
    """One trace as a turn."""

    trace: str
    interaction: dict[str, Any]
    system: str
    tools: list[Any]  # the tools offered
    names: list[SpanNames]  # what the spans say, the most telling first
    service: str | None
    raw: list[Any]
    fault: str | None  # why it must be refused

    def name(self, part: str) -> Any:
        """The first of the names of this kind."""
        return first_given(getattr(names, part) for names in self.names)


def first_given(names: Iterable[Any]) -> Any:
    """The first that is given."""
    return next((name for name in names if name not in (None, "")), None)


@dataclass(frozen=True, slots=True)
class _TraceSteps:
    """The spans of a trace by kind, each ordered by time."""

    chats: list[Span]
    agents: list[Span]
    tools: list[Span]
    outer: list[Span]  # agents that no other agent called
    main: list[Span]  # the model calls that speak to the user
    asked: list[Span]  # those of them whose agent the user asked

    @property
    def tells_calls(self) -> bool:
        """Whether calls would be recorded if there were any: texts of whole runs tell of none."""
        agents = (span for span in self.agents if (span.inputs or span.outputs) and not span.only_text)
        return bool(self.tools) or any(s.inputs or s.outputs for s in (*self.chats, *agents))

    @property
    def spoken(self) -> bool:
        """Whether the spans record any messages."""
        return any(s.inputs or s.outputs or s.raw_input or s.raw_output for s in (*self.chats, *self.agents))


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """What encloses a span."""

    chat: bool  # a model call
    agent: str | None  # the nearest agent
    again: bool  # another span of the same tool
    tool: bool  # any tool: what is said within it is its result
    aside: bool  # a check on the agent


def _around(trace: Trace) -> dict[str, _Surroundings]:
    """Find what encloses each span of a trace, in one walk from the outermost spans inwards."""
    spans = {span.id: span for span in trace.spans}
    outermost, within = trace.tree()
    found: dict[str, _Surroundings] = {}
    agents: list[str] = []
    kinds: Counter[str] = Counter()
    # a tool span within a span of the same tool is one call, recorded by client and server
    tools: Counter[str] = Counter()
    way = [(identity, True) for identity in outermost]
    while way:
        identity, enters = way.pop()
        span = spans.get(identity)
        kind = span.kind if span else "none"
        tool = span.call.name if span and kind == "tool" and span.call else None
        if enters:
            found[identity] = _Surroundings(
                kinds["chat"] > 0,
                agents[-1] if agents else None,
                tool is not None and tools[tool] > 0,
                kinds["tool"] > 0,
                kinds["aside"] > 0 or kind == "aside",
            )
            way.append((identity, False))
            way += [(inner, True) for inner in within.get(identity, ())]
        step = 1 if enters else -1
        kinds[kind] += step
        if tool is not None:
            tools[tool] += step
        if kind == "agent" and enters:
            agents.append(identity)
        elif kind == "agent":
            agents.pop()
    return found


def _steps(trace: Trace) -> _TraceSteps:
    around = _around(trace)
    spans = [span for span in trace.spans if not around[span.id].aside]
    # two libraries may record the same model call, one span within the other or next to it
    chats = _without_twins([span for span in spans if span.kind == "chat" and not around[span.id].chat])
    agents = [span for span in spans if span.kind == "agent" or _speaks_for_all(span, trace)]
    tools = [span for span in spans if span.kind == "tool" and not around[span.id].again]
    outer = [span for span in agents if around[span.id].agent is None and not around[span.id].tool]
    outermost = {None, *(span.id for span in outer)}
    main = [span for span in chats if not around[span.id].tool]
    asked = [span for span in main if around[span.id].agent in outermost]
    return _TraceSteps(chats, agents, tools, outer, main or chats, asked or main or chats)


def _speaks_for_all(span: Span, trace: Trace) -> bool:
    """Whether this is an outermost step whose input and output are those of the trace."""
    said = span.inputs or span.outputs or span.raw_input or span.raw_output
    return span.kind == "step" and bool(said) and span.parent not in trace.parents


def _without_twins(chats: list[Span]) -> list[Span]:
    """Without model calls that another library recorded at the same time, with the same calls by the same ids."""
    kept: list[Span] = []
    open_until: dict[Any, int] = {}
    for span in chats:
        ids = tuple(call.id for message in span.outputs for call in message.calls)
        if ids and None not in ids:
            if span.begin < open_until.get(ids, 0):
                continue
            open_until[ids] = span.end
        kept.append(span)
    return kept


def _failure(steps: _TraceSteps, answer: str | None, calls: MergedCalls | None, *, scored: bool) -> str | None:
    """Why there is no answer to judge; errors on the way to an answer do not matter."""
    last = [*steps.outer[-1:], *(steps.main[-1:] if answer is None or not steps.outer else ())]
    if error := first_given(span.error for span in last):
        return str(error)
    if answer is not None or (scored and not steps.tools and not steps.spoken):
        return None
    if not steps.spoken:
        return NOT_RECORDED
    waiting = [one.call.name for one in calls.made if not one.result] if calls else []
    return NO_ANSWER + (f": {unanswered(waiting)}" if waiting else "")


def trace_turn(identity: str, trace: Trace, counts: Counter[str], options: ReadOptions) -> TraceTurn | None:
    """Build a trace's turn; None if it calls no model, agent or tool."""
    trace.spans.sort(key=lambda span: span.order)
    steps = _steps(trace)
    if not (steps.chats or steps.agents or steps.tools):
        return None
    query, asking = _query(steps)
    answer = _last_said(steps)
    _count_doubts(trace, steps, asking, answer, counts)
    ratings = sorted((r for s in trace.spans for r in s.ratings), key=lambda r: (r.time, r.name, str(r.value)))
    scores = _scores(ratings)
    chosen = chosen_score({name: score["value"] for name, score in scores.items()}, options)
    calls = _calls(steps) if steps.tells_calls else None
    error = _failure(steps, answer, calls, scored=chosen.value is not None)
    metadata = {
        "trace_id": identity,
        "model": first_given(span.model for span in (*steps.main, *steps.chats, *steps.agents)),
        "tokens": token_totals(s.tokens for s in steps.chats) or token_totals(s.tokens for s in steps.outer),
        "seconds": _seconds(trace.spans),
        "messages_before": asking.before if asking else 0,
        REASONING: _thoughts(steps),
        "scores": scores,
        NOT_SCORED: chosen.reason,
        "numbers_not_finite": sum(span.not_finite for span in trace.spans),
        "content": None if steps.spoken else "not recorded",
    }
    interaction: dict[str, Any] = {
        "query": query,
        "assistant": answer if answer is not None or error else "",
        "metadata": {key: value for key, value in metadata.items() if value},
    }
    if calls is not None:
        interaction["agentic"] = {"tools_used": [one.record(step) for step, one in enumerate(calls.made, start=1)]}
        if orphans := calls.orphans():
            counts["orphans"] += orphans
            interaction["metadata"][ORPHANS] = orphans
    if error is not None:
        interaction["error"] = error
    if chosen.value is not None and error is None:
        interaction["recorded_score"] = chosen.value
    ordered = (*steps.outer, *trace.spans)
    names = trace.names(ordered)
    counts["tasks"] += len({one.task for one in names if one.task is not None}) > 1
    if reference := first_given(one.reference for one in names):
        interaction["ground_truth_assistant"] = reference
    return TraceTurn(
        trace=identity,
        interaction=interaction,
        system=first_given(span.system for span in (*steps.outer, *steps.asked, *steps.main)) or "",
        tools=_offered(trace.spans),
        names=names,
        service=first_given(trace.services.get(span.id) for span in ordered),
        raw=[one for _, one in sorted(trace.raw, key=lambda one: one[0])],
        fault=chosen.fault,
    )


def _count_doubts(
    trace: Trace, steps: _TraceSteps, asking: Span | None, answer: str | None, counts: Counter[str]
) -> None:
    """Count what is doubtful about a turn, and what of its spans was left out."""
    several = sum(span.kind == "agent" for span in steps.outer) > 1 and not trace.one_run
    counts["several"] += several
    questions = {user_text(span.inputs) for span in steps.asked} - {""}
    counts["questions"] += asking in steps.main and len(questions) > 1 and not several
    last_said = (_answer(steps.main[-1]) or "") if steps.main else ""
    counts["blank"] += answer is not None and not answer.strip() and bool(last_said.strip())
    for span in trace.spans:
        for what, times in span.unknown.items():
            counts[f"unknown: {what}"] += times


def _query(steps: _TraceSteps) -> tuple[str, Span | None]:
    """What the user asked, and the span that says so."""
    for span in (*steps.outer, *reversed(steps.asked), *reversed(steps.main)):
        if text := user_text(span.inputs):
            return text, span
    for span in steps.outer:  # the state of a graph repeats what it was asked
        if text := user_text(span.outputs):
            return text, span
    return first_given(span.raw_input for span in steps.outer) or "", None


def user_text(messages: Iterable[Message]) -> str:
    """What the user said in these messages."""
    return "\n\n".join(message.text for message in messages if message.role == "user" and message.text)


def _last_said(steps: _TraceSteps) -> str | None:
    """The last thing said to the user; None if a call comes last."""
    for span in reversed(steps.outer):
        if (answer := _answer(span)) is not None:
            return answer
    # the last model call counts even if it returned nothing
    if steps.main[-1:] and any(span.outputs for span in steps.main):
        return _answer(steps.main[-1])
    return next((span.raw_output for span in reversed(steps.outer) if span.raw_output), None)


def _answer(span: Span) -> str | None:
    """The text after the last call; None if a call comes last."""
    worked = [place for place, message in enumerate(span.outputs) if message.calls or message.role == "tool"]
    after = [message.text for message in span.outputs[worked[-1] + 1 if worked else 0 :] if message.role == "assistant"]
    return paragraphs(after) if after else None


def _offered(spans: Iterable[Span]) -> list[Any]:
    """The tools that any span offers, each once: its definition rather than its name."""
    found: dict[str, Any] = {}
    for tool in offered_tools([tool for span in spans for tool in span.tools]):
        name = tool if isinstance(tool, str) else tool["name"]
        if name not in found or isinstance(found[name], str):
            found[name] = tool
    return list(found.values())


def _thoughts(steps: _TraceSteps) -> list[str]:
    """What the models thought, each thought once: agents repeat those of their model calls."""
    spans = (*steps.chats, *steps.agents)
    thoughts = (thought for span in spans for message in span.outputs for thought in message.reasoning)
    return list(dict.fromkeys(thought for thought in thoughts if thought.strip()))


def _seconds(spans: list[Span]) -> float | None:
    """From the beginning of the first span to the end of the last, if both are known."""
    ends = [span.end for span in spans if span.end]
    return (max(ends) - spans[0].begin) / 1e9 if ends and spans[0].begin else None


def _scores(ratings: list[Rating]) -> dict[str, dict[str, Any]]:
    """All scores by name; one that repeats gets a number."""
    scores: dict[str, dict[str, Any]] = {}
    times: Counter[str] = Counter()
    for rating in ratings:
        name = rating.name
        while name in scores:
            times[rating.name] += 1
            name = f"{rating.name} ({times[rating.name] + 1})"
        scores[name] = {"value": rating.value, **rating.notes}
    return scores


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
