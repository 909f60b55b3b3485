"""What decisions share: an answer in a sentence, one line for a console, and plain values for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np

from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import (
    Metric,
    format_number,
    format_points,
    format_points_range,
    interval_words,
    json_ready,
    one_line,
)
from agentic_bayes.numerics import Array
from agentic_bayes.result_table import Tabular


@dataclass(frozen=True, repr=False)
class Decision(Tabular):
    """A result whose `str` is the answer in a sentence."""

    derived: ClassVar[tuple[str, ...]] = ()  # properties that `to_dict` holds, too

    def __repr__(self) -> str:
        return one_line(f"{type(self).__name__}: {self}")

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON values: its fields except draws, what follows from them, and the sentence."""
        values = asdict(self)
        shown = {f.name: values[f.name] for f in fields(self) if f.repr}
        following = {name: getattr(self, name) for name in self.derived}
        return dict(json_ready(shown | following | {"sentence": str(self)}))


def share_above_zero(differences: Array) -> Array:
    """Share of the draws, along the first axis, that are above 0; equal ones count for half."""
    return np.asarray(np.mean(differences > 0, axis=0) + np.mean(differences == 0, axis=0) / 2)


def summarised(est: Estimate, agent: str, metric: Metric, estimand: Estimand) -> tuple[float, float, float]:
    """Mean and interval of a metric of an agent."""
    distribution = est.distribution(agent, metric=metric, estimand=estimand)
    stats = distribution.stats(est.settings.ci_prob, est.settings.ci_kind)
    return float(stats.mean), float(stats.lower), float(stats.upper)


def described(
    numbers: tuple[float, float, float], est: Estimate, agent: str, metric: Metric, estimand: Estimand
) -> dict[str, Any]:
    """A mean with its interval, and what they were estimated from, under the names that results give them."""
    mean, lower, upper = numbers
    index, settings, attrs = est.agent_index(agent), est.settings, est.outcomes.attrs
    return {
        "mean": mean,
        "lower": lower,
        "upper": upper,
        "metric": str(metric),
        "estimand": estimand,
        "ci_prob": settings.ci_prob,
        "ci_kind": settings.ci_kind,
        "method": est.method.name,
        "unit": str(attrs["unit"]),
        "indicator": str(attrs["indicator"]),
        "n_tasks": int(est.counts.scored[index].sum()),
    }


def basis_words(values: Mapping[str, Any], *, paired: str = "") -> str:
    """From what a result was estimated, and what its interval is."""
    return (
        f"{values['method']}; {paired}unit {values['unit']}, indicator {values['indicator']}; "
        f"estimand {values['estimand']}; {interval_words(values['ci_prob'], values['ci_kind'])}"
    )


def remarks(note: str, flags: Iterable[str] = ()) -> str:
    """What follows a sentence: flags in brackets, and a note in parentheses."""
    marks = ", ".join(flags)
    return (f" [{marks}]" if marks else "") + (f" ({note})" if note else "")


def judged_words(est: Estimate) -> str:
    """How a judge's errors enter a comparison, and what of it they do not; or empty."""
    if est.settings.judge is None:
        return ""
    return f"{est.judge_note}; the tasks' counts and the frequentist test are as judged"


def assumed_words(assumed: str, agent: str, baseline: object) -> str:
    """As what the missing trials of an agent are counted, and those of an agent that it is compared with."""
    if not isinstance(baseline, str):
        return f"counted as {assumed}"
    opposite = "passed" if assumed == "failed" else "failed"
    return f"of {agent} counted as {assumed} and those of {baseline} as {opposite}"


def wide(value: float) -> str:
    """A number of any size, with three digits that count."""
    if math.isnan(value):
        return "–"
    if 0.001 <= value < 1000 or value == 0:
        return f"{value:.3g}"
    return "<0.001" if value < 1 else f"{float(f'{value:.3g}'):,.0f}" if value < 1e6 else ">1,000,000"


def shown(baseline: str | float) -> str:
    """The name of a baseline, or its value."""
    return baseline if isinstance(baseline, str) else format_number(baseline)


def rope_words(rope: tuple[float, float]) -> str:
    """A region of practical equivalence in points: "±2 points", "−5 to +2 points"."""
    low, high = rope
    if low == -high:
        return f"±{format_points(high).lstrip('+')} points"
    return f"{format_points_range(low, high)} points"
