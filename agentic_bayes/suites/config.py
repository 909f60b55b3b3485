"""Load a suite from YAML and check it as a whole; every problem is reported with its line."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from agentic_bayes.checks import no_such_file
from agentic_bayes.errors import Problem, SuiteError
from agentic_bayes.records.sources import files_in
from agentic_bayes.records.survey import holds_conversations
from agentic_bayes.redaction import Secrets
from agentic_bayes.suites.agents.declared import without_secrets
from agentic_bayes.suites.declaration import AgentConfig, GraderConfig, SuiteConfig, TaskConfig
from agentic_bayes.suites.reading.validation import validated
from agentic_bayes.suites.reading.yaml_text import YamlDocument, YamlPath, read_yaml
from agentic_bayes.suites.secrets import errors_without, suite_secrets
from agentic_bayes.suites.trial import SuiteTask

_SECRETS = frozenset({"api_key", "default_headers", "env", "headers", "password", "token"})
_LocatedTask = tuple[TaskConfig, YamlDocument, YamlPath]  # a task, and where it was declared


@dataclass(frozen=True)
class Suite:
    """A checked suite, ready to run."""

    path: Path  # its YAML file
    config: SuiteConfig  # what the file declares
    tasks: tuple[TaskConfig, ...]  # all tasks in order: those of the file, then those of its task files
    secrets: Secrets = field(default=Secrets({}), repr=False, compare=False)  # of all its files

    @property
    def folder(self) -> Path:
        """The suite's folder, to which its paths are relative."""
        return self.path.parent

    @property
    def agent_name(self) -> str:
        """The agent's name in results."""
        agent = self.config.agent
        model = agent.config.get("model")
        return agent.name or (model if isinstance(model, str) else None) or self.config.name

    @property
    def names(self) -> list[str]:
        """Names and ids of the suite, its agent and its tasks."""
        return [self.config.name, self.agent_name, *(name for task in self.tasks for name in (task.id, *task.tags))]

    def graders_of(self, task: TaskConfig) -> tuple[GraderConfig, ...]:
        """The graders of a task: its own, or the defaults."""
        return self.config.defaults.graders if task.graders is None else task.graders

    def trials_of(self, task: TaskConfig) -> int | Literal["auto"]:
        """The number of trials of a task."""
        return task.trials_per_task or self.config.defaults.trials_per_task

    def overview(self) -> dict[str, Any]:
        """Name, agent, number of tasks, and of trials (at most, if their number adapts)."""
        trials = [self.trials_of(task) for task in self.tasks]
        adaptive = "auto" in trials
        total = self.config.defaults.budget if adaptive else sum(map(int, trials))
        facts = {"suite": self.config.name, "agent": self.agent_name, "tasks": len(self.tasks)}
        return facts | {"trials": total, "adaptive": adaptive}

    def digest_of(self, task: TaskConfig) -> str:
        """Hash everything that affects a trial of this task: agent, input, expectations and graders."""
        return _digest({"agent": [self.agent_digest, self.code_digest], "content": self.content_of(task)})

    def content_of(self, task: TaskConfig) -> str:
        """Hash what a task asks and how it is graded, without the agent."""
        content = {
            "task": task.model_dump(mode="json", exclude={"trials_per_task", "tags", "name", "metadata"}),
            "graders": [grader.model_dump(mode="json") for grader in self.graders_of(task)],
            "pass_threshold": self.config.defaults.pass_threshold,
        }
        return _digest(content)

    @cached_property
    def agent_digest(self) -> str:
        """Hash the agent's declaration, without secret values."""
        agent = self.config.agent
        return _digest({"type": agent.type, "name": agent.name, "config": _without_secrets(agent.config)})

    @cached_property
    def code_digest(self) -> str:
        """Hash the agent's own files in the suite's folder: its module, or the files that its command names."""
        files = [path for name in _file_names(self.config.agent) if (path := self.folder / name).is_file()]
        return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in files)).hexdigest()

    def digest_with_agent(self, content: Any) -> str:
        """Hash the agent and JSON values."""
        return _digest([self.agent_digest, self.code_digest, content])

    @property
    def digest(self) -> str:
        """Hash the agent and all tasks."""
        return hashlib.sha256(" ".join(sorted(map(self.digest_of, self.tasks))).encode()).hexdigest()


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _without_secrets(value: Any) -> Any:
    """Drop secret values before hashing, so that rotating a key does not change the agent's identity."""
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
    """Names that the agent's files may have: its module, the parts of its command."""
    names = []
    for key in ("function", "object"):
        if isinstance(value := agent.config.get(key), str):
            module = value.partition(":")[0].replace(".", "/")
            names += [f"{module}.py", f"{module}/__init__.py"]
    command = agent.config.get("command")
    parts = command.split() if isinstance(command, str) else command if isinstance(command, list) else []
    return names + [str(part) for part in parts if "\0" not in str(part)]


def as_task(config: TaskConfig) -> SuiteTask:
    """The task as agents and graders see it."""
    task_input = config.input
    return SuiteTask(
        id=config.id,
        messages=task_input.messages or (task_input.prompt or "",),
        system=task_input.system,
        params=task_input.params,
        expected=config.expected,
        name=config.name,
        tags=config.tags,
        metadata=config.metadata,
    )


