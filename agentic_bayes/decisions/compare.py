"""Is one agent better than another? The posterior of the difference of one metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from agentic_bayes import numerics
from agentic_bayes.errors import EstimateError, InvalidArgument, check_choice, check_type
from agentic_bayes.estimation.estimate import Estimate, estimate
from agentic_bayes.estimation.posterior import CIKind, Estimand, interval_of_draws
from agentic_bayes.formatting import Metric, format_number, metric_name, plural

__all__ = ["Comparison", "compare"]

Verdict = Literal["better", "worse", "equivalent", "undecided"]
FEW_SHARED = 15  # shared tasks below which a comparison says so
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
    pairing : {"tasks", "none"}
        How tasks that both agents attempted enter. ``tasks``: their difficulty is shared, so that the agents are
        compared on the same tasks. ``none``: each agent's tasks are a sample of its own.
    n_shared_tasks : int
        Tasks on which both agents have scored trials.
    method : str
        Method of the posterior that was used.
    unit, indicator : str
        What was counted, as the outcomes say.
    flags : tuple of str
        What makes the numbers doubtful; see `Estimate.flags`.
    note : str
        What else a reader must know, or empty.
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
    pairing: Literal["tasks", "none"]
    n_shared_tasks: int
    method: str
    unit: str
    indicator: str
    flags: tuple[str, ...]
    note: str

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
            f"{head}: the probability that {self.agent} has a higher {name} ({self.estimand}) than {self.baseline} "
            f"is {format_number(self.prob_better)}; difference {format_number(self.mean)}, "
            f"{self.ci_prob * 100:.4g} % {kind} interval {format_number(self.lower)} to {format_number(self.upper)}; "
            f"{self.method}, pairing {self.pairing}, {plural(self.n_shared_tasks, 'shared task')}; "
            f"unit {self.unit}, indicator {self.indicator}"
        )
        marks = f" [{', '.join(self.flags)}]" if self.flags else ""
        return sentence + marks + (f" ({self.note})" if self.note else "")


def compare(
    est: Estimate,
    agent: str,
    *,
    baseline: str,
    metric: Metric = "pass_pow_k",
    k: int = 1,
    estimand: Estimand = "population",
    rope: float = 0.02,
    pairing: Literal["auto", "tasks", "none"] = "auto",
) -> Comparison:
    """Compare an agent with a baseline agent of the same estimate.

    Parameters
    ----------
    est : Estimate
        An estimate that holds both agents.
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
    pairing : {"auto", "tasks", "none"}
        ``auto``: a crossed estimate's own draws; otherwise, when the agents share two tasks or more, a crossed fit of
        these two agents, which compares them on the same tasks; else the estimate's own draws. ``tasks`` is the same,
        but an error where there are fewer than two shared tasks. ``none`` always takes the estimate's own draws.

    Returns
    -------
    Comparison

    Raises
    ------
    UnknownName, InvalidArgument
        If an argument is not valid.
    EstimateError
        If the estimate has no posterior or does not define the estimand, or agents share too few tasks to be paired.
    """
    check_type("est", est, Estimate, "estimate() makes one")
    check_choice("pairing", pairing, ("auto", "tasks", "none"))
    half_width = numerics.check_probability(rope, "rope")
    if est.agent_index(agent) == est.agent_index(baseline):
        raise InvalidArgument(f"agent and baseline must differ, got {agent!r} for both")
    shared = _shared_tasks(est, agent, baseline)
    fit, paired = _fit_to_compare(est, agent, baseline, shared, pairing)
    difference = fit.metric_draws(agent, metric=metric, k=k, estimand=estimand) - fit.metric_draws(
        baseline, metric=metric, k=k, estimand=estimand
    )
    lower, upper = interval_of_draws(difference, fit.settings.ci_prob, fit.settings.ci_kind)
    few = f"fewer than {FEW_SHARED} shared tasks say little about shared difficulty"
    few = few if paired and shared < FEW_SHARED else ""
    flags = [flag for name in (agent, baseline) for flag in fit.flags(name, estimand=estimand, metric=metric, k=k)]
    return Comparison(
        agent=agent,
        baseline=baseline,
        metric=metric,
        k=k,
        estimand=estimand,
        mean=float(difference.mean()),
        lower=lower,
        upper=upper,
        ci_prob=fit.settings.ci_prob,
        ci_kind=fit.settings.ci_kind,
        prob_better=float(np.mean(difference > 0) + np.mean(difference == 0) / 2),
        prob_rope=float(np.mean(np.abs(difference) <= half_width)),
        rope=half_width,
        expected_loss=float(np.maximum(-difference, 0).mean()),
        expected_loss_baseline=float(np.maximum(difference, 0).mean()),
        pairing="tasks" if paired else "none",
        n_shared_tasks=shared,
        method=fit.settings.method,
        unit=str(est.outcomes.attrs["unit"]),
        indicator=str(est.outcomes.attrs["indicator"]),
        flags=tuple(dict.fromkeys(flags)),
        note="; ".join(filter(None, (few, est.differences))),
    )


def _shared_tasks(est: Estimate, agent: str, baseline: str) -> int:
    scored = est.counts.scored
    return int((scored[est.agent_index(agent)] & scored[est.agent_index(baseline)]).sum())


def _fit_to_compare(
    est: Estimate, agent: str, baseline: str, shared: int, pairing: Literal["auto", "tasks", "none"]
) -> tuple[Estimate, bool]:
    """The posterior from which two agents are compared, and whether it pairs them by task."""
    if pairing == "tasks" and shared < 2:
        raise EstimateError(f"pairing='tasks' needs at least 2 shared tasks, {agent!r} and {baseline!r} share {shared}")
    if est.settings.method == "crossed":
        if shared == 0:
            raise EstimateError(
                f"{agent!r} and {baseline!r} share no task, so a crossed estimate cannot compare them: "
                "use method='hierarchical'"
            )
        return est, True
    if pairing == "none" or shared < 2:
        return est, False
    pair = est.outcomes.sel(agent=[agent, baseline])
    attempted = (pair["trials"] + pair["unscored"]).sum("agent") > 0
    settings = est.settings
    return (
        estimate(
            pair.isel(task=attempted.values),
            method="crossed",
            k=settings.k,
            ci_prob=settings.ci_prob,
            ci_kind=settings.ci_kind,
            random_seed=settings.random_seed,
        ),
        True,
    )
