"""A folder of results: the data, the fit, its numbers, and a manifest of how to recompute them.

::

    manifest.json    command, method and settings, versions, platform; name, size and SHA-256 of every other file
    outcomes.csv     the counts that were estimated from
    evidence.jsonl   the scores that were counted, if there are any
    estimate.nc      the estimate with its draws, for `Estimate.load`
    summary.csv      its numbers, and the baseline's
    baseline.csv
"""

from __future__ import annotations

import csv
import hashlib
import inspect
import json
import os
import platform
import re
import stat
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from agentic_bayes.checks import check_type
from agentic_bayes.errors import InvalidArgument, NotReproducible, OutcomesError
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.io.netcdf import made_by
from agentic_bayes.estimation.settings import Settings
from agentic_bayes.evidence.csv_text import csv_text, from_cell, to_cell
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.outcomes.coordinates import task_columns
from agentic_bayes.outcomes.count import count_outcomes
from agentic_bayes.outcomes.dataset import COUNTS, check_outcomes, dataset_from_counts
from agentic_bayes.records.base import short
from agentic_bayes.records.wire.strict_json import strict_json
from agentic_bayes.whole_files import replacing

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["write_results"]

MANIFEST, OUTCOMES, EVIDENCE = "manifest.json", "outcomes.csv", "evidence.jsonl"
ESTIMATE, SUMMARY, BASELINE = "estimate.nc", "summary.csv", "baseline.csv"
FORMAT = "agentic-bayes-results/2"
OLD_FORMAT = "agentic-bayes-results/1"  # of version 0.1
LARGEST_MANIFEST = 1 << 26  # bytes; human labels of 10^5 tasks take a tenth of it
MOST_FILES = 1000
HALF = re.compile("[\ud800-\udfff]")  # of a character; JSON may hold it, UTF-8 and so neither tables nor file systems
LONGEST_LABEL = 1 << 17  # characters; the csv module reads no longer cell


def write_results(
    est: Estimate,
    folder: str | Path,
    *,
    evidence: Evidence | None = None,
    counting: Mapping[str, Any] | None = None,
    command: Sequence[str] = (),
    also: Iterable[str] = (),
) -> Path:
    """Write an estimate with everything needed to recompute it; see `reproduce`.

    Parameters
    ----------
    est : Estimate
        The estimate.
    folder : path
        Created if it does not exist. Files with these names are replaced; other files stay.
    evidence : Evidence, optional
        The scores that the outcomes were counted from.
    counting : mapping, optional
        Arguments of `count_outcomes` that were not the defaults.
    command : sequence of str
        The command line that made it, for readers.
    also : iterable of str
        Names of other files in the folder, for example pictures; the manifest records their hashes, too.

    Returns
    -------
    pathlib.Path
        The folder.

    Raises
    ------
    InvalidArgument
        If the evidence, counted this way, gives other counts than the estimate has, or a label is too long for a table.

    Warns
    -----
    NotReproducible
        If a prior is a function: no file can keep it, so ``estimate.nc`` is not written and the estimate cannot be
        recomputed.
    """
    check_type("est", est, Estimate, "estimate() makes one")
    counted = None if evidence is None else _resolved(counting or {})
    if evidence is not None and not same_counts(count_outcomes(evidence, **(counted or {})), est.outcomes):
        raise InvalidArgument(
            "evidence gives other counts than the estimate has: pass the arguments of count_outcomes in `counting`"
        )
    why_not = _cannot_rerun(est)
    target = folder_path(folder)
    for kind, labels in (("agent", est.agents), ("task", est.counts.tasks)):
        if (longest := max(len(to_cell(label)) for label in labels)) > LONGEST_LABEL:
            raise InvalidArgument(f"{kind} labels must have at most {LONGEST_LABEL:,} characters, one has {longest:,}")
    target.mkdir(parents=True, exist_ok=True)
    (target / MANIFEST).unlink(missing_ok=True)  # a folder that is half written has none
    texts = {OUTCOMES: _outcomes_text(est.outcomes), **tables_of(est)}
    for name, text in texts.items():
        with replacing(str(target / name)) as file:
            file.write(text.encode("utf-8", "surrogatepass"))
    names = [*texts, *also]
    if not why_not:
        est.save(target / ESTIMATE)
        names.append(ESTIMATE)
    if evidence is not None:
        evidence.write(target / EVIDENCE)
        names.append(EVIDENCE)
    manifest = Manifest(
        command=tuple(command),
        settings=est.settings.record(),
        note=est.note,
        versions=dict(est.versions),
        platform=this_platform(),
        attrs={str(key): value for key, value in est.outcomes.attrs.items()},
        counting=counted,
        cannot_rerun=why_not,
        files={name: FileRecord.of(target / name) for name in sorted(names)},
    )
    manifest.write(target)
    if why_not:
        warnings.warn(NotReproducible(f"{target}: {why_not}"), stacklevel=2)
    return target


