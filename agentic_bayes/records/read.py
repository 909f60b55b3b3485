"""Read conversations from files: check everything first, then yield them one at a time."""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BufferedReader, BytesIO, RawIOBase
from itertools import islice
from typing import Any, Literal, cast, get_args

from pydantic import ValidationError

from agentic_bayes.checks import check_choice
from agentic_bayes.errors import DoubtfulRecords, Problem, RecordsError
from agentic_bayes.formatting import ELLIPSIS, first_few, first_problems, plural
from agentic_bayes.records.agents import check_agent, runs_apart
from agentic_bayes.records.base import problems_of, short
from agentic_bayes.records.formats.detection import FORMATS, READERS, RecordFormat, format_of, native_only
from agentic_bayes.records.formats.native import parse
from agentic_bayes.records.identity import CONTINUED, UNTOLD_TASKS, TaskIndex
from agentic_bayes.records.model import Conversation
from agentic_bayes.records.sources import PathLike, Problems, Source, find_sources
from agentic_bayes.records.wire.characters import DOUBT, one_form, readable
from agentic_bayes.records.wire.json_text import NO_VALUE, REST_LOST, Parsed, joined
from agentic_bayes.records.wire.options import ReadOptions, with_identity
from agentic_bayes.records.wire.scores import rescored
from agentic_bayes.records.wire.unpacking import RATIO, PackedReader, unpacked_gzip

__all__ = ["read_conversations"]

OnError = Literal["raise", "skip"]
TELL_TASKS = (
    UNTOLD_TASKS + "; if tasks were tried several times, say where a record names its task: "
    "fields={{'task': 'metadata.task'}} (--fields task=metadata.task)"
)
SEVERAL_MODELS = (
    "no record names its agent, so {} counts as one agent with several models ({}); if each model is an agent: "
    "fields={{'agent': 'metadata.model'}} (--fields agent=metadata.model)"
)
ANY_FIELD = {"task": "task"}
ConversationOrProblems = Conversation | tuple[Problem, ...]


