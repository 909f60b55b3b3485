"""Run the shell commands that a suite declares for events of a run."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentic_bayes.errors import HookFailed
from agentic_bayes.suites.declaration import Hooks
from agentic_bayes.suites.processes import last_line, run_command

_SECONDS = 60.0


async def run_hook(hooks: Hooks, name: str, event: Mapping[str, Any], folder: Path) -> None:
    """Run one hook if the suite declares it; a hook that fails is a warning and does not stop the run.

    Background processes end with their hook, unless they have left its process group (``setsid``).
    """
    command = getattr(hooks, name)
    if command is None:
        return
    event_json = json.dumps({"event": name, **event}).encode()
    try:
        ended = await run_command(command, event_json, folder=folder, timeout=_SECONDS)
    except OSError as error:
        problem = str(error)
    else:
        problem = f"ended with {ended.status}{last_line(ended.errors)}" if ended.status else ""
        problem = f"took longer than {_SECONDS:g} s" if ended.timed_out else problem
    if problem:
        warnings.warn(HookFailed(f"hook {name}: {problem}"), stacklevel=2)
