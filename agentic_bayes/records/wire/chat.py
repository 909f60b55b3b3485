"""Chat messages and how they become turns: shared by all readers of message logs."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agentic_bayes.formatting import ELLIPSIS, first_few
from agentic_bayes.records.base import short
from agentic_bayes.records.wire.fields import Fields
from agentic_bayes.records.wire.thoughts import REASONING, split_thoughts

Role = Literal["system", "user", "assistant", "tool", "thought"]

NO_ANSWER = "the log ends before the agent answered"
ORPHANS = "results_without_call"
"""Key in a turn's metadata: how many results belong to no recorded call."""


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A tool call in a message."""

    name: str  # name of the tool
    arguments: dict[str, Any]  # argument name → value
    id: str | None = None  # the id that its result refers to
    other_ids: tuple[str, ...] = ()  # further ids of the same call; its result may refer to one of these
    settled: bool = False  # whether no result need follow: the service ran it, or it gives the answer


@dataclass(frozen=True, slots=True)
class Message:
    """One message. Thoughts that the agent wrote into its text are moved to `reasoning`."""

    role: Role  # who speaks; "tool" is the result of a call, "thought" holds only reasoning
    text: str = ""  # the text; of a tool, its result if that is text
    calls: Sequence[ChatCall] = ()  # calls that the assistant makes in it
    answers: str | None = None  # of a tool: the id of the call whose result this is
    tool: str | None = None  # of a tool: its name, for results without an id
    result: Any = None  # of a tool: the result if it is not text
    error: str | None = None  # why the agent stopped
    tokens: tuple[int, int] = (0, 0)  # input and output tokens, if the log has them
    reasoning: Sequence[str] = ()  # what the agent thought, in order: never a part of an answer
    aside: bool = False  # of a user: said together with results, while the agent was at work; it begins no turn

    def __post_init__(self) -> None:
        if self.role == "assistant" and self.text:
            said, thoughts = split_thoughts(self.text)
            if thoughts or said != self.text:
                object.__setattr__(self, "text", said)
                object.__setattr__(self, "reasoning", [*self.reasoning, *thoughts])


def function_calls(message: Fields) -> list[ChatCall]:
    """The calls of a message: those in ``tool_calls`` or, in old logs, the one in ``function_call``."""
    calls = [chat_call(call) for call in message.mappings("tool_calls")]
    if "function_call" in message and not calls:
        function = message.mapping("function_call")
        calls = [named_call(function, None, "arguments")]
    return calls


def named_call(source: Fields, identity: str | None, *arguments: str) -> ChatCall:
    """A call from an object with its name, from the members with these names: its id, and its arguments."""
    name = source.name("name", required=True) or "?"
    return ChatCall(name, source.arguments(*arguments), source.identity(identity) if identity else None)


def chat_call(call: Fields) -> ChatCall:
    """A call as chat completions write it: an object ``function``, or ``custom`` with one text as its input."""
    if "custom" in call:
        custom = call.mapping("custom")
        name, arguments = custom.name("name", required=True), {"input": custom.text("input") or ""}
    else:
        function = call.mapping("function", required=True)
        name, arguments = function.name("name", required=True), function.arguments("arguments")
    return ChatCall(name or "?", arguments, call.identity("id"))


def failure(content: Any) -> dict[str, Any]:
    """What is recorded as the result of a call that failed."""
    return {"status": "error", "content": content}


def tool_message(result: Any, answers: str | None, tool: str | None = None, *, failed: bool = False) -> Message:
    """The result of a call as a message."""
    result = failure(result) if failed else result
    if isinstance(result, str):
        return Message("tool", result, answers=answers, tool=tool)
    return Message("tool", answers=answers, tool=tool, result=result)


@dataclass(slots=True)
class _ChatTurn:
    """One turn in the making: the user's messages, and everything up to the next one."""

    queries: list[str] = field(default_factory=list)
    replies: list[Message] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)


