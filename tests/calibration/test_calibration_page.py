"""The calibration pages: the committed ones match their tables, and `make calibrate` writes them from studies."""

import re
from functools import cache
from itertools import product
from pathlib import Path

import calibrate
import pandas as pd
import pytest
from calibration import coverage, crossed, decisions, importance, judge, results
from calibration.models import models_page
from calibration.page import bad_entries, decisions_page, intervals_page
from calibration.tables import Tables, interval_tables

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {
    "intervals": ("calibration.md", intervals_page),
    "decisions": ("calibration_decisions.md", decisions_page),
    "models": ("calibration_models.md", models_page),
}
CELLS = (coverage.Cell(0.9, 0.0, 5, 1), coverage.Cell(0.7, 0.6, 20, 3))
ARGUMENTS = ["--size", "3", "--sets", "1", "--held-out", "3", "--processes", "1"]


def committed(name):
    """The tables of the committed run."""
    return Tables.load(DOCS / "calibration" / name)


@pytest.mark.parametrize("name", PAGES)
def test_a_committed_page_says_what_its_tables_say(name):
    """Every number of a page comes from its tables: writing it from them gives the same text."""
    tables, (page, render) = committed(name), PAGES[name]
    assert render(tables) == (DOCS / page).read_text(encoding="utf-8")
    assert tables.run["size"] >= (200 if name == "models" else 1000)


@pytest.mark.parametrize("name", PAGES)
def test_the_tables_survive_a_round_trip(name, tmp_path):
    """Saving the loaded tables writes the committed files byte by byte, and the page links each of them."""
    committed(name).save(tmp_path)
    folder = DOCS / "calibration" / name
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in folder.iterdir()}
    page = (DOCS / PAGES[name][0]).read_text(encoding="utf-8")
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()
        assert f"({path.relative_to(DOCS).as_posix()})" in page


def test_the_coverage_table_has_every_cell():
    """Each of the 81 cells has a row for every estimand, metric and method: sorted by them, none missing or extra."""
    table = committed("intervals").frames["fixed_truths"]
    expected = set()
    for cell, estimand, metric, method in product(
        coverage.ALL_CELLS, coverage.ESTIMANDS, coverage.METRICS, coverage.METHODS
    ):
        of_unbiased_values = method in ("clustered t", "logit-t", "bootstrap")
        if (of_unbiased_values and metric.k > cell.trials) or (
            method == "ours hdi" and (metric.k != coverage.HDI_AT or cell.rho)
        ):
            continue
        expected.add((estimand, str(metric), cell.tasks, cell.trials, cell.rho, cell.mu, method))
    keys = ["estimand", "metric", "T", "n", "rho", "mu", "method"]
    found = list(table[keys].itertuples(index=False, name=None))
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert len(expected) == 3186


def test_the_tables_agree_with_each_other():
    """The requirements, the averages and the list of bad cells follow from the table of all cells."""
    tables = committed("intervals").frames
    fixed = tables["fixed_truths"].assign(k=lambda d: d["metric"].str[5:].astype(int))
    held = fixed.query("T >= 20 and n >= 3 and k <= n and rho >= 0.2")
    for row in tables["fixed_truths_averages"].itertuples():
        part = held.query("estimand == @row.estimand and metric == @row.metric and method == @row.method")
        assert part["coverage"].mean() == pytest.approx(row.coverage, abs=0.0006)
        assert part["coverage"].min() == pytest.approx(row.lowest, abs=1e-9)
        assert part["width"].mean() == pytest.approx(row.width, abs=0.0101)
    ours = held[held["method"] == "ours"]["coverage"]
    requirements = tables["requirements"].set_index("requirement")["result"]
    (coverage_line,) = requirements[requirements.index.str.startswith("fixed truths")]
    assert coverage_line == f"lowest {ours.min():.3f}; {(ours < 0.9).sum()} of {ours.size} entries below"
    assert tables["requirements"]["holds"].all()


