"""The grader that runs a command: the trial as JSON on its standard input, a verdict or an exit code back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import anyio
from pydantic import AfterValidator, BeforeValidator, Field

from agentic_bayes.evidence.score import Grade, Unscored
from agentic_bayes.records.base import Record, short
from agentic_bayes.records.wire.strict_json import strict_json
from agentic_bayes.suites.config import Seconds
from agentic_bayes.suites.rules import Place, graded
from agentic_bayes.suites.trial import Attempt, Reply, Task

__all__ = ["Command", "CommandSettings"]

_KEPT = 4096  # bytes of the end of standard error
_QUOTED = 300
_CHUNK = 65_536
_LOOKING_SECONDS = 0.05
_DRAINING_SECONDS = 1.0  # for what a command leaves in its pipes when it ends


def _command(value: Any) -> Any:
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, (list, tuple)) and value and all(isinstance(part, str) for part in value) and value[0].strip():
        return tuple(value)
    raise ValueError("must be text for the shell, or a list of a program and its arguments, all texts")


def _environment(value: Any) -> Any:
    if not isinstance(value, dict):
        raise ValueError("must be an object of texts")
    for name, content in value.items():
        if not isinstance(content, str) or not name or "=" in name or "\0" in name + content:
            raise ValueError(f"must be an object of texts (numbers in quotes); wrong is {short(name)}")
    return value


def _positive(value: float) -> float:
    if value <= 0:
        raise ValueError("must be more than 0 seconds")
    return value


def _bytes(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("must be a whole number of bytes ≥ 1")
    return value


class CommandSettings(Record):
    """How a command is run."""

    # Text is given to the shell; of a list, the first item is the program. It runs in the suite's folder.
    command: Annotated[str | tuple[str, ...], BeforeValidator(_command)]
    # seconds, or text such as "90s", after which it is killed with everything that it started
    timeout: Annotated[Seconds, AfterValidator(_positive)] = Field(default=30.0)
    max_output: Annotated[int, BeforeValidator(_bytes)] = 1 << 20  # bytes that it may write to its standard output
    # variables that it is given beside those of this process
    env: Annotated[dict[str, str], BeforeValidator(_environment)] = Field(default_factory=dict)

    def missing_program(self, folder: Path) -> str | None:
        """What is wrong with the program of a list, without running it."""
        if isinstance(self.command, str):
            return None
        program = self.command[0]
        where = str(folder / program) if os.sep in program else program
        if shutil.which(where, path=self.env.get("PATH")) is None:
            return f"command: there is no program {short(program)} that can be run"
        return None


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a command ended: its exit code (negative: the signal that ended it), output, and the end of its errors."""

    code: int
    output: bytes
    errors: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """Grades by a command.

    Notes
    -----
    The command reads one JSON object: ``task_id, trial, messages, agent_output`` (the last answer), ``answers``,
    ``tool_calls``, ``expected``. If its output (or the last line of it) is a JSON object, that is the verdict:
    ``{"score": number in [0, 1], "pass": bool, "reason": str}`` with at least one of the first two; without ``pass``,
    the score is held against ``pass_threshold``. Else its exit code is: 0 passes, 1 fails. Everything else says
    nothing of the agent and is `Unscored`: another code, a signal, a time-out, too much output, a verdict that cannot
    be read, a Python traceback (but of an ``AssertionError``).
    """

    settings: CommandSettings  # what is run
    place: Place  # where

    def check(self, task: Task) -> str | None:
        """Nothing of a task is needed."""
        return None

    async def grade(self, attempt: Attempt, reply: Reply) -> Grade:
        """What the command says of a trial."""
        task = attempt.task
        told = {
            "task_id": task.id,
            "trial": attempt.trial,
            "messages": list(task.messages),
            "agent_output": reply.text,
            "answers": list(reply.answers),
            "tool_calls": [None if calls is None else [dict(call) for call in calls] for calls in reply.tool_calls],
            "expected": dict(task.expected),
        }
        try:
            ended = await self._run(json.dumps(told).encode())
        except OSError as error:
            return Unscored(f"the command could not be started: {error}")
        if ended.problem:
            return Unscored(ended.problem + _said(ended.errors))
        if ended.code < 0:
            return Unscored(f"the command was ended by {_signal(-ended.code)}{_said(ended.errors)}")
        return self._verdict(ended)

    def _verdict(self, ended: _Ended) -> Grade:
        text = ended.output.decode("utf-8", "replace").strip()
        lines = text.splitlines()
        for candidate in (text, lines[-1].strip() if len(lines) > 1 else ""):
            if candidate.startswith("{"):
                try:
                    found = strict_json(candidate, finite=False)
                except ValueError as error:
                    problem = f"the command's verdict cannot be read ({error}): {short(candidate, 120)}"
                    continue
                return self._read(found)
        if text.startswith("{"):
            return Unscored(problem)
        if ended.code not in (0, 1) or (ended.code == 1 and _crashed(ended.errors)):
            return Unscored(f"the command ended with exit code {ended.code}{_said(ended.errors)}")
        said = short(lines[-1].strip(), _QUOTED) if lines else f"exit code {ended.code}"
        return graded(1.0 - ended.code, ended.code == 0, said)

    def _read(self, found: Mapping[str, Any]) -> Grade:
        score, passed, reason = found.get("score"), found.get("pass"), found.get("reason")
        if score is None and passed is None:
            return Unscored(f"the command's verdict must have score or pass, got {short(dict(found), 120)}")
        number = isinstance(score, (int, float)) and not isinstance(score, bool)
        if score is not None and (not number or not 0 <= score <= 1):
            return Unscored(f"the command's score must be a number in [0, 1], got {short(score)}")
        if passed is not None and not isinstance(passed, bool):
            return Unscored(f"the command's pass must be true or false, got {short(passed)}")
        if reason is not None and not isinstance(reason, str):
            return Unscored(f"the command's reason must be text, got {short(reason)}")
        if score is None:
            return graded(float(bool(passed)), bool(passed), reason or "")
        reached = score >= self.place.pass_threshold
        return graded(float(score), reached if passed is None else passed, reason or "")

    async def _run(self, told: bytes) -> _Ended:
        settings = self.settings
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
        environment = {**os.environ, **settings.env}
        options: dict[str, Any] = {**pipes, "cwd": self.place.folder, "env": environment, "start_new_session": True}
        if isinstance(settings.command, str):
            process = await _begun(asyncio.create_subprocess_shell(settings.command, **options))
        else:
            process = await _begun(asyncio.create_subprocess_exec(*settings.command, **options))
        try:
            return await self._watched(process, told)
        except BaseException:
            _kill(process.pid)  # the run is stopped: nothing that was started here is left behind
            raise
        finally:
            transport = getattr(process, "_transport", None)
            if transport is not None:
                transport.close()  # a pipe that a process outside of the group took along would stay open
            with anyio.CancelScope(shield=True):
                await process.wait()

    async def _watched(self, process: asyncio.subprocess.Process, told: bytes) -> _Ended:
        """Feed and read a process until it ends, says too much, or its time is over."""
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        output, errors = bytearray(), bytearray()
        limit, deadline = self.settings.max_output, time.monotonic() + self.settings.timeout
        reading = asyncio.ensure_future(_read(process.stdout, output, limit))
        waiting = asyncio.ensure_future(process.wait())
        tasks: set[asyncio.Future[Any]] = {
            reading,
            waiting,
            asyncio.ensure_future(_feed(process.stdin, told)),
            asyncio.ensure_future(_read_end(process.stderr, errors)),
        }
        problem = ""
        try:
            # wait() also waits for its pipes, which something in the background may hold: the end is looked for, too
            while process.returncode is None and not problem:
                left = deadline - time.monotonic()
                pending = {task for task in (reading, waiting) if not task.done()}
                if left <= 0:
                    problem = f"the command was killed after {self.settings.timeout:g} s without an end"
                elif pending:
                    interval = min(left, _LOOKING_SECONDS)
                    await asyncio.wait(pending, timeout=interval, return_when=asyncio.FIRST_COMPLETED)
                if len(output) > limit:
                    problem = f"the command was killed after more than {limit:,} bytes of output"
            _kill(process.pid)
            await asyncio.wait(tasks, timeout=_DRAINING_SECONDS)
            if len(output) > limit and not problem:
                problem = f"the command gave more than {limit:,} bytes of output"
        finally:
            for task in tasks:
                task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.gather(*tasks, return_exceptions=True)
        code = -signal.SIGKILL if process.returncode is None else process.returncode
        return _Ended(code, bytes(output), errors.decode("utf-8", "replace"), problem)


