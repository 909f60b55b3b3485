"""The waist: scored interactions become counts, one `xarray.Dataset` that is all an estimate needs.

Dims ``(agent, task)``; integer variables ``successes``, ``trials``, ``unscored`` and ``errored`` (the part of
``unscored`` that is due to a crashed agent); attributes say what was counted: ``unit``, ``indicator``,
``threshold``, ``tool_threshold``, ``judge``, ``source``, and ``tool_rubric`` where tool verdicts were looked at.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, assert_never, get_args

import numpy as np

from agentic_bayes.errors import InvalidArgument, OutcomesError, UnknownName, check_choice, check_type
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.row import EvidenceRow
from agentic_bayes.evidence.score import Score
from agentic_bayes.evidence.tool_rubric import ROUNDING

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "IndicatorRule",
    "Unit",
    "Verdict",
    "allowed_differences",
    "check_indicator",
    "check_outcomes",
    "combine_outcomes",
    "count_outcomes",
    "dataset_from_counts",
    "differing",
    "metric_threshold",
]

Unit = Literal["conversation", "interaction", "question"]
Errors = Literal["unscored", "fail", "bounds"]
Agents = Literal["separate", "together"]
Verdict = Literal["pass", "fail", "unscored", "errored"]

METRIC_THRESHOLD = 0.5
TOOL_DIMENSIONS = ("selection", "parameters", "sequence", "utilization")
INDICATORS = ("answer", "tools", "joint", *TOOL_DIMENSIONS)
COUNTS = ("successes", "trials", "unscored", "errored")
LARGEST = 2**53  # from here on a float cannot tell neighbouring whole numbers apart


@dataclass(frozen=True, slots=True)
class IndicatorRule:
    """How a scored interaction becomes a verdict.

    Attributes
    ----------
    indicator : str
        ``answer``, ``tools``, ``joint``, a dimension of the tool rubric, or the name of a metric.
    threshold, tool_threshold : float
        In [0, 1].
    metric_threshold : float
        Of the metric that is the indicator, if it is one.
    errors : {"unscored", "fail", "bounds"}
        Whether a crashed agent failed (``fail``) or is ``errored``.
    """

    indicator: str
    threshold: float
    tool_threshold: float
    metric_threshold: float = METRIC_THRESHOLD
    errors: Errors = "unscored"

    def verdict(self, row: EvidenceRow) -> Verdict | None:
        """The verdict on one interaction; None where this indicator does not look at it."""
        about_tools = self.indicator in ("tools", *TOOL_DIMENSIONS)
        if about_tools and row.tool_overall is None and not row.tools_unscored:
            return None
        if row.crashed:
            return "fail" if self.errors == "fail" else "errored"
        match self.indicator:
            case "answer":
                return self._answer(row)
            case "tools":
                return self._tools(row)
            case "joint":
                return worst([self._answer(row), self._tools(row)])
            case name if name in TOOL_DIMENSIONS:
                score = getattr(row, name)
                return "unscored" if score is None else self._reached(score)
            case name:
                grade = row.metrics.get(name)
                if not isinstance(grade, Score):
                    return "unscored"
                return "pass" if grade.value >= self.metric_threshold else "fail"

    def whole(self, rows: Sequence[EvidenceRow], verdicts: Sequence[Verdict | None]) -> Verdict | None:
        """The verdict on a conversation from the verdicts on its interactions."""
        verdict = worst(verdicts)
        if verdict == "pass" and any(row.crashed for row in rows):
            return "fail" if self.errors == "fail" else "errored"  # it ended early: not all of it is known
        return verdict

    def _answer(self, row: EvidenceRow) -> Verdict:
        if row.answer_score is None:
            return "unscored"
        return "pass" if row.answer_score >= self.threshold else "fail"

    def _tools(self, row: EvidenceRow) -> Verdict | None:
        if row.tool_overall is None:
            return "unscored" if row.tools_unscored else None
        return self._reached(row.tool_overall)

    def _reached(self, score: float) -> Verdict:
        return "pass" if score >= self.tool_threshold - ROUNDING else "fail"


WORST_FIRST: tuple[Verdict, ...] = ("fail", "errored", "unscored", "pass")


def worst(verdicts: Iterable[Verdict | None]) -> Verdict | None:
    """The verdict on a whole from the verdicts on its parts: failed, else errored, else unscored, else passed."""
    given = set(verdicts)
    for verdict in WORST_FIRST:
        if verdict in given:
            return verdict
    return None


def count_outcomes(
    evidence: Evidence,
    *,
    unit: Unit = "conversation",
    indicator: str = "answer",
    threshold: float = 0.7,
    tool_threshold: float = 1.0,
    agents: Agents = "separate",
    errors: Errors = "unscored",
) -> xr.Dataset:
    """Count successes, trials and unscored trials per agent and task.

    Parameters
    ----------
    evidence : Evidence
        Scored interactions.
    unit : {"conversation", "interaction", "question"}
        What a trial is. ``conversation``: task = the task, a trial passes if all its interactions do.
        ``interaction``: task = one conversation (its session_id), trials = its turns. ``question``: task = a
        qa_id, trials = the responses to it.
    indicator : str
        ``answer`` (judge ≥ threshold), ``tools`` (rubric ≥ tool_threshold, only interactions that have a tool
        verdict), ``joint`` (both; equal to ``answer`` where there is no tool verdict), one dimension of the rubric
        (``selection``, ``parameters``, ``sequence``, ``utilization`` ≥ tool_threshold), or the name of a metric in
        the evidence, cut at its own threshold (.5 unless it was made with another one).
    threshold, tool_threshold : float
        In [0, 1]; ``>=``, the latter with a tolerance of 1e-9.
    agents : {"separate", "together"}
        ``together`` counts all assistants as one agent named ``all``.
    errors : {"unscored", "fail", "bounds"}
        A crashed agent is unscored, or a failure; ``bounds`` leaves it unscored and adds the variables
        ``lower_bound`` and ``upper_bound``: the share of passes if all errored trials had failed or passed.

    Returns
    -------
    xarray.Dataset
        Dims (agent, task), labels in natural order. ``attrs["left_out"]`` counts conversations (for ``tools``)
        without any tool verdict.

    Raises
    ------
    InvalidArgument
        If an argument is outside what is allowed.
    OutcomesError
        If nothing is left to count.
    """
    check_type("evidence", evidence, Evidence, "assess() makes one")
    check_choice("unit", unit, get_args(Unit))
    check_choice("agents", agents, get_args(Agents))
    check_choice("errors", errors, get_args(Errors))
    rule = IndicatorRule(
        indicator=check_indicator(indicator, evidence),
        threshold=_check_threshold(threshold, "threshold"),
        tool_threshold=_check_threshold(tool_threshold, "tool_threshold"),
        metric_threshold=metric_threshold(evidence, indicator),
        errors=errors,
    )
    cells, left_out = _cells(evidence, rule, unit, agents)
    if not cells:
        raise OutcomesError(f"no conversation has a verdict for indicator {indicator!r}: nothing to count")
    counts = {
        key: (c["pass"], c["pass"] + c["fail"], c["unscored"] + c["errored"], c["errored"]) for key, c in cells.items()
    }
    attrs = {
        "unit": unit,
        "indicator": indicator,
        "threshold": rule.threshold if indicator in INDICATORS else rule.metric_threshold,
        "tool_threshold": rule.tool_threshold,
        "judge": "; ".join(sorted({row.graders.get(indicator, row.judge) for row in evidence.rows})),
        "source": "evidence",
        "errors": errors,
        "left_out": left_out,
    }
    if indicator in ("tools", "joint", *TOOL_DIMENSIONS):
        attrs["tool_rubric"] = "; ".join(sorted({row.tool_rubric for row in evidence.rows}))
    ds = dataset_from_counts(counts, attrs)
    return _with_bounds(ds) if errors == "bounds" else ds


def _cells(
    evidence: Evidence, rule: IndicatorRule, unit: Unit, agents: Agents
) -> tuple[dict[tuple[str, str], Counter[Verdict]], int]:
    """Verdicts per (agent, task), and the number of conversations that have none."""
    cells: dict[tuple[str, str], Counter[Verdict]] = defaultdict(Counter)
    left_out = 0
    shared_sessions = agents == "together" and _sessions_repeat(evidence)
    for rows in _conversations(evidence):
        first = rows[0]
        agent = "all" if agents == "together" else first.agent
        verdicts = [rule.verdict(row) for row in rows]
        if all(verdict is None for verdict in verdicts):
            left_out += 1
            continue
        match unit:
            case "conversation":
                counted = [(first.task, rule.whole(rows, verdicts))]
            case "interaction":
                label = f"{first.agent}/{first.session_id}" if shared_sessions else first.session_id
                counted = [(label, verdict) for verdict in verdicts]
            case "question":
                counted = [(row.qa_id, verdict) for row, verdict in zip(rows, verdicts, strict=True)]
            case _:
                assert_never(unit)
        for task, verdict in counted:
            if verdict is not None:
                cells[agent, task][verdict] += 1
    return cells, left_out


def _conversations(evidence: Evidence) -> Iterable[list[EvidenceRow]]:
    """The rows, conversation by conversation."""
    groups: dict[tuple[str, str, int], list[EvidenceRow]] = defaultdict(list)
    for row in evidence.rows:
        groups[row.agent, row.task, row.trial].append(row)
    return groups.values()


def _sessions_repeat(evidence: Evidence) -> bool:
    """Whether two agents use one session_id."""
    owner: dict[str, str] = {}
    return any(owner.setdefault(row.session_id, row.agent) != row.agent for row in evidence.rows)


def _with_bounds(ds: xr.Dataset) -> xr.Dataset:
    total = ds["trials"] + ds["errored"]
    known = total.where(total > 0)
    return ds.assign(lower_bound=ds["successes"] / known, upper_bound=(ds["successes"] + ds["errored"]) / known)


def _check_threshold(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise InvalidArgument(f"{name} must be a number in [0, 1], got {value!r}")
    return float(value)


def metric_threshold(evidence: Evidence, metric: str) -> float:
    """From which score on a metric counts as passed: what its scores say, and .5 where they say nothing.

    Parameters
    ----------
    evidence : Evidence
        Scored interactions.
    metric : str
        Name of the metric.

    Returns
    -------
    float

    Raises
    ------
    OutcomesError
        If its scores were made with different thresholds, or one of these is no number in [0, 1].
    """
    grades = (row.metrics.get(metric) for row in evidence.rows)
    said = [grade.details.get("threshold", METRIC_THRESHOLD) for grade in grades if isinstance(grade, Score)]
    for value in said:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise OutcomesError(f"metric {metric!r}: threshold must be a number in [0, 1], got {value!r}")
    given = sorted(set(map(float, said)))
    if len(given) > 1:
        raise OutcomesError(f"metric {metric!r} was scored with different thresholds: {', '.join(map(str, given))}")
    return given[0] if given else METRIC_THRESHOLD


def check_indicator(indicator: object, evidence: Evidence) -> str:
    """Refuse what is no indicator of this evidence.

    Parameters
    ----------
    indicator : str
        Its name.
    evidence : Evidence
        Has the metrics.

    Returns
    -------
    str

    Raises
    ------
    UnknownName
        If there is no such indicator.
    """
    metrics = sorted({name for row in evidence.rows for name in row.metrics})
    if not isinstance(indicator, str) or indicator not in (*INDICATORS, *metrics):
        raise UnknownName("indicator", indicator, (*INDICATORS, *metrics))
    return indicator


def natural_key(label: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Sort key that puts "task 2" before "task 10"."""
    parts = re.findall(r"0*([0-9]+)|([^0-9]+)", label)
    # of two numbers without leading zeros the longer one is larger; numbers come before text
    return tuple((1, 0, text) if text else (0, len(digits), digits) for digits, text in parts), label


