"""Turns a table of verdicts, scores or counts into outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from agentic_bayes.checks import check_choice, check_probability, check_text
from agentic_bayes.errors import InvalidArgument, OutcomesError
from agentic_bayes.evidence import table as tables
from agentic_bayes.evidence.frames import EngineTable, LocalTable, OpenTable
from agentic_bayes.outcomes.coordinates import by_task, check_columns, column_name
from agentic_bayes.outcomes.dataset import dataset_from_arrays
from agentic_bayes.outcomes.engine import COUNTED, count_in_engine, repeated_in_engine
from agentic_bayes.outcomes.missing import ErrorHandling, with_errors_as
from agentic_bayes.outcomes.rows import (
    CodedColumn,
    CountedTable,
    TableFindings,
    count_rows,
    read_counts,
    read_labels,
    read_outcomes_of_rows,
)
from agentic_bayes.outcomes.table_advice import (
    ambiguous,
    check_misspelt,
    check_required,
    check_roles,
    check_wide,
    other_columns,
    repeated_trials,
    swapped,
)
from agentic_bayes.outcomes.table_doubts import doubts, similar, sums, warn
from agentic_bayes.outcomes.verdicts import CELLS

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from narwhals.typing import IntoFrame

__all__ = ["outcomes_from_table"]

WideColumns = Literal["trials", "agents"]


class _Unnamed(str):
    """A default name, which differs from the same name when the user gives it."""


def outcomes_from_table(
    table: IntoFrame | xr.Dataset | xr.DataArray | np.ndarray[Any, Any] | list[dict[str, Any]] | str | Path,
    *,
    agent: str = "agent",
    task: str = "task",
    trial: str = "trial",
    correct: str = _Unnamed("correct"),
    successes: str | None = None,
    trials: str | None = None,
    error: str = "error",
    errors: ErrorHandling = "unscored",
    group: str | None = None,
    weight: str | None = None,
    threshold: float | None = None,
    wide: WideColumns | None = None,
) -> xr.Dataset:
    """Read outcomes from a table: one row per trial, one row per agent and task (counts), or a wide table.

    Parameters
    ----------
    table : data frame, path, list of dict, structured numpy.ndarray, xarray.Dataset or xarray.DataArray
        A frame of any library that narwhals knows: pandas (named levels of the index are columns, too), polars,
        pyarrow, DuckDB, Dask, PySpark. Lazy ones (polars' LazyFrame, DuckDB, Dask, PySpark) are counted in their
        engine, and only counts come back. Files: CSV, TSV, JSONL, a JSON array or Parquet; all but Parquet may be
        gzipped. In CSV files semicolons and tabs are found, empty lines and columns without a name are left out.
    agent, task, trial, correct : str
        Column names. A dotted name reaches into nested columns (``"testCase.description"``). Without an ``agent``
        column there is one agent, named ``agent``. ``trial`` is optional and guards against duplicates. ``correct``
        holds verdicts in one spelling, in any case: 0/1 or true/false, yes/no, pass/fail, passed/failed,
        correct/incorrect or C/I; blank, NaN and null mean unscored.
    successes, trials : str, optional
        Column names of counts. They are used if you give both, or if the table has columns ``successes`` and ``trials``
        but no ``correct``. Columns ``unscored`` and ``errored`` (a part of it) are then read, too. A table with all
        three is refused unless you name the columns.
    error : str
        Column name, optional, of a table with one row per trial: any value but 0, false and no marks the trial as
        errored (its agent crashed), so that it has no verdict.
    errors : {"unscored", "fail", "bounds"}
        What errored trials count as; see `count_outcomes`.
    group, weight : str, optional
        Columns that say of each task to which group it belongs (a domain, a family), or how much it weighs (a number
        ≥ 0). A task has one value, and every task has one; both are kept as coordinates of the tasks under the
        column's name, for `estimate(..., by=…, weights=…)`.
    threshold : float, optional
        In [0, 1]. With it, ``correct`` may hold scores in [0, 1], and a trial passed if its score is at least
        this; ``P`` (partly correct) counts .5 and ``N`` (no answer) 0.
    wide : {"trials", "agents"}, optional
        ``trials``: one row per task (and agent), and every column that has no other role is a trial. ``agents``: one
        row per task (and trial), and every such column is an agent. Blank cells are unscored trials.

    Returns
    -------
    xarray.Dataset
        See `check_outcomes`. Other columns are ignored.

    Raises
    ------
    InvalidArgument
        If an argument is outside what is allowed, or arguments do not fit together.
    OutcomesError
        If a column is missing or has invalid values; the message lists all problems, each with its line in the file
        (or its row), and says what helps.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"task": ["a", "a", "b"], "correct": ["pass", "fail", None]})
    >>> outcomes_from_table(table)["trials"].values.tolist()
    [[2, 0]]
    >>> scores = pd.DataFrame({"task": ["a", "b"], "run_1": [0.9, 0.4], "run_2": [0.8, 0.9]})
    >>> outcomes_from_table(scores, wide="trials", threshold=0.7)["successes"].values.tolist()
    [[2, 1]]
    """
    for role, name in {"agent": agent, "task": task, "trial": trial, "correct": correct, "error": error}.items():
        check_text(role, name, "the name of a column")
    for role, column in (("successes", successes), ("trials", trials)):
        if column is not None:
            check_text(role, column, "the name of a column")
    check_choice("errors", errors, get_args(ErrorHandling))
    if wide is not None:
        check_choice("wide", wide, get_args(WideColumns))
    if threshold is not None:
        threshold = check_probability(threshold, "threshold")
    if (successes is None) != (trials is None):
        raise InvalidArgument("give both `successes` and `trials` column names, or neither")
    if successes is not None and (threshold is not None or wide is not None):
        raise InvalidArgument("threshold and wide are for tables of verdicts or scores, not of counts")
    opened = tables.open_table(table, error=OutcomesError)
    named = {name for name, default in ((agent, "agent"), (trial, "trial"), (error, "error")) if name != default}
    unused = {"trials": {"trial": trial, "error": error}, "agents": {"agent": agent, "error": error}}
    for role, name in unused.get(wide or "", {}).items():
        if name in named:
            raise InvalidArgument(
                f"wide={wide!r} takes no {role}=, got {name!r}: every column without a role is counted"
            )
    counts = None if successes is None or trials is None else (successes, trials)
    if counts is None and wide is None:
        counts = _unnamed_counts(opened, correct, threshold)
    if counts is not None and threshold is not None:
        raise InvalidArgument("threshold is for a column of scores, and the table holds counts")
    extra = check_columns(group, weight)
    values = [] if wide else [correct] if counts is None else list(counts)
    check_required(opened, [task, *values, *extra, *named], {"task": task, "correct": correct})
    roles = _Roles(
        agent=agent if opened.holds(agent) and wide != "agents" else None,
        task=task,
        trial=trial if opened.holds(trial) and wide != "trials" and counts is None else None,
        correct=str(correct),
        counts=counts,
        error=error if opened.holds(error) and wide is None and counts is None else None,
        extra=extra,
        threshold=threshold,
    )
    check_roles(opened.source, roles.columns())
    if wide is None:
        check_misspelt(opened, roles.columns().values())
    read = _read(opened, roles, wide)
    if read.findings.problems and (careful := opened.careful()) is not None:
        opened = careful
        read = _read(opened, roles, wide)
    read.findings.refuse(opened.source, opened.by_pandas if isinstance(opened, LocalTable) else "")
    agents, tasks = read.counted.agents, read.counted.tasks
    said = [*read.findings.doubts, *similar(agents, agent, "agents"), *similar(tasks, task, "tasks")]
    columns = roles.columns() | {role: name for name, role in extra.items()}
    said += doubts(opened, agents, tasks, columns, threshold, wide=wide is not None)
    if counts is not None:
        said += sums(tasks, read.counted.counts)
    warn(opened.source, said)
    attrs: dict[str, Any] = {"unit": "conversation", "indicator": counts[0] if counts else str(correct)}
    if threshold is not None:
        attrs["threshold"] = threshold
    attrs["source"] = opened.source
    if errors != "unscored":
        attrs["errors"] = errors
    ds = dataset_from_arrays(read.counted.agents, read.counted.tasks, read.counted.counts, attrs, read.extra)
    return with_errors_as(ds, errors)


def _unnamed_counts(opened: OpenTable, correct: str, threshold: float | None) -> tuple[str, str] | None:
    """The usual columns of counts, where the table has them and no verdicts."""
    if not (opened.holds("successes") and opened.holds("trials")):
        return None
    if not opened.holds(correct):
        return "successes", "trials"
    if isinstance(correct, _Unnamed) and threshold is None:
        raise OutcomesError(ambiguous(opened.source))
    return None


@dataclass(frozen=True)
class _Roles:
    """Which columns there are and what each is."""

    agent: str | None
    task: str
    trial: str | None
    correct: str
    counts: tuple[str, str] | None
    error: str | None
    extra: dict[str, str]  # column → "group" or "weight"
    threshold: float | None

    def columns(self) -> dict[str, str]:
        """Role → column."""
        successes, trials = self.counts or (None, None)
        correct = self.correct if self.counts is None else None
        found = {"agent": self.agent, "task": self.task, "trial": self.trial, "correct": correct}
        found |= {"successes": successes, "trials": trials, "error": self.error}
        return {role: name for role, name in found.items() if name is not None}

    @property
    def labels(self) -> list[str]:
        """Columns that every form of table may have."""
        return list(dict.fromkeys([*([self.agent] if self.agent else []), self.task, *self.extra]))


@dataclass(frozen=True)
class _TableRead:
    """What was read, which counts only if there are no problems."""

    counted: CountedTable
    extra: dict[str, dict[str, Any]]  # column → task → group or weight
    findings: TableFindings


def _read(opened: OpenTable, roles: _Roles, wide: WideColumns | None) -> _TableRead:
    """Read the columns and count."""
    findings = TableFindings(opened.place)
    frame, roles = _taken(opened, roles, wide, findings)
    if not len(frame):
        raise OutcomesError(f"{opened.source}: the table has no rows")
    one = CodedColumn(np.zeros(len(frame), dtype=np.int64), ["agent"])
    agents = read_labels(frame[roles.agent], roles.agent, findings) if roles.agent else one
    tasks = read_labels(frame[roles.task], roles.task, findings)
    if roles.counts is not None:
        counted = read_counts(frame, roles.counts, agents, tasks, findings)
    else:
        lazy = findings.weights is not None
        _check_repetition(opened, frame, roles, agents, tasks, findings, lazy=lazy)
        known = len(findings.problems)
        outcome = read_outcomes_of_rows(
            frame, roles.correct, roles.error, roles.threshold, opened.decimal_comma, findings
        )
        if len(findings.problems) > known:
            _advise(frame, roles, wide, agents, tasks, findings)
        counted = count_rows(agents, tasks, outcome, findings.weights)
    extra = {
        column_name(column): _of_tasks(tasks, frame[column], column, role, findings)
        for column, role in roles.extra.items()
    }
    return _TableRead(counted, extra, findings)


def _taken(
    opened: OpenTable, roles: _Roles, wide: WideColumns | None, findings: TableFindings
) -> tuple[pd.DataFrame, _Roles]:
    """The columns that are read, and their roles; rows of a lazy table come counted, `findings` has how often."""
    if wide is not None:
        return _long(opened, roles, wide, findings)
    if roles.counts is not None:
        more = [name for name in ("unscored", "errored") if opened.holds(name)]
        return opened.take([*roles.labels, *roles.counts, *more]), roles
    if isinstance(opened, EngineTable) and opened.lazy:
        frame = count_in_engine(
            opened, roles.labels, roles.correct, error=roles.error, trial=roles.trial, threshold=roles.threshold
        )
        findings.weights = frame[COUNTED].to_numpy()
        return frame, roles
    return opened.take([*roles.labels, roles.correct, *filter(None, (roles.trial, roles.error))]), roles


def _advise(
    frame: pd.DataFrame,
    roles: _Roles,
    wide: WideColumns | None,
    agents: CodedColumn,
    tasks: CodedColumn,
    findings: TableFindings,
) -> None:
    """What to do if the column of verdicts holds something else."""
    if wide is not None:
        names = list(frame[roles.trial if wide == "trials" else roles.agent])
        findings.advice = [*other_columns(names, frame[roles.correct], wide), *findings.advice]
        return
    labels = {roles.task: tasks.values} | ({roles.agent: agents.values} if roles.agent else {})
    if found := swapped(labels, roles.correct):
        findings.advice = [found]


def _long(opened: OpenTable, roles: _Roles, wide: WideColumns, findings: TableFindings) -> tuple[pd.DataFrame, _Roles]:
    """A wide table as a long one: one row for each cell, column after column."""
    import pandas as pd

    kept = [*roles.labels, *filter(None, [roles.trial])]
    names = [name for name in opened.names if name not in kept]
    if not names:
        raise OutcomesError(f"{opened.source}: wide={wide!r} needs columns that are {wide}, got {list(opened.names)}")
    check_wide(opened.source, names, wide)
    frame = opened.take([*kept, *names])
    size = len(frame)
    long = {name: pd.concat([frame[name]] * len(names), ignore_index=True) for name in kept}
    variable, value = ("agents", "trials")[wide == "trials"], CELLS
    long[variable] = pd.Series(pd.Categorical.from_codes(np.repeat(np.arange(len(names)), size), pd.Index(names)))
    long[value] = _stacked([frame[name] for name in names])
    findings.place = lambda row: f"{opened.place(row % size)}, column {names[row // size]!r}"
    if wide == "trials":
        return pd.DataFrame(long), replace(roles, correct=value, trial=variable)
    return pd.DataFrame(long), replace(roles, correct=value, agent=variable)


def _stacked(columns: Sequence[pd.Series]) -> pd.Series:
    """Columns one below the other; cells of different types stay as they are."""
    import pandas as pd

    alike = len({cells.dtype for cells in columns}) == 1
    return pd.concat([cells if alike else cells.astype(object) for cells in columns], ignore_index=True)


def _check_repetition(
    opened: OpenTable,
    frame: pd.DataFrame,
    roles: _Roles,
    agents: CodedColumn,
    tasks: CodedColumn,
    findings: TableFindings,
    *,
    lazy: bool,
) -> None:
    """Refuse an (agent, task, trial) that occurs twice."""
    if roles.trial is None:
        return
    trials = read_labels(frame[roles.trial], roles.trial, findings)
    if findings.problems:
        return
    keys = list(filter(None, [roles.agent, roles.task]))

    def name(row: int) -> str:
        parts = (column.values[column.codes[row]] for column in (agents, tasks, trials))
        return "agent {!r}, task {!r}, trial {!r}".format(*parts)

    if lazy and isinstance(opened, EngineTable):
        for row in repeated_in_engine(opened, frame[keys], roles.trial):
            labelled = {"agent": row.get(roles.agent, "agent"), "task": row[roles.task], "trial": row[roles.trial]}
            place = ", ".join(f"{role} {tables.label(cell)!r}" for role, cell in labelled.items())
            findings.problems.append(f"{row[COUNTED]} rows are all {place}")
    else:
        cells = agents.codes * len(tasks.values) + tasks.codes
        if roles.correct == CELLS:  # a wide table: the same rows of it in every column
            of_cells, findings.place = findings.place, opened.place
            again = findings.repeated(cells[trials.codes == 0], lambda row: name(row).rpartition(", ")[0])
            findings.place = of_cells
            if again:
                melted = f'table.melt({keys}, value_name="correct")[{[*keys, "correct"]}]'
                findings.advice.append(
                    f"If these are further attempts, give one row for each trial: {melted}; if rows were copied, "
                    "table = table.drop_duplicates()"
                )
            return
        findings.repeated(cells * len(trials.values) + trials.codes, name)
    if findings.problems:
        findings.advice.append(repeated_trials(opened, roles.agent, roles.task, roles.trial))


def _of_tasks(
    tasks: CodedColumn, cells: pd.Series, column: str, role: str, findings: TableFindings
) -> dict[str, str | float]:
    """The group or the weight of every task, from the distinct pairs of task and value."""
    coded = CodedColumn.of(cells)
    width = len(coded.values) + 1
    _, first = np.unique(tasks.codes * width + coded.codes + 1, return_index=True)
    rows = np.sort(first)
    labels = [tasks.values[code] for code in tasks.codes[rows]]
    values = [coded.values[code] if code >= 0 else None for code in coded.codes[rows]]
    return by_task(labels, values, column, role, findings.problems)
