"""The command line: what it prints, what it writes, and how it refuses."""

import contextlib
import errno
import json
import math
import os
import re
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest
import typer
from openai_server import ChatServer, Reply
from scripted import conversation, turn, verdict

import agentic_bayes as ab
from agentic_bayes.cli import app as cli
from agentic_bayes.decisions.compare import compare
from agentic_bayes.errors import StoppedEarly
from agentic_bayes.estimation.estimate import Estimate, estimate
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.outcomes.count import count_outcomes
from agentic_bayes.outcomes.table import outcomes_from_table
from agentic_bayes.records.write import write_conversations
from agentic_bayes.suites.examples import example_folder
from agentic_bayes.suites.results import RunResults

ROOT = Path(__file__).resolve().parents[2]
TABLE = "agent,task,trial,correct\nv1,a,0,1\nv1,a,1,0\nv1,b,0,0\nv1,b,1,0\nv2,a,0,1\nv2,a,1,1\nv2,b,0,1\nv2,b,1,\n"
FAST = ("--method", "conjugate")
UNPAIRED = (*FAST, "--estimand", "tasks")
CALL = {"tool_name": "add", "parameters": {"a": 5, "b": 3}, "result": 8, "step": 1}
USED = {"tools_used": [CALL], "final_answer_uses_tools": True}
EXPECTED = {"expected_tools": [{"tool_name": "add", "parameters": {"a": 5, "b": 3}, "step": 1}]}


@dataclass
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Runs a command in this process, inside an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run_command(*arguments: str | Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["agentic-bayes", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = 0 if end.code is None else end.code  # type: ignore[assignment]
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run_command


def in_a_shell(
    *arguments: str | Path, cwd: Path, program: tuple[str, ...] = ("-m", "agentic_bayes"), **environment: str
) -> Done:
    """Runs a command in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, *program, *map(str, arguments)],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture
def files(tmp_path):
    """Conversations of two versions: right, wrong, through wrong tools, crashed."""
    for agent, answers in (("v1", ["8", "9", "8"]), ("v2", ["8", "8", None])):
        made = []
        for i, answer in enumerate(answers):
            tools = {"agentic": USED if i else {"tools_used": []}, "ground_truth_agentic": EXPECTED}
            crash = {} if answer else {"error": "timeout"}
            made.append(
                conversation(
                    turn("q1", answer, **tools), session=f"{agent}-{i}", agent=agent, task_id="t", trial=i, **crash
                )
            )
        write_conversations(made, tmp_path / f"{agent}.jsonl")
    return [tmp_path / "v1.jsonl", tmp_path / "v2.jsonl"]


def listing(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def strict(text: str) -> Any:
    """JSON without NaN and infinities."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


# Help and usage


def test_help_names_every_command_and_the_exit_codes(run):
    """--help lists the commands; without arguments it is shown too."""
    done = run("--help")
    assert done.code == 0
    for name in ("demo", "validate", "assess", "estimate", "compare", "rank", "gate", "plan", "monitor", "report"):
        assert name in done.out
    said = " ".join(done.out.split())
    assert "Exit codes: 0 ok, 2 usage or bad input, 1 crash or stopped early, 10 gate failed, 11 gate" in said
    assert "Usage" in run().out + run().err


@pytest.mark.parametrize("command", cli.MODULES)
def test_every_command_explains_itself(run, command):
    """Every command has help of its own, with no default in two pairs of brackets."""
    done = run(command, "--help")
    assert done.code == 0
    assert "Usage" in done.out
    assert "[default: (" not in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("estimte",), "No such command 'estimte'"),
        (("estimate", "table.csv", "--kk", "1"), "No such option"),
        (("estimate",), "Missing argument"),
        (("estimate", "table.csv", "--ci-prob", "high"), "Invalid value"),
        (("assess", "v1.jsonl"), "Missing option"),
        (("rank", "table.csv", "--to", "xml"), "Invalid value for '--to': 'xml' is not one of 'markdown'"),
        (
            ("convert", "v1.jsonl", "-o", "x.jsonl", "--to", "html"),
            "Invalid value for '--to': 'html' is not one of 'json'",
        ),
    ],
)
def test_usage_errors(run, table, arguments, message):
    """A command or option that does not exist, or lacks its value, ends with exit code 2."""
    done = run(*arguments)
    assert done.code == 2
    assert message in done.err
    assert done.out == ""


# Refusals


REFUSED = [
    (("--k", "0"), "k must be an integer ≥ 1, got 0"),
    (("--k", "-1"), "k must be an integer ≥ 1, got -1"),
    (("--k", "2.5"), "--k must be whole numbers ≥ 1, for example \"1,3,5\", got '2.5'"),
    (("--k", '"3"'), '--k must be whole numbers ≥ 1, for example "1,3,5", got \'"3"\''),
    (("--k", "1,,3"), "--k must be whole numbers ≥ 1"),
    (("--k", ""), "--k must be whole numbers ≥ 1"),
    (("--ci-prob", "95"), "ci_prob must be a number strictly between 0 and 1, got 95.0"),
    (("--ci-prob", "0"), "ci_prob must be a number strictly between 0 and 1, got 0.0"),
    (("--ci-prob", "nan"), "ci_prob must be a number strictly between 0 and 1, got nan"),
    (("--ci-kind", "hpd"), "unknown ci_kind 'hpd'"),
    (("--method", "hierarchic"), "unknown method 'hierarchic': did you mean 'hierarchical'?"),
    (("--engine", "stan"), "unknown engine 'stan'"),
    (("--random-seed", "-1"), "random_seed must be an integer ≥ 0, got -1"),
    (("--threshold", "70"), "threshold must be a number in [0, 1], got 70.0"),
    (("--unit", "question"), "table.csv is a table, which does not use unit"),
    (("--wide", "tasks"), "unknown wide 'tasks'"),
    (("--columns", "agent"), "--columns must be like agent=model,task=id"),
    (("--columns", "agnet=model"), "--columns must be like agent=model,task=id"),
    (("--columns", "task=id"), "no column 'id'"),
    (("-o", "table.csv"), "--output must be a folder, table.csv is a file"),
    (("-o", "table.csv/out"), "--output must be in a folder that you can write to, "),
    (("--k", "1000001"), "k must be at most 1,000,000, got 1,000,001"),
    (
        ("--method", "crossed", "--inflate"),
        "--inflate is an option of the hierarchical method; crossed does not use it",
    ),
]


def assert_refused(done: Done, message: str) -> None:
    """Exit code 2, one message on stderr, no traceback, nothing on stdout."""
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert message in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_options_that_are_not_allowed(run, table, tmp_path, options, message):
    """An option outside what is allowed is one message and exit code 2, and nothing is written."""
    before = listing(tmp_path)
    output = () if "-o" in options else ("-o", "out")
    assert_refused(run("estimate", table.name, *output, *options), message)
    assert listing(tmp_path) == before
    assert not (tmp_path / "out").exists()


BROKEN_TABLES = {
    "empty": (b"", "the file is empty"),
    "header only": (b"task,correct\n", "the table has no rows"),
    "wrong encoding": ("task,correct\nä,1\n".encode("latin-1"), "must be UTF-8"),
    "duplicate": (b"agent,task,trial,correct\nv,a,0,1\nv,a,0,1\n", "lines 2 and 3 are both agent 'v'"),
    "nan in counts": (b"task,successes,trials\na,nan,3\n", "successes must be a whole number"),
    "score": (b"task,correct\na,0.95\n", "got '0.95' (line 2). For scores, give threshold=0.7 (--threshold 0.7)"),
    "folder": (None, "must be a file, is a folder"),
}


@pytest.mark.parametrize("kind", BROKEN_TABLES)
def test_tables_that_cannot_be_read(run, tmp_path, kind):
    """A broken table is one message that names the file, and nothing is written."""
    content, message = BROKEN_TABLES[kind]
    path = tmp_path / "broken.csv"
    path.mkdir() if content is None else path.write_bytes(content)
    before = listing(tmp_path)
    done = run("estimate", path.name, *FAST, "-o", "out")
    assert_refused(done, message)
    assert "broken.csv" in done.err
    assert listing(tmp_path) == before


def record(**changes: Any) -> dict[str, Any]:
    turns = [{"qa_id": "q", "query": "5 + 3?", "assistant": "8", "ground_truth_assistant": "8"}]
    return {"session_id": "s", "assistant_id": "v1", "conversation": turns} | changes


BROKEN_CONVERSATIONS: dict[str, tuple[bytes, str]] = {
    "empty file": (b"", "broken.jsonl"),
    "wrong encoding": (json.dumps(record(session_id="ä"), ensure_ascii=False).encode("latin-1"), "UTF-8"),
    "unknown key": (json.dumps(record(assistent_id="x")).encode(), "did you mean 'assistant_id'?"),
    "truncated JSON": (json.dumps(record()).encode()[:-10], "line 1"),
    "empty conversation": (json.dumps(record(conversation=[])).encode(), "conversation"),
    "duplicate trial": (
        "\n".join(json.dumps(record(session_id=s, task_id="t", trial=0)) for s in "ab").encode(),
        "trial",
    ),
    "duplicate session": ("\n".join(json.dumps(record(task_id=t)) for t in "ab").encode(), "session_id"),
    "NaN": (
        json.dumps(record(recorded_score=math.nan)).encode(),
        "recorded_score: must be a number in [0, 1], got nan",
    ),
}


@pytest.mark.parametrize("command", ["validate", "assess"])
@pytest.mark.parametrize("kind", BROKEN_CONVERSATIONS)
def test_conversations_that_cannot_be_read(run, tmp_path, command, kind):
    """Broken conversations are one report that names the file, and no evidence is written."""
    content, message = BROKEN_CONVERSATIONS[kind]
    (tmp_path / "broken.jsonl").write_bytes(content)
    before = listing(tmp_path)
    done = run(command, "broken.jsonl", *(("-o", "evidence.jsonl") if command == "assess" else ()))
    assert_refused(done, message)
    assert "broken.jsonl" in done.err
    assert listing(tmp_path) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--threshold", "70"), "threshold must be a number in [0, 1], got 70.0"),
        (("--unit", "turn"), "unknown unit 'turn'"),
        (("--indicator", "answers"), "unknown indicator 'answers': did you mean 'answer'?"),
        (("--errors", "failed"), "unknown errors 'failed'"),
        (("--agents", "both"), "unknown agents 'both'"),
        (("--columns", "task=id"), "is evidence, which does not use task"),
    ],
)
def test_options_for_evidence_that_are_not_allowed(run, files, tmp_path, options, message):
    """Rules of counting are checked, and what evidence does not use is refused."""
    assert run("assess", *files, "-o", "e.jsonl").code == 0
    assert_refused(run("estimate", "e.jsonl", *FAST, *options), message)


