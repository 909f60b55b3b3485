"""Tables that are large: checked all at once, counted in their engine, and the same as row by row."""

import unicodedata

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import reduced

from agentic_bayes.errors import OutcomesError
from agentic_bayes.evidence import table as tables
from agentic_bayes.evidence import table_files
from agentic_bayes.evidence.frames import LocalTable
from agentic_bayes.outcomes import engine
from agentic_bayes.outcomes.table import outcomes_from_table
from agentic_bayes.outcomes.table_doubts import doubts, similar, sums

LAZY = {
    "polars": lambda frame: pl.from_pandas(frame).lazy(),
    "DuckDB": lambda frame: duckdb.connect().from_arrow(pa.Table.from_pandas(frame)),
    "Dask": lambda frame: dd.from_pandas(frame, npartitions=2),
}
# Dask goes through the same code, and takes longest
MOST = [pytest.param(name, marks=[pytest.mark.slow] * (name == "Dask")) for name in LAZY]
cells = st.one_of(
    st.sampled_from(["", " ", "nan", "-nan", "NaN", "inf", "0_1", "½", "+.5", "1e-3", "1.", "true", "C", "0,5", "0x1"]),
    st.floats(0, 1).map(str),
    st.integers(-1, 2).map(str),
)


def outcome(table, **arguments):
    """Counts by task, or the message of the refusal."""
    try:
        ds = outcomes_from_table(table, **arguments)
    except OutcomesError as error:
        return str(error)
    return {name: ds[name].to_series().to_dict() for name in ("successes", "trials", "unscored")}


@given(st.lists(st.one_of(st.integers(), st.text(max_size=4), st.sampled_from(["nan", "<NA>", " a", "1\0"]))))
@settings(max_examples=reduced(40), deadline=None)
def test_labels_checked_all_at_once_are_those_read_one_by_one(values):
    """Distinct whole numbers or clean ASCII text are labels as they are; of anything else nothing is said."""
    distinct = list(dict.fromkeys(values))
    if (plain := tables.plain_labels(distinct)) is not None:
        assert list(plain) == [tables.label(value) for value in distinct]
        assert not any(tables.no_label(value) for value in distinct)
        assert len(set(plain)) == len(distinct)


@given(
    st.lists(
        st.sampled_from(["a", "A", "b c", "b  c", "B\tc", "é", "É", "a\u200b", "total", "Mean", "1.2E+15", "x\ny"]),
        unique=True,
    ),
    st.randoms(use_true_random=False),
)
@settings(max_examples=reduced(40), deadline=None)
def test_doubts_about_names_are_those_of_plain_loops(names, random):
    """Names that only look different, sums by name, shortened ids, and tasks that are the sum of all others."""
    counts = np.array([[[random.randrange(3) for _ in names] for _ in range(2)] for _ in range(4)])
    counts[1] += counts[0] + 2
    if names:
        counts[:, :, 0] = counts[:, :, 1:].sum(axis=-1)
    said = " ".join([*similar(names, "task", "tasks"), *doubts(LocalTable("", {}), (), names, {}, None, wide=True)])
    bare = [" ".join(name.replace("\u200b", "").lower().split()) for name in names]
    assert ("differ only in case" in said) == (len(set(bare)) < len(names))
    assert ("counts as a task" in said) == (len(names) > 1 and not {"total", "Mean"}.isdisjoint(names))
    assert list(similar(names, "task", "tasks")) == list(similar(names[::-1], "task", "tasks"))
    assert ("shortened" in said) == ("1.2E+15" in names)
    summed = [
        name
        for i, name in enumerate(names)
        if len(names) > 2 and name not in ("total", "Mean") and counts[1, :, i].max() >= 4
        if all(2 * counts[kind, a, i] == sum(counts[kind, a]) for kind in (0, 1) for a in (0, 1))
    ]
    assert list(sums(names, counts)) == [
        f"task {name!r} has as many successes and trials as all others: if it sums them up, leave it out"
        for name in summed
    ]


