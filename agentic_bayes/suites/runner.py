"""Plan which trials of a suite to run, run them, and resume a run that was stopped."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from agentic_bayes.errors import AgenticBayesWarning, DoubtfulRecords, InvalidArgument, UnknownName
from agentic_bayes.executors import ExecutorChoice, check_executor
from agentic_bayes.formatting import Metric, first_few, plural
from agentic_bayes.records.wire.characters import NOT_TEXT
from agentic_bayes.suites.adaptive import FIRST, allocate, end_of, round_size
from agentic_bayes.suites.config import Suite, as_task
from agentic_bayes.suites.declaration import MOST_TRIALS, TaskConfig
from agentic_bayes.suites.processes import HookRunner
from agentic_bayes.suites.secrets import errors_without
from agentic_bayes.suites.stores.run_index import find_run, note_run
from agentic_bayes.suites.stores.run_store import RunStore, each_run
from agentic_bayes.suites.trial import Agent, TrialResult

if TYPE_CHECKING:
    from agentic_bayes.suites.stores.reply_cache import ReplyCache
    from agentic_bayes.suites.trial_runner import LocalWork, Pace, RemoteWork

TrialProgress = Callable[[TrialResult, int, int], object]
"""Called after every trial with its result, the number of finished trials, and the number of all trials."""

_LONGEST_NAME = 40
SHOWN = 3  # tasks that a message names


@dataclass(frozen=True)
class SuiteRun:
    """A planned run: its folder and its trials."""

    suite: Suite
    folder: Path  # where its results are kept
    tasks: tuple[TaskConfig, ...]  # the selected ones
    pending: tuple[tuple[TaskConfig, int], ...]  # trials without a verdict: never run, or errored
    planned: dict[str, int]  # task → number of trials; with adaptive trials, those of the rounds so far
    budget: int | None = None  # most trials of a run with adaptive trials; None if every task has a fixed number
    continued: bool = False  # whether it continues an earlier run

    @property
    def total(self) -> int:
        """The number of planned trials."""
        return sum(self.planned.values())

    @property
    def id(self) -> str:
        """The run's id: the name of its folder."""
        return self.folder.name


def select_tasks(
    suite: Suite, *, tags: Sequence[str] = (), exclude_tags: Sequence[str] = (), limit: int | None = None
) -> tuple[TaskConfig, ...]:
    """Select tasks of a suite by their tags."""
    known = {tag for task in suite.tasks for tag in task.tags}
    for tag in (*tags, *exclude_tags):
        if tag not in known:
            raise InvalidArgument(
                f"no task has the tag {tag!r}; tags of this suite: {', '.join(sorted(known)) or 'none'}"
            )
    chosen = [
        task
        for task in suite.tasks
        if (not tags or set(tags) & set(task.tags)) and not set(exclude_tags) & set(task.tags)
    ][:limit]
    if not chosen:
        raise InvalidArgument("no task is left: tags and limit exclude all tasks")
    return tuple(chosen)


def plan_run(
    suite: Suite,
    tasks: Sequence[TaskConfig],
    *,
    output: Path | None = None,
    resume: str | None = None,
    new: bool = False,
) -> SuiteRun:
    """Decide which trials to run and where (`output`: the folder of all runs): of an unfinished run, unless `new`."""
    results = output or suite.folder / suite.config.output.dir
    planned, budget = _first_round(suite, tasks)
    if resume is not None and new:
        raise InvalidArgument("--resume and --new exclude each other")
    folder: Path | None
    if resume is not None:
        folder = find_run(resume, results=results)
        if folder is None:
            raise UnknownName("run", resume, [path.name for path, _ in each_run(results, _run_facts)])
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
    """The trials of every task in the first round; and the budget, if a task has adaptive trials."""
    declared = {task.id: suite.trials_of(task) for task in tasks}
    fixed = {task: int(trials) for task, trials in declared.items() if trials != "auto"}
    open_ = len(declared) - len(fixed)
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
    first = min(FIRST, left // open_)
    return {task.id: fixed.get(task.id, first) for task in tasks}, budget


def _run_facts(folder: Path) -> tuple[Path, dict[str, Any]]:
    with RunStore(folder) as store:
        return folder, store.facts


def _unfinished(suite: Suite, results: Path, asked: Mapping[str, int] | None) -> Path | None:
    """The latest run of this suite if trials still lack a verdict, or an adaptive run may choose more."""
    runs = each_run(results, _run_facts)
    name = suite.config.name
    folder = next((run for run, facts in runs if facts.get("suite") == name and "planned" in facts), None)
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
        return None  # the old code only crashed and has been fixed: the old run has no verdicts to keep
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
        f"run {folder.name} is unfinished, but {what} changed since then, so old and new trials cannot be mixed; "
        "start a new run with --new"
    )


