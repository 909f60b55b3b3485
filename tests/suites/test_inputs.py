"""A file somebody names is told by its content: a saved estimate, evidence, conversations or a table."""

import gzip
import json

import pytest
from scripted import conversation, turn

from agentic_bayes.errors import EstimateError, EvidenceError, InvalidArgument, OutcomesError, UnknownName
from agentic_bayes.estimation.estimate import Estimate, estimate
from agentic_bayes.evidence.assess import assess
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.reference.judge import ReferenceJudge
from agentic_bayes.outcomes.count import count_outcomes
from agentic_bayes.outcomes.table import outcomes_from_table
from agentic_bayes.records.write import write_conversations
from agentic_bayes.suites.inputs import begins_like_conversations, open_input, read_outcomes

TABLE = "agent,task,correct\nv1,a,1\nv1,a,0\nv2,b,1\n"


@pytest.fixture
def conversations():
    """Two agents, one task, one right and one wrong answer."""
    return [
        conversation(turn(), turn("q2", "9"), agent="v1", task_id="t"),
        conversation(turn(), agent="v2", task_id="t"),
    ]


@pytest.fixture
def evidence(conversations):
    return assess(conversations, judge=ReferenceJudge())


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


# Which kind it is


@pytest.mark.parametrize("name", ["evidence.jsonl", "evidence.jsonl.gz", "evidence.txt"])
def test_evidence_is_evidence_whatever_its_name(tmp_path, evidence, name):
    """Evidence is known by its keys, packed or not."""
    evidence.write(tmp_path / name)
    assert open_input(tmp_path / name) == evidence
    assert read_outcomes(tmp_path / name).identical(count_outcomes(evidence))


def test_evidence_with_a_very_long_first_row_is_evidence(tmp_path, evidence):
    """A row longer than what is looked at first is recognised too."""
    path = tmp_path / "evidence.jsonl"
    evidence.write(path)
    first, rest = path.read_text().split("\n", 1)
    long = json.loads(first) | {"answer_reason": "x" * 200_000}
    path.write_text(json.dumps(long) + "\n" + rest)
    assert isinstance(open_input(path), Evidence)


def test_a_saved_estimate_is_an_estimate_whatever_its_name(tmp_path, table):
    """A saved estimate is known by its first bytes; its counts are its outcomes."""
    est = estimate(outcomes_from_table(table), method="conjugate")
    est.save(tmp_path / "saved.dat")
    opened = open_input(tmp_path / "saved.dat")
    assert isinstance(opened, Estimate)
    assert read_outcomes(tmp_path / "saved.dat").equals(est.outcomes)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", TABLE),
        ("t.jsonl", '{"task": "a", "correct": 1}\n'),
        ("unit.jsonl", '{"task": "a", "correct": 1, "unit": "conversation"}\n'),
    ],
)
def test_anything_else_is_a_table(tmp_path, name, content):
    """A table is left as its path, since its columns may have other names."""
    path = tmp_path / name
    path.write_text(content)
    assert open_input(path) == path
    assert open_input(str(path)) == path
    assert read_outcomes(path).identical(outcomes_from_table(path))


def test_results_of_another_format_are_conversations_too(tmp_path):
    """Whoever estimates from a file of tau-bench results is told to assess it first."""
    path = tmp_path / "run.json"
    path.write_text(json.dumps([{"task_id": 0, "reward": 1.0, "info": {}, "traj": []}]), encoding="utf-8")
    with pytest.raises(InvalidArgument, match="holds conversations: assess them first"):
        open_input(path)


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "array", "indented", "long", "context"])
def test_conversations_are_not_outcomes_yet(tmp_path, conversations, form):
    """Conversations, in any of their forms, are refused with the command that assesses them."""
    path = tmp_path / {"jsonl.gz": "c.jsonl.gz", "jsonl": "c.jsonl"}.get(form, "c.json")
    if form == "long":
        conversations = [conversation(turn("q", "x" * 3_000_000), context="y" * 100)]
    if form == "context":
        conversations = [conversation(turn("q", "x"), context="y" * 200_000)]
    write_conversations(conversations, path)
    if form == "indented":
        path.write_text(json.dumps(json.loads(path.read_text()), indent=2))
    assert begins_like_conversations(path)
    with pytest.raises(InvalidArgument, match=rf"holds conversations: assess them first .*assess {path.name} -o"):
        open_input(path)


