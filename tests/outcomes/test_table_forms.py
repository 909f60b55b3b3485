"""One table in every form: files, frames of every library, records, arrays; long, counts, wide and nested."""

import gzip
import json
import warnings
from collections.abc import Callable
from typing import Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import reduced

from agentic_bayes.errors import AgenticBayesWarning, InvalidArgument, OutcomesError
from agentic_bayes.evidence import frames, table_files
from agentic_bayes.outcomes.dataset import check_outcomes
from agentic_bayes.outcomes.table import outcomes_from_table

ROWS = [
    {"agent": "v1", "task": "a", "trial": 0, "correct": 1.0, "error": None, "domain": "x", "share": 1.0},
    {"agent": "v1", "task": "a", "trial": 1, "correct": 0.2, "error": None, "domain": "x", "share": 1.0},
    {"agent": "v1", "task": "b", "trial": 0, "correct": None, "error": None, "domain": "y", "share": 3.0},
    {"agent": "v2", "task": "a", "trial": 0, "correct": 0.9, "error": "Timeout: 30 s", "domain": "x", "share": 1.0},
    {"agent": "v2", "task": "b", "trial": 0, "correct": 0.7, "error": "", "domain": "y", "share": 3.0},
]
ARGUMENTS: dict[str, Any] = {"threshold": 0.7, "group": "domain", "weight": "share"}


def relation(rows: list[dict[str, Any]]) -> Any:
    """A DuckDB relation, which keeps its connection."""
    return duckdb.connect().from_arrow(pa.Table.from_pylist(rows))


def lazy_dask(rows: list[dict[str, Any]]) -> Any:
    return dd.from_pandas(pd.DataFrame(rows), npartitions=2)


FRAMES: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "records": lambda rows: rows,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "pyarrow": pa.Table.from_pylist,
    "pandas on pyarrow": lambda rows: pa.Table.from_pylist(rows).to_pandas(types_mapper=pd.ArrowDtype),
    "DuckDB": relation,
    "Dask": lazy_dask,
}


def same(one: xr.Dataset, other: xr.Dataset) -> bool:
    """Whether two sets of outcomes are equal but for what they call their source and indicator."""
    keys = ("source", "indicator")
    return one.drop_attrs().identical(other.drop_attrs()) and all(
        one.attrs.get(key) == other.attrs.get(key) for key in {*one.attrs, *other.attrs} - set(keys)
    )


@pytest.mark.parametrize("form", FRAMES)
def test_every_library_gives_the_same_outcomes(form):
    """Verdicts by threshold, errors, groups and weights, whether counted here or in the engine."""
    ds = outcomes_from_table(FRAMES[form](ROWS), **ARGUMENTS)
    assert ds["successes"].values.tolist() == [[1, 0], [0, 1]]
    assert ds["trials"].values.tolist() == [[2, 0], [0, 1]]
    assert ds["errored"].values.tolist() == [[0, 0], [1, 0]]
    assert ds["unscored"].values.tolist() == [[0, 1], [1, 0]]
    assert ds["domain"].values.tolist() == ["x", "y"]
    assert ds["share"].values.tolist() == [1.0, 3.0]
    assert ds.attrs["threshold"] == 0.7
    assert check_outcomes(ds).identical(ds)


@pytest.mark.parametrize("form", ["polars lazy", "DuckDB", "Dask"])
def test_a_lazy_table_is_refused_with_numbers_of_rows(form):
    """Rows have no place in an engine; how many are wrong is said instead."""
    make = FRAMES[form]
    with pytest.raises(OutcomesError, match=r"2 rows are all agent 'v1', task 'a', trial '0'\. .*cumcount"):
        outcomes_from_table(make([ROWS[0], *ROWS]), **ARGUMENTS)
    with pytest.raises(OutcomesError, match=r"scores between 0 and 1, .* got 95\.0 \(1 row\)\. .*/ 100"):
        outcomes_from_table(make([*ROWS, {**ROWS[0], "trial": 7, "correct": 95.0}]), threshold=0.7)
    with pytest.raises(OutcomesError, match="1 row: task must not be blank"):
        outcomes_from_table(make([*ROWS, {**ROWS[0], "task": None}]), threshold=0.7)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "jsonl", "jsonl.gz", "json", "json.gz", "parquet"])
