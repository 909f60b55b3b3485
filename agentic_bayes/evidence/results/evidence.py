"""Another tool's results as evidence: which score counts, who is the agent, which attempt is which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentic_bayes.errors import EvidenceError
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.results.base import ResultsContent, ResultsFormat, ResultTrial
from agentic_bayes.evidence.results.detection import format_of_results, read_content, results_formats
from agentic_bayes.evidence.row import AGENT_ERROR, RESERVED, EvidenceRow, kept_metadata
from agentic_bayes.evidence.score import Grade, Score, Unscored
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
    threshold: float | None  # of the score that counts, where the tool has one


def evidence_from_results(
    path: str | Path,
    *,
    scorer: str | None = None,
    scale: tuple[float, float] | None = None,
    agent: str | None = None,
) -> Evidence:
    """Read the results of another tool as evidence.

    Parameters
    ----------
    path : str or Path
        A file that the tool wrote; which tool is found by its content. `docs/tables.md` lists them.
    scorer : str, optional
        The score that counts. It may be left out where the tool gives a verdict of its own, or one score only; the
        others become metrics, each of which can be an indicator.
    scale : (float, float), optional
        The lowest and the highest value of the scores (default: 0 and 1).
    agent : str, optional
        The agent's name, for files of one agent (default: as the file, the files or folder about it name it; else the
        file's name without its ending).

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
    return read_results(path, scorer=scorer, scale=scale, agent=agent).evidence


def read_results(
    path: str | Path, *, scorer: str | None = None, scale: tuple[float, float] | None = None, agent: str | None = None
) -> ToolResults:
    """The same, with what the evidence was made of."""
    source = Path(path)
    options = ReadOptions(scorer=scorer, scale=scale)
    content = read_content(source, options=options)
    format = format_of_results(content)
    if format is None:
        known = ", ".join(known.name for known in results_formats())
        raise EvidenceError(
            f"{source}: not the results of a tool that is read ({known}). "
            "A table is read by outcomes_from_table, conversations by read_conversations"
        )
    return as_evidence(content, format, agent=agent)


def as_evidence(content: ResultsContent, format: ResultsFormat, *, agent: str | None = None) -> ToolResults:
    """The trials that a format finds, as evidence."""
    try:
        trials = list(format.trials(content))
    except EvidenceError as error:
        raise EvidenceError(f"{content.source} ({format.name}): {error}") from None
    if not trials:
        raise EvidenceError(f"{content.source} ({format.name}): there are no results in it")
    agents = sorted({found.agent for found in trials if found.agent is not None})
    if agent is not None and len(agents) > 1:
        names = ", ".join(map(short, agents[:_SHOWN]))
        raise EvidenceError(f"{content.source} names {len(agents)} agents ({names}): agent= is for files of one")
    stem = Path(content.source).name.split(".")[0]
    own_verdict = format.verdict if any(format.verdict in found.scores for found in trials) else None
    name = content.options.scorer or own_verdict or _only_score(trials, content.source)
    options = replace(content.options, scorer=name)
    if not any(at_path(found.scores, name) is not NOTHING for found in trials):
        raise EvidenceError(f"{content.source}: no trial has a score {name!r}; there are {_names(trials)}")
    taken = {**format.taken, "score": name}
    numbers: Counter[tuple[str, str]] = Counter()
    rows, problems = [], []
    for found in trials:
        who = agent or found.agent or stem
        number = numbers[who, found.task] if found.trial is None else found.trial
        numbers[who, found.task] += 1
        chosen = chosen_score(found.scores, options)
        if chosen.fault is not None and found.error is None:
            problems.append(f"{found.place}: {chosen.fault}")
            continue
        unscored = None if found.error is None else f"{AGENT_ERROR}{found.error}"
        if unscored is None and chosen.value is None:
            unscored = found.unscored or chosen.reason or f"no score {name!r}"
        identity = f"{format.name}: {name}"
        metrics = _metrics(found, name, options)
        rows.append(
            EvidenceRow(
                agent=who,
                task=found.task,
                trial=number,
                session_id=f"{who}/{found.task}/{number}",
                interaction=0,
                qa_id=found.task,
                answer_score=chosen.value if unscored is None else None,
                answer_reason=found.reasons.get(name) if unscored is None else None,
                unscored_reason=unscored,
                judge=identity,
                tool_rubric="none",
                metrics=metrics,
                graders={metric: f"{format.name}: {metric}" for metric in metrics},
                metadata=kept_metadata(found.metadata),
            )
        )
    if problems:
        more = f"; … and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise EvidenceError(f"{content.source} ({format.name}): " + "; ".join(problems[:_SHOWN]) + more)
    told = [row.unscored_reason for row in rows if row.unscored_reason is not None and not row.crashed]
    if told and all(row.answer_score is None for row in rows):
        raise EvidenceError(f"{content.source} ({format.name}): nothing is scored: {told[0]}")
    if agent is not None or not agents:
        taken |= {"agent": agent or stem}
    parts = "; ".join(f"{role} = {what}" for role, what in taken.items())
    own = {found.thresholds[name] for found in trials if name in found.thresholds}
    return ToolResults(Evidence(tuple(rows)), f"{format.name}: {parts}", own.pop() if len(own) == 1 else None)


def _only_score(trials: Sequence[ResultTrial], source: str) -> str:
    """The name of the only score that there is."""
    names = dict.fromkeys(name for found in trials for name in found.scores)
    if len(names) == 1:
        return next(iter(names))
    if not names:
        raise EvidenceError(f"{source}: no trial has a score")
    raise EvidenceError(
        f"{source} has several scores: {_names(trials)}. Choose one: scorer={next(iter(names))!r} "
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
