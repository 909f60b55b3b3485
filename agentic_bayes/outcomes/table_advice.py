"""What to do about a table whose columns are not the ones that were expected."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentic_bayes.errors import AgenticBayesWarning, OutcomesError, did_you_mean
from agentic_bayes.evidence import table as tables
from agentic_bayes.evidence.frames import LocalTable, OpenTable
from agentic_bayes.outcomes.verdicts import is_verdict

HINT = 'Name the columns: task="…", correct="…" in Python, --columns task=…,correct=… on the command line'
USUAL = {  # what other tools call a column
    "agent": ("model", "provider", "system", "assistant", "agent_name", "model_name", "agent_id"),
    "task": (
        "task_id",
        "id",
        "item",
        "question",
        "question_id",
        "sample_id",
        "example",
        "problem",
        "case",
        "name",
        "test",
    ),
    "correct": (
        "passed",
        "pass",
        "success",
        "result",
        "verdict",
        "outcome",
        "is_correct",
        "resolved",
        "score",
        "grade",
    ),
}


def ambiguous(source: str) -> str:
    """The message that a table holds both verdicts and counts."""
    return (
        f"{source}: the table has a column 'correct' and columns 'successes' and 'trials', so it could be read two "
        'ways: give correct="correct" for one row per trial, or successes="successes", trials="trials" for counts '
        "(--columns correct=correct or --columns successes=successes,trials=trials)"
    )


def check_required(opened: OpenTable, required: Sequence[str], standard: Mapping[str, str], *, wide: bool) -> None:
    """Refuse a table that lacks columns; say which are near, and what the table may be instead."""
    missing = [name for name in dict.fromkeys(map(str, required)) if not opened.holds(name)]
    if not missing:
        return
    whole = opened.careful() or opened
    names = list(whole.names)
    near = [f"{name!r} ({_near(name, standard, names)})" for name in missing]
    listed = ", ".join(map(repr, names)) or "none"
    advice = "" if wide else _what_it_is(whole, names, missing, standard)
    raise OutcomesError(
        f"{opened.source}: there is no column {' and no '.join(near)}. Its columns: {listed}. {advice or HINT}"
    )


def _near(name: str, standard: Mapping[str, str], names: Sequence[str]) -> str:
    """The column that is probably meant."""
    same = [other for other in names if other.strip().lower() == name.strip().lower()]
    role = next((role for role, column in standard.items() if column == name), "")
    usual = [other for word in USUAL.get(role, ()) for other in names if other.lower() == word]
    found = did_you_mean(name, names)
    return f"did you mean {(same or usual)[0]!r}?" if same or (usual and "did you mean" not in found) else found


def _what_it_is(opened: OpenTable, names: Sequence[str], missing: Sequence[str], standard: Mapping[str, str]) -> str:
    """What a table without these columns looks like, and how it is read; "" if it looks like nothing in particular."""
    if not isinstance(opened, LocalTable) or not names:
        return ""
    words = [str(next(iter(cells), "")).strip().lower() for cells in opened.columns.values()]
    if all(name.lower() in words for name in missing):
        return f"The header seems to be {opened.place(0)}: read it with pandas.read_csv(path, header=1)"
    if len(names) == 1 and (mark := next((mark for mark in "|:" if mark in names[0]), "")):
        return f"The fields seem to be separated by {mark!r}: read it with pandas.read_csv(path, sep={mark!r})"
    if len(missing) > 1 and any(is_verdict(name) or tables.number(name) is not None for name in names):
        return "The header seems to be missing: read it with pandas.read_csv(path, names=['task', 'correct', …])"
    if list(missing) == [standard["correct"]]:
        others = [
            name for name in names if name not in ("agent", standard["task"], "trial") and _verdicts(opened, name)
        ]
        if len(others) > 1:
            return (
                f"The table may be wide, {', '.join(map(repr, others[:4]))} being trials or agents: give "
                'wide="trials" or wide="agents" (--wide)'
            )
        if others:
            return f"Column {others[0]!r} holds verdicts: give correct={others[0]!r} (--columns correct={others[0]})"
    return ""


def _verdicts(opened: LocalTable, name: str) -> bool:
    cells: list[Any] = [cell for cell in list(opened.columns[name])[:1000] if not tables.is_blank(cell)]
    return bool(cells) and all(map(is_verdict, cells))


def repeated_trials(opened: OpenTable, agent: str | None, task: str, trial: str) -> str:
    """What to do about an (agent, task, trial) that occurs twice."""
    if agent is None:
        lower = {name.lower(): name for name in opened.names}
        if found := [lower[name] for name in USUAL["agent"] if name in lower]:
            return (
                f"Without an agent column all rows are one agent: give agent={found[0]!r} (--columns agent={found[0]})"
            )
    keys = ", ".join(f'"{name}"' for name in (agent, task) if name)
    return (
        f'If these are further attempts, number them: table["{trial}"] = table.groupby([{keys}]).cumcount(); '
        "if rows were copied, table = table.drop_duplicates()"
    )


def swapped(columns: Mapping[str, Sequence[Any]], correct: str) -> str:
    """The advice that a column of labels holds the verdicts; "" if none does."""
    for name, values in columns.items():
        if values and all(map(is_verdict, values)):
            return (
                f"Column {name!r} holds verdicts; if the two are swapped: {name}={correct!r}, correct={name!r} "
                f"(--columns {name}={correct},correct={name})"
            )
    return ""


def other_columns(names: Iterable[str], cells: Iterable[Any]) -> list[str]:
    """The advice to leave out columns of a wide table that hold text other than verdicts."""
    wrong = {
        name: None
        for name, cell in zip(names, cells, strict=True)
        if not (tables.is_blank(cell) or is_verdict(cell)) and tables.number(cell) is None
    }
    return [f"If these are no trials, leave them out: table.drop(columns={list(wrong)})"] if wrong else []


def similar_agents(agents: Sequence[str], column: str, source: str) -> None:
    """Warn of agents whose names differ in case or spaces only."""
    seen: dict[str, str] = {}
    pairs = [
        (before, name) for name in agents if (before := seen.setdefault(" ".join(name.lower().split()), name)) != name
    ]
    if pairs:
        listed = ", ".join(f"{one!r} and {other!r}" for one, other in pairs[:5])
        warnings.warn(
            f"{source}: agents {listed} differ in case or spaces only and are counted apart; to join them: "
            f'table["{column}"] = table["{column}"].str.lower().str.split().str.join(" ")',
            AgenticBayesWarning,
            stacklevel=3,
        )
