"""Joins expected tool calls from a table or object to conversations, by task."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agentic_bayes.checks import check_flag
from agentic_bayes.errors import DoubtfulRecords, EvidenceError, did_you_mean
from agentic_bayes.evidence.joins.by_task import TurnPlace, join_by_task
from agentic_bayes.evidence.table import is_blank, label, read_json, read_whole, refuse, require_columns, whole_number
from agentic_bayes.records.base import problems_of, short
from agentic_bayes.records.model import Conversation, ExpectedTools
from agentic_bayes.records.wire.strict_json import strict_json

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["join_expected_tools"]

_ANY_ARGUMENTS = {"matchers": {"*": {"ignore": True}}}
_UNCHECKED = (
    "there is no column parameters, so the arguments of calls are not checked; a column with {} expects no arguments"
)
_CALL = ("tool_name", "parameters", "step", "matchers")
_ALIASES = {"name": "tool_name", "arguments": "parameters"}
_WHOLE = ("expected_tools", "tool_sequence_matters", "allowed_tools", "forbidden_tools")
_KNOWN = ("task", "qa_id", *_CALL, *_WHOLE)
_IN_JSON = ("parameters", "matchers", "expected_tools", "allowed_tools", "forbidden_tools")

# where a row of expectations comes from, and the row
_Row = tuple[str, Any]
_TaskPlace = tuple[str, TurnPlace]


def join_expected_tools(
    conversations: Iterable[Conversation],
    expected: pd.DataFrame | Mapping[str, Any] | str | Path,
    *,
    replace: bool = False,
) -> Iterator[Conversation]:
    """Add expected tool calls to conversations.

    Parameters
    ----------
    conversations : iterable of Conversation
        In any order; read as they are needed.
    expected : pandas.DataFrame, mapping or path
        A table (CSV, TSV, JSONL, Parquet) with one row per expected call: ``task``, ``tool_name`` (blank: no call is
        expected) and optionally ``qa_id`` (the interaction, if a conversation has several), ``parameters`` and
        ``matchers`` (objects, or their JSON text), ``step`` and ``tool_sequence_matters``. Instead of ``tool_name`` a
        row may give all calls as ``expected_tools``. Or an object, or a JSON file of one: task → a list of calls, or
        the fields of `ExpectedTools`.
    replace : bool
        Whether to replace expectations that a conversation already has.

    Returns
    -------
    iterator of Conversation
        The same conversations in the same order; conversations of tasks not in `expected` are unchanged.

    Raises
    ------
    EvidenceError
        If the expectations are malformed (the message lists all problems), name an interaction that a conversation
        does not have, belong to a conversation that already has expectations, or belong to no conversation at all.

    Warns
    -----
    DoubtfulRecords
        At the end, if `expected` names tasks that no conversation attempted. At once, if it is a table without a
        column ``parameters``: arguments are then not checked.
    """
    check_flag(replace, "replace")
    source, rows, unchecked = _rows(expected)
    gathered = _Gathered()
    for where, row in rows:
        gathered.add(where, row)
    wanted = gathered.checked(source)
    if unchecked:
        warnings.warn(DoubtfulRecords(f"{source}: {_UNCHECKED}"), stacklevel=2)
    field = "ground_truth_agentic"
    return join_by_task(conversations, source, wanted, field=field, what="expected tools", replace=replace)


def _rows(expected: Any) -> tuple[str, list[_Row], bool]:
    """Where the expectations are from, all of them, and whether they are a table that says nothing about arguments."""
    if isinstance(expected, Mapping):
        return "expected", _of_object(expected), False
    if isinstance(expected, (str, Path)) and Path(expected).suffix == ".json":
        value = read_json(Path(expected), error=EvidenceError)
        if isinstance(value, list):
            return str(expected), [(f"index {i}", row) for i, row in enumerate(value)], False
        if not isinstance(value, dict):
            raise EvidenceError(f"{expected}: must be an object (task → expected calls) or a list, got {short(value)}")
        return str(expected), _of_object(value), False
    whole = read_whole(expected, error=EvidenceError)
    source, columns = whole.source, whole.columns
    hint = "Expected: task and tool_name, or task and expected_tools (all calls of it)"
    require_columns(source, columns, ["task"], hint=hint, error=EvidenceError)
    if "expected_tools" not in columns:
        require_columns(source, columns, ["tool_name"], hint=hint, error=EvidenceError)
    size = len(columns["task"])
    rows = [{name: columns[name][i] for name in columns if not _absent(name, columns[name][i])} for i in range(size)]
    unchecked = "tool_name" in columns and not {"parameters", "arguments", "matchers"} & set(columns)
    if unchecked:
        rows = [row | _ANY_ARGUMENTS if "tool_name" in row else row for row in rows]
    # a table row without a tool means that none is expected
    return source, [(whole.place(i), {"tool_name": None, **row}) for i, row in enumerate(rows)], unchecked


def _absent(name: str, value: Any) -> bool:
    """Whether a cell is blank, though a tool, a task or a question may be called "NA"."""
    if isinstance(value, str) and name in ("task", "qa_id", "tool_name", "name"):
        return not value.strip()
    return not isinstance(value, (list, dict)) and is_blank(value)


def _of_object(tasks: Mapping[str, Any]) -> list[_Row]:
    return [
        (f"task {task!r}", {**(value if isinstance(value, Mapping) else {"expected_tools": value}), "task": task})
        for task, value in tasks.items()
    ]


class _Gathered:
    """The expectations for every task and interaction, and what is wrong with them."""

    def __init__(self) -> None:
        self._groups: dict[_TaskPlace, dict[str, Any]] = {}
        self._first_at: dict[_TaskPlace, str] = {}
        self._complete: set[_TaskPlace] = set()  # places with a complete list of calls
        self._problems: list[str] = []

    def add(self, where: str, values: Any) -> None:
        """Take one row of a table or one task of an object."""
        if not isinstance(values, Mapping):
            self._problems.append(f"{where}: must be an object, got {short(values)}")
            return
        row = {_ALIASES.get(str(name), str(name)): value for name, value in values.items()}
        unknown = [name for name in row if name not in _KNOWN]
        self._problems += [f"{where}: unknown key {short(name)}: {did_you_mean(name, _KNOWN)}" for name in unknown]
        task = _label("task", row.get("task"))
        if task is None:
            self._problems.append(f"{where}: task must not be blank")
            return
        row = {name: _parsed(name, value, where, self._problems) for name, value in row.items()}
        place = (task, _label("qa_id", row.get("qa_id")))
        first_at = self._first_at.setdefault(place, where)
        group = self._groups.setdefault(place, {"expected_tools": []})
        if wrong := self._take_calls(row, place, group["expected_tools"]):
            self._problems.append(f"{where}: {wrong}")
        for name in _WHOLE[1:]:
            if name in row and group.setdefault(name, row[name]) != row[name]:
                self._problems.append(f"{where}: {name} of task {task!r} differs from that of {first_at}")

    def _take_calls(self, row: Mapping[str, Any], place: _TaskPlace, calls: list[Any]) -> str:
        """Add what a row expects to the `calls` of its place, and say what is wrong with it, if anything."""
        named = row.get("tool_name") is not None
        details = any(name in row for name in _CALL[1:])
        complete, of_task = place in self._complete, f"task {place[0]!r}"
        if "expected_tools" in row:
            given = row["expected_tools"]
            if named or details:
                return "must give expected_tools or one call, got both"
            if complete or calls:
                return f"expected_tools of {of_task} is given twice"
            if not isinstance(given, list):
                return f"expected_tools of {of_task} must be a list, got {short(given)}"
            calls += given
            self._complete.add(place)
        elif "tool_name" not in row:
            return "must give tool_name or expected_tools"
        elif complete or (not named and (calls or details)):
            return f"says that {of_task} expects no call, but this or another row gives one"
        elif named:
            calls.append(_call(row))
        else:
            self._complete.add(place)
        return ""

    def checked(self, source: str) -> dict[_TaskPlace, ExpectedTools]:
        """All expectations; refuses them if anything is wrong."""
        expectations: dict[_TaskPlace, ExpectedTools] = {}
        for place, group in self._groups.items():
            try:
                expectations[place] = ExpectedTools.model_validate(group)
            except ValidationError as error:
                self._problems += map(str, problems_of(error, source=f"task {place[0]!r}", where=""))
        refuse(source, self._problems, error=EvidenceError)
        return expectations


def _call(row: Mapping[str, Any]) -> dict[str, Any]:
    call = {key: row[key] for key in _CALL if key in row}
    if "step" in call and (step := whole_number(call["step"])) is not None:
        call["step"] = step
    return call


def _label(name: str, value: Any) -> str | None:
    if value is None or _absent(name, value):
        return None
    return label(value)


def _parsed(name: str, value: Any, where: str, problems: list[str]) -> Any:
    """The value of a cell: objects and lists from JSON text, booleans from words."""
    if name == "tool_sequence_matters" and isinstance(value, str):
        return {"true": True, "1": True, "false": False, "0": False}.get(value.strip().lower(), value)
    if name in _IN_JSON and isinstance(value, str) and value.strip():
        try:
            return strict_json(value, finite=False)
        except ValueError as error:
            problems.append(f"{where}: {name} must be JSON, got {short(value)} ({error})")
            return [] if name == "expected_tools" else {}
    return value
