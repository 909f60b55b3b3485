"""Save every trial of a run to disk as soon as it ends, in SQLite."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self, TypeVar

from agentic_bayes.errors import DamagedRun, InvalidArgument
from agentic_bayes.records.base import short
from agentic_bayes.suites.stores.run_index import FILE
from agentic_bayes.suites.trial import TrialResult
from agentic_bayes.whole_files import unwritable

LOCK = "lock.sqlite"
_APPLICATION_ID = 0x41427275  # tells our files from other SQLite files
_SCHEMA = (
    "CREATE TABLE trials (task TEXT NOT NULL, trial INTEGER NOT NULL, status TEXT NOT NULL, record TEXT NOT NULL, "
    "PRIMARY KEY (task, trial))",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
)
_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)  # the latter where a name in the file's schema is no text
BUSY_SECONDS = 60.0
_Read = TypeVar("_Read")


class RunStore:
    """The trials of one run, and facts about the run.

    SQLite in WAL mode with ``synchronous=NORMAL``, so that a killed process loses nothing that was added.
    """

    def __init__(self, folder: Path, *, create: bool = False) -> None:
        self.path = folder / FILE
        self._lock: sqlite3.Connection | None = None
        if not self.path.is_file():
            if not create:
                raise InvalidArgument(f"{folder} is not a run's folder: it contains no {FILE}")
            _make(self.path)
        try:
            self._db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise InvalidArgument(f"{self.path} cannot be opened: {error}") from error
        try:
            if self._db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
                raise InvalidArgument(f"{self.path} is not a file of trials")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
        except _UNREADABLE as error:
            self._db.close()
            raise InvalidArgument(f"{self.path} cannot be used as a file of trials: {error}") from error
        except InvalidArgument:
            self._db.close()
            raise

    @property
    def facts(self) -> dict[str, Any]:
        """Facts about the run: suite, agent, digests, start time."""
        with self._undamaged("a fact about the run"):
            return {name: json.loads(value) for name, value in self._read("SELECT name, value FROM facts")}

    def note(self, facts: Mapping[str, Any]) -> None:
        """Save facts about the run."""
        rows = [(name, json.dumps(value)) for name, value in facts.items()]
        values = ", ".join(["(?, ?)"] * len(rows))  # one statement, so that all facts are saved or none
        self._write(f"INSERT OR REPLACE INTO facts VALUES {values}", [part for row in rows for part in row])

    def add(self, result: TrialResult) -> None:
        """Save a trial; it replaces an earlier error."""
        record = json.dumps({**asdict(result), "ended": time.time()})
        row = (result.task, result.trial, result.status, record)
        # a verdict is never replaced: if two processes ran the same trial, the first verdict counts
        self._write(
            "INSERT INTO trials VALUES (?, ?, ?, ?) ON CONFLICT (task, trial) DO UPDATE "
            "SET status = excluded.status, record = excluded.record WHERE trials.status = 'error'",
            row,
        )

    def done(self) -> set[tuple[str, int]]:
        """(task, trial) of every trial with a verdict."""
        return {(task, trial) for task, trial in self._read("SELECT task, trial FROM trials WHERE status <> 'error'")}

    def results(self) -> Iterator[TrialResult]:
        """All finished trials, in the order in which they ended."""
        for task, trial, status, text in self._read("SELECT task, trial, status, record FROM trials ORDER BY rowid"):
            with self._undamaged(f"trial {trial} of task {task}"):
                record = json.loads(text)
                del record["ended"]
                result = TrialResult(
                    **record | {"answers": tuple(record["answers"]), "tool_calls": tuple(record["tool_calls"])}
                )
                if (result.task, result.trial, result.status) != (task, trial, status):
                    raise ValueError("it names another trial")
            yield result

    def lock(self) -> None:
        """Keep other processes from running the same trials, until this one closes the file or dies."""
        lock = sqlite3.connect(self.path.with_name(LOCK), timeout=0, isolation_level=None, check_same_thread=False)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            lock.close()
            raise InvalidArgument(
                f"run {self.path.parent.name} is being run by another process: wait for it, or start a new run (--new)"
            ) from None
        self._lock = lock

    def _read(self, query: str) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(query).fetchall()
        except _UNREADABLE as error:
            raise InvalidArgument(f"{self.path} cannot be read: {short(str(error), 120)}") from error

    @contextmanager
    def _undamaged(self, what: str) -> Iterator[None]:
        """Say which part of the file cannot be what was written."""
        try:
            yield
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise InvalidArgument(
                f"{self.path} is damaged: {what} cannot be read ({short(str(error), 80)}); start a new run (--new)"
            ) from error

    def _write(self, statement: str, values: Sequence[Any]) -> None:
        try:
            self._db.execute(statement, values)
        except sqlite3.Error as error:
            raise unwritable(self.path, error) from error

    def close(self) -> None:
        """Close the file; nothing is lost without it."""
        self._db.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def each_run(results: Path, read: Callable[[Path], _Read]) -> Iterator[_Read]:
    """What is read of every run in a folder, the latest first; a run that cannot be read is left out with a warning."""
    folders = [path.parent for path in results.glob(f"*/{FILE}")]
    for folder in sorted(folders, key=lambda path: path.name, reverse=True):
        try:
            run = read(folder)
        except InvalidArgument as error:
            warnings.warn(f"skipped {folder.name}: {error}", DamagedRun, stacklevel=2)
            continue
        yield run


def _make(path: Path) -> None:
    """Create the file under another name first, so that it is complete or absent even if the process dies."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        draft.unlink(missing_ok=True)
        with closing(sqlite3.connect(draft)) as database:
            for statement in _SCHEMA:
                database.execute(statement)
            database.commit()
        draft.replace(path)
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise unwritable(path, error, "created") from error
