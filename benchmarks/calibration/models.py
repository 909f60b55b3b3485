"""Paired and grouped estimates: what is simulated, what is required of it, and ``docs/calibration_models.md``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from calibration import crossed, groups, importance
from calibration.page import filled, joined, markdown_table, marked, p_value, requirements_table, run_words, with_width
from calibration.results import Verdict, error, prior_verdicts
from calibration.sbc import Study
from calibration.tables import Tables, prior_coverage_table, sbc_table, verdicts_table

SEED_SETS = 2  # data sets of each size that ten seeds fit
PAIRED, GROUPED, WRONG = "two agents on shared tasks", "groups of tasks", "wrong prior of σ"


@dataclass(frozen=True)
class Models:
    """The results on paired and grouped estimates."""

    paired: Study  # simulation-based calibration
    grouped: Study
    wrong: Study  # of paired estimates under a wrong prior of σ
    fixed: pd.DataFrame  # see `crossed.fixed_truths`
    families: pd.DataFrame  # see `groups.new_families`
    seeds: pd.DataFrame  # see `importance.between_seeds`
    apart: pd.DataFrame  # see `importance.made_apart`
    accounts: pd.DataFrame  # see `importance.accounts`


def study(sampled: int, size: int, *, seed: int, processes: int = 1) -> Models:
    """Every simulation: `sampled` data sets where the engine is importance sampling, `size` where it is exact."""
    how: dict[str, Any] = {"seed": seed, "processes": processes}
    report = partial(print, file=sys.stderr, flush=True)
    paired = crossed.study(sampled, **how)
    wrong = crossed.study(max(1, sampled // 4), method=crossed.WRONG_SIGMA, **how)
    report("paired estimates, truth from the prior: done")
    fixed = crossed.fixed_truths(crossed.TRUTHS, sampled, **how)
    report("paired estimates, fixed truths: done")
    seeds = importance.between_seeds(min(sampled, SEED_SETS), **how)
    apart = importance.made_apart(sampled, **how)
    accounts = importance.accounts(sampled, **how)
    report("the importance engine: done")
    grouped, families = groups.study(size, **how), groups.new_families(size, **how)
    return Models(paired, grouped, wrong, fixed, families, seeds, apart, accounts)


def verdicts(found: Models) -> list[Verdict]:
    """The requirements on paired and grouped estimates."""
    new = found.fixed.query("estimand == 'population' and metric != 'pass@3'")
    alike = found.fixed["rho"] == 0
    differ, edge = found.fixed.loc[~alike, "crossed"], found.fixed.loc[alike, "crossed"]
    two, apart, accounts = found.seeds.iloc[0], found.apart, found.accounts
    family, sets = found.families.iloc[0], int(found.fixed["sets"].iloc[0])
    again, failed = int((accounts["points"] > importance.FIRST).sum()), int((~accounts["passed"]).sum())
    return [
        *prior_verdicts({PAIRED: found.paired, GROUPED: found.grouped}, "quantity"),
        Verdict(
            "a wrong prior of σ is caught: σ leaves the envelope (SBC)",
            f"p = {found.wrong.p_values()['σ']:.1g}",
            found.wrong.p_values()["σ"] < 0.01,
        ),
        Verdict(
            "paired estimates, mixture and ρ = .2: coverage of one agent is at least .92, two standard errors allowed",
            f"lowest {differ.min():.3f} of {differ.size} entries",
            bool(differ.min() >= 0.92 - 2 * error(0.92, sets)),
        ),
        Verdict(
            "the same at ρ = 0: .94 on average and at least .86, two standard errors allowed",
            f"mean {edge.mean():.3f}, lowest {edge.min():.3f} of {edge.size} entries",
            bool(edge.mean() >= 0.94 - 2 * error(0.94, 2 * sets) and edge.min() >= 0.86 - 2 * error(0.86, sets)),
        ),
        Verdict(
            "two equal agents on the same tasks: the interval of the difference in pass^1 and pass^3 leaves out 0 in "
            "at most .05 of data sets, two standard errors allowed",
            f"mean {new['told_apart'].mean():.3f}, highest {new['told_apart'].max():.3f} of {len(new)} entries",
            bool(new["told_apart"].max() <= 0.05 + 2 * error(0.05, sets)),
        ),
        Verdict(
            "five families of twenty variations: the interval of a new family covers at least .92, two standard errors "
            "allowed, and the one without families less",
            f"{family['grouped']:.3f}, without families {family['ungrouped']:.3f}",
            bool(
                family["grouped"] >= 0.92 - 2 * error(0.92, int(family["sets"]))
                and family["ungrouped"] < family["grouped"]
            ),
        ),
        Verdict(
            "two agents: no end of an interval moves by more than .001 between ten seeds",
            f"largest {two['ends_most']:.4f}, usual {two['ends_usual']:.4f}",
            bool(two["ends_most"] <= 0.001),
        ),
        Verdict(
            "two estimates made apart: the correlation of their draws is below .05 (root mean square)",
            ", ".join(f"{row.rms_r:.3f} ({row.estimates})" for row in apart.itertuples()),
            bool((apart["rms_r"] < 0.05).all()),
        ),
        Verdict(
            "two estimates of equal agents made apart: at most .06 false verdicts, two standard errors allowed",
            ", ".join(f"{row.false_verdicts:.3f} ({row.estimates})" for row in apart.itertuples()),
            bool((apart["false_verdicts"] <= 0.06 + 2 * error(0.06, int(apart["pairs"].min()))).all()),
        ),
        Verdict(
            "2 to 25 agents: Pareto k is at most .7 and ESS at least 400 after further attempts, NUTS is never needed",
            f"highest k {accounts['pareto_k'].max():.2f}, lowest ESS {accounts['ess'].min():.0f}; {again} of "
            f"{len(accounts)} took further attempts, {failed} would need NUTS",
            failed == 0,
        ),
    ]


def model_tables(run: Mapping[str, Any], found: Models) -> Tables:
    """The tables behind `docs/calibration_models.md`."""
    studies = {PAIRED: found.paired, GROUPED: found.grouped}
    keys = ["kind", "sigma", "rho", "tasks", "trials", "sets", "estimand", "metric"]
    shares = ["crossed", "crossed_width", "hierarchical", "hierarchical_width", "difference", "told_apart"]
    frames = {
        "requirements": verdicts_table(verdicts(found)),
        "sbc": sbc_table({**studies, WRONG: found.wrong}),
        "prior_coverage": prior_coverage_table(studies),
        "fixed_truths": found.fixed[[*keys, *shares]],
        "new_families": found.families,
        "seeds": found.seeds,
        "apart": found.apart,
        "engine": found.accounts,
    }
    return Tables(dict(run), frames)


_MODELS = """\
# Calibration of paired and grouped estimates

