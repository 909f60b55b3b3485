"""Coverage and width over six kinds of truth, and what an interval costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from agentic_bayes.estimation.arithmetic import apply_metric
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array
from peer_study.environments import Environment

METRICS = ("pass^1", "pass^3", "pass@3")
DESIGNS = ((50, 5), (20, 4))  # tasks, trials
SAMPLERS, SAMPLERS_SHARE = ("pymc-nutpie",), 10  # they see the first tenth of the sets
MANY = 2_000_000  # tasks whose mean is the truth for a new task

Truth = Callable[[np.random.Generator, tuple[int, ...]], Array]


def _beta(mu: float, rho: float) -> Truth:
    kappa = 1 / rho - 1
    return lambda rng, size: rng.beta(mu * kappa, (1 - mu) * kappa, size)


def _two_kinds(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    return np.where(rng.random(size) < 0.6, 0.95, 0.3)


def _some_impossible(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    return np.where(rng.random(size) < 0.2, 0.0, rng.beta(18, 2, size))


def _logit_normal(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    return 1 / (1 + np.exp(-(0.8 + 1.5 * rng.standard_normal(size))))


TRUTHS: dict[str, Truth] = {
    "all tasks alike: p = .7": lambda rng, size: np.full(size, 0.7),
    "Beta, mean .7, ρ = .2": _beta(0.7, 0.2),
    "Beta, mean .7, ρ = .6: mostly easy or hard": _beta(0.7, 0.6),
    "two kinds: 60 % at p = .95, the others at .3": _two_kinds,
    "a fifth impossible, the others Beta(18, 2)": _some_impossible,
    "logit-normal: centre .8, sd 1.5": _logit_normal,
}


@dataclass(frozen=True)
class Samples:
    """Data sets with equal trials per task: distinct ones, and which of them each simulated one is."""

    trials: int
    distinct: list[list[int]]  # successes of each task, sorted: the tasks' order says nothing
    index: Array  # shape (truths, sets)
    tasks: Array  # true metric of these tasks, shape (truths, sets, metrics)
    population: Array  # true metric of a new task, shape (truths, metrics)


def simulate(tasks: int, trials: int, sets: int, seed: int) -> Samples:
    """`sets` data sets under each truth."""
    rows, these, new = [], [], []
    for i, draw in enumerate(TRUTHS.values()):
        rng = np.random.default_rng([seed, tasks, i])
        p = draw(rng, (sets, tasks))
        rows.append(np.sort(rng.binomial(trials, p), axis=1))
        many = draw(np.random.default_rng([seed, i]), (MANY,))
        these.append(np.stack([apply_metric(p, Metric(m)).mean(axis=1) for m in METRICS], axis=1))
        new.append([float(apply_metric(many, Metric(m)).mean()) for m in METRICS])
    distinct, index = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
    return Samples(trials, distinct.tolist(), index.reshape(len(rows), sets), np.array(these), np.array(new))


def study(
    environments: Mapping[str, Environment], sets: int, seed: int, report: Callable[[str], None]
) -> dict[str, Any]:
    """Coverage and width of every peer's intervals by design, truth, metric and estimand, and what they cost."""
    rows: list[dict[str, Any]] = []
    costs: list[dict[str, Any]] = []
    for tasks, trials in DESIGNS:
        for name, environment in environments.items():
            its_sets = max(1, sets // SAMPLERS_SHARE) if name in SAMPLERS else sets
            samples = simulate(tasks, trials, its_sets, seed)
            answer = environment.call("intervals", trials=trials, metrics=METRICS, sets=samples.distinct)
            report(f"intervals, T = {tasks}, {name}: {answer.get('error', 'done')}")
            design = {"peer": name, "tasks": tasks, "trials": trials, "sets": its_sets}
            if "error" in answer:
                costs.append(design | {"error": answer["error"]})
                continue
            result = answer["result"]
            rows += [design | row for row in covered(samples, result["values"])]
            times = {key: float(f"{result[key]:.3g}") for key in ("seconds", "first_seconds")}
            costs.append(design | times | {key: round(answer[key]) for key in ("imported_mb", "peak_mb")})
    return {"sets": sets, "seed": seed, "rows": rows, "costs": costs}


def covered(samples: Samples, values: list[dict[str, list[list[float]]]]) -> list[dict[str, Any]]:
    """Coverage and mean width by estimand, truth and metric, over the data sets that have an interval."""
    rows = []
    for estimand in values[0]:
        limits = np.array([value[estimand] for value in values], dtype=float)[samples.index]
        truth = samples.tasks if estimand == "tasks" else samples.population[:, None]
        hit = (limits[..., 0] <= truth) & (truth <= limits[..., 1])
        width = limits[..., 1] - limits[..., 0]
        exists = np.isfinite(width)
        for (t, kind), (m, metric) in product(enumerate(TRUTHS), enumerate(METRICS)):
            chosen = exists[t, :, m]
            if chosen.any():
                found = hit[t, chosen, m].mean(), width[t, chosen, m].mean(), chosen.mean()
                numbers = dict(zip(("coverage", "width", "exists"), (round(float(x), 4) for x in found), strict=True))
                rows.append({"estimand": estimand, "truth": kind, "metric": metric, **numbers})
    return rows
