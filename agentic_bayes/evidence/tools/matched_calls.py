"""Compares the calls of one interaction with the expected ones, and words and counts the differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, assert_never

from agentic_bayes.evidence.tools.arguments import ArgumentDifference
from agentic_bayes.evidence.tools.call_rule import CallRule
from agentic_bayes.evidence.tools.matching import Pair, longest_in_order, match_calls
from agentic_bayes.formatting import cut_text
from agentic_bayes.records.model import Interaction, ToolCall


@dataclass(frozen=True)
class MatchedCalls:
    """Expected and actual calls, and how they are matched."""

    expected: Sequence[ToolCall]  # in order, with aliases replaced
    made: Sequence[ToolCall]
    pairs: Sequence[Pair]  # which actual call answers which expected one
    rule: CallRule  # how calls are compared
    scope_violations: Sequence[int] = ()  # positions of calls that the agent was not allowed to make

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
        """The matched calls of an interaction with recorded and expected calls."""
        wanted, used = interaction.ground_truth_agentic, interaction.agentic
        if wanted is None or used is None:
            raise ValueError("calls must be expected and recorded")
        expected = _in_order(_renamed(wanted.expected_tools, names))
        made = _in_order(_renamed(used.tools_used, names))
        lists = [tools for tools in (allowed, wanted.allowed_tools) if tools is not None]
        may = {names.get(name, name) for tools in lists for name in tools} | {call.tool_name for call in expected}
        may_not = {names.get(name, name) for name in (*forbidden, *wanted.forbidden_tools)}
        violations = [
            index
            for index, call in enumerate(made)
            if call.tool_name in may_not or (lists and call.tool_name not in may)
        ]
        return cls(expected, made, match_calls(expected, made, rule), rule, violations)

    @cached_property
    def in_order(self) -> list[Pair]:
        """The largest set of pairs that were made in the expected order."""
        return longest_in_order(self.pairs)

    @cached_property
    def _compared(self) -> dict[int, list[tuple[str, ArgumentDifference | None]]]:
        """Every argument that counts of each expected call that was made, with its difference if it has one."""
        calls = ((pair.expected, self.expected[pair.expected], self.made[pair.made]) for pair in self.pairs)
        return {at: list(self.rule.keys(call.tool_name, call, made)) for at, call, made in calls}

    def lost_points(self, *, missing: bool, extra: bool, order: bool) -> Iterator[str]:
        """A sentence for every lost point, which names step, tool, argument and both values."""
        answered = {pair.expected: pair.made for pair in self.pairs}
        for index, call in enumerate(self.expected):
            if index not in answered:
                if missing:
                    yield f"Expected call {index + 1}, {_shown(call)}, was not made."
                continue
            at = answered[index]
            where = f"{call.tool_name} ({_step(self.made[at], at)})"
            if wrong := self.rule.invalid(call.tool_name, self.made[at]):
                yield f"{where}: its arguments violate the tool's schema: {wrong}."
            for _, difference in self._compared[index]:
                if difference is not None:
                    yield f"{where}: {_in_words(difference)}."
        if extra:
            used = set(answered.values())
            for at, call in enumerate(self.made):
                if at not in used:
                    yield f"{_step(call, at).capitalize()}, {_shown(call)}, was not expected."
        if order:
            kept = {pair.expected for pair in self.in_order}
            for pair in self.pairs:
                if pair.expected not in kept:
                    call = self.made[pair.made]
                    yield (
                        f"{call.tool_name} ({_step(call, pair.made)}) is out of order: "
                        f"it answers expected call {pair.expected + 1}."
                    )
        for at in self.scope_violations:
            yield f"Scope violation: {_step(self.made[at], at)}, {_shown(self.made[at])}, is not an allowed call."

    def counts(self, *, missing: bool, extra: bool, order: bool) -> dict[str, Any]:
        """Counts of what went right and wrong, by tool and argument; they add up over interactions."""
        counts: dict[str, dict[str, Any]] = {}

        def add(tool: str, name: str) -> None:
            of_tool = counts.setdefault(tool, {})
            of_tool[name] = of_tool.get(name, 0) + 1

        answered, used = {pair.expected for pair in self.pairs}, {pair.made for pair in self.pairs}
        for at, call in enumerate(self.expected):
            add(call.tool_name, "expected")
            if missing and at not in answered:
                add(call.tool_name, "missed")
        for at, call in enumerate(self.made):
            add(call.tool_name, "made")
            if extra and at not in used:
                add(call.tool_name, "extra")
        kept = {pair.expected for pair in self.in_order}
        for pair in self.pairs:
            call, made = self.expected[pair.expected], self.made[pair.made]
            add(call.tool_name, "matched")
            if order and pair.expected not in kept:
                add(call.tool_name, "out_of_order")
            if self.rule.invalid(call.tool_name, made):
                add(call.tool_name, "invalid")
            arguments = counts[call.tool_name].setdefault("arguments", {})
            compared = self._compared[pair.expected]
            if any(difference is not None for _, difference in compared):
                add(call.tool_name, "wrong_arguments")
            for key, difference in compared:
                of_key = arguments.setdefault(key, {})
                result = "agree" if difference is None else difference.kind
                of_key[result] = of_key.get(result, 0) + 1
        for at in self.scope_violations:
            add(self.made[at].tool_name, "scope_violations")
        return counts


def _in_words(difference: ArgumentDifference) -> str:
    key, expected, made = difference.key, _short(difference.expected), _short(difference.made)
    match difference.kind:
        case "missing":
            return f"{key} is missing, expected {expected}"
        case "extra":
            return f"{key} = {made} was not expected"
        case "unequal":
            return f"{key} = {made}, expected {expected}"
        case _:
            assert_never(difference.kind)


def _step(call: ToolCall, index: int) -> str:
    return f"call {index + 1}" if call.step is None else f"step {call.step}"


def _renamed(calls: Sequence[ToolCall], names: Mapping[str, str]) -> list[ToolCall]:
    return [
        call.model_copy(update={"tool_name": names[call.tool_name]}) if call.tool_name in names else call
        for call in calls
    ]


def _in_order(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """The calls, those with a step sorted among the positions that they occupy."""
    stepped = iter(sorted((call for call in calls if call.step is not None), key=lambda call: call.step or 0))
    return [call if call.step is None else next(stepped) for call in calls]


def _shown(call: ToolCall) -> str:
    return cut_text(f"{call.tool_name}({', '.join(f'{k}={_short(v)}' for k, v in call.parameters.items())})", 160)


def _short(value: object) -> str:
    try:
        return cut_text(repr(value), 60)
    except ValueError:  # whole numbers of thousands of digits have no repr
        return f"a very long {type(value).__name__}"
