"""The question that a page answers, who is compared with whom, and the options that ask a command the same."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from agentic_bayes.checks import check_choice
from agentic_bayes.decisions.compare import Comparison, comparison
from agentic_bayes.decisions.gate import Gate, gate
from agentic_bayes.decisions.rank import Ranking, rank
from agentic_bayes.decisions.tiers import TierProbabilities, TierTable, classify
from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.fitting import choose_method
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import Metric

MOST_COMPARED = 3  # numbers of attempts at which two agents are compared

USUAL = {  # options of a command where they are not given
    "--unit": "conversation",
    "--indicator": "answer",
    "--threshold": "0.7",
    "--tool-threshold": "1.0",
    "--ci-prob": "0.95",
    "--ci-kind": "eti",
    "--random-seed": "0",
    "--confidence": "0.95",
}


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
    tiers: Mapping[str, TierProbabilities] = field(default_factory=dict)  # by agent, where a table of tiers was named
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
    tiers: TierTable | None = None,
) -> ReportQuestion:
    """Choose the agent and what to compare it with; compare them, and gate the agent if there is a bar."""
    wanted = Metric(metric)
    if estimand is None:
        estimand = "population" if "population" in est.posterior.estimands else "tasks"
    check_choice("estimand", estimand, get_args(Estimand)[:2])
    if tiers is not None:
        check_choice("tiers", tiers, get_args(TierTable))
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
    found = {}
    if tiers is not None:
        sides = [agent, *([other] if isinstance(other, str) else [])]
        found = {name: classify(est, name, table=tiers, estimand=estimand) for name in sides}
    question = ReportQuestion(
        wanted,
        estimand,
        agent,
        ranking=ranking,
        verdict_ranking=verdict_ranking,
        further_ranking=further,
        gate=gated,
        tiers=found,
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


def without_option(est: Estimate) -> list[str]:
    """Settings that change numbers and that the command line has no option for."""
    judge, method = est.settings.judge, est.method
    alone = est.settings.corrects_judge and isinstance(method, Hierarchical)
    default = Hierarchical(pool_agents=False) if alone else type(method)()
    names = [] if method in (default, Hierarchical(inflate=True)) else [f"method={method!r}"]
    return names + (["fixed judge_labels"] if judge is not None and judge.calibration == "fixed" else [])


def counting_options(est: Estimate, source: Sequence[str]) -> dict[str, str]:
    """Options that count evidence as it was counted, but for those that stand in `source`; none for counts."""
    attrs = est.outcomes.attrs
    if attrs.get("source") != "evidence":
        return {}
    options = {"--unit": str(attrs["unit"]), "--indicator": shlex.quote(str(attrs["indicator"]))}
    if attrs["indicator"] in ("answer", "tools", "joint"):
        options |= {"--threshold": str(attrs["threshold"]), "--tool-threshold": str(attrs["tool_threshold"])}
    if attrs.get("errors", "unscored") != "unscored":
        options["--errors"] = str(attrs["errors"])
    options |= {"--agents": "together"} if est.agents == ("all",) else {}
    return {name: value for name, value in options.items() if name not in source}


def model_options(est: Estimate) -> str:
    """Options of a command that allow for the judge's errors and for groups of tasks as the estimate does."""
    s, options = est.settings, ""
    if s.judge is not None and s.judge.calibration == "estimated":
        options += " --judge-labels LABELS.csv"
    options += "" if s.by is None else f" --by {shlex.quote(s.by)}"
    if s.weights is not None:
        shares = s.weights if isinstance(s.weights, str) else ",".join(f"{one}={w!r}" for one, w in s.weights.items())
        options += f" --weights {shlex.quote(shares)}"
    return options


def written(options: Mapping[str, str]) -> str:
    """Options of a command as text that follows it."""
    return "".join(f" {name} {value}" for name, value in options.items())


def same_numbers(est: Estimate, source: Sequence[str]) -> str:
    """The options without which a command would count, or show, other numbers than this estimate."""
    s = est.settings
    options = {"--ci-prob": repr(s.ci_prob), "--ci-kind": s.ci_kind, "--random-seed": str(s.random_seed)}
    return written({n: v for n, v in (counting_options(est, source) | options).items() if USUAL.get(n) != v})


def same_model(est: Estimate) -> str:
    """The options without which a command would fit another model."""
    usual = "hierarchical" if est.settings.by else choose_method(est.counts, judge=est.settings.judge)[0].name
    return ("" if est.method.name == usual else f" --method {est.method.name}") + model_options(est)
