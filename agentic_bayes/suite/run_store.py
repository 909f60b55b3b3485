"""The trials of a run, on disk from the moment they end."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.suite.trial import TrialResult

__all__ = ["FILE", "RunStore"]

FILE = "trials.sqlite"
"""Name of the file in a run's folder."""

_APPLICATION_ID = 0x41427275  # tells our files from other SQLite files
_SCHEMA = (
    "CREATE TABLE trials (task TEXT NOT NULL, trial INTEGER NOT NULL, status TEXT NOT NULL, record TEXT NOT NULL, "
    "PRIMARY KEY (task, trial))",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
)
_BUSY_SECONDS = 60.0


class RunStore:
    """The trials of one run, and what the run is.

    Parameters
    ----------
    folder : Path
        The run's folder.
    create : bool
        Whether to make the file; else it must be there.

    Raises
    ------
    InvalidArgument
        If it is not a run's folder, or the file is something else.

    Notes
    -----
    In WAL mode with ``synchronous=NORMAL``: a killed process loses nothing that was added.
    """

    def __init__(self, folder: Path, *, create: bool = False) -> None:
        self.path = folder / FILE
        if not create and not self.path.is_file():
            raise InvalidArgument(f"{folder} is not a run's folder: it holds no {FILE}")
        try:
            self._db = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            tables, application = self._db.execute(
                "SELECT (SELECT count(*) FROM sqlite_master), application_id FROM pragma_application_id"
            ).fetchone()
            if application != _APPLICATION_ID and (tables or not create):
                self._db.close()
                raise InvalidArgument(f"{self.path} is not a file of trials")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            if not tables:
                self._db.execute("BEGIN IMMEDIATE")
                for statement in _SCHEMA:
                    self._db.execute(statement)
                self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise InvalidArgument(f"{self.path} cannot be used as a file of trials: {error}") from error

    @property
    def facts(self) -> dict[str, Any]:
        """What the run is: suite, agent, digests, when it began."""
        return {name: json.loads(value) for name, value in self._db.execute("SELECT name, value FROM facts")}

    def note(self, facts: Mapping[str, Any]) -> None:
        """Keep facts about the run.

        Parameters
        ----------
        facts : mapping
            Name → a value that JSON can hold.
        """
        rows = [(name, json.dumps(value)) for name, value in facts.items()]
        self._db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", rows)

    def add(self, result: TrialResult) -> None:
        """Put a trial on disk, in the place of an earlier error.

        Parameters
        ----------
        result : TrialResult
            The trial.
        """
        record = json.dumps({**asdict(result), "ended": time.time()})
        row = (result.task, result.trial, result.status, record)
        # a verdict stands: of two processes that ran the same trial, the first one's counts
        self._db.execute(
            "INSERT INTO trials VALUES (?, ?, ?, ?) ON CONFLICT (task, trial) DO UPDATE "
            "SET status = excluded.status, record = excluded.record WHERE trials.status = 'error'",
            row,
        )

    def done(self) -> set[tuple[str, int]]:
        """(task, trial) of every trial with a verdict."""
        return set(self._db.execute("SELECT task, trial FROM trials WHERE status <> 'error'"))

    def results(self) -> Iterator[TrialResult]:
        """All trials, by task in order of arrival, then by number."""
        order = "SELECT task, min(rowid) AS first FROM trials GROUP BY task"
        rows = self._db.execute(
            f"SELECT record FROM trials JOIN ({order}) USING (task) ORDER BY first, trial"
        ).fetchall()
        for (text,) in rows:
            record = json.loads(text)
            del record["ended"]
            yield TrialResult(
                **record | {"answers": tuple(record["answers"]), "tool_calls": tuple(record["tool_calls"])}
            )

    def close(self) -> None:
        """Close the file. It is safe not to."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
