"""From scored interactions to counts: what is a trial, when did it pass, and what is left out."""

import itertools
import json
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import reduced

from agentic_bayes.errors import EvidenceError, InvalidArgument, OutcomesError, UnknownName
from agentic_bayes.evidence.assess import assess
from agentic_bayes.evidence.evidence import Evidence, EvidenceRow
from agentic_bayes.evidence.reference.judge import ReferenceJudge
from agentic_bayes.evidence.row import row_to_json
from agentic_bayes.evidence.score import Score, Unscored
from agentic_bayes.outcomes.count import count_outcomes
from agentic_bayes.outcomes.dataset import (
    allowed_differences,
    check_outcomes,
    combine_outcomes,
    natural_key,
    natural_order,
)
from agentic_bayes.outcomes.table import outcomes_from_table
from agentic_bayes.records.read import read_conversations

CRASH = "agent error: timeout"


def row(
    score: float | str | None = 1.0, tools: float | str | None = None, *, turn: int = 0, **fields: Any
) -> EvidenceRow:
    """One scored turn; text stands for the reason why there is no score."""
    values: dict[str, Any] = {"agent": "v1", "task": "t", "trial": 0, "judge": "judge/1", "tool_rubric": "rubric/1"}
    values |= {"answer_score": score} if isinstance(score, float) else {"unscored_reason": score}
    if isinstance(tools, float):
        values |= {"selection": tools, "parameters": tools, "sequence": tools, "tool_overall": tools}
        values |= {"tools_correct": tools == 1}
    else:
        values["tool_reason"] = tools
    values |= {"interaction": turn, "qa_id": f"q{turn}"} | fields
    values.setdefault("session_id", f"{values['agent']}-{values['task']}-{values['trial']}")
    return EvidenceRow(**values)


def trial(*scores: float | str | tuple[float | str | None, float | str | None], **fields: Any) -> list[EvidenceRow]:
    """The turns of one conversation: answer scores, or pairs of answer and tool scores."""
    pairs = [score if isinstance(score, tuple) else (score, None) for score in scores]
    return [row(answer, tools, turn=i, **fields) for i, (answer, tools) in enumerate(pairs)]


def evidence(*conversations: list[EvidenceRow]) -> Evidence:
    return Evidence(tuple(itertools.chain.from_iterable(conversations)))


def cell(ds: xr.Dataset, agent: str = "v1", task: str = "t") -> tuple[int, int, int, int]:
    """successes, trials, unscored, errored of one cell."""
    one = ds.sel(agent=agent, task=task)
    return tuple(int(one[name]) for name in ("successes", "trials", "unscored", "errored"))  # type: ignore[return-value]


# When a conversation passed


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ((1.0, 0.7), (1, 1, 0, 0)),
        ((1.0, 0.699), (0, 1, 0, 0)),
        ((1.0, "judge: 429"), (0, 0, 1, 0)),
        ((0.0, "judge: 429"), (0, 1, 0, 0)),
        (("judge: 429", "judge: 429"), (0, 0, 1, 0)),
        ((1.0, CRASH), (0, 0, 1, 1)),
        ((0.0, CRASH), (0, 1, 0, 0)),
        (("judge: 429", CRASH), (0, 0, 1, 1)),
    ],
)
def test_a_conversation_is_as_good_as_its_worst_turn(scores, expected):
    """With a failed turn it failed; else with an unscored one it is unscored; else it passed. Missing is never zero."""
    assert cell(count_outcomes(evidence(trial(*scores)))) == expected


def test_trials_of_a_task_are_its_conversations():
    """Trials are the scored conversations of a task, successes those that passed; the unscored stand apart."""
    made = evidence(
        trial(1.0, 1.0, trial=0),
        trial(1.0, 0.0, trial=1),
        trial(1.0, "no reference", trial=2),
        trial(1.0, trial=3, agent="v2"),
        trial(0.0, trial=0, task="other"),
    )
    ds = count_outcomes(made)
    assert cell(ds) == (1, 2, 1, 0)
    assert cell(ds, "v2") == (1, 1, 0, 0)
    assert cell(ds, task="other") == (0, 1, 0, 0)
    assert cell(ds, "v2", "other") == (0, 0, 0, 0)
    assert ds.sizes == {"agent": 2, "task": 2}


