"""Read trajectories of SWE-agent (``.traj``) and mini-SWE-agent (``.traj.json``).

A trajectory is a conversation of one interaction: the task is the file's name, the commands are the calls, and the
answer is what was submitted. A run that ended without a submission has no answer, and says how it ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from typing import Any

from agentic_bayes.records.agents import with_model
from agentic_bayes.records.formats.sessions.session_log import SessionLog
from agentic_bayes.records.wire.chat import ChatCall, Message, chat_call
from agentic_bayes.records.wire.content.parts import content_text
from agentic_bayes.records.wire.fields import Fields
from agentic_bayes.records.wire.json_text import Parsed
from agentic_bayes.records.wire.layout import Origin, Shape, documents
from agentic_bayes.records.wire.strict_json import strict_json

NAME = "swe-agent"

SUFFIX = ".traj"
"""How the names of SWE-agent's files end."""

# how runs end that say nothing about the agent
_NOT_THE_AGENT = ("exit_environment_error", "exit_api", "exit_error", "skipped")
_EXITS = frozenset(f"exit_{why}" for why in ("cost", "context", "format", "error", "api", "environment_error"))
_COMMAND = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL)
_WORD = re.compile(r"\s*([A-Za-z_][\w-]*)")
_SHELL = "bash"


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    info = shape.values.get("info")
    mini = isinstance(info, dict) and {"model_stats", "exit_status"} <= info.keys()
    mini = mini or str(shape.values.get("trajectory_format")).startswith("mini-swe-agent")
    return {"trajectory", "history"} <= shape.keys or mini


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The trajectories of a file."""
    for line in documents(stream):
        session = SessionLog(NAME, origin)
        value = session.line(line)
        if value is not None:
            _take(Fields(value, (), session.faults), session)
        yield from session.finish()


def _take(run: Fields, session: SessionLog) -> None:
    info = run.mapping("info")
    path = Path(session.origin.name)
    stem = path.name.removesuffix(".gz").removesuffix(".json").removesuffix(SUFFIX)
    run_folder = path.parent.parent if path.parent.name == stem else path.parent
    session.session = "/".join(filter(None, (run_folder.name, stem)))  # the same task may have run again
    session.task = run.name("instance_id") or stem
    session.raw.append({key: one for key, one in run.value.items() if key not in ("trajectory", "history", "messages")})
    stats = info.mapping("model_stats")
    tokens = {"input": stats.whole("tokens_sent"), "output": stats.whole("tokens_received")}
    session.about |= {
        "exit_status": info.text("exit_status"),
        "environment": run.name("environment"),
        "version": info.name("swe_agent_version") or info.name("mini_version"),
        "cost": stats.number("instance_cost"),
        "tokens": {side: number for side, number in tokens.items() if number is not None},
    }
    session.log.model = _model(run, info)
    if "messages" in run and "trajectory" not in run:
        _take_messages(run, session)
    else:
        _take_steps(run, session)
    if session.log.model:
        session.agent = with_model(NAME if "trajectory" in run else "mini-swe-agent", session.log.model)
    _take_end(info, session)


def _model(run: Fields, info: Fields) -> str | None:
    """The model: in the configuration of the run, which SWE-agent stores as text."""
    config: Any = run.raw("replay_config")
    if isinstance(config, str):
        try:
            config = strict_json(config, finite=False)
        except ValueError:
            config = None
    model: Any = config
    for key in ("agent", "model", "name"):
        model = model.get(key) if isinstance(model, dict) else None
    mini = info.mapping("config").mapping("model").raw("model_name")
    return next((one for one in (model, mini) if isinstance(one, str) and one.strip()), None)


def _take_steps(run: Fields, session: SessionLog) -> None:
    """Add the steps of SWE-agent; its history tells what was asked, and which calls an action was."""
    history = run.mappings("history")
    called: list[Fields] = []
    asked = False
    for message in history:
        role = message.text("role", required=True)
        if message.raw("is_demo") not in (None, False):
            session.other("demonstration")
        elif role == "system":
            session.add(Message("system", content_text(message, "content")), message.path)
        elif role == "user" and not asked:
            asked = True
            session.add(Message("user", content_text(message, "content")), message.path)
        elif role == "assistant":
            called.append(message)
    steps = run.mappings("trajectory", required=True)
    if len(called) != len(steps) and any("tool_calls" in message for message in called):
        session.log.doubt((), "the history has not one message per step, so calls are named after their commands")
    for number, step in enumerate(steps):
        reply = called[number] if len(called) == len(steps) else None
        thought, action = step.text("thought") or "", step.text("action") or ""
        calls = [chat_call(call) for call in reply.mappings("tool_calls")] if reply else []
        if action.strip() in _EXITS:  # SWE-agent's own doing
            session.other(action.strip())
            continue
        if not calls and action.strip():
            word = _WORD.match(action)
            calls = [ChatCall(word[1] if word else _SHELL, {"command": action.rstrip("\n")}, f"step {number}")]
        session.add(Message("assistant", "", calls, reasoning=[thought] if thought.strip() else []), step.path)
        if calls and "observation" in step:
            session.add(Message("tool", step.text("observation") or "", answers=calls[0].id), step.path)


def _take_messages(run: Fields, session: SessionLog) -> None:
    """Add the messages of mini-SWE-agent; after the first, the user's are what the commands gave."""
    waiting: list[ChatCall] = []
    asked = False
    for number, message in enumerate(run.mappings("messages", required=True)):
        role = message.text("role", required=True)
        text = content_text(message, "content", required=role in ("system", "user", "tool"))
        match role:
            case "system":
                session.add(Message("system", text), message.path)
            case "user" if not asked:
                asked = True
                session.add(Message("user", text), message.path)
            case "user" | "tool" if waiting:
                identity = message.identity("tool_call_id")
                call = next((one for one in waiting if one.id == identity), waiting[0])
                waiting.remove(call)
                session.add(Message("tool", text, answers=call.id), message.path)
            case "assistant":
                waiting = _commands(message, text, number)
                thought = message.text("reasoning_content")
                said = _COMMAND.sub("", text).strip()
                thoughts = [thought] if thought else []
                session.add(Message("assistant", said, list(waiting), reasoning=thoughts), message.path)
            case "exit":
                waiting = []
            case _:
                session.strange(f"message of {role}", message.value, f"messages[{number}]")


