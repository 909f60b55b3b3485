"""Tasks × trials, at a stated pace, with everything that ended on disk: run, stop, go on."""

from __future__ import annotations

import asyncio
import hashlib
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from agentic_bayes.errors import AgenticBayesWarning, DamagedRun, InvalidArgument, Problem, SuiteError
from agentic_bayes.evidence.score import Score, Unscored
from agentic_bayes.formatting import parse_metric, plural
from agentic_bayes.suites.adaptive import allocate, end_of, first_plan, round_size
from agentic_bayes.suites.config import Suite, as_task
from agentic_bayes.suites.declaration import MOST_TRIALS, GraderConfig, TaskConfig
from agentic_bayes.suites.hooks import run_hook
from agentic_bayes.suites.run_store import FILE, RunStore
from agentic_bayes.suites.trial import Agent, AgentReply, TrialAttempt, TrialGrader, TrialResult

__all__ = ["SuiteRun", "TrialProgress", "check_suite", "find_run", "plan_run", "run_suite", "select_tasks"]

TrialProgress = Callable[[TrialResult, int, int], object]
"""Called with every trial that ended, how many ended, and how many there are."""

_LONGEST_NAME = 40


@dataclass(frozen=True)
class SuiteRun:
    """A run: its folder, and which trials it is to have."""

    suite: Suite  # what is run
    folder: Path  # where its trials are kept
    tasks: tuple[TaskConfig, ...]  # those that were chosen
    pending: tuple[tuple[TaskConfig, int], ...]  # trials without a verdict: never run, or errored
    planned: dict[str, int]  # trials of each task; with adaptive trials those of the rounds so far
    budget: int | None = None  # trials that adaptive ones may grow to; None where every task has its number
    continued: bool = False  # whether it was begun before

    @property
    def total(self) -> int:
        """Trials that are planned."""
        return sum(self.planned.values())

    @property
    def id(self) -> str:
        """Name of the folder."""
        return self.folder.name


def select_tasks(
    suite: Suite, *, tags: Sequence[str] = (), exclude_tags: Sequence[str] = (), limit: int | None = None
) -> tuple[TaskConfig, ...]:
    """Some of the tasks of a suite."""
    known = {tag for task in suite.tasks for tag in task.tags}
    for tag in (*tags, *exclude_tags):
        if tag not in known:
            raise InvalidArgument(f"no task has the tag {tag!r}: there is {', '.join(sorted(known)) or 'none'}")
    chosen = [
        task
        for task in suite.tasks
        if (not tags or set(tags) & set(task.tags)) and not set(exclude_tags) & set(task.tags)
    ][:limit]
    if not chosen:
        raise InvalidArgument("no task is left: tags and limit exclude all of them")
    return tuple(chosen)


def plan_run(
    suite: Suite,
    tasks: Sequence[TaskConfig],
    *,
    output: Path | None = None,
    resume: str | None = None,
    new: bool = False,
) -> SuiteRun:
    """Which trials are to be run, and where: an unfinished run of the same suite goes on.

    Parameters
    ----------
    suite : Suite
        The suite.
    tasks : sequence of TaskConfig
        Those that are run.
    output : Path, optional
        Folder of all runs; the suite's own unless given.
    resume : str, optional
        Id of the run that goes on.
    new : bool
        Start a new run, whatever is unfinished.

    Returns
    -------
    Run

    Raises
    ------
    InvalidArgument
        If the run that would go on is of another agent or other content, or there is none of this id.
    """
    results = output or suite.folder / suite.config.output.dir
    planned, budget = _first_round(suite, tasks)
    if resume is not None and new:
        raise InvalidArgument("--resume and --new exclude each other")
    folder: Path | None
    if resume is not None:
        folder = results / resume
        with RunStore(folder) as store:
            _check_same(suite, folder, store.facts)
    else:
        folder = None if new else _unfinished(suite, results, planned if budget is None else None)
    done: set[tuple[str, int]] = set()
    if folder is not None:
        with RunStore(folder) as store:
            done, before = store.done(), store.facts["planned"]
        if budget is not None:
            planned = {task: max(count, before.get(task, 0)) for task, count in planned.items()}
    pending = tuple(
        (task, trial) for task in tasks for trial in range(planned[task.id]) if (task.id, trial) not in done
    )
    where = folder or results / _new_id(suite, results)
    return SuiteRun(suite, where, tuple(tasks), pending, planned, budget, continued=folder is not None)