def folder_path(folder: str | os.PathLike[str]) -> Path:
    """The folder of an argument."""
    if not isinstance(folder, (str, os.PathLike)):
        raise InvalidArgument(f"folder must be a path, got {type(folder).__name__}")
    return Path(folder)


def _cannot_rerun(est: Estimate) -> str:
    """Why an estimate cannot be recomputed from files, or empty."""
    if est.method.has_function_prior:
        return "the estimate cannot be recomputed from these files: no file can keep a prior that is a function"
    return ""


def _resolved(counting: Mapping[str, Any]) -> dict[str, Any]:
    """Every argument of `count_outcomes`, since defaults may change."""
    parameters = inspect.signature(count_outcomes).parameters.values()
    defaults = {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY}
    return defaults | dict(counting)


def tables_of(est: Estimate) -> dict[str, str]:
    """The numbers of an estimate as the texts of their files: equal numbers give equal texts."""
    tables = {SUMMARY: est.summary(columns="all", tasks=True), BASELINE: est.baseline(columns="all", tasks=True)}
    return {name: csv_text(table) for name, table in tables.items()}


def this_platform() -> str:
    """System and processor family, on which the last digits of numbers may depend."""
    return f"{platform.system()} {platform.machine()}"


def same_counts(one: xr.Dataset, other: xr.Dataset) -> bool:
    """Whether two outcomes are of the same agents and tasks and count the same."""
    first, second = check_outcomes(one), check_outcomes(other)
    return all(first[name].equals(second[name]) for name in COUNTS)


def _outcomes_text(outcomes: xr.Dataset) -> str:
    """Counts per agent and task; a cell without any is left out unless the label would be lost."""
    import pandas as pd

    ds = check_outcomes(outcomes)
    attempted = ((ds["trials"] + ds["unscored"]) > 0).values
    attempted[0, ~attempted.any(axis=0)] = True
    attempted[~attempted.any(axis=1), 0] = True
    i, j = attempted.nonzero()
    counts = {name: ds[name].values[i, j] for name in COUNTS}
    extra = {_column_title(ds, name): ds[name].values[j] for name in task_columns(ds)}
    return csv_text(pd.DataFrame({"agent": ds["agent"].values[i], "task": ds["task"].values[j], **counts, **extra}))


WEIGHT_TITLE = " (weight)"  # of a column of outcomes.csv with weights of tasks


def _column_title(outcomes: xr.Dataset, name: str) -> str:
    """How a coordinate of the tasks is called in the file: weights are told from groups."""
    return f"{name}{WEIGHT_TITLE}" if outcomes[name].dtype.kind == "f" else name


