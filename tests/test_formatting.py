"""How numbers and names look to people."""

import copy
import json
import math
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.formatting import (
    ELLIPSIS,
    FAMILIES,
    Metric,
    brief_names,
    first_few,
    first_problems,
    format_estimate,
    format_interval,
    format_number,
    format_percent,
    format_percent_range,
    format_points,
    format_points_range,
    json_ready,
    metrics_at,
    plural,
    points_words,
)
from agentic_bayes.result_table import MOST_ROWS, Table, Tabular, markdown_table


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.42, "0.420"),
        (0, "0.000"),
        (1, "1.000"),
        (-0.0, "0.000"),
        (-0.00004, ">-0.001"),
        (-1e-15, "0.000"),
        (-0.25, "-0.250"),
        (0.0004, "<0.001"),
        (0.9996, ">0.999"),
        (0.0005001, "0.001"),
        (1.5, "1.500"),
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "inf"),
    ],
)
def test_a_number_for_people(value, text):
    """Three decimals; what is undefined is a dash."""
    assert format_number(value) == text


@given(st.floats(0, 1, exclude_min=True, exclude_max=True), st.integers(1, 6))
def test_what_is_possible_never_looks_impossible_or_certain(value, digits):
    """A probability strictly inside (0, 1) never prints as 0 or 1, and reads back within half a unit."""
    text = format_number(value, digits)
    assert float(text.lstrip("<>")) not in (0, 1)
    assert abs(float(text.lstrip("<>")) - value) <= 10**-digits
    assert re.fullmatch(rf"[<>]?[01]\.[0-9]{{{digits}}}", text)


def test_an_interval_for_people():
    """Both limits, or a dash where one is undefined."""
    assert format_interval(0.2523, 0.56612) == "[0.252, 0.566]"
    assert format_interval(0.00001, 1, digits=2) == "[<0.01, 1.00]"
    assert format_interval(None, 0.5) == format_interval(0.1, math.nan) == "–"


@pytest.mark.parametrize(
    ("text", "written", "power", "k", "family"),
    [
        ("pass^3", "pass^3", True, 3, "pass_pow_k"),
        ("pass@10", "pass@10", False, 10, "pass_at_k"),
        (" pass@1\n", "pass@1", False, 1, "pass_at_k"),
        ("pass^1000000", "pass^1000000", True, 10**6, "pass_pow_k"),
    ],
)
def test_a_metric_as_people_write_it(text, written, power, k, family):
    """A metric knows its k, whether all k attempts must succeed, and its ArviZ variable; outer spaces are dropped."""
    metric = Metric(text)
    assert (str(metric), metric.power, metric.k, metric.family) == (written, power, k, family)


@pytest.mark.parametrize(
    "text",
    [
        *("", "pass", "pass^", "pass^k", "pass^0", "pass^03", "pass@-1", "pass^2.5", "pass**3", "PASS^3", "pass ^3"),
        *("pass^3x", "pass^³", "pass^٣", "pass_pow_3", "pass_pow_k", "pass_at_k", f"pass^{10**4000}"),
        *(3, None, b"pass^3", ["pass^3"]),
    ],
)
def test_what_is_no_metric(text):
    """Anything else is refused with the allowed spellings and what came, names of ArviZ variables included."""
    with pytest.raises(InvalidArgument, match=r'metric must be "pass@k" or "pass\^k" with a number, e\.g\. ') as caught:
        Metric(text)
    assert str(caught.value).endswith(f"got {text!r}")


def test_a_metric_of_too_many_attempts_is_refused():
    """Formulas keep their digits up to a million attempts, so larger k are refused."""
    with pytest.raises(InvalidArgument, match="k must be at most 1,000,000, got 1,000,001"):
        Metric("pass@1000001")


@given(st.sampled_from(FAMILIES), st.integers(1, 10**6))
def test_a_metric_is_read_as_it_is_written(family, k):
    """Writing and reading a metric gives it back."""
    metric = Metric.of(family, k)
    again = Metric(str(metric))
    assert again == metric
    assert (again.family, again.k, again.power) == (family, k, family == "pass_pow_k")


