"""Priors that are singular at an end, narrow or cut off: the exact engine against an integral over quantiles."""

import numpy as np
import pytest
from scipy import stats

from agentic_bayes import Hierarchical, NearZero
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.grid.exact import GridPosterior
from agentic_bayes.estimation.engines.grid.quadrature import fit_agents
from agentic_bayes.formatting import Metric

SPREAD = np.array([0, 3, 5, 5, 2, 4]), np.full(6, 5)
ALL_PASS = np.full(6, 5), np.full(6, 5)
CUBE = Metric("pass^3")


def posterior(c, n, **priors):
    """The exact engine's posterior of one agent's pass^3 of a new task."""
    counts = Counts(("a",), tuple(map(str, range(c.size))), c[None], n[None], np.zeros_like(n)[None])
    method = Hierarchical(pool_agents=False, **priors)
    return GridPosterior(counts=counts, random_seed=0, fit=fit_agents(counts, method), metrics=(CUBE,)).distribution(
        0, "population", CUBE
    )


def integral(c, n, mu, rho):
    """E pass^3, by Gauss-Legendre panels in the quantiles of both priors: no density is evaluated."""
    edges = np.concatenate([[0], np.geomspace(1e-10, 0.1, 30), np.linspace(0.15, 0.85, 12)])
    edges = np.unique(np.concatenate([edges, 1 - edges]))
    x, w = np.polynomial.legendre.leggauss(6)
    half = np.diff(edges)[:, None] / 2
    q, weight = (edges[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()
    share, r = (np.maximum(np.where(q < 0.5, p.ppf(q), p.isf(1 - q)), 1e-300) for p in (mu, rho))
    r = np.minimum(r, 1 - 1e-15)
    share, log = share[:, None], np.zeros((q.size, q.size))
    for passed, trials in zip(c.tolist(), n.tolist(), strict=True):
        for part, length in ((share, passed), (1 - share, trials - passed)):
            log += sum(np.log(np.maximum((1 - r) * part + j * r, 1e-300)) for j in range(length))
        log -= sum(np.log(np.maximum(1 - r + j * r, 1e-300)) for j in range(trials))
    mass = np.exp(log - log.max()) * weight * weight[:, None]
    cube = np.prod([((1 - r) * share + j * r) / (1 - r + j * r) for j in range(3)], axis=0)
    return float(np.sum(mass * cube) / mass.sum())


@pytest.mark.parametrize(
    ("name", "prior"),
    [
        ("mu", stats.beta(0.5, 0.5)),
        ("mu", stats.beta(2000, 1000)),
        ("mu", stats.uniform(0.4, 0.2)),
        ("mu", stats.uniform(0.7, 1e-4)),
        pytest.param("rho", stats.beta(0.2, 1), marks=pytest.mark.slow),
        ("rho", stats.beta(0.5, 0.5)),
        ("rho", stats.uniform(0, 1e-4)),
        ("rho", stats.uniform(0.3, 0.01)),
        ("rho", NearZero(0.5, 1e6)),
    ],
)
@pytest.mark.parametrize("data", [SPREAD, ALL_PASS])
def test_the_mean_is_that_of_an_integral_over_the_quantiles_of_the_priors(name, prior, data):
    """E pass^3 to 1e-5, with tasks that differ and with all trials passed."""
    priors = {"mu": stats.uniform(), "rho": NearZero()} | {name: prior}
    assert float(posterior(*data, **{name: prior}).mean) == pytest.approx(integral(*data, **priors), abs=1e-5)


def test_a_beta_prior_with_mass_next_to_0_and_1_works_where_data_rule_it_out():
    """beta(.01, .01) of μ with passes and failures: near the answer for a prior proportional to 1/(μ(1-μ))."""
    found = [float(posterior(*SPREAD, mu=stats.beta(a, a)).mean) for a in (0.01, 0.001)]
    assert found[0] == pytest.approx(found[1], abs=2e-3)


@pytest.mark.parametrize("priors", [{"mu": stats.beta(0.01, 0.01)}, {"rho": stats.beta(0.01, 1)}])
def test_a_posterior_that_no_grid_can_hold_is_refused(priors):
    """Where all trials passed, such a prior leaves mass at any distance from the middle."""
    (name,) = priors
    with pytest.raises(InvalidArgument, match=rf"prior of {name} .* too near to 0 or 1 .* for example"):
        posterior(*ALL_PASS, **priors)


def test_quantiles_do_not_see_single_nodes_of_rho():
    """With μ all but known, P(pass^3 ≤ y) is that of ρ alone: its prior, where every task was tried once."""
    found = posterior(np.ones(3, dtype=int), np.ones(3, dtype=int), mu=stats.beta(2e5, 1e5))
    mu = 2e5 / 3e5
    for rho in (0.1, 0.4, 0.8):
        cube = np.prod([((1 - rho) * mu + j * rho) / (1 - rho + j * rho) for j in range(3)])
        assert float(found.below(np.array([cube]))[0]) == pytest.approx(float(NearZero().cdf(rho)), abs=2e-3)
