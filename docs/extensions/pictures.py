"""Pictures of the page on plots: its code is run when the site is built, and each block is followed by what it drew."""

import contextlib
import io
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
from sphinx.application import Sphinx

PAGE = "docs/plots"
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "support_agent"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@contextlib.contextmanager
def workplace() -> Iterator[None]:
    """A folder with the files that the page names."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        shutil.copytree(EXAMPLE, Path("examples", "support_agent"))
        shutil.copy(EXAMPLE / "results.csv", folder)
        yield


def add_pictures(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put what every block drew below it."""
    if docname != PAGE:
        return
    from matplotlib import pyplot

    folder = Path(app.outdir, "_images", "plots")
    folder.mkdir(parents=True, exist_ok=True)
    names: dict[str, Any] = {}

    def drawn(block: re.Match[str]) -> str:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(block[1], docname, "exec"), names)
        pictures = []
        for number in pyplot.get_fignums():
            file = f"{block.start()}-{number}.png"
            pyplot.figure(number).savefig(folder / file, dpi=100)
            pictures.append(f'<img src="../_images/plots/{file}" alt="what this code draws">')
        pyplot.close("all")
        return "\n".join([block[0], "", *pictures, ""])

    with workplace(), matplotlib.rc_context({"backend": "agg"}):
        source[0] = BLOCK.sub(drawn, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen for the page."""
    app.connect("source-read", add_pictures)
    return {"parallel_read_safe": False}
