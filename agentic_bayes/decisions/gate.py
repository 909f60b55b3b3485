"""Is an agent good enough? Pass, fail or inconclusive, from a posterior probability."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from agentic_bayes.checks import check_probability, check_type
from agentic_bayes.decisions.decision import Decision, basis_words, described, remarks, summarised
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.distribution import CIKind
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.model_checks import flag_words
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import Metric, format_interval, format_number, format_percent, plural
from agentic_bayes.result_table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Gate", "Requirement", "gate"]

GateVerdict = Literal["pass", "fail", "inconclusive"]


def check_confidence(confidence: object) -> float:
    """A probability that a gate may require: in (0.5, 1), since with less it could pass and fail at once."""
    required = check_probability(confidence, "confidence", open_ends=True)
    if required <= 0.5:
        raise InvalidArgument(
            f"confidence must be in (0.5, 1), otherwise a gate could pass and fail at once; got {required:g}"
        )
    return required


def ruling(probability: float, required: float) -> GateVerdict:
    """What a probability that a requirement is met comes to."""
    if probability >= required:
        return "pass"
    return "fail" if 1 - probability >= required else "inconclusive"


def shown_beside(probability: float, required: float) -> str:
    """A probability in per cent, with enough digits that nobody mistakes it for the required one or its opposite."""

    def looks_like(edge: float, digits: int) -> bool:
        return abs(probability - edge) > 1e-9 and round(100 * probability, digits) == round(100 * edge, digits)

    digits = 0
    while digits < 7 and (looks_like(required, digits) or looks_like(1 - required, digits)):
        digits += 1
    return format_percent(probability, digits)


def _doubts(agent: str, flags: tuple[str, ...]) -> list[str]:
    """Why nothing can be decided about an agent."""
    reasons = {
        "not_converged": "the estimate did not converge, so it decides nothing",
        "no_data": f"nothing of {agent} was scored, so it decides nothing",
    }
    return [reason for flag, reason in reasons.items() if flag in flags]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that a gate asks, and the answer.

    Attributes
    ----------
    text : str
        What must hold, in words.
    probability : float
        Posterior probability that it holds.
    verdict : {"pass", "fail", "inconclusive"}
        The last also where the estimate did not converge or nothing was scored.
    """

    text: str
    probability: float
    verdict: GateVerdict


@dataclass(frozen=True, repr=False)
class Gate(Decision):
    """Whether one agent may be shipped.

    Attributes
    ----------
    agent : str
    metric : str
        "pass@k" or "pass^k" with a number.
    estimand : {"population", "tasks"}
    at_least : float
        The bar.
    probability : float
        Posterior probability that the metric is at least the bar.
    confidence : float
        The gate passes if `probability` is at least this, and fails if that of the opposite is.
    baseline : str or None
        The agent against which the metric must not have dropped.
    margin : float or None
        By how much it may have dropped.
    requirements : tuple of Requirement
        The bar and, with a baseline, the drop.
    mean, lower, upper : float
        Of the metric.
    ci_prob : float
    ci_kind : {"eti", "hdi"}
    n_tasks : int
        Tasks that inform it.
    method, unit, indicator : str
        What was estimated from what.
    flags : tuple of str
        What makes the numbers doubtful; see `Estimate.flags`.
    note : str
        Why the gate cannot pass although the probabilities allow it, and what else a reader must know, or empty.
    """

    derived: ClassVar[tuple[str, ...]] = ("verdict",)

    agent: str
    metric: str
    estimand: Estimand
    at_least: float
    probability: float
    confidence: float
    baseline: str | None
    margin: float | None
    requirements: tuple[Requirement, ...]
    mean: float
    lower: float
    upper: float
    ci_prob: float
    ci_kind: CIKind
    n_tasks: int
    method: str
    unit: str
    indicator: str
    flags: tuple[str, ...]
    note: str

    @property
    def verdict(self) -> GateVerdict:
        """Whether every requirement is met with the required probability ("pass"), one is missed with it ("fail"), or
        neither ("inconclusive", also where the estimate did not converge or nothing was scored).
        """
        verdicts = {one.verdict for one in self.requirements}
        if "fail" in verdicts:
            return "fail"
        return "inconclusive" if "inconclusive" in verdicts else "pass"

    def __str__(self) -> str:
        asked = "; ".join(f"{one.text} = {shown_beside(one.probability, self.confidence)}" for one in self.requirements)
        where = "on new tasks" if self.estimand == "population" else "on these tasks"
        return (
            f"{self.verdict}: {asked} (needs {format_percent(self.confidence)}) for {self.agent} {where}; "
            f"{self.metric} {format_number(self.mean)}, {self.ci_prob * 100:.4g} % interval "
            f"{format_number(self.lower)} to {format_number(self.upper)} ({plural(self.n_tasks, 'task')})"
            f"{remarks(self.note, self.flags)}"
        )

    @property
    def basis(self) -> str:
        """From what it was estimated, and what the interval is."""
        return basis_words(vars(self))

    def table(self) -> Table:
        """One row per requirement."""
        rows = [[one.text, shown_beside(one.probability, self.confidence), one.verdict] for one in self.requirements]
        header = ["requirement", f"probability (needs {format_percent(self.confidence)})", "verdict"]
        value = f"{format_number(self.mean)} {format_interval(self.lower, self.upper)}"
        notes = [
            f"{self.agent}'s {self.metric}: {value}, posterior mean; {plural(self.n_tasks, 'task')}",
            self.basis,
            self.note,
            *flag_words(self.flags),
        ]
        return Table(title=f"Gate: {self.verdict}", header=header, rows=rows, notes=notes)

    def to_pandas(self) -> pd.DataFrame:
        """One row per requirement.

        Returns
        -------
        pandas.DataFrame
            Columns text, probability, verdict.
        """
        import pandas as pd

        return pd.DataFrame([asdict(one) for one in self.requirements])


