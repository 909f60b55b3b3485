"""Write ``docs/calibration.md``, its two sister pages on decisions and models, and the tables that they link to.

Are intervals as wide as they should be, and no wider? Are decisions wrong as rarely as they claim?
``python benchmarks/calibrate.py`` does the full run, an hour on two idle cores. Smaller sizes are quicker
and coarser; their pages say so at the top. The same seed and versions give the same numbers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from calibration import agreement, coverage, decisions, heldout, judge, models, page, results, sbc, tables

from agentic_bayes.estimation.io.netcdf import installed_versions
from agentic_bayes.estimation.methods.near_zero import NearZero

ROOT = Path(__file__).resolve().parents[1]
FULL = {"size": 1000, "sets": 20, "held_out": 200, "sampled": 200}


def main(arguments: list[str] | None = None) -> int:
    """Run the studies and write their tables and pages; 1 if a requirement fails."""
    options = parsed(arguments)
    verdicts = []
    if options.page in ("intervals", "all"):
        simulated = study(options)
        files = tables.interval_tables(run_settings(options), simulated)
        write(files, options.docs, "intervals", "calibration.md", page.intervals_page)
        verdicts += results.verdicts(simulated)
    if options.page in ("decisions", "all"):
        decided, judged = decision_study(options)
        files = tables.decision_tables(run_settings(options), decided, judged)
        write(files, options.docs, "decisions", "calibration_decisions.md", page.decisions_page)
        verdicts += results.decision_verdicts(decided, judged)
    if options.page in ("models", "all"):
        found = models.study(options.sampled, options.size, seed=options.seed, processes=options.processes)
        files = models.model_tables(run_settings(options, ("size", "sampled")), found)
        write(files, options.docs, "models", "calibration_models.md", models.models_page)
        verdicts += models.verdicts(found)
    for verdict in verdicts:
        print(f"{'holds' if verdict.holds else 'FAILS'}  {verdict.requirement}: {verdict.result}")
    return 0 if all(verdict.holds for verdict in verdicts) else 1


def write(files: tables.Tables, docs: Path, name: str, page_name: str, render: Callable[[tables.Tables], str]) -> None:
    """Write the tables, and the page from the tables as they can be read back."""
    folder = docs / "calibration" / name
    files.save(folder)
    (docs / page_name).write_text(render(tables.Tables.load(folder)), encoding="utf-8")


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=FULL["size"], help="simulated data sets per study and cell")
    parser.add_argument("--sets", type=int, default=FULL["sets"], help="data sets fitted by both engines")
    parser.add_argument("--held-out", type=int, default=FULL["held_out"], help="simulated agents and random splits")
    parser.add_argument("--sampled", type=int, default=FULL["sampled"], help="data sets of studies that sample")
    parser.add_argument("--processes", type=int, default=2, help="does not change the results")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--page", choices=("intervals", "decisions", "models", "all"), default="all")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder for the pages and their tables")
    return parser.parse_args(arguments)


def study(options: argparse.Namespace) -> results.Results:
    """Every simulation about intervals."""
    size, seed, processes = options.size, options.seed, options.processes
    report = partial(print, file=sys.stderr, flush=True)
    studies = {design: sbc.study(design, size, seed=seed, processes=processes) for design in sbc.DESIGNS}
    wrong = sbc.study("one agent", size, seed=seed, method=sbc.WRONG_PRIOR, processes=processes)
    report("simulation-based calibration: done")
    agents = heldout.simulated_agents(options.held_out, seed=seed, processes=processes)
    splits = heldout.splits_of(heldout.TAU_BENCH, 4, trained=2, size=options.held_out, seed=seed)
    report("held-out trials: done")
    compared = [agreement.compare(i, seed=seed) for i in range(options.sets)]
    report("engines: done")
    table = coverage.coverage(coverage.ALL_CELLS, size, seed=seed, processes=processes)
    return results.Results(
        studies=studies,
        wrong=wrong,
        table=table,
        checks=[check for checks, _ in compared for check in checks],
        converged=[passed for _, passed in compared],
        held_out={
            "simulated agents": agents,
            "tau-bench airline, gpt-4o": splits,
        },
    )


def decision_study(options: argparse.Namespace) -> tuple[decisions.Decisions, pd.DataFrame]:
    """Every simulation about decisions and judges."""
    settings = {"seed": options.seed, "processes": options.processes}
    decided = decisions.study(options.size, **settings)
    print("decisions: done", file=sys.stderr, flush=True)
    return decided, judge.judge_coverage(options.size, **settings)


def run_settings(options: argparse.Namespace, names: tuple[str, ...] = ("size", "sets", "held_out")) -> dict[str, Any]:
    """The sizes of these names, seed, versions and default prior of ρ of this run."""
    sizes = {name: getattr(options, name) for name in names}
    versions = {name: number for name, number in installed_versions().items() if name != "agentic-bayes"}
    form = "full" if all(sizes[name] == FULL[name] for name in names) else "reduced"
    return {"form": form, **sizes, "seed": options.seed, "versions": versions, "rho": repr(NearZero())}


if __name__ == "__main__":
    sys.exit(main())