@pytest.mark.parametrize(
    ("threshold", "passed"), [(0.7, True), (0.70000001, False), (0, True), (1, False), (np.float64(0.5), True)]
)
def test_the_threshold_is_reached_at_equality(threshold, passed):
    """A score equal to the threshold is enough."""
    assert cell(count_outcomes(evidence(trial(0.7)), threshold=threshold))[0] == passed


def test_a_tool_score_may_miss_its_threshold_by_rounding():
    """Tools pass within 1e-9 of their threshold, and no further."""
    for overall, passed in ((1 - 1e-10, 1), (0.9999999999999999, 1), (1 - 1e-8, 0), (1.0, 1)):
        made = evidence(trial((1.0, overall)))
        assert cell(count_outcomes(made, indicator="tools"))[:2] == (passed, 1)
    assert cell(count_outcomes(evidence(trial((1.0, 0.75))), indicator="tools", tool_threshold=0.75))[0] == 1


# Units


def test_turns_of_a_conversation_as_trials():
    """With unit interaction a task is one conversation, and its turns are the trials."""
    made = evidence(trial(1.0, 0.0, "no reference", CRASH, session_id="s1"), trial(1.0, session_id="s2", trial=1))
    ds = count_outcomes(made, unit="interaction")
    assert ds["task"].values.tolist() == ["s1", "s2"]
    assert cell(ds, task="s1") == (1, 2, 2, 1)
    assert cell(ds, task="s2") == (1, 1, 0, 0)


def test_responses_to_a_question_as_trials():
    """With unit question a task is a qa_id, whatever conversation it stands in."""
    made = evidence(trial(1.0, 0.0), trial(1.0, "no reference", trial=1), trial(0.0, task="u"))
    ds = count_outcomes(made, unit="question")
    assert cell(ds, task="q0") == (2, 3, 0, 0)
    assert cell(ds, task="q1") == (0, 1, 1, 0)


def test_sessions_that_agents_share_are_told_apart():
    """When agents are counted together, equal session ids of two agents are two conversations, not one."""
    made = evidence(
        trial(1.0, 1.0, session_id="s1"), trial(0.0, agent="v2", session_id="s1"), trial(1.0, session_id="s2", trial=1)
    )
    ds = count_outcomes(made, unit="interaction", agents="together")
    assert ds["task"].values.tolist() == ["v1/s1", "v1/s2", "v2/s1"]
    assert cell(ds, "all", "v1/s1")[:2] == (2, 2)
    apart = count_outcomes(made, unit="interaction")
    assert apart["task"].values.tolist() == ["s1", "s2"]
    assert (cell(apart, "v1", "s1")[:2], cell(apart, "v2", "s1")[:2]) == ((2, 2), (0, 1))


def test_agents_together_are_attempts_of_one():
    """Assistants counted together are attempts by one agent named all, also where their trial numbers are equal."""
    made = evidence(trial(1.0), trial(1.0, agent="v2"), trial(0.0, agent="v3"))
    ds = count_outcomes(made, agents="together")
    assert ds["agent"].values.tolist() == ["all"]
    assert cell(ds, "all") == (2, 3, 0, 0)


def test_fair_forge(shared_data):
    """Fair-Forge's three assistants are three attempts: 2 of 3 conversations, 3 responses to every question."""
    conversations = list(read_conversations(shared_data("fair_forge_dataset_agentic.json")))
    made = assess(conversations, judge=ReferenceJudge())
    ds = count_outcomes(made, agents="together")
    assert ds["successes"].values.tolist() == [[2]]
    assert ds["trials"].values.tolist() == [[3]]
    questions = count_outcomes(made, agents="together", unit="question")
    assert set(questions["task"].values) == {turn.qa_id for c in conversations for turn in c.conversation}
    assert (questions["trials"] == 3).all()
    assert count_outcomes(made)["trials"].values.tolist() == [[1], [1], [1]]


# Indicators


def test_tools_are_counted_where_there_is_a_verdict():
    """Only turns with a tool verdict count for tools; conversations without any are left out and counted."""
    made = evidence(
        trial((0.0, 1.0), (1.0, None)),
        trial((1.0, 1.0), (1.0, 0.5), trial=1),
        trial((1.0, None), (1.0, None), trial=2),
        trial((1.0, "tool calls were not recorded"), (1.0, 1.0), trial=3),
    )
    ds = count_outcomes(made, indicator="tools")
    assert cell(ds) == (1, 2, 1, 0)
    assert ds.attrs["left_out"] == 1
    turns = count_outcomes(made, indicator="tools", unit="interaction")
    assert turns["trials"].sum() == 4
    assert turns["unscored"].sum() == 1


