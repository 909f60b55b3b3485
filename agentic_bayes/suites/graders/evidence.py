"""Grade with this package's own scores: the reference judge, the tool rubric, any trace metric."""

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
from agentic_bayes.evidence.tools.diagnostics import tool_failures
from agentic_bayes.evidence.tools.rubric import ToolRubric
from agentic_bayes.records.base import Probability, Record, problems_of
from agentic_bayes.suites.graders import rules
from agentic_bayes.suites.trial import AgentReply, SuiteTask, TrialAttempt


class ReferenceSettings(Record):
    """How `ReferenceJudge` decides."""

    threshold: Probability | None = None  # minimum score to pass; default: the suite's ``pass_threshold``


@dataclass(frozen=True, slots=True)
class ReferenceGrader:
    """Compares the last answer with ``expected.text`` by the offline `ReferenceJudge`."""

    settings: ReferenceSettings
    context: rules.GraderContext

    def check(self, task: SuiteTask) -> str | None:
        """Require ``expected.text``."""
        return rules.needs_text(task, allow_blank=False)

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """Judge the last answer."""
        conversation = rules.as_conversation(attempt, reply)
        grade = ReferenceJudge().grade(conversation, len(conversation.conversation) - 1)
        return rules.graded_at(grade, self.context.threshold(self.settings.threshold))


@dataclass(frozen=True, slots=True)
class ToolRubricGrader:
    """Compares all tool calls of a trial with ``expected.tools`` by a `ToolRubric`, whose own threshold decides."""

    rubric: ToolRubric

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ToolRubricGrader:
        """Make the grader from a rubric's settings."""
        known = [field.name for field in fields(ToolRubric)]
        for name in config:
            if name not in known:
                raise InvalidArgument(f"unknown key {name!r}: {did_you_mean(name, known)}")
        return cls(ToolRubric(**config))

    def check(self, task: SuiteTask) -> str | None:
        """Require ``expected.tools``."""
        try:
            expected = rules.expected_tools(task)
        except ValidationError as error:
            return "; ".join(map(str, problems_of(error, source="expected.tools", where="")))
        except InvalidArgument as error:
            return str(error)
        return "expected.tools must be given: a list of calls, or an object" if expected is None else None

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """Score the calls by the rubric."""
        verdict = self.rubric.verdict(rules.as_interaction(attempt, reply))
        if verdict is None or isinstance(verdict, Unscored):
            return verdict or Unscored("no calls are expected of this task")
        score = verdict.score
        kinds = tool_failures(verdict.tools, score.result_utilization)
        return rules.graded(score.overall_correctness, score.is_correct, score.reasoning or "", *kinds)


@dataclass(frozen=True)
class TraceMetricGrader:
    """Scores with a trace metric, by its name: the mean over a task's messages, and unscored if one of them is."""

    metric: Grader
    threshold: float  # minimum score to pass

    @classmethod
    def of(cls, name: str, config: Mapping[str, Any], context: rules.GraderContext) -> TraceMetricGrader:
        """Make the grader from the metric's options and a ``threshold`` (default: the suite's ``pass_threshold``)."""
        options = dict(config)
        threshold = check_probability(options.pop("threshold", context.pass_threshold), "threshold")
        if "name" in options:
            raise InvalidArgument("unknown key 'name': the type of the grader is the name of the metric")
        try:
            return cls(make_metric(name, **options), threshold)
        except InvalidArgument:
            raise
        except Exception as error:  # a metric of another package may raise anything
            raise InvalidArgument(f"cannot be made: {type(error).__name__}: {error}") from error

    def ready(self) -> None:
        """Make the metric's model, if it has one; raises if that fails."""
        _ = self.metric.identity  # names the model, which is made for it

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """Score every message by the metric."""
        conversation = rules.as_conversation(attempt, reply)
        turns = len(conversation.conversation)
        scores: list[Score] = []
        for position in range(turns):
            result = self.metric.grade(conversation, position)
            grade = await result if inspect.isawaitable(result) else result
            if isinstance(grade, Unscored):
                return grade if turns == 1 else Unscored(f"message {position + 1}: {grade.reason}")
            scores.append(grade)
        if turns == 1:
            return rules.graded_at(scores[0], self.threshold)
        values = ", ".join(f"{score.value:.3g}" for score in scores)
        lowest = min(scores, key=lambda score: score.value)
        mean = sum(score.value for score in scores) / turns
        mean_score = Score(mean, f"mean of {values}; lowest: {lowest.reason}", lowest.details)
        return rules.graded_at(mean_score, self.threshold)
