"""What went wrong: trials that did not pass by kind of failure, each with its agents, tasks and examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from agentic_bayes.formatting import brief_names, plain_text, plural, with_more
from agentic_bayes.reports.html.text import LONGEST_BESIDE, LONGEST_SHOWN, cut
from agentic_bayes.reports.html.trials import ReportTrial
from agentic_bayes.reports.reason_clusters import cluster_reasons
from agentic_bayes.result_table import Table

MOST_SHOWN = 10  # kinds that a page shows unfolded
MOST_KINDS = 30  # kinds that it lists at all
BARS = "In brackets and as bars:"
MOST_BESIDE = 4  # agents that have a column each; more share one, from the best to the worst
MOST_NAMED = 3  # agents that a line names
MOST_LISTED = 24  # agents that an open kind lists
MOST_TASKS = 8  # tasks that a kind names
EXAMPLES = 3
MEANINGS: Mapping[str, str] = {  # of every `FailureKind`
    "missing fact": "the answer lacks something that was expected",
    "wrong number": "another number, date or code than expected",
    "wrong answer": "another answer than expected",
    "contradiction": "the answer says the opposite of what was expected",
    "no clear answer": "the answer does not commit itself",
    "refusal": "the agent declined",
    "no answer": "the answer is blank",
    "format": "the form of the answer: its length, pattern or format",
    "missing call": "an expected call was not made",
    "wrong tool": "another tool was called instead of the expected one",
    "extra call": "a call that nobody expected",
    "argument": "the expected tool with a wrong, missing or extra argument",
    "order of calls": "the expected calls in another order",
    "forbidden call": "a call that the agent was not allowed to make",
    "unused result": "the answer does not use what the tools returned",
    "crash": "the agent ended with an error",
}
BY_TOOLS = frozenset(list(MEANINGS)[list(MEANINGS).index("missing call") : list(MEANINGS).index("crash")])
_MOST_OWN = 200  # kinds that graders may name in words of their own; the reasons of further ones are read
_UNEXPLAINED, _OTHERS = "no reason given", "other reasons"


class FailureExample(NamedTuple):
    """A trial and the literal reason why it did not pass."""

    agent: str
    task: str
    attempt: int
    reason: str


@dataclass(slots=True)
class FailureGroup:
    """The trials in which the same kind of thing went wrong."""

    name: str
    meaning: str
    agents: Counter[str] = field(default_factory=Counter)  # agent → its trials
    tasks: Counter[str] = field(default_factory=Counter)
    _candidates: dict[tuple[str, str], FailureExample] = field(default_factory=dict)

    def add(self, trial: ReportTrial, reason: str) -> None:
        """Count a trial."""
        if trial.agent not in self.agents or (trial.task not in self.tasks and len(self.tasks) < 2 * EXAMPLES):
            example = FailureExample(trial.agent, trial.task, trial.attempt, reason)
            self._candidates[trial.agent, trial.task] = example
        self.agents[trial.agent] += 1
        self.tasks[trial.task] += 1

    @property
    def trials(self) -> int:
        """How many trials there are."""
        return self.agents.total()

    @property
    def examples(self) -> list[FailureExample]:
        """Three trials, first of all such of other agents, tasks and reasons than those before."""
        left, chosen = list(self._candidates.values()), list[FailureExample]()
        while left and len(chosen) < EXAMPLES:
            known = [{one[part] for one in chosen} for part in (0, 1, 3)]
            chosen.append(min(left, key=lambda one: sum(one[p] in k for p, k in zip((0, 1, 3), known, strict=True))))
            left.remove(chosen[-1])
        return chosen

    @property
    def commonest_tasks(self) -> str:
        """The tasks with the most trials."""
        shown = self.tasks.most_common(MOST_TASKS)
        briefs = brief_names([task for task, _ in shown], LONGEST_SHOWN)
        named = [f"{brief} ({n:,})" for brief, (_, n) in zip(briefs, shown, strict=True)]
        return with_more(named, len(self.tasks), "task")


@dataclass(frozen=True)
class FailureTable:
    """Kinds of failure, the commonest first, by agent."""

    title: str
    groups: Sequence[FailureGroup]
    trials: Mapping[str, int]  # agent → all its trials in the report, in the order of the page
    notes: Sequence[str]
    noun: str = "trial"

    @property
    def columns(self) -> Sequence[str]:
        """The agents that have a column; none where they are many."""
        return tuple(self.trials) if len(self.trials) <= MOST_BESIDE else ()

    @cached_property
    def places(self) -> dict[str, int]:
        """Where the bar of an agent stands among those of all."""
        return {agent: place for place, agent in enumerate(self.trials)}

    @cached_property
    def _briefs(self) -> dict[str, str]:
        plain = [plain_text(agent) for agent in self.trials]
        return dict(zip(self.trials, brief_names(plain, LONGEST_BESIDE), strict=True))

    @property
    def shown(self) -> Sequence[FailureGroup]:
        """The kinds that stand unfolded."""
        return self.groups[:MOST_SHOWN]

    @property
    def folded(self) -> Sequence[FailureGroup]:
        """The rarer kinds."""
        return self.groups[MOST_SHOWN:]

    def count(self, group: FailureGroup, agent: str) -> str:
        """How many trials of an agent are of a kind, and which share of its trials."""
        n = group.agents[agent]
        return f"{n:,} ({100 * n / self.trials[agent]:.0f} %)" if n else "0"

    def length(self, group: FailureGroup, agent: str) -> float:
        """The length of an agent's bar, in per cent of the longest one."""
        return round(100 * group.agents[agent] / self.trials[agent] / self._longest, 1)

    @cached_property
    def _longest(self) -> float:
        return max(n / self.trials[name] for one in self.groups for name, n in one.agents.items())

    def every(self, group: FailureGroup) -> str:
        """The agents of a kind, as far as it is open."""
        return self.most(group, MOST_LISTED)

    def spread(self, group: FailureGroup) -> str:
        """How many agents a kind is of, and of which most."""
        return (
            f"{len(group.agents):,} of {plural(len(self.trials), 'agent')}; most: {self.most(group, 1, others=False)}"
        )

    def most(self, group: FailureGroup, most: int = MOST_NAMED, *, others: bool = True) -> str:
        """The agents with the most trials of a kind."""
        named = [
            f"{n:,} of {plural(self.trials[agent], self.noun)} of {self._briefs[agent]}"
            for agent, n in group.agents.most_common(most)
        ]
        return with_more(named, len(group.agents), "agent") if others else ", ".join(named)

    def commonest(self) -> str:
        """The commonest kind that says something, in a line; empty where there is none."""
        for group in self.groups:
            if group.name not in (_UNEXPLAINED, _OTHERS):
                return f"Most common failure: {group.name}, in {self.most(group)}."
        return ""

    def tables(self) -> Iterator[Table]:
        """The same as plain tables: the kinds, then their examples."""
        rows = [[g.name, f"{g.trials:,}", f"{len(g.tasks):,}", self.most(g), g.meaning] for g in self.groups]
        header = ["what went wrong", f"{self.noun}s", "tasks", "agents", "meaning"]
        notes = [note for note in self.notes if not note.startswith(BARS)]
        yield Table(title=self.title, header=header, rows=rows, notes=notes, noun="kind")
        rows = [[g.name, e.agent, e.task, f"{e.attempt}", cut(e.reason, 300)] for g in self.groups for e in g.examples]
        header = ["what went wrong", "agent", "task", "attempt", "reason"]
        yield Table(title=f"Examples: {self.title[0].lower()}{self.title[1:]}", header=header, rows=rows)


