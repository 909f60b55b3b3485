"""The frequentist test beside a comparison is SciPy's, on the tasks' unbiased values."""

import math

import numpy as np
import pytest
from fits import NEVER, STRONGER, WEAKER, counts
from scipy import stats

from agentic_bayes import numerics
from agentic_bayes.decisions.classical import against_agent, against_value
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.formatting import Metric


def of(**agents):
    return Counts.of(counts(agents))


def values(cells, k):
    n, c = np.array([cell[1] for cell in cells]), np.array([cell[0] for cell in cells])
    return numerics.pass_pow_k(n, c, k)


@pytest.mark.parametrize("k", [1, 3])
def test_shared_tasks_give_a_paired_t(k):
    """Mean difference, interval and p are those of SciPy's paired test on tasks that both have k trials of."""
    found = against_agent(of(v1=WEAKER, v2=STRONGER), 1, 0, Metric(f"pass^{k}"), 0.95)
    own, other = values(STRONGER, k), values([cell[:2] for cell in WEAKER], k)
    known = ~np.isnan(own) & ~np.isnan(other)
    expected = stats.ttest_rel(own[known], other[known])
    low, high = expected.confidence_interval(0.95)
    assert (found.name, found.n_tasks) == ("paired t", known.sum())
    assert found.difference == pytest.approx((own - other)[known].mean())
    assert (found.p_value, found.lower, found.upper) == pytest.approx((expected.pvalue, low, high))


def test_single_trials_give_mcnemars_exact_test():
    """Every shared task tried once by both: the binomial test of the discordant tasks."""
    v1 = [(1, 1)] * 12 + [(0, 1)] * 10 + [(1, 1)] * 3 + [(0, 1)] * 5
    v2 = [(1, 1)] * 12 + [(1, 1)] * 10 + [(0, 1)] * 3 + [(0, 1)] * 5
    found = against_agent(of(v1=v1, v2=v2), 1, 0, Metric("pass^1"), 0.95)
    assert (found.name, found.n_tasks, found.note) == (
        "McNemar",
        30,
        "10 passed by the agent only, 3 by the baseline only; the exact test is more cautious than the interval",
    )
    assert found.p_value == pytest.approx(stats.binomtest(10, 13).pvalue)
    assert found.difference == pytest.approx(7 / 30)
    # Agresti and Min: Wald's interval with half an observation more in each cell
    b, c, n = 10.5, 3.5, 32
    half = stats.norm.ppf(0.975) * math.sqrt((b + c) - (b - c) ** 2 / n) / n
    assert (found.lower, found.upper) == pytest.approx(((b - c) / n - half, (b - c) / n + half))
    assert (found.lower > 0, found.p_value > 0.05) == (True, True)  # which the note explains
    explained = found.disagreement(is_decided=True, estimand="population")
    assert explained.startswith("The test looks only at the tasks that exactly one of the two passed")
    assert found.disagreement(is_decided=False, estimand="population") == ""
    assert "cautious" not in against_agent(of(v1=v1, v2=v1[::-1]), 1, 0, Metric("pass^1"), 0.95).note


def test_single_trials_that_all_agree_are_no_evidence():
    """Without a discordant task p is 1 and the interval has a width."""
    found = against_agent(of(v1=[(1, 1)] * 5, v2=[(1, 1)] * 5), 1, 0, Metric("pass@1"), 0.95)
    assert (found.p_value, found.difference) == (1.0, 0.0)
    assert found.lower < 0 < found.upper


def test_agents_without_shared_tasks_get_welchs_t():
    """Two samples of tasks: SciPy's unequal-variance test."""
    cells = [(1, 4), (2, 4), (0, 4), (4, 4)], [(3, 4), (4, 4), (4, 4)]
    v1, v2 = [*cells[0], *[NEVER] * 3], [*[NEVER] * 4, *cells[1]]
    found = against_agent(of(v1=v1, v2=v2), 1, 0, Metric("pass^2"), 0.9)
    expected = stats.ttest_ind(values(cells[1], 2), values(cells[0], 2), equal_var=False)
    assert (found.name, found.p_value) == ("Welch t", pytest.approx(expected.pvalue))
    low, high = expected.confidence_interval(0.9)
    assert (found.lower, found.upper) == pytest.approx((low, min(high, 1)))  # a difference cannot exceed 1


def test_an_agent_whose_tasks_are_all_alike_is_tested_without_a_warning():
    """Its variance is 0 and that is no loss of precision: the t of the other one's tasks against its rate."""
    v1, v2 = [(2, 4)] * 8 + [NEVER] * 3, [NEVER] * 8 + [(3, 4), (4, 4), (1, 4)]
    found = against_agent(of(v1=v1, v2=v2), 1, 0, Metric("pass^1"), 0.95)
    expected = stats.ttest_1samp(values(v2[8:], 1), 0.5)
    assert found.p_value == pytest.approx(expected.pvalue)


def test_a_fixed_value_gives_a_one_sample_t():
    """SciPy's one-sample test of the tasks' values."""
    found = against_value(of(v1=STRONGER), 0, 0.6, Metric("pass^1"), 0.95)
    expected = stats.ttest_1samp(values(STRONGER, 1), 0.6)
    assert (found.name, found.p_value) == ("one-sample t", pytest.approx(expected.pvalue))


@pytest.mark.parametrize(
    ("cells", "k", "note"),
    [
        (([(1, 2)], [(2, 2)]), 1, "1 task with 1 trial or more: a test of pass^1 needs two such tasks"),
        (([(1, 2)] * 4, [(2, 2)] * 4), 3, "0 tasks with 3 trials or more: a test of pass^3 needs two such tasks"),
        (([(1, 2)] * 4, [(2, 2)] * 4), 1, "all tasks differ alike: no interval"),
    ],
)
def test_what_cannot_be_tested_says_why(cells, k, note):
    """Too few tasks, or no variation: NaN with a note, never a p of 0 or an interval without width."""
    found = against_agent(of(v1=cells[0], v2=cells[1]), 1, 0, Metric(f"pass^{k}"), 0.95)
    assert found.note == note
    assert math.isnan(found.p_value)
    assert math.isnan(found.lower)
    assert note in str(found)


def test_the_line_holds_the_numbers():
    """Name, difference, interval, p and tasks stand in one line."""
    text = str(against_agent(of(v1=WEAKER, v2=STRONGER), 1, 0, Metric("pass^1"), 0.95))
    assert text.startswith("paired t: difference 0.4")
    for part in ("95 % confidence interval [", ", p < 0.001", "10 tasks"):
        assert part in text
