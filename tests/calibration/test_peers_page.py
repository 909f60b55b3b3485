"""The page of peers: the committed one is what its results say, and its sentences follow from the numbers."""

import copy
import json
import re
from functools import cache
from pathlib import Path
from statistics import mean

import numpy as np
import pandas as pd
import pytest
from peer_study import growth, intervals, page
from peer_study.environments import PEERS
from peer_study.judging import REPLIES

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "peers.md").read_text(encoding="utf-8")


@cache
def results():
    return json.loads((DOCS / "peers" / "results.json").read_text(encoding="utf-8"))


def said(sentence):
    """Whether the page has this line in a list."""
    return f"- {sentence}\n" in TEXT


def test_the_committed_page_says_what_its_results_say():
    """Every number of the page comes from results.json: writing it from there gives the same text."""
    assert page.page(results()) == TEXT


def test_every_peer_has_a_row_with_its_version_or_the_reason_why_it_is_missing():
    """Nobody is dropped: a peer that could not be installed stays on the page."""
    rows = {row["peer"]: row for row in results()["peers"]["rows"]}
    assert list(rows) == [peer.name for peer in PEERS]
    for name, row in rows.items():
        assert f"| {name} | {row['version'] or 'not installed: ' + row['reason']} |" in TEXT
        assert bool(row["version"]) != bool(row["reason"])


@pytest.mark.parametrize("estimand", ["population", "tasks"])
def test_the_widths_are_compared_with_the_narrowest_interval_that_covers(estimand):
    """Recomputed without pandas: our mean and lowest coverage, the narrowest other that covers .94, who is wider."""
    for metric in intervals.METRICS:
        peers = {}
        for row in results()["intervals"]["rows"]:
            if row["estimand"] == estimand and row["metric"] == metric:
                peers.setdefault(row["peer"], []).append((row["coverage"], row["width"], row["sets"]))
        coverage = {name: mean(row[0] for row in rows) for name, rows in peers.items()}
        width = {name: mean(row[1] for row in rows) for name, rows in peers.items()}
        sets = {name: rows[0][2] for name, rows in peers.items()}
        others = [
            name for name in peers if name != page.OURS and coverage[name] >= 0.94 and sets[name] == max(sets.values())
        ]
        (line,) = [line for line in page.width_verdicts(frame(), estimand) if line.startswith(f"{metric}:")]
        assert said(line)
        assert (
            f"cover {coverage[page.OURS]:.3f} on average, at least {min(row[0] for row in peers[page.OURS]):.3f}"
            in line
        )
        if not others:
            assert "no other's" in line
            continue
        best = min(others, key=width.__getitem__)
        ratio = width[page.OURS] / width[best]
        word = "within 1 % as wide as" if abs(ratio - 1) <= 0.01 else "wider than" if ratio > 1 else "narrower than"
        assert f"{word} those of {best}," in line


def frame():
    return pd.DataFrame(results()["intervals"]["rows"])


def test_a_loss_would_be_shown_as_one():
    """With our intervals twice as wide and our times a thousand times as long, the sentences turn against us."""
    worse = copy.deepcopy(results())
    rows, costs = worse["intervals"]["rows"], worse["intervals"]["costs"]
    for row in rows:
        row["width"] *= 2 if row["peer"] == page.OURS else 1
    for row in costs:
        row["seconds"] *= 1e3 if row["peer"] == page.OURS else 1
    assert all("wider than" in line for line in page.width_verdicts(pd.DataFrame(rows), "population"))
    assert page.cost_verdicts(costs)[1] == "Slower than ours: none."
    calls = [1, 5, 10]
    grown = {
        "estimates": {"held": [1.0, 2.0, 6.1], "calls": calls},
        "judgements": {"held": [1.0, 2.0, 6.0], "calls": calls},
    }
    assert [("**more than**" in line) for line in page.memory_verdicts(grown)] == [True, False]


def test_replies_are_counted_from_the_table():
    """Per package: rows of the table in bold are those that are not counted as right, and NaN is a wrong number."""
    malformed = results()["replies"]["malformed"]
    for name, line in zip(malformed, page.reply_verdicts(malformed), strict=True):
        assert said(line)
        right = sum(malformed[name][reply] == score for reply, (_, score) in REPLIES.items())
        assert line.startswith(f"{name}: {right} of {len(REPLIES)} as a reader would")
    made_up = dict.fromkeys(REPLIES, "nan")
    assert f"0 of {len(REPLIES)} as a reader would, {len(REPLIES)} as a wrong" in page.reply_verdicts({"x": made_up})[0]


def test_every_other_sentence_is_on_the_page_too():
    """Held-out data, judges, costs and memory: the sentences that the results give are those of the page."""
    found = results()
    sentences = (
        *page.held_out_verdicts(found["held_out"]["rows"]),
        *page.judged_verdicts(found["judged"]["rows"]),
        *page.cost_verdicts(found["intervals"]["costs"]),
        *page.memory_verdicts(found["growth"]["memory"]),
        *page.file_verdicts(found["growth"]["files"]),
    )
    assert all(map(said, sentences))


def test_coverage_below_the_bar_is_bold_and_no_other_is():
    """Every coverage that stands with a width is bold below .90, ours or another's."""
    shown = re.findall(r"(\*\*)?(0\.\d{3}|1\.000)(?:\*\*)?(?=, lowest| \(\d| \| 0\.\d{3} \| )", TEXT)
    assert len(shown) > 200
    assert all(bool(bold) == (float(value) < 0.9) for bold, value in shown)


def test_a_slope_is_that_of_a_straight_line_of_logs():
    """Times that grow with the square of a size have slope 2, constant ones 0."""
    name = "tasks, one agent"
    sizes = np.array([size[1] for size in growth.GROWING[name][1]])
    assert growth.slope(name, (sizes**2).tolist()) == pytest.approx(2)
    assert growth.slope(name, [3.0] * len(sizes)) == pytest.approx(0, abs=1e-12)


def test_coverage_counts_the_sets_that_have_an_interval():
    """Two data sets under each truth, one without an interval: coverage and width are those of the other."""
    kinds = len(intervals.TRUTHS)
    truth = np.full((kinds, 2, 3), 0.5)
    samples = intervals.Samples(5, [], np.tile([0, 1], (kinds, 1)), truth, truth[:, 0])
    values = [{"population": [[0.4, 0.7], [0.6, 0.7], [None, None]]}, {"population": [[None, None]] * 3}]
    rows = intervals.covered(samples, values)
    assert {(row["metric"], row["coverage"], row["width"], row["exists"]) for row in rows} == {
        ("pass^1", 1.0, 0.3, 0.5),
        ("pass^3", 0.0, 0.1, 0.5),
    }