def test_joint_asks_for_both_and_equals_answer_where_there_are_no_tools():
    """A joint pass needs answer and tools, and is the answer's where nothing was expected of tools."""
    for pair, expected in [
        ((1.0, 1.0), (1, 1, 0, 0)),
        ((1.0, 0.9), (0, 1, 0, 0)),
        ((0.0, 1.0), (0, 1, 0, 0)),
        ((1.0, None), (1, 1, 0, 0)),
        ((0.0, None), (0, 1, 0, 0)),
        ((1.0, "not recorded"), (0, 0, 1, 0)),
        ((0.0, "not recorded"), (0, 1, 0, 0)),
        (("no reference", 1.0), (0, 0, 1, 0)),
        (("no reference", 0.0), (0, 1, 0, 0)),
    ]:
        assert cell(count_outcomes(evidence(trial(pair)), indicator="joint")) == expected, pair


def test_a_right_answer_through_wrong_tools_passes_answer_only():
    """The tool verdict never hides in the answer's: the three indicators are three counts."""
    made = evidence(trial((1.0, 0.5)))
    passed = {name: cell(count_outcomes(made, indicator=name))[0] for name in ("answer", "tools", "joint")}
    assert passed == {"answer": 1, "tools": 0, "joint": 0}


def test_a_metric_is_cut_at_one_half():
    """Any metric of the evidence can be the indicator; where it has no score the turn is unscored."""
    grades = [Score(0.5), Score(0.49), Unscored("no embedding"), None]
    made = evidence(*[trial(1.0, trial=i, metrics={"coherence": g} if g else {}) for i, g in enumerate(grades)])
    ds = count_outcomes(made, indicator="coherence", threshold=0.9)
    assert cell(ds) == (1, 2, 2, 0)
    assert ds.attrs["threshold"] == 0.5


def test_what_was_counted_travels_with_the_counts():
    """Unit, indicator, thresholds, judge and source are attributes of the outcomes."""
    made = evidence(trial(1.0), trial(1.0, trial=1, judge="judge/2"))
    attrs = count_outcomes(made, unit="question", threshold=0.6).attrs
    assert attrs["unit"] == "question"
    assert attrs["indicator"] == "answer"
    assert attrs["threshold"] == 0.6
    assert attrs["tool_threshold"] == 1.0
    assert attrs["judge"] == "judge/1; judge/2"
    assert attrs["source"] == "evidence"
    assert attrs["left_out"] == 0


# Crashed agents


def crashed() -> Evidence:
    """One pass, one fail, one crash, one crash after a failed turn, one unscored."""
    return evidence(
        trial(1.0, trial=0),
        trial(0.0, trial=1),
        trial(1.0, CRASH, trial=2),
        trial(0.0, CRASH, trial=3),
        trial("no reference", trial=4),
    )


def test_crashes_are_unscored_failures_or_bounds():
    """A crashed agent is unscored and counted apart, or a failure on request, or the distance between two bounds."""
    assert cell(count_outcomes(crashed())) == (1, 3, 2, 1)
    assert cell(count_outcomes(crashed(), errors="fail")) == (1, 4, 1, 0)
    ds = count_outcomes(crashed(), errors="bounds")
    assert cell(ds) == (1, 3, 2, 1)
    assert float(ds["lower_bound"].sel(task="t").item()) == 1 / 4
    assert float(ds["upper_bound"].sel(task="t").item()) == 2 / 4
    assert "lower_bound" not in count_outcomes(crashed())


def test_one_pass_and_nine_crashes_is_neither_all_nor_a_tenth():
    """One pass and nine crashes are one trial and nine errors, shown apart."""
    made = evidence(trial(1.0), *[trial(CRASH, trial=i) for i in range(1, 10)])
    assert cell(count_outcomes(made)) == (1, 1, 9, 9)
    ds = count_outcomes(made, errors="bounds")
    assert (ds["lower_bound"].item(), ds["upper_bound"].item()) == (0.1, 1.0)


