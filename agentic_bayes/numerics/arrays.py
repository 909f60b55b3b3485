"""Types of arrays, and numbers that may come as any array-like."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agentic_bayes.errors import InvalidArgument

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Array = np.ndarray[Any, np.dtype[Any]]

ROUNDING = 1e-9  # by which a count may exceed its total


def numbers(name: str, values: ArrayLike) -> Floats:
    """An array of floats."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{name} must hold numbers, got {values!r}") from None


def proportions(c: ArrayLike, n: ArrayLike) -> tuple[Floats, Floats]:
    """Successes and trials."""
    successes, trials = numbers("c", c), numbers("n", n)
    if np.any(successes < 0) or np.any(successes > trials * (1 + ROUNDING)):
        raise InvalidArgument(f"c must lie in [0, n], got n={n!r}, c={c!r}")
    return successes, trials


def attempts(k: ArrayLike) -> Ints:
    """Numbers of attempts."""
    ks = np.asarray(k)
    if ks.dtype.kind not in "iu" or (ks.size and ks.min() < 1):
        raise InvalidArgument(f"k must be an integer ≥ 1, got {k!r}")
    return ks.astype(np.int64)
