"""What each method estimates: the estimands it defines, their formulas, and what it says where it knows nothing."""

import math
from functools import cache

import arviz as az
import numpy as np
import pytest
from fits import ALONE, ENGINES, EVERY, KS, NEVER, STRONGER, UNEQUAL, WEAKER, counts, fit, fit_two, row, rows
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from strategies import reduced

from agentic_bayes import numerics
from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation import arithmetic
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.io import stacks
from agentic_bayes.estimation.methods.options import Conjugate, Frequentist

pytestmark = pytest.mark.stack

UNTRIED = ((0, 0, 2),) * 3 + (NEVER,) * 9


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


@cache
def posterior(est):
    return stacks.group(est.to_arviz(), "posterior")


class TestWhichMethodDefinesWhich:
    """A method has rows only for the estimands it defines."""

    @pytest.mark.parametrize(
        ("how", "defined"),
        [
            ({"method": "frequentist"}, {"population", "tasks", "task"}),
            ({"method": "conjugate"}, {"tasks", "task"}),
            ({"method": Conjugate(pool_tasks=True)}, {"population", "tasks", "task"}),
        ],
    )
    def test_closed_forms(self, how, defined):
        """A conjugate estimate has a population only when tasks are pooled; the frequentist one has all three."""
        assert set(estimate(counts({"a": UNEQUAL}), **how).summary(**EVERY)["estimand"]) == defined

    @pytest.mark.parametrize("engine", ALONE)
    def test_hierarchical(self, engine):
        """A hierarchical estimate has all three estimands."""
        assert set(fit(engine, UNEQUAL).summary(**EVERY)["estimand"]) == {
            "population",
            "tasks",
            "task",
        }

    def test_an_undefined_estimand_is_refused_and_the_defined_ones_are_named(self):
        """Draws of an estimand that the method lacks are an error, not a substitute."""
        est = estimate(counts({"a": UNEQUAL}), method="conjugate")
        with pytest.raises(EstimateError, match=r"'population' is not defined by Conjugate\(\).*\['tasks'\]"):
            est.metric_draws("a", metric="pass^1")

    def test_the_frequentist_population_and_tasks_have_the_same_estimate(self):
        """The baseline makes no difference between the tasks observed and new ones of their kind."""
        frame = estimate(counts({"a": UNEQUAL}), method="frequentist", k=KS).summary(columns="all")
        population, tasks = rows(frame, estimand="population"), rows(frame, estimand="tasks")
        np.testing.assert_array_equal(population["mean"], tasks["mean"])


class TestPopulation:
    """A new task of the same kind."""

    @pytest.mark.parametrize("engine", ALONE)
    def test_is_the_closed_form_of_every_draw(self, engine):
        """Population pass^k is Π (α+j)/(α+β+j), and pass@k is 1 - Π (β+j)/(α+β+j), with α = μκ and β = (1-μ)κ."""
        draws = posterior(fit(engine, UNEQUAL)).isel(agent=0)
        kappa = 1 / draws["rho"].values - 1
        alpha, beta = draws["mu"].values * kappa, (1 - draws["mu"].values) * kappa
        population = draws.sel(estimand="population")
        for k in KS:
            power = np.prod([(alpha + j) / (alpha + beta + j) for j in range(k)], axis=0)
            miss = np.prod([(beta + j) / (alpha + beta + j) for j in range(k)], axis=0)
            np.testing.assert_allclose(population["pass_pow_k"].sel(k=k), power, rtol=1e-6)
            np.testing.assert_allclose(population["pass_at_k"].sel(k=k), 1 - miss, rtol=1e-6, atol=1e-9)

    @pytest.mark.parametrize("engine", ALONE)
    def test_at_one_attempt_is_the_population_mean(self, engine):
        """pass@1 and pass^1 of the population are μ."""
        draws = posterior(fit(engine, UNEQUAL)).isel(agent=0).sel(estimand="population", k=1)
        np.testing.assert_allclose(draws["pass_pow_k"], draws["mu"], rtol=1e-6)
        np.testing.assert_allclose(draws["pass_at_k"], draws["mu"], rtol=1e-6)


