"""What the importance engine samples: the crossed posterior on the scale where every prior is a standard normal."""

from __future__ import annotations

import numpy as np

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.importance.normal_scale import (
    half_normal,
    logistic,
    of_distribution,
)
from agentic_bayes.estimation.engines.importance.shared_strength import SMOOTH, SharedStrength
from agentic_bayes.estimation.methods.crossed_likelihood import EASY, CrossedLikelihood, expit_pair
from agentic_bayes.estimation.methods.options import Crossed
from agentic_bayes.numerics import Array

SIGMA_SCALE, TAU_SCALE = 2.0, 1.0  # of the HalfNormal priors of σ and of τ
FIRST_STEP = 0.125  # of the δ grid with which the mode is found
LEAST_RHO = 1e-12
DIFFERENCE = 2e-2  # of u, for second derivatives
NEAR = 5e-4  # of the mode in log density
MOST_STEPS, LONGEST_STEP, HALVINGS = 100, 2.0, 12  # on the way to it


class Target:
    """Log posterior density of u, shape (draws, dim), up to a constant.

    Coordinates are θ_1, …, θ_A, each on the scale of its prior, or of that of m where agents share strength; then σ;
    then ρ_1, …, ρ_A. Shared strength is a prior of all θ together in which m and τ are integrated out: with them as
    coordinates the density has ridges that no copula follows.
    """

    def __init__(self, counts: Counts, method: Crossed) -> None:
        self.agents = len(counts.agents)
        self.pooled = method.pool_agents and self.agents > 1
        self.likelihood = self._likelihood(counts)
        self.theta = logistic() if method.theta is None else of_distribution(method.theta)
        # the density rises to a cusp where all agents are alike, which is no guide to the rest: it is cut off at first
        self.shared = SharedStrength(self.theta, TAU_SCALE, self.agents, SMOOTH) if self.pooled else None
        self.sigma = half_normal(SIGMA_SCALE) if method.sigma is None else of_distribution(method.sigma)
        self.rho = of_distribution(method.rho_prior, unit=True)
        self.level = self.agents  # coordinates before σ
        self._count()

    def _likelihood(self, counts: Counts) -> CrossedLikelihood:
        return CrossedLikelihood(counts, FIRST_STEP)

    def _count(self) -> None:
        self.plain = self.level + 1  # coordinates that are not ρ
        self.dim = self.plain + self.agents

    def parameters(self, u: Array) -> tuple[Array, Array, Array, Array]:
        """θ, σ, ρ and 1 - ρ."""
        rho, rest = expit_pair(self.rho(u[:, self.plain :])[0])
        sigma, _ = self.sigma(u[:, self.plain - 1])
        return self.theta(u[:, : self.agents])[0], sigma, np.maximum(rho, LEAST_RHO), np.maximum(rest, LEAST_RHO)

    def __call__(self, u: Array) -> Array:
        """Log posterior density."""
        theta, *rest = self.parameters(u)
        value = self.log_likelihood(u, theta, *rest) - 0.5 * np.sum(u**2, axis=1)
        return np.asarray(value if self.shared is None else value + self.shared(theta, u[:, : self.agents])[0])

    def log_likelihood(self, u: Array, *parameters: Array) -> Array:
        """At u, which are these parameters."""
        return self.likelihood(*parameters)

    def with_slopes(self, u: Array, *parameters: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Log likelihood and its derivatives with respect to θ, σ, ρ and, beyond these, u."""
        value, by_theta, by_sigma, by_rho = self.likelihood.with_slopes(*parameters)
        return value, by_theta, by_sigma, by_rho, np.zeros(0)

    def rates(self, u: Array) -> dict[str, Array]:
        """Error rates of a judge, where it errs."""
        return {}

    def with_slope(self, u: Array) -> tuple[Array, Array]:
        """Log posterior density and its gradient."""
        theta, sigma, rho, rest = self.parameters(u)
        value, by_theta, by_sigma, by_rho, more = self.with_slopes(u, theta, sigma, rho, rest)
        slope, own = -u, u[:, : self.agents]
        if self.shared is not None:
            prior, by_prior, by_own = self.shared(theta, own)
            value, by_theta = value + prior, by_theta + by_prior
            slope[:, : self.agents] += by_own
        slope[:, : self.agents] += by_theta * self.theta(own)[1]
        slope[:, self.plain - 1] += by_sigma * self.sigma(u[:, self.plain - 1])[1]
        slope[:, self.plain :] += by_rho * rho * rest * self.rho(u[:, self.plain :])[1]
        if more.size:
            slope += more
        return value - 0.5 * np.sum(u**2, axis=1), slope

    def sharpen(self) -> None:
        """Take the prior as it is, cusp included."""
        if self.pooled:
            self.shared = SharedStrength(self.theta, TAU_SCALE, self.agents)

    def start(self) -> Array:
        """A rough guess: each agent's rate, moderate difficulty and correlation."""
        from scipy.special import ndtri

        counts = self.likelihood.counts
        u = np.zeros(self.dim)
        if self.theta is logistic():
            u[: self.agents] = ndtri((counts.successes.sum(axis=1) + 1) / (counts.trials.sum(axis=1) + 2))
        u[self.plain :] = -0.5
        return u

    def refine(self, u: Array) -> bool:
        """Take the δ grid that the parameters at u need; whether it is finer than the one before."""
        _, sigma, rho, _ = self.parameters(u[None])
        before, step = self.likelihood.step, self.likelihood.needed_step(float(sigma[0]), rho[0], EASY)
        self.likelihood.set_step(step)
        return step < before


def mode_of(target: Target) -> tuple[Array, Array]:
    """Mode and covariance: the inverse of the negative Hessian there, never wider than the prior."""
    mode = target.start()
    covariance = _covariance(target, mode)
    for _ in range(2):
        mode = _climbed(target, mode, covariance)
        finer = target.refine(mode)
        covariance = _covariance(target, mode)
        if not finer:
            break
    return mode, covariance


def _climbed(target: Target, u: Array, inverse: Array) -> Array:
    """The mode, by BFGS from u with a first inverse of the negative Hessian, which spares most of the steps.

    It stops where the log density is about `NEAR` below its largest: rounding in single precision allows little more.
    """
    (value,), (slope,) = target.with_slope(u[None])
    for _ in range(MOST_STEPS):
        direction = inverse @ slope
        if slope @ direction < 2 * NEAR:
            break
        length = min(1.0, LONGEST_STEP / float(np.abs(direction).max()))
        for _ in range(HALVINGS):
            moved = length * direction
            (higher,), (flatter,) = target.with_slope((u + moved)[None])
            if higher > value + 1e-4 * (slope @ moved):
                break
            length /= 2
        else:
            break
        bent = slope - flatter
        if bent @ moved > 1e-12:
            scaled = inverse @ bent / (bent @ moved)
            inverse = inverse - np.outer(scaled, moved) - np.outer(moved, scaled)
            inverse += (1 + bent @ scaled) / (bent @ moved) * np.outer(moved, moved)
        u, value, slope = u + moved, higher, flatter
    return u


def _covariance(target: Target, u: Array) -> Array:
    """The inverse of the negative Hessian, from differences of gradients."""
    shifts = (DIFFERENCE / 2) * np.eye(target.dim)
    slope = target.with_slope(np.concatenate([u + shifts, u - shifts]))[1]
    negative = (slope[target.dim :] - slope[: target.dim]) / DIFFERENCE
    eigenvalues, vectors = np.linalg.eigh((negative + negative.T) / 2)
    factor = vectors / np.sqrt(np.clip(eigenvalues, 0.5, None))
    return np.asarray(factor @ factor.T)
