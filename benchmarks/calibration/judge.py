"""Coverage of the model of judge errors: judged data with a few human labels, and the truth behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

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

    labelled: Literal["attempts", "tasks"]  # random attempts, or all attempts of random tasks
    precision: float | None = None  # of the Beta distribution of the tasks' error rates; None: all tasks have the same

    def __str__(self) -> str:
        errors = "same error rates for all tasks"
        if self.precision is not None:
            errors = f"errors clustered by task (precision {self.precision:g})"
        return f"labels on {'random attempts' if self.labelled == 'attempts' else 'whole tasks'}, {errors}"


DESIGNS = (JudgeDesign("attempts"), JudgeDesign("tasks"), JudgeDesign("tasks", 4.0))


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
    if design.labelled == "attempts":
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


def judge_coverage(size: int, *, seed: int, processes: int = 1) -> pd.DataFrame:
    """Coverage and mean width of 95 % intervals, corrected and uncorrected, by design."""
    jobs = [(design, seed * 1_000_000 + i) for design in DESIGNS for i in range(size)]
    frame = pd.DataFrame([row for rows in spread(_judged_once, jobs, processes=processes) for row in rows])
    return frame.groupby(["design", "estimand", "k"], sort=False).mean().reset_index()
