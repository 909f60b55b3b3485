"""Which of several agents is best, and how certain is that?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from agentic_bayes.checks import check_choice, check_type
from agentic_bayes.decisions.decision import Decision, basis_words, described, share_above_zero, summarised
from agentic_bayes.decisions.shared_tasks import SharedTasks, TaskSets, alike, task_words
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.model_checks import DIFFERENT_TASKS, flag_words
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import (
    Metric,
    exact_percent,
    format_interval,
    format_number,
    format_percent,
    format_share,
    json_ready,
    plural,
)
from agentic_bayes.numerics import Array
from agentic_bayes.outcomes.missing import TrialCounts
from agentic_bayes.result_table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Ranking", "rank"]


@dataclass(frozen=True, repr=False)
class Ranking(Decision):
    """Agents from best to worst, with the probability of being best and the posterior of the rank.

    Attributes
    ----------
    metric : str
        By which agents are ranked; more is better.
    estimand : {"population", "tasks"}
    rows : tuple of dict
        Best first; see `to_pandas`.
    n_shared_tasks : int
        Tasks on which all agents have scored trials.
    n_left_out : int
        Tasks on which only some have, and which are therefore left out.
    trials : TrialCounts
        Scored, unscored and errored trials of all agents on all tasks.
    """

    metric: str
    estimand: Estimand
    rows: tuple[dict[str, Any], ...]
    n_shared_tasks: int
    n_left_out: int
    trials: TrialCounts
    _agents: tuple[str, ...] = field(repr=False)
    _ranks: Array = field(repr=False, compare=False)  # shape (draws, agents)
    _draws: Array = field(repr=False, compare=False)
    _alike: Array = field(repr=False, compare=False)  # which agents nothing in the data tells apart

    def to_pandas(self) -> pd.DataFrame:
        """The ranking, best first.

        Returns
        -------
        pandas.DataFrame
            Columns agent, prob_best, expected_rank, lower_rank, upper_rank (equal-tailed interval of the rank, 1 is
            best), then mean, lower, upper of the metric itself, and metric, estimand, ci_prob, ci_kind, method, unit,
            indicator, n_tasks, flags, note. Agents whose draws are equal share their ranks, and agents with the same
            counts (and labels) on every task have the same ranks and probabilities: nothing in the data tells them
            apart.
        """
        import pandas as pd

        return pd.DataFrame(self.rows)

    @property
    def expected_false_leads(self) -> float:
        """Expected number of agents that are better than the leader: the sum of their probabilities of being better.

        It grows with the number of agents that are near the top, which the probability of any one pair does not show.
        """
        return float(self.rows[0]["expected_rank"] - 1)

    @property
    def rivals(self) -> dict[str, float]:
        """The agents that are not ruled out as better than the first: those that are with a probability of at least
        (1 - ci_prob) / 2, up to which an equal-tailed interval of the difference excludes 0. Equal draws count half.
        """
        best = self._alike[self._agents.index(self.rows[0]["agent"])]
        leaders = [self._draws[:, [j]] for j in np.flatnonzero(self._alike == best)]
        ahead = np.mean([share_above_zero(self._draws - own) for own in leaders], axis=0)
        for group in np.unique(self._alike):  # nothing tells its agents apart
            ahead[self._alike == group] = 0.5 if group == best else ahead[self._alike == group].mean()
        least = (1 - self.rows[0]["ci_prob"]) / 2
        chances = dict(zip(self._agents, ahead.tolist(), strict=True))
        return {row["agent"]: chances[row["agent"]] for row in self.rows[1:] if chances[row["agent"]] >= least}

    def superiority(self) -> pd.DataFrame:
        """Probability that the agent of the row has a higher metric than the agent of the column.

        Returns
        -------
        pandas.DataFrame, shape (agents, agents)
            Agents in the order of the ranking; entries that mirror each other sum to 1, NaN on the diagonal. Equal
            draws count for half, and agents with the same counts and labels on every task have .5.
        """
        import pandas as pd

        ranks, draws, alike = self._ranks, self._draws, self._alike
        groups = np.unique(alike)
        members = [np.flatnonzero(alike == group) for group in groups]
        order = np.argsort([ranks[:, alike == alike[i]].mean() for i in range(alike.size)], kind="stable")
        between = np.full((groups.size, groups.size), 0.5)
        for a, own in enumerate(members):
            for b, other in enumerate(members[:a]):
                above = [
                    np.mean(draws[:, i] > draws[:, j]) + np.mean(draws[:, i] == draws[:, j]) / 2
                    for i in own
                    for j in other
                ]
                between[a, b] = np.mean(above)
                between[b, a] = 1 - between[a, b]
        matrix = between[np.ix_(np.searchsorted(groups, alike), np.searchsorted(groups, alike))]
        np.fill_diagonal(matrix, np.nan)
        names = pd.Index([self._agents[i] for i in order], name="agent")
        return pd.DataFrame(matrix[np.ix_(order, order)], index=names, columns=names.rename("baseline"))

    def __str__(self) -> str:
        best = self.rows[0]
        where = "new tasks" if self.estimand == "population" else "these tasks"
        low, high, others = best["lower_rank"], best["upper_rank"], len(self.rivals)
        place = f"{low}" if low == high else f"{low} to {high}"
        behind = "all others are clearly behind" if len(self.rows) > 2 else "the other is clearly behind"
        may = f"{plural(others, 'other agent')} not ruled out" if others else behind
        left_out = f", {self.n_left_out:,} left out" if self.n_left_out else ""
        tasks = f"{plural(self.n_shared_tasks, 'task')} all attempted{left_out}"
        missing = f"; {self.trials}" if self.trials.unscored else ""
        missing += f"; {best['agent']} has no scored trials" if "no_data" in best["flags"] else ""
        prob = exact_percent(best["ci_prob"])
        return (
            f"{best['agent']} is best on {self.metric} with probability {format_percent(best['prob_best'])}; its true "
            f"rank is {place} of {len(self.rows):,} ({prob} interval); {may} ({where}; {tasks}{missing})"
        )

    def table(self) -> Table:
        """One row per agent, best first."""
        header = ["agent", "P(best)", "mean rank", "true rank", self.metric, "interval", "tasks", "flags"]
        rows = [
            [
                row["agent"],
                format_share(row["prob_best"]),
                format_number(row["expected_rank"], 2),
                f"{row['lower_rank']} to {row['upper_rank']}",
                format_number(row["mean"]),
                format_interval(row["lower"], row["upper"]),
                f"{row['n_tasks']:,}",
                row["flags"],
            ]
            for row in self.rows
        ]
        first = self.rows[0]
        flags = [flag for row in self.rows for flag in row["flags"].split(", ")]
        notes = [f"{basis_words(first)} (of ranks: equal-tailed)", first["note"], *flag_words(flags)]
        return Table(title="Ranking:", text=f" {self}", header=header, rows=rows, notes=notes, noun="agent")

    def to_dict(self) -> dict[str, Any]:
        """The ranking as plain JSON values.

        Returns
        -------
        dict
        """
        values = {
            "metric": self.metric,
            "estimand": self.estimand,
            "agents": list(self.rows),
            "expected_false_leads": self.expected_false_leads,
            "n_shared_tasks": self.n_shared_tasks,
            "n_left_out": self.n_left_out,
            "trials": self.trials.to_dict(),
            "sentence": str(self),
        }
        return dict(json_ready(values))


def rank(
    est: Estimate, *, metric: str = "pass^1", estimand: Estimand = "population", tasks: TaskSets = "shared"
) -> Ranking:
    """Rank the agents of an estimate by the draws of its posterior.

    Parameters
    ----------
    est : Estimate
        An estimate of two agents or more. The crossed method ranks agents on the same tasks.
    metric : str
        By what agents are ranked: "pass@k" or "pass^k" with a number, which need not be among the estimate's.
    estimand : {"population", "tasks"}
        On new tasks of this kind, or on the observed tasks.
    tasks : {"shared", "own"}
        Where the agents did not try the same tasks. ``shared``: the tasks of which all have scored trials, and only
        these; the same method with the same priors is fitted to them. ``own``: each agent on its own tasks, assuming
        that all of these sample one kind of task.

    Returns
    -------
    Ranking

    Raises
    ------
    InvalidArgument, EstimateError
        If there is only one agent, if agents tried different tasks and share fewer than two, or as
        `Estimate.metric_draws` does.
    """
    check_type("est", est, Estimate, "estimate() makes one")
    check_choice("tasks", tasks, get_args(TaskSets))
    if len(est.agents) < 2:
        raise InvalidArgument(f"ranking needs two agents or more, the estimate holds {est.agents[0]!r} only")
    wanted, agents = Metric(metric), range(len(est.agents))
    common = SharedTasks.of(est.counts, agents, tasks)
    fit = common.fitted(est, agents, [est.counts.tasks[i] for i in np.flatnonzero(common.shared)])
    ranks, draws, alike = _ranks(fit, wanted, estimand)
    best = ranks == ranks.min(axis=1, keepdims=True)
    best = best / best.sum(axis=1, keepdims=True)
    tail = (1 - est.settings.ci_prob) / 2
    different = est.counts.different_tasks
    note = "; ".join(filter(None, (task_words(common, different, "not all agents"), est.differences, est.judge_note)))
    rows: list[dict[str, Any]] = []
    for index, agent in enumerate(fit.agents):
        group = np.flatnonzero(alike == alike[index])
        lower, upper = np.quantile(ranks[:, group], [tail, 1 - tail], method="inverted_cdf")
        flags = [*fit.flags(agent, estimand=estimand, metric=wanted), *([DIFFERENT_TASKS] if different else [])]
        rows.append(
            {
                "agent": agent,
                "prob_best": float(best[:, group].mean()),
                "expected_rank": float(ranks[:, group].mean()),
                "lower_rank": int(np.floor(lower)),
                "upper_rank": int(np.ceil(upper)),
                **described(summarised(fit, agent, wanted, estimand), fit, agent, wanted, estimand),
                "flags": ", ".join(flags),
                "note": note,
            }
        )
    rows.sort(key=lambda row: row["expected_rank"])
    return Ranking(
        metric=str(wanted),
        estimand=estimand,
        rows=tuple(rows),
        n_shared_tasks=common.n_shared,
        n_left_out=common.n_left_out,
        trials=TrialCounts.of(est.outcomes),
        _agents=fit.agents,
        _ranks=ranks,
        _draws=draws,
        _alike=alike,
    )


def _ranks(est: Estimate, metric: Metric, estimand: Estimand) -> tuple[Array, Array, Array]:
    """Ranks and metrics, shape (draws, agents), and which agents nothing in the data tells apart."""
    if estimand == "tasks":
        est.posterior.draw_tasks(range(len(est.agents)), metric)
    draws = np.stack([est.metric_draws(a, metric=metric, estimand=estimand) for a in est.agents], axis=1)
    ahead = sum(np.sign(own[:, None] - draws) for own in draws.T)  # equal ones share the mean of their ranks
    return (1 + len(est.agents) + ahead) / 2, draws, alike(est)
