"""A folder of one tool's results is one posterior: every attempt once, and every agent told apart or refused."""

import re
import shutil
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentic_bayes.cli.app import app
from agentic_bayes.describe.files import describe
from agentic_bayes.errors import DoubtfulRecords, EvidenceError
from agentic_bayes.outcomes.results import outcomes_from_results

FILES = Path(__file__).parent / "files"
HARBOR = Path(__file__).parents[2] / "records" / "files" / "harbor" / "job"


def suite(folder, name, **passed):
    """A JUnit file whose cases pass or not."""
    cases = "".join(f'<testcase name="{n}">{"" if ok else "<failure/>"}</testcase>' for n, ok in passed.items())
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'<testsuite name="s" timestamp="{name}">{cases}</testsuite>', "utf-8")


def by_agent(outcomes):
    """Agent → successes and trials over all tasks."""
    sums = outcomes[["successes", "trials"]].sum("task").to_dataframe()
    return {agent: tuple(map(int, row)) for agent, row in zip(sums.index, sums.to_numpy(), strict=True)}


@pytest.mark.parametrize(
    ("folder", "scorer", "expected"),
    [
        (FILES / "swe_bench", None, {"acme__tiny": (1, 3)}),
        (FILES / "bfcl", None, {"acme-tiny-FC": (2, 4)}),
        (FILES / "evalplus", "plus", {"acme--tiny_vllm_temp_0.8": (2, 6)}),
        (FILES / "lm_eval", "acc_norm", {"acme/tiny": (1, 2)}),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_a_folder_gives_the_counts_of_its_files(folder, scorer, expected):
    """Files that a report sums up are not counted again."""
    assert by_agent(outcomes_from_results(folder, scorer=scorer)) == expected


def test_the_trials_of_a_job_without_its_file_are_the_same(tmp_path):
    """The job's file and those of its trials hold the same attempts, which count once."""
    shutil.copytree(HARBOR, tmp_path / "job")
    whole = outcomes_from_results(tmp_path / "job")
    assert whole.equals(outcomes_from_results(HARBOR / "result.json"))
    (tmp_path / "job" / "result.json").unlink()
    assert outcomes_from_results(tmp_path / "job").equals(whole)


def test_files_that_name_no_agent_are_agents_by_name_or_folder_or_rule(tmp_path):
    """By their own names, by the folders where these repeat, or as `agent` says; then their trials are of one agent."""
    for version in ("v1", "v2"):
        suite(tmp_path / "names", f"{version}.xml", a=True, b=version == "v2")
        suite(tmp_path / "folders", f"{version}/out.xml", a=True, b=version == "v2")
    both = {"v1": (1, 2), "v2": (2, 2)}
    assert by_agent(outcomes_from_results(tmp_path / "names")) == both
    assert by_agent(outcomes_from_results(tmp_path / "folders")) == both
    assert by_agent(outcomes_from_results(tmp_path / "folders", agent="{parent}")) == both
    assert by_agent(outcomes_from_results(tmp_path / "names", agent="mine")) == {"mine": (3, 4)}
    suite(tmp_path / "names", "v3.xml", a=True, b=True)
    with pytest.warns(DoubtfulRecords, match=r"3 files name no agent, .* one trial per task; .* agent=\"NAME\""):
        outcomes_from_results(tmp_path / "names")


def test_folders_that_tell_nothing_apart_are_refused(tmp_path):
    """Names that no folder tells apart need a rule."""
    for place in ("x/1/out.xml", "x/2/out.xml", "y/1/out.xml"):
        suite(tmp_path, place, a=True)
    with pytest.raises(
        EvidenceError, match=r"3 files are called 'out', .*name the agent: agent=\"NAME\", or by folder"
    ):
        outcomes_from_results(tmp_path)
    assert by_agent(outcomes_from_results(tmp_path, agent="{grandparent}")) == {"x": (2, 2), "y": (1, 1)}


def test_an_attempt_counts_once(tmp_path):
    """The same attempts in two forms are refused; files with the same content are doubtful."""
    for name in ("promptfoo.json", "promptfoo.jsonl"):
        shutil.copy(FILES / name, tmp_path / name)
    with pytest.raises(EvidenceError, match=r"promptfoo.json and .*promptfoo.jsonl hold the same attempt, '.*twice"):
        outcomes_from_results(tmp_path)
    (tmp_path / "promptfoo.json").unlink()
    assert sum(n for _, n in by_agent(outcomes_from_results(tmp_path)).values()) == 32
    suite(tmp_path / "runs", "1.xml", a=True)
    shutil.copy(tmp_path / "runs" / "1.xml", tmp_path / "runs" / "2.xml")
    with pytest.warns(DoubtfulRecords, match=r"1.xml and .*2.xml have the same content, and both count"):
        assert by_agent(outcomes_from_results(tmp_path / "runs", agent="one")) == {"one": (2, 2)}


def test_trials_of_one_number_in_two_files_are_refused_until_it_is_said_whose_they_are(tmp_path):
    """They may be of two versions that share a name, or further attempts."""
    text = (FILES / "pydantic_evals_report.json").read_text("utf-8")
    for version in ("v1", "v2"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "report.json").write_text(text + " " * (version == "v2"), "utf-8")
    with pytest.raises(EvidenceError, match=re.escape("v1/report.json and v2/report.json both hold trial ")):
        outcomes_from_results(tmp_path, scorer="ok")
    assert by_agent(outcomes_from_results(tmp_path, scorer="ok", agent="{parent}")) == {"v1": (2, 5), "v2": (2, 5)}
    assert by_agent(outcomes_from_results(tmp_path, scorer="ok", agent="agent")) == {"agent": (4, 10)}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "no file in it ends in .json, .jsonl, "),
        ({"t.csv": "task,correct\na,1\n"}, "it holds t.csv. For conversations, use"),
        ({"ok.xml": None, "cut.json": '{"evalId": "e", "results": {"resu'}, "cut.json: not JSON"),
        ({"ok.xml": None, "empty.json": ""}, "empty.json: must be JSON"),
        ({"ok.xml": None, "p.jsonl": None}, "holds results of 2 tools (junit: ok.xml; promptfoo: p.jsonl). Read one"),
        ({"ok.xml": None, "cut.xml": "<testsuite><testcase"}, "cut.xml (junit): not complete XML"),
    ],
)
def test_a_folder_that_is_not_one_tools_results_is_refused(tmp_path, files, message):
    """What is in it is named; a broken file is not passed over."""
    for name, text in files.items():
        if text is None and name.endswith("xml"):
            suite(tmp_path, name, a=True)
        else:
            (tmp_path / name).write_text(
                (FILES / "promptfoo.jsonl").read_text("utf-8") if text is None else text, "utf-8"
            )
    with pytest.raises(EvidenceError, match=re.escape(message)):
        outcomes_from_results(tmp_path)