def turns(messages: Iterable[Message], *, qa_prefix: str = "turn") -> list[dict[str, Any]]:
    """Cut a chat into interactions: each begins when the user speaks."""
    collected: list[_ChatTurn] = []
    early: list[str] = []  # thoughts before the user spoke
    for message in messages:
        if message.role == "user":
            if not collected or (collected[-1].replies and not message.aside):
                collected.append(_ChatTurn())
            collected[-1].queries.append(message.text)
            continue
        (collected[-1].thoughts if collected else early).extend(message.reasoning)
        if message.role not in ("system", "thought") and collected:
            collected[-1].replies.append(message)
    if collected:
        collected[0].thoughts[:0] = early
    waiting = _PendingCalls()
    return [
        _interaction(turn, f"{qa_prefix} {number}", waiting, last=number == len(collected))
        for number, turn in enumerate(collected, start=1)
    ]


def one_turn(messages: Sequence[Message], *, qa_id: str) -> dict[str, Any]:
    """Turn a whole chat into one interaction."""
    spoken = dialogue(messages)
    calls, orphans = _calls(messages, _PendingCalls())
    metadata = {
        "dialogue": spoken if sum(line["role"] == "user" for line in spoken) > 1 else None,
        REASONING: [thought for message in messages for thought in message.reasoning],
        ORPHANS: orphans,
    }
    return {
        "qa_id": qa_id,
        "query": paragraphs(message.text for message in messages if message.role == "user"),
        "assistant": paragraphs(message.text for message in messages if message.role == "assistant"),
        "agentic": {"tools_used": calls},
        **_about(metadata),
    }


