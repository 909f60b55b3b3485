"""Tables of what is in files of conversations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from agentic_bayes.formatting import plain_text, plural
from agentic_bayes.records.select import Found
from agentic_bayes.records.survey import Survey
from agentic_bayes.reports.tables import Table

MOST_FILES = 20
MOST_PROBLEMS = 50


def survey_tables(found: Survey) -> list[Table]:
    """What is in files of conversations, file by file, and the kinds of problems."""
    rows = tuple(
        (
            Path(file.name).name,
            file.format,
            *(f"{n:,}" for n in (file.conversations, file.interactions, file.errors, file.recorded, file.bad_records)),
        )
        for file in found.files[:MOST_FILES]
    )
    hidden = len(found.files) - len(rows)
    notes = (f"and {hidden:,} more files",) if hidden > 0 else ()
    header = ("file", "format", "conv.", "turns", "errors", "scored", "bad")
    tables = [Table("What is there", header, rows, notes)] if rows else []
    if found.kinds:
        kinds = tuple((kind, f"{count:,}") for kind, count in list(found.kinds.items())[:MOST_FILES])
        tables.append(Table("Problems by kind", ("problem", "times"), kinds))
    return tables


def survey_lines(found: Survey) -> list[str]:
    """What a survey comes to, in sentences."""
    agents = ", ".join(map(plain_text, list(found.agents)[:MOST_FILES]))
    more = f" and {len(found.agents) - MOST_FILES:,} more" if len(found.agents) > MOST_FILES else ""
    counts = [
        plural(found.conversations, "conversation"),
        plural(found.interactions, "interaction"),
        plural(len(found.agents), "agent") + (f" ({agents}{more})" if agents else ""),
        *([] if found.n_problems else [plural(found.tasks, "task")]),
        f"{found.errors:,} with an agent error",
    ]
    lines = [f"{'readable' if found.n_problems else 'valid'}: {', '.join(counts)}"]
    formats = Counter(file.format for file in found.files)
    if len(found.files) > 1:
        kinds = ", ".join(f"{count:,} {name}" for name, count in sorted(formats.items()))
        lines.append(f"{plural(len(found.files), 'file')}: {kinds}")
    return [*lines, *(f"doubtful: {plain_text(doubt)}" for doubt in found.doubts)]


def conversations_table(found: Sequence[Found]) -> Table:
    """Which conversations there are, to choose one."""
    rows = tuple(
        (plain_text(one.session), plain_text(one.agent), plain_text(one.task), str(one.trial), str(one.interactions))
        for one in found[:MOST_PROBLEMS]
    )
    notes = ["choose one: --session, or --task and --trial"]
    if len(found) > len(rows):
        notes.insert(0, f"and {len(found) - len(rows):,} more")
    return Table("Conversations", ("session", "agent", "task", "trial", "turns"), rows, tuple(notes))
