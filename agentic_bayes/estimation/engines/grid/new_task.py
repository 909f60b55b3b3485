"""The distribution of pass@k and pass^k of a new task, from one agent's posterior grid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from agentic_bayes.estimation.engines.grid.agent_grid import AgentGrid
from agentic_bayes.estimation.engines.grid.axes import Axis, hermite, node_slopes
from agentic_bayes.estimation.engines.grid.betabinomial import TINY, mean_powers
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array

REFINE = 3  # nodes of θ per half node of the grid: cubics between them give quantiles to 3e-8
NEGLIGIBLE = 80.0  # log mass below the greatest
STENCIL = 20  # nodes of an interpolating polynomial
QUANTILES = np.linspace(-7.0, 7.0, 141)  # standard normal quantiles near which the distribution is tabulated
AROUND = 4  # of these on each side of one that is wanted


@dataclass(frozen=True)
class FineGrid:
    """The posterior of θ given each ρ, integrated: distribution functions along a finer axis.

    A density that its nodes resolve is the sinc interpolant of them: C(x) = Σ m_i (½ + Si(π(x - x_i)/h)/π). That asks
    for twice as many nodes as the trapezoid rule does; the log density, which is smoother, is interpolated to them.
    """

    axis: Axis  # θ of the fine nodes, uniform in x
    rho: Array  # shape (ρ nodes,)
    one_minus_rho: Array
    cumulative: Array  # shape (ρ nodes, nodes); posterior mass of this ρ and of θ up to this node
    density: Array  # its derivative by the number of the node

    @classmethod
    def of(cls, grid: AgentGrid) -> FineGrid:
        """Of one agent's grid."""
        coarse = grid.axis
        size = 2 * coarse.size - 1
        axis = Axis(coarse.centre, coarse.scale, coarse.start, coarse.step / 2 / REFINE, REFINE * (size - 1) + 1)
        matters = grid.weights.sum(axis=0) > 1e-12
        mass = np.empty((size, int(matters.sum())))
        mass[::2] = grid.weights[:, matters]
        mass[1::2] = np.exp(_at_midpoints(grid.log_weights[:, matters], grid.log_weights.max()))
        mass /= mass.sum()
        rho, one_minus_rho = grid.rho.rho[matters], grid.rho.one_minus_rho[matters]
        return cls(axis, rho, one_minus_rho, *(mass.T @ matrix.T for matrix in _sinc_integrals(size)))

    def new_tasks(self, metrics: Iterable[Metric]) -> dict[Metric, NewTask]:
        """The distribution of each of these metrics; pass@1 is pass^1."""
        same = {metric: Metric("pass^1") if metric.k == 1 else metric for metric in metrics}
        found = {}
        for power, own in by_family(same.values()):
            share = np.exp(-np.logaddexp(0, -self.axis.theta if power else self.axis.theta))
            for k, tail in mean_powers(share, self.rho[:, None], self.one_minus_rho[:, None], 0, 0, own):
                found[own[k]] = NewTask(self, tail, own[k])
        return {metric: found[computed] for metric, computed in same.items()}


