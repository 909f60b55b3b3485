"""Reads tables (DataFrame, CSV, TSV, JSONL, Parquet) into columns, and checks their cells."""

from __future__ import annotations

import csv
import gzip
import itertools
import math
import re
import unicodedata
import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_bayes.checks import no_such_file
from agentic_bayes.errors import AgenticBayesError, MissingPackage, did_you_mean
from agentic_bayes.records.base import short
from agentic_bayes.records.wire.strict_json import strict_json

if TYPE_CHECKING:
    import pandas as pd

TRUE = frozenset({"1", "1.0", "true"})
FALSE = frozenset({"0", "0.0", "false"})
BLANK = frozenset({"", "nan", "na", "none", "null"})
SHOWN = 20
QUOTED = re.compile(r'"[^"]*("|$)')
SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can hold half of a surrogate pair, UTF-8 cannot
WHOLE_NUMBER = re.compile(r"0*([0-9]{1,16})(\.0*)?")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

TableColumns = Mapping[str, Sequence[Any]]
Failure = type[AgenticBayesError]


def require_columns(source: str, columns: TableColumns, required: Iterable[str], *, hint: str, error: Failure) -> None:
    """Refuse a table that lacks required columns, and name the nearest ones."""
    missing = [name for name in required if name not in columns]
    if missing:
        near = [f"{name!r} ({did_you_mean(str(name), columns)})" for name in missing]
        raise error(
            f"{source}: there is no column {' and no '.join(near)}. Its columns: "
            f"{', '.join(map(repr, columns)) or 'none'}. {hint}"
        )
    if not all(len(values) for values in columns.values()):
        raise error(f"{source}: the table has no rows")


def refuse(source: str, problems: Sequence[str], *, error: Failure) -> None:
    """Raise one error that lists all problems, if there are any."""
    if problems:
        more = f"; … and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise error(f"{source}: " + "; ".join(problems[:SHOWN]) + more)


