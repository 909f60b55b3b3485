"""The table of a result, and how notebooks, Markdown and LaTeX show it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from agentic_bayes.formatting import cut_text, json_ready, one_line, plural

MOST_ROWS = 20  # in a notebook
MOST_OF_CELL, MOST_OF_NOTE = 120, 1000  # characters
NARROW = r"\footnotesize\setlength{\tabcolsep}{3pt}"
MOST_AT_FULL_SIZE = 6  # columns of a LaTeX table that fit on a page in the font of the text
_PLAIN = "margin:0.4em 0;text-align:left;max-width:60em"
# "0.420*", "<0.001 [0.000, 0.010]", "4 of 20", "1 to 3", "22 ◄"; a name may begin with a digit, too
_NUMBER = re.compile(r"|–|\[.*|[<>]?[-−+]?[\d.,]+(e[-+]?\d+)?\*?( (of|to) [\d,]+| \[.*| \(.*| ◄)?|nan|inf")
# what Markdown, or GitHub, would read as more than text: "0.42*", "[0.3, 0.5]", "<0.001" and "a_b" are left as they are
_MARKUP = re.compile(
    r"\\(?=[!-/:-@\[-`{-~]|$)|[`|]|<(?=[A-Za-z/!?])|&(?=#?\w+;)|\[(?![-−<>]?[\d.–])|[*~](?=\S)|(?<![A-Za-z0-9])_(?=\S)"
    r"|(?<!\w)[@#](?=\w)|@(?=[\w-]+\.\w)|#(?=\d)|\bGH(?=-\d)|:(?=//)|(?<!\w)(www(?=\.)|:(?=[a-z][\w+-]*:))|\$(?=\S)"
)
_AS_TEXT = {"<": "&lt;", "&": "&amp;"} | {one: f"<span>{one}</span>" for one in ("@", "#", "GH", ":", "www", "$")}
_BLOCK = re.compile(r"^(\d*)([#>+\-=*.)])(?=\s|$)")  # what begins a heading, a quotation or a list
LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$"}
    | {"≥": r"$\geq$", "≤": r"$\leq$", "×": r"$\times$", "±": r"$\pm$", "√": r"$\surd$", "−": "$-$", "–": "--"}
    | {"`": r"\textasciigrave{}", "|": r"\textbar{}", "\0": "{}"}
    | {"→": r"$\rightarrow$", "◄": r"$\triangleleft$"}
    | {"μ": r"$\mu$", "ρ": r"$\rho$", "κ": r"$\kappa$", "σ": r"$\sigma$"}
)


@dataclass(frozen=True, kw_only=True)
class Table:
    """What a result shows, built once; notebooks, the terminal, Markdown, HTML and JUnit render it."""

    title: str  # what it is, or the verdict
    header: Sequence[str]
    rows: Sequence[Sequence[str]]  # cells as text
    text: str = ""  # follows the title in the same sentence
    notes: Sequence[str] = ()  # paragraphs below the table; empty ones are left out
    noun: str = "row"  # what a row is, for "and 4,990 more tasks"
    whole: bool = False  # whether a terminal keeps the first column on one line: names to be copied

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers only, and so are set to the right."""
        return [bool(self.rows) and all(is_number(row[i]) for row in self.rows) for i in range(len(self.header))]

    def to_markdown(self) -> str:
        """Title, a pipe table and the notes."""
        title = f"**{markdown_text(self.title)}**{markdown_text(self.text)}"
        notes = (markdown_text(note.strip()) for note in self.notes if note)
        return "\n\n".join([title, markdown_table(self.header, self.rows), *notes])

    def to_latex(self) -> str:
        """A ``tabular`` with the title as its caption and the notes below; wide ones in a smaller font."""
        lines = [" & ".join(map(_latex, cells)) + r" \\" for cells in (self.header, *self.rows)]
        columns = "".join("r" if right else "l" for right in self.numeric)
        return "\n".join(
            [
                r"\begin{table}" + (NARROW if len(self.header) > MOST_AT_FULL_SIZE else ""),
                f"\\caption{{{_latex(self.title + self.text)}}}",
                f"\\begin{{tabular}}{{{columns}}}",
                *(r"\hline", lines[0], r"\hline", *lines[1:], r"\hline"),
                r"\end{tabular}",
                *(f"\\par\\smallskip\\footnotesize {_latex(note)}" for note in self.notes if note),
                r"\end{table}",
            ]
        )

    def to_html(self, most: int | None = None) -> str:
        """The whole table, or its first rows.

        Everything is escaped, invisible characters are written out, and long cells are cut. There are no colours and
        no style sheet, so that it reads on light and on dark pages, and where HTML is cleaned before it is shown.
        """
        shown = self.rows[:most]
        hidden = len(self.rows) - len(shown)
        more = [f"… and {plural(hidden, f'more {self.noun}')}"] if hidden > 0 else []
        align = [f' style="text-align:{"right" if right else "left"}"' for right in self.numeric]

        def line(tag: str, cells: Sequence[str]) -> str:
            return "".join(f"<{tag}{style}>{_safe(cell)}</{tag[:2]}>" for cell, style in zip(cells, align, strict=True))

        names = line('th scope="col"', self.header)
        body = "".join(f"<tr>{line('td', row)}</tr>" for row in shown)
        below = "<br>".join(_safe(note, cut=MOST_OF_NOTE) for note in (*more, *self.notes) if note)
        return (
            f'<div class="agentic-bayes" style="{_PLAIN}"><p style="{_PLAIN}">'
            f"<strong>{_safe(self.title, cut=MOST_OF_NOTE)}</strong>{_safe(self.text, cut=MOST_OF_NOTE)}</p>"
            f'<table style="{_PLAIN}"><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>'
            + (f'<p style="{_PLAIN}"><small>{below}</small></p>' if below else "")
            + "</div>"
        )


