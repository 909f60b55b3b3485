"""Joins reference answers from a table or object to conversations, by task, or by task and turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_bayes.checks import check_flag
from agentic_bayes.errors import EvidenceError
from agentic_bayes.evidence.frames import LocalTable
from agentic_bayes.evidence.joins.by_task import TurnPlace, join_by_task
from agentic_bayes.evidence.table import (
    Place,
    TableColumns,
    label,
    labels,
    read_json,
    read_whole,
    refuse,
    whole_number,
)
from agentic_bayes.records.base import short
from agentic_bayes.records.model import Conversation
from agentic_bayes.records.roles import ROLES, named, plain

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["join_references"]

_TURNS = ("qa_id", "turn", "interaction")
_WAY = (
    ", with a column turn (from 1) or qa_id; if only some turns have one, count turns and not conversations: "
    "unit='interaction' (--unit interaction)"
)
_HINT = "Expected: task and reference, and qa_id or turn if a conversation has several turns"


def join_references(
    conversations: Iterable[Conversation],
    references: pd.DataFrame | Mapping[str, Any] | str | Path,
    *,
    replace: bool = False,
) -> Iterator[Conversation]:
    """Add reference answers to conversations.

    Parameters
    ----------
    conversations : iterable of Conversation
        In any order; read as they are needed.
    references : pandas.DataFrame, mapping or path
        A table (CSV, TSV, JSON, JSONL, Parquet) with one row per task: ``task`` and ``reference``, or columns that are
        usually called so (``task_id``, ``question_id``, …; ``ground_truth``, ``expected``, ``answer``, …) if only one
        is. If conversations have several turns, one row per turn, with ``qa_id``, ``turn`` (from 1) or ``interaction``
        (from 0, as in evidence). Or an object, or a JSON file of one: task → the reference, or a list with one per
        turn, null where there is none.
    replace : bool
        Whether to replace references that a conversation already has.

    Returns
    -------
    iterator of Conversation
        The same conversations in the same order; conversations of tasks not in `references` are unchanged.

    Raises
    ------
    EvidenceError
        If the references are malformed (the message lists all problems), name a turn that a conversation does not have,
        belong to a conversation that already has a reference, or belong to no conversation at all.

    Warns
    -----
    DoubtfulRecords
        At the end, if `references` names tasks that no conversation attempted, or conversations have no reference.

    Examples
    --------
    >>> turn = {"qa_id": "q1", "query": "What is 6 × 7?", "assistant": "42"}
    >>> conversation = Conversation(session_id="s", assistant_id="v1", task_id="product", conversation=[turn])
    >>> (joined,) = join_references([conversation], {"product": "42"})
    >>> joined.conversation[0].ground_truth_assistant
    '42'
    """
    check_flag(replace, "replace")
    source, wanted = read_references(references)
    field = "ground_truth_assistant"
    return join_by_task(
        conversations, source, wanted, field=field, what="a reference", way=_WAY, replace=replace, every_task=True
    )


def read_references(references: Any) -> tuple[str, dict[tuple[str, TurnPlace], str]]:
    """Where the references are from, and all of them."""
    problems: list[str] = []
    if isinstance(references, Mapping):
        source, rows = "references", list(_of_object(references))
    elif isinstance(references, (str, Path)) and Path(references).suffix == ".json":
        source, value = str(references), read_json(Path(references), error=EvidenceError)
        if isinstance(value, dict):
            rows = list(_of_object(value))
        elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            table = LocalTable.of_records(source, value)
            rows = _of_table(source, table.columns, problems, table.place)
        else:
            raise EvidenceError(
                f"{source}: must be an object (task → reference) or a list of objects, got {short(value)}"
            )
    else:
        whole = read_whole(references, error=EvidenceError)
        source, rows = whole.source, _of_table(whole.source, whole.columns, problems, whole.place)
    wanted: dict[tuple[str, TurnPlace], str] = {}
    for where, task, place, value in rows:
        if value is None or (isinstance(value, str) and not value.strip()) or value != value:
            continue  # this task has none, which is told once the conversations are known
        if not isinstance(value, (str, int, float)):
            problems.append(f"{where}: the reference must be text or a number, got {short(value)}")
        elif wanted.setdefault((task, place), label(value)) != label(value):
            problems.append(
                f"{where}: another reference for task {task!r}, {short(value)}; it was {short(wanted[task, place])}"
            )
    refuse(source, problems, error=EvidenceError)
    if not wanted:
        raise EvidenceError(f"{source}: has no references")
    return source, wanted


# where a reference is from, its task, its turn, and itself
_ReferenceRow = tuple[str, str, TurnPlace, Any]


def _of_object(tasks: Mapping[str, Any]) -> Iterator[_ReferenceRow]:
    for task, value in tasks.items():
        several = isinstance(value, (list, tuple))
        for turn, one in enumerate(value if several else [value]):
            yield f"task {task!r}", label(task), turn if several else None, one


def _of_table(source: str, columns: TableColumns, problems: list[str], row: Place) -> list[_ReferenceRow]:
    task, reference = (_column(source, columns, role) for role in ("task", "reference"))
    turns = [name for name in columns if plain(name) in _TURNS]
    if len(turns) > 1:
        raise EvidenceError(f"{source}: the turn is given by {' and '.join(map(repr, turns))}; leave only one of them")
    tasks = labels(columns[task], task, problems, row)
    places = _places(columns[turns[0]], turns[0], problems, row) if turns else [None] * len(tasks)
    return [(row(i), *cells) for i, cells in enumerate(zip(tasks, places, columns[reference], strict=True))]


def _column(source: str, columns: TableColumns, role: str) -> str:
    """The column that holds a role: the one of this name, or the only one that is usually called so."""
    found = named(role, columns)
    exact = [name for name in found if plain(name) == role]
    if len(exact) == 1 or len(found) == 1:
        return (exact or found)[0]
    shown = ", ".join(map(repr, columns))
    if found:
        raise EvidenceError(
            f"{source}: the {role} may be in {' or '.join(map(repr, found))}; call the right column {role!r}"
        )
    raise EvidenceError(
        f"{source}: there is no column {role!r}, nor one called {', '.join(ROLES[role][1:5])}, …. "
        f"Its columns: {shown}. {_HINT}"
    )


def _places(values: Sequence[Any], name: str, problems: list[str], row: Place) -> list[TurnPlace]:
    """The turns that a column names; a blank cell is the only turn."""
    first, found = {"turn": 1, "interaction": 0}.get(plain(name)), list[TurnPlace]()
    for i, value in enumerate(values):
        blank = value is None or value != value or not str(value).strip()
        number = None if blank else whole_number(value)
        if blank or first is None:
            found.append(None if blank else label(value))
        elif number is None or number < first:
            more = "; if turns are numbered from 0, call the column interaction" if number == 0 else ""
            problems.append(f"{row(i)}: {name} must be a whole number ≥ {first}, got {short(value)}{more}")
            found.append(None)
        else:
            found.append(number - first)
    return found