def test_bounds_of_a_cell_that_was_never_attempted_are_undefined():
    """Where nothing was tried there is no bound, which is not 0."""
    made = evidence(trial(1.0), trial(1.0, agent="v2", task="u"), trial("no reference", task="w"))
    ds = count_outcomes(made, errors="bounds")
    assert np.isnan(ds["lower_bound"].sel(agent="v1", task=["u", "w"])).all()


def test_a_crash_is_no_pass_for_tools_either():
    """A conversation that ended in a crash never passes, even if all tool verdicts before it did."""
    made = evidence([*trial((1.0, 1.0)), row(CRASH, None, turn=1)])
    assert cell(count_outcomes(made, indicator="tools")) == (0, 0, 1, 1)
    assert cell(count_outcomes(made, indicator="tools", errors="fail")) == (0, 1, 0, 0)
    expected = evidence([*trial((1.0, 1.0)), row(CRASH, CRASH, turn=1)])
    assert cell(count_outcomes(expected, indicator="tools")) == (0, 0, 1, 1)


@pytest.mark.parametrize("indicator", ["answer", "joint", "coherence"])
def test_a_crashed_turn_is_an_error_for_every_indicator(indicator):
    """Whatever is counted, a crash is an error and not a failure."""
    nothing = Unscored(CRASH)
    made = evidence(
        trial(1.0, metrics={"coherence": Score(1.0)}), [row(CRASH, trial=1, metrics={"coherence": nothing})]
    )
    assert cell(count_outcomes(made, indicator=indicator)) == (1, 1, 1, 1)


# Arguments and order


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"threshold": 70}, InvalidArgument, r"threshold must be a number in \[0, 1\], got 70"),
        ({"threshold": float("nan")}, InvalidArgument, r"threshold must be a number in \[0, 1\], got nan"),
        ({"threshold": True}, InvalidArgument, r"threshold must be a number in \[0, 1\], got True"),
        ({"threshold": "0.7"}, InvalidArgument, r"threshold must be a number in \[0, 1\], got '0.7'"),
        ({"tool_threshold": -1}, InvalidArgument, r"tool_threshold must be a number in \[0, 1\], got -1"),
        ({"unit": "conversations"}, UnknownName, "unknown unit 'conversations': did you mean 'conversation'?"),
        ({"unit": None}, UnknownName, "unknown unit None: valid: 'conversation', 'interaction', 'question'"),
        ({"indicator": "tool"}, UnknownName, "unknown indicator 'tool': did you mean 'tools'?"),
        ({"indicator": "coherence"}, UnknownName, "unknown indicator 'coherence': valid: 'answer', 'tools', 'joint'"),
        ({"indicator": ["answer"]}, UnknownName, "unknown indicator"),
        ({"agents": "all"}, UnknownName, "unknown agents 'all'"),
        ({"errors": "failed"}, UnknownName, "unknown errors 'failed': did you mean 'fail'?"),
    ],
)
def test_arguments_outside_what_is_allowed(arguments, error, message):
    """What is not allowed is refused with the allowed and what came."""
    with pytest.raises(error, match=message):
        count_outcomes(evidence(trial(1.0)), **arguments)


def test_nothing_to_count_is_an_error():
    """Without any verdict for the indicator there are no outcomes, rather than empty ones."""
    with pytest.raises(OutcomesError, match="no conversation has a verdict for indicator 'tools'"):
        count_outcomes(evidence(trial(1.0, 0.0)), indicator="tools")


@pytest.mark.parametrize(
    ("labels", "ordered"),
    [
        (["task 10", "task 2", "task 1"], ["task 1", "task 2", "task 10"]),
        (["v2", "v", "v10"], ["v", "v2", "v10"]),
        (["010", "9", "10", "10a"], ["9", "010", "10", "10a"]),
        (["b", "B", "a", "é"], ["B", "a", "b", "é"]),
        (["1.10", "1.9", "1"], ["1", "1.9", "1.10"]),
        (["9" * 5000, "1", "8" * 5000], ["1", "8" * 5000, "9" * 5000]),
        (["²", "2"], ["2", "²"]),
    ],
)
def test_labels_stand_in_natural_order(labels, ordered):
    """Numbers inside labels are compared as numbers, whatever their length."""
    assert sorted(labels, key=natural_key) == ordered
    made = evidence(*[trial(1.0, task=label, session_id=label) for label in labels])
    assert count_outcomes(made)["task"].values.tolist() == ordered


