"""Failures by kind: compared with the failures that the example's author put in, and with counts by hand."""

from pathlib import Path
from typing import get_args

import pandas as pd
import pytest
from hostile_records import HOSTILE, judged, record
from test_html import Page

import agentic_bayes as ab
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.recorded import RecordedJudge
from agentic_bayes.evidence.row import EvidenceRow
from agentic_bayes.evidence.score import FailureKind, Score
from agentic_bayes.reports.html.failures import MEANINGS, MOST_KINDS, failure_tables
from agentic_bayes.reports.html.trials import ReportTrial, TrialFailure, count_attempts, find_trials

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "support_agent"
# what the example's author made go wrong → kinds that name it
PUT_IN = {
    "missing_tool_call": {"missing call"},
    "wrong_tool": {"wrong tool"},
    "right_answer_wrong_tools": {"wrong tool"},
    "extra_tool_call": {"extra call"},
    "repeated_call": {"extra call"},
    "wrong_parameter_value": {"argument"},
    "missing_parameter": {"argument"},
    "extra_parameter": {"argument"},
    "wrong_order": {"order of calls"},
    "result_not_used": {"unused result"},
    "wrong_fact": {"wrong number", "missing fact", "contradiction"},
    "omitted_part": {"missing fact"},
    "empty_answer": {"no answer"},
    "crashed": {"crash"},
}


def trial(agent, task, number, *failures, verdict="fail"):
    """A trial that did not pass, with pairs of kinds and reason."""
    told = [TrialFailure(*one) for one in failures]
    return ReportTrial(agent, task, number, f"{agent}/{task}/{number}", {0: task}, verdict=verdict, failures=told)


def row(agent="a", task="t", number=0, score=0.0, reason="no", **more):
    """A scored turn."""
    place = {"agent": agent, "task": task, "trial": number, "session_id": f"{agent} {task} {number}", "interaction": 0}
    given = {"answer_score": score, "answer_reason": reason, "judge": "someone's", "tool_rubric": "none", "qa_id": task}
    return EvidenceRow(**(place | given | more))


def kinds_of(rows, **counting):
    """The failures of all trials, as the report finds them."""
    evidence = Evidence(tuple(rows))
    est = ab.estimate(ab.count_outcomes(evidence, **counting), "frequentist", k=1)
    return [(one.verdict, one.failures) for one in find_trials(est, evidence, None)]


def test_every_failure_that_was_put_in_is_found():
    """All 129 trials of the example that should fail do, and have the kind that its author put in."""
    every = ab.read_conversations(str(EXAMPLE / "*.jsonl"))
    truth = {(c.assistant_id, c.task_id, c.trial): c for c in every if c.metadata["failure"]}
    evidence = ab.assess(truth.values(), judge=ab.ReferenceJudge())
    est = ab.estimate(ab.count_outcomes(evidence, indicator="joint"), "frequentist", k=1)
    trials = find_trials(est, evidence, None)
    assert len(trials) == len(truth) == 129
    for one in trials:
        put_in = truth[one.agent, one.task, one.number].metadata["failure"]
        found = {kind for kinds, _ in one.failures for kind in kinds}
        assert one.verdict in ("fail", "errored")
        assert PUT_IN[put_in] & found, (put_in, found)


def test_every_kind_has_a_meaning():
    """What a grader can name, the report explains."""
    assert set(MEANINGS) == set(get_args(FailureKind))


def test_a_trial_counts_once_in_each_of_its_kinds():
    """Two turns with a wrong number are one trial; agents, tasks and shares are those of trials."""
    trials = [
        trial("a", "t1", 0, (["wrong number"], "41"), (["wrong number"], "40"), (["argument"], "x")),
        trial("a", "t2", 0, (["wrong number"], "39")),
        trial("a", "t2", 1, verdict="pass"),
        trial("a", "t1", 1, (["crash"], "TimeoutError"), verdict="errored"),
        trial("b", "t1", 0, verdict="pass"),
    ]
    failed, unscored = failure_tables(trials, ("b", "a"))
    assert (failed.title, unscored.title) == ("What went wrong in 2 failed trials", "Why 1 trial could not be scored")
    assert [(g.name, dict(g.agents), dict(g.tasks)) for g in failed.groups] == [
        ("wrong number", {"a": 2}, {"t1": 1, "t2": 1}),
        ("argument", {"a": 1}, {"t1": 1}),
    ]
    assert unscored.count(unscored.groups[0], "a") == "1 (25 %)"  # of its scored and unscored trials
    assert failed.columns == ("b", "a")
    assert [failed.count(failed.groups[0], agent) for agent in failed.columns] == ["0", "2 (67 %)"]
    assert failed.commonest() == "Most common failure: wrong number, in 2 of 3 trials of a."


