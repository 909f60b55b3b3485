"""Work out which task each conversation attempted, and which of its trials it was.

The rules do not depend on the order of the conversations:

- The task is `task_id` or, without one, the ordered ``qa_id`` values (`task_label`).
- `Conversation.error` means that the agent stopped, so turns may be missing. Without a `task_id`, such a
  conversation belongs to the one other task, of any agent, whose qa_ids are the same or begin with its own.
  If there is no such task, or more than one, the conversation is refused with the advice to give `task_id`.
  An `Interaction.error` only means that this turn failed: the conversation is complete.
- Trials are as given or, if no conversation of the task gives one, numbered 0, 1, … by ``session_id`` within
  the agent and task.
- Within an agent, a ``session_id`` occurs once; within a task of an agent, a trial does.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import file_digest
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from agentic_bayes.errors import Problem, RecordsError
from agentic_bayes.records.base import short

if TYPE_CHECKING:
    from agentic_bayes.records.model import Conversation

FEWEST_UNTOLD = 10
"""With fewer conversations, it is not doubtful that each is meant to be a task of its own."""

UNTOLD_TASKS = "none of the {:,} conversations names its task, so each is a task of its own with one trial"

CONTINUED = (
    "{:,} of the {:,} conversations are the beginning of a later one: in a log of requests, each request repeats its "
    "session so far, so keep only the last one of each session"
)

TELL_SESSIONS = "; if the files hold different runs, say where records name theirs: fields={'session': 'metadata.run'}"
"""What to do about files whose records name no session and get the same one."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Task and trial of one conversation."""

    task: str  # name of the task
    trial: int  # number of the attempt, within the agent and task


def task_label(qa_ids: Iterable[str]) -> str:
    r"""The name of a task that has no `task_id`."""
    return "|".join(qa_id.replace("\\", "\\\\").replace("|", "\\|") for qa_id in qa_ids)


@dataclass(frozen=True, slots=True)
class _ConversationHeader:
    """The part of a conversation that is kept: its ids and where it was read."""

    agent: str
    session: str
    task_id: str | None
    qa_ids: tuple[str, ...]
    trial: int | None
    stopped: bool
    source: str
    where: str

    @property
    def place(self) -> str:
        return ", ".join(part for part in (self.source, self.where) if part)

    @property
    def order(self) -> tuple[str, int, str, str, str]:
        """Sort key in a reader's order: line 9 comes before line 10."""
        number = re.search(r"\d+", self.where)
        return self.source, int(number.group()) if number else -1, self.where, self.agent, self.session


# a problem and the conversation that has it
_LocatedProblem = tuple[_ConversationHeader, Problem]


def _located(header: _ConversationHeader, field: str, message: str) -> _LocatedProblem:
    return header, Problem(header.source, header.where, field, message)


