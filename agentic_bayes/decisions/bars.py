"""Bars that a run of a suite must reach: a pass rate, or a gate written as "pass^3>=0.7@0.95"."""

from __future__ import annotations

import math
from dataclasses import dataclass

from agentic_bayes.checks import check_probability
from agentic_bayes.decisions.gate import GateVerdict, gate
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.formatting import Metric, plural


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict, and the sentence that says why."""

    verdict: GateVerdict
    sentence: str


@dataclass(frozen=True, slots=True)
class GateBar:
    """What a gate asks of a run."""

    metric: Metric
    at_least: float
    confidence: float

    @classmethod
    def parse(cls, text: str) -> GateBar:
        """Read "pass^3>=0.7@0.95"; without the last part the confidence is 0.95."""
        metric, sign, rest = text.partition(">=")
        bar, at, required = rest.partition("@")
        try:
            at_least, confidence = float(bar), float(required) if at else 0.95
        except ValueError:
            at_least = confidence = math.nan
        if not sign or math.isnan(at_least) or math.isnan(confidence):
            raise InvalidArgument(f'a gate must be like "pass^3>=0.7@0.95", got {text!r}')
        if not 0 < confidence < 1:
            raise InvalidArgument(f"the gate's confidence must lie strictly between 0 and 1, got {confidence:g}")
        return cls(Metric(metric), check_probability(at_least, "the gate's bar"), confidence)

    def rule(self, est: Estimate) -> Ruling:
        """Whether an estimate of one agent passes."""
        answer = gate(est, at_least=self.at_least, metric=self.metric, confidence=self.confidence)
        return Ruling(answer.verdict, str(answer))


def rule_on_pass_rate(passed: int, failed: int, pending: int, at_least: float) -> Ruling:
    """Whether the pass rate reaches a bar whatever the pending trials come to."""
    if not passed + failed:
        return Ruling("inconclusive", "undecided: no trial has a verdict")
    lowest, highest = (count / (passed + failed + pending) for count in (passed, passed + pending))
    waiting = f", with {plural(pending, 'trial')} without a verdict" if pending else ""
    if lowest >= at_least:
        return Ruling("pass", f"pass rate ≥ {at_least:g}{waiting}")
    if highest < at_least:
        return Ruling("fail", f"pass rate below {at_least:g}{waiting}")
    return Ruling("inconclusive", f"pass rate may or may not reach {at_least:g}{waiting}")
