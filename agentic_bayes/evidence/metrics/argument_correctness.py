"""Argument correctness metric: did the agent give its tools the right arguments?"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from agentic_bayes.evidence.metrics.replies import NonBlankText, as_text
from agentic_bayes.evidence.metrics.staged import Stage, StagedMetric, StageReply
from agentic_bayes.evidence.metrics.trace import TraceRecord


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


# the docstrings of replies within replies are part of the schema that a model is shown: changing one changes its cache


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
    as there are calls, and is asked again if it does not.
    """

    name = "argument_correctness"
    stages: ClassVar = {
        "extract": Stage("calls", CallsReply),
        "verdicts": Stage("argument_verdicts", ArgumentVerdictsReply),
        "reason": Stage("argument_reason", ReasonReply),
    }

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score, reason, and ``user_input`` and ``verdicts``."""
        extracted = await self.ask("extract", CallsReply, {"record": record.text}, record)
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
        details: dict[str, Any] = {
            "user_input": extracted.user_input,
            "verdicts": [verdict.model_dump() for verdict in verdicts],
        }
        if record.calls is not None and record.calls != calls:
            details["note"] = f"{calls} of {record.calls} recorded calls were judged"
        return right / calls, reason, details