class Tabular:
    """A result that is shown as one table: its notebook, Markdown, HTML and LaTeX forms follow from it."""

    def table(self) -> Table:
        """The table that every renderer shows."""
        raise NotImplementedError

    def to_markdown(self) -> str:
        """The result as Markdown text: a title, a pipe table and notes."""
        return self.table().to_markdown()

    def to_latex(self) -> str:
        """The result as a LaTeX ``table``: a caption, a ``tabular`` and notes; whatever LaTeX would read is escaped.

        Names in scripts that pdfLaTeX does not know (Chinese, Hebrew, emoji) need LuaLaTeX or XeLaTeX and a font.
        """
        return self.table().to_latex()

    def to_html(self) -> str:
        """The result as an HTML table with all its rows, without a style sheet; text is escaped."""
        return self.table().to_html()

    def to_dict(self) -> dict[str, Any]:
        """Everything as an object that JSON can hold; undefined numbers are None."""
        fields: dict[str, Any] = asdict(self)  # type: ignore[call-overload]  # every result is a dataclass
        return dict(json_ready({name: value for name, value in fields.items() if not name.startswith("_")}))

    def _repr_html_(self) -> str:
        return self.table().to_html(MOST_ROWS)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A GitHub-style pipe table: pipes and line breaks in cells are escaped, columns of numbers are right-aligned."""
    body = [list(row) for row in rows]
    aligned = ["---:" if body and all(is_number(row[i]) for row in body) else "---" for i in range(len(header))]
    escaped = [[_markdown_cell(cell) for cell in row] for row in (header, *body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (escaped[0], aligned, *escaped[1:]))


def markdown_text(text: str) -> str:
    """The text on one line as Markdown that shows it: no markup, link, mention or HTML comes of it."""
    line = _MARKUP.sub(lambda found: _AS_TEXT.get(found[0], f"\\{found[0]}"), one_line(text))
    return _BLOCK.sub(r"\1\\\2", line)


def _markdown_cell(text: str) -> str:
    line = one_line(text).replace("\\", "\\\\")
    return _MARKUP.sub(lambda found: found[0] if found[0] == "\\" else _AS_TEXT.get(found[0], f"\\{found[0]}"), line)


def _safe(text: str, *, cut: int = MOST_OF_CELL) -> str:
    """The text as HTML: escaped, on one line, with nothing invisible, and cut to a length."""
    line = one_line(text)
    return escape(cut_text(line, cut))


def _latex(text: str) -> str:
    """The text as LaTeX sets it: no row begins with an option of the line break, and no two signs make a third."""
    line = re.sub(r"([-',])(?=\1)", "\\1\0", one_line(text).strip())
    return (f"\0{line}" if line.startswith(("[", "*")) else line).translate(LATEX)


def is_number(cell: str) -> bool:
    """Whether a cell holds a number (with its interval or total), so that it is aligned and never cut."""
    return _NUMBER.fullmatch(cell) is not None