def test_a_metric_is_its_text():
    """A metric equals, hashes, sorts and prints like its text, and reading a metric again gives the same object."""
    metric = Metric("pass^3")
    assert metric == "pass^3"
    assert {metric: 1}["pass^3"] == 1
    assert f"{metric}" == "pass^3"
    assert Metric(metric) is metric
    assert Metric("pass@3") != metric


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_metric_survives_pickling_and_copying(protocol):
    """A metric keeps its k and family on the way to another process, in every pickle protocol."""
    metric = Metric("pass@7")
    for again in (pickle.loads(pickle.dumps(metric, protocol)), copy.copy(metric), copy.deepcopy(metric)):
        assert again == metric
        assert isinstance(again, Metric)
        assert (again.power, again.k, again.family) == (False, 7, "pass_at_k")


def test_a_metric_is_a_json_string():
    """A metric is written to JSON as its text, as a value and as a key, and `json_ready` makes it plain text."""
    metric = Metric("pass^3")
    assert json.dumps({metric: [metric]}) == '{"pass^3": ["pass^3"]}'
    plain = json_ready({metric: [metric]})
    assert type(plain["pass^3"][0]) is str
    assert [type(key) for key in plain] == [str]


def test_both_metrics_at_every_k():
    """pass@k at every k, then pass^k at every k, in the given order."""
    assert metrics_at([1, 5, 3]) == ("pass@1", "pass@5", "pass@3", "pass^1", "pass^5", "pass^3")
    assert all(isinstance(metric, Metric) for metric in metrics_at(iter([2])))
    assert metrics_at([]) == ()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.93, "93 %"),
        (0.005, "0.5 %"),
        (0.004, "0.4 %"),
        (0.0004, "<0.1 %"),
        (0, "<0.1 %"),
        (0.996, "99.6 %"),
        (0.9996, ">99.9 %"),
        (1, ">99.9 %"),
        (0.5049, "50 %"),
        (math.nan, "–"),
    ],
)
def test_a_probability_in_per_cent(value, text):
    """Whole per cents; near 0 and 1 a decimal more, and never 0 % or 100 %."""
    assert format_percent(value) == text


def test_a_probability_in_per_cent_with_decimals():
    """More digits are kept on request, also in the bounds."""
    assert format_percent(0.12345, 2) == "12.35 %"
    assert format_percent(1, 2) == ">99.99 %"
    assert format_percent(0.00001, 2) == "<0.01 %"


@given(st.floats(0, 1))
def test_a_share_of_draws_never_says_never_or_always(value):
    """No number of draws shows that something is impossible or certain, so neither 0 % nor 100 % is printed."""
    number = float(format_percent(value).lstrip("<>").removesuffix(" %"))
    assert 0 < number < 100
    assert abs(number - 100 * value) <= 0.5 + 1e-9


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.128, "+13"),
        (-0.128, "−13"),
        (0.004, "+0.4"),
        (-0.004, "−0.4"),
        (0, "0.0"),
        (-0.0001, "0.0"),
        (1, "+100"),
        (math.nan, "–"),
    ],
)
def test_a_difference_in_percentage_points(value, text):
    """Whole points with a sign, one decimal below one point, and no sign where nothing is left after rounding."""
    assert format_points(value) == text
    assert points_words(value) == f"{text} points"


def test_ends_of_an_interval_look_neither_alike_nor_like_0():
    """Unless they are: more digits are shown where an interval would seem to have no width, or to end at 0."""
    ranges = [(-0.04, 0.3), (0.0003, 0.3), (-0.0001, 0.0001), (-0.2002, -0.1995), (0.0, 0.0), (1e-12, 0.3)]
    words = ["−4 to +30", "+0.03 to +30", "−0.01 to +0.01", "−20.02 to −19.95", "0.0 to 0.0", "0.0 to +30"]
    assert [format_points_range(*ends) for ends in ranges] == words
    percents = [(0.6, 0.84), (0.4991, 0.5011), (0.9997, 0.99991), (0.5, 0.5)]
    assert [format_percent_range(*ends) for ends in percents] == [
        "60 to 84 %",
        "49.9 to 50.1 %",
        "99.97 to 99.99 %",
        "50 to 50 %",
    ]


