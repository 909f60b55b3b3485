"""The parts of a span that a conversation needs, whatever tool recorded it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from agentic_bayes.records.base import short
from agentic_bayes.records.wire.chat import ChatCall, Message

SpanKind = Literal["chat", "agent", "tool", "step", "aside", "none"]
"""A model call, an agent run, a tool call, another step of the agent, a check on it (its model calls answer nobody),
or something that is not about agents."""


@dataclass(frozen=True, slots=True)
class Rating:
    """One evaluator's score."""

    time: int  # when, in nanoseconds
    name: str  # what was evaluated
    value: Any  # the score; None if the evaluator gave none
    notes: dict[str, str] = field(default_factory=dict)  # label and explanation, if given


@dataclass(frozen=True, slots=True)
class SpanNames:
    """What a span says about whose trial it belongs to."""

    agent: str | None = None
    session: str | None = None
    task: str | None = None
    trial: int | None = None
    reference: str | None = None

    def __bool__(self) -> bool:
        return any(getattr(self, part.name) is not None for part in fields(self))


@dataclass(slots=True)
class Span:
    """One span."""

    trace: str  # ids of the trace, of this span and of its parent (empty for the outermost)
    id: str
    parent: str = ""
    begin: int = 0  # nanoseconds; 0 if not recorded
    end: int = 0
    kind: SpanKind = "none"
    names: SpanNames = SpanNames()
    model: str | None = None
    # the input of the model or agent, starting with the user's last message
    inputs: list[Message] = field(default_factory=list)
    before: int = 0  # number of messages before these
    outputs: list[Message] = field(default_factory=list)  # its output
    # of a step: its input and output as JSON text, used only if nothing else tells what was said
    raw_input: str = ""
    raw_output: str = ""
    only_text: bool = False  # whether it tells what was said, and not which tools were called
    system: str = ""  # its instructions
    tools: list[Any] = field(default_factory=list)  # the tools that it offers
    call: ChatCall | None = None  # of a tool: the call
    result: tuple[Any, ...] = ()  # of a tool: its result, if recorded
    error: str | None = None  # why it failed
    tokens: tuple[int, int] = (0, 0)  # input and output tokens
    ratings: list[Rating] = field(default_factory=list)  # scores by evaluators
    not_finite: int = 0  # how many numbers that JSON cannot hold became null
    # what was left out because its kind is not known: content parts, and the span itself
    unknown: Counter[str] = field(default_factory=Counter)

    @property
    def order(self) -> tuple[int, str]:
        """Sort key: the spans of a trace by time."""
        return self.begin, self.id

    @property
    def counts(self) -> bool:
        """Whether the span is about an agent at all."""
        return self.kind != "none" or bool(self.ratings)

    def take_kind(self, kind: str, kinds: Mapping[str, SpanKind], what: str) -> None:
        """Take in what kind of span it is; one that is not known is a step, and counted."""
        if kind not in kinds:
            self.unknown[f"{what} of type {short(kind)}"] += 1
        self.kind = kinds.get(kind, "step")

    def take_dialogue(self, asked: list[Message], said: list[Message]) -> None:
        """Take in the messages that went in and those that came out."""
        heads = [message for message in asked if message.role == "system"]
        texts = [self.system, *(message.text for message in heads)]
        self.system = "\n\n".join(dict.fromkeys(text for text in texts if text.strip()))
        users = [place for place, message in enumerate(asked) if message.role == "user"]
        begin = users[-1] if users else 0
        while begin and asked[begin - 1].role == "user":
            begin -= 1
        self.inputs, self.before = asked[begin:], sum(message.role != "system" for message in asked[:begin])
        self.outputs = said
