"""Do two calls of one tool agree? Argument by argument, each in the way that was declared for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from agentic_bayes.evidence.arguments import ArgumentRule, Difference
from agentic_bayes.records.matchers import Matcher, as_date, compiled_pattern
from agentic_bayes.records.model import ExpectedCall, ToolCall

__all__ = ["ANY", "CallRule", "Compare"]

ANY = "*"
"""Stands for every tool, every argument, or every place in a list."""

Compare = Matcher | Callable[[Any, Any], bool]
Ints = npt.NDArray[np.int64]

_LOOSE = Matcher()
_SELF_SUFFICIENT = ("regex", "one_of")  # they need no expected value


@dataclass(slots=True)
class _Node:
    """How the value at one path is compared, and what lies below it."""

    compare: Compare | None = None
    below: dict[str, _Node] = field(default_factory=dict)

    def child(self, key: str) -> _Node | None:
        return self.below.get(key) or self.below.get(ANY)


@dataclass(frozen=True, slots=True)
class CallRule:
    """How calls of the same tool are compared.

    Parameters
    ----------
    arguments : ArgumentRule
        How values are compared where nothing else is declared, and which keys count.
    matchers : mapping
        Tool (or ``*``) → path of an argument → `Matcher`, or a callable that is given the expected and the made
        value and tells whether they agree. A call's own matchers go before these.
    schemas : mapping
        Tool → a callable that gives what is wrong with the arguments of a call, or None. A call whose arguments are
        wrong agrees with nothing.
    """

    arguments: ArgumentRule = ArgumentRule()  # noqa: RUF009 - frozen
    matchers: Mapping[str, Mapping[str, Compare]] = field(default_factory=dict)
    schemas: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = field(default_factory=dict)

    def counts(self, tool: str, expected: Sequence[ToolCall], made: Sequence[ToolCall]) -> tuple[Ints, Ints]:
        """Agreement of every expected with every made call of a tool, as two whole numbers.

        Parameters
        ----------
        tool : str
            Name of the tool.
        expected, made : sequence of ToolCall
            Its calls.

        Returns
        -------
        agreeing, considered : array of int, shape (len(expected), len(made))
            Number of arguments that agree, and of those that count. The agreement is their ratio, and 1 where none
            counts.
        """
        trees = [self._tree(tool, call) for call in expected]
        wrong = np.array([self.invalid(tool, call) is not None for call in made], dtype=np.bool_)
        if not any(tree.below for tree in trees):
            agreeing, considered = self.arguments.counts([c.parameters for c in expected], [c.parameters for c in made])
        else:
            shape = (len(expected), len(made))
            agreeing, considered = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
            for i, (call, tree) in enumerate(zip(expected, trees, strict=True)):
                for j, other in enumerate(made):
                    found = list(self._keys(tree, call.parameters, other.parameters))
                    agreeing[i, j] = sum(lost is None for _, lost in found)
                    considered[i, j] = len(found)
        if wrong.any():
            # a call that its tool would refuse agrees with nothing, also where it has no arguments
            agreeing = np.where(wrong[None, :], 0, agreeing)
            considered = np.where(wrong[None, :], np.maximum(considered, 1), considered)
        return agreeing, considered

    def keys(self, tool: str, expected: ToolCall, made: ToolCall) -> Iterator[tuple[str, Difference | None]]:
        """Every argument that counts, in the order in which they were written.

        Parameters
        ----------
        tool : str
            Name of the tool.
        expected, made : ToolCall
            Two calls of it.

        Yields
        ------
        key : str
            Name of the argument.
        lost : Difference or None
            In what they differ; None where they agree.
        """
        return self._keys(self._tree(tool, expected), expected.parameters, made.parameters)

    def invalid(self, tool: str, call: ToolCall) -> str | None:
        """What the tool's schema finds wrong with the arguments of a call, or None.

        Parameters
        ----------
        tool : str
            Name of the tool.
        call : ToolCall
            A call of it.

        Returns
        -------
        str or None
        """
        check = self.schemas.get(tool)
        return None if check is None else check(call.parameters)

    def _tree(self, tool: str, call: ToolCall) -> _Node:
        declared: dict[str, Compare] = {**self.matchers.get(ANY, {}), **self.matchers.get(tool, {})}
        if isinstance(call, ExpectedCall):
            declared |= call.matchers
        root = _Node()
        for path, compare in declared.items():
            node = root
            # a key that itself holds dots is meant as it stands
            for key in [path] if path in call.parameters else path.split("."):
                node = node.below.setdefault(key, _Node())
            node.compare = compare
        if isinstance(call, ExpectedCall):
            for path, compare in call.matchers.items():
                if compare.kind in _SELF_SUFFICIENT and "." not in path and path != ANY:
                    root.below[path].below.setdefault(_REQUIRED, _Node())
        return root

    def _keys(
        self, tree: _Node, expected: Mapping[str, Any], made: Mapping[str, Any]
    ) -> Iterator[tuple[str, Difference | None]]:
        required = [key for key, node in tree.below.items() if _REQUIRED in node.below and key not in expected]
        keys = [*expected, *required, *(key for key in made if key not in expected and key not in required)]
        for key in keys:
            node = tree.child(key)
            wanted = key in expected or key in required
            if not wanted and self.arguments.over == "expected_keys":
                continue
            counted, lost = self._one(node, key, expected, made, wanted=wanted)
            if counted:
                yield key, lost

    def _one(
        self, node: _Node | None, key: str, expected: Mapping[str, Any], made: Mapping[str, Any], *, wanted: bool
    ) -> tuple[bool, Difference | None]:
        """Whether this argument counts, and in what the calls differ in it."""
        compare = node.compare if node else None
        rule = compare if isinstance(compare, Matcher) else _LOOSE
        if rule.ignore:
            return False, None
        given = key in made
        if wanted and given and key not in expected:  # only a matcher says what is expected
            agree = self._equal(node, None, made[key])
            return True, None if agree else Difference(key, "unequal", expected=_said(rule), made=made[key])
        if wanted and given:
            if self._equal(node, expected[key], made[key]):
                return True, None
            return True, self._difference(node, key, expected[key], made[key])
        if rule.has_default:
            value = expected.get(key) if wanted else made[key]
            if self._equal(node, value, rule.default) if wanted else self._equal(node, rule.default, value):
                return True, None
        elif rule.optional:
            return False, None
        if wanted:
            return True, Difference(key, "missing", expected=expected.get(key, _said(rule)))
        return True, Difference(key, "extra", made=made[key])

    def _difference(self, node: _Node | None, key: str, expected: Any, made: Any) -> Difference:
        """The first place at which two values of an argument differ."""
        if isinstance(expected, Mapping) and isinstance(made, Mapping) and expected.keys() == made.keys():
            for name, value in expected.items():
                child = node.child(str(name)) if node else None
                if not self._agree_at(child, value, made[name]):
                    return self._difference(child, f"{key}.{name}", value, made[name])
        if isinstance(expected, (list, tuple)) and isinstance(made, (list, tuple)) and len(expected) == len(made):
            for position, (value, other) in enumerate(zip(expected, made, strict=True)):
                child = node.child(str(position)) if node else None
                if not self._agree_at(child, value, other):
                    return self._difference(child, f"{key}[{position}]", value, other)
        return Difference(key, "unequal", expected=expected, made=made)

    def _agree_at(self, node: _Node | None, expected: Any, made: Any) -> bool:
        compare = node.compare if node else None
        if isinstance(compare, Matcher) and compare.ignore:
            return True
        return self._equal(node, expected, made)

    def _equal(self, node: _Node | None, expected: Any, made: Any) -> bool:
        if node is None:
            return self.arguments.equal(expected, made)
        compare = node.compare
        if compare is not None and not isinstance(compare, Matcher):
            return bool(compare(expected, made))
        if compare is not None and compare.kind is not None:
            return self._matches(compare, expected, made)
        if node.below and isinstance(expected, Mapping) and isinstance(made, Mapping):
            return all(lost is None for lost in self._inside(node, expected, made))
        if node.below and isinstance(expected, (list, tuple)) and isinstance(made, (list, tuple)):
            return len(expected) == len(made) and all(
                self._agree_at(node.child(str(position)), value, other)
                for position, (value, other) in enumerate(zip(expected, made, strict=True))
            )
        return self.arguments.equal(expected, made)

    def _inside(self, node: _Node, expected: Mapping[str, Any], made: Mapping[str, Any]) -> Iterator[Difference | None]:
        for key in [*expected, *(key for key in made if key not in expected)]:
            _, lost = self._one(node.child(str(key)), key, expected, made, wanted=key in expected)
            yield lost

    def _matches(self, matcher: Matcher, expected: Any, made: Any) -> bool:
        equal = self.arguments.equal
        match matcher.kind:
            case "regex":
                return isinstance(made, str) and compiled_pattern(matcher.regex or "").fullmatch(made) is not None
            case "one_of":
                return any(equal(value, made) for value in matcher.one_of or ())
            case "numeric":
                return self._near(matcher, expected, made)
            case "text":
                return equal(_plain(matcher, expected), _plain(matcher, made))
            case "datetime":
                return _same_moment(expected, made)
            case "as_set":
                if not isinstance(expected, (list, tuple)) or not isinstance(made, (list, tuple)):
                    return equal(expected, made)
                return all(any(equal(a, b) for b in made) for a in expected) and all(
                    any(equal(a, b) for a in expected) for b in made
                )
        return equal(expected, made)

    def _near(self, matcher: Matcher, expected: Any, made: Any) -> bool:
        """Whether two numbers, or all of two equally long lists of them, are near."""
        if isinstance(expected, (list, tuple)) and isinstance(made, (list, tuple)):
            return len(expected) == len(made) and all(
                self._near(matcher, a, b) for a, b in zip(expected, made, strict=True)
            )
        if self.arguments.equal(expected, made):
            return True
        numbers = []
        for value in (expected, made):
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                return False
            numbers.append(value)
        if not matcher.integers and all(isinstance(n, int) or n.is_integer() for n in numbers):
            return False
        apart = abs(numbers[0] - numbers[1])
        share = (matcher.relative or 0.0) * max(abs(numbers[0]), abs(numbers[1]))
        # the last digits of a float are noise (.1 + .2)
        return bool(apart <= max(matcher.absolute or 0.0, share) * (1 + 1e-12))


_REQUIRED = "\0required"  # no argument has this name


def _said(matcher: Matcher) -> str:
    """What a matcher that needs no expected value asks for."""
    if matcher.regex is not None:
        return f"text like {matcher.regex}"
    return f"one of {', '.join(map(repr, matcher.one_of or ()))}"


def _plain(matcher: Matcher, value: Any) -> Any:
    """The value with its texts without case or white space."""
    if isinstance(value, str):
        text = value.casefold() if matcher.ignore_case else value
        return "".join(text.split()) if matcher.ignore_whitespace else text
    if isinstance(value, Mapping):
        return {key: _plain(matcher, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(matcher, item) for item in value]
    return value


def _same_moment(expected: Any, made: Any) -> bool:
    first, second = as_date(expected), as_date(made)
    if first is None or second is None:
        return False
    if (first.tzinfo is None) != (second.tzinfo is None):
        first, second = first.replace(tzinfo=None), second.replace(tzinfo=None)
    return first == second
