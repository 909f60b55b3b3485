"""The command estimate: outcomes → pass@k and pass^k with intervals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Option, Typer

from agentic_bayes.cli import options as opt
from agentic_bayes.cli.output import answer, complain, say_json, show
from agentic_bayes.errors import InvalidArgument

if TYPE_CHECKING:
    from agentic_bayes.estimation.estimate import Estimate
    from agentic_bayes.estimation.many.estimates import ManyEstimates

commands = Typer()


@commands.command()
@opt.with_groups
def estimate(
    file: opt.InputFile,
    *,
    k: opt.Ks = "1,3,5",
    fit: opt.FitOptions,
    inflate: bool = Option(
        False, "--inflate", help="Add point masses for tasks that always or never pass (hierarchical only)."
    ),
    engine: str = Option("auto", help="Engine: auto, quadrature (exact), importance (crossed only) or pymc (NUTS)."),
    read: opt.EvidenceOptions,
    output: opt.OutputFolder = None,
    pictures: bool = Option(False, "--pictures", help="Also write plots to the -o folder."),
    split: opt.SplitColumns = None,
    executor: opt.ExecutorName = None,
    to: opt.To = None,
) -> None:
    """Estimate pass@k and pass^k with intervals, next to the frequentist baseline."""
    from agentic_bayes.checks import check_output_folder
    from agentic_bayes.estimation.estimate import estimate as fit_model
    from agentic_bayes.reports.tables import estimate_tables, group_tables
    from agentic_bayes.suites.inputs import read_outcomes

    if output is not None:
        check_output_folder(output, "--output")
    if pictures and output is None:
        raise InvalidArgument("--pictures needs a folder: give -o DIR")
    settings = fit.settings() | ({"method": _inflated(fit.method)} if inflate else {})
    if split is not None or executor is not None:
        refuse_with_split(split, {"--executor": executor}, {"--output": output, "--judge-labels": fit.judge_labels})
        many = estimate_groups(
            file, split or "", executor, read.reading(fit), k=opt.parse_ks(k), engine=engine, **settings
        )
        answer(many, "", to) if to == "json" else show(many.table(), to=to)
        return
    est = fit_model(read_outcomes(file, **read.reading(fit)), k=opt.parse_ks(k), engine=engine, **settings)  # type: ignore[arg-type]
    if "taken" in est.outcomes.attrs:
        complain(f"read as {est.outcomes.attrs['taken']}")
    if output is not None:
        _write(est, output, file, read, pictures=pictures)
    if to == "json":
        tables = {"summary": est.summary(columns="all", tasks=True), "baseline": est.baseline()}
        say_json(est.to_dict() | {name: table.to_dict("records") for name, table in tables.items()})
        return
    lines = [] if est.diagnostics is None else [str(est.diagnostics)]
    lines += [f"method {est.method.name}: {est.note}"] if est.note else []
    lines += [f"results written to {output}"] if output is not None else []
    show(*estimate_tables(est), *group_tables(est), lines=lines, to=to, est=est)


def refuse_with_split(split: str | None, needing: dict[str, Any], unused: dict[str, Any]) -> None:
    """Refuse options that need --split where it is missing, and those that it does not use where it is given."""
    wrong = needing if split is None else unused
    if names := [name for name, value in wrong.items() if value is not None]:
        raise InvalidArgument(f"{' and '.join(names)} {'needs' if split is None else 'cannot be used with'} --split")


def estimate_groups(file: str, split: str, executor: str | None, reading: Any, **settings: Any) -> ManyEstimates:
    """An estimate of every group of a table, with a bar that shows the progress."""
    from agentic_bayes.estimation.many.estimates import estimate_many
    from agentic_bayes.evidence.progress import ProgressBar
    from agentic_bayes.suites.inputs import table_arguments

    names, columns = [name.strip() for name in split.split(",")], table_arguments(file, **reading)
    with ProgressBar("estimating") as progress:
        return estimate_many(file, split=names, columns=columns, executor=executor, progress=progress, **settings)


def _inflated(method: str | None) -> Any:
    from agentic_bayes.estimation.methods.options import Hierarchical

    if method not in (None, "hierarchical"):
        raise InvalidArgument(f"--inflate is an option of the hierarchical method; {method} does not use it")
    return Hierarchical(inflate=True)


def _write(est: Estimate, output: Path, file: str, read: opt.EvidenceOptions, *, pictures: bool) -> None:
    """Write the folder of results, with the evidence if FILE is evidence."""
    from agentic_bayes.evidence.evidence import Evidence
    from agentic_bayes.evidence.results.evidence import ToolResults
    from agentic_bayes.reports.plots.save import save_pictures
    from agentic_bayes.reports.results_folder import write_results
    from agentic_bayes.suites.inputs import evidence_in, open_input

    opened, evidence, counting = open_input(file, **read.opening()), None, read.counting()
    if isinstance(opened, Evidence | ToolResults):
        evidence, counting = evidence_in(opened, counting)
    output.mkdir(parents=True, exist_ok=True)
    drawn = save_pictures(est, None, output) if pictures else []
    write_results(est, output, evidence=evidence, counting=counting, command=command_line(), also=drawn)


def command_line() -> list[str]:
    """The command as it was typed, for the manifest of a folder of results."""
    return ["agentic-bayes", *sys.argv[1:]]