def _first_round(suite: Suite, tasks: Sequence[TaskConfig]) -> tuple[dict[str, int], int | None]:
    """Trials of every task, those of the first round where their number is left open; and the budget, if it is."""
    asked = {task.id: suite.trials_of(task) for task in tasks}
    fixed = {task: int(trials) for task, trials in asked.items() if trials != "auto"}
    open_ = len(asked) - len(fixed)
    budget = suite.config.defaults.budget
    if sum(fixed.values()) > MOST_TRIALS:
        raise InvalidArgument(f"a run has at most {MOST_TRIALS:,} trials, got {sum(fixed.values()):,}")
    if not open_ or budget is None:
        return fixed, None
    left = budget - sum(fixed.values())
    if left < open_:
        raise InvalidArgument(
            f"defaults.budget must allow a trial of each of the {plural(open_, 'task')} with trials_per_task: auto"
            f"{f', after {sum(fixed.values()):,} trials of the others' if fixed else ''}, got {budget}"
        )
    first = first_plan(open_, left)
    return {task.id: fixed.get(task.id, first) for task in tasks}, budget


def find_run(name: str, *, results: Path = Path("results")) -> Path | None:
    """The folder of a run."""
    for folder in (Path(name), results / name):
        if (folder / FILE).is_file():
            return folder
    return None


def _runs_of(suite: Suite, results: Path) -> Iterator[Path]:
    """Folders of runs of this suite, the latest first."""
    folders = [path.parent for path in results.glob(f"*/{FILE}")] if results.is_dir() else []
    for folder in sorted(folders, key=lambda path: path.name, reverse=True):
        try:
            with RunStore(folder) as store:
                facts = store.facts
        except InvalidArgument as error:
            warnings.warn(f"{folder.name} is left out: {error}", DamagedRun, stacklevel=2)
            continue
        if facts.get("suite") == suite.config.name and "planned" in facts:
            yield folder


def _unfinished(suite: Suite, results: Path, asked: Mapping[str, int] | None) -> Path | None:
    """The latest run of this suite, if trials that are asked for are without a verdict, or more are to be chosen."""
    folder = next(_runs_of(suite, results), None)
    if folder is None:
        return None
    with RunStore(folder) as store:
        facts = store.facts
        done = store.done()
    undecided = facts.get("budget") and facts.get("ended") is None
    for plan in (facts["planned"], asked):
        if plan and not undecided and {(task, trial) for task, count in plan.items() for trial in range(count)} <= done:
            return None
    mended = facts.get("agent_digest") == suite.agent_digest and facts.get("code") != suite.code_digest
    if mended and not done:
        return None  # code that only crashed was mended: there is nothing to mix
    _check_same(suite, folder, facts)
    return folder


def _check_same(suite: Suite, folder: Path, facts: Mapping[str, Any]) -> None:
    if facts.get("digest") == suite.digest:
        return
    before = facts.get("tasks", {})
    changed = [task.id for task in suite.tasks if before.get(task.id) != suite.digest_of(task)]
    gone = sorted(set(before) - {task.id for task in suite.tasks})
    same_agent = (facts.get("agent_digest"), facts.get("code")) == (suite.agent_digest, suite.code_digest)
    what = "the agent" if not same_agent else f"tasks {', '.join([*changed, *gone][:5])}"
    raise InvalidArgument(
        f"run {folder.name} is unfinished, and {what} changed since: its trials cannot be mixed with new ones. "
        "--new starts a new run"
    )


