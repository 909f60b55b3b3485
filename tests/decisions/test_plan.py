"""How many tasks and trials to pay for."""

import math

import numpy as np
import pytest
from fits import STRONGER, WEAKER, counts
from scipy import stats

from agentic_bayes.decisions.plan import plan
from agentic_bayes.decisions.simulate import (
    ManyPosteriors,
    PairedDifference,
    correlations,
    histograms,
    simulate_pair,
)
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.formatting import Metric

GUESS = {"mu": 0.65, "rho": 0.45}


def brute_force_width(tasks, trials, *, mu, rho, k, sets, seed):
    """Mean width of the 95 % interval of pass^k over simulated data sets, through `estimate` itself."""
    rng = np.random.default_rng(seed)
    kappa = 1 / rho - 1
    widths = []
    for _ in range(sets):
        p = rng.beta(mu * kappa, (1 - mu) * kappa, size=tasks)
        cells = [(int(c), trials) for c in rng.binomial(trials, p)]
        table = estimate(counts({"v1": cells}), k=k).summary(columns="all")
        one = table[(table["estimand"] == "population") & (table["metric"] == f"pass^{k}")].iloc[0]
        widths.append(one["upper"] - one["lower"])
    return float(np.mean(widths))


@pytest.fixture(scope="module")
def narrow():
    """The cheapest design for a pass^3 interval of .2."""
    return plan(**GUESS, metric="pass^3", width=0.2)


class TestAWidth:
    """The cheapest design that reaches a width."""

    def test_brute_force_reaches_the_width(self, narrow):
        """The recommended design, simulated 12 times with other data, reaches .2 within 7 %."""
        one = narrow.best
        assert brute_force_width(one.tasks, one.trials, **GUESS, k=3, sets=12, seed=11) == pytest.approx(0.2, rel=0.07)

    @pytest.mark.slow
    def test_brute_force_reaches_the_width_in_full(self, narrow):
        """The same, simulated 500 times."""
        one = narrow.best
        assert brute_force_width(one.tasks, one.trials, **GUESS, k=3, sets=500, seed=12) == pytest.approx(0.2, rel=0.05)

    def test_it_is_the_cheapest_of_those_that_reach_it(self, narrow):
        """No simulated design is cheaper and as narrow."""
        reached = [one for one in narrow.designs if one.width <= 0.2 * 1.01]
        assert min(reached, key=lambda one: one.cost) == narrow.best
        assert narrow.best.trials == 2
        assert str(narrow).startswith(f"{narrow.best.tasks} new tasks × 2 trials, cost {2 * narrow.best.tasks}: ")

    def test_a_dear_task_wants_more_trials(self):
        """Where writing a task costs ten trials, more trials per task are worth it."""
        assert plan(**GUESS, metric="pass^3", width=0.2, cost_per_task=10, simulations=30).best.trials > 2

    def test_the_formula_of_the_rate_stands_beside_it(self):
        """For k = 1 the simulated width is 2 × 1.96 of the analytic standard deviation, within 5 %."""
        for one in plan(**GUESS, metric="pass^1", width=0.12).designs:
            assert one.rate_sd == pytest.approx(
                math.sqrt(0.65 * 0.35 * (0.45 + 0.55 / one.trials) / one.tasks), rel=1e-12
            )
            if one.tasks >= 50:
                assert one.width == pytest.approx(2 * 1.96 * one.rate_sd, rel=0.05)

    def test_a_budget_may_be_too_small(self):
        """Nothing within the budget reaches the width: that is said, and nothing is recommended."""
        found = plan(**GUESS, metric="pass^3", width=0.05, budget=100)
        assert found.best is None
        assert str(found).startswith(
            "no simulated design reaches it: "
            "the cheapest whose 95 % interval of pass^3 is on average no wider than 0.05"
        )
        assert all(one.cost <= 100 for one in found.designs)


