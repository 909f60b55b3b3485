"""The crossed model: simulation-based calibration, and single agents and differences at fixed truths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from agentic_bayes.estimation.arithmetic import apply_metric
from agentic_bayes.estimation.distribution import Weighted
from agentic_bayes.estimation.engines.grid.betabinomial import mean_power
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.crossed import CrossedPosterior
from agentic_bayes.estimation.methods.crossed_likelihood import delta_grid, expit_pair
from agentic_bayes.estimation.methods.options import Crossed
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array
from calibration import decisions
from calibration.importance import METRICS, crossed_fit, crossed_probabilities, crossed_sample
from calibration.sbc import Study, study_of
from calibration.simulate import counts_of, exact_posterior, outcomes_of, spread

CUBE = Metric("pass^3")
ESTIMANDS: tuple[Estimand, ...] = ("population", "tasks")
WRONG_SIGMA = Crossed(sigma=stats.halfnorm(scale=0.5))


def population(theta: Array, sigma: float, rho: Array, metric: Metric) -> Array:
    """The metric of a new task for each agent, by integrating over its difficulty."""
    delta, log_weight = delta_grid(0.1)
    share = expit_pair(theta[:, None] + sigma * delta)[0 if metric.power else 1]
    mean = mean_power(share, rho[:, None], 1 - rho[:, None], 0, 0, metric.k) @ np.exp(log_weight)
    return mean if metric.power else 1 - mean


def study(size: int, *, seed: int, method: Crossed | None = None, processes: int = 1) -> Study:
    """Two agents on 15 to 39 shared tasks with 1 to 4 trials, truth from the default priors, `size` times."""
    work = partial(_study_once, method=method or Crossed(), seed=seed)
    return study_of(spread(work, range(size), processes=processes))


def _study_once(index: int, *, method: Crossed, seed: int) -> tuple[dict, dict, dict]:
    rng = np.random.default_rng([seed, 18, index])
    trials = np.tile(rng.integers(1, 5, size=int(rng.integers(15, 40))), (2, 1))
    truth = crossed_sample(rng, trials)
    est = estimate(outcomes_of(truth["successes"], trials), method, k=(1, 3), engine="importance")
    posterior: Any = est.posterior
    ranks, covered, width = {}, {}, {}
    for name, (known, true) in _quantities(posterior, truth).items():
        ranks[name] = _rank(known, true, rng)
        lower, upper = known.interval(0.95, "eti")
        covered[name], width[name] = lower <= true <= upper, upper - lower
    return ranks, covered, width


def _quantities(posterior: CrossedPosterior, truth: dict[str, Any]) -> dict[str, tuple[Weighted, float]]:
    """What is known of each quantity (of the first agent, or second - first), and its true value."""
    new = [population(truth["theta"], truth["sigma"], truth["rho"], metric) for metric in METRICS]
    seen = [apply_metric(truth["p"], metric) for metric in METRICS]

    def known(agent: int, estimand: Estimand, metric: Metric) -> Weighted:
        found = posterior.distribution(agent, estimand, metric)
        assert isinstance(found, Weighted)
        return found

    def weighted(values: Array) -> Weighted:
        return Weighted.of(values, posterior.weight, posterior.picked)

    found = {
        "θ": (weighted(posterior.theta[:, 0]), float(truth["theta"][0])),
        "σ": (weighted(posterior.sigma), float(truth["sigma"])),
        "ρ": (weighted(posterior.rho[:, 0]), float(truth["rho"][0])),
    }
    for metric, mean, by_task in zip(METRICS, new, seen, strict=True):
        found[f"population {metric}"] = known(0, "population", metric), float(mean[0])
        found[f"tasks {metric}"] = known(0, "tasks", metric), float(by_task[0].mean())
    task = known(0, "task", CUBE)
    assert task.place is not None
    cube = METRICS.index(CUBE)
    found["task pass^3"] = weighted(task.values[:, task.place[0]]), float(seen[cube][0, 0])
    for estimand, true in zip(ESTIMANDS, (new[cube], seen[cube].mean(axis=1)), strict=True):
        found[f"difference of {estimand} pass^3"] = difference(posterior, estimand, CUBE), float(true[1] - true[0])
    return found


def difference(posterior: Any, estimand: Estimand, metric: Metric) -> Weighted:
    """Second agent - first, point by point."""
    first, second = (posterior.distribution(agent, estimand, metric).values for agent in (0, 1))
    return Weighted.of(second - first, posterior.weight, posterior.picked)


def _rank(known: Weighted, true: float, rng: np.random.Generator) -> float:
    """Posterior probability below the truth; ties (p that rounds to 0 or 1) in random order."""
    below = known.weight[known.values < true].sum()
    return float(np.clip(below + rng.random() * known.weight[known.values == true].sum(), 0, 1))


@dataclass(frozen=True)
class Truth:
    """Two equal agents on the same tasks, and how many tasks and trials."""

    kind: str  # `MIXTURE`, or the crossed model at this σ and ρ and θ = 1.4
    sigma: float
    rho: float
    tasks: int
    trials: int


MIXTURE, CROSSED, THETA = "mixture", "crossed", 1.4
MIXED = decisions.PAIRINGS["three kinds"]
TRUTHS = (
    *(Truth(CROSSED, sigma, rho, 20, 3) for sigma, rho in product((0.0, 1.5), (0.0, 0.2))),
    Truth(MIXTURE, np.nan, np.nan, MIXED.tasks, decisions.TRIALS),
)
MODELS = ("crossed", "hierarchical")


def probabilities(rng: np.random.Generator, truth: Truth, tasks: int) -> Array:
    """True success probabilities of the two agents, shape (2, tasks)."""
    if truth.kind == MIXTURE:
        return decisions.success_probabilities(rng, 0.0, MIXED, tasks)
    return crossed_probabilities(rng, np.full(2, THETA), truth.sigma, np.full(2, truth.rho), tasks)


def true_population(truth: Truth) -> dict[Metric, float]:
    """The metrics of a new task: exactly, or for the mixture from two million tasks."""
    if truth.kind == MIXTURE:
        p = probabilities(np.random.default_rng(99), truth, decisions.BIG)
        return {metric: float(apply_metric(p, metric).mean()) for metric in METRICS}
    sure = np.full(1, THETA), truth.sigma, np.full(1, truth.rho)
    return {metric: float(population(*sure, metric)[0]) for metric in METRICS}


def fixed_truths(truths: Sequence[Truth], size: int, *, seed: int, processes: int = 1) -> pd.DataFrame:
    """Coverage and mean width of each model, and of the paired difference, by truth, estimand and metric.

    The hierarchical model is asked about new tasks only. Single-agent rows count both agents of each data set.
    `told_apart` is the share of data sets in which the interval of the difference of the equal agents excludes 0.
    """
    rows = []
    for truth in truths:
        work = partial(_fixed_once, truth=truth, new=true_population(truth), seed=seed)
        found = pd.DataFrame([row for rows in spread(work, range(size), processes=processes) for row in rows])
        means = found.groupby(["estimand", "metric"], sort=False).mean().reset_index()
        rows.append(means.assign(**asdict(truth), sets=size))
    return pd.concat(rows, ignore_index=True)


def _fixed_once(index: int, *, truth: Truth, new: dict[Metric, float], seed: int) -> list[dict[str, Any]]:
    """One row per estimand and metric: the mean over the two agents, and the difference."""
    key = 0 if truth.kind == MIXTURE else 1 + round(100 * truth.sigma) + round(10_000 * truth.rho)
    rng = np.random.default_rng([seed, 19, truth.tasks, truth.trials, key, index])
    p = probabilities(rng, truth, truth.tasks)
    trials = np.full(p.shape, truth.trials)
    successes = rng.binomial(trials, p)
    crossed = crossed_fit(successes, trials).posterior
    exact = exact_posterior(counts_of(successes, trials), metrics=METRICS)
    rows = []
    for estimand, metric in product(ESTIMANDS, METRICS):
        seen = apply_metric(p, metric).mean(axis=1)
        row: dict[str, Any] = {"estimand": estimand, "metric": str(metric)}
        for name, posterior in zip(MODELS, (crossed, exact), strict=True):
            if name == "hierarchical" and estimand == "tasks":
                continue
            ends = [posterior.distribution(agent, estimand, metric).interval(0.95, "eti") for agent in (0, 1)]
            true = seen if estimand == "tasks" else np.full(2, new[metric])
            row[name] = np.mean([lower <= one <= upper for (lower, upper), one in zip(ends, true, strict=True)])
            row[f"{name}_width"] = np.mean([upper - lower for lower, upper in ends])
        lower, upper = difference(crossed, estimand, metric).interval(0.95, "eti")
        row["difference"] = lower <= (seen[1] - seen[0] if estimand == "tasks" else 0.0) <= upper
        row["told_apart"] = not lower <= 0 <= upper
        rows.append(row)
    return rows
