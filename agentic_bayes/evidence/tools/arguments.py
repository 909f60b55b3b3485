"""Compares the arguments of two tool calls: by type, and exactly unless a float is involved."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from agentic_bayes.numerics import Ints

# A value as (kind, content): hashable, and of different kinds where Python's == mixes them (True and 1).
Canonical = tuple[Any, ...]

_NUMBERS = ("int", "float")
_NUMBER_TEXT = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
# Every integer up to here is a distinct float; above, a whole float may be a rounded one.
_WHOLE_FLOATS = 2.0**53
_LARGEST_FLOAT = sys.float_info.max


def canonical(value: object) -> Canonical:
    """The value as nested tuples of (kind, content), which can be hashed and keep kinds apart."""
    if value is None:
        return ("null",)
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, str):
        return ("text", str(value))
    if isinstance(value, Integral):
        return ("int", int(value))
    if isinstance(value, (Real, Decimal)):
        number = float(value)
        return ("float", "nan" if math.isnan(number) else number)
    if isinstance(value, Mapping):
        items = sorted(((str(key), content) for key, content in value.items()), key=lambda item: item[0])
        return ("object", tuple((key, canonical(content)) for key, content in items))
    if isinstance(value, (list, tuple)):
        return ("list", tuple(canonical(item) for item in value))
    return ("other", type(value).__name__, repr(value))


@dataclass(frozen=True, slots=True)
class ArgumentDifference:
    """One argument in which two calls differ."""

    key: str  # name of the argument
    kind: Literal["missing", "extra", "unequal"]
    expected: Any = None  # the two values; None if there is none
    made: Any = None


@dataclass(frozen=True, slots=True)
class ArgumentRule:
    """How to compare arguments.

    A boolean is not a number, a missing argument is not ``None``, NaN equals NaN, a tuple equals a list with the same
    items, and objects and lists are compared item by item.
    """

    over: Literal["union_keys", "expected_keys"] = "union_keys"
    float_tolerance: float = 1e-9
    numeric_strings: bool = False

    def equal(self, expected: object, made: object) -> bool:
        """Whether two argument values are equal."""
        return self._equal(canonical(expected), canonical(made))

    def counts(self, expected: Sequence[Mapping[str, Any]], made: Sequence[Mapping[str, Any]]) -> tuple[Ints, Ints]:
        """Agreement of every expected with every actual call: numbers of equal and of compared arguments."""
        shape = (len(expected), len(made))
        if shape == (1, 1):
            both = [key for key in expected[0] if key in made[0]]
            size = len(expected[0]) + (len(made[0]) - len(both) if self.over == "union_keys" else 0)
            equal = sum(self.equal(expected[0][key], made[0][key]) for key in both)
            return np.array([[equal]], dtype=np.int64), np.array([[size]], dtype=np.int64)
        agreeing, common = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        columns_of = _calls_by_key(made)
        for key, rows in _calls_by_key(expected).items():
            columns = columns_of.get(key)
            if columns is None:
                continue
            block = np.ix_(rows, columns)
            common[block] += 1
            wanted, actual = [expected[row][key] for row in rows], [made[column][key] for column in columns]
            agreeing[block] += self._equal_table([*map(canonical, wanted)], [*map(canonical, actual)])
        sizes = np.array([len(call) for call in expected], dtype=np.int64)[:, None]
        if self.over == "expected_keys":
            return agreeing, np.broadcast_to(sizes, shape)
        return agreeing, sizes + np.array([len(call) for call in made], dtype=np.int64)[None, :] - common

    def _equal_table(self, expected: list[Canonical], made: list[Canonical]) -> npt.NDArray[np.bool_]:
        row_of = {value: row for row, value in enumerate(dict.fromkeys(expected))}
        column_of = {value: column for column, value in enumerate(dict.fromkeys(made))}
        table = np.zeros((len(row_of), len(column_of)), dtype=np.bool_)
        for value, row in row_of.items():
            if value in column_of:
                table[row, column_of[value]] = True
        # compare pair by pair only values that may be equal without being identical
        pairs = self._near_numbers(row_of, column_of)
        loose_columns = [value for value in column_of if self._is_loose(value)]
        for value in row_of:
            for other in column_of if self._is_loose(value) else loose_columns:
                if value[0] not in _NUMBERS or other[0] not in _NUMBERS:
                    pairs.append((value, other))
        for value, other in pairs:
            if self._equal(value, other):
                table[row_of[value], column_of[other]] = True
        selected = np.ix_([row_of[value] for value in expected], [column_of[value] for value in made])
        return np.asarray(table[selected], dtype=np.bool_)

    def _near_numbers(
        self, expected: Iterable[Canonical], made: Iterable[Canonical]
    ) -> list[tuple[Canonical, Canonical]]:
        """Pairs of numbers that the tolerance may make equal, with some to spare."""
        left, right = _with_floats(expected), _with_floats(made)
        a = np.array([number for _, number in left])[:, None]
        b = np.array([number for _, number in right])[None, :]
        with np.errstate(over="ignore"):
            near = np.abs(a - b) <= 1.001 * self.float_tolerance * np.maximum(np.maximum(np.abs(a), np.abs(b)), 1)
        return [(left[i][0], right[j][0]) for i, j in np.argwhere(near | (a == b))]

    def _is_loose(self, value: Canonical) -> bool:
        """Whether the value may equal a value that is not identical to it."""
        if value[0] == "list":
            return any(self._is_loose(item) for item in value[1])
        if value[0] == "object":
            return any(self._is_loose(item) for _, item in value[1])
        return value[0] == "float" or (self.numeric_strings and value[0] == "text" and _number_in(value[1]) is not None)

    def _equal(self, expected: Canonical, made: Canonical) -> bool:
        if expected == made:
            return True
        kind, other = expected[0], made[0]
        if kind in _NUMBERS and other in _NUMBERS:
            return self._equal_numbers(expected[1], made[1])
        if self.numeric_strings and "text" in (kind, other) and (kind in _NUMBERS or other in _NUMBERS):
            left, right = (_number_in(v[1]) if v[0] == "text" else v[1] for v in (expected, made))
            return left is not None and right is not None and self._equal_numbers(left, right)
        if kind != other or kind not in ("list", "object") or len(expected[1]) != len(made[1]):
            return False
        if kind == "list":
            return all(map(self._equal, expected[1], made[1]))
        return all(a[0] == b[0] and self._equal(a[1], b[1]) for a, b in zip(expected[1], made[1], strict=True))

    def _equal_numbers(self, expected: float | str, made: float | str) -> bool:
        if isinstance(expected, str) or isinstance(made, str):  # exactly one is NaN
            return False
        if expected == made:
            return True
        whole = all(isinstance(x, int) or (abs(x) <= _WHOLE_FLOATS and x.is_integer()) for x in (expected, made))
        if whole:
            return False
        try:
            return math.isclose(expected, made, rel_tol=self.float_tolerance, abs_tol=self.float_tolerance)
        except OverflowError:  # an integer beyond every float
            return False


def _with_floats(values: Iterable[Canonical]) -> list[tuple[Canonical, float]]:
    """The numbers among the values that a float can hold, each with that float."""
    return [
        (value, float(value[1]))
        for value in values
        if value[0] in _NUMBERS and value[1] != "nan" and abs(value[1]) <= _LARGEST_FLOAT
    ]


def _calls_by_key(calls: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    calls_of: dict[str, list[int]] = {}
    for index, call in enumerate(calls):
        for key in call:
            calls_of.setdefault(key, []).append(index)
    return calls_of


def _number_in(text: str) -> int | float | None:
    """The number in a text that is nothing else, or None."""
    if not _NUMBER_TEXT.fullmatch(text):
        return None
    try:
        return int(text)
    except ValueError:  # a fraction, or more digits than int() reads
        return float(text)
