"""Run a command as the agent: it reads a trial as JSON and writes its reply."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from agentic_bayes.errors import AgentError, SuiteError
from agentic_bayes.records.base import Record, short
from agentic_bayes.suites.agents.declared import MOST_OUTPUT, Bytes, TextMapping, digest, identity, wrong
from agentic_bayes.suites.agents.reply import KEYS, AgentTurn, ChatMessages, attempt_as_json, converse, turn_of
from agentic_bayes.suites.processes import ShellCommand, check_environment, last_line, run_command, signal_name, which
from agentic_bayes.suites.trial import AgentReply, TrialAttempt

_SETTING = re.compile(r"[A-Za-z_]\w*=")
_OBJECT = re.compile(r'\s*\{\s*"')


class CommandAgentSettings(Record):
    """Declaration of an agent of type command."""

    command: ShellCommand  # text for the shell, or a list of a program and its arguments; runs in the suite's folder
    # environment variables, added to those of this process
    env: Annotated[TextMapping, AfterValidator(check_environment)] = Field(default_factory=dict)
    max_output: Bytes = MOST_OUTPUT  # most bytes that it may write to standard output


class CommandAgent:
    """Runs a command in the suite's folder per message; it reads `attempt_as_json` and writes a reply or plain text."""

    def __init__(self, settings: CommandAgentSettings, folder: Path, environment: Mapping[str, str]) -> None:
        self._settings, self._folder = settings, folder
        self._environment = {**environment, **settings.env}
        command = settings.command
        if not isinstance(command, str) and which(command[0], folder, self._environment) is None:
            raise SuiteError([wrong("command", f"there is no program {command[0]!r} in {folder}, nor on PATH")])

    @property
    def identity(self) -> str:
        """The program, and a hash of the whole command, because its arguments may hold secrets."""
        command = self._settings.command
        words = command.split() if isinstance(command, str) else list(command)
        program = next((word for word in words if not _SETTING.match(word)), "")
        return identity("command", program=Path(program).name, command=digest(command))

    async def attempt(self, attempt: TrialAttempt) -> AgentReply:
        """Run the command, once per message."""

        async def say(prompt: str, messages: ChatMessages) -> AgentTurn:
            output = await self._run(json.dumps(attempt_as_json(attempt, prompt, messages)).encode())
            return _turn(output, prompt)

        return await converse(attempt, say)

    async def _run(self, standard_input: bytes) -> bytes:
        """The command's output; raises if it fails, or writes too much."""
        limit = self._settings.max_output
        ended = await run_command(
            self._settings.command, standard_input, folder=self._folder, environment=self._environment, limit=limit
        )
        if len(ended.output) > limit:
            raise AgentError(f"the command wrote more than {limit:,} bytes (max_output)")
        if status := ended.status:
            how = f"ended with status {status}" if status > 0 else f"was ended by {signal_name(-status)}"
            raise AgentError(f"the command {how}{last_line(ended.errors)}")
        return ended.output


def _turn(output: bytes, prompt: str) -> AgentTurn:
    try:
        text = output.decode()
    except UnicodeDecodeError as error:
        raise AgentError(f"the command must write UTF-8, got {short(output)}: {error.reason}") from error
    value: Any = None
    if text.lstrip().startswith("{"):
        try:
            value, end = json.JSONDecoder().raw_decode(text.strip())
            value = value if end == len(text.strip()) else None  # several values are a plain answer
        except (ValueError, RecursionError) as error:
            if _OBJECT.match(text):
                raise AgentError(f"the command wrote JSON that is broken ({error}): {short(text)}") from None
    # an answer may itself be JSON
    if isinstance(value, dict) and value and ("answer" in value or value.keys() <= set(KEYS)):
        return turn_of(value, prompt=prompt)
    return turn_of(text.rstrip("\r\n"), prompt=prompt)
