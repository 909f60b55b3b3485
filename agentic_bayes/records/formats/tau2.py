"""tau2 results: ``results.json`` with its simulations inside, or beside it in a folder ``simulations/``.

A simulation is a conversation of one interaction. What is expected of it are the calls that its own ``action_checks``
name; where it was never checked, those of its task. The benchmark does not compare the order of calls, so their order
does not matter here either. Calls of the simulated user are not the agent's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

from agentic_bayes.records.base import field_path
from agentic_bayes.records.formats.chat import Call, Message, one_turn, opening
from agentic_bayes.records.formats.fields import Faults, Fields
from agentic_bayes.records.formats.json_text import NO_VALUE, Parsed, Part, parts
from agentic_bayes.records.formats.layout import STREAMED, Origin, Shape
from agentic_bayes.records.formats.tau_bench import CONTROL

__all__ = ["FOLDER", "INDEX", "read", "recognises"]

NAME = "tau2"
INDEX, FOLDER = "results.json", "simulations"
"""In the form with a folder: the file with everything but the simulations, and the folder beside it."""

# nothing that the agent did ended these
NOT_THE_AGENT = frozenset({"user_error", "infrastructure_error", "unexpected_error", "context_window_exceeded"})
# these ended before anything was checked
PREMATURE = frozenset({"max_steps", "timeout", "too_many_errors", "agent_error"})
CONTRADICTION = (
    "action_checks hold other calls than the task of this task_id: which task it was is doubtful, "
    "and the expected calls are those of the checks"
)
VOICE = "messages are only in its ticks (voice), which are not read: there is no text and no call"


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    keys = shape.record_keys
    whole = {"simulations", "info"} <= keys or {"simulation_index", "info"} <= keys
    tasks = {"tasks", "info"} <= keys and "evaluation_criteria" in _keys(shape.first.get("tasks"))
    return whole or tasks or {"task_id", "termination_reason", "reward_info"} <= keys


def _keys(value: Any) -> set[str]:
    return set(value) if isinstance(value, dict) else set()


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The simulations of a file and, where it stands beside a folder of them, of the folder.

    Parameters
    ----------
    stream : io.BufferedReader
        The bytes of the file.
    origin : Origin
        What the file does not say.

    Yields
    ------
    Parsed
        One per simulation.
    """
    results = _Results(origin)
    path = Path(origin.name)
    if path.parent.name == FOLDER and (index := path.parent.parent / INDEX).is_file():
        with open(index, "rb") as file:
            for _ in results.take(parts(file, STREAMED)):
                pass
    yield from results.take(parts(stream, STREAMED))
    yield from results.finish()
    if path.name == INDEX:
        yield from _beside(results, path.parent / FOLDER)
    if not results.found:
        yield Parsed("", faults=(("", "holds no simulation"),))


def _beside(results: _Results, folder: Path) -> Iterator[Parsed]:
    """The simulations in the folder that are not in the file."""
    for file in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        with open(file, "rb") as stream:
            found = [*results.take(parts(stream, STREAMED)), *results.finish()]
            for parsed in found or [Parsed("", faults=(("", "holds no simulation"),))]:
                place = ", ".join(text for text in (f"{FOLDER}/{file.name}", parsed.where) if text)
                yield Parsed(place, parsed.value, parsed.faults, parsed.doubts)
    if lost := sorted(results.listed - results.found):
        shown = ", ".join(lost[:3]) + (f" and {len(lost) - 3:,} more" if len(lost) > 3 else "")
        yield Parsed("simulation_index", faults=(("", f"lists simulations that are not there: {shown}"),))


