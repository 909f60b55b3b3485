"""Read tau2 results: `results.json` with the simulations, or next to a folder `simulations/`.

A simulation is a conversation of one interaction. Its expected calls are those in its own ``action_checks``; if it was
never checked, those of its task; if neither has any, they are unknown. The benchmark does not compare the order of
calls, so the order does not matter here either. The simulated user's own calls are left out. The score is 1 if the
reward is 1, up to 1e-6, and else 0, as in the benchmark.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any

from agentic_bayes.formatting import first_few
from agentic_bayes.records.base import short
from agentic_bayes.records.formats.evals.tau_bench import (
    CONTROL,
    complete,
    from_user_or_system,
    given_reward,
    partial,
    success,
)
from agentic_bayes.records.wire.chat import Message, named_call, one_turn, opening, token_totals
from agentic_bayes.records.wire.fields import Faults, Fields
from agentic_bayes.records.wire.json_text import JsonPart, Parsed, broken, joined, parts
from agentic_bayes.records.wire.layout import STREAMED, Origin, Shape, converted

NAME = "tau2"
INDEX, FOLDER = "results.json", "simulations"
"""In the form with a folder: the file with everything except the simulations, and the folder next to it."""

INDEXES = (INDEX, f"{INDEX}.gz")
_SUFFIXES = (".json", ".json.gz")
# members of results, and members of which a simulation has at least one
_OF_RESULTS = frozenset({"info", "tasks", "simulations", "simulation_index"})
_OF_A_SIMULATION = frozenset({"termination_reason", "reward_info", "messages"})

# reasons that are not the agent's fault
NOT_THE_AGENT = frozenset({"user_error", "infrastructure_error", "unexpected_error", "context_window_exceeded"})
# reasons that end a run before anything is checked
PREMATURE = frozenset({"max_steps", "timeout", "too_many_errors", "agent_error"})
CONTRADICTION = (
    "action_checks and the task with this task_id expect different calls: the calls in action_checks were used, "
    "and task_id may be wrong"
)
VOICE = "a voice run keeps its messages in ticks, which are not read: there is no text and no call"


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    keys = shape.record_keys
    whole = {"simulations", "info"} <= keys or {"simulation_index", "info"} <= keys
    task = shape.first.get("tasks")
    tasks = {"tasks", "info"} <= keys and isinstance(task, dict) and "evaluation_criteria" in task
    return whole or tasks or {"task_id", "termination_reason", "reward_info"} <= keys


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The simulations of a file and, if it has a folder of simulations next to it, of that folder."""
    results = _Tau2Results(origin)
    index, home = _index_of(origin.name), _home_of(origin.name)
    # the simulations need what their results file says; of that file itself, only the problems are yielded
    from_index: Iterable[Parsed] = _of_file(index, lambda pieces: results.take(pieces, is_index=True)) if index else ()
    sound = True
    for parsed in chain(
        (replace(parsed, file=str(index)) for parsed in from_index),
        results.take(parts(stream, STREAMED)),
        _beside(results, home / FOLDER) if home else (),
    ):
        sound = sound and not parsed.faults
        yield parsed
    if sound and not results.found:
        yield _nothing("")


def _nothing(where: str) -> Parsed:
    return broken(where, "holds no simulation")


def _paths(name: str) -> tuple[Path, Path]:
    """The path as given, and the real path if it is a link."""
    return Path(os.path.abspath(name)), Path(os.path.realpath(name))


def _index_of(name: str) -> Path | None:
    """The results file that belongs to the simulations folder this file is in, if any."""
    folders = [path.parent.parent for path in _paths(name) if path.parent.name == FOLDER]
    indexes = (folder / index for folder in folders for index in INDEXES)
    return next((index for index in indexes if os.path.lexists(index)), None)


def _home_of(name: str) -> Path | None:
    """The folder of a results file, which may also hold a simulations folder; None for other files."""
    return next((path.parent for path in _paths(name) if path.name in INDEXES), None)


def _beside(results: _Tau2Results, folder: Path) -> Iterator[Parsed]:
    """The simulations of the folder, which the results file does not hold."""
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    seen: set[str] = set()
    for name in (name for name in names if name.lower().endswith(_SUFFIXES) and name[0] != "."):
        real = os.path.realpath(folder / name)
        if real in seen:
            continue
        seen.add(real)
        for parsed in [*_of_file(folder / name, results.take)] or [_nothing("")]:
            yield replace(parsed, where=joined(f"{FOLDER}/{name}", parsed.where))
    if lost := sorted(results.listed - results.found):
        yield broken("simulation_index", f"lists simulations that are missing: {first_few(lost, 3)}")


