"""Is one agent better than another, or than a fixed value? The posterior of the difference of one metric."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from agentic_bayes.checks import check_choice, check_probability, check_rope, check_type
from agentic_bayes.decisions.by_group import GroupDifference, group_differences, group_lines
from agentic_bayes.decisions.classical import ClassicalTest, against_agent, against_value
from agentic_bayes.decisions.decision import Decision, basis_words, described, remarks, summarised
from agentic_bayes.errors import EstimateError, InvalidArgument
from agentic_bayes.estimation.arithmetic import apply_metric
from agentic_bayes.estimation.distribution import CIKind, Drawn
from agentic_bayes.estimation.estimate import Estimate, estimate_as
from agentic_bayes.estimation.methods.options import Crossed
from agentic_bayes.estimation.model_checks import flag_words
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import (
    Metric,
    format_interval,
    format_number,
    format_percent,
    format_points,
    format_share,
    plural,
)
from agentic_bayes.numerics import Array
from agentic_bayes.result_table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "Ratio", "TaskDifference", "compare"]

ComparisonVerdict = Literal["better", "worse", "equivalent", "undecided"]
FEW_SHARED = 15  # shared tasks below which a comparison says so
EQUIVALENT = 0.95  # probability inside the ROPE from which two agents count as equivalent
LIKELY = 0.9  # probability from which a task counts as won or lost
MOST_NAMED = 5  # tasks that a sentence names
TINIEST = 1e-300  # stands for a metric of 0 in a ratio


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two metrics, or of their odds."""

    median: float  # of its posterior, ≥ 0; the interval has the comparison's probability and kind
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{_wide(self.median)} [{_wide(self.lower)}, {_wide(self.upper)}]"


@dataclass(frozen=True, slots=True)
class TaskDifference:
    """The difference of two agents on one task that both attempted."""

    task: str  # its name
    mean: float  # of (agent - baseline) in the comparison's metric and k
    lower: float
    upper: float
    prob_better: float  # probability that the agent's success probability on this task is higher
    successes: int  # counts
    trials: int
    baseline_successes: int
    baseline_trials: int


