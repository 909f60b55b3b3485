"""Is one agent better than another, or than a fixed value? The difference of one metric, by one posterior."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from agentic_bayes.checks import check_choice, check_probability, check_rope, check_type
from agentic_bayes.decisions.by_group import GroupDifference, group_differences, group_lines
from agentic_bayes.decisions.classical import ClassicalTest, against_agent, against_value
from agentic_bayes.decisions.decision import (
    Decision,
    assumed_words,
    basis_words,
    described,
    judged_words,
    remarks,
    rope_words,
    share_above_zero,
    shown,
    summarised,
    wide,
)
from agentic_bayes.decisions.missing import MAX_MISSING, as_if
from agentic_bayes.decisions.shared_tasks import TaskSets, TwoAgents, pair_of
from agentic_bayes.estimation.arithmetic import apply_metric
from agentic_bayes.estimation.distribution import CIKind, Drawn
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.methods.options import Crossed
from agentic_bayes.estimation.model_checks import flag_words
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import (
    Metric,
    equals,
    exact_percent,
    format_interval,
    format_number,
    format_percent,
    format_points,
    format_points_range,
    format_share,
    plural,
    points_words,
    with_more,
)
from agentic_bayes.numerics import Array
from agentic_bayes.outcomes.missing import TrialCounts
from agentic_bayes.result_table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "DifferenceIfErrored", "Ratio", "TaskDifference", "compare"]

ComparisonVerdict = Literal["better", "worse", "equivalent", "undecided"]
EQUIVALENT = 0.95  # probability inside the ROPE from which two agents count as equivalent
LIKELY = 0.9  # probability from which a task counts as won or lost
MOST_NAMED = 5  # tasks that a sentence names
NOTHING_DECIDED = {"not_converged": "the estimate did not converge", "no_data": "an agent has no scored trials"}
TINIEST = 1e-300  # stands for a metric of 0 in a ratio


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two metrics, or of their odds."""

    median: float  # of its posterior, ≥ 0; the interval has the comparison's probability and kind
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{wide(self.median)} [{wide(self.lower)}, {wide(self.upper)}]"


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

    @property
    def lead(self) -> int:
        """Who passed a larger share of the trials: 1 the agent, -1 the baseline, 0 neither."""
        own, other = self.successes * self.baseline_trials, self.baseline_successes * self.trials
        return (own > other) - (own < other)

    @property
    def gap(self) -> float:
        """The share of its trials that the agent passed, minus that of the baseline."""
        return self.successes / self.trials - self.baseline_successes / self.baseline_trials