def test_every_file_gives_the_same_outcomes(tmp_path, suffix, monkeypatch):
    """Also a CSV file that is large, which pyarrow reads."""
    path = tmp_path / f"t.{suffix}"
    kind, _, packed = suffix.partition(".")
    table = pd.DataFrame(ROWS)
    if kind == "parquet":
        table.to_parquet(path)
    else:
        lines = "".join(json.dumps(row) + "\n" for row in ROWS)
        text = {"jsonl": lines, "json": json.dumps(ROWS)}.get(kind) or table.to_csv(
            sep="\t" if kind == "tsv" else ",", index=False
        )
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    expected = outcomes_from_table(ROWS, **ARGUMENTS)
    assert same(outcomes_from_table(path, **ARGUMENTS), expected)
    monkeypatch.setattr(table_files, "LARGE", 0)
    assert same(outcomes_from_table(path, **ARGUMENTS), expected)


@pytest.mark.parametrize("large", [0, 1 << 21])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('task,note,correct\n"a\n1","x, ""y""",yes\nb,,no\n', [[1, 0], [1, 1]]),
        ("\ufefftask;score;correct\r\na;0,5;0,85\r\nb;1,5;0,1\r\n;;\r\n", [[1, 0], [1, 1]]),
        (",task,correct,,\n0,a,1,,\n1,b,0,,\n,,,,\n\n", [[1, 0], [1, 1]]),
        ("sep=;\ntask;correct\na;C\nb;I\n", [[1, 0], [1, 1]]),
        ("task,correct\na,Pass\nb,\nb,FAIL ,\n", [[1, 0], [1, 1]]),
    ],
)
def test_what_spreadsheets_leave_is_read(tmp_path, monkeypatch, large, text, expected):
    """Quoted lines, byte-order marks, semicolons with decimal commas, nameless columns, empty rows and a sep= line."""
    monkeypatch.setattr(table_files, "LARGE", large)
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    ds = outcomes_from_table(path, threshold=0.7 if "0,85" in text else None)
    assert [ds["successes"].values[0].tolist(), ds["trials"].values[0].tolist()] == expected


def test_a_large_file_with_a_mistake_is_read_again_for_its_lines(tmp_path, monkeypatch):
    """The quick reader knows no lines, the message does."""
    monkeypatch.setattr(table_files, "LARGE", 0)
    path = tmp_path / "t.csv"
    for text, message in (
        ('task,correct\n"a\nb",1\n\nc,maybe\n', r"'maybe' \(line 5\)"),
        ("task,correct\na,1\nb\n", "line 3 must have 2 fields as the header, got 1"),
        ("task,correct\na,1\n,0\n", "line 3: task must not be blank"),
        ("task,corect\na,1\n", "did you mean 'corect'"),
    ):
        path.write_text(text)
        with pytest.raises(OutcomesError, match=message):
            outcomes_from_table(path)


@pytest.mark.parametrize(
    ("words", "threshold"),
    [
        (["1", "0", "true", "FALSE"], None),
        (["Yes", "no", "YES", "No"], None),
        (["PASS", "fail", "pass", "Fail"], None),
        (["passed", "Failed", "PASSED", "failed"], None),
        (["Correct", "incorrect", "CORRECT", "Incorrect"], None),
        (["C", "I", "c", "i"], None),
        (["C", "N", "P", "I"], 0.5),
        (["0.5", ".2", "1", "0"], 0.5),
    ],
)
def test_verdicts_in_every_spelling(words, threshold):
    """In any case and with spaces; blanks are unscored."""
    table = pd.DataFrame({"task": list("abcde"), "correct": [*(f" {word} " for word in words), "NaN"]})
    ds = outcomes_from_table(table, threshold=threshold)
    assert ds["successes"].values.tolist() == [[1, 0, 1, 0, 0]]
    assert ds["unscored"].values.tolist() == [[0, 0, 0, 0, 1]]


def test_levels_of_an_index_are_columns():
    """An index with names is part of a pandas table."""
    table = pd.DataFrame(ROWS).set_index(["agent", "task", "trial"])
    assert same(outcomes_from_table(table, **ARGUMENTS), outcomes_from_table(ROWS, **ARGUMENTS))


