"""The page as Markdown, for a pull request or a job summary: the first screen, and tables folded below it."""

from __future__ import annotations

from collections.abc import Sequence

from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.reports.comment import folded, paragraphs
from agentic_bayes.reports.html.opening import RateGroup, lede
from agentic_bayes.reports.html.question import ReportQuestion
from agentic_bayes.reports.html.verdict import Answer, reading_lines
from agentic_bayes.result_table import Table, markdown_table, markdown_text


def markdown_page(
    est: Estimate,
    asked: ReportQuestion,
    heading: Sequence[str],
    verdict: str,
    rates: Sequence[RateGroup],
    answers: Sequence[Answer],
    tables: Sequence[Table | None],
) -> str:
    """What a reader in a hurry wants to know, with every table behind its title."""
    below = [folded(markdown_text(table.title), _untitled(table)) for table in tables if table is not None]
    return paragraphs(
        f"# {markdown_text(verdict)}",
        "\n".join(f"{markdown_text(line)}  " for line in heading if line),
        markdown_text(lede(est, asked)),
        _rates_table(est, rates),
        *map(_answer, answers),
        folded("How to read this", "\n".join(f"- {markdown_text(line)}" for line in reading_lines(est, asked))),
        *below,
    )


def _rates_table(est: Estimate, groups: Sequence[RateGroup]) -> str:
    """Agents by metric; an agent that has no rate says why."""
    rows = [
        [est.agents[own[0].agent], *(f"{one.percent} ({one.interval})" if one.interval else one.percent for one in own)]
        for own in zip(*(group.rates for group in groups), strict=True)
    ]
    return markdown_table(["agent", *(group.title for group in groups)], rows)


def _untitled(table: Table) -> str:
    """The table and its notes; its title is what is clicked."""
    return paragraphs(markdown_table(table.header, table.rows), *map(markdown_text, filter(None, table.notes)))


def _answer(one: Answer) -> str:
    lines = [f"**{one.question}** {markdown_text(one.lines[0])}", *map(markdown_text, one.lines[1:])]
    command = f"    {one.command}" if one.command else ""  # an indented line is code, whatever it holds
    return paragraphs("  \n".join(lines), command)
