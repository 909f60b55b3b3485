"""One contract for every method of estimation and every engine."""

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest
from fits import ENGINES, EVERY, KS, NEVER, STRONGER, UNEQUAL, WEAKER, counts, fit_two

from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Conjugate, Frequentist, method_of

METHODS = {
    "unbiased": {"method": "frequentist"},
    "plugin": {"method": Frequentist(estimator="plugin")},
    "conjugate": {"method": "conjugate"},
    "conjugate hdi": {"method": "conjugate", "ci_kind": "hdi"},
    "conjugate pooled": {"method": Conjugate(pool_tasks=True)},
    **{f"hierarchical {engine}": {"method": "hierarchical", "engine": engine} for engine in ENGINES},
}
DATA = {
    "two agents": (WEAKER, STRONGER),
    "unequal trials": (UNEQUAL, STRONGER),
    "all pass, all fail": (((4, 4),) * 12, ((0, 4),) * 12),
    "one trial each": (((1, 1),) * 8 + ((0, 1),) * 4, ((1, 1),) * 12),
    "one task": (((7, 10),) + (NEVER,) * 11, ((0, 1),) + (NEVER,) * 11),
}


@cache
def estimated(how, cells):
    """The estimate by a method from data, both by name."""
    given = METHODS[how]
    if given["method"] == "hierarchical":
        return fit_two(given["engine"], *DATA[cells])
    return estimate(counts(dict(zip(("v1", "v2"), DATA[cells], strict=True))), k=KS, **given)


@cache
def summary(how, cells):
    """Its summary, made once for all tests."""
    return estimated(how, cells).summary(**EVERY)


@cache
def fresh(method):
    """Outcomes of the two agents, and another estimate of them that nothing else uses."""
    outcomes = counts({"v1": WEAKER, "v2": STRONGER}, judge="somebody")
    before = outcomes.copy(deep=True)
    return outcomes, before, estimate(outcomes, k=KS, **METHODS[method])


@pytest.fixture(params=METHODS)
def method(request):
    return request.param


def sampled_late(method, cells):
    """Whether these data are left to the slow tests: each is one more run of NUTS, two are enough in CI."""
    return [pytest.mark.slow] * (method.endswith("pymc") and cells not in ("two agents", "all pass, all fail"))


@pytest.fixture(
    params=[
        pytest.param((method, cells), id=f"{method}-{cells}", marks=sampled_late(method, cells))
        for method, cells in itertools.product(METHODS, DATA)
    ]
)
def case(request):
    return request.param


@pytest.fixture
def frame(case):
    return summary(*case)


def by_k(frame, metric, column="mean"):
    """One row per agent, estimand and task, one column per k."""
    rows = frame[frame["metric"].str.startswith(metric)]
    return rows.pivot_table(column, ["agent", "estimand", "task"], "k", dropna=False, observed=True, sort=False)


def comparable(frame, metric):
    """Means per k, NaN where a mean is over other tasks than that for k = 1."""
    means, n_tasks = by_k(frame, metric), by_k(frame, metric, "n_tasks")
    return means.where(n_tasks.eq(n_tasks[1], axis=0))


def test_every_number_is_a_probability(frame):
    """Means, medians and bounds lie in [0, 1] or are NaN with a note or, for medians, by method."""
    for column in ("mean", "median", "lower", "upper"):
        known = frame[column].dropna()
        assert ((known >= 0) & (known <= 1)).all(), column
    unknown = frame[frame["mean"].isna()]
    assert (unknown["note"] != "").all()
    assert unknown[["lower", "upper"]].isna().all(axis=None)
    assert (frame["sd"].dropna() >= 0).all()


def test_numbers_lie_inside_their_interval(frame, case):
    """Lower ≤ mean, median ≤ upper, as far as these are about the same thing.

    A posterior's mean may lie beyond a very skew posterior's equal-tailed interval, but within one sd of its median.
    The unbiased estimate of a single task may lie beyond the interval for its p^k.
    """
    how = METHODS[case[0]]
    if method_of(how["method"]).name == "frequentist":
        known = frame.dropna(subset=["mean"])
        known = known if how["method"] != "frequentist" else known[known["estimand"] != "task"]
        assert len(known) > 0
        assert (known["lower"] <= known["mean"] + 1e-12).all()
        assert (known["mean"] <= known["upper"] + 1e-12).all()
        return
    known = frame.dropna(subset=["median"])
    assert len(known) > 0
    assert (abs(known["mean"] - known["median"]) <= 1.1 * known["sd"] + 1e-12).all()
    if how.get("ci_kind") != "hdi":  # the narrowest interval of a J-shaped density need not hold its median
        assert (known["lower"] <= known["median"]).all()
        assert (known["median"] <= known["upper"]).all()


def test_no_interval_has_zero_width(frame):
    """However uniform the data, no method claims certainty."""
    known = frame.dropna(subset=["lower", "upper"])
    assert len(known) > 0
    assert (known["upper"] - known["lower"] > 1e-9).all()


def test_more_attempts_help_one_metric_and_hurt_the_other(frame):
    """On the same tasks pass@k rises with k and pass^k falls."""
    rising, falling = comparable(frame, "pass@"), comparable(frame, "pass^")
    for here, there in itertools.pairwise(KS):
        assert not (rising[there] < rising[here] - 1e-12).any()
        assert not (falling[there] > falling[here] + 1e-12).any()


def test_one_attempt_is_both_metrics(frame):
    """pass^k ≤ pass^1 = pass@1 ≤ pass@k."""
    at, power = comparable(frame, "pass@"), comparable(frame, "pass^")
    np.testing.assert_allclose(at[1], power[1], atol=1e-10)
    for k in KS[1:]:
        assert not (power[k] > at[1] + 1e-10).any()
        assert not (at[k] < power[1] - 1e-10).any()


def test_the_same_outcomes_and_seed_give_the_same_bits(method):
    """A second estimate of the same counts is the same table, bit by bit."""
    first, second = estimated(method, "two agents"), fresh(method)[-1]
    pd.testing.assert_frame_equal(first.summary(**EVERY), second.summary(**EVERY), check_exact=True)
    pd.testing.assert_frame_equal(first.summary(**EVERY), first.summary(**EVERY), check_exact=True)


def test_the_outcomes_are_not_touched(method):
    """Neither the counts nor their attributes change, and the estimate does not change with them afterwards."""
    outcomes, before, est = fresh(method)
    table = est.summary(**EVERY)
    assert outcomes.identical(before)
    outcomes["successes"][...] = 0
    outcomes.attrs["judge"] = "somebody else"
    assert est.outcomes.attrs["judge"] == "somebody"
    pd.testing.assert_frame_equal(est.with_k(KS).summary(**EVERY), table, check_exact=True)


def test_the_order_of_metrics_and_k_does_not_matter(method):
    """A number asked for alone, before or after others, is the same number."""
    est = estimated(method, "two agents")
    alone = est.with_k(3).summary(columns="all")
    among = est.with_k((5, 3, 1, 2)).summary(columns="all")
    pd.testing.assert_frame_equal(alone, among[among["k"] == 3].reset_index(drop=True), check_exact=True)
