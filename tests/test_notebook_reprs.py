"""What a notebook shows of a result: short, complete, and text whatever the names are."""

import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scripted import in_turn, turn, verdict

import agentic_bayes as ab
from agentic_bayes.estimation.engines.grid import quadrature
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.formatting import indicator_words
from agentic_bayes.result_table import MOST_ROWS, Table
from agentic_bayes.suites.results import RunResults
from agentic_bayes.suites.trial import TrialResult

HOSTILE = "</td><script>alert('x')</script>\u202e\u200b&amp;"
OTHER = '<img src="x" onerror="alert(1)">'
KINDS = (
    *("AgenticResult", "Agreement", "Comparison", "Estimate", "Evidence", "Gate", "JudgeCalibration", "Look", "Plan"),
    *("RunResults", "StoppingRule", "TierProbabilities", "ToolDiagnostics"),
)

FURTHER = (*("Ranking", "Sensitivity", "MeanScores", "ThresholdCurve", "ManyEstimates", "ManyGates", "SessionScore"),)


class Reader(HTMLParser):
    """Collects tags, cells and text, and whether every tag is closed in order."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.text, self.attributes = [], [], "", []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        """A tag opens."""
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        """The tag opened last is the one that closes."""
        assert self.open.pop() == tag

    def handle_data(self, data):
        """Text."""
        self.text += data


def counted(agents, tasks=12, trials=4):
    """An estimate of agents that differ, with one trial unscored."""
    rng = np.random.default_rng(0)
    rows = [
        (agent, f"{agent} {j}" if tasks > 100 else f"task {j} {HOSTILE}", i, float(rng.random() < (0.3 + 0.4 * place)))
        for place, agent in enumerate(agents)
        for j in range(tasks)
        for i in range(trials)
    ]
    table = pd.DataFrame(rows, columns=["agent", "task", "trial", "correct"])
    table.loc[0, "correct"] = np.nan
    return ab.estimate(ab.outcomes_from_table(table), k=(1, 3))


def judged():
    """Evidence of two agents: 40 attempts each, one unscored."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        [(agent, f"t{j % 20}", j // 20, rng.random(), "because") for agent in (HOSTILE, OTHER) for j in range(40)],
        columns=["agent", "task", "trial", "score", "reason"],
    )
    table.loc[0, "score"] = np.nan
    return ab.judges.evidence_from_table(table, judge=HOSTILE)


def tool_problems():
    """Diagnostics of a tool with a hostile name that was not called."""
    expected = {"expected_tools": [{"tool_name": HOSTILE}]}
    turns = turn(agentic={"tools_used": []}, ground_truth_agentic=expected)
    attempt = ab.Conversation(session_id="s", assistant_id=OTHER, task_id="t", conversation=(turns,))
    return ab.metrics.tool_diagnostics(ab.assess([attempt], judge=ab.ReferenceJudge()))


def seed_result():
    """What `Agentic.run` gives."""

    class Recorded(ab.gaussia.Retriever):
        def load_dataset(self):
            return [
                ab.Conversation(session_id=HOSTILE, assistant_id=OTHER, conversation=(turn(), turn(qa_id="q2"))),
            ]

    model = in_turn(verdict(1), verdict(0))
    return ab.gaussia.Agentic.run(
        Recorded, model=model, k=2, use_structured_output=False, statistical_mode=ab.gaussia.BayesianMode()
    )


@cache
def made():
    """One result of every kind, with hostile names wherever there are names."""
    est, evidence = counted((HOSTILE, OTHER)), judged()
    labels = evidence.to_pandas()[["agent", "task", "trial", "answer_score"]].dropna()
    labels["human"] = (labels.pop("answer_score") > 0.5).astype(int)
    raters = pd.DataFrame({HOSTILE: [0, 1, 1, 0, 1, 0], OTHER: [0, 1, 0, 0, 1, 0]})
    rule = ab.monitor(at_least=0.7, simulations=200)
    facts = {"suite": HOSTILE, "agent": OTHER, "planned": {HOSTILE: 2}, "digest": "0"}
    trials = (TrialResult(HOSTILE, 0, "pass", 1.0), TrialResult(HOSTILE, 1, "error", error="gone"))
    found = {
        "AgenticResult": seed_result(),
        "Agreement": ab.judges.agreement(raters, raters=[HOSTILE, OTHER], resamples=50),
        "Comparison": ab.compare(est, OTHER, baseline=HOSTILE, metric="pass^3"),
        "Estimate": est,
        "Evidence": evidence,
        "Gate": ab.gate(est, HOSTILE, at_least=0.6),
        "JudgeCalibration": ab.judges.calibrate_judge(evidence, labels),
        "Look": rule.look(est, HOSTILE),
        "Plan": ab.plan(est, OTHER, budget=60, trials=[2], simulations=20),
        "RunResults": RunResults(Path("run"), facts, trials),
        "StoppingRule": rule,
        "TierProbabilities": ab.classify(est, HOSTILE),
        "ToolDiagnostics": tool_problems(),
    }
    assert tuple(found) == KINDS
    return found


