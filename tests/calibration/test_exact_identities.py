"""What must hold exactly of the exact engine, whatever the data."""

import numpy as np
import pytest
from calibration.simulate import counts_of, exact_posterior, rho_cdf, stats_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq
from strategies import reduced

from agentic_bayes.formatting import Metric

METRICS = tuple(map(Metric, ("pass^1", "pass^3", "pass@3")))
MIRRORED = dict(zip(METRICS, map(Metric, ("pass@1", "pass@3", "pass^3")), strict=True))
RATE, CUBE, _ = METRICS
FEW = 25 if reduced(25) == 25 else 5  # all of them where they are new every time
QUANTILES = 1e-5  # how closely interpolation inverts the distribution function


@st.composite
def outcomes(draw, most_agents=2):
    """Successes and trials of one or two agents on up to 12 tasks, some never tried, every agent scored somewhere."""
    agents, tasks = draw(st.integers(1, most_agents)), draw(st.integers(1, 12))
    cell = st.integers(0, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
    cells = draw(st.lists(cell, min_size=agents * tasks, max_size=agents * tasks))
    c, n = np.array(cells).T.reshape(2, agents, tasks)
    n[:, 0] = np.maximum(n[:, 0], 1)
    return c, n


@settings(max_examples=FEW, deadline=None)
@given(outcomes())
def test_exchanging_success_and_failure_mirrors_means_and_population_quantiles(data):
    """Relabelled counts turn pass^k into 1 - pass@k: to 1e-10 in means and sds, to 1e-5 in interpolated quantiles."""
    c, n = data
    one, other = (exact_posterior(counts_of(part, n), metrics=METRICS) for part in (c, n - c))
    for agent in range(len(c)):
        for metric, mirror in MIRRORED.items():
            up, down = (stats_of(p, agent, "population", m) for p, m in ((one, metric), (other, mirror)))
            assert up.mean == pytest.approx(1 - down.mean, abs=1e-10)
            for name, opposite in (("median", "median"), ("lower", "upper"), ("upper", "lower")):
                assert getattr(up, name) == pytest.approx(1 - getattr(down, opposite), abs=QUANTILES)
            assert up.sd == pytest.approx(down.sd, abs=1e-10)
            tasks = [p.distribution(agent, "tasks", m).mean for p, m in ((one, metric), (other, mirror))]
            assert tasks[0] == pytest.approx(1 - tasks[1], abs=1e-10)
            each = [p.distribution(agent, "task", m).mean for p, m in ((one, metric), (other, mirror))]
            assert each[0] == pytest.approx(1 - each[1], abs=1e-10)


@settings(max_examples=FEW, deadline=None)
@given(outcomes())
def test_twice_as_fine_a_grid_changes_next_to_nothing(data):
    """Means move by less than 1e-5 and population quantiles by less than 5e-4."""
    counts = counts_of(*data)
    coarse, fine = (exact_posterior(counts, metrics=METRICS, fine=fine) for fine in (1.0, 2.0))
    for agent in range(len(counts.agents)):
        for metric in METRICS:
            was, becomes = (stats_of(p, agent, "population", metric) for p in (coarse, fine))
            assert was.mean == pytest.approx(becomes.mean, abs=1e-5)
            assert was.sd == pytest.approx(becomes.sd, abs=1e-5)
            for name in ("lower", "median", "upper"):
                assert getattr(was, name) == pytest.approx(getattr(becomes, name), abs=5e-4)
            means = [p.distribution(agent, "task", metric).mean for p in (coarse, fine)]
            assert means[0] == pytest.approx(means[1], abs=1e-5)


@settings(max_examples=reduced(30), deadline=None)
@given(st.integers(0, 60), st.integers(0, 60))
def test_one_trial_per_task_gives_a_beta_posterior_of_mu_and_the_prior_of_rho(passed, failed):
    """S passes and F failures of tasks tried once: μ ~ Beta(1 + S, 1 + F), ρ as its prior."""
    c = np.repeat([1, 0], [passed, failed])
    if c.size == 0:
        c = np.array([1])
        passed = 1
    posterior = exact_posterior(counts_of(c, np.ones_like(c)), metrics=METRICS)
    beta, mu = stats.beta(1 + passed, 1 + failed), stats_of(posterior, 0, "population", RATE)
    assert mu.mean == pytest.approx(beta.mean(), abs=1e-10)
    assert mu.sd == pytest.approx(beta.std(), abs=1e-8)  # a difference of second moments
    assert (mu.lower, mu.median, mu.upper) == pytest.approx(beta.ppf([0.025, 0.5, 0.975]), abs=QUANTILES)
    points = np.concatenate([[0.0005, 0.003, 0.02], np.linspace(0, 1, 11)])
    prior = 0.75 * points + 0.25 * stats.beta(1, 300).cdf(points)
    assert rho_cdf(posterior, 0, points) == pytest.approx(prior, abs=1e-8)


@settings(max_examples=FEW, deadline=None)
@given(outcomes(), st.randoms(use_true_random=False))
def test_the_order_of_tasks_does_not_matter(data, random):
    """Shuffled tasks give the same population numbers to the last bit."""
    c, n = data
    order = list(range(n.shape[1]))
    random.shuffle(order)
    one, other = (exact_posterior(counts_of(c[:, o], n[:, o]), metrics=METRICS) for o in (slice(None), order))
    for agent in range(len(c)):
        assert stats_of(one, agent, "population", CUBE) == stats_of(other, agent, "population", CUBE)


def test_nothing_scored_leaves_the_prior():
    """An agent without a scored trial has μ and ρ from the prior: pass^1 is uniform."""
    posterior = exact_posterior(counts_of([0, 0], [0, 0]), metrics=METRICS)
    alone = stats_of(posterior, 0, "population", RATE)
    assert (alone.mean, alone.sd) == pytest.approx((0.5, np.sqrt(1 / 12)), abs=1e-10)
    assert (alone.lower, alone.median, alone.upper) == pytest.approx((0.025, 0.5, 0.975), abs=QUANTILES)


@pytest.mark.parametrize("metric", [Metric("pass@3"), Metric("pass^3")])
@pytest.mark.parametrize(("passed", "failed"), [(0, 1), (3, 5), (17, 40), (0, 60), (60, 2)])
def test_one_trial_per_task_gives_the_distribution_of_three_attempts_by_one_integral(passed, failed, metric):
    """P(pass³ ≤ y) = ∫ P(μ ≤ μ(y, ρ)) p(ρ) dρ, with μ ~ Beta(1 + S, 1 + F); 32 nodes of ρ give 2e-6."""
    c = np.repeat([1, 0], [passed, failed])
    posterior = exact_posterior(counts_of(c, np.ones_like(c)), metrics=METRICS)
    beta = stats.beta(1 + passed, 1 + failed)

    def mean_of_three(mu, rho):
        share = mu if metric.power else 1 - mu
        tail = np.prod([((1 - rho) * share + j * rho) / (1 - rho + j * rho) for j in range(3)])
        return tail if metric.power else 1 - tail

    node, weight = np.polynomial.legendre.leggauss(80)
    parts = (0.75, stats.uniform()), (0.25, stats.beta(1, 300))
    of_rho = [
        (share * w / 2, part.ppf((x + 1) / 2)) for share, part in parts for x, w in zip(node, weight, strict=True)
    ]
    new_task = posterior.distribution(0, "population", metric)
    for y in new_task.quantile(np.array([0.025, 0.3, 0.5, 0.9])):
        mu = [brentq(lambda m, r=r, y=y: mean_of_three(m, r) - y, 0, 1, xtol=1e-15) for _, r in of_rho]
        expected = np.array([w for w, _ in of_rho]) @ beta.cdf(mu)
        assert new_task.below(np.array([y]))[0] == pytest.approx(expected, abs=2e-6)
