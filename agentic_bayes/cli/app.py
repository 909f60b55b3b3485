"""The command line: arguments → calls → files.

Exit codes: 0 ok, 2 usage or bad input, 1 crash, stopped early or not reproduced, 10 gate failed, 11 gate inconclusive.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import warnings
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic_bayes.checks import check_choice
from agentic_bayes.errors import AgenticBayesError, AgenticBayesWarning, InvalidArgument, RecordsError

if TYPE_CHECKING:
    from agentic_bayes.estimation.estimate import Estimate
    from agentic_bayes.evidence.evidence import Evidence
    from agentic_bayes.evidence.llm.store import Store, Usage
    from agentic_bayes.evidence.tools.rubric import ToolRubric
    from agentic_bayes.judges.raters import Agreement
    from agentic_bayes.records.model import Conversation
    from agentic_bayes.reports.tables import Table

__all__ = ["app", "main"]

EXIT_CODES = "Exit codes: 0 ok, 2 usage or bad input, 1 crash or stopped early, 10 gate failed, 11 gate inconclusive."
RECORDED = "recorded"
EXIT = {"pass": 0, "fail": 10, "inconclusive": 11, "narrow enough": 0, "continue": 11}

app = typer.Typer(
    help="How reliable is an AI agent, and is the new version better? pass@k and pass^k with credible intervals.",
    epilog=EXIT_CODES,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Files = Annotated[
    list[str], typer.Argument(help="Conversation files, folders or globs (JSON, JSONL, .gz, .eval), in any format.")
]
FormatName = Annotated[
    str, typer.Option("--format", help="auto (by content), native, openai, langchain, tau-bench, tau2, inspect, otel.")
]
AgentName = Annotated[
    str | None, typer.Option("--agent", help="Name of the agent where the files name none.", show_default="file's name")
]
ExpectedFile = Annotated[
    Path | None,
    typer.Option("--expected-tools", help="Expected tool calls by task: a table, or JSON (task → list of calls)."),
]
RubricFile = Annotated[Path | None, typer.Option("--tool-rubric", help="Settings of the tool rubric (JSON).")]
Input = Annotated[
    str,
    typer.Argument(
        help="Outcomes (CSV/TSV), evidence (JSONL), a saved estimate (.nc), or a run of a suite (folder or id)."
    ),
]
Out = Annotated[Path | None, typer.Option("-o", "--output", help="Folder for the results.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Ks = Annotated[str, typer.Option("--k", help="Numbers of attempts.")]
Method = Annotated[str, typer.Option(help="hierarchical, crossed, conjugate, frequentist or auto.")]
CiProb = Annotated[float, typer.Option(help="Probability of the intervals.")]
CiKind = Annotated[str, typer.Option(help="eti (equal-tailed) or hdi (highest density).")]
Seed = Annotated[int, typer.Option("--random-seed", help="Same seed, same numbers.")]
Columns = Annotated[str | None, typer.Option(help="Names of a table's columns: agent=model,task=id,correct=ok.")]
Unit = Annotated[str | None, typer.Option(help="Evidence: conversation, interaction or question.")]
Indicator = Annotated[str | None, typer.Option(help="Evidence: answer, tools, joint or the name of a metric.")]
Threshold = Annotated[float | None, typer.Option(help="Evidence: an answer is right from this score on.")]
ToolThreshold = Annotated[float | None, typer.Option(help="Evidence: tool use is right from this score on.")]
Agents = Annotated[str | None, typer.Option(help="Evidence: separate, or together as one agent.")]
Errors = Annotated[str | None, typer.Option(help="Evidence: a crashed agent is unscored, or fail, or bounds.")]
# what decisions ask; a saved estimate is used as it is unless one of the options Fit… is given
MetricName = Annotated[str, typer.Option("--metric", help="Such as pass^3 or pass@1.")]
EstimandName = Annotated[str, typer.Option("--estimand", help="population (new tasks) or tasks (these tasks).")]
FitMethod = Annotated[
    str | None,
    typer.Option("--method", help="hierarchical, crossed, conjugate or auto.", show_default="hierarchical"),
]
FitCiProb = Annotated[
    float | None, typer.Option("--ci-prob", help="Probability of the intervals.", show_default="0.95")
]
FitCiKind = Annotated[str | None, typer.Option("--ci-kind", help="eti or hdi.", show_default="eti")]
FitSeed = Annotated[int | None, typer.Option("--random-seed", help="Same seed, same numbers.", show_default="0")]
LabelsFile = Annotated[
    Path | None,
    typer.Option(
        "--judge-labels",
        help="Table with judge, human (0/1) and, if known, agent, task, trial: corrects for the judge's errors.",
    ),
]
OneAgent = Annotated[str | None, typer.Option("--agent", help="Which agent; not needed where there is only one.")]


@app.command()
def validate(files: Files, format: FormatName = "auto", agent: AgentName = None, as_json: AsJson = False) -> None:
    """Check conversation files, or a suite (YAML), and say what is in them; every problem is reported."""
    from dataclasses import asdict

    from agentic_bayes.records.survey import survey

    if all(Path(file).suffix.lower() in (".yaml", ".yml") for file in files):
        _validate_suites(files, as_json=as_json)
        return
    from agentic_bayes.reports.record_tables import survey_lines, survey_tables

    found = survey(files, format=format, agent=agent)  # type: ignore[arg-type]
    if as_json:
        say_json(asdict(found))
    elif len(found.files) > 1 or not found.n_problems:  # of one bad file the problems say it all
        show(*survey_tables(found))
        say("\n".join(survey_lines(found)))
    if found.n_problems:
        raise RecordsError(found.problems, found.n_problems)


def _validate_suites(files: list[str], *, as_json: bool) -> None:
    from agentic_bayes.formatting import plural
    from agentic_bayes.suites.config import load_suite
    from agentic_bayes.suites.runner import check_suite

    found = []
    for file in files:
        suite = load_suite(file)
        check_suite(suite, suite.tasks)
        trials = [suite.trials_of(task) for task in suite.tasks]
        auto = "auto" in trials
        total = suite.config.defaults.budget if auto else sum(map(int, trials))
        found.append({"suite": suite.config.name, "agent": suite.agent_name, "tasks": len(suite.tasks)})
        found[-1] |= {"trials": total, "adaptive": auto}
        if not as_json:
            tasks, most = plural(len(suite.tasks), "task"), "at most " if auto else ""
            say(f"valid: suite {suite.config.name}, {tasks}, trials {most}{total:,}, agent {suite.agent_name}")
    if as_json:
        say_json(found)


@app.command("run", epilog=EXIT_CODES)
def run_command(
    config: Annotated[Path, typer.Option("-c", "--config", help="The suite (YAML).")] = Path("eval.yaml"),
    k: Ks = "1,3,5",
    tags: Annotated[str | None, typer.Option(help="Only tasks with one of these tags: a,b.")] = None,
    exclude_tags: Annotated[
        str | None, typer.Option(help="No task with one of these tags, whatever else it has.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first so many tasks.", min=1)] = None,
    jobs: Annotated[int | None, typer.Option("-j", "--jobs", help="Trials at a time.", min=1)] = None,
    resume: Annotated[
        str | None, typer.Option(help="Go on with this run; without it the latest unfinished one.")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Start a new run, whatever is unfinished.")] = False,
    fail_under: Annotated[float | None, typer.Option(help="Exit 10 if the pass rate is below this.")] = None,
    gate: Annotated[str | None, typer.Option(help='Exit 10 or 11 unless it passes: "pass^3>=0.7@0.95".')] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be run.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder of runs.", show_default="the suite's")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a suite: agent × tasks × trials, graded; an unfinished run goes on where it was."""
    import asyncio

    from agentic_bayes.checks import check_probability
    from agentic_bayes.formatting import plural
    from agentic_bayes.suites.config import load_suite
    from agentic_bayes.suites.results import RunResults, gate_of
    from agentic_bayes.suites.runner import check_suite, plan_run, run_suite, select_tasks

    ks = _ks(k)
    asked = None if gate is None else gate_of(gate)
    if fail_under is not None:
        check_probability(fail_under, "fail_under")
    suite = load_suite(config)
    chosen = select_tasks(suite, tags=_parts(tags), exclude_tags=_parts(exclude_tags), limit=limit)
    planned = plan_run(suite, chosen, output=output, resume=resume, new=new)
    check_suite(suite, chosen)
    what = f"{plural(len(chosen), 'task')}, {plural(planned.total, 'trial')}, {len(planned.pending):,} to run"
    if planned.budget is not None:
        what += f", then more where they tell most, at most {planned.budget:,}"
    if dry_run and as_json:
        say_json({"run_id": planned.id, "continued": planned.continued, "tasks": len(chosen), "trials": planned.total})
        return
    if dry_run:
        say(f"{'would go on with' if planned.continued else 'would start'} run {planned.id}: {what}")
        return
    if not as_json:
        say(f"{'going on with' if planned.continued else 'starting'} run {planned.id}: {what}")
    stopped = False
    try:
        # an agent that prints must not spoil what a program reads
        quiet = contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext()
        with quiet, _trial_progress() as progress:
            asyncio.run(run_suite(planned, concurrency=jobs, progress=progress))
    except KeyboardInterrupt:
        stopped = True
    whole = RunResults.of(planned.folder)
    est = whole.write(ks)
    written = None
    if suite.config.output.format in ("html", "all") and est is not None:
        from agentic_bayes.suites.report import write_run_report

        written = write_run_report(whole, whole.folder / "report.html", est=est)
    results = whole.only(task.id for task in chosen)  # what was asked for is what is decided on
    code = _say_run(results, ks, fail_under, asked, as_json=as_json)
    if written is not None and not as_json:
        say(f"report: {written}")
    if stopped:
        complain(f"stopped: {plural(results.pending, 'trial')} left; the same command goes on")
        code = 1
    if code:
        raise typer.Exit(code)


