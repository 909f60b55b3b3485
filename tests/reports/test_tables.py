"""Tables for people: every number with its denominator, and what makes it doubtful below it."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from fits import ENGINES, NEVER, STRONGER, UNEQUAL, WEAKER, counts, fit_two

from agentic_bayes.decisions.gate import gate
from agentic_bayes.decisions.rank import rank
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.row import EvidenceRow
from agentic_bayes.outcomes.dataset import combine_outcomes
from agentic_bayes.reports.comment import comment
from agentic_bayes.reports.html.sections import commonest_fault
from agentic_bayes.reports.junit import junit_xml
from agentic_bayes.reports.tables import (
    estimate_tables,
    superiority_table,
)


def cell(table, metric, column):
    """The text in one row and column."""
    return next(row for row in table.rows if row[0] == metric)[table.header.index(column)]


class TestEstimateTables:
    """One table per agent and estimand, posterior beside the baseline."""

    @pytest.mark.parametrize("engine", ENGINES)
    def test_posterior_stands_beside_both_baselines(self, engine):
        """Each table has the method, the unbiased and the plug-in column, and all metrics at all k."""
        tables = estimate_tables(fit_two(engine))
        assert [table.title for table in tables] == [
            f"{agent}, {where}"
            for agent in ("v1", "v2")
            for where in ("on a new task of this kind (population)", "on these tasks (tasks)")
        ]
        for table in tables:
            assert table.header == ["metric", "hierarchical", "unbiased", "plug-in"]
            assert [row[0] for row in table.rows] == [
                *(f"pass@{k}" for k in (1, 2, 3, 5)),
                *(f"pass^{k}" for k in (1, 2, 3, 5)),
            ]

    def test_numbers_are_the_summarys(self):
        """7 of 10 at k = 3: the conjugate estimate, its interval and the plug-in value."""
        (table,) = estimate_tables(estimate(counts({"a": [(7, 10)]}), method="conjugate", k=3))
        assert cell(table, "pass^3", "conjugate").startswith("0.330 [0.05")
        assert cell(table, "pass^3", "plug-in").startswith("0.343 [")
        assert cell(table, "pass@3", "unbiased").startswith("0.992 [")

    def test_corrected_stands_beside_as_judged(self):
        """With labels: the corrected posterior, the one as judged, the unbiased estimate, and the rates."""
        rates = {"sensitivity": 0.9, "specificity": 0.8}
        est = estimate(counts({"a": UNEQUAL}), k=1, judge_labels=rates)
        table = estimate_tables(est)[0]
        assert table.header == ["metric", "corrected", "as judged", "unbiased"]
        plain = estimate_tables(est.uncorrected)[0]
        assert cell(table, "pass^1", "as judged") == cell(plain, "pass^1", "hierarchical")
        assert cell(table, "pass^1", "corrected") != cell(table, "pass^1", "as judged")
        assert any("judge error fixed: sensitivity 0.9, specificity 0.8" in note for note in table.notes)

    def test_a_comment_says_whose_a_note_is(self):
        """Below several tables, a note that not all of them have begins with its table's title."""
        est = fit_two(ENGINES[0])
        tables = estimate_tables(est)
        lines = comment(est, tables).split("\n")
        for table in tables:
            (prior,) = [note for note in table.notes if note.startswith("prior: ")]
            assert f"- {table.title}: {prior}" in lines

    def test_denominators(self):
        """The first note counts tasks, scored and unscored trials, and names unit, indicator and interval."""
        table = estimate_tables(fit_two(ENGINES[0]))[0]
        assert table.notes[0] == (
            "11 tasks, 39 scored trials, 3 unscored; unit conversation, indicator correct; posterior mean with 95 % "
            "credible interval (equal-tailed), the others with 95 % confidence intervals"
        )

    def test_indicator_with_its_threshold(self):
        """An indicator made by a threshold is shown with it."""
        outcomes = counts({"a": [(1, 2)]}, indicator="joint", threshold=0.7, tool_threshold=1.0)
        (table,) = estimate_tables(estimate(outcomes, method="conjugate", k=1))
        assert "indicator answer ≥ 0.7 and tools ≥ 1;" in table.notes[0]

    @pytest.mark.parametrize("name", ["tools", "joint", "answer"])
    def test_a_column_may_be_called_like_an_indicator(self, name):
        """Counts from a table have no threshold, whatever their column is called."""
        (table,) = estimate_tables(estimate(counts({"a": [(1, 2)]}, indicator=name), method="conjugate", k=1))
        assert f"indicator {name};" in table.notes[0]

    def test_crashes_and_conversations_left_out_are_counted(self):
        """Of the unscored trials those due to a crashed agent are named, and so is what has no verdict at all."""
        outcomes = counts({"a": [(1, 2, 3)]}, left_out=2)
        outcomes["errored"] = outcomes["unscored"] - 1
        (table,) = estimate_tables(estimate(outcomes, method="conjugate", k=1))
        assert table.notes[0].startswith("1 task, 2 scored trials, 3 unscored (2 agent errors); unit")
        assert table.notes[1] == "2 conversations of all agents without any tool verdict left out"

    def test_outcomes_that_were_not_counted_alike_say_so(self):
        """What may differ between two agents stands below every table made from their combination."""
        one, two = (
            counts({agent: [(1, 2)]}, threshold=threshold, judge=judge)
            for agent, threshold, judge in (("a", 0.7, "x/1"), ("b", 0.8, "y/1"))
        )
        est = estimate(combine_outcomes(one, two, allow=("threshold", "judge")), method="conjugate", k=1)
        for table in estimate_tables(est):
            assert "not counted alike: judge differs (x/1 | y/1), threshold differs (0.7 | 0.8)" in table.notes
            assert "indicator correct ≥ 0.7 | 0.8;" in table.notes[0]

    def test_doubtful_numbers_are_starred_and_explained(self):
        """A flagged number has a star, and a note names the flag and the k it is about."""
        table = estimate_tables(fit_two(ENGINES[0], STRONGER, STRONGER).with_k((1, 3, 9)))[0]
        assert "*" in cell(table, "pass^9", "hierarchical")
        assert "*" not in cell(table, "pass^3", "hierarchical")
        assert "* extrapolated (k = 9): k exceeds every number of trials: the model extrapolates" in table.notes
        assert cell(table, "pass^9", "unbiased") == "–"
        assert any(note.startswith("no task has 9 trials") for note in table.notes)

    def test_bounds_name_their_metric(self):
        """Bounds beyond the trials say of which metric they are."""
        notes = estimate_tables(estimate(counts({"a": [(c, 4) for c in (0, 1, 2, 3, 4, 4)]}), k=(1, 8)))[0].notes
        assert [note.split(":")[0] for note in notes if "distribution-free bounds [" in note] == ["pass@8", "pass^8"]

    def test_what_was_made_of_crashes_is_said(self):
        """Crashes counted as failures are named as such; bounds give the share of right trials either way."""
        made = counts({"a": [(3, 4, 2), (1, 4)]}, errors="bounds").assign(
            errored=(("agent", "task"), np.array([[2, 0]]))
        )
        (_, tasks) = estimate_tables(estimate(made))
        assert "share of right trials if all 2 agent errors had failed or passed: 0.400 or 0.600" in tasks.notes
        (_, tasks) = estimate_tables(estimate(made.assign_attrs(errors="fail")))
        assert "a crashed agent counts as a failure" in tasks.notes

    def test_the_plug_in_column_extrapolates_too(self):
        """A frequentist table stars and explains the plug-in value beyond the trials that were made."""
        table = estimate_tables(estimate(counts({"a": [(3, 4), (1, 4)]}), method="frequentist", k=(4, 5)))[0]
        assert table.header == ["metric", "unbiased", "plug-in"]
        assert "*" in cell(table, "pass^5", "plug-in")
        assert "*" not in cell(table, "pass^4", "plug-in")
        assert any(note.startswith("* extrapolated (k = 5)") for note in table.notes)

    def test_every_star_has_its_note(self):
        """No table stars a number without saying why."""
        untried = ((0, 0, 2),) * 3 + (NEVER,) * 9
        once = ((1, 1),) * 8 + ((0, 1),) * 4
        for first, second in ((WEAKER, STRONGER), (untried, STRONGER), (UNEQUAL, once)):
            for table in estimate_tables(fit_two(ENGINES[0], first, second).with_k((1, 9))):
                starred = any("*" in text for row in table.rows for text in row)
                assert starred == any(note.startswith("* ") for note in table.notes)
                assert not any(text.startswith("–*") for row in table.rows for text in row)


