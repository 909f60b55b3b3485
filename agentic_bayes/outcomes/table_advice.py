"""Advice on a table whose columns are not the expected ones."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agentic_bayes.errors import AgenticBayesWarning, InvalidArgument, OutcomesError, did_you_mean
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
        "prompt",
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


_FAILURES = ("failed", "fail", "failure", "failures", "incorrect", "wrong", "bug", "broken", "crashed", "is_error")
_SUMS = ("total", "sum", "overall", "average", "mean", "avg", "gesamt", "summe")
_NO_TRIALS = (*_SUMS, "median", "std", "index", "count", "pass_rate", "success_rate", "accuracy")


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
    near = [f"{name!r}{_near(name, standard, names)}" for name in missing]
    listed = ", ".join(map(repr, names)) or "none"
    advice = "" if wide else _what_it_is(whole, names, missing, standard)
    raise OutcomesError(
        f"{opened.source}: there is no column {' and no '.join(near)}. Its columns: {listed}. {advice or HINT}"
    )


def _near(name: str, standard: Mapping[str, str], names: Sequence[str]) -> str:
    """The column that is probably meant, in brackets; empty if none is near."""
    if (same := _called(name, names)) is not None:
        return f" (did you mean {same!r}?)"
    if "did you mean" in (found := did_you_mean(name, names)):
        return f" ({found})"
    role = next((role for role, column in standard.items() if column == name), "")
    usual = [other for word in USUAL.get(role, ()) for other in names if other.lower() == word]
    return f" (did you mean {usual[0]!r}?)" if usual else ""


def _called(name: str, names: Sequence[str]) -> str | None:
    """The column of this name in other letters or between quotes."""
    return next((other for other in names if other.strip(" '`").lower() == name.strip().lower()), None)


def _what_it_is(opened: OpenTable, names: Sequence[str], missing: Sequence[str], standard: Mapping[str, str]) -> str:
    """What a table without these columns looks like, and how it is read; "" if it looks like nothing in particular."""
    if not isinstance(opened, LocalTable) or not names:
        return ""
    words = [str(next(iter(cells), "")).strip().lower() for cells in opened.columns.values()]
    if all(name.lower() in words for name in missing):
        return f"The header seems to be {opened.place(0)}: read it with pandas.read_csv(path, header=1)"
    if len(names) == 1 and (mark := next((mark for mark in "|: " if mark in names[0]), "")):
        sep = repr(mark) if mark.strip() else r"r'\s+'"
        return f"The fields seem to be separated by {mark!r}: read it with pandas.read_csv(path, sep={sep})"
    same = {name: _called(name, names) for name in missing}
    if all(other is not None for other in same.values()):
        if all(str(other).startswith("'") for other in same.values()):
            return """The names are between quotes: read it with pandas.read_csv(path, quotechar="'")"""
        roles = {column: role for role, column in standard.items()}
        pairs = [(roles.get(name, name), other) for name, other in same.items()]
        python = ", ".join(f'{role}="{other}"' for role, other in pairs)
        return f"Name the columns: {python} (--columns {','.join(f'{role}={other}' for role, other in pairs)})"
    if len(missing) > 1 and any(
        tables.number(name) is not None or (is_verdict(name) and name in opened.columns[name]) for name in names
    ):
        return "The header seems to be missing: read it with pandas.read_csv(path, names=['task', 'correct', …])"
    if list(missing) == [standard["correct"]]:
        others = [
            name
            for name in names
            if name not in ("agent", standard["task"], "trial", "error") and _verdicts(opened, name)
        ]
        if len(others) > 1:
            return (
                f"The table may be wide, {', '.join(map(repr, others[:4]))} being trials or agents: give "
                'wide="trials" or wide="agents" (--wide)'
            )
        if others and others[0].strip().lower() in _FAILURES:
            return (
                f'Column {others[0]!r} seems to mark failures, so 1 means wrong: table["correct"] = '
                f'table["{others[0]}"].astype(int).rsub(1)'
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


def check_wide(source: str, names: Sequence[str], wide: str) -> None:
    """Refuse columns of a wide table that sum up or number others."""
    if odd := [name for name in names if name.strip().lower() in _NO_TRIALS]:
        raise OutcomesError(
            f"{source}: {', '.join(map(repr, odd))} would be counted among the {wide}: if that is wrong, drop "
            f"it, table.drop(columns={odd}); if not, rename it"
        )


def check_roles(source: str, roles: Mapping[str, str]) -> None:
    """Refuse a column that has two roles."""
    first: dict[str, str] = {}
    for role, column in roles.items():
        if (before := first.setdefault(column, role)) != role:
            raise InvalidArgument(f"{source}: column {column!r} cannot be both {before} and {role}")


def check_misspelt(opened: OpenTable, used: Iterable[str]) -> None:
    """Refuse rows that have a value under a name like that of a column, and none in the column itself."""
    names = set(used)
    if not isinstance(opened, LocalTable):
        return
    others = {other.lower(): other for other in opened.names if other not in names}
    for name in names & set(opened.names):
        for near in difflib.get_close_matches(name.lower(), others, cutoff=0.8):
            pairs = zip(opened.columns[name], opened.columns[others[near]], strict=True)
            blank = [(tables.is_blank(cell), tables.is_blank(other)) for cell, other in pairs]
            if (True, False) in blank and (False, False) not in blank:
                place, rows = opened.place(blank.index((True, False))), blank.count((True, False))
                raise OutcomesError(
                    f"{opened.source}: {place} has {others[near]!r} and no {name!r}, as {rows:,} of {len(blank):,} "
                    f"rows: call it {name!r} in all of them"
                )


def doubts(opened: OpenTable, tasks: Sequence[str], agent: str, *, named: bool) -> Iterator[str]:
    """What may be wrong although the table can be read: sums among the tasks, agents in a column of another name."""
    if sums := [task for task in tasks if len(tasks) > 1 and task.strip().lower() in _SUMS]:
        yield f"task {sums[0]!r} counts as a task: if it is a total of the others, leave its rows out"
    if not named and isinstance(opened, LocalTable):
        names = [name for name in opened.names if name.lower() in USUAL["agent"][:4]]
        several = [name for name in names if len(set(map(str, opened.columns[name]))) > 1]
        if several:
            yield (
                f"there is no column {agent!r}, so all rows are one agent: if {several[0]!r} names agents, give "
                f"agent={several[0]!r} (--columns agent={several[0]})"
            )


def other_columns(names: Iterable[str], cells: Iterable[Any]) -> list[str]:
    """The advice to leave out columns of a wide table that hold text other than verdicts."""
    wrong = {
        name: None
        for name, cell in zip(names, cells, strict=True)
        if not (tables.is_blank(cell) or is_verdict(cell)) and tables.number(cell) is None
    }
    return [f"If these are not trials, leave them out: table.drop(columns={list(wrong)})"] if wrong else []


def similar(agents: Sequence[str], column: str) -> Iterator[str]:
    """The doubt that agents differ in case or spaces only."""
    seen: dict[str, str] = {}
    pairs = [
        (before, name) for name in agents if (before := seen.setdefault(" ".join(name.lower().split()), name)) != name
    ]
    if pairs:
        listed = ", ".join(f"{one!r} and {other!r}" for one, other in pairs[:5])
        yield (
            f"agents {listed} differ in case or spaces only and are counted apart; to join them: "
            f'table["{column}"] = table["{column}"].str.lower().str.split().str.join(" ")'
        )


def warn(source: str, doubts: Iterable[str]) -> None:
    """Warn of these doubts about a table."""
    for doubt in doubts:
        warnings.warn(f"{source}: {doubt}", AgenticBayesWarning, stacklevel=3)
