"""Sessions: logs whose lines or steps together are one conversation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentic_bayes.formatting import first_few
from agentic_bayes.records.base import short
from agentic_bayes.records.wire.chat import Message, doubts_of, said_by, turns
from agentic_bayes.records.wire.fields import Faults, Fields, fitting
from agentic_bayes.records.wire.json_text import NO_VALUE, Parsed
from agentic_bayes.records.wire.layout import Origin, documents
from agentic_bayes.records.wire.message_log import LONGEST_ERROR, NO_USER, FieldPath, MessageLog, early_calls
from agentic_bayes.records.wire.offered import AVAILABLE_TOOLS, offered_tools

OTHER_LINES = "other_lines"
"""Key in a conversation's metadata: kind → how many lines or events of it are no part of the dialogue."""

SUB_AGENTS = "sub_agents"
"""Key in a conversation's metadata: what sub-agents were asked and answered; their calls are among the agent's."""

NO_PROMPT = "the log does not say what the user asked, so the query is empty"
_SHOWN = 60
# members that a line has that may hold a call, a result or an answer
_MEANINGFUL = frozenset(
    {"message", "content", "text", "result", "output", "call", "call_id", "tool_calls", "arguments"}
)


# how texts begin that a coding agent itself writes in the user's name
_HARNESS = re.compile(
    r"\s*(<(local-command-|command-name|command-message|system-reminder|task-notification|bash-std|bash-input"
    r"|user-memory-|environment_context|user_instructions|permissions instructions|turn_aborted|skills?_instructions"
    r"|subagent_notification|user_shell_command|user_action|skill>|collaboration_mode|personality_spec|model_switch)"
    r"|# AGENTS\.md instructions|This session is being continued from a previous conversation)"
)


def by_harness(text: str) -> bool:
    """Whether a text in the user's name is one that a coding agent wrote itself."""
    return _HARNESS.match(text) is not None


