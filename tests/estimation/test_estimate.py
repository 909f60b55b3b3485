"""What `estimate` takes, what its tables hold, and that the same input gives the same numbers."""

import dataclasses
import math
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from fits import ALONE, ENGINES, EVERY, KS, STRONGER, UNEQUAL, WEAKER, counts, fit, fit_two, row, rows
from scipy import stats

from agentic_bayes.errors import EstimateError, InvalidArgument, OutcomesError, UnknownName
from agentic_bayes.estimation.estimate import Estimate, estimate
from agentic_bayes.estimation.methods.options import Conjugate, Crossed, Hierarchical
from agentic_bayes.estimation.settings import Engine
from agentic_bayes.outcomes.table import outcomes_from_table

COLUMNS = [
    *("agent", "task", "estimand", "metric", "k", "mean", "sd", "median", "lower", "upper", "ci_kind", "ci_prob"),
    *("method", "estimator", "unit", "indicator", "n_tasks", "flags", "note"),
]


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


@pytest.fixture(scope="module")
def conjugate():
    return estimate(counts({"v1": WEAKER, "v2": STRONGER}), method="conjugate", k=KS)


class TestArguments:
    """Everything is checked before the first draw, and a message says what is allowed and what came."""

    @pytest.mark.parametrize("k", [0, -1, 2.5, "3", True, [1, 0], [1, 2.0], [True], None, np.float64(3)])
    def test_k_is_an_integer_of_at_least_one(self, k):
        """Zero, negative, fractional, textual and boolean k are refused, alone and in a list."""
        with pytest.raises(InvalidArgument, match=r"k must be an integer ≥ 1, got"):
            estimate(counts({"a": UNEQUAL}), k=k)

    def test_the_refusal_shows_the_k_that_came(self):
        """The message quotes the offending value of a list."""
        with pytest.raises(InvalidArgument, match=r"k must be an integer ≥ 1, got 2\.5"):
            estimate(counts({"a": UNEQUAL}), k=(1, 2.5))

    def test_no_k_at_all_is_refused(self):
        """An empty list of k asks for nothing."""
        with pytest.raises(InvalidArgument, match="k must hold at least one integer ≥ 1, got none"):
            estimate(counts({"a": UNEQUAL}), k=[])

    def test_k_is_sorted_and_each_is_reported_once(self):
        """Order and repetition of k do not matter; NumPy integers are integers."""
        est = estimate(counts({"a": UNEQUAL}), method="conjugate", k=[5, np.int64(1), 5])
        assert est.settings.k == (1, 5)
        assert estimate(counts({"a": UNEQUAL}), method="conjugate", k=3).settings.k == (3,)

    @pytest.mark.parametrize("ci_prob", [95, 0, 1, -0.1, 1.5, "0.9", True, math.nan, None])
    def test_ci_prob_lies_strictly_between_zero_and_one(self, ci_prob):
        """95 is not .95; the ends 0 and 1 are no intervals."""
        with pytest.raises(
            InvalidArgument, match=f"ci_prob must be a number strictly between 0 and 1, got {ci_prob!r}"
        ):
            estimate(counts({"a": UNEQUAL}), ci_prob=ci_prob)

    @pytest.mark.parametrize(
        ("argument", "value", "nearest"),
        [
            ("method", "hierarchicl", "did you mean 'hierarchical'"),
            ("method", "bayes", "valid: 'hierarchical', 'crossed', 'conjugate', 'frequentist'"),
            ("ci_kind", "hpd", "did you mean 'hdi'"),
            ("ci_kind", None, "valid: 'eti', 'hdi'"),
            ("engine", "pymcmc", "did you mean 'pymc'"),
        ],
    )
    def test_unknown_choices_name_the_nearest_valid_one(self, argument, value, nearest):
        """A misspelt choice is an error that names the valid ones."""
        with pytest.raises(UnknownName, match=rf"unknown {argument} {value!r}: {nearest}"):
            estimate(counts({"a": UNEQUAL}), **{argument: value})

    @pytest.mark.parametrize("seed", [-1, 1.0, "0", None, True, 2**63])
    def test_the_seed_is_an_integer_of_at_least_zero(self, seed):
        """Negative, fractional, textual and missing seeds are refused."""
        with pytest.raises(InvalidArgument, match=f"random_seed must be an integer ≥ 0.*got {seed!r}"):
            estimate(counts({"a": UNEQUAL}), random_seed=seed)

    def test_the_frequentist_method_has_no_highest_density(self):
        """An hdi needs a density, which the baseline lacks."""
        with pytest.raises(InvalidArgument, match=r"ci_kind must be 'eti' for the frequentist method"):
            estimate(counts({"a": UNEQUAL}), method="frequentist", ci_kind="hdi")

    def test_outcomes_are_checked(self):
        """Anything but valid outcomes is refused, with a hint how to make some."""
        with pytest.raises(
            OutcomesError, match=r"outcomes must be an xarray.Dataset \(count_outcomes or .* got DataFrame"
        ):
            estimate(pd.DataFrame({"task": ["a"], "correct": [1]}))
        broken = counts({"a": [(3, 2)]})
        with pytest.raises(OutcomesError, match="successes must not exceed trials"):
            estimate(broken)

    def test_everything_after_the_method_is_keyword_only(self):
        """A positional k would hide what a number means."""
        with pytest.raises(TypeError, match="positional argument"):
            estimate(counts({"a": UNEQUAL}), "conjugate", 3)

    def test_a_prior_that_one_agent_cannot_use_is_refused(self):
        """M and τ describe how agents differ; with one agent the error names the prior that does something."""
        with pytest.raises(InvalidArgument, match=r"prior of m needs two agents or more, there is one: use .*mu="):
            estimate(counts({"a": UNEQUAL}), Hierarchical(m=stats.norm()))
        with pytest.raises(InvalidArgument, match="with judge_labels agents do not share strength, so a prior of tau"):
            estimate(
                counts({"a": UNEQUAL, "b": UNEQUAL}),
                Hierarchical(tau=stats.halfnorm()),
                judge_labels={"sensitivity": 0.9, "specificity": 0.9},
            )

    def test_the_method_is_the_value_that_was_used(self):
        """A name means the method with its defaults, and the estimate says which options it has."""
        both = counts({"a": UNEQUAL, "b": UNEQUAL})
        assert estimate(both, "conjugate").method == Conjugate()
        assert estimate(both, Conjugate(prior=(2, 1))).method == Conjugate(prior=(2, 1))
        corrected = estimate(both, judge_labels={"sensitivity": 0.9, "specificity": 0.9})
        assert corrected.method == Crossed()
        with pytest.raises(InvalidArgument, match="method must be one of"):
            estimate(both, 3)

    def test_auto_is_one_of_the_engines(self):
        """`engine="auto"` stays a choice, beside at least one engine."""
        assert {"auto", "pymc"} <= set(get_args(Engine))


