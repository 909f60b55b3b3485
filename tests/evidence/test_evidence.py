import gzip
import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import identifiers, json_objects, reduced

from agentic_bayes.errors import EvidenceError
from agentic_bayes.evidence.evidence import Evidence, EvidenceRow
from agentic_bayes.evidence.score import Score, Unscored


def row(**fields):
    """A scored row without tools, with the fields given changed."""
    values = {
        "agent": "v1",
        "task": "t1",
        "trial": 0,
        "session_id": "s1",
        "interaction": 0,
        "qa_id": "q1",
        "answer_score": 0.9,
        "answer_reason": "right",
        "judge": "judge/1",
        "tool_rubric": "tool-rubric/1",
    }
    return EvidenceRow(**values | fields)


TOOLS = {
    "selection": 1.0,
    "parameters": 0.5,
    "sequence": 1.0,
    "utilization": None,
    "tool_overall": 5 / 6,
    "tools_correct": False,
    "tool_reason": "b = 3, expected 4.",
}

probabilities = st.floats(0, 1)
any_text = st.text(max_size=12)  # lone surrogates too: a model may write half of a pair
reasons = any_text.filter(lambda value: value.strip() != "")
grades = st.builds(Score, probabilities, any_text, json_objects) | st.builds(Unscored, reasons)


@st.composite
def rows(draw):
    """One row of evidence, scored or not, with any tool verdict and metrics."""
    fields = {name: draw(identifiers) for name in ("agent", "task", "session_id", "qa_id", "judge", "tool_rubric")}
    fields |= {name: draw(st.integers(0, 9)) for name in ("trial", "interaction")}
    if draw(st.booleans()):
        fields |= {"answer_score": draw(probabilities), "answer_reason": draw(st.none() | any_text)}
    else:
        fields |= {"unscored_reason": draw(reasons)}
    fields["tool_reason"] = draw(st.none() | any_text)
    if draw(st.booleans()):
        fields |= {name: draw(probabilities) for name in ("selection", "parameters", "sequence", "tool_overall")}
        fields |= {"utilization": draw(st.none() | probabilities), "tools_correct": draw(st.booleans())}
    return EvidenceRow(**fields, metrics=draw(st.dictionaries(identifiers, grades, max_size=2)))


def place(r):
    return (r.agent, r.task, r.trial, r.interaction)


some_evidence = st.lists(rows(), min_size=1, max_size=5, unique_by=place).map(lambda found: Evidence(tuple(found)))


@given(evidence=some_evidence, packed=st.booleans())
@settings(max_examples=reduced(60), deadline=None)
def test_evidence_survives_the_file(tmp_path_factory, evidence, packed):
    """What is written is read back equal, and written again gives the same bytes."""
    folder = tmp_path_factory.mktemp("evidence")
    first, second = (folder / f"{name}.jsonl{'.gz' if packed else ''}" for name in ("a", "b"))
    evidence.write(first)
    assert Evidence.read(first) == evidence
    Evidence.read(first).write(second)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == [first.name, second.name]


@given(evidence=some_evidence, seed=st.randoms())
@settings(deadline=None)
def test_the_order_of_the_rows_does_not_matter(evidence, seed):
    """Rows are sorted by agent, task, trial and interaction."""
    shuffled = list(evidence)
    seed.shuffle(shuffled)
    assert Evidence(tuple(shuffled)) == evidence
    assert [place(r) for r in evidence] == sorted(place(r) for r in shuffled)


def test_the_file_is_strict_json_with_the_columns_in_order(tmp_path):
    """Every line is an object that any JSON reader takes, with null for what is missing."""
    Evidence((row(**TOOLS, metrics={"b": Unscored("no plan"), "a": Score(1, "ok", {"x": 1})}),)).write(tmp_path / "e")
    record = json.loads((tmp_path / "e").read_text(), parse_constant=pytest.fail)
    assert list(record)[:9] == [
        "agent", "task", "trial", "session_id", "interaction", "qa_id", "answer_score", "answer_reason", "selection",
    ]  # fmt: skip
    assert record["utilization"] is None
    assert record["metrics"] == {
        "a": {"score": 1.0, "reason": "ok", "details": {"x": 1}},
        "b": {"unscored": "no plan"},
    }