async def _begun(begin: Coroutine[Any, Any, asyncio.subprocess.Process]) -> asyncio.subprocess.Process:
    """A process, once it is there; one that is stopped while it begins would run on, and be waited for."""
    beginning = asyncio.ensure_future(begin)
    try:
        return await asyncio.shield(beginning)
    except asyncio.CancelledError:
        process = await beginning
        _kill(process.pid)
        await process.wait()
        raise


async def _feed(stream: asyncio.StreamWriter, told: bytes) -> None:
    # a command need not read what it is told
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stream.write(told)
        await stream.drain()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stream.close()


async def _read(stream: asyncio.StreamReader, found: bytearray, limit: int) -> None:
    while len(found) <= limit and (chunk := await stream.read(_CHUNK)):
        found += chunk


async def _read_end(stream: asyncio.StreamReader, found: bytearray) -> None:
    while chunk := await stream.read(_CHUNK):
        found += chunk
        del found[:-_KEPT]


def _kill(group: int) -> None:
    """End a process that leads a group, and everything in it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _crashed(errors: str) -> bool:
    """Whether standard error ends in a Python traceback that is not a failed assertion."""
    lines = errors.strip().splitlines()
    if not any(line.startswith("Traceback (most recent call last)") for line in lines):
        return False
    named = [line for line in lines if line and not line[0].isspace() and not line.startswith("Traceback")]
    return not any(line.startswith("AssertionError") for line in named)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _said(errors: str) -> str:
    """The last line of standard error."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return f": {short(lines[-1], _QUOTED)}" if lines else ""