class TestTasks:
    """The mean over the observed tasks."""

    @pytest.mark.parametrize("engine", ALONE)
    @pytest.mark.parametrize("sign", ["^", "@"])
    @pytest.mark.parametrize("k", [1, 3])
    def test_is_the_mean_over_tasks_of_the_conditionals(self, engine, sign, k):
        """The mean over observed tasks has the mean and quantiles of p_i ~ Beta(α + c_i, β + n_i - c_i) drawn anew.

        False-alarm rate under 4 × 3 × 6e-5.
        """
        est = fit(engine, UNEQUAL)
        draws = posterior(est).isel(agent=0)
        mu, rho = draws["mu"].values.ravel()[:, None], draws["rho"].values.ravel()[:, None]
        c, n = np.array([cell[:2] for cell in UNEQUAL]).T
        kappa = 1 / rho - 1
        p = np.random.default_rng(5).beta(mu * kappa + c, (1 - mu) * kappa + n - c)
        again = (p**k if sign == "^" else 1 - (1 - p) ** k).mean(axis=1)
        found = row(est.summary(**EVERY), estimand="tasks", metric=f"pass{sign}{k}")
        error = again.std() / math.sqrt(float(az.ess(again.reshape(4, -1), method="mean")))
        assert abs(found["mean"] - again.mean()) <= 4 * math.sqrt(2) * error
        for bound, p_bound in ((found["lower"], 0.025), (found["upper"], 0.975)):
            ess = float(az.ess(again.reshape(4, -1), method="quantile", prob=p_bound))
            assert abs((again <= bound).mean() - p_bound) <= 4 * math.sqrt(2 * p_bound * (1 - p_bound) / ess)

    @pytest.mark.parametrize("engine", ALONE)
    def test_the_observed_tasks_are_known_better_than_new_ones(self, engine):
        """The interval of the mean over observed tasks is narrower than that for a new task of this kind."""
        frame = fit(engine, UNEQUAL).summary(columns="all")
        tasks, population = (row(frame, estimand=e, metric="pass^1") for e in ("tasks", "population"))
        assert tasks["upper"] - tasks["lower"] < 0.75 * (population["upper"] - population["lower"])

    def test_many_equal_tasks_are_summed_as_a_normal(self, monkeypatch):
        """A group of over 100 equal tasks contributes a normal with exact moments: the same as drawing every task.

        False-alarm rate under 12 × 6e-5.
        """
        cells = [(3, 4)] * 150 + [(1, 4)] * 120 + [(0, 2)] * 30

        def numbers():
            est = estimate(counts({"a": cells}), method="conjugate", k=(1, 3))
            return rows(est.summary(columns="all"), estimand="tasks")

        quick = numbers()
        monkeypatch.setattr(arithmetic, "LARGE_GROUP", 10**9)
        slow = numbers()
        np.testing.assert_array_equal(quick["mean"], slow["mean"])
        # standard errors of sd and of the 2.5 % quantile, 4,000 draws each
        np.testing.assert_allclose(quick["sd"], slow["sd"], rtol=4 * math.sqrt(2 / (2 * 4000)))
        quantile_error = math.sqrt(2 * 0.025 * 0.975 / 4000) / stats.norm.pdf(1.96)
        for bound in ("lower", "upper"):
            assert (abs(quick[bound].to_numpy() - slow[bound].to_numpy()) <= 4 * quantile_error * slow["sd"]).all()

    def test_conjugate_mean_is_the_average_of_the_tasks_means(self):
        """The conjugate mean over tasks needs no draws: it is the plain average of the tasks' posterior means."""
        frame = estimate(counts({"a": UNEQUAL}), method="conjugate", k=KS).summary(**EVERY)
        for metric in ("@", "^"):
            for k in KS:
                each = rows(frame, estimand="task", metric=metric, k=k)["mean"]
                assert row(frame, estimand="tasks", metric=metric, k=k)["mean"] == pytest.approx(each.mean(), rel=1e-12)


