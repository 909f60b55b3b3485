"""Plan metrics: was the plan good, and did the agent keep to it?"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator

from agentic_bayes.evidence.metrics.replies import ScoreReply, TaskReply, as_text
from agentic_bayes.evidence.metrics.staged import Stage, StagedMetric, StageReply
from agentic_bayes.evidence.metrics.trace import TraceRecord

NO_PLAN = "the record shows no plan, so there is nothing to hold against the agent"


def _without_blanks(steps: list[str]) -> list[str]:
    return [step for step in steps if step.strip()]


class PlanReply(StageReply):
    """The steps that the agent planned."""

    plan: Annotated[list[str], AfterValidator(_without_blanks)]


def _plan_stages(score_prompt: str) -> dict[str, Stage]:
    return {
        "task": Stage("task", TaskReply),
        "plan": Stage("plan", PlanReply),
        "score": Stage(score_prompt, ScoreReply),
    }


class PlanQuality(StagedMetric):
    """Was the plan good? Three calls: task, plan, score. 1 where the record shows no plan."""

    name = "plan_quality"
    stages: ClassVar = _plan_stages(name)

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
    stages: ClassVar = _plan_stages(name)

    def scored_on(self, task: str, plan: list[str], record: TraceRecord) -> dict[str, str]:
        """What the score is based on: the task, the plan and the whole record."""
        return {**super().scored_on(task, plan, record), "record": record.text}