class _Results:
    """What a file of results says, as far as it was read."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._tasks: dict[str, dict[str, Any]] | None = None
        self._domain: str | None = None
        self._model: str | None = None
        self._policy = ""
        self._waiting: list[tuple[str, Any]] = []
        self.found: set[str] = set()
        self.listed: set[str] = set()

    @property
    def _agent(self) -> str:
        stem = self._origin.stem
        path = Path(self._origin.name).resolve()
        if path.parent.name == FOLDER and (path.parent.parent / INDEX).is_file():
            stem = path.parent.parent.name or stem
        elif path.name == INDEX:
            stem = path.parent.name or stem
        return self._origin.given_agent or stem

    def take(self, pieces: Iterator[Part]) -> Iterator[Parsed]:
        """Read on. Simulations that come before their tasks wait for `finish`."""
        single: dict[str, Any] = {}
        wrong: list[tuple[str, str]] = []
        for part in pieces:
            faults = tuple((field_path(part.path) or "", text) for _, text in part.faults)
            match part.path:
                case ("simulations", int()) if not part.faults:
                    if self._tasks is None:
                        self._waiting.append((part.place, part.value))
                    else:
                        yield self._parsed(part.place, part.value, ())
                case ("tasks", int()) if not part.faults:
                    self._learn_task(part.value)
                case ("tasks",) if not part.faults:
                    self._tasks = self._tasks or {}
                case ("info",) if isinstance(part.value, dict):
                    self._learn_info(part.value)
                case ("simulation_index",) if isinstance(part.value, list):
                    self.listed |= {str(entry.get("id")) for entry in part.value if isinstance(entry, dict)}
                case (str(key), *rest):
                    if rest:
                        single.setdefault(key, []).append(part.value)
                    else:
                        single[key] = part.value
                    wrong += faults
                case ():
                    if part.faults:
                        yield Parsed(part.where, faults=(*wrong, *part.faults))
                    elif single.keys() & {"termination_reason", "reward_info", "messages"}:
                        yield self._parsed(part.where, single, tuple(wrong))
                    elif wrong:
                        yield Parsed(part.where, faults=tuple(wrong))
                    single, wrong = {}, []
                case _:
                    yield Parsed(part.place, faults=part.faults or (("", "must be inside an object of results"),))

    def finish(self) -> Iterator[Parsed]:
        """The simulations that waited for tasks."""
        self._tasks = self._tasks or {}
        for where, value in self._waiting:
            yield self._parsed(where, value, ())
        self._waiting = []

    def _learn_info(self, info: dict[str, Any]) -> None:
        # never all of it: the arguments of the model may hold a key of its provider
        domain = info.get("environment_info")
        agent = info.get("agent_info")
        if isinstance(domain, dict):
            self._domain = domain["domain_name"] if isinstance(domain.get("domain_name"), str) else None
            self._policy = domain["policy"] if isinstance(domain.get("policy"), str) else ""
        if isinstance(agent, dict) and isinstance(agent.get("llm"), str):
            self._model = agent["llm"]

    def _learn_task(self, task: Any) -> None:
        if self._tasks is None:
            self._tasks = {}
        if not isinstance(task, dict) or not isinstance(task.get("id"), (str, int)):
            return
        criteria = task.get("evaluation_criteria")
        kept = {"ticket": task.get("ticket")}
        if isinstance(criteria, dict):
            kept |= {key: criteria.get(key) for key in ("actions", "communicate_info", "nl_assertions")}
        self._tasks[str(task["id"])] = kept

    def _parsed(self, where: str, value: Any, wrong: tuple[tuple[str, str], ...]) -> Parsed:
        faults, doubts = Faults(), Faults()
        record = self._conversation(Fields(value, (), faults), doubts)
        together = (*wrong, *faults)
        return Parsed(where, NO_VALUE if together else record, together, doubts.found())

    def _conversation(self, run: Fields, doubts: Faults) -> Mapping[str, Any]:
        task_id, session = run.name("task_id", required=True), run.name("id", required=True)
        self.found.add(session or "")
        task = (self._tasks or {}).get(task_id or "", {})
        messages = [_message(message) for message in run.mappings("messages")]
        reason, reward = run.text("termination_reason"), run.mapping("reward_info")
        score = reward.share("reward") if "reward" in reward else None
        turn = one_turn(messages, qa_id=f"task {task_id}")
        ticket = task.get("ticket")
        turn["query"] = turn["query"] or (ticket if isinstance(ticket, str) else "")
        error = None
        if reason in NOT_THE_AGENT:
            error = f"infrastructure: {reason}"
        elif score is None:
            error = f"infrastructure: no reward was recorded (termination_reason {reason})"
        if "messages" not in run and "ticks" in run:
            doubts.add((), VOICE)
            del turn["agentic"]
        expected = self._expected(reward, reason, task, run.faults, doubts)
        if expected is not None:
            turn["ground_truth_agentic"] = {"expected_tools": expected, "tool_sequence_matters": False}
        told = [text for text in task.get("communicate_info") or () if isinstance(text, str)]
        if told:
            turn["ground_truth_assistant"] = ", ".join(told)
        if error is not None:
            turn |= {"assistant": turn["assistant"] or None, "error": error}
        tokens = [m.tokens for m in messages if m.role == "assistant" and any(m.tokens)]
        metadata = {
            "format": NAME,
            "domain": self._domain,
            "model": self._model,
            "termination_reason": reason,
            "cost": {
                side: amount
                for side, amount in (("agent", run.number("agent_cost")), ("user", run.number("user_cost")))
                if amount is not None
            },
            "tokens": {"input": sum(t for t, _ in tokens), "output": sum(t for _, t in tokens)} if tokens else None,
            "duration": run.number("duration"),
            "started": run.text("start_time"),
            "opening": opening(messages),
            "task_id_contradicted": True if doubts and (("", CONTRADICTION) in list(doubts)) else None,
        }
        return {
            "session_id": session,
            "assistant_id": self._agent,
            "task_id": task_id,
            "trial": run.whole("trial") or 0,
            "context": self._policy or run.text("policy") or "",
            "conversation": [turn],
            "recorded_score": None if error else score,
            "metadata": {key: content for key, content in metadata.items() if content not in (None, {}, "")},
        }

    def _expected(
        self, reward: Fields, reason: str | None, task: Mapping[str, Any], faults: Faults, doubts: Faults
    ) -> list[dict[str, Any]] | None:
        """The calls that the agent should have made; None where nobody says."""
        known = _calls(Fields({"actions": task.get("actions")}, (), Faults()).mappings("actions")) if task else None
        unchecked = "action_checks" not in reward and (reason in PREMATURE or not reward.value)
        if unchecked:
            return known
        checked = _calls([check.mapping("action", required=True) for check in reward.mappings("action_checks")])
        if known is not None and _sorted(checked) != _sorted(known):
            doubts.add((), CONTRADICTION)
        return checked


def _sorted(calls: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(call, sort_keys=True, default=str) for call in calls)


def _calls(actions: list[Fields]) -> list[dict[str, Any]]:
    """The expected calls of the agent; those of the user are not its own."""
    found = []
    for action in actions:
        if action.raw("requestor") not in (None, "assistant"):
            continue
        call: dict[str, Any] = {
            "tool_name": action.name("name", required=True) or "?",
            "parameters": action.arguments("arguments", "kwargs"),
        }
        if "compare_args" in action:
            compared = [name for name in action.sequence("compare_args") if isinstance(name, str)]
            call["matchers"] = {"*": {"ignore": True}, **{name: {"exact": True} for name in compared}}
        found.append(call)
    return found


def _message(message: Fields) -> Message:
    role = message.text("role", required=True)
    text = message.text("content") or ""
    usage = message.mapping("usage")
    tokens = (usage.whole("prompt_tokens") or 0, usage.whole("completion_tokens") or 0)
    match role:
        case "assistant":
            calls = [
                Call(call.name("name", required=True) or "?", call.arguments("arguments"), call.name("id"))
                for call in message.mappings("tool_calls")
                if call.raw("requestor") in (None, "assistant")
            ]
            return Message("assistant", "" if text.strip() in CONTROL else text, calls, tokens=tokens)
        case "tool":
            if message.raw("requestor") not in (None, "assistant"):
                return Message("system")  # the user's own tools
            return Message("tool", text, answers=message.name("id"))
        case "user":
            return Message("user", "" if text.strip() in CONTROL else text)
        case "system":
            return Message("system", text)
    if role is not None:
        message.faults.add((*message.path, "role"), f"must be system, user, assistant or tool, got {role!r}")
    return Message("system")
