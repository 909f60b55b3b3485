"""What metrics of plans begin with: the task and the plan."""

from __future__ import annotations

from agentic_bayes.evidence.metrics.replies import Plan, Task
from agentic_bayes.evidence.metrics.staged import StagedMetric
from agentic_bayes.evidence.metrics.trace import TraceRecord

__all__ = ["NO_PLAN", "PlannedMetric"]

NO_PLAN = "no plan was found in the record: there is nothing to hold against it"


class PlannedMetric(StagedMetric):
    """A metric that first looks for the task and the plan."""

    async def task_and_plan(self, record: TraceRecord) -> tuple[str, list[str]]:
        """The task, and the steps of the plan; none where the record shows no plan."""
        task = await self.ask("task", Task, {"record": record.text}, record)
        plan = await self.ask("plan", Plan, {"task": task.task, "record": record.text}, record)
        return task.task, plan.plan
