"""Measures how well raters agree: raw agreement, Cohen's kappa and Krippendorff's alpha, with intervals.

The arithmetic, on plain arrays, is in `agreement_coefficients`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from agentic_bayes.checks import check_bootstrap, check_choice, check_text, check_texts
from agentic_bayes.errors import EvidenceError, InvalidArgument
from agentic_bayes.evidence import table as tables
from agentic_bayes.formatting import exact_percent, format_interval, format_number, one_line, plural
from agentic_bayes.judges import agreement_coefficients
from agentic_bayes.judges.agreement_coefficients import Level, PatternStatistic, RatingPatterns
from agentic_bayes.numerics import Floats, Ints, wilson_interval
from agentic_bayes.records.base import short
from agentic_bayes.result_table import Table, Tabular

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Agreement", "AgreementMeasure", "agreement"]

MeasureName = Literal["raw agreement", "kappa", "alpha"]
SPREAD = 1e-12  # less is rounding


@dataclass(frozen=True, slots=True)
class AgreementMeasure:
    """One measure of agreement between some raters.

    Attributes
    ----------
    measure : {"raw agreement", "kappa", "alpha"}
        Its name.
    raters : tuple of str
        The raters it compares.
    value : float
        1 is perfect agreement; for kappa and alpha, 0 is agreement by chance. NaN where it is undefined.
    lower, upper : float
        Ends of the bootstrap interval.
    standard_error : float
        Of kappa only: the analytic one for large samples, as a check of the bootstrap; else NaN.
    items : int
        Number of items that at least two of these raters rated.
    note : str
        A caveat, if there is one.
    """

    measure: MeasureName
    raters: tuple[str, ...]
    value: float
    lower: float
    upper: float
    standard_error: float
    items: int
    note: str = ""

    def __str__(self) -> str:
        who = " and ".join(self.raters) if len(self.raters) == 2 else plural(len(self.raters), "rater")
        interval = format_interval(self.lower, self.upper)
        note = f" ({self.note})" if self.note else ""
        return f"{self.measure}, {who}: {format_number(self.value)} {interval}, {plural(self.items, 'item')}{note}"


@dataclass(frozen=True, repr=False)
class Agreement(Tabular):
    """How far raters agree.

    Attributes
    ----------
    raters : tuple of str
        Their column names.
    categories : tuple of str
        The categories of their ratings, in order.
    level : {"nominal", "ordinal", "interval"}
        How alpha measures a disagreement.
    measures : tuple of AgreementMeasure
        Raw agreement and kappa of every pair, then raw agreement and alpha of all raters.
    items : int
        Number of rows of the table.
    clusters : int or None
        Number of groups of items that the bootstrap resampled as a whole; None if it resampled items.
    ci_prob : float
        Probability of the intervals.
    resamples, random_seed : int
        Number of bootstrap samples, and their seed.
    """

    raters: tuple[str, ...]
    categories: tuple[str, ...]
    level: Level
    measures: tuple[AgreementMeasure, ...]
    items: int
    clusters: int | None
    ci_prob: float
    resamples: int
    random_seed: int

    @property
    def alpha(self) -> AgreementMeasure:
        """Krippendorff's alpha of all raters."""
        return self._find("alpha", self.raters)

    def raw(self, *raters: str) -> AgreementMeasure:
        """Raw agreement.

        Parameters
        ----------
        *raters : str
            A pair of raters (default: all raters).

        Returns
        -------
        AgreementMeasure
        """
        return self._find("raw agreement", raters or self.raters)

    def kappa(self, *raters: str) -> AgreementMeasure:
        """Cohen's kappa.

        Parameters
        ----------
        *raters : str
            A pair of raters (default: the two raters, if there are only two).

        Returns
        -------
        AgreementMeasure
        """
        return self._find("kappa", raters or self.raters)

    def _find(self, measure: str, raters: Sequence[str]) -> AgreementMeasure:
        for rater in raters:
            check_choice("rater", rater, self.raters)
        for m in self.measures:
            if m.measure == measure and set(m.raters) == set(raters) and len(raters) == len(m.raters):
                return m
        raise InvalidArgument(
            f"no {measure} at level {self.level!r} for {', '.join(raters)}; "
            f"available: {'; '.join(sorted({m.measure for m in self.measures}))}"
        )

    def to_pandas(self) -> pd.DataFrame:
        """One row per measure.

        Returns
        -------
        pandas.DataFrame
            ``measure, raters, value, lower, upper, standard_error, items, ci_prob, note``.
        """
        import pandas as pd

        header = ["measure", "raters", "value", "lower", "upper", "standard_error", "items", "ci_prob", "note"]
        table = pd.DataFrame([asdict(m) for m in self.measures]).assign(ci_prob=self.ci_prob)
        return table.assign(raters=[", ".join(m.raters) for m in self.measures])[header]

    def __repr__(self) -> str:
        return one_line(f"Agreement: {self.measures[-1]}; {self._basis()}")

    def __str__(self) -> str:
        return "\n".join([*map(str, self.measures), self._basis()])

    def _basis(self) -> str:
        units = plural(self.items, "item") if self.clusters is None else plural(self.clusters, "group") + " of items"
        return (
            f"{exact_percent(self.ci_prob)} percentile bootstrap over {units}, {self.resamples:,} resamples, "
            f"seed {self.random_seed}; alpha {self.level}"
        )

    def table(self) -> Table:
        """One row per measure."""
        rows = []
        for m in self.measures:
            value = [format_number(m.value), format_interval(m.lower, m.upper)]
            rows.append([m.measure, ", ".join(m.raters), *value, f"{m.items:,}", m.note])
        header = ["measure", "raters", "value", "interval", "items", "note"]
        title = f"Agreement of {plural(len(self.raters), 'rater')}"
        return Table(title=title, header=header, rows=rows, notes=[self._basis()], noun="measure")


