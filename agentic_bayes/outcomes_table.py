"""The other way into the waist: a table of 0/1 results or of counts that somebody already has."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import math
import re
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_bayes.errors import InvalidArgument, MissingPackage, OutcomesError, did_you_mean, no_such_file
from agentic_bayes.evidence.jsonl import unique_keys
from agentic_bayes.outcomes import LARGEST, dataset_from_counts

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["outcomes_from_table"]

TRUE = frozenset({"1", "1.0", "true"})
FALSE = frozenset({"0", "0.0", "false"})
BLANK = frozenset({"", "nan", "na", "none", "null"})
SHOWN = 20
QUOTED = re.compile(r'"[^"]*("|$)')
SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can hold half a character, UTF-8 cannot
WHOLE_NUMBER = re.compile(r"0*([0-9]{1,16})(\.0*)?")

Columns = Mapping[str, Sequence[Any]]


def outcomes_from_table(
    table: pd.DataFrame | str | Path,
    *,
    agent: str = "agent",
    task: str = "task",
    trial: str = "trial",
    correct: str = "correct",
    successes: str | None = None,
    trials: str | None = None,
) -> xr.Dataset:
    """Outcomes from a table, one row per trial (0/1) or one row per agent and task (counts).

    Parameters
    ----------
    table : pandas.DataFrame or path
        CSV, TSV, JSONL or Parquet; CSV and TSV may be gzipped.
    agent, task, trial, correct : str
        Column names. Without an ``agent`` column there is one agent, named ``agent``; ``trial`` is optional and
        guards against duplicates. ``correct`` holds 0/1, booleans or "true"/"false"; blank is unscored.
    successes, trials : str, optional
        Column names of counts. They are used when both are given, or when there is no ``correct`` column and
        the table has columns ``successes`` and ``trials``. An ``unscored`` column is then read too.

    Returns
    -------
    xarray.Dataset
        See `check_outcomes`. Other columns are ignored.

    Raises
    ------
    OutcomesError
        If a column is missing or values are not what they must be; all problems are in one message.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"task": ["a", "a", "b"], "correct": [1, 0, None]})
    >>> outcomes_from_table(table)["trials"].values.tolist()
    [[2, 0]]
    """
    if (successes is None) != (trials is None):
        raise InvalidArgument("give both `successes` and `trials` column names, or neither")
    source, columns = _columns(table)
    count_names = (successes, trials)
    if successes is None and correct not in columns and {"successes", "trials"} <= set(columns):
        count_names = ("successes", "trials")
    required = [task, *(count_names if count_names[0] is not None else (correct,))]
    required += [name for name, default in ((agent, "agent"), (trial, "trial")) if name != default]
    missing = [name for name in required if name not in columns]
    if missing:
        near = [f"{name!r} ({did_you_mean(str(name), columns)})" for name in missing]
        raise OutcomesError(
            f"{source}: there is no column {' and no '.join(near)}. Columns found: "
            f'{", ".join(map(repr, columns)) or "none"}. Say which is which: task="…", correct="…" in Python, '
            "--columns task=…,correct=… on the command line"
        )
    size = len(columns[task])
    if size == 0:
        raise OutcomesError(f"{source}: the table has no rows")
    problems: list[str] = []
    agents = _labels(columns.get(agent, ["agent"] * size), agent, problems)
    tasks = _labels(columns[task], task, problems)
    if count_names[0] is not None and count_names[1] is not None:
        counts = _from_counts(columns, agents, tasks, count_names[0], count_names[1], problems)
        indicator = count_names[0]
    else:
        labels = _labels(columns[trial], trial, problems) if trial in columns else None
        counts = _from_rows(columns[correct], agents, tasks, labels, correct, problems)
        indicator = correct
    if problems:
        more = f"; … and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise OutcomesError(f"{source}: " + "; ".join(problems[:SHOWN]) + more)
    return dataset_from_counts(counts, {"unit": "conversation", "indicator": indicator, "source": source})


def _from_rows(
    values: Sequence[Any],
    agents: list[str],
    tasks: list[str],
    labels: list[str] | None,
    column: str,
    problems: list[str],
) -> dict[tuple[str, str], tuple[int, int, int, int]]:
    """Counts of 0/1 rows."""
    cells: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    first: dict[tuple[str, str, str], int] = {}
    for i, (agent, task, value) in enumerate(zip(agents, tasks, values, strict=True)):
        if labels is not None:
            before = first.setdefault((agent, task, labels[i]), i)
            if before != i:
                problems.append(
                    f"rows {before + 1} and {i + 1} are both agent {agent!r}, task {task!r}, trial {labels[i]!r}"
                )
        cell = cells[agent, task]
        outcome = _outcome(value)
        if outcome is None:
            cell[2] += 1
        elif outcome in (0, 1):
            cell[0] += outcome
            cell[1] += 1
        else:
            problems.append(f"row {i + 1}: {column} must be 0, 1, true, false or blank, got {value!r}")
    return {key: (c[0], c[1], c[2], c[3]) for key, c in cells.items()}


def _from_counts(
    columns: Columns, agents: list[str], tasks: list[str], successes: str, trials: str, problems: list[str]
) -> dict[tuple[str, str], tuple[int, int, int, int]]:
    """Counts that are there already."""
    cells: dict[tuple[str, str], tuple[int, int, int, int]] = {}
    first: dict[tuple[str, str], int] = {}
    unscored = columns.get("unscored", [0] * len(tasks))
    for i, (agent, task) in enumerate(zip(agents, tasks, strict=True)):
        numbers = []
        for name, value in (
            (successes, columns[successes][i]),
            (trials, columns[trials][i]),
            ("unscored", unscored[i]),
        ):
            number = _count(value)
            if number is None:
                problems.append(f"row {i + 1}: {name} must be a whole number in [0, 2^53), got {value!r}")
            else:
                numbers.append(number)
        if len(numbers) < 3:
            continue
        if numbers[0] > numbers[1]:
            problems.append(f"row {i + 1}: {successes} must not exceed {trials}, got {numbers[0]} of {numbers[1]}")
        before = first.setdefault((agent, task), i)
        if before != i:
            problems.append(f"rows {before + 1} and {i + 1} are both agent {agent!r}, task {task!r}")
        cells[agent, task] = (numbers[0], numbers[1], numbers[2], 0)
    return cells


def _is_blank(value: object) -> bool:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return str(value).strip().lower() in BLANK or str(value) == "<NA>"


def _outcome(value: object) -> int | None:
    """1, 0, None for blank, or -1 for what is none of these."""
    if _is_blank(value):
        return None
    text = str(value).strip().lower()
    return 1 if text in TRUE else 0 if text in FALSE else -1


def _count(value: object) -> int | None:
    """A whole number in [0, 2^53), or None."""
    found = WHOLE_NUMBER.fullmatch(str(value).strip())
    number = int(found[1]) if found else LARGEST
    return number if number < LARGEST else None


def _labels(values: Sequence[Any], column: str, problems: list[str]) -> list[str]:
    """Labels as text; whole floats, which a column with gaps becomes, are whole numbers again."""
    labels = []
    for i, value in enumerate(values):
        blank = value is None or str(value).strip() == "" or (isinstance(value, float) and math.isnan(value))
        if blank or str(value) in ("<NA>", "nan"):
            problems.append(f"row {i + 1}: {column} must not be blank")
        elif isinstance(value, (list, dict)):
            problems.append(f"row {i + 1}: {column} must be text or a number, got {value!r}")
        elif SURROGATE.search(str(value)):
            problems.append(f"row {i + 1}: {column} must be Unicode text, got {value!r}")
        whole = isinstance(value, float) and value.is_integer()
        labels.append(str(int(value)) if whole else str(value).strip())
    return labels


def _columns(table: pd.DataFrame | str | Path) -> tuple[str, Columns]:
    """Where the table comes from, and its columns."""
    if not isinstance(table, (str, Path)):
        import pandas as pd

        if not isinstance(table, pd.DataFrame):
            raise OutcomesError(f"table must be a pandas.DataFrame or a path, got {type(table).__name__}")
        repeated = sorted({str(name) for name in table.columns[table.columns.duplicated()]})
        if repeated:
            raise OutcomesError(f"DataFrame: columns occur twice: {', '.join(map(repr, repeated))}")
        return "DataFrame", {str(name): table[name].tolist() for name in table.columns}
    path = Path(table)
    if not path.is_file():
        raise OutcomesError(no_such_file(path))
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if suffix == ".parquet":
        return str(path), _read_parquet(path)
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8-sig", newline="")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8-sig", newline="") as stream
        ):
            if suffix in (".jsonl", ".ndjson"):
                return str(path), _read_jsonl(stream, str(path))
            return str(path), _read_csv(stream, str(path), tab=suffix == ".tsv")
    except UnicodeDecodeError as error:
        raise OutcomesError(f"{path}: must be UTF-8, got byte {error.object[error.start]:#04x}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise OutcomesError(f"{path}: not a complete gzip file ({error})") from None


def _read_csv(stream: Any, source: str, *, tab: bool) -> Columns:
    lines = iter(stream)
    head = next(lines, "")
    if "\0" in head or head.lstrip()[:1] in ("{", "["):
        raise OutcomesError(f"{source}: not a CSV or TSV table (JSONL is read from files named .jsonl)")
    delimiter = "\t" if tab else max(",\t;", key=QUOTED.sub("", head).count)
    rows = csv.reader(itertools.chain([head], lines), delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(rows, [])]
        if not any(header):
            raise OutcomesError(f"{source}: the file is empty")
        if len(set(header)) != len(header):
            repeated = sorted({name for name in header if header.count(name) > 1})
            raise OutcomesError(f"{source}: columns occur twice: {', '.join(map(repr, repeated))}")
        columns: dict[str, list[str]] = {name: [] for name in header}
        for row in rows:
            if not any(map(str.strip, row)):
                continue  # spreadsheets leave rows of nothing but delimiters
            if len(row) != len(header):
                number = len(columns[header[0]]) + 1
                raise OutcomesError(
                    f"{source}: row {number} must have {len(header)} fields as the header, got {len(row)}"
                )
            for name, value in zip(header, row, strict=True):
                columns[name].append(value)
    except csv.Error as error:
        raise OutcomesError(f"{source}: not a readable table ({error})") from None
    return columns


def _read_jsonl(stream: Any, source: str) -> Columns:
    rows = []
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=unique_keys)
        except (ValueError, RecursionError) as error:
            raise OutcomesError(f"{source}: line {number} is not JSON ({error})") from None
        if not isinstance(row, dict):
            raise OutcomesError(f"{source}: line {number} must be an object, got {type(row).__name__}")
        rows.append(row)
    if not rows:
        raise OutcomesError(f"{source}: the file is empty")
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _read_parquet(path: Path) -> Columns:
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise MissingPackage("reading Parquet needs pyarrow: pip install 'agentic-bayes[parquet]'") from None
    except (OSError, ValueError) as error:
        raise OutcomesError(f"{path}: not a readable Parquet file ({error})") from None
    return {str(name): frame[name].tolist() for name in frame.columns}
