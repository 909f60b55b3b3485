"""Read trajectories in ATIF, the Agent Trajectory Interchange Format of Harbor.

A trajectory is a conversation. The calls of sub-agents, whose trajectories are inside it or in files next to it, count
as the agent's, right after the call that started them; so do the steps that a continuation in another file holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

from agentic_bayes.records.agents import with_model
from agentic_bayes.records.base import short
from agentic_bayes.records.formats.sessions.session_log import SessionLog, by_harness
from agentic_bayes.records.wire.chat import ChatCall, Message
from agentic_bayes.records.wire.fields import Fields
from agentic_bayes.records.wire.json_text import Parsed
from agentic_bayes.records.wire.layout import Origin, Shape, documents

NAME = "atif"

_VERSION = "ATIF-"
# a call that ends the run: no result need follow
_ENDS = frozenset({"mark_task_complete", "submit", "finish", "final_answer"})
_DEEPEST = 8
SEVERAL = "a result names none of the several calls of its step, so it was given to the first of them"


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    record = shape.record
    return str(record.get("schema_version")).startswith(_VERSION)


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The trajectories of a file: one object, one per line, or a list."""
    lines = list(documents(stream))
    for number, line in enumerate(lines):
        session = SessionLog(NAME, origin)
        value = session.line(line)
        if value is not None:
            take(value, session, Path(origin.name).parent)
        if session.session is None and len(lines) > 1:
            session.session = f"{origin.stem}, {line.where or number}"
        yield from session.finish(line.where if len(lines) > 1 else "")


def take(value: Mapping[str, Any], session: SessionLog, folder: Path | None) -> None:
    """Add the steps of a trajectory to a session."""
    trajectory = Fields(value, (), session.faults)
    agent = trajectory.mapping("agent", required=True)
    name, model = agent.name("name"), agent.name("model_name")
    session.session = trajectory.name("session_id") or trajectory.name("trajectory_id")
    session.agent = with_model(name, model)
    session.log.model = model
    session.log.tools += agent.sequence("tool_definitions")
    session.about["version"] = agent.raw("version")
    totals = trajectory.mapping("final_metrics")
    tokens = {"input": totals.whole("total_prompt_tokens"), "output": totals.whole("total_completion_tokens")}
    session.about["tokens"] = {side: number for side, number in tokens.items() if number is not None}
    session.about["cost"] = totals.number("total_cost_usd")
    session.raw.append(
        {key: content for key, content in value.items() if key not in ("steps", "subagent_trajectories")}
    )
    _Steps(session, folder).take(trajectory, 0)