@given(st.lists(st.tuples(st.sampled_from(["", "t", "a7b", "7"]), st.text("0123456789", max_size=20)), min_size=1))
def test_numbered_labels_are_ordered_as_any_others(parts):
    """The quick way for labels that are one prefix and a number gives the order of `natural_key`."""
    labels = [prefix + number for prefix, number in parts]
    assert [labels[i] for i in natural_order(labels)] == sorted(labels, key=natural_key)


@given(st.lists(st.text(max_size=6), min_size=1, max_size=8, unique=True), st.randoms())
@settings(max_examples=reduced(100), deadline=None)
def test_natural_order_is_total(labels, shuffler):
    """Distinct labels never tie, so their order does not depend on where they stood."""
    shuffled = list(labels)
    shuffler.shuffle(shuffled)
    assert sorted(labels, key=natural_key) == sorted(shuffled, key=natural_key)


scores = st.one_of(st.sampled_from([0.0, 0.69, 0.7, 1.0]), st.just("no reference"), st.just(CRASH))
tool_scores = st.one_of(st.sampled_from([0.5, 1.0]), st.none(), st.just("not recorded"))
conversation_keys = st.tuples(st.sampled_from(["v1", "v2"]), st.sampled_from("abc"), st.integers(0, 3))


@st.composite
def evidences(draw):
    """Random evidence: some agents, tasks and trials, with turns of every kind."""
    keys = draw(st.lists(conversation_keys, min_size=1, max_size=8, unique=True))
    return [
        trial(*draw(st.lists(st.tuples(scores, tool_scores), min_size=1, max_size=3)), agent=a, task=t, trial=n)
        for a, t, n in keys
    ]


def naive(conversations: list[list[EvidenceRow]], threshold: float) -> Counter[tuple[str, str, str]]:
    """The rule of a conversation, said once more and plainly."""
    count: Counter[tuple[str, str, str]] = Counter()
    for rows in conversations:
        first = rows[0]
        if any(r.answer_score is not None and r.answer_score < threshold for r in rows):
            verdict = "fail"
        else:
            verdict = "unscored" if any(r.answer_score is None for r in rows) else "pass"
        count[first.agent, first.task, verdict] += 1
    return count


@given(evidences(), st.sampled_from([0.5, 0.7, 1.0]))
@settings(max_examples=reduced(100), deadline=None)
def test_counts_are_the_plain_count(conversations, threshold):
    """Every conversation is counted once: as passed, failed or unscored."""
    ds = count_outcomes(evidence(*conversations), threshold=threshold)
    count = naive(conversations, threshold)
    for agent, task in itertools.product(ds["agent"].values, ds["task"].values):
        passed, failed = count[agent, task, "pass"], count[agent, task, "fail"]
        assert cell(ds, agent, task)[:3] == (passed, passed + failed, count[agent, task, "unscored"])


@given(evidences(), st.randoms(use_true_random=False), st.sampled_from(["answer", "joint"]))
@settings(max_examples=reduced(60), deadline=None)
def test_shuffled_rows_give_the_same_bits(conversations, shuffler, indicator):
    """The order of the rows changes nothing, not even the order of labels or attributes."""
    rows = list(itertools.chain.from_iterable(conversations))
    shuffled = list(rows)
    shuffler.shuffle(shuffled)
    for unit in ("conversation", "interaction", "question"):
        one = count_outcomes(Evidence(tuple(rows)), indicator=indicator, unit=unit)
        two = count_outcomes(Evidence(tuple(shuffled)), indicator=indicator, unit=unit)
        assert one.identical(two)
        assert list(one.attrs) == list(two.attrs)


@given(evidences())
@settings(max_examples=reduced(60), deadline=None)
def test_nothing_is_lost_between_units(conversations):
    """Interactions and questions count the same turns; joint never passes more than answer."""
    made = evidence(*conversations)
    turns, questions = (count_outcomes(made, unit=unit) for unit in ("interaction", "question"))
    for name in ("successes", "trials", "unscored", "errored"):
        assert int(turns[name].sum()) == int(questions[name].sum())
    assert int(turns["trials"].sum() + turns["unscored"].sum()) == len(made)
    joint = count_outcomes(made, indicator="joint")
    assert (joint["successes"] <= count_outcomes(made)["successes"]).all()


