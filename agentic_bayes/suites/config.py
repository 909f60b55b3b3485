"""A suite as it is declared in YAML: checked as a whole, with the line of everything that is wrong."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from agentic_bayes.checks import no_such_file
from agentic_bayes.errors import Problem, SuiteError, did_you_mean
from agentic_bayes.formatting import parse_metric
from agentic_bayes.records.base import field_path, short
from agentic_bayes.suites.agents.declared import without_secrets
from agentic_bayes.suites.trial import Task
from agentic_bayes.suites.yaml_text import Document, FromVariables, read_yaml

__all__ = ["AGENT_TYPES", "GRADER_TYPES", "GraderConfig", "Suite", "SuiteConfig", "json_schema", "load_suite"]

AGENT_TYPES = ("openai", "anthropic", "langchain", "python", "http", "command")
GRADER_TYPES = ("exact_match", "contains", "regex", "json_match", "command", "llm", "pairwise", "constraint")
MORE_GRADERS = ("reference", "tool_rubric")
MOST_TRIALS = 1_000_000  # of a task
_SECRETS = frozenset({"api_key", "default_headers", "env", "headers", "password", "token"})
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(value: object) -> object:
    """Durations: seconds as a number, or text such as "90s", "1m30s", "500ms"."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError("must be seconds, or text such as 90s or 1m30s")
    if isinstance(value, str):
        parts = _DURATION.findall(value)
        if not parts or "".join(number + unit for number, unit in parts) != value.strip():
            raise ValueError("must be seconds, or text such as 90s or 1m30s")
        value = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if value < 0:
        raise ValueError("must not be negative")
    return float(value)


def _name(value: object) -> object:
    """Names are text; a whole number becomes its digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and not value.strip():
        raise ValueError("must not be blank")
    return value


def _listed(value: object) -> object:
    """One name where a list is expected would be read letter by letter."""
    if isinstance(value, str):
        raise ValueError(f"must be a list, such as [{value}]")
    return value


def _trials(value: object) -> object:
    if value == "auto":
        return value
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("must be a whole number ≥ 1, or auto")
    if value > MOST_TRIALS:
        raise ValueError(f"must be at most {MOST_TRIALS:,}")
    return value


def _metric(value: str) -> str:
    parse_metric(value)
    return value


Seconds = Annotated[float, BeforeValidator(_seconds)]
Name = Annotated[str, BeforeValidator(_name)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_listed)]
Share = Annotated[float, Field(ge=0, le=1)]
Trials = Annotated[int | Literal["auto"], BeforeValidator(_trials)]
Count = Annotated[int, Field(ge=1)]
Price = Annotated[float, Field(ge=0, le=1e6)]


class _Part(BaseModel):
    """Base of all parts: frozen, of exact types, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class AgentConfig(_Part):
    """Which agent is tried."""

    type: Literal["openai", "anthropic", "langchain", "python", "http", "command"]
    name: Name | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    cost_per_input_token: Price | None = None
    cost_per_output_token: Price | None = None


class GraderConfig(_Part):
    """One grader."""

    type: Name
    weight: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    config: dict[str, Any] = Field(default_factory=dict)


class Target(_Part):
    """What the budget of adaptive trials is spent on."""

    metric: Annotated[str, AfterValidator(_metric)] = "pass^1"
    width: Annotated[float, Field(gt=0, le=1)] = 0.2


class Defaults(_Part):
    """What holds for every task that says nothing else."""

    trials_per_task: Trials = 1
    pass_threshold: Share = 0.5
    graders: Annotated[tuple[GraderConfig, ...], Field(strict=False)] = ()
    budget: Annotated[int, Field(ge=1, le=MOST_TRIALS)] | None = None
    target: Target = Target()


class Execution(_Part):
    """How trials are run."""

    concurrency: Count = 1
    rate_limit_rps: Annotated[float, Field(ge=0)] = 0.0
    timeout: Annotated[Seconds, Field(gt=0)] = 60.0
    max_retries: Annotated[int, Field(ge=0)] = 0
    retry_delay: Seconds = 1.0


