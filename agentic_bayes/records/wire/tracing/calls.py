"""Merge the tool calls that model, agent and tool spans each report, so every call appears once."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from agentic_bayes.records.wire.chat import ChatCall, Message
from agentic_bayes.records.wire.tracing.messages import json_of
from agentic_bayes.records.wire.tracing.spans import Span

_AHEAD = 64
"""How many calls that may be the one looked for are compared with it."""


@dataclass(slots=True, eq=False)
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
    each queue once, however many calls there are. Ids may repeat: among calls with the same id the arguments decide,
    then the order.
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
        """Take in the messages of one source; a result goes to a call of its own dialogue if there is one."""
        self._begin()
        lost: Counter[Any] = Counter()
        for dialogue in dialogues:
            waiting: defaultdict[tuple[str, str], deque[_MergedCall]] = defaultdict(deque)
            for message in dialogue:
                for call in message.calls:
                    one = self._same(call) or self._appended(call)
                    one.reported_by = self._source
                    for key in _waiting_keys(call):
                        waiting[key].append(one)
                if message.role == "tool":
                    result = message.text if message.result is None else message.result
                    if not self._give(message, result, waiting):
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
            # what the model saw stays; another result of the tool itself is said
            both = ran.result and span.result
            if both and ran.result != span.result and not _alike(_written(ran.result[0]), _written(span.result[0])):
                self._lost[ran.call.id, _hashable(span.result[0])] = 1
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
            identity, name = one.call.id, one.call.name
            for known in dict.fromkeys((identity, *one.call.other_ids)):
                self._queues["id", known].append(one)
            self._queues["id", identity, name].append(one)
            self._queues["id", identity, name, _hashable(one.call.arguments)].append(one)

    def _next(self, key: tuple[Any, ...], used: Callable[[_MergedCall], bool]) -> _MergedCall | None:
        """The first unused call in a queue; for one source, a used call stays used."""
        return next(self._rest(key, used), None)

    def _rest(self, key: tuple[Any, ...], used: Callable[[_MergedCall], bool]) -> Iterator[_MergedCall]:
        """The first unused call in a queue and those after it, not too many."""
        queue = self._queues.get(key, [])
        place = self._places[key]
        while place < len(queue) and used(queue[place]):
            place += 1
        self._places[key] = place
        return (one for one in islice(queue, place, place + _AHEAD) if not used(one))

    def _like(self, call: ChatCall, key: tuple[Any, ...], used: Callable[[_MergedCall], bool]) -> _MergedCall | None:
        """The first call in a queue that may be this one: two calls that both have an id are never merged here."""
        if call.id is None:
            return self._next(key, used)
        return self._identified(self._next(("bare", *key), lambda one: one.call.id is not None or used(one)), call)

    def _identified(self, one: _MergedCall | None, call: ChatCall) -> _MergedCall | None:
        """The call found, now with the id that this report of it gives."""
        if one is not None and one.call.id is None and call.id is not None:
            one.call = replace(one.call, id=call.id)
            self._queue_by_id(one)
        return one

    def _same(self, call: ChatCall) -> _MergedCall | None:
        """The call that a message repeats: the one with its id or, without ids, an equal one not matched yet."""

        def reported(one: _MergedCall) -> bool:
            return one.reported_by == self._source

        key = "like", call.name, _hashable(call.arguments)
        if call.id is not None:
            if one := self._next(("id", call.id, *key[1:]), reported):
                return one
            alone = self._queues.get(("id", call.id, call.name), ())
            if len(alone) == 1 and not reported(alone[0]):
                return alone[0]  # its arguments are written in another way
        return self._like(call, key, reported)

    def _asked(self, call: ChatCall) -> _MergedCall | None:
        """The requested call that ran here: by its id, else an equal one, else one of unknown or wrapped arguments."""

        def ran(one: _MergedCall) -> bool:
            return one.executed

        found, arguments = None, _hashable(call.arguments)
        if call.id is not None:
            keys = ("id", call.id, call.name, arguments), ("id", call.id, call.name), ("id", call.id)
            found = next(filter(None, (self._next(key, ran) for key in keys)), None)
        found = found or self._like(call, ("like", call.name, arguments), ran)
        unknown = ("like", call.name, _hashable({})) if call.arguments else ("named", call.name)
        found = found or self._like(call, unknown, ran)
        if found is None and call.arguments:
            named = self._rest(("named", call.name), ran)
            fitting = (one for one in named if None in (one.call.id, call.id) and _wraps(call.arguments, one))
            found = self._identified(next(fitting, None), call)
        return found

    def _give(self, message: Message, result: Any, waiting: dict[tuple[str, str], deque[_MergedCall]]) -> bool:
        """Give a result to its call; False if there is none."""
        identity = message.answers
        one = _first_waiting(waiting, message, self._source)
        if one is None and identity is None:
            one = self._unanswered()
        elif one is None and identity is not None and ("id", identity) in self._queues:
            rest = self._rest(("id", identity), lambda one: one.answered_by == self._source)
            left = list(rest)
            one = next((one for one in left if one.result in ((), (result,))), None)
            if one is None and left:  # reported twice, or written in another way
                written = _written(result)
                return any(_alike(_written(one.result[0]), written) for one in left)
            if one is None:
                return any(one.result == (result,) for one in self._queues["id", identity])
        elif one is None and identity is not None:
            self._early.setdefault((identity, _hashable(result)), result)
            return True
        if one is None:
            return False
        one.answered_by = self._source
        one.result = one.result or (result,)
        return True

    def _unanswered(self) -> _MergedCall | None:
        """The first call of all sources without a result."""
        while self._answered < len(self.made) and self.made[self._answered].result:
            self._answered += 1
        return self.made[self._answered] if self._answered < len(self.made) else None


def _written(result: Any) -> str:
    """The letters and digits of a result."""
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    return re.sub(r"\W+", "", text).casefold()


def _alike(one: str, other: str) -> bool:
    """Whether two results say the same, one perhaps with more around it."""
    return one in other or other in one


def _waiting_keys(call: ChatCall) -> Iterator[tuple[str, str]]:
    """Under what a call waits for its result."""
    yield "all", ""
    yield "name", call.name
    for identity in dict.fromkeys((call.id, *call.other_ids)):
        if identity is not None:
            yield "id", identity


def _first_waiting(
    waiting: dict[tuple[str, str], deque[_MergedCall]], message: Message, source: int
) -> _MergedCall | None:
    """The first call of a dialogue to which a result may belong, by its id, its tool's name or its place."""
    if message.answers is not None:
        key = ("id", message.answers)
    else:
        key = ("name", message.tool) if message.tool is not None else ("all", "")
    queue = waiting.get(key, deque())
    while queue and queue[0].answered_by == source:
        queue.popleft()
    return queue[0] if queue else None


def _wraps(arguments: dict[str, Any], one: _MergedCall) -> bool:
    """Whether a call's arguments, or just their values, lie somewhere within these."""
    inner = one.call.arguments
    values = list(inner.values())
    layer: list[Any] = [arguments]
    while layer:
        unpacked = [json_of(item) for item in layer]
        inside = [list(item.values()) if isinstance(item, dict) else item for item in unpacked]
        if any(item in (inner, values) for item in (*unpacked, *inside)):
            return True
        layer = list(islice((item for items in inside if isinstance(items, list) for item in items), 1000))
    return False


def _hashable(value: Any) -> Any:
    """A JSON value as a hashable key; equal values give equal keys."""
    if isinstance(value, dict):
        return "{}", frozenset((key, _hashable(item)) for key, item in value.items())
    if isinstance(value, list):
        return "[]", tuple(map(_hashable, value))
    return value