@given(evidences(), st.randoms(use_true_random=False), st.sampled_from(["answer", "tools", "coherence"]))
@settings(max_examples=reduced(25), deadline=None)
def test_a_file_gives_the_counts_of_the_evidence_in_it(conversations, shuffler, indicator):
    """Whether its rows stand in order, and are counted one by one, or not; refusals are the same, too."""
    made = evidence(*conversations)
    lines = [json.dumps(row_to_json(row)) for row in made.rows]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "evidence.jsonl"
        for _ in range(2):
            path.write_text("\n".join(lines), encoding="utf-8")
            for unit, agents in (("conversation", "separate"), ("interaction", "together"), ("question", "separate")):
                expected, failure = result(made, unit=unit, agents=agents, indicator=indicator)
                counted, refusal = result(path, unit=unit, agents=agents, indicator=indicator)
                assert failure == refusal
                assert expected is counted is None or expected.identical(counted)
            shuffler.shuffle(lines)


def result(source: Any, **arguments: Any) -> tuple[xr.Dataset | None, str]:
    """The counts, or why there are none."""
    try:
        return count_outcomes(source, **arguments), ""
    except (OutcomesError, InvalidArgument) as error:
        return None, str(error)


def test_a_file_of_evidence_with_a_bad_line_is_refused_with_the_line(tmp_path):
    """Counting row by row knows no lines; reading the file as a whole does."""
    path = tmp_path / "evidence.jsonl"
    evidence(trial(1.0), trial(0.0, trial=1)).write(path)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"agent": "v1"}\n')
    with pytest.raises(EvidenceError, match="line 3, task: is missing"):
        count_outcomes(path)
    with pytest.raises(EvidenceError, match="no such file"):
        count_outcomes(tmp_path / "nothing.jsonl")


# Outcomes made by hand


def by_hand(**changes: Any) -> xr.Dataset:
    """Outcomes of two agents and three tasks, with variables replaced or, by None, left out."""
    shape = (2, 3)
    variables = {"successes": np.ones(shape, int), "trials": np.full(shape, 2)} | changes
    return xr.Dataset(
        {name: (("agent", "task"), values) for name, values in variables.items() if values is not None},
        coords={"agent": ["a", "b"], "task": ["t1", "t2", "t3"]},
    )


def test_outcomes_by_hand_are_completed():
    """Nothing more than successes and trials is needed; the rest is filled in and the argument is left as it was."""
    ds = by_hand()
    done = check_outcomes(ds.transpose("task", "agent"))
    assert done["trials"].dims == ("agent", "task")
    assert (done["unscored"] == 0).all()
    assert (done["errored"] == 0).all()
    assert done.attrs == {"unit": "conversation", "indicator": "correct"}
    assert "unscored" not in ds
    assert check_outcomes(done).identical(done)


def test_outcomes_by_hand_are_put_in_natural_order():
    """The order in which somebody wrote the labels changes nothing."""
    one = by_hand(successes=np.array([[0, 1, 2], [2, 1, 0]]))
    other = one.isel(agent=[1, 0], task=[2, 0, 1])
    assert check_outcomes(other).identical(check_outcomes(one))
    assert check_outcomes(other)["task"].values.tolist() == ["t1", "t2", "t3"]


def test_labels_that_are_numbers_become_text():
    """Integer labels are read as text, in the order of the numbers."""
    ds = by_hand().assign_coords(task=[10, 9, 100])
    assert check_outcomes(ds)["task"].values.tolist() == ["9", "10", "100"]


