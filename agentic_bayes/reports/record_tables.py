"""Tables of the contents of conversation files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from agentic_bayes.formatting import Table, plain_text, plural
from agentic_bayes.records.select import Found
from agentic_bayes.records.survey import Survey

MOST_FILES = 20
MOST_CONVERSATIONS = 50


def survey_tables(found: Survey) -> list[Table]:
    """The contents of conversation files, file by file, and the kinds of problems."""
    rows = [
        [
            Path(file.name).name,
            file.format,
            *(f"{n:,}" for n in (file.conversations, file.interactions, file.errors, file.recorded, file.bad_records)),
        ]
        for file in found.files[:MOST_FILES]
    ]
    hidden = len(found.files) - len(rows)
    notes = [f"and {hidden:,} more files"] if hidden > 0 else []
    header = ["file", "format", "conv.", "turns", "errors", "scored", "bad"]
    tables = [Table(title="Files", header=header, rows=rows, notes=notes, noun="file")] if rows else []
    if found.kinds:
        kinds = [[kind, f"{count:,}"] for kind, count in list(found.kinds.items())[:MOST_FILES]]
        tables.append(Table(title="Problems by kind", header=["problem", "times"], rows=kinds, noun="problem"))
    return tables


def survey_lines(found: Survey) -> list[str]:
    """The result of a survey in sentences."""
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
    """The conversations to choose from."""
    rows = [
        [one.session, one.agent, one.task, str(one.trial), str(one.interactions)] for one in found[:MOST_CONVERSATIONS]
    ]
    notes = ["choose one: --session, or --task and --trial"]
    if len(found) > len(rows):
        notes.insert(0, f"and {len(found) - len(rows):,} more")
    header = ["session", "agent", "task", "trial", "turns"]
    return Table(title="Conversations", header=header, rows=rows, notes=notes, noun="conversation")
