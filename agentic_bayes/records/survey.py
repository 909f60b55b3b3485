"""Summarise conversation files and collect every problem, without stopping at the first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from agentic_bayes.errors import InvalidArgument, Problem
from agentic_bayes.records.base import NOT_AN_OBJECT
from agentic_bayes.records.formats.detection import UNKNOWN, RecordFormat, detected
from agentic_bayes.records.identity import Identity, TaskIndex, task_label
from agentic_bayes.records.model import Conversation
from agentic_bayes.records.read import Doubts, LeftOut, check_reading, records_of
from agentic_bayes.records.sources import PathLike, Problems, find_sources
from agentic_bayes.records.wire.json_text import NO_CONVERSATION, NOT_JSON
from agentic_bayes.records.wire.options import NO_OPTIONS, ReadOptions


@dataclass(frozen=True, slots=True)
class FileReport:
    """What is in one file."""

    name: str  # the file
    format: str  # its format
    conversations: int = 0  # that could be read
    interactions: int = 0
    agents: tuple[str, ...] = ()  # in them
    errors: int = 0  # conversations in which the agent or its infrastructure crashed
    recorded: int = 0  # conversations with a recorded score
    expectations: int = 0  # interactions with expected tool calls
    bad_records: int = 0  # records that could not be read


@dataclass(frozen=True, slots=True)
class FirstRecord:
    """What became of the first record that could be read."""

    source: str  # the file
    agent: str
    task: str
    trial: int
    query: str  # the first turn's
    answer: str | None  # the last turn's
    calls: tuple[str, ...]  # names of the tools that were called, in order
    recorded_score: float | None
    error: str | None

    @classmethod
    def of(cls, conversation: Conversation, source: str, identity: Identity | None) -> FirstRecord:
        """The parts of a conversation that show whether it was read as it was meant."""
        turns = conversation.conversation
        calls = [call.tool_name for turn in turns if turn.agentic for call in turn.agentic.tools_used]
        scores = [conversation.recorded_score, *(turn.recorded_score for turn in turns)]
        errors = [conversation.error, *(turn.error for turn in turns)]
        return cls(
            source=source,
            agent=conversation.assistant_id,
            task=identity.task if identity else conversation.task_id or task_label(conversation.qa_ids),
            trial=identity.trial if identity else conversation.trial or 0,
            query=turns[0].query,
            answer=turns[-1].assistant,
            calls=tuple(calls),
            recorded_score=next((score for score in scores if score is not None), None),
            error=next(filter(None, errors), None),
        )


@dataclass(frozen=True)
class Survey:
    """What is in a set of files."""

    files: tuple[FileReport, ...]  # one per file
    agents: dict[str, int] = field(default_factory=dict)  # agent → conversations
    tasks: int = 0  # how many different tasks were attempted; 0 if there are problems
    problems: tuple[Problem, ...] = ()  # the first thousand problems
    n_problems: int = 0  # how many problems there are
    # kind of problem → how often it occurs, most frequent first
    kinds: dict[str, int] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()  # warnings about files that could be read
    first: FirstRecord | None = None  # the first record that could be read
    left_out: str = ""  # how many records and files could not be read and were left out

    @property
    def conversations(self) -> int:
        """The total over all files."""
        return sum(file.conversations for file in self.files)

    @property
    def interactions(self) -> int:
        """The total over all files."""
        return sum(file.interactions for file in self.files)

    @property
    def recorded(self) -> int:
        """Conversations with a recorded score, in all files."""
        return sum(file.recorded for file in self.files)

    @property
    def errors(self) -> int:
        """Conversations with an error, in all files."""
        return sum(file.errors for file in self.files)


def survey(
    paths: PathLike | Iterable[PathLike],
    *,
    format: RecordFormat = "auto",
    agent: str | None = None,
    options: ReadOptions = NO_OPTIONS,
    skip: bool = False,
) -> Survey:
    """Read conversation files and summarise them, with every problem found; `skip` leaves out bad records."""
    check_reading(format, agent)
    problems, doubts, index, left_out = Problems(), Doubts(), TaskIndex(), LeftOut()
    kinds: Counter[str] = Counter()
    agents: Counter[str] = Counter()

    def note(found: Iterable[Problem]) -> None:
        found = list(found)
        problems.add(found)
        kinds.update(map(_kind, found))

    sources = find_sources(paths, agent, format, problems, options)
    kinds.update(map(_kind, problems.kept))
    files = []
    first: tuple[Conversation, str] | None = None
    for source in sources:
        if source.once:
            wrong = "is not a regular file and can be read only once: save it to a file first"
            raise InvalidArgument(f"{source.name}: {wrong}")
        counts: Counter[str] = Counter()
        fatal, skipped = list[Problem](), list[Problem]()  # where bad records are left out
        named: Counter[str] = Counter()
        for record in records_of(source, index, doubts, skip=skip):
            if isinstance(record, Conversation):
                _count(record, counts)
                first = first or (record, source.name)
                named[record.assistant_id] += 1
            else:
                counts["bad_records"] += 1
                if skip:
                    (skipped if left_out.takes(record) else fatal).extend(record)
                else:
                    note(record)
        agents.update(named)
        if counts["conversations"]:
            kinds.update(map(_kind, skipped))
        note(left_out.of_file(counts["conversations"], fatal, skipped))
        found = source.format if source.format != "auto" else detected(source.name) or "unreadable"
        files.append(FileReport(source.name, found, agents=tuple(named), **counts))
    note(left_out.settle())
    note(index.problems(complete=not problems))
    note(doubts.of_all(sources, index))
    identities = [] if problems else index.resolve()
    return Survey(
        files=tuple(files),
        agents=dict(sorted(agents.items())),
        tasks=len({identity.task for identity in identities}),
        problems=tuple(problems.kept),
        n_problems=problems.total,
        kinds=dict(kinds.most_common()),
        doubts=tuple(doubts.messages),
        first=FirstRecord.of(*first, identities[0] if identities else None) if first else None,
        left_out=left_out.counts,
    )


def holds_conversations(path: PathLike) -> bool:
    """Whether a file holds conversations, perhaps broken ones, and not some other JSON."""
    found = survey(path)
    return found.conversations > 0 or not all(kind.startswith(_NO_RECORDS) for kind in found.kinds)


def _count(conversation: Conversation, counts: Counter[str]) -> None:
    turns = conversation.conversation
    counts["conversations"] += 1
    counts["interactions"] += len(turns)
    crashed = any(conversation.error_at(i) is not None for i in range(len(turns)))
    own = any(turn.recorded_score is not None for turn in turns)
    counts["errors"] += crashed
    counts["recorded"] += not crashed and (conversation.recorded_score is not None or own)
    counts["expectations"] += sum(turn.ground_truth_agentic is not None for turn in turns)


def _kind(problem: Problem) -> str:
    """The problem without its place and its value, so that equal problems can be counted."""
    place = re.sub(r"\[\d+\]", "[…]", problem.field)
    rule = _rule(problem.message)
    return f"{place}: {rule}" if place else rule


def _rule(message: str) -> str:
    """A message without what came, and without names."""
    rule = re.split(r", got |: did you mean|; it is missing here| near | \(line ", message, maxsplit=1)[0]
    return re.sub(r"'[^']*'", "'…'", rule)


# problems of files that hold something else
_NO_RECORDS = tuple(map(_rule, (UNKNOWN, NOT_AN_OBJECT, NOT_JSON, NO_CONVERSATION)))