def scored(agent, trial, interaction, **fields):
    """A row of evidence."""
    place = {"agent": agent, "task": "t", "trial": trial, "session_id": f"{agent}{trial}", "interaction": interaction}
    return EvidenceRow(**place, qa_id="q", judge="reference", tool_rubric="rubric", **fields)


class TestEvidenceTable:
    """Evidence is one table for notebooks, terminals and pages."""

    def test_scored_and_unscored_are_counted_apart(self):
        """Three scored turns and one unscored: the mean is over three, and the reason is shown.

        One task says nothing of how tasks differ, so that the interval is the whole scale.
        """
        rows = [scored("a", 0, i, answer_score=value) for i, value in enumerate((1.0, 0.5, 0.9))]
        rows.append(scored("a", 1, 0, unscored_reason="the judge gave no verdict: 429"))
        table = Evidence(tuple(rows)).table()
        assert table.header[1:] == [
            "conversations",
            "turns scored",
            "not scored",
            "average answer score",
            "tools right",
        ]
        assert table.rows == [["a", "2", "3", "1", "0.800 [0.000, 1.000]", "–"]]
        assert "(3 scored, 1 unscored)" in table.title
        assert "1 × the judge gave no verdict: 429" in table.notes

    def test_a_right_answer_through_wrong_tools_is_flagged(self):
        """It is counted below the table, and so is a missing tool verdict, unless a crash explains it."""
        zero = {"selection": 0.0, "parameters": 0.0, "sequence": 1.0, "tool_overall": 0.3, "tools_correct": False}
        rows = [scored("a", i, 0, answer_score=0.8, tool_reason="not made", **zero) for i in range(2)]
        rows.append(scored("a", 2, 0, answer_score=0.8, tool_reason="tool calls were not recorded"))
        rows.append(scored("a", 3, 0, unscored_reason="agent error: x", tool_reason="agent error: x"))
        table = Evidence(tuple(rows)).table()
        assert table.rows[0][-1] == "0/2"
        assert list(filter(None, table.notes))[1:] == [
            "1 × agent error: x",
            "2 turns with a right answer (≥ 0.7) but wrong tool calls",
            "no tool verdict for 1 turn:",
            "1 × tool calls were not recorded",
        ]


