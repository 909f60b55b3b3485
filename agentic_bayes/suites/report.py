"""Write the HTML report of a run, with every trial to look into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.reports.html.page import write_page
from agentic_bayes.reports.html.question import ask
from agentic_bayes.reports.html.trials import Part, Trial, json_text
from agentic_bayes.suites.results import RunResults
from agentic_bayes.suites.trial import TrialResult

__all__ = ["write_run_report"]

VERDICTS = {"pass": "pass", "fail": "fail", "error": "errored"}


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
) -> Path:
    """Write everything about a run into one HTML file."""
    if not results.decided:
        raise InvalidArgument(f"run {results.folder.name} has no trial with a verdict, so there is nothing to report")
    fitted = results.estimate(k) if est is None else est
    return write_page(
        fitted,
        path,
        asked=ask(fitted, None, baseline, metric, estimand, at_least, confidence),
        trials=[_trial(results.facts, trial) for trial in results.trials],
        facts=dict(_facts(results)),
        source=str(results.folder),
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


def _trial(facts: Mapping[str, Any], one: TrialResult) -> Trial:
    asked: list[str] = facts["messages"].get(one.task, [])
    turns = max(len(asked), len(one.answers), 1)
    scores = [
        (name, grade.get("score"), str(grade.get("reason") or grade.get("unscored") or ""))
        for name, grade in one.grades.items()
    ]
    failed = [f"{name}: {grade.get('reason')}" for name, grade in one.grades.items() if grade.get("pass") is False]
    return Trial(
        agent=str(facts["agent"]),
        task=one.task,
        number=one.trial,
        session=f"{one.task} #{one.trial}",
        questions={i: one.task if turns == 1 else f"{one.task}/{i + 1}" for i in range(turns)},
        said=[list(_parts(one, asked, i, last=i == turns - 1)) for i in range(turns)],
        scores={turns - 1: scores},
        verdict=VERDICTS[one.status],
        reasons=failed if one.status == "fail" else [one.error] if one.status == "error" else [],
    )


def _parts(one: TrialResult, asked: Sequence[str], i: int, *, last: bool) -> Iterator[Part]:
    if i < len(asked):
        yield "user", asked[i]
    if i < len(one.answers):
        yield "agent", one.answers[i]
    for call in (one.tool_calls[i] if i < len(one.tool_calls) else None) or ():
        known = call if isinstance(call, Mapping) else {}
        arguments = known.get("parameters") or {}
        given = ", ".join(f"{name}={json_text(value)}" for name, value in dict(arguments).items())
        yield "call", f"{known['tool_name']}({given})" if "tool_name" in known else json_text(call)
        if "result" in known:
            yield "result", json_text(known["result"])
    if last and one.error:
        yield "error", one.error
