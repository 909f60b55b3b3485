"""The distribution of pass@k and pass^k of a new task, from one agent's posterior grid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice

import numpy as np

from agentic_bayes.estimation.engines.grid.agent_grid import AgentGrid
from agentic_bayes.estimation.engines.grid.axes import Axis, hermite
from agentic_bayes.estimation.engines.grid.betabinomial import TINY, mean_powers
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array

REFINE = 3  # nodes of θ per half node of the grid: cubics between them give quantiles to 3e-8
SPACED = 2 * REFINE  # as far apart are those that are nodes of the grid
TOGETHER = 8  # metrics at a time, to stay in the processor's cache
NEGLIGIBLE = 80.0  # log mass below the greatest
STENCIL = 20  # nodes of an interpolating polynomial
QUANTILES = np.linspace(-7.0, 7.0, 141)  # standard normal quantiles near which the distribution is tabulated
BEYOND = 2  # nodes on each side on which a slope depends
# weights of the outermost five nodes (rows) in the polynomial through them, two nodes and one node farther out
CONTINUED = np.array([[15.0, 5], [-40, -10], [45, 10], [-24, -5], [5, 1]])
AROUND = 2  # of these on each side of one that is wanted

QuantileTable = tuple[Array, Array, Array]  # normal quantiles, logits of a metric there, and their slopes


@dataclass(frozen=True)
class FineGrid:
    """The posterior of θ given each ρ, integrated: distribution functions along a finer axis.

    A density that its nodes resolve is the sinc interpolant of them: C(x) = Σ m_i (½ + Si(π(x - x_i)/h)/π). That asks
    for twice as many nodes as the trapezoid rule does; the log density, which is smoother, is interpolated to them.
    """

    axis: Axis  # θ of the fine nodes, uniform in x
    rho: Array  # shape (ρ nodes,)
    one_minus_rho: Array
    weights: Array  # shape (ρ nodes, nodes of the grid); posterior mass; each SPACED-th fine node is one of the grid
    cumulative: Array  # shape (ρ nodes, nodes); posterior mass of this ρ and of θ up to this node
    density: Array  # its derivative by the number of the node

    @classmethod
    def of(cls, grid: AgentGrid) -> FineGrid:
        """Of one agent's grid, where it has mass."""
        matters = grid.weights.sum(axis=0) > 1e-12
        weights, coarse = grid.weights[:, matters], grid.axis
        held = np.flatnonzero(weights.sum(axis=1) > 1e-14)
        first, last = max(held[0] - 1, 0), min(held[-1] + 1, coarse.size - 1)
        kept, size = slice(first, last + 1), 2 * (last - first) + 1
        axis = Axis(
            coarse.centre,
            coarse.scale,
            coarse.start + coarse.step * first,
            coarse.step / SPACED,
            REFINE * (size - 1) + 1,
        )
        mass = np.empty((size, weights.shape[1]))
        mass[::2] = weights[kept]
        mass[1::2] = np.exp(_at_midpoints(grid.log_weights[:, matters], grid.log_weights.max()))[first:last]
        mass /= mass.sum()
        integrals = (mass.T @ matrix.T for matrix in _sinc_integrals(size))
        return cls(axis, grid.rho.rho[matters], grid.rho.one_minus_rho[matters], weights[kept].T, *integrals)

    def new_tasks(self, metrics: Iterable[Metric]) -> dict[Metric, NewTask]:
        """The distribution of each of these metrics; pass@1 is pass^1."""
        same = {metric: Metric("pass^1") if metric.k == 1 else metric for metric in metrics}
        tails, found = self.tails(set(same.values())), dict[Metric, NewTask]()
        while some := dict(islice(tails, TOGETHER)):
            together = NewTasks(self, some)
            found |= {metric: NewTask(together, place, metric) for place, metric in enumerate(some)}
        return {metric: found[computed] for metric, computed in same.items()}

    def tails(self, metrics: Iterable[Metric]) -> Iterator[tuple[Metric, Array]]:
        """Each metric, and E t at every node for its t = p^k (pass^k) or (1-p)^k (pass@k = 1 - t)."""
        for power, own in by_family(metrics):
            share = np.exp(-np.logaddexp(0, -self.axis.theta if power else self.axis.theta))
            for k, tail in mean_powers(share, self.rho[:, None], self.one_minus_rho[:, None], 0, 0, own):
                yield own[k], tail


