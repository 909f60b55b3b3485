"""Does the model look like the data: replicated counts from the posterior, and from the prior before there are data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from agentic_bayes import numerics
from agentic_bayes.checks import check_count
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.engines.grid.betabinomial import mean_power
from agentic_bayes.estimation.methods.options import Hierarchical, Method
from agentic_bayes.estimation.population import Population
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array
from agentic_bayes.outcomes.dataset import check_outcomes

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["prior_predictive"]

LEAST_TASKS = 10  # fewer say nothing about the shape of a distribution
MOST_TRIALS = 30  # of one task that enter the histogram
MOST_K = 50  # larger k are not compared with the unbiased estimate: hardly a task has so many trials
MOST_VALUES, LEAST_DRAWS = 200_000, 50  # pairs × draws × components of the moments
TAIL = 0.01
FAR = 2.0  # standard errors
LARGEST = 10**7  # draws × agents × tasks of a prior predictive

Statistic = Literal["histogram", "all_pass", "never_pass"]


@dataclass(frozen=True, slots=True)
class Check:
    """One statistic of one agent's counts, compared with its distribution under the fitted model."""

    # distance of the histogram of successes from the one that the model expects, or the share of tasks of which all, or
    # no, trials passed
    statistic: Statistic
    observed: float  # its value; for ``histogram``, which depends on the parameters too, the mean over their draws
    expected: float  # its mean over replicated data
    p: float  # probability that replicated data have a value at least as large; equal values count half

    @property
    def misfit(self) -> bool:
        """Whether p is beyond .01, or for shares beyond .99.

        A histogram that is closer to the model than chance is none: the model was fitted to it.
        """
        return self.p < TAIL or (self.statistic != "histogram" and self.p > 1 - TAIL)


def check_counts(
    population: Population, c: Array, n: Array, size: Array, rng: np.random.Generator
) -> tuple[Check, ...]:
    """Posterior predictive check of the counts of one agent.

    Notes
    -----
    For every draw of the population and every n, replicated tasks are one multinomial histogram over 0, …, n
    successes: the cost does not grow with the number of tasks. The distance of a histogram h from what T tasks are
    expected to give is that of Freeman and Tukey, Σ (√h - √(T q))². Of a task with more than 30 trials, 30 drawn at
    random are checked. As the model was fitted to the same data, p lies nearer to 1/2 than chance would have it, and a
    good model is flagged less often than the tails say.

    References
    ----------
    Gelman, Meng and Stern (1996), Statistica Sinica 6, 733-807. Freeman and Tukey (1950), Annals of Mathematical
    Statistics 21, 607-611, doi:10.1214/aoms/1177729756.
    """
    distance, total = np.zeros((2, population.rho.size)), 0
    ends, seen = np.zeros((2, population.rho.size), dtype=np.int64), np.zeros(2, dtype=np.int64)
    for part in replicate(population, c, n, size, rng):
        root = np.sqrt(part.observed.sum() * part.cells)
        for row, values in enumerate((part.observed, part.replicated)):
            distance[row] += np.sum((np.sqrt(values) - root) ** 2, axis=1)
        ends += part.replicated[:, [part.trials, 0]].T
        seen += part.observed[[part.trials, 0]]
        total += int(part.observed.sum())
    if not total:
        return ()
    larger = float(np.mean(distance[1] > distance[0]) + np.mean(distance[1] == distance[0]) / 2)
    checks = [Check("histogram", float(distance[0].mean()), float(distance[1].mean()), larger)]
    names: tuple[Statistic, Statistic] = ("all_pass", "never_pass")
    for name, values, value in zip(names, ends, seen, strict=True):
        larger = float(np.mean(values > value) + np.mean(values == value) / 2)
        checks.append(Check(name, float(value / total), float(values.mean() / total), larger))
    return tuple(checks)


@dataclass(frozen=True, slots=True)
class Replicated:
    """How many tasks with the same number of trials had 0, 1, … successes, and how many the model would expect."""

    trials: int
    observed: Array  # shape (trials + 1,)
    cells: Array  # shape (draws, trials + 1); probabilities of 0, 1, … successes
    replicated: Array  # shape (draws, trials + 1); histograms of as many tasks drawn from them


def replicate(
    population: Population, c: Array, n: Array, size: Array, rng: np.random.Generator
) -> Iterator[Replicated]:
    """Observed and replicated histograms of tasks tried twice or more, one pair per number of trials.

    None where there are too few such tasks to say anything.
    """
    repeated = n > 1
    if size[repeated].sum() < LEAST_TASKS:
        return
    for trials, histogram in _histograms(c[repeated], n[repeated], size[repeated], rng).items():
        cells = population.histogram(trials)
        yield Replicated(trials, histogram, cells, rng.multinomial(int(histogram.sum()), cells))


