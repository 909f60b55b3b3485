"""The options that say how logs are read, on the command line."""

import json
from pathlib import Path

import pytest

import agentic_bayes as ab
from agentic_bayes.cli.app import main

TURNS = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs a command in an empty folder with a log of 12 chats, one line of which is broken; code, output, errors."""
    monkeypatch.chdir(tmp_path)
    chats = [
        {
            "messages": TURNS,
            "metadata": {"version": f"v{n % 2}", "case": n // 4},
            "scores": {"stars": 1 + n % 5, "x": 0},
        }
        for n in range(12)
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, chats)))
    (tmp_path / "bad.jsonl").write_text("\n".join([*map(json.dumps, chats[:3]), "{bad"]))

    def command(*words):
        monkeypatch.setattr("sys.argv", ["agentic-bayes", *words])
        with pytest.raises(SystemExit, match=r"\d") as ended:
            main()
        said = capsys.readouterr()
        return ended.value.code or 0, " ".join(said.out.split()), " ".join(said.err.split())

    return command


FIELDS = ("--fields", "agent=metadata.version,task=metadata.case")


def test_fields_scorer_and_scale_reach_convert_validate_and_assess(run):
    """The same options everywhere."""
    code, out, err = run("validate", "log.jsonl", *FIELDS)
    assert (code, err) == (0, "")
    assert "2 agents (v0, v1), 3 tasks" in out
    assert "first record, of log.jsonl: agent: v0 task: 0 trial: 0 query: ? answer: ! calls: none" in out
    assert run("convert", "log.jsonl", "-o", "native.json", *FIELDS, "--scorer", "stars", "--scale", "1,5")[0] == 0
    found = list(ab.read_conversations("native.json"))
    assert [c.recorded_score for c in found[:3]] == [0, 0.25, 0.5]
    code, out, _ = run("assess", "log.jsonl", "-o", "e.jsonl", "--judge", "recorded", *FIELDS, "--scorer", "y")
    assert code == 0
    assert "12 × no recorded score: no score 'y' in this record; it has 'stars', 'x'" in out


def test_files_of_one_name_are_shown_with_their_folders(run):
    """v1/log.jsonl and v2/log.jsonl are two agents, and two lines that one can tell apart."""
    for folder in ("v1", "v2"):
        Path(folder).mkdir()
        Path(folder, "log.jsonl").write_bytes(Path("log.jsonl").read_bytes())
    _, out, _ = run("validate", "v1/log.jsonl", "v2/log.jsonl")
    assert "v1/log.jsonl openai" in out
    assert "v2/log.jsonl openai" in out
    assert "2 agents (v1, v2)" in out


def test_a_log_without_tasks_is_doubtful_in_validate_assess_and_the_report(run):
    """Every conversation would be a task of its own with one trial."""
    said = "none of the 12 conversations names its task"
    assert f"doubtful: {said}" in run("validate", "log.jsonl")[1]
    _, out, err = run("assess", "log.jsonl", "-o", "e.jsonl", "--judge", "recorded", "--scorer", "x")
    assert said in err
    assert f"doubtful: {said}" in out
    assert run("report", "e.jsonl", "-o", "r.html")[0] == 0
    assert f"Doubtful: {said}" in Path("r.html").read_text(encoding="utf-8")


def test_skip_bad_leaves_records_out_and_counts_them(run):
    """Without it they are refused."""
    for command in (("validate",), ("assess", "-o", "e.jsonl")):
        code, _, err = run(*command, "bad.jsonl")
        assert code == 2
        assert err.endswith('To read the rest without them: on_error="skip" (--skip-bad)')
    code, out, _ = run("validate", "bad.jsonl", "--skip-bad")
    assert code == 0
    assert "left out: 1 of 4 records that could not be read" in out
    code, out, _ = run("assess", "bad.jsonl", "-o", "e.jsonl", "--judge", "recorded", "--skip-bad", "--to", "json")
    assert code == 0
    assert '"left_out": 1' in out
    code, out, err = run("assess", "bad.jsonl", "-o", "e.jsonl", "--judge", "recorded", "--skip-bad")
    assert "left out: 1 of 4 records that could not be read" in out
    assert "warning: 1 of 4 records could not be read and were left out: bad.jsonl, line 4" in err


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--fields", "task", '--fields must be like "agent=metadata.version,task=metadata.task"'),
        ("--fields", "tusk=a", "did you mean 'task'"),
        ("--scale", "10,1", "--scale must be the lowest and the highest score"),
        ("--agent", "{folder}", "agent may hold {stem}, {parent}, {grandparent}"),
    ],
)
def test_wrong_values_are_refused(run, option, value, message):
    """Each names what is allowed."""
    code, _, err = run("validate", "log.jsonl", option, value)
    assert code == 2
    assert message in err


def test_wide_tables_and_scores_are_read(run):
    """--wide and --threshold say how, and evidence has no wide form."""
    Path("wide.csv").write_text("task,r1,r2\na,0.9,0.2\nb,0.8,\n")
    code, out, err = run("estimate", "wide.csv", "--wide", "trials", "--threshold", "0.7", "--method", "frequentist")
    assert (code, err) == (0, "")
    assert "pass" in out
    code, _, err = run("estimate", "wide.csv", "--wide", "trials")
    assert code == 2
    assert "got '0.9' (line 2, column 'r1')" in err
    run("assess", "log.jsonl", "-o", "e.jsonl", "--judge", "recorded", *FIELDS, "--scorer", "x")
    code, _, err = run("estimate", "e.jsonl", "--wide", "agents")
    assert code == 2
    assert "is evidence, which does not use wide" in err


def test_references_that_logs_have_stay_unless_they_are_replaced(run):
    """Refused with the way out, then replaced."""
    chats = [{"messages": TURNS, "metadata": {"task": "a", "expected": "no"}} for _ in range(2)]
    Path("has.jsonl").write_text("\n".join(map(json.dumps, chats)))
    Path("refs.csv").write_text("task,reference\na,!\n")
    fields = ("--fields", "task=metadata.task,reference=metadata.expected", "--references", "refs.csv")
    code, _, err = run("assess", "has.jsonl", "-o", "e.jsonl", *fields)
    assert code == 2
    assert "already has a reference; replace=True (--replace) overwrites it" in err
    assert run("assess", "has.jsonl", "-o", "e.jsonl", *fields, "--replace")[0] == 0
    assert [row.answer_score for row in ab.Evidence.read("e.jsonl")] == [1, 1]