class TestABudget:
    """The narrowest interval that a budget buys."""

    def test_too_little_for_any_design(self):
        """Two tasks are the least: less money buys nothing, and that is what is said."""
        found = plan(**GUESS, budget=1)
        assert (found.designs, found.best) == ((), None)
        assert str(found) == "the budget buys no design: the narrowest 95 % interval of pass^1 within 1"

    def test_two_trials_for_three_in_a_row(self):
        """400 attempts at μ .65, ρ .45: two trials per task; one is useless, and the plan says why."""
        found = plan(**GUESS, metric="pass^3", budget=400, trials=[1, 2, 3], simulations=30)
        assert (found.best.tasks, found.best.trials) == (200, 2)
        one = min((d for d in found.designs if d.trials == 1), key=lambda d: d.width)
        assert one.width > 2 * found.best.width
        assert "with 1 trial per task the spread between tasks cannot be estimated" in str(found)
        assert "1 trial per task" not in str(plan(**GUESS, metric="pass^1", budget=100, simulations=10))

    def test_the_table_has_every_design(self):
        """Tasks, trials, cost and width of every design, cheapest first, all within the budget."""
        found = plan(**GUESS, metric="pass^1", budget=120, trials=[1, 3], simulations=20)
        table = found.to_pandas()
        assert list(table.columns[:4]) == ["tasks", "trials", "cost", "width"]
        assert set(table["trials"]) == {1, 3}
        assert (table["cost"] == table["tasks"] * table["trials"]).all()
        assert list(table["cost"]) == sorted(table["cost"])
        assert table["cost"].max() == 120
        assert table["conclusive"].isna().all()
        shown = found.table()
        assert len(shown.rows) == 2
        assert sum(row[-1] == "recommended" for row in shown.rows) == 1

    def test_costs_of_tasks_and_trials(self):
        """A design costs tasks × (trials × price + price of a task)."""
        found = plan(**GUESS, budget=100, cost_per_trial=0.5, cost_per_task=2, trials=[4], simulations=10)
        assert max(one.tasks for one in found.designs) == 25
        assert found.best.cost == 25 * (4 * 0.5 + 2)


class TestAConclusion:
    """How probable a conclusive gate, or telling two agents apart, becomes."""

    def test_a_gate(self):
        """One trial per task at k = 1: the design's power is that of the Beta posterior, computed by SciPy."""
        found = plan(mu=0.7, rho=0.0, at_least=0.6, trials=[1], power=0.8)
        one = found.best
        passed = np.arange(one.tasks + 1)
        above = stats.beta(1 + passed, 1 + one.tasks - passed).sf(0.6)
        exact = stats.binom(one.tasks, 0.7).pmf(passed)[(above >= 0.95) | (above <= 0.05)].sum()
        assert one.conclusive == pytest.approx(exact, abs=4 * math.sqrt(0.8 * 0.2 / found.simulations))
        assert one.conclusive >= 0.77
        assert ": a design that comes this close to 0.8 counts as reaching it" in str(found)
        assert "a gate at pass^1 ≥ 0.6 (confidence 0.95) passes or fails with probability 0.8" in str(found)

    def test_a_difference_of_agents_that_share_nothing(self):
        """Tasks tried once, with unrelated difficulty: power near that of the z test for two proportions."""
        found = plan(mu=0.6, rho=0.5, difference=0.2, trials=[1], power=0.8, simulations=100, shared=0)
        one = found.best
        z = 0.2 / math.sqrt((0.6 * 0.4 + 0.8 * 0.2) / one.tasks)
        assert one.detected == pytest.approx(stats.norm.sf(1.96 - z), abs=0.12)
        assert one.cost == 2 * one.tasks
        assert "for each of the two agents, on the same tasks" in str(found)

    def test_shared_difficulty_saves_tasks(self):
        """As `compare` pairs the agents by task, fewer tasks do; the plan states what it assumes and its error."""
        asked = {"mu": 0.6, "rho": 0.5, "difference": 0.2, "trials": [3], "simulations": 60}
        alone, paired = plan(**asked, shared=0), plan(**asked)
        assert paired.best.tasks < 0.75 * alone.best.tasks
        assert "their chances correlate 0.7 (shared=…); the probability has a simulation error of 0.05" in str(paired)
        with pytest.raises(InvalidArgument, match=r"shared must be in \[0, 1\), got 1"):
            plan(**asked, shared=1)

    def test_a_written_task_serves_both_agents(self):
        """Trials are paid twice, tasks once."""
        (one,) = plan(
            mu=0.6, rho=0.5, difference=0.3, trials=[2], cost_per_task=5, budget=9 * 9, simulations=10
        ).designs
        assert one.cost == one.tasks * (2 * 2 + 5)

    @pytest.mark.parametrize(
        ("sets", "seed"), [(6, 1), pytest.param(40, 2, marks=pytest.mark.slow)], ids=["reduced", "full"]
    )
    def test_the_interval_is_the_crossed_models(self, sets, seed):
        """Widths of the planned intervals, on average within 10 % (full: 6 %) of those of crossed estimates."""
        rng, truth = np.random.default_rng(seed), (0.6, 0.75)
        data = np.array([simulate_pair(rng, truth, 0.5, 0.7, 40, 4) for _ in range(sets)])
        paired, alike = PairedDifference(), correlations(data)
        exact = [
            estimate(counts({name: [(int(c), 4) for c in row] for name, row in zip("ab", one, strict=True)}), "crossed")
            for one in data
        ]
        for metric in map(Metric, ("pass^1", "pass^3")):
            own, other = (ManyPosteriors(metric, 4, histograms(data[:, i], 4)).quantiles for i in (0, 1))
            planned, fitted = [], []
            for i, est in enumerate(exact):
                low, high = paired.interval(own[i], other[i], float(alike[i]), 0.95)
                planned.append(high - low)
                draws = est.metric_draws("a", metric=metric) - est.metric_draws("b", metric=metric)
                fitted.append(np.subtract(*np.quantile(draws, [0.975, 0.025])))
            assert np.mean(planned) == pytest.approx(np.mean(fitted), rel=0.1 if sets < 40 else 0.06)