def gate(
    est: Estimate,
    agent: str | None = None,
    *,
    at_least: float,
    confidence: float = 0.95,
    metric: str = "pass^1",
    estimand: Estimand = "population",
    baseline: str | None = None,
    margin: float = 0.0,
) -> Gate:
    """Judge an agent against a bar and, if asked, against a baseline; nothing is fitted again.

    Parameters
    ----------
    est : Estimate
        An estimate with a posterior.
    agent : str, optional
        Name; may be left out where there is only one.
    at_least : float
        The bar, in [0, 1].
    confidence : float
        In (0.5, 1): the gate passes if P(metric ≥ at_least) is at least this, and fails if P(metric < at_least) is.
    metric : str
        What must be good enough: "pass@k" or "pass^k" with a number, which need not be among the estimate's.
    estimand : {"population", "tasks"}
        On new tasks of this kind, or on the observed tasks.
    baseline : str, optional
        An agent of the same estimate. P(metric - baseline's metric ≥ -margin) must then reach `confidence`, too. A
        crossed estimate compares them on the same tasks; others do not, and need more data to pass.
    margin : float
        By how much the metric may lie below the baseline's, in [0, 1].

    Returns
    -------
    Gate

    Raises
    ------
    UnknownName, InvalidArgument
        If an argument is not valid.
    EstimateError
        If the estimate has no posterior or does not define the estimand.
    """
    check_type("est", est, Estimate, "estimate() makes one")
    bar = check_probability(at_least, "at_least")
    required = check_confidence(confidence)
    allowed = check_probability(margin, "margin")
    index = est.agent_index(agent)
    name = est.agents[index]
    wanted = Metric(metric)
    question: dict[str, Any] = {"metric": wanted, "estimand": estimand}
    met = est.prob_at_least(name, bar, **question)
    flags = est.flags(name, **question)
    doubts = _doubts(name, flags)
    asked = [(f"P({wanted} ≥ {bar:g})", met, doubts)]
    if baseline is not None:
        if est.agent_index(baseline) == index:
            raise InvalidArgument(f"agent and baseline must differ, got {name!r} for both")
        difference = est.metric_draws(name, **question) - est.metric_draws(baseline, **question)
        text = f"P(at most {allowed:g} below {baseline})" if allowed else f"P(not below {baseline})"
        others = est.flags(baseline, **question)
        doubts = list(dict.fromkeys([*doubts, *_doubts(baseline, others)]))
        asked.append((text, float(np.mean(difference >= -allowed)), doubts))
        flags = tuple(dict.fromkeys([*flags, *others]))
    elif allowed:
        raise InvalidArgument(f"margin needs a baseline, got margin {allowed:g} without one")
    requirements = [Requirement(text, p, "inconclusive" if why else ruling(p, required)) for text, p, why in asked]
    return Gate(
        agent=name,
        at_least=bar,
        probability=met,
        confidence=required,
        baseline=baseline,
        margin=None if baseline is None else allowed,
        requirements=tuple(requirements),
        flags=flags,
        note="; ".join(filter(None, [*doubts, est.differences, est.judge_note])),
        **described(summarised(est, name, wanted, estimand), est, name, wanted, estimand),
    )
