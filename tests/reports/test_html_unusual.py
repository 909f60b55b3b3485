"""Reports of estimates that correct a judge, weigh groups, know no option for what was done, or count turns."""

from __future__ import annotations

import shlex
from types import SimpleNamespace

import pandas as pd
import pytest
from fits import counts
from hostile_records import conversations, judged
from scipy.stats import halfnorm
from test_html import Page

from agentic_bayes.cli import app as cli
from agentic_bayes.decisions.tiers import classify
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Crossed, Hierarchical
from agentic_bayes.formatting import format_percent, format_percent_range
from agentic_bayes.outcomes.count import count_outcomes
from agentic_bayes.reports.html.opening import _no_leader
from agentic_bayes.reports.html.page import write_report
from agentic_bayes.reports.html.question import without_option
from agentic_bayes.reports.html.sections import tools_words

CELLS = {"v1": [(1, 4, 1), (3, 4), (2, 4), (0, 4)] * 3, "v2": [(4, 4), (3, 4), (3, 4), (1, 4)] * 3}


def both(est, folder, **more):
    """The page, and its Markdown."""
    html, markdown = (write_report(est, folder / f"r.{end}", **more).read_text("utf-8") for end in ("html", "md"))
    return Page(html), markdown


@pytest.fixture(scope="module")
def corrected():
    """People looked at the first eight tasks; of v1 the judge passed 2 wrong attempts, of v2 4."""
    labels = [
        {"agent": agent, "task": f"task {i + 1}", "trial": j, "judge": int(j < c), "human": int(c - (i < wrong) > j)}
        for agent, wrong in (("v1", 2), ("v2", 4))
        for i, (c, n, *_) in enumerate(CELLS[agent][:8])
        for j in range(n)
    ]
    return estimate(counts(CELLS), "hierarchical", k=(1, 3), judge_labels=pd.DataFrame(labels))


class TestJudgeLabels:
    """What labels did to the numbers stands where the numbers are."""

    def test_the_first_screen_says_how_good_the_judge_is_and_what_that_changes(self, corrected, tmp_path):
        """The share of right and wrong attempts that it passes, by agent, and the rates without the correction."""
        page, markdown = both(corrected, tmp_path)
        rates = corrected.judge_error().pivot(index="agent", columns="rate", values="mean")
        plain = corrected.uncorrected.summary().query("metric == 'pass^1' and estimand == 'population'")
        for text in (page.words, markdown):
            assert "By 64 human labels, it passes" in text
            for agent, mean in plain.set_index("agent")["mean"].items():
                right, wrong = format_percent(rates.sensitivity[agent]), format_percent(1 - rates.specificity[agent])
                assert f"{right} of the right attempts of {agent} and {wrong} of the wrong ones" in text
                assert f"{format_percent(mean)} for {agent}" in text
            assert (
                "the shares of all trials as judged would be" in text
            )  # counts of verdicts, next to rates that are not
            assert "It takes the judge's verdicts as right" in text  # the plan that the page proposes

    def test_tables_tell_what_is_corrected(self, corrected, tmp_path):
        """The estimates as judged have a column, the error rates an agent, and the test is one of verdicts."""
        page, _ = both(corrected, tmp_path)
        assert page.table("On a new task")[0][-3:] == ["as judged", "counted", "doubts"]
        assert [row[:2] for row in page.table("The judge's error rates")[1:]] == [
            [agent, rate] for agent in ("v1", "v2") for rate in ("sensitivity", "specificity")
        ]
        assert page.table("The difference")[0][-1] == "classical test of verdicts as judged, for comparison"

    def test_a_test_of_uncorrected_verdicts_contradicts_nothing(self, corrected):
        """It answers another question, so that no line calls the corrected verdict borderline."""
        from dataclasses import replace

        from agentic_bayes.decisions.compare import compare

        one = compare(corrected, "v2", baseline="v1")
        assert one.frequentist.as_judged
        told = replace(one, lower=-0.1, upper=0.4, frequentist=replace(one.frequentist, p_value=0.001))
        assert told.verdict == "undecided"
        assert told.disagreement == ""
        assert replace(told, frequentist=replace(told.frequentist, as_judged=False)).disagreement

    def test_what_was_not_checked_is_not_called_fine(self, corrected, tmp_path):
        """True successes are not known, so the spread of passes is not checked; nor is it with too few tasks."""
        page, _ = both(corrected, tmp_path)
        assert "not checked (the judge's errors hide how many trials of a task truly passed)" in page.words
        few, _ = both(estimate(counts({"a": [(1, 2)] * 3}), k=1), tmp_path)
        assert "not checked (needs 10 tasks tried twice or more, there are 3)" in few.words
        assert not any("as the model expects" in one.words for one in (page, few))


@pytest.mark.parametrize(("chance", "no_leader"), [(0.54, True), (0.5, True), (0.3, False)])
def test_an_agent_that_another_probably_beats_does_not_lead(chance, no_leader):
    """The first by its mean rank may have the smaller chance in a direct comparison with one of a wide interval."""
    assert _no_leader(SimpleNamespace(rivals={"b": chance}, rows=[{}] * 4)) is no_leader