class TaskIndex:
    """Collects the ids and places of conversations and, once all are in, gives the task and trial of each."""

    def __init__(self) -> None:
        self._headers: list[_ConversationHeader] = []
        # keep equal ids once: every trial of a task has the same ones
        self._qa_ids: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._ends: dict[int, int] = {}  # all that was said and called in a conversation, hashed → its position
        self._said: defaultdict[str, set[int]] = defaultdict(set)  # file → the same of its conversations
        self.models: defaultdict[str, set[str]] = defaultdict(set)  # agent → the models that its records name
        self._continued: set[int] = set()  # conversations with which a later one begins

    def __len__(self) -> int:
        return len(self._headers)

    def add(self, conversation: Conversation, *, source: str = "", where: str = "") -> int:
        """Add one conversation, and return its position."""
        position = len(self._headers)
        qa_ids = conversation.qa_ids
        header = _ConversationHeader(
            agent=sys.intern(conversation.assistant_id),
            session=conversation.session_id,
            task_id=None if conversation.task_id is None else sys.intern(conversation.task_id),
            qa_ids=self._qa_ids.setdefault(qa_ids, qa_ids),
            trial=conversation.trial,
            stopped=conversation.error is not None,
            source=source,
            where=where or ("" if source else f"conversation {position}"),
        )
        self._headers.append(header)
        self._compare_beginnings(conversation, position)
        if isinstance(model := conversation.metadata.get("model"), str):
            self.models[header.agent].add(model)
        return position

    def _compare_beginnings(self, conversation: Conversation, position: int) -> None:
        """Note the earlier conversations with which this one begins."""
        state, states = hash(conversation.assistant_id), list[int]()
        for turn in conversation.conversation:
            state = hash((state, turn.query))
            for call in turn.agentic.tools_used or () if turn.agentic else ():
                state = hash((state, call.tool_name, repr(call.parameters)))
                states.append(state)
            if turn.assistant:
                state = hash((state, turn.assistant))
                states.append(state)
        self._continued.update(self._ends[one] for one in states[:-1] if one in self._ends)
        if states:
            self._ends[states[-1]] = position
            self._said[self._headers[position].source].add(states[-1])

    def copies(self) -> list[tuple[str, str]]:
        """Pairs of files of the same agent and the same bytes, several different conversations."""
        agents: defaultdict[str, set[str]] = defaultdict(set)
        for header in self._headers:
            agents[header.source].add(header.agent)
        several = [name for name, said in self._said.items() if len(said) > 1 and Path(name).is_file()]
        sizes = {name: Path(name).stat().st_size for name in several}
        repeated = {size for size, times in Counter(sizes.values()).items() if times > 1}
        first: dict[bytes, str] = {}
        pairs = []
        for name in sorted(name for name, size in sizes.items() if size in repeated):
            with open(name, "rb") as stream:
                one = first.setdefault(file_digest(stream, "sha256").digest(), name)
            if one != name and agents[one] & agents[name]:
                pairs.append((one, name))
        return pairs

    @property
    def continued(self) -> int:
        """How many conversations are the beginning of a later one, if most are; else 0."""
        return len(self._continued) if len(self._continued) * 2 >= len(self._headers) > 1 else 0

    def alone(self) -> list[tuple[str, str]]:
        """The sources that hold one conversation, the only one of its agent; and the agent."""
        sources = Counter(header.source for header in self._headers)
        agents = Counter(header.agent for header in self._headers)
        alone = (h for h in self._headers if sources[h.source] == agents[h.agent] == 1)
        return [(header.source, header.agent) for header in alone]

    @property
    def untold_tasks(self) -> int:
        """How many conversations there are, if each is a task of its own because none names its task; else 0."""
        headers = self._headers
        if len(headers) < FEWEST_UNTOLD or any(h.task_id not in (None, h.session) for h in headers):
            return 0
        # equal questions are the same task for every agent; equal names of sessions are not
        tasks = {header.qa_ids if header.task_id is None else (header.agent, header.task_id) for header in headers}
        return len(headers) if len(tasks) == len(headers) else 0

    def resolve(self) -> list[Identity]:
        """Task and trial of every conversation."""
        if problems := self.problems():
            raise RecordsError(problems)
        tasks, _ = _tasks(self._headers)
        trials, _ = _trials(self._headers, tasks)
        return [Identity(task, trial) for task, trial in zip(tasks, trials, strict=True)]

    def problems(self, *, complete: bool = True) -> list[Problem]:
        """The problems that `resolve` would raise."""
        tasks, unclear = _tasks(self._headers)
        found = _repeated_sessions(self._headers) + _trials(self._headers, tasks)[1]
        found += unclear if complete else []
        return [problem for header, problem in sorted(found, key=lambda one: (one[0].order, one[1].field))]


def _tasks(headers: list[_ConversationHeader]) -> tuple[list[str], list[_LocatedProblem]]:
    """The task of every conversation, and a problem for each whose task is unknown."""
    tasks = [header.task_id or task_label(header.qa_ids) for header in headers]
    unsure = [n for n, header in enumerate(headers) if header.stopped and header.task_id is None]
    problems = _borrowed_names(headers)
    if not unsure:
        return tasks, problems
    beginnings: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)

    def learn(qa_ids: tuple[str, ...], task: str) -> None:
        for length in range(1, len(qa_ids) + 1):
            beginnings[qa_ids[:length]].add(task)

    for qa_ids, task in {(h.qa_ids, tasks[n]) for n, h in enumerate(headers) if not h.stopped or h.task_id}:
        learn(qa_ids, task)
    # longest first: a longer conversation can settle the task of a shorter one
    by_length = sorted(unsure, key=lambda n: len(headers[n].qa_ids), reverse=True)
    for _, same_length in groupby(by_length, key=lambda n: len(headers[n].qa_ids)):
        positions = list(same_length)
        for n in positions:
            candidates = sorted(beginnings[headers[n].qa_ids])
            if len(candidates) == 1:
                tasks[n] = candidates[0]
            else:
                problems.append(_unclear_task(headers[n], candidates))
        for n in positions:
            learn(headers[n].qa_ids, tasks[n])
    return tasks, problems