def test_the_page_lists_every_bad_cell():
    """Each of our own entries below .90, and no other, stands in the list, in the row of its cell."""
    page = (DOCS / "calibration.md").read_text(encoding="utf-8")
    section = page.split("### Every entry of ours below .90")[1].split("\n## ")[0]
    header, _, *rows = (line for line in section.splitlines() if line.startswith("|"))
    names = [cell.strip() for cell in header.strip("|").split("|")]
    listed = set()
    for row in rows:
        cells = dict(zip(names, (cell.strip() for cell in row.strip("|").split("|")), strict=True))
        place = tuple(float(cells.pop(name)) for name in ("T", "n", "ρ", "μ"))
        listed |= {(*name.split(" "), *place, float(value.strip("*"))) for name, value in cells.items() if value}
    bad = bad_entries(committed("intervals").frames["fixed_truths"])
    columns = ["estimand", "metric", "T", "n", "rho", "mu", "coverage"]
    assert listed == set(bad[columns].itertuples(index=False, name=None))
    assert len(listed) == len(bad) == 26


def test_every_method_below_the_bar_is_marked():
    """Every coverage below .90 that stands with a width is bold, ours or another's, and no other is."""
    marked = 0
    for page in ("calibration.md", "calibration_decisions.md"):
        text = (DOCS / page).read_text(encoding="utf-8")
        text = re.sub(r"^\| rule \|.*?\n\n", "", text, flags=re.MULTILINE | re.DOTALL)  # shares of a rule, not coverage
        for bold, value in re.findall(r"(\*\*)?(0\.\d{3})(?:\*\*)?(?=, lowest| \(\d)", text):
            assert bool(bold) == (float(value) < 0.9), value
            marked += bool(bold)
    assert marked == 45


