"""Correlations between metrics: how often their indicators agree, with intervals that resample whole tasks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from agentic_bayes.checks import check_bootstrap, check_probability, check_type
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.numerics import Floats
from agentic_bayes.outcomes.count import IndicatorRule, check_indicator, metric_threshold
from agentic_bayes.records.base import short

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["metric_correlations"]

_CHUNK = 2_000_000  # numbers at a time


def metric_correlations(
    evidence: Evidence,
    indicators: Sequence[str] | None = None,
    *,
    threshold: float = 0.7,
    tool_threshold: float = 1.0,
    ci_prob: float = 0.95,
    resamples: int = 2000,
    random_seed: int = 0,
) -> pd.DataFrame:
    """Correlations of indicators over interactions, for every pair.

    Parameters
    ----------
    evidence : Evidence
        Scored interactions.
    indicators : sequence of str, optional
        "answer", "tools", a dimension of the tool rubric, or metrics, each cut at its own threshold. Default: the
        answer and all metrics.
    threshold, tool_threshold : float
        As for `count_outcomes`.
    ci_prob : float
        Probability of the intervals, in (0, 1).
    resamples, random_seed : int
        Of the bootstrap over tasks.

    Returns
    -------
    pandas.DataFrame
        ``first, second, both, only_first, only_second, neither, phi, lower, upper, interactions, tasks``. `phi` is
        NaN where one of the two never varies; the interval is NaN with fewer than two tasks, too. It leaves out
        resamples in which one never varies.

    Raises
    ------
    InvalidArgument
        If there are fewer than two indicators, or an argument is outside what is allowed.

    Notes
    -----
    phi = (n₁₁ n₀₀ - n₁₀ n₀₁) / √(n₁· n₀· n·₁ n·₀), over the interactions that have both verdicts: Pearson's correlation
    of the two indicators. The bootstrap resamples whole tasks, since attempts at one task resemble each other.

    References
    ----------
    Yule (1912), J. R. Stat. Soc. 75, 579-652, doi:10.2307/2340126.
    """
    import pandas as pd

    check_type("evidence", evidence, Evidence, "from assess or Evidence.read")
    for name, value in (("threshold", threshold), ("tool_threshold", tool_threshold)):
        check_probability(value, name)
    check_bootstrap(ci_prob, resamples, random_seed)
    metrics = sorted({name for row in evidence.rows for name in row.metrics})
    if indicators is not None and (isinstance(indicators, str) or not isinstance(indicators, Sequence)):
        raise InvalidArgument(f"indicators must be a list of names, got {short(indicators)}")
    names = ["answer", *metrics] if indicators is None else [check_indicator(name, evidence) for name in indicators]
    if len(set(names)) < 2:
        raise InvalidArgument(f"correlations need at least two indicators, got {', '.join(names) or 'none'}")
    tasks = sorted({row.task for row in evidence.rows})
    column = {task: i for i, task in enumerate(tasks)}
    place = np.array([column[row.task] for row in evidence.rows])
    verdicts = {name: _verdicts(evidence, name, threshold, tool_threshold) for name in names}
    rng = np.random.default_rng(random_seed)
    share = np.full(len(tasks), 1 / len(tasks))
    tables: dict[tuple[str, str], Floats] = {}
    for first, second in itertools.combinations(dict.fromkeys(names), 2):
        a, b = verdicts[first], verdicts[second]
        known = ~np.isnan(a) & ~np.isnan(b)
        kinds = (2 * a[known] + b[known]).astype(np.int64)  # 3 both, 2 only the first, 1 only the second, 0 neither
        tables[first, second] = np.zeros((len(tasks), 4))
        np.add.at(tables[first, second], (place[known], kinds), 1)
    resampled: dict[tuple[str, str], list[Floats]] = {pair: [] for pair in tables}
    step = max(1, _CHUNK // len(tasks))
    for start in range(0, resamples, step):
        weights = rng.multinomial(len(tasks), share, size=min(step, resamples - start)).astype(np.float64)
        for pair, table in tables.items():
            resampled[pair].append(_phi(weights @ table))
    rows = []
    for (first, second), table in tables.items():
        total, drawn = table.sum(axis=0), np.concatenate(resampled[first, second])
        defined = drawn[~np.isnan(drawn)]
        lower = upper = np.nan
        if defined.size and (table.sum(axis=1) > 0).sum() > 1:
            lower, upper = np.quantile(defined, [(1 - ci_prob) / 2, (1 + ci_prob) / 2])
        neither, only_second, only_first, both = (int(count) for count in total)
        rows.append(
            {
                "first": first,
                "second": second,
                "both": both,
                "only_first": only_first,
                "only_second": only_second,
                "neither": neither,
                "phi": float(_phi(total[None, :])[0]),
                "lower": float(lower),
                "upper": float(upper),
                "interactions": int(total.sum()),
                "tasks": int((table.sum(axis=1) > 0).sum()),
            }
        )
    return pd.DataFrame(rows)


def _verdicts(evidence: Evidence, name: str, threshold: float, tool_threshold: float) -> Floats:
    """1, 0, or NaN, interaction by interaction."""
    rule = IndicatorRule(name, threshold, tool_threshold, metric_threshold(evidence, name))
    known = {"pass": 1.0, "fail": 0.0}
    return np.array([known.get(rule.verdict(row) or "", np.nan) for row in evidence.rows])


def _phi(counts: Floats) -> Floats:
    """The coefficient of tables of (neither, only second, only first, both)."""
    neither, second, first, both = counts.T
    with np.errstate(invalid="ignore", divide="ignore"):
        margins = (both + first) * (second + neither) * (both + second) * (first + neither)
        found = np.where(margins > 0, (both * neither - first * second) / np.sqrt(margins), np.nan)
    return np.asarray(found)