class TestTask:
    """One observed task."""

    @pytest.mark.parametrize("engine", ALONE)
    def test_strength_is_shared_between_tasks(self, engine):
        """A task that passed 4 of 4 is estimated below its conjugate mean's optimism, towards its fellows."""
        frame = fit(engine, UNEQUAL).summary(**EVERY)
        means = rows(frame, estimand="task", metric="pass^1").set_index("task")["mean"]
        assert means["task 1"] < means["task 2"] < means["task 5"] < means["task 3"]
        assert means["task 3"] == means["task 4"]
        assert 0.65 < means["task 9"] < means["task 10"]  # 1 of 1 says less than 6 of 6

    @pytest.mark.parametrize("engine", ALONE)
    def test_intervals_hold_the_draws_of_p(self, engine):
        """A task's interval for pass^1 holds 95 % of its draws of p. False-alarm rate under 12 × 6e-5."""
        est = fit(engine, UNEQUAL)
        p = posterior(est)["p"].isel(agent=0).values.reshape(-1, 12)
        frame = rows(est.summary(**EVERY), estimand="task", metric="pass^1")
        inside = ((p >= frame["lower"].to_numpy()) & (p <= frame["upper"].to_numpy())).mean(axis=0)
        assert (abs(inside - 0.95) <= 4 * math.sqrt(2 * 0.95 * 0.05 / 2000)).all()

    @given(st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.integers(1, 30))
    @settings(max_examples=reduced(30), deadline=None)
    def test_conjugate_is_scipys_beta(self, cell, k):
        """A task on its own has the Beta(1 + c, 1 + n - c) posterior: mean by integration, quantiles by SciPy."""
        c, n = cell
        frame = estimate(counts({"a": [(c, n, 1)]}), method="conjugate", k=k).summary(**EVERY)
        beta = stats.beta(1 + c, 1 + n - c)
        ends = beta.ppf([0.025, 0.5, 0.975])
        power = row(frame, estimand="task", metric="^")
        at = row(frame, estimand="task", metric="@")
        assert [power["lower"], power["median"], power["upper"]] == pytest.approx(list(ends**k), rel=1e-6, abs=1e-300)
        assert [at["lower"], at["median"], at["upper"]] == pytest.approx(list(1 - (1 - ends) ** k), rel=1e-6)
        nodes, weights = np.polynomial.legendre.leggauss(200)
        p, weights = (nodes + 1) / 2, weights / 2 * beta.pdf((nodes + 1) / 2)
        assert power["mean"] == pytest.approx(float(weights @ p**k), rel=1e-9, abs=1e-12)
        assert at["mean"] == pytest.approx(float(weights @ (1 - (1 - p) ** k)), rel=1e-9, abs=1e-12)
        variance = float(weights @ (p**k - power["mean"]) ** 2)
        assert power["sd"] == pytest.approx(math.sqrt(variance), rel=1e-4, abs=1e-7)

    @given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.integers(1, 8))
    @settings(max_examples=reduced(30), deadline=None)
    def test_the_narrowest_interval_is_not_wider_and_holds_as_much(self, cell, k):
        """An hdi is at most as wide as the equal-tailed interval, and the Beta posterior puts 95 % inside it."""
        c, n = cell
        outcomes = counts({"a": [(c, n)]})
        eti, hdi = (
            row(
                estimate(outcomes, method="conjugate", k=k, ci_kind=kind).summary(**EVERY),
                estimand="task",
                metric="^",
            )
            for kind in ("eti", "hdi")
        )
        beta = stats.beta(1 + c, 1 + n - c)
        inside = beta.cdf(hdi["upper"] ** (1 / k)) - beta.cdf(hdi["lower"] ** (1 / k))
        assert inside == pytest.approx(0.95, abs=1e-6)
        assert hdi["upper"] - hdi["lower"] <= (eti["upper"] - eti["lower"]) * (1 + 1e-9)
        assert (eti["ci_kind"], hdi["ci_kind"]) == ("eti", "hdi")


class TestPooledTasks:
    """The conjugate method with one success probability per agent."""

    def test_is_one_binomial(self):
        """With pooled tasks all trials of an agent are one binomial: every estimand is Beta(1 + Σc, 1 + Σ(n-c))."""
        frame = estimate(counts({"a": [(2, 3), (5, 7)]}), method=Conjugate(pool_tasks=True), k=2).summary(
            columns="all", tasks=True
        )
        found = rows(frame, metric="^")
        beta = stats.beta(1 + 7, 1 + 3)
        np.testing.assert_allclose(found["mean"], beta.moment(2), rtol=1e-12)
        np.testing.assert_allclose(found["lower"], beta.ppf(0.025) ** 2, rtol=1e-9)
        assert set(found["estimand"]) == {"population", "tasks", "task"}


