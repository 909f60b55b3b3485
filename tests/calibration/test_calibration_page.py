"""The page that `make calibrate` writes, from a study small enough to say nothing."""

from functools import cache

import calibrate
import pytest
from calibration import coverage, decisions, judge, results
from calibration.page import page

CELLS = (coverage.Cell(0.9, 0.0, 5, 1), coverage.Cell(0.7, 0.6, 20, 3))
ARGUMENTS = ["--size", "6", "--sets", "1", "--held-out", "3", "--processes", "1"]


@cache
def study(seed):
    """One small study; the sampler is replaced by nothing to compare, since compiling it takes longest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage, "ALL_CELLS", CELLS)
        patch.setattr(calibrate.agreement, "compare", lambda index, seed: ([_check(index)], True))
        return calibrate.study(calibrate.parsed([*ARGUMENTS, "--seed", str(seed)]))


def _check(index):
    return calibrate.agreement.Check(index, "ρ, agent 1", "mean", 4.5)


def test_the_same_seed_gives_the_same_page():
    """Two studies with one seed write the same text; another seed writes another."""
    first = page(study(1))
    study.cache_clear()
    assert page(study(1)) == first
    assert page(study(2)) != first


def test_a_smaller_study_says_so_in_its_first_lines():
    """Whoever reads the page sees that it is not the full form, its sizes, seed and versions."""
    head = page(study(1)).split("## ")[0]
    assert "REDUCED form: 6 data sets" in head
    assert "seed 1" in head
    assert "numpy" in head


def test_cells_that_fall_short_are_marked():
    """Every coverage below .90 is bold, ours or another's."""
    table = study(1).table
    assert (table["coverage"] < 0.9).any()
    text = page(study(1))
    for _, row in table.iterrows():
        share = f"{row['coverage']:.3f}"
        assert (f"**{share}** (" in text) if row["coverage"] < 0.9 else (f" {share} (" in text)


def test_every_cell_is_in_the_page():
    """Each estimand and metric has a table with a row per cell."""
    text = page(study(1))
    for estimand in coverage.ESTIMANDS:
        assert text.count(f"### {estimand}, ") == len(coverage.METRICS)
    assert text.count("| 20 | 3 | 0.6 | 0.7 |") == text.count("| 5 | 1 | 0 | 0.9 |") == 2 * len(coverage.METRICS)


def test_a_requirement_that_fails_is_a_failure_of_the_command(tmp_path, monkeypatch, capsys):
    """The page is written all the same, the failure is named in it, and the exit code is 1."""
    monkeypatch.setattr(calibrate, "study", lambda options: study(1))
    target = tmp_path / "calibration.md"
    assert calibrate.main([*ARGUMENTS, "--page", "intervals", "--output", str(target)]) == 1
    assert "| engines agree: at most 0 of 1 checks beyond 4 standard errors | 1 beyond; largest 4.50 | **no** |" in (
        target.read_text(encoding="utf-8")
    )
    assert "FAILS  engines agree" in capsys.readouterr().out


def test_the_verdicts_count_what_is_in_the_table():
    """The requirement on coverage looks at T ≥ 20, n ≥ 3, k ≤ n and ρ ≥ .2 only: six entries here."""
    found = next(v for v in results.verdicts(study(1)) if v.requirement.startswith("coverage at fixed truths"))
    assert " of 6 entries; " in found.found


def test_the_page_on_decisions(tmp_path, monkeypatch, capsys):
    """It has the requirements, every design of gates and labels, and fails the command where one is missed."""
    monkeypatch.setattr(decisions, "BARS", decisions.BARS[:1])
    monkeypatch.setattr(judge, "DESIGNS", judge.DESIGNS[:1])
    monkeypatch.setattr(decisions, "RULES", ({"at_least": 0.7, "looks": 2, "simulations": 100},))
    target = tmp_path / "decisions.md"
    code = calibrate.main([*ARGUMENTS, "--page", "decisions", "--decisions-output", str(target)])
    text = target.read_text(encoding="utf-8")
    assert (code == 1) == ("| **no** |" in text)
    assert "| pass^1 ≥ 0.7 | 0.2 | 30 × 3 |" in text
    assert "labels on random attempts, errors alike on all tasks | population | pass^1 |" in text
    assert "two equal agents: false" in capsys.readouterr().out
