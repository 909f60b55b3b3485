"""`estimate_many`: a table in, an estimate of every group of its rows out."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from agentic_bayes.checks import check_choice, check_ks, check_probability, check_seed
from agentic_bayes.errors import (
    EstimateError,
    InvalidArgument,
    UnknownName,
)
from agentic_bayes.estimation.distribution import CIKind
from agentic_bayes.estimation.estimate import Estimate, estimate
from agentic_bayes.estimation.groups import Weights
from agentic_bayes.estimation.many.ask import (
    REASON,
    GroupAnswer,
    GroupProgress,
    ask_groups,
    group_records,
    tidy,
)
from agentic_bayes.estimation.methods.options import Method, MethodName
from agentic_bayes.estimation.settings import Engine
from agentic_bayes.estimation.summary import ALL, SHORT
from agentic_bayes.executors import ExecutorChoice, check_executor
from agentic_bayes.formatting import format_estimate, plural
from agentic_bayes.outcomes.split import GroupKey, split_table, warn_of_whole
from agentic_bayes.result_table import Table, Tabular

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["ManyEstimates", "estimate_many"]


@dataclass(frozen=True, repr=False)
class ManyEstimates(Tabular):
    """Estimates of many groups of a table.

    Attributes
    ----------
    split : tuple of str
        The columns that tell groups apart.
    answers : tuple
        What came of each group, in natural order of the groups.
    options : dict
        The arguments of `estimate` that were given.
    executor : str, Executor or None
        Where it was computed; `gate` uses it, too.
    """

    split: tuple[str, ...]
    answers: tuple[GroupAnswer, ...]
    options: Mapping[str, Any]
    executor: ExecutorChoice | None = None

    def __len__(self) -> int:
        return len(self.answers)

    def __repr__(self) -> str:
        lost = sum(answer.error is not None for answer in self.answers)
        without = f", {lost:,} of them without an estimate" if lost else ""
        return f"ManyEstimates: {plural(len(self), 'group')} by {', '.join(self.split)}{without}"

    @property
    def groups(self) -> list[GroupKey]:
        """The values of the split columns, group by group."""
        return [answer.key for answer in self.answers]

    def estimate(self, *key: str) -> Estimate:
        """Make the whole estimate of one group, to plot it or to ask more of it.

        Parameters
        ----------
        *key : str
            The group: one value for each split column.

        Returns
        -------
        Estimate

        Raises
        ------
        UnknownName
            If there is no such group.
        EstimateError
            If the group could not be estimated; the message says why.
        """
        for answer in self.answers:
            if answer.key == key:
                if answer.outcomes is None:
                    raise EstimateError(f"group {', '.join(key)} was not estimated: {answer.reason}")
                return estimate(answer.outcomes, **self.options)
        raise UnknownName("group", ", ".join(map(str, key)), [", ".join(group) for group in self.groups])

    def summary(self, *, columns: Literal["short", "all"] = "short") -> pd.DataFrame:
        """One row per group, agent, estimand and metric; one for a group without an estimate.

        Parameters
        ----------
        columns : {"short", "all"}
            As for `Estimate.summary`.

        Returns
        -------
        pandas.DataFrame
            The split columns, the columns of `Estimate.summary`, and ``reason``: why a group has no numbers.
        """
        check_choice("columns", columns, ("short", "all"))
        names = list(SHORT if columns == "short" else ALL)
        if any("group" in row for answer in self.answers for row in answer.rows):
            names.insert(names.index("estimand") + 1, "group")
        return tidy(self.split, self.answers, names)

    def to_pandas(self) -> pd.DataFrame:
        """The summary with all its columns.

        Returns
        -------
        pandas.DataFrame
        """
        return self.summary(columns="all")

    def to_dict(self) -> dict[str, Any]:
        """The groups as plain JSON values, each with its rows or the reason why there are none.

        Returns
        -------
        dict
        """
        return group_records(self.split, self.answers)

    def table(self) -> Table:
        """One row per group and agent: the metrics for a new task, or for the tasks where that is not defined."""
        rows, named = list[list[str]](), [] if "agent" in self.split else ["agent"]
        metrics = list(dict.fromkeys(row["metric"] for answer in self.answers for row in answer.rows))
        for answer in self.answers:
            shown = [
                row for row in answer.rows if row["estimand"] == answer.rows[0]["estimand"] and not row.get("group")
            ]
            for agent, own in itertools.groupby(shown, key=lambda row: str(row["agent"])):
                numbers = {row["metric"]: format_estimate(row["mean"], row["lower"], row["upper"]) for row in own}
                rows.append(
                    [*answer.key, *(agent for _ in named), *(numbers.get(metric, "–") for metric in metrics), ""]
                )
            if answer.error is not None:
                rows.append([*answer.key, *("–" for _ in (*named, *metrics)), answer.reason])
        first = next((answer.rows[0] for answer in self.answers if answer.rows), None)
        notes = [] if first is None else [f"estimand {first['estimand']}; {first['method']}"]
        header = [*self.split, *named, *metrics, REASON]
        return Table(title=repr(self), header=header, rows=rows, notes=notes)


def estimate_many(
    table: Any,
    *,
    split: str | Sequence[str],
    columns: Mapping[str, Any] | None = None,
    executor: ExecutorChoice | None = None,
    progress: GroupProgress | None = None,
    method: Method | MethodName | Literal["auto"] = "auto",
    k: int | Iterable[int] = (1, 3, 5),
    ci_prob: float = 0.95,
    ci_kind: CIKind = "eti",
    engine: Engine = "auto",
    by: str | None = None,
    weights: Weights | None = None,
    random_seed: int = 0,
) -> ManyEstimates:
    """Estimate every group of a table on its own: every model and week, every customer, every language.

    Parameters
    ----------
    table : data frame, path, list of dict, …
        As for `outcomes_from_table`. A lazy table is filtered in its engine, once for each group.
    split : str or sequence of str
        The columns that tell groups apart.
    columns : mapping, optional
        Arguments of `outcomes_from_table`, the same for every group: ``{"task": "id", "threshold": 0.7}``.
    executor : str or concurrent.futures.Executor, optional
        Where to compute: ``"local:4"`` for four processes, ``"dask://HOST:PORT"`` for the workers of a Dask cluster, or
        an executor of your own. The numbers are the same to the last bit.
    progress : callable, optional
        Called with (groups done, all groups), for example a `ProgressBar`.
    method, k, ci_prob, ci_kind, engine, by, weights, random_seed : as in `estimate`
        The same for every group. No group borrows strength from another.

    Returns
    -------
    ManyEstimates
        A group that cannot be estimated has a row with the reason.

    Raises
    ------
    InvalidArgument
        If an argument is outside what is allowed.
    OutcomesError
        If the table cannot be read, or no group of it.
    ExecutorError
        If a worker process died or the cluster is not there.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [(week, f"t{task}", int(task < week)) for week in (1, 2, 3) for task in range(4) for _ in range(5)]
    >>> table = pd.DataFrame(rows, columns=["week", "task", "correct"])
    >>> many = estimate_many(table, split="week", method="frequentist", k=1)
    >>> many.summary().query("estimand == 'tasks' and metric == 'pass^1'")[["week", "mean"]].values.tolist()
    [['1', 0.25], ['2', 0.5], ['3', 0.75]]
    """
    names = (split,) if isinstance(split, str) else tuple(split) if isinstance(split, Iterable) else ()
    if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise InvalidArgument(f"split must be one column or several that differ, got {split!r}")
    if taken := {*ALL, "group", REASON} & {*names} - {"agent"}:
        raise InvalidArgument(f"split: the result has a column {', '.join(taken)} of its own; rename the table's")
    check_executor(executor)
    check_choice("ci_kind", ci_kind, get_args(CIKind))
    check_choice("engine", engine, get_args(Engine))
    check_probability(ci_prob, "ci_prob", open_ends=True)
    options = {
        "method": method,
        "k": check_ks(k),
        "ci_prob": ci_prob,
        "ci_kind": ci_kind,
        "engine": engine,
        "by": by,
        "weights": weights,
        "random_seed": check_seed(random_seed),
    }
    reading = dict(columns or {}) | ({"group": by} if by is not None and "group" not in (columns or {}) else {})
    groups = list(split_table(table, names, reading))
    ask = partial(_summaries, options=options)
    answers = ask_groups(groups, ask, reading, executor=executor, progress=progress)
    warn_of_whole(table, names, reading)
    return ManyEstimates(names, answers, options, executor)


def _summaries(outcomes: xr.Dataset, *, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = estimate(outcomes, **options).summary(columns="all").to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in found]
