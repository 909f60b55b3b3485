"""The site's sources: every public name has a place in the reference, every page is reached from the front page."""

import re
import runpy
from pathlib import Path

import pytest
from pages import ROOT

DOCS = ROOT / "docs"
REFERENCE = sorted((DOCS / "reference").glob("*.md"))


def stages_of(path: Path) -> list[str]:
    """The stages whose public names a page of the reference documents."""
    named = re.findall(r"^\.\. public-names:: (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return " ".join(named).split()


def test_every_public_name_is_on_one_page_of_the_reference() -> None:
    """Names come onto the pages by the stage that defines them, and every stage is on exactly one page."""
    documented = [stage for path in REFERENCE for stage in stages_of(path)]
    assert len(documented) == len(set(documented))
    extension = runpy.run_path(str(DOCS / "extensions" / "reference.py"))
    assert set(extension["HOME"].values()) == set(documented)


def test_the_reference_goes_down_the_hourglass() -> None:
    """The front page lists the pages of the reference in the order in which data go through the package."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    order = ["records", "evidence", "judges", "outcomes", "estimation", "decisions", "reports", "gaussia", "errors"]
    order.append("commands")
    assert re.findall(r"^reference/(\w+)$", text, re.MULTILINE) == order
    assert [path.stem for path in REFERENCE] == sorted(order)


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_every_page_is_in_the_contents(path: Path) -> None:
    """Every page is listed, by name or by a pattern, in the contents of the front page."""
    contents = re.findall(r"^```\{toctree\}\n(.*?)^```$", (DOCS / "index.md").read_text(encoding="utf-8"), re.M | re.S)
    listed = {line for block in contents for line in block.splitlines() if line and not line.startswith(":")}
    assert path.stem == "index" or any(path.match(f"{pattern}.md") for pattern in listed)


def test_which_method_quotes_the_calibration() -> None:
    """The shortfalls that the page names are those that calibration found."""

    def row(page: str, beginning: str) -> list[str]:
        lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
        (found,) = (line for line in lines if line.startswith(beginning))
        return [cell.strip(" *") for cell in found.strip("|").split("|")]

    text = " ".join((DOCS / "which_method.md").read_text(encoding="utf-8").split())
    _, _, entries, below, lowest = row("calibration.md", "| ρ = 0 | population |")
    _, _, of_tasks, below_of_tasks, _ = row("calibration.md", "| ρ = 0 | tasks |")
    assert f"in {below} of {entries} entries for `population`, {below_of_tasks} of {of_tasks} for `tasks`" in text
    assert f"down to {float(lowest):.2f}".replace("0.", ".") in text
    *_, lowest_once = row("calibration.md", "| ρ ≥ .2, n = 1 | tasks |")
    assert f"| one trial per task, `tasks` | down to {float(lowest_once):.2f}".replace(" 0.", " .") in text
    for gate, quoted in (("pass@3 ≥ 0.999", "fails wrongly in {}"), ("pass^3 ≥ 0.729", "which fails wrongly in {}")):
        *_, failed, _ = row("calibration_decisions.md", f"| {gate} |")
        lowest, highest = (round(100 * float(share)) for share in failed.split(" to "))
        assert quoted.format(f"{lowest} to {highest} %") in text
