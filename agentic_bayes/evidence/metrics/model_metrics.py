"""Metrics that ask a model about the record of one interaction, with the replies they ask for.

The docstrings of replies within replies are part of the schema that a model is shown: changing one changes its cache.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from agentic_bayes.evidence.metrics.staged import Stage, StagedMetric, StageReply
from agentic_bayes.evidence.metrics.trace import OFFERED, THOUGHTS, TraceRecord


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


UnitNumber = Annotated[float, Field(ge=0, le=1), AfterValidator(lambda value: value + 0.0)]  # no negative zero
NonBlankText = Annotated[str, AfterValidator(_not_blank)]


class TaskReply(StageReply):
    """What the user wanted."""

    task: NonBlankText


class VerdictReply(StageReply):
    """A verdict that follows from its reason."""

    is_verdict: ClassVar[bool] = True

    reason: str


class ScoreReply(VerdictReply):
    """A verdict in the form of a score."""

    score: UnitNumber


def as_text(value: Any) -> str:
    """A value as material for a later stage."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=1, default=StageReply.model_dump)


class TaskAndOutcomeReply(TaskReply):
    """What the user wanted, and what came of it."""

    outcome: NonBlankText


class CompletionReply(VerdictReply):
    """A verdict on how far the outcome is what the user wanted."""

    verdict: UnitNumber


class TaskCompletion(StagedMetric):
    """Did the agent do what the user asked? Two calls: task and outcome as facts, then one against the other."""

    name = "task_completion"
    stages: ClassVar = {
        "extract": Stage("task_and_outcome", TaskAndOutcomeReply),
        "score": Stage("task_completion", CompletionReply),
    }

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score, reason, and ``task`` and ``outcome``."""
        facts = await self.ask("extract", TaskAndOutcomeReply, {"record": record.text}, record)
        material = {"task": facts.task, "outcome": facts.outcome}
        result = await self.ask("score", CompletionReply, material, record)
        return result.verdict, result.reason, material


class StepEfficiency(StagedMetric):
    """Did the agent take more steps than it needed? Two calls: the task, then the whole record against it."""

    name = "step_efficiency"
    stages: ClassVar = {"extract": Stage("task", TaskReply), "score": Stage("step_efficiency", ScoreReply)}

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score, reason, and ``task``."""
        task = (await self.ask("extract", TaskReply, {"record": record.text}, record)).task
        verdict = await self.ask("score", ScoreReply, {"task": task, "record": record.text}, record)
        return verdict.score, verdict.reason, {"task": task}


class ConfidenceReply(VerdictReply):
    """A verdict in the form of a confidence."""

    confidence: UnitNumber


class Confidence(StagedMetric):
    """Was the agent decisive, to the point and consistent? One call with the whole record."""

    name = "confidence"
    stages: ClassVar = {"score": Stage("confidence", ConfidenceReply)}

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score and reason."""
        verdict = await self.ask("score", ConfidenceReply, {"record": record.text}, record)
        return verdict.confidence, verdict.reason, {}


NO_PLAN = "the record shows no plan, so there is nothing to hold against the agent"


class PlanReply(StageReply):
    """The steps that the agent planned."""

    plan: Annotated[list[str], AfterValidator(lambda steps: [step for step in steps if step.strip()])]


class PlanQuality(StagedMetric):
    """Was the plan good? Three calls: task, plan, score. 1 where the record shows no plan."""

    name = "plan_quality"
    needs: ClassVar = (THOUGHTS,)
    stages: ClassVar = {
        "task": Stage("task", TaskReply),
        "plan": Stage("plan", PlanReply),
        "score": Stage(name, ScoreReply),
    }

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score, reason, and ``task`` and ``plan``."""
        task = (await self.ask("task", TaskReply, {"record": record.text}, record)).task
        plan = (await self.ask("plan", PlanReply, {"task": task, "record": record.text}, record)).plan
        if not plan:
            return 1.0, NO_PLAN, {"task": task, "plan": [], "note": NO_PLAN}
        verdict = await self.ask("score", ScoreReply, self.scored_on(task, plan, record), record)
        return verdict.score, verdict.reason, {"task": task, "plan": plan}

    def scored_on(self, task: str, plan: list[str], record: TraceRecord) -> dict[str, str]:
        """What the score is based on: the task and the plan."""
        return {"task": task, "plan": as_text(plan)}