@dataclass(frozen=True, repr=False)
class Comparison(Decision):
    """The posterior of (agent - baseline), summarised.

    Attributes
    ----------
    agent : str
        Whose metric is compared.
    baseline : str or float
        With whose, or with which fixed value.
    metric : str
        "pass@k" or "pass^k" with a number.
    estimand : {"population", "tasks"}
    mean, lower, upper : float
        Of the difference, in units of probability.
    ci_prob : float
    ci_kind : {"eti", "hdi"}
    prob_better : float
        Probability that the agent's metric is higher; equal draws count for half.
    prob_rope : float
        Probability that the difference lies within `rope`.
    rope : (float, float)
        Ends of the region of practical equivalence.
    expected_loss : float
        What choosing `agent` loses on average: E max(baseline - agent, 0).
    expected_loss_baseline : float
        What choosing `baseline` loses on average.
    ratio, odds_ratio : Ratio
        Of the agent's metric to the baseline's, and of their odds.
    tasks : tuple of TaskDifference
        Every task that both agents have scored trials of, those that the agent most probably lost first. A task counts
        as `lost` or `won` from a probability of .9 on.
    frequentist : ClassicalTest
        A frequentist test of the same question, for comparison.
    pairing : {"tasks", "none"}
        How tasks that both agents attempted enter. ``tasks``: their difficulty is shared, so that the agents are
        compared on the same tasks. ``none``: each agent's tasks are a sample of its own.
    n_shared_tasks : int
        Tasks on which both agents have scored trials.
    n_tasks : int
        Tasks on which the agent has scored trials.
    method : str
        Method of the posterior that was used.
    unit, indicator : str
        What was counted, as the outcomes say.
    flags : tuple of str
        What makes the numbers doubtful; see `Estimate.flags`.
    note : str
        What else a reader must know, or empty.
    draws : ndarray, shape (draws,)
        Of the difference.
    groups : tuple of GroupDifference
        The difference in every group of tasks, where they are grouped.
    """

    derived: ClassVar[tuple[str, ...]] = ("verdict",)

    agent: str
    baseline: str | float
    metric: str
    estimand: Estimand
    mean: float
    lower: float
    upper: float
    ci_prob: float
    ci_kind: CIKind
    prob_better: float
    prob_rope: float
    rope: tuple[float, float]
    expected_loss: float
    expected_loss_baseline: float
    ratio: Ratio
    odds_ratio: Ratio
    tasks: tuple[TaskDifference, ...]
    frequentist: ClassicalTest
    pairing: Literal["tasks", "none"]
    n_shared_tasks: int
    n_tasks: int
    method: str
    unit: str
    indicator: str
    flags: tuple[str, ...]
    note: str
    draws: Array = field(repr=False, compare=False)
    groups: tuple[GroupDifference, ...] = ()

    @property
    def verdict(self) -> ComparisonVerdict:
        """The answer: "better" or "worse" when the interval of the difference excludes 0; "equivalent" when the
        probability inside the ROPE is at least .95; else "undecided", as always where the estimate did not converge.
        """
        if "not_converged" in self.flags:
            return "undecided"
        if self.lower > 0:
            return "better"
        if self.upper < 0:
            return "worse"
        return "equivalent" if self.prob_rope >= EQUIVALENT else "undecided"

    @property
    def lost(self) -> tuple[TaskDifference, ...]:
        """Tasks on which the baseline is better with a probability of at least .9, the surest first."""
        return tuple(one for one in self.tasks if one.prob_better <= 1 - LIKELY)

    @property
    def won(self) -> tuple[TaskDifference, ...]:
        """Tasks on which the agent is better with a probability of at least .9, the surest first."""
        return tuple(one for one in reversed(self.tasks) if one.prob_better >= LIKELY)

    def to_pandas(self) -> pd.DataFrame:
        """The differences by task.

        Returns
        -------
        pandas.DataFrame
            One row per shared task, with the columns of `TaskDifference`.
        """
        import pandas as pd

        return pd.DataFrame([asdict(one) for one in self.tasks], columns=list(TaskDifference.__annotations__))

    def by_group(self) -> pd.DataFrame:
        """The differences by group of tasks.

        Returns
        -------
        pandas.DataFrame
            One row per group, with the columns of `GroupDifference`.
        """
        import pandas as pd

        return pd.DataFrame([asdict(one) for one in self.groups], columns=list(GroupDifference.__annotations__))

    def drivers(self) -> str:
        """The tasks that drive the difference, in a sentence: "v2 lost 1 task: refund (0.970)"; or empty."""
        parts = []
        for word, found in (("lost", self.lost), ("won", self.won)):
            if found:
                sure = [one.prob_better if word == "won" else 1 - one.prob_better for one in found]
                named = [f"{one.task} ({format_number(p)})" for one, p in zip(found, sure, strict=True)][:MOST_NAMED]
                more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
                parts.append(f"{self.agent} {word} {plural(len(found), 'task')}: {', '.join(named)}{more}")
        return "; ".join(parts)

    def __str__(self) -> str:
        where = "new tasks" if self.estimand == "population" else "these tasks"
        if isinstance(self.baseline, str):
            what = f"{self.agent} better on {self.metric}"
            tasks = f"{plural(self.n_shared_tasks, 'task')} both attempted"
        else:
            what, tasks = f"{self.agent}'s {self.metric} above {_shown(self.baseline)}", plural(self.n_tasks, "task")
        return (
            f"{self.headline}: P({what}) = {format_percent(self.prob_better)}, {format_points(self.mean)} points, "
            f"{self.ci_prob * 100:.4g} % interval {format_points(self.lower)} to {format_points(self.upper)} "
            f"({where}; {tasks}){remarks(self.note, self.flags)}"
        )

    @property
    def headline(self) -> str:
        """The verdict in a few words: "v2 is better than v1"."""
        baseline = _shown(self.baseline)
        match self.verdict:
            case "undecided":
                failed = "not_converged" in self.flags
                return "Undecided, since the estimate did not converge" if failed else "Undecided"
            case "equivalent":
                return f"{self.agent} and {baseline} are equivalent within {rope_words(self.rope)}"
            case verdict:
                return f"{self.agent} is {verdict} than {baseline}"

    @property
    def basis(self) -> str:
        """From what it was estimated, and what the interval is."""
        return basis_words(vars(self), paired=f"pairing {self.pairing}; " if isinstance(self.baseline, str) else "")

    def table(self) -> Table:
        """The difference, the probabilities, the ratios and the losses."""
        baseline = _shown(self.baseline)
        rows = [
            [f"P({self.agent} higher than {baseline})", format_share(self.prob_better), ""],
            ["difference", format_number(self.mean), format_interval(self.lower, self.upper)],
            [f"P(difference within {rope_words(self.rope)})", format_share(self.prob_rope), ""],
            *(
                [what, _wide(one.median), f"[{_wide(one.lower)}, {_wide(one.upper)}]"]
                for what, one in (("ratio", self.ratio), ("odds ratio", self.odds_ratio))
            ),
            [f"expected loss of choosing {self.agent}", format_number(self.expected_loss), ""],
            [f"expected loss of choosing {baseline}", format_number(self.expected_loss_baseline), ""],
            *group_lines(self.groups),
        ]
        notes = [
            f"{self.agent} − {baseline} in {self.metric}; posterior mean (median of ratios)",
            self.basis,
            self.drivers() and f"{self.drivers()} (posterior probabilities)",
            f"for comparison, {self.frequentist}",
            self.note,
            *flag_words(self.flags),
        ]
        header = ["quantity", "posterior", "interval"]
        return Table(title=f"Comparison: {self.headline}", header=header, rows=rows, notes=notes)


