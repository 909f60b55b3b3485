"""Run one trial: ask the agent, ask again after an error, grade the reply and reach a verdict."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import anyio

from agentic_bayes.errors import Problem, SuiteError, described
from agentic_bayes.evidence.score import Score, Unscored
from agentic_bayes.formatting import plural
from agentic_bayes.records.wire.characters import replaced
from agentic_bayes.redaction import Secrets
from agentic_bayes.suites.agents.registry import close_agent, make_agent
from agentic_bayes.suites.config import Suite, as_task
from agentic_bayes.suites.declaration import TaskConfig
from agentic_bayes.suites.stores.reply_cache import ReplyCache
from agentic_bayes.suites.trial import Agent, AgentReply, TrialAttempt, TrialGrader, TrialResult

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

    def __init__(self, suite: Suite, tasks: Sequence[TaskConfig], agent: Agent | None) -> None:
        self._graders = make_graders(suite, tasks)
        # refuse graders whose model or package is missing, before the first trial costs anything
        every = {id(grader): grader for graders in self._graders.values() for grader in graders}
        problems = {grader.name: ready() for grader in every.values() if (ready := getattr(grader, "ready", None))}
        _refuse(suite, [f"{name}: {problem}" for name, problem in problems.items() if problem])
        self._agent = agent or make_agent(suite.config.agent, folder=suite.folder)

    async def reply(self, attempt: TrialAttempt) -> AgentReply:
        """Ask the agent."""
        return await self._agent.attempt(attempt)

    async def grades(self, task: TaskConfig, attempt: TrialAttempt, reply: AgentReply) -> Grades:
        """Grade a reply."""
        return await _grades_of(self._graders[task.id], attempt, reply)

    async def close(self) -> None:
        """Close the agent's connections."""
        await close_agent(self._agent)


class RemoteWork:
    """Runs and grades trials in the processes of an executor, which make the agent and the graders themselves."""

    def __init__(self, suite: Suite, executor: Executor) -> None:
        make_graders(suite, suite.tasks)  # so that a wrong declaration is reported before anything is sent
        self._suite, self._executor = suite, executor

    async def reply(self, attempt: TrialAttempt) -> AgentReply:
        """Ask the agent."""
        return await asyncio.wrap_future(self._executor.submit(_remote_reply, self._suite, attempt))

    async def grades(self, task: TaskConfig, attempt: TrialAttempt, reply: AgentReply) -> Grades:
        """Grade a reply."""
        return await asyncio.wrap_future(self._executor.submit(_remote_grades, self._suite, task, attempt, reply))

    async def close(self) -> None:
        """Leave the executor open, which belongs to the caller."""


def make_graders(suite: Suite, tasks: Iterable[TaskConfig]) -> dict[str, list[TrialGrader]]:
    """The graders of every task, checked against the task."""
    from agentic_bayes.suites.graders import registry  # here, because a process that only asks the agent needs none

    made: dict[str, list[TrialGrader]] = {}
    by_task: dict[str, list[TrialGrader]] = {}
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
            check = getattr(grader, "check", None)
            if check is not None and (problem := check(as_task(task))):
                messages.setdefault(f"task {task.id!r}: {grader.name}: {problem}")
        by_task[task.id] = made[key]
    _refuse(suite, messages)
    return by_task


def _refuse(suite: Suite, messages: Iterable[str]) -> None:
    problems = [Problem(str(suite.path), "", "", message) for message in messages]
    if problems:
        raise SuiteError(problems)


def _remote_reply(suite: Suite, attempt: TrialAttempt) -> AgentReply:
    async def ask() -> AgentReply:
        agent = make_agent(suite.config.agent, folder=suite.folder)
        try:
            return await agent.attempt(attempt)
        finally:
            await close_agent(agent)

    return asyncio.run(ask())


def _remote_grades(suite: Suite, task: TaskConfig, attempt: TrialAttempt, reply: AgentReply) -> Grades:
    return asyncio.run(_grades_of(make_graders(suite, [task])[task.id], attempt, reply))


async def _grades_of(graders: Sequence[TrialGrader], attempt: TrialAttempt, reply: AgentReply) -> Grades:
    """Grade a reply with every grader."""
    grades: Grades = {}
    for grader in graders:
        try:
            grade = await grader.grade(attempt, reply)
        except Exception as error:
            grade = Unscored(described(error))
        if isinstance(grade, Score):
            entry = {"score": grade.value, "pass": bool(grade.details.get("pass")), "reason": grade.reason}
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
    while kept is None:
        tries += 1
        await pace.wait()
        started = time.perf_counter()
        try:
            with anyio.fail_after(execution.timeout):
                reply = await work.reply(attempt)
            break
        except TimeoutError as error:
            problem = f"no reply within {execution.timeout:g} s" if not str(error) else described(error)
        except Exception as error:
            problem = described(error)
        latency = time.perf_counter() - started
        if tries > execution.max_retries:
            return TrialResult(task.id, trial, "error", error=problem, latency=latency, attempts=tries)
        await anyio.sleep(delay)
        delay *= 2
    if kept is not None:
        reply, latency = kept
    else:
        latency = time.perf_counter() - started
        if cache is not None:
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