def natural_order(labels: Sequence[str]) -> list[int]:
    """Positions of the labels in natural order; quick where they are numbered, as many thousands of them are."""
    prefix = labels[0].rstrip("0123456789") if labels else ""
    numbers = [label.removeprefix(prefix) if label.startswith(prefix) else "" for label in labels]
    if all(number.isascii() and number.isdigit() and len(number) < 19 for number in numbers):
        return sorted(range(len(labels)), key=lambda i: (int(numbers[i]), labels[i]))
    return sorted(range(len(labels)), key=lambda i: natural_key(labels[i]))


def dataset_from_counts(
    counts: Mapping[tuple[str, str], tuple[int, int, int, int]], attrs: Mapping[str, Any]
) -> xr.Dataset:
    """Counts per (agent, task) as the outcomes dataset.

    Parameters
    ----------
    counts : mapping
        (agent, task) → (successes, trials, unscored, errored). Cells that are missing were never attempted.
    attrs : mapping
        What was counted.

    Returns
    -------
    xarray.Dataset
    """
    import xarray as xr

    agents = sorted({agent for agent, _ in counts}, key=natural_key)
    tasks = sorted({task for _, task in counts}, key=natural_key)
    row = {agent: i for i, agent in enumerate(agents)}
    column = {task: i for i, task in enumerate(tasks)}
    values = np.zeros((len(COUNTS), len(agents), len(tasks)), dtype=np.int64)
    for (agent, task), cell in counts.items():
        values[:, row[agent], column[task]] = cell
    return xr.Dataset(
        {name: (("agent", "task"), values[i]) for i, name in enumerate(COUNTS)},
        coords={"agent": np.asarray(agents, dtype=object), "task": np.asarray(tasks, dtype=object)},
        attrs=dict(attrs),
    )


