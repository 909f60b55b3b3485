"""Formulas against published numbers, exact rational arithmetic, brute force and SciPy."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from strategies import reduced

from agentic_bayes import numerics
from agentic_bayes.checks import check_count, check_probability
from agentic_bayes.errors import InvalidArgument

TAU_BENCH = np.repeat([0, 1, 2, 3, 4], [14, 12, 10, 4, 10])  # successes in 4 trials of 50 tasks


@st.composite
def cells(draw, most=60):
    """Trials, successes and attempts with 1 ≤ k ≤ n."""
    n = draw(st.integers(1, most))
    return n, draw(st.integers(0, n)), draw(st.integers(1, n))


def exact_pow(n: int, c: int, k: int) -> Fraction:
    return Fraction(math.comb(c, k), math.comb(n, k))


def exact_at(n: int, c: int, k: int) -> Fraction:
    return 1 - Fraction(math.comb(n - c, k), math.comb(n, k))


# Published numbers


def test_seven_of_ten_unbiased():
    """7 successes in 10 trials give .9917 and .2917 at k = 3."""
    assert numerics.pass_at_k(10, 7, 3) == pytest.approx(0.9917, abs=5e-5)
    assert numerics.pass_pow_k(10, 7, 3) == pytest.approx(0.2917, abs=5e-5)
    assert numerics.pass_at_k(10, 7, 1) == numerics.pass_pow_k(10, 7, 1) == pytest.approx(0.7, rel=1e-15)


def test_seven_of_ten_plugin():
    """The same put into the formulas gives .973 and .343."""
    assert numerics.plugin_pass_at_k(0.7, 3) == pytest.approx(0.973, rel=1e-14)
    assert numerics.plugin_pass_pow_k(0.7, 3) == pytest.approx(0.343, rel=1e-14)


def test_the_papers_example():
    """2 of 3 conversations correct give the paper's five values of either metric."""
    k = np.arange(1, 6)
    at, power = numerics.plugin_pass_at_k(2 / 3, k), numerics.plugin_pass_pow_k(2 / 3, k)
    assert at.round(3).tolist() == [0.667, 0.889, 0.963, 0.988, 0.996]
    assert power.round(3).tolist() == [0.667, 0.444, 0.296, 0.198, 0.132]


def test_tau_bench_airline():
    """The published histogram of tau-bench airline gives the published pass^1..4, and pass@1..4."""
    k = np.arange(1, 5)[:, None]
    assert numerics.pass_pow_k(4, TAU_BENCH, k).mean(axis=1).round(4).tolist() == [0.42, 0.2733, 0.22, 0.2]
    assert numerics.pass_at_k(4, TAU_BENCH, k).mean(axis=1).round(4).tolist() == [0.42, 0.5667, 0.66, 0.72]


def test_conjugate_seven_of_ten():
    """Beta(8, 4) gives means .945 and .330 with the published 95 % limits at k = 3."""
    limits = numerics.beta_quantile([0.025, 0.975], 8, 4)
    assert float(numerics.beta_pass_at_k_mean(8, 4, 3)) == pytest.approx(0.945, abs=5e-4)
    assert numerics.plugin_pass_at_k(limits, 3) == pytest.approx([0.773, 0.9987], abs=5e-4)
    assert float(numerics.beta_pass_pow_k_mean(8, 4, 3)) == pytest.approx(0.330, abs=5e-4)
    assert numerics.plugin_pass_pow_k(limits, 3) == pytest.approx([0.059, 0.707], abs=5e-4)


def test_tasks_that_differ_make_the_plugin_formula_wrong():
    """For tasks drawn from Beta(.5, .5) the true pass^3 is .313, the plug-in value .125."""
    assert float(numerics.beta_pass_pow_k_mean(0.5, 0.5, 3)) == pytest.approx(0.3125)
    assert float(numerics.plugin_pass_pow_k(0.5, 3)) == 0.125


