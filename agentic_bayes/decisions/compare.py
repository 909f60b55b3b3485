"""Is one agent better than another? The posterior of the difference of one metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from agentic_bayes import numerics
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.posterior import CIKind, Estimand, interval_of_draws
from agentic_bayes.formatting import Metric, format_number, metric_name, plural

__all__ = ["Comparison", "compare"]

Verdict = Literal["better", "worse", "equivalent", "undecided"]
EQUIVALENT = 0.95  # probability inside the ROPE from which two agents count as equivalent


@dataclass(frozen=True)
class Comparison:
    """The posterior of (agent - baseline), summarised.

    Attributes
    ----------
    agent, baseline : str
        Whose metric is compared with whose.
    metric : {"pass_at_k", "pass_pow_k"}
    k : int
    estimand : {"population", "tasks"}
    mean, lower, upper : float
        Of the difference, in units of probability.
    ci_prob : float
    ci_kind : {"eti", "hdi"}
    prob_better : float
        Probability that the agent's metric is higher.
    prob_rope : float
        Probability that the difference lies within ± `rope`.
    rope : float
        Half-width of the region of practical equivalence.
    expected_loss : float
        What choosing `agent` loses on average: E max(baseline - agent, 0).
    expected_loss_baseline : float
        What choosing `baseline` loses on average.
    pairing : {"none"}
        How tasks that both agents attempted enter. ``none``: each agent's tasks are a sample of its own.
    n_shared_tasks : int
        Tasks on which both agents have scored trials.
    method : str
        Method of the estimate.
    flags : tuple of str
        What makes the numbers doubtful; see `Estimate.flags`.
    """

    agent: str
    baseline: str
    metric: Metric
    k: int
    estimand: Estimand
    mean: float
    lower: float
    upper: float
    ci_prob: float
    ci_kind: CIKind
    prob_better: float
    prob_rope: float
    rope: float
    expected_loss: float
    expected_loss_baseline: float
    pairing: Literal["none"]
    n_shared_tasks: int
    method: str
    flags: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """The answer: "better" or "worse" when the interval of the difference excludes 0; "equivalent" when the
        probability inside the ROPE is at least .95; else "undecided".
        """
        if self.lower > 0:
            return "better"
        if self.upper < 0:
            return "worse"
        return "equivalent" if self.prob_rope >= EQUIVALENT else "undecided"

    def __str__(self) -> str:
        name = metric_name(self.metric, self.k)
        match self.verdict:
            case "undecided":
                head = "undecided"
            case "equivalent":
                head = f"{self.agent} and {self.baseline} are equivalent within ±{format_number(self.rope)}"
            case verdict:
                head = f"{self.agent} is {verdict} than {self.baseline}"
        kind = "equal-tailed" if self.ci_kind == "eti" else "highest-density"
        sentence = (
            f"{head}: the probability that {self.agent} has the higher {name} ({self.estimand}) is "
            f"{format_number(self.prob_better)}; difference {format_number(self.mean)}, "
            f"{self.ci_prob * 100:.4g} % {kind} interval {format_number(self.lower)} to {format_number(self.upper)}; "
            f"{self.method}, pairing {self.pairing}, {plural(self.n_shared_tasks, 'shared task')}"
        )
        return f"{sentence} [{', '.join(self.flags)}]" if self.flags else sentence


def compare(
    est: Estimate,
    agent: str,
    *,
    baseline: str,
    metric: Metric = "pass_pow_k",
    k: int = 1,
    estimand: Estimand = "population",
    rope: float = 0.02,
    pairing: Literal["auto", "none"] = "auto",
) -> Comparison:
    """Compare an agent with a baseline agent of the same estimate.

    Parameters
    ----------
    est : Estimate
        An estimate with a posterior (hierarchical or conjugate) that holds both agents.
    agent, baseline : str
        Names.
    metric : {"pass_pow_k", "pass_at_k"}
        What is compared.
    k : int
        Attempts, ≥ 1; need not be among the estimate's k.
    estimand : {"population", "tasks"}
        On new tasks of this kind, or on the observed tasks.
    rope : float
        Half-width of the region of practical equivalence, in [0, 1].
    pairing : {"auto", "none"}
        ``none`` takes the estimate's own draws, in which an agent's tasks are a sample of its own; ``auto`` does the
        same for the methods there are.

    Returns
    -------
    Comparison

    Raises
    ------
    UnknownName, InvalidArgument
        If an argument is not valid.
    EstimateError
        If the estimate has no posterior or does not define the estimand.
    """
    if pairing not in ("auto", "none"):
        raise InvalidArgument(f"pairing must be 'auto' or 'none', got {pairing!r}")
    half_width = numerics.check_probability(rope, "rope")
    first, second = est.agent_index(agent), est.agent_index(baseline)
    if first == second:
        raise InvalidArgument(f"agent and baseline must differ, got {agent!r} for both")
    difference = est.metric_draws(agent, metric=metric, k=k, estimand=estimand) - est.metric_draws(
        baseline, metric=metric, k=k, estimand=estimand
    )
    lower, upper = interval_of_draws(difference, est.settings.ci_prob, est.settings.ci_kind)
    flags = [flag for name in (agent, baseline) for flag in est.flags(name, estimand=estimand, k=k)]
    return Comparison(
        agent=agent,
        baseline=baseline,
        metric=metric,
        k=k,
        estimand=estimand,
        mean=float(difference.mean()),
        lower=lower,
        upper=upper,
        ci_prob=est.settings.ci_prob,
        ci_kind=est.settings.ci_kind,
        prob_better=float(np.mean(difference > 0) + np.mean(difference == 0) / 2),
        prob_rope=float(np.mean(np.abs(difference) <= half_width)),
        rope=half_width,
        expected_loss=float(np.maximum(-difference, 0).mean()),
        expected_loss_baseline=float(np.maximum(difference, 0).mean()),
        pairing="none",
        n_shared_tasks=int((est.counts.scored[first] & est.counts.scored[second]).sum()),
        method=est.settings.method,
        flags=tuple(dict.fromkeys(flags)),
    )