def _new_id(suite: Suite, results: Path) -> str:
    slug = "".join(c if c.isalnum() or c in "-_." else "-" for c in suite.config.name)[:_LONGEST_NAME].strip("-.")
    while True:
        now = datetime.now(UTC)
        # to the microsecond, so that names sort by time; if two runs still share a name, the lock stops one of them
        name = f"{now:%Y%m%d-%H%M%S}-{slug or 'run'}-{now.microsecond:05x}"
        if not (results / name).exists():
            return name


def check_groups(tasks: Sequence[TaskConfig], by: str | None) -> None:
    """Refuse to group tasks by a field that is missing in the metadata of some."""
    if by is None:
        return
    missing = [task.id for task in tasks if task.metadata.get(by) in (None, "")]
    if missing:
        named = f"{'task' if len(missing) == 1 else 'tasks'} {first_few(missing, SHOWN)}"
        raise InvalidArgument(
            f"{named} {'has' if len(missing) == 1 else 'have'} no {by} in their metadata, to group by"
        )


def check_suite(suite: Suite, tasks: Sequence[TaskConfig]) -> None:
    """Make the agent and the graders once, so that every problem with them is raised before anything runs."""
    from agentic_bayes.suites.agents.registry import close_agent, make_agent
    from agentic_bayes.suites.trial_runner import make_graders

    with errors_without(suite.secrets):
        make_graders(suite, tasks)
        agent = make_agent(suite.config.agent, folder=suite.folder)
        asyncio.run(close_agent(agent))


def check_suite_executor(suite: Suite, executor: ExecutorChoice | None) -> None:
    """Refuse an executor that cannot be, or that this suite's agent does not need; nothing is started."""
    check_executor(executor)
    if executor is not None and (kind := suite.config.agent.type) not in ("python", "command"):
        raise InvalidArgument(
            f"an executor runs agents of type python and command, not {kind}, which waits for others: run more trials "
            "at a time instead (--jobs)"
        )


async def run_suite(
    run: SuiteRun,
    *,
    agent: Agent | None = None,
    executor: ExecutorChoice | None = None,
    concurrency: int | None = None,
    progress: TrialProgress | None = None,
) -> bool:
    """Run the pending trials and save each as soon as it ends; return whether every trial now has a verdict.

    `agent` replaces the suite's own; `concurrency` is by default the suite's, or one trial for each worker of the
    `executor`. Nothing runs if the declaration of the agent or of a grader is wrong.
    """
    from agentic_bayes.suites.trial_runner import LocalWork, RemoteWork

    suite = run.suite
    check_suite_executor(suite, executor)
    with errors_without(suite.secrets):
        work = LocalWork(suite, run.tasks, agent) if executor is None else RemoteWork(suite, run.tasks, executor)
    execution = suite.config.execution
    if concurrency is None:
        declared = "concurrency" in execution.model_fields_set
        concurrency = execution.concurrency if declared else max(work.size, execution.concurrency)
    cached = suite.config.cache.enabled and agent is None
    try:
        return await _run_trials(run, work, concurrency=concurrency, cached=cached, progress=progress)
    finally:
        await work.close()


async def _run_trials(
    run: SuiteRun,
    work: LocalWork | RemoteWork,
    *,
    concurrency: int,
    cached: bool,
    progress: TrialProgress | None,
) -> bool:
    """Run the pending trials, round by round; whether every trial now has a verdict."""
    from agentic_bayes.suites.stores.reply_cache import ReplyCache
    from agentic_bayes.suites.trial_runner import Pace

    suite = run.suite
    cache = ReplyCache(suite) if cached else None
    run.folder.mkdir(parents=True, exist_ok=True)
    with RunStore(run.folder, create=True) as store:
        store.lock()
        if store.facts.get("digest", suite.digest) != suite.digest:
            raise InvalidArgument(f"run {run.id} is of another agent or other tasks")
        _note(store, run)
        note_run(run.folder)
        hooks = HookRunner(suite.config.hooks, suite.folder, suite.secrets)
        pace = Pace(suite.config.execution.rate_limit_rps)
        ended = run.total - len(run.pending)
        trials = _RunningTrials(run, work, store, cache, progress, hooks, pace, ended)
        await hooks.run("before_run", run_id=run.id, trials=run.total)
        requested = set[tuple[str, int]]()
        pending = run.pending
        try:
            while True:
                requested |= {(task.id, trial) for task, trial in pending}
                await trials.run_all(pending, concurrency)
                pending = _next_round(run, store, pending)
                if not pending:
                    break
        except BaseExceptionGroup as group:  # the first error ended the run; the others come from tasks it cancelled
            error: BaseException = group
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            raise error from None
        finally:
            if cache is not None:
                cache.close()
        await trials.finish()
        finished = requested <= store.done() and (run.budget is None or "ended" in store.facts)
        await hooks.run("after_run", run_id=run.id, finished=finished)
        return finished


