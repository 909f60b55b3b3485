"""The pytest marker's arguments, and which trial of which test a pytest item is."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any, Literal

import pytest

from agentic_bayes.errors import InvalidArgument, UnknownName
from agentic_bayes.formatting import Metric

Inconclusive = Literal["fail", "pass"]
TrialStatus = Literal["passed", "failed", "errored", "unscored"]
PARAM = "_agentic_trial"
"""Name of the parameter that makes an item a trial."""
MOST_TRIALS = 10_000
"""Most trials of one test; pytest keeps an item for each."""
_TRIAL = re.compile(
    r"(?P<head>.*)\[(?:(?P<others>.*)-)?trial(?P<index>\d{1,9})/(?P<trials>\d{1,9})\]"
    r"(?:@.*)?",  # pytest-xdist appends a group's name with --dist loadgroup
    re.ASCII | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialDesign:
    """The marker's arguments: the number of trials, and a gate on them."""

    trials: int  # how often to run the test, in [1, 10,000]
    at_least: float  # the bar, strictly between 0 and 1
    metric: str = "pass^1"  # must reach the bar; the verdict is flagged ``extrapolated`` if its k exceeds `trials`
    confidence: float = 0.95  # how probable the bar must be reached, or missed, for a verdict; in (0.5, 1)

    def __post_init__(self) -> None:
        # imported here because they load NumPy, which pytest must not load unless a test uses the marker
        from agentic_bayes.checks import check_count, check_probability
        from agentic_bayes.decisions.gate import check_confidence

        checked: dict[str, Any] = {
            "trials": check_count(self.trials, "trials"),
            "at_least": check_probability(self.at_least, "at_least", open_ends=True),
            "metric": str(Metric(self.metric)),
            "confidence": check_confidence(self.confidence),
        }
        if checked["trials"] > MOST_TRIALS:
            raise InvalidArgument(f"trials must be at most {MOST_TRIALS:,}, got {checked['trials']:,}")
        for name, value in checked.items():  # plain Python values, because they travel between processes
            object.__setattr__(self, name, value)

    @classmethod
    def of_marks(cls, marks: list[pytest.Mark]) -> TrialDesign:
        """Combine the markers of a test; arguments of the nearest one win."""
        arguments: dict[str, Any] = {}
        names = [field.name for field in fields(cls)]
        for mark in marks:
            if mark.args:
                raise InvalidArgument(
                    f"arguments must be given by name ({', '.join(names)}), got {', '.join(map(repr, mark.args))}"
                )
            for name in mark.kwargs:
                if name not in names:
                    raise UnknownName("argument", name, names)
            arguments = {**mark.kwargs, **arguments}
        missing = [name for name in ("trials", "at_least") if name not in arguments]
        if missing:
            raise InvalidArgument(f"{' and '.join(missing)} must be given, for example trials=20, at_least=0.7")
        return cls(**arguments)


@dataclass(frozen=True, slots=True)
class PytestTrial:
    """The fixture ``trial``: the number and the seed of the current trial."""

    index: int  # from 0
    seed: int  # in [0, 2^31); different for every trial, and the same in every run


@dataclass(slots=True)
class TrialCourse:
    """How a trial went so far; the first problem in its body decides its status."""

    status: TrialStatus | None = None  # None until its body has run, which --setup-only and --setup-plan skip
    reason: str = ""
    xfail: str | None = None
    strict: bool = False


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """A trial before it runs, as a parameter of its item."""

    index: int  # from 0
    design: TrialDesign


def trial_id(planned: PlannedTrial) -> str:
    """The end of a trial's id, for example ``trial0/20``; the total makes a clash with other parameters unlikely."""
    return f"trial{planned.index}/{planned.design.trials}"


def trial_of(nodeid: str) -> tuple[str, int] | None:
    """The test and the trial's number that an item's id names; None if the item is not a trial."""
    match = _TRIAL.fullmatch(nodeid)
    if match is None or int(match["index"]) >= int(match["trials"]):
        return None
    head, others = match["head"], match["others"]
    return (head if others is None else f"{head}[{others}]"), int(match["index"])


def planned_trial(item: pytest.Item) -> PlannedTrial | None:
    """The trial that an item is, or None."""
    planned = getattr(getattr(item, "callspec", None), "params", {}).get(PARAM)
    return planned if isinstance(planned, PlannedTrial) else None
