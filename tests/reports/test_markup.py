"""Tables in Markdown, HTML and LaTeX."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_bayes.result_table import Table

ROWS = [["a|<b>", "0.42* [0.30, 0.55]"]]
TABLE = Table(title="v_1 & more", header=["agent", "pass^3"], rows=ROWS, notes=["95 % interval", ""])


def test_markdown():
    """A pipe in a cell is escaped; notes stand below the table."""
    text = TABLE.to_markdown()
    assert text.startswith("**v_1 & more**")
    assert r"| a\|&lt;b> |" in text
    assert text.endswith("95 % interval")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>x</script>", "&lt;script>x&lt;/script>"),
        ("![x](https://x.io/a.png) [y][z]", r"!\[x](https<span>:</span>//x.io/a.png) \[y]\[z]"),
        ("www.x.io me@x.io $a$", "<span>www</span>.x.io me<span>@</span>x.io <span>$</span>a$"),
        ("GH-26 u/r#5 :tada:", "<span>GH</span>-26 u/r<span>#</span>5 <span>:</span>tada:"),
        ("*b* __c__ `d` ~~e~~", r"\*b* \_\_c__ \`d\` \~\~e\~~"),
        ("@team closes #12 &lt;b&gt;", "<span>@</span>team closes <span>#</span>12 &amp;lt;b&amp;gt;"),
        ("# h", r"\# h"),
        *[(text, text) for text in ("a_b pass^3 x@y 0.42* [0.30, 0.55] <0.001", "openai:gpt-4o 10:30:00 C# www")],
    ],
)
def test_what_looks_like_markdown_stays_text(text, shown):
    """Names are neither HTML, links, emphasis, mentions nor headings; numbers and plain names are left as they are."""
    table = Table(title=text, header=["a"], rows=[["1"]], notes=[text])
    title, _, note = table.to_markdown().split("\n\n")
    assert note == shown
    assert title == f"**{shown}**"


def test_html():
    """Text is escaped; the title stands above and notes below."""
    text = TABLE.to_html()
    assert "<strong>v_1 &amp; more</strong>" in text
    assert '<td style="text-align:left">a|&lt;b&gt;</td>' in text
    assert '<td style="text-align:right">0.42* [0.30, 0.55]</td>' in text
    assert "<small>95 % interval</small>" in text


SPECIAL = re.compile(
    r"\\(?P<escaped>[&%$#_{}])|\\text(?P<named>backslash|asciitilde|asciicircum|asciigrave|bar)\{\}|\$(?P<sign>[<>-]|\\rightarrow)\$"
    r"|(?P<nothing>\{\})|--|(?P<plain>(?!''|,,)[^\\&%$#_{}~^<>|`])"
)
NAMED = {"backslash": "\\", "asciitilde": "~", "asciicircum": "^", "asciigrave": "`", "bar": "|"}


def as_set(latex):
    """The text that LaTeX sets; only commands that it may hold are read, and every other special sign is an error."""
    text, at = "", 0
    while at < len(latex):
        found = SPECIAL.match(latex, at)
        assert found, f"LaTeX would read {latex[at : at + 20]!r} as a command"
        sign = {None: found["sign"], "-": "−", r"\rightarrow": "→"}.get(found["sign"], found["sign"])
        text += found["escaped"] or NAMED.get(found["named"], "") or sign or found["plain"] or ""
        text += "–" if found[0] == "--" else ""
        at = found.end()
    return text


@given(st.text(st.sampled_from("aä中\\&%$#_{}~^<>|`-–−',\"[]*? .→✓"), min_size=1))
def test_latex_sets_the_text_that_it_was_given(name):
    """Round trip: escapes are LaTeX's own, other Unicode is kept, no two signs run together to a dash or a quote."""
    line = Table(title="t", header=["agent", "n"], rows=[[name, "1"]]).to_latex().split("\n")[6]
    cell = line.removesuffix(r" & 1 \\")
    assert as_set(cell) == name.strip()
    assert not cell.startswith(("[", "*"))  # the row before ends in \\, which takes an option


@pytest.mark.parametrize("to", ["markdown", "html", "latex"])
def test_control_characters_are_written_out(to):
    """What a file holds cannot steer whatever shows the text."""
    text = getattr(Table(title="t", header=["a"], rows=[["x\x1b[31m\n"]]), f"to_{to}")()
    assert "\x1b" not in text
    assert "u001b" in text
