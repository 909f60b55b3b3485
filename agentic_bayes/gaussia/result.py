"""The façade's modes, and its results: one `AgenticMetric` per conversation, with the evidence behind them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from pydantic import BaseModel, ConfigDict

from agentic_bayes import formatting, numerics
from agentic_bayes.checks import check_count, check_number, check_probability
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.row import EvidenceRow
from agentic_bayes.evidence.tools.rubric import ToolCorrectnessScore
from agentic_bayes.outcomes.count import IndicatorRule, count_outcomes
from agentic_bayes.records.model import Conversation
from agentic_bayes.result_table import Table, Tabular, markdown_table

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from agentic_bayes.estimation.estimate import Estimate


@dataclass(frozen=True, slots=True)
class FrequentistMode:
    """Plug the share of correct turns, p = c/n, into the formulas; no interval.

    Notes
    -----
    pass@k = 1 - (1 - p)^k and pass^k = p^k. Both are NaN if no turn was scored.
    """

    def pass_values(self, successes: int, trials: int, k: int) -> dict[str, float | None]:
        """The pass fields of an `AgenticMetric`."""
        p = successes / trials if trials else math.nan
        return {
            "pass_at_k": float(numerics.plugin_pass_at_k(p, k)),
            "pass_pow_k": float(numerics.plugin_pass_pow_k(p, k)),
        }


@dataclass(frozen=True, slots=True)
class BayesianMode:
    """Carry the posterior of the success rate of one conversation's turns through the formulas.

    Parameters
    ----------
    mc_samples, rng_seed : int
        Accepted for compatibility but unused: the posterior has a closed form, so nothing is drawn.
    ci_level : float
        Probability of the equal-tailed credible intervals, strictly between 0 and 1.
    dirichlet_prior : float
        Accepted for compatibility but unused.
    beta_prior_a, beta_prior_b : float
        Parameters of the Beta prior, > 0.

    Notes
    -----
    p | c, n ~ Beta(a + c, b + n - c). The values are the posterior means of pass@k and pass^k; since
    both increase with p, their intervals are p's interval plugged into the formulas. If no turn was scored,
    this is the prior.
    """

    mc_samples: int = 5000
    ci_level: float = 0.95
    dirichlet_prior: float = 1.0
    beta_prior_a: float = 1.0
    beta_prior_b: float = 1.0
    rng_seed: int | None = 42

    def __post_init__(self) -> None:
        check_count(self.mc_samples, "mc_samples")
        check_probability(self.ci_level, "ci_level", open_ends=True)
        for name in ("dirichlet_prior", "beta_prior_a", "beta_prior_b"):
            check_number(getattr(self, name), name, above_zero=True)
        if self.rng_seed is not None and (isinstance(self.rng_seed, bool) or not isinstance(self.rng_seed, int)):
            raise InvalidArgument(f"rng_seed must be an integer or None, got {self.rng_seed!r}")

    def pass_values(self, successes: int, trials: int, k: int) -> dict[str, float | None]:
        """The pass fields of an `AgenticMetric`."""
        a, b = self.beta_prior_a + successes, self.beta_prior_b + trials - successes
        tail = (1 - self.ci_level) / 2
        limits = numerics.beta_quantile([tail, 1 - tail], a, b)
        at_low, at_high = numerics.plugin_pass_at_k(limits, k)
        pow_low, pow_high = numerics.plugin_pass_pow_k(limits, k)
        return {
            "pass_at_k": float(numerics.beta_pass_at_k_mean(a, b, k)),
            "pass_at_k_ci_low": float(at_low),
            "pass_at_k_ci_high": float(at_high),
            "pass_pow_k": float(numerics.beta_pass_pow_k_mean(a, b, k)),
            "pass_pow_k_ci_low": float(pow_low),
            "pass_pow_k_ci_high": float(pow_high),
        }


StatisticalMode = FrequentistMode | BayesianMode


class AgenticMetric(BaseModel):
    """The result for one conversation. Its pass values are about its turns: n scored, c of them correct.

    Attributes
    ----------
    session_id : str
        The conversation.
    total_interactions : int
        Number of turns, scored or not.
    correct_interactions : int
        Turns that are correct: answer score ≥ threshold and, with ``require_tools``, a correct tool verdict
        if it has one.
    is_fully_correct : bool
        Whether all turns are scored and correct.
    threshold : float
        The threshold of the answers.
    correctness_scores : list of float
        The judge's score per turn; NaN if it has none.
    correct_indices : list of int
        Which turns are correct, from 0.
    tool_correctness_scores : list of ToolCorrectnessScore or None
        Per turn; None if it expects no tools or could not be judged.
    k : int
        Number of attempts.
    pass_at_k, pass_pow_k : float
        Probability that at least one of k attempts, or that all of them, are correct.
    pass_at_k_ci_low, pass_at_k_ci_high, pass_pow_k_ci_low, pass_pow_k_ci_high : float or None
        Credible limits; None in frequentist mode.
    unscored_interactions : int
        Number of turns without a verdict; they are not in n.
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

    def to_dict(self) -> dict[str, Any]:
        """The fields in JSON values; NaN becomes None.

        Returns
        -------
        dict
        """
        fields: dict[str, Any] = formatting.json_ready(self.model_dump())
        return fields

    def to_markdown(self) -> str:
        """The fields as a Markdown table.

        Returns
        -------
        str
        """
        return markdown_table(["field", "value"], [[name, str(value)] for name, value in self.to_dict().items()])


