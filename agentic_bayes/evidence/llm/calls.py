"""What the model calls of one run share: the store, the pace, the cost limit and the failure limit."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar

import anyio

from agentic_bayes.checks import check_count, check_number
from agentic_bayes.errors import ReplyError, described
from agentic_bayes.evidence.llm.retries import Sleep, Stopped, is_refused, why_lost
from agentic_bayes.evidence.llm.store import READ, Judgement, ModelCall, Store
from agentic_bayes.evidence.row import SAID, EvidenceRow
from agentic_bayes.evidence.score import Grade, Score, Unscored
from agentic_bayes.redaction import Secrets, keys_in

G = TypeVar("G", bound=Grade)
TokenPrice = tuple[float, float]
"""The price of a million tokens: (input, output)."""

_CLOSING_SECONDS = 2.0
_BEAT_SECONDS = 5.0
_SHORTEST_WAIT, _LONGEST_WAIT = 0.02, 0.5
_MOST_TOKENS = 2**53  # of one call; no model reports more
_GATHERING_SECONDS = 0.001  # workers wait for it, so nothing more is paid for meanwhile


class RunCalls:
    """The model calls of one run."""

    def __init__(
        self, *, requests_per_second: float | None = None, max_cost: float | None = None, fail_fast: int | None = None
    ) -> None:
        if fail_fast is not None:
            check_count(fail_fast, "fail_fast")
        for name, limit in (("requests_per_second", requests_per_second), ("max_cost", max_cost)):
            if limit is not None:
                check_number(limit, name, above_zero=True)
        self._secret_names = keys_in(os.environ)
        self.secrets = Secrets(self._secret_names)
        self.store: Store | None = None
        self.max_cost, self._fail_fast = max_cost, fail_fast
        self.stopped: str | None = None
        self.at_end: list[Callable[[], Awaitable[object]]] = []
        self._interval = 0.0 if requests_per_second is None else 1 / requests_per_second
        self._turn = asyncio.Lock()
        self._next_start = 0.0
        self._lost = 0  # judgements lost to transport since the last reply
        self.spent = self._dearest = 0.0
        self._running = 0
        self._asked: dict[str, asyncio.Event] = {}
        self._pauses: set[anyio.CancelScope] = set()
        self._unclaimed: list[tuple[str, asyncio.Future[Score | bool]]] = []
        self._held: set[str] = set()  # claims
        self._beat: asyncio.TimerHandle | None = None
        self._unstored: list[tuple[Judgement, asyncio.Future[Grade | None] | None]] = []

    def keep_secret(self, names: Mapping[str, str]) -> None:
        """Hide these, too; the keys of the environment always are."""
        if not names.keys() <= self._secret_names.keys():
            self._secret_names = {**names, **self._secret_names}
            self.secrets = Secrets(self._secret_names)

    def without_secrets(self, grade: G) -> G:
        """The grade with names in place of secrets."""
        if not self.secrets:
            return grade
        details = {"details": self.secrets.hide(grade.details)} if isinstance(grade, Score) else {}
        return replace(grade, reason=self.secrets.in_text(grade.reason), **details)

    def without_secrets_in(self, row: EvidenceRow) -> EvidenceRow:
        """The row of evidence with names in place of secrets in all that graders said; ids stay."""
        said = {name: self.secrets.hide(getattr(row, name)) for name in SAID}
        return replace(row, **said, metrics={name: self.without_secrets(row.metrics[name]) for name in row.metrics})

    async def close(self) -> None:
        """Write what is not yet on disk, give up claims, and close the connections of this run."""
        self._flush()
        if self._beat is not None:
            self._beat.cancel()
        if self.store is not None and self._held:
            with contextlib.suppress(sqlite3.Error):  # they lapse by themselves
                self.store.release(self._held)
        with anyio.move_on_after(_CLOSING_SECONDS, shield=True), contextlib.suppress(Exception):
            for end in self.at_end:
                await end()

    async def judgement(self, key: str, model: str, ask: Callable[[list[ModelCall]], Awaitable[Score]]) -> Grade:
        """One judgement: from the store, or from the model and then stored before anything else happens."""
        if self.store is None:
            return await self._judged(key, model, ask)
        wait = _SHORTEST_WAIT
        while not self.stopped:
            if key in self._asked:
                await self._asked[key].wait()
                continue
            done = self._asked[key] = asyncio.Event()
            try:
                found = await self._claimed(key)
                if isinstance(found, Score):
                    return found
                if found:
                    return await self._judged(key, model, ask)
            finally:
                del self._asked[key]
                done.set()
            await self.pause(wait, anyio.sleep)  # another process is asking
            wait = min(2 * wait, _LONGEST_WAIT)
        return Unscored(self.stopped)

    async def _judged(self, key: str, model: str, ask: Callable[[list[ModelCall]], Awaitable[Score]]) -> Grade:
        calls: list[ModelCall] = []
        score: Score | None = None
        try:
            grade: Grade = self.without_secrets(await ask(calls))
            score = grade if isinstance(grade, Score) else None
            self._lost = 0
        except Stopped:
            grade = Unscored(self.stopped or "stopped")
        except ReplyError as error:
            grade = self.without_secrets(Unscored(f"unreadable reply: {error}"))
            self._lost = 0
        except Exception as error:
            grade = self.without_secrets(Unscored(why_lost(error)))
            self._lost += not is_refused(error)
            if self._fail_fast is not None and self._lost >= self._fail_fast:
                self.stop(f"stopped after {self._fail_fast} transport failures: {grade.reason}")
        except BaseException:
            # the run is cancelled; store what was paid for
            self._unstored.append(((key, model, calls, None), None))
            self._flush()
            raise
        if self.store is None:
            return grade
        return await self._stored((key, model, calls, score)) or grade

    async def _stored(self, judgement: Judgement) -> Grade | None:
        """Store a judgement, in one transaction with those that end at the same time; `Unscored` if it cannot be."""
        done: asyncio.Future[Grade | None] = self._soon()
        self._unstored.append((judgement, done))
        return await done

    async def _claimed(self, key: str) -> Score | bool:
        """The stored verdict, or whether this run may ask for it; decided in groups."""
        done: asyncio.Future[Score | bool] = self._soon()
        self._unclaimed.append((key, done))
        return await done

    def _soon(self) -> asyncio.Future[Any]:
        """A future that the next flush resolves."""
        loop = asyncio.get_running_loop()
        if not self._unstored and not self._unclaimed:
            loop.call_later(_GATHERING_SECONDS, self._flush)
        return loop.create_future()

    def _flush(self) -> None:
        """Write finished judgements, then find or claim the next ones; whatever fails, nobody is left waiting."""
        unstored, unclaimed = self._unstored, self._unclaimed
        self._unstored, self._unclaimed = [], []
        if self.store is None:
            return
        judgements = [judgement for judgement, _ in unstored if judgement[2]]
        uncalled = [judgement[0] for judgement, _ in unstored if not judgement[2]]
        scores: Sequence[Grade | None] = []
        try:
            if judgements:
                scores = self.store.add_all(judgements)
            if uncalled:
                self.store.release(uncalled)
            self._held.difference_update(judgement[0] for judgement, _ in unstored)
        except Exception as error:
            # pay for nothing more that cannot be stored, and hand out no verdict that is not
            lost = Unscored(f"stopped: the evidence store {self.store.path} cannot be written: {error}")
            scores = scores or [None if score is None else lost for _, _, _, score in judgements]
            self.stop(lost.reason)
        by_key = dict(zip((judgement[0] for judgement in judgements), scores, strict=True))
        for (key, *_), done in unstored:
            if done is not None and not done.done():
                done.set_result(by_key.get(key))
        self._claim([(key, done) for key, done in unclaimed if not done.done()])

    def _claim(self, asked: list[tuple[str, asyncio.Future[Score | bool]]]) -> None:
        if not asked or self.store is None:
            return
        found: list[Score | bool] = [False] * len(asked)
        try:
            if not self.stopped:
                found = self.store.claim([key for key, _ in asked])
        except Exception as error:
            self.stop(f"stopped: the evidence store {self.store.path} cannot be read: {error}")
        for (key, done), grade in zip(asked, found, strict=True):
            if grade is True:
                self._held.add(key)
            done.set_result(grade)
        if self._held and self._beat is None:
            self._beat = asyncio.get_running_loop().call_later(_BEAT_SECONDS, self._renew)

    def _renew(self) -> None:
        """Renew the claims of judgements that take their time."""
        self._beat = None
        if self.store is not None and self._held:
            with contextlib.suppress(sqlite3.Error):  # the next write says what is wrong
                self.store.renew()
            self._beat = asyncio.get_running_loop().call_later(_BEAT_SECONDS, self._renew)

    def stop(self, ending: str) -> None:
        """Start no further call and end all waits between calls; running calls may finish."""
        self.stopped = self.stopped or ending
        for pause in list(self._pauses):
            pause.cancel()

    async def pause(self, seconds: float, sleep: Sleep) -> None:
        """Wait, but no longer than the run lasts."""
        if self.stopped:
            return
        with anyio.CancelScope() as scope:
            self._pauses.add(scope)
            try:
                await sleep(seconds)
            finally:
                self._pauses.discard(scope)

    async def begin(self) -> None:
        """Wait until a call may start."""
        if self._interval:
            async with self._turn:
                # counted from when the last call really started, so that a late call is not made up for
                if (early := self._next_start - time.monotonic()) > 0:
                    await self.pause(early, anyio.sleep)
                self._next_start = time.monotonic() + self._interval
        expected = self.spent + (self._running + 1) * self._dearest
        if self.max_cost is not None and expected > self.max_cost * (1 + 1e-9):
            self.stop(f"stopped: max_cost of {self.max_cost:g} is reached")
        if self.stopped:
            raise Stopped(self.stopped)
        self._running += 1

    def end(self, call: ModelCall, *, replied: bool) -> None:
        """Add up what a call cost."""
        self._running -= 1
        if call.cost is not None:
            self.spent += call.cost
            self._dearest = max(self._dearest, call.cost)
        elif replied and self.max_cost is not None:
            self.stop("stopped: max_cost cannot be enforced: a model has no price or does not report its tokens")


RUN: contextvars.ContextVar[RunCalls | None] = contextvars.ContextVar("agentic_bayes_run", default=None)
"""The current run, if any; a context variable, so that graders need not pass it on."""


class MeteredCall:
    """One call as an asynchronous context: waits for its turn, measures time and cost, and appends itself to `log`."""

    def __init__(self, calls: RunCalls, log: list[ModelCall], price: TokenPrice | None) -> None:
        self._calls, self._log, self._price = calls, log, price
        self._tokens: tuple[int, int] | None = None
        self._latency: float | None = None
        self.outcome: str | None = None

    async def __aenter__(self) -> MeteredCall:
        await self._calls.begin()
        self._started, self._clock = time.time(), time.perf_counter()
        return self

    def replied(self, message: object) -> None:
        """Note a reply, and the tokens it reports."""
        self._latency = time.perf_counter() - self._clock
        usage = getattr(message, "usage_metadata", None)
        if isinstance(usage, Mapping):
            tokens_in, tokens_out = usage.get("input_tokens"), usage.get("output_tokens")
            if (
                isinstance(tokens_in, int)
                and isinstance(tokens_out, int)
                and 0 <= min(tokens_in, tokens_out) <= max(tokens_in, tokens_out) < _MOST_TOKENS
            ):
                self._tokens = tokens_in, tokens_out

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        replied = self._latency is not None
        if self._latency is None:
            self._latency = time.perf_counter() - self._clock
        tokens_in, tokens_out = self._tokens or (None, None)
        cost = None
        if tokens_in is not None and tokens_out is not None and self._price is not None:
            cost = (tokens_in * self._price[0] + tokens_out * self._price[1]) / 1e6
        outcome = self._calls.secrets.in_text(self.outcome or (READ if error is None else described(error)))
        call = ModelCall(self._started, self._latency, tokens_in, tokens_out, cost, outcome)
        self._log.append(call)
        self._calls.end(call, replied=replied)
