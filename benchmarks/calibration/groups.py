"""Groups of tasks: simulation-based calibration, and intervals of a family of tasks that was not seen."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from agentic_bayes.estimation.arithmetic import apply_metric
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.distribution import Distribution
from agentic_bayes.estimation.engines.grid.betabinomial import mean_power
from agentic_bayes.estimation.groups import NEW, Grouping
from agentic_bayes.estimation.methods.grouped import GroupedPosterior
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array
from calibration.sbc import Study, study_of
from calibration.simulate import DEFAULT, counts_of, exact_posterior, spread, success_probabilities

ONE, CUBE = Metric("pass^1"), Metric("pass^3")
GROUPS, SIZE, TRIALS = 4, 5, 4  # of the data sets of `study`
FAMILIES, VARIATIONS, TRIES = 5, 20, 3  # of those of `new_families`
BETWEEN, WITHIN = 0.8, 0.3  # their spread on the logit scale


def grouped(c: Array, n: int, groups: int) -> tuple[GroupedPosterior, Counts]:
    """The posterior of one agent whose tasks come group by group, n trials each."""
    counts = counts_of(c, np.full(c.size, n))
    names = tuple(f"group {i + 1}" for i in range(groups))
    grouping = Grouping("group", names, np.repeat(np.arange(groups), c.size // groups), None)
    return GroupedPosterior.of(counts, DEFAULT, grouping, (ONE, CUBE), 0), counts


def study(size: int, *, seed: int, processes: int = 1) -> Study:
    """One agent, four groups of five tasks × 4 trials, truth from the default priors, `size` times."""
    return study_of(spread(partial(_study_once, seed=seed), range(size), processes=processes))


def _study_once(index: int, *, seed: int) -> tuple[dict, dict, dict]:
    rng = np.random.default_rng([seed, 20, index])
    tau, rho = abs(rng.normal()), float(DEFAULT.rho_prior.ppf(rng.random()))
    mu = expit(rng.logistic() + tau * rng.normal(size=GROUPS + 1))
    p = success_probabilities(rng, np.repeat(mu[:-1], SIZE), rho, (GROUPS * SIZE,))
    posterior, _ = grouped(rng.binomial(TRIALS, p), TRIALS, GROUPS)
    new = mean_power(mu, np.array(rho), np.array(1 - rho), 0, 0, CUBE.k)
    seen = apply_metric(p, CUBE)
    first = posterior.grouping.names[0]  # type: ignore[union-attr]
    known: dict[str, tuple[Distribution, float]] = {
        f"{words} {metric}": (posterior.distribution(0, "population", metric, label), float(values[at]))
        for words, label, at in (("group", first, 0), ("new group", NEW, -1))
        for metric, values in ((ONE, mu), (CUBE, new))
    }
    known["tasks of the group pass^3"] = posterior.distribution(0, "tasks", CUBE, first), float(seen[:SIZE].mean())
    known["tasks of all groups pass^3"] = posterior.distribution(0, "tasks", CUBE, ""), float(seen.mean())
    ranks, covered, width = {}, {}, {}
    for name, (found, true) in known.items():
        ranks[name] = 1 - found.at_least(true)
        lower, upper = found.interval(0.95, "eti")
        covered[name], width[name] = lower <= true <= upper, upper - lower
    drawn = posterior.hyper_draws()
    return ranks | {"ρ": np.mean(drawn["rho"] < rho), "τ": np.mean(drawn["tau"] < tau)}, covered, width


def _new_family(index: int, *, seed: int) -> dict[str, Any]:
    """Whether intervals with and without families hold the success rate of a family that was not seen."""
    rng = np.random.default_rng([seed, 21, index])
    theta = rng.normal(BETWEEN, BETWEEN, FAMILIES + 1)
    p = expit(np.repeat(theta[:-1], VARIATIONS) + WITHIN * rng.normal(size=FAMILIES * VARIATIONS))
    true = np.mean(expit(theta[-1] + WITHIN * rng.normal(size=4000)))
    posterior, counts = grouped(rng.binomial(TRIES, p), TRIES, FAMILIES)
    found = {
        "grouped": posterior.distribution(0, "population", ONE, NEW),
        "ungrouped": exact_posterior(counts, metrics=(ONE,)).distribution(0, "population", ONE),
    }
    row: dict[str, Any] = {}
    for name, one in found.items():
        lower, upper = one.interval(0.95, "eti")
        row |= {name: lower <= true <= upper, f"{name}_width": upper - lower}
    return row


def new_families(size: int, *, seed: int, processes: int = 1) -> pd.DataFrame:
    """Coverage and mean width, with families and without: one row."""
    found = pd.DataFrame(spread(partial(_new_family, seed=seed), range(size), processes=processes))
    return found.mean().to_frame().T.assign(sets=size)
