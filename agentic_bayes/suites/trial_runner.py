"""Run one trial: ask the agent, ask again after an error, grade the reply and reach a verdict."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import anyio

from agentic_bayes.errors import Problem, SuiteError, described
from agentic_bayes.evidence.score import KINDS, Score, Unscored, named_kinds
from agentic_bayes.executors import ExecutorChoice, Workers, awaited, packed
from agentic_bayes.formatting import plural
from agentic_bayes.records.wire.characters import replaced
from agentic_bayes.redaction import Secrets
from agentic_bayes.suites.agents.registry import close_agent, make_agent
from agentic_bayes.suites.config import Suite, as_task
from agentic_bayes.suites.declaration import TaskConfig
from agentic_bayes.suites.stores.reply_cache import ReplyCache
from agentic_bayes.suites.trial import Agent, AgentReply, TrialAttempt, TrialResult

if TYPE_CHECKING:
    from agentic_bayes.suites.graders.registry import SuiteGrader

AskedAgent = tuple[AgentReply | str, float]  # the reply, or why there is none, and the seconds that it took
Grades = dict[str, dict[str, Any]]  # grader → its grade, in JSON values


class Pace:
    """Lets trials start at most so often per second."""

    def __init__(self, per_second: float) -> None:
        self._interval = 1 / per_second if per_second else 0.0
        self._turn = asyncio.Lock()
        self._next = 0.0

    async def wait(self) -> None:
        """Wait until the next trial may start."""
        if not self._interval:
            return
        async with self._turn:
            if (early := self._next - time.monotonic()) > 0:
                await anyio.sleep(early)
            self._next = time.monotonic() + self._interval


class LocalWork:
    """Runs and grades trials in this process."""

    size = 1  # processes

    def __init__(self, suite: Suite, tasks: Sequence[TaskConfig], agent: Agent | None = None) -> None:
        self._suite, self._graders = suite, make_graders(suite, tasks)
        # refuse graders whose model or package is missing, before the first trial costs anything
        every = {id(grader): grader for graders in self._graders.values() for grader in graders}
        problems = {grader.name: grader.ready() for grader in every.values()}
        _refuse(suite, [f"{name}: {problem}" for name, problem in problems.items() if problem])
        self._agent = agent or make_agent(suite.config.agent, folder=suite.folder)
        self._timeout = suite.config.execution.timeout

    async def reply(self, attempt: TrialAttempt) -> AskedAgent:
        """Ask the agent."""
        started = time.perf_counter()
        try:
            with anyio.fail_after(self._timeout):
                reply: AgentReply | str = await self._agent.attempt(attempt)
        except TimeoutError as error:
            reply = f"no reply within {self._timeout:g} s" if not str(error) else described(error)
        except Exception as error:
            reply = described(error)
        return reply, time.perf_counter() - started

    async def grades(self, task: TaskConfig, attempt: TrialAttempt, reply: AgentReply) -> Grades:
        """Grade a reply."""
        if task.id not in self._graders:  # a worker process learns of tasks as they come
            self._graders |= make_graders(self._suite, [task])
        return await _grades_of(self._graders[task.id], attempt, reply)

    async def close(self) -> None:
        """Close the agent's connections."""
        await close_agent(self._agent)


class RemoteWork:
    """Runs and grades trials in worker processes, each of which makes the agent and the graders once."""

    def __init__(self, suite: Suite, tasks: Sequence[TaskConfig], executor: ExecutorChoice) -> None:
        LocalWork(suite, tasks)  # so that a wrong declaration is reported before anything is sent
        # tasks come with each call; secrets are hidden here, in what comes back
        config = suite.config.model_copy(update={"tasks": ()})
        bare = replace(suite, path=suite.path.resolve(), config=config, tasks=(), secrets=Secrets({}))
        self._sent = packed(_SentWork(bare), "the suite")
        self._workers = Workers.open(executor)

    @property
    def size(self) -> int:
        """The number of worker processes; 0 if unknown."""
        return self._workers.size

    async def reply(self, attempt: TrialAttempt) -> AskedAgent:
        """Ask the agent."""
        asked: AskedAgent = await asyncio.wrap_future(self._workers.submit(self._sent, "reply", attempt))
        return asked

    async def grades(self, task: TaskConfig, attempt: TrialAttempt, reply: AgentReply) -> Grades:
        """Grade a reply."""
        grades: Grades = await asyncio.wrap_future(self._workers.submit(self._sent, "grades", task, attempt, reply))
        return grades

    async def close(self) -> None:
        """End the workers; an executor that was passed in belongs to the caller and stays open."""
        self._workers.close()


def make_graders(suite: Suite, tasks: Iterable[TaskConfig]) -> dict[str, list[SuiteGrader]]:
    """The graders of every task, checked against the task."""
    from agentic_bayes.suites.graders import registry  # here, because a process that only asks the agent needs none

    made: dict[str, list[SuiteGrader]] = {}
    by_task: dict[str, list[SuiteGrader]] = {}
    messages: dict[str, None] = {}
    for task in tasks:
        configs = suite.graders_of(task)
        key = "\0".join(config.model_dump_json() for config in configs)
        if key not in made:
            problems: list[str] = []
            threshold = suite.config.defaults.pass_threshold
            made[key] = registry.make_graders(configs, pass_threshold=threshold, folder=suite.folder, problems=problems)
            messages |= dict.fromkeys(f"graders: {problem}" for problem in problems)
        for grader in made[key]:
            if problem := grader.check(as_task(task)):
                messages.setdefault(f"task {task.id!r}: {grader.name}: {problem}")
        by_task[task.id] = made[key]
    _refuse(suite, messages)
    return by_task