def _parts(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(part.strip() for part in text.split(","))


@contextlib.contextmanager
def _trial_progress() -> Iterator[Any]:
    """A bar with the pass rate so far; silent off a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from agentic_bayes.numerics import wilson_interval

    counts = {"pass": 0, "fail": 0, "error": 0}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as bar:
        line = bar.add_task("trials", total=None)

        def progress(result: Any, done: int, total: int) -> None:
            counts[result.status] += 1
            told = counts["pass"] + counts["fail"]
            low, high = (float(end) for end in wilson_interval(counts["pass"], told))
            rate = f"{counts['pass'] / told:.2f} [{low:.2f}, {high:.2f}]" if told else "–"
            bar.update(line, completed=done, total=total, description=f"pass {rate}, errors {counts['error']}")

        yield progress


def _say_run(
    results: Any,
    ks: tuple[int, ...],
    fail_under: float | None,
    asked: tuple[str, int, float, float] | None,
    *,
    as_json: bool,
) -> int:
    """The tables of a run, and the exit code that follows from what was asked of it."""
    from agentic_bayes.formatting import plural
    from agentic_bayes.reports.suite_tables import run_lines, run_tables

    summary = results.summary(ks)
    passed, failed, pending = (summary[f"{name}_trials"] for name in ("passed", "failed", "pending"))
    codes, lines = [], []
    if not passed + failed:
        codes.append(EXIT["inconclusive"])
        lines.append("nothing is decided: no trial has a verdict")
    elif fail_under is not None:
        # trials without a verdict may be either: only what holds in both cases is decided
        least, most = (count / (passed + failed + pending) for count in (passed, passed + pending))
        verdict = "pass" if least >= fail_under else "fail" if most < fail_under else "inconclusive"
        codes.append(EXIT[verdict])
        sign = {"pass": "≥", "fail": "not ≥", "inconclusive": "may be or not be ≥"}[verdict]
        open_ = f", with {plural(pending, 'trial')} without a verdict" if pending else ""
        lines.append(f"pass rate {sign} {fail_under:g}{open_}")
    if asked is not None:
        verdict, sentence = _gate_of_run(results, asked)
        lines.append(sentence)
        codes.append(EXIT[verdict])
    code = next((one for one in (EXIT["fail"], EXIT["inconclusive"]) if one in codes), 0)
    if as_json:
        say_json({**summary, "exit_code": code})
        return code
    show(*run_tables(summary))
    if summary.get("estimates"):
        show(*_tables().estimate_tables(results.estimate(ks)))
    say("\n".join([*run_lines(summary, results.folder), *lines]))
    return code


def _gate_of_run(results: Any, asked: tuple[str, int, float, float]) -> tuple[str, str]:
    from agentic_bayes.decisions.gate import gate as judge_agent
    from agentic_bayes.errors import EstimateError, OutcomesError

    metric, k, bar, probability = asked
    try:
        est = results.estimate((k,))
        options: dict[str, Any] = {"metric": metric, "k": k, "probability": probability}
        found = judge_agent(est, at_least=bar, **options)
    except (OutcomesError, EstimateError) as error:
        return "inconclusive", f"the gate is inconclusive: {error}"
    return found.verdict, str(found)


@app.command("list")
def list_runs(
    folder: Annotated[Path, typer.Argument(help="Folder of runs.")] = Path("results"), as_json: AsJson = False
) -> None:
    """The runs in a folder, the latest first."""
    from agentic_bayes.errors import DamagedRun
    from agentic_bayes.reports.suite_tables import runs_table
    from agentic_bayes.suites.results import RunResults
    from agentic_bayes.suites.run_store import FILE

    if not folder.is_dir():
        raise InvalidArgument(f"{folder} is not a folder of runs")
    names = sorted((path.parent for path in folder.glob(f"*/{FILE}")), key=lambda path: path.name, reverse=True)
    found = []
    for name in names:
        try:
            found.append(RunResults.of(name))
        except InvalidArgument as error:
            warnings.warn(f"{name.name} is left out: {error}", DamagedRun, stacklevel=1)
    if as_json:
        say_json([one.counts() for one in found])
    else:
        show(runs_table([one.counts() for one in found]))
        if found and folder.resolve() != Path("results").resolve():
            say(f"other commands take the folder of a run, such as {found[0].folder}")


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Where to put an example suite.")] = Path(), as_json: AsJson = False
) -> None:
    """Write an example suite that runs offline, and the JSON schema that editors check it with."""
    from agentic_bayes.cli.examples import write_suite

    written = write_suite(folder)
    if as_json:
        say_json({"written": [str(path) for path in written]})
        return
    for path in written:
        say(f"wrote {path}")
    say(f"try: agentic-bayes run -c {folder / 'eval.yaml'}")


@app.command()
def convert(
    files: Files,
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write: .jsonl or .json, and .gz after it.")],
    format: FormatName = "auto",
    agent: AgentName = None,
    expected_tools: ExpectedFile = None,
    as_json: AsJson = False,
) -> None:
    """Read conversations in any format and write them in ours."""
    from agentic_bayes.formatting import plural
    from agentic_bayes.records.write import write_conversations

    _check_file(output, "--output")
    written = write_conversations(_conversations(files, format, agent, expected_tools), output)
    if as_json:
        say_json({"conversations": written, "output": str(output)})
    else:
        say(f"{plural(written, 'conversation')} written to {output}")


@app.command("show")
def show_conversation(
    files: Files,
    session: Annotated[str | None, typer.Option(help="Which conversation, by its session_id.")] = None,
    task: Annotated[str | None, typer.Option(help="Which conversation, by its task.")] = None,
    trial: Annotated[int | None, typer.Option(help="Which attempt at the task.")] = None,
    evidence: Annotated[Path | None, typer.Option(help="Evidence with its scores (JSONL).")] = None,
    format: FormatName = "auto",
    agent: AgentName = None,
    expected_tools: ExpectedFile = None,
    tool_rubric: RubricFile = None,
    as_json: AsJson = False,
) -> None:
    """Read one conversation with its calls and scores, or a run (its folder or id); without a choice, list them."""
    from dataclasses import asdict

    from agentic_bayes.evidence.evidence import Evidence
    from agentic_bayes.evidence.row import row_to_json
    from agentic_bayes.records.select import select
    from agentic_bayes.reports.record_tables import conversations_table
    from agentic_bayes.reports.transcript import transcript
    from agentic_bayes.suites.runner import find_run

    if len(files) == 1 and (run := find_run(files[0])) is not None:
        from agentic_bayes.suites.results import RunResults

        _say_run(RunResults.of(run), (1, 3, 5), None, None, as_json=as_json)
        return
    rubric = _rubric(tool_rubric)
    scored = () if evidence is None else Evidence.read(evidence).rows
    conversations = _conversations(files, format, agent, expected_tools)
    found = select(conversations, session=session, task=task, trial=trial)
    if len(found) != 1:
        if as_json:
            say_json([{**asdict(one), "conversation": None} for one in found])
        elif found:
            show(conversations_table(found))
        return
    place = (found[0].agent, found[0].task, found[0].trial)
    rows = [row for row in scored if (row.agent, row.task, row.trial) == place]
    whole = found[0].conversation
    if as_json:
        record = None if whole is None else whole.model_dump(mode="json", exclude_unset=True)
        say_json({**asdict(found[0]), "conversation": record, "evidence": [row_to_json(row) for row in rows]})
    elif whole is not None:
        say(transcript(whole, rows, tool_rubric=rubric))


@app.command()
def assess(
    files: Files,
    output: Annotated[Path, typer.Option("-o", "--output", help="Evidence file to write (.jsonl or .jsonl.gz).")],
    judge: Annotated[
        list[str] | None,
        typer.Option(
            help="An LLM judge, such as openai:gpt-4o-mini, or recorded: the scores in the files. "
            "Given again: further judges, and how far they agree.",
            show_default="by rules, offline",
        ),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(help="Keeps what a judge was paid for: a second run, or one after a crash, reuses it."),
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Judgements at a time.")] = 8,
    requests_per_second: Annotated[float | None, typer.Option(help="Calls of the judge, at most.")] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(
            help="Of a million tokens in and out, such as 0.15,0.60: cost is counted. One for all judges, or one each."
        ),
    ] = None,
    max_cost: Annotated[float | None, typer.Option(help="Stop before the judge has cost more; needs --price.")] = None,
    stats: Annotated[bool, typer.Option("--stats", help="Also print calls, tokens, cost and latency.")] = False,
    metrics: Annotated[
        str | None, typer.Option(help="Further metrics: task_completion,coherence=0.3 (its threshold),… or all.")
    ] = None,
    metrics_model: Annotated[
        str | None, typer.Option(help="Model that they ask.", show_default="the first LLM of --judge")
    ] = None,
    tool_rubric: RubricFile = None,
    expected_tools: ExpectedFile = None,
    format: FormatName = "auto",
    agent: AgentName = None,
    as_json: AsJson = False,
) -> None:
    """Judge every answer against its reference and score the tool calls; write the evidence."""
    from agentic_bayes.formatting import plural

    _check_evidence_file(output)
    judges = _judges(judge or [], price or [])
    first_model = next((name for name in judge or [] if name != RECORDED), None)
    further = _further_metrics(metrics, metrics_model or first_model, judges, price or [])
    if metrics_model is not None and not any(hasattr(metric, "price") for metric in further):
        raise InvalidArgument("--metrics-model is for metrics that ask a model: none of --metrics does")
    asks_model = any(hasattr(grader, "price") for grader in (*judges, *further))
    if not asks_model and any(option is not None for option in (store, requests_per_second, price or None, max_cost)):
        raise InvalidArgument(
            "--store, --requests-per-second, --price and --max-cost are for an LLM: say which, --judge"
        )
    if not asks_model and stats:
        raise InvalidArgument("--stats is for an LLM: say which, --judge")
    if store is not None:
        _check_file(store, "--store")
    graders = {"judge": judges[0], "metrics": [*judges[1:], *further], "tool_rubric": _rubric(tool_rubric)}
    limits = _given(requests_per_second=requests_per_second, max_cost=max_cost)
    scored_before = [0]
    conversations = _counted(_conversations(files, format, agent, expected_tools), scored_before)
    usage = None
    if asks_model:
        evidence, usage = _assess_with_models(conversations, store, concurrency=concurrency, **graders, **limits)
    else:
        evidence = _assess(conversations, concurrency=concurrency, **graders)
    evidence.write(output)
    agreed = _agreement(evidence, [judge.name for judge in judges[1:]])
    if as_json:
        told: dict[str, Any] = {"output": str(output), "stopped": evidence.stopped}
        told["agents"] = evidence.summary().to_dict("records")
        told["agreement"] = None if agreed is None else agreed.to_pandas().to_dict("records")
        say_json({**told, "usage": usage})
    else:
        show(
            _tables().evidence_table(evidence),
            *_tables().metrics_tables(evidence),
            *_tables().tool_problems_tables(evidence),
        )
        if scored_before[0] and not judge:
            known = plural(scored_before[0], "conversation")
            say(f"{known} carry recorded scores, which were not used: --judge recorded counts them")
        if agreed is not None:
            say(f"agreement of the judges, a score of 0.7 or more being right:\n{agreed}")
        if stats and usage is not None:
            say("\n".join(_usage_lines(usage)))
        say(f"evidence written to {output}")
    if evidence.stopped:
        raise typer.Exit(1)


def _counted(conversations: Iterator[Conversation], scored: list[int]) -> Iterator[Conversation]:
    """The same conversations; how many carry a score of their own is counted on the way."""
    for conversation in conversations:
        own = any(turn.recorded_score is not None for turn in conversation.conversation)
        scored[0] += conversation.recorded_score is not None or own
        yield conversation


def _judges(names: list[str], prices: list[str]) -> list[Any]:
    """The judges by name; the first gives the answer's score. Without a name the judge goes by rules."""
    from agentic_bayes.evidence.llm.judge import LLMJudge
    from agentic_bayes.evidence.recorded import RecordedJudge
    from agentic_bayes.evidence.reference.judge import ReferenceJudge

    if not names:
        return [ReferenceJudge()]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidArgument(f"--judge {twice[0]} was given already, and would agree with itself")
    if len(prices) > 1 and len(prices) != len(names):
        raise InvalidArgument(f"--price must be given once, or once per --judge ({len(names)}), got {len(prices)}")
    costs = [_price(text) for text in prices] or [None]
    costs *= 1 if len(costs) > 1 else len(names)
    return [
        RecordedJudge() if name == RECORDED else LLMJudge(name, price=price, name=name)
        for name, price in zip(names, costs, strict=True)
    ]


def _further_metrics(text: str | None, model: str | None, judges: list[Any], prices: list[str]) -> list[Any]:
    """Metrics by name; those that ask a model ask this one, at its price."""
    if text is None:
        return []
    from agentic_bayes.evidence.metrics.registry import make_metric, metric_names

    parts = metric_names() if text.strip() == "all" else [part.strip() for part in text.split(",")]
    names, cuts = [], []
    for part in parts:
        name, sign, cut = part.partition("=")
        try:
            cuts.append({"threshold": float(cut)} if sign else {})
        except ValueError:
            raise InvalidArgument(f"--metrics must be names such as coherence or coherence=0.3, got {part!r}") from None
        names.append(name.strip())
    priced = {judge.name: judge.price for judge in judges if hasattr(judge, "price")}
    price = priced.get(model, _price(prices[0]) if len(prices) == 1 else None)
    found = []
    for name, options in zip(names, cuts, strict=True):
        try:
            found.append(make_metric(name, model=model, **options, **_given(price=price)))
        except InvalidArgument as error:
            if "no option 'price'" not in str(error):
                raise
            found.append(make_metric(name, model=model, **options))
    return found


def _assess_with_models(
    conversations: Iterator[Conversation], store: Path | None, **options: Any
) -> tuple[Evidence, dict[str, Any]]:
    """Evidence for which models are asked, and what it took."""
    from agentic_bayes.evidence.llm.store import Store

    with Store(store or ":memory:") as kept:
        return _assess(conversations, store=kept, **options), _usage(kept)


def _agreement(evidence: Evidence, others: list[str]) -> Agreement | None:
    """How far the judges agree, where there are several and they scored anything."""
    from agentic_bayes.judges.several_judges import judge_agreement

    if not others or all(row.answer_score is None for row in evidence.rows):
        return None
    return judge_agreement(evidence, judges=["answer", *others])


def _price(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        given, taken = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidArgument(f'--price must be two numbers such as "0.15,0.60", got {text!r}') from None
    return given, taken


def _usage_record(usage: Usage) -> dict[str, Any]:
    """What judgements took; a cost that nobody knows is None."""
    from dataclasses import asdict

    return {**asdict(usage), "cost": usage.cost if usage.unpriced < usage.calls else None}


def _usage(store: Store) -> dict[str, Any]:
    """Calls, tokens, cost and latency of this run."""
    usage, calls = store.session, store.to_pandas()
    middle, slow = (calls["latency"].tail(usage.calls).quantile(q) if usage.calls else None for q in (0.5, 0.95))
    return {**_usage_record(usage), "reused": store.reused, "latency_p50": middle, "latency_p95": slow}


def _usage_lines(usage: dict[str, Any]) -> list[str]:
    """The same in words."""
    failed = f"{usage['judgements']:,} judgements by {usage['calls']:,} calls ({usage['failed']:,} failed)"
    cost = "" if usage["cost"] is None else f", cost {usage['cost']:,.6g}"
    lines = [
        f"{failed}, {usage['reused']:,} reused",
        f"tokens: {usage['input_tokens']:,} in, {usage['output_tokens']:,} out{cost}",
    ]
    if usage["calls"]:
        lines.append(f"latency: median {usage['latency_p50']:.2f} s, 95 % within {usage['latency_p95']:.2f} s")
    return lines


def _cost_words(usage: Usage) -> str:
    return f", cost {usage.cost:,.6g}" if usage.unpriced < usage.calls else ""


cache = typer.Typer(help="What a store of judgements holds.", no_args_is_help=True)
app.add_typer(cache, name="cache")
StoreFile = Annotated[Path, typer.Argument(help="The store, as given to assess --store.")]


@cache.command("list")
def cache_list(file: StoreFile, as_json: AsJson = False) -> None:
    """Judgements, tokens and cost by model."""
    from agentic_bayes.evidence.llm.store import Store
    from agentic_bayes.formatting import plural

    _check_store(file)
    with Store(file) as store:
        models, judgements, size = store.models(), len(store), store.size
    if as_json:
        by_model = {model: _usage_record(usage) for model, usage in models.items()}
        say_json({"models": by_model, "judgements": judgements, "bytes": size})
        return
    for model, usage in models.items():
        tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
        say(f"{model}: {plural(usage.judgements, 'judgement')}, {tokens}{_cost_words(usage)}")
    say(f"{plural(judgements, 'judgement')} in {size:,} bytes")


@cache.command("clear")
def cache_clear(
    file: StoreFile,
    model: Annotated[str | None, typer.Option(help="Only judgements of this model.")] = None,
    as_json: AsJson = False,
) -> None:
    """Forget judgements; they will be paid for again."""
    from agentic_bayes.evidence.llm.store import Store
    from agentic_bayes.formatting import plural

    _check_store(file)
    with Store(file) as store:
        if model is not None:
            check_choice("model", model, store.models())
        cleared = store.clear(model)
    if as_json:
        say_json({"cleared": cleared})
    else:
        say(f"{plural(cleared, 'judgement')} cleared")


def _check_store(path: Path) -> None:
    from agentic_bayes.checks import no_such_file

    if not path.is_file():
        raise InvalidArgument(no_such_file(path))


@app.command()
def estimate(
    file: Input,
    k: Ks = "1,3,5",
    method: Method = "hierarchical",
    ci_prob: CiProb = 0.95,
    ci_kind: CiKind = "eti",
    inflate: Annotated[
        bool, typer.Option("--inflate", help="Point masses for tasks that always or never pass.")
    ] = False,
    engine: Annotated[
        str, typer.Option(help="auto, quadrature (exact), importance (crossed) or pymc (NUTS).")
    ] = "auto",
    random_seed: Seed = 0,
    judge_labels: LabelsFile = None,
    columns: Columns = None,
    unit: Unit = None,
    indicator: Indicator = None,
    threshold: Threshold = None,
    tool_threshold: ToolThreshold = None,
    agents: Agents = None,
    errors: Errors = None,
    output: Out = None,
    pictures: Annotated[bool, typer.Option("--pictures", help="Also draw curves, forest and more into -o.")] = False,
    as_json: AsJson = False,
) -> None:
    """Estimate pass@k and pass^k with intervals, beside the frequentist baseline."""
    _check_folder(output)
    if pictures and output is None:
        raise InvalidArgument("--pictures needs a folder: give -o DIR")
    counting = _counting(unit, indicator, threshold, tool_threshold, agents, errors)
    est = _estimate(
        *(file, columns, counting),
        k=_ks(k),
        method=method,
        ci_prob=ci_prob,
        ci_kind=ci_kind,
        engine=engine,
        inflate=inflate,
        random_seed=random_seed,
        **_labels(judge_labels),
    )
    if output is not None:
        _write_results(est, output, file, counting, pictures=pictures)
    if as_json:
        say_json({"summary": est.summary().to_dict("records"), "baseline": est.baseline().to_dict("records")})
        return
    show(*_tables().estimate_tables(est))
    if est.diagnostics is not None:
        say(f"{est.diagnostics}")
    if est.note:
        say(f"method {est.settings.method}: {est.note}")
    if output is not None:
        say(f"results written to {output}")


@app.command()
def compare(
    files: Annotated[list[str], typer.Argument(help="One file with both agents, or baseline file A and new file B.")],
    agent: Annotated[str | None, typer.Option(help="The agent to judge; with two files, of file B.")] = None,
    baseline: Annotated[
        str | None, typer.Option(help="The agent to compare with (with two files, of file A), or a value such as 0.7.")
    ] = None,
    metric: MetricName = "pass^1",
    estimand: EstimandName = "population",
    rope: Annotated[float, typer.Option(help="Differences within ± this do not matter.")] = 0.02,
    pairing: Annotated[str, typer.Option(help="auto or tasks (on shared tasks), or none.")] = "auto",
    method: FitMethod = None,
    ci_prob: FitCiProb = None,
    ci_kind: FitCiKind = None,
    random_seed: FitSeed = None,
    judge_labels: LabelsFile = None,
    columns: Columns = None,
    unit: Unit = None,
    indicator: Indicator = None,
    threshold: Threshold = None,
    tool_threshold: ToolThreshold = None,
    errors: Errors = None,
    as_json: AsJson = False,
) -> None:
    """Compare two agents, or one with a value: the difference, its interval and the probability of superiority."""
    from dataclasses import asdict

    from agentic_bayes.checks import check_probability
    from agentic_bayes.decisions.compare import compare as compare_agents
    from agentic_bayes.reports.tables import comparison_lines

    question = _question(metric, estimand)
    check_probability(rope, "rope")
    check_choice("pairing", pairing, ("auto", "tasks", "none"))
    counting = _counting(unit, indicator, threshold, tool_threshold, None, errors)
    settings = _given(method=method, ci_prob=ci_prob, ci_kind=ci_kind, random_seed=random_seed)
    settings |= _labels(judge_labels)
    est, agent, other = _two_agents(files, agent, baseline, columns, counting, settings)
    options: dict[str, Any] = question | {"rope": rope, "pairing": pairing}
    found = compare_agents(est, agent, baseline=other, **options)
    if as_json:
        numbers = {name: value for name, value in asdict(found).items() if name != "draws"}
        say_json({"verdict": found.verdict, **numbers})
    else:
        say("\n".join([str(found), "", *comparison_lines(found)]))


@app.command()
def rank(
    file: Input,
    metric: MetricName = "pass^1",
    estimand: EstimandName = "population",
    method: FitMethod = None,
    ci_prob: FitCiProb = None,
    ci_kind: FitCiKind = None,
    random_seed: FitSeed = None,
    judge_labels: LabelsFile = None,
    columns: Columns = None,
    unit: Unit = None,
    indicator: Indicator = None,
    threshold: Threshold = None,
    tool_threshold: ToolThreshold = None,
    errors: Errors = None,
    as_json: AsJson = False,
) -> None:
    """Rank agents: probability of being best, expected rank and its interval, who beats whom."""
    from agentic_bayes.decisions.rank import rank as rank_agents
    from agentic_bayes.decisions.rank import superiority

    question = _question(metric, estimand)
    counting = _counting(unit, indicator, threshold, tool_threshold, None, errors)
    settings = _given(method=method, ci_prob=ci_prob, ci_kind=ci_kind, random_seed=random_seed)
    settings |= _labels(judge_labels)
    est = _fitted(file, columns, counting, settings)
    ranks, matrix = rank_agents(est, **question), superiority(est, **question)
    if as_json:
        say_json({"ranks": ranks.to_dict("records"), "superiority": matrix.to_dict("index")})
    else:
        show(_tables().rank_table(ranks), _tables().superiority_table(matrix))


@app.command(epilog=EXIT_CODES)
def gate(
    file: Input,
    at_least: Annotated[float, typer.Option(help="The bar, between 0 and 1.")],
    agent: OneAgent = None,
    metric: MetricName = "pass^1",
    probability: Annotated[
        float, typer.Option(help="Passes if P(metric ≥ bar) is at least this, fails if P(metric < bar) is.")
    ] = 0.95,
    estimand: EstimandName = "population",
    baseline: Annotated[str | None, typer.Option(help="An agent below which the metric must not drop.")] = None,
    margin: Annotated[float, typer.Option(help="By how much it may drop below the baseline.")] = 0.0,
    inconclusive_is: Annotated[
        str, typer.Option(help="Exit code for inconclusive: inconclusive (11), fail (10) or pass (0).")
    ] = "inconclusive",
    junit: Annotated[Path | None, typer.Option(help="Also write JUnit XML to this file.")] = None,
    method: FitMethod = None,
    ci_prob: FitCiProb = None,
    ci_kind: FitCiKind = None,
    random_seed: FitSeed = None,
    judge_labels: LabelsFile = None,
    columns: Columns = None,
    unit: Unit = None,
    indicator: Indicator = None,
    threshold: Threshold = None,
    tool_threshold: ToolThreshold = None,
    agents: Agents = None,
    errors: Errors = None,
    as_json: AsJson = False,
) -> None:
    """Pass, fail or inconclusive: is an agent good enough to ship? For CI; see the exit codes below."""
    from dataclasses import asdict

    from agentic_bayes.checks import check_probability
    from agentic_bayes.decisions.gate import check_required
    from agentic_bayes.decisions.gate import gate as judge_agent

    question = _question(metric, estimand)
    for name, value in (("at_least", at_least), ("margin", margin)):
        check_probability(value, name)
    check_required(probability)
    check_choice("inconclusive_is", inconclusive_is, ("inconclusive", "fail", "pass"))
    if junit is not None:
        _check_file(junit, "--junit", file)
    counting = _counting(unit, indicator, threshold, tool_threshold, agents, errors)
    settings = _given(method=method, ci_prob=ci_prob, ci_kind=ci_kind, random_seed=random_seed)
    settings |= _labels(judge_labels)
    est = _fitted(file, columns, counting, settings, agent, baseline)
    options: dict[str, Any] = question | {"probability": probability, "baseline": baseline, "margin": margin}
    found = judge_agent(est, agent, at_least=at_least, **options)
    code = EXIT[inconclusive_is if found.verdict == "inconclusive" else found.verdict]
    if junit is not None:
        from agentic_bayes.reports.junit import junit_xml

        junit.write_text(junit_xml(found, excused=inconclusive_is == "pass"), encoding="utf-8")
    if as_json:
        say_json({"verdict": found.verdict, "exit_code": code, **asdict(found)})
    else:
        say(str(found))
    raise typer.Exit(code)


@app.command()
def plan(
    file: Annotated[
        str | None, typer.Argument(help="What there is already: outcomes, evidence or a saved estimate.")
    ] = None,
    agent: OneAgent = None,
    metric: MetricName = "pass^1",
    mu: Annotated[float | None, typer.Option(help="Without a file: a guess of the mean success probability.")] = None,
    rho: Annotated[
        float | None, typer.Option(help="Without a file: how much tasks differ, 0 to 1 (.36 to .58 on tau-bench).")
    ] = None,
    width: Annotated[float | None, typer.Option(help="Wanted: an interval this narrow.")] = None,
    at_least: Annotated[float | None, typer.Option(help="Wanted: a gate at this bar that passes or fails.")] = None,
    difference: Annotated[float | None, typer.Option(help="Wanted: to tell apart agents that differ by this.")] = None,
    probability: Annotated[float, typer.Option(help="What the gate requires.")] = 0.95,
    power: Annotated[float, typer.Option(help="How probable a conclusion must be.")] = 0.8,
    budget: Annotated[float | None, typer.Option(help="Most that may be spent; alone: the most for it.")] = None,
    cost_per_trial: Annotated[float, typer.Option(help="In any currency.")] = 1.0,
    cost_per_task: Annotated[float, typer.Option(help="In the same currency.")] = 0.0,
    trials: Annotated[
        str | None, typer.Option(help="Trials per task to consider.", show_default="1,2,3,4,5,8 and k")
    ] = None,
    ci_prob: FitCiProb = None,
    ci_kind: FitCiKind = None,
    random_seed: Seed = 0,
    picture: Annotated[Path | None, typer.Option(help="Also draw width against cost (.png, .svg or .pdf).")] = None,
    columns: Columns = None,
    unit: Unit = None,
    indicator: Indicator = None,
    threshold: Threshold = None,
    tool_threshold: ToolThreshold = None,
    agents: Agents = None,
    errors: Errors = None,
    as_json: AsJson = False,
) -> None:
    """How many new tasks, and how many trials of each, are worth paying for? By simulation."""
    from dataclasses import asdict

    from agentic_bayes.decisions.plan import plan as make_plan
    from agentic_bayes.evidence.progress import ProgressBar

    question = _question(metric, "population")
    if picture is not None:
        _check_file(picture, "--picture", file)
        check_choice("kind of picture", picture.suffix.lower(), (".png", ".svg", ".pdf"))
    settings = _given(ci_prob=ci_prob, ci_kind=ci_kind)
    counting = _counting(unit, indicator, threshold, tool_threshold, agents, errors)
    _check_has_file(file, agent or columns, counting)
    est = None if file is None else _fitted(file, columns, counting, settings, agent)
    options = _given(mu=mu, rho=rho, budget=budget, width=width, at_least=at_least, difference=difference)
    options |= {"metric": question["metric"], "k": question["k"], "probability": probability, "power": power}
    options |= {"cost_per_trial": cost_per_trial, "cost_per_task": cost_per_task, "random_seed": random_seed}
    options |= {"trials": None if trials is None else _ks(trials, "--trials")} | ({} if file else settings)
    with ProgressBar("simulating") as progress:
        found = make_plan(est, agent, progress=progress, **options)
    if picture is not None:
        from agentic_bayes.reports.plots.save import save_plan_picture

        save_plan_picture(found, picture)
    if as_json:
        say_json(asdict(found))
        return
    if found.designs:
        show(_tables().plan_table(found))
    say(str(found))


@app.command(epilog=EXIT_CODES)
def monitor(
    file: Annotated[str | None, typer.Argument(help="All data so far; without it the rule is made and kept.")] = None,
    rule: Annotated[Path | None, typer.Option(help="File of the rule: made if it does not exist, else used.")] = None,
    agent: OneAgent = None,
    metric: Annotated[str | None, typer.Option(help="Such as pass^3.", show_default="pass^1")] = None,
    at_least: Annotated[float | None, typer.Option(help="Stop when a gate at this bar passes or fails.")] = None,
    width: Annotated[float | None, typer.Option(help="Stop when the interval is this narrow.")] = None,
    batch: Annotated[int | None, typer.Option(help="New tasks per look.", show_default="20")] = None,
    trials: Annotated[int | None, typer.Option(help="Trials per task.", show_default="3")] = None,
    looks: Annotated[int | None, typer.Option(help="Looks at most.", show_default="10")] = None,
    rho: Annotated[float | None, typer.Option(help="How much tasks differ, 0 to 1.", show_default="0.45")] = None,
    mu: Annotated[
        float | None, typer.Option(help="Success probability to simulate a width with.", show_default="0.7")
    ] = None,
    false_winners: Annotated[
        float | None, typer.Option(help="Share of false winners that is allowed.", show_default="0.05")
    ] = None,
    random_seed: FitSeed = None,
    columns: Columns = None,
    unit: Unit = None,
    indicator: Indicator = None,
    threshold: Threshold = None,
    tool_threshold: ToolThreshold = None,
    agents: Agents = None,
    errors: Errors = None,
    as_json: AsJson = False,
) -> None:
    """Look after every batch and stop when the data suffice, by a rule whose error rates are shown first.

    Exits with 11 while more data are wanted, and where it ends without a verdict on the bar.
    """
    from dataclasses import asdict

    from agentic_bayes.decisions.monitor import StoppingRule
    from agentic_bayes.decisions.monitor import monitor as make_rule
    from agentic_bayes.evidence.progress import ProgressBar

    counting = _counting(unit, indicator, threshold, tool_threshold, agents, errors)
    _check_has_file(file, agent or columns, counting)
    chosen = _given(at_least=at_least, width=width, batch=batch, trials=trials, looks=looks, rho=rho, mu=mu)
    chosen |= _given(false_winners=false_winners, random_seed=random_seed)
    if metric is not None:
        question = _question(metric, "population")
        chosen |= {"metric": question["metric"], "k": question["k"]}
    if rule is not None and rule.exists():
        made = StoppingRule.load(rule)
        if chosen:
            raise InvalidArgument(f"{rule} is a rule already: {', '.join(chosen)} cannot change while it is in use")
    else:
        if rule is not None:
            _check_file(rule, "--rule")
        with ProgressBar("simulating") as progress:
            made = make_rule(**chosen, progress=progress)
        if rule is not None:
            made.save(rule)
    looked = None
    if file is not None:
        looked = made.look(_fitted(file, columns, counting, {"method": "frequentist"}, agent), agent)
    if as_json:
        look = None if looked is None else {**asdict(looked), "stop": looked.stop}
        say_json({"rule": asdict(made), "look": look})
    else:
        say(str(made))
        if looked is not None:
            say(f"\n{looked}")
    if looked is not None:
        # where there is a bar, an interval that is narrow enough leaves the gate inconclusive
        undecided = looked.verdict == "narrow enough" and made.at_least is not None
        raise typer.Exit(EXIT["inconclusive" if undecided else looked.verdict])


@app.command(epilog=EXIT_CODES)
def reproduce(
    folder: Annotated[str, typer.Argument(help="Results, as estimate -o or demo -o writes them, or a run of a suite.")],
    as_json: AsJson = False,
) -> None:
    """Make results again from the data, settings and seed in their folder: identical, or what differs.

    Exits with 0 if they are identical or differ by no more than rounding or Monte-Carlo error, else with 1.
    """
    from dataclasses import asdict

    from agentic_bayes.reports.reproduction import reproduce as make_again
    from agentic_bayes.suites.runner import find_run

    place = find_run(folder) or Path(folder)
    if not place.exists():
        known = "and results holds no run of this id: a run that is elsewhere is given by its folder"
        raise InvalidArgument(f"{place}: no such folder, {known}")
    found = make_again(place)
    if as_json:
        say_json({"verdict": found.verdict, **asdict(found), "folder": str(found.folder)})
    else:
        say(str(found))
    if not found.reproduced:
        raise typer.Exit(1)


@app.command()
def report(
    file: Input,
    output: Annotated[Path, typer.Option("-o", "--output", help="The HTML file to write.")],
    evidence: Annotated[
        Path | None, typer.Option(help="Evidence behind the numbers (JSONL); not needed where FILE is evidence.")
    ] = None,
    conversations: Annotated[
        list[str] | None, typer.Option(help="Conversations to be read in the report: files, folders or globs.")
    ] = None,
    store: Annotated[Path | None, typer.Option(help="Where judgements were kept: adds tokens and cost.")] = None,
    agent: Annotated[str | None, typer.Option(help="Whom the verdict is about.")] = None,
    baseline: Annotated[str | None, typer.Option(help="With whom, or with which value, it is compared.")] = None,
    metric: MetricName = "pass^1",
    at_least: Annotated[float | None, typer.Option(help="Also a gate at this bar; its verdict comes first.")] = None,
    probability: Annotated[float, typer.Option(help="What that gate requires.")] = 0.95,
    k: Annotated[str | None, typer.Option("--k", help="Numbers of attempts.", show_default="1,3,5")] = None,
    estimand: Annotated[
        str | None, typer.Option(help="population (new tasks) or tasks (these tasks).", show_default="population")
    ] = None,
    method: FitMethod = None,
    ci_prob: FitCiProb = None,
    ci_kind: FitCiKind = None,
    random_seed: FitSeed = None,
    judge_labels: LabelsFile = None,
    columns: Columns = None,
    unit: Unit = None,
    indicator: Indicator = None,
    threshold: Threshold = None,
    tool_threshold: ToolThreshold = None,
    agents: Agents = None,
    errors: Errors = None,
) -> None:
    """Write everything into one HTML file: verdict, numbers, tasks, conversations, how to get the numbers again."""
    from agentic_bayes.cli.inputs import open_input
    from agentic_bayes.evidence.evidence import Evidence
    from agentic_bayes.evidence.llm.store import Store
    from agentic_bayes.reports.html.page import write_report
    from agentic_bayes.suites.runner import find_run

    question = _question(metric, estimand or "population")
    _check_file(output, "--output", file)
    if store is not None:
        _check_store(store)
    counting = _counting(unit, indicator, threshold, tool_threshold, agents, errors)
    settings = _given(method=method, ci_prob=ci_prob, ci_kind=ci_kind, random_seed=random_seed)
    settings |= _given(k=None if k is None else _ks(k)) | _labels(judge_labels)
    value = None if baseline is None else _value(baseline)
    est = _fitted(file, columns, counting, settings, agent, baseline if value is None else None)
    asked: dict[str, Any] = {**question, "estimand": estimand, "source": file}
    asked |= {"agent": agent, "baseline": baseline if value is None or baseline in est.agents else value}
    asked |= {"at_least": at_least, "probability": probability}
    if (run := find_run(file)) is not None:
        if evidence or conversations or store:
            raise InvalidArgument(f"{file} is a run of a suite, which has its own conversations, scores and cost")
        _report_of_run(run, output, est, asked)
    else:
        opened = open_input(file)
        scored = Evidence.read(evidence) if evidence is not None else opened if isinstance(opened, Evidence) else None
        said = _conversations(conversations, "auto", None) if conversations else None
        with Store(store) if store is not None else contextlib.nullcontext() as kept:
            write_report(est, output, evidence=scored, conversations=said, store=kept, **asked)
    say(f"report written to {output}")


def _report_of_run(run: Path, output: Path, est: Estimate, asked: dict[str, Any]) -> None:
    from agentic_bayes.suites.report import write_run_report
    from agentic_bayes.suites.results import RunResults

    if isinstance(asked["baseline"], str):
        raise InvalidArgument("a run has one agent: --baseline must be a value, such as 0.7")
    options = {name: asked[name] for name in ("metric", "estimand", "baseline", "at_least", "probability")}
    write_run_report(RunResults.of(run), output, est=est, verdict_k=asked["k"], **options)


@app.command()
def demo(output: Out = None, random_seed: Seed = 0) -> None:
    """Two versions of an example agent, offline: judged, scored, estimated, compared."""
    from agentic_bayes.cli.examples import example_folder
    from agentic_bayes.decisions.compare import compare as compare_agents
    from agentic_bayes.decisions.tiers import classify
    from agentic_bayes.estimation.estimate import estimate as fit
    from agentic_bayes.outcomes.count import count_outcomes
    from agentic_bayes.reports.html.page import write_report
    from agentic_bayes.reports.plots.save import save_pictures
    from agentic_bayes.reports.results_folder import write_results

    _check_folder(output)
    folder = example_folder("support_agent")
    say(f"1. Conversations of two versions of a support agent, judged offline ({folder.name})")
    files = [str(folder / "v1.jsonl"), str(folder / "v2.jsonl")]
    evidence = _assess(_conversations(files, "auto", None))
    show(_tables().evidence_table(evidence))
    say("2. Reliability: PyMC hierarchical Beta-Binomial model (the first fit compiles for some seconds)")
    outcomes = count_outcomes(evidence)
    est = fit(outcomes, engine="pymc", random_seed=random_seed)
    show(*_tables().estimate_tables(est))
    say(f"{est.diagnostics}")
    exact = fit(outcomes, random_seed=random_seed)
    gap = float((exact.summary()["mean"] - est.summary()["mean"]).abs().max())
    say(f"The exact engine, used by default, gives the same means to within {gap:.3f} and needs no sampling.")
    say("\n3. Is the new version better?")
    old, new = est.agents
    for power in (1, 3):
        say(f"   {compare_agents(est, new, baseline=old, k=power)}")
    say("\n4. Deployment tier (probabilities)")
    for agent in est.agents:
        say(f"   {agent}: {classify(est, agent)}")
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        pictures = save_pictures(est, evidence, output)
        write_report(
            est,
            output / "report.html",
            evidence=evidence,
            conversations=_conversations(files, "auto", None),
            source=str(output / "evidence.jsonl"),
        )
        write_results(est, output, evidence=evidence, command=_command(), also=[*pictures, "report.html"])
        say(f"\nresults and pictures written to {output}")
        say(f"the report for a colleague: {output / 'report.html'}")


def _tables() -> Any:
    from agentic_bayes.reports import tables

    return tables


def _assess(conversations: Iterator[Conversation], *, judge: Any = None, **options: Any) -> Evidence:
    """Evidence; judged by rules unless a judge is given."""
    from agentic_bayes.evidence.assess import assess as judge_all
    from agentic_bayes.evidence.progress import ProgressBar
    from agentic_bayes.evidence.reference.judge import ReferenceJudge

    with ProgressBar() as progress:
        return judge_all(conversations, judge=judge or ReferenceJudge(), progress=progress, **options)


def _conversations(
    files: list[str], format: str, agent: str | None, expected_tools: Path | None = None
) -> Iterator[Conversation]:
    from agentic_bayes.evidence.tools.expected import join_expected_tools
    from agentic_bayes.records.read import read_conversations

    conversations = read_conversations(files, format=format, agent=agent)  # type: ignore[arg-type]
    return conversations if expected_tools is None else join_expected_tools(conversations, expected_tools)


def _rubric(path: Path | None) -> ToolRubric:
    from agentic_bayes.evidence.tools.rubric import ToolRubric

    return ToolRubric() if path is None else ToolRubric.from_file(path)


def _ks(text: str, option: str = "--k") -> tuple[int, ...]:
    from agentic_bayes.checks import check_ks

    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InvalidArgument(f'{option} must be whole numbers ≥ 1 such as "1,3,5", got {text!r}') from None
    return check_ks(found)


def _question(metric: str, estimand: str) -> dict[str, Any]:
    """What is asked of an estimate: metric, k and estimand."""
    from agentic_bayes.formatting import parse_metric

    name, k = parse_metric(metric)
    check_choice("estimand", estimand, ("population", "tasks"))
    return {"metric": name, "k": k or 1, "estimand": estimand}


def _check_has_file(file: str | None, named: str | None, counting: dict[str, Any]) -> None:
    if file is None and (named or counting):
        raise InvalidArgument(
            "--agent, --columns and the options for evidence say how to read FILE, but none was given"
        )


def _columns(text: str | None) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",")] if text else []
    allowed = ("agent", "task", "trial", "correct", "successes", "trials")
    for name, sign, column in pairs:
        if name.strip() not in allowed or not sign or not column.strip():
            raise InvalidArgument(f"--columns must be like agent=model,task=id with names of {allowed}, got {text!r}")
    return {name.strip(): column.strip() for name, _, column in pairs}


