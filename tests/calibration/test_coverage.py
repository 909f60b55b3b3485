"""Coverage at a few fixed truths; `make calibrate` tabulates all of them.

With 30 data sets a coverage of .95 gives a share below .75 with probability 7e-5, one of .92 with .002 (binomial).
An interval that is badly wrong is caught here; that coverage is .90 or more is what the full form shows.
"""

from functools import cache

import numpy as np
import pytest
from calibration.coverage import Cell, coverage, requirements, width_ratios

SIZE = 30
CELLS = (Cell(0.7, 0.2, 20, 3), Cell(0.7, 0.6, 20, 3))


@cache
def table():
    return coverage(CELLS, SIZE, seed=11)


def test_our_intervals_hold_the_truth():
    """Population and tasks, pass^1, pass^3 and pass@3 in cells that are held to .90 are not below .75."""
    held = requirements(table())
    assert len(held) == len(CELLS) * 2 * 3
    assert held["coverage"].min() >= 0.75


def test_the_plug_in_interval_does_not():
    """Where tasks differ, Wilson's interval mapped through p^k misses pass^3 more often than not."""
    rows = table().query("method == 'plug-in' and metric == 'pass^3' and rho == 0.6")
    assert rows["coverage"].max() < 0.5


def test_our_intervals_are_no_wider_than_those_of_per_task_values():
    """Against logit-t where it exists: at most 1.02 × as wide for a new task, .75 × for the tasks at hand."""
    ratios = width_ratios(table())
    assert ratios["population"] <= 1.02
    assert ratios["tasks"] <= 0.75


def test_no_interval_has_zero_width():
    """Also where every trial of a data set passed."""
    certain = coverage([Cell(0.9, 0.6, 5, 1)], 20, seed=11)
    assert (certain.query("method == 'ours'")["width"] > 0).all()


def test_hdi_is_shown_at_the_edge_of_the_prior_only():
    """At ρ = 0 there is an hdi row next to ours; elsewhere there is none, although some data sets recur."""
    both = coverage([Cell(0.7, 0.0, 5, 1), Cell(0.7, 0.2, 5, 1)], 20, seed=11)
    assert set(both.query("method == 'ours hdi'")["rho"]) == {0.0}


@pytest.mark.parametrize("processes", [1, 2])
def test_one_cell_is_the_same_alone_and_among_others(processes):
    """A cell's numbers depend on the seed and the cell, not on what else is simulated or in how many processes."""
    cells = [Cell(0.5, 0.2, 5, 1), Cell(0.9, 0.2, 5, 1)]
    alone = coverage(cells[1:], 4, seed=2).query("method == 'ours'")
    among = coverage(cells, 4, seed=2, processes=processes).query("method == 'ours' and mu == 0.9")
    assert np.array_equal(alone[["coverage", "width"]].values, among[["coverage", "width"]].values)
