"""Results as Markdown for a pull request or a job summary: what was found, and what it rests on folded below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.reports.tables import settings_table
from agentic_bayes.result_table import Table, markdown_text


def comment(est: Estimate, tables: Sequence[Table], *, sentence: str = "") -> str:
    """A sentence and tables; their notes, the settings and the versions are folded below."""
    title, *below = "\n\n".join(replace(table, notes=()).to_markdown() for table in tables).split("\n\n")
    notes = [_with_its_table(note.strip(), table, tables) for table in tables for note in table.notes if note]
    lines = "\n".join(f"- {markdown_text(note)}" for note in dict.fromkeys(notes))
    return paragraphs(
        title, markdown_text(sentence.strip()), *below, folded("Settings", lines, settings_table(est).to_markdown())
    )


def _with_its_table(note: str, table: Table, tables: Sequence[Table]) -> str:
    """The note of one of several tables of a kind, which says whose it is unless all have it."""
    if any(other.header != table.header for other in tables) or all(note in other.notes for other in tables):
        return note
    return f"{table.title}: {note}"


def folded(title: str, *parts: str) -> str:
    """Markdown that is shown when its title is clicked."""
    return paragraphs(f"<details><summary>{title}</summary>", *parts, "</details>")


def paragraphs(*parts: str) -> str:
    """Parts with a blank line between them; empty ones are left out."""
    return "\n\n".join(filter(None, parts))
