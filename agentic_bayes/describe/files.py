"""Describe any file by its content, with a proposal that has been tried."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agentic_bayes.describe.columns import columns_table, proposed_roles
from agentic_bayes.describe.description import Description, Proposal, call_of, command_of
from agentic_bayes.describe.logs import describe_logs
from agentic_bayes.errors import AgenticBayesError, OutcomesError
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.joins.references import read_references
from agentic_bayes.evidence.results.detection import format_of_results, read_content, results_format_of
from agentic_bayes.evidence.results.folder import TABLES, files_of_results, results_in
from agentic_bayes.evidence.table import read_columns
from agentic_bayes.formatting import ELLIPSIS, first_few, plural
from agentic_bayes.outcomes.count import count_outcomes
from agentic_bayes.outcomes.results import outcomes_from_results
from agentic_bayes.outcomes.table import outcomes_from_table
from agentic_bayes.suites.config import is_suite_file, load_suite, suites_in
from agentic_bayes.suites.inputs import begins_like_conversations, open_input
from agentic_bayes.suites.results import RunResults

IMPORT = "import agentic_bayes as ab"
ESTIMATE = "est = ab.estimate(outcomes)"


def describe(paths: Sequence[str]) -> Description:
    """What one file, run or folder looks like, or several files of conversations."""
    if len(paths) == 1 and os.path.isdir(paths[0]) and (suites := suites_in(paths[0])):
        return _suite(*suites)
    if len(paths) > 1 or os.path.isdir(paths[0]):
        opened = _opened(paths[0]) if len(paths) == 1 else None
        if isinstance(opened, RunResults):
            return _outcomes(paths[0], "a run of a suite", lambda: opened.outcomes, ())
        if isinstance(opened, Estimate):
            return _estimate(paths[0], os.path.join(paths[0], "estimate.nc"), opened)
        if len(paths) == 1 and _holds_results(Path(paths[0])):
            return _results(paths[0])
        if len(paths) == 1 and _holds_tables(Path(paths[0])):
            results_in(Path(paths[0]))  # says what is there instead
        return describe_logs(paths)
    name, path = paths[0], Path(paths[0])
    if is_suite_file(path):
        return _suite(name)
    if path.is_file() and not isinstance(_opened(name), (Evidence, Estimate)):
        if results_format_of(path) is not None:
            return _results(name)
        if begins_like_conversations(path):
            return describe_logs(paths)
    match open_input(path):
        case RunResults() as run:
            return _outcomes(name, "a run of a suite", lambda: run.outcomes, ())
        case Estimate() as est:
            return _estimate(name, name, est)
        case Evidence() as evidence:
            code = [IMPORT, f"outcomes = ab.count_outcomes({call_of('ab.Evidence.read', name)})", ESTIMATE]
            return _outcomes(
                name, f"evidence of {plural(len(evidence), 'interaction')}", lambda: count_outcomes(evidence), code
            )
    return _table(name)


def _estimate(name: str, file: str, est: Estimate) -> Description:
    code = [IMPORT, f"est = {call_of('ab.Estimate.load', file)}"]
    return _outcomes(name, "a saved estimate", lambda: est.outcomes, code)


def _holds_results(folder: Path) -> bool:
    """Whether a folder holds results of a tool, and no conversations."""
    for path in files_of_results(folder):
        if begins_like_conversations(path):
            return False
        if results_format_of(path) is not None:
            return True
    return False


def _holds_tables(folder: Path) -> bool:
    """Whether a folder holds files that are tables by their names, and no others that could be read."""
    files = list(files_of_results(folder))
    return bool(files) and all(path.suffix in TABLES for path in files)


def _opened(path: str) -> Any:
    try:
        return open_input(path)
    except AgenticBayesError:
        return None


def _suite(*names: str) -> Description:
    kinds, commands = [], []
    for name in names:
        facts = load_suite(name).overview()
        kinds.append(f"a suite of {plural(facts['tasks'], 'task')} for the agent {facts['agent']}")
        commands += [command_of("validate", name), command_of("run", c=name)]
    return Description(name=", ".join(names), kind=", ".join(kinds), commands=commands)


def _outcomes(name: str, kind: str, read: Callable[[], Any], code: Sequence[str]) -> Description:
    """Something that estimate takes as it is."""
    outcome, failure = _tried(read)
    return Description(
        name=name, kind=kind, commands=[command_of("estimate", name)], code=code, outcome=outcome, failure=failure
    )


def _tried(read: Callable[[], Any]) -> tuple[str, str]:
    """What reading gives, in words, or why it fails."""
    try:
        outcomes = read()
    except (AgenticBayesError, TypeError) as error:
        return "", str(error)
    trials, unscored, errored = (int(outcomes[part].values.sum()) for part in ("trials", "unscored", "errored"))
    crashed = f" ({plural(errored, 'agent error')})" if errored else ""
    agents = [str(label) for label in outcomes["agent"].values]
    named = f" ({first_few(agents, 5, rest=ELLIPSIS)})"
    right = f"{int(outcomes['successes'].values.sum()):,} right"
    text = (
        f"{plural(len(agents), 'agent')}{named}, {plural(outcomes.sizes['task'], 'task')}, "
        f"{plural(trials, 'scored trial')} ({right}), {unscored:,} unscored{crashed}"
    )
    return text, ""


def _results(name: str) -> Description:
    """Results of another tool, with the score that would count."""
    folder = results_in(Path(name)) if os.path.isdir(name) else None
    contents = [read_content(file) for file in (folder.files if folder else [Path(name)])]
    format = format_of_results(contents[0])
    assert format is not None  # as `results_format_of` says
    trials = (trial for content in contents for trial in format.trials(content))
    scores = list(dict.fromkeys(score for trial in trials for score in trial.scores))
    outcome, failure = _tried(lambda: outcomes_from_results(name))
    scorer = None
    if failure and len(scores) > 1:
        tried = ((score, *_tried(partial(outcomes_from_results, name, scorer=score))) for score in scores)
        scorer, outcome, failure = next((one for one in tried if one[1]), (None, outcome, failure))
    taken = {"agent": "the name of the file or its folder"} | dict(format.taken)
    taken |= {"score": scorer or format.verdict or scores[0]} if scores else {}
    reason = f"as {format.name} writes it"
    others = [score for score in scores if score != taken.get("score")]
    more = {"score": f"of {plural(len(scores), 'score')}, the first that can be read"} if scorer else {}
    call = call_of("ab.outcomes_from_results", name, scorer=scorer)
    return Description(
        name=name,
        kind=f"results of {format.name}" + (f", {folder}" if folder else ""),
        proposals=[Proposal(role=role, source=what, reason=more.get(role, reason)) for role, what in taken.items()],
        commands=[command_of("estimate", name, scorer=scorer)],
        code=[IMPORT, f"outcomes = {call}", ESTIMATE],
        outcome=outcome,
        failure=failure,
        notes=[f"other scores, which --scorer chooses: {', '.join(others)}"] if others else [],
    )


def _table(name: str) -> Description:
    """A table of results, with the columns' roles."""
    source, columns = read_columns(name, error=OutcomesError)
    if not columns or not len(next(iter(columns.values()))):
        raise OutcomesError(f"{source}: the table has no rows")
    size = len(next(iter(columns.values())))
    profiles, proposals, arguments = proposed_roles(columns)
    outcome, failure = _tried(lambda: outcomes_from_table(name, **arguments))
    if failure and (references := _references(name)):
        return references
    notes = []
    if "wide" not in arguments and not any(one.role in ("correct", "successes") for one in proposals):
        notes.append("no column says right or wrong: name it with correct=…")
    group, weight = arguments.get("group"), arguments.get("weight")
    call = call_of("ab.outcomes_from_table", name, **arguments)
    estimate = f"est = ab.estimate(outcomes{_keywords(by=group, weights=weight)})"
    return Description(
        name=name,
        kind=f"a table of {plural(size, 'row')} and {plural(len(columns), 'column')}",
        proposals=proposals,
        commands=_commands(name, arguments),
        code=(IMPORT, f"outcomes = {call}", estimate),
        outcome=outcome,
        failure=failure,
        notes=notes,
        parts=[columns_table(profiles)],
    )


def _references(name: str) -> Description | None:
    """A table of references, which `assess` joins to the conversations."""
    try:
        _, references = read_references(name)
    except AgenticBayesError:
        return None
    join = f"conversations = {call_of('ab.join_references', name)}".replace("(", "(conversations, ", 1)
    return Description(
        name=name,
        kind=f"references for {plural(len({task for task, _ in references}), 'task')}",
        commands=[command_of("assess", "LOGS", references=name, o="evidence.jsonl")],
        code=(IMPORT, 'conversations = ab.read_conversations("LOGS")', join),
    )


def _keywords(**options: str | None) -> str:
    return "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)


def _commands(name: str, arguments: Mapping[str, Any]) -> list[str]:
    """The command of a table; none if a column's name cannot be written there."""
    columns = {k: v for k, v in arguments.items() if k not in ("group", "weight", "threshold", "wide")}
    if any("," in column for column in columns.values()):
        return []
    pairs = ",".join(f"{role}={column}" for role, column in columns.items()) or None
    more = {"by": arguments.get("group"), "weights": arguments.get("weight")}
    more |= {"threshold": arguments.get("threshold"), "wide": arguments.get("wide")}
    return [command_of("estimate", name, columns=pairs, **more)]
