"""Tables in Markdown, HTML and LaTeX, to be pasted into a page or a paper."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Literal, assert_never

from agentic_bayes.formatting import Table, one_line

LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$"}
    | {"≥": r"$\geq$", "≤": r"$\leq$", "×": r"$\times$", "±": r"$\pm$", "√": r"$\surd$", "◄": r"$\triangleleft$"}
    | {"μ": r"$\mu$", "ρ": r"$\rho$", "κ": r"$\kappa$", "σ": r"$\sigma$", "−": "$-$", "–": "--"}
)


def table_markup(table: Table, to: Literal["markdown", "html", "latex"]) -> str:
    """A table with its title above and its notes below."""
    match to:
        case "markdown":
            return table.to_markdown()
        case "html":
            return _html(table)
        case "latex":
            return _latex(table)
        case _:
            assert_never(to)


def _html(table: Table) -> str:
    def row(tag: str, cells: Sequence[str]) -> str:
        styles = [' style="text-align:right"' if number else "" for number in table.numeric]
        texts = zip(styles, cells, strict=True)
        return f"<tr>{''.join(f'<{tag}{style}>{escape(one_line(cell))}</{tag}>' for style, cell in texts)}</tr>"

    body = "\n".join(row("td", cells) for cells in table.rows)
    notes = "".join(f"\n<p>{escape(one_line(note.strip()))}</p>" for note in filter(None, table.notes))
    caption = f"<caption>{escape(one_line(table.title + table.text))}</caption>"
    return f"<table>\n{caption}\n<thead>{row('th', table.header)}</thead>\n<tbody>\n{body}\n</tbody>\n</table>{notes}"


def _latex(table: Table) -> str:
    lines = [" & ".join(_escaped(cell, LATEX) for cell in row) + r" \\" for row in (table.header, *table.rows)]
    notes = [f"\\par\\footnotesize {_escaped(note, LATEX).strip()}" for note in filter(None, table.notes)]
    return "\n".join(
        [
            r"\begin{table}",
            f"\\caption{{{_escaped(table.title + table.text, LATEX)}}}",
            f"\\begin{{tabular}}{{{''.join('r' if number else 'l' for number in table.numeric)}}}",
            *(r"\hline", lines[0], r"\hline", *lines[1:], r"\hline"),
            r"\end{tabular}",
            *notes,
            r"\end{table}",
        ]
    )


def _escaped(text: str, signs: dict[int, str]) -> str:
    return one_line(text).translate(signs)
