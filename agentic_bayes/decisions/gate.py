"""Is an agent good enough? Pass, fail or inconclusive, from a posterior probability."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args, overload

import numpy as np

from agentic_bayes.checks import check_choice, check_probability, check_type
from agentic_bayes.decisions.decision import Decision, assumed_words, basis_words, described, remarks, summarised
from agentic_bayes.decisions.many.gates import ManyGates, gate_many
from agentic_bayes.decisions.missing import MAX_MISSING, as_if
from agentic_bayes.decisions.shared_tasks import TaskSets, pair_of, task_words
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.distribution import CIKind
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.many.estimates import ManyEstimates
from agentic_bayes.estimation.model_checks import flag_words
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import (
    Metric,
    equals,
    exact_percent,
    format_estimate,
    format_interval,
    format_number,
    format_percent,
    plural,
)
from agentic_bayes.outcomes.missing import MissingTrials, TrialCounts
from agentic_bayes.result_table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Gate", "IfMissing", "Requirement", "gate"]

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
        "not_converged": "the estimate did not converge, so it cannot decide anything",
        "no_data": f"nothing of {agent} was scored, so it decides nothing",
    }
    return [reason for flag, reason in reasons.items() if flag in flags]


@dataclass(frozen=True, slots=True)
class IfMissing:
    """What a gate comes to if the missing trials had all failed, or all passed.

    Attributes
    ----------
    assumed : {"failed", "passed"}
        What the agent's missing trials are taken for; a baseline's are taken for the opposite.
    which : {"unscored", "errored"}
        All missing trials, or those of crashed agents only (outcomes counted with ``errors="bounds"``).
    verdict : {"pass", "fail", "inconclusive"}
    probability : float
        That the metric is at least the bar.
    mean, lower, upper : float
        Of the metric.
    """

    assumed: Literal["failed", "passed"]
    which: MissingTrials
    verdict: GateVerdict
    probability: float
    mean: float
    lower: float
    upper: float


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
        The last also where the estimate did not converge, nothing was scored, or missing trials could change it.
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
    trials : TrialCounts
        The agent's trials: scored, unscored, and of these errored.
    baseline_trials : TrialCounts or None
        The baseline's.
    max_missing : float
        Share of missing trials above which the gate is inconclusive if they could change the verdict.
    if_missing : tuple of IfMissing
        The gate with the missing trials failed and passed, where that was asked: empty, or one of each.
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
    trials: TrialCounts
    baseline_trials: TrialCounts | None
    max_missing: float
    if_missing: tuple[IfMissing, ...]
    method: str
    unit: str
    indicator: str
    flags: tuple[str, ...]
    note: str

    @property
    def verdict(self) -> GateVerdict:
        """Whether every requirement is met with the required probability ("pass"), one is missed with it ("fail"), or
        neither ("inconclusive", also where the estimate did not converge, nothing was scored, or missing trials could
        change the verdict).
        """
        return worst(one.verdict for one in self.requirements)

    @property
    def headline(self) -> str:
        """The verdict in a few words; where the data are not enough, how sure it is and needs to be."""
        if self.verdict != "inconclusive":
            return self.verdict
        words, lowest = outcome_words(self), _lowest(self)
        if ruling(lowest, self.confidence) != "inconclusive":
            return words
        sure = shown_beside(lowest, self.confidence)
        return f"{words} ({sure} sure; {exact_percent(self.confidence)} needed)"

    def __str__(self) -> str:
        asked = "; ".join(
            f"{one.text} {equals(shown_beside(one.probability, self.confidence))}" for one in self.requirements
        )
        where = "on new tasks" if self.estimand == "population" else "on these tasks"
        return (
            f"{self.verdict}: {asked} (needs {exact_percent(self.confidence)}) for {self.agent} {where}; "
            f"{self.metric} {format_number(self.mean)}, {exact_percent(self.ci_prob)} interval "
            f"{format_number(self.lower)} to {format_number(self.upper)} ({plural(self.n_tasks, 'task')})"
            f"{''.join(f'; {line}' for line in self.missing)}{remarks(self.note, self.flags)}"
        )

    @property
    def missing(self) -> list[str]:
        """How many trials are missing, and what the gate comes to if they had failed or passed, in words."""
        counts = [(self.agent, self.trials), (self.baseline, self.baseline_trials)]
        lines = [f"{one.words} ({name})" if self.baseline else one.words for name, one in counts if one and one.words]
        return [*lines, *self.if_missing_words]

    @property
    def if_missing_words(self) -> list[str]:
        """What the gate comes to if the missing trials had failed or passed, in words."""
        lines = []
        for one in self.if_missing:
            what = "errored trials" if one.which == "errored" else "missing trials"
            verb = {"pass": "passes", "fail": "fails", "inconclusive": "is inconclusive"}[one.verdict]
            assumed = assumed_words(one.assumed, self.agent, self.baseline)
            number = f"{self.metric} {format_estimate(one.mean, one.lower, one.upper)}"
            lines.append(f"with {what} {assumed} the gate {verb} ({number})")
        return lines

    @property
    def basis(self) -> str:
        """What it was estimated from, and the kind of interval."""
        return basis_words(vars(self))

    def table(self) -> Table:
        """One row per requirement."""
        rows = [[one.text, shown_beside(one.probability, self.confidence), one.verdict] for one in self.requirements]
        header = ["requirement", f"probability (needs {exact_percent(self.confidence)})", "verdict"]
        value = f"{format_number(self.mean)} {format_interval(self.lower, self.upper)}"
        notes = [
            f"{self.agent}'s {self.metric}: {value}, posterior mean; {plural(self.n_tasks, 'task')}",
            self.basis,
            *self.missing,
            self.note,
            *flag_words(self.flags),
        ]
        return Table(title=f"Gate: {self.headline}", header=header, rows=rows, notes=notes)

    def to_pandas(self) -> pd.DataFrame:
        """One row per requirement.

        Returns
        -------
        pandas.DataFrame
            Columns text, probability, verdict.
        """
        import pandas as pd

        return pd.DataFrame([asdict(one) for one in self.requirements])


def outcome_words(one: Gate) -> str:
    """A gate's verdict in words: "passed", "failed" or "not passed, not enough evidence"."""
    if one.verdict != "inconclusive":
        return {"pass": "passed", "fail": "failed"}[one.verdict]
    return f"not passed, {unsettled_words(one)}"


