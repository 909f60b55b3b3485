"""Matches actual to expected calls one to one within each tool name, with the largest total agreement."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from agentic_bayes.evidence.tools.call_rule import CallRule
from agentic_bayes.numerics import Ints
from agentic_bayes.records.model import ToolCall

Bools = npt.NDArray[np.bool_]
Chain = list[tuple[int, int]]

# limits of the search for the best order among equal totals: calls per side, and steps
_SEARCHED = 32
_STEPS = 4000
_ONE: Ints = np.ones((1, 1), dtype=np.int64)
_ONLY: tuple[Ints, Ints] = (np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Pair:
    """An expected call and the actual call that answers it."""

    expected: int  # positions of the two calls
    made: int
    agreement: Fraction  # of their arguments, in [0, 1]


def match_calls(expected: Sequence[ToolCall], made: Sequence[ToolCall], rule: CallRule) -> list[Pair]:
    """Match calls one to one within a tool name, with the largest total agreement and then the most pairs in order.

    Agreements are integers over a common denominator, so that equal totals are exactly equal. A linear assignment
    gives the largest total; its dual potentials show which pairs occur in some best matching, and a longest common
    subsequence over those pairs is the most order that any of them can keep. If no single best matching has that
    order, a bounded search decides; with more than 32 calls per side it does not run, and the order may then be a
    little shorter than the best.
    """
    groups = _groups(expected, made, rule)
    if all(len(group.rows) == len(group.columns) == 1 for group in groups):  # nearly always, and there is no choice
        return [pair for group in groups for pair in group.complete([])]
    possible: Bools = np.zeros((len(expected), len(made)), dtype=np.bool_)
    for group in groups:
        possible[np.ix_(group.rows, group.columns)] = group.possible()
    chain = _longest_chain(possible, groups)
    pairs = [pair for group in groups for pair in group.complete(chain)]
    return sorted(pairs, key=lambda pair: pair.expected)


def longest_in_order(pairs: Sequence[Pair]) -> list[Pair]:
    """The largest set of pairs (sorted by expected call) in the expected order."""
    ends: list[int] = []  # made: the smallest end of a chain of each length
    last: list[int] = []  # the pair at that end
    before: list[int | None] = []
    for index, pair in enumerate(pairs):
        place = bisect_left(ends, pair.made)
        ends[place : place + 1] = [pair.made]
        last[place : place + 1] = [index]
        before.append(last[place - 1] if place else None)
    chain: list[Pair] = []
    at = last[-1] if last else None
    while at is not None:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]


def _groups(expected: Sequence[ToolCall], made: Sequence[ToolCall], rule: CallRule) -> list[_Group]:
    columns_of = _positions(made)
    groups = []
    for name, rows in _positions(expected).items():
        columns = columns_of.get(name)
        if columns is not None:
            counts = rule.counts(name, [expected[i] for i in rows], [made[j] for j in columns])
            groups.append(_Group(rows, columns, *counts))
    return groups


def _positions(calls: Sequence[ToolCall]) -> dict[str, list[int]]:
    positions: dict[str, list[int]] = {}
    for index, call in enumerate(calls):
        positions.setdefault(call.tool_name, []).append(index)
    return positions


class _Group:
    """The calls of one tool name, and their best matching."""

    def __init__(self, rows: list[int], columns: list[int], agreeing: Ints, considered: Ints) -> None:
        self.rows, self.columns = rows, columns
        self._agreeing, self._considered = agreeing, considered
        if len(rows) == len(columns) == 1:
            self.gain: Ints = _ONE  # of one pair, any gain is the largest
            self._best, self.total = _ONLY, 1
            return
        self._row_at = {row: i for i, row in enumerate(rows)}
        self._column_at = {column: j for j, column in enumerate(columns)}
        # without any argument that counts, the agreement is 1
        over = np.maximum(considered, 1)
        shared = np.where(considered == 0, 1, agreeing)
        # linear_sum_assignment works in floats; sums of these whole numbers stay exact in them.
        limit = 2**53 // (8 * (len(rows) + len(columns)))
        scale = math.lcm(*(int(size) for size in np.unique(over)))
        if scale <= limit:
            self.gain = shared * (scale // over)
        else:
            self.gain = np.rint(shared / over * limit).astype(np.int64)
        self._best = _assign(self.gain)
        self.total = int(self.gain[self._best].sum())

    def possible(self) -> Bools:
        """The pairs that occur in some matching with the largest total."""
        if self.gain.shape[0] > self.gain.shape[1]:
            return _possible(-self.gain.T, self._best[1], self._best[0]).T
        return _possible(-self.gain, self._best[0], self._best[1])

    def completion(self, chain: Chain) -> tuple[Ints, Ints] | None:
        """A matching with the largest total that includes the chain's pairs of this group, or None."""
        if self.gain is _ONE:
            return self._best
        fixed = [(self._row_at[row], self._column_at[column]) for row, column in chain if row in self._row_at]
        taken_rows, taken_columns = {i for i, _ in fixed}, {j for _, j in fixed}
        rows = np.array([i for i in range(len(self.rows)) if i not in taken_rows], dtype=np.int64)
        columns = np.array([j for j in range(len(self.columns)) if j not in taken_columns], dtype=np.int64)
        i, j = _assign(self.gain[np.ix_(rows, columns)])
        first = np.concatenate([np.array([a for a, _ in fixed], dtype=np.int64), rows[i]])
        second = np.concatenate([np.array([b for _, b in fixed], dtype=np.int64), columns[j]])
        return (first, second) if int(self.gain[first, second].sum()) == self.total else None

    def complete(self, chain: Chain) -> list[Pair]:
        pairs = []
        for i, j in zip(*(self.completion(chain) or self._best), strict=True):
            size = int(self._considered[i, j])
            agreement = Fraction(int(self._agreeing[i, j]), size) if size else Fraction(1)
            pairs.append(Pair(self.rows[i], self.columns[j], agreement))
        return pairs