@dataclass(slots=True)
class SessionLog:
    """A session while it is being read."""

    format: str
    origin: Origin
    log: MessageLog = field(default_factory=MessageLog)
    broken: list[Parsed] = field(default_factory=list)  # lines that could not be read
    others: Counter[str] = field(default_factory=Counter)  # kinds of lines that are no part of the dialogue
    unknown: dict[str, list[str]] = field(default_factory=dict)  # kinds that may be a part of it → where
    started: dict[str, Fields] = field(default_factory=dict)  # what began and has not ended yet, by id
    sub_agents: list[dict[str, Any]] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)  # further metadata
    session: str | None = None
    agent: str | None = None
    task: str | None = None
    score: float | None = None
    error: str | None = None
    raw: list[Any] = field(default_factory=list)  # the objects in which identity may be looked up

    @property
    def faults(self) -> Faults:
        """The problems found so far."""
        return self.log.faults

    def line(self, line: Parsed, file: str = "") -> Mapping[str, Any] | None:
        """The object of a line, perhaps of another file; None, with the problem noted, if it has none."""
        wrong = line.faults
        if not wrong and not isinstance(line.value, dict):
            wrong = (("", f"must be an object, got {short(line.value)}"),)
        if wrong:
            self.broken.append(Parsed(line.where, faults=wrong, file=file))
            return None
        value: Mapping[str, Any] = line.value
        return value

    def objects_in(self, path: Path) -> list[Mapping[str, Any]]:
        """The objects of another file of the session, without those that are broken, which are noted."""
        with open(path, "rb") as stream:
            lines = list(documents(stream))
        return [value for line in lines if (value := self.line(line, str(path))) is not None]

    def object_in(self, path: Path) -> Mapping[str, Any] | None:
        """The only object of another file of the session; None, with the problem noted, if it has not one."""
        broken = len(self.broken)
        found = self.objects_in(path)
        if len(found) != 1 and len(self.broken) == broken:
            self.broken.append(Parsed("", faults=(("", f"must hold one object, got {len(found)}"),), file=str(path)))
        return found[0] if len(found) == 1 and len(self.broken) == broken else None

    def add(self, message: Message, path: FieldPath = ()) -> None:
        """Add one message."""
        self.log.add(message, path)

    def other(self, kind: str) -> None:
        """Count a line that is no part of the dialogue."""
        self.others[short(kind, _SHOWN).strip("'")] += 1

    def strange(self, kind: str, value: Mapping[str, Any], where: str) -> None:
        """Take in a line of an unknown kind: it is named in a doubt if it may be a call, a result or an answer."""
        if value.keys() & _MEANINGFUL:
            self.unknown.setdefault(short(kind, _SHOWN), []).append(where)
        else:
            self.other(kind)

    def add_sub_agent(self, messages: Sequence[Message], asked: str | None, place: int | None = None) -> int:
        """Add what a sub-agent did to the agent's messages, here or at their end; how many messages that are."""
        did = _calls_and_results(messages)
        place = len(self.log.messages) if place is None else place
        self.log.messages[place:place] = did
        said = [message.text for message in messages if message.role == "assistant" and message.text.strip()]
        calls = sum(len(message.calls) for message in did)
        self.sub_agents.append({"asked": asked, "answered": said[-1] if said else None, "calls": calls})
        return len(did)

    def no_prompt(self) -> None:
        """Begin a turn whose question the log does not hold."""
        self.add(Message("user", ""))
        self.log.doubt((), NO_PROMPT)

    def finish(self, where: str = "") -> Iterator[Parsed]:
        """The session in the native format, or its problems."""
        if not any(message.role == "user" for message in self.log.messages) and self.log.messages and not self.broken:
            self.log.messages.insert(0, Message("user", ""))
            self.log.doubt((), NO_PROMPT)
        faults = Faults()
        record = fitting(self._record(), (), faults)
        wrong = (*self.faults, *faults)
        if self.broken:
            yield from self.broken
            if wrong:
                yield Parsed(where, faults=wrong)
            return
        if not wrong and not record["conversation"]:
            wrong = (("", NO_USER),)
        for kind, places in self.unknown.items():
            self.log.doubt((), f"a part of kind {kind} is not known and was not read ({first_few(places, 1)})")
        doubts = (*self.log.doubts, *early_calls(self.log.messages), *doubts_of(record["conversation"]))
        yield Parsed(where, NO_VALUE if wrong else record, wrong, doubts, raw=tuple(self.raw))

    def _record(self) -> dict[str, Any]:
        conversation = turns(self.log.messages)
        if self.error and conversation:
            last = conversation[-1]
            conversation[-1] = {**last, "error": self.error[:LONGEST_ERROR], "assistant": last["assistant"] or None}
        session = self.session or self.origin.stem
        metadata = {
            "format": self.format,
            "model": self.log.model,
            **self.about,
            AVAILABLE_TOOLS: offered_tools(self.log.tools),
            SUB_AGENTS: self.sub_agents,
            OTHER_LINES: dict(self.others),
        }
        return {
            "session_id": session,
            "assistant_id": self.origin.given_agent or self.agent or self.origin.agent,
            "task_id": self.task or session,
            "trial": None,
            "context": said_by("system", self.log.messages),
            "conversation": conversation,
            "recorded_score": self.score,
            "metadata": {key: content for key, content in metadata.items() if content not in (None, "", {}, [])},
        }


def _calls_and_results(messages: Sequence[Message]) -> list[Message]:
    """The calls of a sub-agent and their results; the first has the tokens of all its messages."""
    did = [
        replace(message, text=message.text if message.role == "tool" else "", reasoning=(), tokens=(0, 0))
        for message in messages
        if message.calls or message.role == "tool"
    ]
    if did:
        taken, given = (sum(message.tokens[side] for message in messages) for side in (0, 1))
        did[0] = replace(did[0], tokens=(taken, given))
    return did