@cache
def further():
    """Results of many groups, thresholds and scores, with the same names."""
    est, evidence = counted((HOSTILE, OTHER)), judged()
    rows = [(agent, f"t{i}", HOSTILE, 1 + i % 2, 3) for agent in (HOSTILE, OTHER) for i in range(6)]
    table = pd.DataFrame(rows, columns=["agent", "task", "week", "successes", "trials"])
    groups = ab.estimate_many(table, split="week")
    return {
        "Ranking": ab.rank(est),
        "Sensitivity": est.sensitivity(),
        "MeanScores": ab.mean_scores(evidence),
        "ThresholdCurve": ab.threshold_curve(evidence, thresholds=(0.5, 0.7), method="hierarchical"),
        "ManyEstimates": groups,
        "ManyGates": ab.gate(groups, HOSTILE, at_least=0.5),
        "SessionScore": ab.metrics.agent_reliability([{"confidence": 0.5}, {"confidence": 0.9}], resamples=20),
    }


@pytest.mark.parametrize("kind", [*KINDS[1:], *FURTHER])
def test_every_table_has_its_forms(kind):
    """Markdown, HTML with every row, LaTeX with a line for each, pandas and JSON; names are text in all of them."""
    result = (made() | further())[kind]
    table = result.table()
    assert (result.to_markdown(), result.to_html(), result.to_latex()) == (
        *(table.to_markdown(), table.to_html(), table.to_latex()),
    )
    assert result.to_html().count("<tr>") == 1 + len(table.rows)
    body = result.to_latex().split("\\hline\n")[2]
    assert len(body.rstrip("\n").split(" \\\\\n")) == max(len(table.rows), 1)
    assert re.sub(r"\\[\\&%$#_{}]", "", body).count("&") == (len(table.header) - 1) * len(table.rows)
    assert isinstance(result.to_pandas(), pd.DataFrame)
    if kind != "RunResults":  # which is made up here, without what a run's folder records
        json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("kind", KINDS)
def test_a_plain_repr_is_one_line_that_begins_with_its_kind(kind):
    """Without HTML a result is one line, and no name in it can steer a terminal or break the line."""
    text = repr(made()[kind])
    assert text.startswith(f"{kind}: ")
    assert text.isprintable()
    assert len(text) < 1500


@pytest.mark.parametrize("kind", KINDS)
def test_names_stay_text_in_a_notebook(kind):
    """No name of an agent, task, tool, judge or suite becomes markup, and what is invisible is written out."""
    page = made()[kind]._repr_html_()
    read = Reader(page)
    assert not read.open
    assert set(read.tags) <= {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "small", "br"}
    assert page.isprintable()
    assert kind in ("Plan", "StoppingRule") or "alert(" in read.text


