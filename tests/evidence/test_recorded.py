"""Scores from elsewhere: recorded in conversations, or in a table."""

import contextlib
import gzip
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import conversation, turn
from strategies import identifiers, probabilities, reduced

from agentic_bayes.errors import AgenticBayesError, EvidenceError, InvalidArgument
from agentic_bayes.evidence.assess import assess
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.recorded import RecordedJudge, evidence_from_table
from agentic_bayes.evidence.score import Grader, Score, Unscored
from agentic_bayes.outcomes.count import count_outcomes

TABLE = pd.DataFrame(
    {
        "agent": ["v1", "v1", "v2"],
        "task": ["a", "a", "a"],
        "trial": [0, 1, 0],
        "score": [0.9, None, 0.2],
        "reason": ["right", None, "wrong"],
        "unscored_reason": [None, "agent error: timeout", None],
        "tone": [0.5, 1.0, None],
    }
)


# RecordedJudge


@pytest.mark.parametrize(
    ("turns", "whole", "expected"),
    [
        ([0.4], None, [0.4]),
        ([None], 0.6, [0.6]),
        ([0.4], 0.6, [0.4]),
        ([0.4, 0.9], 0.6, [0.4, 0.9]),
        ([None, None], 0.6, [0.6, 0.6]),
        ([0.4, None], 0.6, [0.4, "although other turns have one"]),
        ([None, None], None, ["no recorded score", "no recorded score"]),
        ([0.0, 1.0], None, [0.0, 1.0]),
    ],
)
def test_a_recorded_score_of_the_turn_comes_first(turns, whole, expected):
    """A turn's score counts; the conversation's counts where no turn has one; what has none is unscored."""
    record = conversation(*(turn(f"q{i}", recorded_score=score) for i, score in enumerate(turns)), recorded_score=whole)
    for position, wanted in enumerate(expected):
        grade = RecordedJudge().grade(record, position)
        if isinstance(wanted, str):
            assert isinstance(grade, Unscored)
            assert wanted in grade.reason
        else:
            assert isinstance(grade, Score)
            assert grade.value == wanted
            assert ("turn" if turns[position] is not None else "conversation") in grade.reason


def test_recorded_scores_go_through_assess():
    """The recorded judge is a grader: its scores become evidence, and a crash stays a crash."""
    judge = RecordedJudge()
    assert isinstance(judge, Grader)
    right = conversation(turn("q1", recorded_score=0.9), session="s1", task_id="t", trial=0)
    crash = conversation(turn("q1", None), session="s2", task_id="t", trial=1, error="timeout", recorded_score=0.9)
    evidence = assess([right, crash], judge=judge)
    assert [row.answer_score for row in evidence] == [0.9, None]
    assert evidence.rows[1].crashed
    assert {row.judge for row in evidence} == {"recorded-judge/1"}


# evidence_from_table: what is read


def test_a_table_becomes_evidence():
    """Scores, reasons, crashes and further metrics of a table are kept, and what is blank is unscored."""
    evidence = evidence_from_table(TABLE, metrics=["tone"], judge="people/2024")
    assert [(r.agent, r.task, r.trial, r.answer_score) for r in evidence] == [
        ("v1", "a", 0, 0.9),
        ("v1", "a", 1, None),
        ("v2", "a", 0, 0.2),
    ]
    assert [r.answer_reason for r in evidence] == ["right", None, "wrong"]
    assert [r.crashed for r in evidence] == [False, True, False]
    assert evidence.rows[0].metrics["tone"] == Score(0.5)
    assert evidence.rows[2].metrics["tone"] == Unscored("no score in the table")
    assert {(r.judge, r.qa_id, r.interaction) for r in evidence} == {("people/2024", "a", 0)}
    assert [r.session_id for r in evidence] == ["a/0", "a/1", "a/0"]
    counts = count_outcomes(evidence)
    assert counts["trials"].values.tolist() == [[1], [1]]
    assert counts["unscored"].values.tolist() == [[1], [0]]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.jsonl", "t.parquet"])
