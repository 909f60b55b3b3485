"""Data that an agent of known reliability would produce, and the exact posterior of one agent alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.distribution import CIKind, Distribution
from agentic_bayes.estimation.engines.grid.axes import Concentration, RhoAxis, kept_range, log_logistic, softplus
from agentic_bayes.estimation.engines.grid.betabinomial import log_likelihood_table, log_likelihoods, mean_power
from agentic_bayes.estimation.engines.grid.exact import GridPosterior
from agentic_bayes.estimation.engines.grid.quadrature import fit_agents
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array, hdi_from_quantiles

HALVINGS = 60
LEAST_RHO = 1e-100  # below it tasks count as all alike
MOST_RHO = 1 - 2**-53  # stands for 1, at which the terms of the metric would be 0/0
WIDEST_SPACING, GRID_END, RHO_NODES = 0.1, 12.0, 32  # of logit μ; of ρ
LOOKING = 121, 49  # nodes of logit μ while looking for where there is mass
COARSE_LEVELS, LEVELS = 33, (65, 500)  # of the metric, between which quantiles are interpolated; at least and at most
UNLIKELY, SURE = 1e-5, 1e-9  # probabilities beyond which the finer levels end; and that quantiles are kept between
KEPT = 0.88  # of the correlation of two agents' successes, by the crossed posterior, which does not know σ and ρ
POINTS = 1024  # of a Sobol sequence, on which a difference is integrated
Quantile = Callable[[Array], Array]
CELLS = 2**21  # data sets × nodes at a time, to bound memory


@dataclass(frozen=True)
class Cells:
    """Successes and trials of one agent's tasks, arrays of shape (tasks,)."""

    successes: Array
    trials: Array

    @classmethod
    def scored(cls, counts: Counts, agent: int) -> Cells:
        """The tasks of which the agent has a scored trial."""
        tried = counts.scored[agent]
        return cls(counts.successes[agent, tried], counts.trials[agent, tried])


