"""Turn the traces of a file into conversations: traces of one session are its turns, ordered by time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentic_bayes.records.base import short
from agentic_bayes.records.wire.json_text import NO_CONVERSATION, NO_VALUE, Parsed, broken
from agentic_bayes.records.wire.layout import Origin, with_doubts
from agentic_bayes.records.wire.offered import AVAILABLE_TOOLS, offered_tools
from agentic_bayes.records.wire.tracing.turns import Trace, TraceTurn, first_given, trace_turn

_DOUBTS = {
    "no turn": "traces ignored because they call no model, agent or tool",
    "several": "traces with several agent runs, each read as one turn that ends with the last answer",
    "mixed": "traces that name several conversations (the first name was used)",
    "tasks": "traces that name several tasks (the first name was used)",
    "questions": "traces whose model calls were asked different things (the last was read as the user's question)",
    "blank": "traces whose outermost step returned blank text though its model had answered (the blank is the answer)",
    "orphans": "tool results left out because they belong to no recorded call",
}


class _TraceGroup(NamedTuple):
    """What traces have in common that are turns of one conversation, and whether it is a name that they give."""

    kind: str
    id: str


@dataclass(slots=True)
class Traces:
    """The traces of a file, and what is to be said about it."""

    format: str
    traces: defaultdict[str, Trace] = field(default_factory=lambda: defaultdict(Trace))
    counts: Counter[str] = field(default_factory=Counter)
    conversations: int = 0

    def doubts(self) -> list[str]:
        """Warnings about the file."""
        known = [f"{text}: {self.counts[key]:,}" for key, text in _DOUBTS.items() if self.counts[key]]
        unknown = {key.removeprefix("unknown: "): times for key, times in self.counts.items() if "unknown: " in key}
        listed = ", ".join(f"{what} ({times:,})" for what, times in sorted(unknown.items()))
        return [*known, f"left out because they could not be read: {listed}"] if listed else known

    def told(self, origin: Origin, *, wrong: bool, nothing: str) -> Iterator[Parsed]:
        """The conversations and the warnings, or `nothing` if there is no conversation and nothing was wrong."""
        yield from with_doubts(self.read(origin), self.doubts)
        if not self.conversations and not wrong:
            yield broken("", f"{NO_CONVERSATION}: {nothing}")

    def read(self, origin: Origin) -> Iterator[Parsed]:
        """Build the conversations, ordered by time."""
        for session, listed in sorted(self._sessions().items(), key=lambda item: (min(item[1]), item[0])):
            turns = []
            for _, identity in sorted(listed):
                # drop each trace once its turn is built, so that nothing is held twice
                turn = trace_turn(identity, self.traces.pop(identity), self.counts, origin.options)
                if turn is None:
                    self.counts["no turn"] += 1
                else:
                    turns.append(turn)
            if turns:
                self.conversations += 1
                raw = tuple(one for turn in turns for one in turn.raw)
                faults = tuple(("", turn.fault) for turn in turns if turn.fault)
                record = NO_VALUE if faults else self._record(session.id, turns, origin)
                yield Parsed(f"{session.kind} {short(session.id)}", record, faults, raw=raw)

    def _sessions(self) -> dict[_TraceGroup, list[tuple[int, str]]]:
        """The traces of each session, with their times; traces of several tasks or trials are several sessions."""
        named: defaultdict[_TraceGroup, list[tuple[int, str]]] = defaultdict(list)
        tasks: defaultdict[str, set[str]] = defaultdict(set)
        trials: defaultdict[str, set[int]] = defaultdict(set)
        found = []
        for identity, trace in self.traces.items():
            if not trace.spans:
                continue
            spans = sorted(trace.spans, key=lambda span: span.order)
            names = trace.names(spans)
            sessions = list(dict.fromkeys(one.session for one in names if one.session is not None))
            self.counts["mixed"] += len(sessions) > 1
            task, trial = first_given(one.task for one in names), first_given(one.trial for one in names)
            session = sessions[0] if sessions else None
            if session is not None:
                tasks[session] |= {task} - {None}
                trials[session] |= {trial} - {None}
            found.append((identity, spans[0].begin, session, task, trial))
        for identity, begin, session, task, trial in found:
            key = _TraceGroup("trace", identity)
            if session is not None:
                several = len(tasks[session]) > 1 or len(trials[session]) > 1
                attempt = (task, None if trial is None else f"trial {trial}") if several else ()
                key = _TraceGroup("conversation", ", ".join(filter(None, (session, *attempt))))
            named[key].append((begin, identity))
        return named

    def _record(self, session: str, turns: list[TraceTurn], origin: Origin) -> dict[str, Any]:
        task = first_given(turn.name("task") for turn in turns) or session
        trial = first_given(turn.name("trial") for turn in turns)
        for number, turn in enumerate(turns, start=1):
            turn.interaction["qa_id"] = f"{task}, turn {number}"
        tools = offered_tools([tool for turn in turns for tool in turn.tools])
        return {
            "session_id": session,
            "assistant_id": first_given(turn.name("agent") for turn in turns)
            or origin.given_agent
            or first_given(turn.service for turn in turns)
            or origin.own_agent,
            "task_id": task,
            **({} if trial is None else {"trial": trial}),
            "context": first_given(turn.system for turn in turns) or "",
            "conversation": [turn.interaction for turn in turns],
            "metadata": {
                "format": self.format,
                "traces": [turn.trace for turn in turns],
                **({AVAILABLE_TOOLS: tools} if tools else {}),
            },
        }