@dataclass(frozen=True, slots=True)
class AgenticSettings:
    """The arguments of `Agentic.run` that its result depends on."""

    k: int
    threshold: float
    tool_threshold: float
    require_tools: bool
    mode: StatisticalMode

    @property
    def indicator(self) -> str:
        """The indicator that decides whether a turn is correct."""
        return "joint" if self.require_tools else "answer"

    @property
    def counting(self) -> dict[str, Any]:
        """The arguments of `count_outcomes` that count turns in the same way."""
        return {"indicator": self.indicator, "threshold": self.threshold, "tool_threshold": self.tool_threshold}

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
class AgenticResult(Sequence[AgenticMetric], Tabular):
    """One `AgenticMetric` per conversation, in the retriever's order, with the evidence behind them.

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
        """Make the result from conversations and their evidence."""
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

    def table(self) -> Table:
        """One row per conversation."""
        settings = self._settings
        rows = [
            [
                *(rows[0].agent, metric.session_id, rows[0].task, str(rows[0].trial)),
                f"{metric.correct_interactions} of {metric.total_interactions}",
                str(metric.unscored_interactions),
                *_value_and_limits(metric.pass_at_k, metric.pass_at_k_ci_low, metric.pass_at_k_ci_high),
                *_value_and_limits(metric.pass_pow_k, metric.pass_pow_k_ci_low, metric.pass_pow_k_ci_high),
            ]
            for metric, rows in zip(self.metrics, self._rows, strict=True)
        ]
        names = [cell for metric in formatting.metrics_at((settings.k,)) for cell in (str(metric), "interval")]
        notes = [
            "pass values are about the turns of one conversation (unit interaction, estimand task), indicator "
            f"{formatting.indicator_words(settings.counting)}; {settings.mode}",
            "for the agent as a whole, call estimate()",
        ]
        asked = Counter((rows[0].agent, row.qa_id) for rows in self._rows for row in rows)
        if settings.k > 1 and asked and max(asked.values()) == 1:
            notes.append(
                f"every question was answered once, too few for pass@{settings.k} over responses to one question: that "
                "needs several conversations with the same questions"
            )
        header = ["agent", "session", "task", "trial", "turns right", "unscored", *names]
        return Table(title=repr(self), header=header, rows=rows, notes=notes, noun="conversation")

    def to_dict(self) -> dict[str, Any]:
        """The metrics and the settings of the run in JSON values; NaN becomes None.

        Returns
        -------
        dict
        """
        settings = self._settings
        return {
            "k": settings.k,
            **settings.counting,
            "statistical_mode": type(settings.mode).__name__,
            "metrics": [metric.to_dict() for metric in self.metrics],
        }

    def to_pandas(self) -> pd.DataFrame:
        """The same as `summary`.

        Returns
        -------
        pandas.DataFrame
        """
        return self.summary()

    def summary(self) -> pd.DataFrame:
        """One row per conversation.

        Returns
        -------
        pandas.DataFrame
            ``agent, session_id, task, trial``; ``total_interactions, correct_interactions,
            unscored_interactions, is_fully_correct``; ``mean_score`` and ``mean_tool_overall`` over the
            turns that have a score; ``right_answer_wrong_tools``: the number of correct answers with a wrong tool
            verdict; ``k`` and the pass values with their limits, about the turns of the conversation.
        """
        import pandas as pd

        return pd.DataFrame([self._line(metric, rows) for metric, rows in zip(self.metrics, self._rows, strict=True)])

    def _line(self, metric: AgenticMetric, rows: Sequence[EvidenceRow]) -> dict[str, object]:
        first = rows[0]
        right = [row for row in rows if row.answer_score is not None and row.answer_score >= metric.threshold]
        values = metric.model_dump(exclude={"correctness_scores", "correct_indices", "tool_correctness_scores"})
        identity = {"agent": first.agent, "session_id": first.session_id, "task": first.task, "trial": first.trial}
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
            Those of `count_outcomes`. By default the thresholds are those of the run, and the indicator is ``joint``
            if the run required tools, else ``answer``.

        Returns
        -------
        xarray.Dataset
        """
        return count_outcomes(self.evidence, **self._settings.counting | arguments)

    def estimate(self, **arguments: Any) -> Estimate:
        """Estimate pass@k and pass^k of the agents, by default from their conversations.

        Parameters
        ----------
        **arguments
            Those of `count_outcomes`, as for `outcomes`, and those of `estimate`. By default `k` is 1, …, k of the
            run.

        Returns
        -------
        Estimate
        """
        from agentic_bayes.estimation.estimate import estimate

        counting = {name: arguments.pop(name) for name in _COUNTING if name in arguments}
        return estimate(self.outcomes(**counting), **{"k": tuple(range(1, self._settings.k + 1))} | arguments)


_COUNTING = ("unit", "indicator", "threshold", "tool_threshold", "agents", "errors", "group", "weight")


def _value_and_limits(value: float, low: float | None, high: float | None) -> list[str]:
    return [formatting.format_number(value), formatting.format_interval(low, high)]


def _mean(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else math.nan


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