@dataclass(frozen=True, slots=True)
class DifferenceIfErrored:
    """What a comparison comes to if the errored trials had all failed, or all passed.

    Attributes
    ----------
    assumed : {"failed", "passed"}
        What the agent's errored trials are taken for; those of a baseline agent are taken for the opposite.
    verdict : {"better", "worse", "equivalent", "undecided"}
    mean, lower, upper : float
        Of the difference, in units of probability.
    """

    assumed: Literal["failed", "passed"]
    verdict: ComparisonVerdict
    mean: float
    lower: float
    upper: float


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
        as `lost` or `won` at a probability of at least .9, if its counts agree: 0 of 4 against 0 of 4 is not a lead.
        The counts are as judged, also where the judge's errors are allowed for, which may leave a task out of both.
    frequentist : ClassicalTest
        A frequentist test of the same question, for comparison.
    pairing : {"tasks", "none"}
        How tasks that both agents attempted enter. ``tasks``: their difficulty is shared, so that the agents are
        compared on the same tasks. ``none``: each agent's tasks are a sample of its own.
    task_sets : {"shared", "own"}
        Whether the tasks that both tried are compared, or each agent's own.
    n_shared_tasks : int
        Tasks on which both agents have scored trials.
    n_left_out : int
        Tasks on which only one of them has, and which are therefore left out.
    trials, baseline_trials : TrialCounts
        Scored, unscored and errored trials of each side, on all its tasks; None for a fixed value.
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
    if_errored : tuple of DifferenceIfErrored
        The difference with the agent's errored trials failed and passed, where the outcomes were counted with
        ``errors="bounds"`` and some errored: empty, or one of each.
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
    task_sets: TaskSets
    n_shared_tasks: int
    n_left_out: int
    trials: TrialCounts
    baseline_trials: TrialCounts | None
    n_tasks: int
    method: str
    unit: str
    indicator: str
    flags: tuple[str, ...]
    note: str
    draws: Array = field(repr=False, compare=False)
    groups: tuple[GroupDifference, ...] = ()
    if_errored: tuple[DifferenceIfErrored, ...] = ()

    @property
    def verdict(self) -> ComparisonVerdict:
        """The answer: "better" or "worse" when the interval of the difference excludes 0; "equivalent" when the
        probability inside the ROPE is at least .95; else "undecided", as always where the estimate did not converge or
        nothing of an agent was scored.
        """
        if self._why_undecided:
            return "undecided"
        if self.lower > 0 or self.upper < 0:
            return "better" if self.lower > 0 else "worse"
        return "equivalent" if self.prob_rope >= EQUIVALENT else "undecided"

    @property
    def disagreement(self) -> str:
        """Why the frequentist test may disagree with the verdict, in words; empty where it agrees."""
        is_decided = self.verdict in ("better", "worse")
        return self.frequentist.disagreement(is_decided=is_decided, estimand=self.estimand)

    @property
    def _why_undecided(self) -> list[str]:
        """Why nothing can be decided, whatever the probabilities."""
        return [reason for flag, reason in NOTHING_DECIDED.items() if flag in self.flags]

    @property
    def lost(self) -> tuple[TaskDifference, ...]:
        """Tasks on which the baseline is better with a probability of at least .9, the surest first."""
        return tuple(one for one in self.tasks if one.prob_better <= 1 - LIKELY and one.lead < 0)

    @property
    def won(self) -> tuple[TaskDifference, ...]:
        """Tasks on which the agent is better with a probability of at least .9, the surest first."""
        return tuple(one for one in reversed(self.tasks) if one.prob_better >= LIKELY and one.lead > 0)

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
                named = [f"{one.task} ({format_share(p)})" for one, p in zip(found, sure, strict=True)][:MOST_NAMED]
                parts.append(f"{self.agent} {word} {plural(len(found), 'task')}: {with_more(named, len(found))}")
        return "; ".join(parts)

    def __str__(self) -> str:
        where = "new tasks" if self.estimand == "population" else "these tasks"
        if isinstance(self.baseline, str):
            what = f"{self.agent} better on {self.metric}"
            left_out = f", {self.n_left_out:,} left out" if self.n_left_out else ""
            tasks = f"{plural(self.n_shared_tasks, 'task')} both attempted{left_out}"
        else:
            what, tasks = f"{self.agent}'s {self.metric} above {shown(self.baseline)}", plural(self.n_tasks, "task")
        chance = self.prob_better
        if self.verdict == "equivalent":  # which rests on another probability
            what, chance = f"within {rope_words(self.rope)}", self.prob_rope
        return (
            f"{self.headline}: P({what}) {equals(format_percent(chance))}, {points_words(self.mean)}, "
            f"{exact_percent(self.ci_prob)} interval {format_points_range(self.lower, self.upper)} "
            f"({'; '.join(filter(None, (where, tasks, self._missing(briefly=True))))})"
            f"{''.join(f'; {line}' for line in self.if_errored_words)}{remarks(self.note, self.flags)}"
        )

    @property
    def if_errored_words(self) -> list[str]:
        """What the comparison comes to if the errored trials had failed or passed, in words."""
        return [
            f"{one.verdict} with errored trials {assumed_words(one.assumed, self.agent, self.baseline)}: "
            f"{format_points(one.mean)} ({format_points_range(one.lower, one.upper)})"
            for one in self.if_errored
        ]

    def _missing(self, *, briefly: bool = False) -> str:
        """The trials that are missing, side by side, or briefly in one count where they are few; empty if none is."""
        named = (self.agent, self.trials), (self.baseline, self.baseline_trials)
        sides = [(name, trials) for name, trials in named if trials is not None and trials.unscored]
        if briefly and len(sides) == 2 and all(trials.share_missing <= MAX_MISSING for _, trials in sides):
            return str(sides[0][1] + sides[1][1])
        return "; ".join(f"{name}: {trials}" for name, trials in sides)

    @property
    def headline(self) -> str:
        """The verdict in a few words: "v2 is better than v1"."""
        baseline = shown(self.baseline)
        match self.verdict:
            case "undecided":
                return ", since ".join(("Undecided", *self._why_undecided[:1]))
            case "equivalent":
                return f"{self.agent} and {baseline} are equivalent within {rope_words(self.rope)}"
            case verdict:
                return f"{self.agent} is {verdict} than {baseline}"

    @property
    def basis(self) -> str:
        """What it was estimated from, and the kind of interval."""
        left_out = f", {plural(self.n_left_out, 'task')} that only one tried left out" if self.n_left_out else ""
        paired = f"pairing {self.pairing}{left_out}; " if isinstance(self.baseline, str) else ""
        return basis_words(vars(self), paired=paired)

    def table(self) -> Table:
        """The difference, the probabilities, the ratios and the losses."""
        baseline = shown(self.baseline)
        rows = [
            [f"P({self.agent} higher than {baseline})", format_share(self.prob_better), ""],
            ["difference", format_number(self.mean), format_interval(self.lower, self.upper)],
            [f"P(difference within {rope_words(self.rope)})", format_share(self.prob_rope), ""],
            *(
                [what, wide(one.median), f"[{wide(one.lower)}, {wide(one.upper)}]"]
                for what, one in (("ratio", self.ratio), ("odds ratio", self.odds_ratio))
            ),
            [f"expected loss of choosing {self.agent}", format_share(self.expected_loss), ""],
            [f"expected loss of choosing {baseline}", format_share(self.expected_loss_baseline), ""],
            *group_lines(self.groups),
        ]
        notes = [
            f"{self.agent} − {baseline} in {self.metric}; posterior mean (median of ratios)",
            self.basis,
            self._missing(),
            *self.if_errored_words,
            self.drivers() and f"{self.drivers()} (posterior probabilities)",
            f"for comparison, {self.frequentist}",
            self.disagreement,
            self.note,
            *flag_words(self.flags),
        ]
        header = ["quantity", "posterior", "interval"]
        return Table(title=f"Comparison: {self.headline}", header=header, rows=rows, notes=notes)


