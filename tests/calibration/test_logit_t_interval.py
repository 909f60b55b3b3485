import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agentic_bayes.numerics import logit_t_interval

VALUES = st.lists(st.floats(0, 1), min_size=2, max_size=30).filter(lambda values: np.ptp(values) > 1e-3)


def test_it_is_the_t_interval_of_the_logit_by_the_delta_method():
    """Four values, against `scipy.stats.t` on the logit scale with the standard error divided by x (1 - x)."""
    values = np.array([0.2, 0.4, 0.4, 1.0])
    scale = stats.sem(values) / (0.5 * 0.5)
    low, high = stats.t.interval(0.9, df=3, loc=0, scale=scale)
    assert logit_t_interval(values, 0.9) == pytest.approx((1 / (1 + math.exp(-low)), 1 / (1 + math.exp(-high))))


@given(VALUES)
def test_it_holds_the_mean_inside_the_unit_interval(values):
    """Whatever the values, 0 ≤ lower ≤ mean ≤ upper ≤ 1."""
    lower, upper = logit_t_interval(values)
    assert 0 <= lower <= np.mean(values) + 1e-12
    assert np.mean(values) - 1e-12 <= upper <= 1


@given(VALUES)
def test_mirrored_values_mirror_it(values):
    """Exchanging x and 1 - x mirrors the interval."""
    lower, upper = logit_t_interval(values)
    assert logit_t_interval(1 - np.array(values)) == pytest.approx((1 - upper, 1 - lower), abs=1e-9)


@pytest.mark.parametrize("values", [[], [0.5], [0, 0, 0], [1, 1], [0.3, 0.3, 0.3]])
def test_it_is_undefined_without_spread(values):
    """Fewer than two values, or equal ones, say nothing about the spread: NaN, not a zero width."""
    assert all(math.isnan(end) for end in logit_t_interval(values))
