"""A file somebody names: outcomes, evidence or a saved estimate, told apart by content."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_bayes.checks import no_such_file
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.outcomes.count import count_outcomes
from agentic_bayes.outcomes.table import outcomes_from_table
from agentic_bayes.records.sources import format_of
from agentic_bayes.suites.results import RunResults
from agentic_bayes.suites.runner import find_run

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["holds_conversations", "open_input", "read_outcomes"]

HDF5 = b"\x89HDF"
HEAD = 1 << 22  # the first record of conversations may hold a long context before its other keys


def open_input(path: str | Path) -> Estimate | Evidence | Path:
    """Open an estimate or evidence; a table is left as its path, since its columns need names."""
    source = Path(path)
    if not source.is_file():
        raise InvalidArgument(no_such_file(source))
    with source.open("rb") as stream:
        head = stream.read(4)
    if head == HDF5:
        return Estimate.load(source)
    match _first_keys(source):
        case keys if "answer_score" in keys:
            return Evidence.read(source)
        case _ if holds_conversations(source):
            raise InvalidArgument(
                f"{source} holds conversations: assess them first "
                f"(agentic-bayes assess {source.name} -o evidence.jsonl)"
            )
        case _:
            return source


def holds_conversations(path: str | Path) -> bool:
    """Whether a file begins like one of conversations."""
    with open(path, "rb") as stream:
        return "conversation" in _first_keys(Path(path)) or format_of(stream) != "native"


def _first_keys(path: Path) -> frozenset[str]:
    """Keys near the beginning of a JSON or JSONL file; empty where it does not begin with an object or array."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig") as stream:
            head = stream.read(HEAD).lstrip()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error):
        return frozenset()
    try:
        first = json.loads(head.partition("\n")[0])
    except (ValueError, RecursionError):  # an object over several lines, or longer than what was read
        return frozenset(re.findall(r'"(\w+)"\s*:', head) if head[:1] in ("{", "[") else ())
    if isinstance(first, list):
        first = next(iter(first), None)
    return frozenset(first) if isinstance(first, dict) else frozenset()


def read_outcomes(
    path: str | Path, *, columns: dict[str, str] | None = None, counting: dict[str, Any] | None = None
) -> xr.Dataset:
    """Outcomes from any of the three kinds of file, or from a suite's run (its folder, or its id under ``results``)."""
    columns, counting = columns or {}, counting or {}
    if (run := find_run(str(path))) is not None:
        _refuse(columns | counting, path, "a run of a suite")
        return RunResults.of(run).outcomes
    opened = open_input(path)
    match opened:
        case Estimate():
            _refuse(columns | counting, path, "a saved estimate")
            return opened.outcomes
        case Evidence():
            _refuse(columns, path, "evidence")
            return count_outcomes(opened, **counting)
        case table:
            _refuse(counting, path, "a table")
            return outcomes_from_table(table, **columns)


def _refuse(options: dict[str, Any], path: str | Path, kind: str) -> None:
    if options:
        raise InvalidArgument(f"{path} is {kind}, which does not use {', '.join(sorted(options))}")