def _about(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a turn as a member of it, without what is empty."""
    known = {key: value for key, value in metadata.items() if value}
    return {"metadata": known} if known else {}


def dialogue(messages: Iterable[Message]) -> list[dict[str, str]]:
    """The spoken messages of a chat in order, without calls and results."""
    spoken = (message for message in messages if message.role in ("user", "assistant") and message.text.strip())
    return [{"role": message.role, "text": message.text} for message in spoken]


def paragraphs(texts: Iterable[str]) -> str:
    """Texts as paragraphs, without blank ones; if all are blank, their white space."""
    every = list(texts)
    return "\n\n".join(filter(str.strip, every)) or "".join(every)


def said_by(role: Role, messages: Iterable[Message]) -> str:
    """The messages of one speaker, as paragraphs without blank ones."""
    return "\n\n".join(message.text for message in messages if message.role == role and message.text.strip())


def opening(messages: Iterable[Message]) -> str:
    """What the agent said before the user's first message."""
    said = []
    for message in messages:
        if message.role == "user":
            break
        if message.role == "assistant" and message.text.strip():
            said.append(message.text)
    return "\n\n".join(said)


def _interaction(turn: _ChatTurn, qa_id: str, waiting: _PendingCalls, *, last: bool) -> dict[str, Any]:
    messages = turn.replies
    calls, orphans = _calls(messages, waiting)
    worked = [n for n, message in enumerate(messages) if message.calls or message.role == "tool"]
    begin = worked[-1] + 1 if worked else 0
    after = messages[begin:]
    pending = waiting.of_last_message() if last and not after else []
    if worked and not after:
        # no text came after the calls: the answer is what was said with the last calls, and since then
        holder = max((n for n in worked if messages[n].role == "assistant"), default=None)
        if holder is not None and not pending and (messages[holder].text.strip() or not last):
            begin, after = holder, [message for message in messages[holder:] if message.role == "assistant"]
    answer = paragraphs(message.text for message in after)
    before = [m.text for m in messages[:begin] if m.role == "assistant" and m.text.strip()]
    error = _ended_by(messages)
    if error is None and last and not any(message.role == "assistant" for message in after):
        error = NO_ANSWER + (f": {unanswered(pending)}" if pending else "")
    tokens = token_totals(message.tokens for message in messages)
    return {
        "qa_id": qa_id,
        "query": "\n\n".join(turn.queries),
        "assistant": None if error and not answer.strip() else answer,
        "agentic": {"tools_used": calls},
        **({"error": error} if error else {}),
        **_about({"before_calls": before, REASONING: turn.thoughts, "tokens": tokens, ORPHANS: orphans}),
    }


def token_totals(tokens: Iterable[tuple[int, int]]) -> dict[str, int]:
    """The sums of input and of output tokens; empty if the log has none."""
    each = list(tokens)
    totals = {side: sum(one[place] for one in each) for place, side in enumerate(("input", "output"))}
    return totals if any(totals.values()) else {}


def _ended_by(messages: Sequence[Message]) -> str | None:
    """The error that ended a turn; one after which the agent went on did not."""
    for message in reversed(messages):
        if message.error or message.calls or (message.role == "assistant" and message.text.strip()):
            return message.error
    return None


def unanswered(names: Sequence[str]) -> str:
    """Which calls wait for a result."""
    shown = first_few([short(name, 30) for name in names], 3, rest=ELLIPSIS)
    return f"{'a call' if len(names) == 1 else 'calls'} of {shown} had no result yet"


def doubts_of(conversation: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Warnings about the turns of a conversation."""
    without_call = any(turn.get("metadata", {}).get(ORPHANS) for turn in conversation)
    text = f"some tool results belong to no recorded call; they were left out and counted in metadata.{ORPHANS}"
    return (("", text),) if without_call else ()


def _calls(messages: Iterable[Message], waiting: _PendingCalls) -> tuple[list[dict[str, Any]], int]:
    """The calls of a turn in order, each with its result, and how many results belong to no call."""
    waiting.begin()
    orphans = 0
    for message in messages:
        waiting.add(message.calls)
        if message.role != "tool":
            continue
        call = waiting.call_of(message)
        if call is None:
            orphans += 1
        else:
            call["result"] = message.text if message.result is None else message.result
    return waiting.made, orphans


_Queues = defaultdict[tuple[str | None, ...], deque[dict[str, Any]]]


class _PendingCalls:
    """The calls of a chat, turn by turn, and which of them still wait for a result."""

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []  # those of this turn
        # a call is in several queues, and leaves each once it reaches the front with a result
        self._queues: _Queues = defaultdict(deque)
        # ids of calls made since the last result, and of calls of earlier turns
        self._latest: _Queues = defaultdict(deque)
        self._earlier: _Queues = defaultdict(deque)
        self._of_message: deque[dict[str, Any]] = deque()
        self._settled: list[bool] = []  # of the calls of this turn: whether no result need follow
        self._answering = False

    def begin(self) -> None:
        """Start on the next turn."""
        for key, queue in self._queues.items():
            if key[0] == "id" and _front(queue):
                self._earlier[key].extend(queue)
        self.made, self._settled = [], []
        self._queues, self._latest, self._of_message = defaultdict(deque), defaultdict(deque), deque()

    def add(self, calls: Sequence[ChatCall]) -> None:
        """Take in the calls of a message."""
        if not calls:
            return
        self._of_message = deque()
        if self._answering:
            self._latest, self._answering = defaultdict(deque), False
        for call in calls:
            entry: dict[str, Any] = {"tool_name": call.name, "parameters": call.arguments, "step": len(self.made) + 1}
            self.made.append(entry)
            self._settled.append(call.settled)
            self._of_message.append(entry)
            self._queues["all",].append(entry)
            self._queues["name", call.name].append(entry)
            for identity in dict.fromkeys((call.id, *call.other_ids)):
                for key in ("id", identity), ("id", identity, call.name):
                    self._queues[key].append(entry)
                    self._latest[key].append(entry)

    def call_of(self, message: Message) -> dict[str, Any] | None:
        """The call that a result belongs to: by its id or else its tool's name, or the first of the message before."""
        self._answering = True
        if message.answers is not None:
            # ids may repeat: calls since the last results come first; an id that no call has is of a call without one
            for identity in (message.answers, None):
                for queues in (self._latest, self._queues, self._earlier):
                    named = self._first(queues, ("id", identity, message.tool)) if message.tool is not None else None
                    if named or (found := self._first(queues, ("id", identity))):
                        return named or found
            return None
        if message.tool is not None:
            return self._first(self._queues, ("name", message.tool))
        return _front(self._of_message) or self._first(self._queues, ("all",))

    def of_last_message(self) -> list[str]:
        """The tools that the last calls of this turn were of, if none of these has a result but needs one."""
        last = range(len(self.made) - len(self._of_message), len(self.made)) if self.made else range(0)
        return [self.made[n]["tool_name"] for n in last if "result" not in self.made[n] and not self._settled[n]]

    @staticmethod
    def _first(queues: _Queues, key: tuple[str | None, ...]) -> dict[str, Any] | None:
        return _front(queues[key]) if key in queues else None


def _front(queue: deque[dict[str, Any]]) -> dict[str, Any] | None:
    """The first call without a result."""
    while queue and "result" in queue[0]:
        queue.popleft()
    return queue[0] if queue else None