def _refuse(suite: Suite, messages: Iterable[str]) -> None:
    problems = [Problem(str(suite.path), "", "", message) for message in messages]
    if problems:
        raise SuiteError(problems)


@dataclass(frozen=True)
class _SentWork:
    """In a worker process: the work of a suite, made at the first call."""

    suite: Suite  # without its tasks

    def __call__(self, part: Literal["reply", "grades"], *arguments: Any) -> Any:
        return awaited(getattr(self._work, part)(*arguments))

    @cached_property
    def _work(self) -> LocalWork:
        return LocalWork(self.suite, ())


async def _grades_of(graders: Sequence[SuiteGrader], attempt: TrialAttempt, reply: AgentReply) -> Grades:
    """Grade a reply with every grader."""
    grades: Grades = {}
    for grader in graders:
        try:
            grade = await grader.grade(attempt, reply)
        except Exception as error:
            grade = Unscored(described(error))
        if isinstance(grade, Score):
            entry = {"score": grade.value, "pass": bool(grade.details.get("pass")), "reason": grade.reason}
            entry |= {KINDS: list(kinds)} if (kinds := named_kinds(grade.details)) else {}
        else:
            entry = {"unscored": grade.reason}
        grades[grader.name] = {**entry, "weight": grader.weight}
    return grades


async def run_trial(
    suite: Suite,
    task: TaskConfig,
    trial: int,
    work: LocalWork | RemoteWork,
    pace: Pace,
    cache: ReplyCache | None = None,
) -> TrialResult:
    """Run one trial; ask the agent again after an error, as often as the suite allows."""
    execution = suite.config.execution
    attempt = TrialAttempt(as_task(task), trial, _seed_of(suite, task, trial))
    delay, tries = execution.retry_delay, 0
    kept = None if cache is None else cache.get(attempt)
    reply, latency = kept or ("", 0.0)
    while not isinstance(reply, AgentReply):
        if tries:
            await anyio.sleep(delay)
            delay *= 2
        tries += 1
        await pace.wait()
        reply, latency = await work.reply(attempt)
        if isinstance(reply, str) and tries > execution.max_retries:
            return TrialResult(task.id, trial, "error", error=reply, latency=latency, attempts=tries)
    if cache is not None and kept is None:
        cache.add(attempt, reply, latency)
    verdict = verdict_of(task.id, trial, await work.grades(task, attempt, reply))
    return replace(
        verdict,
        latency=latency,
        attempts=tries,
        answers=reply.answers,
        tool_calls=tuple(None if calls is None else list(calls) for calls in reply.tool_calls),
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        cost=_cost(suite, reply),
        cached=kept is not None,
    )


def fit_to_keep(result: TrialResult, secrets: Secrets) -> tuple[TrialResult, int]:
    """A result as it is written: without secrets, and with nothing that is no text; and how much was replaced."""
    parts = {name: getattr(result, name) for name in ("answers", "tool_calls", "grades", "error")}
    readable, count = replaced(parts)
    hidden = secrets.hide(readable)
    return (result if hidden is parts else replace(result, **hidden)), count


def _seed_of(suite: Suite, task: TaskConfig, trial: int) -> int:
    """The seed of a trial: different for every trial, and the same in every run."""
    text = f"{suite.config.name}\0{task.id}\0{trial}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) >> 1


def verdict_of(task: str, trial: int, grades: Grades) -> TrialResult:
    """The verdict from all grades: one failing grader fails the trial; else one without a score leaves it open."""
    scored = [grade for grade in grades.values() if "score" in grade]
    weight = sum(grade["weight"] for grade in scored)
    score = sum(grade["weight"] * grade["score"] for grade in scored) / weight if weight else None
    unscored = {name: grade["unscored"] for name, grade in grades.items() if "unscored" in grade}
    if any(not grade["pass"] for grade in scored):
        return TrialResult(task, trial, "fail", score, grades=grades)
    if unscored:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in unscored.items())
        problem = f"{plural(len(unscored), 'grader')} could not grade: {reasons}"
        return TrialResult(task, trial, "error", grades=grades, error=problem)
    return TrialResult(task, trial, "pass", score, grades=grades)


def _cost(suite: Suite, reply: AgentReply) -> float | None:
    """The cost of a reply's tokens; None if a price or a number of tokens is unknown."""
    agent = suite.config.agent
    pairs = (reply.input_tokens, agent.cost_per_input_token), (reply.output_tokens, agent.cost_per_output_token)
    priced = [(count, price) for count, price in pairs if price is not None]
    if not priced or any(count is None for count, _ in priced):
        return None
    return sum((count or 0) * price for count, price in priced)