class TestFromAnEstimate:
    """What is known already counts."""

    def test_known_tasks_stay_in_the_analysis(self):
        """With data there is less to buy, and the plan says that they are counted in."""
        est = estimate(counts({"v1": WEAKER * 4, "v2": STRONGER * 4}))
        found = plan(est, "v1", metric="pass^3", width=0.2, trials=[2, 3], simulations=20)
        fresh = plan(mu=found.mu, rho=found.rho, metric="pass^3", width=0.2, trials=[2, 3], simulations=20)
        assert found.best.cost < fresh.best.cost
        assert "added to the 40 tasks already tried" in str(found)  # two cells of twelve were never scored

    def test_the_truth_is_drawn_from_the_posterior(self):
        """Mean μ and ρ of the simulations are those of the agent's posterior."""
        est = estimate(counts({"v1": WEAKER}))
        found = plan(est, budget=20, trials=[2], simulations=200)
        summary = est.summary(columns="all").query("estimand == 'population' and metric == 'pass^1'")
        assert found.mu == pytest.approx(summary["mean"].iloc[0], abs=0.03)
        assert (found.ci_prob, found.ci_kind) == (0.95, "eti")

    def test_settings_of_the_interval_are_the_estimates(self):
        """Probability and kind come from the estimate; its priors do not, which is said."""
        method = Hierarchical(rho=stats.beta(2, 5))
        est = estimate(counts({"v1": WEAKER}), method, ci_prob=0.8, ci_kind="hdi")
        found = plan(est, budget=20, trials=[2], simulations=10)
        assert (found.ci_prob, found.ci_kind) == (0.8, "hdi")
        assert "default priors instead of Hierarchical(rho=beta(2, 5))" in found.note


def test_same_seed_same_plan():
    """Plans are reproducible; another seed gives other widths."""
    one, two, other = (plan(**GUESS, budget=60, trials=[2], simulations=10, random_seed=s) for s in (0, 0, 1))
    assert one == two
    assert one.best.width != other.best.width


