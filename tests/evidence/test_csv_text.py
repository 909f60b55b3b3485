"""A spreadsheet runs nothing that is in our CSV files, and our readers get every id back as it was."""

import csv
import io

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import identifiers, reduced

import agentic_bayes as ab
from agentic_bayes.errors import EvidenceError
from agentic_bayes.evidence import table_files
from agentic_bayes.evidence.csv_text import csv_text, from_cell, to_cell
from agentic_bayes.evidence.table import read_columns
from agentic_bayes.judges import evidence_from_table
from agentic_bayes.judges.labels import read_human_labels, sample_for_labelling
from agentic_bayes.outcomes.dataset import COUNTS
from agentic_bayes.reports.reproduction import reproduce
from agentic_bayes.reports.results_folder import _outcomes_text, read_outcomes_file, write_results

odd = st.text(st.sampled_from("'=+-@\t\r\n\\u005c2\"{[ a\x00\x7f\x85,;"), max_size=10)
HOSTILE = ["=1+2", "+1", "-1", "@a", "'=a", "''-", "'", "it's", "a\tb", 'a\n"b",c', "\\u0009", '["a\x01"]', "=a\rb"]


@given(st.text(st.characters(codec="utf-8")) | odd)
@settings(max_examples=reduced(500))
def test_every_text_comes_back_and_none_is_a_formula(text):
    """Whatever it holds, also what looks as if it had been escaped."""
    cell = to_cell(text)
    assert from_cell(cell) == text
    assert not cell.startswith(("=", "+", "-", "@"))
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in cell)


@pytest.mark.parametrize("text", ["'plain", "'", "''80s", "it's", "a=b", "C:\\u", "\\u00e9", '{"a": "\\u001b[0m"}'])
def test_files_from_elsewhere_are_read_as_they_stand(tmp_path, text):
    """An apostrophe before other text, a backslash, and the escapes of JSON."""
    pd.DataFrame({"text": [text]}).to_csv(tmp_path / "t.csv", index=False)
    assert read_columns(tmp_path / "t.csv", error=EvidenceError)[1]["text"] == [text]


def test_numbers_are_never_text(tmp_path):
    """A negative number has no apostrophe; a text that looks like one does."""
    table = pd.DataFrame({"=a": ["-1", None], "b": [-1.5, float("nan")], "c": [-1, 2]})
    assert csv_text(table) == "'=a,b,c\n'-1,-1.5,-1\n,,2\n"
    (tmp_path / "t.csv").write_text(csv_text(table))
    assert read_columns(tmp_path / "t.csv", error=EvidenceError)[1]["=a"] == ["-1", ""]


@given(st.lists(identifiers.map(str.strip), min_size=1, max_size=6, unique=True))
@settings(max_examples=reduced(50))
def test_labels_find_their_attempts(tmp_path_factory, tasks):
    """Any id goes out to people and comes back."""
    evidence = evidence_from_table(pd.DataFrame({"task": tasks, "score": 0.5}, dtype=object))
    path = tmp_path_factory.mktemp("labels") / "labels.csv"
    sample_for_labelling(evidence, n=len(tasks), path=path)
    filled = read_columns(path, error=EvidenceError)[1]
    path.write_bytes(csv_text(pd.DataFrame(dict(filled)).assign(human=1)).encode())
    labels, _, blank = read_human_labels(path, agents=["agent"])
    assert {label.place[1] for label in labels} == {row.task for row in evidence.rows}
    assert blank == 0


@pytest.fixture(scope="module")
def outcomes():
    """Counts of agents, tasks and groups with hostile names."""
    table = pd.DataFrame([(agent, task, 1, 3, "=g") for agent in HOSTILE[:2] for task in HOSTILE])
    table.columns = ["agent", "task", "successes", "trials", "@kind"]
    return ab.outcomes_from_table(table, group="@kind")


def test_a_folder_of_results_is_safe_and_verifies(tmp_path, outcomes):
    """No cell is a formula, the tables hold the names as they were, and the numbers are made again."""
    folder = write_results(ab.estimate(outcomes, "conjugate", k=1), tmp_path / "results")
    assert reproduce(folder).verdict == "identical"
    for name in ("outcomes.csv", "summary.csv", "baseline.csv"):
        for row in csv.reader(io.StringIO((folder / name).read_text(), newline="")):
            assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row)
        assert {*read_columns(folder / name, error=EvidenceError)[1]["task"]} - {""} == {*HOSTILE}


@pytest.mark.parametrize("large", [1 << 21, 0], ids=["line by line", "in columns"])
def test_counts_come_back_with_their_names(tmp_path, monkeypatch, outcomes, large):
    """To `reproduce` and, however large the file, to whoever reads it as a table."""
    monkeypatch.setattr(table_files, "LARGE", large)
    path = tmp_path / "outcomes.csv"
    path.write_text(_outcomes_text(outcomes))
    for again in (read_outcomes_file(path, {}), ab.outcomes_from_table(path, group="@kind")):
        assert all(again[name].equals(outcomes[name]) for name in [*COUNTS, "@kind"])
