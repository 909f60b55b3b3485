"""The ledger of a run: holds every grade of every interaction as soon as it is made."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentic_bayes.errors import RecordsError
from agentic_bayes.evidence.row import AGENT_ERROR, EvidenceRow, kept_metadata
from agentic_bayes.evidence.score import Grade, Score, Unscored
from agentic_bayes.evidence.tools.rubric import ToolVerdict
from agentic_bayes.records.identity import Identity, TaskIndex, task_label
from agentic_bayes.records.model import Conversation

ToolGrade = ToolVerdict | Unscored | None


@dataclass(slots=True)
class TurnGrades:
    """The grades of one interaction so far; None for those not made yet."""

    qa_id: str
    has_expectations: bool
    answer: Grade | None = None
    tools: ToolGrade = None
    metrics: dict[str, Grade] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _LedgerEntry:
    """What the ledger keeps about a conversation."""

    agent: str
    session: str
    task: str
    turns: tuple[TurnGrades, ...]
    metadata: dict[str, Any]


class Ledger:
    """Collects conversations and their grades, in any order, and turns them into rows of evidence."""

    def __init__(self) -> None:
        self._index = TaskIndex()
        self._entries: list[_LedgerEntry] = []
        self._resolved: list[Identity] | RecordsError | None = None

    def add(self, conversation: Conversation) -> tuple[TurnGrades, ...]:
        """Add a conversation; the grades of its interactions belong into the objects returned."""
        turns = tuple(TurnGrades(t.qa_id, t.ground_truth_agentic is not None) for t in conversation.conversation)
        task = conversation.task_id or task_label(conversation.qa_ids)
        self._index.add(conversation)
        self._resolved = None
        kept = kept_metadata(conversation.metadata)
        self._entries.append(_LedgerEntry(conversation.assistant_id, conversation.session_id, task, turns, kept))
        return turns

    def misfit(self) -> RecordsError | None:
        """The error with which the conversations contradict each other, or None."""
        identities = self._identities()
        return identities if isinstance(identities, RecordsError) else None

    def _identities(self) -> list[Identity] | RecordsError:
        """Task and trial of every conversation, or the error with which they contradict each other; computed once."""
        if self._resolved is None:
            try:
                self._resolved = list(self._index.resolve())
            except RecordsError as error:
                self._resolved = error
        return self._resolved

    def rows(
        self, *, judge: str, tool_rubric: str, metrics: Mapping[str, str], missing: Unscored
    ) -> tuple[EvidenceRow, ...]:
        """One row per interaction, once; `metrics` are those asked for, and recorded ones come with the judge."""
        recorded = {name for entry in self._entries for turn in entry.turns for name in turn.metrics} - metrics.keys()
        metrics = {**metrics, **dict.fromkeys(sorted(recorded), judge)}
        identities = self._identities()
        if isinstance(identities, RecordsError):
            identities = self._provisional()
        return tuple(
            EvidenceRow(
                agent=entry.agent,
                task=identity.task,
                trial=identity.trial,
                session_id=entry.session,
                interaction=position,
                qa_id=turn.qa_id,
                **_answer_fields(turn.answer or missing),
                **_tool_fields(turn.tools or (missing if turn.has_expectations else None)),
                judge=judge,
                tool_rubric=tool_rubric,
                metrics={name: _metric(turn, name, missing, recorded) for name in metrics},
                graders=metrics,
                metadata={} if position else entry.metadata,
            )
            for entry, identity in zip(self._let_go(), identities, strict=True)
            for position, turn in enumerate(entry.turns)
        )

    def _let_go(self) -> Iterator[_LedgerEntry]:
        """The entries; each is freed as soon as it has become rows, so memory never holds all grades and all rows."""
        self._entries.reverse()
        while self._entries:
            yield self._entries.pop()

    def _provisional(self) -> list[Identity]:
        """Provisional identities: a task is its task_id or qa_ids, and trials are numbered in order of arrival."""
        trials: defaultdict[tuple[str, str], Iterator[int]] = defaultdict(itertools.count)
        return [Identity(entry.task, next(trials[entry.agent, entry.task])) for entry in self._entries]


def _metric(turn: TurnGrades, name: str, missing: Unscored, recorded: set[str]) -> Grade:
    """The grade of a metric; a score that this record lacks is missing for a reason of its own."""
    if name in turn.metrics or name not in recorded or turn.answer is None:
        return turn.metrics.get(name, missing)
    crashed = isinstance(turn.answer, Unscored) and turn.answer.reason.startswith(AGENT_ERROR)
    return turn.answer if crashed else Unscored(f"no score {name!r} was recorded")


def _answer_fields(grade: Grade) -> dict[str, Any]:
    if isinstance(grade, Score):
        return {"answer_score": grade.value, "answer_reason": grade.reason, "answer_details": grade.details}
    return {"unscored_reason": grade.reason}


def _tool_fields(verdict: ToolGrade) -> dict[str, Any]:
    if verdict is None:
        return {}
    if isinstance(verdict, Unscored):
        return {"tool_reason": verdict.reason}
    score = verdict.score
    measured = not math.isnan(score.result_utilization)
    return {
        "selection": score.tool_selection_correct,
        "parameters": score.parameter_accuracy,
        "sequence": score.sequence_correct,
        "utilization": score.result_utilization if measured else None,
        "tool_overall": score.overall_correctness,
        "tools_correct": score.is_correct,
        "tool_reason": score.reasoning,
        "tool_details": verdict.tools,
    }
