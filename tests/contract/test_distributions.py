"""One contract for the distribution behind every posterior, whichever method made it."""

import numpy as np
import pytest
from fits import STRONGER, WEAKER, counts

from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Conjugate, Crossed, Frequentist, Hierarchical
from agentic_bayes.formatting import Metric

METHODS = [
    Hierarchical(),
    Hierarchical(pool_agents=False),
    Hierarchical(inflate=True),
    Crossed(),
    Conjugate(),
    Conjugate(pool_tasks=True),
]
METRICS = [Metric("pass^1"), Metric("pass^3"), Metric("pass@3")]
Q = np.array([0.025, 0.25, 0.5, 0.75, 0.975])
ERROR = 4 * np.sqrt(0.25 / 4000)  # of a share of 4,000 draws


@pytest.fixture(scope="module")
def estimates():
    outcomes = counts({"v1": WEAKER, "v2": STRONGER})
    return {method: estimate(outcomes, method, k=(1, 3)) for method in METHODS}


@pytest.fixture(params=METHODS, ids=repr)
def est(request, estimates):
    return estimates[request.param]


def distributions(est):
    """Every distribution of one number that the estimate has, made once and by name."""
    for estimand in (name for name in est.posterior.estimands if name != "task"):
        for metric in METRICS:
            yield est.distribution("v2", metric=metric, estimand=estimand)


def test_quantiles_rise_inside_the_unit_interval(est):
    """More probability, a larger quantile; the equal-tailed interval is made of two of them."""
    for one in distributions(est):
        quantiles = one.quantile(Q)
        assert (np.diff(quantiles) > 0).all()
        assert quantiles[0] >= 0
        assert quantiles[-1] <= 1
        assert one.interval(0.95, "eti") == pytest.approx((quantiles[0], quantiles[-1]), abs=1e-12)


def test_the_narrowest_interval_is_no_wider_than_the_equal_tailed_one(est):
    """And it holds as much: its ends have the stated probability between them."""
    for one in distributions(est):
        low, high = one.interval(0.9, "hdi")
        even = one.interval(0.9, "eti")
        assert high - low <= even[1] - even[0] + 1e-6
        assert one.at_least(low) - one.at_least(high) == pytest.approx(0.9, abs=0.01)


def test_the_probability_of_reaching_a_quantile_is_what_lies_above_it(est):
    """`at_least` and `quantile` are the same distribution function."""
    for one in distributions(est):
        for q, value in zip(Q, one.quantile(Q), strict=True):
            assert one.at_least(float(value)) == pytest.approx(1 - q, abs=0.004)


def test_draws_are_of_the_same_distribution(est):
    """Shares of the 4,000 draws below each quantile, mean and sd agree within 4 standard errors."""
    for one in distributions(est):
        draws = one.draws()
        assert draws.shape == (4000,)
        for q, value in zip(Q, one.quantile(Q), strict=True):
            # the inflated model's quantiles come from the masses of its nodes, to about .003 of the metric
            assert np.mean(draws <= value) == pytest.approx(q, abs=ERROR + 0.02)
        assert draws.mean() == pytest.approx(one.mean, abs=4 * one.sd / np.sqrt(4000) + 0.002)
        assert draws.std() == pytest.approx(one.sd, rel=0.06)


def test_a_density_integrates_to_one(est):
    """Where a density is known, it holds all but a tail of 1e-4 on each side."""
    for one in distributions(est):
        known = one.density()
        if known is not None:
            x, density = known
            assert (density >= -1e-9).all()
            assert np.sum(density) * (x[1] - x[0]) == pytest.approx(1 - 2e-4, abs=1e-5)


def test_tasks_have_one_number_each(est):
    """The distribution of every task is one of arrays: the same questions, one answer per task."""
    one = est.posterior.distribution(1, "task", METRICS[1])
    stats = one.stats(0.9, "eti")
    for name in ("mean", "sd", "median", "lower", "upper"):
        assert np.shape(getattr(stats, name)) == (12,)
    assert one.quantile(Q).shape == (5, 12)
    assert (stats.lower <= stats.median).all()
    assert (stats.median <= stats.upper).all()
    low, high = one.interval(0.9, "hdi")
    assert (high - low <= stats.upper - stats.lower + 2e-3).all()  # of draws: one draw more or less


def test_the_same_question_is_answered_by_the_same_object(est):
    """A distribution is made once; other k prepare the same posterior and change no number."""
    estimand = est.posterior.estimands[0]
    once = est.distribution("v1", metric="pass^3", estimand=estimand)
    assert est.distribution("v1", metric="pass^3", estimand=estimand) is once
    again = est.with_k((2, 3, 7)).distribution("v1", metric="pass^3", estimand=estimand)
    np.testing.assert_array_equal(again.draws(), once.draws())
    np.testing.assert_array_equal(again.quantile(Q), once.quantile(Q))


@pytest.mark.parametrize("estimator", ["unbiased", "plugin"])
def test_a_point_estimate_has_an_interval_and_nothing_else(estimator):
    """The frequentist method answers with estimate and confidence interval; draws and probabilities are refused."""
    one = estimate(counts({"v1": WEAKER}), Frequentist(estimator=estimator)).distribution("v1", metric="pass^1")
    low, high = one.interval(0.95, "eti")
    assert low < one.mean < high
    for ask in (one.draws, lambda: one.quantile(Q), lambda: one.at_least(0.5)):
        with pytest.raises(EstimateError, match="the frequentist method has no posterior"):
            ask()
