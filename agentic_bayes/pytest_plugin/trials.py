"""For the pytest plugin: what a marker asks, and which test an item is a trial of."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any, Literal

import pytest

from agentic_bayes.checks import check_choice
from agentic_bayes.errors import InvalidArgument, UnknownName
from agentic_bayes.formatting import METRICS, Metric

__all__ = [
    "PARAM",
    "Inconclusive",
    "PlannedTrial",
    "PytestTrial",
    "TrialDesign",
    "TrialStatus",
    "planned_trial",
    "trial_id",
    "trial_of",
]

Inconclusive = Literal["fail", "pass"]
TrialStatus = Literal["passed", "failed", "errored", "unscored"]
PARAM = "_agentic_trial"
"""Name of the parameter that makes an item a trial."""
MOST_TRIALS = 10_000
"""Of one test; each is an item that pytest keeps."""
_TRIAL = re.compile(
    r"(?P<head>.*)\[(?:(?P<others>.*)-)?trial(?P<index>\d{1,9})/(?P<trials>\d{1,9})\]"
    r"(?:@.*)?",  # with --dist loadgroup pytest-xdist may append a group's name
    re.ASCII | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialDesign:
    """What a marker asks: so many trials, and a gate on them."""

    trials: int  # how often the test is run, in [1, 10,000]
    at_least: float  # the bar, strictly between 0 and 1
    k: int = 1  # attempts in pass@k or pass^k, ≥ 1; beyond `trials` the verdict is flagged ``extrapolated``
    probability: float = 0.95  # required, in (0.5, 1)
    metric: Metric = "pass_pow_k"  # what must reach the bar

    def __post_init__(self) -> None:
        # not before a test uses the marker: these load NumPy
        from agentic_bayes.checks import check_attempts, check_k, check_probability
        from agentic_bayes.decisions.gate import check_required

        check_choice("metric", self.metric, METRICS)
        checked = {
            "trials": check_k(self.trials, "trials"),
            "at_least": check_probability(self.at_least, "at_least", open_ends=True),
            "k": check_attempts(self.k),
            "probability": check_required(self.probability),
        }
        if checked["trials"] > MOST_TRIALS:
            raise InvalidArgument(f"trials must be at most {MOST_TRIALS:,}, got {checked['trials']:,}")
        for name, value in checked.items():  # as Python's own numbers, which travel between processes
            object.__setattr__(self, name, value)

    @classmethod
    def of_marks(cls, marks: list[pytest.Mark]) -> TrialDesign:
        """What the markers of a test ask, the nearest first; an argument that it lacks is taken from the next."""
        asked: dict[str, Any] = {}
        names = [field.name for field in fields(cls)]
        for mark in marks:
            if mark.args:
                raise InvalidArgument(
                    f"arguments must be given by name ({', '.join(names)}), got {', '.join(map(repr, mark.args))}"
                )
            for name in mark.kwargs:
                if name not in names:
                    raise UnknownName("argument", name, names)
            asked = {**mark.kwargs, **asked}
        missing = [name for name in ("trials", "at_least") if name not in asked]
        if missing:
            raise InvalidArgument(f"{' and '.join(missing)} must be given, such as trials=20, at_least=0.7")
        return cls(**asked)


@dataclass(frozen=True, slots=True)
class PytestTrial:
    """One trial of a test, for tests that want to know; the fixture ``trial``."""

    index: int  # from 0
    seed: int  # in [0, 2^31): its own, and the same in every run


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """A trial before it is run, as a parameter of its item."""

    index: int  # from 0
    design: TrialDesign  # what its test asks


def trial_id(planned: PlannedTrial) -> str:
    """How a trial's id ends, such as ``trial0/20``; with the total, so that nobody's own parameters look like it."""
    return f"trial{planned.index}/{planned.design.trials}"


def trial_of(nodeid: str) -> tuple[str, int] | None:
    """The test that a trial belongs to and the trial's number, from the trial's id; None for other ids."""
    found = _TRIAL.fullmatch(nodeid)
    if found is None or int(found["index"]) >= int(found["trials"]):
        return None
    head, others = found["head"], found["others"]
    return (head if others is None else f"{head}[{others}]"), int(found["index"])


def planned_trial(item: pytest.Item) -> PlannedTrial | None:
    """The trial that an item is, or None."""
    planned = getattr(getattr(item, "callspec", None), "params", {}).get(PARAM)
    return planned if isinstance(planned, PlannedTrial) else None