def json_schema() -> dict[str, Any]:
    """The JSON schema of a suite file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **SuiteConfig.model_json_schema()}


def is_suite_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file is YAML by its name."""
    return Path(path).suffix.lower() in (".yaml", ".yml")


def suites_in(folder: str | os.PathLike[str]) -> list[str]:
    """The suites directly in a folder: YAML files that declare an agent and its tasks."""
    found = []
    for file in sorted(path for path in Path(folder).glob("*") if is_suite_file(path) and path.is_file()):
        with contextlib.suppress(OSError):  # what cannot be read is said of the files that are asked for
            text = file.read_text(encoding="utf-8", errors="replace")
            found += [str(file)] if all(key.search(text) for key in _SUITE_KEYS) else []
    return found


def conversations_beside(folder: str, suites: Sequence[Suite]) -> tuple[list[str], list[str]]:
    """Files in a folder of suites with conversations, and those with other JSON; what the suites write is neither."""
    own = [suite.folder / place for suite in suites for place in (suite.config.output.dir, suite.config.cache.dir)]
    conversations, others = list[str](), list[str]()
    for name in files_in(folder):
        file = Path(name)
        if file.name != SCHEMA_FILE and not any(file.is_relative_to(place) for place in own):
            (conversations if holds_conversations(name) else others).append(name)
    return conversations, others


def load_suite(path: str | os.PathLike[str], *, environment: Mapping[str, str] | None = None) -> Suite:
    """Read a suite and its task files with the values that ``${VAR}`` has in the `environment`, or in this process."""
    file = Path(path)
    if not file.is_file():
        raise SuiteError([Problem(str(file), "", "", no_such_file(file).removeprefix(f"{file}: "))])
    document = read_yaml(file, environment=environment)
    documents = [document]
    problems = document.problems
    value = document.value
    if isinstance(value, dict):
        value = {key: content for key, content in value.items() if key != "$schema"}
    config = validated(SuiteConfig, value, document, ())
    tasks: list[_LocatedTask] = []
    if config is not None:
        tasks += [(task, document, ("tasks", i)) for i, task in enumerate(config.tasks)]
        for position, pattern in enumerate(config.task_files):
            names = sorted(glob.glob(str(file.parent / pattern), recursive=True))
            if not names:
                line = document.line(("task_files", position))
                problems.append(Problem(str(file), line, "task_files", f"{pattern!r} matches no file"))
            for name in names:
                documents.append(read_yaml(Path(name), environment=environment))
                tasks += _tasks_in(documents[-1], problems)
        problems += _problems_across(config, tasks, file)
        if not tasks and not problems:
            problems.append(Problem(str(file), "", "tasks", "must hold at least one task, here or in task_files"))
    suite = None if config is None else Suite(file, config, tuple(task for task, _, _ in tasks))
    variables = {name: text for read in documents for name, text in read.variables.items()}
    declared = [read.value for read in documents[1:]]
    secrets = suite_secrets(
        {**value, "task_files": declared} if isinstance(value, dict) else declared,
        variables,
        os.environ if environment is None else environment,
        () if suite is None else suite.names,
    )
    if problems or suite is None:
        with errors_without(secrets):
            raise SuiteError(problems)
    return replace(suite, secrets=secrets)


def _tasks_in(document: YamlDocument, problems: list[Problem]) -> list[_LocatedTask]:
    """The tasks of a file that holds one task or a list of tasks."""
    value = document.value
    items: Sequence[Any] = value if isinstance(value, list) else [value]
    tasks: list[_LocatedTask] = []
    for index, item in enumerate(items):
        path: YamlPath = (index,) if isinstance(value, list) else ()
        task = validated(TaskConfig, item, document, path)
        if task is not None:
            tasks.append((task, document, path))
    problems += document.problems
    return tasks


def _problems_across(config: SuiteConfig, tasks: Sequence[_LocatedTask], file: Path) -> list[Problem]:
    """Problems that show only when several fields are compared."""
    problems: list[Problem] = []
    first: dict[str, str] = {}
    for task, document, path in tasks:
        if task.id in first:
            message = f"must be unique, got {task.id!r} also at {first[task.id]}"
            problems.append(document.problem_at((*path, "id"), message))
        first.setdefault(task.id, f"{document.source}, {document.line((*path, 'id'))}")
        if (task.input.prompt is None) == (task.input.messages is None) or task.input.messages == ():
            message = "must give prompt, or messages (a list of at least one)"
            problems.append(document.problem_at((*path, "input"), message))
        graders = config.defaults.graders if task.graders is None else task.graders
        if not graders:
            message = "must be given here or in defaults: without a grader nothing passes or fails"
            problems.append(document.problem_at((*path, "graders"), message))
        elif not any(grader.weight for grader in graders):
            problems.append(document.problem_at((*path, "graders"), "must have at least one weight > 0"))
    auto = config.defaults.trials_per_task == "auto" or any(task.trials_per_task == "auto" for task, _, _ in tasks)
    if auto and config.defaults.budget is None:
        message = "must be given if trials_per_task is auto: how many trials may be spent"
        problems.append(Problem(str(file), "", "defaults.budget", message))
    return problems


_SUITE_KEYS = [re.compile(rf"^{keys} *:", re.MULTILINE) for keys in ("agent", "(?:tasks|task_files|defaults)")]
SCHEMA_FILE = "suite.schema.json"