def test_further_variables_and_dimensions_are_kept():
    """What else somebody keeps beside the counts does not disturb."""
    ds = by_hand().assign(cost=("fold", [1.0, 2.0]), difficulty=("task", [0.1, 0.2, 0.3]))
    done = check_outcomes(ds)
    assert done["cost"].values.tolist() == [1.0, 2.0]
    assert done["difficulty"].values.tolist() == [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("ds", "message"),
    [
        (by_hand(successes=np.full((2, 3), 3)), "successes must not exceed trials"),
        (by_hand(trials=np.full((2, 3), 2.0)), "'trials' must hold integers, got float64"),
        (by_hand(trials=np.full((2, 3), 2**63, np.uint64)), r"'trials' must be < 2\^53, got 9223372036854775808"),
        (by_hand(successes=np.ones((2, 3), bool)), "'successes' must hold integers, got bool"),
        (by_hand(successes=np.full((2, 3), -1)), "'successes' must be ≥ 0, got -1"),
        (by_hand(unscored=np.full((2, 3), -2)), "'unscored' must be ≥ 0, got -2"),
        (by_hand(errored=np.ones((2, 3), int)), "errored must not exceed unscored"),
        (by_hand(trials=None), r"variable 'trials' is missing; variables are \['successes'\]"),
        (by_hand().drop_vars("task"), "dimension 'task' has no labels"),
        (by_hand().isel(agent=[]), "there is no agent"),
        (by_hand().assign_coords(agent=["a", "a"]), "labels of 'agent' are not unique"),
        (by_hand().assign_coords(task=[1, "1", "2"]), "labels of 'task' are not unique"),
        (by_hand().rename(task="question"), r"dimension 'task' is missing; dims are \('agent', 'question'\)"),
        (by_hand().expand_dims(fold=2), r"'trials' must have dims \(agent, task\), got"),
        (by_hand().to_dataframe(), "outcomes must be an xarray.Dataset .* got DataFrame"),
        (None, "outcomes must be an xarray.Dataset .* got NoneType"),
    ],
)
def test_outcomes_that_cannot_be(ds, message):
    """Counts that are none, or labels that are not, are refused with what came."""
    with pytest.raises(OutcomesError, match=message):
        check_outcomes(ds)


def test_all_problems_of_outcomes_are_reported_together():
    """Two mistakes are named in one message."""
    ds = by_hand(trials=np.full((2, 3), 2.0), successes=np.full((2, 3), -1))
    with pytest.raises(OutcomesError, match=r"'successes' must be ≥ 0.*'trials' must hold integers"):
        check_outcomes(ds)


# Side by side


def counted(agent: str = "v1", task: str = "t", **arguments: Any) -> xr.Dataset:
    return count_outcomes(evidence(trial(1.0, agent=agent, task=task)), **arguments)


def test_combined_outcomes_are_the_union():
    """Agents and tasks of all, with 0 trials where an agent never attempted a task."""
    ds = combine_outcomes(counted("v2", "t2"), counted("v1", "t10"))
    assert ds["agent"].values.tolist() == ["v1", "v2"]
    assert ds["task"].values.tolist() == ["t2", "t10"]
    assert ds["trials"].values.tolist() == [[0, 1], [1, 0]]
    assert ds.attrs["unit"] == "conversation"
    assert combine_outcomes(ds).identical(ds)


def test_the_order_of_combining_changes_nothing():
    """A beside B is B beside A."""
    one, two = counted("v1"), counted("v2", "u")
    assert combine_outcomes(one, two).identical(combine_outcomes(two, one))


def test_names_tell_equal_agents_apart():
    """An agent that occurs twice is refused, unless names are given."""
    with pytest.raises(OutcomesError, match="agent 'v1' occurs in datasets 0 and 1: give `names` to tell them apart"):
        combine_outcomes(counted(), counted())
    named = combine_outcomes(counted(), counted(), names=["before", "after"])
    assert named["agent"].values.tolist() == ["after", "before"]
    both = combine_outcomes(counted("v1"), counted("v2"))
    prefixed = combine_outcomes(both, both, names=["x", "y"])
    assert prefixed["agent"].values.tolist() == ["x/v1", "x/v2", "y/v1", "y/v2"]


@pytest.mark.parametrize("names", [["one"], "ab", ["a", "b", "c"]])
def test_one_name_per_dataset(names):
    """As many names as datasets, and a text is one name."""
    with pytest.raises(InvalidArgument, match=r"names must hold one name per dataset \(2\), got [13]"):
        combine_outcomes(counted(), counted("v2"), names=names)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("unit", {"unit": "question"}),
        ("indicator", {"indicator": "joint"}),
        ("threshold", {"threshold": 0.9}),
        ("tool_threshold", {"tool_threshold": 0.9}),
        ("errors", {"errors": "fail"}),
    ],
)
def test_what_was_counted_differently_is_not_combined(name, arguments):
    """Different units, indicators or thresholds are refused; on request they are combined and the result says so."""
    one, two = counted(), counted("v2", **arguments)
    with pytest.raises(OutcomesError, match=rf"outcomes differ in '{name}': .* allow=\('{name}',\) combines them"):
        combine_outcomes(one, two)
    ds = combine_outcomes(one, two, allow=(name, "tool_rubric"))
    assert ds.attrs[name] == f"{one.attrs[name]} | {two.attrs[name]}"
    assert f"{name} differs ({ds.attrs[name]})" in allowed_differences(ds.attrs)


