"""What a suite runs and what comes of it: the input of a task, an agent's reply, a grader's grade, a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from agentic_bayes.evidence.score import Grade

__all__ = ["Agent", "Attempt", "Reply", "Status", "Task", "TrialGrader", "TrialResult"]

Status = Literal["pass", "fail", "error"]


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a suite.

    Attributes
    ----------
    id : str
        Unique within the suite.
    messages : tuple of str
        What the user says, one after the other; one for a single prompt.
    system : str
        What the agent is told.
    params : mapping
        For the agent.
    expected : mapping
        What graders compare with: ``text``, ``json``, ``fields``, ``tools``, as given.
    name : str
        For people.
    tags : tuple of str
        For choosing tasks.
    metadata : mapping
        Anything else.
    """

    id: str
    messages: tuple[str, ...]
    system: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    expected: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One trial of a task, as it is given to an agent.

    Attributes
    ----------
    task : Task
        What to do.
    trial : int
        Which attempt, from 0.
    seed : int
        A number that belongs to this trial alone, the same in every run of the same suite.
    """

    task: Task
    trial: int
    seed: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent gave.

    Attributes
    ----------
    answers : tuple of str
        One per message of the task.
    tool_calls : tuple of (tuple of mapping)
        Per message, the calls that were made: ``tool_name, parameters`` and, where known, ``result``; None where
        nothing is known of calls.
    input_tokens, output_tokens : int or None
        As the agent reported them.
    """

    answers: tuple[str, ...]
    tool_calls: tuple[Sequence[Mapping[str, Any]] | None, ...] = ()
    input_tokens: int | None = None
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

    async def attempt(self, attempt: Attempt) -> Reply:
        """Do one trial; raises whatever went wrong."""
        ...


@runtime_checkable
class TrialGrader(Protocol):
    """Something that grades trials.

    Attributes
    ----------
    name : str
        Its type in the suite, made unique by a number where it occurs more than once.
    weight : float
        How much its score counts.
    """

    name: str
    weight: float

    async def grade(self, attempt: Attempt, reply: Reply) -> Grade:
        """A `Score` whose details hold ``pass`` (bool), or `Unscored`; may raise, which is unscored too."""
        ...


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What came of one trial.

    Attributes
    ----------
    task : str
        Id of the task.
    trial : int
        Which attempt.
    status : {"pass", "fail", "error"}
        Whether all graders passed; error where the agent or a grader broke down.
    score : float or None
        Weighted mean of the graders' scores; None for an error.
    answers : tuple of str
        What the agent said.
    tool_calls : tuple
        What it called.
    grades : mapping
        Grader → ``{"score", "pass", "reason"}`` or ``{"unscored"}``.
    error : str
        Why there is no verdict.
    latency : float
        Seconds that the agent took.
    attempts : int
        How often the agent was asked.
    input_tokens, output_tokens : int or None
        As reported.
    cost : float or None
        Of the tokens, where their price is known.
    """

    task: str
    trial: int
    status: Status
    score: float | None = None
    answers: tuple[str, ...] = ()
    tool_calls: tuple[Any, ...] = ()
    grades: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    error: str = ""
    latency: float = 0.0
    attempts: int = 1
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