# Exact arithmetic


@pytest.mark.parametrize("n", range(1, 8))
def test_every_subset_of_the_trials(n):
    """Both metrics are shares of all k-subsets of the trials: with all, and with any success in them."""
    for c, k in itertools.product(range(n + 1), range(1, n + 1)):
        subsets = list(itertools.combinations([1] * c + [0] * (n - c), k))
        assert numerics.pass_pow_k(n, c, k) == pytest.approx(np.mean([all(s) for s in subsets]), abs=1e-15)
        assert numerics.pass_at_k(n, c, k) == pytest.approx(np.mean([any(s) for s in subsets]), abs=1e-15)


@given(cells(most=400))
@settings(max_examples=reduced(150), deadline=None)
def test_binomial_coefficients(cell):
    """Both metrics are the ratios of binomial coefficients to nearly all digits, however small."""
    tiny = 1e-300
    assert float(numerics.pass_pow_k(*cell)) == pytest.approx(float(exact_pow(*cell)), rel=1e-13, abs=tiny)
    assert float(numerics.pass_at_k(*cell)) == pytest.approx(float(exact_at(*cell)), rel=1e-13, abs=tiny)


@pytest.mark.parametrize(
    ("n", "c", "k"),
    [
        (10**6, 1, 1),
        (10**6, 3, 5),
        (10**6, 999_999, 2),
        (10**6, 900_000, 300),
        (10**6, 999_000, 5000),
        (10**6, 10, 10**6 - 5),
        (10**6, 10**6, 10**6),
        (10**6, 0, 10**6),
        (10**6, 500_000, 1000),
    ],
)
def test_a_million_trials(n, c, k):
    """With a million trials nothing overflows, underflows early or loses digits."""
    ratio_at, ratio_pow = exact_at(n, c, k), exact_pow(n, c, k)
    assert float(numerics.pass_at_k(n, c, k)) == pytest.approx(float(ratio_at), rel=1e-11)
    assert float(numerics.pass_pow_k(n, c, k)) == pytest.approx(float(ratio_pow), rel=1e-11, abs=1e-300)


def test_a_value_too_small_for_a_float_is_zero():
    """Ratios below the smallest float are 0, their complements 1, and neither takes a step per attempt."""
    assert numerics.pass_pow_k(10**6, 500_000, 400_000) == 0
    assert numerics.pass_at_k(10**6, 500_000, 400_000) == 1
    assert numerics.pass_at_k(10**15, 10**14, 10**14) == 1


@given(cells(most=100))
@settings(max_examples=reduced(100), deadline=None)
def test_the_humaneval_formula(cell):
    """pass@k agrees with the product that the HumanEval paper gives."""
    n, c, k = cell
    humaneval = 1.0 if n - c < k else 1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1))
    assert float(numerics.pass_at_k(n, c, k)) == pytest.approx(humaneval, abs=1e-13)


@pytest.mark.parametrize("function", [numerics.pass_at_k, numerics.pass_pow_k])
def test_more_attempts_than_trials_is_undefined(function):
    """With more attempts than trials both are NaN, cell by cell, and never 0; so they are without trials."""
    values = function([2, 3, 0], [2, 1, 0], 3)
    assert np.isnan(values).tolist() == [True, False, True]
    assert np.isnan(function(4, 4, 5))


def test_arguments_broadcast_and_stay_as_they_are():
    """Arrays of any shape go in together, the result has their common shape, and none is changed."""
    n, c = np.array([[4], [6]]), np.array([1, 2, 3])
    kept = n.copy(), c.copy()
    assert numerics.pass_at_k(n, c, 2).shape == (2, 3)
    assert np.array_equal(n, kept[0])
    assert np.array_equal(c, kept[1])
    assert numerics.pass_pow_k(np.zeros((0, 2), int), 0, 1).shape == (0, 2)
    assert numerics.pass_pow_k(4.0, 3.0, 2) == numerics.pass_pow_k(np.int32(4), np.uint8(3), np.int16(2))


