"""What a page is asked: by which metric, and who is compared with whom."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from agentic_bayes.checks import check_choice
from agentic_bayes.decisions.compare import Comparison, compare
from agentic_bayes.decisions.gate import Gate, gate
from agentic_bayes.decisions.rank import rank
from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import METRICS, Metric, metric_name

MOST_COMPARED = 3  # numbers of attempts at which two agents are compared


@dataclass(frozen=True, slots=True)
class Lead:
    """Verdicts that were given elsewhere, and that the page begins with instead of its own."""

    title: str  # in a few words
    kind: Literal["good", "bad", "open"]  # for the colour
    lines: tuple[str, ...]  # one sentence each


@dataclass(frozen=True)
class Question:
    """What is asked, and the comparisons that answer it."""

    metric: Metric  # of the verdict
    k: int
    estimand: Estimand
    agent: str  # whom the page is about
    # the verdict's own first, then others at further k; empty where nothing is compared
    comparisons: tuple[Comparison, ...] = ()
    ranks: Any = None  # with three agents or more
    gate: Gate | None = None  # where a bar was given
    lead: Lead | None = None  # verdicts that come first
    note: str = ""  # why nothing is compared, although there are several agents; or empty

    @property
    def name(self) -> str:
        """The metric as people write it."""
        return metric_name(self.metric, self.k)

    @property
    def command(self) -> str:
        """What the command line calls it."""
        return f"--metric {self.name}" + ("" if self.estimand == "population" else f" --estimand {self.estimand}")


def ask(
    est: Estimate,
    agent: str | None,
    baseline: str | float | None,
    metric: Metric,
    k: int,
    estimand: Estimand | None,
    at_least: float | None = None,
    probability: float = 0.95,
) -> Question:
    """Settle whom the page is about and who is compared with whom; compare them, and hold the one against its bar."""
    check_choice("metric", metric, METRICS)
    if estimand is None:
        estimand = "population" if "population" in est.posterior.estimands else "tasks"
    check_choice("estimand", estimand, get_args(Estimand)[:2])
    asked = {"metric": metric, "k": k, "estimand": estimand}
    for name in (agent, baseline):
        if isinstance(name, str):
            est.agent_index(name)
    ranks, note = None, ""
    if len(est.agents) > 2:
        try:
            ranks = rank(est, **asked)  # type: ignore[arg-type]
        except EstimateError as error:
            note = str(error)
    # the best first, where that is known; else the last of the agents, which is usually the newest
    order = list(est.agents[::-1]) if ranks is None else ranks["agent"].tolist()
    if agent is None:
        agent = next((name for name in order if name != baseline), order[0])
    other = baseline
    if other is None and len(order) > 1:
        other = next(name for name in order if name != agent)
    held = None
    if at_least is not None:
        held = gate(est, agent, at_least=at_least, probability=probability, **asked)  # type: ignore[arg-type]
    question = Question(metric, k, estimand, agent, ranks=ranks, gate=held, note=note)
    if other is None:
        return question
    # a value is meant for the k that was asked, and for no other
    further = [n for n in est.settings.k if n != k] if metric == "pass_pow_k" and isinstance(other, str) else []
    try:
        found = tuple(
            compare(est, agent, baseline=other, **{**asked, "k": n})  # type: ignore[arg-type]
            for n in (k, *further[: MOST_COMPARED - 1])
        )
    except EstimateError as error:
        if baseline is not None:
            raise
        return replace(question, note=str(error))
    return replace(question, comparisons=found)