def test_arrays_with_names():
    """A structured NumPy array, and xarray with dims for agent, task and trial."""
    values = np.array([[[1, 0], [np.nan, 1]]])
    labels = {"agent": ["v"], "task": ["a", "b"], "trial": [0, 1]}
    array = xr.DataArray(values, coords=labels, dims=list(labels))
    ds = outcomes_from_table(array)
    assert ds["trials"].values.tolist() == [[2, 1]]
    assert ds["unscored"].values.tolist() == [[0, 1]]
    assert same(outcomes_from_table(array.to_dataset(name="correct")), ds)
    assert same(outcomes_from_table(ds[["successes", "trials", "unscored"]]), ds)
    frame = array.to_dataframe("correct").reset_index()
    structured = frame.astype({"agent": object, "task": object}).to_records(index=False)
    assert same(outcomes_from_table(np.asarray(structured)), ds)


def test_a_role_that_a_wide_table_does_not_have_is_refused():
    """A wide table has no trial column of its own where its columns are trials, nor agents where they are agents."""
    for wide, role in (("trials", "trial"), ("agents", "agent"), ("trials", "error")):
        with pytest.raises(InvalidArgument, match=f"wide='{wide}' takes no {role}="):
            outcomes_from_table(pd.DataFrame({"task": ["a"], "x": [1]}), wide=wide, **{role: "x"})


NESTED = {
    "records": lambda rows: rows,
    "polars": pl.DataFrame,
    "pyarrow": pa.Table.from_pylist,
    "pandas of dicts": pd.DataFrame,
    "pandas on pyarrow": lambda rows: pa.Table.from_pylist(rows).to_pandas(types_mapper=pd.ArrowDtype),
    "DuckDB": relation,
}
places = st.tuples(st.sampled_from(["v1", "v2"]), st.sampled_from(["a", "task 2", "Ä"]), st.sampled_from("rst"))


@given(
    st.dictionaries(places, st.sampled_from([True, False, None]), min_size=1, max_size=14),
    st.sampled_from(sorted(FRAMES.keys() - {"Dask"})),
    st.sampled_from(sorted(NESTED)),
)
@settings(max_examples=reduced(40), deadline=None)
def test_a_table_in_every_form_gives_equal_outcomes(cells, library, nesting):
    """Long, counts, wide both ways and nested, in a library at random, and as plain counting has it."""
    rows = [{"agent": a, "task": t, "trial": r, "correct": c} for (a, t, r), c in cells.items()]
    rows.append({"agent": "v1", "task": "all", "trial": "r", "correct": True})  # no column is all null
    make = FRAMES[library]
    long = outcomes_from_table(make(rows))
    frame = pd.DataFrame(rows).astype({"correct": object})
    naive = frame.assign(n=frame["correct"].notna(), u=frame["correct"].isna()).groupby(["agent", "task"])
    for name, column in (("successes", "correct"), ("trials", "n"), ("unscored", "u")):
        plain = naive[column].apply(lambda part: sum(value is True for value in part.tolist()))
        assert long[name].to_series()[lambda counts: counts > 0].to_dict() == plain[plain > 0].to_dict()
    counts = long.to_dataframe().reset_index().drop(columns="errored").to_dict("records")
    assert same(outcomes_from_table(make(counts)), long)
    # a wide table has a cell for every trial, so it is compared with the long one that has them, too
    full = long["agent"].values.tolist(), long["task"].values.tolist(), list("rst")
    known = {(row["agent"], row["task"], row["trial"]): row["correct"] for row in rows}
    every = [
        {"agent": a, "task": t, "trial": r, "correct": known.get((a, t, r))}
        for a in full[0] for t in full[1] for r in full[2]
    ]  # fmt: skip
    whole = outcomes_from_table(make(every))
    by_trial = [{"agent": a, "task": t} | {r: known.get((a, t, r)) for r in full[2]} for a in full[0] for t in full[1]]
    by_agent = [{"task": t, "trial": r} | {a: known.get((a, t, r)) for a in full[0]} for t in full[1] for r in full[2]]
    assert same(outcomes_from_table(make(by_trial), wide="trials"), whole)
    assert same(outcomes_from_table(make(by_agent), wide="agents"), whole)
    nested = [
        {"run": {"of": row["agent"], "n": row["trial"]}, "case": {"id": row["task"]}, "ok": row["correct"]}
        for row in rows
    ]
    names = {"agent": "run.of", "trial": "run.n", "task": "case.id", "correct": "ok"}
    assert same(outcomes_from_table(NESTED[nesting](nested), **names), long)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("nothing", [None, "", "no", "False", "0", 0, {}, []])
