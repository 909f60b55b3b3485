"""Numbers that others published or that follow by hand from a closed form."""

import numpy as np
import pytest
from fits import ALONE, EVERY, counts, fit_table, row, rows

from agentic_bayes.decisions.tiers import classify
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Frequentist


# a third shape for PyMC to compile: the reduced form is the exact engine, with which PyMC agrees on other counts
@pytest.fixture(params=ALONE)
def tau_bench(request, shared_data):
    return fit_table(request.param, str(shared_data("taubench_airline/tidy.csv")), (1, 2, 3, 4, 8))


class TestTauBenchAirline:
    """Yao et al. (2024), gpt-4o, 50 tasks × 4 trials."""

    def test_the_unbiased_estimates_are_the_published_ones(self, tau_bench):
        """Unbiased pass^1..4 of gpt-4o on tau-bench airline are .420 .273 .220 .200, as published."""
        found = rows(tau_bench.baseline(columns="all"), estimator="unbiased", estimand="tasks", metric="^")
        assert found["k"].tolist() == [1, 2, 3, 4, 8]
        np.testing.assert_allclose(found["mean"][:4], [0.42, 41 / 150, 0.22, 0.2], atol=1e-12)
        assert np.isnan(found["mean"].iloc[4])
        assert found["note"].iloc[4] == "no task has 8 trials"

    @pytest.mark.stack
    def test_the_intra_class_correlation_is_far_from_zero(self, tau_bench):
        """ρ of the 50 airline tasks is about .40 [.25, .56]: its tasks differ, and the plug-in formula is wrong."""
        from agentic_bayes.estimation.io import stacks

        rho = stacks.group(tau_bench.to_arviz(tasks=False), "posterior")["rho"].values.ravel()
        assert rho.mean() == pytest.approx(0.40, abs=0.01)
        assert np.quantile(rho, [0.025, 0.975]) == pytest.approx([0.25, 0.56], abs=0.025)

    def test_the_reliability_on_new_tasks_has_a_wide_interval(self, tau_bench):
        """Population pass^4 is about .18 [.09, .29]."""
        found = row(tau_bench.summary(columns="all"), estimand="population", metric="pass^4")
        assert found["mean"] == pytest.approx(0.18, abs=0.006)
        assert [found["lower"], found["upper"]] == pytest.approx([0.09, 0.29], abs=0.012)
        assert found["flags"] == ""

    def test_more_attempts_than_were_made_are_flagged_as_extrapolation(self, tau_bench):
        """Population pass^8 from four trials a task is about .108 [.035, .213] and says that it extrapolates."""
        found = row(tau_bench.summary(columns="all"), estimand="population", metric="pass^8")
        assert found["mean"] == pytest.approx(0.108, abs=0.004)
        assert [found["lower"], found["upper"]] == pytest.approx([0.035, 0.213], abs=0.012)
        assert found["flags"] == "extrapolated"

    def test_the_plug_in_value_stands_beside_them_under_its_name(self, tau_bench):
        """Plug-in pass^4 is .42^4 = .031, a sixth of the observed .200, and its rows are labelled `plugin`."""
        found = row(tau_bench.baseline(columns="all"), estimator="plugin", estimand="population", metric="pass^4")
        assert found["mean"] == pytest.approx(0.42**4, rel=1e-12)
        assert found["method"] == "frequentist"
        beyond = rows(tau_bench.baseline(columns="all"), estimator="plugin", k=8)
        assert set(beyond["flags"]) == {"extrapolated"}


class TestSevenOfTen:
    """One task with seven of ten trials right."""

    def test_conjugate(self):
        """7 of 10 at k = 3 gives pass@3 .945 [.773, .9987] and pass^3 .330 [.059, .707] in closed form."""
        frame = estimate(counts({"a": [(7, 10)]}), method="conjugate", k=3).summary(**EVERY)
        at = row(frame, estimand="task", metric="@")
        power = row(frame, estimand="task", metric="^")
        assert [at["mean"], at["lower"]] == pytest.approx([0.945, 0.773], abs=5e-4)
        assert at["upper"] == pytest.approx(0.9987, abs=5e-5)
        assert [power[name] for name in ("mean", "lower", "upper")] == pytest.approx([0.330, 0.059, 0.707], abs=5e-4)

    def test_frequentist(self):
        """7 of 10 at k = 3: plug-in .973 and .343, unbiased .9917 and .2917."""
        frame = estimate(counts({"a": [(7, 10)]}), method="conjugate", k=(1, 3)).baseline(columns="all")
        means = rows(frame, estimand="tasks", k=3).set_index(["estimator", "metric"])["mean"]
        assert means["plugin", "pass@3"] == pytest.approx(0.973)
        assert means["plugin", "pass^3"] == pytest.approx(0.343)
        assert means["unbiased", "pass@3"] == pytest.approx(0.9917, abs=5e-5)
        assert means["unbiased", "pass^3"] == pytest.approx(0.2917, abs=5e-5)


def test_the_papers_example():
    """Two of three conversations right: pass@k and pass^k as in the paper, and the tier is "not ready"."""
    est = estimate(counts({"a": [(2, 3)]}), method=Frequentist(estimator="plugin"), k=range(1, 6))
    frame = est.summary(columns="all")
    at = rows(frame, estimand="tasks", metric="@")["mean"]
    power = rows(frame, estimand="tasks", metric="^")["mean"]
    np.testing.assert_allclose(at, [0.667, 0.889, 0.963, 0.988, 0.996], atol=5e-4)
    np.testing.assert_allclose(power, [0.667, 0.444, 0.296, 0.198, 0.132], atol=5e-4)
    assert classify(pass_at_1=at.iloc[0], pass_pow_3=power.iloc[2])["not ready"] == 1.0


def test_the_plug_in_formula_understates_reliability_when_tasks_differ():
    """On tasks that always or never pass, observed pass^3 is the share of the former; plug-in cubes it."""
    outcomes = counts({"a": [(5, 5)] * 6 + [(0, 5)] * 6})
    frame = estimate(outcomes, method="conjugate", k=3).baseline(columns="all")
    means = rows(frame, estimand="tasks", metric="^").set_index("estimator")["mean"]
    assert means.to_dict() == pytest.approx({"unbiased": 0.5, "plugin": 0.125})