def _commands(message: Fields, text: str, number: int) -> list[ChatCall]:
    """The commands in a message: called as tools, listed next to it or, in older files, written in its text."""
    calls = [chat_call(call) for call in message.mappings("tool_calls")]
    if calls:
        return calls
    listed = [action.text("command") for action in message.mapping("extra").mappings("actions")]
    commands: Sequence[str | None] = listed or _COMMAND.findall(text)
    return [
        ChatCall(_SHELL, {"command": command or ""}, f"message {number}, {position}")
        for position, command in enumerate(commands)
    ]


def _take_end(info: Fields, session: SessionLog) -> None:
    """Add what was submitted, or how the run ended without that."""
    submission, status = info.text("submission"), info.text("exit_status") or "no exit status"
    _settle(session)
    if status.startswith(_NOT_THE_AGENT):
        session.error = f"infrastructure: {status}"
    elif submission and submission.strip():
        session.add(Message("assistant", submission))
    else:
        session.error = f"ended without a submission: {status}"


def _settle(session: SessionLog) -> None:
    """The command that submits ends the run: it has no result."""
    for place in range(len(session.log.messages) - 1, -1, -1):
        message = session.log.messages[place]
        if message.calls:
            settled = [ChatCall(one.name, one.arguments, one.id, settled=True) for one in message.calls]
            session.log.messages[place] = replace(message, calls=settled)
            return
