"""The calls made in one interaction, set beside the expected ones: what was lost, and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, assert_never

from agentic_bayes.evidence.tools.arguments import ArgumentDifference
from agentic_bayes.evidence.tools.call_rule import CallRule
from agentic_bayes.evidence.tools.matching import Pair, longest_in_order, match_calls
from agentic_bayes.records.model import Interaction, ToolCall


@dataclass(frozen=True)
class MatchedCalls:
    """Expected and made calls, and how they are matched."""

    expected: Sequence[ToolCall]  # in order, under the names that the rubric's aliases stand for
    made: Sequence[ToolCall]
    pairs: Sequence[Pair]  # which made call answers which expected one
    rule: CallRule  # how calls are compared
    scope_violations: Sequence[int] = ()  # positions of made calls of tools that may not be called

    @classmethod
    def of(
        cls,
        interaction: Interaction,
        rule: CallRule,
        *,
        names: Mapping[str, str],
        allowed: Sequence[str] | None,
        forbidden: Sequence[str],
    ) -> MatchedCalls:
        """The trace of an interaction whose calls are recorded and expected."""
        wanted, used = interaction.ground_truth_agentic, interaction.agentic
        if wanted is None or used is None:
            raise ValueError("calls must be expected and recorded")
        expected = _in_order(_renamed(wanted.expected_tools, names))
        made = _in_order(_renamed(used.tools_used, names))
        lists = [allowed, wanted.allowed_tools]
        may = {names.get(name, name) for names_of in lists if names_of is not None for name in names_of}
        may |= {call.tool_name for call in expected}
        may_not = {names.get(name, name) for name in (*forbidden, *wanted.forbidden_tools)}
        limited = any(names_of is not None for names_of in lists)
        violations = [
            place
            for place, call in enumerate(made)
            if call.tool_name in may_not or (limited and call.tool_name not in may)
        ]
        return cls(expected, made, match_calls(expected, made, rule), rule, violations)

    @cached_property
    def in_order(self) -> list[Pair]:
        """The largest set of pairs that were made in the expected order."""
        return longest_in_order(self.pairs)

    def lost_points(self, *, missing: bool, extra: bool, order: bool) -> Iterator[str]:
        """Every lost point, in a sentence that names step, tool, argument and both values."""
        answered = {pair.expected: pair.made for pair in self.pairs}
        for index, call in enumerate(self.expected):
            if index not in answered:
                if missing:
                    yield f"Expected call {index + 1}, {_shown(call)}, was not made."
                continue
            place = answered[index]
            where = f"{call.tool_name} ({_step(self.made[place], place)})"
            if wrong := self.rule.invalid(call.tool_name, self.made[place]):
                yield f"{where}: its arguments break the tool's schema: {wrong}."
            for _, lost in self.rule.keys(call.tool_name, call, self.made[place]):
                if lost is not None:
                    yield f"{where}: {_told(lost)}."
        if extra:
            used = set(answered.values())
            for place, call in enumerate(self.made):
                if place not in used:
                    yield f"{_step(call, place).capitalize()}, {_shown(call)}, was not expected."
        if order:
            kept = {pair.expected for pair in self.in_order}
            for pair in self.pairs:
                if pair.expected not in kept:
                    call = self.made[pair.made]
                    yield (
                        f"{call.tool_name} ({_step(call, pair.made)}) stands out of order: "
                        f"it answers expected call {pair.expected + 1}."
                    )
        for place in self.scope_violations:
            yield f"Scope violation: {_step(self.made[place], place)}, {_shown(self.made[place])}, may not be called."

    def counts(self, *, missing: bool, extra: bool, order: bool) -> dict[str, Any]:
        """Count what went right and wrong by tool and argument; the numbers add up over interactions."""
        found: dict[str, dict[str, Any]] = {}

        def add(tool: str, what: str) -> None:
            counts = found.setdefault(tool, {})
            counts[what] = counts.get(what, 0) + 1

        answered, used = {pair.expected for pair in self.pairs}, {pair.made for pair in self.pairs}
        for place, call in enumerate(self.expected):
            add(call.tool_name, "expected")
            if missing and place not in answered:
                add(call.tool_name, "missed")
        for place, call in enumerate(self.made):
            add(call.tool_name, "made")
            if extra and place not in used:
                add(call.tool_name, "extra")
        kept = {pair.expected for pair in self.in_order}
        for pair in self.pairs:
            call, made = self.expected[pair.expected], self.made[pair.made]
            add(call.tool_name, "matched")
            if order and pair.expected not in kept:
                add(call.tool_name, "out_of_order")
            if self.rule.invalid(call.tool_name, made):
                add(call.tool_name, "invalid")
            arguments = found[call.tool_name].setdefault("arguments", {})
            compared = list(self.rule.keys(call.tool_name, call, made))
            if any(lost is not None for _, lost in compared):
                add(call.tool_name, "wrong_arguments")
            for key, lost in compared:
                of_key = arguments.setdefault(key, {})
                what = "agree" if lost is None else lost.kind
                of_key[what] = of_key.get(what, 0) + 1
        for place in self.scope_violations:
            add(self.made[place].tool_name, "scope_violations")
        return found


def _told(lost: ArgumentDifference) -> str:
    match lost.kind:
        case "missing":
            return f"{lost.key} is missing, expected {_short(lost.expected)}"
        case "extra":
            return f"{lost.key} = {_short(lost.made)} was not expected"
        case "unequal":
            return f"{lost.key} = {_short(lost.made)}, expected {_short(lost.expected)}"
        case _:
            assert_never(lost.kind)


def _step(call: ToolCall, place: int) -> str:
    return f"call {place + 1}" if call.step is None else f"step {call.step}"


def _renamed(calls: Sequence[ToolCall], names: Mapping[str, str]) -> list[ToolCall]:
    return [
        call.model_copy(update={"tool_name": names[call.tool_name]}) if call.tool_name in names else call
        for call in calls
    ]


def _in_order(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """Calls with a step in its order, in the places that they hold together; the others keep their place."""
    stepped = iter(sorted((call for call in calls if call.step is not None), key=lambda call: call.step or 0))
    return [call if call.step is None else next(stepped) for call in calls]


def _shown(call: ToolCall) -> str:
    return _cut(f"{call.tool_name}({', '.join(f'{k}={_short(v)}' for k, v in call.parameters.items())})", 160)


def _short(value: object) -> str:
    try:
        return _cut(repr(value), 60)
    except ValueError:  # whole numbers of thousands of digits have no repr
        return f"a very long {type(value).__name__}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
