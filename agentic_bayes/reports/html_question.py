"""What a page is asked: by which metric, and who is compared with whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from agentic_bayes.decisions.compare import Comparison, compare
from agentic_bayes.decisions.rank import rank
from agentic_bayes.errors import EstimateError, check_choice
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import METRICS, Metric, interval_words, metric_name

__all__ = ["Question", "ask", "interval_kind"]

MOST_COMPARED = 3  # numbers of attempts at which two agents are compared


@dataclass(frozen=True)
class Question:
    """What is asked, and the comparisons that answer it.

    Attributes
    ----------
    metric, k, estimand
        Of the verdict.
    agent : str
        Whom the page is about.
    comparisons : tuple of Comparison
        The verdict's own first, then others at further k; empty where nothing is compared.
    ranks : pandas.DataFrame or None
        With three agents or more.
    note : str
        Why nothing is compared, although there are several agents; or empty.
    """

    metric: Metric
    k: int
    estimand: Estimand
    agent: str
    comparisons: tuple[Comparison, ...] = ()
    ranks: Any = None
    note: str = ""

    @property
    def name(self) -> str:
        """The metric as people write it."""
        return metric_name(self.metric, self.k)

    @property
    def command(self) -> str:
        """What the command line calls it."""
        return f"--metric {self.name}" + ("" if self.estimand == "population" else f" --estimand {self.estimand}")


def ask(
    est: Estimate, agent: str | None, baseline: str | float | None, metric: Metric, k: int, estimand: Estimand | None
) -> Question:
    """Settle who is compared with whom, and compare them.

    Parameters
    ----------
    est : Estimate
        Any estimate.
    agent : str, optional
        By default the later one of two agents, the best-ranked one of several.
    baseline : str or float, optional
        By default the earlier one of two agents, the next one in rank of several.
    metric, k, estimand
        Of the verdict; the estimand is by default ``population`` where the method defines it.

    Returns
    -------
    Question

    Raises
    ------
    UnknownName, InvalidArgument, EstimateError
        As `compare` does, where a comparison was asked for.
    """
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
    plain = Question(metric, k, estimand, agent, ranks=ranks, note=note)
    if other is None:
        return plain
    further = [power for power in est.settings.k if power != k] if metric == "pass_pow_k" else []
    try:
        found = tuple(
            compare(est, agent, baseline=other, **{**asked, "k": power})  # type: ignore[arg-type]
            for power in (k, *further[: MOST_COMPARED - 1])
        )
    except EstimateError as error:
        if baseline is not None:
            raise
        return Question(metric, k, estimand, agent, ranks=ranks, note=str(error))
    return Question(metric, k, estimand, agent, found, ranks)


def interval_kind(method: str, ci_prob: float, ci_kind: str) -> str:
    """An interval's probability and kind in words, also of a method without a posterior."""
    return f"{ci_prob * 100:.4g} % confidence interval" if method == "frequentist" else interval_words(ci_prob, ci_kind)