class Doubts:
    """Warnings about files that can be read: counted, and given once per file and kind."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[str]] = {}
        # what an id names, and its one form → the form it had first, and whether another was seen
        self._forms: dict[tuple[str, str], str | None] = {}

    def add(self, source: str, parsed: Parsed) -> None:
        """Add the warnings of one record."""
        for _, message in parsed.doubts:
            self._found.setdefault((source, message), []).append(parsed.where)

    def add_forms(self, source: str, where: str, forms: Iterable[tuple[str, str, str]]) -> None:
        """Say once if ids in different Unicode forms became one id."""
        for kind, written, form in forms:
            first = self._forms.setdefault((kind, form), written)
            if first is not None and first != written:
                self._forms[kind, form] = None
                message = f"{kind} whose names differ only in their Unicode form are the same: {short(form)}"
                self._found.setdefault((source, message), []).append(where)

    def of_all(self, sources: Iterable[Source], index: TaskIndex) -> list[Problem]:
        """Add the warnings about all files together, and give the problems."""
        if untold := index.untold_tasks:
            self._found["", TELL_TASKS.format(untold)] = [""]
        if continued := index.continued:
            self._found["", CONTINUED.format(continued, len(index))] = [""]
        unnamed = [source for source in sources if source.origin.given_agent is None]
        for agent in dict.fromkeys(source.origin.agent for source in unnamed):
            if len(models := sorted(index.models[agent])) > 1:
                listed = first_few(list(map(short, models)), SHOWN, rest=ELLIPSIS)
                self._found["", SEVERAL_MODELS.format(short(agent), listed)] = [""]
        for one, other in index.copies():
            self._found[other, f"has the same content as {one}, and both count: leave one out if it is a copy"] = [""]
        own = {source.name: source.origin.own_agent for source in unnamed}
        alone = [source for source, agent in index.alone() if agent == own.get(source)]
        if (said := runs_apart(alone)) is None:
            return []
        refused, message = said
        if refused:
            return [Problem(alone[0], "", "", message)]
        self._found["", message] = [""]
        return []

    @property
    def messages(self) -> list[str]:
        """One message per file and kind."""
        found = []
        for (source, message), places in self._found.items():
            place = joined(source, first_few(places, 1))
            found.append(f"{place}: {message}" if place else message)
        return found

    def warn(self) -> None:
        """Issue the warnings."""
        for message in self.messages:
            warnings.warn(DoubtfulRecords(message), stacklevel=4)


SHOWN = 3
SKIP = 'To read the rest without them: on_error="skip" (--skip-bad)'


class LeftOut:
    """The records and files that could not be read and were left out: counted, with their first problems."""

    def __init__(self) -> None:
        self.records = self.files = self.read = 0
        self.problems = Problems()
        self._unread: list[Problem] = []  # of files of which nothing could be read
        self._broken = 0

    def takes(self, problems: Sequence[Problem]) -> bool:
        """Leave out the record with these problems; False if more than one record is lost with it."""
        if any(not problem.where or problem.message.endswith(REST_LOST) for problem in problems):
            return False
        self.records += 1
        self.problems.add(problems)
        return True

    def of_file(self, read: int, fatal: Sequence[Problem], skipped: Sequence[Problem]) -> Sequence[Problem]:
        """Count what was read of a file, and give its fatal problems; if nothing was, they are held until `settle`."""
        self.read += read
        if read:
            return fatal
        self._unread += fatal or skipped
        self._broken += bool(fatal)
        return ()

    def settle(self) -> list[Problem]:
        """Leave out the files that were held; their problems, if no file could be read at all."""
        if not self.read:
            return self._unread
        self.files = self._broken
        self.problems.add(self._unread)
        return []

    def __bool__(self) -> bool:
        return self.records + self.files > 0

    @property
    def counts(self) -> str:
        """How many there are, in words."""
        records = f"{self.records:,} of {self.records + self.read:,} records" if self.records else ""
        files = plural(self.files, "file") if self.files else ""
        return " and ".join(filter(None, (records, files)))

    def __str__(self) -> str:
        shown = first_problems(list(map(str, self.problems.kept[:SHOWN])), SHOWN, total=self.problems.total)
        return f"{self.counts} could not be read and were left out: {shown}"

    def warn(self) -> None:
        """Say how many there are."""
        if self:
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
    max_ratio: float = RATIO,
) -> Conversations:
    """Read conversations one at a time, after checking all of them.

    Parameters
    ----------
    paths : path, or iterable of paths
        A file, a glob pattern, a folder (all .json, .jsonl, .json.gz, .jsonl.gz and .eval files in it and in its
        subfolders, except hidden ones), or several of these. Each file is read once, however often it is listed.
    format : str
        Format of the files; "auto" detects it from the content of each. JSON arrays, objects and JSON Lines, plain
        or gzipped, are always detected from the content. ``docs/formats.md`` lists the formats, and the fields that
        are read.
    agent : str, optional
        The agent of records that name none: a name, or a rule with ``{stem}`` (the file's name without its ending),
        ``{parent}`` (its folder) or ``{grandparent}``. Default: the stem or, where stems repeat, the nearest folders
        that tell these files apart (``v1/log.jsonl`` and ``v2/log.jsonl`` are of v1 and v2).
    fields : mapping of str to str, optional
        Where a record says its ``agent``, ``task``, ``trial``, ``session`` or ``reference``, as dotted paths:
        ``{"agent": "metadata.agent_version", "task": "metadata.task"}``. They are looked up in the raw record (in a
        trace: in the attributes of its spans and their resource), then in the record as it is read; they override what
        the format says. A record that lacks one is refused.
    scorer : str, optional
        The score that counts, by name, where a log has several; ``"checks.exact"`` reaches into a score that is an
        object.
    scale : (float, float), optional
        The lowest and the highest score, for logs with scores outside [0, 1].
    on_error : {"raise", "skip"}
        What to do with records that cannot be read. "skip" leaves them out, and a warning counts them; it also
        leaves out files of which nothing can be read, if others can be. The log of one session whose last line is cut
        off is read without this line, and its last turn has an error. Any other file that breaks off after some records
        is an error anyway.
    max_ratio : float
        How many times its packed size a gzipped file, or a member of a zip file, may unpack to; smaller ones than
        64 MiB always may.

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
    options = ReadOptions({} if fields is None else fields, scorer, scale, max_ratio)
    sources = find_sources(paths, agent, format, problems, options)
    index = TaskIndex()
    for source in sources:
        if not source.once:
            problems.add(_faults_of(source, index, doubts, left_out if on_error == "skip" else None))
    advice = SKIP if problems and on_error != "skip" else ""
    piped = any(source.once for source in sources)
    problems.add(left_out.settle())
    problems.add(index.problems(complete=not problems and not piped))
    problems.add(doubts.of_all(sources, index))
    if problems:
        raise RecordsError(problems.kept, problems.total, advice)
    doubts.warn()
    left_out.warn()
    return Conversations(_checked(sources, index if piped else None, left_out, skip=on_error == "skip"), left_out)


def _faults_of(source: Source, index: TaskIndex, doubts: Doubts, left_out: LeftOut | None) -> Iterator[Problem]:
    """The problems of a file, without those of records that are left out."""
    read = 0
    fatal, skipped = list[Problem](), list[Problem]()
    for record in records_of(source, index, doubts, skip=left_out is not None):
        if isinstance(record, Conversation):
            read += 1
        elif left_out is None:
            yield from record
        else:
            (skipped if left_out.takes(record) else fatal).extend(record)
    if left_out is not None:
        yield from left_out.of_file(read, fatal, skipped)


def check_reading(format: object, agent: object) -> None:
    """Check the arguments that all readers share."""
    check_choice("format", format, FORMATS)
    check_agent(agent)


def _checked(
    sources: list[Source], index: TaskIndex | None, left_out: LeftOut, *, skip: bool
) -> Iterator[Conversation]:
    """Yield the conversations of checked files, and of pipes, which are checked as they are read."""
    doubts, piped = Doubts(), LeftOut()
    for source in sources:
        once = source.once
        for record in records_of(source, index if once else None, doubts if once else None, skip=skip):
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
    source: Source, index: TaskIndex | None, doubts: Doubts | None, *, skip: bool
) -> Iterator[ConversationOrProblems]:
    """The records of one source; `skip` also reads a session without its last line if that is cut off."""
    records = _records(source, index, doubts)
    start = list(islice(records, 2)) if skip and not source.once else []
    if len(start) == 1 and not isinstance(start[0], Conversation) and len(start[0]) == 1:
        (torn,) = start[0]
        if whole := _before(torn, source):
            yield (replace(torn, message=torn.message.removesuffix(REST_LOST)),)
            yield from _records(source, index, doubts, whole=whole, torn=f"the log breaks off in {torn.where}")
            return
    yield from start
    yield from records


