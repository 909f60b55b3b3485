"""Missing trials in gates: where they could change the verdict there is none, and every form of the result says so."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from fits import counts, rows
from typer.testing import CliRunner

from agentic_bayes.cli.app import app
from agentic_bayes.decisions.compare import compare
from agentic_bayes.decisions.gate import gate
from agentic_bayes.decisions.missing import as_if
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.outcomes.dataset import check_outcomes, combine_outcomes
from agentic_bayes.outcomes.missing import counted_as
from agentic_bayes.outcomes.table import outcomes_from_table
from agentic_bayes.reports.junit import junit_xml

HALF_CRASHED = Path(__file__).with_name("half_crashed.csv")  # 30 tasks × 10: 150 passed, 150 crashed


@pytest.fixture(scope="module")
def half_crashed():
    """What is left when every other trial of an agent crashed and all others passed."""
    return estimate(outcomes_from_table(HALF_CRASHED))


class TestHalfCrashed:
    """An agent that passes whenever it does not crash."""

    def test_it_is_inconclusive(self, half_crashed):
        """The probability alone would pass; with the crashed trials counted as failed it fails."""
        found = gate(half_crashed, at_least=0.7)
        assert found.probability > 0.95
        assert found.verdict == "inconclusive"
        assert "150 of 300 trials errored" in str(found)
        assert found.to_dict()["trials"] == {"scored": 150, "unscored": 150, "errored": 150}
        assert "150 of 300 trials errored" in found.to_dict()["sentence"]
        failed, passed = found.if_missing
        assert (failed.verdict, passed.verdict) == ("fail", "pass")

    def test_the_two_sides_are_fits_of_these_counts(self, half_crashed):
        """Exactly the gates that the filled-in counts give."""
        outcomes = check_outcomes(outcomes_from_table(HALF_CRASHED))
        sides = gate(half_crashed, at_least=0.7).if_missing
        for side, how in zip(sides, ("failed", "passed"), strict=True):
            other = gate(estimate(counted_as(outcomes, **{how: "A"})), at_least=0.7)
            assert (side.probability, side.mean, side.verdict) == (other.probability, other.mean, other.verdict)

    def test_junit_holds_the_counts(self, half_crashed):
        """In the message and as properties."""
        (case,) = ElementTree.fromstring(junit_xml(gate(half_crashed, at_least=0.7))).iter("testcase")
        failure = case.find("failure")
        assert failure.get("type") == "inconclusive"
        assert "150 of 300 trials errored" in failure.get("message")
        numbers = {one.get("name"): one.get("value") for one in case.iter("property")}
        assert numbers == {"trials_scored": "150", "trials_unscored": "150", "trials_errored": "150"}

    def test_a_bar_that_they_cannot_change(self, half_crashed):
        """Below .4 it passes even with all of them failed, above .9999 it fails even with all passed."""
        assert gate(half_crashed, at_least=0.4).verdict == "pass"
        assert gate(half_crashed, at_least=0.9999).verdict == "fail"
        assert gate(half_crashed, at_least=0.7, max_missing=0.5).verdict == "pass"

    def test_errors_as_failures_settle_it(self):
        """Then half of 300 trials passed."""
        found = gate(estimate(outcomes_from_table(HALF_CRASHED, errors="fail")), at_least=0.7)
        assert found.verdict == "fail"
        assert found.trials.to_dict() == {"scored": 300, "unscored": 0, "errored": 0}

    def test_bounds_are_shown_whatever_the_verdict(self):
        """With errors="bounds" both sides are in the sentence."""
        found = gate(estimate(outcomes_from_table(HALF_CRASHED, errors="bounds")), at_least=0.4)
        assert found.verdict == "pass"
        assert [side.mean for side in found.if_missing] == pytest.approx([0.5, 0.983], abs=0.01)
        assert "errored trials" in str(found) or "150 of 300" in str(found)
        assert "counted as failed the gate passes" in str(found)

    def test_the_command(self, tmp_path):
        """Exit code 11, and 10 with --errors fail."""
        run = CliRunner().invoke
        asked = ["gate", str(HALF_CRASHED), "--at-least", "0.7", "--to", "json"]
        first = run(app, [*asked, "--junit", str(tmp_path / "gate.xml")])
        assert first.exit_code == 11
        assert json.loads(first.stdout)["trials"]["errored"] == 150
        assert "150 of 300 trials errored" in (tmp_path / "gate.xml").read_text("utf-8")
        assert run(app, [*asked, "--errors", "fail"]).exit_code == 10


def test_the_baselines_missing_trials_count_too():
    """An agent that beats a baseline whose trials crashed does not, were these all passed."""
    tasks = 20
    est = estimate(counts({"v1": [(1, 2, 2)] * tasks, "v2": [(3, 4)] * tasks}), "hierarchical")
    found = gate(est, "v2", at_least=0.3, baseline="v1")
    bar, drop = found.requirements
    assert (bar.verdict, drop.verdict, found.verdict) == ("pass", "inconclusive", "inconclusive")
    assert found.baseline_trials.unscored == 2 * tasks
    assert "40 of 80 trials unscored (v1)" in str(found)
    assert "with missing trials of v2 counted as failed and those of v1 as passed the gate is inconc" in str(found)
    assert "they share 20 tasks, which hierarchical does not pair" in found.note


def third_crashed():
    """v2 passes more often, and a third of its trials crashed."""
    table = counts({"v1": [(2, 4)] * 20, "v2": [(3, 4, 2)] * 20}, errors="bounds")
    return estimate(table.assign(errored=table["unscored"]), k=1)


class TestABandInComparisons:
    """Outcomes counted with errors="bounds" show what a difference comes to if errored trials failed or passed."""

    def test_it_is_the_comparison_of_the_filled_in_counts(self):
        """v2's errored trials failed, then passed; the verdict itself takes them as missing."""
        found = compare(third_crashed(), "v2", baseline="v1")
        assert found.verdict == "better"
        assert [one.assumed for one in found.if_errored] == ["failed", "passed"]
        for one, successes in zip(found.if_errored, (3, 5), strict=True):
            again = compare(
                estimate(counts({"v1": [(2, 4)] * 20, "v2": [(successes, 6)] * 20}), k=1), "v2", baseline="v1"
            )
            assert (one.verdict, one.mean, one.lower, one.upper) == (
                again.verdict,
                again.mean,
                again.lower,
                again.upper,
            )
        assert "with errored trials of v2 counted as failed and those of v1 as passed: " in str(found)
        assert found.to_dict()["if_errored"][0]["assumed"] == "failed"

    def test_against_a_fixed_value(self):
        """The same of an agent against a value."""
        low, high = compare(third_crashed(), "v2", baseline=0.6).if_errored
        assert low.mean == pytest.approx(-0.1, abs=0.02)
        assert high.mean > 0.2

    def test_errored_trials_of_a_third_agent_stay_missing(self):
        """Only trials of those compared are filled in, and where they have none nothing is."""
        table = counts({"v1": [(2, 4)] * 8, "v2": [(3, 4, 2)] * 8, "v3": [(1, 4, 1)] * 8}, errors="bounds")
        est = estimate(table.assign(errored=table["unscored"]), "hierarchical", k=1)
        for baseline in ("v1", 0.6):
            low, high = compare(est, "v2", baseline=baseline).if_errored
            assert high.mean - low.mean > 0.2
        assert compare(est, "v1", baseline=0.6).if_errored == ()

    def test_without_bounds_there_is_none(self):
        """Errored trials that are counted as unscored leave the sentence as it is."""
        est = estimate(third_crashed().outcomes.assign_attrs(errors="unscored"), k=1)
        assert compare(est, "v2", baseline="v1").if_errored == ()


