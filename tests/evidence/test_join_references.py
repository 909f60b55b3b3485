"""Reference answers from a table or a JSON file, joined by task, or by task and turn."""

import json

import pandas as pd
import pytest

import agentic_bayes as ab


def conversation(task, *, qa_ids=("turn 1",), error=None, **turn):
    turns = [{"qa_id": qa_id, "query": "?", "assistant": "a", **turn} for qa_id in qa_ids]
    return ab.Conversation(session_id=f"s-{task}", assistant_id="v1", task_id=task, conversation=turns, error=error)


def references(joined):
    return [[turn.ground_truth_assistant for turn in one.conversation] for one in joined]


ROWS = [{"task": "1", "reference": "4 °C"}, {"task": "2", "reference": "Rome"}]


@pytest.mark.parametrize("name", ["refs.csv", "refs.tsv", "refs.json", "refs.jsonl", "tasks.json"])
def test_every_kind_of_file_gives_the_same_references(tmp_path, name):
    """CSV, TSV, JSON (rows, or task → reference) and JSONL, as the data frame does."""
    path, frame = tmp_path / name, pd.DataFrame(ROWS)
    match name:
        case "refs.csv" | "refs.tsv":
            frame.to_csv(path, sep="\t" if name.endswith("tsv") else ",", index=False)
        case "refs.jsonl":
            path.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
        case "refs.json":
            path.write_text(json.dumps(ROWS), encoding="utf-8")
        case _:
            path.write_text(json.dumps({row["task"]: row["reference"] for row in ROWS}), encoding="utf-8")
    conversations = [conversation("2"), conversation("1"), conversation("1")]
    for given in (path, str(path), frame, {"1": "4 °C", "2": "Rome"}):
        assert references(ab.join_references(conversations, given)) == [["Rome"], ["4 °C"], ["4 °C"]]


@pytest.mark.parametrize(
    ("columns", "values"),
    [
        ({"turn": [1, 2]}, ["x", "y"]),
        ({"interaction": [0, 1]}, ["x", "y"]),
        ({"qa_id": ["turn 2", "turn 1"]}, ["y", "x"]),
    ],
)
def test_a_turn_is_named_where_there_are_several(columns, values):
    """By its qa_id, its number from 1, or its position from 0, as in evidence; an object lists one per turn."""
    two = conversation("1", qa_ids=("turn 1", "turn 2"))
    frame = pd.DataFrame({"task": ["1", "1"], **columns, "reference": values})
    assert references(ab.join_references([two], frame)) == [["x", "y"]]
    assert references(ab.join_references([two], {"1": [None, "y"]})) == [[None, "y"]]
    with pytest.raises(
        ab.errors.EvidenceError,
        match=r"it has 2 interactions, .* a column turn \(from 1\) or qa_id; .*--unit interaction",
    ):
        list(ab.join_references([two], {"1": "x"}))
    with pytest.raises(ab.errors.EvidenceError, match="has no turn 3; it has 2 turns"):
        list(ab.join_references([two], {"1": ["x", "y", "z"]}))
    stopped = conversation("1", qa_ids=("turn 1",), error="crashed")
    assert references(ab.join_references([stopped], frame)) == [["x"]]  # it never came to the second turn


@pytest.mark.parametrize(
    "names", [("task_id", "ground_truth"), ("Question ID", "Expected Output"), ("caseId", "answer"), ("id", "gold")]
)
def test_usual_names_of_the_columns_are_understood(names):
    """In any spelling, as long as only one column is meant; numbers are their text."""
    frame = pd.DataFrame({names[0]: [1, 2], names[1]: [42.0, "x"], "difficulty": ["easy", "hard"]})
    assert references(ab.join_references([conversation("1"), conversation("2")], frame)) == [["42"], ["x"]]


def test_both_sides_of_what_does_not_match_are_said():
    """Tasks that nobody tried, tasks without a reference, and names that do not match at all."""
    one, two = conversation("1"), conversation("2")
    with pytest.warns(ab.errors.DoubtfulRecords, match="no conversation attempted 2 tasks: '3', '4'"):
        list(ab.join_references([one], {"1": "x", "3": "y", "4": "z"}))
    with pytest.warns(ab.errors.DoubtfulRecords, match="nothing for '2': a reference is missing"):
        assert references(ab.join_references([one, two], {"1": "x", "2": ""})) == [["x"], [None]]
    with pytest.raises(ab.errors.EvidenceError, match="\\('T-1'\\); the conversations are of '1'"):
        list(ab.join_references([one], {"T-1": "x"}))


def test_references_are_not_replaced_silently():
    """A conversation that has one is refused, or gets the other on request."""
    has = conversation("1", ground_truth_assistant="old")
    with pytest.raises(ab.errors.EvidenceError, match="already has a reference; replace=True"):
        list(ab.join_references([has], {"1": "new"}))
    assert references(ab.join_references([has], {"1": "new"}, replace=True)) == [["new"]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("task,gold_answer_text\n1,x\n", "there is no column 'reference', nor one called reference_answer, ground_tr"),
        ("reference\nx\n", "there is no column 'task'"),
        ("task,expected,answer\n1,x,y\n", "may be in 'expected' or 'answer'; call the right column 'reference'"),
        ("id,question,reference\n1,x,y\n", "the task may be in 'question' or 'id'; call the right column 'task'"),
        ("task,turn,qa_id,reference\n1,1,q,y\n", "the turn is given by 'turn' and 'qa_id'"),
        ("task,turn,reference\n1,0,y\n", "line 2: turn must be a whole number ≥ 1, got '0'"),
        ("task,reference\n,y\n", "line 2: task must not be blank"),
        ("task,reference\n1,x\n1,y\n", "line 3: another reference for task '1', 'y'; it was 'x'"),
        ("task,reference\n1,\n", "has no references"),
    ],
)
def test_bad_tables_are_refused_as_a_whole(tmp_path, content, message):
    """What is wrong is named with its row or column, before any conversation is read."""
    file = tmp_path / "refs.csv"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ab.errors.EvidenceError, match=message):
        ab.join_references(iter(()), file)


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "must be JSON"), ("5", "must be an object"), ('{"1": {"a": 2}}', "must be text or a number")],
)
def test_bad_json_is_refused(tmp_path, content, message):
    """The same for JSON."""
    file = tmp_path / "refs.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ab.errors.EvidenceError, match=message):
        ab.join_references(iter(()), file)


def test_joined_conversations_are_judged():
    """The score is that of a reference in the file."""
    (joined,) = ab.join_references([conversation("1")], {"1": "a"})
    assert [row.answer_score for row in ab.assess([joined], judge=ab.ReferenceJudge())] == [1]


def test_references_for_some_turns_only_are_doubtful():
    """A conversation that did not fail at the judged turns is unscored for the others, which the table says."""
    two = conversation("1", qa_ids=("turn 1", "turn 2"))
    evidence = ab.assess(ab.join_references([two], {"1": [None, "a"]}), judge=ab.ReferenceJudge())
    assert "doubtful: 1 conversation with references for some turns only" in " ".join(evidence.table().notes)
    assert int(ab.count_outcomes(evidence)["unscored"].sum()) == 1
