"""One gate for every group of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from agentic_bayes.decisions.decision import Decision
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.many.ask import GroupAnswer, ask_groups, group_records, tidy
from agentic_bayes.estimation.many.estimates import ManyEstimates
from agentic_bayes.formatting import exact_percent, format_estimate, format_percent, plural
from agentic_bayes.result_table import Table

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["ManyGates"]

_OF_A_GATE = (
    "agent",
    "verdict",
    "probability",
    "metric",
    "estimand",
    "mean",
    "lower",
    "upper",
    "at_least",
    "confidence",
)
_COUNTS = ("scored", "unscored", "errored")
COLUMNS = (*_OF_A_GATE, "n_tasks", *_COUNTS, "flags", "note")
INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, repr=False)
class ManyGates(Decision):
    """The same gate for every group of a table.

    Attributes
    ----------
    split : tuple of str
        The columns that tell groups apart.
    answers : tuple
        What came of each group, in natural order of the groups.
    """

    split: tuple[str, ...]
    answers: tuple[GroupAnswer, ...]

    @property
    def verdict(self) -> str:
        """Verdict on all: fail if a gate fails, else inconclusive if one is or a group has no estimate, else pass."""
        verdicts = self.verdicts()
        return next((name for name in ("fail", INCONCLUSIVE) if verdicts.get(name)), "pass")

    def verdicts(self) -> dict[str, int]:
        """How many gates pass, fail or are inconclusive; groups without an estimate are inconclusive.

        Returns
        -------
        dict of str to int
        """
        found = [row["verdict"] for answer in self.answers for row in answer.rows or ({"verdict": INCONCLUSIVE},)]
        return {name: found.count(name) for name in ("pass", "fail", INCONCLUSIVE)}

    def __str__(self) -> str:
        counts = ", ".join(f"{number:,} {name}" for name, number in self.verdicts().items() if number)
        return f"{self.verdict}: {counts} ({plural(len(self.answers), 'group')} by {', '.join(self.split)})"

    def to_pandas(self) -> pd.DataFrame:
        """One row per group and agent.

        Returns
        -------
        pandas.DataFrame
            The split columns; agent, verdict, probability, metric, estimand, mean, lower, upper, at_least, confidence,
            n_tasks, scored, unscored, errored (trials), flags, note; and ``reason``: why a group has no estimate, so
            that its verdict is "inconclusive".
        """
        frame = tidy(self.split, self.answers, COLUMNS)
        return frame.assign(verdict=frame["verdict"].fillna(INCONCLUSIVE))

    def to_dict(self) -> dict[str, Any]:
        """The gates as plain JSON values.

        Returns
        -------
        dict
        """
        return group_records(self.split, self.answers) | {"verdict": self.verdict, "sentence": str(self)}

    def table(self) -> Table:
        """One row per group and agent."""
        rows, named = list[list[str]](), [] if "agent" in self.split else ["agent"]
        for answer in self.answers:
            for row in answer.rows:
                numbers = format_percent(row["probability"]), format_estimate(row["mean"], row["lower"], row["upper"])
                rows.append([*answer.key, *(row[name] for name in named), row["verdict"], *numbers, row["flags"]])
            if answer.error is not None:
                rows.append([*answer.key, *("–" for _ in named), INCONCLUSIVE, "–", "–", answer.reason])
        asked = next((row for answer in self.answers for row in answer.rows), None)
        metric, notes = "metric", list[str]()
        if asked is not None:
            metric = asked["metric"]
            notes.append(
                f"P({metric} ≥ {asked['at_least']:g}) must reach {exact_percent(asked['confidence'])}; "
                f"estimand {asked['estimand']}"
            )
        header = [*self.split, *named, "verdict", "probability", metric, "flags"]
        return Table(title=f"Gates: {self}", header=header, rows=rows, notes=notes)


def gate_many(many: ManyEstimates, one: Callable[..., Any], agent: str | None, asked: Mapping[str, Any]) -> ManyGates:
    """Judge each group where its estimate was made; `one` judges an agent of an estimate."""
    ask = partial(_judged, one=one, agent=agent, asked=asked, options=many.options)
    groups = [(answer.key, answer.error if answer.outcomes is None else answer.outcomes) for answer in many.answers]
    return ManyGates(many.split, ask_groups(groups, ask, None, executor=many.executor, progress=None))


def _judged(
    outcomes: xr.Dataset,
    *,
    one: Callable[..., Any],
    agent: str | None,
    asked: Mapping[str, Any],
    options: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """A row for the agent, or for all agents but the baseline."""
    est = estimate(outcomes, **options)
    names = [name for name in est.agents if name != asked.get("baseline")] if agent is None else [agent]
    rows = []
    for name in names:
        found = one(est, name, **asked)
        counts = {count: getattr(found.trials, count) for count in _COUNTS}
        kept = {column: getattr(found, column) for column in (*_OF_A_GATE, "note")}
        rows.append({**kept, **counts, "flags": ", ".join(found.flags)})
    return rows