def compare(
    est: Estimate,
    agent: str | None = None,
    *,
    baseline: str | float | Estimate,
    metric: str = "pass^1",
    estimand: Estimand = "population",
    rope: float | tuple[float, float] = 0.02,
    tasks: TaskSets = "shared",
    by: str | None = None,
) -> Comparison:
    """Compare an agent with another one, or with a fixed value, by the posterior of the estimate.

    Agents of a crossed estimate are paired by task. Those of another method are not, and the note says so where they
    share tasks. Nothing is fitted under another method or other priors than the estimate's.

    Parameters
    ----------
    est : Estimate
        An estimate that holds the agent.
    agent : str, optional
        Name; needed where the estimate holds several agents.
    baseline : str, float or Estimate
        Name of another agent of the same estimate, a value of the metric in [0, 1], or another estimate: of one agent,
        or one that holds `agent` too. Two estimates are compared unpaired; `combine_outcomes` and one estimate of both
        pair them.
    metric : str
        What is compared: "pass@k" or "pass^k" with a number, which need not be among the estimate's.
    estimand : {"population", "tasks"}
        On new tasks of this kind, or on the observed tasks.
    rope : float or (float, float)
        Region of practical equivalence: a half-width in [0, 1], or its ends in [-1, 1].
    tasks : {"shared", "own"}
        Where the agents did not try the same tasks. ``shared``: the tasks of which both have scored trials, and only
        these; the same method with the same priors is fitted to them. ``own``: each agent on its own tasks, unpaired,
        assuming that both sets of tasks sample one kind of task.
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
        If the estimate has no posterior or does not define the estimand, or if agents tried different tasks and share
        fewer than two.
    OutcomesError
        If two estimates count different things.

    Examples
    --------
    >>> import pandas as pd
    >>> from agentic_bayes import compare, estimate, outcomes_from_table
    >>> rows = [("old", i, 2, 4) for i in range(30)] + [("new", i, 3 + i % 2, 4) for i in range(30)]
    >>> table = pd.DataFrame(rows, columns=["agent", "task", "successes", "trials"])
    >>> compare(estimate(outcomes_from_table(table)), "new", baseline="old").verdict
    'better'
    """
    return comparison(est, agent, baseline=baseline, metric=metric, estimand=estimand, rope=rope, tasks=tasks, by=by)