def _before(torn: Problem, source: Source) -> bytes:
    """The lines before a file's last one, if this problem is about the last line and that is not JSON; else nothing."""
    number = torn.where.removeprefix("line ")
    if torn.source != source.name or not number.isdecimal():
        return b""
    with contextlib.suppress(OSError), PackedReader(open(source.name, "rb").detach()) as stream:
        stream.max_ratio = source.origin.options.max_ratio
        lines = (unpacked_gzip(stream) if stream.peek(2)[:2] == b"\x1f\x8b" else stream).readlines()
        last = b"".join(lines[int(number) - 1 :])
        try:
            json.loads(last)
        except ValueError:
            return b"" if b"\n" in last.strip() else b"".join(lines[: int(number) - 1])
    return b""


def _records(
    source: Source, index: TaskIndex | None, doubts: Doubts | None, *, whole: bytes = b"", torn: str = ""
) -> Iterator[ConversationOrProblems]:
    """The records of one source, or of its `whole` lines, after which it is `torn`: the last turn did not end."""
    try:
        raw = cast("RawIOBase", BytesIO(whole)) if whole else open(source.name, "rb").detach()  # noqa: SIM115 - `with`
        stream = PackedReader(raw)
    except OSError as error:
        yield (Problem(source.name, "", "", f"cannot be opened: {error.strerror or error}"),)
        return
    stream.max_ratio = source.origin.options.max_ratio
    with stream:
        for parsed in _parsed(stream, source):
            parsed, forms = _in_order(parsed, source)
            if torn and isinstance(parsed.value, dict) and (turns := parsed.value.get("conversation")):
                last = {**turns[-1], "assistant": turns[-1].get("assistant") or None, "error": torn}
                parsed = replace(parsed, value={**parsed.value, "conversation": [*turns[:-1], last]})
            record = _validated(parsed, source)
            if index is not None and isinstance(record, Conversation):
                index.add(record, source=source.name, where=parsed.where)
            if doubts is not None:
                doubts.add(source.name, parsed)
                doubts.add_forms(source.name, parsed.where, forms)
            yield record


def raw_records(source: Source) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The objects of a file that became each record that can be read, and that record, not yet validated."""
    # the readers of traces keep the objects if a field is asked for
    source = replace(source, origin=replace(source.origin, options=replace(source.origin.options, fields=ANY_FIELD)))
    with contextlib.suppress(OSError), PackedReader(open(source.name, "rb").detach()) as stream:
        for parsed in _parsed(stream, source):
            if isinstance(parsed.value, dict) and not parsed.faults:
                yield parsed.raw, parsed.value


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
        stream = PackedReader(replay)
        stream.max_ratio = source.origin.options.max_ratio
    if name == "native":
        found = parse(stream, source.name)
        found = found if source.format == name else native_only(found, source.name)
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


def _in_order(parsed: Parsed, source: Source) -> tuple[Parsed, list[tuple[str, str, str]]]:
    """A record with the identity that the caller located, in characters and ids that compare; and its ids' forms."""
    value, faults = with_identity(parsed.value, parsed.raw, source.origin.options.fields)
    value, count = readable(value)
    value, forms = one_form(value) if isinstance(value, dict) else (value, [])
    doubts = (*parsed.doubts, ("", DOUBT)) if count and not parsed.faults else parsed.doubts
    return replace(parsed, value=value, faults=(*parsed.faults, *faults), doubts=doubts), forms


def _validated(parsed: Parsed, source: Source) -> Conversation | tuple[Problem, ...]:
    value, where = parsed.value, parsed.where
    problems = tuple(Problem(parsed.file or source.name, where, field, message) for field, message in parsed.faults)
    if value is NO_VALUE:
        return problems
    if isinstance(value, dict) and "assistant_id" not in value:
        value = {**value, "assistant_id": source.origin.agent}
    if source.origin.unclear and isinstance(value, dict) and value["assistant_id"] == source.origin.agent:
        problems += (Problem(source.name, where, "assistant_id", source.origin.unclear),)
    try:
        conversation = Conversation.model_validate(value)
    except ValidationError as error:
        return problems + problems_of(error, source=source.name, where=where)
    return problems or conversation
