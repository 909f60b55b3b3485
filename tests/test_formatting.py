"""How numbers and names look to people."""

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.formatting import (
    Table,
    format_interval,
    format_number,
    json_ready,
    markdown_table,
    metric_name,
    parse_metric,
    plural,
)


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
    ("text", "metric", "k"),
    [
        ("pass^3", "pass_pow_k", 3),
        ("pass@10", "pass_at_k", 10),
        ("pass_pow_k", "pass_pow_k", None),
        ("pass_at_k", "pass_at_k", None),
        ("pass_pow_5", "pass_pow_k", 5),
        (" pass@k ", "pass_at_k", None),
        ("pass^K", "pass_pow_k", None),
    ],
)
def test_a_metric_as_people_write_it(text, metric, k):
    """Both spellings of both metrics are read, with or without a number."""
    assert parse_metric(text) == (metric, k)


@pytest.mark.parametrize(
    "text", ["", "pass", "pass^0", "pass@-1", "pass^2.5", "pass**3", "PASS^3", "pass^3x", "pass^³", f"pass^{10**4000}"]
)
def test_what_is_no_metric(text):
    """Anything else is refused with the allowed spellings and what came."""
    with pytest.raises(InvalidArgument, match=r'metric must be like "pass\^3", "pass@3".*got') as caught:
        parse_metric(text)
    assert str(caught.value).endswith(repr(text))


@given(st.sampled_from(["pass_at_k", "pass_pow_k"]), st.integers(1, 10**6))
def test_a_metric_is_read_as_it_is_written(metric, k):
    """Writing and reading a metric gives it back."""
    assert parse_metric(metric_name(metric, k)) == (metric, k)


@pytest.mark.parametrize(("count", "text"), [(0, "0 tasks"), (1, "1 task"), (2, "2 tasks"), (12345, "12,345 tasks")])
def test_one_and_many(count, text):
    """One is singular, everything else plural, thousands are separated."""
    assert plural(count, "task") == text


def test_html_is_escaped():
    """No text of a title, cell, header or note becomes markup."""
    page = Table(title="a < b", header=["<b>"], rows=[["<script>alert('x')</script>"]], notes=["<i>"]).to_html()
    assert "<script>" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;script&gt;" in page
    assert "a &lt; b" in page


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
    value = {"a": np.float64("nan"), "b": (np.int64(3), math.inf), "d": [True, "x"]}
    plain = json_ready(value)
    assert plain == {"a": None, "b": [3, None], "d": [True, "x"]}
    assert json.dumps(plain, allow_nan=False)