@dataclass
class _RunningTrials:
    """The trials of a run while they run, and the hooks around them."""

    run: SuiteRun
    work: LocalWork | RemoteWork
    store: RunStore
    cache: ReplyCache | None
    progress: TrialProgress | None
    hooks: HookRunner
    pace: Pace
    ended: int  # trials
    open: Counter[str] = field(default_factory=Counter)  # trials of each task that have not ended
    begun: set[str] = field(default_factory=set)  # tasks
    replaced: int = 0  # characters in results that are no text

    async def run_all(self, trials: Sequence[tuple[TaskConfig, int]], concurrency: int) -> None:
        """Run these trials, so many at a time."""
        self.open.update(task.id for task, _ in trials)
        items = iter(trials)
        async with anyio.create_task_group() as group:
            for _ in range(min(concurrency, len(trials))):
                group.start_soon(self._run_next, items)

    async def _run_next(self, items: Iterator[tuple[TaskConfig, int]]) -> None:
        """Run one trial after the other, until none is left."""
        from agentic_bayes.suites.trial_runner import fit_to_keep, run_trial

        suite = self.run.suite
        for task, trial in items:
            if task.id not in self.begun:
                self.begun.add(task.id)
                await self.hooks.run("before_task", task_id=task.id)
            event: dict[str, Any] = {"task_id": task.id, "trial": trial}
            await self.hooks.run("before_trial", **event)
            result = await run_trial(suite, task, trial, self.work, self.pace, self.cache)
            result, replaced = fit_to_keep(result, suite.secrets)
            self.replaced += replaced
            self.store.add(result)
            self.ended += 1
            if self.progress is not None:
                self.progress(result, self.ended, self.run.budget or self.run.total)
            await self.hooks.run("after_trial", **event, status=result.status, score=result.score)
            self.open[task.id] -= 1
            if not self.open[task.id] and self.run.budget is None:
                await self.hooks.run("after_task", task_id=task.id)

    async def finish(self) -> None:
        """Say what was replaced, and end the tasks that might have got more trials."""
        if self.replaced:
            text = f"{self.replaced:,} {NOT_TEXT} in reasons and errors were replaced"
            warnings.warn(DoubtfulRecords(text), stacklevel=3)
        if self.run.budget is not None:
            for task in self.run.tasks:
                if task.id in self.begun:
                    await self.hooks.run("after_task", task_id=task.id)


def _next_round(
    run: SuiteRun, store: RunStore, last: Sequence[tuple[TaskConfig, int]]
) -> tuple[tuple[TaskConfig, int], ...]:
    """The trials that narrow the interval most; none if it is narrow enough, the budget is spent or nothing scores."""
    from agentic_bayes.suites.results import RunResults

    done = store.done()
    if run.budget is None or (last and not any((task.id, trial) in done for task, trial in last)):
        return ()  # if the last round scored nothing, the rest of the budget would be wasted too
    planned: dict[str, int] = store.facts["planned"]
    spent = sum(planned.values())
    target = run.suite.config.defaults.target
    scored = Counter(task for task, _ in done)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AgenticBayesWarning)  # shown for the result, not for every round
        est = RunResults.of(run.folder).estimate(tuple(sorted({1, Metric(target.metric).k})))
    ended = end_of(est, target.metric, target.width)
    if ended is None and spent >= run.budget:
        ended = f"the budget of {run.budget:,} trials is spent"
    if ended is not None:
        store.note({"ended": ended})
        return ()
    # a task most of whose trials end in errors gets no more of them
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
    """Save what the run is; a continued run keeps its start time and what was planned before."""
    suite, facts = run.suite, store.facts
    before = facts.get("planned", {})
    planned = before | {task: max(count, before.get(task, 0)) for task, count in run.planned.items()}
    hide = suite.secrets.hide
    store.note(
        {
            "suite": suite.config.name,
            "description": hide(suite.config.description),
            "agent": suite.agent_name,
            "agent_digest": suite.agent_digest,
            "code": suite.code_digest,
            "digest": suite.digest,
            "tasks": {task.id: suite.digest_of(task) for task in suite.tasks},
            "contents": {task.id: suite.content_of(task) for task in suite.tasks},
            "messages": {task.id: hide(list(as_task(task).messages)) for task in suite.tasks},
            "metadata": {task.id: hide(task.metadata) for task in suite.tasks},
            "planned": planned,
            "budget": run.budget,
            "began": facts.get("began", time.time()),
        }
    )