def test_conversations_must_be_assessed_first(run, files):
    """Estimating from conversations is refused with the command that comes before."""
    assert_refused(run("estimate", files[0].name, *FAST), "assess v1.jsonl -o evidence.jsonl")


@pytest.mark.parametrize("output", ["no/such/folder/e.jsonl", "."])
def test_evidence_is_not_judged_before_its_place_is_known(run, files, monkeypatch, output):
    """A place where nothing can be written is refused before anything is judged."""
    monkeypatch.setattr("agentic_bayes.cli.assess.judge_all", lambda *_, **__: pytest.fail("judged"))
    assert_refused(run("assess", *files, "-o", output), "--output must be a file in a folder that exists")


def test_a_pipe_is_neither_read_twice_nor_replaced(run, files, tmp_path):
    """What is not a file is refused at once as outcomes and as a place for evidence."""
    os.mkfifo(tmp_path / "pipe")
    assert_refused(run("estimate", "pipe"), "pipe: must be a file, is a pipe or a device")
    assert_refused(run("assess", *files, "-o", "pipe"), "--output must be a file in a folder that exists, got pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_a_folder_that_may_not_be_written_to_is_refused_before_any_work(run, files, table, tmp_path, monkeypatch):
    """Nothing is judged or fitted for results that have no place."""
    monkeypatch.setattr(os, "access", lambda folder, mode: Path(folder).name != "closed")
    monkeypatch.setattr("agentic_bayes.cli.assess.judge_all", None)
    monkeypatch.setattr("agentic_bayes.suites.inputs.estimate", None)
    (tmp_path / "closed").mkdir()
    for command in (("assess", *files, "-o", "closed/e.jsonl"), ("estimate", table, "-o", "closed/results/today")):
        assert_refused(run(*command), "--output must be in a folder that you can write to, ")


def test_a_full_disk_stops_the_run_with_one_message(run, table, monkeypatch):
    """Output that cannot be written is no error in the input and no crash of the program."""

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    done = run("gate", table, "--agent", "v1", "--at-least", "0.5", "--junit", "j.xml", *UNPAIRED)
    assert (done.code, done.err) == (1, "stopped: j.xml: No space left on device\n")
    monkeypatch.setattr("agentic_bayes.cli.estimate.show", full)
    done = run("estimate", table, *FAST)
    assert (done.code, done.err) == (1, "stopped: standard output or a temporary file: No space left on device\n")


def test_evidence_never_replaces_conversations(run, files):
    """Conversations are never overwritten by the evidence on them; older evidence is."""
    before = files[0].read_bytes()
    assert_refused(run("assess", *files, "-o", files[0]), "--output would overwrite the conversations in ")
    assert files[0].read_bytes() == before
    assert run("assess", *files, "-o", "e.jsonl").code == 0
    assert run("assess", *files, "-o", "e.jsonl").code == 0


def test_a_file_that_may_not_be_read_is_an_error_in_the_input(run, table, monkeypatch):
    """What the system refuses is named, without a traceback."""

    def denied(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", "table.csv")

    monkeypatch.setattr("agentic_bayes.suites.inputs.open_input", denied)
    assert_refused(run("estimate", table, *FAST), "table.csv: Permission denied")


def test_a_crash_is_not_dressed_as_bad_input(run, table, monkeypatch):
    """An error of the program itself is not hidden."""

    def broken(*_: Any, **__: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("agentic_bayes.suites.inputs.open_input", broken)
    with pytest.raises(OSError, match="no space left"):
        run("estimate", table, *FAST)


# What the commands do


def test_validate_says_what_is_there(run, files, tmp_path):
    """Conversations, turns, agents, tasks and crashes are counted; files, folders and patterns are taken."""
    message = "valid: 6 conversations, 6 interactions, 2 agents (v1, v2), 1 task, 1 with an agent error"
    for arguments in (files, [tmp_path], [tmp_path / "v*.jsonl"]):
        done = run("validate", *arguments)
        out = " ".join(done.out.split())
        assert (done.code, done.err) == (0, "")
        assert f"{message} 2 files: 2 native" in out
        assert "v2.jsonl native 3 3 1 0 0" in out


def test_validate_reports_a_whole_folder(run, files, tmp_path):
    """Beside what is readable, problems are counted by kind and listed; JSON holds the same."""
    (tmp_path / "bad.jsonl").write_text('{"session_id": "a"}\n{"session_id": "b"}\n', encoding="utf-8")
    done = run("validate", tmp_path)
    assert done.code == 2
    assert "conversation: is missing and must be given 2" in " ".join(done.out.split())
    assert "readable: 6 conversations" in done.out
    assert "2 problems in the conversations" in done.err
    found = json.loads(run("validate", tmp_path, "--to", "json").out)
    assert (found["n_problems"], found["agents"]) == (2, {"v1": 3, "v2": 3})
    assert {file["format"] for file in found["files"]} == {"native"}


TAU_BENCH = [
    {
        "task_id": 0,
        "trial": trial,
        "reward": float(trial),
        "info": {"task": {"actions": [{"name": "book", "kwargs": {"id": 7}}], "instruction": "book it", "outputs": []}},
        "traj": [
            {"role": "user", "content": "please book\x1b[31m"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "function": {"name": "book", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c", "name": "book", "content": "ok"},
            {"role": "assistant", "content": "done"},
        ],
    }
    for trial in range(2)
]


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "run7.json"
    path.write_text(json.dumps(TAU_BENCH), encoding="utf-8")
    return path


def test_convert_writes_any_format_in_ours(run, results, tmp_path):
    """The file holds the same conversations as reading the original, with expectations from elsewhere if given."""
    done = run("convert", results, "-o", "ours.jsonl", "--agent", "v7")
    assert (done.code, done.out) == (0, "2 conversations written to ours.jsonl\n")
    ours, theirs = (list(ab.read_conversations(p, agent="v7")) for p in (tmp_path / "ours.jsonl", results))
    assert ours == theirs
    (tmp_path / "expected.json").write_text('{"0": [{"name": "cancel"}]}', encoding="utf-8")
    clash = run("convert", results, "-o", "more.jsonl", "--expected-tools", "expected.json")
    assert_refused(clash, "already has expected tools")
    assert_refused(run("convert", results, "-o", "none/ours.jsonl"), "--output must be a file in a folder that exists")
    assert_refused(run("convert", results, "-o", "ours.csv"), "path must end in .json")
    assert_refused(
        run("convert", results, "-o", "ours.jsonl", "--format", "tau"), "unknown format 'tau': did you mean 'tau"
    )


def test_show_lists_conversations_and_shows_one(run, results, tmp_path):
    """Without a choice a list; with one its texts, calls and scores, and nothing that could steer the terminal."""
    listed = run("show", results)
    assert listed.code == 0
    assert "run7" in listed.out
    assert "choose one: --session, or --task and --trial" in listed.out
    one = run("show", results, "--task", "0", "--trial", "1")
    assert one.code == 0
    text = " ".join(one.out.split())
    assert "user: please book\\u001b[31m" in text
    assert "\x1b" not in one.out
    assert "calls expected, in any order: 1 1. book(id=7)" in text
    assert "recorded score: 1.0" in text
    assert "book (step 1): id is missing, expected 7." in text
    run("assess", results, "-o", "e.jsonl", "--judge", "recorded")
    scored = run("show", results, "--session", "task 0, trial 0", "--evidence", "e.jsonl")
    assert "answer: 0.000 (recorded" in " ".join(scored.out.split())
    assert_refused(run("show", results, "--task", "1"), "no conversation has task '1'")
    assert_refused(
        run("show", results, "--task", "0", "--trial", "7"), "no such conversation has trial 7; its trials: 0, 1"
    )


def test_assess_takes_recorded_scores_and_a_declared_rubric(run, results, tmp_path):
    """`--judge recorded` counts the rewards; the rubric's settings come from a file; what to fix is printed."""
    (tmp_path / "rubric.json").write_text('{"mode": "superset", "parameters": "expected_keys"}', encoding="utf-8")
    done = run(
        "assess", results, "-o", "e.jsonl", "--judge", "recorded", "--tool-rubric", "rubric.json", "--agent", "v7"
    )
    assert done.code == 0, done.err
    evidence = Evidence.read(tmp_path / "e.jsonl")
    assert [row.answer_score for row in evidence] == [0, 1]
    assert {row.agent for row in evidence} == {"v7"}
    assert "mode=superset parameters=expected_keys" in evidence.rows[0].tool_rubric
    assert "argument id 2 of 2" in " ".join(done.out.split())
    assert_refused(run("assess", results, "-o", "e.jsonl", "--tool-rubric", "none.json"), "none.json: no such file")
    assert_refused(
        run("assess", results, "-o", "e.jsonl", "--judge", "recorded", "--stats"), "--stats applies to an LLM judge"
    )


def test_assess_writes_evidence(run, files, tmp_path):
    """The evidence file is complete, and the summary names what is unscored and why."""
    done = run("assess", *files, "-o", "e.jsonl")
    assert done.code == 0
    assert "5 scored, 1 unscored" in done.out
    assert "1 × agent error: timeout" in done.out
    assert "evidence written to e.jsonl" in done.out
    evidence = Evidence.read(tmp_path / "e.jsonl")
    assert len(evidence) == 6
    assert count_outcomes(evidence)["successes"].values.tolist() == [[2], [2]]
    assert count_outcomes(evidence, indicator="joint")["successes"].values.tolist() == [[1], [1]]


def test_assess_is_the_same_for_any_concurrency_and_order(run, files, tmp_path):
    """How many are judged at a time, and in which order files are named, changes no byte."""
    assert run("assess", *files, "-o", "one.jsonl", "--concurrency", "1").code == 0
    assert run("assess", *reversed(files), "-o", "two.jsonl", "--concurrency", "7").code == 0
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    assert_refused(
        run("assess", *files, "-o", "three.jsonl", "--concurrency", "0"), "concurrency must be an integer ≥ 1"
    )


def test_a_run_that_stopped_early_keeps_what_it_has(run, files, tmp_path, monkeypatch):
    """When judging was stopped, the evidence so far is written, a warning says so, and the exit code is 1."""
    whole = ab.assess(ab.read_conversations(files), judge=ab.ReferenceJudge())

    def stopped(*_: Any, **__: Any) -> Evidence:
        warnings.warn(StoppedEarly("5 scored, 1 unscored; what was judged is kept"), stacklevel=2)
        return Evidence(whole.rows, stopped="interrupted")

    monkeypatch.setattr("agentic_bayes.cli.assess.judge_all", stopped)
    done = run("assess", *files, "-o", "e.jsonl")
    assert done.code == 1
    assert "warning: 5 scored, 1 unscored; what was judged is kept" in done.err
    assert Evidence.read(tmp_path / "e.jsonl") == whole


@pytest.mark.parametrize("method", ["conjugate", "frequentist"])
def test_estimate_from_a_table(run, table, tmp_path, method):
    """The tables show what `estimate` computes, with the denominators; the files hold it."""
    done = run("estimate", table, "--method", method, "--k", "1,2", "-o", "out/deep")
    assert (done.code, done.err) == (0, "")
    assert "v1, on these tasks (tasks)" in done.out
    assert "2 tasks, 3 scored trials, 1 unscored" in done.out
    assert "results written to out/deep" in done.out
    folder = tmp_path / "out" / "deep"
    written = ["baseline.csv", "estimate.nc", "manifest.json", "outcomes.csv", "summary.csv"]
    assert sorted(path.name for path in folder.iterdir()) == written
    expected = estimate(outcomes_from_table(table), method=method, k=(1, 2))
    written = pd.read_csv(folder / "summary.csv", keep_default_na=False, na_values=[""])
    assert written["mean"].to_numpy() == pytest.approx(
        expected.summary(columns="all", tasks=True)["mean"].to_numpy(), nan_ok=True
    )
    saved = Estimate.load(folder / "estimate.nc")
    pd.testing.assert_frame_equal(saved.summary(), expected.summary())
    assert set(pd.read_csv(folder / "baseline.csv")["estimator"]) == {"unbiased", "plugin"}


def test_seven_of_ten_on_the_command_line(run, tmp_path):
    """7 of 10 at k = 3 shows the published numbers of all three methods side by side."""
    (tmp_path / "t.csv").write_text("task,successes,trials\na,7,10\n")
    done = run("estimate", "t.csv", *FAST, "--k", "3")
    lines = [line.split() for line in done.out.splitlines() if line.strip().startswith("pass")]
    means = {line[0]: [cell for cell in line[1:] if cell[0] == "0" and cell[-1] not in ",]"] for line in lines}
    assert means == {"pass@3": ["0.945", "0.992", "0.973"], "pass^3": ["0.330", "0.292", "0.343"]}
    rows = strict(run("estimate", "t.csv", *FAST, "--k", "3", "--to", "json").out)["summary"]
    limits = {row["metric"]: [row["lower"], row["upper"]] for row in rows if row["estimand"] == "task"}
    assert limits["pass@3"] == pytest.approx([0.773, 0.9987], abs=5e-4)
    assert limits["pass^3"] == pytest.approx([0.059, 0.707], abs=5e-4)


def test_columns_of_a_table_by_name(run, tmp_path):
    """--columns maps the names of a table."""
    (tmp_path / "t.csv").write_text(TABLE.replace("agent,task,trial,correct", "model,id,run,ok"))
    done = run("estimate", "t.csv", *FAST, "--columns", "agent=model, task=id,trial=run,correct=ok", "--to", "json")
    assert {row["agent"] for row in strict(done.out)["summary"]} == {"v1", "v2"}


@pytest.mark.parametrize("method", ["conjugate", "frequentist"])
def test_json_is_strict(run, table, method):
    """--json prints one JSON document; what is undefined is null, never NaN."""
    done = run("estimate", table, "--method", method, "--to", "json", "--k", "1,9")
    document = strict(done.out)
    assert set(document) > {"summary", "baseline"}
    expected = estimate(outcomes_from_table(table), method=method, k=(1, 9)).summary(columns="all", tasks=True)
    assert [row["mean"] for row in document["summary"]] == [
        None if value != value else value for value in expected["mean"]
    ]
    assert any(row["mean"] is None for row in document["baseline"])
    assert list(document["summary"][0]) == list(expected.columns)


def test_estimate_from_evidence_and_from_a_saved_estimate(run, files, tmp_path):
    """Evidence is counted by the given rules; a saved estimate gives its counts to a new one."""
    run("assess", *files, "-o", "e.jsonl")
    counting = {"indicator": "joint", "unit": "interaction", "errors": "fail", "agents": "together", "threshold": 0.9}
    options = [part for name, value in counting.items() for part in (f"--{name}", value)]
    done = run("estimate", "e.jsonl", *FAST, "--to", "json", "-o", "out", *options)
    expected = count_outcomes(Evidence.read(tmp_path / "e.jsonl"), **counting)
    rows = [row for row in strict(done.out)["summary"] if row["estimand"] == "task"]
    assert {row["agent"] for row in rows} == {"all"}
    assert {row["task"] for row in rows} == set(expected["task"].values)
    assert {(row["unit"], row["indicator"]) for row in rows} == {("interaction", "joint")}
    again = run("estimate", "out/estimate.nc", *FAST, "--to", "json")
    assert again.out == done.out
    assert_refused(run("estimate", "out/estimate.nc", *FAST, "--unit", "question"), "is a saved estimate")


def test_compare_in_one_file(run, table):
    """One file with both agents: the sentence is that of `compare`."""
    options = (*UNPAIRED, "--metric", "pass^2", "--rope", "0.1")
    done = run("compare", table, "--agent", "v2", "--baseline", "v1", *options)
    est = estimate(outcomes_from_table(table), method="conjugate")
    result = compare(est, "v2", baseline="v1", metric="pass^2", estimand="tasks", rope=0.1)
    assert done.code == 0
    sentence, below = done.out.split("\n\n", 1)
    assert " ".join(sentence.split()) == str(result)
    assert result.table().title in below
    assert str(result.frequentist) in " ".join(below.split())
    document = strict(run("compare", table, "--agent", "v2", "--baseline", "v1", *options, "--to", "json").out)
    assert document["verdict"] == result.verdict
    assert document["mean"] == result.mean
    assert (document["metric"], document["rope"]) == ("pass^2", [-0.1, 0.1])


def test_agents_are_compared_on_their_shared_tasks(run, table):
    """By default two agents that share tasks are compared on them, and the output says so."""
    done = run("compare", table, "--agent", "v2", "--baseline", "v1")
    assert done.code == 0
    assert "2 tasks both attempted" in " ".join(done.out.split())
    again = run("compare", table, "--agent", "v2", "--baseline", "v1")
    assert again.out == done.out


def test_compare_two_files(run, tmp_path):
    """Two files: the second against the first, by the agents' own names."""
    (tmp_path / "old.csv").write_text("agent,task,correct\nx,a,0\nx,b,1\n")
    (tmp_path / "new.csv").write_text("agent,task,correct\ny,a,1\ny,b,1\nz,a,0\n")
    settings = (*UNPAIRED, "--to", "json")
    assert_refused(
        run("compare", "old.csv", "new.csv", *settings), "several agents in new.csv; choose one with --agent: y, z"
    )
    assert_refused(run("compare", "old.csv", "new.csv", "--agent", "w", *settings), "unknown agent 'w'")
    document = strict(run("compare", "old.csv", "new.csv", "--agent", "y", *settings).out)
    assert (document["agent"], document["baseline"]) == ("y", "x")
    assert document["mean"] > 0
    assert document["n_shared_tasks"] == 2


def test_compare_two_files_of_one_agent(run, tmp_path):
    """When both files hold an agent of one name, the files' names tell them apart."""
    (tmp_path / "may").mkdir()
    for name, result in (("old.csv", 0), ("new.csv", 1), ("may/new.csv", 0)):
        (tmp_path / name).write_text(f"task,correct\na,{result}\nb,1\n")
    settings = (*UNPAIRED, "--to", "json")
    document = strict(run("compare", "old.csv", "new.csv", *settings).out)
    assert (document["agent"], document["baseline"]) == ("new", "old")
    document = strict(run("compare", "may/new.csv", "new.csv", *settings).out)
    assert (document["agent"], document["baseline"]) == ("new.csv", "may/new.csv")
    assert_refused(
        run("compare", "old.csv", "old.csv", *settings), "compare needs two agents, got 'agent' of old.csv twice"
    )


def test_compare_from_a_saved_estimate(run, table):
    """A saved estimate is compared as it is, or fitted again with the settings that are given; none is ignored."""
    run("estimate", table, *FAST, "--ci-prob", "0.8", "--random-seed", "5", "-o", "out")
    both = ("compare", "out/estimate.nc", "--agent", "v2", "--baseline", "v1", *UNPAIRED[2:], "--to", "json")
    saved = strict(run(*both).out)
    assert (saved["ci_prob"], saved["method"]) == (0.8, "conjugate")
    fitted = strict(run(*both, *FAST, "--ci-prob", "0.9").out)
    assert fitted["ci_prob"] == 0.9
    assert fitted["mean"] != saved["mean"]  # another seed


def test_a_saved_estimate_keeps_the_settings_that_are_not_given(run, table):
    """Another interval or seed does not turn it into an estimate by the default method."""
    run("estimate", table, *FAST, "--ci-prob", "0.8", "--random-seed", "5", "-o", "out")
    ask = ("compare", "out/estimate.nc", "--agent", "v2", "--baseline", "v1", *UNPAIRED[2:], "--to", "json")
    saved, wider, other = (
        strict(run(*ask, *more).out) for more in ((), ("--ci-prob", "0.9"), ("--random-seed", "6", "--ci-kind", "hdi"))
    )
    assert [one["method"] for one in (saved, wider, other)] == ["conjugate"] * 3
    assert (wider["ci_prob"], wider["mean"]) == (0.9, saved["mean"])
    assert wider["lower"] < saved["lower"] < saved["upper"] < wider["upper"]
    assert (other["ci_prob"], other["ci_kind"]) == (0.8, "hdi")
    assert other["mean"] != saved["mean"]


def test_another_seed_samples_a_saved_crossed_estimate_again(run, table):
    """A method that samples is fitted again by the same method."""
    run("estimate", table, "--method", "crossed", "--ci-prob", "0.8", "-o", "out")
    ask = ("rank", "out/estimate.nc", "--to", "json")
    saved, other = (strict(run(*ask, *more).out)["agents"][0] for more in ((), ("--random-seed", "6")))
    assert (other["method"], other["ci_prob"]) == ("crossed", 0.8)
    assert other["mean"] != saved["mean"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("table.csv",), "with one file, choose the agents with --agent NEW and --baseline OLD: table.csv has v1, v2"),
        (("table.csv", "--agent", "v2"), "with one file, choose the agents with --agent NEW and --baseline OLD"),
        (("table.csv",) * 3, "compare takes one or two files, got 3"),
        (("table.csv", "--agent", "v3", "--baseline", "v1"), "unknown agent 'v3': valid: 'v1', 'v2'"),
        (("table.csv", "--agent", "v2", "--baseline", "zz"), "unknown agent 'zz': valid: 'v1', 'v2'"),
        (
            ("table.csv", "--agent", "v2", "--baseline", "v1", "--metric", "pass3"),
            'metric must be "pass@k" or "pass^k" with a number',
        ),
        (
            ("table.csv", "--agent", "v2", "--baseline", "v1", "--rope", "5"),
            "rope (a half-width, or a pair low, high) must be a number in [0, 1], got 5.0",
        ),
        (("table.csv", "--agent", "v2", "--baseline", "v1", "--rope", "wide"), "--rope must be a number or LOW,HIGH"),
        (("table.csv", "--agent", "v2", "--baseline", "v1", "--rope", "0.1,-0.1"), "a pair low ≤ high in [-1, 1]"),
        (("table.csv", "--agent", "v2", "--baseline", "v1", "--estimand", "task"), "unknown estimand 'task'"),
        (("table.csv", "--agent", "v2", "--baseline", "v1", "--tasks", "owns"), "unknown tasks 'owns'"),
        (("nowhere.csv", "--agent", "v2", "--baseline", "v1"), "nowhere.csv: no such file"),
    ],
)
def test_compare_refuses_before_it_fits(run, table, monkeypatch, arguments, message):
    """Everything that can be wrong is found before the model is fitted."""
    for module in ("agentic_bayes.estimation.estimate", "agentic_bayes.suites.inputs"):
        monkeypatch.setattr(f"{module}.estimate", lambda *_, **__: pytest.fail("fitted"))
    assert_refused(run("compare", *arguments), message)


def test_an_agent_is_not_compared_with_itself(run, table):
    """The same agent twice is refused."""
    done = run("compare", table, "--agent", "v1", "--baseline", "v1", *UNPAIRED)
    assert_refused(done, "agent and baseline must differ, got 'v1' for both")


# An LLM as judge


@pytest.fixture
def provider(monkeypatch):
    """A provider on this machine, to which the client goes by its environment."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with ChatServer(lambda request: Reply(verdict(0.9 if "8" in request.answer else 0.1))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "not a key")
        yield server


def test_a_model_judges_and_is_paid_once(run, files, tmp_path, provider):
    """The second run with the same store asks for nothing, writes the same bytes, and says what was reused."""
    judged = ("assess", *files, "--judge", "openai:gpt-4o-mini", "--store", "kept.sqlite", "--price", "1,2", "--stats")
    done = run(*judged, "-o", "one.jsonl")
    assert done.code == 0, done.err
    asked = len(provider.requests)
    assert asked > 0
    assert f"by {asked} calls (0 failed)" in " ".join(done.out.split())
    assert "cost 0.0" in done.out
    again = run(*judged, "-o", "two.jsonl")
    assert len(provider.requests) == asked
    assert "0 judgements by 0 calls" in " ".join(again.out.split())
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    assert {row.judge.split()[1] for row in Evidence.read(tmp_path / "one.jsonl")} == {"model=gpt-4o-mini"}
    listed = run("cache", "list", "kept.sqlite")
    assert listed.code == 0
    assert "tokens in" in listed.out
    assert_refused(run("cache", "clear", "kept.sqlite", "--model", "gpt-9"), "unknown model 'gpt-9'")
    assert "cleared" in run("cache", "clear", "kept.sqlite").out
    assert "0 judgements in" in run("cache", "list", "kept.sqlite").out


def test_what_a_model_took_is_in_the_json(run, files, tmp_path, provider):
    """With --json a judged run says what it was paid for, and how the judges agree; the cache says what it holds."""
    judges = ("--judge", "openai:gpt-4o-mini", "--judge", "reference", "--store", "kept.sqlite", "--price", "1,2")
    done = run("assess", *files, *judges, "-o", "e.jsonl", "--to", "json")
    assert done.code == 0, done.err
    found = strict(done.out)
    assert found["usage"]["calls"] == found["usage"]["judgements"] == len(provider.requests)
    assert found["usage"]["cost"] > 0
    assert [one["agent"] for one in found["agents"]] == ["v1", "v2"]
    assert {one["measure"] for one in found["agreement"]} >= {"alpha"}
    held = strict(run("cache", "list", "kept.sqlite", "--to", "json").out)
    assert held["judgements"] == found["usage"]["judgements"]
    assert held["models"]["gpt-4o-mini"]["calls"] == found["usage"]["calls"]
    assert strict(run("cache", "clear", "kept.sqlite", "--to", "json").out) == {"cleared": held["judgements"]}


def test_several_models_judge_and_their_agreement_is_said(run, files, tmp_path, provider):
    """The first judge gives the answer's score, the others are metrics by their names; their agreement is said."""
    names = ("openai:gpt-4o-mini", "openai:gpt-4o")
    done = run("assess", *files, "--judge", names[0], "--judge", names[1], "--price", "1,2", "-o", "e.jsonl")
    assert done.code == 0, done.err
    assert "kappa, answer and openai:gpt-4o" in " ".join(done.out.split())
    assert {model for row in Evidence.read(tmp_path / "e.jsonl") for model in row.metrics} == {names[1]}
    twice = run("assess", *files, "--judge", names[0], "--judge", names[0], "-o", "e2.jsonl")
    assert_refused(twice, "is given twice")
    prices = [part for _ in range(3) for part in ("--price", "1,2")]
    mixed = run("assess", *files, "--judge", names[0], "--judge", names[1], *prices, "-o", "e3.jsonl")
    assert_refused(mixed, "--price must be given once, or once per --judge (2), got 3")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--store", "kept.sqlite"), "--store applies to an LLM judge: choose one with --judge"),
        (("--stats",), "--stats applies to an LLM judge: choose one with --judge"),
        (("--judge", "openai:gpt-4o-mini", "--max-cost", "1"), "price"),
        (("--judge", "openai:gpt-4o-mini", "--price", "one"), '--price must be two numbers, for example "0.15,0.60"'),
        (("--judge", "openai:gpt-4o-mini", "--store", "no/such/kept.sqlite"), "--store must be a file in a folder"),
        (("--judge", "gpt-4o-mini"), "--judge must be reference, recorded or a model as provider:model, for example"),
        (("--judge", "openai:gpt-4o-mini", "--requests-per-second", "0"), "requests_per_second must be"),
    ],
)
def test_a_model_is_not_asked_before_everything_is_valid(run, files, provider, options, message):
    """Wrong options for a judge are refused without a call and without a file."""
    assert_refused(run("assess", *files, "-o", "e.jsonl", *options), message)
    assert provider.requests == []


def test_a_store_that_is_not_there(run):
    """Nothing is made by looking."""
    assert_refused(run("cache", "list", "nowhere.sqlite"), "nowhere.sqlite: no such file")


# Decisions


@pytest.fixture
def singles(tmp_path):
    """Two agents, one trial per task: 90 of 100 and 60 of 100 right."""
    rows = "".join(
        f"{agent},t{i},{int(i < right)}\n" for agent, right in (("good", 90), ("bad", 60)) for i in range(100)
    )
    path = tmp_path / "singles.csv"
    path.write_text("agent,task,correct\n" + rows)
    return path


@pytest.mark.parametrize(
    ("method", "drawn"),
    [
        ("conjugate", {"curves.png", "difference.png", "forest.png", "posterior.png", "shrinkage.png"}),
        ("frequentist", {"curves.png", "forest.png"}),
    ],
)
def test_estimate_draws_pictures_where_it_is_asked_to(run, singles, method, drawn):
    """With --pictures the folder of results also holds what the method can draw; without a folder that is refused."""
    done = run("estimate", singles, "--method", method, "-o", "drawn", "--pictures")
    assert done.code == 0
    assert {path.name for path in (singles.parent / "drawn").iterdir() if path.suffix != ".csv"} == {
        *drawn,
        *("estimate.nc", "manifest.json"),
    }
    assert all((singles.parent / "drawn" / name).read_bytes().startswith(b"\x89PNG") for name in drawn)
    assert_refused(run("estimate", singles, "--pictures"), "--pictures needs a folder: give -o DIR")


def test_compare_with_a_value(run, singles):
    """--baseline may be a number; with one agent it needs no name."""
    done = run("compare", singles, "--agent", "good", "--baseline", "0.7")
    assert done.code == 0
    said = " ".join(done.out.split())
    assert said.startswith("good is better than 0.700: P(good's pass^1 above 0.700) > 99.9 %, +18 points")
    assert "for comparison, " in done.out
    assert_refused(run("compare", singles, "--agent", "good", "--baseline", "7"), "must be a number in [0, 1], got 7.0")


def test_an_agent_may_be_called_like_a_number(run, tmp_path):
    """A name wins over a value."""
    rows = "".join(f"{agent},t{i},{i % 2}\n" for agent in ("0.5", "new") for i in range(6))
    (tmp_path / "t.csv").write_text("agent,task,correct\n" + rows)
    assert "6 tasks both attempted" in " ".join(
        run("compare", "t.csv", "--agent", "new", "--baseline", "0.5").out.split()
    )


def test_rank(run, singles):
    """Best first, with superiority below; the JSON has the same numbers."""
    done = run("rank", singles)
    assert done.code == 0
    assert re.search(r"good +>0\.999|good +1\.000", done.out)
    assert "chance that the row is" in " ".join(done.out.split())
    document = strict(run("rank", singles, "--to", "json").out)
    assert [row["agent"] for row in document["agents"]] == ["good", "bad"]
    assert document["superiority"]["good"]["good"] is None
    assert document["superiority"]["good"]["bad"] > 0.99
    (singles.parent / "one.csv").write_text("task,correct\na,1\nb,0\n")
    assert_refused(run("rank", "one.csv"), "ranking needs two agents or more")


@pytest.mark.parametrize(
    ("agent", "bar", "options", "verdict", "code"),
    [
        ("good", "0.8", (), "pass", 0),
        ("bad", "0.8", (), "fail", 10),
        ("good", "0.88", (), "inconclusive", 11),
        ("good", "0.88", ("--inconclusive-is", "pass"), "inconclusive", 0),
        ("good", "0.88", ("--inconclusive-is", "fail"), "inconclusive", 10),
        ("bad", "0.8", ("--inconclusive-is", "pass"), "fail", 10),
        ("good", "0.88", ("--confidence", "0.55"), "pass", 0),
        ("bad", "0.3", ("--baseline", "good"), "fail", 10),
        ("bad", "0.3", ("--baseline", "good", "--margin", "0.6"), "pass", 0),
        ("good", "0.1", ("--metric", "pass@3"), "pass", 0),
    ],
)
def test_gate(run, singles, agent, bar, options, verdict, code):
    """The exit code is the verdict; sentence, JSON and JUnit XML say the same."""
    done = run("gate", singles, "--agent", agent, "--at-least", bar, *options, "--junit", "gate.xml")
    assert done.code == code
    assert done.out.startswith(f"{verdict}: P(pass")
    assert f" for {agent} on new tasks; " in " ".join(done.out.split())
    document = strict(run("gate", singles, "--agent", agent, "--at-least", bar, *options, "--to", "json").out)
    assert (document["verdict"], document["exit_code"]) == (verdict, code)
    report = ElementTree.parse(singles.parent / "gate.xml").getroot()
    assert (int(report.get("failures")) > 0) == (code != 0)


def test_gate_of_a_saved_estimate_is_that_of_its_table(run, singles):
    """A saved estimate is used as it is."""
    run("estimate", singles, "-o", "out")
    both = [run("gate", file, "--agent", "good", "--at-least", "0.85").out for file in (singles, "out/estimate.nc")]
    assert both[0] == both[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--at-least", "70"), "at_least must be a number in [0, 1], got 70.0"),
        (("--at-least", "0.5"), "choose one with --agent: bad, good"),
        (("--at-least", "0.5", "--agent", "god"), "unknown agent 'god': did you mean 'good'?"),
        (("--at-least", "0.5", "--agent", "good", "--baseline", "bed"), "unknown agent 'bed': did you mean 'bad'?"),
        (("--at-least", "0.5", "--agent", "good", "--margin", "-0.1"), "margin must be a number in [0, 1], got -0.1"),
        (("--at-least", "0.5", "--agent", "good", "--confidence", "0.5"), "confidence must be in (0.5, 1)"),
        (
            ("--at-least", "0.5", "--agent", "good", "--metric", "accuracy"),
            'metric must be "pass@k" or "pass^k" with a number',
        ),
        (("--at-least", "0.5", "--agent", "good", "--inconclusive-is", "ok"), "unknown inconclusive_is 'ok'"),
        (("--at-least", "0.5", "--agent", "good", "--junit", "no/such/gate.xml"), "--junit must be a file in a folder"),
        (
            ("--at-least", "0.5", "--agent", "good", "--method", "frequentist"),
            "the frequentist method has no posterior",
        ),
    ],
)
def test_gate_refuses(run, singles, arguments, message):
    """Bad input is exit code 2, never 10 or 11, and leaves no report behind."""
    assert_refused(run("gate", singles, *arguments), message)
    assert not list(singles.parent.glob("**/gate.xml"))


