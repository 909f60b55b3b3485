"""Conversations from files: everything is checked before the first one is given out."""

from __future__ import annotations

import glob
import os
import stat
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader, BytesIO, RawIOBase
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agentic_bayes.errors import DoubtfulRecords, InvalidArgument, Problem, RecordsError, check_choice, did_you_mean
from agentic_bayes.records.base import problems_of, short
from agentic_bayes.records.formats import tau2
from agentic_bayes.records.formats.detect import FORMATS, Format, format_of, reader_of
from agentic_bayes.records.formats.json_text import NO_VALUE, Parsed
from agentic_bayes.records.formats.layout import Origin
from agentic_bayes.records.formats.native import parse
from agentic_bayes.records.identity import TaskIndex
from agentic_bayes.records.model import Conversation

__all__ = ["SUFFIXES", "Format", "PathLike", "read_conversations"]

PathLike = str | os.PathLike[str]
SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
"""Endings of the names of conversation files."""

_LOOKED_FOR = (*SUFFIXES, ".eval")
"""Endings of the names of files that are read of a folder; Inspect's logs end in ``.eval``."""

_KEPT = 1000


@dataclass(frozen=True, slots=True)
class _Source:
    """One file, or one pipe, which can be read once only."""

    origin: Origin
    format: str
    once: bool

    @property
    def name(self) -> str:
        return self.origin.name


_Record = Conversation | tuple[Problem, ...]