def _counting(*values: Any) -> dict[str, Any]:
    """The options for evidence that were given."""
    from agentic_bayes.outcomes.count import INDICATORS

    names = ("unit", "indicator", "threshold", "tool_threshold", "agents", "errors")
    given = _given(**dict(zip(names, values, strict=True)))
    metric = given.get("indicator", "answer")
    if "threshold" in given and metric not in INDICATORS:
        raise InvalidArgument(
            f"--threshold is for the answer: {metric} is cut at its own threshold (assess --metrics {metric}=0.3)"
        )
    return given


def _labels(path: Path | None) -> dict[str, Any]:
    """Human labels of judged attempts, as `estimate` takes them."""
    if path is None:
        return {}
    import pandas as pd

    from agentic_bayes.evidence.table import read_columns

    _, columns = read_columns(path, error=InvalidArgument)
    return {"judge_labels": pd.DataFrame(dict(columns), dtype=object)}


def _given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def _estimate(file: str, columns: str | None, counting: dict[str, Any], **settings: Any) -> Estimate:
    from agentic_bayes.cli.inputs import read_outcomes
    from agentic_bayes.estimation.estimate import estimate as fit

    return fit(read_outcomes(file, columns=_columns(columns), counting=counting), **settings)


def _fitted(
    file: str, columns: str | None, counting: dict[str, Any], settings: dict[str, Any], *agents: str | None
) -> Estimate:
    """A saved estimate, changed in the settings that are given (another method starts anew); anything else fitted.

    Nothing is fitted before the data are found to hold these agents.
    """
    from dataclasses import replace

    from agentic_bayes.cli.inputs import open_input, read_outcomes
    from agentic_bayes.estimation.estimate import Estimate
    from agentic_bayes.estimation.estimate import estimate as fit
    from agentic_bayes.suites.runner import find_run

    outcomes = read_outcomes(file, columns=_columns(columns), counting=counting)
    for agent in agents:
        if agent is not None:
            check_choice("agent", agent, map(str, outcomes["agent"].values))
    opened = None if find_run(file) is not None else open_input(file)
    if not isinstance(opened, Estimate) or settings.keys() & {"method", "judge_labels"}:
        return fit(outcomes, **settings)
    if opened.draws is None or "random_seed" not in settings:
        return replace(opened, settings=replace(opened.settings, **settings))
    names = ("method", "k", "ci_prob", "ci_kind", "engine", "prior", "pool_agents")  # what a sampled method has
    return fit(outcomes, **{name: getattr(opened.settings, name) for name in names} | settings)