def rope_words(rope: tuple[float, float]) -> str:
    """A region of practical equivalence in points: "±2 points", "−5 to +2 points"."""
    low, high = rope
    if low == -high:
        return f"±{format_points(high).lstrip('+')} points"
    return f"{format_points(low)} to {format_points(high)} points"


def _wide(value: float) -> str:
    """A number of any size."""
    if math.isnan(value):
        return "–"
    return f"{value:.3g}" if value < 1e6 else ">1e6"


def _shown(baseline: str | float) -> str:
    return baseline if isinstance(baseline, str) else format_number(baseline)


def compare(
    est: Estimate,
    agent: str,
    *,
    baseline: str | float,
    metric: str = "pass^1",
    estimand: Estimand = "population",
    rope: float | tuple[float, float] = 0.02,
    pairing: Literal["auto", "tasks", "none"] = "auto",
    by: str | None = None,
) -> Comparison:
    """Compare an agent with a baseline agent of the same estimate, or with a fixed value.

    Parameters
    ----------
    est : Estimate
        An estimate that holds both agents.
    agent : str
        Name.
    baseline : str or float
        Name of another agent, or a value of the metric in [0, 1].
    metric : str
        What is compared: "pass@k" or "pass^k" with a number, which need not be among the estimate's.
    estimand : {"population", "tasks"}
        On new tasks of this kind, or on the observed tasks.
    rope : float or (float, float)
        Region of practical equivalence: a half-width in [0, 1], or its ends in [-1, 1].
    pairing : {"auto", "tasks", "none"}
        ``auto``: a crossed estimate's own draws; otherwise, when the agents share two tasks or more, a crossed fit of
        these two agents under the default priors, which compares them on the same tasks; else the estimate's own
        draws. ``tasks`` is the same, but an error where there are fewer than two shared tasks. ``none`` always takes
        the estimate's own draws.
    by : str, optional
        Coordinate that groups the tasks, for `Comparison.groups`; default: the estimate's own.

    Returns
    -------
    Comparison

    Raises
    ------
    UnknownName, InvalidArgument
        If an argument is not valid.
    EstimateError
        If the estimate has no posterior or does not define the estimand, or agents share too few tasks to be paired.
    """
    check_type("est", est, Estimate, "estimate() makes one")
    check_choice("pairing", pairing, ("auto", "tasks", "none"))
    wanted, region = Metric(metric), check_rope(rope)
    question: dict[str, Any] = {"metric": wanted, "estimand": estimand}
    if isinstance(baseline, str):
        sides = _pair(est, agent, baseline, pairing)
        own, other = (sides.fit.metric_draws(name, **question) for name in (sides.agent, sides.baseline))
    else:
        baseline = check_probability(baseline, "baseline (a fixed value)")
        if pairing == "tasks":
            raise EstimateError("pairing='tasks' needs a baseline agent, got a fixed value")
        sides = _Sides(est, agent, None, paired=False, shared=0)
        own = est.metric_draws(agent, **question)
        other = np.full(own.shape, baseline)
    if sides.alike:  # neither agent is told from the other by anything that was seen
        own, other = np.concatenate([own, other]), np.concatenate([other, own])
    difference = own - other
    index, interval = est.agent_index(agent), (est.settings.ci_prob, est.settings.ci_kind)
    names = [name for name in (sides.agent, sides.baseline) if name is not None]
    flags = [flag for name in names for flag in sides.fit.flags(name, **question)]
    if isinstance(baseline, str):
        lower, upper = Drawn.of(difference).interval(*interval)
        numbers = float(difference.mean()), float(lower), float(upper)
        better = float(np.mean(difference > 0) + np.mean(difference == 0) / 2)
        test = against_agent(est.counts, index, est.agent_index(baseline), wanted, interval[0])
    else:
        # what the summary says, moved: without Monte-Carlo error where the engine is exact
        mean, lower, upper = summarised(est, agent, wanted, estimand)
        numbers = mean - baseline, lower - baseline, upper - baseline
        better = est.prob_at_least(agent, baseline, **question) - float(np.mean(difference == 0)) / 2
        test = against_value(est.counts, index, baseline, wanted, interval[0])

    def ratio(top: Array, bottom: Array) -> Ratio:
        if not bottom.any():
            return Ratio(math.nan, math.nan, math.nan)  # nothing is a multiple of zero
        drawn = np.exp(np.log(np.maximum(top, TINIEST)) - np.log(np.maximum(bottom, TINIEST)))
        median = float(np.median(drawn))  # the mean may be infinite, and the sd overflow
        return Ratio(median, *Drawn(mean=median, sd=math.nan, values=drawn).interval(*interval))

    return Comparison(
        agent=agent,
        baseline=baseline,
        prob_better=better,
        prob_rope=float(np.mean((region[0] <= difference) & (difference <= region[1]))),
        rope=region,
        expected_loss=float(np.maximum(-difference, 0).mean()),
        expected_loss_baseline=float(np.maximum(difference, 0).mean()),
        ratio=ratio(own, other),
        odds_ratio=ratio(own * (1 - other), other * (1 - own)),
        tasks=_task_differences(sides, wanted) if isinstance(baseline, str) else (),
        frequentist=test,
        pairing="tasks" if sides.paired else "none",
        n_shared_tasks=sides.shared,
        flags=tuple(dict.fromkeys(flags)),
        note="; ".join(filter(None, _notes(est, sides, estimand))),
        draws=difference,
        groups=()
        if sides.baseline is None
        else group_differences(
            sides.fit, sides.agent, sides.fit, sides.baseline, metric=wanted, estimand=estimand, by=by
        ),
        **described(numbers, sides.fit, sides.agent, wanted, estimand),
    )