def is_blank(value: object) -> bool:
    """Whether a cell is blank."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return str(value).strip().lower() in BLANK or str(value) == "<NA>"


def zero_one(value: object) -> int | None:
    """1, 0, None if blank, or -1 if it is none of these."""
    if is_blank(value):
        return None
    text = str(value).strip().lower()
    return 1 if text in TRUE else 0 if text in FALSE else -1


def number(value: object) -> float | None:
    """A finite number, or None."""
    match = NUMBER.fullmatch(str(value).strip())
    result = float(match[0]) if match else math.inf
    return result if math.isfinite(result) else None


def whole_number(value: object) -> int | None:
    """A whole number in [0, 2^53), or None."""
    match = WHOLE_NUMBER.fullmatch(str(value).strip())
    result = int(match[1]) if match else 2**53
    return result if result < 2**53 else None


def label(value: object) -> str:
    """The cell as text; whole floats, which columns with gaps turn integers into, become integers again."""
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
    return text if text.isascii() else unicodedata.normalize("NFC", text)  # as ids of records


def labels(values: Sequence[Any], column: str, problems: list[str]) -> list[str]:
    """The labels of a column; blank cells, and cells that hold no label, are problems."""
    texts = []
    for i, value in enumerate(values):
        blank = value is None or str(value).strip() == "" or (isinstance(value, float) and math.isnan(value))
        if blank or str(value) in ("<NA>", "nan"):
            problems.append(f"row {i + 1}: {column} must not be blank")
        elif isinstance(value, (list, dict)):
            problems.append(f"row {i + 1}: {column} must be text or a number, got {value!r}")
        elif SURROGATE.search(str(value)):
            problems.append(f"row {i + 1}: {column} must be Unicode text, got {value!r}")
        elif "\0" in str(value):
            problems.append(f"row {i + 1}: {column} must not contain the character NUL, got {value!r}")
        texts.append(label(value))
    return texts


def whole_numbers(columns: TableColumns, column: str, size: int, problems: list[str]) -> list[int]:
    """A column of whole numbers ≥ 0; zeros if there is no such column."""
    numbers = []
    for i, value in enumerate(columns.get(column, [0] * size)):
        index = whole_number(value)
        if index is None:
            problems.append(f"row {i + 1}: {column} must be a whole number ≥ 0, got {short(value)}")
        numbers.append(index or 0)
    return numbers


def no_repetition(places: Iterable[Hashable], name: Callable[[Any], str], problems: list[str]) -> None:
    """Collect a problem for every place that occurs twice."""
    first: dict[Hashable, int] = {}
    for i, place in enumerate(places):
        before = first.setdefault(place, i)
        if before != i:
            problems.append(f"rows {before + 1} and {i + 1} are both {name(place)}")


def read_columns(table: pd.DataFrame | str | Path, *, error: Failure) -> tuple[str, TableColumns]:
    """The name of a table's source, and its columns."""
    if not isinstance(table, (str, Path)):
        import pandas as pd

        if not isinstance(table, pd.DataFrame):
            raise error(f"table must be a pandas.DataFrame or a path, got {type(table).__name__}")
        repeated = sorted({str(name) for name in table.columns[table.columns.duplicated()]})
        if repeated:
            raise error(f"DataFrame: columns occur twice: {', '.join(map(repr, repeated))}")
        return "DataFrame", {str(name): table[name].tolist() for name in table.columns}
    path = Path(table)
    if not path.is_file():
        raise error(no_such_file(path))
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if suffix == ".parquet":
        return str(path), _read_parquet(path, error=error)
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8-sig", newline="")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8-sig", newline="") as stream
        ):
            if suffix in (".jsonl", ".ndjson"):
                return str(path), _read_jsonl(stream, str(path), error=error)
            return str(path), _read_csv(stream, str(path), tab=suffix == ".tsv", error=error)
    except UnicodeDecodeError as cause:
        raise error(f"{path}: must be UTF-8, got byte {cause.object[cause.start]:#04x}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as cause:
        raise error(f"{path}: not a complete gzip file ({cause})") from None


def read_json(path: Path, *, error: Failure) -> Any:
    """The value of a JSON file."""
    if not path.is_file():
        raise error(no_such_file(path))
    try:
        return strict_json(path.read_text(encoding="utf-8-sig"), finite=False)
    except ValueError as cause:
        raise error(f"{path}: must be JSON ({cause})") from None


def _read_csv(stream: Any, source: str, *, tab: bool, error: Failure) -> TableColumns:
    lines = iter(stream)
    head = next(lines, "")
    if "\0" in head or head.lstrip()[:1] in ("{", "["):
        raise error(f"{source}: not a CSV or TSV table (JSONL is read from files named .jsonl)")
    delimiter = "\t" if tab else max(",\t;", key=QUOTED.sub("", head).count)
    rows = csv.reader(itertools.chain([head], lines), delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(rows, [])]
        if not any(header):
            raise error(f"{source}: the file is empty")
        if len(set(header)) != len(header):
            repeated = sorted({name for name in header if header.count(name) > 1})
            raise error(f"{source}: columns occur twice: {', '.join(map(repr, repeated))}")
        columns: dict[str, list[str]] = {name: [] for name in header}
        for row in rows:
            if not any(map(str.strip, row)):
                continue  # spreadsheets leave rows of nothing but delimiters
            if len(row) != len(header):
                number = len(columns[header[0]]) + 1
                raise error(f"{source}: row {number} must have {len(header)} fields as the header, got {len(row)}")
            for name, value in zip(header, row, strict=True):
                columns[name].append(value)
    except csv.Error as cause:
        raise error(f"{source}: not a readable table ({cause})") from None
    return columns


def _read_jsonl(stream: Any, source: str, *, error: Failure) -> TableColumns:
    rows = []
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        try:
            row = strict_json(line, finite=False)
        except ValueError as cause:
            raise error(f"{source}: line {number} is not JSON ({cause})") from None
        if not isinstance(row, dict):
            raise error(f"{source}: line {number} must be an object, got {type(row).__name__}")
        rows.append(row)
    if not rows:
        raise error(f"{source}: the file is empty")
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _read_parquet(path: Path, *, error: Failure) -> TableColumns:
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise MissingPackage("reading Parquet needs pyarrow: pip install 'agentic-bayes[parquet]'") from None
    except (OSError, ValueError) as cause:
        raise error(f"{path}: not a readable Parquet file ({cause})") from None
    return {str(name): frame[name].tolist() for name in frame.columns}
