"""The HTML report as text: the verdict first, the summary's numbers, and nothing foreign that is more than text."""

import base64
import hashlib
import html
import itertools
import json
import re
import sys
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from fits import NEVER, STRONGER, UNEQUAL, WEAKER, counts
from hostile_records import HOSTILE, conversations, hostile, judged, record
from hypothesis import given
from hypothesis import strategies as st
from scripted import in_turn, verdict

from agentic_bayes.cli import app as cli
from agentic_bayes.decisions.compare import compare
from agentic_bayes.decisions.gate import gate, shown_beside
from agentic_bayes.decisions.missing import as_if
from agentic_bayes.decisions.rank import rank
from agentic_bayes.errors import EstimateError, InvalidArgument, UnknownName
from agentic_bayes.estimation.bounds import pass_bounds
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Conjugate, Hierarchical
from agentic_bayes.evidence.assess import assess
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.llm.judge import LLMJudge
from agentic_bayes.evidence.llm.store import ModelCall, Store
from agentic_bayes.evidence.reference.judge import ReferenceJudge
from agentic_bayes.formatting import (
    Metric,
    format_interval,
    format_number,
    format_percent,
    format_percent_range,
    format_points,
    format_points_range,
    points_words,
    signed,
)
from agentic_bayes.outcomes.count import count_outcomes
from agentic_bayes.reports.html import tasks as html_tasks
from agentic_bayes.reports.html.agents import heat_map
from agentic_bayes.reports.html.page import write_report
from agentic_bayes.reports.html.sections import comparison_table
from agentic_bayes.reports.html.text import cut, json_block, said, shown
from agentic_bayes.reports.html.verdict import worst_tasks

ROOT = Path(__file__).resolve().parents[2]
VOID = ("meta", "link", "input", "img", "br", "line", "rect", "path", "circle")


@dataclass
class Page(HTMLParser):
    """What a browser sees of the structure: elements, tables by caption, text."""

    text: str
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    scripts: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.said: list[tuple[str, str]] = []
        self.rows: list[list[str]] = []
        self.caption = ""
        self.feed(self.text)

    def handle_starttag(self, tag, attrs):
        """Begin an element."""
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.rows, self.caption = [], ""
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "script":
            self.scripts.append((dict(attrs).get("type") or "", ""))

    def handle_endtag(self, tag):
        """End one."""
        if tag in self.open:
            while self.open.pop() != tag:
                pass
        if tag == "table":
            self.tables[" ".join(self.caption.split())] = [[" ".join(c.split()) for c in row] for row in self.rows]

    def handle_data(self, data):
        """Take in text."""
        if "script" in self.open:
            kind, before = self.scripts[-1]
            self.scripts[-1] = (kind, before + data)
        elif "style" not in self.open:
            self.said.append((self.open[-1] if self.open else "", data))
            if "caption" in self.open:
                self.caption += data
            elif {"td", "th"} & set(self.open):
                self.rows[-1][-1] += data

    @property
    def words(self) -> str:
        """All text in one line."""
        return " ".join("".join(text for _, text in self.said).split())

    def verdict(self) -> str:
        """The first heading."""
        found = re.search(r"<h1[^>]*>(.*?)</h1>", self.text, re.DOTALL)
        return " ".join(re.sub(r"<[^>]*>", "", found[1]).split())

    def table(self, beginning: str) -> list[list[str]]:
        """The table whose caption begins like this."""
        return next(rows for caption, rows in self.tables.items() if caption.startswith(beginning))

    def data(self, place: int):
        """An embedded value."""

        def refuse(constant):
            raise AssertionError(f"{constant} is not JSON")

        return json.loads(self.scripts[place][1], parse_constant=refuse)


def written(est, folder, **more):
    """The report of an estimate."""
    return Page(write_report(est, folder / "report.html", **more).read_text(encoding="utf-8"))


# any characters, halves of surrogate pairs included, and what looks like markup
ANY_TEXT = (
    st.text(st.characters(), max_size=60) | st.text("<>&/!-'\"=abs \u202e\0", max_size=60) | st.sampled_from(HOSTILE)
)
TWO = {"v1": WEAKER, "v2": STRONGER}
POOLED = Conjugate(pool_tasks=True)  # where the method does not matter, the fastest


@pytest.fixture(scope="module")
def est():
    """Two agents of which the second is better."""
    return estimate(counts(TWO))


@pytest.fixture(scope="module")
def quick(est):
    """The same at one k, where two agents are compared once."""
    return est.with_k(1)