class NewTasks:
    """Distribution functions and quantiles of some metrics, all at once, tabulated on their logit scales.

    Quantiles come from monotone cubic interpolation of the tabulated distribution function, of its logit scale against
    the normal quantile of the probability, where it is nearly straight. They agree with a root finder to 1e-5.
    """

    def __init__(self, fine: FineGrid, tails: Mapping[Metric, Array]) -> None:
        self.fine, self.metrics = fine, tuple(tails)
        self.moments = [two_moments(fine.weights, tail[:, ::SPACED]) for tail in tails.values()]  # of each metric
        self._continued = self._table_of(tails)
        self._whole = dict[int, QuantileTable]()
        self._asked: tuple[bytes, Array] = b"", np.empty((0, 0))

    def _table_of(self, tails: Mapping[Metric, Array]) -> Array:
        """Logits of the metrics, shape (metrics, ρ nodes, nodes), increasing along the nodes.

        Continued on both sides by the polynomial through the last five, whose slopes are those of central differences.
        """
        rows, size = self.fine.cumulative.shape
        table = np.empty((len(tails), rows, size + 2 * BEYOND))
        logits = table[:, :, BEYOND:-BEYOND]
        for own, (metric, tail) in zip(logits, tails.items(), strict=True):
            logit(tail, out=own)
            if not metric.power:
                np.negative(own, out=own)
        table[:, :, :BEYOND] = logits[:, :, :5] @ CONTINUED
        table[:, :, : -BEYOND - 1 : -1] = logits[:, :, :-6:-1] @ CONTINUED
        return table

    @cached_property
    def _continued(self) -> Array:
        """That table; made again where it was let go."""
        return self._table_of(dict(self.fine.tails(self.metrics)))

    @property
    def _logits(self) -> Array:
        return self._continued[:, :, BEYOND:-BEYOND]

    def below_by_rho(self, at: Array, metrics: slice) -> tuple[Array, Array]:
        """P(logit metric ≤ at and this ρ) and its density, by cubic interpolation, shape (metrics, ρ nodes, points).

        Points are those of each metric, shape (metrics, points).
        """
        continued, logits = self._continued[metrics], self._logits[metrics]
        (metric_count, rows, width), size = continued.shape, logits.shape[2]
        cell = np.array(
            [[row.searchsorted(own, side="right") for row in of] for own, of in zip(at, logits, strict=True)]
        )
        cell = np.minimum(np.maximum(cell - 1, 0), size - 2)
        place = cell + width * np.arange(metric_count * rows).reshape(metric_count, rows, 1)
        before, behind, low, high, next_one, after = (continued.take(place + more) for more in range(6))
        rises = (8 * (high - behind) + before - next_one) / 12, (8 * (next_one - low) + behind - after) / 12
        cell += size * np.arange(rows)[:, None]
        mass, density = (
            (table.take(cell), table.take(cell + 1)) for table in (self.fine.cumulative, self.fine.density)
        )
        slopes = tuple(
            np.divide(own, rise, out=np.zeros(rise.shape), where=rise > 0)
            for own, rise in zip(density, rises, strict=True)
        )
        at = at[:, None, :]
        value, slope = hermite((low, high), mass, slopes, at)
        outside = at < logits[:, :, :1], at > logits[:, :, -1:]
        value = np.where(outside[0], 0.0, np.where(outside[1], self.fine.cumulative[:, -1:], value))
        return value, np.where(outside[0] | outside[1], 0.0, slope)

    def below(self, at: Array, metrics: slice) -> tuple[Array, Array]:
        """P(logit metric ≤ at) and its density, shape (metrics, points)."""
        value, density = self.below_by_rho(at, metrics)
        return np.minimum(np.maximum(value.sum(axis=1), 0), 1), density.sum(axis=1)

    @cached_property
    def _places(self) -> tuple[Array, Array]:
        """Logits of each metric near the normal quantiles that are tabulated, and which of them each is if counted.

        Both of shape (metrics, quantiles): nodes of the grid that lie far apart give several quantiles the same place.
        """
        from scipy.special import ndtr

        weight = np.maximum(self.fine.density[:, ::REFINE].ravel(), 0)
        places = np.empty((len(self.metrics), QUANTILES.size))
        for place, logits in zip(places, self._logits[:, :, ::REFINE].reshape(len(places), -1), strict=True):
            order = np.argsort(logits)
            rough = np.cumsum(weight[order])
            place[:] = np.interp(ndtr(QUANTILES), rough / rough[-1], logits[order])
        return places, np.cumsum(np.diff(places, axis=1, prepend=-np.inf) > 0, axis=1)

    def _tables(self, at: Array, metrics: slice) -> tuple[Array, Array]:
        """Normal quantiles and the slope of the logit there, shape (metrics, points)."""
        from scipy.special import ndtri

        mass, density = self.below(at, metrics)
        z = ndtri(np.clip(mass, 1e-14, 1 - 1e-14))
        return z, np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) / np.maximum(density, TINY)

    def quantiles(self, metric: int, wanted: Array) -> Array:
        """Logits of a metric at normal quantiles, from the part of the table around them, for all metrics at once.

        From the metric's whole table where they are many, or where that part has gaps.
        """
        key, asked = wanted.tobytes(), self._asked
        if asked[0] != key:
            is_first, asked = not asked[0], (key, self._near(wanted))
            self._asked = asked
            if is_first and not np.isnan(asked[1]).any():
                self.__dict__.pop("_continued", None)  # most are asked once; with many agents the tables are large
        values: Array = asked[1][metric]
        if not np.isnan(values).any():
            return values
        if metric not in self._whole:
            at = np.unique(self._places[0][metric])
            z, slopes = (part[0] for part in self._tables(at[None], slice(metric, metric + 1)))
            rising = _rising(z)
            self._whole[metric] = z[rising], at[rising], slopes[rising]
        z, at, slopes = self._whole[metric]
        if z.size == 1:
            return np.full(wanted.shape, at[0])
        wanted = np.clip(wanted, z[0], z[-1])
        return _between(z, at, slopes, np.searchsorted(z, wanted, side="right"), wanted)

    def _near(self, wanted: Array) -> Array:
        """The same from the part of the table around them, shape (metrics, quantiles); NaN where it does not do."""
        found = np.full((len(self.metrics), wanted.size), np.nan)
        near = np.unique(np.searchsorted(QUANTILES, wanted)[:, None] + np.arange(-AROUND, AROUND))
        if 2 * near.size > QUANTILES.size or near[0] < 0 or near[-1] >= QUANTILES.size:
            return found
        at, number = (part[:, near] for part in self._places)
        for metric, (z, *parts) in enumerate(zip(*self._tables(at, slice(None)), at, number, strict=True)):
            rising = _rising(z)
            z, (slopes, own, counted) = z[rising], (part[rising] for part in parts)
            cell = np.searchsorted(z, wanted, side="right")
            if cell.min() > 0 and cell.max() < z.size and np.all(counted[cell] - counted[cell - 1] == 1):
                found[metric] = _between(z, own, slopes, cell, wanted)
        return found


