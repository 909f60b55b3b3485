"""What a report says at other thresholds, and of what agents cost: against fits and means made apart from it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hostile_records import HOSTILE, conversations, judged

from agentic_bayes.decisions.compare import compare
from agentic_bayes.decisions.gate import gate
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.evidence.recorded import evidence_from_table
from agentic_bayes.formatting import format_percent, format_percent_range
from agentic_bayes.outcomes.count import count_outcomes
from agentic_bayes.records.spent import all_spent
from agentic_bayes.reports.html.by_threshold import threshold_rows
from agentic_bayes.reports.html.frontier import frontiers
from agentic_bayes.reports.html.page import write_report
from agentic_bayes.reports.html.question import ask
from agentic_bayes.reports.html.trials import find_trials
from agentic_bayes.reports.thresholds import threshold_curve


def graded(agents=("v1", "v2"), tasks=8, scores=None):
    """Evidence with scores all over the scale, the later agents better."""
    rng = np.random.default_rng(4)
    rows = [
        {"agent": agent, "task": f"t{i}", "trial": t, "score": round(float(rng.beta(2 + 2 * place, 2)), 2)}
        for place, agent in enumerate(agents)
        for i in range(tasks)
        for t in range(3)
    ]
    frame = pd.DataFrame(rows)
    return evidence_from_table(frame if scores is None else frame.assign(score=frame["score"].map(scores)))


@pytest.fixture(scope="module")
def evidence():
    """Of two agents."""
    return graded()


@pytest.fixture(scope="module")
def est(evidence):
    """Counted at .65, a threshold between those of the slider."""
    return estimate(count_outcomes(evidence, threshold=0.65), "hierarchical", k=(1, 3))


def test_a_gates_probability_is_written_alike_wherever_it_stands(est):
    """5.4 % is not 5 % further down, since 95 % is what the gate needs."""
    from agentic_bayes.reports.html.opening import _gate_words
    from agentic_bayes.reports.html.verdict import _more_likely_below

    doubtful = replace(gate(est, "v2", at_least=0.6), probability=0.0544)
    assert "5.4 % sure" in _gate_words(doubtful)
    assert "to miss this bar (94.6 %) than to reach it (5.4 %)" in _more_likely_below(doubtful)


def test_what_to_type_next_asks_the_same_question(est, tmp_path):
    """Unusual counting, methods and settings become options of the command, which then gives the answer of the page."""
    unusual = estimate(est.outcomes, "hierarchical", ci_kind="hdi", random_seed=3)
    page = write_report(unusual, tmp_path / "page.md", baseline=0.05, source="e.jsonl").read_text()
    options = "--threshold 0.65 --ci-kind hdi --random-seed 3 --method hierarchical"
    assert f"    agentic-bayes gate e.jsonl --agent v2 --metric pass^1 --at-least 0.8 {options}\n" in page
    doubtful = write_report(est, tmp_path / "page.md", source="e.jsonl", at_least=0.6, confidence=0.999).read_text()
    assert (
        "    agentic-bayes plan e.jsonl --agent v2 --metric pass^1 --at-least 0.6 --confidence 0.999 --thr" in doubtful
    )


class TestThresholds:
    """The answer at each threshold."""

    def test_rates_are_those_of_the_threshold_curve(self, evidence, est):
        """One answer: what the page says at .5 … .9, `threshold_curve` says, and at its own threshold the page."""
        found = threshold_rows(est, ask(est, None, None, "pass^1", None), evidence)
        assert [row.threshold for row in found.rows] == ["0.5", "0.6", "0.65", "0.7", "0.8", "0.9"]
        assert (found.rows[found.own].threshold, found.matters) == ("0.65", True)
        thresholds = [float(row.threshold) for row in found.rows]
        for place, metric in enumerate(("pass^1", "pass^3")):
            curve = threshold_curve(evidence, metric=metric, method="hierarchical", thresholds=thresholds)
            expected = [(format_percent(one.mean), format_percent_range(one.lower, one.upper)) for one in curve.points]
            shown = [(r.rates[i][place].percent, r.rates[i][place].interval) for r in found.rows for i in (0, 1)]
            assert shown == expected

    def test_verdicts_are_those_of_compare_and_gate(self, evidence, est):
        """At .9, as at every threshold, verdicts are what `compare` and `gate` say of the counts there."""
        asked = ask(est, None, None, "pass^1", None, at_least=0.3)
        row = threshold_rows(est, asked, evidence).rows[-1]
        there = estimate(count_outcomes(evidence, threshold=0.9), "hierarchical")
        one, three = (compare(there, "v2", baseline="v1", metric=metric).verdict for metric in ("pass^1", "pass^3"))
        said = gate(there, "v2", at_least=0.3).verdict
        assert said == "fail"
        assert row.words == ("gate: failed", f"{one} per attempt", f"{three} for three attempts in a row")

    def test_scores_between_which_no_threshold_lies_need_no_slider(self):
        """Where every score is below .5 or .9 and more, one sentence says why, and what a full score would change."""
        evidence = graded(scores=lambda score: 0.2 if score < 0.6 else 0.95 if score < 0.8 else 1.0)
        est = estimate(count_outcomes(evidence), "hierarchical")
        found = threshold_rows(est, ask(est, None, None, "pass^1", None), evidence)
        passed = [row.answer_score for row in evidence if row.answer_score > 0.5]
        assert not found.matters
        assert found.same == (
            "Any pass mark from 0.5 to 0.9 gives the same result, because no answer scored in between. "
            f"Above 0.9, up to {passed.count(0.95)} of {len(passed)} passed conversations would fail."
        )

    def test_it_is_absent_without_scores_on_a_scale(self, evidence, est):
        """No evidence, verdicts of 0 and 1 only, or other evidence than what was counted: nothing is shown."""
        asked = ask(est, None, None, "pass^1", None)
        assert threshold_rows(est, asked, None) is None
        assert threshold_rows(est, asked, graded(scores=lambda score: float(score > 0.7))) is None
        assert threshold_rows(est, asked, graded(tasks=7)) is None
        assert threshold_rows(est, asked, graded(scores=lambda score: 1 - score)) is None

    def test_it_is_a_table_where_scripts_do_not_run(self, evidence, est, tmp_path):
        """The slider is hidden until its script runs; every threshold has a row with its sentence."""
        page = write_report(est, tmp_path / "page.html", evidence=evidence).read_text()
        assert '<div class="slider" id="by-threshold" hidden>' in page
        rows = re.findall(r'<tr data-verdict="([^"]+)"><th scope="row" class="n">([^<]+)</th>', page)
        assert [row[1] for row in rows] == ["0.5", "0.6", "0.65 (this page)", "0.7", "0.8", "0.9"]
        assert all("v1" in verdict and "v2" in verdict for verdict, _ in rows)


def priced(agents, cost):
    """Conversations of agents with what each of their trials cost."""
    return [
        one.model_copy(update={"metadata": cost(one.assistant_id, i)})
        for i, one in enumerate(conversations(4, agents=agents))
    ]


def drawn(found, agents=None):
    """The frontiers of these conversations."""
    evidence = judged(found)
    est = estimate(count_outcomes(evidence), "hierarchical")
    return est, frontiers(est, ask(est, None, None, "pass^1", None), find_trials(est, evidence, found))


class TestFrontier:
    """Cost and latency against reliability."""

    def test_an_agent_is_on_it_if_none_that_is_as_cheap_is_better(self):
        """a: cheap and weak, b: dearer and better, c: dearest and best, d: dearer than c, no better than it."""
        price = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 40.0}
        found = priced(("a", "b", "c"), lambda agent, _: {"cost": price[agent]})
        worse = [
            one.model_copy(update={"assistant_id": "d", "session_id": f"d{i}"}) for i, one in enumerate(found[:12])
        ]
        found += [one.model_copy(update={"metadata": {"cost": {"agent": 40.0, "user": 9.0}}}) for one in worse]
        est, (only,) = drawn(found)
        assert [(est.agents[one.agent], one.mean, one.best) for one in only.agents] == [
            *(("a", 1.0, True), ("b", 2.0, True), ("c", 3.0, True)),
            ("d", 40.0, False),
        ]
        frame = est.summary().query("metric == 'pass^1' and estimand == 'population'").set_index("agent")
        for one in only.agents:
            row = frame.loc[est.agents[one.agent]]
            assert one.percent == format_percent(row["mean"])
            assert one.interval == format_percent_range(row["lower"], row["upper"])
        labels = [one.label and one.label.text for one in only.agents]
        assert labels == ["a", "b", "c", "d"]  # also of those that are beaten, where there is room

    def test_no_name_in_it_lies_on_another(self):
        """Agents that cost nearly the same have room for one name, and the better one has it."""
        price = {"a": 1.0, "b": 1.01, "c": 9.0}
        names = {agent: f"{agent} {'with a long name ' * 3}" for agent in price}
        found = priced(tuple(names.values()), lambda agent, _: {"cost": price[agent[0]]})
        _, (only,) = drawn(found)
        placed = [one.label for one in only.agents if one.label]
        assert placed
        boxes = [(one.x - 6 * len(one.text) * (one.anchor == "end"), one.y, 6 * len(one.text)) for one in placed]
        for i, (x, y, width) in enumerate(boxes):
            assert 0 <= x <= x + width <= only.width
            assert all(abs(y - v) >= 12 or x + width <= u or u + w <= x for u, v, w in boxes[:i])

    def test_what_was_not_recorded_is_not_zero(self):
        """Means are over the recorded trials; an agent without any, or with zeros only, is named and not drawn."""
        costs = {"v1": lambda i: 2.0 + i % 2, "v2": lambda i: 4.0 if i % 3 else None, "v3": lambda i: 0, "v4": None}
        found = priced(("v1", "v2", "v3", "v4"), lambda agent, i: {"cost": costs[agent](i)} if costs[agent] else {})
        est, (only,) = drawn(found)
        assert [(one.mean, one.recorded) for one in only.agents] == [(2.5, "12 of 12"), (4.0, "8 of 12")]
        assert [est.agents[i] for i in only.unknown] == ["v3", "v4"]

    def test_nothing_is_shown_where_nothing_was_recorded(self, tmp_path):
        """Nor where only one agent has a cost, since there is nothing to choose between."""
        assert drawn(conversations(4))[1] == []
        assert drawn(priced(("v1", "v2"), lambda agent, _: {"cost": 1.0} if agent == "v1" else {}))[1] == []

    @pytest.mark.parametrize(
        ("metadata", "expected"),
        [
            ({"cost": 0.5, "duration": 12.5}, {"cost": 0.5, "seconds": 12.5}),
            ({"cost": {"agent": 0.5, "user": 0.1}}, {"cost": 0.5}),
            ({"times": {"total_time": 9.0, "working_time": 7.0}}, {"seconds": 7.0}),
            ({"cost": True, "duration": "12"}, {}),
            ({"cost": -1, "seconds": float("1e400")}, {}),
        ],
    )
    def test_logs_keep_it_under_several_names(self, metadata, expected):
        """The agent's own cost, working time before total time, and never what is no number."""
        one = conversations(1, 1)[0]
        assert all_spent(one.model_copy(update={"metadata": metadata})) == expected

    def test_turns_are_added_up_if_all_of_them_have_it(self):
        """Traces keep seconds turn by turn; a turn without leaves the sum unknown."""
        one = conversations(1, 1)[0]
        turns = [one.conversation[0].model_copy(update={"metadata": {"seconds": float(s)}}) for s in (1, 2)]
        assert all_spent(one.model_copy(update={"conversation": tuple(turns)})) == {"seconds": 3.0}
        assert all_spent(one.model_copy(update={"conversation": (*turns, one.conversation[0])})) == {}


def test_hostile_names_stay_text_in_both(tmp_path):
    """In attributes and pictures, too: names that would be code are escaped."""
    found = priced(tuple(HOSTILE[i] for i in (0, 1, 8)), lambda agent, _: {"cost": len(agent)})
    evidence = judged(found)
    est = estimate(count_outcomes(evidence), "hierarchical")
    page = write_report(est, tmp_path / "page.html", evidence=evidence, conversations=found).read_text()
    assert '<h2 id="frontier">' in page
    assert page.count("<script") == page.count("</script>") == 5  # numbers, tasks, trials, the map, and the page's own
