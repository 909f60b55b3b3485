"""Large k, large numbers of trials and extreme intervals: nothing overflows, nothing takes long, all stays in order."""

import numpy as np
import pytest
from fits import EVERY, UNEQUAL, counts
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import reduced

from agentic_bayes.decisions.compare import compare
from agentic_bayes.decisions.tiers import classify
from agentic_bayes.errors import AgenticBayesError, InvalidArgument, UnknownName
from agentic_bayes.estimation.engines.grid import betabinomial
from agentic_bayes.estimation.engines.grid.betabinomial import mean_power
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.outcomes.count import count_outcomes

MANY = 10**6
CASES = {
    "half": ((MANY // 2, MANY),) * 6,
    "all": ((MANY, MANY),) * 5,
    "none": ((0, MANY),) * 5,
    "always or never": ((0, MANY), (MANY, MANY)) * 3,
    "spread": tuple((i * MANY // 10, MANY) for i in range(11)),
    "beside one trial": ((MANY - 1, MANY), (0, 1)),
    "beyond the whole numbers of a float's half": ((5, 2**53 - 1), (2**53 - 1, 2**53 - 1)),
}
FITS = {
    "hierarchical": {},
    "inflated": {"method": Hierarchical(inflate=True)},
    "crossed": {"method": "crossed", "engine": "importance"},
    "conjugate": {"method": "conjugate"},
}


def assert_in_order(table):
    """0 ≤ lower ≤ median ≤ upper ≤ 1, nothing undefined."""
    for low, high in (("lower", "median"), ("median", "upper")):
        assert (table[low] <= table[high]).all()
    assert table[["mean", "lower", "upper"]].ge(0).all(axis=None)
    assert table[["mean", "lower", "upper"]].le(1).all(axis=None)
    assert table["sd"].ge(0).all()


# one case of the inflated model, whose probabilities of 0 and 1 make it slow, stands for all; of the crossed two
LONG = {("inflated", case) for case in CASES if case != "spread"} | {("crossed", "half"), ("crossed", "none")}


@pytest.mark.parametrize(
    ("fit", "case"),
    [
        pytest.param(fit, case, marks=pytest.mark.slow if (fit, case) in LONG else ())
        for fit in FITS
        for case in CASES
        # importance weights of 10^16 trials overflow, and NUTS takes over
        if fit != "crossed" or not case.startswith("beyond")
    ],
)
def test_millions_of_trials_are_summarised(fit, case):
    """Intervals hold their medians at every scale, also where p^50 is far below the spacing of floats near 1."""
    est = estimate(counts({"solo": CASES[case]}), k=(1, 50), **FITS[fit])
    assert_in_order(est.summary(**EVERY))


@given(
    st.integers(0, 2000),
    st.integers(0, 2000),
    st.integers(1, 1500),
    st.floats(1e-6, 1 - 1e-6),
    st.floats(1e-12, 1 - 1e-6),
)
@settings(max_examples=reduced(60), deadline=None)
def test_a_high_power_is_the_product_it_stands_for(c, more, k, mu, rho):
    """E p^k by log-gamma differences equals the product of its k factors."""
    at = np.array([mu]), np.array([rho]), np.array([1 - rho])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(betabinomial, "LONGEST_PRODUCT", 0)
        (short,) = mean_power(*at, c, c + more, k)
        patch.setattr(betabinomial, "LONGEST_PRODUCT", 10**9)
        (long,) = mean_power(*at, c, c + more, k)
    assert short == pytest.approx(long, rel=1e-8, abs=1e-290)


@pytest.mark.parametrize("fit", FITS)
def test_a_million_attempts_are_a_number_like_any_other(fit):
    """A k of 10^6 is reported; more is refused, in a list, alone and for a comparison."""
    est = estimate(counts({"solo": UNEQUAL, "other": UNEQUAL}), k=MANY, **FITS[fit])
    assert_in_order(est.summary(columns="all"))
    for ask in (
        lambda: est.with_k((1, MANY + 1)),
        lambda: est.metric_draws("solo", metric=f"pass@{MANY + 1}"),
        lambda: compare(est, "solo", baseline="other", metric=f"pass^{MANY + 1}"),
    ):
        with pytest.raises(InvalidArgument, match=r"^k must be at most 1,000,000, got 1,000,001$"):
            ask()


@pytest.mark.parametrize("ci_prob", [1e-300, 1 - 1e-16])
@pytest.mark.parametrize("settings", [{}, {"ci_kind": "hdi"}, {"method": "frequentist"}], ids=str)
def test_intervals_of_any_probability_are_defined(ci_prob, settings):
    """A probability next to 0 or 1 gives intervals, not infinities."""
    est = estimate(counts({"solo": UNEQUAL}), ci_prob=ci_prob, k=(1, 2), **settings)
    for table in (est.summary(columns="all"), est.baseline(columns="all")):
        assert (table["lower"] <= table["upper"]).all()


def test_an_estimand_has_flags_only_if_there_is_one():
    """The name of an estimand is checked."""
    with pytest.raises(UnknownName, match=r"unknown estimand 'tsks': did you mean 'tasks'\?"):
        estimate(counts({"solo": UNEQUAL}), method="conjugate").flags("solo", estimand="tsks")


@pytest.mark.parametrize("wrong", [5, "estimate.nc"])
def test_decisions_need_an_estimate(wrong):
    """Something else is refused by name, and so is what is counted."""
    for ask in (lambda: compare(wrong, "a", baseline="b"), lambda: classify(wrong)):
        with pytest.raises(InvalidArgument, match=r"^est must be an Estimate \(estimate\(\) makes one\), got "):
            ask()
    told = r"^evidence must be an Evidence \(assess\(\) makes one\), got |^estimate.nc: no such file"
    with pytest.raises(AgenticBayesError, match=told):
        count_outcomes(wrong)
