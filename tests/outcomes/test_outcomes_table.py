"""Tables that people already have: every spelling that is clear is read, everything else is named."""

import csv
import gzip
import io
import json
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import reduced

from agentic_bayes import numerics
from agentic_bayes.errors import AgenticBayesError, AgenticBayesWarning, InvalidArgument, MissingPackage, OutcomesError
from agentic_bayes.outcomes.dataset import check_outcomes
from agentic_bayes.outcomes.table import outcomes_from_table

ROWS = [
    {"agent": "v1", "task": "a", "trial": 0, "correct": 1},
    {"agent": "v1", "task": "a", "trial": 1, "correct": 0},
    {"agent": "v1", "task": "b", "trial": 0, "correct": None},
    {"agent": "v2", "task": "b", "trial": 0, "correct": 1},
]
EXPECTED = {("v1", "a"): (1, 2, 0), ("v1", "b"): (0, 0, 1), ("v2", "a"): (0, 0, 0), ("v2", "b"): (1, 1, 0)}


def cells(ds: xr.Dataset) -> dict[tuple[str, str], tuple[int, int, int]]:
    """successes, trials, unscored of every cell."""
    return {
        (agent, task): tuple(  # type: ignore[misc]
            int(ds[name].sel(agent=agent, task=task)) for name in ("successes", "trials", "unscored")
        )
        for agent in ds["agent"].values
        for task in ds["task"].values
    }


def text(rows: list[dict], delimiter: str = ",") -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


