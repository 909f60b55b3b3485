"""Evidence: scored interactions with their reasons, in memory and as a JSONL file."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_bayes.checks import check_path, check_probability, no_such_file
from agentic_bayes.errors import EvidenceError, Problem
from agentic_bayes.evidence.means import mean_interval, score_of, task_means
from agentic_bayes.evidence.row import (
    COLUMNS,
    INDEX_COLUMNS,
    SCORE_COLUMNS,
    EvidenceRow,
    place_name,
    record_problems,
    row_from_json,
    row_to_json,
)
from agentic_bayes.evidence.score import NO_REFERENCE, Score
from agentic_bayes.formatting import first_few, format_estimate, not_scored, plural
from agentic_bayes.records.identity import FEWEST_UNTOLD, UNTOLD_TASKS
from agentic_bayes.records.wire.strict_json import strict_json
from agentic_bayes.result_table import Table, Tabular
from agentic_bayes.whole_files import replacing

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Evidence"]

_SHOWN = 50
UNCHECKED_ARGUMENTS = "arguments of tool calls were not compared: the expectations say nothing about them"
PARTLY_JUDGED = (
    "{} with references for some turns only: each counts as failed if one of these fails and otherwise as "
    "unscored, so too "
    'few pass; give every turn its reference, or count turns (unit="interaction", --unit interaction)'
)
MOST_REASONS = 3  # that a notebook shows
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, repr=False)
class Evidence(Tabular):
    """Scored interactions.

    Attributes
    ----------
    rows : tuple of EvidenceRow
        Sorted by (agent, task, trial, interaction).
    stopped : str or None
        Why the run ended early, or None. The file does not keep it; its unscored rows have the reason.

    Raises
    ------
    EvidenceError
        If an (agent, task, trial, interaction) occurs twice.
    """

    rows: tuple[EvidenceRow, ...]
    stopped: str | None = None

    def __post_init__(self) -> None:
        rows = tuple(sorted(self.rows, key=lambda row: row.key))
        for before, after in itertools.pairwise(rows):
            if before.key == after.key:
                sessions = f"in sessions {before.session_id!r} and {after.session_id!r}"
                raise EvidenceError(f"{place_name(after.key)} occurs twice, {sessions}")
        object.__setattr__(self, "rows", rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[EvidenceRow]:
        return iter(self.rows)

    @property
    def scored(self) -> int:
        """Number of interactions with an answer score."""
        return sum(row.answer_score is not None for row in self.rows)

    @property
    def unscored(self) -> int:
        """Number of interactions without an answer score."""
        return len(self.rows) - self.scored

    @property
    def untold_tasks(self) -> int:
        """Number of conversations, if each counts as its own task because the log names no tasks; else 0."""
        found = {(row.agent, row.task, row.trial) for row in self.rows}
        named = any(row.task != row.session_id for row in self.rows)
        alone = len(found) == len({(agent, task) for agent, task, _ in found})
        return len(found) if alone and not named and len(found) >= FEWEST_UNTOLD else 0

    def __repr__(self) -> str:
        conversations = len({(row.agent, row.task, row.trial) for row in self.rows})
        agents = len({row.agent for row in self.rows})
        ending = f"; stopped: {self.stopped}" if self.stopped else ""
        turns = f"{plural(len(self), 'interaction')} ({self.scored:,} scored, {self.unscored:,} unscored)"
        grades = [(name, grade) for row in self.rows for name, grade in row.metrics.items()]
        silent = sorted({name for name, _ in grades} - {name for name, grade in grades if isinstance(grade, Score)})
        lost = f"; no scores from {', '.join(silent)}" if silent else ""
        return f"Evidence: {turns} of {plural(conversations, 'conversation')}, {plural(agents, 'agent')}{lost}{ending}"

    def table(self) -> Table:
        """One row per agent; the notes name the judge and the commonest reasons for missing scores and verdicts."""
        reasons = Counter(row.unscored_reason for row in self.rows if row.unscored_reason)
        judges = sorted({row.judge for row in self.rows if row.judge})
        most = MOST_REASONS + (len(reasons) == MOST_REASONS + 1)  # no line says "1 more" where the reason itself fits
        more = len(reasons) - most
        # a crash is among the reasons above already
        silent = Counter(row.tool_reason for row in self.rows if row.tools_unscored and not row.crashed)
        summary = self.summary()
        wrong_tools = int(summary["right_answer_wrong_tools"].sum())
        partly = _partly_judged(self.rows)
        notes = [
            f"judge: {', '.join(judges) or 'none'}; answer score: 0 to 1, averaged over tasks, 95 % t interval (not "
            "the share that passed); tools right: of the turns with a tool verdict",
            *(f"{count:,} × {reason}" for reason, count in reasons.most_common(most)),
            f"… and {plural(more, 'more reason')}: unscored_reason in to_pandas()" if more > 0 else "",
            f"{plural(wrong_tools, 'turn')} with a right answer (≥ 0.7) but wrong tool calls" if wrong_tools else "",
            f"no tool verdict for {plural(silent.total(), 'turn')}:" if silent else "",
            *(f"{count:,} × {reason}" for reason, count in silent.most_common(MOST_REASONS)),
            UNCHECKED_ARGUMENTS if _compares_no_argument(self.rows) else "",
            f"doubtful: {UNTOLD_TASKS.format(self.untold_tasks)}" if self.untold_tasks else "",
            f"doubtful: {PARTLY_JUDGED.format(plural(partly, 'conversation'))}" if partly else "",
        ]
        means = task_means(self.rows, score_of("answer"))
        header = ["agent", "conversations", "turns scored", "not scored", "average answer score", "tools right"]
        rows = [
            [
                *(row["agent"], f"{row['conversations']:,}", f"{row['scored']:,}"),
                not_scored(row["unscored"], row["agent_errors"]),
                _mean_text(means.get(row["agent"], {})),
                f"{row['tools_right']:,}/{row['tools_scored']:,}" if row["tools_scored"] else "–",
            ]
            for row in summary.to_dict("records")
        ]
        return Table(title=repr(self), header=header, rows=rows, notes=notes, noun="agent")

    def to_dict(self) -> dict[str, Any]:
        """Everything as an object that JSON can hold.

        Returns
        -------
        dict
            ``stopped``, and ``rows`` as `write` writes them.
        """
        return {"stopped": self.stopped, "rows": [row_to_json(row) for row in self.rows]}

    def to_pandas(self) -> pd.DataFrame:
        """One row per interaction.

        Returns
        -------
        pandas.DataFrame
            Columns ``agent, task, trial, session_id, interaction, qa_id, answer_score, answer_reason,
            selection, parameters, sequence, utilization, tool_overall, tools_correct, tool_reason,
            unscored_reason, judge``, then one column of scores per further metric. Missing numbers are NaN,
            missing text and booleans None.
        """
        import pandas as pd

        columns: dict[str, pd.Series[Any]] = {}
        for name in COLUMNS:
            values = [getattr(row, name) for row in self.rows]
            if name in SCORE_COLUMNS:
                kind = "float64"
            else:
                # a trial may be any whole number, a column of int64 not
                kind = "int64" if name in INDEX_COLUMNS and max(values, default=0) < 2**63 else "object"
            columns[name] = pd.Series(values, dtype=kind)
        for name in sorted({name for row in self.rows for name in row.metrics}):
            grades = [row.metrics.get(name) for row in self.rows]
            scores = [grade.value if isinstance(grade, Score) else None for grade in grades]
            columns[name] = pd.Series(scores, dtype="float64")
        return pd.DataFrame(columns)

    def summary(self, *, threshold: float = 0.7) -> pd.DataFrame:
        """One row per agent.

        Parameters
        ----------
        threshold : float
            Minimum answer score for an answer to count as right, in [0, 1].

        Returns
        -------
        pandas.DataFrame
            ``agent, conversations, interactions, scored, unscored, agent_errors`` (the part of the unscored
            due to crashed agents), ``mean_answer_score`` (over the scored), ``tools_scored``, ``tools_right``,
            ``tools_unscored``, ``mean_tool_overall`` and ``right_answer_wrong_tools`` (right answers with a wrong tool
            verdict).
        """
        import pandas as pd

        check_probability(threshold, "threshold")
        table = self.to_pandas()
        table["crashed"] = [row.crashed for row in self.rows]
        table["tools_unscored"] = [row.tools_unscored for row in self.rows]
        table["wrong_tools"] = (table["answer_score"] >= threshold) & (table["tools_correct"] == False)  # noqa: E712
        return pd.DataFrame(
            {
                "agent": agent,
                "conversations": len(part[["task", "trial"]].drop_duplicates()),
                "interactions": len(part),
                "scored": int(part["answer_score"].notna().sum()),
                "unscored": int(part["answer_score"].isna().sum()),
                "agent_errors": int(part["crashed"].sum()),
                "mean_answer_score": part["answer_score"].mean(),
                "tools_scored": int(part["tool_overall"].notna().sum()),
                "tools_right": int((part["tools_correct"] == True).sum()),  # noqa: E712 - None is neither
                "tools_unscored": int(part["tools_unscored"].sum()),
                "mean_tool_overall": part["tool_overall"].mean(),
                "right_answer_wrong_tools": int(part["wrong_tools"].sum()),
            }
            for agent, part in table.groupby("agent", sort=True)
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write JSONL, gzipped if the name ends in ``.gz``; either all of it or nothing.

        The same rows give the same bytes. `stopped` is not written.

        Parameters
        ----------
        path : path
            Where to write; an existing file is replaced.
        """
        with replacing(str(path)) as file:
            file.writelines(_line(row_to_json(row)) for row in self.rows)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Evidence:
        """Read a file that `write` wrote.

        Parameters
        ----------
        path : path
            A ``.jsonl`` or ``.jsonl.gz`` file.

        Returns
        -------
        Evidence

        Raises
        ------
        EvidenceError
            If there is no such file, or anything in it is wrong; the message lists all problems, each with its line and
            field.
        """
        source = check_path(path)
        if not source.exists() or source.is_dir():
            raise EvidenceError(no_such_file(source))
        return cls(_read_rows(source))


