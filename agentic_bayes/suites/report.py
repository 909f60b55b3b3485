"""Write the HTML report of a run, with every trial to look into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentic_bayes.decisions.tiers import TierTable
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.evidence.score import named_kinds
from agentic_bayes.formatting import json_text
from agentic_bayes.reports.html.page import PageHeading, ReportFormat, report_format, write_page
from agentic_bayes.reports.html.question import ask
from agentic_bayes.reports.html.trials import ReportTrial, TranscriptPart, TrialFailure
from agentic_bayes.suites.results import RunResults
from agentic_bayes.suites.trial import TrialResult


def write_run_report(
    results: RunResults,
    path: Path,
    *,
    est: Estimate | None = None,
    k: Sequence[int] = (1, 3, 5),
    baseline: float | None = None,
    metric: str = "pass^1",
    estimand: Estimand | None = None,
    at_least: float | None = None,
    confidence: float = 0.95,
    tiers: TierTable | None = None,
    title: str | None = None,
    note: str | None = None,
    date: str | None = None,
    to: ReportFormat | None = None,
) -> Path:
    """Write everything about a run into one HTML file."""
    if not results.decided:
        raise InvalidArgument(f"run {results.folder.name} has no trial with a verdict, so there is nothing to report")
    fitted = results.estimate(k) if est is None else est
    return write_page(
        fitted,
        path,
        heading=PageHeading.of(title, note, date),
        asked=ask(fitted, None, baseline, metric, estimand, at_least, confidence, tiers),
        trials=[_trial(results.facts, trial) for trial in results.trials],
        facts=dict(_facts(results)),
        source=[str(results.folder)],
        to=report_format(path, to),
    )


def _facts(results: RunResults) -> Iterator[tuple[str, str]]:
    """Facts about the run besides its counts."""
    summary = results.measures()
    yield "suite", str(results.facts["suite"])
    yield "run", results.folder.name
    if results.pending:
        yield "pending trials", f"{results.pending:,}: the run is not finished"
    graders = sorted({name for trial in results.trials for name in trial.grades})
    yield "graders", ", ".join(graders) or "none"
    if summary["latency_p50"] is not None:
        seconds = (f"p{q} {summary[f'latency_p{q}']:.3g}" for q in (50, 90, 99))
        yield "seconds per trial", ", ".join(seconds)
    tokens = [summary[name] for name in ("input_tokens", "output_tokens")]
    yield "tokens", "not reported" if None in tokens else f"{tokens[0]:,} in, {tokens[1]:,} out"
    yield "cost", "not known" if summary["cost"] is None else f"{summary['cost']:,.6g}"


def _trial(facts: Mapping[str, Any], trial: TrialResult) -> ReportTrial:
    messages: list[str] = facts["messages"].get(trial.task, [])
    turns = max(len(messages), len(trial.answers), 1)
    scores = [
        (name, grade.get("score"), str(grade.get("reason") or grade.get("unscored") or ""))
        for name, grade in trial.grades.items()
    ]
    return ReportTrial(
        agent=str(facts["agent"]),
        task=trial.task,
        number=trial.trial,
        session=f"{trial.task} #{trial.trial}",
        questions={i: trial.task if turns == 1 else f"{trial.task}/{i + 1}" for i in range(turns)},
        said=[list(_transcript(trial, messages, i, last=i == turns - 1)) for i in range(turns)],
        scores={turns - 1: scores},
        verdict=trial.status if trial.status != "error" else "unscored" if trial.grades else "errored",
        failures=list(_failures(trial)),
    )


def _failures(trial: TrialResult) -> Iterator[TrialFailure]:
    """What the graders that it did not pass say, or why there is no verdict: a crash, where nothing was graded."""
    if trial.status == "error":
        yield TrialFailure(() if trial.grades else ("crash",), trial.error)
    for name, grade in trial.grades.items():
        if grade.get("pass") is False:
            yield TrialFailure(named_kinds(grade), f"{name}: {grade.get('reason') or 'no reason given'}")


def _transcript(trial: TrialResult, messages: Sequence[str], i: int, *, last: bool) -> Iterator[TranscriptPart]:
    if i < len(messages):
        yield "user", messages[i]
    if i < len(trial.answers):
        yield "agent", trial.answers[i]
    for call in (trial.tool_calls[i] if i < len(trial.tool_calls) else None) or ():
        fields = call if isinstance(call, Mapping) else {}
        parameters = dict(fields.get("parameters") or {})
        arguments = ", ".join(f"{name}={json_text(value)}" for name, value in parameters.items())
        yield "call", f"{fields['tool_name']}({arguments})" if "tool_name" in fields else json_text(call)
        if "result" in fields:
            yield "result", json_text(fields["result"])
    if last and trial.error:
        yield "error", trial.error