def check_outcomes(outcomes: xr.Dataset) -> xr.Dataset:
    """Check an outcomes dataset, also one built by hand.

    Parameters
    ----------
    outcomes : xarray.Dataset
        Dims (agent, task) with text labels, integer variables ``successes`` and ``trials``; ``unscored`` and
        ``errored`` are 0 where absent, ``unit`` is ``conversation`` and ``indicator`` ``correct`` where not said.

    Returns
    -------
    xarray.Dataset
        A complete copy, dims in the order (agent, task), labels in natural order.

    Raises
    ------
    OutcomesError
        With everything that is wrong.
    """
    import xarray as xr

    if not isinstance(outcomes, xr.Dataset):
        raise OutcomesError(
            f"outcomes must be an xarray.Dataset (count_outcomes or outcomes_from_table make one), "
            f"got {type(outcomes).__name__}"
        )
    wrong: list[str] = []
    for dim in ("agent", "task"):
        if dim not in outcomes.dims:
            wrong.append(f"dimension {dim!r} is missing; dims are {tuple(map(str, outcomes.dims))}")
        elif dim not in outcomes.coords:
            wrong.append(f"dimension {dim!r} has no labels")
        elif outcomes.sizes[dim] == 0:
            wrong.append(f"there is no {dim}")
        elif len({str(label) for label in outcomes[dim].values}) != outcomes.sizes[dim]:
            wrong.append(f"labels of {dim!r} are not unique")
    for name in ("successes", "trials"):
        if name not in outcomes:
            wrong.append(f"variable {name!r} is missing; variables are {sorted(map(str, outcomes.data_vars))}")
    for name in COUNTS:
        if name in outcomes:
            values = outcomes[name]
            if set(values.dims) != {"agent", "task"}:
                wrong.append(f"{name!r} must have dims (agent, task), got {values.dims}")
            elif values.dtype.kind not in "iu":
                wrong.append(f"{name!r} must hold integers, got {values.dtype}")
            elif values.size and int(values.min()) < 0:
                wrong.append(f"{name!r} must be ≥ 0, got {int(values.min())}")
            elif values.size and int(values.max()) >= LARGEST:
                wrong.append(f"{name!r} must be < 2^53, got {int(values.max())}")
    if not wrong and bool((outcomes["successes"] > outcomes["trials"]).any()):
        wrong.append("successes must not exceed trials")
    if wrong:
        raise OutcomesError("outcomes are not valid: " + "; ".join(wrong))
    complete = outcomes.transpose("agent", "task", ...)
    zeros = xr.zeros_like(complete["trials"])
    labels = {dim: [str(label) for label in complete[dim].values] for dim in ("agent", "task")}
    complete = complete.assign(
        {name: complete[name].astype(np.int64) if name in complete else zeros for name in COUNTS}
    ).assign_coords({dim: np.asarray(names, dtype=object) for dim, names in labels.items()})
    if bool((complete["errored"] > complete["unscored"]).any()):
        raise OutcomesError("outcomes are not valid: errored must not exceed unscored, of which it is a part")
    # the order of the labels decides which random number belongs to which cell
    complete = complete.isel({dim: natural_order(names) for dim, names in labels.items()})
    return complete.assign_attrs({"unit": "conversation", "indicator": "correct"} | dict(outcomes.attrs))


