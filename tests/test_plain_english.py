"""A few phrases that no native speaker would write, and that crept in before: none is in a text that a person meets."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
MODULES = [path for path in (ROOT / "agentic_bayes").rglob("*.py") if "_examples" not in path.parts]
# pattern → what to write
PHRASES = {
    r"\bbeside\b": "next to, or compared with",
    r"\b(?:go|goes|going) on (?:with|where)\b": "continues, resumes",
    r"\ball the same\b": "nevertheless, still, or nothing",
    r"\bfrom (?:here|there|this \w+) on\b": "at least, or: from here",
    r"\bthat (?:is|are) there\b": "that exist, or nothing",
    r"\bwhat is no \w+": "what is not a …",
    r"\b(?:say|says|said|tell|tells) (?:nothing|little) of\b": "says nothing about",
    r"\b(?:hold|holds|held) the truth\b": "contains the truth",
}


def phrases(text: str) -> Iterator[str]:
    """The phrases in a text that should be put in plain English, each with a suggestion."""
    words = " ".join(text.split())
    for pattern, better in PHRASES.items():
        for found in re.finditer(pattern, words, re.IGNORECASE):
            yield f"…{words[max(0, found.start() - 30) : found.end() + 30]}…: {better}"


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings, messages and help texts of a module, each with its line."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def test_modules_are_in_plain_english() -> None:
    """No docstring, message or help text holds one of the phrases."""
    problems = [
        f"{path.relative_to(ROOT)}:{line} {problem}"
        for path in MODULES
        for line, text in strings(path)
        for problem in phrases(text)
    ]
    assert problems == []


def test_pages_are_in_plain_english() -> None:
    """No page holds one of the phrases."""
    assert [f"{path.name}: {problem}" for path in PAGES for problem in phrases(path.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    "text",
    [
        "the frequentist baseline beside it",
        "the same command goes on with the run",
        "what is no number is refused",
        "all the same, it counts",
        "an answer is right from this score on",
        "leaves out the files that are there",
        "one task says nothing of others",
        "how often an interval holds the truth",
    ],
)
def test_a_phrase_is_found(text: str) -> None:
    """Each of these is found, also across the end of a line; ordinary English passes."""
    assert len(list(phrases(text.replace(" ", "\n")))) == 1
    assert not list(phrases("Besides, the run continues where it stopped, and there is no file of that name."))
