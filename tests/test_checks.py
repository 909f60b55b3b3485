"""Checks of arguments: what passes comes back plain, and what is refused is named with what is allowed."""

import math
import os
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_bayes.checks import (
    LARGEST_K,
    check_attempts,
    check_bootstrap,
    check_choice,
    check_count,
    check_flag,
    check_ks,
    check_number,
    check_probability,
    check_replaceable,
    check_rope,
    check_seed,
    check_type,
    no_such_file,
)
from agentic_bayes.errors import InvalidArgument, UnknownName

NOT_INTEGERS = (True, np.True_, 2.0, 2.5, np.float64(2), "2", None, (2,), [2], np.array([2, 3]), math.nan, 2j)
NOT_NUMBERS = (True, np.True_, "0.5", None, (0.5,), [0.5], math.nan, np.float64("nan"), 0.5j)


def refused(check, value, message):
    """The check raises `InvalidArgument` with this message, which ends in what came."""
    with pytest.raises(InvalidArgument, match=f"^{re.escape(f'{message}, got {value!r}')}$"):
        check(value)


def test_a_missing_file_names_its_neighbour(tmp_path):
    """A file that does not exist is named with the nearest that does; a folder is called one."""
    (tmp_path / "results.csv").write_text("")
    assert no_such_file(tmp_path / "result.csv").endswith("result.csv: no such file (did you mean 'results.csv'?)")
    assert no_such_file(tmp_path / "xyz").endswith("xyz: no such file")
    assert no_such_file(tmp_path / "nowhere" / "x.csv").endswith("x.csv: no such file")
    assert no_such_file(tmp_path) == f"{tmp_path}: must be a file, is a folder"


def test_only_a_file_is_replaced_by_a_file(tmp_path):
    """A new name and a file may be written to; a folder, a pipe or a device is left alone."""
    (tmp_path / "results.csv").write_text("")
    os.mkfifo(tmp_path / "pipe")
    for fine in ("results.csv", "new.csv"):
        check_replaceable(tmp_path / fine)
    for path, message in ((tmp_path, "is a folder"), (tmp_path / "pipe", "is a pipe or a device")):
        with pytest.raises(InvalidArgument, match=re.escape(f"{path}: must be a file, {message}")):
            check_replaceable(path)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (int, "5", "outcome must be an int (counting gives one), got str"),
        (dict, None, "outcome must be a dict (counting gives one), got NoneType"),
        (pd.DataFrame, [], "outcome must be a DataFrame (counting gives one), got list"),
    ],
)
def test_an_argument_of_another_type_is_named(kind, value, message):
    """The message says what is wanted, where it comes from and what came."""
    check_type("outcome", kind(), kind, "counting gives one")
    with pytest.raises(InvalidArgument, match=f"^{re.escape(message)}$"):
        check_type("outcome", value, kind, "counting gives one")


def test_a_choice_is_one_of_a_closed_set():
    """What is among the valid names passes; anything else, of any type, is named with the nearest."""
    check_choice("unit", "question", ("conversation", "question"))
    for wrong in ("questions", None, 1, ["question"], pd.NA, np.array(["question", "turn"])):
        with pytest.raises(UnknownName, match=re.escape(f"unknown unit {wrong!r}: ")):
            check_choice("unit", wrong, iter(("conversation", "question")))


@pytest.mark.parametrize("value", [1, 7, np.int64(7), np.uint8(7), 10**30])
def test_a_count_is_an_integer_from_the_least_up(value):
    """Python's and NumPy's integers pass and come back as Python's."""
    for check in (lambda v: check_count(v, "k"), lambda v: check_count(v, "n"), lambda v: check_count(v, "n", least=0)):
        assert check(value) == value
        assert type(check(value)) is int
    assert check_count(0, "n", least=0) == 0
    assert check_count(-2, "n", least=-2) == -2


