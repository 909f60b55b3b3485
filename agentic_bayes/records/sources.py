"""Paths to files, each once and in a defined order."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentic_bayes.errors import InvalidArgument, Problem, did_you_mean
from agentic_bayes.records.agents import FileAgent, file_agents, stem
from agentic_bayes.records.base import short
from agentic_bayes.records.formats.detection import detected
from agentic_bayes.records.formats.evals import tau2
from agentic_bayes.records.formats.messages import batches
from agentic_bayes.records.formats.sessions import atif, claude_code, harbor, swe_agent, terminal_bench
from agentic_bayes.records.wire.layout import Origin, beginning_of
from agentic_bayes.records.wire.options import NO_OPTIONS, ReadOptions

PathLike = str | os.PathLike[str]
SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
"""File name endings of conversation files."""

LOOKED_FOR = (*SUFFIXES, ".eval", swe_agent.SUFFIX)
"""File name endings that are read from a folder; Inspect logs end in ``.eval``, those of SWE-agent in ``.traj``."""

_KEPT = 1000
# what tools write next to their logs and holds none, by its name and how it begins
_ASIDE = {
    re.compile(name): re.compile(begin)
    for name, begin in {
        r"preds\.json|all_preds\.jsonl": rb'"model_patch"',  # SWE-agent, mini-SWE-agent
        r"sessions-index\.json": rb'"entries"',  # Claude Code
        r"journal\.jsonl|.*\.meta\.json": rb'"agent(Id|Type)"',  # its sub-agents
        r"history\.jsonl": rb'\A\{"session_id":"[^"]*","ts":\d+,"text":',  # Codex
        r"session_index\.jsonl": rb'"thread_name"',
        r"eval-set\.json": rb'"eval_set_id"',  # Inspect
        r"logs\.json|listing\.json": rb'\A\s*\{\s*"[^"]+\.(eval|json)":\s*\{',
    }.items()
}


@dataclass(frozen=True, slots=True)
class Source:
    """One file, or one pipe, which can be read only once."""

    origin: Origin  # its name, and defaults for what the file does not say
    format: str  # the format that the caller chose; ``auto`` detects it from the content
    once: bool  # whether it is a pipe

    @property
    def name(self) -> str:
        """The file."""
        return self.origin.name


class Problems:
    """Collects problems, each once: the first thousand are kept, all are counted."""

    def __init__(self) -> None:
        self.kept: list[Problem] = []
        self.total = 0
        self._known: set[Problem] = set()

    def add(self, problems: Iterable[Problem]) -> None:
        """Add problems that are not known yet."""
        for problem in problems:
            # a problem in a file that several files need is found once with each of them
            if problem in self._known:
                continue
            self.total += 1
            if len(self.kept) < _KEPT:
                self.kept.append(problem)
                self._known.add(problem)

    def __bool__(self) -> bool:
        return self.total > 0


def find_sources(
    paths: Any, agent: str | None, format: str, problems: Problems, options: ReadOptions = NO_OPTIONS
) -> list[Source]:
    """The files that the paths stand for, each once."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    if isinstance(given, (bytes, dict)) or not isinstance(given, Iterable):
        raise InvalidArgument(f"paths must be a path or an iterable of paths, got {short(paths)}")
    # a file may have several names: links, or a path written in another way
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
    aside = {real for real, name in names.items() if name in listed and _is_aside(name)}
    if len(aside) < len(names):
        names = {real: name for real, name in names.items() if real not in aside}
    requests = batches.halves_of(list(names.values()))
    results = {name for one in requests.values() for name in one}
    formats = _without_parts([name for name in names.values() if name not in results], format)
    sources = []
    for name, kind in formats.items():
        regular = _is_regular(name)
        # a pipe must be named itself: one found in a folder may never deliver anything
        if regular or name not in listed:
            origin = Origin(name, stem(name), agent, options, parts=requests.get(name, ()))
            sources.append(Source(origin, kind, not regular))
        else:
            problems.add([Problem(name, "", "", "must be a regular file, got a pipe or device")])
    named = file_agents([source.name for source in sources], agent)
    return [_named(source, of_file, agent) for source, of_file in zip(sources, named, strict=True)]


def _named(source: Source, of_file: FileAgent, agent: str | None) -> Source:
    """A source that knows its agent."""
    given = None if agent is None else of_file.name
    origin = replace(
        source.origin, stem=of_file.label, given_agent=given, default_agent=of_file.name, unclear=of_file.unclear
    )
    return replace(source, origin=origin)


def _without_parts(names: list[str], format: str) -> dict[str, str]:
    """The files and their formats, without those that are read with another one of them."""
    left_out = {part for reader in (claude_code, harbor, terminal_bench, atif) for part in reader.parts_of(names)}
    names = [name for name in names if name not in left_out]
    formats = dict.fromkeys(names, format)
    by_folder: dict[str, list[str]] = {}
    for name in names:
        by_folder.setdefault(os.path.dirname(os.path.abspath(name)), []).append(name)
    for name in names:
        folder, file = os.path.split(os.path.abspath(name))
        inside = by_folder.get(os.path.join(folder, tau2.FOLDER), []) if file in tau2.INDEXES else []
        if not inside:
            continue
        guess = detected(name) if format == "auto" else format
        if guess == "native" != format:  # if the file is broken, its simulations tell the format
            guess = next(filter(None, map(detected, inside)), guess)
        if guess == tau2.NAME:
            formats[name] = guess
            for other in inside:
                formats.pop(other, None)
    return formats


def _expanded(name: str, problems: Problems) -> list[str]:
    """The files that one path stands for."""
    if os.path.isdir(name):
        files = files_in(name)
        wrong = f"holds no file that ends in {', '.join(LOOKED_FOR)}"
    elif os.path.exists(name):
        return [name]
    elif glob.has_magic(name):
        matches = sorted(glob.glob(name, recursive=True))
        files = [file for match in matches for file in (files_in(match) if os.path.isdir(match) else [match])]
        wrong = "no file matches this pattern"
    else:
        files, wrong = [], _does_not_exist(Path(name))
    if not files:
        problems.add([Problem(name, "", "", wrong)])
    return files


def files_in(folder: str | os.PathLike[str]) -> list[str]:
    """The files in a folder and its subfolders that may hold conversations, by their names."""
    found = []
    for path in Path(folder).rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        # keep a broken link: opening it will report it
        if path.name.lower().endswith(LOOKED_FOR) and not hidden and not path.is_dir():
            found.append(str(path))
    return sorted(found)


def _is_aside(name: str) -> bool:
    """Whether a file is none of a tool's logs, though it lies among them."""
    file = os.path.basename(name)
    begin = next((begin for named, begin in _ASIDE.items() if named.fullmatch(file)), None)
    return begin is not None and os.path.isfile(name) and begin.search(beginning_of(name)) is not None


def _does_not_exist(path: Path) -> str:
    if not path.parent.is_dir():
        return f"no such file; the folder {str(path.parent)!r} does not exist either"
    try:
        names = sorted(os.listdir(path.parent))
    except OSError:
        return "no such file"
    names = [name for name in names if name.lower().endswith(LOOKED_FOR) and name[0] != "."]
    return f"no such file; {did_you_mean(path.name, names)}" if names else "no such file"


def _is_regular(name: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(name).st_mode)
    except OSError:
        return True  # opening it will report what is wrong
