"""Which of an Inspect log's scorers counts, what becomes of the others, and scores on other scales."""

from pathlib import Path

import pytest

import agentic_bayes as ab
from agentic_bayes.errors import DoubtfulRecords, RecordsError

FILES = Path(__file__).parent / "files"
MISSING = FILES / "cases" / "inspect_missing_scorer.json"
RATED = FILES / "cases" / "inspect_scale_1_to_10.json"
DICTS = FILES / "inspect" / "dict_scorer.json"


def counts(evidence, indicator="answer"):
    """Successes, trials, unscored and errored over all tasks."""
    found = ab.count_outcomes(evidence, indicator=indicator).sum("task").isel(agent=0)
    return tuple(int(found[name]) for name in ("successes", "trials", "unscored", "errored"))


def test_a_scorer_is_chosen_by_name_and_a_sample_without_it_is_unscored():
    """Sample 2 has no score of `strict`: `lenient` does not take its place, and is a metric of its own."""
    evidence = ab.assess(ab.read_conversations(MISSING, scorer="strict"), judge=ab.RecordedJudge())
    assert counts(evidence) == (0, 2, 1, 0)
    assert counts(evidence, "lenient") == (3, 3, 0, 0)
    assert [row.unscored_reason for row in evidence.rows][1] == (
        "no recorded score: scorer 'strict' scored other records, but not this one"
    )


def test_of_several_scorers_none_counts_without_a_choice():
    """The first one is a guess: no score counts, the reason names them all, and each of them is a metric."""
    with pytest.warns(DoubtfulRecords, match="several scores: choose scorer='strict' or 'lenient'"):
        evidence = ab.assess(ab.read_conversations(MISSING), judge=ab.RecordedJudge())
    assert "choose scorer='strict' or 'lenient'" in evidence.rows[0].unscored_reason
    assert counts(evidence, "strict") == (0, 2, 1, 0)
    assert counts(evidence, "lenient") == (3, 3, 0, 0)
    assert evidence.rows[1].metrics["strict"] == ab.Unscored("no score 'strict' was recorded")


def test_a_scorer_that_no_sample_has_is_refused_with_those_that_are_there():
    """A slip of the pen must not become a log without scores."""
    with pytest.raises(RecordsError, match="no record has a score 'stirct': did you mean 'strict'"):
        ab.read_conversations(MISSING, scorer="stirct")


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_scores_off_the_scale_are_refused_as_a_whole_with_the_way_to_give_one(on_error):
    """From 1 to 10, a 1 is the worst score, not the best: no sample may be read as if it were."""
    with pytest.raises(
        RecordsError, match=r"must be in \[0, 1\], got 2 at samples\[2\] \(and 4 more\).*scale=\(1, 10\)"
    ):
        ab.read_conversations(RATED, on_error=on_error)


def test_the_ends_of_a_scale_become_0_and_1():
    """A score of 1 out of 1 to 10 is 0."""
    found = [c.recorded_score for c in ab.read_conversations(RATED, scale=(1, 10))]
    assert found == pytest.approx([0, 0, 1 / 9, 8 / 9, 1, 7 / 9, 6 / 9, 0])
    with pytest.raises(RecordsError, match=r"must be in \[1, 5\], got 9 at samples\[3\]"):
        ab.read_conversations(RATED, scale=(1, 5))


@pytest.mark.parametrize(
    ("scorer", "score", "others"),
    [("dicty.a", 1, {"dicty.b": 0.5, "includes": 0}), ("includes", 0, {"dicty.a": 1, "dicty.b": 0.5})],
)
def test_a_value_of_a_scorer_that_gives_several_is_reached_by_its_name(scorer, score, others):
    """A file that Inspect wrote: one scorer gives an object with two values, another gives C or I."""
    found = list(ab.read_conversations(DICTS, scorer=scorer))
    assert [c.recorded_score for c in found] == [None if c.error else score for c in found]
    assert sum(c.error is not None for c in found) == 2
    assert all(c.metadata["recorded_metrics"] == others for c in found if not c.error)
    with pytest.raises(RecordsError, match=r"holds several values: choose scorer='dicty\.a' or 'dicty\.b'"):
        ab.read_conversations(DICTS, scorer="dicty")


def test_calls_and_errors_of_a_file_that_inspect_wrote_are_read():
    """Eight samples: 4 tasks in 2 epochs; two crashed."""
    found = {(c.task_id, c.trial): c for c in ab.read_conversations(DICTS, scorer="includes")}
    assert len(found) == 8
    (crashed,) = (c for (task, _), c in found.items() if task == "wx_dict_first/oslo" and c.error)
    assert crashed.error == "infrastructure: ValueError('no such city')"
    (oslo,) = (c for (task, _), c in found.items() if task == "wx_dict_first/oslo" and not c.error)
    assert [call.tool_name for call in oslo.conversation[0].agentic.tools_used] == ["weather"]


def test_a_log_in_pieces_is_read_like_a_whole_one():
    """Inspect wrote both: the same run with a member per sample, and with each sample cut into chunks of two items."""
    whole, pieces = (
        {(c.task_id, c.trial): c for c in ab.read_conversations(FILES / "inspect" / f"{name}.eval", scorer="includes")}
        for name in ("whole", "pieces")
    )
    assert whole == pieces
    assert sorted(whole) == [("wx/b", 0), ("wx/b", 1), ("wx/oslo", 0), ("wx/oslo", 1)]
    (call,) = whole["wx/oslo", 0].conversation[0].agentic.tools_used
    assert (call.tool_name, call.parameters, call.result[:4]) == ("weather", {"city": "Oslo"}, "4 C ")


def test_a_scorer_off_the_scale_is_no_candidate_beside_one_that_is_on_it():
    """`includes` counts, `rating` gives 7s: it is kept, counts if it is named with its scale, and is no metric."""
    path = FILES / "inspect" / "whole.eval"
    found = list(ab.read_conversations(path))
    assert {c.recorded_score for c in found} == {0, 1}
    assert all("recorded_metrics" not in c.metadata and c.metadata["scores"]["rating"]["value"] == 7 for c in found)
    assert [c.recorded_score for c in ab.read_conversations(path, scorer="rating", scale=(1, 10))] == [2 / 3] * 4
