"""Reads tables of every kind into columns, and checks their cells."""

from __future__ import annotations

import math
import operator
import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentic_bayes.checks import check_path, no_such_file
from agentic_bayes.errors import AgenticBayesError, did_you_mean
from agentic_bayes.evidence.frames import EngineTable, LocalTable, OpenTable, open_frame
from agentic_bayes.evidence.table_files import open_file
from agentic_bayes.formatting import first_problems
from agentic_bayes.records.base import short
from agentic_bayes.records.roles import named
from agentic_bayes.records.wire.strict_json import strict_json

TRUE = frozenset({"1", "1.0", "true"})
FALSE = frozenset({"0", "0.0", "false"})
BLANK = frozenset({"", "nan", "na", "n/a", "#n/a", "none", "null"})
NO_ERROR = FALSE | {"no", "ok", "-", "success", "passed", "[]", "{}"}  # in a column of errors, besides blanks
BLANK_LABEL = "must not be blank"
SHOWN = 20
SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can hold half of a surrogate pair, UTF-8 cannot
WHOLE_NUMBER = re.compile(r"0*([0-9]{1,16})(\.(?!000$)0*)?")  # 1.000 may be a thousand
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

TableColumns = Mapping[str, Sequence[Any]]
Place = Callable[[int], str]  # where a row stands: "line 3", else "row 2"
Failure = type[AgenticBayesError]


def require_columns(source: str, columns: TableColumns, required: Iterable[str], *, hint: str, error: Failure) -> None:
    """Refuse a table that lacks required columns, and name the nearest ones."""
    missing = [name for name in required if name not in columns]
    if missing:
        near = [f"{name!r} ({did_you_mean(str(name), columns)})" for name in missing]
        raise error(
            f"{source}: there is no column {' and no '.join(near)}. Its columns: "
            f"{', '.join(map(repr, columns)) or 'none'}. {hint}".removesuffix(". ")
        )
    if not all(len(values) for values in columns.values()):
        raise error(f"{source}: the table has no rows")


def usual(role: str, names: Iterable[str]) -> list[str]:
    """The columns whose name usually says that they hold this role, the most telling first."""
    return named(role, names)


def refuse(source: str, problems: Sequence[str], *, error: Failure) -> None:
    """Raise one error that lists all problems, if there are any."""
    if problems:
        raise error(f"{source}: {first_problems(problems, SHOWN)}")


def shown(value: object) -> str:
    """A cell as messages show it."""
    return short(value)


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
    if isinstance(value, bytes):  # text in old HDF5 and Parquet files
        value = value.decode("utf-8", "replace")
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
    return text if text.isascii() else unicodedata.normalize("NFC", text)  # as ids of records


def plain_labels(values: Sequence[Any]) -> Sequence[str] | None:
    """The labels of distinct values that are whole numbers or clean ASCII text, as most are; None if they are not."""
    kinds = set(map(type, values))
    if kinds == {int}:
        return list(map(str, values))
    if kinds != {str} or not {"", "nan", "<NA>"}.isdisjoint(values):
        return None
    text = "".join(values)
    clean = text.isascii() and "\0" not in text and all(map(operator.eq, values, map(str.strip, values)))
    return values if clean else None


def no_label(value: object) -> str:
    """What is wrong with a cell that should be a label, if anything is."""
    text = str(value)
    if value is None or text.strip() == "" or text in ("<NA>", "nan") or (isinstance(value, float) and value != value):
        return BLANK_LABEL
    if isinstance(value, (list, dict)):
        return f"must be text or a number, got {value!r}"
    if not text.isascii() and SURROGATE.search(text):
        return f"must be Unicode text, got {value!r}"
    return f"must not contain the character NUL, got {value!r}" if "\0" in text else ""


def row_number(row: int) -> str:
    """What a row is called where it has no line."""
    return f"row {row + 1}"


def labels(values: Sequence[Any], column: str, problems: list[str], place: Place = row_number) -> list[str]:
    """The labels of a column; blank cells, and cells that hold no label, are problems."""
    problems += [f"{place(i)}: {column} {wrong}" for i, value in enumerate(values) if (wrong := no_label(value))]
    return [label(value) for value in values]


def whole_numbers(
    columns: TableColumns, column: str, size: int, problems: list[str], place: Place = row_number
) -> list[int]:
    """A column of whole numbers ≥ 0; zeros if there is no such column."""
    numbers = []
    for i, value in enumerate(columns.get(column, [0] * size)):
        index = whole_number(value)
        if index is None:
            problems.append(f"{place(i)}: {column} must be a whole number ≥ 0, got {short(value)}")
        numbers.append(index or 0)
    return numbers


def no_repetition(
    keys: Iterable[Hashable], name: Callable[[Any], str], problems: list[str], place: Place = row_number
) -> None:
    """Collect a problem for every key that occurs twice."""
    first: dict[Hashable, int] = {}
    for i, key in enumerate(keys):
        before = first.setdefault(key, i)
        if before != i:
            problems.append(f"{both(place(before), place(i))} are both {name(key)}")


def both(one: str, other: str) -> str:
    """Two places: "lines 2 and 4"."""
    kind, _, number = one.partition(" ")
    return f"{kind}s {number} and {other.removeprefix(f'{kind} ')}"


def open_table(table: Any, *, error: Failure) -> OpenTable:
    """A table of any kind, its columns known and its cells not yet read."""
    if isinstance(table, LocalTable | EngineTable):
        return table
    if isinstance(table, (str, Path)):
        return open_file(check_path(table), error=error)
    return open_frame(table, error=error)


def read_whole(table: Any, *, error: Failure) -> LocalTable:
    """A table with all its cells, in lists."""
    opened = open_table(table, error=error)
    opened = opened.careful() or opened
    frame = opened.columns if isinstance(opened, LocalTable) else opened.take(opened.names)
    cells = {name: frame[name] for name in opened.names}
    lists = {name: v if isinstance(v, list) else v.tolist() for name, v in cells.items()}
    return replace(opened, columns=lists) if isinstance(opened, LocalTable) else LocalTable(opened.source, lists)


def read_columns(table: Any, *, error: Failure) -> tuple[str, TableColumns]:
    """The name of a table's source, and its columns."""
    whole = read_whole(table, error=error)
    return whole.source, whole.columns


def read_json(path: Path, *, error: Failure) -> Any:
    """The value of a JSON file."""
    if not path.is_file():
        raise error(no_such_file(path))
    try:
        return strict_json(path.read_text(encoding="utf-8-sig"), finite=False)
    except ValueError as cause:
        raise error(f"{path}: must be JSON ({cause})") from None