@pytest.mark.parametrize("place", ["singles.csv", "./singles.csv"])
def test_a_report_never_replaces_the_data(run, singles, place):
    """The file that is read is no place for what is written."""
    before = singles.read_bytes()
    done = run("gate", singles, "--agent", "good", "--at-least", "0.5", "--junit", place)
    assert_refused(done, "--junit would overwrite the input file ")
    assert singles.read_bytes() == before


def test_gate_lets_nothing_slip(run, singles):
    """Without a bar, or with a bar that is no number, nothing is decided."""
    assert run("gate", singles, "--agent", "good").code == 2
    assert run("gate", singles, "--agent", "good", "--at-least", "high").code == 2


def test_plan(run, singles):
    """A guess needs no file; a file's data stay in the analysis; a picture is drawn."""
    done = run("plan", "--mu", "0.65", "--rho", "0.45", "--metric", "pass^3", "--budget", "100", "--trials", "1,2")
    assert done.code == 0
    assert "recommended" in done.out
    assert "50 new tasks × 2 trials, cost 100: the narrowest 95 % interval of pass^3 within 100" in " ".join(
        done.out.split()
    )
    again = run("plan", singles, "--agent", "good", "--budget", "40", "--trials", "2", "--picture", "plan.png")
    assert again.code == 0
    assert "added to the 100 tasks already tried" in " ".join(again.out.split())
    assert (singles.parent / "plan.png").read_bytes().startswith(b"\x89PNG")
    document = strict(run("plan", "--mu", "0.5", "--rho", "0.2", "--budget", "20", "--trials", "2", "--to", "json").out)
    assert document["best"]["trials"] == 2
    assert document["designs"][0]["conclusive"] is None
    nothing = run("plan", "--mu", "0.5", "--rho", "0.2", "--budget", "0")
    assert (nothing.code, nothing.out) == (
        0,
        "the budget buys no design: the narrowest 95 % interval of pass^1 within 0\n",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--mu", "0.5", "--rho", "0.5"), "give a goal (width, at_least or difference) or a budget"),
        (("--budget", "10"), "give an estimate, or a guess of both mu and rho"),
        (("--mu", "0.5", "--rho", "0.5", "--budget", "10", "--agent", "a"), "apply to FILE, and no FILE was given"),
        (("--mu", "0.5", "--rho", "0.5", "--budget", "10", "--picture", "p.exe"), "unknown kind of picture '.exe'"),
        (("--mu", "0.5", "--rho", "0.5", "--budget", "10", "--trials", "two"), "--trials must be whole numbers ≥ 1"),
        (
            ("singles.csv", "--agent", "good", "--mu", "0.5", "--budget", "10"),
            "an estimate or a guess of mu and rho, not both",
        ),
        (("singles.csv", "--agent", "goof", "--budget", "10"), "unknown agent 'goof': did you mean 'good'?"),
    ],
)
def test_plan_refuses(run, singles, arguments, message):
    """What cannot be planned is said before anything is simulated."""
    assert_refused(run("plan", *arguments), message)


