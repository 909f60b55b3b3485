"""The options --executor and --split of commands."""

import json
from concurrent.futures import Future

import pytest
from scripted import conversation, turn

from agentic_bayes.cli.app import main
from agentic_bayes.errors import ExecutorError
from agentic_bayes.evidence import assess as assessing
from agentic_bayes.records.write import write_conversations
from agentic_bayes.suites import trial_runner
from agentic_bayes.suites.trial import AgentReply


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run a command in a folder of its own: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def command(*words):
        monkeypatch.setattr("sys.argv", ["agentic-bayes", *words])
        with pytest.raises(SystemExit, match=r"\d") as ended:
            main()
        return (ended.value.code or 0, *capsys.readouterr())

    return command


@pytest.fixture
def table(tmp_path):
    """Two models that try three tasks four times; a third with a row that cannot be read."""
    rows = [f"{m},t{t},{r},{int(r != t or m == 'good')}" for m in ("good", "poor") for t in range(3) for r in range(4)]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["model,task,trial,correct", *rows, "odd,,0,1"]), encoding="utf-8")
    return str(path)


def test_estimate_splits_a_table(run, table):
    """One table of all groups, as text and as JSON."""
    code, out, _ = run("estimate", table, "--split", "model", "--method", "frequentist", "--k", "1")
    assert code == 0
    assert "3 groups by model, 1 of them without an estimate" in out
    code, out, _ = run("estimate", table, "--split", "model", "--method", "frequentist", "--k", "1", "--to", "json")
    groups = json.loads(out)["groups"]
    assert [group["group"] for group in groups] == [{"model": "good"}, {"model": "odd"}, {"model": "poor"}]
    assert groups[1]["reason"].endswith("runs.csv: line 26: task must not be blank")


def test_gate_splits_a_table(run, table):
    """The exit code is that of the worst group; one without an estimate is inconclusive."""
    words = ("gate", table, "--split", "model", "--method", "hierarchical", "--at-least")
    assert run(*words, "0.01")[0] == 11
    code, out, _ = run(*words, "0.99", "--to", "json")
    assert code == 10
    assert json.loads(out)["exit_code"] == 10


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("estimate", "runs.csv", "--executor", "local:2"), "--executor needs --split"),
        (("estimate", "runs.csv", "--split", "model", "-o", "out"), "--output cannot be used with --split"),
        (("gate", "runs.csv", "--at-least", "0.5", "--split", "model", "--junit", "x.xml"), "--junit cannot be used"),
        (("estimate", "runs.csv", "--split", "model", "--executor", "remote"), 'must be "local:N"'),
        (("estimate", "runs.csv", "--split", "modle"), "did you mean 'model'"),
        (("assess", "talks.jsonl", "-o", "e.jsonl", "--executor", "local:none"), 'must be "local:N"'),
    ],
)
def test_what_does_not_fit_is_refused(run, table, words, message):
    """Before anything is computed or written."""
    write_conversations([conversation(turn())], "talks.jsonl")
    code, _, errors = run(*words)
    assert code == 2
    assert message in errors


def test_an_executor_that_breaks_down_stops_the_command(run, monkeypatch):
    """Exit code 1, as for whatever stopped early."""

    def broken(executor):
        assert executor == "local:2"
        raise ExecutorError("a worker process ended")

    monkeypatch.setattr(assessing.Workers, "open", broken)
    write_conversations([conversation(turn())], "talks.jsonl")
    code, _, errors = run("assess", "talks.jsonl", "-o", "e.jsonl", "--executor", "local:2")
    assert (code, errors.strip()) == (1, "error: a worker process ended")


def test_a_run_whose_workers_die_shows_what_it_has(run, monkeypatch, tmp_path):
    """Trials that ended are counted, and the same command resumes the rest."""
    suite = """
name: s
agent: {type: command, config: {command: cat}}
defaults: {trials_per_task: 2, graders: [{type: regex, config: {pattern: x}}]}
"""
    (tmp_path / "eval.yaml").write_text(suite + "tasks: [{id: t, input: {prompt: x}}]\n", encoding="utf-8")
    calls = []

    class Short:
        """Workers that answer one trial and are gone."""

        size = 1

        def submit(self, sent, part, *arguments):
            """Answer twice, a reply and its grades."""
            calls.append(part)
            if len(calls) > 2:
                raise ExecutorError("a worker process ended")
            ended = Future()
            grade = {"score": 1.0, "pass": True, "reason": "", "weight": 1.0}
            ended.set_result((AgentReply(("x",)), 0.1) if part == "reply" else {"regex": grade})
            return ended

        def close(self):
            """Nothing to end."""

    monkeypatch.setattr(trial_runner.Workers, "open", lambda executor: Short())
    code, out, errors = run("run", "--executor", "local:1")
    assert code == 1
    assert "1 of 1 trials passed" in out
    assert "error: a worker process ended" in errors
    assert "stopped: 1 trial left; the same command resumes the run" in errors
