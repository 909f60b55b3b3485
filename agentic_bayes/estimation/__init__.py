"""Counts become posteriors of pass@k and pass^k."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentic_bayes.estimation.predictive import prior_predictive

__all__ = ["prior_predictive"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """`prior_predictive`, loaded on first use."""
        if name == "prior_predictive":
            from agentic_bayes.estimation.predictive import prior_predictive

            return prior_predictive
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