class TestNothingScored:
    """Agents of which no trial has a verdict."""

    def test_a_new_task_gets_the_models_prediction_and_says_so(self, engine):
        """An agent without a scored trial has a population estimate flagged `no_data`, and no mean over its tasks."""
        frame = fit_two(engine, UNTRIED, STRONGER).summary(columns="all")
        population = row(frame, agent="v1", estimand="population", metric="pass^3")
        assert population["flags"] == "no_data"
        assert population["n_tasks"] == 0
        assert population["upper"] - population["lower"] > 0.8
        tasks = row(frame, agent="v1", estimand="tasks", metric="pass^3")
        assert (tasks["flags"], tasks["note"]) == ("no_data", "nothing was scored")
        assert math.isnan(tasks["mean"])
        assert math.isnan(tasks["lower"])

    def test_attempted_tasks_are_listed_and_flagged(self, engine):
        """Tasks with only unscored trials have rows flagged `no_data`; tasks never attempted have none."""
        frame = rows(fit_two(engine, UNTRIED, STRONGER).summary(**EVERY), agent="v1", estimand="task", k=1)
        assert set(frame["task"]) == {"task 1", "task 2", "task 3"}
        assert set(frame["flags"]) == {"no_data"}
        assert set(frame["note"]) == {"nothing was scored"}

    def test_draws_of_the_mean_over_no_task_are_refused(self, engine):
        """There are no observed tasks to average over, and the error says so."""
        with pytest.raises(EstimateError, match="agent 'v1' has no scored trial"):
            fit_two(engine, UNTRIED, STRONGER).metric_draws("v1", metric="pass^1", estimand="tasks")

    @pytest.mark.parametrize("pool_tasks", [False, True])
    def test_conjugate_has_no_mean_over_no_task_either(self, pool_tasks):
        """The mean over the observed tasks is undefined without any, whether tasks are pooled or not."""
        est = estimate(counts({"v1": UNTRIED, "v2": STRONGER}), method=Conjugate(pool_tasks=pool_tasks), k=2)
        tasks = row(est.summary(columns="all"), agent="v1", estimand="tasks", metric="^")
        assert math.isnan(tasks["mean"])
        assert (tasks["flags"], tasks["n_tasks"]) == ("no_data", 0)
        assert np.isnan(posterior(est)["pass_pow_k"].sel(agent="v1", estimand="tasks")).all()
        assert not np.isnan(posterior(est)["pass_pow_k"].sel(agent="v2")).any()

    def test_the_frequentist_method_knows_nothing(self):
        """Without a scored trial the baseline is NaN with a note, never 0."""
        frame = estimate(counts({"a": UNTRIED}), method="frequentist").summary(columns="all")
        assert frame["mean"].isna().all()
        assert set(frame["note"]) == {"nothing was scored"}


class TestFlags:
    """What makes a number doubtful is said beside it."""

    @pytest.mark.parametrize("engine", ALONE)
    def test_one_trial_per_task_is_prior_driven(self, engine):
        """With n = 1 everywhere all but pass@1 and pass^1 on a new task is flagged `prior_driven`, and none is 0."""
        frame = fit(engine, ((1, 1),) * 8 + ((0, 1),) * 4).summary(**EVERY)
        safe = (frame["estimand"] == "population") & (frame["k"] == 1)
        assert safe.sum() == 2
        assert not frame[safe]["flags"].str.contains("prior_driven").any()
        assert frame[~safe]["flags"].str.contains("prior_driven").all()
        assert (frame["mean"] > 0.01).all()
        assert (frame["upper"] - frame["lower"] > 0.05).all()

    def test_one_task_tried_twice_is_enough_not_to_be_prior_driven(self):
        """The flag `prior_driven` is for agents none of whose tasks was repeated."""
        est = fit(ENGINES[0], UNEQUAL)
        assert not est.summary(**EVERY)["flags"].str.contains("prior_driven").any()

    @pytest.mark.parametrize("engine", ALONE)
    def test_extrapolation_is_flagged_task_by_task(self, engine):
        """Five attempts exceed the trials of most tasks, but not those of the agent's longest ones."""
        frame = fit(engine, UNEQUAL).summary(**EVERY)
        assert (rows(frame, k=5, estimand="population")["flags"] == "").all()
        flagged = rows(frame, k=5, estimand="task", flags="extrapolated")
        longest = {"task 5", "task 6", "task 10", "task 11"}
        assert set(flagged["task"]) == {f"task {i + 1}" for i in range(12)} - longest

    def test_plug_in_extrapolates_too(self):
        """The plug-in formula can be asked for any k; beyond the trials that were made it is flagged."""
        est = estimate(counts({"a": [(3, 4), (1, 2)]}), method=Frequentist(estimator="plugin"), k=(2, 3, 5))
        frame = est.summary(**EVERY)
        assert (rows(frame, estimand="tasks").groupby("k")["flags"].first() == ["", "", "extrapolated"]).all()
        assert (rows(frame, task="task 2").groupby("k")["flags"].first() == ["", "extrapolated", "extrapolated"]).all()
        assert set(frame["note"]) == {""}


