"""What outcomes know about a task besides its counts: its group and its weight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.errors import InvalidArgument, OutcomesError
from agentic_bayes.evidence import table as tables
from agentic_bayes.formatting import first_few
from agentic_bayes.numerics import Array

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

TAKEN = frozenset({"agent", "task", "successes", "trials", "unscored", "errored", "lower_bound", "upper_bound"})
SHOWN = 5  # tasks that a message names
METADATA = "metadata."

TaskColumns = Mapping[str, Mapping[str, Any]]  # column → task → label (text) or weight (float)


def column_name(path: str) -> str:
    """The name under which a column is kept: that of a field of the metadata is its last part."""
    return path.rpartition(".")[2] if path.startswith(METADATA) else path


def check_columns(group: object, weight: object) -> dict[str, str]:
    """The columns asked for and what each is: "group" or "weight"."""
    asked: dict[str, str] = {}
    for role, column in (("group", group), ("weight", weight)):
        if column is None:
            continue
        if not isinstance(column, str) or not column.strip():
            raise InvalidArgument(f"{role} must be the name of a column, got {column!r}")
        if column_name(column) in TAKEN:
            raise InvalidArgument(f"{role} must be a column of its own, got {column!r}, which outcomes hold already")
        if column in asked:
            raise InvalidArgument(f"group and weight must be different columns, got {column!r} for both")
        asked[column] = role
    return asked


def by_task(
    tasks: Sequence[str], values: Sequence[Any], column: str, role: str, problems: list[str]
) -> dict[str, str | float]:
    """The label or the weight of every task; a task with two, or with none, is a problem."""
    seen: dict[str, list[Any]] = {task: [] for task in tasks}
    wrong = set()
    for task, value in zip(tasks, values, strict=True):
        if tables.is_blank(value):
            continue
        read: Any = tables.label(value) if role == "group" else tables.number(value)
        if isinstance(value, (list, dict)):
            problems.append(f"task {task!r}: {column} must be text or a number, got {value!r}")
            wrong.add(task)
        elif role == "weight" and (read is None or read < 0 or isinstance(value, bool)):
            problems.append(f"task {task!r}: {column} must be a number ≥ 0, got {value!r}")
            wrong.add(task)
        elif read not in seen[task]:
            seen[task].append(read)
    for task, found in seen.items():
        if len(found) > 1:
            problems.append(
                f"task {task!r} has {len(found)} values of {column}, it must have one: {', '.join(map(repr, found))}"
            )
    if empty := [task for task, found in seen.items() if not found and task not in wrong]:
        problems.append(f"{column} is blank for {_tasks(empty)}: every task needs one")
    if role == "weight" and not problems and not any(found[0] for found in seen.values()):
        problems.append(f"{column} must be > 0 for at least one task, all are 0")
    return {task: found[0] for task, found in seen.items() if found}


def with_columns(outcomes: xr.Dataset, columns: TaskColumns) -> xr.Dataset:
    """The outcomes with these columns as coordinates of their tasks."""
    labels = outcomes["task"].values.tolist()
    return outcomes.assign_coords(
        {name: _column([values[task] for task in labels]) for name, values in columns.items()}
    )


def checked_columns(outcomes: xr.Dataset) -> dict[str, xr.Variable]:
    """The coordinates of the tasks, each text or numbers ≥ 0; refused where a task has none."""
    found: dict[str, xr.Variable] = {}
    wrong: list[str] = []
    for name in task_columns(outcomes):
        values = outcomes[name].values
        numeric = values.dtype.kind in "iuf"
        empty = [task for task, value in zip(outcomes["task"].values, values, strict=True) if tables.is_blank(value)]
        if empty:
            wrong.append(f"coordinate {name!r} is blank for {_tasks(empty)}: every task needs one")
        elif numeric:
            found[name] = plain_variable(("task",), values.astype(np.float64))
        else:
            found[name] = _column([tables.label(value) for value in values.tolist()])
    if wrong:
        raise OutcomesError("outcomes are not valid: " + "; ".join(wrong))
    return found


def task_columns(outcomes: xr.Dataset) -> list[str]:
    """Names of the coordinates that tasks have besides their labels."""
    return [str(name) for name, values in outcomes.coords.items() if values.dims == ("task",) and name != "task"]


def combined_columns(parts: Sequence[xr.Dataset]) -> dict[str, dict[str, Any]]:
    """The coordinates of all tasks; a task must be in the same group wherever it occurs."""
    columns: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(name for part in parts for name in task_columns(part)):
        values = columns[name] = {}
        for part in parts:
            if name not in part.coords:
                continue
            for task, value in zip(part["task"].values.tolist(), part[name].values.tolist(), strict=True):
                if values.setdefault(task, value) != value:
                    raise OutcomesError(
                        f"task {task!r} has two values of {name!r}: {values[task]!r} and {value!r}; it must have one"
                    )
        lacking = [task for part in parts for task in part["task"].values.tolist() if task not in values]
        if lacking:
            raise OutcomesError(
                f"{name!r} is known only for some of the outcomes, not for {_tasks(list(dict.fromkeys(lacking)))}: "
                "read it for all of them (group=, weight=)"
            )
    return columns


def plain_variable(dims: tuple[str, ...], values: Array) -> xr.Variable:
    """A variable of an array that is NumPy's own; to find out itself whether it is Dask's, xarray imports Dask."""
    import xarray as xr

    return xr.Variable(dims, values, fastpath=True)


def text_index(labels: Sequence[str]) -> pd.Index:
    """The labels of a dimension; an index, for the same reason."""
    import pandas as pd

    return pd.Index(labels, dtype=object)


def _column(values: Sequence[Any]) -> xr.Variable:
    if all(isinstance(value, float) for value in values):
        return plain_variable(("task",), np.asarray(values, dtype=np.float64))
    return plain_variable(("task",), np.asarray([str(value) for value in values], dtype=object))


def _tasks(names: Iterable[str]) -> str:
    named = list(map(repr, names))
    return f"task{'s' if len(named) > 1 else ''} {first_few(named, SHOWN)}"
