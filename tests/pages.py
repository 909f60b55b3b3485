"""Pages of the documentation for tests: their blocks, how each kind is run, and the list of what is not run."""

import contextlib
import glob
import io
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NUMBER = re.compile(r"-?(?:\d+\.\d+|\.\d+|\d+)")
# two stacks agree to this in a probability, and much better as a rule
TOLERANCE = 0.015

# Everything that pages show and tests do not run, with the reason. Programs:
NOT_RUN_PROGRAMS = {
    ".": "enters an environment, which the tests are in",
    "grep": "edits the list of versions",
    "make": "runs these tests, or takes minutes; CI runs its targets",
    "pip": "installs from a registry",
    "pre-commit": "installs a hook of git",
    "python3": "makes an environment",
    "python3.11": "makes an environment",
}
# Blocks, each marked in its page by the line `<!-- not run: REASON -->` above it:
NOT_RUN_BLOCKS = {
    "asks a paid model": "needs a key and a network, and costs money; the same calls are tested with written replies",
    "needs a cluster": "needs a scheduler of Dask; test_large_tables counts on a local one",
    "another tool's": "is written for the tool that the reader comes from, which is not installed here",
}


# Files that a page shows (```python name.py), each with the test module that runs it:
RUN_ELSEWHERE = {
    "covariate.py": "tests/estimation/test_covariates.py",
    "test_refund.py": "tests/pytest_plugin/test_pytest_plugin.py",
}


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the line where it begins, and why it is not run, if it is not."""

    language: str
    text: str
    line: int
    not_run: str | None = None


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    inside: list[str] | None = None
    language, start, reason = "", 0, None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if marker := re.fullmatch(r"<!-- not run: (.*) -->", line):
            reason = marker[1]
        elif line.startswith("```"):
            if inside is None:
                language, start, inside = line[3:].strip(), number, []
            else:
                found.append(Block(language, "\n".join(inside) + "\n", start, reason))
                inside, reason = None, None
        elif inside is not None:
            inside.append(line)
    assert inside is None, f"{path.name}: the block in line {start} has no end"
    assert reason is None, f"{path.name}: the last reason not to run a block stands above no block"
    return found


@dataclass(frozen=True)
class Command:
    """One command of a shell block, with the exit code that its comment states (`# exit 10`), else 0."""

    words: list[str]
    code: int = 0

    @property
    def program(self) -> str:
        """Name of the program."""
        return Path(self.words[0]).name or self.words[0]


def commands(text: str) -> Iterator[Command]:
    """The single commands of a shell block."""
    for line in text.replace("\\\n", " ").splitlines():
        stated = re.search(r"#.*?\bexit (\d+)", line)
        words: list[str] = []
        for word in [*shlex.split(line, comments=True), "&&"]:
            if word in ("&&", "|"):
                if words:
                    yield Command(words, int(stated[1]) if stated else 0)
                words = []
            else:
                words.append(word)


def run_page(path: Path, patch: pytest.MonkeyPatch) -> None:
    """Run all blocks of a page, one after the other, in the current folder."""
    runner = Runner(path, patch, {"__name__": f"page_{path.stem}"})
    for block in blocks(path):
        runner.run(block)


@dataclass
class Runner:
    """What the blocks of a page so far left behind, for the next one."""

    path: Path
    patch: pytest.MonkeyPatch
    names: dict[str, Any]
    printed: str | None = None

    def run(self, block: Block) -> None:
        """Run a block, or compare the output that it shows with what the last one printed."""
        place = f"{self.path.name}:{block.line}"
        if block.not_run is not None:
            assert block.not_run in NOT_RUN_BLOCKS, f"{place}: no such reason: {block.not_run!r}"
            self.printed = None
            return
        if name := re.match(r"# ([\w/-]+\.\w+)\n", block.text):  # the block is this file, which commands below it use
            Path(name[1]).parent.mkdir(parents=True, exist_ok=True)
            Path(name[1]).write_text(block.text, encoding="utf-8")
        match block.language:
            case "python":
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    exec(compile("\n" * block.line + block.text, str(self.path), "exec"), self.names)
                    for test in re.findall(r"^def (test_\w+)\(\)", block.text, re.MULTILINE):
                        self.names[test]()
                self.printed = out.getvalue()
            case "sh":
                self.printed = "".join(map(self._shell, commands(block.text)))
            case "text" if self.printed is not None:
                assert was_printed(block.text, self.printed), f"{place}: not printed; what was:\n{self.printed}"
            case "yaml":
                yaml.safe_load(block.text)
            case "text" | "csv":  # a picture in characters; a test of its own reads the table
                assert not re.search(r"^(agentic-bayes|pip|python|import|from) ", block.text, re.MULTILINE), place
            case file if file.startswith("python "):
                assert file.removeprefix("python ") in RUN_ELSEWHERE, f"{place}: no test module runs this file"
                self.printed = None
            case "json":
                json.loads(block.text)
            case "toml":
                tomllib.loads(block.text)
            case directive if re.fullmatch(r"\{[a-z-]+\}.*", directive):  # of Sphinx, which checks it
                pass
            case other:
                pytest.fail(f"{place}: a block must be python, sh, text, csv, yaml, json or toml, got {other!r}")

    def _shell(self, command: Command) -> str:
        arguments = [found for word in command.words[1:] for found in sorted(glob.glob(word)) or [word]]
        match command.program:
            case "agentic-bayes":
                return run_console(arguments, self.patch, code=command.code)
            case "pytest" | "python":
                module = ["-m", "pytest"] if command.program == "pytest" else []
                done = subprocess.run([sys.executable, *module, *arguments], capture_output=True, encoding="utf-8")
                assert done.returncode == command.code, f"{shlex.join(command.words)}\n{done.stdout}{done.stderr}"
                return done.stdout
            case program:
                assert program in NOT_RUN_PROGRAMS, f"{self.path.name}: {program} is neither run nor listed"
                return ""


def run_console(arguments: list[str], patch: pytest.MonkeyPatch, *, code: int = 0) -> str:
    """What the console entry point prints; it must end with the given code."""
    module, _, function = PROJECT["scripts"]["agentic-bayes"].partition(":")
    patch.setattr(sys, "argv", ["agentic-bayes", *arguments])
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            getattr(import_module(module), function)()
            ended: Any = 0
        except SystemExit as stop:
            ended = stop.code or 0
    assert ended == code, f"agentic-bayes {shlex.join(arguments)} ended with {ended}:\n{printed.getvalue()}"
    return printed.getvalue()


def was_printed(shown: str, printed: str) -> bool:
    """Whether a shown output stands in what was printed, however its lines are broken; probabilities may differ a
    little.
    """
    wanted, words = shown.split(), printed.split()
    starts = range(len(words) - len(wanted) + 1)
    return any(all(map(_agree, wanted, words[start : start + len(wanted)])) for start in starts)


def _agree(shown: str, printed: str) -> bool:
    if NUMBER.sub("#", shown) != NUMBER.sub("#", printed):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(abs(float(a) - float(b)) <= TOLERANCE if "." in a else a == b for a, b in pairs)
