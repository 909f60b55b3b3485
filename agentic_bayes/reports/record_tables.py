"""Tables of the contents of conversation files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentic_bayes.formatting import format_number, plain_text, plural, with_more
from agentic_bayes.records.select import SelectedConversation
from agentic_bayes.records.survey import FirstRecord, Survey
from agentic_bayes.result_table import Table

LONGEST = 100
MOST_FILES = 20
MOST_CONVERSATIONS = 50


def survey_tables(survey: Survey) -> list[Table]:
    """The contents of conversation files, file by file, and the kinds of problems."""
    shown = survey.files[:MOST_FILES]
    rows = [
        [
            name,
            file.format,
            *(f"{n:,}" for n in (file.conversations, file.interactions, file.errors, file.recorded, file.bad_records)),
        ]
        for name, file in zip(_told_apart([file.name for file in shown]), shown, strict=True)
    ]
    hidden = len(survey.files) - len(rows)
    notes = [f"and {hidden:,} more files"] if hidden > 0 else []
    header = ["file", "format", "conv.", "turns", "errors", "scored", "bad"]
    tables = [Table(title="Files", header=header, rows=rows, notes=notes, noun="file")] if rows else []
    if survey.kinds:
        kinds = [[kind, f"{count:,}"] for kind, count in list(survey.kinds.items())[:MOST_FILES]]
        tables.append(Table(title="Problems by kind", header=["problem", "times"], rows=kinds, noun="problem"))
    return tables


def _told_apart(names: list[str]) -> list[str]:
    """The names of files, with their folders where names repeat."""
    paths = [Path(name) for name in names]
    if len({path.name for path in paths}) == len(paths):
        return [path.name for path in paths]
    common = os.path.commonpath([path.absolute().parent for path in paths])
    return [str(path.absolute().relative_to(common)) for path in paths]


def survey_lines(survey: Survey) -> list[str]:
    """The result of a survey in sentences."""
    agents = with_more([plain_text(agent) for agent in list(survey.agents)[:MOST_FILES]], len(survey.agents))
    counts = [
        plural(survey.conversations, "conversation"),
        plural(survey.interactions, "interaction"),
        plural(len(survey.agents), "agent") + (f" ({agents})" if agents else ""),
        *([] if survey.n_problems else [plural(survey.tasks, "task")]),
        f"{survey.errors:,} with an agent error",
    ]
    lines = [f"{'readable' if survey.n_problems else 'valid'}: {', '.join(counts)}"]
    if survey.left_out:
        lines.append(f"left out: {survey.left_out} that could not be read")
    formats = Counter(file.format for file in survey.files)
    if len(survey.files) > 1:
        kinds = ", ".join(f"{count:,} {name}" for name, count in sorted(formats.items()))
        lines.append(f"{plural(len(survey.files), 'file')}: {kinds}")
    lines += [f"doubtful: {plain_text(doubt)}" for doubt in survey.doubts]
    return [*lines, *_first_lines(survey.first)] if survey.first else lines


def _first_lines(first: FirstRecord) -> Iterator[str]:
    """What became of the first record, so that one can see whether it was read as it was meant."""
    yield f"first record, of {Path(first.source).name}:"
    calls = ", ".join(first.calls[:MOST_FILES]) + (", …" if len(first.calls) > MOST_FILES else "")
    shown = {
        "agent": first.agent,
        "task": first.task,
        "trial": str(first.trial),
        "query": first.query,
        "answer": first.answer,
        "calls": calls or "none",
        "score": None if first.recorded_score is None else format_number(first.recorded_score),
        "error": first.error,
    }
    for name, value in shown.items():
        if value is not None:
            text = " ".join(value.split())
            long = len(text) > LONGEST and name not in ("agent", "task")
            yield f"  {name}: {plain_text(text[: LONGEST - 1] + '…' if long else text)}"


def conversations_table(conversations: Sequence[SelectedConversation]) -> Table:
    """The conversations to choose from."""
    rows = [
        [one.session, one.agent, one.task, str(one.trial), str(one.interactions)]
        for one in conversations[:MOST_CONVERSATIONS]
    ]
    notes = ["choose one: --session, or --task and --trial"]
    if len(conversations) > len(rows):
        notes.insert(0, f"and {len(conversations) - len(rows):,} more")
    header = ["session", "agent", "task", "trial", "turns"]
    return Table(title="Conversations", header=header, rows=rows, notes=notes, noun="conversation")