def unsettled_words(one: Gate) -> str:
    """Why a gate is neither passed nor failed."""
    if ruling(_lowest(one), one.confidence) == "inconclusive":
        return "not enough evidence"
    return "missing trials could change the verdict" if one.if_missing else "the estimate cannot be used"


def _lowest(one: Gate) -> float:
    """The lowest probability among the requirements that are neither met nor missed."""
    return min(part.probability for part in one.requirements if part.verdict == "inconclusive")


def worst(verdicts: Iterable[GateVerdict]) -> GateVerdict:
    """The verdict on the whole: fail if any part fails, else inconclusive if any is, else pass."""
    found = set(verdicts)
    return "fail" if "fail" in found else "inconclusive" if "inconclusive" in found else "pass"


@overload
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
    max_missing: float = MAX_MISSING,
    tasks: TaskSets = "shared",
) -> Gate: ...
@overload
def gate(
    est: ManyEstimates,
    agent: str | None = None,
    *,
    at_least: float,
    confidence: float = 0.95,
    metric: str = "pass^1",
    estimand: Estimand = "population",
    baseline: str | None = None,
    margin: float = 0.0,
    max_missing: float = MAX_MISSING,
    tasks: TaskSets = "shared",
) -> ManyGates: ...
def gate(
    est: Estimate | ManyEstimates,
    agent: str | None = None,
    *,
    at_least: float,
    confidence: float = 0.95,
    metric: str = "pass^1",
    estimand: Estimand = "population",
    baseline: str | None = None,
    margin: float = 0.0,
    max_missing: float = MAX_MISSING,
    tasks: TaskSets = "shared",
) -> Gate | ManyGates:
    """Judge an agent against a bar and, if asked, against a baseline.

    Nothing is fitted again, unless too many trials are missing to ignore them: what they might have been must then not
    matter. They are counted as all failed and as all passed under the same method and priors; where either changes the
    verdict, it is inconclusive. Outcomes counted with ``errors="fail"`` settle it for crashed agents.

    Parameters
    ----------
    est : Estimate or ManyEstimates
        An estimate with a posterior; or those of many groups, each of which is judged by itself.
    agent : str, optional
        Name; may be left out where there is only one. Of many groups, all agents are judged without it.
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
        crossed estimate pairs them by task; others do not, and need more data to pass.
    margin : float
        By how much the metric may lie below the baseline's, in [0, 1].
    max_missing : float
        Share of the agent's trials (or of the baseline's), in [0, 1], that may be unscored, errored ones included,
        without asking what they might have been. With outcomes counted with ``errors="bounds"`` that is always asked of
        the errored trials and shown.
    tasks : {"shared", "own"}
        Where the agent and the baseline did not try the same tasks, which ones the drop is about; see `compare`. The
        bar is about all of the agent's.

    Returns
    -------
    Gate
        Or `ManyGates`, if `est` is `ManyEstimates`.

    Raises
    ------
    UnknownName, InvalidArgument
        If an argument is not valid.
    EstimateError
        If the estimate has no posterior or does not define the estimand, or if the agent and the baseline tried
        different tasks and share fewer than two.
    """
    check_choice("tasks", tasks, get_args(TaskSets))
    bar = check_probability(at_least, "at_least")
    required = check_confidence(confidence)
    allowed = check_probability(margin, "margin")
    tolerated = check_probability(max_missing, "max_missing")
    if isinstance(est, ManyEstimates):
        bars = {"at_least": bar, "confidence": required, "metric": metric, "estimand": estimand, "tasks": tasks}
        return gate_many(est, gate, agent, bars | {"baseline": baseline, "margin": allowed, "max_missing": tolerated})
    check_type("est", est, Estimate, "estimate() makes one")
    index = est.agent_index(agent)
    name = est.agents[index]
    wanted = Metric(metric)
    if baseline is not None and est.agent_index(baseline) == index:
        raise InvalidArgument(f"agent and baseline must differ, got {name!r} for both")
    if baseline is None and allowed:
        raise InvalidArgument(f"margin needs a baseline, got margin {allowed:g} without one")
    asked = _Question(name, wanted, estimand, bar, required, baseline, allowed, tasks)
    requirements, notes, flags = asked.answer(est)
    trials = TrialCounts.of(est.outcomes, name)
    others = None if baseline is None else TrialCounts.of(est.outcomes, baseline)
    counts = [one for one in (trials, others) if one is not None]
    in_doubt = any(one.share_missing > tolerated for one in counts) and {"pass", "fail"} & {
        one.verdict for one in requirements
    }
    shown: list[tuple[IfMissing, list[Requirement]]] = []
    if in_doubt:
        shown = [asked.if_missing(est, up, "unscored") for up in (False, True)]
        requirements = [
            one if all(found[i].verdict == one.verdict for _, found in shown) else replace(one, verdict="inconclusive")
            for i, one in enumerate(requirements)
        ]
    if est.outcomes.attrs.get("errors") == "bounds" and any(one.errored for one in counts):
        shown = [asked.if_missing(est, up, "errored") for up in (False, True)]
    return Gate(
        agent=name,
        at_least=bar,
        probability=requirements[0].probability,
        confidence=required,
        baseline=baseline,
        margin=None if baseline is None else allowed,
        requirements=tuple(requirements),
        trials=trials,
        baseline_trials=others,
        max_missing=tolerated,
        if_missing=tuple(side for side, _ in shown),
        flags=flags,
        note="; ".join(filter(None, dict.fromkeys([*notes, est.differences, est.judge_note]))),
        **described(summarised(est, name, wanted, estimand), est, name, wanted, estimand),
    )


