"""Were the tools given the right arguments?"""

from __future__ import annotations

from typing import Any, ClassVar

from agentic_bayes.evidence.metrics.replies import ArgumentVerdicts, Calls, Reason, as_text
from agentic_bayes.evidence.metrics.staged import Stage, StagedMetric
from agentic_bayes.evidence.metrics.trace import TraceRecord

__all__ = ["ArgumentCorrectness"]


class ArgumentCorrectness(StagedMetric):
    """Were the tools given the right arguments? Three calls: the tool calls, a yes or no for each, the reason.

    Notes
    -----
    The score is the share of calls with a "yes"; 1 where no call was made. As many verdicts as calls are required: a
    reply with another number is asked for again.
    """

    name = "argument_correctness"
    stages: ClassVar = {
        "extract": Stage("calls", Calls),
        "verdicts": Stage("argument_verdicts", ArgumentVerdicts),
        "reason": Stage("argument_reason", Reason),
    }

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score, reason, and ``user_input`` and ``verdicts``."""
        found = await self.ask("extract", Calls, {"record": record.text}, record)
        calls = len(found.tool_calls)
        if not calls:
            note = "no tool was called: there are no arguments to judge"
            return 1.0, note, {"user_input": found.user_input, "verdicts": [], "note": note}

        def as_many(given: ArgumentVerdicts) -> str | None:
            got = len(given.verdicts)
            return None if got == calls else f"verdicts must be {calls}, one for each call in order, got {got}"

        material = {"user_input": found.user_input, "tool_calls": as_text(found.tool_calls)}
        given = await self.ask("verdicts", ArgumentVerdicts, material, record, check=as_many)
        right = sum(verdict.verdict == "yes" for verdict in given.verdicts)
        wrong = [verdict.reason or "no reason" for verdict in given.verdicts if verdict.verdict == "no"]
        told = await self.ask("reason", Reason, {"right": f"{right} of {calls}", "wrong": as_text(wrong)}, record)
        verdicts = [verdict.model_dump() for verdict in given.verdicts]
        details: dict[str, Any] = {"user_input": found.user_input, "verdicts": verdicts}
        if record.calls is not None and record.calls != calls:
            details["note"] = f"{calls} of {record.calls} recorded calls were judged"
        return right / calls, told.reason, details