@pytest.mark.parametrize("value", [*NOT_INTEGERS, 0, -1])
def test_what_is_no_count_is_refused(value):
    """Booleans, floats (also whole ones), text, containers and what is too small are no counts."""
    refused(lambda v: check_count(v, "k"), value, "k must be an integer ≥ 1")
    refused(lambda v: check_count(v, "draws"), value, "draws must be an integer ≥ 1")
    refused(lambda v: check_count(v, "n"), value, "n must be an integer ≥ 1")
    refused(lambda v: check_count(v, "n", least=2), value, "n must be an integer ≥ 2")


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), np.int64(1), 5e-324, 1 - 2**-53])
def test_a_probability_is_a_number_between_0_and_1(value):
    """Ends included; it comes back as Python's float."""
    assert check_probability(value, "p") == value
    assert type(check_probability(value, "p")) is float


@pytest.mark.parametrize("value", [*NOT_NUMBERS, -0.1, 1.1, math.inf, -math.inf, 95])
def test_what_is_no_probability_is_refused(value):
    """Per cents, NaN, infinities, booleans and text are no probabilities, with either kind of ends."""
    refused(lambda v: check_probability(v, "p"), value, "p must be a number in [0, 1]")
    refused(lambda v: check_probability(v, "p", open_ends=True), value, "p must be a number strictly between 0 and 1")


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, np.float64(1), np.int64(0)])
def test_open_ends_leave_out_0_and_1(value):
    """Where impossible and certain make no sense, 0 and 1 are refused and all between passes."""
    check_probability(value, "p")
    refused(lambda v: check_probability(v, "p", open_ends=True), value, "p must be a number strictly between 0 and 1")
    assert check_probability(1e-12, "p", open_ends=True) == 1e-12


@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
def test_a_flag_is_true_or_false(value):
    """Python's and NumPy's booleans pass and come back as Python's."""
    assert check_flag(value, "tasks") is bool(value)


@pytest.mark.parametrize("value", [0, 1, "True", "", None, [], np.int64(1)])
def test_what_is_no_flag_is_refused(value):
    """What merely counts as true or false is no flag."""
    refused(lambda v: check_flag(v, "tasks"), value, "tasks must be True or False")


def test_attempts_end_at_a_million():
    """Log-gamma differences keep their digits up to a million attempts, so larger k are refused."""
    assert check_attempts(LARGEST_K) == LARGEST_K == 10**6
    assert type(check_attempts(np.int64(3))) is int
    with pytest.raises(InvalidArgument, match=r"^k must be at most 1,000,000, got 1,000,001$"):
        check_attempts(LARGEST_K + 1)
    refused(check_attempts, 0, "k must be an integer ≥ 1")


@pytest.mark.parametrize(
    ("k", "ks"),
    [
        (3, (3,)),
        (np.int64(3), (3,)),
        ([5, 1, 3, 1], (1, 3, 5)),
        ({2, 1}, (1, 2)),
        (range(1, 4), (1, 2, 3)),
        (np.array([2, 1]), (1, 2)),
        (iter((2,)), (2,)),
    ],
)
def test_one_k_or_several_are_sorted_and_distinct(k, ks):
    """One integer or any iterable of them gives a sorted tuple of Python's integers, each once."""
    assert check_ks(k) == ks
    assert all(type(value) is int for value in check_ks([1, *ks]))


@pytest.mark.parametrize("k", ["3", "1,3", 2.5, None, True])
def test_what_is_no_k_is_refused(k):
    """Text is no list of k, though it can be iterated over."""
    refused(check_ks, k, "k must be an integer ≥ 1")


def test_the_wrong_one_of_several_k_is_named():
    """One bad value refuses the whole, and the message shows that value only."""
    with pytest.raises(InvalidArgument, match=r"^k must be an integer ≥ 1, got 0$"):
        check_ks([1, 0, 3])
    with pytest.raises(InvalidArgument, match=r"^k must be at most 1,000,000, got 2,000,000$"):
        check_ks([1, 2 * 10**6])
    with pytest.raises(InvalidArgument, match=r"^k must hold at least one integer ≥ 1, got none$"):
        check_ks([])


@pytest.mark.parametrize("seed", [0, 1, np.int64(5), 2**63 - 1])
def test_a_seed_is_an_integer_from_0_up(seed):
    """Every integer that fits a file's 64 bits is a seed, and comes back as Python's."""
    assert check_seed(seed) == seed
    assert type(check_seed(seed)) is int