def test_few_missing_trials_are_shown_and_change_nothing():
    """1 of 101 is below 2 %: no second fit, but the sentence counts it."""
    est = estimate(counts({"v1": [(9, 10)] * 9 + [(9, 10, 1)]}))
    found = gate(est, at_least=0.7)
    assert (found.verdict, found.if_missing) == ("pass", ())
    assert "1 of 101 trials unscored" in str(found)


def test_what_missing_trials_are_taken_for_is_no_verdict_of_a_judge():
    """Through a judge that guesses nothing is known but what is assumed: as many trials, failed or passed."""
    tasks = 10
    est = estimate(counts({"v1": [(2, 4, 4)] * tasks}), judge_labels={"sensitivity": 0.5, "specificity": 0.5})
    for filled, passed in ((as_if(est, failed="v1"), 0), (as_if(est, passed="v1"), 4)):
        plain = estimate(counts({"v1": [(passed, 4)] * tasks}), Hierarchical(pool_agents=False))
        for name in ("mean", "lower", "upper"):
            found, wanted = (
                rows(one.summary(), estimand="population", metric="pass^1")[name] for one in (filled, plain)
            )
            assert found.item() == pytest.approx(wanted.item(), abs=2e-3)


@pytest.mark.parametrize("combined", [False, True])
def test_crashes_that_count_as_failures_are_no_verdicts_of_a_judge(combined):
    """Through a judge that guesses nothing is known but the crashes, also of combined outcomes."""
    rows_of_task = [{"correct": 1}, {"correct": 0}, *[{"error": "boom"}] * 4]
    table = [{"agent": agent, "task": task, **row} for agent in "ab" for task in range(10) for row in rows_of_task]
    parts = [
        outcomes_from_table([row for row in table if row["agent"] in names], errors="fail")
        for names in (("a", "b") if combined else ("ab",))
    ]
    guesses = {"sensitivity": 0.5, "specificity": 0.5}
    est = estimate(combine_outcomes(*parts), "hierarchical", judge_labels=guesses)
    plain = estimate(counts({"a": [(0, 4)] * 10, "b": [(0, 4)] * 10}), Hierarchical(pool_agents=False))
    found, wanted = (rows(one.summary(), estimand="population", metric="pass^1") for one in (est, plain))
    assert found["mean"].tolist() == pytest.approx(wanted["mean"].tolist(), abs=2e-3)
