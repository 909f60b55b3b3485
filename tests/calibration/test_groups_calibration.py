"""Groups of tasks: simulation-based calibration, and the interval of a family that was not seen."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import kstest

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.grid.exact import GridPosterior
from agentic_bayes.estimation.engines.grid.quadrature import fit_agents
from agentic_bayes.estimation.groups import NEW, Grouping
from agentic_bayes.estimation.methods.grouped import GroupedPosterior
from agentic_bayes.estimation.methods.near_zero import NearZero
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.formatting import Metric

ONE, THREE = Metric("pass^1"), Metric("pass^3")
METHOD = Hierarchical(rho=NearZero(0.25, 300))


def fitted(c, n, groups, size, seed):
    trials = np.full((1, c.size), n)
    counts = Counts(("agent",), tuple(map(str, range(c.size))), c[None], trials, 0 * trials)
    names = tuple(f"g{i}" for i in range(groups))
    grouping = Grouping("group", names, np.repeat(np.arange(groups), size), None)
    return GroupedPosterior.of(counts, METHOD, grouping, (ONE, THREE), seed), counts


def shares_below_the_truth(sets, seed, *, groups=4, size=5, n=4):
    """Posterior probability below the truth: μ and pass^3 of a group and of a new one, pass^3 over tasks, ρ, τ."""
    rng, rows = np.random.default_rng(seed), []
    for number in range(sets):
        tau, rho = abs(rng.normal()), rng.random() if rng.random() < 0.75 else rng.beta(1, 300)
        rho = min(max(rho, 1e-9), 1 - 1e-9)
        mu, kappa = expit(rng.logistic() + tau * rng.normal(size=groups + 1)), 1 / rho - 1
        inside = np.repeat(mu[:-1], size)
        p = rng.beta(np.maximum(inside * kappa, 1e-300), np.maximum((1 - inside) * kappa, 1e-300))
        posterior, _ = fitted(rng.binomial(n, p), n, groups, size, number)
        row = []
        for label, value in (("g0", mu[0]), (NEW, mu[-1])):
            cubed = np.prod([(value * kappa + j) / (kappa + j) for j in range(3)])
            for metric, truth in ((ONE, value), (THREE, cubed)):
                found = posterior.distribution(0, "population", metric, label)
                row.append(1 - found.at_least(float(truth)))
        for label, truth in (("g0", (p[:size] ** 3).mean()), ("", (p**3).mean())):
            row.append(np.mean(posterior.distribution(0, "tasks", THREE, label).draws() < truth))
        drawn = posterior.hyper_draws()
        row += [np.mean(drawn["rho"] < rho), np.mean(drawn["tau"] < tau)]
        rows.append(row)
    return np.array(rows)


def check_uniform(shares):
    for column in shares.T:
        assert kstest(column, "uniform").pvalue > 0.001
    inside = ((shares > 0.025) & (shares < 0.975)).mean(axis=0)
    assert (np.abs(inside - 0.95) < 4 * np.sqrt(0.95 * 0.05 / len(shares))).all()


def test_truths_drawn_from_the_prior_fall_anywhere_in_the_posterior():
    """Ranks of groups, a new group, tasks, ρ and τ are uniform, in few sets."""
    check_uniform(shares_below_the_truth(9, seed=1))


@pytest.mark.slow
def test_truths_drawn_from_the_prior_fall_anywhere_in_the_posterior_in_a_thousand_sets():
    """The same in a thousand sets."""
    check_uniform(shares_below_the_truth(1000, seed=2))


def new_family_coverage(sets, seed, *, families=5, variations=20, n=3):
    """How often the intervals with and without families hold the rate of a family that was not seen."""
    rng, held = np.random.default_rng(seed), []
    for number in range(sets):
        theta = rng.normal(0.8, 0.8, families + 1)
        p = expit(np.repeat(theta[:-1], variations) + rng.normal(0, 0.3, families * variations))
        truth = np.mean(expit(theta[-1] + 0.3 * rng.normal(size=4000)))
        grouped, counts = fitted(rng.binomial(n, p), n, families, variations, number)
        plain = GridPosterior(counts=counts, random_seed=number, fit=fit_agents(counts, METHOD), metrics=(ONE,))
        found = grouped.distribution(0, "population", ONE, NEW), plain.distribution(0, "population", ONE)
        held.append([low <= truth <= high for low, high in (one.interval(0.95, "eti") for one in found)])
    return np.mean(held, axis=0)


def test_the_interval_of_a_new_family_holds_it_where_the_ungrouped_one_does_not():
    """Twenty variations of five families, in few sets."""
    grouped, plain = new_family_coverage(8, seed=3)
    assert grouped >= 6 / 8  # of 95 %, fewer come with probability .006
    assert plain < 0.6


@pytest.mark.slow
def test_the_interval_of_a_new_family_holds_it_in_92_of_100_sets():
    """The same in 400 sets."""
    grouped, plain = new_family_coverage(400, seed=4)
    assert grouped >= 0.92
    assert plain < 0.6
