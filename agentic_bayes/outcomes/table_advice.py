"""Advice on a table whose columns are not the expected ones."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentic_bayes.errors import InvalidArgument, OutcomesError, did_you_mean
from agentic_bayes.evidence import table as tables
from agentic_bayes.evidence.frames import LocalTable, OpenTable
from agentic_bayes.outcomes.table_doubts import SUM, Tallies, kept, told_apart, warn
from agentic_bayes.outcomes.verdicts import is_verdict

HINT = 'Name the columns: task="…", correct="…" in Python, --columns task=…,correct=… on the command line'


_NO_TRIAL = re.compile(
    r"unnamed: \d+|index|idx|id|row|rank|#|nr\.?|no\.|count|n|any|best([ _-]of[ _-]?\d+)?|"
    r"(.*\W)?pass(ed)?[ _]?(@|\^|at)[ _]?\d+|maj(ority)?([ _@]?\d+)?|majority[ _]vote|"
    r"(n|num)_(correct|passed|success(es)?|trials|runs)|(pass|success|win)_?rate|accuracy|successes|trials|solve_rate"
)
_COUNTS = (
    ("c", "n"),
    ("k", "n"),
    ("sum", "count"),
    ("num_correct", "num_total"),
    ("correct", "total"),
    ("passed", "total"),
)


def ambiguous(source: str) -> str:
    """The message that a table holds both verdicts and counts."""
    return (
        f"{source}: the table has a column 'correct' and columns 'successes' and 'trials', so it could be read two "
        'ways: give correct="correct" for one row per trial, or successes="successes", trials="trials" for counts '
        "(--columns correct=correct or --columns successes=successes,trials=trials)"
    )


def check_required(opened: OpenTable, required: Sequence[str], standard: Mapping[str, str]) -> None:
    """Refuse a table that lacks columns; say which are near, and what the table may be instead."""
    missing = [name for name in dict.fromkeys(map(str, required)) if not opened.holds(name)]
    if not missing:
        return
    whole = opened.careful() or opened
    names = list(whole.names)
    near = [f"{name!r}{_near(name, standard, names)}" for name in missing]
    listed = ", ".join(map(repr, names)) or "none"
    note = whole.note if isinstance(whole, LocalTable) and standard["task"] in missing else ""
    advice = note or _what_it_is(whole, names, missing, standard)
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
    usual = tables.usual(role, names) if role else []
    return f" (did you mean {usual[0]!r}?)" if usual else ""


def _called(name: str, names: Sequence[str]) -> str | None:
    """The column of this name in other letters or between quotes."""
    return next((other for other in names if other.strip(" '`").lower() == name.strip().lower()), None)


def _what_it_is(opened: OpenTable, names: Sequence[str], missing: Sequence[str], standard: Mapping[str, str]) -> str:
    """What a table without these columns looks like, and how it is read; "" if it looks like nothing in particular."""
    names = [name for name in names if opened.holds(name)]
    if not isinstance(opened, LocalTable) or not names:
        return ""
    words = [str(next(iter(cells), "")).strip().lower() for cells in opened.columns.values()]
    if all(name.lower() in words for name in missing):
        return f"The header seems to be {opened.place(0)}: read it with pandas.read_csv(path, header=1)"
    if names[0].startswith("|") and len(names) == 1:
        return (
            "It looks like Markdown: read it with pandas.read_csv(path, sep='|', skipinitialspace=True)"
            ".dropna(axis=1, how='all').iloc[1:].rename(columns=str.strip)"
        )
    if len(names) == 1 and (mark := next((mark for mark in "|&: " if mark in names[0]), "")):
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
    agents = [name for name in tables.usual("agent", names) if _one_row_each(opened, name)]
    if standard["task"] in missing and agents:
        return (
            f"It has one row for each {agents[0]!r}: if the other columns are tasks, table = table.melt({agents[0]!r}, "
            f'var_name="task", value_name="correct"), and agent={agents[0]!r}; of published rates, the results of '
            "each task are needed"
        )
    if len(missing) > 1 and any(
        (is_verdict(name) and name in map(str, Tallies(opened).distinct(name))) or tables.number(name) is not None
        for name in names
    ):
        return "The header seems to be missing: read it with pandas.read_csv(path, names=['task', 'correct', …])"
    if list(missing) == [standard["correct"]]:
        if counts := _counts(opened, names):
            return counts
        references = tables.usual("reference", names)
        answers = [name for name in names if name.lower() in _ANSWERS]
        known = ("agent", standard["task"], "trial", "error", *references, *answers)
        others = [name for name in names if name not in known and _verdicts(opened, name)]
        if not others and len(answers) == 1 and (expected := [name for name in references if name not in answers]):
            return f'To compare answers exactly: table["correct"] = table["{answers[0]}"] == table["{expected[0]}"]'
        if len(others) > 1:
            return (
                f"The table may be wide, {', '.join(map(repr, others[:4]))} being trials or agents: give "
                'wide="trials" or wide="agents" (--wide); if they are scores of one trial, choose one: '
                f"correct={others[0]!r} (--columns correct={others[0]})"
            )
        if others and tables.usual("failures", others[:1]):
            return (
                f'Column {others[0]!r} seems to mark failures, so 1 means wrong: table["correct"] = '
                f'table["{others[0]}"].astype(int).rsub(1)'
            )
        if others:
            return f"Column {others[0]!r} holds verdicts: give correct={others[0]!r} (--columns correct={others[0]})"
        trials = [name for name in tables.usual("trials", names) if _numbers(opened, name)]
        if lists := [name for name in names if isinstance(next(iter(opened.columns[name]), None), (list, tuple))]:
            return (
                f"Column {lists[0]!r} holds lists; for one row of each item: table = pandas.DataFrame(records)"
                f".explode({lists[0]!r}), and correct={lists[0]!r} or, of objects, correct='{lists[0]}.NAME'"
            )
        if scores := [name for name in tables.usual("correct", names) if _numbers(opened, name)]:
            rates = "successes = share * trials"
            if trials:
                rates = f'table["successes"] = (table["{scores[0]}"] * table["{trials[0]}"]).round().astype(int)'
                rates += f', and successes="successes", trials="{trials[0]}"'
            return (
                f"Column {scores[0]!r} holds scores: give correct={scores[0]!r}, threshold=0.7 (--columns "
                f"correct={scores[0]} --threshold 0.7); if each is a share of several trials, give counts instead: "
                f"{rates}"
            )
        if any(_numbers(opened, name) for name in tables.usual("successes", names)):
            return 'Counts need their trials, too; if there were 5 of each task: table["trials"] = 5'
    if standard["task"] in missing and not next(iter(opened.columns)).strip():
        named = "table = pandas.read_csv(path, index_col=0).rename_axis('task').reset_index()"
        return f"The first column has no name; if it holds the tasks: {named}"
    return ""


def _one_row_each(opened: LocalTable, name: str) -> bool:
    """Whether no two rows have the same value, of several."""
    values = list(map(str, opened.columns[name]))
    return len(set(values)) == len(values) > 1


_ANSWERS = (
    "answer",
    "output",
    "response",
    "prediction",
    "predicted",
    "actual",
    "actual_output",
    "model_answer",
    "pred",
)


def _counts(opened: LocalTable, names: Sequence[str]) -> str:
    """The advice that two columns hold counts; "" if none do."""
    numeric = {name.lower(): name for name in names if _numbers(opened, name)}
    pairs = [
        (c, n)
        for c in tables.usual("successes", numeric.values())
        for n in tables.usual("trials", numeric.values())
        if c != n
    ]
    pairs += [
        (c, n)
        for c in tables.usual("correct", numeric.values())
        for n in tables.usual("trials", numeric.values())
        if _are_counts(opened.columns[c], opened.columns[n])
    ]
    pairs += [(numeric[c], numeric[n]) for c, n in _COUNTS if c in numeric and n in numeric]
    if pairs:
        c, n = pairs[0]
        return f"If these are counts: successes={c!r}, trials={n!r} (--columns successes={c},trials={n})"
    passed = next(
        (numeric[name] for name in ("passed", "pass", "successes", "wins", "1", "true") if name in numeric), ""
    )
    failed = next(
        (numeric[name] for name in ("failed", "fail", "failures", "losses", "0", "false") if name in numeric), ""
    )
    if passed in ("1", "True") and all(tables.number(cell) in (0, 1) for cell in opened.columns[passed]):
        return ""  # they may number two trials
    if passed and failed:
        return (
            f'If these are counts: table["trials"] = table["{passed}"] + table["{failed}"], and give '
            f'successes="{passed}", trials="trials"'
        )
    return ""


def _are_counts(part: Iterable[Any], whole: Iterable[Any]) -> bool:
    """Whether one column counts a part of another: whole numbers, one at least above 1."""
    pairs = [(tables.whole_number(c), tables.whole_number(n)) for c, n in zip(part, whole, strict=True)]
    known = [(c, n) for c, n in pairs if c is not None and n is not None]
    return len(known) == len(pairs) and all(c <= n for c, n in known) and any(c > 1 for c, _ in known)


def _numbers(opened: LocalTable, name: str) -> bool:
    cells = [cell for cell in list(opened.columns[name])[:1000] if not tables.is_blank(cell)]
    return bool(cells) and all(tables.number(cell) is not None for cell in cells)


def _verdicts(opened: LocalTable, name: str) -> bool:
    cells: list[Any] = [cell for cell in list(opened.columns[name])[:1000] if not tables.is_blank(cell)]
    return bool(cells) and all(map(is_verdict, cells))


def repeated_trials(opened: OpenTable, agent: str | None, task: str, trial: str) -> str:
    """What to do about an (agent, task, trial) that occurs twice."""
    if agent is None and (found := tables.usual("agent", opened.names)):
        return f"Without an agent column all rows are one agent: give agent={found[0]!r} (--columns agent={found[0]})"
    other = [name for name in opened.names if name not in (agent, task, trial) and opened.holds(name)]
    tallies, cell = Tallies(opened), [name for name in (agent, task, trial) if name]
    metrics = tables.usual("metric", other)
    for name in [*metrics, *tables.usual("part", other), *tables.usual("group", other)]:
        if not (several := tallies.several(cell, name)):
            continue
        if name in metrics:
            return f"Column {name!r} differs; if these are not attempts, keep one: {kept(name, several[name][0])}"
        return f"If tasks of the same name are different tasks in each {name!r}: {told_apart(name, task)}"
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
    """Refuse columns of a wide table that sum up or number others, and warn of one unlike the other trials."""
    lower = {name: name.strip().lower() for name in names}
    others = {name for role in ("group", "weight", "trial", "error", "reference") for name in tables.usual(role, names)}
    odd = [name for name, word in lower.items() if SUM.fullmatch(word) or _NO_TRIAL.fullmatch(word) or name in others]
    if odd:
        raise OutcomesError(
            f"{source}: {', '.join(map(repr, odd))} would be counted among the {wide}: if that is wrong, drop "
            f"it, table.drop(columns={odd}); if not, rename it"
        )
    bare = [name for name in names if not re.search(r"\d", name)]
    if wide == "trials" and 0 < len(bare) < len(names) - 1:
        listed = ", ".join(map(repr, bare))
        warn(source, [f"{listed} counted as trials like the others; if they are none: table.drop(columns={bare})"])


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
    others = {other.lower(): other for other in opened.names if other not in names and opened.holds(other)}
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


def other_columns(names: Sequence[str], cells: Iterable[Any], wide: str) -> list[str]:
    """The advice to leave out columns of a wide table that hold text other than verdicts, if not all do."""
    wrong = {
        name: None
        for name, cell in zip(names, cells, strict=True)
        if not (tables.is_blank(cell) or is_verdict(cell)) and tables.number(cell) is None
    }
    some = wrong and len(wrong) < len(set(names))
    return [f"If these are not {wide}, leave them out: table.drop(columns={list(wrong)})"] if some else []