class TestLeftOut:
    """What does not enter a number is counted."""

    def test_tasks_with_fewer_trials_than_k_are_left_out_and_counted(self):
        """The unbiased mean takes the tasks with n ≥ k; n_tasks counts them and a note names the others."""
        frame = estimate(counts({"a": UNEQUAL}), method="frequentist", k=(1, 4)).summary(**EVERY)
        whole, part = (row(frame, estimand="tasks", metric="^", k=k) for k in (1, 4))
        assert (whole["n_tasks"], whole["note"]) == (12, "")
        assert (part["n_tasks"], part["note"]) == (8, "4 tasks of 12 with fewer than 4 trials left out")
        exact = [numerics.pass_pow_k(n, c, 4) for c, n in UNEQUAL if n >= 4]
        assert part["mean"] == pytest.approx(np.mean(exact), rel=1e-12)
        single = row(frame, task="task 9", metric="pass^4")
        assert math.isnan(single["mean"])
        assert math.isnan(single["lower"])
        assert single["note"] == "1 trial, fewer than 4"

    def test_four_in_a_row_where_most_tasks_were_tried_three_times(self):
        """81 tasks with 3 trials and 16 with 4: pass^4 is reported, each number with the tasks that inform it."""
        cells = [(i % 4, 3) for i in range(81)] + [(i % 5, 4) for i in range(16)]
        est = estimate(counts({"a": cells}), k=4)
        for estimand in ("population", "tasks"):
            own = row(est.summary(columns="all"), estimand=estimand, metric="^")
            assert (own["n_tasks"], own["flags"]) == (97, "")
            assert 0 < own["lower"] < own["mean"] < own["upper"] < 1
            plain = row(est.baseline(columns="all"), estimand=estimand, estimator="unbiased", metric="^")
            assert (plain["n_tasks"], plain["note"]) == (16, "81 tasks of 97 with fewer than 4 trials left out")
            assert plain["mean"] == pytest.approx(3 / 16)

    def test_a_task_with_nothing_scored_is_left_out_and_named(self, engine):
        """A task whose trials are all unscored does not enter the mean over tasks, and the note says so."""
        frame = fit_two(engine).summary(columns="all")
        tasks = row(frame, agent="v1", estimand="tasks", metric="pass^1")
        assert tasks["n_tasks"] == 10
        assert tasks["note"].startswith("1 task with nothing scored left out; prior: ")
        assert row(frame, agent="v2", estimand="tasks", metric="pass^1")["n_tasks"] == 12

    def test_cells_never_attempted_change_nothing(self):
        """An agent's conjugate and frequentist numbers are the same with and without other agents' tasks."""
        alone = counts({"v1": [cell for cell in WEAKER if cell != NEVER]})
        beside = counts({"v1": WEAKER, "v2": STRONGER})
        for how in ({"method": "frequentist"}, {"method": "conjugate"}, {"method": Conjugate(pool_tasks=True)}):
            one = estimate(alone, k=KS, **how).summary(columns="all")
            other = rows(estimate(beside, k=KS, **how).summary(columns="all"), agent="v1")
            np.testing.assert_array_equal(one["mean"], other["mean"])
            np.testing.assert_array_equal(one["lower"], other["lower"])

    def test_unscored_trials_are_not_failures(self):
        """Three unscored trials beside two passes leave n = 2, not 5."""
        bare = estimate(counts({"a": [(2, 2), (1, 3)]}), method="conjugate").summary(**EVERY)
        with_unscored = estimate(counts({"a": [(2, 2, 3), (1, 3)]}), method="conjugate").summary(
            columns="all", tasks=True
        )
        np.testing.assert_array_equal(bare["mean"], with_unscored["mean"])


@pytest.mark.parametrize("engine", ALONE)
def test_one_agent_of_thirty_perfect_tasks(engine):
    """30 tasks × 5, all passed: pass^5 on a new task is about [.886, > .99], not [1, 1]."""
    est = fit(engine, ((5, 5),) * 30 + (NEVER,) * 20)
    found = row(est.summary(columns="all"), estimand="population", metric="pass^5")
    assert found["lower"] == pytest.approx(0.886, abs=0.02)
    assert 0.99 < found["upper"] <= 1
    assert found["n_tasks"] == 30
