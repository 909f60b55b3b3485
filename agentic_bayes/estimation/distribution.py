"""The distribution of one number: what every method gives, and all that summaries, gates, comparisons and plots ask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, assert_never

import numpy as np

from agentic_bayes import numerics
from agentic_bayes.errors import EstimateError, InvalidArgument
from agentic_bayes.estimation.arithmetic import apply_metric, mean_of_metric, sd_of_metric
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array

CIKind = Literal["eti", "hdi"]
STATISTICS = ("mean", "sd", "median", "lower", "upper")


@dataclass(frozen=True, slots=True)
class Stats:
    """Mean, sd, median and interval; floats, or arrays of shape (tasks,)."""

    mean: Any  # NaN where undefined
    sd: Any  # the standard error for the frequentist method
    median: Any
    lower: Any
    upper: Any
    n_tasks: int = 1  # how many tasks inform the number
    note: str = ""  # what a reader must know, or empty


@dataclass(frozen=True, kw_only=True)
class Distribution(ABC):
    """The posterior of one number, or of one number per task (then every value is an array of shape (tasks,))."""

    mean: Any
    sd: Any
    n_tasks: int = 1  # how many tasks inform the number
    note: str = ""  # what a reader must know, or empty

    @abstractmethod
    def quantile(self, q: Array) -> Array:
        """Quantiles at probabilities q, shape (q,) or (q, tasks)."""

    @abstractmethod
    def draws(self) -> Array:
        """Posterior draws, shape (draws,) or (draws, tasks)."""

    @abstractmethod
    def _narrowest(self, prob: float) -> tuple[Any, Any]:
        """Ends of the highest-density interval."""

    def interval(self, prob: float, kind: CIKind) -> tuple[Any, Any]:
        """Ends of the equal-tailed or the highest-density interval."""
        match kind:
            case "eti":
                lower, upper = self.quantile(np.array([(1 - prob) / 2, (1 + prob) / 2]))
                return lower, upper
            case "hdi":
                return self._narrowest(prob)
            case _:
                assert_never(kind)

    def at_least(self, bar: float) -> float:
        """Probability that the number is at least `bar`."""
        return float(np.mean(self.draws() >= bar))

    def below_in_parts(self, bar: float) -> Array:
        """Probability below `bar` in each part of the posterior within which an agent's metrics rise together.

        Here a draw is a part. The probability that either of two metrics lies below its bar is the sum over parts of
        the larger of the two.
        """
        draws = self.draws()
        return np.where(draws < bar, 1 / len(draws), 0.0)

    def density(self, points: int = 400) -> tuple[Array, Array] | None:
        """Points and the density there; None where only draws are known."""
        return None

    def stats(self, prob: float, kind: CIKind) -> Stats:
        """Mean, sd, median and interval."""
        if kind == "eti":
            lower, median, upper = self.quantile(np.array([(1 - prob) / 2, 0.5, (1 + prob) / 2]))
        else:
            (median,), (lower, upper) = self.quantile(np.array([0.5])), self.interval(prob, kind)
        return Stats(self.mean, self.sd, median, lower, upper, self.n_tasks, self.note)


@dataclass(frozen=True, kw_only=True)
class Drawn(Distribution):
    """Known by its draws; mean and sd may be known better than the draws tell."""

    values: Array  # shape (draws,) or (draws, groups)
    place: Array | None = None  # shape (tasks,); the group of each task

    @classmethod
    def of(cls, values: Array, *, mean: Any = None, n_tasks: int = 1) -> Drawn:
        """From draws of one number."""
        known = float(values.mean()) if mean is None else mean
        return cls(mean=known, sd=float(values.std(ddof=1)), values=values, n_tasks=n_tasks)

    def _by_task(self, values: Array) -> Array:
        return values if self.place is None else values[..., self.place]

    def quantile(self, q: Array) -> Array:
        """Quantiles of the draws: those of `numpy.quantile`, in a third of its time."""
        q = np.asarray(q, dtype=np.float64)
        if not np.all((q >= 0) & (q <= 1)):
            raise InvalidArgument(f"probabilities must lie in [0, 1], got {q}")
        rank, ordered = q * (len(self.values) - 1), np.sort(self.values, axis=0)
        below = np.minimum(rank.astype(np.int64), len(ordered) - 2)
        low, width = ordered[below], ordered[below + 1] - ordered[below]
        share = (rank - below)[(..., *(None,) * (ordered.ndim - 1))]
        return self._by_task(np.where(share < 0.5, low + width * share, ordered[below + 1] - width * (1 - share)))

    def draws(self) -> Array:
        """The draws."""
        return self._by_task(self.values)

    def _narrowest(self, prob: float) -> tuple[Any, Any]:
        if self.place is None:
            return numerics.hdi_from_draws(self.values, prob)
        ends = np.array([numerics.hdi_from_draws(column, prob) for column in self.values.T])
        return self._by_task(ends[:, 0]), self._by_task(ends[:, 1])


@dataclass(frozen=True, kw_only=True)
class Weighted(Distribution):
    """Known by weighted points, of which some are draws that belong together with those of other numbers."""

    values: Array  # shape (points,) or (points, groups)
    weight: Array  # shape (points,); sums to 1
    picked: Array  # shape (draws,); the points that equally weighted draws are
    place: Array | None = None  # shape (tasks,); the group of each task

    @classmethod
    def of(
        cls, values: Array, weight: Array | None, picked: Array, *, place: Array | None = None, n_tasks: int = 1
    ) -> Weighted:
        """With weighted mean and sd."""
        if weight is None:
            weight = np.full(len(values), 1 / len(values))
        mean = np.clip(weight @ values, values.min(axis=0), values.max(axis=0))  # weights sum to 1 but for rounding
        sd = np.sqrt(weight @ (values - mean) ** 2)
        if place is not None:
            mean, sd = mean[place], sd[place]
        return cls(mean=mean, sd=sd, values=values, weight=weight, picked=picked, place=place, n_tasks=n_tasks)

    @cached_property
    def _sorted(self) -> list[tuple[Array, Array]]:
        """Sorted values and the weight below the middle of each, by group."""
        columns = self.values[:, None] if self.place is None else self.values
        found = []
        for column in columns.T:
            order = np.argsort(column)
            weight = self.weight[order]
            found.append((column[order], np.cumsum(weight) - weight / 2))
        return found

    def _by_group(self, statistic: Callable[[Array, Array], Any]) -> Array:
        """A statistic of sorted values and the weight below the middle of each, by task."""
        found = [statistic(*one) for one in self._sorted]
        return np.array(found[0]) if self.place is None else np.stack(found, axis=-1)[..., self.place]

    def quantile(self, q: Array) -> Array:
        """Weighted quantiles, interpolated between points."""
        return self._by_group(lambda values, below: np.interp(q, below, values))

    def draws(self) -> Array:
        """The picked points."""
        drawn = self.values[self.picked]
        return drawn if self.place is None else drawn[..., self.place]

    def at_least(self, bar: float) -> float:
        """Weight of the points at or above `bar`."""
        return float(np.clip(self.weight[self.values >= bar].sum(), 0, 1))

    def below_in_parts(self, bar: float) -> Array:
        """A point is a part."""
        return np.where(self.values < bar, self.weight, 0.0)

    def _narrowest(self, prob: float) -> tuple[Any, Any]:
        def ends(values: Array, below: Array) -> Array:
            last = np.searchsorted(below, below + prob)
            first = np.flatnonzero(last < values.size)
            widths = values[last[first]] - values[first]
            at = first[np.argmin(widths)] if first.size else 0
            return np.array([values[at], values[last[at]] if first.size else values[-1]])

        lower, upper = self._by_group(ends)
        return lower, upper


@dataclass(frozen=True, kw_only=True)
class Tabulated(Distribution):
    """Known by its distribution function and its quantiles, both without Monte-Carlo error."""

    below: Callable[[Array], Array]  # the distribution function
    inverse: Callable[[Array], Array]
    draw: Callable[[], Array]
    smooth: bool = True  # whether the distribution function has a density worth drawing
    parts: Callable[[float], Array] | None = None  # the distribution function in each part; None where only draws know

    def quantile(self, q: Array) -> Array:
        """Inverse of the distribution function."""
        return self.inverse(q)

    def draws(self) -> Array:
        """Posterior draws, shape (draws,)."""
        return self.draw()

    def _narrowest(self, prob: float) -> tuple[float, float]:
        return numerics.hdi_from_quantiles(self.inverse, prob, points=41, rounds=3)

    def at_least(self, bar: float) -> float:
        """Probability that the number is at least `bar`."""
        return float(np.clip(1 - self.below(np.array([bar]))[0], 0, 1)) if bar > 0 else 1.0

    def below_in_parts(self, bar: float) -> Array:
        """A value of ρ is a part."""
        return super().below_in_parts(bar) if self.parts is None else self.parts(bar)

    def density(self, points: int = 400) -> tuple[Array, Array] | None:
        """The derivative of the distribution function, without a tail of 1e-4 on each side."""
        if not self.smooth:
            return None
        low, high = self.inverse(np.array([1e-4, 1 - 1e-4]))
        edges = np.linspace(low, high, points + 1)
        return (edges[:-1] + edges[1:]) / 2, np.diff(self.below(edges)) / np.diff(edges)


@dataclass(frozen=True, kw_only=True)
class OfBeta(Distribution):
    """pass@k or pass^k of p ~ Beta(a, b): since both rise with p, quantiles of p map to quantiles of the metric."""

    metric: Metric
    a: Array  # shape (); or (tasks,)
    b: Array
    draw: Callable[[], Array]

    @classmethod
    def of(cls, metric: Metric, a: Any, b: Any, draw: Callable[[], Array], *, n_tasks: int = 1) -> OfBeta:
        """With mean and sd in closed form."""
        a, b = np.asarray(a), np.asarray(b)
        mean, sd = mean_of_metric(a, b, metric)[()], sd_of_metric(a, b, metric)[()]
        return cls(mean=mean, sd=sd, metric=metric, a=a, b=b, draw=draw, n_tasks=n_tasks)

    def quantile(self, q: Array) -> Array:
        """The metric at quantiles of p."""
        shape = (-1, *(1,) * self.a.ndim)
        return apply_metric(numerics.beta_quantile(q.reshape(shape), self.a, self.b), self.metric)

    def draws(self) -> Array:
        """Posterior draws."""
        return self.draw()

    def at_least(self, bar: float) -> float:
        """Probability that the metric of one number is at least `bar`, without draws."""
        from scipy.special import betainc

        # the metric reaches the bar where p reaches its inverse; the smaller of p and 1 - p keeps its digits
        if self.metric.power:
            failing = -np.expm1(np.log(bar) / self.metric.k) if bar > 0 else 1.0
        else:
            failing = np.exp(np.log1p(-bar) / self.metric.k) if bar < 1 else 0.0
        return float(betainc(self.b, self.a, failing))

    def below_in_parts(self, bar: float) -> Array:
        """All of it is one part."""
        return np.array([1 - self.at_least(bar)])

    def _narrowest(self, prob: float) -> tuple[Any, Any]:
        pairs, place = np.unique(np.stack([self.a, self.b]).reshape(2, -1), axis=1, return_inverse=True)
        ends = [numerics.hdi_from_quantiles(replace(self, a=a, b=b).quantile, prob) for a, b in pairs.T]
        lower, upper = np.array(ends).T
        return lower[place].reshape(self.a.shape)[()], upper[place].reshape(self.a.shape)[()]


@dataclass(frozen=True, kw_only=True)
class PointEstimate(Distribution):
    """An estimate with a confidence interval: not a distribution, so it has neither quantiles nor draws."""

    ends: Callable[[float], tuple[Any, Any]]  # confidence → ends of the interval

    def interval(self, prob: float, kind: CIKind) -> tuple[Any, Any]:
        """Ends of the confidence interval, which holds the estimate."""
        lower, upper = self.ends(prob)
        return np.minimum(lower, self.mean)[()], np.maximum(upper, self.mean)[()]

    def stats(self, prob: float, kind: CIKind) -> Stats:
        """Estimate, standard error and confidence interval; there is no median."""
        median = np.full(np.shape(self.mean), np.nan)[()]
        return Stats(self.mean, self.sd, median, *self.interval(prob, kind), self.n_tasks, self.note)

    def quantile(self, q: Array) -> Array:
        """There is no posterior to take quantiles of."""
        return self.draws()

    def draws(self) -> Array:
        """There is no posterior to draw from."""
        raise EstimateError(
            "the frequentist method has no posterior: use the hierarchical, crossed or conjugate method for draws, "
            "comparisons and tiers"
        )

    def at_least(self, bar: float) -> float:
        """There is no posterior probability."""
        return float(self.draws().mean())

    def _narrowest(self, prob: float) -> tuple[Any, Any]:
        return self.interval(prob, "eti")


@dataclass(frozen=True, kw_only=True)
class NoDistribution(PointEstimate):
    """What is known of an agent without a scored trial, where a number needs one: nothing."""

    mean: float = float("nan")
    sd: float = float("nan")
    n_tasks: int = 0
    note: str = "nothing was scored"
    ends: Callable[[float], tuple[Any, Any]] = lambda prob: (float("nan"), float("nan"))