class TestAgents:
    """Agents are named, and a wrong name is answered with the right ones."""

    def test_an_unknown_agent_names_the_nearest(self, conjugate):
        """A misspelt agent is an error that names the one that exists."""
        with pytest.raises(UnknownName, match="unknown agent 'v1 ': did you mean 'v1'"):
            conjugate.metric_draws("v1 ", metric="pass^1", estimand="tasks")

    def test_no_agent_is_enough_only_where_there_is_one(self, conjugate):
        """With several agents one must be named; with one it need not be."""
        with pytest.raises(InvalidArgument, match="several agents; choose one with agent=: 'v1', 'v2'"):
            conjugate.metric_draws(None, metric="pass^1", estimand="tasks")
        alone = estimate(counts({"solo": UNEQUAL}), method="conjugate")
        assert alone.metric_draws(None, metric="pass^1", estimand="tasks").shape == (4000,)

    def test_agents_stand_in_natural_order(self):
        """Agent 2 comes before agent 10."""
        est = estimate(counts({"v10": UNEQUAL, "v2": UNEQUAL}), method="conjugate")
        assert est.agents == ("v2", "v10")

    @pytest.mark.parametrize(
        ("argument", "value", "message"),
        [
            ("metric", "pass^k", "metric must be"),
            ("metric", "pass^0", "metric must be"),
            ("metric", "pass^1000001", "k must be at most 1,000,000"),
            ("estimand", "task", "unknown estimand 'task'"),
        ],
    )
    def test_draws_of_something_that_does_not_exist_are_refused(self, conjugate, argument, value, message):
        """Metric, k and estimand of draws are checked as those of `estimate` are."""
        asked = {"metric": "pass^1", "estimand": "tasks"} | {argument: value}
        with pytest.raises(InvalidArgument, match=message):
            conjugate.metric_draws("v1", **asked)

    def test_the_frequentist_method_has_no_draws(self):
        """The baseline has no posterior, and the error says which methods have."""
        est = estimate(counts({"a": UNEQUAL}), method="frequentist")
        with pytest.raises(EstimateError, match="the frequentist method has no posterior: use the hierarchical"):
            est.metric_draws("a", metric="pass^1")


