"""Conversations × graders → evidence. What was judged is kept, whatever happens to the rest."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import cast

import anyio
from anyio.abc import TaskGroup

from agentic_bayes.checks import check_k
from agentic_bayes.errors import EvidenceError, InvalidArgument, StoppedEarly
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.ledger import Ledger, Turn
from agentic_bayes.evidence.llm.calls import RUN, Calls
from agentic_bayes.evidence.llm.judge import LLMJudge
from agentic_bayes.evidence.llm.store import Store
from agentic_bayes.evidence.progress import DetailedProgress, ProgressState
from agentic_bayes.evidence.row import AGENT_ERROR, COLUMNS
from agentic_bayes.evidence.score import Grade, Grader, Score, Unscored
from agentic_bayes.evidence.tools.rubric import ToolRubric
from agentic_bayes.records.base import short
from agentic_bayes.records.model import Conversation

__all__ = ["assess", "assess_async"]

Progress = Callable[[int, int | None], object]
_INTERRUPTED = "stopped: interrupted"
_NO_CONVERSATIONS = "there are no conversations to assess"


def assess(
    conversations: Iterable[Conversation],
    *,
    judge: Grader,
    tool_rubric: ToolRubric = ToolRubric(),  # noqa: B008 - frozen
    metrics: Sequence[Grader] = (),
    concurrency: int = 8,
    progress: Progress | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    requests_per_second: float | None = None,
    max_cost: float | None = None,
    fail_fast: int | None = 5,
) -> Evidence:
    """Score every interaction.

    Parameters
    ----------
    conversations : iterable of Conversation
        A list is checked as a whole before the first judgement. An iterator is read as the work proceeds.
    judge : Grader
        Scores the answers: `ReferenceJudge()`, `LLMJudge(model)`, or anything with ``name``, ``identity`` and
        ``grade``.
    tool_rubric : ToolRubric
        Scores the tool calls where some are expected.
    metrics : sequence of Grader
        Further metrics, each a column of its own.
    concurrency : int
        How many interactions are judged at a time. It never changes the result.
    progress : callable, optional
        Called with (interactions done, interactions in all or None); a `ProgressBar` shows more.
    store : Store or path, optional
        Every judgement by a model is written there as soon as it is given, and is not paid for again: after a
        crash, the same call goes on where it was. Failures are tried again. Interactions with the same texts are
        one judgement then.
    requests_per_second : float, optional
        Calls of models begin at least 1 / `requests_per_second` seconds apart.
    max_cost : float, optional
        What the calls of this run may cost, in the currency of the judge's `price`. The run stops before a call
        that would exceed it if it cost as much as the dearest so far; only calls that were running before the
        first cost was known can exceed it. What comes from the store costs nothing.
    fail_fast : int, optional
        So many judgements lost to transport (no reply after all attempts), one after the other, stop the run.
        None: never. A call that the provider refuses for what it holds is not counted.

    Returns
    -------
    Evidence
        After Ctrl-C, and when `max_cost` or `fail_fast` stopped the run, with `Evidence.stopped` set: what was
        judged is kept, and the other interactions of the conversations read so far (of a list: all others) are
        unscored.

    Raises
    ------
    InvalidArgument
        If an argument is outside what is allowed; nothing was judged then.
    RecordsError
        If conversations do not fit together, such as a session_id given twice.
    EvidenceError
        If there are no conversations, or something else is among them.

    Warns
    -----
    StoppedEarly
        If the run was interrupted or stopped.

    Notes
    -----
    A grader that raises gives `Unscored` with the exception as the reason. Interactions where the agent
    crashed are not judged; their reason begins with ``agent error:``.

    An error of the iterator, or of `progress`, ends the run, but does not lose what was judged: the error
    carries it as its attribute ``evidence``. Where conversations do not fit together, tasks and trials in it
    are provisional: a task is its task_id or qa_ids, and trials are numbered in order of arrival.

    The graders run in a thread of their own, so that this works in a notebook, too.
    """
    limits = _Limits(concurrency, requests_per_second, max_cost, fail_fast)
    run = _Run(conversations, judge, tool_rubric, metrics, limits, progress, store)
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
    progress: Progress | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    requests_per_second: float | None = None,
    max_cost: float | None = None,
    fail_fast: int | None = 5,
) -> Evidence:
    """`assess` for callers that have an event loop; the graders run in it.

    Parameters, results, errors and warnings are those of `assess`. Cancelling the task cancels the run.
    """
    limits = _Limits(concurrency, requests_per_second, max_cost, fail_fast)
    run = _Run(conversations, judge, tool_rubric, metrics, limits, progress, store)
    await run.work()
    return run.result()


@dataclass(frozen=True)
class _Limits:
    """How much is done at once, how fast, and when enough is enough."""

    concurrency: int
    requests_per_second: float | None
    max_cost: float | None
    fail_fast: int | None

    def __post_init__(self) -> None:
        check_k(self.concurrency, "concurrency")
        if self.fail_fast is not None:
            check_k(self.fail_fast, "fail_fast")
        for name in ("requests_per_second", "max_cost"):
            value = getattr(self, name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if value is not None and not (number and 0 < value <= sys.float_info.max):
                raise InvalidArgument(f"{name} must be a number > 0, got {value!r}")


class _Run:
    """One run: its graders, and a ledger that holds every grade from the moment it was given."""

    def __init__(
        self,
        conversations: Iterable[Conversation],
        judge: Grader,
        tool_rubric: ToolRubric,
        metrics: Sequence[Grader],
        limits: _Limits,
        progress: Progress | None,
        store: Store | str | os.PathLike[str] | None,
    ) -> None:
        _check_arguments(conversations, judge, tool_rubric, metrics, progress)
        if limits.max_cost is not None and all(getattr(grader, "price", None) is None for grader in (judge, *metrics)):
            raise InvalidArgument(
                "max_cost needs the price of the judge's tokens, such as LLMJudge(…, price=(0.15, 0.6))"
            )
        self._judge, self._tool_rubric, self._metrics = judge, tool_rubric, tuple(metrics)
        self._limits, self._progress = limits, progress
        detailed: object = progress
        self._report = detailed.report if isinstance(detailed, DetailedProgress) else None
        self._owns_store = not isinstance(store, Store)
        self._ledger = Ledger()
        self._done = self._unscored = 0
        self._total: int | None = None
        self._ending: str | None = None
        self._failure: BaseException | None = None
        self._cancel: Callable[[], object] = lambda: None
        self._items = self._pull(_checked(conversations))
        if isinstance(conversations, Sized):
            items = list(self._items)
            if not items:
                raise EvidenceError(_NO_CONVERSATIONS)
            if misfit := self._ledger.misfit():
                raise misfit  # check first, pay later
            self._total = len(items)
            self._items = iter(items)
        # opened last: a run that is refused makes no file
        self._store = store if isinstance(store, Store) or store is None else Store(store)

    def _pull(self, conversations: Iterable[Conversation]) -> Iterator[tuple[Conversation, int, Turn]]:
        """The interactions one by one; a conversation enters the ledger with its first."""
        for conversation in conversations:
            for position, turn in enumerate(self._ledger.add(conversation)):
                yield conversation, position, turn

    async def work(self) -> None:
        """Judge everything, or until something stops the run; raises nothing but cancellation."""
        self._calls = Calls(
            store=self._store,
            requests_per_second=self._limits.requests_per_second,
            max_cost=self._limits.max_cost,
            fail_fast=self._limits.fail_fast,
        )
        token = RUN.set(self._calls)
        try:
            async with anyio.create_task_group() as group:
                loop = asyncio.get_running_loop()
                self._cancel = lambda: loop.call_soon_threadsafe(group.cancel_scope.cancel)
                group.start_soon(self._worker, group, 1)
        finally:
            RUN.reset(token)
            await self._calls.close()
            if self._store is not None and self._owns_store:
                self._store.close()

    async def _worker(self, group: TaskGroup, number: int) -> None:
        """Judge one interaction after the other, all workers from one iterator. Each starts the next one."""
        try:
            for conversation, position, turn in self._items:
                if self._ending is not None or self._failure is not None:
                    return
                if number < self._limits.concurrency:
                    group.start_soon(self._worker, group, number + 1)
                    number = self._limits.concurrency
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

    async def _grade(self, conversation: Conversation, position: int, turn: Turn) -> None:
        """Every grade of one interaction; each is in the ledger before the next is asked for."""
        crash = conversation.error_at(position)
        if crash is not None:
            nothing = Unscored(f"{AGENT_ERROR}{crash}")
            turn.answer, turn.tools = nothing, nothing if turn.has_expectations else None
            turn.metrics = {metric.name: nothing for metric in self._metrics}
            return
        try:
            turn.tools = self._tool_rubric.verdict(conversation.conversation[position])
        except Exception as error:
            turn.tools = _failed(error)
        turn.answer = await _ask(self._judge, conversation, position)
        for metric in self._metrics:
            turn.metrics[metric.name] = await _ask(metric, conversation, position)

    def interrupt(self) -> None:
        """Stop soon; may be called from another thread, and when the run has ended."""
        self._ending = _INTERRUPTED
        with contextlib.suppress(RuntimeError):  # the event loop is closed: the run has ended
            self._cancel()

    def result(self) -> Evidence:
        """The evidence; raises what ended the run, if anything did, with the evidence on it."""
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
            self._failure.add_note(f"Judged before: {evidence.scored} interactions, kept in this error's `evidence`.")
            raise self._failure
        if self._ending is not None:
            warnings.warn(StoppedEarly(f"{evidence!r}; what was judged is kept"), stacklevel=3)
        elif not evidence.rows:
            raise EvidenceError(_NO_CONVERSATIONS)
        return evidence


async def _ask(grader: Grader, conversation: Conversation, position: int) -> Grade:
    """What the grader gives, or why it gives nothing."""
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
        reason, details = cast("object", grade.reason), cast("object", grade.details)
        if isinstance(reason, str) and isinstance(details, Mapping):
            return grade
        # a score was paid for: what is odd about its reason must not lose it
        kept = details if isinstance(details, Mapping) else {}
        return Score(grade.value, reason if isinstance(reason, str) else str(reason or ""), kept)
    if not isinstance(grade, Unscored):
        return Unscored(f"{grader.name} must give a Score or Unscored, got {short(grade)}")
    return grade


def _failed(error: BaseException) -> Unscored:
    return Unscored(f"{type(error).__name__}: {error}")


def _checked(conversations: Iterable[Conversation]) -> Iterator[Conversation]:
    for position, conversation in enumerate(conversations):
        if not isinstance(conversation, Conversation):
            raise EvidenceError(f"conversations[{position}] must be a Conversation, got {short(conversation)}")
        yield conversation


def _check_arguments(
    conversations: object,
    judge: object,
    tool_rubric: object,
    metrics: object,
    progress: object,
) -> None:
    if isinstance(conversations, (str, bytes, Conversation)) or not isinstance(conversations, Iterable):
        raise InvalidArgument(
            "conversations must be an iterable of Conversation, such as what read_conversations gives, "
            f"got {short(conversations)}"
        )
    _check_grader("judge", judge)
    if not isinstance(tool_rubric, ToolRubric):
        raise InvalidArgument(f"tool_rubric must be a ToolRubric, got {short(tool_rubric)}")
    if not isinstance(metrics, Sequence):
        raise InvalidArgument(f"metrics must be a list of graders, got {short(metrics)}")
    taken = {*COLUMNS, "tool_rubric", "metrics", "answer", "tools", "joint"}
    for metric in metrics:
        _check_grader("metrics", metric)
        if metric.name in taken:
            raise InvalidArgument(f"metrics must have names of their own, got {metric.name!r}, which is taken")
        taken.add(metric.name)
    models = [grader for grader in (cast("Grader", judge), *metrics) if isinstance(grader, LLMJudge)]
    for position, model in enumerate(models):
        if any(model.identity == other.identity for other in models[:position]):
            raise InvalidArgument(
                f"metrics has a judge that was given already ({model.identity}), and would agree with itself; "
                "a judge that is to judge more than once is LLMJudge(model, n_judgements=3)"
            )
    if progress is not None and not callable(progress):
        raise InvalidArgument(f"progress must be callable, got {short(progress)}")


def _check_grader(name: str, grader: object) -> None:
    if isinstance(grader, type) or not isinstance(grader, Grader):
        hint = ", such as ReferenceJudge() or LLMJudge(model)" if name == "judge" else ""
        raise InvalidArgument(f"{name} must have `name`, `identity` and `grade`{hint}, got {short(grader)}")
    for text in (grader.name, grader.identity):
        if not isinstance(text, str) or not text.strip():
            raise InvalidArgument(f"{name} must have a name and an identity that are text, got {short(text)}")
