"""Shell commands that are told what happens in a run."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from agentic_bayes.errors import HookFailed
from agentic_bayes.suites.agents.command import last_line, run_command
from agentic_bayes.suites.config import Hooks

__all__ = ["run_hook"]

_SECONDS = 60.0


async def run_hook(hooks: Hooks, name: str, event: Mapping[str, Any], folder: Path) -> None:
    """Run one hook, if it is declared; what goes wrong is a warning and stops nothing.

    What a hook leaves running in the background ends with it, unless it has left its process group (``setsid``).
    """
    command = getattr(hooks, name)
    if command is None:
        return
    problem = await _problem(command, json.dumps({"event": name, **event}), folder)
    if problem:
        warnings.warn(HookFailed(f"hook {name}: {problem}"), stacklevel=2)


async def _problem(command: str, text: str, folder: Path) -> str | None:
    try:
        with anyio.fail_after(_SECONDS):
            status, _, said = await run_command(command, text.encode(), folder=folder)
    except TimeoutError:
        return f"took longer than {_SECONDS:g} s"
    except OSError as error:
        return str(error)
    return f"ended with {status}{last_line(said)}" if status else None
