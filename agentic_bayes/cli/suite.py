"""Commands on suites: run, list, init."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Argument, Exit, Option, Typer

from agentic_bayes.cli.exits import EXIT_CODES, STOPPED, exit_code
from agentic_bayes.cli.options import ExecutorName, Ks, To, ToJson, parse_ks
from agentic_bayes.cli.output import OutputFormat, complain, printing_without, say, say_json, show
from agentic_bayes.errors import ExecutorError

if TYPE_CHECKING:
    from agentic_bayes.decisions.bars import Ruling
    from agentic_bayes.estimation.estimate import Estimate
    from agentic_bayes.suites.results import RunResults

commands = Typer()


@commands.command(epilog=EXIT_CODES)
def run(
    config: Path = Option(Path("eval.yaml"), "-c", "--config", help="Suite file (YAML)."),
    k: Ks = "1,3,5",
    tags: str | None = Option(None, help="Run only tasks with at least one of these tags, comma-separated."),
    exclude_tags: str | None = Option(None, help="Skip tasks with any of these tags, comma-separated."),
    limit: int | None = Option(None, help="Run only the first N tasks.", min=1),
    jobs: int | None = Option(
        None,
        "-j",
        "--jobs",
        help="Number of trials to run in parallel (default: the suite's, or one per worker).",
        min=1,
    ),
    resume: str | None = Option(None, help="Run to resume (default: the latest unfinished one)."),
    new: bool = Option(False, "--new", help="Start a new run even if one is unfinished."),
    fail_under: float | None = Option(
        None, help="Exit with 10 if the pass rate is below this, 11 if that is undecided."
    ),
    gate: str | None = Option(None, help='Exit with 10 if this gate fails, 11 if inconclusive: "pass^3>=0.7@0.95".'),
    errors: str = Option("unscored", help="Count errored trials as unscored, or as fail."),
    by: str | None = Option(None, help="Field of the tasks' metadata that groups them, to estimate each group."),
    executor: ExecutorName = None,
    dry_run: bool = Option(False, "--dry-run", help="Show what would run, without running it."),
    output: Path | None = Option(None, "-o", "--output", help="Folder for the runs (default: the suite's)."),
    to: To = None,
) -> None:
    """Run and grade a suite (agent × tasks × trials), or resume its unfinished run."""
    import asyncio

    from agentic_bayes.checks import check_choice, check_probability
    from agentic_bayes.decisions.bars import GateBar
    from agentic_bayes.formatting import plural
    from agentic_bayes.suites.config import load_suite
    from agentic_bayes.suites.results import RunResults
    from agentic_bayes.suites.runner import (
        check_groups,
        check_suite,
        check_suite_executor,
        plan_run,
        run_suite,
        select_tasks,
    )

    ks = parse_ks(k)
    check_choice("errors", errors, ("unscored", "fail"))
    bar = None if gate is None else GateBar.parse(gate)
    if fail_under is not None:
        check_probability(fail_under, "fail_under")
    suite = load_suite(config)
    with printing_without(suite.secrets):
        tasks = select_tasks(suite, tags=_parts(tags), exclude_tags=_parts(exclude_tags), limit=limit)
        if to is None and suite.config.output.format == "json":
            to = "json"
        check_groups(tasks, by)
        check_suite_executor(suite, executor)
        planned = plan_run(suite, tasks, output=output, resume=resume, new=new)
        check_suite(suite, tasks)
        work = f"{plural(len(tasks), 'task')}, {plural(planned.total, 'trial')}, {len(planned.pending):,} to run"
        if planned.budget is not None:
            work += f", then more where they are most informative, at most {planned.budget:,}"
        if dry_run and to == "json":
            say_json(
                {"run_id": planned.id, "continued": planned.continued, "tasks": len(tasks), "trials": planned.total}
            )
            return
        if dry_run:
            say(f"{'would resume' if planned.continued else 'would start'} run {planned.id}: {work}")
            return
        if to is None:
            say(f"{'resuming' if planned.continued else 'starting'} run {planned.id}: {work}")
        stopped = False
        try:
            # what the agent prints must not get into output that a program reads
            quiet = contextlib.nullcontext() if to is None else contextlib.redirect_stdout(sys.stderr)
            with quiet, _trial_progress() as progress:
                asyncio.run(run_suite(planned, executor=executor, concurrency=jobs, progress=progress))
        except KeyboardInterrupt:
            stopped = True
        except ExecutorError as error:
            if not planned.folder.is_dir():
                raise
            complain(f"error: {error}")
            stopped = True
        whole = RunResults.of(planned.folder, errors=errors, by=by)  # type: ignore[arg-type]
        est = whole.write(ks)
        report = None
        if suite.config.output.format in ("html", "all") and est is not None:
            from agentic_bayes.suites.report import write_run_report

            report = write_run_report(whole, whole.folder / "report.html", est=est)
        results = whole.only(task.id for task in tasks)  # decide on the tasks that were asked for
        if results.trials != whole.trials:
            est = results.estimate(ks) if results.decided else None
        code = show_run(results, est, results.rule(fail_under, bar), to=to)
        if report is not None and to is None:
            say(f"report: {report}")
        if stopped:
            complain(f"stopped: {plural(results.pending, 'trial')} left; the same command resumes the run")
            code = STOPPED
        if code:
            raise Exit(code)


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
            decided = counts["pass"] + counts["fail"]
            low, high = (float(end) for end in wilson_interval(counts["pass"], decided))
            rate = f"{counts['pass'] / decided:.2f} [{low:.2f}, {high:.2f}]" if decided else "–"
            bar.update(line, completed=done, total=total, description=f"pass {rate}, errors {counts['error']}")

        yield progress


def show_run(
    results: RunResults,
    est: Estimate | None,
    rulings: tuple[Ruling, ...] = (),
    *,
    to: OutputFormat | None = None,
) -> int:
    """Print a run and the rulings on it; the exit code of the worst."""
    from agentic_bayes.reports.suite_tables import run_lines, run_tables
    from agentic_bayes.reports.tables import estimate_tables, group_tables

    summary = results.summary(est)
    code = exit_code(*(ruling.verdict for ruling in rulings))
    if to == "json":
        say_json({**summary, "exit_code": code})
        return code
    show(*run_tables(summary), *((*estimate_tables(est), *group_tables(est)) if est is not None else ()), to=to)
    if to is None:
        say("\n".join([*run_lines(summary, results.folder), *(ruling.sentence for ruling in rulings)]))
    return code


def show_runs(names: Sequence[str], folders: Sequence[Path], to: OutputFormat | None = None) -> None:
    """Print a run, or a line of each of several."""
    from agentic_bayes.errors import InvalidArgument
    from agentic_bayes.reports.suite_tables import runs_table
    from agentic_bayes.suites.results import RunResults

    if len(names) > len(folders):
        raise InvalidArgument(f"{len(folders)} of the {len(names)} names are runs of suites: show runs by themselves")
    runs = [RunResults.of(folder) for folder in folders]
    if len(runs) == 1:
        show_run(runs[0], runs[0].estimate() if runs[0].decided else None, runs[0].rule(), to=to)
        return
    counts = [{**run.counts(), "folder": str(run.folder)} for run in runs]
    if to == "json":
        say_json(counts)
        return
    show(runs_table(counts), to=to)
    if to is None:
        say(f"show one for its tasks and estimates: agentic-bayes show {runs[0].folder.name}")


@commands.command("list")
def list_runs(
    folder: Path = Argument(Path("results"), metavar="FOLDER", help="Folder of the runs."), to: To = None
) -> None:
    """List the runs in a folder, latest first."""
    from agentic_bayes.reports.suite_tables import runs_table
    from agentic_bayes.suites.results import runs_in

    counts = [run.counts() for run in runs_in(folder)]
    if to == "json":
        say_json(counts)
    else:
        show(runs_table(counts), to=to)


@commands.command()
def init(
    folder: Path = Argument(Path(), metavar="FOLDER", help="Folder for the example suite."), to: ToJson = None
) -> None:
    """Write an example suite that runs offline, with a JSON schema for your editor."""
    from agentic_bayes.suites.examples import write_example_suite

    written = write_example_suite(folder)
    if to == "json":
        say_json({"written": [str(path) for path in written]})
        return
    for path in written:
        say(f"wrote {path}")
    say(f"try: agentic-bayes run -c {folder / 'eval.yaml'}")
    say("then put your agent in agent.py, your tasks in tasks/sums.yaml and your graders in eval.yaml")
