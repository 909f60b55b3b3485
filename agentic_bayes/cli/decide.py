"""Commands that decide: compare, rank, gate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option, Typer

from agentic_bayes.cli import options as opt
from agentic_bayes.cli.exits import EXIT_CODES, exit_code
from agentic_bayes.cli.output import answer, say_json, show
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.formatting import first_few, one_line

if TYPE_CHECKING:
    from agentic_bayes.estimation.estimate import Estimate

MOST_NAMED = 20  # agents of a file that an error lists
MOST_PAIRED = 8  # agents whose pairs fit on a terminal of 80 columns
commands = Typer()


@commands.command()
@opt.with_groups
def compare(
    files: Annotated[
        list[str],
        Argument(metavar="FILES", help="One file with both agents, or two: the baseline's, then the new agent's."),
    ],
    *,
    agent: str | None = Option(None, help="The new agent (in the second file, if there are two)."),
    baseline: str | None = Option(
        None, help="The agent to compare with (in the first file, if there are two), or a number."
    ),
    ask: opt.QuestionOptions,
    rope: str = Option(
        "0.02", help="Differences too small to matter: a half-width, or LOW,HIGH.", metavar="NUMBER[,NUMBER]"
    ),
    tasks: opt.TaskSetsOption = "shared",
    fit: opt.FitOptions,
    read: opt.OutcomeOptions,
    to: opt.To = None,
) -> None:
    """Compare two agents, or an agent with a number: is the new one better, and by how much?"""
    from agentic_bayes.checks import check_choice, check_rope
    from agentic_bayes.decisions.compare import compare as compare_agents

    question, margin = ask.checked(), check_rope(opt.parse_rope(rope))
    check_choice("tasks", tasks, ("shared", "own"))
    est, new, other = _two_agents(files, agent, baseline, fit, read)
    comparison = compare_agents(est, new, baseline=other, rope=margin, tasks=tasks, **question)  # type: ignore[arg-type]
    answer(comparison, f"{comparison}\n", to, est=est)
    if to is None:
        show(comparison.table())


def _two_agents(
    files: list[str], agent: str | None, baseline: str | None, fit: opt.FitOptions, read: opt.OutcomeOptions
) -> tuple[Estimate, str, str | float]:
    """An estimate that holds both agents, and their names in it; the baseline may be a number."""
    from agentic_bayes.estimation.estimate import estimate
    from agentic_bayes.suites.inputs import combine_two, read_estimate, read_outcomes

    match files:
        case [file]:
            number = opt.parse_number(baseline)
            if baseline is None or (agent is None and number is None):
                names = list(map(one_line, read_outcomes(file, **read.reading(fit))["agent"].values.tolist()))
                choose = "with one file, choose the agents with --agent NEW and --baseline OLD"
                raise InvalidArgument(f"{choose}: {file} has {first_few(names, MOST_NAMED)}")
            asked = [agent, baseline if number is None else None]
            est = read_estimate(file, settings=fit.settings(), agents=asked, choose="--agent", **read.reading(fit))
            # an agent may be called 0.7
            other = baseline if number is None or baseline in est.agents else number
            return est, est.agents[est.agent_index(agent)], other
        case [old, new]:
            outcomes, first, second = combine_two(old, new, baseline=baseline, agent=agent, **read.reading(fit))
            return estimate(outcomes, **fit.settings()), second, first
        case _:
            raise InvalidArgument(f"compare takes one or two files, got {len(files)}")


@commands.command()
@opt.with_groups
def rank(
    file: opt.InputFile,
    *,
    ask: opt.QuestionOptions,
    tasks: opt.TaskSetsOption = "shared",
    fit: opt.FitOptions,
    read: opt.OutcomeOptions,
    to: opt.To = None,
) -> None:
    """Rank agents by expected rank, with the probability of being best and pairwise comparisons."""
    from agentic_bayes.checks import check_choice
    from agentic_bayes.decisions.rank import rank as rank_agents
    from agentic_bayes.reports.tables import superiority_table
    from agentic_bayes.suites.inputs import read_estimate

    question = ask.checked()
    check_choice("tasks", tasks, ("shared", "own"))
    est = read_estimate(file, settings=fit.settings(), **read.reading(fit))
    ranking = rank_agents(est, tasks=tasks, **question)  # type: ignore[arg-type]
    if to == "json":
        say_json(ranking.to_dict() | {"superiority": ranking.superiority().to_dict("index")})
    else:
        show(ranking.table(), superiority_table(ranking, MOST_PAIRED), to=to, est=est)


@commands.command(epilog=EXIT_CODES)
@opt.with_groups
def gate(
    file: opt.InputFile,
    *,
    at_least: float = Option(..., help="Minimum value of the metric, from 0 to 1."),
    agent: opt.DecidedAgent = None,
    ask: opt.QuestionOptions,
    confidence: opt.VerdictConfidence = 0.95,
    baseline: str | None = Option(None, help="Also require that the metric is not below this agent's."),
    margin: float = Option(0.0, help="How far below the baseline the metric may fall."),
    tasks: opt.TaskSetsOption = "shared",
    max_missing: float = Option(
        0.02, help="Share of missing trials above which the gate is inconclusive if they could change it."
    ),
    inconclusive_is: str = Option(
        "inconclusive", help="How an inconclusive gate exits: inconclusive (11), fail (10) or pass (0)."
    ),
    junit: Path | None = Option(None, help="Also write JUnit XML to this file."),
    split: opt.SplitColumns = None,
    executor: opt.ExecutorName = None,
    fit: opt.FitOptions,
    read: opt.EvidenceOptions,
    to: opt.To = None,
) -> None:
    """Decide whether an agent is good enough to ship: pass, fail or inconclusive.

    The exit code gives the verdict, for use in CI.
    """
    from agentic_bayes.checks import check_choice, check_output_file, check_probability
    from agentic_bayes.decisions.gate import check_confidence
    from agentic_bayes.decisions.gate import gate as judge_agent
    from agentic_bayes.reports.junit import junit_xml
    from agentic_bayes.suites.inputs import read_estimate
    from agentic_bayes.whole_files import replacing

    question = ask.checked()
    check_probability(at_least, "at_least")
    check_probability(margin, "margin")
    check_probability(max_missing, "max_missing")
    check_confidence(confidence)
    check_choice("tasks", tasks, ("shared", "own"))
    check_choice("inconclusive_is", inconclusive_is, ("inconclusive", "fail", "pass"))
    if junit is not None:
        check_output_file(junit, "--junit", source=file)
    bars: dict[str, Any] = {"at_least": at_least, "confidence": confidence, "margin": margin, "tasks": tasks}
    bars |= {"baseline": baseline, "max_missing": max_missing, **question}
    if split is not None or executor is not None:
        from agentic_bayes.cli.estimate import estimate_groups, refuse_with_split

        refuse_with_split(split, {"--executor": executor}, {"--junit": junit, "--judge-labels": fit.judge_labels})
        many = estimate_groups(file, split or "", executor, read.reading(fit), **fit.settings())
        gates = judge_agent(many, agent, **bars)
        code = exit_code(inconclusive_is if gates.verdict == "inconclusive" else gates.verdict)
        answer(gates, "", to, exit_code=code) if to == "json" else show(gates.table(), to=to)
        raise Exit(code)
    est = read_estimate(file, settings=fit.settings(), agents=[agent, baseline], choose="--agent", **read.reading(fit))
    result = judge_agent(est, agent, **bars)
    code = exit_code(inconclusive_is if result.verdict == "inconclusive" else result.verdict)
    if junit is not None:
        with replacing(str(junit)) as stream:
            stream.write(junit_xml(result, excused=inconclusive_is == "pass").encode())
    answer(result, str(result), to, est=est, exit_code=code)
    raise Exit(code)
