"""The command report: everything in one HTML file."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from typer import Option, Typer

from agentic_bayes.cli import options as opt
from agentic_bayes.cli.output import say
from agentic_bayes.errors import InvalidArgument

commands = Typer()


@commands.command()
@opt.with_groups
def report(
    file: opt.InputFile,
    *,
    output: Path = Option(..., "-o", "--output", help="File to write: HTML, or Markdown if it ends in .md."),
    to: Literal["html", "markdown"] | None = Option(
        None, "--to", help="Output format (default: by the file's ending)."
    ),
    title: str | None = Option(None, help="What the report is about, above the verdict."),
    note: str | None = Option(None, help="What was tested, in a line or two."),
    date: str | None = Option(None, help="Date of the report (default: today, UTC)."),
    evidence: Path | None = Option(None, help="Evidence behind the numbers (JSONL); not needed if FILE is evidence."),
    conversations: list[str] | None = Option(None, help="Conversations to include: files, folders or globs."),
    store: Path | None = Option(None, help="Cache file written by assess --store, to show tokens and cost."),
    agent: str | None = Option(None, help="The agent that the verdict is about."),
    baseline: str | None = Option(None, help="The agent, or a number, to compare it with."),
    metric: opt.MetricName = "pass^1",
    at_least: float | None = Option(None, help="Also gate the metric at this bar; the verdict comes first."),
    confidence: opt.VerdictConfidence = 0.95,
    tiers: Literal["paper", "gaussia"] | None = Option(None, help="Also say how likely each deployment tier is."),
    k: str | None = Option(None, "--k", help="Values of k, comma-separated (default: 1,3,5)."),
    estimand: str | None = Option(None, help=f"{opt.ESTIMANDS[:-1]}; default: population."),
    fit: opt.FitOptions,
    read: opt.EvidenceOptions,
    logs: opt.LogOptions,
) -> None:
    """Write a single-file HTML report: verdict, numbers, tasks, conversations and how to reproduce them."""
    from agentic_bayes.checks import check_input_file, check_output_file
    from agentic_bayes.evidence.evidence import Evidence
    from agentic_bayes.evidence.llm.store import Store
    from agentic_bayes.evidence.results.evidence import ToolResults
    from agentic_bayes.reports.html.page import write_report
    from agentic_bayes.suites.inputs import open_input, read_estimate
    from agentic_bayes.suites.report import write_run_report
    from agentic_bayes.suites.results import RunResults

    question = opt.QuestionOptions(metric=metric, estimand=estimand or "population").checked()
    check_output_file(output, "--output", source=file)
    if store is not None:
        check_input_file(store)
    settings = fit.settings() | opt.given(k=None if k is None else opt.parse_ks(k))
    number = opt.parse_number(baseline)
    agents = [agent, baseline if number is None else None]
    opened, reading = open_input(file, **read.opening()), read.reading(fit)
    if conversations and not isinstance(opened, ToolResults):
        # --scorer and --scale are then about the conversations
        reading["results"], read = {}, replace(read, scorer=None, scale=None)
    est = read_estimate(file, settings=settings, agents=agents, **reading)
    other = baseline if number is None or baseline in est.agents else number
    asked: dict[str, Any] = {"metric": question["metric"], "estimand": estimand, "baseline": other}
    asked |= {"at_least": at_least, "confidence": confidence, "tiers": tiers}
    asked |= {"title": title, "note": note, "date": date, "to": to}
    opened = opened.evidence if isinstance(opened, ToolResults) else opened
    if isinstance(opened, RunResults):
        if evidence or conversations or store:
            raise InvalidArgument(f"{file} is a run of a suite, which has its own conversations, scores and cost")
        if isinstance(other, str):
            raise InvalidArgument("a run has one agent: --baseline must be a number, for example 0.7")
        write_run_report(opened, output, est=est, **asked)
    else:
        scored = Evidence.read(evidence) if evidence is not None else opened if isinstance(opened, Evidence) else None
        asked |= {"evidence": scored, "agent": agent, "source": [str(file), *read.typed()]}
        asked["conversations"] = opt.ConversationOptions(**vars(logs)).read(conversations) if conversations else None
        with Store(store) if store is not None else contextlib.nullcontext() as kept:
            write_report(est, output, store=kept, **asked)
    say(f"report written to {output}")