@pytest.mark.parametrize("seed", [*NOT_INTEGERS, -1, 2**63])
def test_what_is_no_seed_is_refused(seed):
    """None is no seed: results never depend on the clock."""
    refused(check_seed, seed, "random_seed must be an integer ≥ 0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 100, 0), "ci_prob must be a number strictly between 0 and 1, got 1"),
        ((0.95, 0, 0), "resamples must be an integer ≥ 1, got 0"),
        ((0.95, 100, -1), "random_seed must be an integer ≥ 0, got -1"),
    ],
)
def test_a_bootstrap_needs_a_probability_resamples_and_a_seed(arguments, message):
    """Each of its three arguments is checked."""
    check_bootstrap(0.95, 100, 0)
    with pytest.raises(InvalidArgument, match=f"^{re.escape(message)}$"):
        check_bootstrap(*arguments)


@pytest.mark.parametrize(
    ("rope", "ends"),
    [
        (0, (0, 0)),
        (0.05, (-0.05, 0.05)),
        (1, (-1, 1)),
        (np.float64(0.1), (-0.1, 0.1)),
        ((-0.02, 0.05), (-0.02, 0.05)),
        ([-1, 1], (-1, 1)),
        ((0.1, 0.1), (0.1, 0.1)),
        ((np.float64(-0.1), np.int64(0)), (-0.1, 0)),
    ],
)
def test_a_region_of_practical_equivalence_is_a_half_width_or_two_ends(rope, ends):
    """A half-width gives a region around 0; a pair is kept as it is, both as Python's floats."""
    assert check_rope(rope) == ends
    assert [type(end) for end in check_rope(rope)] == [float, float]


@given(st.floats(0, 1))
def test_a_half_width_gives_a_region_that_is_symmetric_about_0(half):
    """The two ends of a half-width are each other's negative."""
    low, high = check_rope(half)
    assert -low == high == half


@pytest.mark.parametrize("rope", [-0.01, 1.01, math.nan, math.inf, True, None, "0.05"])
def test_what_is_no_half_width_is_refused(rope):
    """A half-width is a number in [0, 1]; the message says that a pair is allowed as well."""
    refused(check_rope, rope, "rope (a half-width, or a pair low, high) must be a number in [0, 1]")


@pytest.mark.parametrize(
    "rope",
    [
        *((), (0.1,), (0, 0.1, 0.2), (0.1, -0.1), (-1.1, 0), (0, 1.1), (math.nan, 0.1), (0.1, math.nan)),
        *((False, True), ("0", "1"), [None, 0.1], (-math.inf, math.inf)),
    ],
)
def test_what_is_no_pair_of_ends_is_refused(rope):
    """Two numbers in [-1, 1], the smaller first, and nothing else."""
    refused(check_rope, rope, "rope must be a half-width in [0, 1] or a pair low ≤ high in [-1, 1]")


@pytest.mark.parametrize("value", [0, 1, 0.25, 2**1000, 1.7e308, np.float32(2.5), np.int64(4)])
def test_a_number_is_finite_and_not_below_0(value):
    """Whole and broken, Python's and NumPy's numbers pass and come back as Python's floats."""
    assert check_number(value, "timeout") == value
    assert type(check_number(value, "timeout")) is float


@pytest.mark.parametrize("value", [*NOT_NUMBERS, -1, -0.001, math.inf, -math.inf, 10**400])
def test_what_is_no_number_is_refused(value):
    """Negative numbers, NaN, infinity, booleans, text and whole numbers too large for a float are refused."""
    refused(lambda v: check_number(v, "timeout"), value, "timeout must be a number ≥ 0")
    refused(lambda v: check_number(v, "timeout", unit="seconds"), value, "timeout must be a number of seconds ≥ 0")
    refused(lambda v: check_number(v, "price", above_zero=True), value, "price must be a number > 0")


@pytest.mark.parametrize("value", [0, 0.0, np.int64(0)])
def test_a_number_above_0_is_not_0(value):
    """Where 0 makes no sense it is refused, and the smallest float is not."""
    check_number(value, "timeout")
    refused(
        lambda v: check_number(v, "timeout", above_zero=True, unit="seconds"),
        value,
        "timeout must be a number of seconds > 0",
    )
    assert check_number(5e-324, "timeout", above_zero=True) == 5e-324