@given(st.lists(cells, min_size=1, max_size=6), st.sampled_from([None, 0.5, 1.0]))
@settings(max_examples=reduced(25), deadline=None)
def test_a_large_file_is_read_as_a_small_one(tmp_path_factory, values, threshold):
    """Whatever stands in the column of scores: the same counts, or the same message with the same lines."""
    path = tmp_path_factory.mktemp("large") / "t.csv"
    pd.DataFrame({"task": [f"t{i % 2}" for i in range(len(values))], "correct": values}).to_csv(path, index=False)
    small = outcome(path, threshold=threshold)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_files, "LARGE", 0)
        assert outcome(path, threshold=threshold) == small


@pytest.mark.parametrize("kind", ["float64", "float32", "Float64", "object", "double[pyarrow]"])
def test_scores_of_every_type_are_cut_alike(kind):
    """A type changes no verdict, and blanks are unscored; a score out of range is refused with its row."""
    scores = [0.25, 0.5, None, 1.0, 0.0]
    table = pd.DataFrame({"task": "t", "correct": pd.Series(scores, dtype=kind)})
    found = outcomes_from_table(table, threshold=0.5)
    assert [int(found[name].item()) for name in ("successes", "trials", "unscored")] == [2, 4, 1]
    table.loc[3, "correct"] = 95
    with pytest.raises(OutcomesError, match=r"got 95(\.0)? \(row 4\)"):
        outcomes_from_table(table, threshold=0.5)


@pytest.mark.parametrize("library", MOST)
def test_repeated_trials_are_found_in_the_engine(library):
    """By sums of powers of two, for any whole numbers: they are right about tables with and without repetition."""
    rng = np.random.default_rng(7)
    for low, high, distinct in ((0, 300, True), (0, 70, False), (-90, 90, True), (10**12, 10**12 + 200, True)):
        frame = pd.DataFrame({"task": rng.integers(0, 3, 150), "trial": rng.integers(low, high, 150), "correct": 1})
        if distinct:
            frame = frame.drop_duplicates(["task", "trial"])
            ds = outcomes_from_table(LAZY[library](frame))
            assert int(ds["trials"].sum()) == len(frame)
        else:
            with pytest.raises(OutcomesError, match="rows are all agent 'agent', task"):
                outcomes_from_table(LAZY[library](frame))


@pytest.mark.parametrize("library", MOST)
def test_a_hundred_labels_in_two_spellings_are_read_in_seconds(library):
    """Tasks whose accents are one character in half of the rows and two in the others are the same tasks."""
    names = [f"t\u00e2che {i}" for i in range(100)]
    tasks = [*names, *(unicodedata.normalize("NFD", name) for name in names)]
    frame = pd.DataFrame({"task": tasks, "trial": [0] * 100 + [1] * 100, "correct": 1})
    ds = outcomes_from_table(LAZY[library](frame))
    assert ds["task"].values.tolist() == names
    assert (ds["trials"] == 2).all()


@pytest.mark.parametrize("library", MOST)
def test_numbers_that_are_no_results_stay_in_the_engine(library, monkeypatch):
    """A column of scores read without a threshold gives a message, not millions of distinct scores."""
    monkeypatch.setattr(engine, "LOOKED_AT", 20)
    frame = pd.DataFrame({"task": "t", "correct": np.linspace(0, 1, 1000)})
    with pytest.raises(OutcomesError, match=r"and 12 more values\. For scores, give threshold"):
        outcomes_from_table(LAZY[library](frame))
    assert int(outcomes_from_table(LAZY[library](frame), threshold=0.5)["successes"].sum()) == 500


@pytest.mark.slow
def test_a_cluster_of_dask_gives_the_same_counts(tmp_path):
    """Two worker processes read a folder of Parquet files and count them."""
    from distributed import Client, LocalCluster

    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"agent": rng.choice(["v1", "v2"], 40_000), "task": rng.integers(0, 50, 40_000)})
    frame["trial"] = frame.groupby(["agent", "task"]).cumcount()
    frame["correct"] = rng.integers(0, 2, len(frame))
    for part in range(4):
        frame.iloc[part::4].to_parquet(tmp_path / f"{part}.parquet")
    expected = outcomes_from_table(frame)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        counted = outcomes_from_table(dd.read_parquet(tmp_path))
    assert counted.drop_attrs().identical(expected.drop_attrs())
