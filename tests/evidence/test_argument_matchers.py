"""Arguments compared in the way that was declared for them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import json_values, reduced

from agentic_bayes.errors import EvidenceError
from agentic_bayes.evidence.tools.arguments import ArgumentRule
from agentic_bayes.evidence.tools.call_rule import CallRule
from agentic_bayes.evidence.tools.rubric import ToolRubric
from agentic_bayes.records.matchers import Matcher, as_date
from agentic_bayes.records.model import ExpectedCall, ExpectedTools, Interaction, ToolCall


def grade(expected, made, matchers=None, *, own=None, **settings):
    """Grade one call with these arguments; matchers of the rubric, and of the call itself."""
    call = {"tool_name": "f", "parameters": expected, **({} if own is None else {"matchers": own})}
    turn = Interaction(
        qa_id="q",
        query="do it",
        assistant="done",
        agentic={"tools_used": [{"tool_name": "f", "parameters": made}], "final_answer_uses_tools": True},
        ground_truth_agentic={"expected_tools": [call]},
    )
    rules = {} if matchers is None else {"f": matchers}
    return ToolRubric(matchers=rules, **settings).grade(turn)


def agree(expected, made, matcher):
    """Whether one argument agrees under a matcher, declared for the tool and for the call alike."""
    whole = grade({"a": expected}, {"a": made}, {"a": matcher}).parameter_accuracy
    assert whole == grade({"a": expected}, {"a": made}, own={"a": matcher}).parameter_accuracy
    return whole == 1


@pytest.mark.parametrize(
    ("matcher", "expected", "same", "other"),
    [
        ({"exact": True}, "a", ["a"], ["A", None, 1]),
        ({}, 1, [1, 1.0], [2, "1", True]),
        ({"ignore": True}, "a", ["b", None, [1]], []),
        ({"absolute": 0.5}, 2.25, [2.25, 2.75, 1.75], [2.76, "2.25", None, True]),
        ({"relative": 0.05}, 20, [20, 20.9], [21, 22.2]),
        ({"relative": 0.05, "integers": True}, 20, [21, 19, 20.5], [22, 18]),
        ({"absolute": 1, "integers": True}, 5, [4, 6], [7, True]),
        ({"relative": 0.05}, [1.5, 2.5], [[1.5, 2.55]], [[1.5], [1.5, 3.5], 1.5]),
        ({"ignore_case": True}, "New York", ["NEW YORK", "new york"], ["NewYork", "Boston"]),
        ({"ignore_whitespace": True}, "New York", ["NewYork", " New\tYork\n"], ["new york"]),
        ({"ignore_case": True, "ignore_whitespace": True}, ["A b"], [["ab"], [" AB "]], [["abc"]]),
        ({"regex": "[A-Z]{3}[0-9]+"}, "whatever", ["HAT123"], ["hat123", "xHAT123", "HAT", 5]),
        ({"one_of": ["economy", "basic", None]}, "whatever", ["economy", "basic", None], ["business"]),
        (
            {"datetime": True},
            "2024-05-20",
            ["May 20, 2024", "2024-05-20T00:00:00", "20 May 2024"],
            ["2024-05-21", "x", 5],
        ),
        ({"datetime": True}, "2024-05-20T10:00:00Z", ["2024-05-20T12:00:00+02:00", "2024-05-20 10:00"], ["2024-05-20"]),
        ({"as_set": True}, [1, 2], [[2, 1], [1, 2, 2]], [[1], [1, 2, 3], "12"]),
        ({"as_set": True}, [{"a": 1}, {"a": 2}], [[{"a": 2}, {"a": 1}]], [[{"a": 1}, {"a": 3}]]),
    ],
)
def test_a_matcher_accepts_what_it_says(matcher, expected, same, other):
    """Values that agree, and values that do not."""
    assert all(agree(expected, value, matcher) for value in same)
    assert not any(agree(expected, value, matcher) for value in other)


def test_paths_reach_into_arguments():
    """`user.address.zip` is compared in its own way, everything else exactly; `*` is any place in a list."""
    user = {"user": {"name": "Mia", "address": {"zip": "10 001", "city": "NYC"}}}
    other = {"user": {"name": "Mia", "address": {"zip": "10001", "city": "NYC"}}}
    rule = {"user.address.zip": {"ignore_whitespace": True}}
    assert grade(user, other, rule).is_correct
    wrong = {"user": {"name": "Mia", "address": {"zip": "10001", "city": "LA"}}}
    found = grade(user, wrong, rule)
    assert "user.address.city = 'LA', expected 'NYC'" in found.reasoning
    items, near = {"items": [{"price": 1.5, "id": 1}]}, {"items": [{"price": 1.52, "id": 1}]}
    assert grade(items, near, {"items.*.price": {"relative": 0.05}}).is_correct
    assert not grade(items, near, {"items.0.id": {"ignore": True}}).is_correct
    assert grade({"a.b": 1}, {"a.b": 2}, {"a.b": {"ignore": True}}).is_correct  # the key itself holds a dot


def test_optional_arguments_may_be_absent_on_either_side():
    """They count where both sides have them, and cost nothing where one has not."""
    rule = {"note": {"optional": True}}
    assert grade({"a": 1, "note": "x"}, {"a": 1}, rule).is_correct
    assert grade({"a": 1}, {"a": 1, "note": "x"}, rule).is_correct
    assert not grade({"a": 1, "note": "x"}, {"a": 1, "note": "y"}, rule).is_correct
    assert not grade({"a": 1, "note": "x"}, {"a": 1}).is_correct
    nested = {"user.nick": {"optional": True}}
    assert grade({"user": {"id": 1}}, {"user": {"id": 1, "nick": "m"}}, nested).is_correct


def test_an_absent_argument_is_its_default():
    """The default stands in on the side that lacks the argument, be it null."""
    rule = {"limit": {"default": 10}}
    assert grade({"limit": 10}, {}, rule).is_correct
    assert grade({}, {"limit": 10}, rule).is_correct
    assert not grade({"limit": 20}, {}, rule).is_correct
    assert not grade({}, {"limit": 20}, rule).is_correct
    assert grade({"a": None}, {}, {"a": {"default": None}}).is_correct
    near = {"limit": {"default": 10, "absolute": 1, "integers": True}}
    assert grade({"limit": 11}, {}, near).is_correct


def test_a_star_is_every_argument_and_every_tool():
    """What is declared for all gives way to what is declared for one."""
    rules = {"*": {"ignore": True}, "a": {"exact": True}}
    assert grade({"a": 1, "b": 2}, {"a": 1, "c": 3}, rules).is_correct
    assert not grade({"a": 1}, {"a": 2}, rules).is_correct
    every = ToolRubric(matchers={"*": {"a": {"ignore": True}}, "f": {"b": {"ignore": True}}})
    turn = Interaction(
        qa_id="q",
        query="",
        assistant="",
        agentic={"tools_used": [{"name": "f", "arguments": {"a": 1, "b": 1}}]},
        ground_truth_agentic={"expected_tools": [{"name": "f", "arguments": {"a": 2, "b": 2}}]},
    )
    assert every.grade(turn).is_correct


def test_the_call_itself_goes_before_the_rubric():
    """Data on one expected call win over what is declared for its tool."""
    loose, strict = {"a": {"ignore": True}}, {"a": {"exact": True}}
    assert not grade({"a": 1}, {"a": 2}, loose, own=strict).is_correct
    assert grade({"a": 1}, {"a": 2}, strict, own=loose).is_correct


def test_a_matcher_of_the_call_expects_its_argument():
    """`regex` and `one_of` need no value: the argument must be there and match."""
    own = {"email": {"regex": ".+@.+"}}
    assert grade({}, {"email": "a@b"}, own=own).is_correct
    missing, wrong = grade({}, {}, own=own), grade({}, {"email": "x"}, own=own)
    assert "email is missing, expected 'text like .+@.+'" in missing.reasoning
    assert "email = 'x', expected 'text like .+@.+'" in wrong.reasoning


def test_a_callable_decides():
    """A function of the expected and the made value, for what cannot be declared."""
    assert grade({"a": "x"}, {"a": "xyz"}, {"a": lambda expected, made: made.startswith(expected)}).is_correct


def test_a_regex_takes_linear_time():
    """The pattern that hangs a backtracking engine does not hang this one."""
    assert not agree("", "a" * 50_000 + "!", {"regex": "(a+)+"})


def test_matching_uses_the_declared_comparison():
    """Of two calls each is given to the expected one that it fits under its matcher."""
    turn = Interaction(
        qa_id="q",
        query="",
        assistant="",
        agentic={
            "tools_used": [
                {"name": "f", "arguments": {"d": "2024-05-02"}},
                {"name": "f", "arguments": {"d": "May 1, 2024"}},
            ]
        },
        ground_truth_agentic={
            "expected_tools": [{"name": "f", "arguments": {"d": d}} for d in ("2024-05-01", "2024-05-02")],
            "tool_sequence_matters": False,
        },
    )
    assert ToolRubric(matchers={"f": {"d": {"datetime": True}}}).grade(turn).is_correct


@settings(max_examples=reduced(100), deadline=None)
@given(
    json_values, st.sampled_from([{}, {"as_set": True}, {"ignore_case": True}, {"relative": 0.1}, {"optional": True}])
)
def test_every_value_agrees_with_itself(value, matcher):
    """Whatever the value, under every matcher that compares the two values."""
    assert agree(value, value, matcher)


def test_a_plain_expected_call_stays_one():
    """Only a call with matchers is more than a `ToolCall`, and both go through a file."""
    tools = ExpectedTools(
        expected_tools=[{"name": "f"}, {"name": "g", "matchers": {"a": {"regex": "x"}}}, ToolCall(tool_name="h")]
    )
    assert [type(call) for call in tools.expected_tools] == [ToolCall, ExpectedCall, ToolCall]
    assert ExpectedTools.model_validate(tools.model_dump(mode="json", exclude_unset=True)) == tools


def test_dates_without_a_year_or_a_day_are_no_dates():
    """What names no moment equals nothing."""
    assert as_date("10:30") is as_date("Monday") is as_date("2024") is as_date("May 2024") is as_date(5) is None
    assert as_date("x" * 100_000) is None


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"regex": "a", "one_of": [1]}, "must compare in one way only, got regex, one_of"),
        ({"integers": True}, "must come with absolute or relative"),
        ({"absolute": -1}, "must be a number ≥ 0"),
        ({"one_of": []}, "must be a list of at least one value"),
        ({"regex": r"(a)\1"}, "must be a regular expression that RE2 can read"),
        ({"ignore": 1}, "must be true or false"),
    ],
)
def test_declarations_are_checked(declared, message):
    """What is no matcher is refused, with what is allowed."""
    with pytest.raises(ValueError, match=message):
        Matcher.model_validate(declared)


def test_equal_values_are_equal_under_every_matcher():
    """Also what names no moment: a perfect trace is perfect."""
    for value in ("10:00", None, "", "today", "May 2024", 5, ["a"]):
        assert agree(value, value, {"datetime": True})


def test_zones_that_are_not_clear_are_no_zones():
    """Abbreviations mean different things in different places; UTC and offsets are clear."""
    assert not agree("2024-05-20 10:00 EST", "2024-05-20 10:00 PST", {"datetime": True})
    assert agree("2024-05-20 10:00 UTC", "May 20, 2024 12:00 +02:00", {"datetime": True})


def test_numbers_beyond_every_float_are_compared_without_a_crash():
    """A whole number of hundreds of digits is not near anything else."""
    assert not agree(1.5, 10**400, {"absolute": 1})
    assert not agree(1, 10**400, {"relative": 0.1, "integers": True})


def test_a_matcher_that_fails_is_named():
    """The error says which tool and argument, and what went wrong; the run goes on without a verdict."""
    with pytest.raises(EvidenceError, match=r"the matcher of f\.a failed: ZeroDivisionError"):
        grade({"a": 1}, {"a": 2}, {"a": lambda expected, made: 1 / 0})


def test_what_is_declared_for_all_holds_beside_what_is_declared_for_one():
    """A specific path changes that path only; everything else keeps the rule of its star."""
    rules = {"*": {"ignore": True}, "u.zip": {"exact": True}}
    assert grade({"u": {"zip": 1, "o": 2}, "v": 1}, {"u": {"zip": 1, "o": 3}, "w": 2}, rules).is_correct
    assert not grade({"u": {"zip": 1}}, {"u": {"zip": 2}}, rules).is_correct
    loose = {"*": {"ignore_case": True}, "u.q": {"ignore": True}}
    assert grade({"u": {"z": "A", "q": 1}}, {"u": {"z": "a", "q": 2}}, loose).is_correct
    crossed = {"u.*.z": {"ignore": True}, "u.a.y": {"ignore_case": True}}
    assert grade({"u": {"a": {"z": 1, "y": "B"}}}, {"u": {"a": {"z": 2, "y": "b"}}}, crossed).is_correct
    assert grade({}, {"a.b": 1}, {"a.b": {"ignore": True}}).is_correct


def test_a_matcher_within_an_argument_expects_it():
    """A call's own matcher at a path asks for the argument that holds it."""
    own = {"u.zip": {"one_of": ["1", "2"]}}
    assert grade({}, {"u": {"zip": "1"}}, own=own).is_correct
    assert not grade({}, {"u": {"zip": "3"}}, own=own).is_correct
    assert "u is missing" in grade({}, {}, own=own).reasoning


