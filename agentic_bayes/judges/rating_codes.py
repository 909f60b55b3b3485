"""Turns ratings, however they are written, into numbered categories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from agentic_bayes.evidence.table import is_blank, number, zero_one
from agentic_bayes.numerics import Floats, Ints
from agentic_bayes.records.base import short

Level = Literal["nominal", "ordinal", "interval"]


@dataclass(frozen=True)
class Ratings:
    """Numbered ratings."""

    codes: Ints  # shape (items, raters); categories from 0; -1 where a rater gave none
    categories: tuple[str, ...]  # their names, in order
    # shape (categories,); their numbers or, if they are not numbers, their positions in the order
    values: Floats


def code_ratings(
    columns: Sequence[Sequence[Any]],
    raters: Sequence[str],
    *,
    level: Level,
    categories: Sequence[object] | None,
    problems: list[str],
) -> Ratings:
    """Number the categories of ratings."""
    rated = [(i, j, cell) for j, column in enumerate(columns) for i, cell in enumerate(column) if not is_blank(cell)]
    cells = [cell for _, _, cell in rated]
    other = next((cell for cell in (*cells, *(categories or ())) if _value(cell) is None), None)
    key_of: Callable[[object], Any] = _value if other is None else _text
    keys = [key_of(cell) for cell in cells]
    if level == "interval" and (other is not None or categories is not None):
        problems.append(f"level 'interval' needs numbers and no categories, got {short(other or categories)}")
    if level == "ordinal" and other is not None and categories is None:
        problems.append("level 'ordinal' needs categories=[…] in order, unless they are numbers")
    order = sorted(set(keys)) if categories is None else [key_of(category) for category in categories]
    code_of = {key: code for code, key in enumerate(order)}
    if len(code_of) < len(order):
        problems.append(f"categories must differ, got {short(categories)}")
    codes = np.full((len(columns[0]), len(raters)), -1, dtype=np.int64)
    for (i, j, cell), key in zip(rated, keys, strict=True):
        if key not in code_of:
            problems.append(f"row {i + 1}: {raters[j]} must be one of the categories or blank, got {short(cell)}")
        codes[i, j] = code_of.get(key, -1)
    values = order if other is None and categories is None else range(len(order))
    return Ratings(codes, tuple(map(_text, order)), np.asarray(list(values), dtype=np.float64))


def _value(cell: object) -> float | None:
    """A number, 1 or 0 for true and false, or None."""
    value = number(cell)
    if value is None and zero_one(cell) in (0, 1):
        return float(zero_one(cell) == 1)
    return value


def _text(cell: object) -> str:
    """The cell as text; whole floats, which columns with gaps turn integers into, become integers again."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()
