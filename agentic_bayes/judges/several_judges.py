"""Measures how well several judges of the same answers agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from agentic_bayes.checks import check_choice, check_probability, check_type
from agentic_bayes.errors import EvidenceError, InvalidArgument
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.metrics.registry import metric_names
from agentic_bayes.evidence.row import EvidenceRow
from agentic_bayes.evidence.score import Score
from agentic_bayes.judges.raters import Agreement, agreement
from agentic_bayes.records.base import short

__all__ = ["judge_agreement"]

Compared = Literal["verdicts", "scores"]
ANSWER = "answer"
_TASK = "\0task"  # no metric has this name


def judge_agreement(
    evidence: Evidence,
    *,
    judges: Sequence[str] | None = None,
    threshold: float = 0.7,
    compare: Compared = "verdicts",
    ci_prob: float = 0.95,
    resamples: int = 2000,
    random_seed: int = 0,
) -> Agreement:
    """Measure how far several judges of the same answers agree: raw agreement, Cohen's kappa, Krippendorff's alpha.

    Parameters
    ----------
    evidence : Evidence
        From `assess` with further judges among its `metrics`, for example ``LLMJudge(model, name="second")``.
    judges : sequence of str, optional
        "answer" (the judge of `assess`) and names of metrics. Default: "answer" and all metrics except trace
        metrics, which judge something else.
    threshold : float
        Minimum score for an answer to count as right, in [0, 1]; the same for all judges.
    compare : {"verdicts", "scores"}
        Compare right or wrong; or the scores themselves, for which only alpha (at the interval level) makes sense.
    ci_prob, resamples, random_seed : float, int, int
        As for `agreement`. The bootstrap resamples whole tasks, since attempts of one task are alike.

    Returns
    -------
    Agreement
        Answers that a judge left unscored count as not rated by that judge.

    Raises
    ------
    InvalidArgument
        If there are fewer than two judges, or an argument is outside what is allowed.
    EvidenceError
        If none of the judges scored an answer.
    """
    check_type("evidence", evidence, Evidence, "assess() makes one")
    check_probability(threshold, "threshold")
    check_choice("compare", compare, get_args(Compared))
    metrics = sorted({name for row in evidence.rows for name in row.metrics})
    if judges is not None and (isinstance(judges, str) or not isinstance(judges, Sequence)):
        raise InvalidArgument(f"judges must be a list of names, got {short(judges)}")
    trace_metrics = set(metric_names())
    names = [ANSWER, *(name for name in metrics if name not in trace_metrics)] if judges is None else list(judges)
    for name in names:
        check_choice("judge", name, (ANSWER, *metrics))
    if len(names) < 2:
        raise InvalidArgument(
            "agreement needs at least two judges: give assess() further ones as metrics, for example "
            f'LLMJudge(model, name="second"); got {", ".join(names) or "none"}'
        )
    rows = [row for row in evidence.rows if any(_score(row, name) is not None for name in names)]
    if not rows:
        raise EvidenceError(f"none of the judges {', '.join(names)} scored an answer")
    import pandas as pd

    def rating(row: EvidenceRow, judge: str) -> float | None:
        score = _score(row, judge)
        return score if score is None or compare == "scores" else int(score >= threshold)

    columns: dict[str, list[Any]] = {name: [rating(row, name) for row in rows] for name in names}
    return agreement(
        pd.DataFrame({**columns, _TASK: [row.task for row in rows]}, dtype=object),
        raters=names,
        level="nominal" if compare == "verdicts" else "interval",
        cluster=_TASK,
        ci_prob=ci_prob,
        resamples=resamples,
        random_seed=random_seed,
    )


def _score(row: EvidenceRow, judge: str) -> float | None:
    if judge == ANSWER:
        return row.answer_score
    grade = row.metrics.get(judge)
    return grade.value if isinstance(grade, Score) else None