def _histograms(c: Array, n: Array, size: Array, rng: np.random.Generator) -> dict[int, Array]:
    """Number of trials → tasks with 0, 1, … successes among them; long tasks thinned."""
    long = n > MOST_TRIALS
    found: dict[int, Array] = {}
    for trials in np.unique(n[~long]).tolist():
        here = n == trials
        found[trials] = np.bincount(c[here], weights=size[here], minlength=trials + 1).astype(np.int64)
    thinned = np.zeros(MOST_TRIALS + 1, dtype=np.int64)
    for passed, trials, tasks in zip(c[long].tolist(), n[long].tolist(), size[long].tolist(), strict=True):
        if trials < 10**8:
            part = rng.hypergeometric(passed, trials - passed, MOST_TRIALS, size=tasks)
        else:  # beyond NumPy's range, where drawing with and without replacement is the same
            part = rng.binomial(MOST_TRIALS, passed / trials, size=tasks)
        thinned += np.bincount(part, minlength=MOST_TRIALS + 1)
    if long.any():
        found[MOST_TRIALS] = found.get(MOST_TRIALS, 0) + thinned
    return found


def disagreements(population: Population, c: Array, n: Array, size: Array, ks: Sequence[int]) -> frozenset[Metric]:
    """Where the model's mean over the observed tasks is far from the unbiased estimate of the same quantity.

    Notes
    -----
    Given the p of the observed tasks, C(c,k)/C(n,k) has the mean p^k and, as a U-statistic, the variance
    Σ_j H(j) (p^(2k-j) - p^2k), where H is the hypergeometric probability that two sets of k out of n trials share j.
    The standard error is the root of its posterior mean: the spread within tasks, not between them. Under the model
    the squared difference is on average the squared standard error less the posterior variance, so that a good model
    is flagged in at most about 5 % of data sets.

    References
    ----------
    Hoeffding (1948), Annals of Mathematical Statistics 19, 293-325, doi:10.1214/aoms/1177730196.
    """
    asked = [k for k in ks if k <= MOST_K and size[n >= k].sum() >= LEAST_TASKS]
    if not asked:
        return frozenset()
    # with many distinct pairs fewer draws do: the mean over tasks is averaged over both
    population = population.thinned(max(MOST_VALUES // (c.size * population.mu.shape[1]), LEAST_DRAWS))
    far: set[Metric] = set()
    for sign, powers in zip("^@", population.powers(c, n, 2 * max(asked)), strict=True):
        hits = c if sign == "^" else n - c
        for k in asked:
            used = n >= k
            shared = _shared(n[used], k)  # of sets of k trials; j = 0 adds nothing
            moments = powers[used]
            spread = np.sum(shared * (moments[:, 2 * k - 1 : k - 1 : -1] - moments[:, [2 * k]]), axis=1)
            difference = numerics.pass_pow_k(n[used], hits[used], k) - moments[:, k]
            count = size[used]
            if abs(np.sum(count * difference)) > FAR * np.sqrt(np.sum(count * spread)):
                far.add(Metric(f"pass{sign}{k}"))
    return frozenset(far)


def _shared(n: Array, k: int) -> Array:
    """Probability that two random sets of k out of n items share j = 1, …, k, shape (len(n), k)."""
    from scipy.special import gammaln

    j = np.arange(1, k + 1)
    rest = n[:, None] - 2 * k + j  # items in neither set
    logs = 2 * gammaln(k + 1.0) + 2 * gammaln(n[:, None] - k + 1.0) - gammaln(n[:, None] + 1.0)
    logs = logs - gammaln(j + 1.0) - 2 * gammaln(k - j + 1.0) - gammaln(np.maximum(rest, 0) + 1.0)
    return np.asarray(np.where(rest >= 0, np.exp(logs), 0.0))


def prior_predictive(
    outcomes: xr.Dataset,
    method: Hierarchical | None = None,
    *,
    k: Sequence[int] = (1, 3, 5),
    draws: int = 1000,
    random_seed: int = 0,
) -> xr.Dataset:
    """What the hierarchical model expects before it has seen a success.

    Parameters
    ----------
    outcomes : xarray.Dataset
        Outcomes, or a plan of them: only ``trials`` (agent, task) is used.
    method : Hierarchical, optional
        The model with its priors; the default ones unless given.
    k : sequence of int
        Numbers of attempts, ≥ 1.
    draws : int
        How many replications, ≥ 1.
    random_seed : int
        Same seed, same draws.

    Returns
    -------
    xarray.Dataset
        ``successes`` (draw, agent, task), replicated counts; ``mu``, ``rho`` (draw, agent); ``pass_at_k``,
        ``pass_pow_k`` (draw, agent, k) of a new task; the ``trials`` given.

    Raises
    ------
    InvalidArgument
        If an argument is not valid, or the counts would be too many.
    OutcomesError
        If there are no valid trials.

    Examples
    --------
    >>> import pandas as pd
    >>> from agentic_bayes import outcomes_from_table
    >>> table = pd.DataFrame({"task": ["a", "b"], "successes": [0, 2], "trials": [5, 5]})
    >>> found = prior_predictive(outcomes_from_table(table), draws=4000)
    >>> round(float(found["pass_pow_k"].sel(k=1).mean()), 1)
    0.5
    """
    import xarray as xr

    ks = [check_count(value, "k") for value in k]
    count = check_count(draws, "draws")
    if isinstance(outcomes, xr.Dataset) and "trials" in outcomes and "successes" not in outcomes:
        outcomes = outcomes.assign(successes=xr.zeros_like(outcomes["trials"]))
    checked = check_outcomes(outcomes)
    trials = checked["trials"].values
    if count * trials.size > LARGEST:
        raise InvalidArgument(f"draws × agents × tasks must be at most {LARGEST:,}, got {count * trials.size:,}")
    rng = np.random.default_rng(random_seed)
    hyper = draw_prior_hyper(Hierarchical() if method is None else method, rng, count, trials.shape[0])
    mu, rho = hyper["mu"], hyper["rho"]
    kappa = 1 / rho - 1
    alpha, beta = (np.maximum(part * kappa, 1e-300)[:, :, None] for part in (mu, 1 - mu))
    p = rng.beta(alpha, beta, size=(count, *trials.shape))
    dims = ("draw", "agent")
    passed, failed = (np.stack([mean_power(part, rho, 1 - rho, 0, 0, v) for v in ks], axis=2) for part in (mu, 1 - mu))
    return xr.Dataset(
        {
            "successes": ((*dims, "task"), rng.binomial(trials, p)),
            "mu": (dims, mu),
            "rho": (dims, rho),
            "pass_at_k": ((*dims, "k"), 1 - failed),
            "pass_pow_k": ((*dims, "k"), passed),
            "trials": checked["trials"],
        },
        coords={"draw": np.arange(count), "agent": checked["agent"], "task": checked["task"], "k": ks},
    )


def draw_prior_hyper(method: Hierarchical, rng: np.random.Generator, count: int, agents: int) -> dict[str, Array]:
    """Draws from the prior: μ and ρ, shape (draws, agents); m and τ, shape (draws,), where agents share strength."""
    shape, pool = (count, agents), dict[str, Array]()
    if method.pool_agents and agents > 1:
        m = rng.logistic(size=count) if method.m is None else draw_prior(method, "m", rng, (count,))
        tau = np.abs(rng.standard_normal(count)) if method.tau is None else draw_prior(method, "tau", rng, (count,))
        mu = np.exp(-np.logaddexp(0, -(m[:, None] + tau[:, None] * rng.standard_normal(shape))))
        pool = {"m": m, "tau": tau}
    else:
        mu = rng.random(shape) if method.mu is None else draw_prior(method, "mu", rng, shape)
    if method.kappa is not None:
        rho = 1 / (1 + draw_prior(method, "kappa", rng, shape))
    else:
        rho = draw_prior(method, "rho", rng, shape)
    return {"mu": mu, "rho": np.clip(rho, 1e-12, 1 - 1e-12), **pool}


# where a prior given as a log density is tabulated: (ends of x, parameter as a function of x, log of its slope)
TABLES: dict[str, tuple[tuple[float, float], Any, Any]] = {
    "mu": ((0.0, 1.0), lambda x: x, np.zeros_like),
    "rho": ((0.0, 1.0), lambda x: x, np.zeros_like),
    "m": ((-60.0, 60.0), lambda x: x, np.zeros_like),
    "tau": ((-20.0, 5.0), np.exp, lambda x: x),
    "theta": ((-60.0, 60.0), lambda x: x, np.zeros_like),
    "sigma": ((-20.0, 5.0), np.exp, lambda x: x),
    "kappa": ((-30.0, 30.0), np.exp, lambda x: x),
}


def draw_prior(method: Method, name: str, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draws of one parameter, from its distribution or from a table of its log density."""
    prior = method.rho_prior if name == "rho" else getattr(method, name)
    if hasattr(prior, "rvs"):
        return np.asarray(prior.rvs(size=shape, random_state=rng), dtype=np.float64)
    (low, high), parameter, log_slope = TABLES[name]
    edges = np.linspace(low, high, 20_001)
    middle = (edges[1:] + edges[:-1]) / 2
    density = method.log_density(name)
    assert density is not None
    logs = density(parameter(middle)) + log_slope(middle)
    if not np.isfinite(logs).any():
        raise InvalidArgument(
            f"the prior of {name} is zero everywhere between {parameter(low):g} and {parameter(high):g}"
        )
    mass = np.exp(logs - logs.max())
    cell = rng.choice(middle.size, size=shape, p=mass / mass.sum())
    return np.asarray(parameter(edges[cell] + (edges[1] - edges[0]) * rng.random(shape)))
