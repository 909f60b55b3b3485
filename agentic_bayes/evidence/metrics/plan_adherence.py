"""Did the agent keep to its plan?"""

from __future__ import annotations

from typing import Any, ClassVar

from agentic_bayes.evidence.metrics.planning import NO_PLAN, PlannedMetric
from agentic_bayes.evidence.metrics.replies import Plan, ScoreAndReason, Task, as_text
from agentic_bayes.evidence.metrics.staged import Stage
from agentic_bayes.evidence.metrics.trace import TraceRecord

__all__ = ["PlanAdherence"]


class PlanAdherence(PlannedMetric):
    """Did the agent keep to its plan? Three calls: task, plan, score. 1 where the record shows no plan."""

    name = "plan_adherence"
    stages: ClassVar = {
        "task": Stage("task", Task),
        "plan": Stage("plan", Plan),
        "score": Stage("plan_adherence", ScoreAndReason),
    }

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score, reason, and ``task`` and ``plan``."""
        task, plan = await self.task_and_plan(record)
        if not plan:
            return 1.0, NO_PLAN, {"task": task, "plan": [], "note": NO_PLAN}
        material = {"task": task, "plan": as_text(plan), "record": record.text}
        given = await self.ask("score", ScoreAndReason, material, record)
        return given.score, given.reason, {"task": task, "plan": plan}
