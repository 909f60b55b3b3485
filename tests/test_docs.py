"""The documentation is run: its code works, the output that it shows is what comes out, its links lead somewhere."""

import doctest
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
import types
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import yaml
from pages import (
    NOT_RUN_BLOCKS,
    NOT_RUN_PROGRAMS,
    PROJECT,
    ROOT,
    RUN_ELSEWHERE,
    blocks,
    commands,
    run_page,
    was_printed,
)
from scripted import ScriptedChatModel, verdict

import agentic_bayes as ab

PACKAGE = ROOT / "agentic_bayes"
EXAMPLE = ROOT / "examples" / "support_agent"
RUN = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), EXAMPLE / "README.md"]
PAGES = [*RUN, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]


@pytest.mark.parametrize(
    ("shown", "agrees"),
    [
        ("mean 0.18 of 50 tasks", True),
        ("mean 0.19\nof 50 tasks", True),
        ("mean 0.20 of 50 tasks", False),
        ("mean 0.18 of 51 tasks", False),
        ("median 0.18 of 50 tasks", False),
        ("mean 0.18 of 50 tasks\nmean 0.18 of 50 tasks", False),
    ],
)
def test_a_shown_output_that_differs_is_found(shown: str, agrees: bool) -> None:
    """Shown output agrees with what was printed in words, counts and order, and nearly in probabilities."""
    assert was_printed(shown, "first\nmean 0.181 of 50 tasks\nlast") == agrees


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the pages name, a provider and trackers without a network, no window for plots."""
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "support_agent")
    shutil.copy(EXAMPLE / "results.csv", tmp_path)
    monkeypatch.chdir(tmp_path)

    def script(messages: Any) -> str:
        material = str(messages[1].content)
        reference, answer = (
            re.search(rf"\[{name} (\w+)\]\n(.*)\n\[end of {name} \1\]", material, re.DOTALL)
            for name in ("reference", "answer")
        )
        assert reference
        assert answer
        return verdict(0.95 if reference[2].casefold() in answer[2].casefold() else 0.2)

    provider: Any = types.ModuleType("langchain_openai")
    provider.ChatOpenAI = lambda **_: ScriptedChatModel(script=script, calls=[])
    monkeypatch.setitem(sys.modules, "langchain_openai", provider)
    for tracker in ("mlflow", "wandb"):  # where one is not installed, something that takes every call
        if find_spec(tracker) is None:
            monkeypatch.setitem(sys.modules, tracker, MagicMock())
    monkeypatch.setenv("MPLBACKEND", "agg")
    yield tmp_path
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


# code that uses ArviZ or PyMC; a page that is missed fails, as conftest.py says
STACKED = re.compile(r"arviz|plot_diagnostics\(|build_model\(|pymc")


def marked(path: Path) -> Any:
    """A page or module as a parameter, to be run on both stacks if its code may differ on them."""
    if path.suffix == ".py":
        code = "".join(re.findall(r">>> .*", path.read_text(encoding="utf-8")))
    else:
        code = "".join(block.text for block in blocks(path) if block.language == "python" and not block.not_run)
    marks = [pytest.mark.stack] if STACKED.search(code) else []
    return pytest.param(path, marks=marks, id=str(path.relative_to(ROOT)))


@pytest.mark.parametrize("path", [marked(path) for path in RUN])
def test_the_code_of_a_page_runs(path: Path, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block of Python and every command works, or is on the list of what is not run; shown output is what was
    printed.
    """
    run_page(path, monkeypatch)


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("```python\nassert 1 > 2, 'one is less'\n```", "one is less"),
        ("```python\nprint(1)\n```\n```text\n2\n```", "not printed"),
        ("```sh\nagentic-bayes estimate none.csv\n```", "ended with 2"),
        ("```sh\nagentic-bayes rank results.csv --help  # exit 10\n```", "ended with 0"),
        ("```sh\ncurl example.org\n```", "curl is neither run nor listed"),
        ("```text\nagentic-bayes rank results.csv\n```", ":1"),
        ("```yaml\na: [\n```", "while parsing"),
        ("```ruby\n1\n```", "got 'ruby'"),
        ("```python test_none.py\n```", "no test module runs this file"),
        ("<!-- not run: just because -->\n```sh\nls\n```", "no such reason"),
        ("<!-- not run: asks a paid model -->\n", "stands above no block"),
        ("```python\n", "has no end"),
    ],
)
def test_a_block_that_does_not_work_is_found(
    page: str, problem: str, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code that fails, other output, another exit code, unlisted programs and reasons: each is a failure."""
    path = workplace / "page.md"
    path.write_text(page, encoding="utf-8")
    with pytest.raises((AssertionError, pytest.fail.Exception, yaml.YAMLError), match=re.escape(problem)):
        run_page(path, monkeypatch)


def test_every_reason_not_to_run_something_is_used() -> None:
    """The list of programs and blocks that are not run holds only what some page shows."""
    shown = [block for path in PAGES for block in blocks(path)]
    assert {block.not_run for block in shown if block.not_run} == set(NOT_RUN_BLOCKS)
    programs = {command.program for block in shown if block.language == "sh" for command in commands(block.text)}
    assert set(NOT_RUN_PROGRAMS) <= programs
    files = {block.language.removeprefix("python ") for block in shown if block.language.startswith("python ")}
    for name in files:
        assert name in (ROOT / RUN_ELSEWHERE[name]).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_code_hides_outside_of_a_block(path: Path) -> None:
    """Lines that are indented, which Markdown shows as code, hold formulas and never commands or Python."""
    outside = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert not re.findall(r"^    (?:agentic-bayes|pip|make|python|import|from) .*", outside, re.MULTILINE)


EXAMPLES = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", [marked(path) for path in EXAMPLES])
def test_examples_in_docstrings_run(path: Path) -> None:
    """Every example in a docstring gives what it shows, and none is left out."""
    assert "doctest: +SKIP" not in path.read_text(encoding="utf-8")
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    done = doctest.testmod(import_module(name), raise_on_error=False, verbose=False)
    assert done.attempted > 0
    assert done.failed == 0


def test_the_recipe_for_ci_works(workplace: Path) -> None:
    """The GitHub Actions recipe: what it installs is this project, and a shell assesses and gates by its lines."""
    (recipe,) = (block for block in blocks(ROOT / "docs" / "decisions.md") if block.language == "yaml")
    install, *lines = re.findall(r"- run: (.+)", recipe.text)
    assert len(lines) == 2
    (workplace / "agentic-bayes").symlink_to(ROOT)
    assert shlex.split(install)[:-1] == ["pip", "install"]
    project = tomllib.loads((workplace / shlex.split(install)[-1] / "pyproject.toml").read_text("utf-8"))["project"]
    shutil.copytree(workplace / "examples" / "support_agent", workplace / "runs", ignore=shutil.ignore_patterns("*.py"))
    (workplace / "runs" / "results.csv").unlink()
    (workplace / "runs" / "README.md").unlink()
    # a program for each entry point of this checkout, as an installer writes it
    programs = workplace / "programs"
    programs.mkdir()
    for name, entry in project["scripts"].items():
        module, function = entry.split(":")
        (programs / name).write_text(f"#!{sys.executable}\nfrom {module} import {function}\n{function}()\n", "utf-8")
        (programs / name).chmod(0o755)
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    for line in lines:
        done = subprocess.run(line, shell=True, env=environment, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    assert done.stdout.startswith("pass: P(pass^1 ≥ 0.5) = ")
    assert (workplace / "gate.xml").read_text(encoding="utf-8").count("<testcase") == 1


def test_the_tables_that_the_readme_shows_say_the_same(tmp_path: Path) -> None:
    """The README's two tables, 0/1 rows and counts, give the same outcomes of two agents."""
    tables = [block.text for block in blocks(ROOT / "README.md") if block.language == "csv"]
    assert len(tables) == 2
    for text in tables:
        path = tmp_path / "results.csv"
        path.write_text(text, encoding="utf-8")
        outcomes = ab.outcomes_from_table(path)
        assert outcomes["trials"].sum("task").values.tolist() == [2, 1]
        assert outcomes["successes"].sum("task").values.tolist() == [1, 1]


def test_the_readme_quotes_what_tau_bench_gives() -> None:
    """The README's table holds the plug-in, unbiased and posterior pass^4 of gpt-4o on tau-bench airline."""
    import pandas as pd

    solved = [c for c, tasks in enumerate((14, 12, 10, 4, 10)) for _ in range(tasks)]
    table = pd.DataFrame({"task": range(50), "successes": solved, "trials": 4})
    est = ab.estimate(ab.outcomes_from_table(table), k=4)
    baseline = est.baseline().query("metric == 'pass^4' and estimand == 'tasks'").set_index("estimator")
    posterior = est.summary().query("metric == 'pass^4' and estimand == 'population'").iloc[0]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, row in (
        ("plug-in", baseline.loc["plugin"]),
        ("unbiased", baseline.loc["unbiased"]),
        ("posterior", posterior),
    ):
        line = next(line for line in text.splitlines() if line.startswith(f"| {name}"))
        _, _, value, interval, _ = line.split("|", 4)
        digits = len(value.strip()) - 1
        quoted = [float(value), *map(float, interval.split(" to "))]
        assert quoted == pytest.approx([row["mean"], row["lower"], row["upper"]], abs=0.8 * 10**-digits), line


def test_the_front_page_quotes_the_example() -> None:
    """The table of docs/index.md has the example's rates and intervals in per cent."""
    est = ab.estimate(ab.outcomes_from_table(EXAMPLE / "results.csv"), k=(1, 3))
    lines = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").splitlines()
    for agent, table in est.summary().query("estimand == 'population'").groupby("agent"):
        rows = table.set_index("metric").loc[["pass^1", "pass^3"], ["mean", "lower", "upper"]]
        (quoted,) = (line for line in lines if line.startswith(f"| {agent}"))
        numbers = [int(number) for number in re.findall(r"(?<!v)\b\d+", quoted)]
        assert numbers == pytest.approx(100 * rows.to_numpy().ravel(), abs=0.6)


def test_the_citation_names_this_version() -> None:
    """CITATION.cff has the fields that its format requires, and the version of the package."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["version"] == ab.__version__


def test_the_readme_is_short() -> None:
    """The README fits two screens, and none of its three paths takes fifteen lines of Python."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    lengths = [len(block.text.splitlines()) for block in blocks(ROOT / "README.md") if block.language == "python"]
    assert len(lengths) == 3
    assert max(lengths) < 15


def test_commands_of_the_shell_exist() -> None:
    """Shell lines use make targets, extras, files and commands that there are."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    seen = set()
    for path in PAGES:
        for block in blocks(path):
            if block.language != "sh":
                continue
            for command in commands(block.text):
                words = command.words
                seen.add(command.program)
                place = f"{path.name}:{block.line}: {shlex.join(words)}"
                match command.program:
                    case "make":
                        assert {word for word in words[1:] if "=" not in word} <= targets, place
                    case "pip":
                        extras = [name for word in words for name in re.findall(r"^\.\[(.*)\]$", word)]
                        assert set(extras) <= set(PROJECT["optional-dependencies"]), place
                    case "agentic-bayes":
                        assert words[1] in subcommands(), place
                for word in words[1:]:
                    folder = word.split("/")[0]
                    if folder in ("benchmarks", "constraints", "docs", "examples", "notebooks", "tests"):
                        assert list(ROOT.glob(word)), f"{place}: no such file"
    assert {"make", "pip", "agentic-bayes"} <= seen


@cache
def subcommands() -> dict[str, set[str]]:
    """The commands of the command line, each with its options."""
    from typer.main import get_command

    from agentic_bayes.cli.app import app

    found = {}
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        inner = (one for part in getattr(command, "commands", {}).values() for one in part.params)
        found[name] = options | {option for parameter in inner for option in parameter.opts}
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    """Every relative link of a page names a file."""
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if not target.startswith(("https://", "#")):
            assert (path.parent / target.split("#")[0]).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_the_text_exist(path: Path) -> None:
    """Every `agentic-bayes` command that a page names exists, and has the options that are written with it."""
    text = path.read_text(encoding="utf-8")
    for name, rest in re.findall(r"agentic-bayes ([a-z]+)([^`\n]*(?:\\\n[^`\n]*)*)", text):
        if name in subcommands():
            options = set(re.findall(r"(?<!\S)--[a-z-]+", rest.split("#")[0]))
            assert options <= subcommands()[name] | {"--help"}, f"{path.name}: agentic-bayes {name}{rest}"
    assert set(re.findall(r"`agentic-bayes ([a-z]+)", text)) <= set(subcommands())


def test_the_architecture_page_lists_every_module() -> None:
    """docs/architecture.md has one line for each module, with its docstring; another docstring makes the page stale."""
    script = runpy.run_path(str(ROOT / "docs" / "extensions" / "modules.py"))
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert page == script["page"](), "out of date: run python docs/extensions/modules.py"
    listed = re.findall(r"^\| `([a-z0-9_/]+\.py)` \| (.+) \|$", page, re.MULTILINE)
    there = [path for path in PACKAGE.rglob("*.py") if "_examples" not in path.parts and path.name != "__init__.py"]
    assert {PACKAGE / name for name, _ in listed} == {*there, PACKAGE / "__init__.py"}
    assert len(listed) == len(there) + 1
