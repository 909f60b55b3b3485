"""Whether a sampler's own diagnostics say that its numbers can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentic_bayes.estimation.io import stacks

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Diagnostics", "ImportanceDiagnostics"]

MAX_RHAT = 1.01
MIN_ESS = 400.0
MAX_DIVERGENT_SHARE = 0.001
MAX_PARETO_K = 0.7


@dataclass(frozen=True, slots=True)
class _Account:
    """What every engine's account of itself has."""

    @property
    def problems(self) -> tuple[str, ...]:
        """What failed, in words; empty when all is well."""
        raise NotImplementedError

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class Diagnostics(_Account):
    """What a NUTS run says about itself.

    Attributes
    ----------
    rhat : float
        Largest rank-normalised split R-hat; must be below 1.01.
    ess_bulk, ess_tail : float
        Smallest effective sample sizes; must be above 400.
    divergences : int
        Divergent transitions; at most .1 % of the draws.
    draws : int
        Draws in all chains.
    target_accept : float
        The acceptance rate that the step size aimed at.

    References
    ----------
    Vehtari et al. (2021), Bayesian Analysis 16, 667-718, doi:10.1214/20-BA1221.
    """

    rhat: float
    ess_bulk: float
    ess_tail: float
    divergences: int
    draws: int
    target_accept: float

    @property
    def problems(self) -> tuple[str, ...]:
        """What failed, in words; empty when all is well. An undefined diagnostic fails."""
        found = []
        if not self.rhat < MAX_RHAT:
            found.append(f"R-hat {self.rhat:.3f} (must be < {MAX_RHAT})")
        for name, value in (("bulk", self.ess_bulk), ("tail", self.ess_tail)):
            if not value > MIN_ESS:
                found.append(f"{name} ESS {value:.0f} (must be > {MIN_ESS:.0f})")
        if self.divergences > MAX_DIVERGENT_SHARE * self.draws:
            allowed = int(MAX_DIVERGENT_SHARE * self.draws)
            found.append(f"{self.divergences} divergences in {self.draws} draws (at most {allowed})")
        return tuple(found)

    def __str__(self) -> str:
        state = "converged" if self.passed else "NOT CONVERGED: " + "; ".join(self.problems)
        return (
            f"{state} (R-hat {self.rhat:.3f}, ESS bulk {self.ess_bulk:.0f}, tail {self.ess_tail:.0f}, "
            f"{self.divergences} divergences in {self.draws} draws)"
        )


@dataclass(frozen=True, slots=True)
class ImportanceDiagnostics(_Account):
    """What an importance sampling run says about itself.

    Attributes
    ----------
    pareto_k : float
        Shape of the tail of the weights; must be at most .7.
    ess : float
        Effective sample size of the weights; must be at least 400.
    draws : int
        Proposals.

    References
    ----------
    Vehtari et al. (2024), Pareto Smoothed Importance Sampling, JMLR 25(72).
    """

    pareto_k: float
    ess: float
    draws: int

    @property
    def problems(self) -> tuple[str, ...]:
        """What failed, in words; empty when all is well."""
        found = []
        if not self.pareto_k <= MAX_PARETO_K:
            found.append(f"Pareto k {self.pareto_k:.2f} (must be ≤ {MAX_PARETO_K})")
        if not self.ess >= MIN_ESS:
            found.append(f"ESS {self.ess:.0f} (must be ≥ {MIN_ESS:.0f})")
        return tuple(found)

    def __str__(self) -> str:
        state = "reliable" if self.passed else "NOT RELIABLE: " + "; ".join(self.problems)
        return f"{state} (Pareto k {self.pareto_k:.2f}, ESS {self.ess:.0f} of {self.draws} importance draws)"


def from_record(record: dict[str, Any] | None) -> Diagnostics | ImportanceDiagnostics | None:
    """What `asdict` of either class gave."""
    if record is None:
        return None
    return ImportanceDiagnostics(**record) if "pareto_k" in record else Diagnostics(**record)


@dataclass(frozen=True)
class Fit:
    """What a sampler gives."""

    # draws, dims (chain, draw, agent): ``rho``, ``mu`` or ``theta``, and (chain, draw): ``m``, ``tau``, ``sigma``
    posterior: xr.Dataset
    sample_stats: xr.Dataset | None  # NUTS's account, dims (chain, draw)
    diagnostics: Diagnostics | ImportanceDiagnostics  # whether the draws may be trusted
    note: str = ""  # what a reader must know about the engine, or empty


def diagnose(posterior: xr.Dataset, divergences: int, target_accept: float) -> Diagnostics:
    """Diagnose draws."""
    return Diagnostics(
        rhat=stacks.rhat(posterior),
        ess_bulk=stacks.ess(posterior, "bulk"),
        ess_tail=stacks.ess(posterior, "tail"),
        divergences=divergences,
        draws=posterior.sizes["chain"] * posterior.sizes["draw"],
        target_accept=target_accept,
    )
