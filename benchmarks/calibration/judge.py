"""Coverage of the model of judge errors: judged data with a few human labels, and the truth behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from agentic_bayes.decisions.compare import compare
from agentic_bayes.estimation.estimate import Estimate, estimate
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array
from agentic_bayes.outcomes.dataset import dataset_from_counts
from calibration.simulate import spread, stats_of, success_probabilities

TASKS, TRIALS, LABELS = 50, 5, 60
MU, RHO = 0.7, 0.45
SENSITIVITY, SPECIFICITY = 0.95, 0.60
KS = (1, 3)


@dataclass(frozen=True)
class JudgeDesign:
    """Which attempts are labelled, and whether the judge's errors cluster by task."""

    # random attempts, all attempts of random tasks, or as many judged right as judged wrong (without their ids)
    labelled: Literal["attempts", "tasks", "verdicts"]
    precision: float | None = None  # of the Beta distribution of the tasks' error rates; None: all tasks have the same

    def __str__(self) -> str:
        errors = "same error rates for all tasks"
        if self.precision is not None:
            errors = f"errors clustered by task (precision {self.precision:g})"
        return f"labels on {LABELLED[self.labelled]}, {errors}"


LABELLED = {
    "attempts": "random attempts",
    "tasks": "whole tasks",
    "verdicts": "30 attempts judged right and 30 judged wrong, without ids",
}
DESIGNS = (JudgeDesign("attempts"), JudgeDesign("tasks"), JudgeDesign("verdicts"), JudgeDesign("tasks", 4.0))
# of the judge with each of two equal agents: sensitivity, specificity
RATES = ((0.98, 0.5), (0.85, 0.85))


def _rates(rng: np.random.Generator, mean: float, precision: float | None) -> Array:
    """An error rate per task, as a column."""
    if precision is None:
        return np.full((TASKS, 1), mean)
    return rng.beta(mean * precision, (1 - mean) * precision, size=(TASKS, 1))


def _judged_once(job: tuple[JudgeDesign, int]) -> list[dict[str, Any]]:
    design, seed = job
    rng = np.random.default_rng([seed, DESIGNS.index(design)])
    p = success_probabilities(rng, MU, RHO, (TASKS,))
    true = rng.random((TASKS, TRIALS)) < p[:, None]
    sure, strict = (_rates(rng, mean, design.precision) for mean in (SENSITIVITY, SPECIFICITY))
    judged = np.where(true, rng.random(true.shape) < sure, rng.random(true.shape) >= strict)
    if design.labelled == "verdicts":
        order = rng.permutation(TASKS * TRIALS)
        right = judged.ravel()[order]
        chosen = np.concatenate([order[right][: LABELS // 2], order[~right][: LABELS // 2]])
    elif design.labelled == "attempts":
        chosen = rng.permutation(TASKS * TRIALS)[:LABELS]
    else:
        tasks = rng.permutation(TASKS)[: LABELS // TRIALS]
        chosen = (tasks[:, None] * TRIALS + np.arange(TRIALS)).ravel()
    task, trial = np.divmod(chosen, TRIALS)
    labels = pd.DataFrame(
        {
            "judge": judged[task, trial].astype(int),
            "human": true[task, trial].astype(int),
            "agent": "solo",
            "task": task.astype(str),
            "trial": trial,
        }
    )
    if design.labelled == "verdicts":
        labels = labels[["judge", "human"]]
    cells = {("solo", str(i)): (int(c), TRIALS, 0, 0) for i, c in enumerate(judged.sum(axis=1))}
    outcomes = dataset_from_counts(cells, {"unit": "conversation", "indicator": "correct"})
    corrected = estimate(outcomes, k=KS, judge_labels=labels)
    kappa = 1 / RHO - 1
    new = {1: MU, 3: MU * (MU * kappa + 1) * (MU * kappa + 2) / ((kappa + 1) * (kappa + 2))}
    rows = []
    for k in KS:
        for estimand, truth in (("population", new[k]), ("tasks", float((p**k).mean()))):
            row: dict[str, Any] = {"design": str(design), "estimand": estimand, "k": k}
            for name, est in (("corrected", corrected), ("uncorrected", corrected.uncorrected)):
                lower, upper = _interval(est, estimand, k)
                row |= {name: lower <= truth <= upper, f"{name}_width": upper - lower}
            rows.append(row)
    return rows


def _interval(est: Estimate, estimand: Any, k: int) -> tuple[float, float]:
    stats = stats_of(est.posterior, 0, estimand, Metric(f"pass^{k}"))
    return float(stats.lower), float(stats.upper)


def _two_judged(seed: int) -> list[dict[str, Any]]:
    """Two equal agents whose judge errs at different rates, with labels that name the agent."""
    rng = np.random.default_rng([seed, len(DESIGNS)])
    p = success_probabilities(rng, MU, RHO, (TASKS,))
    cells, labels = {}, []
    for agent, (sensitivity, specificity) in zip("AB", RATES, strict=True):
        true = rng.random((TASKS, TRIALS)) < p[:, None]
        judged = np.where(true, rng.random(true.shape) < sensitivity, rng.random(true.shape) >= specificity)
        chosen = rng.permutation(TASKS * TRIALS)[:LABELS]
        task, trial = np.divmod(chosen, TRIALS)
        verdicts = {"judge": judged[task, trial].astype(int), "human": true[task, trial].astype(int)}
        labels.append(pd.DataFrame({**verdicts, "agent": agent, "task": task.astype(str), "trial": trial}))
        cells |= {(agent, str(i)): (int(c), TRIALS, 0, 0) for i, c in enumerate(judged.sum(axis=1))}
    outcomes = dataset_from_counts(cells, {"unit": "conversation", "indicator": "correct"})
    est = estimate(outcomes, k=KS, judge_labels=pd.concat(labels, ignore_index=True))
    rows = []
    for k in KS:
        row: dict[str, Any] = {"k": k}
        for name, one in (("corrected", est), ("uncorrected", est.uncorrected)):
            found = compare(one, "B", baseline="A", metric=f"pass^{k}")
            row |= {name: found.lower <= 0 <= found.upper, f"{name}_width": found.upper - found.lower}
            row |= {f"{name}_false": found.verdict in ("better", "worse")}
        rows.append(row)
    return rows


def judged_comparisons(size: int, *, seed: int, processes: int = 1) -> pd.DataFrame:
    """Coverage, width and false verdicts of the difference of two equal agents, corrected and uncorrected, by k."""
    found = spread(_two_judged, [seed * 1_000_000 + i for i in range(size)], processes=processes)
    return pd.DataFrame([row for rows in found for row in rows]).groupby("k").mean().reset_index()


def judge_coverage(size: int, *, seed: int, processes: int = 1) -> pd.DataFrame:
    """Coverage and mean width of 95 % intervals, corrected and uncorrected, by design."""
    jobs = [(design, seed * 1_000_000 + i) for design in DESIGNS for i in range(size)]
    frame = pd.DataFrame([row for rows in spread(_judged_once, jobs, processes=processes) for row in rows])
    return frame.groupby(["design", "estimand", "k"], sort=False).mean().reset_index()
