"""Commands on files of any kind: validate, describe, convert, show."""

from __future__ import annotations

from dataclasses import asdict
from glob import has_magic
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option, Typer

from agentic_bayes.cli import options as opt
from agentic_bayes.cli.output import say, say_json, show
from agentic_bayes.errors import InvalidArgument

commands = Typer()


@commands.command()
@opt.with_groups
def validate(
    files: Annotated[
        list[str], Argument(metavar="FILES", help=f"{opt.CONVERSATIONS}, or suites (YAML, or their folder).")
    ],
    *,
    records: opt.RecordOptions,
    to: opt.To = None,
) -> None:
    """Validate conversation files or a suite (YAML): summarise them and list every problem."""
    from agentic_bayes.errors import RecordsError
    from agentic_bayes.formatting import plural
    from agentic_bayes.records.read import SKIP
    from agentic_bayes.records.survey import survey
    from agentic_bayes.records.wire.options import ReadOptions
    from agentic_bayes.reports.record_tables import survey_lines, survey_tables
    from agentic_bayes.suites.config import conversations_beside, is_suite_file, load_suite, suites_in
    from agentic_bayes.suites.runner import check_suite

    suites, conversations, others = list[Any](), list[str](), list[str]()
    for file in files:
        folder = Path(file).is_dir()
        found = [load_suite(one) for one in (suites_in(file) if folder else [file] * is_suite_file(file))]
        suites += found
        if folder and found:
            beside, aside = conversations_beside(file, found)
            conversations += beside
            others += aside
        elif not found:
            conversations.append(file)
    for suite in suites:
        check_suite(suite, suite.tasks)
    overviews = [suite.overview() for suite in suites]
    for one in overviews if to != "json" else ():
        tasks, most = plural(one["tasks"], "task"), "at most " if one["adaptive"] else ""
        say(f"valid: suite {one['suite']}, {tasks}, trials {most}{one['trials']:,}, agent {one['agent']}")
    if others and to != "json":
        say(f"not checked, since they hold no conversations: {', '.join(others)}")
    if not conversations:
        if to == "json":
            say_json(overviews)
        return
    format: Any = records.format
    options = ReadOptions(**records.options())
    overview = survey(conversations, format=format, agent=records.agent, options=options, skip=records.skip_bad)
    if to == "json":
        say_json({"suites": overviews, "conversations": asdict(overview)} if suites else asdict(overview))
    elif len(overview.files) > 1 or not overview.n_problems:  # for one bad file, its problems are enough
        show(*survey_tables(overview), lines=survey_lines(overview), to=to)
    if overview.n_problems:
        advice = SKIP if any(problem.where for problem in overview.problems) and not records.skip_bad else ""
        raise RecordsError(overview.problems, overview.n_problems, advice)


@commands.command()
def describe(
    files: Annotated[list[str], Argument(metavar="FILE", help="Any file, or files or a folder of conversations.")],
    *,
    to: opt.To = None,
) -> None:
    """Describe a file, or a folder of logs or results, and propose the commands that read it."""
    from agentic_bayes.describe.files import describe as described

    found = described(files)
    if to == "json":
        say_json(found.to_dict())
        return
    show(*found.tables(), lines=() if to else found.lines(), to=to)
    if to is not None:
        return
    for title, lines in (("in a shell:", found.commands), ("in Python:", found.code)):
        if lines:
            say(f"\n{title}")
            print("\n".join(f"  {line}" for line in lines))  # unbroken, to be copied


@commands.command()
@opt.with_groups
def convert(
    files: opt.ConversationFiles,
    *,
    output: Path = Option(..., "-o", "--output", help="File to write: .jsonl or .json, optionally .gz."),
    records: opt.ConversationOptions,
    to: opt.ToJson = None,
) -> None:
    """Convert conversations from any supported format to the native one."""
    from agentic_bayes.checks import check_output_file
    from agentic_bayes.formatting import plural
    from agentic_bayes.records.write import write_conversations

    check_output_file(output, "--output")
    written = write_conversations(records.read(files), output)
    if to == "json":
        say_json({"conversations": written, "output": str(output)})
    else:
        say(f"{plural(written, 'conversation')} written to {output}")


@commands.command("show")
@opt.with_groups
def show_conversation(
    files: Annotated[list[str], Argument(metavar="FILES", help=f"{opt.CONVERSATIONS}, or a suite run (folder or id).")],
    *,
    session: str | None = Option(None, help="Show the conversation with this session_id."),
    task: str | None = Option(None, help="Show a trial of this task."),
    trial: int | None = Option(None, help="Show this trial of the task, by number."),
    evidence: Path | None = Option(None, help="Evidence with the scores to show (JSONL)."),
    records: opt.ConversationOptions,
    tool_rubric: opt.RubricFile = None,
    to: opt.To = None,
) -> None:
    """Show one conversation with its tool calls and scores, or a suite run; if there are several, list them."""
    from agentic_bayes.checks import no_such_file
    from agentic_bayes.evidence.evidence import Evidence
    from agentic_bayes.evidence.row import row_to_json
    from agentic_bayes.records.select import select
    from agentic_bayes.reports.record_tables import conversations_table
    from agentic_bayes.reports.transcript import transcript
    from agentic_bayes.suites.stores.run_index import find_run

    runs = [find_run(file) for file in files]
    for file, run in zip(files, runs, strict=True):
        if run is None and not Path(file).exists() and not has_magic(file):
            raise InvalidArgument(f"{no_such_file(Path(file))}, and no run has this id")
    if any(runs):
        from agentic_bayes.cli.suite import show_runs

        show_runs(files, [run for run in runs if run is not None], to)
        return
    rubric = opt.read_rubric(tool_rubric)
    scored = () if evidence is None else Evidence.read(evidence).rows
    matches = select(records.read(files), session=session, task=task, trial=trial)
    if len(matches) != 1:
        if to == "json":
            say_json([{**asdict(match), "conversation": None} for match in matches])
        elif matches:
            show(conversations_table(matches), to=to)
        return
    match = matches[0]
    rows = [row for row in scored if (row.agent, row.task, row.trial) == (match.agent, match.task, match.trial)]
    if to == "json":
        record = None if match.conversation is None else match.conversation.model_dump(mode="json", exclude_unset=True)
        say_json({**asdict(match), "conversation": record, "evidence": [row_to_json(row) for row in rows]})
    elif match.conversation is not None:
        say(transcript(match.conversation, rows, tool_rubric=rubric))
