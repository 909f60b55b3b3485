"""A judge's rates: point and interval of one estimator."""

import pytest
from scipy import stats

from agentic_bayes.judges.error_rates import Proportion


def test_a_judge_right_on_all_positive_labels():
    """50 of 50: mean and interval are those of Beta(52, 1), as they are printed."""
    rate = Proportion.of(50, 50, 0.95)
    beta = stats.beta(52, 1)
    assert str(rate) == f"{beta.mean():.3f} [{beta.ppf(0.025):.3f}, >0.999] (50 of 50)"
    assert rate.upper == pytest.approx(beta.ppf(0.975))
    assert rate.lower < rate.mean < rate.upper