def test_monitor(run, singles):
    """A rule is made and kept, then used; its options cannot change while it is in use; 11 while data are wanted."""
    options = ("--at-least", "0.7", "--batch", "25", "--trials", "1", "--looks", "4")
    made = run("monitor", "--rule", "rule.json", *options)
    assert made.code == 0
    assert "truth 0.700 (the bar): pass 0.0" in made.out
    looked = run("monitor", singles, "--rule", "rule.json", "--agent", "good")
    assert looked.code == 0
    assert looked.out.startswith(made.out.rstrip("\n"))
    assert "pass: look 4 of 4, 100 tasks" in looked.out
    assert run("monitor", singles, "--rule", "rule.json", "--agent", "bad").code in (10, 11)
    (singles.parent / "few.csv").write_text("task,correct\n" + "".join(f"t{i},1\n" for i in range(10)))
    early = run("monitor", "few.csv", "--rule", "rule.json", "--to", "json")
    assert early.code == 11
    assert strict(early.out)["look"]["verdict"] == "continue"
    assert_refused(
        run("monitor", singles, "--rule", "rule.json", "--agent", "good", "--at-least", "0.6"),
        "rule.json is a rule in use: at_least cannot be changed now",
    )
    assert_refused(run("monitor", singles, "--agent", "good"), "say when to stop: at_least")
    assert_refused(run("monitor", "--at-least", "0.6", "--rule", singles), "singles.csv: not a stopping rule")
    assert_refused(run("monitor", "--at-least", "0.6", "--rule", "."), "must be a file, is a folder")
    (singles.parent / "rule.json").write_text("{}")
    assert_refused(run("monitor", singles, "--rule", "rule.json", "--agent", "good"), "rule.json: not a stopping rule")


