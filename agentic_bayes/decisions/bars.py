"""Bars that a run of a suite must reach: a pass rate, or a gate written as "pass^3>=0.7@0.95"."""

from __future__ import annotations

import math
from dataclasses import dataclass

from agentic_bayes.checks import check_probability
from agentic_bayes.decisions.gate import GateVerdict, check_confidence, gate
from agentic_bayes.decisions.missing import MAX_MISSING
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.formatting import Metric, format_number
from agentic_bayes.outcomes.missing import TrialCounts


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
        return cls(Metric(metric), check_probability(at_least, "the gate's bar"), check_confidence(confidence))

    def rule(self, est: Estimate) -> Ruling:
        """Whether an estimate of one agent passes."""
        answer = gate(est, at_least=self.at_least, metric=self.metric, confidence=self.confidence)
        return Ruling(answer.verdict, str(answer))


def rule_on_pass_rate(passed: int, failed: int, missing: int, at_least: float, *, errored: int = 0) -> Ruling:
    """Whether the pass rate of the scored trials reaches a bar, by a gate's rule on missing trials.

    Where more than `MAX_MISSING` of the trials are missing, it is decided only if their being all failed or all passed
    would not change the verdict. `errored` of the `missing` trials crashed.
    """
    trials = TrialCounts(passed + failed, missing, errored)
    if not trials.scored:
        return Ruling("inconclusive", "undecided: no trial has a verdict")
    rate = passed / trials.scored
    lowest, highest = passed / trials.total, (passed + trials.unscored) / trials.total
    reached = {rate >= at_least}
    if trials.share_missing > MAX_MISSING:
        reached |= {lowest >= at_least, highest >= at_least}
    words = f" ({trials.words})" if trials.words else ""
    if len(reached) > 1:
        return Ruling(
            "inconclusive",
            f"inconclusive: pass rate {format_number(rate)} may or may not reach {at_least:g}{words}: between "
            f"{format_number(lowest)} and {format_number(highest)}, were all of these failed or passed",
        )
    verdict: GateVerdict = "pass" if rate >= at_least else "fail"
    word = "≥" if verdict == "pass" else "below"
    digits = next((d for d in range(3, 9) if rate == at_least or round(rate, d) != at_least), 9)
    return Ruling(verdict, f"pass rate {format_number(rate, digits)} {word} {at_least:g}{words}")