def read_outcomes_file(path: Path, attrs: Mapping[str, Any]) -> xr.Dataset:
    """The counts of an ``outcomes.csv``."""
    counts: dict[tuple[str, str], tuple[int, int, int, int]] = {}
    columns: dict[str, dict[str, Any]] = {}
    try:
        with path.open(encoding="utf-8", errors="surrogatepass", newline="") as stream:
            header, *rows = (list(map(from_cell, row)) for row in csv.reader(stream))
        known, extra = ["agent", "task", *COUNTS], header[2 + len(COUNTS) :]
        if header[: len(known)] != known:
            raise OutcomesError(f"{path}: columns must be agent, task, {', '.join(COUNTS)}, got {', '.join(header)}")
        for agent, task, *cells in rows:
            c, n, unscored, errored = map(int, cells[: len(COUNTS)])
            for title, cell in zip(extra, cells[len(COUNTS) :], strict=True):
                name = title.removesuffix(WEIGHT_TITLE)
                columns.setdefault(name, {})[task] = cell if name == title else float(cell)
            if (agent, task) in counts:
                raise OutcomesError(f"{path}: agent {agent!r}, task {task!r} twice")
            counts[agent, task] = c, n, unscored, errored
        return check_outcomes(dataset_from_counts(counts, attrs, columns))
    except (ValueError, OverflowError, csv.Error) as error:
        if isinstance(error, OutcomesError):
            raise
        raise OutcomesError(f"{path}: not the outcomes that were written ({error})") from None


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What a file held when it was written."""

    sha256: str  # of its bytes, in hexadecimal digits
    size: int  # in bytes

    @classmethod
    def of(cls, path: Path) -> Self:
        """The record of a regular file; a link is not followed."""
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise InvalidArgument(f"{path.name} must be a file, is a link, a folder, a pipe or a device")
        with path.open("rb") as stream:
            return cls(hashlib.file_digest(stream, "sha256").hexdigest(), os.fstat(stream.fileno()).st_size)

    @classmethod
    def parsed(cls, record: Any, place: str) -> Self:
        """The record that a manifest has."""
        if not isinstance(record, dict):
            raise InvalidArgument(f"{place} must hold sha256 and size, got {short(record)}")
        digits, size = record.get("sha256"), record.get("size")
        if not isinstance(digits, str) or not re.fullmatch("[0-9a-fA-F]{64}", digits):
            raise InvalidArgument(f"{place}: sha256 must be 64 hexadecimal digits, got {short(digits)}")
        if type(size) is not int or size < 0:  # True is no size
            raise InvalidArgument(f"{place}: size must be an integer ≥ 0, got {short(size)}")
        return cls(digits.lower(), size)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The account that a folder of results gives of itself."""

    command: tuple[str, ...]  # the command line that made it, or empty
    settings: dict[str, Any]  # method with its options, seed and so on: `Settings.record`
    note: str  # why this method or engine was taken, where that was left to the program
    versions: dict[str, str]  # of Python and of the packages that numbers depend on
    platform: str  # system and processor family
    attrs: dict[str, Any]  # what the outcomes count
    counting: dict[str, Any] | None  # how they were counted from the evidence; None where there is none
    cannot_rerun: str  # why the estimate cannot be recomputed, or empty
    files: dict[str, FileRecord]  # every other file, by name

    def write(self, folder: Path) -> None:
        """Write ``manifest.json``; the same content gives the same bytes."""
        record = {"format": FORMAT} | asdict(self)
        with replacing(str(folder / MANIFEST)) as file:
            file.write(json.dumps(record, indent=2, allow_nan=False, default=_plain).encode() + b"\n")

    def parsed_settings(self) -> Settings:
        """The settings, checked."""
        try:
            return Settings.from_record(self.settings)
        except InvalidArgument:
            raise
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
            raise InvalidArgument(f"{MANIFEST}: settings are not those of an estimate ({error!r})") from None

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read ``manifest.json``, which anybody may have written: nothing in it leads out of the folder."""
        path = folder / MANIFEST
        try:
            size = FileRecord.of(path).size
            if size > LARGEST_MANIFEST:
                raise InvalidArgument(f"{path} must have at most {LARGEST_MANIFEST:,} bytes, has {size:,}")
            record = strict_json(path.read_text(encoding="utf-8-sig"))
            return cls._of(record)
        except (FileNotFoundError, NotADirectoryError):
            if not folder.exists():
                raise InvalidArgument(f"{folder}: no such folder") from None
            why = f"it holds no {MANIFEST}" if folder.is_dir() else "it is a file"
            raise InvalidArgument(f"{folder} is not a folder of results: {why}") from None
        except InvalidArgument:
            raise
        except (LookupError, TypeError, ValueError) as error:
            raise InvalidArgument(f"{path}: not a manifest of results ({error})") from None

    @classmethod
    def _of(cls, record: Any) -> Self:
        kinds = {
            "command": list,
            "settings": dict,
            "note": str,
            "versions": dict,
            "platform": str,
            "attrs": dict,
            "counting": (dict, type(None)),
            "cannot_rerun": str,
            "files": dict,
        }
        if not isinstance(record, dict):
            raise InvalidArgument(f"{MANIFEST} must hold an object, got {type(record).__name__}")
        if record.get("format") == OLD_FORMAT:
            raise InvalidArgument(f"{MANIFEST}: {made_by(record.get('versions'))}; estimate its outcomes again")
        if record.get("format") != FORMAT:
            raise InvalidArgument(f"{MANIFEST}: format must be {FORMAT!r}, got {record.get('format')!r}")
        for name, kind in kinds.items():
            if not isinstance(record[name], kind):  # type: ignore[arg-type]
                raise InvalidArgument(f"{MANIFEST}: {name} must not be {type(record[name]).__name__}")
        if len(record["files"]) > MOST_FILES:
            raise InvalidArgument(f"{MANIFEST}: must name at most {MOST_FILES:,} files, names {len(record['files']):,}")
        if HALF.search(json.dumps(record["attrs"], ensure_ascii=False)):
            raise InvalidArgument(f"{MANIFEST}: attrs must be text that UTF-8 can hold")
        files = {}
        for name, one in record["files"].items():
            if name in ("", ".", "..", MANIFEST) or any(sign in name for sign in "/\\\0:") or HALF.search(name):
                raise InvalidArgument(f"{MANIFEST}: files must be names of files in the folder, got {name!r}")
            files[name] = FileRecord.parsed(one, f"{MANIFEST}: files, {name!r}")
        values = {name: record[name] for name in kinds}
        return cls(**values | {"command": tuple(map(str, record["command"])), "files": files})


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)
