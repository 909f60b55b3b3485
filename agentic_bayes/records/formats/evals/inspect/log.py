"""What an Inspect log says about all of its samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agentic_bayes.formatting import ELLIPSIS, first_few
from agentic_bayes.records.base import short
from agentic_bayes.records.formats.evals.inspect.scores import LogScores
from agentic_bayes.records.wire.fields import Faults, Fields, fitting
from agentic_bayes.records.wire.json_text import Parsed, broken
from agentic_bayes.records.wire.layout import Origin

FORMAT = "inspect"

LEFT_OUT = frozenset({"plan", "stats", "reductions", "log_updates"})
"""Unused members of a log; they can be most of it."""


@dataclass(slots=True)
class InspectLog:
    """What applies to the log as a whole."""

    origin: Origin
    scores: LogScores
    members: dict[str, Any] = field(default_factory=dict)
    found: int = 0
    repeated: int = 0
    unresolved: int = 0
    others: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # why not read → members

    @property
    def spec(self) -> Fields:
        """What was evaluated."""
        return Fields(self._object("eval"), ("eval",), Faults())

    def _object(self, key: str) -> dict[str, Any]:
        value = self.members.get(key)
        return value if isinstance(value, dict) else {}

    def header_faults(self) -> Iterator[Parsed]:
        """The problems of the log itself, apart from its samples, as a record."""
        faults = Faults()
        for key in ("eval", "status", "results"):
            fitting(self.members.get(key), (key,), faults)
        Fields(self.members, (), faults).text("status")
        spec = Fields(self.members.get("eval", {}), ("eval",), faults)
        spec.name("task", required=True)
        for key in ("model", "run_id", "eval_id"):
            spec.name(key)
        for fault in self.scores.faults():
            faults.add((), fault)
        if faults:
            yield Parsed("", faults=tuple(faults))

    @property
    def status(self) -> str | None:
        """How the run ended."""
        value = self.members.get("status")
        return value if isinstance(value, str) else None

    def expected(self) -> int | None:
        """How many samples the log should hold, if it says so."""
        total = Fields(self._object("results"), (), Faults()).whole("total_samples")
        if total is not None:
            return total
        dataset, config = self.spec.mapping("dataset"), self.spec.mapping("config")
        ids, size = dataset.sequence("sample_ids"), dataset.whole("samples")
        if not ids and size is None:
            return None
        if not ids and ("limit" in config or "sample_id" in config):
            return None
        return (len(ids) or size or 0) * (config.whole("epochs") or 1)

    def doubts(self) -> list[str]:
        """Warnings about the log."""
        found, expected, messages = self.found, self.expected(), []
        if expected is not None and found < expected:
            messages.append(f"samples missing from the file: {expected - found:,} of {expected:,}")
        if self.repeated:
            messages.append(
                f"members that the zip file holds more than once (the last one was read): {self.repeated:,}"
            )
        if self.unresolved:
            messages.append(f"texts whose attachments are missing from the file: {self.unresolved:,}")
        messages += self.scores.doubts()
        for kind, names in self.others.items():
            shown = first_few(list(map(short, names)), 3, rest=ELLIPSIS)
            messages.append(f"members ignored because they {kind}: {len(names):,} ({shown})")
        return messages

    def no_sample(self) -> Parsed:
        """The problem of a log without samples."""
        expected = self.expected()
        return broken("", "holds no sample" + (f" of the {expected:,} that it should hold" if expected else ""))