class TestSummary:
    """One row per agent × estimand × metric × k."""

    def test_columns(self, engine):
        """The columns of summary and baseline are the contract's, in its order."""
        est = fit_two(engine)
        assert list(est.summary(**EVERY).columns) == COLUMNS
        assert list(est.baseline(columns="all").columns) == COLUMNS

    def test_every_combination_has_one_row(self, engine):
        """Nothing is reported twice, nothing is missing, and single tasks have rows only for estimand `task`."""
        frame = fit_two(engine).summary(**EVERY)
        key = ["agent", "task", "estimand", "metric"]
        assert not frame.duplicated(key).any()
        whole = frame[frame["estimand"] != "task"]
        assert len(whole) == 2 * 2 * 2 * len(KS)
        assert (whole["task"] == "").all()
        single = frame[frame["estimand"] == "task"]
        assert (single["task"] != "").all()
        # v1 never attempted one of the twelve tasks
        assert single.groupby("agent")["task"].nunique().to_dict() == {"v1": 11, "v2": 12}

    def test_single_tasks_can_be_left_out(self, engine):
        """`tasks=False` leaves out the rows of single tasks and changes no other number."""
        est = fit_two(engine)
        frame = est.summary(**EVERY)
        short = frame[frame["estimand"] != "task"].reset_index(drop=True)
        pd.testing.assert_frame_equal(est.summary(columns="all"), short)

    def test_every_number_says_what_it_is(self, engine):
        """Method, kind and probability of the interval, unit and indicator stand in every row."""
        frame = fit_two(engine).summary(**EVERY)
        said = frame[["ci_kind", "ci_prob", "method", "estimator", "unit", "indicator"]].drop_duplicates()
        assert said.to_numpy().tolist() == [["eti", 0.95, "hierarchical", "posterior", "conversation", "correct"]]

    def test_baseline_has_both_estimators(self, engine):
        """The baseline tells `unbiased` and `plugin` apart, whatever the method of the estimate."""
        frame = fit_two(engine).baseline(columns="all")
        assert frame.groupby("estimator").size().to_dict() == {"plugin": 32, "unbiased": 32}
        assert set(frame["method"]) == {"frequentist"}
        assert set(fit_two(engine).baseline(columns="all", tasks=True)["estimand"]) == {"population", "tasks", "task"}

    def test_baseline_is_equal_tailed_also_beside_an_hdi(self):
        """An estimate with highest-density intervals has a baseline with confidence intervals."""
        est = estimate(counts({"a": UNEQUAL}), method="conjugate", ci_kind="hdi")
        assert set(est.summary(**EVERY)["ci_kind"]) == {"hdi"}
        assert set(est.baseline(columns="all")["ci_kind"]) == {"eti"}

    def test_baseline_is_the_frequentist_summary(self):
        """What stands beside a posterior is what the frequentist method says alone."""
        outcomes = counts({"v1": WEAKER, "v2": STRONGER})
        beside = rows(
            estimate(outcomes, method="conjugate", k=KS).baseline(columns="all", tasks=True), estimator="unbiased"
        )
        alone = estimate(outcomes, method="frequentist", k=KS).summary(**EVERY)
        pd.testing.assert_frame_equal(beside.reset_index(drop=True), alone)

    def test_other_k_need_no_new_fit(self, engine):
        """`with_k` reports the same posterior at other k."""
        est = fit_two(engine)
        wide = est.with_k([1, 7])
        assert wide.settings.k == (1, 7)
        first, again = (
            row(e.summary(columns="all"), agent="v1", estimand="population", metric="pass^1") for e in (est, wide)
        )
        pd.testing.assert_series_equal(first, again, check_names=False)
        with pytest.raises(InvalidArgument, match="k must be an integer ≥ 1, got 0"):
            est.with_k(0)

    def test_repr_counts_what_was_scored(self, engine):
        """The one-line account has method, agents, tasks, scored and unscored trials and k."""
        text = repr(fit_two(engine))
        assert text.startswith(
            "Estimate: hierarchical, 2 agents, 12 tasks, 87 scored trials, 3 unscored, k = 1, 2, 3, 5"
        )
        assert "NOT CONVERGED" not in text

    def test_html_is_escaped(self):
        """An agent's name is text in the HTML table, whatever it contains."""
        html = estimate(counts({"<b>v1</b>": UNEQUAL}), method="conjugate")._repr_html_()
        assert "&lt;b&gt;v1&lt;/b&gt;" in html
        assert "<b>" not in html
        assert "95 % equal-tailed" in html

    def test_results_are_frozen(self, conjugate):
        """An estimate cannot be changed after it was made, and is equal to nothing but itself."""
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'outcomes'"):
            conjugate.outcomes = None
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'k'"):
            conjugate.settings.k = (1,)
        assert conjugate == conjugate
        assert conjugate != conjugate.with_k(2)
        assert isinstance(hash(conjugate), int)


