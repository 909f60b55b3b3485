"""Checks a damaged evidence store, and saves the judgements that can still be read."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.evidence.llm.store import COLUMNS, Store, integrity_faults, to_score
from agentic_bayes.whole_files import unwritable

_SMALLEST_ROW = 32  # bytes; what a file can hold at most
_READ = COLUMNS.replace("grade", "CAST(grade AS BLOB)")  # a text that is damaged cannot be read as text
_KINDS: tuple[type | tuple[type, ...], ...] = (
    str,
    str,
    (int, float),
    (int, float),
    (int, type(None)),
    (int, type(None)),
    (int, float, type(None)),
    str,
)


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """What can be read of a store."""

    faults: list[str]  # what SQLite finds wrong with the file
    judgements: int  # verdicts that can be read
    calls: int  # calls that can be read
    invalid: int  # rows that can be read but are not what was written, as far as one can tell

    @property
    def damaged(self) -> bool:
        """Whether something is wrong."""
        return bool(self.faults or self.invalid)


def check_store(path: str | os.PathLike[str]) -> StoreCheck:
    """Read a whole store, damaged or not, and count what it holds."""
    with closing(_opened(path)) as database:
        rows = [(row, _valid(row)) for row in _rows(database)]
        read = [valid for _, valid in rows if valid is not None]
        judgements = sum(valid[-1] is not None for valid in read)
        invalid = sum(valid is None or (row[-1] is not None and valid[-1] is None) for row, valid in rows)
        return StoreCheck(integrity_faults(database), judgements, len(read), invalid)


def repair_store(path: str | os.PathLike[str]) -> tuple[StoreCheck, str]:
    """Write a new store with what can be read of a damaged one, which is kept as ``PATH.damaged``.

    No run may use the store meanwhile. Returns what the new store holds, and the name of the damaged file.
    """
    damaged, fresh = f"{os.fspath(path)}.damaged", f"{os.fspath(path)}.repaired"
    if os.path.lexists(damaged):
        raise InvalidArgument(f"{damaged} exists: move it away first, so that nothing is lost")
    Path(fresh).unlink(missing_ok=True)
    with closing(_opened(path)) as database:
        try:
            with Store(fresh) as store:
                store.insert(row for row in map(_valid, _rows(database)) if row is not None)
        except (sqlite3.Error, InvalidArgument) as error:
            for end in ("", "-wal", "-shm"):
                Path(f"{fresh}{end}").unlink(missing_ok=True)
            raise unwritable(fresh, error) from error
    for end in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.replace(f"{os.fspath(path)}{end}", f"{damaged}{end}")
    os.replace(path, damaged)
    os.replace(fresh, path)
    return check_store(path), damaged


def _opened(path: str | os.PathLike[str]) -> sqlite3.Connection:
    database = sqlite3.connect(os.fspath(path), isolation_level=None)
    database.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        database.execute(f"SELECT {COLUMNS} FROM calls LIMIT 0")
    except sqlite3.Error as error:
        database.close()
        raise InvalidArgument(f"{os.fspath(path)}: nothing in it can be read as an evidence store: {error}") from error
    return database


def _rows(database: sqlite3.Connection) -> Iterator[tuple[object, ...]]:
    """Every row that can be read, by its number; an unreadable range is halved until what is lost is single rows."""
    (pages, size) = database.execute("SELECT page_count, page_size FROM pragma_page_count, pragma_page_size").fetchone()
    waiting = [(0, pages * size // _SMALLEST_ROW)]
    while waiting:
        low, high = waiting.pop()
        try:
            rows = database.execute(f"SELECT {_READ} FROM calls WHERE id BETWEEN ? AND ?", (low, high)).fetchall()
        except sqlite3.DatabaseError:
            if low < high:
                middle = (low + high) // 2
                waiting += [(middle + 1, high), (low, middle)]
            continue
        yield from rows


def _valid(row: tuple[object, ...]) -> tuple[object, ...] | None:
    """The row, without its verdict where that is damaged; None if other columns are."""
    *call, grade = row
    if not all(isinstance(value, kind) for value, kind in zip(call, _KINDS, strict=True)):
        return None
    return (*call, None if to_score(row[0], grade) is None else grade.decode())  # type: ignore[attr-defined]
