"""Adaptive importance sampling with a Gaussian copula: the crossed posterior as weighted points.

The first proposal joins marginals from the log density near its mode by the Laplace approximation's correlation. Each
round refits both to all points so far; the final points come from the last proposal and, a fifth of them, from a wider
one. Their weights are smoothed (PSIS); the Pareto k and the effective sample size say whether they may be used. Where
they may not, the proposal is refitted to them, too, and four times as many are drawn, at most twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.diagnostics import ImportanceDiagnostics
from agentic_bayes.estimation.engines.importance.marginals import Marginals, first_marginals
from agentic_bayes.estimation.engines.importance.pareto import smoothed
from agentic_bayes.estimation.engines.importance.sobol import sobol_points
from agentic_bayes.estimation.engines.importance.target import Target, mode_of
from agentic_bayes.estimation.methods.crossed_likelihood import one_blas_thread
from agentic_bayes.estimation.methods.judge_labels import JudgeLabels
from agentic_bayes.estimation.methods.options import Crossed
from agentic_bayes.numerics import Array

FEW_COORDINATES, SHORT, LONG = 20, (512, 1024), (1024, 2048, 4096)  # sizes of the rounds
FINAL = 4096
MORE, FURTHER = 4, 2  # times as many final points where the first do not suffice, and how often they are drawn
DEFENSIVE = 4  # one point of the wider proposal for so many of the other
LEADING, WIDE_LEADING, WIDE = 2, 1.5, 1.1  # its scales: along the leading directions, and along the others
FLAT_POWER, FLAT_SHARE = 0.4, 2.0  # its marginals of ρ
BANDWIDTH, BANDWIDTH_RHO = 1.2, 0.6  # of the kernel densities, relative to Silverman's rate
FORGOTTEN = 0.05  # rounds with less than this share of the effective sample size are left out
PRIOR_SHARE, MOST_PRIOR = 3.0, 0.15  # of the prior in every marginal: 3/dim², at most .15
FINAL_KEY = 99  # of the random stream of the final points


@dataclass(frozen=True)
class ImportanceFit:
    """Weighted points and whether they may be trusted."""

    theta: Array  # shape (points, agents)
    sigma: Array  # shape (points,)
    rho: Array  # shape (points, agents)
    weight: Array  # shape (points,); sums to 1
    diagnostics: ImportanceDiagnostics
    rates: dict[str, Array]  # error rates of a judge, shape (points,) or (points, agents)


@dataclass(frozen=True, eq=False)
class _Copula:
    """A proposal: marginals joined by a Gaussian copula."""

    marginals: Marginals
    correlation: Array  # shape (dim, dim)
    plain: int  # coordinates that are not ρ

    def sample(self, size: int, seed: int, key: int) -> tuple[Array, Array]:
        """Points and their log densities."""
        factor = np.linalg.cholesky(self.correlation)
        z0 = _normal_points(len(factor), size, seed, key, 0)
        z = z0 @ factor.T
        u, log_marginal = self.marginals.quantiles(z)
        return u, _log_density(z, z0, factor, log_marginal)

    def sample_defensively(self, size: int, seed: int, key: int) -> tuple[Array, Array]:
        """Points of this proposal and of a wider one, with the log density of their mixture.

        The wider one's points are a Sobol sequence of their own: every fourth point of one sequence is not uniform.
        """
        dim, extra = len(self.correlation), size // DEFENSIVE
        wider = self.marginals.flattened(self.plain, FLAT_POWER, min(1.0, FLAT_SHARE / (dim - self.plain)))
        eigenvalues, vectors = np.linalg.eigh(self.correlation)
        scale = np.where(np.arange(dim) >= dim - LEADING, WIDE_LEADING, WIDE)
        own, wide = (
            np.linalg.cholesky(self.correlation),
            np.linalg.cholesky((vectors * eigenvalues * scale**2) @ vectors.T),
        )
        z_own = np.clip(_normal_points(dim, size, seed, key, 0) @ own.T, -7.3, 7.3)
        z_wide = np.clip(_normal_points(dim, extra, seed, key, 1) @ wide.T, -7.3, 7.3)
        (u_own, log_own), (u_wide, log_wide) = self.marginals.quantiles(z_own), wider.quantiles(z_wide)
        scores, logs = self.marginals.scores(u_wide)
        by_own = np.concatenate([z_own, scores]), np.concatenate([log_own, logs])
        by_wide = np.concatenate([z_own, z_wide]), np.concatenate([log_own, log_wide])
        changed = wider.scores(u_own, self.plain)  # the other marginals are the same
        by_wide[0][:size, self.plain :], by_wide[1][:size, self.plain :] = changed
        densities = [
            _log_density(z, np.linalg.solve(factor, z.T).T, factor, log_marginal)
            for (z, log_marginal), factor in ((by_own, own), (by_wide, wide))
        ]
        shares = np.log(np.array([size, extra]) / (size + extra))
        return np.concatenate([u_own, u_wide]), np.logaddexp(densities[0] + shares[0], densities[1] + shares[1])


def _normal_points(dim: int, size: int, seed: int, *key: int) -> Array:
    from scipy.special import ndtri

    uniform = sobol_points(dim, size, np.random.default_rng([seed, *key]))
    return np.asarray(ndtri(np.clip(uniform, 1e-10, 1 - 1e-10)))


def _log_density(z: Array, standard: Array, factor: Array, log_marginal: Array) -> Array:
    """Of points with normal scores z = factor·standard, up to a constant."""
    own = np.sum(0.5 * z**2 + log_marginal, axis=1) - 0.5 * np.sum(standard**2, axis=1)
    return np.asarray(own - np.log(np.diag(factor)).sum())


def _correlation(covariance: Array) -> Array:
    sd = np.sqrt(np.diag(covariance))
    return np.asarray(covariance / np.outer(sd, sd))


def _shrunk(covariance: Array, ess: float) -> Array:
    """A covariance of whitened points without its noise.

    Eigenvalues inside the Marchenko-Pastur edges are noise about 1; those above lose their bias (Stein's loss).

    References
    ----------
    Donoho, Gavish and Johnstone (2018), Annals of Statistics 46, 1742-1778.
    """
    eigenvalues, vectors = np.linalg.eigh(covariance)
    eigenvalues = eigenvalues / np.median(eigenvalues)
    ratio = len(covariance) / ess
    high, low = eigenvalues > (1 + np.sqrt(ratio)) ** 2, eigenvalues < (1 - np.sqrt(min(ratio, 0.9))) ** 2
    kept = np.ones_like(eigenvalues)
    moved = eigenvalues[high] + 1 - ratio
    spike = np.maximum((moved + np.sqrt(np.maximum(moved**2 - 4 * eigenvalues[high], 0))) / 2, 1 + 1e-9)
    cosine = (1 - ratio / np.maximum((spike - 1) ** 2, ratio)) / (1 + ratio / (spike - 1))  # squared
    kept[high] = spike / (cosine + spike * (1 - cosine))
    kept[low] = np.minimum(eigenvalues[low] + np.sqrt(ratio) / 2, 1)
    return np.asarray((vectors * kept) @ vectors.T)


class _Adaptation:
    """The proposal, refitted to the points of every round."""

    def __init__(self, target: Target) -> None:
        self.target = target
        mode, covariance = mode_of(target)
        self.prior_share = min(MOST_PRIOR, PRIOR_SHARE / target.dim**2)
        marginals = first_marginals(target, mode, covariance).mixed_with_prior(self.prior_share)
        target.sharpen()
        self.proposal = _Copula(marginals, _correlation(covariance), target.plain)
        self.rounds: list[tuple[Array, Array, float]] = []

    def learn(self, u: Array, log_weight: Array) -> None:
        """Refit marginals and correlation to all rounds, each counted by its effective sample size."""
        target = self.target
        weight = np.exp(log_weight - log_weight.max())
        # truncated, so that one lucky point cannot collapse the next proposal
        weight = np.minimum(weight, np.sort(weight)[-max(8, 2 * target.dim)])
        weight /= weight.sum()
        self.rounds.append((u, weight, float(1 / np.sum(weight**2))))
        total = sum(ess for *_, ess in self.rounds)
        self.rounds = [one for one in self.rounds if one[2] > FORGOTTEN * total]
        total = sum(ess for *_, ess in self.rounds)
        points = np.concatenate([u for u, *_ in self.rounds])
        weights = np.concatenate([weight * ess / total for _, weight, ess in self.rounds])
        sd = np.sqrt(weights @ (points - weights @ points) ** 2)
        rule = np.where(np.arange(target.dim) < target.plain, BANDWIDTH, BANDWIDTH * BANDWIDTH_RHO)
        marginals = self.proposal.marginals.refitted(points, weights, rule * sd * total**-0.2, total / (total + 15))
        marginals = marginals.mixed_with_prior(self.prior_share)
        scores = marginals.scores(points)[0]
        scores -= weights @ scores
        factor = np.linalg.cholesky(self.proposal.correlation)
        white = np.linalg.solve(factor, scores.T).T
        covariance = factor @ _shrunk((white * weights[:, None]).T @ white, total) @ factor.T
        self.proposal = _Copula(marginals, _correlation(covariance), target.plain)


def fit_crossed(
    counts: Counts, method: Crossed, judge: JudgeLabels | None = None, *, random_seed: int = 0, size: int = FINAL
) -> ImportanceFit:
    """Weighted points of (θ, σ, ρ) of the crossed model, and of a judge's error rates where they are not known."""
    with one_blas_thread():
        if judge is None:
            return _fit(Target(counts, method), random_seed, size)
        from agentic_bayes.estimation.engines.importance.judged import JudgedTarget

        return _fit(JudgedTarget(counts, method, judge), random_seed, size)


def _fit(target: Target, random_seed: int, size: int) -> ImportanceFit:
    adaptation = _Adaptation(target)
    for number, points in enumerate(SHORT if target.dim <= FEW_COORDINATES else LONG):
        u, log_density = adaptation.proposal.sample(points, random_seed, number)
        adaptation.learn(u, target(u) - log_density)
    for attempt, points in enumerate((size, *[MORE * size] * FURTHER)):
        u, log_density = adaptation.proposal.sample_defensively(points, random_seed, FINAL_KEY + attempt)
        log_ratio = target(u) - log_density
        log_weight, pareto_k = smoothed(log_ratio)
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        diagnostics = ImportanceDiagnostics(pareto_k, float(1 / np.sum(weight**2)), len(u))
        if diagnostics.passed:
            break
        adaptation.learn(u, log_ratio)
    theta, sigma, rho, _ = target.parameters(u)
    return ImportanceFit(theta, sigma, np.minimum(rho, 1 - 1e-12), weight, diagnostics, target.rates(u))