class _Problems:
    """Problems as they are found: the first ones are kept, all are counted."""

    def __init__(self) -> None:
        self._kept: list[Problem] = []
        self._total = 0

    def add(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self._total += 1
            if len(self._kept) < _KEPT:
                self._kept.append(problem)

    def __bool__(self) -> bool:
        return self._total > 0

    def error(self) -> RecordsError:
        return RecordsError(self._kept, self._total)


class _Doubts:
    """What does not stop a file from being read, but should be known: counted, and said once per file and kind."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[str]] = {}

    def add(self, source: str, parsed: Parsed) -> None:
        for _, message in parsed.doubts:
            self._found.setdefault((source, message), []).append(parsed.where)

    def warn(self) -> None:
        for (source, message), places in self._found.items():
            where = f"{places[0]}" + (f" and {len(places) - 1:,} more" if len(places) > 1 else "")
            warnings.warn(DoubtfulRecords(f"{source}, {where}: {message}"), stacklevel=4)


def read_conversations(
    paths: PathLike | Iterable[PathLike], *, format: Format = "auto", agent: str | None = None
) -> Iterator[Conversation]:
    """Read conversations, one at a time, after checking all of them.

    Parameters
    ----------
    paths : path, or iterable of paths
        A file, a glob pattern, a folder (all .json, .jsonl, .json.gz and .jsonl.gz files in it and in its
        subfolders, but hidden ones), or several of these. A path that comes up twice is read once.
    format : {"auto", "native"}
        Format of the files. A JSON array, a single JSON object and JSON Lines, plain or gzipped, are told
        apart by content.
    agent : str, optional
        The agent of records without ``assistant_id``; without it, the file's name up to its ending.

    Returns
    -------
    iterator of Conversation
        In the order of the paths (sorted within a glob and a folder) and of each file, exactly as written:
        a missing ``task_id`` or ``trial`` stays None.

    Raises
    ------
    InvalidArgument
        Where an argument is wrong.
    RecordsError
        With the problems of all files. Files are checked, task identities included, by this call. A pipe can
        be read only once: its records are checked when they are reached, and what they tell of tasks and
        trials when it has ended.

    Notes
    -----
    Files are read twice, piece by piece: memory is needed for the longest record and for the ids of all.
    """
    check_choice("format", format, FORMATS)
    if agent is not None and (not isinstance(agent, str) or not agent.strip()):
        raise InvalidArgument(f"agent must be text that is not blank, or None, got {agent!r}")
    problems, doubts = _Problems(), _Doubts()
    sources = _sources(paths, agent, format, problems)
    index = TaskIndex()
    for source in sources:
        if not source.once:
            for record in _records(source, index, doubts):
                problems.add(() if isinstance(record, Conversation) else record)
    piped = any(source.once for source in sources)
    problems.add(index.problems(complete=not problems and not piped))
    if problems:
        raise problems.error()
    doubts.warn()
    return _checked(sources, index if piped else None)


def _checked(sources: list[_Source], index: TaskIndex | None) -> Iterator[Conversation]:
    """The conversations of files that were checked, and of pipes, which are checked on the way."""
    doubts = _Doubts()
    for source in sources:
        once = source.once
        for record in _records(source, index if once else None, doubts if once else None):
            if not isinstance(record, Conversation):
                raise RecordsError(record)
            yield record
    if index is not None:
        index.resolve()
    doubts.warn()


def _records(source: _Source, index: TaskIndex | None, doubts: _Doubts | None = None) -> Iterator[_Record]:
    """The records of one source: each a conversation, or all that is wrong with it."""
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


def _parsed(stream: BufferedReader, source: _Source) -> Iterator[Parsed]:
    """The records as they stand in the file."""
    name = source.format
    if name == "auto" and stream.seekable():
        name = format_of(stream)
        stream.seek(0)
    elif name == "auto":
        replay = _Replay(stream)
        beginning = BufferedReader(replay)
        name = format_of(beginning)
        beginning.detach()  # or it would close the pipe when it goes
        replay.rewind()
        stream = BufferedReader(replay)
    return parse(stream) if name == "native" else reader_of(name).read(stream, source.origin)


class _Replay(RawIOBase):
    """A pipe of which the beginning can be read twice."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream
        self._kept: BytesIO | None = BytesIO()
        self._again: BytesIO | None = None

    def rewind(self) -> None:
        """Give what was read once more, then go on."""
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


def _validated(parsed: Parsed, source: _Source) -> Conversation | tuple[Problem, ...]:
    value, where = parsed.value, parsed.where
    problems = tuple(Problem(source.name, where, field, message) for field, message in parsed.faults)
    if value is NO_VALUE:
        return problems
    if isinstance(value, dict) and "assistant_id" not in value:
        value = {**value, "assistant_id": source.origin.agent}
    try:
        conversation = Conversation.model_validate(value)
    except ValidationError as error:
        return problems + problems_of(error, source=source.name, where=where)
    return problems or conversation


def _sources(paths: Any, agent: str | None, format: str, problems: _Problems) -> list[_Source]:
    """The files that the paths stand for, each once."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    if isinstance(given, (bytes, dict)) or not isinstance(given, Iterable):
        raise InvalidArgument(f"paths must be a path or several, got {short(paths)}")
    names: dict[str, str] = {}
    empty = True
    for path in given:
        empty = False
        name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
        if not isinstance(name, str) or not name.strip() or "\0" in name:
            raise InvalidArgument(f"paths must be file names, glob patterns or folders, got {short(path)}")
        for found in _expanded(name, problems):
            names.setdefault(os.path.abspath(found), found)
    if empty:
        raise InvalidArgument("paths must name at least one file, got none")
    _leave_out_parts(names)
    return [_Source(Origin(name, _stem(name), agent), format, not _is_regular(name)) for name in names.values()]


def _leave_out_parts(names: dict[str, str]) -> None:
    """Drop the files of a folder of tau2 simulations whose ``results.json`` is read too, and brings them along."""
    for path in [path for path in names if os.path.basename(path) == tau2.INDEX]:
        folder = os.path.join(os.path.dirname(path), tau2.FOLDER) + os.sep
        inside = [other for other in names if other.startswith(folder)]
        if inside and _is_tau2(path):
            for other in inside:
                del names[other]


def _is_tau2(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            return format_of(stream) == tau2.NAME
    except OSError:
        return False


def _expanded(name: str, problems: _Problems) -> list[str]:
    """The files that one path stands for."""
    if os.path.isdir(name):
        files = _files_in(name)
        wrong = f"is a folder without any file whose name ends in {', '.join(_LOOKED_FOR)}"
    elif os.path.exists(name):
        return [name]
    elif glob.has_magic(name):
        matches = sorted(glob.glob(name, recursive=True))
        files = [file for match in matches for file in (_files_in(match) if os.path.isdir(match) else [match])]
        wrong = "matches no file"
    else:
        files, wrong = [], _does_not_exist(Path(name))
    if not files:
        problems.add([Problem(name, "", "", wrong)])
    return files


def _files_in(folder: str) -> list[str]:
    found = []
    for path in Path(folder).rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.name.lower().endswith(_LOOKED_FOR) and not hidden and path.is_file():
            found.append(str(path))
    return sorted(found)


def _does_not_exist(path: Path) -> str:
    if not path.parent.is_dir():
        return f"does not exist, nor does the folder {str(path.parent)!r}"
    try:
        names = sorted(os.listdir(path.parent))
    except OSError:
        return "does not exist"
    names = [name for name in names if name.lower().endswith(_LOOKED_FOR) and name[0] != "."]
    return f"does not exist: {did_you_mean(path.name, names)}" if names else "does not exist"


def _is_regular(name: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(name).st_mode)
    except OSError:
        return True  # opening it will say what is wrong


def _stem(name: str) -> str:
    stem = os.path.basename(name)
    for ending in (".gz", ".jsonl", ".json", ".eval"):
        if stem.lower().endswith(ending) and len(stem) > len(ending):
            stem = stem[: -len(ending)]
    return stem