def test_an_error_column_may_say_that_there_was_none(lazy, nothing):
    """Only what names an error marks a crash; a column of no and yes does not make every trial one."""
    rows = [{"task": "a", "correct": 1, "error": nothing}, {"task": "a", "correct": 1, "error": "boom"}]
    texts = [{**row, "error": row["error"] if row["error"] is None else str(row["error"] or "")} for row in rows]
    table = pl.LazyFrame(texts) if lazy else rows
    ds = outcomes_from_table(table)
    assert (int(ds["trials"].sum()), int(ds["errored"].sum())) == (1, 1)


def test_a_lazy_table_finds_trials_that_repeat_but_for_spaces():
    """Labels are read without the spaces about them, in an engine too."""
    with pytest.raises(OutcomesError, match="2 rows are all"):
        outcomes_from_table(pl.LazyFrame({"task": ["a", "a "], "trial": [0, 0], "correct": [1, 0]}))


@pytest.mark.parametrize("role", ["agent", "task", "trial", "correct", "error", "successes", "group"])
@pytest.mark.parametrize("name", [3, ["task"], np.array([1, 2])])
def test_the_name_of_a_column_is_text(role, name):
    """Anything else is refused before the table is read."""
    with pytest.raises(InvalidArgument, match=f"{role} must be the name of a column"):
        outcomes_from_table(
            [{"task": "a", "correct": 1}], **{"trials": "n", role: name} if role == "successes" else {role: name}
        )


def test_a_threshold_cuts_scores_of_four_bytes_alike_in_every_library():
    """As a number of four bytes .7 is less than .7, and still reaches it."""
    rows = pa.table({"task": ["a", "b"], "correct": pa.array([0.7, 0.6], pa.float32())})
    frames = (rows, rows.to_pandas(), rows.to_pandas(types_mapper=pd.ArrowDtype), pl.from_arrow(rows))
    for table in (*frames, pl.from_arrow(rows).lazy(), duckdb.connect().from_arrow(rows)):
        assert outcomes_from_table(table, threshold=0.7)["successes"].sum() == 1, type(table)


def test_names_in_bytes_are_text():
    """As Parquet and HDF5 files may hold them, so that they are the tasks of other tables."""
    table = pa.table({"task": pa.array(["é".encode(), b"b"]), "correct": [1, 0]})
    assert outcomes_from_table(table)["task"].values.tolist() == ["b", "é"]


def test_decimals_of_a_database_are_verdicts():
    """1.00 as a decimal is 1, also where the frame is not lazy."""
    table = pa.table({"task": ["a", "b"], "correct": pa.array([1, 0], pa.decimal128(5, 2))})
    assert outcomes_from_table(table)["successes"].values.tolist() == [[1, 0]]


