"""Human labels of attempts that a judge scored: read, checked, and matched with the counts.

A judge that misreads one attempt of a task is apt to misread the next. Labels on whole tasks then say less of its error
rates than as many labels on single attempts:

    hits among right attempts of a task ~ BetaBinomial(right, s₁ φ, (1 - s₁) φ),     φ = 1/ρ_J - 1,

rejections among wrong ones likewise, with the intraclass correlation ρ_J and the rates that make the labels of whole
tasks most likely. Where they give no sign of it, or no task is labelled whole, ρ_J is 0: a Binomial.

Labels whose attempt is not known may have been chosen by the verdict ("30 that passed and 30 that failed"), so that how
often right ones were passed among them says nothing about s₁. They are data on what the human said, given the verdict:

    p(right | passed) = s₁ q / (s₁ q + (1 - s₀)(1 - q)),     p(right | failed) = (1 - s₁) q / ((1 - s₁) q + s₀ (1 - q))

with q the share of right attempts among those that were judged, which the model knows better than by its mean μ: it has
seen their verdicts (`engines.grid.judged`). Where labels name agents, rates are per agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from agentic_bayes.checks import check_choice, check_probability
from agentic_bayes.errors import InvalidArgument, UnknownName
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.distribution import STATISTICS, Stats
from agentic_bayes.formatting import format_interval, format_number, plural
from agentic_bayes.numerics import Array

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

HowKnown = Literal["none", "estimated", "fixed"]
Located = tuple[tuple[str, str, int, int, int, int], ...]
RatesByAgent = Mapping[str, tuple[Stats, Stats]]  # sensitivity and specificity; "" where all agents have the same
RATE_NAMES = ("sensitivity", "specificity")
KINDS = dict(zip(RATE_NAMES, ("right", "wrong"), strict=True))  # what a label has to be to tell of a rate
LOCATION = ("agent", "task", "trial")
ALLOWED = ("judge", "human", *LOCATION)
CORRELATIONS = tuple(i / 40 for i in range(33))  # among which the likeliest is looked for
RATES = np.arange(1, 400) / 400  # likewise
MOST_SHOWN = 3  # agents whose rates are written out in a sentence
CHANCE_WORDS = "; this judge may be no better than chance, so its verdicts say next to nothing"


@dataclass(frozen=True)
class JudgeLabels:
    """Human labels paired with the judge's verdicts, or fixed error rates."""

    # labelled attempts that are truly right and judged right, right but judged wrong, wrong and judged wrong, wrong but
    # judged right
    hits: int = 0
    misses: int = 0
    rejections: int = 0
    false_alarms: int = 0
    # By task: how many of its attempts are labelled, how many of those are truly right, judged right, and both. These
    # leave the judge's counts and enter as true outcomes.
    located: Located = ()
    # further trials by task of which it is assumed whether they were right: they say nothing about the judge
    assumed: Located = ()
    clustering: float = 0.0  # intraclass correlation ρ_J of the judge's errors within a task, in [0, 1)
    sensitivity: float | None = None  # given where they are fixed instead of estimated
    specificity: float | None = None

    @property
    def calibration(self) -> HowKnown:
        """How the judge's error rates are known."""
        return "estimated" if self.sensitivity is None else "fixed"

    @property
    def n_labels(self) -> int:
        """Labelled attempts."""
        return self.hits + self.misses + self.rejections + self.false_alarms

    @property
    def whole(self) -> tuple[int, int, int, int]:
        """Hits, misses, rejections and false alarms among labels whose attempt is known."""
        return self._told(self.located)

    @property
    def loose(self) -> tuple[int, int, int, int]:
        """The same among labels whose attempt is not known."""
        all_labels = self.hits, self.misses, self.rejections, self.false_alarms
        first, second, third, fourth = (max(a - b, 0) for a, b in zip(all_labels, self.whole, strict=True))
        return first, second, third, fourth

    @property
    def unseen(self) -> tuple[str, ...]:
        """Rates of which no label tells, since no attempt was labelled right, or none wrong: they are their prior's."""
        if self.calibration == "fixed":
            return ()
        kinds = {"sensitivity": self.hits + self.misses, "specificity": self.rejections + self.false_alarms}
        return tuple(rate for rate, labels in kinds.items() if not labels)

    def per_agent(self, agents: tuple[str, ...]) -> bool:
        """Whether each agent has error rates of its own: of several, labels say whose attempts they are of."""
        return len(agents) > 1 and bool(self.located)

    def of_agent(self, agent: str) -> JudgeLabels:
        """The labels that name this agent."""
        located = tuple(one for one in self.located if one[0] == agent)
        return JudgeLabels(*self._told(located), located, clustering=self.clustering)

    def about(self, agent: str) -> tuple[list[Any], ...]:
        """What is known of this agent's trials without the judge, from labels and by assumption, task by task."""
        return tuple([one[1:] for one in part if one[0] == agent] for part in (self.located, self.assumed))

    @staticmethod
    def _told(located: Located) -> tuple[int, int, int, int]:
        (hits, misses), (rejections, alarms) = (part.sum(axis=0).tolist() for part in _by_task(located))
        return hits, misses, rejections, alarms

    @property
    def least_weight(self) -> float:
        """How much a label of the task with most labels counts, compared with a lone one (Kish's design effect)."""
        most = max((labelled for _, _, labelled, *_ in self.located), default=1)
        return 1 / (1 + (most - 1) * self.clustering)

    @property
    def perfect(self) -> bool:
        """Whether the judge is taken to make no error, so that nothing is to correct."""
        return self.sensitivity == 1 and self.specificity == 1

    def cells(self, counts: Counts) -> tuple[Array, Array, Array]:
        """Attempts known without the judge, truly right ones and judged-right ones, each of shape (agents, tasks).

        Labels may also be of tasks that are left out of the counts: they tell of the judge alone.
        """
        tables = np.zeros((3, *counts.trials.shape), dtype=np.int64)
        agents = {name: i for i, name in enumerate(counts.agents)}
        tasks = {name: i for i, name in enumerate(counts.tasks)}
        for agent, task, known, right, passed, _ in (*self.located, *self.assumed):
            if agent in agents and task in tasks:
                tables[:, agents[agent], tasks[task]] += known, right, passed
        return tables[0], tables[1], tables[2]

    def needed_for(self, agents: set[str], among: tuple[str, ...]) -> JudgeLabels:
        """The labels that an estimate of some of the agents needs, on whatever tasks.

        Where each agent has rates of its own, the labels of others say nothing about them.
        """
        if not self.per_agent(among):
            return self
        located, assumed = (tuple(one for one in part if one[0] in agents) for part in (self.located, self.assumed))
        return JudgeLabels(*self._told(located), located, assumed, self.clustering)

    def log_likelihood(self, sensitivity: Array, specificity: Array) -> tuple[Array, Array]:
        """Of each rate, at values of it inside (0, 1), from labels whose attempt is known."""
        first, second = (
            _log_likelihood(own, rate, self.clustering)
            for own, rate in zip(_by_task(self.located), (sensitivity, specificity), strict=True)
        )
        return first, second

    def log_predictive(self, passed: Array, failed: Array) -> Array:
        """Log probability of what humans said where the attempt is not known.

        `passed` and `failed` are the probabilities that an attempt is right, given the verdict.
        """
        from scipy.special import xlog1py, xlogy

        hits, misses, rejections, alarms = self.loose
        given_passed = xlogy(hits, passed) + xlog1py(alarms, -passed)
        return np.asarray(given_passed + xlogy(misses, failed) + xlog1py(rejections, -failed))

    def record(self) -> dict[str, Any]:
        """Plain JSON values, for a file."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return values | {name: [list(one) for one in values[name]] for name in ("located", "assumed")}

    @classmethod
    def from_record(cls, record: dict[str, Any] | None) -> Self | None:
        """What `record` wrote."""
        if record is None:
            return None
        known = {name: tuple(map(tuple, record.get(name, ()))) for name in ("located", "assumed")}
        return cls(**record | known)


def judge_of(labels: pd.DataFrame | Mapping[str, float], outcomes: xr.Dataset, counts: Counts) -> JudgeLabels:
    """Labels as `estimate` takes them; failures by crash are no verdicts, and so are as sure as labels."""
    found = read_labels(labels, counts)
    if "crashed" not in outcomes or outcomes["crashed"].dims != ("agent", "task"):
        return found
    crashed = outcomes["crashed"].values
    assumed = tuple(
        (counts.agents[a], counts.tasks[i], int(crashed[a, i]), 0, 0, 0) for a, i in np.argwhere(crashed > 0).tolist()
    )
    return replace(found, assumed=assumed)


def read_labels(labels: pd.DataFrame | Mapping[str, float], counts: Counts) -> JudgeLabels:
    """Labels as `estimate` takes them, checked against the counts."""
    import pandas as pd

    if isinstance(labels, Mapping):
        if set(labels) != {"sensitivity", "specificity"}:
            raise InvalidArgument(
                f"fixed judge_labels must be sensitivity and specificity, got {sorted(map(str, labels))}"
            )
        rates = {name: check_probability(value, name) for name, value in labels.items()}
        return JudgeLabels(sensitivity=rates["sensitivity"], specificity=rates["specificity"])
    if not isinstance(labels, pd.DataFrame):
        raise InvalidArgument(
            "judge_labels must be a DataFrame with columns judge and human, or fixed rates "
            f'{{"sensitivity": …, "specificity": …}}, got {type(labels).__name__}'
        )
    for column in labels.columns:
        if column not in ALLOWED:
            raise UnknownName("column of judge_labels", column, ALLOWED)
    for column in ("judge", "human"):
        if column not in labels.columns:
            raise InvalidArgument(f"judge_labels has no column {column!r}")
    judge, human = (_verdicts(labels[column], column) for column in ("judge", "human"))
    found = JudgeLabels(
        hits=int((human & judge).sum()),
        misses=int((human & ~judge).sum()),
        rejections=int((~human & ~judge).sum()),
        false_alarms=int((~human & judge).sum()),
    )
    located = _located(labels, judge, human, counts)
    return replace(found, located=located, clustering=_clustering(located, counts))


def _verdicts(column: Any, name: str) -> Array:
    """0/1 or booleans, none missing."""
    import pandas as pd

    words = {"true": 1, "false": 0, "1": 1, "0": 0}
    values = [words.get(value.strip().lower(), value) if isinstance(value, str) else value for value in column]
    for row, value in enumerate(values):
        if not pd.api.types.is_scalar(value) or pd.isna(value) or value not in (0, 1):
            raise InvalidArgument(f"judge_labels: {name} must be 0 or 1, got {column.iloc[row]!r} in row {row}")
    return np.array(values, dtype=bool)


def _located(labels: pd.DataFrame, judge: Array, human: Array, counts: Counts) -> Located:
    """Labels by task, where the task is known."""
    if "task" not in labels.columns:
        if "agent" in labels.columns or "trial" in labels.columns:
            raise InvalidArgument("judge_labels has no column 'task': agent and trial say nothing without it")
        return ()
    if "agent" not in labels.columns and len(counts.agents) > 1:
        raise InvalidArgument(f"judge_labels has no column 'agent', and there are {len(counts.agents)} agents")
    tasks = labels["task"].tolist()
    agents = labels["agent"].tolist() if "agent" in labels.columns else [counts.agents[0]] * len(labels)
    trials = labels["trial"].tolist() if "trial" in labels.columns else None
    seen: set[tuple[str, str, Any]] = set()
    tables: dict[tuple[str, str], list[int]] = {}
    for row, (agent, task) in enumerate(zip(agents, tasks, strict=True)):
        missing = [_is_missing(value) for value in (agent, task)]
        if all(missing) or (missing[1] and "agent" not in labels.columns):
            continue  # a label from elsewhere: it tells of the judge alone
        if any(missing):
            raise InvalidArgument(f"judge_labels: row {row} must have both agent and task, or neither")
        place = _name(agent), _name(task)
        check_choice("agent in judge_labels", place[0], counts.agents)
        check_choice("task in judge_labels", place[1], counts.tasks)
        if trials is not None and not _is_missing(trials[row]):
            attempt = (*place, trials[row])
            if attempt in seen:
                raise InvalidArgument(f"judge_labels: agent {place[0]!r}, task {place[1]!r}, trial {trials[row]} twice")
            seen.add(attempt)
        table = tables.setdefault(place, [0, 0, 0, 0])
        table[0] += 1
        table[1] += int(human[row])
        table[2] += int(judge[row])
        table[3] += int(human[row] and judge[row])
    agent_at = {name: i for i, name in enumerate(counts.agents)}
    task_at = {name: i for i, name in enumerate(counts.tasks)}
    for (agent, task), (labelled, _, passed, _) in tables.items():
        cell = agent_at[agent], task_at[task]
        c, n = int(counts.successes[cell]), int(counts.trials[cell])
        if passed > c or labelled - passed > n - c:
            raise InvalidArgument(
                f"judge_labels: agent {agent!r}, task {task!r} has {c} of {plural(n, 'scored trial')} judged right, "
                f"its labels say {passed} of {labelled}"
            )
    return tuple((*place, *table) for place, table in sorted(tables.items()))  # type: ignore[misc]


def _by_task(located: Located) -> tuple[Array, Array]:
    """(Good, bad) verdicts of the judge by task, arrays of shape (tasks, 2): on right attempts, and on wrong ones."""
    n, right, passed, hits = np.array([one[2:] for one in located], dtype=np.int64).reshape(-1, 4).T
    alarms = passed - hits
    return np.stack([hits, right - hits], axis=1), np.stack([n - right - alarms, alarms], axis=1)


def _log_likelihood(by_task: Array, rate: Array, clustering: float) -> Array:
    """Of a rate, from labels by task; those of one task are alike as far as errors cluster."""
    from scipy.special import betaln, xlog1py, xlogy

    if not clustering:
        good, bad = by_task.sum(axis=0)
        return np.asarray(xlogy(good, rate) + xlog1py(bad, -rate))
    a, b = rate * (1 / clustering - 1), (1 - rate) * (1 / clustering - 1)
    return np.asarray((betaln(by_task[:, :1] + a, by_task[:, 1:] + b) - betaln(a, b)).sum(axis=0))


def _clustering(located: Located, counts: Counts) -> float:
    """The likeliest correlation of errors within whole labelled tasks; of equally likely ones the smallest."""
    trials = dict(zip(counts.tasks, counts.trials.T.tolist(), strict=True))
    agents = {name: i for i, name in enumerate(counts.agents)}
    whole = tuple(one for one in located if one[2] == trials[one[1]][agents[one[0]]] > 1)
    # a judge that was never wrong, or never right, has not shown how its errors come together
    tables = [own for own in _by_task(whole) if own.sum(axis=0).all()]

    def log_likelihood(correlation: float) -> float:
        return float(sum(_log_likelihood(own, RATES, correlation).max() for own in tables))

    return max(CORRELATIONS, key=log_likelihood)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value) or value == ""


def _name(value: Any) -> str:
    """Labels of agents and tasks are text; a column of whole numbers that has gaps holds floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def judge_words(labels: JudgeLabels, rates: RatesByAgent, agents: tuple[str, ...], *, at_chance: bool) -> str:
    """How the judge's errors were taken into account, in a sentence; without `rates` it makes none."""
    if not rates or labels.calibration == "fixed":
        text = f"judge error fixed: sensitivity {labels.sensitivity:g}, specificity {labels.specificity:g}"
        return text + (CHANCE_WORDS if at_chance else "")
    used, shown = labels.n_labels, []
    for agent, pair in rates.items():
        words = [
            f"{name} {format_number(stats.mean)} {format_interval(stats.lower, stats.upper)}"
            for name, stats in zip(RATE_NAMES, pair, strict=True)
        ]
        shown.append(f"{agent}: {', '.join(words)}" if agent else ", ".join(words))
    if len(rates) > MOST_SHOWN:
        by_rate = [[stats.mean for stats in own] for own in zip(*rates.values(), strict=True)]
        spans = [f"{format_number(min(own))} to {format_number(max(own))}" for own in by_rate]
        words = [f"{name} {span}" for name, span in zip(RATE_NAMES, spans, strict=True)]
        shown = [f"{', '.join(words)} among {len(rates)} agents"]
    if labels.per_agent(agents):
        used = sum(labels.whole)
    text = f"judge error estimated from {plural(used, 'label')}: {'; '.join(shown)}"
    if left_out := labels.n_labels - used:
        text += f"; {plural(left_out, 'label')} without agent and task not used, since rates are per agent"
    elif len(agents) > 1 and not labels.per_agent(agents):
        text += "; assumed the same for all agents, since the labels don't name agents"
    if labels.clustering:
        text += f"; errors cluster by task, most likely with an intraclass correlation of {labels.clustering:g}"
    for rate in labels.unseen:
        text += f"; no attempt was labelled {KINDS[rate]}, so {rate} is its prior's"
    return text + (CHANCE_WORDS if at_chance else "")


def rates_table(labels: JudgeLabels, rates: RatesByAgent, ci_prob: float) -> pd.DataFrame:
    """A table of the judge's error rates; without `rates` it makes no error."""
    import pandas as pd

    perfect = Stats(1.0, 0.0, 1.0, 1.0, 1.0)
    rows = [
        {
            "agent": agent,
            "rate": rate,
            **{name: float(getattr(stats, name)) for name in STATISTICS},
            "ci_kind": "eti",
            "ci_prob": ci_prob,
            "n_labels": labels.of_agent(agent).n_labels if agent else labels.n_labels,
            "judge_calibration": labels.calibration,
            "flags": "judge_rate_prior" if rate in labels.unseen else "",
        }
        for agent, pair in (rates or {"": (perfect, perfect)}).items()
        for rate, stats in zip(RATE_NAMES, pair, strict=True)
    ]
    return pd.DataFrame(rows)
