"""Distribution-free bounds of pass@k and pass^k: outside truths, coverage, and where they are shown."""

import math
import warnings

import numpy as np
import pytest
from fits import EVERY, STRONGER, WEAKER, counts, row, rows
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from strategies import reduced

from agentic_bayes import numerics
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation import bounds
from agentic_bayes.estimation import model_checks as checks
from agentic_bayes.estimation.bounds import pass_bounds
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Conjugate

# tau-bench airline: tasks with 0, …, 4 successes in 4 trials
TAU_BENCH = ([0, 1, 2, 3, 4], [4] * 5, [14, 12, 10, 4, 10])
TAU_CELLS = tuple((c, 4) for c, size in enumerate(TAU_BENCH[2]) for _ in range(size))
MIRROR = {"^": "@", "@": "^"}
TOLERANCE = 1e-5  # of the linear program


def grouped(c, n):
    """Distinct pairs and how many tasks have each."""
    pairs, size = np.unique(np.stack([c, n]), axis=1, return_counts=True)
    return pairs[0], pairs[1], size


class TestOutsideTruth:
    """Where something else is known, the bounds are it."""

    @pytest.mark.parametrize(("passed", "tasks"), [(0, 12), (7, 30), (30, 30)])
    @pytest.mark.parametrize("prob", [0.8, 0.95])
    def test_one_trial_per_task_gives_the_clopper_pearson_interval(self, passed, tasks, prob):
        """With n = 1 the only limit is on pass^1 itself."""
        found = pass_bounds([0, 1], [1, 1], [tasks - passed, passed], "pass^1", prob=prob)
        test = stats.binomtest(passed, tasks).proportion_ci(prob, method="exact")
        np.testing.assert_allclose(found, (test.low, test.high), atol=TOLERANCE)

    def test_one_trial_per_task_says_of_two_attempts_what_jensen_says(self):
        """From P(pass) = m alone, E p² lies between m² (all tasks alike) and m (each always or never passes)."""
        low, high = stats.binomtest(600, 1000).proportion_ci(0.95, method="exact")
        found = pass_bounds([0, 1], [1, 1], [400, 600], "pass^2")
        np.testing.assert_allclose(found, (low**2, high), atol=1e-4)

    @pytest.mark.parametrize("sign", ["^", "@"])
    @pytest.mark.parametrize("k", [1, 2, 3, 4])
    def test_many_tasks_pin_down_every_k_up_to_n(self, sign, k):
        """With millions of tasks and k ≤ n the bounds close in on the unbiased value."""
        c, n = np.arange(5), np.full(5, 4)
        size = np.round(4e6 * stats.betabinom.pmf(c, 4, 0.7, 0.9)).astype(int)
        value = numerics.pass_pow_k(n, c, k) if sign == "^" else numerics.pass_at_k(n, c, k)
        unbiased = np.average(value, weights=size)
        lower, upper = pass_bounds(c, n, size, f"pass{sign}{k}")
        assert lower <= unbiased <= upper
        assert upper - lower < 0.004

    def test_without_data_nothing_is_known(self):
        """No task, or no trial, leaves [0, 1]."""
        assert pass_bounds([], [], [], "pass^3") == (0.0, 1.0)
        assert pass_bounds([0], [0], [7], "pass@3") == (0.0, 1.0)

    def test_untried_tasks_change_nothing(self):
        """Tasks with n = 0 say nothing."""
        padded = tuple([*part, extra] for part, extra in zip(TAU_BENCH, (0, 0, 9), strict=True))
        assert pass_bounds(*padded, "pass^8") == pass_bounds(*TAU_BENCH, "pass^8")

    def test_tau_bench_at_twice_its_trials(self):
        """pass^8 of tau-bench airline from 4 trials: the data alone say between .008 and .375."""
        np.testing.assert_allclose(pass_bounds(*TAU_BENCH, "pass^8"), (0.0076, 0.3749), atol=2e-4)
        np.testing.assert_allclose(pass_bounds(*TAU_BENCH, "pass@8"), (0.5372, 0.9798), atol=2e-4)

    def test_counts_that_no_independent_trials_give_have_no_bounds(self):
        """Thirty tasks that each pass exactly two of four times: no distribution of p fits, and none is pretended."""
        assert all(map(math.isnan, pass_bounds([2], [4], [30], "pass^8")))


