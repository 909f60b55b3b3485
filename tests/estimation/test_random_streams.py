"""Which random numbers an estimate draws: keyed by seed and counts, never by names or positions."""

import itertools

import numpy as np
import pytest
from fits import counts

from agentic_bayes.decisions.compare import compare
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Conjugate, Crossed, Hierarchical

METHODS = (
    Hierarchical(),
    Hierarchical(pool_agents=False),
    Hierarchical(inflate=True),
    Conjugate(),
    Conjugate(pool_tasks=True),
    Crossed(),
    Crossed(pool_agents=True),
)
ESTIMANDS = ("population", "tasks")


def simulated(seed, agents=1, tasks=40):
    """Counts of agents that are alike, as cells by position."""
    rng = np.random.default_rng(seed)
    return [[(int(c), 4) for c in rng.binomial(4, rng.beta(2, 1, tasks))] for _ in range(agents)]


def drawn(est, estimand):
    """Draws of pass^1 and pass^3 of every agent, shape (agents × metrics, draws)."""
    pairs = itertools.product(est.agents, ("pass^1", "pass^3"))
    return np.array([est.metric_draws(name, metric=metric, estimand=estimand) for name, metric in pairs])


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_estimates_made_apart_are_independent(method):
    """Different counts, same seed: no draw of one says anything of a draw of the other.

    |r| < .06 of 4,000 draws for at most 32 pairs each: false-alarm rate under .01 in all.
    """
    # one of the pooled crossed fits is just beyond what counts as reliable: NUTS, which would follow, is not meant
    engine = "importance" if isinstance(method, Crossed) else "auto"
    first, second = (
        estimate(counts(dict(zip(("a", "b"), simulated(seed, 2, tasks=20), strict=True))), method, engine=engine)
        for seed in (1, 2)
    )
    for estimand in ESTIMANDS:
        if estimand not in first.posterior.estimands:
            continue
        one, other = drawn(first, estimand), drawn(second, estimand)
        across = np.corrcoef(one, other)[: len(one), len(one) :]
        assert np.abs(across).max() < 0.06
    for one, other in itertools.product((0, 1), repeat=2):
        p, q = first.posterior.task_draws(one).mean(axis=1), second.posterior.task_draws(other).mean(axis=1)
        assert abs(np.corrcoef(p, q)[0, 1]) < 0.06


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_the_same_counts_have_the_same_bits(method):
    """Renamed and reordered agents and tasks keep every draw, in another estimate too."""
    cells = simulated(3, 2, tasks=12)
    order = np.random.default_rng(0).permutation(12)
    first = estimate(counts({"a": cells[0], "b": cells[1]}), method)
    renamed = {"z": [cells[0][i] for i in order], "b": [cells[1][i] for i in order]}
    second = estimate(counts(renamed), method)
    for estimand in ESTIMANDS:
        if estimand in first.posterior.estimands:
            for one, other in (("a", "z"), ("b", "b")):
                question = {"metric": "pass^3", "estimand": estimand}
                np.testing.assert_array_equal(
                    first.metric_draws(one, **question), second.metric_draws(other, **question)
                )


def test_agents_with_equal_counts_draw_apart():
    """Within an estimate a number tells agents with equal counts apart; alone, each has the same stream."""
    cells = simulated(4)[0]
    both = Counts.of(counts({"a": cells, "b": cells[::-1]}))
    assert len(set(both.streams)) == 2
    assert min(both.streams) >= 0
    assert Counts.of(counts({"x": cells})).streams[0] in both.streams
    est = estimate(counts({"a": cells, "b": cells[::-1]}), Hierarchical(pool_agents=False))
    assert abs(np.corrcoef(drawn(est, "population"))[0, 2]) < 0.06


def test_tasks_that_say_nothing_change_no_stream():
    """Attempts without a verdict, and tasks that nobody tried, are not among the counts."""
    cells = simulated(5)[0]
    plain, more = (Counts.of(counts({"a": row})) for row in (cells, [*cells, (0, 0), (0, 0, 2)]))
    assert (plain.streams, plain.stream, plain.seed(1)) == (more.streams, more.stream, more.seed(1))
    assert plain.seed(1) != plain.seed(2)


def test_equal_agents_estimated_apart_are_seldom_told_apart():
    """Null pairs, fitted apart: false verdicts at most .06 (10 pairs, two standard errors allowed)."""
    false = 0
    for seed in range(10):
        new, old = (estimate(counts({"agent": simulated((seed, side))[0]}), k=1) for side in (1, 2))
        false += compare(new, baseline=old).verdict in ("better", "worse")
    assert false <= 10 * 0.06 + 2 * np.sqrt(10 * 0.06 * 0.94)
