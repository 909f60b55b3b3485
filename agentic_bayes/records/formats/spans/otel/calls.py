"""Merge the tool calls that model, agent and tool spans each report, so every call appears once."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from agentic_bayes.records.formats.spans.otel.spans import Span
from agentic_bayes.records.wire.chat import ChatCall, Message


@dataclass(slots=True)
class _MergedCall:
    """One call, merged from all spans that report it."""

    call: ChatCall
    result: tuple[Any, ...] = ()
    # the latest source that reported the call, and the latest that gave its result
    reported_by: int = -1
    answered_by: int = -1
    executed: bool = False

    def record(self, step: int) -> dict[str, Any]:
        """The call in the native format."""
        return {
            "tool_name": self.call.name,
            "parameters": self.call.arguments,
            "step": step,
            **({"result": self.result[0]} if self.result else {}),
        }


class MergedCalls:
    """Calls that several sources report: first messages, then the tools' own spans.

    A reported call is looked up in queues of the calls it may be. A source reports each call once, so it goes through
    each queue once, however many calls there are.
    """

    def __init__(self) -> None:
        self.made: list[_MergedCall] = []
        self._queues: defaultdict[tuple[Any, ...], list[_MergedCall]] = defaultdict(list)
        self._source = -1
        # how far this source has got in each queue, and how far all sources have got in giving results to calls
        self._places: Counter[tuple[Any, ...]] = Counter()
        self._answered = 0
        # results that came before their calls, and how many other results belong to no call
        self._early: dict[tuple[str, Any], Any] = {}
        self._lost: Counter[Any] = Counter()

    def _begin(self) -> None:
        self._source += 1
        self._places.clear()

    def report(self, dialogues: Iterable[Iterable[Message]]) -> None:
        """Take in the messages of one source; a result without an id goes to a call of its own dialogue."""
        self._begin()
        waiting: deque[_MergedCall] = deque()
        lost: Counter[Any] = Counter()
        for begins, message in ((not n, one) for dialogue in dialogues for n, one in enumerate(dialogue)):
            if begins:
                waiting.clear()
            for call in message.calls:
                one = self._same(call) or self._appended(call)
                one.reported_by = self._source
                waiting.append(one)
            if message.role == "tool":
                result = message.text if message.result is None else message.result
                if not self._give(message.answers, result, waiting):
                    lost[message.answers, _hashable(result)] += 1
        for what, times in lost.items():  # several sources may repeat it
            self._lost[what] = max(self._lost[what], times)

    def run(self, spans: Iterable[Span]) -> None:
        """Take in the tools' own spans: the calls as they were executed."""
        self._begin()
        for span in spans:
            if span.call is None:
                continue
            ran = self._asked(span.call) or self._appended(span.call)
            ran.executed = True
            if not ran.call.arguments:
                ran.call = replace(ran.call, arguments=span.call.arguments)
            ran.result = ran.result or span.result
        self._begin()
        for (identity, what), result in self._early.items():
            if ("id", identity) not in self._queues:
                self._lost[identity, what] = 1
            elif one := self._next(("id", identity), lambda one: bool(one.result)):
                one.result = (result,)

    def orphans(self) -> int:
        """How many results belong to no call."""
        return self._lost.total()

    def _appended(self, call: ChatCall) -> _MergedCall:
        one = _MergedCall(call)
        self.made.append(one)
        for key in ("like", call.name, _hashable(call.arguments)), ("named", call.name):
            self._queues[key].append(one)
            if call.id is None:
                self._queues["bare", *key].append(one)
        self._queue_by_id(one)
        return one

    def _queue_by_id(self, one: _MergedCall) -> None:
        if one.call.id is not None:
            self._queues["id", one.call.id].append(one)
            self._queues["id", one.call.id, one.call.name].append(one)

    def _next(self, key: tuple[Any, ...], used: Callable[[_MergedCall], bool]) -> _MergedCall | None:
        """The first unused call in a queue; for one source, a used call stays used."""
        queue = self._queues.get(key, [])
        place = self._places[key]
        while place < len(queue) and used(queue[place]):
            place += 1
        self._places[key] = place
        return queue[place] if place < len(queue) else None

    def _like(self, call: ChatCall, key: tuple[Any, ...], used: Callable[[_MergedCall], bool]) -> _MergedCall | None:
        """The first call in a queue that may be this one: two calls that both have an id are never merged here."""
        if call.id is None:
            return self._next(key, used)
        one = self._next(("bare", *key), lambda one: one.call.id is not None or used(one))
        if one is not None:
            one.call = replace(one.call, id=call.id)
            self._queue_by_id(one)
        return one

    def _same(self, call: ChatCall) -> _MergedCall | None:
        """The call that a message repeats: the one with its id or, without ids, an equal one not matched yet."""
        if call.id is not None and (known := self._queues.get(("id", call.id, call.name))):
            return known[0]
        key = "like", call.name, _hashable(call.arguments)
        return self._like(call, key, lambda one: one.reported_by == self._source)

    def _asked(self, call: ChatCall) -> _MergedCall | None:
        """The requested call that ran here: the one with its id, else an equal one, else one with unknown arguments."""

        def ran(one: _MergedCall) -> bool:
            return one.executed

        found = self._next(("id", call.id), ran) if call.id is not None else None
        found = found or self._like(call, ("like", call.name, _hashable(call.arguments)), ran)
        unknown = ("like", call.name, _hashable({})) if call.arguments else ("named", call.name)
        return found or self._like(call, unknown, ran)

    def _give(self, identity: str | None, result: Any, waiting: deque[_MergedCall]) -> bool:
        """Give a result to its call; False if there is none."""
        if identity is None:
            one = self._waiting(waiting)
        elif ("id", identity) in self._queues:
            one = self._next(("id", identity), lambda one: one.answered_by == self._source)
            if one is None and self._queues["id", identity][-1].result == (result,):
                return True  # reported twice
        else:
            self._early.setdefault((identity, _hashable(result)), result)
            return True
        if one is None:
            return False
        one.answered_by = self._source
        one.result = one.result or (result,)
        return True

    def _waiting(self, waiting: deque[_MergedCall]) -> _MergedCall | None:
        """The first call of this source without a result or, if all have one, the first of all sources."""
        while waiting and waiting[0].answered_by == self._source:
            waiting.popleft()
        if waiting:
            return waiting[0]
        while self._answered < len(self.made) and self.made[self._answered].result:
            self._answered += 1
        return self.made[self._answered] if self._answered < len(self.made) else None


def _hashable(value: Any) -> Any:
    """A JSON value as a hashable key; equal values give equal keys."""
    if isinstance(value, dict):
        return "{}", frozenset((key, _hashable(item)) for key, item in value.items())
    if isinstance(value, list):
        return "[]", tuple(map(_hashable, value))
    return value