def _two_agents(
    files: list[str],
    agent: str | None,
    baseline: str | None,
    columns: str | None,
    counting: dict[str, Any],
    settings: dict[str, Any],
) -> tuple[Estimate, str, str | float]:
    """An estimate that holds both agents, and their names in it; the baseline may be a value instead."""
    from agentic_bayes.cli.inputs import read_outcomes
    from agentic_bayes.estimation.estimate import estimate as fit
    from agentic_bayes.outcomes.dataset import combine_outcomes

    match files:
        case [single]:
            if baseline is None:
                raise InvalidArgument("with one file, say --agent NEW and --baseline OLD")
            value = _value(baseline)
            if agent is None and value is None:
                raise InvalidArgument("with one file, say --agent NEW and --baseline OLD")
            est = _fitted(single, columns, counting, settings, agent, baseline if value is None else None)
            named = value is None or baseline in est.agents  # an agent may be called 0.7
            return est, est.agents[est.agent_index(agent)], baseline if named else value  # type: ignore[return-value]
        case [old, new]:
            _warn_of_unlike_tasks(old, new)
            parts = []
            for file, name in ((old, baseline), (new, agent)):
                outcomes = read_outcomes(file, columns=_columns(columns), counting=counting)
                parts.append(_one_agent(outcomes, name, file))
            labels = [str(part["agent"].values[0]) for part in parts]
            if labels[0] == labels[1]:
                if old == new:
                    raise InvalidArgument(f"compare needs two agents, got {labels[0]!r} of {old} twice")
                labels = [Path(old).stem, Path(new).stem] if Path(old).stem != Path(new).stem else [old, new]
            return fit(combine_outcomes(*parts, names=labels), **settings), labels[1], labels[0]
        case _:
            raise InvalidArgument(f"compare takes one or two files, got {len(files)}")


