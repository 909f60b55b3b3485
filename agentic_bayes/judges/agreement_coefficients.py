"""Cohen's kappa, Krippendorff's alpha and their kin on plain arrays: distinct patterns of ratings, and how often each.

A resample of 10,000 items is then one vector of counts, and a statistic is a few products with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, assert_never

import numpy as np
from numpy.typing import NDArray

from agentic_bayes.numerics import Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Level = Literal["nominal", "ordinal", "interval"]

# counts of the patterns, shape (patterns, resamples) → values, shape (resamples,); NaN where undefined
PatternStatistic = Callable[[Floats], Floats]

_HELD = 200_000  # numbers held at a time in a bootstrap, few enough for the cache: several times quicker


@dataclass(frozen=True)
class RatingPatterns:
    """Distinct rows of ratings."""

    codes: Ints  # shape (patterns, raters); categories from 0; -1 where a rater gave none
    counts: Floats  # shape (patterns,); how many items show each
    # shape (groups, patterns); how many items of each group show each; None: the bootstrap resamples items, not groups
    groups: csr_array[Any] | None = None

    @classmethod
    def of(cls, codes: Ints, groups: Sequence[str] | None = None) -> RatingPatterns:
        """The patterns of items."""
        distinct, inverse, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
        if groups is None:
            return cls(distinct, counts.astype(np.float64))
        number = np.unique(np.asarray(groups, dtype=object).astype(str), return_inverse=True)[1]
        table = _sparse(number, inverse.reshape(-1), np.ones(len(codes)), (int(number.max()) + 1, len(distinct)))
        return cls(distinct, counts.astype(np.float64), table)

    @property
    def ratings(self) -> Ints:
        """How many ratings each pattern holds."""
        return np.asarray((self.codes >= 0).sum(axis=1), dtype=np.int64)

    @property
    def categories(self) -> int:
        """How many categories there are."""
        return int(self.codes.max(initial=0)) + 1

    def rated_by(self, raters: Sequence[int]) -> NDArray[np.bool_]:
        """Which patterns hold ratings by at least two of these raters."""
        both: NDArray[np.bool_] = (self.codes[:, list(raters)] >= 0).sum(axis=1) >= 2
        return both

    def units(self, raters: Sequence[int]) -> int:
        """How many independent units (items, or groups) hold ratings by at least two of these raters."""
        rated = self.rated_by(raters).astype(np.float64)
        return int(self.counts @ rated if self.groups is None else np.count_nonzero(self.groups @ rated))

    def bootstrap(self, statistics: Sequence[PatternStatistic], *, resamples: int, random_seed: int) -> list[Floats]:
        """Values of the statistics in resamples of the items, or of the groups."""
        chunks = [[statistic(weights) for statistic in statistics] for weights in self._weights(resamples, random_seed)]
        return [np.concatenate(values) for values in zip(*chunks, strict=True)]

    def _weights(self, resamples: int, random_seed: int) -> Iterator[Floats]:
        rng = np.random.default_rng(random_seed)
        counts = self.counts if self.groups is None else np.ones(self.groups.shape[0])
        at_once = max(1, _HELD // len(counts))
        for start in range(0, resamples, at_once):
            drawn = _drawn(counts, min(at_once, resamples - start), rng)
            yield drawn if self.groups is None else self.groups.T @ drawn


def _drawn(counts: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """How often each pattern is drawn in a sample of as many items as there are; shape (len(counts), resamples)."""
    size = int(counts.sum())
    if len(counts) < size / 8:  # few patterns: draw their counts at once; else drawing item by item is quicker
        drawn = rng.multinomial(size, counts / size, size=resamples)
    else:
        items = np.repeat(np.arange(len(counts)), counts.astype(np.int64))
        place = items[rng.integers(size, size=(resamples, size))] + len(counts) * np.arange(resamples)[:, None]
        drawn = np.bincount(place.reshape(-1), minlength=len(counts) * resamples).reshape(resamples, -1)
    return np.ascontiguousarray(drawn.T, dtype=np.float64)


def raw_agreement(patterns: RatingPatterns, raters: Sequence[int]) -> PatternStatistic:
    """Share of the pairs of ratings of one item that are equal."""
    pairs, equal = np.zeros(len(patterns.counts)), np.zeros(len(patterns.counts))
    for i, j in itertools.combinations(raters, 2):
        first, second = patterns.codes[:, i], patterns.codes[:, j]
        pairs += (first >= 0) & (second >= 0)
        equal += (first >= 0) & (first == second)
    return lambda weights: _ratio(equal @ weights, pairs @ weights)


def chance_agreement(patterns: RatingPatterns, raters: Sequence[int]) -> float:
    """How often two ratings drawn from all of them, with replacement, are equal."""
    codes = patterns.codes[:, list(raters)]
    row, column = np.nonzero((codes >= 0) & patterns.rated_by(raters)[:, None])
    share = np.bincount(codes[row, column], weights=patterns.counts[row])
    return float((share @ share) / share.sum() ** 2)


def kappa(patterns: RatingPatterns, first: int, second: int) -> PatternStatistic:
    """Cohen's kappa of two raters."""
    a, b = patterns.codes[:, first], patterns.codes[:, second]
    both = (a >= 0) & (b >= 0)
    rows = np.flatnonzero(both)
    shape = (len(both), patterns.categories)
    by_first, by_second = (_sparse(rows, code[rows], np.ones(len(rows)), shape) for code in (a, b))
    equal = (both & (a == b)).astype(np.float64)

    def statistic(weights: Floats) -> Floats:
        total = both @ weights
        chance = _ratio(((by_first.T @ weights) * (by_second.T @ weights)).sum(axis=0), total**2)
        return _ratio(_ratio(equal @ weights, total) - chance, 1 - chance)

    return statistic