def test_a_narrow_interval_is_not_a_pass(run, singles):
    """A rule with a bar and a width: narrow enough ends the run, but nothing passed, so nothing may be shipped."""
    (singles.parent / "even.csv").write_text("task,correct\n" + "".join(f"t{i},{int(i % 10 < 7)}\n" for i in range(50)))
    shape = ("--batch", "25", "--trials", "1", "--looks", "4", "--width", "0.5")
    run("monitor", "--rule", "width.json", *shape)
    run("monitor", "--rule", "both.json", *shape, "--at-least", "0.7")
    for rule, code in (("width.json", 0), ("both.json", 11)):
        looked = run("monitor", "even.csv", "--rule", rule)
        assert "narrow enough: look 2 of 4, 50 tasks" in looked.out
        assert looked.code == code


def test_labels_correct_for_the_judges_errors(run, singles):
    """--judge-labels takes a table; corrected and as judged stand side by side, in estimate, gate, compare and rank."""
    rows = "".join(f"1,1,good,t{i}\n" for i in range(20))
    rows += "".join(f"{int(i < 60)},{int(10 <= i < 25)},bad,t{i}\n" for i in (*range(25), *range(60, 75)))
    (singles.parent / "labels.csv").write_text("judge,human,agent,task\n" + rows)
    labels = ("--judge-labels", "labels.csv")
    done = run("estimate", singles, "--k", "1", *labels)
    assert done.code == 0
    assert re.search(r"metric +corrected +as judged +unbiased", done.out)
    assert "judge error estimated from 60 labels: bad: sensitivity 0." in " ".join(done.out.split())
    found = strict(run("estimate", singles, "--k", "1", *labels, "--to", "json").out)
    assert found["summary"][0]["n_labels"] == 60
    for arguments in (
        ("gate", singles, "--agent", "good", "--at-least", "0.5"),
        ("compare", singles, "--agent", "good", "--baseline", "bad"),
    ):
        assert "judge error estimated from 60 labels" in " ".join(run(*arguments, *labels).out.split())
    assert "judge error estimated" in str(
        strict(run("rank", singles, *labels, "--to", "json").out)["agents"][0]["note"]
    )
    run("estimate", singles, "--k", "1", *labels, "-o", "saved")
    planned = run("plan", "saved", "--agent", "good", "--budget", "4", "--trials", "1", "--to", "json")
    assert strict(planned.out)["designs"]
    assert "the plan takes the judge's verdicts as right" in planned.err
    (singles.parent / "labels.csv").write_text("judge,human\n2,1\n")
    assert_refused(run("estimate", singles, *labels), "judge must be 0 or 1, got '2' in row 0")
    assert_refused(run("estimate", singles, "--judge-labels", "none.csv"), "none.csv: no such file")