def _warn_of_unlike_tasks(old: str, new: str) -> None:
    """Two runs of a suite whose tasks were changed in between compare agents and graders at once."""
    from agentic_bayes.errors import DoubtfulRecords
    from agentic_bayes.suites.results import unlike_tasks
    from agentic_bayes.suites.runner import find_run

    runs = find_run(old), find_run(new)
    if runs[0] is None or runs[1] is None or not (unlike := unlike_tasks(runs[0], runs[1])):
        return
    named = ", ".join(unlike[:5]) + (f" and {len(unlike) - 5:,} more" if len(unlike) > 5 else "")
    what = "input, expectations, graders or pass threshold"
    warnings.warn(f"{what} differ between the runs in {named}", DoubtfulRecords, stacklevel=1)


def _value(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _one_agent(outcomes: Any, name: str | None, file: str) -> Any:
    agents = [str(label) for label in outcomes["agent"].values]
    if name is None:
        if len(agents) > 1:
            raise InvalidArgument(f"{file} holds {len(agents)} agents: say --agent or --baseline, one of {agents}")
        return outcomes
    check_choice("agent", name, agents)
    return outcomes.isel(agent=[agents.index(name)])


def _write_results(est: Estimate, output: Path, file: str, counting: dict[str, Any], *, pictures: bool) -> None:
    """The folder of results, with the evidence that was counted where there is some."""
    from agentic_bayes.cli.inputs import open_input
    from agentic_bayes.evidence.evidence import Evidence
    from agentic_bayes.reports.results_folder import write_results
    from agentic_bayes.suites.runner import find_run

    opened = None if find_run(file) is not None else open_input(file)
    evidence = opened if isinstance(opened, Evidence) else None
    drawn: list[str] = []
    if pictures:
        from agentic_bayes.reports.plots.save import save_pictures

        output.mkdir(parents=True, exist_ok=True)
        drawn = save_pictures(est, None, output)
    write_results(est, output, evidence=evidence, counting=counting, command=_command(), also=drawn)


def _command() -> list[str]:
    return ["agentic-bayes", *sys.argv[1:]]


def _check_folder(output: Path | None) -> None:
    """Refuse a place for results that cannot be a folder, before any work is done."""
    if output is None:
        return
    if output.exists() and not output.is_dir():
        raise InvalidArgument(f"--output must be a folder, {output} is a file")
    _check_writable(next(place for place in (output, *output.absolute().parents) if place.exists()))


def _check_evidence_file(output: Path) -> None:
    """Refuse a place where evidence cannot be written, or must not be, before any work is done."""
    from agentic_bayes.cli.inputs import holds_conversations

    _check_file(output, "--output")
    if output.exists() and holds_conversations(output):
        raise InvalidArgument(f"--output must not be a file of conversations, which {output} is")


def _check_file(path: Path, option: str, source: str | None = None) -> None:
    """Refuse a place where a file cannot be written, or that is the input's, before any work is done."""
    if not path.parent.is_dir() or (path.exists() and not path.is_file()):
        raise InvalidArgument(f"{option} must be a file in a folder that exists, got {path}")
    if source is not None and path.exists() and Path(source).exists() and path.samefile(source):
        raise InvalidArgument(f"{option} must not be the file that is read, which {path} is")
    _check_writable(path.parent, option)


def _check_writable(folder: Path, option: str = "--output") -> None:
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidArgument(f"{option} must be in a folder that can be written to, {folder} cannot")


WIDTH = 80  # columns of the screen that text takes
NARROWEST = 40  # with less, lines would be words


def say(text: str) -> None:
    """Plain text, in lines that fit 80 columns, or a terminal that has fewer."""
    from agentic_bayes.formatting import plain_text

    screen = get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    width = min(max(screen, NARROWEST), WIDTH)
    for line in plain_text(text).split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        print(fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))