def test_one_point_is_a_point():
    """After rounding."""
    assert [points_words(value) for value in (0.0131, -0.01)] == ["+1 point", "−1 point"]


@pytest.mark.parametrize(("count", "text"), [(0, "0 tasks"), (1, "1 task"), (2, "2 tasks"), (12345, "12,345 tasks")])
def test_one_and_many(count, text):
    """One is singular, everything else plural, thousands are separated."""
    assert plural(count, "task") == text


def test_a_number_with_its_interval():
    """Value and interval in one cell; without an interval the value alone, and one dash where neither is defined."""
    assert format_estimate(0.42, 0.2523, 0.5661) == "0.420 [0.252, 0.566]"
    assert format_estimate(0.42, math.nan, math.nan) == "0.420"
    assert format_estimate(math.nan, math.nan, math.nan) == "–"
    assert format_estimate(0.42, 0.25, 0.57, 2) == "0.42 [0.25, 0.57]"


def test_a_table_as_latex():
    """Columns are aligned as in the other forms, the title is the caption, and what LaTeX would read is escaped."""
    table = Table(title="A & B", text=": 50 %", header=["agent_1", "k"], rows=[["a#b", "1"]], notes=["", "$x$"])
    assert table.to_latex().split("\n") == [
        r"\begin{table}",
        r"\caption{A \& B: 50 \%}",
        r"\begin{tabular}{lr}",
        r"\hline",
        r"agent\_1 & k \\",
        r"\hline",
        r"a\#b & 1 \\",
        r"\hline",
        r"\end{tabular}",
        r"\par\smallskip\footnotesize \$x\$",
        r"\end{table}",
    ]


def test_html_is_escaped():
    """No text of a title, cell, header or note becomes markup."""
    page = Table(title="a < b", header=["<b>"], rows=[["<script>alert('x')</script>"]], notes=["<i>"]).to_html()
    assert "<script>" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;script&gt;" in page
    assert "a &lt; b" in page


def test_a_table_knows_which_columns_hold_numbers():
    """Columns of numbers, with what may follow a number, are set to the right; without rows none is."""
    table = Table(
        title="t", header=["agent", "mean", "interval"], rows=[["v1", "0.420*", "[0.1, 0.2]"], ["2", "–", "4 of 20"]]
    )
    assert table.numeric == [False, True, True]
    assert Table(title="t", header=["agent"], rows=[]).numeric == [False]
    assert table.to_html().count("text-align:right") == 2 * 3


def test_a_table_as_markdown():
    """Title and text in one sentence, the pipe table, then every note that is not empty, each its own paragraph."""
    table = Table(title="Passed", text=": 3 of 4", header=["k", "x"], rows=[["1", "a"]], notes=["one\nline", "", "two"])
    assert table.to_markdown().split("\n\n") == [
        "**Passed**: 3 of 4",
        "| k | x |\n| ---: | --- |\n| 1 | a |",
        r"one\nline",
        "two",
    ]


@pytest.mark.parametrize(("extra", "said"), [(0, None), (1, "… and 1 more task<"), (4990, "… and 4,990 more tasks<")])
def test_a_long_table_is_cut_in_a_notebook_and_whole_in_markdown(extra, said):
    """A notebook shows the first rows and how many more there are; Markdown has them all."""
    rows = [[f"task {i}", "0.5"] for i in range(MOST_ROWS + extra)]
    table = Table(title="t", header=["task", "mean"], rows=rows, noun="task")
    page = table.to_html(MOST_ROWS)
    assert page.count("<tr>") == 1 + MOST_ROWS
    assert table.to_html().count("<tr>") == 1 + len(rows)
    assert (said in page) if said else ("more" not in page)
    assert table.to_markdown().count("| task ") - 1 == MOST_ROWS + extra


