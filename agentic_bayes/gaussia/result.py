"""What the Agentic façade returns: one `AgenticMetric` per conversation, and what they were made from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from pydantic import BaseModel, ConfigDict

from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.row import EvidenceRow
from agentic_bayes.evidence.tools.rubric import ToolCorrectnessScore
from agentic_bayes.formatting import (
    METRICS,
    MOST_ROWS,
    format_interval,
    format_number,
    html_block,
    indicator_words,
    metric_name,
)
from agentic_bayes.gaussia.modes import StatisticalMode
from agentic_bayes.outcomes.count import IndicatorRule, count_outcomes
from agentic_bayes.records.model import Conversation

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from agentic_bayes.estimation.estimate import Estimate

__all__ = ["AgenticMetric", "AgenticResult", "AgenticSettings"]


class AgenticMetric(BaseModel):
    """What is known of one conversation. Its pass values are about its turns: n scored, c of them correct.

    Attributes
    ----------
    session_id : str
        The conversation.
    total_interactions : int
        All turns, scored or not.
    correct_interactions : int
        Turns that are correct: answer score ≥ threshold and, with ``require_tools``, a correct tool verdict
        where there is one.
    is_fully_correct : bool
        Whether all turns are scored and correct.
    threshold : float
        The threshold of the answers.
    correctness_scores : list of float
        The judge's score per turn; NaN where there is none.
    correct_indices : list of int
        Which turns are correct, from 0.
    tool_correctness_scores : list of ToolCorrectnessScore or None
        Per turn; None where no tools are expected or no verdict could be given.
    k : int
        Number of attempts.
    pass_at_k, pass_pow_k : float
        Probability that at least one of k attempts, or that all of them, are correct.
    pass_at_k_ci_low, pass_at_k_ci_high, pass_pow_k_ci_low, pass_pow_k_ci_high : float or None
        Credible limits; None in frequentist mode.
    unscored_interactions : int
        Turns of which nobody can tell whether they are correct; they are not in n.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    session_id: str
    total_interactions: int
    correct_interactions: int
    is_fully_correct: bool
    threshold: float
    correctness_scores: list[float]
    correct_indices: list[int]
    tool_correctness_scores: list[ToolCorrectnessScore | None]
    k: int
    pass_at_k: float
    pass_at_k_ci_low: float | None = None
    pass_at_k_ci_high: float | None = None
    pass_pow_k: float
    pass_pow_k_ci_low: float | None = None
    pass_pow_k_ci_high: float | None = None
    unscored_interactions: int = 0


@dataclass(frozen=True, slots=True)
class AgenticSettings:
    """What `Agentic.run` was told."""

    k: int
    threshold: float
    tool_threshold: float
    require_tools: bool
    mode: StatisticalMode

    @property
    def indicator(self) -> str:
        """The indicator by which a turn is correct."""
        return "joint" if self.require_tools else "answer"

    def metric(self, rows: Sequence[EvidenceRow]) -> AgenticMetric:
        """The metric of one conversation, from its rows in order."""
        rule = IndicatorRule(self.indicator, self.threshold, self.tool_threshold)
        verdicts = [rule.verdict(row) for row in rows]
        correct = [position for position, verdict in enumerate(verdicts) if verdict == "pass"]
        scored = sum(verdict in ("pass", "fail") for verdict in verdicts)
        return AgenticMetric(
            session_id=rows[0].session_id,
            total_interactions=len(rows),
            correct_interactions=len(correct),
            is_fully_correct=len(correct) == len(rows),
            threshold=self.threshold,
            correctness_scores=[math.nan if row.answer_score is None else row.answer_score for row in rows],
            correct_indices=correct,
            tool_correctness_scores=[_tool_score(row) for row in rows],
            k=self.k,
            unscored_interactions=len(rows) - scored,
            **self.mode.pass_values(len(correct), scored, self.k),
        )


