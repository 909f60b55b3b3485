"""Read conversations from files: check everything first, then yield them one at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BufferedReader, BytesIO, RawIOBase
from typing import Any, Literal, get_args

from pydantic import ValidationError

from agentic_bayes.checks import check_choice
from agentic_bayes.errors import DoubtfulRecords, InvalidArgument, Problem, RecordsError
from agentic_bayes.records.base import problems_of
from agentic_bayes.records.formats.detection import FORMATS, READERS, RecordFormat, format_of, native_only
from agentic_bayes.records.formats.native import parse
from agentic_bayes.records.identity import TaskIndex
from agentic_bayes.records.model import Conversation
from agentic_bayes.records.sources import PathLike, Problems, Source, find_sources
from agentic_bayes.records.wire.json_text import NO_VALUE, REST_LOST, Parsed, joined
from agentic_bayes.records.wire.options import ReadOptions, with_identity
from agentic_bayes.records.wire.scores import rescored

__all__ = ["read_conversations"]

OnError = Literal["raise", "skip"]
ConversationOrProblems = Conversation | tuple[Problem, ...]


class Doubts:
    """Warnings about files that can be read: counted, and given once per file and kind."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[str]] = {}

    def add(self, source: str, parsed: Parsed) -> None:
        """Add the warnings of one record."""
        for _, message in parsed.doubts:
            self._found.setdefault((source, message), []).append(parsed.where)

    @property
    def messages(self) -> list[str]:
        """One message per file and kind."""
        found = []
        for (source, message), places in self._found.items():
            where = places[0] + (f" and {len(places) - 1:,} more" if len(places) > 1 else "")
            found.append(f"{joined(source, where)}: {message}")
        return found

    def warn(self) -> None:
        """Issue the warnings."""
        for message in self.messages:
            warnings.warn(DoubtfulRecords(message), stacklevel=4)


class LeftOut:
    """The records that could not be read and were left out: counted, with their first problems."""

    def __init__(self) -> None:
        self.records = self.read = 0
        self.problems = Problems()

    def takes(self, problems: Sequence[Problem]) -> bool:
        """Leave out the record with these problems; False if more than one record is lost with it."""
        if any(not problem.where or problem.message.endswith(REST_LOST) for problem in problems):
            return False
        self.records += 1
        self.problems.add(problems)
        return True

    def __str__(self) -> str:
        total = self.records + self.read
        return f"{self.records:,} of {total:,} records could not be read and were left out: {self.problems.kept[0]}"

    def warn(self) -> None:
        """Say how many there are."""
        if self.records:
            warnings.warn(DoubtfulRecords(str(self)), stacklevel=4)


class Conversations(Iterator[Conversation]):
    """Conversations, one at a time; `left_out` counts the records that could not be read."""

    def __init__(self, conversations: Iterator[Conversation], left_out: LeftOut) -> None:
        self._conversations = conversations
        self.left_out = left_out

    def __next__(self) -> Conversation:
        return next(self._conversations)


def read_conversations(
    paths: PathLike | Iterable[PathLike],
    *,
    format: RecordFormat = "auto",
    agent: str | None = None,
    fields: Mapping[str, str] | None = None,
    scorer: str | None = None,
    scale: tuple[float, float] | None = None,
    on_error: OnError = "raise",
) -> Conversations:
    """Read conversations one at a time, after checking all of them.

    Parameters
    ----------
    paths : path, or iterable of paths
        A file, a glob pattern, a folder (all .json, .jsonl, .json.gz, .jsonl.gz and .eval files in it and in its
        subfolders, except hidden ones), or several of these. Each file is read once, however often it is listed.
    format : {"auto", "native", "openai", "langchain", "tau-bench", "tau2", "inspect", "otel"}
        Format of the files; "auto" detects it from the content of each. JSON arrays, objects and JSON Lines, plain
        or gzipped, are always detected from the content. ``docs/formats.md`` says which fields are read.
    agent : str, optional
        The agent of records that name none; default: the file's name without its ending.
    fields : mapping of str to str, optional
        Where a record says its ``agent``, ``task``, ``trial``, ``session`` or ``reference``, as dotted paths:
        ``{"agent": "metadata.agent_version", "task": "metadata.task"}``. They are looked up in the raw record (in a
        trace: in the attributes of its spans and their resource), then in the record as it is read; what they say
        comes before what the format says. A record that lacks one is refused.
    scorer : str, optional
        The score that counts, by name, where a log has several; ``"checks.exact"`` reaches into a score that is an
        object.
    scale : (float, float), optional
        The lowest and the highest score, for logs with scores outside [0, 1].
    on_error : {"raise", "skip"}
        What to do with records that cannot be read. "skip" leaves them out, and a warning counts them. A file that
        cannot be read to its end, or of which nothing can be read, is an error anyway.

    Returns
    -------
    Conversations
        An iterator of `Conversation`;
        In the order of the paths (sorted within a glob and a folder) and within each file, exactly as written:
        a missing ``task_id`` or ``trial`` stays None.

    Raises
    ------
    InvalidArgument
        If an argument is wrong.
    RecordsError
        With the problems of all files. This call checks the files, including task identities. A pipe can be read
        only once: its records are checked as they are reached, and their tasks and trials once it ends.

    Warns
    -----
    DoubtfulRecords
        Once per file and kind, if a file contradicts itself or holds something that is not read.

    Notes
    -----
    Files are read twice, in pieces: memory is needed for the longest record and for all ids.
    """
    check_reading(format, agent)
    check_choice("on_error", on_error, get_args(OnError))
    problems, doubts, left_out = Problems(), Doubts(), LeftOut()
    options = ReadOptions({} if fields is None else fields, scorer, scale)
    sources = find_sources(paths, agent, format, problems, options)
    index = TaskIndex()
    for source in sources:
        if not source.once:
            problems.add(_faults_of(source, index, doubts, left_out if on_error == "skip" else None))
    piped = any(source.once for source in sources)
    problems.add(index.problems(complete=not problems and not piped))
    if problems:
        raise RecordsError(problems.kept, problems.total)
    doubts.warn()
    left_out.warn()
    return Conversations(_checked(sources, index if piped else None, left_out, skip=on_error == "skip"), left_out)