def _rising(z: Array) -> Array:
    """Which values are larger than all before them."""
    return np.append(True, np.diff(np.maximum.accumulate(z)) > 0)


def _between(z: Array, at: Array, slopes: Array, cell: Array, wanted: Array) -> Array:
    """Between rows cell - 1 and cell of a table."""
    cell = np.clip(cell, 1, z.size - 1)
    x, y, slope = ((part[cell - 1], part[cell]) for part in (z, at, slopes))
    return hermite(x, y, slope, wanted)[0]


@dataclass(frozen=True)
class NewTask:
    """Distribution function and quantiles of one metric."""

    together: NewTasks
    place: int  # of this metric among them
    metric: Metric

    @property
    def moments(self) -> tuple[float, float]:
        """E t and E t² for t = p^k (pass^k) or (1-p)^k (pass@k = 1 - t)."""
        return self.together.moments[self.place]

    def below(self, y: Array) -> Array:
        """P(metric ≤ y)."""
        y = np.asarray(y, dtype=float)
        return self.together.below(self._logit(y).reshape(1, -1), self._own)[0].reshape(y.shape)

    def below_by_rho(self, y: float) -> Array:
        """P(metric ≤ y and this ρ), shape (ρ nodes,): given ρ, all metrics rise with μ."""
        return self.together.below_by_rho(self._logit(np.array([[y]])), self._own)[0][0, :, 0]

    @property
    def _own(self) -> slice:
        return slice(self.place, self.place + 1)

    def _logit(self, y: Array) -> Array:
        return logit(y) if self.metric.power else -logit(1 - y)

    def quantile(self, q: Array) -> Array:
        """Inverse of `below` at probabilities q."""
        from scipy.special import ndtri

        values = self.together.quantiles(self.place, ndtri(q).ravel()).reshape(q.shape)
        small = np.exp(-np.logaddexp(0, -values if self.metric.power else values))
        return np.asarray(small if self.metric.power else 1 - small)


def by_family(metrics: Iterable[Metric]) -> Iterator[tuple[bool, dict[int, Metric]]]:
    """Whether all attempts must succeed, and the metrics of that family by k."""
    wanted = tuple(metrics)
    for power in (False, True):
        yield power, {metric.k: metric for metric in wanted if metric.power == power}


def two_moments(weights: Array, values: Array) -> tuple[float, float]:
    """Mean and mean square of values under weights that sum to 1."""
    weighed = weights * values
    return float(weighed.sum()), float(np.vdot(weighed, values))


def logit(p: Array, out: Array | None = None) -> Array:
    """Log p/(1 - p), finite at 0 and 1."""
    rest = np.log(np.maximum(1 - p, 1e-17))
    found: Array = np.subtract(np.log(np.maximum(p, TINY, out=out), out=out), rest, out=out)
    return found


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
