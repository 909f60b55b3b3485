"""What a file looks like: the proposal is the right one, and its command and its Python do what they say."""

import json
import pathlib
import random
import re
import shlex
import sys
import warnings
from pathlib import Path

import pandas
import pytest

import agentic_bayes as ab
from agentic_bayes.cli import app as cli
from agentic_bayes.describe.files import describe

FILES = Path(__file__).parents[1]
ODD = """model,question_id,seed,passed,crashed,difficulty,latency
gpt,q1,1,yes,,easy,1.2
gpt,q1,2,no,,easy,1.3
gpt,q2,1,no,timeout,hard,1.1
gpt,q2,2,yes,,hard,2.2
claude,q1,1,yes,,easy,1.2
claude,q1,2,no,,easy,1.3
claude,q2,1,no,,hard,1.1
claude,q2,2,yes,,hard,2.2
"""
TABLES = {
    "usual": "agent,task,trial,correct\na,x,0,1\na,x,1,0\nb,x,0,1\nb,y,0,\n",
    "semicolons": "Modell;Case ID;Outcome\na;1;pass\na;2;FAIL\na;1;pass\n",
    "scores": "task,run,score\nx,0,0.9\nx,1,0.4\ny,0,0.8\n",
    "counts": "system,problem,n_correct,n_samples\na,x,3,4\na,y,0,4\n",
    "grades": "task,epoch,verdict\nx,1,C\nx,2,I\ny,1,C\n",
    "wide": "task,run_1,run_2,run_3\nx,1,0,1\ny,1,1,1\n",
    "agents": "task,gpt,claude\nx,1,0\ny,1,1\n",
    "no names": "wer,was,ergebnis\na,x,1\na,y,0\nb,x,1\nb,y,1\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Runs a command line, as it was proposed, in this process."""

    def run_command(line: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        return code, *capsys.readouterr()

    return run_command


def outcomes_by(code):
    """The outcomes that the proposed Python makes; the estimate itself is left out."""
    names: dict[str, object] = {}
    exec("\n".join(line for line in code if not line.startswith("est = ab.estimate")), names)
    if "est" in names:
        return names["est"].outcomes
    return names["outcomes"] if "outcomes" in names else ab.count_outcomes(names["evidence"])


def roles(found):
    return {one.role: one.source for one in found.proposals}


def test_a_table_with_odd_names_is_read_by_the_proposed_command(run):
    """Agent, task, trial, result, error and group are found by their names and contents."""
    Path("odd.csv").write_text(ODD, encoding="utf-8")
    found = describe(["odd.csv"])
    assert roles(found) == {
        "agent": "model",
        "task": "question_id",
        "trial": "seed",
        "correct": "passed",
        "error": "crashed",
        "group": "difficulty",
    }
    assert found.outcome.startswith(
        "2 agents (claude, gpt), 2 tasks, 7 scored trials (4 right), 1 unscored (1 agent err"
    )
    outcomes = outcomes_by(found.code)
    assert outcomes["successes"].sum("task").values.tolist() == [2, 2]
    assert outcomes["difficulty"].values.tolist() == ["easy", "hard"]
    code, out, err = run("agentic-bayes describe odd.csv")
    assert (code, err) == (0, "")
    (command,) = (line.strip() for line in out.splitlines() if line.startswith("  agentic-bayes "))
    assert command == found.commands[0]
    code, out, err = run(f"{command} --method conjugate")
    assert (code, err) == (0, "")
    assert "difficulty" in out


@pytest.mark.parametrize("kind", TABLES)
def test_every_form_of_table_is_proposed_as_it_is_read(folder, kind):
    """Rows, scores, counts, wide tables: the proposal was tried, and its Python gives the outcomes that it says."""
    Path("table.csv").write_text(TABLES[kind], encoding="utf-8")
    found = describe(["table.csv"])
    assert found.failure == ""
    outcomes = outcomes_by(found.code)
    right, scored = int(outcomes["successes"].sum()), int(outcomes["trials"].sum())
    expected = {"usual": (2, 3), "semicolons": (2, 3), "scores": (2, 3), "counts": (3, 8), "grades": (2, 3)}
    expected |= {"wide": (5, 6), "agents": (3, 4), "no names": (3, 4)}
    assert (right, scored) == expected[kind]
    assert f"{scored} scored trials ({right} right)" in found.outcome


def test_what_cannot_be_read_so_is_said_with_the_reason(run):
    """A trial that comes twice is no trial number; a table without a result names what is missing."""
    Path("twice.csv").write_text("task,run,correct\nx,1,1\nx,1,0\n", encoding="utf-8")
    assert "trial" not in roles(describe(["twice.csv"]))
    Path("none.csv").write_text("task,comment\nx,good\ny,bad\n", encoding="utf-8")
    found = describe(["none.csv"])
    assert "correct" in found.failure
    code, out, _ = run("agentic-bayes describe none.csv")
    assert code == 0
    assert "cannot be read this way: none.csv: there is no column 'correct'" in out
    assert run("agentic-bayes describe missing.csv")[0] == 2


def test_no_reading_is_proposed_that_would_count_something_else(folder):
    """Failures are no successes, agents no tasks, a step no verdict, and verdicts of other words no agents."""
    for content, failure, proposed in (
        ("model,task,failed\nA,x,0\nA,y,1\n", "1 means wrong", {"agent": "model", "task": "task"}),
        ("model,q1,q2\nA,1,0\nB,0,1\n", "one row for each 'model'", {"agent": "model"}),
        ("model,MMLU,GPQA\nA,.5,.6\nB,.4,.7\n", "one row for each 'model'", {"agent": "model"}),
        ("task,_step\na,1\nb,1\n", "no column 'correct'", {"task": "task"}),
        ("id,traceId,name,value\n1,x,c,1\n2,x,h,0\n", "", {"task": "name", "correct": "value"}),
        ("task,exit_code\na,0\nb,1\n", "1 means wrong", {"task": "task"}),
        ("task_id,reward,info\n0,1,x\n1,0,y\n", "", {"task": "task_id", "correct": "reward"}),
        ("task,gpt-3,gpt-4\na,1,0\nb,0,1\n", "", {"task": "task", "agents, one each": "gpt-3, gpt-4"}),
        ("task,run 1,run 2\na,1,0\nb,0,1\n", "", {"task": "task", "trials, one each": "run 1, run 2"}),
        ("task,result\na,pass\na,error\nb,pass\n", "Trials that crashed", {"task": "task", "correct": "result"}),
    ):
        Path("t.csv").write_text(content, encoding="utf-8")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = describe(["t.csv"])
        assert bool(said) == ("traceId" in content)  # whose rows are scores of one trial
        assert failure in found.failure
        assert roles(found) == proposed


def test_a_folder_of_tables_is_told_how_to_become_one(run):
    """The lines of pandas that the message gives make one table, with the files' names as agents."""
    for agent in ("v1", "v2"):
        Path(f"runs/{agent}.csv").parent.mkdir(exist_ok=True)
        Path(f"runs/{agent}.csv").write_text("task,correct\na,1\nb,0\n", encoding="utf-8")
    code, _, err = run("agentic-bayes describe runs")
    assert code == 2
    names = {"pathlib": pathlib, "pandas": pandas}
    for line in re.search(r"as agents: (paths = .*); (pandas\..*)", err).groups():
        exec(line, names)
    assert ab.outcomes_from_table("all.csv")["trials"].values.tolist() == [[1, 1], [1, 1]]
    Path("runs/v1.csv").unlink()
    assert (
        run("agentic-bayes describe runs")[2]
        .rstrip()
        .endswith("describe runs/v2.csv says what it holds and how to read it")
    )


def test_evidence_a_saved_estimate_and_a_suite_are_known(run):
    """Each with the command that takes it."""
    Path("t.csv").write_text(TABLES["usual"], encoding="utf-8")
    turn = {"qa_id": "q", "query": "?", "assistant": "a", "ground_truth_assistant": "a"}
    records = [ab.Conversation(session_id=str(i), assistant_id="a", task_id="x", conversation=[turn]) for i in range(2)]
    ab.assess(records, judge=ab.ReferenceJudge()).write("e.jsonl")
    ab.write_conversations(records, "c.jsonl")
    ab.estimate(ab.outcomes_from_table("t.csv"), ab.Conjugate()).save("est.nc")
    assert run("agentic-bayes estimate t.csv --method conjugate -o results")[0] == 0
    known = {"e.jsonl": "evidence of 2 interactions", "est.nc": "a saved estimate", "results": "a saved estimate"}
    for name, kind in known.items():
        found = describe([name])
        assert found.kind == kind
        assert outcomes_by(found.code)["trials"].sum() in (2, 3)
        assert found.commands == [f"agentic-bayes estimate {name}"]
    assert (
        run("agentic-bayes gate results --agent b --at-least 0.5")[1]
        == run("agentic-bayes gate results/estimate.nc --agent b --at-least 0.5")[1]
    )
    Path("r.csv").write_text("task;reference\nx;a\ny;b\n", encoding="utf-8")
    found = describe(["r.csv"])
    assert found.kind == "references for 2 tasks"
    assert found.commands == ["agentic-bayes assess LOGS --references r.csv -o evidence.jsonl"]
    found = describe(["c.jsonl"])
    assert found.kind == "conversations in 1 file (1 native)"
    assert run(found.commands[0])[0] == 0
    assert outcomes_by(found.code)["trials"].values.tolist() == [[2]]
    assert run("agentic-bayes init demo-suite")[0] == 0
    assert describe(["demo-suite"]).commands == describe(["demo-suite/eval.yaml"]).commands
    assert describe(["demo-suite/eval.yaml"]).commands[-1] == "agentic-bayes run -c demo-suite/eval.yaml"


def test_the_description_is_json_on_request(run):
    """Without tables, for programs."""
    Path("odd.csv").write_text(ODD, encoding="utf-8")
    code, out, _ = run("agentic-bayes describe odd.csv --to json")
    assert code == 0
    assert json.loads(out)["proposals"][0] == {
        "role": "correct",
        "source": "passed",
        "reason": "its name; it holds yes/no",
    }
    assert run("agentic-bayes describe odd.csv --to markdown")[1].startswith("**Columns**")


CAPITALS = ("Oslo", "Rome", "Paris", "Bern", "Lima", "Cairo", "Tokyo", "Accra", "Quito")
BROKEN = {("v1", 2, 1): 0.5, ("v2", 5, 0): 0.5, ("v2", 7, 3): 0.0}  # the share of the file that is there


def messy_logs(folder: Path, *, where: str) -> dict[str, int]:
    """72 chats with broken files, and their references; gives how many of each agent are right and readable."""
    rng = random.Random(0)
    right = {"v1": 0, "v2": 0}
    for agent, rate in (("v1", 0.5), ("v2", 0.8)):
        (folder / agent).mkdir(parents=True)
        for task, city in enumerate(CAPITALS):
            for attempt in range(4):
                knows = rng.random() < rate
                call = {"name": "lookup", "arguments": json.dumps({"number": task})}
                messages = [
                    {"role": "user", "content": f"What is the capital of country {task}?"},
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [{"id": "c", "type": "function", "function": call}],
                    },
                    {"role": "tool", "tool_call_id": "c", "content": city},
                    {"role": "assistant", "content": f"It is {city}." if knows else "I could not find it."},
                ]
                metadata = {"task": f"capital-{task}", "run": attempt, "host": "h1", "started": rng.random()}
                metadata |= {"agent_version": agent} if where == "metadata" else {}
                text = json.dumps({"metadata": metadata, "messages": messages})
                share = BROKEN.get((agent, task, attempt), 1.0)
                right[agent] += knows and share == 1
                (folder / agent / f"log-{task}-{attempt}.json").write_text(text[: int(share * len(text))])
    lines = ["Task,Expected Answer,notes", *(f"capital-{task},{city},x" for task, city in enumerate(CAPITALS))]
    (folder / "references.csv").write_text("\n".join(lines), encoding="utf-8")
    return right


@pytest.mark.parametrize("where", ["metadata", "folders"])
def test_a_folder_of_messy_logs_becomes_a_posterior_and_a_gate_with_two_commands(run, where):
    """72 logs, three of them broken, identity inside or by folder, references in a table: the two proposed commands."""
    right = messy_logs(Path("logs"), where=where)
    found = describe(["logs"])
    agent = "metadata.agent_version" if where == "metadata" else "{parent}"
    assert roles(found) == {
        "agent": agent,
        "task": "metadata.task",
        "trial": "metadata.run",
        "references": "logs/references.csv",
    }
    assert found.outcome.startswith("69 conversations, 69 interactions, 2 agents (v1, v2), 9 tasks")
    assess, gate = found.commands
    code, out, err = run(assess)
    assert code == 0
    assert "could not be read and were left out" in err
    assert "evidence written to evidence.jsonl" in out
    outcomes = ab.count_outcomes(ab.Evidence.read("evidence.jsonl"))
    assert outcomes["successes"].sum("task").values.tolist() == list(right.values())
    assert outcomes["trials"].sum("task").values.tolist() == [35, 34]
    code, out, _ = run(gate)
    assert code in (0, 10, 11)
    assert "for v2 on new tasks; pass^1" in out
    with pytest.warns(ab.errors.DoubtfulRecords, match="left out"):
        assert outcomes_by(found.code).equals(outcomes)


def test_logs_with_neither_references_nor_scores_say_what_is_missing(run):
    """The logs are read; what they are judged by is still to be given."""
    messy_logs(Path("logs"), where="metadata")
    Path("logs/references.csv").unlink()
    found = describe(["logs"])
    assert any("--references FILE" in note for note in found.notes)
    assert len(found.commands) == 1


def test_results_of_another_tool_are_named_with_their_scores(run):
    """Promptfoo's file as the tool wrote it; several scores are proposed one by one."""
    found = describe([str(next(FILES.rglob("promptfoo.json")))])
    assert found.kind == "results of promptfoo"
    assert outcomes_by(found.code)["trials"].sum() == 32
    found = describe([str(next(FILES.rglob("samples_df.csv")))])
    assert "--scorer" in found.commands[0]
    assert run(f"{found.commands[0]} --method conjugate")[0] == 0


@pytest.mark.parametrize("file", ["inspect/dict_scorer.json", "cases/inspect_missing_scorer.json"])
def test_the_commands_for_logs_with_several_scores_choose_one(run, file):
    """The first that can be read, and they work; the others are named."""
    found = describe([str(FILES / "records/files" / file)])
    (score,) = (one for one in found.proposals if one.role == "score")
    assert score.reason.endswith(("dicty.b, includes", "chooses: lenient"))
    assert run(found.commands[0])[0] == 0
    assert run("agentic-bayes estimate evidence.jsonl --method conjugate --k 1")[0] == 0


def test_scores_off_the_scale_are_not_left_out(run):
    """Leaving out bad records would keep those that are 0 or 1 by chance."""
    found = describe([str(FILES / "records/files/cases/inspect_scale_1_to_10.json")])
    assert "give the ends of its scale" in found.failure
    assert run(found.commands[0].replace("LOW,HIGH", "1,10"))[0] == 0


RESULTS = [path for path in sorted((FILES / "evidence/results/files").glob("*.*")) if path.suffix != ".md"]


@pytest.mark.filterwarnings("ignore:evals_df has one row")
@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name)
def test_the_command_for_a_file_of_results_works_when_it_is_pasted(run, path):
    """Whatever the tool, whichever of its scores would count."""
    (command,) = describe([str(path)]).commands
    assert run(f"{command} --method conjugate --k 1")[0] == 0


def test_a_folder_of_results_is_described_as_one(run):
    """Files of one tool are one posterior; those of several are refused with the list."""
    for version in ("v1", "v2"):
        Path(version).mkdir()
        text = (FILES / "evidence/results/files/pydantic_evals_report.json").read_text("utf-8")
        Path(version, "report.json").write_text(text.replace('"agent"', f'"{version}"'), "utf-8")
    found = describe(["."])
    assert found.kind == "results of pydantic-evals, 2 files"
    assert found.outcome.startswith("2 agents (v1, v2), 2 tasks, 10 scored trials")
    assert run(f"{found.commands[0]} --method conjugate --k 1")[0] == 0
    Path("junit.xml").write_text("<testsuite><testcase name='a'/></testsuite>", "utf-8")
    assert (
        "holds results of 2 tools (junit: junit.xml; pydantic-evals: v1/report.json"
        in run("agentic-bayes describe .")[2]
    )
