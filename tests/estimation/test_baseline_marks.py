"""The baseline next to the posterior: no point outside its interval, and nothing over other tasks without a mark."""

from pathlib import Path

import numpy as np
import pytest
from fits import counts
from hypothesis import given
from hypothesis import strategies as st

from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Conjugate
from agentic_bayes.outcomes.table import outcomes_from_table

UNEQUAL_N = Path(__file__).with_name("unequal_n.csv")  # 4 of 4, 0 of 3, 0 of 3
CELL = st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def baseline(outcomes, k):
    """Rows of the unbiased and the plug-in estimates."""
    return estimate(outcomes, "conjugate", k=k).baseline(columns="all", tasks=True)


def test_one_task_one_right_of_four():
    """pass@4 is estimated as 1 and Wilson's interval ended at .992: now it holds its point."""
    row = baseline(counts({"a": [(1, 4)]}), 4).query("metric == 'pass@4' and estimator == 'unbiased'").iloc[0]
    assert row["mean"] == 1
    assert row["lower"] == pytest.approx(0.207, abs=0.001)
    assert row["upper"] == 1


@given(st.lists(CELL, min_size=1, max_size=6))
def test_every_interval_holds_its_point(cells):
    """For every estimator, estimand and metric, up to k = 6."""
    rows = baseline(counts({"a": cells}), (1, 2, 3, 4, 5, 6)).dropna(subset=["mean"])
    assert (rows["lower"] <= rows["mean"]).all()
    assert (rows["mean"] <= rows["upper"]).all()


def test_a_mean_over_fewer_tasks_is_marked_on_the_number():
    """pass^4 of unequal_n.csv is 1.000 over one of three tasks, after pass^3 = .333 over all: flag and note say so."""
    rows = baseline(outcomes_from_table(UNEQUAL_N), (3, 4))
    rows = rows.query("estimator == 'unbiased' and estimand == 'tasks'").set_index("metric")
    assert rows.loc["pass^3", "mean"] == pytest.approx(1 / 3)
    assert (rows.loc["pass^4", "mean"], rows.loc["pass^4", "n_tasks"]) == (1, 1)
    assert rows.loc["pass^4", "flags"] == "fewer_tasks"
    assert rows.loc["pass^4", "note"] == "2 tasks of 3 with fewer than 4 trials left out"
    assert rows.loc["pass^3", "flags"] == ""


@given(st.lists(CELL, min_size=1, max_size=6))
def test_nothing_goes_the_wrong_way_in_k_without_a_mark(cells):
    """Where neither of two neighbouring k is marked, pass@k does not fall and pass^k does not rise."""
    rows = baseline(counts({"a": cells}), (1, 2, 3, 4, 5, 6)).query("estimand == 'population'")
    rows = rows.assign(family=rows["metric"].str[:5]).dropna(subset=["mean"])
    for (_, family), own in rows.groupby(["estimator", "family"]):
        steps = np.diff(own["mean"]) * (1 if family == "pass@" else -1)
        marked = own["flags"].str.contains("fewer_tasks").to_numpy()
        assert (steps[~(marked[1:] | marked[:-1])] >= -1e-12).all()


@pytest.mark.parametrize(("cell", "flagged"), [((0, 1), True), ((1, 2), True), ((0, 3), False), ((7, 10), False)])
def test_a_conjugate_mean_that_the_prior_makes_is_flagged(cell, flagged):
    """200 tasks × 0 of 1 give .333 however many tasks there are: the uniform prior counts as two trials."""
    est = estimate(counts({"a": [cell] * 200}), "conjugate")
    assert ("prior_driven" in est.flags("a", estimand="tasks")) == flagged
    if cell == (0, 1):
        assert est.distribution("a", estimand="tasks").mean == pytest.approx(1 / 3)
    pooled = estimate(counts({"a": [cell] * 200}), Conjugate(pool_tasks=True))
    assert "prior_driven" not in pooled.flags("a", estimand="tasks")