class TestSameInputSameNumbers:
    """Randomness comes only through the seed."""

    def table(self):
        """0/1 rows of the two agents, trials in random order."""
        generator = np.random.default_rng(3)
        return pd.DataFrame(
            [
                (agent, f"task {task + 1}", trial, int(trial < cell[0]))
                for agent, cells in (("v1", WEAKER), ("v2", STRONGER))
                for task, cell in enumerate(cells)
                for trial in generator.permutation(cell[1])
            ],
            columns=["agent", "task", "trial", "correct"],
        )

    # the same counts in NUTS are the contract's: tests/contract/test_methods.py
    @pytest.mark.parametrize("engine", ALONE)
    def test_shuffled_rows_give_the_same_bits(self, engine):
        """The order of the rows of a table changes no bit of a result."""
        table = self.table()
        first, second = (
            estimate(outcomes_from_table(rows_), "hierarchical", engine=engine, k=KS)
            for rows_ in (table, table.sample(frac=1, random_state=1))
        )
        pd.testing.assert_frame_equal(first.summary(**EVERY), second.summary(**EVERY), check_exact=True)

    @pytest.mark.parametrize("engine", ALONE)
    def test_another_seed_gives_other_draws_of_the_same_posterior(self, engine):
        """Another seed moves draws, and means only within Monte-Carlo error."""
        one, two = fit(engine, UNEQUAL), fit(engine, UNEQUAL, seed=7)
        draws = [e.metric_draws("solo", metric="pass^3", estimand="tasks") for e in (one, two)]
        assert not np.array_equal(*draws)
        first, second = (rows(e.summary(columns="all"), k=3) for e in (one, two))
        # 4 standard errors of the difference of two means of at least 400 effective draws
        assert (abs(first["mean"] - second["mean"]) <= 4 * math.sqrt(2) * first["sd"] / 20).all()

    def test_names_of_agents_do_not_matter(self, engine):
        """Renaming agents so that their order turns leaves every mean the same within Monte-Carlo error."""
        renamed = estimate(counts({"z": WEAKER, "a": STRONGER}), "hierarchical", engine=engine, k=KS)
        assert renamed.agents == ("a", "z")
        for old, new in (("v1", "z"), ("v2", "a")):
            before, after = (
                rows(e.summary(columns="all"), agent=name).reset_index()
                for e, name in ((fit_two(engine), old), (renamed, new))
            )
            assert (abs(before["mean"] - after["mean"]) <= 4 * math.sqrt(2) * before["sd"] / 20).all()

    def test_the_global_random_state_is_left_alone(self, conjugate):
        """Estimating does not touch NumPy's global generator."""
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        Estimate.summary(conjugate)
        np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
