"""Splits a table into the groups of rows that share the values of some columns, each to be read as a table."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from agentic_bayes.errors import OutcomesError
from agentic_bayes.evidence import table as tables
from agentic_bayes.evidence.frames import EngineTable, LocalTable, OpenTable
from agentic_bayes.numerics import Array
from agentic_bayes.outcomes.dataset import natural_key
from agentic_bayes.outcomes.rows import CodedColumn
from agentic_bayes.outcomes.table_doubts import doubts, warn

GroupKey = tuple[str, ...]
# roles of columns that have a name where none is given
_NAMED = ("agent", "task", "trial", "correct", "error", "successes", "trials", "unscored", "errored")


@dataclass(frozen=True)
class TablePart(LocalTable):
    """Some rows of a table, with the columns that are read; places are those in the whole table."""

    rows: Sequence[int] = ()
    whole: Sequence[str] = ()  # all columns, for messages

    @property
    def names(self) -> Sequence[str]:
        """The columns of the whole table."""
        return self.whole

    def place(self, row: int) -> str:
        """Where a row stands."""
        return super().place(row if len(self.lines) else int(self.rows[row]))


def split_table(
    table: Any, split: Sequence[str], reading: Mapping[str, Any]
) -> Iterator[tuple[GroupKey, LocalTable | EngineTable | OutcomesError]]:
    """The groups in natural order, each with its table, or with the error of a blank value.

    `reading` are the arguments of `outcomes_from_table`. A lazy table is filtered in its engine, once for each group.
    """
    opened = tables.open_table(table, error=OutcomesError)
    opened = opened.careful() or opened
    held = dict.fromkeys([*opened.names, *filter(opened.holds, split)], "?")
    tables.require_columns(opened.source, held, split, hint="", error=OutcomesError)
    roles = {str(reading.get(role) or role) for role in _NAMED} | {str(reading.get(r)) for r in ("group", "weight")}
    names = [name for name in opened.names if name not in split or name in roles]
    if isinstance(opened, EngineTable) and opened.lazy:
        yield from _in_engine(opened, split)
        return
    taken = names if reading.get("wide") else sorted(name for name in roles if opened.holds(name))
    delimiter = opened.delimiter if isinstance(opened, LocalTable) else ""
    frame = opened.take(taken)
    lines = np.asarray(opened.lines) if isinstance(opened, LocalTable) else np.array([])
    for key, rows, blank in _rows(opened, split):
        if blank:
            yield key, OutcomesError(f"{opened.source}: {blank}")
            continue
        part = frame.iloc[rows].reset_index(drop=True)
        where = lines[rows].tolist() if len(lines) else ()
        cells = {str(name): part[name] for name in taken}
        yield key, TablePart(opened.source, cells, where, delimiter, rows=rows.tolist(), whole=names)


def warn_of_whole(table: Any, split: Sequence[str], reading: Mapping[str, Any]) -> None:
    """Warn once of what is doubtful in the columns of all groups."""
    opened = tables.open_table(table, error=OutcomesError)
    used = {role: name for role in _NAMED if opened.holds(name := str(reading.get(role) or role))}
    used |= {f"split {i}": name for i, name in enumerate(split)}
    warn(opened.source, doubts(opened, (), (), used, reading.get("threshold"), wide=bool(reading.get("wide"))))


def _rows(opened: OpenTable, split: Sequence[str]) -> Iterator[tuple[GroupKey, Array, str]]:
    """Every group: its key, its rows, and what is wrong with its key."""
    cells = opened.take(split)
    if not len(cells):
        raise OutcomesError(f"{opened.source}: the table has no rows")
    labels = []  # of every row, by column
    wrong: dict[tuple[int, str], str] = {}
    for i, name in enumerate(split):
        coded = CodedColumn.of(cells[name])
        texts = [*map(_label, coded.values), ""]  # −1, a blank, is the last
        for value, text in zip((*coded.values, None), texts, strict=True):
            if problem := tables.no_label(value):
                wrong[i, text] = f"{name} {problem}"
        labels.append(np.asarray(texts, dtype=object)[coded.codes])
    places = CodedColumn.of(_tuples(labels))
    order = np.argsort(places.codes, kind="stable")
    ends = np.cumsum(np.bincount(places.codes, minlength=len(places.values)))
    parts = dict(zip(places.values, np.split(order, ends[:-1]), strict=True))
    for key in sorted(parts, key=lambda key: [natural_key(label) for label in key]):
        yield key, parts[key], "; ".join(filter(None, (wrong.get(place) for place in enumerate(key))))


def _tuples(labels: Sequence[Array]) -> Any:
    import pandas as pd

    return pd.Series(list(zip(*labels, strict=True)), dtype=object)


def _label(value: Any) -> str:
    return "" if tables.no_label(value) == tables.BLANK_LABEL else tables.label(value)


def _in_engine(opened: EngineTable, split: Sequence[str]) -> Iterator[tuple[GroupKey, EngineTable | OutcomesError]]:
    """The groups of a lazy table, each the table with a filter."""
    found = opened.collected(opened.selected({name: opened.cells(name) for name in split}).unique(), split)
    if not len(found):
        raise OutcomesError(f"{opened.source}: the table has no rows")
    keys: dict[GroupKey, list[tuple[Any, ...]]] = {}
    for values in found.itertuples(index=False, name=None):
        keys.setdefault(tuple(map(_label, values)), []).append(values)
    for key in sorted(keys, key=lambda key: [natural_key(label) for label in key]):
        named = [dict(zip(split, values, strict=True)) for values in keys[key]]
        if problems := [f"{name} {wrong}" for name, value in named[0].items() if (wrong := tables.no_label(value))]:
            yield key, OutcomesError(f"{opened.source}: {'; '.join(problems)}")
            continue
        alike = [functools.reduce(operator.and_, (opened.cells(n) == v for n, v in values.items())) for values in named]
        yield key, replace(opened, frame=opened.frame.filter(functools.reduce(operator.or_, alike)))
