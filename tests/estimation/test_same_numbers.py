"""The exact engine's numbers on 50 random sets of outcomes, as a slower version of it gave them.

``exact_numbers.npz`` holds the counts and the numbers; ``python tests/estimation/test_same_numbers.py`` writes it
again, which is right only after a change that is meant to change numbers. Whether they are right is tested elsewhere;
here a change that makes them faster must leave them as they are.
"""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from agentic_bayes.estimation.engines.grid.axes import Axis
from agentic_bayes.estimation.engines.grid.quadrature import _Functions, rows_of
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Hierarchical

FILE = Path(__file__).with_name("exact_numbers.npz")
SETS = 50
COLUMNS = ["mean", "sd", "median", "lower", "upper"]


def random_counts(seed):
    """Successes and trials of up to three agents on up to twenty tasks, some with tasks all alike, some of extremes."""
    rng = np.random.default_rng([20, seed])
    agents, tasks = int(rng.integers(1, 4)), int(rng.integers(1, 21))
    n = rng.integers(0, int(rng.choice([2, 6, 12])), (agents, tasks)) * (40 if seed % 10 == 0 else 1)
    mu, kappa = rng.uniform(0.05, 0.95, (agents, 1)), float(rng.choice([0.3, 1.5, 10, 1000]))
    return rng.binomial(n, rng.beta(mu * kappa, (1 - mu) * kappa, n.shape)), n


def numbers(c, n, seed):
    """Mean, sd, median and interval of new tasks and of the tasks tried, metric by metric."""
    cells = {"successes": c, "trials": n, "unscored": np.zeros_like(n)}
    labels = {"agent": [f"a{i}" for i in range(len(c))], "task": [f"t{i}" for i in range(c.shape[1])]}
    outcomes = xr.Dataset({name: (("agent", "task"), own) for name, own in cells.items()}, coords=labels)
    est = estimate(outcomes, Hierarchical(pool_agents=seed % 3 > 0), k=(1, 4))
    return np.array(
        [
            [float(getattr(est.posterior.stats(agent, estimand, metric, 0.95, "eti"), name)) for name in COLUMNS]
            for agent in range(len(c))
            for estimand in ("population", "tasks")
            for metric in est.posterior.metrics
        ]
    )


@pytest.mark.parametrize("first", range(0, SETS, 10))
def test_faster_code_gives_the_numbers_that_slower_code_gave(first):
    """Means and standard deviations to 1e-9, medians and ends of intervals to 1e-6."""
    with np.load(FILE) as kept:
        for seed in range(first, first + 10):
            c, n = random_counts(seed)
            np.testing.assert_array_equal(np.stack([c, n]), kept[f"counts {seed}"])
            found = numbers(c, n, seed)
            np.testing.assert_allclose(found[:, :2], kept[f"numbers {seed}"][:, :2], atol=1e-9, rtol=0)
            np.testing.assert_allclose(found[:, 2:], kept[f"numbers {seed}"][:, 2:], atol=1e-6, rtol=0)


def test_normal_densities_smoothed_by_normal_kernels_are_normal_densities():
    """All at once, with kernels wide and narrow: ∫ N(t; x, τ²) N(x; a, s²) dx = N(t; a, s² + τ²)."""
    centre, sd = np.array([[-2.0], [0.5], [3.0]]), np.array([[0.2], [1.0], [0.6]])
    axes = [Axis.over(a - 9 * s, a + 9 * s, a, s, step=0.11) for a, s in zip(centre[:, 0], sd[:, 0], strict=True)]
    log_f = rows_of([stats.norm(a, s).logpdf(axis.theta) for axis, a, s in zip(axes, centre, sd, strict=True)], -1e300)
    targets, tau = np.tile(np.linspace(-2.5, 2.5, 21), 3), np.repeat([0.01, 0.15, 2.0], 21)
    found = _Functions(axes, log_f).smooth(centre + sd * targets, tau)
    exact = stats.norm(centre, np.hypot(sd, tau)).logpdf(centre + sd * targets)
    np.testing.assert_allclose(found, exact, atol=3e-5)


def write():
    """Write the file."""
    made = {}
    for seed in range(SETS):
        c, n = random_counts(seed)
        made[f"counts {seed}"], made[f"numbers {seed}"] = np.stack([c, n]).astype(np.int16), numbers(c, n, seed)
    np.savez_compressed(FILE, **made)


if __name__ == "__main__":
    write()
