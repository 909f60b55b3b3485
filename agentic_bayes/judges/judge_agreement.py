"""How far several judges of the same answers agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from agentic_bayes.checks import check_choice, check_probability, check_type
from agentic_bayes.errors import EvidenceError, InvalidArgument
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.metrics.registry import metric_names
from agentic_bayes.evidence.row import EvidenceRow
from agentic_bayes.evidence.score import Score
from agentic_bayes.judges.agreement import Agreement, agreement
from agentic_bayes.records.base import short

__all__ = ["judge_agreement"]

ANSWER = "answer"


def judge_agreement(
    evidence: Evidence,
    *,
    judges: Sequence[str] | None = None,
    threshold: float = 0.7,
    compare: Literal["verdicts", "scores"] = "verdicts",
    ci_prob: float = 0.95,
    resamples: int = 2000,
    random_seed: int = 0,
) -> Agreement:
    """How far several judges of the same answers agree: raw agreement, Cohen's kappa, Krippendorff's alpha.

    Parameters
    ----------
    evidence : Evidence
        From `assess` with further judges among its `metrics`, such as ``LLMJudge(model, name="second")``.
    judges : sequence of str, optional
        "answer" (the judge of `assess`) and names of metrics. Left out: "answer" and all metrics that are not
        trace metrics, which judge something else.
    threshold : float
        From which score on a judge says "right", in [0, 1]; one for all, since they were asked the same.
    compare : {"verdicts", "scores"}
        Right or wrong; or the scores as they are, of which only alpha (at the interval level) makes sense.
    ci_prob : float
        Probability of the intervals, in (0, 1).
    resamples, random_seed : int
        Of the bootstrap, which resamples whole tasks, since attempts of one task are alike.

    Returns
    -------
    Agreement
        An answer that a judge left unscored is not rated by that judge.

    Raises
    ------
    InvalidArgument
        If there are fewer than two judges, or an argument is outside what is allowed.
    EvidenceError
        If no answer was scored by anybody.
    """
    check_type("evidence", evidence, Evidence, "from assess or Evidence.read")
    check_probability(threshold, "threshold")
    check_choice("compare", compare, ("verdicts", "scores"))
    metrics = sorted({name for row in evidence.rows for name in row.metrics})
    if judges is not None and (isinstance(judges, str) or not isinstance(judges, Sequence)):
        raise InvalidArgument(f"judges must be a list of names, got {short(judges)}")
    own = [name for name in metrics if name not in metric_names()]
    names = [ANSWER, *own] if judges is None else list(judges)
    for name in names:
        check_choice("judge", name, (ANSWER, *metrics))
    if len(names) < 2:
        raise InvalidArgument(
            "agreement needs at least two judges: give assess further ones as metrics, such as "
            f'LLMJudge(model, name="second"); got {", ".join(names) or "none"}'
        )
    rows = [row for row in evidence.rows if any(_score(row, name) is not None for name in names)]
    if not rows:
        raise EvidenceError(f"none of the judges {', '.join(names)} scored an answer")
    import pandas as pd

    columns: dict[str, list[Any]] = {name: [_score(row, name) for row in rows] for name in names}
    if compare == "verdicts":
        columns = {
            name: [None if score is None else int(score >= threshold) for score in scores]
            for name, scores in columns.items()
        }
    table = pd.DataFrame({**columns, _TASK: [row.task for row in rows]}, dtype=object)
    return agreement(
        table,
        raters=names,
        level="nominal" if compare == "verdicts" else "interval",
        cluster=_TASK,
        ci_prob=ci_prob,
        resamples=resamples,
        random_seed=random_seed,
    )


_TASK = "\0task"  # no metric has this name


def _score(row: EvidenceRow, judge: str) -> float | None:
    if judge == ANSWER:
        return row.answer_score
    grade = row.metrics.get(judge)
    return grade.value if isinstance(grade, Score) else None
