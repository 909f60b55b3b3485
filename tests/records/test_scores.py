"""Which score counts, on which scale, and what is said where there is none."""

import json

import pytest

import agentic_bayes as ab
from agentic_bayes.errors import RecordsError
from agentic_bayes.records.survey import survey
from agentic_bayes.records.wire.options import ReadOptions
from agentic_bayes.records.wire.scores import chosen_score

TURNS = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
NATIVE = {"session_id": "s", "assistant_id": "a", "conversation": [{"qa_id": "q", "query": "?", "assistant": "!"}]}
CHAT = {"id": "s", "messages": TURNS}
SCORES = {"strict": "I", "lenient": True, "dicty": {"a": 1, "b": 0.5}, "parts": [0.25, "C"], "rubric": 7, "off": None}


@pytest.mark.parametrize(
    ("scorer", "value"), [("strict", 0), ("lenient", 1), ("dicty.b", 0.5), ("parts.0", 0.25), ("parts.1", 1)]
)
def test_a_score_is_chosen_by_name_and_values_inside_it_by_path(scorer, value):
    """Labels and booleans are 0 or 1."""
    assert chosen_score(SCORES, ReadOptions(scorer=scorer)).value == value


def test_the_only_score_counts_and_among_several_one_must_be_chosen():
    """Nothing is taken because it comes first."""
    assert chosen_score({"x": 0.5}, ReadOptions()).value == 0.5
    assert chosen_score({}, ReadOptions()).reason is None
    several = chosen_score(SCORES, ReadOptions())
    assert several.value is None
    assert "several scores, 'strict', 'lenient'" in several.reason
    assert "--scorer" in several.reason


@pytest.mark.parametrize(
    ("scores", "scorer", "reason"),
    [
        (SCORES, "stict", "no score 'stict' in this record; it has 'strict'"),
        ({}, "x", "it has none"),
        (SCORES, "dicty", r"several values ('a', 'b'): choose one, scorer='dicty.a'"),
        (SCORES, "parts", "scorer='parts.0'"),
        (SCORES, "off", "null or NaN"),
        ({"x": float("nan")}, "x", "null or NaN"),
        ({"x": "good"}, "x", "not a number or a label: 'good'"),
    ],
)
def test_a_record_that_lacks_the_score_is_unscored_with_a_reason(scores, scorer, reason):
    """The reason says what there is instead."""
    chosen = chosen_score(scores, ReadOptions(scorer=scorer))
    assert chosen.value is None
    assert chosen.fault is None
    assert reason in chosen.reason


def test_a_score_off_its_scale_is_refused_and_on_its_scale_is_a_share():
    """The refusal says how to give the scale."""
    assert chosen_score(SCORES, ReadOptions(scorer="rubric", scale=(1, 10))).value == pytest.approx(2 / 3)
    assert chosen_score(SCORES, ReadOptions(scorer="lenient", scale=(1, 10))).value == 1
    fault = chosen_score(SCORES, ReadOptions(scorer="rubric")).fault
    assert "got 7" in fault
    assert "scale=(1, 10)" in fault
    assert "threshold" in fault
    assert "[1, 5]" in chosen_score(SCORES, ReadOptions(scorer="rubric", scale=(1, 5))).fault


@pytest.mark.parametrize("record", [NATIVE | {"recorded_score": 10}, CHAT | {"score": 10}])
def test_recorded_scores_of_records_and_chats_follow_the_scale(tmp_path, record):
    """Without one, what is off [0, 1] is refused."""
    path = tmp_path / "log.json"
    path.write_text(json.dumps([record]))
    with pytest.raises(RecordsError, match=r"score: must be a number in \[0, 1\], got 10: give .*--scale 1,10"):
        ab.read_conversations(path)
    (found,) = ab.read_conversations(path, scale=(1, 10))
    assert found.recorded_score == 1


def test_turns_have_scores_on_the_same_scale(tmp_path):
    """A turn's own score is no other kind of score."""
    turn = NATIVE["conversation"][0] | {"recorded_score": 3}
    path = tmp_path / "log.json"
    path.write_text(json.dumps([NATIVE | {"conversation": [turn]}]))
    (found,) = ab.read_conversations(path, scale=(1, 5))
    assert found.conversation[0].recorded_score == 0.5
    with pytest.raises(RecordsError, match=r"conversation\[0\]\.recorded_score: must be a number in \[0, 1\], got 3"):
        ab.read_conversations(path)


@pytest.mark.parametrize("base", [NATIVE, CHAT])
@pytest.mark.parametrize(
    "place", [{"scores": {"tone": 0.5}}, {"metadata": {"scores": [{"name": "tone", "score": 0.5}]}}]
)
def test_scores_beside_a_record_are_chosen_by_name_and_the_reason_reaches_the_evidence(tmp_path, base, place):
    """A record without it is unscored, and assess repeats the reader's reason."""
    if base is NATIVE:
        place = place if "metadata" in place else {"metadata": place}
    path = tmp_path / "log.jsonl"
    bare = base | {"session_id" if base is NATIVE else "id": "s2"}
    path.write_text(json.dumps(base | place) + "\n" + json.dumps(bare))
    first, second = ab.read_conversations(path, scorer="tone")
    assert first.recorded_score == 0.5
    rows = ab.assess([first, second], judge=ab.RecordedJudge()).rows
    assert rows[0].answer_score == 0.5
    assert rows[1].unscored_reason == "no recorded score: no score 'tone' in this record; it has none"


def test_a_scorer_may_be_a_path(tmp_path):
    """Any number in a record can be the score."""
    path = tmp_path / "log.json"
    path.write_text(json.dumps([CHAT | {"feedback": {"stars": 4}}]))
    (found,) = ab.read_conversations(path, scorer="feedback.stars", scale=(1, 5))
    assert found.recorded_score == 0.75


def test_scores_that_disagree_are_no_score_until_one_is_chosen(tmp_path):
    """Which of `score`, `reward` and the metadata's counts is not guessed; the reason names them."""
    path = tmp_path / "chat.json"
    chat = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
    path.write_text(json.dumps({"messages": chat, "score": 1, "metadata": {"reward": 0}}), "utf-8")
    (found,) = ab.read_conversations(path)
    assert found.recorded_score is None
    assert found.metadata["not_scored"].startswith("several scores, 'score', 'metadata.reward'")
    for name, value in (("score", 1), ("metadata.reward", 0)):
        assert next(ab.read_conversations(path, scorer=name)).recorded_score == value


def test_a_score_next_to_an_error_is_not_counted_as_a_score(tmp_path):
    """So that the summary of a log and what it gives to count agree."""
    path = tmp_path / "log.jsonl"
    chat = {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}], "score": 1}
    path.write_text("".join(json.dumps(chat | more) + "\n" for more in ({}, {"error": "timeout"})), "utf-8")
    found = survey([path])
    counts = ab.count_outcomes(ab.assess(ab.read_conversations(path), judge=ab.RecordedJudge()))
    assert (found.recorded, found.files[0].errors) == (1, 1) == (counts["trials"].sum(), counts["errored"].sum())
