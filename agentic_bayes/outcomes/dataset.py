"""The outcomes dataset: makes it from counts, checks it and combines several.

Dims ``(agent, task)``; integer variables ``successes``, ``trials``, ``unscored`` and ``errored`` (the part of
``unscored`` due to crashed agents); the attributes say what was counted: ``unit``, ``indicator``,
``threshold``, ``tool_threshold``, ``judge``, ``source``, and ``tool_rubric`` if tool verdicts count.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.checks import check_choice, check_texts
from agentic_bayes.errors import InvalidArgument, OutcomesError
from agentic_bayes.numerics import Array
from agentic_bayes.outcomes.coordinates import (
    TaskColumns,
    checked_columns,
    combined_columns,
    plain_variable,
    text_index,
    with_columns,
)

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["check_outcomes", "combine_outcomes"]

COUNTS = ("successes", "trials", "unscored", "errored")
CellCounts = Mapping[tuple[str, str], Sequence[int]]  # (agent, task) → the four counts
LONGEST_NUMBER = 19  # digits from which int64 may be too small
LARGEST = 2**53  # floats cannot tell neighbouring integers beyond it apart


def natural_key(label: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Sort key that puts "task 2" before "task 10"."""
    parts = re.findall(r"0*([0-9]+)|([^0-9]+)", label)
    # of two numbers without leading zeros the longer one is larger; numbers come before text
    return tuple((1, 0, text) if text else (0, len(digits), digits) for digits, text in parts), label


def natural_order(labels: Sequence[str]) -> list[int]:
    """Positions of the labels in natural order; fast if they are numbered, as large sets usually are."""
    prefix = labels[0].rstrip("0123456789") if labels else ""
    numbers = [label[len(prefix) :] for label in labels]
    text = "".join(numbers)
    numbered = text.isascii() and text.isdigit() and all(map(str.startswith, labels, itertools.repeat(prefix)))
    if numbered and all(numbers) and max(map(len, numbers)) < LONGEST_NUMBER:
        values = np.array(list(map(int, numbers)))
        order: list[int] = np.argsort(values, kind="stable").tolist()
        if (np.diff(values[order]) > 0).all():
            return order
    return sorted(range(len(labels)), key=lambda i: natural_key(labels[i]))


def dataset_from_counts(counts: CellCounts, attrs: Mapping[str, Any], columns: TaskColumns | None = None) -> xr.Dataset:
    """Counts per (agent, task), and what is known of each task, as the outcomes dataset."""
    agents = list(dict.fromkeys(agent for agent, _ in counts))
    tasks = list(dict.fromkeys(task for _, task in counts))
    row = {agent: i for i, agent in enumerate(agents)}
    column = {task: i for i, task in enumerate(tasks)}
    values = np.zeros((len(COUNTS), len(agents), len(tasks)), dtype=np.int64)
    for (agent, task), cell in counts.items():
        values[:, row[agent], column[task]] = cell
    return dataset_from_arrays(agents, tasks, values, attrs, columns)


def dataset_from_arrays(
    agents: Sequence[str],
    tasks: Sequence[str],
    values: Array,
    attrs: Mapping[str, Any],
    columns: TaskColumns | None = None,
) -> xr.Dataset:
    """The four counts as one array (count × agent × task), labels in any order, as the outcomes dataset."""
    import xarray as xr

    rows, places = natural_order(agents), natural_order(tasks)
    ordered = values[:, rows][:, :, places]
    whole = xr.Dataset(
        {name: plain_variable(("agent", "task"), ordered[i]) for i, name in enumerate(COUNTS)},
        coords={"agent": text_index([agents[i] for i in rows]), "task": text_index([tasks[i] for i in places])},
        attrs=dict(attrs),
    )
    return with_columns(whole, columns or {})