def agreement(
    table: pd.DataFrame | str | Path,
    *,
    raters: Sequence[str],
    level: Level = "nominal",
    categories: Sequence[object] | None = None,
    cluster: str | None = None,
    ci_prob: float = 0.95,
    resamples: int = 2000,
    random_seed: int = 0,
) -> Agreement:
    """Measure how far raters agree: any number of raters and categories; ratings may be missing.

    Parameters
    ----------
    table : pandas.DataFrame or path
        One row per item, one column per rater; CSV, TSV, JSONL or Parquet. Blank means "not rated". If all
        ratings are numbers (or true/false), equal numbers are equal ratings, however they are written.
    raters : sequence of str
        Column names of at least two raters, human or machine.
    level : {"nominal", "ordinal", "interval"}
        Whether categories are just different, ordered, or numbers at meaningful distances. At the interval level,
        where ratings are rarely equal, only alpha is given.
    categories : sequence, optional
        All categories in their order; needed for ``ordinal`` unless they are numbers.
    cluster : str, optional
        Column of groups (for example the task) whose items are alike. Groups are then resampled as a whole.
    ci_prob : float
        Probability of the intervals, in (0, 1).
    resamples : int
        Number of bootstrap samples.
    random_seed : int
        The same seed gives the same intervals, whatever the order of the rows.

    Returns
    -------
    Agreement

    Raises
    ------
    EvidenceError
        If the table is malformed; the message lists all problems.
    InvalidArgument
        If an argument is outside what is allowed.

    Notes
    -----
    Raw agreement is the share of pairs of ratings of the same item that are equal. Cohen's kappa is
    (p_o - p_e)/(1 - p_e), unweighted, over the items that both rated. Krippendorff's alpha is 1 - D_o/D_e, over items
    with at least two ratings; an item with m ratings counts each of its pairs 1/(m - 1) times. The squared
    difference of two ratings is 1 (nominal), that of their mid-ranks among all ratings (ordinal), or that of their
    values (interval).

    Intervals are percentiles of the bootstrap over items. If raters never disagreed, the bootstrap has no spread;
    the lower end is then that of Wilson's interval of the raw agreement, put into the same formula.

    References
    ----------
    Cohen (1960), Educ. Psychol. Meas. 20, 37-46, doi:10.1177/001316446002000104.
    Fleiss, Cohen and Everitt (1969), Psychol. Bull. 72, 323-327, doi:10.1037/h0028106.
    Krippendorff (2011), Computing Krippendorff's alpha-reliability, https://repository.upenn.edu/asc_papers/43.
    """
    names = check_texts("raters", raters, "at least two different column names")
    if len(names) < 2 or len(set(names)) < len(names):
        raise InvalidArgument(f"raters must be at least two different column names, got {short(raters)}")
    check_choice("level", level, get_args(Level))
    check_bootstrap(ci_prob, resamples, random_seed)
    if categories is not None and not isinstance(categories, (list, tuple)):
        raise InvalidArgument(f"categories must be a list, got {short(categories)}")
    if cluster is not None:
        check_text("cluster", cluster, "the name of a column")
    source, columns = tables.read_columns(table, error=EvidenceError)
    needed = [*names, *([] if cluster is None else [cluster])]
    tables.require_columns(source, columns, needed, hint='Name the columns: raters=["…", "…"]', error=EvidenceError)
    problems: list[str] = []
    groups = None if cluster is None else tables.labels(columns[cluster], cluster, problems)
    ratings = _code_ratings([columns[name] for name in names], names, level, categories, problems)
    tables.refuse(source, problems, error=EvidenceError)
    patterns = RatingPatterns.of(ratings.codes, groups)
    wanted = list(_measures(patterns, ratings.values, level))
    draws = patterns.bootstrap([statistic for _, _, statistic in wanted], resamples=resamples, random_seed=random_seed)
    measures = []
    for (kind, rated_by, statistic), drawn in zip(wanted, draws, strict=True):
        value = float(statistic(patterns.counts[:, None])[0])
        error = agreement_coefficients.kappa_standard_error(patterns, *rated_by) if kind == "kappa" else math.nan
        lower, upper, note = _interval(patterns, rated_by, kind, value, drawn, ci_prob)
        measures.append(
            AgreementMeasure(
                measure=kind,
                raters=tuple(names[i] for i in rated_by),
                value=value,
                lower=lower,
                upper=upper,
                standard_error=error,
                items=int(patterns.counts @ patterns.rated_by(rated_by)),
                note=note,
            )
        )
    return Agreement(
        raters=names,
        categories=ratings.categories,
        level=level,
        measures=tuple(measures),
        items=len(ratings.codes),
        clusters=None if groups is None else len(set(groups)),
        ci_prob=ci_prob,
        resamples=resamples,
        random_seed=random_seed,
    )