class Cache(_Part):
    """Accepted for suites written for AgentEval; finished trials are always kept, each with its number."""

    enabled: bool = False
    dir: str | None = None
    ttl: Seconds = 86_400.0


class Hooks(_Part):
    """Shell commands that are told what happens, as JSON on their standard input."""

    before_run: str | None = None
    after_run: str | None = None
    before_task: str | None = None
    after_task: str | None = None
    before_trial: str | None = None
    after_trial: str | None = None


class Output(_Part):
    """What is written, and where."""

    format: Literal["table", "json", "html", "all"] = "table"
    dir: str = "./results"


class TaskInput(_Part):
    """What the user says."""

    prompt: str | None = None
    messages: Annotated[tuple[str, ...], Field(strict=False)] | None = None
    system: str = ""
    params: dict[str, Any] = Field(default_factory=dict)


class TaskConfig(_Part):
    """One task."""

    id: Name
    name: str = ""
    tags: Annotated[Names, Field(strict=False)] = ()
    input: TaskInput
    expected: dict[str, Any] = Field(default_factory=dict)
    graders: Annotated[tuple[GraderConfig, ...], Field(strict=False)] | None = None
    trials_per_task: Trials | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class SuiteConfig(_Part):
    """A suite as it is declared."""

    name: Name
    description: str = ""
    agent: AgentConfig
    defaults: Defaults = Defaults()
    execution: Execution = Execution()
    cache: Cache = Cache()
    hooks: Hooks = Hooks()
    task_files: Annotated[Names, Field(strict=False)] = ()
    tasks: Annotated[tuple[TaskConfig, ...], Field(strict=False)] = ()
    output: Output = Output()


@dataclass(frozen=True)
class Suite:
    """A suite that is ready to run.

    Attributes
    ----------
    path : Path
        The file.
    config : SuiteConfig
        What it declares; its own tasks and those of its files are in `tasks`.
    tasks : tuple of TaskConfig
        All tasks, in order.
    """

    path: Path
    config: SuiteConfig
    tasks: tuple[TaskConfig, ...]

    @property
    def folder(self) -> Path:
        """Where relative names begin."""
        return self.path.parent

    @property
    def agent_name(self) -> str:
        """How the agent is called in results."""
        given = self.config.agent
        model = given.config.get("model")
        return given.name or (model if isinstance(model, str) else None) or self.config.name

    def graders_of(self, task: TaskConfig) -> tuple[GraderConfig, ...]:
        """The graders of a task: its own, or the defaults."""
        return self.config.defaults.graders if task.graders is None else task.graders

    def trials_of(self, task: TaskConfig) -> int | Literal["auto"]:
        """How many trials a task is given."""
        return task.trials_per_task or self.config.defaults.trials_per_task

    def digest_of(self, task: TaskConfig) -> str:
        """A hash of everything that changes what a trial of this task is: agent, input, expectations, graders."""
        return _digest({"agent": [self.agent_digest, self.code_digest], "content": self.content_of(task)})

    def content_of(self, task: TaskConfig) -> str:
        """A hash of what a task asks and how it is judged, whichever agent does it."""
        content = {
            "task": task.model_dump(mode="json", exclude={"trials_per_task", "tags", "name", "metadata"}),
            "graders": [grader.model_dump(mode="json") for grader in self.graders_of(task)],
            "pass_threshold": self.config.defaults.pass_threshold,
        }
        return _digest(content)

    @cached_property
    def agent_digest(self) -> str:
        """A hash of the agent's declaration, without the values of keys and headers."""
        agent = self.config.agent
        return _digest({"type": agent.type, "name": agent.name, "config": _without_secrets(agent.config)})

    @cached_property
    def code_digest(self) -> str:
        """A hash of the agent's own files: its module or the parts of its command, as far as the folder has them."""
        files = [path for name in _file_names(self.config.agent) if (path := self.folder / name).is_file()]
        return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in files)).hexdigest()

    @property
    def digest(self) -> str:
        """A hash of the agent and of all tasks."""
        return hashlib.sha256(" ".join(sorted(map(self.digest_of, self.tasks))).encode()).hexdigest()


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _without_secrets(value: Any) -> Any:
    """A declaration whose headers, variables and keys have no values: another key is not another agent."""
    if isinstance(value, dict):
        return {
            name: (sorted(map(str, item)) if isinstance(item, dict) else None)
            if str(name).lower() in _SECRETS
            else _without_secrets(item)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_without_secrets(item) for item in value]
    return without_secrets(value) if isinstance(value, str) and "://" in value else value