# JSON

NO_JSON = {
    "demo": "a walk for people: each of its steps is a command that has --json",
    "report": "what it makes is a page to look at: its numbers are those of estimate and compare --json",
}


def commands(group, prefix=()):
    """Every command with its name, those of groups within."""
    for name, one in sorted(group.commands.items()):
        if hasattr(one, "commands"):
            yield from commands(one, (*prefix, name))
        else:
            yield " ".join((*prefix, name)), one


def test_every_command_has_json():
    """What a program can use, a program can read: `--json` is missing only where it would make no sense."""
    found = dict(commands(typer.main.get_command(cli.app)))
    forms = {
        name: [str(option.type_descriptor.annotation) for option in one.params if "--to" in option.opts]
        for name, one in found.items()
    }
    lacking = {name for name, types in forms.items() if not any("'json'" in one for one in types)}
    assert lacking == set(NO_JSON) & set(found)


@pytest.mark.parametrize(
    ("command", "code", "keys"),
    [
        ("validate v1.jsonl", 0, {"files"}),
        ("validate eval.yaml", 0, [{"suite", "agent", "tasks", "trials", "adaptive"}]),
        ("init fresh", 0, {"written"}),
        ("convert v1.jsonl -o ours.jsonl", 0, {"conversations", "output"}),
        ("show v1.jsonl", 0, [{"agent", "session", "task", "trial", "interactions", "error", "conversation"}]),
        ("show v1.jsonl --trial 0 --evidence e.jsonl", 0, {"agent", "conversation", "evidence"}),
        ("assess v1.jsonl -o new.jsonl", 0, {"output", "stopped", "agents", "agreement", "usage"}),
        ("estimate table.csv --method frequentist", 0, {"summary", "baseline"}),
        ("compare table.csv --agent v2 --baseline v1", 0, {"verdict", "prob_better"}),
        ("rank table.csv", 0, {"agents", "superiority"}),
        ("gate table.csv --agent v2 --at-least 0.5", 11, {"verdict", "exit_code", "flags"}),
        ("plan --mu 0.7 --rho 0.4 --budget 40 --trials 2", 0, {"best", "designs"}),
        ("monitor --width 0.3 --batch 10 --looks 2", 0, {"rule", "look"}),
        ("run --dry-run", 0, {"run_id", "continued", "tasks", "trials"}),
        ("run --new", 0, {"run_id", "exit_code", "tasks"}),
        ("list", 0, [{"run_id", "passed", "pending"}]),
    ],
)
def test_json_is_one_strict_document(run, files, table, suite, tmp_path, command, code, keys):
    """With --json nothing but one document of strict JSON is printed; what is undefined is null."""
    if "e.jsonl" in command:
        assert run("assess", *files, "-o", "e.jsonl").code == 0
    if command == "list":
        assert run("run", "--new").code == 0
    done = run(*command.split(), "--to", "json")
    assert done.code == code, done.err
    found = strict(done.out)
    if isinstance(keys, list):
        assert found
        assert all(set(one) >= keys[0] for one in found)
    else:
        assert set(found) >= keys


MARKUP = {"markdown": ("**", "| ---"), "html": ("<div", "</table>"), "latex": (r"\begin{table}", r"\end{table}")}


@pytest.mark.parametrize(
    "command",
    [
        "validate v1.jsonl",
        "show v1.jsonl",
        "assess v1.jsonl -o new.jsonl",
        "estimate table.csv --method conjugate --k 1",
        "compare table.csv --agent v2 --baseline v1",
        "rank table.csv",
        "gate table.csv --agent v2 --at-least 0.5",
        "plan --mu 0.7 --rho 0.4 --budget 40 --trials 2",
        "monitor --width 0.3 --batch 10 --looks 2",
    ],
)
def test_tables_for_a_page_or_a_paper(run, files, table, command):
    """With --to markdown, html or latex a command prints its tables in that language and nothing else."""
    languages = MARKUP if command.startswith(("show", "estimate", "gate")) else ["markdown"]
    for to in languages:
        begins, holds = MARKUP[to]
        done = run(*command.split(), "--to", to)
        assert done.code in (0, 11), done.err
        assert done.out.startswith(begins)
        assert holds in done.out
        if to == "markdown" and command.startswith(("compare", "gate", "rank", "estimate")):  # for a pull request
            assert "<details><summary>Settings</summary>" in done.out


# How it looks


SEVERAL = """
import json, sys
from agentic_bayes.cli.app import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["agentic-bayes", *arguments]
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    print(arguments[0], "ended with", code)
"""


def in_a_terminal(columns: int, *commands: list[str], cwd: Path) -> list[str]:
    """What each command prints on a terminal of so many columns, without the signs that steer it."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-c", SEVERAL, json.dumps(commands)],
        cwd=cwd,
        env=environment | {"PYTHONPATH": str(ROOT), "TERM": "xterm"},
        stdout=theirs,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(theirs)
        read = b""
        with contextlib.suppress(OSError):  # Linux ends a terminal with an error
            while piece := os.read(ours, 65536):
                read += piece
        os.close(ours)
        assert process.wait() == 0, process.stderr.read().decode()
    text = re.sub(r"\x1b\[[0-9;]*m", "", read.decode()).replace("\r\n", "\n")
    return re.split(r"^\w+ ended with 0\n", text, flags=re.MULTILINE)[:-1]


@pytest.mark.parametrize("columns", [60, pytest.param(80, marks=pytest.mark.slow)])
def test_output_fits_the_terminal(table, tmp_path, columns):
    """On a terminal nothing is wider than it; an interval that has no room goes below its value."""
    commands = (
        ["estimate", str(table), *FAST],
        ["compare", str(table), "--agent", "v2", "--baseline", "v1", *UNPAIRED],
    )
    out, compared = in_a_terminal(columns, *commands, cwd=tmp_path)
    assert max(map(len, (line.rstrip() for line in out.splitlines()))) <= columns
    assert "\x1b" not in out
    assert len(re.findall(r"\[[<>]?[01]\.\d{3}, [<>]?[01]\.\d{3}\]", out)) == out.count("[") > 10
    assert bool(re.search(r"pass@1 +0\.375\* \[", out)) == (columns == 80)
    assert 50 < max(map(len, compared.splitlines())) <= columns


@pytest.mark.parametrize(
    "name", ["v1", "support-agent-2024-05-01-with-a-very-long-name-that-nobody-would-type-twice-x"]
)
def test_output_fits_eighty_columns(run, tmp_path, name):
    """Off a terminal no line is longer than 80 columns, names are whole and no number is cut."""
    rows = "".join(f"{agent},task {i},{i % 2}\n" for agent in (f"{name}1", f"{name}2") for i in range(3))
    (tmp_path / "t.csv").write_text("agent,task,correct\n" + rows)
    outputs = [
        run("estimate", "t.csv", *FAST, "--k", "1,3,5,10,100"),
        run("compare", "t.csv", "--agent", f"{name}2", "--baseline", f"{name}1", *UNPAIRED),
        run("rank", "t.csv"),
    ]
    made = [
        conversation(turn(f"q{i}", str(8 + i)), session=f"{agent}-{i}", agent=agent)
        for agent in (f"{name}1", f"{name}2")
        for i in range(2)
    ]
    write_conversations(made, tmp_path / "c.jsonl")
    outputs += [run("assess", "c.jsonl", "-o", "e.jsonl"), run("validate", "c.jsonl")]
    for done, mentioned in zip(outputs, ("12", "2", "12", "12", "12"), strict=True):
        assert done.code == 0
        longest = max(done.out.splitlines(), key=len)
        assert len(longest) <= max(80, len(name) + 2), longest
        assert "…" not in done.out
        assert "\x1b" not in done.out
        if name == "v1":  # a folded name is spread over the lines of its column
            assert all(f"{name}{version}" in done.out for version in mentioned)


def test_a_narrow_encoding_does_not_end_the_run(table, tmp_path):
    """On a terminal that knows only ASCII, signs that it lacks are written as escapes."""
    commands = [["estimate", str(table), *FAST], ["estimate", str(table), "--k", "0"]]
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = in_a_shell(json.dumps(commands), cwd=tmp_path, program=("-c", SEVERAL), **ascii_only)
    assert done.out.isascii()
    assert re.findall(r"ended with (\d)", done.out) == ["0", "2"]
    assert done.err == "error: k must be an integer \\u2265 1, got 0\n"


def test_the_hash_seed_changes_nothing(files, table, tmp_path):
    """Output and files are the same for any PYTHONHASHSEED."""
    commands = [
        ["assess", *map(str, files), "-o", "e.jsonl"],
        ["estimate", "e.jsonl", *FAST, "--to", "json", "--indicator", "joint"],
        ["compare", str(table), "--agent", "v2", "--baseline", "v1", *UNPAIRED],
        ["estimate", str(table), *FAST, "--errors", "x", "--unit", "y", "--columns", "task=z"],
        ["estimate", str(table), *FAST, "--columns", "task=z,correct=y,agent=x"],
    ]
    seen = []
    for seed in ("1", "2"):
        done = in_a_shell(json.dumps(commands), cwd=tmp_path, program=("-c", SEVERAL), PYTHONHASHSEED=seed)
        seen.append((done, (tmp_path / "e.jsonl").read_bytes()))
    assert seen[0] == seen[1]
    assert seen[0][0].code == 0
    assert seen[0][0].out.count("ended with 2") == 2


def test_shuffled_rows_change_nothing(run, tmp_path):
    """The order of the rows of a table changes no byte of the output."""
    header, *rows = TABLE.splitlines(keepends=True)
    (tmp_path / "t.csv").write_text(TABLE)
    one = run("estimate", "t.csv", *FAST, "--to", "json")
    (tmp_path / "t.csv").write_text(header + "".join(rows[::-1]))
    assert run("estimate", "t.csv", *FAST, "--to", "json").out == one.out


def test_the_command_runs_as_a_module(table, tmp_path):
    """`python -m agentic_bayes` is the command line; a failure there is an exit code, too."""
    done = in_a_shell("estimate", "nowhere.csv", cwd=tmp_path)
    assert (done.code, done.out, done.err) == (2, "", "error: nowhere.csv: no such file\n")


@pytest.fixture
def few_tasks(tmp_path, monkeypatch):
    """Twelve tasks of the example: two agents × 12 tasks is the shape for which other tests compile PyMC's model."""
    folder = tmp_path / "support_agent"
    folder.mkdir()
    for path in example_folder("support_agent").glob("v?.jsonl"):
        lines = path.read_text("utf-8").splitlines(keepends=True)
        tasks = list(dict.fromkeys(json.loads(line)["task_id"] for line in lines))[:12]
        kept = "".join(line for line in lines if json.loads(line)["task_id"] in tasks)
        (folder / path.name).write_text(kept, "utf-8")
    monkeypatch.setattr("agentic_bayes.suites.examples.example_folder", lambda _: folder)


