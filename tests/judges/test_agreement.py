"""Agreement of raters: published values first, then definitions, then what cannot be told."""

import itertools
import json
import math
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import reduced

from agentic_bayes.errors import EvidenceError, InvalidArgument, UnknownName
from agentic_bayes.judges import agreement

# Krippendorff (2011), section E: four observers, twelve units, nine values missing
KRIPPENDORFF = {
    "A": "1 2 3 3 2 1 4 1 2 . . .",
    "B": "1 2 3 3 2 2 4 1 2 5 . 3",
    "C": ". 3 3 3 2 3 4 2 2 5 1 .",
    "D": "1 2 3 3 2 4 4 1 2 5 1 .",
}
# the worked example of the encyclopedia article on alpha: three coders, fifteen units
ARTICLE = {
    "A": ". . . . . 3 4 1 2 1 1 3 3 . 3",
    "B": "1 . 2 1 3 3 4 3 . . . . . . .",
    "C": ". . 2 1 3 4 4 . 2 1 1 3 3 . 4",
}


def frame(rows):
    """A table of ratings written as text, with dots where there is none."""
    return pd.DataFrame({name: [None if v == "." else int(v) for v in row.split()] for name, row in rows.items()})


def from_counts(counts):
    """Two raters' ratings with this table of counts."""
    cells = [(i, j) for i, row in enumerate(counts) for j, n in enumerate(row) for _ in range(n)]
    return pd.DataFrame(cells, columns=["a", "b"])


# Published values


@pytest.mark.parametrize(
    ("rows", "level", "published"),
    [
        (KRIPPENDORFF, "nominal", 0.743),
        (KRIPPENDORFF, "ordinal", 0.815),
        (KRIPPENDORFF, "interval", 0.849),
        (ARTICLE, "nominal", 0.691),
        (ARTICLE, "ordinal", 0.807),
        (ARTICLE, "interval", 0.811),
    ],
)
def test_published_alphas(rows, level, published):
    """Alpha of published worked examples with missing ratings is the published one."""
    alpha = agreement(frame(rows), raters=list(rows), level=level).alpha
    assert alpha.value == pytest.approx(published, abs=5e-4)
    assert alpha.lower <= alpha.value <= alpha.upper
    assert alpha.items == sum(
        sum(v != "." for v in item) >= 2 for item in zip(*(r.split() for r in rows.values()), strict=True)
    )


def test_published_kappa_and_standard_error():
    """Kappa and its standard error are those of the diagnoses in Fleiss, Levin and Paik (2003, table 18.1)."""
    kappa = agreement(from_counts([[75, 1, 4], [5, 4, 1], [0, 0, 10]]), raters=["a", "b"]).kappa()
    assert kappa.value == pytest.approx(0.68, abs=5e-3)
    assert kappa.standard_error == pytest.approx(0.087, abs=1e-3)


def test_pandalm_humans(shared_data):
    """Kappas of PandaLM's three annotators are the published .852, .879 and .862, inside narrow intervals."""
    table = pd.read_csv(shared_data("pandalm/tidy.csv"))
    found = agreement(table[table["agent"] == "pandalm-7b"], raters=["h1", "h2", "h3"])
    assert found.items == 999
    for pair, published in {("h1", "h2"): 0.852, ("h1", "h3"): 0.879, ("h2", "h3"): 0.862}.items():
        kappa = found.kappa(*pair)
        assert kappa.value == pytest.approx(published, abs=5e-4)
        assert kappa.lower < published < kappa.upper
        assert kappa.upper - kappa.lower < 0.07


def test_intake_judge_humans(shared_data):
    """Two reviewers of a judge's findings agree on .88 of them, kappa .63, both inside their intervals."""
    found = agreement(shared_data("tau2_intake_judge/tidy.csv"), raters=["human1", "human2"])
    assert found.raw().value == pytest.approx(0.88, abs=5e-3)
    assert found.kappa().value == pytest.approx(0.63, abs=5e-3)
    assert found.raw().lower < 0.88 < found.raw().upper
    assert found.kappa().lower < 0.63 < found.kappa().upper


# Definitions