def _file_names(agent: AgentConfig) -> list[str]:
    """Names that files of an agent may have: its module, the parts of its command."""
    found = []
    for key in ("function", "object"):
        if isinstance(value := agent.config.get(key), str):
            module = value.partition(":")[0].replace(".", "/")
            found += [f"{module}.py", f"{module}/__init__.py"]
    command = agent.config.get("command")
    parts = command.split() if isinstance(command, str) else command if isinstance(command, list) else []
    return found + [str(part) for part in parts if "\0" not in str(part)]


def as_task(config: TaskConfig) -> Task:
    """The task as agents and graders see it.

    Parameters
    ----------
    config : TaskConfig
        As declared.

    Returns
    -------
    Task
    """
    given = config.input
    return Task(
        id=config.id,
        messages=given.messages or (given.prompt or "",),
        system=given.system,
        params=given.params,
        expected=config.expected,
        name=config.name,
        tags=config.tags,
        metadata=config.metadata,
    )


def json_schema() -> dict[str, Any]:
    """The JSON schema of a suite file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **SuiteConfig.model_json_schema()}


def load_suite(path: str | os.PathLike[str], *, environment: Mapping[str, str] | None = None) -> Suite:
    """Read and check a suite.

    Parameters
    ----------
    path : path
        Its YAML file.
    environment : mapping, optional
        Values of ``${VAR}``; the process's own unless given.

    Returns
    -------
    Suite

    Raises
    ------
    SuiteError
        With everything that is wrong, in the suite and in its task files.
    """
    file = Path(path)
    if not file.is_file():
        raise SuiteError([Problem(str(file), "", "", no_such_file(file).removeprefix(f"{file}: "))])
    document = read_yaml(file, environment=environment)
    problems = document.problems
    value = document.value
    if isinstance(value, dict):
        value = {key: content for key, content in value.items() if key != "$schema"}
    config = _validated(SuiteConfig, value, document, ())
    tasks: list[tuple[TaskConfig, Document, tuple[str | int, ...]]] = []
    if config is not None:
        tasks += [(task, document, ("tasks", i)) for i, task in enumerate(config.tasks)]
        for position, pattern in enumerate(config.task_files):
            found = sorted(glob.glob(str(file.parent / pattern), recursive=True))
            if not found:
                where = document.line(("task_files", position))
                problems.append(Problem(str(file), where, "task_files", f"{pattern!r} matches no file"))
            for name in found:
                tasks += _tasks_in(Path(name), environment, problems)
        problems += _across(config, tasks, file)
        if not tasks and not problems:
            problems.append(Problem(str(file), "", "tasks", "must hold at least one task, here or in task_files"))
    if problems or config is None:
        raise SuiteError(problems)
    return Suite(file, config, tuple(task for task, _, _ in tasks))


def _tasks_in(
    file: Path, environment: Mapping[str, str] | None, problems: list[Problem]
) -> list[tuple[TaskConfig, Document, tuple[str | int, ...]]]:
    """The tasks of a file that holds one, or a list of them."""
    document = read_yaml(file, environment=environment)
    value = document.value
    items: Sequence[Any] = value if isinstance(value, list) else [value]
    found: list[tuple[TaskConfig, Document, tuple[str | int, ...]]] = []
    for index, item in enumerate(items):
        path: tuple[str | int, ...] = (index,) if isinstance(value, list) else ()
        task = _validated(TaskConfig, item, document, path)
        if task is not None:
            found.append((task, document, path))
    problems += document.problems
    return found


def _validated(kind: Any, value: Any, document: Document, prefix: tuple[str | int, ...]) -> Any:
    """A part of a suite; what is wrong with it goes to the document's problems."""
    if not isinstance(value, dict):
        if not document.problems:
            document.problems.append(
                Problem(
                    document.source, document.line(prefix), field_path(prefix), f"must be an object, got {short(value)}"
                )
            )
        return None
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        details = error.errors(include_url=False)
        if (typed := _typed(value, details)) is not None:
            return _validated(kind, typed, document, prefix)
        for detail in details:
            path = (*prefix, *(part for part in detail["loc"] if part not in ("int", "literal['auto']")))
            document.problems.append(
                Problem(document.source, document.line(path), field_path(path), _worded(kind, detail))
            )
    return None


