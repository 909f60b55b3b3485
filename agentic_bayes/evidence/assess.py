"""Runs graders over conversations, and keeps every judgement whatever happens to the rest."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import anyio
from anyio.abc import TaskGroup

from agentic_bayes.checks import check_count, check_type
from agentic_bayes.errors import EvidenceError, InvalidArgument, StoppedEarly
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.ledger import Ledger, TurnGrades
from agentic_bayes.evidence.llm.calls import RUN, RunCalls
from agentic_bayes.evidence.llm.judge import LLMJudge
from agentic_bayes.evidence.llm.store import Store
from agentic_bayes.evidence.progress import DetailedProgress, ProgressState
from agentic_bayes.evidence.recorded import RecordedJudge
from agentic_bayes.evidence.row import AGENT_ERROR, RESERVED
from agentic_bayes.evidence.score import Grade, Grader, Score, Unscored
from agentic_bayes.evidence.tools.rubric import ToolRubric
from agentic_bayes.records.base import short
from agentic_bayes.records.model import Conversation, check_conversations

__all__ = ["assess", "assess_async"]

ProgressCallback = Callable[[int, int | None], object]
_INTERRUPTED = "stopped: interrupted"
_NO_CONVERSATIONS = "there are no conversations to assess"


def assess(
    conversations: Iterable[Conversation],
    *,
    judge: Grader,
    tool_rubric: ToolRubric = ToolRubric(),  # noqa: B008 - frozen
    metrics: Sequence[Grader] = (),
    concurrency: int = 8,
    progress: ProgressCallback | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    requests_per_second: float | None = None,
    max_cost: float | None = None,
    fail_fast: int | None = 5,
) -> Evidence:
    """Score every interaction.

    Parameters
    ----------
    conversations : iterable of Conversation
        A list is checked as a whole before the first judgement; an iterator is read as the run proceeds.
    judge : Grader
        Scores the answers: `ReferenceJudge()`, `LLMJudge(model)`, or any object with ``name``, ``identity`` and
        ``grade``.
    tool_rubric : ToolRubric
        Scores the tool calls of interactions with expected tools.
    metrics : sequence of Grader
        Further metrics; each becomes a column.
    concurrency : int
        Number of interactions to judge at a time. It never changes the result.
    progress : callable, optional
        Called with (interactions done, total or None); a `ProgressBar` shows more.
    store : Store or path, optional
        Where to keep every judgement by a model as soon as it is made, so that none is paid for twice: after a crash,
        the same call resumes where it stopped. Failures are tried again. Interactions with identical texts share a
        judgement.
    requests_per_second : float, optional
        Model calls start at least 1 / `requests_per_second` seconds apart.
    max_cost : float, optional
        Maximum cost of this run, in the currency of the judge's `price`. The run stops before a call that would exceed
        it at the price of the dearest call so far; only calls that started before the first cost was known can exceed
        it. Judgements from the store cost nothing.
    fail_fast : int, optional
        Stop the run after so many judgements in a row fail for technical reasons (no reply after all attempts); None
        never stops it. Calls that the provider refuses because of their content do not count.

    Returns
    -------
    Evidence
        If Ctrl-C, `max_cost` or `fail_fast` stopped the run, `Evidence.stopped` says so: judgements made so far are
        kept, and the other interactions of the conversations read so far (of a list: all others) are unscored.

    Raises
    ------
    InvalidArgument
        If an argument is outside what is allowed; this is checked before anything is judged.
    RecordsError
        If conversations contradict each other, for example by using a session_id twice.
    EvidenceError
        If there are no conversations, or an item is not one.

    Warns
    -----
    StoppedEarly
        If the run was interrupted or stopped.

    Notes
    -----
    If a grader raises, the grade is `Unscored` with the exception as the reason. Interactions in which the agent
    crashed are not judged; their reason begins with ``agent error:``.

    An error of the iterator, or of `progress`, ends the run but loses nothing: its attribute ``evidence`` has all
    judgements. If the conversations contradict each other, tasks and trials in it are provisional: a task is its
    task_id or qa_ids, and trials are numbered in order of arrival.

    The graders run in a thread of their own, so this works in a notebook, too.
    """
    calls = RunCalls(requests_per_second=requests_per_second, max_cost=max_cost, fail_fast=fail_fast)
    run = _Assessment(conversations, judge, tool_rubric, metrics, concurrency, progress, store, calls)
    context = contextvars.copy_context()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="assess") as thread:
        try:
            # a thread has an event loop of its own, also where the caller is inside a running one
            thread.submit(context.run, lambda: asyncio.run(run.work())).result()
        except KeyboardInterrupt:
            run.interrupt()
    return run.result()


async def assess_async(
    conversations: Iterable[Conversation],
    *,
    judge: Grader,
    tool_rubric: ToolRubric = ToolRubric(),  # noqa: B008 - frozen
    metrics: Sequence[Grader] = (),
    concurrency: int = 8,
    progress: ProgressCallback | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    requests_per_second: float | None = None,
    max_cost: float | None = None,
    fail_fast: int | None = 5,
) -> Evidence:
    """Run `assess` in the caller's event loop.

    Parameters, results, errors and warnings are those of `assess`. Cancelling the task cancels the run.
    """
    calls = RunCalls(requests_per_second=requests_per_second, max_cost=max_cost, fail_fast=fail_fast)
    run = _Assessment(conversations, judge, tool_rubric, metrics, concurrency, progress, store, calls)
    await run.work()
    return run.result()


class _Assessment:
    """One run: its graders, and the ledger that holds every grade as soon as it is made."""

    def __init__(
        self,
        conversations: Iterable[Conversation],
        judge: Grader,
        tool_rubric: ToolRubric,
        metrics: Sequence[Grader],
        concurrency: int,
        progress: ProgressCallback | None,
        store: Store | str | os.PathLike[str] | None,
        calls: RunCalls,
    ) -> None:
        self._concurrency = check_count(concurrency, "concurrency")
        _check_arguments(conversations, judge, tool_rubric, metrics, progress)
        if calls.max_cost is not None and all(getattr(grader, "price", None) is None for grader in (judge, *metrics)):
            raise InvalidArgument(
                "max_cost needs the price of the judge's tokens, for example LLMJudge(…, price=(0.15, 0.6))"
            )
        self._judge, self._tool_rubric, self._metrics = judge, tool_rubric, tuple(metrics)
        self._calls, self._progress = calls, progress
        detailed: object = progress
        self._report = detailed.report if isinstance(detailed, DetailedProgress) else None
        self._ledger = Ledger()
        self._done = self._unscored = 0
        self._total: int | None = None
        self._ending: str | None = None
        self._failure: BaseException | None = None
        self._cancel: Callable[[], object] = lambda: None
        self._items = self._pull(conversations)
        if isinstance(conversations, Sized):
            items = list(self._items)
            if not items:
                raise EvidenceError(_NO_CONVERSATIONS)
            if misfit := self._ledger.misfit():
                raise misfit  # check first, pay later
            self._total = len(items)
            self._items = iter(items)
        # opened last, so that a refused run creates no file
        self._own_store = None if isinstance(store, Store) or store is None else Store(store)
        calls.store = store if isinstance(store, Store) else self._own_store

    def _pull(self, conversations: Iterable[Conversation]) -> Iterator[tuple[Conversation, int, TurnGrades]]:
        """The interactions one by one; a conversation enters the ledger with its first interaction."""
        for number, conversation in enumerate(conversations):
            if not isinstance(conversation, Conversation):
                raise EvidenceError(f"conversations[{number}] must be a Conversation, got {short(conversation)}")
            for position, turn in enumerate(self._ledger.add(conversation)):
                yield conversation, position, turn

    async def work(self) -> None:
        """Judge everything, or until something stops the run; raises only cancellation."""
        token = RUN.set(self._calls)
        try:
            async with anyio.create_task_group() as group:
                loop = asyncio.get_running_loop()
                self._cancel = lambda: loop.call_soon_threadsafe(group.cancel_scope.cancel)
                group.start_soon(self._worker, group, 1)
        finally:
            RUN.reset(token)
            await self._calls.close()
            if self._own_store is not None:
                self._own_store.close()

    async def _worker(self, group: TaskGroup, number: int) -> None:
        """Judge interactions from the iterator that all workers share; each worker starts the next one."""
        try:
            for conversation, position, turn in self._items:
                if self._ending is not None or self._failure is not None:
                    return
                if number < self._concurrency:
                    group.start_soon(self._worker, group, number + 1)
                    number = self._concurrency
                await self._grade(conversation, position, turn)
                self._ending = self._ending or self._calls.stopped
                self._done += 1
                self._unscored += isinstance(turn.answer, Unscored)
                if self._report is not None:
                    self._report(ProgressState(self._done, self._total, self._unscored, self._calls.spent))
                elif self._progress is not None:
                    self._progress(self._done, self._total)
                await asyncio.sleep(0)
        except KeyboardInterrupt:
            self._ending = _INTERRUPTED
            group.cancel_scope.cancel()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._failure = error

    async def _grade(self, conversation: Conversation, position: int, turn: TurnGrades) -> None:
        """Grade one interaction; each grade is in the ledger before the next grader is asked."""
        crash = conversation.error_at(position)
        if crash is not None:
            crashed = Unscored(f"{AGENT_ERROR}{crash}")
            turn.answer, turn.tools = crashed, crashed if turn.has_expectations else None
            turn.metrics = {metric.name: crashed for metric in self._metrics}
            return
        try:
            turn.tools = self._tool_rubric.verdict(conversation.conversation[position])
        except Exception as error:
            turn.tools = _failed(error)
        turn.answer = await _ask(self._judge, conversation, position)
        if isinstance(self._judge, RecordedJudge):
            turn.metrics |= self._judge.further(conversation, position)
        for metric in self._metrics:
            turn.metrics[metric.name] = await _ask(metric, conversation, position)

    def interrupt(self) -> None:
        """Stop the run soon; safe to call from another thread, and after the run has ended."""
        self._ending = _INTERRUPTED
        with contextlib.suppress(RuntimeError):  # the event loop is closed: the run has ended
            self._cancel()

    def result(self) -> Evidence:
        """The evidence; if an error ended the run, raises it with the evidence attached."""
        if self._failure is None and self._ending is None:
            self._failure = self._ledger.misfit()
        cause = f"stopped: {_failed(self._failure).reason if self._failure else 'cancelled'}"
        rows = self._ledger.rows(
            judge=self._judge.identity,
            tool_rubric=self._tool_rubric.identity,
            metrics={metric.name: metric.identity for metric in self._metrics},
            missing=Unscored(self._ending or cause),
        )
        evidence = Evidence(rows, self._ending and self._ending.removeprefix("stopped").lstrip(": "))
        if self._failure is not None:
            # any exception can carry an attribute that its class does not declare
            self._failure.evidence = evidence  # type: ignore[attr-defined]
            self._failure.add_note(f"This error's `evidence` has the {evidence.scored} interactions judged before.")
            raise self._failure
        if self._ending is not None:
            warnings.warn(StoppedEarly(f"{evidence!r}; judgements made so far are kept"), stacklevel=3)
        elif not evidence.rows:
            raise EvidenceError(_NO_CONVERSATIONS)
        return evidence


async def _ask(grader: Grader, conversation: Conversation, position: int) -> Grade:
    """The grader's grade, or `Unscored` with the reason."""
    try:
        grade: object = grader.grade(conversation, position)
        if inspect.isawaitable(grade):
            grade = await grade
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise  # the run is cancelled
        return _failed(error)  # the grader's own call was
    except Exception as error:
        return _failed(error)
    if isinstance(grade, Unscored) and grade.reason.startswith(AGENT_ERROR):
        return Unscored(f"judge: {grade.reason}")  # only a crashed agent has the bare prefix
    if isinstance(grade, Score):
        # the score was paid for: an odd reason must not lose it
        reason, details = cast("object", grade.reason), cast("object", grade.details)
        text = reason if isinstance(reason, str) else str(reason or "")
        return Score(grade.value, text, details if isinstance(details, Mapping) else {})
    if not isinstance(grade, Unscored):
        return Unscored(f"{grader.name} must give a Score or Unscored, got {short(grade)}")
    return grade


