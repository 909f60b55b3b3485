"""Which of several agents is best, and how sure is that?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.checks import check_type
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.posterior import Array, Estimand
from agentic_bayes.formatting import Metric

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["rank", "superiority"]


def rank(
    est: Estimate, *, metric: Metric = "pass_pow_k", k: int = 1, estimand: Estimand = "population"
) -> pd.DataFrame:
    """Probability of being best and posterior of the rank, agent by agent; nothing is fitted again.

    Parameters
    ----------
    est : Estimate
        An estimate of two agents or more. With ``method="crossed"`` agents are ranked on the same tasks.
    metric : {"pass_pow_k", "pass_at_k"}
        By what agents are ranked; more is better.
    k : int
        Attempts, ≥ 1; need not be among the estimate's k.
    estimand : {"population", "tasks"}
        On new tasks of this kind, or on the observed tasks.

    Returns
    -------
    pandas.DataFrame
        Best first. Columns agent, prob_best, expected_rank, lower_rank, upper_rank (equal-tailed interval of the rank,
        1 is best), then mean, lower, upper of the metric itself, and metric, k, estimand, ci_prob, ci_kind, method,
        unit, indicator, n_tasks, flags, note. Agents whose draws are equal share their ranks, and agents with the
        same counts on every task have the same ranks and probabilities: nothing that was seen tells them apart.

    Raises
    ------
    InvalidArgument, EstimateError
        If there is only one agent, or as `Estimate.metric_draws` does.
    """
    import pandas as pd

    ranks, _, alike = _ranks(est, metric, k, estimand)
    best = ranks == ranks.min(axis=1, keepdims=True)
    best = best / best.sum(axis=1, keepdims=True)
    settings = est.settings
    tail = (1 - settings.ci_prob) / 2
    note = "; ".join(filter(None, (est.differences, est.judge_note)))
    rows: list[dict[str, Any]] = []
    for index, agent in enumerate(est.agents):
        group = np.flatnonzero(alike == alike[index])
        lower, upper = np.quantile(ranks[:, group], [tail, 1 - tail], method="inverted_cdf")
        stats = est.posterior.aggregate(index, estimand, metric, k)
        rows.append(
            {
                "agent": agent,
                "prob_best": float(best[:, group].mean()),
                "expected_rank": float(ranks[:, group].mean()),
                "lower_rank": int(np.floor(lower)),
                "upper_rank": int(np.ceil(upper)),
                "mean": float(stats.mean),
                "lower": float(stats.lower),
                "upper": float(stats.upper),
                "metric": metric,
                "k": k,
                "estimand": estimand,
                "ci_prob": settings.ci_prob,
                "ci_kind": settings.ci_kind,
                "method": settings.method,
                "unit": str(est.outcomes.attrs["unit"]),
                "indicator": str(est.outcomes.attrs["indicator"]),
                "n_tasks": int(est.counts.scored[index].sum()),
                "flags": ", ".join(est.flags(agent, estimand=estimand, metric=metric, k=k)),
                "note": note,
            }
        )
    return pd.DataFrame(rows).sort_values("expected_rank", kind="stable", ignore_index=True)


def superiority(
    est: Estimate, *, metric: Metric = "pass_pow_k", k: int = 1, estimand: Estimand = "population"
) -> pd.DataFrame:
    """Probability that the agent of the row has a higher metric than the agent of the column.

    Parameters
    ----------
    est : Estimate
        An estimate of two agents or more.
    metric : {"pass_pow_k", "pass_at_k"}
        In which.
    k : int
        Attempts, ≥ 1.
    estimand : {"population", "tasks"}
        On new tasks of this kind, or on the observed tasks.

    Returns
    -------
    pandas.DataFrame, shape (agents, agents)
        Agents in the order of `rank`; entries that mirror each other sum to 1, NaN on the diagonal. Equal draws count
        for half, and agents with the same counts on every task have .5.

    Raises
    ------
    InvalidArgument, EstimateError
        As `rank` does.
    """
    import pandas as pd

    ranks, draws, alike = _ranks(est, metric, k, estimand)
    groups = np.unique(alike)
    members = [np.flatnonzero(alike == group) for group in groups]
    order = np.argsort([ranks[:, alike == alike[i]].mean() for i in range(alike.size)], kind="stable")
    between = np.full((groups.size, groups.size), 0.5)
    for a, own in enumerate(members):
        for b, other in enumerate(members[:a]):
            above = [
                np.mean(draws[:, i] > draws[:, j]) + np.mean(draws[:, i] == draws[:, j]) / 2 for i in own for j in other
            ]
            between[a, b] = np.mean(above)
            between[b, a] = 1 - between[a, b]
    matrix = between[np.ix_(np.searchsorted(groups, alike), np.searchsorted(groups, alike))]
    np.fill_diagonal(matrix, np.nan)
    names = pd.Index([est.agents[i] for i in order], name="agent")
    return pd.DataFrame(matrix[np.ix_(order, order)], index=names, columns=names.rename("baseline"))


def _ranks(est: Estimate, metric: Metric, k: int, estimand: Estimand) -> tuple[Array, Array, Array]:
    """Ranks and metrics, shape (draws, agents), and which agents have the same counts on every task."""
    from scipy.stats import rankdata

    check_type("est", est, Estimate, "estimate() makes one")
    if len(est.agents) < 2:
        raise InvalidArgument(f"ranking needs two agents or more, the estimate holds {est.agents[0]!r} only")
    draws = np.stack([est.metric_draws(a, metric=metric, k=k, estimand=estimand) for a in est.agents], axis=1)
    cells = np.concatenate([est.counts.trials, est.counts.successes], axis=1)
    _, alike = np.unique(cells, axis=0, return_inverse=True)
    return rankdata(-draws, axis=1), draws, alike.reshape(-1)
