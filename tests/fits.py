"""Outcomes made from plain counts, and fits of them, each made once in a test run.

The PyMC engine compiles once per number of agents (some ten seconds): two agents in CI, one agent among the slow tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from typing import Any, get_args

import numpy as np
import pytest
import xarray as xr

from agentic_bayes.estimation.distribution import Stats
from agentic_bayes.estimation.estimate import Estimate, estimate
from agentic_bayes.estimation.posterior import Posterior
from agentic_bayes.estimation.settings import Engine
from agentic_bayes.formatting import Metric
from agentic_bayes.outcomes.table import outcomes_from_table

ENGINES = tuple(engine for engine in ("quadrature", "pymc") if engine in get_args(Engine))
# of one agent NUTS is another model to compile: among the slow tests, and in the notebook of the model
ALONE = tuple(pytest.param(engine, marks=[pytest.mark.slow] * (engine == "pymc")) for engine in ENGINES)
KS = (1, 2, 3, 5)
EVERY: dict[str, Any] = {"columns": "all", "tasks": True}  # all columns and rows of a summary

Cell = tuple[int, ...]  # (successes, trials) or (successes, trials, unscored)
NEVER: Cell = (0, 0)

# one agent: every number of trials from 1 to 6, and all of c = 0..n in some task
UNEQUAL: tuple[Cell, ...] = (
    *((0, 4), (1, 4), (4, 4), (4, 4), (2, 5), (5, 5)),
    *((3, 3), (0, 3), (1, 1), (6, 6), (2, 6), (1, 2)),
)
# two agents of which the second is better; a cell never attempted and one in which nothing was scored
WEAKER: tuple[Cell, ...] = (
    *((0, 4), (1, 4), (2, 4), (0, 4), (3, 4), (1, 4)),
    *((4, 4), (0, 3, 1), (1, 4), (2, 4), NEVER, (0, 0, 2)),
)
STRONGER: tuple[Cell, ...] = (
    *((2, 4), (4, 4), (4, 4), (1, 4), (4, 4), (3, 4)),
    *((4, 4), (2, 4), (4, 4), (3, 4), (4, 4), (4, 4)),
)


def counts(agents: Mapping[str, Sequence[Cell]], **attrs: Any) -> xr.Dataset:
    """Outcomes of agents that each have one cell per task."""
    cells = np.array([[(*cell, 0)[:3] for cell in row] for row in agents.values()], dtype=np.int64)
    names = [f"task {i + 1}" for i in range(cells.shape[1])]
    return xr.Dataset(
        {name: (("agent", "task"), cells[..., i]) for i, name in enumerate(("successes", "trials", "unscored"))},
        coords={"agent": np.array(list(agents), dtype=object), "task": np.array(names, dtype=object)},
        attrs={"unit": "conversation", "indicator": "correct", **attrs},
    )


def once(make: Callable[..., Estimate]) -> Callable[..., Estimate]:
    """Make each fit once in a test run; one by NUTS counts as a use of PyMC also where it was made before."""
    made = cache(make)

    @wraps(make)
    def fit_once(engine: str, *arguments: Any, **options: Any) -> Estimate:
        if engine == "pymc":
            import pymc  # noqa: F401 - seen by the rule in conftest.py
        return made(engine, *arguments, **options)

    return fit_once


@once
def fit(engine: str, cells: tuple[Cell, ...], seed: int = 0) -> Estimate:
    """The hierarchical estimate of one agent with these cells."""
    return estimate(counts({"solo": cells}), engine=engine, k=KS, random_seed=seed)  # type: ignore[arg-type]


@once
def fit_two(engine: str, first: tuple[Cell, ...] = WEAKER, second: tuple[Cell, ...] = STRONGER) -> Estimate:
    """The hierarchical estimate of two agents, which share strength."""
    return estimate(counts({"v1": first, "v2": second}), "hierarchical", engine=engine, k=KS)  # type: ignore[arg-type]


@once
def fit_table(engine: str, path: str, k: tuple[int, ...]) -> Estimate:
    """The hierarchical estimate of a table of 0/1 rows."""
    return estimate(outcomes_from_table(path), "hierarchical", engine=engine, k=k)  # type: ignore[arg-type]


def rows(frame: Any, **where: Any) -> Any:
    """The rows of a summary in which every named column has the given value."""
    for column, value in where.items():
        # "^" and "@" are all pass^k and all pass@k
        chosen = frame[column].str.contains(value, regex=False) if value in ("^", "@") else frame[column] == value
        frame = frame[chosen]
    assert len(frame) > 0, f"no row with {where}"
    return frame


def stats_of(posterior: Posterior, agent: int, estimand: Any, metric: str, ci_kind: Any = "eti") -> Stats:
    """Mean, sd, median and 95 % interval of a metric of one agent."""
    return posterior.distribution(agent, estimand, Metric(metric)).stats(0.95, ci_kind)


def draws_of(posterior: Posterior, agent: int, estimand: Any, metric: str) -> Any:
    """Draws of a metric of one agent."""
    return posterior.distribution(agent, estimand, Metric(metric)).draws()


def row(frame: Any, **where: Any) -> Any:
    """The only such row."""
    found = rows(frame, **where)
    assert len(found) == 1, f"{len(found)} rows with {where}"
    return found.iloc[0]
