"""Pictures of the plots: the code of their page is run when the site is built, and what it draws is shown there and in
the gallery.
"""

import contextlib
import io
import re
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
from sphinx.application import Sphinx

PAGE, GALLERY = "docs/plots", "docs/gallery"
ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "support_agent"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
ENTRIES = re.compile(r"(?:^- \[.+\]\(plots\.md#.+\): .+\n)+", re.MULTILINE)
ENTRY = re.compile(r"- \[(?P<name>.+)\]\(plots\.md#(?P<section>.+)\): (?P<question>.+)\n")


@contextlib.contextmanager
def workplace() -> Iterator[None]:
    """A folder with the files that the page names."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        shutil.copytree(EXAMPLE, Path("examples", "support_agent"))
        shutil.copy(EXAMPLE / "results.csv", folder)
        yield


@cache
def pictures(folder: Path) -> dict[int, list[str]]:
    """Draw everything on the page of plots: the files by where their block begins, each named after its section."""
    from matplotlib import pyplot

    text = (ROOT / f"{PAGE}.md").read_text(encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    names: dict[str, Any] = {}
    drawn: dict[int, list[str]] = {}
    with workplace(), matplotlib.rc_context({"backend": "agg"}):
        for block in BLOCK.finditer(text):
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block[1], PAGE, "exec"), names)
            heading = (HEADING.findall(text[: block.start()]) or ["first"])[-1]
            section = re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-"))  # as in links to it
            drawn[block.start()] = []
            for number in pyplot.get_fignums():
                file = f"{section}-{number}.png"
                pyplot.figure(number).savefig(folder / file, dpi=100)
                drawn[block.start()].append(file)
            pyplot.close("all")
    return drawn


def add_pictures(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put what every block drew below it; in the gallery, make every entry a picture that leads to its section."""
    if docname not in (PAGE, GALLERY):
        return
    drawn = pictures(Path(app.outdir, "_images", "plots"))

    def with_pictures(block: re.Match[str]) -> str:
        shown = (f'<img src="../_images/plots/{file}" alt="what this code draws">' for file in drawn[block.start()])
        return "\n".join([block[0], "", *shown, ""])

    def card(entry: re.Match[str]) -> str:
        file = f"{entry['section']}-1.png"
        assert any(file in files for files in drawn.values()), f"{docname}: no picture in {entry['section']}"
        picture = f'<img src="../_images/plots/{file}" alt="" loading="lazy">'
        return f'<a href="plots.html#{entry["section"]}">{picture}<b>{entry["name"]}</b> {entry["question"]}</a>\n'

    if docname == PAGE:
        source[0] = BLOCK.sub(with_pictures, source[0])
    else:
        source[0] = ENTRIES.sub(lambda found: f'<div class="gallery">\n{ENTRY.sub(card, found[0])}</div>\n', source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen for the pages."""
    app.connect("source-read", add_pictures)
    return {"parallel_read_safe": False}