@cache
def study(seed):
    """One small study; the sampler is replaced by nothing to compare, since compiling it takes longest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage, "ALL_CELLS", CELLS)
        patch.setattr(calibrate.agreement, "compare", lambda index, seed: ([_check(index)], True))
        return calibrate.study(calibrate.parsed([*ARGUMENTS, "--seed", str(seed)]))


def _check(index):
    return calibrate.agreement.Check(index, "ρ, agent 1", "mean", 4.5)


def written(seed, folder):
    """The page of a small study, through its files."""
    run = calibrate.run_settings(calibrate.parsed([*ARGUMENTS, "--seed", str(seed)]))
    interval_tables(run, study(seed)).save(folder)
    return intervals_page(Tables.load(folder))


def test_the_same_seed_gives_the_same_page(tmp_path):
    """Two studies with one seed write the same text."""
    first = written(1, tmp_path / "first")
    study.cache_clear()
    assert written(1, tmp_path / "again") == first


def test_a_smaller_study_says_so_at_the_top(tmp_path):
    """The first lines of the page state that it is not the full run, its sizes, seed and versions."""
    head = written(1, tmp_path).split("## ")[0]
    assert "REDUCED run: 3 simulated data sets" in head
    assert "seed 1" in head
    assert "numpy" in head


def test_a_study_writes_every_entry_of_its_cells(tmp_path):
    """The file has the coverage of each row of the study, and says where a method has no interval."""
    written(1, tmp_path)
    table, file = study(1).table, pd.read_csv(tmp_path / "fixed_truths.csv")
    assert len(table) == len(file)
    assert sorted(file["coverage"]) == pytest.approx(sorted(table["coverage"]), abs=0.0005)
    assert file["exists"].notna().sum() == (table["exists"] < 1).sum() > 0


def test_a_requirement_that_fails_is_a_failure_of_the_command(tmp_path, monkeypatch, capsys):
    """The page is still written, it names the failure, and the exit code is 1."""
    small = study(1)  # before it is replaced: where no other test ran first, it is made here
    monkeypatch.setattr(calibrate, "study", lambda options: small)
    assert calibrate.main([*ARGUMENTS, "--page", "intervals", "--docs", str(tmp_path)]) == 1
    failure = "engines agree: at most 0 of 1 checks differ by more than 4 standard errors"
    text = (tmp_path / "calibration.md").read_text(encoding="utf-8")
    assert f"| {failure} | 1 does; largest 4.50 | **no** |" in text
    assert f"FAILS  {failure}" in capsys.readouterr().out
    assert text == intervals_page(Tables.load(tmp_path / "calibration" / "intervals"))


def test_the_verdicts_count_the_entries_of_the_table():
    """The requirement on coverage looks at T ≥ 20, n ≥ 3, k ≤ n and ρ ≥ .2 only: six entries here."""
    verdict = next(v for v in results.verdicts(study(1)) if v.requirement.startswith("fixed truths"))
    assert " of 6 entries " in verdict.result


def test_the_page_on_decisions(tmp_path, monkeypatch, capsys):
    """It has the requirements, gates, rules and labels, and fails the command where a requirement is missed."""
    monkeypatch.setattr(decisions, "BARS", decisions.BARS[:1])
    monkeypatch.setattr(decisions, "ALIKE", decisions.ALIKE[-1:])
    monkeypatch.setattr(decisions, "BIG", 100_000)  # the true differences to a thousandth
    monkeypatch.setattr(judge, "DESIGNS", judge.DESIGNS[:1])
    monkeypatch.setattr(decisions, "RULES", ({"at_least": 0.7, "looks": 2, "simulations": 100},))
    code = calibrate.main([*ARGUMENTS, "--size", "1", "--page", "decisions", "--docs", str(tmp_path)])
    text = (tmp_path / "calibration_decisions.md").read_text(encoding="utf-8")
    assert (code == 1) == ("| **no** |" in text)
    assert "\n| pass^1 ≥ 0.7 | " in text
    assert "made by `monitor` for 2 looks" in text
    assert "labels on random attempts, same error rates for all tasks | population | pass^1 |" in text
    gates = pd.read_csv(tmp_path / "calibration" / "decisions" / "gates.csv")
    assert gates[["metric", "bar", "rho", "tasks", "trials"]].values.tolist() == [
        ["pass^1", 0.7, 0.2, 30, 3],
        ["pass@3", 0.999, 0.0, 50, 5],
    ]
    assert "two equal agents: at most .07" in capsys.readouterr().out


def test_the_page_on_paired_and_grouped_estimates(tmp_path, monkeypatch, capsys):
    """It has every section of a small study, marks what falls short, and fails the command where it does."""
    monkeypatch.setattr(crossed, "TRUTHS", (crossed.TRUTHS[0], crossed.TRUTHS[-1]))
    for name, value in {"SIZES": ((2, 20, 3),), "SEEDS": 2, "AGENTS": (2, 3), "TASKS": (8, 12)}.items():
        monkeypatch.setattr(importance, name, value)
    code = calibrate.main([*ARGUMENTS, "--size", "1", "--sampled", "1", "--page", "models", "--docs", str(tmp_path)])
    text = (tmp_path / "calibration_models.md").read_text(encoding="utf-8")
    assert (code == 1) == ("| **no** |" in text) == ("FAILS" in capsys.readouterr().out)
    assert text.startswith("# Calibration of paired and grouped estimates\n")
    assert "REDUCED run: 1 simulated data sets" in text
    assert "\n| difference of tasks pass^3 | " in text
    assert "\n| new group pass^3 | " in text
    assert "\n| σ = 0, ρ = 0; 20 × 3 | tasks pass@3 | " in text
    table = pd.read_csv(tmp_path / "calibration" / "models" / "fixed_truths.csv")
    assert len(table) == 2 * 2 * 3
    low = (table[["crossed", "hierarchical", "difference"]] < 0.9).sum().sum()
    section = text.split("## Fixed truths")[1].split("\n## ")[0]
    assert section.count("| **0.") == low