def _unclear_task(header: _ConversationHeader, candidates: list[str]) -> _LocatedProblem:
    fits = "no other task begins with" if not candidates else f"{len(candidates)} tasks begin with"
    named = f" ({', '.join(short(task) for task in candidates[:5])})" if candidates else ""
    message = (
        f"give `task_id`: the agent stopped with an error and {fits} its qa_ids "
        f"{short(list(header.qa_ids))}{named}, so its task is unknown"
    )
    return _located(header, "task_id", message)


def _borrowed_names(headers: list[_ConversationHeader]) -> list[_LocatedProblem]:
    """Conversations without `task_id` whose name from qa_ids is the `task_id` of different conversations."""
    named: defaultdict[str, list[_ConversationHeader]] = defaultdict(list)
    for header in headers:
        if header.task_id is not None:
            named[header.task_id].append(header)
    problems: dict[str, _LocatedProblem] = {}
    for header in sorted((h for h in headers if named and h.task_id is None), key=lambda h: h.order):
        task = task_label(header.qa_ids)
        others = named.get(task, [])
        if others and task not in problems and all(other.qa_ids != header.qa_ids for other in others):
            place = min(others, key=lambda h: h.order).place
            message = (
                f"give `task_id`: without one, this task is named {short(task)} after its qa_ids, but {place} "
                "has that task_id and other qa_ids"
            )
            problems[task] = _located(header, "task_id", message)
    return list(problems.values())


def _repeated_sessions(headers: list[_ConversationHeader]) -> list[_LocatedProblem]:
    sessions: defaultdict[tuple[str, str], list[_ConversationHeader]] = defaultdict(list)
    for header in headers:
        sessions[header.agent, header.session].append(header)
    problems = []
    for (agent, session), same in sessions.items():
        first, *others = sorted(same, key=lambda h: h.order)
        which = f"{short(session)} of agent {short(agent)}"
        message = f"must be unique within an agent, got {which} also at {first.place}"
        problems += [
            _located(other, "session_id", message + (TELL_SESSIONS if other.source != first.source else ""))
            for other in others
        ]
    return problems


def _trials(headers: list[_ConversationHeader], tasks: list[str]) -> tuple[list[int], list[_LocatedProblem]]:
    """The trial of every conversation, and a problem for each trial that is repeated or partly missing."""
    groups: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for n, header in enumerate(headers):
        groups[header.agent, tasks[n]].append(n)
    trials = [0] * len(headers)
    problems: list[_LocatedProblem] = []
    for (agent, task), positions in groups.items():
        of_whom = f"task {short(task)} of agent {short(agent)}"
        given = sorted((headers[n] for n in positions if headers[n].trial is not None), key=lambda h: h.order)
        missing = sorted((headers[n] for n in positions if headers[n].trial is None), key=lambda h: h.order)
        if given and missing:
            message = f"must be given for all trials of {of_whom} or for none; it is missing here and given at "
            problems.append(_located(missing[0], "trial", message + given[0].place))
        first: dict[int | None, _ConversationHeader] = {}
        for header in given:
            earlier = first.setdefault(header.trial, header)
            if header.session != earlier.session:
                message = f"must be unique within a task, got {header.trial} of {of_whom} also at {earlier.place}"
                problems.append(_located(header, "trial", message))
        for number, n in enumerate(sorted(positions, key=lambda n: headers[n].session)):
            given_trial = headers[n].trial
            trials[n] = number if given_trial is None else given_trial
    return trials, problems