def _of_file(path: Path, take: Callable[[Iterator[JsonPart]], Iterator[Parsed]]) -> Iterator[Parsed]:
    """Read a file, but only if it is a regular one: opening a pipe could wait for ever."""
    if not path.is_file():
        what = "a folder" if path.is_dir() else "a pipe or device" if path.exists() else "a broken link"
        yield broken("", f"must be a regular file, got {what}")
        return
    try:
        stream = open(path, "rb")  # noqa: SIM115 - only the opening is tried; `with` follows
    except OSError as error:
        yield broken("", f"cannot be opened: {error.strerror or error}")
        return
    with stream:
        yield from take(parts(stream, STREAMED))


@dataclass(frozen=True, slots=True)
class _Tau2Task:
    """The relevant parts of a task; `actions` is None if it does not say which calls are expected."""

    ticket: str = ""
    actions: list[dict[str, Any]] | None = None
    facts: tuple[str, ...] = ()


@dataclass(slots=True)
class _Tau2Document:
    """What has been read of one top-level object."""

    seen: set[str] = field(default_factory=set)
    waiting: list[JsonPart] = field(default_factory=list)
    # the members of a simulation that has a file to itself
    members: dict[str, Any] = field(default_factory=dict)
    wrong: list[tuple[str, str]] = field(default_factory=list)
    tasks: dict[str, int] = field(default_factory=dict)


