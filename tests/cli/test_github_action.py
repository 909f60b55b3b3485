"""The GitHub Action: what its steps run, in a shell as GitHub runs it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pages import blocks

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EXPRESSION = re.compile(r"\$\{\{ (?P<where>inputs|steps\.\w+\.outputs)\.(?P<name>[\w-]+) \}\}")
TABLE = "the agent,task,ok,trials\n" + "".join(f"v1,t{i},{1 + i % 2},4\nv2,t{i},4,4\n" for i in range(12))


def filled(text: str, inputs: dict[str, str], outputs: dict[str, str]) -> str:
    """A text of the action with its expressions evaluated."""
    return EXPRESSION.sub(lambda found: (inputs if found["where"] == "inputs" else outputs)[found["name"]], text)


def run_steps(folder: Path, **inputs: str) -> tuple[int, str, dict[str, str]]:
    """The action's own steps but the installation: exit code, job summary, and what it put out."""
    commands = folder / "bin"
    commands.mkdir()
    program = commands / "agentic-bayes"
    program.write_text(f"#!{sys.executable}\nfrom agentic_bayes.cli.app import main\nmain()\n", encoding="utf-8")
    program.chmod(0o755)
    summary, output = folder / "summary.md", folder / "output.txt"
    given = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | inputs
    found: dict[str, str] = {}
    place = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(output), "RUNNER_TEMP": str(folder)}
    place |= {"PATH": f"{commands}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    for step in ACTION["runs"]["steps"]:
        if "run" not in step or step["name"] == "Install" or ("if" in step and found.get("verdict") == "error"):
            continue
        values = {name: filled(text, given, found) for name, text in step["env"].items()}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        code = subprocess.run(command, cwd=folder, env={**os.environ, **place, **values}, check=False).returncode
        if output.exists():
            found |= dict(line.split("=", 1) for line in output.read_text(encoding="utf-8").splitlines())
    return code, summary.read_text(encoding="utf-8"), found


def test_every_input_is_used_and_no_script_holds_an_expression():
    """What a workflow gives reaches the scripts as variables, so that a name cannot be a command."""
    steps = ACTION["runs"]["steps"]
    assert not any("${{" in step.get("run", "") for step in steps)
    used = {m["name"] for step in steps for m in EXPRESSION.finditer(str(step)) if m["where"] == "inputs"}
    assert used == set(ACTION["inputs"])
    for step in steps:
        names = set(step.get("env", {})) | {"GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "RUNNER_TEMP"}
        assert set(re.findall(r"\$([A-Z_]+)", step.get("run", ""))) <= names


@pytest.mark.slow
@pytest.mark.parametrize(("agent", "verdict", "code"), [("v2", "pass", 0), ("v1", "fail", 10)])
def test_its_steps_gate_summarise_and_report(agent, verdict, code, tmp_path):
    """The job ends with the gate's exit code; the summary has its table, and the report begins with its verdict."""
    (tmp_path / "-a table.csv").write_text(TABLE, encoding="utf-8")
    words = {
        "title": "$(touch x)",
        "options": "--columns 'agent=the agent,successes=ok,trials=trials' --method hierarchical",
    }
    found = run_steps(tmp_path, **{"file": "-a table.csv", "at-least": "0.7", "agent": agent}, **words)
    assert found[0] == code
    assert found[1].startswith(f"**Gate: {verdict}**")
    assert found[2]["verdict"] == verdict
    page = Path(found[2]["path"]).read_text(encoding="utf-8")
    assert "$(touch x)" in page
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_bad_input_ends_the_job_without_a_report(tmp_path):
    """A file that is not there is an error, with exit code 2."""
    code, summary, found = run_steps(tmp_path, **{"file": "no.csv", "at-least": "0.7"})
    assert (code, found["verdict"], "path" in found) == (2, "error", False)
    assert summary.startswith("**Gate: error**")


def test_the_recipe_gives_inputs_that_the_action_has():
    """The cookbook's workflow uses the action from the repository, with inputs that exist and all that it needs."""
    (text,) = (each.text for each in blocks(ROOT / "docs" / "cookbook.md") if each.language == "yaml")
    (step,) = (each for each in yaml.safe_load(text)["jobs"]["gate"]["steps"] if "with" in each)
    assert (ROOT / step["with"]["package"]).name == Path(step["uses"]).name == "agentic-bayes"
    assert {name for name, each in ACTION["inputs"].items() if each.get("required")} <= set(step["with"])
    assert set(step["with"]) <= set(ACTION["inputs"])
