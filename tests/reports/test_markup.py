"""Tables in Markdown, HTML and LaTeX."""

import pytest

from agentic_bayes.formatting import Table
from agentic_bayes.reports.markup import table_markup

ROWS = [["a|<b>", "0.42* [0.30, 0.55]"]]
TABLE = Table(title="v_1 & more", header=["agent", "pass^3"], rows=ROWS, notes=["95 % interval", ""])


def test_markdown():
    """Markdown is the table's own."""
    assert table_markup(TABLE, "markdown") == TABLE.to_markdown()


def test_html():
    """Text is escaped; the title is the caption and notes are paragraphs below."""
    text = table_markup(TABLE, "html")
    assert "<caption>v_1 &amp; more</caption>" in text
    assert "<td>a|&lt;b&gt;</td>" in text
    assert '<td style="text-align:right">0.42* [0.30, 0.55]</td>' in text
    assert text.endswith("<p>95 % interval</p>")


def test_latex():
    """Every character that LaTeX would take as a command is escaped."""
    text = table_markup(TABLE, "latex")
    assert r"\caption{v\_1 \& more}" in text
    assert r"agent & pass\textasciicircum{}3 \\" in text
    assert r"a|$<$b$>$ & 0.42* [0.30, 0.55] \\" in text
    assert r"95 \% interval" in text
    assert r"\begin{tabular}{lr}" in text


@pytest.mark.parametrize("to", ["markdown", "html", "latex"])
def test_control_characters_are_written_out(to):
    """What a file holds cannot steer whatever shows the text."""
    text = table_markup(Table(title="t", header=["a"], rows=[["x\x1b[31m\n"]]), to)
    assert "\x1b" not in text
    assert "u001b" in text