class TestShape:
    """What must hold whatever the counts."""

    mixtures = st.tuples(
        st.lists(st.floats(0, 1), min_size=1, max_size=4), st.integers(1, 60), st.integers(1, 12), st.integers(0, 99)
    )

    @given(mixture=mixtures, sign=st.sampled_from(["^", "@"]), k=st.integers(1, 60))
    @settings(max_examples=reduced(40), deadline=None)
    def test_bounds_exist_grow_with_their_confidence_and_mirror(self, mixture, sign, k):
        """For trials of any mixture: feasible, within [0, 1], wider at higher confidence, success ↔ failure mirrored.

        A limit at confidence .999 is left with probability below .001: none of the fixed examples does.
        """
        values, tasks, most, seed = mixture
        rng = np.random.default_rng(seed)
        n = rng.integers(1, most + 1, tasks)
        c, n, size = grouped(rng.binomial(n, rng.choice(values, tasks)), n)
        lower, upper = pass_bounds(c, n, size, f"pass{sign}{k}", prob=0.999)
        assert 0 <= lower <= upper <= 1
        other = pass_bounds(n - c, n, size, f"pass{MIRROR[sign]}{k}", prob=0.999)
        np.testing.assert_allclose((1 - other[1], 1 - other[0]), (lower, upper), atol=TOLERANCE)
        narrow = pass_bounds(c, n, size, f"pass{sign}{k}", prob=0.8)
        assert math.isnan(narrow[0]) or lower - TOLERANCE <= narrow[0] <= narrow[1] <= upper + TOLERANCE

    def test_one_metric_rises_with_k_and_the_other_falls(self):
        """More attempts make one success likelier and an unbroken row less likely, also at the bounds."""
        up = np.array([pass_bounds(*TAU_BENCH, f"pass@{k}") for k in (1, 2, 4, 8, 16)])
        down = np.array([pass_bounds(*TAU_BENCH, f"pass^{k}") for k in (1, 2, 4, 8, 16)])
        assert (np.diff(up, axis=0) > -TOLERANCE).all()
        assert (np.diff(down, axis=0) < TOLERANCE).all()

    def test_more_trials_than_limits(self):
        """Tasks with a thousand or a million trials, and with sixty different n, have bounds that hold the truth."""
        rng = np.random.default_rng(3)
        p = rng.beta(0.5, 0.5, 200)
        for n in (np.full(200, 1000), np.full(200, 10**6), rng.integers(1, 60, 200)):
            lower, upper = pass_bounds(*grouped(rng.binomial(n, p), n), "pass^100")
            truth = float(numerics.beta_pass_pow_k_mean(0.5, 0.5, 100))
            assert lower <= truth <= upper < 0.7

    @pytest.mark.parametrize("k", [1, 3, 8, 40])
    def test_the_grid_is_fine_enough(self, k, monkeypatch):
        """Ten times as many nodes move no bound by more than 1e-4."""
        coarse = [pass_bounds(*TAU_BENCH, f"pass{sign}{k}") for sign in MIRROR]
        monkeypatch.setattr(bounds, "NODES", 1501)
        np.testing.assert_allclose([pass_bounds(*TAU_BENCH, f"pass{sign}{k}") for sign in MIRROR], coarse, atol=1e-4)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"metric": "pass^0"}, "metric must be"),
            ({"prob": 95}, "prob must be a number strictly between 0 and 1, got 95"),
            ({"c": [5]}, "c, n and size must have one shape, with 0 ≤ c ≤ n"),
            ({"size": [1, 2]}, "c, n and size must have one shape"),
        ],
    )
    def test_wrong_arguments_are_refused(self, change, message):
        """A message says what is allowed and what came."""
        asked = {"c": [1], "n": [4], "size": [9], "metric": "pass^2", "prob": 0.9} | change
        with pytest.raises(InvalidArgument, match=message):
            pass_bounds(asked["c"], asked["n"], asked["size"], asked["metric"], prob=asked["prob"])


TRUTHS = {
    "alike": lambda rng, tasks: np.full(tasks, 0.7),
    "bell": lambda rng, tasks: rng.beta(4, 2, tasks),
    "U": lambda rng, tasks: rng.beta(0.3, 0.4, tasks),
    "two points": lambda rng, tasks: rng.choice([0.0, 0.8], tasks, p=[0.4, 0.6]),
    "three points": lambda rng, tasks: rng.choice([0.0, 0.5, 1.0], tasks, p=[0.3, 0.3, 0.4]),
}
EXPECTED_PASS_8 = {
    "alike": 0.7**8,
    "bell": float(numerics.beta_pass_pow_k_mean(4, 2, 8)),
    "U": float(numerics.beta_pass_pow_k_mean(0.3, 0.4, 8)),
    "two points": 0.6 * 0.8**8,
    "three points": 0.3 * 0.5**8 + 0.4,
}


