"""The Beta-Binomial likelihood of many tasks as a table over (μ, ρ), stable at every edge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from agentic_bayes.numerics import Array

# up to this many factors the product form costs least; beyond, Stirling differences per distinct (c, n)
LONGEST_PRODUCT = 400
STIRLING_FROM = 10.0
TINY = 1e-300  # stands for what underflows


def log_likelihood_table(
    c: Array, n: Array, size: Array, log_mu: Array, log_nu: Array, rho: Array, one_minus_rho: Array
) -> Array:
    """Log likelihood of grouped tasks on a grid, up to the binomial coefficients.

    Notes
    -----
    With α = μκ, β = (1-μ)κ and κ = 1/ρ - 1 this is B(α + c, β + n - c)/B(α, β); in ρ it is finite at both ends. The
    cost is max n, not the number of tasks: the factor j occurs as often as there are tasks with more than j successes.
    """
    if c.size == 0:
        return np.zeros((log_mu.size, rho.size))
    if int(n.max()) <= LONGEST_PRODUCT:
        above = (_tasks_above(c, size), _tasks_above(n - c, size), _tasks_above(n, size))
        success = _product(above[0], log_mu, rho, one_minus_rho)
        failure = _product(above[1], log_nu, rho, one_minus_rho)
        total = _product(above[2], np.zeros(1), rho, one_minus_rho)
        return success + failure - total
    table = np.zeros((log_mu.size, rho.size))
    log_parts = [np.log(one_minus_rho) + log[:, None] for log in (log_mu, log_nu, np.zeros(1))]
    for successes, trials, count in zip(c.tolist(), n.tolist(), size.tolist(), strict=True):
        table += count * log_rising(log_parts[0], successes, rho)
        table += count * log_rising(log_parts[1], trials - successes, rho)
        table -= count * log_rising(log_parts[2], trials, rho)
    return table


def log_likelihoods(trials: int, log_mu: Array, log_nu: Array, rho: Array, one_minus_rho: Array) -> Array:
    """Log likelihood of one task with 0, 1, …, n successes at the nodes of a grid, shape (n + 1, nodes)."""
    shares = log_mu, log_nu, np.zeros(1)
    parts = (np.exp(log_share)[:, None] * one_minus_rho for log_share in shares)
    success, failure, total = (rising_sums(part, rho, trials) for part in parts)
    return np.asarray(success + failure[::-1] - total[-1]).reshape(trials + 1, -1)


def _tasks_above(values: Array, size: Array) -> Array:
    """How many tasks have a value above j, for j = 0, 1, …, max - 1."""
    counts = np.bincount(values, weights=size, minlength=int(values.max()) + 1)
    return np.asarray(counts[::-1].cumsum()[::-1][1:])


def _product(above: Array, log_share: Array, rho: Array, one_minus_rho: Array) -> Array:
    """Σ_j above_j log((1-ρ) share + jρ), shape (shares, correlations)."""
    base = np.exp(log_share)[:, None] * one_minus_rho
    out = np.zeros((log_share.size, rho.size))
    for j, times in enumerate(above):
        out += times * (np.log(base + j * rho) if j else log_share[:, None] + np.log(one_minus_rho))
    return out


def rising_sums(part: Array, rho: Array, most: int) -> Array:
    """Σ_{j<m} log(part + jρ) for m = 0, …, most, along a new first axis."""
    factors = part + np.arange(most).reshape(-1, *(1,) * part.ndim) * rho
    return np.concatenate([np.zeros((1, *part.shape)), np.cumsum(np.log(factors), axis=0)])


def log_rising(log_part: Array, length: int, rho: Array) -> Array:
    """Σ_{j<length} log(part + jρ) for part = exp(log_part), by the log-gamma function.

    With a = part/ρ this is length·log ρ + log Γ(a + length) - log Γ(a). For large a the difference is taken in
    Stirling's form, in which the terms that would cancel are left out.
    """
    from scipy.special import gammaln

    if length == 0:
        return np.zeros(np.broadcast_shapes(log_part.shape, rho.shape))
    log_rho = np.log(rho)
    a = np.exp(log_part - log_rho)
    small = np.minimum(a, STIRLING_FROM)
    large = np.maximum(a, STIRLING_FROM)
    direct = gammaln(small + length) - gammaln(small) + length * log_rho
    series = (large + length - 0.5) * np.log1p(length / large) - length + length * log_part
    series += _stirling(large + length) - _stirling(large)
    return np.asarray(np.where(a < STIRLING_FROM, direct, series))


def _stirling(a: Array) -> Array:
    """The series 1/12a - 1/360a³ + … of log Γ(a), for a ≥ 10."""
    inverse = 1 / a
    square = inverse * inverse
    return inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188))))


def mean_power(mu: Array, rho: Array, one_minus_rho: Array, c: int, n: int, k: int) -> Array:
    """E p^k for p ~ Beta(α + c, β + n - c), in (μ, ρ): Π_{j<k} ((1-ρ)μ + (c+j)ρ)/((1-ρ) + (n+j)ρ)."""
    ((_, found),) = mean_powers(mu, rho, one_minus_rho, c, n, (k,))
    return found


def mean_powers(
    mu: Array, rho: Array, one_minus_rho: Array, c: int | Array, n: int | Array, ks: Iterable[int]
) -> Iterator[tuple[int, Array]]:
    """Each k, in rising order, and its `mean_power`: a product starts from the one before it."""
    passed, tried = one_minus_rho * mu + c * rho, one_minus_rho + n * rho
    out, done = np.ones(np.broadcast_shapes(passed.shape, rho.shape)), 0
    factor = np.empty(out.shape)
    for k in sorted(ks):
        if k > LONGEST_PRODUCT:
            positive = np.maximum(rho, TINY)
            logs = (log_rising(np.log(np.maximum(part, TINY)), k, positive) for part in (passed, tried))
            yield k, np.exp(np.minimum(next(logs) - next(logs), 0))
            continue
        for j in range(done, k):
            share = 1 / (tried + j * rho)
            np.multiply(passed, share, out=factor)
            factor += j * rho * share
            out *= factor
        done = k
        yield k, out.copy()
