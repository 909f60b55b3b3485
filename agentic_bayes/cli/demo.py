"""The command demo: the whole way from conversations to a verdict, offline."""

from __future__ import annotations

from typer import Typer

from agentic_bayes.cli.options import ConversationOptions, OutputFolder, RandomSeed
from agentic_bayes.cli.output import say, show

commands = Typer()


@commands.command()
def demo(output: OutputFolder = None, random_seed: RandomSeed = 0) -> None:
    """Judge, score, estimate and compare two versions of an example agent, offline."""
    from agentic_bayes.checks import check_output_folder
    from agentic_bayes.cli.assess import judge_all
    from agentic_bayes.cli.estimate import command_line
    from agentic_bayes.decisions.compare import compare
    from agentic_bayes.decisions.tiers import classify
    from agentic_bayes.estimation.estimate import estimate
    from agentic_bayes.evidence.reference.judge import ReferenceJudge
    from agentic_bayes.outcomes.count import count_outcomes
    from agentic_bayes.reports.html.page import write_report
    from agentic_bayes.reports.plots.save import save_pictures
    from agentic_bayes.reports.results_folder import write_results
    from agentic_bayes.reports.tables import estimate_tables
    from agentic_bayes.suites.examples import example_folder

    if output is not None:
        check_output_folder(output, "--output")
    folder = example_folder("support_agent")
    say(f"1. Conversations of two versions of a support agent, judged offline ({folder.name})")
    files = [str(folder / "v1.jsonl"), str(folder / "v2.jsonl")]
    evidence = judge_all(ConversationOptions().read(files), judge=ReferenceJudge())
    show(evidence.table())
    outcomes = count_outcomes(evidence)
    usual = estimate(outcomes, random_seed=random_seed)
    model = f"the {usual.method.name} Beta-Binomial model in PyMC"
    say(f"2. Reliability: {model} (the first fit takes half a minute to compile)")
    est = estimate(outcomes, usual.method, engine="pymc", random_seed=random_seed)
    show(*estimate_tables(est))
    say(f"{est.diagnostics}")
    gap = float((usual.summary()["mean"] - est.summary()["mean"]).abs().max())
    say(f"The default engine gives the same means to within {gap:.3f}, in a tenth of a second and without compiling.")
    say("\n3. Is the new version better?")
    old, new = est.agents
    for metric in ("pass^1", "pass^3"):
        say(f"   {compare(est, new, baseline=old, metric=metric)}")
    say("\n4. Deployment tiers, with probabilities")
    for agent in est.agents:
        say(f"   {agent}: {classify(est, agent)}")
    if output is None:
        return
    output.mkdir(parents=True, exist_ok=True)
    pictures = save_pictures(est, evidence, output)
    report = output / "report.html"
    source = str(output / "evidence.jsonl")
    write_report(est, report, evidence=evidence, conversations=ConversationOptions().read(files), source=source)
    write_results(est, output, evidence=evidence, command=command_line(), also=[*pictures, report.name])
    say(f"\nresults and pictures written to {output}")
    say(f"the report for a colleague: {report}")
