"""What an estimate would be if missing trials had failed or passed: same method, same priors, other counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from agentic_bayes.estimation.estimate import Estimate, estimate_as
from agentic_bayes.estimation.methods.judge_labels import Located
from agentic_bayes.estimation.settings import Engine
from agentic_bayes.outcomes.missing import MissingTrials, counted_as

if TYPE_CHECKING:
    import xarray as xr

MAX_MISSING = 0.02  # share of missing trials up to which nobody asks what they might have been


def as_if(
    est: Estimate,
    *,
    failed: str | Iterable[str] = (),
    passed: str | Iterable[str] = (),
    which: MissingTrials = "unscored",
    engine: Engine | None = None,
) -> Estimate:
    """The estimate with the missing trials of some agents counted as failed, and those of others as passed.

    With ``which="errored"`` only trials of crashed agents count. Fitted when first asked for, and once; by the
    estimate's engine, or another. A difference is
    smallest with the agent's trials failed and the baseline's passed, and largest the other way round.
    """
    if np.array_equal(est.outcomes["errored"].values, est.outcomes["unscored"].values):
        which = "unscored"
    down, up = ((one,) if isinstance(one, str) else tuple(one) for one in (failed, passed))

    def fit() -> Estimate:
        outcomes = counted_as(est.outcomes, failed=down, passed=up, which=which)
        settings = est.settings if engine is None else replace(est.settings, engine=engine)
        if settings.judge is not None:  # what is assumed of a trial is no verdict that may be wrong
            assumed = (*settings.judge.assumed, *_assumed(est.outcomes, outcomes))
            settings = replace(settings, judge=replace(settings.judge, assumed=assumed))
        return replace(estimate_as(outcomes, settings), versions=est.versions)

    return est.posterior.once(("as if", frozenset(down), frozenset(up), which, engine), fit)


def _assumed(before: xr.Dataset, after: xr.Dataset) -> Located:
    """The trials that were filled in, by agent and task: how many, and as right and passed or as neither."""
    more, right = (after[name].values - before[name].values for name in ("trials", "successes"))
    agents, tasks = (after[dim].values.tolist() for dim in ("agent", "task"))
    return tuple(
        (agents[a], tasks[i], int(more[a, i]), *[int(right[a, i])] * 3) for a, i in np.argwhere(more > 0).tolist()
    )
