"""The command line: arguments → calls → files.

Exit codes: 0 ok, 2 usage or bad input, 1 crash or stopped early.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic_bayes.errors import AgenticBayesError, AgenticBayesWarning, InvalidArgument, check_choice

if TYPE_CHECKING:
    from agentic_bayes.estimation.estimate import Estimate
    from agentic_bayes.evidence.evidence import Evidence
    from agentic_bayes.reports.tables import Table

__all__ = ["app", "main"]

app = typer.Typer(
    help="How reliable is an AI agent, and is the new version better? pass@k and pass^k with credible intervals.",
    epilog="Exit codes: 0 ok, 2 usage or bad input, 1 crash or stopped early.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Files = Annotated[list[str], typer.Argument(help="Conversation files, folders or globs (JSON, JSONL, .gz).")]
Input = Annotated[str, typer.Argument(help="Outcomes (CSV/TSV), evidence (JSONL) or a saved estimate (.nc).")]
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


@app.command()
def validate(files: Files) -> None:
    """Check conversation files and say what is in them; every problem is reported."""
    from agentic_bayes.records.identity import TaskIndex
    from agentic_bayes.records.read import read_conversations

    index, agents, turns, crashed = TaskIndex(), set(), 0, 0
    for conversation in read_conversations(files):
        index.add(conversation)
        agents.add(conversation.assistant_id)
        turns += len(conversation.conversation)
        crashed += any(conversation.error_at(i) is not None for i in range(len(conversation.conversation)))
    identities = index.resolve()
    from agentic_bayes.formatting import plural

    say(
        f"valid: {plural(len(identities), 'conversation')}, {plural(turns, 'interaction')}, "
        f"{plural(len(agents), 'agent')} ({', '.join(sorted(agents))}), "
        f"{plural(len({identity.task for identity in identities}), 'task')}, {crashed} with an agent error"
    )


@app.command()
def assess(
    files: Files,
    output: Annotated[Path, typer.Option("-o", "--output", help="Evidence file to write (.jsonl or .jsonl.gz).")],
    concurrency: Annotated[int, typer.Option(help="Judgements at a time.")] = 8,
) -> None:
    """Judge every answer against its reference (offline) and score the tool calls; write the evidence."""
    _check_evidence_file(output)
    evidence = _assess(files, concurrency=concurrency)
    evidence.write(output)
    show(_tables().evidence_table(evidence))
    say(f"evidence written to {output}")
    if evidence.stopped:
        raise typer.Exit(1)


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
    columns: Columns = None,
    unit: Unit = None,
    indicator: Indicator = None,
    threshold: Threshold = None,
    tool_threshold: ToolThreshold = None,
    agents: Agents = None,
    errors: Errors = None,
    output: Out = None,
    as_json: AsJson = False,
) -> None:
    """Estimate pass@k and pass^k with intervals, beside the frequentist baseline."""
    _check_folder(output)
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
    )
    if output is not None:
        write_results(est, output)
    if as_json:
        say_json({"summary": _records(est.summary()), "baseline": _records(est.baseline())})
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
    baseline: Annotated[str | None, typer.Option(help="The agent to compare with; with two files, of file A.")] = None,
    metric: Annotated[str, typer.Option(help="Such as pass^3 or pass@1.")] = "pass^1",
    estimand: Annotated[str, typer.Option(help="population (new tasks) or tasks (these tasks).")] = "population",
    rope: Annotated[float, typer.Option(help="Differences within ± this do not matter.")] = 0.02,
    pairing: Annotated[str, typer.Option(help="auto or tasks (on shared tasks), or none.")] = "auto",
    method: Annotated[
        str | None, typer.Option(help="hierarchical, crossed, conjugate or auto.", show_default="hierarchical")
    ] = None,
    ci_prob: Annotated[float | None, typer.Option(help="Probability of the interval.", show_default="0.95")] = None,
    ci_kind: Annotated[str | None, typer.Option(help="eti or hdi.", show_default="eti")] = None,
    random_seed: Annotated[int | None, typer.Option(help="Same seed, same numbers.", show_default="0")] = None,
    columns: Columns = None,
    unit: Unit = None,
    indicator: Indicator = None,
    threshold: Threshold = None,
    tool_threshold: ToolThreshold = None,
    errors: Errors = None,
    as_json: AsJson = False,
) -> None:
    """Compare two agents: the difference, its interval and the probability of superiority."""
    from dataclasses import asdict

    from agentic_bayes.decisions.compare import compare as compare_agents
    from agentic_bayes.formatting import parse_metric
    from agentic_bayes.numerics import check_probability

    name, power = parse_metric(metric)
    check_probability(rope, "rope")
    for option, value, allowed in (
        ("estimand", estimand, ("population", "tasks")),
        ("pairing", pairing, ("auto", "tasks", "none")),
    ):
        check_choice(option, value, allowed)
    counting = _counting(unit, indicator, threshold, tool_threshold, None, errors)
    settings = _given(method=method, ci_prob=ci_prob, ci_kind=ci_kind, random_seed=random_seed)
    est, agent, baseline = _two_agents(files, agent, baseline, columns, counting, settings)
    chosen: dict[str, Any] = {"metric": name, "k": power or 1, "estimand": estimand, "rope": rope, "pairing": pairing}
    result = compare_agents(est, agent, baseline=baseline, **chosen)
    if as_json:
        say_json({"verdict": result.verdict, **asdict(result)})
    else:
        say(str(result))


@app.command()
def demo(output: Out = None, random_seed: Seed = 0) -> None:
    """Two versions of an example agent, offline: judged, scored, estimated, compared."""
    from agentic_bayes.decisions.compare import compare as compare_agents
    from agentic_bayes.decisions.tiers import classify
    from agentic_bayes.estimation.estimate import estimate as fit
    from agentic_bayes.outcomes import count_outcomes
    from agentic_bayes.reports.plots import save_pictures

    _check_folder(output)
    folder = example_folder()
    say(f"1. Conversations of two versions of a support agent, judged offline ({folder.name})")
    evidence = _assess([str(folder / "v1.jsonl"), str(folder / "v2.jsonl")])
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
        write_results(est, output)
        evidence.write(output / "evidence.jsonl")
        save_pictures(est, evidence, output)
        say(f"\nresults and pictures written to {output}")


def example_folder() -> Path:
    """Where the example conversations are: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent
    for folder in (package / "_examples" / "support_agent", package.parent / "examples" / "support_agent"):
        if folder.is_dir():
            return folder
    raise InvalidArgument("the example conversations are not installed with this package")


