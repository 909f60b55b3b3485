"""Another tool's results as evidence: which score counts, who is the agent, which attempt is which."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentic_bayes.errors import DoubtfulRecords, EvidenceError, InvalidArgument
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.results.base import ResultsContent, ResultsFormat, ResultTrial
from agentic_bayes.evidence.results.detection import format_of_results, read_content, results_formats
from agentic_bayes.evidence.results.folder import (
    ResultsFile,
    ResultsFolder,
    check_attempts,
    in_order,
    results_in,
    with_agents,
)
from agentic_bayes.evidence.row import AGENT_ERROR, RESERVED, EvidenceRow, kept_metadata
from agentic_bayes.evidence.score import Grade, Score, Unscored
from agentic_bayes.formatting import ELLIPSIS, first_few, first_problems
from agentic_bayes.records.agents import check_agent
from agentic_bayes.records.base import short
from agentic_bayes.records.wire.options import NOTHING, ReadOptions, at_path
from agentic_bayes.records.wire.scores import chosen_score

__all__ = ["evidence_from_results"]

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ToolResults:
    """Evidence, and what of the file it is."""

    evidence: Evidence
    taken: str  # the tool, and what became agent, task, trial, score and error
    thresholds: tuple[float, ...] = ()  # of the score that counts, where the tool has them


def evidence_from_results(
    path: Any,
    *,
    scorer: str | None = None,
    scale: tuple[float, float] | None = None,
    agent: str | None = None,
    fields: Mapping[str, str] | None = None,
) -> Evidence:
    """Read the results of another tool as evidence.

    Parameters
    ----------
    path : str, Path, frame, dict or list
        A file that the tool wrote, or a folder of them, in whatever folders below; or what is in a file: a frame, or
        the value of the JSON. Which tool it is is found by the content; `docs/tables.md` lists them. A folder must hold
        results of one tool; other files in it are counted and left out.
    scorer : str, optional
        The score that counts. It may be left out where the tool gives a verdict of its own, or one score only; the
        others become metrics, each of which can be an indicator.
    scale : (float, float), optional
        The lowest and the highest value of the scores (default: 0 and 1).
    agent : str, optional
        The agent's name, or a rule (``"{stem}"``, ``"{parent}"``, ``"{grandparent}"``), for files of one agent each
        (default: as the file, the files or folder about it name it; else the file's name without its ending, or the
        nearest folder names that tell the files apart where they share one). With it, trials of a folder are numbered
        anew.
    fields : mapping, optional
        Where a result says its ``agent``, ``task`` or ``trial`` if it is not the usual place: ``{"agent":
        "testCase.metadata.version"}``.

    Returns
    -------
    Evidence
        One row per trial: its score as `answer_score`, further scores as metrics, a run that failed as an agent
        error. Trials of one task that the tool did not number are numbered in the order of the file.

    Raises
    ------
    EvidenceError
        If no tool that is read wrote the file, it is not what the tool writes, several scores are there and none is
        chosen, or a score is off its scale.
    """
    return read_results(path, scorer=scorer, scale=scale, agent=agent, fields=fields).evidence


def read_results(
    path: Any,
    *,
    scorer: str | None = None,
    scale: tuple[float, float] | None = None,
    agent: str | None = None,
    fields: Mapping[str, str] | None = None,
) -> ToolResults:
    """The same, with what the evidence was made of."""
    if agent is not None and not (isinstance(agent, str) and agent.strip()):
        raise InvalidArgument(f"agent must be a name, got {short(agent)}")
    if fields is not None and not isinstance(fields, Mapping):
        raise InvalidArgument(f'fields must map roles to paths, {{"agent": "metadata.version"}}, got {short(fields)}')
    if wrong := [role for role in fields or () if role not in ("agent", "task", "trial")]:
        raise InvalidArgument(f"fields of results may name agent, task and trial, got {short(wrong[0])}")
    options = ReadOptions(fields or {}, scorer=scorer, scale=scale)
    check_agent(agent)
    if isinstance(path, (str, Path)) and Path(path).is_dir():
        folder = results_in(Path(path))
        files = [ResultsFile.of(read_content(file, options=options), folder.format) for file in folder.files]
        return as_evidence(files, str(path), folder.format, options, agent, folder)
    content = read_content(path, options=options)
    format = format_of_results(content)
    if format is None:
        known = ", ".join(known.name for known in results_formats())
        raise EvidenceError(
            f"{content.source}: not the results of a tool that is read ({known}); it {_seen(content)}. "
            "A table is read by outcomes_from_table, conversations by read_conversations and assess"
        )
    return as_evidence([ResultsFile.of(content, format)], content.source, format, options, agent)


def _seen(content: ResultsContent) -> str:
    if content.columns:
        return f"has {first_few([short(name, 30) for name in sorted(content.columns)], _SHOWN, rest=ELLIPSIS)}"
    return "is XML, but not JUnit's <testsuites>" if content.text else "has neither columns nor keys"


def as_evidence(
    files: Sequence[ResultsFile],
    source: str,
    format: ResultsFormat,
    options: ReadOptions,
    agent: str | None,
    folder: ResultsFolder | None = None,
) -> ToolResults:
    """The results of files as evidence; what is wrong names the source and the tool."""
    try:
        return _counted_by(files, format, options, agent, folder)
    except EvidenceError as error:
        raise EvidenceError(f"{source} ({format.name}): {error}") from None


def _counted_by(
    files: Sequence[ResultsFile],
    format: ResultsFormat,
    options: ReadOptions,
    agent: str | None,
    folder: ResultsFolder | None,
) -> ToolResults:
    """The trials of all files as evidence, counted by one of their scores."""
    unnamed = not any(file.agents for file in files)
    check_attempts(files)
    files = with_agents(files, agent)
    trials = [found for file in files for found in file.trials]
    if folder is not None:
        trials = list(in_order(folder, files, numbered=agent is None or "trial" in options.fields))
    _compare_questions(trials)
    own_verdict = format.verdict if any(format.verdict in found.scores for found in trials) else None
    name = options.scorer or own_verdict or _only_score(trials)
    ran = [found for found in trials if found.error is None]
    if ran and all(at_path(found.scores, name) is NOTHING for found in trials):
        raise EvidenceError(f"no trial has a score {name!r}; there are {_names(trials)}")
    options = replace(options, scorer=name)
    faults = [(found.place, chosen_score(found.scores, options).fault) for found in ran]
    problems = [": ".join(filter(None, (place, fault))) for place, fault in faults if fault is not None]
    if problems:
        raise EvidenceError(first_problems(problems, _SHOWN))
    rows = _rows(trials, options, format.name)
    taken = {**format.taken, "score": name, **{role: f"{path} (fields)" for role, path in options.fields.items()}}
    if agent is not None or unnamed:
        names = sorted({str(found.agent) for found in trials})
        taken |= {"agent": first_few(names, _SHOWN, rest=ELLIPSIS)}
    parts = "; ".join(f"{role} = {what}" for role, what in taken.items())
    files_read = "" if folder is None else f"{folder}; "
    own = sorted({found.thresholds[name] for found in trials if name in found.thresholds})
    return ToolResults(Evidence(tuple(rows)), f"{format.name}: {files_read}{parts}", tuple(own))


def _compare_questions(trials: Sequence[ResultTrial]) -> None:
    """Warn of a task that asks different things in its attempts: these may be different tasks of one name."""
    first: dict[str, ResultTrial] = {}
    for found in trials:
        before = first.setdefault(found.task, found) if found.asks is not None else found
        if before.asks != found.asks:
            places = " and ".join(filter(None, (before.place, found.place)))
            warnings.warn(
                f"task {short(found.task)} asks different things in {places}, and both count as its trials; if they "
                "are different tasks, say where their names are: fields={'task': '…'} (--fields task=…)",
                DoubtfulRecords,
                stacklevel=4,
            )
            return


def _row(found: ResultTrial, place: tuple[str, str], number: int, options: ReadOptions, tool: str) -> EvidenceRow:
    name = str(options.scorer)
    chosen = chosen_score(found.scores, options)
    unscored = None if found.error is None else f"{AGENT_ERROR}{found.error}"
    if unscored is None and chosen.value is None:
        unscored = found.unscored or chosen.reason or f"no score {name!r}"
    metrics = _metrics(found, name, options)
    trial = number if found.trial is None else found.trial
    agent, task = place
    return EvidenceRow(
        agent=agent,
        task=task,
        trial=trial,
        session_id=f"{agent}/{task}/{trial}",
        interaction=0,
        qa_id=task,
        answer_score=chosen.value if unscored is None else None,
        answer_reason=found.reasons.get(name) if unscored is None else None,
        unscored_reason=unscored,
        judge=f"{tool}: {name}",
        tool_rubric="none",
        metrics=metrics,
        graders={metric: f"{tool}: {metric}" for metric in metrics},
        metadata=kept_metadata(found.metadata),
    )


def _rows(trials: Sequence[ResultTrial], options: ReadOptions, tool: str) -> list[EvidenceRow]:
    """One row per trial; at least one must be scored, unless all crashed."""
    numbers: Counter[tuple[str, str]] = Counter()
    rows = []
    for found in trials:
        place = str(found.agent), found.task
        rows.append(_row(found, place, numbers[place], options, tool))
        numbers[place] += 1
    told = [row.unscored_reason for row in rows if row.unscored_reason is not None and not row.crashed]
    if told and all(row.answer_score is None for row in rows):
        raise EvidenceError(f"nothing is scored: {told[0]}")
    return rows


def _only_score(trials: Sequence[ResultTrial]) -> str:
    """The name of the only score that there is."""
    names = dict.fromkeys(name for found in trials for name in found.scores)
    if len(names) == 1:
        return next(iter(names))
    if not names and all(found.error is not None for found in trials):
        return "none, every run failed"
    if not names:
        raise EvidenceError("no trial has a score")
    raise EvidenceError(
        f"there are several scores: {_names(trials)}. Choose one: scorer={next(iter(names))!r} "
        f"(--scorer on the command line); the others become metrics"
    )


def _names(trials: Sequence[ResultTrial]) -> str:
    return ", ".join(map(repr, dict.fromkeys(name for found in trials for name in found.scores))) or "none"


def _metrics(found: ResultTrial, chosen: str, options: ReadOptions) -> dict[str, Grade]:
    """The scores that do not count, as metrics."""
    grades: dict[str, Grade] = {}
    for name in found.scores:
        if name == chosen or name in RESERVED or found.error is not None:
            continue
        score = chosen_score(found.scores, replace(options, scorer=name))
        details = {"threshold": found.thresholds[name]} if name in found.thresholds else {}
        if score.value is not None:
            grades[name] = Score(score.value, found.reasons.get(name, ""), details)
        else:
            grades[name] = Unscored(score.reason or score.fault or "no score")
    return grades