def test_outcomes_counted_alike_have_nothing_to_say():
    """No difference, no sentence; a bar in a name is no difference, and a difference survives the next combination."""
    assert allowed_differences(combine_outcomes(counted(), counted("v2")).attrs) == ""
    table = outcomes_from_table(pd.DataFrame({"task": ["t"], "a | b": [1]}), correct="a | b")
    assert allowed_differences(check_outcomes(table).attrs) == ""
    once = combine_outcomes(counted(), counted("v2", threshold=0.9), allow="threshold")
    twice = combine_outcomes(once, counted("v3", threshold=0.8), allow="threshold")
    assert allowed_differences(twice.attrs) == "not counted alike: threshold differs (0.7 | 0.9 | 0.8)"


def test_different_judges_are_not_combined_silently():
    """Two judges are two measuring sticks."""
    other = count_outcomes(evidence(trial(1.0, agent="v2", judge="judge/2")))
    with pytest.raises(OutcomesError, match="outcomes differ in 'judge': 'judge/1', 'judge/2'"):
        combine_outcomes(counted(), other)
    for allow in (["judge"], ("judge",), "judge"):
        assert combine_outcomes(counted(), other, allow=allow).attrs["judge"] == "judge/1 | judge/2"


def test_different_tool_rubrics_matter_where_tools_are_counted():
    """Two tool rubrics are refused for tools and joint, and are no matter for answers."""
    one, two = (
        evidence(trial((1.0, 1.0), agent=agent, tool_rubric=rubric)) for agent, rubric in (("v1", "r1"), ("v2", "r2"))
    )
    for indicator in ("tools", "joint"):
        with pytest.raises(OutcomesError, match="outcomes differ in 'tool_rubric': 'r1', 'r2'"):
            combine_outcomes(count_outcomes(one, indicator=indicator), count_outcomes(two, indicator=indicator))
    assert "tool_rubric" not in combine_outcomes(count_outcomes(one), count_outcomes(two)).attrs


def test_only_what_may_differ_can_be_allowed():
    """A misspelt permission is refused; so is combining nothing."""
    with pytest.raises(UnknownName, match=r"unknown attribute to allow 'judges': did you mean 'judge'\?"):
        combine_outcomes(counted(), allow=("judges",))
    with pytest.raises(OutcomesError, match="combine_outcomes needs at least one outcomes dataset, got none"):
        combine_outcomes()


def test_bounds_and_left_out_conversations_survive():
    """Bounds are kept for the union, and conversations that were left out are added up."""
    parts = [
        count_outcomes(evidence(trial(1.0, agent=a), trial(CRASH, agent=a, trial=1)), errors="bounds")
        for a in ("v1", "v2")
    ]
    ds = combine_outcomes(*parts)
    assert ds["upper_bound"].values.tolist() == [[1.0], [1.0]]
    assert ds["lower_bound"].values.tolist() == [[0.5], [0.5]]
    tools = [
        count_outcomes(evidence(trial((1.0, 1.0), agent=a), trial(1.0, agent=a, trial=1)), indicator="tools")
        for a in ("v1", "v2")
    ]
    assert combine_outcomes(*tools).attrs["left_out"] == 2


def test_tables_with_names_of_their_own_are_combined():
    """Tables from two places are put side by side; both sources are named."""
    import pandas as pd

    table = pd.DataFrame({"task": ["a", "b"], "correct": [1, 0]})
    one, two = outcomes_from_table(table), outcomes_from_table(table)
    ds = combine_outcomes(one.assign_attrs(source="x.csv"), two.assign_attrs(source="y.csv"), names=["x", "y"])
    assert ds.attrs["source"] == "x.csv | y.csv"
    assert ds["trials"].values.tolist() == [[1, 1], [1, 1]]


def test_counts_of_many_trials_are_exact():
    """A task with hundreds of trials in any order is counted exactly."""
    rng = random.Random(0)
    rows = [row(float(rng.random() < 0.3), trial=i) for i in range(500)]
    passed = sum(r.answer_score == 1 for r in rows)
    rng.shuffle(rows)
    assert cell(count_outcomes(Evidence(tuple(rows)))) == (passed, 500, 0, 0)
