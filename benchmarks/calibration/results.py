"""The results of the simulations, and the requirements they are held to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from agentic_bayes.formatting import format_number
from calibration.agreement import Check, allowed_beyond
from calibration.coverage import requirements, width_ratios
from calibration.decisions import Decisions
from calibration.heldout import PUBLISHED, beta_binomial_pass4
from calibration.sbc import Study

LOW = 0.90


@dataclass(frozen=True)
class Results:
    """Everything simulated about intervals."""

    studies: dict[str, Study]  # simulation-based calibration by design
    wrong: Study  # the same under a wrong prior on ρ
    table: pd.DataFrame  # coverage at fixed truths; see `coverage.coverage`
    checks: list[Check]  # engine agreement
    converged: list[bool]  # whether the sampler's own diagnostics passed, by data set
    held_out: dict[str, pd.DataFrame]  # log_score and error by method, by data


@dataclass(frozen=True)
class Verdict:
    """A requirement, the result, and whether the requirement holds."""

    requirement: str
    result: str
    holds: bool


def error(rate: float, sets: int) -> float:
    """The standard error of a share."""
    return float(np.sqrt(rate * (1 - rate) / sets))


def prior_verdicts(studies: Mapping[str, Study], what: str) -> tuple[Verdict, Verdict]:
    """The requirements on ranks and coverage of truths from the prior; coverage in standard errors of its own study."""
    ranks = {f"{name}, {design}": p for design, study in studies.items() for name, p in study.p_values().items()}
    covered = {
        f"{name}, {design}": (float(hits.mean()), (hits.mean() - 0.95) / error(0.95, hits.size))
        for design, study in studies.items()
        for name, hits in study.covered.items()
    }
    worst = min(ranks, key=ranks.__getitem__)
    low, high = (choose(covered, key=lambda name: covered[name][1]) for choose in (min, max))
    return (
        Verdict(
            "rank ECDFs stay inside their 99 % envelope (SBC)",
            f"smallest p = {ranks[worst]:.4f} ({worst})",
            ranks[worst] > 0.01,
        ),
        Verdict(
            f"truth from the prior: coverage of every {what} is within three standard errors of .95",
            f"lowest {covered[low][0]:.3f} ({low}), highest {covered[high][0]:.3f} ({high})",
            bool(max(abs(covered[name][1]) for name in (low, high)) <= 3),
        ),
    )


def verdicts(results: Results) -> list[Verdict]:
    """The requirements on intervals."""
    ranks, coverage = prior_verdicts(results.studies, "estimand")
    wrong = results.wrong.p_values()
    held = requirements(results.table)
    below = int((held["coverage"] < LOW).sum())
    ratios = width_ratios(results.table)
    beyond, allowed = sum(abs(c.z) > 4 for c in results.checks), allowed_beyond(len(results.checks))
    errors = np.abs(beta_binomial_pass4(PUBLISHED[:, 0], PUBLISHED[:, 1]) - PUBLISHED[:, 3])
    return [
        ranks,
        Verdict(
            "a wrong prior on ρ is caught: ρ and population pass^3 leave the envelope (SBC)",
            f"p = {wrong['ρ']:.1g} and {wrong['population pass^3']:.1g}",
            max(wrong["ρ"], wrong["population pass^3"]) < 0.01,
        ),
        coverage,
        Verdict(
            "fixed truths: coverage is at least .90 wherever T ≥ 20, n ≥ 3, k ≤ n and ρ ≥ .2",
            f"lowest {format_number(held['coverage'].min())}; {below} of {len(held)} entries below",
            below == 0,
        ),
        Verdict(
            "width for `population` is at most 1.02 × logit-t's (cells with k ≤ n, data sets where logit-t exists)",
            f"{ratios['population']:.3f}",
            ratios["population"] <= 1.02,
        ),
        Verdict(
            "width for `tasks` is at most .75 × logit-t's (same cells)",
            f"{ratios['tasks']:.3f}",
            ratios["tasks"] <= 0.75,
        ),
        Verdict(
            f"engines agree: at most {allowed} of {len(results.checks)} checks differ by more than 4 standard errors",
            f"{beyond} {'does' if beyond == 1 else 'do'}; largest {max(abs(c.z) for c in results.checks):.2f}",
            beyond <= allowed,
        ),
        Verdict(
            "published pass^1 and pass^2 predict pass^4: mean error at most .013 to three decimals",
            format_number(errors.mean()),
            bool(errors.mean() < 0.0135),
        ),
    ]


def decision_verdicts(decided: Decisions, judged: pd.DataFrame) -> list[Verdict]:
    """The requirements on decisions and on the model of judge errors."""
    return [*_decided(decided), *_judged(judged)]


def _judged(coverage: pd.DataFrame) -> list[Verdict]:
    """The requirements on the model of judge errors."""
    clustered = coverage["design"].str.contains("clustered")
    parts = (
        ("same error rates for all tasks", coverage[~clustered], 0.92),
        ("errors clustered by task", coverage[clustered], 0.90),
    )
    return [
        Verdict(
            f"judge errors corrected with 60 labels, {name}: coverage is at least {least:.2f}",
            f"lowest {format_number(part['corrected'].min())} of {len(part)} entries",
            bool(part["corrected"].min() >= least),
        )
        for name, part, least in parts
    ]


def _decided(decided: Decisions) -> list[Verdict]:
    """The requirements on comparisons, gates and stopping rules."""
    paired, rules, halves, judged = decided.paired, decided.rules, decided.halves, decided.judged
    at_bar, alike = decided.gates.query("rho > 0"), decided.gates.query("rho == 0")
    once = alike[alike["metric"] == "pass@3"]

    def by_k(values: pd.Series, form: str = "{:.3f}") -> str:
        shown = map(form.format, values)
        parts = pd.Series([f"{value} (k = {k})" for value, k in zip(shown, paired["k"], strict=True)])
        return "; ".join(f"{name}: {', '.join(own)}" for name, own in parts.groupby(paired["tasks"], sort=False))

    thrice = paired.loc[paired["k"] == 3, "width_ratio"]
    # in a small study the z-test may never reject; keep the ratio of powers finite
    gain = paired["power"] / np.maximum(paired["z_power"], 1e-3)
    return [
        Verdict(
            "two equal agents: at most .07 are called “better” or “worse”",
            by_k(paired["false_verdicts"]),
            bool((paired["false_verdicts"] <= 0.07).all()),
        ),
        Verdict(
            "paired comparison: the interval of the difference covers at least .93",
            by_k(paired["coverage"]),
            bool((paired["coverage"] >= 0.93).all()),
        ),
        Verdict(
            "paired comparison: its width is at most .90 × the paired t's at k = 3",
            by_k(paired["width_ratio"]),
            bool((thrice <= 0.90).all()),
        ),
        Verdict(
            "paired comparison: power is at least 1.5 × that of an unpaired z",
            by_k(gain, "{:.1f} ×"),
            bool((gain >= 1.5).all()),
        ),
        Verdict(
            "gate, truth at its bar: at most .07 false “pass”",
            f"mean {at_bar['pass'].mean():.3f}, highest {at_bar['pass'].max():.3f} of {len(at_bar)} designs",
            bool(at_bar["pass"].max() <= 0.07),
        ),
        Verdict(
            "gate on pass^3, tasks alike, truth at its bar: at most .07 false “pass”, two standard errors allowed",
            f"highest {alike.loc[alike['metric'] == 'pass^3', 'pass'].max():.3f}",
            bool((alike.loc[alike["metric"] == "pass^3", "pass"] <= 0.07 + 2 * error(0.07, decided.size)).all()),
        ),
        Verdict(
            "gate on pass@3, tasks alike, truth at its bar: false “fail” at most .15 on average and .20 in any design",
            f"mean {once['fail'].mean():.3f}, highest {once['fail'].max():.3f}",
            bool(
                once["fail"].mean() <= 0.15 + error(0.15, decided.size)
                and (once["fail"] <= 0.20 + 2 * error(0.20, decided.size)).all()
            ),
        ),
        Verdict(
            "two equal agents, one of which tried half of the tasks: at most .05 false verdicts, two standard errors "
            "allowed",
            ", ".join(f"{row.shared:.3f} ({row.half})" for row in halves.itertuples()),
            bool((halves["shared"] <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / halves["sets"])).all()),
        ),
        Verdict(
            "two equal agents whose judge errs differently, labels per agent: coverage at least .92, at most .06 false "
            "verdicts",
            ", ".join(f"{row.corrected:.3f}, {row.corrected_false:.3f} (k = {row.k:g})" for row in judged.itertuples()),
            bool((judged["corrected"] >= 0.92).all() and (judged["corrected_false"] <= 0.06).all()),
        ),
        Verdict(
            "stopping rule, ten looks, truth at its bar: at most .05 false “pass”",
            ", ".join(f"{share:.3f} (k = {k})" for k, share in zip(rules["k"], rules["pass"], strict=True)),
            bool((rules["pass"] <= 0.05).all()),
        ),
    ]
