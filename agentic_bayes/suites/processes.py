"""Run a command for a suite: limit its time and its output, and end everything that it started."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import anyio
import anyio.abc
from pydantic import BeforeValidator

from agentic_bayes.errors import HookFailed
from agentic_bayes.records.base import short
from agentic_bayes.suites.declaration import Hooks

_HOOK_SECONDS = 60.0
_KEPT_ERRORS = 65_536  # bytes of standard error that are kept: its end
_LONGEST_LINE = 300
_POLL_SECONDS = 0.05
_DRAIN_SECONDS = 1.0  # to read what a command left in its pipes when it ended
_BROKEN_PIPES = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError)


def _command(value: object) -> object:
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("must not be blank")
        return value
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError("must be text for the shell, or a list of a program and its arguments")
    for argument in value:
        if isinstance(argument, bool) or not isinstance(argument, (str, int, float)):
            raise ValueError("must be a list of text")
    if not str(value[0]).strip():
        raise ValueError("must name a program")
    return tuple(str(argument) for argument in value)


# a line for the shell, or a program with its arguments
ShellCommand = Annotated[str | tuple[str, ...], BeforeValidator(_command)]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended."""

    status: int  # its exit code; the negative signal number if a signal ended it
    output: bytes  # its standard output: up to one byte more than the limit
    errors: str  # the end of its standard error
    timed_out: bool = False  # whether it was killed because its time was up


async def run_command(
    command: str | Sequence[str],
    standard_input: bytes,
    *,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    limit: int | None = None,
    timeout: float | None = None,
) -> CommandResult:
    """Run a command until it ends, writes more than `limit` bytes or takes too long; then kill its process group."""
    start = anyio.open_process(
        command if isinstance(command, str) else list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL if limit is None else subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    process = await _started(asyncio.ensure_future(start))
    output, errors = bytearray(), bytearray()

    async def write_input() -> None:
        assert process.stdin is not None
        try:
            await process.stdin.send(standard_input)
            await process.stdin.aclose()
        except _BROKEN_PIPES:
            pass  # a command need not read its input

    async def read_output() -> None:
        if process.stdout is None or limit is None:
            return
        async for piece in process.stdout:
            output.extend(piece[: limit + 1 - len(output)])
            if len(output) > limit:
                _kill(process)

    async def read_errors() -> None:
        assert process.stderr is not None
        async for piece in process.stderr:
            errors.extend(piece)
            del errors[:-_KEPT_ERRORS]

    timed_out = False
    try:
        async with anyio.create_task_group() as group:
            for task in (write_input, read_output, read_errors):
                group.start_soon(task)
            end = None if timeout is None else anyio.current_time() + timeout
            # poll, because wait() may also wait for the pipes, which a background process can hold open
            while process.returncode is None:
                with anyio.move_on_after(_POLL_SECONDS):
                    await process.wait()
                if process.returncode is None and end is not None and anyio.current_time() >= end:
                    timed_out = True
                    _kill(process)
            status = process.returncode
            _kill(process)  # processes that it left behind would hold the pipes open
            group.cancel_scope.deadline = anyio.current_time() + _DRAIN_SECONDS
    finally:
        _kill(process)
        with anyio.CancelScope(shield=True):
            await process.aclose()
    return CommandResult(status, bytes(output), errors.decode("utf-8", "replace"), timed_out)


async def run_hook(hooks: Hooks, name: str, event: Mapping[str, Any], folder: Path) -> None:
    """Run one hook if the suite declares it; a hook that fails is a warning and does not stop the run.

    Background processes end with their hook, unless they have left its process group (``setsid``).
    """
    command = getattr(hooks, name)
    if command is None:
        return
    event_json = json.dumps({"event": name, **event}).encode()
    try:
        ended = await run_command(command, event_json, folder=folder, timeout=_HOOK_SECONDS)
    except OSError as error:
        problem = str(error)
    else:
        problem = f"ended with {ended.status}{last_line(ended.errors)}" if ended.status else ""
        problem = f"took longer than {_HOOK_SECONDS:g} s" if ended.timed_out else problem
    if problem:
        warnings.warn(HookFailed(f"hook {name}: {problem}"), stacklevel=2)


async def _started(starting: asyncio.Future[anyio.abc.Process]) -> anyio.abc.Process:
    """Wait until a process has started, even if cancelled: half started, it would be left running."""
    with anyio.CancelScope(shield=True):
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            process = await starting
            _kill(process)
            await process.aclose()
            raise
    return starting.result()


def _kill(process: anyio.abc.Process) -> None:
    """Kill the command and its process group."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass  # all of them have ended


def which(program: str, folder: Path, environment: Mapping[str, str]) -> str | None:
    """The path of a program: a name with a slash is relative to the folder, any other is looked up on PATH."""
    if os.path.dirname(program):
        return shutil.which(folder / program)
    return shutil.which(program, path=environment.get("PATH"))


def check_environment(variables: dict[str, str]) -> dict[str, str]:
    """Refuse environment variables that the operating system cannot hold."""
    for name, value in variables.items():
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"must be names and texts that the system allows; {short(name)} is not")
    return variables


def signal_name(number: int) -> str:
    """The name of a signal, for example SIGKILL."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def last_line(errors: str) -> str:
    """The last line of standard error after a colon; empty if there is none."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    if not lines:
        return ""
    line = lines[-1]
    return f": {line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 1] + '…'}"