def complain(text: str) -> None:
    """The same on the other stream; nothing in it steers the terminal, whatever a file holds."""
    from agentic_bayes.formatting import plain_text

    print(plain_text(text), file=sys.stderr)


def say_json(value: Any) -> None:
    """Strict JSON: what is undefined is null."""
    from agentic_bayes.formatting import nan_to_none

    print(json.dumps(nan_to_none(value), indent=2, allow_nan=False))


def show(*tables: Table) -> None:
    """Print tables that fit the terminal, or 80 columns of plain text off one."""
    from rich.console import Console

    from agentic_bayes.reports.terminal import print_table

    asked = os.environ.get("COLUMNS", "")
    width = None if sys.stdout.isatty() else int(asked) if asked.isdecimal() and int(asked) >= NARROWEST else WIDTH
    console = Console(highlight=False, width=width)
    for table in tables:
        print_table(console, table)


def main() -> None:
    """Run the command line; errors in the input are one message and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a sign that the terminal lacks must not end the run
    with warnings.catch_warnings():
        warnings.simplefilter("always", AgenticBayesWarning)
        warnings.showwarning = lambda message, *_: complain(f"warning: {message}")
        try:
            app()
        except AgenticBayesError as error:
            complain(f"error: {error}")
            sys.exit(2)
        except OSError as error:
            if error.filename is not None:
                complain(f"error: {error.filename}: {error.strerror}")
                sys.exit(2)
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
                raise
            print(f"stopped: {error.strerror}", file=sys.stderr)
            sys.exit(1)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            sys.exit(1)
