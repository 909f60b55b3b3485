"""What decisions have in common: a sentence that answers, one line for a console, and plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import Metric, interval_words, json_ready, one_line
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
