"""What a type checker tells someone who uses the package: real mypy and pyright, on a script as people write it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = """\
from typing import assert_type
import agentic_bayes as ab

conversations = list(ab.read_conversations("runs/*.jsonl"))
evidence = ab.assess(conversations, judge=ab.ReferenceJudge(), tool_rubric=ab.ToolRubric(threshold=0.9))
counted = ab.count_outcomes(evidence, indicator="joint")
outcomes = ab.outcomes_from_table("results.csv")
est = ab.estimate(outcomes, ab.Hierarchical(inflate=True), k=(1, 3, 5))
single = ab.estimate(counted, ab.Conjugate(pool_tasks=True), k=3)
assert_type(est, ab.Estimate)
best = est.summary().sort_values("mean")
comparison = ab.compare(est, "v2", baseline="v1", metric="pass^3", rope=(-0.01, 0.02))
assert_type(comparison, ab.types.Comparison)
passed: bool = ab.gate(est, "v2", at_least=0.7).verdict == "pass"
design: ab.types.Plan = ab.plan(est, "v2", width=0.1)
names: list[str] = ab.metrics.metric_names()
coherence: ab.types.Grader = ab.metrics.make_metric("coherence")
ab.plot_posterior(est)
ab.write_report(est, "report.html", evidence=evidence)
rate: float = float(ab.numerics.pass_at_k(10, 3, 2))
try:
    ab.Estimate.load("fit.nc")
except ab.errors.EstimateError as error:
    print(error)
"""
# five lines of it, and the same lines with a typical mistake in each
MISTAKES = {
    "ab.gate(": "ab.gaet(",
    "k=3)": "kk=3)",
    'metric="pass^3"': "metric=3",
    "est.summary()": "est.sumary()",
    "comparison, ab.types.Comparison": "comparison, ab.types.Gate",
}


def with_mistakes() -> tuple[str, set[int]]:
    """The script with all mistakes, and the numbers of the lines that hold them."""
    text = SCRIPT
    for right, wrong in MISTAKES.items():
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    pairs = zip(SCRIPT.splitlines(), text.splitlines(), strict=True)
    return text, {number for number, (right, wrong) in enumerate(pairs, 1) if right != wrong}


def mypy(scripts: list[Path]) -> set[tuple[str, int]]:
    """Where mypy reports errors. Our settings are strict, and share what `make lint` has analysed already."""
    done = _run(ROOT, "mypy", "--config-file=pyproject.toml", "--strict", "--output=json", *map(str, scripts))
    assert done.returncode in (0, 1), done.stdout + done.stderr
    reports = map(json.loads, done.stdout.splitlines())
    return {(Path(report["file"]).name, report["line"]) for report in reports if report["severity"] == "error"}


def pyright(scripts: list[Path]) -> set[tuple[str, int]]:
    """Where pyright reports errors."""
    reports = json.loads(_run(scripts[0].parent, "pyright", "--outputjson", *map(str, scripts)).stdout)
    assert reports["summary"]["filesAnalyzed"] == len(scripts)
    diagnostics = reports["generalDiagnostics"]
    return {(Path(report["file"]).name, report["range"]["start"]["line"] + 1) for report in diagnostics}


def _run(folder: Path, checker: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", checker, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_checker_finds_the_mistakes_and_nothing_else(checker, tmp_path):
    """A checker accepts a script of typical calls, and of the same script with five mistakes it rejects those lines."""
    text, lines = with_mistakes()
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(SCRIPT, encoding="utf-8")
    wrong.write_text(text, encoding="utf-8")
    reported = checker([right, wrong])
    assert len(lines) == 5
    assert {line for file, line in reported if file == "wrong.py"} == lines
    assert {(file, line) for file, line in reported if file == "right.py"} == set()