class PlanAdherence(PlanQuality):
    """Did the agent keep to its plan? Three calls: task, plan, score. 1 where the record shows no plan."""

    name = "plan_adherence"
    stages: ClassVar = {**PlanQuality.stages, "score": Stage(name, ScoreReply)}

    def scored_on(self, task: str, plan: list[str], record: TraceRecord) -> dict[str, str]:
        """What the score is based on: the task, the plan and the whole record."""
        return {**super().scored_on(task, plan, record), "record": record.text}


class ToolCalled(StageReply):
    """One call, for judging the choice of tools."""

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)


class ToolDescribed(StageReply):
    """A tool that the agent could use."""

    name: str
    description: str = ""


class ToolChoiceReply(StageReply):
    """What a judge of the choice of tools needs to know."""

    user_input: NonBlankText
    tools_called: list[ToolCalled]
    available_tools: list[ToolDescribed]


class ToolCorrectness(StagedMetric):
    """Did the agent choose the right tools: none too many, missing or wrong? Two calls; no expectations are needed."""

    name = "tool_correctness"
    needs: ClassVar = (OFFERED,)
    stages: ClassVar = {"extract": Stage("tools", ToolChoiceReply), "score": Stage("tool_correctness", ScoreReply)}

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score, reason, and ``user_input``, ``tools_called`` and ``available_tools``."""
        choice = await self.ask("extract", ToolChoiceReply, {"record": record.text}, record)
        material = {name: as_text(getattr(choice, name)) for name in ToolChoiceReply.model_fields}
        verdict = await self.ask("score", ScoreReply, material, record)
        return verdict.score, verdict.reason, choice.model_dump(mode="json")


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


class CallMade(StageReply):
    """One call, for judging its arguments."""

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    reasoning: str = ""


class CallsReply(StageReply):
    """What a judge of arguments needs to know."""

    user_input: NonBlankText
    tool_calls: list[CallMade]


class ArgumentVerdict(StageReply):
    """Whether the arguments of one call are right."""

    verdict: Annotated[Literal["yes", "no"], BeforeValidator(_lower)]
    reason: str | None = None


class ArgumentVerdictsReply(StageReply):
    """One verdict for every call, in order."""

    is_verdict: ClassVar[bool] = True

    verdicts: list[ArgumentVerdict]


class ReasonReply(StageReply):
    """Why the score is what it is."""

    reason: str


class ArgumentCorrectness(StagedMetric):
    """Did the agent give its tools the right arguments? Three calls: the calls, a yes or no for each, the reason.

    Notes
    -----
    The score is the share of calls with a "yes"; 1 where the agent made no call. The model must give as many verdicts
    as there are calls, and list all recorded ones; it is asked again if it does not, and then the turn is unscored.
    """

    name = "argument_correctness"
    stages: ClassVar = {
        "extract": Stage("calls", CallsReply),
        "verdicts": Stage("argument_verdicts", ArgumentVerdictsReply),
        "reason": Stage("argument_reason", ReasonReply),
    }

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score, reason, and ``user_input`` and ``verdicts``."""

        def none_overlooked(reply: CallsReply) -> str | None:
            recorded = 0 if record.calls is None else min(record.calls, 1) if record.cut else record.calls
            got = len(reply.tool_calls)
            return None if got >= recorded else f"tool_calls must list all {recorded} calls of the record, got {got}"

        extracted = await self.ask("extract", CallsReply, {"record": record.text}, record, check=none_overlooked)
        calls = len(extracted.tool_calls)
        if not calls:
            note = "no tool was called, so there are no arguments to judge"
            return 1.0, note, {"user_input": extracted.user_input, "verdicts": [], "note": note}

        def one_per_call(reply: ArgumentVerdictsReply) -> str | None:
            got = len(reply.verdicts)
            return None if got == calls else f"verdicts must be {calls}, one for each call in order, got {got}"

        material = {"user_input": extracted.user_input, "tool_calls": as_text(extracted.tool_calls)}
        verdicts = (await self.ask("verdicts", ArgumentVerdictsReply, material, record, check=one_per_call)).verdicts
        right = sum(verdict.verdict == "yes" for verdict in verdicts)
        wrong = [verdict.reason or "no reason" for verdict in verdicts if verdict.verdict == "no"]
        summary = {"right": f"{right} of {calls}", "wrong": as_text(wrong)}
        reason = (await self.ask("reason", ReasonReply, summary, record)).reason
        listed = [verdict.model_dump() for verdict in verdicts]
        details: dict[str, Any] = {"user_input": extracted.user_input, "verdicts": listed}
        if record.calls is not None and record.calls != calls:
            details["note"] = f"{calls} of {record.calls} recorded calls were judged"
        return right / calls, reason, details
