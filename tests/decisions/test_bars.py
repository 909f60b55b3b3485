"""Bars that a run must reach: how they are written, and when they are decided."""

import pytest

from agentic_bayes.decisions.bars import GateBar, rule_on_pass_rate
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.formatting import Metric


def test_a_gate_in_one_word():
    """Metric, bar and confidence; anything else is refused with the form."""
    assert GateBar.parse("pass^3>=0.7@0.9") == GateBar(Metric("pass^3"), 0.7, 0.9)
    assert GateBar.parse("pass@1 >= .5") == GateBar(Metric("pass@1"), 0.5, 0.95)
    for text in ("pass^3", "pass^3>=x", "pass^3>=0.7@", "0.7"):
        with pytest.raises(InvalidArgument, match=r'a gate must be like "pass|unknown|metric'):
            GateBar.parse(text)


def test_a_rate_just_below_the_bar_does_not_look_like_it():
    """8,999 of 10,000 are not .9."""
    assert rule_on_pass_rate(8999, 1001, 0, 0.9).sentence == "pass rate 0.8999 below 0.9"


@pytest.mark.parametrize(
    ("passed", "failed", "pending", "at_least", "verdict"),
    [
        (9, 1, 0, 0.9, "pass"),
        (9, 1, 0, 0.91, "fail"),
        (3, 6, 6, 0.7, "fail"),
        (3, 6, 6, 0.5, "inconclusive"),
        (3, 6, 6, 0.2, "pass"),
        (0, 0, 5, 0.0, "inconclusive"),
    ],
)
def test_a_pass_rate_is_decided_only_if_pending_trials_cannot_change_it(passed, failed, pending, at_least, verdict):
    """A bar is reached or missed only if that holds whether all pending trials pass or fail."""
    assert rule_on_pass_rate(passed, failed, pending, at_least).verdict == verdict


@pytest.mark.parametrize(
    ("missing", "errored", "verdict"), [(1, 0, "pass"), (1, 1, "pass"), (3, 3, "inconclusive"), (3, 1, "inconclusive")]
)
def test_a_few_missing_trials_are_let_pass_as_by_a_gate(missing, errored, verdict):
    """90 of 100 reach .9; one missing trial (1 %) is not asked about, three (3 %) could change it, and it says so."""
    ruling = rule_on_pass_rate(90, 10, missing, 0.9, errored=errored)
    assert ruling.verdict == verdict
    assert str(missing) in ruling.sentence
    assert ("errored" in ruling.sentence) == (errored > 0)
