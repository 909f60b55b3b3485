"""Runs graders over conversations, and keeps every judgement even if others fail."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import anyio
from anyio.abc import TaskGroup

from agentic_bayes.checks import check_count, check_type
from agentic_bayes.errors import EvidenceError, InvalidArgument, StoppedEarly
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.grading import Graders, failed
from agentic_bayes.evidence.ledger import Ledger, TurnGrades
from agentic_bayes.evidence.llm.calls import RUN, RunCalls
from agentic_bayes.evidence.llm.judge import LLMJudge
from agentic_bayes.evidence.llm.store import Store
from agentic_bayes.evidence.progress import DetailedProgress, LateBar, ProgressState
from agentic_bayes.evidence.row import RESERVED
from agentic_bayes.evidence.score import Grader, Unscored
from agentic_bayes.evidence.tools.rubric import ToolRubric
from agentic_bayes.executors import ExecutorChoice, Workers, check_executor, packed
from agentic_bayes.records.base import short
from agentic_bayes.records.model import Conversation, check_conversations
from agentic_bayes.redaction import secrets_in

__all__ = ["assess", "assess_async"]

ProgressCallback = Callable[[int, int | None], object]
SENT_TOGETHER = 64  # interactions in one call of a worker process
_INTERRUPTED = "stopped: interrupted"
_NO_CONVERSATIONS = "there are no conversations to assess"


def assess(
    conversations: Iterable[Conversation],
    *,
    judge: Grader,
    tool_rubric: ToolRubric = ToolRubric(),  # noqa: B008 - frozen
    metrics: Sequence[Grader] = (),
    concurrency: int = 8,
    progress: ProgressCallback | bool | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    requests_per_second: float | None = None,
    max_cost: float | None = None,
    fail_fast: int | None = 5,
    executor: ExecutorChoice | None = None,
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
    progress : callable or bool, optional
        Called with (interactions done, total or None); a `ProgressBar` shows more. Default: a bar in terminals and
        notebooks if the run takes more than two seconds; False shows none.
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
    executor : str or concurrent.futures.Executor, optional
        Where to grade, if grading is computing (`ReferenceJudge`, tool rubric, embeddings): ``"local:4"`` for four
        processes, ``"dask://HOST:PORT"`` for the workers of a Dask cluster, or an executor of your own. The evidence is
        the same to the last bit. Graders that ask a model are refused, since they wait instead: raise `concurrency`.

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
    ExecutorError
        If a worker process died or the cluster is not there.

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
    context = contextvars.copy_context()
    with _shown(progress) as shown, ThreadPoolExecutor(max_workers=1, thread_name_prefix="assess") as thread:
        run = _Assessment(conversations, judge, tool_rubric, metrics, concurrency, shown, store, executor, calls)
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
    progress: ProgressCallback | bool | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    requests_per_second: float | None = None,
    max_cost: float | None = None,
    fail_fast: int | None = 5,
    executor: ExecutorChoice | None = None,
) -> Evidence:
    """Run `assess` in the caller's event loop.

    Parameters, results, errors and warnings are those of `assess`. Cancelling the task cancels the run.
    """
    calls = RunCalls(requests_per_second=requests_per_second, max_cost=max_cost, fail_fast=fail_fast)
    with _shown(progress) as shown:
        run = _Assessment(conversations, judge, tool_rubric, metrics, concurrency, shown, store, executor, calls)
        await run.work()
    return run.result()


def _shown(progress: ProgressCallback | bool | None) -> contextlib.AbstractContextManager[ProgressCallback | None]:
    """What shows the progress of a run."""
    if progress is None or progress is True:
        return LateBar()
    return contextlib.nullcontext(None if progress is False else progress)


_ToGrade = tuple[Conversation, int, TurnGrades]


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
        executor: ExecutorChoice | None,
        calls: RunCalls,
    ) -> None:
        self._concurrency = check_count(concurrency, "concurrency")
        _check_arguments(conversations, judge, tool_rubric, metrics, progress)
        if calls.max_cost is not None and all(getattr(grader, "price", None) is None for grader in (judge, *metrics)):
            raise InvalidArgument(
                "max_cost needs the price of the judge's tokens, for example LLMJudge(…, price=(0.15, 0.6))"
            )
        self._graders = Graders(judge, tool_rubric, tuple(metrics))
        check_executor(executor)
        self._packed = b"" if executor is None else _packed(self._graders)
        for grader in (judge, *metrics):
            calls.keep_secret(secrets_in(grader))
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
        # opened last, so that a refused run creates no file and starts no process
        self._parts = _parts(self._items, 1 if executor is None else SENT_TOGETHER)
        self._own_store = None if isinstance(store, Store) or store is None else Store(store)
        calls.store = store if isinstance(store, Store) else self._own_store
        self._workers = None if executor is None else Workers.open(executor)
        if self._workers is not None:
            self._concurrency = max(self._concurrency, 2 * self._workers.size)

    def _pull(self, conversations: Iterable[Conversation]) -> Iterator[_ToGrade]:
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
            if self._workers is not None:
                self._workers.close()
            await self._calls.close()
            if self._own_store is not None:
                self._own_store.close()

    async def _worker(self, group: TaskGroup, number: int) -> None:
        """Judge interactions from the iterator that all workers share; each worker starts the next one."""
        try:
            for part in self._parts:
                if self._ending is not None or self._failure is not None:
                    return
                if number < self._concurrency:
                    group.start_soon(self._worker, group, number + 1)
                    number = self._concurrency
                await self._grade(part)
                self._ending = self._ending or self._calls.stopped
                self._done += len(part)
                self._unscored += sum(isinstance(turn.answer, Unscored) for _, _, turn in part)
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

    async def _grade(self, part: list[_ToGrade]) -> None:
        """Grade some interactions, here or in one call of a worker process."""
        if self._workers is None:
            for conversation, position, turn in part:
                await self._graders.grade(conversation, position, turn)
            return
        sent = [(conversation, position) for conversation, position, _ in part]
        grades = await asyncio.wrap_future(self._workers.submit(self._packed, sent))
        for (_, _, turn), (answer, tools, metrics) in zip(part, grades, strict=True):
            turn.answer, turn.tools, turn.metrics = answer, tools, metrics

    def interrupt(self) -> None:
        """Stop the run soon; safe to call from another thread, and after the run has ended."""
        self._ending = _INTERRUPTED
        with contextlib.suppress(RuntimeError):  # the event loop is closed: the run has ended
            self._cancel()

    def result(self) -> Evidence:
        """The evidence; if an error ended the run, raises it with the evidence attached."""
        if self._failure is None and self._ending is None:
            self._failure = self._ledger.misfit()
        cause = f"stopped: {failed(self._failure).reason if self._failure else 'cancelled'}"
        rows = self._ledger.rows(
            judge=self._graders.judge.identity,
            tool_rubric=self._graders.tool_rubric.identity,
            metrics={metric.name: metric.identity for metric in self._graders.metrics},
            missing=Unscored(self._ending or cause),
        )
        if self._calls.secrets:
            rows = tuple(self._calls.without_secrets_in(row) for row in rows)
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


def _parts(items: Iterator[_ToGrade], size: int) -> Iterator[list[_ToGrade]]:
    """The interactions, so many at a time; what came before an error comes before the error."""
    part: list[_ToGrade] = []
    try:
        for item in items:
            part.append(item)
            if len(part) == size:
                yield part
                part = []
    except Exception:
        if part:
            yield part
        raise
    if part:
        yield part


def _packed(graders: Graders) -> bytes:
    """The graders, ready to be sent to worker processes; refused before anything is judged if they cannot be."""
    for grader in (graders.judge, *graders.metrics):
        if hasattr(grader, "price"):
            raise InvalidArgument(
                f"an executor is for graders that compute; {grader.name} asks a model and waits for it: leave executor "
                "out, and judge more answers at a time with concurrency"
            )
        packed(grader.grade, f"the grader {grader.name!r}")
    packed(graders.tool_rubric.verdict, "tool_rubric")
    return packed(graders.grade_elsewhere, "the graders")


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
            raise InvalidArgument(f"every metric needs its own name; {metric.name!r} is taken")
        taken.add(metric.name)
    models = [grader for grader in (cast("Grader", judge), *metrics) if isinstance(grader, LLMJudge)]
    for position, model in enumerate(models):
        if any(model.identity == other.identity for other in models[:position]):
            raise InvalidArgument(
                f"the same judge is given twice ({model.identity}) and would agree with itself; to judge every answer "
                "several times, use LLMJudge(model, n_judgements=3)"
            )
    if progress is not None and not callable(progress):
        raise InvalidArgument(f"progress must be callable, or False to show none, got {short(progress)}")


def _check_grader(name: str, grader: object) -> None:
    if isinstance(grader, type) or not isinstance(grader, Grader):
        hint = " (for example ReferenceJudge() or LLMJudge(model))" if name == "judge" else ""
        raise InvalidArgument(f"{name} must have `name`, `identity` and `grade`{hint}, got {short(grader)}")
    for text in (grader.name, grader.identity):
        if not isinstance(text, str) or not text.strip():
            raise InvalidArgument(f"{name} must have a name and an identity that are text, got {short(text)}")
