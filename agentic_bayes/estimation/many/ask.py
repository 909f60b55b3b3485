"""Estimates every group of a table, in turn or in worker processes, and keeps failures separate."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from agentic_bayes.errors import AgenticBayesError, AgenticBayesWarning, EstimateError, InvalidArgument, described
from agentic_bayes.executors import ExecutorChoice, Workers, packed
from agentic_bayes.formatting import json_ready
from agentic_bayes.outcomes.split import GroupKey
from agentic_bayes.outcomes.table import outcomes_from_table

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

GroupProgress = Callable[[int, int], object]
AskGroup = Callable[[Any], list[dict[str, Any]]]  # outcomes → rows
SENT_TOGETHER = 8  # groups in one call of a worker process, at most
REASON = "reason"


@dataclass(frozen=True)
class GroupAnswer:
    """What was asked of one group, or why there is no answer."""

    key: GroupKey
    rows: tuple[dict[str, Any], ...]
    outcomes: xr.Dataset | None
    error: Exception | None

    @property
    def reason(self) -> str:
        """Why there are no rows, or empty."""
        return "" if self.error is None else str(self.error)


def ask_groups(
    groups: Sequence[tuple[GroupKey, Any]],
    ask: AskGroup,
    reading: Mapping[str, Any] | None,
    *,
    executor: ExecutorChoice | None,
    progress: GroupProgress | None,
) -> tuple[GroupAnswer, ...]:
    """What `ask` gives for the outcomes of each group; an error if no group has an answer for the same reason.

    A group's data are a table, which is read here or by a worker, outcomes, or the error that it has instead.
    """
    answer = partial(_answers, ask=ask, reading=reading)
    found: list[GroupAnswer] = []

    def collect(results: Iterable[list[GroupAnswer]]) -> None:
        for part in results:
            found.extend(part)
            if progress is not None:
                progress(len(found), len(groups))

    if executor is None:
        collect(answer([group]) for group in groups)
    else:
        sent = packed(answer, "the method or its options")
        with Workers.open(executor) as workers:
            together = min(SENT_TOGETHER, 1 + len(groups) // (4 * (workers.size or SENT_TOGETHER)))
            collect(workers.in_order(sent, _parts(groups, reading, together)))
    errors = [group.error for group in found if group.error is not None]
    if len(errors) == len(found):
        wrong = [error for error in errors if isinstance(error, InvalidArgument)]
        if wrong or len({repr(error) for error in errors}) == 1:
            raise [*wrong, *errors][0]
    return tuple(found)


def _parts(
    groups: Sequence[tuple[GroupKey, Any]], reading: Mapping[str, Any] | None, size: int
) -> Iterator[list[tuple[GroupKey, Any]]]:
    """The groups, so many at a time; a table that lives in an engine is counted before it is sent."""
    items = iter(groups)
    while part := list(itertools.islice(items, size)):
        yield [(key, _counted(data, reading) if getattr(data, "lazy", False) else data) for key, data in part]


def _counted(data: Any, reading: Mapping[str, Any] | None) -> Any:
    """The outcomes of a group's table, or the error of reading it."""
    if isinstance(data, Exception) or reading is None:
        return data
    try:
        return outcomes_from_table(data, **reading)
    except AgenticBayesError as error:
        return error


def _answers(
    groups: Sequence[tuple[GroupKey, Any]],
    *,
    ask: AskGroup,
    reading: Mapping[str, Any] | None,
) -> list[GroupAnswer]:
    """The answers of some groups; flags in their rows say what warnings would."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AgenticBayesWarning)
        return [_answer(key, data, ask, reading) for key, data in groups]


def _answer(key: GroupKey, data: Any, ask: AskGroup, reading: Mapping[str, Any] | None) -> GroupAnswer:
    from xarray import Dataset

    outcomes = data if isinstance(data, Dataset) else _counted(data, reading)
    if isinstance(outcomes, Exception):
        return GroupAnswer(key, (), None, outcomes)
    try:
        return GroupAnswer(key, tuple(ask(outcomes)), outcomes, None)
    except AgenticBayesError as error:
        return GroupAnswer(key, (), outcomes, error)
    except Exception as error:  # one group must not cost the others
        return GroupAnswer(key, (), outcomes, EstimateError(described(error)))


def tidy(split: Sequence[str], answers: Iterable[GroupAnswer], names: Sequence[str]) -> pd.DataFrame:
    """One table of all rows: the split columns, these, and the reason where there is nothing."""
    import pandas as pd

    columns = [*split, *(name for name in names if name not in split), REASON]
    rows = [
        {**row, **dict(zip(split, answer.key, strict=True)), REASON: answer.reason}
        for answer in answers
        for row in answer.rows or ({},)
    ]
    return pd.DataFrame(rows, columns=columns)


def group_records(split: Sequence[str], answers: Iterable[GroupAnswer]) -> dict[str, Any]:
    """The groups as plain JSON values."""
    groups = [
        {"group": dict(zip(split, answer.key, strict=True)), "rows": list(answer.rows), REASON: answer.reason}
        for answer in answers
    ]
    return dict(json_ready({"split": list(split), "groups": groups}))
