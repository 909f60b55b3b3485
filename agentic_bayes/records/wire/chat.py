"""Chat messages and how they become turns: shared by all readers of message logs."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agentic_bayes.records.wire.fields import Fields

Role = Literal["system", "user", "assistant", "tool"]

NO_ANSWER = "the log ends before the agent answered"
ORPHANS = "results_without_call"
"""Key in a turn's metadata: how many results belong to no recorded call."""


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A tool call in a message."""

    name: str  # name of the tool
    arguments: dict[str, Any]  # argument name → value
    id: str | None = None  # the id that its result refers to


@dataclass(frozen=True, slots=True)
class Message:
    """One message."""

    role: Role  # who speaks; "tool" is the result of a call
    text: str = ""  # the text; of a tool, its result if that is text
    calls: Sequence[ChatCall] = ()  # calls that the assistant makes in it
    answers: str | None = None  # of a tool: the id of the call whose result this is
    tool: str | None = None  # of a tool: its name, for results without an id
    result: Any = None  # of a tool: the result if it is not text
    error: str | None = None  # why the agent stopped
    tokens: tuple[int, int] = (0, 0)  # input and output tokens, if the log has them


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
    return ChatCall(name, source.arguments(*arguments), source.name(identity) if identity else None)


def chat_call(call: Fields) -> ChatCall:
    """A call as chat completions write it: an object ``function``, or ``custom`` with one text as its input."""
    if "custom" in call:
        custom = call.mapping("custom")
        name, arguments = custom.name("name", required=True), {"input": custom.text("input") or ""}
    else:
        function = call.mapping("function", required=True)
        name, arguments = function.name("name", required=True), function.arguments("arguments")
    return ChatCall(name or "?", arguments, call.name("id"))


def tool_message(result: Any, answers: str | None, tool: str | None = None) -> Message:
    """The result of a call as a message."""
    if isinstance(result, str):
        return Message("tool", result, answers=answers, tool=tool)
    return Message("tool", answers=answers, tool=tool, result=result)


@dataclass(slots=True)
class _ChatTurn:
    """One turn in the making: the user's messages, and everything up to the next one."""

    queries: list[str] = field(default_factory=list)
    replies: list[Message] = field(default_factory=list)


def turns(messages: Iterable[Message], *, qa_prefix: str = "turn") -> list[dict[str, Any]]:
    """Cut a chat into interactions: each begins when the user speaks."""
    collected: list[_ChatTurn] = []
    for message in messages:
        if message.role == "user":
            if not collected or collected[-1].replies:
                collected.append(_ChatTurn())
            collected[-1].queries.append(message.text)
        elif message.role != "system" and collected:
            collected[-1].replies.append(message)
    return [
        _interaction(turn, f"{qa_prefix} {number}", last=number == len(collected))
        for number, turn in enumerate(collected, start=1)
    ]


def one_turn(messages: Sequence[Message], *, qa_id: str) -> dict[str, Any]:
    """Turn a whole chat into one interaction."""
    spoken = dialogue(messages)
    calls, orphans = _calls(messages)
    several = sum(line["role"] == "user" for line in spoken) > 1
    metadata: dict[str, Any] = {"dialogue": spoken} if several else {}
    if orphans:
        metadata[ORPHANS] = orphans
    return {
        "qa_id": qa_id,
        "query": _joined(message.text for message in messages if message.role == "user"),
        "assistant": _joined(message.text for message in messages if message.role == "assistant"),
        "agentic": {"tools_used": calls},
        **({"metadata": metadata} if metadata else {}),
    }


def dialogue(messages: Iterable[Message]) -> list[dict[str, str]]:
    """The spoken messages of a chat in order, without calls and results."""
    spoken = (message for message in messages if message.role in ("user", "assistant") and message.text.strip())
    return [{"role": message.role, "text": message.text} for message in spoken]


def _joined(texts: Iterable[str]) -> str:
    """Join texts as paragraphs, without blank ones; if all are blank, keep their white space."""
    every = list(texts)
    return "\n\n".join(filter(str.strip, every)) or "".join(every)


