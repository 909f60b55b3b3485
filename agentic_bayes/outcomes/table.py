"""Turns a table of 0/1 results or counts into outcomes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from agentic_bayes.checks import check_choice
from agentic_bayes.errors import InvalidArgument, OutcomesError
from agentic_bayes.evidence import table as tables
from agentic_bayes.outcomes.coordinates import by_task, check_columns, column_name
from agentic_bayes.outcomes.count import ErrorHandling
from agentic_bayes.outcomes.dataset import CellCounts, dataset_from_counts, with_bounds
from agentic_bayes.outcomes.missing import counted_as

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["outcomes_from_table"]


def outcomes_from_table(
    table: pd.DataFrame | str | Path,
    *,
    agent: str = "agent",
    task: str = "task",
    trial: str = "trial",
    correct: str = "correct",
    successes: str | None = None,
    trials: str | None = None,
    error: str = "error",
    errors: ErrorHandling = "unscored",
    group: str | None = None,
    weight: str | None = None,
) -> xr.Dataset:
    """Read outcomes from a table with one row per trial (0/1), or one row per agent and task (counts).

    Parameters
    ----------
    table : pandas.DataFrame or path
        CSV, TSV, JSONL or Parquet; CSV and TSV may be gzipped.
    agent, task, trial, correct : str
        Column names. Without an ``agent`` column there is one agent, named ``agent``. ``trial`` is optional and guards
        against duplicates. ``correct`` holds 0/1, booleans or "true"/"false"; blank means unscored.
    successes, trials : str, optional
        Column names of counts. They are used if you give both, or if the table has columns ``successes`` and ``trials``
        but no ``correct``. Columns ``unscored`` and ``errored`` (a part of it) are then read, too.
    error : str
        Column name, optional, of a table with one row per trial: any value but 0 and false marks the trial as errored
        (its agent crashed), so that it has no verdict.
    errors : {"unscored", "fail", "bounds"}
        What errored trials count as; see `count_outcomes`.
    group, weight : str, optional
        Columns that say of each task to which group it belongs (a domain, a family), or how much it weighs (a number
        ≥ 0). A task has one value, and every task has one; both are kept as coordinates of the tasks under the
        column's name, for `estimate(..., by=…, weights=…)`.

    Returns
    -------
    xarray.Dataset
        See `check_outcomes`. Other columns are ignored.

    Raises
    ------
    OutcomesError
        If a column is missing or has invalid values; the message lists all problems.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"task": ["a", "a", "b"], "correct": [1, 0, None]})
    >>> outcomes_from_table(table)["trials"].values.tolist()
    [[2, 0]]
    """
    check_choice("errors", errors, get_args(ErrorHandling))
    if (successes is None) != (trials is None):
        raise InvalidArgument("give both `successes` and `trials` column names, or neither")
    source, columns = tables.read_columns(table, error=OutcomesError)
    count_names = (successes, trials)
    if successes is None and correct not in columns and {"successes", "trials"} <= set(columns):
        count_names = ("successes", "trials")
    required = [task, *(count_names if count_names[0] is not None else (correct,))]
    asked = check_columns(group, weight)
    required += asked
    named = ((agent, "agent"), (trial, "trial"), (error, "error"))
    required += [name for name, default in named if name != default]
    hint = 'Name the columns: task="…", correct="…" in Python, --columns task=…,correct=… on the command line'
    tables.require_columns(source, columns, required, hint=hint, error=OutcomesError)
    size = len(columns[task])
    problems: list[str] = []
    agents = tables.labels(columns.get(agent, ["agent"] * size), agent, problems)
    tasks = tables.labels(columns[task], task, problems)
    if count_names[0] is not None and count_names[1] is not None:
        counts = _from_counts(columns, agents, tasks, count_names[0], count_names[1], problems)
    else:
        trial_labels = tables.labels(columns[trial], trial, problems) if trial in columns else None
        crashed = columns.get(error, [None] * size)
        counts = _from_rows(columns[correct], crashed, agents, tasks, trial_labels, correct, problems)
    extra = {
        column_name(column): by_task(tasks, columns[column], column, role, problems) for column, role in asked.items()
    }
    tables.refuse(source, problems, error=OutcomesError)
    attrs = {"unit": "conversation", "indicator": count_names[0] or correct, "source": source}
    if errors != "unscored":
        attrs["errors"] = errors
    ds = dataset_from_counts(counts, attrs, extra)
    if errors == "fail":
        return counted_as(ds, failed=ds["agent"].values.tolist(), which="errored")
    return with_bounds(ds) if errors == "bounds" else ds


def _from_rows(
    values: Sequence[Any],
    crashed: Sequence[Any],
    agents: list[str],
    tasks: list[str],
    trials: list[str] | None,
    column: str,
    problems: list[str],
) -> CellCounts:
    """Counts of 0/1 rows."""
    cells: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    if trials is not None:
        places = zip(agents, tasks, trials, strict=True)
        tables.no_repetition(places, lambda place: "agent {!r}, task {!r}, trial {!r}".format(*place), problems)
    for i, (agent, task, value, mark) in enumerate(zip(agents, tasks, values, crashed, strict=True)):
        cell = cells[agent, task]
        if tables.zero_one(mark) not in (None, 0):
            cell[2] += 1
            cell[3] += 1
            continue
        outcome = tables.zero_one(value)
        if outcome is None:
            cell[2] += 1
        elif outcome in (0, 1):
            cell[0] += outcome
            cell[1] += 1
        else:
            problems.append(f"row {i + 1}: {column} must be 0, 1, true, false or blank, got {value!r}")
    return cells


def _from_counts(
    columns: tables.TableColumns, agents: list[str], tasks: list[str], successes: str, trials: str, problems: list[str]
) -> CellCounts:
    """Counts from columns of counts."""
    cells: dict[tuple[str, str], list[int]] = {}
    names = (successes, trials, "unscored", "errored")
    zeros = [0] * len(tasks)
    crashed = columns.get("errored", zeros)
    values = [columns.get(name, crashed if name == "unscored" else zeros) for name in names]
    for i, (agent, task, *cell) in enumerate(zip(agents, tasks, *values, strict=True)):
        numbers = [number for value in cell if (number := tables.whole_number(value)) is not None]
        if len(numbers) < len(names):
            problems += [
                f"row {i + 1}: {name} must be a whole number in [0, 2^53), got {value!r}"
                for name, value in zip(names, cell, strict=True)
                if tables.whole_number(value) is None
            ]
            continue
        if numbers[0] > numbers[1]:
            problems.append(f"row {i + 1}: {successes} must not exceed {trials}, got {numbers[0]} of {numbers[1]}")
        if numbers[3] > numbers[2]:
            problems.append(f"row {i + 1}: errored must not exceed unscored, got {numbers[3]} of {numbers[2]}")
        cells[agent, task] = numbers
    places = zip(agents, tasks, strict=True)
    tables.no_repetition(places, lambda place: "agent {!r}, task {!r}".format(*place), problems)
    return cells