def test_three_examples_are_of_different_agents_tasks_and_reasons():
    """Where there are several, no example is like another."""
    trials = [trial(f"a{i % 3}", f"t{i % 5}", i, (["format"], f"reason {i % 4}")) for i in range(60)]
    (group,) = failure_tables(trials, ())[0].groups
    for part in ("agent", "task", "reason"):
        assert len({getattr(one, part) for one in group.examples}) == 3
    assert group.commonest_tasks.startswith("t0 (12), t1 (12)")


def test_a_grader_may_name_kinds_of_its_own():
    """In the details of its score; anything else there is no name, and the reason is read instead."""
    own = {"metrics": {"tone": Score(0.1, "It shouts.", {"failure_kinds": ["rude", " loud "]})}}
    odd = {"metrics": {"tone": Score(0.1, "It shouts.", {"failure_kinds": 5})}}
    counting = {"indicator": "tone"}
    assert kinds_of([row(**own)], **counting) == [("fail", [(("rude", "loud"), "It shouts.")])]
    assert kinds_of([row(**odd)], **counting) == [("fail", [((), "It shouts.")])]
    failed, _ = failure_tables([trial("a", "t", 0, (["rude"], "It shouts."))], ())
    assert [(group.name, group.meaning) for group in failed.groups] == [("rude", "")]


def test_faults_with_tools_that_fail_no_trial_are_said_to_be_causes():
    """Where only answers count, a note says so, but not where nothing is wrong with tools."""
    by_tools, by_answers = ([trial("a", "t", 0, ([kind], "x"))] for kind in ("missing call", "wrong number"))
    for trials, count, said in ((by_tools, False, True), (by_tools, True, False), (by_answers, False, False)):
        failed, _ = failure_tables(trials, (), tools_count=count)
        assert ("by themselves they fail no trial" in failed.notes[-1]) == said


def test_people_count_attempts_from_one():
    """The data may number trials from 0, or with gaps: examples and conversations have the first, second, third."""
    trials = [trial("a", "t", number, (["format"], f"{number}")) for number in (7, 0, 3)]
    count_attempts([*trials, other := trial("b", "t", 7)])
    assert [one.attempt for one in trials] == [3, 1, 2]
    assert other.attempt == 1
    assert failure_tables(trials, ())[0].groups[0].examples[0].attempt == 3


def test_faults_with_tools_are_causes_of_a_wrong_answer():
    """Where only the answer counts, a failed turn names them all the same; a turn that passed does not."""
    tools = {"selection": 0.5, "parameters": 0.5, "sequence": 1.0, "tool_overall": 0.5, "tools_correct": False}
    tools |= {"tool_reason": "f was not called", "tool_details": {"f": {"expected": 1, "missed": 1}}}
    rows = [row(**tools), row(number=1, score=1.0, reason="yes", **tools)]
    assert kinds_of(rows) == [("fail", [((), "no"), (["missing call"], "f was not called")]), ("pass", [])]
    assert kinds_of(rows, indicator="tools") == [("fail", [(["missing call"], "f was not called")])] * 2


def test_evidence_without_reasons_says_so():
    """Blank reasons, and recorded scores, whose reason is only where they stood, are one kind at the end."""
    rows = [row(reason=None), row(number=1, reason="recorded for this turn", judge=RecordedJudge.identity)]
    assert kinds_of(rows) == [("fail", [((), "")])] * 2
    trials = [trial("a", "t", i, ((), " ")) for i in range(9)] + [trial("a", "t", 9, (["format"], "long"))]
    failed, _ = failure_tables(trials, ())
    assert [(group.name, group.trials) for group in failed.groups] == [("format", 1), ("no reason given", 9)]


def test_reasons_in_words_are_grouped_across_agents():
    """A judge that gives reasons only: clusters by words, with counts by agent, after which come single ones."""
    texts = ["The refund deadline of {} days is missing", "The answer is in English, not in Spanish ({})"]
    trials = [trial(f"a{i % 2}", "t", i, ((), texts[i % 3 > 0].format(i))) for i in range(30)]
    trials += [trial("a0", "t", 30, ((), "Rude."))]
    failed, _ = failure_tables(trials, ())
    assert [(group.name, dict(group.agents)) for group in failed.groups] == [
        ("“english, spanish”", {"a1": 10, "a0": 10}),
        ("“deadline, days, missing”", {"a0": 5, "a1": 5}),
        ("other reasons", {"a0": 1}),
    ]
    assert "by the words they share" in failed.notes[-1]


def test_unscored_trials_are_apart():
    """They have not failed: a table of their own, by the words of the reasons."""
    trials = [trial("a", "t", i, ((), "ReadTimeout: the judge did not answer"), verdict="unscored") for i in range(4)]
    failed, unscored = failure_tables(trials, ())
    assert failed is None
    assert unscored.title == "Why 4 trials could not be scored"
    assert unscored.groups[0].trials == 4
    assert failure_tables([trial("a", "t", 0, verdict="pass")], ()) == (None, None)