@pytest.fixture
def write(tmp_path):
    """Writes a file and gives its path."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") and isinstance(content, str) else data)
        return path

    return write_file


# Forms


JSONL = "".join(json.dumps(row) + "\n" for row in ROWS)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", text(ROWS)),
        ("t.txt", text(ROWS)),
        ("t.tsv", text(ROWS, "\t")),
        ("tabs.csv", text(ROWS, "\t")),
        ("semicolon.csv", text(ROWS, ";")),
        ("bom.csv", "\ufeff" + text(ROWS)),
        ("windows.csv", text(ROWS).replace("\n", "\r\n")),
        ("mac.csv", text(ROWS).replace("\n", "\r")),
        ("no_last_newline.csv", text(ROWS).rstrip("\n")),
        ("blank_lines.csv", text(ROWS).replace("\n", "\n\n")),
        ("spreadsheet.csv", text(ROWS, ";").replace("\n", "\r\n") + ";;;\r\n; ; ;\r\n   \r\n"),
        ("spaces.csv", text(ROWS).replace(",", " , ")),
        ("quoted.csv", text(ROWS).replace("v1", '"v1"')),
        ("t.csv.gz", text(ROWS)),
        ("t.tsv.gz", text(ROWS, "\t")),
        ("bom.csv.gz", "\ufeff" + text(ROWS)),
        ("t.jsonl", JSONL),
        ("t.ndjson", "\ufeff" + JSONL.replace("\n", "\n\n")),
        ("t.jsonl.gz", JSONL),
    ],
)
def test_every_form_of_file_gives_the_same_counts(write, name, content):
    """CSV, TSV, semicolons, JSONL, gzipped or not, with or without a byte-order mark: one result."""
    ds = outcomes_from_table(write(name, content))
    assert cells(ds) == EXPECTED
    assert ds.attrs == {"unit": "conversation", "indicator": "correct", "source": str(write(name, content))}
    assert check_outcomes(ds).identical(ds)


def test_data_frames_and_parquet(tmp_path):
    """A DataFrame, its Parquet file, and a path given as text all give the same counts."""
    frame = pd.DataFrame(ROWS)
    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    for table in (frame, path, str(path), frame.astype({"correct": "boolean", "trial": "Int64"})):
        assert cells(outcomes_from_table(table)) == EXPECTED
    assert outcomes_from_table(frame).attrs["source"] == "DataFrame"


def test_a_data_frame_is_left_as_it_is():
    """Reading a DataFrame does not change it."""
    frame = pd.DataFrame(ROWS)
    kept = frame.copy()
    outcomes_from_table(frame)
    pd.testing.assert_frame_equal(frame, kept)


def test_without_an_agent_column_there_is_one_agent():
    """A table of tasks and results is enough; trial and agent may be missing, other columns are ignored."""
    ds = outcomes_from_table(pd.DataFrame({"task": ["a", "a"], "correct": [1, 0], "note": ["x", None]}))
    assert cells(ds) == {("agent", "a"): (1, 2, 0)}


def test_columns_have_the_names_they_have():
    """Columns are found by the names that are given."""
    frame = pd.DataFrame({"model": ["m", "m"], "id": [1, 2], "run": [0, 0], "ok": [True, False]})
    ds = outcomes_from_table(frame, agent="model", task="id", trial="run", correct="ok")
    assert cells(ds) == {("m", "1"): (1, 1, 0), ("m", "2"): (0, 1, 0)}
    assert ds.attrs["indicator"] == "ok"


# Values


@pytest.mark.parametrize(
    "value", [1, True, 1.0, "1", "1.0", "true", "True", "TRUE", " true ", np.bool_(True), np.float32(1), Decimal(1)]
)
def test_what_is_a_success(value):
    """1, true and their spellings are successes."""
    frame = pd.DataFrame({"task": ["a"], "correct": pd.Series([value], dtype=object)})
    assert cells(outcomes_from_table(frame)) == {("agent", "a"): (1, 1, 0)}


@pytest.mark.parametrize("value", [0, False, 0.0, "0", "0.0", "false", "False", "FALSE", np.int8(0)])
def test_what_is_a_failure(value):
    """0, false and their spellings are failures."""
    frame = pd.DataFrame({"task": ["a"], "correct": pd.Series([value], dtype=object)})
    assert cells(outcomes_from_table(frame)) == {("agent", "a"): (0, 1, 0)}


@pytest.mark.parametrize("value", [None, np.nan, pd.NA, "", "  ", "nan", "NaN", "NA", "null", "None"])
def test_what_is_unscored(value):
    """A blank is unscored: not a failure, and not lost."""
    frame = pd.DataFrame({"task": ["a"], "correct": pd.Series([value], dtype=object)})
    assert cells(outcomes_from_table(frame)) == {("agent", "a"): (0, 0, 1)}


@pytest.mark.parametrize("value", [0.95, 2, -1, "ok", "P", "0,5", "1e0", "½", 1e-9, float("inf"), [1]])
def test_what_is_none_of_these(value):
    """A score, a word or another number is refused with its row; nobody guesses a threshold."""
    frame = pd.DataFrame({"task": ["a", "a"], "correct": pd.Series([1, value], dtype=object)})
    message = rf"DataFrame: correct must be 0/1, true/false, .* or blank, got {re.escape(repr(value))} \(row 2\)"
    with pytest.raises(OutcomesError, match=message):
        outcomes_from_table(frame)


def test_a_header_may_hold_delimiters_and_line_breaks(write):
    """Quoted names of columns are read as quoted cells are."""
    path = write("t.csv", '"task;\nname","a, b",correct\n"x,\ny",,1\n')
    ds = outcomes_from_table(path, task="task;\nname")
    assert ds["task"].values.tolist() == ["x,\ny"]


@pytest.mark.parametrize("value", [["a"], {"a": 1}])
def test_a_label_is_no_list_and_no_object(value):
    """Only text and numbers name a task."""
    with pytest.raises(OutcomesError, match=r"row 1: task must be text or a number, got "):
        outcomes_from_table(pd.DataFrame({"task": [value], "correct": [1]}))


def test_labels_stay_as_they_were_written(write):
    """Leading zeros, case and Unicode are kept in files; whole floats of a column with gaps are whole again."""
    ds = outcomes_from_table(write("t.csv", "task,correct\n001,1\n1,0\nÄ b,1\n1.50,1\n"))
    assert ds["task"].values.tolist() == ["001", "1", "1.50", "Ä b"]
    floats = outcomes_from_table(pd.DataFrame({"task": [1.0, 2.0, 2.5], "correct": [1, 1, 1]}))
    assert floats["task"].values.tolist() == ["1", "2", "2.5"]


@pytest.mark.parametrize("column", ["agent", "task", "trial"])
@pytest.mark.parametrize("value", [None, np.nan, pd.NA, "", "  "])
def test_a_label_must_not_be_blank(column, value):
    """A row that does not say whose it is is refused."""
    frame = pd.DataFrame(ROWS).astype({column: object})
    frame.loc[1, column] = value
    with pytest.raises(OutcomesError, match=f"DataFrame: row 2: {column} must not be blank"):
        outcomes_from_table(frame)


def test_duplicates_are_named_by_their_rows():
    """An (agent, task, trial) that occurs twice names both rows."""
    frame = pd.DataFrame([*ROWS, ROWS[0]])
    message = "rows 1 and 5 are both agent 'v1', task 'a', trial '0'"
    with pytest.raises(OutcomesError, match=message):
        outcomes_from_table(frame)
    assert cells(outcomes_from_table(frame.drop(columns="trial")))["v1", "a"] == (2, 3, 0)


def test_all_problems_are_in_one_message():
    """Everything wrong is reported together; a flood is cut and counted."""
    frame = pd.DataFrame({"task": ["a", None, "b"], "correct": pd.Series([0.5, 1, "x"], dtype=object)})
    with pytest.raises(
        OutcomesError, match=r"row 2: task must not be blank; correct .*got 0\.5 \(row 1\), 'x' \(row 3\)"
    ):
        outcomes_from_table(frame)
    flood = pd.DataFrame({"task": [None] * 100, "correct": [1] * 100})
    with pytest.raises(OutcomesError, match=r"row 20: .*; … and 80 more$"):
        outcomes_from_table(flood)


# Counts


COUNTS = "agent,task,successes,trials\nv1,a,7,10\nv1,b,0,3\nv2,a,1,1\n"


def test_counts_are_found_by_name(write):
    """Without a column of results, columns successes and trials are counts."""
    ds = outcomes_from_table(write("counts.csv", COUNTS))
    assert cells(ds)["v1", "a"] == (7, 10, 0)
    assert cells(ds)["v2", "b"] == (0, 0, 0)
    assert ds.attrs["indicator"] == "successes"


def test_counts_under_other_names():
    """Names of both columns can be given, and win over a column of results; unscored trials may be counted too."""
    frame = pd.DataFrame({"task": ["a"], "c": [7], "n": [10], "correct": [1], "unscored": [2]})
    assert cells(outcomes_from_table(frame, successes="c", trials="n")) == {("agent", "a"): (7, 10, 2)}
    with pytest.warns(AgenticBayesWarning, match=r"column 'n' is not used, so each row is one trial"):
        assert cells(outcomes_from_table(frame)) == {("agent", "a"): (1, 1, 0)}
    with pytest.raises(InvalidArgument, match="give both `successes` and `trials` column names, or neither"):
        outcomes_from_table(frame, successes="c")


@pytest.mark.parametrize("value", ["10", "10.0", "010", " 10 ", 10, 10.0, np.int32(10), np.float32(10), Decimal(10)])
def test_what_is_a_count(value):
    """Whole numbers in every spelling are counts."""
    frame = pd.DataFrame({"task": ["a"], "successes": [3], "trials": pd.Series([value], dtype=object)})
    assert cells(outcomes_from_table(frame)) == {("agent", "a"): (3, 10, 0)}


@pytest.mark.parametrize(
    "value", [-1, 2.5, np.nan, None, "", "ten", "1e3", "1_0", "+3", "٣", float("inf"), True, 2**53, "9007199254740993"]
)
def test_what_is_no_count(value):
    """Negative, broken, missing and unmanageably large numbers are refused; NaN in counts is not unscored."""
    frame = pd.DataFrame({"task": ["a"], "successes": [0], "trials": pd.Series([value], dtype=object)})
    with pytest.raises(OutcomesError, match=r"row 1: trials must be a whole number in \[0, 2\^53\), got "):
        outcomes_from_table(frame)


def test_huge_counts_are_exact(write):
    """Counts just below 2^53 are kept to the last digit."""
    ds = outcomes_from_table(write("t.csv", f"task,successes,trials\na,{2**53 - 2},{2**53 - 1}\n"))
    assert (int(ds["successes"].item()), int(ds["trials"].item())) == (2**53 - 2, 2**53 - 1)


def test_counts_must_fit_together(write):
    """More successes than trials, and a cell that occurs twice, are refused with their rows."""
    path = write("t.csv", COUNTS + "v2,b,4,3\nv1,a,7,10\n")
    message = "line 5: successes must not exceed trials, got 4 of 3; lines 2 and 6 are both agent 'v1', task 'a'"
    with pytest.raises(OutcomesError, match=message):
        outcomes_from_table(path)


# Tables that cannot be read


PACKED = gzip.compress(text(ROWS).encode(), mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", "", "the file is empty"),
        ("empty.jsonl", "\n\n", "the file is empty"),
        ("empty.csv.gz", "", "the file is empty"),
        ("header.csv", "task,correct\n", "the table has no rows"),
        ("blank.csv", "task,correct\n\n\n", "the table has no rows"),
        (
            "missing.csv",
            "task,corect\na,1\n",
            r"no column 'correct' \(did you mean 'corect'\?\)",
        ),
        ("both.csv", "x,y\na,1\n", "no column 'task' and no 'correct'. Its columns: 'x', 'y'. Name the columns"),
        ("half.csv", "task,successes\na,1\n", "no column 'correct'. Its columns: 'task', 'successes'"),
        ("twice.csv", "task,correct,task\na,1,b\n", "columns occur twice: 'task'"),
        ("short.csv", "task,correct\na,1\n\nb\n", "line 4 must have 2 fields as the header, got 1"),
        ("long.csv", "task,correct\na,1,2\n", "line 2 must have 2 fields as the header, got 3; put quotes around"),
        ("quote.csv", 'task,correct\n"a,1\n', "not a readable table"),
        ("field.csv", f"task,correct\n{'a' * 200_000},1\n", "not a readable table"),
        ("latin.csv", "task,correct\nä,1\n".encode("latin-1"), "must be UTF-8, got byte 0xe4"),
        ("utf16.csv", text(ROWS).encode("utf-16"), "must be UTF-8, got byte 0xff"),
        ("binary.csv", b"\x00\x01\x02", "not a CSV or TSV table"),
        ("object.csv", JSONL, "not a CSV or TSV table .JSONL is read from files named .jsonl"),
        ("cut.csv.gz", PACKED[:-12], "not a complete gzip file"),
        ("plain.csv.gz", text(ROWS).encode(), "not a complete gzip file"),
        ("broken.csv.gz", PACKED[:10] + b"\xff" * 40, "not a complete gzip file"),
        ("cut.jsonl", JSONL[:-20], "line 4 is not JSON"),
        ("array.jsonl", "[1, 2]\n", "line 1 must be an object, got list"),
        ("deep.jsonl", "[" * 100_000 + "\n", "line 1 is not JSON"),
        ("key.jsonl", '{"task": "a", "correct": 0, "correct": 1}\n', "line 1 is not JSON .key 'correct' occurs twice"),
        ("t.parquet", b"PAR1 and then nothing", "not a readable Parquet file"),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value[:12] else "",
)
def test_files_that_cannot_be_read(write, name, content, message):
    """A broken file is named, and so is what is wrong with it."""
    path = write(name, content)
    with pytest.raises(OutcomesError, match=message) as caught:
        outcomes_from_table(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_missing_file_and_a_folder(tmp_path):
    """A file that is not there is named with its neighbour; a folder is no table."""
    (tmp_path / "results.csv").write_text("")
    with pytest.raises(OutcomesError, match=r"result.csv: no such file .did you mean 'results.csv'"):
        outcomes_from_table(tmp_path / "result.csv")
    with pytest.raises(OutcomesError, match=r"must be a file, is a folder; .*polars.scan_csv\('.*/\*.csv'\)$"):
        outcomes_from_table(tmp_path)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([1, 2], "table must be a data frame .*, a path, a list of dicts.*, got list"),
        (None, "table must be a data frame .*, a path, a list of dicts.*, got NoneType"),
        (pd.DataFrame(), "DataFrame: there is no column 'task' .* Its columns: none"),
        (pd.DataFrame({"task": [], "correct": []}), "DataFrame: the table has no rows"),
        (pd.DataFrame([[1, 2]], columns=["task", "task"]), "DataFrame: columns occur twice: 'task'"),
    ],
)
def test_what_is_no_table(table, message):
    """What is not a table, or an empty one, is refused."""
    with pytest.raises(OutcomesError, match=message):
        outcomes_from_table(table)


def test_a_column_that_was_asked_for_must_be_there():
    """A name that was given and does not occur is an error, also where the column is optional."""
    for name in ("agent", "trial"):
        with pytest.raises(OutcomesError, match=r"no column 'modle' \(did you mean 'model'\?\)"):
            outcomes_from_table(pd.DataFrame({"task": ["a"], "model": ["m"], "correct": [1]}), **{name: "modle"})


def test_parquet_without_its_package(tmp_path, monkeypatch):
    """Without pyarrow the message says how to install it."""

    def missing(*_: object, **__: object) -> pd.DataFrame:
        raise ImportError("no engine")

    pd.DataFrame(ROWS).to_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(pd, "read_parquet", missing)
    with pytest.raises(MissingPackage, match=r"pip install 'agentic-bayes\[parquet\]'"):
        outcomes_from_table(tmp_path / "t.parquet")


# Properties

labels = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6).filter(
    lambda value: value.strip() == value and value not in ("nan", "<NA>")
)
tables = st.lists(
    st.tuples(st.sampled_from(["v1", "v2"]), labels, st.sampled_from([0, 1, None])), min_size=1, max_size=25
)


def naive(rows: list[tuple[str, str, int | None]]) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Counts by plain counting."""
    count = Counter(rows)
    agents, tasks = {row[0] for row in rows}, {row[1] for row in rows}
    return {(a, t): (count[a, t, 1], count[a, t, 1] + count[a, t, 0], count[a, t, None]) for a in agents for t in tasks}