class NewTask:
    """Distribution function and quantiles of one metric, tabulated on its logit scale.

    Quantiles come from monotone cubic interpolation of the tabulated distribution function, of its logit scale against
    the normal quantile of the probability, where it is nearly straight. They agree with a root finder to 1e-5.
    """

    def __init__(self, fine: FineGrid, tail: Array, metric: Metric) -> None:
        self.fine, self.power = fine, metric.power
        # everything of shape (ρ nodes, nodes), increasing along the nodes
        self.logits = logit(tail) if self.power else -logit(tail)
        rise = node_slopes(self.logits.T).T
        self.slopes = np.divide(fine.density, rise, out=np.zeros_like(rise), where=rise > 0)

    def _below(self, at: Array) -> tuple[Array, Array]:
        """P(logit metric ≤ at) and its density there."""
        value, density = self._below_by_rho(at)
        return np.minimum(np.maximum(value.sum(axis=0), 0), 1), density.sum(axis=0)

    def _below_by_rho(self, at: Array) -> tuple[Array, Array]:
        """The same for each ρ, by cubic interpolation, shape (ρ nodes, points)."""
        # shape (ρ nodes, points): the cell of each point, and the values at its ends
        rows, size = self.logits.shape
        cell = np.array([logits.searchsorted(at, side="right") for logits in self.logits]) - 1
        cell = np.minimum(np.maximum(cell, 0), size - 2) + size * np.arange(rows)[:, None]
        x, y, slopes = (
            (table.take(cell), table.take(cell + 1)) for table in (self.logits, self.fine.cumulative, self.slopes)
        )
        value, density = hermite(x, y, slopes, at)
        low, high = at < self.logits[:, :1], at > self.logits[:, -1:]
        value = np.where(low, 0.0, np.where(high, self.fine.cumulative[:, -1:], value))
        return value, np.where(low | high, 0.0, density)

    def below(self, y: Array) -> Array:
        """P(metric ≤ y)."""
        y = np.asarray(y, dtype=float)
        return self._below(self._logit(y).ravel())[0].reshape(y.shape)

    def below_by_rho(self, y: float) -> Array:
        """P(metric ≤ y and this ρ), shape (ρ nodes,): given ρ, all metrics rise with μ."""
        return self._below_by_rho(self._logit(np.array([y])))[0][:, 0]

    def _logit(self, y: Array) -> Array:
        return logit(y) if self.power else -logit(1 - y)

    @cached_property
    def _places(self) -> Array:
        """Logits of the metric near the normal quantiles that are tabulated."""
        from scipy.special import ndtr

        logits, weight = (part[:, ::REFINE].ravel() for part in (self.logits, self.fine.density))
        order = np.argsort(logits, kind="stable")
        rough = np.cumsum(np.maximum(weight[order], 0))
        at = np.interp(ndtr(QUANTILES), rough / rough[-1], logits[order])
        return np.asarray(at[np.append(True, np.diff(at) > 0)])

    def _table(self, at: Array) -> tuple[Array, Array, Array]:
        """Normal quantiles, logits of the metric there, and their slopes."""
        from scipy.special import ndtri

        mass, density = self._below(at)
        z = ndtri(np.clip(mass, 1e-14, 1 - 1e-14))
        rising = np.append(True, np.diff(np.maximum.accumulate(z)) > 0)
        z, at, density = z[rising], at[rising], density[rising]
        slopes = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) / np.maximum(density, TINY)
        return z, at, slopes

    @cached_property
    def _whole(self) -> tuple[Array, Array, Array]:
        return self._table(self._places)

    def _table_for(self, wanted: Array) -> tuple[Array, Array, Array]:
        """The part of the table around these normal quantiles; all of it where they are many or that part has gaps."""
        near = np.unique(np.searchsorted(QUANTILES, wanted)[:, None] + np.arange(-AROUND, AROUND))
        if 2 * near.size > QUANTILES.size or near[0] < 0 or near[-1] >= QUANTILES.size:
            return self._whole
        if self._places.size == QUANTILES.size:
            part = self._table(self._places[near])
            cell = np.searchsorted(part[0], wanted, side="right")
            inside = part[0].size == near.size and cell.min() > 0 and cell.max() < near.size
            if inside and np.all(near[cell] - near[cell - 1] == 1):
                return part
        return self._whole

    def quantile(self, q: Array) -> Array:
        """Inverse of `below` at probabilities q."""
        from scipy.special import ndtri

        wanted = ndtri(q)
        z, at, _ = table = self._table_for(wanted.ravel())
        wanted = np.clip(wanted, z[0], z[-1])
        if z.size == 1:
            values = np.full(q.shape, at[0])
        else:
            cell = np.clip(np.searchsorted(z, wanted, side="right") - 1, 0, z.size - 2)
            x, y, slopes = ((part[cell], part[cell + 1]) for part in table)
            values = hermite(x, y, slopes, wanted)[0]
        small = np.exp(-np.logaddexp(0, -values if self.power else values))
        return np.asarray(small if self.power else 1 - small)


def by_family(metrics: Iterable[Metric]) -> Iterator[tuple[bool, dict[int, Metric]]]:
    """Whether all attempts must succeed, and the metrics of that family by k."""
    wanted = tuple(metrics)
    for power in (False, True):
        yield power, {metric.k: metric for metric in wanted if metric.power == power}


def logit(p: Array) -> Array:
    """Log p/(1 - p), finite at 0 and 1."""
    return np.asarray(np.log(np.maximum(p, TINY)) - np.log(np.maximum(1 - p, 1e-17)))


def _at_midpoints(log_mass: Array, top: float) -> Array:
    """Log mass halfway between nodes, by the polynomial through the nearest nodes."""
    log_mass = np.maximum(log_mass, top - NEGLIGIBLE)
    middle = _midpoint_weights(len(log_mass)) @ log_mass
    # where a prior ends abruptly no polynomial fits
    below, above = (pick(log_mass[:-1], log_mass[1:]) for pick in (np.minimum, np.maximum))
    return np.asarray(np.clip(middle, below, above + 1))


@lru_cache(maxsize=64)
def _midpoint_weights(size: int) -> Array:
    """Lagrange's weights of the nodes (columns) for the midpoints (rows); at the ends from the outermost."""
    nodes = np.arange(STENCIL)
    others = nodes[:, None] != nodes
    weights = np.zeros((size - 1, size))
    for row in range(size - 1):
        first = min(max(row - STENCIL // 2 + 1, 0), size - STENCIL)
        ratio = np.where(others, row + 0.5 - first - nodes, 1) / np.where(others, nodes[:, None] - nodes, 1)
        weights[row, first : first + STENCIL] = ratio.prod(axis=1)
    return weights


@lru_cache(maxsize=64)
def _sinc_integrals(size: int) -> tuple[Array, Array]:
    """½ + Si(πu)/π and its derivative by the fine node, at fine nodes (rows) for masses at nodes (columns)."""
    from scipy.special import sici

    fine, coarse = np.arange(REFINE * (size - 1) + 1), np.arange(size)
    u = np.arange(-fine[-1], fine[-1] + 1) / REFINE
    place = fine[:, None] - REFINE * coarse + fine[-1]
    integral = 0.5 + sici(np.pi * u)[0] / np.pi
    return integral[place], np.sinc(u)[place] / REFINE