def _notes(est: Estimate, sides: _Sides, estimand: Estimand) -> Iterator[str]:
    """What a reader must know of the way in which two agents were compared."""
    if sides.baseline is not None:
        if sides.paired and sides.shared < FEW_SHARED:
            yield f"fewer than {FEW_SHARED} shared tasks say little about shared difficulty"
        own, other = (sides.fit.counts.scored[sides.fit.agent_index(name)] for name in (sides.agent, sides.baseline))
        if estimand == "tasks" and not np.array_equal(own, other):
            yield f"the observed tasks are not the same: {own.sum()} and {other.sum()}, {sides.shared} of them shared"
        if sides.fit is not est:
            yield sides.fit.note
    yield est.differences
    if est.settings.judge is not None:
        yield f"{est.judge_note}; agents are not paired by task, and the frequentist test is uncorrected"


@dataclass(frozen=True)
class _Sides:
    """The posterior from which two agents are compared."""

    fit: Estimate  # holds both
    agent: str  # their names in it; no baseline where the other side is a fixed value
    baseline: str | None
    paired: bool  # whether the difficulty of tasks is shared
    shared: int  # tasks on which both have scored trials
    alike: bool = False  # whether the counts of both are the same, task by task


def _pair(est: Estimate, agent: str, baseline: str, pairing: Literal["auto", "tasks", "none"]) -> _Sides:
    """How two agents are compared; refused where they cannot be."""
    both = [est.agent_index(agent), est.agent_index(baseline)]
    if both[0] == both[1]:
        raise InvalidArgument(f"agent and baseline must differ, got {agent!r} for both")
    shared = int(est.counts.scored[both].all(axis=0).sum())
    if pairing == "tasks" and shared < 2:
        raise EstimateError(f"pairing='tasks' needs at least 2 shared tasks, {agent!r} and {baseline!r} share {shared}")
    cells = [part[i] for i in both for part in (est.counts.trials, est.counts.successes)]
    alike = all(np.array_equal(one, other) for one, other in zip(cells[:2], cells[2:], strict=True))
    sides = _Sides(est, agent, baseline, paired=False, shared=shared, alike=alike)
    if est.settings.judge is not None:
        if pairing == "tasks":
            raise EstimateError("pairing='tasks' does not work for estimates that correct the judge's errors")
        return sides
    if isinstance(est.method, Crossed):
        if shared == 0:
            raise EstimateError(
                f"{agent!r} and {baseline!r} share no task, so a crossed estimate cannot compare them: "
                "use the hierarchical method"
            )
        return replace(sides, paired=True)
    if pairing == "none" or shared < 2:
        return sides
    # the fit sees neither names nor an order that depends on them: what agents and tasks are called changes nothing
    there, back = (
        sorted(zip(*(part.tolist() for part in side), strict=True)) for side in (cells, cells[2:] + cells[:2])
    )
    first_comes_first = (there, agent) < (back, baseline)
    places = {agent: "1", baseline: "2"} if first_comes_first else {agent: "2", baseline: "1"}
    pair = est.outcomes.isel(agent=sorted(both, key=lambda i: places[est.agents[i]]))
    attempted = (pair["trials"] + pair["unscored"]).sum("agent") > 0
    outcomes = pair.assign_coords(agent=np.array(["1", "2"], dtype=object)).isel(task=attempted.values)
    fit = estimate_as(outcomes, replace(est.settings, method=Crossed(), engine="auto"))
    return replace(sides, fit=fit, agent=places[agent], baseline=places[baseline], paired=True)


