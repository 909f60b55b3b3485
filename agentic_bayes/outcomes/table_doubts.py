"""Doubts about a table that can be read: what may be counted as something that it is not."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import category

import numpy as np

from agentic_bayes.errors import AgenticBayesWarning
from agentic_bayes.evidence import table as tables
from agentic_bayes.evidence.frames import EngineTable, OpenTable, in_order
from agentic_bayes.formatting import ELLIPSIS, first_few, plural
from agentic_bayes.numerics import Array
from agentic_bayes.outcomes.engine import COUNTED
from agentic_bayes.outcomes.rows import DENSE, CodedColumn
from agentic_bayes.outcomes.verdicts import CRASHES

SUM = re.compile(
    r"(grand |sub|sub-|macro |micro |weighted )?"
    r"(totals?|sum|overall|all (?=tasks|problems|benchmarks)|averages?|mean|avg\.?|median|gesamt|summe|std)"
    r"( ?(average|mean|total|accuracy|scores?|rate|pass rate|success rate|tasks|problems|benchmarks))*\s*([(:].*)?"
    r"|(sub|sub-|grand )total.*|pass[@^]\d+|gesamtergebnis|durchschnitt|moyenne|promedio|合計|平均|итого|[∑ø]"
    r"|n ?= ?\d+|[*†‡] .*|(notes?|source):.*"
)
_SHORTENED = re.compile(r"[0-9][.,][0-9]+E\+[0-9]{2}")
_SHARES = re.compile(r"(.*[ _])?(acc|accuracy|rate|mean|avg|average|percent(age)?)([ _,].*)?|pass[@^](\d+|k)|.*%.*")
_LOOKED_AT = ("agent", "left_out", "frequency", "trace", "part", "group", "metric", "trial", "attempt", "error")
_STATUS = ("status", "state", "exit_status", "termination_reason", "finish_reason", "stop_reason")


def doubts(
    opened: OpenTable,
    agents: Sequence[str],
    tasks: Sequence[str],
    roles: Mapping[str, str],
    threshold: float | None,
    *,
    wide: bool,
) -> Iterator[str]:
    """What may be wrong although the table can be read: sums, and columns of other names with agents or errors."""
    for kind, labels in (("task", tasks), ("agent", agents)):
        if len(labels) > 1 and (found := _first_match(SUM, labels, str.lower)):
            yield f"{kind} {found!r} counts as {_A[kind]}: if it sums up the others, leave its rows out"
        if shortened := _first_match(_SHORTENED, labels):
            yield f"{kind} {shortened!r} looks like an id that a spreadsheet shortened, so that several became one"
    if wide:
        return
    free = [name for name in opened.names if name not in roles.values() and opened.holds(name)]
    named = (name for role in _LOOKED_AT for name in tables.usual(role, free))
    keys = [roles[role] for role in ("agent", "task") if role in roles]
    tallies = Tallies(opened, [*keys, *dict.fromkeys([*named, *(name for name in free if name.lower() in _STATUS)])])
    if tables.usual("failures", [roles.get("trials", "")]):
        yield (
            f"{roles['trials']!r} is read as the number of all trials; if it counts the failures: "
            f'table["trials"] = table["{roles["successes"]}"] + table["{roles["trials"]}"]'
        )
    for role in ("correct", "successes"):
        if tables.usual("failures", [name := roles.get(role, "")]):
            way = ".astype(int).rsub(1)" if role == "correct" else f'.rsub(table["{roles.get("trials")}"])'
            yield f'{name!r} is read as what succeeded; if it marks failures: table["{role}"] = table["{name}"]{way}'
    if "agent" not in roles:
        names = tables.usual("agent", free)
        if several := next((name for name in names if len(tallies.distinct(name)) > 1), None):
            yield (
                f"there is no column 'agent', so all rows are one agent: if {several!r} names agents, give "
                f"agent={several!r} (--columns agent={several})"
            )
    left_out = tables.usual("left_out", free)
    if "correct" in roles:
        yield from _apart(tallies, free, roles)
        for name in left_out:
            if marked := [v for v in tallies.distinct(name) if str(v).strip().lower() in {*tables.TRUE, "yes", "y"}]:
                yield (
                    f"column {name!r} is not used: if {tables.shown(marked[0])} marks trials without a verdict: "
                    f'table.loc[table["{name}"].astype(str) == {str(marked[0])!r}, "{roles["correct"]}"] = None'
                )
    else:
        for name in [*left_out, *tables.usual("error", free), *(name for name in free if name.lower() == "errors")]:
            if any(tables.number(value) for value in tallies.distinct(name)):
                yield (
                    f"column {name!r} is not used; if it counts trials that are not among {roles['trials']!r}, call it "
                    "'unscored', or 'errored' if their agents crashed"
                )
    if "correct" in roles and "error" not in roles:
        for name in (*tables.usual("error", free), *(name for name in free if name.lower() in _STATUS)):
            values = tallies.distinct(name)
            marks = [(str(value).strip().lower(), value) for value in values if not tables.is_blank(value)]
            of_status = name.lower() in _STATUS
            errors = [value for mark, value in marks if mark in CRASHES or not (of_status or mark in tables.NO_ERROR)]
            errors.sort(key=str)
            if errors and len(values) > 1:
                way = f"give error={name!r} (--columns error={name})"
                if of_status:
                    way = f'table["error"] = table["{name}"].isin({[str(value) for value in errors]})'
                yield (
                    f"column {name!r} is not used, so trials that crashed count by their verdicts: if its values "
                    f"({', '.join(map(tables.shown, errors[:3]))}) mark them, {way}"
                )
                break
    if threshold is not None and _SHARES.fullmatch(roles.get("correct", "").lower()):
        yield (
            f"every value of {roles['correct']!r} is cut at {threshold:g} as one trial: if it is a share of several "
            "trials, give counts instead, successes = share * trials"
        )


def _first_match(pattern: re.Pattern[str], names: Sequence[str], change: Callable[[str], str] = str) -> str:
    """The first name that matches, or ""; most tables have none, which one search of all finds out faster."""
    if not re.search(f"^(?:{pattern.pattern})$", change("\n".join(names)), re.MULTILINE):
        return ""
    return next((name for name in names if pattern.fullmatch(change(name))), "")


def _apart(tallies: Tallies, free: Sequence[str], roles: Mapping[str, str]) -> Iterator[str]:
    """Doubts whether rows of one task are its trials, by columns that are not used."""
    if "trial" in roles:
        return  # no trial comes twice
    keys, task = [roles[role] for role in ("agent", "task") if role in roles], roles["task"]
    for name in tables.usual("frequency", free) if not tables.usual("successes", free) else ():
        counts = [tables.whole_number(value) for value in tallies.distinct(name)]
        some = None not in counts and any(count != 1 for count in counts)
        if some and tallies.of(keys, roles["correct"]).count.max() == 1:
            yield (
                f"column {name!r} is not used, so each row is one trial; if it counts the trials of a row: "
                f'table = table.loc[table.index.repeat(table["{name}"])]'
            )
    for name in tables.usual("trace", free):
        if several := tallies.several([name], task):
            names = several[task]
            yield (
                f"{name} {tables.shown(several[name][0])} has several tasks "
                f"({first_few(list(map(tables.shown, names)), MOST_SHOWN, rest=ELLIPSIS)}): if these are scores of one "
                f'trial, keep one: table = table[table["{task}"] == {names[0]!r}]'
            )
    parts = [*tables.usual("part", free), *tables.usual("group", free)]
    for name in dict.fromkeys([*tables.usual("metric", free), *parts]):
        several = tallies.several(keys, name)
        values = [str(cell) for cell in several.get(name, ()) if not tables.is_blank(cell)]
        if not values:
            continue
        listed = [*map(tables.shown, values), *(["blank"] if len(values) < len(several[name]) else [])]
        differ = (
            f"rows of task {tables.shown(several[task][0])} differ in {name!r} "
            f"({first_few(listed, MOST_SHOWN, rest=ELLIPSIS)}) and count as trials"
        )
        if name in parts:
            yield f"{differ}: if tasks of the same name are different tasks there: {told_apart(name, task)}"
        else:
            yield f"{differ}: if these are not attempts, keep one: {kept(name, values[0])}"
    if "agent" in roles or not tables.usual("agent", free):
        for name in dict.fromkeys([*tables.usual("trial", free), *tables.usual("attempt", free)]):
            tally = tallies.of(keys, name)
            again = int((tally.count - 1).sum())
            if again and tally.repeated().any():
                yield (
                    f"column {name!r} is not used, and rows repeat the {', '.join(keys)} and {name} of an earlier one "
                    f"({plural(again, 'row')}): if they were copied, table = table.drop_duplicates()"
                )


def kept(name: str, value: object) -> str:
    """How to keep the rows with one value."""
    return f'table = table[table["{name}"].astype(str) == {str(value)!r}]'


def told_apart(name: str, task: str) -> str:
    """How to make a column part of the task's name."""
    return f'table["{task}"] = table["{name}"].astype(str) + "/" + table["{task}"].astype(str)'