values = st.sampled_from([None, 1, 2, "a", "A", 1.5, 1.52, ["a"], {"x": 1}])
declared = st.sampled_from(
    [
        {},
        {"p": {"ignore_case": True}},
        {"p": {"relative": 0.05}, "q": {"optional": True}},
        {"*": {"ignore_case": True}, "q": {"ignore": True}},
        {"p": {"default": "a"}},
        {"p.x": {"ignore": True}},
    ]
)
some_calls = st.lists(st.dictionaries(st.sampled_from("pqr"), values, max_size=3), max_size=4)


@settings(max_examples=reduced(150), deadline=None)
@given(some_calls, some_calls, declared, st.sampled_from(["union_keys", "expected_keys"]))
def test_counting_at_once_is_counting_call_by_call(expected, made, rules, over):
    """The table of agreements is what comparing each pair of calls on its own gives."""
    rule = CallRule(
        ArgumentRule(over), {"f": {path: Matcher.model_validate(matcher) for path, matcher in rules.items()}}
    )
    sides = [[ToolCall(tool_name="f", parameters=p) for p in side] for side in (expected, made)]
    agreeing, considered = rule.counts("f", *sides)
    for i, one in enumerate(sides[0]):
        for j, other in enumerate(sides[1]):
            found = list(rule.keys("f", one, other))
            assert agreeing[i, j] == sum(lost is None for _, lost in found)
            assert considered[i, j] == len(found)


def test_hundreds_of_calls_with_matchers_take_seconds_at_most():
    """Values are compared once for each different pair, not once for each pair of calls."""
    made = []
    rule = CallRule(matchers={"f": {"a": lambda expected, given: made.append(1) or expected == given}})
    calls = [ToolCall(tool_name="f", parameters={"a": i % 5, "b": i}) for i in range(300)]
    rule.counts("f", calls, calls)
    assert len(made) == 25
    assert agree(list(range(3000)), list(range(3000))[::-1], {"as_set": True})
