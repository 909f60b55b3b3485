"""Read sessions of Claude Code: its session files, and what ``claude -p --output-format stream-json`` prints.

A session is a conversation. What its sub-agents did is in the same file or in files in a folder next to it: their calls
count as the agent's, right after the call that started them. What Claude Code itself says in the user's name
(reminders, summaries, the output of commands) is no question, and what the user took back is left out.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from typing import Any

from agentic_bayes.records.formats.sessions.session_log import SessionLog, session_lines
from agentic_bayes.records.wire.chat import Message
from agentic_bayes.records.wire.content.blocks import take_blocks
from agentic_bayes.records.wire.fields import Fields
from agentic_bayes.records.wire.json_text import Parsed, parts
from agentic_bayes.records.wire.layout import Origin, Shape

NAME = "claude-code"
FOLDER = "subagents"
"""In the folder named after a session: the folder with the files of its sub-agents."""

_SPOKEN = frozenset({"user", "assistant"})
# lines about the session, not of the dialogue
_OTHERS = frozenset(
    {"summary", "queue-operation", "file-history-snapshot", "file-history-delta", "last-prompt", "mode", "progress"}
    | {"permission-mode", "cost-state", "tools-used", "atis-latch", "custom-title", "ai-title", "agent-name", "tag"}
    | {"api-request", "api-request-blob", "stream_event", "rate_limit_event", "control_request", "control_response"}
    | {"tool_progress", "agent-setting", "agent-color", "pr-link", "marble-origami-commit", "speculation-accept"}
)
# texts in the user's name that Claude Code writes
_BY_HARNESS = re.compile(
    r"\s*<(local-command-|system-reminder|task-notification|bash-std|bash-input|user-memory-input)"
)
_REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_COMMAND_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_OF_SUB_AGENT = re.compile(r"agent-\w+\.jsonl")
_SESSION = re.compile(r'"sessionId":\s*"([\w-]+)"')
_INTERRUPTED = "[Request interrupted by user"


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    record = shape.item if isinstance(shape.item, dict) else shape.values
    kind = record.get("type")
    if not isinstance(kind, str):
        return False
    if kind == "summary" and "leafUuid" in record:
        return True
    if kind == "file-history-snapshot" and "messageId" in record:
        return True
    if kind == "system" and record.get("subtype") == "init" and "session_id" in record:
        return True
    return "sessionId" in record and (kind in _SPOKEN | _OTHERS | {"system", "attachment"})


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The session of a file, with its sub-agents."""
    session = SessionLog(NAME, origin)
    lines = [value for line in session_lines(parts(stream, ())) if (value := session.line(line)) is not None]
    main = [line for line in lines if not _of_sub_agent(line)]
    aside = [line for line in lines if _of_sub_agent(line)]
    alone = not any(str(line.get("type")) in _SPOKEN for line in main) and bool(aside)
    if alone:  # the file of a sub-agent
        session.session = next((str(line["agentId"]) for line in aside if "agentId" in line), None)
        main, aside = aside, []
    sub_agents = _SubAgents(session, aside, None if alone else origin)
    _Transcript(session, sub_agents).take(_kept(main, session))
    sub_agents.finish()
    if not session.agent:
        session.agent = session.log.model or NAME
    yield from session.finish()


def _of_sub_agent(line: Mapping[str, Any]) -> bool:
    return line.get("isSidechain") is True or isinstance(line.get("parent_tool_use_id"), str)


def _kept(lines: Sequence[Mapping[str, Any]], session: SessionLog) -> list[Mapping[str, Any]]:
    """The lines without repetitions, and without those that follow a prompt that the user took back."""
    by_id: dict[str, Mapping[str, Any]] = {}
    unique = []
    for line in lines:
        identity = line.get("uuid")
        if not isinstance(identity, str):
            unique.append(line)
        elif identity not in by_id:
            by_id[identity] = line
            unique.append(line)
    prompts: defaultdict[str | None, list[str]] = defaultdict(list)
    for identity, line in by_id.items():
        if _is_prompt(line):
            prompts[_spoken_before(line, by_id)].append(identity)
    dropped = {identity for several in prompts.values() for identity in several[:-1]}
    if not dropped:
        return unique
    kept = []
    for line in unique:
        if str(line.get("parentUuid")) in dropped and isinstance(line.get("uuid"), str):
            dropped.add(line["uuid"])
        if str(line.get("uuid")) not in dropped:
            kept.append(line)
    session.about["lines_taken_back"] = len(unique) - len(kept)
    return kept