def slow_alpha(table, level):
    """Alpha by its definition: a loop over all pairs of values."""
    units = [[v for v in row if not math.isnan(v)] for row in table.to_numpy(dtype=float)]
    units = [unit for unit in units if len(unit) > 1]
    values = [v for unit in units for v in unit]
    n = len(values)

    def squared(a, b):
        if level == "nominal":
            return float(a != b)
        if level == "interval":
            return (a - b) ** 2
        low, high = min(a, b), max(a, b)
        between = sum(low <= v <= high for v in values)
        return 0.0 if a == b else (between - (values.count(a) + values.count(b)) / 2) ** 2

    observed = (
        sum(sum(squared(a, b) for a, b in itertools.permutations(u, 2)) / (len(u) - 1) for u in units) / n if n else 0
    )
    expected = sum(squared(a, b) for a, b in itertools.permutations(values, 2)) / (n * (n - 1)) if n else 0
    return 1 - observed / expected if expected else math.nan


ratings = st.lists(st.lists(st.none() | st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=8)


@given(rows=ratings, level=st.sampled_from(["nominal", "ordinal", "interval"]))
@settings(max_examples=reduced(120), deadline=None)
def test_alpha_is_its_definition(rows, level):
    """The quick alpha equals the sum over all pairs, whatever is missing, and is NaN where that is 0/0."""
    table = pd.DataFrame(rows, columns=["a", "b", "c"], dtype="float64")
    alpha = agreement(table, raters=["a", "b", "c"], level=level, resamples=20).alpha
    assert alpha.value == pytest.approx(slow_alpha(table, level), abs=1e-9, nan_ok=True)
    assert (alpha.note != "") or not math.isnan(alpha.lower)


@given(counts=st.lists(st.lists(st.integers(0, 6), min_size=3, max_size=3), min_size=3, max_size=3))
@settings(max_examples=reduced(60), deadline=None)
def test_kappa_is_its_definition(counts):
    """Kappa equals (p_o - p_e)/(1 - p_e) of the table of counts, whichever rater comes first."""
    p = np.array(counts, dtype=float)
    if not p.sum():
        return
    p /= p.sum()
    chance = float(p.sum(axis=0) @ p.sum(axis=1))
    expected = (np.trace(p) - chance) / (1 - chance) if chance < 1 - 1e-12 else math.nan
    found = agreement(from_counts(counts), raters=["a", "b"], resamples=20)
    assert found.kappa().value == pytest.approx(expected, abs=1e-9, nan_ok=True)
    assert found.raw().value == pytest.approx(np.trace(p), abs=1e-12)
    assert found.kappa("b", "a") is found.kappa("a", "b")


def test_the_bootstrap_agrees_with_the_analytic_standard_error():
    """For two raters and two categories the bootstrap's spread is the analytic standard error, within a tenth."""
    kappa = agreement(from_counts([[40, 9], [6, 45]]), raters=["a", "b"], resamples=4000).kappa()
    assert (kappa.upper - kappa.lower) / (2 * 1.959964) == pytest.approx(kappa.standard_error, rel=0.1)


def test_the_interval_of_kappa_covers():
    """In 150 simulated tables of 150 items the 95 % interval holds the true kappa at least 133 times.

    A nominal interval fails this bound with a probability below .001.
    """
    rng = np.random.default_rng(5)
    p = np.array([[0.5, 0.1], [0.1, 0.3]])
    chance = float(p.sum(axis=0) @ p.sum(axis=1))
    truth = (np.trace(p) - chance) / (1 - chance)
    hits = 0
    for _ in range(150):
        counts = rng.multinomial(150, p.ravel()).reshape(2, 2).tolist()
        kappa = agreement(from_counts(counts), raters=["a", "b"], resamples=300).kappa()
        hits += kappa.lower <= truth <= kappa.upper
    assert hits >= 133


def test_alike_items_widen_the_interval():
    """Items that come in equal fours tell as much as a quarter of them: resampling groups doubles the width."""
    rng = np.random.default_rng(1)
    one = pd.DataFrame({"a": rng.integers(0, 2, 100), "task": range(100)})
    one["b"] = np.where(rng.random(100) < 0.8, one["a"], 1 - one["a"])
    table = pd.concat([one] * 4)
    widths = {}
    for cluster in (None, "task"):
        kappa = agreement(table, raters=["a", "b"], cluster=cluster).kappa()
        widths[cluster] = kappa.upper - kappa.lower
    single = agreement(one, raters=["a", "b"]).kappa()
    assert widths["task"] / widths[None] == pytest.approx(2, rel=0.15)
    assert widths["task"] == pytest.approx(single.upper - single.lower, rel=0.1)


# Same input, same output


def test_order_spelling_and_form_change_nothing(tmp_path):
    """The order of rows, the spelling of numbers, and the form of the table change no number."""
    table = frame(KRIPPENDORFF)
    expected = agreement(table, raters=list("ABCD")).to_pandas()
    path = tmp_path / "ratings.csv"
    table.to_csv(path, index=False)  # 1.0 where a column has gaps
    pd.testing.assert_frame_equal(
        agreement(table.iloc[::-1], raters=list("ABCD")).to_pandas(), expected, rtol=0, atol=0
    )
    pd.testing.assert_frame_equal(agreement(path, raters=list("ABCD")).to_pandas(), expected, rtol=0, atol=0)
    assert not agreement(table, raters=list("ABCD"), random_seed=1).to_pandas().equals(expected)


def test_true_is_one_and_words_are_words():
    """Booleans and 0/1 are the same ratings; where there are words, everything is compared as text."""
    table = pd.DataFrame({"a": [True, False, True, None], "b": ["1", "0", "true", "0"]}, dtype=object)
    found = agreement(table, raters=["a", "b"])
    assert found.categories == ("0", "1")
    assert found.raw().value == 1
    words = agreement(pd.DataFrame({"a": ["good", "1", 2.0], "b": [" good", 1, "2"]}), raters=["a", "b"])
    assert words.categories == ("1", "2", "good")
    assert words.raw().value == 1


def test_an_order_of_categories_is_taken():
    """Ordinal words need their order, and with it they are as good as numbers."""
    names = {1: "poor", 2: "fair", 3: "good", 4: "fine", 5: "best"}
    table = frame(KRIPPENDORFF)
    words = table.apply(lambda column: column.map(names, na_action="ignore"))
    found = agreement(words, raters=list("ABCD"), level="ordinal", categories=list(names.values()))
    assert found.alpha.value == pytest.approx(0.815, abs=5e-4)
    assert found.categories == tuple(names.values())
    with pytest.raises(EvidenceError, match="'ordinal' needs categories=\\[…\\] in order"):
        agreement(words, raters=list("ABCD"), level="ordinal")
    with pytest.raises(EvidenceError, match="row 1: A must be one of the categories or blank, got 'poor'"):
        agreement(words, raters=list("ABCD"), level="ordinal", categories=["fair", "good", "fine", "best"])


# What cannot be told, or has no spread


def test_perfect_agreement_has_a_width():
    """Twelve of twelve equal ratings are 1 with Wilson's lower end, not an interval of no width."""
    found = agreement(pd.DataFrame({"a": [1] * 8 + [0] * 4, "b": [1] * 8 + [0] * 4}), raters=["a", "b"])
    raw, kappa, alpha = found.measures
    assert (raw.value, kappa.value, alpha.value) == (1, 1, 1)
    assert raw.lower == pytest.approx(0.7575, abs=1e-4)  # Wilson: n/(n + z²)
    # chance agrees 5/9 of the time, so that of the other 4/9 at most 1 - .7575 may differ
    assert kappa.lower == alpha.lower == pytest.approx(1 - (1 - raw.lower) / (4 / 9))
    assert all("Wilson" in m.note for m in found.measures)


def test_undefined_is_nan_with_a_reason():
    """One category throughout, no item rated twice, a rater who never varies: NaN and a note, never 0 or 1."""
    same = agreement(pd.DataFrame({"a": [1] * 8, "b": [1] * 8}), raters=["a", "b"])
    assert math.isnan(same.kappa().value)
    assert math.isnan(same.alpha.value)
    assert "one category" in same.alpha.note
    assert same.raw().lower < 0.7
    none = agreement(pd.DataFrame({"a": [1] * 8, "b": [None] * 8}), raters=["a", "b"])
    assert all(math.isnan(m.value) and m.note == "no item was rated twice" for m in none.measures)
    constant = agreement(pd.DataFrame({"a": [1, 0] * 8, "b": [1] * 16}), raters=["a", "b"]).kappa()
    assert constant.value == 0
    assert math.isnan(constant.lower)
    assert "does a rater never vary" in constant.note
    opposite = agreement(pd.DataFrame({"a": [1, 0] * 8, "b": [0, 1] * 8}), raters=["a", "b"])
    assert all(m.lower < m.upper for m in opposite.measures)
    few = agreement(pd.DataFrame({"a": [1, 0], "b": [1, 1]}), raters=["a", "b"]).kappa()
    assert "undefined in" in few.note or "no interval" in few.note


def test_the_interval_level_gives_alpha_only():
    """Scores are seldom equal, so at the interval level kappa and raw agreement are not given."""
    table = pd.DataFrame({"a": [0.1, 0.5, 0.9], "b": [0.2, 0.5, 0.8], "c": [0.1, None, 0.9]})
    found = agreement(table, raters=["a", "b", "c"], level="interval")
    assert [m.measure for m in found.measures] == ["alpha"]
    with pytest.raises(InvalidArgument, match="no kappa at level 'interval' for a, b; available: alpha"):
        found.kappa("a", "b")
    with pytest.raises(EvidenceError, match="'interval' needs numbers and no categories, got 'x'"):
        agreement(pd.DataFrame({"a": ["x"], "b": [1]}), raters=["a", "b"], level="interval")


def test_the_table_and_the_text_hold_every_measure():
    """`to_pandas()` has a row and the text a line for every pair and for all raters."""
    found = agreement(frame(KRIPPENDORFF), raters=list("ABCD"))
    table = found.to_pandas()
    assert table["measure"].tolist() == ["raw agreement", "kappa"] * 6 + ["raw agreement", "alpha"]
    assert table["raters"].iloc[-1] == "A, B, C, D"
    assert "alpha, 4 raters: 0.743" in str(found)
    assert "bootstrap over 12 items, 2,000 resamples, seed 0; alpha nominal" in str(found)
    grouped = agreement(frame(KRIPPENDORFF).assign(g=[0, 1, 2] * 4), raters=list("ABCD"), cluster="g")
    assert "over 3 groups of items" in str(grouped)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"raters": ["a"]}, InvalidArgument, "at least two different column names"),
        ({"raters": "ab"}, InvalidArgument, "at least two different column names"),
        ({"raters": ["a", "a"]}, InvalidArgument, "at least two different column names"),
        ({"raters": ["a", "bb"]}, EvidenceError, "no column 'bb'"),
        ({"raters": ["a", "b"], "level": "ratio"}, UnknownName, "unknown level 'ratio'"),
        ({"raters": ["a", "b"], "ci_prob": 95}, InvalidArgument, "ci_prob must be"),
        ({"raters": ["a", "b"], "resamples": 0}, InvalidArgument, "resamples must be"),
        ({"raters": ["a", "b"], "cluster": "task"}, EvidenceError, "no column 'task'"),
        ({"raters": ["a", "b"], "categories": "abc"}, InvalidArgument, "categories must be a list"),
        ({"raters": ["a", "b"], "categories": [1, 1, 2]}, EvidenceError, "categories must differ"),
    ],
)
def test_wrong_arguments_are_refused(arguments, error, message):
    """What is not allowed is refused with what is."""
    with pytest.raises(error, match=message):
        agreement(pd.DataFrame({"a": [1, 2], "b": [1, 2]}), **arguments)


