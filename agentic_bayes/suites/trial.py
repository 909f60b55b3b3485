"""What a suite runs and what comes of it: the input of a task, an agent's reply, a grader's grade, a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from agentic_bayes.evidence.score import Grade

__all__ = ["Agent", "AgentReply", "Status", "SuiteTask", "TrialAttempt", "TrialGrader", "TrialResult"]

Status = Literal["pass", "fail", "error"]


@dataclass(frozen=True, slots=True)
class SuiteTask:
    """A task of a suite."""

    id: str  # unique within the suite
    messages: tuple[str, ...]  # what the user says, one after the other; one for a single prompt
    system: str = ""  # what the agent is told
    params: Mapping[str, Any] = field(default_factory=dict)  # for the agent
    # what graders compare with: ``text``, ``json``, ``fields``, ``tools``, as given
    expected: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""  # for people
    tags: tuple[str, ...] = ()  # for choosing tasks
    metadata: Mapping[str, Any] = field(default_factory=dict)  # anything else


@dataclass(frozen=True, slots=True)
class TrialAttempt:
    """One trial of a task, as it is given to an agent."""

    task: SuiteTask  # what to do
    trial: int  # which attempt, from 0
    seed: int  # A number that belongs to this trial alone, the same in every run of the same suite


@dataclass(frozen=True, slots=True)
class AgentReply:
    """What an agent gave."""

    answers: tuple[str, ...]  # one per message of the task
    # per message, the calls that were made: ``tool_name, parameters`` and, where known, ``result``; None where nothing
    # is known of calls
    tool_calls: tuple[Sequence[Mapping[str, Any]] | None, ...] = ()
    input_tokens: int | None = None  # as the agent reported them
    output_tokens: int | None = None

    @property
    def text(self) -> str:
        """The last answer."""
        return self.answers[-1]


@runtime_checkable
class Agent(Protocol):
    """Something that does tasks."""

    @property
    def identity(self) -> str:
        """Kind, model and whatever else changes what it does; no secrets."""
        ...

    async def attempt(self, attempt: TrialAttempt) -> AgentReply:
        """Do one trial; raises whatever went wrong."""
        ...


@runtime_checkable
class TrialGrader(Protocol):
    """Something that grades trials."""

    name: str  # its type in the suite, made unique by a number where it occurs more than once
    weight: float  # how much its score counts

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """A `Score` whose details hold ``pass`` (bool), or `Unscored`; may raise, which is unscored too."""
        ...


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What came of one trial."""

    task: str  # id of the task
    trial: int  # which attempt
    status: Status  # whether all graders passed; error where the agent or a grader broke down
    score: float | None = None  # weighted mean of the graders' scores; None for an error
    answers: tuple[str, ...] = ()  # what the agent said
    tool_calls: tuple[Any, ...] = ()  # what it called
    # grader → ``{"score", "pass", "reason"}`` or ``{"unscored"}``
    grades: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    error: str = ""  # why there is no verdict
    latency: float = 0.0  # seconds that the agent took
    attempts: int = 1  # how often the agent was asked
    input_tokens: int | None = None  # as reported
    output_tokens: int | None = None
    cost: float | None = None  # of the tokens, where their price is known
