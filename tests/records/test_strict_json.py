"""JSON read strictly: what Python's own reader would let pass is an error that says why."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_bayes.records.wire.strict_json import MAX_DEPTH, repeated_keys, strict_json, too_deep, values_at

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(), inside, max_size=4),
    max_leaves=10,
)


@given(value=VALUES)
def test_valid_json_is_read_as_python_reads_it(value):
    """Whatever `json.dumps` writes without NaN comes back equal."""
    assert strict_json(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "key 'a' occurs twice"),
        ('[{"b": {"a": 1, "c": 2, "a": 2}}]', "key 'a' occurs twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ("1e999", "the number 1e999 is too large"),
        ("1" * 5000, "a number has too many digits"),
        ("[" * 200_000, "nested too deeply"),
        ("[1] [2]", "Extra data"),
        ('"line\nbreak"', "control character"),
        ("", "Expecting value"),
    ],
)
def test_a_text_that_is_not_strict_json_is_refused_with_the_reason(text, message):
    """One kind of error for every fault."""
    with pytest.raises(ValueError, match=message):
        strict_json(text)


def test_each_rule_can_be_lifted_where_a_format_does_not_keep_it():
    """Python writes NaN, and some services repeat keys."""
    assert math.isnan(strict_json("NaN", finite=False))
    assert strict_json("1e999", finite=False) == math.inf
    assert strict_json('{"a": 1, "a": 2}', unique=False) == {"a": 2}


def test_a_value_within_a_text_is_read_with_its_end_and_its_fault():
    """Line breaks in strings are allowed; a fault does not hide where the value ends."""
    assert values_at()('so: {"a": "x\ny"}!', 4) == ({"a": "x\ny"}, 16, "")
    assert values_at()('{"a": 1, "a": 2} and more', 0) == ({"a": 2}, 16, "key 'a' occurs twice")
    with pytest.raises(json.JSONDecodeError, match="Expecting"):
        values_at()('{"a": ', 0)


def test_repeated_keys_are_each_named_once_in_their_order():
    """However often they occur."""
    assert repeated_keys([("b", 1), ("a", 1), ("a", 2), ("b", 2), ("a", 3), ("c", 0)]) == ("b", "a")
    assert repeated_keys([]) == ()


def test_depth_is_counted_in_levels_and_shared_values_cost_nothing():
    """Exactly `MAX_DEPTH` levels are allowed; 2^100 paths through shared lists take no time."""
    value: list[object] = []
    for _ in range(MAX_DEPTH - 1):
        value = [value, value]
    assert not too_deep(value)
    assert too_deep([value])