def _new_id(suite: Suite, results: Path) -> str:
    slug = "".join(c if c.isalnum() or c in "-_." else "-" for c in suite.config.name)[:_LONGEST_NAME].strip("-.")
    while True:
        now = datetime.now(UTC)
        # to the microsecond, so that names are in the order of time; of two runs at once, one would find the lock
        name = f"{now:%Y%m%d-%H%M%S}-{slug or 'run'}-{now.microsecond:05x}"
        if not (results / name).exists():
            return name


def seed_of(suite: Suite, task: TaskConfig, trial: int) -> int:
    """The seed of a trial: its own, and the same in every run."""
    text = f"{suite.config.name}\0{task.id}\0{trial}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) >> 1


def make_graders(suite: Suite, tasks: Iterable[TaskConfig]) -> dict[str, list[TrialGrader]]:
    """The graders of every task, checked against it."""
    from agentic_bayes.suites.graders import registry

    made: dict[tuple[GraderConfig, ...] | str, list[TrialGrader]] = {}
    found: dict[str, list[TrialGrader]] = {}
    wrong: dict[str, None] = {}
    for task in tasks:
        configs = suite.graders_of(task)
        key = "\0".join(config.model_dump_json() for config in configs)
        if key not in made:
            problems: list[str] = []
            made[key] = registry.make_graders(
                configs,
                pass_threshold=suite.config.defaults.pass_threshold,
                folder=suite.folder,
                problems=problems,
            )
            wrong |= dict.fromkeys(f"graders: {problem}" for problem in problems)
        for grader in made[key]:
            check = getattr(grader, "check", None)
            if check is not None and (problem := check(as_task(task))):
                wrong.setdefault(f"task {task.id!r}: {grader.name}: {problem}")
        found[task.id] = made[key]
    if wrong:
        raise SuiteError([Problem(str(suite.path), "", "", message) for message in wrong])
    return found


def check_suite(suite: Suite, tasks: Sequence[TaskConfig]) -> None:
    """Make the agent and the graders, and throw them away: what is wrong with them is said before anything runs."""
    from agentic_bayes.suites.agents.registry import make_agent

    make_graders(suite, tasks)
    agent = make_agent(suite.config.agent, folder=suite.folder)
    if (close := getattr(agent, "close", None)) is not None:
        asyncio.run(close())