NO_DATA = Cells(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def simulate_successes(rng: np.random.Generator, mu: float, rho: float, tasks: int, trials: int) -> Array:
    """Successes of new tasks with p ~ Beta(μκ, (1-μ)κ), κ = 1/ρ - 1; ρ = 0: all alike, ρ = 1: all or nothing."""
    if rho <= LEAST_RHO:
        p: Array | float = mu
    elif rho >= 1:
        p = (rng.random(tasks) < mu).astype(float)
    else:
        kappa = 1 / rho - 1
        p = rng.beta(max(mu * kappa, 1e-300), max((1 - mu) * kappa, 1e-300), size=tasks)
    return rng.binomial(trials, p, size=tasks)


def simulate_pair(
    rng: np.random.Generator, mu: tuple[float, float], rho: float, shared: float, tasks: int, trials: int
) -> Array:
    """Successes of two agents on the same tasks, shape (2, tasks), each as `simulate_successes` has them.

    Their p on a task are joined by a Gaussian copula with correlation `shared`.
    """
    from scipy.special import betaincinv, ndtr

    normal = rng.standard_normal((2, tasks))
    normal[1] = shared * normal[0] + math.sqrt(1 - shared**2) * normal[1]
    level, means = ndtr(normal), np.array(mu)[:, None]
    if rho <= LEAST_RHO:
        p = np.broadcast_to(means, level.shape)
    elif rho >= 1:
        p = (level > 1 - means).astype(float)
    else:
        kappa = 1 / rho - 1
        p = betaincinv(np.maximum(means * kappa, 1e-300), np.maximum((1 - means) * kappa, 1e-300), level)
    return rng.binomial(trials, p)


class PairedDifference:
    """The crossed posterior of a difference, approximately: what planning needs thousands of.

    Each agent's metric has its posterior alone, and the two are joined by a Gaussian copula with the correlation that
    the agents' successes have over the shared tasks. Mean widths are within 10 % of the crossed model's.
    """

    def __init__(self) -> None:
        from scipy.special import ndtr, ndtri
        from scipy.stats import qmc

        self._normal = ndtri(qmc.Sobol(2, scramble=False).random(POINTS) + 0.5 / POINTS).T
        self._first = ndtr(self._normal[0])

    def interval(self, own: Quantile, other: Quantile, correlation: float, prob: float) -> tuple[float, float]:
        """Ends of the equal-tailed interval of own − other."""
        from scipy.special import ndtr

        joint = KEPT * correlation
        second = joint * self._normal[0] + math.sqrt(1 - joint**2) * self._normal[1]
        difference = own(self._first) - other(ndtr(second))
        lower, upper = np.quantile(difference, [(1 - prob) / 2, (1 + prob) / 2])
        return float(lower), float(upper)


def correlations(pairs: Array) -> Array:
    """Correlation of two agents' successes, shape (data sets, 2, tasks), over the tasks; 0 where it is undefined."""
    deviations = pairs - pairs.mean(axis=2, keepdims=True)
    products = np.einsum("sat,sbt->sab", deviations, deviations)
    scale = np.sqrt(products[:, 0, 0] * products[:, 1, 1])
    return np.asarray(np.divide(products[:, 0, 1], scale, out=np.zeros(len(pairs)), where=scale > 0))


def histograms(successes: Array, trials: int) -> Array:
    """How many tasks had 0, 1, …, n successes, shape (data sets, n + 1), from successes of shape (data sets, tasks)."""
    return np.stack([(successes == c).sum(axis=1) for c in range(trials + 1)], axis=1)


def exact_posterior(cells: Cells, metric: Metric, *, random_seed: int = 0) -> GridPosterior:
    """The hierarchical posterior of one agent alone under the default priors."""
    one = cells.successes[None], cells.trials[None]
    counts = Counts(("agent",), (), *one, np.zeros_like(one[1]))
    fit = fit_agents(counts, Hierarchical(pool_agents=False))
    return GridPosterior(counts=counts, random_seed=random_seed, fit=fit, metrics=(metric,))


def unused_words(est: Estimate) -> str:
    """Says that an estimate's priors are not those of this module, where they are not; else empty."""
    own = est.method.given_priors or getattr(est.method, "inflate", False)
    return f"uses the hierarchical model with its default priors instead of {est.method!r}" if own else ""


def new_task(cells: Cells, metric: Metric) -> Distribution:
    """The posterior of a metric of a new task, of one agent alone."""
    return exact_posterior(cells, metric).distribution(0, "population", metric)


def metric_of(mu: Array | float, rho: Array | float, metric: Metric) -> Array:
    """pass@k or pass^k of a new task for p ~ Beta with mean μ and correlation ρ."""
    share, correlation = np.asarray(mu, dtype=float), np.minimum(np.asarray(rho, dtype=float), MOST_RHO)
    tail = mean_power(share if metric.power else 1 - share, correlation, 1 - correlation, 0, 0, metric.k)
    return tail if metric.power else 1 - tail


def mu_with_metric(value: Array | float, rho: Array | float, metric: Metric) -> Array:
    """The μ at which pass@k or pass^k of a new task is `value`, by bisection."""
    shape = np.broadcast_shapes(np.shape(value), np.shape(rho))
    low, high = np.zeros(shape), np.ones(shape)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = metric_of(middle, rho, metric) < value
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


class ManyPosteriors:
    """The metric of a new task in many data sets at once, all of their tasks tried equally often, on one grid.

    For simulated data, where a grid for each would take too long. Within .001 of the exact engine.
    """

    def __init__(self, metric: Metric, trials: int, histograms: Array, *, known: Cells = NO_DATA) -> None:
        """Of data given by how many tasks had 0, 1, …, n successes, shape (data sets, n + 1); μ ~ U(0, 1)."""
        # early looks at few tasks see the same counts many times
        distinct, place = np.unique(histograms, axis=0, return_inverse=True)
        self.metric, self.trials, self.known = metric, trials, known
        self.histograms, self._place = distinct, place.reshape(-1)
        longest = max(trials, int(known.trials.max(initial=0)))
        prior = Concentration(longest, Hierarchical())
        theta_ends, v_ends = (-GRID_END, GRID_END), prior.ends
        for size in LOOKING:
            self._lay_out(np.linspace(*theta_ends, size), prior.over(*v_ends, RHO_NODES // 2))
            highest = np.full((size, RHO_NODES // 2), -np.inf)  # log mass below the largest, in any data set
            for _, log_mass in self._log_masses():
                below = log_mass - log_mass.max(axis=1, keepdims=True)
                highest = np.maximum(highest, below.max(axis=0).reshape(highest.shape))
            theta_ends = kept_range(self.theta, highest.max(axis=1), theta_ends)
            v_ends = kept_range(self.rho.v, highest.max(axis=0), v_ends)
        attempts = int(histograms.sum(axis=1).max()) * trials + int(known.trials.sum())
        self._root = math.sqrt(max(attempts, 1))
        spacing = min(WIDEST_SPACING, 2 / self._root)
        size = max(int(np.ceil((theta_ends[1] - theta_ends[0]) / spacing)) + 1, 33)
        self._lay_out(np.linspace(*theta_ends, size), prior.over(*v_ends, RHO_NODES))

    def _lay_out(self, theta: Array, rho: RhoAxis) -> None:
        """Tabulate prior and likelihood at these nodes of θ = logit μ and of ρ."""
        self.theta, self.rho = theta, rho
        log_shares = -softplus(-theta), -softplus(theta)
        self._log_pmf = log_likelihoods(self.trials, *log_shares, rho.rho, rho.one_minus_rho)
        log_prior = log_logistic(theta)[:, None] + self.rho.log_weight
        if self.known.trials.size:
            both = np.stack([self.known.successes, self.known.trials])
            (c, n), size = np.unique(both, axis=1, return_counts=True)
            log_prior = log_prior + log_likelihood_table(c, n, size, *log_shares, rho.rho, rho.one_minus_rho)
        self._log_prior = log_prior.ravel()

    def _log_masses(self) -> Iterator[tuple[slice, Array]]:
        """Log posterior mass of the nodes, some data sets at a time."""
        step = max(1, CELLS // self._log_prior.size)
        for start in range(0, len(self.histograms), step):
            part = slice(start, start + step)
            yield part, self.histograms[part] @ self._log_pmf + self._log_prior

    def at_least(self, bars: Array | float) -> Array:
        """P(metric ≥ bar), shape (data sets,) or (data sets, bars)."""
        from scipy.special import sici

        levels = np.atleast_1d(bars)[:, None]
        with np.errstate(divide="ignore"):
            share = mu_with_metric(levels, self.rho.rho, self.metric)
            edge = np.log(share) - np.log1p(-share)
        # weights of the nodes in the integral, from the bar upwards, of their sinc interpolant
        place = np.clip((self.theta[:, None, None] - edge.T) / (self.theta[1] - self.theta[0]), -1e9, 1e9)
        above = (0.5 + sici(np.pi * place)[0] / np.pi).reshape(self._log_prior.size, len(levels))
        found = np.empty((len(self.histograms), len(levels)))
        for part, log_mass in self._log_masses():
            mass = np.exp(log_mass - log_mass.max(axis=1, keepdims=True))
            found[part] = mass @ above / mass.sum(axis=1, keepdims=True)
        return np.clip(found if np.ndim(bars) else found[:, 0], 0, 1)[self._place]

    @cached_property
    def quantiles(self) -> list[Quantile]:
        """The quantile function of each data set, interpolated on the scale of the normal distribution."""
        from scipy.interpolate import PchipInterpolator
        from scipy.special import ndtri

        def function(z: Array) -> Quantile:
            rising = np.concatenate([[True], np.diff(z) > 1e-9])
            curve = PchipInterpolator(z[rising], x[rising])
            return lambda q: _metric_at(curve(ndtri(np.clip(q, *sure))))

        x = np.linspace(0, 1, COARSE_LEVELS)  # arcsin √ of the metric, as a share of a right angle
        above = self.at_least(_metric_at(x))
        low = max(int((above > 1 - UNLIKELY).sum(axis=1).min()) - 1, 0)
        high = min(int((above >= UNLIKELY).sum(axis=1).max()), x.size - 1)
        # no wider apart than the standard deviation of a binomial share
        x = np.linspace(x[low], x[high], int(np.clip(3 * self._root * (x[high] - x[low]), *LEVELS)))
        sure = SURE, 1 - SURE
        below = np.clip(1 - self.at_least(_metric_at(x)), *sure)
        below[:, 0], below[:, -1] = sure
        return [function(row) for row in np.maximum.accumulate(ndtri(below), axis=1)]

    def intervals(self, prob: float, kind: CIKind) -> tuple[Array, Array]:
        """Ends of the intervals, shape (data sets,)."""
        if kind == "hdi":
            ends = [hdi_from_quantiles(one, prob, points=41, rounds=3) for one in self.quantiles]
        else:
            tails = np.array([(1 - prob) / 2, (1 + prob) / 2])
            ends = [tuple(one(tails)) for one in self.quantiles]
        lower, upper = np.array(ends).T
        return lower, upper


def _metric_at(x: Array) -> Array:
    return np.sin(np.pi / 2 * x) ** 2