def system_text(messages: Iterable[Message]) -> str:
    """The system messages of a chat."""
    return "\n\n".join(message.text for message in messages if message.role == "system" and message.text.strip())


def opening(messages: Iterable[Message]) -> str:
    """What the agent said before the user's first message."""
    said = []
    for message in messages:
        if message.role == "user":
            break
        if message.role == "assistant" and message.text.strip():
            said.append(message.text)
    return "\n\n".join(said)


def _interaction(turn: _ChatTurn, qa_id: str, *, last: bool) -> dict[str, Any]:
    messages = turn.replies
    worked = [n for n, message in enumerate(messages) if message.calls or message.role == "tool"]
    begin = worked[-1] + 1 if worked else 0
    after = messages[begin:]
    if worked and not after:
        # no text came after the calls: the answer is the text of the message with the last calls, if any
        holder = max((n for n in worked if messages[n].role == "assistant"), default=None)
        if holder is not None and (messages[holder].text.strip() or not last):
            begin, after = holder, [messages[holder]]
    answer = _joined(message.text for message in after)
    before = [m.text for m in messages[:begin] if m.role == "assistant" and m.text.strip()]
    error = next((message.error for message in reversed(messages) if message.error), None)
    if error is None and last and not any(message.role == "assistant" for message in after):
        error = NO_ANSWER
    metadata: dict[str, Any] = {"before_calls": before} if before else {}
    taken, given = (sum(message.tokens[side] for message in messages) for side in (0, 1))
    if taken or given:
        metadata["tokens"] = {"input": taken, "output": given}
    calls, orphans = _calls(messages)
    if orphans:
        metadata[ORPHANS] = orphans
    return {
        "qa_id": qa_id,
        "query": "\n\n".join(turn.queries),
        "assistant": None if error and not answer.strip() else answer,
        "agentic": {"tools_used": calls},
        **({"error": error} if error else {}),
        **({"metadata": metadata} if metadata else {}),
    }


def doubts_of(conversation: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Warnings about the turns of a conversation."""
    without_call = any(turn.get("metadata", {}).get(ORPHANS) for turn in conversation)
    text = f"some tool results belong to no recorded call; they were left out and counted in metadata.{ORPHANS}"
    return (("", text),) if without_call else ()


def _calls(messages: Iterable[Message]) -> tuple[list[dict[str, Any]], int]:
    """The calls in order, each with its result, and how many results belong to no call."""
    waiting = _PendingCalls()
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


class _PendingCalls:
    """The calls made so far, and which of them still wait for a result."""

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []
        # a call is in several queues, and leaves each once it reaches the front with a result
        self._queues: defaultdict[tuple[str | None, ...], deque[dict[str, Any]]] = defaultdict(deque)
        self._of_message: deque[dict[str, Any]] = deque()

    def add(self, calls: Sequence[ChatCall]) -> None:
        """Take in the calls of a message."""
        if calls:
            self._of_message = deque()
        for call in calls:
            entry: dict[str, Any] = {"tool_name": call.name, "parameters": call.arguments, "step": len(self.made) + 1}
            self.made.append(entry)
            for key in ("all",), ("name", call.name), ("id", call.id), ("id", call.id, call.name):
                self._queues[key].append(entry)
            self._of_message.append(entry)

    def call_of(self, message: Message) -> dict[str, Any] | None:
        """The call that a result belongs to.

        Ids may repeat within a log: among calls with the same id the tool's name decides, then their order. A result
        without an id belongs to the first call of its tool or, if it names no tool, of the message before it.
        """
        if message.answers is not None:
            named = self._first(("id", message.answers, message.tool)) if message.tool is not None else None
            return named or self._first(("id", message.answers))
        if message.tool is not None:
            return self._first(("name", message.tool))
        return _front(self._of_message) or self._first(("all",))

    def _first(self, key: tuple[str | None, ...]) -> dict[str, Any] | None:
        return _front(self._queues[key]) if key in self._queues else None


def _front(queue: deque[dict[str, Any]]) -> dict[str, Any] | None:
    """The first call without a result."""
    while queue and "result" in queue[0]:
        queue.popleft()
    return queue[0] if queue else None