MOST_VALUES = 1000  # of a column that are looked at
MOST_CODES = 2**62  # that an integer tells apart


@dataclass(frozen=True)
class Tally:
    """Distinct rows of some columns, each row's columns but the last being its key."""

    key: Array  # a number for each key
    count: Array  # of rows that are alike
    first: Array  # the first of them
    columns: Mapping[str, CodedColumn]

    def repeated(self) -> Array:
        """Whether another row has the same key."""
        import pandas as pd

        return pd.Series(self.key).duplicated(keep=False).to_numpy()


class Tallies:
    """Distinct values, and distinct rows, of some columns of a table; each column is read and coded only once."""

    def __init__(self, opened: OpenTable, together: Sequence[str] = ()) -> None:
        self.opened = opened
        self._together = together  # read at once: a CSV file is read whole for each column
        self._coded: dict[str, CodedColumn] = {}

    def distinct(self, name: str) -> list[Any]:
        """Some distinct values of a column."""
        opened = self.opened
        if isinstance(opened, EngineTable) and opened.lazy:
            few = opened.selected({name: opened.cells(name)}).unique().head(MOST_VALUES)
            return in_order(opened.collected(few, [name]))[name].tolist()
        one = self._column(name)
        return [*one.values[:MOST_VALUES], *([None] if one.codes.min(initial=0) < 0 else [])]

    def _column(self, name: str) -> CodedColumn:
        if name not in self._coded:
            frame = self.opened.take([name, *(other for other in self._together if other != name)])
            for column in frame:
                self._coded.setdefault(str(column), CodedColumn.of(frame[column]))
            self._together = ()
        return self._coded[name]

    def of(self, keys: Sequence[str], name: str) -> Tally:
        """The distinct rows of `keys` and `name`."""
        import pandas as pd

        opened, weights, names = self.opened, None, [*keys, name]
        if isinstance(opened, EngineTable) and opened.lazy:
            import narwhals as nw

            lazy = opened.selected({column: opened.cells(column) for column in names})
            counted = lazy.group_by(list(lazy.collect_schema())).agg(nw.len().alias("rows"))
            frame = opened.collected(counted, [*names, COUNTED])
            columns, weights = [CodedColumn.of(frame[column]) for column in names], frame[COUNTED].to_numpy()
        else:
            columns = list(map(self._column, names))
        row = key = np.zeros(len(columns[0].codes), dtype=np.int64)
        for one in columns:
            if row.max(initial=0) >= MOST_CODES // (len(one.values) + 1):
                row, _ = pd.factorize(row)
            key, row = row, row * (len(one.values) + 1) + one.codes + 1
        if row.max(initial=0) >= DENSE * len(row):
            row, _ = pd.factorize(row)
        count = np.bincount(row, weights)
        first = np.empty(len(count), dtype=np.int64)
        first[row[::-1]] = np.arange(len(row))[::-1]
        used = np.flatnonzero(count)
        first = first[used]
        return Tally(key[first], count[used].astype(np.int64), first, dict(zip(names, columns, strict=True)))

    def several(self, keys: Sequence[str], name: str) -> Mapping[str, Sequence[Any]]:
        """Distinct rows that share `keys` and differ in `name`, column by column; empty if there are none.

        They are the first in the order of their cells as text, whatever order the rows have or an engine gives them.
        """
        tally = self.of(keys, name)
        rows = tally.first[tally.repeated()]
        for one in map(tally.columns.__getitem__, keys):
            codes = one.codes[rows]
            least = min(np.unique(codes).tolist(), key=lambda code: str(one.value(code)), default=0)
            rows = rows[codes == least]
        cells = (map(one.value, one.codes[rows].tolist()) for one in tally.columns.values())
        alike = sorted(zip(*cells, strict=True), key=str)
        return dict(zip(tally.columns, zip(*alike, strict=True), strict=False))


