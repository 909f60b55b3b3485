"""Turns scored interactions into outcomes: counts in one `xarray.Dataset`, as `dataset` describes it."""

from __future__ import annotations

import itertools
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, assert_never, get_args

from agentic_bayes.checks import check_choice, check_probability, check_type
from agentic_bayes.errors import InvalidArgument, OutcomesError
from agentic_bayes.evidence.evidence import Evidence, EvidenceFile, NotInOrder
from agentic_bayes.evidence.row import EvidenceRow
from agentic_bayes.evidence.score import ROUNDING, Score
from agentic_bayes.outcomes.coordinates import METADATA, TaskColumns, by_task, check_columns, column_name
from agentic_bayes.outcomes.dataset import dataset_from_counts
from agentic_bayes.outcomes.missing import ErrorHandling, with_errors_as

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["count_outcomes"]

Unit = Literal["conversation", "interaction", "question"]
AgentGrouping = Literal["separate", "together"]
TrialVerdict = Literal["pass", "fail", "unscored", "errored"]

METRIC_THRESHOLD = 0.5
TOOL_DIMENSIONS = ("selection", "parameters", "sequence", "utilization")
INDICATORS = ("answer", "tools", "joint", *TOOL_DIMENSIONS)


@dataclass(frozen=True, slots=True)
class IndicatorRule:
    """How to turn a scored interaction into a verdict."""

    indicator: str  # ``answer``, ``tools``, ``joint``, a dimension of the tool rubric, or the name of a metric
    threshold: float  # in [0, 1]
    tool_threshold: float
    metric_threshold: float = METRIC_THRESHOLD  # of the metric, if the indicator is one
    errors: ErrorHandling = "unscored"  # whether a crashed agent failed (``fail``) or is ``errored``

    def verdict(self, row: EvidenceRow) -> TrialVerdict | None:
        """The verdict on one interaction; None if this indicator does not apply to it."""
        about_tools = self.indicator in ("tools", *TOOL_DIMENSIONS)
        if about_tools and row.tool_overall is None and not row.tools_unscored:
            return None
        if row.crashed:
            return "fail" if self.errors == "fail" else "errored"
        if self.indicator not in INDICATORS:
            grade = row.metrics.get(self.indicator)
            return _reached(grade.value if isinstance(grade, Score) else None, self.metric_threshold)
        answer = _reached(row.answer_score, self.threshold)
        tool_score = row.tool_overall if self.indicator in ("tools", "joint") else getattr(row, self.indicator, None)
        tools = _reached(tool_score, self.tool_threshold - ROUNDING)
        if self.indicator == "answer":
            return answer
        if self.indicator == "joint":  # without tools to judge, the answer alone decides
            return worst([answer, tools if tool_score is not None or row.tools_unscored else None])
        return tools

    def whole(self, rows: Sequence[EvidenceRow], verdicts: Sequence[TrialVerdict | None]) -> TrialVerdict | None:
        """The verdict on a conversation from the verdicts on its interactions."""
        verdict = worst(verdicts)
        if verdict == "pass" and any(row.crashed for row in rows):
            return "fail" if self.errors == "fail" else "errored"  # it ended early, so part of it is unknown
        return verdict


def _reached(score: float | None, threshold: float) -> TrialVerdict:
    if score is None:
        return "unscored"
    return "pass" if score >= threshold else "fail"


WORST_FIRST: tuple[TrialVerdict, ...] = ("fail", "errored", "unscored", "pass")


def worst(verdicts: Iterable[TrialVerdict | None]) -> TrialVerdict | None:
    """The verdict on a whole from the verdicts on its parts: failed, else errored, else unscored, else passed."""
    present = set(verdicts)
    return next((verdict for verdict in WORST_FIRST if verdict in present), None)


