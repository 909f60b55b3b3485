"""Grade a trial with a command: it reads the trial as JSON and answers with a verdict or an exit code."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from agentic_bayes.evidence.score import Grade, Unscored
from agentic_bayes.records.base import Record, is_share, is_whole, short
from agentic_bayes.records.wire.strict_json import strict_json
from agentic_bayes.suites import processes
from agentic_bayes.suites.declaration import Seconds
from agentic_bayes.suites.graders.rules import GraderContext, graded
from agentic_bayes.suites.trial import AgentReply, TrialAttempt

_LONGEST_REASON = 300


def _environment(value: Any) -> Any:
    if not isinstance(value, dict):
        raise ValueError("must be an object of texts")
    for name, content in value.items():
        if not isinstance(content, str):
            raise ValueError(f"must be an object of texts (numbers in quotes); wrong is {short(name)}")
    return processes.check_environment(value)


def _positive(value: float) -> float:
    if value <= 0:
        raise ValueError("must be more than 0 seconds")
    return value


def _bytes(value: Any) -> Any:
    if not is_whole(value) or value < 1:
        raise ValueError("must be a whole number of bytes ≥ 1")
    return value


class CommandGraderSettings(Record):
    """How a command is run."""

    # text for the shell, or a list of a program and its arguments; runs in the suite's folder
    command: processes.ShellCommand
    # seconds, or text like "90s", after which the command and all its processes are killed
    timeout: Annotated[Seconds, AfterValidator(_positive)] = Field(default=30.0)
    max_output: Annotated[int, BeforeValidator(_bytes)] = 1 << 20  # most bytes that it may write to standard output
    # environment variables, added to those of this process
    env: Annotated[dict[str, str], BeforeValidator(_environment)] = Field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """All variables that the command sees."""
        return {**os.environ, **self.env}

    def missing_program(self, folder: Path) -> str | None:
        """Say if the program of a list cannot be found; nothing is run."""
        if isinstance(self.command, str) or processes.which(self.command[0], folder, self.environment) is not None:
            return None
        return f"command: there is no program {short(self.command[0])} that can be run"


@dataclass(frozen=True, slots=True)
class CommandGrader:
    """Grades with a command.

    The command reads one JSON object: ``task_id, trial, messages, agent_output`` (the last answer), ``answers``,
    ``tool_calls``, ``expected``. If its output (or the last line of it) is a JSON object, that is the verdict:
    ``{"score": number in [0, 1], "pass": bool, "reason": str}`` with at least one of the first two; without ``pass``,
    the grader passes if the score reaches ``pass_threshold``. Otherwise the exit code decides: 0 passes, 1 fails.
    Everything else says nothing about the agent and is `Unscored`: another code, a signal, a time-out, too much output,
    a verdict that cannot be read, a Python traceback (except an ``AssertionError``).
    """

    settings: CommandGraderSettings
    context: GraderContext

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """Run the command on a trial."""
        task, settings = attempt.task, self.settings
        trial = {
            "task_id": task.id,
            "trial": attempt.trial,
            "messages": list(task.messages),
            "agent_output": reply.text,
            "answers": list(reply.answers),
            "tool_calls": [None if calls is None else [dict(call) for call in calls] for calls in reply.tool_calls],
            "expected": dict(task.expected),
        }
        try:
            ended = await processes.run_command(
                settings.command,
                json.dumps(trial).encode(),
                folder=self.context.folder,
                environment=settings.environment,
                limit=settings.max_output,
                timeout=settings.timeout,
            )
        except OSError as error:
            return Unscored(f"the command could not be started: {error}")
        if ended.timed_out:
            problem = f"the command was killed after {settings.timeout:g} s without an end"
        elif len(ended.output) > settings.max_output:
            problem = f"the command wrote more than {settings.max_output:,} bytes (max_output)"
        elif ended.status < 0:
            problem = f"the command was ended by {processes.signal_name(-ended.status)}"
        else:
            return self._verdict(ended)
        return Unscored(problem + processes.last_line(ended.errors))

    def _verdict(self, ended: processes.CommandResult) -> Grade:
        text = ended.output.decode("utf-8", "replace").strip()
        lines = text.splitlines()
        for candidate in (text, lines[-1].strip() if len(lines) > 1 else ""):
            if candidate.startswith("{"):
                try:
                    verdict = strict_json(candidate, finite=False)
                except ValueError as error:
                    problem = f"the command's verdict cannot be read ({error}): {short(candidate, 120)}"
                    continue
                return self._graded(verdict)
        if text.startswith("{"):
            return Unscored(problem)
        if ended.status not in (0, 1) or (ended.status == 1 and _crashed(ended.errors)):
            return Unscored(f"the command ended with exit code {ended.status}{processes.last_line(ended.errors)}")
        reason = short(lines[-1].strip(), _LONGEST_REASON) if lines else f"exit code {ended.status}"
        return graded(1.0 - ended.status, ended.status == 0, reason)

    def _graded(self, verdict: Mapping[str, Any]) -> Grade:
        score, passed, reason = verdict.get("score"), verdict.get("pass"), verdict.get("reason")
        if score is None and passed is None:
            return Unscored(f"the command's verdict must have score or pass, got {short(dict(verdict), 120)}")
        if score is not None and not is_share(score):
            return Unscored(f"the command's score must be a number in [0, 1], got {short(score)}")
        if passed is not None and not isinstance(passed, bool):
            return Unscored(f"the command's pass must be true or false, got {short(passed)}")
        if reason is not None and not isinstance(reason, str):
            return Unscored(f"the command's reason must be text, got {short(reason)}")
        if score is None:
            return graded(float(bool(passed)), bool(passed), reason or "")
        reached = score >= self.context.pass_threshold
        return graded(float(score), reached if passed is None else passed, reason or "")


def _crashed(errors: str) -> bool:
    """Whether standard error holds a Python traceback that is not a failed assertion."""
    lines = errors.strip().splitlines()
    if not any(line.startswith("Traceback (most recent call last)") for line in lines):
        return False
    errors_named = [line for line in lines if line and not line[0].isspace() and not line.startswith("Traceback")]
    return not any(line.startswith("AssertionError") for line in errors_named)
