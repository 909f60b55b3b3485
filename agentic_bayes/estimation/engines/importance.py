"""The importance engine: the crossed posterior by adaptive importance sampling, seeded, without compiling.

Every parameter is carried on the probit scale of its prior, where the prior is a standard normal and no tail is
heavier. A Laplace approximation is adapted in three short rounds; the final draws are Sobol points from a product of
split Student t along its principal axes, weighted, smoothed (PSIS) and resampled. The Pareto k and the effective sample
size say whether the result may be used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.diagnostics import ImportanceDiagnostics
from agentic_bayes.estimation.methods.crossed import SIGMA_SCALE, CrossedLikelihood
from agentic_bayes.estimation.posterior import CHAINS, DRAWS
from agentic_bayes.numerics import Array

ROUNDS, ROUND_SIZE = 3, 512
FINAL_ATTEMPTS, FINAL_SIZE = 2, 8192  # a failed attempt is the next proposal's data
DEGREES = 5.0  # of freedom of the proposals
WIDEN = 1.15  # scales of the proposals: a tail that is too wide costs little, one too narrow costs the result


@dataclass(frozen=True)
class ImportanceFit:
    """Equally weighted draws and whether they may be trusted."""

    theta: Array  # shape (4,000, agents)
    sigma: Array  # shape (4,000,)
    rho: Array
    diagnostics: ImportanceDiagnostics


class _Target:
    """Log posterior on the probit scale: coordinates are θ_1, …, θ_A, σ, ρ_1, …, ρ_A."""

    def __init__(self, counts: Counts) -> None:
        self.agents = len(counts.agents)
        self.likelihood = CrossedLikelihood(counts)
        self.dim = 2 * self.agents + 1

    def parameters(self, u: Array) -> tuple[Array, Array, Array, Array]:
        """θ, σ, ρ and 1 - ρ from coordinates of shape (draws, dim)."""
        from scipy.special import log_ndtr, ndtr, ndtri

        theta, scale, rho = u[:, : self.agents], u[:, self.agents], u[:, self.agents + 1 :]
        # quantiles of Logistic(0, 1) and HalfNormal(2), taken from the side that keeps its digits
        return (
            log_ndtr(theta) - log_ndtr(-theta),
            -SIGMA_SCALE * ndtri(ndtr(-scale) / 2),
            np.clip(ndtr(rho), 1e-12, None),
            np.clip(ndtr(-rho), 1e-12, None),
        )

    def __call__(self, u: Array) -> Array:
        """Log posterior density, shape (draws,), up to a constant."""
        inside = np.clip(u, -8.0, 8.0)  # beyond, nothing but the prior changes
        return np.asarray(self.likelihood(*self.parameters(inside)) - 0.5 * np.sum(u**2, axis=1))

    def start(self) -> Array:
        """A rough guess: each agent's rate, moderate difficulty and correlation."""
        from scipy.special import ndtri

        counts = self.likelihood.counts
        rate = (counts.successes.sum(axis=1) + 1) / (counts.trials.sum(axis=1) + 2)
        return np.concatenate([ndtri(rate), [0.0], np.full(self.agents, -0.5)])


def _mode(target: _Target) -> tuple[Array, Array]:
    """Mode and covariance by BFGS and finite differences, many points at a time."""
    from scipy.optimize import minimize

    step = 1e-4
    shifts = step * np.eye(target.dim)

    def value_and_slope(u: Array) -> tuple[float, Array]:
        values = target(np.vstack([u[None], u + shifts, u - shifts]))
        slope = (values[1 : target.dim + 1] - values[target.dim + 1 :]) / (2 * step)
        return -float(values[0]), -slope

    found = minimize(value_and_slope, target.start(), jac=True, method="BFGS", options={"maxiter": 60, "gtol": 1e-3})
    return found.x, _covariance(target, found.x)


def _covariance(target: _Target, mode: Array) -> Array:
    """Inverse of the negative Hessian; made positive definite, and never wider than the prior."""
    step, dim = 1e-2, target.dim
    shifts = step * np.eye(dim)
    points = [mode + si * shifts[i] + sj * shifts[j] for i in range(dim) for j in range(dim) for si, sj in SIGNS]
    values = target(np.array(points)).reshape(dim, dim, 4)
    hessian = -(values @ np.array([1.0, -1.0, -1.0, 1.0])) / (4 * step**2)
    eigenvalues, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    return np.asarray((vectors / np.clip(eigenvalues, 0.5, None)) @ vectors.T)


SIGNS = ((1, 1), (1, -1), (-1, 1), (-1, -1))


