"""Grades one interaction with all graders of a run, in this process or in another."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from agentic_bayes.errors import described
from agentic_bayes.evidence.ledger import ToolGrade, TurnGrades
from agentic_bayes.evidence.recorded import RecordedJudge
from agentic_bayes.evidence.row import AGENT_ERROR, kept_grade
from agentic_bayes.evidence.score import Grade, Grader, Score, Unscored
from agentic_bayes.evidence.tools.rubric import ToolRubric
from agentic_bayes.executors import awaited
from agentic_bayes.records.base import short
from agentic_bayes.records.model import Conversation

SentGrades = tuple[Grade | None, ToolGrade, dict[str, Grade]]  # the grades of one interaction, on their way back


@dataclass(frozen=True)
class Graders:
    """The graders of a run."""

    judge: Grader
    tool_rubric: ToolRubric
    metrics: tuple[Grader, ...]

    async def grade(self, conversation: Conversation, position: int, turn: TurnGrades) -> None:
        """Grade one interaction; each grade is in `turn` before the next grader is asked."""
        crash = conversation.error_at(position)
        if crash is not None:
            crashed = Unscored(f"{AGENT_ERROR}{crash}")
            turn.answer, turn.tools = crashed, crashed if turn.has_expectations else None
            turn.metrics = {metric.name: crashed for metric in self.metrics}
            return
        try:
            turn.tools = self.tool_rubric.verdict(conversation.conversation[position])
        except Exception as error:
            turn.tools = failed(error)
        turn.answer = await _ask(self.judge, conversation, position)
        if isinstance(self.judge, RecordedJudge):
            turn.metrics |= self.judge.further(conversation, position)
        for metric in self.metrics:
            turn.metrics[metric.name] = await _ask(metric, conversation, position)

    def grade_elsewhere(self, part: Sequence[tuple[Conversation, int]]) -> list[SentGrades]:
        """In a worker process: the grades of some interactions, with details in JSON's types, which can travel."""

        async def all_of_them() -> list[SentGrades]:
            grades: list[SentGrades] = []
            for conversation, position in part:
                asked = conversation.conversation[position]
                turn = TurnGrades(asked.qa_id, asked.ground_truth_agentic is not None)
                await self.grade(conversation, position, turn)
                answer = None if turn.answer is None else kept_grade(turn.answer)
                metrics = {name: kept_grade(grade) for name, grade in turn.metrics.items()}
                grades.append((answer, turn.tools, metrics))
            return grades

        return awaited(all_of_them())


async def _ask(grader: Grader, conversation: Conversation, position: int) -> Grade:
    """The grader's grade, or `Unscored` with the reason."""
    try:
        grade: object = grader.grade(conversation, position)
        if inspect.isawaitable(grade):
            grade = await grade
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise  # the run is cancelled
        return failed(error)  # the grader's own call was
    except Exception as error:
        return failed(error)
    if isinstance(grade, Unscored) and grade.reason.startswith(AGENT_ERROR):
        return Unscored(f"judge: {grade.reason}")  # only a crashed agent has the bare prefix
    if isinstance(grade, Score):
        # the score was paid for: an odd reason must not lose it
        reason, details = cast("object", grade.reason), cast("object", grade.details)
        text = reason if isinstance(reason, str) else str(reason or "")
        return Score(grade.value, text, details if isinstance(details, Mapping) else {})
    if not isinstance(grade, Unscored):
        return Unscored(f"{grader.name} must give a Score or Unscored, got {short(grade)}")
    return grade


def failed(error: BaseException) -> Unscored:
    """No grade, because of an error."""
    return Unscored(described(error))
