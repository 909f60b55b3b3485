"""Which tool wrote a file of results, by its content."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from agentic_bayes.checks import check_path, no_such_file
from agentic_bayes.errors import EvidenceError
from agentic_bayes.evidence.results.base import ResultsContent, ResultsFormat
from agentic_bayes.evidence.results.readers import (
    bfcl,
    deepeval,
    evalplus,
    harbor,
    inspect_frames,
    junit,
    langsmith,
    lm_eval,
    mlflow,
    promptfoo,
    pydantic_evals,
    swe_bench,
)
from agentic_bayes.evidence.table import read_columns
from agentic_bayes.records.base import short
from agentic_bayes.records.wire.options import NO_OPTIONS, ReadOptions
from agentic_bayes.records.wire.strict_json import strict_json
from agentic_bayes.records.wire.unpacking import unpacked_gzip

_HEAD = 1 << 16
GROUP = "agentic_bayes.results"
"""Entry points of this group are `ResultsFormat` objects of other packages."""

BUILT_IN: tuple[ResultsFormat, ...] = (
    bfcl.FORMAT,
    deepeval.FORMAT,
    evalplus.FORMAT,
    harbor.FORMAT,
    inspect_frames.SAMPLES,
    inspect_frames.EVALS,
    junit.FORMAT,
    langsmith.FORMAT,
    lm_eval.FORMAT,
    mlflow.FORMAT,
    promptfoo.FORMAT,
    pydantic_evals.FORMAT,
    swe_bench.FORMAT,
)


@cache
def results_formats() -> tuple[ResultsFormat, ...]:
    """Every tool whose results are read: the built-in ones, then those of other packages."""
    found = [point.load() for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)]
    for value in found:
        if not isinstance(value, ResultsFormat):
            raise EvidenceError(f"entry points of {GROUP} must be ResultsFormat objects, got {short(value)}")
    return (*BUILT_IN, *found)


def format_of_results(content: ResultsContent) -> ResultsFormat | None:
    """The tool that wrote this, if it is one that is read."""
    return next((format for format in results_formats() if format.recognises(content)), None)


def read_content(source: Any, *, options: ReadOptions = NO_OPTIONS) -> ResultsContent:
    """A file as JSON, rows or markup; or what such a file holds: a frame, or the value of JSON."""
    if isinstance(source, (dict, list)):
        return _of_value(source, "results", options)
    if not isinstance(source, (str, Path)):
        return _of_table(source, options)
    path = check_path(source)
    if not path.is_file():
        raise EvidenceError(no_such_file(path))
    with path.open("rb") as stream:
        packed = stream.read(4)
    if packed == b"PAR1":
        return _of_table(path, options)
    text = _text(path)
    start = text.lstrip()[:1]
    if start == "<":
        return ResultsContent(str(path), text=text, options=options)
    if start not in ("{", "["):
        return _of_table(path, options)
    try:
        value = strict_json(text, finite=False)
    except ValueError as cause:
        lines = text.splitlines()
        if start == "[" or not next(line for line in lines if line.strip()).rstrip().endswith("}"):
            raise EvidenceError(f"{path}: not JSON ({cause})") from None
        return of_rows(str(path), list(_lines(lines, path)), options)
    return _of_value(value, str(path), options)


def results_format_of(path: Path) -> ResultsFormat | None:
    """The tool that wrote a file; of a table and of JSON lines only the beginning is read."""
    try:
        with path.open("rb") as stream:
            head = (unpacked_gzip(stream) if stream.peek(2)[:2] == b"\x1f\x8b" else stream).read(_HEAD)
        text = head.decode("utf-8-sig", "replace")
        lines = [line for line in text.splitlines() if line.strip()]
        if head[:4] != b"PAR1" and text.lstrip()[:1] not in ("{", "[", "<"):
            line = lines[0] if lines else ""
            delimiter = "\t" if line.count("\t") > line.count(",") else ","
            names = frozenset(name.strip() for name in next(csv.reader([line], delimiter=delimiter), []))
            return format_of_results(ResultsContent(str(path), columns=names))
        first = _objects(lines[: -1 if len(head) == _HEAD else None][:2])
        return format_of_results(of_rows(str(path), first) if len(first) > 1 else read_content(path))
    except (EvidenceError, csv.Error, EOFError, OSError, zlib.error):
        return None


def _objects(lines: Sequence[str]) -> list[Any]:
    """The values of JSON lines; none if these are not JSON lines."""
    try:
        return [strict_json(line, finite=False) for line in lines]
    except ValueError:
        return []


def _of_value(value: Any, source: str, options: ReadOptions) -> ResultsContent:
    rows = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
    return replace(of_rows(source, rows, options), value=value)


def of_rows(source: str, rows: Sequence[Any], options: ReadOptions = NO_OPTIONS) -> ResultsContent:
    """Rows that were read already."""
    first = next(iter(rows), None)
    columns = frozenset(map(str, first)) if isinstance(first, dict) else frozenset()
    return ResultsContent(source, rows=rows, columns=columns, options=options)


def _of_table(table: Any, options: ReadOptions) -> ResultsContent:
    source, columns = read_columns(table, error=EvidenceError)
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return ResultsContent(source, rows=rows, columns=frozenset(columns), options=options)


def _text(path: Path) -> str:
    """The text of a file, unpacked if it is packed by gzip."""
    try:
        with path.open("rb") as stream:
            packed = stream.peek(2)[:2] == b"\x1f\x8b"
            return (unpacked_gzip(stream) if packed else stream).read().decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise EvidenceError(f"{path}: must be UTF-8, got byte {cause.object[cause.start]:#04x}") from None
    except (EOFError, OSError, zlib.error) as cause:
        raise EvidenceError(f"{path}: cannot be read ({cause})") from None


def _lines(lines: Sequence[str], path: Path) -> Iterator[Any]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield strict_json(line, finite=False)
            except ValueError as cause:
                raise EvidenceError(f"{path}: line {number} is not JSON ({cause})") from None