def comparison(
    est: Estimate,
    agent: str | None,
    *,
    baseline: str | float | Estimate,
    metric: str,
    estimand: Estimand,
    rope: float | tuple[float, float] = 0.02,
    tasks: TaskSets = "shared",
    by: str | None = None,
    task_by_task: bool = True,
    bounds: bool = True,
) -> Comparison:
    """The same; the differences task by task take most of the time where tasks are many, and may be left out.
    Without `bounds` nothing is said of errored trials, of which the others' may be left when two agents' are filled in.
    """
    check_type("est", est, Estimate, "estimate() makes one")
    check_choice("tasks", tasks, get_args(TaskSets))
    wanted, region = Metric(metric), check_rope(rope)
    question: dict[str, Any] = {"metric": wanted, "estimand": estimand}
    interval, as_judged = (est.settings.ci_prob, est.settings.ci_kind), est.settings.corrects_judge
    if isinstance(baseline, str | Estimate):
        pair = pair_of(est, agent, baseline, tasks)
        own, other = pair.draws(wanted, estimand)
        difference = own - other
        lower, upper = Drawn.of(difference).interval(*interval)
        numbers = float(difference.mean()), float(lower), float(upper)
        better = float(share_above_zero(difference))
        sides: dict[str, Any] = {
            "agent": pair.first.label,
            "baseline": pair.second.label,
            "trials": pair.first.trials,
            "baseline_trials": pair.second.trials,
            "tasks": _task_differences(pair, wanted) if task_by_task else (),
            "pairing": "tasks" if pair.paired else "none",
            "n_shared_tasks": pair.common.n_shared,
            "n_left_out": pair.common.n_left_out,
            "frequentist": replace(against_agent(pair.compared, 0, 1, wanted, interval[0]), as_judged=as_judged),
            "note": "; ".join(filter(None, [*pair.notes(estimand), *map(judged_words, pair.estimates)])),
            "flags": pair.flags(wanted, estimand),
            "groups": group_differences(pair, by=by, **question),
        }
        described_by = pair.first.fit, pair.first.name
    else:
        index = est.agent_index(agent)
        name = est.agents[index]
        value = check_probability(baseline, "baseline (a fixed value)")
        own = est.metric_draws(name, **question)
        other = np.full(own.shape, value)
        difference = own - other
        # what the summary says, moved: without Monte-Carlo error where the engine is exact
        mean, lower, upper = summarised(est, name, wanted, estimand)
        numbers = mean - value, lower - value, upper - value
        better = est.prob_at_least(name, value, **question)
        better -= min(better, float(np.mean(difference == 0))) / 2  # draws round to 1 where exact posteriors do not
        sides = {
            "agent": name,
            "baseline": value,
            "trials": TrialCounts.of(est.outcomes, name),
            "baseline_trials": None,
            "tasks": (),
            "pairing": "none",
            "n_shared_tasks": 0,
            "n_left_out": 0,
            "frequentist": replace(against_value(est.counts, index, value, wanted, interval[0]), as_judged=as_judged),
            "note": "; ".join(filter(None, (est.differences, judged_words(est)))),
            "flags": est.flags(name, **question),
            "groups": (),
        }
        described_by = est, name

    def ratio(top: Array, bottom: Array) -> Ratio:
        if not bottom.any():
            return Ratio(math.nan, math.nan, math.nan)  # nothing is a multiple of zero
        drawn = np.exp(np.log(np.maximum(top, TINIEST)) - np.log(np.maximum(bottom, TINIEST)))
        median = float(np.median(drawn))  # the mean may be infinite, and the sd overflow
        return Ratio(median, *Drawn(mean=median, sd=math.nan, values=drawn).interval(*interval))

    return Comparison(
        prob_better=better,
        prob_rope=float(np.mean((region[0] <= difference) & (difference <= region[1]))),
        rope=region,
        expected_loss=float(np.maximum(-difference, 0).mean()),
        expected_loss_baseline=float(np.maximum(difference, 0).mean()),
        ratio=ratio(own, other),
        odds_ratio=ratio(own * (1 - other), other * (1 - own)),
        task_sets=tasks,
        draws=difference,
        if_errored=_if_errored(est, described_by[1], baseline, metric=metric, estimand=estimand, rope=rope, tasks=tasks)
        if bounds and any(one is not None and one.errored for one in (sides["trials"], sides["baseline_trials"]))
        else (),
        **sides,
        **described(numbers, *described_by, wanted, estimand),
    )