def check_outcomes(outcomes: xr.Dataset) -> xr.Dataset:
    """Check an outcomes dataset, for example one built by hand.

    Parameters
    ----------
    outcomes : xarray.Dataset
        Dims (agent, task) with text labels, integer variables ``successes`` and ``trials``. ``unscored`` and
        ``errored`` default to 0, ``unit`` to ``conversation`` and ``indicator`` to ``correct``. Further coordinates of
        ``task`` (text: groups; numbers: weights) must have a value for every task.

    Returns
    -------
    xarray.Dataset
        A complete copy, dims in the order (agent, task), labels in natural order.

    Raises
    ------
    OutcomesError
        If it is invalid; the message lists all problems.
    """
    import xarray as xr

    if not isinstance(outcomes, xr.Dataset):
        raise OutcomesError(
            f"outcomes must be an xarray.Dataset (count_outcomes or outcomes_from_table make one), "
            f"got {type(outcomes).__name__}"
        )
    if wrong := _mistakes(outcomes):
        raise OutcomesError("outcomes are not valid: " + "; ".join(wrong))
    labels = {dim: [str(label) for label in outcomes.variables[dim].values] for dim in ("agent", "task")}
    # the order of the labels decides which random number belongs to which cell
    order = {dim: natural_order(names) for dim, names in labels.items()}
    in_order = all(own == list(range(len(own))) for own in order.values())
    ordered = (outcomes.copy(deep=True) if in_order else outcomes.isel(order)).transpose("agent", "task", ...)
    kept = ordered.variables
    none = np.zeros(kept["trials"].shape, dtype=np.int64)
    counts = {
        name: plain_variable(("agent", "task"), kept[name].values.astype(np.int64) if name in kept else none.copy())
        for name in COUNTS
    }
    if (counts["errored"].values > counts["unscored"].values).any():
        raise OutcomesError("outcomes are not valid: errored must not exceed unscored, of which it is a part")
    named = {dim: text_index([names[i] for i in order[dim]]) for dim, names in labels.items()}
    return xr.Dataset(
        {name: kept[name] for name in ordered.data_vars} | counts,
        coords={name: kept[name] for name in ordered.coords} | named | checked_columns(ordered),
        attrs={"unit": "conversation", "indicator": "correct"} | dict(outcomes.attrs),
    )


def _mistakes(outcomes: xr.Dataset) -> list[str]:
    """Everything that keeps a dataset from being outcomes."""
    wrong: list[str] = []
    kept = outcomes.variables  # without DataArrays, which align their labels in every operation
    for dim in ("agent", "task"):
        if dim not in outcomes.dims:
            wrong.append(f"dimension {dim!r} is missing; dims are {tuple(map(str, outcomes.dims))}")
        elif dim not in outcomes.coords:
            wrong.append(f"dimension {dim!r} has no labels")
        elif outcomes.sizes[dim] == 0:
            wrong.append(f"there is no {dim}")
        elif len({str(label) for label in kept[dim].values}) != outcomes.sizes[dim]:
            wrong.append(f"labels of {dim!r} are not unique")
    for name in ("successes", "trials"):
        if name not in outcomes:
            wrong.append(f"variable {name!r} is missing; variables are {sorted(map(str, outcomes.data_vars))}")
    for name in COUNTS:
        if name in outcomes:
            dims, values = outcomes.variables[name].dims, outcomes.variables[name].values
            if set(dims) != {"agent", "task"}:
                wrong.append(f"{name!r} must have dims (agent, task), got {dims}")
            elif values.dtype.kind not in "iu":
                wrong.append(f"{name!r} must hold integers, got {values.dtype}")
            elif values.size and int(values.min()) < 0:
                wrong.append(f"{name!r} must be ≥ 0, got {int(values.min())}")
            elif values.size and int(values.max()) >= LARGEST:
                wrong.append(f"{name!r} must be < 2^53, got {int(values.max())}")
    if not wrong and (kept["successes"].values > kept["trials"].transpose(*kept["successes"].dims).values).any():
        wrong.append("successes must not exceed trials")
    return wrong


# what two sets of outcomes must share to be counted together
SHARED = ("unit", "indicator", "threshold", "tool_threshold", "judge", "tool_rubric", "errors")
# the attribute that names those in which combined outcomes differ
DIFFERING = "differing"


