"""Was the plan good?"""

from __future__ import annotations

from typing import Any, ClassVar

from agentic_bayes.evidence.metrics.planning import NO_PLAN, PlannedMetric
from agentic_bayes.evidence.metrics.replies import Plan, ScoreAndReason, Task, as_text
from agentic_bayes.evidence.metrics.staged import Stage
from agentic_bayes.evidence.metrics.trace import TraceRecord

__all__ = ["PlanQuality"]


class PlanQuality(PlannedMetric):
    """Was the plan good? Three calls: task, plan, score. 1 where the record shows no plan."""

    name = "plan_quality"
    stages: ClassVar = {
        "task": Stage("task", Task),
        "plan": Stage("plan", Plan),
        "score": Stage("plan_quality", ScoreAndReason),
    }

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score, reason, and ``task`` and ``plan``."""
        task, plan = await self.task_and_plan(record)
        if not plan:
            return 1.0, NO_PLAN, {"task": task, "plan": [], "note": NO_PLAN}
        given = await self.ask("score", ScoreAndReason, {"task": task, "plan": as_text(plan)}, record)
        return given.score, given.reason, {"task": task, "plan": plan}
