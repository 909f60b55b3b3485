"""Advice on a table whose columns are not the expected ones."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agentic_bayes.errors import AgenticBayesWarning, InvalidArgument, OutcomesError, did_you_mean
from agentic_bayes.evidence import table as tables
from agentic_bayes.evidence.frames import EngineTable, LocalTable, OpenTable, collected
from agentic_bayes.numerics import Array
from agentic_bayes.outcomes.verdicts import CRASHES, is_verdict

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
_SUM = re.compile(
    r"(grand |sub|sub-|macro |micro |weighted )?"
    r"(totals?|sum|overall|all (?=tasks|problems|benchmarks)|averages?|mean|avg\.?|median|gesamt|summe|std)"
    r"( ?(average|mean|total|accuracy|scores?|rate|pass rate|success rate|tasks|problems|benchmarks))*\s*([(:].*)?"
)
_NO_TRIAL = re.compile(
    r"unnamed: \d+|index|idx|id|row|rank|#|nr\.?|no\.|count|n|any|best|pass(ed)?[ _]?(@|\^|at)[ _]?\d+|"
    r"(n|num)_(correct|passed|success(es)?|trials|runs)|(pass|success|win)_?rate|accuracy|successes|trials|solve_rate"
)
_SHARES = re.compile(r"acc|accuracy|.*(_|\b)rate|pass[@^]\d+|mean(_score)?|avg(_score)?|percent(age)?")
_COUNTS = (
    ("c", "n"),
    ("k", "n"),
    ("sum", "count"),
    ("num_correct", "num_total"),
    ("correct", "total"),
    ("passed", "total"),
)
_STATUS = ("status", "state", "exit_status")
_AGENTS = USUAL["agent"][:4]


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
    usual = [other for word in USUAL.get(role, ()) for other in names if other.lower() == word]
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
    if len(missing) > 1 and any(
        (is_verdict(name) and name in map(str, _distinct(opened, name))) or tables.number(name) is not None
        for name in names
    ):
        return "The header seems to be missing: read it with pandas.read_csv(path, names=['task', 'correct', …])"
    if list(missing) == [standard["correct"]]:
        if counts := _counts(opened, names):
            return counts
        references = tables.usual("reference", names)
        answers = [name for name in names if name.lower() in _ANSWERS]
        if len(answers) == 1 and (expected := [name for name in references if name not in answers]):
            return f'To compare answers exactly: table["correct"] = table["{answers[0]}"] == table["{expected[0]}"]'
        known = ("agent", standard["task"], "trial", "error", *references)
        others = [name for name in names if name not in known and _verdicts(opened, name)]
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
    return ""


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
    pairs += [(numeric[c], numeric[n]) for c, n in _COUNTS if c in numeric and n in numeric]
    if pairs:
        c, n = pairs[0]
        return f"If these are counts: successes={c!r}, trials={n!r} (--columns successes={c},trials={n})"
    passed = next((numeric[name] for name in ("passed", "pass", "successes", "wins") if name in numeric), "")
    failed = next((numeric[name] for name in ("failed", "fail", "failures", "losses") if name in numeric), "")
    if passed and failed:
        return (
            f'If these are counts: table["trials"] = table["{passed}"] + table["{failed}"], and give '
            f'successes="{passed}", trials="trials"'
        )
    return ""


def _numbers(opened: LocalTable, name: str) -> bool:
    cells = [cell for cell in list(opened.columns[name])[:1000] if not tables.is_blank(cell)]
    return bool(cells) and all(tables.number(cell) is not None for cell in cells)


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
    """Refuse columns of a wide table that sum up or number others, and warn of one unlike the other trials."""
    lower = {name: name.strip().lower() for name in names}
    if odd := [name for name, word in lower.items() if _SUM.fullmatch(word) or _NO_TRIAL.fullmatch(word)]:
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


def doubts(
    opened: OpenTable,
    agents: Sequence[str],
    tasks: Sequence[str],
    roles: Mapping[str, str],
    threshold: float | None,
    *,
    wide: bool,
) -> Iterator[str]:
    """What may be wrong although the table can be read: sums, and columns of other names with agents or errors."""
    for kind, labels in (("task", tasks), ("agent", agents)):
        if len(labels) > 1 and (sums := [name for name in labels if _SUM.fullmatch(name.strip().lower())]):
            yield f"{kind} {sums[0]!r} counts as {_A[kind]}: if it sums up the others, leave its rows out"
    if wide:
        return
    free = [name for name in opened.names if name not in roles.values() and opened.holds(name)]
    if roles.get("trials", "").lower() in _FAILURES:
        yield (
            f"{roles['trials']!r} is read as the number of all trials; if it counts the failures: "
            f'table["trials"] = table["{roles["successes"]}"] + table["{roles["trials"]}"]'
        )
    if "agent" not in roles:
        names = [name for name in free if name.lower() in _AGENTS]
        if several := next((name for name in names if len(_distinct(opened, name)) > 1), None):
            yield (
                f"there is no column 'agent', so all rows are one agent: if {several!r} names agents, give "
                f"agent={several!r} (--columns agent={several})"
            )
    if "correct" in roles and "error" not in roles:
        for name in (*tables.usual("error", free), *(name for name in free if name.lower() in _STATUS)):
            values = _distinct(opened, name)
            marks = [(str(value).strip().lower(), value) for value in values if not tables.is_blank(value)]
            of_status = name.lower() in _STATUS
            errors = [value for mark, value in marks if mark in CRASHES or not (of_status or mark in tables.NO_ERROR)]
            if errors and len(values) > 1:
                way = f"give error={name!r} (--columns error={name})"
                if of_status:
                    way = f'table["error"] = table["{name}"].isin({[str(value) for value in errors]})'
                yield (
                    f"column {name!r} is not used, so trials that crashed count by their verdicts: if its values "
                    f"({', '.join(map(tables.shown, errors[:3]))}) mark them, {way}"
                )
                break
    if threshold is not None and _SHARES.fullmatch(roles.get("correct", "").lower()):
        yield (
            f"every value of {roles['correct']!r} is cut at {threshold:g} as one trial: if it is a share of several "
            "trials, give counts instead, successes = share * trials"
        )


_SUM_TRIALS = 4  # fewer are the sum of others by chance too often
_A = {"task": "a task", "agent": "an agent"}


def sums(tasks: Sequence[str], counts: Array) -> Iterator[str]:
    """The doubt that the counts of a task are the sum of all others, in every agent that has any."""
    successes, trials = counts[0], counts[1]
    for i, task in enumerate(tasks if len(tasks) > 2 else ()):
        twice = (2 * trials[:, i] == trials.sum(axis=1)) & (2 * successes[:, i] == successes.sum(axis=1))
        if twice.all() and trials[:, i].max() >= _SUM_TRIALS and not _SUM.fullmatch(task.strip().lower()):
            yield f"task {task!r} has as many successes and trials as all others: if it sums them up, leave it out"


def _distinct(opened: OpenTable, name: str) -> list[Any]:
    """Some distinct values of a column."""
    if isinstance(opened, EngineTable) and opened.lazy:
        return collected(opened.selected({name: opened.cells(name)}).unique().head(_LOOKED_AT), [name])[name].tolist()
    cells = opened.take([name])[name]
    try:
        found: list[Any] = cells.unique().tolist()
    except (TypeError, NotImplementedError):  # lists, objects
        found = list({str(cell): cell for cell in cells}.values())
    return found[:_LOOKED_AT]


_LOOKED_AT = 1000


def other_columns(names: Sequence[str], cells: Iterable[Any], wide: str) -> list[str]:
    """The advice to leave out columns of a wide table that hold text other than verdicts, if not all do."""
    wrong = {
        name: None
        for name, cell in zip(names, cells, strict=True)
        if not (tables.is_blank(cell) or is_verdict(cell)) and tables.number(cell) is None
    }
    some = wrong and len(wrong) < len(set(names))
    return [f"If these are not {wide}, leave them out: table.drop(columns={list(wrong)})"] if some else []


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