def combine_outcomes(
    *outcomes: xr.Dataset, names: Iterable[str] | None = None, allow: Iterable[str] = ()
) -> xr.Dataset:
    """Combine several outcomes: the union of their agents and tasks.

    Parameters
    ----------
    *outcomes : xarray.Dataset
        Outcomes to combine.
    names : iterable of str, optional
        One name per dataset: the agent's name where it has one agent, else a prefix of its agents' names.
    allow : iterable of str
        Attributes that may differ (``"judge"``, ``"threshold"``, …). A difference becomes "a | b" in the attribute, and
        the attribute ``differing`` names it, so that everything made from the result says so.

    Returns
    -------
    xarray.Dataset
        Trials are 0 if an agent never attempted a task.

    Raises
    ------
    OutcomesError
        If an agent occurs twice, an attribute differs without `allow`, or a task is in two groups.
    """
    if not outcomes:
        raise OutcomesError("combine_outcomes needs at least one outcomes dataset, got none")
    allowed = (allow,) if isinstance(allow, str) else check_texts("allow", allow, "a list of attributes")
    for name in allowed:
        check_choice("attribute to allow", name, SHARED)
    checked = [check_outcomes(ds) for ds in outcomes]
    labels: Sequence[str | None] = [None] * len(checked)
    if names is not None:
        labels = check_texts("names", [names] if isinstance(names, str) else names, "a list of names of agents")
    if len(labels) != len(checked):
        raise InvalidArgument(f"names must hold one name per dataset ({len(checked)}), got {len(labels)}")
    counts: dict[tuple[str, str], list[int]] = {}
    crashed: dict[tuple[str, str], int] = {}  # the failures that no judge has seen
    seen: dict[str, int] = {}
    for position, (ds, label) in enumerate(zip(checked, labels, strict=True)):
        single = ds.sizes["agent"] == 1
        for i, agent in enumerate(ds["agent"].values):
            name = agent if label is None else (label if single else f"{label}/{agent}")
            if name in seen:
                raise OutcomesError(
                    f"agent {name!r} occurs in datasets {seen[name]} and {position}: give `names` to tell them apart"
                )
            seen[name] = position
            cells = np.stack([ds[variable].values[i] for variable in COUNTS], axis=1)
            counts |= {(name, task): cell for task, cell in zip(ds["task"].values, cells.tolist(), strict=True)}
            if "crashed" in ds:
                crashed |= {(name, task): n for task, n in zip(ds["task"].values, ds["crashed"].values[i], strict=True)}
    attrs = _combined_attrs(checked, allowed)
    ds = dataset_from_counts(counts, attrs, combined_columns(checked))
    if crashed:
        of_cell = [[crashed.get((a, t), 0) for t in ds["task"].values] for a in ds["agent"].values]
        ds = ds.assign(crashed=plain_variable(("agent", "task"), np.asarray(of_cell, dtype=np.int64)))
    return with_bounds(ds) if attrs.get("errors") == "bounds" else ds


def _combined_attrs(checked: Sequence[xr.Dataset], allowed: Sequence[str]) -> dict[str, Any]:
    """The attributes of all datasets; a difference becomes "a | b", or is refused unless it is allowed."""
    attrs: dict[str, Any] = {}
    apart = {name for ds in checked for name in differing(ds.attrs)}
    for key in dict.fromkeys(key for ds in checked for key in ds.attrs if key != DIFFERING):
        values = list(dict.fromkeys(ds.attrs.get(key) for ds in checked))
        if key == "left_out":
            attrs[key] = sum(int(ds.attrs.get(key, 0)) for ds in checked)
        elif len(values) == 1:
            attrs[key] = values[0]
        elif key in SHARED and key not in allowed:
            raise OutcomesError(
                f"outcomes differ in {key!r}: {', '.join(map(repr, values))}; "
                f"allow=({key!r},) combines them anyway, and every result says so"
            )
        else:
            attrs[key] = " | ".join(map(str, values))
            apart |= {key} & set(SHARED)
    return attrs | ({DIFFERING: ", ".join(sorted(apart))} if apart else {})


def differing(attrs: Mapping[Any, Any]) -> list[str]:
    """Names of the attributes in which combined outcomes were allowed to differ."""
    return [name for name in str(attrs.get(DIFFERING, "")).split(", ") if name]


def allowed_differences(attrs: Mapping[Any, Any]) -> str:
    """How the counts of different agents differ, in words; empty if they are counted alike."""
    named = [f"{name} differs ({attrs[name]})" for name in differing(attrs)]
    return f"not counted alike: {', '.join(named)}" if named else ""


def with_bounds(ds: xr.Dataset) -> xr.Dataset:
    """The dataset with the share of passes if all errored trials had failed, or passed."""
    passed, errored = ds["successes"].values, ds["errored"].values
    total = ds["trials"].values + errored
    known = np.where(total > 0, total, np.nan)
    bounds = {"lower_bound": passed / known, "upper_bound": (passed + errored) / known}
    return ds.assign({name: plain_variable(("agent", "task"), values) for name, values in bounds.items()})
