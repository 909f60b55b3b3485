"""Run a command for a suite: limit its time and its output, and end everything it started.

On Linux every command runs under a small process of its own, `supervisor`, which ends whatever the command left behind,
wherever it hides. Elsewhere only the command's process group ends with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import anyio
import anyio.abc
from pydantic import BeforeValidator

from agentic_bayes.errors import AgenticBayesWarning, HookFailed
from agentic_bayes.formatting import cut_text
from agentic_bayes.records.base import short
from agentic_bayes.redaction import Secrets
from agentic_bayes.suites import supervisor
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
    """Run a command until it ends, writes more than `limit` bytes or takes too long; then end all that it started."""
    with contextlib.closing(_RunningCommand(command)) as run:
        start = anyio.open_process(
            run.arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL if limit is None else subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment,
            start_new_session=True,
            pass_fds=run.passed,
        )
        process = await _started(asyncio.ensure_future(start), run)
        ended = await _communicated(process, run, standard_input, limit, timeout)
        return replace(ended, status=run.status(ended.status))


async def _communicated(
    process: anyio.abc.Process, run: _RunningCommand, standard_input: bytes, limit: int | None, timeout: float | None
) -> CommandResult:
    """Talk to a process until it ends, and end it if it goes beyond a limit."""
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
                run.end(process)

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
                    run.end(process)
            returned = process.returncode
            run.end(process)  # processes that it left behind would hold the pipes open
            group.cancel_scope.deadline = anyio.current_time() + _DRAIN_SECONDS
    finally:
        run.end(process)
        with anyio.CancelScope(shield=True):
            await process.aclose()
    return CommandResult(returned, bytes(output), errors.decode("utf-8", "replace"), timed_out)


class HookRunner:
    """Runs the hooks of a suite; a hook that fails stops nothing and is one warning, however often it fails."""

    def __init__(self, hooks: Hooks, folder: Path, secrets: Secrets) -> None:
        self._hooks, self._folder, self._secrets = hooks, folder, secrets
        self._failed: set[str] = set()

    async def run(self, name: str, **event: Any) -> None:
        """Run one hook if the suite declares it; it gets the event as JSON on standard input."""
        command = getattr(self._hooks, name)
        if command is None:
            return
        event_json = json.dumps({"event": name, **event}).encode()
        try:
            ended = await run_command(command, event_json, folder=self._folder, timeout=_HOOK_SECONDS)
        except OSError as error:
            problem = str(error)
        else:
            problem = f"ended with {ended.status}{last_line(ended.errors)}" if ended.status else ""
            problem = f"took longer than {_HOOK_SECONDS:g} s" if ended.timed_out else problem
        if problem and name not in self._failed:
            self._failed.add(name)
            warnings.warn(HookFailed(self._secrets.in_text(f"hook {name}: {problem}")), stacklevel=2)


@functools.cache
def _can_supervise() -> bool:
    """Whether commands run under a supervisor here; a warning says so once where they cannot."""
    if sys.platform == "linux" and sys.executable and os.path.isdir("/proc/self"):
        return True
    text = "processes that leave their command's process group (setsid) outlive it: only Linux lets us end them"
    warnings.warn(AgenticBayesWarning(text), stacklevel=4)
    return False


class _RunningCommand:
    """How one command is started and ended."""

    def __init__(self, command: str | Sequence[str]) -> None:
        self.arguments: str | list[str] = command if isinstance(command, str) else list(command)
        self._sockets: tuple[socket.socket, ...] = ()
        if _can_supervise():
            shell = ["/bin/sh", "-c", command] if isinstance(command, str) else self.arguments
            self._sockets = socket.socketpair()
            program = [sys.executable, "-I", "-S", supervisor.__file__, str(self._sockets[1].fileno())]
            self.arguments = [*program, *shell]

    @property
    def passed(self) -> tuple[int, ...]:
        """The file descriptors that the process gets besides its standard ones."""
        return tuple(end.fileno() for end in self._sockets[1:])

    def begun(self) -> None:
        """The supervisor has its end of the socket: ours must be the last."""
        for end in self._sockets[1:]:
            end.close()

    def status(self, returned: int) -> int:
        """How the command ended, as its supervisor says if it has one; raises if the command could not be started."""
        try:
            self._sockets[0].setblocking(False)
            what, number = self._sockets[0].recv(64).decode().split()
        except (IndexError, OSError, ValueError):
            return returned
        if what == "refused":
            raise OSError(int(number), os.strerror(int(number)), self.arguments[5])
        return int(number)

    def end(self, process: anyio.abc.Process) -> None:
        """Kill the command and everything that it started."""
        if self._sockets:
            with contextlib.suppress(OSError):
                self._sockets[0].shutdown(socket.SHUT_WR)  # the supervisor still says how the command ended
            return
        try:
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        except (ProcessLookupError, PermissionError):
            pass  # all of them have ended

    def close(self) -> None:
        """Close what is left; a supervisor that still runs takes it as the end."""
        for end in self._sockets:
            end.close()


async def _started(starting: asyncio.Future[anyio.abc.Process], run: _RunningCommand) -> anyio.abc.Process:
    """Wait until a process has started, even if cancelled: half started, it would be left running."""
    with anyio.CancelScope(shield=True):
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            process = await starting
            run.begun()
            run.end(process)
            await process.aclose()
            raise
    run.begun()
    return starting.result()


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
    lines = list(filter(None, map(str.strip, errors.splitlines())))
    return f": {cut_text(lines[-1], _LONGEST_LINE)}" if lines else ""
