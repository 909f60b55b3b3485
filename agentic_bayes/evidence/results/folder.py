"""Results in a folder: which files a tool wrote, and which agent each belongs to."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from agentic_bayes.errors import DoubtfulRecords, EvidenceError
from agentic_bayes.evidence.results.base import ResultsContent, ResultsFormat, ResultTrial, first_text
from agentic_bayes.evidence.results.detection import read_content, results_format_of, results_formats
from agentic_bayes.evidence.table import whole_number
from agentic_bayes.formatting import first_few, plural
from agentic_bayes.records.agents import MOST_ALONE, file_agents
from agentic_bayes.records.base import short
from agentic_bayes.records.wire.options import identity_from

_ENDINGS = (".json", ".jsonl", ".csv", ".tsv", ".parquet", ".xml")
_WHOLE = (".json", ".xml")  # read to the end if no tool is known by the beginning, as they may be broken
_WAYS = 'agent="NAME", or by folder, agent="{parent}" (--fields agent={parent})'
_SHOWN = 5
TABLES = (".csv", ".tsv", ".parquet")
_JOINED = (
    (
        ".csv",
        "with the files' names as agents",
        "pandas.concat([pandas.read_csv(path).assign(agent=path.stem) for path in paths])",
    ),
    (".json", "if each file is a row", "pandas.DataFrame([json.loads(path.read_text()) for path in paths])"),
)
"""Endings of files of which several become one table, how, and the line of pandas that does it."""


@dataclass(frozen=True, slots=True)
class ResultsFolder:
    """The files of one tool in a folder."""

    path: Path
    format: ResultsFormat
    files: Sequence[Path]
    others: int  # files that are not of this tool

    def __str__(self) -> str:
        left_out = f" ({plural(self.others, 'other file')} left out)" if self.others else ""
        return f"{plural(len(self.files), 'file')}{left_out}"


def files_of_results(folder: Path) -> Iterator[Path]:
    """The files of a folder that may hold results, by their endings; hidden ones are left out."""
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and path.name.lower().removesuffix(".gz").endswith(_ENDINGS) and path.is_file():
            yield path


def results_in(folder: Path) -> ResultsFolder:
    """The results in a folder, which must be of one tool."""
    found: dict[str, list[Path]] = {}
    others: list[Path] = []
    broken: list[EvidenceError] = []
    for path in files_of_results(folder):
        format = results_format_of(path)
        if format is not None:
            found.setdefault(format.name, []).append(path)
            continue
        others.append(path)
        try:
            if path.name.lower().removesuffix(".gz").endswith(_WHOLE):
                read_content(path)
        except EvidenceError as error:  # it may be of the tool that wrote the others
            broken.append(error)
    if broken and found:
        raise broken[0]
    if len(found) != 1:
        raise EvidenceError(f"{folder}: {_several(folder, found) if found else _none(folder, others)}")
    ((tool, paths),) = found.items()
    format = next(one for one in results_formats() if one.name == tool)
    repeated = format.repeated(set(paths))
    return ResultsFolder(folder, format, [path for path in paths if path not in repeated], len(others))


def _several(folder: Path, found: Mapping[str, Sequence[Path]]) -> str:
    listed = "; ".join(f"{tool}: {_names(folder, paths)}" for tool, paths in sorted(found.items()))
    return f"holds results of {len(found)} tools ({listed}). Read one tool's at a time: give a file or folder of it"


def _none(folder: Path, others: Sequence[Path]) -> str:
    known = ", ".join(format.name for format in results_formats())
    there = f"it holds {_names(folder, others)}" if others else f"no file in it ends in {', '.join(_ENDINGS)}"
    return (
        f"must be a file, is a folder without results of a supported tool ({known}); {there}. For "
        "conversations, use read_conversations or assess; for a table, give the file itself"
        f"{_as_one_table(folder, others)}"
    )


def _as_one_table(folder: Path, others: Sequence[Path]) -> str:
    """How pandas makes one table of several files; without several, the command that describes them."""
    endings = Counter(path.suffix for path in others)
    for ending, what, rows in _JOINED:
        if endings[ending] > 1:
            paths = f"paths = sorted(pathlib.Path({str(folder)!r}).rglob('*{ending}'))"
            return f"; to make one table of them, {what}: {paths}; {rows}.to_csv('all.csv', index=False)"
    described = next((path for path in others if path.suffix in TABLES), folder)
    return f". agentic-bayes describe {described} says what it holds and how to read it"


def _names(folder: Path, paths: Sequence[Path]) -> str:
    return first_few([str(path.relative_to(folder)) for path in paths], _SHOWN)


@dataclass(frozen=True, slots=True)
class ResultsFile:
    """The trials of one file."""

    source: str
    trials: Sequence[ResultTrial]

    @classmethod
    def of(cls, content: ResultsContent, format: ResultsFormat) -> ResultsFile:
        """The trials that the format finds, with the identity that the options name."""
        try:
            trials = [_identified(found, content.options.fields) for found in format.trials(content)]
        except EvidenceError as error:
            raise EvidenceError(f"{content.source} ({format.name}): {error}") from None
        if not trials:
            raise EvidenceError(f"{content.source} ({format.name}): there are no results in it")
        return cls(content.source, trials)

    @property
    def agents(self) -> list[str]:
        """The agents of its trials."""
        return sorted({found.agent for found in self.trials if found.agent is not None})


def _identified(found: ResultTrial, fields: Mapping[str, str]) -> ResultTrial:
    """The trial with the identity that `fields` say."""
    if not fields:
        return found
    values, faults = identity_from([found.raw, {"metadata": found.metadata}], fields)
    if faults:
        raise EvidenceError(f"{found.place}: " + "; ".join(f"{path}: {text}" for path, text in faults))
    for role, value in values.items():
        whole = whole_number(value) if role == "trial" else first_text(value)
        if whole is None:
            what = "a whole number" if role == "trial" else "text or a number"
            raise EvidenceError(f"{found.place}: {fields[role]} must be {what}, got {short(value)}")
        values[role] = whole
    return replace(found, **values)


def with_agents(files: Sequence[ResultsFile], agent: str | None) -> list[ResultsFile]:
    """Every trial with its agent: as `agent` says, else the file, else by the name of the file or its folder."""
    for file in files:
        if agent is not None and len(file.agents) > 1:
            names = ", ".join(map(short, file.agents[:_SHOWN]))
            where = f"{file.source} " if len(files) > 1 else ""
            raise EvidenceError(f"{where}names {len(file.agents)} agents ({names}): agent= is for files of one")
    unnamed = [file for file in files if agent is not None or any(found.agent is None for found in file.trials)]
    called = dict(zip(map(id, unnamed), file_agents(_names_of([file.source for file in unnamed]), agent), strict=True))
    if unclear := next((one.unclear for one in called.values() if one.unclear), None):
        raise EvidenceError(unclear.partition("; name the agent")[0] + f"; name the agent: {_WAYS}")
    named = []
    for file in files:
        own = called.get(id(file))
        trials = [
            found if own is None or (agent is None and found.agent is not None) else replace(found, agent=own.name)
            for found in file.trials
        ]
        named.append(replace(file, trials=trials))
    if agent is None and len(unnamed) == len(files) > MOST_ALONE:
        times = Counter((found.agent, found.task) for file in named for found in file.trials)
        if set(times.values()) == {1}:
            doubt = (
                f"{len(files)} files name no agent, so each is taken as an agent of its own with one trial per task; "
                f"if they are attempts of one agent, name it: {_WAYS}"
            )
            warnings.warn(doubt, DoubtfulRecords, stacklevel=4)
    return named


def _names_of(sources: Sequence[str]) -> list[str]:
    """The paths of files without their endings, unless only these tell them apart."""
    bare = [Path(source[:-3] if source.lower().endswith(".gz") else source) for source in sources]
    stems = [str(path.with_suffix("") if path.suffix.lower() in _ENDINGS else path) for path in bare]
    return stems if len(set(stems)) == len(stems) else list(sources)


def check_attempts(files: Iterable[ResultsFile]) -> None:
    """Refuse an attempt that stands in two places, as it would count twice."""
    first: dict[str, tuple[str, str, str | None]] = {}
    for file in files:
        for found in file.trials:
            here = file.source, found.place, found.agent
            before = here if found.uid is None else first.setdefault(found.uid, here)
            if before is here or (before[0] == here[0] and before[2] != here[2]):
                continue
            places = (before[0], here[0]) if before[0] != here[0] else (before[1], here[1])
            raise EvidenceError(
                f"{' and '.join(places)} hold the same attempt, {short(found.uid)}, which would count twice: leave one "
                "of them out"
            )


def in_order(folder: ResultsFolder, files: Sequence[ResultsFile], *, numbered: bool) -> Iterator[ResultTrial]:
    """The trials of all files; where the numbers of the files are not kept, they are given anew."""
    first: dict[tuple[str | None, str, int], str] = {}
    same: dict[bytes, ResultsFile] = {}
    for file in files:
        name = os.path.relpath(file.source, folder.path)
        other = same.setdefault(sha256(Path(file.source).read_bytes()).digest(), file)
        if other is not file and set(other.agents) & set(file.agents):
            twice = f"{other.source} and {file.source} have the same content"
            warnings.warn(f"{twice}, and both count: leave one out if it is a copy", DoubtfulRecords, stacklevel=4)
        for found in file.trials:
            if numbered and found.trial is not None:
                before = first.setdefault((found.agent, found.task, found.trial), name)
                if before != name:
                    raise EvidenceError(
                        f"{before} and {name} both hold trial {found.trial} of task {short(found.task)} by agent "
                        f"{short(found.agent)}: if they are of several agents, tell them apart by file or folder, "
                        f'agent="{{stem}}" or "{{parent}}" (--fields agent={{stem}}); if they are attempts of one '
                        f'agent, say so: agent="{found.agent}"'
                    )
            trial = found.trial if numbered else None
            yield replace(found, trial=trial, place=f"{name}, {found.place}" if found.place else name)
