"""Trials without a verdict: how many there are, and outcomes in which they count as failed or passed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from agentic_bayes.checks import check_choice
from agentic_bayes.formatting import plural
from agentic_bayes.numerics import Array
from agentic_bayes.outcomes.coordinates import plain_variable
from agentic_bayes.outcomes.dataset import with_bounds

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["TrialCounts"]

ErrorHandling = Literal["unscored", "fail", "bounds"]  # what trials of crashed agents count as
MissingTrials = Literal["unscored", "errored"]  # all trials without a verdict, or those of crashed agents only


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """How many trials a conclusion rests on, and how many are missing.

    Attributes
    ----------
    scored, unscored, errored : int
        Trials with a verdict; without one; and the part of the latter whose agent crashed.

    Examples
    --------
    >>> str(TrialCounts(scored=150, unscored=150, errored=150))
    '150 of 300 trials errored'
    """

    scored: int
    unscored: int
    errored: int

    @classmethod
    def of(cls, outcomes: xr.Dataset, agents: str | Iterable[str] | None = None) -> Self:
        """Count the trials of one agent, of several, or of all.

        Parameters
        ----------
        outcomes : xarray.Dataset
            From `check_outcomes`, or an estimate's.
        agents : str or iterable of str, optional
            Names; all agents unless given.

        Returns
        -------
        TrialCounts

        Raises
        ------
        UnknownName
            If there is no such agent.
        """
        chosen = _chosen(outcomes, agents)
        names = ("trials", "unscored", "errored")
        return cls(*(int(outcomes[name].values[chosen].sum()) for name in names))

    @property
    def total(self) -> int:
        """All trials, scored or not."""
        return self.scored + self.unscored

    @property
    def share_missing(self) -> float:
        """The share of the trials that are unscored; 0 where there are no trials."""
        return self.unscored / self.total if self.total else 0.0

    @property
    def words(self) -> str:
        """The missing trials as a part of a sentence; empty where none is missing."""
        return str(self) if self.unscored else ""

    def __str__(self) -> str:
        trials = plural(self.total, "trial")
        if not self.unscored:
            return f"{trials}, all scored"
        if self.errored == self.unscored:
            return f"{self.errored:,} of {trials} errored"
        more = f", of them {self.errored:,} errored" if self.errored else ""
        return f"{self.unscored:,} of {trials} unscored{more}"

    def __add__(self, other: TrialCounts) -> TrialCounts:
        return TrialCounts(self.scored + other.scored, self.unscored + other.unscored, self.errored + other.errored)

    def to_dict(self) -> dict[str, int]:
        """The counts as plain JSON values.

        Returns
        -------
        dict
        """
        return asdict(self)


def counted_as(
    outcomes: xr.Dataset,
    *,
    failed: str | Iterable[str] = (),
    passed: str | Iterable[str] = (),
    which: MissingTrials = "unscored",
) -> xr.Dataset:
    """Outcomes in which the missing trials of some agents count as failed, and those of others as passed.

    `outcomes` are checked ones. With ``which="errored"`` only trials of crashed agents count, and the others stay
    unscored.
    """
    values = {name: outcomes[name].values.copy() for name in ("successes", "trials", "unscored", "errored")}
    missing = values[which].copy()
    as_passed = _chosen(outcomes, passed)
    for row in {*_chosen(outcomes, failed).tolist(), *as_passed.tolist()}:
        values["trials"][row] += missing[row]
        values["unscored"][row] -= missing[row]
        values["errored"][row] = 0
    values["successes"][as_passed] += missing[as_passed]
    return outcomes.assign({name: plain_variable(("agent", "task"), value) for name, value in values.items()})


def with_errors_as(outcomes: xr.Dataset, errors: ErrorHandling) -> xr.Dataset:
    """Outcomes whose errored trials count as `errors` says; ``crashed`` is how many failures no judge has seen."""
    if errors == "bounds":
        return with_bounds(outcomes)
    if errors == "unscored" or not outcomes["errored"].values.any():
        return outcomes
    failed = counted_as(outcomes, failed=outcomes["agent"].values.tolist(), which="errored")
    return failed.assign(crashed=outcomes["errored"])


def _chosen(outcomes: xr.Dataset, agents: str | Iterable[str] | None) -> Array:
    """Positions of these agents; of all where none are named."""
    known = outcomes["agent"].values.tolist()
    if agents is None:
        return np.arange(len(known))
    wanted = (agents,) if isinstance(agents, str) else tuple(agents)
    for name in wanted:
        check_choice("agent", name, known)
    return np.array([known.index(name) for name in wanted], dtype=np.int64)