@pytest.mark.parametrize(
    ("n", "c", "k", "message"),
    [
        (3, 4, 1, r"c must lie in \[0, n\], got n=3, c=4"),
        (3, -1, 1, r"c must lie in \[0, n\]"),
        (-1, -1, 1, r"c must lie in \[0, n\]"),
        (2.5, 1, 1, "n must hold whole numbers ≥ 0, got 2.5"),
        (3, np.nan, 1, "c must hold whole numbers ≥ 0, got nan"),
        (np.inf, 1, 1, "n must hold whole numbers ≥ 0, got inf"),
        ("3", 1, 1, "n must hold whole numbers ≥ 0, got '3'"),
        (3, True, 1, "c must hold whole numbers ≥ 0, got True"),
        (3, 1, 0, "k must be an integer ≥ 1, got 0"),
        (3, 1, [1, -2], "k must be an integer ≥ 1"),
        (3, 1, 1.0, "k must be an integer ≥ 1, got 1.0"),
        (3, 1, True, "k must be an integer ≥ 1, got True"),
    ],
)
@pytest.mark.parametrize("function", [numerics.pass_at_k, numerics.pass_pow_k])
def test_counts_that_cannot_be(function, n, c, k, message):
    """Counts that are not counts, and k that is no number of attempts, are refused with what came."""
    with pytest.raises(InvalidArgument, match=message):
        function(n, c, k)


@given(cells())
@settings(max_examples=reduced(150), deadline=None)
def test_pass_pow_k_below_pass_1_below_pass_at_k(cell):
    """pass^k ≤ pass^1 = c/n ≤ pass@k, all in [0, 1]."""
    n, c, k = cell
    low, high = float(numerics.pass_pow_k(n, c, k)), float(numerics.pass_at_k(n, c, k))
    assert 0 <= low <= c / n + 1e-15
    assert c / n - 1e-15 <= high <= 1
    assert float(numerics.pass_at_k(n, c, 1)) == pytest.approx(c / n, rel=1e-15)


@given(cells())
@settings(max_examples=reduced(150), deadline=None)
def test_monotone_in_successes_and_attempts(cell):
    """More successes raise both; more attempts raise pass@k and lower pass^k."""
    n, c, k = cell
    up, more = min(c + 1, n), min(k + 1, n)
    assert numerics.pass_at_k(n, up, k) >= numerics.pass_at_k(n, c, k) - 1e-15
    assert numerics.pass_pow_k(n, up, k) >= numerics.pass_pow_k(n, c, k) - 1e-15
    assert numerics.pass_at_k(n, c, more) >= numerics.pass_at_k(n, c, k) - 1e-15
    assert numerics.pass_pow_k(n, c, more) <= numerics.pass_pow_k(n, c, k) + 1e-15


@given(cells())
@settings(max_examples=reduced(150), deadline=None)
def test_mirror_image(cell):
    """Exchanging successes and failures turns pass@k into 1 - pass^k."""
    n, c, k = cell
    assert float(numerics.pass_at_k(n, c, k)) == pytest.approx(1 - float(numerics.pass_pow_k(n, n - c, k)), abs=1e-14)


@given(st.integers(1, 12), st.floats(1e-9, 1), st.integers(1, 12))
@settings(max_examples=reduced(60), deadline=None)
def test_unbiased(n, p, k):
    """Averaged over all results of n trials at probability p, the estimators give p^k and 1 - (1 - p)^k."""
    k = min(k, n)
    c = np.arange(n + 1)
    weight = stats.binom.pmf(c, n, p)
    assert weight @ numerics.pass_pow_k(n, c, k) == pytest.approx(p**k, abs=1e-9)
    assert weight @ numerics.pass_at_k(n, c, k) == pytest.approx(1 - (1 - p) ** k, abs=1e-9)