def test_every_form_of_table_gives_the_same_evidence(tmp_path, name):
    """CSV, TSV, JSONL, Parquet and a DataFrame hold the same evidence."""
    path = tmp_path / name
    match name.split(".")[1]:
        case "csv" | "tsv":
            text = TABLE.to_csv(index=False, sep="\t" if "tsv" in name else ",")
            path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
        case "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in json.loads(TABLE.to_json(orient="records"))))
        case "parquet":
            TABLE.to_parquet(path)
    expected = evidence_from_table(TABLE, metrics=["tone"])
    assert evidence_from_table(path, metrics=["tone"]) == expected
    assert evidence_from_table(str(path), metrics=["tone"]) == expected
    assert evidence_from_table(TABLE.iloc[::-1], metrics=["tone"]) == expected


@pytest.mark.parametrize("values", [[1, 0, None], [True, False, None], ["true", "FALSE", ""], ["1.0", "0", "NaN"]])
def test_verdicts_without_scores_are_read(values):
    """A `correct` column of 0/1, booleans or words stands in for scores."""
    evidence = evidence_from_table(pd.DataFrame({"task": ["a", "b", "c"], "correct": pd.Series(values, dtype=object)}))
    assert [row.answer_score for row in evidence] == [1.0, 0.0, None]
    assert {row.agent for row in evidence} == {"agent"}


def test_a_score_is_read_rather_than_a_verdict():
    """Where a table has both, `score` is read, unless `correct` was named."""
    table = pd.DataFrame({"task": ["a"], "score": [0.4], "correct": [1], "passed": [0]})
    assert evidence_from_table(table).rows[0].answer_score == 0.4
    assert evidence_from_table(table, correct="passed").rows[0].answer_score == 0.0
    assert evidence_from_table(table, score="score").rows[0].answer_score == 0.4
    with pytest.raises(InvalidArgument, match="not both"):
        evidence_from_table(table, correct="passed", score="points")


def test_turns_and_own_column_names():
    """Columns are named by keyword, and an `interaction` column makes turns of one attempt."""
    table = pd.DataFrame(
        {"model": "m", "case": "a", "run": 3, "turn": [1, 0], "points": [0.1, 0.2], "question": ["y", "x"]}
    )
    names = {"agent": "model", "task": "case", "trial": "run", "interaction": "turn", "score": "points"}
    evidence = evidence_from_table(table, **names, qa_id="question")
    assert [(r.agent, r.task, r.trial, r.interaction, r.qa_id) for r in evidence] == [
        ("m", "a", 3, 0, "x"),
        ("m", "a", 3, 1, "y"),
    ]
    assert [r.qa_id for r in evidence_from_table(table, **names)] == ["a/0", "a/1"]


@given(
    st.lists(
        st.tuples(identifiers, identifiers, st.integers(0, 9), st.none() | probabilities, st.none() | identifiers),
        min_size=1,
        max_size=6,
        unique_by=lambda row: (row[0].strip(), row[1].strip(), row[2]),
    )
)
@settings(max_examples=reduced(60), deadline=None)
def test_what_to_pandas_gives_is_read_back(rows):
    """Evidence written as a table of its scores comes back with the same scores in the same places."""
    blank = {"", "nan", "na", "none", "null", "<na>"}
    rows = [row for row in rows if not {row[0].strip().lower(), row[1].strip().lower()} & blank]
    if not rows:
        return
    frame = pd.DataFrame(rows, columns=["agent", "task", "trial", "score", "reason"])
    frame["reason"] = frame["reason"].where(frame["score"].notna(), None)
    first = evidence_from_table(frame)
    second = evidence_from_table(first.to_pandas(), score="answer_score", reason="answer_reason")
    assert second == first
    assert isinstance(second, Evidence)


# evidence_from_table: what is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": [0.9, 95, 0.2]}, r"row 2: score must be a number in \[0, 1\] or blank, got 95"),
        ({"score": ["0.9", "80%", "0_1"], "unscored_reason": None}, r"row 2: score must.*'80%'; row 3: score.*'0_1'"),
        ({"score": [0.9, float("inf"), 0.2]}, "row 2: score must be a number"),
        ({"score": [0.9, True, 0.2]}, "row 2: score must be a number"),
        ({"trial": [0, 1.5, 0]}, "row 2: trial must be a whole number ≥ 0, got 1.5"),
        ({"trial": [0, -1, 0]}, "row 2: trial must be a whole number ≥ 0, got -1"),
        ({"trial": 0}, "rows 1 and 2 are both agent 'v1', task 'a', trial 0, interaction 0"),
        ({"task": ["a", None, "a"]}, "row 2: task must not be blank"),
        ({"unscored_reason": ["x", "y", None]}, "row 1: score and unscored_reason must not both be given"),
    ],
)
def test_a_wrong_value_is_named(change, message):
    """Every wrong value is refused with its row, what is allowed and what came."""
    with pytest.raises(EvidenceError, match=message):
        evidence_from_table(TABLE.astype(object).assign(**change))


