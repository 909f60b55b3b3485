"""Caches replies for a while, so that later runs need not ask the same agent about the same trial again."""

from __future__ import annotations

import json
import sqlite3
import time
import warnings
from dataclasses import asdict
from typing import Any

from agentic_bayes.errors import AgenticBayesWarning, InvalidArgument
from agentic_bayes.suites.config import Suite
from agentic_bayes.suites.stores.run_store import BUSY_SECONDS
from agentic_bayes.suites.trial import AgentReply, TrialAttempt

FILE = "replies.sqlite"
_SCHEMA = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, made REAL NOT NULL, reply TEXT NOT NULL)"


class ReplyCache:
    """Replies by agent, input, trial and seed, in one file."""

    def __init__(self, suite: Suite) -> None:
        cache = suite.config.cache
        self._suite, self._seconds = suite, cache.ttl
        self._path = suite.folder / cache.dir / FILE
        self._broken = False
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute(_SCHEMA)
            self._db.execute("DELETE FROM replies WHERE made < ?", (time.time() - self._seconds,))
        except (OSError, sqlite3.Error) as error:
            raise InvalidArgument(f"cache.dir: {self._path} cannot be used as a cache of replies: {error}") from error

    def get(self, attempt: TrialAttempt) -> tuple[AgentReply, float] | None:
        """The reply to this trial, and the seconds that it took, unless it is too old or damaged."""
        query = "SELECT reply FROM replies WHERE key = ? AND made >= ?"
        try:
            row = self._db.execute(query, (self._key(attempt), time.time() - self._seconds)).fetchone()
            if row is None:
                return None
            kept: dict[str, Any] = json.loads(row[0])
            latency = kept.pop("latency")
            return AgentReply(**kept | {name: tuple(kept[name]) for name in ("answers", "tool_calls")}), latency
        except (sqlite3.Error, ValueError, TypeError, KeyError, AttributeError):
            return None

    def add(self, attempt: TrialAttempt, reply: AgentReply, latency: float) -> None:
        """Keep a reply; one that holds a secret is not written, and none after one could not be."""
        text = json.dumps({**asdict(reply), "latency": latency})
        if self._broken or self._suite.secrets.in_text(text) != text:
            return
        try:
            self._db.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", (self._key(attempt), time.time(), text))
        except sqlite3.Error as error:  # most likely a full disk; the run itself needs no cache
            self._broken = True
            message = f"{self._path} cannot be written, so further replies are not cached: {error}"
            warnings.warn(AgenticBayesWarning(message), stacklevel=2)

    def _key(self, attempt: TrialAttempt) -> str:
        task = attempt.task
        asked = [task.id, task.messages, task.system, task.params, attempt.trial, attempt.seed]
        return self._suite.digest_with_agent(asked)

    def close(self) -> None:
        """Close the file."""
        self._db.close()
