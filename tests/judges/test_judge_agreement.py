"""Several judges of the same answers, and how far they agree."""

from __future__ import annotations

import numpy as np
import pytest
from scripted import ScriptedChatModel

import agentic_bayes as ab
from agentic_bayes.evidence.row import row_from_json, row_to_json
from agentic_bayes.judges import judge_agreement

QUESTIONS = [f"q{i}" for i in range(12)]


def conversations():
    return [
        ab.Conversation(
            session_id=f"s{i}",
            assistant_id="a",
            conversation=[{"qa_id": "q", "query": question, "assistant": "5", "ground_truth_assistant": "5"}],
            task_id=f"task {i // 2}",
        )
        for i, question in enumerate(QUESTIONS)
    ]


def judge(scores, name):
    """A judge that gives these scores to the questions in turn; None is a reply that nobody can read."""

    def script(messages):
        text = messages[-1].content
        (position,) = (i for i, question in enumerate(QUESTIONS) if f"\n{question}\n" in text)
        score = scores[position]
        return "no idea" if score is None else f'{{"reasoning": "{name}", "correctness_score": {score}}}'

    return ab.LLMJudge(ScriptedChatModel(script=script, model_name=name), name=name, attempts=1)


def judged(*scores):
    first, *others = [judge(values, f"judge{i}") for i, values in enumerate(scores)]
    return ab.assess(conversations(), judge=first, metrics=others)


FIRST = [1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0.7]
SECOND = [1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0.69]
THIRD = [1, 1, None, 1, 0, 0, 0, 0, 1, None, 0, 1]


def test_two_judges_agree_as_cohen_says():
    """Raw agreement and kappa are the verdicts' at the threshold, by hand: 9 of 12, and (.75 - p_e)/(1 - p_e)."""
    found = judge_agreement(judged(FIRST, SECOND), resamples=50)
    assert found.raw("answer", "judge1").value == pytest.approx(9 / 12)
    chance = (7 * 6 + 5 * 6) / 144
    assert found.kappa("answer", "judge1").value == pytest.approx((9 / 12 - chance) / (1 - chance))
    assert found.clusters == 6  # tasks are resampled, not attempts


def test_three_judges_have_an_alpha_and_an_unread_reply_is_no_rating():
    """What a judge left unscored is missing for this judge alone."""
    evidence = judged(FIRST, SECOND, THIRD)
    found = judge_agreement(evidence, resamples=50)
    assert found.raters == ("answer", "judge1", "judge2")
    assert found.raw("answer", "judge2").items == 10
    assert found.raw("answer", "judge2").value == 1
    assert -1 <= found.alpha.value < 1
    pair = judge_agreement(evidence, judges=["judge1", "judge2"], resamples=50)
    assert pair.raters == ("judge1", "judge2")


def test_scores_are_compared_as_numbers_on_request():
    """At the interval level a difference of .01 hardly counts, though it lies across the threshold."""
    close = [score - 0.01 if score else 0 for score in FIRST]
    found = judge_agreement(judged(FIRST, close), compare="scores", resamples=50)
    assert found.level == "interval"
    assert found.alpha.value > 0.99


def test_bad_questions_are_refused():
    """One judge, unknown judges and thresholds outside [0, 1] are errors that say what is allowed."""
    evidence = judged(FIRST, SECOND)
    with pytest.raises(ab.errors.InvalidArgument, match="at least two judges"):
        judge_agreement(judged(FIRST))
    with pytest.raises(ab.errors.InvalidArgument, match="unknown judge 'judge2': did you mean 'judge1'"):
        judge_agreement(evidence, judges=["answer", "judge2"])
    with pytest.raises(ab.errors.InvalidArgument, match="threshold must be"):
        judge_agreement(evidence, threshold=70)
    with pytest.raises(ab.errors.InvalidArgument, match="must be a list of names"):
        judge_agreement(evidence, judges="answer")
    with pytest.raises(ab.errors.EvidenceError, match="none of the judges"):
        judge_agreement(judged([None] * 12, [None] * 12))


def test_a_judge_cannot_agree_with_itself():
    """The same judge twice would share its stored judgements; repeats are asked for in another way."""
    same = judge(FIRST, "one")
    with pytest.raises(ab.errors.InvalidArgument, match="n_judgements"):
        ab.assess(conversations(), judge=same, metrics=[same])


def test_the_spread_of_repeated_judgements_is_in_the_evidence(tmp_path):
    """Scores and spread of the repeats are details of the answer, kept in the file."""
    replies = iter([0.5, 0.9, 0.7] * len(QUESTIONS))
    model = ScriptedChatModel(script=lambda _: f'{{"reasoning": "", "correctness_score": {next(replies)}}}')
    evidence = ab.assess(conversations(), judge=ab.LLMJudge(model, n_judgements=3), concurrency=1)
    details = evidence.rows[0].answer_details
    assert sorted(details["scores"]) == [0.5, 0.7, 0.9]
    assert details["spread"] == pytest.approx(0.4)
    evidence.write(tmp_path / "e.jsonl")
    assert ab.Evidence.read(tmp_path / "e.jsonl").rows == evidence.rows


def test_details_of_the_wrong_kind_are_refused():
    """A file whose details are no object is not evidence; one without any is."""
    (row, *_) = judged(FIRST).rows
    record = row_to_json(row)
    assert row_from_json({name: value for name, value in record.items() if name != "answer_details"}).answer_score == 1
    from agentic_bayes.evidence.row import record_problems

    assert record_problems(record | {"answer_details": [1]}) == [("answer_details", "must be an object, got [1]")]
    assert not np.isnan(row.answer_score)
