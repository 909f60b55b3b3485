"""What the columns of a table hold, and which of them to take as agent, task, trial, result, error and group."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentic_bayes.describe.description import Proposal
from agentic_bayes.evidence.table import TableColumns, is_blank, label, number, whole_number
from agentic_bayes.formatting import ELLIPSIS, first_few
from agentic_bayes.records.base import short
from agentic_bayes.records.roles import named
from agentic_bayes.result_table import Table

VERDICTS = (
    ("0/1", {"0", "1", "0.0", "1.0"}),
    ("true/false", {"true", "false"}),
    ("yes/no", {"yes", "no"}),
    ("pass/fail", {"pass", "fail"}),
    ("passed/failed", {"passed", "failed"}),
    ("correct/incorrect", {"correct", "incorrect"}),
    ("C/I", {"c", "i"}),
)
"""Pairs of words for right and wrong."""

GRADES = {"c", "p", "i", "n"}
THRESHOLD = 0.7
MOST_AGENTS = 20
_EXAMPLES = 3
_TRIALS = re.compile("(run|trial|seed|attempt|rep|repeat|repetition|epoch|sample|try|iteration|[rtsk])?")
_AGENTS = re.compile("v|version|agent|model|candidate|variant|m")


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """What a column holds."""

    name: str
    kind: str  # a pair of verdict words, "score", "whole numbers", "numbers", "text", "nested" or "blank"
    values: tuple[str, ...]  # as labels, blank cells empty
    distinct: int
    blank: int

    @property
    def is_verdict(self) -> bool:
        """Whether it says right or wrong."""
        return self.kind in dict(VERDICTS)

    @property
    def is_score(self) -> bool:
        """Whether it says how right."""
        return self.kind in ("score", "C/P/I/N")

    @classmethod
    def of(cls, name: str, cells: Sequence[Any]) -> ColumnProfile:
        """The profile of these cells."""
        nested = any(isinstance(cell, (list, dict)) for cell in cells)
        values = tuple("" if not isinstance(c, (list, dict)) and is_blank(c) else label(c) for c in cells)
        present = {value for value in values if value}
        kind = "nested" if nested else _kind(present)
        return cls(name, kind, values, len(present), values.count(""))


def _kind(present: set[str]) -> str:
    lower = {value.lower() for value in present}
    if not lower:
        return "blank"
    if pair := next((pair for pair, words in VERDICTS if lower <= words), None):
        return pair
    if lower <= GRADES:
        return "C/P/I/N"
    numbers = [number(value) for value in present]
    if any(value is None for value in numbers):
        return "text"
    if all(whole_number(value) is not None for value in present):
        return "whole numbers"
    return "score" if all(value is not None and 0 <= value <= 1 for value in numbers) else "numbers"


def columns_table(profiles: Sequence[ColumnProfile]) -> Table:
    """The columns with what they hold."""
    rows = []
    for one in profiles:
        commonest = [
            short(value, 24).strip("'") for value, _ in Counter(filter(None, one.values)).most_common(_EXAMPLES)
        ]
        more = ", …" if one.distinct > len(commonest) else ""
        rows.append([one.name, one.kind, f"{one.distinct:,}", f"{one.blank:,}", ", ".join(commonest) + more])
    header = ["column", "holds", "distinct", "blank", "for example"]
    return Table(title="Columns", header=header, rows=rows, noun="column")


def proposed_roles(columns: TableColumns) -> tuple[list[ColumnProfile], list[Proposal], dict[str, Any]]:
    """The profiles of the columns, what they would be, and the arguments of `outcomes_from_table` that say so."""
    profiles = [ColumnProfile.of(name, cells) for name, cells in columns.items()]
    guess = _Guess({one.name: one for one in profiles})
    found = list(guess.roles())
    return profiles, found, guess.arguments(found)


class _Guess:
    """The roles that are still free, and the columns."""

    def __init__(self, profiles: Mapping[str, ColumnProfile]) -> None:
        self.profiles = profiles
        self.free = dict(profiles)
        self.wide = ""

    def roles(self) -> Iterator[Proposal]:
        """A proposal for every role that a column seems to have; the result first, as the others may look like it."""
        result = list(self._result())
        yield from result
        task = self._task()
        if task is not None:
            yield task
        agent = self._agent(task)
        if agent is not None:
            yield agent
        if not result and task is not None:
            yield from self._wide(agents=agent is None)
        elif result and result[0].role == "correct":
            yield from self._error()
            yield from self._trial([one.source for one in (agent, task) if one])
        if task is not None:
            yield from self._of_tasks(task.source)

    def arguments(self, found: Sequence[Proposal]) -> dict[str, Any]:
        """The same as arguments."""
        columns = {one.role: one.source for one in found if one.role in self._ARGUMENTS}
        chosen = self.profiles[columns["correct"]] if "correct" in columns else None
        wide = [self.profiles[name] for name in self._wide_columns()] if self.wide else []
        scores = (chosen is not None and chosen.is_score) or any(one.is_score for one in wide)
        usual = {name: column for name, column in columns.items() if column != name or name in ("group", "weight")}
        return usual | ({"threshold": THRESHOLD} if scores else {}) | ({"wide": self.wide} if self.wide else {})

    _ARGUMENTS = ("agent", "task", "trial", "correct", "successes", "trials", "error", "group", "weight")

    def _take(self, role: str, name: str, reason: str) -> Proposal:
        self.free.pop(name)
        return Proposal(role=role, source=name, reason=reason)

    def _by_name(self, role: str) -> list[ColumnProfile]:
        return [self.free[name] for name in named(role, self.free) if self.free[name].kind not in ("blank", "nested")]

    def _result(self) -> Iterator[Proposal]:
        by_name = self._by_name("correct")
        verdicts = [one for one in by_name if one.is_verdict]
        counts = [
            next((one for one in self._by_name(role) if one.kind in ("whole numbers", "0/1")), None)
            for role in ("successes", "trials")
        ]
        if not verdicts and counts[0] and counts[1]:
            yield self._take("successes", counts[0].name, "its name; whole numbers")
            yield self._take("trials", counts[1].name, "its name; whole numbers")
            return
        roles = ("error", "trial", "task", "group", "failures", "left_out")
        taken = {name for role in roles for name in named(role, self.free)}
        others = [one for one in self.free.values() if one.is_verdict and one.name not in taken]
        if verdicts:
            yield self._take("correct", verdicts[0].name, f"its name; it holds {verdicts[0].kind}")
        elif scores := [one for one in by_name if one.is_score]:
            reason = f"its name; scores, so choose the threshold: {THRESHOLD} is only a proposal"
            yield self._take("correct", scores[0].name, reason)
        elif len(others) == 1 and others[0].distinct > 1:
            yield self._take("correct", others[0].name, f"the only column that holds {others[0].kind}")
        elif texts := [one for one in by_name if one.kind == "text"]:
            yield self._take("correct", texts[0].name, "its name")

    def _task(self) -> Proposal | None:
        by_name = [one for one in self._by_name("task") if one.kind == "0/1" or not (one.is_verdict or one.blank)]
        several = [one for one in by_name if one.distinct > 1] or by_name
        if several:
            repeats = "" if several[0].distinct == len(several[0].values) else ", which repeat"
            return self._take("task", several[0].name, f"its name; {several[0].distinct:,} values{repeats}")
        agents = named("agent", self.free)
        texts = [one for one in self.free.values() if one.kind == "text" and one.distinct > 1 and not one.blank]
        texts = [one for one in texts if one.name not in agents]
        found = max(texts, key=lambda one: (one.distinct < len(one.values), one.distinct), default=None)
        return self._take("task", found.name, f"text with the most values ({found.distinct:,})") if found else None

    def _agent(self, task: Proposal | None) -> Proposal | None:
        by_name = [one for one in self._by_name("agent") if not one.blank]
        if by_name:
            best = next((one for one in by_name if 1 < one.distinct <= MOST_AGENTS), by_name[0])
            return self._take("agent", best.name, f"its name; {best.distinct:,} values")
        if task is None:
            return None
        tasks = self.profiles[task.source].values
        roles = ("trial", "error", "reference", "correct", "metric", "part", "attempt")
        known = {name for role in roles for name in named(role, self.free)}
        for one in self.free.values():
            crossed = one.kind == "text" and 1 < one.distinct <= MOST_AGENTS and not one.blank and one.name not in known
            crossed = crossed and min(Counter(one.values).values()) > 1
            if crossed and not _is_constant(tasks, one.values):
                return self._take("agent", one.name, f"text with few values ({one.distinct}) that tasks have in common")
        return None

    def _error(self) -> Iterator[Proposal]:
        for one in self._by_name("error")[:1]:
            yield self._take("error", one.name, f"its name; {len(one.values) - one.blank:,} cells are not blank")

    def _trial(self, within: Sequence[str]) -> Iterator[Proposal]:
        """A column that numbers the attempts, if it does: no attempt may come twice."""
        for one in self._by_name("trial"):
            places = list(zip(*(self.profiles[name].values for name in within), one.values, strict=True))
            if not one.blank and len(set(places)) == len(places):
                yield self._take("trial", one.name, "its name; no value comes twice within an agent and task")
                return

    def _of_tasks(self, task: str) -> Iterator[Proposal]:
        """Group and weight, which must be the same in all rows of a task."""
        tasks = self.profiles[task].values
        for role in ("group", "weight"):
            for one in self._by_name(role):
                if one.distinct > 1 and not one.blank and _is_constant(tasks, one.values):
                    yield self._take(role, one.name, f"its name; {one.distinct:,} values, one for each task")
                    break

    def _wide_columns(self) -> list[str]:
        return [one.name for one in self.free.values() if one.is_verdict or one.is_score]

    def _wide(self, *, agents: bool) -> Iterator[Proposal]:
        """Several columns of results: trials if they are numbered, else agents unless a column names them."""
        names = self._wide_columns()
        if len(names) < 2 or len(names) < len(self.free):
            return
        numbered = _are_numbered(names)
        if not numbered and not agents:
            return
        self.wide = "trials" if numbered else "agents"
        shown = first_few(names, 4, rest=ELLIPSIS)
        yield Proposal(
            role=f"{self.wide}, one each",
            source=shown,
            reason="columns of results, numbered" if numbered else "columns of results",
        )


def _are_numbered(names: Sequence[str]) -> bool:
    """Whether columns are trials by their names, ``run 1``, ``run 2``: gpt-3 and gpt-4, v1 and v2 are agents."""
    parts = [re.fullmatch(r"(.*?)[ _#.-]*(\d+)", name.strip().lower()) for name in names]
    stems, numbers = {part and part[1] for part in parts}, sorted(int(part[2]) for part in parts if part)
    stem = stems.pop()
    if stems or stem is None or _AGENTS.fullmatch(stem):
        return False
    first = numbers[0]
    return bool(_TRIALS.fullmatch(stem)) or (first <= 1 and numbers == list(range(first, first + len(numbers))))


def _is_constant(tasks: Sequence[str], values: Sequence[str]) -> bool:
    """Whether every task has one value."""
    found = defaultdict[str, set[str]](set)
    for task, value in zip(tasks, values, strict=True):
        found[task].add(value)
    return all(len(one) == 1 for one in found.values())