def test_a_rater_that_is_not_there_is_named():
    """Asking for a rater that is not there names the nearest one."""
    found = agreement(pd.DataFrame({"anna": [1, 2], "ben": [1, 2]}), raters=["anna", "ben"])
    with pytest.raises(UnknownName, match="did you mean 'anna'"):
        found.kappa("ana", "ben")


@pytest.mark.parametrize(("level", "digits"), [("nominal", 0), ("ordinal", 0), ("interval", 4)])
def test_ten_thousand_items_take_about_a_second(level, digits):
    """10,000 items and 3 raters with 2,000 resamples take about a second, with few patterns of ratings or many."""
    rng = np.random.default_rng(0)
    truth = rng.normal(0, 2, 10_000)
    table = pd.DataFrame({c: (truth + rng.normal(0, 0.5, 10_000)).round(digits) for c in "abc"})
    start = time.process_time()
    found = agreement(table, raters=list("abc"), level=level)
    assert time.process_time() - start < 2.5
    assert found.alpha.upper - found.alpha.lower < 0.03


def test_agreement_as_markdown_and_json():
    """The Markdown table has a row per measure; the JSON form has no NaN."""
    found = agreement(pd.DataFrame({"a": [1, 1, 0], "b": [1, 1, 1]}), raters=["a", "b"])
    lines = found.to_markdown().splitlines()
    assert lines[2] == "| measure | raters | value | interval | items | note |"
    assert [line.split(" | ")[0] for line in lines[4:7]] == ["| raw agreement", "| kappa", "| alpha"]
    record = found.to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert (record["raters"], record["measures"][0]["standard_error"]) == (["a", "b"], None)