def test_all_problems_are_told_at_once():
    """Problems in several columns and rows are one report."""
    table = pd.DataFrame({"task": ["a", ""], "trial": ["x", 0], "score": [2, "y"]})
    with pytest.raises(EvidenceError, match="DataFrame: row ") as caught:
        evidence_from_table(table)
    for part in ("row 2: task", "row 1: trial", "row 1: score", "row 2: score"):
        assert part in str(caught.value)


def test_missing_columns_are_named():
    """A missing column is named together with the nearest one and how to say which it is."""
    with pytest.raises(EvidenceError, match=r"no column 'task' \(did you mean 'tasks'\?\).*task="):
        evidence_from_table(pd.DataFrame({"tasks": ["a"], "score": [1]}))
    with pytest.raises(EvidenceError, match=r"no column 'score'.*correct="):
        evidence_from_table(pd.DataFrame({"task": ["a"]}))
    with pytest.raises(EvidenceError, match="no column 'tone'"):
        evidence_from_table(pd.DataFrame({"task": ["a"], "score": [1]}), metrics=["tone"])
    with pytest.raises(EvidenceError, match="several attempts of a task need a column 'trial'"):
        evidence_from_table(pd.DataFrame({"task": ["a", "a"], "score": [1, 0]}))
    with pytest.raises(EvidenceError, match="the table has no rows"):
        evidence_from_table(pd.DataFrame({"task": [], "score": []}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"judge": " "}, "judge must be text"),
        ({"metrics": "tone"}, "metrics must be a list"),
        ({"metrics": ["task"]}, "'task' is taken"),
        ({"metrics": ["tone", "tone"]}, "'tone' is taken"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    """Arguments are checked before the table is read."""
    with pytest.raises(InvalidArgument, match=message):
        evidence_from_table("missing.csv", **arguments)


@given(st.binary(max_size=200), st.sampled_from(["t.csv", "t.tsv", "t.jsonl", "t.csv.gz", "t.parquet"]))
@settings(max_examples=reduced(80), deadline=None)
def test_any_bytes_are_read_or_refused(tmp_path_factory, content, name):
    """A file of any content gives evidence or an error of this package, never another exception."""
    path = tmp_path_factory.mktemp("fuzz") / name
    path.write_bytes(content if "gz" not in name else b"\x1f\x8b" + content)
    with contextlib.suppress(AgenticBayesError):
        assert len(evidence_from_table(path)) > 0


def test_many_rows_are_all_kept():
    """Twenty thousand rows are twenty thousand rows of evidence."""
    rows = 20_000
    table = pd.DataFrame({"task": np.arange(rows) // 4, "trial": np.arange(rows) % 4, "score": 0.5})
    assert len(evidence_from_table(table)) == rows


def test_rows_of_a_file_are_called_by_their_line_and_dotted_names_reach_inside(tmp_path):
    """A message names the line of a CSV file, and a nested column is named by its path."""
    path = tmp_path / "scores.csv"
    path.write_text("task,score\n\na,0.9\nb,85\n", encoding="utf-8")
    with pytest.raises(EvidenceError, match=r"csv: line 4: score must be a number in \[0, 1\] or blank, got '85'"):
        evidence_from_table(path)
    path.write_text("task,score\na,0.9\na,0.8\n", encoding="utf-8")
    with pytest.raises(EvidenceError, match="lines 2 and 3 are both agent 'agent', task 'a'"):
        evidence_from_table(path)
    path = tmp_path / "scores.jsonl"
    path.write_text('{"case": {"id": "a"}, "grade": {"score": 0.5}}\n{"case": {"id": "b"}, "grade": null}\n')
    rows = evidence_from_table(path, task="case.id", score="grade.score").rows
    assert [(row.task, row.answer_score) for row in rows] == [("a", 0.5), ("b", None)]
