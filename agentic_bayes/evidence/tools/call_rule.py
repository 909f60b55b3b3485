"""Compares two calls of one tool argument by argument, each by the matcher declared for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agentic_bayes.errors import EvidenceError
from agentic_bayes.evidence.tools.arguments import ArgumentDifference, ArgumentRule, canonical
from agentic_bayes.numerics import Ints
from agentic_bayes.records.matchers import Matcher, as_date, compiled_pattern
from agentic_bayes.records.model import ExpectedCall, ToolCall

ANY = "*"  # every tool, every argument, or every item of a list

Compare = Matcher | Callable[[Any, Any], bool]

_LOOSE = Matcher()
_SELF_SUFFICIENT = ("regex", "one_of")  # they need no expected value


@dataclass(slots=True)
class _Node:
    """The matcher declared for one path, and the nodes below it."""

    path: str = ""
    compare: Compare | None = None
    below: dict[str, _Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _ArgumentPlace:
    """The matchers declared for one place in the arguments: the nodes that fit it, the most specific first.

    A place inherits the matcher of the place that contains it, unless it has one of its own.
    """

    nodes: tuple[_Node, ...] = ()
    inherited: _Node | None = None

    @property
    def rule(self) -> _Node | None:
        """The node whose matcher applies here."""
        return next((node for node in self.nodes if node.compare is not None), self.inherited)

    @property
    def matcher(self) -> Matcher:
        compare = self.rule.compare if self.rule else None
        return compare if isinstance(compare, Matcher) else _LOOSE

    @property
    def is_plain(self) -> bool:
        """Whether no matcher is declared for this place or below it."""
        return self.rule is None and not any(node.below for node in self.nodes)

    @property
    def goes_deeper(self) -> bool:
        return any(node.below for node in self.nodes)

    def child(self, key: str) -> _ArgumentPlace:
        nodes = tuple(node.below[name] for name in (key, ANY) for node in self.nodes if name in node.below)
        # if an argument is optional, its parts are not therefore optional
        inherited = self.rule if self.matcher.kind is not None else None
        return _ArgumentPlace(nodes, inherited)


_PLAIN = _ArgumentPlace()


@dataclass(frozen=True, slots=True)
class _Declared:
    """All matchers declared for an expected call."""

    root: _ArgumentPlace
    whole: Mapping[str, _Node]  # by full path, for keys that themselves contain dots
    required: tuple[str, ...]  # arguments that a matcher expects although the call gives no value

    def place(self, key: str) -> _ArgumentPlace:
        if not self.whole:
            return _PLAIN
        if "." in key and key in self.whole:
            return _ArgumentPlace((self.whole[key],))
        return self.root.child(key)


@dataclass(frozen=True, slots=True)
class CallRule:
    """How to compare calls of the same tool."""

    arguments: ArgumentRule = ArgumentRule()  # noqa: RUF009 - frozen
    matchers: Mapping[str, Mapping[str, Compare]] = field(default_factory=dict)
    schemas: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = field(default_factory=dict)

    def counts(self, tool: str, expected: Sequence[ToolCall], made: Sequence[ToolCall]) -> tuple[Ints, Ints]:
        """Agreement of every expected with every actual call of a tool: numbers of equal and of compared arguments."""
        shape = (len(expected), len(made))
        agreeing, considered = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        groups: dict[str, list[int]] = {}
        for i, call in enumerate(expected):
            own = call.matchers if isinstance(call, ExpectedCall) else {}
            groups.setdefault(repr(sorted(own.items(), key=lambda item: item[0])), []).append(i)
        for rows in groups.values():
            agreeing[rows], considered[rows] = self._counts(tool, [expected[i] for i in rows], made)
        wrong = np.array([self.invalid(tool, call) is not None for call in made], dtype=np.bool_)
        if wrong.any():
            # a call that its tool would refuse agrees with nothing, even if it has no arguments
            agreeing = np.where(wrong[None, :], 0, agreeing)
            considered = np.where(wrong[None, :], np.maximum(considered, 1), considered)
        return agreeing, considered

    def _counts(self, tool: str, expected: Sequence[ToolCall], made: Sequence[ToolCall]) -> tuple[Ints, Ints]:
        """The same for expected calls with the same matchers: plain arguments together, the others value by value."""
        declared = self._declared(tool, expected[0])
        sides = [[call.parameters for call in calls] for calls in (expected, made)]
        names = dict.fromkeys(key for side in sides for call in side for key in call) | dict.fromkeys(declared.required)
        special = [key for key in names if not declared.place(key).is_plain]
        plain = [[{k: v for k, v in call.items() if k not in special} for call in side] for side in sides]
        agreeing, considered = self.arguments.counts(plain[0], plain[1])
        agreeing, considered = agreeing.copy(), considered.copy()
        for key in special:
            states = [[canonical(call[key]) if key in call else None for call in side] for side in sides]
            distinct = [list(dict.fromkeys(side)) for side in states]
            table = np.zeros((2, len(distinct[0]), len(distinct[1])), dtype=np.int64)
            first = [
                {state: side[j] for j, state in reversed(list(enumerate(states[n])))} for n, side in enumerate(sides)
            ]
            for i, wanted in enumerate(distinct[0]):
                for j, actual in enumerate(distinct[1]):
                    counted, difference = self._compare(declared, key, first[0][wanted], first[1][actual])
                    table[:, i, j] = counted and difference is None, counted
            places = [[side.index(state) for state in all_of] for side, all_of in zip(distinct, states, strict=True)]
            block = np.ix_(*places)
            agreeing += table[0][block]
            considered += table[1][block]
        return agreeing, considered

    def keys(self, tool: str, expected: ToolCall, made: ToolCall) -> Iterator[tuple[str, ArgumentDifference | None]]:
        """Every argument that counts with its difference, if it has one, in the order in which they were written."""
        declared = self._declared(tool, expected)
        wanted, actual = expected.parameters, made.parameters
        for key in dict.fromkeys([*wanted, *declared.required, *actual]):
            counted, difference = self._compare(declared, key, wanted, actual)
            if counted:
                yield key, difference

    def invalid(self, tool: str, call: ToolCall) -> str | None:
        """How the arguments of a call violate the tool's schema, or None."""
        check = self.schemas.get(tool)
        return None if check is None else check(call.parameters)

    def _declared(self, tool: str, call: ToolCall) -> _Declared:
        own: Mapping[str, Compare] = call.matchers if isinstance(call, ExpectedCall) else {}
        together = {**self.matchers.get(ANY, {}), **self.matchers.get(tool, {}), **own}
        root, whole = _Node(), {}
        for path, compare in together.items():
            node = root
            for key in path.split("."):
                node = node.below.setdefault(key, _Node())
            node.path, node.compare = f"{tool}.{path}", compare
            whole[path] = _Node(node.path, compare)
        required = [
            path if path in call.parameters else path.split(".")[0]
            for path, compare in own.items()
            if isinstance(compare, Matcher) and compare.kind in _SELF_SUFFICIENT and not compare.optional
        ]
        return _Declared(_ArgumentPlace((root,)), whole, tuple(key for key in dict.fromkeys(required) if key != ANY))

    def _compare(
        self, declared: _Declared, key: str, expected: Mapping[str, Any], made: Mapping[str, Any]
    ) -> tuple[bool, ArgumentDifference | None]:
        """Whether this argument counts, and how the calls differ in it."""
        if key not in expected and key not in declared.required:
            if key not in made or self.arguments.over == "expected_keys":
                return False, None
        elif key not in expected:  # only a matcher says what to expect
            place = declared.place(key)
            if key in made and self._satisfied(place, made[key]):
                return True, None
            wanted = _expectation(place)
            if key not in made:
                return True, ArgumentDifference(key, "missing", expected=wanted)
            return True, ArgumentDifference(key, "unequal", expected=wanted, made=made[key])
        return self._member(declared.place(key), key, expected, made)

    def _member(
        self, place: _ArgumentPlace, key: str, expected: Mapping[str, Any], made: Mapping[str, Any]
    ) -> tuple[bool, ArgumentDifference | None]:
        """The same for a member, at any depth, that at least one of the two objects has."""
        rule = place.matcher
        if rule.ignore and not place.goes_deeper:
            return False, None
        if key in expected and key in made:
            agree = self._equal(place, expected[key], made[key])
            return True, None if agree else self._difference(place, str(key), expected[key], made[key])
        if rule.has_default:
            value = expected[key] if key in expected else made[key]
            sides = (value, rule.default) if key in expected else (rule.default, value)
            if self._equal(place, *sides):
                return True, None
        elif rule.optional:
            return False, None
        if key in expected:
            return True, ArgumentDifference(str(key), "missing", expected=expected[key])
        return True, ArgumentDifference(str(key), "extra", made=made[key])

    def _satisfied(self, place: _ArgumentPlace, made: Any) -> bool:
        """Whether a value satisfies matchers that need no expected value."""
        compare = place.rule.compare if place.rule else None
        if isinstance(compare, Matcher) and compare.kind in _SELF_SUFFICIENT:
            return self._matches(compare, None, made)
        wanted = [key for node in place.nodes for key in node.below if key != ANY]
        return isinstance(made, Mapping) and all(
            key in made and self._satisfied(place.child(key), made[key]) for key in wanted
        )

    def _difference(self, place: _ArgumentPlace, key: str, expected: Any, made: Any) -> ArgumentDifference:
        """The first place at which two values of an argument differ."""
        if isinstance(expected, Mapping) and isinstance(made, Mapping) and expected.keys() == made.keys():
            for name, value in expected.items():
                child = place.child(str(name))
                if not self._agree_at(child, value, made[name]):
                    return self._difference(child, f"{key}.{name}", value, made[name])
        if isinstance(expected, (list, tuple)) and isinstance(made, (list, tuple)) and len(expected) == len(made):
            for position, (value, other) in enumerate(zip(expected, made, strict=True)):
                child = place.child(str(position))
                if not self._agree_at(child, value, other):
                    return self._difference(child, f"{key}[{position}]", value, other)
        return ArgumentDifference(key, "unequal", expected=expected, made=made)

    def _agree_at(self, place: _ArgumentPlace, expected: Any, made: Any) -> bool:
        return (place.matcher.ignore and not place.goes_deeper) or self._equal(place, expected, made)

    def _equal(self, place: _ArgumentPlace, expected: Any, made: Any) -> bool:
        if place.is_plain:
            return self.arguments.equal(expected, made)
        if place.goes_deeper and isinstance(expected, Mapping) and isinstance(made, Mapping):
            keys = [*expected, *(key for key in made if key not in expected)]
            return all(self._member(place.child(str(key)), key, expected, made)[1] is None for key in keys)
        if place.goes_deeper and isinstance(expected, (list, tuple)) and isinstance(made, (list, tuple)):
            return len(expected) == len(made) and all(
                self._agree_at(place.child(str(position)), value, other)
                for position, (value, other) in enumerate(zip(expected, made, strict=True))
            )
        rule = place.rule
        if rule is None or rule.compare is None:
            return self.arguments.equal(expected, made)
        if not isinstance(rule.compare, Matcher):
            try:
                return bool(rule.compare(expected, made))
            except Exception as error:
                raise EvidenceError(f"the matcher of {rule.path} failed: {type(error).__name__}: {error}") from error
        return self._matches(rule.compare, expected, made)

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
                return equal(expected, made) or _same_moment(expected, made)
            case "as_set":
                if not isinstance(expected, (list, tuple)) or not isinstance(made, (list, tuple)):
                    return equal(expected, made)
                first, second = ({canonical(value): value for value in side} for side in (expected, made))
                # items without an identical partner may still have a near one: .1 + .2 and .3
                alone = [first[value] for value in first.keys() - second.keys()]
                others = [second[value] for value in second.keys() - first.keys()]
                return all(any(equal(a, b) for b in second.values()) for a in alone) and all(
                    any(equal(a, b) for a in first.values()) for b in others
                )
        return equal(expected, made)

    def _near(self, matcher: Matcher, expected: Any, made: Any) -> bool:
        """Whether two numbers, or all pairs of two equally long lists, are near."""
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
        try:
            apart = abs(numbers[0] - numbers[1])
            share = (matcher.relative or 0.0) * max(abs(numbers[0]), abs(numbers[1]))
        except OverflowError:  # a whole number beyond every float
            return False
        # the last digits of a float are noise (.1 + .2)
        return bool(apart <= max(matcher.absolute or 0.0, share) * (1 + 1e-12))


def _expectation(place: _ArgumentPlace) -> str:
    """The expectation, in words, of matchers that need no expected value."""
    matcher = place.matcher
    if matcher.regex is not None:
        return f"text like {matcher.regex}"
    if matcher.one_of is not None:
        return f"one of {', '.join(map(repr, matcher.one_of))}"
    return "; ".join(
        f"{key}: {_expectation(place.child(key))}" for node in place.nodes for key in node.below if key != ANY
    )


def _plain(matcher: Matcher, value: Any) -> Any:
    """The value with case or white space removed from its texts."""
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
