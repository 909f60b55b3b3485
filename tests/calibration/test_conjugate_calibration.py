"""Where the truth is drawn from the prior, the conjugate method's probabilities are exact; a wrong model's are not.

Rates over N independent truths are checked within 4 standard errors: a false-alarm rate of 6e-5 per check, under .2 %
for this file.
"""

import math

import numpy as np
import pytest
import xarray as xr
from fits import rows
from scipy import stats

from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Conjugate, Frequentist

K = 3


def simulated(truths, trials, seed):
    """Outcomes of agents × tasks with the given success probabilities."""
    n = np.broadcast_to(trials, truths.shape)
    successes = np.random.default_rng(seed).binomial(n, truths)
    dims = ("agent", "task")
    agents, tasks = (np.array([str(i) for i in range(size)], dtype=object) for size in truths.shape)
    return xr.Dataset(
        {"successes": (dims, successes), "trials": (dims, n.copy())}, coords={"agent": agents, "task": tasks}
    )


def covered(frame, truths):
    """Share of intervals that hold the truth."""
    return float(((frame["lower"] <= truths) & (truths <= frame["upper"])).mean())


def allowance(rate, size):
    return 4 * math.sqrt(rate * (1 - rate) / size)


@pytest.fixture(scope="module")
def tasks():
    """800 tasks with p ~ Uniform(0, 1) and 1 to 9 trials each."""
    generator = np.random.default_rng(1)
    truths = generator.uniform(size=(1, 800))
    return truths, simulated(truths, generator.integers(1, 10, size=truths.shape), seed=2)


@pytest.mark.parametrize(("ci_kind", "ci_prob"), [("eti", 0.95), ("hdi", 0.5)])
def test_intervals_of_tasks_cover_as_often_as_they_say(tasks, ci_kind, ci_prob):
    """Of 800 tasks' intervals for pass@3 and pass^3 the stated share holds the true value."""
    truths, outcomes = tasks
    frame = estimate(outcomes, method="conjugate", k=K, ci_prob=ci_prob, ci_kind=ci_kind).summary(
        columns="all", tasks=True
    )
    for metric, true in (("^", truths[0] ** K), ("@", 1 - (1 - truths[0]) ** K)):
        share = covered(rows(frame, estimand="task", metric=metric), true)
        assert abs(share - ci_prob) <= allowance(ci_prob, truths.size)


def test_ranks_of_the_truth_are_uniform(tasks):
    """The truth is as likely to be above as below any quantile of the draws: simulation-based calibration."""
    truths, outcomes = tasks
    draws = estimate(outcomes, method="conjugate", k=1).posterior.task_draws(0)
    ranks = (draws < truths[0]).mean(axis=0)
    observed = np.histogram(ranks, bins=20, range=(0, 1))[0]
    assert stats.chisquare(observed).pvalue > 6e-5


@pytest.fixture(scope="module")
def benchmarks():
    """120 agents with a benchmark of eight tasks each, every p ~ Uniform(0, 1), four trials."""
    truths = np.random.default_rng(3).uniform(size=(120, 8))
    return truths, simulated(truths, 4, seed=4)


def test_intervals_of_benchmarks_cover_as_often_as_they_say(benchmarks):
    """Of 120 intervals for the mean over the observed tasks, 95 % hold the true mean, for both metrics."""
    truths, outcomes = benchmarks
    frame = estimate(outcomes, method="conjugate", k=K).summary(columns="all")
    for metric, true in (("^", truths**K), ("@", 1 - (1 - truths) ** K)):
        share = covered(rows(frame, estimand="tasks", metric=metric), true.mean(axis=1))
        assert abs(share - 0.95) <= allowance(0.95, len(truths))


def test_pooled_tasks_cover_where_tasks_are_alike():
    """With one p per agent, drawn from the prior, the pooled interval holds it in 95 % of 150 cases."""
    truths = np.random.default_rng(5).uniform(size=(150, 1)) * np.ones((1, 8))
    frame = estimate(simulated(truths, 4, seed=6), method=Conjugate(pool_tasks=True), k=K).summary(columns="all")
    share = covered(rows(frame, estimand="population", metric="^"), truths[:, 0] ** K)
    assert abs(share - 0.95) <= allowance(0.95, len(truths))


@pytest.mark.parametrize(
    "how",
    [{"method": Conjugate(pool_tasks=True)}, {"method": Frequentist(estimator="plugin")}],
    ids=["pooled", "plug-in"],
)
def test_models_that_deny_differences_between_tasks_fail_the_same_check(benchmarks, how):
    """Where tasks differ, taking all trials as one binomial misses the benchmark's true pass^3 far too often."""
    truths, outcomes = benchmarks
    frame = estimate(outcomes, k=K, **how).summary(columns="all")
    share = covered(rows(frame, estimand="tasks", metric="^"), (truths**K).mean(axis=1))
    assert share < 0.95 - allowance(0.95, len(truths))
    assert share < 0.75