# what two sets of outcomes must share to be counted together
SHARED = ("unit", "indicator", "threshold", "tool_threshold", "judge", "tool_rubric", "errors")
# the attribute that names those in which combined outcomes differ
DIFFERING = "differing"


def combine_outcomes(
    *outcomes: xr.Dataset, names: Iterable[str] | None = None, allow: Iterable[str] = ()
) -> xr.Dataset:
    """Put several outcomes side by side: the union of their agents and tasks.

    Parameters
    ----------
    *outcomes : xarray.Dataset
        Outcomes to combine.
    names : iterable of str, optional
        One name per dataset: the agent's name where it has one agent, else a prefix of its agents' names.
    allow : iterable of str
        Attributes that may differ (``"judge"``, ``"threshold"``, …). A difference is kept in the attribute as
        "a | b", and the attribute ``differing`` names it, so that everything made from the result says so.

    Returns
    -------
    xarray.Dataset
        Trials are 0 where an agent never attempted a task.

    Raises
    ------
    OutcomesError
        If an agent occurs twice, or an attribute differs that must not.
    """
    if not outcomes:
        raise OutcomesError("combine_outcomes needs at least one outcomes dataset, got none")
    allowed = (allow,) if isinstance(allow, str) else tuple(allow)
    for name in allowed:
        check_choice("attribute to allow", name, SHARED)
    checked = [check_outcomes(ds) for ds in outcomes]
    labels = [None] * len(checked) if names is None else [names] if isinstance(names, str) else list(names)
    if len(labels) != len(checked):
        raise InvalidArgument(f"names must hold one name per dataset ({len(checked)}), got {len(labels)}")
    counts: dict[tuple[str, str], tuple[int, int, int, int]] = {}
    seen: dict[str, int] = {}
    for position, (ds, label) in enumerate(zip(checked, labels, strict=True)):
        single = ds.sizes["agent"] == 1
        for i, agent in enumerate(ds["agent"].values):
            name = agent if label is None else (label if single else f"{label}/{agent}")
            if name in seen:
                raise OutcomesError(
                    f"agent {name!r} occurs in dataset {seen[name]} and {position}: give `names` to tell them apart"
                )
            seen[name] = position
            cells = np.stack([ds[variable].values[i] for variable in COUNTS])
            for j, task in enumerate(ds["task"].values):
                counts[name, task] = (int(cells[0, j]), int(cells[1, j]), int(cells[2, j]), int(cells[3, j]))
    attrs = _combined_attrs(checked, allowed)
    ds = dataset_from_counts(counts, attrs)
    return _with_bounds(ds) if attrs.get("errors") == "bounds" else ds