def test_cells_of_a_notebook_table_are_cut_and_made_visible():
    """A long cell is cut, and a character that shows nothing or turns text round is written out."""
    page = Table(title="t", header=["a"], rows=[["x" * 200], ["left\u202eright\x1b[0m"]]).to_html()
    assert "x" * 119 + "…" in page
    assert "x" * 120 not in page
    assert r"left\u202eright\u001b[0m" in page


def test_a_result_that_is_a_table_has_its_notebook_and_markdown_forms():
    """Whoever says what a result's table is has its Markdown and HTML as well; who does not is told."""

    class Result(Tabular):
        def table(self):
            return Table(title="Result", header=["a"], rows=[["1"]])

    assert Result().to_markdown() == Result().table().to_markdown()
    assert Result()._repr_html_() == Result().table().to_html()
    with pytest.raises(NotImplementedError, match=r"^$"):
        Tabular().table()


def test_a_markdown_table_escapes_pipes_and_line_breaks():
    """Every cell stays in its column and on its line; a column of numbers is right-aligned."""
    table = markdown_table(["agent", "mean"], [["a|b\nc", "0.420"], ["back\\slash", "–"]])
    assert table.split("\n") == [
        "| agent | mean |",
        "| --- | ---: |",
        r"| a\|b\\nc | 0.420 |",
        r"| back\\slash | – |",
    ]


def test_a_markdown_table_without_rows_is_a_header():
    """A result without rows still gives a valid table."""
    assert markdown_table(["a", "b"], []) == "| a | b |\n| --- | --- |"


def test_what_json_cannot_hold_becomes_plain():
    """NaN and infinities become None at any depth, and NumPy values plain ones."""
    value = {"a": np.float64("nan"), "b": (np.int64(3), math.inf), "c": np.array([1.5, math.nan]), 4: [np.True_, "x"]}
    plain = json_ready(value)
    assert plain == {"a": None, "b": [3, None], "c": [1.5, None], "4": [True, "x"]}
    assert json.dumps(plain, allow_nan=False)


class TestBriefNames:
    """Long names for pictures and sentences."""

    def test_names_that_differ_in_their_middle_stay_apart(self):
        """A long name loses its middle, unless that is where it differs; short names are whole."""
        names = [f"vendor/some-quite-long-model-name-{i:02d}-2026-05-preview-with-tools" for i in range(3)]
        found = brief_names([*names, "v1", "x" * 30 + "y" * 30], 40)
        assert [name.count(f"-{i:02d}-") for i, name in enumerate(found[:3])] == [1, 1, 1]
        assert max(map(len, found)) <= 40
        assert found[3:] == ["v1", f"{'x' * 20}…{'y' * 19}"]

    @pytest.mark.parametrize("longest", [20, 28, 40])
    def test_names_that_differ_in_several_places_keep_each_of_them(self, longest):
        """Of a grid of settings every name has the values that tell it from the others."""
        grid = [(day, heat, effort) for day in ("01", "02") for heat in "27" for effort in ("high", "low")]
        names = [f"openai/gpt-5.1-2026-{d}-temperature-0.{h}-reasoning-{e}-with-tools-and-memory" for d, h, e in grid]
        found = brief_names(names, longest)
        assert len(set(found)) == 8
        assert max(map(len, found)) <= longest
        for (day, heat, effort), name in zip(grid, found, strict=True):
            assert day in name
            assert f"{heat}-" in name or f"{heat}…" in name
            assert effort[:2] in name

    @given(st.lists(st.text("ab", min_size=40, max_size=60), unique=True, max_size=12))
    def test_no_two_are_the_same(self, names):
        """Whatever the names are; those that differ in too many places are numbered."""
        found = brief_names(names, 20)
        assert len(set(found)) == len(names)
        assert all(len(name) <= 20 + len(" (12)") for name in found)


def test_long_lists_are_cut_and_counted():
    """Where all fit they are listed; else the first, and how many more there are."""
    assert first_few(["a", "b"], 2) == "a, b"
    assert first_few(["a", "b", *"c" * 1000], 2) == "a, b and 1,000 more"
    assert first_few(["a", "b", "c"], 2, rest=ELLIPSIS) == "a, b, …"
    assert first_problems(["x is wrong", "y is wrong"], 1) == "x is wrong; … and 1 more"
