"""Tables on terminals of any width."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from agentic_bayes.reports.terminal import print_table
from agentic_bayes.result_table import Table, is_number

INTERVALS = Table(
    title="T",
    header=("metric", "hierarchical", "sd of the rate", "tasks right"),
    rows=(
        ("pass@1", "0.546 [0.414, 0.668]", "0.101", "165 of 225"),
        ("pass^3", "0.817* [0.670, >0.999]", "–", "3 of 4"),
    ),
)


def printed(table, width, **settings):
    """The lines of a table on a screen of this width."""
    file = io.StringIO()
    print_table(Console(file=file, width=width, highlight=False, **settings), table)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_table_with_room_is_as_wide_as_its_contents():
    """Every cell stands on one line, numbers to the right."""
    lines = printed(INTERVALS, 80)
    assert lines[2] == " metric            hierarchical  sd of the rate  tasks right"
    assert lines[4] == " pass@1    0.546 [0.414, 0.668]           0.101   165 of 225"
    assert lines[5] == " pass^3  0.817* [0.670, >0.999]               –       3 of 4"


def test_headers_take_more_lines_before_numbers_do():
    """With a little less room only the headings are folded, at their words."""
    lines = printed(INTERVALS, 55)
    assert any(line.endswith("165 of 225") and "0.546 [0.414, 0.668]" in line for line in lines)
    assert " metric            hierarchical  the rate  tasks right" in lines


def test_a_column_without_an_entry_is_left_out_before_anything_is_folded():
    """Only where the table would not fit, so that the heading is there where there is room."""
    table = Table(title="T", header=("agent", "pass^1", "flags"), rows=(("v1", "0.546 [0.414, 0.668]", ""),))
    heads = [printed(table, width)[2].split() for width in (40, 30)]
    assert heads == [["agent", "pass^1", "flags"], ["agent", "pass^1"]]


def test_an_interval_goes_below_its_value():
    """With less room still, value and interval take a line each."""
    lines = printed(INTERVALS, 45)
    assert max(map(len, lines)) <= 45
    assert any(line.split() == ["pass@1", "0.546", "0.101", "165", "of", "225"] for line in lines)
    assert any(line.strip() == "[0.414, 0.668]" for line in lines)
    two = Table(title="T", header=("task", "a", "b"), rows=(("t", *["0.546 [0.414, 0.668]"] * 2),))
    assert any(line.split() == ["t", "0.546", "0.546"] for line in printed(two, 48))  # not one folded, one whole


def test_columns_that_do_not_fit_follow_in_a_second_part():
    """Each part begins with the names, and keeps a value next to its interval."""
    table = Table(title="T", header=("group", *"abcd"), rows=(("new tasks", *["0.546 [0.414, 0.668]"] * 4),))
    lines = printed(table, 60)
    assert [line.split() for line in lines if "group" in line] == [["group", "a", "b"], ["group", "c", "d"]]
    assert [line.count("0.546 [0.414, 0.668]") for line in lines if "new tasks" in line] == [2, 2]


def test_a_name_to_be_copied_is_kept_whole():
    """Where the first column is a name to be copied, a narrow screen gets a wide table."""
    name = "20261128-091800-arithmetic-c1322"
    lines = printed(
        Table(title="Runs", header=("run", "agent"), rows=((name, "an agent of a long name"),), whole=True), 40
    )
    assert any(name in line for line in lines)


def test_nothing_in_a_table_steers_a_terminal():
    """Control characters are written out, and colours stay in terminals."""
    table = Table(title="\x1b[31mT", header=("a",), rows=(("\x1b[2J",),), notes=("\x1b]0;title\x07",))
    assert all(line.isprintable() for line in printed(table, 80))
    assert "\x1b[1m" in "".join(printed(table, 80, force_terminal=True, color_system="standard"))


numbers = st.builds(
    lambda value, low, high: f"{value:.3f} [{low:.3f}, {high:.3f}]", *(st.floats(0, 1000) for _ in range(3))
)


@given(
    st.lists(st.tuples(st.text("abc -", max_size=40), numbers, st.integers(0, 10**9)), min_size=1, max_size=4),
    st.integers(20, 100),
)
def test_no_number_is_ever_cut(rows, width):
    """Whatever the width, every number stands whole on its line."""
    cells = [(n, v, f"{i:,}") for n, v, i in rows]
    table = Table(title="T", header=("name", "value with its interval", "n"), rows=cells)
    text = "\n".join(printed(table, width))
    for _, value, count in table.rows:
        number, interval = value.split(" ", 1)
        for part in (number, interval, count):
            assert re.search(rf"(?<![\d.]){re.escape(part)}(?![\d.])", text), part


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        *((cell, True) for cell in ("0.420", "<0.001", "-0.25", "1,234", "–", "", "0.420* [0.1, 0.9]", "[0.1, 0.9]")),
        *((cell, True) for cell in ("4 of 20", "−0.1 [−0.2, 0.1]", "1 to 3", "22 ◄", "1e-09", "0.700 (the bar)")),
        *((cell, False) for cell in ("support-v1", "task 3", "1st try", "3-way-call", "1. support", "20261128-0918-a")),
    ],
    ids=str,
)
def test_what_counts_as_a_number(cell, number):
    """Numbers with what may follow them; not every text that holds a digit."""
    assert is_number(cell) is number