def _assign(gain: Ints) -> tuple[Ints, Ints]:
    if min(gain.shape) == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if gain.shape == (1, 1):
        return _ONLY
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(gain, maximize=True)
    return rows.astype(np.int64), columns.astype(np.int64)


def _possible(cost: Ints, rows: Ints, columns: Ints) -> Bools:
    """Pairs of some cheapest matching of all rows, given one (rows ≤ columns).

    With potentials u + v ≤ cost, tight on the matching, v ≤ 0, and v = 0 on columns left over, the cheapest
    matchings are those of tight pairs that use every column with v < 0. A tight pair is in one of them iff
    the move of its row to that column lies on a cycle of such moves; the columns left over move freely
    among v = 0.
    """
    count = cost.shape[1]
    if cost.shape == (1, 1):
        return np.ones((1, 1), dtype=np.bool_)
    from scipy.sparse.csgraph import connected_components

    held = np.empty(len(rows), dtype=np.int64)
    held[rows] = columns
    step = cost - cost[np.arange(len(held)), held][:, None]
    v = np.zeros(count, dtype=np.int64)
    while True:  # shortest paths; a cheapest matching has no negative cycle, so this ends
        shorter = np.minimum(v, (step + v[held][:, None]).min(axis=0))
        if np.array_equal(shorter, v):
            break
        v = shorter
    tight: Bools = step + v[held][:, None] == v[None, :]
    moves: Bools = np.zeros((count + 1, count + 1), dtype=np.bool_)
    moves[held, :count] = tight
    free = np.ones(count, dtype=np.bool_)
    free[held] = False
    # the last node stands for "left over": a free column takes any place with v = 0, and vice versa
    moves[:count, count] = free
    moves[count, :count] = v == 0
    _, component = connected_components(moves, directed=True, connection="strong")
    same: Bools = component[held][:, None] == component[None, :count]
    possible: Bools = tight & same
    possible[np.arange(len(held)), held] = True
    return possible


def _longest_chain(possible: Bools, groups: Sequence[_Group]) -> Chain:
    """The most pairs in order that one best matching can have."""
    room = _room(possible)
    chain = _walk(possible, room)
    owner = {row: group for group in groups for row in group.rows}

    def holds(pairs: Chain) -> bool:
        return all(group.completion(pairs) is not None for group in groups)

    if holds(chain):
        return chain
    low, high = 0, len(chain)  # if a chain fits, so does every part of it
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(chain[:middle]) else (low, middle)
    best = chain[:low]
    steps = _STEPS if max(possible.shape) <= _SEARCHED else 0

    def search(row: int, column: int, pairs: Chain) -> None:
        nonlocal best, steps
        if len(pairs) > len(best):
            best = pairs
        if row == possible.shape[0] or len(pairs) + room[row, column] <= len(best):
            return
        for other in np.flatnonzero(possible[row, column:]) + column:
            steps -= 1
            longer = [*pairs, (row, int(other))]
            if steps > 0 and owner[row].completion(longer) is not None:
                search(row + 1, int(other) + 1, longer)
        if steps > 0:
            search(row + 1, column, pairs)

    if steps:
        search(0, 0, [])
    return best


def _room(possible: Bools) -> Ints:
    """room[i, j]: the longest chain of possible pairs among rows ≥ i and columns ≥ j."""
    rows, columns = possible.shape
    room = np.zeros((rows + 1, columns + 1), dtype=np.int64)
    for row in range(rows - 1, -1, -1):
        below = room[row + 1]
        taken = np.maximum(below[:-1], np.where(possible[row], below[1:] + 1, 0))
        room[row, :-1] = np.maximum.accumulate(taken[::-1])[::-1]
    return room


def _walk(possible: Bools, room: Ints) -> Chain:
    chain: Chain = []
    column = 0
    for row in range(possible.shape[0]):
        wanted = room[row, column]
        places = possible[row, column:] & (room[row + 1, column + 1 :] + 1 == wanted)
        if wanted and places.any():
            column += int(places.argmax())
            chain.append((row, column))
            column += 1
    return chain