def test_other_files_are_counted_and_left_out(tmp_path):
    """Configurations, notes and hidden files hold no results; the first are counted."""
    suite(tmp_path, "a.xml", a=True)
    for name in ("config.json", ".hidden.xml", "notes.txt"):
        (tmp_path / name).write_text("{}", "utf-8")
    taken = outcomes_from_results(tmp_path).attrs["taken"]
    assert taken.startswith("junit: 1 file (1 other file left out); ")
    assert taken.endswith("agent = a")


def test_the_command_line_takes_folders_and_fields(tmp_path, monkeypatch):
    """`--fields` names a field, or the file or folder for the agent; `describe` proposes what then works."""
    monkeypatch.chdir(tmp_path)
    for version in ("v1", "v2"):
        for run in (1, 2, 3):
            suite(Path("runs"), f"{version}/{run}.xml", a=True, b=run > 1, c=version == "v2")

    def estimated(fields):
        return CliRunner().invoke(app, ["estimate", "runs", "--method", "conjugate", "--k", "1", "--fields", fields])

    assert "agent = v1, v2\n" in estimated("agent={parent}").output
    assert "agent = name (fields)\n" in estimated("agent=name").output
    refused = str(estimated("agent=properties.version").exception)
    assert "fields takes the agent from here, but this record has" in refused
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtfulRecords)
        found = describe(["runs"])
    assert found.kind == "results of junit, 6 files"
    assert found.commands == ["agentic-bayes estimate runs"]
