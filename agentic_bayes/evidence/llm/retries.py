"""Retries of model calls: which failures to try again, and how long to wait."""

from __future__ import annotations

import asyncio
import email.utils
import hashlib
import math
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import tenacity

from agentic_bayes.errors import ReplyError, described

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]

_LONGEST_WAIT = 30.0
_LONGEST_ASKED = 600.0
_JITTER = 0.25
# statuses of calls that the provider understood and will never answer
_FINAL = {400, 401, 403, 404, 405, 413, 422}
# … because of the content of this one call
_REFUSED = {400, 413, 422}
_MOST_STALE = 100
_NOT_SUPPORTED = re.compile(
    r"(not|n't|un)\s?-?support\w*.{0,40}(tool|function|structured|response_format|json)"
    r"|(tool|function|structured|response_format|json).{0,40}(not|n't|un)\s?-?(be\s)?support",
    re.IGNORECASE | re.DOTALL,
)


class Stopped(Exception):
    """The run was stopped; no further call may start."""


@dataclass(frozen=True)
class Retries:
    """How often to make a call, and how long to wait in between."""

    attempts: int = 4  # maximum number of calls
    # Seconds before the first repetition; doubles each time, up to 30, plus a jitter of up to a quarter, so that calls
    # that failed together are not repeated together. A longer ``Retry-After`` is respected up to ten minutes; if the
    # provider asks for more, the call has failed.
    backoff: float = 1.0

    async def run(self, attempt: Callable[[], Awaitable[T]], *, key: str, sleep: Sleep) -> T:
        """The result of the first attempt that succeeds; raises the error of the last one if none does."""
        failed: list[Exception] = []
        try:
            return await attempt()
        except Exception as error:
            failed.append(error)

        async def again() -> T:
            if failed:
                raise failed.pop()  # the attempt above counts as the first one
            return await attempt()

        between = tenacity.wait_exponential(multiplier=self.backoff, max=_LONGEST_WAIT)

        def wait(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            if isinstance(error, ReplyError):
                return 0.0
            spread = 1 + _JITTER * _fraction(f"{key} {state.attempt_number}")
            return max(min(_LONGEST_WAIT, between(state) * spread), _asked_wait(error))

        retrying = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(self.attempts),
            wait=wait,
            sleep=sleep,
            retry=tenacity.retry_if_exception(_is_worth_repeating),
            reraise=True,
        )
        return await retrying(again)


async def within(timeout: float | None, call: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
    """The result of the call, or a `TimeoutError` after so many seconds."""
    try:
        async with asyncio.timeout(timeout) as limit:
            for _ in range(_MOST_STALE):
                try:
                    return await call(*arguments)
                except Exception as error:
                    if not _is_stale(error):
                        raise
            return await call(*arguments)
    except TimeoutError:
        if not limit.expired():
            raise  # the client's own
        raise TimeoutError(f"no reply within {timeout:g} s") from None


def is_refused(error: BaseException) -> bool:
    """Whether the provider refused this one call because of its content, so that other calls may still work."""
    return _status(error) in _REFUSED


def why_lost(error: Exception) -> str:
    """Why a call gave no reply, or none that its client could read."""
    reason = described(error)
    if isinstance(error, (AttributeError, LookupError, TypeError)):
        reason = f"the model's client cannot read the reply: {reason}"
    if (seconds := _asked_wait(error)) > _LONGEST_ASKED:
        reason = f"{reason}; the provider asks to wait {seconds:,.0f} s"
    return reason


def is_unsupported(error: BaseException) -> bool:
    """Whether the provider says that it does not support this kind of structured output."""
    return _NOT_SUPPORTED.search(str(error)) is not None


def _is_worth_repeating(error: BaseException) -> bool:
    if isinstance(error, Stopped) or not isinstance(error, Exception):
        return False
    return _status(error) not in _FINAL and _asked_wait(error) <= _LONGEST_ASKED


def _status(error: BaseException | None) -> int | None:
    """The HTTP status of a client's exception, as OpenAI's, Anthropic's and httpx's have it, or None."""
    for holder in (error, getattr(error, "response", None)):
        status = getattr(holder, "status_code", None)
        if isinstance(status, int):
            return status
    return None


def _asked_wait(error: BaseException | None) -> float:
    """The wait in seconds that the provider asks for, or 0."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    get = getattr(headers, "get", None)
    if get is None:
        return 0.0
    milliseconds, asked = get("retry-after-ms"), get("retry-after")
    try:
        seconds = float(milliseconds) / 1000 if milliseconds is not None else float(asked or 0)
    except (TypeError, ValueError):
        try:
            seconds = email.utils.parsedate_to_datetime(str(asked)).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0


def _fraction(text: str) -> float:
    """A number in [0, 1) that looks random and is the same for the same text."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:6]) / 2**48


def _is_stale(error: BaseException | None) -> bool:
    """Whether the call failed on a connection left over from an earlier event loop.

    Providers' clients keep connections longer than the loop that opened them, and drop each one when it fails; so the
    call can be repeated at once.
    """
    while error is not None:
        if isinstance(error, RuntimeError) and "Event loop is closed" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