@pytest.mark.stack
@pytest.mark.parametrize(
    ("tasks", "interactions", "heading"),
    [
        pytest.param(31, 612, "support-v2 is better than support-v1", marks=pytest.mark.slow),
        (12, 232, "Undecided between support-v2 and support-v1"),
    ],
    ids=["whole example", "reduced form"],
)
def test_demo(run, tmp_path, request, tasks, interactions, heading):
    """The demo judges, estimates with PyMC, compares and classifies two versions, offline, and draws them."""
    if tasks == 12:
        request.getfixturevalue("few_tasks")
    done = run("demo", "-o", "out")
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    for words in (
        f"Evidence: {interactions} interactions",
        "pass^3",
        "crossed",
        "unbiased",
        "plug-in",
        "support-v2",
        "tier",
    ):
        assert words in said
    assert max(map(len, done.out.splitlines())) <= 80
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    pictures = ["curves.png", "difference.png", "forest.png", "posterior.png", "shrinkage.png", "tools.png"]
    results = [
        "baseline.csv",
        "estimate.nc",
        "evidence.jsonl",
        "manifest.json",
        "outcomes.csv",
        "report.html",
        "summary.csv",
    ]
    assert written == sorted([*results, *pictures])
    report = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert heading in " ".join(re.sub(r"<[^>]*>", "", report.partition("<h1")[2].partition("</h1>")[0]).split())
    for name in pictures:
        assert (tmp_path / "out" / name).read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / "out" / name).stat().st_size > 10_000
    assert Estimate.load(tmp_path / "out" / "estimate.nc").diagnostics.passed
    assert_refused(run("demo", "-o", tmp_path / "out" / "summary.csv"), "--output must be a folder")


def test_results_are_made_again(run, table, tmp_path):
    """`reproduce` exits with 0 where results are identical, with 1 and the number where not, with 2 without any."""
    run("estimate", table, *FAST, "--k", "1,2", "-o", "out")
    done = run("reproduce", "out")
    assert done.code == 0
    assert done.out.startswith("identical: ")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["command"][:2] == ["agentic-bayes", "estimate"]
    assert strict(run("reproduce", "out", "--to", "json").out)["verdict"] == "identical"
    summary = tmp_path / "out" / "summary.csv"
    rows = summary.read_text().splitlines()
    cells = rows[1].split(",")
    cells[rows[0].split(",").index("mean")] = "0.123"
    summary.write_text("\n".join([rows[0], ",".join(cells), *rows[2:], ""]))
    done = run("reproduce", "out")
    assert done.code == 1
    assert "summary.csv was changed after it was written" in done.out
    assert "mean: 0.123 stored" in " ".join(done.out.split())
    found = strict(run("reproduce", "out", "--to", "json").out)
    assert (found["verdict"], len(found["differences"])) == ("differs", 1)
    assert_refused(run("reproduce", tmp_path), "is not a folder of results: it holds no manifest.json")
    refused = run("reproduce", "nothere")
    assert refused.code == 2
    said = "nothere: no such folder, and no run of this id in results; for a run elsewhere, give its folder"
    assert said in " ".join(refused.err.split())


def test_results_from_evidence_hold_it(run, tmp_path):
    """`estimate` keeps the evidence with the results, and how it was counted."""
    run("assess", str(example_folder("support_agent") / "v1.jsonl"), "-o", "evidence.jsonl")
    run("estimate", "evidence.jsonl", *FAST, "--indicator", "joint", "-o", "out")
    assert (tmp_path / "out" / "evidence.jsonl").read_bytes() == (tmp_path / "evidence.jsonl").read_bytes()
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["counting"]["indicator"] == "joint"
    assert run("reproduce", "out").code == 0


def test_no_column_of_the_evidence_is_cut(run, monkeypatch):
    """Off a terminal, 80 columns hold every header of the table of what was judged."""
    monkeypatch.delenv("COLUMNS", raising=False)
    done = run("assess", ROOT / "examples" / "support_agent", "-o", "evidence.jsonl")
    assert done.code == 0
    above, header, rule = next(
        lines for lines in zip(*(done.out.splitlines()[i:] for i in range(3)), strict=False) if "──" in lines[2]
    )
    assert above.split() == ["turns", "average", "answer", "tools"]  # headings of several words take two lines
    assert header.split() == ["agent", "conversations", "scored", "not", "scored", "score", "right"]
    assert max(map(len, (above, header, rule))) <= 80


def test_no_number_of_a_table_is_cut(run, tmp_path):
    """Names take several lines where there is no room; numbers and headings are never shortened."""
    calls = [{"tool_name": "a_tool_with_a_very_long_name_indeed", "parameters": {"argument_of_great_length": 1}}] * 3
    agents = ["an-agent-with-a-long-name-v1", "an-agent-with-a-long-name-v2"]
    some = [
        conversation(
            turn(agentic={"tools_used": calls}, ground_truth_agentic={"expected_tools": calls[:1]}),
            agent=agent,
            session=f"s{i}",
            task_id=f"t{i}",
        )
        for agent in agents
        for i in range(300)
    ]
    write_conversations(some, tmp_path / "c.jsonl")
    out = run("assess", "c.jsonl", "-o", "e.jsonl").out
    assert "600 of 900" in out
    assert re.search(r" 0\.667 ", out, re.MULTILINE)
    assert re.search(r" \[0\.6\d\d, 0\.\d\d\d\] *$", out, re.MULTILINE)
    for heading in ("conversations", "unscored", "tools", "right", "calls", "share"):
        assert heading in out


def test_the_threshold_of_a_metric_is_its_own(run, files):
    """`--threshold` is for the answer; a metric's is given where it is made."""
    run("assess", *files, "-o", "e.jsonl", "--metrics", "coherence=0.9")
    refused = run("estimate", "e.jsonl", "--indicator", "coherence", "--threshold", "0.3")
    assert_refused(refused, "coherence has its own threshold (assess --metrics coherence=0.3)")
    counted = run("estimate", "e.jsonl", "--indicator", "coherence", "--k", "1")
    assert "coherence ≥ 0.9" in " ".join(counted.out.split())
    assert_refused(run("assess", *files, "-o", "e.jsonl", "--metrics", "coherence=x"), "coherence=0.3, got")


def test_metrics_are_columns_of_the_evidence(run, files, tmp_path, provider):
    """Those on embeddings need no model; the others ask the judge's, or the one that is named, and are paid once."""
    done = run("assess", *files, "-o", "e.jsonl", "--metrics", "coherence,loop_detection")
    assert done.code == 0, done.err
    assert "v1 coherence 3 0" in " ".join(done.out.split())
    assert set(Evidence.read(tmp_path / "e.jsonl").rows[0].metrics) == {"coherence", "loop_detection"}
    counted = run("estimate", "e.jsonl", "--indicator", "loop_detection", "--k", "1", "--to", "json")
    assert json.loads(counted.out)["summary"][0]["indicator"] == "loop_detection"
    assert_refused(run("assess", *files, "-o", "e.jsonl", "--metrics", "confidance"), "did you mean 'confidence'")
    assert_refused(run("assess", *files, "-o", "e.jsonl", "--metrics", "confidence"), "needs a model: give model=")
    asked = run(
        *("assess", *files, "-o", "e.jsonl", "--metrics", "confidence", "--metrics-model", "openai:gpt-4o-mini"),
        *("--store", "kept.sqlite", "--stats"),
    )
    assert asked.code == 0, asked.err
    assert "confidence: score: unreadable reply" in " ".join(asked.out.split())  # the server only gives verdicts


def test_no_text_of_a_file_steers_the_terminal(run, tmp_path):
    """Escape sequences in agents, keys and tools are written out, on both streams."""
    odd = "v\x1b[31m1\u202e"
    good = conversation(turn(), agent=odd, session_id="s", task_id="t")
    write_conversations([good], tmp_path / "good.jsonl")
    (tmp_path / "bad.jsonl").write_text(json.dumps({"k\x1b[2J": 1}), encoding="utf-8")
    shown = [
        run("validate", "good.jsonl"),
        run("validate", "bad.jsonl", "good.jsonl"),
        run("assess", "good.jsonl", "-o", "e.jsonl"),
        run("estimate", "e.jsonl", "--k", "1"),
        run("show", "good.jsonl"),
    ]
    for done in shown:
        assert not set("\x1b\u202e") & set(done.out + done.err)
    assert any("v\\u001b[31m1" in done.out for done in shown)


# Suites


@pytest.fixture
def suite(run, tmp_path):
    """The example suite, in a folder of its own."""
    done = run("init", ".")
    assert done.code == 0, done.err
    return tmp_path / "eval.yaml"