def _combined_attrs(checked: Sequence[xr.Dataset], allowed: Sequence[str]) -> dict[str, Any]:
    """What was counted, of all datasets; a difference is kept as "a | b", and refused where it is not allowed."""
    attrs: dict[str, Any] = {}
    apart = {name for ds in checked for name in differing(ds)}
    for key in dict.fromkeys(key for ds in checked for key in ds.attrs if key != DIFFERING):
        values = list(dict.fromkeys(ds.attrs.get(key) for ds in checked))
        if key == "left_out":
            attrs[key] = sum(int(ds.attrs.get(key, 0)) for ds in checked)
        elif len(values) == 1:
            attrs[key] = values[0]
        elif key in SHARED and key not in allowed:
            raise OutcomesError(
                f"outcomes differ in {key!r}: {', '.join(map(repr, values))}; "
                f"allow=({key!r},) combines them all the same and says so everywhere"
            )
        else:
            attrs[key] = " | ".join(map(str, values))
            apart |= {key} & set(SHARED)
    return attrs | ({DIFFERING: ", ".join(sorted(apart))} if apart else {})


def differing(outcomes: xr.Dataset) -> list[str]:
    """Names of the attributes in which combined outcomes differ although they were allowed to be combined."""
    return [name for name in str(outcomes.attrs.get(DIFFERING, "")).split(", ") if name]


def allowed_differences(outcomes: xr.Dataset) -> str:
    """What the counts of different agents do not share, in words; empty where they are counted alike.

    Parameters
    ----------
    outcomes : xarray.Dataset
        Counts, perhaps from `combine_outcomes` with `allow`.

    Returns
    -------
    str
        Such as ``"not counted alike: judge differs (a | b)"``.
    """
    named = [f"{name} differs ({outcomes.attrs[name]})" for name in differing(outcomes)]
    return f"not counted alike: {', '.join(named)}" if named else ""