def test_progress_is_told():
    """The callback hears how many data sets have been simulated."""
    heard = []
    plan(**GUESS, budget=60, trials=[2], simulations=10, progress=lambda done, total: heard.append((done, total)))
    assert [done for done, _ in heard] == [0, 10, 20]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({}, InvalidArgument, r"give a goal \(width, at_least or difference\) or a budget"),
        ({"width": 0.1, "at_least": 0.5}, InvalidArgument, "one goal at a time: .*, got width and at_least"),
        ({"width": 0}, InvalidArgument, r"width must be a number strictly between 0 and 1, got 0"),
        ({"width": -1}, InvalidArgument, r"width must be a number strictly between 0 and 1, got -1"),
        ({"at_least": 1.5}, InvalidArgument, r"at_least must be a number in \[0, 1\], got 1\.5"),
        ({"difference": 0}, InvalidArgument, r"difference must be a number strictly between 0 and 1, got 0"),
        ({"difference": 0.8}, InvalidArgument, "difference must leave room for the metric of 0.65, got 0.8"),
        ({"width": 0.1, "power": 1}, InvalidArgument, r"power must be a number strictly between 0 and 1, got 1"),
        ({"width": 0.1, "confidence": 0.4}, InvalidArgument, r"confidence must be in \(0\.5, 1\)"),
        ({"budget": -5}, InvalidArgument, "budget must be a number ≥ 0, got -5"),
        ({"budget": float("inf")}, InvalidArgument, "budget must be a number ≥ 0, got inf"),
        ({"budget": "400"}, InvalidArgument, "budget must be a number ≥ 0, got '400'"),
        ({"budget": 10, "cost_per_trial": -1}, InvalidArgument, "cost_per_trial must be a number ≥ 0, got -1"),
        ({"budget": 10, "cost_per_trial": 0}, InvalidArgument, "cost_per_trial and cost_per_task must not both be 0"),
        ({"budget": 10, "trials": []}, InvalidArgument, "trials must hold at least one number of trials per task"),
        ({"budget": 10, "trials": 2.5}, InvalidArgument, r"trials must be an integer ≥ 1, got 2\.5"),
        ({"budget": 10, "trials": b"a"}, InvalidArgument, "trials must be an integer ≥ 1, got b'a'"),
        ({"budget": 10, "trials": [10**6]}, InvalidArgument, "trials must be at most 1,000"),
        ({"budget": 10, "simulations": 10**30}, InvalidArgument, "simulations must be at most 100,000"),
        ({"budget": 10, "cost_per_trial": 1e308}, InvalidArgument, r"cost_per_trial must be at most 1e\+100"),
        ({"budget": 10**400}, InvalidArgument, r"budget must be at most 1e\+100"),
        ({"budget": 10, "trials": [0]}, InvalidArgument, "trials must be an integer ≥ 1, got 0"),
        ({"budget": 10, "simulations": 3}, InvalidArgument, "simulations must be an integer ≥ 10, got 3"),
        ({"budget": 10, "mu": None}, InvalidArgument, "give an estimate, or a guess of both mu and rho"),
        ({"budget": 10, "mu": 1}, InvalidArgument, r"mu must be a number strictly between 0 and 1, got 1"),
        ({"budget": 10, "rho": 1.2}, InvalidArgument, r"rho must be a number in \[0, 1\], got 1\.2"),
        ({"budget": 10, "agent": "v1"}, InvalidArgument, "an agent needs an estimate, got agent 'v1' without one"),
        ({"budget": 10, "metric": "pass_k"}, InvalidArgument, r"metric must be .*, got 'pass_k'"),
        ({"budget": 10, "metric": "pass^0"}, InvalidArgument, r"metric must be .*, got 'pass.0'"),
        ({"budget": 10, "ci_prob": 95}, InvalidArgument, "ci_prob must be a number"),
        ({"budget": 10, "random_seed": -1}, InvalidArgument, "random_seed must be an integer ≥ 0, got -1"),
    ],
)
def test_wrong_arguments(change, error, message):
    """A wrong argument is named, with what is allowed and what came, before anything is simulated."""
    with pytest.raises(error, match=message):
        plan(**GUESS | change)


@pytest.mark.parametrize(
    ("change", "best"),
    [
        ({"budget": 3}, None),
        ({"budget": 0}, None),
        ({"width": 1e-300}, None),
        ({"width": 0.999}, 2),
        ({"budget": 100, "cost_per_trial": 1e-320}, 20_000),
        ({"budget": 10, "mu": 1e-300, "rho": 1}, 5),
    ],
)
def test_goals_beyond_all_measure(change, best):
    """Nothing, everything and what cannot be reached have a plan that says so, of finite numbers."""
    found = plan(**GUESS | {"trials": 2, "simulations": 10} | change)
    assert (found.best.tasks if found.best else None) == best
    assert np.isfinite(found.to_pandas()[["cost", "width", "rate_sd"]].to_numpy(dtype=float)).all()
    assert str(found)


def test_an_estimate_and_a_guess_exclude_each_other():
    """One source of truth."""
    with pytest.raises(InvalidArgument, match="give an estimate or a guess of mu and rho, not both"):
        plan(estimate(counts({"v1": WEAKER})), budget=10, mu=0.5)