Where agents tried the same tasks, `estimate` pairs them: the crossed model, computed by importance sampling. With `by=`
the tasks come in groups. [Calibration](calibration.md) is about the model of one agent alone, [calibration of
decisions](calibration_decisions.md) about comparisons, gates and judges. The full tables are CSV files:
[the files](#the-files).

{run}"""

_SIZES = (
    "{sampled:,} simulated data sets per study and cell where the engine is importance sampling, {size:,} where it is "
    "exact (groups)"
)

_PRIOR = """\
The truth is drawn from the default priors for every data set, data from the truth; *p* is the probability that uniform
ranks leave the limits of their ECDF as far as the truth's do ([how](calibration.md#simulation-based-calibration)), and
coverage should be .95. A correct engine fails one such check with probability .01, and at least one of the {checks}
with probability {any_fails:.2f} at most.

*Paired*: two agents, 15 to 39 shared tasks, 1 to 4 trials; quantities of the first agent, differences second − first.
The wrong prior, σ ~ HalfNormal(.5), is fitted to a quarter as many data sets and has to fail. *Groups*: one agent, four
groups of five tasks × 4 trials."""

_FIXED = """\
Two equal agents try the same tasks. *Mixture*: data that do not come from our model, the tasks of three kinds in
[calibration of decisions](calibration_decisions.md#decisions), {mixture}. The others come from the crossed model with
θ = 1.4, σ = 0 (no task is harder than another) or 1.5, ρ = 0 or .2. *Crossed* is the default; *hierarchical*, shown
for new tasks, ignores the pairing but lets agents share strength, from which equal agents profit. Coverage of single
agents, and mean width in parentheses. *Difference* is the coverage of the paired difference; *told apart* is how often
its interval leaves out 0, which for new tasks is a false verdict.

With σ = ρ = 0 all tasks are alike. That is the edge of the prior for both ways in which they could differ: intervals of
pass@3 then lie too low too often, because the data leave it open that a few tasks are hard."""

_FAMILIES = """\
Twenty variations of each of five families, 3 trials each; families differ by a normal of standard deviation .8 on the
logit scale, variations by .3. Does the 95 % interval hold the success rate of a family that was not seen? With
`by=`, for a new group, in {grouped}; without, where every variation counts as a task of its own, in {ungrouped} of
{sets:,} data sets (coverage, and mean width in parentheses)."""

_SEEDS = """\
`random_seed` changes the points of the importance engine. Here ten seeds fit the same data: how far do the ends of the
95 % intervals of pass^1, pass^3 and pass@3 on new tasks move, and P(better) on pass^3? *Largest* is the largest
difference between any two of the ten, over all ends of all agents of {sets} data sets; *usual* the root mean square
difference of two seeds:"""

_APART = """\
Two estimates with the default seed, of equal agents that tried different tasks (40 tasks × 4 trials): is a draw of one
independent of the draw of the other? r is the correlation of the 4,000 draws of pass^3; where draws are independent,
its root mean square is .016:"""

_ENGINE = """\
Data sets of 2 to 25 agents × 8 to 80 tasks × 2 to 20 trials, all sizes equally likely, truth from the default priors
but for every fourth data set, where ρ = 0. Where Pareto k exceeds .7 or the effective sample size (ESS) is below 400,
the engine tries again with four times the points, and NUTS would follow where that fails too:"""

_FILES = """\
- [requirements.csv](calibration/models/requirements.csv): the table at the top.
- [sbc.csv](calibration/models/sbc.csv): p-values, and the ranks as a histogram of 20 bins (a full bar is 1.5 × the
  expected count); [prior_coverage.csv](calibration/models/prior_coverage.csv): coverage and mean widths.
- [fixed_truths.csv](calibration/models/fixed_truths.csv), [seeds.csv](calibration/models/seeds.csv),
  [new_families.csv](calibration/models/new_families.csv), [apart.csv](calibration/models/apart.csv): the tables above.
- [engine.csv](calibration/models/engine.csv): the engine's account of every data set; a blank ρ is from the prior.
- [run.json](calibration/models/run.json): sizes, seed and versions."""


def models_page(tables: Tables) -> str:
    """`docs/calibration_models.md` as Markdown."""
    frames = tables.frames
    fixed, family = frames["fixed_truths"], frames["new_families"].iloc[0]
    checks = int((frames["sbc"]["design"] != WRONG).sum())
    mixture = fixed[fixed["kind"] == crossed.MIXTURE].iloc[0]
    shown = {name: with_width(family[name], family[f"{name}_width"]) for name in ("grouped", "ungrouped")}
    return joined(
        _MODELS.format(run=run_words(tables.run, _SIZES)),
        "## Requirements",
        requirements_table(frames["requirements"]),
        "## Truth from the prior",
        filled(_PRIOR.format(checks=checks, any_fails=1 - 0.99**checks)),
        _paired(frames["sbc"], frames["prior_coverage"]),
        _grouped(frames["sbc"], frames["prior_coverage"]),
        "## Fixed truths",
        filled(_FIXED.format(mixture=f"{mixture['tasks']} tasks × {mixture['trials']} trials")),
        _fixed(fixed),
        "## A family of tasks that was not seen",
        filled(_FAMILIES.format(**shown, sets=int(family["sets"]))),
        "## Ten seeds",
        filled(_SEEDS.format(sets=int(frames["seeds"]["sets"].max()))),
        _seeds(frames["seeds"]),
        "## Two estimates made apart",
        _APART,
        _apart(frames["apart"]),
        "## The engine's own account",
        _ENGINE,
        _engine(frames["engine"]),
        "## The files",
        _FILES,
    )


def _by_quantity(frame: pd.DataFrame, design: str) -> pd.DataFrame:
    return frame[frame["design"] == design].set_index("quantity")


def _shown_p(row: pd.Series) -> str:
    return p_value(row["p"]) if row["inside"] else f"**{p_value(row['p'])}**"


def _paired(sbc: pd.DataFrame, prior: pd.DataFrame) -> str:
    right, wrong, coverage = _by_quantity(sbc, PAIRED), _by_quantity(sbc, WRONG), _by_quantity(prior, PAIRED)
    rows = [
        (
            name,
            _shown_p(row),
            with_width(coverage.loc[name, "coverage"], coverage.loc[name, "mean_width"]),
            _shown_p(wrong.loc[name]),
        )
        for name, row in right.iterrows()
    ]
    return markdown_table(("paired: quantity", "p", "coverage", "p, wrong prior"), rows)


def _grouped(sbc: pd.DataFrame, prior: pd.DataFrame) -> str:
    coverage = _by_quantity(prior, GROUPED)
    rows = [
        (
            name,
            _shown_p(row),
            with_width(coverage.loc[name, "coverage"], coverage.loc[name, "mean_width"])
            if name in coverage.index
            else "–",
        )
        for name, row in _by_quantity(sbc, GROUPED).iterrows()
    ]
    return markdown_table(("groups: quantity", "p", "coverage"), rows)


def _fixed(frame: pd.DataFrame) -> str:
    rows = []
    for _, row in frame.iterrows():
        truth = row["kind"] if row["kind"] == crossed.MIXTURE else f"σ = {row['sigma']:g}, ρ = {row['rho']:g}"
        rows.append(
            (
                f"{truth}; {row['tasks']} × {row['trials']}",
                f"{row['estimand']} {row['metric']}",
                *(
                    "–" if np.isnan(row[name]) else with_width(row[name], row[f"{name}_width"])
                    for name in crossed.MODELS
                ),
                marked(row["difference"]),
                f"{row['told_apart']:.3f}" if row["estimand"] == "population" else "–",
            )
        )
    header = ("truth; tasks × trials", "interval of", "crossed", "hierarchical", "difference", "told apart")
    return markdown_table(header, rows)


def _known(coverage: float, width: float) -> str:
    return "–" if np.isnan(coverage) else with_width(coverage, width)


def _seeds(frame: pd.DataFrame) -> str:
    columns = ("ends_most", "ends_usual", "better_most", "better_usual")
    rows = [
        (f"{row['agents']:g} × {row['tasks']:g} × {row['trials']:g}", *(f"{row[name]:.4f}" for name in columns))
        for _, row in frame.iterrows()
    ]
    header = ("agents × tasks × trials", "ends: largest", "usual", "P(better): largest", "usual")
    return markdown_table(header, rows)


def _apart(frame: pd.DataFrame) -> str:
    columns = ("mean_r", "rms_r", "largest_r", "false_verdicts")
    rows = [(row["estimates"], row["pairs"], *(f"{row[name]:.3f}" for name in columns)) for _, row in frame.iterrows()]
    return markdown_table(("each estimate", "pairs", "mean r", "root mean square", "largest", "false verdicts"), rows)


def _engine(frame: pd.DataFrame) -> str:
    rows = []
    for low, high in ((2, 9), (10, 17), (18, 25)):
        part = frame[frame["agents"].between(low, high)]
        if not part.empty:
            again = int((part["points"] > importance.FIRST).sum())
            shown = f"{part['pareto_k'].max():.2f}", f"{part['ess'].min():.0f}", f"{part['ess'].median():.0f}"
            rows.append((f"{low} to {high}", len(part), again, *shown, int((~part["passed"]).sum())))
    header = ("agents", "data sets", "second attempts", "highest k", "lowest ESS", "median ESS", "NUTS needed")
    return markdown_table(header, rows)
