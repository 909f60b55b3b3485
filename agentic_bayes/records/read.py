"""Read conversations from files: check everything first, then yield them one at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from io import BufferedReader, BytesIO, RawIOBase
from typing import Any

from pydantic import ValidationError

from agentic_bayes.checks import check_choice
from agentic_bayes.errors import DoubtfulRecords, InvalidArgument, Problem, RecordsError
from agentic_bayes.records.base import problems_of
from agentic_bayes.records.formats.detection import FORMATS, READERS, RecordFormat, format_of, native_only
from agentic_bayes.records.formats.native import parse
from agentic_bayes.records.identity import TaskIndex
from agentic_bayes.records.model import Conversation
from agentic_bayes.records.sources import PathLike, Problems, Source, find_sources
from agentic_bayes.records.wire.json_text import NO_VALUE, Parsed, joined

__all__ = ["read_conversations"]

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


def read_conversations(
    paths: PathLike | Iterable[PathLike], *, format: RecordFormat = "auto", agent: str | None = None
) -> Iterator[Conversation]:
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

    Returns
    -------
    iterator of Conversation
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
    problems, doubts = Problems(), Doubts()
    sources = find_sources(paths, agent, format, problems)
    index = TaskIndex()
    for source in sources:
        if not source.once:
            for record in records_of(source, index, doubts):
                problems.add(() if isinstance(record, Conversation) else record)
    piped = any(source.once for source in sources)
    problems.add(index.problems(complete=not problems and not piped))
    if problems:
        raise RecordsError(problems.kept, problems.total)
    doubts.warn()
    return _checked(sources, index if piped else None)


def check_reading(format: object, agent: object) -> None:
    """Check the arguments that all readers share."""
    check_choice("format", format, FORMATS)
    if agent is not None and (not isinstance(agent, str) or not agent.strip()):
        raise InvalidArgument(f"agent must be text that is not blank, or None, got {agent!r}")


def _checked(sources: list[Source], index: TaskIndex | None) -> Iterator[Conversation]:
    """Yield the conversations of checked files, and of pipes, which are checked as they are read."""
    doubts = Doubts()
    for source in sources:
        once = source.once
        for record in records_of(source, index if once else None, doubts if once else None):
            if not isinstance(record, Conversation):
                raise RecordsError(record)
            yield record
    if index is not None:
        index.resolve()
    doubts.warn()


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
        return parse(stream) if source.format == name else native_only(parse(stream))
    records: Iterator[Parsed] = READERS[name].read(stream, source.origin)
    return records


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
    if isinstance(value, dict) and "assistant_id" not in value:
        value = {**value, "assistant_id": source.origin.agent}
    try:
        conversation = Conversation.model_validate(value)
    except ValidationError as error:
        return problems + problems_of(error, source=source.name, where=where)
    return problems or conversation