def test_other_files_hold_no_conversations(tmp_path, evidence, table):
    """Tables, evidence and what is not text at all hold no conversations."""
    evidence.write(tmp_path / "e.jsonl")
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00{")
    (tmp_path / "array.json").write_text("[]")
    (tmp_path / "deep.json").write_text("[" * 50_000)
    for path in (table, *tmp_path.glob("*.json*")):
        assert not begins_like_conversations(path)


# What cannot be opened


def test_a_missing_file_names_its_neighbour(table):
    """A file that is not there is named with the nearest that is; a folder is no file."""
    with pytest.raises(InvalidArgument, match=r"tabel.csv: no such file .did you mean 'table.csv'"):
        open_input(table.with_name("tabel.csv"))
    with pytest.raises(EvidenceError, match="must be a file, is a folder"):
        open_input(table.parent)


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("x.nc", b"\x89HDF\r\n\x1a\n and nothing else", EstimateError, "not an estimate saved by agentic_bayes"),
        ("x.jsonl", b'{"answer_score": 1.0}\n', EvidenceError, "line 1, agent: is missing"),
        ("x.jsonl", b'{"answer_score": 1.0, "agent": "v', EvidenceError, "line 1: must be one JSON object"),
        ("x.csv", b"", OutcomesError, "the file is empty"),
        ("x.csv.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff" + b"\xff" * 30, OutcomesError, "not a complete gzip"),
        ("x.csv", "ä".encode("latin-1"), OutcomesError, "must be UTF-8, got byte 0xe4"),
    ],
)
def test_a_broken_file_says_what_is_wrong(tmp_path, name, content, error, message):
    """A file that looks like one kind and is broken is refused as that kind, by name."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(error, match=message) as caught:
        read_outcomes(path)
    assert name in str(caught.value)


def test_truncated_evidence_is_refused(tmp_path, evidence):
    """Evidence that was cut in its last row is refused with the line."""
    path = tmp_path / "e.jsonl"
    evidence.write(path)
    path.write_text(path.read_text()[:-30])
    with pytest.raises(EvidenceError, match="line 3: must be one JSON object"):
        read_outcomes(path)
    packed = tmp_path / "e.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes())[:-20])
    with pytest.raises((EvidenceError, OutcomesError), match=r"e\.jsonl\.gz"):
        read_outcomes(packed)


# Options


def test_options_reach_the_reader_that_uses_them(tmp_path, evidence, table):
    """Column names go to tables and counting rules to evidence."""
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(TABLE.replace("agent", "model"))
    assert read_outcomes(renamed, columns={"agent": "model"})["agent"].values.tolist() == ["v1", "v2"]
    evidence.write(tmp_path / "e.jsonl")
    ds = read_outcomes(tmp_path / "e.jsonl", counting={"unit": "question", "threshold": 0.9})
    assert ds.identical(count_outcomes(evidence, unit="question", threshold=0.9))
    with pytest.raises(UnknownName, match="unknown unit 'turn'"):
        read_outcomes(tmp_path / "e.jsonl", counting={"unit": "turn"})


def test_an_option_that_would_have_no_effect_is_refused(tmp_path, evidence, table):
    """Options for another kind of file are an error, not ignored."""
    evidence.write(tmp_path / "e.jsonl")
    estimate(outcomes_from_table(table), method="conjugate").save(tmp_path / "x.nc")
    with pytest.raises(InvalidArgument, match=r"table\.csv is a table, which does not use tool_threshold, unit"):
        read_outcomes(table, counting={"unit": "question", "tool_threshold": 0.5, "threshold": 0.5})
    with pytest.raises(InvalidArgument, match=r"e\.jsonl is evidence, which does not use task"):
        read_outcomes(tmp_path / "e.jsonl", columns={"task": "id"})
    with pytest.raises(InvalidArgument, match=r"x\.nc is a saved estimate, which does not use task, unit"):
        read_outcomes(tmp_path / "x.nc", columns={"task": "id"}, counting={"unit": "question"})