def _task_differences(sides: _Sides, metric: Metric) -> tuple[TaskDifference, ...]:
    """Every shared task, those that the agent most probably lost first; tasks with the same counts have the same."""
    fit = sides.fit
    assert sides.baseline is not None
    first, second = fit.agent_index(sides.agent), fit.agent_index(sides.baseline)
    shared = np.flatnonzero(fit.counts.scored[[first, second]].all(axis=0))
    if shared.size == 0:
        return ()
    cells = np.stack([part[i, shared] for i in (first, second) for part in (fit.counts.successes, fit.counts.trials)])
    distinct, example, place = np.unique(cells, axis=1, return_index=True, return_inverse=True)
    own, other = (fit.posterior.task_draws(i, shared[example]) for i in (first, second))
    better = (own > other).mean(axis=0) + (own == other).mean(axis=0) / 2
    difference = apply_metric(own, metric) - apply_metric(other, metric)
    settings = fit.settings
    ends = [Drawn.of(column).interval(settings.ci_prob, settings.ci_kind) for column in difference.T]
    found = []
    for task, which in zip(shared.tolist(), place.reshape(-1).tolist(), strict=True):
        numbers = float(difference[:, which].mean()), *ends[which], float(better[which])
        found.append(TaskDifference(fit.counts.tasks[task], *numbers, *distinct[:, which].tolist()))
    return tuple(sorted(found, key=lambda one: (one.prob_better, one.mean)))