def count_outcomes(
    evidence: Evidence | str | os.PathLike[str],
    *,
    unit: Unit = "conversation",
    indicator: str = "answer",
    threshold: float = 0.7,
    tool_threshold: float = 1.0,
    agents: AgentGrouping = "separate",
    errors: ErrorHandling = "unscored",
    group: str | None = None,
    weight: str | None = None,
) -> xr.Dataset:
    """Count successes, trials and unscored trials per agent and task.

    Parameters
    ----------
    evidence : Evidence or path
        Scored interactions, or a file of them. A file as `Evidence.write` writes it is counted row by row, so it may be
        larger than memory; in another order its rows are read as a whole.
    unit : {"conversation", "interaction", "question"}
        The unit to count as a trial. ``conversation``: task = the task; a trial passes if all its interactions do.
        ``interaction``: task = one conversation (its session_id), trials = its turns. ``question``: task = a qa_id,
        trials = the responses to it.
    indicator : str
        ``answer`` (judge ≥ threshold), ``tools`` (rubric ≥ tool_threshold, only interactions with a tool verdict),
        ``joint`` (both; equal to ``answer`` without a tool verdict), one dimension of the rubric (``selection``,
        ``parameters``, ``sequence``, ``utilization`` ≥ tool_threshold), or the name of a metric in the evidence, cut
        at its own threshold (default: .5).
    threshold, tool_threshold : float
        Minimum scores for a success, in [0, 1]; the latter with a tolerance of 1e-9.
    agents : {"separate", "together"}
        ``together`` counts all assistants as one agent named ``all``.
    errors : {"unscored", "fail", "bounds"}
        Whether a crashed agent is unscored or a failure; ``bounds`` leaves it unscored and adds the variables
        ``lower_bound`` and ``upper_bound``: the share of passes if all errored trials had failed or passed.
    group, weight : str, optional
        Fields of the conversations' metadata (``"metadata.domain"``, ``"metadata.sample.level"``) that say to which
        group a task belongs, or how much it weighs (a number ≥ 0). A task has one value, and every task has one; both
        are kept as coordinates of the tasks under their last name (``domain``), for
        `estimate(..., by=…, weights=…)`.

    Returns
    -------
    xarray.Dataset
        Dims (agent, task), labels in natural order. ``attrs["left_out"]`` counts conversations without any verdict
        (with ``tools``: without any tool verdict).

    Raises
    ------
    InvalidArgument
        If an argument is outside what is allowed.
    OutcomesError
        If there is nothing to count, or a task has no group or two.
    EvidenceError
        If the file cannot be read; the message lists all problems.
    """
    arguments = (unit, indicator, threshold, tool_threshold, agents, errors, group, weight)
    if isinstance(evidence, (str, os.PathLike)):
        try:
            return _counted(EvidenceFile(Path(evidence)), *arguments)
        except NotInOrder:
            evidence = Evidence.read(evidence)
    check_type("evidence", evidence, Evidence, "assess() makes one")
    return _counted(evidence, *arguments)


def _counted(
    evidence: Evidence | EvidenceFile,
    unit: Unit,
    indicator: str,
    threshold: float,
    tool_threshold: float,
    agents: AgentGrouping,
    errors: ErrorHandling,
    group: str | None,
    weight: str | None,
) -> xr.Dataset:
    """Count the rows of evidence in memory or in its file."""
    check_choice("unit", unit, get_args(Unit))
    check_choice("agents", agents, get_args(AgentGrouping))
    check_choice("errors", errors, get_args(ErrorHandling))
    rule = IndicatorRule(
        indicator=check_indicator(indicator, evidence),
        threshold=check_probability(threshold, "threshold"),
        tool_threshold=check_probability(tool_threshold, "tool_threshold"),
        metric_threshold=metric_threshold(evidence, indicator),
    )
    asked = check_columns(group, weight)
    cells, left_out, graders = _cells(evidence, rule, unit, agents)
    if not cells:
        raise OutcomesError(f"no conversation has a verdict for indicator {indicator!r}, so there is nothing to count")
    counts = {
        key: (c["pass"], c["pass"] + c["fail"], c["unscored"] + c["errored"], c["errored"]) for key, c in cells.items()
    }
    attrs = {
        "unit": unit,
        "indicator": indicator,
        "threshold": rule.threshold if indicator in INDICATORS else rule.metric_threshold,
        "tool_threshold": rule.tool_threshold,
        "judge": "; ".join(sorted({judge for judge, _ in graders})),
        "source": "evidence",
        "errors": errors,
        "left_out": left_out,
    }
    if indicator in ("tools", "joint", *TOOL_DIMENSIONS):
        attrs["tool_rubric"] = "; ".join(sorted({rubric for _, rubric in graders}))
    ds = dataset_from_counts(counts, attrs, _columns(evidence, unit, agents, asked, {task for _, task in cells}))
    return with_errors_as(ds, errors)