class _Steps:
    """The steps of a trajectory, with those of its sub-agents and continuations."""

    def __init__(self, session: SessionLog, folder: Path | None) -> None:
        self.session, self.folder = session, folder
        self.embedded: dict[str, Mapping[str, Any]] = {}
        self.files: set[str] = set()

    def take(self, trajectory: Fields, depth: int) -> None:
        """Add all steps."""
        for inner in trajectory.mappings("subagent_trajectories"):
            self.embedded[str(inner.raw("trajectory_id"))] = inner.value
        for step in trajectory.mappings("steps", required=True):
            # a continuation repeats what came before it
            if not (depth and step.raw("is_copied_context") is True):
                self._step(step, depth)
        following = trajectory.text("continued_trajectory_ref")
        if following:
            more = self._file(following)
            if more is None:
                self.session.log.doubt((), f"goes on in {short(following)}, which is not there: the rest is missing")
            else:
                self.take(Fields(more, (), self.session.faults), depth + 1)

    def _step(self, step: Fields, depth: int) -> None:
        text = _text(step, "message", self.session)
        extra = step.mapping("extra")
        aside = extra.raw("is_sidechain") is True  # a sub-agent's step among the agent's
        match step.text("source", required=True):
            case "user" if aside:
                self.session.sub_agents.append({"asked": text})
            case "user" if by_harness(text):
                self.session.other("message of the harness")
            case "user":
                self.session.add(Message("user", text), step.path)
            case "system":
                self.session.add(Message("system", text), step.path)
                self._results(step, {}, depth)
            case "agent":
                self._agent(step, "" if aside else text, depth)
                if aside and text and self.session.sub_agents:
                    self.session.sub_agents[-1]["answered"] = text
            case str(source):
                step.faults.add((*step.path, "source"), f"must be system, user or agent, got {short(source)}")

    def _agent(self, step: Fields, text: str, depth: int) -> None:
        calls = []
        for call in step.mappings("tool_calls"):
            name = call.name("function_name", required=True) or "?"
            arguments = call.arguments("arguments")
            calls.append(ChatCall(name, arguments, call.identity("tool_call_id"), settled=name in _ENDS))
        thought = step.text("reasoning_content")
        reasoning = [thought] if thought and thought.strip() else []
        if text or calls:
            self.session.add(Message("assistant", text, calls, reasoning=reasoning), step.path)
        elif reasoning:
            self.session.log.add_thoughts(reasoning, step.path)
        self._results(step, {call.id: call for call in calls}, depth)

    def _results(self, step: Fields, calls: Mapping[str | None, ChatCall], depth: int) -> None:
        """Add what the environment gave back; what belongs to no call is no result of one."""
        open_calls = [call for call in calls.values() if not call.settled]
        for result in step.mapping("observation").mappings("results"):
            content = _text(result, "content", self.session)
            identity = result.identity("source_call_id")
            for reference in result.mappings("subagent_trajectory_ref"):
                self._sub_agent(reference, depth)
            if identity is None and open_calls:
                if len(open_calls) > 1:
                    self.session.log.doubt((), SEVERAL)
                identity = open_calls.pop(0).id
            if identity is None:
                self.session.other("observation without a call")
            else:
                self.session.add(Message("tool", content, answers=identity), result.path)

    def _sub_agent(self, reference: Fields, depth: int) -> None:
        identity, path = reference.name("trajectory_id"), reference.text("trajectory_path")
        found = self.embedded.get(identity or "") or (self._file(path) if path else None)
        if found is None or depth >= _DEEPEST:
            self.session.log.doubt((), f"what the sub-agent {short(identity or path)} did is missing from the file")
            return
        inner = SessionLog(NAME, self.session.origin)
        steps = _Steps(inner, self.folder)
        steps.embedded, steps.files = self.embedded, self.files
        steps.take(Fields(found, reference.path, self.session.faults), depth + 1)
        for field, wrong in inner.faults:
            self.session.faults.add((), f"sub-agent, {field}: {wrong}")
        asked = next((message.text for message in inner.log.messages if message.role == "user"), None)
        self.session.add_sub_agent(inner.log.messages, asked)

    def _file(self, reference: str) -> Mapping[str, Any] | None:
        """A trajectory in a file next to this one, each once."""
        name = Path(reference).name
        path = self.folder / name if self.folder else None
        if path is None or name in self.files or not path.is_file():
            return None
        self.files.add(name)
        return self.session.object_in(path)


def _text(source: Fields, key: str, session: SessionLog) -> str:
    """A text, or the texts and marks of a list of parts."""
    if not isinstance(source.raw(key), list):
        return source.text(key) or ""
    texts = []
    for part in source.mappings(key):
        kind = part.text("type", required=True) or ""
        if kind not in ("text", "image", "audio"):
            session.strange(f"content {kind}", {"content": ""}, str(part.path))
        texts.append(part.text("text") or "" if kind == "text" else f"[{kind}]")
    return "\n".join(texts)


def parts_of(names: list[str]) -> set[str]:
    """Those of these files that continue another one or belong to its sub-agents; these are read with it."""
    folders: dict[Path, list[str]] = {}
    for name in names:
        folders.setdefault(Path(name).parent, []).append(name)
    return {
        name
        for files in folders.values()
        if any(Path(file).name == "trajectory.json" for file in files)
        for name in files
        if Path(name).name.startswith("trajectory.") and Path(name).name != "trajectory.json"
    }