def test_a_folder_with_a_suite_and_conversations_is_checked_as_both(run, suite, files, tmp_path):
    """What holds something else is named, and what a run wrote is nobody's conversation."""
    assert run("run").code == 0
    Path("prices.json").write_text('{"tea": 3}')
    done = run("validate", tmp_path)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("valid: suite arithmetic, 3 tasks, trials 15, agent adder-v1\nnot checked, since")
    assert "prices.json\n" in done.out
    assert "valid: 6 conversations" in done.out
    found = json.loads(run("validate", tmp_path, "--to", "json").out)
    assert (found["suites"][0]["tasks"], found["conversations"]["agents"]) == (3, {"v1": 3, "v2": 3})
    Path("later.yaml").write_text(f"{suite.read_text()}\noutput: {{dir: elsewhere}}\n")
    assert "manifest.json" not in run("validate", tmp_path).out
    Path("bad.jsonl").write_text('{"session_id": "a"}\n')
    done = run("validate", tmp_path)
    assert (done.code, "bad.jsonl, line 1" in done.err) == (2, True)


def test_a_suite_is_written_checked_and_run(run, suite, tmp_path):
    """`init`, `validate`, `run --dry-run`, `run`, `list`, `show`: the example works offline, and its files say so."""
    assert "valid: suite arithmetic, 3 tasks, trials 15, agent adder-v1" in run("validate", "eval.yaml").out
    assert run("validate", tmp_path).out == "valid: suite arithmetic, 3 tasks, trials 15, agent adder-v1\n"
    assert "15 trials, 15 to run" in " ".join(run("run", "--dry-run").out.split())
    assert not (tmp_path / "results").exists()
    done = run("run")
    assert done.code == 0, done.err
    assert "14 of 15 trials passed" in done.out
    (folder,) = (tmp_path / "results").iterdir()
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert list(summary)[:6] == [
        *("total_tasks", "total_trials", "passed_trials", "failed_trials", "error_trials", "overall_pass_rate")
    ]
    assert (summary["total_trials"], summary["passed_trials"]) == (15, 14)
    listed = json.loads(run("list", "--to", "json").out)
    assert [(one["run_id"], one["pending"]) for one in listed] == [(folder.name, 0)]
    assert "14 of 15 trials passed" in run("show", folder.name).out
    assert_refused(run("init", "."), "exists already")
    assert json.loads((tmp_path / "suite.schema.json").read_text(encoding="utf-8"))["title"] == "SuiteConfig"


def test_runs_decide(run, suite, tmp_path):
    """Exit codes of `--gate` and `--fail-under`; runs are compared, gated and estimated by their ids."""
    assert run("run", "--fail-under", "0.9").code == 0
    assert run("run", "--fail-under", "0.99").code == 10
    assert run("run", "--gate", "pass^1>=0.3@0.8").code == 0
    assert run("run", "--gate", "pass^3>=0.99@0.9").code in (10, 11)
    first, *_, last = sorted(path.name for path in (tmp_path / "results").iterdir())
    compared = run("compare", first, last)
    assert compared.code == 0, compared.err
    assert "3 tasks both attempted" in " ".join(compared.out.split())
    runs = [RunResults.of(tmp_path / "results" / name).outcomes for name in (first, last)]
    together = ab.combine_outcomes(*runs, names=[first, last])
    same = compare(estimate(together), last, baseline=first)
    document = json.loads(run("compare", first, last, "--to", "json").out)
    assert (document["mean"], document["lower"], document["upper"]) == (same.mean, same.lower, same.upper)
    assert (document["pairing"], document["prob_better"]) == ("tasks", same.prob_better)
    assert not compared.err
    file = tmp_path / "eval.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("weight: 2", "weight: 3"), encoding="utf-8")
    assert run("run").code == 0
    latest = sorted(path.name for path in (tmp_path / "results").iterdir())[-1]
    changed = " ".join(run("compare", first, latest).err.split())
    assert "input, expectations, graders or pass threshold differ between the runs in" in changed
    assert run("gate", first, "--at-least", "0.3", "--confidence", "0.8").code == 0
    assert "indicator all graders" in " ".join(run("estimate", first, "--k", "1").out.split())
    assert_refused(run("run", "--gate", "pass^3"), 'a gate must be like "pass^3>=0.7@0.95"')
    assert_refused(run("run", "--fail-under", "90"), "fail_under must be")
    assert_refused(run("run", "--tags", "none"), "no task has the tag 'none'; tags of this suite: easy, hard")
    assert_refused(run("run", "-c", "none.yaml"), "no such file")


def test_an_unfinished_run_goes_on(run, suite, tmp_path):
    """Errored trials are run again by the same command; where nothing has a verdict, nothing is decided: exit 11."""
    agent = (tmp_path / "agent.py").read_text(encoding="utf-8")
    down = (
        '    if __import__("pathlib").Path(__file__).with_name("down").exists():\n        raise RuntimeError("down")\n'
    )
    end = agent.index("    total = ")
    (tmp_path / "agent.py").write_text(agent[:end] + down + agent[end:], encoding="utf-8")
    (tmp_path / "down").touch()
    broken = run("run")
    assert broken.code == 11
    assert "no trial has a verdict, 15 errored folder:" in " ".join(broken.out.split())
    assert run("run", "--gate", "pass^1>=0.3").code == 11
    (tmp_path / "down").unlink()
    again = run("run")
    assert "resuming run" in again.out
    assert "14 of 15 trials passed" in again.out
    assert again.code == 0
    assert len(list((tmp_path / "results").iterdir())) == 1


FLAKY = """
def answer(prompt, trial):
    if trial >= 3:
        raise RuntimeError("down")
    return "The sum is 5." if "2 + 3" in prompt else "no idea"
"""


def test_an_agent_whose_code_changed_is_another_agent(run, suite, tmp_path):
    """Its trials are not mixed with those of the code before, unless there are none."""
    (tmp_path / "agent.py").write_text("def answer(prompt):\n    raise ValueError\n", encoding="utf-8")
    assert run("run").code == 11
    (tmp_path / "agent.py").write_text(FLAKY, encoding="utf-8")
    assert "starting run" in run("run").out
    (tmp_path / "agent.py").write_text(FLAKY.replace("no idea", "The sum is 65."), encoding="utf-8")
    assert_refused(run("run"), "the agent changed since")
    assert "starting run" in run("run", "--new").out


def test_a_pass_rate_is_decided_only_if_open_trials_cannot_change_it(run, suite, tmp_path):
    """3 of 15 passed, 6 failed, 6 are open: below .7 for sure, above .2 for sure; and of one task alone."""
    (tmp_path / "agent.py").write_text(FLAKY, encoding="utf-8")
    assert run("run", "--fail-under", "0.7").code == 10
    assert run("run", "--fail-under", "0.5").code == 11
    assert run("run", "--fail-under", "0.2").code == 0
    easy = run("run", "--tags", "easy", "--fail-under", "0.6")
    assert "3 of 3 trials passed" in easy.out
    assert easy.code == 0
    assert run("run", "--tags", "easy", "--fail-under", "0.9").code == 11
    fewer = suite.read_text(encoding="utf-8").replace("trials_per_task: 5", "trials_per_task: 3")
    suite.write_text(fewer, encoding="utf-8")
    assert "starting run" in run("run").out  # all that is asked for now is done


def test_errored_trials_as_failures_settle_what_a_run_must_reach(run, suite, tmp_path):
    """6 of 15 trials crash: inconclusive, by a pass rate and by a gate; counted as failed they decide both."""
    (tmp_path / "agent.py").write_text(FLAKY, encoding="utf-8")
    open_ended = run("run", "--fail-under", "0.3", "--gate", "pass^1>=0.6@0.9")
    assert open_ended.code == 11
    assert " ".join(open_ended.out.split()).count("6 of 15 trials errored") == 2
    assert run("run", "--errors", "fail", "--fail-under", "0.3").code == 10
    assert run("run", "--errors", "fail", "--fail-under", "0.2").code == 0
    assert_refused(run("run", "--errors", "bounds"), "errors")


def test_what_is_wrong_is_said_before_a_trial_is_paid_for(run, suite, tmp_path):
    """Gates, k, agents: checked first."""
    for arguments, message in (
        (("--gate", "pass^3>=0.7@0.4"), "confidence must be in (0.5, 1), otherwise a gate could pass and fail at once"),
        (("--gate", "pass^99999999>=0.5"), "k must be at most 1,000,000"),
        (("--k", "0"), "must be an integer ≥ 1"),
    ):
        assert_refused(run("run", *arguments), message)
    text = suite.read_text(encoding="utf-8")
    suite.write_text(text.replace("agent:answer", "nowhere:answer"), encoding="utf-8")
    assert_refused(run("validate", "eval.yaml"), "nowhere")
    assert_refused(run("run", "--dry-run"), "nowhere")
    suite.write_text(text.replace("trials_per_task: 5", "trials_per_task: 1000000000"), encoding="utf-8")
    assert_refused(run("run", "--dry-run"), "must be at most 1,000,000")
    assert not (tmp_path / "results").exists()


def test_a_damaged_run_is_left_out_with_a_warning(run, suite, tmp_path):
    """Of an empty, a broken and a foreign file: other runs are listed and go on."""
    assert run("run").code == 0
    for name, content in (("20990101-a", b""), ("20990102-b", b"garbage" * 999)):
        (tmp_path / "results" / name).mkdir()
        (tmp_path / "results" / name / "trials.sqlite").write_bytes(content)
    listed = run("list", "--to", "json")
    assert len(json.loads(listed.out)) == 1
    assert "warning: skipped 20990101-a: " in listed.err
    again = run("run")
    assert again.code == 0
    assert "warning: skipped 20990102-b: " in again.err


def test_json_of_a_run_stands_alone(run, suite, tmp_path):
    """Whatever the agent prints goes to standard error."""
    agent = (tmp_path / "agent.py").read_text(encoding="utf-8")
    noisy = agent.replace("    total = ", '    print("noise")\n    total = ')
    (tmp_path / "agent.py").write_text(noisy, encoding="utf-8")
    assert strict(run("run", "--to", "json").out)["passed_trials"] == 14


def test_all_problems_of_a_suite_are_said_at_once(run, suite, tmp_path):
    """With file, line and what is allowed; nothing is run."""
    text = (
        suite.read_text(encoding="utf-8")
        .replace("concurrency: 4", "concurency: 4")
        .replace("type: python", "type: pithon")
    )
    suite.write_text(text, encoding="utf-8")
    refused = run("run")
    assert_refused(refused, "2 problems in the suite")
    assert "execution.concurency: unknown key: did you mean 'concurrency'?" in refused.err
    assert not (tmp_path / "results").exists()