def _typed(value: Any, details: Sequence[Any]) -> Any:
    """The value with numbers in place of texts from variables that were refused as texts; None if there are none."""
    refused = {id(text) for d in details if isinstance(text := d["input"], FromVariables) and text.plain != text}

    def typed(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: typed(inner) for key, inner in item.items()}
        if isinstance(item, list):
            return [typed(inner) for inner in item]
        return item.plain if id(item) in refused else item

    return typed(value) if refused else None


def _worded(kind: type[BaseModel], detail: Any) -> str:
    """A problem in this package's words."""
    value = short(detail["input"])
    match detail["type"]:
        case "extra_forbidden":
            return f"unknown key: {did_you_mean(str(detail['loc'][-1]), _known_at(kind, detail['loc'][:-1]))}"
        case "missing":
            return "is missing and must be given"
        case "value_error":
            return f"{detail['ctx']['error']}, got {value}"
        case "literal_error":
            return f"must be {detail['ctx']['expected']}, got {value}"
        case "string_type":
            return f"must be text, got {value}"
        case "dict_type" | "model_type":
            return f"must be an object, got {value}"
        case "tuple_type":
            return f"must be a list, got {value}"
    return f"{detail['msg'][0].lower()}{detail['msg'][1:]}, got {value}"


def _known_at(kind: Any, path: Sequence[str | int]) -> list[str]:
    """The keys that may stand at a place."""
    for part in path:
        if isinstance(part, int) or not hasattr(kind, "model_fields"):
            continue
        annotation = kind.model_fields[part].annotation if part in kind.model_fields else None
        kind = next((inner for inner in _models_in(annotation)), None)
    return list(kind.model_fields) if kind is not None and hasattr(kind, "model_fields") else []


def _models_in(annotation: Any) -> list[Any]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in getattr(annotation, "__args__", ()) for model in _models_in(inner)]


def _across(
    config: SuiteConfig, tasks: Sequence[tuple[TaskConfig, Document, tuple[str | int, ...]]], file: Path
) -> list[Problem]:
    """What takes more than one field to see."""
    found: list[Problem] = []
    first: dict[str, str] = {}
    for task, document, path in tasks:
        where = document.line((*path, "id"))
        place = f"{document.source}, {where}"
        if task.id in first:
            message = f"must be unique, got {task.id!r} also at {first[task.id]}"
            found.append(Problem(document.source, where, field_path((*path, "id")), message))
        first.setdefault(task.id, place)
        if (task.input.prompt is None) == (task.input.messages is None) or task.input.messages == ():
            message = "must give prompt, or messages (a list of at least one)"
            found.append(
                Problem(document.source, document.line((*path, "input")), field_path((*path, "input")), message)
            )
        graders = config.defaults.graders if task.graders is None else task.graders
        if not graders:
            message = "must be given here or in defaults: without a grader nothing passes or fails"
            found.append(Problem(document.source, document.line(path), field_path((*path, "graders")), message))
        elif not any(grader.weight for grader in graders):
            message = "must have at least one weight > 0"
            found.append(Problem(document.source, document.line(path), field_path((*path, "graders")), message))
    auto = config.defaults.trials_per_task == "auto" or any(task.trials_per_task == "auto" for task, _, _ in tasks)
    if auto and config.defaults.budget is None:
        message = "must be given where trials_per_task is auto: how many trials may be spent"
        found.append(Problem(str(file), "", "defaults.budget", message))
    return found
