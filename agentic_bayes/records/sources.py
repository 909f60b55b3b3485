"""The files that paths stand for: each once, in a stated order."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentic_bayes.errors import InvalidArgument, Problem, RecordsError, did_you_mean
from agentic_bayes.records.base import short
from agentic_bayes.records.detect import format_of
from agentic_bayes.records.formats.evals import tau2
from agentic_bayes.records.wire.layout import Origin

__all__ = ["LOOKED_FOR", "SUFFIXES", "PathLike", "Problems", "Source", "find_sources"]

PathLike = str | os.PathLike[str]
SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
"""Endings of the names of conversation files."""

LOOKED_FOR = (*SUFFIXES, ".eval")
"""Endings of the names of files that are read of a folder; Inspect's logs end in ``.eval``."""

_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Source:
    """One file, or one pipe, which can be read once only."""

    origin: Origin  # its name, and what stands for what it does not say
    format: str  # as asked for; ``auto`` where its content tells
    once: bool  # whether it is a pipe

    @property
    def name(self) -> str:
        """The file."""
        return self.origin.name


class Problems:
    """Problems as they are found, each once: the first ones are kept, all are counted."""

    def __init__(self) -> None:
        self._kept: list[Problem] = []
        self._known: set[Problem] = set()
        self._total = 0

    def add(self, problems: Iterable[Problem]) -> None:
        """Take in problems."""
        for problem in problems:
            # what is wrong with a file that others need is found with each of them
            if problem in self._known:
                continue
            self._total += 1
            if len(self._kept) < _KEPT:
                self._kept.append(problem)
                self._known.add(problem)

    def __bool__(self) -> bool:
        return self._total > 0

    @property
    def kept(self) -> tuple[Problem, ...]:
        """The first thousand."""
        return tuple(self._kept)

    @property
    def total(self) -> int:
        """How many there are."""
        return self._total

    def error(self) -> RecordsError:
        """All of them as one error."""
        return RecordsError(self._kept, self._total)


def find_sources(paths: Any, agent: str | None, format: str, problems: Problems) -> list[Source]:
    """The files that the paths stand for, each once."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    if isinstance(given, (bytes, dict)) or not isinstance(given, Iterable):
        raise InvalidArgument(f"paths must be a path or several, got {short(paths)}")
    # a file may have several names: links, and paths of other forms
    names: dict[str, str] = {}
    listed: set[str] = set()
    empty = True
    for path in given:
        empty = False
        name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
        if not isinstance(name, str) or not name.strip() or "\0" in name:
            raise InvalidArgument(f"paths must be file names, glob patterns or folders, got {short(path)}")
        for found in _expanded(name, problems):
            names.setdefault(os.path.realpath(found), found)
            if found != name:
                listed.add(found)
    if empty:
        raise InvalidArgument("paths must name at least one file, got none")
    formats = _without_parts(list(names.values()), format)
    sources = []
    for name, told in formats.items():
        regular = _is_regular(name)
        # only one that was named may be a pipe: of those that were found, nobody knows whether anything ever comes
        if regular or name not in listed:
            sources.append(Source(Origin(name, _stem(name), agent), told, not regular))
        else:
            problems.add([Problem(name, "", "", "must be a regular file, got a pipe or device")])
    return sources


def _without_parts(names: list[str], format: str) -> dict[str, str]:
    """The files and their formats, without simulations of tau2 whose file of results is read, too, and brings them."""
    formats = dict.fromkeys(names, format)
    by_folder: dict[str, list[str]] = {}
    for name in names:
        by_folder.setdefault(os.path.dirname(os.path.abspath(name)), []).append(name)
    for name in names:
        folder, file = os.path.split(os.path.abspath(name))
        inside = by_folder.get(os.path.join(folder, tau2.FOLDER), []) if file in tau2.INDEXES else []
        if not inside:
            continue
        told = _told(name) if format == "auto" else format
        if told == "native" != format:  # of a broken file, those beside it tell what it should be
            told = next(filter(None, map(_told, inside)), told)
        if told == tau2.NAME:
            formats[name] = told
            for other in inside:
                formats.pop(other, None)
    return formats


def _told(path: str) -> str:
    """The format of a file by its content; empty where it cannot be read."""
    if not os.path.isfile(path):
        return ""
    try:
        with open(path, "rb") as stream:
            return format_of(stream)
    except OSError:
        return ""


def _expanded(name: str, problems: Problems) -> list[str]:
    """The files that one path stands for."""
    if os.path.isdir(name):
        files = _files_in(name)
        wrong = f"is a folder without any file whose name ends in {', '.join(LOOKED_FOR)}"
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
        # a link that leads nowhere is kept: opening it will say so
        if path.name.lower().endswith(LOOKED_FOR) and not hidden and not path.is_dir():
            found.append(str(path))
    return sorted(found)


def _does_not_exist(path: Path) -> str:
    if not path.parent.is_dir():
        return f"does not exist, nor does the folder {str(path.parent)!r}"
    try:
        names = sorted(os.listdir(path.parent))
    except OSError:
        return "does not exist"
    names = [name for name in names if name.lower().endswith(LOOKED_FOR) and name[0] != "."]
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
