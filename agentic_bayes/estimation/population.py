"""Posterior draws of the distribution of success probabilities, and what they imply for counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agentic_bayes.estimation.engines.grid.betabinomial import LONGEST_PRODUCT, TINY, log_rising, rising_sums
from agentic_bayes.numerics import Array


@dataclass(frozen=True)
class Population:
    """Draws of a distribution of p: a mixture of Betas that share ρ. A component with μ = 0 or 1 is a point mass."""

    mu: Array  # shape (draws, components); mean of each Beta and its complement
    one_minus_mu: Array
    rho: Array  # shape (draws, 1); intra-class correlation
    weight: Array  # shape (draws or 1, components); of the Betas; sums to 1 over components

    @cached_property
    def _parts(self) -> tuple[Array, Array, Array]:
        """(1-ρ)μ, (1-ρ)(1-μ) and 1-ρ: Beta parameters times ρ, finite at ρ = 0."""
        rest = 1 - self.rho
        return np.maximum(self.mu * rest, TINY), np.maximum(self.one_minus_mu * rest, TINY), np.maximum(rest, TINY)

    def thinned(self, most: int) -> Population:
        """At most about `most` of the draws, evenly spaced."""
        every = max(self.rho.size // max(most, 1), 1)
        weight = self.weight if self.weight.shape[0] == 1 else self.weight[::every]
        return Population(self.mu[::every], self.one_minus_mu[::every], self.rho[::every], weight)

    def log_kernels(self, c: Array, n: Array) -> Array:
        """Log probability of one given sequence with c successes in n trials, shape (pairs, draws, components)."""
        success, failure, either = self._parts
        out = self._rising(success, c) + self._rising(failure, n - c) - self._rising(either, n)
        return np.asarray(out)

    def _rising(self, part: Array, lengths: Array) -> Array:
        """Log Π_{j<m} (part + jρ) for every m in `lengths`."""
        most = int(lengths.max(initial=0))
        if most > LONGEST_PRODUCT:
            return np.stack([log_rising(np.log(part), m, self.rho) for m in lengths.tolist()])
        return np.asarray(rising_sums(part, self.rho, most)[lengths])

    def log_pmf(self, c: Array, n: Array) -> Array:
        """Log probability of c successes in n trials of a new task, shape (pairs, draws)."""
        kernels = self.log_kernels(c, n)
        top = kernels.max(axis=2, keepdims=True)
        mixed = np.log(np.sum(np.exp(kernels - top) * self.weight, axis=2)) + top[:, :, 0]
        return np.asarray(mixed + log_binomial(n, c)[:, None])

    def histogram(self, n: int) -> Array:
        """Probability of 0, …, n successes in n trials of a new task, shape (draws, n + 1)."""
        cells = np.exp(self.log_pmf(np.arange(n + 1), np.full(n + 1, n))).T
        return np.asarray(cells / cells.sum(axis=1, keepdims=True))

    def powers(self, c: Array, n: Array, most: int) -> tuple[Array, Array]:
        """E p^r and E (1-p)^r of tasks with c successes in n trials, averaged over draws."""
        success, failure, either = self._parts
        share = np.ones((c.size, *self.mu.shape))
        if self.weight.size > 1:  # else there is nothing to decide between
            kernels = self.log_kernels(c, n)
            share = np.exp(kernels - kernels.max(axis=2, keepdims=True)) * self.weight
        share = share / (share.sum(axis=2, keepdims=True) * self.rho.size)
        both = [(share, success, c), (share.copy(), failure, n - c)]  # powers of p, and of 1 - p
        found = np.empty((2, c.size, most + 1))
        found[:, :, 0] = share.sum(axis=(1, 2))
        for r in range(most):
            total = either + (n + r)[:, None, None] * self.rho
            for own, (power, part, count) in zip(found, both, strict=True):
                step = part + (count + r)[:, None, None] * self.rho
                step /= total
                power *= step
                own[:, r + 1] = power.sum(axis=(1, 2))
        return found[0], found[1]


def log_binomial(n: Array, c: Array) -> Array:
    """Log of the binomial coefficient."""
    from scipy.special import gammaln

    return np.asarray(gammaln(n + 1.0) - gammaln(c + 1.0) - gammaln(n - c + 1.0))
