"""From settings to draws: which method `auto` means, which engine runs, and what happens when one fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from agentic_bayes.estimation.engines.diagnostics import Diagnostics, ImportanceDiagnostics
from agentic_bayes.estimation.posterior import CHAINS, DRAWS, Counts
from agentic_bayes.estimation.settings import Settings

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Sampled", "choose_method", "sample"]

SHARED_SHARE = 0.5  # of the tasks, attempted by two agents or more, from which `auto` takes the crossed model


@dataclass(frozen=True)
class Sampled:
    """Draws of the hyperparameters and the engine's account of them."""

    draws: xr.Dataset  # dims (chain, draw, agent)
    sample_stats: xr.Dataset | None  # NUTS's account, dims (chain, draw)
    diagnostics: Diagnostics | ImportanceDiagnostics  # whether the draws may be trusted
    note: str = ""  # what a reader must know about the engine, or empty


def choose_method(counts: Counts) -> tuple[Literal["crossed", "hierarchical"], str]:
    """What ``method="auto"`` means for these counts, and why."""
    if len(counts.agents) < 2:
        return "hierarchical", "there is one agent"
    shared, total = int((counts.attempted.sum(axis=0) >= 2).sum()), len(counts.tasks)
    reason = f"{shared} of {total} tasks were attempted by two agents or more"
    return ("crossed" if shared >= SHARED_SHARE * total else "hierarchical"), reason


def sample(outcomes: xr.Dataset, settings: Settings) -> Sampled:
    """Draws for a method that is not exact."""
    note = ""
    by_importance = settings.engine in ("auto", "importance") and not settings.pool_agents and settings.prior_is_default
    if settings.method == "crossed" and by_importance:
        from agentic_bayes.estimation.engines.importance import fit_crossed

        # agents in the order of their random streams: names change no draw
        order = np.argsort(Counts.of(outcomes).streams)
        sorted_by_counts = outcomes.isel(agent=order)
        found = fit_crossed(Counts.of(sorted_by_counts), random_seed=settings.random_seed)
        if found.diagnostics.passed or settings.engine == "importance":
            drawn = _dataset(found.theta, found.sigma, found.rho, sorted_by_counts["agent"].values)
            back = drawn.isel(agent=np.argsort(order))
            return Sampled(back, None, found.diagnostics)
        note = f"importance sampling was {found.diagnostics}: sampled by NUTS instead"
    from agentic_bayes.estimation.engines import nuts as mcmc

    method: Literal["hierarchical", "crossed"] = "crossed" if settings.method == "crossed" else "hierarchical"
    fit = mcmc.fit(
        outcomes,
        method=method,
        pool_agents=settings.pool_agents,
        prior=settings.prior,
        random_seed=settings.random_seed,
    )
    return Sampled(fit.posterior, fit.sample_stats, fit.diagnostics, note)


def _dataset(theta: Any, sigma: Any, rho: Any, agents: Any) -> xr.Dataset:
    import xarray as xr

    shape, dims = (CHAINS, DRAWS), ("chain", "draw")
    return xr.Dataset(
        {
            "theta": ((*dims, "agent"), theta.reshape(*shape, -1)),
            "sigma": (dims, sigma.reshape(shape)),
            "rho": ((*dims, "agent"), rho.reshape(*shape, -1)),
        },
        coords={"chain": np.arange(CHAINS), "draw": np.arange(DRAWS), "agent": agents},
    )