@pytest.mark.parametrize("name", TRUTHS)
def test_bounds_hold_the_truth_of_any_distribution(name):
    """80 % bounds of pass^8 from 4 trials of 30 tasks miss in at most 20 % of 50 data sets.

    A false alarm needs more than 21 misses, which has probability below .0002 even if the coverage were only 80 %;
    in fact hardly any misses: simultaneous limits are wide.
    """
    rng = np.random.default_rng(11)
    missed = 0
    for _ in range(50):
        c = rng.binomial(4, TRUTHS[name](rng, 30))
        lower, upper = pass_bounds(*grouped(c, np.full(30, 4)), "pass^8", prob=0.8)
        missed += not lower - TOLERANCE <= EXPECTED_PASS_8[name] <= upper + TOLERANCE
    assert missed <= stats.binom.isf(2e-4, 50, 0.2)


class TestWhereTheyAreShown:
    """Beside every extrapolated number of a new task, and computed nowhere else."""

    @pytest.mark.parametrize("how", [{}, {"method": Conjugate(pool_tasks=True)}])
    def test_extrapolated_rows_of_the_population_carry_bounds(self, how):
        """Eight attempts from 4 trials are noted with their bounds; k = 4 and the mean over these tasks are not."""
        frame = estimate(counts({"solo": TAU_CELLS}), k=(4, 8), **how).summary(**EVERY)
        beyond = row(frame, estimand="population", metric="pass^8")
        assert "extrapolated" in beyond["flags"]
        assert beyond["note"].startswith("distribution-free bounds [0.008, 0.375]; prior: ")
        noted = frame[frame["note"].str.contains("bounds")]
        assert set(zip(noted["estimand"], noted["k"], strict=True)) == {("population", 8)}

    def test_the_model_lies_within_the_bounds_on_tau_bench(self):
        """pass^8 about .108 [.035, .213] by the model; the data alone allow [.008, .375]."""
        frame = estimate(counts({"solo": TAU_CELLS}), k=8).summary(columns="all")
        found = row(frame, estimand="population", metric="^")
        np.testing.assert_allclose((found["mean"], found["lower"], found["upper"]), (0.108, 0.035, 0.213), atol=0.003)
        lower, upper = pass_bounds(*TAU_BENCH, "pass^8")
        assert lower < found["lower"] < found["upper"] < upper

    def test_the_confidence_is_that_of_the_intervals(self):
        """Bounds beside 80 % intervals are 80 % bounds."""
        frame = estimate(counts({"solo": TAU_CELLS}), k=8, ci_prob=0.8).summary(columns="all")
        lower, upper = pass_bounds(*TAU_BENCH, "pass^8", prob=0.8)
        note = row(frame, estimand="population", metric="^")["note"]
        assert note.startswith(f"distribution-free bounds [{lower:.3f}, {upper:.3f}]; ")

    def test_the_baseline_has_none(self):
        """The plug-in formula extrapolates too, but it is not a model."""
        baseline = estimate(counts({"solo": TAU_CELLS}), k=8).baseline(columns="all")
        assert set(rows(baseline, estimator="plugin")["flags"]) == {"extrapolated"}
        assert not baseline["note"].str.contains("bounds").any()

    def test_nothing_is_computed_where_nothing_is_extrapolated(self, monkeypatch):
        """A summary without extrapolation solves no linear program; one with it solves each once."""
        asked = []

        def recorded(*arguments, **keywords):
            asked.append(arguments[3:])
            return pass_bounds(*arguments, **keywords)

        monkeypatch.setattr(checks, "pass_bounds", recorded)
        est = estimate(counts({"v1": WEAKER, "v2": STRONGER}), k=(1, 4))
        est.summary(**EVERY)
        assert asked == []
        beyond = est.with_k((4, 5))
        beyond.summary(**EVERY)
        beyond.summary(**EVERY)
        assert asked == [("pass@5",), ("pass^5",)] * 2

    def test_counts_without_bounds_say_so(self):
        """Where no distribution fits, the note says that trials vary less than independent repeats would."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            frame = estimate(counts({"solo": ((2, 4),) * 30}), k=8).summary(columns="all")
        note = row(frame, estimand="population", metric="@")["note"]
        assert note.startswith(
            "no distribution-free bounds: the trials of a task vary less than independent repeats would; "
        )