def failure_tables(
    trials: Sequence[ReportTrial], agents: Sequence[str], noun: str = "trial", *, tools_count: bool = True
) -> tuple[FailureTable | None, FailureTable | None]:
    """What went wrong in failed trials, and why trials are not scored; None where there are none.

    `agents` gives their order; trials may be of further ones. `noun` is what they are where the counts have others.
    Unless `tools_count`, faults with tools fail no trial.
    """
    order = dict.fromkeys([*agents, *sorted({one.agent for one in trials})])
    failed, missing = (
        [one for one in trials if one.verdict in verdicts] for verdicts in (("fail",), ("unscored", "errored"))
    )
    scored = Counter(one.agent for one in trials if one.verdict in ("pass", "fail"))
    tried = scored + Counter(one.agent for one in missing)
    shares = f"{BARS} the share of the agent's {{}}{noun}s."
    notes = [f"One {noun} can have several kinds.", shares.format("scored ")]
    if not tools_count and any(kind in BY_TOOLS for one in failed for kinds, _ in one.failures for kind in kinds):
        notes.append(f"Faults with tools are listed as likely causes; by themselves they fail no {noun}.")
    unscored = f"Why {plural(len(missing), noun)} could not be scored"
    return (
        _table(f"What went wrong in {plural(len(failed), f'failed {noun}')}", failed, scored, order, notes, noun),
        _table(unscored, missing, tried, order, [shares.format("")], noun),
    )


def _table(
    title: str,
    trials: Sequence[ReportTrial],
    tried: Mapping[str, int],
    order: Iterable[str],
    notes: list[str],
    noun: str,
) -> FailureTable | None:
    if not trials:
        return None
    totals = {agent: tried[agent] for agent in order if tried[agent]}
    groups, words = _groups(trials)
    notes += ["Kinds in “quotes” are other reasons, grouped by the words they share."] if words else []
    if (more := len(groups) - MOST_KINDS) > 0:
        notes.append(f"{plural(more, 'rarer kind')} left out.")
    return FailureTable(title, groups[:MOST_KINDS], totals, notes, noun)


def _groups(trials: Sequence[ReportTrial]) -> tuple[list[FailureGroup], bool]:
    """The kinds that graders name, and clusters of all other reasons; a trial counts once in each."""
    groups: dict[str, FailureGroup] = {}
    told: dict[str, list[ReportTrial]] = {}  # reason in words only → its trials
    for trial in trials:
        kinds: dict[str, str] = {}
        for kinds_named, reason in trial.failures:
            kept = [kind for kind in kinds_named if kind in groups or len(groups) < _MOST_OWN]
            for kind in kept or (() if reason.strip() else (_UNEXPLAINED,)):
                kinds.setdefault(kind, reason)
            if not kept and reason.strip():
                own = told.setdefault(reason, [])
                if not own or own[-1] is not trial:
                    own.append(trial)
        for kind, reason in kinds.items():
            if kind not in groups:
                groups[kind] = FailureGroup(cut(kind, 60), MEANINGS.get(kind, ""))
            groups[kind].add(trial, reason)
    found = cluster_reasons(list(told), [len(own) for own in told.values()])
    names = [f"“{label}”" for label in found.labels]
    clusters = [FailureGroup(name, "") for name in names] + [FailureGroup(_OTHERS, "no words in common")]
    counted: list[set[int]] = [set() for _ in clusters]
    for (reason, own), place in zip(told.items(), found.members.tolist(), strict=True):
        for trial in own:
            if id(trial) not in counted[place]:
                counted[place].add(id(trial))
                clusters[place].add(trial, reason)
    every = [*groups.values(), *(one for one in clusters if one.agents)]
    last, order = (_UNEXPLAINED, _OTHERS), [*MEANINGS, *sorted(one.name for one in every)]
    return sorted(every, key=lambda one: (one.name in last, -one.trials, order.index(one.name))), bool(told)
