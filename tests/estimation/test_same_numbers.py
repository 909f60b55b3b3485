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

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.distribution import Drawn
from agentic_bayes.estimation.engines.grid import quadrature
from agentic_bayes.estimation.engines.grid.axes import Axis
from agentic_bayes.estimation.engines.grid.exact import GridPosterior
from agentic_bayes.estimation.engines.grid.new_task import FineGrid
from agentic_bayes.estimation.engines.grid.quadrature import _Functions, rows_of
from agentic_bayes.estimation.engines.importance.pareto import smoothed
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.formatting import Metric, metrics_at

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


def outcomes_of(c, n):
    """Counts of agents a0, a1, … on tasks t0, t1, …"""
    cells = {"successes": c, "trials": n, "unscored": np.zeros_like(n)}
    labels = {"agent": [f"a{i}" for i in range(len(c))], "task": [f"t{i}" for i in range(c.shape[1])]}
    return xr.Dataset({name: (("agent", "task"), own) for name, own in cells.items()}, coords=labels)


def numbers(c, n, seed):
    """Mean, sd, median and interval of new tasks and of the tasks tried, metric by metric."""
    est = estimate(outcomes_of(c, n), Hierarchical(pool_agents=seed % 3 > 0), k=(1, 4))
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


@pytest.mark.parametrize("method", ["hierarchical", "crossed"])
def test_drawing_agents_in_threads_gives_the_bits_that_one_after_the_other_gives(method):
    """Nor does it matter which agent is asked for first, or alone."""
    outcomes = outcomes_of(*random_counts(2))
    together, alone = (estimate(outcomes, method, k=(1, 4)) for _ in range(2))
    assert len(together.agents) == 3
    together.summary()
    for agent in reversed(together.agents):
        question = {"metric": "pass^4", "estimand": "tasks"}
        np.testing.assert_array_equal(
            together.metric_draws(agent, **question), alone.metric_draws(agent, **question), strict=True
        )


def test_who_asks_for_one_agent_does_not_wait_for_the_draws_of_others(monkeypatch):
    """Comparing two of 200 agents draws for two."""
    drawn, draw = [], GridPosterior._draw_hyper
    monkeypatch.setattr(GridPosterior, "_draw_hyper", lambda self, agent: drawn.append(agent) or draw(self, agent))
    estimate(outcomes_of(*random_counts(2)), "hierarchical").metric_draws("a2")
    assert drawn == [2]


def test_a_few_quantiles_of_a_new_task_are_those_that_the_whole_table_gives():
    """Three look up the part of the table around them, many the whole; far in a tail there is no such part."""
    fit = estimate(outcomes_of(*random_counts(2)), "hierarchical").posterior.fit
    q = np.array([1e-12, 0.025, 0.5, 0.975])
    for metric in ("pass^1", "pass^5", "pass@3"):
        few, many = (FineGrid.of(fit.agents[0]).new_tasks([Metric(metric)])[Metric(metric)] for _ in range(2))
        whole = many.quantile(np.concatenate([q, np.linspace(0.001, 0.999, 200)]))[: q.size]
        assert few.quantile(q[1:]).tolist() == whole[1:].tolist()
        assert few.quantile(q).tolist() == whole.tolist()


def test_a_metric_is_the_same_alone_and_among_many():
    """Metrics are tabulated some at a time; which ones are asked for together changes no bit."""
    fine, q = FineGrid.of(estimate(outcomes_of(*random_counts(2)), "hierarchical").posterior.fit.agents[0]), [0.1, 0.9]
    metrics = metrics_at(range(1, 13))
    together = fine.new_tasks(metrics)
    for metric in metrics:
        alone = fine.new_tasks([metric])[metric]
        assert together[metric].quantile(np.array(q)).tolist() == alone.quantile(np.array(q)).tolist()
        assert together[metric].moments == alone.moments


def test_leaving_out_impossible_spreads_between_agents_changes_nothing(monkeypatch):
    """With forty agents most nodes of τ have no mass; with all of them every number is the same."""
    rng = np.random.default_rng(4)
    outcomes = outcomes_of(rng.binomial(6, rng.uniform(0.4, 0.8, (40, 1)), (40, 12)), np.full((40, 12), 6))
    pools = []
    for impossible in (quadrature.IMPOSSIBLE, np.inf):
        monkeypatch.setattr(quadrature, "IMPOSSIBLE", impossible)
        est = estimate(outcomes, "hierarchical")
        numbers = est.summary(columns="all")[COLUMNS].to_numpy(float)
        pools.append((est.posterior.fit.pool.tau.size, numbers))
    (few, short), (all_of_them, long) = pools
    assert few < all_of_them
    np.testing.assert_allclose(short, long, atol=1e-9)


def test_quantiles_of_draws_are_those_of_numpy():
    """Of one number and of several, at the ends and between; a probability beyond them is refused."""
    rng = np.random.default_rng(3)
    for values in (rng.random(4001), rng.integers(0, 3, (50, 4)) / 7, np.array([0.3])):
        drawn = Drawn(mean=0.5, sd=0.1, values=values)
        for q in (np.array([0, 0.025, 0.31, 0.5, 1]), 0.7):
            np.testing.assert_array_equal(drawn.quantile(q), np.quantile(values, q, axis=0), strict=True)
    with pytest.raises(InvalidArgument, match=r"probabilities must lie in \[0, 1\], got 1.5"):
        drawn.quantile(1.5)


def test_the_smoothed_tail_is_the_last_part_of_a_stable_sort():
    """Also where values at its end are equal: only the last of them in order belong to it."""
    logs = np.round(np.random.default_rng(5).normal(0, 2, 1000), 1)
    found, count = smoothed(logs)[0], int(np.ceil(3 * np.sqrt(logs.size)))
    order = np.argsort(logs, kind="stable")
    assert logs[order[-count]] == logs[order[-count - 1]]
    np.testing.assert_array_equal(found[order[:-count]], (logs - logs.max())[order[:-count]])
    assert np.all(np.diff(found[order[-count:]]) >= 0)
    assert np.all(found[order[-count:-1]] != (logs - logs.max())[order[-count:-1]])  # the greatest stays


def write():
    """Write the file."""
    made = {}
    for seed in range(SETS):
        c, n = random_counts(seed)
        made[f"counts {seed}"], made[f"numbers {seed}"] = np.stack([c, n]).astype(np.int16), numbers(c, n, seed)
    np.savez_compressed(FILE, **made)


if __name__ == "__main__":
    write()
