"""The evidence store: keeps every judgement on disk, so that nothing is paid for twice."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import threading
import time
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from agentic_bayes.checks import check_path, check_replaceable
from agentic_bayes.errors import InvalidArgument, UnknownName
from agentic_bayes.evidence.score import Score
from agentic_bayes.records.base import short
from agentic_bayes.whole_files import unwritable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Store", "Usage"]

_APPLICATION_ID = 0x41427374  # tells our files from other SQLite files
_VERSION = 2  # 1: verdicts without a checksum
_BUSY_SECONDS = 60.0
# one row per call; the call that gave the verdict carries it, so that one statement keeps a judgement
_SCHEMA = (
    "CREATE TABLE calls (id INTEGER PRIMARY KEY, key TEXT NOT NULL, model TEXT NOT NULL, started REAL NOT NULL, "
    "latency REAL NOT NULL, input_tokens INTEGER, output_tokens INTEGER, cost REAL, outcome TEXT NOT NULL, grade TEXT)",
    "CREATE UNIQUE INDEX verdicts ON calls (key) WHERE grade IS NOT NULL",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)
# who is asking for a judgement now, so that no other process asks for it, too; a claim that is not renewed lapses
_CLAIMS = (
    "CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID"
)
_LEASE_SECONDS = 30.0
_SUMS = (
    "count(grade), count(*), sum(outcome <> 'read'), sum(input_tokens), sum(output_tokens), "
    "sum(input_tokens IS NULL OR output_tokens IS NULL), sum(cost), sum(cost IS NULL), sum(latency)"
)
_CLAIM = (
    "INSERT INTO claims VALUES (?, ?, ?) ON CONFLICT (key) "
    "DO UPDATE SET owner = excluded.owner, until = excluded.until WHERE claims.until NOT BETWEEN ? AND ?"
)
_RELEASE = "DELETE FROM claims WHERE key = ? AND owner = ?"
COLUMNS = "key, model, started, latency, input_tokens, output_tokens, cost, outcome, grade"
_ADD = "INSERT INTO calls VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
READ = "read"
"""`ModelCall.outcome` of a call whose reply held a verdict."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model."""

    started: float  # seconds since 1970
    latency: float  # seconds until the reply or the failure
    input_tokens: int | None = None  # as the model reported them; None if it did not
    output_tokens: int | None = None
    cost: float | None = None  # None without tokens or without a price
    outcome: str = READ  # "read", or why there was no verdict


Judgement = tuple[str, str, Sequence[ModelCall], Score | None]
"""Key, name of the model, calls, and the verdict or None."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The calls, tokens and costs of judgements.

    Attributes
    ----------
    judgements : int
        Number of verdicts.
    calls : int
        Number of calls, repeated ones included.
    failed : int
        Number of calls without a verdict.
    input_tokens, output_tokens : int
        Total over the calls that reported tokens.
    unmetered : int
        Number of calls that reported no tokens.
    cost : float
        Total over the calls with a known cost.
    unpriced : int
        Number of calls with an unknown cost.
    seconds : float
        Sum of the latencies.
    """

    judgements: int = 0
    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    unmetered: int = 0
    cost: float = 0.0
    unpriced: int = 0
    seconds: float = 0.0

    def record(self) -> dict[str, Any]:
        """The same for JSON; the cost is None if it is known of no call."""
        return {**asdict(self), "cost": self.cost if self.unpriced < self.calls else None}


