"""Counts the rows of a table: encodes every column, so that only distinct values are checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.errors import OutcomesError
from agentic_bayes.evidence import table as tables
from agentic_bayes.formatting import first_problems, plural
from agentic_bayes.numerics import Array
from agentic_bayes.outcomes import verdicts

if TYPE_CHECKING:
    import pandas as pd


WHOLE = "a whole number in [0, 2^53)"
_THOUSANDS = re.compile("[0-9]{1,3}([ ,.'’\u00a0\u202f][0-9]{3})+")
_MARKS = "Write numbers without marks of thousands"
DENSE = 16  # possible keys per row up to which one byte for each key is smaller than a hash table


@dataclass
class TableFindings:
    """What is wrong with a table, and what helps; long lists are cut and counted."""

    place: Callable[[int], str]  # where a row stands
    problems: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)  # what may be wrong although it can be read
    weights: Array | None = None  # of a table counted in its engine: how many rows each row stands for

    def where(self, rows: Array) -> str:
        """Where the first of these rows stands, and how many there are; in an engine rows have no place."""
        if self.weights is not None:
            return plural(int(self.weights[rows].sum()), "row")
        return self.place(int(rows[0])) + (f", {plural(len(rows), 'row')}" if len(rows) > 1 else "")

    def at(self, rows: Array, message: str) -> None:
        """The same problem in several rows."""
        if self.weights is not None:
            self.problems.append(f"{self.where(rows)}: {message}")
            return
        shown = rows[: tables.SHOWN + 1].tolist()
        self.problems += [f"{self.place(row)}: {message}" for row in shown]
        self.problems += [""] * (len(rows) - len(shown))  # counted, not shown

    def repeated(self, keys: Array, name: Callable[[int], str]) -> bool:
        """Collect a problem for every key that occurs twice; whether there is one."""
        import pandas as pd

        if _are_distinct(keys):
            return False
        codes, _ = pd.factorize(keys)
        _, first = np.unique(codes, return_index=True)
        again = np.setdiff1d(np.arange(len(keys)), first)
        shown = again[: tables.SHOWN + 1].tolist()
        for row in shown:
            places = tables.both(self.place(int(first[codes[row]])), self.place(row))
            self.problems.append(f"{places} are both {name(row)}")
        self.problems += [""] * (len(again) - len(shown))
        return True

    def refuse(self, source: str, by_pandas: str) -> None:
        """Raise one error with all problems, if there are any, and then what helps; `by_pandas` makes a frame of it."""
        if self.problems:
            advice = "".join(f". {text}" for text in dict.fromkeys(self.advice))
            if by_pandas and re.search(r'table(\["| = )', advice):
                if _MARKS in advice:  # 1.234 would be a number with decimals
                    by_pandas = by_pandas.removesuffix(")") + ", dtype=str)"
                after = "; after: table.to_csv('new.csv', index=False)" if source != "records" else ""
                advice += f". Before: table = {by_pandas}{after}"
            raise OutcomesError(f"{source}: {first_problems(self.problems, tables.SHOWN)}{advice}")


def _are_distinct(keys: Array) -> bool:
    """Whether no key (whole numbers ≥ 0) occurs twice."""
    import pandas as pd

    if (most := int(keys.max())) < DENSE * len(keys):
        present = np.zeros(most + 1, dtype=bool)
        present[keys] = True
        return int(np.count_nonzero(present)) == len(keys)
    return bool(pd.Index(keys).is_unique)


@dataclass(frozen=True)
class CodedColumn:
    """A column as codes of its distinct values, −1 where it is blank."""

    codes: Array
    values: Sequence[Any]

    @classmethod
    def of(cls, cells: pd.Series) -> CodedColumn:
        """Code a column; cells that cannot be told apart by hash (lists, objects) are by how they print."""
        import pandas as pd

        try:
            codes, values = pd.factorize(cells)
        except (TypeError, NotImplementedError):
            texts = [f"\0{cell!r}" if cell.__hash__ is None else cell for cell in cells]
            codes, _ = pd.factorize(np.asarray(texts, dtype=object))
            used, first = np.unique(codes, return_index=True)
            whole = cells.tolist()
            return cls(codes, [whole[row] for row in first[used >= 0]])
        plain = np.asarray(values) if values.dtype.kind in "iufU" else values  # arrays of Arrow's make lists slowly
        distinct = plain.tolist()
        if distinct and isinstance(distinct[0], bytes):  # text in old HDF5 and Parquet files
            distinct = [value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in distinct]
        return cls(codes, distinct)

    def rows(self, codes: Sequence[int]) -> Array:
        """The rows that hold one of these values."""
        return np.flatnonzero(np.isin(self.codes, np.asarray(codes, dtype=np.int64)))

    def first(self, code: int) -> int:
        """The first row that holds a value."""
        return int(np.argmax(self.codes == code))

    def value(self, code: int) -> Any:
        """What a code stands for, None if it is blank."""
        return self.values[code] if code >= 0 else None

    def mapped(self, values: Any, blank: Any) -> Array:
        """What stands for each value, row by row."""
        return np.append(np.asarray(values), np.asarray([blank]))[self.codes]  # −1 is the last


def read_labels(cells: pd.Series, column: str, findings: TableFindings) -> CodedColumn:
    """The labels of a column; blank cells, and cells that hold no label, are problems."""
    import pandas as pd

    coded = CodedColumn.of(cells)
    plain = tables.plain_labels(coded.values)
    if plain is not None and coded.codes.min() >= 0:
        return CodedColumn(coded.codes, plain)
    blank = [-1]
    for code, value in enumerate(coded.values):
        if wrong := tables.no_label(value):
            if wrong == tables.BLANK_LABEL:
                blank.append(code)
            else:
                findings.at(coded.rows([code]), f"{column} {wrong}")
    if len(rows := coded.rows(blank)):
        findings.at(rows, f"{column} {tables.BLANK_LABEL}")
        if rows[0] > 0 and findings.weights is None:  # in an engine rows have no order
            filled = f'table["{column}"] = table["{column}"].ffill()'
            findings.advice.append(f"If the cells above hold for these rows too (merged cells): {filled}")
    places, labels = pd.factorize(np.asarray([tables.label(value) for value in coded.values], dtype=object))
    return CodedColumn(coded.mapped(places, 0), labels.tolist() or [""])


def read_numbers(cells: pd.Series, column: str, findings: TableFindings) -> Array:
    """A column of counts."""
    coded = CodedColumn.of(cells)
    numbers = [tables.whole_number(value) for value in coded.values]
    blank = [-1, *(code for code, value in enumerate(coded.values) if tables.is_blank(value))]
    wrong = [code for code, number in enumerate(numbers) if number is None and code not in blank]
    for codes in [*([code] for code in wrong), blank]:
        if len(rows := coded.rows(codes)):
            got = "a blank" if codes is blank else tables.shown(coded.values[codes[0]])
            findings.at(rows, f"{column} must be {WHOLE}, got {got}")
            if codes is blank:
                findings.advice.append(f'To leave out what was not run: table = table.dropna(subset=["{column}"])')
    if not any(text.startswith("If there is a second header") for text in findings.advice):
        findings.advice += _count_advice([coded.values[code] for code in wrong], column)
    return coded.mapped(np.asarray([number or 0 for number in numbers], dtype=np.int64), np.int64(0))


def _count_advice(wrong: Sequence[Any], column: str) -> list[str]:
    texts = [str(value).strip() for value in wrong]
    if column in texts:
        return [verdicts.repeated_header(column)]
    if texts and (marked := verdicts.footnotes(texts, f'table["{column}"]')):
        return marked
    if any("/" in text for text in texts):
        both = f'table[["successes", "trials"]] = table["{column}"].str.split("/", expand=True)'
        return [f'Split "7/10" into two columns: {both}']
    if texts and all(_THOUSANDS.fullmatch(text) for text in texts):
        marks = dict.fromkeys(mark for text in texts for mark in text if not mark.isdecimal())
        bare = f'table["{column}"]' + "".join(f'.str.replace("{mark}", "")' for mark in marks)
        return [f'{_MARKS}: table["{column}"] = {bare}']
    if texts and all("," in text and tables.number(text.replace(",", ".", 1)) is not None for text in texts):
        return [f'Decimal commas: table["{column}"] = table["{column}"].str.replace(",", ".").astype(float)']
    if texts and all(text.startswith("-") for text in texts):
        return [
            f'If less than 0 means "not run", leave these rows out: table = table[table["{column}"].astype(int) >= 0]'
        ]
    if any((tables.number(text.rstrip("% ")) or 0) % 1 for text in texts) or any("%" in text for text in texts):
        return [f'For rates, counts are rate × trials: table["{column}"] = (rate * trials).round().astype(int)']
    return []


@dataclass(frozen=True)
class CountedTable:
    """Counts by agent and task, and what is known of the tasks."""

    agents: Sequence[str]
    tasks: Sequence[str]
    counts: Array  # successes, trials, unscored, errored × agents × tasks


def count_rows(agents: CodedColumn, tasks: CodedColumn, outcome: Array, weights: Array | None) -> CountedTable:
    """Count verdict codes per agent and task; `weights` says how many rows each row stands for."""
    shape = (len(agents.values), len(tasks.values), 4)
    place = (agents.codes * shape[1] + tasks.codes) * 4 + outcome
    found = np.bincount(place, weights, minlength=int(np.prod(shape))).astype(np.int64).reshape(shape)
    failed, passed, unscored, errored = np.moveaxis(found, -1, 0)
    counts = np.stack([passed, passed + failed, unscored + errored, errored])
    return CountedTable(agents.values, tasks.values, counts)


def read_outcomes_of_rows(
    frame: pd.DataFrame, correct: str, error: str | None, threshold: float | None, comma: bool, findings: TableFindings
) -> Array:
    """The verdict code of every row, errored where its error column says so; `comma`: decimals may have one."""
    cells = frame[correct]
    crashed = np.zeros(len(frame), dtype=bool)
    if error is not None:
        marks = CodedColumn.of(frame[error])
        crashed = marks.mapped([_is_error(value) for value in marks.values], False).astype(bool)
        if crashed.all() and not all(map(tables.is_blank, cells)):
            cell = tables.shown(marks.values[0])
            findings.doubts.append(
                f"every row has an error in column {error!r} ({cell}), so that no trial has a verdict; if it holds "
                "no errors, leave the column out or give it another name"
            )
        if crashed.any():  # what stands beside an error is not looked at
            cells = (cells.convert_dtypes() if cells.dtype.kind in "iu" else cells).mask(crashed)  # 2 must not be 2.0
    if threshold is not None and (scores := _scores(cells)) is not None:
        verdict = np.where(np.isnan(scores), verdicts.NONE, scores >= as_precise(threshold, cells.dtype))
        return np.where(crashed, verdicts.ERRORED, verdict)
    coded = CodedColumn.of(cells)

    codes, wrong = verdicts.read_verdicts(
        coded.values,
        column=correct,
        threshold=threshold,
        comma=comma,
        place=lambda code: findings.where(coded.rows([code])),
        advice=findings.advice,
    )
    if wrong:
        findings.problems.append(wrong)
        return np.full(len(frame), verdicts.NONE)
    return np.where(crashed, verdicts.ERRORED, coded.mapped(np.asarray(codes, dtype=np.int64), verdicts.NONE))


def as_precise(threshold: float, kind: Any) -> float:
    """The threshold as a column of floats holds it: .7 in four bytes is less than .7."""
    return float(np.float32(threshold)) if str(kind).lower().startswith(("float32", "float[")) else threshold


def _is_error(value: Any) -> bool:
    """Whether a cell of a column of errors holds one."""
    if isinstance(value, (list, dict)):
        return bool(value)
    return not tables.is_blank(value) and str(value).strip().lower() not in tables.NO_ERROR


def _scores(cells: pd.Series) -> Array | None:
    """A column that holds nothing but scores in [0, 1] and blanks, which are NaN; None if it may hold anything else."""
    import pandas as pd

    if cells.dtype.kind == "f":
        scores = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    elif cells.dtype == object and set(map(type, cells)) <= {float, int, type(None)}:
        scores = cells.to_numpy(dtype=np.float64)
    elif isinstance(cells.dtype, pd.StringDtype) and cells.dtype.storage == "pyarrow":
        import pyarrow as pa
        from pyarrow import compute

        text = pa.array(cells)
        text = compute.if_else(compute.equal(text, ""), None, text)
        try:
            scores = np.asarray(compute.cast(text, pa.float64()))
        except pa.ArrowInvalid:
            return None
        if np.count_nonzero(np.isnan(scores)) > text.null_count:
            return None
    else:
        return None
    return scores if (np.isnan(scores) | ((scores >= 0) & (scores <= 1))).all() else None


def read_counts(
    frame: pd.DataFrame, names: tuple[str, str], agents: CodedColumn, tasks: CodedColumn, findings: TableFindings
) -> CountedTable:
    """Counts from columns of counts."""
    successes, trials = names
    zeros = np.zeros(len(frame), dtype=np.int64)
    labelled = not findings.problems
    before = len(findings.problems)
    columns = [read_numbers(frame[name], name, findings) for name in names]
    errored = read_numbers(frame["errored"], "errored", findings) if "errored" in frame else zeros
    unscored = read_numbers(frame["unscored"], "unscored", findings) if "unscored" in frame else errored
    if len(findings.problems) == before:
        rates = set(map(str, frame[successes].unique())) <= {"0.0", "1.0"} and columns[0].any()
        if rates and columns[1].min() > 1:
            few = f"{successes} are all 0.0 or 1.0, of more than one trial each"
            findings.doubts.append(f"{few}: if these are rates, counts are rate × trials")
        for (part, name), (whole, of) in (
            ((columns[0], successes), (columns[1], trials)),
            ((errored, "errored"), (unscored, "unscored")),
        ):
            wrong = np.flatnonzero(part > whole)
            for row in wrong.tolist():
                findings.problems.append(
                    f"{findings.place(row)}: {name} must not exceed {of}, got {part[row]} of {whole[row]}"
                )
            if len(wrong) and of == trials and (part >= whole).all():
                findings.advice.append(
                    f'If the columns are swapped: successes="{trials}", trials="{successes}" '
                    f"(--columns successes={trials},trials={successes})"
                )
    cell = agents.codes * len(tasks.values) + tasks.codes

    def named(row: int) -> str:
        return f"agent {agents.values[agents.codes[row]]!r}, task {tasks.values[tasks.codes[row]]!r}"

    if labelled and findings.repeated(cell, named):
        findings.advice.append(
            'Rows of the same agent and task can be added up: table.groupby(["agent", "task"]).sum().reset_index()'
        )
    counts = np.zeros((4, len(agents.values), len(tasks.values)), dtype=np.int64)
    counts[:, agents.codes, tasks.codes] = [*columns, unscored, errored]
    return CountedTable(agents.values, tasks.values, counts)