async def run_suite(
    run: SuiteRun,
    *,
    agent: Agent | None = None,
    executor: Executor | None = None,
    concurrency: int | None = None,
    progress: TrialProgress | None = None,
) -> bool:
    """Run what is pending; every trial is on disk when it ends.

    Parameters
    ----------
    run : Run
        What `plan_run` gave.
    agent : Agent, optional
        Takes the place of the suite's own.
    executor : concurrent.futures.Executor, optional
        Runs trials with their graders elsewhere, such as on other machines (Dask's ``client.get_executor()``); for
        agents of type python and command.
    concurrency : int, optional
        Trials at a time; the suite's own number unless given.
    progress : callable, optional
        Called with every trial that ended.

    Returns
    -------
    bool
        Whether every trial of the run has a verdict now.

    Raises
    ------
    SuiteError
        If the agent or a grader is not declared as it must be; nothing was run then.
    """
    suite, execution = run.suite, run.suite.config.execution
    if executor is not None and suite.config.agent.type not in ("python", "command"):
        raise InvalidArgument(f"an executor runs python and command agents, not {suite.config.agent.type}")
    work: _Work = _Remote(suite, executor) if executor is not None else _Local(suite, run.tasks, agent)
    run.folder.mkdir(parents=True, exist_ok=True)
    with RunStore(run.folder, create=True) as store:
        store.lock()
        if store.facts.get("digest", suite.digest) != suite.digest:
            raise InvalidArgument(f"run {run.id} is of another agent or of other tasks")
        _note(store, run)
        ended = run.total - len(run.pending)
        pace = _Pace(execution.rate_limit_rps)
        open_tasks: Counter[str] = Counter()
        begun: set[str] = set()

        async def worker(items: Iterator[tuple[TaskConfig, int]]) -> None:
            nonlocal ended
            for task, trial in items:
                if task.id not in begun:
                    begun.add(task.id)
                    await run_hook(suite.config.hooks, "before_task", {"task_id": task.id}, suite.folder)
                event = {"task_id": task.id, "trial": trial}
                await run_hook(suite.config.hooks, "before_trial", event, suite.folder)
                result = await _trial(suite, task, trial, work, pace)
                store.add(result)
                ended += 1
                if progress is not None:
                    progress(result, ended, run.budget or run.total)
                told = {**event, "status": result.status, "score": result.score}
                await run_hook(suite.config.hooks, "after_trial", told, suite.folder)
                open_tasks[task.id] -= 1
                if not open_tasks[task.id] and run.budget is None:
                    await run_hook(suite.config.hooks, "after_task", {"task_id": task.id}, suite.folder)

        await run_hook(suite.config.hooks, "before_run", {"run_id": run.id, "trials": run.total}, suite.folder)
        asked = set[tuple[str, int]]()
        pending = run.pending
        try:
            while True:
                asked |= {(task.id, trial) for task, trial in pending}
                open_tasks.update(task.id for task, _ in pending)
                items = iter(pending)
                async with anyio.create_task_group() as group:
                    for _ in range(min(concurrency or execution.concurrency, len(pending))):
                        group.start_soon(worker, items)
                pending = _next_round(run, store, pending)
                if not pending:
                    break
        except BaseExceptionGroup as group:  # one error ended the run, the others are of what it cut off
            error: BaseException = group
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            raise error from None
        finally:
            await work.close()
        if run.budget is not None:  # only now is it known that no task gets more
            for task in run.tasks:
                if task.id in begun:
                    await run_hook(suite.config.hooks, "after_task", {"task_id": task.id}, suite.folder)
        finished = asked <= store.done() and (run.budget is None or "ended" in store.facts)
        told = {"run_id": run.id, "finished": finished}
        await run_hook(suite.config.hooks, "after_run", told, suite.folder)
        return finished


def _next_round(
    run: SuiteRun, store: RunStore, last: Sequence[tuple[TaskConfig, int]]
) -> tuple[tuple[TaskConfig, int], ...]:
    """Trials that narrow the interval most; none once it is narrow enough, the budget spent, or nothing scored."""
    from agentic_bayes.suites.results import RunResults

    done = store.done()
    if run.budget is None or (last and not any((task.id, trial) in done for task, trial in last)):
        return ()  # where nothing works, the rest of the budget would be lost, too
    planned: dict[str, int] = store.facts["planned"]
    spent = sum(planned.values())
    target = run.suite.config.defaults.target
    scored = Counter(task for task, _ in done)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AgenticBayesWarning)  # said of the result, not of every round
        _, k = parse_metric(target.metric)
        est = RunResults.of(run.folder).estimate(tuple(sorted({1, k or 1})))
    ended = end_of(est, target.metric, target.width)
    if ended is None and spent >= run.budget:
        ended = f"the budget of {run.budget:,} trials is spent"
    if ended is not None:
        store.note({"ended": ended})
        return ()
    # a task whose trials break down rather than end gets no more of them
    open_tasks = {
        task.id: planned[task.id]
        for task in run.tasks
        if run.suite.trials_of(task) == "auto" and 2 * scored[task.id] >= planned[task.id]
    }
    size = round_size(spent, run.budget, run.suite.config.execution.concurrency)
    more = allocate(est, target.metric, open_tasks, size)
    store.note({"planned": planned | {task: planned[task] + count for task, count in more.items()}})
    return tuple((task, planned[task.id] + i) for task in run.tasks for i in range(more.get(task.id, 0)))


