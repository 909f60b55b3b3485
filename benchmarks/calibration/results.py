"""What was simulated, and every requirement held against it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from agentic_bayes.formatting import format_number
from calibration.agreement import Check, allowed_beyond
from calibration.coverage import requirements, width_ratios
from calibration.decisions import Decisions
from calibration.heldout import PUBLISHED, beta_binomial_pass4
from calibration.sbc import Study

__all__ = ["LOW", "Results", "Verdict", "decision_verdicts", "verdicts"]

LOW = 0.90


@dataclass(frozen=True)
class Results:
    """All that was simulated.

    Attributes
    ----------
    header : str
        What was run: form, sizes, seed, versions.
    studies : dict of Study
        Simulation-based calibration by design.
    wrong : Study
        The same under a wrong prior of ρ.
    table : pandas.DataFrame
        Coverage at fixed truths; see `coverage.coverage`.
    checks : list of Check
        Engine agreement.
    converged : list of bool
        Whether the sampler's own diagnostics passed, by data set.
    held_out : dict of pandas.DataFrame
        log_score and error by method, by data.
    """

    header: str
    studies: dict[str, Study]
    wrong: Study
    table: pd.DataFrame
    checks: list[Check]
    converged: list[bool]
    held_out: dict[str, pd.DataFrame]


@dataclass(frozen=True)
class Verdict:
    """A requirement, what was found, and whether it holds."""

    requirement: str
    found: str
    holds: bool


def verdicts(results: Results) -> list[Verdict]:
    """Every requirement against what was found."""
    ranks = {f"{name} ({design})": p for design, one in results.studies.items() for name, p in one.p_values().items()}
    worst = min(ranks, key=ranks.__getitem__)
    wrong = results.wrong.p_values()
    covered = {
        f"{name} ({design})": float(hits.mean())
        for design, one in results.studies.items()
        for name, hits in one.covered.items()
    }
    low, high = min(covered, key=covered.__getitem__), max(covered, key=covered.__getitem__)
    held = requirements(results.table)
    below = int((held["coverage"] < LOW).sum())
    ratios = width_ratios(results.table)
    beyond, allowed = sum(abs(c.z) > 4 for c in results.checks), allowed_beyond(len(results.checks))
    errors = np.abs(beta_binomial_pass4(PUBLISHED[:, 0], PUBLISHED[:, 1]) - PUBLISHED[:, 3])
    return [
        Verdict(
            "SBC: every rank ECDF inside its 99 % envelope",
            f"smallest p = {ranks[worst]:.4f}: {worst}",
            ranks[worst] > 0.01,
        ),
        Verdict(
            "SBC: a wrong prior of ρ is caught (ρ, population pass^3 outside)",
            f"p = {wrong['ρ']:.1g} and {wrong['population pass^3']:.1g}",
            max(wrong["ρ"], wrong["population pass^3"]) < 0.01,
        ),
        Verdict(
            "coverage with truth from the prior: .93 to .97, every estimand",
            f"{format_number(covered[low])} ({low}) to {format_number(covered[high])} ({high})",
            covered[low] >= 0.93 and covered[high] <= 0.97,
        ),
        Verdict(
            "coverage at fixed truths ≥ .90 wherever T ≥ 20, n ≥ 3, k ≤ n, ρ ≥ .2",
            f"lowest {format_number(held['coverage'].min())} of {len(held)} entries; {below} below",
            below == 0,
        ),
        Verdict(
            "width ≤ 1.02 × logit-t, population (cells with k ≤ n, data sets where it exists)",
            f"{ratios['population']:.3f}",
            ratios["population"] <= 1.02,
        ),
        Verdict("width ≤ .75 × logit-t, tasks", f"{ratios['tasks']:.3f}", ratios["tasks"] <= 0.75),
        Verdict(
            f"engines agree: at most {allowed} of {len(results.checks)} checks beyond 4 standard errors",
            f"{beyond} beyond; largest {max(abs(c.z) for c in results.checks):.2f}",
            beyond <= allowed,
        ),
        Verdict(
            "published pass^1 and pass^2 predict pass^4: mean error ≤ .013 to three decimals",
            format_number(errors.mean()),
            bool(errors.mean() < 0.0135),
        ),
    ]


def decision_verdicts(decided: Decisions, judged: pd.DataFrame) -> list[Verdict]:
    """Every requirement of decisions and of the model of judge errors against what was found."""
    return [*_decided(decided), *_judged(judged)]


def _judged(found: pd.DataFrame) -> list[Verdict]:
    """What the model of judge errors is held to."""
    clustered = found["design"].str.contains("clustered")
    parts = (
        ("errors alike on all tasks", found[~clustered], 0.92),
        ("errors clustered by task", found[clustered], 0.90),
    )
    return [
        Verdict(
            f"judge errors corrected with 60 labels, {name}: coverage ≥ {least:.2f}",
            f"lowest {format_number(part['corrected'].min())} of {len(part)} entries",
            bool(part["corrected"].min() >= least),
        )
        for name, part, least in parts
    ]


def _decided(found: Decisions) -> list[Verdict]:
    """What decisions are held to."""
    paired, at_bar, rules = found.paired, found.gates, found.rules

    def by_k(column: str, digits: int = 3) -> str:
        return ", ".join(f"{value:.{digits}f} (k = {k})" for k, value in zip(paired["k"], paired[column], strict=True))

    width = float(paired.loc[paired["k"] == 3, "width_ratio"].iloc[0])
    # a small study may find nothing by chance: the ratio of powers then needs something to divide by
    gain = paired["power"] / np.maximum(paired["z_power"], 1e-3)
    return [
        Verdict(
            "two equal agents: false “better” or “worse” ≤ .07",
            by_k("false_verdicts"),
            bool((paired["false_verdicts"] <= 0.07).all()),
        ),
        Verdict(
            "paired comparison: coverage of the difference ≥ .93",
            by_k("coverage"),
            bool((paired["coverage"] >= 0.93).all()),
        ),
        Verdict("paired comparison: width ≤ .95 × the paired t's at k = 3", f"{width:.3f}", width <= 0.95),
        Verdict(
            "paired comparison: power ≥ 1.5 × that of an unpaired z",
            ", ".join(f"{value:.1f} × (k = {k})" for k, value in zip(paired["k"], gain, strict=True)),
            bool((gain >= 1.5).all()),
        ),
        Verdict(
            "gate with the truth at its bar: false “pass” ≤ .07",
            f"mean {at_bar['pass'].mean():.3f}, highest {at_bar['pass'].max():.3f} of {len(at_bar)} designs",
            bool(at_bar["pass"].max() <= 0.07),
        ),
        Verdict(
            "stopping rule, ten looks, truth at its bar: false “pass” ≤ .05",
            ", ".join(f"{share:.3f} (k = {k})" for k, share in zip(rules["k"], rules["pass"], strict=True)),
            bool((rules["pass"] <= 0.05).all()),
        ),
    ]