@dataclass(frozen=True, slots=True)
class _Question:
    """What a gate asks of any estimate: this one, and those with missing trials failed or passed."""

    agent: str
    metric: Metric
    estimand: Estimand
    bar: float
    required: float
    baseline: str | None
    margin: float
    tasks: TaskSets

    def answer(self, est: Estimate) -> tuple[list[Requirement], list[str], tuple[str, ...]]:
        """Every requirement with its verdict, what a reader must know of them, and the flags."""
        question: dict[str, Any] = {"metric": self.metric, "estimand": self.estimand}
        met = est.prob_at_least(self.agent, self.bar, **question)
        flags = est.flags(self.agent, **question)
        doubts = _doubts(self.agent, flags)
        asked, words = [(f"P({self.metric} ≥ {self.bar:g})", met, doubts)], list[str]()
        if (other := self.baseline) is not None:
            text = f"P(at most {self.margin:g} below {other})" if self.margin else f"P(not below {other})"
            doubts = [*doubts, *_doubts(other, est.flags(other, **question))]
            pair = pair_of(est, self.agent, other, "own" if doubts else self.tasks)  # nothing scored is not refused
            own, theirs = pair.draws(self.metric, self.estimand)
            flags = tuple(dict.fromkeys([*flags, *pair.flags(self.metric, self.estimand)]))
            if not doubts and "not_converged" in flags:
                doubts = _doubts(other, ("not_converged",))
            left_out = task_words(pair.common, pair.counts.different_tasks, f"only one of {self.agent} and {other}")
            words = [left_out, *pair.notes(self.estimand)]
            asked.append((text, float(np.mean(own - theirs >= -self.margin)), doubts))
        verdicts = [Requirement(text, p, "inconclusive" if why else ruling(p, self.required)) for text, p, why in asked]
        return verdicts, [*doubts, *words], flags

    def if_missing(self, est: Estimate, up: bool, which: MissingTrials) -> tuple[IfMissing, list[Requirement]]:
        """The answer with the agent's missing trials passed (or failed) and the baseline's the other way round."""
        own, other = self.agent, () if self.baseline is None else self.baseline
        changed = as_if(est, failed=other if up else own, passed=own if up else other, which=which)
        found, _, _ = self.answer(changed)
        mean, lower, upper = summarised(changed, own, self.metric, self.estimand)
        verdict = worst(one.verdict for one in found)
        assumed: Literal["failed", "passed"] = "passed" if up else "failed"
        return IfMissing(assumed, which, verdict, found[0].probability, mean, lower, upper), found