def _spoken_before(line: Mapping[str, Any], by_id: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The id of the last message before a prompt, or of a line that is missing."""
    seen = set()
    while True:
        parent = line.get("parentUuid")
        parent = line.get("logicalParentUuid") if parent is None else parent
        if parent is None:
            return None
        if not isinstance(parent, str) or parent not in by_id:  # nobody knows what came before
            return str(parent)
        if parent in seen:
            return None
        seen.add(parent)
        line = by_id[parent]
        if str(line.get("type")) in _SPOKEN:
            return parent


def _is_prompt(line: Mapping[str, Any]) -> bool:
    """Whether this is a question of the user's own."""
    if line.get("type") != "user" or line.get("isMeta") or line.get("isCompactSummary"):
        return False
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    texts = [content] if isinstance(content, str) else _texts(content)
    results = isinstance(content, list) and any(_kind(block) == "tool_result" for block in content)
    own = [text for text in texts if not _is_by_harness(text) and not text.startswith(_INTERRUPTED)]
    return not results and bool(own) and not any(_COMMAND.search(text) for text in own)


def _texts(content: Any) -> list[str]:
    blocks = content if isinstance(content, list) else []
    return [str(block.get("text") or "") for block in blocks if _kind(block) == "text"]


def _is_by_harness(text: str) -> bool:
    rest = _REMINDER.sub("", text)
    return not rest.strip() or _BY_HARNESS.match(rest) is not None


def _said(content: Any) -> Any:
    """The content of a user's message without reminders, which Claude Code puts into it."""
    if isinstance(content, str):
        return _REMINDER.sub("", content)
    if not isinstance(content, list):
        return content
    return [
        {**block, "text": text} if _kind(block) == "text" else block
        for block in content
        if _kind(block) != "text" or (text := _REMINDER.sub("", str(block.get("text") or ""))).strip()
    ]


def _kind(block: Any) -> Any:
    return block.get("type") if isinstance(block, dict) else None


class _Transcript:
    """The lines of one agent, one after the other."""

    def __init__(self, session: SessionLog, sub_agents: _SubAgents) -> None:
        self.session, self.sub_agents = session, sub_agents
        self.counted: set[str] = set()  # ids of messages whose tokens are counted
        self.command: str | None = None  # a command of the user's that may be a question

    def take(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Add all lines."""
        for number, line in enumerate(lines):
            self._line(line, f"line {number + 1}")

    def _line(self, value: Mapping[str, Any], where: str) -> None:
        session = self.session
        line = Fields(value, (), session.faults)
        kind = line.text("type", required=True) or ""
        self._learn(line, kind)
        match kind:
            case "user":
                self._user(line)
            case "assistant":
                self._assistant(line)
            case "attachment":
                self._attachment(line, where)
            case "system":
                self._system(line)
            case "api-request-shape":
                if not session.log.tools and "agentId" not in line:
                    session.log.tools += line.mapping("shape").sequence("tools")
            case "result":
                self._result(line)
            case _ if kind in _OTHERS:
                session.other(kind)
            case _:
                session.strange(kind, value, where)

    def _learn(self, line: Fields, kind: str) -> None:
        """Note what a line says about the session."""
        session = self.session
        if kind in _SPOKEN or kind == "system":
            session.session = session.session or line.name("sessionId") or line.name("session_id")
            known = {"cwd": "cwd", "gitBranch": "git_branch", "version": "version", "claude_code_version": "version"}
            for key, name in known.items():
                if isinstance(line.raw(key), str):
                    session.about.setdefault(name, line.raw(key))
            if not session.raw:
                session.raw.append(line.value)

    def _user(self, line: Fields) -> None:
        session = self.session
        if line.raw("isMeta") is True and not self._results(line.mapping("message")):
            session.other("message of the harness")
        if line.raw("isMeta") is True:
            return
        if line.raw("isCompactSummary") is True:
            session.about["compacted"] = session.about.get("compacted", 0) + 1
            return
        message = line.mapping("message", required=True)
        content = message.raw("content")
        texts = [content] if isinstance(content, str) else _texts(content)
        if any(text.startswith(_INTERRUPTED) for text in texts):
            self._results(message)
            session.add(Message("assistant", error="interrupted by the user"))
        elif texts and all(map(_is_by_harness, texts)) and not self._results(message):
            self.command = None if "local-command-stdout" in texts[0] else self.command
            session.other("message of the harness")
        elif command := next(filter(None, map(_COMMAND.search, texts)), None):
            arguments = next(filter(None, map(_COMMAND_ARGUMENTS.search, texts)), None)
            self.command = f"{command[1].strip()} {arguments[1].strip() if arguments else ''}".strip()
        else:
            self.command = None if _is_prompt(line.value) else self.command
            take_blocks({**message.value, "content": _said(content)}, message.path, session.log)
            agent = line.raw("toolUseResult") or line.raw("tool_use_result")
            identity = agent.get("agentId") if isinstance(agent, dict) else None
            for block in content if isinstance(content, list) else ():
                if _kind(block) == "tool_result":
                    self.sub_agents.ended(block.get("tool_use_id"), identity)

    def _results(self, message: Fields) -> bool:
        """Add the results in a message that is otherwise not the user's; False if there are none."""
        content = message.raw("content")
        blocks = [block for block in content if _kind(block) == "tool_result"] if isinstance(content, list) else []
        if blocks:
            take_blocks({"role": "user", "content": blocks}, message.path, self.session.log)
        return bool(blocks)

    def _assistant(self, line: Fields) -> None:
        session = self.session
        if self.command is not None:
            session.add(Message("user", self.command))
            self.command = None
        message = dict(line.mapping("message", required=True).value)
        if line.raw("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
            text = " ".join(_texts(message.get("content"))) or "no message"
            if line.raw("isApiErrorMessage") is True or "error" in line:
                session.add(Message("assistant", error=f"infrastructure: {text}"))
            else:
                session.other("message of the harness")
            return
        message.setdefault("role", "assistant")
        # one message is written as several lines, each with the usage of the whole
        identity = message.get("id")
        if isinstance(identity, str) and identity in self.counted:
            message.pop("usage", None)
        self.counted.add(str(identity))
        take_blocks(message, ("message",), session.log)
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            if _kind(block) == "tool_use":
                self.sub_agents.began(block)

    def _attachment(self, line: Fields, where: str) -> None:
        attachment = line.mapping("attachment")
        match attachment.raw("type"):
            case "queued_command" if isinstance(attachment.raw("prompt"), str):
                text = str(attachment.raw("prompt"))
                if attachment.raw("commandMode") in (None, "prompt") and not _is_by_harness(text):
                    self.session.add(Message("user", text, aside=True))
            case "queued_command" if isinstance(attachment.raw("prompt"), list):
                self.session.strange("queued_command", {"content": ""}, where)
            case "prompt_snapshot":
                texts = [text for text in attachment.sequence("systemPrompt") if isinstance(text, str)]
                if texts and not any(message.role == "system" for message in self.session.log.messages):
                    self.session.add(Message("system", "\n\n".join(texts)))
            case kind:
                self.session.other(f"attachment {kind}")

    def _system(self, line: Fields) -> None:
        session = self.session
        match line.raw("subtype"):
            case "init":
                session.log.tools += line.sequence("tools")
                session.log.model = session.log.model or line.text("model")
            case subtype:
                session.other(f"system {subtype}")

    def _result(self, line: Fields) -> None:
        """Add the end of a run: its cost, and why it broke off."""
        session = self.session
        session.about["cost"] = line.number("total_cost_usd")
        if line.raw("is_error") is True or str(line.raw("subtype")).startswith("error"):
            reasons = [text for text in line.sequence("errors") if isinstance(text, str)]
            why = line.text("result") or "; ".join(reasons)
            session.add(Message("assistant", error=": ".join(filter(None, (line.text("subtype"), why))) or "error"))


class _SubAgents:
    """What sub-agents did, to be added to the call that started them."""

    def __init__(self, session: SessionLog, lines: Sequence[Mapping[str, Any]], origin: Origin | None) -> None:
        self.session = session
        self.logs: dict[str, list[Mapping[str, Any]]] = {}
        homes: dict[str, str] = {}
        for line in lines:  # older files: each sub-agent is a chain of lines that begins without a parent
            known = line.get("agentId") or line.get("parent_tool_use_id") or line.get("parentToolUseId")
            name = str(known or homes.get(str(line.get("parentUuid"))) or line.get("uuid"))
            homes[str(line.get("uuid"))] = name
            self.logs.setdefault(name, []).append(line)
        self.folder = None if origin is None else _folder_of(origin.name)
        self.opened: set[str] = set()  # the sub-agents whose files were read
        self.waiting: dict[str, tuple[int, str]] = {}  # id of a call → after which message it stands, and its prompt

    def began(self, block: Mapping[str, Any]) -> None:
        """Note a call that may start a sub-agent."""
        given = block.get("input")
        prompt = given.get("prompt") if isinstance(given, dict) else None
        if isinstance(prompt, str):
            self.waiting[str(block.get("id"))] = len(self.session.log.messages), prompt

    def ended(self, call: Any, agent: Any) -> None:
        """Add what the sub-agent of a call did, once the call has its result."""
        place, prompt = self.waiting.pop(str(call), (None, ""))
        if place is None:
            return
        lines = self._lines(str(call), agent, prompt)
        if lines is None:
            if isinstance(agent, str):
                self.session.log.doubt((), "a sub-agent's own file is missing, so what it did is unknown")
            return
        inner = SessionLog(NAME, self.session.origin)
        nested = _SubAgents(inner, (), None)
        nested.logs, nested.folder, nested.opened = self.logs, self.folder, self.opened
        _Transcript(inner, nested).take(lines)
        for path, wrong in inner.faults:
            self.session.faults.add((), f"sub-agent, {path}: {wrong}")
        self.session.unknown |= inner.unknown
        did = [
            replace(message, text=message.text if message.role == "tool" else "", reasoning=(), tokens=(0, 0))
            for message in inner.log.messages
            if message.calls or message.role == "tool"
        ]
        if did:
            spent = [message.tokens for message in inner.log.messages]
            did[0] = replace(did[0], tokens=(sum(taken for taken, _ in spent), sum(given for _, given in spent)))
        self.session.log.messages[place:place] = did
        self.waiting = {
            other: (there + len(did) if there > place else there, text) for other, (there, text) in self.waiting.items()
        }
        said = [message.text for message in inner.log.messages if message.role == "assistant" and message.text.strip()]
        calls = sum(len(message.calls) for message in did)
        self.session.sub_agents.append({"asked": prompt, "answered": said[-1] if said else None, "calls": calls})

    def finish(self) -> None:
        """Say what was left over."""
        if self.logs:
            self.session.log.doubt(
                (), f"what sub-agents did belongs to no call that ended, and was not read: {len(self.logs)}"
            )

    def _lines(self, call: str, agent: Any, prompt: str) -> list[Mapping[str, Any]] | None:
        for name in (agent, call):
            if isinstance(name, str) and name in self.logs:
                return self.logs.pop(name)
        for name, lines in self.logs.items():
            message = lines[0].get("message")
            content = message.get("content") if isinstance(message, dict) else None
            if prompt in ([content] if isinstance(content, str) else _texts(content)):
                return self.logs.pop(name)
        if self.folder is None or not isinstance(agent, str) or os.sep in agent or agent in self.opened:
            return None
        # older versions put the files next to the session's
        homes = (self.folder, self.folder.parent.parent)
        path = next(
            (home / f"agent-{agent}.jsonl" for home in homes if (home / f"agent-{agent}.jsonl").is_file()), None
        )
        if path is None:
            return None
        self.opened.add(str(agent))
        return self.session.objects_in(path)


def _folder_of(name: str) -> Path:
    """The folder with the files of a session's sub-agents."""
    path = Path(os.path.abspath(name))
    stem = path.name.removesuffix(".gz").removesuffix(".jsonl")
    return path.parent / stem / FOLDER


def parts_of(names: Sequence[str]) -> set[str]:
    """Those of these files that are read with another one of them: the files of sub-agents of a session."""
    known = {os.path.abspath(name) for name in names}
    sessions = {str(_folder_of(name)) for name in names if name.endswith(".jsonl")}
    return {
        name
        for name in names
        if (folder := os.path.dirname(os.path.abspath(name))) in sessions
        or (_OF_SUB_AGENT.fullmatch(os.path.basename(name)) and os.path.join(folder, _session_of(name)) in known)
    }


def _session_of(name: str) -> str:
    """The file of the session that a sub-agent's file names in its first line."""
    try:
        with open(name, encoding="utf-8", errors="replace") as file:
            found = _SESSION.search(file.readline(10_000))
    except OSError:
        return ""
    return f"{found[1]}.jsonl" if found else ""