def _note(store: RunStore, run: SuiteRun) -> None:
    """What the run is; a run that goes on keeps when it began, and what was planned before."""
    suite, facts = run.suite, store.facts
    before = facts.get("planned", {})
    planned = before | {task: max(count, before.get(task, 0)) for task, count in run.planned.items()}
    store.note(
        {
            "suite": suite.config.name,
            "description": suite.config.description,
            "agent": suite.agent_name,
            "agent_digest": suite.agent_digest,
            "code": suite.code_digest,
            "digest": suite.digest,
            "tasks": {task.id: suite.digest_of(task) for task in suite.tasks},
            "contents": {task.id: suite.content_of(task) for task in suite.tasks},
            "messages": {task.id: list(as_task(task).messages) for task in suite.tasks},
            "planned": planned,
            "budget": run.budget,
            "began": facts.get("began", time.time()),
        }
    )


class _Pace:
    """Trials begin at least so many seconds apart."""

    def __init__(self, per_second: float) -> None:
        self._interval = 1 / per_second if per_second else 0.0
        self._turn = asyncio.Lock()
        self._next = 0.0

    async def wait(self) -> None:
        if not self._interval:
            return
        async with self._turn:
            if (early := self._next - time.monotonic()) > 0:
                await anyio.sleep(early)
            self._next = time.monotonic() + self._interval


class _Work:
    """How a trial is done."""

    async def reply(self, task: TaskConfig, attempt: TrialAttempt) -> AgentReply:
        raise NotImplementedError

    async def graded(self, task: TaskConfig, attempt: TrialAttempt, reply: AgentReply) -> dict[str, dict[str, Any]]:
        raise NotImplementedError

    async def close(self) -> None:
        """Give back what was opened."""


class _Local(_Work):
    """In this process."""

    def __init__(self, suite: Suite, tasks: Sequence[TaskConfig], agent: Agent | None) -> None:
        from agentic_bayes.suites.agents.registry import make_agent

        self._graders = make_graders(suite, tasks)
        _check_ready(suite, self._graders)
        self._agent = agent or make_agent(suite.config.agent, folder=suite.folder)

    async def reply(self, task: TaskConfig, attempt: TrialAttempt) -> AgentReply:
        return await self._agent.attempt(attempt)

    async def graded(self, task: TaskConfig, attempt: TrialAttempt, reply: AgentReply) -> dict[str, dict[str, Any]]:
        return await grades_of(self._graders[task.id], attempt, reply)

    async def close(self) -> None:
        close = getattr(self._agent, "close", None)
        if close is not None:
            await close()


def _check_ready(suite: Suite, graders: dict[str, list[TrialGrader]]) -> None:
    """Models and packages that graders need are there before the first trial is paid for."""
    every = {id(grader): grader for some in graders.values() for grader in some}
    found = {grader.name: ready() for grader in every.values() if (ready := getattr(grader, "ready", None))}
    wrong = [f"{name}: {problem}" for name, problem in found.items() if problem]
    if wrong:
        raise SuiteError([Problem(str(suite.path), "", "", message) for message in wrong])


class _Remote(_Work):
    """In the processes of an executor; what is sent there is the declaration, not the objects."""

    def __init__(self, suite: Suite, executor: Executor) -> None:
        make_graders(suite, suite.tasks)  # what is wrong is said here, before anything is sent
        self._suite, self._executor = suite, executor

    async def reply(self, task: TaskConfig, attempt: TrialAttempt) -> AgentReply:
        future = self._executor.submit(_remote_reply, self._suite, attempt)
        return await asyncio.wrap_future(future)

    async def graded(self, task: TaskConfig, attempt: TrialAttempt, reply: AgentReply) -> dict[str, dict[str, Any]]:
        future = self._executor.submit(_remote_grades, self._suite, task, attempt, reply)
        return await asyncio.wrap_future(future)


def _remote_reply(suite: Suite, attempt: TrialAttempt) -> AgentReply:
    from agentic_bayes.suites.agents.registry import make_agent

    async def ask() -> AgentReply:
        agent = make_agent(suite.config.agent, folder=suite.folder)
        try:
            return await agent.attempt(attempt)
        finally:
            if (close := getattr(agent, "close", None)) is not None:
                await close()

    return asyncio.run(ask())


