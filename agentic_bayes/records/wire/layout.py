"""The outer layout of a file: where it comes from, what it looks like, and how its records are found."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BufferedReader
from typing import Any

from agentic_bayes.records.wire.chat import doubts_of
from agentic_bayes.records.wire.fields import Faults
from agentic_bayes.records.wire.json_text import NO_VALUE, JsonPart, Parsed, joined, parts
from agentic_bayes.records.wire.options import NO_OPTIONS, ReadOptions

STREAMED = frozenset(
    {"messages", "simulations", "tasks", "samples", "resourceSpans", "items", "output", "input", "contents"}
)
"""Top-level members whose items are read one by one."""


def beginning_of(name: str, size: int = 4096) -> bytes:
    """The first bytes of a file; none if it cannot be read, which whoever reads all of it will report."""
    try:
        with open(name, "rb") as stream:
            return stream.read(size)
    except OSError:
        return b""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a file comes from: defaults for what it does not say itself."""

    name: str  # the file
    stem: str  # its name without the ending
    given_agent: str | None = None  # the agent that the caller named
    options: ReadOptions = NO_OPTIONS  # what the caller said beyond that
    default_agent: str = ""  # the agent by the file's name or folder; the stem if empty
    parts: tuple[str, ...] = ()  # other files that are read with it
    unclear: str = ""  # why it must not be used: a record that would get it is refused

    @property
    def own_agent(self) -> str:
        """The agent by the file's name or folder."""
        return self.default_agent or self.stem

    @property
    def agent(self) -> str:
        """The agent of a file that names none."""
        return self.given_agent or self.own_agent


@dataclass(slots=True)
class Shape:
    """What is known of a file after reading its beginning."""

    is_list: bool = False  # whether the file is a list, not an object
    keys: set[str] = field(default_factory=set)  # members of the (first) object at the top; empty for a list
    values: dict[str, Any] = field(default_factory=dict)  # their values, except lists of records
    first: dict[str, Any] = field(default_factory=dict)  # the first item of each list of records
    item: Any = None  # the first item of a list at the top
    complete: bool = False  # whether the whole first object was read
    # what the messages read so far hold, of all objects: `marks_of` each
    marks: set[str] = field(default_factory=set)

    @property
    def record(self) -> dict[str, Any]:
        """The first record, as far as it is known: the first item of a list, or the first object."""
        return self.item if isinstance(self.item, dict) else self.values

    @property
    def record_keys(self) -> set[str]:
        """Keys of the first record."""
        if self.is_list:
            return {key for key, value in self.record.items() if not _is_no_conversation(key, value)}
        return self.keys

    def take(self, part: JsonPart) -> None:
        """Learn from the next part of the file."""
        match part.path:
            case (str(key),):
                self.marks.update(marks_of({key: part.value}))
            case (*_, int()):
                self.marks.update(marks_of(part.value))
        if part.document:
            return
        match part.path:
            case ():
                self.complete = True
            case (int(index),):
                self.is_list = True
                if not index:
                    self.item = part.value
            case (str(key),) if not _is_no_conversation(key, part.value):
                self.keys.add(key)
                self.values[key] = part.value
            case (str(key), 0):
                self.first[key] = part.value


def _is_no_conversation(key: str, value: Any) -> bool:
    """Whether this is the null that the Responses API gives where a native record has its turns."""
    return key == "conversation" and value is None


def marks_of(value: Any) -> Iterator[str]:
    """What a message holds: its role (``role:tool``), members (``.tool_calls``) and parts (``content:text``)."""
    if isinstance(value, list):
        for one in value[:_LOOKED_AT]:
            yield from marks_of(one)
    if not isinstance(value, dict):
        return
    for key, content in value.items():
        if content is None:
            continue
        yield f".{key}"
        if key in ("role", "type") and isinstance(content, str):
            yield f"{key}:{content}"
        elif key in STREAMED:
            yield from marks_of(content)
        for part in content[:_LOOKED_AT] if key in ("content", "parts") and isinstance(content, list) else ():
            if isinstance(part, dict):
                kind = part.get("type")
                yield from (f"{key}:{name}" for name in ([kind] if isinstance(kind, str) else part))


_LOOKED_AT = 200


def with_doubts(parsed_records: Iterator[Parsed], doubts: Callable[[], Iterable[str]]) -> Iterator[Parsed]:
    """Pass records on, and attach the warnings about their file to the last one."""
    waiting = next(parsed_records, None)
    while waiting is not None:
        parsed, waiting = waiting, next(parsed_records, None)
        if waiting is None:
            parsed = replace(parsed, doubts=(*parsed.doubts, *(("", message) for message in doubts())))
        yield parsed


def converted(
    where: str, value: Any, wrong: Sequence[tuple[str, str]], convert: Callable[[Any, Faults], Mapping[str, Any]]
) -> Parsed:
    """A raw record, which may already be `wrong`, in the native format."""
    faults = Faults()
    record = convert(value, faults)
    together = (*wrong, *faults)
    kept = NO_VALUE if together else record
    return Parsed(where, kept, together, doubts_of(record["conversation"]), raw=(value,))


def documents(stream: BufferedReader, streamed: Collection[str] = (), *, item: str = "index {}") -> Iterator[Parsed]:
    """The objects of a file, one per line, or the items of a list, each with what is wrong with it."""
    members: dict[str, Any] = {}
    problems: list[tuple[str, str]] = []
    is_list = False
    for part in parts(stream, streamed):
        match part.path:
            case ():
                if part.faults or not is_list:
                    yield Parsed(part.where or "line 1", members, (*problems, *part.faults))
                members, problems, is_list = {}, [], False
            case (int(index),):
                is_list = True
                yield Parsed(joined(part.where, item.format(index)), part.value, part.faults)
            case (str(key),):
                problems += part.inner_faults
                if part.value is not NO_VALUE:
                    members[key] = part.value


def records(pieces: Iterator[JsonPart], convert: Callable[[Any, Faults], Mapping[str, Any]]) -> Iterator[Parsed]:
    """The records of a file that is a list of them, one object, or JSON Lines."""
    empty = True
    members: dict[str, Any] = {}
    problems: list[tuple[str, str]] = []

    for part in pieces:
        match part.path:
            case ():
                empty = empty and not (members or problems or part.faults)
                if part.faults:  # the document broke off: half a record is not a record
                    yield Parsed(part.where, faults=(*problems, *part.faults))
                elif members or problems:
                    yield converted(part.where or "line 1", members, problems, convert)
                members, problems = {}, []
            case (int(index),):
                empty = False
                where = joined(part.where, f"index {index}")
                if part.faults:
                    yield Parsed(where, faults=part.faults)
                else:
                    yield converted(where, part.value, (), convert)
            case (str(key), *rest):
                problems += part.inner_faults
                if rest:
                    members[key].append(part.value)
                elif not part.faults:
                    members[key] = part.value
    if empty:
        yield Parsed("", faults=(("", "holds no record"),))
