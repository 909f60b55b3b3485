"""Call a Python function as the agent, synchronous or asynchronous."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import copy
import inspect
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agentic_bayes.errors import AgentError, SuiteError
from agentic_bayes.executors import caught
from agentic_bayes.records.base import Record, short
from agentic_bayes.suites.agents.declared import identity, wrong
from agentic_bayes.suites.agents.importing import ImportPath, load_object
from agentic_bayes.suites.agents.reply import AgentTurn, ChatMessages, attempt_as_json, converse, turn_of
from agentic_bayes.suites.trial import AgentReply, TrialAttempt

_PATIENCE = 0.5  # seconds within which an event loop that is not blocked must respond
_KEYWORDS = ("messages", "task_id", "trial", "seed", "params")


class PythonSettings(Record):
    """Declaration of an agent of type python."""

    function: ImportPath  # ``module:name``, in the suite's folder or on PYTHONPATH


class PythonAgent:
    """Calls ``function(prompt, **kw)`` with those of ``messages, task_id, trial, seed, params`` that it takes.

    ``messages`` is the dialogue up to and including the prompt. Each call runs in its own thread, which is abandoned
    when its time is up. All calls of an asynchronous function share one event loop, so that one client with open
    connections can serve them; it is not the run's loop, so a function that blocks it does not stop the run.
    """

    def __init__(self, settings: PythonSettings, folder: Path) -> None:
        self._settings = settings
        self._function = load_object(settings.function, folder=folder, field="function")
        self._keywords = _keywords_of(self._function, settings.function)
        self._loop = _SharedLoop()

    @property
    def identity(self) -> str:
        """The function's name."""
        return identity("python", function=self._settings.function)

    async def attempt(self, attempt: TrialAttempt) -> AgentReply:
        """Call the function, once per message."""

        async def say(prompt: str, messages: ChatMessages) -> AgentTurn:
            known = attempt_as_json(attempt, prompt, messages)
            # a copy, because the function may change its arguments
            arguments = copy.deepcopy({name: known[name] for name in self._keywords})
            reply = await _in_thread(lambda: self._function(prompt, **arguments))
            if inspect.isawaitable(reply):
                reply = await self._loop.result_of(reply)
            return turn_of(reply, prompt=prompt)

        return await converse(attempt, say)

    async def close(self) -> None:
        """Stop the event loop of an asynchronous function."""
        self._loop.close()


class _SharedLoop:
    """An event loop in its own thread, for all calls of an asynchronous function."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._suspect = False  # a call ran out of time and may be blocking the loop

    async def result_of(self, awaitable: Awaitable[Any]) -> Any:
        """Await it on the loop."""
        ended = asyncio.run_coroutine_threadsafe(caught(awaitable), await self._working())
        try:
            value, error = await asyncio.wrap_future(ended)
        except asyncio.CancelledError:
            self._suspect = True
            raise
        return _value(value, error)

    async def _working(self) -> asyncio.AbstractEventLoop:
        """The loop; a new one if a function blocks the old one."""
        if self._loop is not None and self._suspect:
            alive = asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop)
            done, _ = await asyncio.wait([asyncio.wrap_future(alive)], timeout=_PATIENCE)
            self._loop = self._loop if done else None
            self._suspect = False
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=_run, args=(self._loop,), name="agent", daemon=True).start()
        return self._loop

    def close(self) -> None:
        """Stop the loop as soon as it is free."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, then cancel its calls and let them clean up."""
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    finally:
        loop.close()


async def _in_thread(call: Callable[[], Any]) -> Any:
    """Run a call in a thread of its own: Python waits for those of a pool at exit, even for a function that hangs."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def tell(value: Any, error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result((value, error))
        elif inspect.iscoroutine(value):
            value.close()  # its time was up before it started

    def run() -> None:
        value, error = None, None
        try:
            value = context.run(call)
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the run has ended and nobody is waiting
            loop.call_soon_threadsafe(tell, value, error)

    threading.Thread(target=run, name="agent", daemon=True).start()
    return _value(*await ended)


def _value(value: Any, error: BaseException | None) -> Any:
    """Return the value or raise the error, converted if it would end the run."""
    if error is None:
        return value
    raise error if isinstance(error, Exception) else AgentError(_ending(error)) from error


def _ending(error: BaseException) -> str:
    """Describe an error that is no `Exception`."""
    match error:
        case SystemExit():
            return f"the function ended the program: sys.exit({error.code!r})"
        case asyncio.CancelledError():
            return "the function raised CancelledError, although nothing cancelled it"
        case _:
            return f"the function raised {short(error, 200)}"


def _keywords_of(function: object, name: str) -> tuple[str, ...]:
    """The keywords that the function takes."""
    if not callable(function):
        raise SuiteError([wrong("function", f"{name} must be a function, got {short(function)}")])
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return ()
    parameters = list(signature.parameters.values())
    open_ended = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    first = parameters[0].name if parameters and parameters[0].kind in by_position else ""
    usable = {p.name for p in parameters if p.kind not in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    taken = tuple(keyword for keyword in _KEYWORDS if keyword != first and (open_ended or keyword in usable))
    problem = f"its first parameter gets the prompt, but is named {first}" if first in _KEYWORDS else ""
    try:
        signature.bind("prompt", **dict.fromkeys(taken))
    except TypeError as error:
        problem = str(error)
    if problem:
        form = f"function(prompt, …) with any of {', '.join(_KEYWORDS)}"
        raise SuiteError([wrong("function", f"{name} must be callable as {form}: {problem}")])
    return taken