@pytest.fixture(scope="module")
def page(est, tmp_path_factory):
    """Its report."""
    return written(est, tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def judged_page(tmp_path_factory):
    """A report with evidence and conversations."""
    found = conversations()
    evidence = judged(found)
    est = estimate(count_outcomes(evidence, indicator="joint"), k=1)
    return written(est, tmp_path_factory.mktemp("judged"), evidence=evidence, conversations=found)


@pytest.fixture(scope="module")
def crowd():
    """The estimate of 13 agents on 4 tasks, of which the first is the easiest; later agents are better."""
    cells = {f"agent-{i:02d}-{'x' * 40}": [(min(i // 2 + t, 8), 8) for t in (4, 2, 1, 0)] for i in range(13)}
    return estimate(counts(cells), "conjugate", k=(1, 3))


@pytest.fixture(scope="module")
def crowded(crowd, tmp_path_factory):
    """Its report."""
    return written(crowd, tmp_path_factory.mktemp("crowded"), estimand="tasks")


class TestVerdict:
    """What comes first."""

    @pytest.mark.parametrize(
        ("agents", "head"),
        [
            ({"v1": WEAKER, "v2": STRONGER}, "v2 is better than v1"),
            ({"v1": STRONGER, "v2": WEAKER}, "v2 is worse than v1"),
            ({"v1": UNEQUAL[:4], "v2": UNEQUAL[:4]}, "Undecided between v1 and v2"),
            ({"v1": [(500, 500)] * 60, "v2": [(500, 500)] * 60}, "v2 and v1 are equivalent within ±2 points"),
        ],
        ids=["better", "worse", "undecided", "equivalent"],
    )
    def test_it_is_compares_own(self, agents, head, tmp_path):
        """The first heading says what `compare` found, its numbers stand below, and nothing else calls one better."""
        est = estimate(counts(agents), POOLED, k=1)
        page = written(est, tmp_path)
        found = compare(est, "v2", baseline="v1")
        wanted = head if found.verdict != "undecided" else "Undecided between v2 and v1"
        assert page.verdict() == wanted
        difference = f"{points_words(found.mean, 'percentage point')}, 95 % interval "
        difference += format_points_range(found.lower, found.upper)
        assert f"Per attempt: {found.verdict}. " in page.words
        assert f"{format_percent(found.prob_better)}; the difference is {difference}" in page.words
        if found.verdict != "better":
            assert "is better than" not in page.words.replace("Which version is better", "")

    def test_one_agent_is_an_estimate_in_a_sentence(self, tmp_path):
        """Where nothing is compared, the heading is the number with its interval."""
        est = estimate(counts({"solo": UNEQUAL}), k=(1, 3))
        row = est.summary(columns="all").iloc[0]
        interval = format_percent_range(row["lower"], row["upper"])
        head = f"solo: {format_percent(row['mean'])} success per attempt, 95 % interval {interval}"
        assert written(est, tmp_path).verdict() == head

    @pytest.mark.parametrize(
        ("bar", "head"),
        [(0.05, "v2 passes the gate"), (0.99, "v2 fails the gate"), (0.75, "v2 has not passed the gate: not enough")],
    )
    def test_a_gates_verdict_comes_first(self, quick, bar, head, tmp_path):
        """With a gate the heading is its verdict; what it asks, and how sure the answer is, stand below."""
        found = gate(quick, "v2", at_least=bar)
        page = written(quick, tmp_path, at_least=bar)
        assert page.verdict().startswith(head)
        assert f"sure that its rate of success per attempt on new tasks is at least {bar * 100:g} %." in page.words
        sure = found.probability if found.verdict != "fail" else 1 - found.probability
        assert f"We are {shown_beside(sure, 0.95)} sure" in page.words

    def test_a_gate_that_missing_trials_could_change_says_so_everywhere(self, tmp_path):
        """Heading, title and row give one reason why it is not settled, which is not a lack of evidence."""
        cells = counts({"v1": [(9, 9)] * 12}).copy(deep=True)
        cells["unscored"] = cells["unscored"] + 6
        page = written(estimate(cells, POOLED, k=1), tmp_path, at_least=0.8)
        reason = "missing trials could change the verdict"
        assert page.verdict() == f"v1 has not passed the gate: {reason}"
        assert page.table(f"Gate: not passed, {reason}")[1][2] == f"not passed, {reason}"

    def test_a_gate_is_on_what_the_page_asks(self, quick, tmp_path):
        """Agent, metric, k and estimand of the gate are the verdict's own, whoever they are."""
        found = gate(quick, "v1", at_least=0.5, metric="pass^3", estimand="tasks", confidence=0.8)
        page = written(quick, tmp_path, baseline="v2", at_least=0.5, metric="pass^3", estimand="tasks", confidence=0.8)
        assert "v1" in page.verdict()
        row = page.table("Gate: ")[1]
        assert row[0] == "v1: success three times in a row on these tasks, at least 50 %"
        assert row[1] == shown_beside(found.probability, 0.8)

    def test_agent_baseline_and_metric_are_as_asked(self, quick, tmp_path):
        """The reverse question has the reverse answer; a value may be the baseline."""
        assert written(quick, tmp_path, agent="v1").verdict() == "v1 is worse than v2"
        assert written(quick, tmp_path, agent="v2", baseline=0.1).verdict() == "v2 is better than 0.100"
        page = written(quick, tmp_path, metric="pass@2", estimand="tasks")
        one = compare(quick, "v2", baseline="v1", metric="pass@2", estimand="tasks")
        assert f"Within two attempts: {one.verdict}. The probability of a higher rate is" in page.words

    def test_of_several_agents_the_best_is_compared_with_the_next(self, tmp_path):
        """With three agents the ranks are shown, and the first of them is compared with the second."""
        est = estimate(counts({"a": STRONGER, "b": WEAKER, "c": UNEQUAL}), k=1)
        page = written(est, tmp_path)
        assert page.table("Ranking by success per attempt on new tasks")[1][0].startswith("a")
        assert "Against c, per attempt: " in page.words
        assert "Difference (new tasks): a minus c, on the 12 tasks that both tried." in page.words

    def test_of_several_agents_it_says_who_leads_who_may_be_better_and_who_is_behind(self, tmp_path):
        """Whom nothing tells from the leader is named, or counted where they are many; without such it is the best."""
        well, badly = [(9, 9), (8, 9)] * 4, [(0, 9), (1, 9)] * 4
        for cells, heading, below in (
            (
                [well, badly, badly],
                "a is the best of 3 agents per attempt",
                "The other 2 agents are clearly behind (",
            ),
            (
                [well, [(8, 9)] * 8, badly],
                "a leads 3 agents per attempt; b is not ruled out",
                "The other agent is clearly behind (below 2.5 %).",
            ),
            (
                [well, well, badly],
                "No clear leader among 3 agents per attempt; a or b may be best",
                "b 50 %. The other",
            ),
            (
                [well] * 4 + [badly],
                "No clear leader among 5 agents per attempt; a or three others may be best",
                "c 50 %, d 50 %.",
            ),
            ([well] * 3, "No clear leader among 3 agents per attempt", "better than a: b 50 %, c 50 %. Leading does"),
        ):
            est = estimate(counts(dict(zip("abcde", cells, strict=False))), Conjugate(pool_tasks=True), k=1)
            page = written(est, tmp_path)
            assert page.verdict() == heading
            assert below in page.words
        # who is asked about two of them hears of these two
        assert written(est, tmp_path, agent="b", baseline="c").verdict() == "Undecided between b and c"

    @pytest.mark.parametrize(
        ("cells", "why"),
        [
            ([[(1, 2), (2, 2)], [(2, 2), (1, 2)]], "the frequentist method has no posterior"),
            ([[(1, 2), (2, 2), NEVER, NEVER], [NEVER, NEVER, (2, 2), (1, 2)]], "'v2' and 'v1' share 0 tasks"),
        ],
        ids=["shared", "apart"],
    )
    def test_without_a_posterior_nothing_is_compared(self, cells, why, tmp_path):
        """Numbers, and why agents are not compared; asked for, it is an error."""
        est = estimate(counts(dict(zip(("v1", "v2"), cells, strict=True))), method="frequentist", k=1)
        page = written(est, tmp_path)
        assert f"The agents are not compared: {why}" in page.words
        assert re.match(r"v2: \d+ % success per attempt", page.verdict())
        with pytest.raises(EstimateError, match=why):
            written(est, tmp_path, agent="v2", baseline="v1")

    def test_the_verdicts_at_other_k_are_told(self, est, page):
        """Whoever reads the first lines alone learns where the verdict is another one at more attempts."""
        one, further = (compare(est, "v2", baseline="v1", metric=metric) for metric in ("pass^3", "pass^5"))
        probability = f"The probability of a higher rate is {format_percent(one.prob_better)};"
        assert f"For three attempts in a row: {one.verdict}. {probability}" in page.words
        shown = {row[0]: row[1] for row in page.table("The difference")[1:]}
        assert (shown["pass^3"], shown["pass^5"]) == (one.verdict, further.verdict)

    def test_the_heading_says_what_the_verdict_is_not(self, tmp_path):
        """Better per attempt and undecided for three in a row is said in one sentence, with the rates of both."""
        cells = {"v1": [(c, 4) for c in (0, 0, 0, 1, 1, 4) * 3], "v2": [(c, 4) for c in (1, 1, 1, 2, 2, 4) * 3]}
        est = estimate(counts(cells), k=(1, 3))
        verdicts = [compare(est, "v2", baseline="v1", metric=metric).verdict for metric in ("pass^1", "pass^3")]
        assert verdicts == ["better", "undecided"]
        page = written(est, tmp_path, title="Release 2", note="18 tasks of support", date="5 January 2027")
        assert page.verdict() == "v2 is better than v1 per attempt; not yet shown for three attempts in a row"
        assert all(text in page.words for text in ("5 January 2027", "Release 2", "18 tasks of support"))
        for row in (
            est.summary(columns="all")
            .query("estimand == 'population' and metric in ['pass^1', 'pass^3']")
            .to_dict("records")
        ):
            assert f"{format_percent(row['mean'])} {format_percent_range(row['lower'], row['upper'])}" in page.words

    def test_the_questions_of_a_reader_are_answered(self, page):
        """How sure, what is missing, what next, on what data, what failed; a flag asks one more; no formula answers."""
        asked = [text for tag, text in page.said if tag == "dt"][:7]
        assert asked == [
            "How sure are we?",
            "What is missing?",
            "What next?",
            "What would twice the tasks change?",
            "What was tested?",
            "What got worse?",
            "What failed most?",
        ]
        assert "3 of 90 trials could not be scored (0 of v2, 3 of v1); they count neither" in page.words
        low, high = (format_percent(n / 42) for n in (14, 17))
        assert f"all passed, the shares of all trials would be: v1 {low} or {high}. These are counts;" in page.words
        assert "The verdict stands: in the worst case for it, it is still “better”." in page.words
        assert "agentic-bayes gate FILE --agent v2 --metric pass^1 --at-least 0.8" in page.words

    def test_twice_the_tasks_make_intervals_narrower(self, est, page, tmp_path):
        """What is promised of an interval is what a fit to as many tasks again gives, and what is open stays named."""
        one = compare(est, "v2", baseline="v1")
        (text,) = re.findall(r"intervals would be: per attempt (\S+) to (\S+) points;", page.words)
        promised = float(text[1]) - float(text[0])
        twice = compare(estimate(counts({name: cells * 2 for name, cells in TWO.items()})), "v2", baseline="v1")
        assert promised == pytest.approx(100 * (one.upper - one.lower) / 2**0.5, abs=1)
        assert promised == pytest.approx(100 * (twice.upper - twice.lower), rel=0.1)
        assert "With 20 tasks, tried as often, intervals would be about 0.7 times as wide." in page.words
        tasks = written(est, tmp_path, estimand="tasks").words
        assert "Nothing, since the numbers are about these tasks only." in tasks

    def test_what_is_open_has_a_command_that_could_settle_it(self, tmp_path):
        """Better per attempt and open for three in a row: the page says how to plan for the latter."""
        cells = {"v1": [(c, 4) for c in (0, 0, 0, 1, 1, 4) * 3], "v2": [(c, 4) for c in (1, 1, 1, 2, 2, 4) * 3]}
        est = estimate(counts(cells), k=(1, 3))
        gap = compare(est, "v2", baseline="v1", metric="pass^3").mean
        words = written(est, tmp_path).words
        assert f"agentic-bayes plan FILE --agent v2 --metric pass^3 --difference {round(gap, 2):g}" in words
        assert re.search(r"for three attempts in a row \+\S+ to \S+ points, no longer undecided\.", words)

    def test_missing_trials_that_could_change_the_verdict_are_said_to(self, tmp_path):
        """If what is missing had failed for one and passed for the other, nothing would be shown."""
        cells = {"v1": [(1, 4, 0), (2, 4, 0)] * 10, "v2": [(2, 4, 4), (3, 4, 0)] * 10}
        est = estimate(counts(cells), "hierarchical", k=1)
        worst = estimate(counts(cells | {"v2": [(2, 8), (3, 4)] * 10}), "hierarchical", k=1)
        verdicts = [compare(one, "v2", baseline="v1").verdict for one in (est, worst)]
        assert verdicts == ["better", "undecided"]
        changed = "if those of v2 had all failed, it would be “undecided”"  # v1 lacks none
        words = written(est, tmp_path).words
        assert f"The verdict depends on them: {changed}." in words
        assert "First run or judge the 40 trials again that could not be scored: they could change" in words
        few = estimate(counts({"v2": [(3, 4), (2, 3, 1), *[(3, 4)] * 13]}), POOLED, k=1)
        assert gate(as_if(few, failed="v2"), "v2", at_least=0.5).verdict == "pass"
        stands = "The verdict stands: in the worst case for it, it is still “passed”."
        assert stands in written(few, tmp_path, at_least=0.5).words
        clear = estimate(counts({"v1": [(0, 5, 1)] * 12, "v2": [(5, 5, 1)] * 12}), POOLED, k=1)
        words = written(clear, tmp_path).words
        assert ("it is still “better”" in words, "could change the" in words) == (True, False)
        alone = written(estimate(counts({"v1": [(1, 2), (0, 1, 1)]}), POOLED, k=1), tmp_path).words
        assert "judge the trial again that could not be scored: it could change the rate." in alone

    def test_a_page_without_a_title_says_what_it_is_about(self, quick, crowded, tmp_path):
        """Who is compared with whom, how many agents, or of whom the rate is."""

        def title(page):
            return " ".join(re.sub("<[^>]*>", "", re.search(r'<p class="title">(.*?)</p>', page.text)[1]).split())

        assert title(crowded) == "13 agents compared"
        assert title(written(quick, tmp_path)) == "v2 compared with v1"
        assert title(written(quick, tmp_path, at_least=0.5)) == "Reliability of v2"
        assert title(written(quick, tmp_path, title="Release 2")) == "Release 2"


class TestManyAgents:
    """Thirteen agents fit on a few screens."""

    def test_the_ranking_has_every_agents_rate(self, crowd, crowded):
        """Best first: rate and interval in per cent, the probability of being best, the interval of the rank."""
        found = rank(crowd, estimand="tasks").to_pandas()
        rows = crowded.table("Ranking by ")[1:]
        assert [row[2:4] for row in rows] == [
            [format_percent(r["mean"]), format_percent_range(r["lower"], r["upper"])] for r in found.to_dict("records")
        ]
        assert [row[4] for row in rows] == [format_percent(p) for p in found["prob_best"]]

    def test_there_is_a_ranking_by_several_in_a_row(self, crowd, crowded):
        """Folded below the first, with its own leader and rivals, who are also named on the first screen."""
        found = rank(crowd, metric="pass^3", estimand="tasks").to_pandas()
        rows = crowded.table("Ranking by success three times in a row on these tasks")[1:]
        assert [row[4] for row in rows] == [format_percent(p) for p in found["prob_best"]]
        best = format_percent(found["prob_best"].iloc[0])
        assert f"is best for three attempts in a row with a probability of {best}." in crowded.words

    def test_who_may_be_as_good_as_the_best_is_named(self, crowd):
        """Rivals of the first are better with a probability of 2.5 % or more, which is that of `superiority`."""
        ranking = rank(crowd, estimand="tasks")
        best, *others = (row["agent"] for row in ranking.rows)
        ahead = ranking.superiority()[best]
        assert ranking.rivals == {name: pytest.approx(ahead[name]) for name in others if ahead[name] >= 0.025}

    def test_the_heat_map_goes_from_best_to_worst_and_easiest_to_hardest(self, crowd):
        """Rows are in the order that is given, columns by difficulty, and a cell's shade is the share passed."""
        order = list(range(13))[::-1]
        found = heat_map(crowd, order)
        assert (found.agents, found.tasks) == (tuple(order), (0, 1, 2, 3))
        shares = (crowd.counts.successes / crowd.counts.trials)[order]
        for y, x in ((0, 0), (12, 3), (6, 1)):
            (opacity,) = [shade for shade, path in found.shades if f"M{x} {y}h" in path]
            assert opacity == pytest.approx(0.08 + 0.92 * shares[y, x], abs=1e-3)
        assert (found.unscored, found.labels, found.ends) == ("", crowd.counts.tasks, ())
        assert heat_map(estimate(counts(TWO), "conjugate", k=1), [0, 1]) is None
        gap = estimate(counts({"a": [(1, 1), NEVER], "b": [(1, 1), (0, 1)], "c": [(0, 1), (0, 1)]}), "conjugate", k=1)
        assert heat_map(gap, [0, 1, 2]).unscored == "M1 0.9l.94-.9"  # of a only, where b and c have pale cells

    def test_long_names_are_whole_where_they_are_pointed_at(self, crowd, crowded):
        """A long name is shown without its middle, and its title has all of it."""
        titles = {attrs.get("title") for _, attrs in crowded.tags}
        assert set(crowd.agents) <= titles
        assert "agent-12-" in crowded.table("Ranking by ")[1][0]
        assert "…" in crowded.table("Ranking by ")[1][0]

    def test_titles_show_what_tells_two_long_names_apart(self, tmp_path):
        """Names that differ in their middle only are not shortened to the same."""
        first, second = (f"{'agent-' * 10}{part}{'-release' * 10}" for part in ("OLD", "NEW"))
        cells = {first: [(9, 9), (0, 9)] * 3, second: [(0, 9), (9, 9)] * 3}
        page = written(estimate(counts(cells), "hierarchical", k=1), tmp_path)
        titles = [caption for caption in page.tables if re.match("Tasks that agent", caption)]
        assert len(titles) == 2  # lost, won
        assert all("OLD" in title and "NEW" in title for title in titles)
        assert re.search(r"Tasks lost to [^:]*NEW", page.words)

    def test_long_tables_are_folded(self, crowded, page):
        """Of many agents only pictures, the ranking and the hardest tasks stand open; of two, all tables do."""
        title = re.compile(r"<summary><bdi[^>]*>(Tasks that failed most|The difference)</bdi></summary>")
        assert title.findall(crowded.text) == ["The difference"]
        assert title.findall(page.text) == []

    def test_long_names_of_tasks_keep_what_tells_them_apart(self, tmp_path):
        """In every table a long task is shown without its middle, and whole where it is pointed at."""
        tasks = [f"{'refund ' * 12}{part}{' order' * 12}" for part in ("ONE", "TWO")]
        outcomes = counts({"v1": [(0, 9), (0, 9)], "v2": [(9, 9), (9, 9)]}).assign_coords(task=tasks)
        page = written(estimate(outcomes, "conjugate", k=1), tmp_path)
        briefs = list(page.data(1)["briefs"].values())
        assert all(len(brief) <= 60 for brief in briefs)
        assert ["ONE" in briefs[0], "TWO" in briefs[1]] == [True, True]
        won = page.table("Tasks that v2 won against v1")[1:]
        assert sorted(row[0] for row in won) == sorted(briefs)
        assert {attrs.get("title") for tag, attrs in page.tags if tag == "span"} >= set(tasks)

    def test_a_difference_is_drawn_with_its_direction(self, est, page, tmp_path):
        """Which side is whose, and the numbers next to each line; a value is a side too."""
        picture = re.search(r'<figure class="difference">.*?</figure>', page.text, re.DOTALL)[0]
        sides = re.sub(r"<[^>]+>", "", re.search(r'<li class="sides">(.*?)</li>', picture)[1])
        assert sides == "← v1 betterv2 better →"
        one = compare(est, "v2", baseline="v1")
        assert f"<strong>{format_points(one.mean)}</strong> {format_points_range(one.lower, one.upper)}" in picture
        fixed = written(estimate(counts(TWO), "conjugate", k=1), tmp_path, agent="v2", baseline=0.5)
        assert "← below 0.5" in re.sub(r"<[^>]+>", "", fixed.text)

    def test_agents_stand_in_one_order(self, crowd, crowded):
        """From the best to the worst: trials, estimates, curves and columns of tasks as in the ranking."""
        ranked = [row["agent"] for row in rank(crowd, estimand="tasks").rows]
        assert [row[0] for row in crowded.table("Trials by agent")[1:]] == ranked
        assert [crowded.data(1)["agents"][i]["name"] for i in crowded.data(1)["shown"]] == ranked[:3]
        curves = re.search(r'<svg class="curves".*?</svg>', crowded.text, re.DOTALL)[0]
        assert [html.unescape(name) for name in re.findall(r"<g><title>(.*?)</title>", curves)] == ranked[:6]

    def test_curves_of_many_agents_do_not_pile_up(self, crowded, page):
        """Only the best of six has a band, and none a dashed curve; of two agents both have both."""
        for text, bands, dashed in ((crowded.text, 1, 0), (page.text, 2, 2)):
            for curves in re.findall(r'<svg class="curves".*?</svg>', text, re.DOTALL):
                assert (curves.count('class="band'), curves.count('class="plugin')) == (bands, dashed)

    def test_the_table_of_tasks_has_a_few_columns(self, crowded):
        """Three agents have columns, whichever the reader chooses; the data of all are there."""
        tasks = crowded.data(1)
        assert (len(tasks["shown"]), len(tasks["agents"])) == (3, 13)
        assert crowded.table("Tasks that failed most")[1][1:] == ["13 of 13", "2 of 13", "36 of 104"]


class TestNumbers:
    """All numbers are those of the estimate."""

    @pytest.mark.parametrize("method", ["hierarchical", "crossed", "conjugate", "frequentist"])
    def test_the_estimates_are_the_summarys(self, method, tmp_path):
        """Every mean and interval of the tables, for every method and estimand that it defines."""
        est = estimate(counts(TWO), method=method, k=(1, 3))
        page = written(est, tmp_path)
        frame = est.summary(columns="all")
        captions = {"population": "On a new task of this kind", "tasks": "On these tasks"}
        named = {estimand: caption for estimand, caption in captions.items() if caption in page.tables}
        assert set(named) == set(frame["estimand"]) - {"task"}
        assert re.search(rf"Method: {method}, .* 95 % .*; unit conversation, indicator correct; ", page.words)
        for estimand, caption in named.items():
            shown = {(row[0], row[1]): row[2:4] for row in page.tables[caption][1:]}
            found = frame[(frame["estimand"] == estimand) & (frame["metric"] != "pass@1")]  # it is pass^1
            found = found.to_dict("records")
            if method == "frequentist":
                found = [r for r in found if r["estimator"] == "unbiased"]
            assert shown == {
                (r["metric"], r["agent"]): [format_number(r["mean"]), format_interval(r["lower"], r["upper"])]
                for r in found
            }

    def test_the_baselines_stand_beside(self, est, page):
        """Unbiased and plug-in, with their intervals."""
        frame = est.baseline(columns="all")
        frame = frame[(frame["estimand"] == "population") & (frame["metric"] == "pass^3")]
        rows = {row[1]: row[5:7] for row in page.table("On a new task") if row[0] == "pass^3"}
        for r in frame.to_dict("records"):
            text = f"{format_number(r['mean'])} {format_interval(r['lower'], r['upper'])}"
            assert rows[r["agent"]][r["estimator"] == "plugin"] == text

    def test_every_k_of_the_slider_is_the_estimates(self, est, page):
        """The embedded numbers at every k are those of `with_k`."""
        embedded = page.data(0)
        frame = est.with_k([k for k, _ in embedded]).summary(columns="all")
        frame = frame[frame["estimand"] == "population"]
        assert [k for k, _ in embedded] == [1, 2, 3, 4, 5]
        for k, rows in embedded:
            own = frame[frame["k"] == k].to_dict("records")
            assert [row[:3] for row in rows] == [
                [r["metric"], format_number(r["mean"]), format_interval(r["lower"], r["upper"])] for r in own
            ]
            assert [row[4] for row in rows] == [r["flags"] for r in own]

    def test_every_table_of_numbers_says_what_they_are(self, est, page):
        """Place and probability of the interval are said; one line has the method, and its words stand nowhere else."""
        assert {"At k = 1, on a new task of this kind", "On a new task of this kind"} <= set(page.tables)
        assert not [caption for caption in page.tables if re.search("crossed|estimand|equal-tailed|posterior", caption)]
        method = "Method: crossed, posterior mean with 95 % equal-tailed interval; unit conversation, indicator correct"
        assert page.words.count(method) == 1
        unfolded = Page(re.sub(r"<details.*?</details>", "", page.text, flags=re.DOTALL)).words
        others = re.sub(r"Method: .*?the estimand tasks\.", "", unfolded)
        assert not re.search("posterior|equal-tailed|frequentist|estimand|plug-in|unbiased|Pareto|Wilson", others)
        assert "bands: 95 % intervals; dashed" in page.words
        assert "the estimated success rate on this task with its 95 % interval." in page.words
        assert "Difference (new tasks): v2 minus v1, on the 10 tasks that both tried." in page.words
        assert not re.search(r"<(?! ?[\d.])|Undefined|None", page.words)

    def test_the_numbers_of_the_curves_are_each_agents_own(self, est, page):
        """At k = 1, where pass@1 is left out, as elsewhere."""
        rows = page.table("Means and intervals over k")[1:]
        for agent in est.agents:
            for metric in ("pass^1", "pass@3", "pass^3"):
                mean = est.distribution(agent, metric=metric).mean
                shown = [row[2] for row in rows if row[0] == metric and row[1] == agent]
                assert shown == [format_number(mean)]

    def test_a_projection_says_so_with_its_bounds(self, est, page):
        """Where no task was tried so often the bounds without a model stand in place of an unbiased estimate."""
        rows = [row for row in page.table("On a new task") if row[0] == "pass^5"]
        assert [row[5] for row in rows] == ["–", "–"]
        for row in rows:
            bounds = pass_bounds(*est.counts.groups(est.agent_index(row[1])), Metric("pass^5"), prob=0.95)
            without = f"without a model it could be anywhere from {format_percent_range(*bounds)}"
            assert row[7].startswith("a projection: no task was tried 5 times; ")
            assert without in row[7]

    def test_evidence_of_other_conversations_is_said(self, tmp_path):
        """Where the evidence is not what was counted, the page says so beside the counts, and not where it is."""
        evidence = judged(conversations(4))
        est = estimate(count_outcomes(evidence), POOLED, k=1)
        part = Evidence(tuple(row for row in evidence.rows if row.trial == 0))
        assert "The evidence holds" not in written(est, tmp_path, evidence=evidence).words
        page = written(est, tmp_path, evidence=part)
        assert "The evidence holds 8 conversations, the counts 24: " in page.words

    def test_denominators(self, page):
        """Per agent: tasks, trials scored, passed, failed, not scored, trials per task."""
        assert page.table("Trials by agent")[1:] == [
            ["v1", "11", "39", "14", "25", "3", "3 to 4"],
            ["v2", "12", "48", "39", "9", "0", "4"],
        ]

    def test_the_tasks_are_the_counts(self, est, page):
        """The embedded columns hold every count, and the posterior of every task."""
        tasks = page.data(1)
        assert tasks["names"] == list(est.counts.tasks)
        for index, column in enumerate(tasks["agents"]):
            assert column["passed"] == est.counts.successes[index].tolist()
            assert column["scored"] == est.counts.trials[index].tolist()
            assert column["unscored"] == est.counts.unscored[index].tolist()
        frame = est.summary(columns="all", tasks=True)
        frame = frame[(frame["estimand"] == "task") & (frame["metric"] == "pass^1")]
        for r in frame[frame["agent"] == "v2"].to_dict("records"):
            text = tasks["agents"][1]["text"][tasks["names"].index(r["task"])]
            assert text == f"{format_number(r['mean'])} {format_interval(r['lower'], r['upper'])}"

    def test_the_rows_of_a_task_agree(self, est, page):
        """Means of a difference are differences of means, also where agents tried different tasks."""
        tasks = page.data(1)
        old, new = (agent["mean"] for agent in tasks["agents"])
        for before, after, mean in zip(old, new, tasks["difference"]["mean"], strict=True):
            if mean is not None:
                assert mean == pytest.approx(after - before, abs=2e-6)

    def test_a_task_is_in_the_measure_of_the_verdict(self, est, tmp_path):
        """By pass^3 the agents' numbers are of three in a row, as is their difference, whose head names them."""
        tasks = written(est, tmp_path, metric="pass^3").data(1)
        frame = est.summary(columns="all", tasks=True).query(
            "estimand == 'task' and metric == 'pass^3' and agent == 'v2'"
        )
        shown_means = dict(zip(tasks["names"], tasks["agents"][1]["mean"], strict=True))
        assert all(shown_means[r["task"]] == pytest.approx(r["mean"], abs=1e-6) for r in frame.to_dict("records"))
        assert tasks["difference"]["head"] == ["v2 − v1", "chance v2 is better"]

    def test_what_got_worse_is_named(self, tmp_path):
        """A task that one agent always passed and the next never is a line on the first screen, and has a table."""
        cells = {"v1": [(4, 4), *[(0, 4), (4, 4)] * 8], "v2": [(0, 4), *[(1, 4), (4, 4)] * 8]}
        est = estimate(counts(cells), "hierarchical", k=1)
        page = written(est, tmp_path)
        task = compare(est, "v2", baseline="v1").lost[0]
        sure = f"{shown_beside(1 - task.prob_better, 0.9)} sure"
        assert f"Tasks lost to v1: task 1 (4 of 4 → 0 of 4, {sure})." in page.words
        interval = signed(f"{format_number(task.mean)} {format_interval(task.lower, task.upper)}")
        assert page.table("Tasks that v2 lost to v1")[1] == ["task 1", "4 of 4", "0 of 4", interval, sure]
        assert page.data(1)["difference"]["share"][0].endswith(" %\nlost")
        crossed = estimate(counts(cells), "crossed", k=1)  # there task 1 is easy for v1, and its mean not the lowest
        assert worst_tasks(crossed, ["v2"])["v2"][0] == ("task 1", 0, 4)

    def test_where_nothing_is_won_the_counts_are_shown(self, tmp_path):
        """The largest drop in the counts comes first, and is no loss: it may be chance."""
        cells = {"v1": [(1, 1), *[(1, 2)] * 9], "v2": [(0, 1), *[(1, 2)] * 9]}
        page = written(estimate(counts(cells), "hierarchical", k=1), tmp_path)
        assert "The largest drop, task 1 (1 of 1 → 0 of 1), may be chance." in page.words
        assert [row[0] for row in page.table("Tasks on which the counts differ most; none of them")[1:]] == ["task 1"]

    def test_a_test_that_says_otherwise_is_explained(self, quick):
        """Where the model says better and p is above .05, or the other way round, words say why; else none do."""
        one = compare(quick, "v2", baseline="v1")
        for wanted, p, explained in (("better", 0.01, False), ("better", 0.052, True), ("undecided", 0.04, True)):
            lower = 0.01 if wanted == "better" else -0.01
            test = replace(one.frequentist, p_value=p)
            changed = replace(one, lower=lower, upper=0.4, frequentist=test)
            table = comparison_table([one, changed])  # what is not the page's own verdict is explained below the table
            assert table.rows[1][1] == changed.verdict == wanted
            assert ("Treat the verdict as" in changed.disagreement) == explained
            assert ("verdict and the classical test disagree" in table.notes[-1]) == explained

    def test_equal_counts_are_no_lead(self, tmp_path):
        """0 of 4 against 0 of 4 is neither won nor lost, however much better an agent is elsewhere."""
        cells = {"v1": [(0, 4), *[(1, 4)] * 20], "v2": [(0, 4), *[(4, 4)] * 20]}
        est = estimate(counts(cells), "hierarchical", k=1)
        difference = written(est, tmp_path).data(1)["difference"]
        assert abs(difference["better"][0] - 0.5) > 0.4  # the agents are that different
        assert (difference["lead"][0], difference["share"][0]) == (0, "even")
        assert difference["lead"][1:] == [1] * 20

    def test_groups_are_in_the_report(self, tmp_path):
        """Numbers of every group of tasks, and the difference in each."""
        cells = {"v1": [(1, 4), (2, 4), (3, 4), (1, 4)], "v2": [(4, 4), (3, 4), (4, 4), (2, 4)]}
        outcomes = counts(cells).assign_coords(domain=("task", ["refund", "refund", "cancel", "cancel"]))
        est = estimate(outcomes, "conjugate", k=1, by="domain")
        page = written(est, tmp_path, estimand="tasks")
        assert [row[0] for row in page.table("v2, by domain")[1:]] == ["cancel", "refund"]
        found = compare(est, "v2", baseline="v1", estimand="tasks")
        assert [row[2] for row in page.table("The difference by group")[1:]] == [
            signed(f"{format_number(one.mean)} {format_interval(one.lower, one.upper)}") for one in found.groups
        ]

    def test_the_tasks_that_drive_it_are_compares(self, est, page):
        """Lost and won tasks, with both counts."""
        found = compare(est, "v2", baseline="v1")
        rows = page.table("Tasks that v2 won against v1")[1:]
        assert [row[0] for row in rows] == [one.task for one in found.won]
        first = found.won[0]
        assert rows[0][1:3] == [
            f"{first.baseline_successes} of {first.baseline_trials}",
            f"{first.successes} of {first.trials}",
        ]
        assert rows[0][4] == f"{shown_beside(first.prob_better, 0.9)} sure"

    def test_what_is_undefined_is_a_dash_with_its_reason(self, tmp_path):
        """An agent of which nothing was scored has dashes and the reason; the data hold null."""
        est = estimate(counts({"v1": [(0, 0, 2), (0, 0, 1)], "v2": [(1, 2), (2, 2)]}), k=(1, 3))
        page = written(est, tmp_path)
        row = next(row for row in page.table("On these tasks") if row[:2] == ["pass^1", "v1"])
        assert (row[2:4], "nothing was scored" in row[-1]) == (["–", "–"], True)
        assert "– (nothing was scored)" in page.words
        assert "the shares of all trials would be: v1 0 % or 100 %." in page.words
        assert "NaN" not in page.text
        assert "nan" not in page.words.lower().split()

    def test_flags_say_what_they_mean_and_where(self, page):
        """A flag of any number is explained, with agents and k."""
        assert "extrapolated: k exceeds every number of trials" in page.words
        assert "(v1, v2; new tasks, these tasks; k = 5)." in page.words

    def test_only_k_that_were_asked_for_are_in_the_table(self, tmp_path):
        """The slider knows more k than the tables, a large one too."""
        page = written(estimate(counts({"a": UNEQUAL}), k=(2, 100)), tmp_path)
        assert {row[0] for row in page.table("On a new task")[1:]} == {"pass@2", "pass@100", "pass^2", "pass^100"}
        assert [k for k, _ in page.data(0)] == [1, 2, 3, 4, 5, 6, 10, 20, 50, 100]


class TestEvidence:
    """Scores, reasons, tools, judges, cost."""

    def test_what_failed_most(self, judged_page):
        """Worst tasks, and what went wrong by kind and agent; the literal reason is inside."""
        assert judged_page.table("Tasks that failed most")[1][2] == "1 of 3"
        head, first, *_ = judged_page.table("What went wrong in")
        assert head == ["what went wrong", "trials", "tasks", "v1", "v2"]
        assert first[0].startswith("wrong number another number, date or code than expected")
        assert "Expected 12 eur; the answer says " in first[0]
        assert "Most common failure: wrong number" in judged_page.words

    def test_judge_rubric_and_tools(self, judged_page):
        """Who judged is named with its version; tool use is counted."""
        rows = judged_page.table("Who judged")
        assert ["judge", "reference-judge/4"] in rows
        assert any(row[0] == "tokens and cost" and "not known" in row[1] for row in rows)
        assert judged_page.table("Evidence: ")[1][0] == "v1"

    def test_attempts_have_their_verdicts(self, judged_page):
        """Each attempt is embedded once, with the verdict by which it was counted."""
        attempts = judged_page.data(2)["trials"]
        assert len(attempts) == 72
        tasks = judged_page.data(1)
        for agent, column in enumerate(tasks["agents"]):
            for task, passed in enumerate(column["passed"]):
                own = [one for one in attempts if one[0] == agent and one[1] == [task]]
                assert sum(one[4] == "pass" for one in own) == passed
                assert sum(one[4] == "fail" for one in own) == column["scored"][task] - passed
        assert all((one[4] == "fail") == any(turn[3] == "fail" for turn in one[6]) for one in attempts)

    @pytest.mark.parametrize(("unit", "first"), [("interaction", "v1 task 1 0"), ("question", "task 1-1")])
    def test_attempts_are_found_from_any_unit(self, unit, first, tmp_path):
        """Where a row is a session or a question, its conversations are opened from there."""
        found = conversations(tasks=2)
        evidence = judged(found)
        page = written(estimate(count_outcomes(evidence, unit=unit), POOLED, k=1), tmp_path, evidence=evidence)
        tasks, attempts = page.data(1)["names"], page.data(2)["trials"]
        assert len(attempts) == 12
        assert [one for one in attempts if tasks.index(first) in one[1]]

    def test_all_agents_together(self, tmp_path):
        """Agents counted as one keep their names on their attempts."""
        found = conversations(tasks=2)
        evidence = judged(found)
        page = written(estimate(count_outcomes(evidence, agents="together"), POOLED, k=1), tmp_path, evidence=evidence)
        assert {one[5] for one in page.data(2)["trials"]} == {"v1", "v2"}

    def test_what_a_store_knows_is_shown(self, quick, tmp_path):
        """Judgements, tokens and cost, by model."""
        with Store(":memory:") as store:
            store.add("key", "gpt", [ModelCall(0.0, 1.0, 1200, 34, 0.5)], None)
            rows = written(quick, tmp_path, store=store).table("Who judged")
        words = "0 judgements by 1 call (0 failed), 1,200 tokens in, 34 out, cost 0.5"
        assert ["asked: gpt", words] in rows

    def test_several_judges_agree_or_not(self, tmp_path):
        """With a second judge among the metrics, agreement is shown with its interval."""
        second = LLMJudge(in_turn(verdict(1.0)), name="second")
        evidence = assess(conversations(tasks=4), judge=ReferenceJudge(), metrics=[second])
        page = written(estimate(count_outcomes(evidence), POOLED, k=1), tmp_path, evidence=evidence)
        assert {row[0] for row in page.table("Agreement of the judges")[1:]} == {"raw agreement", "kappa", "alpha"}
        assert any("prompt=" in row[1] for row in page.table("Who judged"))

    def test_judge_errors_that_were_corrected(self, tmp_path):
        """With judge labels, the rates stand in a table and the correction is named; counts alone have no section."""
        assert 'id="judge"' not in written(estimate(counts({"a": UNEQUAL}), k=1), tmp_path).text
        rates = {"sensitivity": 0.9, "specificity": 0.8}
        page = written(estimate(counts({"a": UNEQUAL}), k=1, judge_labels=rates), tmp_path)
        assert page.table("The judge's error rates")[1][:2] == ["sensitivity", "0.900"]

    def test_beyond_the_limit_passed_attempts_are_left_out_first(self, monkeypatch, tmp_path):
        """A page holds so many bytes of conversations; it keeps failures, and says how many are left out."""
        found = conversations()
        evidence = judged(found)
        failed = 72 - int(count_outcomes(evidence)["successes"].sum())
        monkeypatch.setattr(html_tasks, "MOST_BYTES", 400 * (failed + 5))
        est = estimate(count_outcomes(evidence), POOLED, k=1)
        page = written(est, tmp_path, evidence=evidence, conversations=found)
        kept = [one[4] for one in page.data(2)["trials"]]
        assert failed == kept.count("fail")
        assert 0 < kept.count("pass") < 72 - failed
        assert f"{72 - len(kept)} attempts beyond" in page.words


class TestFile:
    """The file itself."""

    def test_it_needs_nothing_else(self, page):
        """No address but those within the page; the policy admits its own script and style alone."""
        links = [value for _, attrs in page.tags for name, value in attrs.items() if name in ("href", "src")]
        assert all(value.startswith("#") or value == "data:," for value in links)
        assert not re.search(r"https?://|//[a-z]|@import|url\(", page.text.replace("http-equiv", ""))
        (policy,) = [attrs["content"] for tag, attrs in page.tags if "http-equiv" in attrs]
        style = re.search(r"<style>(.*?)</style>", page.text, re.DOTALL)[1]
        (script,) = [text for kind, text in page.scripts if not kind]
        for name, text in (("style", style), ("script", script)):
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"{name}-src 'sha256-{digest}'" in policy
        assert policy.startswith("default-src 'none'")
        assert not any(name.startswith("on") or name == "style" for _, attrs in page.tags for name in attrs)

    def test_headings_are_in_order_and_tables_have_captions(self, page):
        """One h1, no level skipped; every table has a caption and header cells with a scope; ids are unique."""
        levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
        names = [tag for tag, _ in page.tags]
        assert names.count("caption") == names.count("table")
        assert all(attrs.get("scope") in ("col", "row") for tag, attrs in page.tags if tag == "th")
        ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
        assert len(ids) == len(set(ids))
        targets = [attrs["href"][1:] for tag, attrs in page.tags if tag == "a"]
        assert set(targets) <= set(ids)

    def test_same_arguments_same_bytes(self, tmp_path):
        """Neither time nor place nor the order of conversations is in the file."""
        found = conversations(tasks=3)
        evidence = judged(found)
        est = estimate(count_outcomes(evidence), k=1)
        one = write_report(est, tmp_path / "a.html", evidence=evidence, conversations=found)
        other = write_report(est, tmp_path / "b.html", evidence=evidence, conversations=iter(found[::-1]))
        assert one.read_bytes() == other.read_bytes()

    def test_settings_versions_seed_and_commands(self, est, page):
        """What gives the numbers again: settings, versions, and commands with the names quoted."""
        rows = dict(row[:2] for row in page.table("Settings and versions")[1:])
        assert (rows["method"], rows["random_seed"], rows["k"]) == ("Crossed()", "0", "1, 3, 5")
        assert rows["version of numpy"] == np.__version__
        assert "agentic-bayes estimate FILE --method crossed --ci-prob 0.95 --ci-kind eti" in page.words
        assert "agentic-bayes compare results/estimate.nc --agent v2 --baseline v1 --metric pass^1" in page.words

    def test_groups_and_weights_are_in_the_command(self, tmp_path):
        """What groups the tasks, and the shares of the groups, are settings too; what was not set is not shown."""
        outcomes = counts({"a": UNEQUAL}).assign_coords(domain=("task", ["refund", "cancel sale"] * 6))
        est = estimate(outcomes, method="conjugate", k=1, by="domain", weights={"refund": 0.7, "cancel sale": 0.3})
        page = written(est, tmp_path)
        assert "--by domain --weights 'refund=0.7,cancel sale=0.3' --k 1" in page.words
        rows = dict(row[:2] for row in page.table("Settings and versions")[1:])
        assert rows["by"] == "domain"
        assert "None" not in rows.values()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"agent": "v3"}, "v3"),
            ({"agent": "v1", "baseline": "v1"}, "must differ"),
            ({"metric": "pass^0"}, "metric must be"),
            ({"metric": "pass"}, "metric"),
            ({"estimand": "task"}, "estimand"),
            ({"evidence": "evidence.jsonl"}, "evidence"),
            ({"at_least": 7}, "at_least"),
            ({"store": "kept.sqlite"}, "store"),
            ({"source": Path("x.csv")}, "source"),
            ({"conversations": "abc"}, "conversations"),
            ({"conversations": 3}, "conversations"),
        ],
        ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
    )
    def test_what_is_wrong_is_said_and_nothing_written(self, quick, arguments, message, tmp_path):
        """A wrong argument is an error before anything is written."""
        with pytest.raises((InvalidArgument, UnknownName), match=message):
            write_report(quick, tmp_path / "report.html", **arguments)
        assert list(tmp_path.iterdir()) == []

    def test_a_place_that_cannot_be_written(self, est, tmp_path):
        """A folder, a file in a folder that is not there, and a name that no file can have, are refused first."""
        for path in (tmp_path, tmp_path / "no" / "report.html", "a\0.html", tmp_path / f"{'x' * 300}.html"):
            with pytest.raises(InvalidArgument, match="path must be a file in a folder that can be written to"):
                write_report(est, path)

    def test_commands_say_what_the_terminal_cannot(self, quick, tmp_path):
        """Numbers in commands are whole; settings without an option are named instead of left out."""
        cells = counts({"v1": WEAKER, "v2": STRONGER})
        page = written(estimate(cells, Hierarchical(pool_agents=False), k=1), tmp_path, at_least=0.1234567)
        assert "--at-least 0.1234567 " in page.words
        assert "give them in Python: method=Hierarchical(pool_agents=False)." in page.words
        assert "give them in Python" not in written(quick, tmp_path).words

    def test_evidence_of_other_agents_is_refused(self, est, tmp_path):
        """Evidence must be of an agent of the estimate."""
        other = judged([record("somebody", "t", 0, passed=True)])
        with pytest.raises(InvalidArgument, match="evidence must be of the estimate's agents"):
            write_report(est, tmp_path / "report.html", evidence=other)


class TestHostileText:
    """Names and words that would like to be more than text."""

    def test_no_element_comes_from_it(self, tmp_path):
        """Every tag of a hostile page is one of a harmless page, and each script is ours."""
        found = hostile()
        evidence = judged(found)
        est = estimate(count_outcomes(evidence, indicator="joint"), POOLED, k=1)
        page = written(est, tmp_path, evidence=evidence, conversations=found, source=HOSTILE[1])
        assert [kind for kind, _ in page.scripts] == ["application/json"] * 3 + [""]
        assert not {"img", "iframe", "object", "b"} & {
            tag for tag, attrs in page.tags if attrs.get("id") != "k-caption"
        }
        assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
        assert page.text.count("<!--") == 0
        names = page.data(1)["names"]
        assert all(any(text.replace("\0", "")[:200] in name for name in names) for text in HOSTILE)

    @given(ANY_TEXT)
    def test_embedded_text_comes_back(self, text):
        """Any text, halves of surrogate pairs included, is read from the page as it was."""
        block = str(json_block({"text": text}))
        assert json.loads(block.encode("utf-8").decode("utf-8")) == {"text": text}
        assert not set(block) & set("<>&\u2028\u2029")

    @given(ANY_TEXT)
    def test_shown_text_is_one_element_of_text(self, text):
        """Any text becomes an isolated element that holds nothing but text and marks, and can be encoded."""
        made = str(shown(text))
        page = Page(made.encode("utf-8").decode("utf-8"))
        assert page.tags[0][0] == "bdi"
        assert {tag for tag, _ in page.tags[1:]} <= {"span"}
        assert all(set(attrs) <= {"class", "dir"} for _, attrs in page.tags)

    def test_a_name_from_right_to_left_does_not_turn_a_sentence_round(self):
        """A sentence runs from left to right; such names are isolated in it, without the punctuation around them."""
        made = str(said("נציג-1 leads, but (وكيل الدعم), شات may be better: שרת 25 %."))
        leader, *others = (f"<bdi>{name}</bdi>" for name in ("נציג-1", "وكيل الدعم", "شات", "שרת"))
        text = f"{leader} leads, but ({others[0]}), {others[1]} may be better: {others[2]} 25\N{NO-BREAK SPACE}%."
        assert made == f'<bdi dir="ltr" class="text">{text}</bdi>'
        assert said("plain <b>") == shown("plain <b>")

    def test_long_text_is_cut_and_says_so(self):
        """The beginning, and how much more there is."""
        assert cut("x" * 12, 10) == "x" * 10 + "… (2 more characters)"
        assert cut("x" * 10, 10) == "x" * 10


class TestCommands:
    """`agentic-bayes report`, and who else writes reports."""

    @pytest.fixture
    def run(self, monkeypatch, capsys, tmp_path):
        """Runs a command inside an empty folder; its exit code and what it printed."""
        monkeypatch.chdir(tmp_path)

        def run_command(*arguments: str | Path) -> tuple[int, str]:
            monkeypatch.setattr(sys, "argv", ["agentic-bayes", *map(str, arguments)])
            try:
                cli.main()
                code = 0
            except SystemExit as end:
                code = end.code or 0  # type: ignore[assignment]
            captured = capsys.readouterr()
            return code, captured.out + captured.err

        return run_command

    def test_of_evidence_with_conversations_and_a_gate(self, run, tmp_path):
        """Evidence, conversations and a bar give a page with all of it, and with the doubt that a t test casts."""
        folder = ROOT / "examples" / "support_agent"
        assert run("assess", folder / "v1.jsonl", folder / "v2.jsonl", "-o", "e.jsonl")[0] == 0
        code, said = run(
            *("report", "e.jsonl", "-o", "r.html", "--conversations", folder / "v1.jsonl", "--k", "1,2"),
            *("--agent", "support-v2", "--baseline", "support-v1", "--at-least", "0.5"),
        )
        assert (code, said.strip()) == (0, "report written to r.html")
        page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
        assert page.verdict().startswith("support-v2 passes") or "has not passed the gate" in page.verdict()
        assert {row[0] for row in page.table("On a new task")[1:]} == {"pass@2", "pass^1", "pass^2"}
        assert (
            "A classical test (paired t, p = 0.052) does not find a difference. The test weighs all tasks" in page.words
        )
        assert "reference-judge/4 gave the verdicts. No human labels were given" in page.words
        assert "scores at least 0.7 of 1, whatever tools were called." in page.words
        said_by = {one[0] for one in page.data(2)["trials"] if one[6][0][1]}
        assert said_by == {0}  # only the first version's conversations were given
        assert "agentic-bayes estimate e.jsonl --unit conversation --indicator answer" in page.words

    def test_of_a_table_and_a_value(self, run, tmp_path):
        """A table and a value to compare with need neither evidence nor conversations."""
        (tmp_path / "t.csv").write_text("task,successes,trials\na,3,4\nb,4,4\nc,1,4\n", encoding="utf-8")
        assert run("report", "t.csv", "-o", "r.html", "--baseline", "0.01")[0] == 0
        page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
        assert page.verdict() == "agent is better than 0.010"
        assert run("report", "t.csv", "-o", "r.md", "--title", "<b>Release</b> @2", "--baseline", "0.01")[0] == 0
        text = (tmp_path / "r.md").read_text(encoding="utf-8")
        assert text.startswith("# agent is better than 0.010\n\n&lt;b>Release&lt;/b> <span>@</span>2  \n")
        rate = re.search(r"<strong>(.*?)</strong> (.*?)</span>", page.text)
        assert f"| agent | {rate[1]} ({rate[2]}) |" in text
        assert text.count("<details>") == text.count("</details>") > 3
        assert "<details><summary>How to read this</summary>\n\n- “Better” or “worse”:" in text

    def test_of_a_run_of_a_suite(self, run, tmp_path):
        """`output.format: html` writes the page into the run; the command gives the same attempts and messages."""
        assert run("init", "suite")[0] == 0
        suite = tmp_path / "suite" / "eval.yaml"
        suite.write_text(suite.read_text(encoding="utf-8") + "\noutput: {format: html}\n", encoding="utf-8")
        assert run("run", "-c", suite)[0] == 0
        (folder,) = (tmp_path / "suite" / "results").iterdir()
        assert run("report", folder, "-o", "again.html")[0] == 0
        pages = [Page(path.read_text("utf-8")) for path in (folder / "report.html", tmp_path / "again.html")]
        assert pages[0].data(2) == pages[1].data(2)
        attempts = pages[0].data(2)["trials"]
        assert len(attempts) == 15
        assert attempts[0][6][0][1][0] == [0, "What is 2 + 3?"]
        assert ["graders", "contains, regex"] in pages[0].table("Who judged")
        code, said = run("report", folder, "-o", "r.html", "--evidence", folder / "trials.jsonl")
        assert (code, "has its own conversations" in said) == (2, True)

    def test_a_wrong_place_is_refused_before_any_work(self, run, tmp_path):
        """The output must not be the input, nor lie where there is no folder."""
        (tmp_path / "t.csv").write_text("task,successes,trials\na,3,4\n", encoding="utf-8")
        for place in ("t.csv", "no/r.html"):
            assert run("report", "t.csv", "-o", place)[0] == 2
        assert (tmp_path / "t.csv").read_text(encoding="utf-8").startswith("task,")
