"""Counts the rows of a lazy table in its engine, so that only counts come back."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.evidence import table as tables
from agentic_bayes.evidence.frames import EngineTable, in_order
from agentic_bayes.outcomes.rows import as_precise

if TYPE_CHECKING:
    import pandas as pd

COUNTED = "rows counted in the engine"  # a column that no table has
NO_RESULT = -1.0  # stands for every number that is neither a verdict nor a score
TOGETHER = 16  # expressions joined at a time
LOOKED_AT = 100_000  # rows with such numbers that a message is made from
BITS = 52  # trials in a block: floats hold their sums exactly


def count_in_engine(
    table: EngineTable,
    labels: Sequence[str],
    correct: str,
    *,
    error: str | None,
    trial: str | None,
    threshold: float | None,
) -> pd.DataFrame:
    """The distinct rows of these columns, and in `COUNTED` how many there are of each.

    Instead of errors there is whether there was one, instead of trials whether they are blank, and instead of scores
    within [0, 1] which side of the threshold they are on. If numbers are no results, there are only rows with such.
    """
    import narwhals as nw

    columns = {name: table.cells(name) for name in labels}
    columns[correct] = result = table.cells(correct)
    if error is not None:
        columns[error] = _is_error(table, error)
    if trial is not None:
        columns[trial] = nw.when(~_is_blank_label(table, trial)).then(nw.lit("given"))
    kind: Any = table.kind(correct)
    if not kind.is_numeric():
        return _with_cause(_grouped(table, columns), table, error)
    if threshold is None:
        allowed, value = (result == 0) | (result == 1), result.cast(nw.Float64)
    else:
        allowed = (result >= 0) & (result <= 1)
        value = nw.when(result >= as_precise(threshold, kind)).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
    blank = result.is_null() | result.is_nan() if kind.is_float() else result.is_null()
    columns[correct] = nw.when(~blank & allowed).then(value).when(~blank).then(nw.lit(NO_RESULT))
    frame = _grouped(table, columns)
    crashed = frame[error].to_numpy(dtype=bool) if error is not None else False
    if not ((frame[correct] == NO_RESULT) & np.logical_not(crashed)).any():
        return _with_cause(frame, table, error)
    wrong = ~blank & ~allowed if error is None else ~blank & ~allowed & ~columns[error]
    columns[correct] = result.cast(nw.Float64) if kind.is_float() else result
    return _grouped(replace(table, frame=table.frame.filter(wrong).head(LOOKED_AT)), columns)


def _is_error(table: EngineTable, error: str) -> Any:
    """Whether a row has an error, as `rows` finds out of single cells."""
    import narwhals as nw

    cells = table.cells(error)
    if isinstance(table.kind(error), nw.List) and table.frame.implementation.is_polars():  # has no text for lists
        return ~(cells.is_null() | (cells.list.len() == 0))
    text = cells.cast(nw.String).str.strip_chars().str.to_lowercase()
    return ~(text.is_null() | text.is_in([*tables.BLANK, *tables.NO_ERROR]))


def _is_blank_label(table: EngineTable, name: str) -> Any:
    """Whether a cell holds no label, as `tables.no_label` says of single cells."""
    import narwhals as nw

    cells, kind = table.cells(name), table.kind(name)
    if isinstance(kind, nw.String | nw.Categorical | nw.Enum):
        text = cells.cast(nw.String)
        return cells.is_null() | text.is_in(["nan", "<NA>"]) | (text.str.strip_chars() == "")
    return cells.is_null() | cells.is_nan() if kind.is_float() else cells.is_null()


def _with_cause(frame: pd.DataFrame, table: EngineTable, error: str | None) -> pd.DataFrame:
    """Rows that all have an error, with one of the errors for the message."""
    if error is not None and frame[error].to_numpy(dtype=bool).all():
        causes = table.collected(table.selected({error: table.cells(error)}).head(1), [error])[error].tolist()
        frame[error] = causes * len(frame)
    return frame


def repeated_in_engine(table: EngineTable, counted: pd.DataFrame, trial: str) -> Sequence[Mapping[Any, Any]]:
    """Some of the combinations of labels and trial that occur more than once, and how often.

    `counted` has a column for each role that is a label, with its distinct cells.
    """
    import narwhals as nw

    labels = {str(name): _label(table, str(name), counted[name].unique().tolist()) for name in counted}
    kind: Any = table.kind(trial)
    cells = table.cells(trial).str.strip_chars() if kind == nw.String else table.cells(trial)
    fits = kind.is_integer() and not isinstance(kind, nw.UInt64 | nw.Int128 | nw.UInt128)  # in 64 bits
    if trial not in labels and fits and _numbered_apart(table, labels, trial):
        return []
    return _grouped(table, {**labels, trial: labels.get(trial, cells)}, repeated=True).to_dict("records")


def _label(table: EngineTable, name: str, values: Sequence[Any]) -> Any:
    """A column of labels; where some of its `values` are the same label, as labels (which takes the engine long)."""
    import narwhals as nw

    cells, labels = table.cells(name), {value: tables.label(value) for value in values if isinstance(value, str)}
    if len({*labels.values()}) == len(labels):
        return cells
    cells = cells.cast(nw.String).str.strip_chars()
    shared = Counter(labels.values())
    spelled = {value.strip(string.whitespace): label for value, label in labels.items() if shared[label] > 1}
    spelled = {bare: label for bare, label in spelled.items() if bare != label}
    if not spelled:
        return cells
    # one of these holds text, the others nothing: conditions within each other would soon be too deep for an engine
    ways: list[Any] = [nw.when(cells == bare).then(nw.lit(label)) for bare, label in spelled.items()]
    ways.append(nw.when(~cells.is_in([*spelled])).then(cells))
    while len(ways) > 1:
        ways = [nw.concat_str(*ways[i : i + TOGETHER], ignore_nulls=True) for i in range(0, len(ways), TOGETHER)]
    return ways[0]


def _numbered_apart(table: EngineTable, labels: Mapping[str, Any], trial: str) -> bool:
    """Whether trials are all different, from sums in the engine: groups of trials would need fifty times the memory.

    Trial t is bit t mod 52 of block ⌊t / 52⌋. A sum of n powers of two has n bits set if and only if they differ.
    """
    import narwhals as nw

    number = table.cells(trial).cast(nw.Int64)
    bit = (nw.lit(2, nw.Int64) ** (number % BITS)).cast(nw.Int64)
    chosen = table.selected({**labels, "block": number // BITS, "bit": bit})
    *keys, last = chosen.collect_schema().names()
    sums = chosen.group_by(*keys).agg(nw.col(last).sum().alias("sum"), nw.len().alias("rows"))
    found = table.collected(sums.select("sum", "rows").unique(), ["sum", "rows"]).to_numpy(dtype=np.float64)
    if not ((found >= 0) & (found < 2**BITS)).all():
        return False
    bits = np.unpackbits(found[:, 0].astype("<u8").view(np.uint8).reshape(-1, 8), axis=1).sum(axis=1)
    return bool((bits == found[:, 1]).all())


def _grouped(table: EngineTable, columns: Mapping[str, Any], *, repeated: bool = False) -> pd.DataFrame:
    """The distinct rows and their numbers; of the `repeated` ones only the first few."""
    import narwhals as nw

    chosen = table.selected(columns)
    counts = chosen.group_by(*chosen.collect_schema().names()).agg(nw.len().alias("rows"))
    if repeated:
        counts = counts.filter(nw.col("rows") > 1).head(tables.SHOWN + 1)
    return in_order(table.collected(counts, [*columns, COUNTED]))
