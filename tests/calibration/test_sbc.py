"""Reduced simulation-based calibration; `make calibrate` runs the full form of the same code."""

from functools import cache

import numpy as np
import pytest
from calibration import crossed, groups, sbc
from scipy import stats

SIZES = {"one agent": 20, "two agents that share strength": 10, "two agents, paired": 12, "groups": 9}
# thirty-one quantities are each allowed .001: a right engine fails some one with probability .03 at most; the seed is
# fixed
FALSE_ALARM = 0.001


@cache
def study(design):
    match design:
        case "two agents, paired":
            return crossed.study(SIZES[design], seed=7)
        case "groups":
            return groups.study(SIZES[design], seed=7)
    return sbc.study(design, SIZES[design], seed=7)


@pytest.mark.parametrize("design", SIZES)
def test_the_rank_of_the_truth_is_uniform(design):
    """With truth from the prior, ranks of parameters, of pass^3 of every estimand, of differences and of groups."""
    outside = {name: p for name, p in study(design).p_values().items() if p < FALSE_ALARM}
    assert not outside


def test_a_wrong_prior_is_caught():
    """With ρ ~ Beta(1, 10) instead of the prior behind the data, ranks of ρ and pass^3 leave the envelope."""
    p_values = sbc.study("one agent", 30, seed=7, method=sbc.WRONG_PRIOR).p_values()
    assert p_values["ρ"] < FALSE_ALARM
    assert p_values["population pass^3"] < FALSE_ALARM


@pytest.mark.parametrize("design", SIZES)
def test_intervals_hold_truth_from_the_prior(design):
    """95 % intervals of each quantity contain the truth in 95 % of data sets, as far as so few can tell.

    Under a right engine one check fails with probability 6e-5 at most, some one of these thirty-four with .002.
    """
    fewest = stats.binom.ppf(6e-5, SIZES[design], 0.95)
    outside = {name: hits.mean() for name, hits in study(design).covered.items() if hits.sum() < fewest}
    assert not outside


def test_the_envelope_has_the_false_alarm_rate_that_it_states():
    """Of 2,000 uniform samples 1 % leave the 99 % envelope, give or take 4 standard errors."""
    rng = np.random.default_rng(0)
    outside = np.mean([sbc.envelope_p_value(rng.random(100)) < 0.01 for _ in range(2000)])
    assert abs(outside - 0.01) < 4 * np.sqrt(0.01 * 0.99 / 2000)


@pytest.mark.parametrize("power", [0.6, 1.6])
def test_the_envelope_catches_skewed_ranks(power):
    """Ranks that lean to one side, as those of a biased engine do, leave it."""
    ranks = np.random.default_rng(1).random(400) ** power
    assert sbc.envelope_p_value(ranks) < 0.001


@pytest.mark.parametrize("shape", [0.6, 1.8])
def test_the_envelope_catches_ranks_of_a_wrong_width(shape):
    """Ranks piled up at both ends (intervals too narrow) or in the middle (too wide) leave it."""
    ranks = np.random.default_rng(1).beta(shape, shape, 400)
    assert sbc.envelope_p_value(ranks) < 0.001


@pytest.mark.slow  # test_coverage.py shows it of the same function
def test_the_number_of_processes_changes_nothing():
    """Every data set has a generator of its own: two processes give the ranks that one gives."""
    alone, spread = (sbc.study("one agent", 4, seed=3, processes=processes) for processes in (1, 2))
    assert all(np.array_equal(alone.ranks[name], spread.ranks[name]) for name in alone.ranks)
