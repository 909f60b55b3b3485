"""The frame of the command line: which modules a command loads, --version, completion, shared options."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import agentic_bayes as ab
from agentic_bayes.cli.app import MODULES, app
from agentic_bayes.cli.exits import exit_code
from agentic_bayes.cli.options import OutcomeOptions, QuestionOptions, parse_rope, with_groups
from agentic_bayes.errors import InvalidArgument

ROOT = Path(__file__).resolve().parents[2]
LOADED = """
import atexit, gc, sys
atexit.register(lambda: print(gc.get_freeze_count(), *sorted(sys.modules), file=sys.stderr))  # the last thing to run
from agentic_bayes.cli.app import main
for arguments in " ".join(sys.argv[1:]).split(" and "):
    sys.argv[1:] = arguments.split()
    try:
        main()
    except SystemExit:
        pass
"""
HEAVY = {"dask", "scipy.optimize", "scipy.stats", "scipy.interpolate"}
HEAVY |= {"pymc", "nutpie", "arviz", "matplotlib", "langchain_core"}
ALWAYS = {"agentic_bayes.cli.app", "agentic_bayes.cli.exits", "agentic_bayes.cli.output"}


@pytest.mark.parametrize(
    ("arguments", "modules"),
    [(("--version",), set()), (("rank", "--help"), {"decide", "options"}), (("list", "--help"), {"suite", "options"})],
)
def test_a_command_loads_its_own_module_only(arguments, modules):
    """Of the modules with commands, only that of the command in question is imported."""
    found = {name for name in loaded(*arguments) if name.startswith("agentic_bayes.cli.")}
    assert found == ALWAYS | {f"agentic_bayes.cli.{name}" for name in modules}


def loaded(*arguments: str) -> set[str]:
    """Every module that is imported by a command."""
    return looked_at(*arguments)[1]


def looked_at(*arguments: str) -> tuple[int, set[str]]:
    """How many objects a command leaves out of the search for garbage at exit, and every module that it imports."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
    )
    frozen, *modules = done.stderr.splitlines()[-1].split()
    return int(frozen), set(modules)


def table_with_a_crash(folder: Path) -> str:
    """Results of two agents on six tasks, of which one trial crashed."""
    table = folder / "results.csv"
    rows = [f"{agent},t{i},{j},{int(j < i)}," for agent in "xy" for i in range(6) for j in range(5)]
    table.write_text("\n".join(["agent,task,trial,correct,error", *rows, "x,t0,5,,crashed"]))
    return str(table)


def test_an_estimate_of_a_table_starts_and_ends_without_what_it_does_not_use(tmp_path):
    """No sampler, pictures, Dask (which xarray imports), optimisers, conversations, runs, decisions; no collection."""
    table = table_with_a_crash(tmp_path)
    unused = HEAVY.copy()
    ours = (
        "records.formats",
        "records.model",
        "evidence.evidence",
        "evidence.tools",
        "suites.runner",
        "suites.results",
    )
    ours += ("decisions", "estimation.engines.nuts", "estimation.methods.hierarchical", "estimation.methods.judged")
    unused |= {f"agentic_bayes.{name}" for name in ours}
    frozen, modules = looked_at("estimate", table, "--k", "1", "--errors", "bounds")
    assert modules & (unused | {"xarray"}) == {"xarray"}
    assert frozen > 100_000


def test_other_commands_on_a_table_load_nothing_heavy(tmp_path):
    """Describing it, crashes as failures, and a gate that asks what the missing trials would change need no Dask."""
    table = table_with_a_crash(tmp_path)
    gate = f"gate {table} --agent x --at-least 0.5 --max-missing 0"
    assert loaded(f"describe {table} and rank {table} --errors fail and {gate}") & (HEAVY | {"xarray"}) == {"xarray"}


def test_version():
    """--version prints the version of the package."""
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"agentic-bayes {ab.__version__}\n")


def completed(words: str) -> list[str]:
    """What bash offers after these words."""
    environment = {
        "_AGENTIC_BAYES_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-m", "agentic_bayes"],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=True,
    )
    return done.stdout.split()


def test_bash_completes_commands_and_options():
    """After the name of the program come the commands, after a command its options, of a group too."""
    assert set(completed("agentic-bayes ")) == set(MODULES)
    assert completed("agentic-bayes ga") == ["gate"]
    assert {"--at-least", "--agent", "--agents"} <= set(completed("agentic-bayes gate --a"))
    assert set(completed("agentic-bayes cache ")) == {"list", "clear", "check", "repair"}


def test_completion_can_be_shown(monkeypatch):
    """--show-completion prints the script that a shell loads."""
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # which shell is said, not guessed
    done = CliRunner().invoke(app, ["--show-completion", "bash"], prog_name="agentic-bayes")
    assert done.exit_code == 0, done.output
    assert "_AGENTIC_BAYES_COMPLETE=complete_bash" in done.output


def test_a_group_of_options_becomes_options():
    """Each field of a dataclass is an option of the command, which receives the dataclass."""
    received = []
    program = typer.Typer()

    @program.command()
    @with_groups
    def command(
        name: str,
        *,
        ask: QuestionOptions,
        read: OutcomeOptions,
        number: Annotated[int, typer.Option(help="A number.")] = 3,
    ) -> None:
        """Do nothing."""
        received.append((name, ask, read, number))

    done = CliRunner().invoke(program, ["x", "--metric", "pass@2", "--unit", "question", "--number", "4"])
    assert done.exit_code == 0, done.output
    assert received == [("x", QuestionOptions(metric="pass@2"), OutcomeOptions(unit="question"), 4)]
    assert received[0][2].counting() == {"unit": "question"}


@pytest.mark.parametrize(
    ("text", "rope"), [("0.02", 0.02), ("-0.01,0.05", (-0.01, 0.05)), ("-0.02, 0", (-0.02, 0.0)), ("1e-2", 0.01)]
)
def test_a_rope_is_one_number_or_two(text, rope):
    """A half-width, or the two ends."""
    assert parse_rope(text) == rope


@pytest.mark.parametrize("text", ["", "wide", "1,2,3", "0.1,"])
def test_anything_else_is_no_rope(text):
    """The message says what is allowed and what came."""
    with pytest.raises(InvalidArgument, match="--rope must be a number or LOW,HIGH, got"):
        parse_rope(text)


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [((), 0), (("pass",), 0), (("pass", "inconclusive"), 11), (("inconclusive", "fail"), 10), (("continue",), 11)],
)
def test_the_worst_verdict_decides_the_exit_code(verdicts, code):
    """Fail before inconclusive before pass."""
    assert exit_code(*verdicts) == code