def test_details_that_json_cannot_hold_are_kept_as_it_can():
    """A grader may keep anything; NaN becomes None, tuples lists, arrays their values."""
    details = {"nan": float("nan"), 1: (1, 2), "array": np.array([1.5]), "set": {"b", "a"}, "type": int}
    kept = row(metrics={"m": Score(1, "", details)}).metrics["m"].details
    assert kept == {"nan": None, "1": [1, 2], "array": [1.5], "set": ["a", "b"], "type": "<class 'int'>"}


def test_the_same_rows_give_the_same_gzip_bytes(tmp_path):
    """Neither name nor time is in the file."""
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        Evidence((row(),)).write(tmp_path / name)
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    """All of the file or nothing."""
    path = tmp_path / "e.jsonl"
    Evidence((row(),)).write(path)
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match=r"disk full"):
        Evidence((row(agent="v2"),)).write(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["e.jsonl"]


def test_a_link_keeps_pointing_at_the_evidence_that_is_replaced(tmp_path):
    """Writing through a symbolic link replaces what it points at."""
    (tmp_path / "real.jsonl").write_text("")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    Evidence((row(),)).write(tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len(Evidence.read(tmp_path / "real.jsonl")) == 1


def line(**changes):
    record = json.loads(json.dumps({name: getattr(row(), name) for name in row().__slots__}))
    return json.dumps({key: value for key, value in (record | changes).items() if value != "LEFT OUT"})


MALFORMED = {
    "not JSON": ("{", r"line 1: must be one JSON object"),
    "a list": ("[]", r"line 1: must be a JSON object, got \[\]"),
    "NaN": (line().replace("0.9", "NaN"), r"line 1: must be one JSON object: NaN is not JSON"),
    "a key twice": (line()[:-1] + ', "agent": "v2"}', r"key 'agent' occurs twice"),
    "unknown key": (line(anser_score=1), r"line 1, anser_score: unknown key: did you mean 'answer_score'\?"),
    "missing key": (line(judge="LEFT OUT"), r"line 1, judge: is missing"),
    "score of 95": (line(answer_score=95), r"line 1, answer_score: must be a number in \[0, 1\], or null, got 95"),
    "score true": (line(answer_score=True), r"answer_score: must be a number in \[0, 1\], or null, got True"),
    "score in quotes": (line(answer_score="0.9"), r"answer_score: must be a number in \[0, 1\], or null, got '0\.9'"),
    "trial -1": (line(trial=-1), r"trial: must be a whole number ≥ 0, got -1"),
    "trial 1.5": (line(trial=1.5), r"trial: must be a whole number ≥ 0, got 1\.5"),
    "blank agent": (line(agent=" "), r"agent: must be text that is not blank, got ' '"),
    "no score and no reason": (line(answer_score=None), r"answer_score: must be given if and only if"),
    "score and reason": (line(unscored_reason="429"), r"answer_score: must be given if and only if"),
    "half a tool verdict": (line(selection=1.0), r"selection: must be given if and only if tool_overall is"),
    "utilization alone": (line(utilization=1.0), r"utilization: must be null if tool_overall is"),
    "a word for a boolean": (line(tools_correct="yes"), r"tools_correct: must be true or false, or null, got 'yes'"),
    "metrics a list": (line(metrics=[]), r"metrics: must be an object"),
    "a bare metric": (line(metrics={"m": 0.5}), r"metrics\.m: must be .* got 0\.5"),
    "a metric of 2": (line(metrics={"m": {"score": 2, "reason": "", "details": {}}}), r"metrics\.m: must be"),
    "a metric unscored without reason": (line(metrics={"m": {"unscored": ""}}), r"metrics\.m: must be"),
    "torn": (line() + "\n" + line(trial=1)[:50], r"line 2: must be one JSON object"),
    "nested": ('{"agent":' * 50_000, r"line 1: must be one JSON object"),
    "twice": (line() + "\n\n" + line(session_id="s2"), r"line 3: agent 'v1', task 't1', trial 0.* repeats line 1"),
    "empty": ("", r"must have one JSON object per interaction, is empty"),
    "blank": ("\n \n", r"must have one JSON object per interaction, is empty"),
}


@pytest.mark.parametrize(("content", "message"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_file_names_line_and_field(tmp_path, content, message):
    """What is wrong, what is allowed and what came, with the place."""
    path = tmp_path / "e.jsonl"
    path.write_text(content)
    with pytest.raises(EvidenceError, match=message) as caught:
        Evidence.read(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_names_the_nearest(tmp_path):
    """A slip in a file name is told as one."""
    Evidence((row(),)).write(tmp_path / "evidence.jsonl")
    with pytest.raises(EvidenceError, match=r"no such file \(did you mean 'evidence\.jsonl'\?\)"):
        Evidence.read(tmp_path / "evidnce.jsonl")
    with pytest.raises(EvidenceError, match=r"must be a file, is a folder"):
        Evidence.read(tmp_path)


def test_all_problems_are_reported_at_once(tmp_path):
    """One report, not one problem at a time; very many are counted."""
    path = tmp_path / "e.jsonl"
    path.write_text("\n".join(line(trial=-1, answer_score=2) for _ in range(40)))
    with pytest.raises(EvidenceError, match=r"80 problems in the evidence") as caught:
        Evidence.read(path)
    assert "line 25, answer_score" in str(caught.value)
    assert "… and 30 more" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ((line() + "\n").encode() + b"\xff\xfe", r"line \d: must be UTF-8 text"),
        (line().encode("utf-16"), r"line 1: must be UTF-8 text"),
        (gzip.compress((line() + "\n").encode(), mtime=0)[:-9], r"cannot be read"),
        (b"\x1f\x8bnot gzip", r"cannot be read"),
    ],
    ids=["bad bytes", "UTF-16", "torn gzip", "bad gzip"],
)
def test_a_file_that_cannot_be_decoded_is_an_error(tmp_path, content, message):
    """Wrong encodings and torn archives are told, not guessed."""
    path = tmp_path / "e.jsonl"
    path.write_bytes(content)
    with pytest.raises(EvidenceError, match=message):
        Evidence.read(path)


def test_a_byte_order_mark_and_a_plain_name_for_gzip_are_fine(tmp_path):
    """Gzip is told by its first bytes."""
    path = tmp_path / "e.jsonl"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + line().encode()))
    assert Evidence.read(path) == Evidence((row(),))


@given(st.binary(max_size=200), st.integers(0, 400))
@settings(max_examples=reduced(100), deadline=None)
def test_no_file_gives_anything_but_evidence_or_its_error(tmp_path_factory, noise, where):
    """Noise within a file never raises anything else."""
    path = tmp_path_factory.mktemp("noise") / "e.jsonl"
    content = line().encode()
    path.write_bytes(content[:where] + noise + content[where:])
    try:
        Evidence.read(path)
    except EvidenceError:
        return


def test_a_row_twice_is_refused():
    """An (agent, task, trial, interaction) occurs once; both sessions are named."""
    with pytest.raises(EvidenceError, match=r"trial 0, interaction 0 occurs twice, in sessions 's1' and 's2'"):
        Evidence((row(), row(session_id="s2")))


def test_a_row_is_checked_when_it_is_made():
    """Rows made by code follow the same rules as rows in files."""
    with pytest.raises(EvidenceError, match=r"answer_score: must be a number in \[0, 1\], or null, got 95"):
        row(answer_score=95)
    with pytest.raises(EvidenceError, match=r"must be given if and only if unscored_reason is null"):
        row(answer_score=None)


def test_evidence_says_what_it_holds_in_one_line():
    """Scored and unscored are both shown."""
    four = [row(interaction=i) for i in range(3)] + [row(trial=1, answer_score=None, unscored_reason="429")]
    assert repr(Evidence(tuple(four))) == (
        "Evidence: 4 interactions (3 scored, 1 unscored) of 2 conversations, 1 agent"
    )
    assert repr(Evidence((row(),), stopped="interrupted")).endswith("1 conversation, 1 agent; stopped: interrupted")
    assert len(Evidence(tuple(four))) == 4


def test_the_table_has_the_contract_columns():
    """Missing numbers are NaN, missing text and booleans None; metrics are columns of scores."""
    crashed = {"answer_score": None, "answer_reason": None, "unscored_reason": "agent error: boom"}
    table = Evidence(
        (row(**TOOLS, metrics={"zeal": Score(0.25)}), row(interaction=1, **crashed, metrics={"zeal": Unscored("x")}))
    ).to_pandas()
    assert list(table.columns) == [
        "agent", "task", "trial", "session_id", "interaction", "qa_id", "answer_score", "answer_reason",
        "selection", "parameters", "sequence", "utilization", "tool_overall", "tools_correct", "tool_reason",
        "unscored_reason", "judge", "zeal",
    ]  # fmt: skip
    assert table["answer_score"].tolist()[0] == 0.9
    assert table["answer_score"].isna().tolist() == table["zeal"].isna().tolist() == [False, True]
    assert table["utilization"].isna().all()
    assert table.loc[0, "tools_correct"] is False
    assert table.loc[1, "tools_correct"] is None
    assert table["unscored_reason"].tolist() == [None, "agent error: boom"]
    assert table["trial"].dtype == table["interaction"].dtype == "int64"


def test_a_trial_of_any_size_is_kept(tmp_path):
    """Trials are whole numbers without a largest one, in the file and in the table."""
    evidence = Evidence((row(trial=2**70),))
    evidence.write(tmp_path / "e.jsonl")
    assert Evidence.read(tmp_path / "e.jsonl") == evidence
    assert evidence.to_pandas()["trial"].tolist() == [2**70]


def test_the_summary_counts_per_agent_with_denominators():
    """Unscored interactions are counted apart and move no mean; right answers through wrong tools are flagged."""
    found = Evidence(
        (
            row(**TOOLS),
            row(interaction=1, answer_score=0.5, **TOOLS | {"tools_correct": True}),
            row(interaction=2, answer_score=None, unscored_reason="agent error: boom", tool_reason="agent error: boom"),
            row(trial=1, answer_score=None, unscored_reason="RateLimited: 429"),
            row(agent="v2", answer_score=None, unscored_reason="RateLimited: 429"),
        )
    ).summary()
    v1, v2 = found.to_dict("records")
    assert v1 == {
        "agent": "v1",
        "conversations": 2,
        "interactions": 4,
        "scored": 2,
        "unscored": 2,
        "agent_errors": 1,
        "mean_answer_score": pytest.approx(0.7),
        "tools_scored": 2,
        "tools_right": 1,
        "tools_unscored": 1,
        "mean_tool_overall": pytest.approx(5 / 6),
        "right_answer_wrong_tools": 1,
    }
    assert np.isnan(v2["mean_answer_score"])
    with pytest.raises(ValueError, match=r"threshold must be a number in \[0, 1\], got 70"):
        Evidence((row(),)).summary(threshold=70)


def test_evidence_can_be_pickled():
    """Evidence crosses process borders."""
    evidence = Evidence((row(metrics={"m": Score(1)}),))
    assert pickle.loads(pickle.dumps(evidence)) == evidence


def test_evidence_as_markdown_and_json():
    """The Markdown table has a row per agent; the JSON form has the rows of the file."""
    rows = (row(agent="a"), row(agent="b", answer_score=None, answer_reason=None, unscored_reason="no reply"))
    evidence = Evidence(rows, stopped="interrupted")
    lines = evidence.to_markdown().splitlines()
    assert [line.split(" | ")[0] for line in lines[2:6]] == ["| agent", "| ---", "| a", "| b"]
    record = evidence.to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert (record["stopped"], [part["agent"] for part in record["rows"]]) == ("interrupted", ["a", "b"])