def test_the_commonest_fault_with_tools_is_a_sentence():
    """It is in the most conversations, whatever calls one of them repeats, and both are counted."""
    extra = {"search": {"extra": 1, "made": 1}}
    again = {"lookup": {"extra": 9, "made": 9, "arguments": {"id": {"unequal": 9}}}}
    zero = dict.fromkeys(("selection", "parameters", "sequence", "tool_overall"), 0.0)
    zero |= {"tools_correct": False, "tool_reason": "extra", "tool_details": extra}
    rows = [scored("a", *place, answer_score=1.0, **zero) for place in ((0, 0), (0, 1), (1, 0))]
    rows.append(scored("a", 2, 0, answer_score=1.0, **(zero | {"tool_details": again})))
    fault = "Most common fault with tools: a called search when it was not expected, in 2 conversations (3 of 3 calls)."
    assert commonest_fault(Evidence(tuple(rows))) == fault
    wrong = "a called lookup with a wrong argument “id”, in 1 conversation (9 of 9 calls)."
    assert commonest_fault(Evidence((replace(rows[-1], tool_details={"lookup": again["lookup"] | {"extra": 0}}),))) == (
        f"Most common fault with tools: {wrong}"
    )
    assert commonest_fault(Evidence((scored("a", 0, 0, answer_score=1.0),))) == ""


class TestDecisions:
    """Results of decisions are one table each; what else is made of them."""

    def test_superiority(self):
        """Rows are numbered as columns are."""
        table = superiority_table(rank(fit_two(ENGINES[0])))
        assert table.title == "Probability of a higher pass^1"
        assert table.header == ["chance that the row is better", "1.", "2."]
        assert table.rows[0][:2] == ["1. v2", "–"]
        first = superiority_table(rank(fit_two(ENGINES[0])), 1)
        assert (first.rows, first.notes) == ([["1. v2", "–"]], ["the best 1 of 2 agents; --to json has every pair"])

    @pytest.mark.parametrize(("bar", "verdict"), [(0.05, "pass"), (0.99, "fail"), (0.75, "inconclusive")])
    def test_junit_has_the_rows_of_the_gates_table(self, bar, verdict):
        """One test case per requirement, which fails unless the gate passes or is excused."""
        found = gate(fit_two(ENGINES[0]), "v2", at_least=bar, baseline="v1", margin=0.9)
        assert found.verdict == verdict
        root = ElementTree.fromstring(junit_xml(found))
        cases = root.findall(".//testcase")
        assert [case.get("name") for case in cases] == [row[0] for row in found.table().rows]
        assert {case.get("classname") for case in cases} == {"v2.pass^1"}
        assert root.get("failures") == str(int(verdict != "pass"))
        excused = ElementTree.fromstring(junit_xml(found, excused=True))
        assert (excused.get("failures"), excused.get("skipped")) == (
            str(int(verdict == "fail")),
            str(int(verdict == "inconclusive")),
        )