@pytest.mark.parametrize("kind", KINDS)
def test_a_notebook_may_be_light_or_dark(kind):
    """A result has no colour, font, script or style sheet of its own, and asks for nothing from elsewhere."""
    read = Reader(made()[kind]._repr_html_())
    assert {name for name, _ in read.attributes} <= {"class", "style", "scope"}
    styles = " ".join(value for name, value in read.attributes if name == "style")
    assert set(re.findall(r"([a-z-]+):", styles)) == {"margin", "text-align", "max-width"}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("Estimate", ("crossed", "95 % equal-tailed", "unit conversation", "correct", "population", "tasks")),
        ("Estimate", ("95 scored trials", "1 unscored; unit", "pass@k", "pass^k")),
        ("Comparison", ("in pass^3", "estimand population", "95 % equal", "crossed", "unit conversation", "12 tasks")),
        ("Comparison", ("expected loss", "odds ratio", "P(difference within ±2 points)", "indicator correct", "p = ")),
        ("Gate", ("P(pass^1 ≥ 0.6)", "estimand population", "needs 95 %", "95 % equal-tailed", "crossed")),
        ("Gate", ("12 tasks", "indicator correct")),
        ("Plan", ("recommended", "width of pass^1", "95 % equal-tailed", "simulated 20 times", "on a new task")),
        ("Evidence", ("80 interactions (79 scored, 1 unscored)", "not scored", "1 × ", "judge: ")),
        ("AgenticResult", ("1 of 2", "pass^2", "unit interaction", "answer ≥ 0.7", "BayesianMode", "ci_level=0.95")),
        ("TierProbabilities", ("pass@1 and pass^3 (population)", "crossed", "unit conversation", "paper table")),
        ("JudgeCalibration", ("threshold 0.7", "79 human labels", "95 % intervals", "specificity", "kappa")),
        ("StoppingRule", ("0.700 (the bar)", "95 % equal-tailed", "200 simulated runs", "on a new task")),
        ("Look", ("look 0 of 10", "P(pass^1 ≥ 0.7), needs", "on a new task", "95 % equal", "hierarchical", "correct")),
        ("RunResults", ("2 trials, 1 passed, 0 failed, 1 errored, 1 pending", "all graders", "1.000")),
        ("ToolDiagnostics", ("1 of 1", "not called", "counted in calls")),
        ("Agreement", ("6 items", "95 % percentile bootstrap", "kappa", "alpha")),
    ],
    ids=str,
)
def test_a_result_says_what_its_numbers_are(kind, words):
    """Unit, indicator, estimand, method, kind and probability of the interval, and denominators stand below a table."""
    text = Reader(made()[kind]._repr_html_()).text
    assert [word for word in words if word not in text] == []


def test_flags_are_explained():
    """A flag is followed by what it means."""
    once = counted(("solo",), trials=1)
    assert "prior_driven: no task was tried twice" in once._repr_html_()
    assert "prior_driven: no task was tried twice" in ab.gate(once, at_least=0.5, metric="pass^3")._repr_html_()


def test_a_frequentist_estimate_names_its_estimator():
    """Confidence intervals are not called credible, and what cannot be counted is a dash with a reason."""
    plain = ab.estimate(counted(("solo",)).outcomes, method="frequentist", k=(1, 5))
    text = Reader(plain._repr_html_()).text
    assert "unbiased estimate with 95 % confidence interval" in text
    assert "––" in text
    assert "no task has 5 trials" in text


def test_what_is_shown_is_bounded():
    """5,000 tasks of six agents are as few rows as a notebook has room for, and the rest is counted."""
    est = counted([f"v{i}" for i in range(6)], tasks=5000, trials=1)
    page = est._repr_html_()
    assert page.count("<tr>") == 1 + MOST_ROWS
    assert "… and 4 more rows" in page
    assert len(page) < 12_000
    pair = ab.compare(est, "v1", baseline="v0", tasks="own")
    assert len(pair._repr_html_()) < 5_000
    assert len(repr(pair)) < 1_500


def test_looking_at_a_result_fits_nothing(monkeypatch):
    """A notebook may show a result as often as it likes: no posterior is computed again."""
    shown = {kind: (repr(one), one._repr_html_()) for kind, one in made().items()}

    def refuse(*args, **kwargs):
        raise AssertionError("something was fitted")

    monkeypatch.setattr(quadrature, "fit_agents", refuse)
    monkeypatch.setattr(Estimate, "__post_init__", refuse)
    assert {kind: (repr(one), one._repr_html_()) for kind, one in made().items()} == shown


def test_numbers_stand_to_the_right():
    """A column of numbers is aligned to the right, one of names to the left."""
    page = Table(title="t", header=["name", "value"], rows=[["a", "0.420"], ["b", "–"], ["c", "<0.001"]]).to_html()
    assert page.count("text-align:right") == 4
    assert '<td style="text-align:left">a</td>' in page
    assert '<td style="text-align:right">&lt;0.001</td>' in page


@pytest.mark.parametrize(
    ("attrs", "words"),
    [
        ({"indicator": "correct"}, "correct"),
        ({"indicator": "answer", "threshold": 0.7}, "answer ≥ 0.7"),
        ({"indicator": "tools", "threshold": 0.7, "tool_threshold": 1.0}, "tools ≥ 1"),
        ({"indicator": "joint", "threshold": 0.7, "tool_threshold": 1.0}, "answer ≥ 0.7 and tools ≥ 1"),
        ({"indicator": "answer", "threshold": "0.7 | 0.8"}, "answer ≥ 0.7 | 0.8"),
    ],
    ids=str,
)
def test_an_indicator_says_where_it_was_cut(attrs, words):
    """The thresholds that made an indicator stand with it."""
    assert indicator_words(attrs) == words
