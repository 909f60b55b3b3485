"""Own scores of this package as graders of a suite: the reference judge, the tool rubric, any trace metric."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from pydantic import ValidationError

from agentic_bayes.checks import check_probability
from agentic_bayes.errors import InvalidArgument, did_you_mean
from agentic_bayes.evidence.metrics.registry import make_metric
from agentic_bayes.evidence.reference.judge import ReferenceJudge
from agentic_bayes.evidence.score import Grade, Grader, Score, Unscored
from agentic_bayes.evidence.tools.rubric import ToolRubric
from agentic_bayes.records.base import Record, problems_of
from agentic_bayes.suites.graders.rules import GraderContext, ScoreThreshold, graded, needs_text
from agentic_bayes.suites.trial import AgentReply, SuiteTask, TrialAttempt
from agentic_bayes.suites.trial_records import as_conversation, as_interaction, expected_tools

__all__ = ["ReferenceGrader", "ReferenceSettings", "ToolRubricGrader", "TraceMetricGrader"]

# rounding must not turn a score at the bar into one below it
_ROUNDING = 1e-9


class ReferenceSettings(Record):
    """How `ReferenceJudge` decides."""

    threshold: ScoreThreshold | None = None  # from which score on the grader passes; left out, ``pass_threshold``


@dataclass(frozen=True, slots=True)
class ReferenceGrader:
    """The last answer against ``expected.text``, by the offline `ReferenceJudge`."""

    settings: ReferenceSettings  # the bar
    place: GraderContext  # where

    def check(self, task: SuiteTask) -> str | None:
        """What keeps a task from being graded."""
        return needs_text(task) or (None if str(task.expected["text"]).strip() else "expected.text must not be blank")

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """What the judge says."""
        told = as_conversation(attempt, reply)
        grade = ReferenceJudge().grade(told, len(told.conversation) - 1)
        if isinstance(grade, Unscored):
            return grade
        bar = self.place.pass_threshold if self.settings.threshold is None else self.settings.threshold
        return graded(grade.value, grade.value >= bar - _ROUNDING, grade.reason)


@dataclass(frozen=True, slots=True)
class ToolRubricGrader:
    """All calls of a trial against ``expected.tools``, by a `ToolRubric`; its own threshold decides."""

    rubric: ToolRubric  # the rubric

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ToolRubricGrader:
        """The grader of a rubric's settings."""
        known = [one.name for one in fields(ToolRubric)]
        for name in config:
            if name not in known:
                raise InvalidArgument(f"unknown key {name!r}: {did_you_mean(name, known)}")
        return cls(ToolRubric(**config))

    def check(self, task: SuiteTask) -> str | None:
        """What keeps a task from being graded."""
        try:
            found = expected_tools(task)
        except ValidationError as error:
            return "; ".join(map(str, problems_of(error, source="expected.tools", where="")))
        except InvalidArgument as error:
            return str(error)
        return "expected.tools must be given: a list of calls, or an object" if found is None else None

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """What the rubric says."""
        found = self.rubric.grade(as_interaction(attempt, reply))
        if found is None or isinstance(found, Unscored):
            return found or Unscored("no calls are expected of this task")
        return graded(found.overall_correctness, found.is_correct, found.reasoning or "")


@dataclass(frozen=True)
class TraceMetricGrader:
    """A trace metric by its name.

    Notes
    -----
    A metric scores one interaction. Where a task has several messages, the score is the mean over them, and there is
    none where one of them is unscored.
    """

    metric: Grader  # the metric
    threshold: float  # from which score on the grader passes

    @classmethod
    def of(cls, name: str, config: Mapping[str, Any], place: GraderContext) -> TraceMetricGrader:
        """The grader of a metric's options and a ``threshold``, which is ``pass_threshold`` unless given."""
        options = dict(config)
        threshold = check_probability(options.pop("threshold", place.pass_threshold), "threshold")
        if "name" in options:
            raise InvalidArgument("unknown key 'name': the type of the grader is the name of the metric")
        try:
            return cls(make_metric(name, **options), threshold)
        except InvalidArgument:
            raise
        except Exception as error:  # a metric of another package may raise anything
            raise InvalidArgument(f"cannot be made: {type(error).__name__}: {error}") from error

    def check(self, task: SuiteTask) -> str | None:
        """Nothing of a task is needed."""
        return None

    def ready(self) -> None:
        """Make the metric's model, if it has one; raises where it cannot be made."""
        _ = self.metric.identity  # names the model, which is made for it

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """What the metric says."""
        told = as_conversation(attempt, reply)
        scores: list[Score] = []
        for position in range(len(told.conversation)):
            found = self.metric.grade(told, position)
            grade = await found if inspect.isawaitable(found) else found
            if isinstance(grade, Unscored):
                return grade if len(told.conversation) == 1 else Unscored(f"message {position + 1}: {grade.reason}")
            scores.append(grade)
        value = sum(score.value for score in scores) / len(scores)
        if len(scores) == 1:
            reason = scores[0].reason
        else:
            said = ", ".join(f"{score.value:.3g}" for score in scores)
            lowest = min(scores, key=lambda score: score.value)
            reason = f"mean of {said}; lowest: {lowest.reason}"
        return graded(value, value >= self.threshold - _ROUNDING, reason)