def _failed(error: BaseException) -> Unscored:
    return Unscored(f"{type(error).__name__}: {error}")


def _check_arguments(
    conversations: object, judge: object, tool_rubric: object, metrics: object, progress: object
) -> None:
    check_conversations(conversations)
    _check_grader("judge", judge)
    check_type("tool_rubric", tool_rubric, ToolRubric, "ToolRubric() is the default one")
    if not isinstance(metrics, Sequence):
        raise InvalidArgument(f"metrics must be a list of graders, got {short(metrics)}")
    taken = set(RESERVED)
    for metric in metrics:
        _check_grader("metrics", metric)
        if metric.name in taken:
            raise InvalidArgument(f"every metric needs a name of its own; {metric.name!r} is taken")
        taken.add(metric.name)
    models = [grader for grader in (cast("Grader", judge), *metrics) if isinstance(grader, LLMJudge)]
    for position, model in enumerate(models):
        if any(model.identity == other.identity for other in models[:position]):
            raise InvalidArgument(
                f"the same judge is given twice ({model.identity}) and would agree with itself; to judge every answer "
                "several times, use LLMJudge(model, n_judgements=3)"
            )
    if progress is not None and not callable(progress):
        raise InvalidArgument(f"progress must be callable, got {short(progress)}")


def _check_grader(name: str, grader: object) -> None:
    if isinstance(grader, type) or not isinstance(grader, Grader):
        hint = " (for example ReferenceJudge() or LLMJudge(model))" if name == "judge" else ""
        raise InvalidArgument(f"{name} must have `name`, `identity` and `grade`{hint}, got {short(grader)}")
    for text in (grader.name, grader.identity):
        if not isinstance(text, str) or not text.strip():
            raise InvalidArgument(f"{name} must have a name and an identity that are text, got {short(text)}")
