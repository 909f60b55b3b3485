"""The parts of the importance engine against what they are defined to be."""

import numpy as np
import pytest
from fits import counts
from scipy import special, stats
from scipy.stats import qmc

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.grid.exact import GridPosterior
from agentic_bayes.estimation.engines.grid.quadrature import fit_agents
from agentic_bayes.estimation.engines.importance.normal_scale import logistic
from agentic_bayes.estimation.engines.importance.sampler import fit_crossed
from agentic_bayes.estimation.engines.importance.shared_strength import SharedStrength
from agentic_bayes.estimation.engines.importance.sobol import sobol_points
from agentic_bayes.estimation.methods import crossed
from agentic_bayes.estimation.methods.crossed import CrossedPosterior
from agentic_bayes.estimation.methods.crossed_likelihood import CrossedLikelihood
from agentic_bayes.estimation.methods.options import Crossed, Hierarchical
from agentic_bayes.formatting import Metric, metrics_at


def _simulated(agents: int, tasks: int, trials: int, rho: float) -> Counts:
    rng = np.random.default_rng([agents, tasks, trials])
    mu = special.expit(rng.normal(size=(agents, 1)) + 1.5 * rng.normal(size=tasks))
    kappa = 1 / rho - 1
    passed = rng.binomial(trials, rng.beta(mu * kappa + 1e-9, (1 - mu) * kappa + 1e-9))
    return Counts.of(counts({f"agent {a}": [(int(c), trials) for c in row] for a, row in enumerate(passed)}))


def test_agents_that_share_strength_have_the_prior_with_mean_and_spread_integrated_out():
    """The table of τ and the nodes of m give the double integral, up to one constant, and its gradient."""
    prior = SharedStrength(logistic(), 1.0, 4)
    theta = np.array([[0.3, 1.2, -0.2, 0.8], [2.0, 2.5, -3.0, 1.0], [0.5, 0.6, 0.3, 0.6]])
    u = special.ndtri(special.expit(theta))

    m, tau = np.linspace(-20, 20, 4001), np.linspace(0.01, 5, 300)[:, None]

    def log_ratio(level: np.ndarray) -> float:
        logs = stats.logistic.logpdf(m) - tau**2 / 2 - np.log(tau) * 4
        for one in level:
            logs = logs - 0.5 * ((one - m) / tau) ** 2
        return float(special.logsumexp(logs) - stats.logistic.logpdf(level).sum())

    difference = prior(theta, u)[0] - [log_ratio(level) for level in theta]
    assert np.ptp(difference) < 0.01
    step = 1e-4 * np.eye(4)[0]
    slope = (prior(theta + step, u)[0] - prior(theta - step, u)[0]) / 2e-4
    np.testing.assert_allclose(slope, prior(theta, u)[1][:, 0], atol=5e-4)


@pytest.mark.parametrize(("agents", "tasks", "trials"), [(2, 20, 3), (5, 20, 2), (8, 40, 4)])
def test_pooled_agents_need_no_second_engine(agents, tasks, trials):
    """With m and τ integrated out the first points do; as coordinates, half of such sets fell back to NUTS."""
    fitted = fit_crossed(_simulated(agents, tasks, trials, 0.1), Crossed(pool_agents=True))
    assert fitted.diagnostics.passed, fitted.diagnostics


@pytest.fixture(scope="module")
def points() -> dict:
    """Two agents on 200 tasks, as what a posterior is made of."""
    data = _simulated(2, 200, 3, 0.2)
    fitted = fit_crossed(data, Crossed())
    known = {name: getattr(fitted, name) for name in ("theta", "sigma", "rho", "weight")}
    return {"counts": data, "random_seed": 0, **known}


@pytest.mark.parametrize("metric", ["pass^1", "pass@3", "pass^7"])
def test_sums_over_some_tasks_are_scaled_up_to_all(monkeypatch, points, metric):
    """The mean over 200 tasks from 30 of them and the means given the data: as from all, one by one."""
    found = []
    for most in (500, 30):
        monkeypatch.setattr(crossed, "MOST_DRAWN", most)
        posterior = CrossedPosterior(**points)
        found.append([posterior.distribution(agent, "tasks", Metric(metric)) for agent in (0, 1)])
    for one, other in zip(*found, strict=True):
        assert other.mean == pytest.approx(one.mean, abs=0.08 * one.sd)
        assert other.sd == pytest.approx(one.sd, rel=0.06)


def test_metrics_computed_together_are_what_each_is_alone(monkeypatch, points):
    """With many k a product goes on from the k before it; numbers are those of a product from 1."""
    monkeypatch.setattr(crossed, "MOST_DRAWN", 30)
    alone, metrics = CrossedPosterior(**points), metrics_at((1, 3, 7, 9, 40))
    together = CrossedPosterior(**points, metrics=metrics)
    for metric in metrics:
        for estimand in ("population", "tasks"):
            one, other = (each.distribution(1, estimand, metric).values for each in (alone, together))
            np.testing.assert_allclose(other, one, rtol=1e-12)


def test_draws_evaluated_together_have_the_likelihood_that_each_has_alone():
    """Sums over δ are scaled by what draws before have shown; far ones, whose sums would overflow, are not lost."""
    likelihood = CrossedLikelihood(_simulated(3, 40, 20, 0.2))
    likelihood._chunk = 8
    rng = np.random.default_rng(0)
    theta, sigma, rho = rng.normal(size=(40, 3)), np.exp(rng.normal(size=40)), rng.uniform(0.01, 0.9, (40, 3))
    theta[17], sigma[17], rho[17] = 9.0, 0.1, 1e-6
    together = likelihood(theta, sigma, rho, 1 - rho)
    alone = [likelihood(theta[[i]], sigma[[i]], rho[[i]], 1 - rho[[i]])[0] for i in range(40)]
    np.testing.assert_allclose(together, alone, rtol=1e-6, atol=2e-3)


def test_an_agent_without_data_has_the_numbers_of_a_much_finer_grid():
    """What the others say of it is integrated where it is, not where the kernel is centred."""
    rng = np.random.default_rng(0)
    cells = {"rich": [(int(c), 10) for c in rng.binomial(10, 0.8, 400)], "poor": [(1, 1), *[(0, 0)] * 399]}
    held = Counts.of(counts(cells))
    for metric in metrics_at((1, 3)):
        found = [
            GridPosterior(
                counts=held, random_seed=0, fit=fit_agents(held, Hierarchical(), fine=fine), metrics=metrics_at((1, 3))
            ).distribution(1, "population", Metric(str(metric)))
            for fine in (1.0, 3.0)
        ]
        ends = [one.quantile(np.array([0.025, 0.5, 0.975])) for one in found]
        np.testing.assert_allclose(*ends, atol=0.005)


@pytest.mark.parametrize(("dim", "size"), [(1, 1), (2, 4), (11, 512), (80, 1024)])
def test_sobol_points_are_those_of_scipy(dim, size):
    """Bit for bit, since they decide the numbers of every crossed estimate."""
    theirs = qmc.Sobol(dim, seed=np.random.default_rng([3, dim])).random(size)
    np.testing.assert_array_equal(sobol_points(dim, size, np.random.default_rng([3, dim])), theirs)