def _if_errored(
    est: Estimate, agent: str, baseline: str | float | Estimate, **question: Any
) -> tuple[DifferenceIfErrored, ...]:
    """The comparison with the agent's errored trials failed and a baseline agent's passed, and the other way round."""
    sides = (est, baseline) if isinstance(baseline, Estimate) else (est,)
    if not any(one.outcomes.attrs.get("errors") == "bounds" for one in sides):
        return ()
    found = []
    ways: tuple[tuple[Literal["failed", "passed"], str], ...] = (("failed", "passed"), ("passed", "failed"))
    for assumed, opposite in ways:
        against: str | float | Estimate = baseline
        filled: dict[str, Any] = {assumed: agent}
        if isinstance(baseline, Estimate):
            others: dict[str, Any] = {opposite: baseline.agents}
            against = as_if(baseline, **others, which="errored")
        elif isinstance(baseline, str):
            filled[opposite] = baseline
        there = as_if(est, **filled, which="errored")
        one = comparison(there, agent, baseline=against, task_by_task=False, bounds=False, **question)
        found.append(DifferenceIfErrored(assumed, one.verdict, one.mean, one.lower, one.upper))
    return tuple(found)


def _task_differences(pair: TwoAgents, metric: Metric) -> tuple[TaskDifference, ...]:
    """Every shared task, those most probably lost first; tasks that the model cannot tell apart agree."""
    shared = np.flatnonzero(pair.counts.scored.all(axis=0))
    if shared.size == 0:
        return ()
    names, sides = [pair.counts.tasks[i] for i in shared], []
    for side in (pair.first, pair.second):
        position = {name: i for i, name in enumerate(side.fit.counts.tasks)}
        sides.append((side.fit, side.index, np.array([position[name] for name in names])))
    patterns = np.concatenate([_patterns(*side) for side in sides])
    _, example, place = np.unique(patterns, axis=1, return_index=True, return_inverse=True)
    own, other = (fit.posterior.task_draws(index, tasks[example]) for fit, index, tasks in sides)
    other = pair.apart(other)
    better = share_above_zero(own - other)
    difference = apply_metric(own, metric) - apply_metric(other, metric)
    first, second = (
        np.asarray(fit.posterior.distribution(index, "task", metric).mean)[tasks[example]]
        for fit, index, tasks in sides
    )
    settings = pair.first.est.settings
    ends = [Drawn.of(column).interval(settings.ci_prob, settings.ci_kind) for column in difference.T]
    cells = np.stack([part[i, shared] for i in (0, 1) for part in (pair.counts.successes, pair.counts.trials)])
    found = []
    for i, which in enumerate(place.reshape(-1).tolist()):
        numbers = float(first[which] - second[which]), *ends[which], float(better[which])
        found.append(TaskDifference(names[i], *numbers, *cells[:, i].tolist()))
    return tuple(sorted(found, key=lambda one: (one.prob_better, one.mean)))


def _patterns(fit: Estimate, agent: int, tasks: Array) -> Array:
    """What the posterior of a task rests on, column by column: counts and labels (of all agents if crossed), group."""
    agents, judge = slice(None) if isinstance(fit.method, Crossed) else [agent], fit.settings.judge
    cells = (fit.counts.successes, fit.counts.trials, *(judge.cells(fit.counts) if judge else ()))
    parts = [part[agents] for part in cells]
    if fit.posterior.grouping is not None:
        parts.append(fit.posterior.grouping.place[np.newaxis])
    return np.concatenate([part[:, tasks] for part in parts])
