"""Counts from results that another tool wrote."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.evidence.results.evidence import ToolResults, read_results
from agentic_bayes.outcomes.count import count_outcomes
from agentic_bayes.outcomes.missing import ErrorHandling

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["outcomes_from_results"]


def outcomes_from_results(
    path: Any,
    *,
    scorer: str | None = None,
    scale: tuple[float, float] | None = None,
    agent: str | None = None,
    fields: Mapping[str, str] | None = None,
    threshold: float | None = None,
    errors: ErrorHandling = "unscored",
    group: str | None = None,
    weight: str | None = None,
) -> xr.Dataset:
    """Count the results of another tool: successes and trials per agent and task.

    Parameters
    ----------
    path : str, Path, frame, dict or list
        A file that the tool wrote, or what is in it, as in `evidence_from_results`.
    scorer : str, optional
        The score that counts, if there are several and the tool gives no verdict of its own.
    scale : (float, float), optional
        The lowest and the highest value of the scores (default: 0 and 1).
    agent : str, optional
        The agent's name, for files of one agent.
    fields : mapping, optional
        Where a result says its ``agent``, ``task`` or ``trial`` if it is not the usual place.
    threshold : float, optional
        Minimum score for a success, in [0, 1] (default: the tool's own where it has one, else 0.7).
    errors : {"unscored", "fail", "bounds"}
        What errored trials count as; see `count_outcomes`.
    group, weight : str, optional
        Fields of the results' metadata (``"metadata.domain"``) that group or weigh the tasks; see `count_outcomes`.

    Returns
    -------
    xarray.Dataset
        See `check_outcomes`. ``attrs["taken"]`` names the tool and says what became agent, task, trial and score.

    Raises
    ------
    EvidenceError
        If the file cannot be read; see `evidence_from_results`.
    InvalidArgument
        If the tool cut the score at several thresholds and none is given.

    Examples
    --------
    >>> report = {"test_results": [{"name": "oslo", "success": True}, {"name": "oslo", "success": False}]}
    >>> outcomes_from_results(report)["successes"].values.tolist()  # or the path of a file
    [[1]]
    """
    found = read_results(path, scorer=scorer, scale=scale, agent=agent, fields=fields)
    counting = {"threshold": threshold, "errors": errors, "group": group, "weight": weight}
    outcomes = count_outcomes(found.evidence, **counting_of(found, counting))
    outcomes.attrs |= {"source": str(path) if isinstance(path, (str, PathLike)) else "results", "taken": found.taken}
    return outcomes


def counting_of(found: ToolResults, counting: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `count_outcomes`: those that are given, and the tool's own threshold."""
    given = {name: value for name, value in counting.items() if value is not None}
    if not found.thresholds or given.get("indicator", "answer") not in ("answer", "joint"):
        return given
    if len(found.thresholds) > 1 and "threshold" not in given:
        several = ", ".join(f"{value:g}" for value in found.thresholds)
        raise InvalidArgument(f"the score has several thresholds of its own ({several}): give one, threshold=0.7")
    return {"threshold": found.thresholds[0]} | given