# Plug-in


@given(st.floats(0, 1), st.integers(1, 10_000))
@settings(max_examples=reduced(100), deadline=None)
def test_plugin_formulas(p, k):
    """p^k and 1 - (1 - p)^k, in [0, 1]."""
    assert float(numerics.plugin_pass_pow_k(p, k)) == pytest.approx(p**k, rel=1e-12)
    assert float(numerics.plugin_pass_at_k(p, k)) == pytest.approx(1 - (1 - p) ** k, abs=1e-12)
    assert 0 <= float(numerics.plugin_pass_at_k(p, k)) <= 1


def test_plugin_keeps_the_digits_of_small_probabilities():
    """1 - (1 - p)^k is k·p for tiny p, and 0 and 1 stay exact."""
    assert float(numerics.plugin_pass_at_k(1e-18, 5)) == pytest.approx(5e-18, rel=1e-12)
    assert numerics.plugin_pass_at_k([0.0, 1.0], 7).tolist() == [0, 1]
    assert np.isnan(numerics.plugin_pass_at_k(np.nan, 3))


# Beta moments and quantiles

PARAMETERS = [(1, 1), (8, 4), (0.5, 0.5), (1e-3, 2), (300, 0.2), (1 + 10**6, 1), (5e5, 5e5)]


@pytest.mark.parametrize(("a", "b"), PARAMETERS)
@pytest.mark.parametrize("k", [1, 2, 5, 40])
def test_beta_means_are_beta_binomial_probabilities(a, b, k):
    """E p^k is the Beta-Binomial probability of k of k, E 1 - (1 - p)^k that of at least one."""
    all_pass = float(np.exp(stats.betabinom.logpmf(k, k, a, b)))
    none = float(np.exp(stats.betabinom.logpmf(0, k, a, b)))
    assert float(numerics.beta_pass_pow_k_mean(a, b, k)) == pytest.approx(all_pass, rel=1e-8)
    assert float(numerics.beta_pass_at_k_mean(a, b, k)) == pytest.approx(1 - none, rel=1e-8, abs=1e-12)


def test_beta_means_exactly():
    """The means are exact products of ratios, also for thousands of attempts."""
    product = math.prod(Fraction(8 + j, 12 + j) for j in range(40))
    assert float(numerics.beta_pass_pow_k_mean(8, 4, 40)) == pytest.approx(float(product), rel=1e-13)
    product = math.prod(Fraction(8 + j, 12 + j) for j in range(5000))
    assert float(numerics.beta_pass_pow_k_mean(8, 4, 5000)) == pytest.approx(float(product), rel=1e-10)
    assert float(numerics.beta_pass_pow_k_mean(1, 1, 10**9)) == pytest.approx(1e-9, rel=1e-6)


@pytest.mark.parametrize(("a", "b"), PARAMETERS)
def test_beta_quantiles(a, b):
    """Quantiles agree with scipy.stats, and the mirror image is exact to ten digits."""
    q = np.array([0.005, 0.025, 0.5, 0.975, 0.995])
    ours = numerics.beta_quantile(q, a, b)
    assert ours == pytest.approx(stats.beta.ppf(q, a, b), rel=1e-8, abs=1e-300)
    assert numerics.beta_quantile(1 - q, b, a) == pytest.approx(1 - ours, abs=1e-10)


@given(st.floats(0.05, 500), st.floats(0.05, 500), st.integers(1, 30))
@settings(max_examples=reduced(100), deadline=None)
def test_beta_means_mirror_and_order(a, b, k):
    """E p^k ≤ E p ≤ E 1 - (1 - p)^k, and exchanging a and b mirrors them."""
    low, high = float(numerics.beta_pass_pow_k_mean(a, b, k)), float(numerics.beta_pass_at_k_mean(a, b, k))
    assert 0 <= low <= a / (a + b) * (1 + 1e-12)
    assert a / (a + b) - 1e-12 <= high <= 1
    assert float(numerics.beta_pass_at_k_mean(b, a, k)) == pytest.approx(1 - low, abs=1e-10)


