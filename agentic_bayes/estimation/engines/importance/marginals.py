"""Marginal densities on grids: the parts of the proposal that a Gaussian copula joins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agentic_bayes.estimation.engines.importance.target import Target
from agentic_bayes.numerics import Array

NODES = 257
FARTHEST = 6.5  # of any grid: beyond, a standard normal prior has 4e-11 of its mass
WIDTHS = 10  # of a standard deviation, on each side of a grid
FLOOR = 1e-14  # of the largest density
WIDEN = 1.08  # of the first scales: a tail that is too wide costs little, one too narrow costs the result
STRAIGHT = 2  # standard deviations along which conditional means are taken to be a straight line
SURE = 1e-12  # probabilities are kept so far from 0 and 1


@dataclass(frozen=True, eq=False)
class Marginals:
    """Piecewise linear densities of each coordinate, on grids of their own; shape (dim, nodes)."""

    grid: Array
    density: Array  # need not be normalised

    @cached_property
    def _step(self) -> Array:
        return self.grid[:, 1] - self.grid[:, 0]

    @cached_property
    def _normalised(self) -> tuple[Array, Array]:
        """Densities and distribution functions at the nodes."""
        density = np.maximum(self.density, FLOOR * self.density.max(axis=1, keepdims=True))
        area = np.cumsum((density[:, 1:] + density[:, :-1]) / 2, axis=1) * self._step[:, None]
        below = np.concatenate([np.zeros((len(area), 1)), area / area[:, -1:]], axis=1)
        return density / area[:, -1:], below

    def quantiles(self, z: Array) -> tuple[Array, Array]:
        """Points whose normal scores are z, and their log densities, shapes (draws, dim)."""
        from scipy.special import ndtr

        u, log_density = np.empty_like(z), np.empty_like(z)
        wanted = np.clip(ndtr(z), SURE, 1 - SURE)
        for j, (density, below, h) in enumerate(zip(*self._normalised, self._step, strict=True)):
            node = np.clip(np.searchsorted(below, wanted[:, j], side="right") - 1, 0, NODES - 2)
            start, slope = density[node], (density[node + 1] - density[node]) / h
            rest = wanted[:, j] - below[node]
            # the root of start·t + slope·t²/2 = rest, in the form that does not cancel
            root = np.sqrt(np.maximum(start**2 + 2 * slope * rest, 0))
            inside = np.clip(2 * rest / np.maximum(start + root, 1e-300), 0, h)
            u[:, j] = self.grid[j, 0] + h * node + inside
            log_density[:, j] = start + slope * inside
        return u, np.log(np.maximum(log_density, 1e-300))

    def scores(self, u: Array, first: int = 0) -> tuple[Array, Array]:
        """Normal scores of points, and their log densities, for the coordinates from `first` on."""
        from scipy.special import ndtri

        below, log_density = np.empty_like(u[:, first:]), np.empty_like(u[:, first:])
        densities, distribution = self._normalised
        for j in range(first, u.shape[1]):
            h, density = self._step[j], densities[j]
            place = np.clip((u[:, j] - self.grid[j, 0]) / h, 0, (NODES - 1) * (1 - 1e-12))
            node = np.minimum(place.astype(np.int64), NODES - 2)
            t = (place - node) * h
            slope = (density[node + 1] - density[node]) / h
            below[:, j - first] = distribution[j][node] + density[node] * t + slope * t**2 / 2
            log_density[:, j - first] = density[node] + slope * t
        return ndtri(np.clip(below, SURE, 1 - SURE)), np.log(np.maximum(log_density, 1e-300))

    def mixed_with_prior(self, share: float) -> Marginals:
        """With this share of every coordinate's standard normal prior."""
        prior = np.exp(-0.5 * self.grid**2)
        own = self.density / self.density.sum(axis=1, keepdims=True)
        return Marginals(self.grid, (1 - share) * own + share * prior / prior.sum(axis=1, keepdims=True))

    def flattened(self, first: int, power: float, share: float) -> Marginals:
        """From coordinate `first` on mixed with densities to a power below 1, which reach farther."""
        density = self.density.copy()
        own = density[first:] / density[first:].sum(axis=1, keepdims=True)
        flat = own**power
        density[first:] = (1 - share) * own + share * flat / flat.sum(axis=1, keepdims=True)
        return Marginals(self.grid, density)

    def refitted(self, u: Array, weight: Array, width: Array, trust: float) -> Marginals:
        """Mixed, by `trust`, with kernel densities of weighted points."""
        density = np.empty_like(self.density)
        for j, h in enumerate(self._step):
            place = np.clip((u[:, j] - self.grid[j, 0]) / h, 0, NODES - 1.001)
            node = place.astype(np.int64)
            part = place - node
            counts = np.bincount(node, weight * (1 - part), NODES) + np.bincount(node + 1, weight * part, NODES)
            reach = int(4 * width[j] / h) + 1
            kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * h / width[j]) ** 2)
            density[j] = np.convolve(counts, kernel / kernel.sum())[reach : reach + NODES]
        new, old = (part / part.sum(axis=1, keepdims=True) for part in (density, self.density))
        return Marginals(self.grid, trust * new + (1 - trust) * old)


def first_marginals(target: Target, mode: Array, covariance: Array) -> Marginals:
    """From the log density near its mode.

    Of the coordinates before σ normals with a scale for each side, from the drop at ±1 and ±2 standard deviations along
    the conditional means; of σ and ρ, whose densities are flat towards 0 and may have two modes, the density along
    theirs.
    """
    dim, level = target.dim, target.level
    sd = np.sqrt(np.diag(covariance))
    along = (covariance / sd).T
    points = [mode[None], *(mode + t * along[:level] for t in (-2, -1, 1, 2))]
    nodes = []
    for j in range(level, dim):
        wide, near = np.linspace(-5.6, 5.6, 29), mode[j] + sd[j] * np.linspace(-5, 5, 21)
        at = np.unique(np.clip(np.concatenate([wide, near]), -6, 6))
        # farther away conditional means are not a straight line
        moved = mode + np.clip((at - mode[j]) / sd[j], -STRAIGHT, STRAIGHT)[:, None] * along[j]
        moved[:, j] = at
        nodes.append(at)
        points.append(moved)
    values = target(np.concatenate(points))
    drop = np.maximum(values[0] - values[1 : 1 + 4 * level].reshape(4, level), 1e-3)
    scale = np.clip(np.array([2, 1, 1, 2])[:, None] / np.sqrt(2 * drop), 0.5, 3)
    lower, upper = (WIDEN * np.sqrt(scale[i] * scale[i + 1]) * sd[:level] for i in (0, 2))
    grid, density = np.empty((dim, NODES)), np.empty((dim, NODES))
    centre = mode[:level]
    ends = np.maximum(centre - WIDTHS * lower, -FARTHEST), np.minimum(centre + WIDTHS * upper, FARTHEST)
    grid[:level] = np.linspace(*ends, NODES).T
    deviation = grid[:level] - centre[:, None]
    density[:level] = np.exp(-0.5 * (deviation / np.where(deviation < 0, lower[:, None], upper[:, None])) ** 2)
    start = 1 + 4 * level
    for j, at in zip(range(level, dim), nodes, strict=True):
        logs = values[start : start + at.size]
        start += at.size
        logs = logs - logs.max()
        held = np.flatnonzero(logs > -25)
        grid[j] = np.linspace(at[max(held[0] - 1, 0)], at[min(held[-1] + 1, at.size - 1)], NODES)
        density[j] = np.exp(np.interp(grid[j], at, logs))
    return Marginals(grid, density)
