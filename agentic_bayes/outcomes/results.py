"""Counts from results that another tool wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agentic_bayes.evidence.results.evidence import read_results
from agentic_bayes.outcomes.count import ErrorHandling, count_outcomes

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["outcomes_from_results"]


def outcomes_from_results(
    path: str | Path,
    *,
    scorer: str | None = None,
    scale: tuple[float, float] | None = None,
    agent: str | None = None,
    threshold: float | None = None,
    errors: ErrorHandling = "unscored",
    group: str | None = None,
    weight: str | None = None,
) -> xr.Dataset:
    """Count the results of another tool: successes and trials per agent and task.

    Parameters
    ----------
    path, scorer, scale, agent
        As in `evidence_from_results`, which reads the file.
    threshold : float, optional
        Minimum score for a success, in [0, 1] (default: the tool's own where it has one, else 0.7).
    errors, group, weight
        As in `count_outcomes`, which counts.

    Returns
    -------
    xarray.Dataset
        See `check_outcomes`. ``attrs["taken"]`` names the tool and says what became agent, task, trial and score.

    Raises
    ------
    EvidenceError
        If the file cannot be read; see `evidence_from_results`.

    Examples
    --------
    >>> outcomes = outcomes_from_results("promptfoo.json")  # doctest: +SKIP
    """
    found = read_results(path, scorer=scorer, scale=scale, agent=agent)
    cut = found.threshold or 0.7 if threshold is None else threshold
    outcomes = count_outcomes(found.evidence, threshold=cut, errors=errors, group=group, weight=weight)
    outcomes.attrs |= {"source": str(path), "taken": found.taken}
    return outcomes
