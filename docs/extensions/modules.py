"""Writes the list of modules in docs/architecture.md from the first paragraph of each module's docstring.

Run it after adding, moving or describing a module: ``python docs/extensions/modules.py``. With ``--check`` it writes
nothing, and fails where the page is out of date.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "agentic_bayes"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- modules: begin -->\n", "<!-- modules: end -->\n"
# as data go through the package
ROOMS = (
    "numerics",
    "records",
    "evidence",
    "outcomes",
    "estimation",
    "judges",
    "decisions",
    "reports",
    "suites",
    "describe",
    "gaussia",
    "pytest_plugin",
    "cli",
)


def description(path: Path) -> str:
    """The first paragraph of a module's docstring, on one line of Markdown."""
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(docstring.partition("\n\n")[0].split()).replace("``", "`").replace("|", "\\|")


def rows(folder: Path) -> Iterator[str]:
    """One row for each module in a folder, then those of its folders, each below a row that names it."""
    for path in sorted(folder.glob("*.py")):
        if path.name != "__init__.py" or folder == PACKAGE:
            yield f"| `{path.relative_to(PACKAGE).as_posix()}` | {description(path)} |"
    for inner in sorted(path.parent for path in folder.glob("*/__init__.py")):
        if folder == PACKAGE or inner.name.startswith("_"):
            continue
        yield f"| **{inner.relative_to(PACKAGE).as_posix()}/** | **{description(inner / '__init__.py')}** |"
        yield from rows(inner)


def modules() -> str:
    """The whole list: the modules of the root, then one table for each room."""
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == set(ROOMS)
    text = ["", "| module | what it holds |", "|---|---|", *rows(PACKAGE), ""]
    for room in ROOMS:
        folder = PACKAGE / room
        text += [f"### {room}/", "", description(folder / "__init__.py"), ""]
        text += ["| module | what it holds |", "|---|---|", *rows(folder), ""]
    return "\n".join(text) + "\n"


def page() -> str:
    """The page with the list as it is today."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{modules()}{END}{after}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if PAGE.read_text("utf-8") == page() else f"{PAGE} is out of date: run python {__file__}")
    PAGE.write_text(page(), "utf-8")
