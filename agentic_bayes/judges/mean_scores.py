"""Mean scores of judges, tools and metrics with intervals, and the paired difference of two agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

from agentic_bayes.checks import check_probability, check_type
from agentic_bayes.errors import InvalidArgument, UnknownName
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.means import mean_interval, score_of, task_means
from agentic_bayes.formatting import exact_percent, format_estimate, plural
from agentic_bayes.result_table import Table, Tabular

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MeanScores", "mean_scores"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanScore:
    """The mean of one score of one agent, or of its difference from another agent."""

    score: str  # ``answer``, ``tools``, or a metric's name
    agent: str
    baseline: str  # the agent that is subtracted, task by task; empty for a plain mean
    mean: float
    lower: float
    upper: float
    n_tasks: int  # tasks with a score, or with scores of both agents
    n_scored: int  # interactions with a score, of the agent
    n_unscored: int


@dataclass(frozen=True, kw_only=True, repr=False)
class MeanScores(Tabular):
    """Mean scores with intervals.

    Attributes
    ----------
    rows : tuple of MeanScore
        Means, then differences from the baseline.
    ci_prob : float
        Of the intervals.
    n_groups : int
        Groups of tasks that cluster the intervals; 0 where each task is on its own.
    """

    rows: tuple[MeanScore, ...]
    ci_prob: float
    n_groups: int = 0

    def to_pandas(self) -> pd.DataFrame:
        """One row per score and agent, then one per difference.

        Returns
        -------
        pandas.DataFrame
            Columns score, agent, baseline ("" for a mean), mean, lower, upper, n_tasks, n_scored, n_unscored, ci_prob.
        """
        import pandas as pd

        frame = pd.DataFrame([asdict(row) for row in self.rows], columns=list(MeanScore.__annotations__))
        return frame.assign(ci_prob=self.ci_prob)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{row.agent} {format_estimate(row.mean, row.lower, row.upper)}"
            for row in self.rows
            if not row.baseline and row.score == self.rows[0].score
        )
        return f"Mean scores ({self.rows[0].score}): {shown}" if self.rows else "Mean scores: nothing was scored"

    def table(self) -> Table:
        """Every mean and every difference with its interval."""
        lines = [
            [
                row.score,
                f"{row.agent} − {row.baseline}" if row.baseline else row.agent,
                format_estimate(row.mean, row.lower, row.upper),
                *(f"{number:,}" for number in (row.n_tasks, row.n_scored, row.n_unscored)),
            ]
            for row in self.rows
        ]
        unit = f"clustered by {plural(self.n_groups, 'group')} of tasks" if self.n_groups else "over tasks"
        notes = [
            f"Each task's mean counts once; {exact_percent(self.ci_prob)} t intervals {unit}, cut at the scale's ends; "
            "a difference is taken task by task.",
            "A score lies between 0 and 1, and its average is not the share that passed. Not scored: also turns that a "
            "score does not apply to, for tools those in which none was expected.",
        ]
        header = ["score", "agent", "average", "tasks", "turns scored", "not scored"]
        return Table(title="Average scores", header=header, rows=lines, notes=notes)


def mean_scores(
    evidence: Evidence,
    *,
    baseline: str | None = None,
    groups: Mapping[str, str] | None = None,
    ci_prob: float = 0.95,
) -> MeanScores:
    """Mean scores of every agent with intervals, and differences from a baseline.

    Parameters
    ----------
    evidence : Evidence
        Scored interactions.
    baseline : str, optional
        Agent that is subtracted from each other one, over the tasks that both have scores of. Default: the first of
        two agents; with more no difference is taken unless a baseline is given.
    groups : mapping of str to str, optional
        Task → group (domain, family): tasks of a group may then have something in common.
    ci_prob : float
        Probability of the intervals, in (0, 1).

    Returns
    -------
    MeanScores
        Of the answers (``answer``), the tool rubric (``tools``) and every further metric.

    Raises
    ------
    InvalidArgument
        If an argument is outside what is allowed.
    UnknownName
        If there is no such agent.

    Notes
    -----
    With x_i the mean score of task i over its scored interactions, the interval is that of Student's t,
    x̄ ± t s/√T, cut at 0 and 1 (for a difference -1 and 1): tasks, not interactions, are independent. A posterior with
    a flat prior gives the same interval. It is wide for equal values: no zero width.

    Examples
    --------
    >>> import pandas as pd
    >>> from agentic_bayes.judges import evidence_from_table, mean_scores
    >>> table = pd.DataFrame({"task": ["a", "a", "b", "c"], "trial": [0, 1, 0, 0], "score": [0.9, 0.7, 0.6, 1.0]})
    >>> mean_scores(evidence_from_table(table)).to_pandas()[["mean", "lower", "upper"]].round(3).to_dict("records")
    [{'mean': 0.8, 'lower': 0.303, 'upper': 1.0}]
    """
    check_type("evidence", evidence, Evidence, "assess() makes one")
    check_probability(ci_prob, "ci_prob", open_ends=True)
    agents = sorted({row.agent for row in evidence})
    if baseline is not None and baseline not in agents:
        raise UnknownName("agent", baseline, agents)
    tasks = {row.task for row in evidence}
    missing = sorted(tasks - set(groups)) if groups is not None else []
    if missing:
        raise InvalidArgument(f"groups must name the group of every task, got none for {', '.join(missing[:5])}")
    reference = agents[0] if baseline is None and len(agents) == 2 else baseline
    means: list[MeanScore] = []
    differences: list[MeanScore] = []
    for name in ("answer", "tools", *sorted({metric for row in evidence for metric in row.metrics})):
        score = score_of(name)
        values = task_means(evidence, score)
        for agent in (one for one in agents if one in values):
            own = [score(row) is not None for row in evidence if row.agent == agent]
            counted = sum(own), len(own) - sum(own)
            spread = partial(_mean_score, name, agent, counted, groups, ci_prob)
            means.append(spread("", values[agent], 0.0))
            if reference is not None and agent != reference and reference in values:
                other = values[reference]
                paired = {task: value - other[task] for task, value in values[agent].items() if task in other}
                differences.append(spread(reference, paired, -1.0))
    found = len({groups[task] for task in tasks}) if groups is not None else 0
    return MeanScores(rows=(*means, *differences), ci_prob=ci_prob, n_groups=found)


def _mean_score(
    score: str,
    agent: str,
    counted: tuple[int, int],
    groups: Mapping[str, str] | None,
    ci_prob: float,
    baseline: str,
    tasks: Mapping[str, float],
    low: float,
) -> MeanScore:
    """The mean of one value per task, on a scale from `low` to 1."""
    mean, lower, upper = mean_interval(tasks, groups, ci_prob, low=low)
    return MeanScore(
        score=score,
        agent=agent,
        baseline=baseline,
        mean=mean,
        lower=lower,
        upper=upper,
        n_tasks=len(tasks),
        n_scored=counted[0],
        n_unscored=counted[1],
    )
