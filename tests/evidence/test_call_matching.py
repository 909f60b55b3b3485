import math
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import chain, permutations, product

from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import reduced

from agentic_bayes.evidence.tools.arguments import ArgumentRule
from agentic_bayes.evidence.tools.call_rule import CallRule
from agentic_bayes.evidence.tools.matching import longest_in_order, match_calls
from agentic_bayes.records.model import ToolCall

arguments = st.dictionaries(st.sampled_from("xyz"), st.integers(0, 1), max_size=3)
tool_calls = st.lists(
    st.builds(ToolCall, tool_name=st.sampled_from("ffg"), parameters=arguments), min_size=0, max_size=5
)
values = st.one_of(st.floats(), st.integers(-3, 3), st.sampled_from([0.1 + 0.2, 0.3, 1e300, True, "3", [1.0], [1]]))
rules = st.sampled_from([ArgumentRule(), ArgumentRule("expected_keys")])


def agreement(expected: ToolCall, made: ToolCall, rule: ArgumentRule) -> Fraction:
    keys = set(expected.parameters)
    if rule.over == "union_keys":
        keys |= set(made.parameters)
    equal = [key for key in keys if expected.parameters.get(key, "no") == made.parameters.get(key, "none")]
    return Fraction(len(equal), len(keys)) if keys else Fraction(1)


def longest_increasing(pairs: list[tuple[int, int]]) -> int:
    ends: list[int] = []
    for i, (_, made) in enumerate(pairs):
        ends.append(1 + max((ends[k] for k in range(i) if pairs[k][1] < made), default=0))
    return max(ends, default=0)


def best_by_trying_all(expected: list[ToolCall], made: list[ToolCall], rule: ArgumentRule) -> tuple[Fraction, int]:
    """Largest total agreement, and the most order among the matchings that reach it."""
    total, choices = Fraction(), []
    for name in {call.tool_name for call in expected} & {call.tool_name for call in made}:
        rows = [i for i, call in enumerate(expected) if call.tool_name == name]
        columns = [j for j, call in enumerate(made) if call.tool_name == name]
        if len(rows) <= len(columns):
            options = [list(zip(rows, chosen, strict=True)) for chosen in permutations(columns, len(rows))]
        else:
            options = [list(zip(chosen, columns, strict=True)) for chosen in permutations(rows, len(columns))]
        totals = [sum((agreement(expected[i], made[j], rule) for i, j in o), Fraction()) for o in options]
        total += max(totals)
        choices.append([o for o, t in zip(options, totals, strict=True) if t == max(totals)])
    return total, max(longest_increasing(sorted(chain(*chosen))) for chosen in product(*choices))


@settings(max_examples=reduced(300), deadline=None)
@given(tool_calls, tool_calls, rules)
def test_the_matching_is_the_best_of_all(expected, made, rule):
    """No one-to-one matching has a larger total, and none with that total keeps more order."""
    pairs = match_calls(expected, made, CallRule(rule))
    assert len({pair.expected for pair in pairs}) == len({pair.made for pair in pairs}) == len(pairs)
    assert all(expected[p.expected].tool_name == made[p.made].tool_name for p in pairs)
    assert all(p.agreement == agreement(expected[p.expected], made[p.made], rule) for p in pairs)
    total = sum((pair.agreement for pair in pairs), Fraction())
    assert (total, len(longest_in_order(pairs))) == best_by_trying_all(expected, made, rule)


@settings(max_examples=reduced(100), deadline=None)
@given(tool_calls, tool_calls)
def test_as_many_pairs_as_both_sides_have_calls(expected, made):
    """Every call that has a counterpart of its name is matched, also without any agreement."""
    names = {call.tool_name for call in expected}
    fewest = sum(min(sum(c.tool_name == n for c in calls) for calls in (expected, made)) for n in names)
    assert len(match_calls(expected, made, CallRule())) == fewest


def test_calls_of_many_sizes_are_still_matched():
    """Agreements whose common denominator is beyond exact floats fall back to a fine grid."""
    calls = [ToolCall(tool_name="f", parameters={f"k{i}": 0 for i in range(size)}) for size in range(60)]
    pairs = match_calls(calls, calls, CallRule())
    assert [(p.expected, p.made, p.agreement) for p in pairs] == [(i, i, 1) for i in range(60)]


@settings(max_examples=reduced(200), deadline=None)
@given(st.lists(values, max_size=5), st.lists(values, max_size=5), st.booleans())
def test_the_table_of_agreements_is_the_pairwise_comparison(expected, made, numeric):
    """Comparing many values at once gives what comparing two gives."""
    rule = ArgumentRule(numeric_strings=numeric)
    agreeing, considered = rule.counts([{"x": value} for value in expected], [{"x": value} for value in made])
    for i, left in enumerate(expected):
        for j, right in enumerate(made):
            assert agreeing[i, j] == rule.equal(left, right) == rule.equal(right, left)
            assert considered[i, j] == 1


def test_values_that_are_no_ordinary_numbers_equal_only_themselves():
    """NaN equals NaN and an infinity itself; a whole number beyond every float equals no float."""
    equal = ArgumentRule().equal
    assert equal(math.nan, math.nan)
    assert equal(math.inf, math.inf)
    assert not equal(math.inf, -math.inf)
    assert not equal(10**400, math.inf)
    assert not equal(math.nan, 0.0)


def test_values_that_json_does_not_know_are_compared_by_what_they_print():
    """Decimals are numbers, and other objects equal those of their type with the same form."""
    equal = ArgumentRule().equal
    assert equal(Decimal("0.5"), 0.5)
    assert equal(Fraction(1, 2), 0.5)
    assert equal(date(2024, 5, 3), date(2024, 5, 3))
    assert not equal(date(2024, 5, 3), "2024-05-03")
