"""The verdict and the rates at other thresholds of the judge's score, each from its own fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.decisions.compare import comparison
from agentic_bayes.decisions.gate import gate, outcome_words
from agentic_bayes.errors import AgenticBayesError
from agentic_bayes.estimation.estimate import Estimate, estimate_as
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.formatting import Metric, plural
from agentic_bayes.outcomes.count import count_outcomes
from agentic_bayes.reports.html.opening import (
    AgentRate,
    Rows,
    attempts_words,
    headline,
    main_estimator,
    rate_groups,
    shown_agents,
)
from agentic_bayes.reports.html.question import ReportQuestion, second_metric
from agentic_bayes.reports.tables import RowKey
from agentic_bayes.reports.thresholds import THRESHOLDS, estimates_at

if TYPE_CHECKING:
    import xarray as xr

MOST_SAID = 2  # comparisons that a verdict is made of
CUT_BY_SCORE = ("answer", "joint")  # indicators that a threshold of the answer's score is part of


@dataclass(frozen=True, slots=True)
class ThresholdRow:
    """What a page says at one threshold."""

    threshold: str
    is_own: bool
    """Whether it is the threshold of all other numbers of the page."""
    verdict: str
    """In a sentence."""
    words: tuple[str, ...]
    """The same without the names, in short."""
    rates: tuple[tuple[AgentRate, ...], ...]
    """Agent by agent, as on the first screen."""


@dataclass(frozen=True, slots=True)
class ThresholdRows:
    """What a page says at each threshold."""

    rows: tuple[ThresholdRow, ...]
    agents: tuple[int, ...]
    metrics: tuple[str, ...]
    """What the rates of an agent are, in words."""
    matters: bool
    """Whether any of the thresholds changes the verdict of a trial."""
    same: str = ""
    """Where none does: why, and what a full score would change."""

    @property
    def own(self) -> int:
        """The row of the page's own threshold."""
        return next(i for i, row in enumerate(self.rows) if row.is_own)


def threshold_rows(est: Estimate, asked: ReportQuestion, evidence: Evidence | None) -> ThresholdRows | None:
    """The page's answer at each threshold; None where nothing was scored on a scale, or other scores were counted."""
    attrs = est.outcomes.attrs
    own = attrs.get("threshold")
    if evidence is None or not isinstance(own, float) or attrs["indicator"] not in CUT_BY_SCORE:
        return None
    # a judge's error rates are of its verdicts at one threshold
    if est.settings.corrects_judge or {row.answer_score for row in evidence.rows} <= {None, 0.0, 1.0}:
        return None
    counting: dict[str, Any] = {
        name: attrs[name] for name in ("unit", "indicator", "tool_threshold", "errors") if name in attrs
    }
    counting["agents"] = "together" if est.agents == ("all",) else "separate"

    def fit(outcomes: xr.Dataset) -> Estimate:
        counted = _like(outcomes, est)
        return est if _same(counted, est, "successes", "trials") else estimate_as(counted, est.settings)

    cuts = sorted({*THRESHOLDS, own})
    try:
        fits = dict(estimates_at(evidence, cuts, fit, counting))
    except (AgenticBayesError, KeyError):  # KeyError: other agents or tasks
        return None
    if fits[own] is not est:
        return None
    try:
        rows = tuple(_row(fits[cut], asked, est, cut) for cut in cuts)
    except AgenticBayesError:
        return None
    metrics = tuple(attempts_words(metric) for metric in _metrics(est, asked))
    agents = tuple(map(est.agent_index, shown_agents(est, asked)))
    if any(one is not est for one in fits.values()):
        return ThresholdRows(rows, agents, metrics, matters=True)
    full = count_outcomes(evidence, threshold=1.0, **counting)
    return ThresholdRows(rows, agents, metrics, matters=False, same=_same_words(evidence, est, cuts, full))


def _same_words(evidence: Evidence, est: Estimate, cuts: Sequence[float], full: xr.Dataset) -> str:
    """Why no threshold changes a verdict, and how many trials would fail if nothing but a full score passed."""
    low, high, unit = cuts[0], cuts[-1], est.outcomes.attrs["unit"]
    between = any(row.answer_score is not None and low <= row.answer_score < high for row in evidence.rows)
    why = f"no {unit} depends on an answer that scored in between" if between else "no answer scored in between"
    passed = int(est.counts.successes.sum())
    lost = passed - int(_like(full, est)["successes"].values.sum())
    above = f"Above {high:g}, up to {lost:,} of {plural(passed, f'passed {unit}')} would fail." if lost else ""
    return f"Any pass mark from {low:g} to {high:g} gives the same result, because {why}. {above}".strip()


def _like(outcomes: xr.Dataset, est: Estimate) -> xr.Dataset:
    """Counts of the estimate's agents and tasks, in its order and with its groups."""
    own = est.outcomes
    chosen = outcomes.sel(agent=own["agent"].values, task=own["task"].values)
    return chosen.assign_coords({name: own[name] for name in own.coords if name not in chosen.coords})


def _same(counted: xr.Dataset, est: Estimate, *names: str) -> bool:
    return all(np.array_equal(counted[name].values, est.outcomes[name].values) for name in names)


def _metrics(est: Estimate, asked: ReportQuestion) -> Sequence[Metric]:
    return [metric for metric in (asked.metric, second_metric(est, asked.metric)) if metric is not None]


def _row(fit: Estimate, asked: ReportQuestion, est: Estimate, threshold: float) -> ThresholdRow:
    own = replace(asked if fit is est else _asked_of(fit, asked), lead=None)
    rows = _rates(fit, asked)
    words = [f"{one.verdict} {attempts_words(Metric(one.metric))}" for one in own.comparisons[:MOST_SAID]]
    if own.gate is not None:
        words.insert(0, f"gate: {outcome_words(own.gate)}")
    return ThresholdRow(
        threshold=f"{threshold:g}",
        is_own=threshold == est.outcomes.attrs["threshold"],
        verdict=headline(fit, own, rows)[0],
        words=tuple(words),
        rates=tuple(zip(*(group.rates for group in rate_groups(fit, own, rows)), strict=True)),
    )


def _asked_of(fit: Estimate, asked: ReportQuestion) -> ReportQuestion:
    """The same question, of another fit."""
    question: dict[str, Any] = {"estimand": asked.estimand}
    comparisons = tuple(
        comparison(fit, one.agent, baseline=one.baseline, metric=one.metric, task_by_task=False, **question)
        for one in asked.comparisons[:MOST_SAID]
    )
    bar = asked.gate
    if bar is not None:
        how: dict[str, Any] = {"at_least": bar.at_least, "confidence": bar.confidence, "metric": bar.metric}
        bar = gate(fit, bar.agent, **how, **question)
    return replace(asked, comparisons=comparisons, gate=bar)


def _rates(fit: Estimate, asked: ReportQuestion) -> Rows:
    """The rows of a summary that the first screen has."""
    s, rows = fit.settings, dict[RowKey, dict[str, Any]]()
    for agent in shown_agents(fit, asked):
        index = fit.agent_index(agent)
        flags = "" if fit.counts.scored[index].any() else "no_data"
        for metric in _metrics(fit, asked):
            stats = fit.posterior.stats(index, asked.estimand, metric, s.ci_prob, s.ci_kind)
            numbers: dict[str, Any] = {name: float(getattr(stats, name)) for name in ("mean", "lower", "upper")}
            rows[agent, asked.estimand, str(metric), main_estimator(fit)] = {
                **numbers,
                "note": stats.note,
                "flags": flags,
            }
    return rows