_SUM_TRIALS = 4  # fewer are the sum of others by chance too often
MOST_SHOWN, MOST_PAIRS = 3, 5  # values, and pairs of names, that a doubt lists
_A = {"task": "a task", "agent": "an agent"}


def sums(tasks: Sequence[str], counts: Array) -> Iterator[str]:
    """The doubt that the counts of a task are the sum of all others, in every agent that has any."""
    twice = (2 * counts[:2] == counts[:2].sum(axis=-1, keepdims=True)).all(axis=(0, 1))
    for i in np.flatnonzero(twice & (counts[1].max(axis=0) >= _SUM_TRIALS)).tolist() if len(tasks) > 2 else ():
        if not SUM.fullmatch(tasks[i].strip().lower()):
            yield f"task {tasks[i]!r} has as many successes and trials as all others: if it sums them up, leave it out"


def similar(names: Sequence[str], column: str, kind: str) -> Iterator[str]:
    """The doubt that agents or tasks differ only in case, spaces or invisible characters."""
    hidden = sorted({sign for name in names if not name.isascii() for sign in name if category(sign) == "Cf"})
    unseen = str.maketrans(dict.fromkeys(hidden, ""))
    whole = "\n".join(names)
    alike = whole.lower().split("\n")  # of all at once, if no spaces have to be joined
    if not whole.isascii() or len(alike) > len(names) or re.search(r"\s\s|[^\S\n ]", whole):
        alike = [" ".join(name.translate(unseen).lower().split()) for name in names]
    if len({*alike}) == len(names):
        return
    seen: dict[str, str] = {}
    firsts = [(seen.setdefault(like, name), name) for name, like in sorted(zip(names, alike, strict=True))]
    pairs = [f"{first!r} and {name!r}" for first, name in firsts if first != name]
    way = f".str.replace({''.join(['[', *hidden, ']'])!a}, '', regex=True)" if hidden else ""
    yield (
        f"{kind} {first_few(pairs, MOST_PAIRS)} differ only in case, spaces or invisible characters and are counted "
        f'apart; to join them: table["{column}"] = table["{column}"]{way}.str.lower().str.split().str.join(" ")'
    )


def warn(source: str, doubts: Iterable[str]) -> None:
    """Warn of these doubts about a table."""
    for doubt in doubts:
        warnings.warn(f"{source}: {doubt}", AgenticBayesWarning, stacklevel=3)
