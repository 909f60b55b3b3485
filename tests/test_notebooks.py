"""Every notebook runs from top to bottom on this interpreter, and prints what the committed one shows."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
QUICKSTART = ROOT / "notebooks" / "01_quickstart.ipynb"
MODEL = ROOT / "notebooks" / "02_hierarchical_model.ipynb"
JUDGES = ROOT / "notebooks" / "04_judges.ipynb"
PAPER = ROOT / "notebooks" / "05_reproduce_the_paper.ipynb"
DECIDE = ROOT / "notebooks" / "03_compare_and_decide.ipynb"
STRICT = """
import warnings
from agentic_bayes.errors import AgenticBayesWarning
warnings.filterwarnings("error", category=AgenticBayesWarning)
warnings.filterwarnings("error", module=r"agentic_bayes(\\.|$)")
"""
# of a machine or a person, not of the notebook
TRACES = re.compile(r"/(home|root|tmp|Users)/|C:\\|site-packages|ipykernel_")


def cells_that_differ(path: Path) -> int:
    """How many cells it takes to run all that may differ on the two stacks."""
    cells = enumerate(nbformat.read(path, as_version=4).cells, start=1)
    pattern = r"arviz|\baz\.|plot_diagnostics|build_model|pymc"
    return max((at for at, cell in cells if cell.cell_type == "code" and re.search(pattern, cell.source)), default=0)


def marked(path: Path) -> Any:
    """A notebook as a parameter, to be run on both stacks if its code may differ on them."""
    return pytest.param(path, marks=[pytest.mark.stack] if cells_that_differ(path) else [], id=path.name)


Check = Callable[[Any], None]
CHECKS: dict[Path, list[Check]] = {}


def prints(path: Path) -> Callable[[Check], Check]:
    """Register a check of what a notebook prints, which holds for a fresh run and for the committed file."""

    def register(check: Check) -> Check:
        CHECKS.setdefault(path, []).append(check)
        return check

    return register


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this interpreter the kernel of notebooks, with nothing of the user's: neither kernels nor start-up files."""
    spec = tmp_path / "kernels" / "python3"
    spec.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    content = {"argv": command, "display_name": "Python 3", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(content), encoding="utf-8")
    for name in ("JUPYTER_PATH", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def run(path: Path, cells: int | None = None) -> Any:
    """A notebook after a run from top to bottom, or of so many cells, with warnings about our package as errors."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = notebook.cells[:cells]
    notebook.cells.insert(0, nbformat.v4.new_code_cell(STRICT))
    NotebookClient(
        notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    del notebook.cells[0]
    return notebook


def output_of(notebook: Any, source: str) -> str:
    """The text that the one cell with this in its source gave."""
    (cell,) = (cell for cell in notebook.cells if cell.cell_type == "code" and source in cell.source)
    return "".join(
        output.text if output.output_type == "stream" else output.data.get("text/plain", "") for output in cell.outputs
    )


def numbers(text: str, beginning: str) -> list[float]:
    """The numbers after a beginning (a pattern) in a text."""
    found = re.search(rf"{beginning}(.*)", text)
    assert found, f"nothing like {beginning!r} in:\n{text}"
    return [float(number) for number in re.findall(r"-?\d+\.?\d*", found[1])]


@pytest.mark.timeout(1200)  # each notebook samples with four chains, and other kernels may want the same cores
@pytest.mark.parametrize("path", [marked(path) for path in NOTEBOOKS])
@pytest.mark.usefixtures("kernel")
def test_a_notebook_runs(path: Path, request: pytest.FixtureRequest) -> None:
    """Every code cell runs, gives as many pictures and tables as the committed one, and prints the known numbers.

    Where only tests marked `stack` are asked for, it ends after the last cell that may differ on the two stacks.
    """
    asked = str(request.config.getoption("-m"))
    part = cells_that_differ(path) if re.match(r"stack\b", asked) else None
    committed, fresh = nbformat.read(path, as_version=4), run(path, part)
    nbformat.validate(committed)
    for made, shown in zip(fresh.cells, committed.cells[:part], strict=True):
        assert kinds(made) == kinds(shown), made.source
    for check in CHECKS[path] if len(fresh.cells) == len(committed.cells) else ():
        check(fresh)


def kinds(cell: Any) -> list[str]:
    """What the outputs of a cell are."""
    if cell.cell_type != "code":
        return []
    found = []
    for output in cell.outputs:
        assert output.output_type in ("stream", "display_data", "execute_result"), output
        data = getattr(output, "data", {})
        kind = "picture" if "image/png" in data else "table" if data else output.name
        if data or found[-1:] != [kind]:  # a kernel may send printed text in one piece or in several
            found.append(kind)
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_committed_notebook_is_clean(path: Path) -> None:
    """The committed notebook was run in order, without errors or warnings, and holds no trace of a machine."""
    committed = nbformat.read(path, as_version=4)
    code = [cell for cell in committed.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    for cell in committed.cells:
        assert "stderr" not in kinds(cell)
        assert not set(cell.metadata) - {"tags"}
        text = cell.source + "".join(
            output.get("text", "") + "".join(str(v) for k, v in output.get("data", {}).items() if k.startswith("text"))
            for output in cell.get("outputs", [])
        )
        assert not TRACES.findall(text)


@prints(QUICKSTART)
def the_quickstart_prints_the_known_numbers(notebook: Any) -> None:
    """The quickstart counts 64 and 84 of 122, and its estimates are those that the example is known to give."""
    assert "248 conversations" in output_of(notebook, "read_conversations(")
    assert "608 scored, 4 unscored" in output_of(notebook, "ab.assess(conversations, judge=ab.ReferenceJudge())")
    counted = output_of(notebook, "ab.count_outcomes(evidence, indicator")
    assert numbers(counted, "support-v1") == [64, 122, 2, 2]
    assert numbers(counted, "support-v2") == [84, 122, 2, 2]
    baseline = output_of(notebook, "est.baseline()")
    assert numbers(baseline, "support-v1 +plugin")[0] == pytest.approx((64 / 122) ** 3, abs=6e-4)
    assert numbers(baseline, "support-v2 +plugin")[0] == pytest.approx((84 / 122) ** 3, abs=6e-4)
    assert numbers(baseline, "support-v1 +unbiased")[0] == 0.306
    assert numbers(baseline, "support-v2 +unbiased")[0] == 0.435
    summary = output_of(notebook, "est.summary().query")
    row = r"{} +population +pass\^3 "
    assert numbers(summary, row.format("support-v1"))[:3] == pytest.approx([0.319, 0.187, 0.466], abs=0.02)
    assert numbers(summary, row.format("support-v2"))[:3] == pytest.approx([0.435, 0.294, 0.587], abs=0.02)
    decision = " ".join(output_of(notebook, "ab.compare(").split())
    assert numbers(decision, r"P\(support-v2 better on pass\^3\) = ")[0] == pytest.approx(91.5, abs=2)
    assert decision.startswith("support-v2 is better than support-v1: P(support-v2 better on pass^1) = ")
    assert "same numbers: True" in output_of(notebook, "ab.Estimate.load(")


@prints(QUICKSTART)
def the_quickstart_walks_through_attempts(notebook: Any) -> None:
    """The second half shows three of four attempts right, and their pass values for K from 1 to 10."""
    table = output_of(notebook, 'groupby("session_id")')
    assert len(re.findall(r"v1-appointment-move-\d .* True", table)) == 3
    assert len(re.findall(r"v1-appointment-move-\d .* False", table)) == 1
    values = output_of(notebook, "k=range(1, 11))")
    # Beta(1 + 3, 1 + 1) beside the plug-in value of 3 of 4
    assert numbers(values, r"\n3 +")[:2] == pytest.approx(
        [1 - (2 * 3 * 4) / (6 * 7 * 8), (4 * 5 * 6) / (6 * 7 * 8)], abs=6e-4
    )
    assert f"{0.75**10:.3f}" in values
    assert values.count("\n10 ") == 1


@prints(MODEL)
def the_model_notebook_shows_what_a_power_of_the_rate_misses(notebook: Any) -> None:
    """On tau-bench four in a row are .03 by the plug-in, .20 counted, .18 by the posterior; inflated pass^8 is .174."""
    table = output_of(notebook, 'compared["posterior"]')
    assert numbers(table, r"pass\^4 +") == pytest.approx([0.031, 0.200, 0.178, 0.090, 0.291], abs=0.002)
    eight = numbers(output_of(notebook, "inflate=True"), r"pass\^8(?=  0\.17)")
    assert eight == pytest.approx([0.174, 0.079, 0.29], abs=0.005)


@prints(DECIDE)
def the_decisions_notebook_decides_as_its_text_says(notebook: Any) -> None:
    """Better at k = 1, undecided at k = 3; v1 fails the gate and v2 does not; two trials per task; the rule's rates."""
    once, thrice = output_of(notebook, "one, three =").strip().split("\n\n")
    assert once.startswith("support-v2 is better than support-v1")
    assert numbers(once, r" %, \+")[0] == pytest.approx(15.5, abs=1)
    assert thrice.startswith("Undecided")
    tests = output_of(notebook, "print(one.frequentist)")
    assert numbers(tests, "p = ")[0] == 0.052
    gates = output_of(notebook, "at_least=0.7), end").strip().split("\n\n")
    assert [text.split(":")[0] for text in gates] == ["fail", "inconclusive"]
    assert output_of(notebook, 'baseline="support-v1", margin=').startswith("Gate: pass: ")
    assert "200 new tasks × 2 trials, cost 400" in output_of(notebook, "budget=400")
    assert max(numbers(output_of(notebook, "rule = ab.monitor"), r"0\.700 \(the bar\): ")[:2]) <= 0.05
    assert "80 tasks: pass" in output_of(notebook, "rule.look(")
    assert "0     d " in output_of(notebook, "ranking = ab.rank(several)")
    assert "not ready 0.9" in output_of(notebook, "ab.classify(est, agent)")


@prints(JUDGES)
def the_judges_notebook_corrects_what_its_judge_gets_wrong(notebook: Any) -> None:
    """Nothing is asked twice, the judge lets a fifth of what is wrong pass, and corrected is nearer to the truth."""
    kept = output_of(notebook, "store = Path(scratch)")
    assert kept.startswith("judging: 612 of 612, 4 unscored")
    assert ", 0 in the second" in kept
    assert "same evidence: True" in kept
    assert "specificity 0.771" in output_of(notebook, "calibrate_judge(")
    table = output_of(notebook, "judge_labels=calibration")
    for agent, truth in (("support-v1", 64 / 122), ("support-v2", 84 / 122)):
        corrected, judged = (numbers(table, rf"{name} +{agent} +pass\^1 +") for name in ("corrected", "as judged"))
        assert abs(corrected[0] - truth) < abs(judged[0] - truth)
        assert corrected[1] < truth < corrected[2]
    assert numbers(output_of(notebook, "judges.agreement("), "kappa +first, second +")[0] == pytest.approx(
        0.845, abs=0.01
    )


@prints(PAPER)
def the_paper_is_reproduced_and_its_estimator_measured(notebook: Any) -> None:
    """All 29 numbers agree, and 8 of 9 turns have right tools; the plug-in errs by .173; its interval misses."""
    agreed = output_of(notebook, "assert table")
    assert agreed.startswith("29 of 29 agree")
    assert "False" not in agreed
    tools = output_of(notebook, "computed_before")
    assert tools.startswith("8 of 9 turns of the published data set are correct")
    assert numbers(tools, "agent_response_3 +") == [1.0, 0.83, 1.0, 1.0]
    curve = output_of(notebook, "curves = {")
    assert [numbers(curve, rf"\n{k} +") for k in range(1, 6)] == [
        [pytest.approx(1 - (1 / 3) ** k, abs=6e-4), pytest.approx((2 / 3) ** k, abs=6e-4)] for k in range(1, 6)
    ]
    four = numbers(output_of(notebook, "counted / plug-in"), r"pass\^4 +")
    assert four == pytest.approx([0.031, 0.2, 0.178, 0.09, 0.291, 6.427], abs=0.002)
    assert numbers(output_of(notebook, "errors = nine"), "mean error of pass.4")[:1] == [0.173]
    for mean, most in ((0.5, 0.05), (0.7, 0.2), (0.9, 0.55)):
        plug_in, posterior = numbers(output_of(notebook, "covered = []"), rf"\n{mean} +")
        assert plug_in <= most  # .005, .07, .32 in the calibration
        assert posterior >= 0.85  # with a coverage of .95 one in a thousand samples of 60 is below


@pytest.mark.parametrize(
    ("path", "check"),
    [pytest.param(path, check, id=check.__name__) for path, checks in CHECKS.items() for check in checks],
)
def test_a_committed_notebook_prints_the_known_numbers(path: Path, check: Check) -> None:
    """The committed outputs are those that the text and the example are known to give."""
    check(nbformat.read(path, as_version=4))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_notebooks_are_one_story(path: Path) -> None:
    """Each says what its reader will know, and ends with a link to the next, the last one to the first."""
    notebook = nbformat.read(path, as_version=4)
    assert "**At the end you will know**" in notebook.cells[0].source
    following = NOTEBOOKS[(NOTEBOOKS.index(path) + 1) % len(NOTEBOOKS)]
    assert f"]({following.name})" in notebook.cells[-1].source
