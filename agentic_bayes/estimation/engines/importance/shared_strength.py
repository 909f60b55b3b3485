"""Agents that share strength: the prior of their levels, with the population's mean m and spread τ integrated out.

::

    p(θ_1, …, θ_A) = ∫∫ p(m) HalfNormal(τ) Π_a N(θ_a; m, τ) dm dτ

It depends on the mean and the sum of squares of the θ_a only: m by Gauss-Hermite nodes about the mean, τ on a grid.
"""

from __future__ import annotations

import numpy as np

from agentic_bayes.estimation.engines.importance.normal_scale import NormalScale
from agentic_bayes.numerics import Array

SMOOTH, LEAST, MOST, RATIO = (
    0.4,
    0.01,
    5.0,
    1.15,
)  # spreads τ over their scale; below, agents are alike for all that data can tell
LEVELS = 11  # nodes of m
CHUNK = 1024  # draws at a time, to bound memory


class SharedStrength:
    """Log of the joint prior of all θ relative to independent ones on the scale of m, and its slopes."""

    def __init__(
        self, level: NormalScale, scale: float, agents: int, least: float = LEAST, levels: int = LEVELS
    ) -> None:
        self.level, self.agents = level, agents
        edges = scale * np.geomspace(least, MOST, 2 + int(np.log(MOST / least) / np.log(RATIO)))
        self.tau = np.sqrt(edges[:-1] * edges[1:])
        mass = np.exp(-0.5 * (self.tau / scale) ** 2) * np.diff(edges)
        mass[0] += edges[0]
        self.log_mass = np.log(mass) - (agents - 1) * np.log(self.tau)
        self.x, weight = np.polynomial.hermite_e.hermegauss(levels)
        self.log_weight = np.log(weight)

    def __call__(self, theta: Array, u: Array) -> tuple[Array, Array, Array]:
        """At θ and its normal scores u: the value, its slopes in θ, and the slopes of what is subtracted in u."""
        value, by_theta = np.empty(len(theta)), np.empty_like(theta)
        for start in range(0, len(theta), CHUNK):
            part = slice(start, start + CHUNK)
            value[part], by_theta[part] = self._joint(theta[part])
        log_own, by_own = self.level.log_density_of_score(u)
        return value - log_own.sum(axis=1), by_theta, -by_own

    def _joint(self, theta: Array) -> tuple[Array, Array]:
        centre = theta.mean(axis=1)
        squares = np.sum((theta - centre[:, None]) ** 2, axis=1)
        m = centre[:, None, None] + (self.tau / np.sqrt(self.agents))[:, None] * self.x
        terms = self.level.log_density(m) + self.log_weight
        terms += (self.log_mass - squares[:, None] / (2 * self.tau**2))[:, :, None]
        top = terms.max(axis=(1, 2), keepdims=True)
        weight = np.exp(terms - top)
        total = weight.sum(axis=(1, 2))
        by_tau = weight.sum(axis=2) / total[:, None]
        # the slope in the mean moves the normal density of m about it
        by_centre = np.sum((weight @ self.x) * np.sqrt(self.agents) / self.tau, axis=1) / total
        spread = by_tau @ (1 / self.tau**2)
        by_theta = by_centre[:, None] / self.agents - spread[:, None] * (theta - centre[:, None])
        return np.log(total) + top[:, 0, 0], by_theta