def _measures(
    patterns: RatingPatterns, values: Floats, level: Level
) -> Iterator[tuple[MeasureName, tuple[int, ...], PatternStatistic]]:
    """The measures of every pair of raters, then of all raters."""
    everybody = tuple(range(patterns.codes.shape[1]))
    if level != "interval":
        for pair in itertools.combinations(everybody, 2):
            yield "raw agreement", pair, agreement_coefficients.raw_agreement(patterns, pair)
            yield "kappa", pair, agreement_coefficients.kappa(patterns, *pair)
        if len(everybody) > 2:
            yield "raw agreement", everybody, agreement_coefficients.raw_agreement(patterns, everybody)
    yield "alpha", everybody, agreement_coefficients.alpha(patterns, level, values)


def _interval(
    patterns: RatingPatterns, raters: tuple[int, ...], kind: MeasureName, value: float, drawn: Floats, ci_prob: float
) -> tuple[float, float, str]:
    """Interval and note of one measure."""
    units = patterns.units(raters)
    if not units:
        return math.nan, math.nan, "no item was rated twice"
    raw = float(agreement_coefficients.raw_agreement(patterns, raters)(patterns.counts[:, None])[0])
    if math.isnan(value):
        return math.nan, math.nan, "undefined: all ratings are in one category, so chance agrees too"
    if raw == 1 or (raw == 0 and kind == "raw agreement"):
        low, high = (float(end) for end in wilson_interval(raw * units, units, ci_prob))
        if kind == "raw agreement":
            return low, high, "Wilson's interval: the bootstrap has no spread here"
        # perfect agreement: chance disagrees with probability 1 - chance; raters may still disagree in 1 - low
        chance = agreement_coefficients.chance_agreement(patterns, raters)
        lower = max(-1.0, 1 - (1 - low) / (1 - chance))
        return lower, 1.0, "lower end from Wilson's interval: the bootstrap has no spread here"
    defined = drawn[~np.isnan(drawn)]
    lost = len(drawn) - len(defined)
    note = f"undefined in {lost:,} of {len(drawn):,} resamples, which are left out" if lost else ""
    if not len(defined):
        return math.nan, math.nan, note
    if np.ptp(defined) < SPREAD:
        if raw > 0:
            return math.nan, math.nan, "no interval: the bootstrap has no spread here (does a rater never vary?)"
        high = float(wilson_interval(0, units, ci_prob)[1])
        return value, 1 - (1 - value) * (1 - high), "upper end from Wilson's interval: the bootstrap has no spread here"
    lower, upper = np.quantile(defined, [(1 - ci_prob) / 2, (1 + ci_prob) / 2])
    return float(lower), float(upper), note


