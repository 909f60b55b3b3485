"""What a reader of another tool's results yields: trials as the tool recorded them, and where they were found."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentic_bayes.errors import EvidenceError
from agentic_bayes.records.base import short
from agentic_bayes.records.wire.options import NO_OPTIONS, ReadOptions

__all__ = ["ResultTrial", "ResultsContent", "ResultsFormat"]


@dataclass(frozen=True, slots=True)
class ResultsContent:
    """A file as far as every reader needs it read."""

    source: str  # the file's name, or what else it came from
    value: Any = None  # of a JSON file
    rows: Sequence[Any] = ()  # of a table, JSON lines or a JSON array; a JSON object is the only one
    columns: frozenset[str] = frozenset()  # of a table; of other rows the keys of the first
    text: str = ""  # of markup
    options: ReadOptions = NO_OPTIONS

    def has(self, *columns: str) -> bool:
        """Whether the rows have these columns."""
        return self.columns.issuperset(columns)

    def object_with(self, *keys: str) -> bool:
        """Whether this is one JSON object with these keys."""
        return isinstance(self.value, dict) and self.has(*keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTrial:
    """One attempt of one task as the tool recorded it."""

    task: str
    agent: str | None = None  # None: the file does not say
    trial: int | None = None  # None: numbered in the order of the file
    scores: Mapping[str, Any] = field(default_factory=dict)  # every score by name, as the tool wrote it
    thresholds: Mapping[str, float] = field(default_factory=dict)  # of scores that have their own
    reasons: Mapping[str, str] = field(default_factory=dict)  # of scores
    error: str | None = None  # why the agent or the run failed, so that there is nothing to score
    unscored: str | None = None  # why there is no verdict although nothing failed
    metadata: Mapping[str, Any] = field(default_factory=dict)  # short values that may group tasks
    place: str = ""  # where in the file
    raw: Mapping[str, Any] = field(default_factory=dict)  # what it was read from, where `fields` look
    asks: str | None = None  # what the task asks, which is the same in all its attempts
    uid: str | None = None  # the tool's own id of the attempt, which no other has


def _none(files: Collection[Path]) -> Collection[Path]:
    """No file repeats another."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsFormat:
    """A tool whose results are read; `trials` raises `EvidenceError` with a place for what it cannot read."""

    name: str
    recognises: Callable[[ResultsContent], bool]
    trials: Callable[[ResultsContent], Iterable[ResultTrial]]
    taken: Mapping[str, str]  # agent, task, trial, score, error → what of the file it is, in words
    verdict: str | None = None  # the score that is the tool's own verdict, where it gives one
    repeated: Callable[[Collection[Path]], Collection[Path]] = _none  # of these files, those whose results others hold


def each(items: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a list, each with its place."""
    if not isinstance(items, (list, tuple)):
        raise EvidenceError(f"{place} must be a list, got {short(items)}")
    for i, item in enumerate(items):
        yield f"{place}[{i}]", an_object(item, f"{place}[{i}]")


def as_text(value: Any) -> str | None:
    """A value of JSON as text that compares; None if there is none."""
    return None if value is None else json.dumps(value, sort_keys=True, default=str)


def an_object(value: Any, place: str) -> dict[str, Any]:
    """The value, which must be an object."""
    if not isinstance(value, dict):
        raise EvidenceError(f"{place} must be an object, got {short(value)}")
    return value


def part(value: Any) -> dict[str, Any]:
    """An optional part: the object, or an empty one."""
    return value if isinstance(value, dict) else {}


def first_text(*candidates: Any) -> str | None:
    """The first of these that is text or a number, as text."""
    for value in candidates:
        if isinstance(value, (str, int, float)) and not isinstance(value, bool) and str(value).strip():
            return str(value).strip()
    return None


def needed(value: str | None, what: str, place: str) -> str:
    """An identity that must be there."""
    if value is None:
        raise EvidenceError(f"{place}: there is no {what}")
    return value