def _tables() -> Any:
    from agentic_bayes.reports import tables

    return tables


def _assess(files: list[str], *, concurrency: int = 8) -> Evidence:
    from agentic_bayes.evidence.assess import assess as judge_all
    from agentic_bayes.evidence.reference import ReferenceJudge
    from agentic_bayes.records.read import read_conversations

    conversations = read_conversations(files)
    with _progress() as progress:
        return judge_all(conversations, judge=ReferenceJudge(), concurrency=concurrency, progress=progress)


@contextmanager
def _progress() -> Iterator[Callable[[int, int | None], None] | None]:
    """A progress bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("judging", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _ks(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InvalidArgument(f'--k must be whole numbers ≥ 1 such as "1,3,5", got {text!r}') from None


def _columns(text: str | None) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",")] if text else []
    allowed = ("agent", "task", "trial", "correct", "successes", "trials")
    for name, sign, column in pairs:
        if name.strip() not in allowed or not sign or not column.strip():
            raise InvalidArgument(f"--columns must be like agent=model,task=id with names of {allowed}, got {text!r}")
    return {name.strip(): column.strip() for name, _, column in pairs}


def _counting(*values: Any) -> dict[str, Any]:
    """The options for evidence that were given."""
    names = ("unit", "indicator", "threshold", "tool_threshold", "agents", "errors")
    return _given(**dict(zip(names, values, strict=True)))


def _given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def _estimate(file: str, columns: str | None, counting: dict[str, Any], **settings: Any) -> Estimate:
    from agentic_bayes.estimation.estimate import estimate as fit
    from agentic_bayes.inputs import read_outcomes

    return fit(read_outcomes(file, columns=_columns(columns), counting=counting), **settings)


def _two_agents(
    files: list[str],
    agent: str | None,
    baseline: str | None,
    columns: str | None,
    counting: dict[str, Any],
    settings: dict[str, Any],
) -> tuple[Estimate, str, str]:
    """An estimate that holds both agents, and their names in it."""
    from agentic_bayes.estimation.estimate import Estimate
    from agentic_bayes.estimation.estimate import estimate as fit
    from agentic_bayes.inputs import open_input, read_outcomes
    from agentic_bayes.outcomes import combine_outcomes

    match files:
        case [single]:
            if agent is None or baseline is None:
                raise InvalidArgument("with one file, say --agent NEW and --baseline OLD")
            outcomes = read_outcomes(single, columns=_columns(columns), counting=counting)
            for wanted in (agent, baseline):
                _one_agent(outcomes, wanted, single)
            opened = open_input(single)
            if isinstance(opened, Estimate) and not settings:
                return opened, agent, baseline
            return fit(outcomes, **settings), agent, baseline
        case [old, new]:
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


def _one_agent(outcomes: Any, name: str | None, file: str) -> Any:
    agents = [str(label) for label in outcomes["agent"].values]
    if name is None:
        if len(agents) > 1:
            raise InvalidArgument(f"{file} holds {len(agents)} agents: say --agent or --baseline, one of {agents}")
        return outcomes
    check_choice("agent", name, agents)
    return outcomes.isel(agent=[agents.index(name)])


def _check_folder(output: Path | None) -> None:
    """Refuse a place for results that cannot be a folder, before any work is done."""
    if output is None:
        return
    if output.exists() and not output.is_dir():
        raise InvalidArgument(f"--output must be a folder, {output} is a file")
    _check_writable(next(place for place in (output, *output.absolute().parents) if place.exists()))


def _check_evidence_file(output: Path) -> None:
    """Refuse a place where evidence cannot be written, or must not be, before any work is done."""
    from agentic_bayes.inputs import holds_conversations

    if not output.parent.is_dir() or (output.exists() and not output.is_file()):
        raise InvalidArgument(f"--output must be a file in a folder that exists, got {output}")
    _check_writable(output.parent)
    if output.exists() and holds_conversations(output):
        raise InvalidArgument(f"--output must not be a file of conversations, which {output} is")


def _check_writable(folder: Path) -> None:
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidArgument(f"--output must be in a folder that can be written to, {folder} cannot")


def write_results(est: Estimate, folder: Path) -> None:
    """summary.csv, baseline.csv and estimate.nc."""
    folder.mkdir(parents=True, exist_ok=True)
    est.summary().to_csv(folder / "summary.csv", index=False)
    est.baseline(tasks=True).to_csv(folder / "baseline.csv", index=False)
    est.save(folder / "estimate.nc")


def say(text: str) -> None:
    """Plain text, in lines that fit 80 columns."""
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        print(fill(line, 80, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))


def say_json(value: Any) -> None:
    """Strict JSON: what is undefined is null."""
    print(json.dumps(value, indent=2, allow_nan=False))


def _records(frame: Any) -> list[dict[str, Any]]:
    return [
        {key: None if isinstance(value, float) and value != value else value for key, value in row.items()}
        for row in frame.to_dict("records")
    ]


WIDEST_NAME = 24  # of a first column that is kept on one line


def show(*tables: Table) -> None:
    """Print tables that fit 80 columns; plain text off a terminal."""
    from rich import box
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 80)
    for table in tables:
        rich = RichTable(title=Text(table.title, "bold"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for i, name in enumerate(table.header):
            # a long name may take two lines, a number is never cut
            short = i > 0 or max(len(row[0]) for row in table.rows) <= WIDEST_NAME
            rich.add_column(name, justify="left" if i == 0 else "right", no_wrap=short, overflow="fold")
        for row in table.rows:
            rich.add_row(*map(Text, row))
        console.print(rich)
        for note in table.notes:
            console.print(Padding(Text(note), (0, 0, 0, 2)))
        console.print()


def main() -> None:
    """Run the command line; errors in the input are one message and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a sign that the terminal lacks must not end the run
    with warnings.catch_warnings():
        warnings.simplefilter("always", AgenticBayesWarning)
        warnings.showwarning = lambda message, *_: print(f"warning: {message}", file=sys.stderr)
        try:
            app()
        except AgenticBayesError as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(2)
        except OSError as error:
            if error.filename is not None:
                print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
                sys.exit(2)
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
                raise
            print(f"stopped: {error.strerror}", file=sys.stderr)
            sys.exit(1)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            sys.exit(1)
