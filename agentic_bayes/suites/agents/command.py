"""Agents that are commands: a trial as JSON on standard input, the reply on standard output."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import anyio
import anyio.abc
from pydantic import AfterValidator, BeforeValidator, Field

from agentic_bayes.errors import AgentError, SuiteError
from agentic_bayes.records.base import Record, short
from agentic_bayes.suites.agents.declared import MOST_OUTPUT, Bytes, Texts, digest, identity, wrong
from agentic_bayes.suites.agents.reply import KEYS, Messages, Turn, converse, told, turn_of
from agentic_bayes.suites.trial import Attempt, Reply

__all__ = ["CommandAgent", "CommandSettings", "last_line", "run_command"]

_MOST_ERRORS = 65_536  # bytes of standard error that are kept, its last ones
_SETTING = re.compile(r"[A-Za-z_]\w*=")
_OBJECT = re.compile(r'\s*\{\s*"')
_LOOKING_SECONDS = 0.05
_DRAINING_SECONDS = 1.0  # for what a command leaves in its pipes when it ends
_BROKEN = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError)


def _command(value: object) -> object:
    """A line for the shell, or a program with its arguments."""
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("must not be blank")
        return value
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError("must be text for the shell, or a list of a program and its arguments")
    for part in value:
        if isinstance(part, bool) or not isinstance(part, (str, int, float)):
            raise ValueError("must be a list of text")
    if not str(value[0]).strip():
        raise ValueError("must name a program")
    return tuple(str(part) for part in value)


def _variables(value: dict[str, str]) -> dict[str, str]:
    for name, content in value.items():
        if not name or "=" in name or "\0" in name + content:
            raise ValueError(f"must be names and texts that the system allows; {short(name)} is not")
    return value


class CommandSettings(Record):
    """Declaration of an agent of type command."""

    # text for the shell, or a program with its arguments
    command: Annotated[str | tuple[str, ...], BeforeValidator(_command)]
    # variables beside those of the process
    env: Annotated[Texts, AfterValidator(_variables)] = Field(default_factory=dict)
    max_output: Bytes = MOST_OUTPUT  # bytes of standard output at most


class CommandAgent:
    """Runs a command in the suite's folder, once per message.

    It is told ``{prompt, messages, system, task_id, trial, seed, params}`` and replies with an object such as
    ``{answer, tool_calls, usage}``, or with plain text. Nothing that it starts outlives it.
    """

    def __init__(self, settings: CommandSettings, folder: Path, environment: Mapping[str, str]) -> None:
        self._settings, self._folder = settings, folder
        self._environment = {**environment, **settings.env}
        command = settings.command
        if not isinstance(command, str) and _program(command[0], folder, self._environment) is None:
            raise SuiteError([wrong("command", f"there is no program {command[0]!r} in {folder}, nor on PATH")])

    @property
    def identity(self) -> str:
        """The program, and a hash of the whole command: its arguments may hold secrets."""
        command = self._settings.command
        words = command.split() if isinstance(command, str) else list(command)
        program = next((word for word in words if not _SETTING.match(word)), "")
        return identity("command", program=Path(program).name, command=digest(command))

    async def attempt(self, attempt: Attempt) -> Reply:
        """Run the command."""

        async def say(prompt: str, messages: Messages) -> Turn:
            return _turn(await self._run(json.dumps(told(attempt, prompt, messages)).encode()), prompt)

        return await converse(attempt, say)

    async def _run(self, given: bytes) -> bytes:
        """What the command writes; raises if it fails, or writes too much."""
        limit = self._settings.max_output
        status, written, errors = await run_command(
            self._settings.command, given, folder=self._folder, environment=self._environment, limit=limit
        )
        if len(written) > limit:
            raise AgentError(f"the command wrote more than {limit:,} bytes (max_output)")
        if status:
            raise AgentError(f"the command {_ending(status)}{last_line(errors)}")
        return written


async def run_command(
    command: str | Sequence[str],
    given: bytes,
    *,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> tuple[int, bytes, bytes]:
    """Run a command until it ends, and end everything that it started and that is still in its process group."""
    with anyio.CancelScope(shield=True):  # stopped while it begins, it would run on, and be waited for
        process = await anyio.open_process(
            command if isinstance(command, str) else list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL if limit is None else subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    written, errors = bytearray(), bytearray()

    async def feed() -> None:
        assert process.stdin is not None
        try:
            await process.stdin.send(given)
            await process.stdin.aclose()
        except _BROKEN:
            pass  # a command need not read what it is told

    async def listen() -> None:
        if process.stdout is None or limit is None:
            return
        async for piece in process.stdout:
            written.extend(piece[: limit + 1 - len(written)])
            if len(written) > limit:
                _kill(process)

    async def listen_to_errors() -> None:
        assert process.stderr is not None
        async for piece in process.stderr:
            errors.extend(piece)
            del errors[:-_MOST_ERRORS]

    try:
        async with anyio.create_task_group() as group:
            for task in (feed, listen, listen_to_errors):
                group.start_soon(task)
            # wait() may also wait for the pipes, which something in the background may hold: the end is looked for, too
            while process.returncode is None:
                with anyio.move_on_after(_LOOKING_SECONDS):
                    await process.wait()
            status = process.returncode
            _kill(process)  # what it left behind would hold the pipes open
            group.cancel_scope.deadline = anyio.current_time() + _DRAINING_SECONDS
    finally:
        _kill(process)
        with anyio.CancelScope(shield=True):
            await process.aclose()
    return status, bytes(written), bytes(errors)


def _turn(written: bytes, prompt: str) -> Turn:
    try:
        text = written.decode()
    except UnicodeDecodeError as error:
        raise AgentError(f"the command must write UTF-8, got {short(written)}: {error.reason}") from error
    found: Any = None
    if text.lstrip().startswith("{"):
        try:
            found, end = json.JSONDecoder().raw_decode(text.strip())
            found = found if end == len(text.strip()) else None  # several values are an answer as they are
        except (ValueError, RecursionError) as error:
            if _OBJECT.match(text):
                raise AgentError(f"the command wrote JSON that is broken ({error}): {short(text)}") from None
    # an answer may be JSON itself
    if isinstance(found, dict) and found and ("answer" in found or found.keys() <= set(KEYS)):
        return turn_of(found, prompt=prompt)
    return turn_of(text.rstrip("\r\n"), prompt=prompt)


def _program(name: str, folder: Path, environment: Mapping[str, str]) -> str | None:
    if os.path.dirname(name):
        return shutil.which(folder / name)
    return shutil.which(name, path=environment.get("PATH"))


def _kill(process: anyio.abc.Process) -> None:
    """End the command and everything that it started."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass  # nothing of it is left


def _ending(status: int) -> str:
    if status > 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def last_line(errors: bytes) -> str:
    """The last line of standard error, after a colon; empty if there is none."""
    lines = [line.strip() for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    return f": {_short_line(lines[-1])}" if lines else ""


def _short_line(line: str, limit: int = 300) -> str:
    """A line of at most so many characters."""
    return line if len(line) <= limit else line[: limit - 1] + "…"
