"""Compare the JSON in an answer with the expected JSON."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, StrictBool

from agentic_bayes.evidence.score import FailureKind, Grade
from agentic_bayes.evidence.tools.arguments import ArgumentRule, canonical
from agentic_bayes.records.base import Record, is_number, short
from agentic_bayes.suites.graders.rules import TextList, graded
from agentic_bayes.suites.reading.json_paths import JsonNotFound, compiled_path, found_json, values_at
from agentic_bayes.suites.trial import AgentReply, SuiteTask, TrialAttempt

_WHOLE = "$"
_EXACT = ArgumentRule()


def _paths(value: Any) -> Any:
    for path in value if isinstance(value, (list, tuple)) else ():
        if isinstance(path, str):
            compiled_path(path)
    return value


def _tolerance(value: Any) -> Any:
    if not is_number(value) or not 0 <= value < float("inf"):
        raise ValueError("must be a number ≥ 0")
    return float(value)


class JsonMatch(Record):
    """Compares the JSON in the answer with ``expected.json``; the score is the share of paths at which they agree.

    The whole answer may be JSON, or it may contain JSON in a code fence or in prose, where the first complete object
    counts (the first list if a list is expected). The order of keys does not matter; ``true`` is not 1, and ``"5"`` is
    not 5. An answer without such JSON scores 0, because the agent failed to give it.
    """

    # JSONPaths (RFC 9535) at which both are compared; default: the whole values
    paths: Annotated[TextList, BeforeValidator(_paths)] = (_WHOLE,)
    # whether to ignore the order of lists, at any depth; how often an item occurs still counts
    ignore_order: StrictBool = False
    # By how much numbers may differ. Default: fractions by the rounding of their last digits, whole numbers not at all.
    tolerance: Annotated[float, BeforeValidator(_tolerance)] | None = None

    def check(self, task: SuiteTask) -> str | None:
        """Require ``expected.json`` with a value at every path."""
        if "json" not in task.expected:
            return "expected.json must be given: answers are compared with it"
        expected = _sorted(task.expected["json"])
        for path in self.paths:
            if not values_at(path, expected):
                return f"paths: there is nothing at {path} in expected.json: {short(expected)}"
        return None

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """Score the share of paths at which answer and expectation agree."""
        expected = _sorted(attempt.task.expected["json"])
        try:
            answer = _sorted(found_json(reply.text, type(expected)))
        except JsonNotFound as problem:
            return graded(0.0, False, str(problem), "format")
        wrong: list[str] = []
        kinds: dict[FailureKind, None] = {}
        for path in self.paths:
            wanted, actual = values_at(path, expected), values_at(path, answer)
            if not self._same(wanted, actual):
                instead = "nothing" if not actual else short(actual[0] if len(actual) == 1 else actual)
                number = bool(actual) and all(map(is_number, (*wanted, *actual)))
                kinds["wrong number" if number else "wrong answer" if actual else "missing fact"] = None
                wrong.append(f"{path}: expected {short(wanted[0] if len(wanted) == 1 else wanted)}, got {instead}")
        reason = "; ".join(wrong) or "The JSON is as expected."
        return graded(1 - len(wrong) / len(self.paths), not wrong, reason, *kinds)

    def _same(self, expected: Any, found: Any) -> bool:
        """Whether two JSON values are the same by this grader's settings."""
        if isinstance(expected, (list, tuple)) and isinstance(found, (list, tuple)):
            if len(expected) != len(found):
                return False
            in_order = all(map(self._same, expected, found))
            return in_order or (self.ignore_order and self._same_items(expected, found))
        if isinstance(expected, dict) and isinstance(found, dict):
            return expected.keys() == found.keys() and all(self._same(expected[key], found[key]) for key in expected)
        if self.tolerance is None or not (is_number(expected) and is_number(found)):
            return _EXACT.equal(expected, found)
        try:
            # the last digits of a float are rounding noise (.1 + .2)
            return bool(abs(expected - found) <= self.tolerance * (1 + 1e-12)) or _EXACT.equal(expected, found)
        except OverflowError:  # a whole number larger than any float
            return False

    def _same_items(self, expected: Any, found: Any) -> bool:
        """Whether the items of two lists can be paired so that each pair is the same."""
        if self.tolerance is None:  # pair equal items first, so that only the rest are compared one by one
            wanted, present = Counter(map(_key, expected)), Counter(map(_key, found))
            expected, found = _unpaired(expected, wanted - present), _unpaired(found, present - wanted)
        if not expected:
            return True
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_bipartite_matching

        table = np.array([[self._same(wanted, item) for item in found] for wanted in expected], dtype=np.bool_)
        if not (table.any(axis=0).all() and table.any(axis=1).all()):
            return False
        return bool((maximum_bipartite_matching(csr_array(table)) >= 0).all())


def _key(value: Any) -> str:
    """The value as text that does not depend on the order of its lists."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(sorted(map(_key, value)))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_key(item)}' for key, item in value.items())}}}"
    return repr(canonical(value))


def _unpaired(items: Any, counts: Counter[str]) -> list[Any]:
    """As many items of each kind as the counts say."""
    left = Counter(counts)
    unpaired = []
    for item in items:
        if left[key := _key(item)] > 0:
            left[key] -= 1
            unpaired.append(item)
    return unpaired


def _sorted(value: Any) -> Any:
    """Sort all keys, so that a path finds the same values whatever the order of keys in the text."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, (list, tuple)) else value