class NotInOrder(Exception):
    """A file of evidence that cannot be read row by row: `Evidence.read` reads it, or says what is wrong with it."""


@dataclass(frozen=True)
class EvidenceFile:
    """Evidence that stays in its file: its rows are read anew whenever they are asked for, and not kept."""

    path: Path

    @property
    def rows(self) -> Iterator[EvidenceRow]:
        """The rows in the order of `Evidence.write`; NotInOrder if they are not, or anything in the file is wrong."""
        if not self.path.is_file():
            raise NotInOrder
        before: tuple[str, str, int, int] | None = None
        for _, record in _read_objects(self.path):
            if isinstance(record, str) or record_problems(record):
                raise NotInOrder
            row = row_from_json(record)
            if before is not None and row.key <= before:
                raise NotInOrder
            before = row.key
            yield row


def _read_rows(path: Path) -> tuple[EvidenceRow, ...]:
    rows: list[EvidenceRow] = []
    places: dict[tuple[str, str, int, int], int] = {}
    problems: list[Problem] = []
    for number, record in _read_objects(path):
        wrong = [("", record)] if isinstance(record, str) else record_problems(record)
        if not wrong and isinstance(record, dict):
            row = row_from_json(record)
            first = places.setdefault(row.key, number)
            if first != number:
                wrong = [("", f"{place_name(row.key)} repeats line {first}")]
            rows.append(row)
        if wrong:
            rows.clear()  # none will be returned
        problems += [Problem(str(path), f"line {number}", name, message) for name, message in wrong]
    if problems:
        shown = first_few(list(map(str, problems)), _SHOWN, between="\n  ", rest="\n  … and {}")
        raise EvidenceError(f"{plural(len(problems), 'problem')} in the evidence:\n  {shown}")
    if not rows:
        raise EvidenceError(f"{path}: must have one JSON object per interaction, is empty")
    return tuple(rows)


