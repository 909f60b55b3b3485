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
from agentic_bayes.records.formats import tau2
from agentic_bayes.records.formats.detect import format_of
from agentic_bayes.records.formats.layout import Origin

__all__ = ["LOOKED_FOR", "SUFFIXES", "PathLike", "Problems", "Source", "find_sources"]

PathLike = str | os.PathLike[str]
SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
"""Endings of the names of conversation files."""

LOOKED_FOR = (*SUFFIXES, ".eval")
"""Endings of the names of files that are read of a folder; Inspect's logs end in ``.eval``."""

_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Source:
    """One file, or one pipe, which can be read once only.

    Attributes
    ----------
    origin : Origin
        Its name, and what stands for what it does not say.
    format : str
        As asked for; ``auto`` where its content tells.
    once : bool
        Whether it is a pipe.
    """

    origin: Origin
    format: str
    once: bool

    @property
    def name(self) -> str:
        """The file."""
        return self.origin.name


class Problems:
    """Problems as they are found: the first ones are kept, all are counted."""

    def __init__(self) -> None:
        self._kept: list[Problem] = []
        self._total = 0

    def add(self, problems: Iterable[Problem]) -> None:
        """Take in problems."""
        for problem in problems:
            self._total += 1
            if len(self._kept) < _KEPT:
                self._kept.append(problem)

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
    return [Source(Origin(name, _stem(name), agent), format, not _is_regular(name)) for name in names.values()]


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
        if path.name.lower().endswith(LOOKED_FOR) and not hidden and path.is_file():
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