def kappa_standard_error(patterns: RatingPatterns, first: int, second: int) -> float:
    """Standard error of Cohen's kappa for large samples (Fleiss, Cohen and Everitt, 1969, doi:10.1037/h0028106)."""
    both = (patterns.codes[:, first] >= 0) & (patterns.codes[:, second] >= 0)
    a, b, n = patterns.codes[both, first], patterns.codes[both, second], patterns.counts[both].sum()
    value = float(kappa(patterns, first, second)(patterns.counts[:, None])[0])
    if not np.isfinite(value):
        return float("nan")
    p = patterns.counts[both] / n
    by_first, by_second = (np.bincount(code, weights=p, minlength=patterns.categories) for code in (a, b))
    chance = float(by_first @ by_second)
    equal = a == b
    diagonal = p[equal] @ (1 - (by_first + by_second)[a[equal]] * (1 - value)) ** 2
    off_diagonal = (1 - value) ** 2 * (p[~equal] @ (by_second[a[~equal]] + by_first[b[~equal]]) ** 2)
    variance = diagonal + off_diagonal - (value - chance * (1 - value)) ** 2
    return float(np.sqrt(max(variance, 0.0) / n) / (1 - chance))


def alpha(patterns: RatingPatterns, level: Level, values: Floats) -> PatternStatistic:
    """Krippendorff's alpha of all raters.

    Notes
    -----
    With n_c ratings of category c among the n of items that have at least two, and o_ck the ordered pairs (c, k) within
    items, of which an item with m ratings counts each 1/(m - 1) times, D_o = Σ o_ck d²_ck / n and
    D_e = Σ n_c n_k d²_ck / (n (n - 1)).
    """
    paired = np.where(patterns.ratings >= 2, patterns.ratings, 0).astype(np.float64)
    by_category = _by_category(patterns)
    pairs = _UnequalPairs.of(patterns)

    def nominal(weights: Floats) -> Floats:
        total = paired @ weights
        expected = total**2 - ((by_category.T @ weights) ** 2).sum(axis=0)
        return _one_minus(pairs.per_pattern() @ weights, expected, total)

    def ordinal(weights: Floats) -> Floats:
        total, marginal = paired @ weights, by_category.T @ weights
        rank = np.cumsum(marginal, axis=0) - marginal / 2 - total / 2  # 0 on average
        observed = ((pairs.kinds.T @ weights) * (rank[pairs.low] - rank[pairs.high]) ** 2).sum(axis=0)
        return _one_minus(observed, 2 * total * (marginal * rank**2).sum(axis=0), total)

    def interval(weights: Floats) -> Floats:
        total, first, second = paired @ weights, (by_category @ at) @ weights, (by_category @ at**2) @ weights
        observed = pairs.per_pattern((at[pairs.low] - at[pairs.high]) ** 2) @ weights
        spread = total * second - first**2
        # equal values have no spread; rounding must not create one
        return _one_minus(observed, np.where(spread > 1e-12 * total * second, 2 * spread, 0.0), total)

    match level:
        case "nominal":
            return nominal
        case "ordinal":
            return ordinal
        case "interval":
            at = values - values.mean() if len(values) else np.zeros(1)
            return interval
        case _:
            assert_never(level)


def _one_minus(observed: Floats, expected: Floats, total: Floats) -> Floats:
    return 1 - _ratio(observed * (total - 1), expected)


@dataclass(frozen=True)
class _UnequalPairs:
    """Pairs of different categories within items: `kinds` says how much each kind (low, high) counts per pattern."""

    low: Ints
    high: Ints
    kinds: csr_array[Any]

    @classmethod
    def of(cls, patterns: RatingPatterns) -> _UnequalPairs:
        rows, keys = [], []
        for i, j in itertools.combinations(range(patterns.codes.shape[1]), 2):
            a, b = patterns.codes[:, i], patterns.codes[:, j]
            row = np.flatnonzero((a >= 0) & (b >= 0) & (a != b))
            rows.append(row)
            keys.append(np.minimum(a, b)[row] * patterns.categories + np.maximum(a, b)[row])
        row = np.concatenate(rows)
        distinct, number = np.unique(np.concatenate(keys), return_inverse=True)
        twice = 2 / (patterns.ratings[row] - 1)  # in both orders
        table = _sparse(row, number, twice, (len(patterns.counts), len(distinct)))
        return cls(distinct // patterns.categories, distinct % patterns.categories, table)

    def per_pattern(self, squared_difference: Floats | None = None) -> Floats:
        """The total difference of a pattern's pairs."""
        difference = np.ones(len(self.low)) if squared_difference is None else squared_difference
        return np.asarray(self.kinds @ difference, dtype=np.float64)


def _by_category(patterns: RatingPatterns) -> csr_array[Any]:
    """Ratings per pattern and category, of the patterns with at least two."""
    row, column = np.nonzero((patterns.codes >= 0) & (patterns.ratings >= 2)[:, None])
    shape = (len(patterns.counts), patterns.categories)
    return _sparse(row, patterns.codes[row, column], np.ones(len(row)), shape)


def _sparse(row: Ints, column: Ints, value: Floats, shape: tuple[int, int]) -> csr_array[Any]:
    from scipy.sparse import csr_array

    return csr_array((value, (row, column)), shape=shape)


def _ratio(a: Floats, b: Floats) -> Floats:
    """a/b; NaN where b is not above 0."""
    positive = b > 0
    return np.where(positive, a / np.where(positive, b, 1.0), np.nan)
