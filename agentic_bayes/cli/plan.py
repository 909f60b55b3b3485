"""Commands about how much data you need: plan, monitor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Argument, Exit, Option, Typer

from agentic_bayes.cli import options as opt
from agentic_bayes.cli.exits import EXIT_CODES, exit_code
from agentic_bayes.cli.output import complain, say, say_json, show
from agentic_bayes.errors import InvalidArgument

if TYPE_CHECKING:
    from agentic_bayes.decisions.monitor import StoppingRule

commands = Typer()


@commands.command()
@opt.with_groups
def plan(
    file: str | None = Argument(
        None, metavar="FILE", help="Data so far: outcomes, evidence, a saved estimate or a suite run."
    ),
    *,
    agent: opt.DecidedAgent = None,
    metric: opt.MetricName = "pass^1",
    mu: float | None = Option(None, help="Without FILE, the expected success probability."),
    rho: float | None = Option(
        None, help="Without FILE, how much tasks differ, from 0 to 1 (0.36 to 0.58 on tau-bench)."
    ),
    width: float | None = Option(None, help="Goal: interval width."),
    at_least: float | None = Option(None, help="Goal: a conclusive gate at this bar."),
    difference: float | None = Option(None, help="Goal: detect a difference this large."),
    confidence: opt.VerdictConfidence = 0.95,
    power: float = Option(0.8, help="Required probability of reaching the goal."),
    shared: float | None = Option(
        None, help="For a difference, correlation of two agents' chances on a task, from 0 to 1 (default: 0.7)."
    ),
    budget: float | None = Option(None, help="Maximum cost; without a goal, find the narrowest interval it buys."),
    cost_per_trial: float = Option(1.0, help="Cost of one trial, in any currency."),
    cost_per_task: float = Option(0.0, help="Cost of one task, in the same currency."),
    trials: str | None = Option(None, help="Trials per task to consider (default: 1,2,3,4,5,8 and k)."),
    ci_prob: float | None = Option(None, help=opt.CI_PROB),
    ci_kind: str | None = Option(None, help=opt.CI_KIND),
    random_seed: opt.RandomSeed = 0,
    picture: Path | None = Option(None, help="Also plot width against cost (.png, .svg or .pdf)."),
    read: opt.EvidenceOptions,
    to: opt.To = None,
) -> None:
    """Plan how many new tasks to run, and how many trials of each, by simulation."""
    from agentic_bayes.checks import check_choice, check_output_file
    from agentic_bayes.decisions.plan import plan as make_plan
    from agentic_bayes.evidence.progress import ProgressBar
    from agentic_bayes.formatting import Metric
    from agentic_bayes.suites.inputs import read_estimate

    if picture is not None:
        check_output_file(picture, "--picture", source=file)
        check_choice("kind of picture", picture.suffix.lower(), (".png", ".svg", ".pdf"))
    _check_has_file(file, agent, read)
    settings = opt.given(ci_prob=ci_prob, ci_kind=ci_kind)
    goals = opt.given(mu=mu, rho=rho, budget=budget, width=width, at_least=at_least, difference=difference)
    goals |= opt.given(shared=shared)
    costs = {"cost_per_trial": cost_per_trial, "cost_per_task": cost_per_task}
    question = {"metric": Metric(metric), "trials": None if trials is None else opt.parse_ks(trials, "--trials")}
    options: dict[str, Any] = goals | costs | question
    est = None
    if file is None:
        options |= settings
    else:
        est = read_estimate(file, settings=settings, agents=[agent], choose="--agent", **read.reading())
        if est.settings.judge is not None:
            complain("note: the plan takes the judge's verdicts as right, so you will need more tasks than it says")
            est = est.uncorrected
    with ProgressBar("simulating") as progress:
        best = make_plan(
            est, agent, confidence=confidence, power=power, random_seed=random_seed, progress=progress, **options
        )
    if picture is not None:
        from agentic_bayes.reports.plots.save import save_plan_picture

        save_plan_picture(best, picture)
    if to == "json":
        say_json(best.to_dict())
    elif best.designs:
        show(best.table(), to=to)
    else:
        say(str(best))


@commands.command(epilog=EXIT_CODES)
@opt.with_groups
def monitor(
    file: str | None = Argument(None, metavar="FILE", help="All data so far; without FILE, the rule is only created."),
    *,
    rule: Path | None = Option(None, help="Rule file; created if it does not exist."),
    agent: opt.DecidedAgent = None,
    metric: str | None = Option(None, help="Metric, for example pass^3 or pass@1 (default: pass^1)."),
    at_least: float | None = Option(None, help="Stop when a gate at this bar passes or fails."),
    width: float | None = Option(None, help="Stop when the interval is at most this wide."),
    batch: int | None = Option(None, help="New tasks before each look (default: 20)."),
    trials: int | None = Option(None, help="Trials per task (default: 3)."),
    looks: int | None = Option(None, help="Maximum number of looks (default: 10)."),
    rho: float | None = Option(None, help="How much tasks differ, from 0 to 1 (default: 0.45)."),
    mu: float | None = Option(
        None, help="With --width alone, the success probability to simulate with (default: 0.7)."
    ),
    false_winners: float | None = Option(
        None, help="Accepted probability that an agent below the bar passes (default: 0.05)."
    ),
    random_seed: int | None = Option(None, help=opt.SEED_0),
    read: opt.EvidenceOptions,
    to: opt.To = None,
) -> None:
    """Check after each batch and stop when there is enough data; prints the rule's error rates first.

    Exits with 11 while more data are needed, or if the last look gives no verdict on the bar.
    """
    from agentic_bayes.suites.inputs import read_estimate

    _check_has_file(file, agent, read)
    chosen = opt.given(at_least=at_least, width=width, batch=batch, trials=trials, looks=looks, rho=rho, mu=mu)
    chosen |= opt.given(metric=metric, false_winners=false_winners, random_seed=random_seed)
    stopping, look = _stopping_rule(rule, chosen), None
    if file is not None:
        est = read_estimate(
            file, settings={"method": "frequentist"}, agents=[agent], choose="--agent", **read.reading()
        )
        look = stopping.look(est, agent)
    if to == "json":
        say_json({"rule": stopping.to_dict(), "look": None if look is None else look.to_dict()})
    elif to is not None:
        show(stopping.table(), *([] if look is None else [look.table()]), to=to)
    else:
        say(str(stopping) if look is None else f"{stopping}\n\n{look}")
    if look is not None:
        # an interval that is narrow enough does not decide on the bar
        undecided = look.verdict == "narrow enough" and stopping.at_least is not None
        raise Exit(exit_code("inconclusive" if undecided else look.verdict))


def _stopping_rule(path: Path | None, chosen: dict[str, Any]) -> StoppingRule:
    """The rule in a file; a new one, kept there, if there is no such file."""
    from agentic_bayes.checks import check_output_file
    from agentic_bayes.decisions.monitor import StoppingRule
    from agentic_bayes.decisions.monitor import monitor as make_rule
    from agentic_bayes.evidence.progress import ProgressBar

    if path is not None and path.exists():
        stopping = StoppingRule.load(path)
        if chosen:
            raise InvalidArgument(f"{path} is a rule in use: {', '.join(chosen)} cannot be changed now")
        return stopping
    if path is not None:
        check_output_file(path, "--rule")
    with ProgressBar("simulating") as progress:
        stopping = make_rule(**chosen, progress=progress)
    if path is not None:
        stopping.save(path)
    return stopping


def _check_has_file(file: str | None, agent: str | None, read: opt.EvidenceOptions) -> None:
    if file is None and (agent or read.columns or read.wide or read.counting() or read.scoring()):
        raise InvalidArgument(
            "--agent, --columns, --wide and the options for evidence apply to FILE, and no FILE was given"
        )