def _remote_grades(
    suite: Suite, task: TaskConfig, attempt: TrialAttempt, reply: AgentReply
) -> dict[str, dict[str, Any]]:
    graders = make_graders(suite, [task])[task.id]
    return asyncio.run(grades_of(graders, attempt, reply))


async def grades_of(
    graders: Sequence[TrialGrader], attempt: TrialAttempt, reply: AgentReply
) -> dict[str, dict[str, Any]]:
    """What every grader says, as a file can hold it."""
    found: dict[str, dict[str, Any]] = {}
    for grader in graders:
        try:
            grade = await grader.grade(attempt, reply)
        except Exception as error:
            grade = Unscored(_told(error))
        if isinstance(grade, Score):
            passed = bool(grade.details.get("pass"))
            found[grader.name] = {"score": grade.value, "pass": passed, "reason": grade.reason, "weight": grader.weight}
        else:
            found[grader.name] = {"unscored": grade.reason, "weight": grader.weight}
    return found


async def _trial(suite: Suite, task: TaskConfig, trial: int, work: _Work, pace: _Pace) -> TrialResult:
    """One trial, with repetitions where the agent broke down."""
    execution = suite.config.execution
    attempt = TrialAttempt(as_task(task), trial, seed_of(suite, task, trial))
    delay, tries = execution.retry_delay, 0
    while True:
        tries += 1
        await pace.wait()
        started = time.perf_counter()
        try:
            with anyio.fail_after(execution.timeout):
                reply = await work.reply(task, attempt)
            break
        except TimeoutError as error:
            problem = f"no reply within {execution.timeout:g} s" if not str(error) else _told(error)
        except Exception as error:
            problem = _told(error)
        latency = time.perf_counter() - started
        if tries > execution.max_retries:
            return TrialResult(task.id, trial, "error", error=problem, latency=latency, attempts=tries)
        await anyio.sleep(delay)
        delay *= 2
    latency = time.perf_counter() - started
    grades = await work.graded(task, attempt, reply)
    return replace(verdict_of(task.id, trial, grades), latency=latency, attempts=tries, **_of_reply(suite, reply))


def _told(error: BaseException) -> str:
    """Kind and message of an error; of a group of one, of that one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # its own message breaks down
        return type(error).__name__


def verdict_of(task: str, trial: int, grades: dict[str, dict[str, Any]]) -> TrialResult:
    """The verdict that follows from grades: one grader that fails decides, one that could not tell leaves it open."""
    scored = [grade for grade in grades.values() if "score" in grade]
    weight = sum(grade["weight"] for grade in scored)
    score = sum(grade["weight"] * grade["score"] for grade in scored) / weight if weight else None
    open_ones = {name: grade["unscored"] for name, grade in grades.items() if "unscored" in grade}
    if any(not grade["pass"] for grade in scored):
        return TrialResult(task, trial, "fail", score, grades=grades)
    if open_ones:
        told = "; ".join(f"{name}: {reason}" for name, reason in open_ones.items())
        problem = f"{plural(len(open_ones), 'grader')} could not tell: {told}"
        return TrialResult(task, trial, "error", grades=grades, error=problem)
    return TrialResult(task, trial, "pass", score, grades=grades)


def _of_reply(suite: Suite, reply: AgentReply) -> dict[str, Any]:
    prices = suite.config.agent.cost_per_input_token, suite.config.agent.cost_per_output_token
    tokens = reply.input_tokens, reply.output_tokens
    known = [(count, price) for count, price in zip(tokens, prices, strict=True) if price is not None]
    cost = None
    if known and all(count is not None for count, _ in known):
        cost = sum((count or 0) * price for count, price in known)
    return {
        "answers": reply.answers,
        "tool_calls": tuple(None if calls is None else list(calls) for calls in reply.tool_calls),
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "cost": cost,
    }
