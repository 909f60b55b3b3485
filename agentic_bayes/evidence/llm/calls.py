"""What the calls of one run share: the store, the pace, and when enough is enough."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType

import anyio

from agentic_bayes.errors import ReplyError
from agentic_bayes.evidence.llm.retries import Sleep, Stopped, is_refused
from agentic_bayes.evidence.llm.store import READ, Call, Judgement, Store
from agentic_bayes.evidence.score import Grade, Score, Unscored

__all__ = ["RUN", "Attempt", "Calls", "Price"]

Price = tuple[float, float]
"""What a million tokens cost: (input, output)."""

_CLOSING_SECONDS = 2.0
_GATHERING_SECONDS = 0.001  # a worker waits for it, so that nothing else is paid for before


class Calls:
    """The calls of one run."""

    def __init__(
        self,
        *,
        store: Store | None = None,
        requests_per_second: float | None = None,
        max_cost: float | None = None,
        fail_fast: int | None = None,
    ) -> None:
        self.stopped: str | None = None
        self.at_end: list[Callable[[], Awaitable[object]]] = []
        self._store, self._max_cost, self._fail_fast = store, max_cost, fail_fast
        self._interval = 0.0 if requests_per_second is None else 1 / requests_per_second
        self._turn = asyncio.Lock()
        self._next_start = 0.0
        self._lost = 0  # judgements lost to transport since the last reply
        self.spent = self._dearest = 0.0
        self._running = 0
        self._asked: dict[str, asyncio.Event] = {}
        self._pauses: set[anyio.CancelScope] = set()
        self._unkept: list[tuple[Judgement, asyncio.Future[Score | None] | None]] = []

    async def close(self) -> None:
        """Put on disk what is not there, and close the connections that were opened for this run."""
        self._flush()
        with anyio.move_on_after(_CLOSING_SECONDS, shield=True), contextlib.suppress(Exception):
            for end in self.at_end:
                await end()

    async def judgement(self, key: str, model: str, ask: Callable[[list[Call]], Awaitable[Score]]) -> Grade:
        """One judgement: from the store, or asked for and then in the store before anything else happens."""
        if self._store is None:
            return await self._judged(key, model, ask)
        while True:
            if (kept := self._store.get(key)) is not None:
                return kept
            if key not in self._asked:
                break
            await self._asked[key].wait()
        done = self._asked[key] = asyncio.Event()
        try:
            return await self._judged(key, model, ask)
        finally:
            del self._asked[key]
            done.set()

    async def _judged(self, key: str, model: str, ask: Callable[[list[Call]], Awaitable[Score]]) -> Grade:
        calls: list[Call] = []
        score: Score | None = None
        try:
            score = await ask(calls)
            self._lost = 0
            grade: Grade = score
        except Stopped:
            grade = Unscored(self.stopped or "stopped")
        except ReplyError as error:
            grade = Unscored(f"unreadable reply: {error}")
            self._lost = 0
        except Exception as error:
            grade = Unscored(f"{type(error).__name__}: {error}")
            self._count_lost(error, grade.reason)
        except BaseException:
            # the run is cancelled: what was paid for is written down
            self._unkept.append(((key, model, calls, None), None))
            self._flush()
            raise
        if self._store is None or not calls:
            return grade
        return await self._kept((key, model, calls, score)) or grade

    async def _kept(self, judgement: Judgement) -> Score | None:
        """Put a judgement on disk, in one transaction with those that end at the same time."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Score | None] = loop.create_future()
        self._unkept.append((judgement, done))
        if len(self._unkept) == 1:
            loop.call_later(_GATHERING_SECONDS, self._flush)
        return await done

    def _flush(self) -> None:
        waiting = [(judgement, done) for judgement, done in self._unkept if judgement[2]]
        self._unkept.clear()
        if self._store is None or not waiting:
            return
        judgements = [judgement for judgement, _ in waiting]
        try:
            kept = self._store.add_all(judgements)
        except sqlite3.Error as error:
            # nothing more is paid for that cannot be kept
            self.stop(f"stopped: the evidence store cannot be written: {error}")
            kept = [judgement[3] for judgement in judgements]
        for (_, done), score in zip(waiting, kept, strict=True):
            if done is not None and not done.done():
                done.set_result(score)

    def _count_lost(self, error: Exception, reason: str) -> None:
        self._lost += not is_refused(error)
        if self._fail_fast is not None and self._lost >= self._fail_fast:
            self.stop(f"stopped after {self._fail_fast} transport failures: {reason}")

    def stop(self, ending: str) -> None:
        """Begin no further call, and end the waits between calls; running calls may still finish."""
        self.stopped = self.stopped or ending
        for pause in list(self._pauses):
            pause.cancel()

    async def pause(self, seconds: float, sleep: Sleep) -> None:
        """Wait, but not beyond the end of the run."""
        if self.stopped:
            return
        with anyio.CancelScope() as scope:
            self._pauses.add(scope)
            try:
                await sleep(seconds)
            finally:
                self._pauses.discard(scope)

    async def begin(self) -> None:
        """Wait until a call may begin."""
        if self._interval:
            async with self._turn:
                # from the moment at which the last one really began: a late one must not be caught up with
                if (early := self._next_start - time.monotonic()) > 0:
                    await self.pause(early, anyio.sleep)
                self._next_start = time.monotonic() + self._interval
        expected = self.spent + (self._running + 1) * self._dearest
        if self._max_cost is not None and expected > self._max_cost * (1 + 1e-9):
            self.stop(f"stopped: max_cost of {self._max_cost:g} is reached")
        if self.stopped:
            raise Stopped(self.stopped)
        self._running += 1

    def end(self, call: Call, *, replied: bool) -> None:
        """Take note of what a call cost."""
        self._running -= 1
        if call.cost is not None:
            self.spent += call.cost
            self._dearest = max(self._dearest, call.cost)
        elif replied and self._max_cost is not None:
            self.stop("stopped: max_cost cannot be kept: a model has no price, or does not report its tokens")


RUN: contextvars.ContextVar[Calls | None] = contextvars.ContextVar("agentic_bayes_run", default=None)
"""The run in which a grader is asked, if any; a context variable, so that graders that wrap others need not know."""


class Attempt:
    """One call, from its turn to its outcome, as an asynchronous context; it is appended to `log` at the end."""

    def __init__(self, calls: Calls, log: list[Call], price: Price | None) -> None:
        self._calls, self._log, self._price = calls, log, price
        self._tokens: tuple[int, int] | None = None
        self._latency: float | None = None
        self.outcome: str | None = None

    async def __aenter__(self) -> Attempt:
        await self._calls.begin()
        self._started, self._clock = time.time(), time.perf_counter()
        return self

    def replied(self, message: object) -> None:
        """Take note of a reply, and of the tokens that it reports."""
        self._latency = time.perf_counter() - self._clock
        usage = getattr(message, "usage_metadata", None)
        if isinstance(usage, Mapping):
            given, made = usage.get("input_tokens"), usage.get("output_tokens")
            if isinstance(given, int) and isinstance(made, int) and min(given, made) >= 0:
                self._tokens = given, made

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        replied = self._latency is not None
        if self._latency is None:
            self._latency = time.perf_counter() - self._clock
        given, made = self._tokens or (None, None)
        cost = None
        if given is not None and made is not None and self._price is not None:
            cost = (given * self._price[0] + made * self._price[1]) / 1e6
        outcome = self.outcome or (READ if error is None else f"{type(error).__name__}: {error}")
        call = Call(self._started, self._latency, given, made, cost, outcome)
        self._log.append(call)
        self._calls.end(call, replied=replied)
