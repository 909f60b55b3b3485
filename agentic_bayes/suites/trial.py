"""The types of a suite: tasks, attempts, agents with their replies, and results of trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from agentic_bayes.records.wire.thoughts import split_thoughts

Status = Literal["pass", "fail", "error"]


@dataclass(frozen=True, slots=True)
class SuiteTask:
    """A task of a suite."""

    id: str  # unique within the suite
    messages: tuple[str, ...]  # the user's messages in order; one for a single prompt
    system: str = ""  # the agent's instructions
    params: Mapping[str, Any] = field(default_factory=dict)  # passed to the agent
    expected: Mapping[str, Any] = field(default_factory=dict)  # for graders: ``text``, ``json``, ``fields``, ``tools``
    name: str = ""  # for people
    tags: tuple[str, ...] = ()  # to select tasks
    metadata: Mapping[str, Any] = field(default_factory=dict)  # anything else


@dataclass(frozen=True, slots=True)
class TrialAttempt:
    """One trial of a task, as an agent receives it."""

    task: SuiteTask
    trial: int  # number of the trial, from 0
    seed: int  # different for every trial, and the same in every run of the suite


@dataclass(frozen=True, slots=True)
class AgentReply:
    """An agent's reply to all messages of a task."""

    answers: tuple[str, ...]  # one per message
    # per message, its tool calls with ``tool_name, parameters`` and, if known, ``result``; None if calls are unknown
    tool_calls: tuple[Sequence[Mapping[str, Any]] | None, ...] = ()
    input_tokens: int | None = None  # as the agent reported them
    output_tokens: int | None = None

    @property
    def text(self) -> str:
        """The last answer, without thoughts that a model wrote into it."""
        return split_thoughts(self.answers[-1]).said


@runtime_checkable
class Agent(Protocol):
    """Protocol of agents."""

    @property
    def identity(self) -> str:
        """Kind, model and everything else that changes its behaviour; no secrets."""

    async def attempt(self, attempt: TrialAttempt) -> AgentReply:
        """Attempt a task; an exception makes the trial an error."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of one trial."""

    task: str  # the task's id
    trial: int  # number of the trial, from 0
    status: Status  # pass if all graders passed, error if the agent or a grader raised an error
    score: float | None = None  # weighted mean of the graders' scores; None for an error
    answers: tuple[str, ...] = ()
    tool_calls: tuple[Any, ...] = ()
    # grader → ``{"score", "pass", "reason"}``, with ``failure_kinds`` where it names them, or ``{"unscored"}``
    grades: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    error: str = ""  # why there is no verdict
    latency: float = 0.0  # seconds that the agent took
    attempts: int = 1  # how often the agent was asked
    input_tokens: int | None = None  # as the agent reported them
    output_tokens: int | None = None
    cost: float | None = None  # of the tokens; None if unknown
    cached: bool = False  # whether the reply is one that an earlier run got

    @property
    def failures(self) -> list[str]:
        """The graders that failed the trial, with their reasons."""
        return [f"{name}: {grade.get('reason')}" for name, grade in self.grades.items() if grade.get("pass") is False]