def test_weights_that_were_given_have_their_rate_on_the_first_screen(tmp_path):
    """The rates count tasks alike; the weighted one stands next to them, and Markdown has the groups too."""
    outcomes = counts(CELLS).assign_coords(domain=("task", ["refund", "cancel", "cancel"] * 4))
    est = estimate(outcomes, k=1, by="domain", weights={"refund": 0.9, "cancel": 0.1})
    page, markdown = both(est, tmp_path)
    row = est.summary().query("group == '(weighted)' and agent == 'v2' and estimand == 'population'").iloc[0]
    rate = f"{format_percent(row['mean'])} ({format_percent_range(row['lower'], row['upper'])}) for v2"
    for text in (page.words, markdown):
        assert f"With your weights (cancel 0.1, refund 0.9), success per attempt is {rate}" in text
    assert "<summary>v2, by domain, on a new task of this kind</summary>" in markdown


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("crossed", "The table of estimates has the rates on these tasks with your weights (cancel 0.1, refund 0.9)."),
        ("frequentist", "not defined for v1 (nothing was scored in 'refund', which has a weight)."),
    ],
)
def test_a_weighted_rate_that_does_not_exist_is_not_shown_as_one(method, said, tmp_path):
    """The crossed model has none on new tasks, and no method has one of an agent without trials in a group."""
    cells = CELLS | {"v1": [(0, 0, 4), (1, 4), (2, 4)] * 4}
    outcomes = counts(cells).assign_coords(domain=("task", ["refund", "cancel", "cancel"] * 4))
    est = estimate(outcomes, method, k=1, by="domain", weights={"refund": 0.9, "cancel": 0.1})
    assert said in Page(write_report(est, tmp_path / "r.html").read_text("utf-8")).words


@pytest.mark.parametrize(
    ("attrs", "said"),
    [
        ({"indicator": "answer", "source": "evidence"}, "wrong tool calls do not fail it"),
        ({"indicator": "joint", "source": "evidence"}, "only if its tool calls are right"),
        ({"indicator": "tools", "source": "evidence"}, "by its tool calls alone"),
        ({"indicator": "tone", "threshold": 0.5, "source": "evidence"}, "by one thing alone: tone ≥ 0.5"),
        ({"indicator": "correct"}, "these scores do not decide it"),
    ],
)
def test_whether_tools_decide_is_said_next_to_their_scores(attrs, said):
    """By the rule that was counted by; a table gives verdicts, whatever the evidence that stands next to it says."""
    assert said in tools_words(SimpleNamespace(outcomes=SimpleNamespace(attrs={"unit": "conversation"} | attrs)))


def test_what_the_command_line_cannot_repeat_is_said_where_a_command_stands(tmp_path):
    """A gate under the default prior, or without the rates of the judge, would give other numbers."""
    better = {"v1": [(0, 4), (1, 4)] * 6, "v2": [(4, 4), (3, 4)] * 6}
    for est in (
        estimate(counts(better), Hierarchical(tau=halfnorm(scale=0.5)), k=1),
        estimate(counts(better), k=1, judge_labels={"sensitivity": 0.99, "specificity": 0.99}),
    ):
        page, _ = both(est, tmp_path)
        (what,) = without_option(est)
        assert "agentic-bayes gate" in page.words
        assert f"The command has no option for {what}: for these numbers, call gate() in Python." in page.words
    assert without_option(estimate(counts(better), Crossed(), k=1)) == []


def test_failures_are_of_conversations_where_trials_are_turns(tmp_path):
    """The counts are of interactions then, and what went wrong is counted by conversation: it is not called a trial."""
    evidence = judged(conversations(tasks=4))
    est = estimate(count_outcomes(evidence, unit="interaction"), "frequentist", k=1)
    page, markdown = both(est, tmp_path, evidence=evidence)
    assert page.table("What went wrong in")[0][1] == "conversations"
    assert "| what went wrong | conversations |" in markdown
    assert "bars" not in markdown  # a table of text has none


def test_a_table_is_not_said_to_hold_conversations(tmp_path):
    """It does not say what its trials are; evidence does."""
    page, markdown = both(estimate(counts(CELLS), "frequentist", k=1), tmp_path)
    assert not any(f"{one} conversation" in text for one in ("A", "one") for text in (page.words, markdown))
    evidence = judged(conversations(tasks=2))
    assert "A trial is one conversation" in both(estimate(count_outcomes(evidence), k=1), tmp_path)[0].words


def test_the_commands_of_a_report_read_the_file_as_it_was_read(tmp_path, monkeypatch):
    """Columns and threshold stand in them, so that they run."""
    rows = [{"bot": b, "case": f"c{i}", "score": (b + i % 2) / 2} for b in (0, 1) for i in range(8) for _ in range(2)]
    pd.DataFrame(rows).to_csv(tmp_path / "my runs.csv", index=False)
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr("sys.argv", ["agentic-bayes", *words])
        with pytest.raises(SystemExit, match=r"^(None|0|10|11)?$"):
            cli.main()

    reading = ["--columns", "agent=bot,task=case,correct=score", "--threshold", "0.6"]
    run("report", "my runs.csv", "-o", "r.md", "--method", "hierarchical", "--k", "1", *reading)
    (command,) = [line for line in (tmp_path / "r.md").read_text("utf-8").split("\n") if line.startswith("    agentic")]
    assert shlex.split(command)[2:7] == ["my runs.csv", *reading]
    run(*shlex.split(command)[1:])


@pytest.mark.parametrize("table", ["paper", "gaussia"])
def test_tiers_that_were_asked_for_stand_on_the_first_screen(table, tmp_path):
    """The probabilities are those of `classify`, for the agent of the verdict and the one it is compared with."""
    est = estimate(counts(CELLS), "hierarchical", k=(1, 3))
    page, markdown = both(est, tmp_path, tiers=table)
    for agent in ("v1", "v2"):
        found = classify(est, agent, table=table)
        first = found.most_probable
        said = f"{agent} is “{first}” with a probability of {format_percent(found[first])}"
        assert said in page.words
        assert said in markdown
    plain, _ = both(est, tmp_path)
    assert "Which deployment tier?" not in plain.words
    with pytest.raises(InvalidArgument, match="unknown tiers 'own': valid: 'paper', 'gaussia'"):
        write_report(est, tmp_path / "page.html", tiers="own")