def _cells(
    evidence: Evidence | EvidenceFile, rule: IndicatorRule, unit: Unit, agents: AgentGrouping
) -> tuple[dict[tuple[str, str], Counter[TrialVerdict]], int, set[tuple[str, str]]]:
    """Verdicts per (agent, task), the number of conversations that have none, and the pairs of judge and rubric."""
    cells: dict[tuple[str, str], Counter[TrialVerdict]] = defaultdict(Counter)
    left_out = 0
    graders: set[tuple[str, str]] = set()
    name_of = _task_names(evidence, unit, agents)
    for rows in _conversations(evidence):
        agent = "all" if agents == "together" else rows[0].agent
        graders |= {(row.graders.get(rule.indicator, row.judge), row.tool_rubric) for row in rows}
        verdicts = [rule.verdict(row) for row in rows]
        if all(verdict is None for verdict in verdicts):
            left_out += 1
            continue
        match unit:
            case "conversation":
                counted = [(name_of(rows[0]), rule.whole(rows, verdicts))]
            case "interaction" | "question":
                counted = [(name_of(row), verdict) for row, verdict in zip(rows, verdicts, strict=True)]
            case _:
                assert_never(unit)
        for task, verdict in counted:
            if verdict is not None:
                cells[agent, task][verdict] += 1
    return cells, left_out, graders


def _task_names(evidence: Evidence | EvidenceFile, unit: Unit, agents: AgentGrouping) -> Callable[[EvidenceRow], str]:
    """How the task of a row is called in this unit."""
    if unit == "conversation":
        return lambda row: row.task
    if unit == "question":
        return lambda row: row.qa_id
    if agents == "together" and _sessions_repeat(evidence):
        return lambda row: f"{row.agent}/{row.session_id}"
    return lambda row: row.session_id


def _columns(
    evidence: Evidence | EvidenceFile, unit: Unit, agents: AgentGrouping, asked: Mapping[str, str], counted: set[str]
) -> TaskColumns:
    """Group and weight of every task that was counted, from the metadata of its conversations."""
    name_of = _task_names(evidence, unit, agents)
    problems: list[str] = []
    columns = {}
    for path, role in asked.items():
        tasks, values = [], []
        for rows in _conversations(evidence):
            value = _field(next((row.metadata for row in rows if row.metadata), {}), path)
            for task in dict.fromkeys(map(name_of, rows)):
                if task in counted:
                    tasks.append(task)
                    values.append(value)
        columns[column_name(path)] = by_task(tasks, values, path, role, problems)
    if problems:
        raise OutcomesError("; ".join(problems))
    return columns


def _field(metadata: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path, or None."""
    if not path.startswith(METADATA):
        raise InvalidArgument(f'group and weight must be fields of the metadata, like "metadata.domain", got {path!r}')
    found: Any = metadata
    for part in path.removeprefix(METADATA).split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _conversations(evidence: Evidence | EvidenceFile) -> Iterator[list[EvidenceRow]]:
    """The rows, conversation by conversation: they stand in this order."""
    for _, rows in itertools.groupby(evidence.rows, key=lambda row: row.key[:3]):
        yield list(rows)


def _sessions_repeat(evidence: Evidence | EvidenceFile) -> bool:
    """Whether two agents use one session_id."""
    owner: dict[str, str] = {}
    return any(owner.setdefault(row.session_id, row.agent) != row.agent for row in evidence.rows)


def metric_threshold(evidence: Evidence | EvidenceFile, metric: str) -> float:
    """The minimum score for a metric to pass: the one in its scores' details, else .5."""
    if metric in INDICATORS:
        return METRIC_THRESHOLD
    grades = (row.metrics.get(metric) for row in evidence.rows)
    thresholds = [grade.details.get("threshold", METRIC_THRESHOLD) for grade in grades if isinstance(grade, Score)]
    for value in thresholds:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise OutcomesError(f"metric {metric!r}: threshold must be a number in [0, 1], got {value!r}")
    distinct = sorted(set(map(float, thresholds)))
    if len(distinct) > 1:
        raise OutcomesError(f"metric {metric!r} was scored with different thresholds: {', '.join(map(str, distinct))}")
    return distinct[0] if distinct else METRIC_THRESHOLD


def check_indicator(indicator: object, evidence: Evidence | EvidenceFile) -> str:
    """Refuse anything but an indicator of this evidence, and name the nearest."""
    if indicator not in INDICATORS:
        metrics = sorted({name for row in evidence.rows for name in row.metrics})
        check_choice("indicator", indicator, (*INDICATORS, *metrics))
    return str(indicator)
