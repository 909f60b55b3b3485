"""Write ``docs/calibration.md`` and ``docs/calibration_decisions.md``.

Is every interval as wide as it should be, and no wider? Is a decision wrong as seldom as it says?
``python benchmarks/calibrate.py`` runs the full form (some twenty minutes on two idle cores); smaller sizes give a
quicker, coarser page that says so in its first line. The same seed and versions give the same file.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import pandas as pd
from calibration import agreement, coverage, decisions, heldout, judge, page, results, sbc

from agentic_bayes.estimation.io.netcdf import installed_versions

ROOT = Path(__file__).resolve().parents[1]
FULL = {"size": 1000, "sets": 20, "held_out": 200}


def main(arguments: list[str] | None = None) -> int:
    """Run the studies, write their pages; 1 if a requirement fails."""
    options = parsed(arguments)
    found = []
    if options.page in ("intervals", "both"):
        simulated = study(options)
        options.output.write_text(page.page(simulated), encoding="utf-8")
        found += results.verdicts(simulated)
    if options.page in ("decisions", "both"):
        decided, judged = decision_study(options)
        text = page.decisions_page(header(options), decided, judged)
        options.decisions_output.write_text(text, encoding="utf-8")
        found += results.decision_verdicts(decided, judged)
    for verdict in found:
        print(f"{'holds' if verdict.holds else 'FAILS'}  {verdict.requirement}: {verdict.found}")
    return 0 if all(verdict.holds for verdict in found) else 1


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=FULL["size"], help="simulated data sets per study and cell")
    parser.add_argument("--sets", type=int, default=FULL["sets"], help="sets of outcomes fitted by both engines")
    parser.add_argument("--held-out", type=int, default=FULL["held_out"], help="simulated agents and random splits")
    parser.add_argument("--processes", type=int, default=2, help="changes nothing in the results")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--page", choices=("intervals", "decisions", "both"), default="both")
    parser.add_argument("--decisions-output", type=Path, default=ROOT / "docs" / "calibration_decisions.md")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "calibration.md")
    return parser.parse_args(arguments)


def study(options: argparse.Namespace) -> results.Results:
    """Run everything."""
    size, seed, processes = options.size, options.seed, options.processes
    done = partial(print, file=sys.stderr, flush=True)
    studies = {design: sbc.study(design, size, seed=seed, processes=processes) for design in sbc.DESIGNS}
    wrong = sbc.study("one agent", size, seed=seed, prior=sbc.WRONG_PRIOR, processes=processes)
    done("simulation-based calibration: done")
    agents = heldout.simulated_agents(options.held_out, seed=seed, processes=processes)
    splits = heldout.splits_of(heldout.TAU_BENCH, 4, trained=2, size=options.held_out, seed=seed)
    done("held-out trials: done")
    compared = [agreement.compare(i, seed=seed) for i in range(options.sets)]
    done("engines: done")
    table = coverage.coverage(coverage.ALL_CELLS, size, seed=seed, processes=processes)
    return results.Results(
        header=header(options),
        studies=studies,
        wrong=wrong,
        table=table,
        checks=[check for checks, _ in compared for check in checks],
        converged=[passed for _, passed in compared],
        held_out={
            "Simulated agents (μ and ρ from the prior, 40 tasks, 3 trials fitted, 2 predicted)": agents,
            "tau-bench airline, gpt-4o (50 tasks, 2 trials fitted, 2 predicted, random splits)": splits,
        },
    )


def decision_study(options: argparse.Namespace) -> tuple[decisions.Decisions, pd.DataFrame]:
    """Run what is about decisions and judges."""
    how = {"seed": options.seed, "processes": options.processes}
    decided = decisions.study(options.size, **how)
    print("decisions: done", file=sys.stderr, flush=True)
    return decided, judge.judge_coverage(options.size, **how)


def header(options: argparse.Namespace) -> str:
    """What was run and with what."""
    chosen = {"size": options.size, "sets": options.sets, "held_out": options.held_out}
    form = "Full form" if chosen == FULL else "REDUCED form"
    versions = ", ".join(f"{name} {number}" for name, number in installed_versions().items() if name != "agentic-bayes")
    return (
        f"{form}: {options.size:,} data sets per study and cell, {options.sets} sets for two engines, "
        f"{options.held_out} simulated agents and splits; seed {options.seed}. {versions[0].upper()}{versions[1:]}."
    )


if __name__ == "__main__":
    sys.exit(main())
