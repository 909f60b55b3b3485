"""Takes existing scores as evidence: those recorded in the conversations, or in a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_bayes.errors import EvidenceError, InvalidArgument
from agentic_bayes.evidence import table as tables
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.frames import LocalTable
from agentic_bayes.evidence.row import RESERVED, EvidenceRow, place_name
from agentic_bayes.evidence.score import Grade, Score, Unscored
from agentic_bayes.records.base import is_share, short
from agentic_bayes.records.model import Conversation
from agentic_bayes.records.wire.scores import NOT_SCORED, RECORDED_METRICS

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RecordedJudge", "evidence_from_table"]

_NO_RUBRIC = "none"
_MISSING = Unscored("no score in the table")


@dataclass(frozen=True)
class RecordedJudge:
    """Takes the scores recorded in the conversations.

    Notes
    -----
    A turn's own ``recorded_score`` counts. If there is only one turn, or no turn has a score of its own, the
    conversation's ``recorded_score`` counts for every turn, so the conversation is right if that score reaches the
    threshold. A turn without a score among turns with one is `Unscored`, and so is every turn without any recorded
    score; the reason is the one that the reader of the log gave (``metadata["not_scored"]``), if it gave one.

    Further scores of a log (``metadata["recorded_metrics"]``, name → number in [0, 1] or null) become metrics, so that
    each can be an indicator.
    """

    name = "recorded_judge"
    identity = "recorded-judge/1"

    def grade(self, conversation: Conversation, position: int) -> Grade:
        """Grade one interaction.

        Parameters
        ----------
        conversation, position : Conversation, int
            As for `Grader.grade`.
        """
        own = conversation.conversation[position].recorded_score
        if own is not None:
            return Score(own, "recorded for this turn")
        if any(turn.recorded_score is not None for turn in conversation.conversation):
            return Unscored("no recorded score at this turn, although other turns have one")
        if conversation.recorded_score is None:
            said = (place.metadata.get(NOT_SCORED) for place in (conversation.conversation[position], conversation))
            reason = next((reason for reason in said if isinstance(reason, str) and reason.strip()), None)
            return Unscored("no recorded score" if reason is None else f"no recorded score: {reason}")
        return Score(conversation.recorded_score, "recorded for the conversation")

    def further(self, conversation: Conversation, position: int) -> dict[str, Grade]:
        """Give the further scores of one interaction: those of its conversation.

        Parameters
        ----------
        conversation, position : Conversation, int
            As for `Grader.grade`.

        Returns
        -------
        dict of str to Score or Unscored
            Name → score; a name that evidence uses itself is prefixed with ``recorded``.
        """
        found = conversation.metadata.get(RECORDED_METRICS)
        grades: dict[str, Grade] = {}
        for name, value in found.items() if isinstance(found, dict) else ():
            missing = Unscored(f"no score {short(name)} was recorded")
            grade = Score(value, "recorded for the conversation") if is_share(value) else missing
            grades[f"recorded {name}" if name in RESERVED else name] = grade
        return grades


def evidence_from_table(
    table: pd.DataFrame | str | Path,
    *,
    agent: str = "agent",
    task: str = "task",
    trial: str = "trial",
    score: str = "score",
    correct: str = "correct",
    interaction: str = "interaction",
    qa_id: str = "qa_id",
    session_id: str = "session_id",
    reason: str = "reason",
    unscored_reason: str = "unscored_reason",
    metrics: Sequence[str] = (),
    judge: str = "recorded-table/1",
) -> Evidence:
    """Read a table of scores, one row per attempt or per turn.

    Parameters
    ----------
    table : pandas.DataFrame or path
        CSV, TSV, JSONL or Parquet; CSV, TSV and JSONL may be gzipped.
    agent, task, trial : str
        Column names; a dotted name reaches into nested columns. Without an ``agent`` column there is one agent, named
        ``agent``. Trials are integers ≥ 0; without
        a ``trial`` column every row is trial 0, and no (agent, task) may occur twice.
    score, correct : str
        Column names. ``score`` holds numbers in [0, 1], ``correct`` 0/1, booleans or "true"/"false"; blank means
        unscored. If the table has both, ``score`` is read, unless you name only ``correct``.
    interaction, qa_id, session_id, reason : str
        Names of optional columns. Without ``interaction`` a row is a whole attempt; turns are numbered from 0.
        ``qa_id`` defaults to the task or, for turns, "task/turn"; ``session_id`` to "task/trial".
    unscored_reason : str
        Name of an optional column with the reason why a row has no score. A reason that begins with ``agent error:``
        means that the agent crashed.
    metrics : sequence of str
        Columns of further scores in [0, 1], each kept as a metric of that name.
    judge : str
        The identity of the judge, kept with every row.

    Returns
    -------
    Evidence
        Without tool verdicts. Other columns of the table are ignored.

    Raises
    ------
    EvidenceError
        If a column is missing or has invalid values; the message lists all problems, each with its line in the file
        (or its row).
    InvalidArgument
        If an argument is outside what is allowed.

    Examples
    --------
    >>> import pandas as pd
    >>> evidence_from_table(pd.DataFrame({"task": ["a", "b"], "score": [0.9, None]}))
    Evidence: 2 interactions (1 scored, 1 unscored) of 2 conversations, 1 agent
    """
    if not isinstance(judge, str) or not judge.strip():
        raise InvalidArgument(f"judge must be text that is not blank, got {short(judge)}")
    names = _metric_names(metrics)
    whole = tables.read_whole(table, error=EvidenceError)
    value = _score_column(whole, score, correct)
    optional = ("agent", "trial", "interaction", "qa_id", "session_id", "reason", "unscored_reason")
    given = (agent, trial, interaction, qa_id, session_id, reason, unscored_reason)
    named = [name for default, name in zip(optional, given, strict=True) if name != default]
    hint = 'Name the columns: task="…", score="…" or correct="…"'
    asked = dict.fromkeys([task, value, *given, *names])
    nested = {name: whole.cells(name) for name in asked if name not in whole.columns and whole.holds(name)}
    columns = {**whole.columns, **nested}
    tables.require_columns(whole.source, columns, [task, value, *named, *names], hint=hint, error=EvidenceError)
    problems: list[str] = []
    reader = _ColumnReader(columns, problems, whole.place)
    size = len(columns[task])
    agents = tables.labels(columns.get(agent, ["agent"] * size), agent, problems, whole.place)
    tasks = tables.labels(columns[task], task, problems, whole.place)
    trials = tables.whole_numbers(columns, trial, size, problems, whole.place)
    turns = tables.whole_numbers(columns, interaction, size, problems, whole.place)
    advice = "" if trial in columns else f" (several attempts of a task need a column {trial!r})"
    places = zip(agents, tasks, trials, turns, strict=True)
    tables.no_repetition(places, lambda place: place_name(place) + advice, problems, whole.place)
    answers = reader.grades(value, reason, unscored_reason, zero_or_one=value == correct and value != score)
    further = {name: reader.grades(name, None, None, zero_or_one=False) for name in names}
    with_turn = [f"{name}/{turn}" for name, turn in zip(tasks, turns, strict=True)]
    questions = reader.texts(qa_id, with_turn if interaction in columns else tasks)
    sessions = reader.texts(session_id, [f"{name}/{number}" for name, number in zip(tasks, trials, strict=True)])
    tables.refuse(whole.source, problems, error=EvidenceError)
    return Evidence(
        tuple(
            EvidenceRow(
                agent=agents[i],
                task=tasks[i],
                trial=trials[i],
                session_id=sessions[i],
                interaction=turns[i],
                qa_id=questions[i],
                **_answer(answers[i]),
                judge=judge.strip(),
                tool_rubric=_NO_RUBRIC,
                metrics={name: grades[i] for name, grades in further.items()},
            )
            for i in range(size)
        )
    )


class _ColumnReader:
    """Reads columns into labels and grades, and collects their problems."""

    def __init__(self, columns: tables.TableColumns, problems: list[str], place: tables.Place) -> None:
        self._columns, self._problems, self._place = columns, problems, place

    def texts(self, column: str, otherwise: Sequence[str]) -> list[str]:
        """The labels of a column; `otherwise` replaces blank cells and a missing column."""
        if column not in self._columns:
            return list(otherwise)
        cells = zip(self._columns[column], otherwise, strict=True)
        filled = [text if tables.is_blank(cell) else cell for cell, text in cells]
        return tables.labels(filled, column, self._problems, self._place)

    def grades(self, column: str, reason: str | None, unscored: str | None, *, zero_or_one: bool) -> list[Grade]:
        """Scores with their reasons."""
        cells = self._columns[column]
        blanks = [None] * len(cells)
        reasons = self._columns.get(reason or "", blanks)
        unscored_reasons = self._columns.get(unscored or "", blanks)
        allowed = "0, 1, true, false or blank" if zero_or_one else "a number in [0, 1] or blank"
        grades: list[Grade] = []
        for i, (cell, text, why_not) in enumerate(zip(cells, reasons, unscored_reasons, strict=True)):
            grade: Grade = _MISSING if tables.is_blank(why_not) else Unscored(str(why_not).strip())
            if not tables.is_blank(cell):
                value = tables.zero_one(cell) if zero_or_one else tables.number(cell)
                if value is None or not 0 <= value <= 1:
                    self._problems.append(f"{self._place(i)}: {column} must be {allowed}, got {short(cell)}")
                elif not tables.is_blank(why_not):
                    self._problems.append(f"{self._place(i)}: {column} and {unscored} must not both be given")
                else:
                    grade = Score(value, "" if tables.is_blank(text) else str(text).strip())
            grades.append(grade)
        return grades


def _metric_names(metrics: Sequence[str]) -> tuple[str, ...]:
    if isinstance(metrics, str) or not all(isinstance(name, str) and name.strip() for name in metrics):
        raise InvalidArgument(f"metrics must be a list of column names, got {short(metrics)}")
    for i, name in enumerate(metrics):
        if name in RESERVED or name in metrics[:i]:
            raise InvalidArgument(f"every metric needs its own name; {name!r} is taken")
    return tuple(metrics)


def _score_column(table: LocalTable, score: str, correct: str) -> str:
    """The column of the scores: the one the user named, else `score` if the table has it, else `correct`."""
    if correct != "correct" and score != "score":
        raise InvalidArgument("give a `score` column or a `correct` column, not both")
    if correct != "correct" or (score == "score" and not table.holds(score) and table.holds(correct)):
        return correct
    return score


def _answer(grade: Grade) -> dict[str, Any]:
    if isinstance(grade, Score):
        return {"answer_score": grade.value, "answer_reason": grade.reason or None}
    return {"unscored_reason": grade.reason}