@dataclass(frozen=True, repr=False)
class AgenticResult(Sequence[AgenticMetric]):
    """One `AgenticMetric` per conversation, in the order of the retriever, with what they were made from.

    Attributes
    ----------
    metrics : tuple of AgenticMetric
        The metrics.
    evidence : Evidence
        Every score with its reason.
    """

    metrics: tuple[AgenticMetric, ...]
    evidence: Evidence
    _rows: tuple[tuple[EvidenceRow, ...], ...]
    _settings: AgenticSettings

    @classmethod
    def of(cls, conversations: Iterable[Conversation], evidence: Evidence, settings: AgenticSettings) -> AgenticResult:
        """The result for conversations in their order, from the evidence on them."""
        by_session: dict[tuple[str, str], list[EvidenceRow]] = {}
        for row in evidence:
            by_session.setdefault((row.agent, row.session_id), []).append(row)
        rows = tuple(tuple(by_session[c.assistant_id, c.session_id]) for c in conversations)
        return cls(tuple(settings.metric(turns) for turns in rows), evidence, rows, settings)

    @overload
    def __getitem__(self, index: int) -> AgenticMetric: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[AgenticMetric, ...]: ...

    def __getitem__(self, index: int | slice) -> AgenticMetric | tuple[AgenticMetric, ...]:
        return self.metrics[index]

    def __len__(self) -> int:
        return len(self.metrics)

    def __repr__(self) -> str:
        correct = sum(metric.is_fully_correct for metric in self.metrics)
        return f"AgenticResult: {correct} of {len(self)} conversations fully correct; {self.evidence!r}"

    def _repr_html_(self) -> str:
        settings = self._settings
        rows = [
            [
                *(rows[0].agent, metric.session_id, rows[0].task, str(rows[0].trial)),
                f"{metric.correct_interactions} of {metric.total_interactions}",
                str(metric.unscored_interactions),
                *_value_and_limits(metric.pass_at_k, metric.pass_at_k_ci_low, metric.pass_at_k_ci_high),
                *_value_and_limits(metric.pass_pow_k, metric.pass_pow_k_ci_low, metric.pass_pow_k_ci_high),
            ]
            for metric, rows in zip(self.metrics[:MOST_ROWS], self._rows, strict=False)
        ]
        names = [cell for metric in METRICS for cell in (metric_name(metric, settings.k), "interval")]
        cut = {"indicator": settings.indicator, "threshold": settings.threshold}
        notes = [
            "pass values are about the turns of one conversation (unit interaction, estimand task), indicator "
            f"{indicator_words(cut | {'tool_threshold': settings.tool_threshold})}; {settings.mode}",
            "of the agent as a whole: estimate()",
        ]
        header = ["agent", "session", "task", "trial", "turns right", "unscored", *names]
        return html_block(repr(self), header, rows, notes=notes, total=len(self), noun="conversation")

    def summary(self) -> pd.DataFrame:
        """One row per conversation.

        Returns
        -------
        pandas.DataFrame
            ``agent, session_id, task, trial``; ``total_interactions, correct_interactions,
            unscored_interactions, is_fully_correct``; ``mean_score`` and ``mean_tool_overall`` over the
            turns that have one; ``right_answer_wrong_tools``: correct answers whose tool verdict is not;
            ``k`` and the pass values with their limits, about the turns of the conversation.
        """
        import pandas as pd

        return pd.DataFrame([self._line(metric, rows) for metric, rows in zip(self.metrics, self._rows, strict=True)])

    def _line(self, metric: AgenticMetric, rows: Sequence[EvidenceRow]) -> dict[str, object]:
        first = rows[0]
        right = [row for row in rows if row.answer_score is not None and row.answer_score >= metric.threshold]
        values = metric.model_dump(exclude={"correctness_scores", "correct_indices", "tool_correctness_scores"})
        identity = {
            "agent": first.agent,
            "session_id": first.session_id,
            "task": first.task,
            "trial": first.trial,
        }
        counts = ("total_interactions", "correct_interactions", "unscored_interactions", "is_fully_correct")
        means = {
            "mean_score": _mean(row.answer_score for row in rows),
            "mean_tool_overall": _mean(row.tool_overall for row in rows),
            "right_answer_wrong_tools": sum(row.tools_correct is False for row in right),
        }
        passes = {"k": metric.k} | {name: value for name, value in values.items() if name.startswith("pass_")}
        return identity | {name: values[name] for name in counts} | means | passes

    def outcomes(self, **arguments: Any) -> xr.Dataset:
        """Counts per agent and task.

        Parameters
        ----------
        **arguments
            Those of `count_outcomes`. The thresholds are those of the run unless given, and the indicator is
            ``joint`` if the run required tools, else ``answer``.

        Returns
        -------
        xarray.Dataset
        """
        settings = self._settings
        defaults: dict[str, Any] = {
            "indicator": settings.indicator,
            "threshold": settings.threshold,
            "tool_threshold": settings.tool_threshold,
        }
        return count_outcomes(self.evidence, **defaults | arguments)

    def estimate(self, **arguments: Any) -> Estimate:
        """Estimate pass@k and pass^k of the agents, by default from their conversations.

        Parameters
        ----------
        **arguments
            Those of `count_outcomes`, as for `outcomes`, and those of `estimate`. `k` is 1, …, k of the run
            unless given.

        Returns
        -------
        Estimate
        """
        from agentic_bayes.estimation.estimate import estimate

        counting = {name: arguments.pop(name) for name in _COUNTING if name in arguments}
        return estimate(self.outcomes(**counting), **{"k": tuple(range(1, self._settings.k + 1))} | arguments)


_COUNTING = ("unit", "indicator", "threshold", "tool_threshold", "agents", "errors")


def _value_and_limits(value: float, low: float | None, high: float | None) -> list[str]:
    return [format_number(value), format_interval(low, high)]


def _mean(values: Iterable[float | None]) -> float:
    given = [value for value in values if value is not None]
    return math.fsum(given) / len(given) if given else math.nan


def _tool_score(row: EvidenceRow) -> ToolCorrectnessScore | None:
    if row.tool_overall is None:
        return None
    return ToolCorrectnessScore.model_validate(
        {
            "tool_selection_correct": row.selection,
            "parameter_accuracy": row.parameters,
            "sequence_correct": row.sequence,
            "result_utilization": math.nan if row.utilization is None else row.utilization,
            "overall_correctness": row.tool_overall,
            "is_correct": row.tools_correct,
            "reasoning": row.tool_reason,
        }
    )
