"""Calls of tools in a trace, each once, of which models, agents and tools tell apart."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from agentic_bayes.records.formats.spans.otel.spans import Span
from agentic_bayes.records.wire.chat import ChatCall, Message

__all__ = ["MergedCalls"]


@dataclass(slots=True)
class _MergedCall:
    """A call that was made, gathered from all spans that tell of it."""

    call: ChatCall
    result: tuple[Any, ...] = ()
    # the latest of the sources that told of it, and that gave its result
    told_by: int = -1
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
    """Calls of which several sources tell: messages, and at last the spans of tools.

    A call is looked for in queues of those that it may be. A source tells of no call twice, so that it goes through
    each queue once, however many calls there are.
    """

    def __init__(self) -> None:
        self.made: list[_MergedCall] = []
        self._queues: defaultdict[tuple[Any, ...], list[_MergedCall]] = defaultdict(list)
        self._source = -1
        # how far this source has come in each queue, and how far all have in giving results to calls
        self._places: Counter[tuple[Any, ...]] = Counter()
        self._answered = 0
        # results of calls that were not told of before, and how many others are of no call
        self._early: dict[tuple[str, Any], Any] = {}
        self._lost: Counter[Any] = Counter()

    def _begin(self) -> None:
        self._source += 1
        self._places.clear()

    def hear(self, dialogues: Iterable[Iterable[Message]]) -> None:
        """Take in the messages of one source; a result without an id is of a call of its dialogue, if it can be."""
        self._begin()
        told: deque[_MergedCall] = deque()
        lost: Counter[Any] = Counter()
        for begins, message in ((not n, one) for dialogue in dialogues for n, one in enumerate(dialogue)):
            if begins:
                told.clear()
            for call in message.calls:
                one = self._same(call) or self._appended(call)
                one.told_by = self._source
                told.append(one)
            if message.role == "tool":
                result = message.text if message.result is None else message.result
                if not self._give(message.answers, result, told):
                    lost[message.answers, _hashable(result)] += 1
        for what, times in lost.items():  # several sources may repeat it
            self._lost[what] = max(self._lost[what], times)

    def run(self, spans: Iterable[Span]) -> None:
        """Take in the calls as tools executed them."""
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
        """How many results are of no call."""
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
        """The first in a queue that was not used; what was used once stays so, for this source."""
        queue = self._queues.get(key, [])
        place = self._places[key]
        while place < len(queue) and used(queue[place]):
            place += 1
        self._places[key] = place
        return queue[place] if place < len(queue) else None

    def _like(self, call: ChatCall, key: tuple[Any, ...], used: Callable[[_MergedCall], bool]) -> _MergedCall | None:
        """The first in a queue that may be this call; of two ids, one would have to be missing."""
        if call.id is None:
            return self._next(key, used)
        one = self._next(("bare", *key), lambda one: one.call.id is not None or used(one))
        if one is not None:
            one.call = replace(one.call, id=call.id)
            self._queue_by_id(one)
        return one

    def _same(self, call: ChatCall) -> _MergedCall | None:
        """The call that a message repeats: that of its id or, without ids, an equal one that is not matched yet."""
        if call.id is not None and (known := self._queues.get(("id", call.id, call.name))):
            return known[0]
        key = "like", call.name, _hashable(call.arguments)
        return self._like(call, key, lambda one: one.told_by == self._source)

    def _asked(self, call: ChatCall) -> _MergedCall | None:
        """The call that was asked for and ran here: that of its id, or an equal one, or one of unknown arguments."""

        def ran(one: _MergedCall) -> bool:
            return one.executed

        found = self._next(("id", call.id), ran) if call.id is not None else None
        found = found or self._like(call, ("like", call.name, _hashable(call.arguments)), ran)
        unknown = ("like", call.name, _hashable({})) if call.arguments else ("named", call.name)
        return found or self._like(call, unknown, ran)

    def _give(self, identity: str | None, result: Any, told: deque[_MergedCall]) -> bool:
        """Put a result with its call; False where there is none."""
        if identity is None:
            one = self._waiting(told)
        elif ("id", identity) in self._queues:
            one = self._next(("id", identity), lambda one: one.answered_by == self._source)
            if one is None and self._queues["id", identity][-1].result == (result,):
                return True  # told twice
        else:
            self._early.setdefault((identity, _hashable(result)), result)
            return True
        if one is None:
            return False
        one.answered_by = self._source
        one.result = one.result or (result,)
        return True

    def _waiting(self, told: deque[_MergedCall]) -> _MergedCall | None:
        """The first call of this source that waits for a result or, where none does, the first of all."""
        while told and told[0].answered_by == self._source:
            told.popleft()
        if told:
            return told[0]
        while self._answered < len(self.made) and self.made[self._answered].result:
            self._answered += 1
        return self.made[self._answered] if self._answered < len(self.made) else None


def _hashable(value: Any) -> Any:
    """A JSON value as one that can be a key; equal ones are equal."""
    if isinstance(value, dict):
        return "{}", frozenset((key, _hashable(item)) for key, item in value.items())
    if isinstance(value, list):
        return "[]", tuple(map(_hashable, value))
    return value