@dataclass(frozen=True)
class Ratings:
    """Numbered ratings."""

    codes: Ints  # shape (items, raters); categories from 0; -1 where a rater gave none
    categories: tuple[str, ...]  # their names, in order
    # shape (categories,); their numbers or, if they are not numbers, their positions in the order
    values: Floats


def _code_ratings(
    columns: Sequence[Sequence[Any]],
    raters: Sequence[str],
    level: Level,
    categories: Sequence[object] | None,
    problems: list[str],
) -> Ratings:
    """Number the categories of ratings."""
    every = ((i, j, cell) for j, column in enumerate(columns) for i, cell in enumerate(column))
    rated = [entry for entry in every if not tables.is_blank(entry[2])]
    cells = [cell for _, _, cell in rated]
    other = next((cell for cell in (*cells, *(categories or ())) if _value(cell) is None), None)
    key_of: Callable[[object], Any] = _value if other is None else tables.label
    keys = [key_of(cell) for cell in cells]
    if level == "interval" and (other is not None or categories is not None):
        problems.append(f"level 'interval' needs numbers and no categories, got {short(other or categories)}")
    if level == "ordinal" and other is not None and categories is None:
        problems.append("level 'ordinal' needs categories=[…] in order, unless they are numbers")
    order = sorted(set(keys)) if categories is None else [key_of(category) for category in categories]
    code_of = {key: code for code, key in enumerate(order)}
    if len(code_of) < len(order):
        problems.append(f"categories must differ, got {short(categories)}")
    codes = np.full((len(columns[0]), len(raters)), -1, dtype=np.int64)
    for (i, j, cell), key in zip(rated, keys, strict=True):
        if key not in code_of:
            problems.append(f"row {i + 1}: {raters[j]} must be one of the categories or blank, got {short(cell)}")
        codes[i, j] = code_of.get(key, -1)
    values = order if other is None and categories is None else range(len(order))
    return Ratings(codes, tuple(map(tables.label, order)), np.asarray(list(values), dtype=np.float64))


def _value(cell: object) -> float | None:
    """A number, 1 or 0 for true and false, or None."""
    value = tables.number(cell)
    if value is None and tables.zero_one(cell) in (0, 1):
        return float(tables.zero_one(cell) == 1)
    return value
