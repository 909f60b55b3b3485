"""Agents that are Python functions, synchronous or not."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import copy
import inspect
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentic_bayes.errors import AgentError, SuiteError
from agentic_bayes.records.base import Record, short
from agentic_bayes.suite.agents_declared import identity, wrong
from agentic_bayes.suite.agents_import import ImportPath, load_object
from agentic_bayes.suite.agents_reply import Messages, Turn, converse, told, turn_of
from agentic_bayes.suite.trial import Attempt, Reply

__all__ = ["PythonAgent", "PythonSettings"]

_KEYWORDS = ("messages", "task_id", "trial", "seed", "params")


class PythonSettings(Record):
    """Declaration of an agent of type python.

    Attributes
    ----------
    function : str
        ``module:name``, in the suite's folder or on PYTHONPATH.
    """

    function: ImportPath


class PythonAgent:
    """Calls ``function(prompt, **kw)`` with those of ``messages, task_id, trial, seed, params`` that it takes.

    ``messages`` is the dialogue that ends with the prompt. A synchronous function runs in a thread of its own, which is
    left behind when its time is up.
    """

    def __init__(self, settings: PythonSettings, folder: Path) -> None:
        self._settings = settings
        self._function = load_object(settings.function, folder=folder, field="function")
        self._keywords = _keywords_of(self._function, settings.function)

    @property
    def identity(self) -> str:
        """The function's name."""
        return identity("python", function=self._settings.function)

    async def attempt(self, attempt: Attempt) -> Reply:
        """Call the function, once per message."""

        async def say(prompt: str, messages: Messages) -> Turn:
            known = told(attempt, prompt, messages)
            # a function may change what it is given
            given = copy.deepcopy({name: known[name] for name in self._keywords})
            return turn_of(await _called(self._function, prompt, given), prompt=prompt)

        return await converse(attempt, say)


async def _called(function: Callable[..., Any], prompt: str, given: dict[str, Any]) -> Any:
    task = asyncio.current_task()
    try:
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
            return await function(prompt, **given)
        found = await _in_thread(lambda: function(prompt, **given))
        return await found if inspect.isawaitable(found) else found
    except SystemExit as error:
        raise AgentError(f"the function ended the program: sys.exit({error.code!r})") from error
    except asyncio.CancelledError as error:
        if task is None or task.cancelling():
            raise
        raise AgentError("the function raised CancelledError, and nobody had cancelled it") from error


async def _in_thread(call: Callable[[], Any]) -> Any:
    """What the call gives, in a thread of its own.

    The threads of a pool are waited for at the end of the program: one function that hangs would keep it from ending.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def tell(value: Any, error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result((value, error))

    def run() -> None:
        value, error = None, None
        try:
            value = context.run(call)
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the run has ended, and nobody waits any more
            loop.call_soon_threadsafe(tell, value, error)

    threading.Thread(target=run, name="agent", daemon=True).start()
    value, error = await ended
    if error is not None:
        raise error
    return value


def _keywords_of(function: object, name: str) -> tuple[str, ...]:
    """Those of the keywords that the function takes.

    Raises
    ------
    SuiteError
        If it cannot be called as agents are.
    """
    if not callable(function):
        raise SuiteError([wrong("function", f"{name} must be a function, got {short(function)}")])
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C do not say
        return ()
    parameters = list(signature.parameters.values())
    open_ended = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    first = parameters[0].name if parameters and parameters[0].kind in by_position else ""
    usable = {p.name for p in parameters if p.kind not in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    taken = tuple(keyword for keyword in _KEYWORDS if keyword != first and (open_ended or keyword in usable))
    problem = f"its first parameter is given the prompt, and is named {first}" if first in _KEYWORDS else ""
    try:
        signature.bind("prompt", **dict.fromkeys(taken))
    except TypeError as error:
        problem = str(error)
    if problem:
        form = f"function(prompt, …) with any of {', '.join(_KEYWORDS)}"
        raise SuiteError([wrong("function", f"{name} must be callable as {form}: {problem}")])
    return taken