ODD: dict[str, tuple[dict[str, pa.Array], str]] = {  # columns, and what is said of them; the counts are 2 of 3
    "zeros and ones with decimals": ({"correct": pa.array(["1.00", "1", "0.0"])}, ""),
    "minus zero": ({"correct": pa.array([1.0, 1.0, -0.0])}, ""),
    "decimals": ({"correct": pa.array([1, 1, 0], pa.decimal128(5, 2))}, ""),
    "bytes": ({"correct": pa.array([b"1", b"1", b"0"])}, ""),
    "categories": ({"correct": pa.array(["Yes", "yes ", "NO"]).dictionary_encode()}, ""),
    "dates": ({"task": pa.array([18262] * 3, pa.date32())}, "2020-01-01"),
    "large trials": ({"trial": pa.array([2**64 - 1, 0, 1], pa.uint64())}, ""),
    "blank trials": ({"trial": pa.array(["0", "1", " "])}, "trial must not be blank"),
    "trials called nan": ({"trial": pa.array(["0", "1", "nan"])}, "trial must not be blank"),
    "trials that are NaN": ({"trial": pa.array([0.0, 1.0, float("nan")])}, "trial must not be blank"),
    "trials that differ in spaces": ({"trial": pa.array(["0", "0 ", "1"])}, "trial '0'"),
    "tasks that differ in spaces or accents": (
        {"task": pa.array(["e\u0301", "é\u00a0", "é "]), "trial": pa.array([0, 1, 0])},
        "task 'é', trial '0'",
    ),
    "lists of errors": ({"error": pa.array([[], None, []], pa.list_(pa.string()))}, ""),
    "an error everywhere": ({"error": pa.array(["boom"] * 3)}, "every row has an error in column 'error' ('boom')"),
    "no error at all": ({"error": pa.array([None, "", "No"])}, ""),
    "an infinite score": ({"correct": pa.array([1.0, 0.0, float("inf")])}, "Leave infinite scores blank"),
    "numbers next to errors": ({"correct": pa.array([1, 1, 2]), "error": pa.array(["x", None, None])}, "got 2 ("),
    "metrics": ({"metric": pa.array(["f1", None, "em"])}, "differ in 'metric' ('em', 'f1', blank)"),
    "crashes": ({"status": pa.array(["timeout", "ok", "error"])}, "its values ('error', 'timeout') mark them"),
}
LIBRARIES: dict[str, Callable[[Any], Any]] = {  # Dask has no types for some of these
    "records": lambda table: table.to_pylist(),
    "pandas": lambda table: table.to_pandas(),
    "pandas on pyarrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "polars lazy": lambda table: pl.from_arrow(table).lazy(),
    "pyarrow": lambda table: table,
    "DuckDB": lambda table: duckdb.connect().from_arrow(table),
}


@pytest.mark.parametrize("name", ODD)
def test_every_library_says_the_same_of_odd_cells(name):
    """The same counts, or the same refusal or doubt, whether rows are checked here or in an engine."""
    columns, expected = ODD[name]
    usual = {"task": pa.array(["a"] * 3), "correct": pa.array([1, 1, 0])}
    table = pa.table(usual | columns)
    for library, make in LIBRARIES.items():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", AgenticBayesWarning)
            try:
                ds = outcomes_from_table(make(table))
                counts = f"{int(ds['successes'].sum())} of {int(ds['trials'].sum())}"
                text = f"{counts}, {ds['task'].item()}, " + ", ".join(str(one.message) for one in said)
                assert counts == "2 of 3" or name == "an error everywhere", library
            except OutcomesError as error:
                text = str(error)
        assert expected in text, library
        assert expected or not said, library


def test_what_an_engine_raises_is_an_error_of_the_table(monkeypatch):
    """A connection that is closed, a file that is gone or a cast that fails: it names the cause, but no password."""
    connection = duckdb.connect()
    closed = connection.from_arrow(pa.Table.from_pylist(ROWS))
    connection.close()
    casts = pl.LazyFrame(ROWS).with_columns(correct=pl.col("task").cast(pl.Int64))
    gone = pl.scan_parquet("no/such/*.parquet")
    for table, cause in ((closed, "already been closed"), (casts, "conversion from `str`"), (gone, "no/such")):
        with pytest.raises(OutcomesError, match=rf"its engine could not read it .*{cause}"):
            outcomes_from_table(table)
    connect = "Cannot connect to 'postgresql://me:hunter2hunter2@db/x' with key-1234567"
    monkeypatch.setenv("WAREHOUSE_API_KEY", "key-1234567")
    with pytest.raises(OutcomesError, match="Cannot connect to") as refused, frames._engine("T", OutcomesError):
        raise OSError(connect)
    assert not any(secret in str(refused.value) for secret in ("hunter2", "key-1"))
    for table, way in ((pa.dataset.dataset(pa.table({"task": ["a"]})), "scan_pyarrow_dataset"), (duckdb, "table.sql")):
        with pytest.raises(OutcomesError, match=way):
            outcomes_from_table(table.connect() if table is duckdb else table)


def test_what_is_doubtful_is_said_of_every_library():
    """Agents and errors in columns of other names, whether the rows are here or in an engine."""
    rows = [{"task": "a", "model": m, "correct": 1, "error_message": e} for m, e in (("x", ""), ("y", "boom"))]
    for make in (pd.DataFrame, pl.DataFrame, pl.LazyFrame, relation):
        with pytest.warns(AgenticBayesWarning) as said:
            outcomes_from_table(make(rows))
        text = " ".join(str(one.message) for one in said)
        assert "'model' names agents" in text
        assert "('boom') mark them, give error='error_message'" in text