@dataclass(frozen=True)
class _SplitT:
    """Independent Student t along the columns of `axes`, with one scale below the centre and one above."""

    centre: Array  # shape (dim,)
    axes: Array  # shape (dim, dim); orthonormal columns
    below: Array  # shape (dim,); scales
    above: Array

    @classmethod
    def symmetric(cls, centre: Array, covariance: Array) -> _SplitT:
        eigenvalues, vectors = np.linalg.eigh(covariance)
        scale = np.sqrt(np.clip(eigenvalues, 1e-10, None))
        return cls(centre, vectors, scale, scale)

    @classmethod
    def fitted(cls, u: Array, weight: Array) -> _SplitT:
        """To weighted draws."""
        centre = weight @ u
        deviation = u - centre
        _, vectors = np.linalg.eigh((deviation * weight[:, None]).T @ deviation)
        along = deviation @ vectors
        scales = []
        for side in (along < 0, along > 0):
            mass = (weight[:, None] * side).sum(axis=0)
            square = (weight[:, None] * side * along**2).sum(axis=0)
            scales.append(WIDEN * np.sqrt(square / np.maximum(mass, 1e-12)) + 1e-8)
        return cls(centre, vectors, *scales)

    def sample(self, uniform: Array) -> tuple[Array, Array]:
        """Points and their log density from uniforms of shape (draws, dim)."""
        from scipy.special import gammaln, stdtrit

        share = self.below / (self.below + self.above)
        low = uniform < share
        # each side is half a Student t of its own scale; the sides meet at the centre with one density
        inner = np.where(low, uniform / (2 * share), 1 - (1 - uniform) / (2 * (1 - share)))
        z = stdtrit(DEGREES, np.clip(inner, 1e-12, 1 - 1e-12))
        scale = np.where(low, self.below, self.above)
        constant = gammaln((DEGREES + 1) / 2) - gammaln(DEGREES / 2) - 0.5 * np.log(DEGREES * np.pi)
        log_density = constant - (DEGREES + 1) / 2 * np.log1p(z**2 / DEGREES) - np.log((self.below + self.above) / 2)
        return self.centre + (z * scale) @ self.axes.T, log_density.sum(axis=1)


def fit_crossed(counts: Counts, *, random_seed: int = 0, size: int = FINAL_SIZE) -> ImportanceFit:
    """Draws of (θ, σ, ρ) of the crossed model."""
    from scipy.stats import qmc

    target = _Target(counts)
    mode, covariance = _mode(target)
    proposal = _SplitT.symmetric(mode, covariance)
    for number in range(ROUNDS):
        points = qmc.Sobol(target.dim, seed=np.random.default_rng([random_seed, number])).random(ROUND_SIZE)
        u, log_density = proposal.sample(points)
        log_weight = target(u) - log_density
        weight = np.exp(log_weight - log_weight.max())
        # truncated, so that one lucky draw cannot collapse the next proposal
        weight = np.minimum(weight, np.sort(weight)[-max(8, 2 * target.dim)])
        proposal = _SplitT.fitted(u, weight / weight.sum())
    for attempt in range(FINAL_ATTEMPTS):
        points = qmc.Sobol(target.dim, seed=np.random.default_rng([random_seed, ROUNDS + attempt])).random(size)
        u, log_density = proposal.sample(points)
        log_weight, pareto_k = smoothed(target(u) - log_density)
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        diagnostics = ImportanceDiagnostics(pareto_k, float(1 / np.sum(weight**2)), size)
        if diagnostics.passed:
            break
        proposal = _SplitT.fitted(u, weight)
    rng = np.random.default_rng([random_seed, ROUNDS + FINAL_ATTEMPTS])
    count = CHAINS * DRAWS
    picked = np.searchsorted(np.cumsum(weight), (np.arange(count) + rng.random()) / count)
    picked = rng.permutation(np.minimum(picked, size - 1))
    theta, sigma, rho, _ = target.parameters(np.clip(u[picked], -8.0, 8.0))
    return ImportanceFit(theta, sigma, np.clip(rho, 1e-12, 1 - 1e-12), diagnostics)


def smoothed(log_weight: Array) -> tuple[Array, float]:
    """Pareto-smoothed log weights and the shape k of their tail.

    References
    ----------
    Vehtari et al. (2024), JMLR 25(72); Zhang and Stephens (2009), Technometrics 51, 316-325.
    """
    shifted = log_weight - log_weight.max()
    count = min(shifted.size // 5, int(np.ceil(3 * np.sqrt(shifted.size))))
    order = np.argsort(shifted, kind="stable")
    tail = order[-count:]
    cutoff = np.exp(shifted[order[-count - 1]])
    excess = np.exp(shifted[tail]) - cutoff
    if excess[-1] <= 1e-300:  # all weights are equal
        return shifted, 0.0
    k, scale = _generalised_pareto(np.maximum(excess, 1e-300))
    p = (np.arange(count) + 0.5) / count
    quantiles = scale * (np.expm1(-k * np.log1p(-p)) / k if abs(k) > 1e-8 else -np.log1p(-p))
    out = shifted.copy()
    out[tail] = np.minimum(np.log(cutoff + quantiles), 0.0)
    return out, float(k)


def _generalised_pareto(x: Array) -> tuple[float, float]:
    """Shape and scale of a generalised Pareto distribution fitted to sorted excesses (Zhang and Stephens 2009)."""
    n = x.size
    grid = 30 + int(np.sqrt(n))
    b = 1 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))
    b = b / (3 * x[int(n / 4 + 0.5) - 1]) + 1 / x[-1]
    shape = np.log1p(-b[:, None] * x).mean(axis=1)
    profile = n * (np.log(-b / shape) - shape - 1)
    with np.errstate(over="ignore"):  # a shape that fits that badly has no weight
        weight = 1 / np.exp(profile - profile[:, None]).sum(axis=1)
    mean = float(np.sum(b * weight) / weight.sum())
    k = float(np.log1p(-mean * x).mean())
    scale = -k / mean
    # a weak prior keeps k from running away where the tail is short
    return (n * k + 10 * 0.5) / (n + 10), scale
