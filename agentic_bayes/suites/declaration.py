"""What a suite file may declare: agent, tasks, graders, execution, hooks and output, as frozen pydantic models."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.formatting import Metric
from agentic_bayes.records.base import Id, Identifier, is_number, is_whole

MOST_TRIALS = 1_000_000
"""Most trials of a task, and of a run."""
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(value: object) -> object:
    """Read a duration: seconds as a number, or text, for example "90s", "1m30s" or "500ms"."""
    if isinstance(value, str):
        parts = _DURATION.findall(value)
        whole = bool(parts) and "".join(number + unit for number, unit in parts) == value.strip()
        value = sum(float(number) * _SECONDS[unit] for number, unit in parts) if whole else None
    if not is_number(value):
        raise ValueError("must be seconds, or text like 90s or 1m30s")
    if value < 0:
        raise ValueError("must not be negative")
    return float(value)


def _listed(value: object) -> object:
    """Refuse one name in place of a list, which would be split into letters."""
    if isinstance(value, str):
        raise ValueError(f"must be a list, for example [{value}]")
    return value


def _trials(value: object) -> object:
    if value == "auto":
        return value
    if not is_whole(value) or value < 1:
        raise ValueError("must be a whole number ≥ 1, or auto")
    if value > MOST_TRIALS:
        raise ValueError(f"must be at most {MOST_TRIALS:,}")
    return value


def _metric(value: str) -> str:
    try:
        return Metric(value)
    except InvalidArgument as error:
        text = str(error).removeprefix("metric ").rpartition(", got ")[0]  # the caller adds the field and what came
        raise ValueError(text) from None


Seconds = Annotated[float, BeforeValidator(_seconds)]
Names = Annotated[tuple[Id, ...], BeforeValidator(_listed)]
UnitInterval = Annotated[float, Field(ge=0, le=1)]
Trials = Annotated[int | Literal["auto"], BeforeValidator(_trials)]
PositiveInt = Annotated[int, Field(ge=1)]
CostPerToken = Annotated[float, Field(ge=0, le=1e6)]


class _SuitePart(BaseModel):
    """Base of all parts of a suite: frozen, no conversion of types, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class AgentConfig(_SuitePart):
    """The agent to evaluate."""

    type: Literal["openai", "anthropic", "langchain", "python", "http", "command"]
    name: Id | None = None  # in results; default: the model's name, else the suite's
    config: dict[str, Any] = Field(default_factory=dict)
    cost_per_input_token: CostPerToken | None = None
    cost_per_output_token: CostPerToken | None = None


class GraderConfig(_SuitePart):
    """A grader: its type, its weight in a trial's score, and its settings."""

    type: Identifier
    weight: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    config: dict[str, Any] = Field(default_factory=dict)


class BudgetTarget(_SuitePart):
    """The interval that adaptive trials narrow: of which metric, and how narrow is enough."""

    metric: Annotated[str, AfterValidator(_metric)] = "pass^1"
    width: Annotated[float, Field(gt=0, le=1)] = 0.2


class Defaults(_SuitePart):
    """Values for every task that does not set its own."""

    trials_per_task: Trials = 1
    pass_threshold: UnitInterval = 0.5  # minimum score for a grader that gives only a score to pass
    graders: Annotated[tuple[GraderConfig, ...], Field(strict=False)] = ()
    budget: Annotated[int, Field(ge=1, le=MOST_TRIALS)] | None = None  # trials of a run with adaptive tasks
    target: BudgetTarget = BudgetTarget()


class Execution(_SuitePart):
    """How trials run: how many at a time, how fast, for how long, and how often again after an error."""

    concurrency: PositiveInt = 1
    rate_limit_rps: Annotated[float, Field(ge=0)] = 0.0
    timeout: Annotated[Seconds, Field(gt=0)] = 60.0
    max_retries: Annotated[int, Field(ge=0)] = 0
    retry_delay: Seconds = 1.0  # before the first retry; doubled before each further one


class Cache(_SuitePart):
    """Whether later runs reuse the agent's replies: to the same trial, of the same agent, for a while."""

    enabled: bool = False
    dir: str = ".cache"
    ttl: Seconds = 86_400.0


class Variable(_SuitePart):
    """What the suite says of a ``${VARIABLE}``."""

    secret: bool  # whether its value is hidden in whatever is written; default: if it has at least 8 characters


class Hooks(_SuitePart):
    """Shell commands to run on events; each reads its event as JSON on standard input."""

    before_run: str | None = None
    after_run: str | None = None
    before_task: str | None = None
    after_task: str | None = None
    before_trial: str | None = None
    after_trial: str | None = None


class Output(_SuitePart):
    """Where results are written, and how the command line shows them."""

    format: Literal["table", "json", "html", "all"] = "table"
    dir: str = "./results"


class TaskInput(_SuitePart):
    """The input of a task: one prompt, or several messages in order."""

    prompt: str | None = None
    messages: Annotated[tuple[str, ...], Field(strict=False)] | None = None
    system: str = ""
    params: dict[str, Any] = Field(default_factory=dict)


class TaskConfig(_SuitePart):
    """A task: its input, what graders expect, and its own graders and trials if it has any."""

    id: Id
    name: str = ""
    tags: Annotated[Names, Field(strict=False)] = ()
    input: TaskInput
    expected: dict[str, Any] = Field(default_factory=dict)
    graders: Annotated[tuple[GraderConfig, ...], Field(strict=False)] | None = None
    trials_per_task: Trials | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class SuiteConfig(_SuitePart):
    """The whole suite file."""

    name: Id
    description: str = ""
    agent: AgentConfig
    defaults: Defaults = Defaults()
    execution: Execution = Execution()
    cache: Cache = Cache()
    variables: dict[str, Variable] = Field(default_factory=dict)
    hooks: Hooks = Hooks()
    task_files: Annotated[Names, Field(strict=False)] = ()
    tasks: Annotated[tuple[TaskConfig, ...], Field(strict=False)] = ()
    output: Output = Output()
