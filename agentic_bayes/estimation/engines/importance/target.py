"""What the importance engine samples: the crossed posterior on the scale where every prior is a standard normal."""

from __future__ import annotations

import numpy as np

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.importance.normal_scale import (
    FARTHEST,
    half_normal,
    logistic,
    of_distribution,
)
from agentic_bayes.estimation.methods.crossed_likelihood import CrossedLikelihood, expit_pair
from agentic_bayes.estimation.methods.options import Crossed
from agentic_bayes.numerics import Array

SIGMA_SCALE, TAU_SCALE = 2.0, 1.0  # of the HalfNormal priors of σ and of τ
FIRST_STEP = 0.125  # of the δ grid with which the mode is found
LEAST_RHO = 1e-12


class Target:
    """Log posterior density of u, shape (draws, dim), up to a constant.

    Coordinates are θ_1, …, θ_A or, where agents share strength, m, τ, z_1, …, z_A; then σ; then ρ_1, …, ρ_A.
    """

    def __init__(self, counts: Counts, method: Crossed) -> None:
        self.agents = len(counts.agents)
        self.pooled = method.pool_agents and self.agents > 1
        self.likelihood = CrossedLikelihood(counts, FIRST_STEP)
        self.theta = logistic() if method.theta is None else of_distribution(method.theta)
        self.tau = half_normal(TAU_SCALE)
        self.sigma = half_normal(SIGMA_SCALE) if method.sigma is None else of_distribution(method.sigma)
        self.rho = of_distribution(method.rho_prior, unit=True)
        self.before = 2 if self.pooled else 0  # coordinates of m and τ
        self.plain = self.before + self.agents + 1  # coordinates that are not ρ
        self.dim = self.plain + self.agents

    def _levels(self, u: Array) -> tuple[Array, Array]:
        """θ, shape (draws, agents), and its slope in its own coordinates; pooled, m + τ z and τ."""
        own = u[:, self.before : self.before + self.agents]
        if not self.pooled:
            return self.theta(own)
        centre, (spread, _) = self.theta(u[:, :1])[0], self.tau(u[:, 1:2])
        inside = np.clip(own, -FARTHEST, FARTHEST)
        return centre + spread * inside, np.broadcast_to(spread, own.shape)

    def parameters(self, u: Array) -> tuple[Array, Array, Array, Array]:
        """θ, σ, ρ and 1 - ρ."""
        rho, rest = expit_pair(self.rho(u[:, self.plain :])[0])
        sigma, _ = self.sigma(u[:, self.plain - 1])
        return self._levels(u)[0], sigma, np.maximum(rho, LEAST_RHO), np.maximum(rest, LEAST_RHO)

    def __call__(self, u: Array) -> Array:
        """Log posterior density."""
        return np.asarray(self.likelihood(*self.parameters(u)) - 0.5 * np.sum(u**2, axis=1))

    def with_slope(self, u: Array) -> tuple[Array, Array]:
        """Log posterior density and its gradient."""
        theta, sigma, rho, rest = self.parameters(u)
        value, by_theta, by_sigma, by_rho = self.likelihood.with_slopes(theta, sigma, rho, rest)
        slope = -u
        own = slice(self.before, self.before + self.agents)
        slope[:, own] += by_theta * self._levels(u)[1]
        if self.pooled:
            slope[:, 0] += by_theta.sum(axis=1) * self.theta(u[:, 0])[1]
            slope[:, 1] += np.sum(by_theta * u[:, own], axis=1) * self.tau(u[:, 1])[1]
        slope[:, self.plain - 1] += by_sigma * self.sigma(u[:, self.plain - 1])[1]
        slope[:, self.plain :] += by_rho * rho * rest * self.rho(u[:, self.plain :])[1]
        return value - 0.5 * np.sum(u**2, axis=1), slope

    def start(self) -> Array:
        """A rough guess: each agent's rate, moderate difficulty and correlation."""
        from scipy.special import ndtri

        counts = self.likelihood.counts
        u = np.zeros(self.dim)
        if not self.pooled and self.theta is logistic():
            u[: self.agents] = ndtri((counts.successes.sum(axis=1) + 1) / (counts.trials.sum(axis=1) + 2))
        u[self.plain :] = -0.5
        return u

    def refine(self, u: Array) -> bool:
        """Take the δ grid that the parameters at u need; whether it is finer than the one before."""
        _, sigma, rho, _ = self.parameters(u[None])
        before, step = self.likelihood.step, self.likelihood.needed_step(float(sigma[0]), rho[0])
        self.likelihood.set_step(step)
        return step < before


def mode_of(target: Target) -> tuple[Array, Array]:
    """Mode and covariance: the inverse of the negative Hessian there, never wider than the prior."""
    from scipy.optimize import minimize

    def descent(u: Array) -> tuple[float, Array]:
        value, slope = target.with_slope(u[None])
        return -float(value[0]), -slope[0]

    def found(start: Array) -> Array:
        return np.asarray(minimize(descent, start, jac=True, method="BFGS", options={"maxiter": 100, "gtol": 1e-2}).x)

    mode = found(target.start())
    if target.refine(mode):
        mode = found(mode)
    step, shifts = 1e-2, 1e-2 * np.eye(target.dim)
    slope = target.with_slope(np.concatenate([mode + shifts, mode - shifts]))[1]
    negative = (slope[target.dim :] - slope[: target.dim]) / (2 * step)
    eigenvalues, vectors = np.linalg.eigh((negative + negative.T) / 2)
    return mode, (vectors / np.clip(eigenvalues, 0.5, None)) @ vectors.T