class _Tau2Results:
    """What has been read of a results file."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._tasks: dict[str, _Tau2Task] = {}
        self._domain: str | None = None
        self._model: str | None = None
        self._policy = ""
        self.found: set[str] = set()
        self.listed: set[str] = set()

    @property
    def _agent(self) -> str:
        index, home = _index_of(self._origin.name), _home_of(self._origin.name)
        folder = index.parent if index else home
        return self._origin.given_agent or (folder.resolve().name if folder else "") or self._origin.own_agent

    def take(self, pieces: Iterator[JsonPart], *, is_index: bool = False) -> Iterator[Parsed]:
        """Yield the problems of a file and, unless it is an index, the simulations, which wait for tasks and info."""
        document = _Tau2Document()
        for part in pieces:
            match part.path:
                case ():
                    yield from self._end(part, document, is_index=is_index)
                    document = _Tau2Document()
                case (str(key), *_) if part.faults:
                    document.seen.add(key)
                    document.wrong += part.inner_faults
                case ("simulations", int()):
                    if not is_index:
                        document.waiting.append(part)
                        if document.seen >= {"tasks", "info"}:
                            yield from self._waiting(document)
                case (str(key), *rest):
                    document.seen.add(key)
                    if key not in _OF_RESULTS and rest:
                        document.members[key].append(part.value)
                    elif key not in _OF_RESULTS:
                        document.members[key] = part.value
                    elif faults := self._learn(part, document):
                        yield Parsed(part.where, faults=tuple(faults))
                case _ if part.faults or not is_index:
                    yield Parsed(part.place, faults=part.faults or (("", "must be inside an object of results"),))

    def _end(self, part: JsonPart, document: _Tau2Document, *, is_index: bool) -> Iterator[Parsed]:
        """What remains when a document ends or breaks off."""
        yield from self._waiting(document)
        wrong = (*document.wrong, *part.faults)
        if not part.faults and document.members.keys() & _OF_A_SIMULATION and not is_index:
            yield self._parsed(part.where, document.members, wrong)
        elif wrong:
            yield Parsed(part.where, faults=wrong)
        elif part.value == {} and not document.seen & _OF_RESULTS and not is_index:
            yield _nothing(part.where)

    def _waiting(self, document: _Tau2Document) -> Iterator[Parsed]:
        """The simulations that were waiting for tasks and info."""
        waiting, document.waiting = document.waiting, []
        for part in waiting:
            yield self._parsed(part.place, part.value, ())

    def _learn(self, part: JsonPart, document: _Tau2Document) -> Faults:
        """Take in what applies to all simulations, and return its problems."""
        faults = Faults()
        match part.path:
            case ("tasks", int(place)):
                self._learn_task(Fields(part.value, ("tasks", place), faults), place, document)
            case ("info",):  # never keep all of it: the model's arguments may hold an API key
                info = Fields({"info": part.value}, (), faults).mapping("info")
                environment = info.mapping("environment_info")
                self._domain, self._policy = environment.text("domain_name"), environment.text("policy") or ""
                self._model = info.mapping("agent_info").text("llm")
            case ("simulation_index",):
                listed = Fields({"simulation_index": part.value}, (), faults).mappings("simulation_index")
                self.listed |= {identity for entry in listed if (identity := entry.name("id", required=True))}
            case (key,):  # the beginning of a list whose items follow, or a value that should be a list
                Fields({key: part.value}, (), faults).sequence(str(key))
                if key == "tasks":
                    self._tasks = {}
        return faults

    def _learn_task(self, task: Fields, place: int, document: _Tau2Document) -> None:
        criteria = task.mapping("evaluation_criteria")
        actions = _calls(criteria.mappings("actions")) if "actions" in criteria else None
        found = _Tau2Task(task.text("ticket") or "", actions, tuple(criteria.texts("communicate_info")))
        identity = task.name("id", required=True)
        if identity is None:
            return
        earlier = document.tasks.setdefault(identity, place)
        if earlier != place:
            task.faults.add((*task.path, "id"), f"must be unique, got {short(identity)} also at tasks[{earlier}]")
        self._tasks[identity] = found

    def _parsed(self, where: str, value: Any, wrong: tuple[tuple[str, str], ...]) -> Parsed:
        doubts = Faults()
        parsed = converted(where, value, wrong, lambda value, faults: self._conversation(value, faults, doubts))
        return replace(parsed, doubts=(*doubts, *parsed.doubts))

    def _conversation(self, value: Any, faults: Faults, doubts: Faults) -> Mapping[str, Any]:
        run = Fields(value, (), faults)
        task_id, session = run.name("task_id", required=True), run.name("id", required=True)
        self.found.add(session or "")
        task = self._tasks.get(task_id or "", _Tau2Task())
        messages = [_message(message) for message in run.mappings("messages")]
        reason, reward = run.text("termination_reason"), run.mapping("reward_info")
        score = given_reward(reward) if "reward" in reward else None
        turn = one_turn(messages, qa_id=f"task {task_id}")
        turn["query"] = turn["query"] or task.ticket
        error = None
        if reason in NOT_THE_AGENT:
            error = f"infrastructure: {reason}"
        elif score is None:
            error = f"infrastructure: no reward was recorded (termination_reason {reason})"
        if "messages" not in run and "ticks" in run:
            doubts.add((), VOICE)
            del turn["agentic"]
        expected = _expected(reward, reason, task.actions, doubts)
        complete(turn, expected, task.facts, error)
        cost = {side: run.number(f"{side}_cost") for side in ("agent", "user")}
        metadata = {
            "format": NAME,
            "domain": self._domain,
            "model": self._model,
            "termination_reason": reason,
            "reward": partial(score),
            "cost": {side: amount for side, amount in cost.items() if amount is not None},
            "tokens": token_totals(message.tokens for message in messages),
            "duration": run.number("duration"),
            "started": run.text("start_time"),
            "opening": opening(messages),
            "task_id_contradicted": True if ("", CONTRADICTION) in doubts else None,
        }
        return {
            "session_id": session,
            "assistant_id": self._agent,
            "task_id": task_id,
            "trial": run.whole("trial") or 0,
            "context": self._policy or run.text("policy") or "",
            "conversation": [turn],
            "recorded_score": None if error else success(score),
            "metadata": {key: content for key, content in metadata.items() if content not in (None, {}, "")},
        }


def _expected(
    reward: Fields, reason: str | None, known: list[dict[str, Any]] | None, doubts: Faults
) -> list[dict[str, Any]] | None:
    """The calls that the agent should have made; None if neither the checks nor the task (`known`) say."""
    if "action_checks" not in reward and (known is None or reason in PREMATURE or not reward.value):
        return known
    # a task that expects nothing has no checks
    checked = _calls([check.mapping("action", required=True) for check in reward.mappings("action_checks")])
    if known is not None and _sorted(checked) != _sorted(known):
        doubts.add((), CONTRADICTION)
    return checked


def _sorted(calls: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(call, sort_keys=True, default=str) for call in calls)


def _calls(actions: list[Fields]) -> list[dict[str, Any]]:
    """The agent's expected calls, without those of the simulated user."""
    found = []
    for action in actions:
        if not _by_agent(action):
            continue
        call: dict[str, Any] = {
            "tool_name": action.name("name", required=True) or "?",
            "parameters": action.arguments("arguments", "kwargs"),
        }
        if "compare_args" in action:
            compared = action.texts("compare_args")
            call["matchers"] = {"*": {"ignore": True}, **{name: {"exact": True} for name in compared}}
        found.append(call)
    return found


def _by_agent(call: Fields) -> bool:
    """Whether the agent made this call, not the simulated user."""
    requestor = call.raw("requestor")
    if requestor not in (None, "assistant", "user"):
        call.faults.add((*call.path, "requestor"), f"must be assistant or user, got {short(requestor)}")
    return requestor in (None, "assistant")


def _message(message: Fields) -> Message:
    text = message.text("content") or ""
    usage = message.mapping("usage")
    tokens = (usage.whole("prompt_tokens") or 0, usage.whole("completion_tokens") or 0)
    match message.raw("role"):
        case "assistant":
            calls = [named_call(call, "id", "arguments") for call in message.mappings("tool_calls") if _by_agent(call)]
            return Message("assistant", "" if text.strip() in CONTROL else text, calls, tokens=tokens)
        case "tool":  # the user's own tools are left out
            return Message("tool", text, answers=message.name("id")) if _by_agent(message) else Message("system")
    return from_user_or_system(message)