def _faults_of(source: Source, index: TaskIndex, doubts: Doubts, left_out: LeftOut | None) -> Iterator[Problem]:
    """The problems of a file, without those of records that are left out."""
    read = 0
    skipped: list[Problem] = []
    for record in records_of(source, index, doubts):
        if isinstance(record, Conversation):
            read += 1
        elif left_out is not None and left_out.takes(record):
            skipped += record
        else:
            yield from record
    if left_out is not None:
        left_out.read += read
    if not read:
        yield from skipped


def check_reading(format: object, agent: object) -> None:
    """Check the arguments that all readers share."""
    check_choice("format", format, FORMATS)
    if agent is not None and (not isinstance(agent, str) or not agent.strip()):
        raise InvalidArgument(f"agent must be text that is not blank, or None, got {agent!r}")


def _checked(
    sources: list[Source], index: TaskIndex | None, left_out: LeftOut, *, skip: bool
) -> Iterator[Conversation]:
    """Yield the conversations of checked files, and of pipes, which are checked as they are read."""
    doubts, piped = Doubts(), LeftOut()
    for source in sources:
        once = source.once
        for record in records_of(source, index if once else None, doubts if once else None):
            if isinstance(record, Conversation):
                piped.read += once
                yield record
            elif not skip or (once and not piped.takes(record)):
                raise RecordsError(record)
    if index is not None:
        index.resolve()
    doubts.warn()
    piped.warn()
    left_out.records += piped.records


def records_of(
    source: Source, index: TaskIndex | None, doubts: Doubts | None = None
) -> Iterator[ConversationOrProblems]:
    """The records of one source."""
    try:
        stream = open(source.name, "rb")  # noqa: SIM115 - only the opening is tried; `with` follows
    except OSError as error:
        yield (Problem(source.name, "", "", f"cannot be opened: {error.strerror or error}"),)
        return
    with stream:
        for parsed in _parsed(stream, source):
            record = _validated(parsed, source)
            if index is not None and isinstance(record, Conversation):
                index.add(record, source=source.name, where=parsed.where)
            if doubts is not None:
                doubts.add(source.name, parsed)
            yield record


def _parsed(stream: BufferedReader, source: Source) -> Iterator[Parsed]:
    """The records of a file before validation."""
    name = source.format
    if name == "auto" and stream.seekable():
        name = format_of(stream)
        stream.seek(0)
    elif name == "auto":
        replay = _Replay(stream)
        beginning: BufferedReader = BufferedReader(replay)
        name = format_of(beginning)
        beginning.detach()  # otherwise it would close the pipe when it is deleted
        replay.rewind()
        stream = BufferedReader(replay)
    if name == "native":
        found = parse(stream) if source.format == name else native_only(parse(stream))
        return (_rated(parsed, source.origin.options) for parsed in found)
    records: Iterator[Parsed] = READERS[name].read(stream, source.origin)
    return records


def _rated(parsed: Parsed, options: ReadOptions) -> Parsed:
    """A native record with its scores between 0 and 1."""
    value, faults = rescored(parsed.value, (), options)
    return replace(parsed, value=value, faults=(*parsed.faults, *faults)) if value is not parsed.value else parsed


class _Replay(RawIOBase):
    """A pipe whose beginning can be read twice."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream
        self._kept: BytesIO | None = BytesIO()
        self._again: BytesIO | None = None

    def rewind(self) -> None:
        """Replay what was read so far, then continue."""
        if self._kept is not None:
            self._again, self._kept = self._kept, None
            self._again.seek(0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._again is not None:
            if taken := self._again.readinto(buffer):
                return taken
            self._again = None
        data = self._stream.read1(len(buffer))
        buffer[: len(data)] = data
        if self._kept is not None:
            self._kept.write(data)
        return len(data)


def _validated(parsed: Parsed, source: Source) -> Conversation | tuple[Problem, ...]:
    value, where = parsed.value, parsed.where
    problems = tuple(Problem(parsed.file or source.name, where, field, message) for field, message in parsed.faults)
    if value is NO_VALUE:
        return problems
    value, missing = with_identity(value, parsed.raw, source.origin.options.fields)
    problems += tuple(Problem(parsed.file or source.name, where, field, message) for field, message in missing)
    if isinstance(value, dict) and "assistant_id" not in value:
        value = {**value, "assistant_id": source.origin.agent}
    try:
        conversation = Conversation.model_validate(value)
    except ValidationError as error:
        return problems + problems_of(error, source=source.name, where=where)
    return problems or conversation
