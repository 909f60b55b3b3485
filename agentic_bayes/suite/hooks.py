"""Shell commands that are told what happens in a run."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentic_bayes.errors import HookFailed
from agentic_bayes.suite.config import Hooks

__all__ = ["run_hook"]

_SECONDS = 60.0


async def run_hook(hooks: Hooks, name: str, event: Mapping[str, Any], folder: Path) -> None:
    """Run one hook, if it is declared; what goes wrong is a warning and stops nothing.

    Parameters
    ----------
    hooks : Hooks
        As declared.
    name : str
        Which, such as ``before_run``.
    event : mapping
        Told on standard input, as JSON.
    folder : Path
        Where the command runs.

    Warns
    -----
    HookFailed
        If it cannot be run, fails, or takes longer than a minute.
    """
    command = getattr(hooks, name)
    if command is None:
        return
    problem = await _problem(command, json.dumps({"event": name, **event}), folder)
    if problem:
        warnings.warn(HookFailed(f"hook {name}: {problem}"), stacklevel=2)


async def _problem(command: str, text: str, folder: Path) -> str | None:
    try:
        process = await asyncio.create_subprocess_shell(
            command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
            start_new_session=True,
        )
    except OSError as error:
        return str(error)
    try:
        async with asyncio.timeout(_SECONDS):
            _, said = await process.communicate(text.encode())
    except TimeoutError:
        return f"took longer than {_SECONDS:g} s"
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        last = said.decode(errors="replace").strip().splitlines()
        return f"ended with {process.returncode}" + (f": {last[-1]}" if last else "")
    return None