@given(tables, st.sampled_from(["csv", "tsv", "semicolon", "jsonl", "frame"]), st.randoms(use_true_random=False))
@settings(max_examples=reduced(75), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_table_is_counted_as_it_stands(tmp_path, rows, form, shuffler):
    """Any table, in any form and order of rows, gives the plain counts, bit by bit the same."""
    shuffled = list(rows)
    shuffler.shuffle(shuffled)
    made = []
    for version in (rows, shuffled):
        records = [{"agent": a, "task": t, "correct": c} for a, t, c in version]
        if form == "frame":
            made.append(outcomes_from_table(pd.DataFrame(records)))
            continue
        suffix = "csv" if form == "semicolon" else form
        lines = "".join(json.dumps(record) + "\n" for record in records)
        content = lines if form == "jsonl" else text(records, {"tsv": "\t", "semicolon": ";"}.get(form, ","))
        path = tmp_path / f"t.{suffix}"
        path.write_bytes(content.encode())
        made.append(outcomes_from_table(path))
    assert cells(made[0]) == naive(rows)
    assert made[0].identical(made[1])


@given(st.binary(max_size=200), st.sampled_from(["t.csv", "t.tsv", "t.jsonl", "t.csv.gz", "t.jsonl.gz"]))
@settings(max_examples=reduced(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_counts_or_a_clear_error(tmp_path, content, name):
    """Whatever is in a file, it is read or refused with its name; it never ends in another error."""
    path = tmp_path / name
    for data in (content, b"task,correct\n" + content, b'{"task": "a", "correct": ' + content):
        path.write_bytes(gzip.compress(data) if len(data) % 2 and name.endswith("gz") else data)
        try:
            done = check_outcomes(outcomes_from_table(path)).attrs["source"]
        except AgenticBayesError as error:
            done = str(error)
        assert str(path) in done


# Real data


def test_tau_bench_airline(shared_data):
    """50 tasks × 4 trials of tau-bench give the published unbiased pass^1..4."""
    ds = outcomes_from_table(shared_data("taubench_airline/tidy.csv"))
    assert ds.sizes == {"agent": 1, "task": 50}
    assert ds["agent"].values.tolist() == ["gpt-4o"]
    assert ds["task"].values.tolist() == [str(i) for i in range(50)]
    n, c = ds["trials"].values[0], ds["successes"].values[0]
    values = [float(numerics.pass_pow_k(n, c, k).mean()) for k in range(1, 5)]
    assert [round(value, 4) for value in values] == [0.42, 0.2733, 0.22, 0.2]
    assert Counter(c.tolist()) == {0: 14, 1: 12, 2: 10, 3: 4, 4: 10}


@pytest.mark.parametrize("column", ["agent", "task"])
def test_half_a_character_is_no_name(tmp_path, column):
    """JSON can hold a lone surrogate, which nothing can print or store: it is refused, with its line."""
    path = tmp_path / "t.jsonl"
    row = {"agent": "a", "task": "t", "correct": 1}
    path.write_text(json.dumps(row) + "\n" + json.dumps(row | {column: "\ud800x"}) + "\n")
    with pytest.raises(OutcomesError, match=f"line 2: {column} must be Unicode text"):
        outcomes_from_table(path)