def test_beta_means_broadcast():
    """Parameters of different shapes go in together."""
    assert numerics.beta_pass_pow_k_mean([[1.0], [2.0]], [1.0, 2.0, 3.0], 2).shape == (2, 3)
    assert numerics.beta_quantile([[0.1], [0.9]], 2, [1.0, 2.0, 3.0]).shape == (2, 3)


# Intervals

COUNTS = [(7, 10), (1, 3), (50, 50), (0, 5), (1, 1), (999_999, 10**6), (2, 4)]


@pytest.mark.parametrize(("c", "n"), COUNTS)
@pytest.mark.parametrize("ci_prob", [0.5, 0.95, 0.999])
def test_wilson_limits_are_the_roots_of_the_score_equation(c, n, ci_prob):
    """Wilson's limits solve (c/n - p)² = z² p (1 - p) / n."""
    z = stats.norm.ppf(0.5 + ci_prob / 2)
    roots = np.sort(np.roots([1 + z**2 / n, -2 * c / n - z**2 / n, (c / n) ** 2]).real)
    assert np.array(numerics.wilson_interval(c, n, ci_prob)) == pytest.approx(roots, abs=1e-9)


@pytest.mark.parametrize(("c", "n"), COUNTS)
@pytest.mark.parametrize("method", ["wilson", "exact"])
def test_intervals_of_a_proportion_agree_with_scipy(c, n, method):
    """Wilson and Clopper-Pearson limits are those of scipy.stats.binomtest."""
    function = numerics.wilson_interval if method == "wilson" else numerics.clopper_pearson_interval
    reference = stats.binomtest(c, n).proportion_ci(0.95, method=method)
    assert np.array(function(c, n)) == pytest.approx(np.array(reference), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("function", [numerics.wilson_interval, numerics.clopper_pearson_interval])
def test_intervals_at_the_edge(function):
    """No trials: everything is possible. All or none passed: the limit on that side is exact, the other is not."""
    lower, upper = function([0, 0, 5], [0, 5, 5])
    assert lower.tolist()[:2] == [0, 0]
    assert upper.tolist()[::2] == [1, 1]
    assert 0 < upper[1] < 1
    assert lower[2] == pytest.approx(1 - upper[1], abs=1e-12)


@given(st.integers(0, 200), st.integers(1, 200))
@settings(max_examples=reduced(100), deadline=None)
def test_intervals_hold_the_share_and_mirror(c, n):
    """The interval holds c/n, has a width, and exchanging successes and failures mirrors it."""
    c = min(c, n)
    for function in (numerics.wilson_interval, numerics.clopper_pearson_interval):
        lower, upper = map(float, function(c, n))
        assert 0 <= lower <= c / n + 1e-12
        assert c / n - 1e-12 <= upper <= 1
        assert upper - lower > 1e-3
        assert np.array(function(n - c, n)) == pytest.approx([1 - upper, 1 - lower], abs=1e-10)


@pytest.mark.parametrize("values", [[0.2, 0.4, 0.9], [0.0, 1.0, 1.0, 1.0, 0.5], [0.5, 0.5, 0.5001]])
@pytest.mark.parametrize("ci_prob", [0.8, 0.95])
def test_t_interval(values, ci_prob):
    """The interval of a mean over tasks is Student's, cut to [0, 1]."""
    reference = stats.t.interval(ci_prob, len(values) - 1, np.mean(values), stats.sem(values))
    assert numerics.t_interval(values, ci_prob) == pytest.approx(np.clip(reference, 0, 1), abs=1e-10)


@pytest.mark.parametrize("size", [1, 2, 30])
def test_t_interval_never_has_zero_width(size):
    """Tasks that all failed, or all passed, give Wilson's interval on as many of as many."""
    for value in (0, 1):
        expected = numerics.wilson_interval(value * size, size)
        assert numerics.t_interval([value] * size) == pytest.approx([float(limit) for limit in expected])


@given(st.floats(0, 1), st.integers(2, 200))
def test_equal_values_leave_the_mean_open(value, size):
    """Values that are all equal, as in six tasks of 2 of 4 each, do not make the mean sure; the interval holds it."""
    lower, upper = numerics.t_interval([value] * size)
    assert lower - 1e-12 <= value <= upper + 1e-12
    assert upper - lower > 0.5 / size
    mirrored = numerics.t_interval([1 - value] * size)
    assert mirrored == pytest.approx((1 - upper, 1 - lower), abs=1e-9)


def test_t_interval_without_information():
    """One task that neither failed nor passed says nothing; no task at all is undefined."""
    assert numerics.t_interval([0.4]) == (0, 1)
    assert np.isnan(numerics.t_interval([])).all()


@pytest.mark.parametrize("ci_prob", [0.5, 0.9, 0.95])
def test_hdi_of_a_known_density(ci_prob):
    """The narrowest interval of a Beta density has the right probability and equal density at both ends."""
    density = stats.beta(8, 4)
    lower, upper = numerics.hdi_from_quantiles(lambda q: density.ppf(q), ci_prob)
    assert density.cdf(upper) - density.cdf(lower) == pytest.approx(ci_prob, abs=1e-9)
    assert density.pdf(lower) == pytest.approx(density.pdf(upper), rel=1e-3)
    assert upper - lower < density.ppf(0.5 + ci_prob / 2) - density.ppf(0.5 - ci_prob / 2)


def test_hdi_of_several_densities():
    """Every element of an array has an interval of its own."""
    a, b = np.array([[8.0, 1.0], [2.0, 5.0]]), np.array([[4.0, 3.0], [2.0, 0.9]])
    lower, upper = numerics.hdi_from_quantiles(lambda q: numerics.beta_quantile(q[:, None, None], a, b), 0.9)
    for index in np.ndindex(2, 2):
        alone = numerics.hdi_from_quantiles(lambda q, i=index: numerics.beta_quantile(q, a[i], b[i]), 0.9)
        assert (lower[index], upper[index]) == pytest.approx(alone, abs=1e-12)
    assert lower[0, 1] == pytest.approx(0, abs=1e-6)  # a density that falls begins at 0
    assert upper[1, 1] == pytest.approx(1, abs=1e-6)  # one that rises ends at 1


def test_hdi_of_draws():
    """From draws, the interval is the narrowest that holds the share of them, near the density's."""
    draws = stats.beta(8, 4).rvs(40_000, random_state=np.random.default_rng(0))
    lower, upper = numerics.hdi_from_draws(draws.reshape(4, -1), 0.9)
    assert np.mean((draws >= lower) & (draws <= upper)) == pytest.approx(0.9, abs=1e-3)
    exact = numerics.hdi_from_quantiles(lambda q: stats.beta(8, 4).ppf(q), 0.9)
    assert (lower, upper) == pytest.approx(exact, abs=0.02)  # over 6 standard errors of either end
    ordered = np.sort(draws)
    assert upper - lower <= ordered[37_999] - ordered[1_999]


def test_hdi_of_few_draws():
    """One draw is its own interval, and all draws alike have no width."""
    assert numerics.hdi_from_draws([0.3]) == (0.3, 0.3)
    assert numerics.hdi_from_draws([0.5] * 100) == (0.5, 0.5)
    assert numerics.hdi_from_draws([0.1, 0.9], 0.999) == (0.1, 0.9)


# Arguments


@pytest.mark.parametrize("k", [1, 7, np.int64(3), np.uint8(2), 10**20])
def test_k_that_is_allowed(k):
    """Integers of Python and NumPy are numbers of attempts."""
    assert check_count(k, "k") == k
    assert type(check_count(k, "k")) is int


@pytest.mark.parametrize("k", [0, -1, 2.5, "3", 3.0, True, np.True_, None, np.float64(2), [1]])
def test_k_that_is_refused(k):
    """Anything else is refused, and the message shows it."""
    with pytest.raises(InvalidArgument, match="attempts must be an integer ≥ 1, got ") as caught:
        check_count(k, "attempts")
    assert str(caught.value).endswith(f"got {k!r}")


@pytest.mark.parametrize("value", [95, -0.1, 1.0001, math.nan, math.inf, "0.5", True, None, np.True_, [0.5]])
def test_a_probability_that_is_refused(value):
    """What is not a number in the range is refused, and the message shows it."""
    with pytest.raises(InvalidArgument, match=r"threshold must be a number in \[0, 1\], got ") as caught:
        check_probability(value, "threshold")
    assert str(caught.value).endswith(f"got {value!r}")


def test_the_ends_of_a_probability():
    """0 and 1 are probabilities, but not of an interval."""
    assert [check_probability(value, "p") for value in (0, 1, 0.5, np.float32(0.5))] == [0, 1, 0.5, 0.5]
    for value in (0, 1, 1.0):
        with pytest.raises(InvalidArgument, match="ci_prob must be a number strictly between 0 and 1, got"):
            check_probability(value, "ci_prob", open_ends=True)


class TestBootstrapInterval:
    """The percentile bootstrap over tasks."""

    def test_agrees_with_scipy(self):
        """The percentile interval is SciPy's, within the error of two bootstraps."""
        values = np.random.default_rng(1).beta(2, 1, size=40)
        found = numerics.bootstrap_interval(values, 0.9)
        wanted = stats.bootstrap((values,), np.mean, confidence_level=0.9, method="percentile", rng=2, n_resamples=9999)
        np.testing.assert_allclose(found, wanted.confidence_interval, atol=0.004)

    def test_same_seed_same_interval(self):
        """The interval is a function of the values, whatever their order, and the seed."""
        values = np.random.default_rng(2).random(30)
        assert numerics.bootstrap_interval(values) == numerics.bootstrap_interval(values[::-1])
        assert numerics.bootstrap_interval(values) != numerics.bootstrap_interval(values, random_seed=1)

    def test_never_has_zero_width(self):
        """All tasks passed, or none did: Wilson's interval of T of T tasks."""
        lower, upper = numerics.bootstrap_interval([1.0] * 10)
        assert (lower, upper) == numerics.t_interval([1.0] * 10)
        assert lower < upper
        assert np.isnan(numerics.bootstrap_interval([])).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: numerics.wilson_interval(12, 10), r"c must lie in \[0, n\]"),
        (lambda: numerics.clopper_pearson_interval(-1, 10), r"c must lie in \[0, n\]"),
        (lambda: numerics.wilson_interval(1, 10, 95), "ci_prob must be a number strictly between 0 and 1, got 95"),
        (lambda: numerics.t_interval([0.1, 0.2], 1), "ci_prob must be a number strictly between 0 and 1, got 1"),
        (lambda: numerics.hdi_from_draws("x"), "draws must hold numbers, got 'x'"),
        (lambda: numerics.beta_quantile(0.5, {}, 1), "a must hold numbers"),
        (lambda: numerics.plugin_pass_pow_k(0.5, 2.5), "k must be an integer ≥ 1, got 2.5"),
        (lambda: numerics.beta_pass_at_k_mean(1, 1, 0), "k must be an integer ≥ 1, got 0"),
        (lambda: numerics.bootstrap_interval([0.1, 0.2], resamples=0), "resamples must be an integer ≥ 1, got 0"),
    ],
)
def test_what_is_no_number_is_refused_in_words(call, message):
    """Formulas refuse what they cannot compute with, and say what came."""
    with pytest.raises(InvalidArgument, match=message):
        call()
