"""Every table of a study as CSV files next to a ``run.json``: what the pages link to and are written from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from agentic_bayes.numerics import Array
from calibration.agreement import allowed_beyond
from calibration.coverage import ESTIMANDS, METHODS, METRICS, requirements
from calibration.decisions import Decisions
from calibration.heldout import PUBLISHED, beta_binomial_pass4
from calibration.results import Results, Verdict, decision_verdicts, verdicts
from calibration.sbc import Study

BARS = "▁▂▃▄▅▆▇█"
BINS = 20
LARGEST = 5  # differences between the engines that are kept
# decimals in the files; a coverage among 1,000 data sets is exact
DECIMALS = {"p": 4, "standard_error": 4, "exists": 2, "error": 4, "required": 4, "standard_errors": 2}
DECIMALS |= {"width": 2, "corrected_width": 2, "uncorrected_width": 2, "tasks": 0, "stated_tasks": 0}
DECIMALS |= {"ends_most": 4, "ends_usual": 4, "better_most": 4, "better_usual": 4, "pareto_k": 2, "ess": 0}
SHORTEST = {"rho", "mu", "bar", "sigma"}  # settings, written as 0.2 rather than 0.200


@dataclass(frozen=True)
class Tables:
    """How a study was run, and its tables by name."""

    run: dict[str, Any]
    frames: dict[str, pd.DataFrame]

    def save(self, folder: Path) -> None:
        """Write `run.json` and one CSV per table."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "run.json").write_text(json.dumps(self.run, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        for name, frame in self.frames.items():
            text = frame.apply(_as_text).to_csv(index=False, lineterminator="\n")
            (folder / f"{name}.csv").write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Tables:
        """Read what `save` wrote."""
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        return cls(run, {path.stem: pd.read_csv(path) for path in sorted(folder.glob("*.csv"))})


def _as_text(column: pd.Series) -> pd.Series:
    """Numbers with the decimals of their column; blank where there is none."""
    if not pd.api.types.is_float_dtype(column):
        return column
    name = str(column.name)
    style = "{:g}" if name in SHORTEST else f"{{:.{DECIMALS.get(name, 3)}f}}"
    return column.map(lambda value: "" if np.isnan(value) else style.format(value))


def interval_tables(run: Mapping[str, Any], results: Results) -> Tables:
    """The tables behind `docs/calibration.md`."""
    sizes = np.array([abs(check.z) for check in results.checks])
    pass1, pass2, _, pass4 = PUBLISHED.T
    predicted = {"beta_population": beta_binomial_pass4(pass1, pass2), "plugin": pass1**4}
    counted = {
        "engines": {
            "converged": sum(results.converged),
            "checks": sizes.size,
            "allowed_beyond_4": allowed_beyond(sizes.size),
            **{f"beyond_{limit}": int((sizes > limit).sum()) for limit in (2, 3, 4)},
        },
        "published_mean_error": {
            name: round(float(np.abs(column - pass4).mean()), 3) for name, column in predicted.items()
        },
    }
    frames = {
        "requirements": verdicts_table(verdicts(results)),
        "sbc": sbc_table({**results.studies, "one agent, wrong prior": results.wrong}),
        "prior_coverage": prior_coverage_table(results.studies),
        "fixed_truths": _fixed_truths(results.table),
        "fixed_truths_averages": _averages(results.table),
        "engines": _largest(results),
        "held_out": pd.concat(
            [frame.rename_axis("method").reset_index().assign(data=name) for name, frame in results.held_out.items()]
        )[["data", "method", "log_score", "error"]],
        "published": pd.DataFrame(PUBLISHED, columns=[f"pass^{k}" for k in (1, 2, 3, 4)]).assign(**predicted),
    }
    return Tables({**run, **counted}, frames)


def decision_tables(run: Mapping[str, Any], decided: Decisions, judged: pd.DataFrame) -> Tables:
    """The tables behind `docs/calibration_decisions.md`."""
    named = judged.assign(metric=[f"pass^{k}" for k in judged["k"]])
    columns = ["design", "estimand", "metric", "corrected", "corrected_width", "uncorrected", "uncorrected_width"]
    frames = {
        "requirements": verdicts_table(decision_verdicts(decided, judged)),
        "paired": decided.paired,
        "gates": decided.gates,
        "halves": decided.halves,
        "rules": decided.rules.drop(columns="inconclusive"),
        "judges": named[columns],
        "judged_comparisons": decided.judged,
    }
    return Tables(dict(run), frames)


def verdicts_table(checked: Iterable[Verdict]) -> pd.DataFrame:
    """Each requirement, the result, and whether it holds."""
    return pd.DataFrame(
        [(v.requirement, v.result, v.holds) for v in checked], columns=["requirement", "result", "holds"]
    )


def sbc_table(studies: Mapping[str, Study]) -> pd.DataFrame:
    """Ranks and their p-value, by design and quantity."""
    rows = [
        (design, name, histogram(study.ranks[name]), p, p > 0.01)
        for design, study in studies.items()
        for name, p in study.p_values().items()
    ]
    return pd.DataFrame(rows, columns=["design", "quantity", "ranks", "p", "inside"])


def histogram(ranks: Array) -> str:
    """Ranks in 20 bins as bars of text; a full bar is 1.5 × the expected count."""
    counts = np.histogram(ranks, BINS, (0, 1))[0] / (ranks.size / BINS)
    return "".join(BARS[min(int(share / 1.5 * len(BARS)), len(BARS) - 1)] for share in counts)


def prior_coverage_table(studies: Mapping[str, Study]) -> pd.DataFrame:
    """Coverage and mean width with truth from the prior, by design and quantity."""
    rows = [
        (design, name, hits.mean(), np.sqrt(0.95 * 0.05 / hits.size), study.width[name].mean())
        for design, study in studies.items()
        for name, hits in study.covered.items()
    ]
    return pd.DataFrame(rows, columns=["design", "quantity", "coverage", "standard_error", "mean_width"])


def _fixed_truths(table: pd.DataFrame) -> pd.DataFrame:
    """Every method in every cell; `exists` is blank where all data sets have an interval."""
    frame = table.assign(exists=table["exists"].where(table["exists"] < 1))
    order = {"estimand": ESTIMANDS, "metric": METRICS, "method": METHODS}
    keys = ["estimand", "metric", "T", "n", "rho", "mu", "method"]
    frame = frame.sort_values(keys, key=lambda c: c.map(list(order[c.name]).index) if c.name in order else c)
    return frame[[*keys, "coverage", "width", "exists"]]


def _averages(table: pd.DataFrame) -> pd.DataFrame:
    """Means over the cells that are held to a requirement, and the lowest coverage among them."""
    rows = []
    for method in METHODS:
        held = requirements(table, method)
        for (estimand, metric), part in held.groupby(["estimand", "metric"], sort=False):
            lowest = part["coverage"].min()
            rows.append((estimand, metric, method, part["coverage"].mean(), lowest, part["width"].mean()))
    return pd.DataFrame(rows, columns=["estimand", "metric", "method", "coverage", "lowest", "width"])


def _largest(results: Results) -> pd.DataFrame:
    worst = sorted(results.checks, key=lambda check: -abs(check.z))[:LARGEST]
    rows = [(check.data + 1, check.quantity, check.what, check.z) for check in worst]
    return pd.DataFrame(rows, columns=["data", "quantity", "what", "standard_errors"])