def test_kinds_without_end_are_bounded():
    """A grader that invents a kind for every trial fills no page: 30 kinds are listed, the others counted."""
    trials = [trial("a", f"t{i}", i, ([f"kind {'x' * 200} {i}"], f"reason {i}")) for i in range(300)]
    failed, _ = failure_tables(trials, ())
    assert len(failed.groups) == MOST_KINDS
    assert "rarer kinds left out" in failed.notes[-1]
    assert all(len(group.name) < 100 for group in failed.groups)


@pytest.fixture(scope="module")
def hostile_evidence():
    """Two agents whose kinds and reasons are attacks on a page and on Markdown."""
    attacks = [*HOSTILE, "[x](javascript:alert(1)) | `a` @everyone #1 **b**", "<details><summary>x", "W" * 100_000]
    told = [row("v1", f"t{i}", 0, reason=text) for i, text in enumerate(attacks * 2)]
    told += [row("v2", f"t{i}", 0, reason="r", answer_details={"failure_kinds": [t]}) for i, t in enumerate(attacks)]
    return Evidence(tuple(told[: len(attacks)] + told[2 * len(attacks) :]))


@pytest.mark.parametrize("to", ["html", "markdown"])
def test_hostile_kinds_and_reasons_stay_text(hostile_evidence, tmp_path, to):
    """No tag, link, mention or cell comes from them, in the page and in Markdown."""
    est = ab.estimate(ab.count_outcomes(hostile_evidence), "frequentist", k=1)
    path = ab.write_report(est, tmp_path / "report", evidence=hostile_evidence, to=to)
    text = path.read_text(encoding="utf-8")
    assert len(text) < 300_000
    if to == "html":
        page = Page(text)
        rows = page.table("What went wrong in")
        assert rows[0] == ["what went wrong", "trials", "tasks", "v1", "v2"]
        assert any("<script>window.hacked = 1</script>" in row[0] for row in rows)
        assert not {"img", "iframe", "b", "x"} & {tag for tag, attrs in page.tags if "id" not in attrs}
        assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
        return
    table = text.partition("<summary>What went wrong in")[2].partition("</details>")[0]
    assert "window.hacked" in table
    for raw in ("<script", "<img", "<a href", "<!--", "[x](", "**b**", " @everyone"):
        assert raw not in text.replace(f"\\{raw}", "")
    assert text.count("<details>") == text.count("</details>") == text.count("<summary>")
    lines = [line for line in table.split("\n") if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in lines} == {6}


def test_counts_without_reasons_say_what_is_missing(tmp_path):
    """A table of passes and failures groups nothing, and the page says how to get groups."""
    rows = [{"task": task, "trial": i, "correct": i % 2} for task in "ab" for i in range(4)]
    counts = ab.outcomes_from_table(pd.DataFrame(rows))
    page = Page(
        ab.write_report(ab.estimate(counts, "frequentist", k=1), tmp_path / "r.html").read_text(encoding="utf-8")
    )
    assert "which trials failed, but not why" in page.words
    found = [record("v1", "t1", i, passed=True) for i in range(3)]
    est = ab.estimate(ab.count_outcomes(judged(found)), "frequentist", k=1)
    page = Page(ab.write_report(est, tmp_path / "r.html", evidence=judged(found)).read_text(encoding="utf-8"))
    assert "Nothing failed." in page.words
    assert "not why" not in page.words


@pytest.mark.parametrize(
    ("reference", "answer", "kind"),
    [
        ("12 EUR", "It costs 99 EUR.", "wrong number"),
        ("18 degrees Celsius", "18 degrees Fahrenheit", "wrong number"),
        ("12 EUR", "It depends on the shop.", "missing fact"),
        ("Paris", "Lyon", "missing fact"),
        ("Paris", "Paris or London", "no clear answer"),
        ("yes", "No.", "contradiction"),
        ("The parcel was not lost", "The parcel was lost", "contradiction"),
        ("12 EUR", "", "no answer"),
        ("12 EUR", "I'm sorry, but I can't help with that.", "refusal"),
        ("Paris", "It is Paris.", None),
    ],
)
def test_the_reference_judge_names_what_went_wrong(reference, answer, kind):
    """Its rules know the kind; a right answer has none, and no kind changes a score."""
    found = record("v1", "t", 0, passed=True, query="?", assistant=answer, ground_truth_assistant=reference)
    grade = ab.ReferenceJudge().grade(found, 0)
    assert grade.details.get("failure_kinds") == ([kind] if kind else None)
    assert (grade.value >= 0.7) == (kind is None)
