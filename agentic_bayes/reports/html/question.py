"""The question that a page answers: by which metric, and who is compared with whom."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from agentic_bayes.checks import check_choice
from agentic_bayes.decisions.compare import Comparison, comparison
from agentic_bayes.decisions.gate import Gate, gate
from agentic_bayes.decisions.rank import Ranking, rank
from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import Metric

MOST_COMPARED = 3  # numbers of attempts at which two agents are compared


@dataclass(frozen=True, slots=True)
class Lead:
    """Verdicts that were given elsewhere, and that the page begins with instead of its own."""

    title: str  # in a few words
    kind: Literal["good", "bad", "open"]  # for the colour
    lines: tuple[str, ...]  # one sentence each


@dataclass(frozen=True)
class ReportQuestion:
    """The question of a page, and the comparisons that answer it."""

    metric: Metric  # of the verdict
    estimand: Estimand
    agent: str  # the agent that the page is about
    # the verdict's own first, then others at further k; empty where nothing is compared
    comparisons: tuple[Comparison, ...] = ()
    ranking: Ranking | None = None  # of three agents or more
    verdict_ranking: Ranking | None = None  # the same where it is the verdict, since nobody said whom to compare
    further_ranking: Ranking | None = None  # by the second metric of the page
    gate: Gate | None = None  # where a bar was given
    lead: Lead | None = None  # verdicts that come first
    note: str = ""  # why nothing is compared, although there are several agents; or empty

    @property
    def options(self) -> str:
        """Its metric and estimand as options of the command line."""
        return f"--metric {self.metric}" + ("" if self.estimand == "population" else f" --estimand {self.estimand}")


def second_metric(est: Estimate, metric: Metric) -> Metric | None:
    """The plain success rate for a verdict on several attempts; several in a row for one on the plain rate."""
    if metric.k > 1:
        return Metric("pass^1")
    return next((Metric.of("pass_pow_k", k) for k in est.settings.k if k > 1), None)


def ask(
    est: Estimate,
    agent: str | None,
    baseline: str | float | None,
    metric: str,
    estimand: Estimand | None,
    at_least: float | None = None,
    confidence: float = 0.95,
) -> ReportQuestion:
    """Choose the agent and what to compare it with; compare them, and gate the agent if there is a bar."""
    wanted = Metric(metric)
    if estimand is None:
        estimand = "population" if "population" in est.posterior.estimands else "tasks"
    check_choice("estimand", estimand, get_args(Estimand)[:2])
    asked: dict[str, Any] = {"metric": wanted, "estimand": estimand}
    for name in (agent, baseline):
        if name is not None and (name is agent or isinstance(name, str)):
            est.agent_index(name)
    ranking, further, note = None, None, ""
    if len(est.agents) > 2:
        try:
            ranking = rank(est, **asked)
            if second := second_metric(est, wanted):
                further = rank(est, metric=second, estimand=estimand)
        except EstimateError as error:
            note = str(error)
    verdict_ranking = ranking if agent is None and baseline is None else None
    # the best first, where that is known; else the last of the agents, which is usually the newest
    order = list(est.agents[::-1]) if ranking is None else [row["agent"] for row in ranking.rows]
    if agent is None:
        agent = next((name for name in order if name != baseline), order[0])
    other = baseline
    if other is None and len(order) > 1:
        other = next(name for name in order if name != agent)
    gated = None if at_least is None else gate(est, agent, at_least=at_least, confidence=confidence, **asked)
    question = ReportQuestion(
        wanted,
        estimand,
        agent,
        ranking=ranking,
        verdict_ranking=verdict_ranking,
        further_ranking=further,
        gate=gated,
        note=note,
    )
    if other is None:
        return question
    metrics = [wanted]
    if wanted.power and isinstance(other, str):  # a value is meant for this metric only
        metrics += [Metric.of(wanted.family, k) for k in est.settings.k if k != wanted.k][: MOST_COMPARED - 1]
    try:
        comparisons = [  # only the verdict's own is shown task by task
            comparison(est, agent, baseline=other, metric=one, estimand=estimand, task_by_task=one == wanted)
            for one in metrics
        ]
    except EstimateError as error:
        if baseline is not None:
            raise
        return replace(question, note=str(error))
    return replace(question, comparisons=tuple(comparisons))