class Store:
    """Judgements on disk, found again by the content of the call.

    The key of a judgement covers the rendered prompt (instructions, rubric, query, reference, answer), the model with
    its parameters, the reply mode and the number of the repetition. Judgements that agree in all of them are paid for
    once. Only verdicts are reused; failures are tried again. The store also keeps latency, time, tokens and cost of
    every call, failed calls included.

    Parameters
    ----------
    path : path
        A SQLite file, created if it does not exist; ``":memory:"`` keeps everything in memory.

    Attributes
    ----------
    path : str
        The file.
    reused : int
        Number of judgements reused since this object was made.

    Raises
    ------
    InvalidArgument
        If the path leads to something else, or to a store of a later version.

    Notes
    -----
    The file is in WAL mode with ``synchronous=NORMAL``: a killed process loses nothing, a loss of power may lose the
    last additions, and neither damages the file. Several processes may use the file at once, and several threads this
    object: a judgement that one of them is asking for is claimed, and the others wait for its verdict. The claims of a
    process that was killed lapse at once on the same machine, elsewhere after 30 seconds. The file must be on a local
    disk. A damaged file is refused when it is opened; ``agentic-bayes cache repair`` saves what can be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
            raise InvalidArgument(f"store must be a path or a Store, got {short(path)}")
        self.path = os.fspath(path)
        self.reused = 0
        self._owner = f"{socket.gethostname()} {os.getpid()} {uuid.uuid4().hex}"
        self._session = [0, 0, 0, 0, 0, 0, 0.0, 0, 0.0]  # the fields of a Usage
        self._lock = threading.RLock()
        if self.path != ":memory:":
            check_replaceable(check_path(path, "store"))
            if not Path(self.path).absolute().parent.is_dir():
                raise InvalidArgument(f"{self.path}: the folder does not exist")
        try:
            self._db = sqlite3.connect(
                self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=32
            )
            try:
                self._open()
            except BaseException:
                self._db.close()
                raise
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where a name in the schema is no text
            if not isinstance(error, sqlite3.OperationalError) and _is_sqlite(self.path):
                raise InvalidArgument(_damaged(self.path, str(error))) from error
            raise InvalidArgument(f"{self.path}: cannot be opened as an evidence store: {error}") from error

    def _open(self) -> None:
        """Check that the file is an evidence store, or make it one."""
        # a single statement, since another process may be creating the file
        application, tables = self._db.execute(
            "SELECT application_id, (SELECT count(*) FROM sqlite_master) FROM pragma_application_id"
        ).fetchone()
        if application not in (0, _APPLICATION_ID) or (application == 0 and tables):
            raise InvalidArgument(f"{self.path}: is a SQLite file, but not an evidence store")
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError:
                # SQLite does not wait when two processes change the mode at once
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        self._db.execute("PRAGMA synchronous = NORMAL")
        with self._transaction():
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version not in (0, _VERSION):
                which = "a later" if version > _VERSION else "an earlier"
                raise InvalidArgument(f"{self.path}: was written by {which} version of this package")
            if version == 0:
                for statement in _SCHEMA:
                    self._db.execute(statement)
            self._db.execute(_CLAIMS)
        if version and (faults := integrity_faults(self._db)):
            raise InvalidArgument(_damaged(self.path, short(faults[0], 120)))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk may have ended it
                    self._db.execute("ROLLBACK")
                raise

    def get(self, key: str) -> Score | None:
        """The verdict under a key, or None."""
        with self._lock:
            score = self._found([key]).get(key)
            self.reused += score is not None
            return score

    def _found(self, keys: Sequence[str]) -> dict[str, Score | None]:
        """The verdicts under these keys; None where one is damaged."""
        marks = ", ".join("?" * len(keys))
        # as bytes, since a damaged text cannot be read as text
        asked = f"SELECT key, CAST(grade AS BLOB) FROM calls WHERE grade IS NOT NULL AND key IN ({marks})"
        return {key: to_score(key, grade) for key, grade in self._db.execute(asked, keys)}

    def claim(self, keys: Sequence[str]) -> list[Score | bool]:
        """Find or claim several judgements at once.

        Parameters
        ----------
        keys : sequence of str
            Different keys.

        Returns
        -------
        list of Score or bool
            For each key its verdict; True if there is none and it is now for the caller to ask for it (and then to
            `add` or `release` it); False if somebody else is asking.
        """
        with self._lock:
            found = self._found(keys)
            granted: dict[str, bool] = {}
            if missing := [key for key in keys if found.get(key) is None]:
                with self._transaction():
                    found |= self._found(missing)
                    wanted = [key for key in missing if found.get(key) is None]
                    # a verdict that is damaged is asked for again
                    damaged = [(key,) for key in wanted if key in found]
                    self._db.executemany("UPDATE calls SET grade = NULL WHERE key = ? AND grade IS NOT NULL", damaged)
                    granted = self._granted(wanted)
            scores = [found.get(key) for key in keys]
            self.reused += sum(score is not None for score in scores)
        return [granted[key] if score is None else score for key, score in zip(keys, scores, strict=True)]

    def _granted(self, keys: Sequence[str]) -> dict[str, bool]:
        """Claim judgements within a transaction, but for those that others have claimed and are still at."""
        now = time.time()
        # a claim for longer than any lease was made by a clock that was wrong
        rows = {key: (key, self._owner, now + _LEASE_SECONDS, now, now + 2 * _LEASE_SECONDS) for key in keys}
        marks = ", ".join("?" * len(keys))
        taken = dict(self._db.execute(f"SELECT key, owner FROM claims WHERE key IN ({marks})", keys).fetchall())
        for owner in {owner for owner in taken.values() if not _is_alive(owner)}:
            self._db.execute("DELETE FROM claims WHERE owner = ?", (owner,))
        granted = {key: bool(self._db.execute(_CLAIM, rows[key]).rowcount) for key in taken}
        self._db.executemany(_CLAIM, [row for key, row in rows.items() if key not in taken])
        return dict.fromkeys(keys, True) | granted

    def release(self, keys: Iterable[str]) -> None:
        """Give up claims.

        Parameters
        ----------
        keys : iterable of str
            Claims of others are left alone.
        """
        with self._lock, self._transaction():
            self._db.executemany(_RELEASE, [(key, self._owner) for key in keys])

    def renew(self) -> None:
        """Renew all claims of this object, which lapse 30 seconds after they were made or renewed."""
        with self._lock:
            until = time.time() + _LEASE_SECONDS
            self._db.execute("UPDATE claims SET until = ? WHERE owner = ?", (until, self._owner))

    def add(self, key: str, model: str, calls: Sequence[ModelCall], score: Score | None = None) -> Score | None:
        """Store a judgement.

        Parameters
        ----------
        key : str
            The content of the call.
        model : str
            Name of the model.
        calls : sequence of ModelCall
            Its calls, at least one; the last one gave the verdict.
        score : Score, optional
            The verdict; None keeps only the calls.

        Returns
        -------
        Score or None
            What stands under the key now: of two processes that judged the same, the first one's verdict.
        """
        return self.add_all([(key, model, calls, score)])[0]

    def add_all(self, judgements: Sequence[Judgement]) -> list[Score | None]:
        """Store several judgements in one transaction; takes and returns for each what `add` does."""
        rows = [row for judgement in judgements for row in _rows(judgement)]
        with self._lock:
            for _, _, calls, score in judgements:
                self._session[0] += score is not None
                for call in calls:
                    self._count(call)
            with self._transaction():
                self._db.executemany(_RELEASE, [(judgement[0], self._owner) for judgement in judgements])
                before = self._db.total_changes
                self._db.executemany(_ADD, rows)
                if self._db.total_changes - before == len(rows):
                    return [score for _, _, _, score in judgements]
                self._db.execute("ROLLBACK")
                self._db.execute("BEGIN IMMEDIATE")
                self._db.executemany(_RELEASE, [(judgement[0], self._owner) for judgement in judgements])
                return [self._add_beside(judgement) for judgement in judgements]

    def _add_beside(self, judgement: Judgement) -> Score | None:
        """Add a judgement; if another process has stored a verdict meanwhile, that one stands."""
        key, _, _, score = judgement
        *lost, last = _rows(judgement)
        self._db.executemany(_ADD, lost)
        if self._db.execute(_ADD, last).rowcount:
            return score
        self._db.execute(_ADD, (*last[:-1], None))  # it was paid for, too
        return self._found([key]).get(key) or score

    def _count(self, call: ModelCall) -> None:
        unmetered = call.input_tokens is None or call.output_tokens is None
        counts = (0, 1, call.outcome != READ, call.input_tokens or 0, call.output_tokens or 0, unmetered)
        costs = (call.cost or 0.0, call.cost is None, call.latency)
        self._session = [total + part for total, part in zip(self._session, (*counts, *costs), strict=True)]

    def insert(self, rows: Iterable[tuple[object, ...]]) -> None:
        """Insert calls as another store has them.

        Parameters
        ----------
        rows : iterable of tuple
            ``key, model, started, latency, input_tokens, output_tokens, cost, outcome, grade``; of several verdicts
            under one key the first one stands.
        """
        with self._lock, self._transaction():
            self._db.executemany(_ADD, rows)

    @property
    def session(self) -> Usage:
        """The usage since this object was made."""
        with self._lock:
            return Usage(*self._session)  # type: ignore[arg-type]

    def session_record(self) -> dict[str, Any]:
        """`session` for JSON, with what was reused and the latencies."""
        usage, latencies = self.session, self.to_pandas()["latency"]
        recent = latencies.tail(usage.calls)
        median, slow = (float(recent.quantile(q)) if usage.calls else None for q in (0.5, 0.95))
        return {**usage.record(), "reused": self.reused, "latency_p50": median, "latency_p95": slow}

    def __len__(self) -> int:
        with self._lock:
            (count,) = self._db.execute("SELECT count(grade) FROM calls").fetchone()
            return int(count)

    @property
    def size(self) -> int:
        """Bytes of the database."""
        with self._lock:
            size = self._db.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
            return int(size.fetchone()[0])

    def models(self) -> dict[str, Usage]:
        """The usage of every model.

        Returns
        -------
        dict
            Model → `Usage`, sorted by name.
        """
        with self._lock:
            rows = self._db.execute(f"SELECT model, {_SUMS} FROM calls GROUP BY model ORDER BY model").fetchall()
        return {name: _to_usage(sums) for name, *sums in rows}

    def usage(self) -> Usage:
        """The usage of all models."""
        with self._lock:
            return _to_usage(self._db.execute(f"SELECT {_SUMS} FROM calls").fetchone())

    def clear(self, model: str | None = None) -> int:
        """Delete judgements and their calls.

        Parameters
        ----------
        model : str, optional
            Delete only those of this model.

        Returns
        -------
        int
            Number of deleted judgements.

        Raises
        ------
        UnknownName
            If the store has nothing from this model.
        """
        with self._lock:
            if model is not None and model not in (names := self.models()):
                raise UnknownName("model", model, names)
            where, values = ("", ()) if model is None else ("WHERE model = ?", (model,))
            try:
                with self._transaction():
                    (count,) = self._db.execute(f"SELECT count(grade) FROM calls {where}", values).fetchone()
                    self._db.execute(f"DELETE FROM calls {where}", values)
            except sqlite3.Error as error:
                raise unwritable(self.path, error) from error
            with suppress(sqlite3.OperationalError):  # another process is reading: the space is freed some other time
                self._db.execute("VACUUM")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return int(count)

    def to_pandas(self) -> pd.DataFrame:
        """One row per call.

        Returns
        -------
        pandas.DataFrame
            ``key, model, started, latency, input_tokens, output_tokens, cost, outcome``, in order of arrival.
            Rows with the same key belong to one judgement.
        """
        import pandas as pd

        columns = ["key", "model", "started", "latency", "input_tokens", "output_tokens", "cost", "outcome"]
        with self._lock:
            rows = self._db.execute(f"SELECT {', '.join(columns)} FROM calls ORDER BY id").fetchall()
        table = pd.DataFrame(rows, columns=columns)
        table["started"] = pd.to_datetime(table["started"], unit="s", utc=True)
        kinds = dict.fromkeys(("input_tokens", "output_tokens"), "Int64") | {"latency": "float64", "cost": "float64"}
        return table.astype(kinds)

    def __repr__(self) -> str:
        return f"Store({self.path!r})"

    def close(self) -> None:
        """Close the file; optional, since nothing is lost without it."""
        with self._lock:
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _grade(key: str, score: Score) -> str:
    """A verdict as it is stored: with a checksum at its end, since one digit for another is still a verdict."""
    # ASCII, since half of a surrogate pair can be escaped but not encoded
    text = json.dumps([score.value, score.reason, dict(score.details)])
    return f"{text[:-1]}, {_checksum(key, text)}]"


def _checksum(key: str, text: str) -> int:
    return zlib.crc32(f"{key} {text}".encode())


def to_score(key: object, grade: object) -> Score | None:
    """The score that was stored under a key; None if it is damaged."""
    try:
        begin, _, end = bytes(grade).decode("ascii").rpartition(", ")  # type: ignore[call-overload]
    except (TypeError, UnicodeDecodeError):
        return None
    text = f"{begin}]"
    return Score(*json.loads(text)) if end == f"{_checksum(str(key), text)}]" else None


def _is_alive(owner: str) -> bool:
    """Whether the process that made a claim may still run."""
    try:
        host, pid, _ = owner.rsplit(" ", 2)
        if host == socket.gethostname() and os.name == "posix":
            os.kill(int(pid), 0)
    except (ProcessLookupError, TypeError, ValueError, AttributeError):
        return False
    except (PermissionError, OverflowError):
        return True
    return True  # or nobody can tell: its lease decides


def _is_sqlite(path: str) -> bool:
    with suppress(OSError), open(path, "rb") as file:
        return file.read(15) == b"SQLite format 3"
    return False


def _damaged(path: str, fault: str) -> str:
    return (
        f"{path}: the evidence store is damaged ({fault}); `agentic-bayes cache check {path}` says what can be read, "
        f"`agentic-bayes cache repair {path}` saves it"
    )


def integrity_faults(database: sqlite3.Connection) -> list[str]:
    """What SQLite finds wrong with a file; empty if nothing is."""
    try:
        database.execute(f"SELECT {COLUMNS} FROM calls LIMIT 0")
        faults = [str(fault) for (fault,) in database.execute("PRAGMA integrity_check(10)")]
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return [str(error)]
    return [] if faults == ["ok"] else [" ".join(fault.split()) for fault in faults]


def _rows(judgement: Judgement) -> list[tuple[object, ...]]:
    """A row per call; the last one carries the verdict."""
    key, model, calls, score = judgement
    grades = [None] * (len(calls) - 1) + [None if score is None else _grade(key, score)]
    return [
        (
            *(key, model, call.started, call.latency, call.input_tokens, call.output_tokens, call.cost),
            call.outcome if call.outcome == READ else call.outcome.encode("utf-8", "backslashreplace").decode(),
            grade,
        )
        for call, grade in zip(calls, grades, strict=True)
    ]


def _to_usage(sums: Sequence[Any]) -> Usage:
    return Usage(*(value or 0 for value in sums))