def _mean_text(tasks: Mapping[str, float]) -> str:
    """The mean over tasks with its interval."""
    return format_estimate(*mean_interval(tasks, None, 0.95))


def _compares_no_argument(rows: Iterable[EvidenceRow]) -> bool:
    """Whether calls were matched with expected ones, and none of their arguments was compared."""
    tools = [counts for row in rows for counts in row.tool_details.values() if counts.get("matched")]
    return bool(tools) and not any(counts.get("arguments") for counts in tools)


def _partly_judged(rows: Iterable[EvidenceRow]) -> int:
    """How many conversations have a score at one turn, and no reference at another."""
    scored = {row.key[:3] for row in rows if row.answer_score is not None}
    return len(scored & {row.key[:3] for row in rows if row.unscored_reason == NO_REFERENCE})


def _line(record: Mapping[str, Any]) -> bytes:
    text = json.dumps(record, ensure_ascii=False, allow_nan=False)
    # half of a surrogate pair cannot be encoded, but JSON text can escape it
    return _LONE_SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text).encode() + b"\n"


def _read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """The objects of a file, each with its line number; a text instead of an object says what is wrong with a line."""
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        lines = io.TextIOWrapper(gzip.GzipFile(fileobj=file) if packed else file, encoding="utf-8-sig", newline="\n")
        number = 0
        try:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, _parse(line)
        except UnicodeDecodeError as error:
            yield number + 1, f"must be UTF-8 text: {error}"
        except (EOFError, gzip.BadGzipFile, zlib.error, OSError) as error:
            yield number + 1, f"cannot be read: {error}"


def _parse(line: str) -> dict[str, Any] | str:
    try:
        record = strict_json(line)
    except ValueError as error:
        return f"must be one JSON object: {error}"
    return record if isinstance(record, dict) else f"must be a JSON object, got {line.strip()[:40]}"
