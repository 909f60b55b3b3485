"""The importance engine: what it says of itself, how far its numbers move between seeds, and estimates made apart."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from agentic_bayes.decisions.compare import compare
from agentic_bayes.estimation.estimate import Estimate, estimate
from agentic_bayes.estimation.methods.crossed_likelihood import expit_pair
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array
from calibration.simulate import DEFAULT, outcomes_of, spread, stats_of

AGENTS, TASKS, TRIALS = (2, 25), (8, 80), (2, 20)  # smallest and largest of the data sets of `accounts`
ALIKE = 4  # of so many of them, ρ is 0 in one
FIRST = 5120  # points of a first attempt
SEEDS = 10
SIZES = ((2, 50, 4), (5, 50, 5), (13, 80, 5))  # agents, tasks and trials of the data sets of `between_seeds`
METRICS = tuple(map(Metric, ("pass^1", "pass^3", "pass@3")))
APART = {"one agent": 1, "two agents on shared tasks": 2}  # agents of each of two estimates made apart


def crossed_sample(rng: np.random.Generator, trials: Array, *, alike: bool = False) -> dict[str, Array]:
    """Truth from the default priors (ρ = 0 where `alike`), and successes in trials of shape (agents, tasks)."""
    agents, tasks = trials.shape
    theta, sigma = rng.logistic(size=agents), abs(rng.normal(scale=2))
    rho = np.zeros(agents) if alike else DEFAULT.rho_prior.ppf(rng.random(agents))
    p = crossed_probabilities(rng, theta, sigma, rho, tasks)
    return {"theta": theta, "sigma": sigma, "rho": rho, "p": p, "successes": rng.binomial(trials, p)}


def crossed_probabilities(rng: np.random.Generator, theta: Array, sigma: float, rho: Array, tasks: int) -> Array:
    """Success probabilities under the crossed model, shape (agents, tasks)."""
    mu, nu = expit_pair(theta[:, None] + sigma * rng.normal(size=tasks))
    if not rho.any():
        return np.asarray(mu)
    kappa = (1 / rho - 1)[:, None]
    return rng.beta(np.maximum(mu * kappa, 1e-12), np.maximum(nu * kappa, 1e-12))


def crossed_fit(successes: Array, trials: Array, seed: int = 0) -> Estimate:
    """The crossed estimate as users get it, but for NUTS, which would follow where the engine fails."""
    return estimate(outcomes_of(successes, trials), "crossed", k=(1, 3), engine="importance", random_seed=seed)


def account(index: int, *, seed: int) -> dict[str, Any]:
    """What the engine says of its fit to one data set of random size."""
    rng = np.random.default_rng([seed, 16, index])
    agents, tasks, trials = (int(rng.integers(low, high + 1)) for low, high in (AGENTS, TASKS, TRIALS))
    alike = index % ALIKE == 0
    shape = np.full((agents, tasks), trials)
    found: Any = crossed_fit(crossed_sample(rng, shape, alike=alike)["successes"], shape).diagnostics
    row = {"agents": agents, "tasks": tasks, "trials": trials, "rho": 0.0 if alike else np.nan}
    return row | {"pareto_k": found.pareto_k, "ess": found.ess, "points": found.draws, "passed": found.passed}


def accounts(size: int, *, seed: int, processes: int = 1) -> pd.DataFrame:
    """One row per data set: its size, Pareto k and effective sample size of the last attempt, and its points."""
    return pd.DataFrame(spread(partial(account, seed=seed), range(size), processes=processes))


def _many_seeds(job: tuple[int, int, int, int], *, seed: int) -> dict[str, float]:
    """How far interval ends for new tasks, and P(better), move between ten seeds: the largest and the usual."""
    agents, tasks, trials, _ = job
    rng = np.random.default_rng([seed, *job])
    theta, delta = rng.normal(0.5, 1, (agents, 1)), rng.normal(size=tasks)
    p = expit(theta + 1.5 * delta + 0.7 * rng.normal(size=(agents, tasks)))
    shape = np.full(p.shape, trials)
    successes = rng.binomial(shape, p)
    ends, better = [], []
    for number in range(SEEDS):
        est = crossed_fit(successes, shape, number)
        pairs = ((agent, metric) for agent in range(agents) for metric in METRICS)
        rows = [stats_of(est.posterior, agent, "population", metric) for agent, metric in pairs]
        ends.append([(row.lower, row.upper) for row in rows])
        first, second = est.agents[:2]
        better.append(compare(est, second, baseline=first, metric="pass^3").prob_better)
    moved = {"ends": np.array(ends).reshape(SEEDS, -1), "better": np.array(better)[:, None]}
    return {
        f"{name}_{how}": value
        for name, values in moved.items()
        for how, value in (
            ("most", float(np.ptp(values, axis=0).max())),
            ("usual", float(np.sqrt(2 * values.var(axis=0, ddof=1).mean()))),  # between two seeds
        )
    }


def between_seeds(sets: int, *, seed: int, processes: int = 1) -> pd.DataFrame:
    """By size of data: the largest difference between two of ten seeds, and the root mean square of two seeds'."""
    rows = []
    for size in SIZES:
        found = pd.DataFrame(
            spread(partial(_many_seeds, seed=seed), [(*size, i) for i in range(sets)], processes=processes)
        )
        row: dict[str, Any] = dict(zip(("agents", "tasks", "trials"), size, strict=True)) | {"sets": sets}
        for name in ("ends", "better"):
            row[f"{name}_most"] = found[f"{name}_most"].max()
            row[f"{name}_usual"] = float(np.sqrt((found[f"{name}_usual"] ** 2).mean()))
        rows.append(row)
    return pd.DataFrame(rows)


def _apart_once(job: tuple[int, int], *, seed: int) -> tuple[float, bool]:
    """The correlation of two estimates' draws of pass^3, and whether their equal agents are told apart."""
    agents, index = job
    rng = np.random.default_rng([seed, 17, agents, index])
    shape = np.full((agents, 40), 4)
    pair = [
        crossed_fit(c, shape) if agents > 1 else estimate(outcomes_of(c, shape), k=(1, 3))
        for c in (rng.binomial(shape, rng.beta(1.2, 0.8, shape.shape)) for _ in range(2))
    ]
    name = pair[0].agents[0]
    drawn = [est.metric_draws(name, metric="pass^3") for est in pair]
    verdict = compare(pair[1], name, baseline=pair[0]).verdict
    return float(np.corrcoef(*drawn)[0, 1]), verdict in ("better", "worse")


def made_apart(size: int, *, seed: int, processes: int = 1) -> pd.DataFrame:
    """Pairs of estimates of equal agents, each on tasks of its own: correlation of draws and false verdicts."""
    rows = []
    for name, agents in APART.items():
        jobs = [(agents, i) for i in range(size)]
        r, told = np.array(spread(partial(_apart_once, seed=seed), jobs, processes=processes)).T
        rows.append(
            {"estimates": name, "pairs": size, "mean_r": r.mean(), "rms_r": np.sqrt((r**2).mean())}
            | {"largest_r": np.abs(r).max(), "false_verdicts": told.mean()}
        )
    return pd.DataFrame(rows)
